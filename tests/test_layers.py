"""Layers and stacks: by hand, against PyTorch, by property, every error."""

import math
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from attnlib import (
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    RMSNorm,
    SwiGLU,
    additive,
    causal_mask,
    gelu,
    layer_norm,
    padding_mask,
    relu,
    rms_norm,
    rotary,
    silu,
)
from attnlib.bridge import from_torch
from tests.helpers import (
    BATCH,
    D_FF,
    D_MEMORY,
    D_MODEL,
    DTYPES,
    HEADS,
    MODES,
    N_MEMORY,
    N,
    every_pair,
    masks,
    parts,
    steady,
    stirred,
    tokens,
)

pytestmark = pytest.mark.filterwarnings("error")

TOLERANCE = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}
ACTIVATIONS = {"relu": relu, "gelu": gelu}
LENGTHS = [3, 7, 1]
few = settings(steady, max_examples=20)  # of whole stacks
either = pytest.mark.parametrize("norm_first", [False, True])


def moved(layer, seed=0):
    """Return a layer or a stack with every number, norms' included, away from its default."""
    rng = np.random.default_rng(seed)
    for part in parts(layer):
        for name, field in vars(part).items():
            if isinstance(field, np.ndarray):
                noise = rng.normal(0, 0.2, size=field.shape).astype(field.dtype)
                setattr(part, name, field + noise)
    return layer


def arrays(layer):
    """Return all arrays of a layer or of a stack."""
    fields = (field for part in parts(layer) for field in vars(part).values())
    return [field for field in fields if isinstance(field, np.ndarray)]


def of_kind(kind, layer):
    """Return all parts of a layer that are of one kind."""
    return [part for part in parts(layer) if isinstance(part, kind)]


def encoder_layer(dtype=np.float64, seed=0, **options):
    rng = np.random.default_rng(seed)
    return moved(EncoderLayer.init(D_MODEL, HEADS, D_FF, rng, dtype=dtype, **options), seed)


def encoder(dtype=np.float64, n_layers=3, **options):
    rng = np.random.default_rng(0)
    return moved(Encoder.init(n_layers, D_MODEL, HEADS, D_FF, rng, dtype=dtype, **options))


def decoder_layer(dtype=np.float64, **options):
    rng = np.random.default_rng(0)
    return moved(DecoderLayer.init(D_MODEL, HEADS, D_FF, rng, dtype=dtype, **options))


# Against PyTorch


def torch_options(norm_first, activation, bias, dtype):
    """Return how to build a layer of torch."""
    return {
        "dim_feedforward": D_FF,
        "dropout": 0.3,  # gone in eval()
        "activation": activation,
        "layer_norm_eps": 1e-3,
        "batch_first": True,
        "norm_first": norm_first,
        "bias": bias,
        "dtype": DTYPES[dtype],
    }


def called(module, *inputs, fast=True, **options):
    """Yield the output of a module of torch, with gradients and on the fast path without.

    That path blocks wherever an additive mask is not 0 (pytorch issue 118628).
    """
    for gradients in (True, False) if fast else (True,):
        with torch.set_grad_enabled(gradients):
            output = module(*map(torch.from_numpy, inputs), **options)
        yield output.detach().numpy()


def in_every_mode(**more):
    """Run a test with the options that a layer of torch has."""
    of_torch = {"bias": [True, False], "activation": ACTIVATIONS, "norm_first": [False, True]}
    cases = every_pair(mode=MODES, **of_torch, **more)
    return lambda test: pytest.mark.parametrize("dtype", DTYPES)(cases(test))


def named(module, norm_first):
    return f"{type(module).__name__}, {'pre' if norm_first else 'post'}-norm"


@in_every_mode()
def test_encoder_layer_equals_torch(norm_first, activation, bias, mode, dtype, parity):
    options = torch_options(norm_first, activation, bias, dtype)
    module = stirred(torch.nn.TransformerEncoderLayer(D_MODEL, HEADS, **options))
    x, (mask, attn, padding) = tokens(BATCH, N, D_MODEL, dtype=dtype), masks(mode, N, N, dtype)
    got, _ = from_torch(module)(x, mask)
    valid = np.ones((BATCH, N), bool) if padding is None else ~padding.numpy()
    options = {"src_mask": attn, "src_key_padding_mask": padding, "fast": mode != "additive"}
    for expected in called(module, x, **options):
        # The fast path of torch writes zeros where there is padding.
        parity(named(module, norm_first), mode, got[valid], expected[valid])


