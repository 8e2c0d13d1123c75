# ruff: noqa: N803 -- Q, K and V as in the formula
"""Checkers: wrong solutions get the message that fits, right ones pass.

`solutions.txt` holds solutions as learners write them; most were written from the exercises alone,
before anyone had looked at what the checkers know. A second set of tests asks the checkers
themselves: each planned mistake must be named by its own words, and no two may give the same
results.

In `solutions.txt` a section `== checker(parameters)` holds right solutions (`+`) and wrong ones
(`-`, with the start of what must be said). What follows on the line is returned; lines below are
the body. `~3: text` stands for the section's first solution with another line 3, without text for
that solution without the line, and `~3+ text` adds one after it. The last sections are those of
exercises without a checker (exercises.py).
"""

import functools
import itertools
import math
import re
import signal
import sys
import threading
import time
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import attnlib
from attnlib import check, scaled_dot_product_attention, softmax
from attnlib.check import Checker, attempts
from attnlib.check.advice import OVERFLOW
from attnlib.check.attempts import same

pytestmark = pytest.mark.filterwarnings("error")

CHECKERS = sorted({*check.__all__} - {"Checker", "Verdict", "runs_the_writer"})
every_checker = pytest.mark.parametrize("name", CHECKERS)


def edited(lines, edits):
    """Return the lines of a body after edits such as `~3: text`, `~3:` and `~3+ text`."""
    rows = [[line] for line in ("", *lines)]
    for edit in edits:
        number, what, text = re.fullmatch(r"~(\d+)([:+]) ?(.*)", edit).groups()
        if what == "+":
            rows[int(number)].append(text)
        else:
            rows[int(number)][:1] = [text]
    return [line for row in rows for line in row if line]


@functools.cache
def table():
    """Read solutions.txt: for each checker its parameters and (sign, words, body)s."""
    found = {}
    text = (Path(__file__).parent / "solutions.txt").read_text(encoding="utf-8")
    for section in re.split(r"^== ", text, flags=re.M)[1:]:
        head, *entries = re.split(r"\n(?=[+-])", section.strip("\n"))
        name, parameters = re.fullmatch(r"(\w+)\((.*)\)", head).groups()
        rows, first = [], None
        for entry in entries:
            start, *body = entry.split("\n")
            sign, start = start[0], start[2:]
            words, _, code = ("", "", start) if sign == "+" else start.partition(" | ")
            lines = [line.removeprefix("    ") for line in body] or [code]
            if lines[0].startswith("~") and lines[0][1].isdigit():
                lines = edited(first, lines)
            elif not body:
                lines = [f"return {code}"]
            first = first or lines
            rows.append((sign, words, "\n".join(f"    {line}" for line in lines)))
        found[name] = parameters, rows
    return found


def written(cell):
    """Run a learner's cell, and return the last thing it defines."""
    names = {"np": np, "math": math, "attnlib": attnlib}
    exec(cell, names)
    return list(names.values())[-1]


def solution(name, body):
    """Return a learner's function; a body that is not indented is what it returns."""
    parameters = table()[name][0]
    lines = body.strip("\n") if body.startswith((" ", "\n")) else f"    return {body}"
    return written(f"def solution({parameters}):\n{lines}")


def verdict(name, body):
    """What a checker says about a body."""
    return getattr(check, name)(solution(name, body))


@functools.cache
def verdicts(name, sign):
    """Return (what must be said, the body, what is said) of the right or the wrong solutions."""
    rows = [row for row in table()[name][1] if row[0] == sign]
    return [(words, body, verdict(name, body)) for _, words, body in rows]


@every_checker
def test_wrong_solutions_are_refused_with_the_message_that_fits(name):
    refused = verdicts(name, "-")
    assert len(refused) >= 30
    assert [
        (words, body, said)
        for words, body, said in refused
        if said or not words or words not in repr(said) or "\n" in repr(said)
    ] == []


