"""Trainer: the small GPT of attnlib.models.induction, trained from random weights in the page."""

import base64
import functools
from pathlib import Path

import traitlets

from attnlib.widgets.kit.base import CourseWidget, Number, Whole
from attnlib.widgets.letters import check_letters

KERNEL = Path(__file__).with_name("kernel.wat")


class Trainer(CourseWidget):
    """A small GPT that trains while its reader watches the heads form.

    The model has 14,032 parameters if it has two layers. It trains in the page, with gradients
    computed by hand in `learner.js`. Python keeps the settings; what was trained stays in the page.

    Parameters
    ----------
    text : str
        1 to 24 letters from a to p, on which the heads are shown.
    seed : int
        Of the first weights and of the sentences, 0 to 999.
    rate : float
        The largest learning rate, 0.0001 to 1.
    layers, heads : int
        1 or 2 layers, each of 1 or 2 heads.
    without : {"nothing", "residual", "positions", "mask"}
        What the model lacks.
    task : {"last", "next"}
        Say what followed the same letter the last time, or say the next letter of a sentence that
        repeats itself.
    steps : int
        Steps of training, 20 to 2,000, with 16 new sentences each.
    pace : {"frame", "slow", "fast"}
        One step for each frame of the screen, ten steps a second, or as many as possible.

    Raises
    ------
    ValueError
        For other letters or too many of them, or a number outside its bounds.
    traitlets.TraitError
        For a value of the wrong type, or one that is not in its list.
    """

    text = traitlets.Unicode("cfakdcgbfaec").tag(sync=True)
    seed = Whole(0, 999, 1).tag(sync=True)
    rate = Number(0.0001, 1, 0.012).tag(sync=True)
    layers = traitlets.Enum([1, 2], 2).tag(sync=True)
    heads = traitlets.Enum([1, 2], 2).tag(sync=True)
    without = traitlets.Enum(["nothing", "residual", "positions", "mask"], "nothing").tag(sync=True)
    task = traitlets.Enum(["last", "next"], "last").tag(sync=True)
    steps = Whole(20, 2000, 500).tag(sync=True)
    pace = traitlets.Enum(["frame", "slow", "fast"], "frame").tag(sync=True)
    kernel = traitlets.Unicode(read_only=True).tag(sync=True, constant=True)

    @traitlets.validate("text")
    def _check_text(self, proposal):
        return check_letters(proposal["value"])

    @traitlets.default("kernel")
    def _assemble(self):
        return kernel()


@functools.cache
def kernel():
    """Return the product of matrices as WebAssembly, in base64.

    Where wasmtime is not installed it is empty, and the page trains in plain JavaScript.
    """
    try:
        from wasmtime import wat2wasm
    except ImportError:
        return ""
    return base64.b64encode(wat2wasm(KERNEL.read_text(encoding="utf-8"))).decode()
