"""The model that writes: three implementations agree, and text becomes tokens and text again."""

import random

import numpy as np
import pytest
import torch

from attnlib import models, world
from attnlib.attention import softmax
from attnlib.models import writing
from attnlib.world import END, World
from tools.compare_writer import Table, calibration, variety
from tools.measure_writer import fault, kept, losses
from tools.train_writer import Llama, Recipe, Stories, config, pad, rate_at

WORLD = World()
MODEL = models.writer(dtype=np.float64)
STORIES = [WORLD.tell(random.Random(seed))[0] for seed in range(60)]
TOKENS = [MODEL.encode(world.show(words)) for words in STORIES]


def test_the_stored_model_is_that_of_the_world_and_of_the_page():
    assert MODEL.vocabulary == WORLD.words
    assert MODEL.embeddings.shape == (539, 128) and len(MODEL.layers) == 3
    assert writing.WEIGHTS.stat().st_size <= 600_000
    assert models.writer()([0]).dtype == np.float32


def test_float32_agrees_with_float64_on_60_stories():
    texts = pad([tokens.tolist() for tokens in TOKENS]).clamp(min=0).numpy()  # ¶ behind each
    assert np.abs(softmax(models.writer()(texts)) - softmax(MODEL(texts))).max() < 1e-4


def test_the_model_that_is_trained_is_the_one_that_is_stored(parity):
    torch.manual_seed(0)
    recipe = Recipe(d_model=28, n_heads=2, n_kv_heads=1, d_ff=11, loudness=2.5)
    trained = Llama(17, recipe).double()
    with torch.no_grad():
        for weight in trained.parameters():
            weight += 0.1 * torch.randn(weight.shape)
        tokens = torch.randint(17, (3, 13))
        wanted = trained(tokens).numpy()
    model = models.causal_lm(config(recipe, 17), trained.to_numpy(), dtype=np.float64)
    parity("a model that writes", "as torch trains it", model(tokens.numpy()), wanted, 1e-12)


def test_packing_keeps_each_weight_to_half_a_step_of_its_row():
    rng = np.random.default_rng(0)
    recipe = Recipe(d_model=12, n_heads=2, n_kv_heads=1, d_ff=7)
    weights = Llama(5, recipe).to_numpy()
    weights = {
        name: rng.normal(size=each.shape).astype(np.float32) for name, each in weights.items()
    }
    weights["model.embed_tokens.weight"][3] = 0  # its scale must not be 0
    arrays = writing.pack(config(recipe, 5), weights, ["¶", "a", "b", "c", "d"])
    model = writing.unpack(arrays, np.float64)
    table = weights["model.embed_tokens.weight"]
    step = np.abs(table).max(axis=1, keepdims=True) / 127
    assert (np.abs(model.embeddings - table) <= step / 2 + 1e-7).all()
    assert model.vocabulary == ["¶", "a", "b", "c", "d"]
    assert np.array_equal(model.norm.gamma, weights["model.norm.weight"])


def test_encode_and_decode_by_hand():
    tokens = MODEL.encode('it was "Ada\'s" hat, i see.')
    words = [MODEL.vocabulary[token] for token in tokens]
    assert words == [END, *"it was “ Ada ’s ” hat , i see .".split()]
    assert MODEL.decode(tokens) == "It was “Ada’s” hat, I see."
    assert MODEL.encode("").tolist() == [0] and MODEL.decode([0]) == ""


def test_every_story_comes_back():
    for words, tokens in zip(STORIES, TOKENS, strict=True):
        assert [MODEL.vocabulary[token] for token in tokens] == [END, *words[:-1]]
        assert MODEL.decode(tokens) == world.show(words)


def test_losses_by_hand():
    small = World("table name name | she: Ada, Mia\nrule story\n  {A:name} saw {A} .")
    rng = np.random.default_rng(1)
    table = rng.normal(size=(len(small.words), 3))

    class Fixed:
        vocabulary = small.words

        def __call__(self, tokens):
            return table[tokens] @ table.T

    story = ["Ada", "saw", "Ada", ".", END]
    found = losses(Fixed(), small, [story])
    number = {word: i for i, word in enumerate(small.words)}
    tokens = [0, *(number[word] for word in story)]
    p = softmax(table[tokens[:-1]] @ table.T)[range(5), tokens[1:]]
    assert found["loss"] == pytest.approx(-np.log(p).mean())
    assert found["floor"] == pytest.approx(np.log(2) / 5)  # the first name, of two
    name = found["kinds"]["name"]
    assert (name["n"], name["one"]) == (1, 1) and name["probability"] == pytest.approx(p[2])
    assert found["kinds"]["free"]["n"] == 4 and found["kinds"]["free"]["one"] == 3


