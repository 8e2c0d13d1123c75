"""Writer: its engine beside attnlib's models, its world beside Python's, and what it says."""

import math
import random

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from _ext.widgets.page import engine
from attnlib import softmax
from attnlib.models import causal_lm, writer
from attnlib.widgets import Inspector, Writer
from attnlib.widgets.kit.base import bounds
from attnlib.widgets.writer import model_file, record
from attnlib.world import World, show, split
from tests.helpers import writer_in_torch
from tests.test_causal_lm import PUBLISHED as SMALL
from tests.widgets.pictures import close, js, opened, picture
from tests.widgets.samples import HOSTILE, arrays_of, every

WORLD = World()
STORY = Writer().recorded[0]["words"]
STATES = {"muddy", "slippery", "wet"}  # in which a boat may be
LLAMA = SMALL["Llama 3"]
OLDER = {"rope_theta": None, "rope_parameters": {"rope_theta": 70.0, "rope_type": "default"}}
CONFIGS = {
    "not tied": LLAMA,
    "biases and ties": SMALL["Llama, biases and ties"] | OLDER,
    "one key for each query": LLAMA | {"num_key_value_heads": 6},
    "norms of heads": SMALL["Qwen3"],
}


def run(expression, **values):
    """The value of an expression in which the widget's modules have their names."""
    return engine("Writer")(expression, **values)


READ = """(() => {
  const {makeModel, emptyText, readToken} = writer_model;
  const arrays = Object.fromEntries(Object.entries(dukpy.arrays).map(
    ([name, numbers]) => [name, Float32Array.from(numbers)]));
  const text = emptyText(makeModel(dukpy.config, arrays));
  return dukpy.tokens.map((token) => {
    const {logits, weights} = readToken(text, token);
    return [Array.from(logits), weights.map((layer) => layer.map((row) => Array.from(row)))];
  });
})()"""


@pytest.mark.parametrize("name", CONFIGS)
def test_engine_reads_as_attnlib_reads(name):
    config = {field: value for field, value in CONFIGS[name].items() if value is not None}
    weights = arrays_of(config)
    tokens = [3, 1, 4, 1, 5, 9, 2, 6, 40, 3, 5]
    trace = causal_lm(config, weights, dtype=np.float64).read(tokens)
    flat = {name: array.ravel().tolist() for name, array in weights.items()}
    found = run(READ, config=config, arrays=flat, tokens=tokens)
    logits = np.array([one for one, _ in found])
    np.testing.assert_allclose(logits, trace.logits, rtol=1e-4, atol=1e-4)
    for at, (_, of_token) in enumerate(found):
        expected = np.stack(trace.weights)[:, :, at, : at + 1]
        close(of_token, expected, 1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gemma3_text"}, "a model_type among llama,mistral,qwen3; got gemma3_text"),
        ({"hidden_act": "gelu"}, "hidden_act silu; got gelu"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "plain rotary positions"),
        ({"model_type": "mistral", "sliding_window": 4}, "layers without a window"),
        ({"tie_word_embeddings": False}, "the array lm_head.weight"),
    ],
)
def test_engine_refuses_what_it_would_get_wrong(changes, message):
    flat = {name: [0.0] for name in arrays_of(LLAMA | {"tie_word_embeddings": True})}
    refused = """(() => { try { writer_model.makeModel(dukpy.config, dukpy.arrays) }
      catch (error) { return [error.name, error.message] } })()"""
    found = run(refused, config=LLAMA | changes, arrays=flat)
    assert found == ["RangeError", f"This engine needs {message}."]


def test_the_trained_model_says_and_writes_the_same_in_a_page(parity):
    model = writer()
    text = "It was a rainy day, and Ben was happy. He had"
    tokens = model.encode(text).tolist()
    found = opened("Writer")(
        """(() => {
          const {tokens} = writer_story.encode(known, dukpy.text);
          const text = writer_model.emptyText(known.model);
          const read = (token) => writer_model.readToken(text, token).logits;
          const all = [0, ...tokens].map(read), written = [];
          const settings = {temperature: 0, topK: 0, topP: 1};
          for (let logits = all.at(-1); written.length < 9; logits = read(written.at(-1)))
            written.push(writer_model.draw(writer_model.choices(logits, settings), 0.5));
          const probabilities = all.map((logits) => Array.from(writer_model.softmax(logits)));
          return {tokens, probabilities, written, vocabulary: known.vocabulary};
        })()""",
        text=text,
    )
    assert [0, *found["tokens"]] == tokens
    assert found["vocabulary"] == model.vocabulary
    with torch.no_grad():
        by_torch = writer_in_torch()(torch.tensor([tokens])).softmax(-1).numpy()[0]
    parity("the trained writer", "page", np.array(found["probabilities"]), by_torch, 1e-4)
    assert found["written"] == model.write(tokens, 9, temperature=0)[len(tokens) :].tolist()


