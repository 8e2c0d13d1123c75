"""Looking into a model: the ledger, the lens, and heads with other outputs; every error."""

from dataclasses import replace

import numpy as np
import pytest

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
    softmax,
)
from attnlib.models import (
    CausalLM,
    MiniLM,
    MissingModelError,
    Reading,
    files,
    induction,
    load_minilm,
    writer,
)
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
         "layer 1 must not be normed after its sum; got norm_first=False"),
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


# --- what heads pass on


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


def test_swapping_everything_equals_the_other_text_where_the_tokens_are_the_same():
    model = model_of(BEFORE, BEFORE)
    swapped = replace_heads(model, all_outputs(model, OTHER))(TOKENS)
    same = np.equal(TOKENS, OTHER)
    assert same.tolist() == [False, True, True, False, True]
    np.testing.assert_allclose(swapped[same], model(OTHER)[same], rtol=0, atol=1e-12)
    assert np.abs(swapped[~same] - model(OTHER)[~same]).min(-1).max() > 1e-3


def test_zeros_are_a_head_without_its_part_of_w_o():
    model = model_of(BEFORE, BEFORE)
    w_o = model.layers[0].attention.w_o.copy()
    w_o[4:6] = 0
    layer = replace(model.layers[0], attention=replace(model.layers[0].attention, w_o=w_o))
    without = replace(model, layers=[layer, model.layers[1]])
    np.testing.assert_allclose(replace_heads(model, {(0, 2): 0.0})(TOKENS), without(TOKENS))
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


def test_hooks_on_a_torch_model_with_the_same_weights_agree():
    """An independent Llama in PyTorch, from the stored weights; hooks in front of W_O."""
    torch = pytest.importorskip("torch")
    model = writer(dtype=np.float64)
    net = TorchLlama(torch, model)
    text = "Rosa was a brave sailor. Rosa had to bring the {} to the bank. After an hour the"
    tokens, other = (model.encode(text.format(cargo)) for cargo in ("boat", "gold"))
    with torch.no_grad():
        plain, seen = net(tokens)
        _, of_other = net(other)
        np.testing.assert_allclose(model(tokens), plain, rtol=0, atol=1e-12)
        own, theirs = head_outputs(model, tokens), head_outputs(model, other)
        for layer in range(3):
            np.testing.assert_allclose(own[layer], seen[layer], rtol=0, atol=1e-12)
        mean = mean_outputs(model, [tokens, other[:7]])[1][2]
        stacked = torch.cat([seen[1][2], of_other[1][2][:7]])
        np.testing.assert_allclose(mean, stacked.mean(0), rtol=0, atol=1e-12)
        for place, outputs, given in (
            ((1, 3), 0.0, torch.zeros(len(tokens), 32, dtype=torch.float64)),
            ((2, 0), theirs[2][0], of_other[2][0]),
            ((0, 2), mean, torch.tensor(mean).expand(len(tokens), 32)),
        ):
            hooked, _ = net(tokens, {place: given})
            changed = replace_heads(model, {place: outputs})
            np.testing.assert_allclose(changed(tokens), hooked, rtol=0, atol=1e-12)
            assert np.abs(hooked.numpy() - plain.numpy()).max() > 1e-3
        # The ledger and the lens from the torch model's own rows.
        word = model.vocabulary.index("boat")
        _, contributions = ledger(model, tokens, -1, word)
        np.testing.assert_allclose(contributions, net.ledger(tokens, word), rtol=0, atol=1e-12)
        np.testing.assert_allclose(lens(model, tokens), net.lens(tokens), rtol=0, atol=1e-12)


