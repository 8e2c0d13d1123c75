"""Rules for heads: scores counted anew, by hand and from the models, and every refusal."""

import numpy as np
import pytest

from attnlib import judge, judging, models
from tests.conftest import ROOT
from tools import record_heads

RECORDED = judging._recorded


def recorded(texts, queries, keys, causal=False):
    """What is recorded of one head, from lists."""
    keys = [np.array(each).reshape(1, 1, -1) for each in keys]
    queries = [np.array(each) for each in queries]
    texts = [tuple(each.split()) for each in texts]
    return judging.Recorded(texts, queries, keys, np.array([[0.75]]), causal)


@pytest.fixture
def hand(monkeypatch):
    """Let "encoder" and "writer" be what a test says."""
    return lambda given: monkeypatch.setattr(judging, "_recorded", lambda model: given)


def test_scores_are_those_counted_by_hand(hand):
    # The head attends to the last x before it, else to the first token.
    texts = ["a x b c d", "a b x c d e f", "x b c", "a x x b c d e"]
    keys = [[0, 1, 1, 1], [0, 0, 2, 2, 2, 2], [0, 0], [0, 1, 2, 2, 2, 2]]
    hand(recorded(texts, [range(1, len(each) + 1) for each in keys], keys))
    found = judge(lambda tokens, i: i - 1, "encoder", 0, 0)
    # One before: in texts 0 and 2 right at 1, 2 and 1; in 1 and 3 at 1, 3, 1, 2 and 3.
    assert found.rule == (3 / 6, 5 / 12)
    # In texts 1 and 3, "the token before" is right 5 times and "the first token" 3 times.
    # In texts 0 and 2, both are right 3 times, and the first token is the simpler one.
    assert found.names_of_fixed == ("the token before", "the first token")
    assert found.fixed == (3 / 6, 3 / 12) and np.isclose(found.lead, 2 / 12)
    # Text 1 has a lead of 0 in 6, text 3 of 2 in 6, each 1 away from what the mean says.
    assert np.isclose(found.error, np.sqrt(1 + 1) / 12)
    # By token: in texts 1 and 3 x goes to the first token, b and c to the one before, d two back;
    # in texts 0 and 2 c goes two back and d three. e and f are new there: the first token.
    assert found.by_token == (3 / 6, 6 / 12) and np.isclose(found.lead_by_token, -1 / 12)
    assert np.isclose(found.error_by_token, np.sqrt(1 / 4 + 1 / 4) / 12)
    assert np.allclose(found.chance, [(4 / 5 + 2 / 3) / 6, (6 / 7 + 6 / 7) / 12])
    assert (found.n_positions, found.n_right, found.largest) == (18, 8, 0.75)


def test_a_rule_may_make_no_claim_and_failures_come_from_the_first_half(hand):
    texts = [f"w{k} x b" for k in range(26)]
    hand(recorded(texts, [[1, 2]] * 26, [[0, 2 if k < 20 else 1] for k in range(26)]))

    def rule(tokens, i):
        return 2 if i == 2 else None

    found = judge(rule, "encoder", 0, 0)
    assert found.n_positions == 26 and found.rule == (10 / 13, 10 / 13) and found.n_texts == 13
    assert {line.split()[1] for line in found.failures[::2]} == {"w20", "w22", "w24"}
    assert found.names_of_fixed == ("the last token", "the last token") and not found.beats_fixed

    def better(tokens, i):
        return None if i == 1 else 2 if int(tokens[0][1:]) < 20 else 1

    found = judge(better, "encoder", 0, 0)
    # 3 of 13 texts have a lead of 1: mean 3/13, error sqrt(3 (10/13)^2 + 10 (3/13)^2) / 13.
    assert np.isclose(found.lead, 3 / 13)
    assert np.isclose(found.error, np.sqrt(3 * (10 / 13) ** 2 + 10 * (3 / 13) ** 2) / 13)
    assert found.beats_fixed == (3 / 13 > 2 * found.error) and found.failures == ()


