"""CostCalculator on the Python side: its counts, held against what NumPy does, and its errors."""

import numpy as np
import pytest
import traitlets
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import CostCalculator
from attnlib.widgets import cost_calculator as module
from tests.helpers import steady

SIZES = {"n": 13, "d_model": 30, "n_heads": 6, "n_layers": 7, "bytes": 4, "width": 2, "group": 3}


def test_chai_piyo_times_the_output_projection():
    """Chapter 10 counts 48 + 16 multiplications; here W_O is counted too, and additions."""
    found = CostCalculator(n=2, d_model=4, n_heads=1, n_layers=1, group=1).costs
    assert found["attention"] == 2 * (2 * 2 * 4 + 2 * 2 * 4)
    assert found["projections"] == 2 * 4 * (2 * 4 * 4)


def test_full_attention_is_counted_as_the_products_are():
    n, d, h, layers = 13, 30, 6, 7
    layer = attnlib.EncoderLayer.init(d, h, 4 * d, np.random.default_rng(0))
    found = CostCalculator(**SIZES).costs
    w, network = layer.attention, layer.feed_forward
    weights = (w.w_q, w.w_k, w.w_v, w.w_o)
    assert found["projections"] == 2 * n * sum(weight.size for weight in weights)
    assert found["feed_forward"] == 2 * n * (network.w_1.size + network.w_2.size)
    _, a = layer(np.zeros((n, d), np.float32))
    assert found["weights"] == a.nbytes
    assert found["attention"] == 2 * (2 * a.size * d // h)
    keys = attnlib.split_heads(np.zeros((n, d), np.float32), h)
    assert found["cache"] == layers * 2 * keys.nbytes


def test_scores_and_blend_overtake_as_the_chapter_says():
    calculator = CostCalculator(n=2 * 512)
    assert calculator.costs["attention"] == calculator.costs["projections"]
    calculator.n = 6 * 512
    rest = calculator.costs["projections"] + calculator.costs["feed_forward"]
    assert calculator.costs["attention"] == rest


@steady
@given(n=st.integers(1, 60), width=st.integers(0, 70))
def test_a_window_meets_as_many_keys_as_its_mask_allows(n, width):
    assert module.pairs("window", n, width) == attnlib.window_mask(n, width).sum()
    assert module.pairs("full", n, width) == n * n


def test_the_other_kinds_by_hand():
    full = CostCalculator(**SIZES).costs
    grouped = CostCalculator(**SIZES, kind="grouped").costs
    assert grouped["cache"] == full["cache"] / 3 and grouped["weights"] == full["weights"]
    assert grouped["projections"] == 2 * 13 * 30 * (30 + 10 + 10 + 30)
    blockwise = CostCalculator(**SIZES | {"n": 1000}, kind="blockwise").costs
    assert blockwise["weights"] == 128 * 1000 * 4
    assert blockwise["attention"] == CostCalculator(**SIZES | {"n": 1000}).costs["attention"]
    linear = CostCalculator(**SIZES, kind="linear").costs
    assert linear["weights"] == 6 * 5 * 5 * 4 and linear["cache"] == 7 * 6 * 5 * 5 * 4
    assert linear["attention"] == 6 * (2 * 13 * 5 * 5 + 2 * 13 * 5 * 5)
    window = CostCalculator(**SIZES, kind="window").costs
    assert window["weights"] == 6 * 4 * (13 * 5 - 6) and window["cache"] == 7 * 2 * 3 * 30 * 4


@pytest.mark.parametrize("kind", ["full", "blockwise", "window", "grouped"])
@pytest.mark.parametrize("memory", [1e-6, 0.001, 24.0])
def test_longest_is_the_last_that_fits(kind, memory):
    calculator = CostCalculator(**SIZES, kind=kind, memory=memory)
    most = calculator.longest
    assert module.held(calculator.at(most)) <= memory * 1e9 < module.held(calculator.at(most + 1))


def test_longest_has_ends():
    assert CostCalculator(kind="linear").longest == 2**40
    assert CostCalculator(memory=1e-6).longest == 0


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (536870912, "537 MB"),
        (2147483648, "2.15 GB"),
        (999_600, "1000 kB"),
        (1e22, "10000 EB"),
    ],
)
def test_amounts_in_words(number, words):
    assert module.amount(number, "B") == words


@pytest.mark.parametrize(
    ("traits", "message"),
    [
        ({"n": 0}, r"n \(tokens\) must lie between 1 and 1048576; got 0"),
        ({"n": 2**21}, "got 2097152"),
        ({"n_heads": 7}, "n_heads must divide d_model; got 7 and 512"),
        ({"group": 3}, "group must divide n_heads; got 3 and 8"),
        ({"d_model": 100}, "n_heads must divide d_model; got 8 and 100"),
        ({"memory": 0.0}, "memory must lie above 0 and up to 1e6; got 0"),
        ({"memory": float("nan")}, "memory must lie above 0 and up to 1e6; got nan"),
        ({"width": -1}, "got -1"),
    ],
)
def test_sizes_that_cannot_be(traits, message):
    with pytest.raises(ValueError, match=message):
        CostCalculator(**traits)


def test_a_refused_size_leaves_the_one_before():
    calculator = CostCalculator()
    with pytest.raises(ValueError, match="must divide"):
        calculator.n_heads = 5
    assert calculator.n_heads == 8
    for name, value in (("kind", "free"), ("bytes", 3), ("n", 1.5), ("d_model", "512")):
        with pytest.raises(traitlets.TraitError):
            setattr(calculator, name, value)


@steady
@given(
    st.integers(1, 2**20),
    st.sampled_from(list(module.KINDS)),
    st.sampled_from(list(module.MODELS.values())),
    st.sampled_from(list(module.BYTES)),
    st.integers(0, 2**20),
    st.floats(1e-6, 1e6),
)
def test_whatever_is_set_is_drawn_without_gibberish(n, kind, model, size, width, memory):
    names = ("d_model", "n_heads", "n_layers")
    sizes = dict(zip(names, model, strict=True)) | {"group": 1, "width": width, "bytes": size}
    calculator = CostCalculator(n=n, kind=kind, memory=memory, **sizes)
    drawn = calculator._picture()
    assert "nan" not in drawn and "inf" not in drawn and "e+" not in drawn
    bars = [
        float(calculator._marks(calculator.costs)[part]["width"])
        for part in ("projections", "attention", "feed")
    ]
    assert sum(bars) == pytest.approx(360, abs=0.2)


def test_still_picture_says_what_is_computed():
    picture = BeautifulSoup(CostCalculator()._picture(), "html.parser")
    words = {
        name: picture.select_one(f"[data-part={name}]").get_text()
        for name in ("weights", "cache", "flops", "longest", "share", "fits")
    }
    assert words == {
        "weights": "537 MB",
        "cache": "101 MB",
        "flops": "60.1 G",
        "longest": "27,004",
        "share": "57 %",
        "fits": "this text does",
    }
    assert picture.select_one("option[selected][value='512 8 6']")
    assert all(field.has_attr("hidden") for field in picture.select(".extra label"))
    rows = picture.select("[data-part=table] tr")
    assert len(rows) == 8 and rows[1].get_text(" ").startswith("128 524 kB")


def test_repr_makes_it_again():
    calculator = CostCalculator(n=100, kind="linear")
    assert repr(eval(repr(calculator))) == repr(calculator)
    assert calculator._picture() == CostCalculator(n=100, kind="linear")._picture()
