"""The ledger of a logit and the logit lens: by hand, without a head, every error."""

from dataclasses import replace

import numpy as np
import pytest

from attnlib import EncoderLayer, LayerNorm, MultiHeadAttention, RMSNorm, ledger, lens, softmax
from attnlib.models import CausalLM
from tests.helpers import raises

pytestmark = pytest.mark.filterwarnings("error")

TOKENS, D_MODEL, N_TOKENS = [3, 11, 5, 5, 0], 10, 17


def random_norm(kind, rng):
    """Return a norm whose numbers are all away from their defaults."""
    vectors = rng.normal(1, 0.3, (2, D_MODEL))
    return LayerNorm(*vectors, 0.1) if kind is LayerNorm else RMSNorm(vectors[0], 0.1)


def model_of(*placed, last=RMSNorm, seed=0):
    """Return a model with a layer for each dict of places for norms and their kinds."""
    rng = np.random.default_rng(seed)
    layers = []
    for number, places in enumerate(placed):
        attention = MultiHeadAttention.init(
            D_MODEL, 5, rng, n_kv_heads=(5, 1)[number % 2], bias=number == 0, dtype=np.float64
        )
        if attention.b_o is not None:
            attention = replace(attention, b_v=rng.normal(size=10), b_o=rng.normal(size=10))
        network = EncoderLayer.init(D_MODEL, 2, 13, rng, dtype=np.float64).feed_forward
        norms = {place: random_norm(kind, rng) for place, kind in places.items()}
        layers.append(EncoderLayer(attention, network, norm_first=True, **norms))
    embeddings, unembedding = rng.normal(size=(2, N_TOKENS, D_MODEL))
    norm = None if last is None else random_norm(last, rng)
    return CausalLM(embeddings, layers, norm, unembedding.T, windows=[None, 3][: len(layers)])


BEFORE = {"norm_1": RMSNorm, "norm_2": LayerNorm}
AFTER = {"after_1": LayerNorm, "after_2": RMSNorm}


@pytest.mark.parametrize("last", [None, RMSNorm, LayerNorm])
@pytest.mark.parametrize("places", [{}, BEFORE, AFTER, BEFORE | AFTER])
def test_contributions_sum_to_the_logit(places, last):
    model = model_of(places, {"after_1": RMSNorm}, last=last)
    logits = model(TOKENS)
    for position, token in ((0, 16), (3, 0), (-1, 7)):
        names, contributions = ledger(model, TOKENS, position, token)
        assert len(names) == len(set(names)) == len(contributions)
        assert contributions.dtype == np.float64
        np.testing.assert_allclose(contributions.sum(), logits[position, token], rtol=1e-12)
    heads = [f"layer 1, head {head}" for head in range(1, 6)]
    assert names[:7] == ["embedding", *heads, "layer 1, bias"]
    shift = ["last norm, bias"] if last is LayerNorm else []
    assert names[7:8] == ["layer 1, feed-forward"] and names[13:] == [
        "layer 2, feed-forward",
        *shift,
    ]


def test_the_embedding_alone_by_hand():
    def nothing(x):
        return np.zeros_like(x)

    attention = MultiHeadAttention(*np.zeros((4, 2, 2)), 1)
    model = CausalLM(
        np.array([[3.0, 4.0], [1.0, 0.0]]),
        [EncoderLayer(attention, nothing)],
        RMSNorm(eps=0),
        scale=2,
    )
    names, contributions = ledger(model, [1, 0], 1, 0)
    assert names == ["embedding", "layer 1, head 1", "layer 1, feed-forward"]
    # (6, 8) has a mean square of 50: (18 + 32) / sqrt(50).
    np.testing.assert_allclose(contributions, [50 / 50**0.5, 0, 0], rtol=1e-14)


def test_without_a_head_of_the_last_layer_its_contribution_is_missing():
    """Exactly so where nothing comes after it: no feed-forward network, and no last norm."""
    model = model_of(BEFORE, BEFORE, last=None)
    model.layers[1] = replace(model.layers[1], feed_forward=np.zeros_like)
    names, contributions = ledger(model, TOKENS, 3, 8)
    for head in range(5):
        attention = model.layers[1].attention
        w_o = attention.w_o.copy()
        w_o[2 * head : 2 * head + 2] = 0
        layer = replace(model.layers[1], attention=replace(attention, w_o=w_o))
        without = replace(model, layers=[model.layers[0], layer])
        missing = model(TOKENS)[3, 8] - without(TOKENS)[3, 8]
        index = names.index(f"layer 2, head {head + 1}")
        np.testing.assert_allclose(contributions[index], missing, rtol=0, atol=1e-13)


def test_the_lens_reads_each_layer_as_the_last():
    model = model_of(BEFORE, BEFORE)
    found = lens(model, [TOKENS, TOKENS[::-1]])
    assert found.shape == (3, 2, 5, N_TOKENS)
    np.testing.assert_array_equal(found[-1, 0], softmax(model(TOKENS)))
    first = replace(model, layers=model.layers[:1], windows=None)
    np.testing.assert_allclose(found[1, 0], softmax(first(TOKENS)), rtol=0, atol=1e-15)
    embedded = model.norm(model.embeddings[TOKENS]) @ model.unembedding
    np.testing.assert_allclose(found[0, 0], softmax(embedded), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("changes", "arguments", "error", "message"),
    [
        ({}, ([TOKENS], 0, 0), ValueError, "tokens must be a vector (n,); got shape (1, 5)"),
        ({}, (TOKENS, 5, 0), ValueError, "position must be from -5 to 4; got 5"),
        ({}, (TOKENS, 1.0, 0), TypeError, "position must be a whole number; got 1.0"),
        ({}, (TOKENS, 0, 17), ValueError, "token must be from 0 to 16; got 17"),
        ({}, (TOKENS, 0, True), TypeError, "token must be a whole number; got True"),
        ({"norm": np.negative}, (TOKENS, 0, 0), TypeError,
         "the last norm must be a LayerNorm or an RMSNorm; got ufunc"),
        ({"norm_first": False}, (TOKENS, 0, 0), ValueError,
         "layer 1 must not be normed after its sum (norm_first = False); got so"),
        ({"after_1": np.negative}, (TOKENS, 0, 0), TypeError,
         "after_1 of layer 1 must be a LayerNorm or an RMSNorm; got ufunc"),
        ({"attention": lambda x, mask, cache: (x, None)}, (TOKENS, 0, 0), TypeError,
         "the attention of layer 1 must be a MultiHeadAttention; got function"),
    ],
)  # fmt: skip
def test_the_ledger_refuses(changes, arguments, error, message):
    model = model_of(BEFORE)
    if "norm" in changes:
        model = replace(model, **changes)
    elif changes:
        model = replace(model, layers=[replace(model.layers[0], **changes)])
    with raises(error, message):
        ledger(model, *arguments)


def test_what_is_no_model():
    with raises(TypeError, "model must be a CausalLM; got EncoderLayer"):
        lens(model_of({}).layers[0], TOKENS)
    with raises(TypeError, "model must be a CausalLM; got str"):
        ledger("gpt", TOKENS, 0, 0)
