"""Checkers of chapter 5: masks, a softmax that minds them, and a test for leaks."""

import functools
import itertools

import numpy as np

from attnlib import attention as exact
from attnlib import masks
from attnlib.check import words
from attnlib.check.basics import unshifted_softmax
from attnlib.check.verdict import draw, judge


def causal_mask(function):
    """Check the causal mask: query i may attend to key j if j <= i.

    Parameters
    ----------
    function : callable
        Takes n_q and n_k, returns bool (n_q, n_k), True = may attend, aligned top-left.

    Returns
    -------
    Verdict
    """

    def right(n_q, n_k):
        return masks.causal_mask(n_q, n_k)

    def triangle(shift):
        return lambda n_q, n_k: np.tri(n_q, n_k, k=shift, dtype=bool)

    square = "Your mask is square. It has a row per query and a column per key; the two may differ."
    mistakes = [
        (
            "Your mask is inverted: here True means may attend. (nn.MultiheadAttention's boolean "
            "mask means the opposite.)",
            lambda n_q, n_k: ~right(n_q, n_k),
        ),
        (
            "In your mask a token does not see itself: the diagonal must be True, j <= i.",
            triangle(-1),
        ),
        (
            "Your mask shows the future and hides the past: keep the lower triangle, j <= i.",
            lambda n_q, n_k: ~triangle(-1)(n_q, n_k),
        ),
        (
            "Each query sees one token of the future: in row i, key i + 1 must be False.",
            triangle(1),
        ),
        (
            "Your triangle ends in the bottom right corner. Align it top-left, so that query 0 "
            "sees key 0 alone.",
            lambda n_q, n_k: np.tri(n_q, n_k, k=n_k - n_q, dtype=bool),
        ),
        (
            "Your mask hides nothing: query i must not see the keys after i.",
            lambda n_q, n_k: np.ones((n_q, n_k), dtype=bool),
        ),
        (square, lambda n_q, n_k: right(n_q, n_q)),
        (square, lambda n_q, n_k: right(n_k, n_k)),
        (
            "Rows and columns are exchanged: rows are queries, columns are keys.",
            lambda n_q, n_k: right(n_k, n_q),
        ),
        *additive_mistakes(right),
    ]
    cases = {
        "n_q = 5, n_k = 5": (5, 5),
        "n_q = 3, n_k = 7": (3, 7),
        "n_q = 7, n_k = 3": (7, 3),
        "n_q = 1, n_k = 1": (1, 1),
    }
    return judge(function, right, mistakes, cases, {"mask": "a row per query, a column per key"})


def padding_mask(function):
    """Check the padding mask: key j of sentence b may be seen if j < lengths[b].

    Parameters
    ----------
    function : callable
        Takes an array of lengths (sentences,) and n_k, returns bool (sentences, 1, n_k), True = may
        attend.

    Returns
    -------
    Verdict
    """

    def right(lengths, n_k):
        return masks.padding_mask(lengths, n_k)

    misplaced = (
        "The axis of length 1 stands in for the queries, in the middle: (sentences, 1, n_k)."
    )
    mistakes = [
        (
            "Your mask is inverted: here True means a real token, which may be seen, and False "
            "means padding.",
            lambda lengths, n_k: ~right(lengths, n_k),
        ),
        (
            "Off by one: your mask lets a token of padding in. The first key is 0, so j < length.",
            lambda lengths, n_k: np.arange(n_k) <= lengths[:, None, None],
        ),
        (
            "Off by one: your mask hides the last real token. Key j is real if j < length.",
            lambda lengths, n_k: np.arange(n_k) < lengths[:, None, None] - 1,
        ),
        (
            "The middle axis is missing: without it (sentences, n_k) is taken for (n_q, n_k). "
            "Return (sentences, 1, n_k).",
            lambda lengths, n_k: right(lengths, n_k)[:, 0],
        ),
        (misplaced, lambda lengths, n_k: right(lengths, n_k).swapaxes(1, 2)),
        (misplaced, lambda lengths, n_k: right(lengths, n_k).swapaxes(0, 1)),
        (
            "lengths (sentences,) does not fit the positions (n_k,): give it axes, "
            "lengths[:, None, None].",
            lambda lengths, n_k: np.arange(n_k) < lengths,
        ),
        (
            "Your mask hides the front of each sentence. The padding stands at the end.",
            lambda lengths, n_k: np.arange(n_k) >= n_k - lengths[:, None, None],
        ),
        (
            "Your mask hides nothing: the keys from lengths[b] on are padding.",
            lambda lengths, n_k: np.ones((len(lengths), 1, n_k), dtype=bool),
        ),
        *additive_mistakes(right),
    ]
    cases = {
        "lengths 2, 5 and 4": (np.array([2, 5, 4]), 7),
        "an empty sentence": (np.array([3, 0, 5, 1, 4]), 5),
        "a single sentence": (np.array([2]), 3),
    }
    return judge(function, right, mistakes, cases, {"mask": "(sentences, 1, n_k)"})


