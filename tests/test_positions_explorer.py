"""PositionsExplorer on the Python side: its numbers, its still picture, its errors."""

import math

import numpy as np
import pytest
import traitlets
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import PositionsExplorer
from attnlib.widgets import positions_explorer as module

KINDS = list(module.KINDS)
pytestmark = pytest.mark.filterwarnings("error")

explorers = st.builds(
    PositionsExplorer,
    kind=st.sampled_from(KINDS),
    position=st.integers(0, 63),
    d_model=st.integers(1, 64).map(lambda pairs: 2 * pairs),
    base=st.floats(2, 1e6),
    head=st.integers(0, 7),
)
python_test = settings(deadline=None, derandomize=True, max_examples=40)


def still(widget):
    return BeautifulSoup(widget._repr_mimebundle_()[0]["text/html"], "html.parser")


def said(picture, part):
    return picture.select_one(f"[data-part={part}]").get_text()


def diagonal_spread(scores):
    """How far the scores of one distance differ, at most."""
    return max(np.ptp(np.diagonal(scores, k)) for k in range(-63, 64))


@python_test
@given(explorers)
def test_without_positions_equal_words_score_equally_and_each_kind_changes_that(explorer):
    scores, kind = explorer.scores, explorer.kind
    assert scores.shape == (64, 64)
    if kind == "none":
        np.testing.assert_allclose(scores, 1, atol=1e-12)
        return
    assert np.ptp(scores) > 0.2
    if kind == "sinusoidal":
        assert diagonal_spread(scores) > 0.5  # the places meet the word too
    else:
        assert diagonal_spread(scores) < 1e-9
    symmetric = np.allclose(scores, scores.T)
    assert symmetric == (kind != "relative")


@python_test
@given(explorers)
def test_similarity_is_the_diagonals_of_its_matrix(explorer):
    matrix = {
        "sinusoidal": explorer.encoding @ explorer.encoding.T,
        "alibi": explorer.bias[explorer.head],
        "relative": explorer.bias[explorer.head],
    }.get(explorer.kind, explorer.scores)
    offsets = range(-63, 64)
    for k, value in zip(offsets, explorer.similarity, strict=True):
        np.testing.assert_allclose(np.diagonal(matrix, k), value, atol=1e-9)


def test_numbers_of_the_chapter():
    """Two hands: position 2 is (0.909, -0.416, 0.020, 1.000), neighbours match by 1.540."""
    explorer = PositionsExplorer(d_model=4)
    np.testing.assert_allclose(explorer.encoding[2], [0.909, -0.416, 0.02, 1], atol=5e-4)
    assert explorer.similarity[64] == pytest.approx(math.cos(1) + math.cos(0.01))
    # Word (1, 0, 1, 0) / √2; positions 0 and 1: 1 + 1.540 + (0 + 0.841 + 0.010) / √2
    assert explorer.scores[0, 1] == pytest.approx(1 + 1.540252 + 0.851471 / math.sqrt(2), abs=1e-6)


def test_rotary_scores_are_the_mean_of_the_cosines():
    explorer = PositionsExplorer(kind="rotary", d_model=4)
    assert explorer.scores[7, 5] == pytest.approx((math.cos(2) + math.cos(0.02)) / 2)
    np.testing.assert_allclose(
        explorer.encoding[3], [math.cos(3), math.sin(3), math.cos(0.03), math.sin(0.03)]
    )


def test_alibi_takes_off_its_slope_for_each_step():
    explorer = PositionsExplorer(kind="alibi", head=2)
    assert explorer.scores[20, 13] == explorer.scores[13, 20] == pytest.approx(1 - 7 / 8)
    np.testing.assert_array_equal(explorer.bias, attnlib.alibi_bias(8, 64))


