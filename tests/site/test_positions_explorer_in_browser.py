"""PositionsExplorer in a real browser, on a page of its own made as the site makes its pages."""

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

from attnlib.widgets import PositionsExplorer
from attnlib.widgets import positions_explorer as python
from attnlib.widgets.base import css
from tests.conftest import ROOT

FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
SHIFTS = """self.shifts = []; new PerformanceObserver(list => list.getEntries().forEach(
  entry => shifts.push(entry.value))).observe({type: "layout-shift", buffered: true});"""
SPOKEN = (
    "before itself after before_at itself_at after_at asks verdict encoding_title encoding_note "
    "similarity_title similarity_note scores_title scores_note position_value d_model_value "
    "base_value head_value scores_here level low high"
).split()

browser_test = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
explorers = st.builds(
    PositionsExplorer,
    kind=st.sampled_from(list(python.KINDS)),
    position=st.integers(0, 63),
    d_model=st.integers(1, 64).map(lambda pairs: 2 * pairs),
    base=st.floats(2, 1e6),
    head=st.integers(0, 7),
)


def traits(widget):
    return {name: getattr(widget, name) for name in widget._shown}


@pytest.fixture(scope="module")
def module(browser):
    """A blank page that has loaded the module as a notebook does, from a blob."""
    page = browser.new_page()
    page.evaluate(
        """async source => {
            const blob = new Blob([source], {type: "text/javascript"});
            self.widget = await import(URL.createObjectURL(blob));
        }""",
        PositionsExplorer._esm,
    )
    yield page
    page.close()


# ------------------------------------------------------------------------------- arithmetic


@browser_test
@given(explorer=explorers)
def test_it_computes_what_attnlib_computes(module, explorer):
    found = module.evaluate("state => widget.compute(state)", traits(explorer))
    for name in ("encoding", "word", "scores", "similarity"):
        wanted = getattr(explorer, name)
        np.testing.assert_allclose(found[name], wanted, rtol=0, atol=1e-9, err_msg=name)
    heads = [python._diagonals(bias) for bias in explorer.bias]
    np.testing.assert_allclose(found["biases"], heads, rtol=0, atol=1e-12)


NUMBER = re.compile(r"−?-?\d+(?:\.\d+)?")


def numbers(text):
    return [float(number.replace("−", "-")) for number in NUMBER.findall(text)]


@browser_test
@given(explorer=explorers)
def test_it_says_what_the_still_picture_says(module, explorer):
    state = traits(explorer)
    found = module.evaluate("state => widget.said(state, widget.compute(state))", state)
    wanted = explorer._said()
    assert found.keys() == wanted.keys()
    for part, text in wanted.items():
        assert NUMBER.split(found[part]) == NUMBER.split(text), part
        np.testing.assert_allclose(numbers(found[part]), numbers(text), rtol=0.01, atol=0.011)


def raster(marks, name, columns, rows):
    """The steps of a heatmap, painted from its paths."""
    steps = np.zeros((rows, columns), int)
    for step in range(1, python.SHADES + 1):
        for run in re.findall(r"M(\d+) (\d+)h(\d+)", marks[f"{name}_{step}"]["d"]):
            x, y, length = map(int, run)
            assert not steps[y, x : x + length].any()
            steps[y, x : x + length] = step
    return steps


@browser_test
@given(explorer=explorers)
def test_it_draws_what_the_still_picture_draws(module, explorer):
    state = traits(explorer)
    found = module.evaluate("state => widget.marks(state, widget.compute(state))", state)
    wanted = explorer._marks()
    assert found.keys() == wanted.keys()
    for part, attributes in wanted.items():
        assert found[part].keys() == attributes.keys()
        if re.fullmatch(r"(encoding|scores)_\d+", part):
            continue
        for name, value in attributes.items():
            assert NUMBER.split(found[part][name]) == NUMBER.split(value), part
            mine, theirs = numbers(found[part][name]), numbers(value)
            np.testing.assert_allclose(mine, theirs, atol=0.11, err_msg=part)
    for name, shape in {"scores": (64, 64), "encoding": (explorer.d_model, 64)}.items():
        if name == "encoding" and explorer.kind in ("alibi", "relative"):
            shape = (64, 8)
        mine, theirs = raster(found, name, *shape), raster(wanted, name, *shape)
        assert abs(mine - theirs).max() <= 1  # on the edge of a step either will do
        assert (mine != theirs).mean() < 0.02


