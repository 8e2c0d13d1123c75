"""Encoder's views of a path, parts, a search and lengths: JavaScript beside Python, and by hand."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import strategies as st

from _ext.engine import widget_engine
from attnlib import models
from attnlib.models import Reading
from attnlib.widgets import Encoder
from attnlib.widgets.encoder import views
from attnlib.widgets.kit import modules
from tests.widgets.pictures import close, js, minilm, numbers, part, picture, run, texts
from tests.widgets.samples import every

SEEDS = st.integers(0, 2**32 - 1)
WORDS = ["the", "bank", "to", "tea", "[CLS]", "##s"]
sentences = st.lists(st.text("abÄßİσ'é _-4²,.", max_size=12), min_size=1, max_size=5)


@cache
def engine(name):
    """The engine in which the module of a view has run."""
    return widget_engine(modules.module(f"Encoder{name}", {}))


def view(name, call, **values):
    """What a function of a view's file gives."""
    return engine(name)(f"widget.{call}", **values)


def reading(seed, n, n_layers=5, n_heads=2, d=7):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(n), (n_layers, n_heads, n))
    tokens = ["[CLS]", *rng.choice(["a", "b", "c"], n - 2), "[SEP]"]
    return Reading(tokens, rng.normal(size=(n_layers + 1, n, d)), weights)


def as_read(made):
    """A reading as the page has it."""
    return {
        "tokens": list(made.tokens),
        "states": made.states.reshape(len(made.states), -1).tolist(),
        "weights": made.weights.reshape(len(made.weights), -1).tolist(),
    }


TYPED = "r => ({ ...r, states: r.states.map(x => Float64Array.from(x)) })"


def flat(*states):
    """A reading of one token, from its vectors by layer, all moved away from 0."""
    return Reading(["x"], np.array(states, dtype=float)[:, None] + [0, 0, 5], None)


def test_a_path_by_hand():
    """Both start at the origin. They end at (4, 3, 0) and (4, -3, 0); one strays 2 aside."""
    a = flat((0, 0, 0), (2, 0, 2), (4, 3, 0))
    b = flat((0, 0, 0), (2, 0, 0), (4, -3, 0))
    found = views.path(b, a, [0, 0])  # the second way ends up, where y grows
    along, across = (np.array([points[:, 0, k] for points in found["points"]]) for k in (0, 1))
    assert across == pytest.approx(np.array([[0, 0, -3], [0, 0, 3]]))
    # The rest is (2, 0), (4, 0), (2, 2), (4, 0) in x and z: its main direction leans to z a bit.
    main = np.linalg.eigh(np.array([[40, 4], [4, 4]]))[1][:, 1]
    main *= np.sign(main[0])
    assert along == pytest.approx(
        np.array([[0, 2, 4], [0, 2, 4]]) * main[0] + [[0, 0, 0], [0, 2 * main[1], 0]]
    )
    shown = 18 + np.linalg.eigvalsh(np.array([[40, 4], [4, 4]]))[1]
    assert found["share"] == pytest.approx(shown / 62)


@every(SEEDS, st.integers(3, 6), st.integers(3, 6), examples=30)
def test_javascript_finds_the_path_that_numpy_finds(seed, n, m):
    pair = reading(seed, n), reading(seed + 1, m)
    at = [seed % n, seed % m]
    found = view(
        "Path", f"pathOf(dukpy.pair.map({TYPED}), dukpy.at)", pair=[*map(as_read, pair)], at=at
    )
    expected = views.path(*pair, at)
    assert found["share"] == pytest.approx(expected["share"], abs=1e-9)
    assert found["cosines"] == pytest.approx(expected["cosines"], abs=1e-12)
    for points, others in zip(found["points"], expected["points"], strict=True):
        close(points, others, 1e-5)