@in_every_mode(final_norm=[False, True])
def test_encoder_equals_torch(final_norm, norm_first, activation, bias, mode, dtype, parity):
    options = torch_options(norm_first, activation, bias, dtype)
    layer = torch.nn.TransformerEncoderLayer(D_MODEL, HEADS, **options)
    norm = torch.nn.LayerNorm(D_MODEL, 1e-2, bias=bias, dtype=DTYPES[dtype]) if final_norm else None
    module = stirred(torch.nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False))
    x, (mask, attn, padding) = tokens(BATCH, N, D_MODEL, dtype=dtype), masks(mode, N, N, dtype)
    got, weights = from_torch(module)(x, mask)
    assert [array.shape for array in weights] == [(BATCH, HEADS, N, N)] * 2
    valid = np.ones((BATCH, N), bool) if padding is None else ~padding.numpy()
    options = {"mask": attn, "src_key_padding_mask": padding, "fast": mode != "additive"}
    for expected in called(module, x, **options):
        parity(named(module, norm_first), mode, got[valid], expected[valid])


@in_every_mode()
def test_decoder_layer_equals_torch(norm_first, activation, bias, mode, dtype, parity):
    options = torch_options(norm_first, activation, bias, dtype)
    module = stirred(torch.nn.TransformerDecoderLayer(D_MODEL, HEADS, **options))
    x = tokens(BATCH, N, D_MODEL, dtype=dtype)
    memory = tokens(BATCH, N_MEMORY, D_MODEL, dtype=dtype, seed=4)
    mask, attn, padding = masks(mode, N, N, dtype)
    memory_mask, memory_attn, memory_padding = masks(mode, N, N_MEMORY, dtype)
    got, _, _ = from_torch(module)(x, memory, mask, memory_mask)
    for expected in called(
        module,
        x,
        memory,
        tgt_mask=attn,
        memory_mask=memory_attn,
        tgt_key_padding_mask=padding,
        memory_key_padding_mask=memory_padding,
    ):
        parity(named(module, norm_first), mode, got, expected)


# What a layer returns


@either
def test_weights_are_those_of_the_attentions(norm_first):
    mask, memory_mask = causal_mask(N), padding_mask([2, 5, 1], N_MEMORY)
    x, memory = tokens(BATCH, N, D_MODEL), tokens(BATCH, N_MEMORY, D_MODEL, seed=4)
    layer = decoder_layer(norm_first=norm_first)
    _, own, cross = layer(x, memory, mask, memory_mask)
    first = layer.norm_1(x) if norm_first else x
    attended, expected = layer.attention(first, mask=mask)
    np.testing.assert_array_equal(own, expected)
    second = (layer.norm_2 if norm_first else layer.norm_1)(x + attended)
    _, expected = layer.cross_attention(second, memory, memory_mask)
    np.testing.assert_array_equal(cross, expected)
    assert cross.shape == (BATCH, HEADS, N, N_MEMORY)


@either
def test_a_stack_is_its_layers_in_turn(norm_first):
    stack, x, mask = encoder(norm_first=norm_first), tokens(BATCH, N, D_MODEL), causal_mask(N)
    assert (stack.norm is None) != norm_first  # a final norm comes with norm_first
    expected, kept = x, []
    for layer in stack.layers:
        expected, weights = layer(expected, mask)
        kept.append(weights)
    if norm_first:
        expected = stack.norm(expected)
    got, weights = stack(x, mask)
    np.testing.assert_array_equal(got, expected)
    for one, other in zip(weights, kept, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", DTYPES)
@either
def test_a_layer_of_other_parts_equals_torch(norm_first, dtype, parity):
    """RMSNorm, SwiGLU, grouped, normed and turned heads: each part as torch has it."""
    rng = np.random.default_rng(0)
    n_heads, d = 6, 4
    d_model = n_heads * d

    def random(*shape):
        return rng.normal(0, 0.3, size=shape).astype(dtype)

    turn = partial(rotary, layout="halves")
    attention = MultiHeadAttention(
        random(d_model, d_model), random(d_model, 3 * d), random(d_model, 3 * d),
        random(d_model, d_model), n_heads, n_kv_heads=3, turn=turn,
        norm_q=RMSNorm(random(d)), norm_k=RMSNorm(random(d)),
    )  # fmt: skip
    network = SwiGLU(random(d_model, D_FF), random(d_model, D_FF), random(D_FF, d_model))
    norms = RMSNorm(random(d_model)), RMSNorm(random(d_model))
    layer = EncoderLayer(attention, network, *norms, norm_first=norm_first)
    x = tokens(BATCH, N, d_model, dtype=dtype)

    def norm(t, part):
        return functional.rms_norm(t, t.shape[-1:], torch.from_numpy(part.gamma), part.eps)

    def attend(t):
        queries, keys, values = (
            (t @ torch.from_numpy(w)).unflatten(-1, (-1, d)).transpose(-2, -3)
            for w in (attention.w_q, attention.w_k, attention.w_v)
        )
        queries, keys = norm(queries, attention.norm_q), norm(keys, attention.norm_k)
        queries, keys = (torch.from_numpy(turn(part.numpy())) for part in (queries, keys))
        heads = functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=True, enable_gqa=True
        )
        return heads.transpose(-2, -3).flatten(-2) @ torch.from_numpy(attention.w_o)

    def think(t):
        gate, up, down = map(torch.from_numpy, (network.w_gate, network.w_up, network.w_down))
        return (functional.silu(t @ gate) * (t @ up)) @ down

    t = torch.from_numpy(x)
    if norm_first:
        t = t + attend(norm(t, norms[0]))
        t = t + think(norm(t, norms[1]))
    else:
        t = norm(t + attend(t), norms[0])
        t = norm(t + think(t), norms[1])
    parity("RMSNorm, SwiGLU, grouped heads", "causal", layer(x, causal_mask(N))[0], t.numpy())


