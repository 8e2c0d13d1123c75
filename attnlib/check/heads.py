# ruff: noqa: N803 -- learners write S as in the formula, and messages repeat it
"""Checkers of chapters 6 and 7: heads, and what tells a head where a token stands."""

import numpy as np

from attnlib import attention as exact
from attnlib import multihead, positions
from attnlib.check.verdict import draw, judge

# Chapter 6


def split_heads(function):
    """Check the cut into heads, Eq. (3) of chapter 6.

    Parameters
    ----------
    function : callable
        Takes x (n, n_heads * d) and n_heads, returns the heads (n_heads, n, d).

    Returns
    -------
    Verdict
    """

    def right(x, n_heads):
        return multihead.split_heads(x, n_heads)

    def cut(x, n_heads):
        return x.reshape(len(x), n_heads, -1)

    mistakes = [
        (
            "You reshaped straight to (n_heads, n, d), which tears the tokens apart. First "
            "reshape to (n, n_heads, d), then swap the first two axes.",
            lambda x, n_heads: x.reshape(n_heads, len(x), -1),
        ),
        ("The tokens still stand before the heads, (n, n_heads, d): swap those two axes.", cut),
        (
            "You swapped the last two axes, so the heads stand last. Swap the first two.",
            lambda x, n_heads: cut(x, n_heads).swapaxes(1, 2),
        ),
        (
            ".T turns all three axes round, to (d, n_heads, n). Swap only the first two.",
            lambda x, n_heads: cut(x, n_heads).T,
        ),
        (
            "Each head is transposed, (d, n). Its rows are the tokens: (n, d).",
            lambda x, n_heads: cut(x, n_heads).transpose(1, 2, 0),
        ),
        (
            "You dealt the columns out like cards, column c to head c % n_heads. Head h owns the d "
            "columns from h * d on, side by side.",
            lambda x, n_heads: x.reshape(len(x), -1, n_heads).transpose(2, 0, 1),
        ),
        (
            "The heads come in reverse: head 0 owns the first d columns.",
            lambda x, n_heads: right(x, n_heads)[::-1],
        ),
        (
            ".squeeze() also drops an axis of one token or one head: the result has three axes "
            "for each input.",
            lambda x, n_heads: right(x, n_heads).squeeze(),
        ),
        (
            "Every head has the columns of head 0. Head h owns those from h * d on.",
            lambda x, n_heads: right(x, n_heads)[[0] * n_heads],
        ),
        (
            "n_heads and d are exchanged: n_heads says how many heads there are, not how wide one "
            "is.",
            lambda x, n_heads: x.reshape(len(x), -1, n_heads).swapaxes(0, 1),
        ),
        (
            "You cut the rows, which are tokens. Every head sees all tokens: cut the columns, "
            "axis 1.",
            lambda x, n_heads: np.stack(np.split(x, n_heads)),
        ),
        (
            "Each head has all the columns. They are shared out: d = x.shape[1] // n_heads a head.",
            lambda x, n_heads: np.stack([x] * n_heads),
        ),
        (
            "A head is not as wide as x. The columns are shared out: d = x.shape[1] // n_heads.",
            lambda x, n_heads: x.reshape(len(x), n_heads, x.shape[1]),
        ),
        (
            "A head is not as wide as x. The columns are shared out: d = x.shape[1] // n_heads.",
            lambda x, n_heads: x.reshape(n_heads, len(x), x.shape[1]),
        ),
        (
            "/ gives a float, and a size must be a whole number. Divide with //.",
            lambda x, n_heads: x.reshape(len(x), n_heads, x.shape[1] / n_heads),
        ),
    ]
    cases = {
        "numbers that name their place (213: row 2, column 13)": (numbered(5, 21), 3),
        "as many tokens as heads": (numbered(3, 15), 3),
        "two heads": (numbered(7, 22), 2),
        "a single token": (draw(1, 6), 2),
        "a single head": (draw(3, 5), 1),
        "float32": (numbered(5, 21).astype(np.float32), 3),
    }
    return judge(function, right, mistakes, cases, {"heads": "(n_heads, n, d)"})


