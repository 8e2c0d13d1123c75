"""The checkers of a server's work: partial results, drafted tokens, and pages of a cache."""

import numpy as np

from attnlib import attention as exact
from attnlib.check.arrays import float32, random_array
from attnlib.check.checker import Checker

# Partial results


def joined(largest=max, first=np.exp, second=np.exp, finish=lambda m, l, o: (m, l, o)):  # noqa: E741
    """Return a join with another maximum, with other factors, or finished otherwise."""

    def merge(m_1, l_1, o_1, m_2, l_2, o_2):
        m = largest(m_1, m_2)
        a, b = first(m_1 - m), second(m_2 - m)
        return finish(m, a * l_1 + b * l_2, a * o_1 + b * o_2)

    return merge


def factors(sums, outputs):
    """Return a join whose sums and outputs have factors of their own."""

    def merge(m_1, l_1, o_1, m_2, l_2, o_2):
        m = max(m_1, m_2)
        (a, b), (c, d) = ([each(part - m) for part in (m_1, m_2)] for each in (sums, outputs))
        return m, a * l_1 + b * l_2, c * o_1 + d * o_2

    return merge


def one(difference):
    """Return the factor of what is not rescaled."""
    return 1


def inverse(difference):
    """Return the factor upside down."""
    return np.exp(-difference) if np.isfinite(difference) else 0


def averaged(m_1, l_1, o_1, m_2, l_2, o_2):
    """Return a join that weighs the outputs by the sums, as if they had been divided."""
    m, l, o = joined()(m_1, l_1, l_1 * o_1, m_2, l_2, l_2 * o_2)  # noqa: E741
    return m, l, o / l


def part(scores, seed, width):
    """Return m, l and o of some keys with these scores."""
    scores = np.array(scores)
    powers = np.exp(scores - scores.max())
    values = random_array(len(scores), width, seed=seed)
    return float(scores.max()), float(powers.sum()), powers @ values


BY_HAND = 3.0, 1 + np.exp(-2.0), np.array([4 + 2 * np.exp(-2.0)]), 2.0, 1.0, np.array([8.0])
PLAIN = *part([0.5, 2.0, 1.0], 0, 5), *part([1.5, 0.2], 3, 5)

