r"""Linked reading: the symbols of the course, and where each one stands on a page.

`SYMBOLS` is the one table: a symbol's letters in formulas, its names in code, its matrix in the
widgets. What it means and its shape are read from notation.md, whose tables are thereby the only
place that says so. `NUMPY` says what an equation is in code; `tests/test_symbols.py` runs it.

A page is not made heavier for it. Everything goes into one file, `_static/symbols.js`, which
`book.js` fetches as soon as somebody moves a pointer or presses a key, and which finds the letters
in the drawn formulas and the names in the code by itself. An equation's TeX is found by its
MathML, so that the file fits a page of an earlier build, too.
"""

import json
import re
import unicodedata
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

from sphinx.errors import ExtensionError

from _ext import ROOT
from _ext.assets import minify
from _ext.math.formulas import used_formulas

HERE = Path(__file__).parent
NOTATION = ROOT / "notation.md"

# --- the table -----------------------------------------------------------------------------------


class Symbol(NamedTuple):
    """A symbol of the course.

    Parameters
    ----------
    tex : str
        As notation.md writes it, colours aside.
    role : str
        Its colour in the palette.
    code : str
        What it is called in code, the first name first. A name that is a word of the language
        does not count in comments.
    row : str
        The letter of a row of it, `q` for `Q`.
    parts : tuple of str
        Where widgets show it: CSS selectors.
    only : set of int and str
        The chapters, and other pages, in which the letters mean this; elsewhere they are left
        alone. All pages unless given.
    only_code : set of int and str
        Those in which the names mean this; as `only` unless given.
    """

    tex: str
    role: str = "ink"
    code: str = ""
    row: str = ""
    parts: tuple = ()
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
    """A matrix in Flow."""
    return f".abh-flow [data-block={block}]"


def gate(matrix):
    """A matrix that lines pass in Flow."""
    return f".abh-flow [data-gate={matrix}]"


def held(name):
    """What the crossing of Flow holds at its stage: scores, scaled scores or weights."""
    return f".abh-flow [data-holds='{name}']"


