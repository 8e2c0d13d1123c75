# ruff: noqa: N803 -- learners write V as in the formula, and messages repeat it
"""Checkers of chapter 14: softmax in blocks, and heads that share keys and values."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib.check import words
from attnlib.check.verdict import draw, judge


def online_softmax(function):
    """Check the average of the values under softmax, met one block of keys at a time.

    Parameters
    ----------
    function : callable
        Takes the scores s (n_k,) of one query, the values V (n_k, d_v) and block, how many keys
        are seen at a time; returns softmax(s) V (d_v,). The last block may be shorter.

    Returns
    -------
    Verdict
    """

    def right(s, V, block):
        return exact.softmax(s) @ V

    def shrink(old, new):
        return np.exp(old - new)

    def keep(old, new):
        return 1

    def forget(old, new):
        return 0

    def swell(old, new):
        return np.exp(new - old) if np.isfinite(old) else 1

    def streamed(largest_of=max, total_by=shrink, output_by=shrink, start=-np.inf, divided=True):
        """Return the running sums with another maximum, or other factors at a new maximum."""

        def function(s, V, block):
            largest, total, output = start, 0, 0
            for first in range(0, len(s), block):
                scores, values = s[first : first + block], V[first : first + block]
                before, largest = largest, largest_of(largest, scores.max())
                powers = np.exp(scores - largest)
                total = total * total_by(before, largest) + powers.sum()
                output = output * output_by(before, largest) + powers @ values
            return output / total if divided else output

        return function

    def blocks(s, V, block):
        starts = range(0, len(s), block)
        return [right(s[i : i + block], V[i : i + block], block) for i in starts]

    def overlapping(s, V, block):
        often = np.minimum(np.arange(len(s)) + 1, block)
        return right(s + np.log(often), V, block)

    def whole_blocks(s, V, block):
        seen = len(s) // block * block
        return right(s[:seen], V[:seen], block)

    def latest(old, new):
        return new

    mistakes = [
        (
            "When the maximum rises, what you summed before still stands under the old one: "
            "multiply sum and output by e^(old - new), with the old one as it was before.",
            streamed(total_by=keep, output_by=keep),
        ),
        (
            "You rescale the output but not the sum of the powers. Both stand under the old "
            "maximum: multiply both by e^(old - new).",
            streamed(total_by=keep),
        ),
        (
            "You rescale the sum of the powers but not the output. Both stand under the old "
            "maximum: multiply both by e^(old - new).",
            streamed(output_by=keep),
        ),
        (
            "Your factor is upside down: a larger maximum makes old powers smaller, e^(old - new).",
            streamed(total_by=swell, output_by=swell),
        ),
        (
            "There is NaN for all inputs. Often the old maximum, -inf at first, stands where it "
            "gives infinity: use e^(old - new) and e^(s - new).",
            lambda s, V, block: np.full_like(V[0], np.nan),
        ),
        (
            "Each block subtracts its own maximum, so their powers cannot be added. Keep one "
            "running maximum, and rescale when it rises.",
            streamed(latest, total_by=keep, output_by=keep),
        ),
        (
            "Your maximum can fall, and then e^(old - new) overflows: keep the larger of the old "
            "one and that of the block.",
            streamed(latest),
        ),
        (
            "You keep the maximum of the first block, so larger scores that follow overflow: let "
            "it rise.",
            streamed(lambda old, new: old if np.isfinite(old) else new),
        ),
        (
            "Your maximum starts too high: scores far below it have powers of 0. Start at -inf.",
            streamed(start=0),
        ),
        (
            "Large scores overflow: keep a running maximum, and subtract it before you raise e.",
            streamed(lambda old, new: 0, total_by=keep, output_by=keep),
        ),
        (
            "You took the mean of the blocks' own softmaxes. A block with larger scores weighs "
            "more: add up powers, and divide once at the end.",
            lambda s, V, block: np.mean(blocks(s, V, block), axis=0),
        ),
        (
            "You added up the blocks' own softmaxes, so the weights sum to the number of blocks. "
            "Add up powers, and divide once at the end.",
            lambda s, V, block: np.sum(blocks(s, V, block), axis=0),
        ),
        (
            "The last block is dropped where it is shorter than the others.",
            whole_blocks,
        ),
        (
            "Only the last block is left. Either sum and output are replaced, not added to, or the "
            "old maximum stays -inf: at the end of each round it becomes the new one.",
            streamed(total_by=forget, output_by=forget),
        ),
        (
            "Only the first block counts: a return inside of the loop, or no loop.",
            lambda s, V, block: right(s[:block], V[:block], block),
        ),
        (
            "Your blocks overlap: the next one begins `block` keys later.",
            lambda s, V, block: overlapping(s, V, block),
        ),
        (
            "Every block takes the first values. Cut V as you cut the scores.",
            lambda s, V, block: exact.softmax(s) @ V[np.arange(len(s)) % block],
        ),
        (
            "You divide by the powers of the last block alone. Add them up over all blocks.",
            streamed(total_by=forget),
        ),
        (
            "The division is missing: at the end, divide the output by the sum of the powers.",
            streamed(divided=False),
        ),
    ]
    s, V = draw(7), draw(7, 3, seed=1)
    cases = {
        "seven keys in blocks of 2": (s, V, 2),
        "eleven keys in blocks of 3": (draw(11, seed=2), draw(11, 5, seed=3), 3),
        "one key at a time": (s, V, 1),
        "a block longer than all keys": (s, V, 13),
        "scores that rise by the thousand": (s + 1e3 * np.arange(7), V, 2),
        "scores that fall by the thousand": (s - 1e3 * np.arange(7), V, 2),
        "scores near -10,000": (s - 1e4, V, 2),
        "scores from -10,000 to 10,000": (1e4 * np.tanh(s), V, 3),
        "float32": (s.astype(np.float32), V.astype(np.float32), 2),
    }
    returns = {"output": "one number for each dimension of the values"}
    return judge(function, right, mistakes, cases, returns)


def grouped_attention(function):
    """Check attention of several heads of queries for each head of keys and values.

    Parameters
    ----------
    function : callable
        Takes queries (..., n_heads, n_q, d_k), keys (..., n_kv_heads, n_k, d_k) and values
        (..., n_kv_heads, n_k, d_v), returns the output (..., n_heads, n_q, d_v). Query head h uses
        key head h // (n_heads // n_kv_heads).

    Returns
    -------
    Verdict
    """

    def group(queries, keys):
        return queries.shape[-3] // keys.shape[-3]

    def spread(queries, keys):
        return np.repeat(keys, group(queries, keys), axis=-3)

    def attend(queries, keys, values, scale=None, axis=-1):
        scale = math.sqrt(queries.shape[-1]) if scale is None else scale
        scores = queries @ keys.swapaxes(-2, -1) / scale
        return exact.softmax(scores, axis) @ values

    def with_heads(choose):
        """Return attention whose query head h uses key head choose(h, n_heads, n_kv_heads)."""

        def function(queries, keys, values):
            n_heads, n_kv_heads = queries.shape[-3], keys.shape[-3]
            used = [choose(h, n_heads, n_kv_heads) for h in range(n_heads)]
            return attend(queries, keys[..., used, :, :], values[..., used, :, :])

        return function

    def scaled(size):
        """Return grouped attention that divides the scores by the root of this size."""

        def function(queries, keys, values):
            scale = math.sqrt(size(queries, keys, values))
            return attend(queries, spread(queries, keys), spread(queries, values), scale)

        return function

    def right(queries, keys, values):
        return attend(queries, spread(queries, keys), spread(queries, values))

    def repeated(queries, keys, values):
        times = (group(queries, keys), *[1] * (keys.ndim - 1))
        return attend(queries, np.repeat(keys, times[0], 0), np.repeat(values, times[0], 0))

    def mean_of_heads(queries, keys, values):
        return attend(queries, *(x.mean(axis=-3, keepdims=True) for x in (keys, values)))

    def mean_of_group(queries, keys, values):
        *batch, _, n_q, d_k = queries.shape
        groups = queries.reshape(*batch, keys.shape[-3], -1, n_q, d_k)
        return attend(groups.mean(axis=-3), keys, values)

    def merged(queries, keys, values):
        heads = right(queries, keys, values)
        return heads.swapaxes(-3, -2).reshape(*heads.shape[:-3], heads.shape[-2], -1)

    mistakes = [
        (
            "The shared heads came in turn, 0 1 2 0 1 2, as from np.tile. Neighbours share: with 6 "
            "heads and 3 key heads 0 0 1 1 2 2, as from np.repeat along the heads' axis.",
            with_heads(lambda h, n_heads, n_kv_heads: h % n_kv_heads),
        ),
        (
            "You divided h by n_kv_heads, the number of groups. Divide it by the size of a group, "
            "n_heads // n_kv_heads.",
            with_heads(lambda h, n_heads, n_kv_heads: h // n_kv_heads),
        ),
        (
            "The keys are shared as they should be, the values in turn. Both need the same heads.",
            lambda queries, keys, values: attend(
                queries,
                spread(queries, keys),
                np.concatenate([values] * group(queries, keys), axis=-3),
            ),
        ),
        (
            "The values are shared as they should be, the keys in turn. Both need the same heads.",
            lambda queries, keys, values: attend(
                queries,
                np.concatenate([keys] * group(queries, keys), axis=-3),
                spread(queries, values),
            ),
        ),
        (
            "All query heads use key head 0. Only those of the first group do.",
            with_heads(lambda h, n_heads, n_kv_heads: 0),
        ),
        (
            "The groups run backwards: the first query heads use the first key head.",
            with_heads(lambda h, n_heads, n_kv_heads: (n_heads - 1 - h) // (n_heads // n_kv_heads)),
        ),
        (
            "You took the mean over the key heads. Each group keeps a key head of its own.",
            mean_of_heads,
        ),
        (
            "You took the mean of the queries of a group. Each query head asks for itself; only "
            "keys and values are shared.",
            mean_of_group,
        ),
        (
            "Axis 0 is that of the heads only without a batch. Count from the end: axis=-3.",
            repeated,
        ),
        (words.UNSCALED, scaled(lambda queries, keys, values: 1)),
        (words.BY_D_K, scaled(lambda queries, keys, values: queries.shape[-1] ** 2)),
        (words.MULTIPLIED, scaled(lambda queries, keys, values: 1 / queries.shape[-1])),
        (words.BY_D_V, scaled(lambda queries, keys, values: values.shape[-1])),
        (words.BY_N_K, scaled(lambda queries, keys, values: keys.shape[-2])),
        (words.BY_N_Q, scaled(lambda queries, keys, values: queries.shape[-2])),
        (
            "You divided by the square root of the number of heads. Use d_k, the last axis.",
            scaled(lambda queries, keys, values: queries.shape[-3]),
        ),
        (
            "You divided by the square root of the number of key heads. Use d_k, the last axis.",
            scaled(lambda queries, keys, values: keys.shape[-3]),
        ),
        (
            "You divided by the square root of n_heads * d_k. Use d_k, the width of one head.",
            scaled(lambda queries, keys, values: queries.shape[-3] * queries.shape[-1]),
        ),
        (
            "Your rows do not sum to 1: softmax ran over the queries (axis=-2), not over the keys.",
            lambda queries, keys, values: attend(
                queries, spread(queries, keys), spread(queries, values), axis=-2
            ),
        ),
        (
            "Your rows do not sum to 1: softmax ran over the heads, not over the keys.",
            lambda queries, keys, values: attend(
                queries, spread(queries, keys), spread(queries, values), axis=-3
            ),
        ),
        (
            "You blended the scores. Softmax is missing.",
            lambda queries, keys, values: (
                queries
                @ spread(queries, keys).swapaxes(-2, -1)
                / math.sqrt(queries.shape[-1])
                @ spread(queries, values)
            ),
        ),
        (
            "These are the weights. Blend the values with them.",
            lambda queries, keys, values: attend(
                queries, spread(queries, keys), np.eye(keys.shape[-2], dtype=keys.dtype)
            ),
        ),
        (
            "You returned the output and the weights. Return the output alone.",
            lambda queries, keys, values: (
                right(queries, keys, values),
                attend(queries, spread(queries, keys), np.eye(keys.shape[-2], dtype=keys.dtype)),
            ),
        ),
        (
            "You merged the heads. Return them as they came, (..., n_heads, n_q, d_v).",
            merged,
        ),
        (
            "The output's tokens stand before its heads. Return (..., n_heads, n_q, d_v).",
            lambda queries, keys, values: right(queries, keys, values).swapaxes(-3, -2),
        ),
        (words.KEYS_BLENDED, lambda queries, keys, values: right(queries, keys, keys)),
    ]

    def sizes(*batch, n_heads, n_kv_heads, n_q, n_k, d_k, d_v, seed=0):
        return (
            draw(*batch, n_heads, n_q, d_k, seed=seed),
            draw(*batch, n_kv_heads, n_k, d_k, seed=seed + 1),
            draw(*batch, n_kv_heads, n_k, d_v, seed=seed + 2),
        )

    cases = {
        "6 heads with 3 of keys": sizes(n_heads=6, n_kv_heads=3, n_q=5, n_k=7, d_k=11, d_v=13),
        "6 heads with 2 of keys": sizes(n_heads=6, n_kv_heads=2, n_q=7, n_k=5, d_k=3, d_v=11),
        "a batch of 3": sizes(3, n_heads=4, n_kv_heads=2, n_q=3, n_k=5, d_k=7, d_v=2),
        "two axes before the heads": sizes(
            5, 2, n_heads=9, n_kv_heads=3, n_q=2, n_k=5, d_k=5, d_v=3
        ),
        "a head of keys for each of queries": sizes(
            n_heads=3, n_kv_heads=3, n_q=5, n_k=2, d_k=7, d_v=5
        ),
        "one head of keys for all": sizes(n_heads=5, n_kv_heads=1, n_q=2, n_k=3, d_k=5, d_v=7),
        "float32": tuple(
            x.astype(np.float32) for x in sizes(n_heads=4, n_kv_heads=2, n_q=3, n_k=5, d_k=2, d_v=3)
        ),
    }
    return judge(function, right, mistakes, cases, {"output": "(..., n_heads, n_q, d_v)"})
