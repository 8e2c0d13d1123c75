"""ConfigReader and the sizes behind it: against the models themselves, and its expression."""

import inspect
import json
from functools import partial

import pytest

import attnlib
from _ext.widgets.page import engine
from attnlib.models import causal_lm, sizes
from attnlib.widgets import ConfigReader
from attnlib.widgets.config_reader import PUBLISHED
from tests.helpers import raises
from tests.test_causal_lm import PUBLISHED as SMALL
from tests.widgets.pictures import js, run
from tests.widgets.samples import arrays_of, every

# Parameters in all, as the models of transformers 5.23 have them without any numbers, and billions
# in all and for each token, as the reports of the models give them. (That of GLM-5 says 40 for each
# token, which is without the table of the output.)
KNOWN = {
    "Llama 3.1 8B": (8_030_261_248, 8.0, None),
    "Qwen3 8B": (8_190_735_360, 8.2, None),
    "Gemma 3 1B": (999_885_952, 1.0, None),
    "gpt-oss 20B": (20_914_757_184, 20.91, 3.61),
    "DeepSeek V3": (671_026_404_352, 671, 37),
    "GLM-5": (743_911_199_232, 744, None),
}


@pytest.mark.parametrize("config", SMALL.values(), ids=SMALL)
def test_the_total_is_that_of_the_model(config):
    """Of that which tests/test_causal_lm.py holds against transformers."""
    assert sizes(config).total == sum(each.size for each in arrays_of(config).values())


@pytest.mark.parametrize("name", PUBLISHED)
def test_totals_are_those_of_transformers_and_of_the_reports(name):
    exact, total, active = KNOWN[name]
    found = sizes(PUBLISHED[name])
    assert found.total == exact
    digits = 0 if total > 100 else 1 if active is None else 2
    assert round(found.total / 1e9, digits) == total
    assert active is None or round(found.active / 1e9, digits) == active


def test_the_cache_is_that_of_the_model():
    """19 tokens through a small model with windows of 7: the numbers in its cache.

    Between two tokens it holds 6 in a window, and the 7th while the next token is read.
    """
    config = SMALL["Gemma 3"]
    model = causal_lm(config, arrays_of(config))
    cache = model.cache()
    model([3] * 19, cache=cache)
    held = sum(each.size for layer in cache.layers for each in (layer.keys, layer.values))
    found = sizes(config)
    read = sum(each.cached for each in found.layers if each.window)
    assert found.cache(19, bytes_each=2) == 2 * (held + read)


@every(ConfigReader)
def test_javascript_counts_what_python_counts(widget):
    expected = [widget.sizes.total, widget.sizes.active, widget.sizes.cache(widget.tokens)]
    counted = js(widget, "compute(state)")
    assert [counted[name] for name in ("total", "active", "cache")] == expected
    assert run(js(widget, "code(state)"))["printed"] == [" ".join(map(str, expected))]


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
    layer = causal_lm(config, arrays_of(config)).layers[0]
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


QWEN, GLM, GPT = (PUBLISHED[name] for name in ("Qwen3 8B", "GLM-5", "gpt-oss 20B"))
GREEDY = {"num_local_experts": 32, "n_routed_experts": 32, "num_experts_per_tok": 33}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "from { to }"),
        ('{"model_type": "mamba"}', "model_type must be one of"),
        ('{"model_type": "__proto__"}', "model_type must be one of"),
        (json.dumps(QWEN | {"num_hidden_layers": "4"}), "num_hidden_layers"),
        (json.dumps(QWEN | {"num_hidden_layers": 10**9}), "at most 1000"),
        (json.dumps(QWEN | {"vocab_size": 1.5}), "vocab_size"),
        (json.dumps({"x": "y" * 20_000}), "at most 20,000 letters"),
        (json.dumps(GLM | {"index_topk_freq": 4}), "index_topk_freq must give"),
        (json.dumps(GLM | GREEDY), "num_experts_per_tok must be at most n_routed_experts, 32."),
        (json.dumps(GPT | GREEDY), "num_experts_per_tok must be at most num_local_experts, 32."),
    ],
)
def test_what_it_cannot_read_it_says(text, said):
    assert said in js(ConfigReader(), f"complaint({json.dumps(text)})")


def test_errors_of_sizes():
    shared, greedy = "FSSS" * 19 + "FS", "num_experts_per_tok of config must be at most"
    known = "llama, mistral, qwen3, olmo2, gemma3_text, gpt_oss, deepseek_v3, glm_moe_dsa"
    own = "index_topk_pattern of config must give each layer an indexer of its own"
    with raises(TypeError, "config must be a dict; got list"):
        sizes([])
    for config, message in (
        ({}, "config must have the field model_type; got none"),
        ({"model_type": "mamba"}, f"model_type of config must be one of {known}; got 'mamba'"),
        (QWEN | {"hidden_size": 0}, "hidden_size of config must be 1 or more; got 0"),
        (GLM | {"index_topk_pattern": shared}, f"{own}; got {shared!r}"),
        (GLM | GREEDY, f"{greedy} n_routed_experts, 32; got 33"),
        (GPT | GREEDY, f"{greedy} num_local_experts, 32; got 33"),
    ):
        with raises(ValueError, message):
            sizes(config)
