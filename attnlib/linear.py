"""Attention without a softmax, whose past is one matrix, however long the text is."""

import numpy as np

from attnlib.inputs import fits, quiet_nan, read_flag, read_floats, read_inputs, wide_dtype


@quiet_nan
def linear_attention(queries, keys, values, *, causal=True):
    r"""Sum the values, each times the dot product of its key with the query.

    .. math::

        S_t &= S_{t-1} + k_t v_t^\top \\
        z_t &= S_t^\top q_t = \sum_{j \le t} (q_t \cdot k_j)\, v_j

    Without a softmax the sum can be taken before the query is known: it is a matrix S of d_k times
    d_v numbers, and a text of any length costs no more memory. A feature map is applied to queries
    and keys before; for weights that sum to 1, give the values a column of ones and divide by what
    becomes of it.

    Parameters
    ----------
    queries : array, shape (..., n_q, d_k)
    keys : array, shape (..., n_k, d_k)
    values : array, shape (..., n_k, d_v)
        float16, float32 or float64. The leading axes broadcast against each other.
    causal : bool
        Sum over the keys up to the query's position; needs as many queries as keys. If not, over
        all keys.

    Returns
    -------
    array, shape (..., n_q, d_v), dtype of queries, keys and values
        float16 is worked out in float32.

    Raises
    ------
    TypeError
        If an array does not hold floats.
    ValueError
        If the shapes do not fit.

    Source
    ------
    Katharopoulos et al. 2020, *Transformers are RNNs*, sections 3.2 to 3.4, without their feature
    map and their denominator.

    Examples
    --------
    >>> linear_attention([[1.0, 0.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]], [[3.0], [5.0]])
    array([[ 3.],
           [13.]])
    """
    inputs = read_inputs(queries, keys, values)
    dtype = np.result_type(*inputs)
    q, k, v = (array.astype(wide_dtype(dtype)) for array in inputs)
    if not read_flag(causal, "causal"):
        return (q @ (k.mT @ v)).astype(dtype, copy=False)
    return _read_in_turn(q, k, v, lambda state, key, value: value).astype(dtype, copy=False)


@quiet_nan
def delta_rule(queries, keys, values, beta):
    r"""Write each value where its key points, in place of what stood there.

    .. math::

        S_t &= S_{t-1} + \beta_t\, k_t (v_t - S_{t-1}^\top k_t)^\top \\
        z_t &= S_t^\top q_t

    `linear_attention` adds every value; here only the difference from what the key recalls already
    is added. With a key of length 1 and beta = 1 the key recalls exactly its last value, and with
    beta = 0 nothing is written. The step is one of gradient descent on the squared error of the
    recall.

    Parameters
    ----------
    queries, keys : array, shape (..., n, d_k)
    values : array, shape (..., n, d_v)
        float16, float32 or float64. The leading axes broadcast against each other.
    beta : array of float, broadcasting to (..., n)
        How much of the difference is written, 0 to 1 for keys of length 1.

    Returns
    -------
    array, shape (..., n, d_v), common dtype of the four
        float16 is worked out in float32.

    Raises
    ------
    TypeError
        If an array does not hold floats.
    ValueError
        If the shapes do not fit.

    Source
    ------
    Schlag, Irie and Schmidhuber 2021, *Linear Transformers Are Secretly Fast Weight Programmers*,
    section 4.2; in a language model Yang et al. 2024, *Parallelizing Linear Transformers with the
    Delta Rule over Sequence Length*, section 2.2.

    Examples
    --------
    The same key is written twice: linear attention recalls the sum, the delta rule the last one.

    >>> key, values = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[3.0], [5.0]])
    >>> linear_attention(key, key, values)[-1], delta_rule(key, key, values, [1.0, 1.0])[-1]
    (array([8.]), array([5.]))
    """
    inputs = read_inputs(queries, keys, values)
    beta = read_floats(beta, "beta")
    shape = (*inputs[0].shape[:-2], inputs[1].shape[-2])
    if not fits(beta.shape, shape):
        raise ValueError(f"beta must broadcast to (..., n) = {shape}; got {beta.shape}")
    dtype = np.result_type(*inputs, beta)
    q, k, v = (array.astype(wide_dtype(dtype)) for array in inputs)
    rates = np.broadcast_to(beta, shape).astype(q.dtype)

    def difference(state, key, value, rate):
        return rate[..., None, None] * (value - key @ state)

    return _read_in_turn(q, k, v, difference, rates).astype(dtype, copy=False)


def _read_in_turn(q, k, v, written, *rates):
    """Return what each query reads from the state after its own key and value are written.

    `written(state, key, value, *rates)` is what the key adds to the state, shape (..., 1, d_v).
    """
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"queries and keys must be equal in number, one per token; got {q.shape} and {k.shape}"
        )
    *leading, n, d_k = q.shape
    state = np.zeros((*leading, d_k, v.shape[-1]), q.dtype)
    output = np.empty((*leading, n, v.shape[-1]), q.dtype)
    for t in range(n):
        token = slice(t, t + 1)
        key = k[..., token, :]
        state += key.mT @ written(state, key, v[..., token, :], *(rate[..., t] for rate in rates))
        output[..., token, :] = q[..., token, :] @ state
    return output
