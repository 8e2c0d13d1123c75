"""To PyTorch: a layer of this library becomes the module of torch that computes the same."""

from dataclasses import is_dataclass

import numpy as np

from attnlib.feed_forward import FeedForward, gelu, relu
from attnlib.layers import DecoderLayer, Encoder, EncoderLayer
from attnlib.multihead import MultiHeadAttention
from attnlib.norms import LayerNorm


def to_torch(layer):
    """Return the torch module that computes what a layer of this library does.

    Parameters
    ----------
    layer : MultiHeadAttention, EncoderLayer, Encoder or DecoderLayer

    Returns
    -------
    torch.nn.MultiheadAttention, TransformerEncoderLayer, TransformerEncoder or \
TransformerDecoderLayer
        In `eval()`, with `batch_first=True`, no dropout, copies of the weights and their dtype.
        Where only some biases are None, they become zeros.

    Raises
    ------
    TypeError
        If `layer` is something else.
    ValueError
        If torch has no such module: a norm other than `LayerNorm`, a feed-forward network other
        than `FeedForward`, an activation other than `relu` and `gelu`, fewer heads of keys than of
        queries, turned or normed heads, heads narrower or wider than d_model / n_heads, an output
        of another width, weights of several dtypes, a decoder layer whose memory has a width of
        its own or whose attentions differ in heads.

    Source
    ------
    The documentation of torch.nn, version 2.13.
    """
    writers = {
        MultiHeadAttention: _write_attention,
        EncoderLayer: _write_encoder_layer,
        Encoder: _write_encoder,
        DecoderLayer: _write_decoder_layer,
    }
    for kind, write in writers.items():
        if isinstance(layer, kind):
            return write(layer).eval()
    names = ", ".join(kind.__name__ for kind in writers)
    raise TypeError(f"layer must be a {names}; got {type(layer).__name__}")


def _write_attention(layer):
    from torch import nn

    _check_attention(layer)
    d_model, d_memory = layer.w_q.shape[0], layer.w_k.shape[0]
    module = nn.MultiheadAttention(
        d_model,
        layer.n_heads,
        bias=_has_bias(layer),
        kdim=d_memory,
        vdim=d_memory,
        batch_first=True,
        dtype=_torch_dtype(layer),
    )
    _fill_attention(module, layer)
    return module


def _write_encoder_layer(layer):
    from torch import nn

    for name in ("after_1", "after_2"):
        _check_none(name, getattr(layer, name))
    module = nn.TransformerEncoderLayer(**_options(layer, [layer.attention]))
    _fill_attention(module.self_attn, layer.attention)
    _fill_feed_forward(module, layer.feed_forward)
    _fill_norm(module.norm1, layer.norm_1, "norm_1")
    _fill_norm(module.norm2, layer.norm_2, "norm_2")
    return module


def _write_decoder_layer(layer):
    from torch import nn

    attentions = [layer.attention, layer.cross_attention]
    module = nn.TransformerDecoderLayer(**_options(layer, attentions))
    _fill_attention(module.self_attn, layer.attention)
    _fill_attention(module.multihead_attn, layer.cross_attention)
    _fill_feed_forward(module, layer.feed_forward)
    _fill_norm(module.norm1, layer.norm_1, "norm_1")
    _fill_norm(module.norm2, layer.norm_2, "norm_2")
    _fill_norm(module.norm3, layer.norm_3, "norm_3")
    return module


def _write_encoder(encoder):
    from torch import nn

    modules = [_write_encoder_layer(layer) for layer in encoder.layers]
    dtype, norm = _torch_dtype(encoder), None
    if encoder.norm is not None:
        bias = getattr(encoder.norm, "beta", None) is not None
        norm = nn.LayerNorm(encoder.layers[0].d_model, bias=bias, dtype=dtype)
        _fill_norm(norm, encoder.norm, "norm")
    stack = nn.TransformerEncoder(modules[0], len(modules), norm, enable_nested_tensor=False)
    stack.layers = nn.ModuleList(modules)
    return stack