merge_parts = Checker(
    """Check the join of two partial results, Eq. (1) of "Serving many readers".

    The function takes m_1, l_1 and o_1 (d_v,) of one part of the keys of a query, and m_2, l_2 and
    o_2 (d_v,) of another: the largest score, the sum of the exponentials under it, and the blend.
    It returns m, l and o (d_v,) of both. One of the parts may be empty.
    """,
    right=lambda m_1, l_1, o_1, m_2, l_2, o_2: joined()(m_1, l_1, o_1, m_2, l_2, o_2),
    returns={
        "m": "the largest score",
        "l": "the sum of the exponentials",
        "o": "the blend, not divided",
    },
    cases={
        "two parts": PLAIN,
        "the example of the chapter": BY_HAND,
        "a second part with larger scores": (*part([0.1, 0.7], 1, 3), *part([2.0, 1.1, 3.0], 2, 3)),
        "scores that differ by thousands": (*part([0.3], 4, 7), *part([2e3, 2e3 - 1], 5, 7)),
        "scores near -5,000": (*part([-5e3, -5001.0], 6, 2), *part([-5002.0], 7, 2)),
        "a first part that is empty": (-np.inf, 0.0, np.zeros(3), *part([0.4, 1.3], 8, 3)),
        "a second part that is empty": (*part([1.2, 0.1], 9, 3), -np.inf, 0.0, np.zeros(3)),
        "float32": float32(tuple(map(np.asarray, PLAIN))),
    },
    mistakes=[
        "Nothing is rescaled. Bring each part to the larger maximum before you add: multiply its l "
        "and its o by e^(its m - m).",
        joined(first=one, second=one),
        "You rescale the second part only. The first part needs its factor e^(m_1 - m), too: its "
        "maximum may be the smaller one.",
        joined(first=one),
        "You rescale the first part only. The second part needs its factor e^(m_2 - m), too: its "
        "maximum may be the smaller one.",
        joined(second=one),
        "Your factors are upside down: e^(its m - m) is at most 1.",
        joined(first=inverse, second=inverse),
        "You rescale o but not l. Both were computed under the old maximum.",
        factors(one, np.exp),
        "You rescale l but not o. Both were computed under the old maximum.",
        factors(np.exp, one),
        "You took the smaller of the two maxima. Take the larger one.",
        joined(largest=min),
        "You added the two maxima. Take the larger one.",
        joined(largest=lambda m_1, m_2: m_1 + m_2),
        "You took the mean of the two maxima. Take the larger one.",
        joined(largest=lambda m_1, m_2: (m_1 + m_2) / 2),
        "You kept the maximum of the first part. Take the larger of both.",
        joined(largest=lambda m_1, m_2: m_1),
        "You kept the maximum of the second part. Take the larger of both.",
        joined(largest=lambda m_1, m_2: m_2),
        "You divided o by l. Leave it undivided, so that the result can be joined again.",
        joined(finish=lambda m, l, o: (m, l, o / l)),  # noqa: E741
        "You weighed o by l. It is a sum and not an average, so it needs e^(its m - m) and nothing "
        "else.",
        averaged,
        "The factors of the two parts are exchanged.",
        lambda m_1, l_1, o_1, m_2, l_2, o_2: (
            max(m_1, m_2),
            np.exp(m_2 - max(m_1, m_2)) * l_1 + np.exp(m_1 - max(m_1, m_2)) * l_2,
            np.exp(m_2 - max(m_1, m_2)) * o_1 + np.exp(m_1 - max(m_1, m_2)) * o_2,
        ),
        "Your exponentials are taken of the maxima themselves, so they overflow or vanish. "
        "Subtract the larger maximum first.",
        lambda m_1, l_1, o_1, m_2, l_2, o_2: (
            max(m_1, m_2),
            np.exp(m_1) * l_1 + np.exp(m_2) * l_2,
            np.exp(m_1) * o_1 + np.exp(m_2) * o_2,
        ),
        "The three results are right but in another order: return m, l, o.",
        joined(finish=lambda m, l, o: (l, m, o)),  # noqa: E741
        joined(finish=lambda m, l, o: (o, l, m)),  # noqa: E741
        "You return the first part as it is. Add the second one to it.",
        lambda m_1, l_1, o_1, m_2, l_2, o_2: (m_1, l_1, o_1),
        "You return the part with the larger maximum alone. The other one counts, too.",
        lambda m_1, l_1, o_1, m_2, l_2, o_2: (m_1, l_1, o_1) if m_1 >= m_2 else (m_2, l_2, o_2),
    ],
)


# A drafted token


def kept(p, q):
    """Return the probabilities from which a token is drawn after a rejection."""
    rest = np.maximum(p - q, 0)
    return rest / rest.sum()


def accepts(p, q, token, chance):
    """Tell whether a token is accepted."""
    return chance < p[token] / q[token]


def judged(accepted=accepts, rest=kept):
    """Return the rule with another test, or with other probabilities after a rejection."""
    return lambda p, q, token, chance: (accepted(p, q, token, chance), rest(p, q))


def row(n, seed):
    """Return n probabilities."""
    return exact.softmax(random_array(n, seed=seed))


THREE = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.7, 0.1])

