# ruff: noqa: N803 -- learners write V as in the formula, and messages repeat it
"""The checker of softmax in blocks of keys, with a running maximum."""

import numpy as np

from attnlib import attention as exact
from attnlib.check.arrays import float32, random_arrays
from attnlib.check.attempts import same
from attnlib.check.checker import Checker, Verdict

AT_ONCE = (
    "The numbers are right, but your function computes with more than `block` scores at a time. "
    "Think of a text whose scores do not fit into memory: take s[i : i + block], and keep only the "
    "largest score, the sum and the output so far. A copy of all of s, and np.asarray(s), count as "
    "reading all of it."
)


class Hidden(np.ndarray):
    """Scores of which no more than a block can be read at a time: all together they are NaN."""

    def __array_finalize__(self, source):
        """Let a copy, or a view, hide what its source hides."""
        self.scores, self.block = getattr(source, "scores", None), getattr(source, "block", 0)

    def __getitem__(self, key):
        """Return a part: an ordinary array if it holds at most a block."""
        part = self.scores.reshape(self.shape)[key]
        return part if np.size(part) <= self.block else hide(part, self.block)


def hide(scores, block):
    """Return scores of which at most a block can be read at a time."""
    hidden = np.full_like(scores, np.nan).view(Hidden)
    hidden.scores, hidden.block = scores, block
    return hidden


class InBlocks(Checker):
    """A checker that refuses a right answer if it was computed with all scores at once."""

    def verdict(self, function, attempts):
        """Return the verdict on what a function did with the inputs."""
        verdict = super().verdict(function, attempts)
        inputs = next(iter(self.cases.values()))

        def in_the_dark(s, V, block):
            return function(hide(s, block), V, block)

        if verdict and not same(self.attempt(in_the_dark, inputs).result, attempts[0].result):
            return Verdict(False, AT_ONCE)
        return verdict


def whole(s, V):
    """Return the output of all these scores and values."""
    return exact.softmax(s) @ V


def shrink(old, new):
    """Return the right factor at a new maximum."""
    return np.exp(old - new)


def keep(old, new):
    """Return the factor of sums that are not rescaled."""
    return 1


def forget(old, new):
    """Return the factor of sums that are replaced."""
    return 0


def swell(old, new):
    """Return the factor upside down."""
    return np.exp(new - old) if np.isfinite(old) else 1


def latest(old, new):
    """Return the maximum of the block alone."""
    return new


def first(old, new):
    """Return the maximum of the first block."""
    return old if np.isfinite(old) else new


def streamed(largest_of=max, total_by=shrink, output_by=shrink, start=-np.inf, divided=True):
    """Return the running sums with another maximum, or other factors at a new maximum."""

    def online_softmax(s, V, block):
        largest, total, output = start, 0, 0
        for begin in range(0, len(s), block):
            scores, values = s[begin : begin + block], V[begin : begin + block]
            before, largest = largest, largest_of(largest, scores.max())
            exponentials = np.exp(scores - largest)
            total = total * total_by(before, largest) + exponentials.sum()
            output = output * output_by(before, largest) + exponentials @ values
        return output / total if divided else output

    return online_softmax


def blocks(s, V, block):
    """Return the output of each block by itself."""
    starts = range(0, len(s), block)
    return [whole(s[i : i + block], V[i : i + block]) for i in starts]


def overlapping(s, V, block):
    """Return the output of blocks that begin at every key."""
    often = np.minimum(np.arange(len(s)) + 1, block)
    return whole(s + np.log(often), V)


def whole_blocks(s, V, block):
    """Return the output of the blocks that are not shorter than the others."""
    n_whole = len(s) // block * block
    return whole(s[:n_whole], V[:n_whole])


S, V = random_arrays((7,), (7, 3))

online_softmax = InBlocks(
    """Check the average of the values under softmax, computed one block of keys at a time.

    The function takes the scores s (n_k,) of one query, the values V (n_k, d_v) and block, how many
    keys are read at a time; it returns softmax(s) V (d_v,). The last block may be shorter.
    """,
    right=streamed(),
    returns={"output": "one number for each dimension of the values"},
    cases={
        "seven keys in blocks of 2": (S, V, 2),
        "eleven keys in blocks of 3": (*random_arrays((11,), (11, 5), seed=2), 3),
        "one key at a time": (S, V, 1),
        "a block longer than all keys": (S, V, 13),
        "scores that rise by the thousand": (S + 1e3 * np.arange(7), V, 2),
        "scores that fall by the thousand": (S - 1e3 * np.arange(7), V, 2),
        "scores near -10,000": (S - 1e4, V, 2),
        "scores from -10,000 to 10,000": (1e4 * np.tanh(S), V, 3),
        "float32": float32((S, V, 2)),
    },
    mistakes=[
        "When the maximum rises, what you summed before still stands under the old one: multiply "
        "sum and output by e^(old - new), with the old one as it was before.",
        streamed(total_by=keep, output_by=keep),
        "You rescale the output but not the sum of the exponentials. Both stand under the old "
        "maximum: multiply both by e^(old - new).",
        streamed(total_by=keep),
        "You rescale the sum of the exponentials but not the output. Both stand under the old "
        "maximum: multiply both by e^(old - new).",
        streamed(output_by=keep),
        "Your factor is upside down: a larger maximum makes old exponentials smaller, by "
        "e^(old - new).",
        streamed(total_by=swell, output_by=swell),
        "There is NaN for all inputs. Often the old maximum, -inf at first, stands where it gives "
        "infinity: use e^(old - new) and e^(s - new).",
        lambda s, V, block: np.full_like(V[0], np.nan),
        "Each block subtracts its own maximum, so their exponentials cannot be added. Keep one "
        "running maximum, and rescale when it rises.",
        streamed(latest, total_by=keep, output_by=keep),
        "Your maximum can fall, and then e^(old - new) overflows: keep the larger of the old one "
        "and that of the block.",
        streamed(latest),
        "You keep the maximum of the first block, so larger scores that follow overflow: let it "
        "rise.",
        streamed(first),
        "Your maximum starts too high: scores far below it have exponentials of 0. Start at -inf.",
        streamed(start=0),
        "Large scores overflow: keep a running maximum, and subtract it before you raise e.",
        streamed(lambda old, new: 0, total_by=keep, output_by=keep),
        "You took the mean of the blocks' own softmaxes. A block with larger scores weighs more: "
        "add up exponentials, and divide once at the end.",
        lambda s, V, block: np.mean(blocks(s, V, block), axis=0),
        "You added up the blocks' own softmaxes, so the weights sum to the number of blocks. Add "
        "up exponentials, and divide once at the end.",
        lambda s, V, block: np.sum(blocks(s, V, block), axis=0),
        "The last block is dropped where it is shorter than the others.",
        whole_blocks,
        "Only the last block is left. Either sum and output are replaced, not added to, or the old "
        "maximum stays -inf: at the end of each round it becomes the new one.",
        streamed(total_by=forget, output_by=forget),
        "Only the first block counts: a return inside of the loop, or no loop.",
        lambda s, V, block: whole(s[:block], V[:block]),
        "Your blocks overlap: the next one begins `block` keys later.",
        overlapping,
        "Every block takes the first values. Cut V as you cut the scores.",
        lambda s, V, block: exact.softmax(s) @ V[np.arange(len(s)) % block],
        "You divide by the exponentials of the last block alone. Add them up over all blocks.",
        streamed(total_by=forget),
        "The division is missing: at the end, divide the output by the sum of the exponentials.",
        streamed(divided=False),
    ],
)
