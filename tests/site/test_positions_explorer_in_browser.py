"""PositionsExplorer in a real browser, on a page of its own."""

from attnlib.widgets import PositionsExplorer
from tests.site.harness import FRAME, lens, page_of, phone, tab_to, wake, write_page
from tests.widgets.pictures import picture

addresses = page_of(PositionsExplorer())


def shown(page, at=0):
    """The state of a widget of the page."""
    slots = "document.querySelectorAll('.widget-slot')"
    return repr(PositionsExplorer(**page.evaluate(f"at => {slots}[at].model.traits", at)))


def test_by_keyboard_alone_every_kind_and_every_slider(page, addresses):
    wake(page, addresses["file"])
    state = {}

    def press(key, **changes):
        page.keyboard.press(key)
        state.update(changes)
        page.evaluate(FRAME)
        assert shown(page) == repr(PositionsExplorer(**state))

    tab_to(page, "[name=none]")
    press("Enter", kind="none")
    tab_to(page, "[name=rotary]")
    press("Space", kind="rotary")
    tab_to(page, "[name=position]")
    press("End", position=63)
    tab_to(page, "[name=d_model]")
    press("ArrowRight", d_model=18)
    tab_to(page, "[name=base]")
    press("ArrowLeft", base=5000)
    press("Home", base=2)
    press("End", base=1_000_000)
    tab_to(page, "[name=alibi]", "Shift+Tab")
    press("Enter", kind="alibi")
    tab_to(page, "[name=position]")
    page.keyboard.press("Tab")  # leaves out the two sliders that ALiBi does not use
    press("ArrowRight", head=1)
    tab_to(page, "[name=reset]")
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
        # A row of a heatmap is a position, or a head: 10 to 202 of 238 units.
        for part, row, changes in (("scores", 46, {"position": 46}), ("encoding", 5, {"head": 5})):
            sheet = page.locator(f"[data-part={part}]").nth(1)
            unit = sheet.bounding_box()["width"] / 240
            y = 10 + 192 * (row + 0.5) / (64 if part == "scores" else 8)
            sheet.tap(position={"x": 100 * unit, "y": y * unit})
            state = page.evaluate("document.querySelectorAll('.widget-slot')[1].model.traits")
            assert state.items() >= changes.items()


# ------------------------------------------------------------------------ the scenes that move

MOVING = ("order", "clocks", "turned")


scenes = page_of(*(PositionsExplorer(scene=scene, d_model=8) for scene in MOVING))


# What a hand points at once it has stood still for a while.
AT_REST = """async hand => {
  let kept, frames = 0;
  while (frames++ < 12) {
    if (kept !== hand.getAttribute("d")) [kept, frames] = [hand.getAttribute("d"), 0];
    await new Promise(requestAnimationFrame);
  }
  return kept;
}"""


def test_a_button_turns_the_clocks_and_they_arrive(page, scenes):
    wake(page, scenes["file"])
    clocks = page.locator(".widget-slot").nth(1)
    hand = clocks.locator("[data-part=from]").first
    before, match = hand.get_attribute("d"), clocks.locator("[data-part=match]").inner_text()
    clocks.locator("[name=on10]").click()
    page.wait_for_function(
        "([hand, d]) => hand.getAttribute('d') !== d", arg=[hand.element_handle(), before]
    )
    between = hand.get_attribute("d")
    assert clocks.locator("[data-part=match]").inner_text() == match  # on the way, too
    after = hand.evaluate(AT_REST)
    assert len({before, between, after}) == 3
    assert shown(page, 1) == repr(PositionsExplorer(scene="clocks", d_model=8, position=13))


def test_who_wants_no_motion_gets_none(page, scenes):
    page.emulate_media(reduced_motion="reduce")
    wake(page, scenes["file"])
    page.locator("[name=swapped]").click()
    page.evaluate(FRAME)
    names = [page.locator(f"[data-part={word}]").bounding_box()["x"] for word in ("man", "dog")]
    assert names == sorted(names)
    swapped = picture(PositionsExplorer(scene="order", d_model=8, swapped=True))
    assert page.locator(".verdict").first.inner_text() == swapped.select_one(".verdict").get_text()


def test_a_word_and_a_line_open_under_the_microscope(page, scenes):
    wake(page, scenes["file"])
    page.get_by_role("button", name="man: why").click()
    assert lens(page)[:2] == ["man", "man"]
    page.keyboard.press("Escape")
    page.locator("[data-way='2.0']").dispatch_event("click")
    page.evaluate(FRAME)
    assert lens(page)[:2] == ["man", "dog"]
