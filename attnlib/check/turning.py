"""The checker of rotary positions."""

import numpy as np

from attnlib import positions as exact
from attnlib.check.arrays import float32, random_array
from attnlib.check.checker import Checker


def right(x, positions):
    """Return the rows turned by their positions."""
    return exact.rotary(x, positions)


def turned(angles=None, first=None, second=None):
    """Return turning by other angles (n, d / 2), or to other first or second numbers of a pair.

    `angles` takes the positions and the numbers i / (d / 2) of the pairs; `first` and `second` take
    a, b, cos and sin.
    """

    def turn(x, positions):
        pair = np.arange(0, x.shape[1], 2) / x.shape[1]
        theta = positions[:, None] / 10000**pair if angles is None else angles(positions, pair)
        cos, sin = np.cos(theta), np.sin(theta)
        a, b, out = x[:, ::2], x[:, 1::2], np.empty_like(x)
        out[:, ::2] = a * cos - b * sin if first is None else first(a, b, cos, sin)
        out[:, 1::2] = a * sin + b * cos if second is None else second(a, b, cos, sin)
        return out

    return turn


def in_halves(x, positions):
    """Return the right numbers, the first ones of all pairs before the second ones."""
    out = right(x, positions)
    return np.hstack([out[:, ::2], out[:, 1::2]])


rotary = Checker(
    """Check rotary positions, Eq. (1) of "Where am I? Positions".

    The function takes x (n, d), queries or keys, and their positions (n,); it returns x with each
    pair of neighbors turned. Pair i of a row at position p turns by p / 10000^(2i / d), i counted
    from 0.
    """,
    right=right,
    returns={"rows": "one for each token"},
    cases={
        "five rows at positions 0 to 4": (random_array(5, 14), np.arange(5)),
        "three rows from position 7 on": (random_array(3, 22, seed=1), np.arange(7, 10)),
        "positions in another order": (random_array(7, 6, seed=2), np.arange(7)[::-1] * 3),
        "one row of one pair": (random_array(1, 2, seed=3), np.array([2])),
        "float32": float32((random_array(3, 10, seed=4), np.arange(11, 14))),
    },
    mistakes=[
        "You turn in the other direction. The first number of a pair becomes a cos - b sin, the "
        "second a sin + b cos.",
        lambda x, positions: right(x, -positions),
        "You turn one number from each half of the row with the other, as GPT-NeoX and Llama do. "
        "Here the pairs are neighbors: columns 0 and 1, 2 and 3, ...",
        lambda x, positions: exact.rotary(x, positions, layout="halves"),
        "The numbers are right, but in another order: put the two numbers of a pair side by side "
        "again, columns 0 and 1, 2 and 3, ...",
        in_halves,
        "Nothing is turned, so a word does not know where it stands.",
        lambda x, positions: x.copy(),
        "You count the rows from 0. Use the positions that are given: with a cache, a new word is "
        "alone in x, and its position is not 0.",
        lambda x, positions: exact.rotary(x),
        "You turn each row by one position more than its own.",
        lambda x, positions: right(x, positions + 1),
        "You turn all pairs by the same angle. Pair i turns by p / 10000^(2i / d).",
        turned(lambda positions, pair: positions[:, None] + 0 * pair),
        "Your angles fall too slowly from pair to pair: the exponent is 2i / d, not i / d.",
        turned(lambda positions, pair: positions[:, None] / 10000 ** (pair / 2)),
        "Your angles fall too fast from pair to pair: the exponent is 2i / d, not 4i / d.",
        turned(lambda positions, pair: positions[:, None] / 10000 ** (2 * pair)),
        "Your angles grow from pair to pair: divide by 10000^(2i / d).",
        turned(lambda positions, pair: positions[:, None] * 10000**pair),
        "Your angles are in the wrong order: the first pair turns fastest, by the position itself.",
        turned(lambda positions, pair: positions[:, None] / 10000 ** pair[::-1]),
        "You took the positions for degrees. np.cos and np.sin need radians, which they are "
        "already.",
        turned(lambda positions, pair: np.radians(positions[:, None] / 10000**pair)),
        "You used the new first number for the second one. Keep the old one until both are done.",
        turned(second=lambda a, b, cos, sin: (a * cos - b * sin) * sin + b * cos),
        "Both numbers have a plus. The first is a cos - b sin.",
        turned(first=lambda a, b, cos, sin: a * cos + b * sin),
        "Both numbers have a minus. The second is a sin + b cos.",
        turned(second=lambda a, b, cos, sin: a * sin - b * cos),
        "cos and sin are exchanged: the first number is a cos - b sin, the second a sin + b cos.",
        turned(
            first=lambda a, b, cos, sin: a * sin - b * cos,
            second=lambda a, b, cos, sin: a * cos + b * sin,
        ),
        "You turned the first number of each pair and left the second as it was.",
        turned(second=lambda a, b, cos, sin: b),
        "You added sines and cosines to the numbers. Rotary positions multiply: each pair is "
        "turned.",
        lambda x, positions: (
            x + exact.sinusoidal_positions(int(positions.max()) + 1, x.shape[1])[positions]
        ),
    ],
)
