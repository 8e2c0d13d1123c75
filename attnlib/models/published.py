"""Published language models in the layers of this library: a configuration, and arrays by name."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from attnlib.experts import MixtureOfExperts
from attnlib.feed_forward import ClampedSwiGLU, SwiGLU, gelu, gelu_tanh, silu
from attnlib.inputs import read_dtype, read_floats, read_number, read_size
from attnlib.layers import EncoderLayer
from attnlib.models.language import CausalLM
from attnlib.multihead import MultiHeadAttention, merge_heads, split_heads
from attnlib.norms import RMSNorm
from attnlib.positions import rotary, rotary_frequencies


def causal_lm(config, weights, *, dtype=np.float32):
    """Return a published language model, from its configuration and its weights.

    Supported is what `model_type` names "llama" (Llama 2 to 3.3), "mistral", "qwen3", "olmo2",
    "gemma3_text" and "gpt_oss". Whatever a configuration says beyond that is an error, which names
    the field: no logit is silently wrong.

    Parameters
    ----------
    config : dict
        What the file config.json of the model holds.
    weights : dict of str to array of float
        The arrays under their published names, each matrix as its transpose, as PyTorch stores it.
    dtype : float16, float32 or float64
        In which the model computes.

    Returns
    -------
    CausalLM

    Raises
    ------
    TypeError
        If `config` or `weights` is not a dict, an array does not hold floats, a field is of the
        wrong kind, or `dtype` is not one of the three.
    ValueError
        If a field of `config` is missing, unknown or has a value that is not supported, or an array
        is missing, unknown or of another shape than the configuration says.

    Source
    ------
    The names are those of Hugging Face's transformers, as of version 5.23, with whose models the
    tests compare the logits. Llama 3.1 is Grattafiori et al. 2024, *The Llama 3 Herd of Models*,
    Mistral Jiang et al. 2023, Qwen3 its team's report of 2025, OLMo 2 and Gemma 3 those of 2025,
    gpt-oss its model card of 2025.
    """
    fields = Fields(config)
    model_type = fields.required("model_type")
    if model_type not in list(FAMILIES):  # a dict would have to hash what may be a list
        raise ValueError(
            f"model_type of config must be one of {', '.join(FAMILIES)}; got {model_type!r}"
        )
    family, arrays = FAMILIES[model_type], _Arrays(weights, read_dtype(dtype))
    n_tokens, d_model = fields.size("vocab_size"), fields.size("hidden_size")
    n_layers, eps = fields.size("num_hidden_layers"), fields.number("rms_norm_eps")
    norm = partial(_norm, arrays, eps, family.shift)
    windows = family.windows(fields, n_layers)
    attention = _attention(fields, arrays, norm, family)
    feed_forward = family.feed_forward(fields, arrays)
    tied = fields.either("tie_word_embeddings", [True, False], family.tied)
    for name in ("is_encoder_decoder", "use_bidirectional_attention"):
        fields.either(name, [False], False)
    fields.finish()

    embeddings = arrays.take("model.embed_tokens.weight", n_tokens, d_model)
    layers = []
    for i, window in enumerate(windows):
        name = f"model.layers.{i}"
        norms = {part: norm(f"{name}.{of}", d_model) for part, of in family.norms.items()}
        parts = attention(f"{name}.self_attn", window), feed_forward(f"{name}.mlp")
        layers.append(EncoderLayer(*parts, norm_first=True, **norms))
    last = norm("model.norm", d_model)
    unembedding = None if tied else arrays.matrix("lm_head", d_model, n_tokens)
    if tied and "lm_head.weight" in weights:
        if not np.array_equal(arrays.matrix("lm_head", d_model, n_tokens).T, embeddings):
            raise ValueError(
                "lm_head.weight must equal model.embed_tokens.weight or be left out, as "
                "tie_word_embeddings is true; got other numbers"
            )
    arrays.finish()
    scale = math.sqrt(d_model) if family.scaled else 1.0
    return CausalLM(embeddings, layers, last, unembedding, windows, scale)


# What a configuration may say


# What changes no logit: how a model was made, how it is run, and what its tokens are for.
WITHOUT_EFFECT = {
    "_name_or_path", "_sliding_window_pattern", "architectures", "attention_dropout",
    "bos_token_id", "cache_implementation", "chunk_size_feed_forward", "dtype", "eos_token_id",
    "experts_per_token", "id2label", "initial_context_length", "initializer_range",
    "label2id", "output_attentions", "output_hidden_states",
    "output_router_logits", "pad_token_id", "pretraining_tp", "problem_type", "return_dict",
    "router_aux_loss_coef", "torch_dtype", "transformers_version", "use_cache",
}  # fmt: skip
ACTIVATIONS = {"silu": silu, "gelu": gelu, "gelu_pytorch_tanh": gelu_tanh}


class Fields:
    """A configuration that is read field by field, so that none is overlooked."""

    def __init__(self, config):
        if not isinstance(config, dict):
            raise TypeError(f"config must be a dict; got {type(config).__name__}")
        self.config, self.seen = config, set()

    def value(self, name, default=None):
        """Return a field, `default` if it is not there or null."""
        self.seen.add(name)
        value = self.config.get(name)
        return default if value is None else value

    def required(self, name):
        """Return a field that must be there."""
        value = self.value(name)
        if value is None:
            raise ValueError(f"config must have the field {name}; got none")
        return value

    def size(self, name, default=None):
        """Return a field that is a size, 1 or more."""
        value = self.required(name) if default is None else self.value(name, default)
        return read_size(value, f"{name} of config", least=1)

    def experts(self, name):
        """Return how many experts a layer has, by this field, and how many of them a token uses."""
        n, k = self.size(name), self.size("num_experts_per_tok")
        if k > n:
            raise ValueError(f"num_experts_per_tok of config must be at most {name}, {n}; got {k}")
        return n, k

    def number(self, name, default=None):
        """Return a field that is a number above 0."""
        value = self.required(name) if default is None else self.value(name, default)
        return read_number(value, f"{name} of config", "above 0")

    def either(self, name, supported, default=None):
        """Return a field that has one of some values."""
        value = self.value(name, default)
        if value not in supported or type(value) is not type(supported[0]):  # 0 == False
            choice = " or ".join(map(repr, supported))
            raise ValueError(f"{name} of config must be {choice} to be supported; got {value!r}")
        return value

    def finish(self):
        """Refuse fields that nothing has read: each may change what the model computes."""
        left = [
            name
            for name, value in self.config.items()
            if value is not None and name not in self.seen | WITHOUT_EFFECT
        ]
        if left:
            raise ValueError(f"config has fields that are not supported: {', '.join(sorted(left))}")


class _Arrays:
    """Weights that are taken name by name, so that none is left over."""

    def __init__(self, weights, dtype):
        if not isinstance(weights, dict):
            raise TypeError(f"weights must be a dict; got {type(weights).__name__}")
        self.weights, self.dtype, self.taken = weights, dtype, set()

    def take(self, name, *shape):
        """Return the array of this name, which must have this shape."""
        self.taken.add(name)
        if name not in self.weights:
            raise ValueError(f"weights must have {name}, of shape {shape}; got none")
        array = read_floats(self.weights[name], name)
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, as config says; got {array.shape}")
        return array.astype(self.dtype, copy=False)

    def matrix(self, name, d_in, d_out):
        """Return the weight of a linear layer, (d_in, d_out)."""
        return self.take(f"{name}.weight", d_out, d_in).T

    def linear(self, name, d_in, d_out, has_bias):
        """Return the weight of a linear layer and its bias, or None for it."""
        bias = self.take(f"{name}.bias", d_out) if has_bias else None
        return self.matrix(name, d_in, d_out), bias

    def finish(self):
        """Refuse arrays that no part has taken."""
        # In older files: the angles follow from the configuration.
        left = [name for name in self.weights if not name.endswith("rotary_emb.inv_freq")]
        left = sorted(set(left) - self.taken)
        if left:
            raise ValueError(f"weights has arrays that config does not name: {', '.join(left)}")


# The parts of a layer


def _norm(arrays, eps, shift, name, width):
    """Return a norm from its weights."""
    gamma = arrays.take(f"{name}.weight", width)
    return RMSNorm(gamma + arrays.dtype(shift) if shift else gamma, eps)


def _attention(fields, arrays, norm, family):
    """Return how to build the attention of a layer, given its name and its window."""
    d_model, n_heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    n_kv_heads = fields.size("num_key_value_heads", n_heads)
    d = fields.size("head_dim", max(d_model // n_heads, 1))
    if d % 2:
        raise ValueError(f"head_dim of config must be even, as heads turn in pairs; got {d}")
    has_bias = family.biased and fields.either("attention_bias", [True, False], False)
    if n_heads % n_kv_heads:
        raise ValueError(
            f"num_key_value_heads of config must divide num_attention_heads, {n_heads}; "
            f"got {n_kv_heads}"
        )
    scale = fields.number("query_pre_attn_scalar") ** -0.5 if family.scaled else None
    turns = family.turns(fields, d, family.base)
    widths = {"q": (d_model, n_heads * d), "o": (n_heads * d, d_model)}
    widths |= dict.fromkeys("kv", (d_model, n_kv_heads * d))

    def build(name, window):
        linear = {
            letter: arrays.linear(f"{name}.{letter}_proj", *widths[letter], has_bias)
            for letter in "qkvo"
        }
        norms = {}
        if family.norms_of_heads == "each":
            norms = {f"norm_{part}": norm(f"{name}.{part}_norm", d) for part in "qk"}
        elif family.norms_of_heads == "all":
            norms = {
                f"norm_{part}": partial(_across_heads, norm(f"{name}.{part}_norm", widths[part][1]))
                for part in "qk"
            }
        return MultiHeadAttention(
            *(linear[letter][0] for letter in "qkvo"),
            n_heads,
            *(linear[letter][1] for letter in "qkvo"),
            n_kv_heads,
            turn=turns[window is not None],
            scale=scale,
            sink=arrays.take(f"{name}.sinks", n_heads) if family.sinks else None,
            **norms,
        )

    return build


def _across_heads(norm, x):
    """Return queries or keys (..., heads, n, d), those of all heads of a token normed as one."""
    return split_heads(norm(merge_heads(x)), x.shape[-3])


def _gated_network(name_of_activation, may_have_biases, fields, arrays):
    """Return how to build the feed-forward network of a layer, given its name."""
    d_model, d_ff = fields.size("hidden_size"), fields.size("intermediate_size")
    activation = ACTIVATIONS[fields.either(name_of_activation, [*ACTIVATIONS])]
    has_bias = may_have_biases and fields.either("mlp_bias", [True, False], False)

    def build(name):
        gate, up = (
            arrays.linear(f"{name}.{part}_proj", d_model, d_ff, has_bias) for part in ("gate", "up")
        )
        down = arrays.linear(f"{name}.down_proj", d_ff, d_model, has_bias)
        weights, biases = zip(gate, up, down, strict=True)
        return SwiGLU(*weights, *biases, activation)

    return build


def _experts(fields, arrays):
    """Return how to build the mixture of experts of a layer of gpt-oss, given its name."""
    d_model, d_ff = fields.size("hidden_size"), fields.size("intermediate_size")
    n, k = fields.experts("num_local_experts")
    limits = fields.number("swiglu_limit", 7.0), fields.number("swiglu_alpha", 1.702)
    fields.either("hidden_act", ["silu"])

    def build(name):
        router = arrays.linear(f"{name}.router", d_model, n, True)
        both = arrays.take(f"{name}.experts.gate_up_proj", n, d_model, 2 * d_ff)
        b_both = arrays.take(f"{name}.experts.gate_up_proj_bias", n, 2 * d_ff)
        down = arrays.take(f"{name}.experts.down_proj", n, d_ff, d_model)
        b_down = arrays.take(f"{name}.experts.down_proj_bias", n, d_model)
        # The columns of the gate and of what it lets pass take turns.
        experts = [
            ClampedSwiGLU(
                both[e, :, ::2], both[e, :, 1::2], down[e],
                b_both[e, ::2], b_both[e, 1::2], b_down[e], *limits,
            )
            for e in range(n)
        ]  # fmt: skip
        return MixtureOfExperts(router[0], experts, k, router[1])

    return build


# Windows: how many tokens each one may attend to, one per layer


def _no_windows(fields, n_layers):
    return [None] * n_layers


def _windows_everywhere(fields, n_layers):
    if "sliding_window" not in fields.config:
        raise ValueError("config must have the field sliding_window, null for none; got none")
    window = fields.value("sliding_window")
    return [window if window is None else fields.size("sliding_window")] * n_layers


def _windows_in_upper_layers(fields, n_layers):
    window, first = fields.value("sliding_window"), fields.value("max_window_layers")
    if not fields.either("use_sliding_window", [True, False], False):
        window, first = None, n_layers
    first = read_size(first, "max_window_layers of config")
    types = ["full_attention" if i < first else "sliding_attention" for i in range(n_layers)]
    return _by_types(fields, n_layers, types, window)


def _windows_by_pattern(fields, n_layers):
    return _windows_but_every_nth(fields.size("sliding_window_pattern", 6), fields, n_layers)


def _windows_but_every_nth(n, fields, n_layers):
    types = ["full_attention" if (i + 1) % n == 0 else "sliding_attention" for i in range(n_layers)]
    return _by_types(fields, n_layers, types, fields.value("sliding_window"))


def _by_types(fields, n_layers, types, window):
    """Return the windows of layers whose types `layer_types` says, or else `types`."""
    types = fields.value("layer_types", types)
    known = ["full_attention", "sliding_attention"]
    fit = isinstance(types, list) and all(each in known for each in types)
    if not fit or len(types) != n_layers:
        raise ValueError(
            f"layer_types of config must be one of {' and '.join(known)} for each of the "
            f"{n_layers} layers; got {types!r}"
        )
    if "sliding_attention" in types:
        window = read_size(window, "sliding_window of config", least=1)
    return [window if name == "sliding_attention" else None for name in types]


# Positions: how queries and keys turn, in layers without and with a window


def _turns(fields, d, base):
    scaling, parameters = fields.value("rope_scaling"), fields.value("rope_parameters")
    base, name = fields.value("rope_theta", base), "rope_scaling"
    if parameters is not None:
        name = "rope_parameters"
        if scaling is not None:
            raise ValueError("config must have rope_scaling or rope_parameters; got both")
    return [_turn(fields, d, base, scaling or parameters, name)] * 2


def _stretched_turns(fields, d, base):
    if fields.value("rope_scaling") is None and fields.value("rope_parameters") is None:
        raise ValueError("config must have the field rope_scaling; got none")
    return _turns(fields, d, base)


def _turns_by_type(fields, d, base):
    local = fields.value("rope_local_base_freq", 10000.0)
    parameters = fields.value("rope_parameters")
    if parameters is None:
        return [_turns(fields, d, base)[0], _turn(fields, d, local, None, "rope_local_base_freq")]
    if fields.value("rope_scaling") is not None:
        raise ValueError("config must have rope_scaling or rope_parameters; got both")
    types = ["full_attention", "sliding_attention"]
    if not isinstance(parameters, dict) or sorted(parameters) != types:
        raise ValueError(
            f"rope_parameters of config must have the fields {' and '.join(types)}; "
            f"got {parameters!r}"
        )
    bases = fields.value("rope_theta", base), local
    return [
        _turn(fields, d, base, parameters[name], f"rope_parameters.{name}")
        for name, base in zip(types, bases, strict=True)
    ]


def _turn(fields, d, base, stretch, name):
    """Return what turns queries and keys (..., n, d), given their positions."""
    trained = fields.value("max_position_embeddings")
    try:
        stretch = dict(stretch or {"rope_type": "default"})
        base = stretch.pop("rope_theta", base)
        rule = stretch.get("rope_type", stretch.get("type"))
        if rule in ("dynamic", "llama3", "yarn"):
            stretch.setdefault("original_max_position_embeddings", trained)
        if rule == "dynamic" and stretch["original_max_position_embeddings"] != trained:
            raise ValueError(
                f"original_max_position_embeddings must be max_position_embeddings, {trained}, for "
                f'"dynamic"; got {stretch["original_max_position_embeddings"]}'
            )
        frequencies, gain = rotary_frequencies(d, base=base, stretch=stretch, length=0)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} of config: {error}") from None
    if rule == "dynamic":
        return partial(_turn_by_length, base, stretch)
    return partial(rotary, layout="halves", frequencies=frequencies, gain=gain)


def _turn_by_length(base, stretch, x, positions):
    """Turn queries or keys by angles that depend on how long the text has become."""
    length = int(positions.max(initial=-1)) + 1
    frequencies, _ = rotary_frequencies(x.shape[-1], base=base, stretch=stretch, length=length)
    return rotary(x, positions, layout="halves", frequencies=frequencies)


# Where the norms of a layer stand, and what their weights are called.
BEFORE = {"norm_1": "input_layernorm", "norm_2": "post_attention_layernorm"}
AFTER = {"after_1": "post_attention_layernorm", "after_2": "post_feedforward_layernorm"}
AROUND = AFTER | {"norm_1": "input_layernorm", "norm_2": "pre_feedforward_layernorm"}


@dataclass(frozen=True)
class Family:
    """What the models of one `model_type` have in common."""

    norms: dict
    feed_forward: Callable
    windows: Callable = _no_windows
    turns: Callable = _turns
    base: float = 10000.0  # of the rotary positions, where the configuration has none
    norms_of_heads: str = ""  # "each" query and key has one, or "all" heads together
    biased: bool = True  # whether the attention may have biases
    sinks: bool = False
    scaled: bool = False  # embeddings by the root of their width, scores by a field
    shift: float = 0.0  # added to the weights of norms
    tied: bool = False  # where the configuration does not say it


_plain_network = partial(_gated_network, "hidden_act", False)
FAMILIES = {
    "llama": Family(BEFORE, partial(_gated_network, "hidden_act", True)),
    "mistral": Family(BEFORE, _plain_network, _windows_everywhere, biased=False),
    "qwen3": Family(BEFORE, _plain_network, _windows_in_upper_layers, norms_of_heads="each"),
    "olmo2": Family(AFTER, _plain_network, norms_of_heads="all"),
    "gemma3_text": Family(
        AROUND,
        partial(_gated_network, "hidden_activation", False),
        _windows_by_pattern,
        _turns_by_type,
        base=1e6,
        norms_of_heads="each",
        scaled=True,
        shift=1.0,
        tied=True,
    ),
    "gpt_oss": Family(
        BEFORE,
        _experts,
        partial(_windows_but_every_nth, 2),
        _stretched_turns,
        base=150000.0,
        sinks=True,
    ),
}
