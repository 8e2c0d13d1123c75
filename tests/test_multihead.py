"""Many heads: by hand, against PyTorch, with a cache, by property, and every error."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch.nn import functional

from attnlib import (
    KeyValueCache,
    MultiHeadAttention,
    RMSNorm,
    additive,
    causal_mask,
    merge_heads,
    padding_mask,
    rotary,
    softmax,
    split_heads,
    window_mask,
)
from attnlib.bridge import from_torch
from tests.helpers import (
    BATCH,
    D_K,
    D_MEMORY,
    D_MODEL,
    DTYPES,
    HEADS,
    MODES,
    N_MEMORY,
    N,
    every_pair,
    masks,
    raises,
    steady,
    stirred,
    tokens,
)

pytestmark = pytest.mark.filterwarnings("error")

D_V = 13  # other than d_k, which the paper leaves open and PyTorch does not
TOLERANCE = {np.float16: 2e-2, np.float32: 1e-6, np.float64: 1e-12}


def random_layer(dtype=np.float64, *, n_heads=HEADS, d_memory=D_MODEL, seed=0):
    """Return a layer whose weights and biases are all random."""
    rng = np.random.default_rng(seed)
    d_k, d_v = n_heads * D_K, n_heads * D_V
    shapes = (D_MODEL, d_k), (d_memory, d_k), (d_memory, d_v), (d_v, D_MODEL)
    weights = [rng.normal(0, 0.3, size=shape).astype(dtype) for shape in shapes]
    biases = [rng.normal(size=shape[1]).astype(dtype) for shape in shapes]
    return MultiHeadAttention(*weights, n_heads, *biases)


@steady
@given(
    hnp.array_shapes(min_dims=0, max_dims=2, min_side=0),
    st.integers(0, 5),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_merging_undoes_splitting(leading, n, n_heads, d):
    x = np.arange(math.prod(leading) * n * n_heads * d).reshape(*leading, n, n_heads * d)
    heads = split_heads(x, n_heads)
    assert heads.shape == (*leading, n_heads, n, d)
    for head in range(n_heads):
        np.testing.assert_array_equal(heads[..., head, :, :], x[..., head * d : (head + 1) * d])
    np.testing.assert_array_equal(merge_heads(heads), x)


def test_chai_piyo_with_two_heads():
    """Head 1 looks across, as in "Chai piyo"; head 2 has the W_Q of it for keys: it sees itself."""
    across, same = [[0.0, 1], [1, 0], [0, 1], [1, 0]], [[1.0, 0], [0, 1], [1, 0], [0, 1]]
    attention = MultiHeadAttention(
        np.hstack([same, same]),
        np.hstack([across, same]),
        np.hstack([same, same]),
        np.diag([1.0, 1, 2, 3])[:, ::-1],
        2,
        b_o=[0.0, 0, 0, 1],
    )
    output, weights = attention([[1.0, 0, 1, 0], [0, 1, 0, 1]])
    a, b = 0.055807, 0.944193
    np.testing.assert_allclose(weights, [[[a, b], [b, a]], [[b, a], [a, b]]], rtol=0, atol=5e-7)
    expected = [[6 * a, 4 * b, 2 * b, 1 + 2 * a], [6 * b, 4 * a, 2 * a, 1 + 2 * b]]
    np.testing.assert_allclose(output, expected, rtol=0, atol=5e-6)


def scores_as_they_are(**options):
    """Return one head whose scores are the product of two numbers, and whose output is a value."""
    one = np.ones((1, 1))
    return MultiHeadAttention(one, one, one, one, 1, **options)


def test_a_scale_a_cap_and_a_sink_by_hand():
    x = np.array([[2.0], [1.0]])  # scores 4, 2 and 2, 1
    _, weights = scores_as_they_are(scale=math.log(2))(x)
    np.testing.assert_allclose(weights[0], [[0.8, 0.2], [2 / 3, 1 / 3]], rtol=1e-14)
    _, weights = scores_as_they_are(cap=3.0)(x)
    capped = [3 * math.tanh(score / 3) for score in (4, 2)]
    np.testing.assert_allclose(weights[0, 0], softmax(capped), rtol=1e-14)
    # ln 2 times 4 and 2 make 16 and 4; the sink ln 30 adds 30 to their sum.
    output, weights = scores_as_they_are(scale=math.log(2), sink=[math.log(30)])(x)
    np.testing.assert_allclose(weights[0, 0], [0.32, 0.08], rtol=1e-14)
    np.testing.assert_allclose(output[0], [0.72], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_extremes_of_a_sink(dtype):
    attention, x = random_layer(dtype), tokens(BATCH, N, D_MODEL, dtype=dtype)
    blocked = padding_mask([3, 0, 7], N)
    with np.errstate(all="raise"):
        plain = attention(x, mask=blocked)[1]
        none = replace(attention, sink=np.full(HEADS, -np.inf))(x, mask=blocked)[1]
        np.testing.assert_array_equal(none, plain)
        output, weights = replace(attention, sink=np.full(HEADS, 1e300))(x, mask=blocked)
    assert (weights == 0).all() and weights.dtype == output.dtype == dtype
    np.testing.assert_array_equal(output, np.broadcast_to(attention.b_o, output.shape))


@pytest.mark.parametrize("window", [None, 1, 3, 17])
@pytest.mark.parametrize("pieces", [[1] * 13, [5, 1, 0, 7], [13]])
def test_pieces_with_a_cache_are_one_pass_with_a_mask(pieces, window):
    rng, turn = np.random.default_rng(0), partial(rotary, layout="halves", base=10.0)
    attention = MultiHeadAttention.init(24, 6, rng, n_kv_heads=2, dtype=np.float64)
    attention = replace(attention, turn=turn, norm_k=RMSNorm(), cap=2.0, sink=tokens(6, seed=3))
    x, n = tokens(BATCH, 13, 24), 13
    mask = causal_mask(n) if window is None else window_mask(n, window - 1, causal=True)
    expected, weights = attention(x, mask=mask)
    cache, found, first = KeyValueCache(window), [], 0
    for size in pieces:
        piece = x[:, first : first + size]
        output, seen = attention(piece, cache=cache)
        rows = weights[..., first : first + size, first + size - seen.shape[-1] : first + size]
        np.testing.assert_allclose(seen, rows, rtol=0, atol=1e-12)
        found.append(output)
        first += size
        assert cache.n == first
        assert cache.n_kept == (first if window is None else min(first, window - 1))
    np.testing.assert_allclose(np.concatenate(found, axis=1), expected, rtol=0, atol=1e-12)


def test_a_mask_hides_more_than_a_cache_does():
    attention, x = random_layer(), tokens(BATCH, N, D_MODEL)
    hidden = padding_mask([3, 7, 1], N)
    expected = attention(x, mask=hidden & causal_mask(N))[0]
    for mask in (hidden, additive(hidden)):
        cache = KeyValueCache()
        first = attention(x[:, :4], mask=mask[..., :4], cache=cache)[0]
        rest = attention(x[:, 4:], mask=mask, cache=cache)[0]
        np.testing.assert_allclose(np.concatenate([first, rest], 1), expected, rtol=0, atol=1e-12)
    near = KeyValueCache(3)
    attention(x[:, :4], cache=near)
    rest, weights = attention(x[:, 4:], mask=hidden[..., 2:], cache=near)  # the last two are kept
    expected = attention(x, mask=hidden & window_mask(N, 2, causal=True))[0]
    np.testing.assert_allclose(rest, expected[:, 4:], rtol=0, atol=1e-12)
    assert weights.shape == (BATCH, HEADS, 3, 5)


def test_a_cache_that_does_not_fit_is_left_as_it_was():
    attention, cache = random_layer(), KeyValueCache()
    attention(tokens(BATCH, N, D_MODEL), cache=cache)
    shape = (BATCH, HEADS, N, D_K)
    kept = f"keys must have the shape of those in the cache, {shape}, the number of tokens apart; "
    with raises(ValueError, f"{kept}got {(BATCH + 1, *shape[1:])}"):
        attention(tokens(BATCH + 1, N, D_MODEL), cache=cache)
    assert cache.n == cache.n_kept == N
    needed = f"mask must broadcast to (..., n_q, n_k) = {(BATCH, N, 2 * N)}; got {(N, N)}"
    with raises(ValueError, needed):
        attention(tokens(BATCH, N, D_MODEL), mask=causal_mask(N), cache=cache)


# Against PyTorch


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_scale_a_cap_and_sinks_equal_torch(dtype, parity):
    attention, x = random_layer(dtype), tokens(BATCH, N, D_MODEL, dtype=dtype)
    sink = tokens(HEADS, dtype=dtype, seed=5)
    got, _ = replace(attention, scale=0.3, cap=1.5, sink=sink)(x, mask=causal_mask(N))
    t, w = torch.from_numpy, {name: torch.from_numpy(getattr(attention, name)) for name in (
        "w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v", "b_o")}  # fmt: skip
    queries, keys, values = (
        (t(x) @ w[f"w_{letter}"] + w[f"b_{letter}"]).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        for letter in "qkv"
    )
    scores = 1.5 * torch.tanh(queries @ keys.mT * 0.3 / 1.5)
    scores = scores.masked_fill(~t(causal_mask(N)), -torch.inf)
    with_sink = torch.cat([scores, t(sink)[None, :, None, None].expand(BATCH, -1, N, 1)], -1)
    heads = with_sink.softmax(-1)[..., :-1] @ values
    expected = heads.transpose(1, 2).flatten(-2) @ w["w_o"] + w["b_o"]
    parity("MultiHeadAttention, cap and sink", "causal", got, expected.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@every_pair(
    mode=MODES, memory=[None, D_MODEL, D_MEMORY], batch_first=[True, False], bias=[True, False]
)
def test_equals_torch(memory, batch_first, bias, mode, dtype, parity):
    module = stirred(
        torch.nn.MultiheadAttention(
            D_MODEL,
            HEADS,
            bias=bias,
            batch_first=batch_first,
            kdim=memory,
            vdim=memory,
            dtype=DTYPES[dtype],
        )
    )
    x = tokens(BATCH, N, D_MODEL, dtype=dtype)
    source = None if memory is None else tokens(BATCH, N_MEMORY, memory, dtype=dtype, seed=4)
    n_k = N if memory is None else N_MEMORY
    mask, attn_mask, key_padding_mask = masks(mode, N, n_k, dtype)
    output, weights = from_torch(module)(x, source, mask)

    def turned(tensor):
        return tensor if batch_first else tensor.transpose(0, 1)

    query = turned(torch.from_numpy(x))
    key = query if source is None else turned(torch.from_numpy(source))
    name = "MultiheadAttention" + ("" if memory is None else ", memory")
    options = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask}
    for gradients in (True, False):  # without them torch takes another way, its fast path
        with torch.set_grad_enabled(gradients):
            each = module(query, key, key, average_attn_weights=False, **options)
            mean = module(query, key, key, **options)
            alone = module(query, key, key, need_weights=False, **options)
        for got in (each[0], mean[0], alone[0]):
            parity(name, mode, output, turned(got).detach().numpy())
        parity(name, mode, weights, each[1].detach().numpy())
        parity(name, mode, weights.mean(1), mean[1].detach().numpy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bias_for_each_head_equals_torch(dtype, parity):
    module = stirred(
        torch.nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, dtype=DTYPES[dtype])
    )
    x, bias = tokens(BATCH, N, D_MODEL, dtype=dtype), tokens(BATCH, HEADS, N, N, dtype=dtype)
    bias[..., 2, 3] = -np.inf
    output, weights = from_torch(module)(x, score_bias=bias)
    query = torch.from_numpy(x)
    expected = module(
        query,
        query,
        query,
        attn_mask=torch.from_numpy(bias.reshape(BATCH * HEADS, N, N)),
        average_attn_weights=False,
    )
    parity("MultiheadAttention", "per head", output, expected[0].detach().numpy())
    parity("MultiheadAttention", "per head", weights, expected[1].detach().numpy())


# Fewer heads of keys and values; heads that are normed and turned


def grouped(n_kv_heads, n_heads=6, dtype=np.float64, **parts):
    """Return a layer whose keys and values have heads of their own number."""
    rng = np.random.default_rng(0)
    d_k, d_v, kv = n_heads * D_K, n_heads * D_V, n_kv_heads
    shapes = (D_MODEL, d_k), (D_MEMORY, kv * D_K), (D_MEMORY, kv * D_V), (d_v, D_MODEL)
    weights = [rng.normal(0, 0.3, size=shape).astype(dtype) for shape in shapes]
    biases = [rng.normal(size=shape[1]).astype(dtype) for shape in shapes]
    return MultiHeadAttention(*weights, n_heads, *biases, n_kv_heads, **parts)


@every_pair(n_kv_heads=[1, 2, 3, 6], mode=MODES, dtype=DTYPES)
def test_grouped_heads_equal_torch(n_kv_heads, mode, dtype, parity):
    layer = grouped(n_kv_heads, dtype=dtype)
    x = tokens(BATCH, N, D_MODEL, dtype=dtype)
    memory = tokens(BATCH, N_MEMORY, D_MEMORY, dtype=dtype, seed=4)
    mask, *_ = masks(mode, N, N_MEMORY, dtype)
    output, weights = layer(x, memory, mask)

    def heads(source, w, b, n):
        whole = torch.from_numpy(source) @ torch.from_numpy(w) + torch.from_numpy(b)
        return whole.unflatten(-1, (n, -1)).transpose(-2, -3)

    queries = heads(x, layer.w_q, layer.b_q, layer.n_heads)
    keys = heads(memory, layer.w_k, layer.b_k, n_kv_heads)
    values = heads(memory, layer.w_v, layer.b_v, n_kv_heads)
    attn_mask = None if mask is None else torch.from_numpy(mask.reshape(-1, 1, *mask.shape[-2:]))
    options = {"attn_mask": attn_mask, "enable_gqa": True}
    joined = functional.scaled_dot_product_attention(queries, keys, values, **options)
    expected = joined.transpose(-2, -3).flatten(-2) @ torch.from_numpy(layer.w_o)
    name = f"MultiHeadAttention, 6 and {n_kv_heads} heads"
    parity(name, mode, output, (expected + torch.from_numpy(layer.b_o)).numpy())
    each = torch.eye(N_MEMORY, dtype=DTYPES[dtype]).expand(BATCH, n_kv_heads, -1, -1)
    shares = functional.scaled_dot_product_attention(queries, keys, each, **options)
    parity(name, mode, weights, shares.numpy())


@pytest.mark.parametrize("n_kv_heads", [1, 3])
def test_masks_of_grouped_heads(n_kv_heads):
    """Padding meets the batch, `score_bias` the heads of the queries."""
    layer, bias = grouped(n_kv_heads), tokens(6, N, N_MEMORY)
    bias[4, :, 2] = -np.inf
    x, memory = tokens(BATCH, N, D_MODEL), tokens(BATCH, N_MEMORY, D_MEMORY)
    mask = padding_mask([2, 5, 1], N_MEMORY)
    memory[~mask[:, 0]] = np.nan
    output, weights = layer(x, memory, mask, score_bias=bias)
    assert np.isfinite(output).all()
    for sentence, length in enumerate([2, 5, 1]):
        part = bias[..., :length]
        alone = layer(x[sentence], memory[sentence, :length], score_bias=part)
        np.testing.assert_allclose(output[sentence], alone[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(weights[sentence, ..., :length], alone[1], rtol=0, atol=1e-12)
    assert not weights[:, 4, :, 2].any()


@pytest.mark.parametrize("dtype", [bool, np.float64])
def test_a_padding_mask_lines_up_with_the_batch_and_not_with_the_heads(dtype):
    attention, x = random_layer(n_heads=BATCH), tokens(BATCH, N, D_MODEL)
    mask = padding_mask([2, 7, 4], N)
    output, weights = attention(x, mask=mask if dtype is bool else additive(mask, dtype))
    for sentence, length in enumerate([2, 7, 4]):
        alone = attention(x[sentence], x[sentence, :length])
        np.testing.assert_allclose(output[sentence], alone[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(weights[sentence, ..., :length], alone[1], rtol=0, atol=1e-12)
        assert not weights[sentence, ..., length:].any()


@pytest.mark.parametrize(
    "shape", [(), (1,), (N_MEMORY,), (N, 1), (N, N_MEMORY), (1, 1, N_MEMORY), (BATCH, N, 1)]
)
@pytest.mark.parametrize("biased", [False, True])
def test_a_mask_broadcasts_to_the_scores(shape, biased):
    attention = random_layer()
    inputs = tokens(BATCH, N, D_MODEL), tokens(BATCH, N_MEMORY, D_MODEL)
    mask = np.random.default_rng(5).random(shape) < 0.6
    bias = tokens(HEADS, N, N_MEMORY) if biased else None
    small = attention(*inputs, mask, score_bias=bias)
    large = attention(*inputs, np.broadcast_to(mask, (BATCH, N, N_MEMORY)), score_bias=bias)
    np.testing.assert_array_equal(small[0], large[0])
    np.testing.assert_array_equal(small[1], large[1])


@pytest.mark.parametrize("kind", ["none", "bool", "additive"])
@pytest.mark.parametrize("shape", [(), (HEADS, 1, 1), (HEADS, N, N), (BATCH, HEADS, N, N)])
def test_score_bias_is_added_to_the_scores(shape, kind):
    attention, x, bias = random_layer(), tokens(BATCH, N, D_MODEL), tokens(*shape, seed=6)
    allowed = causal_mask(N) & padding_mask([3, 7, 5], N)
    added = np.where(allowed, tokens(BATCH, N, N, seed=7), -np.inf)
    mask = {"none": None, "bool": allowed, "additive": added}[kind]
    for array in (x, bias, allowed, added, *map(np.asarray, vars(attention).values())):
        array.setflags(write=False)
    queries = split_heads(x @ attention.w_q + attention.b_q, HEADS)
    keys = split_heads(x @ attention.w_k + attention.b_k, HEADS)
    scores = queries @ keys.mT / math.sqrt(D_K) + bias
    if kind == "bool":
        scores = np.where(allowed[:, None], scores, -np.inf)
    if kind == "additive":
        scores = scores + added[:, None]
    _, weights = attention(x, mask=mask, score_bias=bias)
    np.testing.assert_allclose(weights, softmax(scores), rtol=0, atol=1e-12)
    assert weights.flags.writeable


@pytest.mark.parametrize("far", [6e4, -6e4])
def test_finite_biases_of_float16_never_add_up_to_infinity(far):
    attention, x = random_layer(np.float16), tokens(N, D_MODEL, dtype=np.float16)
    bias = np.full((HEADS, N, N), far, np.float16)
    _, weights = attention(x, mask=bias[0], score_bias=bias)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=2e-3)


@pytest.mark.parametrize("how", ["bool", "additive", "score_bias", "bool and score_bias"])
def test_a_token_with_nothing_to_attend_to_gets_b_o(how):
    attention, x = random_layer(), tokens(BATCH, N, D_MODEL)
    mask = np.ones((N, N), bool)
    mask[2] = False
    options = {
        "bool": {"mask": mask},
        "additive": {"mask": additive(mask)},
        "score_bias": {"score_bias": additive(mask)},
        "bool and score_bias": {"mask": mask, "score_bias": np.tri(N)},
    }[how]
    output, weights = attention(x, **options)
    np.testing.assert_array_equal(output[:, 2], np.broadcast_to(attention.b_o, (BATCH, D_MODEL)))
    assert not weights[:, :, 2].any()
    attention.b_o = None
    assert not attention(x, **options)[0][:, 2].any()


@every_pair(dtype=TOLERANCE, of_mask=[None, bool, *TOLERANCE], of_bias=[None, *TOLERANCE])
def test_dtype_is_kept(dtype, of_mask, of_bias):
    attention, x = random_layer(dtype), tokens(N, D_MODEL, dtype=dtype)
    mask = of_mask and np.ones((N, N), of_mask)
    bias = of_bias and np.ones((HEADS, 1, N), of_bias)
    got = attention(x, mask=mask, score_bias=bias)
    assert [array.dtype for array in got] == [dtype, dtype]
    exact = random_layer(np.float64)(x.astype(np.float64))
    for array, other in zip(got, exact, strict=True):
        np.testing.assert_allclose(
            array, other, rtol=0, atol=TOLERANCE[dtype] * np.abs(other).max()
        )


def test_tokens_and_layer_meet_in_the_wider_dtype():
    layer, x = random_layer(np.float32), tokens(N, D_MODEL, dtype=np.float32)
    wide = replace(layer, b_q=layer.b_q.astype(float))  # then its queries and scores are float64
    for got in (layer(x.astype(float)), wide(x)):
        assert [array.dtype for array in got] == [np.float64, np.float64]


def test_a_mask_may_follow_the_batch_of_the_memory():
    attention, x, memory = random_layer(), tokens(N, D_MODEL), tokens(BATCH, N_MEMORY, D_MODEL)
    mask, each = padding_mask([2, 5, 1], N_MEMORY), np.broadcast_to(x, (BATCH, N, D_MODEL))
    expected = attention(each, memory, mask)[1]
    np.testing.assert_array_equal(attention(x, memory, mask)[1], expected)


@pytest.mark.parametrize(
    ("x", "memory", "leading"),
    [
        ((0,), (N_MEMORY,), ()),
        ((N,), (0,), ()),
        ((0,), (0,), ()),
        ((0, N), (0, N_MEMORY), (0,)),
        ((N,), (BATCH, N_MEMORY), (BATCH,)),
        ((BATCH, N), (N_MEMORY,), (BATCH,)),
        ((BATCH, 1, N), (4, N_MEMORY), (BATCH, 4)),
    ],
)
@pytest.mark.parametrize("mask", [None, True, 0.0])
def test_shapes(x, memory, leading, mask):
    attention = random_layer(np.float32, d_memory=D_MEMORY)
    inputs = tokens(*x, D_MODEL, dtype=np.float32), tokens(*memory, D_MEMORY, dtype=np.float32)
    bias = np.zeros((HEADS, x[-1], memory[-1]), np.float32)
    output, weights = attention(*inputs, mask, score_bias=bias)
    assert output.shape == (*leading, x[-1], D_MODEL)
    assert weights.shape == (*leading, HEADS, x[-1], memory[-1])
    if not memory[-1]:
        np.testing.assert_array_equal(output, np.broadcast_to(attention.b_o, output.shape))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("bias", "n_kv_heads"), [(True, None), (False, 4), (True, 1), (True, 2)])
def test_init(dtype, bias, n_kv_heads):
    sizes = {"n_kv_heads": n_kv_heads, "bias": bias, "dtype": dtype}
    first, again, other = (
        MultiHeadAttention.init(64, 4, np.random.default_rng(seed), **sizes) for seed in (0, 0, 1)
    )
    of_keys = 16 * (n_kv_heads or 4)
    columns = {"q": 64, "k": of_keys, "v": of_keys, "o": 64}
    for letter, width in columns.items():
        w, b = getattr(first, f"w_{letter}"), getattr(first, f"b_{letter}")
        limit = math.sqrt(6 / (64 + width))
        assert (w.shape, w.dtype) == ((64, width), dtype)
        assert 0.95 * limit < np.abs(w).max() <= limit * (1 + 1e-3)
        assert w.std() == pytest.approx(limit / math.sqrt(3), rel=0.06)  # of the uniform
        assert (b is None) != bias
        assert b is None or (b.shape, b.dtype, b.any()) == ((width,), dtype, False)
        np.testing.assert_array_equal(w, getattr(again, f"w_{letter}"))
        assert (w != getattr(other, f"w_{letter}")).any()
    assert len({getattr(first, f"w_{letter}").tobytes() for letter in "qkvo"}) == 4
    assert MultiHeadAttention.init(6, 3, np.random.default_rng(0)).b_o.dtype == np.float32


def fields(**changes):
    """Return the fields of a layer of 2 heads: d_model 6, d_memory 5, d_k 3, d_v 4."""
    shapes = {"w_q": (6, 6), "w_k": (5, 6), "w_v": (5, 8), "w_o": (8, 6)}
    return {name: np.ones(shape) for name, shape in shapes.items()} | {"n_heads": 2} | changes
