"""HeadsViewer: the attention weights of every head of every layer, handed over from Python."""

import base64
from html import escape

import numpy as np
import traitlets

from attnlib.palette import cell_ink
from attnlib.widgets.base import CourseWidget, esm
from attnlib.widgets.scaling_explorer import entropy
from attnlib.widgets.still import called, element, options, weight_table

MAX_TOKENS = 64
SLACK = 1e-3  # by which a row may miss 1, or 0: half precision rounds
STEPS = 65535  # a weight travels as a whole number of these: 16 bits
LINES = {"row": "of this token", "all": "of all tokens"}

# Two sheets of one height, their rows on one line; heads_viewer.js draws on the same ones.
HEIGHT, TOP, SIZE = 334, 64, 262
WIDTH, LEFT = 360, 74
LINES_WIDTH, QUERIES, FROM, TO, KEYS, NUMBERS = 330, 84, 92, 212, 220, 328

_SHADES = {"small": 8, "large": 50, "lines": 20}  # how many steps of opacity each drawing has
_SUMMARY = {
    "previous": "weight on the token before",
    "itself": "weight on itself",
    "next": "weight on the token after",
    "first": "weight on the first token",
    "entropy": "entropy, in nats",
}


class HeadsViewer(CourseWidget):
    """All heads of an encoder: every one small, one large, and as lines between the tokens.

    The weights are those of Eq. (1) of chapter 6, one matrix a head. Layers, heads, rows and texts
    count from 0 here, as the arrays do, and from 1 on the page.

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
        Stands above the widget.
    text, layer, head : int
        What is shown large.
    row : int
        The token whose row is looked at; the last one of a text that has fewer.
    lines : {"row", "all"}
        Whose lines are drawn: those of the picked token, or those of all.

    Raises
    ------
    TypeError
        If tokens, a title or an array is of the wrong kind.
    ValueError
        If sizes do not match, a row of weights is none, a weight falls on a blocked key, or a
        number is outside its range.

    Notes
    -----
    The page holds each weight in 16 bits, exact to 1/131070, which takes 8/3 characters: 48 KiB
    for 6 layers of 12 heads over 16 tokens. What the page says is computed from these: `summary`
    and `sentence` here too. `weights` and `all_weights` are exactly what was handed over.
    """

    _esm = esm("heads_viewer")
    _name = "heads"
    _shown = ("texts", "text", "layer", "head", "row", "lines")

    texts = traitlets.List(read_only=True).tag(sync=True)
    text = traitlets.Int(0).tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    row = traitlets.Int(0).tag(sync=True)
    lines = traitlets.Enum(list(LINES), "row").tag(sync=True)

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
        self._title = title
        self._label = f"Heads viewer: {title}" if title else "Heads viewer"
        self._texts = _read_texts(tokens, weights, mask)
        super().__init__(text=text, layer=layer, head=head, row=row, lines=lines)

    @traitlets.default("texts")
    def _pack(self):
        """The texts as the page gets them."""
        return [
            {
                "name": name,
                "tokens": tokens,
                "n_layers": weights.shape[0],
                "n_heads": weights.shape[1],
                "weights": base64.b64encode(_steps(weights).tobytes()).decode(),
                "mask": "" if mask.all() else "".join(str(int(may)) for may in mask.flat),
            }
            for name, (tokens, weights, mask) in self._texts.items()
        ]

    @traitlets.validate("text", "layer", "head", "row")
    def _check_number(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        n_layers, n_heads = self._at(0)[1].shape[:2]
        longest = max(len(tokens) for tokens, _, _ in self._texts.values())
        end = {"text": len(self._texts), "layer": n_layers, "head": n_heads, "row": longest}[name]
        if isinstance(value, bool) or not 0 <= value < end:
            raise ValueError(f"{name} needs a whole number from 0 to {end - 1}; got {value}")
        return value

    @property
    def tokens(self):
        """The tokens of the picked text."""
        return list(self._at(self.text)[0])

    @property
    def all_weights(self):
        """The weights of the picked text, all heads, (n_layers, n_heads, n, n)."""
        return self._at(self.text)[1]

    @property
    def weights(self):
        """The weights of the picked head, (n, n): queries in rows, keys in columns."""
        return self.all_weights[self.layer, self.head]

    @property
    def mask(self):
        """True where a query of the picked text may attend to a key, (n, n)."""
        return self._at(self.text)[2]

    @property
    def summary(self):
        """What marks the picked head: four mean weights, and its mean entropy in nats.

        A dict with "previous", "itself", "next" and "first": the mean weight that tokens give
        to the token before them, to themselves, to the token after and to the first of all; and
        "entropy". Tokens with nothing to attend to do not count. None where no token counts.
        """
        weights = self._drawn
        attends = weights.any(axis=1)

        def mean(numbers, counts):
            return float(numbers[counts].mean()) if counts.any() else None

        return {
            "previous": mean(np.diagonal(weights, -1), attends[1:]),
            "itself": mean(np.diagonal(weights), attends),
            "next": mean(np.diagonal(weights, 1), attends[:-1]),
            "first": mean(weights[:, 0], attends),
            "entropy": mean(entropy(weights), attends),
        }

    @property
    def sentence(self):
        """What the picked token does in the picked head, in words."""
        said, weight = self._said
        return f"{said} ({weight})" if weight else said

    def __repr__(self):
        """Return the state without the arrays: the same text in every run."""
        n_layers, n_heads = self.all_weights.shape[:2]
        state = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown[1:])
        return f"HeadsViewer({n_layers} x {n_heads} heads, texts={list(self._texts)}, {state})"

    def _at(self, text):
        """Tokens, weights and mask of a text."""
        return list(self._texts.values())[text]

    @property
    def _drawn(self):
        """The picked head's weights as the page has them, (n, n)."""
        return _steps(self.weights) / STEPS

    @property
    def _row(self):
        return min(self.row, len(self.tokens) - 1)

    @property
    def _said(self):
        """The sentence, and the weight that ends it where there is one."""
        row, names = self._drawn[self._row], called(self.tokens)
        place = f" of layer {self.layer + 1}" if len(self.all_weights) > 1 else ""
        said = f"Head {self.head + 1}{place}: '{names[self._row]}' attends "
        if not row.any():
            return f"{said}to nothing", ""
        top = int(row.argmax())
        return f"{said}most to '{names[top]}'", _two(row[top])

    def _html(self):
        tokens, allowed, weights, row = self.tokens, self.mask, self._drawn, self._row
        n_layers, n_heads = self.all_weights.shape[:2]
        selects = {
            "text": ("Text", enumerate(self._texts)) if len(self._texts) > 1 else None,
            "layer": ("Layer", _counted(n_layers)) if n_layers > 1 else None,
            "head": ("Head", _counted(n_heads)),
            "row": ("Token", [(i, f"{i + 1}: {token}") for i, token in enumerate(tokens)]),
            "lines": ("Lines", LINES.items()),
        }
        state = {name: getattr(self, name) for name in selects} | {"row": row}
        controls = "".join(
            element(
                "label",
                f"<span>{choice[0]}</span>"
                + element("select", options(choice[1], state[name]), name=name),
                class_="wide" if name == "text" else False,
            )
            for name, choice in selects.items()
            if choice
        )
        numbers = "".join(
            f'<li><b class="number" data-part="{name}">{_two(number)}</b>'
            f"<span>{_SUMMARY[name]}</span></li>"
            for name, number in self.summary.items()
        )
        said, weight = self._said
        weight = weight and " (" + element("b", weight, class_="number") + ")"
        note = "All heads: layers in rows, heads in columns" if n_layers > 1 else "All heads"
        heat = heat_marks(tokens, weights, allowed, row)
        links = line_marks(tokens, weights, allowed, row, self.lines)
        sheets = (
            ("heat", WIDTH, heat, "Heatmap of the picked head's weights"),
            ("links", LINES_WIDTH, links, "The same weights as lines between the tokens"),
        )
        drawings = "".join(
            element(
                "svg",
                "".join(map(_mark, marks)),
                data_part=part,
                viewBox=f"0 0 {width} {HEIGHT}",
                role="img",
                aria_label=f"{name}; the table below holds the numbers",
            )
            for part, width, marks, name in sheets
        )
        table = weight_table(tokens, weights, allowed)
        return f"""
{element("p", escape(self._title), class_="title") if self._title else ""}
<div class="pick" style="--heads: {n_heads}">
<div class="all"><p class="note">{note}</p>
<div class="scroll">{self._grid()}</div></div>
<div class="controls">{controls}</div></div>
<p class="said" role="status" data-part="said">{escape(said)}{weight}</p>
<div><p class="note">The means of this head over all tokens</p>
<ul class="summary">{numbers}</ul></div>
<div class="sheets">{drawings}</div>
<p class="cell" data-part="cell">Tap a row to pick its token.</p>
<p class="buttons"><button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>
<div class="visually-hidden">{element("table", table, data_part="table")}</div>
"""

    def _grid(self):
        """All heads of the picked text as a grid of buttons, one in the order of Tab."""
        n_layers, n_heads = self.all_weights.shape[:2]
        drawn = _steps(self.all_weights) / STEPS
        n = len(self.tokens)
        heads = "".join(element("th", i + 1, scope="col") for i in range(n_heads))
        rows = [element("tr", f"<td></td>{heads}")]
        for i, layer in enumerate(drawn):
            cells = element("th", i + 1, scope="row") if n_layers > 1 else element("td")
            for j, weights in enumerate(layer):
                picked = (i, j) == (self.layer, self.head)
                place = f"layer {i + 1}, " if n_layers > 1 else ""
                paths = "".join(map(_mark, small_marks(weights, self.mask)))
                button = element(
                    "button",
                    element("svg", paths, viewBox=f"-.5 0 {n} {n}", aria_hidden="true"),
                    type="button",
                    tabindex=0 if picked else -1,
                    aria_pressed=str(picked).lower(),
                    aria_label=f"{place}head {j + 1}",
                )
                cells += element("td", button)
            rows.append(element("tr", cells))
        return element(
            "table",
            "".join(rows),
            class_="grid",
            role="grid",
            aria_label="All heads",
            data_part="grid",
            data_text=self.text,
        )


