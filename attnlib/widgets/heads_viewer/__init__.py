"""HeadsViewer: the attention weights of every head of every layer, given from Python."""

import string

import numpy as np
import traitlets

from attnlib.widgets.kit.base import CourseWidget

MAX_TOKENS = 64
SLACK = 1e-3  # by which the sum of a row may differ from 1 or 0, because half precision rounds
DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
SHORT = 40  # a step below this is a single digit
# The weight of each step: half hundredths from 0.1 on, and below, finer ones the closer to 0.
LEVELS = np.concatenate([0.1 * (np.arange(SHORT) / SHORT) ** 2, np.arange(20, 201) / 200])
LINES = ("row", "all")


class HeadsViewer(CourseWidget):
    """All heads of an encoder: every one small, one large, and as lines between the tokens.

    The weights are those of Eq. (1) of "Many heads", one matrix a head. Layers, heads, rows and
    texts count from 0 here, as the arrays do, and from 1 on the page.

    Parameters
    ----------
    tokens : list of str, or dict
        1 to 64 tokens; or several texts of one model, as a dict from a text's name to the pair
        (tokens, weights) or the triple (tokens, weights, mask).
    weights : array_like, shape (n_layers, n_heads, n, n) or (n_heads, n, n)
        Each row sums to 1, or to 0 where there is nothing to attend to. What `Encoder` returns
        is right as it is: a list of one array a layer, with or without a batch axis of 1. Not
        given with a dict.
    mask : array_like of bool, broadcasting to (n, n), optional
        True = may attend; the other cells are hatched.
    title : str
        A heading above the widget.
    text, layer, head : int
        Which head is shown large.
    row : int
        The token whose row is shown; the last one of a text that has fewer.
    lines : {"row", "all"}
        Whether lines are drawn for the picked token or for all tokens.

    Raises
    ------
    TypeError
        If tokens, a title or an array is of the wrong kind.
    ValueError
        If sizes do not match, a row of weights is invalid, a weight falls on a blocked key, or a
        number is outside its range.

    Notes
    -----
    The page gets each weight in 221 steps, with the right two decimals: it may be off by 0.005, the
    mean entropy of a head by a hundredth. A step takes one or two characters; compressed, 6 layers
    of 12 heads over 11 tokens take 7 KB. What the page says is computed from these steps.
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
        tokens,
        weights=None,
        *,
        mask=None,
        title="",
        text=0,
        layer=0,
        head=0,
        row=0,
        lines="row",
    ):
        if not isinstance(title, str):
            raise TypeError(f"title must be a str; got {title!r}")
        self._texts = _read_texts(tokens, weights, mask)
        super().__init__(text=text, layer=layer, head=head, row=row, lines=lines)
        self.set_trait("title", title)

    @traitlets.default("texts")
    def _pack(self):
        """The texts as the page gets them."""
        return [
            {
                "name": name,
                "tokens": tokens,
                "n_layers": weights.shape[0],
                "n_heads": weights.shape[1],
                "weights": "".join(map(_digits, _steps(weights).flat)),
                "mask": "" if mask.all() else "".join(str(int(may)) for may in mask.flat),
            }
            for name, (tokens, weights, mask) in self._texts.items()
        ]

    @traitlets.validate("text", "layer", "head", "row")
    def _check_number(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        n_layers, n_heads = self._sizes
        longest = max(len(tokens) for tokens, _, _ in self._texts.values())
        end = {"text": len(self._texts), "layer": n_layers, "head": n_heads, "row": longest}[name]
        if isinstance(value, bool) or not 0 <= value < end:
            raise ValueError(f"{name} needs a whole number from 0 to {end - 1}; got {value}")
        return value

    def __repr__(self):
        """Return the state without the arrays: the same text in every run."""
        n_layers, n_heads = self._sizes
        state = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
        return f"HeadsViewer({n_layers} x {n_heads} heads, texts={list(self._texts)}, {state})"

    @property
    def _sizes(self):
        """The numbers of layers and heads, which all texts have in common."""
        _, weights, _ = next(iter(self._texts.values()))
        return weights.shape[:2]


# What is given: tokens, weights and masks.


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


def _read_texts(tokens, weights, mask):
    """Every text as {name: (tokens, weights (n_layers, n_heads, n, n), mask (n, n))}."""
    if not isinstance(tokens, dict):
        if weights is None:
            raise TypeError("weights are needed beside the tokens")
        return {"": _read_text("", tokens, weights, mask)}
    if weights is not None or mask is not None:
        raise TypeError("with a dict of texts, weights and mask stand in the dict")
    if not tokens:
        raise ValueError("the dict needs at least one text; got none")
    texts = {}
    for name, text in tokens.items():
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"the name of a text must be a str that is not blank; got {name!r}")
        if not isinstance(text, tuple) or len(text) not in (2, 3):
            raise TypeError(
                f"text {name!r} must be (tokens, weights) or (tokens, weights, mask); "
                f"got a {type(text).__name__}"
            )
        texts[name] = _read_text(f" of {name!r}", *text)
    sizes = {name: weights.shape[:2] for name, (_, weights, _) in texts.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"all texts need the same numbers of layers and heads; got {sizes}")
    return texts


def _read_text(whose, tokens, weights, mask=None):
    """Tokens, weights and mask of one text, checked; `whose` names the text in errors."""
    if not isinstance(tokens, (list, tuple)) or not all(isinstance(t, str) for t in tokens):
        raise TypeError(f"tokens{whose} must be a list of str; got {tokens!r}")
    n = len(tokens)
    if not 1 <= n <= MAX_TOKENS:
        raise ValueError(f"tokens{whose} must be 1 to {MAX_TOKENS}; got {n}")
    weights = _read_weights(whose, n, weights)
    mask = _read_mask(whose, n, mask)
    blocked = weights * ~mask
    if blocked.any():
        layer, head, i, j = np.unravel_index(blocked.argmax(), blocked.shape)
        raise ValueError(
            f"weights{whose} must be 0 where the mask is False; got {blocked.max():g} in layer "
            f"{layer}, head {head}, row {i}, column {j}"
        )
    return list(tokens), weights, mask


def _read_weights(whose, n, weights):
    """Weights as a new array (n_layers, n_heads, n, n), which later changes do not reach."""
    try:
        array = np.array(weights)
    except ValueError:
        raise ValueError(f"weights{whose} must have one shape in all layers") from None
    if array.dtype.kind not in "fiu":
        raise TypeError(f"weights{whose} must be numbers; got dtype {array.dtype}")
    shape = array.shape
    if array.ndim == 5 and shape[1] == 1:
        array = array[:, 0]  # a batch axis of 1 in each layer
    elif array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or array.shape[-2:] != (n, n) or 0 in array.shape:
        raise ValueError(
            f"weights{whose} must have shape (n_layers, n_heads, {n}, {n}), or one such layer, "
            f"for {n} tokens; got {shape}"
        )
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"weights{whose} must be finite and not below 0")
    sums = array.sum(axis=-1, dtype=np.float64)
    wrong = (abs(sums - 1) > SLACK) & (sums > SLACK)
    if wrong.any():
        layer, head, i = np.argwhere(wrong)[0]
        raise ValueError(
            f"each row of weights{whose} must sum to 1, or to 0 where there is nothing to attend "
            f"to; got {sums[layer, head, i]:g} in layer {layer}, head {head}, row {i}"
        )
    return array


def _read_mask(whose, n, mask):
    """A mask as a new array (n, n), which later changes do not reach."""
    try:
        array = np.array(True if mask is None else mask)
    except ValueError:
        raise ValueError(f"mask{whose} must have rows of one length; got unequal rows") from None
    if array.dtype != bool:
        raise TypeError(f"mask{whose} must be bool, True = may attend; got dtype {array.dtype}")
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]  # the axes of a batch and of the heads
    try:
        array = np.broadcast_to(array, (n, n))
    except ValueError:
        raise ValueError(
            f"mask{whose} must broadcast to ({n}, {n}), queries by keys; got {array.shape}"
        ) from None
    return array
