"""PositionsExplorer: one word at 64 positions; what each kind of position does to its scores."""

import math

import numpy as np
import traitlets

from attnlib.positions import (
    alibi_bias,
    relative_position_bias,
    rotary,
    sinusoidal_positions,
)
from attnlib.widgets.base import CourseWidget, esm
from attnlib.widgets.still import element, line, text

N = 64  # positions, and words in the sentence
N_HEADS = 8
REACH = 8  # the largest offset in the table of the relative bias
LEAST_BASE, LARGEST_BASE = 2, 1_000_000

KINDS = {
    "none": "None",
    "sinusoidal": "Sinusoidal",
    "rotary": "Rotary",
    "alibi": "ALiBi",
    "relative": "Relative",
}
# Which numbers each kind depends on, besides the position that is looked at.
USES = {
    "none": (),
    "sinusoidal": ("d_model", "base"),
    "rotary": ("d_model", "base"),
    "alibi": ("head",),
    "relative": ("head",),
}

# Where the slider of the base stops: 1, 2 and 5 of each decade.
STOPS = [2, 5, *(digit * 10**decade for decade in range(1, 6) for digit in (1, 2, 5)), 1_000_000]

# Each of the three sheets; positions_explorer.js draws on the same ones.
WIDTH, HEIGHT = 240, 238
LEFT, TOP, SIZE = 38, 10, 192
SIDE = SIZE // N
PAD = 6  # between a curve and its frame
SHADES = 16  # steps of opacity in a heatmap

# What the page says: the same words in positions_explorer.js.
_TITLES = {
    "none": ("Nothing added", "Score against the offset"),
    "sinusoidal": ("Added to the word", "PE(p) · PE(p + k)"),
    "rotary": ("Each pair, turned", "Score against the offset"),
    "alibi": ("Added to a row of scores", "Added at each offset"),
    "relative": ("Added to a row of scores", "Added at each offset"),
}


