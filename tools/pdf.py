"""Print the built site as one book, _build/attention-by-hand.pdf: `python -m tools.pdf`.

All pages become one document, which the browser prints under the print part of `book.css`. So
links from page to page stay inside of the book. It is printed twice: only a printed book knows
the page numbers that its table of contents needs.
"""

import re
import sys
import tempfile
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup
from playwright.sync_api import Error as BrowserError
from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter

from _ext.course.one_page import adopted, place
from tools.build import SITE
from tools.install import SetupError, find_browser, say

BOOK = SITE.parent / "attention-by-hand.pdf"
LICENCE = "Code: MIT. Text and figures: CC BY 4.0."
NOTE = (
    "In the online book the instruments move; here each stands as it starts. The code of pictures "
    "and proofs is in the notebooks."
)

FRONT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{heads}</style></head><body class="book" data-theme="light">
<div class="title-page"><img src="{logo}" alt=""><p class="title">{title}</p>
<p class="subtitle">{subtitle}</p><p class="author">{author}</p><p class="note">{note}</p>
<p class="note">{licence}</p></div>
<nav class="toc-page" id="contents"><h1>Contents</h1></nav></body></html>"""
# What stands at the foot of the pages of one article.
HEAD = """article[id="{id}"] {{ page: p{number}; }}
@page p{number} {{ @bottom-left {{ content: "{title}"; }} }}"""


def read(site, name):
    """Return a page of the site as a tree."""
    return BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser")


def pages(index):
    """Return the pages in the order of the contents, in parts: [(caption, [page])]."""
    captions = index.select(".sidebar-tree > .caption")
    return [
        (caption.get_text(), [link["href"] for link in caption.find_next("ul").select("a[href]")])
        for caption in captions
    ]


PLACE = "The answer stands at the end of the chapter."


def gather_answers(article, new_tag):
    """Put what answers a question at the end, as `book.js` does where a reader prints a page."""
    answers = article.select("details.answer, .abh .told details")
    if not answers:
        return
    ending = new_tag("section", attrs={"class": "answers"})
    ending.append(new_tag("h2", string="Answers"))
    for answer in answers:
        if asked := answer.find_parent(class_="told"):
            asked = asked.find_parent(["form", "fieldset"]).select_one("legend, .question")
            text = "".join(asked.find_all(string=True, recursive=False)).strip()
            answer.summary.insert_after(new_tag("p", string=text, attrs={"class": "answer-of"}))
            answer["class"] = "answer of-widget"
            answer.extract()
        else:
            answer.replace_with(new_tag("p", string=PLACE, attrs={"class": "answer-place"}))
        answer["open"] = "open"
        ending.append(answer)
    article.append(ending)


def article_of(site, page, pages, new_tag):
    """Return the article of a page as a part of the book."""
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    article = new_tag("article", id=place(page))
    article.append(BeautifulSoup(adopted(text, page, pages), "html.parser"))
    for link in article.select("a[href]"):
        if not link["href"].startswith("#") and not urlsplit(link["href"]).scheme:
            link.unwrap()  # nothing of this book, nothing on the web: readable text
    for image in article.select("img[src]"):
        image["src"] = urljoin(f"{site.as_uri()}/", image["src"])
    gather_answers(article, new_tag)
    return article


def join(site):
    """Return the whole site as one document, without scripts and without page numbers."""
    index = read(site, "index.html")
    parts = [("", ["index.html"]), *pages(index)]
    names = [name for _, listed in parts for name in listed]
    trees = {name: read(site, name) for name in names}
    titles = {name: heading(tree) for name, tree in trees.items()}
    heads = (
        HEAD.format(id=place(page_of(name)), number=number, title=title.replace('"', r"\""))
        for number, (name, title) in enumerate(titles.items())
    )
    book = BeautifulSoup(
        FRONT.format(
            title=titles["index.html"],
            subtitle=index.article.p.get_text(),
            author=author(index),
            logo=(site / "_static" / "logo.svg").as_uri(),
            note=NOTE,
            licence=LICENCE,
            heads=" ".join(heads),
        ),
        "html.parser",
    )
    styles = dict.fromkeys(
        urljoin((site / name).as_uri(), link["href"])
        for name, tree in trees.items()
        for link in tree.select("link[rel=stylesheet]")
    )
    for style in styles:
        if "/start.css" in style:  # the start page alone lays its sections out as a grid
            rules = (site / "_static" / "start.css").read_text(encoding="utf-8")
            rules = f"@scope (body) to (article:not([id=index])) {{ {rules} }}"
            book.head.append(book.new_tag("style", string=rules))
        else:
            book.head.append(book.new_tag("link", rel="stylesheet", href=style))
    book.head.append(index.head.style)
    for caption, listed in parts:
        if caption:
            book.nav.append(book.new_tag("p", string=caption))
        contents = book.new_tag("ul")
        for name in listed:
            page = page_of(name)
            link = book.new_tag("a", href="#" + place(page))
            link.append(book.new_tag("span", string=titles[name]))
            # As wide as the number will be, so that nothing moves when it comes.
            link.append(book.new_tag("span", string="000", attrs={"data-page": place(page)}))
            item = book.new_tag("li")
            item.append(link)
            contents.append(item)
            book.body.append(article_of(site, page, set(map(page_of, names)), book.new_tag))
        book.nav.append(contents)
    return book


def page_of(name):
    """Return the name of the page that a file of the site holds."""
    return name.removesuffix(".html")


def heading(tree):
    """Return the title of a page, as its article has it."""
    title = BeautifulSoup(str(tree.article.h1), "html.parser")
    for extra in title.select(".headerlink, mjx-assistive-mml"):
        extra.decompose()
    return title.get_text().strip()


def author(index):
    """Return whose work the site is, as each page says it."""
    return re.search(r"©\s*(.+?)\.", index.select_one(".colophon").get_text())[1]


def print_book(book, browser, folder):
    """Print the book twice, the second time with page numbers; return a PdfReader."""
    source, target = folder / "book.html", folder / "book.pdf"
    source.write_text(str(book), encoding="utf-8")
    page = browser.new_page(java_script_enabled=False)  # pictures are whole, as without a script
    page.goto(source.as_uri())
    for time in ("first", "second"):
        say(f"Printing the book for the {time} time ...")
        page.pdf(
            path=target, prefer_css_page_size=True, print_background=True, outline=True, tagged=True
        )
        printed = PdfReader(target)
        numbers = {
            name.removeprefix("/"): printed.get_destination_page_number(target) + 1
            for name, target in printed.named_destinations.items()
        }
        page.evaluate(
            """numbers => document.querySelectorAll("[data-page]").forEach(
                entry => { entry.textContent = numbers[entry.dataset.page]; })""",
            numbers,
        )
    page.close()
    return printed


def make(site, target, browser):
    """Write the book of `site` to `target`, all of it or nothing; return its number of pages."""
    say("Joining the pages ...")
    book = join(site)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        printed = print_book(book, browser, Path(folder))
        writer = PdfWriter(clone_from=printed)
        writer.add_metadata({"/Author": book.select_one(".author").get_text()})
        whole = Path(folder, "whole.pdf")
        writer.write(whole)
        whole.replace(target)
    return len(printed.pages)


def main():
    """Make the book and say where it is; return what to exit with."""
    if not (SITE / "index.html").exists():
        return "The book was not printed: there is no built site; run `make book` first."
    try:
        path = find_browser()
        if not path:
            return "The book was not printed: run `make browser` first, or set CHROMIUM."
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=["--disable-gpu"])
            count = make(SITE, BOOK, browser)
            browser.close()
    except (SetupError, BrowserError, OSError) as error:
        return f"The book was not printed: {str(error).splitlines()[0]}."
    except KeyboardInterrupt:
        return "\nPrinting was stopped; run the same command again."
    say(f"{count} pages, {BOOK.stat().st_size / 1e6:.1f} MB: {BOOK.as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
