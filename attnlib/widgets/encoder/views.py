"""What four views of `Encoder` compute: a word's path, its parts, a search, shares by length."""

import json
import math
import re
from pathlib import Path

import numpy as np

from attnlib.inspection import head_outputs, replace_heads, row_ledger
from attnlib.widgets.heads_viewer import DIGITS

RECORDED = Path(__file__).parents[2] / "data" / "encoder_views.json"

WORD = "bank"
BEGIN = "We walked to the bank to "
PAIRS = [  # the last one is the same sense, to compare with
    [BEGIN + "borrow money.", BEGIN + end]
    for end in ("catch fish.", "watch the boats.", "open an account.")
]
# As many tokens in both, so that heads can be swapped; the last one is again the same sense.
EVEN = [[BEGIN + "borrow money.", BEGIN + end] for end in ("catch fish.", "pay rent.")]
LIBRARY = [
    "The train to Rome was two hours late.",
    "Add two eggs to the flour and stir.",
    "The goalkeeper saved a penalty.",
    "The bank raised its interest rates.",
    "Snow closed the road over the pass.",
    "The doctor told him to sleep more.",
    "My laptop does not start any more.",
    "The museum opens at nine on Sundays.",
    "The violinist practiced for hours.",
    "A flat tire made us miss the ferry.",
]
QUESTIONS = [
    "Why were we late for the boat?",
    "How do I start to bake a cake?",
    "Loans have become expensive.",
    "Where can I see paintings on Sundays?",
]
TEXT = (
    "The bank of the river was steep and covered with grass, and the children who came down every "
    "summer to swim knew each stone of it by name. They left their shoes under the willow and ran "
    "into the cold water, shouting, until the old man who owned the mill came out and shook his "
    "fist at them. He had a loan to pay, and the bank in town had written twice. Nobody told the "
    "children about letters or about money, and so they thought that he disliked the noise. In "
    "the autumn the mill was sold, the willow fell in a storm, and the children went to school."
)
ENDS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 15, 18, 22, 26, 31, 37, 44, 52, 62, 74, 88, 98, 109]
MEASURED = ["Chai piyo", "The cat sat down because it was tired.", "tea " * 9 + "tea"]


def names_of(tokens):
    """What a sentence calls its tokens: those that it has several times are numbered."""
    seen = {}
    for token in tokens:
        seen[token] = seen.get(token, 0) + 1
    count = dict.fromkeys(seen, 0)
    names = []
    for token in tokens:
        count[token] += 1
        names.append(f"{token} ({count[token]})" if seen[token] > 1 else token)
    return names


def places_of(first, second, word):
    """The places of a word in two lists of tokens.

    If both do not have it by that name, it is the longest name that both have, or what stands
    first in both, [CLS].
    """
    names = names_of(first), names_of(second)
    both = [name for name in names[0] if name in names[1] and name not in ("[CLS]", "[SEP]")]
    if not all(word in each for each in names):
        word = max(both, key=len, default=None)
    return [0 if word is None else each.index(word) for each in names]


def path(first, second, at):
    """Return the ways of two tokens through the layers, in the plane in which they part.

    The first direction is where most of their movement goes, once the second one is taken out of
    it; the second is the line between the two after the last layer. Both have length 1. The origin
    lies midway between the two before the first layer.

    Parameters
    ----------
    first, second : Reading
    at : pair of int
        The place of the token in each.

    Returns
    -------
    dict
        `points`, for each reading an array (n_layers + 1, n, 2) of all its tokens; `share`, the
        part of the squared movement of the two that lies in the plane; `cosines`,
        (n_layers + 1,).
    """
    words = np.stack([r.states[:, i] for r, i in zip((first, second), at, strict=True)])
    words = words.astype(np.float64)  # (2, n_layers + 1, d_model)
    origin = words[:, 0].mean(axis=0)
    moved = words - origin
    difference = words[1, -1] - words[0, -1]
    length = np.linalg.norm(difference)
    across = difference / length if length > 1e-6 else np.zeros_like(difference)
    rest = moved - (moved @ across)[..., None] * across
    along = np.linalg.svd(rest.reshape(-1, len(difference)))[2][0]
    if (rest[:, -1] - rest[:, 0]).sum(axis=0) @ along < 0:
        along = -along
    plane = np.stack([along, across], axis=1)  # (d_model, 2)
    lengths = np.linalg.norm(words, axis=-1)
    return {
        "points": [(reading.states - origin) @ plane for reading in (first, second)],
        "share": ((moved @ plane) ** 2).sum() / (moved**2).sum(),
        "cosines": (words[0] * words[1]).sum(axis=-1) / lengths[0] / lengths[1],
    }


def written(model, texts, at):
    """Return how much of the way from a token's last row to another's each part has written.

    Parameters
    ----------
    model : MiniLM
    texts : pair of str
    at : pair of int
        The place of the token in each.

    Returns
    -------
    array, one number for each name of `row_ledger`
        Their sum is 1.
    """
    first, second = (row_ledger(model, *one)[1] for one in zip(texts, at, strict=True))
    difference = (second - first).sum(0)
    return (second - first) @ difference / (difference @ difference or 1)