accept_draft = Checker(
    """Check the rule of speculative decoding, Eq. (2) of "Serving many readers".

    The function takes p and q (n,), the probabilities of the target and of the draft model, a token
    that was drawn from q, and chance, a random number from 0 to 1. It returns whether the token is
    accepted, and the probabilities (n,) from which another one is drawn if it is not.
    """,
    right=lambda p, q, token, chance: judged()(p, q, token, chance),
    returns={"accepted": "True or False", "rest": "one probability for each token"},
    cases={
        "sofa, with a chance of 0.42": (*THREE, 1, 0.42),
        "sofa, with a chance of 0.44": (*THREE, 1, 0.44),
        "sofa, with a chance of 0.25": (*THREE, 1, 0.25),
        "mat, with a chance of 0.99": (*THREE, 0, 0.99),
        "moon, with a chance of 0.6": (*THREE, 2, 0.6),
        "five tokens": (row(5, 1), row(5, 2), 4, 0.5),
        "seven tokens": (row(7, 3), row(7, 4), 2, 0.8),
        "a draft that is too rare": (np.array([0.9, 0.1]), np.array([0.2, 0.8]), 0, 0.3),
        "a draft that is nearly right": (np.array([0.9, 0.1]), np.array([0.8, 0.2]), 0, 0.5),
        "both models exchanged": (THREE[1], THREE[0], 0, 0.35),
        "float32": (*float32((row(5, 1), row(5, 2))), 3, 0.1),
    },
    mistakes=[
        "The ratio is upside down: accept if chance is below p / q, the target's probability "
        "divided by that of the draft model.",
        judged(lambda p, q, token, chance: chance < q[token] / p[token]),
        "You accept in the wrong case: a small chance accepts, a large one rejects.",
        judged(lambda p, q, token, chance: chance > p[token] / q[token]),
        "You compared chance with p alone. Compare it with p / q: the draft model has already "
        "drawn the token with the probability q.",
        judged(lambda p, q, token, chance: chance < p[token]),
        "You compared chance with q alone. Compare it with p / q.",
        judged(lambda p, q, token, chance: chance < q[token]),
        "You compared chance with the difference of p and q. Compare it with their quotient, "
        "p / q.",
        judged(lambda p, q, token, chance: chance < p[token] - q[token]),
        "You compared chance with the product of p and q. Compare it with their quotient, p / q.",
        judged(lambda p, q, token, chance: chance < p[token] * q[token]),
        "You accept only what the target finds at least as probable as the draft model does. Other "
        "tokens are accepted with the probability p / q: this is what chance is for.",
        judged(lambda p, q, token, chance: p[token] >= q[token]),
        "You accept the target's most probable token alone. Compare chance with p / q.",
        judged(lambda p, q, token, chance: token == p.argmax()),
        "You accept every draft. Compare chance with p / q.",
        judged(lambda p, q, token, chance: True),
        "You reject every draft. Compare chance with p / q.",
        judged(lambda p, q, token, chance: False),
        "After a rejection you draw from p. What was drafted and accepted would then be counted "
        "twice: draw from what q gave too little of, max(p - q, 0), divided by its sum.",
        judged(rest=lambda p, q: p.copy()),
        "After a rejection you draw from q again. Draw from what q gave too little of, "
        "max(p - q, 0), divided by its sum.",
        judged(rest=lambda p, q: q.copy()),
        "The rest does not sum to 1: divide max(p - q, 0) by its sum.",
        judged(rest=lambda p, q: np.maximum(p - q, 0)),
        "Where q is larger than p, the rest must be 0: take max(p - q, 0).",
        judged(rest=lambda p, q: p - q),
        "You took the absolute differences. Where q is larger than p, the rest must be 0: take "
        "max(p - q, 0).",
        judged(rest=lambda p, q: abs(p - q) / abs(p - q).sum()),
        "The rest holds what q gave too much of. Take what it gave too little of, max(p - q, 0).",
        judged(rest=lambda p, q: kept(q, p)),
        "You took a softmax of the differences. Divide max(p - q, 0) by its sum.",
        judged(rest=lambda p, q: exact.softmax(np.maximum(p - q, 0))),
        judged(rest=lambda p, q: exact.softmax(p - q)),
        "The rest has equal probabilities. It is proportional to p - q where this is positive.",
        judged(rest=lambda p, q: (p > q) / (p > q).sum()),
        "You kept the target's probabilities where p is larger than q. Take the differences p - q "
        "there.",
        judged(rest=lambda p, q: np.where(p > q, p, 0) / np.where(p > q, p, 0).sum()),
        "Your rest is min(p, q), which is what was accepted. Take max(p - q, 0), divided by its "
        "sum.",
        judged(rest=lambda p, q: np.minimum(p, q) / np.minimum(p, q).sum()),
        "You divided by the largest entry. Divide by the sum.",
        judged(rest=lambda p, q: np.maximum(p - q, 0) / np.maximum(p - q, 0).max()),
        "The two results are the wrong way round: return accepted, rest.",
        lambda p, q, token, chance: judged()(p, q, token, chance)[::-1],
        "The rest is missing: return accepted, rest.",
        lambda p, q, token, chance: accepts(p, q, token, chance),
    ],
)


