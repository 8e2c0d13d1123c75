"""Swap: one word of a sentence is exchanged, and the word "it" attends to another one."""

import json
from pathlib import Path

import numpy as np
import traitlets

from attnlib.widgets.kit.base import CourseWidget

RECORDED = Path(__file__).parents[2] / "data" / "swap.json"
LAYER, HEAD = 3, 1  # counted from 0
ASKS = "it"
SENTENCES = {
    "The cat did not drink the milk because it was {}.": [
        "sour",
        "tired",
        "hungry",
        "full",
        "warm",
    ],
    "The trophy did not fit in the suitcase because it was too {}.": "big small".split(),
}
WORDS = [word for words in SENTENCES.values() for word in words]


class Swap(CourseWidget):
    """What the word "it" attends to in a trained model, and how one other word changes that.

    The attention weights were recorded from all-MiniLM-L6-v2: those of "it" in head 2 of layer 4,
    counted from 1. A curve leads from "it" to every token, as thick as its weight. Nothing is
    downloaded and nothing is computed in the page.

    Parameters
    ----------
    word : str
        The word that is filled in, one of `WORDS`. It also decides the sentence.

    Raises
    ------
    traitlets.TraitError
        For a word that was not recorded.
    """

    word = traitlets.Enum(WORDS, "sour").tag(sync=True)
    readings = traitlets.List(read_only=True).tag(sync=True, constant=True)

    @traitlets.default("readings")
    def _recorded(self):
        return json.loads(RECORDED.read_text(encoding="utf-8"))

    @property
    def tokens(self):
        """The tokens of the sentence, from [CLS] to [SEP]."""
        return list(self._reading["tokens"])

    @property
    def weights(self):
        """The attention weights of "it", (n,), to four decimals."""
        return np.array(self._reading["weights"])

    @property
    def _reading(self):
        return next(one for one in self.readings if one["word"] == self.word)


def record(minilm):
    """Return what a model makes of the sentences, as plain values for `RECORDED`."""
    found = []
    for sentence, words in SENTENCES.items():
        for word in words:
            tokens, weights = minilm.attention(sentence.format(word))
            row = weights[LAYER, HEAD, tokens.index(ASKS)].astype(float).round(4)
            found.append(
                {"sentence": sentence, "word": word, "tokens": tokens, "weights": row.tolist()}
            )
    return found
