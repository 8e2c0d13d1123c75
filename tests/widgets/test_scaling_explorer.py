"""ScalingExplorer: the numbers of its four scenes in Python and in JavaScript, and its errors."""

import math

import ipywidgets
import numpy as np
import pytest
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import ScalingExplorer
from attnlib.widgets import scaling_explorer as module
from attnlib.widgets.kit.constants import word_vector
from tests.widgets.pictures import js, part, picture, run
from tests.widgets.samples import every

sizes = st.integers(1, module.MAX_D_K)


def walked(explorer):
    """The scores of "walks" after each product, and the weights."""

    def coins(name, role):
        return np.sign(word_vector(name, role, explorer.d_k))

    query = coins(f"toss {explorer.toss}", "query")
    keys = np.stack([coins(f"toss {explorer.toss}, key {j}", "key") for j in range(1, 7)])
    sums = np.cumsum(query * keys, axis=1)
    scores = sums[:, -1] / (math.sqrt(explorer.d_k) if explorer.divided else 1)
    return {"sums": np.pad(sums, ((0, 0), (1, 0))), "scores": scores}


def test_it_is_an_ipywidget_that_links():
    explorer, slider = ScalingExplorer(), ipywidgets.IntSlider(value=7, min=1, max=256)
    ipywidgets.link((slider, "value"), (explorer, "d_k"))
    assert explorer.d_k == 7
    slider.value = 131
    assert explorer.d_k == 131
    assert ipywidgets.HBox([explorer, slider]).children == (explorer, slider)


def test_word_vectors_have_mean_0_and_variance_1():
    numbers = np.concatenate([word_vector(f"word{i}", "query", 512) for i in range(211)])
    assert abs(numbers.mean()) < 0.01 and abs(numbers.var() - 1) < 0.01
    assert np.array_equal(word_vector("cat", "key", 7), word_vector("cat", "key", 512)[:7])
    assert not np.array_equal(word_vector("cat", "key", 7), word_vector("cat", "query", 7))


@every(
    st.builds(
        ScalingExplorer, d_k=sizes, divided=st.booleans(), toss=st.integers(1, module.N_TOSSES)
    ),
    examples=10,
)
def test_walks_add_up_the_products_of_coins(explorer):
    found, expected = js(explorer, "compute(state)"), walked(explorer)
    np.testing.assert_array_equal(found["sums"], expected["sums"])
    np.testing.assert_allclose(found["scores"], expected["scores"])
    np.testing.assert_allclose(found["weights"], attnlib.softmax(expected["scores"]), rtol=1e-9)


def test_no_walk_leaves_the_drawing():
    for toss in range(1, module.N_TOSSES + 1):
        sums = abs(walked(ScalingExplorer(d_k=module.MAX_D_K, toss=toss))["sums"])
        for d_k in range(1, module.MAX_D_K + 1):
            reach = min(max(11 * d_k / 16, 11), 44)  # walks.js
            assert sums[:, : d_k + 1].max() <= reach


@pytest.mark.parametrize("coins", [0, 255, 0b01011101, 0b00110101])
def test_coins_have_four_products(coins):
    explorer = ScalingExplorer("coins", coins=coins)
    query, key = ([1 if coins >> (at + c) & 1 else -1 for c in range(4)] for at in (0, 4))
    found = js(explorer, "compute(state)")
    assert (found["query"], found["key"]) == (query, key)
    assert found["products"] == [q * k for q, k in zip(query, key, strict=True)]
    soup = picture(explorer)
    assert part(soup, "score").replace("−", "-") == str(np.dot(query, key))
    assert run(js(explorer, "code(state)"))["score"] == np.dot(query, key)


@every(st.integers(-20, 20).map(lambda half: half / 2), examples=10)
def test_gap_gives_the_weight_and_its_slope(gap):
    found = js(ScalingExplorer("gap", gap=gap), "compute(state)")
    np.testing.assert_allclose(found["weights"], attnlib.softmax([gap, 0.0]), rtol=1e-9)
    step = 1e-5
    around = attnlib.softmax([[gap + step, 0.0], [gap - step, 0.0]])[:, 0]
    names = run(js(ScalingExplorer("gap", gap=gap), "code(state)"))
    assert names["slope"] == pytest.approx(found["slope"], abs=1e-6)
    assert found["slope"] == pytest.approx((around[0] - around[1]) / (2 * step), rel=1e-4, abs=1e-9)


@every(sizes, examples=10)
def test_sizes_compare_three_divisors(d_k):
    query = word_vector("query 5", "query", d_k)
    keys = np.stack([word_vector(f"key {j}", "key", d_k) for j in range(1, 17)])
    for found, divisor in zip(
        js(ScalingExplorer("sizes", d_k=d_k), "compute(state)"),
        (1, math.sqrt(d_k), d_k),
        strict=True,
    ):
        weights = attnlib.softmax(keys @ query / divisor)
        np.testing.assert_allclose(found["weights"], weights, rtol=1e-6)
        assert found["largest"] == pytest.approx(weights.max())
        entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum()
        assert found["keys"] == pytest.approx(math.exp(entropy))


def test_picture_shows_the_numbers():
    explorer = ScalingExplorer(d_k=64)
    soup, expected = picture(explorer), walked(explorer)
    weights = attnlib.softmax(expected["scores"])
    assert part(soup, "largest") == f"{weights.max():.2f}" and part(soup, "typical") == "±8.0"
    cells = [td.get_text().replace("−", "-") for td in soup.table.find_all("td")]
    assert [float(x) for x in cells[::2]] == expected["scores"].tolist()
    assert cells[1::2] == [f"{weight:.4f}" for weight in weights]
