"""The symbols of the course: one table, what notation.md says of them, and equations as NumPy."""

import math
import re

import numpy as np
import pytest
from sphinx.errors import ExtensionError

import attnlib
from _ext import notebook
from _ext.symbols.notation import NOTATION, explained, notation
from _ext.symbols.page import NUMPY, unwrapped
from _ext.symbols.table import ELSEWHERE, NO_ROWS, ROWS_IN_CODE, SYMBOLS, name_of
from _ext.symbols.tex import as_html, plain, signature
from attnlib.models import mean_pool
from tests.helpers import D_FF, D_K, D_MODEL, HEADS, N_MEMORY, N, tokens
from tools.build import notebooks

NOTEBOOKS = {name_of(path): path for path in notebooks()}
SAID = NOTATION.read_text(encoding="utf-8")


def cells(kind):
    """The text of the cells of one kind, by page."""
    return {
        n: [cell.source for cell in notebook.read(path).cells if cell.cell_type == kind]
        for n, path in NOTEBOOKS.items()
    }


def test_each_symbol_is_explained_by_one_row_of_the_notation():
    said = {each.name: text for each, text in explained(SYMBOLS, SAID).items()}
    assert len(said) == len(SYMBOLS)
    d_k = "<i>d</i><sub><i>k</i></sub>"
    assert said["K"] == ("keys", f"(<i>n</i>, {d_k})")
    assert said["~S"] == (f"scaled scores, <i>S</i> / √{d_k}", "(<i>n</i>, <i>n</i>)")
    assert said["M masks"][0].startswith("mask")
    assert said["M encoder-decoder many-heads"][0] == "the tokens that are attended to"
    assert said["L the-encoder-layer what-it-costs"][0] == "layers of a stack"
    assert said["L backwards-by-hand learning-what-to-ask looking-back"][0] == "the loss"
    assert (
        said["dW_Q backwards-by-hand learning-what-to-ask"][1] == "as <i>W</i><sub><i>Q</i></sub>"
    )


def test_the_table_names_what_is_there():
    named = set().union(*(each.only | each.only_code for each in SYMBOLS))
    assert named | {*NO_ROWS, *ROWS_IN_CODE} - {ELSEWHERE} <= {*NOTEBOOKS}
    called = {tex: code.strip("`") for tex, _, _, code, _ in notation(SAID) if code}
    table = {(each.tex, word) for each in SYMBOLS for word in each.code.split()}
    assert called and table.issuperset(called.items())


def test_a_symbol_that_the_notation_lacks_stops_the_build():
    cut = "".join(line for line in SAID.splitlines(True) if "| queries; keys |" not in line)
    with pytest.raises(ExtensionError, match=r"0 rows for \$Q\$"):
        explained(SYMBOLS, cut)


def test_each_size_and_matrix_of_the_notation_is_in_the_table():
    known = {each.tex for each in SYMBOLS}
    rows = [tex for tex, _, shape, code, _ in notation(SAID) if shape or code]
    assert {tex for tex in rows if tex not in known} == {"P_h[i]", "M_i"}  # no letters of their own


def test_names_in_code_are_used_where_they_count():
    used = {}
    for page, sources in cells("code").items():
        for source in sources:
            used.setdefault(page, set()).update(re.findall(r"\w+", source))
    idle = [
        (each.name, word)
        for each in SYMBOLS
        for word in each.code.split()
        if not any(word in used[n] for n in each.only_code or each.only or NOTEBOOKS)
    ]
    assert idle == []


def test_no_two_symbols_of_a_page_have_one_sign():
    for page in NOTEBOOKS:
        here = [each for each in SYMBOLS if not each.only or page in each.only]
        forms = [signature(each.tex) for each in here] + [e.row for e in here if e.row]
        in_code = (each for each in here if page in (each.only_code or {page}))
        words = [word for each in in_code for word in each.code.split()]
        for signs in (forms, words):
            assert len(signs) == len(set(signs)), (page, signs)


@pytest.mark.parametrize(
    ("tex", "sign", "html"),
    [
        (r"d_\text{model}", "d_model", "<i>d</i><sub>model</sub>"),
        (r"\textcolor{#0067a3}{W_Q}^\top", None, "<i>W</i><sub><i>Q</i></sub><sup>T</sup>"),
        (r"\tilde{S}", "~S", "<i>S\u0303</i>"),
        ("X^{(1)}", "X^(1)", "<i>X</i><sup>(1)</sup>"),
        ("X''", "X^′′", "<i>X</i>″"),
        (r"(n, d_\text{ff})", None, "(<i>n</i>, <i>d</i><sub>ff</sub>)"),
    ],
)
def test_letters_of_a_symbol(tex, sign, html):
    assert as_html(tex) == html
    assert sign is None or signature(tex) == sign
    with pytest.raises(ExtensionError, match="letters alone"):
        as_html(rf"\frac{{1}}{{{tex}}}")