def masked_softmax(function):
    """Check a softmax that leaves out what a mask blocks: mask first, softmax second.

    Parameters
    ----------
    function : callable
        Takes scores (n_q, n_k) and a mask, bool (n_q, n_k), True = may attend; returns weights
        (n_q, n_k). A row with nothing to attend to gives zeros.

    Returns
    -------
    Verdict
    """

    def right(scores, mask):
        return exact.softmax(filled(scores, mask))

    def filled(scores, mask, low=-np.inf):
        return np.where(mask, scores, low)

    def top(scores):
        return scores.max(axis=-1, keepdims=True)

    def after(scores, mask):
        return exact.softmax(scores) * mask

    def total(weights):
        return weights.sum(axis=-1, keepdims=True)

    def any_left(mask):
        return mask.any(axis=-1, keepdims=True)

    def divided(powers):
        return powers / np.where(total(powers) == 0, 1, total(powers))

    def unshifted(scores, mask):
        return divided(np.exp(filled(scores, mask)))

    def shifted(scores, mask):
        """Return the powers of a row, shifted by the largest allowed score, not yet divided."""
        allowed = filled(scores, mask)
        return np.exp(allowed - np.where(any_left(mask), top(allowed), 0))

    def shifted_by(top_of):
        """Return a masked softmax with another shift, made of the masked scores."""

        def function(scores, mask):
            allowed = filled(scores, mask)
            return unshifted(allowed - top_of(allowed), mask)

        return function

    empty_row = "A row with nothing to attend to must be zeros. "
    late = (
        "Beside a much larger blocked score nothing is left of a row. Either you mask after "
        "softmax and divide again, or you shift by the largest score before you mask: mask first."
    )
    too_high = (
        "A blocked score must be -inf. A large negative number in its place is not low enough: a "
        "real score can be as low."
    )
    far = (
        "Without a shift, powers of large scores overflow, and those of scores far below 0 vanish: "
        "subtract each row's largest allowed score before you raise e to it."
    )
    mistakes = [
        (
            "The mask has no effect: blocked keys still take weight.",
            lambda scores, mask: exact.softmax(scores),
        ),
        (
            "Your mask is inverted: True means may attend, and you blocked those.",
            lambda scores, mask: right(scores, ~mask),
        ),
        (
            "You mask after softmax, so the rows no longer sum to 1: mask first, softmax second.",
            after,
        ),
        (
            "Your blocked scores are 0, set or multiplied. A score of 0 takes weight, since "
            "e^0 = 1: a blocked score must be -inf.",
            lambda scores, mask: exact.softmax(scores * mask),
        ),
        (
            "You take a score of 0 for a blocked one. An allowed score can be 0: ask the mask, "
            "not the score.",
            lambda scores, mask: right(scores, mask & (scores != 0)),
        ),
        (
            "You added True and False to the scores, as 1 and 0. A blocked score must be -inf.",
            lambda scores, mask: exact.softmax(scores + mask),
        ),
        (words.COLUMNS, lambda scores, mask: exact.softmax(filled(scores, mask), axis=0)),
        (
            words.EVERYTHING,
            lambda scores, mask: right(scores.ravel(), mask.ravel()).reshape(scores.shape),
        ),
        (words.NOT_DIVIDED, lambda scores, mask: np.exp(scores) * mask),
        (words.NOT_DIVIDED, shifted),
        (
            "You divided by the number of allowed keys. Divide by the sum of the row's powers.",
            lambda scores, mask: shifted(scores, mask) / np.maximum(total(mask), 1),
        ),
        (
            "You divided the scores by the square root of n_k. Softmax alone does not scale.",
            lambda scores, mask: right(scores / np.float32(np.sqrt(scores.shape[1])), mask),
        ),
        (words.AXIS_LOST, lambda scores, mask: scores - scores.max(axis=-1)),
        (
            empty_row + "Yours is uniform, which is what a large negative number in place of -inf "
            "makes of it.",
            lambda scores, mask: np.where(any_left(mask), right(scores, mask), 1 / mask.shape[1]),
        ),
        (
            empty_row + "-1e9 added to all of its scores changes nothing for softmax.",
            lambda scores, mask: exact.softmax(scores - 1e9 * ~mask),
        ),
        (
            empty_row + "In yours NaN stands: -inf - (-inf), or 0 / 0.",
            lambda scores, mask: np.where(any_left(mask), right(scores, mask), np.nan),
        ),
        *[
            (too_high, lambda scores, mask, low=low: exact.softmax(filled(scores, mask, low)))
            for low in (-1e2, -1e3, -1e4, -1e5)
        ],
        *[
            (
                too_high,
                lambda scores, mask, low=low: (
                    exact.softmax(filled(scores, mask, low)) * any_left(mask)
                ),
            )
            for low in (-1e2, -1e3, -1e4, -1e5)
        ],
        (late, lambda scores, mask: after(scores, mask) / total(after(scores, mask))),
        (
            late,
            lambda scores, mask: np.nan_to_num(after(scores, mask) / total(after(scores, mask))),
        ),
        (
            "You subtracted the largest score of all rows, and the powers of a row far below it "
            "vanish: subtract each row's own.",
            shifted_by(lambda allowed: allowed.max()),
        ),
        (late, lambda scores, mask: unshifted(scores - top(scores), mask)),
        (far, lambda scores, mask: unshifted_softmax(filled(scores, mask))),
        (far, lambda scores, mask: np.nan_to_num(unshifted_softmax(filled(scores, mask)))),
        (far, unshifted),
        (far, lambda scores, mask: divided(np.exp(scores) * mask)),
    ]
    scores = draw(5, 7)
    mask = draw(5, 7, seed=1) > -0.5
    empty = mask & (np.arange(5) != 2)[:, None]
    cases = {
        "ordinary scores": (scores, mask),
        "a row with nothing to attend to": (scores, empty),
        "allowed scores of 0": (np.where(draw(3, 5, seed=3) > 0, 0.0, draw(3, 5)), mask[:3, :5]),
        "scores near -1,000,000": (scores - 1e6, mask),
        "scores near 1,000,000": (scores + 1e6, empty),
        "rows that are far apart, the last one wide": (
            np.vstack([scores + 1e4 * np.arange(5)[:, None], 1e4 * scores[:1]]),
            np.vstack([mask, mask[:1]]),
        ),
        "a blocked score of 10,000": (np.where(mask, scores, 1e4), mask),
        "a mask that blocks nothing": (draw(3, 2, seed=2), np.ones((3, 2), dtype=bool)),
        "scores of float32": (scores.astype(np.float32), empty),
    }
    return judge(function, right, mistakes, cases, {"weights": "one for each query and key"})


