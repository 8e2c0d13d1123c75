"""The checker of a leak test, which asks whether outputs before token j change with token j."""

import functools

import numpy as np

from attnlib.check.arrays import random_array, random_arrays
from attnlib.check.checker import Checker
from attnlib.check.leaky_attention import ATTENTIONS, tolerant


def some_tokens(n):
    """Return queries, keys and values of n tokens."""
    return random_arrays((n, 7), (n, 7), (n, 3))


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
    tokens, others = some_tokens(n), [random_array(n, width, seed=width) for width in (7, 7, 3)]
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
    (n, d_v) to outputs (n, d_v). It returns True if an output before the token that is replaced
    changes, for any token j, and also if an output is NaN.
    """,
    right=right,
    returns={"answer": "for the whole test"},
    cases=CASES,
    mistakes=[
        "Your test returns True for every attention, even if nothing changes. Compare the outputs "
        "before and after the change.",
        lambda attention: True,
        "Your test returns False for every attention, even without a mask. Change token j "
        "clearly, in a copy of all three inputs, and look at the outputs before j.",
        lambda attention: False,
        "Outputs that are NaN pass your test, because no comparison with NaN is true. Test "
        "whether all outputs are finite.",
        lambda attention: right(attention) and finite(attention),
        "You look for NaN in some of the outputs only. The last one can be NaN, too: test all "
        "rows.",
        lambda attention: leaks(attention) or not finite(attention, rows=1),
        "Your answers are the wrong way round: True means that the future leaks.",
        lambda attention: not right(attention),
        "Your test misses a number that becomes smaller. Take np.abs of the difference.",
        *[
            lambda attention, missed=missed: right(attention) and attention is not missed
            for name, (missed,) in CASES.items()
            if "sums to" in name
        ],
        "Your test returns False for every attention that gives numbers, even without a mask. "
        "Change token j clearly, in a copy of all three inputs, and look at the outputs before j.",
        *tested(change=(0, 0, 0)),
        "Your test misses a leak if the tokens are normalized first. A norm undoes a change that "
        "adds the same to all numbers of a token, or multiplies all of them. Put an independent "
        "random token in its place.",
        *tested(evenly=(1, 1)),
        *tested(evenly=(2, 0)),
        "You look at the output of the changed token itself, which may change. Look at the outputs "
        "before it.",
        *looking_at(np.diagonal),
        "You include the output of the changed token itself, which may change. Look at the rows "
        "before j only, [:j].",
        *looking_at(np.triu),
        "You look at the outputs after the changed token, which may change. Look at those before "
        "it.",
        *looking_at(lambda moved: np.tril(moved, k=-1)),
        "You look at the outputs from the changed token on, [j:], or at the last one alone. They "
        "may change: look at those before it, [:j].",
        *looking_at(np.tril),
        "You test whether any output changes. Those of the changed token and after it may change. "
        "Look at the rows before it.",
        *looking_at(lambda moved: moved),
        "Only the last token has an effect: either you change no other one, or each round "
        "overwrites the answer of the round before.",
        *looking_at(lambda moved: moved[:-1, -1]),
        lambda attention: bool((abs(differences(attention)[:-1, -1]) > 1e-9).any()),  # not NaN
        "You never change the last token, so you miss a leak from it. range(n - 1) ends too soon.",
        *looking_at(lambda moved: np.triu(moved, k=1)[:, :-1]),
        "You never change token 1, so you miss a leak from it into output 0.",
        *looking_at(lambda moved: np.triu(moved, k=1)[:, 2:]),
        "You change only one token in the middle, so you miss leaks from the others. Change each "
        "token j in turn.",
        *looking_at(lambda moved: moved[:2, 2]),
        "Only token 1 has an effect: either you change no other one, or the loop returns in its "
        "first round.",
        *looking_at(lambda moved: moved[0, 1]),
        "You look only at the first output. The future can leak into later ones: look at all rows "
        "before j.",
        *looking_at(lambda moved: moved[0, 1:]),
        "You look only at the output just before the changed token: look at all rows before j.",
        *looking_at(lambda moved: moved.diagonal(1)),
        "You leave out the output just before the changed token: [:j] ends before j by itself.",
        *looking_at(lambda moved: np.triu(moved, k=2)),
        "You test whether all numbers before j change. A single one that changes is a leak: use "
        "any, not all.",
        *asking(lambda rise: bool((abs(rise) > 1e-9).all())),
        "You compare sums. What one output gains, another can lose. Compare each number.",
        *asking(lambda rise: not abs(rise.sum()) <= 1e-9),
        "You use too few tokens, because an output may look several tokens ahead. Use five or "
        "more.",
        *tested(n=3),
        *tested(n=2),
        "Your test misses a leak through the keys. Change token j in queries, keys and values "
        "alike, and draw all tokens at random: one-hot tokens have scores of 0.",
        *tested(change=(0, 0, 1)),
        *tested(change=(1, 0, 1)),
        "You do not change the values, but the future can leak through them, too. Change token j "
        "in all three.",
        *tested(change=(1, 1, 0)),
        *tested(change=(0, 1, 0)),
        *tested(change=(1, 0, 0)),
        "You do not change the queries, but the future can leak through them, too. Change token j "
        "in all three.",
        *tested(change=(0, 1, 1)),
        "Your test misses a weak leak. Change the token by more, or use a smaller tolerance.",
        *tested(tolerance=0.1),
    ],
)
