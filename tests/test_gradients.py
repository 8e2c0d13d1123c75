"""Attention backwards: by hand, by finite differences, against PyTorch, by property, and errors."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import (
    additive,
    attention_backward,
    causal_mask,
    softmax,
    softmax_backward,
)
from tests import test_attention
from tests.helpers import every_pair, steady, tokens
from tests.test_attention import BATCH, D_K, D_V, HEADS, N_K, N_Q, holes

pytestmark = pytest.mark.filterwarnings("error")

TOLERANCE = {np.float16: 4e-3, np.float32: 2e-6, np.float64: 1e-12}
DTYPES = list(TOLERANCE)
CHAI = [[2.0, 0.0], [0.0, 2.0]], [[0.0, 2.0], [2.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]


def arrays(*leading, n_q=N_Q, dtype=np.float64, seed=0, **sizes):
    """Return random queries, keys, values and a gradient of the output with these leading axes."""
    inputs = test_attention.arrays(*leading, n_q=n_q, dtype=dtype, seed=seed, **sizes)
    return [*inputs, tokens(*leading, n_q, D_V, dtype=dtype, seed=seed + 1)]


MASKS = test_attention.MASKS | {
    "one row for all": lambda dtype: holes()[2:3],
    "bias": lambda dtype: np.where(holes(HEADS), tokens(HEADS, N_Q, N_K), -np.inf).astype(dtype),
}


def torch_gradients(queries, keys, values, grad_output, mask=None, causal=False, scale=None):
    """Return the gradients that autograd gives, through torch's own attention."""
    leaves = [torch.tensor(array, requires_grad=True) for array in (queries, keys, values)]
    *leading, n_q, _ = np.broadcast_shapes(
        queries.shape, (*keys.shape[:-2], 1, 1), (*values.shape[:-2], 1, 1)
    )
    allowed = np.ones((*leading, n_q, keys.shape[-2]), bool)
    if causal:
        allowed &= causal_mask(n_q, keys.shape[-2])
    if mask is not None and mask.dtype == bool:
        allowed &= mask
    added = torch.tensor(additive(allowed, queries.dtype))
    if mask is not None and mask.dtype != bool:
        added = added + torch.tensor(mask)
    stretched = [leaf.expand(*leading, *leaf.shape[-2:]) for leaf in leaves]
    output = torch.nn.functional.scaled_dot_product_attention(
        *stretched, attn_mask=added, scale=scale
    )
    output.backward(torch.tensor(grad_output))
    return [leaf.grad.numpy() for leaf in leaves]


def assert_close(gradients, expected, tolerance=1e-10):
    for name, gradient, wanted in zip("QKV", gradients, expected, strict=True):
        assert gradient.shape == wanted.shape
        size = max(np.abs(wanted).max(initial=0), 1e-300)
        np.testing.assert_allclose(gradient, wanted, rtol=0, atol=tolerance * size, err_msg=name)


def test_softmax_backward_by_hand():
    # Weights 1/4 and 3/4; the loss is the first: 1/4 * (1 - 1/4) and 3/4 * (0 - 1/4).
    np.testing.assert_allclose(softmax_backward([0.25, 0.75], [1.0, 0.0]), [3 / 16, -3 / 16])
    # Three weights, mean of the gradient under them 0.5 * 2 + 0.3 * (-1) + 0.2 * 4 = 1.5.
    row = softmax_backward([0.5, 0.3, 0.2], [2.0, -1.0, 4.0])
    np.testing.assert_allclose(row, [0.25, -0.75, 0.5], rtol=1e-14)