def leak_test(function):
    """Check a leak test, which tells whether any output before token j moves with token j.

    Parameters
    ----------
    function : callable
        Takes an attention function, which maps queries (n, d_k), keys (n, d_k) and values
        (n, d_v) to outputs (n, d_v). Returns True if the future leaks into the past, whichever
        token j is replaced, and also if the outputs are not numbers: then nothing is shown.

    Returns
    -------
    Verdict
    """
    cases = leaky_and_tight()

    def right(attention):
        return future(moves(attention)) or not finite(attention)

    def tested(**options):
        """Return a leak test that moves tokens in another way."""
        return lambda attention: future(moves(attention, **options))

    def anywhere(choose):
        """Return a test that looks only at the moves that `choose` leaves, (outputs, tokens)."""
        return lambda attention: bool(choose(moves(attention)).any())

    def before(moved):
        """Return a test that asks something else of the rise of all outputs before a token."""

        def test(attention):
            rises = differences(attention)
            return any(moved(rises[:j, j]) for j in range(1, len(rises)))

        return test

    def whatever_becomes_of_nan(words, test):
        """Return a mistake in a test that asks for numbers first, and in one that does not."""
        return (words, lambda attention: test(attention) or not finite(attention)), (words, test)

    mistakes = [
        (
            "Your test says True for every attention, also where nothing moves: compare the "
            "outputs before and after.",
            lambda attention: True,
        ),
        (
            "Your test says False for every attention, also without a mask: change token j in a "
            "copy, clearly, in all three inputs, and look at the outputs before j.",
            lambda attention: False,
        ),
        (
            "Outputs that are not numbers pass your test: no comparison with them is true. Ask "
            "for finite outputs first.",
            lambda attention: right(attention) and finite(attention),
        ),
        (
            "You look for NaN in some of the outputs. The last one can be no number too: ask for "
            "finite outputs in all rows.",
            lambda attention: future(moves(attention)) or not finite(attention, rows=1),
        ),
        (
            "Your answers are the wrong way round: True means that the future leaks.",
            lambda attention: not right(attention),
        ),
    ]
    mistakes += [
        (
            "A number that falls escapes your test: take abs of the difference.",
            lambda attention, missed=missed: right(attention) and attention is not missed,
        )
        for (missed,) in (cases[name] for name in cases if "sums to" in name)
    ]
    oversights = [
        (
            "Your test says False for every attention that gives numbers, also without a mask: "
            "change token j in a copy, clearly, in all three inputs, and look at the outputs "
            "before j.",
            tested(change=(0, 0, 0)),
        ),
        (
            "An attention that norms its tokens first escapes your test: what is added to every "
            "number of a token, or multiplies it, is taken away again. Put an independent random "
            "token in its place.",
            tested(evenly=(1, 1)),
        ),
        (
            "An attention that norms its tokens first escapes your test: what is added to every "
            "number of a token, or multiplies it, is taken away again. Put an independent random "
            "token in its place.",
            tested(evenly=(2, 0)),
        ),
        (
            "You look at the output of the moved token itself, which may move: look at those "
            "before it.",
            anywhere(np.diagonal),
        ),
        (
            "You count the output of the moved token too, which may move: look at the rows "
            "before j, without j.",
            anywhere(np.triu),
        ),
        (
            "You look at the outputs after the moved token, which may move: look at those before.",
            anywhere(lambda moved: np.tril(moved, k=-1)),
        ),
        (
            "You look at the outputs from the moved token on, [j:], or at the last one alone. They "
            "may move: look at those before it, [:j].",
            anywhere(np.tril),
        ),
        (
            "You ask whether any output moves. The moved token's and those after it may: look at "
            "the rows before it.",
            anywhere(lambda moved: moved),
        ),
        (
            "Only the last token counts: you move no other, or each round overwrites the answer "
            "of the one before.",
            anywhere(lambda moved: moved[:-1, -1]),
        ),
        (
            "You never move the last token. Leaks from it stay hidden: range(n - 1) ends too soon.",
            anywhere(lambda moved: np.triu(moved, k=1)[:, :-1]),
        ),
        (
            "You never move token 1. A leak from it into output 0 stays hidden.",
            anywhere(lambda moved: np.triu(moved, k=1)[:, 2:]),
        ),
        (
            "You move only one token in the middle. Leaks from other tokens stay hidden: move each "
            "token j in turn.",
            anywhere(lambda moved: moved[:2, 2]),
        ),
        (
            "Only token 1 counts: you move no other, or the loop returns in its first round.",
            anywhere(lambda moved: moved[0, 1]),
        ),
        (
            "You look only at the first output. The future can leak into later ones: look at all "
            "rows before j.",
            anywhere(lambda moved: moved[0, 1:]),
        ),
        (
            "You look only at the output just before the moved token: look at all rows before j.",
            anywhere(lambda moved: moved.diagonal(1)),
        ),
        (
            "You leave out the output just before the moved token: [:j] ends before j by itself.",
            anywhere(lambda moved: np.triu(moved, k=2)),
        ),
        (
            "You ask whether all numbers before j move. One that moves is a leak: any, not all.",
            before(lambda rise: bool((abs(rise) > 1e-9).all())),
        ),
        (
            "You compare sums. What one output gains another can lose: compare each number.",
            before(lambda rise: not abs(rise.sum()) <= 1e-9),
        ),
        (
            "Your tokens are too few: an output can see further ahead. Take five or more.",
            tested(n=3),
        ),
        (
            "Your tokens are too few: an output can see further ahead. Take five or more.",
            tested(n=2),
        ),
        (
            "A leak through the keys escapes your test. Change token j in queries, keys and values "
            "alike, and draw all tokens at random: one-hot tokens do not meet.",
            tested(change=(0, 0, 1)),
        ),
        (
            "A leak through the keys escapes your test. Change token j in queries, keys and values "
            "alike, and draw all tokens at random: one-hot tokens do not meet.",
            tested(change=(1, 0, 1)),
        ),
        (
            "You do not change the values. The future can leak through those too: change token j "
            "in all three.",
            tested(change=(1, 1, 0)),
        ),
        (
            "You do not change the queries. The future can leak through those too: change token j "
            "in all three.",
            tested(change=(0, 1, 1)),
        ),
        (
            "A faint leak escapes your test: change the token by more, or tolerate less.",
            tested(tolerance=0.1),
        ),
    ]
    mistakes += itertools.chain(*(whatever_becomes_of_nan(*each) for each in oversights))
    return judge(function, right, mistakes, cases, {"answer": "for the whole test"})