def test_layers_are_told_apart_by_identity():
    """Equal fields would be compared as arrays, and a layer could not be a key."""
    one, other = (
        [encoder(), decoder_layer(), RMSNorm(), SwiGLU(*np.ones((3, 6, 6)))] for _ in range(2)
    )
    held = [part for layer in (*one, *other) for part in parts(layer)]
    assert len(set(held)) == len(held)


def test_a_layer_reads_its_mask_once_and_checks_little_else():
    """One call of a layer made 94 calls in this library when every part checked all again."""
    layer, x, calls = encoder_layer(), tokens(BATCH, N, D_MODEL), []

    def count(frame, event, argument):
        if event == "call" and frame.f_globals.get("__name__", "").startswith("attnlib."):
            calls.append(frame.f_code.co_qualname)

    for mask in (None, causal_mask(N), padding_mask(LENGTHS, N), additive(causal_mask(N))):
        calls.clear()
        sys.setprofile(count)
        layer(x, mask)
        sys.setprofile(None)
        assert 10 < len(calls) <= 60, calls
        assert calls.count("read_mask") == 1


def test_four_places_for_a_norm():
    """What each placement computes, from the parts themselves."""
    layer, x = encoder_layer(), tokens(BATCH, N, D_MODEL)
    attend, network = (lambda y: layer.attention(y)[0]), layer.feed_forward
    norms = [moved(RMSNorm(np.ones(D_MODEL)), seed) for seed in range(4)]
    a, b, c, d = norms
    after = {"after_1": c, "after_2": d}
    every = after | {"norm_1": a, "norm_2": b}
    for norm_first, placed, first, last in (
        # OLMo 2: after alone, wherever the other norms would stand.
        (False, after, lambda y: y + c(attend(y)), lambda y: y + d(network(y))),
        (True, after, lambda y: y + c(attend(y)), lambda y: y + d(network(y))),
        # Gemma: before and after.
        (True, every, lambda y: y + c(attend(a(y))), lambda y: y + d(network(b(y)))),
        (False, every, lambda y: a(y + c(attend(y))), lambda y: b(y + d(network(y)))),
        (False, {}, lambda y: y + attend(y), lambda y: y + network(y)),
    ):
        built = EncoderLayer(layer.attention, network, norm_first=norm_first, **placed)
        np.testing.assert_allclose(built(x)[0], last(first(x)), rtol=0, atol=1e-12)


def test_any_attention_is_a_part():
    seen = []

    def mean_of_all(x, mask=None):
        seen.append(mask)
        return np.broadcast_to(x.mean(-2, keepdims=True), x.shape), None

    layer, x, mask = EncoderLayer(mean_of_all, np.negative), tokens(BATCH, N, D_FF), causal_mask(N)
    output, weights = layer(x, mask)
    assert weights is None and seen == [mask]
    np.testing.assert_allclose(output, np.zeros_like(x), rtol=0, atol=1e-15)
    assert layer.d_model is None
    assert replace(layer, norm_2=RMSNorm(np.ones(D_FF))).d_model == D_FF
    assert Encoder([layer, encoder_layer()], LayerNorm(np.ones(D_MODEL))).layers[0] is layer
    assert Encoder([layer], RMSNorm())(x)[0].shape == x.shape


