# ruff: noqa: N803 -- Q, K and V as in the formula
"""Checkers: wrong solutions get the message that fits, right ones pass.

`solutions.txt` holds solutions as learners write them; most were written from the exercises alone,
before anyone had looked at what the checkers know. A second set of tests asks the checkers
themselves: each planned mistake must be named by its own words, and no two may give the same
results.

In `solutions.txt` a section `== checker(parameters)` holds right solutions (`+`) and wrong ones
(`-`, with the start of what must be said). What follows on the line is returned; lines below are
the body. `~3: text` stands for the section's first solution with another line 3, without text for
that solution without the line, and `~3+ text` adds one after it.
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
from attnlib import check, relative_position_bias, scaled_dot_product_attention, softmax
from attnlib.check import Checker, Verdict, attempts
from attnlib.check.advice import OVERFLOW
from attnlib.check.attempts import Crash, parts, same

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


# Unsolved, broken and odd


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


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("softmax", "scores (3, 5)"),
        ("causal_mask", "n_q = 5 and n_k = 5"),
        ("padding_mask", "lengths [2, 5, 4] and n_k = 7"),
        ("leak_test", "an attention function"),
        ("mean_cross_entropy", "a model function, sentence = [3, 1, 4, 1, 5] and start = 6"),
    ],
)
def test_inputs_are_described_by_their_shape_or_value(name, given):
    assert repr(verdict(name, "{}['key']")).endswith(f"when given {given}.")


def test_errors_keep_their_words_but_no_address():
    def stubborn(scores):
        raise ValueError(f"no good: {object()}")

    verdict = check.softmax(stubborn)
    assert "ValueError: no good: <object object at 0x...>" in repr(verdict)
    assert repr(check.softmax(stubborn)) == repr(verdict)


def test_an_error_that_cannot_be_printed():
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError

    def mute(scores):
        raise MuteError

    assert "Mute" in repr(check.softmax(mute))


def test_lambdas_and_objects_have_no_name():
    assert repr(check.softmax(lambda scores: 1 / 0)).startswith("your function raised Zero")

    class Soft:
        def __call__(self, scores):
            return softmax(scores)

    assert check.softmax(Soft())


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
    said = check.softmax(lambda scores: print(softmax(scores)))
    assert not said and "prints its result but returns None: end it with `return`" in repr(said)
    assert capsys.readouterr() == ("", "")


def test_a_missing_return_is_not_an_empty_function():
    said = check.causal_mask(lambda n_q, n_k: np.tri(n_q, n_k) > 0 if n_q == n_k else None)
    assert repr(said) == (
        "your function returns None for n_q = 3, n_k = 7: a `return` is missing on the way that "
        "these inputs take."
    )


def test_a_comma_too_many_is_named():
    comma = "The comma after what you return makes a tuple of it. Return the"
    said = check.softmax(lambda scores: (softmax(scores),))
    assert repr(said) == f"{comma} weights without a comma at the end."
    assert repr(check.leak_test(lambda attention: (True,))).startswith(f"{comma} answer without")


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


def test_several_arrays_are_not_one():
    said = check.softmax(lambda scores: (softmax(scores), scores))
    assert not said and repr(said) == (
        "Return the weights only, as one array of shape (3, 5). You returned a tuple of 2 arrays."
    )


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


def test_a_list_that_a_learner_changes():
    def popping(model, sentence, start):
        loss = check.mean_cross_entropy.right(model, sentence, start)
        sentence.append(0)
        return float(loss)

    assert "changes its input sentence in place" in repr(check.mean_cross_entropy(popping))


def test_numbers_that_look_alike_get_more_digits():
    said = check.scaled_scores(lambda Q, K: Q @ K.T / math.sqrt(Q.shape[1]) * (1 + 1e-6))
    expected, got = re.search(r"expected (\S+), got (\S+)\.$", repr(said)).groups()
    assert expected != got and float(got) == pytest.approx(float(expected), rel=1e-5)


def test_results_of_three_axes_are_judged():
    three = Checker("", softmax, {"weights": "x"}, {"a batch": (np.ones((2, 3, 5)),)}, [])
    said = three(lambda x: 2 * softmax(x))
    assert not said and "each entry of your weights is 2 times" in repr(said)


def test_a_checker_needs_cases():
    with pytest.raises(ValueError, match="needs cases and returns; got 0 and 1"):
        Checker("", len, {"length": "of it"}, {}, [])


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


def test_an_overflow_is_mentioned():
    cell = "    P = np.exp(scores)\n    return P / P.sum(axis=1, keepdims=True) + 0 * P.max()"
    assert repr(verdict("softmax", cell)).endswith(
        "there is NaN in your weights, first in row 0, column 0 (counted from 0). "
        "An exponential overflowed on the way."
    )


def test_a_result_that_changes_later_is_kept():
    buffer = np.empty((3, 5))

    def lazy(scores):
        if scores.shape != buffer.shape:
            return softmax(scores)
        buffer[...] = softmax(scores)
        return buffer.astype(scores.dtype, copy=False)

    assert check.softmax(lazy)


def test_verdicts_are_values():
    assert Verdict(True, "Right.") == Verdict(True, "Right.")
    assert bool(Verdict(True, "Right.")) and not Verdict(False, "No.")
    assert f"{Verdict(False, 'No.')}" == "No."


# The checkers themselves


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


def gap(result, wanted):
    """Return the largest difference of two results: 1 where they cannot be compared."""
    pairs = [*zip(parts(result), parts(wanted), strict=False)]
    if len(parts(result)) != len(parts(wanted)) or any(
        isinstance(part, Crash) or part.shape != target.shape for part, target in pairs
    ):
        return 1
    with np.errstate(all="ignore"):
        return max(np.nan_to_num(abs(part * 1.0 - target), nan=1).max() for part, target in pairs)


@every_checker
def test_mistakes_are_far_from_right(name):
    checker = getattr(check, name)
    for words, mistake in checker.wrong_answers():
        gaps = map(gap, answers(checker, mistake), answers(checker))
        assert max(gaps) > 0.05, words  # no tolerance could let it pass


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
WEIGHTS = {
    "weighted_average": lambda x: softmax(np.outer(x, x)),
    "softmax": softmax,
    "attention_for_one_query": lambda q, K, V: softmax((K @ q / math.sqrt(len(q)))[None]),
    "attention": lambda Q, K, V: scaled_dot_product_attention(Q, K, V)[1],
    "scaled_scores": lambda Q, K: softmax(Q @ K.T / math.sqrt(Q.shape[1])),
    "masked_softmax": lambda S, mask: softmax(np.where(mask, S, -np.inf)),
    "relative_bias": lambda S, table: softmax(S + relative_position_bias(table[None], *S.shape)[0]),
    "cross_attention": lambda X, M, W_Q, W_K, W_V: softmax(
        X @ W_Q @ (M @ W_K).T / math.sqrt(W_K.shape[1])
    ),
    "cached_attention": lambda X, keys, values, W_Q, W_K, W_V: scaled_dot_product_attention(
        X @ W_Q,
        K := np.vstack([keys, X @ W_K]),
        K,
        np.tri(len(X), len(K), len(keys)) > 0,
    )[1],
    "online_softmax": lambda s, V, block: softmax(s[None]),
    "softmax_backward": lambda A, dA: A,
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_plain_inputs_do_not_saturate_softmax(name):
    plain, second = [*getattr(check, name).cases.values()][:2]
    for inputs in (plain, second):
        weights = WEIGHTS[name](*inputs)
        weights = weights[weights.sum(axis=1) > 0]
        assert weights.max() < 0.9
        entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(axis=1)
        most = np.log((weights > 0).sum(axis=1))
        assert (entropy / most).min() > 0.3 and (entropy / most).mean() > 0.6


def is_prime(n):
    return n > 1 and all(n % divisor for divisor in range(2, n))


@every_checker
def test_sizes_are_distinct_primes(name):
    plain, second, *_ = getattr(check, name).cases.values()
    if name == "causal_mask":
        plain = second  # its first inputs are square, as self-attention is
    sizes = {
        "weighted_average": lambda x: x.shape,
        "attention_for_one_query": lambda q, K, V: (*K.shape, V.shape[1]),
        "attention": lambda Q, K, V: (len(Q), *K.shape, V.shape[1]),
        "scaled_scores": lambda Q, K: (len(Q), *K.shape),
        "padding_mask": lambda lengths, n_k: (len(lengths), n_k),
        "causal_mask": lambda n_q, n_k: (n_q, n_k),
        "leak_test": lambda attention: (5, 7, 3),
        "split_heads": lambda x, n_heads: (n_heads, len(x), x.shape[1] // n_heads),
        "sinusoidal_positions": lambda n, d_model: (n, d_model // 2),  # d_model is even
        "relative_bias": lambda S, table: (*S.shape, len(table)),
        "rotary": lambda x, positions: (len(x), x.shape[1] // 2),  # d is even
        "cross_attention": lambda X, M, W_Q, W_K, W_V: (
            *X.shape,
            *M.shape,
            W_K.shape[1],
            W_V.shape[1],
        ),
        "cached_attention": lambda X, keys, values, *_: (*X.shape, *keys.shape, values.shape[1]),
        "online_softmax": lambda s, V, block: (*V.shape, block),
        "merge_parts": lambda m_1, l_1, o_1, *_: o_1.shape,
        "count_pages": lambda lengths, shared, size: (len(lengths), shared, size),
        "mean_cross_entropy": lambda model, sentence, start: (len(sentence), model([0]).shape[1]),
        "sample_tokens": lambda logits, temperature, draws: (len(logits), len(draws)),
        "top_k": lambda probabilities, k: (len(probabilities), k),
        "write_with_cache": lambda model, tokens, n: (len(tokens), n, len(model.table)),
        "grouped_attention": lambda queries, keys, values: (
            len(queries) // len(keys),
            *keys.shape,
            queries.shape[1],
            values.shape[2],
        ),
    }.get(name, lambda scores, *_: scores.shape)(*plain)
    assert len(set(sizes)) == len(sizes) and all(map(is_prime, sizes))


def test_the_masks_of_masked_softmax_block_and_let_through():
    (_, mask), (_, empty), *_ = check.masked_softmax.cases.values()
    assert (2 <= mask.sum(axis=1)).all() and (mask.sum(axis=1) < 7).any()
    assert (mask.sum(axis=0) < 5).any()
    assert not empty[2].any() and empty.any(axis=1).sum() == 4


def test_numbers_name_their_place():
    (x, _), *_ = check.split_heads.cases.values()
    (heads,), *_ = check.merge_heads.cases.values()
    assert x[2, 13] == 213 and len(np.unique(x)) == x.size
    assert np.array_equal(np.hstack(heads), x)


def test_offsets_leave_the_table_and_stay_within_it():
    reach = [
        (1 - len(S), S.shape[1] - 1, len(table) // 2)
        for S, table in check.relative_bias.cases.values()
    ]
    within, beyond, before, *_ = reach
    assert -within[2] <= within[0] and within[1] <= within[2]
    assert beyond[0] < -beyond[2] and beyond[2] < beyond[1]
    # Without a clip these indices are valid: they come round, and no error tells.
    assert -2 * before[2] - 1 <= before[0] + before[2] < 0 and before[1] <= before[2]


def test_epsilon_counts_in_rows_of_small_spread():
    x, gamma, beta = check.layer_norm.cases["rows of small spread"]
    assert (x.var(axis=1) < 1e-5).all()
    right = check.layer_norm.right(x, gamma, beta)
    outside = gamma * (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5) + beta
    assert np.abs(outside - right).max() > 1


def test_the_maximum_of_online_softmax_rises_and_stays():
    s, _, block = check.online_softmax.cases["seven keys in blocks of 2"]
    largest = [s[i : i + block].max() for i in range(0, len(s), block)]
    running = np.maximum.accumulate(largest)
    assert len(s) % block and len(set(running)) > 1 and (largest < running).any()


def test_the_attention_functions_leak_as_they_say():
    leaks = dict(zip(check.leak_test.cases, answers(check.leak_test), strict=True))
    assert [name for name, leak in leaks.items() if not leak] == [
        "causal attention",
        "an attention whose output is always zero",
        "an attention that gives each token its own value",
        "an attention that gives each token the value before it",
    ]
    assert len(leaks) == 22


def test_a_checker_is_only_a_list():
    """A new checker is a right answer, the name of its result, inputs and mistakes."""
    double = Checker(
        "Check the double of a number.",
        right=lambda number: 2 * number,
        returns={"double": "one number"},
        cases={"three": (np.array([3.0]),)},
        mistakes=["You squared it.", lambda number: number**2],
    )
    assert double(lambda number: number + number)
    assert repr(double(lambda number: number * number)) == "You squared it."
    assert "expected 6, got 5" in repr(double(lambda number: number + 2))
    assert double.__doc__ == "Check the double of a number."
