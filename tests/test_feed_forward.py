"""Feed-forward networks and activations: by hand, against PyTorch, without SciPy, every error."""

import ast
import math
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from attnlib import (
    ClampedSwiGLU,
    SwiGLU,
    feed_forward,
    gelu,
    gelu_tanh,
    relu,
    silu,
)
from tests.helpers import BATCH, D_FF, D_MODEL, DTYPES, N, raises, stirred, tokens

pytestmark = pytest.mark.filterwarnings("error")

TOLERANCE = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}
ACTIVATIONS = {"relu": relu, "gelu": gelu}
ELEMENTWISE = ACTIVATIONS | {"silu": silu, "gelu_tanh": gelu_tanh}
THEIRS = {"gelu_tanh": partial(functional.gelu, approximate="tanh")}


def test_relu_and_gelu_by_hand():
    assert relu([-2.0, 0.0, 3.0]).tolist() == [0, 0, 3]
    # A share of 0.8413 of the standard normal lies below 1.
    np.testing.assert_allclose(gelu([-1.0, 0, 1]), [-0.158655, 0, 0.841345], rtol=0, atol=5e-7)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_activations_equal_torch(name, dtype):
    x = np.linspace(-9, 9, 1001).astype(dtype).reshape(7, 11, 13)
    theirs = THEIRS.get(name) or getattr(functional, name)
    expected = theirs(torch.from_numpy(x)).numpy()
    got = ELEMENTWISE[name](x)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("activation", ELEMENTWISE.values())
def test_activations_of_what_is_not_finite_and_of_nothing(activation):
    with np.errstate(all="raise"):
        got = activation(np.array([np.nan, np.inf, -np.inf, 1e-310]))
    np.testing.assert_array_equal(got[:2], [np.nan, np.inf])
    assert activation(np.zeros((0, 3), np.float16)).shape == (0, 3)


def test_feed_forward_by_hand():
    w_1, b_1 = np.array([[1.0, 0, -1], [0, 2, 1]]), np.array([0.0, 1, 0.5])
    w_2, b_2 = np.array([[1.0, 10], [2, 20], [3, 30]]), np.array([0.0, -1])
    # [1, -1] W_1 + b_1 = [1, -1, -1.5] -> [1, 0, 0]; [2, 3] -> [2, 7, 1.5].
    got = feed_forward([[1.0, -1], [2, 3]], w_1, b_1, w_2, b_2)
    assert got.tolist() == [[1, 9], [20.5, 204]]
    assert feed_forward([[1.0, -1]], w_1, None, w_2, None).tolist() == [[1, 10]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_feed_forward_equals_torch(name, dtype):
    x = tokens(BATCH, N, D_MODEL, dtype=dtype)
    linear = [
        stirred(torch.nn.Linear(*sizes, dtype=DTYPES[dtype]))
        for sizes in ((D_MODEL, D_FF), (D_FF, D_MODEL))
    ]
    expected = linear[1](getattr(functional, name)(linear[0](torch.from_numpy(x))))
    fields = [p.detach().numpy().T for part in linear for p in (part.weight, part.bias)]
    got = feed_forward(x, *fields, ACTIVATIONS[name])
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected.detach().numpy(), rtol=0, atol=3 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gated_network_equals_torch(dtype, parity):
    x = tokens(BATCH, N, D_MODEL, dtype=dtype)
    shapes = (D_MODEL, D_FF), (D_MODEL, D_FF), (D_FF, D_MODEL), (D_FF,), (D_FF,), (D_MODEL,)
    fields = [tokens(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)]
    t, gate, up, down, b_gate, b_up, b_down = map(torch.from_numpy, (x, *fields))
    expected = (functional.silu(t @ gate) * (t @ up)) @ down
    parity("SwiGLU", "none", SwiGLU(*fields[:3])(x), expected.numpy())
    gated = functional.gelu(t @ gate + b_gate, approximate="tanh") * (t @ up + b_up)
    parity("GeGLU", "none", SwiGLU(*fields, gelu_tanh)(x), (gated @ down + b_down).numpy())


def test_the_limits_of_a_clamped_network_by_hand():
    one = np.eye(1)
    network = ClampedSwiGLU(one, -one, one, [0.0], [0.5], [0.25], limit=3.0, slope=2.0)
    swish = [x / (1 + math.exp(-2 * x)) for x in (1.0, 3.0, -9.0)]
    # The gate stops at 3 above and nowhere below, the other product at both -3 and 3.
    expected = [[swish[0] * 0.5 + 0.25], [swish[1] * -2 + 0.25], [swish[2] * 4 + 0.25]]
    np.testing.assert_allclose(network([[1.0], [9.0], [-9.0]]), expected, rtol=1e-14)
    published = ClampedSwiGLU(one, one, one)([[1.0], [9.0]])
    expected = [[2 / (1 + math.exp(-1.702))], [7 * 8 / (1 + math.exp(-1.702 * 7))]]
    np.testing.assert_allclose(published, expected, rtol=1e-14)
    with raises(ValueError, "limit must be finite and above 0; got 0"):
        ClampedSwiGLU(one, one, one, limit=0)
    with raises(TypeError, "slope must be a number; got str"):
        ClampedSwiGLU(one, one, one, slope="1")


WITHOUT_SCIPY = """
import sys
sys.modules.update({"scipy": None, "scipy.special": None})
import numpy as np
import attnlib, attnlib.check
x = np.linspace(-6, 6, 1001)
for dtype in (np.float16, np.float32, np.float64):
    assert attnlib.gelu(x.astype(dtype)).dtype == dtype
assert attnlib.gelu(np.zeros((0, 3))).shape == (0, 3)
assert "math" in sys.modules['attnlib.feed_forward'].erf.pyfunc.__module__
attnlib.gelu([np.nan, np.inf, -np.inf])
print([float(y).hex() for y in attnlib.gelu(x)])
"""


def test_gelu_is_the_same_without_scipy():
    command = [sys.executable, "-W", "error", "-c", WITHOUT_SCIPY]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.stderr == ""
    found = [float.fromhex(y) for y in ast.literal_eval(done.stdout)]
    np.testing.assert_allclose(found, gelu(np.linspace(-6, 6, 1001)), rtol=0, atol=1e-15)


def fields(**changes):
    """Return tokens of width 2 and a network of d_ff 3."""
    shapes = {"x": (5, 2), "w_1": (2, 3), "b_1": 3, "w_2": (3, 2), "b_2": 2}
    return {name: np.ones(shape) for name, shape in shapes.items()} | changes
