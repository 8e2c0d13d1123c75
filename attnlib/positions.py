"""Positions: four ways to give attention the position of each token.

`sinusoidal_positions` is added to the embeddings, `rotary` turns queries and keys, `alibi_bias`
and `relative_position_bias` are added to the scores.
"""

import math

import numpy as np

from attnlib.inputs import (
    quiet_nan,
    read_array,
    read_dtype,
    read_floats,
    read_number,
    read_size,
)


def sinusoidal_positions(n, d_model, *, base=10000.0, dtype=np.float64):
    r"""Write each position as d_model / 2 hands of a clock, each slower than the one before.

    .. math::

        PE(p, 2i) &= \sin(p / b^{2i / d_{model}}) \\
        PE(p, 2i + 1) &= \cos(p / b^{2i / d_{model}})

    Eqs. (2) and (3) of "Where am I? Positions".

    Parameters
    ----------
    n : int
        Number of positions, 0 to n - 1, in tokens.
    d_model : int
        Width in dimensions. If it is odd, the last sine has no cosine.
    base : float
        b: the wavelengths grow from 2 pi positions towards 2 pi b.
    dtype : float16, float32 or float64
        Of the result; the angles are always worked out in float64.

    Returns
    -------
    array of `dtype`, shape (n, d_model)

    Raises
    ------
    TypeError
        If a size is not a whole number, `base` is not a number, or `dtype` is not one of the
        three.
    ValueError
        If `n` is below 0, `d_model` is below 1, or `base` is not finite and above 0.

    Source
    ------
    Vaswani et al. 2017, *Attention Is All You Need*, section 3.5.

    Examples
    --------
    >>> sinusoidal_positions(3, 4).round(3)
    array([[ 0.   ,  1.   ,  0.   ,  1.   ],
           [ 0.841,  0.54 ,  0.01 ,  1.   ],
           [ 0.909, -0.416,  0.02 ,  1.   ]])
    """
    n, d_model = read_size(n, "n"), read_size(d_model, "d_model", least=1)
    angles = _angles(np.arange(n), d_model, base)  # (n, pairs)
    encoding = np.empty((n, d_model), read_dtype(dtype))
    encoding[:, 0::2] = np.sin(angles)
    encoding[:, 1::2] = np.cos(angles)[:, : d_model // 2]
    return encoding


@quiet_nan
def rotary(x, positions=None, *, base=10000.0, layout="interleaved", scale=1.0):
    r"""Turn each pair of numbers by an angle that grows with the position (RoPE).

    .. math::

        (a, b) &\mapsto (a \cos \theta - b \sin \theta,\; a \sin \theta + b \cos \theta) \\
        \theta &= \frac{p}{s\, b^{2i / d}}

    Eq. (5) of "Where am I? Positions". Queries and keys are rotated, values are not, so that the
    score of a pair depends on the two positions only through the distance between them.

    Parameters
    ----------
    x : array of float16, float32 or float64, shape (..., n, d)
        Queries or keys; d is even.
    positions : array of numbers, shape (n,), optional
        The position of each token; 0 to n - 1 unless given.
    base : float
        b of the angles.
    layout : {"interleaved", "halves"}
        Which numbers are a pair: neighbors, (0, 1), (2, 3), ..., as in the paper; or one from
        each half, (0, d/2), (1, d/2 + 1), ..., as in GPT-NeoX and the Hugging
        Face version of Llama. A weight trained with one is wrong with the other.
    scale : float
        s, by which the positions are divided: above 1, a longer text is squeezed into the
        positions that a model was trained on.

    Returns
    -------
    array, shape and dtype of `x`
        The angles are worked out in float64.

    Raises
    ------
    TypeError
        If `x` does not hold floats, `positions` no real numbers, or `base` or `scale` is not a
        number.
    ValueError
        If `x` is no matrix or of odd width, `positions` does not have shape (n,) or is not
        finite, `base` or `scale` is not finite and above 0, or `layout` is unknown.

    Source
    ------
    Su et al. 2021, *RoFormer*, section 3.4.2, Eq. (34). `scale` is Chen et al. 2023, *Extending
    Context Window of Large Language Models via Positional Interpolation*, section 2.3.

    Examples
    --------
    >>> rotary([[1.0, 0.0], [1.0, 0.0]]).round(3)
    array([[1.   , 0.   ],
           [0.54 , 0.841]])
    """
    x = read_floats(x, "x")
    if x.ndim < 2:
        raise ValueError(f"x must be a matrix (..., n, d); got shape {x.shape}")
    n, d = x.shape[-2:]
    if d % 2 or d == 0:
        raise ValueError(f"x must have an even width, as it turns in pairs; got shape {x.shape}")
    positions = np.arange(n) if positions is None else read_array(positions, "positions")
    if positions.dtype.kind not in "iuf":
        raise TypeError(f"positions must hold numbers; got {positions.dtype}")
    if positions.shape != (n,):
        raise ValueError(f"positions must have shape ({n},), one a token; got {positions.shape}")
    if not np.isfinite(positions).all():
        raise ValueError(f"positions must be finite; got {positions.tolist()}")
    pairs = {
        "interleaved": (slice(0, None, 2), slice(1, None, 2)),
        "halves": (slice(None, d // 2), slice(d // 2, None)),
    }
    if layout not in pairs:
        raise ValueError(f'layout must be "interleaved" or "halves"; got {layout!r}')
    angles = _angles(positions, d, base) / read_number(scale, "scale", "above 0")  # (n, d / 2)
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = pairs[layout]
    turned = np.empty_like(x)
    turned[..., first] = x[..., first] * cos - x[..., second] * sin
    turned[..., second] = x[..., first] * sin + x[..., second] * cos
    return turned


def alibi_bias(n_heads, n_q, n_k=None, *, dtype=np.float64):
    r"""Lower each score in proportion to the distance, with a different slope for each head.

    .. math:: B_{hij} = -m_h |i - j|

    Eq. (6) of "Where am I? Positions". The slopes m_h are 2^(-8/h), 2^(-16/h), ... for h heads.

    Parameters
    ----------
    n_heads : int
        If it is no power of 2, every second slope of twice as many heads fills the gap.
    n_q, n_k : int
        Number of queries and keys, in tokens; `n_k` is `n_q` unless given. Query 0 and key 0
        have the same position.
    dtype : float16, float32 or float64

    Returns
    -------
    array of `dtype`, shape (n_heads, n_q, n_k)
        For `score_bias` of `MultiHeadAttention`. Distance counts on both sides; the paper has
        the left side only, so add a causal mask for it.

    Raises
    ------
    TypeError
        If a size is not a whole number, or `dtype` is not one of the three.
    ValueError
        If `n_heads` is below 1, or another size is below 0.

    Source
    ------
    Press, Smith and Lewis 2022, *Train Short, Test Long*, section 3. Numbers of heads that are no
    power of 2 are in the authors' code alone, `get_slopes`.

    Examples
    --------
    >>> alibi_bias(8, 1, 3)[:2]
    array([[[ 0.  , -0.5 , -1.  ]],
    <BLANKLINE>
           [[ 0.  , -0.25, -0.5 ]]])
    """
    n_heads = read_size(n_heads, "n_heads", least=1)
    distance = np.abs(_offsets(n_q, n_k))  # (n_q, n_k)
    power = 2 ** math.floor(math.log2(n_heads))
    slopes = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    slopes += [2 ** (-4 * head / power) for head in range(1, 2 * (n_heads - power), 2)]
    bias = np.array(slopes)[:, None, None] * -distance  # whole numbers have no -0
    return bias.astype(read_dtype(dtype))  # (n_heads, n_q, n_k)


def relative_position_bias(table, n_q, n_k=None):
    r"""Look up what is added to each score, by the offset of the key from the query.

    .. math:: B_{hij} = T_h[\mathrm{clip}(j - i, -m, m) + m]

    Eq. (7) of "Where am I? Positions".

    Parameters
    ----------
    table : array of float16, float32 or float64, shape (n_heads, 2 m + 1)
        One learned number for each offset from -m (the key is m tokens before the query) to +m;
        offsets beyond take the last one.
    n_q, n_k : int
        Number of queries and keys, in tokens; `n_k` is `n_q` unless given.

    Returns
    -------
    array, dtype of `table`, shape (n_heads, n_q, n_k)
        For `score_bias` of `MultiHeadAttention`.

    Raises
    ------
    TypeError
        If `table` does not hold floats, or a size is not a whole number.
    ValueError
        If `table` is no matrix of odd width, or a size is below 0.

    Source
    ------
    The clipped offsets are Shaw, Uszkoreit and Vaswani 2018, section 3.2; one number a head,
    added to the score, is Raffel et al. 2020, *T5*, section 2.1.

    Examples
    --------
    >>> relative_position_bias([[-1.0, 0.0, 5.0]], 3)
    array([[[ 0.,  5.,  5.],
            [-1.,  0.,  5.],
            [-1., -1.,  0.]]])
    """
    table = read_floats(table, "table")
    if table.ndim != 2 or table.shape[1] % 2 == 0:
        raise ValueError(
            f"table must be a matrix (n_heads, 2 m + 1), of odd width; got shape {table.shape}"
        )
    most = table.shape[1] // 2
    return table[:, np.clip(_offsets(n_q, n_k), -most, most) + most]  # (n_heads, n_q, n_k)


def _angles(positions, d, base):
    """Return p / base ** (2 i / d) in float64, for each position and each pair i."""
    base = read_number(base, "base", "above 0")
    return positions[:, None] / base ** (np.arange(0, d, 2) / d)


def _offsets(n_q, n_k):
    """Return j - i for each query i and key j, shape (n_q, n_k)."""
    n_q = read_size(n_q, "n_q")
    n_k = n_q if n_k is None else read_size(n_k, "n_k")
    return np.arange(n_k) - np.arange(n_q)[:, None]
