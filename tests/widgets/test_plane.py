"""Plane: its numbers in Python, in JavaScript and in the picture, its shapes, its errors."""

import math

import numpy as np
import pytest
import torch

import attnlib
from attnlib.widgets import Plane
from attnlib.widgets.plane import PRICED
from tests.widgets.pictures import close, js, part, picture, run
from tests.widgets.samples import every


def test_bank_by_hand():
    """The numbers of the first chapter."""
    plane = Plane()
    assert plane.tokens == ["The", "boat", "reached", "the", "bank"]
    np.testing.assert_array_equal(plane.scores, [0, 4, 0, 0, 2])
    exponentials = js(plane, "compute(state)")["exponentials"]
    close(exponentials, [1, 16.919, 1, 1, 4.113], 5e-4)
    assert sum(exponentials) == pytest.approx(24.032, abs=5e-4)
    close(plane.weights, [0.0416, 0.7040, 0.0416, 0.0416, 0.1712], 5e-5)
    close(plane.output, [2.987, 0.171], 5e-4)
    mirrored = Plane(sentence="money").output
    np.testing.assert_allclose(mirrored, plane.output[::-1], rtol=1e-15)
    np.testing.assert_allclose(Plane(asks=3).output, [1, 0.2])
    assert Plane(asks=1).weights[1] == pytest.approx(0.9998, abs=5e-5)


def test_the_next_word_by_hand():
    """The miniature at the end of "Why attention": logits 2.987, 0.171 and 1.579."""
    exponentials = np.exp([2.98719744, 0.17115666, 1.57917705])
    probabilities = exponentials / exponentials.sum()
    np.testing.assert_allclose(Plane().probabilities, probabilities, rtol=1e-7)
    close(probabilities, [0.7666, 0.0459, 0.1875], 5e-5)
    np.testing.assert_allclose(Plane(sentence="money").probabilities, probabilities[[1, 0, 2]])
    with pytest.raises(AttributeError, match="need the scene bank; this one is words"):
        _ = Plane("words").probabilities


def test_the_price_list_by_hand():
    """The numbers of the second chapter, where nothing is divided."""
    plane = Plane("prices")
    np.testing.assert_array_equal(plane.scores, [4, 3, 2])
    close(plane.weights, [0.665, 0.245, 0.090], 5e-4)
    assert plane.output == pytest.approx([2.515], abs=5e-4)
    assert Plane("prices", query=(1, 2)).output == pytest.approx([4.24], abs=5e-3)
    assert Plane("prices", sharpness=0).output == pytest.approx([10 / 3])
    longer = plane.words | {"coffee": [2, 2]}
    assert Plane("prices", words=longer).scores[1] == 2 * plane.scores[1]
    assert part(picture(plane), "answer") == "2.515"


@pytest.mark.parametrize(("scene", "sharpness"), [("prices", 0), ("prices", 1), ("sharpness", 4)])
def test_the_beam_balances_where_the_blocks_pull_equally_on_both_sides(scene, sharpness):
    plane = Plane(scene, sharpness=sharpness)
    beam = picture(plane).select_one("[data-part=balance]")
    blocks = [(float(b["x"]) + float(b["width"]) / 2, float(b["height"])) for b in beam("rect")]
    answer = beam.select_one(".answer")
    assert sum((x - float(answer["x"])) * heavy for x, heavy in blocks) == pytest.approx(0, abs=10)
    assert answer.get_text() == f"{plane.output[0]:.3f}"


def test_a_question_that_is_turned():
    plain, turned = (Plane("turned", turn=turn) for turn in (0, -45))
    np.testing.assert_allclose(plain.scores[[0, 5]], [4, 4])
    np.testing.assert_allclose(turned.scores[[0, 5]], [0, 4 * math.sqrt(2)], atol=1e-12)
    np.testing.assert_allclose(Plane("turned", turn=0, stretch=2).scores, 2 * plain.scores)


@every(Plane, examples=40)
def test_the_numbers_are_attention_and_javascript_and_copied_code_have_them_too(plane):
    found = js(plane, "compute(state)")
    assert found["tokens"] == plane.tokens
    names = ["points", "scores", "weights", "output"]
    names += ["probabilities"] if plane.scene == "bank" else []
    for name in names:
        np.testing.assert_allclose(found[name], getattr(plane, name), rtol=1e-9, atol=1e-12)
    if "exponentials" in found:
        raised = np.array(found["exponentials"], dtype=float)  # large ones are whole in JSON
        np.testing.assert_allclose(raised / raised.sum(), plane.weights, rtol=1e-9, atol=1e-12)
    # The code has whole steps.
    of_code = Plane(**plane.state | {"step": math.floor(plane.step)})
    names = run(js(of_code, "code(state)"))
    shown = ("loss", "w_q") if plane.scene == "learning" else ("scores", "output")
    for name in (*shown, "weights"):
        np.testing.assert_allclose(names[name], getattr(of_code, name), rtol=1e-9, atol=1e-12)
    if plane.scene == "learning":
        return  # its attention is that of a test below
    priced = plane.scene in PRICED
    factor = plane.sharpness if priced else plane.sharpness / math.sqrt(2)
    query = np.array(plane.query, dtype=float)
    if not priced:
        query = plane.points[min(plane.asks, len(plane.tokens) - 1)]
    if plane.scene == "turned":  # as a complex number: turned and stretched by a product
        turned = complex(*query) * plane.stretch * np.exp(1j * math.radians(plane.turn))
        query = np.array([turned.real, turned.imag])
    output, weights = attnlib.scaled_dot_product_attention(
        query[None], plane.points, plane.values, scale=factor
    )
    np.testing.assert_allclose(plane.weights, weights[0], rtol=1e-9)
    np.testing.assert_allclose(plane.output, output[0], rtol=1e-9, atol=1e-12)