def test_few_texts_or_none_allow_no_verdict(hand):
    hand(recorded(["a b c"] * 18, [[1, 2]] * 18, [[1, 0]] * 18))
    found = judge(lambda tokens, i: 1, "encoder", 0, 0)
    assert found.n_texts == 9 and not found.beats_fixed and "Only 9 texts" in repr(found)
    hand(recorded(["a b c"] * 26, [[1, 2]] * 26, [[1, 0]] * 26))
    assert "exactly as often as" in repr(judge(lambda tokens, i: i % 2, "encoder", 0, 0))
    for blank in (None, ...):
        found = judge(lambda tokens, i, blank=blank: blank, "encoder", 0, 0)
        assert found.n_positions == 0 and not found.beats_fixed
        assert "returns" not in repr(found) and "nothing to judge" in repr(found)


def test_a_rule_sees_what_its_head_sees_and_cannot_change_it(hand):
    texts, queries, keys = ["a b c d e"], [[1, 3]], [[0, 2]]
    seen = []
    for causal in (False, True):
        hand(recorded(texts, queries, keys, causal))
        judge(lambda tokens, i: seen.append((tokens, i)) or 0, "writer", 0, 0)
    assert seen[:2] == [(tuple("abcde"), 1), (tuple("abcde"), 3)]
    assert seen[2:] == [(tuple("ab"), 1), (tuple("abcd"), 3)]
    for model in ("encoder", "writer"):
        with pytest.raises(ValueError, match="read-only"):
            RECORDED(model).keys[0][0, 0, 0] = 1


def test_numpy_integers_are_positions_and_errors_of_a_rule_are_its_own():
    found = judge(lambda tokens, i: np.int16(i) - 1, "encoder", 0, 2)
    assert found.rule == (1, 1) and found.n_positions == 1343
    assert "Layer 1, head 3 of the encoder" in repr(found)  # counted from one in words
    with pytest.raises(ZeroDivisionError):
        judge(lambda tokens, i: i // 0, "encoder", 0, 2)


def test_the_recording_is_what_the_writer_does():
    kept, model, largest = judging._recorded("writer"), models.writer(), []
    assert len(kept.texts) == 1000 and {len(each) for each in kept.queries} == {24}
    told = record_heads.writer_texts(model, 40)
    for text, (words, queries, weights) in enumerate(told):
        assert kept.texts[text] == tuple(words) and kept.queries[text].tolist() == queries.tolist()
        chosen = np.take_along_axis(weights[..., queries, :], kept.keys[text][..., None], -1)
        assert np.allclose(chosen[..., 0], weights[..., queries, :].max(axis=-1), atol=1e-6)
        largest.append(chosen.mean(axis=(-1, -2)))
    assert np.allclose(np.mean(largest, axis=0), kept.largest, atol=0.02)


def test_the_recording_is_what_the_encoder_does():
    if not models.is_here():
        pytest.skip("the model is not on this machine")
    kept, model = judging._recorded("encoder"), models.load_minilm()
    for text, sentence in enumerate(models.everyday_sentences()[::17]):
        tokens, weights = model.attention(sentence)
        keys = kept.keys[17 * text]
        assert kept.texts[17 * text] == tuple(tokens) and keys.shape == (6, 12, len(tokens) - 1)
        chosen = np.take_along_axis(weights[:, :, 1:], keys[..., None], -1)[..., 0]
        assert np.allclose(chosen, weights[:, :, 1:].max(axis=-1), atol=1e-6)


def test_a_page_fetches_the_recording_for_a_cell_that_judges():
    from _ext.practice import modules

    recorded = judging.RECORDED.relative_to(ROOT).as_posix()
    assert modules.data_for('judge(previous, "encoder", layer=0, head=2)') == [recorded]
    assert modules.data_for("check.softmax(my_softmax)") == []
