"""HeadsViewer: the attention weights of every head of every layer, given from Python."""

import string
from pathlib import Path
from typing import NamedTuple

import numpy as np
import traitlets

from attnlib.widgets.kit.base import CourseWidget
from attnlib.widgets.kit.standalone import page

MAX_TOKENS = 128
MAX_WEIGHTS = 5_000_000  # in all texts: beyond, a file takes more than about 6 MB
SLACK = 5e-3  # by which the sum of a row may differ from 1 or 0, because half precision rounds
DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
SHORT = 40  # a step below this is a single digit
# The weight of each step: half hundredths from 0.1 on, and below, finer ones the closer to 0.
LEVELS = np.concatenate([0.1 * (np.arange(SHORT) / SHORT) ** 2, np.arange(20, 201) / 200])
LINES = ("row", "all")
NO_WEIGHTS = (
    "a model of transformers returns its attention weights only with output_attentions=True, and "
    'after model.set_attn_implementation("eager")'
)


class HeadsViewer(CourseWidget):
    """All heads of a model: every one small, one large, and as lines between the tokens.

    The weights are those of Eq. (1) of "Many heads", one matrix a head. Layers, heads, rows and
    texts count from 0 here, as the arrays do, and from 1 on the page.

    Parameters
    ----------
    weights : sequence of array_like, one a layer
        Each layer has shape (n_heads, n_q, n_k), or (batch, n_heads, n_q, n_k), as NumPy arrays or
        as tensors of PyTorch: `outputs.attentions` of transformers and the weights that `Encoder`
        returns are right as they are. A single array may hold all layers, and (n_heads, n_q, n_k)
        is a model of one layer. Each row sums to 1, or to 0 where there is nothing to attend to.
        Several texts are a dict from a text's name to a tuple of these first four arguments.
    tokens : list of str
        The tokens of the rows, which are those of the columns, too, unless `key_tokens` are given:
        at most 128. For a batch of several texts, a list of such lists.
    key_tokens : list of str, optional
        The tokens of the columns, for cross-attention.
    mask : array_like of bool, broadcasting to (n_q, n_k), optional
        True = may attend; the other cells are hatched.
    title : str
        A heading above the widget.
    text, layer, head : int
        Which head is shown large; the last one of a text that has fewer.
    row : int
        The token whose row is shown; the last one of a text that has fewer.
    lines : {"row", "all"}
        Whether lines are drawn for the picked token or for all tokens.

    Raises
    ------
    TypeError
        If weights, tokens, a title or a mask is of the wrong kind.
    ValueError
        If sizes do not match, there are too many tokens or weights, a row of weights is invalid, a
        weight falls on a blocked key, or a number is outside its range.

    Notes
    -----
    The page gets each weight in 221 steps, with the right two decimals: it may be off by 0.005, the
    mean entropy of a head by a hundredth. A step takes one or two characters, and a head is
    unpacked when it is drawn. What the page says is computed from these steps.
    """

    texts = traitlets.List(read_only=True).tag(sync=True)
    title = traitlets.Unicode(read_only=True).tag(sync=True)
    text = traitlets.Int(0).tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    row = traitlets.Int(0).tag(sync=True)
    lines = traitlets.Enum(LINES, "row").tag(sync=True)

    def __init__(
        self,
        weights,
        tokens=None,
        key_tokens=None,
        mask=None,
        *,
        title="",
        text=0,
        layer=0,
        head=0,
        row=0,
        lines="row",
    ):
        if not isinstance(title, str):
            raise TypeError(f"title must be a str; got {title!r}")
        self._texts = _read_texts(weights, tokens, key_tokens, mask)
        super().__init__(text=text, layer=layer, head=head, row=row, lines=lines)
        self.set_trait("title", title)

    @traitlets.default("texts")
    def _pack(self):
        """The texts as the page gets them; each head is a string of its own."""
        return [
            {
                "name": name,
                "tokens": text.tokens,
                "keys": text.key_tokens,
                "weights": [[*map(_packed, layer)] for layer in text.weights],
                "mask": "" if text.mask.all() else "".join(str(int(may)) for may in text.mask.flat),
            }
            for name, text in self._texts.items()
        ]

    @traitlets.validate("text", "layer", "head", "row")
    def _check_number(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        n_layers, n_heads = self._sizes
        longest = max(len(text.tokens) for text in self._texts.values())
        end = {"text": len(self._texts), "layer": n_layers, "head": n_heads, "row": longest}[name]
        if isinstance(value, bool) or not 0 <= value < end:
            raise ValueError(f"{name} needs a whole number from 0 to {end - 1}; got {value}")
        return value

    def save(self, path, **how):
        """Write the viewer, as it is set now, into one HTML file that needs no other, or a picture.

        The HTML file opens from disk and asks for nothing outside. Anyone who has a browser can
        read it. A picture is saved as with every widget (`CourseWidget.save`).

        Parameters
        ----------
        path : str or path-like
            The name of the file, which ends in `.html`, `.svg` or `.png`. What stands there is
            replaced.
        **how
            `width` and `theme` of a picture.

        Returns
        -------
        Path
            Where the file is.

        Raises
        ------
        ValueError
            If the name ends in anything else.
        """
        path = Path(path)
        if path.suffix.lower() in {".svg", ".png"}:
            return super().save(path, **how)
        if path.suffix.lower() != ".html":
            raise ValueError(
                f"path needs a name that ends in .html, .svg or .png; got {path.name!r}"
            )
        path.write_text(page(self, self.title or "Attention weights"), encoding="utf-8")
        return path

    def __repr__(self):
        """Return the state without the arrays: the same text in every run."""
        n_layers, n_heads = self._sizes
        state = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
        return f"HeadsViewer({n_layers} x {n_heads} heads, texts={list(self._texts)}, {state})"

    @property
    def _sizes(self):
        """The largest numbers of layers and of heads that a text has."""
        shapes = [text.weights.shape for text in self._texts.values()]
        return max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)


