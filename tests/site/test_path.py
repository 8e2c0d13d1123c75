"""A reader's path on a phone: from the landing page by the "next" links to the last chapter."""

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from tests.conftest import ROOT
from tests.site.pages import FRAME, OVERHANG, WATCH

CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))
# The first control of a widget, used as a finger does: a slider at its far end, a list by its
# last option, a box by a tap, a button by a tap.
FIRST_CONTROL = ":is(input, select, button):visible:enabled"


def use(page, slot):
    """Use the first control of a widget, and say what it was."""
    if not slot.locator(FIRST_CONTROL).count():
        return "nothing to use yet"  # Progress, before anything was answered
    control = slot.locator(FIRST_CONTROL).first
    kind = control.evaluate("control => control.type ?? control.localName")
    control.scroll_into_view_if_needed()
    if kind == "range":
        box = control.bounding_box()
        page.touchscreen.tap(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    elif kind == "select-one":
        last = control.locator("option").last.get_attribute("value")
        control.select_option(last)
    elif kind == "text":
        control.tap()
        control.press("End")
        control.type("1")
        control.press("Tab")
    else:
        control.tap()
    page.evaluate(FRAME)
    return kind


def test_every_widget_of_every_chapter_is_met_and_used_on_the_way(browser, site):
    """Of those that a chapter has several of, the first stands for all."""
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    page = context.new_page()
    noise = []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.add_init_script(WATCH)
    page.goto(f"{site}/index.html")
    visited, used = [], {}
    while True:
        name = PurePosixPath(urlsplit(page.url).path).stem
        modules = page.locator(".widget-slot").evaluate_all(
            "slots => [...new Set(slots.map(slot => slot.dataset.widget))]"
        )
        for module in modules:
            slot = page.locator(f".widget-slot[data-widget={module}]").first
            slot.scroll_into_view_if_needed()
            slot.locator("fieldset:enabled").first.wait_for(state="attached")
            used.setdefault(module, []).append(use(page, slot))
            assert page.evaluate(OVERHANG) <= 0, (name, module)
        assert page.evaluate("seen.violations") == [], name
        visited.append(name)
        if name == CHAPTERS[-1]:
            break
        with page.expect_event("load"):  # a setting that goes into the address navigates, too
            page.locator("a.next-page").tap()
    context.close()
    assert visited == ["index", *CHAPTERS]
    assert noise == []
    instruments = {"AttentionExplorer", "Flow", "ScalingExplorer", "MaskPainter"}
    instruments |= {"HeadsViewer", "PositionsExplorer", "LayerExplorer", "CostCalculator"}
    # HeadsViewer is for a reader's own weights, in a notebook of theirs.
    assert (instruments | {"Predict", "Quiz", "Progress"}) - {"HeadsViewer"} <= used.keys()
