"""The checker of a leak test, which asks whether outputs before token j change with token j."""

import functools

import numpy as np

from attnlib.check.arrays import draw, drawn
from attnlib.check.checker import Checker
from attnlib.check.leaky_attention import ATTENTIONS, tolerant


def some_tokens(n):
    """Return queries, keys and values of n tokens."""
    return drawn((n, 7), (n, 7), (n, 3))


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
    """Tell which outputs (rows) change when a token (columns) does. NaN counts as a change."""
    return ~(np.abs(differences(attention, **options)).max(axis=-1) <= tolerance)


def leaks(attention, **options):
    """Tell whether an output changed with a token after it: row i before column j."""
    return bool(np.triu(moves(attention, **options), k=1).any())


def right(attention):
    """Return the right answer."""
    return leaks(attention) or not finite(attention)


# Wrong tests


def both(test):
    """Return a wrong test twice: with a question for numbers first, and without."""
    return [lambda attention: test(attention) or not finite(attention), test]


def tested(**options):
    """Return leak tests that replace tokens in another way."""
    return both(lambda attention: leaks(attention, **options))


def looking_at(choose):
    """Return tests that look only at the changes that `choose` leaves, (outputs, tokens)."""
    return both(lambda attention: bool(choose(moves(attention)).any()))


def asking(changed):
    """Return tests that ask something else of the rise of all outputs before a token."""

    def test(attention):
        rises = differences(attention)
        return any(changed(rises[:j, j]) for j in range(1, len(rises)))

    return both(test)


CASES = {name: (tolerant(attention),) for name, attention in ATTENTIONS.items()}

leak_test = Checker(
    """Check a leak test, which tells whether any output before token j changes with token j.

    The function takes an attention function, which maps queries (n, d_k), keys (n, d_k) and values
    (n, d_v) to outputs (n, d_v). It returns True if the future leaks into the past, whichever token
    j is replaced, and also if the outputs are not numbers: then nothing is shown.
    """,
    right=right,
    returns={"answer": "for the whole test"},
    cases=CASES,
    mistakes=[
        "Your test says True for every attention, also where nothing changes: compare the outputs "
        "before and after.",
        lambda attention: True,
        "Your test says False for every attention, also without a mask: change token j in a copy, "
        "clearly, in all three inputs, and look at the outputs before j.",
        lambda attention: False,
        "Outputs that are not numbers pass your test: no comparison with them is true. Ask for "
        "finite outputs first.",
        lambda attention: right(attention) and finite(attention),
        "You look for NaN in some of the outputs. The last one can be NaN too: ask for finite "
        "outputs in all rows.",
        lambda attention: leaks(attention) or not finite(attention, rows=1),
        "Your answers are the wrong way round: True means that the future leaks.",
        lambda attention: not right(attention),
        "A number that falls escapes your test: take abs of the difference.",
        *[
            lambda attention, missed=missed: right(attention) and attention is not missed
            for name, (missed,) in CASES.items()
            if "sums to" in name
        ],
        "Your test says False for every attention that gives numbers, also without a mask: change "
        "token j in a copy, clearly, in all three inputs, and look at the outputs before j.",
        *tested(change=(0, 0, 0)),
        "An attention that norms its tokens first escapes your test: the norm undoes what is added "
        "to every number of a token, or multiplies it. Put an independent random token in its "
        "place.",
        *tested(evenly=(1, 1)),
        *tested(evenly=(2, 0)),
        "You look at the output of the changed token itself, which may change: look at those "
        "before it.",
        *looking_at(np.diagonal),
        "You count the output of the changed token too, which may change: look at the rows before "
        "j, without j.",
        *looking_at(np.triu),
        "You look at the outputs after the changed token, which may change: look at those before.",
        *looking_at(lambda moved: np.tril(moved, k=-1)),
        "You look at the outputs from the changed token on, [j:], or at the last one alone. They "
        "may change: look at those before it, [:j].",
        *looking_at(np.tril),
        "You ask whether any output changes. Those of the changed token and after it may: look at "
        "the rows before it.",
        *looking_at(lambda moved: moved),
        "Only the last token counts: you change no other, or each round overwrites the answer of "
        "the one before.",
        *looking_at(lambda moved: moved[:-1, -1]),
        "You never change the last token. Leaks from it stay hidden: range(n - 1) ends too soon.",
        *looking_at(lambda moved: np.triu(moved, k=1)[:, :-1]),
        "You never change token 1. A leak from it into output 0 stays hidden.",
        *looking_at(lambda moved: np.triu(moved, k=1)[:, 2:]),
        "You change only one token in the middle. Leaks from other tokens stay hidden: change each "
        "token j in turn.",
        *looking_at(lambda moved: moved[:2, 2]),
        "Only token 1 counts: you change no other, or the loop returns in its first round.",
        *looking_at(lambda moved: moved[0, 1]),
        "You look only at the first output. The future can leak into later ones: look at all rows "
        "before j.",
        *looking_at(lambda moved: moved[0, 1:]),
        "You look only at the output just before the changed token: look at all rows before j.",
        *looking_at(lambda moved: moved.diagonal(1)),
        "You leave out the output just before the changed token: [:j] ends before j by itself.",
        *looking_at(lambda moved: np.triu(moved, k=2)),
        "You ask whether all numbers before j change. One that changes is a leak: any, not all.",
        *asking(lambda rise: bool((abs(rise) > 1e-9).all())),
        "You compare sums. What one output gains another can lose: compare each number.",
        *asking(lambda rise: not abs(rise.sum()) <= 1e-9),
        "Your tokens are too few: an output can see further ahead. Take five or more.",
        *tested(n=3),
        *tested(n=2),
        "A leak through the keys escapes your test. Change token j in queries, keys and values "
        "alike, and draw all tokens at random: one-hot tokens have scores of 0.",
        *tested(change=(0, 0, 1)),
        *tested(change=(1, 0, 1)),
        "You do not change the values. The future can leak through those too: change token j in "
        "all three.",
        *tested(change=(1, 1, 0)),
        "You do not change the queries. The future can leak through those too: change token j in "
        "all three.",
        *tested(change=(0, 1, 1)),
        "A faint leak escapes your test: change the token by more, or tolerate less.",
        *tested(tolerance=0.1),
    ],
)
