"""Attention, small enough to read: the mathematics of the course.

NumPy is all it needs. Where there is SciPy, GELU takes its error function, which is faster.
"""

from attnlib.attention import scaled_dot_product_attention, softmax
from attnlib.blockwise import blockwise_attention, merge_partials
from attnlib.caches import KeyValueCache
from attnlib.experts import MixtureOfExperts
from attnlib.feed_forward import (
    ClampedSwiGLU,
    FeedForward,
    SwiGLU,
    feed_forward,
    gelu,
    gelu_tanh,
    relu,
    silu,
)
from attnlib.gradients import attention_backward, softmax_backward
from attnlib.inspection import (
    head_outputs,
    ledger,
    lens,
    mean_outputs,
    replace_heads,
    row_ledger,
)
from attnlib.judging import Judgment, judge
from attnlib.layers import DecoderLayer, Encoder, EncoderLayer
from attnlib.linear import delta_rule, linear_attention
from attnlib.masks import additive, blocked, causal_mask, padding_mask, top_k_mask, window_mask
from attnlib.multihead import MultiHeadAttention, merge_heads, split_heads
from attnlib.norms import LayerNorm, RMSNorm, layer_norm, rms_norm
from attnlib.positions import (
    alibi_bias,
    relative_position_bias,
    rotary,
    rotary_frequencies,
    sinusoidal_positions,
)

__all__ = [
    "ClampedSwiGLU",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Judgment",
    "KeyValueCache",
    "LayerNorm",
    "MixtureOfExperts",
    "MultiHeadAttention",
    "RMSNorm",
    "SwiGLU",
    "additive",
    "alibi_bias",
    "attention_backward",
    "blocked",
    "blockwise_attention",
    "causal_mask",
    "delta_rule",
    "feed_forward",
    "gelu",
    "gelu_tanh",
    "head_outputs",
    "judge",
    "layer_norm",
    "ledger",
    "lens",
    "linear_attention",
    "mean_outputs",
    "merge_heads",
    "merge_partials",
    "padding_mask",
    "relative_position_bias",
    "relu",
    "replace_heads",
    "rms_norm",
    "rotary",
    "rotary_frequencies",
    "row_ledger",
    "scaled_dot_product_attention",
    "silu",
    "sinusoidal_positions",
    "softmax",
    "softmax_backward",
    "split_heads",
    "top_k_mask",
    "window_mask",
]
