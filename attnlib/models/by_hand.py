"""A language model of 111 numbers that can be worked with a pencil: "tea not bad", "drink tea"."""

import numpy as np

from attnlib.feed_forward import FeedForward
from attnlib.layers import EncoderLayer
from attnlib.models.language import CausalLM
from attnlib.multihead import MultiHeadAttention

# The columns: verdict (good or bad), kind (tea or coffee), noun, not, and what the word seeks.
_EMBEDDINGS = {
    "drink": [0, 0, 0, 0, 1],
    "leave": [0, 0, 0, 0, 1],
    "tea": [0, 1, 1, 0, 0],
    "coffee": [0, -1, 1, 0, 0],
    "<end>": [0, 0, 0, 0, 0],  # nothing is written after it, so its row is never read
    "not": [0, 0, 0, 1, 0],
    "good": [1, 0, 0, 0, -1],
    "bad": [-1, 0, 0, 0, -1],
}
_UNEMBEDDING = [  # drink, leave, tea, coffee, <end>
    [2, -2, 0, 0, 0],
    [0, 0, 2, -2, 0],
    [0, 0, 0, 0, 4],
    [0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0],
]


def gpt_by_hand():
    r"""Return the model of "A GPT on two pages", and its words.

    It has one layer without norms, one head with d_k = 1, one hidden number, and no positions. It
    continues "tea not bad" with "drink tea <end>", and "coffee good" with "drink coffee <end>". The
    first five of its eight words are those that it can write.

    Returns
    -------
    model : CausalLM
        With d_model = 5, in float64.
    words : list of str
        The word of each token.

    Source
    ------
    The numbers are those of this course, chosen so that each part decides one word.

    Examples
    --------
    >>> model, words = gpt_by_hand()
    >>> prompt = [words.index(word) for word in "tea not bad".split()]
    >>> " ".join(words[token] for token in model.write(prompt, 3, temperature=0))
    'tea not bad drink tea <end>'
    """
    attention = MultiHeadAttention(
        w_q=np.array([[0.0], [0], [0], [0], [4]]),
        w_k=np.array([[0.0], [0], [2], [-2], [0]]),
        w_v=np.array([[0.0, 0], [0, 1], [0, 0], [-2, 0], [0, 0]]),
        w_o=np.array([[1.0, 0, 0, 0, 0], [0, 1, 0, 0, 0]]),
        n_heads=1,
    )
    network = FeedForward(
        w_1=np.array([[-1.0], [0], [0], [0], [0]]),
        b_1=np.array([-1.0]),
        w_2=np.array([[2.0, 0, 0, 0, 0]]),
        b_2=np.zeros(5),
    )
    embeddings = np.array(list(_EMBEDDINGS.values()), dtype=float)
    unembedding = np.array(_UNEMBEDDING, dtype=float)
    model = CausalLM(embeddings, [EncoderLayer(attention, network)], unembedding=unembedding)
    return model, list(_EMBEDDINGS)
