"""Looking into a language model: what each part adds to a logit, and what each layer knows."""

from numbers import Integral

import numpy as np

from attnlib.attention import softmax
from attnlib.multihead import MultiHeadAttention, project, split_heads
from attnlib.norms import LayerNorm, RMSNorm


def lens(model, tokens):
    r"""Read the residual stream after each layer as if it were the last (the logit lens).

    .. math:: P_l = \mathrm{softmax}(\mathrm{Norm}(X_l)\, W_U)

    Parameters
    ----------
    model : CausalLM
    tokens : array of int, shape (..., n)

    Returns
    -------
    array, shape (n_layers + 1, ..., n, n_tokens)
        The probabilities of the next token, from the embeddings alone and after each layer. The
        last ones are those of the model.

    Raises
    ------
    TypeError
        If `model` is no CausalLM, or `tokens` holds no whole numbers.
    ValueError
        If a token is unknown.

    Source
    ------
    nostalgebraist 2020, *interpreting GPT: the logit lens*. Belrose et al. 2023, *Eliciting Latent
    Predictions from Transformers with the Tuned Lens*, section 2, say where it misleads.
    """
    trace = _read_model(model).read(tokens)
    return softmax(model.logits(trace.states))


def ledger(model, tokens, position, token):
    r"""Split a logit into what the embedding, each head and each feed-forward network added.

    .. math::

        \text{logit} = \Big(X_0 + \sum_l \sum_h Z_h^l W_O^{l, h} + \sum_l \mathrm{FFN}^l\Big)
            \mathrm{diag}(\gamma / r)\, W_U

    The residual stream is a sum, and the unembedding is linear. Between them stands the last norm,
    whose size r depends on all parts together. It is held fixed here, at what it is for this text,
    and so is the norm of what a layer adds, where there is one. So the numbers say who wrote the
    logit, but not what it would be without one of them: then r and all later layers would change.

    Parameters
    ----------
    model : CausalLM
        Of layers that are normed before their parts, after them, or not at all.
    tokens : array of int, shape (n,)
    position : int
        After which token, from 0, or from the end if below 0.
    token : int
        Whose logit.

    Returns
    -------
    names : list of str
        "embedding", "layer 1, head 1", ..., "layer 1, feed-forward", ...; and "layer 1, bias" or
        "last norm, bias" where there is one.
    contributions : array of float64, one a name
        Their sum is the logit, up to rounding.

    Raises
    ------
    TypeError
        If `model` is no CausalLM, a part of it is not from this library, or a number is not whole.
    ValueError
        If `tokens` is no vector, a number is out of bounds, or a layer is normed after its sum.

    Source
    ------
    Elhage et al. 2021, *A Mathematical Framework for Transformer Circuits*, "Residual stream as
    communication channel" and "Attention heads are independent and additive".

    Examples
    --------
    >>> from attnlib import EncoderLayer
    >>> from attnlib.models import CausalLM
    >>> rng = np.random.default_rng(0)
    >>> layer = EncoderLayer.init(8, 2, 16, rng, norm_first=True, dtype=np.float64)
    >>> model = CausalLM(rng.normal(size=(5, 8)), [layer])
    >>> names, contributions = ledger(model, [3, 1, 4], position=-1, token=2)
    >>> names
    ['embedding', 'layer 1, head 1', 'layer 1, head 2', 'layer 1, bias', 'layer 1, feed-forward']
    >>> bool(np.isclose(contributions.sum(), model([3, 1, 4])[-1, 2]))
    True
    """
    trace = _read_model(model).read(tokens)
    if trace.tokens.ndim != 1:
        raise ValueError(f"tokens must be a vector (n,); got shape {trace.tokens.shape}")
    n, n_tokens = trace.logits.shape
    position = _read_index(position, "position", -n, n)
    token = _read_index(token, "token", 0, n_tokens)
    # (part, d_model): what each part has added to the residual stream at this position.
    parts = {"embedding": trace.states[0, position]}
    for number, layer in enumerate(model.layers, start=1):
        x, weights = trace.states[number - 1], trace.weights[number - 1]
        parts |= _of_layer(layer, x, weights, position, f"layer {number}")
    names, rows = list(parts), np.stack(list(parts.values()), dtype=np.float64)
    rows, shift = _held(model.norm, rows, rows.sum(0), "the last norm")
    contributions = rows @ model.unembedding[:, token].astype(np.float64)
    if shift is not None:
        names.append("last norm, bias")
        contributions = np.append(contributions, shift @ model.unembedding[:, token])
    return names, contributions


def _of_layer(layer, x, weights, position, name):
    """Return what each part of a layer adds at a position, by its name."""
    attention = layer.attention
    if not isinstance(attention, MultiHeadAttention):
        kind = type(attention).__name__
        raise TypeError(f"the attention of {name} must be a MultiHeadAttention; got {kind}")
    if not layer.norm_first and (layer.norm_1 is not None or layer.norm_2 is not None):
        raise ValueError(f"{name} must not be normed after its sum (norm_first = False); got so")
    normed = x if layer.norm_1 is None else layer.norm_1(x)
    values = split_heads(project(normed, attention.w_v, attention.b_v), attention.n_kv_heads)
    values = values.repeat(attention.n_heads // attention.n_kv_heads, axis=0)
    heads = np.einsum("hj,hjd->hd", weights[:, position], values, dtype=np.float64)
    of_heads = attention.w_o.reshape(attention.n_heads, -1, attention.w_o.shape[1])
    rows = np.einsum("hd,hdm->hm", heads, of_heads)  # (n_heads, d_model)
    names = [f"{name}, head {head}" for head in range(1, attention.n_heads + 1)]
    if attention.b_o is not None:
        rows, names = np.vstack([rows, attention.b_o]), [*names, f"{name}, bias"]
    rows, shift = _held(layer.after_1, rows, rows.sum(0), f"after_1 of {name}")
    parts = dict(zip(names, rows, strict=True))
    if shift is not None:
        parts[f"{name}, bias"] = parts.get(f"{name}, bias", 0) + shift
    # The feed-forward network sees all of it: one token, so a matrix of one row.
    y = (x[position] + sum(parts.values()))[None].astype(x.dtype)
    added = layer.feed_forward(y if layer.norm_2 is None else layer.norm_2(y))
    added = added if layer.after_2 is None else layer.after_2(added)
    return parts | {f"{name}, feed-forward": added[0]}


def _held(norm, rows, total, name):
    """Return rows as a norm changes them while its size is that of their total; and its shift."""
    if norm is None:
        return rows, None
    if not isinstance(norm, LayerNorm | RMSNorm):
        raise TypeError(f"{name} must be a LayerNorm or an RMSNorm; got {type(norm).__name__}")
    shift = None
    if isinstance(norm, LayerNorm):
        shift = norm.beta
        rows, total = rows - rows.mean(-1, keepdims=True), total - total.mean()
    rows = rows / np.sqrt(np.mean(total**2) + norm.eps)
    return (rows if norm.gamma is None else rows * norm.gamma), shift


def _read_model(model):
    """Return a language model, or refuse what is none."""
    if not (hasattr(model, "read") and hasattr(model, "logits")):
        raise TypeError(f"model must be a CausalLM; got {type(model).__name__}")
    return model


def _read_index(index, name, first, end):
    """Return a whole number from `first` to `end` - 1."""
    if not isinstance(index, Integral) or isinstance(index, bool):
        raise TypeError(f"{name} must be a whole number; got {index!r}")
    if not first <= index < end:
        raise ValueError(f"{name} must be from {first} to {end - 1}; got {index}")
    return int(index)
