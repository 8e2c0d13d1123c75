"""From PyTorch: a module of torch becomes the layer of this library that computes the same."""

import numpy as np

from attnlib.feed_forward import FeedForward, gelu, relu
from attnlib.layers import DecoderLayer, Encoder, EncoderLayer
from attnlib.multihead import MultiHeadAttention
from attnlib.norms import LayerNorm


def from_torch(module):
    """Return the layer of this library that computes what a torch module does.

    Parameters
    ----------
    module : torch.nn.MultiheadAttention, TransformerEncoderLayer, TransformerEncoder or \
TransformerDecoderLayer
        `batch_first` makes no difference: here the batch always comes first.

    Returns
    -------
    MultiHeadAttention, EncoderLayer, Encoder or DecoderLayer
        With copies of the weights, in the same dtype.

    Raises
    ------
    TypeError
        If `module` or a part of it is something else, or its weights are not float16, float32 or
        float64.
    ValueError
        If it does what this library cannot: `add_bias_kv`, `add_zero_attn`, keys and values from
        memories of two widths, or an activation other than ReLU and exact GELU.

    Source
    ------
    The documentation of torch.nn, version 2.13.
    """
    from torch import nn

    readers = {
        nn.MultiheadAttention: _read_attention,
        nn.TransformerEncoderLayer: _read_encoder_layer,
        nn.TransformerEncoder: _read_encoder,
        nn.TransformerDecoderLayer: _read_decoder_layer,
    }
    for kind, read in readers.items():
        if isinstance(module, kind):
            return read(module)
    names = ", ".join(kind.__name__ for kind in readers)
    raise TypeError(f"module must be a {names} of torch.nn; got {type(module).__name__}")


def _read_attention(module):
    if module.bias_k is not None or module.add_zero_attn:
        raise ValueError(
            "module must have neither add_bias_kv nor add_zero_attn; "
            f"got add_bias_kv={module.bias_k is not None}, add_zero_attn={module.add_zero_attn}"
        )
    if module.in_proj_weight is not None:
        weights = module.in_proj_weight.chunk(3)
    else:  # keys and values come from a memory of another width
        weights = module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
    biases = [None] * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    return MultiHeadAttention(
        *map(_to_columns, [*weights, module.out_proj.weight]),
        module.num_heads,
        *map(_to_numpy, [*biases, module.out_proj.bias]),
    )


def _read_encoder_layer(module):
    return EncoderLayer(
        _read_attention(module.self_attn),
        _read_feed_forward(module),
        _read_norm(module.norm1),
        _read_norm(module.norm2),
        module.norm_first,
    )


def _read_decoder_layer(module):
    return DecoderLayer(
        _read_attention(module.self_attn),
        _read_attention(module.multihead_attn),
        _read_feed_forward(module),
        _read_norm(module.norm1),
        _read_norm(module.norm2),
        _read_norm(module.norm3),
        module.norm_first,
    )


def _read_encoder(module):
    layers = [from_torch(layer) for layer in module.layers]
    return Encoder(layers, None if module.norm is None else _read_norm(module.norm))


def _read_feed_forward(module):
    one, two = module.linear1, module.linear2
    return FeedForward(
        _to_columns(one.weight),
        _to_numpy(one.bias),
        _to_columns(two.weight),
        _to_numpy(two.bias),
        _read_activation(module.activation),
    )


def _read_activation(activation):
    from torch import nn
    from torch.nn import functional

    if activation is functional.relu or isinstance(activation, nn.ReLU):
        return relu
    exact = isinstance(activation, nn.GELU) and activation.approximate == "none"
    if activation is functional.gelu or exact:
        return gelu
    raise ValueError(f"activation must be ReLU or exact GELU; got {activation}")


def _read_norm(norm):
    from torch import nn

    if not isinstance(norm, nn.LayerNorm):
        raise TypeError(f"norms must be LayerNorm; got {type(norm).__name__}")
    return LayerNorm(_to_numpy(norm.weight), _to_numpy(norm.bias), norm.eps)


def _to_columns(tensor):
    """Return a weight of torch, (d_out, d_in), as (d_in, d_out)."""
    return np.ascontiguousarray(_to_numpy(tensor).T)


def _to_numpy(tensor):
    """Return a copy of a tensor, None for None."""
    if tensor is None:
        return None
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind not in ("float16", "float32", "float64"):  # NumPy has no bfloat16, for one
        raise TypeError(f"module must hold float16, float32 or float64; got {kind}")
    return tensor.detach().cpu().numpy().copy()
