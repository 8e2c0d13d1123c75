"""LayerExplorer on the Python side: its numbers, what they show, its still picture, its errors."""

import math

import numpy as np
import pytest
import torch
import traitlets
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlib
from attnlib.bridge import to_torch
from attnlib.widgets import LayerExplorer
from attnlib.widgets import layer_explorer as module

pytestmark = pytest.mark.filterwarnings("error")

explorers = st.builds(
    LayerExplorer,
    residual=st.booleans(),
    norm=st.sampled_from(["post", "pre", "none"]),
    feed_forward=st.booleans(),
    depth=st.integers(1, 24),
    seed=st.integers(0, 999),
)


def still(widget):
    return BeautifulSoup(widget._repr_mimebundle_()[0]["text/html"], "html.parser")


def encoder_layers(widget):
    """The layers as the course's own EncoderLayer."""
    norm, norm_first = attnlib.LayerNorm(), widget.norm == "pre"
    return [
        attnlib.EncoderLayer(a, attnlib.FeedForward(w_1, None, w_2, None), norm, norm, norm_first)
        for a, w_1, w_2 in module._layers(widget.seed)
    ]


# ---------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_with_all_parts_it_is_a_stack_of_encoder_layers(norm):
    explorer = LayerExplorer(norm=norm, depth=11, seed=7)
    x = explorer.states[0]
    for layer, state in zip(encoder_layers(explorer), explorer.states[1:], strict=False):
        x, _ = layer(x)
        np.testing.assert_allclose(state, x, rtol=0, atol=1e-12)
    assert explorer.states.shape == (12, 7, 16)


def test_pytorch_gives_the_same_vectors():
    explorer = LayerExplorer(depth=5, seed=3)
    x = torch.tensor(explorer.states[0])[None]
    for layer in encoder_layers(explorer)[:5]:
        with torch.no_grad():
            x = to_torch(layer)(x)
    np.testing.assert_allclose(explorer.states[-1], x[0].numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre", "none"])
@pytest.mark.parametrize("residual", [True, False])
def test_one_layer_written_out(residual, norm):
    explorer = LayerExplorer(residual=residual, norm=norm, depth=1, seed=2)
    attention, w_1, w_2 = module._layers(2)[0]
    x = explorer.states[0]
    for sublayer in (
        lambda x: attention(x)[0],
        lambda x: np.maximum(x @ w_1, 0) @ w_2,
    ):
        y = sublayer(attnlib.layer_norm(x) if norm == "pre" else x)
        x = x + y if residual else y
        x = attnlib.layer_norm(x) if norm == "post" else x
    np.testing.assert_allclose(explorer.states[1], x, rtol=1e-12, atol=1e-15)


def test_without_feed_forward_only_attention_is_left():
    explorer = LayerExplorer(residual=False, norm="none", feed_forward=False, depth=1)
    attention, _, _ = module._layers(0)[0]
    np.testing.assert_array_equal(explorer.states[1], attention(explorer.states[0])[0])


def test_the_weights_are_as_wide_as_those_of_pytorch():
    torch.manual_seed(0)
    theirs = [torch.nn.TransformerEncoderLayer(16, 4, 64) for _ in range(50)]
    ours = [layer for seed in range(3) for layer in module._layers(seed)]
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


def test_lengths_and_cosines_by_their_definitions():
    explorer = LayerExplorer(depth=3, norm="pre")
    last = explorer.states[-1]
    assert explorer.norms.shape == explorer.distance.shape == (4,)
    lengths = [math.sqrt(row @ row) for row in last]
    assert explorer.norms[-1] == pytest.approx(sum(lengths) / 7)
    cosine = last[2] @ last[5] / (lengths[2] * lengths[5])
    assert explorer.cosines[2, 5] == pytest.approx(cosine)
    np.testing.assert_allclose(np.diag(explorer.cosines), 1)


def test_curves_hold_this_stack_and_the_full_block():
    explorer = LayerExplorer(residual=False, norm="pre", depth=5, seed=4)
    full = LayerExplorer(depth=24, seed=4)
    curves = explorer.curves
    assert {curve.shape for curve in curves.values()} == {(25,)}
    np.testing.assert_array_equal(curves["distance"][:6], explorer.distance)
    np.testing.assert_array_equal(curves["norm"][:6], explorer.norms)
    np.testing.assert_array_equal(curves["distance_full"], full.distance)
    np.testing.assert_array_equal(curves["norm_full"], full.norms)


# ---------------------------------------------------------------- what there is to see, measured


@pytest.fixture(scope="module")
def measured():
    """Distances and lengths for each setting of the switches, (40 seeds, 25)."""
    found = {}
    for residual in (True, False):
        for norm in ("post", "pre", "none"):
            for ff in (True, False):
                states = np.stack([module._states(residual, norm, ff, s) for s in range(40)])
                found[residual, norm, ff] = (
                    module.relative_distance(states),
                    module._mean_length(states),
                )
    return found


def test_without_residual_the_tokens_become_one_vector(measured):
    for (residual, _, _), (distance, _) in measured.items():
        if residual:
            assert distance.min() > 0.1
        else:
            assert distance[:, 4:].max() < 1e-3 and distance[:, 6:].max() < 1e-12


def test_the_collapse_is_doubly_exponential(measured):
    """The exponent itself grows: about threefold from layer to layer, a cubic rate."""
    distance, _ = measured[False, "post", True]
    exponents = np.log(np.median(distance, axis=0))[2:5]
    assert (exponents[1:] / exponents[:-1] > 2.5).all()


def test_norm_keeps_the_size_in_hand(measured):
    _, post = measured[True, "post", True]
    np.testing.assert_allclose(post[:, 1:], 4, atol=1e-3)  # sqrt(16) dimensions of variance 1
    medians = {key: np.median(length[:, -1]) for key, (_, length) in measured.items()}
    assert 7 < medians[True, "pre", True] < 9
    assert 17 < medians[True, "none", True] < 24
    assert medians[False, "none", True] < 1e-24 and medians[False, "none", False] < 1e-9


def test_feed_forward_neither_stops_nor_reliably_slows_the_collapse(measured):
    with_it, without = (measured[False, "post", ff][0][:, 3] for ff in (True, False))
    assert 0.1 < (with_it > without).mean() < 0.5


# ----------------------------------------------------------------------------------- widget


@settings(deadline=None, derandomize=True)
@given(explorers)
def test_whatever_is_set_is_finite_and_drawn_without_gibberish(explorer):
    assert np.isfinite(explorer.states).all()
    assert (explorer.distance >= 0).all() and (explorer.distance <= 1).all()
    drawn = explorer._picture()
    assert "nan" not in drawn and "inf" not in drawn and "-0.00<" not in drawn


def test_arrays_cannot_be_changed():
    explorer = LayerExplorer()
    with pytest.raises(ValueError, match="read-only"):
        explorer.states[0] = 0
    for name in ("states", "distance", "norms", "cosines", "curves", "tokens"):
        with pytest.raises(AttributeError):
            setattr(explorer, name, 0)


def test_traits_follow_a_link_and_repr_makes_it_again():
    explorer = LayerExplorer()
    start = "residual=True, norm='post', feed_forward=True, depth=6, seed=0"
    assert repr(explorer) == f"LayerExplorer({start})"
    explorer.depth = 23
    explorer.residual = False
    assert explorer.states.shape == (24, 7, 16) and explorer.distance[-1] < 1e-12
    assert repr(eval(repr(explorer))) == repr(explorer)


@pytest.mark.parametrize(
    ("trait", "value", "low", "high"),
    [("depth", value, 1, 24) for value in (0, 25, True, 10**30)]
    + [("seed", value, 0, 999) for value in (-1, 1000, True)],
)
def test_absurd_number_is_refused_and_the_state_stays(trait, value, low, high):
    explorer = LayerExplorer()
    before = repr(explorer)
    message = f"{trait} needs a whole number from {low} to {high}; got {value}"
    with pytest.raises(ValueError, match=message):
        setattr(explorer, trait, value)
    with pytest.raises(ValueError, match=message):
        LayerExplorer(**{trait: value})
    assert repr(explorer) == before


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("residual", "yes"),
        ("feed_forward", None),
        ("norm", "<script>"),
        ("norm", None),
        ("depth", 1.5),
        ("depth", math.nan),
        ("seed", "7"),
    ],
)
def test_wrong_kind_is_refused(trait, value):
    explorer = LayerExplorer()
    before = repr(explorer)
    with pytest.raises(traitlets.TraitError, match=trait):
        setattr(explorer, trait, value)
    assert repr(explorer) == before


