"""MaskPainter: who may attend to whom, painted cell by cell, and what leaks then."""

import numpy as np
import traitlets

from attnlib.widgets.kit.base import CourseWidget

LEAST, MOST = 2, 8
SCENES = ("paint", "guess")


class MaskPainter(CourseWidget):
    """A mask to paint, the attention weights it leaves, and a detector for leaks.

    Every token has a query, a key and a value of 4 random numbers, always the same ones. The
    mask acts between Eqs. (4) and (5) of "Queries, keys and values". Replacing a token
    gives it the numbers of another word; the outputs that differ afterwards have moved. In the
    scene "guess" every position must guess the token after it, and the widget says whether it can
    read the answer.

    Parameters
    ----------
    tokens : list of str
        2 to 8 names, none of them blank.
    mask : array_like of bool, shape (n, n)
        Queries in rows, keys in columns, True = may attend. All True unless given.
    length : int
        How many tokens are real, 1 to n; the others, at the end, are filler. All n unless given.
    replaced : int
        The token in whose place another word is put, from 0.
    scene : "paint" or "guess"
        Paint a mask and look for leaks, or see what each position reads while it must guess.
    position : int
        In the scene "guess", the position that is looked at, from 0.

    Raises
    ------
    ValueError
        For names, a mask or a number that do not fit.
    """

    tokens = traitlets.Any(["The", "cat", "sat", "down", "<pad>"]).tag(sync=True)
    mask = traitlets.Any([[True] * 5] * 5).tag(sync=True)
    length = traitlets.Int(4).tag(sync=True)  # the course's own sentence ends in <pad>
    replaced = traitlets.Int(2).tag(sync=True)
    scene = traitlets.Enum(SCENES, "paint").tag(sync=True)
    position = traitlets.Int(1).tag(sync=True)

    def __init__(self, **traits):
        tokens = _checked_tokens(traits.get("tokens", type(self).tokens.default_value))
        self._n = n = len(tokens)
        fitting = {"tokens": tokens, "mask": np.ones((n, n), bool)}
        if "tokens" in traits:
            fitting |= {"length": n, "replaced": min(2, n - 1)}
        super().__init__(**fitting | traits)

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

    @traitlets.validate("length", "replaced", "position")
    def _check_number(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        low, high = (1, self._n) if name == "length" else (0, self._n - 1)
        if not low <= value <= high:
            raise ValueError(f"{name} needs a whole number from {low} to {high}; got {value}")
        return value


def _checked_tokens(value):
    if not isinstance(value, (list, tuple)) or not LEAST <= len(value) <= MOST:
        raise ValueError(f"tokens needs a list of {LEAST} to {MOST} names; got {value!r}")
    if not all(isinstance(token, str) and token.strip() for token in value):
        raise ValueError(f"tokens needs names that are not blank; got {value!r}")
    return list(value)
