"""Record where the heads put their largest weight: `python -m tools.record_heads`.

`attnlib.judge` compares rules with it, so that neither a notebook nor a page needs the models for
that. Repeat it when the writer was trained again.
"""

import random
import sys

import numpy as np

from attnlib import judging, models
from attnlib.world import World
from tools.install import say

STORIES, PLACES, SEED = 1000, 24, 16


def encoder_texts(model):
    """Yield tokens, the places that count, and the weights of the everyday sentences."""
    for sentence in models.everyday_sentences():
        tokens, weights = model.attention(sentence)
        yield tokens, np.arange(1, len(tokens)), weights


def stories(n):
    """Yield the words of n stories and the places that count, the same in each run."""
    rng, world = random.Random(SEED), World()
    for _ in range(n):
        words = ["¶", *world.tell(rng)[0][:-1]]
        yield words, np.array(sorted(rng.sample(range(1, len(words)), PLACES)))


def writer_texts(model, n=STORIES):
    """Yield tokens, the places that count, and the weights of n stories."""
    for words, queries in stories(n):
        tokens = [model.vocabulary.index(word) for word in words]
        yield words, queries, np.stack(model.read(tokens).weights)


def packed(name, texts):
    """Return what is recorded of a model, as arrays under its name."""
    texts = [(tokens, at, weights[..., at, :]) for tokens, at, weights in texts]
    words = sorted({token for tokens, _, _ in texts for token in tokens})
    numbers = {word: number for number, word in enumerate(words)}
    largest = np.concatenate([weights.max(axis=-1) for *_, weights in texts], axis=-1)
    arrays = {
        "words": np.frombuffer("\n".join(words).encode(), np.uint8),
        "lengths": np.array([len(tokens) for tokens, *_ in texts], np.uint8),
        "tokens": np.array([numbers[t] for tokens, *_ in texts for t in tokens], np.uint16),
        "counts": np.array([len(at) for _, at, _ in texts], np.uint8),
        "queries": np.concatenate([at for _, at, _ in texts]).astype(np.uint8),
        "keys": np.concatenate([w.argmax(axis=-1) for *_, w in texts], axis=-1).astype(np.uint8),
        "largest": largest.mean(axis=-1).astype(np.float32),
    }
    return {f"{name}.{part}": array for part, array in arrays.items()}


def main():
    """Record both models, and say how large the file is."""
    try:
        minilm = models.load_minilm()
    except models.MissingModelError as error:
        return f"Stopped: {error}"
    arrays = packed("encoder", encoder_texts(minilm))
    arrays |= packed("writer", writer_texts(models.writer()))
    np.savez_compressed(judging.RECORDED, **arrays)
    say(f"{judging.RECORDED.stat().st_size / 1e3:.0f} kB in {judging.RECORDED.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
