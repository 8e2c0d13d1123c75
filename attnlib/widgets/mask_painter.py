"""MaskPainter: who may attend to whom, painted cell by cell, and what a nudge then moves."""

from html import escape

import numpy as np
import traitlets

from attnlib.attention import scaled_dot_product_attention
from attnlib.masks import additive, blocked, causal_mask, padding_mask, window_mask
from attnlib.palette import cell_ink
from attnlib.widgets.attention_explorer import MASKS, word_vector
from attnlib.widgets.base import CourseWidget, esm
from attnlib.widgets.still import called, element, options

D = 4  # size of queries, keys and values
NUDGE = 0.5  # what is added to each of their numbers
MOVED = 1e-9  # an output that differs by more has moved: rounding stays far below, a nudge above
LEAST, MOST = 2, 8

_TOKENS = ["The", "cat", "sat", "down", "<pad>"]
_PRESETS = {**MASKS, "painted": "painted by hand"}
_CONVENTIONS = {
    "bool": ("T = may attend", "F.scaled_dot_product_attention"),
    "additive": ("added to the scores", "float mask: 0 or -inf"),
    "blocked": ("T = blocked", "nn.MultiheadAttention"),
}


class MaskPainter(CourseWidget):
    """A mask to paint, the attention weights it leaves, and a detector for leaks.

    Every token has a query, a key and a value of 4 random numbers, always the same ones. The
    mask acts between Eqs. (4) and (5) of chapter 2. Nudging a token adds 0.5 to each number of
    its query, key and value; the outputs that differ afterwards have moved.

    Parameters
    ----------
    tokens : list of str
        2 to 8 names, none of them blank.
    mask : array_like of bool, shape (n, n)
        Queries in rows, keys in columns, True = may attend. All True unless given.
    length : int
        How many tokens are real, 1 to n; the others, at the end, are filler. All n unless given.
    nudge : int
        The token that is nudged, from 0.

    Raises
    ------
    ValueError
        For names, a mask or a number that do not fit.
    """

    _esm = esm("mask_painter")
    _name = "mask"
    _label = "Mask painter"
    _shown = ("tokens", "mask", "length", "nudge")

    tokens = traitlets.Any().tag(sync=True)
    mask = traitlets.Any().tag(sync=True)
    length = traitlets.Int(1).tag(sync=True)
    nudge = traitlets.Int(0).tag(sync=True)

    def __init__(self, **traits):
        tokens = _checked_tokens(traits.get("tokens", _TOKENS))
        self._n = n = len(tokens)
        defaults = {
            "tokens": tokens,
            "mask": np.ones((n, n), bool),
            "length": n if "tokens" in traits else n - 1,  # the course's own sentence ends in <pad>
            "nudge": min(2, n - 1),
        }
        super().__init__(**{**defaults, **traits})

    @traitlets.validate("tokens")
    def _check_tokens(self, proposal):
        tokens = _checked_tokens(proposal["value"])
        if len(tokens) != self._n:
            raise ValueError(f"tokens keeps its {self._n} names; got {len(tokens)}")
        return tokens

    @traitlets.validate("mask")
    def _check_mask(self, proposal):
        value, needed = proposal["value"], (self._n, self._n)
        try:
            mask = np.asarray(value)
        except ValueError:
            raise ValueError(f"mask needs rows of one length; got {value!r}") from None
        if mask.dtype != bool:
            raise ValueError(f"mask needs rows of True (may attend) and False; got {value!r}")
        if mask.shape != needed:
            raise ValueError(f"mask needs shape {needed}, queries by keys; got {mask.shape}")
        return mask.tolist()

    @traitlets.validate("length", "nudge")
    def _check_number(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        low, high = {"length": (1, self._n), "nudge": (0, self._n - 1)}[name]
        if not low <= value <= high:
            raise ValueError(f"{name} needs a whole number from {low} to {high}; got {value}")
        return value

    @property
    def weights(self):
        """The attention weights under the mask, (n, n); an empty row is zeros."""
        return self._attend()[1]

    @property
    def output(self):
        """What each token gets, (n, 4)."""
        return self._attend()[0]

    @property
    def moved(self):
        """True for each output that the present nudge moves, (n,)."""
        return self._moves[self.nudge]

    @property
    def leaks(self):
        """Whether any token's nudge moves an output before it."""
        return bool(np.triu(self._moves.T, 1).any())

    @property
    def empty_rows(self):
        """The rows, from 0, that may attend to nothing."""
        return [i for i, row in enumerate(self.mask) if not any(row)]

    @property
    def additive(self):
        """The mask as added to the scores: 0 or -inf, (n, n)."""
        return additive(np.array(self.mask), np.float64)

    @property
    def blocked(self):
        """The mask as nn.MultiheadAttention reads it: True = may not attend, (n, n)."""
        return blocked(np.array(self.mask))

    @property
    def verdicts(self):
        """What the page says of the mask: the nudge, the future, empty rows, padding."""
        names, moves = called(self.tokens), self._moves
        return [
            _nudge_said(names, self.nudge, moves[self.nudge], self.nudge in self.empty_rows),
            _future_said(names, self.nudge, moves),
            _empty_said(names, self.empty_rows),
            _padding_said(names, self.length, self._lets_in),
        ]

    @property
    def _lets_in(self):
        """The real tokens that may attend to filler."""
        length = self.length
        return [i for i, row in enumerate(self.mask[:length]) if any(row[length:])]

    def _attend(self, nudged=None):
        """Output and weights, the vectors of token `nudged` changed."""
        vectors = np.array(
            [[word_vector(t, role, D) for t in self.tokens] for role in ("query", "key", "value")]
        )  # (3, n, 4)
        if nudged is not None:
            vectors[:, nudged] += NUDGE
        return scaled_dot_product_attention(*vectors, np.array(self.mask))

    @property
    def _moves(self):
        """_moves[j, i]: whether a nudge of token j moves output i, (n, n)."""
        before = self.output
        after = np.array([self._attend(j)[0] for j in range(self._n)])  # (n, n, 4)
        return (abs(after - before) > MOVED).any(-1)

    def _html(self):
        n = self._n
        presets = options(_PRESETS.items(), self._preset())
        nudges = options(((i, f"{i + 1}: {t}") for i, t in enumerate(self.tokens)), self.nudge)
        bad = (False, self.leaks, bool(self.empty_rows), bool(self._lets_in))
        kinds = ["said", *("bad" if is_bad else "good" for is_bad in bad[1:])]
        said = "".join(
            element("li", _lead(sentence, kind), class_=kind, data_room=room)
            for sentence, kind, room in zip(self.verdicts, kinds, self._rooms(), strict=True)
        )
        matrices = {"bool": np.array(self.mask), "additive": self.additive, "blocked": self.blocked}
        conventions = "".join(self._convention(name, m) for name, m in matrices.items())
        length = {"min": 1, "max": n, "value": self.length}
        return f"""
<div class="controls">
<label class="wide"><span>Start from</span>
{element("select", presets, name="preset")}</label>
<label><span>Nudge</span>
{element("select", nudges, name="nudge")}</label>
<label><span>Real tokens</span><span class="with-value">
{element("input", type="range", name="real", **length)}
<span class="number" data-part="length_value">{self.length}</span></span></label>
<p class="buttons wide"><button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>
<p class="cell wide">Tap or drag to paint; with the keyboard, arrows move and Space paints.
Hatched cells are blocked. A nudge changes one token's query, key and value.</p>
</div>
<div class="picture">{self._grid()}</div>
<ul class="verdicts" aria-label="Verdicts" aria-live="polite">{said}</ul>
<div class="conventions">{conventions}</div>
"""

    def _preset(self):
        """The first preset that gives the present mask."""
        n, mask = self._n, np.array(self.mask)
        real = padding_mask([self.length], n)[0]
        presets = {
            "none": np.ones((n, n), bool),
            "causal": causal_mask(n),
            "padding": np.broadcast_to(real, (n, n)),
            "both": causal_mask(n) & real,
            "window": window_mask(n, 1),
        }
        return next((k for k, preset in presets.items() if (preset == mask).all()), "painted")

    def _grid(self):
        """The mask as a grid of buttons that show the weights, and what became of each output."""
        names, weights = called(self.tokens), self.weights
        keys = "".join(
            element("th", element("span", escape(t)), scope="col", class_=self._kind("key", j))
            for j, t in enumerate(self.tokens)
        )
        head = f'<td></td>{keys}<th scope="col" class="fate"><span>output</span></th>'
        rows = [element("tr", head)]
        for i, query in enumerate(self.tokens):
            kind = self._kind("query", i)
            cells = element("th", escape(query), scope="row", class_=kind)
            for j, may in enumerate(self.mask[i]):
                weight = float(weights[i, j])
                shown = f"{weight:.2f}" if may else "blocked"
                ink = cell_ink(weight).replace("_", "-")
                button = element(
                    "button",
                    shown if may else "",
                    type="button",
                    tabindex=-1 if i or j else 0,
                    aria_pressed=str(may).lower(),
                    aria_label=f"{names[i]} to {names[j]}: {shown}",
                    style=f"--w: {100 * weight:.4g}%; color: var(--{ink})",
                )
                cells += element("td", button)
            fate = self._fate(i)
            cells += element("td", element("span", fate), class_=f"fate {fate}")
            rows.append(element("tr", cells))
        label = "The mask: queries in rows, keys in columns, pressed where a query may attend"
        style = f"--n: {self._n}"
        return element(
            "table", "".join(rows), class_="grid", role="grid", aria_label=label, style=style
        )

    def _kind(self, role, i):
        """The classes of a token's name."""
        marks = {"nudged": i == self.nudge, "filler": i >= self.length}
        return " ".join([role, *(mark for mark, holds in marks.items() if holds)])

    def _fate(self, i):
        """What the nudge does to output i, in one word."""
        if not self.moved[i]:
            return "zeros" if i in self.empty_rows else "same"
        return "leaks" if i < self.nudge else "moved"

    def _convention(self, name, matrix):
        hidden = [element("span", escape(t), class_="visually-hidden") for t in self.tokens]
        keys = "".join(element("th", token, scope="col") for token in hidden)
        rows = [element("tr", f"<td></td>{keys}")]
        for token, row in zip(hidden, matrix, strict=True):
            cells = "".join(element("td", _entry(x), class_=_entry_kind(x)) for x in row)
            rows.append(element("tr", element("th", token, scope="row") + cells))
        meaning, user = _CONVENTIONS[name]
        label = f"{meaning}: {user}"
        table = element("table", "".join(rows), data_convention=name, aria_label=label)
        code = element("code", user.replace("product_", "product_<wbr>"))
        return f"<div><p>{meaning}<br>{code}</p>{table}</div>"

    def _rooms(self):
        """The longest that each verdict can become with these tokens: room is kept for it."""
        names, n = called(self.tokens), self._n
        everything = np.ones((n, n), bool)
        each = (
            [_nudge_said(names, j, everything[j] ^ (own * np.eye(n, dtype=bool)[j]), False)
             for j in range(n) for own in (False, True)],
            [_future_said(names, j, everything) for j in range(n)],
            [_empty_said(names, list(range(n)))],
            [_padding_said(names, k, list(range(k))) for k in range(1, n)],
        )  # fmt: skip
        return [max(sentences, key=len) for sentences in each]


def _entry(x):
    """An entry of a mask, short."""
    if isinstance(x, np.bool):
        return "T" if x else "F"
    return "0" if x == 0 else "-∞"


def _entry_kind(x):
    return "on" if isinstance(x, np.bool) and x else False


def _lead(sentence, kind):
    """A verdict as markup: what stands before the colon is the answer."""
    lead, colon, rest = sentence.partition(":")
    marked = escape(sentence) if kind == "said" else f"<b>{escape(lead)}</b>{colon}{escape(rest)}"
    return f"<span>{marked}</span>"


def _checked_tokens(value):
    if not isinstance(value, (list, tuple)) or not LEAST <= len(value) <= MOST:
        raise ValueError(f"tokens needs a list of {LEAST} to {MOST} names; got {value!r}")
    if not all(isinstance(token, str) and token.strip() for token in value):
        raise ValueError(f"tokens needs names that are not blank; got {value!r}")
    return list(value)


# What the page says: the same sentences in mask_painter.js.


def _listed(names):
    """The names as a person lists them: a, b and c."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _nudge_said(names, nudge, moved, is_empty):
    """What one nudge moves."""
    token, others = names[nudge], [names[i] for i in np.flatnonzero(moved) if i != nudge]
    if moved[nudge]:
        own = "moves its own output, which is no leak: its query, key and value change."
    elif is_empty:
        own = "leaves its own output at zeros: it can attend to nothing."
    else:
        own = "leaves its own output as it was: its weights, all on other tokens, stay the same."
    also = "also " if moved[nudge] else ""
    outputs = "outputs" if len(others) > 1 else "output"
    rest = f"It {also}moves the {outputs} of {_listed(others)}." if others else "No other moves."
    return f"Nudging {token} {own} {rest}"


def _future_said(names, nudge, moves):
    """Whether any nudge moves an output before it; the present one is the example if it does."""
    leaking = [j for j in range(len(names)) if moves[j, :j].any()]
    if not leaking:
        return "Does not leak the future: no token's nudge moves an output before it."
    j = nudge if nudge in leaking else leaking[0]
    before = [names[i] for i in np.flatnonzero(moves[j, :j])]
    outputs, come = ("outputs", "come") if len(before) > 1 else ("output", "comes")
    others = len(leaking) - 1
    more = {0: "", 1: " 1 other token leaks too."}.get(others, f" {others} other tokens leak too.")
    return (
        f"Leaks the future: nudging {names[j]} moves the {outputs} of {_listed(before)}, "
        f"which {come} before it.{more}"
    )


def _empty_said(names, rows):
    listed = _listed([names[i] for i in rows]) if rows else ""
    if not rows:
        return "No row is empty: every token can attend to something."
    if len(rows) == 1:
        return f"Row {listed} is empty: it can attend to nothing, so its output is zeros."
    return f"Rows {listed} are empty: they can attend to nothing, so their outputs are zeros."


def _padding_said(names, length, lets_in):
    if length == len(names):
        return f"There is no padding: all {length} tokens are real."
    filler = _listed(names[length:])
    if not lets_in:
        return f"Keeps padding out: no real token attends to the filler {filler}."
    tokens, attend = ("tokens", "attend") if len(lets_in) > 1 else ("token", "attends")
    real = _listed([names[i] for i in lets_in])
    return f"Lets padding in: the real {tokens} {real} {attend} to the filler {filler}."
