"""Plane: its numbers in Python, in JavaScript and in the picture, its shapes, its errors."""

import math

import numpy as np
import pytest
import traitlets
from hypothesis import given, settings

import attnlib
from attnlib.widgets import Plane
from tests.helpers import steady
from tests.widgets.pictures import js, picture, run
from tests.widgets.samples import SAMPLES

planes = SAMPLES[Plane]
NUMBERS = ("scores", "powers", "weights", "output")
some = settings(steady, max_examples=60)


def test_bank_by_hand():
    """The numbers of chapter 1."""
    plane = Plane()
    assert plane.tokens == ["The", "boat", "reached", "the", "bank"]
    np.testing.assert_array_equal(plane.scores, [0, 4, 0, 0, 2])
    np.testing.assert_allclose(plane.powers, [1, 16.919, 1, 1, 4.113], atol=5e-4)
    assert plane.powers.sum() == pytest.approx(24.032, abs=5e-4)
    np.testing.assert_allclose(plane.weights, [0.0416, 0.7040, 0.0416, 0.0416, 0.1712], atol=5e-5)
    np.testing.assert_allclose(plane.output, [2.987, 0.171], atol=5e-4)
    mirrored = Plane(sentence="money").output
    np.testing.assert_allclose(mirrored, plane.output[::-1], rtol=1e-15)
    np.testing.assert_allclose(Plane(asks=3).output, [1, 0.2])
    assert Plane(asks=1).weights[1] == pytest.approx(0.9998, abs=5e-5)


@pytest.mark.parametrize(
    ("sharpness", "output"),
    [
        (0, (1, 0.2)),
        (0.5, (2.022, 0.222)),
        (1, (2.987, 0.171)),
        (2, (3.795, 0.055)),
        (4, (3.989, 0.003)),
    ],
)
def test_sharpness_leads_from_the_mean_to_the_corner(sharpness, output):
    np.testing.assert_allclose(Plane(sharpness=sharpness).output, output, atol=5e-4)


def test_the_price_list_by_hand():
    """The numbers of chapter 2, where nothing is divided."""
    plane = Plane("prices")
    np.testing.assert_array_equal(plane.scores, [4, 3, 2])
    np.testing.assert_allclose(plane.weights, [0.665, 0.245, 0.090], atol=5e-4)
    assert plane.output == pytest.approx([2.515], abs=5e-4)
    assert Plane("prices", query=(1, 2)).output == pytest.approx([4.24], abs=5e-3)
    assert Plane("prices", sharpness=0).output == pytest.approx([10 / 3])
    longer = plane.words | {"coffee": [2, 2]}
    assert Plane("prices", words=longer).scores[1] == 2 * plane.scores[1]
    assert Plane("prices", query=(-1, 0.4)).scores[0] < 0  # beyond a right angle
    assert picture(plane).select_one("[data-part=answer]").get_text() == "2.515"
    cells = [td.get_text() for td in picture(plane).tbody.tr.find_all("td")[:4]]
    assert cells == ["2.00", "0.89", "4", "0.665"]  # sqrt 5 times 2 times the cosine


def test_a_question_that_is_turned():
    plain, turned = (Plane("turned", turn=turn) for turn in (0, -45))
    np.testing.assert_allclose(plain.scores[[0, 5]], [4, 4])
    np.testing.assert_allclose(turned.scores[[0, 5]], [0, 4 * math.sqrt(2)], atol=1e-12)
    np.testing.assert_allclose(Plane("turned", turn=0, stretch=2).scores, 2 * plain.scores)


