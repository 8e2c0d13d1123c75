"""ScalingExplorer: its numbers in Python and in JavaScript, its curves, its errors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

import attnlib
from attnlib.widgets import ScalingExplorer
from attnlib.widgets import scaling_explorer as module
from attnlib.widgets.kit.constants import DIVISORS, word_vector
from tests.helpers import steady
from tests.widgets.pictures import js, picture, run
from tests.widgets.samples import SAMPLES

explorers = SAMPLES[ScalingExplorer]
some = settings(steady, max_examples=7)  # 64 x 64 x d_k products each


def measured(explorer):
    """Return all scores, the row of weights that is shown, their spread, largest and slope."""
    queries, keys = (
        np.stack([word_vector(f"{role} {i}", role, explorer.d_k) for i in range(1, 65)])
        for role in ("query", "key")
    )
    scores = queries @ keys.T / DIVISORS[explorer.divisor](explorer.d_k)
    a = attnlib.softmax(scores[35])
    slope = np.linalg.norm(np.diag(a) - np.outer(a, a))
    spread, largest = scores.std(), a.max()
    return {"scores": scores, "weights": a, "spread": spread, "largest": largest, "slope": slope}


def test_jacobian_of_rows_done_by_hand():
    rows = np.array([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25]])
    np.testing.assert_allclose(module.jacobian_norm(rows), [0, 0.5, math.sqrt(3) / 4])


def test_jacobian_of_a_row_that_is_almost_one_weight_keeps_its_digits():
    tiny = 1e-20  # two entries on the diagonal and two beside it, each `tiny` in size
    assert module.jacobian_norm(np.array([1.0, tiny])) == pytest.approx(2 * tiny)


def test_curves_have_the_shape_of_the_course():
    curves = ScalingExplorer().curves
    sizes = curves["d_k"]
    assert sizes[0] == 1 and sizes[-1] == 1024 and (np.diff(sizes) > 0).all()
    assert {curve.shape for curve in curves.values()} == {sizes.shape}
    at = {d: list(sizes).index(d) for d in (1, 4, 16, 1024)}
    unscaled = curves["slope_none"]
    # Not monotone: it grows, is largest near 16, and only then falls to nothing.
    found = [unscaled[at[d]] for d in (1, 4, 16, 1024)]
    np.testing.assert_allclose(found, [0.151, 0.264, 0.339, 0.0004], atol=0.001)
    assert 11 <= sizes[unscaled.argmax()] <= 23
    assert curves["largest_none"][[at[1], -1]] == pytest.approx([0.05, 1], abs=0.01)
    for name, low, high in (("largest", 0.04, 0.12), ("slope", 0.15, 0.19)):
        assert low <= curves[f"{name}_sqrt"].min() <= curves[f"{name}_sqrt"].max() <= high
    # The divisor d_k flattens: the Jacobian of 64 equal weights is sqrt(63) / 64.
    assert curves["largest_d_k"][-1] == pytest.approx(1 / 64, abs=0.002)
    assert curves["slope_d_k"][-1] == pytest.approx(math.sqrt(63) / 64, abs=0.0002)


def test_arrays_that_widgets_share_cannot_be_changed():
    for array in ScalingExplorer().curves.values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@some
@given(explorer=explorers)
def test_javascript_computes_what_attnlib_computes(explorer):
    found = js(explorer, "compute(state)")
    for name, expected in measured(explorer).items():
        np.testing.assert_allclose(found[name], np.ravel(expected).squeeze(), rtol=1e-6, atol=1e-9)


@some
@given(explorer=explorers)
def test_copied_code_gives_the_numbers_on_the_screen(explorer):
    names = run(js(explorer, "code(state)"))
    expected = measured(explorer)
    for name in ("scores", "weights"):
        np.testing.assert_allclose(names[name], expected[name], rtol=0, atol=1e-9)
    slope = np.linalg.norm(names["slopes"])
    assert slope == pytest.approx(expected["slope"], rel=1e-6, abs=1e-12)


def test_picture_shows_the_numbers():
    explorer = ScalingExplorer(d_k=256, divisor="none")
    soup, expected = picture(explorer), measured(explorer)
    weights = expected["weights"]
    parts = {
        name: soup.select_one(f"[data-part={name}]").get_text()
        for name in ("largest", "slope", "spread", "theory")
    }
    assert parts["largest"] == f"{expected['weights'].max():.2f}"
    assert soup.select_one(".readout .key").get_text() == f"key {expected['weights'].argmax() + 1}"
    assert parts["slope"] == f"{expected['slope']:.0e}"
    assert parts["spread"] == "16.1"
    assert parts["theory"] == "spread of the scores; in theory √256 = 16"
    row, curves = soup.find_all("table")
    cells = [td.get_text() for td in row.find_all("td")]
    assert cells[1::2] == [f"{weight:.4f}" for weight in weights]
    np.testing.assert_allclose([float(x) for x in cells[::2]], expected["scores"][35], atol=0.0051)
    assert curves.find_all("tr")[-1].th.get_text() == "1024"
    assert f"the largest {expected['weights'].max():.2f}" in soup.svg["aria-label"]
    bold = [path["stroke-dasharray"] for path in soup.select("path[stroke-width='2.5']")]
    assert bold == ["5 3"]  # the divisor's curves stand out