# What the checkers of this chapter are made of


def additive_mistakes(right):
    """Return the mistakes that give a mask to be added to the scores instead of a bool one."""
    additive = (
        "This is an additive mask (0 and a large negative number). Return True and False instead."
    )
    return [
        (additive, lambda *inputs, low=low: np.where(right(*inputs), 0.0, low))
        for low in (-np.inf, -1e9, -1e4)
    ]


def some_tokens(n):
    """Return queries, keys and values of n tokens."""
    return [draw(n, 7), draw(n, 7, seed=1), draw(n, 3, seed=2)]


@functools.cache
def finite(attention, rows=5):
    """Tell whether an attention gives numbers, in its first rows at least."""
    return bool(np.isfinite(attention(*some_tokens(5))[:rows]).all())


@functools.cache
def differences(attention, change=(1, 1, 1), evenly=None, n=5):
    """Return by how much outputs (first axis) rise when each token (second axis) is replaced.

    `change` says whether in queries, keys and values; `evenly`, that a token is not another one
    but the same by a factor, and more by a term.
    """
    tokens, others = some_tokens(n), [draw(n, width, seed=width) for width in (7, 7, 3)]
    if evenly:
        others = [evenly[0] * array + evenly[1] for array in tokens]
    others = [
        each if changed else old for each, old, changed in zip(others, tokens, change, strict=True)
    ]
    before, rises = attention(*tokens), []
    for j in range(n):
        changed = [old.copy() for old in tokens]
        for array, other in zip(changed, others, strict=True):
            array[j] = other[j]
        rises.append(attention(*changed) - before)
    return np.stack(rises, axis=1)


