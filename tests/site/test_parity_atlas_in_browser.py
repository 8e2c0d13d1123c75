"""ParityAtlas in a real browser, on a page of its own."""

import pytest

from attnlib import atlas
from attnlib.widgets import ParityAtlas
from attnlib.widgets import parity_atlas as python
from tests.site.harness import FRAMES, SHIFTS, axe_findings, served, wake, write_page
from tests.widgets.test_parity_atlas import expected as rows_of

N = len(atlas.read())


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    write_page(folder, ParityAtlas())
    with served(folder) as addresses:
        yield addresses


@pytest.fixture
def awake(page, addresses):
    return wake(page, addresses["http"])


def shown(page):
    """What stands on the screen: the texts of the rows that are not hidden, and the count."""
    page.evaluate(FRAMES)
    rows = page.evaluate(
        """Array.from(document.querySelectorAll("tbody tr:not([hidden])"),
        row => Array.from(row.cells, cell => cell.textContent))"""
    )
    return rows, page.locator("[data-part=count]").text_content()


def expected(**traits):
    rows = rows_of(**traits)
    return rows, f"{len(rows)} of {N} rows"


def head(page, title):
    return page.get_by_role("columnheader", name=title).get_by_role("button")


def test_mouse_chooses_and_sorts(awake):
    page = awake
    assert shown(page) == expected()
    page.get_by_label("Function").select_option("nn.TransformerEncoder")
    page.get_by_label("Outcome").select_option("NaN")
    assert shown(page) == expected(function="nn.TransformerEncoder", verdict="NaN")
    page.get_by_label("Outcome").select_option("all")
    head(page, "float32").click()
    sorted_ = {"function": "nn.TransformerEncoder", "sort": "float32"}
    assert shown(page) == expected(**sorted_)
    assert page.locator("th[aria-sort=ascending]").inner_text() == "Δ float32"
    head(page, "float32").click()
    assert shown(page) == expected(**sorted_, descending=True)
    assert page.locator("th[aria-sort=descending]").count() == 1
    head(page, "float32").click()
    assert shown(page) == expected(function="nn.TransformerEncoder")
    assert page.locator("th[aria-sort]").count() == 0


def test_keyboard_alone_does_everything(awake):
    page = awake
    for _ in ("function", "mode"):
        page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert shown(page) == expected(mode="no_grad")
    for _ in ("need_weights", "mask", "verdict"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert shown(page) == expected(mode="no_grad", verdict="agree")
    for _ in ("copy", "reset", "the box", "function", "mode", "need_weights", "mask"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert shown(page) == expected(mode="no_grad", verdict="agree", sort="mask")
    page.keyboard.press("Space")
    assert shown(page) == expected(mode="no_grad", verdict="agree", sort="mask", descending=True)
    page.get_by_role("button", name="Reset").press("Enter")
    assert shown(page) == expected()


def test_the_box_scrolls_by_keyboard(awake):
    awake.get_by_role("region").focus()
    awake.keyboard.press("End")
    awake.wait_for_function("document.querySelector('.scroll').scrollTop > 1000")


def test_no_row_is_said_in_words(awake):
    awake.get_by_label("Mask").select_option("is_causal")
    awake.get_by_label("need_weights").select_option("True")
    assert shown(awake) == ([], f"0 of {N} rows")
    assert "Set one of the choices back" in awake.locator("[data-part=none]").inner_text()
    awake.get_by_label("need_weights").select_option("all")
    assert shown(awake) == expected(mask="is_causal")
    assert awake.locator("[data-part=none]").inner_text() == ""


def test_copy_says_so(awake):
    awake.get_by_role("button", name="Copy as Python").click()
    awake.wait_for_function("document.querySelector('.message').textContent !== ''")
    assert awake.locator(".message").inner_text() == "Copied 8 lines of Python."


@pytest.mark.parametrize("width", [1280, 700, 360])
def test_nothing_jumps_and_nothing_hangs_over(browser, addresses, width):
    page = browser.new_page(viewport={"width": width, "height": 1300})
    page.add_init_script(SHIFTS)
    page.goto(addresses["http"])
    # In one go: the widget may take the picture's place at any moment.
    height = page.evaluate("document.querySelector('.abh').getBoundingClientRect().height")
    page.wait_for_selector("html[data-widgets=ready]")
    page.evaluate(FRAMES)
    assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") == 0
    places = set()  # of what comes after: later on rows move, inside of their box
    for name, values in python.FILTERS.items():
        for value in ("all", *values):
            page.locator(f"select[name={name}]").select_option(value)
            page.evaluate(FRAMES)
            places.add(page.locator("#after").bounding_box()["y"])
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
            over = "box => box.scrollWidth - box.clientWidth"
            assert page.locator(".scroll").evaluate(over) <= 0, (name, value)
        page.locator(f"select[name={name}]").select_option("all")
    assert len(places) == 1
    assert page.locator(".abh").bounding_box()["height"] == pytest.approx(height, abs=1)
    page.close()


def test_no_word_of_the_narrowest_table_is_broken(browser, addresses):
    page = wake(browser.new_page(viewport={"width": 700, "height": 900}), addresses["http"])
    broken = page.evaluate(
        r"""() => {
            const isBroken = (text, {index, 0: word}) => {
              const range = document.createRange();
              range.setStart(text, index);
              range.setEnd(text, index + word.length);
              return new Set([...range.getClientRects()].map(line => line.y)).size > 1;
            };
            return [...document.querySelectorAll("tr :is(td, th)")].flatMap(cell => {
              const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
              for (let text; text = walker.nextNode();) {
                const words = [...text.data.matchAll(/\S+/g)];
                broken.push(...words.filter(word => isBroken(text, word)).map(word => word[0]));
              }
              return broken;
            });
        }"""
    )
    assert broken == []
    page.close()


def test_a_card_on_a_phone_says_what_each_text_is(browser, addresses):
    page = wake(browser.new_page(viewport={"width": 360, "height": 900}), addresses["http"])
    said = (
        page.locator("tbody tr")
        .first.locator("td")
        .evaluate_all("cells => cells.map(cell => getComputedStyle(cell, '::before').content)")
    )
    assert [text.strip('" ') for text in said[1:]] == list(python.COLUMNS)[1:]
    assert page.get_by_role("row").count() == N + 1  # still a table for the ear
    page.close()


def test_axe_finds_nothing_in_either_theme(browser, addresses):
    page = wake(browser.new_page(), addresses["http"])
    # Some rows of every kind: the others look the same, and axe visits each cell.
    page.locator("select[name=mask]").select_option("empty row")
    assert axe_findings(page) == []
    page.close()
