"""Looking into a model: what its parts add to a logit, what its layers know, what its heads do."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral

import numpy as np

from attnlib.attention import softmax
from attnlib.inputs import read_floats, read_list
from attnlib.multihead import MultiHeadAttention, split_heads
from attnlib.norms import LayerNorm, RMSNorm
from attnlib.projections import project


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
        If `model` is not a CausalLM, or `tokens` holds no whole numbers.
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
    contributions : array of float64, one per name
        Their sum is the logit, up to rounding.

    Raises
    ------
    TypeError
        If `model` is not a CausalLM, a part of it is not from this library, or a number is not
        whole.
    ValueError
        If `tokens` is not a vector, a number is out of bounds, or a layer is normed after its sum.

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
    rows, shift = _held(model.norm, rows, "the last norm")
    contributions = rows @ model.unembedding[:, token].astype(np.float64)
    if shift is not None:
        names.append("last norm, bias")
        contributions = np.append(contributions, shift @ model.unembedding[:, token])
    return names, contributions


def row_ledger(model, sentence, position):
    r"""Split a token's last row in a post-norm encoder into what each of its parts has written.

    .. math:: x = \sum_\text{parts} p, \qquad
              \text{at each norm: } p \leftarrow \frac{p - \bar p}{\sigma} \gamma

    A norm after a sum rescales everything that was written before it. The mean of a sum is the sum
    of the means, so only the deviation :math:`\sigma` depends on all parts together. It is held
    fixed at what it is for this sentence, and the shift :math:`\beta` of the norm counts among the
    biases. So the rows say who wrote the last row, but not what it would be without one of them.

    Parameters
    ----------
    model : MiniLM
        Or another model with `read` and an encoder of layers that are normed after their sums.
    sentence : str
    position : int
        Which token, from 0, or from the end if below 0.

    Returns
    -------
    names : list of str
        "input", then for each layer "layer 1, head 1", ..., "layer 1, biases" and
        "layer 1, feed-forward".
    rows : array of float64, shape (number of names, d_model)
        Their sum is the row of the token after the last layer, up to rounding.

    Raises
    ------
    TypeError
        If `model` has no `read`, a part of it is not from this library, or `position` is not whole;
        and as the model does.
    ValueError
        If `position` is out of bounds, or a layer is not normed after its sums; and as the model
        does.

    Source
    ------
    Kobayashi et al. 2021, *Incorporating Residual and Normalization Layers into Analysis of Masked
    Language Models*, section 3, for one layer.
    """
    if not hasattr(model, "read"):
        raise TypeError(f"model must be a MiniLM; got {type(model).__name__}")
    reading = model.read(sentence)
    n = len(reading.tokens)
    position = _read_index(position, "position", -n, n)
    names, rows = ["input"], reading.states[0][position][None].astype(np.float64)
    for number, layer in enumerate(_layers(model), start=1):
        name, attention = f"layer {number}", layer.attention
        _check_heads(attention, number)
        if layer.norm_first or layer.norm_1 is None or layer.norm_2 is None:
            raise ValueError(
                f"{name} must be normed after both of its sums; got norm_first={layer.norm_first}, "
                f"{'a' if layer.norm_1 else 'no'} norm_1 and {'a' if layer.norm_2 else 'no'} norm_2"
            )
        x, weights = reading.states[number - 1], reading.weights[number - 1]
        heads = _rows_of_heads(attention, x, weights, position)
        bias = np.zeros(rows.shape[1]) if attention.b_o is None else attention.b_o
        rows, shift = _held(layer.norm_1, np.vstack([rows, heads, bias]), f"norm_1 of {name}")
        rows[-1] += 0 if shift is None else shift
        added = layer.feed_forward(rows.sum(0)[None].astype(x.dtype))
        rows, shift = _held(layer.norm_2, np.vstack([rows, added]), f"norm_2 of {name}")
        rows[-2] += 0 if shift is None else shift
        names += [f"{name}, head {head}" for head in range(1, attention.n_heads + 1)]
        names += [f"{name}, biases", f"{name}, feed-forward"]
    return names, rows


def head_outputs(model, text):
    r"""Return what each head passes on for each token, before W_O: a mean of values.

    .. math:: Z_h = A_h X W_V^h

    Parameters
    ----------
    model : CausalLM, TokenModel or MiniLM
        Or another model with `layers`, or with an encoder that has them, of MultiHeadAttention.
    text : array of int, shape (..., n)
        What the model is called with; for MiniLM a sentence.

    Returns
    -------
    list of arrays, shape (..., n_heads, n, d_v), one per layer

    Raises
    ------
    TypeError
        If `model` has no such layers, or as the model does.
    ValueError
        As the model does.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.2: head_i.

    Examples
    --------
    >>> from attnlib.models import writer
    >>> model = writer()
    >>> [outputs.shape for outputs in head_outputs(model, model.encode("Ada was a kind doctor."))]
    [(4, 7, 32), (4, 7, 32), (4, 7, 32)]
    """
    recorders = [_Recorder(attention) for attention in _attentions(model)]
    recording = _with_attentions(model, recorders)
    recording(text) if callable(recording) else recording.read(text)
    return [recorder.outputs for recorder in recorders]


def mean_outputs(model, texts):
    r"""Return the mean of what each head passes on, over all tokens of some texts.

    .. math:: \bar z_h = \frac{1}{N} \sum_{\text{text}} \sum_i Z_h[i]

    Given to `replace_heads`, it leaves of a head only what it passes on whatever it reads.

    Parameters
    ----------
    model : CausalLM, TokenModel or MiniLM
        As for `head_outputs`.
    texts : list of texts
        At least one; each as for `head_outputs`.

    Returns
    -------
    list of arrays, shape (n_heads, d_v), one per layer

    Raises
    ------
    TypeError
        As `head_outputs`.
    ValueError
        If there is no text.

    Examples
    --------
    >>> from attnlib.models import writer
    >>> model = writer()
    >>> [mean.shape for mean in mean_outputs(model, [[0, 6, 504], [0, 25]])]
    [(4, 32), (4, 32), (4, 32)]
    """
    of_texts = [head_outputs(model, text) for text in read_list(texts, "texts")]
    if not of_texts:
        raise ValueError("texts must hold at least one text; got none")
    means = []
    for of_layer in zip(*of_texts, strict=True):
        # (N, n_heads, d_v): the tokens of all texts, one after the other.
        rows = [np.moveaxis(z, -3, -2).reshape(-1, z.shape[-3], z.shape[-1]) for z in of_layer]
        means.append(np.concatenate(rows).mean(0))
    return means


def replace_heads(model, outputs):
    r"""Return a copy of a model in which some heads pass on other outputs than their own.

    .. math:: \mathrm{MultiHead}(X) = \sum_h Z_h W_O^h \quad\text{with other } Z_h

    This is what an intervention on a head is: 0 takes it away (zero ablation), its mean over many
    texts leaves only what it always does (mean ablation), and its outputs for another text tell
    the model what the head would say there (activation patching). Where the head attends does not
    matter any more. Everything else is computed anew.

    Parameters
    ----------
    model : CausalLM, TokenModel or MiniLM
        Or another model with `layers`, or with an encoder that has them, of MultiHeadAttention.
    outputs : dict of (layer, head) to array of float, broadcasting to (..., n, d_v)
        Both counted from 0. 0.0 will do for all zeros. An output with an axis of n tokens fits
        texts of that length only.

    Returns
    -------
    A model of the same kind, to be read, called, and given to `ledger` and `lens`.

    Raises
    ------
    TypeError
        If `model` has no such layers, `outputs` is not a dict of pairs, or an output holds no
        floats.
    ValueError
        If there is no such head, or an output does not fit d_v.

    Source
    ------
    Vig et al. 2020, *Investigating Gender Bias in Language Models Using Causal Mediation Analysis*,
    section 3; Zhang and Nanda 2024, *Towards Best Practices of Activation Patching in Language
    Models*, section 2, for the three kinds.

    Examples
    --------
    >>> from attnlib.models import writer
    >>> model = writer(dtype=np.float64)
    >>> tokens = model.encode("Ada was a kind doctor.")
    >>> own = head_outputs(model, tokens)
    >>> same = replace_heads(model, {(2, 1): own[2][1]})
    >>> bool(np.allclose(same(tokens), model(tokens), rtol=0, atol=1e-12))
    True
    """
    attentions, of_layers = _attentions(model), {}
    for place, output in _read_outputs(outputs).items():
        layer = _read_index(place[0], "a layer of outputs", 0, len(attentions))
        attention = attentions[layer]
        head = _read_index(place[1], "a head of outputs", 0, attention.n_heads)
        d_v = attention.w_o.shape[0] // attention.n_heads
        output = read_floats(output, f"the output of head {place}")
        if output.ndim and output.shape[-1] not in (1, d_v):
            raise ValueError(
                f"the output of head {place} must broadcast to (..., n, {d_v}); got {output.shape}"
            )
        of_layers.setdefault(layer, {})[head] = output
    for layer, of_heads in of_layers.items():
        attention = attentions[layer]
        parts = {each.name: getattr(attention, each.name) for each in fields(MultiHeadAttention)}
        before = getattr(attention, "outputs", {})  # replaced earlier
        attentions[layer] = _Replaced(**parts, outputs=before | of_heads)
    return _with_attentions(model, attentions)


@dataclass(eq=False)
class _Replaced(MultiHeadAttention):
    """Attention in which some heads pass on given outputs, {head: (..., n, d_v)}."""

    outputs: dict = field(default_factory=dict)

    def __post_init__(self):
        super().__post_init__()
        kept = self._strips().copy()
        kept[list(self.outputs)] = 0
        parts = {each.name: getattr(self, each.name) for each in fields(MultiHeadAttention)}
        self.others = MultiHeadAttention(**parts | {"w_o": kept.reshape(self.w_o.shape)})

    def _strips(self):
        return self.w_o.reshape(self.n_heads, -1, self.w_o.shape[1])  # (n_heads, d_v, d_model)

    def __call__(self, x, *args, **options):
        w_o = self._strips()
        output, weights = self.others(x, *args, **options)
        for head, given in self.outputs.items():
            shape = (*output.shape[:-1], w_o.shape[1])  # (..., n, d_v)
            try:
                given = np.broadcast_to(given, shape)
            except ValueError:
                raise ValueError(
                    f"the output of head {head} must fit {shape}, a text's tokens by d_v; "
                    f"got {given.shape}"
                ) from None
            output = output + given.astype(output.dtype) @ w_o[head]
        return output, weights


class _Recorder:
    """Attention that keeps what its heads pass on."""

    def __init__(self, attention):
        self.attention = attention
        self.outputs = None

    def __call__(self, x, **options):
        output, weights = self.attention(x, **options)
        self.outputs = _outputs(self.attention, x, weights)
        return output, weights


def _outputs(attention, x, weights):
    """Return what the heads pass on, (..., n_heads, n, d_v), from what attention is given."""
    values = split_heads(project(x, attention.w_v, attention.b_v), attention.n_kv_heads)
    outputs = weights @ values.repeat(attention.n_heads // attention.n_kv_heads, axis=-3)
    for head, given in getattr(attention, "outputs", {}).items():
        outputs[..., head, :, :] = given
    return outputs


def _rows_of_heads(attention, x, weights, position):
    """Return what each head writes at a position, (n_heads, d_model)."""
    heads = _outputs(attention, x, weights)[:, position].astype(np.float64)
    strips = attention.w_o.reshape(attention.n_heads, -1, attention.w_o.shape[1])
    return np.einsum("hd,hdm->hm", heads, strips)


def _layers(model):
    """Return the layers of a model, or of its encoder."""
    layers = getattr(getattr(model, "encoder", model), "layers", None)
    if layers is None:
        raise TypeError(f"model must have layers; got {type(model).__name__}")
    return layers


def _attentions(model):
    """Return the attention of each layer, if all of them have heads."""
    attentions = [layer.attention for layer in _layers(model)]
    for number, attention in enumerate(attentions, start=1):
        _check_heads(attention, number)
    return attentions


def _check_heads(attention, number):
    """Refuse what is not a MultiHeadAttention."""
    if not isinstance(attention, MultiHeadAttention):
        kind = type(attention).__name__
        raise TypeError(f"the attention of layer {number} must be a MultiHeadAttention; got {kind}")


def _with_attentions(model, attentions):
    """Return a copy of a model with other attentions."""
    layers = [
        replace(layer, attention=attention)
        for layer, attention in zip(_layers(model), attentions, strict=True)
    ]
    changed = copy.copy(model)
    if hasattr(model, "encoder"):
        changed.encoder = replace(model.encoder, layers=layers)
    else:
        changed.layers = layers
    return changed


def _read_outputs(outputs):
    """Return the outputs of heads, if they are a dict of pairs."""
    if not isinstance(outputs, Mapping):
        raise TypeError(f"outputs must be a dict; got {type(outputs).__name__}")
    for place in outputs:
        if not (isinstance(place, tuple) and len(place) == 2):
            raise TypeError(f"outputs must have keys (layer, head); got {place!r}")
    return outputs


def _of_layer(layer, x, weights, position, name):
    """Return what each part of a layer adds at a position, by its name."""
    attention = layer.attention
    _check_heads(attention, name.removeprefix("layer "))
    if not layer.norm_first and (layer.norm_1 is not None or layer.norm_2 is not None):
        raise ValueError(f"{name} must not be normed after its sum; got norm_first=False")
    normed = x if layer.norm_1 is None else layer.norm_1(x)
    rows = _rows_of_heads(attention, normed, weights, position)
    names = [f"{name}, head {head}" for head in range(1, attention.n_heads + 1)]
    if attention.b_o is not None:
        rows, names = np.vstack([rows, attention.b_o]), [*names, f"{name}, bias"]
    rows, shift = _held(layer.after_1, rows, f"after_1 of {name}")
    parts = dict(zip(names, rows, strict=True))
    if shift is not None:
        parts[f"{name}, bias"] = parts.get(f"{name}, bias", 0) + shift
    # The feed-forward network sees all of it: one token, so a matrix of one row.
    y = (x[position] + sum(parts.values()))[None].astype(x.dtype)
    added = layer.feed_forward(y if layer.norm_2 is None else layer.norm_2(y))
    added = added if layer.after_2 is None else layer.after_2(added)
    return parts | {f"{name}, feed-forward": added[0]}


def _held(norm, rows, name):
    """Return rows as a norm changes them while its size is that of their sum; and its shift."""
    if norm is None:
        return rows, None
    total = rows.sum(0)
    if not isinstance(norm, LayerNorm | RMSNorm):
        raise TypeError(f"{name} must be a LayerNorm or an RMSNorm; got {type(norm).__name__}")
    shift = None
    if isinstance(norm, LayerNorm):
        shift = norm.beta
        rows, total = rows - rows.mean(-1, keepdims=True), total - total.mean()
    rows = rows / np.sqrt(np.mean(total**2) + norm.eps)
    return (rows if norm.gamma is None else rows * norm.gamma), shift


def _read_model(model):
    """Return a language model, and refuse all else."""
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