@pytest.mark.parametrize("kind", python.KINDS)
def test_heatmap_of_the_scores_goes_from_pale_to_strong(module, kind):
    explorer = PositionsExplorer(kind=kind, position=17, head=3)
    steps = raster(explorer._marks(), "scores", 64, 64)
    if kind == "none":
        assert (steps == python.SHADES / 2).all()
    else:
        low, high = explorer.scores.min(), explorer.scores.max()
        scaled = (explorer.scores - low) / (high - low)
        assert abs(steps / python.SHADES - scaled).max() <= 0.5 / python.SHADES + 1e-9


@settings(browser_test, max_examples=25)
@given(explorer=explorers)
def test_copied_code_gives_the_numbers_on_the_screen(module, explorer):
    lines = module.evaluate("state => widget.numpyCode(state)", traits(explorer))
    names = {"print": lambda *_: None}
    with np.errstate(all="raise", under="ignore"):
        exec("\n".join(lines), names)
    np.testing.assert_allclose(names["scores"], explorer.scores, rtol=0, atol=1e-9)
    assert names["position"] == explorer.position
    if explorer.kind == "sinusoidal":
        np.testing.assert_allclose(names["encoding"], explorer.encoding, rtol=0, atol=1e-9)
    if explorer.kind in ("alibi", "relative"):
        np.testing.assert_allclose(names["bias"], explorer.bias, rtol=0, atol=1e-12)


# ------------------------------------------------------------------------ on a page of its own