TAKEN = "writer_text.split(dukpy.text, new Set(dukpy.known))"
WALK = """(() => {
  const world = globalThis.world ??= writer_world.parseWorld(dukpy.text);
  let place = writer_world.storyBegins(world);
  const steps = dukpy.words.map((word) => {
    const {step, next} = writer_world.readWord(place, word);
    place = next;
    return [Object.fromEntries(step.probabilities), step.kind, step.deciders, step.ways];
  });
  return [steps, Array.from(place.probabilities.keys()), writer_world.readWord(place, "dragon")];
})()"""


@every(st.integers(0, 2**32))
def test_a_story_is_made_and_taken_apart_as_in_python(seed):
    words = WORLD.tell(random.Random(seed))[0]
    steps, left, wrong = run(WALK, text=model_file()["world"], words=words)
    assert (left, wrong) == ([], None)
    for step, (probabilities, kind, deciders, ways) in zip(WORLD.read(words), steps, strict=True):
        assert probabilities == step.probabilities  # to the last bit
        assert (kind, tuple(deciders), ways) == (step.kind, step.deciders, step.ways)
    text = show(words)
    joined = "writer_text.shown(dukpy.words).flat().join('')"
    assert run(joined, words=words[:-1]) == text
    assert run(TAKEN, text=text, known=WORLD.words) == split(text, WORLD.words) == words[:-1]


@pytest.mark.parametrize(
    "text",
    ['He said: "Ada\'s hat," then "no!"', "i I Dragon ’ssss ’s-x", "", "Mr. Mrs. Ms. _a 3½ é", "¶"],
)
def test_odd_texts_are_taken_apart_as_in_python(text):
    assert run(TAKEN, text=text, known=WORLD.words) == split(text, WORLD.words)


def test_the_nearest_word_by_hand():
    near = "writer_text.nearestWord(dukpy.word, ['boat', 'bench', 'Ben', '.'])"
    found = [run(near, word=word) for word in ("bat", "lunch", "BEN", "x")]
    assert found == ["boat", "bench", "Ben", "."]


LOGITS = [math.log(p) for p in (0.1, 0.4, 0.2, 0.3)]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ((1, 0, 1), [0.1, 0.4, 0.2, 0.3]),
        ((0, 0, 1), [0, 1, 0, 0]),
        ((0.5, 0, 1), [1 / 30, 16 / 30, 4 / 30, 9 / 30]),
        ((1, 2, 1), [0, 4 / 7, 0, 3 / 7]),
        ((1, 0, 0.4), [0, 1, 0, 0]),
        ((1, 0, 0.69), [0, 4 / 7, 0, 3 / 7]),
        ((1, 0, 0.71), [0, 4 / 9, 2 / 9, 3 / 9]),
        ((0.5, 3, 0.8), [0, 16 / 25, 0, 9 / 25]),
    ],
)
def test_what_is_drawn_from_by_hand(chosen, expected):
    names = dict(zip(("temperature", "topK", "topP"), chosen, strict=True))
    call = "Array.from(writer_model.choices(Float64Array.from(dukpy.logits), dukpy.settings))"
    assert run(call, logits=LOGITS, settings=names) == pytest.approx(expected)


def test_a_draw_by_hand():
    draw = "dukpy.passed.map((passed) => writer_model.draw([0.25, 0, 0.5, 0.25, 0], passed))"
    assert run(draw, passed=[0, 0.2, 0.25, 0.7, 0.75, 0.9999, 1]) == [0, 0, 2, 2, 3, 3, 3]


