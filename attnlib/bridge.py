"""Weights to and from PyTorch, so that the two can be held against each other.

The only module that imports torch, and only inside its functions. PyTorch stores the transpose
of each weight here (it multiplies by `weight.T`), and one matrix for all of W_Q, W_K and W_V.
Dropout has no weights: what comes over is the layer as it is in `eval()`.
"""

import numpy as np

from attnlib.layers import DecoderLayer, Encoder, EncoderLayer, gelu, relu
from attnlib.multihead import MultiHeadAttention


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
        memories of two widths, an activation other than ReLU and exact GELU, or norms with
        different epsilons.

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
        If torch has no such module: heads narrower or wider than d_model / n_heads, an output of
        another width, weights of several dtypes, an activation other than `relu` and `gelu`, a
        decoder layer whose memory has a width of its own or whose attentions differ in heads.

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


def _read_activation(activation):
    from torch import nn
    from torch.nn import functional

    if activation is functional.relu or isinstance(activation, nn.ReLU):
        return relu
    exact = isinstance(activation, nn.GELU) and activation.approximate == "none"
    if activation is functional.gelu or exact:
        return gelu
    raise ValueError(f"activation must be ReLU or exact GELU; got {activation}")


def _write_activation(activation):
    names = {relu: "relu", gelu: "gelu"}
    if activation not in names:
        raise ValueError(f"activation must be relu or gelu of attnlib; got {activation!r}")
    return names[activation]


def _to_numpy(tensor):
    """Return a copy of a tensor, None for None."""
    if tensor is None:
        return None
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind not in ("float16", "float32", "float64"):  # NumPy has no bfloat16, for one
        raise TypeError(f"module must hold float16, float32 or float64; got {kind}")
    return tensor.detach().cpu().numpy().copy()


def _to_columns(tensor):
    """Return a weight of torch, (d_out, d_in), as (d_in, d_out)."""
    return np.ascontiguousarray(_to_numpy(tensor).T)


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


def _read_layer(module, norms):
    """Return what encoder and decoder layers of torch share, as fields of ours."""
    epsilons = {_check_norm(norm).eps for norm in norms}
    if len(epsilons) > 1:
        raise ValueError(f"norms must have one eps; got {sorted(epsilons)}")
    fields = {
        "attention": _read_attention(module.self_attn),
        "w_1": _to_columns(module.linear1.weight),
        "b_1": _to_numpy(module.linear1.bias),
        "w_2": _to_columns(module.linear2.weight),
        "b_2": _to_numpy(module.linear2.bias),
        "eps": epsilons.pop(),
        "norm_first": module.norm_first,
        "activation": _read_activation(module.activation),
    }
    for number, norm in enumerate(norms, start=1):
        fields[f"gamma_{number}"] = _to_numpy(norm.weight)
        fields[f"beta_{number}"] = _to_numpy(norm.bias)
    return fields


def _read_encoder_layer(module):
    return EncoderLayer(**_read_layer(module, [module.norm1, module.norm2]))


def _read_decoder_layer(module):
    fields = _read_layer(module, [module.norm1, module.norm2, module.norm3])
    return DecoderLayer(cross_attention=_read_attention(module.multihead_attn), **fields)


def _read_encoder(module):
    layers = [from_torch(layer) for layer in module.layers]
    if module.norm is None:
        return Encoder(layers)
    gamma = _to_numpy(_check_norm(module.norm).weight)
    if gamma is None:  # a norm without a scale is still a norm
        gamma = np.ones(layers[0].d_model, layers[0].w_1.dtype)
    return Encoder(layers, gamma, _to_numpy(module.norm.bias), module.norm.eps)


def _check_norm(norm):
    """Return a norm of torch if it is that of this library."""
    from torch import nn

    if not isinstance(norm, nn.LayerNorm):
        raise TypeError(f"norms must be LayerNorm; got {type(norm).__name__}")
    return norm


def _write_attention(layer):
    from torch import nn

    d_model, d_memory = layer.w_q.shape[0], layer.w_k.shape[0]
    _check_square(layer)
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

    module = nn.TransformerEncoderLayer(**_options(layer))
    _fill_layer(module, layer, [module.norm1, module.norm2])
    return module


