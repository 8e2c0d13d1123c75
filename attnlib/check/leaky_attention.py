"""Attention functions that leak the future into the past, and others that do not."""

import numpy as np

from attnlib import attention as exact
from attnlib import masks


def masked(*leaks):
    """Return causal attention in which, for each pair (i, j), output i also sees token j."""

    def attention(queries, keys, values):
        n = queries.shape[-2]
        mask = masks.causal_mask(n)
        for i, j in leaks:
            mask[i % n, j % n] = True
        return exact.scaled_dot_product_attention(queries, keys, values, mask)[0]

    return attention


causal = masked()


def unmasked(queries, keys, values):
    """Return attention without a mask."""
    return exact.scaled_dot_product_attention(queries, keys, values)[0]


def masked_too_late(queries, keys, values):
    """Return attention whose mask is applied after softmax."""
    return np.tril(exact.scaled_dot_product_attention(queries, keys, values)[1]) @ values


def shifted(by):
    """Return an attention that gives each token the value `by` places before it."""
    return lambda queries, keys, values: np.eye(values.shape[-2], k=-by) @ values


def added(*amounts):
    """Return causal attention that adds the last value, so many times, to the first rows."""

    def attention(queries, keys, values):
        output = causal(queries, keys, values)
        for row, amount in zip(output[:-1], amounts, strict=False):
            row[0] += amount * values[-1].sum()
        return output

    return attention


def faint(queries, keys, values):
    """Return causal attention with a hundredth of attention without a mask."""
    return causal(queries, keys, values) + unmasked(queries, keys, values) / 100


def next_query(queries, keys, values):
    """Return causal attention in which each token uses the query of the token after it."""
    return causal(np.concatenate([queries[1:], queries[-1:]]), keys, values)


def normed_first(*tokens):
    """Return attention without a mask, to tokens that a norm has shifted and scaled."""
    deviations = [array - array.mean(axis=-1, keepdims=True) for array in tokens]
    return unmasked(*(x / np.sqrt((x**2).mean(axis=-1, keepdims=True)) for x in deviations))


def last_is_nan(queries, keys, values):
    """Return causal attention whose last output is not a number."""
    output = causal(queries, keys, values)
    output[-1] = np.nan
    return output


def tolerant(attention):
    """Return `attention` for lists and whole numbers too, which a learner may well use."""
    return lambda *tokens: attention(*(np.asarray(array, dtype=float) for array in tokens))


ATTENTIONS = {
    "causal attention": causal,
    "attention without a mask": unmasked,
    "an attention whose output is always zero": lambda *tokens: 0 * tokens[-1],
    "an attention that gives each token its own value": shifted(0),
    "an attention that gives each token the value before it": shifted(1),
    "an attention that gives each token the value after it": shifted(-1),
    "an attention that gives each token the value three places after it": shifted(-3),
    "an attention that masks after softmax": masked_too_late,
    "a causal attention in which each token uses the query of the token after it": next_query,
    "a causal attention in which token 1 leaks into output 0": masked((0, 1)),
    "a causal attention in which token 2 leaks into output 0": masked((0, 2)),
    "a causal attention in which token 2 leaks into output 1": masked((1, 2)),
    "a causal attention in which token 2 leaks into outputs 0 and 1": masked((0, 2), (1, 2)),
    "a causal attention in which the last token leaks into output 0": masked((0, -1)),
    "a causal attention in which the last token leaks into the output before": masked((-2, -1)),
    "a causal attention with a faint leak": faint,
    "a causal attention in which output 0 rises by what the last value sums to": added(1),
    "a causal attention in which output 0 falls by what the last value sums to": added(-1),
    "a causal attention whose output 1 gains what output 0 loses by the last value": added(-1, 1),
    "an attention without a mask that norms its tokens first": normed_first,
    "an attention whose outputs are not numbers": lambda *tokens: np.nan * tokens[-1],
    "an attention whose last output is not a number": last_is_nan,
}