@every_checker
def test_right_solutions_pass(name):
    passed = verdicts(name, "+")
    assert len(passed) >= 10
    assert [(body, said) for _, body, said in passed if not repr(said).startswith("Right")] == []


@every_checker
def test_verdicts_are_the_same_each_time(name):
    first = verdicts(name, "-")[::7]
    assert [repr(verdict(name, body)) for _, body, _ in first] == [repr(it) for *_, it in first]


@every_checker
def test_every_planned_mistake_is_one_that_learners_make(name):
    said = [repr(said) for *_, said in verdicts(name, "-")]
    planned = {words for words, _ in getattr(check, name).wrong_answers()}
    assert [words for words in planned if not any(words in line for line in said)] == []


@every_checker
def test_unsolved_cells_are_called_unsolved(name):
    for body in "    pass", "None", "...", "NotImplemented", "    raise NotImplementedError":
        said = verdict(name, body)
        assert not said and repr(said).startswith("Not solved yet: solution r"), body


@every_checker
def test_what_is_no_function_is_called_so(name):
    for thing in None, ..., NotImplemented:
        said = getattr(check, name)(thing)
        assert repr(said) == "Not solved yet: there is no function to check."
    said = getattr(check, name)(np.zeros((2, 3)))
    message = "Pass the function itself, without calling it; you passed ndarray."
    assert not said and repr(said) == message


ODD = [
    "1 / 0",
    "    import sys\n    sys.exit(1)",
    "    return solution(*locals().values())",
    "[1, [2, 3]]",
    "{}",
    "'text'",
    "np.array('text')",
    "np.array([None])",
    "np.float64(1)",
    "1j",
    "()",
    "(None, None)",
    "np.zeros((0, 0))",
    "type",
    "(i for i in range(3))",
    "    yield 1",
    "    raise BaseException('no good')",
    "    raise StopIteration",
    "    raise GeneratorExit",
    "np.array([object()])",
    "np.ma.masked_all(3)",
    """
    class Odd:
        def __array__(self): raise ValueError
        __eq__ = __bool__ = __len__ = __iter__ = __float__ = __array__
    return Odd()""",
    """
    class Odd(list):
        def __len__(self): raise BaseException
        __iter__ = __getitem__ = __eq__ = __array__ = __len__
    return Odd([1])""",
]


@every_checker
def test_nothing_that_a_learner_does_raises_or_prints(name, capsys):
    for body in ODD:
        said = verdict(name, body)
        assert isinstance(said, check.Verdict) and not said, body
        assert len(repr(said)) > 20 and "\n" not in repr(said), body
    assert capsys.readouterr() == ("", "")


@every_checker
def test_wrong_parameters_are_named(name):
    said = getattr(check, name)(written("def solution(): return 1"))
    assert not said and "solution raised TypeError: solution() takes 0 positional" in repr(said)


@every_checker
def test_errors_name_the_function_and_its_inputs(name):
    said = repr(verdict(name, "{}['key']"))
    assert said.startswith("solution raised KeyError: 'key' when given ")
    given = re.findall(r"\w+", said.partition("when given ")[2])
    assert [each for each in table()[name][0].split(", ") if each not in given] == []


class MuteError(Exception):
    """An error that cannot be printed."""

    def __str__(self):
        raise RuntimeError


def stubborn(scores):
    raise ValueError(f"no good: {object()}")


def mute(scores):
    raise MuteError


def popping(model, sentence, start):
    loss = check.mean_cross_entropy.right(model, sentence, start)
    sentence.append(0)
    return float(loss)


COMMA = "The comma after what you return makes a tuple of it. Return the"
THREE_AXES = Checker("", softmax, {"weights": "x"}, {"a batch": (np.ones((2, 3, 5)),)}, [])


