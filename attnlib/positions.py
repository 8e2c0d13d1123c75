"""Positions: four ways to give attention the position of each token.

`sinusoidal_positions` is added to the embeddings, `rotary` turns queries and keys, `alibi_bias`
and `relative_position_bias` are added to the scores. `rotary_frequencies` slows `rotary` down for
texts that are longer than those of the training.
"""

import math

import numpy as np

from attnlib.inputs import (
    quiet_nan,
    read_array,
    read_dtype,
    read_flag,
    read_floats,
    read_number,
    read_size,
    read_vector,
)


def sinusoidal_positions(n, d_model, *, base=10000.0, dtype=np.float64):
    r"""Write each position as d_model / 2 hands of a clock, each slower than the one before.

    .. math::

        PE(p, 2i) &= \sin(p / b^{2i / d_{model}}) \\
        PE(p, 2i + 1) &= \cos(p / b^{2i / d_{model}})

    Eqs. (3) and (4) of "Where am I? Positions".

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
def rotary(
    x,
    positions=None,
    *,
    base=10000.0,
    layout="interleaved",
    scale=1.0,
    frequencies=None,
    gain=1.0,
):
    r"""Turn each pair of numbers by an angle that grows with the position (RoPE).

    .. math::

        (a, b) &\mapsto (a \cos \theta - b \sin \theta,\; a \sin \theta + b \cos \theta) \\
        \theta &= \frac{p}{s\, b^{2i / d}}, \quad\text{or}\quad \frac{p}{s} f_i

    Eq. (1) of "Where am I? Positions". Queries and keys are rotated, values are not, so that the
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
    frequencies : array of float, shape (d / 2,), optional
        f, the angle of each pair per position, as from `rotary_frequencies`, instead of those that
        follow from `base`.
    gain : float
        What the turned numbers are multiplied by; 1 turns and does nothing else.

    Returns
    -------
    array, shape and dtype of `x`
        The angles are worked out in float64.

    Raises
    ------
    TypeError
        If `x` or `frequencies` does not hold floats, `positions` no real numbers, or `base`,
        `scale` or `gain` is not a number.
    ValueError
        If `x` is not a matrix or of odd width, `positions` does not have shape (n,) or is not
        finite, `base`, `scale` or `gain` is not finite and above 0, `layout` is unknown, or
        `frequencies` does not have shape (d / 2,).

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
        raise ValueError(f"positions must have shape ({n},), one per token; got {positions.shape}")
    if not np.isfinite(positions).all():
        raise ValueError(f"positions must be finite; got {positions.tolist()}")
    pairs = {
        "interleaved": (slice(0, None, 2), slice(1, None, 2)),
        "halves": (slice(None, d // 2), slice(d // 2, None)),
    }
    if not (isinstance(layout, str) and layout in pairs):
        raise ValueError(f'layout must be "interleaved" or "halves"; got {layout!r}')
    frequencies = read_vector(frequencies, "frequencies", d // 2)
    if frequencies is None:
        angles = _angles(positions, d, base)
    else:
        angles = positions[:, None] * frequencies.astype(np.float64)
    angles /= read_number(scale, "scale", "above 0")  # (n, d / 2)
    gain = read_number(gain, "gain", "above 0")
    cos, sin = np.cos(angles) * gain, np.sin(angles) * gain
    first, second = pairs[layout]
    turned = np.empty_like(x)
    turned[..., first] = x[..., first] * cos - x[..., second] * sin
    turned[..., second] = x[..., first] * sin + x[..., second] * cos
    return turned


@quiet_nan
def rotary_frequencies(d, *, base=10000.0, stretch=None, length=None):
    r"""Return how fast each pair of numbers turns, for texts longer than those of the training.

    .. math:: f_i = b^{-2i / d}

    A pair makes :math:`r_i = L f_i / 2 \pi` turns within the L positions of the training. Where a
    longer text would turn it to angles that no training has shown, `stretch` slows it down, by the
    factor s at most. Its `rope_type` says how:

    .. math::

        \text{linear} &: f_i / s \\
        \text{ntk} &: (b\, s^{d / (d - 2)})^{-2i / d} \\
        \text{dynamic} &: \text{ntk with } \max(1, s n / L - s + 1) \text{ for } s \\
        \text{llama3} &: (1 - \gamma_i) f_i / s + \gamma_i f_i \quad\text{with}\quad
            \gamma_i = \mathrm{clip}\Big(\frac{r_i - \alpha}{\beta - \alpha}, 0, 1\Big) \\
        \text{yarn} &: \text{the same with}\quad
            \gamma_i = 1 - \mathrm{clip}\Big(\frac{i - l}{h - l}, 0, 1\Big)

    In yarn, l and h are the pairs that make `beta_fast` and `beta_slow` turns, rounded outwards
    unless `truncate` is False: i = d ln(L / (2 pi turns)) / (2 ln b). It also has a gain, 1 + .1 ln
    s, which makes the weights of the attention a little steeper.

    Parameters
    ----------
    d : int
        The width of a query, even.
    base : float
        b of the angles.
    stretch : dict, optional
        `rope_scaling` of a published configuration: `rope_type` ("default", "linear", "ntk",
        "dynamic", "llama3" or "yarn", which older files call `type`); `factor`, s;
        `original_max_position_embeddings`, L; for llama3 also `low_freq_factor`, alpha, and
        `high_freq_factor`, beta; for yarn, if not 32, 1, True and the gain above, `beta_fast`,
        `beta_slow`, `truncate` and `attention_factor`.
    length : int, optional
        n, the length of the text in tokens, which "dynamic" alone needs.

    Returns
    -------
    frequencies : array of float64, shape (d / 2,)
        Angles per position, for `rotary`.
    gain : float
        For `rotary`; 1 but for yarn.

    Raises
    ------
    TypeError
        If `stretch` is not a dict, or a number is of the wrong kind.
    ValueError
        If `d` is odd, a number is out of bounds, or `stretch` has a rule that is unknown, or not
        the fields of its rule, or others.

    Source
    ------
    Su et al. 2021, *RoFormer*, section 3.2.2. "linear" is Chen et al. 2023, *Extending Context
    Window of Large Language Models via Positional Interpolation*, section 2.3; "ntk", "dynamic"
    and "yarn" are Peng et al. 2023, *YaRN*, sections 3.1, 3.3 and 3.4; "llama3" is the code that
    Meta published with Llama 3.1.

    Examples
    --------
    >>> rotary_frequencies(4, base=100.0)
    (array([1. , 0.1]), 1.0)
    >>> rotary_frequencies(4, base=100.0, stretch={"rope_type": "ntk", "factor": 4.0})
    (array([1.   , 0.025]), 1.0)
    """
    d = read_size(d, "d", least=2)
    if d % 2:
        raise ValueError(f"d must be even, as rotary turns in pairs; got {d}")
    base = read_number(base, "base", "above 0")
    rule, given = _read_stretch(stretch)
    frequencies, gain = 1 / _angle_divisors(d, base), 1.0
    if rule == "linear":
        frequencies = frequencies / given["factor"]
    elif rule == "ntk":
        frequencies = _ntk(d, base, given["factor"])
    elif rule == "dynamic":
        trained, factor = given["original_max_position_embeddings"], given["factor"]
        longer = max(read_size(length, "length") / trained, 1)
        frequencies = _ntk(d, base, factor * longer - factor + 1)
    elif rule == "llama3":
        turns = given["original_max_position_embeddings"] * frequencies / (2 * math.pi)
        low, high = given["low_freq_factor"], given["high_freq_factor"]
        frequencies = _blend(frequencies, given["factor"], _ramp(turns, low, high))
    elif rule == "yarn":
        kept = 1 - _ramp(np.arange(d // 2), *_yarn_pairs(d, base, given))
        frequencies = _blend(frequencies, given["factor"], kept)
        gain = given["attention_factor"]
        if gain is None:
            gain = 1 + 0.1 * math.log(given["factor"])
    if not (np.isfinite(frequencies).all() and frequencies.all()):
        raise ValueError(
            "base and stretch must leave frequencies above 0 and finite; "
            f"got {frequencies.min()} to {frequencies.max()}"
        )
    return frequencies, gain


def alibi_bias(n_heads, n_q, n_k=None, *, dtype=np.float64):
    r"""Lower each score in proportion to the distance, with a different slope for each head.

    .. math:: B_{hij} = -m_h |i - j|

    Eq. (6) of "Where am I? Positions". The slopes m_h are 2^(-8/h), 2^(-16/h), ... for h heads.

    Parameters
    ----------
    n_heads : int
        If it is not a power of 2, every second slope of twice as many heads fills the gap.
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

    .. math:: B_{hij} = T_h[\mathrm{clip}(j - i, -r, r) + r]

    Eq. (7) of "Where am I? Positions".

    Parameters
    ----------
    table : array of float16, float32 or float64, shape (n_heads, 2 r + 1)
        One learned number for each offset from -r (the key is r tokens before the query) to +r;
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
        If `table` is not a matrix of odd width, or a size is below 0.

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
            f"table must be a matrix (n_heads, 2 r + 1), of odd width; got shape {table.shape}"
        )
    most = table.shape[1] // 2
    return table[:, np.clip(_offsets(n_q, n_k), -most, most) + most]  # (n_heads, n_q, n_k)


# The fields of a stretched configuration, by its rule, and those that it may leave out.
_STRETCHES = {
    "default": [],
    "linear": ["factor"],
    "ntk": ["factor"],
    "dynamic": ["factor", "original_max_position_embeddings"],
    "llama3": [
        "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
    ],
    "yarn": ["factor", "original_max_position_embeddings"],
}  # fmt: skip
_YARN = {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": True, "attention_factor": None}


def _read_stretch(stretch):
    """Return the rule and the numbers of a stretched configuration, or refuse it."""
    if stretch is None:
        return "default", {}
    if not isinstance(stretch, dict):
        raise TypeError(f"stretch must be a dict; got {type(stretch).__name__}")
    rule = stretch.get("rope_type", stretch.get("type"))
    if not (isinstance(rule, str) and rule in _STRETCHES):
        raise ValueError(f"rope_type must be one of {', '.join(_STRETCHES)}; got {rule!r}")
    optional = _YARN if rule == "yarn" else {}
    given = {name: value for name, value in stretch.items() if name not in ("rope_type", "type")}
    missing = [name for name in _STRETCHES[rule] if name not in given]
    unknown = [name for name in given if name not in (*_STRETCHES[rule], *optional)]
    if missing or unknown:
        raise ValueError(
            f'stretch must have the fields of "{rule}"; missing: {", ".join(missing) or "none"}; '
            f"unknown: {', '.join(unknown) or 'none'}"
        )
    given = optional | given
    for name, number in given.items():
        if name == "truncate":
            given[name] = read_flag(number, name)
        elif not (name == "attention_factor" and number is None):
            given[name] = read_number(number, name, "above 0")
    if given.get("factor", 1) < 1:
        raise ValueError(f"factor must be 1 or more; got {given['factor']}")
    return rule, given


def _ntk(d, base, factor):
    """Return frequencies whose slowest is divided by `factor`, and whose fastest by nothing."""
    if d == 2:
        raise ValueError("d must be 4 or more to stretch by a larger base; got 2")
    return 1 / _angle_divisors(d, base * np.float64(factor) ** (d / (d - 2)))


def _ramp(x, low, high):
    """Return 0 up to `low`, 1 from `high` on, and a line between them."""
    # Bounds that meet make a step, whose exact place the published code sets so.
    return np.clip((x - low) / (high - low if high != low else 1e-3), 0, 1)


def _blend(frequencies, factor, kept):
    """Return what is kept of each frequency, and the rest divided by `factor`."""
    return (1 - kept) * frequencies / factor + kept * frequencies


def _yarn_pairs(d, base, given):
    """Return the pairs that make `beta_fast` and `beta_slow` turns within the training length."""
    if base == 1:
        raise ValueError("base must not be 1 for yarn, as then all pairs turn alike; got 1")
    trained = given["original_max_position_embeddings"]
    low, high = (
        d * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(base))
        for turns in (given["beta_fast"], given["beta_slow"])
    )
    if given["truncate"]:
        low, high = math.floor(low), math.ceil(high)
    return max(low, 0), min(high, d - 1)


def _angles(positions, d, base):
    """Return p / base ** (2 i / d) in float64, for each position and each pair i."""
    return positions[:, None] / _angle_divisors(d, read_number(base, "base", "above 0"))


def _angle_divisors(d, base):
    """Return base ** (2 i / d) in float64, for each pair i."""
    return base ** (np.arange(0, d, 2) / d)


def _offsets(n_q, n_k):
    """Return j - i for each query i and key j, shape (n_q, n_k)."""
    n_q = read_size(n_q, "n_q")
    n_k = n_q if n_k is None else read_size(n_k, "n_k")
    return np.arange(n_k) - np.arange(n_q)[:, None]
