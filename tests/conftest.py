"""What several test files share: the repository on the path, one browser, the built site.

And the table at the end of a run that says how far attnlib and PyTorch are apart.
"""

import functools
import gzip
import io
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).resolve().parent.parent
pytest.register_assert_rewrite("tests.site.harness")  # its asserts say what they compare, too

SITE = ROOT / "_build" / "html"
CHROMIUM_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# On two busy cores Chromium may lose a drawing task when its garbage collector takes the threads:
# no frame is drawn any more, and a test that waits for one waits for ever. So it gets none.
STEADY = [*CHROMIUM_FLAGS, "--js-flags=--single-threaded-gc"]
# They take as long as a third of all other tests, and share no fixture but the browser.
VISITS = "tests/site/test_visits.py"
# To import it takes longer than most of these tests, so one worker does.
OF_TRANSFORMERS = [f"tests/test_{name}.py" for name in ("causal_lm", "inspection", "models")]


class Schedule(LoadFileScheduling):
    """Give a worker a whole file, so that its fixtures are set up once, but each visit alone."""

    def _split_scope(self, nodeid):
        scope = super()._split_scope(nodeid)
        if scope in OF_TRANSFORMERS:
            return OF_TRANSFORMERS[0]
        return nodeid if scope == VISITS else scope


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Replace what `--dist loadfile` means."""
    return Schedule(config, log) if config.option.dist == "loadfile" else None


def pytest_collection_modifyitems(items):
    """Put the visits last, so that all workers end together, and let a hung browser try again.

    It tries on a new page, and only if it hung: a test that fails has failed.
    """
    items.sort(key=lambda item: item.nodeid.startswith(VISITS))
    again = pytest.mark.flaky(reruns=1, only_rerun="from pytest-timeout")
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(again)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item, settings):
    """Keep what limits the test."""
    item.limit = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Give the second run a limit of its own: pytest-timeout counts from the first one."""
    if getattr(item, "execution_count", 1) > 1:
        item.config.hook.pytest_timeout_set_timer(item=item, settings=item.limit)


@pytest.fixture(scope="session")
def browser():
    """The machine's own Chromium, Chrome or Edge; playwright never downloads one."""
    from playwright.sync_api import sync_playwright

    from tools.install import find_browser

    path = find_browser()
    assert path, "no Chromium, Chrome or Edge: run `make browser` or set CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=STEADY)
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
    disable_nagle_algorithm = True  # or a body waits until the browser has confirmed its headers

    def log_message(self, *args):
        pass


@functools.cache
def _zipped(text):
    """The compressed text: a host compresses a file once."""
    return gzip.compress(text, compresslevel=6)


class Zipped(_Quiet):
    """Text comes compressed, and connections stay open, as from any static host."""

    protocol_version = "HTTP/1.1"

    def text(self, path):
        """Return the text of a file."""
        return path.read_bytes()

    def send_head(self):
        """Answer with the compressed text, or as usual with what is no text."""
        path = Path(self.translate_path(self.path))
        if path.suffix not in {".html", ".css", ".js", ".svg"} or not path.is_file():
            return super().send_head()
        body = _zipped(self.text(path))
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path.name))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)


class Slow(_Quiet):
    """Pages come as over a poor connection, and are drawn as far as they are there."""

    def copyfile(self, source, outputfile):
        """Send a piece of a page, wait, send the next; a stylesheet comes whole."""
        for piece in iter(lambda: source.read(2_000), b""):
            outputfile.write(piece)
            time.sleep(0.02 if self.path.endswith(".html") else 0)


class _Server(ThreadingHTTPServer):
    request_queue_size = 64  # of five, the sixth that a browser opens is heard a second later

    def handle_error(self, request, client_address):
        """Say what went wrong; a browser that leaves while a file comes is no fault."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serve(folder, handler=_Quiet):
    """Give the address of a folder, served over http as any static host would."""
    answer = functools.partial(handler, directory=folder)
    with _Server(("127.0.0.1", 0), answer) as server:  # its socket is closed at the end
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def site():
    """The address of the built site."""
    assert (SITE / "index.html").exists(), "no built site: run `make book` first"
    with serve(SITE, Zipped) as address:
        yield address


@pytest.fixture
def parity(request):
    """Hold a result against PyTorch's, and keep the difference for the table at the end."""

    def compare(module, mode, got, expected, most=None):
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        # In parts of the largest number: a sum that cancels to almost 0 has no digits to compare.
        difference = float(np.abs(got - expected).max() / np.abs(expected).max())
        found = [module, got.dtype.name, mode, difference]
        request.node.user_properties.append(("parity", found))
        assert difference <= (most or {"float32": 1e-6, "float64": 1e-12}[got.dtype.name])

    return compare


def pytest_terminal_summary(terminalreporter):
    """Print the largest difference of each module and dtype in each mode."""
    modes, worst = [], defaultdict(dict)
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "parity":
                module, dtype, mode, difference = value
                figures = worst[module, dtype]
                figures[mode] = max(difference, figures.get(mode, 0))
                modes += [] if mode in modes else [mode]
    if worst:
        terminalreporter.section("Largest difference from PyTorch, in parts of the largest number")
        terminalreporter.line(" " * 44 + "".join(f"{mode:>10}" for mode in modes))
        for (module, dtype), figures in sorted(worst.items()):
            cells = (f"{figures[mode]:.1e}" if mode in figures else "" for mode in modes)
            terminalreporter.line(
                f"{module:35} {dtype:8}" + "".join(f"{cell:>10}" for cell in cells)
            )
