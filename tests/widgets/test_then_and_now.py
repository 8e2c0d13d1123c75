"""ThenAndNow: its counts and its expression, held against the layers that they speak of."""

import numpy as np
import pytest

import attnlib
from attnlib.models import causal_lm
from attnlib.widgets import ThenAndNow
from attnlib.widgets.then_and_now import LLAMA, PARTS, SIZES
from tests.helpers import parts
from tests.widgets.pictures import js, part, picture, run
from tests.widgets.samples import every

llama = ThenAndNow(**dict.fromkeys(LLAMA, True))


@every(ThenAndNow)
def test_javascript_counts_what_python_counts(widget):
    assert js(widget, "compute(state)") == {"parameters": widget.parameters, "cache": widget.cache}


def built(widget):
    """The names that the copied code makes, and the layer in its expression."""
    lines = js(widget, "code(state)")
    start = next(i for i, text in enumerate(lines) if text.startswith("output, weights = "))
    end = next(i for i, text in enumerate(lines) if text.startswith(")("))
    lines[start] = lines[start].replace("output, weights", "layer")
    lines[end] = ")"
    return run(lines[: end + 1]), run(js(widget, "code(state)"))


@every(ThenAndNow)
def test_the_expression_is_a_layer_of_so_many_numbers(widget):
    names, _ = built(widget)
    layer = names["layer"]
    arrays = [array for part in parts(layer) for array in vars(part).values()]
    learned = sum(array.size for array in arrays if isinstance(array, np.ndarray))
    d, d_k, small = 64, 8, dict(SIZES, d_model=64, heads=8, kv_heads=2, d_ff=256, d_gated=224)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnlib.widgets.then_and_now.SIZES", small)
        assert learned == widget.parameters
    assert layer.norm_first == widget.norm_first
    assert (layer.attention.w_k.shape == (d, 2 * d_k)) == widget.grouped


def test_with_five_changes_it_is_a_layer_of_llama():
    names, run_whole = built(llama)
    weights = {f"self_attn.{letter}_proj": names[f"w_{letter}"].T for letter in "qkvo"}
    weights |= {f"mlp.{part}_proj": names[f"w_{part}"].T for part in ("gate", "up", "down")}
    weights |= {"input_layernorm": names["gamma_1"], "post_attention_layernorm": names["gamma_2"]}
    weights = {f"model.layers.0.{name}.weight": array for name, array in weights.items()}
    n, d = names["x"].shape
    weights |= {"model.embed_tokens.weight": names["x"], "model.norm.weight": np.ones(d)}
    config = {
        "model_type": "llama", "vocab_size": n, "hidden_size": d, "num_hidden_layers": 1,
        "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 224,
        "rms_norm_eps": 1e-5, "rope_theta": 5e5, "hidden_act": "silu", "tie_word_embeddings": True,
    }  # fmt: skip
    expected = causal_lm(config, weights, dtype=np.float64).read(range(n)).states[-1]
    assert np.allclose(run_whole["output"], expected, atol=1e-12)
    assert not np.allclose(run(js(ThenAndNow(), "code(state)"))["output"], expected, atol=0.1)


def test_the_window_holds_back_what_is_far():
    window = ThenAndNow(**dict.fromkeys([*LLAMA, "window"], True))
    weights = run(js(window, "code(state)"))["weights"]  # (8, 7, 7)
    seen = attnlib.window_mask(7, 3, causal=True)
    assert (weights[:, ~seen] == 0).all() and (weights[:, seen] > 0).all()


def test_llama_has_eight_billion_numbers():
    """Its report says 8B; its configuration has two tables of 128,256 rows and one more norm."""
    total = SIZES["layers"] * llama.parameters + (2 * 128_256 + 1) * SIZES["d_model"]
    assert total == 8_030_261_248
    assert llama.cache == 2**32  # 2 * 32 layers * 2^15 tokens * 8 heads * 128 numbers * 2 bytes
    assert ThenAndNow().cache == 4 * llama.cache


@pytest.mark.parametrize("changed", [(), ("rms",), LLAMA, PARTS])
def test_the_boxes_are_those_that_are_changed(changed):
    soup = picture(ThenAndNow(**dict.fromkeys(changed, True)))
    assert {box["name"] for box in soup.find_all("input", checked=True)} == set(changed)
    code = soup.find("pre").get_text()
    assert code.count("\n") == 14  # as many lines whatever is changed: nothing below it jumps
    assert len(max(code.splitlines(), key=len)) <= 40


def test_known_layers_are_named():
    for changed, name in (LLAMA, "Llama 3"), ((*LLAMA, "window"), "Mistral 7B"):
        assert name in part(picture(ThenAndNow(**dict.fromkeys(changed, True))), "verdict")
