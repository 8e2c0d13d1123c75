"""Published language models: against transformers, with a cache, and what is not supported.

The configurations are those that the models' authors published, with small sizes.
"""

import copy
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import EncoderLayer, delta_rule, ledger, softmax
from attnlib.models import CausalLM, causal_lm
from tests.helpers import NOT_FLOATS, raises, steady, stirred
from tools.measure_writer import kept

os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported
pytestmark = pytest.mark.filterwarnings("error")

# Where an architecture leaves it open, sizes are different primes. A window is shorter than any
# text but the first, and texts go far beyond the 23 positions of the training.
SIZES = {
    "vocab_size": 43, "intermediate_size": 13, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 23, "rms_norm_eps": 1e-3,
}  # fmt: skip
# What such files also hold, which changes no logit.
AROUND = {
    "architectures": ["ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": [2, 3], "initializer_range": 0.02, "torch_dtype": "bfloat16",
    "transformers_version": "4.55.0", "use_cache": True,
}  # fmt: skip
LLAMA = SIZES | AROUND | {
    "model_type": "llama", "hidden_size": 30, "attention_bias": False, "hidden_act": "silu",
    "mlp_bias": False, "pretraining_tp": 1, "rope_theta": 500.0, "rope_scaling": None,
    "tie_word_embeddings": False, "head_dim": 14,
}  # fmt: skip
OTHER = {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}
LLAMA_3_1 = {
    "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 11, "rope_type": "llama3",
}  # fmt: skip
YARN = {
    "beta_fast": 2.0, "beta_slow": 0.1, "factor": 32.0, "original_max_position_embeddings": 11,
    "rope_type": "yarn", "truncate": False,
}  # fmt: skip
PUBLISHED = {
    "Llama 3": LLAMA,
    "Llama, biases and ties": LLAMA | OTHER,
    "Llama 3.1": LLAMA | {"rope_scaling": LLAMA_3_1},
    "Llama, linear": LLAMA | {"rope_scaling": {"type": "linear", "factor": 3.0}},
    "Llama, dynamic NTK": LLAMA | {"rope_scaling": {"type": "dynamic", "factor": 3.0}},
    "Llama, YaRN": LLAMA | {"rope_scaling": YARN | {"truncate": True, "beta_slow": 0.4}},
    "Mistral": SIZES | AROUND | {
        "model_type": "mistral", "hidden_size": 30, "hidden_act": "silu", "rope_theta": 100.0,
        "sliding_window": 7, "tie_word_embeddings": False,
    } | {"num_attention_heads": 3, "num_key_value_heads": 1},
    "Mistral, no window": SIZES | AROUND | {
        "model_type": "mistral", "hidden_size": 30, "head_dim": 14, "hidden_act": "silu",
        "rope_theta": 1000000.0, "sliding_window": None, "tie_word_embeddings": False,
    },
    "Qwen3": SIZES | AROUND | {
        "model_type": "qwen3", "hidden_size": 29, "head_dim": 10, "attention_bias": False,
        "hidden_act": "silu", "max_window_layers": 3, "rope_scaling": None, "rope_theta": 1000000,
        "sliding_window": None, "tie_word_embeddings": True, "use_sliding_window": False,
    },
    "Qwen3, windows": SIZES | AROUND | {
        "model_type": "qwen3", "hidden_size": 29, "head_dim": 10, "attention_bias": True,
        "hidden_act": "silu", "max_window_layers": 1, "rope_scaling": None, "rope_theta": 1000000,
        "sliding_window": 7, "tie_word_embeddings": False, "use_sliding_window": True,
    },
    "OLMo 2": SIZES | AROUND | {
        "model_type": "olmo2", "hidden_size": 60, "attention_bias": False, "hidden_act": "silu",
        "rope_scaling": None, "rope_theta": 500000, "tie_word_embeddings": False,
    },
    "Gemma 3": SIZES | AROUND | {
        "model_type": "gemma3_text", "hidden_size": 30, "head_dim": 14, "attention_bias": False,
        "attn_logit_softcapping": None, "cache_implementation": "hybrid",
        "final_logit_softcapping": None, "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 19, "rope_local_base_freq": 100.0, "sliding_window_pattern": 3,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "rope_theta": 10000,
        "sliding_window": 7, "num_hidden_layers": 4,
    },
    "gpt-oss": SIZES | AROUND | {
        "model_type": "gpt_oss", "hidden_size": 29, "head_dim": 14, "attention_bias": True,
        "experts_per_token": 2, "hidden_act": "silu", "initial_context_length": 11,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "num_experts_per_tok": 2, "num_local_experts": 5, "output_router_logits": False,
        "rope_scaling": YARN, "rope_theta": 150, "router_aux_loss_coef": 0.9, "sliding_window": 7,
        "swiglu_limit": 0.7, "tie_word_embeddings": False,
    },
}  # fmt: skip
# Each is read in one pass, token by token with a cache (+1), and in three pieces with one (+n).
TEXTS = {"short": 5, "window": 19, "beyond": 61}
# Of the largest logit, in float32, whose angles transformers also works out in float32.
MOST = 1e-5


@pytest.fixture(scope="module", params=PUBLISHED)
def published(request):
    """A model of transformers with random weights: its name, it, its configuration, its arrays."""
    import transformers

    config = PUBLISHED[request.param]
    # It writes into the dictionaries that it is given.
    plain = {"attn_implementation": "eager", "experts_implementation": "eager"}
    own = transformers.AutoConfig.for_model(**copy.deepcopy(config), **plain)
    torch.manual_seed(0)
    model = stirred(transformers.AutoModelForCausalLM.from_config(own, dtype=torch.float32))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 and "embed" not in name:
                parameter *= 3  # so that attention is steep, and gates meet their limits
    return request.param, model, config, {k: v.numpy() for k, v in model.state_dict().items()}


def text(n, batch=2):
    """Return random tokens."""
    return np.random.default_rng(n).integers(0, SIZES["vocab_size"], (batch, n))


def theirs(model, tokens, past=None):
    """Return the logits that transformers has, and its cache."""
    with torch.no_grad():
        found = model(torch.from_numpy(tokens), past_key_values=past, use_cache=past is not None)
    return found.logits.numpy(), found.past_key_values


def in_pieces(model, tokens, sizes):
    """Return the logits of a text that is read in pieces of these sizes, with a cache."""
    cache, found = model.cache(), []
    for piece in np.split(tokens, np.cumsum(sizes)[:-1], axis=-1):
        found.append(model(piece, cache=cache))
    assert cache.n == tokens.shape[-1]
    return np.concatenate(found, axis=-2)


def test_logits_equal_those_of_transformers(published, parity):
    name, model, config, arrays = published
    ours = causal_lm(config, arrays)
    for mode, n in TEXTS.items():
        tokens = text(n)
        expected, _ = theirs(model, tokens)
        parity(name, mode, ours(tokens), expected, MOST)
        if "dynamic" in name and n > config["max_position_embeddings"]:
            continue  # earlier keys keep the angles of the text as short as it was then
        parity(name, f"{mode} +1", in_pieces(ours, tokens, [1] * n), expected, MOST)
        parity(name, f"{mode} +n", in_pieces(ours, tokens, [n - 4, 3, 1]), expected, MOST)


@pytest.mark.parametrize("published", ["Llama, dynamic NTK"], indirect=True)
def test_the_cache_of_transformers_gives_the_same(published, parity):
    """Token by token on both sides: for dynamic NTK this is the text beyond the training."""
    name, model, config, arrays = published
    from transformers import DynamicCache

    model.model.rotary_emb.__init__(model.config)  # forgets the longest text so far
    tokens, past = text(TEXTS["beyond"]), DynamicCache(config=model.config)
    expected = [theirs(model, tokens[:, i : i + 1], past)[0] for i in range(tokens.shape[-1])]
    got = in_pieces(causal_lm(config, arrays), tokens, [1] * tokens.shape[-1])
    parity(name, "beyond +1", got, np.concatenate(expected, 1), MOST)


def test_a_configuration_of_transformers_is_read_alike_and_the_ledger_sums_to_the_logit(published):
    """As of version 5 it has rope_parameters in place of rope_theta and rope_scaling."""
    _, model, config, arrays = published
    written = model.config.to_dict()
    assert "rope_scaling" not in written
    ours, again = (causal_lm(c, arrays, dtype=np.float64) for c in (config, written))
    tokens = text(29, 1)[0]
    logits = ours(tokens)
    assert logits.dtype == np.float64
    np.testing.assert_array_equal(again(tokens), logits)
    for position, token in ((0, 42), (13, 7)):
        names, contributions = ledger(ours, tokens, position, token)
        heads = sum("head" in name for name in names)
        assert heads == config["num_hidden_layers"] * config["num_attention_heads"]
        np.testing.assert_allclose(contributions.sum(), logits[position, token], rtol=1e-9)


def test_states_and_weights_equal_those_of_transformers(published):
    _, model, config, arrays = published
    tokens = text(19)
    with torch.no_grad():
        found = model(torch.from_numpy(tokens), output_hidden_states=True, output_attentions=True)
    ours = causal_lm(config, arrays)
    trace = ours.read(tokens)
    np.testing.assert_array_equal(trace.tokens, tokens)
    np.testing.assert_array_equal(trace.logits, ours(tokens))
    states = np.stack([state.numpy() for state in found.hidden_states])
    # Theirs has the last norm behind it.
    np.testing.assert_allclose(
        trace.states[:-1], states[:-1], rtol=0, atol=2e-5 * np.abs(states).max()
    )
    for got, expected in zip(trace.weights, found.attentions, strict=True):
        np.testing.assert_allclose(got, expected.numpy(), rtol=0, atol=2e-5)


def test_the_delta_rule_equals_that_of_transformers(parity):
    from transformers.models.qwen3_next import modeling_qwen3_next as theirs_

    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 3, 17, d)).astype(np.float32) for d in (5, 5, 7))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    beta = rng.random((2, 3, 17)).astype(np.float32)
    t = [torch.from_numpy(x).transpose(1, 2) for x in (q, k, v, np.zeros_like(beta), beta)]
    # Its queries are divided by sqrt(d_k), and zeros let nothing decay.
    expected, _ = theirs_.torch_recurrent_gated_delta_rule(*t, None, False)
    expected = expected.transpose(1, 2).numpy().astype(np.float32) * np.float32(5**0.5)
    parity("delta_rule", "none", delta_rule(q, k, v, beta), expected)


