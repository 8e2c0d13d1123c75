"""ConfigReader and the sizes behind it: against the models themselves, and its expression."""

import copy
import inspect
import json
import os
from functools import partial

import pytest
from hypothesis import given, settings

import attnlib
from _ext.widgets.page import engine
from attnlib.models import causal_lm, sizes
from attnlib.widgets import ConfigReader
from attnlib.widgets.config_reader import PUBLISHED
from tests.helpers import raises, steady
from tests.test_causal_lm import PUBLISHED as SMALL
from tests.widgets.pictures import js, run
from tests.widgets.samples import SAMPLES

os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported

# Billions of parameters, in all and for each token, as the reports of the models give them:
# Llama 3.1 "8B", Qwen3 8.2, Gemma 3 .302 + .698, gpt-oss 20.91 and 3.61, DeepSeek V3 671 and 37,
# GLM-5 744 (and "40" for each token, which is without the table of the output).
REPORTED = {
    "Llama 3.1 8B": (8.0, None), "Qwen3 8B": (8.2, None), "Gemma 3 1B": (1.0, None),
    "gpt-oss 20B": (20.91, 3.61), "DeepSeek V3": (671, 37), "GLM-5": (744, None),
}  # fmt: skip


def in_transformers(config):
    """A model of transformers with this configuration, without any numbers."""
    import torch
    import transformers

    own = transformers.AutoConfig.for_model(**copy.deepcopy(config))
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(own)


@pytest.mark.parametrize("config", [*PUBLISHED.values(), *SMALL.values()])
def test_the_total_is_that_of_the_model(config):
    model = in_transformers(config)
    assert sizes(config).total == sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize("name", PUBLISHED)
def test_totals_are_those_of_the_reports(name):
    total, active = REPORTED[name]
    found = sizes(PUBLISHED[name])
    digits = 0 if total > 100 else 1 if active is None else 2
    assert round(found.total / 1e9, digits) == total
    assert active is None or round(found.active / 1e9, digits) == active


def test_the_cache_is_that_of_the_model():
    """19 tokens through a small model with windows of 7: the numbers in its cache.

    Between two tokens it holds 6 in a window, and the 7th while the next token is read.
    """
    config = SMALL["Gemma 3"]
    weights = {name: 0.1 + 0 * each for name, each in _weights(config).items()}
    model = causal_lm(config, weights)
    cache = model.cache()
    model([3] * 19, cache=cache)
    held = sum(each.size for layer in cache.layers for each in (layer.keys, layer.values))
    found = sizes(config)
    read = sum(each.cached for each in found.layers if each.window)
    assert found.cache(19, bytes_each=2) == 2 * (held + read)


def _weights(config):
    """Ones for all its arrays; without the output projection where it is the embedding table."""
    import torch

    arrays = in_transformers(config).state_dict()
    if config.get("tie_word_embeddings", config["model_type"] == "gemma3_text"):
        del arrays["lm_head.weight"]
    return {name: torch.ones(each.shape).numpy() for name, each in arrays.items()}


@settings(steady, max_examples=25)
@given(widget=SAMPLES[ConfigReader])
def test_javascript_counts_what_python_counts(widget):
    found = widget.sizes
    counted = js(widget, "compute(state)")
    assert [counted[name] for name in ("total", "active", "cache")] == [
        found.total, found.active, found.cache(widget.tokens)
    ]  # fmt: skip
    assert run(js(widget, "code(state)"))["printed"] == [
        f"{found.total} {found.active} {found.cache(widget.tokens)}"
    ]


@pytest.mark.parametrize(
    ("name", "all_of_them"), [("gpt-oss 20B", "num_local_experts"), ("GLM-5", "n_routed_experts")]
)
def test_no_token_uses_more_experts_than_there_are(name, all_of_them):
    config = PUBLISHED[name] | {all_of_them: 32, "num_experts_per_tok": 33}
    said = f"num_experts_per_tok of config must be at most {all_of_them}, 32; got 33"
    with raises(ValueError, said):
        sizes(config)
    call = "(() => { try { return DESCRIBE } catch (error) { return error.message } })()"
    call = call.replace("DESCRIBE", "config_reader_model.describe(dukpy.config)")
    found = engine("ConfigReader")(call, config=config)
    assert found == f"The field num_experts_per_tok must be at most {all_of_them}, 32."


ABSURD = [None, 0, -1, "x", True, [1], {}, 1.5, ["foo"] * 4, 64]
# The page says these, Python counts nothing with them.
ONLY_SAID = {"query_pre_attn_scalar", "index_topk"}
TRY = """(() => {
  try {
    const found = config_reader_model.count(config_reader_model.describe(dukpy.config), 1000);
    return [found.total, found.active, found.cache];
  } catch { return null; }
})()"""


