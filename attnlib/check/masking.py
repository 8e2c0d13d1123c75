"""Checkers of chapter 5: masks, a softmax that minds them, and a test for leaks."""

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
        Takes lengths (batch,) and n_k, returns bool (batch, 1, n_k), True = may attend.

    Returns
    -------
    Verdict
    """

    def right(lengths, n_k):
        return masks.padding_mask(lengths, n_k)

    misplaced = "The axis of length 1 stands in for the queries, in the middle: (batch, 1, n_k)."
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
            "The middle axis is missing: without it (batch, n_k) is taken for (n_q, n_k). Return "
            "(batch, 1, n_k).",
            lambda lengths, n_k: right(lengths, n_k)[:, 0],
        ),
        (misplaced, lambda lengths, n_k: right(lengths, n_k).swapaxes(1, 2)),
        (misplaced, lambda lengths, n_k: right(lengths, n_k).swapaxes(0, 1)),
        (
            "lengths (batch,) does not fit the positions (n_k,): give it axes, "
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
        "lengths 2, 5 and 4": (np.array([2, 5, 4]), 5),
        "an empty sentence": (np.array([3, 0, 7, 1, 5]), 7),
        "a single sentence": (np.array([2]), 3),
    }
    return judge(function, right, mistakes, cases, {"mask": "(batch, 1, n_k)"})


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

    def after(scores, mask):
        return exact.softmax(scores) * mask

    def total(weights):
        return weights.sum(axis=-1, keepdims=True)

    empty_row = "A row with nothing to attend to must be zeros. "
    late = (
        "You mask after softmax and divide again. Beside a much larger blocked score that leaves "
        "0 / 0: mask first, softmax second."
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
            "You multiplied the scores by the mask. A score of 0 takes weight, since e^0 = 1: "
            "a blocked score must be -inf.",
            lambda scores, mask: exact.softmax(scores * mask),
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
        (words.AXIS_LOST, lambda scores, mask: scores - scores.max(axis=-1)),
        (
            empty_row + "-1e9 in place of -inf makes it uniform.",
            lambda scores, mask: exact.softmax(filled(scores, mask, -1e9)),
        ),
        (
            empty_row + "-1e9 added to all of its scores changes nothing for softmax.",
            lambda scores, mask: exact.softmax(scores - 1e9 * ~mask),
        ),
        (
            empty_row + "In yours -inf - (-inf) is NaN.",
            lambda scores, mask: np.where(total(mask) > 0, right(scores, mask), np.nan),
        ),
        (
            "-10,000 is not low enough: a real score can be as low. A blocked score must be -inf.",
            lambda scores, mask: exact.softmax(filled(scores, mask, -1e4)),
        ),
        (late, lambda scores, mask: after(scores, mask) / total(after(scores, mask))),
        (
            late,
            lambda scores, mask: np.nan_to_num(after(scores, mask) / total(after(scores, mask))),
        ),
        (words.OVERFLOW, lambda scores, mask: unshifted_softmax(filled(scores, mask))),
        (
            words.OVERFLOW,
            lambda scores, mask: np.nan_to_num(unshifted_softmax(filled(scores, mask))),
        ),
    ]
    scores = draw(5, 7)
    mask = draw(5, 7, seed=1) > -0.5
    empty = mask & (np.arange(5) != 2)[:, None]
    cases = {
        "ordinary scores": (scores, mask),
        "a row with nothing to attend to": (scores, empty),
        "scores near -10,000": (scores - 1e4, mask),
        "scores near 10,000": (scores + 1e4, empty),
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

    def future(moved):
        return bool(np.triu(moved, k=1).any())  # row i before column j

    def right(attention):
        return future(moves(attention))

    hidden = " Leaks from other tokens stay hidden: move each token j in turn."
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
            "Your test says False for every attention that gives numbers, also without a mask: "
            "change token j in a copy, clearly, in all three inputs, and look at the outputs "
            "before j.",
            lambda attention: future(moves(attention, change=(0, 0, 0))),
        ),
        (
            "An attention that norms its tokens first escapes your test: what is added to every "
            "number of a token is taken away again. Put an independent random token in its place.",
            lambda attention: future(moves(attention, evenly=True)),
        ),
        (
            "Outputs that are not numbers pass your test: no comparison with them is true. Ask "
            "for finite outputs first.",
            lambda attention: future(moves(attention)) and finite(attention),
        ),
        (
            "Your answers are the wrong way round: True means that the future leaks.",
            lambda attention: not right(attention),
        ),
        (
            "You look at the output of the moved token itself, which may move: look at those "
            "before it.",
            lambda attention: bool(moves(attention).diagonal().any()),
        ),
        (
            "You count the output of the moved token too, which may move: look at the rows "
            "before j, without j.",
            lambda attention: bool(np.triu(moves(attention)).any()),
        ),
        (
            "You look at the outputs after the moved token, which may move: look at those before.",
            lambda attention: bool(np.tril(moves(attention), k=-1).any()),
        ),
        (
            "You ask whether any output moves. The moved token's and those after it may: look at "
            "the rows before it.",
            lambda attention: bool(moves(attention).any()),
        ),
        (
            "You look only at the last output, which may see everything: look at the outputs "
            "before the moved token.",
            lambda attention: bool(moves(attention)[-1].any()),
        ),
        (
            "You move only the last token." + hidden,
            lambda attention: bool(moves(attention)[:-1, -1].any()),
        ),
        (
            "You move only one token in the middle." + hidden,
            lambda attention: bool(moves(attention)[:2, 2].any()),
        ),
        ("You move only token 1." + hidden, lambda attention: bool(moves(attention)[0, 1])),
        (
            "You look only at the first output. The future can leak into later ones: look at all "
            "rows before j.",
            lambda attention: bool(moves(attention)[0, 1:].any()),
        ),
        (
            "You look only at the output just before the moved token: look at all rows before j.",
            lambda attention: bool(moves(attention).diagonal(1).any()),
        ),
        (
            "You change only the values. The future can leak through the keys too, by way of the "
            "row sums: change token j in all three.",
            lambda attention: future(moves(attention, change=(0, 0, 1))),
        ),
        (
            "You change the keys but not the values. The future can leak through those too: "
            "change token j in all three.",
            lambda attention: future(moves(attention, change=(1, 1, 0))),
        ),
        (
            "A faint leak escapes your test: change the token by more, or tolerate less.",
            lambda attention: future(moves(attention, tolerance=0.1)),
        ),
    ]
    return judge(function, right, mistakes, leaky_and_tight(), {"answer": "for the whole test"})


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


def five_tokens():
    """Return queries, keys and values of five tokens."""
    return [draw(5, 7), draw(5, 7, seed=1), draw(5, 3, seed=2)]


def finite(attention):
    """Tell whether an attention gives numbers."""
    return bool(np.isfinite(attention(*five_tokens())).all())


def moves(attention, change=(1, 1, 1), tolerance=1e-9, evenly=False):
    """Tell which outputs (rows) move when token j (columns) is changed, each j in turn.

    `change` says by how much in queries, keys and values; `evenly`, that each of a token's
    numbers changes by the same. An output that is not a number counts as moved.
    """
    tokens = five_tokens()
    before = attention(*tokens)
    moved = np.zeros((5, 5), dtype=bool)
    for j in range(5):
        changed = [array.copy() for array in tokens]
        for array, amount in zip(changed, change, strict=True):
            array[j] += amount * (1 if evenly else 1 + draw(array.shape[-1], seed=3) ** 2)
        difference = np.abs(attention(*changed) - before).max(axis=-1)
        moved[:, j] = ~(difference <= tolerance)
    return moved


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

    def faint(queries, keys, values):
        return masked()(queries, keys, values) + unmasked(queries, keys, values) / 100

    def normed_first(*tokens):
        """Return attention without a mask, to tokens that a norm has shifted and scaled."""
        deviations = [array - array.mean(axis=-1, keepdims=True) for array in tokens]
        return unmasked(
            *(x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) for x in deviations)
        )

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
        "an attention that masks after softmax": masked_too_late,
        "a causal attention in which token 1 leaks into output 0": masked((0, 1)),
        "a causal attention in which the last token leaks into output 0": masked((0, -1)),
        "a causal attention in which the last token leaks into the output before": masked((-2, -1)),
        "a causal attention with a faint leak": faint,
        "an attention without a mask that norms its tokens first": normed_first,
        "an attention whose outputs are not numbers": lambda *tokens: np.nan * tokens[-1],
    }
    return {name: (tolerant(attention),) for name, attention in named.items()}
