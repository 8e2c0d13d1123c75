"""The same attention backwards: how a loss moves with the scores, queries, keys and values."""

import numpy as np

from attnlib.attention import block_scores, may_attend, softmax_in_place, weighted_sum
from attnlib.inputs import (
    quiet_nan,
    read_flag,
    read_floats,
    read_inputs,
    read_mask,
    read_scale,
    wide_dtype,
)


@quiet_nan
def softmax_backward(weights, grad_weights):
    r"""Take the gradient of a loss from the weights back to the scores that made them.

    .. math::

        \frac{\partial L}{\partial \tilde{S}_{ij}}
        = A_{ij} \Bigl(\frac{\partial L}{\partial A_{ij}}
        - \sum_m A_{im} \frac{\partial L}{\partial A_{im}}\Bigr)

    Eq. (2) of "Backpropagation by hand": the Jacobian of the softmax, diag(A) - A A^T for each row
    A, times the gradient of that row. The Jacobian itself, n_k by n_k for each row, is never made.
    In attention, these are the scaled scores, so Eqs. (5) and (6) still divide by the root of d_k.

    Parameters
    ----------
    weights : array, shape (..., n_k)
        Rows of weights, as `softmax` gave them.
    grad_weights : array, shape (..., n_k)
        How the loss moves with each weight.

    Returns
    -------
    array, shape (..., n_k)
        How the loss moves with each score, in the common dtype of the two; float16 is worked out
        in float32. Each row sums to 0: a shift of all scores changes no weight. A row of zero
        weights gives zeros.

    Raises
    ------
    TypeError
        If an array does not hold floats.
    ValueError
        If the two differ in shape, or have no axis.

    Source
    ------
    Dao et al. 2022, *FlashAttention*, appendix B.

    Examples
    --------
    >>> softmax_backward([0.25, 0.75], [1.0, 0.0])
    array([ 0.1875, -0.1875])
    """
    weights = read_floats(weights, "weights")
    grad_weights = read_floats(grad_weights, "grad_weights")
    if weights.ndim == 0:
        raise ValueError("weights must have at least one axis; got a single number")
    if weights.shape != grad_weights.shape:
        raise ValueError(
            "weights and grad_weights must have one shape; "
            f"got {weights.shape} and {grad_weights.shape}"
        )
    dtype = np.result_type(weights, grad_weights)
    wide = wide_dtype(dtype)
    weights, grad_weights = weights.astype(wide), grad_weights.astype(wide)
    return _softmax_backward(weights, grad_weights).astype(dtype, copy=False)


@quiet_nan
def attention_backward(queries, keys, values, grad_output, mask=None, *, causal=False, scale=None):
    r"""Take the gradient of a loss from the output of attention back to its three inputs.

    .. math::

        dV &= A^\top dZ \\
        dA &= dZ\, V^\top \\
        dQ &= dS\, K / \sqrt{d_k} \\
        dK &= dS^\top Q / \sqrt{d_k}

    Eqs. (3) to (6) of "Backpropagation by hand", where dX stands for the gradient of the loss with
    respect to X, and dS, that of the scaled scores, comes from dA by Eq. (2). The attention
    weights A are computed again, so that a caller does not have to keep them.

    Parameters
    ----------
    queries : array, shape (..., n_q, d_k)
    keys : array, shape (..., n_k, d_k)
    values : array, shape (..., n_k, d_v)
    grad_output : array of float, shape (..., n_q, d_v)
        How the loss moves with each number of the output: exactly the output's shape.
    mask : array, broadcasting to (..., n_q, n_k), optional
    causal : bool
    scale : float, optional
        All as in `scaled_dot_product_attention`.

    Returns
    -------
    d_queries, d_keys, d_values : arrays
        Each in the shape of its input: where an input was stretched over leading axes, its
        gradient is the sum over them. In the common dtype of queries, keys and values; float16 is
        worked out in float32. A query with nothing to attend to has a zero gradient and adds to
        none. NaN or infinity in a blocked key or value reaches no gradient.

    Raises
    ------
    TypeError
        As `scaled_dot_product_attention`; also if `grad_output` does not hold floats.
    ValueError
        As `scaled_dot_product_attention`; also if `grad_output` has another shape than the output.

    Source
    ------
    Dao et al. 2022, *FlashAttention*, appendix B, which makes the weights again too.

    Examples
    --------
    >>> Q, K, V = [[2., 0.], [0., 2.]], [[0., 2.], [2., 0.]], [[2., 0.], [0., 2.]]
    >>> d_queries, d_keys, d_values = attention_backward(Q, K, V, [[1., 0.], [0., 0.]])
    >>> d_queries.round(6)
    array([[-0.149038,  0.149038],
           [ 0.      ,  0.      ]])
    """
    inputs = queries, keys, values
    queries, keys, values = read_inputs(*inputs)
    dtype, shape = np.result_type(queries, keys, values), (*queries.shape[:-1], keys.shape[-2])
    mask = read_mask(mask, shape)
    scale, causal = read_scale(scale, queries, keys, values), read_flag(causal, "causal")
    grad_output = read_floats(grad_output, "grad_output")
    if grad_output.shape != (*shape[:-1], values.shape[-1]):
        raise ValueError(
            "grad_output must have the shape of the output, "
            f"(..., n_q, d_v) = {(*shape[:-1], values.shape[-1])}; got {grad_output.shape}"
        )

    wide = wide_dtype(dtype)
    queries, keys, values, grad_output = (
        array.astype(wide, copy=False) for array in (queries, keys, values, grad_output)
    )
    allowed = may_attend(shape, mask, causal)
    blocked = ~allowed
    scores = (queries * scale) @ keys.mT  # (..., n_q, n_k)
    block_scores(scores, mask, causal)
    weights = softmax_in_place(scores)
    grad_weights = grad_output @ values.mT  # (..., n_q, n_k)
    # Nothing passes where nothing may, neither the NaN of a blocked value nor that of a whole row.
    np.copyto(weights, 0, where=blocked)
    np.copyto(grad_weights, 0, where=blocked)
    d_scores = _softmax_backward(weights, grad_weights)
    np.copyto(d_scores, 0, where=blocked)
    d_scores *= scale

    d_values = weighted_sum(weights.mT, grad_output, allowed.mT)  # (..., n_k, d_v)
    d_queries = weighted_sum(d_scores, keys, allowed)  # (..., n_q, d_k)
    d_keys = weighted_sum(d_scores.mT, queries, allowed.mT)  # (..., n_k, d_k)
    return tuple(
        _sum_to(gradient, np.shape(array)).astype(dtype, copy=False)
        for gradient, array in zip((d_queries, d_keys, d_values), inputs, strict=True)
    )


def _softmax_backward(weights, grad_weights):
    """Return Eq. (2) for arrays of float32 or float64; it is worked out in `grad_weights`."""
    grad_weights -= (weights * grad_weights).sum(-1, keepdims=True)
    grad_weights *= weights
    return grad_weights


def _sum_to(gradient, shape):
    """Return `gradient` summed over the leading axes along which an input of `shape` was stretched.

    One number that is used in many places moves the loss by the sum of what each use moves it.
    """
    gradient = gradient.sum(tuple(range(gradient.ndim - len(shape))))
    stretched = tuple(
        axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1
    )
    return gradient.sum(stretched, keepdims=True)