# How weights travel.


def _steps(weights):
    """The nearest steps of those that round to the same hundredth."""
    hundredths = np.floor(100 * LEVELS + 0.5 + 1e-9)
    ties = (hundredths[:-1] + 0.5) / 100
    between = np.where(np.diff(hundredths) > 0, ties, (LEVELS[:-1] + LEVELS[1:]) / 2)
    return np.searchsorted(between, weights, side="right")


def _digits(step):
    """A step as one digit or two; the first shows which."""
    if step < SHORT:
        return DIGITS[step]
    high, low = divmod(step - SHORT, len(DIGITS))
    return DIGITS[SHORT + high] + DIGITS[low]


CODES = np.array([*map(_digits, range(len(LEVELS)))])


def _packed(head):
    """The weights of one head, row after row."""
    return "".join(CODES[_steps(head)].flat)


# What is given: weights, tokens and masks.


class Text(NamedTuple):
    """One text, checked: its `key_tokens` are None where rows and columns are the same tokens."""

    tokens: list
    key_tokens: list | None
    weights: np.ndarray  # (n_layers, n_heads, n_q, n_k)
    mask: np.ndarray  # (n_q, n_k)


def _read_texts(weights, tokens, key_tokens, mask):
    """Every text as {name: Text}."""
    if isinstance(weights, dict):
        if tokens is not None or key_tokens is not None or mask is not None:
            raise TypeError("with a dict of texts, tokens and masks stand in the dict")
        texts = _read_dict(weights)
    else:
        if tokens is None:
            raise TypeError("tokens are needed beside the weights")
        texts = _read_batch("", weights, tokens, key_tokens, mask)
    n_weights = sum(text.weights.size for text in texts.values())
    if n_weights > MAX_WEIGHTS:
        raise ValueError(
            f"there may be {MAX_WEIGHTS:,} weights in all; got {n_weights:,}: choose some of the "
            f"layers, such as weights[:4], or a shorter text"
        )
    return texts


def _read_dict(given):
    """The texts of a dict."""
    if not given:
        raise ValueError("the dict needs at least one text; got none")
    texts = {}
    for name, text in given.items():
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"the name of a text must be a str that is not blank; got {name!r}")
        if not isinstance(text, tuple) or not 2 <= len(text) <= 4:
            raise TypeError(
                f"text {name!r} must be a tuple (weights, tokens), if need be with key_tokens and "
                f"mask; got a {type(text).__name__}"
            )
        texts |= _read_batch(name, *text)
    return texts


def _read_batch(name, weights, tokens, key_tokens=None, mask=None):
    """The texts of a batch; `name` is that of a single one, and begins those of several."""
    whose = f" of {name!r}" * bool(name)
    weights = _read_weights(whose, weights)
    n_texts = weights.shape[1]
    if n_texts == 1 and not _holds_lists(tokens):
        return {name: _read_text(whose, weights[:, 0], tokens, key_tokens, mask)}
    for kind, lists in (("tokens", tokens), ("key_tokens", key_tokens)):
        if kind == "key_tokens" and lists is None:
            continue
        if not _holds_lists(lists) or len(lists) != n_texts:
            raise ValueError(
                f"weights{whose} hold a batch of {n_texts}, so {kind} must be a list of {n_texts} "
                f"lists of str; got {lists!r:.60}"
            )
    texts = {}
    for i in range(n_texts):
        each = f"{name} {i + 1}" if name else f"text {i + 1}"
        keys = key_tokens and key_tokens[i]
        own = mask[i] if np.ndim(mask) > 2 and len(mask) == n_texts else mask
        texts[each] = _read_text(f" of {each!r}", weights[:, i], tokens[i], keys, own)
    return texts