def test_chai_piyo():
    # The loss is the first number of Chai's output: only row 0 is asked.
    a, b = 1 / 17.918829, 16.918829 / 17.918829
    d_scaled = 2 * a * b  # a (2 - 2a) = 2ab, and b (0 - 2a) = -2ab
    assert d_scaled == pytest.approx(0.105386, abs=5e-7)
    small = 2 * d_scaled / np.sqrt(2)
    assert small == pytest.approx(0.149038, abs=5e-7)
    d_queries, d_keys, d_values = attention_backward(*CHAI, [[1.0, 0.0], [0.0, 0.0]])
    near = {"rtol": 0, "atol": 1e-6}
    np.testing.assert_allclose(d_values, [[a, 0], [b, 0]], **near)
    np.testing.assert_allclose(d_queries, [[-small, small], [0, 0]], **near)
    np.testing.assert_allclose(d_keys, [[small, 0], [-small, 0]], **near)


def test_causal_chai_has_nothing_to_choose():
    # Chai may attend to itself alone: its weight is 1 whatever the score.
    d_queries, d_keys, d_values = attention_backward(*CHAI, [[1.0, 0.0], [0.0, 0.0]], causal=True)
    assert not d_queries.any() and not d_keys.any()
    assert d_values.tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("shape", [(N_K,), (N_Q, N_K), (2, 3, 5)])
def test_softmax_backward_equals_torch(shape):
    rng = np.random.default_rng(0)
    scores, grad = rng.normal(size=shape), rng.normal(size=shape)
    weights = softmax(scores)
    for array in (weights, grad):
        array.setflags(write=False)
    found = softmax_backward(weights, grad)
    leaf = torch.tensor(scores, requires_grad=True)
    torch.softmax(leaf, -1).backward(torch.tensor(grad))
    np.testing.assert_allclose(found, leaf.grad.numpy(), rtol=0, atol=1e-15)


