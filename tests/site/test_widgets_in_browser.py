"""The widgets in a real browser: their arithmetic against attnlib, their behaviour by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.widgets import AttentionExplorer, HandCalculator
from attnlib.widgets.attention_explorer import DIVISORS, MASKS
from tests.conftest import SITE
from tests.site.harness import browser_test, copied, import_module, run, slots, themes, traits, wake

HOSTILE = '<img src=x onerror="document.title=1"></script><!--'


@pytest.fixture(scope="module")
def modules(browser):
    """A blank page with both widgets' modules loaded as a notebook loads them, from a blob."""
    page = import_module(browser.new_page(), AttentionExplorer, "explorer")
    import_module(page, HandCalculator, "hand")
    yield page
    page.close()


words = st.lists(
    st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=12),
    min_size=1,
    max_size=13,
)
explorers = st.builds(
    AttentionExplorer,
    sentence=words.map(" ".join),
    d_k=st.integers(1, 512),
    mask=st.sampled_from(list(MASKS)),
    length=st.integers(1, 64),
    width=st.integers(0, 63),
    divisor=st.sampled_from(list(DIVISORS)),
)


@st.composite
def calculators(draw):
    n, d_model, d_k, d_v = (draw(st.integers(1, 4)) for _ in range(4))
    entries = st.floats(-3, 3).map(lambda x: round(x, 2) + 0.0)

    def matrix(rows, columns):
        row = st.lists(entries, min_size=columns, max_size=columns)
        return draw(st.lists(row, min_size=rows, max_size=rows))

    return HandCalculator(
        X=matrix(n, d_model),
        W_Q=matrix(d_model, d_k),
        W_K=matrix(d_model, d_k),
        W_V=matrix(d_model, d_v),
    )


# ------------------------------------------------------------------------------- arithmetic


@browser_test
@given(explorer=explorers)
def test_explorer_computes_what_attnlib_computes(modules, explorer):
    found = modules.evaluate("state => explorer.compute(state)", traits(explorer))
    assert found["tokens"] == explorer.tokens
    np.testing.assert_allclose(found["scores"], explorer.scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found["allowed"], explorer.allowed)
    np.testing.assert_allclose(found["weights"], explorer.weights, rtol=0, atol=1e-9)


@browser_test
@given(calculator=calculators())
def test_calculator_computes_what_attnlib_computes(modules, calculator):
    found = modules.evaluate("state => hand.compute(state)", traits(calculator))
    for name, expected in {
        "Q": calculator.Q,
        "K": calculator.K,
        "V": calculator.V,
        "S": calculator.scores,
        "A": calculator.weights,
        "Z": calculator.output,
    }.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=1e-9, err_msg=name)


@browser_test
@given(calculator=calculators())
def test_steps_run_through_every_product_to_its_sum(modules, calculator):
    state = traits(calculator)
    n_steps = modules.evaluate("state => hand.steps(state).length", state)
    assert n_steps == calculator.n_steps
    sentences = modules.evaluate(
        """state => {
            const matrices = hand.compute(state);
            return hand.steps(state).map(step => hand.explain(state, matrices, step));
        }""",
        state,
    )
    (n, d_model), d_k = np.shape(calculator.X), np.shape(calculator.W_Q)[1]
    assert all(len(sentence["text"]) == 3 for sentence in sentences)
    # The last product of each entry of Q ends in that entry.
    for entry, value in enumerate(calculator.Q.ravel()):
        end = sentences[(entry + 1) * d_model - 1]["text"][2]
        assert float(end.rpartition("= ")[2]) == pytest.approx(value, abs=5e-7)
    assert len(sentences[0]["reads"]) == 2 and n * d_k > 0


@browser_test
@given(explorer=explorers)
def test_copied_code_of_the_explorer_gives_its_weights(modules, explorer):
    code = modules.evaluate("state => explorer.numpyCode(state).join('\\n')", traits(explorer))
    names = run(code)
    assert names["tokens"] == explorer.tokens
    np.testing.assert_allclose(names["weights"], explorer.weights, rtol=0, atol=1e-6)