def random_model(seed=0, windows=None, dtype=np.float64, **changes):
    """Return a model of random layers."""
    rng = np.random.default_rng(seed)
    layers = [EncoderLayer.init(10, 2, 13, rng, norm_first=True, dtype=dtype) for _ in range(2)]
    embeddings = rng.normal(size=(17, 10)).astype(dtype)
    return CausalLM(embeddings, layers, windows=windows, **changes)


@settings(steady, max_examples=20)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=7), st.sampled_from([None, [3, None]]))
def test_pieces_of_any_size_are_one_pass(sizes, windows):
    model = random_model(windows=windows)
    tokens = np.random.default_rng(3).integers(0, 17, (2, 3, sum(sizes)))
    got = in_pieces(model, tokens, sizes)
    np.testing.assert_allclose(got, model(tokens), rtol=0, atol=1e-12)
    one = model(tokens[1, 2])
    np.testing.assert_allclose(one, got[1, 2], rtol=0, atol=1e-12)  # no text sees another
    later = tokens.copy()
    later[..., -1:] = (later[..., -1:] + 1) % 17
    np.testing.assert_array_equal(model(later)[..., :-1, :], model(tokens)[..., :-1, :])


def test_a_model_by_hand():
    """Without layers that do anything: the logits are products of embeddings, here tied."""

    def nothing(x, mask=None, cache=None):
        return np.zeros_like(x), None

    embeddings = np.array([[1.0, 0], [0, 1], [2, 3]])
    model = CausalLM(embeddings, [EncoderLayer(nothing, np.zeros_like)], scale=10)
    assert model([2, 0]).tolist() == [[20, 30, 130], [10, 0, 20]]
    assert model.n_tokens == 3
    untied = replace(model, unembedding=np.array([[1.0, 2, 3], [0, 0, 1]]), norm=np.negative)
    assert untied([2, 0]).tolist() == [[-20, -40, -90], [-10, -20, -30]]
    assert model([]).shape == (0, 3)
    assert model(np.zeros((0, 4), int)).shape == (0, 4, 3)
    assert model.write([2, 0], 3, temperature=0).tolist() == [2, 0, 2, 2, 2]


