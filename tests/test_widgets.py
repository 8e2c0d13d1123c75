"""The widgets on the Python side: traits, arrays, the still picture, errors."""

import json
import math

import ipywidgets
import numpy as np
import pytest
import traitlets
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import (
    AttentionExplorer,
    CostCalculator,
    HandCalculator,
    LayerExplorer,
    MaskPainter,
    PositionsExplorer,
    ScalingExplorer,
)
from attnlib.widgets.attention_explorer import DIVISORS, MASKS, word_vector
from tests.helpers import steady

# Each widget that has a state of its own, made without arguments.
WIDGETS = [
    AttentionExplorer,
    CostCalculator,
    HandCalculator,
    LayerExplorer,
    MaskPainter,
    PositionsExplorer,
    ScalingExplorer,
]
HOSTILE = '<img src=x onerror="document.title=1"> </script><!-- "&amp;\''


def still(widget):
    data, _ = widget._repr_mimebundle_()
    return BeautifulSoup(data["text/html"], "html.parser")


# ---------------------------------------------------------------------- what all widgets keep


@pytest.mark.parametrize("widget", WIDGETS)
def test_repr_is_the_call_that_makes_it(widget):
    made = widget()
    again = eval(repr(made))
    assert repr(again) == repr(made)
    assert "0x" not in repr(made)


@pytest.mark.parametrize("widget", WIDGETS)
def test_picture_is_the_same_every_time_and_has_no_live_control(widget):
    picture = still(widget())
    assert str(picture) == str(still(widget()))
    assert picture.fieldset.has_attr("disabled")
    controls = picture.find_all(["input", "select", "button"])
    assert len(controls) > 3
    assert all(control.find_parent("fieldset") for control in controls)


@pytest.mark.parametrize("widget", WIDGETS)
def test_every_control_has_a_name_that_can_be_heard(widget):
    for control in still(widget()).find_all(["input", "select"]):
        if not control.get("aria-label"):
            label = control.find_parent("label")
            assert label.get_text(strip=True)
            # A label names the first of these that it holds; a second one stays nameless.
            assert len(label.find_all(["input", "select", "button", "output"])) == 1


@pytest.mark.parametrize("widget", WIDGETS)
def test_unknown_argument(widget):
    with pytest.raises(TypeError, match="got colour"):
        widget(colour="red")


@pytest.mark.parametrize("widget", WIDGETS)
def test_module_stands_alone(widget):
    module = widget._esm
    assert "./core.js" not in module
    assert "export default { render }" in module
    assert "export function softmax" not in module


def test_it_is_an_ipywidget_that_links():
    explorer, slider = AttentionExplorer(), ipywidgets.IntSlider(value=7, min=1, max=512)
    ipywidgets.link((slider, "value"), (explorer, "d_k"))
    assert explorer.d_k == 7
    slider.value = 131
    assert explorer.scores.shape == (6, 6) and explorer.Q.shape == (6, 131)
    seen = []
    explorer.observe(lambda change: seen.append(change["new"]), "d_k")
    slider.value = 5
    assert seen == [5]
    assert ipywidgets.HBox([explorer, slider]).children == (explorer, slider)


def test_interactive_output_follows_a_trait():
    explorer = AttentionExplorer()
    lengths = []
    slider = ipywidgets.IntSlider(value=3, min=1, max=512)
    ipywidgets.link((slider, "value"), (explorer, "d_k"))
    output = ipywidgets.interactive_output(
        lambda d_k: lengths.append(explorer.Q.shape[1]), {"d_k": slider}
    )
    slider.value = 11
    assert lengths == [3, 11], output.outputs


# ------------------------------------------------------------------------ AttentionExplorer


def test_weights_follow_the_equations():
    explorer = AttentionExplorer(sentence="one two three four five", d_k=13, mask="causal")
    scores = explorer.Q @ explorer.K.T / math.sqrt(13)
    expected = np.zeros((5, 5))
    for i in range(5):
        powers = np.exp(scores[i, : i + 1])
        expected[i, : i + 1] = powers / powers.sum()
    np.testing.assert_allclose(explorer.weights, expected, rtol=1e-12)