@either
@few
@given(st.integers(0, 2**32 - 1), st.permutations(range(N)))
def test_shuffled_tokens_shuffle_the_output(norm_first, seed, order):
    x, memory = tokens(N, D_MODEL, seed=seed), tokens(N_MEMORY, D_MODEL)
    stack, layer = encoder(norm_first=norm_first), decoder_layer(norm_first=norm_first)
    np.testing.assert_allclose(stack(x[order])[0], stack(x)[0][order], rtol=0, atol=1e-12)
    got = layer(x[order], memory[::-1])[0]  # and the order of the memory does not matter
    np.testing.assert_allclose(got, layer(x, memory)[0][order], rtol=0, atol=1e-12)


@either
@few
@given(st.integers(0, 2**32 - 1), st.integers(0, N - 1))
def test_causal_outputs_do_not_move_with_what_comes_later(norm_first, seed, changed):
    before, memory, mask = tokens(N, D_MODEL, seed=seed), tokens(N_MEMORY, D_MODEL), causal_mask(N)
    after = before.copy()
    after[changed] += np.arange(D_MODEL)  # not by one number for all, which a norm takes out
    layer, stack = encoder_layer(norm_first=norm_first), encoder(norm_first=norm_first)
    decoder = decoder_layer(norm_first=norm_first)
    for call in (
        lambda x: layer(x, mask)[0],
        lambda x: stack(x, mask)[0],
        lambda x: decoder(x, memory, mask)[0],
    ):
        moves = (call(before) != call(after)).any(-1)
        assert moves.tolist() == [i >= changed for i in range(N)]


@either
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("as_float", [False, True])
def test_what_is_padding_never_reaches_a_token(as_float, bad, norm_first):
    x, memory = tokens(BATCH, N, D_MODEL), tokens(BATCH, N_MEMORY, D_MODEL)
    mask, memory_mask = padding_mask(LENGTHS, N), padding_mask([2, 5, 1], N_MEMORY)
    dirty, dirty_memory = x.copy(), memory.copy()
    dirty[~mask[:, 0]], dirty_memory[~memory_mask[:, 0]] = bad, bad
    valid = mask[:, 0]
    if as_float:
        mask, memory_mask = additive(mask), additive(memory_mask)
    stack, decoder = encoder(norm_first=norm_first), decoder_layer(norm_first=norm_first)
    for call in (
        lambda x, memory: stack(x, mask)[0],
        lambda x, memory: decoder(x, memory, mask, memory_mask)[0],
    ):
        clean = call(x, memory)
        with np.errstate(all="raise"):
            got = call(dirty, dirty_memory)
        assert np.isfinite(clean).all()
        np.testing.assert_allclose(got[valid], clean[valid], rtol=0, atol=1e-12)


@every_pair(norm_first=[False, True], dtype=TOLERANCE, of_mask=[None, bool, np.float64])
def test_dtype_is_kept(norm_first, dtype, of_mask):
    mask = of_mask and np.ones((N, N), of_mask)
    memory_mask = of_mask and np.ones((N, N_MEMORY), of_mask)
    x, memory = tokens(N, D_MODEL, dtype=dtype), tokens(N_MEMORY, D_MODEL, dtype=dtype, seed=4)
    for make, inputs in ((encoder, (x, mask)), (decoder_layer, (x, memory, mask, memory_mask))):
        layer = make(dtype, norm_first=norm_first, activation=gelu)
        for norm in of_kind(LayerNorm, layer):
            norm.eps = np.float64(1e-5)
        assert {array.dtype.type for array in arrays(layer)} == {dtype}
        output, weights, *_ = layer(*inputs)
        assert output.dtype == weights[0].dtype == dtype
    exact = encoder_layer(norm_first=norm_first)(x.astype(np.float64))[0]
    got = encoder_layer(dtype, norm_first=norm_first)(x)[0]
    np.testing.assert_allclose(got, exact, rtol=0, atol=20 * TOLERANCE[dtype])


