"""ScalingExplorer in a real browser, on a page of its own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.widgets import ScalingExplorer
from attnlib.widgets.attention_explorer import DIVISORS
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

PARTS = ("d_k_value", "largest", "top_key", "entropy", "jacobian", "spread")
explorers = st.builds(
    ScalingExplorer, d_k=st.integers(1, 1024), divisor=st.sampled_from(list(DIVISORS))
)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scaling")
    write_page(folder, ScalingExplorer())
    with served(folder) as addresses:
        yield addresses


@pytest.fixture(params=["http", "file"])
def awake(request, page, addresses):
    return wake(page, addresses[request.param])


@pytest.fixture(scope="module")
def module(browser):
    page = import_module(browser.new_page(), ScalingExplorer)
    yield page
    page.close()


def shown(page):
    return texts(page, PARTS)


def expected(**state):
    return still_texts(ScalingExplorer(**state), PARTS)


# ------------------------------------------------------------------------------- arithmetic


@browser_test
@given(explorer=explorers)
def test_it_computes_what_attnlib_computes(module, explorer):
    found = module.evaluate("state => widget.compute(state)", traits(explorer))
    np.testing.assert_allclose(found["scores"], explorer.scores.ravel(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["weights"], explorer.weights, rtol=0, atol=1e-9)
    assert found["spread"] == pytest.approx(explorer.spread, abs=1e-9)
    assert found["entropy"] == pytest.approx(explorer.entropy, abs=1e-9)
    assert found["jacobian"] == pytest.approx(explorer.jacobian_norm, rel=1e-6)


@browser_test
@given(explorer=explorers)
def test_it_draws_what_the_still_picture_draws(module, explorer):
    state = traits(explorer)
    found = module.evaluate("state => widget.marks(state, widget.compute(state))", state)
    assert_same_marks(found, explorer._marks())


@settings(browser_test, max_examples=15)
@given(explorer=explorers)
def test_copied_code_gives_the_numbers_on_the_screen(module, explorer):
    lines = module.evaluate("state => widget.numpyCode(state)", traits(explorer))
    names = run("\n".join(lines))
    np.testing.assert_allclose(names["scores"], explorer.scores, rtol=0, atol=1e-9)
    np.testing.assert_allclose(names["weights"], explorer.weights, rtol=0, atol=1e-9)
    assert names["entropy"] == pytest.approx(explorer.entropy, abs=1e-9)
    norm = np.linalg.norm(names["jacobian"])
    assert norm == pytest.approx(explorer.jacobian_norm, rel=1e-6, abs=1e-15)


# ---------------------------------------------------------------------------------- by hand


def test_keyboard_alone_moves_everything(awake):
    page = awake
    slider = page.get_by_role("slider", name="Query and key size")
    page.keyboard.press("Tab")
    assert slider.evaluate("slider => slider === document.activeElement")
    page.keyboard.press("End")
    assert shown(page) == expected(d_k=1024)
    assert slider.get_attribute("aria-valuetext") == "d_k = 1024"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert shown(page) == expected(d_k=1024, divisor="none")
    page.keyboard.press("ArrowDown")
    assert shown(page) == expected(d_k=1024, divisor="d_k")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert shown(page) == expected(d_k=2, divisor="d_k")
    page.get_by_role("button", name="Reset").press("Enter")
    assert shown(page) == expected()


def test_curve_of_the_divisor_stands_out(awake):
    page = awake
    for divisor in DIVISORS:
        page.get_by_label("Divide scores by").select_option(divisor)
        page.evaluate(FRAMES)
        bold = page.locator("[data-part^=line_]").evaluate_all(
            "lines => lines.filter(line => line.getAttribute('stroke-width') > 2)"
            ".map(line => line.dataset.part)"
        )
        assert bold == [f"line_{divisor}"]


def test_a_size_between_the_stops_is_drawn(awake):
    page = awake
    page.evaluate("document.querySelector('.widget-slot').model.set('d_k', 100)")
    assert shown(page) == expected(d_k=100)


def test_a_tap_on_the_slider_moves_it(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        box = page.get_by_role("slider").bounding_box()
        page.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
        assert int(shown(page)["d_k_value"]) > 256


def test_table_for_the_ear_follows(awake):
    page = awake
    page.get_by_role("slider").press("End")
    page.wait_for_timeout(600)
    widget = ScalingExplorer(d_k=1024)
    cells = page.locator("[data-part=table] td").all_text_contents()
    assert cells[1::2] == [f"{weight:.4f}" for weight in widget.weights]
    np.testing.assert_allclose([float(x) for x in cells[::2]], widget.scores[35], atol=0.0051)
    label = page.locator("svg").get_attribute("aria-label")
    assert f"the largest {widget.weights.max():.2f}" in label


def test_copy_button_says_so(page, addresses):
    names = copied(wake(page, addresses["http"]))
    assert names["weights"].max() == pytest.approx(ScalingExplorer().weights.max())


# ------------------------------------------------------------------------------- on the page


def move_all(page):
    for divisor in DIVISORS:
        page.get_by_label("Divide scores by").select_option(divisor)
        for key in ("Home", "End", "PageDown", "ArrowLeft"):
            yield page.get_by_role("slider").press(key)


@pytest.mark.parametrize("width", [1280, 700, 360])
def test_nothing_jumps_and_nothing_hangs_over(browser, addresses, width):
    assert_nothing_moves(browser, addresses["http"], width, move_all)


def test_axe_finds_nothing_in_either_theme(browser, addresses):
    page = wake(browser.new_page(), addresses["http"])
    assert axe_findings(page) == []
    page.close()


def test_words_in_the_drawing_fit_it_and_each_other(browser, addresses):
    page = wake(browser.new_page(), addresses["http"])
    for _ in move_all(page):
        page.evaluate(FRAMES)
        assert_words_fit(page)
    page.close()


def test_picture_stands_without_javascript_and_when_the_module_fails(browser, addresses):
    assert_picture_stands(browser, addresses)


def test_theme_changes_the_drawing(awake):
    assert_theme_shows(awake, awake.locator("svg"))


def test_size_of_the_module():
    assert module_size(ScalingExplorer) < 60_000