def merge_heads(function):
    """Check the way back from the heads, the Concat of Eq. (2) of chapter 6.

    Parameters
    ----------
    function : callable
        Takes heads (n_heads, n, d), returns them side by side (n, n_heads * d).

    Returns
    -------
    Verdict
    """

    def right(heads):
        return multihead.merge_heads(heads)

    def flat(heads, n):
        return heads.reshape(n, -1)

    mistakes = [
        (
            "You reshaped without swapping axes, and the numbers of different tokens got mixed. "
            "Bring the tokens to the front first: heads.swapaxes(0, 1).",
            lambda heads: flat(heads, heads.shape[1]),
        ),
        (
            "You swapped the last two axes. Swap the first two, then reshape.",
            lambda heads: flat(heads.swapaxes(1, 2), heads.shape[1]),
        ),
        (
            ".T turns all three axes round. Swap only the first two, then reshape.",
            lambda heads: flat(heads.T, heads.shape[1]),
        ),
        (
            "You took one column of each head in turn. The d columns of a head stay side by side.",
            lambda heads: flat(heads.transpose(1, 2, 0), heads.shape[1]),
        ),
        (
            "The heads come in reverse: the numbers of head 0 stand first.",
            lambda heads: right(heads[::-1]),
        ),
        (
            "You sorted the numbers of each row. A head's numbers stay in their order.",
            lambda heads: np.sort(right(heads), axis=1),
        ),
        (
            ".squeeze() also drops the axis of a single token: the result is a matrix.",
            lambda heads: right(heads).squeeze(),
        ),
        (
            "You added the heads up. They stand side by side, so that W_O can weigh each of them.",
            lambda heads: heads.sum(axis=0),
        ),
        (
            "You took the mean of the heads. They stand side by side, so that W_O can weigh each "
            "of them.",
            lambda heads: heads.mean(axis=0),
        ),
        (
            "The heads stand one below the other. Put them side by side: join along axis 1.",
            lambda heads: flat(heads, heads.shape[0] * heads.shape[1]),
        ),
        (
            "Each of your rows is a head. Each row must be a token, with its numbers of all heads.",
            lambda heads: flat(heads, heads.shape[0]),
        ),
        (
            "The heads are still apart: one step is left, the reshape to (n, n_heads * d).",
            lambda heads: heads.swapaxes(0, 1),
        ),
        (
            "Your result is transposed: rows are tokens, columns are the numbers of all heads.",
            lambda heads: right(heads).T,
        ),
    ]

    def heads_of(n, d, n_heads):
        return np.ascontiguousarray(multihead.split_heads(numbered(n, n_heads * d), n_heads))

    cases = {
        "numbers that name their place (213: row 2, column 13)": (heads_of(5, 7, n_heads=3),),
        "as many tokens as heads": (heads_of(3, 5, n_heads=3),),
        "two heads": (heads_of(7, 11, n_heads=2),),
        "a single token": (draw(5, 1, 3),),
        "heads of a single number": (draw(3, 2, 1),),
        "float32": (heads_of(5, 7, n_heads=3).astype(np.float32),),
    }
    returns = {"merged heads": "a row per token, with the numbers of all heads"}
    return judge(function, right, mistakes, cases, returns)


# Chapter 7


