"""LayerExplorer in a real browser, on a page of its own made as the site makes its pages."""

import functools
import itertools
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

from attnlib.widgets import LayerExplorer
from attnlib.widgets.base import css
from tests.conftest import ROOT

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="widgets.css"><link rel="icon" href="data:,">
<script defer src="widget_host.js"></script><script defer src="LayerExplorer.js"></script>
<style>body {{ max-width: 46rem; margin: 0 auto; padding: 0 0.5rem; background: var(--page);
color: var(--ink); }} .widget-slot {{ position: relative; }}</style></head>
<body><main><h1>A page</h1><div class="widget-slot" data-module="LayerExplorer">
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
    widget = LayerExplorer()
    source = json.dumps(widget._esm)
    host = (ROOT / "_ext" / "static" / "widget_host.js").read_text(encoding="utf-8")
    for name, text in {
        "page.html": PAGE.format(picture=widget._picture()),
        "widgets.css": css(),
        "widget_host.js": host,
        "LayerExplorer.js": f'registerWidget("LayerExplorer", {source});',
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
        LayerExplorer._esm,
    )
    yield page
    page.close()


def traits(widget):
    return {name: getattr(widget, name) for name in widget._shown}


PARTS = ("depth_value", "distance", "norm_value", "verdict", "title", "scale", "seed")


def shown(page):
    page.evaluate(FRAMES)
    return {name: page.locator(f"[data-part={name}]").text_content() for name in PARTS}


def expected(**state):
    """What the still picture of that state says."""
    picture = BeautifulSoup(LayerExplorer(**state)._picture(), "html.parser")
    return {name: picture.select_one(f"[data-part={name}]").get_text() for name in PARTS}


browser_test = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
explorers = st.builds(
    LayerExplorer,
    residual=st.booleans(),
    norm=st.sampled_from(["post", "pre", "none"]),
    feed_forward=st.booleans(),
    depth=st.integers(1, 24),
    seed=st.integers(0, 999),
)
SWITCHES = list(itertools.product([True, False], ["post", "pre", "none"], [True, False]))


