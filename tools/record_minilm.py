"""Store what the model answers in the chapters: `python -m tools.record_minilm`.

Runs the cells of the chapters that use it and writes down each answer, so that they can be run
without the model; and what the views of `Encoder` and `Swap` show. Repeat this when one of them
uses it in another way.
"""

import contextlib
import io
import json
import sys

import matplotlib
import nbformat
import numpy as np

from attnlib import models
from attnlib.models import recordings
from attnlib.widgets import swap
from attnlib.widgets.encoder import views
from tools.install import ROOT, say

HEADS = ROOT / "chapters" / "06-many-heads.ipynb"  # uses recorded weights only
PARTS = ROOT / "chapters" / "09-what-each-part-is-for.ipynb"
CHAPTER = ROOT / "chapters" / "16-a-real-encoder.ipynb"
FEW = 1000  # numbers that are kept as they are: of those, the digits are printed


class Recorder:
    """A `MiniLM` that keeps what it answers, in the form that `Recording` reads."""

    def __init__(self, model):
        self.model = model
        self.arrays = {}

    def read(self, sentence):
        """Answer, and keep tokens, states and weights."""
        reading = self.model.read(sentence)
        tokens, weights = _packed(reading.tokens, reading.weights)
        self._keep("read", sentence, tokens=tokens, states=reading.states, weights=weights)
        return reading

    def attention(self, sentence):
        """Answer, and keep tokens and weights."""
        tokens, weights = self.model.attention(sentence)
        words, steps = _packed(tokens, weights)
        self._keep("attention", sentence, tokens=words, weights=steps)
        return tokens, weights

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

    def measure(self, name, function, sentences):
        """Answer, and keep what the function found under this name."""
        found = self.model.measure(name, function, sentences)
        self._keep("measure", recordings.measured_name(name, sentences), found=found)
        return found

    def _keep(self, method, question, **parts):
        for part, array in parts.items():
            large = array.dtype == np.float32 and array.size > FEW
            half = array.astype(np.float16) if large else array
            self.arrays[recordings.recorded_name(method, question, part)] = half


def _packed(tokens, weights):
    """Return tokens and weights as a recording holds them."""
    return np.array(tokens), np.rint(weights * recordings.STEPS).astype(np.uint16)


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
    """Record the chapters and the views, and say how large the recordings are."""
    try:
        recorder = Recorder(models.load_minilm())
    except models.MissingModelError as error:
        return f"Stopped: {error}"
    models.load_minilm = models.load_recording = lambda: recorder
    for chapter in (HEADS, PARTS, CHAPTER):
        run(chapter)
    recordings.RECORDING.parent.mkdir(exist_ok=True)
    np.savez_compressed(recordings.RECORDING, **recorder.arrays)
    size = recordings.RECORDING.stat().st_size
    say(f"{len(recorder.arrays)} arrays, {size / 1e3:.0f} kB, in {recordings.RECORDING.name}")
    for module in (views, swap):
        text = json.dumps(module.record(recorder.model), ensure_ascii=False) + "\n"
        module.RECORDED.write_text(text, encoding="utf-8")
        say(f"{len(text) / 1e3:.0f} kB in {module.RECORDED.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
