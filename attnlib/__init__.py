"""Attention, small enough to read. The mathematics of the course; NumPy is all it needs."""

from attnlib.attention import scaled_dot_product_attention, softmax
from attnlib.masks import additive, blocked, causal_mask, padding_mask, window_mask

__all__ = [
    "additive",
    "blocked",
    "causal_mask",
    "padding_mask",
    "scaled_dot_product_attention",
    "softmax",
    "window_mask",
]