def swapped(model, texts, at, heads):
    """Return how much of the way the first row goes if heads pass on what they do in the second.

    Parameters
    ----------
    model, texts, at
        As for `written`; both texts have as many tokens.
    heads : list of (layer, head)
        From 0.
    """
    first, second = (
        model.read(text).states[-1][place].astype(float)
        for text, place in zip(texts, at, strict=True)
    )
    given = head_outputs(model, texts[1])
    outputs = {(layer, head): given[layer][..., head, :, :] for layer, head in heads}
    row = replace_heads(model, outputs).read(texts[0]).states[-1][at[0]]
    difference = second - first
    return (row - first) @ difference / (difference @ difference or 1)


def words_of(text):
    """The words of a text, small, each once, in order."""
    return list(dict.fromkeys(re.findall(r"[^\W_]+", text.lower())))


def by_words(question, library):
    """Score each sentence by the words that it shares with a question.

    A shared word counts ln(N / n_w), where n_w of the N sentences have it: a word that all have
    counts nothing.
    """
    have = [set(words_of(sentence)) for sentence in library]

    def worth(word):
        return math.log(len(library) / sum(word in words for words in have))

    wanted = words_of(question)
    return np.array([sum(worth(word) for word in wanted if word in words) for words in have])


def places(scores):
    """The place of each score among all, the largest at 0; ties stand as they come."""
    order = np.argsort(-np.round(scores, 9), kind="stable")
    return np.argsort(order, kind="stable")


def shares(reading):
    """The share of each layer's weight that goes to [CLS] and to [SEP], (2, n_layers)."""
    return reading.weights[..., [0, -1]].mean(axis=(1, 2)).T


def record(minilm):
    """Return everything with which the views begin, as plain values in few digits."""
    first, second = map(minilm.read, PAIRS[0])
    both = [name for name in names_of(first.tokens) if name in names_of(second.tokens)]
    words = [
        packed_path(first, second, PAIRS[0], word, all_tokens=False)
        for word in both
        if word != WORD and word[0].isalpha()
    ]

    def row(text):
        return packed_shares(minilm.read(text))

    prefixes = [" ".join(TEXT.split()[:end]) for end in ENDS]
    return {
        "path": [packed_path(*map(minilm.read, pair), pair, WORD) for pair in PAIRS] + words,
        "parts": [packed_parts(minilm, pair, WORD) for pair in EVEN],
        "search": [_packed_library(minilm)],
        "lengths": [
            {"prefixes": {"text": TEXT, "ends": ENDS, "rows": [row(text) for text in prefixes]}},
            *({"text": text, "row": row(text)} for text in MEASURED),
        ],
    }


def packed_path(first, second, texts, word, all_tokens=True):
    """A path as a page gets it: points in whole hundredths, each token's after the other's."""
    at = places_of(first.tokens, second.tokens, word)
    found = path(first, second, at)
    shown = found["points"]
    if not all_tokens:
        shown = [points[:, [i]] for points, i in zip(shown, at, strict=True)]
    hundredths = [np.rint(100 * points).astype(int) for points in shown]
    return {
        "texts": list(texts),
        "word": word,
        "at": at,
        "tokens": [list(first.tokens), list(second.tokens)],
        "points": [points.reshape(len(points), -1).tolist() for points in hundredths],
        "share": round(float(found["share"]), 4),
        "cosines": found["cosines"].round(4).tolist(),
    }


def packed_parts(model, texts, word):
    """What each part writes, and what each swap does, as a page gets it: in 1/1000.

    Swapped are each head, then all heads of each layer, then all; nothing if the sentences do not
    have as many tokens.
    """
    tokens = [model.read(text).tokens for text in texts]
    at = places_of(*tokens, word)
    n_layers, n_heads = len(model.encoder.layers), model.encoder.layers[0].attention.n_heads
    layers = [[(layer, head) for head in range(n_heads)] for layer in range(n_layers)]
    every = [one for layer in layers for one in layer]
    sets = [*([one] for one in every), *layers, every]
    if len(tokens[0]) != len(tokens[1]):
        sets = []
    return {
        "texts": list(texts),
        "word": word,
        "at": at,
        "tokens": [list(each) for each in tokens],
        "shares": np.rint(1000 * written(model, texts, at)).astype(int).tolist(),
        "swaps": [round(1000 * float(swapped(model, texts, at, heads))) for heads in sets],
    }


def packed_search(minilm, question, sentences):
    """A search as a page gets it from a kernel: cosines in 1/10000."""
    cosines = minilm.embed(list(sentences)) @ minilm.embed([question])[0]
    found = np.rint(10000 * cosines).astype(int).tolist()
    return {"sentences": list(sentences), "questions": {question: found}}


def _packed_library(minilm):
    """A search as a page gets it: cosines in 1/10000, and vectors for other questions.

    Of the sentences' vectors it gets the directions, one character of DIGITS for each number.
    """
    vectors = minilm.embed(LIBRARY)
    cosines = np.rint(10000 * minilm.embed(QUESTIONS) @ vectors.T).astype(int)
    steps = np.rint(31 * vectors / abs(vectors).max(axis=1, keepdims=True)).astype(int)
    return {
        "sentences": LIBRARY,
        "questions": dict(zip(QUESTIONS, cosines.tolist(), strict=True)),
        "vectors": "".join(DIGITS[step + 32] for step in steps.flat),
    }


def packed_shares(reading):
    """The number of tokens, then the shares of [CLS] and of [SEP] by layer in thousandths."""
    return [len(reading.tokens), *np.rint(1000 * shares(reading)).astype(int).ravel().tolist()]


def recorded():
    """Return what `record` gave."""
    return json.loads(RECORDED.read_text(encoding="utf-8"))