def cells(matrix):
    """The numbers of a matrix in Backwards."""
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
    symbol("K", "key", "keys K", row="k", parts=[flow("K"), cells("K"), ".abh-plane path.keys"]),
    symbol("V", "value", "values V", row="v", parts=[flow("V"), cells("V")]),
    symbol("S", code="scores S", parts=[held("S")], only_code=ALL - {1, 11, 13, 16}),
    symbol(
        r"\tilde{S}", code="scaled", parts=[held("~S"), cells("S")], only_code={1, 2, 3, 4}
    ),
    symbol(
        "A", "weight", "weights A",
        parts=[
            held("A"), cells("A"), ".abh-plane td.weight", heatmap("attention-explorer"),
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

# What an equation is in NumPy, by its label. Names are those of the table and of attnlib; what
# is a function in the equation is attnlib's function of that name.
NUMPY = {
    "eq-average": "Y = A @ X",
    "eq-simple-attention": (
        "powers = np.exp(X @ X.T / np.sqrt(X.shape[-1]))\n"
        "A = powers / powers.sum(axis=-1, keepdims=True)"
    ),
    "eq-recurrent": "h_t = np.tanh(W_h @ h + W_x @ x_t + b)",
    "eq-context": "c_t = alpha_t @ h",
    "eq-qkv": "Q, K, V = X @ W_Q, X @ W_K, X @ W_V",
    "eq-attention": (
        "scaled = Q @ K.T / np.sqrt(K.shape[-1])\n"
        "powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))\n"
        "A = powers / powers.sum(axis=-1, keepdims=True)\n"
        "Z = A @ V"
    ),
    "eq-scores": "S = Q @ K.T",
    "eq-scaled": "scaled = S / np.sqrt(d_k)",
    "eq-softmax": (
        "powers = np.exp(scaled)\nA = powers / powers.sum(axis=-1, keepdims=True)"
    ),
    "eq-output": "Z = A @ V",
    "eq-shift": "powers = np.exp(s - s.max())\nshares = powers / powers.sum()",
    "eq-score-sum": "s = (q * k).sum()",
    "eq-softmax-jacobian": "J = np.diag(A_i) - np.outer(A_i, A_i)",
    "eq-mask": (
        "masked = np.where(M, scaled, -np.inf)\n"
        "powers = np.exp(masked - masked.max(axis=-1, keepdims=True))\n"
        "A = powers / powers.sum(axis=-1, keepdims=True)"
    ),
    "eq-head": "head, A = scaled_dot_product_attention(X @ W_Q_h, M @ W_K_h, M @ W_V_h)",
    "eq-multihead": "output = np.concatenate(heads, axis=-1) @ W_O",
    "eq-split": "X_h = X[:, h * d : (h + 1) * d]",
    "eq-head-sum": (
        "output = sum(head @ W_O_h for head, W_O_h in zip(heads, np.split(W_O, len(heads))))"
    ),
    "eq-add-positions": "X_in = X + PE",
    "eq-pe-sin": (
        "p, i = np.arange(n)[:, None], np.arange(d_model // 2)\n"
        "PE[:, 0::2] = np.sin(p / 10000 ** (2 * i / d_model))"
    ),
    "eq-pe-cos": (
        "p, i = np.arange(n)[:, None], np.arange(d_model // 2)\n"
        "PE[:, 1::2] = np.cos(p / 10000 ** (2 * i / d_model))"
    ),
    "eq-rotary": (
        "a, b = x[:, 0::2], x[:, 1::2]\n"
        "theta = p[:, None] * omega\n"
        "pairs = a * np.cos(theta) - b * np.sin(theta), a * np.sin(theta) + b * np.cos(theta)\n"
        "turned = np.stack(pairs, axis=-1).reshape(x.shape)"
    ),
    "eq-alibi": "B = -m[:, None, None] * np.abs(np.arange(n) - np.arange(n)[:, None])",
    "eq-relative-bias": (
        "offset = np.arange(n) - np.arange(n)[:, None]\n"
        "B = T[:, np.clip(offset, -m, m) + m]"
    ),
    "eq-layer-norm": (
        "mu = x.mean(axis=-1, keepdims=True)\n"
        "variance = x.var(axis=-1, keepdims=True)\n"
        "normed = gamma * (x - mu) / np.sqrt(variance + eps) + beta"
    ),
    "eq-ffn": "output = np.maximum(0, x @ W_1 + b_1) @ W_2 + b_2",
    "eq-relu": "output = np.maximum(0, x)",
    "eq-gelu": (
        "from math import erf\n"
        "output = x / 2 * (1 + np.vectorize(erf)(x / np.sqrt(2)))"
    ),
    "eq-post-norm-attention": "X_1 = layer_norm(X + multi_head(X))",
    "eq-post-norm-ffn": "X_2 = layer_norm(X_1 + ffn(X_1))",
    "eq-pre-norm-attention": "X_1 = X + multi_head(layer_norm(X))",
    "eq-pre-norm-ffn": "X_2 = X_1 + ffn(layer_norm(X_1))",
    "eq-encoder-stack": "for layer in layers:\n    X = layer(X)",
    "eq-cross-attention": (
        "Q, K, V = X @ W_Q, M @ W_K, M @ W_V\n"
        "scaled = Q @ K.T / np.sqrt(K.shape[-1])\n"
        "powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))\n"
        "output = powers / powers.sum(axis=-1, keepdims=True) @ V"
    ),
    "eq-decoder-self": "X_1 = layer_norm(X + multi_head(X, X))",
    "eq-decoder-cross": "X_2 = layer_norm(X_1 + multi_head(X_1, M))",
    "eq-decoder-ffn": "X_3 = layer_norm(X_2 + ffn(X_2))",
    "eq-next-word": (
        "powers = np.exp(X_3 @ W_vocab)\nP = powers / powers.sum(axis=-1, keepdims=True)"
    ),
    "eq-price": "price = -np.log(share)",
    "eq-step": "W_Q = W_Q - eta * dW_Q",
    "eq-pull": "pull = (K[right] - A_i @ K) / np.sqrt(d_k)",
    "eq-back-softmax": "dS = A * (dA - (A * dA).sum(axis=-1, keepdims=True))",
    "eq-back-values": "dV = A.T @ dZ",
    "eq-back-weights": "dA = dZ @ V.T",
    "eq-back-queries": "dQ = dS @ K / np.sqrt(d_k)",
    "eq-back-keys": "dK = dS.T @ Q / np.sqrt(d_k)",
    "eq-back-projection": "dW_Q, dW_K, dW_V = X.T @ dQ, X.T @ dK, X.T @ dV",
    "eq-back-tokens": "dX = dQ @ W_Q.T + dK @ W_K.T + dV @ W_V.T",
    "eq-back-price": "d_scores = (P - Y) / n",
    "eq-letters-shares": (
        "powers = np.exp(H @ W_out + b_out)\n"
        "shares = powers / powers.sum(axis=-1, keepdims=True)"
    ),
    "eq-online-softmax": (
        "m_new = max(m, s.max())\n"
        "powers = np.exp(s - m_new)\n"
        "l = np.exp(m - m_new) * l + powers.sum()\n"
        "o = np.exp(m - m_new) * o + powers @ V\n"
        "m = m_new"
    ),
    "eq-blockwise": (
        "m = scaled.max(axis=-1, keepdims=True)\n"
        "powers = np.exp(scaled - m)\n"
        "Z = powers @ V / powers.sum(axis=-1, keepdims=True)"
    ),
    "eq-rms-norm": "normed = gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)",
    "eq-swiglu": (
        "gate = x @ W_gate\noutput = (gate / (1 + np.exp(-gate)) * (x @ W_up)) @ W_down"
    ),
    "eq-linear-state": "H, g = H + np.outer(phi_k, v), g + phi_k\nz = phi_q @ H / (phi_q @ g)",
    "eq-empty-row": (
        "powers = np.exp(masked - masked.max(axis=-1, keepdims=True, initial=-1e300))\n"
        "total = powers.sum(axis=-1, keepdims=True)\n"
        "A = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)"
    ),
    "eq-dropout": "dropped = B / (1 - p) * A",
    "eq-parity": "difference = np.abs(theirs - ours).max()",
    "eq-mean-pool": "mean = (M[:, None] * x).sum(axis=0) / M.sum()",
    "eq-unit": "u = mean / np.linalg.norm(mean)",
    "eq-cosine": "cosine = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))",
}  # fmt: skip

# --- TeX, as letters and as HTML -----------------------------------------------------------------

GREEK = {"gamma": "γ", "beta": "β", "mu": "μ", "sigma": "σ", "varepsilon": "ε", "eta": "η"}
GREEK |= {"ell": "ℓ"}
COLOUR = re.compile(r"\\textcolor\{#\w+\}\{((?:[^{}]|\{[^{}]*\})*)\}")
# What as_html knows, in this order; letters in <up> are no symbols.
HTML = {
    r"\\text\{([\w ]+)\}": r"<up \1>",
    r"\\tilde\{(\w)\}": "\\1\u0303",
    r"\\hat\{(\w)\}": "\\1\u0302",
    r"\^\\top": "<sup><up T></sup>",
    r"\\sqrt\{(\w+)\}": r"√\1",
    "''": "″",
    "'": "′",
    r"_\{?(<up [\w ]+>|\w+)\}?": r"<sub>\1</sub>",
    r"\^\{?(\([^)]*\)|\d)\}?": r"<sup>\1</sup>",
}
ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)


def plain(tex):
    """TeX without its colours."""
    while COLOUR.search(tex):
        tex = COLOUR.sub(r"\1", tex)
    return tex


def signature(tex):
    """The letters of a symbol in one line, as symbols.js reads them off a drawn formula."""
    tex = re.sub(r"\\(\w+)", lambda match: GREEK.get(match[1], match[0]), tex)
    tex = tex.replace(r"\tilde", "~").replace(r"\hat", "^").replace("''", "^″").replace("'", "^′")
    return unicodedata.normalize("NFKC", re.sub(r"\\text|[{}]|\(k\)", "", tex))


def as_html(tex):
    """A few letters of TeX as HTML for a line of text.

    Raises
    ------
    ExtensionError
        If there is more in it than that.
    """
    text = re.sub(r"\\(\w+)", lambda match: GREEK.get(match[1], match[0]), plain(tex))
    for theirs, ours in HTML.items():
        text = re.sub(theirs, ours, text)
    if re.search(r"[\\{}^_$]", text):
        raise ExtensionError(f"symbols.py cannot write ${tex}$ as HTML")
    text = re.sub(r"<.*?>|[^\W\d_][^\W\d_\u0302\u0303]*[\u0302\u0303]?", leaning, text)
    return re.sub("<up (.*?)>", r"\1", text)


def leaning(match):
    """Letters lean; what is a tag, or a word of the language, stands."""
    return match[0] if match[0].startswith("<") else f"<i>{match[0]}</i>"


def sentence(markdown):
    """The first thing that a cell of notation.md says, as HTML, without where to read more.

    What it is in code stands in the table.
    """
    text = re.sub(r", in code `\w+`|(, )?\{eq\}`[^`]*`", "", markdown.split("; ")[0])
    text = re.sub(r"^(?:in|from) chapter \d+(?: on)?[,:] |, chapter \d+$", "", text.strip())
    parts = re.split(r"\$([^$]*)\$|`([^`]*)`", text)
    html = [escape(part, quote=False) for part in parts[0::3]]
    for i, (tex, code) in enumerate(zip(parts[1::3], parts[2::3], strict=True)):
        html[i] += as_html(tex) if tex else f"<code>{escape(code)}</code>"
    return "".join(html)


# --- what notation.md says -----------------------------------------------------------------------


def notation(text):
    """What the tables of notation.md say of each symbol.

    A row may have several. Then `;` stands between what is said of each, and each has a shape;
    or the row says one thing of all.

    Returns
    -------
    list of (str, str, str, str, set)
        TeX, meaning, shape and names in code, each as Markdown, and the chapters and pages that
        the row names; a table may lack shapes or names.
    """
    said = []
    for table in re.findall(r"^\| symbol .*?^:::", text, flags=re.MULTILINE | re.DOTALL):
        lines = ROW.findall(table)
        head, _, *rows = ([cell.strip() for cell in line.split("|")] for line in lines)
        for line, row in zip(lines[2:], rows, strict=True):
            cells = dict(zip(head, row, strict=True))
            symbols = [plain(tex) for tex in re.findall(r"\$([^$]+)\$", cells["symbol"])]
            columns = (
                shared(cells["meaning"].split("; "), cells["meaning"], symbols),
                shared(re.findall(r"\$[^$]+\$", cells.get("shape", "")), "", symbols),
                shared(re.findall(r"`[^`]+`", cells.get("in code", "")), "", symbols),
            )
            pages = {int(number) for number in re.findall(r"chapter (\d+)", line)}
            pages |= {ATLAS} if "parity atlas" in line else set()
            said += zip(symbols, *columns, [pages] * len(symbols), strict=True)
    return said


def shared(parts, whole, symbols):
    """One part for each symbol; where there are not as many, all have the same."""
    if len(parts) == len(symbols):
        return parts
    return [parts[0] if len(parts) == 1 else whole] * len(symbols)


def explained(symbols, text):
    """The meaning and the shape of each symbol, from notation.md, as HTML.

    Where several rows have its letters, the row is the one that names a page of the symbol, or
    else the one that names none.

    Raises
    ------
    ExtensionError
        If no row, or more than one, is a symbol's.
    """
    found = {}
    for each in symbols:
        rows = [row for row in notation(text) if row[0] == each.tex]
        if len(rows) > 1:
            rows = [row for row in rows if row[4] & each.only] or [
                row for row in rows if not row[4]
            ]
        if len(rows) != 1:
            raise ExtensionError(f"notation.md has {len(rows)} rows for ${each.tex}$, {each.name}")
        _, meaning, shape, *_ = rows[0]
        like = "as " if shape and "(" not in shape else ""
        found[each] = sentence(meaning), like + sentence(shape)
    return found


# --- the file of the site ------------------------------------------------------------------------


def digest(drawn):
    """A short name of a typeset formula, from its MathML: by it the page finds the TeX.

    It is FNV-1a of the elements and the letters, which the page knows as well.
    """
    mathml = re.search(r"<mjx-assistive-mml>(.*)</mjx-assistive-mml>", drawn, re.DOTALL)[1]
    letters = re.sub(r"\s+", "", unescape(re.sub(r"<[^>]*>", "", mathml)))
    number = 0x811C9DC5
    for sign in " ".join([*re.findall(r"<(\w+)", mathml), letters]):
        number = (number ^ ord(sign)) * 0x01000193 % 2**32
    return f"{number:x}"


def equations(formulas):
    """The TeX of each displayed formula, without its colours, by the digest of its MathML."""
    return {
        digest(drawn): unwrapped(plain(tex).strip())
        for (tex, display), drawn in sorted(formulas.items())
        if display
    }


def unwrapped(tex):
    """TeX without the `split` around it, unless lines of its own end in it."""
    inner = re.fullmatch(r"\\begin\{split\}\s*(.*?)\s*\\end\{split\}", tex, re.DOTALL)
    if not inner:
        return tex
    rest, environment = inner[1], r"\\begin\{(\w+)\}((?!\\begin).)*?\\end\{\1\}"
    while re.search(environment, rest, re.DOTALL):
        rest = re.sub(environment, "", rest, flags=re.DOTALL)
    return tex if r"\\" in rest else inner[1]


def table(text):
    """The symbols as the page wants them."""
    said = explained(SYMBOLS, text)
    return [
        {
            "name": each.name, "form": signature(each.tex), "role": each.role,
            "code": each.code.split(), "row": each.row, "parts": ", ".join(each.parts),
            "only": in_order(each.only), "onlyCode": in_order(each.only_code or each.only),
            "html": as_html(each.tex), "means": said[each][0], "shape": said[each][1],
        }
        for each in SYMBOLS
    ]  # fmt: skip


def script(formulas):
    """The text of `symbols.js`: the program, and all that it knows."""
    known = {
        "symbols": table(NOTATION.read_text(encoding="utf-8")),
        "noRows": NO_ROWS, "rowsInCode": ROWS_IN_CODE, "numpy": NUMPY,
        "tex": equations(formulas),
        "style": minify((HERE / "symbols.css").read_text(encoding="utf-8"), ".css"),
    }  # fmt: skip
    program = minify((HERE / "symbols.js").read_text(encoding="utf-8"), ".js")
    data = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
    return program.replace("KNOWN", data, 1)


def write_script(app, builder):
    """Before the first page is written: all formulas are typeset."""
    if builder.format != "html":
        return
    place = Path(app.outdir, "_static", "symbols.js")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(script(used_formulas(app)), encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("write-started", write_script, priority=600)  # after `mathematics`
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
