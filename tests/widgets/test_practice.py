"""Predict, Quiz and Progress: what they refuse, how they judge, what they show."""

import copy
import json
import math

import numpy as np
import pytest

from attnlib.widgets import Guess, Predict, Progress, Quiz
from tests.widgets.pictures import drawn, js, picture
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


def guess(**more):
    given = {"choices": CHOICES, "right": "to money", "plays": "plane.sentence=money", "key": KEY}
    return Guess("Where will bank go?", **given | more)


MAKE = {
    "predict": lambda: Predict("What is A?", ANSWER, mistakes=MISTAKES, key=KEY),
    "guess": guess,
    "quiz": lambda: Quiz(QUESTIONS, key="chai-quiz"),
    "progress": lambda: Progress({"3. Chai piyo": {KEY: 1, "chai-quiz": 2}}),
}
every_widget = pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)


def test_a_last_digit_changes_nothing_that_is_shown():
    one = Predict("A?", 0.1 + 0.2, mistakes={"you added": 3 * 1.1}, key=KEY)
    other = Predict("A?", 0.3, mistakes={"you added": 3.3}, key=KEY)
    assert repr(one) == repr(other) and drawn(one) == drawn(other)


def test_without_javascript_the_answer_unfolds():
    predict = Predict("A?", ANSWER, explanation="e^2√2 = 16.9.", unit="of 1", key=KEY)
    [details] = picture(predict)("details")
    assert not details.has_attr("open")
    assert "A₁₁ = 0.055807 of 1, A₁₂ = 0.944193 of 1. e^2√2 = 16.9." in details.get_text()
    first, _ = picture(MAKE["quiz"]())("details")
    assert "They ask: right. A row belongs to a query." in first.get_text()


@every_widget
def test_what_waits_out_of_sight_is_out_of_hearing_too(make):
    for line in picture(make()).select(".ghost:not([data-part])"):
        assert line["aria-hidden"] == "true"


# ------------------------------------------------------------------------------------ Predict


@pytest.mark.parametrize(
    ("answer", "written"),
    [(2, "2"), (-0.0, "0"), (1048576, "1048576"), (1e-7, "1e-7"), (16.9188286, "16.918829")],
)
def test_numbers_are_written_as_people_write_them(answer, written):
    assert picture(Predict("?", answer, key=KEY)).details.b.get_text() == f"{written}."


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
    assert diagnosed(MAKE["predict"](), typed) == (wrong, mistake)


def diagnosed(widget, typed):
    found = js(widget, "diagnose(state.typed, state)", typed=typed)
    return found["wrong"], found["mistake"]


@pytest.mark.parametrize(("answer", "reach"), [(0.0, 0.0015), (0.1, 0.0015), (2.0, 0.01)])
def test_tolerance_is_half_a_percent_or_0_0015(answer, reach):
    widget = Predict("?", answer, key=KEY)
    assert diagnosed(widget, [answer + 0.99 * reach])[0] == []
    assert diagnosed(widget, [answer + 1.01 * reach])[0] == [0]
    assert diagnosed(Predict("?", 100, key=KEY), [99.5])[0] == []  # half a percent of the answer
    assert diagnosed(Predict("?", 3, tolerance=0.25, key=KEY), [3.25])[0] == []


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
    widget = Predict("?", answer, key=KEY)
    number = js(widget, f"parse({json.dumps(typed)})")
    assert (diagnosed(widget, [number])[0] == []) == right
    exact = Predict("?", answer, tolerance=1e-4, key=KEY)
    assert diagnosed(exact, [round(answer, 2)])[0] == [0]


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
    soup = picture(Predict("?", answer, labels=labels, key=KEY, **more))
    assert [each.get_text() for each in soup.select("label .digits")] == said


