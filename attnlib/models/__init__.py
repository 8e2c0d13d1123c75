"""Trained models in the layers of this library: those of others, and those of this course.

`causal_lm` returns a published language model, `sizes` says how large one is, `load_minilm` returns
a sentence encoder, and `induction` holds small models that this course has trained. NumPy is enough
to import them.
"""

from attnlib.models.files import MissingModelError, is_here
from attnlib.models.language import Cache, CausalLM, Trace
from attnlib.models.minilm import MiniLM, Reading, load_minilm, mean_pool
from attnlib.models.published import causal_lm
from attnlib.models.recordings import everyday_sentences, load_recording
from attnlib.models.sizes import LayerSizes, ModelSizes, sizes

__all__ = [
    "Cache",
    "CausalLM",
    "LayerSizes",
    "MiniLM",
    "MissingModelError",
    "ModelSizes",
    "Reading",
    "Trace",
    "causal_lm",
    "everyday_sentences",
    "is_here",
    "load_minilm",
    "load_recording",
    "mean_pool",
    "sizes",
]
