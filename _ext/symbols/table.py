"""The symbols of the course: letters in formulas, names in code, matrices in widgets.

What each one means and its shape are read from notation.md (`notation.py`).
"""

from typing import NamedTuple

from _ext.symbols.tex import signature


class Symbol(NamedTuple):
    """A symbol of the course."""

    tex: str  # as notation.md writes it, colours aside
    role: str = "ink"  # its colour in the palette
    # What it is called in code, the first name first. A name that is a word of the language does
    # not count in comments.
    code: str = ""
    row: str = ""  # the letter of a row of it, `q` for `Q`
    parts: tuple = ()  # where widgets show it: CSS selectors
    # The chapters, by their numbers, and other pages in which the letters mean this, and those in
    # which the names do; elsewhere they are left alone. Unless given, all pages, and as `only`.
    only: frozenset = frozenset()
    only_code: frozenset = frozenset()

    @property
    def name(self):
        """What the page's marks call it: its letters, and its chapters if others use them too."""
        return signature(self.tex) + "".join(f" {page}" for page in in_order(self.only))


def symbol(tex, role="ink", code="", *, row="", parts=(), only=(), only_code=()):
    """A line of the table, as short as it can be."""
    return Symbol(tex, role, code, row, tuple(parts), frozenset(only), frozenset(only_code))


def in_order(pages):
    """Chapters by their numbers, then other pages."""
    return sorted(pages, key=lambda page: (isinstance(page, str), page))


def flow(block):
    return f".abh-flow [data-block={block}]"


def gate(matrix):
    """A matrix that lines pass in Flow."""
    return f".abh-flow [data-gate={matrix}]"


def crossing(name):
    """The scores, the scaled scores or the weights, which Flow shows in one place."""
    return f".abh-flow [data-holds='{name}']"


def cells(matrix):
    return f".abh-backwards [data-cell^='{matrix}.']"


def heatmap(widget):
    """The cells of a heatmap, which are pointed at, and its edge, which lights up."""
    return f".abh-{widget} :is(.cells, .edge)"


ALL = set(range(1, 17))
ATLAS = "parity-atlas"  # a page that is no chapter goes by the name of its file

