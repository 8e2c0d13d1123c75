"""Mixture of experts: many feed-forward networks, of which each token uses a few."""

from dataclasses import dataclass

import numpy as np

from attnlib.attention import softmax
from attnlib.inputs import (
    quiet_nan,
    read_function,
    read_list,
    read_matrix,
    read_result,
    read_size,
    read_tokens,
    read_vector,
)
from attnlib.masks import top_k_mask
from attnlib.projections import project


@dataclass(eq=False)
class MixtureOfExperts:
    r"""A feed-forward network that sends each token to `k` of its experts.

    .. math::

        g(x) &= \mathrm{softmax}(\text{the } k \text{ largest of } x W_R + b_R) \\
        \mathrm{MoE}(x) &= \sum_{e \,\in\, \text{chosen}} g_e(x)\; \mathrm{FFN}_e(x)

    The router is a softmax over the experts, in which all but the k largest logits are blocked, as
    a mask blocks keys. So a token costs k networks, however many there are.

    Parameters
    ----------
    w_router : array of float, shape (d_model, n_experts)
    experts : list of callables on (..., n, d_model), n_experts of them
        `FeedForward`, `SwiGLU` and so on.
    k : int
        How many experts each token uses.
    b_router : array of float, shape (n_experts,), or None

    Raises
    ------
    TypeError
        If a weight does not hold floats, `k` is not a whole number, or an expert cannot be called.
    ValueError
        If the shapes do not fit, or `k` is below 1 or above the number of experts.

    Source
    ------
    Shazeer et al. 2017, *Outrageously Large Neural Networks*, sections 2 and 2.1; without their
    noise Jiang et al. 2024, *Mixtral of Experts*, section 2.1.

    Examples
    --------
    >>> from attnlib import MixtureOfExperts
    >>> experts = [lambda x: 10 * x, lambda x: 20 * x, lambda x: 30 * x]
    >>> MixtureOfExperts(np.array([[1.0, 2.0, 2.0]]), experts, k=2)([[1.0], [-1.0]]).round(3)
    array([[ 25.   ],
           [-12.689]])
    """

    w_router: np.ndarray
    experts: list
    k: int
    b_router: np.ndarray | None = None

    def __post_init__(self):
        self.w_router = read_matrix(self.w_router, "w_router")
        n_experts = self.w_router.shape[1]
        self.b_router = read_vector(self.b_router, "b_router", n_experts)
        self.experts = read_list(self.experts, "experts")
        if len(self.experts) != n_experts:
            raise ValueError(
                f"experts must be as many as w_router has columns, {n_experts}; "
                f"got {len(self.experts)}"
            )
        for number, expert in enumerate(self.experts):
            read_function(expert, f"experts[{number}]")
        if len(set(self.widths)) > 1:
            raise ValueError(
                "router and experts must lead from one width back to it; "
                f"got {sorted(set(self.widths))}"
            )
        self.k = read_size(self.k, "k", least=1)
        if self.k > n_experts:
            raise ValueError(f"k must be at most the number of experts, {n_experts}; got {self.k}")

    @property
    def widths(self):
        """The widths of the input and of the output, in dimensions."""
        return self.w_router.shape[0], *(w for e in self.experts for w in getattr(e, "widths", ()))

    @quiet_nan
    def route(self, x):
        """Return the weight of each expert for each token, (..., n, n_experts); most are 0."""
        return self._route(read_tokens(x, "x", self.w_router.shape[0]))

    def _route(self, x):
        logits = project(x, self.w_router, self.b_router)
        return softmax(np.where(top_k_mask(logits, self.k), logits, -np.inf))

    @quiet_nan
    def __call__(self, x):
        """Return what the chosen experts make of each token, (..., n, d_model)."""
        x = read_tokens(x, "x", self.w_router.shape[0])
        weights = self._route(x)
        output = np.zeros_like(x)
        for number, expert in enumerate(self.experts):
            weight = weights[..., number]
            sent = weight != 0  # NaN is sent, too, and stays NaN
            if sent.any():
                tokens = x[sent]  # (n_sent, d_model)
                made = read_result(expert(tokens), f"experts[{number}]", tokens.shape)
                added = weight[sent][:, None] * made
                output = output.astype(np.result_type(output, added), copy=False)
                output[sent] += added
        return output
