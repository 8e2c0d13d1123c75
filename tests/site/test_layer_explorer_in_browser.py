"""LayerExplorer in a real browser, on a page of its own."""

from attnlib.widgets import LayerExplorer
from tests.site.harness import FRAME, page_of, phone, served, wake, write_page

addresses = page_of(LayerExplorer())

# More than two layers and fewer than all have been played.
UNDERWAY = """() => {
  const [layers] = document.querySelector(".verdict").textContent.match(/\\d+/) ?? [0];
  const play = document.querySelector("[name=play]").textContent;
  return 2 < layers && layers < 24 && play.includes("Stop");
}"""


def shown(page):
    """The state of the page's widget."""
    return repr(
        LayerExplorer(**page.evaluate("document.querySelector('.widget-slot').model.traits"))
    )


def test_keyboard_alone_moves_everything(page, addresses):
    wake(page, addresses["file"])
    state = {}

    def press(*keys, **changes):
        for key in keys:
            page.keyboard.press(key)
        state.update(changes)
        page.evaluate(FRAME)
        assert shown(page) == repr(LayerExplorer(**state))

    press("Tab", "Space", residual=False)
    press("Tab", "Tab", "End", depth=24)  # past the button that plays
    press("Home", "ArrowRight", depth=2)
    press("Tab", "Enter", "Tab", "ArrowDown", norm="pre")  # open the other switches
    press("ArrowDown", norm="none")
    press("Tab", "Space", feed_forward=False)
    press("Tab", "Enter", seed=1)
    state.clear()
    press("Tab", "Tab", "Enter")  # past the copy button: reset
    assert page.get_by_role("checkbox", name="Residual").is_checked()
    assert page.get_by_label("Layer norm").input_value() == "post"


def test_the_layers_are_played_and_nothing_is_set_on_the_way(page, addresses):
    wake(page, addresses["http"])
    page.get_by_role("button", name="Play the layers").click()
    page.wait_for_function(UNDERWAY)
    assert shown(page) == repr(LayerExplorer())
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("After 6 layers the words differ.").wait_for()
    page.get_by_role("button", name="Play the layers").click()
    page.get_by_role("checkbox", name="Residual").click()  # what is set ends it
    page.get_by_text("After 6 layers all words are alike").wait_for()


def test_without_the_residual_the_layers_are_played_at_first_sight(browser, tmp_path):
    write_page(tmp_path, LayerExplorer(residual=False, depth=24))
    with served(tmp_path) as where:
        page = browser.new_page()
        page.goto(where["http"])
        page.wait_for_function(UNDERWAY)
        page.emulate_media(reduced_motion="reduce")
        page.goto("about:blank")
        page.goto(where["http"])
        page.get_by_text("After 24 layers all words are alike").wait_for()
        page.wait_for_timeout(600)
        assert page.get_by_role("button", name="Play the layers").is_visible()
        page.close()


def test_a_tap_throws_a_switch_and_its_words_do_so_too(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        page.get_by_role("checkbox", name="Residual").tap()
        page.get_by_text("More switches").tap()
        page.get_by_text("Feed-forward", exact=True).tap()
        assert shown(page) == repr(LayerExplorer(residual=False, feed_forward=False))


def test_the_last_weights_are_followed_by_the_first(page, addresses):
    wake(page, addresses["http"])
    page.evaluate("document.querySelector('.widget-slot').model.set('seed', 999)")
    page.get_by_text("More switches").click()
    page.get_by_role("button", name="New weights").click()
    assert shown(page) == repr(LayerExplorer(seed=0))