def _write_decoder_layer(layer):
    from torch import nn

    module = nn.TransformerDecoderLayer(**_options(layer))
    _fill_layer(module, layer, [module.norm1, module.norm2, module.norm3])
    _fill_attention(module.multihead_attn, layer.cross_attention)
    return module


def _write_encoder(encoder):
    from torch import nn

    modules = [_write_encoder_layer(layer) for layer in encoder.layers]
    dtype, norm = _torch_dtype(encoder, *encoder.layers), None
    if encoder.gamma is not None:
        bias = encoder.beta is not None
        norm = nn.LayerNorm(encoder.gamma.size, encoder.eps, bias=bias, dtype=dtype)
        _fill(norm.weight, encoder.gamma, 1)
        _fill(norm.bias, encoder.beta, 0)
    stack = nn.TransformerEncoder(modules[0], len(modules), norm, enable_nested_tensor=False)
    stack.layers = nn.ModuleList(modules)
    return stack


def _options(layer):
    """Return how torch builds a layer like this one."""
    attentions = [getattr(layer, name) for name in layer._attentions]
    for attention in attentions:
        _check_square(attention)
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
    return {
        "d_model": layer.d_model,
        "nhead": layer.attention.n_heads,
        "dim_feedforward": layer.w_1.shape[1],
        "dropout": 0.0,
        "activation": _write_activation(layer.activation),
        "layer_norm_eps": layer.eps,
        "batch_first": True,
        "norm_first": layer.norm_first,
        "bias": _has_bias(layer, *attentions),
        "dtype": _torch_dtype(layer, *attentions),
    }


def _fill_layer(module, layer, norms):
    """Copy what encoder and decoder layers share into a module of torch."""
    _fill_attention(module.self_attn, layer.attention)
    for number, linear in ((1, module.linear1), (2, module.linear2)):
        _fill(linear.weight, getattr(layer, f"w_{number}").T)
        _fill(linear.bias, getattr(layer, f"b_{number}"), 0)
    for number, norm in enumerate(norms, start=1):
        _fill(norm.weight, getattr(layer, f"gamma_{number}"), 1)
        _fill(norm.bias, getattr(layer, f"beta_{number}"), 0)


def _fill_attention(module, layer):
    weights = [layer.w_q.T, layer.w_k.T, layer.w_v.T]
    if module.in_proj_weight is not None:
        _fill(module.in_proj_weight, np.concatenate(weights))
    else:
        for name, weight in zip("qkv", weights, strict=True):
            _fill(getattr(module, f"{name}_proj_weight"), weight)
    if module.in_proj_bias is not None:
        for part, bias in zip(
            module.in_proj_bias.chunk(3), [layer.b_q, layer.b_k, layer.b_v], strict=True
        ):
            _fill(part, bias, 0)
    _fill(module.out_proj.weight, layer.w_o.T)
    _fill(module.out_proj.bias, layer.b_o, 0)


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


def _check_square(layer):
    """Refuse an attention that torch cannot have: it fixes d_k = d_v = d_model / n_heads."""
    d_model = layer.w_q.shape[0]
    shapes = [layer.w_q.shape[1:], layer.w_k.shape[1:], layer.w_v.shape[1:], layer.w_o.shape]
    if shapes != [(d_model,)] * 3 + [(d_model, d_model)]:
        raise ValueError(
            f"all heads together must be as wide as the layer, {d_model}, for torch; got w_q "
            f"{layer.w_q.shape}, w_k {layer.w_k.shape}, w_v {layer.w_v.shape}, w_o "
            f"{layer.w_o.shape}"
        )


def _has_bias(*layers):
    """Tell whether any of the layers adds something."""
    names = [f"b_{letter}" for letter in "qkvo12"] + [f"beta_{number}" for number in (1, 2, 3)]
    return any(getattr(layer, name, None) is not None for layer in layers for name in names)


def _torch_dtype(*layers):
    """Return the one dtype of all the weights, as torch has it."""
    import torch

    dtypes = {
        array.dtype.name
        for layer in layers
        for array in vars(layer).values()
        if isinstance(array, np.ndarray)
    }
    if len(dtypes) > 1:
        raise ValueError(f"weights must have one dtype for torch; got {sorted(dtypes)}")
    return getattr(torch, dtypes.pop())
