"""What readers of the built site fetch, as gzip, in the table that teaching.md includes.

A browser opens the start page and each chapter and scrolls to the end. What it asked for is
weighed as a server sends it: text as gzip, fonts and pictures as they are. A file that several
pages share is fetched once by a reader of the course. Headers are not counted.
"""

import functools
import gzip
import mimetypes
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import sync_playwright

from tests.site.harness import awake
from tools.install import find_browser

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
TABLE = ROOT / "benchmarks" / "readers.md"
READERS = (1, 100, 10_000)
MONTH = 100e9  # bytes, the soft limit of GitHub Pages
TEXT = {"application/javascript", "application/json", "image/svg+xml"}
SCROLL = """async () => {
    for (let y = 0; y < document.body.scrollHeight; y += innerHeight) {
        scrollTo(0, y);
        await new Promise((painted) => requestAnimationFrame(painted));
    }
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def weight(file):
    """Return the bytes of a file as a server sends it."""
    kind = mimetypes.guess_type(file)[0] or ""
    content = file.read_bytes()
    return (
        len(gzip.compress(content, 6)) if kind.startswith("text/") or kind in TEXT else len(content)
    )


def fetched(browser, address, name):
    """Return the files that a first visit of a page fetches."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    paths = set()
    page.on("request", lambda request: paths.add(unquote(urlsplit(request.url).path)))
    page.goto(f"{address}/{name}")
    awake(page)
    page.evaluate(SCROLL)
    page.wait_for_load_state("networkidle")
    page.close()
    return {SITE / path.lstrip("/") for path in paths if (SITE / path.lstrip("/")).is_file()}


def table(visits):
    """Return what the visits weigh as Markdown."""
    each = {name: sum(map(weight, files)) for name, files in visits.items()}
    course = sum(map(weight, set.union(*visits.values())))
    heaviest = max(each, key=each.get)
    number = int(Path(heaviest).name[:2])
    lines = [
        f"The first visit of a page fetches at most {each[heaviest] / 1024:.0f} KiB "
        f"(chapter {number}). The start page and all {len(visits) - 1} chapters together are "
        f"{course / 1024:.0f} KiB, because they share fonts, styles and widgets.",
        "",
        "| readers of the whole course | fetched |",
        "|---|---|",
    ]
    for readers in READERS:
        size = readers * course
        words = f"{size / 1e9:.2g} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
        lines.append(f"| {readers:,} | {words} |")
    lines += [
        "",
        f"A server that may send {MONTH / 1e9:.0f} GB a month has enough for "
        f"{MONTH / course // 1000 * 1000:,.0f} readers a month.",
    ]
    return "\n".join(lines) + "\n"


def main():
    """Visit the pages, print the table and store it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names = [
        "index.html",
        *(f"chapters/{p.stem}.html" for p in sorted((ROOT / "chapters").glob("*.ipynb"))),
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        address = f"http://127.0.0.1:{server.server_port}"
        visits = {name: fetched(browser, address, name) for name in names}
        browser.close()
    server.shutdown()
    TABLE.write_text(table(visits), encoding="utf-8")
    print(table(visits), end="")


if __name__ == "__main__":
    main()
