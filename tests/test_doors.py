"""Public functions at their doors: whatever one argument is, they refuse it by name, or compute.

What two arguments say of each other stands at the end.
"""

import copy
import re

import numpy as np
import pytest

import attnlib
from attnlib import models, serving
from attnlib.models import induction
from tests.helpers import raises

pytestmark = pytest.mark.filterwarnings("error")

RNG = np.random.default_rng(0)
X, MEMORY = RNG.normal(size=(3, 6)), RNG.normal(size=(5, 6))
VECTOR, SQUARE, MASK = RNG.normal(size=6), RNG.normal(size=(6, 6)), np.ones((3, 5), bool)
QKV = {"queries": X, "keys": MEMORY, "values": RNG.normal(size=(5, 2))}
ATTENTION = attnlib.MultiHeadAttention.init(6, 2, RNG, dtype=np.float64)
LAYER = attnlib.EncoderLayer.init(6, 2, 7, RNG, norm_first=True, dtype=np.float64)
MODEL = models.CausalLM(RNG.normal(size=(11, 6)), [LAYER, LAYER])
NETWORK = {"w_1": SQUARE, "b_1": VECTOR, "w_2": SQUARE, "b_2": VECTOR, "activation": attnlib.relu}
GATED = {name: SQUARE for name in ("w_gate", "w_up", "w_down")}
GATED |= {name: VECTOR for name in ("b_gate", "b_up", "b_down")}
HEADS = {name: SQUARE for name in ("w_q", "w_k", "w_v", "w_o")}
HEADS |= {name: VECTOR for name in ("b_q", "b_k", "b_v", "b_o")}
HEADS |= {"n_heads": 2, "n_kv_heads": 2, "turn": lambda x: x, "norm_q": lambda x: x}
HEADS |= {"norm_k": lambda x: x, "scale": 1.0, "cap": 2.0, "sink": VECTOR[:2]}
NORMS = {name: (lambda x: x) for name in ("norm_1", "norm_2", "after_1", "after_2")}
SIZES = {"d_model": 6, "n_heads": 2, "rng": RNG, "dtype": np.float32}


def on_tokens(kind):
    """Return a function that makes a part and calls it with tokens."""
    return lambda **parts: kind(**parts)(X)


