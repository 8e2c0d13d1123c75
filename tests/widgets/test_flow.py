"""Flow: its numbers against attnlib, what it says about each of them, its errors."""

import math
import re

import numpy as np
import pytest

import attnlib
from attnlib.widgets import Flow
from attnlib.widgets.flow import stages
from tests.widgets.pictures import close, js, picture, run, texts
from tests.widgets.samples import every

# The numbers of the course, as its chapters print them.
CHAI = [[0.111614, 1.888386], [1.888386, 0.111614]]
LAYER = [[-0.1374, 0.9183, -0.2891, -1.6482, 1.1565], [0.9183, -0.1374, -1.6482, -0.2891, 1.1565]]
SHARES = [[0.672, 0.019, 0.309], [0.019, 0.672, 0.309], [0.212, 0.212, 0.576]]


def test_chai_piyo():
    flow = Flow()
    assert flow.Q.tolist() == flow.V.tolist() == [[2, 0], [0, 2]]
    assert flow.K.tolist() == [[0, 2], [2, 0]]
    assert flow.scores.tolist() == [[0, 4], [4, 0]]
    assert flow.weights.round(6).tolist() == [[0.055807, 0.944193], [0.944193, 0.055807]]
    assert flow.output.round(6).tolist() == CHAI
    line = js(flow, 'inWords(state, "G.0.1")')["lines"]
    said = ["".join(piece["text"] for piece in part["pieces"]) for part in line]
    assert said == [
        "2·2 + 0·0 = 4",
        "4 ÷ √2 = 2.828427",
        "e^2.828427 = 16.918829",
        "16.918829 ÷ (1 + 16.918829) = 0.944193",
    ]


def test_two_heads_the_layer_and_the_words_that_are_written():
    two = Flow.two_heads()
    assert two.output.round(3).tolist() == [[-1.777, 1.777, 2, 2], [1.777, -1.777, 2, 2]]
    close(Flow.encoder_layer().layer_output, LAYER, 1e-4)
    writing = Flow.writing()
    assert writing.output[:2].round(6).tolist() == CHAI and writing.output[2].tolist() == [1, 1]
    assert writing.shares.round(3).tolist() == SHARES
    written = [writing.vocabulary[word] for word in writing.shares.argmax(axis=1)]
    assert written == ["drink", "tea", "<end>"]


def test_the_layer_is_that_of_attnlib():
    flow = Flow.encoder_layer(mask="causal")
    names = ("w_q", "w_k", "w_v", "w_o", "w_1", "b_1", "w_2", "b_2")
    *of_attention, w_1, b_1, w_2, b_2 = (np.array(getattr(flow, name), float) for name in names)
    layer = attnlib.EncoderLayer(
        attention=attnlib.MultiHeadAttention(*of_attention, n_heads=1),
        feed_forward=attnlib.FeedForward(w_1, b_1, w_2, b_2),
        norm_1=attnlib.LayerNorm(),
        norm_2=attnlib.LayerNorm(),
    )
    expected, weights = layer(np.array(flow.x), attnlib.causal_mask(2))
    close(flow.layer_output, expected, 1e-12)
    close(flow.weights, weights[0], 1e-12)


@every(Flow, examples=20)
def test_javascript_and_copied_code_compute_what_attnlib_computes(flow):
    found = js(flow, "compute(state)")
    heads = found["heads"]
    last = found.get("N2", found.get("O", found["Z"]))
    for name, there, expected in (
        ("scores", [head["S"] for head in heads], flow.scores),
        ("weights", [head["A"] for head in heads], flow.weights),
        ("output", found.get("O", found["Z"]), flow.output),
        ("layer_output", last, flow.layer_output),
        ("shares", found.get("P"), flow.shares),
    ):
        if expected is not None:
            expected = expected.reshape(np.shape(there))  # one head has no axis of its own
            np.testing.assert_allclose(there, expected, rtol=1e-9, atol=1e-9, err_msg=name)
    names = run(js(flow, "code(state)"))
    weights = flow.weights.reshape(names["A"].shape)
    close(names["A"], weights)
    close(names["Z"], flow.layer_output)
    if flow.vocabulary:
        close(names["P"], flow.shares)