def _options(layer, attentions):
    """Return how torch builds a layer like this one."""
    for attention in attentions:
        _check_kind(attention, MultiHeadAttention, "attention")
        _check_attention(attention)
        if attention.w_k.shape[0] != layer.d_model:
            raise ValueError(
                f"memory must be as wide as the layer, {layer.d_model}, for torch; "
                f"got w_k of shape {attention.w_k.shape}"
            )
    if len({attention.n_heads for attention in attentions}) > 1:
        raise ValueError(
            "attention and cross_attention must have as many heads for torch; "
            f"got {[attention.n_heads for attention in attentions]}"
        )
    network = layer.feed_forward
    _check_kind(network, FeedForward, "feed_forward")
    activations = {relu: "relu", gelu: "gelu"}
    if network.activation not in activations:
        raise ValueError(f"activation must be relu or gelu of attnlib; got {network.activation!r}")
    return {
        "d_model": layer.d_model,
        "nhead": layer.attention.n_heads,
        "dim_feedforward": network.w_1.shape[1],
        "dropout": 0.0,
        "activation": activations[network.activation],
        "batch_first": True,
        "norm_first": layer.norm_first,
        "bias": _has_bias(layer),
        "dtype": _torch_dtype(layer),
    }


def _fill_attention(module, layer):
    weights = [layer.w_q.T, layer.w_k.T, layer.w_v.T]
    if module.in_proj_weight is not None:
        _fill(module.in_proj_weight, np.concatenate(weights))
    else:
        _fill(module.q_proj_weight, weights[0])
        _fill(module.k_proj_weight, weights[1])
        _fill(module.v_proj_weight, weights[2])
    if module.in_proj_bias is not None:
        for part, bias in zip(
            module.in_proj_bias.chunk(3), [layer.b_q, layer.b_k, layer.b_v], strict=True
        ):
            _fill(part, bias, 0)
    _fill(module.out_proj.weight, layer.w_o.T)
    _fill(module.out_proj.bias, layer.b_o, 0)


def _fill_feed_forward(module, network):
    _fill(module.linear1.weight, network.w_1.T)
    _fill(module.linear1.bias, network.b_1, 0)
    _fill(module.linear2.weight, network.w_2.T)
    _fill(module.linear2.bias, network.b_2, 0)


def _fill_norm(module, norm, name):
    _check_kind(norm, LayerNorm, name)
    module.eps = norm.eps
    _fill(module.weight, norm.gamma, 1)
    _fill(module.bias, norm.beta, 0)


def _fill(parameter, array, neutral=None):
    """Copy `array` into a parameter of torch; where it is None, what changes nothing."""
    import torch

    if parameter is None:
        return
    with torch.no_grad():
        if array is None:
            parameter.fill_(neutral)
        else:
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(array)))


def _check_attention(layer):
    """Refuse an attention that torch cannot have: it fixes d_k = d_v = d_model / n_heads."""
    if layer.n_kv_heads != layer.n_heads:
        raise ValueError(
            f"keys must have as many heads as queries, {layer.n_heads}, for torch; "
            f"got n_kv_heads = {layer.n_kv_heads}"
        )
    for name in ("turn", "norm_q", "norm_k", "scale", "cap", "sink"):
        _check_none(name, getattr(layer, name))
    d_model = layer.w_q.shape[0]
    shapes = [layer.w_q.shape[1:], layer.w_k.shape[1:], layer.w_v.shape[1:], layer.w_o.shape]
    if shapes != [(d_model,)] * 3 + [(d_model, d_model)]:
        raise ValueError(
            f"all heads together must be as wide as the layer, {d_model}, for torch; got w_q "
            f"{layer.w_q.shape}, w_k {layer.w_k.shape}, w_v {layer.w_v.shape}, w_o "
            f"{layer.w_o.shape}"
        )


def _check_none(name, part):
    """Refuse an option that torch's layers do not have."""
    if part is not None:
        raise ValueError(f"{name} must be None for torch; got {part!r}")


def _check_kind(part, kind, name):
    """Refuse a part that torch's layers do not have."""
    if not isinstance(part, kind):
        raise ValueError(f"{name} must be a {kind.__name__} for torch; got {type(part).__name__}")


def _has_bias(layer):
    """Tell whether a layer or a part of it adds something: b_q, b_1, beta and so on."""
    return any(name[0] == "b" for name, _ in _arrays(layer))


def _torch_dtype(layer):
    """Return the one dtype of all the weights, as torch has it."""
    import torch

    dtypes = {array.dtype.name for _, array in _arrays(layer)}
    if len(dtypes) > 1:
        raise ValueError(f"weights must have one dtype for torch; got {sorted(dtypes)}")
    return getattr(torch, dtypes.pop())


def _arrays(part):
    """Yield the arrays of a layer and of all that it is made of, with their names."""
    for name, field in vars(part).items():
        if isinstance(field, np.ndarray):
            yield name, field
        for inner in field if isinstance(field, list) else [field]:
            if is_dataclass(inner):
                yield from _arrays(inner)
