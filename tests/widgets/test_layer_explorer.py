"""LayerExplorer: its numbers in Python and in JavaScript, what they show, what its picture says."""

import itertools
import math
import re

import numpy as np
import pytest
import torch

import attnlib
from attnlib.widgets import LayerExplorer
from attnlib.widgets import layer_explorer as module
from tests.widgets.pictures import close, js, part, picture, run
from tests.widgets.samples import every

pytestmark = pytest.mark.filterwarnings("error")
WAYS = itertools.product([True, False], module.NORMS, [True, False])
SWITCHES = [dict(zip(("residual", "norm", "feed_forward"), way, strict=True)) for way in WAYS]
each_way = pytest.mark.parametrize("switches", SWITCHES, ids=str)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_with_all_parts_pytorch_gives_the_same_vectors(norm):
    explorer = LayerExplorer(norm=norm, depth=11, seed=7)
    x = torch.tensor(explorer.states[0])[None]
    for (a, w_1, w_2), state in zip(module.random_layers(7)[:11], explorer.states[1:], strict=True):
        options = {"norm_first": norm == "pre", "batch_first": True, "bias": False}
        layer = torch.nn.TransformerEncoderLayer(16, 4, 64, dtype=torch.float64, **options).eval()
        with torch.no_grad():
            for parameter, weight in (
                (layer.self_attn.in_proj_weight, np.hstack([a.w_q, a.w_k, a.w_v])),
                (layer.self_attn.out_proj.weight, a.w_o),
                (layer.linear1.weight, w_1),
                (layer.linear2.weight, w_2),
            ):
                parameter.copy_(torch.tensor(weight.T))
            x = layer(x)
        close(state, x[0].numpy(), 1e-12)


@each_way
def test_one_layer_written_out(switches):
    explorer = LayerExplorer(**switches, depth=1, seed=2)
    attention, w_1, w_2 = module.random_layers(2)[0]
    x = explorer.states[0]
    sublayers = [lambda x: attention(x)[0], lambda x: np.maximum(x @ w_1, 0) @ w_2]
    for sublayer in sublayers if switches["feed_forward"] else sublayers[:1]:
        y = sublayer(attnlib.layer_norm(x) if switches["norm"] == "pre" else x)
        x = x + y if switches["residual"] else y
        x = attnlib.layer_norm(x) if switches["norm"] == "post" else x
    np.testing.assert_allclose(explorer.states[1], x, rtol=1e-12, atol=1e-15)


def test_the_weights_are_as_wide_as_those_of_pytorch():
    torch.manual_seed(0)
    theirs = [torch.nn.TransformerEncoderLayer(16, 4, 64) for _ in range(50)]
    ours = [layer for seed in range(3) for layer in module.random_layers(seed)]
    for mine, parameter in (
        (lambda layer: layer[0].w_q, lambda layer: layer.self_attn.in_proj_weight),
        (lambda layer: layer[0].w_k, lambda layer: layer.self_attn.in_proj_weight),
        (lambda layer: layer[0].w_v, lambda layer: layer.self_attn.in_proj_weight),
        (lambda layer: layer[0].w_o, lambda layer: layer.self_attn.out_proj.weight),
        (lambda layer: layer[1], lambda layer: layer.linear1.weight),
        (lambda layer: layer[2], lambda layer: layer.linear2.weight),
    ):
        found = np.stack([mine(layer) for layer in ours])
        wanted = torch.stack([parameter(layer).detach() for layer in theirs])
        assert np.abs(found).max() == pytest.approx(float(wanted.abs().max()), rel=0.01)
        assert found.std() == pytest.approx(float(wanted.std()), rel=0.02)
    assert not np.array_equal(ours[0][0].w_q, ours[1][0].w_q)


def test_distance_of_rows_done_by_hand():
    apart = np.array([[1.0, 0.0], [0.0, 1.0]])  # the mean is (1/2, 1/2): 4 x 1/4 against 2
    same = np.array([[3.0, 4.0], [3.0, 4.0]])
    opposite = np.array([[1.0, 2.0], [-1.0, -2.0]])  # the mean is 0
    found = module.relative_distance(np.stack([apart, same, opposite]))
    np.testing.assert_allclose(found, [math.sqrt(0.5), 0, 1])


def test_without_residual_the_tokens_become_one_vector_ever_faster():
    """The exponent itself grows: about threefold from layer to layer, a cubic rate."""
    states = np.stack([module._states(False, "post", True, seed) for seed in range(10)])
    distance = module.relative_distance(states)
    assert distance[:, 4:].max() < 1e-3 and distance[:, 6:].max() < 1e-12
    exponents = np.log(np.median(distance, axis=0))[2:5]
    assert (exponents[1:] / exponents[:-1] > 2.5).all()


