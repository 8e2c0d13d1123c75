"""Predict, Quiz and Progress: what they refuse, how they judge, what they show."""

import json
import math

import numpy as np
import pytest

from attnlib.widgets import Guess, Predict, Progress, Quiz
from tests.widgets.pictures import drawn, js, part, picture, texts
from tests.widgets.samples import HOSTILE

KEY = "chai-weights"
ANSWER = {"A₁₁": 0.0558074580, "A₁₂": 0.9441925420}
MISTAKES = {
    "you did not divide by √d_k": [0.01798620996, 0.982013790],
    "Q and K are swapped.": [0.944192542, 0.055807458],
}
QUESTIONS = [
    {
        "text": "What do the rows of A do?",
        "options": [
            {"text": "They answer", "right": False, "why": "The columns answer."},
            {"text": "They ask", "right": True, "why": "A row belongs to a query."},
        ],
    },
    {
        "text": "What does a row of A sum to?",
        "options": [
            {"text": "1", "right": True, "why": "Softmax divides by the sum."},
            {"text": "d_k", "why": "d_k is the size of a key."},
            {"text": "n", "why": "That is the sum of all of A."},
        ],
    },
]
CHOICES = {"to boat": "As long as boat is there.", "to money": "It suits bank best."}


def predict(**more):
    return Predict(**{"question": "?", "answer": 0.5, "key": KEY} | more)


def quiz(**more):
    return Quiz(**{"questions": QUESTIONS, "key": "chai-quiz"} | more)


def guess(**more):
    given = {"choices": CHOICES, "right": "to money", "plays": "plane.sentence=money", "key": KEY}
    return Guess("Where will bank go?", **given | more)


def progress(chapters):
    return Progress(chapters)


def question(*options, **more):
    return {"text": "Which?", "options": list(options), **more}


RIGHT, WRONG = {"text": "This", "why": "It is.", "right": True}, {"text": "That", "why": "No."}
BOTH = {"text": "Both", "why": "Only this."}


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (predict, {"answer": math.nan}, "answer needs finite numbers; got"),
        (predict, {"answer": "chai"}, "answer needs numbers; got 'chai'"),
        (predict, {"answer": []}, "answer needs 1 to 12 numbers; got 0"),
        (predict, {"answer": {str(i): i for i in range(13)}}, "needs 1 to 12 numbers; got 13"),
        (predict, {"answer": [1, 2]}, "answer needs 2 labels, each its own; got None"),
        (predict, {"answer": [1, 2], "labels": ["a", "a"]}, "answer needs 2 labels"),
        (predict, {"answer": {"a": 1, " ": 2}}, "answer needs 2 labels"),
        (predict, {"mistakes": {"m": [1, 2]}}, "mistake 'm' needs 1 numbers; got 2"),
        (predict, {"mistakes": {"m": math.inf}}, "mistake 'm' needs finite numbers"),
        (predict, {"mistakes": {"m": 0.501}}, r"\[0.501\], which cannot be told from the answer"),
        (predict, {"mistakes": {"m": 2, "k": 2.01}}, r"'k' gives .2.01., which .* told from m"),
        (predict, {"tolerance": -1}, "tolerance needs one or two numbers, not negative; got -1"),
        (predict, {"tolerance": (0, 0)}, "tolerance needs one or two numbers"),
        (predict, {"key": "Chai P"}, "key needs small letters, digits and .* dashes; got 'Chai P'"),
        (predict, {"key": "chai-"}, "key needs small letters"),
        (predict, {"key": "chai\n"}, "key needs small letters"),
        (predict, {"answer": [0.5, 1], "labels": "ab", "typed": [1]}, "needs 2 numbers; got 1"),
        *(
            (predict, {"answer": {"a": 1, "b": 2}, "worked": line}, "worked needs each of")
            for line in ("no blank", "{a}", "{a} {b} {c}", "{a} {a}")
        ),
        (quiz, {"questions": []}, "at least one question"),
        (quiz, {"questions": ["x"]}, "question 1 needs options, text; got 'x'"),
        (quiz, {"key": "Q"}, "key needs small letters"),
        *(
            (quiz, {"chosen": chosen}, "chosen needs an option, or -1, for each question")
            for chosen in ([0], [0, 3], [-2, 0])
        ),
        *(
            (quiz, {"questions": [question(RIGHT, WRONG), wrong]}, f"question 2{message}")
            for wrong, message in (
                (question({"text": "This", "right": True}, WRONG), ", option 1 needs why; got"),
                (question(RIGHT, WRONG | {"why": " "}), ", option 2 needs why; got"),
                (question(RIGHT, WRONG | {"right": True}), " needs exactly one .*; got 2"),
                (question(WRONG, BOTH), " needs exactly one right option; got 0"),
                (question(RIGHT), " needs at least two options; got 1"),
                ({"text": "Which?"}, " needs options; got"),
                ({"options": [RIGHT, WRONG]}, " needs text; got"),
                (question(RIGHT, WRONG, hint="h"), " takes options, text; got hint"),
                (question(RIGHT, WRONG | {"text": "This"}), " has the same option twice"),
            )
        ),
        (guess, {"choices": {"a": "b"}}, "a guess needs two to five choices, each its own; got"),
        (guess, {"choices": dict.fromkeys("abcdef", "x")}, "a guess needs two to five choices"),
        (guess, {"choices": [["a", "x"], ["a", "y"]]}, "a guess needs two to five choices"),
        (guess, {"choices": {"a": "x", "b": " "}}, "needs words and a reply; got 'b' without"),
        (guess, {"right": "to sea"}, r"one of \['to boat', 'to money'\]; got 'to sea'"),
        (guess, {"plays": "sentence=money"}, "needs settings such as plane.sentence=money; got"),
        (guess, {"plays": "plane.sentence"}, "plays needs settings"),
        (guess, {"key": "Bank"}, "key needs small letters"),
        (guess, {"chosen": "to sea"}, "chosen needs one of"),
        *(
            (progress, {"chapters": chapters}, message)
            for chapters, message in (
                ({}, "chapters needs titles, each with keys"),
                ([1], "chapters needs titles, each with keys"),
                ({"One": "k"}, "chapters needs titles, each with keys"),
                ({"One": {}}, "chapters needs titles, each with keys"),
                ({"One": {"Key": 1}}, "key needs small letters"),
                ({"One": {"k": 1}, "Two": {"k": 2}}, "key belongs to one chapter; twice: k"),
                ({"One": {"k": 0}}, "k needs a whole number of questions from 1; got 0"),
                ({"One": {"k": True}}, "k needs a whole number of questions from 1; got True"),
            )
        ),
    ],
)
def test_what_does_not_fit_is_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_a_last_digit_changes_nothing_that_is_shown():
    one = predict(answer=0.1 + 0.2, mistakes={"you added": 3 * 1.1})
    other = predict(answer=0.3, mistakes={"you added": 3.3})
    assert repr(one) == repr(other) and drawn(one) == drawn(other)


