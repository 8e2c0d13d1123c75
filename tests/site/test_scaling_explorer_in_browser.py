"""ScalingExplorer in a real browser, on a page of its own made as the site makes its pages."""

import functools
import json
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from bs4 import BeautifulSoup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnlib.widgets import ScalingExplorer
from attnlib.widgets.attention_explorer import DIVISORS
from attnlib.widgets.base import css
from tests.conftest import ROOT

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="widgets.css"><link rel="icon" href="data:,">
<script defer src="widget_host.js"></script><script defer src="ScalingExplorer.js"></script>
<style>body {{ max-width: 46rem; margin: 0 auto; padding: 0 0.5rem; background: var(--page);
color: var(--ink); }} .widget-slot {{ position: relative; }}</style></head>
<body><main><h1>A page</h1><div class="widget-slot" data-module="ScalingExplorer">
<div class="widget-picture">{picture}</div></div>
<p id="after">What comes after.</p></main></body>"""
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
SHIFTS = """self.shifts = []; new PerformanceObserver(list => list.getEntries().forEach(
  entry => shifts.push(entry.value))).observe({type: "layout-shift", buffered: true});"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A page with one slot, and what it refers to."""
    folder = tmp_path_factory.mktemp("pages")
    widget = ScalingExplorer()
    source = json.dumps(widget._esm)
    host = (ROOT / "_ext" / "static" / "widget_host.js").read_text(encoding="utf-8")
    for name, text in {
        "page.html": PAGE.format(picture=widget._picture()),
        "widgets.css": css(),
        "widget_host.js": host,
        "ScalingExplorer.js": f'registerWidget("ScalingExplorer", {source});',
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def addresses(folder):
    """The page's address over http and from disk."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {
        "http": f"http://127.0.0.1:{server.server_port}/page.html",
        "file": (folder / "page.html").as_uri(),
    }
    server.shutdown()


@pytest.fixture(params=["http", "file"])
def awake(request, page, addresses):
    """The page with its widget alive."""
    page.goto(addresses[request.param])
    page.wait_for_selector("html[data-widgets=ready]")
    return page


@pytest.fixture(scope="module")
def module(browser):
    """A blank page that has loaded the module as a notebook does, from a blob."""
    page = browser.new_page()
    page.evaluate(
        """async source => {
            const blob = new Blob([source], {type: "text/javascript"});
            self.widget = await import(URL.createObjectURL(blob));
        }""",
        ScalingExplorer._esm,
    )
    yield page
    page.close()


def traits(widget):
    return {name: getattr(widget, name) for name in widget._shown}


def shown(page):
    page.evaluate(FRAMES)
    names = ("d_k_value", "largest", "top_key", "entropy", "jacobian", "spread")
    return {name: page.locator(f"[data-part={name}]").text_content() for name in names}


def expected(widget):
    """What the still picture of the same state says."""
    picture = BeautifulSoup(widget._picture(), "html.parser")
    names = ("d_k_value", "largest", "top_key", "entropy", "jacobian", "spread")
    return {name: picture.select_one(f"[data-part={name}]").get_text() for name in names}


browser_test = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
explorers = st.builds(
    ScalingExplorer, d_k=st.integers(1, 1024), divisor=st.sampled_from(list(DIVISORS))
)


# ------------------------------------------------------------------------------- arithmetic


@browser_test
@given(explorer=explorers)
def test_it_computes_what_attnlib_computes(module, explorer):
    found = module.evaluate("state => widget.compute(state)", traits(explorer))
    np.testing.assert_allclose(found["scores"], explorer.scores.ravel(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["weights"], explorer.weights, rtol=0, atol=1e-9)
    assert found["spread"] == pytest.approx(explorer.spread, abs=1e-9)
    assert found["entropy"] == pytest.approx(explorer.entropy, abs=1e-9)
    assert found["jacobian"] == pytest.approx(explorer.jacobian_norm, rel=1e-6)


@browser_test
@given(explorer=explorers)
def test_it_draws_what_the_still_picture_draws(module, explorer):
    state = traits(explorer)
    found = module.evaluate("state => widget.marks(state, widget.compute(state))", state)
    wanted = explorer._marks()
    assert found.keys() == wanted.keys()
    number = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
    for part, attributes in wanted.items():
        assert found[part].keys() == attributes.keys()
        for name, value in attributes.items():
            assert number.split(found[part][name]) == number.split(value), part
            numbers = ([float(x) for x in number.findall(v)] for v in (found[part][name], value))
            np.testing.assert_allclose(*numbers, atol=0.11, err_msg=part)


@settings(browser_test, max_examples=15)
@given(explorer=explorers)
def test_copied_code_gives_the_numbers_on_the_screen(module, explorer):
    lines = module.evaluate("state => widget.numpyCode(state)", traits(explorer))
    names = {"print": lambda *_: None}
    with np.errstate(all="raise", under="ignore"):
        exec("\n".join(lines), names)
    np.testing.assert_allclose(names["scores"], explorer.scores, rtol=0, atol=1e-9)
    np.testing.assert_allclose(names["weights"], explorer.weights, rtol=0, atol=1e-9)
    assert names["entropy"] == pytest.approx(explorer.entropy, abs=1e-9)
    norm = np.linalg.norm(names["jacobian"])
    assert norm == pytest.approx(explorer.jacobian_norm, rel=1e-6, abs=1e-15)


# ---------------------------------------------------------------------------------- by hand


def test_keyboard_alone_moves_everything(awake):
    page = awake
    slider = page.get_by_role("slider", name="Query and key size")
    page.keyboard.press("Tab")
    assert slider.evaluate("slider => slider === document.activeElement")
    page.keyboard.press("End")
    assert shown(page) == expected(ScalingExplorer(d_k=1024))
    assert slider.get_attribute("aria-valuetext") == "d_k = 1024"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert shown(page) == expected(ScalingExplorer(d_k=1024, divisor="none"))
    page.keyboard.press("ArrowDown")
    assert shown(page) == expected(ScalingExplorer(d_k=1024, divisor="d_k"))
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert shown(page) == expected(ScalingExplorer(d_k=2, divisor="d_k"))
    page.get_by_role("button", name="Reset").press("Enter")
    assert shown(page) == expected(ScalingExplorer())


def test_curve_of_the_divisor_stands_out(awake):
    page = awake
    for divisor in DIVISORS:
        page.get_by_label("Divide scores by").select_option(divisor)
        page.evaluate(FRAMES)
        bold = page.locator("[data-part^=line_]").evaluate_all(
            "lines => lines.filter(line => line.getAttribute('stroke-width') > 2)"
            ".map(line => line.dataset.part)"
        )
        assert bold == [f"line_{divisor}"]


def test_a_size_between_the_stops_is_drawn(awake):
    page = awake
    page.evaluate("document.querySelector('.widget-slot').model.set('d_k', 100)")
    assert shown(page) == expected(ScalingExplorer(d_k=100))


def test_a_tap_on_the_slider_moves_it(browser, addresses):
    context = browser.new_context(viewport={"width": 360, "height": 800}, has_touch=True)
    page = context.new_page()
    page.goto(addresses["http"])
    page.wait_for_selector("html[data-widgets=ready]")
    box = page.get_by_role("slider").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    assert int(shown(page)["d_k_value"]) > 256
    context.close()


def test_table_for_the_ear_follows(awake):
    page = awake
    page.get_by_role("slider").press("End")
    page.wait_for_timeout(600)
    widget = ScalingExplorer(d_k=1024)
    cells = page.locator("[data-part=table] td").all_text_contents()
    assert cells[1::2] == [f"{weight:.4f}" for weight in widget.weights]
    np.testing.assert_allclose([float(x) for x in cells[::2]], widget.scores[35], atol=0.0051)
    label = page.locator("svg").get_attribute("aria-label")
    assert f"the largest {widget.weights.max():.2f}" in label


def test_copy_button_says_so(page, addresses):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(addresses["http"])
    page.wait_for_selector("html[data-widgets=ready]")
    page.get_by_role("button", name="Copy as NumPy").click()
    page.wait_for_timeout(100)
    assert re.fullmatch(r"Copied \d+ lines of NumPy\.", page.get_by_role("status").inner_text())
    names = {"print": lambda *_: None}
    exec(page.evaluate("navigator.clipboard.readText()"), names)
    assert names["weights"].max() == pytest.approx(ScalingExplorer().weights.max())


# ------------------------------------------------------------------------------- on the page


@pytest.mark.parametrize("width", [1280, 700, 360])
def test_nothing_jumps_and_nothing_hangs_over(browser, addresses, width):
    page = browser.new_page(viewport={"width": width, "height": 1100})
    page.add_init_script(SHIFTS)
    page.goto(addresses["http"])
    height = page.locator(".widget-picture, .abh").first.bounding_box()["height"]
    page.wait_for_selector("html[data-widgets=ready]")
    places = set()
    for divisor in DIVISORS:
        page.get_by_label("Divide scores by").select_option(divisor)
        for key in ("Home", "End", "PageDown", "ArrowLeft"):
            page.get_by_role("slider").press(key)
            page.evaluate(FRAMES)
            places.add(page.locator("#after").bounding_box()["y"])
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert len(places) == 1
    assert page.locator(".abh").bounding_box()["height"] == pytest.approx(height, abs=1)
    assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") == 0
    page.close()


def test_axe_finds_nothing_in_either_theme(browser, addresses):
    page = browser.new_page()
    page.goto(addresses["http"])
    page.wait_for_selector("html[data-widgets=ready]")
    page.evaluate(AXE_SCRIPT)
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    options = {"runOnly": tags, "rules": {"target-size": {"enabled": True}}}
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in ("light", "dark"):
            page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
            page.evaluate(FRAMES)
            rules = page.evaluate("options => axe.run(document, options)", options)["violations"]
            assert [(rule["id"], rule["nodes"][0]["html"]) for rule in rules] == []
    page.close()


def test_words_in_the_drawing_fit_it_and_each_other(browser, addresses):
    """At the far ends, where numbers are longest."""
    page = browser.new_page()
    page.goto(addresses["http"])
    page.wait_for_selector("html[data-widgets=ready]")
    for divisor in DIVISORS:
        page.get_by_label("Divide scores by").select_option(divisor)
        for key in ("Home", "End"):
            page.get_by_role("slider").press(key)
            page.evaluate(FRAMES)
            boxes = page.locator("svg text").evaluate_all(
                "texts => texts.map(t => t.getBBox()).map(b => [b.x, b.y, b.width, b.height])"
            )
            for at, (x, y, width, height) in enumerate(boxes):
                assert x >= 0 and x + width <= 360 and y >= 0 and y + height <= 476
                for x2, y2, width2, height2 in boxes[:at]:
                    apart = x >= x2 + width2 or x2 >= x + width
                    assert apart or y >= y2 + height2 - 4 or y2 >= y + height - 4
    page.close()


def test_picture_stands_without_javascript_and_when_the_module_fails(browser, addresses):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(addresses["file"])
    assert page.locator("svg").is_visible() and page.locator("input").is_disabled()
    context.close()
    page = browser.new_page()
    planted = "registerWidget('ScalingExplorer', 'throw new Error(\"planted\")')"
    page.route("**/ScalingExplorer.js", lambda route: route.fulfill(body=planted))
    page.goto(addresses["http"])
    page.wait_for_selector("html[data-widgets=ready]")
    assert "could not start" in page.get_by_role("alert").inner_text()
    assert page.locator("svg").is_visible()
    page.close()


def test_theme_changes_the_drawing(awake):
    seen = []
    for theme in ("light", "dark"):
        awake.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        awake.evaluate(FRAMES)
        seen.append(awake.locator("svg").screenshot())
    assert seen[0] != seen[1]


def test_size_of_the_module():
    """Beside the host it leaves room in the 60 KB that a page may spend on each widget."""
    host = (ROOT / "_ext" / "static" / "widget_host.js").stat().st_size
    assert host + len(json.dumps(ScalingExplorer._esm)) < 60_000