def moves(attention, tolerance=1e-9, **options):
    """Tell which outputs (rows) move when a token (columns) is replaced. NaN counts as moved."""
    return ~(np.abs(differences(attention, **options)).max(axis=-1) <= tolerance)


def future(moved):
    """Tell whether an output moved with a token after it: row i before column j."""
    return bool(np.triu(moved, k=1).any())


@functools.cache
def leaky_and_tight():
    """Return attention functions, each under its name: some leak the future, some do not."""

    def masked(*leaks):
        """Return causal attention in which, for each pair (i, j), output i also sees token j."""

        def attention(queries, keys, values):
            n = queries.shape[-2]
            mask = masks.causal_mask(n)
            for i, j in leaks:
                mask[i % n, j % n] = True
            return exact.scaled_dot_product_attention(queries, keys, values, mask)[0]

        return attention

    def unmasked(queries, keys, values):
        return exact.scaled_dot_product_attention(queries, keys, values)[0]

    def masked_too_late(queries, keys, values):
        weights = exact.scaled_dot_product_attention(queries, keys, values)[1]
        return np.tril(weights) @ values

    def shifted(by):
        """Return an attention that hands each token the value `by` places before it."""
        return lambda queries, keys, values: np.eye(values.shape[-2], k=-by) @ values

    def added(*amounts):
        """Return causal attention that adds the last value, so many times, to the first rows."""

        def attention(queries, keys, values):
            output = masked()(queries, keys, values)
            for row, amount in zip(output[:-1], amounts, strict=False):
                row[0] += amount * values[-1].sum()
            return output

        return attention

    def faint(queries, keys, values):
        return masked()(queries, keys, values) + unmasked(queries, keys, values) / 100

    def next_query(queries, keys, values):
        return masked()(np.concatenate([queries[1:], queries[-1:]]), keys, values)

    def normed_first(*tokens):
        """Return attention without a mask, to tokens that a norm has shifted and scaled."""
        deviations = [array - array.mean(axis=-1, keepdims=True) for array in tokens]
        return unmasked(*(x / np.sqrt((x**2).mean(axis=-1, keepdims=True)) for x in deviations))

    def last_is_nan(queries, keys, values):
        output = masked()(queries, keys, values)
        output[-1] = np.nan
        return output

    def tolerant(attention):
        """Return `attention` for lists and whole numbers too, which a learner may well use."""
        return lambda *tokens: attention(*(np.asarray(array, dtype=float) for array in tokens))

    named = {
        "causal attention": masked(),
        "attention without a mask": unmasked,
        "an attention whose output is always zero": lambda *tokens: 0 * tokens[-1],
        "an attention that hands each token its own value": shifted(0),
        "an attention that hands each token the value before it": shifted(1),
        "an attention that hands each token the value after it": shifted(-1),
        "an attention that hands each token the value three places after it": shifted(-3),
        "an attention that masks after softmax": masked_too_late,
        "a causal attention in which each token asks with the query after it": next_query,
        "a causal attention in which token 1 leaks into output 0": masked((0, 1)),
        "a causal attention in which token 2 leaks into output 0": masked((0, 2)),
        "a causal attention in which token 2 leaks into output 1": masked((1, 2)),
        "a causal attention in which token 2 leaks into outputs 0 and 1": masked((0, 2), (1, 2)),
        "a causal attention in which the last token leaks into output 0": masked((0, -1)),
        "a causal attention in which the last token leaks into the output before": masked((-2, -1)),
        "a causal attention with a faint leak": faint,
        "a causal attention in which output 0 rises by what the last value sums to": added(1),
        "a causal attention in which output 0 falls by what the last value sums to": added(-1),
        "a causal attention whose output 1 gains what output 0 loses by the last value": added(
            -1, 1
        ),
        "an attention without a mask that norms its tokens first": normed_first,
        "an attention whose outputs are not numbers": lambda *tokens: np.nan * tokens[-1],
        "an attention whose last output is not a number": last_is_nan,
    }
    return {name: (tolerant(attention),) for name, attention in named.items()}