@some
@given(plane=planes)
def test_the_numbers_are_attention_and_javascript_has_them_too(plane):
    found = js(plane, "compute(state)")
    assert found["tokens"] == plane.tokens
    names = ("points", "scores", "weights", "output", *(["powers"] if "powers" in found else ()))
    for name in names:
        got = np.array(found[name], dtype=float)  # JSON has large powers as whole numbers
        np.testing.assert_allclose(got, getattr(plane, name), rtol=1e-9, atol=1e-12)
    if plane.scene == "learning":
        return  # its attention is that of the next test
    factor = plane.sharpness if plane.scene == "prices" else plane.sharpness / math.sqrt(2)
    query = np.array(plane.query, dtype=float)
    if plane.scene != "prices":
        query = plane.points[min(plane.asks, len(plane.tokens) - 1)]
    if plane.scene == "turned":  # as a complex number: turned and stretched by a product
        turned = complex(*query) * plane.stretch * np.exp(1j * math.radians(plane.turn))
        query = np.array([turned.real, turned.imag])
    output, weights = attnlib.scaled_dot_product_attention(
        query[None], plane.points, plane.values, scale=factor
    )
    np.testing.assert_allclose(plane.weights, weights[0], rtol=1e-9)
    np.testing.assert_allclose(plane.output, output[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("start", [31, 0, 7])
def test_what_is_learnt_follows_the_gradient_of_attention(start):
    """The mean of -ln of the right weights, backwards through attention: values of 1 show them."""
    keys = Plane("learning").points
    np.testing.assert_allclose(keys @ keys.T, 1.5 * np.eye(3) - 0.5)
    for step in (0, 1, 9, 60):
        before, after = (Plane("learning", start=start, step=step + i, rate=0.3) for i in (0, 1))
        queries = keys @ before.w_q
        _, weights = attnlib.scaled_dot_product_attention(queries, keys, keys)
        np.testing.assert_allclose(before.weights, weights, rtol=1e-12)
        assert before.loss == pytest.approx(-np.log(np.diag(weights)).mean())
        upstream = -np.eye(3) / (3 * weights)
        d_queries, *_ = attnlib.attention_backward(queries, keys, np.eye(3), upstream)
        np.testing.assert_allclose(after.w_q, before.w_q - 0.3 * keys.T @ d_queries, atol=1e-12)
    found = js(Plane("learning", start=start, step=7.5), "compute(state)")
    half = np.mean([Plane("learning", start=start, step=s).w_q for s in (7, 8)], axis=0)
    np.testing.assert_allclose(found["w_q"], half, atol=1e-12)


def test_questions_find_their_keys_from_every_start():
    for start in range(12):
        losses = [Plane("learning", start=start, step=step).loss for step in (0, 20, 100)]
        assert losses[0] > losses[1] > losses[2] and losses[2] < 0.025
        assert np.diag(Plane("learning", start=start, step=100).weights).min() > 0.97
    assert Plane("learning", start=31).loss == pytest.approx(1.316, abs=5e-4)
    with pytest.raises(AttributeError, match="loss needs the scene learning; this one is bank"):
        _ = Plane().loss


@some
@given(plane=planes)
def test_copied_code_gives_the_numbers_on_the_screen(plane):
    if plane.scene == "learning":
        plane.step = math.floor(plane.step)
    names = run(js(plane, "code(state)"))
    shown = ("loss", "w_q", "weights") if plane.scene == "learning" else NUMBERS
    for name in shown:
        np.testing.assert_allclose(names[name], getattr(plane, name), rtol=1e-9, atol=1e-12)


@some
@given(plane=planes)
def test_the_output_is_in_the_hull_and_the_values_lead_to_it(plane):
    if plane.scene == "learning":
        return
    if plane.scene == "prices":
        assert 2 <= plane.output[0] <= 5
        return
    corners = np.array(js(plane, f"hull({plane.points.tolist()})"))
    # Every point of the sentence, and the output, is to the left of each edge.
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        for point in (*plane.points, plane.output):
            assert np.linalg.det([b - a, point - a]) >= -1e-9
    asks = min(plane.asks, len(plane.tokens) - 1)
    links = np.array(js(plane, f"chain({plane.points.tolist()}, {plane.weights.tolist()}, {asks})"))
    np.testing.assert_allclose(
        links[:, 1] - links[:, 0], plane.weights[:, None] * plane.points, atol=1e-12
    )
    order = sorted(range(len(links)), key=lambda j: (j != asks, j))
    np.testing.assert_array_equal(links[order[0], 0], [0, 0])
    np.testing.assert_array_equal(links[order[1:], 0], links[order[:-1], 1])
    np.testing.assert_allclose(links[order[-1], 1], plane.output, atol=1e-9)


def test_picture_shows_both_sentences_and_the_numbers():
    soup = picture(Plane())
    assert soup.select_one("[data-part=answer]").get_text() == "(2.99, 0.17)"
    body, foot = soup.tbody, soup.tfoot
    assert [cell.get_text() for cell in body.find_all("tr")[1].find_all("td")[:3]] == [
        "4",
        "16.92",
        "0.704",
    ]
    assert [field["value"] for field in body.find_all("input")[2:4]] == ["4", "0"]
    assert [cell.get_text() for cell in foot.find_all("td")] == ["", "24.03", "1", "2.99", "0.17"]
    place = {name: soup.select_one(f".{name} circle") for name in ("moved", "rival")}
    unit, left, floor = 53, 58, 262
    for name, (x, y) in {"moved": (2.987, 0.171), "rival": (0.171, 2.987)}.items():
        found = float(place[name]["cx"]), float(place[name]["cy"])
        assert found == pytest.approx((left + unit * x, floor - unit * y), abs=0.1)
    absent = soup.select_one("[data-word=money]")
    assert "absent" in absent["class"] and absent.get("role") is None
    bank = soup.select_one("[data-word=bank]")
    assert bank["role"] == "slider" and bank["aria-valuetext"] == "1 about rivers, 1 about money"


def test_compact_is_the_sentence_and_the_picture():
    soup = picture(Plane(compact=True))
    assert soup.select_one(".sentence") and soup.select_one("[data-part=sheet]")
    assert not soup.find_all("input") and not soup.table


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"words": {"boat": [4, 0]}}, r"words needs a place for each of .*got \['boat'\]"),
        ({"words": Plane().words | {"bank": [1, math.nan]}}, r"words\['bank'\] needs two numbers"),
        ({"words": Plane().words | {"bank": [1, 5]}}, r"from -0.8 to 4.7; got \[1, 5\]"),
        ({"words": Plane().words | {"bank": "near"}}, "got 'near'"),
        ({"scene": "words", "words": {" ": [1, 1]}}, r"none blank, long or a number; got \[' '\]"),
        ({"scene": "words", "words": {}}, r"words needs 1 to 8 names, .*got \[\]"),
        ({"scene": "words", "words": {"12": [1, 1]}}, r"got \['12'\]"),
        ({"scene": "prices", "query": [1, 9]}, r"query needs two numbers from -2.2 to 3.2"),
        ({"words": 7}, "words needs a dict of names and places; got 7"),
        ({"asks": 8}, "asks needs a whole number from 0 to 7; got 8"),
        ({"sharpness": math.nan}, "sharpness needs a number from 0 to 4; got nan"),
        ({"sharpness": -1}, "got -1"),
        ({"scene": "moon"}, "scene"),
        ({"sentence": "<b>"}, "sentence"),
        ({"ruler": "yes"}, "ruler"),
    ],
)
def test_bad_input_is_refused_in_words(wrong, message):
    with pytest.raises((ValueError, traitlets.TraitError), match=message):
        Plane(**wrong)
