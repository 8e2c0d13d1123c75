"""What all-MiniLM-L6-v2 answered in the chapters, for machines that do not have the model."""

import hashlib
import json
from pathlib import Path

import numpy as np

from attnlib.models.files import ADVICE, MissingModelError
from attnlib.models.minilm import Reading

DATA = Path(__file__).resolve().parent.parent / "data"
RECORDING = DATA / "minilm.npz"
SENTENCES = DATA / "sentences.txt"
STEPS = 65535  # a recorded attention weight is a whole number of these


def load_recording():
    """Return what all-MiniLM-L6-v2 answered in the chapters, for machines without the model.

    Returns
    -------
    Recording
        With the methods of `MiniLM`, for the sentences of the chapters only.
    """
    return Recording(RECORDING)


def everyday_sentences():
    """Return a hundred sentences of 5 to 21 tokens, to test on many what one sentence shows."""
    return SENTENCES.read_text(encoding="utf-8").splitlines()


class Recording:
    """The answers of `MiniLM` to the questions of the chapters, read from a file.

    Parameters
    ----------
    path : str or Path
        Written by tools/record_minilm.py: vectors in half precision, weights in whole numbers
        of 1/65535.
    """

    def __init__(self, path):
        with np.load(path, allow_pickle=False) as stored:
            self._arrays = dict(stored)

    def read(self, sentence, hidden=()):
        """Return what `MiniLM.read` gave for a sentence of a chapter, nothing hidden."""
        if hidden := list(hidden):
            raise MissingModelError(f"no reading with {hidden} hidden is recorded. {ADVICE}")
        tokens, states, weights = self._answer("read", sentence, "tokens", "states", "weights")
        return Reading(tokens.tolist(), states, weights / np.float32(STEPS))

    def attention(self, sentence):
        """Return what `MiniLM.attention` gave for a sentence of a chapter."""
        tokens, weights = self._answer("attention", sentence, "tokens", "weights")
        return tokens.tolist(), weights / np.float32(STEPS)

    def encode(self, sentences):
        """Return what `MiniLM.encode` gave for sentences of a chapter."""
        return self._answer("encode", sentences, "states", "mask")

    def embed(self, sentences):
        """Return what `MiniLM.embed` gave for sentences of a chapter."""
        return self._answer("embed", sentences, "embeddings")[0]

    def measure(self, name, function, sentences):
        """Return what `MiniLM.measure` gave under this name for sentences of a chapter."""
        return self._answer("measure", measured_name(name, sentences), "found")[0]

    def _answer(self, method, question, *parts):
        try:
            arrays = [self._arrays[recorded_name(method, question, part)] for part in parts]
        except KeyError:
            raise MissingModelError(
                f"this takes the model; recorded are only the sentences of the chapters, "
                f"not {question!r}. {ADVICE}"
            ) from None
        return tuple(a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays)


def recorded_name(method, question, part):
    """Return the name under which a recording keeps a part of an answer."""
    return f"{method} {json.dumps(question)} {part}"


def measured_name(name, sentences):
    """Return the question of `measure` in a recording: its name, and a hash of the sentences."""
    digest = hashlib.sha256(json.dumps(list(sentences)).encode()).hexdigest()
    return f"{name} of {len(sentences)} sentences, {digest[:12]}"