def assert_same(found, explorer):
    """The states layer by layer, each within 1e-6 of its own largest entry, however small."""
    for got, wanted in zip(found["states"], explorer.states, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(found["cosines"], explorer.cosines, rtol=0, atol=1e-9)
    for name, curve in explorer.curves.items():
        # Below 1e-13 a distance is what rounding left, which no two programs share.
        np.testing.assert_allclose(
            found["curves"][name], curve, rtol=1e-6, atol=1e-13 if "distance" in name else 0
        )


# ------------------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize("residual, norm, feed_forward", SWITCHES)
def test_all_switches_to_the_last_layer_as_attnlib(module, residual, norm, feed_forward):
    for seed in (0, 1, 499, 999):
        explorer = LayerExplorer(
            residual=residual, norm=norm, feed_forward=feed_forward, depth=24, seed=seed
        )
        assert_same(module.evaluate("state => widget.compute(state)", traits(explorer)), explorer)


@browser_test
@given(explorer=explorers)
def test_it_computes_what_attnlib_computes(module, explorer):
    assert_same(module.evaluate("state => widget.compute(state)", traits(explorer)), explorer)


@browser_test
@given(explorer=explorers)
def test_it_says_and_draws_what_the_still_picture_does(module, explorer):
    state = traits(explorer)
    found = module.evaluate(
        """state => {
            const now = widget.compute(state);
            return [widget.said(state, now), widget.tables(state, now), widget.marks(state, now)];
        }""",
        state,
    )
    said, tables, marks = found
    assert said == explorer._said()
    assert tables == {name: cells for name, (*_, cells) in explorer._tables().items()}
    wanted = explorer._marks()
    assert marks.keys() == wanted.keys()
    number = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
    for part, attributes in wanted.items():
        assert marks[part].keys() == attributes.keys()
        for name, value in attributes.items():
            assert number.split(marks[part][name]) == number.split(value), part
            numbers = ([float(x) for x in number.findall(v)] for v in (marks[part][name], value))
            np.testing.assert_allclose(*numbers, atol=0.11, err_msg=part)


@settings(browser_test, max_examples=15)
@given(explorer=explorers)
def test_copied_code_gives_the_numbers_on_the_screen(module, explorer):
    lines = module.evaluate("state => widget.numpyCode(state)", traits(explorer))
    names = {"print": lambda *_: None}
    exec("\n".join(lines), names)
    assert names["states"].shape == explorer.states.shape
    for got, wanted in zip(names["states"], explorer.states, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(names["distance"], explorer.distance, rtol=1e-6, atol=1e-13)
    np.testing.assert_allclose(names["norms"], explorer.norms, rtol=1e-6)


# ---------------------------------------------------------------------------------- by hand


def test_keyboard_alone_moves_everything(awake):
    page = awake
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert shown(page) == expected(residual=False)
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert shown(page) == expected(residual=False, depth=24)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert shown(page) == expected(residual=False, depth=2)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert shown(page) == expected(residual=False, depth=2, norm="pre")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    off = {"residual": False, "depth": 2, "norm": "none", "feed_forward": False}
    assert shown(page) == expected(**off)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert shown(page) == expected(**off, seed=1)
    page.get_by_role("button", name="Reset").press("Enter")
    assert shown(page) == expected()
    assert page.get_by_role("checkbox", name="Residual").is_checked()
    assert page.get_by_label("Layer norm").input_value() == "post"


def test_the_mouse_moves_everything(awake):
    page = awake
    page.get_by_text("Residual: each sublayer").click()
    page.get_by_label("Layer norm").select_option("none")
    page.get_by_text("Feed-forward", exact=True).click()
    box = page.get_by_role("slider", name="Layers").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 5, box["y"] + box["height"] / 2)
    page.get_by_role("button", name="New weights").click()
    page.get_by_role("button", name="New weights").click()
    off = {"residual": False, "depth": 24, "norm": "none", "feed_forward": False}
    assert shown(page) == expected(**off, seed=2)
    page.get_by_role("button", name="Reset").click()
    assert shown(page) == expected()


def test_a_tap_throws_the_switch(browser, addresses):
    context = browser.new_context(viewport={"width": 360, "height": 800}, has_touch=True)
    page = context.new_page()
    page.goto(addresses["http"])
    page.wait_for_selector("html[data-widgets=ready]")
    page.get_by_role("checkbox", name="Residual").tap()
    assert shown(page) == expected(residual=False)
    context.close()


def test_the_last_weights_are_followed_by_the_first(awake):
    page = awake
    page.evaluate("document.querySelector('.widget-slot').model.set('seed', 999)")
    assert shown(page) == expected(seed=999)
    page.get_by_role("button", name="New weights").click()
    assert shown(page) == expected(seed=0)


def test_tables_for_the_ear_follow(awake):
    page = awake
    page.get_by_role("checkbox", name="Residual").uncheck()
    page.get_by_role("slider").press("Home")
    page.wait_for_timeout(600)
    for name, (*_, cells) in LayerExplorer(residual=False, depth=1)._tables().items():
        found = page.locator(f"[data-part={name}_table] tr + tr td").all_text_contents()
        assert found == [text for row in cells for text in row]
    label = page.locator("svg").get_attribute("aria-label")
    assert "Distance below 0.001 at layer 3" in label


def test_copy_button_says_so(page, addresses):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(addresses["http"])
    page.wait_for_selector("html[data-widgets=ready]")
    page.get_by_role("button", name="Copy as NumPy").click()
    page.wait_for_timeout(100)
    assert re.fullmatch(r"Copied \d+ lines of NumPy\.", page.get_by_role("status").inner_text())
    names = {"print": lambda *_: None}
    exec(page.evaluate("navigator.clipboard.readText()"), names)
    assert names["norms"][-1] == pytest.approx(LayerExplorer().norms[-1])


# ------------------------------------------------------------------------------- on the page


def throw_all(page):
    """Go through every setting of the switches at both ends of the depth."""
    for residual, norm, feed_forward in SWITCHES:
        page.get_by_role("checkbox", name="Residual").set_checked(residual)
        page.get_by_label("Layer norm").select_option(norm)
        page.get_by_role("checkbox", name="Feed-forward").set_checked(feed_forward)
        for key in ("Home", "End"):
            page.get_by_role("slider").press(key)
            page.evaluate(FRAMES)
            yield


@pytest.mark.parametrize("width", [1280, 700, 360])
def test_nothing_jumps_and_nothing_hangs_over(browser, addresses, width):
    page = browser.new_page(viewport={"width": width, "height": 1100})
    page.add_init_script(SHIFTS)
    page.goto(addresses["http"])
    height = page.locator(".widget-picture, .abh").first.bounding_box()["height"]
    page.wait_for_selector("html[data-widgets=ready]")
    places = set()
    for _ in throw_all(page):
        places.add(page.locator("#after").bounding_box()["y"])
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert len(places) == 1
    assert page.locator(".abh").bounding_box()["height"] == pytest.approx(height, abs=1)
    assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") == 0
    page.close()


def test_words_in_the_drawing_fit_it_and_each_other(browser, addresses):
    page = browser.new_page()
    page.goto(addresses["http"])
    page.wait_for_selector("html[data-widgets=ready]")
    for _ in throw_all(page):
        boxes = page.locator("svg text").evaluate_all(
            "texts => texts.map(t => t.getBBox()).map(b => [b.x, b.y, b.width, b.height])"
        )
        for at, (x, y, width, height) in enumerate(boxes):
            assert x >= 0 and x + width <= 360 and y >= 0 and y + height <= 512
            for x2, y2, width2, height2 in boxes[:at]:
                apart = x >= x2 + width2 or x2 >= x + width
                assert apart or y >= y2 + height2 - 4 or y2 >= y + height - 4
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


def test_picture_stands_without_javascript_and_when_the_module_fails(browser, addresses):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(addresses["file"])
    assert page.locator("svg").is_visible() and page.locator("input").first.is_disabled()
    context.close()
    page = browser.new_page()
    planted = "registerWidget('LayerExplorer', 'throw new Error(\"planted\")')"
    page.route("**/LayerExplorer.js", lambda route: route.fulfill(body=planted))
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
    assert host + len(json.dumps(LayerExplorer._esm)) < 60_000
