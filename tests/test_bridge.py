"""The bridge: both ways and back without a bit of difference, and everything it cannot carry."""

from dataclasses import is_dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

from attnlib import (
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    gelu,
    relu,
)
from attnlib.bridge import from_torch, to_torch
from tests.helpers import (
    BATCH,
    D_FF,
    D_MEMORY,
    D_MODEL,
    DTYPES,
    HEADS,
    N_MEMORY,
    N,
    parts,
    stirred,
    tokens,
)

pytestmark = pytest.mark.filterwarnings("error")

KINDS = ["attention", "wider memory", "encoder layer", "encoder", "decoder layer", "normed encoder"]
DTYPES = DTYPES | {np.float16: torch.float16}


def torch_module(kind, *, bias=True, dtype=torch.float64, norm_first=False, activation="relu"):
    """Return a module of torch with no parameter at its default."""
    if kind in ("attention", "wider memory"):
        width = D_MEMORY if kind == "wider memory" else None
        attention = nn.MultiheadAttention(
            D_MODEL, HEADS, bias=bias, kdim=width, vdim=width, batch_first=True, dtype=dtype
        )
        return stirred(attention)
    make = nn.TransformerDecoderLayer if kind == "decoder layer" else nn.TransformerEncoderLayer
    module = make(
        D_MODEL,
        HEADS,
        D_FF,
        activation=activation,
        layer_norm_eps=1e-3,
        norm_first=norm_first,
        bias=bias,
        batch_first=True,
        dtype=dtype,
    )
    if "encoder" in kind and "layer" not in kind:
        norm = nn.LayerNorm(D_MODEL, 1e-2, bias=bias, dtype=dtype) if "norm" in kind else None
        module = nn.TransformerEncoder(module, 2, norm, enable_nested_tensor=False)
    return stirred(module)


def numbers(layer):
    """Return all fields that are not layers themselves: arrays, None, heads, epsilons, choices."""
    return [
        (type(part).__name__, name, field)
        for part in parts(layer)
        for name, field in vars(part).items()
        if not (isinstance(field, list) or is_dataclass(field))
    ]


def inputs(kind):
    """Return a batch of tokens, and a memory where one is needed."""
    x = tokens(BATCH, N, D_MODEL)
    width = {"wider memory": D_MEMORY, "decoder layer": D_MODEL}.get(kind)
    return (x,) if width is None else (x, tokens(BATCH, N_MEMORY, width))


def run(module, *arrays):
    """Return what a module of torch gives for arrays."""
    tensors = [torch.from_numpy(array) for array in arrays]
    if isinstance(module, nn.MultiheadAttention):
        tensors = tensors[0], tensors[-1], tensors[-1]
    output = module(*tensors)
    return (output[0] if isinstance(output, tuple) else output).detach().numpy()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(kind, bias, dtype):
    for norm_first, activation in ((False, "gelu"), (True, "relu")):
        options = {"norm_first": norm_first, "activation": activation}
        assert_there_and_back(torch_module(kind, bias=bias, dtype=DTYPES[dtype], **options))


