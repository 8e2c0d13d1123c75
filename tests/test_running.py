# ruff: noqa: N803 -- Q, K and V as in the formula
"""The judge that lets the trained model write with a learner's function."""

import time

import numpy as np
import pytest

import attnlib
from attnlib import check
from attnlib.caches import KeyValueCache
from attnlib.check import attempts, running
from attnlib.models import writer
from attnlib.models.own_parts import PartedAttention, Parts, write_with
from attnlib.world import World
from tests.test_check import ODD, needs_signals, solution, table
from tools.measure_writer import fault

every_part = pytest.mark.parametrize("part", running.PARTS)


def judged(part, body):
    """What the judge says of a body of `solutions.txt`."""
    return check.runs_the_writer(**{part: solution(part, body)})


def bodies(part, sign):
    """Yield (what must be said, body) of the solutions of a part's checker."""
    return [(words, body) for each, words, body in table()[part][1] if each == sign]


def test_an_attention_in_parts_computes_what_the_attention_of_the_model_does():
    layer = writer(dtype=np.float64).layers[1].attention
    x = np.random.default_rng(0).normal(size=(7, layer.widths[0]))
    whole, _ = layer(x, mask=attnlib.causal_mask(7, 7))
    cache = KeyValueCache()
    pieces = [PartedAttention(layer)(piece, cache=cache)[0] for piece in (x[:3], x[3:4], x[4:])]
    assert np.abs(np.vstack(pieces) - whole).max() < 1e-12


def test_the_model_writes_with_its_own_parts_what_it_writes_anyway():
    model, draws = writer(), np.random.default_rng(running.SEED).random(running.N_WORDS)
    tokens = model.encode(running.BEGINNING)
    expected = []
    for draw in draws:
        logits = model([*tokens, *expected])[-1].astype(float)  # without a cache
        expected.append(int(np.searchsorted(attnlib.softmax(logits / 0.8).cumsum(), draw, "right")))
    assert list(running.ours()) == expected and 0 not in expected


def test_the_story_ends_where_the_model_ends_it():
    tokens = writer().encode("Ada")
    ending = Parts(sample_tokens=lambda logits, temperature, draws: np.array([int(draws[0])]))
    assert write_with(ending, tokens, np.array([3.0, 5.0, 0.0, 7.0])).tolist() == [3, 5]


def test_without_a_mask_the_model_still_writes_by_the_rules_and_not_with_other_mistakes():
    model, world = writer(), World()
    beginning = model.encode(running.BEGINNING)

    def without_fault(n, **part):
        texts = [
            write_with(Parts(**part), beginning, np.random.default_rng(seed).random(40))
            for seed in range(n)
        ]
        stories = [[model.vocabulary[t] for t in (*beginning[1:], *text)] for text in texts]
        return sum(fault(world, story) in (None, "no end") for story in stories)

    assert without_fault(30) == 28
    assert without_fault(30, causal_mask=lambda n_q, n_k: np.ones((n_q, n_k), dtype=bool)) == 26
    assert without_fault(5, softmax=lambda scores: attnlib.softmax(scores, axis=0)) == 0
    assert without_fault(5, rotary=lambda x, positions: x) == 0

    def unscaled(q, k, v):
        weights = attnlib.softmax(q @ k.T)
        return weights @ v, weights

    assert without_fault(5, attention=unscaled) == 0


def text_of_ours():
    return attnlib.world.show([writer().vocabulary[token] for token in running.ours()])


def test_right_functions_leave_the_text_as_it_was():
    """Of the other parts test_exercises.py says so."""
    said = judged("attention", bodies("attention", "+")[0][1])
    assert said and said.message == "Right: with solution the model writes the same 40 words."
    assert said.texts == (("With both functions", text_of_ours(), "", ""),)


@every_part
def test_wrong_functions_get_the_words_of_their_checker(part):
    """Some of them, since the model writes a story with each; test_exercises.py tries the first."""
    for words, body in bodies(part, "-")[3::12]:
        said = judged(part, body)
        assert words in said.message and "passes its checker" not in said.message
        assert not said or "One remark: " in said.message
        assert (
            said
            or not said.texts
            or " the model, too, but " in said.message
            or ("The text first changes at word " in said.message)
        )


