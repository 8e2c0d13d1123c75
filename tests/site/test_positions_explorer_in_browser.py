"""PositionsExplorer in a real browser, on a page of its own."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.widgets import PositionsExplorer
from attnlib.widgets import positions_explorer as python
from tests.site.harness import (
    FRAMES,
    assert_nothing_moves,
    assert_picture_stands,
    assert_same_marks,
    assert_theme_shows,
    assert_words_fit,
    axe_findings,
    browser_test,
    copied,
    import_module,
    module_size,
    phone,
    run,
    served,
    slots,
    still,
    traits,
    wake,
    write_page,
)

SPOKEN = (
    "before itself after before_at itself_at after_at asks verdict encoding_title encoding_note "
    "similarity_title similarity_note scores_title scores_note position_value d_model_value "
    "base_value head_value scores_here level low high"
).split()

explorers = st.builds(
    PositionsExplorer,
    kind=st.sampled_from(list(python.KINDS)),
    position=st.integers(0, 63),
    d_model=st.integers(1, 64).map(lambda pairs: 2 * pairs),
    base=st.floats(2, 1e6),
    head=st.integers(0, 7),
)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("positions")
    write_page(folder, PositionsExplorer())
    with served(folder) as addresses:
        yield addresses


@pytest.fixture(params=["http", "file"])
def awake(request, page, addresses):
    return wake(page, addresses[request.param])


@pytest.fixture(scope="module")
def module(browser):
    page = import_module(browser.new_page(), PositionsExplorer)
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
        for streak in re.findall(r"M(\d+) (\d+)h(\d+)", marks[f"{name}_{step}"]["d"]):
            x, y, length = map(int, streak)
            assert not steps[y, x : x + length].any()
            steps[y, x : x + length] = step
    return steps


@browser_test
@given(explorer=explorers)
def test_it_draws_what_the_still_picture_draws(module, explorer):
    state = traits(explorer)
    found = module.evaluate("state => widget.marks(state, widget.compute(state))", state)
    wanted = explorer._marks()
    painted = {part for part in wanted if re.fullmatch(r"(encoding|scores)_\d+", part)}
    assert painted <= found.keys()
    assert_same_marks(*({p: m[p] for p in m if p not in painted} for m in (found, wanted)))
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
    names = run("\n".join(lines))
    np.testing.assert_allclose(names["scores"], explorer.scores, rtol=0, atol=1e-9)
    assert names["position"] == explorer.position
    if explorer.kind == "sinusoidal":
        np.testing.assert_allclose(names["encoding"], explorer.encoding, rtol=0, atol=1e-9)
    if explorer.kind in ("alibi", "relative"):
        np.testing.assert_allclose(names["bias"], explorer.bias, rtol=0, atol=1e-12)


# ------------------------------------------------------------------------ on a page of its own


def agrees(page, explorer, at=0):
    """What is on the screen is the still picture of this state."""
    page.evaluate(FRAMES)
    slot = page.locator(".widget-slot").nth(at)
    picture = still(explorer)
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


def test_a_finger_moves_it(browser, addresses):
    with phone(browser, addresses["http"]) as page:
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


def test_two_on_a_page_keep_apart(page, tmp_path):
    write_page(tmp_path, PositionsExplorer(), PositionsExplorer(kind="alibi", head=1))
    wake(page, (tmp_path / "page.html").as_uri())
    page.get_by_role("button", name="None").first.click()
    agrees(page, PositionsExplorer(kind="none"), at=0)
    agrees(page, PositionsExplorer(kind="alibi", head=1), at=1)


def test_table_for_the_ear_follows(awake):
    page = awake
    page.get_by_role("button", name="Relative").click()
    page.locator("[name=position]").press("End")
    page.wait_for_timeout(600)
    picture = still(PositionsExplorer(kind="relative", position=63))
    cells = page.locator("[data-part=table] td").all_text_contents()
    assert cells == [cell.get_text() for cell in picture.table.find_all("td")]
    spoken = page.locator("[data-part=spoken]").text_content()
    assert spoken.startswith("Encoding of position 63: 0.00, ")


def test_copy_button_says_so(awake):
    awake.get_by_role("button", name="Copy as NumPy").click()
    awake.wait_for_timeout(100)
    said = awake.get_by_role("status").inner_text()
    assert re.fullmatch(r"Copied \d+ lines of NumPy\.", said)


def test_copy_button_fills_the_clipboard(page, addresses):
    names = copied(wake(page, addresses["http"]))
    np.testing.assert_allclose(names["scores"], PositionsExplorer().scores, atol=1e-9)


# ------------------------------------------------------------------------------- on the page


def pick_all(page):
    for label in python.KINDS.values():
        yield page.get_by_role("button", name=label, exact=True).click()


def move_all(page):
    for _ in pick_all(page):
        for name in ("position", "d_model", "base", "head"):
            if page.locator(f"[name={name}]").is_enabled():
                for key in ("Home", "End", "PageDown", "ArrowLeft"):
                    yield page.locator(f"[name={name}]").press(key)


@pytest.mark.parametrize("width", [1280, 700, 520, 360])
def test_nothing_jumps_and_nothing_hangs_over(browser, addresses, width):
    assert_nothing_moves(browser, addresses["file"], width, move_all)


@pytest.mark.parametrize("width", [1280, 360])
def test_picture_has_the_size_and_words_of_the_live_widget(browser, addresses, width):
    address = addresses["file"]
    assert slots(browser, address, width, False) == slots(browser, address, width, True)


def test_axe_finds_nothing_in_either_theme(browser, addresses):
    page = wake(browser.new_page(), addresses["file"])
    assert axe_findings(page, pick_all) == []
    page.close()


def test_words_in_the_drawings_fit_them_and_each_other(browser, addresses):
    page = wake(browser.new_page(), addresses["file"])
    for _ in pick_all(page):
        for key in ("Home", "End", "PageDown"):
            page.locator("[name=position]").press(key)
            page.evaluate(FRAMES)
            assert_words_fit(page)
    page.close()


def test_picture_stands_without_javascript_and_when_the_module_fails(browser, addresses):
    assert_picture_stands(browser, addresses)


def test_theme_changes_the_drawing(awake):
    assert_theme_shows(awake, awake.locator("svg").last)


def test_size_of_the_module():
    assert module_size(PositionsExplorer) < 60_000