def test_two_equal_sentences_do_not_part():
    made = reading(3, 5)
    found = view("Path", f"pathOf([dukpy.r, dukpy.r].map({TYPED}), [2, 2])", r=as_read(made))
    expected = views.path(made, made, [2, 2])
    for points in (*found["points"], *expected["points"]):
        assert (np.array(points)[..., 1] == 0).all()
    assert found["share"] == pytest.approx(expected["share"])
    assert found["cosines"] == pytest.approx(np.ones(6))


@every(
    *[st.lists(st.sampled_from(WORDS), max_size=7).map(lambda t: ["[CLS]", *t])] * 2, examples=30
)
def test_the_word_is_found_in_both(first, second):
    assert view("Pair", "namesOf(dukpy.t)", t=first) == views.names_of(first)
    for word in ("bank", "to (2)"):
        places = views.places_of(first, second, word)
        assert view("Pair", "placesOf(dukpy.pair, dukpy.w)", pair=[first, second], w=word) == places
        assert first[places[0]] == second[places[1]]
    assert views.names_of(["to", "the", "to"]) == ["to (1)", "the", "to (2)"]


def test_the_picture_says_how_far_the_two_have_parted():
    soup = picture(Encoder("path", after=4))
    stored = views.recorded()["path"][0]
    assert f"bank and bank have the cosine {stored['cosines'][4]:.2f}." in part(soup, "said")
    shown = [numbers(b)[-1] for b in texts(soup, "[data-part=layers] button")]
    assert shown == pytest.approx(stored["cosines"], abs=0.0051)
    assert texts(soup, ".follow [aria-pressed=true]") == ["bank"] * 2
    assert texts(soup, ".way.first .stop text") == list("0123456")
    assert "start at one point" in part(picture(Encoder("path", after=0)), "said")


@pytest.mark.parametrize("word", ["we", "to (1)", "walked"])
def test_any_word_of_the_first_pair_can_be_followed_without_the_model(word):
    soup = picture(Encoder("path", word=word))
    assert texts(soup, ".follow [aria-pressed=true]") == [word.removesuffix(" (1)")] * 2
    assert not soup.select(".stale")


def test_shared_words_by_hand():
    library = ["The cat sat.", "the dog", "A cat, a CAT"]
    scores = views.by_words("Cat? The cat.", library)
    each = math.log(3 / 2)  # two of the three have "the", two have "cat"
    assert scores == pytest.approx([2 * each, each, each])
    assert views.places(scores).tolist() == [0, 1, 2]
    assert views.places(scores[::-1]).tolist() == [1, 2, 0]
    assert views.by_words("it is late", library).tolist() == [0, 0, 0]


@every(sentences, sentences, examples=30)
def test_javascript_scores_and_ranks_as_python_does(library, more):
    question = " ".join(more)
    found = view("Search", "byWords(dukpy.q, dukpy.l)", q=question, l=library)
    scores = views.by_words(question, library)
    assert [one["score"] for one in found] == pytest.approx(scores, abs=1e-12)
    places = view("Search", "placesOf(dukpy.s)", s=scores.tolist())
    assert places == views.places(scores).tolist()


def test_recorded_vectors_give_the_recorded_cosines():
    """Each number of a vector travels in 6 bits; a cosine is off by half of a hundredth at most."""
    stored = views.recorded()["search"][0]
    vectors = np.array(
        view("Search", "vectorsOf(dukpy.v, 10).map(x => Array.from(x))", v=stored["vectors"])
    )
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(10), abs=1e-6)
    exact = minilm().embed(views.QUESTIONS)
    close(exact @ vectors.T, np.array([*stored["questions"].values()]) / 10000, 5e-3)