def test_arrays_cannot_be_changed_and_traits_follow_a_link():
    explorer = LayerExplorer()
    with pytest.raises(ValueError, match="read-only"):
        explorer.states[0] = 0
    explorer.depth = 23
    explorer.residual = False
    assert explorer.states.shape == (24, 7, 16) and explorer.distance[-1] < 1e-12


def assert_states(found, explorer):
    """The states layer by layer, each within 1e-6 of its own largest entry, however small."""
    for got, wanted in zip(found, explorer.states, strict=True):
        close(got, wanted, 1e-6 * np.abs(wanted).max())


@each_way
def test_javascript_and_copied_code_compute_what_attnlib_computes(switches):
    explorer = LayerExplorer(**switches, depth=24, seed=499)
    found, names = js(explorer, "compute(state)"), run(js(explorer, "code(state)"))
    assert_states(found["states"], explorer)
    assert_states(names["states"], explorer)
    for name, curve in explorer.curves.items():
        # Below 1e-13 a distance is what rounding left, which no two programs share.
        atol = 1e-13 if "distance" in name else 0
        np.testing.assert_allclose(found["curves"][name], curve, rtol=1e-6, atol=atol)
    np.testing.assert_allclose(names["distance"], explorer.distance, rtol=1e-6, atol=1e-13)
    np.testing.assert_allclose(names["norms"], explorer.norms, rtol=1e-6)


def assert_says(text, x, digits):
    """A number stands there with `digits` decimals, or with one digit and a power of ten."""
    if text == "≈ 0":
        assert x < 1e-12
    elif "e" in text:
        assert not 0.01 <= abs(x) < 1000
        assert float(text) == pytest.approx(x, abs=0.501 * 10 ** int(text.partition("e")[2]))
    else:
        assert text != "-0." + digits * "0" and len(text.partition(".")[2]) == digits
        assert float(text) == pytest.approx(x, abs=0.501 * 10**-digits)


@every(LayerExplorer, examples=7)
def test_the_picture_says_and_draws_the_numbers(explorer):
    soup = picture(explorer)
    assert_drawn(soup.svg, explorer)
    curves, last = explorer.curves, explorer.states[-1]
    assert_says(part(soup, "distance"), explorer.distance[-1], 3)
    assert_says(part(soup, "norm_value"), explorer.norms[-1], 2)
    scale = part(soup, "scale")
    assert_says(scale.rpartition(" ")[2], np.abs(last).max(), 2)
    verdict = soup.select_one(".verdict").get_text()
    assert ("alike" in verdict) == (explorer.distance[-1] < 1e-3)
    assert verdict in soup.svg["aria-label"]
    series = ["distance", "norm", "distance_full", "norm_full"]
    for found, wanted, digits in zip(
        soup.find_all("table"),
        (last, np.stack([curves[name] for name in series], axis=1)),
        ([2] * 16, [3, 2, 3, 2]),
        strict=True,
    ):
        rows = [row.find_all("td") for row in found.find_all("tr")[1:]]
        for row, numbers in zip(rows, wanted, strict=True):
            for cell, number, places in zip(row, numbers, digits, strict=True):
                assert_says(cell.get_text(), number, places)


def assert_drawn(svg, explorer):
    """The squares have the sizes of the last vectors, and the curves the heights of theirs."""
    last = explorer.states[-1]
    matrix, (top, width, height) = last / np.abs(last).max(), (24, 18.5, 18)
    drawn = np.zeros(matrix.shape)
    for where, sign in (("above", 1), ("below", -1)):
        path = svg.select_one(f"[data-part=vectors_{where}]")["d"]
        for x, y, side in re.findall(r"M(\S+) (\S+?)h(\S+?)v", path):
            x, y, side = float(x), float(y), float(side)
            i, j = int((y + side / 2 - top) / height), int((x + side / 2 - 52) / width)
            # The outline of a hollow square adds to it.
            drawn[i, j] = sign * ((side + (sign < 0)) / (0.9 * min(width, height))) ** 2
    hidden = (0.9 * min(width, height)) ** -2  # a hollow square that is all outline
    close(drawn, matrix, max(0.01, hidden))
    for line, curve in (("line", "distance"), ("full", "distance_full")):
        path = svg.select_one(f"[data-part=distance_{line}]")["d"]
        x, y = np.array([corner.split() for corner in path[1:].split("L")], float).T
        close((x - 52) * 24 / 296, np.arange(25), 0.01)
        powers = np.log10(np.clip(explorer.curves[curve], 1e-8, 1))
        close(-8 + (304 - y) * 8 / 92, powers, 0.005)
    corners = svg.select_one("[data-part=distance_line]")["d"][1:].split("L")
    here = [float(number) for number in corners[explorer.depth].split()]
    dot = svg.circle
    assert (float(dot["cx"]), float(dot["cy"])) == pytest.approx(here, abs=0.06)