@browser_test
@given(calculator=calculators())
def test_copied_code_of_the_calculator_gives_its_matrices(modules, calculator):
    names = run(modules.evaluate("state => hand.numpyCode(state).join('\\n')", traits(calculator)))
    np.testing.assert_allclose(names["A"], calculator.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(names["Z"], calculator.output, rtol=0, atol=1e-9)


def test_a_power_too_large_for_a_float_is_said_and_the_weights_stand(modules):
    calculator = HandCalculator(X=np.full((2, 4), 100), W_Q=np.full((4, 2), 100), W_K=np.eye(4, 2))
    state = traits(calculator)
    found = modules.evaluate("state => hand.compute(state)", state)
    np.testing.assert_allclose(found["A"], calculator.weights)
    text = modules.evaluate(
        """state => {
            const step = hand.steps(state).find(step => step.stage === "A");
            return hand.explain(state, hand.compute(state), step).text.join("");
        }""",
        state,
    )
    assert "the row's maximum is subtracted first" in text and "∞" not in text


# -------------------------------------------------------------------------- on the built page


@pytest.fixture(params=["http", "file"])
def open_page(request, page, site):
    """Open a page of the built site, over http and from disk, its widgets awake."""

    def go(name):
        return wake(page, f"{site}/{name}" if request.param == "http" else (SITE / name).as_uri())

    return go


LANDING = "index.html"
CHAPTER_3 = "chapters/03-chai-piyo-by-hand.html"


def model(page, at=0):
    return page.evaluate(
        "at => ({...document.querySelectorAll('.widget-slot')[at].model.traits, _markup: 0})", at
    )


def test_slider_moves_by_keyboard_and_the_numbers_follow(open_page):
    page = open_page(LANDING)
    slider = page.get_by_role("slider", name="Size of queries")
    slider.focus()
    page.keyboard.press("End")
    page.wait_for_timeout(100)
    assert slider.get_attribute("aria-valuetext") == "d_k = 512"
    page.get_by_label("Divide scores by").select_option("none")
    page.wait_for_timeout(100)
    expected = AttentionExplorer(d_k=512, divisor="none").weights[0].max()
    assert page.locator("[data-part=largest]").inner_text() == f"{expected:.2f}"
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Reset").press("Enter")
    page.wait_for_timeout(100)
    assert model(page)["d_k"] == 16 and model(page)["divisor"] == "sqrt"


def test_a_tap_picks_a_row(open_page):
    page = open_page(LANDING)
    box = page.locator("canvas").bounding_box()
    page.mouse.click(
        box["x"] + box["width"] / 2, box["y"] + box["height"] * (64 + 280 * 5.5 / 6) / 470
    )
    page.wait_for_timeout(100)
    assert model(page)["row"] == 5
    assert page.locator("[data-part=row_word]").inner_text() == "mat"


def test_table_for_the_ear_holds_every_weight(open_page):
    page = open_page(LANDING)
    page.get_by_label("Mask").select_option("causal")
    page.wait_for_timeout(600)
    cells = page.locator("[data-part=table] tr").evaluate_all(
        "rows => rows.slice(1).map(row => [...row.querySelectorAll('td')].map(c => c.textContent))"
    )
    expected = AttentionExplorer(mask="causal")
    for row, weights, allowed in zip(cells, expected.weights, expected.allowed, strict=True):
        assert row == [f"{w:.2f}" if a else "masked" for w, a in zip(weights, allowed, strict=True)]
    assert "Row The" in page.locator("canvas").get_attribute("aria-label")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one word"),
        ("   ", "at least one word"),
        ("w " * 200, "That is 200 words; 64"),
    ],
)
def test_absurd_sentence_gets_a_plain_message_and_keeps_the_state(open_page, text, message):
    page = open_page(LANDING)
    field = page.get_by_label("Sentence")
    field.fill(text)
    assert message in page.locator(".abh-explorer .message").inner_text()
    assert model(page)["sentence"] == "The cat sat on the mat"
    field.blur()
    assert field.input_value() == "The cat sat on the mat"


@pytest.mark.parametrize("text", ["word", "w " * 64, "x" * 5000, HOSTILE])
def test_any_other_sentence_is_drawn(open_page, text):
    page = open_page(LANDING)
    page.get_by_label("Sentence").fill(text)
    page.get_by_label("Mask").select_option("window")
    page.wait_for_timeout(500)
    assert model(page)["sentence"] == text
    assert page.locator(".widget-slot img").count() == 0 and page.title() != "1"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_copy_button_fills_the_clipboard_with_runnable_code(page, site):
    wake(page, f"{site}/{LANDING}").get_by_label("Mask").select_option("both")
    names = copied(page)
    np.testing.assert_allclose(names["weights"], AttentionExplorer(mask="both").weights, atol=1e-6)