@every_pair(kind=MASKS, causal=[False, True], scale=[None, -0.7], dtype=[np.float32, np.float64])
def test_equals_autograd(kind, causal, scale, dtype):
    inputs, mask = arrays(BATCH, HEADS, dtype=dtype), MASKS[kind](dtype)
    for array in (*inputs, np.asarray(mask)):
        array.setflags(write=False)
    with np.errstate(all="raise"):
        gradients = attention_backward(*inputs, mask, causal=causal, scale=scale)
    expected = torch_gradients(*inputs, mask, causal=causal, scale=scale)
    assert {gradient.dtype for gradient in gradients} == {np.dtype(dtype)}
    assert_close(gradients, expected, 1e-10 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize(
    "leading",
    [
        ((2, 1), (7,), ()),
        ((), (), (2,)),
        ((), (3,), ()),
        ((3, 1, 1), (1, 5, 1), (2,)),
        ((1,), (1,), (1,)),
        ((1, 3), (2, 1), (2, 3)),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_a_stretched_input_gets_the_sum_of_its_uses(leading, masked):
    rng = np.random.default_rng(0)
    shapes = (N_Q, D_K), (N_K, D_K), (N_K, D_V)
    inputs = [rng.normal(size=(*lead, *s)) for lead, s in zip(leading, shapes, strict=True)]
    whole = np.broadcast_shapes(*leading)
    grad_output = rng.normal(size=(*whole, N_Q, D_V))
    mask = holes(*whole) if masked else None
    gradients = attention_backward(*inputs, grad_output, mask)
    assert_close(gradients, torch_gradients(*inputs, grad_output, mask))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("as_float", [False, True])
@steady
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_blocked_reaches_no_gradient(seed, as_float, bad):
    rng = np.random.default_rng(seed)
    queries, keys, values, grad_output = arrays(HEADS, seed=seed)
    # Whole keys, and whole queries, that take no part; the others take part here and there.
    mask = rng.random((HEADS, N_Q, N_K)) < 0.7
    hidden, idle = rng.random(N_K) < 0.3, rng.random(N_Q) < 0.3
    mask[:, :, hidden], mask[:, idle] = False, False
    used = additive(mask) if as_float else mask
    clean = attention_backward(queries, keys, values, grad_output, used)
    keys[:, hidden], values[:, hidden, 0] = bad, bad
    queries[:, idle], grad_output[:, idle] = bad, bad
    with np.errstate(all="raise"):
        gradients = attention_backward(queries, keys, values, grad_output, used)
    d_queries, d_keys, d_values = gradients
    assert not d_queries[:, idle].any()
    assert not d_keys[:, hidden].any() and not d_values[:, hidden].any()
    assert_close(gradients, clean, 1e-13)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_nan_goes_only_where_it_was_attended_to(place):
    inputs = arrays(n_q=5, n_k=5)
    inputs[place][2] = np.nan  # query, key, value or gradient number 2
    d_queries, d_keys, d_values = attention_backward(*inputs, causal=True)

    def spoilt(gradient):
        return np.isnan(gradient).any(axis=1).tolist()

    row_2 = [False, False, True, False, False]
    rows = row_2 if place in (0, 3) else [False, False, True, True, True]
    assert spoilt(d_queries) == rows
    # Row 2 asks keys 0 to 2. A bad key or value spoils rows 2 to 4, and they ask all keys.
    keys = [True] * 3 + [False] * 2 if place in (0, 3) else [True] * 5
    assert spoilt(d_keys) == keys
    # A bad value leaves the weights alone, and d_values is made of these and of grad_output.
    assert spoilt(d_values) == ([False] * 5 if place == 2 else keys)
    if place == 2:  # infinity shows, too
        inputs[2][2] = np.inf
        d_queries, d_keys, d_values = attention_backward(*inputs)
        assert not np.isfinite(d_queries).any() and not np.isfinite(d_keys).any()
        assert np.isfinite(d_values).all()


# Properties


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of_grad", DTYPES)
def test_dtype_is_that_of_queries_keys_and_values(dtype, of_grad):
    *inputs, grad_output = arrays(HEADS, dtype=dtype)
    grad_output = grad_output.astype(of_grad)
    gradients = attention_backward(*inputs, grad_output, scale=np.float64(0.5))
    assert {gradient.dtype for gradient in gradients} == {np.dtype(dtype)}
    exact = attention_backward(
        *(array.astype(float) for array in inputs), grad_output.astype(float), scale=0.5
    )
    assert_close(gradients, exact, TOLERANCE[dtype])
    wide = attention_backward(inputs[0], *(x.astype(float) for x in inputs[1:]), grad_output)
    assert {gradient.dtype for gradient in wide} == {np.dtype(float)}  # the wider of the three
    weights = softmax(inputs[2])
    assert softmax_backward(weights, weights).dtype == dtype


def test_float16_is_worked_out_in_float32():
    weights = np.full(4096, 1 / 4096, np.float16)
    grad = np.full(4096, 6e4, np.float16)
    grad[0] = -6e4  # the mean is 59970.7, and the sum before it is divided 2.4e8
    found = softmax_backward(weights, grad)
    np.testing.assert_allclose(found[0], (-6e4 - 59970.7) / 4096, rtol=1e-3)
    queries, keys = np.full((1, 2), 6e4, np.float16), np.full((3, 2), 6e4, np.float16)
    gradients = attention_backward(queries, keys, keys, queries)  # scores of 5e9
    np.testing.assert_allclose(gradients[2], np.full((3, 2), 2e4), rtol=1e-3)
    assert not gradients[0].any() and not gradients[1].any()  # equal values: nothing to gain


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_large_scores_do_not_overflow(scale):
    inputs = arrays()
    with np.errstate(all="raise", under="ignore"):
        gradients = attention_backward(*inputs, scale=scale)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize(("n_q", "n_k"), [(0, 7), (5, 0), (0, 0)])
@pytest.mark.parametrize("leading", [(), (2,), (0,)])
@pytest.mark.parametrize("causal", [False, True])
def test_empty_sequences(n_q, n_k, leading, causal):
    inputs = arrays(*leading, n_q=n_q, n_k=n_k)
    with np.errstate(all="raise"):
        gradients = attention_backward(*inputs, causal=causal)
    for gradient, array in zip(gradients, inputs[:3], strict=True):
        assert gradient.shape == array.shape and not gradient.any()
    assert softmax_backward(np.zeros((3, 0)), np.zeros((3, 0))).shape == (3, 0)