def test_the_picture_has_both_orders():
    soup = picture(Encoder("search"))
    scores = views.by_words(views.QUESTIONS[0], views.LIBRARY)
    for column, places in zip(
        ("meaning", "shared"), js(Encoder("search"), "pose(state)"), strict=False
    ):
        cards = soup.select(f".card.{column}")
        assert [float(card["style"].removeprefix("--y: ")) for card in cards] == places
    assert js(Encoder("search"), "pose(state)")[1] == views.places(scores).tolist()
    assert texts(soup.select(".card.shared")[0], "b") == ["The", "late"]
    assert "cosine 0.53, place 1 of 10 by meaning. It shares the: 0.11," in part(soup, "said")
    assert len(soup.select(".joins path")) == 10
    assert "no sentence to search" in picture(Encoder("search"), sentences=[]).get_text()


@pytest.mark.parametrize(
    ("text", "lines"),
    [("a\n\n b \n", ["a", "b"]), ("a", "two sentences"), ("a\n" * 25, "24 sentences")],
)
def test_lines_are_sentences(text, lines):
    found = view("Search", "linesOf(dukpy.t)", t=text)
    assert found == lines if isinstance(lines, list) else lines in found


@every(SEEDS, st.integers(2, 7), examples=30)
def test_javascript_measures_the_shares_that_numpy_measures(seed, n):
    made = reading(seed, n, n_layers=3, n_heads=5)
    by_layer = [[layer[..., end].mean() for layer in made.weights] for end in (0, -1)]
    np.testing.assert_allclose(views.shares(made), by_layer)
    found = view("Lengths", "sharesOf(dukpy.r)", r=as_read(made))
    close(found, views.shares(made), 1e-12)


def test_the_picture_has_a_point_for_each_length():
    made = Encoder("lengths", only=5, text="Chai piyo")
    soup = picture(made)
    n = len(views.ENDS) + len(views.MEASURED)
    assert [len(heights) for heights in js(made, "pose(state)")] == [n, n]
    assert len(soup.select(".cls circle")) == n and len(soup.select(".cls .own circle")) == 3
    by_layer = [float(text[-4:]) for text in texts(soup, "[data-part=only] button")]
    assert by_layer[0] == pytest.approx(np.mean(by_layer[1:]), abs=0.01)
    assert f"gets {by_layer[5]:.2f} of the weight" in part(soup, "said")


def test_shares_and_progress_by_hand():
    """From (1, 0) to (1, 4): a part writes 3 of the 4, another one 1; 5 is beyond the end."""
    pair = [{"tokens": ["a"], "states": [[1, 0]]}, {"tokens": ["a"], "states": [[1, 4]]}]
    ledgers = [[[1, -1], [0, 1]], [[1, 2], [0, 2]]]
    made = """dukpy.pair.map((r, i) => ({ ...r, states: r.states.map(x => Float32Array.from(x)),
        ledger: dukpy.ledgers[i].map(x => Float32Array.from(x)) }))"""
    shares = view("Parts", f"sharesOf({made}, [0, 0])", pair=pair, ledgers=ledgers)
    assert shares == [0.75, 0.25]
    end = view("Parts", f"progressOf({made}, [0, 0], [9, 5])", pair=pair, ledgers=ledgers)
    assert end == 1.25


def test_the_parts_of_the_model_are_shared_out_and_swapped():
    texts, at = views.EVEN[0], [5, 5]
    shares = views.written(minilm(), texts, at)
    assert shares.sum() == pytest.approx(1) and len(shares) == 85
    every = [(layer, head) for layer in range(6) for head in range(12)]
    assert views.swapped(minilm(), texts, at, []) == 0
    assert views.swapped(minilm(), texts, at, every) == pytest.approx(1, abs=1e-5)
    uneven = views.packed_parts(minilm(), ["Tea is hot.", "Tea is not hot."], "tea")
    assert uneven["swaps"] == [] and uneven["at"] == [1, 1]
    same = ["Tea is hot."] * 2
    assert not views.written(minilm(), same, [1, 1]).any()
    assert views.swapped(minilm(), same, [1, 1], every[:1]) == 0


