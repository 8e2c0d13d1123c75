"""What counts as input: floats, sizes, dtypes, masks, scales, tokens, weights.

Public functions read what they are given here, once, at their door. Each reader returns what the
mathematics can trust, or says what was needed and what came. The arrays that come back may be the
caller's own, so they must not be written to.
"""

import contextlib
import math
import sys
from numbers import Integral, Real

import numpy as np

FLOATS = (np.float16, np.float32, np.float64)
LARGEST = float(np.finfo(np.float32).max)


def quiet_nan(function):
    """Let a function pass NaN and infinity on without a warning.

    Both are valid input: what a mask hides, and padding, may be anything. And exp
    underflows to 0 by design.
    """
    return np.errstate(all="ignore")(function)


def read_array(array, name):
    """Return `array` as a NumPy array; a list of rows counts if they have one length."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a plain array, its mask apart; got a MaskedArray")
    try:
        return np.asarray(array)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length; got unequal rows") from None
    except RuntimeError as error:  # PyTorch's, about a tensor that requires its gradient
        raise TypeError(f"{name} must be an array; got {type(array).__name__}: {error}") from None


def read_floats(array, name):
    """Return `array` as an array of float16, float32 or float64, and refuse all else."""
    if type(array) is not np.ndarray:  # np.matrix has another meaning of *
        array = read_array(array, name)
    if array.dtype.type not in FLOATS:
        raise TypeError(
            f"{name} must hold floats (float16, float32 or float64, so 1.0 and not 1); "
            f"got {array.dtype}"
        )
    return array


def wide_dtype(dtype):
    """Return float32 at least: a square, a score or a sum can pass float16's 65504."""
    return np.promote_types(dtype, np.float32)


def widen(x):
    """Return `x` in float32 at least, as `wide_dtype` says."""
    return x.astype(wide_dtype(x.dtype), copy=False)


def read_matrix(matrix, name):
    """Return a weight as an array of floats (d_in, d_out), and refuse all else."""
    matrix = read_floats(matrix, name)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix (d_in, d_out); got shape {matrix.shape}")
    return matrix


def read_vector(vector, name, width=None):
    """Return `vector` as an array of floats (width,), of any width if None; None stays None."""
    if vector is None:
        return None
    vector = read_floats(vector, name)
    if width is None and vector.ndim != 1:
        raise ValueError(f"{name} must be a vector (d,); got shape {vector.shape}")
    if width is not None and vector.shape != (width,):
        raise ValueError(f"{name} must have shape ({width},); got {vector.shape}")
    return vector


def read_axis(axis, scores, name="scores"):
    """Return `axis` if `scores` have it."""
    if scores.ndim == 0:
        raise ValueError(f"{name} must have at least one axis; got a single number")
    whole = isinstance(axis, Integral) and not isinstance(axis, bool)
    if not whole or not -scores.ndim <= axis < scores.ndim:
        raise ValueError(
            f"axis must be a whole number from {-scores.ndim} to {scores.ndim - 1} "
            f"for {name} of shape {scores.shape}; got {axis!r}"
        )
    return axis


def read_tokens(x, name, width):
    """Return `x` as an array of floats (..., n, width), of any width if None; refuse all else."""
    x = read_floats(x, name)
    if x.ndim < 2:
        needed = "d_model" if width is None else width
        raise ValueError(f"{name} must be a matrix (..., n, {needed}); got shape {x.shape}")
    if width is not None and x.shape[-1] != width:
        raise ValueError(f"{name} must be as wide as the layer, {width}; got shape {x.shape}")
    return x


def read_ids(tokens, n_tokens=None):
    """Return tokens as an array of whole numbers (..., n), each below `n_tokens`."""
    tokens = read_array(tokens, "tokens")
    if tokens.ndim == 0:
        raise ValueError("tokens must have an axis (..., n); got a single number")
    if tokens.size == 0:
        tokens = tokens.astype(int)  # an empty list counts as float
    if tokens.dtype.kind not in "iu":
        raise TypeError(f"tokens must be whole numbers; got {tokens.dtype}")
    if n_tokens is not None:
        unknown = (tokens < 0) | (tokens >= n_tokens)
        if unknown.any():
            raise ValueError(f"tokens must be from 0 to {n_tokens - 1}; got {tokens[unknown][0]}")
    return tokens


def read_dtype(dtype):
    """Return `dtype` as float16, float32 or float64, and refuse all else."""
    with contextlib.suppress(TypeError):  # no dtype is answered below, in the words for a wrong one
        dtype = np.dtype(dtype).type
    if not isinstance(dtype, type) or dtype not in FLOATS:
        raise TypeError(f"dtype must be float16, float32 or float64; got {dtype!r}")
    return dtype


def read_size(number, name, least=0, below=None):
    """Return `number` if it can be a size: a whole number from `least` on, less than `below`."""
    if not isinstance(number, Integral) or isinstance(number, bool):
        raise TypeError(f"{name} must be a whole number; got {number!r}")
    if number < least:
        raise ValueError(f"{name} must be {least} or more; got {number}")
    if number > sys.maxsize:
        raise ValueError(f"{name} must be at most {sys.maxsize}; got {number}")
    if below is not None and number >= below:
        raise ValueError(f"{name} must be from {least} to {below - 1}; got {number}")
    return int(number)


