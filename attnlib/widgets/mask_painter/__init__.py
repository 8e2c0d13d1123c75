"""MaskPainter: what masks are for, the ones that are used most, and one to paint."""

import numpy as np
import traitlets

from attnlib.widgets.kit.base import CourseWidget, Whole

LEAST, MOST = 2, 8
SENTENCES = {
    "letters": ["The", "cat", "sat", "down"],  # not drawn: this scene draws its trial
    "causal": ["The", "cat", "sat", "down"],
    "padding": ["Birds", "sing", "at", "night", "in", "spring"],
    "window": ["The", "cat", "sat", "down", "and", "soon", "fell", "asleep"],
    "packed": ["The", "cat", "sat", "down", "We", "ate", "some", "rice"],
    "paint": ["The", "cat", "sat", "down", "again"],
}
SCENES = tuple(SENTENCES)


class MaskPainter(CourseWidget):
    """What masks are for, four masks, and a mask of one's own.

    Each scene shows one idea and has one control.

    - "letters": what a trained model guesses and where it looks. Switch its mask on.
    - "causal": what each position reads in training and when it writes. Slide the position.
    - "padding": a sentence that is shorter than its row. Slide its length.
    - "window": tokens that attend to their neighbors. Slide how far.
    - "packed": two texts in one row. Slide where the second one begins.
    - "paint": a mask to paint, the attention weights that it leaves, and the outputs that change
      when another word is put in one place. Each token has a query, a key and a value of four
      random numbers, always the same ones.

    Parameters
    ----------
    scene : {"letters", "causal", "padding", "window", "packed", "paint"}
        What is drawn.
    tokens : list of str
        2 to 8 names, none of them blank.
    trial : dict
        In "letters": what was recorded, {"letters": n + 1 letters, "off": run, "on": run}. A run is
        {"guesses": n letters, "weights": n rows of n, "learns": percent, "writes": percent}, and
        the two percentages say how many guesses are right: when the whole text goes in, as in
        training, and when it writes.
    masked : bool
        In "letters": whether the mask is on.
    traced : int
        In "letters": the position, from 0, whose lines alone are drawn in full color; -1 for all.
    position : int
        In "causal": the position that is looked at, from 0.
    length : int
        In "padding": how many tokens are real, from 1; those after them are padding.
    width : int
        In "window": how many tokens away a key may be, from 0.
    start : int
        In "packed": where the second text begins, from 1.
    mask : array_like of bool, shape (n, n)
        In "paint": queries in rows, keys in columns, True = may attend. All True unless given.
    replaced : int
        In "paint": the token in whose place another word is put, from 0.

    Raises
    ------
    ValueError
        For names, a mask, a trial or a number that does not fit.
    traitlets.TraitError
        For a value of the wrong type, or a scene that does not exist.
    """

    scene = traitlets.Enum(SCENES, "paint").tag(sync=True)
    tokens = traitlets.Any(SENTENCES["paint"]).tag(sync=True)
    trial = traitlets.Any(None).tag(sync=True)
    masked = traitlets.Bool(False).tag(sync=True)
    traced = Whole(-1, 7, -1).tag(sync=True)
    position = traitlets.Int(1).tag(sync=True)
    length = traitlets.Int(3).tag(sync=True)
    width = traitlets.Int(1).tag(sync=True)
    start = traitlets.Int(2).tag(sync=True)
    mask = traitlets.Any([[True] * 5] * 5).tag(sync=True)
    replaced = traitlets.Int(2).tag(sync=True)

    def __init__(self, scene="paint", **traits):
        sentence = SENTENCES.get(scene, SENTENCES["paint"])
        tokens = _checked_tokens(traits.get("tokens", sentence))
        self._n = n = len(tokens)
        fitting = {
            "tokens": tokens,
            "length": max(n - 2, 1),
            "start": n // 2,
            "mask": np.ones((n, n), bool),
            "replaced": min(2, n - 1),
        }
        super().__init__(scene=scene, **fitting | traits)
        if scene == "letters" and self.trial is None:
            raise ValueError('the scene "letters" needs a trial; got None')

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

    @traitlets.validate("trial")
    def _check_trial(self, proposal):
        return None if proposal["value"] is None else _checked_trial(proposal["value"])

    @traitlets.validate("position", "length", "width", "start", "replaced")
    def _check_number(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        low = {"length": 1, "start": 1}.get(name, 0)
        high = self._n if name == "length" else self._n - 1
        if not low <= value <= high:
            raise ValueError(f"{name} needs a whole number from {low} to {high}; got {value}")
        return value


def _checked_tokens(value):
    if not isinstance(value, (list, tuple)) or not LEAST <= len(value) <= MOST:
        raise ValueError(f"tokens needs a list of {LEAST} to {MOST} names; got {value!r}")
    if not all(isinstance(token, str) and token.strip() for token in value):
        raise ValueError(f"tokens needs names that are not blank; got {value!r}")
    return list(value)


def _checked_trial(value):
    if not isinstance(value, dict) or set(value) != {"letters", "off", "on"}:
        raise ValueError(f'trial needs "letters", "off" and "on"; got {value!r}')
    n = len(value["letters"]) - 1
    if not LEAST <= n <= MOST:
        raise ValueError(f"trial needs {LEAST + 1} to {MOST + 1} letters; got {n + 1}")
    return {"letters": value["letters"]} | {
        name: _checked_run(value[name], n) for name in ("off", "on")
    }


def _checked_run(value, n):
    if set(value) != {"guesses", "weights", "learns", "writes"}:
        raise ValueError(
            f'a run of a trial needs "guesses", "weights", "learns" and "writes"; got {set(value)}'
        )
    weights = np.asarray(value["weights"], dtype=float)
    if weights.shape != (n, n):
        raise ValueError(f"a run of a trial needs weights of shape {(n, n)}; got {weights.shape}")
    if len(value["guesses"]) != n:
        raise ValueError(f"a run of a trial needs {n} guesses; got {len(value['guesses'])}")
    return value | {"weights": weights.tolist()}
