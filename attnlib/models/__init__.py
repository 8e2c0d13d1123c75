"""Trained models in the layers of this library: those of others, and those of this course.

`causal_lm` returns a published language model, `sizes` says how large one is, and `load_minilm`
returns a sentence encoder. `writer` returns the model of this course that writes stories,
`induction` holds its models of letters, and `gpt_by_hand` returns one whose numbers were chosen.
NumPy is enough to import them.
"""

from attnlib.models.by_hand import gpt_by_hand
from attnlib.models.files import MissingModelError, is_here
from attnlib.models.language import Cache, CausalLM, Trace
from attnlib.models.minilm import MiniLM, Reading, load_minilm, mean_pool
from attnlib.models.published import causal_lm
from attnlib.models.recordings import everyday_sentences, load_recording
from attnlib.models.sizes import LayerSizes, ModelSizes, sizes
from attnlib.models.writing import Writer, writer

__all__ = [
    "Cache",
    "CausalLM",
    "LayerSizes",
    "MiniLM",
    "MissingModelError",
    "ModelSizes",
    "Reading",
    "Trace",
    "Writer",
    "causal_lm",
    "everyday_sentences",
    "gpt_by_hand",
    "is_here",
    "load_minilm",
    "load_recording",
    "mean_pool",
    "sizes",
    "writer",
]