def test_the_table_has_what_the_heads_write():
    soup = picture(Encoder("parts", layer=5, head=5, other=views.EVEN[1][1]))
    cells = numbers(" ".join(texts(soup, "[data-part=written] button")))
    shares = np.array(views.recorded()["parts"][1]["shares"])[1:].reshape(6, 14)[:, :12]
    close(np.reshape(cells, (6, 12)), shares / 10, 0.51)
    assert soup.select_one("[aria-pressed=true][aria-label*=head]")["aria-label"].endswith("head 6")
    uneven = Encoder("parts", other="We walked to the bank to watch the boats.")
    assert "these have 11 and 12" in part(picture(uneven), "said")


# Of the swaps of both pairs: of a head in the first and in the last layer, of a layer, of all.
SWAPPED = {3, 71, 75, 78, 79 + 30}


@pytest.fixture
def few_swaps(monkeypatch):
    """Reads for a few of the swaps alone, which are numbered as they are asked for."""
    stored = [swap for one in views.recorded()["parts"] for swap in one["swaps"]]
    numbers, swapped = itertools.count(), views.swapped

    def some_of_them(*asked):
        number = next(numbers)
        return swapped(*asked) if number in SWAPPED else stored[number] / 1000

    monkeypatch.setattr(views, "swapped", some_of_them)


def test_what_is_recorded_is_of_this_model(few_swaps):
    def same(old, new):
        if isinstance(old, dict):
            return old.keys() == new.keys() and all(same(old[k], new[k]) for k in old)
        if isinstance(old, list):
            return len(old) == len(new) and all(map(same, old, new))
        if isinstance(old, str):
            return old == new or len(old) > 3000  # vectors: above
        return old == pytest.approx(new, abs=2 if isinstance(old, int) else 2e-4)

    assert same(views.recorded(), views.record(minilm()))


@pytest.fixture
def loaded(monkeypatch):
    """Copied code gets the model that is here, which takes a second to load."""
    model = minilm()
    monkeypatch.setattr(models, "load_minilm", lambda: model)


def test_copied_code_gives_what_is_on_the_screen(loaded):
    names = run(js(Encoder("parts"), "code(state)"))
    stored = views.recorded()["parts"][0]["shares"]
    close(1000 * names["shares"], stored, 0.6)
    assert names["printed"][-1] == " 17.6%  layer 6, feed-forward"

    names = run(js(Encoder("path"), "code(state)"))
    one = views.recorded()["path"][0]
    shown = np.array([[layer[10:12] for layer in points] for points in one["points"]]) / 100
    close(names["points"], shown, 0.0051)
    assert names["cosines"] == pytest.approx(one["cosines"], abs=1e-4)
    assert names["printed"][-1].startswith("77%")

    made = Encoder("search")
    names = run(js(made, "code(state)"))
    orders = [views.places(names[each]).tolist() for each in ("cosines", "scores")]
    assert orders == js(made, "pose(state)")[:2]
    assert names["printed"][0].split(maxsplit=2) == ["0.53", "0.11", views.LIBRARY[9]]

    for only in (0, 1):
        made = Encoder("lengths", only=only)
        cls, sep = run(js(made, "code(state)"))["share"]
        assert f"gets {cls:.2f} of the weight, [SEP] {sep:.2f}." in part(picture(made), "said")


SPRINGS = {"text": "The spring is cold.", "other": "The spring is broken."}


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("path", SPRINGS, "spring and spring"),
        (
            "search",
            {"question": "Is it dark?", "sentences": ["It is night.", "Tea is hot."]},
            "It is night.",
        ),
        ("lengths", {"text": "Good morning to all of you."}, "Good morning"),
        ("parts", SPRINGS, "spring goes"),
    ],
)
def test_in_a_notebook_the_kernel_reads(name, changes, expected, few_swaps):
    minilm()
    made = Encoder(name)
    for trait, value in changes.items():
        setattr(made, trait, value)
    assert not made.trouble
    soup = picture(made)
    assert not soup.select(".stale")
    assert expected in part(soup, "said")