def test_without_javascript_the_answer_unfolds():
    [details] = picture(predict(answer=ANSWER, explanation="e^2√2 = 16.9.", unit="GB"))("details")
    assert not details.has_attr("open")
    assert "A₁₁ = 0.055807 GB, A₁₂ = 0.944193 GB. e2√2 = 16.9." in details.get_text()
    first, _ = picture(quiz())("details")
    assert "They ask: right. A row belongs to a query." in first.get_text()


@pytest.mark.parametrize(
    ("answer", "written"),
    [(2, "2"), (-0.0, "0"), (1048576, "1048576"), (1e-7, "1e-7"), (16.9188286, "16.918829")],
)
def test_numbers_are_written_as_people_write_them(answer, written):
    assert picture(predict(answer=answer)).details.b.get_text() == f"{written}."


@pytest.mark.parametrize(
    ("typed", "wrong", "mistake"),
    [
        ([0.0559, 0.944], [], None),  # 1 / 17.9 and 16.9 / 17.9
        ([0.0180, 0.982], [0, 1], "you did not divide by √d_k"),
        ([0.944, 0.0559], [0, 1], "Q and K are swapped."),
        ([0.0559, 0.982], [1], "you did not divide by √d_k"),  # one field alone
        ([0.018, 0.0559], [0, 1], None),  # two mistakes at once are neither
        ([0.5, 0.5], [0, 1], None),
    ],
)
def test_diagnosis(typed, wrong, mistake):
    assert diagnosed(predict(answer=ANSWER, mistakes=MISTAKES), typed) == (wrong, mistake)


def diagnosed(widget, typed):
    found = js(widget, "diagnose(state.typed, state)", typed=typed)
    return found["wrong"], found["mistake"]


@pytest.mark.parametrize(
    ("answer", "tolerance", "reach"),
    [(0.0, (), 0.0015), (0.1, (), 0.0015), (2.0, (), 0.01), (100, (), 0.5), (3, 0.25, 0.25)],
)
def test_tolerance_is_half_a_percent_or_0_0015(answer, tolerance, reach):
    more = {"tolerance": tolerance} if tolerance else {}
    widget = predict(answer=answer, **more)
    assert diagnosed(widget, [answer + 0.99 * reach])[0] == []
    assert diagnosed(widget, [answer + 1.01 * reach])[0] == [0]


@pytest.mark.parametrize(
    ("answer", "typed", "right"),
    [
        (1 / 3, "0.33", True), (1 / 3, "33%", True), (1 / 3, "1/3", True), (1 / 3, "0,333", True),
        (1 / 3, "0.34", False), (1 / 3, "0.3", False), (1 / 3, "0.3301", False),
        (0.867, "0.87", True), (0.867, "0.86", False), (0.8645, "0.87", False),
        (0.056, "0.06", False), (1.851, "1.85", True),
    ],
)  # fmt: skip
def test_a_guess_of_two_decimals_is_right(answer, typed, right):
    number = js(predict(), f"parse({json.dumps(typed)})")
    assert (diagnosed(predict(answer=answer), [number])[0] == []) == right
    assert diagnosed(predict(answer=answer, tolerance=1e-4), [round(answer, 2)])[0] == [0]