SYMBOLS = (
    # Sizes
    symbol("n", code="n", only_code={2, 5, 6, 7, 10, 13, 14}),
    symbol("n_q", code="n_q"),
    symbol("n_k", code="n_k"),
    symbol(r"d_\text{model}", code="d_model"),
    symbol("d_k", code="d_k", parts=["[data-part=d_k_value]"]),
    symbol("d_v", code="d_v"),
    symbol(r"d_\text{ff}", code="d_ff"),
    symbol(r"n_\text{heads}", code="n_heads"),
    symbol("L", code="n_layers L", only={8, 14}),
    symbol("b", code="b", only={14}),
    symbol("r", only={14}),
    # Attention
    symbol("X", code="X", parts=[flow("X"), cells("X")]),
    symbol("W_Q", "query", "W_Q w_q", parts=[gate("w_q"), cells("W_Q"), ".abh-plane p.matrix"]),
    symbol("W_K", "key", "W_K w_k", parts=[gate("w_k"), cells("W_K")]),
    symbol("W_V", "value", "W_V w_v", parts=[gate("w_v"), cells("W_V")]),
    symbol(
        "Q", "query", "queries Q", row="q",
        parts=[flow("Q"), cells("Q"), ".abh-plane .query-arrow", ".abh-plane [data-query]"],
    ),
    symbol(
        "K", "key", "keys K", row="k", parts=[flow("K"), cells("K"), ".abh-dot-product .tip.key"]
    ),
    symbol("V", "value", "values V", row="v", parts=[flow("V"), cells("V")]),
    symbol("S", code="scores S", parts=[crossing("S")], only_code=ALL - {1, 11, 13, 16}),
    symbol(
        r"\tilde{S}", code="scaled", parts=[crossing("~S"), cells("S")], only_code={1, 2, 3, 4}
    ),
    symbol(
        "A", "weight", "weights A",
        parts=[
            crossing("A"), cells("A"), ".abh-plane td.weight", heatmap("attention-explorer"),
            heatmap("encoder"), ".abh-letters [data-part=map]",
        ],
    ),
    symbol(
        "Z", code="Z output", row="z",
        parts=[flow("Z"), cells("Z"), ".abh-attention-explorer [data-part=output]"],
        only_code={2, 3, 5, 6, 8, 10, 11, 12, 14},
    ),
    # Chapter 1
    symbol("Y", row="y", only={1}),
    # Masks
    symbol("M", code="mask M", parts=[".abh-mask-painter [data-part=grid]"], only={5}),
    symbol(r"\hat{S}", code="allowed", only={5, ATLAS}, only_code={5}),
    # Heads
    symbol("W_Q^{(h)}", "query", only={6}),
    symbol("W_K^{(h)}", "key", only={6}),
    symbol("W_V^{(h)}", "value", only={6}),
    symbol("M", code="memory M", parts=[flow("M")], only={6, 10}),
    symbol("W_O", code="W_O w_o", parts=[gate("w_o")]),
    symbol("W_O^{(h)}", only={6}),
    # Positions
    symbol("PE", code="PE", parts=[heatmap("positions-explorer")], only={7}),
    symbol(r"X_\text{in}", only={7}),
    symbol("R(k)", code="R", only={7}),
    symbol("B", only={7}),
    # The layer
    symbol("W_1", code="W_1 w_1", parts=[gate("w_1")], only={8, 9, 11}),
    symbol("b_1", code="b_1", only={8, 9}),
    symbol("W_2", code="W_2 w_2", parts=[gate("w_2")], only={8, 9, 11}),
    symbol("b_2", code="b_2", only={8, 9}),
    symbol("X'", parts=[flow("N1")], only={8}),
    symbol("X''", parts=[flow("N2")], only={8}),
    symbol(r"\gamma", code="gamma", only={8, 9, 15}),
    symbol(r"\beta", code="beta", only={8, 9}),
    # Words
    symbol("X^{(1)}", only={10}),
    symbol("X^{(2)}", only={10}),
    symbol("X^{(3)}", only={10}),
    symbol(r"W_\text{vocab}", code="W_vocab w_vocab", parts=[gate("w_vocab")], only={10, 12, 13}),
    symbol("P", code="P", parts=[flow("P")], only={10, 12}),
    symbol("H", code="H", only={13}),
    symbol(r"W_\text{out}", code="w_out", only={13}),
    symbol(r"b_\text{out}", code="b_out", only={13}),
    # Learning
    symbol("Y", only={12}),
    symbol("dZ", code="dZ", only={12}),
    symbol("dA", "weight", "dA", only={12}),
    symbol(r"d\tilde{S}", code="dS", only={12}),
    symbol("dQ", "query", "dQ", row="dq", only={11, 12}),
    symbol("dK", "key", "dK", only={12}),
    symbol("dV", "value", "dV", only={12}),
    symbol("dW_Q", "query", "dW_Q", only={11, 12}),
    symbol("dX", code="dX", only={12}),
    # Since 2017
    symbol(r"W_\text{gate}", code="w_gate", only={15}),
    symbol(r"W_\text{up}", code="w_up", only={15}),
    symbol(r"W_\text{down}", code="w_down", only={15}),
    symbol("c", code="c", only={15}),
    symbol("U", code="U", only={15}),
    symbol("H_t", code="H", only={15}),
    symbol("g_t", code="g", only={15}),
    # Other
    symbol("A'", "weight", only={ATLAS}),
    symbol("B", only={ATLAS}),
    symbol("M", code="mask", only={16}),
    symbol("J", code="J", only={4}),
    symbol(r"\mu", code="mean", only={8}),
    symbol(r"\sigma^2", code="variance", only={8}),
    symbol(r"\varepsilon", code="eps", only={8, 9, 15}),
    symbol("L", parts=[".abh-backwards .loss"], only={11, 12, 13}),
    symbol(r"\eta", code="rate", only={11}),
    symbol("m", code="m", only={14}),
    symbol(r"\ell", code="l", only={14}),
    symbol("o", code="o", only={14}),
)  # fmt: skip

# In these chapters the letter of a row means something else (notation.md, "One letter, several
# things"), and so does a letter of code that only sometimes is a row.
NO_ROWS = {0: "q k", 1: "k", 7: "q k", 12: "k", 14: "k"}  # 0: pages that are no chapters
ROWS_IN_CODE = {2: "q", 10: "q k v"}
