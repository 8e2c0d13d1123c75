"""The numbers that faq.md states."""

import math

import pytest
import torch
from torch import nn


def variance_of_scaled_scores(query_weights, key_weights, n_heads):
    """Measure it for tokens of variance 1."""
    d_model = len(query_weights)
    tokens = torch.randn(256, d_model, generator=torch.Generator().manual_seed(0))
    queries, keys = (
        (tokens @ weights.T).view(256, n_heads, -1).transpose(0, 1)  # (n_heads, 256, d_k)
        for weights in (query_weights, key_weights)
    )
    scores = queries @ keys.transpose(1, 2)  # (n_heads, 256, 256)
    return (scores / math.sqrt(d_model / n_heads)).var().item()


@pytest.mark.parametrize("d_model", [512, 768])
def test_scaled_scores_seldom_start_with_variance_1(d_model):
    torch.manual_seed(0)
    n_heads = d_model // 64
    packed = nn.MultiheadAttention(d_model, n_heads).in_proj_weight.detach()
    linear = [nn.Linear(d_model, d_model).weight.detach() for _ in range(2)]
    small = [0.02 * torch.randn(d_model, d_model) for _ in range(2)]
    measured = [
        variance_of_scaled_scores(*weights, n_heads)
        for weights in (packed.chunk(3)[:2], linear, small)
    ]
    assert measured == pytest.approx([0.25, 0.11, {512: 0.04, 768: 0.09}[d_model]], abs=0.006)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_row_of_minus_1e9_depends_on_the_type(dtype):
    scores = torch.tensor([1.0, 3.0], dtype=dtype)
    weights = torch.softmax((scores + torch.tensor(-1e9, dtype=dtype)).double(), -1)
    expected = torch.softmax(scores, -1) if dtype == torch.float64 else torch.full((2,), 0.5)
    assert torch.allclose(weights, expected.double())


def test_16_bits_have_no_1e9():
    assert torch.tensor(-1e9, dtype=torch.bfloat16).item() == -998_244_352
    assert torch.tensor(-1e9, dtype=torch.float16).item() == -math.inf
    assert torch.finfo(torch.float16).max == 65_504
    with pytest.raises(RuntimeError, match="overflow"):
        torch.zeros(2, dtype=torch.float16).masked_fill(torch.tensor([True, True]), -1e9)