@every(Flow, examples=20)
def test_what_is_written_gives_what_it_says(flow):
    """Each sum under a cell, calculated; and its products add up to the score or the number."""
    for told in js(flow, "cells(state).map(name => widget.inWords(state, name))"):
        for line in told["lines"]:
            text = "".join(piece["text"] for piece in line["pieces"])
            written = re.fullmatch(r"(.*[·÷+].*) = (\S+)", text)
            if not written or set("∞^") & set(text):
                continue
            left, right = (part.replace("−", "-") for part in written.groups())
            left = re.sub(r"√(\d+)", r"math.sqrt(\1)", left).replace("mean ", "")
            value = eval(left.replace("·", "*").replace("÷", "/"), {"math": math, "max": max})
            assert value == pytest.approx(float(right), abs=0.01 * (1 + abs(value))), text
        if told["terms"] and told["id"] in "QKVZO":
            total = sum(term["product"] for term in told["terms"])
            assert total == pytest.approx(told["value"], abs=1e-9)


@every(Flow, examples=7)
def test_no_number_stands_there_before_its_stage(flow):
    order = stages(flow.state)
    for stage in (order[0], flow.stage):
        flow.stage = stage
        soup = picture(flow, sheet="lies")
        reached = {name.split(".")[0] for name in js(flow, "cells(state)")}
        assert ("G" in reached) == (order.index(stage) >= order.index("scores"))
        for way in (".lies", ".falls"):
            cells = soup.select(f"{way} [data-cell]")
            assert {cell["data-cell"].split(".")[0] for cell in cells} == reached | {"T"}
            # What is to come has its place and its name, until every matrix has been passed.
            passed = [each for each in order if each in ("qkv", "join", "think", "add2", "words")]
            waits = soup.select(f"{way} svg[data-part=river] .gate.waits")
            assert bool(waits) == (order.index(stage) < order.index(passed[-1]))


@every(Flow, examples=7)
def test_on_paper_and_without_a_script_stands_the_whole_river(flow):
    flow.stage = stages(flow.state)[0]
    made = js(flow, "compute(state)")
    alive = picture(flow, sheet="lies")
    before = picture(flow)
    sheets = (alive.select_one(".paper svg"), *before.select("svg.still"))
    assert len(sheets) == 3
    for sheet in sheets:
        assert not sheet.select("[data-cell], [data-gate], [tabindex], .waits")
        blocks = sheet.select("g[data-block]")
        cells = {block["data-block"]: len(block.select(".cell")) for block in blocks}
        assert cells["G"] == np.size(made["heads"][0]["A"]) and cells["Z"] == np.size(made["Z"])
        assert all(cells.values())


def test_the_word_with_the_largest_share_comes_out():
    soup = picture(Flow.writing())
    for way in (".lies", ".falls"):
        assert texts(soup, f"{way} [data-part=river] .next") == ["drink", "tea", "<end>"]


def test_the_model_that_writes_is_that_of_attnlib():
    model, known = attnlib.models.gpt_by_hand()
    flow = Flow.gpt()
    for text in ("tea not bad", "coffee good drink", "tea not bad drink tea"):
        tokens = [known.index(word) for word in text.split()]
        flow.tokens = text.split()
        close(flow.shares, attnlib.softmax(model(tokens)[-1:]), 1e-12)
        told = js(flow, "account(state)")
        for word, name in enumerate(flow.vocabulary):
            parts = attnlib.inspection.ledger(model, tokens, -1, word)[1]
            close([part[word] for part in told["parts"]], parts, 1e-9)
            assert parts.sum() == pytest.approx(told["logits"][word]), name
    # Before <end>, which has no row, and after it the picture is the same.
    ended = [*flow.tokens, "<end>"]
    assert js(flow, "compute(state)") == js(flow, "compute(state)", tokens=ended)


def test_each_part_that_is_taken_away_changes_the_word():
    account = picture(Flow.gpt(), sheet="falls").select_one(".account")
    assert account.select_one(".most th").text == "drink"
    assert account.select_one(".decides").text == "8"
    for name, probability in {"attention": 0.7, "residual": 0.2, "feed_forward": 0.99}.items():
        most = picture(Flow.gpt(**{name: False}), sheet="falls").select_one(".account .most")
        assert most.select_one("th").text == "leave"
        assert float(most.select_one(".chance").text) == probability


def test_the_network_folds_the_line_where_it_begins_to_work():
    flow = Flow.gpt()
    found = js(flow, "folds(state)")
    assert [found[name] for name in ("column", "at")] == [0, -1]
    assert (found["before"], found["after"]) == pytest.approx((-3, 1), abs=2e-3)
    flow.feed_forward = False
    assert "stays at −3." in picture(flow).select_one(".fold").text


def test_a_power_too_large_for_a_float_is_said():
    flow = Flow(x=np.full((2, 4), 100), w_q=np.full((4, 2), 100), w_k=np.eye(4, 2))
    lines = js(flow, 'inWords(state, "G.0.0")')["lines"]
    text = " ".join(piece["text"] for line in lines for piece in line["pieces"])
    assert "the row’s largest is subtracted first" in text and "∞" not in text
    assert picture(flow)