def test_unknown_argument():
    with pytest.raises(TypeError, match="got heads"):
        LayerExplorer(heads=3)


def test_picture_is_the_same_every_time_and_shows_the_numbers():
    explorer = LayerExplorer(norm="none", depth=24)
    picture = still(explorer)
    assert str(picture) == str(still(LayerExplorer(norm="none", depth=24)))
    assert picture.fieldset.has_attr("disabled")
    parts = {
        name: picture.select_one(f"[data-part={name}]").get_text()
        for name in ("distance", "norm_value", "verdict", "title")
    }
    assert parts["distance"] == f"{explorer.distance[-1]:.3f}"
    assert parts["norm_value"] == f"{explorer.norms[-1]:.2f}"
    assert parts["verdict"] == "Distance above 0.001 in all 24 layers: the tokens differ."
    assert parts["title"] == "Token vectors after 24 layers: 7 tokens × 16 numbers"
    vectors, cosines, curves = picture.find_all("table")
    assert vectors.find_all("tr")[2].get_text(" ").split()[1] == f"{explorer.states[-1][1, 0]:.2f}"
    assert [td.get_text() for td in cosines.find_all("tr")[1].find_all("td")] == [
        f"{x:.2f}" for x in explorer.cosines[0]
    ]
    assert len(curves.find_all("tr")) == 26
    for control in picture.find_all(["input", "select"]):
        assert control.find_parent("label").get_text(strip=True)


def test_picture_says_when_the_tokens_are_one():
    picture = still(LayerExplorer(residual=False))
    verdict = picture.select_one("[data-part=verdict]").get_text()
    assert verdict == "Distance below 0.001 at layer 3: one vector for all."
    assert picture.select_one("[data-part=distance]").get_text() == "≈ 0"
    assert still(LayerExplorer(depth=1)).select_one("[data-part=title]").get_text().startswith(
        "Token vectors after 1 layer:"
    )  # fmt: skip


def test_small_numbers_in_few_signs():
    assert [module._size(x) for x in (0.0, -0.004, 3e-26, 12.25, -1234.0)] == [
        "0.00",
        "-4e-3",
        "3e-26",
        "12.25",
        "-1e3",
    ]
    assert [module._brief(x) for x in (0.0, 1e-13, 7e-5, 0.18)] == ["≈ 0", "≈ 0", "7e-5", "0.180"]
    assert module._fixed(-0.001) == "0.00"


def test_module_stands_alone():
    source = LayerExplorer._esm
    assert "./core.js" not in source and "export default { render }" in source