def page_of(*explorers):
    """A page with a slot for each, made as _ext/widget_slot.py makes them."""
    slots = "".join(
        f'<section aria-label="Example {number}"><div class="widget-slot" '
        f'data-module="PositionsExplorer"><div class="widget-picture">'
        f"{explorer._repr_mimebundle_()[0]['text/html']}</div></div></section>"
        for number, explorer in enumerate(explorers, 1)
    )
    host = (ROOT / "_ext" / "static" / "widget_host.js").read_text(encoding="utf-8")
    register = f'registerWidget("PositionsExplorer", {json.dumps(PositionsExplorer._esm)});'
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Positions</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<style>{css()} body {{ margin: 0; background: var(--page); color: var(--ink) }}
main {{ max-width: 46rem; margin: auto; padding: 0 0.5rem }} .widget-slot {{ position: relative }}
</style></head><body data-theme="light"><main><h1>Positions</h1>{slots}
<p id="after">After the widget.</p></main><script>{host}{register}</script></body></html>"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(params=["http", "file"])
def awake(request, page, tmp_path):
    """The page with its widget alive, over http and from disk."""
    path = tmp_path / "page.html"
    path.write_text(page_of(PositionsExplorer()), encoding="utf-8")
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    over_http = f"http://127.0.0.1:{server.server_port}/page.html"
    page.goto(over_http if request.param == "http" else path.as_uri())
    page.wait_for_selector("html[data-widgets=ready]")
    yield page
    server.shutdown()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page with explorers, of a width."""
    pages = []

    def go(*explorers, width=1280, **context):
        path = tmp_path / "page.html"
        path.write_text(page_of(*(explorers or [PositionsExplorer()])), encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 1100}, **context)
        pages.append(page)
        page.add_init_script(SHIFTS)
        page.goto(path.as_uri())
        if context.get("java_script_enabled", True):
            page.wait_for_selector("html[data-widgets=ready]")
        return page

    yield go
    for page in pages:
        page.close()


def agrees(page, explorer, at=0):
    """What is on the screen is the still picture of this state."""
    page.evaluate(FRAMES)
    slot = page.locator(".widget-slot").nth(at)
    picture = BeautifulSoup(explorer._picture(), "html.parser")
    for part in SPOKEN:
        shown = slot.locator(f"[data-part={part}]").text_content()
        assert shown == picture.select_one(f"[data-part={part}]").get_text(), part
    pressed = slot.locator(".kinds [aria-pressed=true]").all_text_contents()
    assert pressed == [python.KINDS[explorer.kind]]
    sliders = slot.locator("input").evaluate_all(
        "all => Object.fromEntries(all.map(i => [i.name, [i.value, i.disabled]]))"
    )
    for control in picture.find_all("input"):
        wanted = [control["value"], control.has_attr("disabled")]
        assert sliders[control["name"]] == wanted, control["name"]


def tab_to(page, name):
    for _ in range(15):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == name:
            return
    pytest.fail(f"Tab does not reach {name}")


def test_by_keyboard_alone_every_kind_and_every_slider(awake):
    page = awake
    agrees(page, PositionsExplorer())
    tab_to(page, "none")
    page.keyboard.press("Enter")
    agrees(page, PositionsExplorer(kind="none"))
    scores = [page.locator(f"[data-part={part}]").text_content() for part in ("before", "after")]
    assert scores == ["1.00", "1.00"]
    tab_to(page, "rotary")
    page.keyboard.press("Space")
    tab_to(page, "position")
    page.keyboard.press("End")
    agrees(page, PositionsExplorer(kind="rotary", position=63))
    tab_to(page, "d_model")
    page.keyboard.press("ArrowRight")
    agrees(page, PositionsExplorer(kind="rotary", position=63, d_model=18))
    tab_to(page, "base")
    page.keyboard.press("ArrowLeft")
    agrees(page, PositionsExplorer(kind="rotary", position=63, d_model=18, base=5000))
    page.keyboard.press("Home")
    agrees(page, PositionsExplorer(kind="rotary", position=63, d_model=18, base=2))
    page.keyboard.press("End")
    agrees(page, PositionsExplorer(kind="rotary", position=63, d_model=18, base=1_000_000))
    assert page.locator("[name=base]").get_attribute("aria-valuetext") == "1000000"
    for _ in range(4):
        page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.name") == "alibi"
    page.keyboard.press("Enter")
    tab_to(page, "head")  # the two sliders that ALiBi does not use are left out
    page.keyboard.press("ArrowRight")
    state = {"position": 63, "d_model": 18, "base": 1_000_000, "head": 1}
    agrees(page, PositionsExplorer(kind="alibi", **state))
    tab_to(page, "reset")
    page.keyboard.press("Enter")
    agrees(page, PositionsExplorer())


def test_by_mouse(awake):
    page = awake
    for kind, label in python.KINDS.items():
        page.get_by_role("button", name=label, exact=True).click()
        agrees(page, PositionsExplorer(kind=kind))
    box = page.locator("[name=position]").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    position = int(page.locator("[name=position]").input_value())
    assert 25 <= position <= 38
    agrees(page, PositionsExplorer(kind="relative", position=position))
    page.get_by_role("button", name="Reset").click()
    agrees(page, PositionsExplorer())


def test_a_finger_moves_it(opened):
    page = opened(width=360, has_touch=True)
    page.get_by_role("button", name="ALiBi").tap()
    box = page.locator("[name=position]").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    position = int(page.locator("[name=position]").input_value())
    assert position > 50
    agrees(page, PositionsExplorer(kind="alibi", position=position))


def test_a_kernel_may_set_a_base_between_the_stops(awake):
    page = awake
    page.evaluate("document.querySelector('.widget-slot').model.set('base', 321.5)")
    agrees(page, PositionsExplorer(base=321.5))


def test_two_on_a_page_keep_apart(opened):
    page = opened(PositionsExplorer(), PositionsExplorer(kind="alibi", head=1))
    page.get_by_role("button", name="None").first.click()
    agrees(page, PositionsExplorer(kind="none"), at=0)
    agrees(page, PositionsExplorer(kind="alibi", head=1), at=1)


def test_table_for_the_ear_follows(awake):
    page = awake
    page.get_by_role("button", name="Relative").click()
    page.locator("[name=position]").press("End")
    page.wait_for_timeout(600)
    picture = BeautifulSoup(
        PositionsExplorer(kind="relative", position=63)._picture(), "html.parser"
    )
    cells = page.locator("[data-part=table] td").all_text_contents()
    assert cells == [cell.get_text() for cell in picture.table.find_all("td")]
    spoken = page.locator("[data-part=spoken]").text_content()
    assert spoken.startswith("Encoding of position 63: 0.00, ")


def test_copy_button_says_so(awake):
    page = awake
    if page.url.startswith("http"):
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as NumPy").click()
    page.wait_for_timeout(100)
    assert re.fullmatch(r"Copied \d+ lines of NumPy\.", page.get_by_role("status").inner_text())
    if page.url.startswith("http"):
        names = {"print": lambda *_: None}
        exec(page.evaluate("navigator.clipboard.readText()"), names)
        np.testing.assert_allclose(names["scores"], PositionsExplorer().scores, atol=1e-9)


@pytest.mark.parametrize("width", [1280, 700, 520, 360])
def test_nothing_jumps_and_nothing_hangs_over(opened, width):
    page = opened(width=width)
    places = set()
    for label in python.KINDS.values():
        page.get_by_role("button", name=label, exact=True).click()
        for name in ("position", "d_model", "base", "head"):
            if page.locator(f"[name={name}]").is_disabled():
                continue
            for key in ("Home", "End", "PageDown", "ArrowLeft"):
                page.locator(f"[name={name}]").press(key)
                page.evaluate(FRAMES)
                places.add(page.evaluate("document.querySelector('#after').offsetTop"))
                assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert len(places) == 1
    assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") == 0


def test_picture_has_the_size_and_words_of_the_live_widget(opened):
    for width in (1280, 360):
        seen = []
        for javascript in (False, True):
            page = opened(width=width, java_script_enabled=javascript)
            slot = page.locator(".widget-slot")
            seen.append((slot.bounding_box()["height"], slot.inner_text()))
        assert seen[0] == seen[1]


def test_axe_finds_nothing_in_either_theme(opened):
    page = opened()
    page.evaluate(AXE_SCRIPT)
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    options = {"runOnly": tags, "rules": {"target-size": {"enabled": True}}}
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in ("light", "dark"):
            page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
            for label in python.KINDS.values():
                page.get_by_role("button", name=label, exact=True).click()
                page.evaluate(FRAMES)
                rules = page.evaluate("options => axe.run(document, options)", options)
                found = [(r["id"], r["nodes"][0]["html"]) for r in rules["violations"]]
                assert found == []


def test_words_in_the_drawings_fit_them_and_each_other(opened):
    page = opened()
    for label in python.KINDS.values():
        page.get_by_role("button", name=label, exact=True).click()
        for key in ("Home", "End", "PageDown"):
            page.locator("[name=position]").press(key)
            page.evaluate(FRAMES)
            for sheet in page.locator("svg").all():
                boxes = sheet.evaluate(
                    """svg => { const at = svg.getBoundingClientRect(), unit = at.width / 240;
                    return Array.from(svg.querySelectorAll("text")).filter(t => t.textContent)
                      .map(t => t.getBoundingClientRect()).map(b => [(b.x - at.x) / unit,
                        (b.y - at.y) / unit, b.width / unit, b.height / unit]); }"""
                )
                for at, (x, y, width, height) in enumerate(boxes):
                    assert x >= 0 and x + width <= 240.5 and y >= -2 and y + height <= 240
                    for x2, y2, width2, height2 in boxes[:at]:
                        apart = x >= x2 + width2 - 1 or x2 >= x + width - 1
                        assert apart or y >= y2 + height2 - 4 or y2 >= y + height - 4


def test_theme_changes_the_drawing(awake):
    seen = []
    for theme in ("light", "dark"):
        awake.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        awake.evaluate(FRAMES)
        seen.append(awake.locator("svg").last.screenshot())
    assert seen[0] != seen[1]


def test_picture_stays_when_the_module_fails(browser, tmp_path):
    path = tmp_path / "page.html"
    broken = page_of(PositionsExplorer()).replace("export default", "throw new Error('planted');")
    path.write_text(broken, encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-widgets=ready]")
    assert "could not start" in page.get_by_role("alert").inner_text()
    assert page.locator("svg").first.is_visible()
    assert page.locator("[name=position]").is_disabled()
    page.close()


def test_size_of_the_module():
    """Beside the host it leaves room in the 60 KB that a page may spend on each widget."""
    host = (ROOT / "_ext" / "static" / "widget_host.js").stat().st_size
    assert host + len(json.dumps(PositionsExplorer._esm)) < 60_000
