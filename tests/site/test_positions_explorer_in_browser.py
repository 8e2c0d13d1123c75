"""PositionsExplorer in a real browser, on a page of its own."""

import pytest

from attnlib.widgets import PositionsExplorer
from attnlib.widgets.positions_explorer import KINDS
from tests.site.harness import (
    FRAMES,
    assert_nothing_moves,
    assert_words_fit,
    phone,
    served,
    wake,
    write_page,
)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("positions")
    write_page(folder, PositionsExplorer())
    with served(folder) as addresses:
        yield addresses


def shown(page, at=0):
    """The state of a widget of the page."""
    slots = "document.querySelectorAll('.widget-slot')"
    return repr(PositionsExplorer(**page.evaluate(f"at => {slots}[at].model.traits", at)))


def tab_to(page, name, key="Tab"):
    for _ in range(15):
        page.keyboard.press(key)
        if page.evaluate("document.activeElement.name") == name:
            return
    pytest.fail(f"{key} does not reach {name}")


def test_by_keyboard_alone_every_kind_and_every_slider(page, addresses):
    wake(page, addresses["file"])
    state = {}

    def press(key, **changes):
        page.keyboard.press(key)
        state.update(changes)
        page.evaluate(FRAMES)
        assert shown(page) == repr(PositionsExplorer(**state))

    tab_to(page, "none")
    press("Enter", kind="none")
    tab_to(page, "rotary")
    press("Space", kind="rotary")
    tab_to(page, "position")
    press("End", position=63)
    tab_to(page, "d_model")
    press("ArrowRight", d_model=18)
    tab_to(page, "base")
    press("ArrowLeft", base=5000)
    press("Home", base=2)
    press("End", base=1_000_000)
    tab_to(page, "alibi", "Shift+Tab")
    press("Enter", kind="alibi")
    tab_to(page, "position")
    page.keyboard.press("Tab")  # leaves out the two sliders that ALiBi does not use
    press("ArrowRight", head=1)
    tab_to(page, "reset")
    state.clear()
    press("Enter")


def test_mouse_and_finger_move_the_one_they_touch(browser, tmp_path):
    write_page(tmp_path, PositionsExplorer(), PositionsExplorer(kind="relative", head=1))
    with phone(browser, (tmp_path / "page.html").as_uri()) as page:
        page.get_by_role("button", name="ALiBi").first.tap()
        slider = page.locator("[name=position]").first
        box = slider.bounding_box()
        page.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
        position = int(slider.input_value())
        assert position > 50
        assert shown(page) == repr(PositionsExplorer(kind="alibi", position=position))
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert 25 <= int(slider.input_value()) <= 38
        assert shown(page, 1) == repr(PositionsExplorer(kind="relative", head=1))


@pytest.mark.parametrize("width", [1280, 520, 360])
def test_nothing_moves_and_words_fit_from_end_to_end(browser, addresses, width):
    def states(page):
        for kind in KINDS:
            page.locator(f"[name={kind}]").click()
            page.evaluate(FRAMES)  # until then the last kind's sliders are enabled
            for slider in page.locator("input:enabled").all():
                for key in ("Home", "End", "ArrowLeft"):
                    slider.press(key)
                    page.evaluate(FRAMES)
                    assert_words_fit(page)
                    yield

    assert_nothing_moves(browser, addresses["file"], width, states)