def test_blanks_stand_inside_the_worked_line_and_revealing_shows_the_sum():
    answer = {"share": 0.867, "output": 1.851}
    line = "0.117 · 1 + {share} · 2\n= {output}"
    widget = Predict("How much?", answer, worked=line, key=KEY)
    soup = picture(widget)
    assert [field["aria-label"] for field in soup.select(".worked input")] == [
        "share, 2 decimals",
        "output, 2 decimals",
    ]
    assert soup.select_one(".worked").find("br") and not soup.select(".fields")
    said = soup.details.b.get_text()
    assert said.replace("\u00a0", " ") == "0.117 · 1 + 0.867 · 2= 1.851"
    assert "0.117\u00a0·\u00a01 + " in said  # no line ends in a product
    for wrong in ("no blank", "{share}", "{share} {output} {more}", "{share} {share}"):
        with pytest.raises(ValueError, match="worked needs each of"):
            Predict("How much?", answer, worked=wrong, key=KEY)


def test_of_two_mistakes_alike_in_one_field_neither_is_named_there():
    mistakes = {"you took one": [3.0, 1.0], "you took the other": [3.0, 2.0]}
    widget = Predict("?", {"a": 1.0, "b": 2.0}, mistakes=mistakes, key=KEY)
    assert diagnosed(widget, [3, 1]) == ([0, 1], "you took one")
    assert diagnosed(widget, [3, 2]) == ([0], "you took the other")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"answer": math.nan}, "answer needs finite numbers; got"),
        ({"answer": "chai"}, "answer needs numbers; got 'chai'"),
        ({"answer": []}, "answer needs 1 to 12 numbers; got 0"),
        ({"answer": {str(i): i for i in range(13)}}, "answer needs 1 to 12 numbers; got 13"),
        ({"answer": [1, 2]}, "answer needs 2 labels, each its own; got None"),
        ({"answer": [1, 2], "labels": ["a", "a"]}, "answer needs 2 labels"),
        ({"answer": {"a": 1, " ": 2}}, "answer needs 2 labels"),
        ({"mistakes": {"m": [1, 2]}}, "mistake 'm' needs 1 numbers; got 2"),
        ({"mistakes": {"m": math.inf}}, "mistake 'm' needs finite numbers"),
        ({"mistakes": {"m": 0.501}}, r"'m' gives \[0.501\], which cannot be told from the answer"),
        ({"mistakes": {"m": 2, "k": 2.01}}, r"'k' gives \[2.01\], which cannot be told from m"),
        ({"tolerance": -1}, "tolerance needs one or two numbers, not negative; got -1"),
        ({"tolerance": (0, 0)}, "tolerance needs one or two numbers"),
        (
            {"key": "Chai Piyo"},
            "key needs small letters, digits and single dashes; got 'Chai Piyo'",
        ),
        ({"key": "chai-"}, "key needs small letters"),
        ({"key": "chai\n"}, "key needs small letters"),
    ],
)
def test_predict_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        Predict("?", **{"answer": 0.5, "key": KEY, **arguments})


def test_predict_takes_arrays():
    A = np.array([0.25, 0.75])
    widget = Predict("?", A, labels=["a", "b"], mistakes={"m": A[::-1]}, key=KEY)
    assert widget.answer == [0.25, 0.75] and widget.mistakes == {"m": [0.75, 0.25]}
    with pytest.raises(ValueError, match="typed needs 2 numbers; got 1"):
        widget.typed = [1]


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
    assert js(MAKE["predict"](), f"parse({json.dumps(text)})") == number


# --------------------------------------------------------------------------------------- Quiz