def loss_of(teacher, weights):
    """What the teachers make smaller, as torch computes it."""
    if teacher == "entry":
        return -weights.diag().log().mean()
    costs = torch.tensor([2.0, 3.0, 5.0], dtype=torch.float64)
    return (weights @ costs - costs).square().mean()


@pytest.mark.parametrize("teacher", ["entry", "cost"])
@pytest.mark.parametrize("start", [7, 31])
def test_what_is_learned_follows_the_gradient_that_torch_finds(start, teacher):
    turns = np.radians([20, 60, 155, 90, 210, 330])
    circle = torch.tensor(np.stack([np.cos(turns), np.sin(turns)], axis=1))
    words, keys = 2 * circle[:3], circle[3:]
    for step, rate in ((0, 0.3), (1, 10), (9, 1), (60, 0.03)):
        learned = Plane("learning", start=start, step=step, rate=rate, teacher=teacher)
        w_q = torch.tensor(learned.w_q, requires_grad=True)
        weights = (words @ w_q @ keys.T / math.sqrt(2)).softmax(dim=1)
        loss = loss_of(teacher, weights)
        np.testing.assert_allclose(learned.weights, weights.detach(), rtol=1e-12)
        assert learned.loss == pytest.approx(loss.item())
        (slope,) = torch.autograd.grad(loss, w_q)
        after = Plane("learning", start=start, step=step + 1, rate=rate, teacher=teacher)
        close(after.w_q, (w_q - rate * slope).detach(), 1e-12)
    found = js(Plane("learning", start=start, step=7.5, teacher=teacher), "compute(state)")
    ways = [Plane("learning", start=start, step=s, teacher=teacher).w_q for s in (7, 8)]
    close(found["w_q"], np.mean(ways, axis=0), 1e-12)


def test_questions_find_their_keys_from_every_start():
    for start in range(10):
        losses = [Plane("learning", start=start, step=step).loss for step in (0, 20, 100)]
        assert losses[0] > losses[1] > losses[2] and losses[2] < 0.0275
        assert np.diag(Plane("learning", start=start, step=100).weights).min() > 0.965
    assert Plane("learning").loss == pytest.approx(1.310, abs=5e-4)
    with pytest.raises(AttributeError, match="loss needs the scene learning; this one is bank"):
        _ = Plane().loss


def test_costs_alone_teach_a_shortcut():
    shortcut = Plane("learning", teacher="cost", step=100)
    close(shortcut.weights[1], [0.60, 0.10, 0.30], 5e-3)
    assert shortcut.weights[1] @ [2, 3, 5] == pytest.approx(3, abs=5e-3)
    thrown = Plane("learning", teacher="cost", rate=10, step=100)
    assert thrown.weights[1, 0] > 0.999 and thrown.loss == pytest.approx(1 / 3, abs=1e-3)


@every(Plane, examples=40)
def test_the_output_is_in_the_hull_and_the_values_lead_to_it(plane):
    if plane.scene == "learning":
        return
    if plane.scene in PRICED:
        assert 2 <= plane.output[0] <= 5
        return
    corners = np.array(js(plane, f"hull({plane.points.tolist()})"))
    # Every point of the sentence, and the output, is to the left of each edge.
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        for point in (*plane.points, plane.output):
            assert np.linalg.det([b - a, point - a]) >= -1e-9
    asks = min(plane.asks, len(plane.tokens) - 1)
    links = np.array(js(plane, f"chain({plane.points.tolist()}, {plane.weights.tolist()}, {asks})"))
    close(links[:, 1] - links[:, 0], plane.weights[:, None] * plane.points, 1e-12)
    order = sorted(range(len(links)), key=lambda j: (j != asks, j))
    np.testing.assert_array_equal(links[order[0], 0], [0, 0])
    np.testing.assert_array_equal(links[order[1:], 0], links[order[:-1], 1])
    close(links[order[-1], 1], plane.output, 1e-9)


def test_picture_shows_both_sentences_and_the_numbers():
    soup = picture(Plane())
    assert part(soup, "answer") == "(2.99, 0.17)"
    place = {name: soup.select_one(f".{name} circle") for name in ("moved", "rival")}
    unit, left, floor = 53, 58, 262
    for name, (x, y) in {"moved": (2.987, 0.171), "rival": (0.171, 2.987)}.items():
        found = float(place[name]["cx"]), float(place[name]["cy"])
        assert found == pytest.approx((left + unit * x, floor - unit * y), abs=0.1)
    absent = soup.select_one("[data-word=money]")
    assert "absent" in absent["class"] and absent.get("role") is None
    assert soup.select_one("[data-word=bank]")["role"] == "slider"


def test_what_is_compact_has_no_table_and_at_most_one_slider():
    soup = picture(Plane(compact=True))
    assert soup.select_one(".sentence") and soup.select_one("[data-part=sheet]")
    assert not soup.find_all("input") and not soup.table
    prices = picture(Plane("sharpness"))  # alone, with one slider
    assert not prices.select("[data-part=sheet], table, input[type=text]")
    assert [slider["name"] for slider in prices.select("input")] == ["sharpness"]
    turned = picture(Plane("turned", compact=True))  # has its slider all the same
    assert [slider["name"] for slider in turned("input")] == ["turn"] and not turned.table