@pytest.mark.parametrize("name", [*PUBLISHED, "Mistral"])
def test_page_and_python_refuse_the_same_fields(name):
    whole = (PUBLISHED | SMALL)[name]
    fields = {*whole, "layer_types", "num_experts_per_tok", "sliding_window_pattern"} - ONLY_SAID
    wrong = [{k: v for k, v in whole.items() if k != field} for field in fields]
    wrong += [whole | {field: value} for field in fields for value in ABSURD]
    for config in wrong:
        try:
            found = sizes(config)
            counted = [found.total, found.active, found.cache(1000)]
        except (TypeError, ValueError):
            counted = None
        assert engine("ConfigReader")(TRY, config=config) == counted, config


@pytest.mark.parametrize("name", [name for name in SMALL if name != "Mistral"])
def test_the_expression_is_the_layer_that_causal_lm_builds(name):
    """Which norms, which scale, which sink it has; and the names of its arguments."""
    config = SMALL[name]
    widget = ConfigReader(config=json.dumps(config))
    lines = js(widget, "expression(state)")
    made = {}

    def stand_in(kind, *args, **kwargs):
        made[kind.__name__] = inspect.signature(kind).bind(*args, **kwargs).arguments
        return kind.__name__

    parts = "EncoderLayer MultiHeadAttention SwiGLU MixtureOfExperts RMSNorm".split()
    names = {part: partial(stand_in, getattr(attnlib, part)) for part in parts}
    names |= {"partial": partial, "rotary": attnlib.rotary}
    names |= dict.fromkeys(
        "w_q w_k w_v w_o w_gate w_up w_down w_router experts sinks frequencies gain norm_q norm_k "
        "gamma_1 gamma_2 gamma_3 gamma_4 gamma_q gamma_k".split(),
        "an array",
    )
    eval("\n".join(line for line in lines if not line.startswith("#")), names)
    layer = causal_lm(config, _weights(config)).layers[0]
    for norm in ("norm_1", "norm_2", "after_1", "after_2"):
        has = made["EncoderLayer"].get(norm) not in (None, "None")
        assert has == (getattr(layer, norm) is not None), norm
    attention = made["MultiHeadAttention"]
    for part in ("norm_q", "norm_k", "sink", "scale"):
        assert (part in attention) == (getattr(layer.attention, part) is not None), part
    assert attention.get("scale") == pytest.approx(layer.attention.scale)
    assert attention["n_heads"] == layer.attention.n_heads
    assert attention["n_kv_heads"] == layer.attention.n_kv_heads
    assert ("MixtureOfExperts" in made) == isinstance(layer.feed_forward, attnlib.MixtureOfExperts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "from { to }"),
        ('{"model_type": "mamba"}', "model_type must be one of"),
        ('{"model_type": "__proto__"}', "model_type must be one of"),
        (json.dumps(PUBLISHED["Qwen3 8B"] | {"num_hidden_layers": "4"}), "num_hidden_layers"),
        (json.dumps(PUBLISHED["Qwen3 8B"] | {"num_hidden_layers": 10**9}), "at most 1000"),
        (json.dumps(PUBLISHED["Qwen3 8B"] | {"vocab_size": 1.5}), "vocab_size"),
        (json.dumps({"x": "y" * 20_000}), "at most 20,000 letters"),
        (json.dumps(PUBLISHED["GLM-5"] | {"index_topk_freq": 4}), "index_topk_freq must give"),
    ],
)
def test_what_it_cannot_read_it_says(text, said):
    assert said in js(ConfigReader(), f"complaint({json.dumps(text)})")


def test_errors_of_sizes():
    qwen, shared = PUBLISHED["Qwen3 8B"], "FSSS" * 19 + "FS"
    known = "llama, mistral, qwen3, olmo2, gemma3_text, gpt_oss, deepseek_v3, glm_moe_dsa"
    own = "index_topk_pattern of config must give each layer an indexer of its own"
    with raises(TypeError, "config must be a dict; got list"):
        sizes([])
    for config, message in (
        ({}, "config must have the field model_type; got none"),
        ({"model_type": "mamba"}, f"model_type of config must be one of {known}; got 'mamba'"),
        (qwen | {"hidden_size": 0}, "hidden_size of config must be 1 or more; got 0"),
        (PUBLISHED["GLM-5"] | {"index_topk_pattern": shared}, f"{own}; got {shared!r}"),
    ):
        with raises(ValueError, message):
            sizes(config)