def test_tex_is_copied_without_colors_and_without_what_sphinx_wraps_it_in():
    lines = r"\begin{split}a &= b \\ c &= d\end{split}"
    matrix = r"\begin{bmatrix} 1 & 0 \\ 0 & 1 \end{bmatrix}"
    assert unwrapped(lines) == lines
    assert unwrapped(r"\begin{split}" + matrix + r"\end{split}") == matrix
    assert plain(r"\textcolor{#8a3fa0}{A_{ij}} + \textcolor{#007a59}{V}") == "A_{ij} + V"


RNG = np.random.default_rng(19)
D_V, WORDS = 13, 3
X, MEMORY = tokens(N, D_MODEL), tokens(N_MEMORY, D_MODEL, seed=2)
W_Q, W_K = tokens(D_MODEL, D_K, seed=4), tokens(D_MODEL, D_K, seed=5)
W_V, W_O = tokens(D_MODEL, D_V, seed=6), tokens(HEADS * D_V, D_MODEL, seed=7)
Q, K, V = X @ W_Q, X @ W_K, X @ W_V
Z, A = attnlib.scaled_dot_product_attention(Q, K, V)
S = Q @ K.T
SCALED = S / math.sqrt(D_K)
DZ = tokens(N, D_V, seed=8)
DQ, DK, DV = attnlib.attention_backward(Q, K, V, DZ)
DS = attnlib.softmax_backward(A, DZ @ V.T)
FFN = attnlib.FeedForward(
    tokens(D_MODEL, D_FF, seed=9), tokens(D_FF, seed=10),
    tokens(D_FF, D_MODEL, seed=11), tokens(D_MODEL),
)  # fmt: skip
GAMMA, BETA = tokens(D_MODEL, seed=12), tokens(D_MODEL, seed=13)
CAUSAL = attnlib.causal_mask(N)
LAYERS = {
    first: attnlib.EncoderLayer.init(
        D_MODEL, HEADS, D_FF, np.random.default_rng(23), norm_first=first, dtype=np.float64
    )
    for first in (False, True)
}
HEAD_OUTPUTS = tokens(HEADS, N, D_V, seed=14)
JOINED = attnlib.merge_heads(HEAD_OUTPUTS) @ W_O
ENCODINGS = attnlib.sinusoidal_positions(N, D_MODEL)
LOGITS = tokens(N, WORDS, seed=15)
RIGHT = np.eye(WORDS)[RNG.integers(WORDS, size=N)]


def half(layer, first, x):
    """A layer, and its two halves as functions of tokens."""
    names = {"multi_head": heads_of(layer.attention), "ffn": layer.feed_forward}
    norm = layer.norm_1 if first else layer.norm_2
    return names | {"layer_norm": norm, "X" if first else "X_1": x}


def after_attention(layer):
    """Tokens after the first half of a layer, as the layer itself has them."""
    if layer.norm_first:
        return X + layer.attention(layer.norm_1(X))[0]
    return layer.norm_1(X + layer.attention(X)[0])


def heads_of(attention):
    """What an attention makes of tokens, without its weights."""
    return lambda x, memory=None: attention(x, memory)[0]


DECODER = attnlib.DecoderLayer.init(D_MODEL, HEADS, D_FF, RNG, dtype=np.float64)
DECODED = [DECODER.norm_1(X + DECODER.attention(X)[0])]
DECODED += [DECODER.norm_2(DECODED[0] + DECODER.cross_attention(DECODED[0], MEMORY)[0])]


def nudged(function, x, step=1e-6):
    """The gradient of a number by the entries of x, by central differences."""
    slopes = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[at] += step
        down[at] -= step
        slopes[at] = (function(up) - function(down)) / (2 * step)
    return slopes


def price(logits):
    """The mean of -ln of the right shares."""
    return -np.log((attnlib.softmax(logits) * RIGHT).sum(axis=-1)).mean()


