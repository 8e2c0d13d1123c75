"""Masks: by hand, against PyTorch's two conventions, and every error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib import additive, blocked, causal_mask, padding_mask, top_k_mask, window_mask
from tests.helpers import steady

pytestmark = pytest.mark.filterwarnings("error")

sizes = st.integers(0, 13)


def picture(mask):
    """Return a mask as lines of text: x may attend, . may not."""
    return ["".join(".x"[cell] for cell in row) for row in mask.tolist()]


@steady
@given(sizes, sizes)
def test_causal_is_j_up_to_i(n_q, n_k):
    mask = causal_mask(n_q, n_k)
    assert mask.shape == (n_q, n_k)
    assert all(mask[i, j] == (j <= i) for i, j in np.ndindex(n_q, n_k))


@steady
@given(sizes, sizes, st.booleans())
def test_window_is_a_distance(n, width, causal):
    mask = window_mask(n, width, causal=causal)
    assert mask.shape == (n, n)
    for i, j in np.ndindex(n, n):
        assert mask[i, j] == (abs(i - j) <= width and (j <= i or not causal))


@steady
@given(st.lists(st.integers(0, 11), max_size=5))
def test_padding_counts_its_lengths(lengths):
    mask = padding_mask(lengths, 11)
    assert mask.shape == (len(lengths), 1, 11)
    assert mask.sum((1, 2)).tolist() == lengths
    assert (np.diff(mask.astype(int)) <= 0).all()  # what may be seen comes first


def test_all_are_bool_and_combine():
    mask = causal_mask(5) & padding_mask([3, 5], 5) & window_mask(5, 1)
    assert mask.dtype == bool
    assert picture(mask[0]) == ["x....", "xx...", ".xx..", "..x..", "....."]
    assert picture(mask[1]) == ["x....", "xx...", ".xx..", "..xx.", "...xx"]


def test_the_largest_scores_by_hand():
    scores = [[1.0, 5, 3, 2], [7, 7, 7, 7], [-np.inf, 0, -np.inf, -9], [np.nan, 4, np.nan, 5]]
    assert picture(top_k_mask(scores, 2)) == [".xx.", "xx..", ".x.x", "x.x."]
    assert picture(top_k_mask(scores, 3)) == [".xxx", "xxx.", ".x.x", "x.xx"]
    assert picture(top_k_mask(scores, 9)) == ["xxxx", "xxxx", ".x.x", "xxxx"]
    assert not top_k_mask(scores, 0).any()
    assert top_k_mask(np.ones((0, 3)), 2).shape == (0, 3)
    assert top_k_mask(np.ones((3, 0)), 2).shape == (3, 0)


@steady
@given(st.integers(0, 11), st.integers(1, 7), st.integers(0, 9))
def test_none_that_is_left_out_is_larger_than_one_that_is_chosen(n_k, k, seed):
    scores = np.random.default_rng(seed).integers(-3, 4, (2, 5, n_k)).astype(np.float32)
    chosen = top_k_mask(scores, k)
    assert chosen.dtype == bool and (chosen.sum(-1) == min(k, n_k)).all()
    least = np.where(chosen, scores, np.inf).min(-1, initial=np.inf)
    most = np.where(chosen, -np.inf, scores).max(-1, initial=-np.inf)
    assert (least >= most).all()


def test_sizes_may_be_numpy_integers():
    assert causal_mask(np.int64(2), np.uint8(3)).shape == (2, 3)
    assert window_mask(np.int32(3), np.int8(1)).sum() == 7
    assert padding_mask(np.array([1, 200], np.uint8), 300).sum((1, 2)).tolist() == [1, 200]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_additive(dtype):
    mask = additive(causal_mask(2, 3), dtype)
    assert mask.dtype == dtype
    assert mask.tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf]]
    assert additive([True, False]).dtype == np.float32
    assert additive([True], dtype.__name__).dtype == dtype
    assert additive(np.ones((0, 3), bool)).shape == (0, 3)


def test_blocked():
    mask = causal_mask(2, 3)
    assert blocked(mask).tolist() == [[False, True, True], [False, False, True]]
    assert blocked([[True, False]]).tolist() == [[False, True]]
    np.testing.assert_array_equal(blocked(blocked(mask)), mask)
    assert picture(mask) == ["x..", "xx."]  # untouched
