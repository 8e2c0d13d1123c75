"""The checker of sinusoidal positions."""

import numpy as np

from attnlib import positions
from attnlib.check.checker import Checker


def right(n, d_model):
    """Return the right positions."""
    return positions.sinusoidal_positions(n, d_model)


def angles(n, columns, exponents, base=1e4, first=0):
    """Return the angle of each position and column."""
    return (first + np.arange(n)[:, None]) / base ** exponents(np.arange(columns), columns)


def pair(column, d_model):
    """Return the exponent of a column: a sine and its cosine have the same."""
    return (column - column % 2) / d_model


def waves(exponents=pair, even=np.sin, odd=np.cos, **options):
    """Return positions with other exponents, made of columns and d_model, or other waves."""

    def encode(n, d_model):
        turned = angles(n, d_model, exponents, **options)
        return np.where(np.arange(d_model) % 2 == 0, even(turned), odd(turned))

    return encode


def halves(n, d_model):
    """Return all sines before all cosines."""
    once = angles(n, d_model, pair)[:, ::2]
    return np.hstack([np.sin(once), np.cos(once)])


def after(convert):
    """Return positions whose angles are converted first."""
    return waves(even=lambda t: np.sin(convert(t)), odd=lambda t: np.cos(convert(t)))


sinusoidal_positions = Checker(
    """Check the sinusoidal positions, Eqs. (3) and (4) of "Where am I? Positions".

    The function takes n and d_model, which is even, and returns the positions (n, d_model).
    """,
    right=right,
    returns={"positions": "a row per position, a column per dimension"},
    cases={"n = 7, d_model = 22": (7, 22), "n = 11, d_model = 6": (11, 6)},
    mistakes=[
        "Sine and cosine are exchanged: the even columns are sines, the odd ones cosines.",
        waves(even=np.cos, odd=np.sin),
        "All sines stand before all cosines. Here they take turns: column 0 is a sine, column 1 "
        "its cosine.",
        halves,
        "All your columns are sines. The odd ones are cosines.",
        waves(odd=np.sin),
        "All your columns are cosines. The even ones are sines.",
        waves(even=np.cos),
        "Your exponent is i / d_model. It is 2i / d_model: pair i starts in column 2i.",
        waves(lambda column, d_model: column // 2 / d_model),
        "You put the column into 2i. The column is 2i itself: column 4 has exponent 4 / d_model, "
        "and so has its cosine, column 5.",
        waves(lambda column, d_model: 2 * column / d_model),
        "Each of your columns has a wavelength of its own. A sine and its cosine have the same: "
        "column 2i + 1 has the exponent of column 2i.",
        waves(lambda column, d_model: column / d_model),
        "Your exponent is 4i / d_model: np.arange(0, d_model, 2) holds 2i already, or d_model is "
        "halved. It is 2i / d_model.",
        waves(lambda column, d_model: 2 * pair(column, d_model)),
        "You divided i by d_model / 2 - 1, as some libraries do. Here the exponent is "
        "2i / d_model.",
        waves(lambda column, d_model: column // 2 / np.float64(d_model / 2 - 1)),
        "// cuts off what stands after the point, so every exponent is 0. Divide with /.",
        waves(lambda column, d_model: 0 * column),
        "Your base is not 10,000.",
        waves(base=1e3),
        waves(base=1e5),
        "Your positions count from 1. They count from 0.",
        waves(first=1),
        "You multiplied the position by the power of 10,000. Divide by it.",
        waves(lambda column, d_model: -pair(column, d_model)),
        "np.sin takes radians, and the angle is in radians: do not convert it to degrees or from "
        "degrees.",
        after(np.radians),
        after(np.degrees),
        "These are the angles. Take the sine of them in even columns, the cosine in odd ones.",
        waves(even=np.copy, odd=np.copy),
        "Your result is transposed: a row per position, a column per dimension.",
        lambda n, d_model: right(n, d_model).T,
    ],
)
