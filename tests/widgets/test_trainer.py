"""Trainer: gradients and steps beside PyTorch, its kernel, what it reads, says and refuses."""

import base64
import json
import math
import re

import numpy as np
import pytest
import torch

from attnlib.models import induction
from attnlib.positions import sinusoidal_positions
from attnlib.widgets import Trainer
from attnlib.widgets.kit import modules
from attnlib.widgets.trainer import KERNEL
from tests.widgets.pictures import close, js, part, picture

BASE = {
    "seed": 5, "layers": 2, "heads": 2, "rate": 0.012, "steps": 500, "task": "last",
    "residual": True, "positions": True, "causal": True, "batch": 2,
}  # fmt: skip
VARIATIONS = [
    {}, {"heads": 1}, {"layers": 1}, {"residual": False}, {"positions": False}, {"causal": False},
    {"task": "next", "layers": 1, "causal": False},
    {"residual": False, "positions": False, "causal": False},
]  # fmt: skip
LETTERS, WIDTH, LENGTH = 16, 32, 24


@pytest.fixture(scope="module")
def learner():
    """A function that runs JavaScript with `learner`, made with some settings, in the engine."""
    from _ext.engine import Engine

    engine = Engine(re.sub(r"^export ", "", modules.source("trainer_learner"), flags=re.MULTILINE))

    def run(body, **changes):
        settings = json.dumps(BASE | changes)
        return engine(f"(() => {{ const learner = makeLearner({settings}, null); {body} }})()")

    return run


# What one step on the learner's own sentences leaves behind.
STEP = """
  const sentences = learner.draw(9, 2), before = Array.from(learner.weights);
  const found = learner.gradients(sentences);
  return {before, gradient: Array.from(learner.gradient), shapes: learner.shapes, found,
    tokens: Array.from(sentences.tokens), answers: Array.from(sentences.answers)};
"""


def arrays(numbers, shapes):
    """The arrays that lie one after the other, by their names."""
    found, at = {}, 0
    for name, *shape in shapes:
        found[name] = np.array(numbers[at : at + math.prod(shape)], float).reshape(shape)
        at += math.prod(shape)
    assert at == len(numbers)
    return found


