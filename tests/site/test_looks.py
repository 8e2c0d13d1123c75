"""What each look at a page is there for is seen, once it is planted; before that nothing is."""

import pytest

from tests.site import looks
from tests.site.harness import AXE, axe, wake
from tests.site.pages import THEMES

FAULTS = [
    (looks.CODE, "<pre style='overflow-x: auto; width: 90px'>longer than its box is</pre>"),
    (looks.CUT, "<p style='overflow: hidden; width: 9px; text-wrap: nowrap'>longer than that</p>"),
    (looks.SENTENCES, "<div class='table-wrapper' style='overflow-x: auto; width: 90px'><table>"
     "<td style='text-wrap: nowrap'>a sentence of more than thirty letters</table></div>"),
    (looks.FIGURES, "<div class='figure-scroll' style='width: 90px'><p style='width: 9em'>-</div>"),
    (looks.CHOICES, "<select style='width: 60px'><option>longer than its box</option></select>"),
    (looks.SMALL, "<svg viewBox='0 0 9 9'><text y='5' style='font-size: .1px'>small</text></svg>"),
    (looks.SMALL, "<p style='font-size: 10px'>small</p>"),
    (looks.COVERED, "<div style='position: relative'><pre>a line of code, " + "long " * 99 +
     "</pre><button class='copy-button' style='top: 5px; opacity: 1'>Copy</button></div>"),
]  # fmt: skip
AFTER = "<button>after it</button>"
HOLD = """() => {
  document.querySelector(".widget-slot").onkeydown = event => event.preventDefault();
}"""
PLANT = "text => { document.querySelector('article').innerHTML = text }"


@pytest.fixture(scope="module")
def page(browser, site):
    """A page without a widget, on which faults are planted one after the other."""
    page = wake(browser.new_page(viewport={"width": 1280, "height": 900}), f"{site}/glossary.html")
    assert looks.cut(page, 360, 1024, 1280) == []
    yield page
    page.close()


@pytest.mark.parametrize(("look", "broken"), FAULTS)
def test_what_is_cut_covered_or_small_is_seen(page, look, broken):
    page.evaluate(PLANT, broken)
    assert len(page.evaluate(look)) == 1


@pytest.mark.parametrize(
    "broken",
    [
        "<button tabindex='1'>taken out of turn</button><button>in turn</button>",
        "<button style='outline: none; box-shadow: none'>no ring</button>",
        "<button>no way out</button>",
    ],
)
def test_what_tab_misses_is_seen(page, broken):
    page.evaluate(PLANT, f"<div class='widget-slot' data-widget='W'>{broken}</div>{AFTER}")
    if "way out" in broken:
        page.evaluate(HOLD)
    assert [name for name, *_ in looks.lost_by_tab(page, [0])] == ["W"]


@pytest.mark.parametrize(("theme", "ink"), zip(THEMES, ["#888", "#666"], strict=True))
def test_faint_words_are_seen(page, theme, ink):
    page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
    page.evaluate(PLANT, f"<svg width='99' height='20'><text y='15' fill='{ink}'>x</text></svg>")
    assert len(looks.faint(page)) == 1


def test_what_axe_finds_is_seen(page):
    page.evaluate(PLANT, "<p style='color: #999; background: #fff'>faint</p><img src='data:,'>")
    assert {"color-contrast", "image-alt"} <= {rule for rule, _ in axe(page, rules=AXE["runOnly"])}
