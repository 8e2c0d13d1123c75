"""Linked reading: a symbol lights up wherever it stands, by pointer, key and touch."""

import functools
import re

import numpy as np
import pytest

from _ext.symbols.page import NUMPY, SYMBOLS
from tests.site.harness import SHIFTS, awake, axe_findings, themes
from tests.site.pages import CHAPTER_2, CHAPTER_3, FRAME, address
from tests.test_palette import contrast

BOX = ".glimpse.symbol:popover-open"
MENU = ".glimpse.equation:popover-open"
ATTENTION = "#equation-eq-attention"
CHAPTER_12 = "chapters/12-backwards-by-hand.html"
READY = ".equation-button"
# The sign of a reader on the way by keys, without a step.
TAB = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'Tab', bubbles: true}))"
# The light that falls on the places of a symbol: what is underlined, what is framed.
LIT = """() => [...document.querySelectorAll("article [data-symbol], .abh *")].filter(place => {
  const {boxShadow, outlineStyle} = getComputedStyle(place);
  return place.dataset.symbol ? boxShadow !== "none" : outlineStyle === "solid" &&
    place.matches("[data-block], [data-gate], [data-cell], .edge, td");
}).map(place => place.dataset.symbol ?? `in ${place.closest("[data-widget]").dataset.widget}`)"""


def opened(page, name, site=None):
    """The page with its symbols marked: they come with the first sign of a reader."""
    page.goto(address("http" if site else "file", name, site))
    page.evaluate(TAB)
    page.locator(READY).first.wait_for(state="attached")
    return page


def lit(page):
    """The symbols that light up, each once, and the widgets that do."""
    page.evaluate(FRAME)
    return set(page.evaluate(LIT))


def middle(page, place):
    """Bring a place to the middle of the window."""
    place = page.locator(place).first
    place.evaluate("place => place.scrollIntoView({block: 'center', behavior: 'instant'})")
    return place


# ---------------------------------------------------------------------------------- the marks


@pytest.fixture(scope="module")
def marked(browser):
    """A function that gives a page with its marks, opened once, to be read and left as it is."""
    context = browser.new_context()
    yield functools.cache(lambda name: opened(context.new_page(), name))
    context.close()


@pytest.fixture
def rested(marked):
    """Such a chapter with its marks and nothing lit, shared by what leaves no trace on it."""
    page = marked(CHAPTER_2)
    yield page
    page.emulate_media(media="screen")
    page.keyboard.press("Escape")
    page.mouse.move(2, 2)
    page.locator(".glimpse:popover-open").first.wait_for(state="detached")
    assert lit(page) == set()


@pytest.mark.parametrize(
    ("name", "label", "marks"),
    [
        (CHAPTER_2, "attention", "Q K V Q K d_k V"),
        (CHAPTER_2, "scores", "S Q K S Q K"),  # and rows of Q and K
        (CHAPTER_2, "scaled", "~S S d_k"),
        ("chapters/05-masks.html", "mask", "^S ~S M A ^S"),
        ("chapters/06-many-heads.html", "head", "X W_Q^(h) X W_K^(h) X W_V^(h)"),
        ("chapters/07-where-am-i.html", "pe-rotation", "PE PE R PE PE"),  # k and p are numbers
        ("chapters/08-the-encoder-layer.html", "post-norm-ffn", "X^′′ X^′ X^′"),
        ("chapters/08-the-encoder-layer.html", "ffn", "W_1 b_1 W_2 b_2"),
        (CHAPTER_12, "back-queries", "dQ dQ d~S d~S K d_k"),  # both letters of a gradient
        (CHAPTER_12, "back-tokens", "dX dX dQ dQ W_Q dK dK W_K dV dV W_V"),
        ("chapters/14-what-it-costs.html", "cost-cache", "L n b"),
        ("parity-atlas.html", "dropout", "A^′ B A B"),
    ],
)
def test_letters_are_marked_where_they_mean_it(marked, name, label, marks):
    found = marked(name).locator(f"#equation-eq-{label} mjx-math [data-symbol]").all()
    names = [each.get_attribute("data-symbol").split()[0] for each in found]
    assert names == marks.split()


@pytest.mark.parametrize(
    ("name", "code", "marks"),
    [
        (CHAPTER_2, "S = Q @ K.T  # Eq. (3), (n, n)", "S Q K n n"),
        (CHAPTER_3, "weights = attnlib.softmax(queries @ keys.T / math.sqrt(2))", "A Q K"),
        ("chapters/13-looking-back.html", "six.weights[0, 0, 4].argmax()", ""),  # of something else
    ],
)
def test_names_are_marked_in_code(marked, name, code, marks):
    found = marked(name).evaluate(
        """code => {
            const text = document.createTreeWalker(document.querySelector("article"), 4);
            const lines = [...document.querySelectorAll(".cell_input pre")].flatMap(pre => {
              const range = document.createRange(), at = pre.textContent.indexOf(code);
              if (at < 0) return [];
              const spans = [...pre.querySelectorAll("[data-symbol]")].filter(span => {
                range.setStart(pre, 0); range.setEndBefore(span);
                const place = range.toString().length;
                return place >= at && place < at + code.length;
              });
              return [spans.map(span => span.dataset.symbol).join(" ")];
            });
            return lines[0];
        }""",
        code,
    )
    assert found == marks