def forward(w, tokens, o):
    """The logits and the attention weights in torch, from the equations of the chapters."""
    d_k, keep = WIDTH // o["heads"], o["residual"]
    norm = torch.nn.functional.layer_norm
    x = w["embedding"][tokens]
    if o["positions"]:
        x = x + torch.tensor(sinusoidal_positions(LENGTH, WIDTH))
    later = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)
    maps = []
    for i in range(o["layers"]):
        own = {name[2:]: array for name, array in w.items() if name.startswith(f"{i}.")}
        h = norm(x, (WIDTH,), own["gamma_1"], own["beta_1"])
        q, k, v = (
            part.unflatten(-1, (o["heads"], d_k)).transpose(1, 2)
            for part in (h @ own["w_qkv"] + own["b_qkv"]).chunk(3, -1)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(d_k)
        weights = (scores.masked_fill(later, -math.inf) if o["causal"] else scores).softmax(-1)
        maps.append(weights)
        x = keep * x + (weights @ v).transpose(1, 2).flatten(-2) @ own["w_o"] + own["b_o"]
        h = norm(x, (WIDTH,), own["gamma_2"], own["beta_2"])
        x = keep * x + torch.relu(h @ own["w_1"] + own["b_1"]) @ own["w_2"] + own["b_2"]
    return norm(x, (WIDTH,), w["gamma"], w["beta"]) @ w["w_out"] + w["b_out"], torch.stack(maps)


def tensors(numbers, shapes):
    """The same arrays as tensors of float64 that ask for their gradients."""
    return {
        name: torch.tensor(array, requires_grad=True)
        for name, array in arrays(numbers, shapes).items()
    }


def loss_of(w, tokens, last, o):
    """The loss, and where the heads attend; `last` has each answer's position, or -1."""
    logits, maps = forward(w, tokens, o)
    right = torch.where(last >= 0, tokens.gather(1, last.clamp(min=0)), -1)
    cross_entropy = torch.nn.functional.cross_entropy
    return cross_entropy(logits.flatten(0, 1), right.flatten(), ignore_index=-1), logits, maps


@pytest.mark.parametrize("changes", VARIATIONS, ids=str)
def test_gradients_of_every_array_are_those_of_torch(learner, changes):
    o, found = BASE | changes, learner(STEP, **changes)
    w = tensors(found["before"], found["shapes"])
    tokens, last = (torch.tensor(found[name]).view(-1, LENGTH) for name in ("tokens", "answers"))
    loss, logits, maps = loss_of(w, tokens, last, o)
    loss.backward()
    assert found["found"]["loss"] == pytest.approx(loss.item(), rel=1e-6)
    gradients = arrays(found["gradient"], found["shapes"])
    assert len(gradients) == 5 + 12 * o["layers"]
    for name, ours in gradients.items():
        theirs = w[name].grad.numpy()
        assert np.linalg.norm(theirs) > 1e-6, name
        assert np.linalg.norm(ours - theirs) < 1e-5 * np.linalg.norm(theirs), name
    asked = last >= 0
    right = tokens.gather(1, last.clamp(min=0))
    accuracy = (logits.argmax(-1) == right)[asked].double().mean().item()
    assert found["found"]["accuracy"] == pytest.approx(accuracy)
    heads = maps.transpose(1, 2).flatten(0, 1).detach()  # (layers * heads, sentences, n, n)
    for name, shift in (("oneBack", -1), ("oneAhead", 1)):
        expected = heads.diagonal(shift, -2, -1).mean((1, 2))
        close(found["found"][name], expected, 1e-6)
    on_answer = heads.gather(-1, last.clamp(min=0).expand(len(heads), -1, -1)[..., None])[..., 0]
    close(found["found"]["onAnswer"], on_answer[:, asked].mean(1), 1e-6)


def test_four_steps_are_those_of_adamw_with_one_cycle(learner):
    """The schedule is short, so that the four steps lie on both sides of its top."""
    body = """
      const before = Array.from(learner.weights), losses = [];
      for (let i = 0; i < 4; i++) losses.push(learner.step().loss);
      return {before, after: Array.from(learner.weights), shapes: learner.shapes, losses,
        at: learner.at};
    """
    changes = {"steps": 20, "layers": 1, "rate": 0.03}
    found = learner(body, **changes)
    w = tensors(found["before"], found["shapes"])
    # Weights do not change the sentences of the steps.
    drawn = """return Array.from({length: 4}, () => Array.from(learner.next().tokens));"""
    batches = torch.tensor(learner(drawn, **changes)).view(4, -1, LENGTH)
    assert learner(drawn, **changes, seed=6) != batches.flatten(1).tolist()
    optimizer = torch.optim.AdamW(w.values(), lr=0.03, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.03, total_steps=20, pct_start=0.1, cycle_momentum=False
    )
    losses = []
    for tokens in batches:
        last = torch.tensor(last_answers(tokens.numpy()))
        loss, *_ = loss_of(w, tokens, last, BASE | changes)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
        optimizer.step()
        schedule.step()
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-5)
    start, after = (arrays(found[name], found["shapes"]) for name in ("before", "after"))
    for name, ours in after.items():
        theirs = w[name].detach().numpy()
        rows = np.ones(ours.shape[-1], bool)
        if name.endswith("b_qkv"):  # a gradient of 0 in truth: what Adam makes of it is noise
            rows[WIDTH : 2 * WIDTH] = False
        moved = np.linalg.norm((theirs - start[name])[..., rows])
        assert np.linalg.norm((ours - theirs)[..., rows]) < 1e-3 * moved, name


def last_answers(tokens):
    """Where each answer is, from attnlib's own answers: the position after the last of a kind."""
    last = induction._last_places(tokens)
    return np.where(last >= 0, last + 1, -1)


def test_sentences_and_answers_are_those_of_the_task(learner):
    body = """const {tokens, answers} = learner.draw(3, 40);
      return [Array.from(tokens), Array.from(answers)];"""
    tokens, answers = (np.array(each).reshape(40, LENGTH) for each in learner(body))
    assert set(tokens.ravel()) == set(range(LETTERS))
    np.testing.assert_array_equal(answers, last_answers(tokens))
    tokens, answers = (np.array(each).reshape(40, LENGTH) for each in learner(body, task="next"))
    periods = []
    for row, places in zip(tokens, answers, strict=True):
        period = next(p for p in range(6, 13) if (row[p:] == row[:-p]).all())
        periods.append(period)
        asked = np.flatnonzero(places >= 0)
        assert asked[0] <= period and (row[places[asked[:-1]]] == row[asked[:-1] + 1]).all()
    assert set(periods) == set(range(6, 13))