def test_a_table_names_what_came_most_often_after_the_last_words():
    stories = [np.array([0, 1, 2, 1, 3, 1, 3])]
    one, two = (Table(stories, n, 5) for n in (1, 2))
    # After 1 came 3 twice and 2 once; after 0, 1 came 2; nothing ever came after 4.
    assert one.after_each(np.array([0, 1, 4, 1])).tolist() == [1, 3, -1]
    assert two.after_each(np.array([0, 1, 4, 1])).tolist() == [1, 2, -1]


def test_calibration_and_variety_by_hand():
    small = World("table name name | she: Ada, Mia\nrule story\n  {A:name} .")
    assert small.words == [END, ".", "Ada", "Mia"]
    p = np.array([[0, 0, 0.75, 0.25], [0, 1, 0, 0], [0.9, 0, 0, 0.1]])  # after ¶, Ada, .

    class Fixed:
        vocabulary = small.words

        def __call__(self, tokens):
            assert tokens.tolist() == [[0, 2, 1]]
            with np.errstate(divide="ignore"):
                return np.log(p)[None]

    with np.errstate(divide="ignore"):
        found = calibration(Fixed(), small, [["Ada", ".", END]])
    rows = {low: row for low, row in zip(found["edges"], found["rows"], strict=False)}
    assert rows[0.65] == pytest.approx([2, 0.825, 1, 0.75, 0.175])  # 0.75 for ½, 0.9 for 1
    assert rows[0.15] == pytest.approx([1, 0.25, 0, 0.5, 0.25])
    assert found["distance"] == pytest.approx((0.25 + 0 + 0.1) / 3)
    assert found["divergence"] == pytest.approx((np.log(4 / 3) / 2 - np.log(0.9)) / 3)
    assert variety([["a", "b", "a", "b"], ["b"]], n=2) == pytest.approx(2 / 3)


def test_what_top_k_and_top_p_leave_by_hand():
    p = np.array([[0.1, 0.2, 0.7], [0.02, 0.95, 0.03]])
    assert kept(p, None, 0.8) == pytest.approx(np.array([[0, 2 / 9, 7 / 9], [0, 1, 0]]))
    assert kept(p, 2, 1.0)[1] == pytest.approx([0, 0.95 / 0.98, 0.03 / 0.98])


def test_faults_by_hand():
    story = STORIES[0]
    assert fault(WORLD, story) is None and fault(WORLD, story[:-1]) == "no end"
    steps = WORLD.read(story)
    place = next(i for i, step in enumerate(steps) if step.kind == "name")
    other = next(w for w in ("Ada", "Ben") if w not in steps[place].probabilities)
    assert fault(WORLD, [*story[:place], other, *story[place + 1 :]]) == "name"


def test_the_figures_are_those_of_the_stored_model():
    measured = writing.measured()["held_out"]
    found = losses(MODEL, WORLD, STORIES[:40])
    # Other stories: their floor differs by chance, and what is above it hardly does.
    above = measured["loss"] - measured["floor"]
    assert found["loss"] - found["floor"] == pytest.approx(above, abs=0.015)


def test_training_reads_few_stories_again_and_its_rate_rises_stays_and_falls():
    recipe = Recipe(steps=100, warm_up=10, decay_from=0.6, rate=1.0)
    rates = [rate_at(step, recipe) for step in (0, 4, 9, 40, 60, 70, 90, 100)]
    assert rates == pytest.approx([0.1, 0.5, 1, 1, 1, 0.75, 0.25, 0])
    assert pad([[0, 5, 0], [0, 2]]).tolist() == [[0, 5, 0], [0, 2, -1]]
    few = Stories(Recipe(n_stories=3, batch=5), WORLD)
    read = {(*story,) for step in range(20) for story in few.batch(step).tolist()}
    read = {story[: len(story) - story.count(-1)] for story in read}
    assert sorted(read) == sorted((*story,) for story in few.few) and len(read) == 3
    always_new = Stories(Recipe(batch=5), WORLD)
    assert len({(*story,) for step in range(9) for story in always_new.batch(step).tolist()}) == 45