# Drawings as nested marks (tag, attributes, text or marks): the same ones in heads_viewer.js.


def shades(weights, n_steps):
    """A heatmap in units of a cell: a path for each step of opacity, cells of a column joined.

    Each path runs down the middles of the columns, so its stroke is as wide as a cell.
    """
    paths = _runs(np.floor(weights * n_steps + 0.5).astype(int))
    # Nothing is drawn for 0.
    return [("path", {"d": d, "opacity": step / n_steps}, "") for step, d in paths if step]


def _runs(steps):
    """For each number in a matrix, in order: the number, and a path down all cells that hold it."""
    paths = {}
    for j, column in enumerate(steps.T.tolist()):
        start = 0
        for i in range(1, len(column) + 1):
            if i == len(column) or column[i] != column[start]:
                paths[column[start]] = paths.get(column[start], "") + f"M{j} {start}v{i - start}"
                start = i
    return sorted(paths.items())


def small_marks(weights, allowed):
    """A head in the grid: its heatmap, and stripes on the cells that are blocked."""
    stripes = [("path", {"d": d, "class": "blocked"}, "") for may, d in _runs(allowed) if not may]
    return shades(weights, _SHADES["small"]) + stripes


def heat_marks(tokens, weights, allowed, row):
    """The large heatmap: cells, hatches, numbers where they fit, tokens, the picked row."""
    n = len(tokens)
    side = SIZE / n
    marks = [
        (
            "g",
            {
                "transform": f"translate({_short(LEFT + side / 2)} {TOP}) scale({_short(side)})",
                "class": "cells",
            },
            shades(weights, _SHADES["large"]),
        )
    ]
    if not allowed.all():
        marks.append(("path", {"d": _hatches(allowed, side), "class": "hatch"}, ""))
    for i in range(n):
        y = TOP + (i + 0.5) * side
        if side >= 10 or i == row:
            marks.append(_label(tokens[i], LEFT - 8, y + 4, "query", end=True, bold=i == row))
        if side >= 10:
            turned = f"translate({_short(LEFT + (i + 0.5) * side + 3)} {TOP - 7}) rotate(-60)"
            marks.append(("text", {"transform": turned, "fill": "var(--key)"}, _cut(tokens[i])))
        if side >= 27:
            marks += [
                _number(weights[i, j], LEFT + (j + 0.5) * side, y + 4)
                for j in range(n)
                if allowed[i, j]
            ]
    frame = {"x": LEFT, "y": TOP + row * side, "width": SIZE, "height": side, "class": "frame"}
    edge = {"x": LEFT, "y": TOP, "width": SIZE, "height": SIZE, "class": "edge"}
    return [*marks, ("rect", edge, ""), ("rect", frame, "")]