def test_the_kernel_multiplies():
    from wasmtime import Instance, Limits, Memory, MemoryType, Module, Store

    rng = np.random.default_rng(3)
    store = Store()
    memory = Memory(store, MemoryType(Limits(2, None)))
    module = Module(store.engine, KERNEL.read_text(encoding="utf-8"))
    product = Instance(store, module, [memory]).exports(store)["product"]
    for rows, columns, depth, turned in ((4, 8, 13, False), (12, 4, 7, True), (24, 96, 32, False)):
        a = rng.normal(size=(rows, depth)).astype(np.float32)
        b = rng.normal(size=(depth, columns)).astype(np.float32)
        start = rng.normal(size=columns).astype(np.float32)  # a bias: its stride is 0
        lies = a.T if turned else a
        strides = (1, rows) if turned else (depth, 1)
        places, at = [], 4
        for array in (np.ascontiguousarray(lies), b, start):
            memory.write(store, array.tobytes(), 4 * at)
            places.append(at)
            at += -4 * (-array.size // 4)
        product(store, at, columns, places[2], 0, places[0], *strides, places[1], columns,
                rows, columns, depth)  # fmt: skip
        end = at + rows * columns
        found = np.frombuffer(bytes(memory.read(store, 4 * at, 4 * end)), np.float32)
        expected = start + a.astype(float) @ b
        close(found.reshape(rows, columns), expected, 1e-5)
    assert base64.b64decode(Trainer().kernel)[:4] == b"\0asm"


def test_reading_is_that_of_attnlib_also_without_heads(learner):
    text = [2, 5, 0, 10, 3, 2, 6]
    body = f"""const read = learner.read({text}), off = learner.read({text}, ["0,1", "1,0"]);
      return [read, off, Array.from(learner.weights), learner.shapes];"""
    read, off, numbers, shapes = learner(body)
    parts = arrays(numbers, shapes)
    for i in (0, 1):
        columns = {"w": parts.pop(f"{i}.w_qkv"), "b": parts.pop(f"{i}.b_qkv")}
        for kind, joined in columns.items():
            split = np.split(joined, 3, axis=-1)
            parts |= {f"{i}.{kind}_{name}": each for name, each in zip("qkv", split, strict=True)}
        parts[f"{i}.n_heads"] = np.array(2)
    model = induction.from_arrays(parts)
    for made, found in ((model, read), (induction.without(model, (0, 1), (1, 0)), off)):
        logits, weights = made(text)
        exponentials = np.exp(logits)
        probabilities = exponentials / exponentials.sum(-1, keepdims=True)
        close(found["probabilities"], probabilities, 1e-5)
        close(found["weights"], weights, 1e-5)


def test_letters_behind_the_end_are_not_read_without_the_mask(learner):
    weights = np.array(learner("return learner.read([3, 1, 4, 1, 5]).weights;", causal=False))
    assert weights.shape == (2, 2, 5, 5) and (weights > 0).all()
    close(weights.sum(-1), 1, 1e-6)


def test_marks_count_right_answers(learner):
    body = """const tests = learner.draw(4, 1), [right, asked] = learner.mark(tests, 0);
      const {probabilities} = learner.read(Array.from(tests.tokens));
      return [right, asked, probabilities, Array.from(tests.tokens), Array.from(tests.answers)];"""
    right, asked, probabilities, tokens, answers = map(np.array, learner(body))
    said = probabilities.argmax(-1)
    places = np.flatnonzero(answers >= 0)
    assert asked == len(places) and right == (said[places] == tokens[answers[places]]).sum()


def test_the_picture_begins_with_train_and_a_map_of_each_head():
    for made, heads in ((Trainer(), 4), (Trainer(layers=1, heads=1), 1)):
        soup = picture(made)
        assert soup.select_one("button, input, select")["name"] == "train"
        assert len(soup.select("[data-part=map]")) == heads


def run_of(made, loss, accuracy, back, answer):
    """A run of nine steps that has come to its end, as the page would have it."""
    heads = made.layers * made.heads
    row = {
        "loss": loss, "accuracy": accuracy, "oneBack": [back] * heads,
        "onAnswer": [answer] * heads, "oneAhead": [0.02] * heads,
    }  # fmt: skip
    weights = [0.01] * 14_032
    past = [{"step": step, "weights": weights} for step in (0, 9)]
    key = js(made, "keyOf(state)")
    return {"key": key, "step": 9, "story": [row] * 9, "weights": weights, "past": past}


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ((2.77, 0.06, 0.12, 0.08), "Plateau"),
        ((2.5, 0.15, 0.25, 0.1), "previous-token head"),
        ((1.3, 0.67, 0.4, 0.56), "induction head"),
        ((0.02, 0.99, 0.9, 0.9), "Learned"),
    ],
)
def test_the_line_says_what_is_happening_in_the_words_of_the_field(numbers, says):
    soup = picture(Trainer(), run=run_of(Trainer(), *numbers))
    assert says in part(soup, "phase")
    assert part(soup, "accuracy") == f"{numbers[1]:.2f}"


def test_a_run_of_other_settings_is_not_shown():
    run = run_of(Trainer(), 1.3, 0.67, 0.4, 0.56)
    for made, at, step in ((Trainer(), 9, "9"), (Trainer(), 0, "0"), (Trainer(seed=2), 9, "0")):
        assert part(picture(made, run=run, at=at), "step") == step


def test_answers_of_a_text_that_repeats_itself():
    assert js(Trainer(text="abcabca", task="next"), "compute(state)")["answers"] == [
        -1, -1, -1, 1, 2, 3, 4,
    ]  # fmt: skip
    assert js(Trainer(text="cfac"), "compute(state)")["answers"] == [-1, -1, -1, 1]