def test_relative_table_is_asymmetric_peaks_before_and_ends_at_eight():
    explorer = PositionsExplorer(kind="relative", head=1)
    assert explorer.table.shape == (8, 17)
    np.testing.assert_array_equal(explorer.table.argmax(axis=1), 8 - np.arange(1, 9))
    np.testing.assert_array_equal(explorer.table[0, 6:11], [1.5, 2, 1.5, 1, 0.5])
    row = explorer.scores[20]
    np.testing.assert_allclose(row[[18, 19, 20, 22]], [3, 2.5, 2, 1])
    np.testing.assert_allclose(row[[3, 12, 28, 63]], [0, 0, -2, -2], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_multi_head_attention(kind):
    """Scaled, with the maps that the docstring names, from the library's own layer."""
    explorer = PositionsExplorer(kind=kind, d_model=6, head=3)
    X = np.tile(explorer.word, (64, 1))
    if kind == "sinusoidal":
        X = X + attnlib.sinusoidal_positions(64, 6)
    if kind == "rotary":
        X = attnlib.rotary(X)
    inputs = X * 6**0.25
    _, weights = attnlib.scaled_dot_product_attention(inputs, inputs, X, explorer.bias[3])
    np.testing.assert_allclose(attnlib.softmax(explorer.scores), weights, atol=1e-12)


def test_what_a_kind_does_not_have_is_zero():
    assert not PositionsExplorer(kind="sinusoidal").bias.any()
    assert not PositionsExplorer(kind="alibi").encoding.any()
    assert PositionsExplorer(kind="none", d_model=6).encoding.shape == (64, 6)
    for name in ("encoding", "similarity", "scores", "bias", "word", "table"):
        with pytest.raises(AttributeError):
            setattr(PositionsExplorer(), name, 0)


def test_repr_makes_it_again_and_traits_follow():
    explorer = PositionsExplorer()
    assert repr(explorer) == (
        "PositionsExplorer(kind='sinusoidal', position=3, d_model=16, base=10000.0, head=0)"
    )
    explorer.d_model, explorer.kind = 22, "rotary"
    assert explorer.encoding.shape == (64, 22)
    assert repr(eval(repr(explorer))) == repr(explorer)
    assert PositionsExplorer(base=100).base == 100.0


@pytest.mark.parametrize(
    ("trait", "value", "needed"),
    [
        ("position", -1, "a whole number from 0 to 63"),
        ("position", 64, "a whole number from 0 to 63"),
        ("position", True, "a whole number from 0 to 63"),
        ("d_model", 7, "an even number from 2 to 128"),
        ("d_model", 0, "an even number from 2 to 128"),
        ("d_model", 130, "an even number from 2 to 128"),
        ("base", 1.5, "a number from 2 to 1000000"),
        ("base", math.nan, "a number from 2 to 1000000"),
        ("base", math.inf, "a number from 2 to 1000000"),
        ("head", 8, "a whole number from 0 to 7"),
    ],
)
def test_absurd_number_is_refused_and_the_state_stays(trait, value, needed):
    explorer = PositionsExplorer()
    before = repr(explorer)
    message = f"{trait} needs {needed}; got {value}"
    with pytest.raises(ValueError, match=message):
        setattr(explorer, trait, value)
    with pytest.raises(ValueError, match=message):
        PositionsExplorer(**{trait: value})
    assert repr(explorer) == before


@pytest.mark.parametrize(
    ("trait", "value"),
    [("kind", "learned"), ("kind", None), ("position", 1.5), ("d_model", "16"), ("base", "e")],
)
def test_wrong_kind_is_refused(trait, value):
    with pytest.raises(traitlets.TraitError, match=trait):
        PositionsExplorer(**{trait: value})


def test_unknown_argument():
    with pytest.raises(TypeError, match="takes kind, position, d_model, base, head; got n"):
        PositionsExplorer(n=3)


@python_test
@given(explorers)
def test_picture_is_the_same_every_time_and_holds_no_gibberish(explorer):
    drawn = explorer._picture()
    assert (
        drawn == PositionsExplorer(**{n: getattr(explorer, n) for n in explorer._shown})._picture()
    )
    assert "nan" not in drawn and "inf" not in drawn and "−0.00" not in drawn


def test_picture_shows_the_numbers():
    picture = still(PositionsExplorer(kind="alibi", position=20, head=2))
    assert picture.fieldset.has_attr("disabled")
    assert [said(picture, part) for part in ("before", "itself", "after")] == [
        "0.88",
        "1.00",
        "0.88",
    ]
    assert [said(picture, f"{part}_at") for part in ("before", "itself", "after")] == [
        "19", "20, itself", "21",
    ]  # fmt: skip
    assert "takes off 1/8" in said(picture, "verdict")
    assert said(picture, "encoding_note").endswith("Pale is −21.50, strong is 0.00.")
    rows = picture.table.find_all("tr")
    assert [cell.get_text() for cell in rows[1].find_all(["th", "td"])] == [
        "position 0", "−20", "−2.50", "−1.50",
    ]  # fmt: skip
    assert len(rows) == 65
    for control in picture.find_all("input"):
        assert control.find_parent("label").get_text(strip=True)
    idle = {control["name"]: control.has_attr("disabled") for control in picture.find_all("input")}
    assert idle == {"position": False, "d_model": True, "base": True, "head": False}
    pressed = {button["name"]: button.get("aria-pressed") for button in picture.find_all("button")}
    assert [name for name, yes in pressed.items() if yes == "true"] == ["alibi"]


def test_at_either_end_there_is_no_neighbour():
    first, last = (still(PositionsExplorer(position=p)) for p in (0, 63))
    assert (said(first, "before"), said(first, "before_at")) == ("–", "none before")
    assert (said(last, "after"), said(last, "after_at")) == ("–", "none after")


def test_module_stands_alone():
    source = PositionsExplorer._esm
    assert "./core.js" not in source and "export default { render }" in source