def changed(path, value):
    """The questions with one thing changed, or taken away."""
    questions = copy.deepcopy(QUESTIONS)
    *way, last = path
    place = questions
    for step in way:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return questions


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((0, "options", 1, "why"), None, "question 1, option 2 needs why; got"),
        ((1, "options", 0, "why"), "", "question 2, option 1 needs why; got"),
        ((1, "options", 0, "why"), "  ", "question 2, option 1 needs why; got"),
        ((0, "options", 0, "right"), True, "question 1 needs exactly one right option; got 2"),
        ((1, "options", 0, "right"), False, "question 2 needs exactly one right option; got 0"),
        ((0, "options", 0), None, "question 1 needs at least two options; got 1"),
        ((0, "options"), None, "question 1 needs options; got"),
        ((1, "text"), None, "question 2 needs text; got"),
        ((1, "hint"), "h", "question 2 takes options, text; got hint"),
        ((1, "options", 1, "text"), "1", "question 2 has the same option twice"),
    ],
)
def test_quiz_refuses(path, value, message):
    with pytest.raises(ValueError, match=message):
        Quiz(changed(path, value), key="q")


def test_quiz_counts_and_keeps_the_order_of_its_options():
    for questions, key, message in (
        ([], "q", "at least one question"),
        (["x"], "q", "question 1 needs options, text; got 'x'"),
        (QUESTIONS, "Q", "key needs small letters"),
    ):
        with pytest.raises(ValueError, match=message):
            Quiz(questions, key=key)
    with pytest.raises(ValueError, match=r"needs attnlib/.*none[.]toml: write it"):
        Quiz.for_chapter("none")
    quiz = Quiz(QUESTIONS, key="q")
    for chosen, right in (([-1, -1], 0), ([1, 2], 1), ([1, 0], 2)):
        quiz.chosen = chosen
        score = picture(quiz).select_one("[data-part=score]")
        assert score.get_text() == f"{right} of 2 right."
    for chosen in ([0], [0, 3], [-2, 0]):
        with pytest.raises(ValueError, match="chosen needs an option, or -1, for each question"):
            quiz.chosen = chosen
    labels = [label.get_text() for label in picture(quiz).select("label")]
    assert labels == ["They answer", "They ask", "1", "d_k", "n"]


# -------------------------------------------------------------------------------------- Guess


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"choices": {"a": "b"}}, "a guess needs two to five choices, each its own; got"),
        ({"choices": dict.fromkeys("abcdef", "x")}, "a guess needs two to five choices"),
        ({"choices": [["a", "x"], ["a", "y"]]}, "a guess needs two to five choices"),
        ({"choices": {"a": "x", "b": " "}}, "each choice needs words and a reply; got 'b' without"),
        ({"right": "to sea"}, r"right needs one of \['to boat', 'to money'\]; got 'to sea'"),
        ({"plays": "sentence=money"}, "plays needs settings such as plane.sentence=money; got"),
        ({"plays": "plane.sentence"}, "plays needs settings"),
        ({"key": "Bank"}, "key needs small letters"),
        ({"chosen": "to sea"}, "chosen needs one of"),
    ],
)
def test_guess_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        guess(**arguments)


def test_a_choice_brings_its_reply_and_keeps_its_order():
    soup = picture(guess(chosen="to boat"))
    pressed = {button["value"]: button["aria-pressed"] for button in soup.select("button")}
    assert list(pressed.items()) == [("to boat", "true"), ("to money", "false")]
    said = soup.select_one("[data-part=reply]").get_text()
    assert said == "Not this one. As long as boat is there."
    assert picture(guess(chosen="to money")).select_one(".right").get_text() == "to money"


# ----------------------------------------------------------------------------------- Progress


@pytest.mark.parametrize(
    ("chapters", "message"),
    [
        ({}, "chapters needs titles, each with keys"),
        ([1], "chapters needs titles, each with keys"),
        ({"One": "k"}, "chapters needs titles, each with keys"),
        ({"One": {}}, "chapters needs titles, each with keys"),
        ({"One": {"Key": 1}}, "key needs small letters"),
        ({"One": {"k": 1}, "Two": {"k": 2}}, "each key belongs to one chapter; twice: k"),
        ({"One": {"k": 0}}, "k needs a whole number of questions from 1; got 0"),
        ({"One": {"k": True}}, "k needs a whole number of questions from 1; got True"),
    ],
)
def test_progress_refuses(chapters, message):
    with pytest.raises(ValueError, match=message):
        Progress(chapters)


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