def test_calculator_steps_and_lights_its_operands(open_page):
    page = open_page(CHAPTER_3)
    page.get_by_role("button", name="Step forward").click()
    page.get_by_role("button", name="Step forward").press("Enter")
    page.wait_for_timeout(100)
    lit = page.locator("td.read").evaluate_all("cells => cells.map(cell => cell.dataset.cell)")
    assert lit == ["X_0_2", "W_Q_2_0"]
    assert page.locator(".sum").inner_text() == "Q [1, 1] = 1 × 1 + 0 × 0 + 1 × 1 + 0 × 0; so far 2"
    page.get_by_role("button", name="A", exact=True).click()
    page.wait_for_timeout(100)
    assert page.locator(".sum").inner_text() == "A [1, 1] = 1 / (1 + 16.918829) = 0.055807"
    page.get_by_role("slider", name="Step").press("End")
    page.wait_for_timeout(100)
    assert page.locator(".sum").inner_text().endswith("= 0.111614")


def test_calculator_shows_six_digits_and_follows_an_entry(open_page):
    page = open_page(CHAPTER_3)
    shown = page.locator(".abh-hand").inner_text()
    for number in ("2.828427", "16.918829", "0.055807", "0.944193", "0.111614", "1.888386"):
        assert number in shown
    for k, entry in enumerate(["0", "1", "0", "1"]):
        for j in range(2):
            page.get_by_label(f"W K, row {k + 1}, column {j + 1}").fill(
                "1" if (entry == "1") == (j == 1) else "0"
            )
    page.wait_for_timeout(100)
    expected = HandCalculator(W_K=HandCalculator().W_Q).weights
    assert page.locator("[data-cell=A_0_0]").inner_text() == f"{expected[0, 0]:.6f}" == "0.944193"


@pytest.mark.parametrize("text", ["NaN", "", "1e999", "chai", "-101", HOSTILE])
def test_absurd_entry_gets_a_plain_message_and_keeps_the_state(open_page, text):
    page = open_page(CHAPTER_3)
    field = page.get_by_label("X, row 1, column 1")
    field.fill(text)
    assert (
        "An entry needs a number from -100 to 100"
        in page.locator(".abh-hand .message").inner_text()
    )
    assert page.locator("[data-cell=A_0_1]").inner_text() == "0.944193"
    field.blur()
    page.wait_for_timeout(100)
    assert field.input_value() == "1"


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("path", [LANDING, CHAPTER_3])
def test_picture_has_the_size_of_the_live_widget(browser, site, path, width):
    picture, alive = (slots(browser, f"{site}/{path}", width, live) for live in (False, True))
    assert [height for height, _ in picture] == pytest.approx(
        [height for height, _ in alive], abs=1
    )


def test_picture_stays_with_a_note_when_the_module_fails(browser, site):
    page = browser.new_page()
    page.route(
        "**/AttentionExplorer.*.js*",
        lambda route: route.fulfill(
            body="registerWidget('AttentionExplorer', 'throw new Error(\"planted\")')"
        ),
    )
    wake(page, f"{site}/{LANDING}")
    assert "could not start" in page.get_by_role("alert").inner_text()
    assert page.locator(".widget-picture svg").is_visible()
    page.close()


def test_a_kernel_only_widget_gets_a_note(open_page):
    page = open_page("chapters/02-queries-keys-values.html")
    note = page.locator(".kernel-only")
    assert note.count() == 1 and "IntSlider" in note.inner_text()


def test_theme_changes_the_drawing(page, site):
    wake(page, f"{site}/{LANDING}")
    seen = []
    for _ in themes(page):
        page.wait_for_timeout(100)
        seen.append(page.locator("canvas").screenshot())
    assert seen[0] != seen[1]


def test_ground_is_the_page_of_the_palette(page, site):
    """The palette's test measures the contrast of every text on this ground."""
    wake(page, f"{site}/{CHAPTER_3}")
    for theme in themes(page):
        ground = page.locator(".abh-hand").evaluate("el => getComputedStyle(el).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 20, 22)"}[theme]
