"""HandCalculator: its matrices, its steps in words, its errors."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings

import attnlib
from attnlib.widgets import HandCalculator
from tests.helpers import steady
from tests.widgets.pictures import drawn, js, picture, run
from tests.widgets.samples import SAMPLES

calculators = SAMPLES[HandCalculator]
some = settings(steady, max_examples=20)


def test_chai_piyo():
    calculator = HandCalculator()
    assert calculator.Q.tolist() == [[2, 0], [0, 2]]
    assert calculator.K.tolist() == [[0, 2], [2, 0]]
    assert calculator.V.tolist() == [[2, 0], [0, 2]]
    assert calculator.scores.tolist() == [[0, 4], [4, 0]]
    assert calculator.weights.round(6).tolist() == [[0.055807, 0.944193], [0.944193, 0.055807]]
    assert calculator.output.round(6).tolist() == [[0.111614, 1.888386], [1.888386, 0.111614]]
    text = drawn(calculator)
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


@some
@given(calculator=calculators)
def test_javascript_computes_what_attnlib_computes(calculator):
    found = js(calculator, "compute(state)")
    for name, expected in {
        "Q": calculator.Q,
        "K": calculator.K,
        "V": calculator.V,
        "S": calculator.scores,
        "A": calculator.weights,
        "Z": calculator.output,
    }.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=1e-9, err_msg=name)
        cells = picture(calculator).select(f"[data-matrix={name}] [data-cell]")
        shown = [float(cell.get_text()) for cell in cells]
        np.testing.assert_allclose(shown, expected.ravel(), atol=6e-7, err_msg=name)


@some
@given(calculator=calculators)
def test_steps_run_through_every_product_to_its_sum(calculator):
    said = js(
        calculator,
        "steps(state).map(step => widget.explain(state, widget.compute(state), step))",
    )
    assert len(said) == calculator.n_steps
    d_model = np.shape(calculator.X)[1]
    # The last product of each entry of Q ends in that entry.
    for entry, value in enumerate(calculator.Q.ravel()):
        end = said[(entry + 1) * d_model - 1]["text"][2]
        assert float(end.rpartition("= ")[2]) == pytest.approx(value, abs=6e-7)
    soup, now = picture(calculator), said[calculator.step]
    assert soup.select_one(".sum").get_text() == "".join(now["text"])
    lit = {cell["data-cell"] for cell in soup.select("td.read")}
    assert lit == set(now["reads"]) and len(soup.select("td.made")) == 1


@some
@given(calculator=calculators)
def test_copied_code_gives_the_matrices(calculator):
    names = run(js(calculator, "code(state)"))
    np.testing.assert_allclose(names["A"], calculator.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(names["Z"], calculator.output, rtol=0, atol=1e-9)


def test_a_power_too_large_for_a_float_is_said_and_the_weights_stand():
    calculator = HandCalculator(X=np.full((2, 4), 100), W_Q=np.full((4, 2), 100), W_K=np.eye(4, 2))
    np.testing.assert_allclose(js(calculator, "compute(state)")["A"], calculator.weights)
    calculator.step = 4 * 12 + 8 + 8  # the first weight
    said = picture(calculator).select_one(".sum").get_text()
    assert said.startswith("A [1, 1]") and "∞" not in said
    assert "the row's maximum is subtracted first" in said
