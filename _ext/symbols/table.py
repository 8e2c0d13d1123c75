"""The symbols of the course: letters in formulas, names in code, matrices in widgets.

What each one means and its shape are read from notation.md (`notation.py`).
"""

import re
from pathlib import Path
from typing import NamedTuple

from _ext.course.chapters import read
from _ext.symbols.tex import signature


class Symbol(NamedTuple):
    """A symbol of the course."""

    tex: str  # as notation.md writes it, colors aside
    role: str = "ink"  # its color in the palette
    # What it is called in code, the first name first. A name that is a word of the language does
    # not count in comments.
    code: str = ""
    row: str = ""  # the letter of a row of it, `q` for `Q`
    parts: tuple = ()  # where widgets show it: CSS selectors
    # The chapters and other pages, by `name_of`, in which the letters mean this, and those in which
    # the names do; elsewhere they are left alone. Unless given, all pages, and as `only`.
    only: frozenset = frozenset()
    only_code: frozenset = frozenset()

    @property
    def name(self):
        """What the page's marks call it: its letters, and its chapters if others use them too."""
        return signature(self.tex) + "".join(f" {page}" for page in sorted(self.only))


def symbol(tex, role="ink", code="", *, row="", parts=(), only="", only_code=""):
    """A line of the table, as short as it can be."""
    pages = (frozenset(names.split()) for names in (only, only_code))
    return Symbol(tex, role, code, row, tuple(parts), *pages)


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


def name_of(page):
    """What the table calls a page or a file: its name, a chapter's without the number."""
    return re.sub(r"^\d+-", "", Path(page).stem)


def all_but(names):
    """The names of the other chapters."""
    chapters = {name_of(chapter.file) for chapter in read()}
    return " ".join(sorted(chapters - set(names.split())))


ATLAS = "parity-atlas"
ELSEWHERE = "elsewhere"  # all pages that are no chapters

