"""What several widgets compute with: tokens, projections and vectors for words."""

import math

import numpy as np

# The two tokens of "Chai piyo, by hand", and what makes their queries and values (straight) and
# their keys (across).
CHAI_PIYO = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
STRAIGHT = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
ACROSS = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def word_vector(word, role, d):
    """Return `d` numbers for a word, mean 0 and variance 1, always the same for word and role.

    Made by the same integer arithmetic as in the browser, so the two agree to the last bit.
    """
    seed = 0x811C9DC5
    for unit in np.frombuffer(f"{role}:{word}".encode("utf-16-le", "surrogatepass"), "<u2"):
        seed = ((seed ^ int(unit)) * 0x01000193) % 2**32
    bits = np.arange(d, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(seed)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ (bits >> np.uint32(shift))) * np.uint32(factor)
    bits ^= bits >> np.uint32(16)
    return math.sqrt(12) * ((bits + 0.5) / 2**32 - 0.5)
