"""CostCalculator: the sizes of a model and a text; the work, the memory, and where it ends."""

import math

import traitlets

from attnlib.widgets.base import CourseWidget, esm
from attnlib.widgets.still import element, line, moving, options, sheet, text

KINDS = {
    "full": "full attention",
    "blockwise": "in blocks of 128 queries",
    "window": "sliding window",
    "grouped": "grouped queries",
    "linear": "linear attention",
}
BYTES = {8: "8, float64", 4: "4, float32", 2: "2, float16", 1: "1, int8"}
MODELS = {  # name: (d_model, n_heads, n_layers)
    "Transformer, base": (512, 8, 6),
    "BERT base, GPT-2 small": (768, 12, 12),
    "Llama 2 7B": (4096, 32, 32),
    "GPT-3": (12288, 96, 96),
}
# name of a trait: (smallest, largest, what it is called)
RANGES = {
    "n": (1, 2**20, "tokens"),
    "d_model": (1, 65536, "d_model"),
    "n_heads": (1, 1024, "heads"),
    "n_layers": (1, 1024, "layers"),
    "width": (0, 2**20, "the width of the window"),
    "group": (1, 1024, "heads that share"),
}
BLOCK = 128
STOPS = [round(2 ** (7 + half / 2)) for half in range(27)]  # of the slider, 128 to 2^20

# The sheet that everything is drawn on; cost_calculator.js draws on the same one.
WIDTH, HEIGHT = 360, 330
LEFT, TOP, WIDE, TALL = 52, 30, 296, 200
FEWEST, MOST = 7, 20  # powers of 2, tokens
LEAST, LARGEST = 5, 14  # powers of 10, bytes
BAR, THICK = 278, 22


def pairs(kind, n, width):
    """How many pairs of a query and a key meet, in each head."""
    if kind == "window" and width < n:
        return n * (2 * width + 1) - width * (width + 1)
    return n * n


def costs(kind, n, d_model, n_heads, n_layers, size, width, group):
    """Work and memory of attention: Eqs. (1) to (3) of chapter 10, and what each kind changes.

    Returns a dict. "projections", "attention" and "feed_forward" are FLOPs of one layer;
    "weights" are the bytes of A, or of what stands in its place, in one layer; "cache" the bytes
    that a decoder keeps, in all layers.
    """
    d_k = d_model // n_heads
    shared = group if kind == "grouped" else 1
    # Keys and values that a decoder still needs; linear attention keeps one (d_k, d_k) a head.
    kept = min(n, width + 1) if kind == "window" else n
    state = n_heads * d_k * d_k
    return {
        "projections": 4 * n * d_model**2 + 4 * n * d_model**2 / shared,
        "attention": 4 * (n * d_k if kind == "linear" else pairs(kind, n, width)) * d_model,
        "feed_forward": 16 * n * d_model**2,
        "weights": size
        * {
            "blockwise": min(BLOCK, n) * n,
            "linear": state,
        }.get(kind, n_heads * pairs(kind, n, width)),
        "cache": n_layers * size * (state if kind == "linear" else 2 * kept * d_model / shared),
    }


def held(found):
    """Bytes held at once: the weights of one layer, the cache of all."""
    return found["weights"] + found["cache"]


