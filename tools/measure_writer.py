"""What the model that writes is measured with: held-out stories, losses, faults."""

import random

import numpy as np

from attnlib.attention import softmax
from attnlib.models.writing import Writer
from attnlib.world import END, Reading

HELD_OUT_SEED = 1_000_000  # training draws its stories from other seeds
N_HELD_OUT, LONGEST = 300, 160
BATCH = 25


def held_out(world, n=N_HELD_OUT):
    """Return stories that no training has seen, as lists of words."""
    rng = random.Random(HELD_OUT_SEED)
    return [world.tell(rng)[0] for _ in range(n)]


def probabilities_of(model: Writer, stories):
    """Yield for each story the probabilities of its words (n, n_tokens), each before it came."""
    number = {word: token for token, word in enumerate(model.vocabulary)}
    for begin in range(0, len(stories), BATCH):
        part = stories[begin : begin + BATCH]
        tokens = np.zeros((len(part), max(map(len, part))), int)  # END stands in front
        for row, story in zip(tokens, part, strict=True):
            row[1 : len(story)] = [number[word] for word in story[:-1]]
        for rows, story in zip(softmax(model(tokens)), part, strict=True):
            yield rows[: len(story)]


def losses(model: Writer, world, stories):
    """Return the losses of the model and of the world, in all and by kind of dependency.

    A kind is that of a word which an earlier one decides; "free" is the kind of all others. `one`
    counts the words where the world allows a single one; `right` and `probability` say how often
    the model finds it most probable, and how probable on average.
    """
    number = {word: token for token, word in enumerate(model.vocabulary)}
    rows = []
    for story, probabilities in zip(stories, probabilities_of(model, stories), strict=True):
        for step, row in zip(world.read(story), probabilities, strict=True):
            token, true = number[step.word], step.probabilities[step.word]
            rows.append((step.kind or "free", row[token], true, row.argmax() == token))
    kinds = np.array([kind for kind, *_ in rows])
    p, true, right = np.array([each[1:] for each in rows], float).T

    def of(chosen):
        one = chosen & (true > 1 - 1e-9)
        found = {
            "n": int(chosen.sum()),
            "loss": float(-np.log(p[chosen]).mean()),
            "floor": float(-np.log(true[chosen]).mean()),
            "one": int(one.sum()),
        }
        if one.any():
            found |= {"right": float(right[one].mean()), "probability": float(p[one].mean())}
        return found

    by_kind = {kind: of(kinds == kind) for kind in sorted(set(kinds))}
    return of(np.full(len(kinds), True)) | {"stories": len(stories), "kinds": by_kind}


def fault(world, words):
    """Return the kind of the first word that the world does not allow, None if there is none."""
    reading = Reading(world)
    for word in words:
        if word not in reading.probabilities:
            expected = max(reading.probabilities, key=reading.probabilities.get)
            return reading.read(expected).kind or "free"
        reading.read(word)
    return None if END in words else "no end"


def kept(p, top_k, top_p):
    """Return probabilities (..., n_tokens), 0 for all words that top-k and top-p leave out."""
    order = np.argsort(-p, axis=-1)
    falling = np.take_along_axis(p, order, -1)
    stays = np.cumsum(falling, -1) - falling < top_p
    if top_k is not None:
        stays[..., top_k:] = False
    left = np.zeros_like(p)
    np.put_along_axis(left, order, np.where(stays, falling, 0), -1)
    return left / left.sum(-1, keepdims=True)


def written(model: Writer, n, *, temperature, top_k=None, top_p=1.0, seed=0):
    """Return n stories that the model writes, as lists of words up to the first END."""
    rng, cache, new, texts = np.random.default_rng(seed), model.cache(), np.zeros((n, 1), int), []
    for _ in range(LONGEST):
        p = softmax(model(new, cache=cache)[:, -1].astype(float) / temperature)
        sums = kept(p, top_k, top_p).cumsum(-1)
        new = (sums <= rng.random((n, 1)) * sums[:, -1:]).sum(-1, keepdims=True)
        texts.append(new[:, 0])
    stories = [[model.vocabulary[token] for token in story] for story in np.transpose(texts)]
    return [story[: story.index(END) + 1] if END in story else story for story in stories]