@either
def test_inputs_are_unchanged(norm_first):
    stack, decoder = encoder(norm_first=norm_first), decoder_layer(norm_first=norm_first)
    shapes = (N, D_MODEL), (N_MEMORY, D_MODEL), (N, N), (N, N_MEMORY)
    inputs = [tokens(BATCH, *shape) for shape in shapes]
    held = [*inputs, *arrays(stack), *arrays(decoder)]
    for array in held:
        array.setflags(write=False)
    copies = [array.copy() for array in held]
    output, weights = stack(inputs[0], inputs[2])
    results = [output, *weights, *decoder(*inputs)]
    results += [call(inputs[0]) for call in (layer_norm, rms_norm, relu, gelu, silu)]
    results += [call(inputs[0]) for call in (LayerNorm(), RMSNorm())]
    for result in results:
        assert result.flags.writeable
        assert not any(np.shares_memory(result, array) for array in held)
    for array, copy in zip(held, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@either
def test_empty_sentences(norm_first):
    nothing, x = np.zeros((BATCH, 0, D_MODEL)), tokens(BATCH, N, D_MODEL)
    output, weights = encoder(norm_first=norm_first)(nothing)
    assert (output.shape, weights[0].shape) == (nothing.shape, (BATCH, HEADS, 0, 0))
    decoder = decoder_layer(norm_first=norm_first)
    for tokens_in, memory in ((nothing, x), (x, nothing), (nothing, nothing)):
        output, own, cross = decoder(tokens_in, memory)
        assert output.shape == tokens_in.shape
        n, n_memory = tokens_in.shape[1], memory.shape[1]
        assert own.shape == (BATCH, HEADS, n, n)
        assert cross.shape == (BATCH, HEADS, n, n_memory)
        assert np.isfinite(output).all()


def test_a_memory_of_another_width():
    shapes = (D_MODEL, D_MODEL), (D_MEMORY, D_MODEL), (D_MEMORY, D_MODEL), (D_MODEL, D_MODEL)
    cross = MultiHeadAttention(*(tokens(*shape) for shape in shapes), HEADS)
    layer = replace(decoder_layer(), cross_attention=cross)
    output, _, weights = layer(tokens(BATCH, N, D_MODEL), tokens(N_MEMORY, D_MEMORY))
    assert output.shape == (BATCH, N, D_MODEL)
    assert weights.shape == (BATCH, HEADS, N, N_MEMORY)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer, partial(Encoder.init, 2)])
def test_init(kind):
    make = getattr(kind, "init", kind)
    whole = make(6, 3, 64, np.random.default_rng(0))
    assert {array.dtype.type for array in arrays(whole)} == {np.float32}
    for network in of_kind(FeedForward, whole):
        assert (network.w_1.shape, network.w_2.shape) == ((6, 64), (64, 6))
        for w in (network.w_1, network.w_2):
            assert 0.95 * math.sqrt(6 / 70) < np.abs(w).max() <= math.sqrt(6 / 70)
        assert network.activation is relu
        assert not np.concatenate([network.b_1, network.b_2]).any()
    for norm in of_kind(LayerNorm, whole):
        assert (norm.gamma.tolist(), norm.beta.tolist(), norm.eps) == ([1] * 6, [0] * 6, 1e-5)
    attentions = of_kind(MultiHeadAttention, whole)
    assert len({attention.w_q.tobytes() for attention in attentions}) == len(attentions)
    assert {attention.n_heads for attention in attentions} == {3}
    other = make(6, 3, 8, np.random.default_rng(0), norm_first=True, activation=gelu)
    final = kind is not EncoderLayer and kind is not DecoderLayer  # a norm behind the stack
    assert len(of_kind(LayerNorm, other)) == len(of_kind(LayerNorm, whole)) + final
    layers = of_kind((EncoderLayer, DecoderLayer), other)
    assert {(layer.norm_first, layer.feed_forward.activation) for layer in layers} == {(True, gelu)}
    layer = of_kind((EncoderLayer, DecoderLayer), whole)[0]
    assert not layer.norm_first
    np.testing.assert_array_equal(layers[0].attention.w_q, layer.attention.w_q)  # one generator


def small(kind, **changes):
    """Return a layer of d_model 6, 2 heads and d_ff 4; change parts of it, or fields of parts."""
    layer = kind.init(6, 2, 4, np.random.default_rng(0), dtype=np.float64)
    for name, change in changes.items():
        if isinstance(change, dict):
            changes[name] = replace(getattr(layer, name), **change)
    return replace(layer, **changes)


def wider(d_q=6, d_memory=6, d_out=6):
    """Return an attention between other widths."""
    return MultiHeadAttention(
        np.ones((d_q, 6)), np.ones((d_memory, 6)), np.ones((d_memory, 6)), np.ones((6, d_out)), 2
    )


def with_memory():
    """Return a decoder layer that has its memory."""
    return partial(small(DecoderLayer), memory=np.ones((2, 5, 6)))
