"""Letters: the model in JavaScript beside attnlib's, what it says of it, its errors."""

import numpy as np
import pytest

from attnlib.models import induction
from attnlib.models.induction import held_out
from attnlib.widgets import Letters
from attnlib.widgets.letters import LETTERS
from tests.widgets.pictures import close, drawn, js, part, picture, run, texts
from tests.widgets.samples import every

HEADS = [[layer, head] for layer in (0, 1) for head in (0, 1)]


@every(Letters, examples=15)
def test_javascript_and_copied_code_read_as_attnlib_reads(made):
    found = js(made, "compute(state)")
    close(found["probabilities"], made.probabilities)
    close(found["weights"], made.weights)
    assert LETTERS[found["says"]] == made.says
    assert found["position"] == min(made.place, len(made.text) - 1)
    names = run(js(made, "code(state)"))
    close(names["probabilities"], made.probabilities, 1e-12)
    assert names["printed"][0].split()[1] == made.says
    bars = picture(made).select("[data-part=bars] span")
    shares = [float(bar["style"].removeprefix("--probability:")) for bar in bars]
    close(shares, made.probabilities[found["position"]], 5.1e-5)
    assert [bar.get_text() for bar in bars if bar.get("class")] == [made.says]


def test_one_test_sentence_is_marked_as_attnlib_marks_it():
    tokens, answers = (each[3:4] for each in held_out())
    for off in ([], [[0, 0]], HEADS):
        made = Letters(off=off)
        right, asked = js(made, "mark(state, 3 * 24)")
        assert asked == (answers >= 0).sum()
        assert right / asked == pytest.approx(made._left().accuracy(tokens, answers))


def test_the_page_measures_on_the_sentences_that_python_measures_on():
    tokens, answers = held_out()
    written = Letters().state["tests"]
    assert written == "".join(LETTERS[token] for token in tokens.ravel())
    assert Letters(off=[[0, 0]]).score == induction.without(
        induction.load(2, dtype=np.float64), (0, 0)
    ).accuracy(tokens, answers)


def test_what_layer_1_copies_is_the_letter_before_unless_its_head_is_off():
    made = Letters(text="cfakdcg")
    assert js(made, "compute(state)")["copied"] == [-1, 0, 1, 2, 3, 4, 5]
    made.off = [[0, 0]]
    assert js(made, "compute(state)")["copied"] == [-1] * 7
    row = picture(Letters(text="cfakdcg")).select("[data-row=copied] small")
    assert [cell.get_text().strip() for cell in row] == ["", *"cfakdc"]


def test_sources_are_where_most_is_added():
    """By hand, with all rows and matrices of attnlib: the largest part of the sum over heads."""
    made = Letters(text="nbbcapnnbco", off=[[0, 1]])
    model = induction.load(2, dtype=np.float64)
    layer = model.encoder.layers[0]
    x = model.embedding[made.tokens] + induction.sinusoidal_positions(11, 32)
    values = (layer.norm_1(x) @ layer.attention.w_v + layer.attention.b_v)[:, :16]
    added = made.weights[0, 0][:, :, None] * (values @ layer.attention.w_o[:16])  # (n, n, d_model)
    sizes = np.linalg.norm(added, axis=-1)
    little = sizes.max(axis=1) < 0.1 * np.linalg.norm(x, axis=1)
    most = sizes.argmax(axis=1)
    expected = np.where(little | (most == np.arange(11)), -1, most)
    assert js(made, "compute(state)")["copied"] == expected.tolist()


def test_picture_says_what_it_shows():
    soup = picture(Letters(text="cfac", off=[[0, 1], [1, 1]]))
    said = part(soup, "explanation")
    assert "looks at f (0." in said and said.endswith("Right.")
    assert [box.has_attr("checked") for box in soup.select("[name=head]")] == [1, 0, 1, 0]
    assert not soup.select("[data-part=lines_2] .second")  # a head that is off draws no line
    assert "No head of layer 2 is on." in part(picture(Letters(text="a", off=HEADS)), "explanation")
    wrong = picture(Letters(text="cfakdcgbfaec", off=[[0, 0]]))
    assert part(wrong, "explanation").endswith("after the last c came g.")


def test_every_set_of_heads_has_its_place_on_the_board():
    places = set()
    for off in ([], HEADS[:1], HEADS[1:3], HEADS):
        [pressed] = picture(Letters(off=off)).select(".board [aria-pressed=true]")
        places.add(pressed["aria-label"])
    assert len(places) == 4


@pytest.mark.parametrize(("layer", "head"), [(0, 1), (1, 0)])
def test_the_microscope_shows_how_a_weight_comes_about(layer, head):
    made = Letters(text="cfacgb", off=[[0, 1]])
    lens = {"scores": {}, "lensed": [layer, head]}
    [weight] = texts(picture(made, lens=[4, 3], **lens), "[data-part=lens] .lens-head .weight")
    assert float(weight) == pytest.approx(made.weights[layer, head, 4, 3], abs=1e-6)
    assert "may not attend to" in drawn(made, lens=[3, 4], **lens)
