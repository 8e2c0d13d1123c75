"""Print the book that the build made, _build/attention-by-hand.pdf: `python -m tools.pdf`.

The browser prints it twice: only a printed book knows the page numbers that its table of contents
needs. The print part of `book.css` says how it looks.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Error as BrowserError
from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter

from tools.build import BOOK
from tools.install import SetupError, find_browser, say

PDF = BOOK.parent / "attention-by-hand.pdf"
WRITE_NUMBERS = """numbers => {
  for (const entry of document.querySelectorAll("[data-page]")) {
    entry.textContent = numbers[entry.dataset.page];
  }
}"""


def make(book, target, browser):
    """Print `book` to `target`, all of it or nothing; return its number of pages."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        file = Path(folder, target.name)
        page = browser.new_page()
        page.goto(book.as_uri())
        author = page.text_content(".author")
        for time in ("first", "second"):
            say(f"Printing the book for the {time} time ...")
            page.pdf(
                path=file,
                prefer_css_page_size=True,
                print_background=True,
                outline=True,
                tagged=True,
            )
            printed = PdfReader(file)
            numbers = {
                name.removeprefix("/"): printed.get_destination_page_number(place) + 1
                for name, place in printed.named_destinations.items()
            }
            page.evaluate(WRITE_NUMBERS, numbers)
        page.close()
        writer = PdfWriter(clone_from=printed)
        writer.add_metadata({"/Author": author})
        writer.write(file)
        file.replace(target)
    return len(printed.pages)


def main():
    """Make the book and say where it is; return what to exit with."""
    if not BOOK.exists():
        return "The book was not printed: there is no built site; run `make book` first."
    try:
        path = find_browser()
        if not path:
            return "The book was not printed: run `make browser` first, or set CHROMIUM."
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=["--disable-gpu"])
            count = make(BOOK, PDF, browser)
            browser.close()
    except (SetupError, BrowserError, OSError) as error:
        return f"The book was not printed: {str(error).splitlines()[0]}."
    except KeyboardInterrupt:
        return "\nPrinting was stopped; run the same command again."
    say(f"{count} pages, {PDF.stat().st_size / 1e6:.1f} MB: {PDF.as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
