"""The world of stories: its probabilities are exact, and its text is good English."""

import math
import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.world import END, Reading, World, entropy, show, split
from tests.helpers import raises, steady

WORLD = World()
SMALL = World(
    """
    table name name | she: Ada | he: Ben, Leo
    table cargo thing | river: boat | money: gold
    table state bank | river: wet, steep | money: open
    table toy color | red, blue, big red
    form he pronoun | she -> she, he -> he
    rule story
      3 <bank>
      {A:name} met {B:name!A} . “ {A} and {B} , ” {B.he} said . {W=AB} and {V=AB} left .
      {o:toy} {q:toy} {o} <end>
    rule bank
      the {S:cargo} came to the bank . it was {:state@S} .
    rule end
      ?S never
      ?q .
    """.replace("\n    ", "\n")
)
STORIES = [WORLD.tell(random.Random(seed))[0] for seed in range(1200)]


def after(text, where=SMALL):
    """Return the reading of a text of words with spaces between."""
    reading = Reading(where)
    for word in text.split():
        reading.read(word)
    return reading


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the rule of weight 3 of 5; a name of three; a toy of three, two of which begin alike
        ("", {"the": 3 / 5, "Ada": 1 / 15, "Ben": 1 / 15, "Leo": 1 / 15}
         | {"red": 1 / 15, "blue": 1 / 15, "big": 1 / 15}),
        ("the", {"boat": 1 / 2, "gold": 1 / 2}),
        ("the boat came to the bank . it was", {"wet": 1 / 2, "steep": 1 / 2}),
        ("the gold came to the bank . it was", {"open": 1}),
        ("Ada met", {"Ben": 1 / 2, "Leo": 1 / 2}),  # he, because Ada is she
        ("Leo met", {"Ada": 1}),
        ("Ada met Leo . “ Ada and Leo , ”", {"he": 1}),
        ("Ada met Leo . “ Ada and Leo , ” he said .", {"Ada": 1 / 2, "Leo": 1 / 2}),
        ("Ada met Leo . “ Ada and Leo , ” he said . Leo and", {"Ada": 1}),  # who is left
        ("red", {"blue": 1 / 2, "big": 1 / 2}),  # not the same thing twice
        ("big red", {"red": 1 / 2, "blue": 1 / 2}),
        ("big red blue", {"big": 1}),
        ("red blue red", {".": 1}),  # the other way needs S
        ("red blue red .", {END: 1}),
    ],
)  # fmt: skip
def test_probabilities_by_hand(text, expected):
    assert after(text).probabilities == pytest.approx(expected)


def test_steps_by_hand():
    words = f"Ada met Leo . “ Ada and Leo , ” he said . Leo and Ada left . {END}".split()
    steps = SMALL.read(words)
    assert [step.word for step in steps] == words
    shown = {i + 1: (step.kind, step.deciders) for i, step in enumerate(steps) if step.kind}
    assert shown == {
        3: ("name", (1,)),
        6: ("name", (1,)),
        8: ("name", (3,)),
        10: ("quote", (5,)),
        11: ("pronoun", (3, 8)),
        14: ("name", (1, 6, 3, 8, 11)),
        16: ("name", (1, 6, 3, 8, 11, 14)),
    }
    assert {step.ways for step in steps} == {1}
    boat = SMALL.read("the boat came to the bank . it was steep .".split())
    assert (boat[9].kind, boat[9].deciders, boat[1].kind) == ("bank", (2,), "")
    assert SMALL.read("blue red".split())[1].kind == "different"


def test_two_ways_that_begin_alike_are_summed():
    twins = World("rule story\n  2 a b <c>\n  a c\n  a b c\nrule c\n  c\n  b")
    assert after("a", twins).probabilities == pytest.approx({"b": 3 / 4, "c": 1 / 4})
    assert after("a b", twins).probabilities == pytest.approx({"c": 2 / 3, "b": 1 / 3})
    assert twins.read(["a", "b", "c"])[-1].ways == 2
    assert entropy({"a": 0.5, "b": 0.25, "c": 0.25}) == pytest.approx(1.5 * math.log(2))


def test_what_cannot_come_next_is_refused():
    reading = after("the boat")
    with raises(ValueError, "word 3 cannot be 'gold'; possible: ['came']"):
        reading.read("gold")
    assert reading.read("came").word == "came"  # it stayed where it was
    with raises(ValueError, "word 20 cannot be 'Ada'; possible: []"):
        after(f"Ada met Leo . “ Ada and Leo , ” he said . Leo and Ada left . {END} Ada")


@pytest.mark.parametrize(
    ("cargo", "states"), [("boat", "muddy slippery wet"), ("cash", "busy crowded noisy")]
)
def test_the_bank_is_one_of_the_cargo(cargo, states):
    text = f"Ada was a kind doctor . Ada had to bring the {cargo} to the bank . "
    reading = after(text + f"with the {cargo} she came to the bank . the bank was", WORLD)
    assert reading.probabilities == pytest.approx(dict.fromkeys(states.split(), 1 / 3))


@steady
@given(st.integers(0, 2**32))
def test_a_story_and_its_reading_agree(seed):
    words, surprise = WORLD.tell(random.Random(seed))
    steps = WORLD.read(words)
    for place, step in enumerate(steps, start=1):
        assert sum(step.probabilities.values()) == pytest.approx(1, abs=1e-12)
        assert all(0 < each < place for each in step.deciders)
        assert bool(step.deciders) == bool(step.kind)
    # The text tells every choice: no other way of telling it adds to its probability.
    assert steps[-1].ways == 1
    read = -sum(math.log(step.probabilities[step.word]) for step in steps)
    assert read == pytest.approx(surprise, abs=1e-9)
    assert WORLD.tell(random.Random(seed)) == (words, surprise)
    assert split(show(words[:-1]), WORLD.words) == words[:-1]


def test_show_by_hand():
    text = (
        "it was Ada ’s hat . “ oh , i see , ” said Mr. Hill , “ it is . ” “ no ! ” he said . ¶ she"
    )
    assert show(text.split()) == (
        "It was Ada’s hat. “Oh, I see,” said Mr. Hill, “it is.” “No!” he said. She"
    )
    assert show([]) == ""


def test_split_by_hand():
    words = {"“", "”", ".", ",", "is", "i", "Ada", "’s", "Mrs.", "well-known"}
    assert split('Is "Ada\'s" well-known, "Mrs. Xi"? I', words) == [
        *("is", "“", "Ada", "’s", "”", "well-known", ",", "“", "Mrs.", "Xi", "”", "?", "i")
    ]
    assert split(" ", words) == []


def test_stories_are_good_english():
    assert {word for story in STORIES for word in story} == set(WORLD.words)
    for story in STORIES:
        text = show(story)
        assert not re.search(r"\ba [aeiou]|\ban (?!hour|old|open)", text, re.IGNORECASE), text
        assert not [pair for pair in pairwise(story) if pair[0] == pair[1]], text
        assert re.fullmatch(r"(“?[A-Z][^“”.?!]*.*[.?!]”?)", text), text
        quotes = [word for word in story if word in "“”"]
        assert quotes == ["“", "”"] * (len(quotes) // 2), text