# Each public function, or a class and what its objects compute, with arguments that are right.
DOORS = {
    "scaled_dot_product_attention": (
        attnlib.scaled_dot_product_attention, QKV | {"mask": MASK, "causal": True, "scale": 0.5}
    ),
    "blockwise_attention": (
        attnlib.blockwise_attention,
        QKV | {"mask": MASK, "causal": True, "scale": 0.5, "block": 2},
    ),
    "attention_backward": (
        attnlib.attention_backward,
        QKV | {"grad_output": X[:, :2], "mask": MASK, "causal": False, "scale": 0.5},
    ),
    "linear_attention": (
        attnlib.linear_attention, QKV | {"queries": MEMORY, "causal": True}
    ),
    "delta_rule": (attnlib.delta_rule, QKV | {"queries": MEMORY, "beta": VECTOR[:5]}),
    "softmax": (attnlib.softmax, {"scores": X, "axis": 0}),
    "softmax_backward": (attnlib.softmax_backward, {"weights": X, "grad_weights": X}),
    "merge_partials": (attnlib.merge_partials, {"m": X, "l": X, "o": X[..., None], "axis": 0}),
    "layer_norm": (attnlib.layer_norm, {"x": X, "gamma": VECTOR, "beta": VECTOR, "eps": 0.1}),
    "rms_norm": (attnlib.rms_norm, {"x": X, "gamma": VECTOR, "eps": 0.1}),
    "LayerNorm": (on_tokens(attnlib.LayerNorm), {"gamma": VECTOR, "beta": VECTOR, "eps": 0.1}),
    "RMSNorm": (on_tokens(attnlib.RMSNorm), {"gamma": VECTOR, "eps": 0.1}),
    **{name: (getattr(attnlib, name), {"x": X}) for name in ("relu", "gelu", "gelu_tanh", "silu")},
    "feed_forward": (attnlib.feed_forward, {"x": X} | NETWORK),
    "FeedForward": (on_tokens(attnlib.FeedForward), NETWORK),
    "SwiGLU": (on_tokens(attnlib.SwiGLU), GATED | {"activation": attnlib.relu}),
    "ClampedSwiGLU": (on_tokens(attnlib.ClampedSwiGLU), GATED | {"limit": 7.0, "slope": 1.0}),
    "MixtureOfExperts": (
        on_tokens(attnlib.MixtureOfExperts),
        {"w_router": X.T, "experts": [np.negative] * 3, "k": 2, "b_router": VECTOR[:3]},
    ),
    "causal_mask": (attnlib.causal_mask, {"n_q": 3, "n_k": 5}),
    "padding_mask": (attnlib.padding_mask, {"lengths": [1, 3], "n_k": 3}),
    "window_mask": (attnlib.window_mask, {"n": 3, "width": 1, "causal": True}),
    "top_k_mask": (attnlib.top_k_mask, {"scores": X, "k": 2}),
    "additive": (attnlib.additive, {"mask": MASK, "dtype": np.float32}),
    "blocked": (attnlib.blocked, {"mask": MASK}),
    "split_heads": (attnlib.split_heads, {"x": X, "n_heads": 2}),
    "merge_heads": (attnlib.merge_heads, {"x": X[None]}),
    "MultiHeadAttention": (on_tokens(attnlib.MultiHeadAttention), HEADS),
    "MultiHeadAttention()": (
        ATTENTION, {"x": X, "memory": MEMORY, "mask": MASK, "score_bias": np.ones((2, 3, 5))}
    ),
    "MultiHeadAttention(), cache": (ATTENTION, {"x": X, "cache": attnlib.KeyValueCache()}),
    "MultiHeadAttention.init": (
        attnlib.MultiHeadAttention.init, SIZES | {"bias": True, "n_kv_heads": 2}
    ),
    "KeyValueCache": (attnlib.KeyValueCache, {"window": 3}),
    "KeyValueCache.extend": (
        lambda **new: attnlib.KeyValueCache().extend(**new), {"keys": X, "values": X}
    ),
    "EncoderLayer": (
        on_tokens(attnlib.EncoderLayer),
        {"attention": ATTENTION, "feed_forward": np.negative, "norm_first": True} | NORMS,
    ),
    "EncoderLayer()": (LAYER, {"x": X, "mask": np.ones((3, 3), bool)}),
    "EncoderLayer.init": (
        attnlib.EncoderLayer.init,
        SIZES | {"d_ff": 7, "norm_first": True},
    ),
    "Encoder": (on_tokens(attnlib.Encoder), {"layers": [LAYER], "norm": lambda x: x}),
    "Encoder.init": (attnlib.Encoder.init, SIZES | {"n_layers": 2, "d_ff": 7, "norm_first": True}),
    "DecoderLayer": (
        lambda **parts: attnlib.DecoderLayer(**parts)(X, MEMORY),
        {"attention": ATTENTION, "cross_attention": ATTENTION, "feed_forward": np.negative}
        | {name: np.negative for name in ("norm_1", "norm_2", "norm_3")}
        | {"norm_first": True},
    ),
    "DecoderLayer()": (
        attnlib.DecoderLayer.init(6, 2, 7, RNG, dtype=np.float64),
        {"x": X, "memory": MEMORY, "mask": np.ones((3, 3), bool), "memory_mask": MASK},
    ),
    "sinusoidal_positions": (
        attnlib.sinusoidal_positions, {"n": 3, "d_model": 6, "base": 9.0, "dtype": np.float32}
    ),
    "rotary": (
        attnlib.rotary,
        {"x": X, "positions": [0, 1, 2], "base": 9.0, "layout": "halves", "scale": 2.0}
        | {"frequencies": VECTOR[:3], "gain": 2.0},
    ),
    "rotary_frequencies": (
        attnlib.rotary_frequencies,
        {"d": 6, "base": 9.0, "length": 7}
        | {"stretch": {"rope_type": "linear", "factor": 2.0}},
    ),
    "rotary_frequencies, stretch": (
        lambda **stretch: attnlib.rotary_frequencies(6, stretch=stretch),
        {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 512}
        | {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": True, "attention_factor": 1.0},
    ),
    "alibi_bias": (attnlib.alibi_bias, {"n_heads": 2, "n_q": 3, "n_k": 5, "dtype": np.float32}),
    "relative_position_bias": (
        attnlib.relative_position_bias, {"table": X[:, :5], "n_q": 3, "n_k": 5}
    ),
    "head_outputs": (attnlib.head_outputs, {"model": MODEL, "text": [1, 2]}),
    "lens": (attnlib.lens, {"model": MODEL, "tokens": [1, 2]}),
    "ledger": (attnlib.ledger, {"model": MODEL, "tokens": [1, 2], "position": 1, "token": 3}),
    "mean_outputs": (attnlib.mean_outputs, {"model": MODEL, "texts": [[1, 2]]}),
    "replace_heads": (attnlib.replace_heads, {"model": MODEL, "outputs": {(0, 1): X[:, :3]}}),
    "CausalLM": (
        lambda **parts: models.CausalLM(**parts)([1, 2]),
        {"embeddings": X, "layers": [LAYER], "norm": np.negative, "unembedding": X.T}
        | {"windows": [3], "scale": 2.0},
    ),
    "CausalLM()": (MODEL, {"tokens": [1, 2], "cache": MODEL.cache()}),
    "CausalLM.write": (
        MODEL.write,
        {"tokens": [1, 2], "n": 2, "temperature": 1.0, "top_k": 3, "top_p": 0.5, "rng": RNG},
    ),
    "CausalLM.logits": (MODEL.logits, {"states": X}),
    "mean_pool": (models.mean_pool, {"states": X, "mask": np.ones(3, bool)}),
    "writer": (models.writer, {"dtype": np.float32}),
    "induction.answers": (induction.answers, {"tokens": [1, 2, 1]}),
    "induction.sentences": (induction.sentences, {"n_sentences": 2, "rng": RNG, "n": 5}),
    "induction.load": (induction.load, {"n_layers": 2, "penalized": True, "dtype": np.float32}),
    "induction.without": (
        lambda layer, head: induction.without(induction.load(2), (layer, head)),
        {"layer": 1, "head": 0},
    ),
    "expected_tokens": (serving.expected_tokens, {"acceptance": 0.7, "drafted": 3}),
    "accept_draft": (
        serving.accept_draft,
        {"target": [0.25, 0.75], "draft": [0.5, 0.5], "token": 1, "chance": 0.5},
    ),
    "Settings": (serving.Settings, vars(serving.Settings())),
}  # fmt: skip
INNER = "x", "tokens", "window", "rope_type"  # what stands in another argument, or meets it
ABSURD = [
    None, True, "x", "False", -1, 1.5, 7, 10**30, 1e200, 1e-300, np.nan, np.inf, [], [1], {}, {"x"},
    np.array(1.0), [[1.0], [1.0, 2.0]], np.array([None]), np.ones((0, 6)), ["halves"], 1j,
    object(), lambda *_, **__: None, lambda x, *_, **__: x[..., :1], lambda x, *_, **__: x[:1],
    np.array([True, False]), np.ones((2, 2, 2, 2, 2)), np.ones((3, 6), int),
]  # fmt: skip


def numbers(result):
    """Yield the arrays of floats in a result."""
    if isinstance(result, tuple | list):
        for each in result:
            yield from numbers(each)
    elif isinstance(result, np.ndarray | float) and np.asarray(result).dtype.kind == "f":
        yield np.asarray(result)


@pytest.mark.parametrize("name", DOORS)
def test_an_argument_is_refused_by_its_name_or_understood(name):
    function, right = DOORS[name]
    function(**right)
    offences = []
    for parameter in right:
        for absurd in ABSURD:
            case = f"{parameter} = {str(absurd)[:60]!r}"
            try:
                result = function(**right | {parameter: absurd})
            except (TypeError, ValueError) as error:
                named = any(re.search(rf"\b{each}\b", str(error)) for each in (*right, *INNER))
                if not (named and " must " in str(error) and "; got " in str(error)):
                    offences.append(f"{case}: {type(error).__name__}: {error}")
            except Exception as error:
                offences.append(f"{case}: {type(error).__name__}: {error}")
            else:
                through = isinstance(absurd, float) and isinstance(right[parameter], np.ndarray)
                if not through and any(np.isnan(array).any() for array in numbers(result)):
                    offences.append(f"{case}: NaN")
                elif callable(right[parameter]) and callable(absurd):
                    offences.append(f"{case}: taken")
    assert not offences, "\n".join(offences)


def test_every_public_function_has_a_door():
    returned = {"Judgment", "Cache", "LayerSizes", "ModelSizes", "Reading", "Trace"}
    returned |= {"MiniLM", "Writer", "MissingModelError"}
    # These are tested in their own files.
    elsewhere = {"judge", "causal_lm", "sizes", "gpt_by_hand", "load_minilm"}
    elsewhere |= {"row_ledger", "everyday_sentences", "is_here", "load_recording"}
    assert {*attnlib.__all__, *models.__all__} - returned - elsewhere <= set(DOORS)


def test_a_cache_is_that_of_one_attention_and_stays_whole():
    cache = attnlib.KeyValueCache()
    ATTENTION(X, cache=cache)
    ATTENTION(X, cache=copy.deepcopy(cache))
    with raises(ValueError, "cache must be that of this attention; got that of another attention"):
        LAYER(X, cache=cache)
    assert cache.n == 3
    cache = attnlib.KeyValueCache()
    with pytest.raises(ValueError, match="keys and values must have one shape"):
        cache.extend(X, MEMORY)
    assert cache.n == 0
    cache.extend(X.tolist(), X[:, :2].tolist())
    assert cache.keys.shape == (3, 6) and cache.values.shape == (3, 2)
