"""LayerExplorer in a real browser, on a page of its own."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.widgets import LayerExplorer
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
    still_texts,
    texts,
    traits,
    wake,
    write_page,
)

PARTS = ("depth_value", "distance", "norm_value", "verdict", "title", "scale", "seed")
explorers = st.builds(
    LayerExplorer,
    residual=st.booleans(),
    norm=st.sampled_from(["post", "pre", "none"]),
    feed_forward=st.booleans(),
    depth=st.integers(1, 24),
    seed=st.integers(0, 999),
)
SWITCHES = list(itertools.product([True, False], ["post", "pre", "none"], [True, False]))


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layer")
    write_page(folder, LayerExplorer())
    with served(folder) as addresses:
        yield addresses


@pytest.fixture(params=["http", "file"])
def awake(request, page, addresses):
    return wake(page, addresses[request.param])


@pytest.fixture(scope="module")
def module(browser):
    page = import_module(browser.new_page(), LayerExplorer)
    yield page
    page.close()


def shown(page):
    return texts(page, PARTS)


def expected(**state):
    return still_texts(LayerExplorer(**state), PARTS)


def assert_same(found, explorer):
    """The states layer by layer, each within 1e-6 of its own largest entry, however small."""
    for got, wanted in zip(found["states"], explorer.states, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(found["cosines"], explorer.cosines, rtol=0, atol=1e-9)
    for name, curve in explorer.curves.items():
        # Below 1e-13 a distance is what rounding left, which no two programs share.
        np.testing.assert_allclose(
            found["curves"][name], curve, rtol=1e-6, atol=1e-13 if "distance" in name else 0
        )


# ------------------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize("residual, norm, feed_forward", SWITCHES)
def test_all_switches_to_the_last_layer_as_attnlib(module, residual, norm, feed_forward):
    for seed in (0, 1, 499, 999):
        explorer = LayerExplorer(
            residual=residual, norm=norm, feed_forward=feed_forward, depth=24, seed=seed
        )
        assert_same(module.evaluate("state => widget.compute(state)", traits(explorer)), explorer)


@browser_test
@given(explorer=explorers)
def test_it_computes_what_attnlib_computes(module, explorer):
    assert_same(module.evaluate("state => widget.compute(state)", traits(explorer)), explorer)


@browser_test
@given(explorer=explorers)
def test_it_says_and_draws_what_the_still_picture_does(module, explorer):
    state = traits(explorer)
    found = module.evaluate(
        """state => {
            const now = widget.compute(state);
            return [widget.said(state, now), widget.tables(state, now), widget.marks(state, now)];
        }""",
        state,
    )
    said, tables, marks = found
    assert said == explorer._said()
    assert tables == {name: cells for name, (*_, cells) in explorer._tables().items()}
    assert_same_marks(marks, explorer._marks())


@settings(browser_test, max_examples=15)
@given(explorer=explorers)
def test_copied_code_gives_the_numbers_on_the_screen(module, explorer):
    lines = module.evaluate("state => widget.numpyCode(state)", traits(explorer))
    names = run("\n".join(lines))
    assert names["states"].shape == explorer.states.shape
    for got, wanted in zip(names["states"], explorer.states, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(names["distance"], explorer.distance, rtol=1e-6, atol=1e-13)
    np.testing.assert_allclose(names["norms"], explorer.norms, rtol=1e-6)


# ---------------------------------------------------------------------------------- by hand


def test_keyboard_alone_moves_everything(awake):
    page = awake
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert shown(page) == expected(residual=False)
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert shown(page) == expected(residual=False, depth=24)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert shown(page) == expected(residual=False, depth=2)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert shown(page) == expected(residual=False, depth=2, norm="pre")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    off = {"residual": False, "depth": 2, "norm": "none", "feed_forward": False}
    assert shown(page) == expected(**off)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert shown(page) == expected(**off, seed=1)
    page.get_by_role("button", name="Reset").press("Enter")
    assert shown(page) == expected()
    assert page.get_by_role("checkbox", name="Residual").is_checked()
    assert page.get_by_label("Layer norm").input_value() == "post"


def test_the_mouse_moves_everything(awake):
    page = awake
    page.get_by_text("Residual: each sublayer").click()
    page.get_by_label("Layer norm").select_option("none")
    page.get_by_text("Feed-forward", exact=True).click()
    box = page.get_by_role("slider", name="Layers").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 5, box["y"] + box["height"] / 2)
    page.get_by_role("button", name="New weights").click()
    page.get_by_role("button", name="New weights").click()
    off = {"residual": False, "depth": 24, "norm": "none", "feed_forward": False}
    assert shown(page) == expected(**off, seed=2)
    page.get_by_role("button", name="Reset").click()
    assert shown(page) == expected()


def test_a_tap_throws_the_switch(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        page.get_by_role("checkbox", name="Residual").tap()
        assert shown(page) == expected(residual=False)


def test_the_last_weights_are_followed_by_the_first(awake):
    page = awake
    page.evaluate("document.querySelector('.widget-slot').model.set('seed', 999)")
    assert shown(page) == expected(seed=999)
    page.get_by_role("button", name="New weights").click()
    assert shown(page) == expected(seed=0)


def test_tables_for_the_ear_follow(awake):
    page = awake
    page.get_by_role("checkbox", name="Residual").uncheck()
    page.get_by_role("slider").press("Home")
    page.wait_for_timeout(600)
    for name, (*_, cells) in LayerExplorer(residual=False, depth=1)._tables().items():
        found = page.locator(f"[data-part={name}_table] tr + tr td").all_text_contents()
        assert found == [text for row in cells for text in row]
    label = page.locator("svg").get_attribute("aria-label")
    assert "Distance below 0.001 at layer 3" in label


def test_copy_button_says_so(page, addresses):
    names = copied(wake(page, addresses["http"]))
    assert names["norms"][-1] == pytest.approx(LayerExplorer().norms[-1])


# ------------------------------------------------------------------------------- on the page


def throw_all(page):
    """Go through every setting of the switches at both ends of the depth."""
    for residual, norm, feed_forward in SWITCHES:
        page.get_by_role("checkbox", name="Residual").set_checked(residual)
        page.get_by_label("Layer norm").select_option(norm)
        page.get_by_role("checkbox", name="Feed-forward").set_checked(feed_forward)
        for key in ("Home", "End"):
            yield page.get_by_role("slider").press(key)


@pytest.mark.parametrize("width", [1280, 700, 360])
def test_nothing_jumps_and_nothing_hangs_over(browser, addresses, width):
    assert_nothing_moves(browser, addresses["http"], width, throw_all)


def test_words_in_the_drawing_fit_it_and_each_other(browser, addresses):
    page = wake(browser.new_page(), addresses["http"])
    for _ in throw_all(page):
        page.evaluate(FRAMES)
        assert_words_fit(page)
    page.close()


def test_axe_finds_nothing_in_either_theme(browser, addresses):
    page = wake(browser.new_page(), addresses["http"])
    assert axe_findings(page) == []
    page.close()


def test_picture_stands_without_javascript_and_when_the_module_fails(browser, addresses):
    assert_picture_stands(browser, addresses)


def test_theme_changes_the_drawing(awake):
    assert_theme_shows(awake, awake.locator("svg"))


def test_size_of_the_module():
    assert module_size(LayerExplorer) < 60_000