def test_temperature_0_takes_the_most_probable_token():
    model = random_model()
    tokens = model.write([[3], [5]], 11, temperature=0)
    assert tokens.shape == (2, 12)
    assert (model(tokens)[:, :-1].argmax(-1) == tokens[:, 1:]).all()
    assert (model.write([3], 11, top_k=1) == tokens[0]).all()
    assert (model.write([3], 11, temperature=1e-320) == tokens[0]).all()
    assert model.write([3, 4], 0).tolist() == [3, 4]


class Least(np.random.Generator):
    """A generator that draws nothing but 0."""

    def random(self, size):
        """Return zeros."""
        return np.zeros(size)


def test_tokens_are_drawn_as_often_as_they_are_probable():
    model, n = random_model(), 20_000
    for options in ({}, {"temperature": 2.5}, {"temperature": 1.5, "top_k": 4}):
        logits = model([3, 8])[-1] / options.get("temperature", 1)
        if "top_k" in options:
            logits[np.argsort(logits)[: -options["top_k"]]] = -np.inf
        rng = np.random.default_rng(0)
        texts = np.tile([3, 8], (n, 1))
        drawn = model.write(texts, 1, **options, rng=rng)[:, -1]
        shares, expected = np.bincount(drawn, minlength=17) / n, softmax(logits)
        assert np.abs(shares - expected).max() < 4 * (0.25 / n) ** 0.5
        assert (shares[expected == 0] == 0).all()
    # Not even the least draw gives a token without probability.
    assert model.write([3, 8], 1, top_k=1, rng=Least(np.random.PCG64(0)))[-1] == logits.argmax()
    first, second = (model.write([1], 9, rng=np.random.default_rng(5)) for _ in range(2))
    assert (first == second).all()


