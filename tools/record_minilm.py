"""Store what the model answers in chapter 14: `python -m tools.record_minilm`.

Runs the chapter's cells with the model and writes down each answer, so that the chapter can be
run where the model is not. To be repeated when the chapter asks something else.
"""

import contextlib
import io
import sys

import matplotlib
import nbformat
import numpy as np

from attnlib import pretrained
from tools.install import ROOT, say

CHAPTER = ROOT / "chapters" / "14-a-real-encoder.ipynb"


class Recorder:
    """A `MiniLM` that keeps what it answers, in the form that `Recording` reads."""

    def __init__(self, model):
        self.model = model
        self.arrays = {}

    def read(self, sentence):
        """Answer, and keep tokens, states and weights."""
        reading = self.model.read(sentence)
        weights = np.rint(reading.weights * pretrained.STEPS).astype(np.uint16)
        tokens = np.array(reading.tokens)
        self._keep("read", sentence, tokens=tokens, states=reading.states, weights=weights)
        return reading

    def encode(self, sentences):
        """Answer, and keep states and mask."""
        states, mask = self.model.encode(sentences)
        self._keep("encode", sentences, states=states, mask=mask)
        return states, mask

    def embed(self, sentences):
        """Answer, and keep the embeddings."""
        embeddings = self.model.embed(sentences)
        self._keep("embed", sentences, embeddings=embeddings)
        return embeddings

    def _keep(self, method, question, **parts):
        for part, array in parts.items():
            half = array.astype(np.float16) if array.dtype == np.float32 else array
            self.arrays[pretrained.recorded_name(method, question, part)] = half


def run(path, **names):
    """Run the code cells of a notebook in this process and return what they printed, by cell."""
    matplotlib.use("agg")
    printed = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(cell.source, path.name, "exec"), names)
            printed.append(output.getvalue())
    return printed


def main():
    """Record the chapter and say how large the recording is."""
    try:
        recorder = Recorder(pretrained.load_minilm())
    except pretrained.MissingModelError as error:
        return f"Stopped: {error}"
    pretrained.load_minilm = lambda: recorder
    run(CHAPTER)
    pretrained.RECORDING.parent.mkdir(exist_ok=True)
    np.savez_compressed(pretrained.RECORDING, **recorder.arrays)
    size = pretrained.RECORDING.stat().st_size
    say(f"{len(recorder.arrays)} arrays, {size / 1e3:.0f} kB, in {pretrained.RECORDING.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