def test_hooks_on_the_encoder_of_transformers_agree(monkeypatch):
    """BertModel with the published weights; hooks in front of W_O, on two sentences in a batch."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    try:
        content = files.read_files(None, download=False)
        model = load_minilm()
    except MissingModelError as missing:
        pytest.skip(str(missing))
    from safetensors.numpy import load
    from transformers import BertConfig, BertModel

    arrays = load(content["model.safetensors"])
    published = {name: np.float64(a) for name, a in arrays.items() if a.dtype.kind == "f"}
    model = MiniLM(published, model.tokenizer)
    config = BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    net = BertModel(config, add_pooling_layer=False).double().eval()
    tensors = {name: torch.tensor(array) for name, array in published.items()}
    wrong = net.load_state_dict(tensors, strict=False)
    assert not wrong.missing_keys
    text, other = "The boat reached the bank.", "The money reached the bank."

    def read(sentence, given=None):
        """Return the last rows, and what came into each W_O, (12, n, 32) a layer."""
        seen, hooks = [], []
        for number, layer in enumerate(net.encoder.layer):

            def hook(module, args, number=number):
                z = args[0][0].view(-1, 12, 32).transpose(0, 1).clone()
                for (where, head), output in (given or {}).items():
                    if where == number:
                        z[head] = torch.as_tensor(output)
                seen.append(z)
                return (z.transpose(0, 1).reshape(1, -1, 384),)

            hooks.append(layer.attention.output.dense.register_forward_pre_hook(hook))
        ids = torch.tensor([model.tokenizer.encode(sentence).ids])
        with torch.no_grad():
            states = net(ids).last_hidden_state[0]
        for hook in hooks:
            hook.remove()
        return states, seen

    plain, seen = read(text)
    _, of_other = read(other)
    own, theirs = head_outputs(model, text), head_outputs(model, other)
    mean = mean_outputs(model, [text, other, "Good night."])[2][7]
    cases = [
        ({}, {}),
        ({(3, 5): own[3][0][5]}, {}),
        ({(1, 3): 0.0}, {(1, 3): torch.zeros(8, 32)}),
        ({(2, 7): mean, (4, 0): theirs[4][0][0]}, {(2, 7): mean, (4, 0): of_other[4][0]}),
    ]
    for layer in range(6):
        np.testing.assert_allclose(own[layer][0], seen[layer], rtol=0, atol=1e-9)
    for ours, hooked in cases:
        changed = replace_heads(model, ours).read(text).states[-1]
        expected = read(text, hooked)[0] if hooked else plain
        np.testing.assert_allclose(changed, expected, rtol=0, atol=1e-9)
        assert bool(hooked) == (np.abs(changed - plain.numpy()).max() > 1e-3)
    everything = {(layer, head): theirs[layer][0][head] for layer in range(6) for head in range(12)}
    swapped = replace_heads(model, everything).read(text).states[-1]
    same = np.arange(8) != 2  # "boat" and "money" keep their own rows
    np.testing.assert_allclose(swapped[same], model.read(other).states[-1][same], atol=1e-9)
    for position in (0, 5):
        names, rows = row_ledger(model, text, position)
        assert (names[0], names[12], names[13]) == ("input", "layer 1, head 12", "layer 1, biases")
        assert names[-1] == "layer 6, feed-forward" and rows.shape == (85, 384)
        np.testing.assert_allclose(rows.sum(0), plain[position], rtol=0, atol=1e-12)
        without = replace_heads(model, {(5, 3): 0.0})
        assert names[74] == "layer 6, head 4" and rows[74].any()
        assert not row_ledger(without, text, position)[1][74].any()


class PreNorm:
    """A model to read, of one pre-norm layer."""

    layers = (EncoderLayer.init(6, 2, 8, np.random.default_rng(0), norm_first=True),)

    def read(self, _):
        """Return three rows of zeros."""
        return Reading(["a", "b", "c"], np.zeros((2, 3, 6)), np.zeros((1, 2, 3, 3)))


@pytest.mark.parametrize(
    ("position", "error", "message"),
    [
        (
            0,
            ValueError,
            "layer 1 must be normed after both of its sums; got norm_first=True, "
            "a norm_1 and a norm_2",
        ),
        (3, ValueError, "position must be from -3 to 2; got 3"),
        (1.0, TypeError, "position must be a whole number; got 1.0"),
    ],
)
def test_the_ledger_of_a_row_refuses(position, error, message):
    with raises(error, message):
        row_ledger(PreNorm(), "a b c", position)


class TorchLlama:
    """The model that writes, in PyTorch: nn.Linear, nn.RMSNorm, and hooks on its modules."""

    def __init__(self, torch, model):
        self.torch, nn = torch, torch.nn
        self.embeddings = torch.tensor(model.embeddings)
        self.norm = self._norm(nn, model.norm)
        self.layers = []
        for layer in model.layers:
            a, f = layer.attention, layer.feed_forward
            matrices = {"q": a.w_q, "k": a.w_k, "v": a.w_v, "o": a.w_o}
            matrices |= {"gate": f.w_gate, "up": f.w_up, "down": f.w_down}
            parts = {name: self._linear(nn, w) for name, w in matrices.items()}
            parts["norm_1"], parts["norm_2"] = (
                self._norm(nn, norm) for norm in (layer.norm_1, layer.norm_2)
            )
            self.layers.append(nn.ModuleDict(parts))

    def _linear(self, nn, w):
        linear = nn.Linear(*w.shape, bias=False, dtype=self.torch.float64)
        linear.weight.data = self.torch.tensor(w.T.copy())
        return linear

    def _norm(self, nn, norm):
        made = nn.RMSNorm(len(norm.gamma), eps=norm.eps, dtype=self.torch.float64)
        made.weight.data = self.torch.tensor(norm.gamma)
        return made

    def _turn(self, x):
        n, d = x.shape[-2:]
        angles = self.torch.outer(
            self.torch.arange(n, dtype=x.dtype),
            10000 ** (-self.torch.arange(0, d, 2, dtype=x.dtype) / d),
        )
        a, b = x.chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return self.torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def rows(self, tokens):
        """Return the rows between the layers, and what each attention and network adds."""
        torch, functional = self.torch, self.torch.nn.functional
        x = self.embeddings[torch.tensor(np.asarray(tokens))]
        n, rows, added = len(x), [x], []
        for layer in self.layers:
            normed = layer["norm_1"](x)
            q = self._turn(layer["q"](normed).view(n, 4, 32).transpose(0, 1))
            k = self._turn(layer["k"](normed).view(n, 2, 32).transpose(0, 1))
            v = layer["v"](normed).view(n, 2, 32).transpose(0, 1)
            z = functional.scaled_dot_product_attention(
                q, k.repeat_interleave(2, 0), v.repeat_interleave(2, 0), is_causal=True
            )
            attended = layer["o"](z.transpose(0, 1).reshape(n, 128))
            x = x + attended
            second = layer["norm_2"](x)
            network = layer["down"](functional.silu(layer["gate"](second)) * layer["up"](second))
            x = x + network
            rows.append(x)
            added.append(network)
        return rows, added

    def __call__(self, tokens, given=None):
        """Return the logits, and what came into each W_O, by hooks that may replace it."""
        seen, hooks = [], []
        for number, layer in enumerate(self.layers):

            def hook(module, args, number=number):
                z = args[0].view(len(tokens), 4, 32).transpose(0, 1).clone()
                for (where, head), output in (given or {}).items():
                    if where == number:
                        z[head] = output
                seen.append(z)
                return (z.transpose(0, 1).reshape(len(tokens), 128),)

            hooks.append(layer["o"].register_forward_pre_hook(hook))
        rows, _ = self.rows(tokens)
        for hook in hooks:
            hook.remove()
        return self.norm(rows[-1]) @ self.embeddings.T, seen

    def lens(self, tokens):
        """Return the probabilities after each layer."""
        rows, _ = self.rows(tokens)
        return self.torch.stack([(self.norm(x) @ self.embeddings.T).softmax(-1) for x in rows])

    def ledger(self, tokens, word):
        """Return what each part adds, the last norm as a factor of what it is given."""
        _, seen = self(tokens)
        rows, added = self.rows(tokens)
        factor = self.norm(rows[-1])[-1] / rows[-1][-1]
        column = factor * self.embeddings[word]
        parts = [rows[0][-1] @ column]
        for layer, z, network in zip(self.layers, seen, added, strict=True):
            for head in range(4):
                w_o = layer["o"].weight[:, 32 * head : 32 * head + 32]
                parts.append(w_o @ z[head, -1] @ column)
            parts.append(network[-1] @ column)
        return self.torch.stack(parts)


def test_outputs_of_what_has_no_heads():
    with raises(TypeError, "model must have layers; got str"):
        head_outputs("gpt", TOKENS)
    model = model_of(BEFORE)
    other = replace(model.layers[0], attention=lambda x, mask, cache: (x, None))
    with raises(TypeError, "the attention of layer 1 must be a MultiHeadAttention; got function"):
        head_outputs(replace(model, layers=[other]), TOKENS)
    with raises(ValueError, "texts must hold at least one text; got none"):
        mean_outputs(model, [])