class CostCalculator(CourseWidget):
    """What attention costs: FLOPs, the size of A, the key-value cache, and where it stops fitting.

    Parameters
    ----------
    n : int
        Tokens, 1 to 1,048,576.
    d_model, n_heads, n_layers : int
        Sizes of the model; `n_heads` divides `d_model`, and d_ff is 4 d_model.
    bytes : {1, 2, 4, 8}
        Bytes a number.
    kind : {"full", "blockwise", "window", "grouped", "linear"}
        What is done about the cost.
    width : int
        Of the sliding window: tokens on each side.
    group : int
        Heads that share keys and values, in grouped-query attention; divides `n_heads`.
    memory : float
        Gigabytes (10^9 bytes) that there are for A and the cache.

    Raises
    ------
    ValueError
        For a size outside its range, or one that does not divide as it must.
    traitlets.TraitError
        For a value of the wrong type, or a choice that does not exist.
    """

    _esm = esm("cost_calculator")
    _name = "cost"
    _label = "Cost calculator"
    _shown = ("n", "d_model", "n_heads", "n_layers", "bytes", "kind", "width", "group", "memory")

    n = traitlets.Int(4096).tag(sync=True)
    d_model = traitlets.Int(512).tag(sync=True)
    n_heads = traitlets.Int(8).tag(sync=True)
    n_layers = traitlets.Int(6).tag(sync=True)
    bytes = traitlets.Enum(list(BYTES), 4).tag(sync=True)
    kind = traitlets.Enum(list(KINDS), "full").tag(sync=True)
    width = traitlets.Int(256).tag(sync=True)
    group = traitlets.Int(4).tag(sync=True)
    memory = traitlets.Float(24.0).tag(sync=True)

    @traitlets.validate(*RANGES)
    def _check_size(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        least, most, called = RANGES[name]
        if isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"{name} ({called}) must lie between {least} and {most}; got {value}")
        sizes = {key: getattr(self, key) for key in ("d_model", "n_heads", "group")} | {name: value}
        for whole, part in (("d_model", "n_heads"), ("n_heads", "group")):
            if name in (whole, part) and sizes[whole] % sizes[part]:
                raise ValueError(
                    f"{part} must divide {whole}; got {sizes[part]} and {sizes[whole]}"
                )
        return value

    @traitlets.validate("memory")
    def _check_memory(self, proposal):
        if not 0 < proposal["value"] <= 1e6:
            raise ValueError(f"memory must lie above 0 and up to 1e6; got {proposal['value']}")
        return proposal["value"]

    def at(self, n, kind=None):
        """Work and memory at `n` tokens, as a dict; see `costs`."""
        sizes = (n, self.d_model, self.n_heads, self.n_layers, self.bytes, self.width, self.group)
        return costs(kind or self.kind, *sizes)

    @property
    def costs(self):
        """Work and memory at `n` tokens, as a dict; see `costs` of this module."""
        return self.at(self.n)

    @property
    def longest(self):
        """The most tokens whose weights and cache fit into `memory`, up to 2^40; 0 for none."""
        low, high = 0, 2**40
        while low < high:
            middle = (low + high + 1) // 2
            if held(self.at(middle)) <= self.memory * 1e9:
                low = middle
            else:
                high = middle - 1
        return low

    def _html(self):
        found = self.costs
        stop = min(range(len(STOPS)), key=lambda i: abs(math.log(STOPS[i] / self.n)))
        stops = {"max": len(STOPS) - 1, "value": stop, "data_stops": " ".join(map(str, STOPS))}
        sizes = (self.d_model, self.n_heads, self.n_layers)
        model = next((name for name, known in MODELS.items() if known == sizes), "")
        models = [(name, name) for name in MODELS] + [("", "your own")]
        known = {name: " ".join(map(str, sizes)) for name, sizes in MODELS.items()}
        choices = "".join(
            element("option", label, value=known.get(name, ""), selected=name == model)
            for name, label in models
        )
        window = _field("width", "Width of the window", self.width, hidden=self.kind != "window")
        group = _field("group", "Heads that share", self.group, hidden=self.kind != "grouped")
        lines = {
            name: element("b", text, data_part=name, class_="number")
            for name, text in self._words(found).items()
        }
        return f"""
<div class="controls">
<label class="main"><span>Tokens <b class="number" data-part="n_value">{self.n:,}</b></span>
{element("input", type="range", name="n", min=0, **stops)}</label>
<label class="wide"><span>Kind of attention</span>
{element("select", options(KINDS.items(), self.kind), name="kind")}</label>
<label class="wide"><span>Model</span>{element("select", choices, name="model")}</label>
{_field("d_model", "d_model", self.d_model)}{_field("n_heads", "Heads", self.n_heads)}
{_field("n_layers", "Layers", self.n_layers)}
<label><span>Bytes a number</span>
{element("select", options(BYTES.items(), self.bytes), name="bytes")}</label>
{_field("memory", "Memory, GB", f"{self.memory:g}")}<div class="extra">{window}{group}</div>
</div>
<div class="readout">
<p><span class="big" data-part="weights">{amount(found["weights"], "B")}</span>
<span>for the weights of one layer{lines["instead"]}</span></p>
<p><span class="big" data-part="cache">{amount(found["cache"], "B")}</span>
<span>for the key-value cache of all layers</span></p>
<p><span class="big" data-part="flops">{amount(_total(found), "")}</span>
<span>FLOPs a layer, of which scores and blend are {lines["share"]}</span></p>
<p><span class="big" data-part="longest">{amount(self.longest, "", whole=True)}</span>
<span>tokens are the most that fit: {lines["fits"]}</span></p>
<p class="buttons"><button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>
</div>
<div class="picture">{self._drawing(found)}</div>
<p class="cell">Thick line: what must be held at once, the weights of one layer and the cache of
all. Thin line: the same for full attention. Dashed: the memory there is. The model itself takes
memory too, which is not counted. d_ff is 4 d_model.</p>
<div class="visually-hidden">{element("table", self._table(), data_part="table")}</div>
"""

    def _words(self, found):
        """What the readout says beside its numbers."""
        instead = {"blockwise": ", of which one block is held", "linear": ": a sum in place of A"}
        fits = held(found) <= self.memory * 1e9
        return {
            "instead": instead.get(self.kind, ""),
            "share": f"{100 * found['attention'] / _total(found):.0f} %",
            "fits": "this text does" if fits else "this text does not",
        }

    def _drawing(self, found):
        """The sheet: bytes against tokens, and the shares of the FLOPs of a layer."""
        marks = self._marks(found)
        parts = [text("Bytes held at once, against tokens", 0, 14, "ink")]
        for power, name in ((6, "1 MB"), (9, "1 GB"), (12, "1 TB")):
            y = _y(10.0**power)
            parts.append(text(name, LEFT - 6, y + 4, anchor="end"))
            parts.append(line(f"M{LEFT} {y:.1f}h{WIDE}", stroke_opacity=0.4))
        for power in (7, 10, 13, 16, 20):
            anchor = "end" if power == MOST else "middle"
            parts.append(text(f"{2**power:,}", _x(2**power), TOP + TALL + 16, anchor=anchor))
        parts += [
            line(f"M{LEFT} {TOP}V{TOP + TALL}h{WIDE}"),
            moving("path", "full", marks, fill="none", stroke="var(--muted)", stroke_width=1.3),
            moving("path", "limit", marks, stroke="var(--ink)", stroke_dasharray="5 3"),
            moving("path", "held", marks, fill="none", stroke="var(--weight)", stroke_width=2.5),
            moving("path", "here", marks, stroke="var(--ink)", stroke_width=1),
            moving("circle", "dot", marks, r=4.5, fill="var(--weight)"),
            text("FLOPs of one layer", 0, BAR - 8, "ink"),
        ]
        for name, role in (("projections", "muted"), ("attention", "weight"), ("feed", "ink")):
            parts.append(moving("rect", name, marks, y=BAR, height=THICK, fill=f"var(--{role})"))
        for x, label, role in (
            (0, "■ projections", "muted"),
            (112, "■ scores, blend", "weight"),
            (238, "■ feed-forward", "ink"),
        ):
            parts.append(text(label, x, BAR + THICK + 18, role))
        return sheet(
            parts,
            WIDTH,
            HEIGHT,
            "Bytes held at once against tokens, with the limit, and the shares of the "
            "FLOPs of a layer; the table below holds the numbers",
        )

    def _marks(self, found):
        """What follows the traits: the attributes of each moving part, as `marks` in the page."""
        total, left, bars = _total(found), 0.0, {}
        for part, name in (
            ("projections", "projections"),
            ("attention", "attention"),
            ("feed", "feed_forward"),
        ):
            wide = WIDTH * found[name] / total
            bars[part] = {"x": f"{left:.1f}", "width": f"{wide:.1f}"}
            left += wide
        limit = _y(self.memory * 1e9)
        return {
            "full": {"d": self._line("full")},
            "limit": {"d": f"M{LEFT} {limit:.1f}h{WIDE}"},
            "held": {"d": self._line(self.kind)},
            "here": {"d": f"M{_x(self.n):.1f} {TOP}V{TOP + TALL}"},
            "dot": {"cx": f"{_x(self.n):.1f}", "cy": f"{_y(held(found)):.1f}"},
            **bars,
        }

    def _line(self, kind):
        points = (f"{_x(n):.1f} {_y(held(self.at(n, kind))):.1f}" for n in STOPS)
        return "M" + "L".join(points)

    def _table(self):
        """The numbers behind the curve, for those who do not see it."""
        heads = ("tokens", "weights of one layer", "cache", "FLOPs a layer", "fits")
        rows = ["".join(element("th", head, scope="col") for head in heads)]
        for n in STOPS[::4]:
            found = self.at(n)
            cells = (
                amount(found["weights"], "B"),
                amount(found["cache"], "B"),
                amount(_total(found), ""),
                "yes" if held(found) <= self.memory * 1e9 else "no",
            )
            first = element("th", f"{n:,}", scope="row")
            rows.append(first + "".join(element("td", cell) for cell in cells))
        caption = element("caption", f"{KINDS[self.kind]}: memory and work")
        return caption + "".join(element("tr", row) for row in rows)


