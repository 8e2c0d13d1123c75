"""The checker of one merge of byte-pair encoding."""

from collections import Counter

import numpy as np

from attnlib.check.checker import Checker


def best(tokens):
    """Return the most frequent pair of neighbors; of several, the one that comes first."""
    return Counter(zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True)).most_common(1)[0][0]


def joined(tokens, pair, new):
    """Return tokens with each pair replaced, from left to right."""
    found = []
    for token in tokens.tolist():
        if found and (found[-1], token) == pair:
            found[-1] = new
        else:
            found.append(token)
    return np.array(found)


def merged(pair_of=best, replace=joined):
    """Return a merge of another pair, or with another way to replace it."""
    return lambda tokens, new: replace(tokens, pair_of(tokens), new)


right = merged()


def places(tokens, pair):
    """Return where a pair begins, overlapping ones too."""
    return np.flatnonzero((tokens[:-1] == pair[0]) & (tokens[1:] == pair[1]))


def only_first(tokens, pair, new):
    """Return tokens with the first pair replaced alone."""
    first = places(tokens, pair)[0]
    return np.concatenate([tokens[:first], [new], tokens[first + 2 :]])


def second_left(tokens, pair, new):
    """Return tokens in which only the first half of each pair is replaced."""
    found = tokens.copy()
    found[places(tokens, pair)] = new
    return found


def second_gone(tokens, pair, new):
    """Return tokens in which each pair has lost its second half."""
    kept = np.ones(len(tokens), bool)
    kept[places(tokens, pair) + 1] = False
    return tokens[kept]


def overlapping(tokens, pair, new):
    """Return tokens in which pairs that share a token are both replaced."""
    found = second_left(tokens, pair, new)
    kept = np.ones(len(tokens), bool)
    kept[np.setdiff1d(places(tokens, pair) + 1, places(tokens, pair))] = False
    return found[kept]


def both_ways(tokens, pair, new):
    """Return tokens with the pair replaced in both orders."""
    found = []
    for token in tokens.tolist():
        if found and (found[-1], token) in (pair, pair[::-1]):
            found[-1] = new
        else:
            found.append(token)
    return np.array(found)


def each_token(tokens, pair, new):
    """Return tokens with every token of the pair replaced, wherever it stands."""
    return np.where(np.isin(tokens, pair), new, tokens)


def from_the_right(tokens, pair, new):
    """Return tokens with the pairs replaced from right to left."""
    return joined(tokens[::-1], pair[::-1], new)[::-1]


def in_twos(tokens):
    """Return the most frequent pair of those that begin at an even place."""
    even = len(tokens) // 2 * 2
    twos = zip(tokens[:even:2].tolist(), tokens[1:even:2].tolist(), strict=True)
    return Counter(twos).most_common(1)[0][0]


def last_of_equals(tokens):
    """Return the most frequent pair; of several, the one that comes last."""
    counts = Counter(zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True))
    return max(reversed(counts), key=counts.get)


def largest_of_equals(tokens):
    """Return the most frequent pair; of several, the one of the largest numbers."""
    counts = Counter(zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True))
    return max(counts, key=lambda pair: (counts[pair], pair))


def rarest(tokens):
    """Return the least frequent pair."""
    counts = Counter(zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True))
    return min(counts, key=counts.get)


def of_singles(tokens):
    """Return the two most frequent tokens."""
    return tuple(token for token, _ in Counter(tokens.tolist()).most_common(2))


def numbers(text):
    """Return a text of small letters as tokens: a is 0."""
    return np.array([ord(letter) - ord("a") for letter in text])


merge_pair = Checker(
    """Check one merge of byte-pair encoding.

    The function takes tokens (n,), whole numbers, and the number of a new token. It finds the most
    frequent pair of neighbors (of several, the one that comes first) and returns the tokens with
    each such pair replaced by the new token, from left to right.
    """,
    right=lambda tokens, new: right(tokens, new),
    returns={"tokens": "shorter by one for each pair that was replaced"},
    cases={
        "hatthatwhatcatate": (numbers("hatthatwhatcatate"), 26),
        # at comes before th, which is as frequent; ta is the same in the other order
        "cattathethat": (numbers("cattathethat"), 29),
        "aaabaaacdcaaa": (numbers("aaabaaacdcaaa"), 31),
        "xyxzxw": (numbers("xyzyxxyzwyx"), 37),
        "two tokens": (np.array([5, 3]), 7),
    },
    mistakes=[
        "You replaced the first of the pairs alone. Replace each of them.",
        merged(replace=only_first),
        "The second token of each pair is still there. The new token stands for both.",
        merged(replace=second_left),
        "The new token is missing: you took the second token of each pair away and left the first.",
        merged(replace=second_gone),
        "Pairs that overlap were both replaced. Go from left to right: after a pair, go on behind "
        "it.",
        merged(replace=overlapping),
        "You replaced the pair in both orders. The order counts: ta is not at.",
        merged(replace=both_ways),
        "You replaced tokens one by one. Replace two neighbors by one new token.",
        merged(replace=each_token),
        "You went from right to left. Where pairs overlap, the left one is replaced.",
        merged(replace=from_the_right),
        "You looked at every second place only. A pair may begin anywhere.",
        merged(pair_of=in_twos),
        "Of pairs that are equally frequent, you took the last one. Take the one that comes first.",
        merged(pair_of=last_of_equals),
        "Of pairs that are equally frequent, you took the one with the largest numbers. Take the "
        "one that comes first.",
        merged(pair_of=largest_of_equals),
        "You took the least frequent pair.",
        merged(pair_of=rarest),
        "You took the two most frequent tokens. Count pairs of neighbors.",
        merged(pair_of=of_singles),
        "You took the first pair. Count all pairs, and take the most frequent one.",
        merged(pair_of=lambda tokens: tuple(tokens[:2].tolist())),
        "Nothing has changed. Return the tokens with the pair replaced.",
        lambda tokens, new: tokens.copy(),
        "You returned the pair. Return the tokens after the merge.",
        lambda tokens, new: np.array(best(tokens)),
    ],
)
