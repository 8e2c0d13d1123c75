"""ParityAtlas in a real browser, on a page of its own."""

import json

import pytest
from hypothesis import HealthCheck, given, settings

from attnlib import atlas
from attnlib.widgets import ParityAtlas
from attnlib.widgets import parity_atlas as python
from tests.site.harness import (
    FRAMES,
    SHIFTS,
    axe_findings,
    host,
    import_module,
    served,
    wake,
    write_page,
)
from tests.test_parity_atlas import choices

N = len(atlas.read())
browser_test = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    write_page(folder, ParityAtlas())
    with served(folder) as addresses:
        yield addresses


@pytest.fixture(params=["http", "file"])
def awake(request, page, addresses):
    return wake(page, addresses[request.param])


@pytest.fixture(scope="module")
def module(browser):
    page = import_module(browser.new_page(), ParityAtlas)
    yield page
    page.close()


def lines(rows):
    return [list(python.cells(row).values()) for row in rows]


def shown(page):
    """What stands on the screen: the texts of the rows that are not hidden, and the count."""
    page.evaluate(FRAMES)
    rows = page.evaluate(
        """Array.from(document.querySelectorAll("tbody tr:not([hidden])"),
        row => Array.from(row.cells, cell => cell.textContent))"""
    )
    return rows, page.locator("[data-part=count]").text_content()


def expected(**traits):
    rows = ParityAtlas(**traits).rows
    return lines(rows), f"{len(rows)} of {N} rows"


def head(page, title):
    return page.get_by_role("columnheader", name=title).get_by_role("button")


@browser_test
@given(traits=choices)
def test_it_chooses_and_sorts_as_python_does(module, traits):
    stored = [python.cells(row) | {"verdict": atlas.verdict(row)} for row in atlas.read()]
    found = module.evaluate(
        "([state, rows]) => widget.sorted(state, rows).filter(row => widget.fits(state, row))",
        [traits, stored],
    )
    assert [[row[name] for name in python.COLUMNS] for row in found] == lines(
        ParityAtlas(**traits).rows
    )


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
    assert "Set one of the choices back" in awake.locator(".message").inner_text()
    awake.get_by_label("need_weights").select_option("all")
    assert shown(awake) == expected(mask="is_causal")
    assert awake.locator(".message").inner_text() == ""


def test_copied_code_measures_what_is_on_the_screen(page, addresses, capsys):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    wake(page, addresses["http"])
    traits = {
        "function": "nn.MultiheadAttention",
        "mode": "eval",
        "need_weights": "True",
        "mask": "empty row",
        "verdict": "NaN",
    }
    for name, value in traits.items():
        page.locator(f"select[name={name}]").select_option(value)
    page.get_by_role("button", name="Copy as Python").click()
    page.wait_for_function("document.querySelector('.message').textContent !== ''")
    assert page.locator(".message").inner_text().startswith("Copied ")
    names = {}
    exec(page.evaluate("navigator.clipboard.readText()"), names)
    (found,), (row,) = names["rows"], ParityAtlas(**traits).rows
    words = ("function", "mask", "path", "rows", "padded rows", "empty rows")
    assert [found[word] for word in words] == [row[word] for word in words]
    assert str(found) in capsys.readouterr().out


def test_code_for_every_row_asks_for_all(module):
    state = dict.fromkeys(python.FILTERS, "all") | {"sort": "", "descending": False}
    code = module.evaluate("state => widget.pythonCode(state)", state)
    compile("\n".join(code), "copied", "exec")
    assert " if " not in "\n".join(code)


@pytest.mark.parametrize("width", [1280, 700, 360])
def test_nothing_jumps_and_nothing_hangs_over(browser, addresses, width):
    page = browser.new_page(viewport={"width": width, "height": 1300})
    page.add_init_script(SHIFTS)
    page.goto(addresses["http"])
    # In one go: the widget may take the picture's place at any moment.
    height = page.evaluate(
        "document.querySelector('.widget-picture, .abh').getBoundingClientRect().height"
    )
    page.wait_for_selector("html[data-widgets=ready]")
    page.evaluate(FRAMES)
    assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") == 0
    places = set()  # of what comes after: later on rows move, inside of their box
    for name, (_, values) in python.FILTERS.items():
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


def test_table_stands_without_javascript_and_when_the_module_fails(browser, addresses):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(addresses["file"])
    assert page.locator("tbody tr").count() == N
    assert page.locator("tbody td").first.is_visible()
    assert page.locator("select").first.is_disabled()
    context.close()
    page = browser.new_page()
    planted = "registerWidget('ParityAtlas', 'throw new Error(\"planted\")')"
    page.route("**/module.js", lambda route: route.fulfill(body=planted))
    wake(page, addresses["http"])
    assert "could not start" in page.get_by_role("alert").inner_text()
    assert page.locator("tbody tr").count() == N
    page.close()


def test_size_of_the_module():
    assert len(host()) + len(json.dumps(ParityAtlas._esm)) < 60_000