def line_marks(tokens, weights, allowed, row, lines):
    """Queries on the left, keys on the right, a line as strong as the weight between them."""
    n = len(tokens)
    side = SIZE / n
    middles = [TOP + (i + 0.5) * side for i in range(n)]
    others = [i for i in range(n) if i != row] if lines == "all" else []
    marks = [
        ("text", {"x": QUERIES, "y": TOP - 12, "class": "head", "text-anchor": "end"}, "queries"),
        ("text", {"x": KEYS, "y": TOP - 12, "class": "head"}, "keys"),
    ]
    for kind, rows in (("others", others), ("picked", [row])):
        paths = {}
        for i in rows:
            for j in range(n):
                step = int(np.floor(weights[i, j] * _SHADES["lines"] + 0.5))
                line = f"M{FROM} {_short(middles[i])}L{TO} {_short(middles[j])}"
                paths[step] = paths.get(step, "") + line
        drawn = [
            ("path", {"d": paths[step], **_strength(step / _SHADES["lines"])}, "")
            for step in sorted(paths)
            if step
        ]
        marks.append(("g", {"class": kind}, drawn))
    top = int(weights[row].argmax()) if weights[row].any() else None
    for i, token in enumerate(tokens):
        y = middles[i] + 4
        if side >= 10 or i == row:
            marks.append(_label(token, QUERIES, y, "query", end=True, bold=i == row))
        if side >= 10 or i == top:
            marks.append(_label(token, KEYS, y, "key", end=False, bold=i == top))
            said = _two(weights[row, i]) if allowed[row, i] else "masked"
            style = {"fill": "var(--weight)" if allowed[row, i] else "var(--muted)"}
            bold = {"font-weight": "bold" if i == top else "normal", "text-anchor": "end"}
            marks.append(("text", {"x": NUMBERS, "y": y, **style, **bold}, said))
    return marks


