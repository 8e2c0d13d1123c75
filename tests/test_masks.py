"""Masks: by hand, against PyTorch's two conventions, and every error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib import additive, blocked, causal_mask, padding_mask, window_mask
from tests.helpers import raises, steady

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


@pytest.mark.parametrize("wrong", [2.0, "3", None, True, [3]])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("n_q", causal_mask),
        ("n_k", lambda size: causal_mask(3, size) if size is not None else padding_mask([], None)),
        ("n_k", lambda size: padding_mask([1], size)),
        ("n", lambda size: window_mask(size, 1)),
        ("width", lambda size: window_mask(3, size)),
    ],
)
def test_refuses_sizes_that_are_not_whole(name, call, wrong):
    with raises(TypeError, f"{name} must be a whole number; got {wrong!r}"):
        call(wrong)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("n_q", lambda: causal_mask(-1)),
        ("n_k", lambda: causal_mask(3, -1)),
        ("n_k", lambda: padding_mask([], -1)),
        ("n", lambda: window_mask(-1, 1)),
        ("width", lambda: window_mask(3, -1)),
    ],
)
def test_refuses_sizes_below_zero(name, call):
    with raises(ValueError, f"{name} must be 0 or more; got -1"):
        call()


@pytest.mark.parametrize(
    ("lengths", "error", "message"),
    [
        ([2, 6], ValueError, "lengths must lie between 0 and n_k = 5; got [2, 6]"),
        ([-1, 3], ValueError, "lengths must lie between 0 and n_k = 5; got [-1, 3]"),
        (3, ValueError, "lengths must be a vector (batch,); got shape ()"),
        ([[1, 2]], ValueError, "lengths must be a vector (batch,); got shape (1, 2)"),
        ([[1], [2, 3]], ValueError, "lengths must have rows of one length; got unequal rows"),
        ([1.5], TypeError, "lengths must be whole numbers; got float64"),
        ([True], TypeError, "lengths must be whole numbers; got bool"),
        (["a"], TypeError, "lengths must be whole numbers; got <U1"),
    ],
)
def test_refuses_wrong_lengths(lengths, error, message):
    with raises(error, message):
        padding_mask(lengths, 5)


@pytest.mark.parametrize("translate", [additive, blocked])
@pytest.mark.parametrize(
    ("wrong", "came"), [([[1, 0]], "int64"), ([[0.0]], "float64"), ([], "float64")]
)
def test_refuses_masks_that_are_not_bool(translate, wrong, came):
    with raises(TypeError, f"mask must be bool (True = may attend); got {came}"):
        translate(wrong)
    with raises(ValueError, "mask must have rows of one length; got unequal rows"):
        translate([[True], [True, False]])


@pytest.mark.parametrize(
    ("dtype", "came"),
    [(int, "<class 'numpy.int64'>"), (bool, "<class 'numpy.bool'>"), ("floaty", "'floaty'")],
)
def test_additive_refuses_a_dtype_that_is_no_float(dtype, came):
    with raises(TypeError, f"dtype must be float16, float32 or float64; got {came}"):
        additive([True], dtype)