def test_weights_are_those_of_the_library():
    explorer = AttentionExplorer(sentence="a b c d e f g", d_k=11, mask="both", length=5)
    mask = attnlib.causal_mask(7) & attnlib.padding_mask([5], 7)[0]
    _, weights = attnlib.scaled_dot_product_attention(explorer.Q, explorer.K, explorer.K, mask)
    np.testing.assert_allclose(explorer.weights, weights, rtol=1e-12)


@steady
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), min_size=1, max_size=9
    ),
    st.sampled_from(list(MASKS)),
    st.sampled_from(list(DIVISORS)),
    st.integers(1, 512),
    st.integers(1, 64),
    st.integers(0, 63),
)
def test_rows_sum_to_one_whatever_is_set(words, mask, divisor, d_k, length, width):
    explorer = AttentionExplorer(
        sentence=" ".join(words), mask=mask, divisor=divisor, d_k=d_k, length=length, width=width
    )
    assert explorer.tokens == words
    np.testing.assert_allclose(explorer.weights.sum(axis=1), 1)
    assert (explorer.weights[~explorer.allowed] == 0).all()


def test_word_vectors_have_mean_0_and_variance_1():
    numbers = np.concatenate([word_vector(f"word{i}", "query", 512) for i in range(211)])
    assert abs(numbers.mean()) < 0.01 and abs(numbers.var() - 1) < 0.01
    assert np.array_equal(word_vector("cat", "key", 7), word_vector("cat", "key", 512)[:7])
    assert not np.array_equal(word_vector("cat", "key", 7), word_vector("cat", "query", 7))


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("sentence", "", "sentence needs 1 to 64 words; got 0"),
        ("sentence", " \n\t ", "sentence needs 1 to 64 words; got 0"),
        ("sentence", "w " * 200, "sentence needs 1 to 64 words; got 200"),
        ("d_k", 0, "d_k needs a whole number from 1 to 512; got 0"),
        ("d_k", 513, "d_k needs a whole number from 1 to 512; got 513"),
        ("length", 0, "length needs a whole number from 1 to 64; got 0"),
        ("width", -1, "width needs a whole number from 0 to 63; got -1"),
        ("row", 64, "row needs a whole number from 0 to 63; got 64"),
    ],
)
def test_absurd_values_are_refused_and_the_state_stays(trait, value, message):
    explorer = AttentionExplorer()
    before = repr(explorer)
    with pytest.raises(ValueError, match=message):
        setattr(explorer, trait, value)
    assert repr(explorer) == before


@pytest.mark.parametrize("trait", ["mask", "divisor"])
def test_unknown_choice_is_refused(trait):
    with pytest.raises(traitlets.TraitError, match="rainbow"):
        AttentionExplorer(**{trait: "rainbow"})


def test_hostile_sentence_is_text_in_the_picture():
    picture = still(AttentionExplorer(sentence=HOSTILE))
    assert picture.find(["img", "script"]) is None
    assert picture.find("input", {"name": "sentence"})["value"] == HOSTILE


def test_picture_shows_the_starting_weights():
    explorer = AttentionExplorer(sentence="x y z", mask="causal", row=2)
    table = still(explorer).find("table")
    cells = [[cell.get_text() for cell in row.find_all("td")] for row in table.find_all("tr")[1:]]
    assert cells[0] == ["1.00", "masked", "masked"]
    assert cells[2] == [f"{weight:.2f}" for weight in explorer.weights[2]]


# --------------------------------------------------------------------------- HandCalculator