@pytest.mark.parametrize(
    ("part", "body", "remark"),
    [
        ("softmax", "np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)", "Large scores"),
        (
            "sample_tokens",
            "(attnlib.softmax(logits / temperature).cumsum() <= draws[:, None]).sum(axis=1)",
            "You divided by a temperature of 0",
        ),
    ],
)
def test_a_mistake_that_cannot_show_in_the_model_is_a_remark(part, body, remark):
    said = judged(part, body)
    assert said and said.message.startswith("Right: ") and f"One remark: {remark}" in said.message


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("softmax", lambda scores: attnlib.softmax(scores, axis=0)),
        ("rotary", lambda x, positions: x.copy()),
        ("sample_tokens", lambda logits, temperature, draws: np.array([logits.argmax()])),
    ],
)
def test_a_word_that_changes_is_marked_in_both_texts(part, wrong):
    said = check.runs_the_writer(**{part: wrong})
    ours, yours = said.texts
    assert not said and ours.before.strip() == yours.before.strip() and ours.word != yours.word
    assert ours.before + ours.word + ours.after == text_of_ours()
    at = int(said.message.rpartition("The text first changes at word ")[2].split()[0])
    words = [writer().vocabulary[token] for token in running.ours()]
    assert attnlib.world.show(words[: at - 1]) == ours.before.strip()
    assert f">>{yours.word}<<" in repr(said) and f">>{ours.word}<<" in repr(said)


def test_a_turn_that_is_wrong_by_the_same_angle_everywhere_changes_no_word():
    """A score depends on the distance between two positions alone."""
    said = check.runs_the_writer(rotary=lambda x, positions: attnlib.rotary(x, positions + 1))
    assert not said and "You turn each row by one position more" in said.message
    assert "720 of its 720 results are different in the model, too" in said.message


def test_a_function_that_is_wrong_in_the_model_alone():
    def narrow(scores):
        if len(scores) == 2 and scores.dtype == np.float32:
            raise ValueError("two rows")
        return attnlib.softmax(scores)

    said = check.runs_the_writer(softmax=narrow)
    assert not said and said.message == (
        "narrow passes its checker, but the model raised ValueError: two rows."
    )

    def forgetful(scores):
        return attnlib.softmax(scores) if scores.dtype == float or len(scores) > 2 else 1 * scores

    said = check.runs_the_writer(softmax=forgetful)
    assert not said and "forgetful passes its checker, but in the model" in said.message


def test_a_story_that_ends_early_says_so():
    def end(logits, temperature, draws):
        return np.zeros(len(draws), int)

    said = check.runs_the_writer(sample_tokens=end)
    assert said.texts[1][1:] == ("", "", " (Here the story ends.)")


@pytest.mark.parametrize("part", ["attention", "sample_tokens"])
def test_nothing_that_a_learner_does_raises_or_prints(part, capsys):
    for body in ODD:
        said = judged(part, body)
        assert isinstance(said, check.Verdict) and not said and not said.texts, body
    assert capsys.readouterr() == ("", "")


def test_unsolved_cells_are_called_unsolved_and_what_is_printed_is_not_shown(capsys):
    assert judged("softmax", "...").message.startswith("Not solved yet: solution r")
    said = check.runs_the_writer(softmax=None)
    assert said.message == "Not solved yet: there is no function to check."
    said = check.runs_the_writer(softmax=lambda scores: print(scores) or attnlib.softmax(scores))
    assert said and "What your function prints is not shown here" in said.message
    assert capsys.readouterr() == ("", "")


@needs_signals
def test_an_endless_loop_is_stopped_once(monkeypatch):
    running.ours()
    monkeypatch.setattr(attempts, "SECONDS", 0.2)

    def endless(scores):
        while True:
            pass

    started = time.monotonic()
    said = check.runs_the_writer(softmax=endless)
    words = "endless was stopped after 0.2 seconds while the model was writing."
    assert said.message == words and time.monotonic() - started < 5


def test_a_part_that_the_model_does_not_have():
    with pytest.raises(ValueError, match=r"must be one of softmax, causal_mask, .*; got norm"):
        check.runs_the_writer(norm=attnlib.softmax)
    with pytest.raises(TypeError, match="rotary must be"):
        Parts(rotary=3)
    for parts in {}, {"softmax": attnlib.softmax, "rotary": attnlib.rotary}:
        with pytest.raises(TypeError, match=rf"takes one function, .*; got {len(parts)}"):
            check.runs_the_writer(**parts)


@pytest.mark.parametrize(
    ("part", "returned", "error", "words"),
    [
        ("softmax", lambda scores: scores[:1], ValueError, r"shape \(2, 1\); got \(1, 1\)"),
        ("softmax", lambda scores: scores > 0, TypeError, "must return floats; got bool"),
        ("softmax", lambda scores: scores * np.nan, ValueError, "must return finite numbers"),
        ("causal_mask", np.tri, TypeError, "must return True and False; got float64"),
        ("attention", lambda Q, K, V: V, TypeError, "attention must return Z, A; got ndarray"),
        ("sample_tokens", lambda *_: [0.5], TypeError, "must return whole numbers; got float64"),
    ],
)
def test_what_a_part_returns_must_fit(part, returned, error, words):
    with pytest.raises(error, match=words):
        write_with(Parts(**{part: returned}), [0], np.array([0.5]))