def test_chances_are_spread_evenly_and_are_no_neighbors():
    many = """Array.from({length: 97}, (_, seed) => Array.from({length: 89},
      (_, position) => kit.chance(seed, position)))"""
    found = np.array(run(many))
    assert ((found >= 0) & (found < 1)).all()
    counts = np.histogram(found, bins=10, range=(0, 1))[0] / found.size
    close(counts, 0.1, 0.02)
    for a, b in ((found[1:], found[:-1]), (found[:, 1:], found[:, :-1])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.04


READING = """(() => {
  const {state} = dukpy;
  const {text, written} = state;
  const name = JSON.stringify([text, written]);
  globalThis.stories ??= {};
  if (!stories[name]) {
    const {tokens, unknown} = writer_story.encode(known, text);
    const more = written.split(" ").filter(Boolean).map((word) => known.tokenOf.get(word));
    let reading = writer_story.beginReading(known);
    for (const token of [...tokens, ...more]) {
      const says = writer_model.readToken(reading.text, token);
      reading = writer_story.readOn(reading, known, token, says);
    }
    stories[name] = {text, written, reading, vocabulary: known.vocabulary,
      begun: tokens.length, unknown};
  }
  return CALL({...widget.pageState, ...state, bounds: widget.bounds, story: stories[name]});
})()"""


def read(call, **traits):
    """What a function of the widget makes of a state whose story the model has read."""
    return opened("Writer")(READING.replace("CALL", call), state=Writer(**traits).state)


def test_what_was_recorded_is_what_the_page_reads():
    one = Writer().recorded[1]
    traits = {"text": one["text"], "written": one["written"], "at": one["at"]}
    drawn, seen = js(Writer(**traits), "compute(state)"), read("widget.compute", **traits)
    assert drawn["words"] == seen["words"] == one["words"]
    assert [row[0] for row in drawn["rows"]] == [row[0] for row in seen["rows"]]
    numbers = [[row[1:] for row in each["rows"]] for each in (drawn, seen)]
    close(*numbers, 2e-4)
    close(drawn["attention"], seen["attention"], 0.5 / 63 + 1e-4)


def test_a_part_of_a_recording_is_shown_with_its_next_word():
    drawn = js(Writer(written="after an", at=0), "compute(state)")
    assert drawn["words"] == STORY[:18] and drawn["rows"][0][0] == "hour"
    assert js(Writer(written="after a", at=0), "compute(state)")["rows"] == []


def test_bars_attention_and_deciders_are_those_of_attnlib():
    made = Writer(at=29)  # "muddy"
    seen = read("widget.compute", at=29)
    own = dict(zip(writer().vocabulary, made.probabilities[28], strict=True))
    for word, p, truth in seen["rows"]:
        assert p == pytest.approx(own[word], abs=1e-5)
        assert truth == pytest.approx(1 / 3 if word in STATES else 0)
    close(seen["attention"], made.weights[:, :, 28, :29].mean((0, 1)), 1e-5)
    one = read("widget.compute", at=29, head=7)["attention"]
    close(one, made.weights[1, 2, 28, :29], 1e-5)
    marked = picture(made).select("[data-part=story] .decides")
    assert [word["data-at"] for word in marked] == ["12", "21"]  # both times "boat"


def test_perplexity_is_two_to_the_mean_surprise():
    call = """((s) => { const story = writer_story.storyOf(s);
      return [writer_story.perplexity(story, 3, 9), writer_story.perplexity(story, 3, 2)] })"""
    found, none = read(call)
    own = Writer().probabilities
    logs = [np.log2(own[i, _token(STORY[i])]) for i in range(2, 9)]
    truth = [np.log2(step.probabilities[step.word]) for step in WORLD.read(STORY)[2:9]]
    assert found == pytest.approx([2 ** -np.mean(logs), 2 ** -np.mean(truth)], rel=1e-4)
    assert none is None


def _token(word):
    return writer().vocabulary.index(word)


def test_a_story_that_leaves_the_world_is_named_and_has_no_true_probabilities():
    traits = {"text": "Ada was a kind doctor. He", "written": "was happy", "at": 8}
    call = "((s) => { const {left, possible} = writer_story.storyOf(s); return [left, possible] })"
    left, possible = read(call, **traits)
    assert left == 7 and {"she", "Ada", "Ben"} < set(possible) and "he" not in possible
    assert {truth for *_, truth in read("widget.compute", **traits)["rows"]} == {None}
    assert "<b>he</b>" in read("widget.still", **traits)


def test_unknown_words_are_named_with_the_nearest_known_one_and_left_out():
    traits = {"text": f"Ada was a kind docter. {HOSTILE}", "written": "", "at": 0}
    words = read("widget.compute", **traits)["words"]
    assert words[:5] == ["Ada", "was", "a", "kind", "."]
    drawn = read("widget.still", **traits)
    assert 'data-wrong="docter" data-near="doctor"' in drawn and "<img" not in drawn


def test_a_word_is_exchanged_where_it_stands_by_itself():
    text = "Ada made a list: rice. Ada had a lis, 'lis'"
    exchanged = run("writer_text.exchange(dukpy.text, 'lis', 'list')", text=text)
    assert exchanged == "Ada made a list: rice. Ada had a list, ’list’"


def test_the_code_draws_as_the_page_does():
    code = js(Writer(top_k=3, top_p=0.5), "code(state)")
    assert any("top_k=3, top_p=0.5" in line for line in code)


def test_a_text_without_a_word_still_has_a_next_word():
    seen = read("widget.compute", text="", written="", at=0)
    own = dict(zip(writer().vocabulary, softmax(writer()([0]))[0], strict=True))
    assert seen["at"] == 1 and seen["rows"][0][1] == pytest.approx(max(own.values()), abs=1e-5)
    assert picture(Writer(text="", written="", at=0)).select("[data-at]") == []


def test_a_page_holds_as_many_tokens_as_python_takes():
    assert bounds(Writer)["at"]["most"] == run("writer_story.MOST_TOKENS")


@pytest.mark.parametrize("kind", [Writer, Inspector])
def test_a_kernel_hands_the_model_over_when_it_is_wanted(kind):
    made = kind()
    assert made.kernel and made.file == {} and made.state["file"] == {}
    made.wanted = True
    assert made.file == model_file() and made.state["kernel"] is False


def test_a_story_outside_of_the_world_cannot_be_recorded():
    with pytest.raises(ValueError, match="word 2 cannot be 'Rosa'"):
        record("Rosa Rosa", "")
