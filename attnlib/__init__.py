"""Attention, small enough to read: the mathematics of the course.

NumPy is all it needs. Where there is SciPy, GELU takes its error function, which is faster.
"""

from attnlib.attention import scaled_dot_product_attention, softmax
from attnlib.blockwise import blockwise_attention
from attnlib.feed_forward import FeedForward, SwiGLU, feed_forward, gelu, relu, silu
from attnlib.gradients import attention_backward, softmax_backward
from attnlib.layers import DecoderLayer, Encoder, EncoderLayer
from attnlib.masks import additive, blocked, causal_mask, padding_mask, window_mask
from attnlib.multihead import MultiHeadAttention, merge_heads, split_heads
from attnlib.norms import LayerNorm, RMSNorm, layer_norm, rms_norm
from attnlib.positions import (
    alibi_bias,
    relative_position_bias,
    rotary,
    sinusoidal_positions,
)

__all__ = [
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "MultiHeadAttention",
    "RMSNorm",
    "SwiGLU",
    "additive",
    "alibi_bias",
    "attention_backward",
    "blocked",
    "blockwise_attention",
    "causal_mask",
    "feed_forward",
    "gelu",
    "layer_norm",
    "merge_heads",
    "padding_mask",
    "relative_position_bias",
    "relu",
    "rms_norm",
    "rotary",
    "scaled_dot_product_attention",
    "silu",
    "sinusoidal_positions",
    "softmax",
    "softmax_backward",
    "split_heads",
    "window_mask",
]