ONE = attnlib.softmax(SCALED[2])
MASKED = np.where(CAUSAL & (np.arange(N) != 3)[:, None], SCALED, -np.inf)  # row 3 is empty
POSITIONS = np.array([2.0, 3, 5, 7, 11, 13, 17])
OMEGA = 10000.0 ** (-np.arange(0, D_MODEL, 2) / D_MODEL)
TABLE = tokens(HEADS, 2 * 3 + 1, seed=17)
POOL = np.array([True, True, True, False, True, False, False])
# What each equation is given, the name of what it makes, and what attnlib, or else the definition
# or a difference, says that is.
EQUATIONS = {
    "eq-average": ({"A": A, "X": X}, "Y", attnlib.scaled_dot_product_attention(Q, K, X)[0]),
    "eq-simple-attention": ({"X": X}, "A", attnlib.scaled_dot_product_attention(X, X, X)[1]),
    "eq-recurrent": (
        {"W_h": W_Q[:D_K], "h": W_K[0], "W_x": W_V[:D_K], "x_t": V[0], "b": W_K[1]},
        "h_t", np.tanh(np.hstack([W_Q[:D_K], W_V[:D_K]]) @ np.hstack([W_K[0], V[0]]) + W_K[1]),
    ),
    "eq-context": (
        {"alpha_t": A[2], "h": V}, "c_t", attnlib.scaled_dot_product_attention(Q, K, V)[0][2]
    ),
    "eq-qkv": ({"X": X, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}, ("Q", "K", "V"), (
        *(np.einsum("nm,md->nd", X, each) for each in (W_Q, W_K, W_V)),
    )),
    "eq-attention": ({"Q": Q, "K": K, "V": V}, ("Z", "A"), (Z, A)),
    "eq-scores": ({"Q": Q, "K": K}, "S", np.einsum("id,jd->ij", Q, K)),
    "eq-scaled": ({"S": S, "d_k": D_K}, "scaled", np.einsum("id,jd->ij", Q, K) * D_K**-0.5),
    "eq-softmax": ({"scaled": SCALED}, "A", attnlib.softmax(SCALED)),
    "eq-output": ({"A": A, "V": V}, "Z", Z),
    "eq-shift": ({"s": 1000 + SCALED[2]}, "shares", attnlib.softmax(SCALED[2])),
    "eq-score-sum": ({"q": Q[2], "k": K[3]}, "s", np.einsum("id,jd->ij", Q, K)[2, 3]),
    "eq-softmax-jacobian": (
        {"A_i": ONE}, "J", np.array([attnlib.softmax_backward(ONE, row) for row in np.eye(N)])
    ),
    "eq-mask": (
        {"M": CAUSAL, "scaled": SCALED}, "A",
        attnlib.scaled_dot_product_attention(Q, K, V, causal=True)[1],
    ),
    "eq-head": (
        {"X": X, "W_Q_h": W_Q, "W_K_h": W_K, "W_V_h": W_V}, "head",
        attnlib.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)[0],
    ),
    "eq-multihead": ({"heads": HEAD_OUTPUTS, "W_O": W_O}, "output", JOINED),
    "eq-split": ({"P": X, "h": 1, "d": D_K}, "P_h", attnlib.split_heads(X, HEADS)[1]),
    "eq-head-sum": ({"heads": HEAD_OUTPUTS, "W_O": W_O}, "output", JOINED),
    "eq-add-positions": ({"X": X, "PE": ENCODINGS}, "X_in", X + ENCODINGS),
    "eq-pe-sin": (
        {"n": N, "d_model": D_MODEL, "PE": np.zeros((N, D_MODEL))}, "PE",
        np.where(np.arange(D_MODEL) % 2, 0, ENCODINGS),
    ),
    "eq-pe-cos": (
        {"n": N, "d_model": D_MODEL, "PE": np.zeros((N, D_MODEL))}, "PE",
        np.where(np.arange(D_MODEL) % 2, ENCODINGS, 0),
    ),
    "eq-rotary": (
        {"x": X, "p": POSITIONS, "omega": OMEGA}, "turned", attnlib.rotary(X, POSITIONS)
    ),
    "eq-alibi": (
        {"n": N, "m": 2.0 ** (-8 * np.arange(1, 9) / 8)}, "B", attnlib.alibi_bias(8, N)
    ),
    "eq-relative-bias": (
        {"n": N, "m": 3, "T": TABLE}, "B", attnlib.relative_position_bias(TABLE, N)
    ),
    "eq-layer-norm": (
        {"x": X, "gamma": GAMMA, "beta": BETA, "eps": 1e-5}, "normed",
        attnlib.layer_norm(X, GAMMA, BETA),
    ),
    "eq-ffn": (
        {"x": X, "W_1": FFN.w_1, "b_1": FFN.b_1, "W_2": FFN.w_2, "b_2": FFN.b_2}, "output", FFN(X)
    ),
    "eq-relu": ({"x": X}, "output", attnlib.relu(X)),
    "eq-gelu": ({"x": X}, "output", attnlib.gelu(X)),
    "eq-post-norm-attention": (
        half(LAYERS[False], True, X), "X_1", after_attention(LAYERS[False])
    ),
    "eq-post-norm-ffn": (
        half(LAYERS[False], False, after_attention(LAYERS[False])), "X_2", LAYERS[False](X)[0]
    ),
    "eq-pre-norm-attention": (half(LAYERS[True], True, X), "X_1", after_attention(LAYERS[True])),
    "eq-pre-norm-ffn": (
        half(LAYERS[True], False, after_attention(LAYERS[True])), "X_2", LAYERS[True](X)[0]
    ),
    "eq-encoder-stack": (
        {"layers": [lambda x, layer=layer: layer(x)[0] for layer in LAYERS.values()], "X": X},
        "X", attnlib.Encoder([*LAYERS.values()])(X)[0],
    ),
    "eq-cross-attention": (
        {"X": X, "M": MEMORY, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}, "output",
        attnlib.scaled_dot_product_attention(X @ W_Q, MEMORY @ W_K, MEMORY @ W_V)[0],
    ),
    "eq-decoder-self": (
        {"layer_norm": DECODER.norm_1, "multi_head": heads_of(DECODER.attention), "X": X}, "X_1",
        DECODED[0],
    ),
    "eq-decoder-cross": (
        {"layer_norm": DECODER.norm_2, "multi_head": heads_of(DECODER.cross_attention)}
        | {"X_1": DECODED[0], "M": MEMORY}, "X_2",
        DECODED[1],
    ),
    "eq-decoder-ffn": (
        {"layer_norm": DECODER.norm_3, "ffn": DECODER.feed_forward, "X_2": DECODED[1]}, "X_3",
        DECODER(X, MEMORY)[0],
    ),
    "eq-gpt-attention": ({"multi_head": np.sin, "X": X}, "X_1", X + np.sin(X)),
    "eq-gpt-ffn": ({"ffn": FFN, "X_1": X}, "X_2", X + FFN(X)),
    "eq-gpt-next-word": (
        {"X_2": X, "W_vocab": W_Q[:, :WORDS]}, "P", attnlib.softmax(X @ W_Q[:, :WORDS])
    ),
    "eq-next-word": (
        {"X_3": X, "W_vocab": W_Q[:, :WORDS]}, "P", attnlib.softmax(X @ W_Q[:, :WORDS])
    ),
    "eq-loss": ({"p": ONE[3]}, "loss", -math.log(ONE[3])),
    "eq-step": ({"W_Q": W_Q, "eta": 0.3, "dW_Q": X.T @ DQ}, "W_Q", W_Q - 0.3 * (X.T @ DQ)),
    "eq-pull": (
        {"K": K, "A_i": A[2], "right": 3, "d_k": D_K}, "pull",
        nudged(lambda q: math.log(attnlib.softmax(q @ K.T / math.sqrt(D_K))[3]), Q[2]),
    ),
    "eq-back-softmax": ({"A": A, "dA": DZ @ V.T}, "dS", DS),
    "eq-back-values": ({"A": A, "dZ": DZ}, "dV", DV),
    "eq-back-weights": (
        {"dZ": DZ, "V": V}, "dA", nudged(lambda weights: ((weights @ V) * DZ).sum(), A)
    ),
    "eq-back-queries": ({"dS": DS, "K": K, "d_k": D_K}, "dQ", DQ),
    "eq-back-keys": ({"dS": DS, "Q": Q, "d_k": D_K}, "dK", DK),
    "eq-back-projection": (
        {"X": X, "dQ": DQ, "dK": DK, "dV": DV}, "dW_Q",
        nudged(lambda w: (attnlib.scaled_dot_product_attention(X @ w, K, V)[0] * DZ).sum(), W_Q),
    ),
    "eq-back-tokens": (
        {"dQ": DQ, "dK": DK, "dV": DV, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}, "dX",
        nudged(lambda x: (
            attnlib.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)[0] * DZ
        ).sum(), X),
    ),
    "eq-back-logits": (
        {"P": attnlib.softmax(LOGITS), "Y": RIGHT, "n": N}, "d_logits", nudged(price, LOGITS)
    ),
    "eq-back-flash": ({"Z": Z, "dZ": DZ}, "row_sums", (A * (DZ @ V.T)).sum(axis=1)),
    "eq-back-norm": (
        {"y": (Z[0] - Z[0].mean()) / Z[0].std(), "dy": DZ[0], "sigma": Z[0].std(), "np": np}, "dx",
        nudged(lambda z: ((z - z.mean()) / z.std()) @ DZ[0], Z[0]),
    ),
    "eq-letters-probabilities": (
        {"H": X, "W_out": W_Q, "b_out": W_Q[0]}, "probabilities",
        attnlib.softmax(X @ W_Q + W_Q[0]),
    ),
    "eq-online-softmax": (
        {"m": -np.inf, "l": 0.0, "o": 0.0, "s": SCALED[2], "V": V}, "o",
        Z[2] * np.exp(SCALED[2] - SCALED[2].max()).sum(),
    ),
    "eq-blockwise": (
        {"scaled": SCALED, "V": V}, "Z", attnlib.blockwise_attention(Q, K, V, block=2)
    ),
    "eq-rms-norm": (
        {"x": X, "gamma": GAMMA, "eps": 1e-6}, "normed", attnlib.rms_norm(X, GAMMA)
    ),
    "eq-swiglu": (
        {"x": X, "W_gate": FFN.w_1, "W_up": FFN.w_1[::-1], "W_down": FFN.w_2}, "output",
        attnlib.SwiGLU(FFN.w_1, FFN.w_1[::-1], FFN.w_2)(X),
    ),
    "eq-linear-state": (  # the second of two tokens, whose state holds the first
        {"state": np.outer(A[3], V[0]), "key": A[4], "value": V[1], "query": A[2]}, "output",
        attnlib.linear_attention(A[[3, 2]], A[[3, 4]], V[:2])[-1],
    ),
    "eq-delta-rule": (
        {"state": np.outer(A[3], V[0]), "key": A[4], "value": V[1], "beta": 0.3}, "state",
        np.outer(A[3], V[0]) + 0.3 * np.outer(A[4], V[1] - V[0] * (A[3] @ A[4])),
    ),
    "eq-sink": (
        {"scores": A[4], "sink": 0.7}, "weights", np.exp(A[4]) / (np.exp(0.7) + np.exp(A[4]).sum())
    ),
    "eq-empty-row": (
        {"masked": MASKED}, "A",
        attnlib.softmax(MASKED),
    ),
    "eq-dropout": (
        {"A": A, "B": CAUSAL, "p": 0.25}, "dropped", np.where(CAUSAL, A * 4 / 3, 0)
    ),
    "eq-parity": (
        {"theirs": Z, "ours": Z + 1e-3 * CAUSAL[:, :1]}, "difference", 1e-3
    ),
    "eq-mean-pool": ({"M": POOL, "x": X}, "mean", X[[0, 1, 2, 4]].sum(axis=0) / 4),
    "eq-unit": (
        {"mean": X[[0, 1, 2, 4]].mean(axis=0)}, "u", mean_pool(X[None], POOL[None])[0]
    ),
    "eq-cosine": (
        {"a": X[2], "b": X[3]}, "cosine",
        (X[2] / math.dist(X[2], 0 * X[2])) @ (X[3] / math.dist(X[3], 0 * X[3])),
    ),
}  # fmt: skip


def test_numpy_is_given_for_equations_of_the_course():
    labels = {
        label
        for sources in cells("markdown").values()
        for label in re.findall(r"\$\$ \((eq-[\w-]+)\)", "\n".join(sources))
    }
    assert labels >= NUMPY.keys() == EQUATIONS.keys()


@pytest.mark.parametrize("label", NUMPY)
def test_an_equation_in_numpy_is_what_attnlib_does(label):
    given, names, expected = EQUATIONS[label]
    names, expected = ([names], [expected]) if isinstance(names, str) else (names, expected)
    scope = {"np": np, "scaled_dot_product_attention": attnlib.scaled_dot_product_attention}
    scope |= {name: value.copy() if name == "PE" else value for name, value in given.items()}
    with np.errstate(all="raise", under="ignore"):
        exec(NUMPY[label], scope)
    for name, value in zip(names, expected, strict=True):
        assert np.shape(scope[name]) == np.shape(value)
        np.testing.assert_allclose(scope[name], value, rtol=1e-6, atol=1e-7)
    assert max(map(len, NUMPY[label].split("\n"))) <= 88
    assert not re.search(r"attnlib|import (?!erf)", NUMPY[label])