def test_chai_piyo():
    calculator = HandCalculator()
    assert calculator.Q.tolist() == [[2, 0], [0, 2]]
    assert calculator.K.tolist() == [[0, 2], [2, 0]]
    assert calculator.V.tolist() == [[2, 0], [0, 2]]
    assert calculator.scores.tolist() == [[0, 4], [4, 0]]
    assert calculator.weights.round(6).tolist() == [[0.055807, 0.944193], [0.944193, 0.055807]]
    assert calculator.output.round(6).tolist() == [[0.111614, 1.888386], [1.888386, 0.111614]]
    text = still(calculator).get_text()
    for number in ("2.828427", "16.918829", "0.055807", "0.944193", "0.111614", "1.888386"):
        assert number in text


def test_uneven_shapes():
    rng = np.random.default_rng(0)
    X, W_Q, W_K, W_V = (rng.normal(size=s) for s in ((3, 4), (4, 2), (4, 2), (4, 1)))
    calculator = HandCalculator(X=X, W_Q=W_Q, W_K=W_K, W_V=W_V)
    output, weights = attnlib.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
    np.testing.assert_array_equal(calculator.weights, weights)
    np.testing.assert_array_equal(calculator.output, output)
    assert calculator.tokens == ["token 1", "token 2", "token 3"]
    assert json.loads(json.dumps(calculator.X)) == calculator.X


def test_step_runs_over_every_product():
    calculator = HandCalculator()
    # Q, K, V: 4 entries of 4 products; S: 4 of 2; scaling, powers, division: 4 each; Z: 4 of 2.
    last = 3 * 4 * 4 + 4 * 2 + 3 * 4 + 4 * 2 - 1
    calculator.step = last
    with pytest.raises(
        ValueError, match=f"step needs a whole number from 0 to {last}; got {last + 1}"
    ):
        calculator.step = last + 1


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("X", [[1, math.nan, 0, 0], [0, 0, 0, 0]], "X needs entries from -100 to 100"),
        ("X", [[1, 101, 0, 0], [0, 0, 0, 0]], "X needs entries from -100 to 100"),
        ("X", [[1, 2], [3, 4]], r"X keeps its shape \(2, 4\); got \(2, 2\)"),
        ("W_K", [[1, 2], [3]], "W_K needs rows of numbers"),
        ("W_K", "chai", "W_K needs rows of numbers; got 'chai'"),
        ("W_V", [1, 2], r"W_V needs 1 to 4 rows and columns; got shape \(2,\)"),
        ("tokens", ["one"], "tokens needs 2 names, one a row of X; got 1"),
        ("step", -1, "step needs a whole number from 0 to 75; got -1"),
    ],
)
def test_absurd_matrices_are_refused_and_the_state_stays(trait, value, message):
    calculator = HandCalculator()
    before = repr(calculator)
    with pytest.raises(ValueError, match=message):
        setattr(calculator, trait, value)
    assert repr(calculator) == before


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"W_Q": (3, 2)}, r"W_Q needs as many rows as X has columns; got \(3, 2\) and \(2, 4\)"),
        ({"W_V": (3, 2)}, r"W_V needs as many rows as X has columns; got \(3, 2\) and \(2, 4\)"),
        ({"W_K": (4, 3)}, r"W_Q and W_K must share d_k; got \(4, 2\) and \(4, 3\)"),
        ({"X": (5, 4)}, r"X needs 1 to 4 rows and columns; got shape \(5, 4\)"),
        ({"X": (4,)}, r"X needs 1 to 4 rows and columns; got shape \(4,\)"),
        ({"W_Q": (4, 0)}, r"W_Q needs 1 to 4 rows and columns; got shape \(4, 0\)"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ValueError, match=message):
        HandCalculator(**{name: np.ones(shape) for name, shape in shapes.items()})


def test_ragged_rows():
    with pytest.raises(ValueError, match="X needs rows of numbers; got"):
        HandCalculator(X=[[1, 2], [3]])


def test_hostile_token_is_text_in_the_picture():
    picture = still(HandCalculator(tokens=[HOSTILE, "piyo"]))
    assert picture.find(["img", "script"]) is None
    assert HOSTILE in picture.get_text()