@pytest.mark.parametrize(
    ("checker", "function", "words"),
    [
        (check.softmax, stubborn, "ValueError: no good: <object object at 0x...>"),
        (check.softmax, mute, "Mute"),
        (check.softmax, lambda scores: 1 / 0, "your function raised ZeroDivisionError: "),
        (check.softmax, lambda scores: {}["key"], "when given scores (3, 5)."),
        (check.causal_mask, lambda n_q, n_k: {}["key"], "when given n_q = 5 and n_k = 5."),
        (check.leak_test, lambda attention: {}["key"], "when given an attention function."),
        (check.padding_mask, lambda lengths, n_k: {}["key"],
         "when given lengths [2, 5, 4] and n_k = 7."),
        (check.mean_cross_entropy, lambda model, sentence, start: {}["key"],
         "when given a model function, sentence = [3, 1, 4, 1, 5] and start = 6."),
        (check.softmax, lambda scores: (softmax(scores),),
         f"{COMMA} weights without a comma at the end."),
        (check.leak_test, lambda attention: (True,), f"{COMMA} answer without"),
        (check.softmax, lambda scores: (softmax(scores), scores),
         "Return the weights only, as one array of shape (3, 5). You returned a tuple of 2 "
         "arrays."),
        (check.causal_mask, lambda n_q, n_k: np.tri(n_q, n_k) > 0 if n_q == n_k else None,
         "your function returns None for n_q = 3, n_k = 7: a `return` is missing on the way that "
         "these inputs take."),
        (check.softmax, lambda scores: softmax(scores) + 0 * np.exp(scores * 1e6).max(),
         "An exponential overflowed on the way."),
        (check.mean_cross_entropy, popping, "changes its input sentence in place"),
        (THREE_AXES, lambda x: 2 * softmax(x), "each entry of your weights is 2 times"),
        (check.softmax, lambda scores: print(softmax(scores)),
         "prints its result but returns None: end it with `return`"),
    ],
)  # fmt: skip
def test_what_went_wrong_is_said_in_these_words(checker, function, words, capsys):
    said = checker(function)
    assert not said and words in repr(said) and repr(checker(function)) == repr(said)
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_ends_the_check():
    calls = []

    def interrupted(scores):
        calls.append(scores)
        raise KeyboardInterrupt

    said = check.softmax(interrupted)
    assert repr(said) == "interrupted was interrupted when given scores (3, 5)." and len(calls) == 1


needs_signals = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no time limit here")


@needs_signals
@pytest.mark.parametrize("body", ["while True: pass", "for i in iter(int, 1): scores.sum()"])
def test_an_endless_loop_is_stopped(body, monkeypatch):
    monkeypatch.setattr(attempts, "SECONDS", 0.2)
    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    endless = written(f"def endless(scores):\n    try:\n        {body}\n    except Exception: pass")
    started = time.monotonic()
    said = check.softmax(endless)
    assert repr(said) == "endless was stopped after 0.2 seconds when given scores (3, 5)."
    assert time.monotonic() - started < 5  # once, not for each input
    # What rang before, as a test's own time limit may, rings again.
    assert signal.getsignal(signal.SIGALRM) == handler
    assert signal.getitimer(signal.ITIMER_REAL) == pytest.approx(timer, abs=5)


def test_without_signals_there_is_no_limit(monkeypatch):
    said = []
    thread = threading.Thread(target=lambda: said.append(check.softmax(softmax)))
    thread.start()
    thread.join()
    assert said[0]
    for signals in {}, {"SIGALRM": 14, "signal": lambda *handler: None}:  # on Windows, in a page
        monkeypatch.setattr(attempts, "signal", types.SimpleNamespace(**signals))
        assert check.softmax(softmax)