def sinusoidal_positions(function):
    """Check the sinusoidal positions, Eqs. (2) and (3) of chapter 7.

    Parameters
    ----------
    function : callable
        Takes n and d_model, which is even; returns the positions (n, d_model).

    Returns
    -------
    Verdict
    """

    def right(n, d_model):
        return positions.sinusoidal_positions(n, d_model)

    def angles(n, columns, exponents, base=1e4, first=0):
        return (first + np.arange(n)[:, None]) / base ** exponents(np.arange(columns), columns)

    def pair(column, d_model):
        return (column - column % 2) / d_model

    def waves(exponents=pair, even=np.sin, odd=np.cos, **options):
        """Return positions with other exponents, made of columns and d_model, or other waves."""

        def encode(n, d_model):
            turned = angles(n, d_model, exponents, **options)
            return np.where(np.arange(d_model) % 2 == 0, even(turned), odd(turned))

        return encode

    def halves(n, d_model):
        once = angles(n, d_model, pair)[:, ::2]
        return np.hstack([np.sin(once), np.cos(once)])

    radians = "np.sin takes radians, and the angle is in radians: leave degrees out of it."
    not_10000 = "Your base is not 10,000."
    mistakes = [
        (
            "Sine and cosine are exchanged: the even columns are sines, the odd ones cosines.",
            waves(even=np.cos, odd=np.sin),
        ),
        (
            "All sines stand before all cosines. Here they take turns: column 0 is a sine, column "
            "1 its cosine.",
            halves,
        ),
        ("All your columns are sines. The odd ones are cosines.", waves(odd=np.sin)),
        ("All your columns are cosines. The even ones are sines.", waves(even=np.cos)),
        (
            "Your exponent is i / d_model. It is 2i / d_model: pair i starts in column 2i.",
            waves(lambda column, d_model: column // 2 / d_model),
        ),
        (
            "You put the column into 2i. The column is 2i itself: column 4 has exponent "
            "4 / d_model, and so has its cosine, column 5.",
            waves(lambda column, d_model: 2 * column / d_model),
        ),
        (
            "Each of your columns has a wavelength of its own. A sine and its cosine share one: "
            "column 2i + 1 has the exponent of column 2i.",
            waves(lambda column, d_model: column / d_model),
        ),
        (
            "Your exponent is 4i / d_model: np.arange(0, d_model, 2) holds 2i already, or d_model "
            "is halved. It is 2i / d_model.",
            waves(lambda column, d_model: 2 * pair(column, d_model)),
        ),
        (
            "You divided i by d_model / 2 - 1, as some libraries do. Eqs. (2) and (3) of chapter 7 "
            "have 2i / d_model.",
            waves(lambda column, d_model: column // 2 / np.float64(d_model / 2 - 1)),
        ),
        (
            "// cuts off what stands after the point, so every exponent is 0. Divide with /.",
            waves(lambda column, d_model: 0 * column),
        ),
        (not_10000, waves(base=1e3)),
        (not_10000, waves(base=1e5)),
        ("Your positions count from 1. They count from 0.", waves(first=1)),
        (
            "You multiplied the position by the power of 10,000. Divide by it.",
            waves(lambda column, d_model: -pair(column, d_model)),
        ),
        (radians, waves(even=lambda t: np.sin(np.radians(t)), odd=lambda t: np.cos(np.radians(t)))),
        (radians, waves(even=lambda t: np.sin(np.degrees(t)), odd=lambda t: np.cos(np.degrees(t)))),
        (
            "These are the angles. Take the sine of them in even columns, the cosine in odd ones.",
            waves(even=np.copy, odd=np.copy),
        ),
        (
            "Your result is transposed: a row per position, a column per dimension.",
            lambda n, d_model: right(n, d_model).T,
        ),
    ]
    cases = {
        "n = 7, d_model = 22": (7, 22),
        "n = 11, d_model = 6": (11, 6),
    }
    returns = {"positions": "a row per position, a column per dimension"}
    return judge(function, right, mistakes, cases, returns)


def relative_bias(function):
    """Check the scores with a relative position bias, Eq. (7) of chapter 7 for one head.

    Parameters
    ----------
    function : callable
        Takes scores S (n_q, n_k) and a table (2 m + 1,), the bias of each offset j - i from -m
        to m; returns the scores (n_q, n_k) with the bias added. Offsets beyond m take the last
        one.

    Returns
    -------
    Verdict
    """

    def right(S, table):
        return S + looked_up(S, table)

    def offsets(S):
        return np.arange(S.shape[1]) - np.arange(len(S))[:, None]

    def clipped(offset, m):
        return np.clip(offset, -m, m) + m

    def looked_up(S, table, index=clipped):
        return table[index(offsets(S), len(table) // 2)]

    def indexed(index):
        """Return the scores with another index into the table, made of the offsets and m."""
        return lambda S, table: S + looked_up(S, table, index)

    distance = "You looked up the distance |j - i|. A key before and a key after have two entries."
    mistakes = [
        (
            "The table is read backwards: your offsets are i - j, or the table is reversed. A key "
            "after the query has j - i above 0.",
            indexed(lambda offset, m: clipped(-offset, m)),
        ),
        (
            "You did not clip. Offsets beyond m leave the table, and those far below 0 come round "
            "from its other end: np.clip(j - i, -m, m).",
            indexed(lambda offset, m: offset + m),
        ),
        (
            "You clipped above m, not below -m: a negative index comes round from the other end "
            "of the table.",
            indexed(lambda offset, m: np.minimum(offset, m) + m),
        ),
        (
            "You clipped below -m, not above m: the keys far after a query leave the table.",
            indexed(lambda offset, m: np.maximum(offset, -m) + m),
        ),
        (
            "+ m is missing: offset -m stands at index 0 of the table, offset 0 in its middle.",
            indexed(lambda offset, m: np.clip(offset, -m, m)),
        ),
        (
            "You clipped to the length of the table without + m: offset 0 stands in its middle.",
            indexed(lambda offset, m: np.clip(offset, 0, 2 * m)),
        ),
        (
            "You read the entry before the right one: offset -m stands at index 0, so add m, and "
            "clip from -m to m.",
            indexed(lambda offset, m: clipped(offset, m) - 1),
        ),
        (
            "m is not the length of the table, which is 2 m + 1: m = len(table) // 2.",
            indexed(lambda offset, m: clipped(offset, 2 * m + 1)),
        ),
        (
            "% lets far keys come round to the other end of the table. They take its last entry: "
            "np.clip.",
            indexed(lambda offset, m: (offset + m) % (2 * m + 1)),
        ),
        (distance, indexed(lambda offset, m: clipped(np.abs(offset), m))),
        (distance, indexed(lambda offset, m: np.minimum(np.abs(offset), m))),
        (
            "Keys beyond m get no bias. They take the last entry of the table.",
            lambda S, table: (
                S + np.where(np.abs(offsets(S)) <= len(table) // 2, looked_up(S, table), 0)
            ),
        ),
        (
            "This is the bias alone. Add it to the scores.",
            looked_up,
        ),
        (
            "You multiplied the scores by the bias. Add it.",
            lambda S, table: S * looked_up(S, table),
        ),
        (
            "You took the bias away from the scores. Add it.",
            lambda S, table: S - looked_up(S, table),
        ),
        (
            "The offsets have a row per key. Rows are queries: j - i is "
            "np.arange(n_k) - np.arange(n_q)[:, None].",
            lambda S, table: S + looked_up(S.T, table),
        ),
        (
            "One step too far: these are the weights. The bias is added before softmax.",
            lambda S, table: exact.softmax(right(S, table)),
        ),
    ]
    cases = {
        "a table that reaches every key": (draw(3, 5), draw(11, seed=1)),
        "keys beyond the table": (draw(5, 7, seed=2), draw(3, seed=3)),
        "more queries than keys": (draw(7, 3, seed=4), draw(5, seed=5)),
        "many more keys than queries": (draw(2, 11, seed=6), draw(7, seed=7)),
        "float32": (draw(5, 7, seed=2).astype(np.float32), draw(3, seed=3).astype(np.float32)),
    }
    return judge(function, right, mistakes, cases, {"scores": "one for each query and key"})


# What the checkers of these chapters are made of


def numbered(n, width):
    """Return a matrix whose numbers name their place: 100 * row + column."""
    return 100.0 * np.arange(n)[:, None] + np.arange(width)
