"""LayerExplorer: residual, norm, feed-forward, depth; what becomes of the token vectors."""

import functools
import math

import numpy as np
import traitlets

from attnlib.feed_forward import feed_forward
from attnlib.multihead import MultiHeadAttention
from attnlib.norms import layer_norm
from attnlib.widgets.kit.base import CourseWidget, Whole
from attnlib.widgets.kit.constants import word_vector

TOKENS = ("A", "cat", "sat", "on", "the", "warm", "mat")
N, D_MODEL, N_HEADS, D_FF = len(TOKENS), 16, 4, 64
MAX_DEPTH = 24
SEEDS = 1000
NORMS = ("post", "pre", "none")
FULL = (True, "post", True)  # the block that the others are compared with


def relative_distance(x):
    r"""How far the rows of x are from being the same vector, between 0 and 1.

    .. math:: \frac{\lVert X - \mathbf{1}\bar{x}^\top \rVert}{\lVert X \rVert}

    with the mean row and Frobenius norms. 0 means that all rows are equal, so that x has rank 1;
    independent random rows give about sqrt(1 - 1/n).

    Parameters
    ----------
    x : array, shape (..., n, d_model)

    Returns
    -------
    array, shape (...)

    Source
    ------
    Dong, Cordonnier and Loukas 2021, *Attention is not all you need: pure attention loses rank
    doubly exponentially with depth*. They take the 1-norm and the infinity norm together.
    """
    rest = x - x.mean(axis=-2, keepdims=True)
    return np.linalg.norm(rest, axis=(-2, -1)) / np.linalg.norm(x, axis=(-2, -1))


class LayerExplorer(CourseWidget):
    """Seven tokens through a stack of encoder layers, with parts of the layer switched off.

    Each of the layers has weights of its own: 4 heads, d_model = 16, d_ff = 64, ReLU. They are
    uniform random numbers as wide as those that torch.nn.TransformerEncoderLayer starts with;
    the biases are 0, and there is no norm after the last layer. Without a residual a sublayer
    hands on its output alone. The widget shows the vectors after `depth` layers, and how far they
    are apart at every depth up to 24, beside the full block of the paper (residual, post-norm,
    feed-forward) with the same weights.

    Without a residual the tokens are one vector after two to four layers, whatever the rest. A
    feed-forward network with such weights does not stop that, and slows it for some seeds only.

    Parameters
    ----------
    residual : bool
        Whether each sublayer adds to what came in.
    norm : {"post", "pre", "none"}
        Layer norm after each sublayer and its residual, before each sublayer, or nowhere.
    feed_forward : bool
        Whether attention is followed by a feed-forward network.
    depth : int
        Number of layers, 1 to 24.
    seed : int
        Which random weights, 0 to 999.

    Raises
    ------
    ValueError
        For a depth or a seed outside its range.
    traitlets.TraitError
        For a value of the wrong type, or a norm that does not exist.
    """

    residual = traitlets.Bool(True).tag(sync=True)
    norm = traitlets.Enum(NORMS, "post").tag(sync=True)
    feed_forward = traitlets.Bool(True).tag(sync=True)
    depth = Whole(1, MAX_DEPTH, 6).tag(sync=True)
    seed = Whole(0, SEEDS - 1, 0).tag(sync=True)

    @property
    def states(self):
        """The token vectors before the first layer and after each one, (depth + 1, 7, 16)."""
        return self._all_states[: self.depth + 1]

    @property
    def distance(self):
        """Relative distance of the tokens from their mean, (depth + 1,): see `relative_distance`.

        What is below about 1e-15 is rounding.
        """
        return relative_distance(self.states)

    @property
    def norms(self):
        """Mean length of a token vector, (depth + 1,)."""
        return _mean_length(self.states)

    @property
    def curves(self):
        """Everything against depth, 0 to 24, as a dict of arrays (25,).

        "distance" and "norm" are those of this stack, "distance_full" and "norm_full" those of
        the full block with the same weights.
        """
        full = _states(*FULL, self.seed)
        return {
            "distance": relative_distance(self._all_states),
            "norm": _mean_length(self._all_states),
            "distance_full": relative_distance(full),
            "norm_full": _mean_length(full),
        }

    @property
    def _all_states(self):
        return _states(self.residual, self.norm, self.feed_forward, self.seed)


def word_rows():
    """Return the rows of the seven words before the first layer, (7, 16)."""
    return np.stack([word_vector(token, "token", D_MODEL) for token in TOKENS])


def _weight(seed, layer, name, d_in, d_out, variance):
    """A weight (d_in, d_out) of independent uniform numbers with mean 0."""
    numbers = word_vector(f"{seed} {layer}", name, d_in * d_out)
    return math.sqrt(variance) * numbers.reshape(d_in, d_out)


@functools.lru_cache(maxsize=8)
def random_layers(seed):
    """Return the attention, w_1 and w_2 of each of the 24 layers.

    The variances are those of torch.nn.TransformerEncoderLayer: Xavier over the three input
    projections together, 1 / (3 d_in) for the output and for the feed-forward network.
    """
    return [
        (
            MultiHeadAttention(
                *(
                    _weight(seed, i, name, D_MODEL, D_MODEL, 1 / (2 * D_MODEL))
                    for name in ("w_q", "w_k", "w_v")
                ),
                _weight(seed, i, "w_o", D_MODEL, D_MODEL, 1 / (3 * D_MODEL)),
                N_HEADS,
            ),
            _weight(seed, i, "w_1", D_MODEL, D_FF, 1 / (3 * D_MODEL)),
            _weight(seed, i, "w_2", D_FF, D_MODEL, 1 / (3 * D_FF)),
        )
        for i in range(1, MAX_DEPTH + 1)
    ]


@functools.lru_cache(maxsize=64)
def _states(residual, norm, with_feed_forward, seed):
    """The token vectors before and after each of 24 layers, (25, 7, 16)."""

    def before(x):
        return layer_norm(x) if norm == "pre" else x

    def joined(x, output):
        y = x + output if residual else output
        return layer_norm(y) if norm == "post" else y

    x = word_rows()
    states = [x]
    for attention, w_1, w_2 in random_layers(seed):
        x = joined(x, attention(before(x))[0])
        if with_feed_forward:
            x = joined(x, feed_forward(before(x), w_1, None, w_2, None))
        states.append(x)
    states = np.stack(states)
    states.flags.writeable = False  # shared by all widgets
    return states


def _mean_length(x):
    return np.linalg.norm(x, axis=-1).mean(axis=-1)