def amount(number, unit, whole=False):
    """A number in three digits and a prefix: 2.15 GB, or 34.4 T."""
    if whole and number < 1e5:
        return f"{number:,}"
    power = min(max(math.floor(math.log10(number) / 3), 0), 6) if number else 0
    scaled = number / 1000**power
    if power == 0:
        digits = f"{scaled:.4g}"
    elif scaled >= 999.5:  # three digits would be written as a power of ten
        digits = f"{scaled:.0f}"
    else:
        digits = f"{scaled:#.3g}".rstrip(".")
    return f"{digits} {['', 'k', 'M', 'G', 'T', 'P', 'E'][power]}{unit}".strip()


def _total(found):
    return found["projections"] + found["attention"] + found["feed_forward"]


def _x(n):
    return LEFT + WIDE * min(max((math.log2(n) - FEWEST) / (MOST - FEWEST), 0), 1)


def _y(size):
    height = (math.log10(max(size, 1)) - LEAST) / (LARGEST - LEAST)
    return TOP + TALL * (1 - min(max(height, 0), 1))


def _field(name, label, value, hidden=False):
    """A size that can be typed."""
    box = element("input", type="text", inputmode="decimal", name=name, value=value)
    return element("label", f"<span>{label}</span>{box}", data_part=f"{name}_field", hidden=hidden)
