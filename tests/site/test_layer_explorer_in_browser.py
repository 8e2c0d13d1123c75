"""LayerExplorer in a real browser, on a page of its own."""

from attnlib.widgets import LayerExplorer
from tests.site.harness import FRAME, page_of, phone, wake

addresses = page_of(LayerExplorer())


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
    press("Tab", "End", depth=24)
    press("Home", "ArrowRight", depth=2)
    press("Tab", "ArrowDown", norm="pre")
    press("ArrowDown", norm="none")
    press("Tab", "Space", feed_forward=False)
    press("Tab", "Enter", seed=1)
    state.clear()
    press("Tab", "Tab", "Enter")  # past the copy button: reset
    assert page.get_by_role("checkbox", name="Residual").is_checked()
    assert page.get_by_label("Layer norm").input_value() == "post"


def test_a_tap_throws_a_switch_and_its_words_do_so_too(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        page.get_by_role("checkbox", name="Residual").tap()
        page.get_by_text("Feed-forward", exact=True).tap()
        assert shown(page) == repr(LayerExplorer(residual=False, feed_forward=False))


def test_the_last_weights_are_followed_by_the_first(page, addresses):
    wake(page, addresses["http"])
    page.evaluate("document.querySelector('.widget-slot').model.set('seed', 999)")
    page.get_by_role("button", name="New weights").click()
    assert shown(page) == repr(LayerExplorer(seed=0))
