"""The published cases of ONNX's operator Attention, held against this library.

ONNX describes one attention that every runtime has to compute in the same way, and publishes cases
for it: inputs, settings and the expected outputs. `attention` writes the operator with the parts of
this library, and `measure` says which cases it passes. `python -m attnlib.onnx_cases` stores the
answers in `onnx.csv`; `read` gives them back without the package onnx.
"""

import csv
import warnings
from pathlib import Path

import numpy as np

from attnlib.attention import attend
from attnlib.inputs import read_inputs, read_mask, read_scale
from attnlib.multihead import merge_heads, split_heads

STORED = Path(__file__).parent / "data" / "onnx.csv"
COLUMNS = ("case", "outcome", "difference")
# How far an output may be from the published one, as ONNX's own backend test allows.
RELATIVE, ABSOLUTE = 1e-3, 1e-7

PASSED = "passed"
NO_BFLOAT16 = "in bfloat16, which NumPy does not have"
NO_SCORES = "equal, except for the scores, which attnlib does not return"
WEIGHTS = 3  # the value of `qk_matmul_output_mode` that asks for the weights


def attention(
    queries,
    keys,
    values,
    mask=None,
    past_keys=None,
    past_values=None,
    lengths=None,
    *,
    q_num_heads=None,
    kv_num_heads=None,
    is_causal=False,
    left_window_size=-1,
    right_window_size=-1,
    scale=None,
    softcap=0.0,
    softmax_precision=None,
    qk_matmul_output_mode=0,
):
    """Return what the operator Attention returns, by the functions of this library.

    Parameters
    ----------
    queries, keys, values : array, shape (batch, heads, n, d), or (batch, n, heads * d)
    mask : array of bool or float, optional
        What is missing at its end is blocked.
    past_keys, past_values : array, shape (batch, kv_num_heads, n_past, d), optional
        A cache that comes before the keys.
    lengths : array of int, shape (batch,), optional
        How many keys of each sentence are real.
    q_num_heads, kv_num_heads : int
        With three axes only: the heads that the last axis holds.
    is_causal, left_window_size, right_window_size, scale, softcap
        The operator's attributes. -1 is a window without an end, a `softcap` of 0 is none.
    softmax_precision, qk_matmul_output_mode
        Change nothing here: a float16 is always worked out in float32, and the weights are what
        mode 3 asks for.

    Returns
    -------
    output, keys, values, weights
        The keys and values with those of the past.

    Source
    ------
    ONNX 1.23, operator Attention, version 25.
    """
    merged = np.ndim(queries) == 3
    if merged:
        queries = split_heads(queries, q_num_heads)
        keys, values = (split_heads(array, kv_num_heads) for array in (keys, values))
    if past_keys is not None:
        keys = np.concatenate([past_keys, keys], axis=-2)
        values = np.concatenate([past_values, values], axis=-2)
    n_q, n_k, shared = queries.shape[-2], keys.shape[-2], queries.shape[1] // keys.shape[1]

    # The position of each query among the keys, (batch or 1, 1, n_q, 1).
    before = 0 if past_keys is None else past_keys.shape[-2]
    if lengths is not None:
        before = np.reshape(lengths - n_q, (-1, 1, 1, 1)) if is_causal else before
    ahead = np.arange(n_k) - (np.arange(n_q)[:, None] + before)  # of the query; below 0: behind it
    allowed = np.ones_like(ahead, dtype=bool)
    if is_causal:
        allowed &= ahead <= 0
    if left_window_size >= 0:
        allowed &= -ahead <= left_window_size
    if right_window_size >= 0:
        allowed &= ahead <= right_window_size
    if lengths is not None:
        allowed = allowed & (np.arange(n_k) < np.reshape(lengths, (-1, 1, 1, 1)))
    bias = np.where(allowed, 0.0, -np.inf)
    if mask is not None:
        given = np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask
        missing = [(0, 0)] * (given.ndim - 1) + [(0, n_k - given.shape[-1])]
        bias = bias + np.pad(given, missing, constant_values=-np.inf)

    grouped = (np.repeat(array, shared, axis=1) for array in (keys, values))
    inputs = read_inputs(queries, *grouped)
    bias = read_mask(bias.astype(np.float32), (*queries.shape[:-1], n_k), is_bias=True)
    scale = read_scale(scale, *inputs)
    output, weights = attend(*inputs, bias, False, scale, softcap or None)
    return merge_heads(output) if merged else output, keys, values, weights


def cases():
    """Yield the name, the inputs, the attributes and the expected outputs of every case.

    ONNX also publishes each case written out as a graph of smaller operators; the inputs and
    outputs are the same, so these are left out.
    """
    from onnx.backend.test.case.node import collect_testcases
    from onnx.helper import get_attribute_value

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it computes the cases of all other operators first
        published = collect_testcases("Attention")
    for case in published:
        (node, *more) = case.model.graph.node
        if more:
            continue
        given, expected = (iter(arrays) for arrays in case.data_sets[0])
        inputs = [next(given) if name else None for name in node.input]
        outputs = [next(expected) if name else None for name in node.output]
        attributes = {at.name: get_attribute_value(at) for at in node.attribute}
        yield case.name, inputs, attributes, outputs


def measure(inputs, attributes, expected):
    """Return the outcome of a case, and its largest difference from what is published."""
    if inputs[0].dtype.name == "bfloat16":
        return NO_BFLOAT16, ""
    found = attention(*inputs, **attributes)
    scores = len(expected) == 4 and attributes.get("qk_matmul_output_mode", 0) != WEIGHTS
    pairs = [
        (ours, theirs)
        for ours, theirs in zip(found, expected[:3] if scores else expected, strict=False)
        if theirs is not None
    ]
    equal = all(np.allclose(a, b, rtol=RELATIVE, atol=ABSOLUTE) for a, b in pairs)
    apart = max(np.abs(a.astype(float) - b.astype(float)).max() for a, b in pairs)
    outcome = (NO_SCORES if scores else PASSED) if equal else "other numbers"
    return outcome, f"{apart:.0e}"


def read():
    """Return the stored rows, each with the keys COLUMNS."""
    with STORED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main():
    """Measure every case and store the rows."""
    rows = [(name, *measure(*case)) for name, *case in cases()]
    with STORED.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    print(f"{sum(row[1] == PASSED for row in rows)} of {len(rows)} cases pass")


if __name__ == "__main__":
    main()