def test_what_a_learner_prints_is_not_shown(capsys):
    def chatty(scores):
        print(scores)
        print("careful", file=sys.stderr)
        return softmax(scores)

    said = check.softmax(chatty)
    assert said and "What your function prints is not shown here" in repr(said)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_or_tuple_of_numbers_is_an_array_with_a_remark(kind):
    remark = f" One remark: you returned a {kind.__name__}, which was read as an array."

    def numbers(array):
        return kind(array.tolist() if array.ndim == 1 else map(numbers, array))

    for said in (
        check.softmax(lambda scores: numbers(softmax(scores))),
        check.attention(lambda Q, K, V: (*map(numbers, scaled_dot_product_attention(Q, K, V)),)),
        check.online_softmax(lambda s, V, block: kind(check.online_softmax.right(s, V, block))),
    ):
        assert said and remark in repr(said)
    assert check.attention(lambda Q, K, V: [*scaled_dot_product_attention(Q, K, V)])
    assert check.softmax(functools.partial(softmax))  # an object that can be called


def test_an_object_that_fails_when_looked_at():
    class Shy:
        def __getattr__(self, name=None):
            raise BaseException

        def __call__(self, scores):
            return scores

    said = check.softmax(Shy())
    assert not said and "of your weights sums to" in repr(said)

    class Nameless(type):
        __name__ = property(Shy.__getattr__)

    thing = Nameless("Thing", (), {})()
    assert repr(check.softmax(thing)).endswith("without calling it; you passed Thing.")
    assert "of type Thing" in repr(check.softmax(lambda scores: thing))


def test_numbers_that_look_alike_get_more_digits():
    said = check.scaled_scores(lambda Q, K: Q @ K.T / math.sqrt(Q.shape[1]) * (1 + 1e-6))
    expected, got = re.search(r"expected (\S+), got (\S+)\.$", repr(said)).groups()
    assert expected != got and float(got) == pytest.approx(float(expected), rel=1e-5)


def test_warnings_are_not_leaked_and_settings_are_kept():
    def noisy(scores):
        warnings.warn("listen", stacklevel=1)
        np.seterr(all="raise")
        return softmax(scores)

    def naive(scores):
        return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)

    words = repr(check.softmax(naive))
    assert words == OVERFLOW
    with np.errstate(all="raise"):
        assert check.softmax(noisy)
        assert repr(check.softmax(naive)) == words
        assert set(np.geterr().values()) == {"raise"}


def test_a_result_that_changes_later_is_kept():
    buffer = np.empty((3, 5))

    def lazy(scores):
        if scores.shape != buffer.shape:
            return softmax(scores)
        buffer[...] = softmax(scores)
        return buffer.astype(scores.dtype, copy=False)

    assert check.softmax(lazy)


@functools.cache
def answers(checker, function=None):
    """Return what a function, or else the right answer, gives for each case."""
    function = function or checker.right
    return [checker.attempt(function, inputs).result for inputs in checker.cases.values()]


@every_checker
def test_each_planned_mistake_is_named_by_its_own_words(name):
    checker = getattr(check, name)
    for words, mistake in checker.wrong_answers():
        said = checker(mistake)
        assert not said and repr(said).endswith(words)


@every_checker
def test_no_two_mistakes_give_the_same_results(name):
    checker = getattr(check, name)
    tried = [(words, answers(checker, each)) for words, each in checker.wrong_answers()]
    tried.append(("Right", answers(checker)))
    for (words, results), (other_words, others) in itertools.combinations(tried, 2):
        if words != other_words:
            assert not all(map(same, results, others)), (words, other_words)


# Checkers whose functions take no floats, or return none.
WITHOUT_FLOATS = {
    *("causal_mask", "padding_mask", "leak_test", "mean_cross_entropy", "sinusoidal_positions"),
    *("count_pages", "merge_pair", "sample_tokens", "write_with_cache"),
}


@pytest.mark.parametrize("name", [name for name in CHECKERS if name not in WITHOUT_FLOATS])
def test_float64_from_float32_is_remarked_upon(name):
    right = getattr(check, name).right

    def is_float32(value):
        return isinstance(value, np.ndarray) and value.dtype == np.float32

    def wide(*inputs):
        return right(*(each.astype(float) if is_float32(each) else each for each in inputs))

    said = getattr(check, name)(wide)
    assert said and "float32 came in and float64 went out" in repr(said)


# The weights that the plain inputs of each checker lead to.
