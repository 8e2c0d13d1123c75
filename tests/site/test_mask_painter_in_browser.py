"""MaskPainter in a real browser, on a page of its own: arithmetic, keyboard, finger, picture."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import MaskPainter
from tests.site.harness import (
    FRAMES,
    SHIFTS,
    axe,
    browser_test,
    copied,
    import_module,
    module_size,
    phone,
    run,
    served,
    slots,
    themes,
    traits,
    wake,
    write_page,
)

HOSTILE = '<img src=x onerror="document.title=1"></script><!--'


@st.composite
def painters(draw):
    n = draw(st.integers(2, 8))
    letters = st.characters(exclude_categories=["Z", "C"])
    row = st.lists(st.booleans(), min_size=n, max_size=n)
    return MaskPainter(
        tokens=draw(st.lists(st.text(letters, min_size=1, max_size=20), min_size=n, max_size=n)),
        mask=draw(st.lists(row, min_size=n, max_size=n)),
        length=draw(st.integers(1, n)),
        nudge=draw(st.integers(0, n - 1)),
    )


@pytest.fixture(scope="module")
def module(browser):
    page = import_module(browser.new_page(), MaskPainter, "painter")
    yield page
    page.close()


@browser_test
@given(painter=painters())
def test_it_computes_what_attnlib_computes(module, painter):
    found = module.evaluate("state => painter.compute(state)", traits(painter))
    for name in ("weights", "output"):
        np.testing.assert_allclose(found[name], getattr(painter, name), rtol=0, atol=1e-9)
    for name in ("moved", "leaks", "empty_rows", "additive", "blocked"):
        np.testing.assert_array_equal(found[name], getattr(painter, name), err_msg=name)
    assert found["verdicts"] == painter.verdicts


@browser_test
@given(painter=painters())
def test_copied_code_gives_the_mask_three_times_and_the_weights(module, painter):
    code = module.evaluate("state => painter.numpyCode(state).join('\\n')", traits(painter))
    names = run(code)
    assert names["tokens"] == painter.tokens
    np.testing.assert_array_equal(names["allowed"], painter.mask)
    np.testing.assert_array_equal(names["additive"], painter.additive)
    np.testing.assert_array_equal(names["blocked"], painter.blocked)
    np.testing.assert_allclose(names["weights"], painter.weights, rtol=0, atol=1e-6)


def test_a_stroke_leaves_no_gap(module):
    cells = module.evaluate("painter.stroke([0, 0], [7, 3])")
    assert cells[0] == [0, 0] and cells[-1] == [7, 3]
    steps = np.abs(np.diff(cells, axis=0))
    assert steps.max() == 1
    assert module.evaluate("painter.stroke([2, 3], [2, 3])")[0] == [2, 3]


# ------------------------------------------------------------------------ on a page of its own


@pytest.fixture(params=["http", "file"])
def open_painter(request, page, tmp_path):
    """Open a page with a painter, over http and from disk, and wait until it lives."""

    def go(painter=None, **size):
        write_page(tmp_path, painter or MaskPainter())
        if size:
            page.set_viewport_size(size)
        page.add_init_script(SHIFTS)
        return wake(page, addresses[request.param])

    with served(tmp_path) as addresses:
        yield go


def model(page):
    page.evaluate(FRAMES)
    return page.evaluate(
        "(({tokens, mask, length, nudge}) => ({tokens, mask, length, nudge}))"
        "(document.querySelector('.widget-slot').model.traits)"
    )


def verdicts(page):
    page.evaluate(FRAMES)
    return page.locator(".verdicts li").all_text_contents()


def cell(page, i, j):
    return page.locator("[role=grid] tr").nth(i + 1).locator("button").nth(j)


def agrees(page):
    """Everything on the screen is what Python says of the present state; return that painter."""
    painter = MaskPainter(**model(page))
    assert verdicts(page) == painter.verdicts
    cells = page.locator("[role=grid] button")
    pressed = cells.evaluate_all("all => all.map(b => b.ariaPressed === 'true')")
    assert pressed == np.ravel(painter.mask).tolist()
    assert cells.all_text_contents() == [
        f"{w:.2f}" if may else "" for w, may in zip(painter.weights.flat, pressed, strict=True)
    ]
    fates = page.locator("td.fate").all_text_contents()
    assert [fate in ("moved", "leaks") for fate in fates] == painter.moved.tolist()
    assert [i for i, fate in enumerate(fates) if fate == "zeros"] == painter.empty_rows
    shown = {
        name: page.locator(f"[data-convention={name}] tr + tr td").all_text_contents()
        for name in ("bool", "additive", "blocked")
    }
    assert shown["bool"] == ["T" if may else "F" for may in pressed]
    assert shown["additive"] == ["0" if may else "-∞" for may in pressed]
    assert shown["blocked"] == ["F" if may else "T" for may in pressed]
    return painter


def tab_to(page, selector):
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    pytest.fail(f"Tab does not reach {selector}")


def test_by_keyboard_alone_causal_padding_and_a_leaking_mask(open_painter):
    page = open_painter()
    assert "Leaks the future" in agrees(page).verdicts[1]

    tab_to(page, "[name=preset]")
    page.keyboard.type("causal")
    painter = agrees(page)
    np.testing.assert_array_equal(painter.mask, attnlib.causal_mask(5))
    assert painter.verdicts[1].startswith("Does not leak the future")
    assert painter.verdicts[3].startswith("Keeps padding out")

    tab_to(page, "[role=grid] button")
    for key in ("Control+Home", "ArrowRight", "ArrowRight", "Space"):  # The may look at sat
        page.keyboard.press(key)
    painter = agrees(page)
    assert painter.mask[0] == [True, False, True, False, False]
    assert painter.verdicts[1] == (
        "Leaks the future: nudging sat moves the output of The, which comes before it."
    )
    page.keyboard.press("Enter")
    assert agrees(page).verdicts[1].startswith("Does not leak the future")
    for key in ("Control+End", "ArrowDown", "ArrowRight", "ArrowUp", "Space", "Home", "End"):
        page.keyboard.press(key)
    painter = agrees(page)
    assert painter.mask[3][4] and painter.verdicts[3] == (
        "Lets padding in: the real token down attends to the filler <pad>."
    )
    assert page.locator("[role=grid] [tabindex='0']").count() == 1

    page.keyboard.press("Shift+Tab")  # the buttons
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.name") == "real"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("padding")
    painter = agrees(page)
    assert painter.mask == [[True] * 4 + [False]] * 5
    assert painter.verdicts[1].startswith("Leaks the future: nudging sat moves")
    assert painter.verdicts[3].startswith("Keeps padding out")
    tab_to(page, "[name=real]")
    page.keyboard.press("ArrowLeft")  # a padding preset goes with its length
    painter = agrees(page)
    assert painter.length == 3 and painter.mask == [[True] * 3 + [False] * 2] * 5

    tab_to(page, "[name=reset]")
    page.keyboard.press("Enter")
    assert agrees(page).verdicts == MaskPainter().verdicts


def test_an_empty_row_is_said(open_painter):
    page = open_painter(MaskPainter(mask=np.eye(5, dtype=bool), nudge=1))
    cell(page, 1, 1).click()
    painter = agrees(page)
    assert painter.empty_rows == [1]
    assert painter.verdicts[2] == (
        "Row cat is empty: it can attend to nothing, so its output is zeros."
    )
    page.locator("[name=nudge]").select_option("3")
    assert agrees(page).nudge == 3


@pytest.mark.parametrize("name", ["none", "causal", "padding", "both", "window"])
def test_presets(open_painter, name):
    page = open_painter()
    page.get_by_label("Start from").select_option(name)
    mask = {
        "none": np.ones((5, 5), bool),
        "causal": attnlib.causal_mask(5),
        "padding": np.broadcast_to(attnlib.padding_mask([4], 5)[0], (5, 5)),
        "both": attnlib.causal_mask(5) & attnlib.padding_mask([4], 5)[0],
        "window": attnlib.window_mask(5, 1),
    }[name]
    np.testing.assert_array_equal(agrees(page).mask, mask)
    assert page.get_by_label("Start from").input_value() == name
    cell(page, 4, 0).click()
    agrees(page)
    assert page.get_by_label("Start from").input_value() == "painted"


def test_a_drag_paints_every_cell_on_its_way_once(open_painter):
    page = open_painter()
    start, end = (cell(page, *at).bounding_box() for at in ((1, 0), (1, 4)))
    y = start["y"] + start["height"] / 2
    page.mouse.move(start["x"] + 10, y)
    page.mouse.down()
    page.mouse.move(end["x"] + 10, y, steps=2)  # faster than the cells go by
    page.mouse.up()
    page.mouse.move(end["x"] + 10, y + 60)
    painter = agrees(page)
    assert painter.mask == [[i != 1] * 5 for i in range(5)]
    cell(page, 1, 2).click()
    assert agrees(page).mask[1] == [False, False, True, False, False]
    cell(page, 1, 2).evaluate("button => button.click()")  # as a screen reader clicks
    assert agrees(page).empty_rows == [1]


def test_a_finger_paints_too(browser, tmp_path):
    write_page(tmp_path, MaskPainter())
    with phone(browser, (tmp_path / "page.html").as_uri()) as page:
        cell(page, 0, 0).scroll_into_view_if_needed()
        boxes = [cell(page, 2, j).bounding_box() for j in (0, 2, 3)]
        touch = page.context.new_cdp_session(page)
        for kind, box in zip(("touchStart", "touchMove", "touchMove"), boxes, strict=True):
            point = {"x": box["x"] + 9, "y": box["y"] + 9}
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        assert agrees(page).mask[2] == [False, False, False, False, True]
        box = cell(page, 0, 1).bounding_box()
        page.touchscreen.tap(box["x"] + 9, box["y"] + 9)
        assert agrees(page).mask[0] == [True, False, True, True, True]


def test_copy_fills_the_clipboard(open_painter):
    page = open_painter(MaskPainter(mask=np.zeros((5, 5), bool)))
    if page.url.startswith("http"):
        page.get_by_label("Start from").select_option("both")
        names = copied(page)
        np.testing.assert_allclose(names["weights"], agrees(page).weights, atol=1e-6)
    else:
        page.get_by_role("button", name="Copy as NumPy").click()
        page.wait_for_timeout(100)
    assert "Copied" in page.locator(".message").inner_text()


EIGHT = ["Everything", "moves", "when", "somebody", "nudges", "it", "<pad>", "<pad>"]


@pytest.mark.parametrize("open_painter", ["http"], indirect=True)
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("tokens", [["a", "b"], EIGHT, [HOSTILE, "x" * 500, "c"]])
def test_nothing_jumps_or_hangs_over_and_axe_finds_nothing(open_painter, tokens, width):
    page = open_painter(MaskPainter(tokens=tokens), width=width, height=900)
    n = len(tokens)
    place = "document.querySelector('#after').getBoundingClientRect().top + scrollY"
    places = [page.evaluate(place)]
    for name in ("none", "causal", "padding", "both", "window"):
        page.get_by_label("Start from").select_option(name)
        for nudge in (0, n - 1):
            page.locator("[name=nudge]").select_option(str(nudge))
            page.evaluate(FRAMES)
            places.append(page.evaluate(place))
    page.get_by_label("Real tokens").press("Home")
    page.get_by_label("Start from").select_option("none")
    page.evaluate(FRAMES)
    places.append(page.evaluate(place))
    start, end = (cell(page, *at).bounding_box() for at in ((0, 0), (n - 1, n - 1)))
    page.mouse.move(start["x"] + 9, start["y"] + 9)
    page.mouse.down()
    for i in range(n):  # every row to and fro: all is blocked in the end, in a single stroke
        y = start["y"] + 9 + i * (end["y"] - start["y"]) / max(n - 1, 1)
        page.mouse.move(end["x"] + 9, y, steps=4)
        page.mouse.move(start["x"] + 9, y, steps=4)
        page.evaluate(FRAMES)
        places.append(page.evaluate(place))
    page.mouse.up()
    agrees(page)
    assert max(places) - min(places) <= 1
    assert page.evaluate("shifts.reduce((sum, value) => sum + value, 0)") <= 0.02
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".widget-slot img").count() == 0 and page.title() == "A page"
    sizes = page.locator("[role=grid] button").evaluate_all(
        "all => all.map(b => b.getBoundingClientRect()).flatMap(b => [b.width, b.height])"
    )
    assert min(sizes) >= 24
    page.get_by_label("Start from").select_option("causal")
    for _ in themes(page):
        assert axe(page) == []


@pytest.mark.parametrize("width", [1280, 360])
def test_picture_has_the_size_and_the_words_of_the_live_widget(browser, tmp_path, width):
    write_page(tmp_path, MaskPainter(tokens=EIGHT, length=6))
    address = (tmp_path / "page.html").as_uri()
    assert slots(browser, address, width, False) == slots(browser, address, width, True)


def test_size_of_the_module():
    assert module_size(MaskPainter) < 60_000
