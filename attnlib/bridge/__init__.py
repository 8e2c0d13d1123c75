"""Weights to and from PyTorch, so that the two can be held against each other.

The only modules that import torch, and only inside their functions. PyTorch stores the transpose
of each weight here (it multiplies by `weight.T`), and one matrix for all of W_Q, W_K and W_V.
Dropout has no weights: what comes over is the layer as it is in `eval()`.
"""

from attnlib.bridge.read_torch import from_torch
from attnlib.bridge.write_torch import to_torch

__all__ = ["from_torch", "to_torch"]
