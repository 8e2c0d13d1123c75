"""The same attention in linear memory: some queries at a time, every step in one small buffer."""

import numpy as np

from attnlib.attention import (
    apply_mask,
    as_size,
    read_inputs,
    read_mask,
    read_scale,
    weighted_sum,
)


@np.errstate(all="ignore")  # NaN behind a mask is valid input, so it must not warn
def blockwise_attention(queries, keys, values, mask=None, *, causal=False, scale=None, block=128):
    queries, keys, values = read_inputs(queries, keys, values)
    *leading, n_q, _ = queries.shape
    n_k, dtype = keys.shape[-2], queries.dtype
    keys = np.broadcast_to(keys, (*leading, *keys.shape[-2:]))
    values = np.broadcast_to(values, (*leading, *values.shape[-2:]))
    if mask is not None:
        mask = np.broadcast_to(read_mask(mask, (*leading, n_q, n_k)), (*leading, n_q, n_k))
    scale = read_scale(scale, d_k=queries.shape[-1])
    block = as_size(block, "block", least=1)

    wide = np.result_type(dtype, np.float32)
    output = np.empty((*leading, n_q, values.shape[-1]), dtype)
    buffer = np.empty((min(block, n_q), n_k), wide)
    for head in np.ndindex(*leading):
        head_keys, head_values = (
            keys[head].astype(wide, copy=False),
            values[head].astype(wide, copy=False),
        )
        for start in range(0, n_q, block):
            rows = slice(start, min(start + block, n_q))
            seen = min(rows.stop, n_k) if causal else n_k
            scaled = queries[head][rows].astype(wide, copy=False) * scale
            scores = np.matmul(scaled, head_keys[:seen].T, out=buffer[: len(scaled), :seen])
            allowed = np.tri(len(scaled), seen, start, dtype=bool) if causal else np.True_
            allowed = apply_mask(scores, None if mask is None else mask[head][rows, :seen], allowed)
            largest = scores.max(-1, keepdims=True, initial=np.finfo(wide).min)
            scores -= largest
            np.exp(scores, out=scores)
            total = scores.sum(-1, keepdims=True)
            blended = weighted_sum(scores, head_values[:seen], allowed)
            output[head][rows] = blended / np.where(total == 0, 1, total)
    return output