@pytest.mark.parametrize("top_k", [None, 3])
@pytest.mark.parametrize("top_p", [1e-9, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_the_most_probable_tokens_together_have_top_p(top_k, top_p):
    """`kept` measures the trained writer; it is another implementation."""
    model, n = random_model(), 5_000
    expected = kept(softmax(model([3, 8])[-1].astype(float)), top_k, top_p)
    options = {"top_k": top_k, "top_p": top_p, "rng": np.random.default_rng(0)}
    drawn = model.write(np.tile([3, 8], (n, 1)), 1, **options)[:, -1]
    shares = np.bincount(drawn, minlength=17) / n
    assert np.abs(shares - expected).max() < 4 * (0.25 / n) ** 0.5
    assert (shares[expected == 0] == 0).all()


def test_a_model_refuses_the_cache_of_another_model_or_text():
    model, cache = random_model(), random_model().cache()
    for of_another in (cache, copy.deepcopy(cache)):
        with raises(ValueError, "cache must be that of this model; got that of another model"):
            model([1], cache=of_another)
    cache = copy.deepcopy(model.cache())  # still that of this model
    model([[1, 2]], cache=cache)
    with raises(ValueError, "keys must have the shape of those in the cache, (1, 2, 2, 5), the "
                "number of tokens apart; got (3, 2, 1, 5)"):  # fmt: skip
        model([[1], [2], [3]], cache=cache)
    assert cache.n == 2


def without(config, name):
    return {key: value for key, value in config.items() if key != name}


def test_arrays_that_do_not_fit_are_named(published):
    name, _, config, arrays = published
    query, unknown = "model.layers.1.self_attn.q_proj.weight", "model.layers.0.self_attn.gate"
    shape = arrays[query].shape
    for changes, error, message in (
        ({query: None}, ValueError, f"weights must have {query}, of shape {shape}; got none"),
        ({query: arrays[query][1:]}, ValueError,
         f"{query} must have shape {shape}, as config says; got {(shape[0] - 1, shape[1])}"),
        ({query: np.ones(shape, int)}, TypeError, f"{query} {NOT_FLOATS} int64"),
        ({unknown: np.ones(3)}, ValueError,
         f"weights has arrays that config does not name: {unknown}"),
    ):  # fmt: skip
        given = {key: array for key, array in (arrays | changes).items() if array is not None}
        with raises(error, message):
            causal_lm(config, given)
    # In older files; and tied embeddings need not be there twice, but must not differ.
    older = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(7)}
    causal_lm(config, arrays | older)
    if config.get("tie_word_embeddings", "Gemma" in name):
        causal_lm(config, without(arrays, "lm_head.weight"))
        with raises(ValueError, "lm_head.weight must equal model.embed_tokens.weight or be left "
                    "out, as tie_word_embeddings is true; got other numbers"):  # fmt: skip
            causal_lm(config, arrays | {"lm_head.weight": arrays["lm_head.weight"] + 1})