def _strength(weight):
    return {"opacity": weight, "stroke-width": 0.5 + 4.5 * weight}


def _hatches(allowed, side):
    """Diagonals across the cells that are blocked: forbidden looks different from zero."""
    parts = (1 / 3, 2 / 3, 1) if side >= 10 else (1,)
    lines = []
    for i, j in np.argwhere(~allowed).tolist():
        x, y = LEFT + j * side, TOP + i * side
        for part in parts:
            reach = _short(part * side)
            lines.append(f"M{_short(x)} {_short(y + part * side)}l{reach} -{reach}")
            if part < 1:
                away = _short(x + part * side)
                rest = _short(side - part * side)
                lines.append(f"M{away} {_short(y + side)}l{rest} -{rest}")
    return "".join(lines)


def _label(token, x, y, role, *, end, bold):
    place = {"x": x, "y": y, "text-anchor": "end" if end else "start"}
    weight = {"font-weight": "bold" if bold else "normal", "fill": f"var(--{role})"}
    return "text", {**place, **weight}, _cut(token)


def _number(weight, x, y):
    ink = cell_ink(weight).replace("_", "-")
    return "text", {"x": x, "y": y, "text-anchor": "middle", "fill": f"var(--{ink})"}, _two(weight)


def _mark(mark):
    """A mark as markup."""
    tag, attributes, content = mark
    inner = escape(content) if isinstance(content, str) else "".join(map(_mark, content))
    return element(tag, inner, **attributes)


def _cut(token):
    """A token that fits beside a drawing."""
    return token if len(token) < 10 else token[:8] + "…"


def _short(number):
    """A length with two decimals at most."""
    return f"{round(number, 2):g}"


def _two(number):
    """A number with two decimals, as toFixed gives them: ties, like 1/8, go up in both."""
    return "–" if number is None else f"{number + 1e-9:.2f}"


def _counted(n):
    return [(i, str(i + 1)) for i in range(n)]


# What is handed over.


def _steps(weights):
    """Weights in whole numbers of 1/65535, little-endian."""
    return np.round(np.clip(weights, 0, 1) * np.float64(STEPS)).astype("<u2")


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
    """Tokens, weights and mask of one text, checked; `whose` tells errors which text it is."""
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
    """Weights as a new array (n_layers, n_heads, n, n) that cannot be changed."""
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
    array.flags.writeable = False
    return array


def _read_mask(whose, n, mask):
    """A mask as a new array (n, n) that cannot be changed."""
    array = np.array(True if mask is None else mask)
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