# Pages


def counted(common=lambda shared, size: shared // size, own=lambda n, size: -(-n // size)):
    """Return the count with other pages in common, or other pages of each text."""

    def pages(lengths, shared, size):
        together = common(shared, size)
        return together + sum(own(n, size) - together for n in lengths)

    return pages


count_pages = Checker(
    """Check how many pages several texts take that begin alike.

    The function takes lengths, a list of the tokens of each text, shared, the tokens at the
    beginning that are the same in all, and size, the tokens of a page. It returns how many pages
    all of them take, if full pages of the shared beginning are kept once.
    """,
    right=lambda lengths, shared, size: counted()(lengths, shared, size),
    returns={"pages": "as a whole number"},
    cases={
        "five texts": ([29, 31, 37, 23, 41], 19, 7),
        "the example of the chapter": ([10, 10], 5, 4),
        "a beginning that ends with a page": ([21, 16, 33], 16, 16),
        "no beginning in common": ([7, 8, 9], 0, 8),
        "a single text": ([5], 3, 4),
        "a long beginning": ([101, 97], 89, 11),
    },
    mistakes=[
        "The shared pages are counted for every text. Count the full ones once for all.",
        counted(common=lambda shared, size: 0),
        "The last page of a text counts even if it is not full: round up.",
        counted(own=lambda n, size: n // size),
        "A text whose last page is exactly full needs no further page: round up, do not add 1.",
        counted(own=lambda n, size: n // size + 1),
        "The page in which the shared beginning ends is not full of shared tokens, so each text "
        "has its own: round down.",
        counted(common=lambda shared, size: -(-shared // size)),
        "You counted the shared pages once and then forgot them: they are pages, too.",
        lambda lengths, shared, size: sum(-(-n // size) - shared // size for n in lengths),
        "You took the shared pages away once. All texts but one save them.",
        lambda lengths, shared, size: sum(-(-n // size) for n in lengths) - shared // size,
        "You added the shared pages to those of every text. They are among them: take them away "
        "from each text, and add them once.",
        lambda lengths, shared, size: shared // size + sum(-(-n // size) for n in lengths),
        "The tokens that go beyond the full shared pages begin a page of their own. Take away "
        "whole pages, not the shared tokens.",
        lambda lengths, shared, size: (
            shared // size + sum(-(-(n - shared) // size) for n in lengths)
        ),
        "The shared tokens and those of each text do not fill whole pages. Count whole pages of "
        "each, and round up.",
        lambda lengths, shared, size: (
            -(-shared // size) + sum(-(-(n - shared) // size) for n in lengths)
        ),
        "Two texts cannot share a page that is not the same in both: round up for each text, not "
        "for all tokens together.",
        lambda lengths, shared, size: -(-(shared + sum(n - shared for n in lengths)) // size),
        lambda lengths, shared, size: (
            shared // size + -(-sum(n - shared // size * size for n in lengths) // size)
        ),
        "You counted tokens. Divide by the size of a page.",
        lambda lengths, shared, size: shared + sum(n - shared for n in lengths),
        "You counted the pages of the longest text alone.",
        lambda lengths, shared, size: -(-max(lengths) // size),
        "You counted the shared pages alone.",
        lambda lengths, shared, size: shared // size,
        "/ gives a float, and pages are whole. Divide with //, and round up.",
        lambda lengths, shared, size: shared / size + sum((n - shared) / size for n in lengths),
    ],
)
