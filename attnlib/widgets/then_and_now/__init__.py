"""ThenAndNow: one layer, of which each part is that of 2017 or that of today."""

import traitlets

from attnlib.widgets.kit.base import CourseWidget

PARTS = ("norm_first", "rms", "rotary", "grouped", "swiglu", "qk_norm", "window")
LLAMA = PARTS[:5]  # what a layer of Llama 3 has changed
TOKENS = 32_768
# Of Llama 3 8B; the window is Mistral 7B's, the network of 2017 four times as wide as a word.
SIZES = {
    "layers": 32,
    "d_model": 4096,
    "heads": 32,
    "kv_heads": 8,
    "d_ff": 4 * 4096,
    "d_gated": 14_336,
    "window": 4096,
    "bytes": 2,
}


class ThenAndNow(CourseWidget):
    """A layer, its expression in this course's own parts, and what it weighs.

    Every change can be made by itself. The sizes are those of Llama 3 8B in both, so that the
    parameters and the cache show what a change does, and not how much larger models have become.

    Parameters
    ----------
    norm_first, rms, rotary, grouped, swiglu, qk_norm, window : bool
        Which parts are changed: the place of the norms, their kind, the positions, the heads of
        keys and values, the feed-forward network, a norm of queries and keys, a sliding window.
    part : str
        The part that is explained, one of these seven names.

    Raises
    ------
    traitlets.TraitError
        For a value of the wrong type, or a part that does not exist.
    """

    norm_first = traitlets.Bool(False).tag(sync=True)
    rms = traitlets.Bool(False).tag(sync=True)
    rotary = traitlets.Bool(False).tag(sync=True)
    grouped = traitlets.Bool(False).tag(sync=True)
    swiglu = traitlets.Bool(False).tag(sync=True)
    qk_norm = traitlets.Bool(False).tag(sync=True)
    window = traitlets.Bool(False).tag(sync=True)
    part = traitlets.Enum(PARTS, "norm_first").tag(sync=True)

    @property
    def parameters(self):
        """How many numbers the layer has learned."""
        d, heads, d_k = SIZES["d_model"], SIZES["heads"], SIZES["d_model"] // SIZES["heads"]
        attention = 2 * d * heads * d_k + 2 * d * self._kv_heads * d_k
        ff = SIZES["d_ff"]
        network = 3 * d * SIZES["d_gated"] if self.swiglu else 2 * d * ff + ff + d
        norms = 2 * d if self.rms else 4 * d
        return attention + network + norms + 2 * d_k * self.qk_norm

    @property
    def cache(self):
        """How many bytes all layers keep after 32,768 tokens: Eq. (3) of "What it costs"."""
        kept = min(TOKENS, SIZES["window"]) if self.window else TOKENS
        d_k = SIZES["d_model"] // SIZES["heads"]
        return 2 * SIZES["layers"] * kept * self._kv_heads * d_k * SIZES["bytes"]

    @property
    def _kv_heads(self):
        return SIZES["kv_heads" if self.grouped else "heads"]