def assert_there_and_back(module):
    layer = from_torch(module)
    back = to_torch(layer)
    assert type(back) is type(module)
    assert not back.training
    assert all(parameter.requires_grad for parameter in back.parameters())
    theirs, ours = module.state_dict(), back.state_dict()
    assert theirs.keys() == ours.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype
        assert torch.equal(ours[name], tensor), name
    again = from_torch(back)
    for one, other in zip(numbers(again), numbers(layer), strict=True):
        assert one[:2] == other[:2]
        np.testing.assert_array_equal(one[2], other[2], err_msg=str(one[:2]), strict=True)


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU(), nn.functional.relu, "gelu"])
def test_activations_of_every_spelling(activation):
    name = str(getattr(activation, "__name__", activation)).lower()
    layer = from_torch(torch_module("encoder layer", activation=activation))
    assert layer.feed_forward.activation is (relu if "relu" in name else gelu)


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_are_copies(kind):
    module = torch_module(kind)
    layer = from_torch(module)
    held = [field.copy() for *_, field in numbers(layer) if isinstance(field, np.ndarray)]
    back = to_torch(layer)
    for changed in (module, back):
        with torch.no_grad():
            for parameter in changed.parameters():
                parameter.zero_()
    kept = [field for *_, field in numbers(layer) if isinstance(field, np.ndarray)]
    for array, copy in zip(kept, held, strict=True):
        np.testing.assert_array_equal(array, copy)
        assert array.flags.writeable
        array[:] = 1
    assert not any(parameter.any() for parameter in back.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_where_only_some_biases_are_missing_they_become_0(kind):
    layer, arrays = from_torch(torch_module(kind)), inputs(kind)
    missing = {MultiHeadAttention: ["b_k", "b_v"], FeedForward: ["b_2"], LayerNorm: ["gamma"]}
    for part in parts(layer):
        for name in missing.get(type(part), ()):
            setattr(part, name, None)
    for part in parts(layer):
        if isinstance(part, EncoderLayer | DecoderLayer):
            part.norm_1.beta = None
    back = to_torch(layer)
    np.testing.assert_allclose(run(back, *arrays), layer(*arrays)[0], rtol=0, atol=1e-12)
    again = from_torch(back)
    for (_, name, field), (*_, before) in zip(numbers(again), numbers(layer), strict=True):
        if before is None and field is not None:
            assert field.tolist() == [float(name == "gamma")] * len(field)
        else:
            np.testing.assert_array_equal(field, before)


@pytest.mark.parametrize(
    ("kind", "part", "name"),
    [
        ("encoder layer", "attention", "b_q"),
        ("encoder layer", "attention", "b_o"),
        ("encoder layer", "feed_forward", "b_1"),
        ("encoder layer", "feed_forward", "b_2"),
        ("encoder layer", "norm_1", "beta"),
        ("encoder layer", "norm_2", "beta"),
        ("decoder layer", "cross_attention", "b_o"),
    ],
)
def test_one_bias_alone_comes_over(kind, part, name):
    layer, arrays = from_torch(torch_module(kind, bias=False)), inputs(kind)
    setattr(getattr(layer, part), name, tokens(D_FF if name == "b_1" else D_MODEL))
    np.testing.assert_allclose(run(to_torch(layer), *arrays), layer(*arrays)[0], rtol=0, atol=1e-12)


def test_norms_without_weights():
    """They count as 1 and 0; a final norm must not vanish with its weights."""
    layer = torch_module("encoder layer")
    layer.norm1 = nn.LayerNorm(D_MODEL, 1e-3, elementwise_affine=False)
    final = nn.LayerNorm(D_MODEL, 1e-2, elementwise_affine=False)
    module = nn.TransformerEncoder(layer, 2, final, enable_nested_tensor=False).eval()
    stack, x = from_torch(module), tokens(N, D_MODEL)
    for norm, eps in ((stack.layers[0].norm_1, 1e-3), (stack.norm, 1e-2)):
        assert (norm.gamma, norm.beta, norm.eps) == (None, None, eps)
    np.testing.assert_allclose(stack(x)[0], run(module, x), rtol=0, atol=1e-12)
    np.testing.assert_allclose(run(to_torch(stack), x), run(module, x), rtol=0, atol=1e-12)


def test_layers_of_a_stack_may_differ():
    one, other = torch_module("encoder layer"), torch_module("encoder layer", norm_first=True)
    stack, x = Encoder([from_torch(one), from_torch(other)]), tokens(N, D_MODEL)
    stack.layers[1].feed_forward.activation = gelu
    np.testing.assert_allclose(run(to_torch(stack), x), stack(x)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["encoder layer", "decoder layer"])
def test_each_norm_keeps_its_own_epsilon(kind):
    module, arrays = torch_module(kind), inputs(kind)
    norms = [part for part in module.modules() if isinstance(part, nn.LayerNorm)]
    for number, norm in enumerate(norms, start=1):
        norm.eps = number / 10
    layer, expected = from_torch(module), run(module, *arrays)
    assert [part.eps for part in parts(layer) if isinstance(part, LayerNorm)] == [
        norm.eps for norm in norms
    ]
    for got in (layer(*arrays)[0], run(to_torch(layer), *arrays)):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def attention(d_k=3, d_v=3, d_out=6, d_memory=6, n_heads=2):
    """Return an attention of d_model 6 between widths that torch may not have."""
    shapes = (6, 2 * d_k), (d_memory, 2 * d_k), (d_memory, 2 * d_v), (2 * d_v, d_out)
    return MultiHeadAttention(*map(np.ones, shapes), n_heads)


def network(activation):
    """Return a feed-forward network of d_model 6."""
    return FeedForward(np.ones((6, 4)), None, np.ones((4, 6)), None, activation)


def small(kind, **changes):
    """Return a layer of d_model 6, with some parts changed."""
    return replace(kind.init(6, 2, 4, np.random.default_rng(0), dtype=np.float64), **changes)


NORM, NONE = "must be a LayerNorm for torch; got", "must be None for torch; got <ufunc 'negative'>"


def narrow():
    """Return a layer of another dtype."""
    return EncoderLayer.init(6, 2, 4, np.random.default_rng(0), dtype=np.float32)


def changed(module, **parts):
    """Return a module of torch with some parts changed."""
    for name, part in parts.items():
        setattr(module, name, part)
    return module