@pytest.mark.parametrize(
    ("answer", "tolerance", "said"),
    [
        ([1 / 3], None, ["2 decimals"]), ([0.0558], None, ["3 decimals"]),
        ([16.918], None, ["1 decimal"]), ([3], None, ["whole number"]),
        ([2048.3], None, ["whole number"]), ([0.5], 1e-4, ["4 decimals"]),
        # A whole number among weights does not give itself away.
        ([1, 0.5, 0, 3], None, [*["2 decimals"] * 3, "whole number"]),
    ],
)  # fmt: skip
def test_a_blank_says_how_many_digits_it_wants(answer, tolerance, said):
    more = {"tolerance": tolerance} if tolerance else {}
    labels = [f"n{i}" for i in range(len(answer))]
    soup = picture(predict(answer=answer, labels=labels, **more))
    assert texts(soup, "label .digits") == said


def test_blanks_stand_inside_the_worked_line_and_revealing_shows_the_sum():
    line = "0.117 · 1 + {share} · 2\n= {output}"
    soup = picture(predict(answer={"share": 0.867, "output": 1.851}, worked=line))
    names = [field["aria-label"] for field in soup.select(".worked input")]
    assert names == ["share, 2 decimals", "output, 2 decimals"]
    assert soup.select_one(".worked").find("br") and not soup.select(".fields")
    said = "0.117\u00a0·\u00a01 + 0.867\u00a0·\u00a02= 1.851"  # no line ends in a product
    assert soup.details.b.get_text() == said


def test_of_two_mistakes_alike_in_one_field_neither_is_named_there():
    mistakes = {"you took one": [3.0, 1.0], "you took the other": [3.0, 2.0]}
    widget = predict(answer={"a": 1.0, "b": 2.0}, mistakes=mistakes)
    assert diagnosed(widget, [3, 1]) == ([0, 1], "you took one")
    assert diagnosed(widget, [3, 2]) == ([0], "you took the other")


def test_predict_takes_arrays():
    A = np.array([0.25, 0.75])
    widget = predict(answer=A, labels=["a", "b"], mistakes={"m": A[::-1]})
    assert widget.answer == [0.25, 0.75] and widget.mistakes == {"m": [0.75, 0.25]}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.5", 0.5), ("0,5", 0.5), (" .5 ", 0.5), ("5.", 5), ("+5", 5), ("-2", -2), ("− 2", -2),
        ("1/3", 1 / 3), ("-1 / 3", -1 / 3), ("0,5/2", 0.25), ("1e-3", 0.001), ("1 048", 1048),
        ("", None), ("  ", None), ("NaN", None), ("Infinity", None), ("1e999", None), ("1/0", None),
        ("0/0", None), ("1/2/3", None), ("1.2.3", None), ("1,048,576", None), ("chai", None),
        ("0x10", None), (HOSTILE, None), ("/", None), ("-", None), ("33%", 0.33), ("33,5 %", 0.335),
        ("%", None), ("1/4%", 0.0025), ("5%%", None),
    ],
)  # fmt: skip
def test_what_a_person_types_is_read_as_meant(text, number):
    assert js(predict(), f"parse({json.dumps(text)})") == number


def test_quiz_counts_and_keeps_the_order_of_its_options():
    with pytest.raises(ValueError, match=r"needs attnlib/.*none[.]toml: write it"):
        Quiz.for_chapter("none")
    for chosen, right in (([-1, -1], 0), ([1, 2], 1), ([1, 0], 2)):
        soup = picture(quiz(chosen=chosen))
        assert part(soup, "score") == f"{right} of 2 right."
    assert texts(soup, "label") == ["They answer", "They ask", "1", "dk", "n"]


def test_a_choice_brings_its_reply_and_keeps_its_order():
    soup = picture(guess(chosen="to boat"))
    pressed = {button["value"]: button["aria-pressed"] for button in soup.select("button")}
    assert list(pressed.items()) == [("to boat", "true"), ("to money", "false")]
    assert part(soup, "reply") == "Not this one. As long as boat is there."
    assert picture(guess(chosen="to money")).select_one(".right").get_text() == "to money"


@pytest.mark.parametrize(
    ("form", "said", "bars", "can_be_erased"),
    [("list", "1. One 0 of 3 2. Two 0 of 1", 2, True), ("bar", "0 of 4 questions right", 2, False),
     ("keep", "0 of 4 questions answered right.", 0, True)],
)  # fmt: skip
def test_progress_has_three_forms(form, said, bars, can_be_erased):
    soup = picture(Progress({"1. One": {"a": 1, "b": 2}, "2. Two": {"c": 1}}, form=form))
    assert said in soup.get_text(" ", strip=True)
    assert len(soup.select(".bar")) == bars
    assert bool(soup.select("[name=erase]")) == can_be_erased
