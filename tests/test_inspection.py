"""Looking into a model: the ledger, the lens, and heads with other outputs; every error."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib import (
    EncoderLayer,
    LayerNorm,
    MultiHeadAttention,
    RMSNorm,
    head_outputs,
    ledger,
    lens,
    mean_outputs,
    replace_heads,
    row_ledger,
)
from attnlib.models import CausalLM, MiniLM, Reading, induction, writer
from tests.helpers import (
    minilm_in_torch,
    minilm_tokenizer,
    minilm_weights,
    writer_in_torch,
)

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
    assert names[7] == "layer 1, feed-forward"
    assert names[13:] == ["layer 2, feed-forward", *shift]


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


OTHER = [7, 11, 5, 2, 0]  # another text that ends with the same token


def places(model):
    """Yield (layer, head) for all heads of a model."""
    for number, layer in enumerate(model.layers):
        for head in range(layer.attention.n_heads):
            yield number, head


def all_outputs(model, tokens):
    """Return what all heads pass on, as `replace_heads` takes it."""
    outputs = head_outputs(model, tokens)
    return {(layer, head): outputs[layer][head] for layer, head in places(model)}


def test_head_outputs_by_hand():
    # Two tokens, values 1 and 3; equal scores, so the second token passes on their mean.
    w_v, zeros = np.array([[1.0], [3.0]]), np.zeros((2, 1))
    attention = MultiHeadAttention(zeros, zeros, w_v, np.ones((1, 2)), 1)
    model = CausalLM(np.eye(2), [EncoderLayer(attention, np.zeros_like, norm_first=True)])
    np.testing.assert_array_equal(head_outputs(model, [0, 1])[0], [[[1.0], [2.0]]])
    np.testing.assert_array_equal(mean_outputs(model, [[0, 1], [1]])[0], [[2.0]])


@pytest.mark.parametrize("places_of_norms", [BEFORE, AFTER, BEFORE | AFTER])
def test_an_intervention_that_changes_nothing_changes_nothing(places_of_norms):
    model = model_of(places_of_norms, {"norm_1": RMSNorm})
    for outputs in ({}, {(1, 3): head_outputs(model, TOKENS)[1][3]}, all_outputs(model, TOKENS)):
        same = replace_heads(model, outputs)
        np.testing.assert_allclose(same(TOKENS), model(TOKENS), rtol=0, atol=1e-12)


def test_zeros_are_a_head_without_its_part_of_w_o():
    letters = induction.load(2, dtype=np.float64)
    tokens = np.array([2, 5, 0, 10, 3, 2])
    ours, _ = replace_heads(letters, {(1, 0): 0.0, (0, 1): np.zeros(16)})(tokens)
    np.testing.assert_allclose(ours, induction.without(letters, (1, 0), (0, 1))(tokens)[0])


def test_replaced_heads_are_replaced_again_and_leave_the_model_alone():
    model = model_of(BEFORE, BEFORE)
    before, own = model(TOKENS), head_outputs(model, TOKENS)
    once = replace_heads(model, {(0, 1): 0.0})
    twice = replace_heads(once, {(0, 2): 1.0, (1, 0): own[1][0]})
    both = replace_heads(model, {(0, 1): 0.0, (0, 2): 1.0, (1, 0): own[1][0]})
    np.testing.assert_array_equal(twice(TOKENS), both(TOKENS))
    np.testing.assert_array_equal(
        head_outputs(twice, TOKENS)[0][1:3], [[[0] * 2] * 5, [[1] * 2] * 5]
    )
    assert not np.array_equal(once(TOKENS), twice(TOKENS))
    np.testing.assert_array_equal(model(TOKENS), before)


def test_the_ledger_of_replaced_heads_sums_to_their_logit():
    model = replace_heads(model_of(BEFORE, BEFORE), {(0, 1): 0.0, (1, 4): np.array([0.5, -2.0])})
    names, contributions = ledger(model, TOKENS, -1, 7)
    np.testing.assert_allclose(contributions.sum(), model(TOKENS)[-1, 7], rtol=1e-12)
    assert contributions[names.index("layer 1, head 2")] == 0
    assert contributions[names.index("layer 2, head 5")] != 0


def test_texts_side_by_side_and_one_token_more():
    model = replace_heads(model_of(BEFORE, BEFORE), {(1, 2): np.array([1.0, 2.0])})
    both = model([TOKENS, OTHER])
    np.testing.assert_allclose(both[1], model(OTHER), rtol=0, atol=1e-12)
    cache = model.cache()
    model(TOKENS[:3], cache=cache)
    np.testing.assert_allclose(model(TOKENS[3:], cache=cache), model(TOKENS)[3:], atol=1e-12)


@contextmanager
def hooked(projections, n_heads, given=None):
    """Give what comes into each W_O of torch, (n_heads, n, d_v), with some of it replaced."""
    seen, hooks = [], []
    for number, projection in enumerate(projections):

        def hook(module, args, number=number):
            z = args[0][0].unflatten(-1, (n_heads, -1)).transpose(0, 1).clone()
            for (layer, head), output in (given or {}).items():
                if layer == number:
                    z[head] = torch.as_tensor(output)
            seen.append(z)
            return z.transpose(0, 1).flatten(1)[None]

        hooks.append(projection.register_forward_pre_hook(hook))
    with torch.no_grad():
        yield seen
    for hook in hooks:
        hook.remove()


def in_torch(net, tokens, given=None):
    """Return the logits of the writer in torch, and what comes into each W_O."""
    with hooked([layer.self_attn.o_proj for layer in net.model.layers], 4, given) as seen:
        return net(torch.tensor(tokens)[None])[0], seen


def parts_in_torch(net, tokens, word):
    """Return what the lens reads and what each part adds to a logit, from the rows of torch."""
    rows, added = [], []
    hooks = [
        part.register_forward_pre_hook(lambda _, args: rows.append(args[0][0]))
        for part in (*net.model.layers, net.model.norm)
    ]
    hooks += [
        layer.mlp.register_forward_hook(lambda _, args, output: added.append(output[0]))
        for layer in net.model.layers
    ]
    _, seen = in_torch(net, tokens)
    for hook in hooks:
        hook.remove()
    with torch.no_grad():
        table, norm = net.model.embed_tokens.weight, net.model.norm
        probabilities = torch.stack([(norm(x) @ table.T).softmax(-1) for x in rows])
        column = norm(rows[-1])[-1] / rows[-1][-1] * table[word]  # the last norm as a factor
        parts = [rows[0][-1] @ column]
        for layer, z, network in zip(net.model.layers, seen, added, strict=True):
            strips = layer.self_attn.o_proj.weight.chunk(4, dim=1)
            parts += [w_o @ of_head @ column for w_o, of_head in zip(strips, z[:, -1], strict=True)]
            parts.append(network[-1] @ column)
    return probabilities, torch.stack(parts)


def test_hooks_on_the_writer_in_torch_agree():
    """The Llama that was trained, with the stored weights; hooks in front of W_O."""
    model, net = writer(dtype=np.float64), writer_in_torch()
    text = "Rosa was a brave sailor. Rosa had to bring the {} to the bank. After an hour the"
    tokens, other = (model.encode(text.format(cargo)) for cargo in ("boat", "gold"))
    plain, seen = in_torch(net, tokens)
    _, of_other = in_torch(net, other)
    np.testing.assert_allclose(model(tokens), plain, rtol=0, atol=1e-12)
    own, theirs = head_outputs(model, tokens), head_outputs(model, other)
    for layer in range(3):
        np.testing.assert_allclose(own[layer], seen[layer], rtol=0, atol=1e-12)
    mean = mean_outputs(model, [tokens, other[:7]])[1][2]
    stacked = torch.cat([seen[1][2], of_other[1][2][:7]])
    np.testing.assert_allclose(mean, stacked.mean(0), rtol=0, atol=1e-12)
    for place, ours, given in (
        ((1, 3), 0.0, torch.zeros(len(tokens), 32)),
        ((2, 0), theirs[2][0], of_other[2][0]),
        ((0, 2), mean, torch.tensor(mean).expand(len(tokens), 32)),
    ):
        expected, _ = in_torch(net, tokens, {place: given})
        changed = replace_heads(model, {place: ours})
        np.testing.assert_allclose(changed(tokens), expected, rtol=0, atol=1e-12)
        assert (expected - plain).abs().max() > 1e-3
    word = model.vocabulary.index("boat")
    probabilities, parts = parts_in_torch(net, tokens, word)
    np.testing.assert_allclose(ledger(model, tokens, -1, word)[1], parts, rtol=0, atol=1e-12)
    np.testing.assert_allclose(lens(model, tokens), probabilities, rtol=0, atol=1e-12)


def test_hooks_on_the_encoder_of_transformers_agree():
    """BertModel with random weights; hooks in front of W_O."""
    words = "[PAD] [UNK] [CLS] [SEP] the boat money reached bank .".split()
    weights = minilm_weights(1, 0.5, len(words), width=36, inner=13, places=17, layers=2)
    model = MiniLM({k: np.float64(w) for k, w in weights.items()}, minilm_tokenizer(words))
    net = minilm_in_torch(weights).double()
    text, other = "the boat reached the bank .", "the money reached the bank ."

    def read(sentence, given=None):
        """Return the last rows, and what came into each W_O, (12, n, 3) a layer."""
        dense = [layer.attention.output.dense for layer in net.encoder.layer]
        with hooked(dense, 12, given) as seen:
            ids = torch.tensor([model.tokenizer.encode(sentence).ids])
            return net(ids).last_hidden_state[0], seen

    plain, seen = read(text)
    _, of_other = read(other)
    own, theirs = head_outputs(model, text), head_outputs(model, other)
    mean = mean_outputs(model, [text, other, "the bank"])[0][7]
    for layer in range(2):
        np.testing.assert_allclose(own[layer][0], seen[layer], rtol=0, atol=1e-12)
    for ours, given in (
        ({}, {}),
        ({(1, 5): own[1][0][5]}, {}),
        ({(1, 3): 0.0}, {(1, 3): torch.zeros(8, 3)}),
        ({(0, 7): mean, (1, 0): theirs[1][0][0]}, {(0, 7): mean, (1, 0): of_other[1][0]}),
    ):
        changed = replace_heads(model, ours).read(text).states[-1]
        np.testing.assert_allclose(changed, read(text, given)[0], rtol=0, atol=1e-12)
        assert bool(given) == (np.abs(changed - plain.numpy()).max() > 1e-3)
    everything = {(layer, head): theirs[layer][0][head] for layer in range(2) for head in range(12)}
    swapped = replace_heads(model, everything).read(text).states[-1]
    same = np.arange(8) != 2  # "boat" and "money" keep their own rows
    np.testing.assert_allclose(swapped[same], model.read(other).states[-1][same], atol=1e-12)
    for position in (0, 5):
        names, rows = row_ledger(model, text, position)
        assert (names[0], names[12], names[13]) == ("input", "layer 1, head 12", "layer 1, biases")
        assert names[-1] == "layer 2, feed-forward" and rows.shape == (29, 36)
        np.testing.assert_allclose(rows.sum(0), plain[position], rtol=0, atol=1e-12)
        without = replace_heads(model, {(1, 3): 0.0})
        assert names[18] == "layer 2, head 4" and rows[18].any()
        assert not row_ledger(without, text, position)[1][18].any()


def with_other(**parts):
    """Return a model with another part in its first layer."""
    model = model_of(BEFORE)
    return replace(model, layers=[replace(model.layers[0], **parts)])


class PreNorm:
    """A model to read, of one pre-norm layer."""

    layers = (EncoderLayer.init(6, 2, 8, np.random.default_rng(0), norm_first=True),)

    def read(self, _):
        """Return three rows of zeros."""
        return Reading(["a", "b", "c"], np.zeros((2, 3, 6)), np.zeros((1, 2, 3, 3)))