SYMBOLS = (
    # Sizes
    symbol(
        "n", code="n",
        only_code="queries-keys-values masks many-heads where-am-i encoder-decoder looking-back "
        "what-it-costs",
    ),
    symbol("n_q", code="n_q"),
    symbol("n_k", code="n_k"),
    symbol(r"d_\text{model}", code="d_model"),
    symbol("d_k", code="d_k", parts=["[data-part=d_k_value]"]),
    symbol("d_v", code="d_v"),
    symbol(r"d_\text{ff}", code="d_ff"),
    symbol(r"n_\text{heads}", code="n_heads"),
    symbol("L", code="n_layers L", only="the-encoder-layer what-it-costs"),
    symbol("b", code="b", only="what-it-costs"),
    symbol("r", only="what-it-costs"),
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
    symbol(
        "S", code="scores S", parts=[crossing("S")],
        only_code=all_but("why-attention learning-what-to-ask looking-back a-real-encoder"),
    ),
    symbol(
        r"\tilde{S}", code="scaled", parts=[crossing("~S"), cells("S")],
        only_code="why-attention queries-keys-values chai-piyo-by-hand scaling",
    ),
    symbol(
        "A", "weight", "weights A",
        parts=[
            crossing("A"), cells("A"), ".abh-plane td.weight",
            heatmap("encoder"), ".abh-letters [data-part=map]",
        ],
    ),
    symbol(
        "Z", code="Z output", row="z",
        parts=[flow("Z"), cells("Z")],
        only_code="queries-keys-values chai-piyo-by-hand masks many-heads the-encoder-layer "
        "encoder-decoder learning-what-to-ask backwards-by-hand what-it-costs",
    ),
    # Averages
    symbol("Y", row="y", only="why-attention"),
    # Masks
    symbol("M", code="mask M", parts=[".abh-mask-painter [data-part=grid]"], only="masks"),
    symbol(r"\hat{S}", code="allowed", only="masks parity-atlas", only_code="masks"),
    # Heads
    symbol("W_Q^{(h)}", "query", only="many-heads"),
    symbol("W_K^{(h)}", "key", only="many-heads"),
    symbol("W_V^{(h)}", "value", only="many-heads"),
    symbol("M", code="memory M", parts=[flow("M")], only="many-heads encoder-decoder"),
    symbol("W_O", code="W_O w_o", parts=[gate("w_o")]),
    symbol("W_O^{(h)}", only="many-heads"),
    # Positions
    symbol("PE", code="PE", parts=[heatmap("positions-explorer")], only="where-am-i"),
    symbol(r"X_\text{in}", only="where-am-i"),
    symbol("R(k)", code="R", only="where-am-i"),
    symbol("B", only="where-am-i"),
    # The layer
    symbol(
        "W_1", code="W_1 w_1", parts=[gate("w_1")],
        only="the-encoder-layer a-gpt-on-two-pages what-each-part-is-for learning-what-to-ask",
    ),
    symbol("b_1", code="b_1", only="the-encoder-layer a-gpt-on-two-pages what-each-part-is-for"),
    symbol(
        "W_2", code="W_2 w_2", parts=[gate("w_2")],
        only="the-encoder-layer a-gpt-on-two-pages what-each-part-is-for learning-what-to-ask",
    ),
    symbol("b_2", code="b_2", only="the-encoder-layer a-gpt-on-two-pages what-each-part-is-for"),
    symbol("X'", parts=[flow("N1")], only="the-encoder-layer a-gpt-on-two-pages"),
    symbol("X''", parts=[flow("N2")], only="the-encoder-layer a-gpt-on-two-pages"),
    symbol(r"\gamma", code="gamma", only="the-encoder-layer what-each-part-is-for since-2017"),
    symbol(r"\beta", code="beta", only="the-encoder-layer what-each-part-is-for"),
    # Words
    symbol("E", code="E", parts=[flow("M")], only="a-gpt-on-two-pages"),
    symbol("X^{(1)}", only="encoder-decoder"),
    symbol("X^{(2)}", only="encoder-decoder"),
    symbol("X^{(3)}", only="encoder-decoder"),
    symbol(
        r"W_\text{vocab}", code="W_vocab w_vocab", parts=[gate("w_vocab")],
        only="a-gpt-on-two-pages encoder-decoder backwards-by-hand looking-back",
    ),
    symbol(
        "P", code="P", parts=[flow("P")],
        only="a-gpt-on-two-pages encoder-decoder backwards-by-hand",
    ),
    symbol("H", code="H", only="looking-back"),
    symbol(r"W_\text{out}", code="w_out", only="looking-back"),
    symbol(r"b_\text{out}", code="b_out", only="looking-back"),
    # Learning
    symbol("Y", only="backwards-by-hand"),
    symbol("dZ", code="dZ", only="backwards-by-hand"),
    symbol("dA", "weight", "dA", only="backwards-by-hand"),
    symbol(r"d\tilde{S}", code="dS", only="backwards-by-hand"),
    symbol("dQ", "query", "dQ", row="dq", only="learning-what-to-ask backwards-by-hand"),
    symbol("dK", "key", "dK", only="backwards-by-hand"),
    symbol("dV", "value", "dV", only="backwards-by-hand"),
    symbol("dW_Q", "query", "dW_Q", only="learning-what-to-ask backwards-by-hand"),
    symbol("dX", code="dX", only="backwards-by-hand"),
    # Since 2017
    symbol(r"W_\text{gate}", code="w_gate", only="since-2017"),
    symbol(r"W_\text{up}", code="w_up", only="since-2017"),
    symbol(r"W_\text{down}", code="w_down", only="since-2017"),
    symbol("c", code="c", only="since-2017"),
    symbol("U", code="U", only="since-2017"),
    symbol("H_t", code="state", only="beyond-the-full-table"),
    # Other
    symbol("A'", "weight", only="parity-atlas"),
    symbol("B", only="parity-atlas"),
    symbol("M", code="mask", only="a-real-encoder"),
    symbol("J", code="J", only="scaling"),
    symbol(r"\mu", code="mean", only="the-encoder-layer"),
    symbol(r"\sigma^2", code="variance", only="the-encoder-layer"),
    symbol(r"\varepsilon", code="eps", only="the-encoder-layer what-each-part-is-for since-2017"),
    symbol(
        "L", parts=[".abh-backwards .loss"],
        only="learning-what-to-ask backwards-by-hand looking-back",
    ),
    symbol(r"\eta", code="rate", only="learning-what-to-ask"),
    symbol("m", code="m", only="what-it-costs serving-many-readers"),
    symbol(r"\ell", code="l", only="what-it-costs serving-many-readers"),
    symbol("o", code="o", only="what-it-costs serving-many-readers"),
)  # fmt: skip

# In these chapters the letter of a row means something else (notation.md, "One letter, several
# things"), and so does a letter of code that only sometimes is a row.
NO_ROWS = {
    "why-attention": "k",
    "where-am-i": "q k",
    "backwards-by-hand": "k",
    "what-it-costs": "k",
    ELSEWHERE: "q k",
}
ROWS_IN_CODE = {"queries-keys-values": "q", "encoder-decoder": "q k v"}
