"""AttentionExplorer: its weights in Python and in JavaScript, its traits, its errors."""

import ipywidgets
import numpy as np
from hypothesis import given, settings

import attnlib
from attnlib.widgets import AttentionExplorer
from attnlib.widgets.kit.constants import DIVISORS, word_vector
from tests.helpers import steady
from tests.widgets.pictures import js, picture, run
from tests.widgets.samples import SAMPLES

explorers = SAMPLES[AttentionExplorer]
some = settings(steady, max_examples=20)


def test_it_is_an_ipywidget_that_links():
    explorer, slider = AttentionExplorer(), ipywidgets.IntSlider(value=7, min=1, max=512)
    ipywidgets.link((slider, "value"), (explorer, "d_k"))
    assert explorer.d_k == 7
    slider.value = 131
    assert explorer.d_k == 131
    seen = []
    explorer.observe(lambda change: seen.append(change["new"]), "d_k")
    slider.value = 5
    assert seen == [5]
    assert ipywidgets.HBox([explorer, slider]).children == (explorer, slider)


def attended(explorer):
    """Return what attnlib makes of the sentence: scores, the mask, weights and output."""
    tokens = explorer.sentence.split()
    queries, keys, values = (
        np.stack([word_vector(word, role, size) for word in tokens])
        for role, size in (("query", explorer.d_k), ("key", explorer.d_k), ("value", 4))
    )
    n = len(tokens)
    real = attnlib.padding_mask([min(explorer.length, n)], n)[0]
    allowed = {
        "none": np.ones((n, n), bool),
        "causal": attnlib.causal_mask(n),
        "padding": np.broadcast_to(real, (n, n)),
        "both": attnlib.causal_mask(n) & real,
        "window": attnlib.window_mask(n, explorer.width),
    }[explorer.mask]
    scale = 1 / DIVISORS[explorer.divisor](explorer.d_k)
    output, weights = attnlib.scaled_dot_product_attention(
        queries, keys, values, allowed, scale=scale
    )
    return {"scores": queries @ keys.T, "allowed": allowed, "weights": weights, "output": output}


@some
@given(explorers)
def test_javascript_computes_what_attnlib_computes(explorer):
    found = js(explorer, "compute(state)")
    assert found["tokens"] == explorer.sentence.split()
    for name, expected in attended(explorer).items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=1e-9)


@some
@given(explorers)
def test_copied_code_gives_the_weights_and_the_output(explorer):
    names = run(js(explorer, "code(state)"))
    assert names["tokens"] == explorer.sentence.split()
    for name in ("weights", "output"):
        np.testing.assert_allclose(names[name], attended(explorer)[name], rtol=0, atol=1e-6)


def test_picture_shows_the_numbers():
    explorer = AttentionExplorer(sentence="x y z", mask="causal", row=2)
    soup, weights = picture(explorer), attended(explorer)["weights"]
    cells = [
        [cell.get_text() for cell in row.find_all("td")] for row in soup.select("table tr")[1:]
    ]
    assert cells[0] == ["1.00", "masked", "masked"]
    assert cells[2] == [f"{weight:.2f}" for weight in weights[2]]
    texts = [text.get_text() for text in soup.svg.find_all("text")]
    for weight in weights[2]:
        assert texts.count(f"{weight:.2f}") >= 2  # in the heatmap, and on its bar
    assert soup.select_one("[data-part=largest]").get_text() == f"{weights[2].max():.2f}"


def test_word_vectors_have_mean_0_and_variance_1():
    numbers = np.concatenate([word_vector(f"word{i}", "query", 512) for i in range(211)])
    assert abs(numbers.mean()) < 0.01 and abs(numbers.var() - 1) < 0.01
    assert np.array_equal(word_vector("cat", "key", 7), word_vector("cat", "key", 512)[:7])
    assert not np.array_equal(word_vector("cat", "key", 7), word_vector("cat", "query", 7))