def read_number(number, name, sign=""):
    """Return a finite number as a Python float, which never widens float32.

    `sign` says more about it: "above 0" or "0 or more".
    """
    if not isinstance(number, Real) or isinstance(number, bool):
        raise TypeError(f"{name} must be a number; got {type(number).__name__}")
    try:
        as_float = float(number)
    except OverflowError:
        raise ValueError(f"{name} must fit into a float; got more than 10^308") from None
    has_sign = {"": True, "above 0": number > 0, "0 or more": number >= 0}[sign]
    if not (math.isfinite(as_float) and has_sign):
        raise ValueError(f"{name} must be finite{sign and ' and ' + sign}; got {number}")
    return as_float


def read_scale(scale, queries, *others):
    """Return `scale` as a Python float that the arrays' dtype can hold, 1 / sqrt(d_k) if None."""
    if scale is None:
        return 1 / math.sqrt(queries.shape[-1])
    scale = read_number(scale, "scale")
    if abs(scale) > LARGEST and wide_dtype(np.result_type(queries, *others)) == np.float32:
        raise ValueError(f"scale must be finite in float32; got {scale}")
    return scale


def read_flag(flag, name):
    """Return `flag` as a bool, and refuse all else: of other things most count as true."""
    if not isinstance(flag, bool | np.bool):
        raise TypeError(f"{name} must be True or False; got {flag!r}")
    return bool(flag)


def read_list(values, name):
    """Return `values` as a list."""
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name} must be a list; got {type(values).__name__}") from None


def read_generator(rng):
    """Return `rng` if it is a generator of NumPy."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator; got {type(rng).__name__}")
    return rng


def read_function(function, name):
    """Return `function` if it can be called."""
    if not callable(function):
        raise TypeError(f"{name} must be a function; got {type(function).__name__}")
    return function


def read_result(result, name, shape, kinds="f"):
    """Return what a caller's function has returned as an array, if it has this shape and kind."""
    if type(result) is not np.ndarray:
        result = read_array(result, f"what {name} returns")
    if result.dtype.kind not in kinds:
        needed = {"f": "floats", "b": "True and False", "iu": "whole numbers"}[kinds]
        raise TypeError(f"{name} must return {needed}; got {result.dtype}")
    if result.shape != shape:
        raise ValueError(f"{name} must return an array of shape {shape}; got {result.shape}")
    return result


def read_inputs(queries, keys, values):
    """Return queries, keys and values as arrays whose shapes fit together.

    The queries come with all the leading axes of the result, also those of the values.
    """
    queries = read_floats(queries, "queries")
    keys = read_floats(keys, "keys")
    values = read_floats(values, "values")
    for array, name, shape in (
        (queries, "queries", "(..., n_q, d_k)"),
        (keys, "keys", "(..., n_k, d_k)"),
        (values, "values", "(..., n_k, d_v)"),
    ):
        if array.ndim < 2:
            raise ValueError(f"{name} must be a matrix {shape}; got shape {array.shape}")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"queries and keys must share d_k; got {queries.shape} and {keys.shape}")
    if queries.shape[-1] == 0:
        raise ValueError(
            f"queries and keys must have d_k of at least 1; got {queries.shape} and {keys.shape}"
        )
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(f"keys and values must share n_k; got {keys.shape} and {values.shape}")
    try:
        leading = np.broadcast_shapes(queries.shape[:-2], keys.shape[:-2], values.shape[:-2])
    except ValueError:
        raise ValueError(
            "the leading axes of queries, keys and values must broadcast; "
            f"got {queries.shape}, {keys.shape} and {values.shape}"
        ) from None
    return np.broadcast_to(queries, leading + queries.shape[-2:]), keys, values


def scores_shape(x, memory):
    """Return (..., n_q, n_k): the shape of the scores of one head."""
    leading = x.shape[:-2]
    if memory.shape[:-2] != leading:
        try:
            leading = np.broadcast_shapes(leading, memory.shape[:-2])
        except ValueError:
            raise ValueError(
                f"the leading axes of x and memory must broadcast; got {x.shape} and {memory.shape}"
            ) from None
    return (*leading, x.shape[-2], memory.shape[-2])


def fits(shape, other):
    """Return whether an array of this shape broadcasts to the other shape."""
    sizes = zip(shape[::-1], other[::-1], strict=False)
    # A list and not a generator, which would cost a call for each axis: masks are read often.
    return len(shape) <= len(other) and not [one for one, size in sizes if one not in (1, size)]


def read_mask(mask, shape, name="mask", *, is_bias=False):
    """Return `mask` as an array of bool or float that fits scores of `shape` (..., n_q, n_k).

    None stays None: nothing is blocked. Floats that are all 0 or 1, with both among them, are
    refused unless they are a bias: they must have been meant as True and False, and would block
    nothing when they are added to the scores.
    """
    if mask is None:
        return None
    mask = read_array(mask, name)
    if mask.dtype != bool and mask.dtype.type not in FLOATS:
        raise TypeError(
            f"{name} must be bool (True = may attend) or float (added to the scores); "
            f"got {mask.dtype}"
        )
    if not fits(mask.shape, shape):
        raise ValueError(f"{name} must broadcast to (..., n_q, n_k) = {shape}; got {mask.shape}")
    if mask.dtype != bool:
        unusable = np.isnan(mask) | np.isposinf(mask)
        if unusable.any():
            raise ValueError(
                f"{name} must hold finite numbers, or -inf to block; got {mask[unusable][0]}"
            )
        ones = mask == 1
        if not is_bias and ones.any() and not ones.all() and ((mask == 0) | ones).all():
            raise ValueError(
                f"{name} must be True and False, or 0 and -inf to be added to the scores; got 0 "
                f"and 1 as {mask.dtype}: .astype(bool) makes them True and False"
            )
    return mask
