"""What the tests of several modules share: exact errors, masks for both sides, a cache."""

import itertools
import re
from dataclasses import is_dataclass, replace

import numpy as np
import pytest
import tokenizers
import torch
from hypothesis import settings

from attnlib import blocked, causal_mask, padding_mask
from attnlib.models.writing import WEIGHTS
from tools.train_writer import Llama, Recipe

# The heads are even in number, or PyTorch would leave its fast path out.
BATCH, N, N_MEMORY, HEADS, D_K, D_FF, D_MEMORY = 3, 7, 5, 2, 11, 13, 17
D_MODEL = HEADS * D_K
MODES = ["none", "causal", "padding", "both", "additive"]
# How each error ends that refuses whole numbers where floats are needed.
NOT_FLOATS = "must hold floats (float16, float32 or float64, so 1.0 and not 1); got"
DTYPES = {np.float32: torch.float32, np.float64: torch.float64}
steady = settings(deadline=None, derandomize=True)


def raises(error, message):
    """Expect `error` with exactly this message."""
    return pytest.raises(error, match=f"^{re.escape(message)}$")


def every_pair(**levels):
    """Parametrize a test by so many cases that each value of an option meets all of another one.

    What is wrong with one value, or with two together, is met; all cases are ten times as many.
    """
    cases = list(itertools.product(*levels.values()))
    pairs = {case: set(itertools.combinations(enumerate(case), 2)) for case in cases}
    missing, chosen = set().union(*pairs.values()), []
    while missing:
        chosen.append(max(cases, key=lambda case: len(pairs[case] & missing)))
        missing -= pairs[chosen[-1]]
    return pytest.mark.parametrize(list(levels), chosen)


def tokens(*shape, dtype=np.float64, seed=1):
    """Return random tokens."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def minilm_weights(seed, scale, words, width, inner, places, layers):
    """Return random weights of a small MiniLM under the published names, none at a default."""
    shapes = {
        "embeddings.word_embeddings.weight": (words, width),
        "embeddings.position_embeddings.weight": (places, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    dense = {f"attention.self.{name}": (width, width) for name in ("query", "key", "value")}
    dense |= {"attention.output.dense": (width, width)}
    dense |= {"intermediate.dense": (inner, width), "output.dense": (width, inner)}
    norms = ["embeddings"]
    for i in range(layers):
        layer = f"encoder.layer.{i}"
        norms += [f"{layer}.attention.output", f"{layer}.output"]
        for part, shape in dense.items():
            shapes |= {f"{layer}.{part}.weight": shape, f"{layer}.{part}.bias": shape[:1]}
    for name in norms:
        shapes |= {f"{name}.LayerNorm.{part}": (width,) for part in ("weight", "bias")}
    rng = np.random.default_rng(seed)
    return {k: rng.normal(scale=scale, size=s).astype(np.float32) for k, s in shapes.items()}


def minilm_tokenizer(words):
    """Return a tokenizer of a small MiniLM, whose words begin with [PAD], [UNK], [CLS], [SEP]."""
    pieces = tokenizers.models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(pieces)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    return tokenizer


def minilm_in_torch(weights):
    """Return the model of the package transformers with the same weights."""
    from transformers import BertConfig, BertModel

    embeddings = {
        kind: weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position")
    }
    config = BertConfig(
        vocab_size=len(embeddings["word"]),
        hidden_size=embeddings["word"].shape[1],
        num_hidden_layers=sum("query.weight" in name for name in weights),
        num_attention_heads=12,
        intermediate_size=len(weights["encoder.layer.0.intermediate.dense.bias"]),
        hidden_act="gelu",
        max_position_embeddings=len(embeddings["position"]),
        layer_norm_eps=1e-12,
        attn_implementation="eager",
    )
    model = BertModel(config, add_pooling_layer=False)
    state = {
        name: torch.tensor(array)
        for name, array in weights.items()
        if not name.startswith("pooler") and "position_ids" not in name
    }
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and not [name for name in missing if "_ids" not in name]
    return model.eval()


def writer_in_torch():
    """Return the trained writer as PyTorch computes it, in float64, from the stored numbers."""
    with np.load(WEIGHTS) as stored:
        arrays = dict(stored)
    names = [name for name in arrays if name.endswith(".weight")]
    scales = {name: arrays.get(f"{name}/scale", np.ones(1)) for name in names}
    model = Llama(len(arrays["vocabulary"]), replace(Recipe(), loudness=1.0)).double()
    weights = {n: arrays[n] * (scales[n][:, None] if arrays[n].ndim > 1 else 1) for n in names}
    model.load_state_dict({n: torch.tensor(w, dtype=torch.float64) for n, w in weights.items()})
    return model


def sphinx_build(book, out, settings):
    """Build a small book, without running its notebooks; a warning is an error."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    settings = settings | {"nb_execution_mode": "off", "html_theme": "basic"}
    with patch_docutils(), docutils_namespace():
        trees = out.parent / "doctrees"
        app = Sphinx(book, None, out, trees, "html", settings, None, None, warningiserror=True)
        app.build()


def parts(layer):
    """Yield a layer and all that it is made of."""
    yield layer
    for field in vars(layer).values():
        for part in field if isinstance(field, list) else [field]:
            if is_dataclass(part):
                yield from parts(part)


def stirred(module):
    """Return a module of torch with every parameter, norms' included, away from its default."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter += 0.1 * noise
    return module.eval()


def masks(mode, n_q, n_k, dtype):
    """Return a mask, and the same as `attn_mask` and `key_padding_mask` of torch."""
    causal = causal_mask(n_q, n_k)
    padding = padding_mask([n_k // 2, n_k, 1], n_k)  # (BATCH, 1, n_k)
    rng = np.random.default_rng(3)
    bias = rng.normal(size=(n_q, n_k)).astype(dtype)
    bias[:, 1:][rng.random((n_q, n_k - 1)) < 0.3] = -np.inf  # each query keeps key 0
    mask, attn_mask, key_padding_mask = {
        "none": (None, None, None),
        "causal": (causal, blocked(causal), None),
        "padding": (padding, None, blocked(padding[:, 0])),
        "both": (causal & padding, blocked(causal), blocked(padding[:, 0])),
        "additive": (bias, bias, None),
    }[mode]
    return mask, tensor(attn_mask), tensor(key_padding_mask)


def tensor(array):
    """Return an array as a tensor, None for None."""
    return None if array is None else torch.from_numpy(array)
