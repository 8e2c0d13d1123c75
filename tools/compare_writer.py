"""Compare the model that writes with what it is read against: `python -m tools.compare_writer`.

How often a table of the last few words would be right, how close the model's probabilities are to
the true ones, and how the settings of sampling change its stories. What is measured goes into
`attnlib/data/writer_compared.json`. It takes more than ten minutes on one core.
"""

import json
import random
from collections import Counter

import numpy as np

from attnlib.models import writing
from attnlib.world import World
from tools.measure_writer import fault, held_out, probabilities_of, written
from tools.train_writer import SECOND, Recipe, Stories

LENGTHS = (1, 2, 5)  # how many of the last words a table knows
EDGES = (0, 0.01, 0.05, 0.15, 0.35, 0.65, 0.95, 1)  # of the buckets of probabilities
N_STORIES, SEED = 200, 1
N_TOGETHER = 4  # words of the sequences that are counted
SETTINGS = (  # temperature, top-k, top-p
    (1.0, None, 1.0),
    (0.8, None, 1.0),
    (0.5, None, 1.0),
    (1.0, 20, 1.0),
    (1.0, 5, 1.0),
    (1.0, None, 0.95),
    (1.0, None, 0.9),
)


class Table:
    """The most frequent next token after each sequence of n tokens, as counted in stories."""

    def __init__(self, stories, n, n_tokens):
        self.n, self.n_tokens = n, n_tokens
        keys = np.concatenate([self._keys(story) for story in stories])
        found, counts = np.unique(keys, return_counts=True)
        before, after = np.divmod(found, n_tokens)
        order = np.lexsort((-counts, before))
        self.before, first = np.unique(before[order], return_index=True)
        self.after = after[order][first]

    def _keys(self, story):
        """Return a number for each token of a story but the first, with the n before it."""
        padded = np.concatenate([np.zeros(self.n - 1, int), story])  # END in front
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.n + 1)
        return windows @ self.n_tokens ** np.arange(self.n, -1, -1)

    def after_each(self, story):
        """Return what the table says of each token of a story but the first; -1 for nothing."""
        before = self._keys(story) // self.n_tokens
        place = np.searchsorted(self.before, before).clip(max=len(self.before) - 1)
        return np.where(self.before[place] == before, self.after[place], -1)


def tables(world, stories, learned):
    """Return by kind how often tables are right where one word is, among `stories`.

    A table that has not seen the last n words together uses fewer of them.
    """
    number = {word: token for token, word in enumerate(world.words)}
    known = [Table(learned, n, len(world.words)) for n in range(1, LENGTHS[-1] + 1)]
    places, right = Counter(), {n: Counter() for n in LENGTHS}
    for story in stories:
        tokens = np.array([0, *(number[word] for word in story)])
        guess, guesses = None, {}
        for table in known:
            found = table.after_each(tokens)
            guess = found if guess is None else np.where(found < 0, guess, found)
            guesses[table.n] = guess
        for at, step in enumerate(world.read(story)):
            if step.probabilities[step.word] < 1 - 1e-9:
                continue
            kind = step.kind or "free"
            places[kind] += 1
            for n in LENGTHS:
                right[n][kind] += int(guesses[n][at] == tokens[at + 1])
    return {
        kind: {str(n): right[n][kind] / count for n in LENGTHS} for kind, count in places.items()
    }


def calibration(model, world, stories):
    """Return rows of what the model's probabilities were worth, a bucket each, and their distances.

    A row counts the probabilities of all words at all places that are at least `EDGES[i]` and less
    than the next: how many, their mean, how often the word came, the mean of the true
    probabilities, and the mean distance from those. `distance` is the mean over places of half the
    sum of all distances, `divergence` that of the Kullback-Leibler divergence from the true ones.
    """
    number = {word: token for token, word in enumerate(model.vocabulary)}
    sums, distances, divergences = np.zeros((len(EDGES) - 1, 5)), [], []
    for story, rows in zip(stories, probabilities_of(model, stories), strict=True):
        for step, p in zip(world.read(story), rows, strict=True):
            true = np.zeros(len(p))
            for word, probability in step.probabilities.items():
                true[number[word]] = probability
            came = np.arange(len(p)) == number[step.word]
            bucket = np.searchsorted(EDGES[1:-1], p, side="right")
            for column, values in enumerate((np.ones(len(p)), p, came, true, abs(p - true))):
                sums[:, column] += np.bincount(bucket, values, len(sums))
            distances.append(abs(p - true).sum() / 2)
            possible = true > 0
            divergences.append((true[possible] * np.log(true[possible] / p[possible])).sum())
    n = sums[:, :1]
    return {
        "edges": EDGES,
        "rows": np.hstack([n, sums[:, 1:] / np.maximum(n, 1)]).tolist(),
        "distance": float(np.mean(distances)),
        "divergence": float(np.mean(divergences)),
    }


def variety(stories, n=N_TOGETHER):
    """Return how many of the sequences of n words in the stories are different, as a share."""
    found = [tuple(story[i : i + n]) for story in stories for i in range(len(story) - n + 1)]
    return len(set(found)) / len(found)


def sampling(model, world):
    """Return a row for the world's own stories, and one for each setting of the model's."""
    rng = random.Random(SEED)
    rows = [{"variety": variety([world.tell(rng)[0] for _ in range(N_STORIES)])}]
    for setting in SETTINGS:
        of = dict(zip(("temperature", "top_k", "top_p"), setting, strict=True))
        stories = written(model, N_STORIES, seed=SEED, **of)
        faults = Counter(fault(world, story) for story in stories)
        good = {"without_fault": faults.pop(None, 0), "faults": dict(faults.most_common())}
        rows.append({**of, **good, "variety": variety(stories)})
        print(rows[-1], flush=True)
    return rows


def learned_from(world):
    """Return all stories from which the model has learned, each as an array of tokens."""
    found = []
    for recipe in (Recipe(), SECOND):
        told = Stories(recipe, world)
        for step in range(recipe.steps):
            found += [row[row >= 0].astype(np.int16) for row in told.batch(step).numpy()]
    return found


def main():
    """Measure, and store what was measured."""
    world, model = World(), writing.writer()
    stories = held_out(world)
    figures = {
        "stories": N_STORIES,
        "sampling": sampling(model, world),
        "calibration": calibration(model, world, stories),
    }
    figures["tables"] = tables(world, stories, learned_from(world))
    writing.COMPARED.write_text(json.dumps(figures) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
