"""The task of looking back, the models that solve it, and what each of their heads is for."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import bridge
from attnlib.models import induction
from attnlib.models.induction import without
from tests.helpers import steady
from tools import train

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def tests():
    return induction.sentences(300, np.random.default_rng(7))


@pytest.fixture(scope="module")
def model():
    return induction.load(2)


def test_answers_by_hand():
    assert induction.answers([3, 1, 3, 3, 1, 4, 3]).tolist() == [-1, -1, 1, 3, 3, -1, 1]
    assert induction.answers([[0, 1], [2, 2]]).tolist() == [[-1, -1], [-1, 2]]
    assert induction.answers(np.zeros(0, int)).shape == (0,)


@steady
@given(st.lists(st.integers(0, 4), max_size=12))
def test_answers_are_what_a_reader_remembers(tokens):
    follows, expected = {}, []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None:
            follows[before] = token
        expected.append(follows.get(token, -1))
    assert induction.answers(np.array(tokens, int)).tolist() == expected


def test_sentences():
    tokens, answers = induction.sentences(11, np.random.default_rng(0), n=7)
    assert tokens.shape == answers.shape == (11, 7)
    np.testing.assert_array_equal(answers, induction.answers(tokens))
    many, _ = induction.sentences(500, np.random.default_rng(0))
    assert many.shape == (500, induction.LENGTH)
    assert np.unique(many).tolist() == list(range(induction.N_TOKENS))


def test_two_layers_solve_it_and_one_cannot(model, tests):
    assert model.accuracy(*tests) > 0.99
    assert induction.load(1).accuracy(*tests) < 0.4


def test_one_head_a_layer_is_needed_and_looks_where_the_task_says(model, tests):
    left = {head: without(model, head).accuracy(*tests) for head in np.ndindex(2, 2)}
    first, second = needed = [head for head, share in left.items() if share < 0.5]
    assert (first[0], second[0]) == (0, 1)
    idle = [head for head in left if head not in needed]
    assert without(model, *idle).accuracy(*tests) > 0.9
    assert without(model, *needed).accuracy(*tests) < 0.2
    one_back, on_answer = induction.looks(model(tests[0])[1], tests[0])
    assert one_back[first] > 0.5 and on_answer[second] > 0.8
    _, blind = induction.looks(without(model, first)(tests[0])[1], tests[0])
    assert blind[second] < 0.3  # the second head asks for what the first one wrote


def test_without_the_price_one_head_stands_in_for_another(tests):
    model = induction.load(2, penalized=False)
    each = [without(model, (1, head)).accuracy(*tests) for head in (0, 1)]
    assert min(each) > 0.7 and without(model, (1, 0), (1, 1)).accuracy(*tests) < 0.25


def test_looks_by_hand():
    tokens = np.array([[3, 1, 3, 3], [2, 2, 5, 2]])
    rng = np.random.default_rng(0)
    weights = [rng.dirichlet(np.ones(4), (2, 3, 4)) for _ in range(2)]
    one_back, on_answer = induction.looks(weights, tokens)
    # where there is an answer: (sentence, place, where it stands)
    asked = [(0, 2, 1), (0, 3, 3), (1, 1, 1), (1, 3, 2)]
    for layer, head in np.ndindex(2, 3):
        A = weights[layer][:, head]
        assert one_back[layer, head] == pytest.approx(np.mean([A[:, i, i - 1] for i in (1, 2, 3)]))
        assert on_answer[layer, head] == pytest.approx(np.mean([A[at] for at in asked]))


@pytest.mark.parametrize(("n_layers", "penalized"), [(1, True), (2, True), (2, False)])
def test_equals_torch(n_layers, penalized, tests):
    model, (tokens, _) = induction.load(n_layers, penalized=penalized), tests
    reference = train.Model(n_layers).eval()
    reference.encoder.load_state_dict(bridge.to_torch(model.encoder).state_dict())
    with torch.no_grad():
        reference.embedding.weight.copy_(torch.tensor(model.embedding))
        reference.out.weight.copy_(torch.tensor(model.w_out.T))
        reference.out.bias.copy_(torch.tensor(model.b_out))
        expected = reference(torch.tensor(tokens)).numpy()
    scores, weights = model(tokens)
    assert scores.dtype == np.float32 and len(weights) == n_layers
    np.testing.assert_allclose(scores, expected, rtol=0, atol=2e-4)


def test_arrays_go_there_and_back(model, tests):
    again = induction.from_arrays(induction.to_arrays(model))
    np.testing.assert_array_equal(again(tests[0][:3])[0], model(tests[0][:3])[0])
    packed = induction.unpack(train.pack(model))  # rounded already: nothing is lost
    np.testing.assert_array_equal(packed(tests[0][:3])[0], model(tests[0][:3])[0])


def test_accuracy_counts_only_where_there_is_an_answer(model):
    scores, _ = model([3, 1, 3])
    best = int(scores[2].argmax())
    nothing = induction.NO_ANSWER
    assert model.accuracy(np.array([3, 1, 3]), np.array([nothing, nothing, best])) == 1
    assert model.accuracy(np.array([3, 1, 3]), np.array([nothing, nothing, best + 1])) == 0


def test_training_starts_as_it_should_and_gives_the_same_twice():
    torch.set_num_threads(1)
    model, losses = train.train(2, steps=12)
    again, same = train.train(2, steps=12)
    assert losses == same and losses[-1] < losses[0]
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    tokens, _ = induction.sentences(3, np.random.default_rng(0))
    with torch.no_grad():
        expected = model(torch.tensor(tokens)).numpy()
    np.testing.assert_allclose(model.to_numpy()(tokens)[0], expected, rtol=0, atol=1e-5)


def test_the_price_is_the_length_of_each_heads_rows():
    model = train.Model(2)
    heads = [
        head
        for layer in bridge.from_torch(model.encoder).layers
        for head in np.split(layer.attention.w_o, layer.attention.n_heads)
    ]
    assert len(heads) == 4
    assert model.penalty().item() == pytest.approx(sum(map(np.linalg.norm, heads)), rel=1e-5)