class PositionsExplorer(CourseWidget):
    """What positions do to the scores of one word that stands at 64 places.

    The same word stands 64 times, so whatever differs between two scores comes from the
    positions. The word is (1, 0, 1, 0, ...) at length 1. Queries and keys are the inputs times
    d_model^(1/4), which the division by √d_model takes back: a scaled score is the dot product
    of two inputs, and without positions all of them are 1. Sinusoids are added to the word,
    Eqs. (1) to (3) of chapter 7; rotary turns query and key, Eq. (5); ALiBi and the relative
    bias are added to the scaled score, Eqs. (6) and (7).

    Parameters
    ----------
    kind : {"none", "sinusoidal", "rotary", "alibi", "relative"}
        How the score learns of the positions.
    position : int
        The position that is looked at, 0 to 63.
    d_model : int
        Width of the word and of the encoding, even, 2 to 128. There is one head that wide.
    base : float
        b of sinusoids and rotary, 2 to 1000000.
    head : int
        Which of 8 heads, 0 to 7, for ALiBi and relative. The page counts them from 1.

    Raises
    ------
    ValueError
        For a number outside its range, or an odd width.
    traitlets.TraitError
        For a value of the wrong type, or a kind that does not exist.

    Notes
    -----
    A relative table is learned. Here `table` stands for it, with numbers that are easy to check:
    T_h[o] = 2 - |o + h + 1| / 2 for offsets o from -8 to 8. So the first head likes the key one
    before best, the second the key two before, and so on; offsets beyond 8 count as 8.
    """

    _esm = esm("positions_explorer")
    _name = "positions"
    _label = "Positions explorer"
    _shown = ("kind", "position", "d_model", "base", "head")

    kind = traitlets.Enum(list(KINDS), "sinusoidal").tag(sync=True)
    position = traitlets.Int(3).tag(sync=True)
    d_model = traitlets.Int(16).tag(sync=True)
    base = traitlets.Float(10000.0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("position", "d_model", "base", "head")
    def _check_number(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        low, high, needed = {
            "position": (0, N - 1, "a whole number"),
            "d_model": (2, 128, "an even number"),
            "base": (LEAST_BASE, LARGEST_BASE, "a number"),
            "head": (0, N_HEADS - 1, "a whole number"),
        }[name]
        odd = name == "d_model" and value % 2
        if isinstance(value, bool) or odd or not low <= value <= high:
            raise ValueError(f"{name} needs {needed} from {low} to {high}; got {value}")
        return value

    @property
    def word(self):
        """The word that stands everywhere, (d_model,): (1, 0, 1, 0, ...) at length 1."""
        return np.tile([1.0, 0.0], self.d_model // 2) / math.sqrt(self.d_model / 2)

    @property
    def table(self):
        """What stands for a learned table of the relative bias, (8, 17)."""
        offsets, heads = np.arange(-REACH, REACH + 1), np.arange(N_HEADS)[:, None]
        return 2 - np.abs(offsets + heads + 1) / 2

    @property
    def encoding(self):
        """Position by position, (64, d_model).

        The sinusoids; for rotary (cos, sin) of the angle that each pair is turned by; zeros for
        the other kinds.
        """
        if self.kind == "sinusoidal":
            return sinusoidal_positions(N, self.d_model, base=self.base)
        if self.kind == "rotary":
            return rotary(np.tile([1.0, 0.0], (N, self.d_model // 2)), base=self.base)
        return np.zeros((N, self.d_model))

    @property
    def bias(self):
        """What is added to the scaled scores, (8, 64, 64): zeros but for ALiBi and relative."""
        if self.kind == "alibi":
            return alibi_bias(N_HEADS, N)
        if self.kind == "relative":
            return relative_position_bias(self.table, N)
        return np.zeros((N_HEADS, N, N))

    @property
    def scores(self):
        """Scaled scores of the picked head, bias included, (64, 64): queries by keys."""
        words = np.tile(self.word, (N, 1))  # (64, d_model)
        if self.kind == "sinusoidal":
            words = words + self.encoding
        elif self.kind == "rotary":
            words = rotary(words, base=self.base)
        return words @ words.T + self.bias[self.head]

    @property
    def similarity(self):
        """What the offset alone does, (127,): key minus query from -63 to 63.

        PE(p) · PE(p + k) for sinusoidal; the score for none and rotary; for ALiBi and relative
        what the picked head adds to the score.
        """
        if self.kind in ("alibi", "relative"):
            return _diagonals(self.bias[self.head])
        return _diagonals(
            self.encoding @ self.encoding.T if self.kind == "sinusoidal" else self.scores
        )

    def _html(self):
        said = self._said()
        words = {name: element("span", text, data_part=name) for name, text in said.items()}
        kinds = "".join(
            element(
                "button",
                label,
                type="button",
                name=kind,
                aria_pressed="true" if kind == self.kind else "false",
            )
            for kind, label in KINDS.items()
        )
        stop = min(range(len(STOPS)), key=lambda i: abs(math.log(STOPS[i] / self.base)))
        position = self._slider("position", max=N - 1, value=self.position)
        d_model = self._slider("d_model", min=2, max=128, step=2, value=self.d_model)
        stops = {"max": len(STOPS) - 1, "value": stop, "data_stops": " ".join(map(str, STOPS))}
        base = self._slider("base", **stops)
        head = self._slider("head", max=N_HEADS - 1, value=self.head)
        trio = "".join(
            f'<p><b class="big" data-part="{name}">{said[name]}</b>{words[f"{name}_at"]}</p>'
            for name in ("before", "itself", "after")
        )
        panels = "".join(
            f'<div class="panel"><p>{words[f"{name}_title"]}</p>{sheet}'
            f'<p class="cell">{words[f"{name}_note"]}</p></div>'
            for name, sheet in self._sheets().items()
        )
        return f"""
<div class="kinds" role="group" aria-label="Kind of positions">{kinds}</div>
<div class="controls">
<label class="main"><span>Position
<b class="number" data-part="position_value">{said["position_value"]}</b></span>{position}</label>
<label><span><i>d</i><sub>model</sub>
<b class="number" data-part="d_model_value">{said["d_model_value"]}</b></span>{d_model}</label>
<label><span>Base
<b class="number" data-part="base_value">{said["base_value"]}</b></span>{base}</label>
<label><span>Head
<b class="number" data-part="head_value">{said["head_value"]}</b></span>{head}</label>
<p class="buttons"><button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>
</div>
<div class="readout">
<p>{words["asks"]}</p>
<div class="trio">{trio}</div>
<p class="verdict" aria-live="polite">{words["verdict"]}</p>
</div>
<div class="panels">{panels}</div>
<div class="visually-hidden"><p>{words["spoken"]}</p>
{element("table", self._table(), data_part="table")}</div>
"""

    def _slider(self, name, /, **attributes):
        idle = name != "position" and name not in USES[self.kind]
        return element("input", type="range", name=name, **{"min": 0, **attributes}, disabled=idle)

    def _said(self):
        """Every text that follows the traits, by the name of its part."""
        p, kind, scores = self.position, self.kind, self.scores
        encoding_title, similarity_title = _TITLES[kind]
        near = {"before": p - 1, "itself": p, "after": p + 1}
        there = {name: 0 <= q < N for name, q in near.items()}
        slope = f"1/{2 ** (self.head + 1)}"
        row = self.encoding[p]
        some = ", ".join(map(_two, row[:4])) + (", …" if len(row) > 4 else "")
        slowest = p / self.base ** ((self.d_model - 2) / self.d_model)
        block = self.bias[:, p]
        pale = f"Pale is {_two(block.min())}, strong is {_two(block.max())}."
        return {
            "position_value": str(p),
            "d_model_value": str(self.d_model),
            "base_value": _plain(self.base, 6),
            "head_value": f"{self.head + 1} of {N_HEADS}",
            "asks": f"Scores of position {p} with position",
            **{name: _two(scores[p, q]) if there[name] else "–" for name, q in near.items()},
            "itself_at": f"{p}, itself",
            "before_at": str(p - 1) if p else "none before",
            "after_at": str(p + 1) if there["after"] else "none after",
            "verdict": {
                "none": "All scores are equal: attention cannot tell the places apart.",
                "sinusoidal": "The scores follow the distance, but drift along each diagonal: "
                "places meet the word, too.",
                "rotary": "Each diagonal holds one score: only the distance counts.",
                "alibi": f"Each diagonal holds one score: each step away takes off {slope}, on "
                "either side.",
                "relative": "Each diagonal holds one score, and before is not after. Beyond "
                f"{REACH} steps nothing changes.",
            }[kind],
            "encoding_title": encoding_title,
            "similarity_title": similarity_title,
            "scores_title": f"Scores of one word, {N} times",
            "encoding_note": {
                "none": "The word is the same at every position.",
                "sinusoidal": f"PE({p}) = ({some}). Pale is −1, strong is 1.",
                "rotary": f"First pair: {p} radians. Last: {_plain(slowest, 3)}. Each "
                "starts at the right.",
                "alibi": f"Each head has its own slope. {pale}",
                "relative": f"A made-up table, not a learned one. {pale}",
            }[kind],
            "similarity_note": f"Offset k: key minus query. Bold is what position {p} can reach.",
            "scores_note": "Every score is 1.00."
            if kind == "none"
            else f"Without positions: 1.00. Pale is {_two(scores.min())}, strong is "
            f"{_two(scores.max())}.",
            "spoken": f"Encoding of position {p}: {', '.join(map(_two, row))}.",
        }

    def _sheets(self):
        """The three drawings: what never changes, and the marks that follow the traits."""
        marks = self._marks()
        middle, bottom, end = LEFT + SIZE // 2, TOP + SIZE, LEFT + SIZE
        edge = line(f"M{LEFT} {TOP}h{SIZE}v{SIZE}h-{SIZE}z")

        def moving(tag, part, **attributes):
            own = dict(marks[part])
            return element(tag, own.pop("text", ""), data_part=part, **attributes, **own)

        def heat(name):
            shades = "".join(
                moving("path", f"{name}_{step}", stroke_opacity=step / SHADES)
                for step in range(1, SHADES + 1)
            )
            return moving_group(f"{name}_cells", shades)

        def moving_group(part, content):
            return element("g", content, class_="cells", data_part=part, **marks[part])

        def label(part, x, y, anchor="end", role="muted", /, **attributes):
            style = {"text_anchor": anchor, "fill": f"var(--{role})"}
            place = {} if y is None else {"y": y}
            return moving("text", part, x=x, **place, **style, **attributes)

        def framed(name, row_role, column_role):
            """A heatmap with its names, and the picked row."""
            turned = f"translate(11 {TOP + SIZE // 2}) rotate(-90)"
            style = {"text_anchor": "middle", "fill": f"var(--{row_role})"}
            return [
                heat(name),
                edge,
                moving("path", f"{name}_row", fill="none", stroke="var(--query)", stroke_width=1.5),
                label(f"{name}_here", LEFT - 5, None, "end", "query", font_weight="bold"),
                label(f"{name}_top", LEFT - 5, TOP + 9),
                label(f"{name}_bottom", LEFT - 5, bottom),
                moving("text", f"{name}_rows", transform=turned, **style),
                label(f"{name}_first", LEFT, bottom + 14, "start"),
                label(f"{name}_last", end, bottom + 14),
                label(f"{name}_columns", middle, bottom + 14, "middle", column_role),
            ]

        encoding = [
            *framed("encoding", "muted", "muted"),
            moving("path", "clocks", fill="none", stroke="var(--line)"),
            moving("path", "hands", fill="none", stroke="var(--ink)", stroke_width=2.5),
        ]
        curve = [
            edge,
            line(f"M{middle} {TOP}v{SIZE}"),
            moving("path", "zero", fill="none", stroke="var(--line)"),
            moving("path", "others", fill="none", stroke="var(--line)"),
            moving("path", "curve", fill="none", stroke="var(--muted)", stroke_width=1.5),
            moving("path", "reach", fill="none", stroke="var(--ink)", stroke_width=3),
            *(label(part, LEFT - 5, None) for part in ("high", "level", "low")),
            text("−63", LEFT, bottom + 14),
            text("0", middle, bottom + 14, anchor="middle"),
            text("63", end, bottom + 14, anchor="end"),
            text("← key before", LEFT, bottom + 28, "key"),
            text("key after →", end, bottom + 28, "key", anchor="end"),
        ]
        drawings = {
            "encoding": ("What the positions add or turn", encoding),
            "similarity": ("A curve against the offset", curve),
            "scores": ("Heatmap of the scores", framed("scores", "query", "key")),
        }
        return {
            name: element(
                "svg",
                "".join(parts),
                viewBox=f"0 0 {WIDTH} {HEIGHT}",
                role="img",
                aria_label=f"{seen}; text and table below hold the numbers",
            )
            for name, (seen, parts) in drawings.items()
        }

    def _marks(self):
        """What follows the traits: the attributes of each moving part, as `marks` in the page."""
        p, kind, scores = self.position, self.kind, self.scores
        low, high = scores.min(), scores.max()
        same = high - low < 1e-9
        shades = np.full((N, N), 0.5) if same else (scores - low) / (high - low)
        marks = {
            **_heat("scores", shades),
            **_names("scores", "query at position", "0", "63", "key at position", "63"),
            **_pointed("scores", p, SIDE, str(p)),
        }
        if kind == "sinusoidal":
            marks |= _heat("encoding", (self.encoding + 1) / 2)
            marks |= _names("encoding", "position", "0", "63", "dimension", str(self.d_model - 1))
            marks |= _pointed("encoding", p, SIDE, str(p))
        elif kind in ("alibi", "relative"):
            block = self.bias[:, p]  # (8, 64): heads, keys
            marks |= _heat("encoding", (block - block.min()) / (block.max() - block.min()))
            marks |= _names("encoding", "head", "1", "8", "key at position", "63")
            marks |= _pointed("encoding", self.head, SIZE // N_HEADS, str(self.head + 1))
        else:
            marks |= _heat("encoding", np.zeros((N, 1)))
            marks |= {f"encoding_{part}": {"text": ""} for part in _NAMES}
            marks |= {"encoding_row": {"d": ""}, "encoding_here": {"text": "", "y": "0"}}
        return {**marks, **self._clocks(), **self._curves()}

    def _clocks(self):
        """A clock for each pair, its hand turned as the picked position turns the pair."""
        if self.kind != "rotary":
            return {"clocks": {"d": ""}, "hands": {"d": ""}}
        pairs = self.d_model // 2
        columns = math.ceil(math.sqrt(pairs))
        side = SIZE / columns
        top = TOP + (SIZE - side * math.ceil(pairs / columns)) / 2
        radius = 0.42 * side
        clocks = hands = ""
        for i, (cos, sin) in enumerate(self.encoding[self.position].reshape(-1, 2)):
            x = LEFT + (i % columns + 0.5) * side
            y = top + (i // columns + 0.5) * side
            r = f"{radius:.2f}"
            clocks += f"M{x + radius:.2f} {y:.2f}a{r} {r} 0 1 0 {-2 * radius:.2f} 0"
            clocks += f"a{r} {r} 0 1 0 {2 * radius:.2f} 0h-{0.3 * radius:.2f}"
            hands += f"M{x:.2f} {y:.2f}l{radius * cos:.2f} {-radius * sin:.2f}"
        return {"clocks": {"d": clocks}, "hands": {"d": hands}}

    def _curves(self):
        """The similarity against the offset, and that of the other heads."""
        p, kind = self.position, self.kind
        low, high = {
            "sinusoidal": (-self.d_model / 2, self.d_model / 2),
            "alibi": (-32, 0),
            "relative": (-6, 2),
        }.get(kind, (-1, 1))

        def y(value):
            return TOP + PAD + (SIZE - 2 * PAD) * (high - value) / (high - low)

        def path(values, first=1 - N):
            points = (
                f"{LEFT + SIZE * (first + at + N - 1) / (2 * N - 2):.1f} {y(value):.1f}"
                for at, value in enumerate(values)
            )
            return "M" + "L".join(points)

        similarity = self.similarity
        biased = kind in ("alibi", "relative")
        others = [_diagonals(bias) for bias in self.bias] if biased else []
        level = "0" if low < 0 < high else ""
        return {
            "zero": {"d": f"M{LEFT} {y(0):.1f}h{SIZE}"},
            "others": {"d": "".join(map(path, others))},
            "curve": {"d": path(similarity)},
            "reach": {"d": path(similarity[N - 1 - p : 2 * N - 1 - p], -p)},
            "high": {"text": _whole(high), "y": f"{y(high) + 4:.1f}"},
            "level": {"text": level, "y": f"{y(0) + 4:.1f}"},
            "low": {"text": _whole(low), "y": f"{y(low) + 4:.1f}"},
        }

    def _table(self):
        """The picked row as a table, for those who do not see the picture."""
        p, row = self.position, self.scores[self.position]
        similarity = self.similarity[N - 1 - p : 2 * N - 1 - p]
        head = "".join(
            element("th", name, scope="col") for name in ("key", "offset", "curve", "score")
        )
        rows = [
            element("th", f"position {j}", scope="row")
            + element("td", _whole(j - p))
            + element("td", _two(alike))
            + element("td", _two(score))
            for j, (alike, score) in enumerate(zip(similarity, row, strict=True))
        ]
        caption = element("caption", "The curve and the scores at the picked position")
        return caption + "".join(element("tr", cells) for cells in [head, *rows])


_NAMES = ("rows", "top", "bottom", "columns", "first", "last")


def _diagonals(matrix):
    """The value on each diagonal of a matrix that has one on each, key minus query from -63."""
    return np.concatenate([matrix[-1], matrix[0, 1:]])


def _heat(name, shades):
    """The cells of a heatmap: a stroke along each run of equal steps, one path for each step."""
    paths = {step: "" for step in range(1, SHADES + 1)}
    steps = np.floor(shades * SHADES + 0.5).astype(int)
    for i, row in enumerate(steps.tolist()):
        start = 0
        for j in range(1, len(row) + 1):
            if j == len(row) or row[j] != row[start]:
                if row[start]:  # nothing is drawn for 0
                    paths[row[start]] += f"M{start} {i}h{j - start}"
                start = j
    rows, columns = shades.shape
    across, down = SIZE / columns, SIZE / rows
    # A stroke runs along the middle of its row and is as wide as the row is high.
    place = f"translate({LEFT} {TOP + down / 2:g}) scale({across:.4f} {down:g})"
    return {f"{name}_cells": {"transform": place}} | {
        f"{name}_{step}": {"d": d} for step, d in paths.items()
    }


def _names(name, rows, top, bottom, columns, last):
    said = (rows, top, bottom, columns, "0", last)
    return {f"{name}_{part}": {"text": text} for part, text in zip(_NAMES, said, strict=True)}


def _pointed(name, row, side, label):
    """The frame of a row and its number; the number at an end gives way to it."""
    y = TOP + row * side
    middle = y + side / 2
    marks = {
        f"{name}_row": {"d": f"M{LEFT} {y - 0.75:g}h{SIZE}v{side + 1.5:g}h-{SIZE}z"},
        f"{name}_here": {"text": label, "y": f"{min(max(middle + 4, TOP + 9), TOP + SIZE):.1f}"},
    }
    if middle < TOP + 18:
        marks[f"{name}_top"] = {"text": ""}
    if middle > TOP + SIZE - 18:
        marks[f"{name}_bottom"] = {"text": ""}
    return marks


def _two(x):
    """Two decimals, with a true minus and no minus before 0.00."""
    # Half up, as in the page, and also where rounding has left a half a little short.
    size = f"{math.floor(abs(x) * 100 + 0.5 + 1e-9) / 100:.2f}"
    return ("−" if x < 0 and size != "0.00" else "") + size


def _whole(x):
    return f"{x:.0f}".replace("-", "−")


def _plain(x, digits):
    """A number in so many digits, never with an exponent."""
    return np.format_float_positional(float(f"{x:.{digits}g}"), trim="-")
