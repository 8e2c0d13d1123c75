# ruff: noqa: N803 -- learners write the matrices as in the formula, and messages repeat them
"""The checker of a whole model with one layer: the probabilities of the next word."""

import math

import numpy as np

from attnlib import attention as exact
from attnlib.check import advice
from attnlib.check.advice import wrong_divisors
from attnlib.check.arrays import float32, random_arrays
from attnlib.check.checker import Checker


def relu(x):
    """Return x with zeros for what is negative."""
    return np.maximum(0, x)


def root(d_k, **sizes):
    """Return what the scores are divided by."""
    return math.sqrt(d_k)


def model(
    asked=lambda X: X[-1],
    divisor=root,
    weigh=exact.softmax,
    projected=lambda W_Q, W_K: (W_Q, W_K),
    added=lambda x, found: x + found,
    network=lambda x, W_1, b_1, W_2, b_2: relu(x @ W_1 + b_1) @ W_2 + b_2,
    finished=lambda own, x, thought: x + thought,
    chosen=exact.softmax,
):
    """Return a model with one layer without norms, in which each part may be another one."""

    def next_word(X, W_Q, W_K, W_V, W_O, W_1, b_1, W_2, b_2, W_vocab):
        own = asked(X)
        W_queries, W_keys = projected(W_Q, W_K)
        sizes = {"d_k": W_K.shape[1], "d_v": W_V.shape[1], "n_k": len(X), "d_model": X.shape[1]}
        scores = (X @ W_keys) @ (own @ W_queries) / divisor(**sizes)
        x = added(own, weigh(scores) @ X @ W_V @ W_O)
        return chosen(finished(own, x, network(x, W_1, b_1, W_2, b_2)) @ W_vocab)

    return next_word


def early(X, W_Q, W_K, W_V, W_O, W_1, b_1, W_2, b_2, W_vocab):
    """Return the answer of a model whose feed-forward network reads the word alone."""
    x = X[-1] + exact.softmax((X @ W_K) @ (X[-1] @ W_Q) / root(W_K.shape[1])) @ X @ W_V @ W_O
    return exact.softmax((x + relu(X[-1] @ W_1 + b_1) @ W_2 + b_2) @ W_vocab)


def words_and_matrices(n, d_model, d_k, d_v, d_ff, n_words):
    """Return the rows of a text, and a matrix for each part, each large enough to matter."""
    X, W_Q, W_K, W_V, W_O = random_arrays(
        (n, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v), (d_v, d_model)
    )
    W_1, b_1, W_2, b_2, W_vocab = random_arrays(
        (d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,), (d_model, n_words), seed=7
    )
    size = math.sqrt(d_model)
    attention = 2 * W_Q / size, 2 * W_K / size, W_V / size, 2 * W_O
    return X, *attention, W_1 / size, b_1, W_2 / math.sqrt(d_ff), b_2, 2 * W_vocab / size


PLAIN = words_and_matrices(n=5, d_model=7, d_k=3, d_v=2, d_ff=11, n_words=13)

next_word = Checker(
    """Check the probabilities of the next word, of a model with one layer and one head.

    The function takes the rows X (n, d_model) of a text, W_Q and W_K (d_model, d_k), W_V (d_model,
    d_v), W_O (d_v, d_model), W_1 (d_model, d_ff), b_1 (d_ff,), W_2 (d_ff, d_model), b_2 (d_model,)
    and W_vocab (d_model, words). It returns the probabilities (words,) after the last word, by
    Eqs. (1) to (3) of "A GPT on two pages".
    """,
    right=model(),
    returns={"probabilities": "one for each word that can be written"},
    cases={
        "a text of five words": PLAIN,
        "a text of two words": words_and_matrices(n=2, d_model=5, d_k=7, d_v=3, d_ff=2, n_words=11),
        "a text of one word": words_and_matrices(n=1, d_model=3, d_k=2, d_v=5, d_ff=7, n_words=2),
        "sizes that are equal": words_and_matrices(n=3, d_model=3, d_k=3, d_v=3, d_ff=3, n_words=3),
        "float32": float32(PLAIN),
    },
    mistakes=[
        *wrong_divisors(lambda divisor: model(divisor=divisor), "d_v", "n_k", "d_model"),
        advice.NO_SOFTMAX,
        model(weigh=lambda scores: scores),
        "Your attention weights do not sum to 1: divide the exponentials by their sum.",
        model(weigh=np.exp),
        "All words get the same weight. The weights are the softmax of the scaled scores.",
        model(weigh=lambda scores: np.full(len(scores), 1 / len(scores))),
        "W_Q and W_K are exchanged: the last word asks with W_Q, and all words have keys by W_K.",
        model(projected=lambda W_Q, W_K: (W_K, W_Q)),
        "The first word asks. The next word follows the last one: take the row X[-1].",
        model(asked=lambda X: X[0]),
        "The mean of all rows asks. The next word follows the last one: take the row X[-1].",
        model(asked=lambda X: X.mean(axis=0)),
        "The first residual connection is missing: add what attention finds to the row of the last "
        "word.",
        model(added=lambda x, found: found),
        "Attention's output is added to itself. Add it to the row of the last word.",
        model(added=lambda x, found: 2 * found),
        "Attention is missing: the row of the last word goes straight into the network.",
        model(added=lambda x, found: x),
        "The second residual connection is missing: add what the network returns to what it read.",
        model(finished=lambda own, x, thought: thought),
        "What attention found is lost: add what the network returns to the sum, not to the word.",
        model(finished=lambda own, x, thought: own + thought),
        "The feed-forward network is missing: its output is added to the row, too.",
        model(finished=lambda own, x, thought: x),
        "The feed-forward network reads the word alone. It reads the sum of the word and what "
        "attention found.",
        early,
        "The ReLU is missing: replace what is negative in the hidden numbers by 0.",
        model(network=lambda x, W_1, b_1, W_2, b_2: (x @ W_1 + b_1) @ W_2 + b_2),
        "b_1 is missing, or it is added after the ReLU. Add it to x W_1.",
        model(network=lambda x, W_1, b_1, W_2, b_2: relu(x @ W_1) @ W_2 + b_2),
        model(network=lambda x, W_1, b_1, W_2, b_2: (relu(x @ W_1) + b_1) @ W_2 + b_2),
        "b_2 is missing: add it to the second product.",
        model(network=lambda x, W_1, b_1, W_2, b_2: relu(x @ W_1 + b_1) @ W_2),
        "The ReLU comes between the two products, and only there.",
        model(network=lambda x, W_1, b_1, W_2, b_2: relu(relu(x @ W_1 + b_1) @ W_2 + b_2)),
        "These are the logits. Their softmax gives the probabilities.",
        model(chosen=lambda logits: logits),
        "Your probabilities do not sum to 1: divide the exponentials of the logits by their sum.",
        model(chosen=np.exp),
    ],
)
