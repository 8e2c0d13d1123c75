"""What several test files share: the repository on the path, one browser, the built site."""

import functools
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SITE = ROOT / "_build" / "html"
CHROMIUM_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.fixture(scope="session")
def browser():
    """The machine's own Chromium, Chrome or Edge; playwright never downloads one."""
    from playwright.sync_api import sync_playwright

    from tools.install import find_browser

    path = find_browser()
    assert path, "no Chromium, Chrome or Edge: run `make browser` or set CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A new page whose console must stay silent and which must not leave the test's own site."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.noise = []
    page.on("console", lambda message: page.noise.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: page.noise.append(f"error: {error}"))
    yield page
    context.close()
    assert page.noise == []


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def site():
    """The address of the built site, served over http as any static host would."""
    assert (SITE / "index.html").exists(), "no built site: run `make book` first"
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