def test_a_copied_cell_is_what_it_was(page):
    page.goto(address("file", CHAPTER_3, ""))
    before = page.locator("pre").all_text_contents()
    page.evaluate(TAB)
    page.locator(READY).first.wait_for(state="attached")
    assert page.locator("pre:not(.glimpse pre)").all_text_contents() == before


# ---------------------------------------------------------------------------------- the pointer


def test_nothing_comes_before_a_reader_does(page, site):
    """All other tests see that it comes from disk as well."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address("http", CHAPTER_3, site))
    page.wait_for_load_state("networkidle")
    assert not any("symbols.js" in url for url in asked)
    middle(page, "mjx-container").hover()
    page.locator(READY).first.wait_for(state="attached")
    assert sum("symbols.js" in url for url in asked) == 1


@pytest.mark.parametrize("touch", [False, True])
def test_the_first_symbol_that_is_pointed_at_has_its_answer(browser, touch):
    context = browser.new_context(has_touch=touch, is_mobile=touch)
    page = context.new_page()
    page.goto(address("file", CHAPTER_2, ""))
    place = middle(page, f"{ATTENTION} mjx-math mjx-mstyle")
    if touch:
        place.tap()
    else:
        place.hover()
    page.locator(BOX, has_text="queries").wait_for()
    page.wait_for_timeout(400)
    assert page.locator(BOX).count() == 1 and lit(page) - {"in Plane"} == {"Q"}
    context.close()


def test_a_symbol_lights_up_everywhere_under_the_pointer(page, site):
    page.add_init_script(SHIFTS)
    awake(opened(page, CHAPTER_3, site))
    place = middle(page, "mjx-math [data-symbol=Q]")
    page.evaluate(FRAME)
    page.evaluate("shifts.length = 0")
    place.hover()
    page.locator(BOX).wait_for()
    assert lit(page) == {"Q", "in Flow"}
    assert page.locator("pre [data-symbol=Q]").count() > 9
    assert page.locator(f"{BOX} .shape").text_content() == "(n, dk)"
    assert page.locator(f"{BOX} .in-code code").all_inner_texts() == ["queries", "Q"]
    page.locator(BOX).hover()  # it stays while the pointer is on it
    page.wait_for_timeout(400)
    assert page.locator(BOX).count() == 1
    page.mouse.move(2, 2)
    page.locator(BOX).wait_for(state="detached")
    assert lit(page) == set()
    assert page.evaluate("shifts") == []


def test_a_pointer_that_passes_lights_nothing(rested):
    page = rested
    place = middle(page, f"{ATTENTION} [data-symbol=V]").bounding_box()
    page.mouse.move(place["x"] + 3, place["y"] + 3)
    page.wait_for_timeout(100)
    page.mouse.move(place["x"] + 3, place["y"] + 90)
    page.wait_for_timeout(400)
    assert lit(page) == set() and page.locator(BOX).count() == 0


def test_code_and_formulas_light_each_other(rested):
    page = rested
    middle(page, "pre [data-symbol=A]:visible").hover()
    page.locator(BOX).wait_for()
    assert lit(page) >= {"A"} and page.locator("mjx-math [data-symbol=A]").count() > 3
    (weights,) = [each for each in SYMBOLS if each.name == "A"]
    assert page.locator(f"{BOX} .in-code code").all_inner_texts() == weights.code.split()
    middle(page, f"{ATTENTION} ~ * [data-row=q]").hover()
    page.locator(f"{BOX} i", has_text=re.compile("^q$")).wait_for()  # a row of Q


def test_widgets_and_formulas_light_each_other(page):
    """What the crossing of Flow holds depends on its stage."""
    awake(opened(page, CHAPTER_3))
    river = ".abh-flow .river:not([hidden]) svg"
    for stage, name in (("2", "S"), ("3", "~S"), ("4", "A")):
        middle(page, f".abh-flow [data-go='{stage}']").click()
        page.locator(f"{river} [data-holds='{name}'] [data-cell]").first.wait_for()
        middle(page, f"{river} [data-holds='{name}'] [data-cell]").hover(force=True)
        page.wait_for_function(f"name => ({LIT})().includes(name)", arg=name)
        assert lit(page) == {name} and page.locator(BOX).count() == 0  # the widget speaks itself
        page.mouse.move(2, 2)
        page.wait_for_function(f"() => !({LIT})().length")
    middle(page, "mjx-math [data-symbol=W_K]").hover()
    page.locator(BOX).wait_for()
    assert lit(page) == {"W_K", "in Flow"}  # its gate


def test_a_link_keeps_its_own_box(marked):
    """A term and the number of an equation say what they lead to, not what their letters mean."""
    page = marked(CHAPTER_12)
    link = middle(page, 'section a.reference[href="#equation-eq-back-values"]')
    link.hover()
    page.locator(".glimpse:popover-open").wait_for()
    assert page.locator(BOX).count() == 0


# ---------------------------------------------------------------------------------- keys, touch


def test_an_equation_is_one_stop_for_tab(page, site):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, CHAPTER_2, site)
    stops = page.locator(f"{ATTENTION} :is(button, [tabindex='0'], a:not(.headerlink))")
    assert stops.count() == 1
    stops.focus()
    page.keyboard.press("Enter")
    page.locator(f"{MENU} button:focus").wait_for()
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "Copy TeX"
    page.keyboard.press("Enter")
    page.locator(MENU).get_by_text("Copied").wait_for()
    tex = page.evaluate("navigator.clipboard.readText()")
    assert "\\frac{Q K^\\top}{\\sqrt{d_k}}" in tex and "color" not in tex and "split" not in tex
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(MENU).get_by_text("Copied").nth(1).wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == NUMPY["eq-attention"]
    for name, said in {"Q": "queries", "K": "keys", "V": "values", "d_k": "numbers in"}.items():
        page.keyboard.press("ArrowDown")
        assert lit(page) - {"in Plane"} == {name} and said in page.evaluate(focused)
    page.locator("article h1").hover()  # a pointer that rests puts out no light but its own
    page.wait_for_timeout(400)
    assert "d_k" in lit(page)
    page.keyboard.press("Escape")
    assert page.locator(MENU).count() == 0 and lit(page) == set()
    assert page.evaluate("document.activeElement.className") == "equation-button"
    page.keyboard.press("Enter")
    page.locator(f"{MENU} button:focus").wait_for()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")  # what is chosen stays lit while one looks for it
    assert page.locator(MENU).count() == 0 and lit(page) == {"d_k"}
    page.keyboard.press("Escape")
    assert lit(page) == set()


def test_by_touch_a_symbol_speaks_and_equations_show_their_button(browser):
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    page = opened(context.new_page(), "chapters/08-the-encoder-layer.html")
    middle(page, f"#equation-eq-ffn {READY}").tap()  # right above the number
    page.locator(MENU).wait_for()
    opened(page, CHAPTER_2)
    button = middle(page, f"{ATTENTION} {READY}")
    assert button.evaluate("button => getComputedStyle(button).opacity") == "1"
    page.locator(f"{ATTENTION} [data-symbol=K]").first.tap()
    page.locator(BOX).wait_for()
    place = page.locator(BOX).bounding_box()
    assert 0 <= place["x"] and place["x"] + place["width"] <= 360
    assert lit(page) - {"in Plane"} == {"K"}
    page.locator("#the-equations h2").tap()
    assert page.locator(BOX).count() == 0 and lit(page) == set()
    button.tap()
    page.locator(MENU).wait_for()
    place = page.locator(MENU).bounding_box()
    assert 0 <= place["x"] and place["x"] + place["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


# ---------------------------------------------------------------------------------- how it sits


def test_boxes_and_menus_have_no_faults(page, site):
    opened(page, CHAPTER_2, site)
    page.evaluate(  # axe reads the whole page, whatever it is asked about
        "at => document.querySelectorAll(`article section section:not(:has(${at}))`)"
        ".forEach(section => section.remove())",
        ATTENTION,
    )

    def states(page):
        page.keyboard.press("Escape")
        middle(page, f"{ATTENTION} [data-symbol=K]").click(force=True)
        page.locator(BOX).wait_for()
        yield
        page.keyboard.press("Escape")
        middle(page, f"{ATTENTION} {READY}").click(force=True)
        page.locator(MENU).wait_for()
        yield

    assert axe_findings(page, states, (f"{ATTENTION} {READY}", ".glimpse:popover-open")) == []


def test_a_page_on_paper_is_as_before(rested):
    page = rested
    middle(page, f"{ATTENTION} [data-symbol=K]").click()
    page.locator(BOX).wait_for()
    assert "K" in lit(page)
    page.emulate_media(media="print")
    assert lit(page) == set()
    assert not page.locator(READY).first.is_visible() and not page.locator(BOX).is_visible()


def test_light_has_contrast(rested):
    """Letters on their light, in both themes."""
    page = rested
    letter = page.locator(f"{ATTENTION} [data-symbol=K]").first
    middle(page, f"{ATTENTION} [data-symbol=K]").click()
    pixels = """place => {
        const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
        const {color, backgroundColor} = getComputedStyle(place);
        return [color, backgroundColor].map(paint => {
          pen.fillStyle = paint;
          pen.fillRect(0, 0, 1, 1);
          return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
        });
    }"""
    for theme in themes(page):
        ink, light = np.array(letter.evaluate(pixels)) / 255
        assert contrast(ink, light) >= 4.5, theme