def _holds_lists(tokens):
    return isinstance(tokens, (list, tuple)) and any(isinstance(t, (list, tuple)) for t in tokens)


def _read_text(whose, weights, tokens, key_tokens=None, mask=None):
    """One text, checked; `whose` names it in errors."""
    tokens = _read_tokens(f"tokens{whose}", tokens)
    if key_tokens is not None:
        key_tokens = _read_tokens(f"key_tokens{whose}", key_tokens)
    n_q, n_k = len(tokens), len(tokens if key_tokens is None else key_tokens)
    if weights.shape[-2:] != (n_q, n_k):
        known = f"{n_q} tokens" + f" and {n_k} key_tokens" * (key_tokens is not None)
        raise ValueError(
            f"weights{whose} must have {n_q} rows and {n_k} columns for {known}; got "
            f"{weights.shape[-2]} rows and {weights.shape[-1]} columns"
        )
    _check_rows(whose, weights)
    mask = _read_mask(whose, n_q, n_k, mask)
    blocked = weights * ~mask
    if blocked.any():
        layer, head, i, j = np.unravel_index(blocked.argmax(), blocked.shape)
        raise ValueError(
            f"weights{whose} must be 0 where the mask is False; got {blocked.max():g} in layer "
            f"{layer}, head {head}, row {i}, column {j}"
        )
    return Text(tokens, key_tokens, weights, mask)


def _read_tokens(kind, tokens):
    if not isinstance(tokens, (list, tuple)) or not all(isinstance(t, str) for t in tokens):
        raise TypeError(f"{kind} must be a list of str; got {tokens!r:.60}")
    if not 1 <= len(tokens) <= MAX_TOKENS:
        raise ValueError(f"{kind} must be 1 to {MAX_TOKENS}; got {len(tokens)}")
    return list(tokens)


def _read_weights(whose, weights):
    """A new array (n_layers, batch, n_heads, n_q, n_k), which later changes do not reach."""
    several = isinstance(weights, (list, tuple))
    if weights is None or (several and (not weights or any(layer is None for layer in weights))):
        raise ValueError(f"weights{whose} hold no array; got {weights!r:.60}: {NO_WEIGHTS}")
    try:
        array = np.array([_array(layer) for layer in weights] if several else _array(weights))
    except ValueError:
        raise ValueError(f"weights{whose} must have one shape in all layers") from None
    if array.dtype.kind not in "fiu":
        raise TypeError(f"weights{whose} must be numbers; got dtype {array.dtype}")
    shape = array.shape
    if array.ndim == 3:
        array = array[None]
    if array.ndim == 4:
        array = array[:, None]
    if array.ndim != 5 or 0 in shape:
        raise ValueError(
            f"weights{whose} must be one array (n_heads, n_q, n_k) or (batch, n_heads, n_q, n_k) a "
            f"layer; got shape {shape} in all"
        )
    return array


def _array(layer):
    """An array of NumPy, also of a tensor that PyTorch keeps elsewhere or in half precision."""
    if hasattr(layer, "detach"):
        layer = layer.detach().cpu()
        layer = layer.float() if layer.is_floating_point() else layer
    return np.asarray(layer)


def _check_rows(whose, weights):
    if not np.isfinite(weights).all() or (weights < 0).any():
        layer, head, i, j = np.argwhere(~(weights >= 0) | np.isinf(weights))[0]
        raise ValueError(
            f"weights{whose} must be finite and not below 0; got {weights[layer, head, i, j]:g} in "
            f"layer {layer}, head {head}, row {i}, column {j}"
        )
    sums = weights.sum(axis=-1, dtype=np.float64)
    wrong = (abs(sums - 1) > SLACK) & (sums > SLACK)
    if wrong.any():
        layer, head, i = np.argwhere(wrong)[0]
        raise ValueError(
            f"each row of weights{whose} must sum to 1, or to 0 where there is nothing to attend "
            f"to; got {sums[layer, head, i]:g} in layer {layer}, head {head}, row {i} (scores need "
            f"the softmax first, and a model in training mode needs model.eval())"
        )


def _read_mask(whose, n_q, n_k, mask):
    """A mask as a new array (n_q, n_k), which later changes do not reach."""
    try:
        array = np.array(True if mask is None else _array(mask))
    except ValueError:
        raise ValueError(f"mask{whose} must have rows of one length; got unequal rows") from None
    if array.dtype != bool:
        raise TypeError(f"mask{whose} must be bool, True = may attend; got dtype {array.dtype}")
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]  # the axes of a batch and of the heads
    try:
        array = np.broadcast_to(array, (n_q, n_k))
    except ValueError:
        raise ValueError(
            f"mask{whose} must broadcast to ({n_q}, {n_k}), queries by keys; got {array.shape}"
        ) from None
    return array
