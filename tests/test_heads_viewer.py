"""HeadsViewer on the Python side: what it takes, its numbers, its picture, its errors."""

import base64
import gzip
import json

import numpy as np
import pytest
import traitlets
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import HeadsViewer

pytestmark = pytest.mark.filterwarnings("error")

HOSTILE = '<img src=x onerror="document.title=1"> </script><!-- "&amp;\''
CAT = ["The", "cat", "sat"]
# By hand: two heads of three tokens; the second head's last row has nothing to attend to.
HAND = np.array(
    [
        [[0.5, 0.25, 0.25], [1, 0, 0], [0.2, 0.2, 0.6]],
        [[0, 1, 0], [0.5, 0, 0.5], [0, 0, 0]],
    ]
)


def random_weights(*shape, seed=0):
    scores = np.random.default_rng(seed).normal(0, 2, (*shape, shape[-1]))
    return attnlib.softmax(scores)


def still(viewer):
    data, _ = viewer._repr_mimebundle_()
    return BeautifulSoup(data["text/html"], "html.parser")


def test_numbers_done_by_hand():
    viewer = HeadsViewer(CAT, HAND, row=1)
    assert viewer.summary == pytest.approx(
        {
            "previous": (1 + 0.2) / 2,
            "itself": (0.5 + 0 + 0.6) / 3,
            "next": (0.25 + 0) / 2,
            "first": (0.5 + 1 + 0.2) / 3,
            "entropy": (1.5 * np.log(2) + 0 - 0.4 * np.log(0.2) - 0.6 * np.log(0.6)) / 3,
        },
        abs=2e-4,
    )
    assert viewer.sentence == "Head 1: 'cat' attends most to 'The' (1.00)"
    viewer.head, viewer.row = 1, 2  # the empty row counts in no mean
    assert viewer.sentence == "Head 2: 'sat' attends to nothing"
    assert viewer.summary == pytest.approx(
        {"previous": 0.5, "itself": 0, "next": 0.75, "first": 0.25, "entropy": np.log(2) / 2},
        abs=2e-5,
    )


def test_one_token_has_no_neighbours_and_an_empty_text_no_means():
    viewer = HeadsViewer(["it"], [[[1.0]], [[0.0]]])
    assert viewer.summary == {
        "previous": None,
        "itself": 1,
        "next": None,
        "first": 1,
        "entropy": 0,
    }
    viewer.head = 1
    assert set(viewer.summary.values()) == {None}
    assert "–" in still(HeadsViewer(["it"], [[[1.0]]])).select_one(".summary").get_text()


def test_a_tie_goes_up_as_in_the_browser():
    viewer = HeadsViewer(list("abcdefgh"), [np.eye(8)])
    assert viewer.summary["first"] == 1 / 8
    assert still(viewer).select_one("[data-part=first]").get_text() == "0.13"


def test_equal_tokens_are_numbered():
    viewer = HeadsViewer(["the"] * 8, np.full((3, 1, 8, 8), 1 / 8), layer=2, row=4)
    assert viewer.sentence == "Head 1 of layer 3: 'the (5)' attends most to 'the (1)' (0.13)"
    assert viewer.summary["entropy"] == pytest.approx(np.log(8), abs=1e-4)


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 11), st.integers(0, 2**32 - 1))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_weights_are_exact_here_and_near_enough_on_the_page(n_layers, n_heads, n, seed):
    weights = random_weights(n_layers, n_heads, n, seed=seed)
    tokens = [f"token {i}" for i in range(n)]
    viewer = HeadsViewer(tokens, weights, layer=n_layers - 1, head=n_heads - 1, row=n - 1)
    np.testing.assert_array_equal(viewer.all_weights, weights)
    np.testing.assert_array_equal(viewer.weights, weights[-1, -1])
    assert viewer.tokens == tokens and viewer.mask.all()
    bytes_ = base64.b64decode(viewer.texts[0]["weights"])
    carried = np.frombuffer(bytes_, "<u2").reshape(weights.shape) / 65535
    assert abs(carried - weights).max() <= 1 / 131070 + 1e-15
    assert viewer.summary["first"] == pytest.approx(weights[-1, -1, :, 0].mean(), abs=1e-5)


def test_what_the_layers_return_is_taken_as_it_is():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 12)).astype(np.float32)
    encoder = attnlib.Encoder.init(2, 12, 3, 17, rng)
    for tokens in (x, x[None]):  # without and with a batch axis of 1
        _, weights = encoder(tokens)
        viewer = HeadsViewer(list("abcde"), weights, layer=1, head=2)
        np.testing.assert_array_equal(viewer.weights, weights[1].reshape(3, 5, 5)[2])
        assert viewer.all_weights.shape == (2, 3, 5, 5)
        assert viewer.all_weights.dtype == np.float32
    _, weights = attnlib.MultiHeadAttention.init(12, 3, rng)(x, mask=attnlib.causal_mask(5))
    viewer = HeadsViewer(list("abcde"), weights, mask=attnlib.causal_mask(5))
    assert viewer.all_weights.shape == (1, 3, 5, 5)


def test_handed_over_arrays_are_copied_and_kept_from_change():
    weights = random_weights(2, 3, 3)
    viewer = HeadsViewer(CAT, weights)
    weights[:] = 0
    assert viewer.weights.sum() == pytest.approx(3)
    for array in (viewer.weights, viewer.all_weights, viewer.mask):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(traitlets.TraitError, match="read-only"):
        viewer.texts = []


def test_several_texts():
    money, river = random_weights(2, 3, 5), random_weights(2, 3, 3)
    mask = np.array([[[True, True, False]]])  # as padding_mask gives it for a batch of one
    river = np.stack([np.pad(r[:, :2, :2], ((0, 0), (0, 1), (0, 1))) for r in river])
    river /= np.where(river.sum(-1, keepdims=True), river.sum(-1, keepdims=True), 1)
    texts = {"money": (list("abcde"), money), "river": (CAT, river, mask)}
    viewer = HeadsViewer(texts, head=2, row=4)
    assert viewer.sentence.startswith("Head 3 of layer 1: 'e' attends most to ")
    viewer.text = 1
    assert viewer.tokens == CAT
    np.testing.assert_array_equal(viewer.weights, river[0, 2])
    assert viewer.mask.tolist() == [[True, True, False]] * 3
    assert viewer.sentence == "Head 3 of layer 1: 'sat' attends to nothing"  # the last one it has
    assert still(viewer).select_one("[name=row] [selected]")["value"] == "2"
    options = still(viewer).select("[name=text] option")
    assert [option.get_text() for option in options] == ["money", "river"]
    assert repr(viewer) == (
        "HeadsViewer(2 x 3 heads, texts=['money', 'river'], "
        "text=1, layer=0, head=2, row=4, lines='row')"
    )


GOOD = random_weights(2, 3, 3)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((CAT,), TypeError, "weights are needed beside the tokens"),
        (("abc", GOOD), TypeError, "tokens must be a list of str; got 'abc'"),
        ((["a", "b", 3], GOOD), TypeError, r"tokens must be a list of str; got \['a', 'b', 3\]"),
        (([], GOOD), ValueError, "tokens must be 1 to 64; got 0"),
        ((["a"] * 65, GOOD), ValueError, "tokens must be 1 to 64; got 65"),
        (
            (CAT[:2], GOOD),
            ValueError,
            r"\(n_layers, n_heads, 2, 2\), or one such layer, for 2 tokens; got \(2, 3, 3, 3\)",
        ),
        ((CAT, GOOD[0, 0]), ValueError, r"for 3 tokens; got \(3, 3\)"),
        ((CAT, GOOD[:, :0]), ValueError, r"for 3 tokens; got \(2, 0, 3, 3\)"),
        ((CAT, [GOOD[0], GOOD[1, :2]]), ValueError, "weights must have one shape in all layers"),
        ((CAT, GOOD.astype(complex)), TypeError, "weights must be numbers; got dtype complex128"),
        ((CAT, GOOD > 0.2), TypeError, "weights must be numbers; got dtype bool"),
        ((CAT, GOOD * np.nan), ValueError, "weights must be finite and not below 0"),
        ((CAT, -GOOD), ValueError, "weights must be finite and not below 0"),
        (
            (CAT, HAND * [[[1], [2], [1]]]),
            ValueError,
            "each row of weights must sum to 1, .* got 2 in layer 0, head 0, row 1",
        ),
        (({},), ValueError, "the dict needs at least one text"),
        (({"a": (CAT, GOOD)}, GOOD), TypeError, "weights and mask stand in the dict"),
        (({" ": (CAT, GOOD)},), TypeError, "name of a text must be a str that is not blank"),
        (({"a": GOOD},), TypeError, r"text 'a' must be \(tokens, weights\) or .* got a ndarray"),
        (({"a": (CAT, GOOD), "b": (CAT, GOOD[:1])},), ValueError, "same numbers of layers and"),
        (({"a": (CAT, -GOOD)},), ValueError, "weights of 'a' must be finite"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        HeadsViewer(*arguments)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"mask": np.ones((3, 3))}, TypeError, "mask must be bool, .* got dtype float64"),
        (
            {"mask": np.ones((2, 3), bool)},
            ValueError,
            r"mask must broadcast to \(3, 3\), queries by keys; got \(2, 3\)",
        ),
        (
            {"mask": attnlib.causal_mask(3)},
            ValueError,
            "weights must be 0 where the mask is False; got .* in layer .*, head .*, row 0, column",
        ),
        ({"title": 3}, TypeError, "title must be a str; got 3"),
        ({"colour": "red"}, TypeError, "colour"),
        ({"layer": 2}, ValueError, "layer needs a whole number from 0 to 1; got 2"),
        ({"head": -1}, ValueError, "head needs a whole number from 0 to 2; got -1"),
        ({"row": 3}, ValueError, "row needs a whole number from 0 to 2; got 3"),
        ({"text": 1}, ValueError, "text needs a whole number from 0 to 0; got 1"),
        ({"head": True}, (ValueError, traitlets.TraitError), "head"),
        ({"head": 1.5}, traitlets.TraitError, "head"),
        ({"lines": "none"}, traitlets.TraitError, "lines"),
    ],
)
def test_options_that_do_not_fit_are_refused_and_the_state_stays(options, kind, message):
    with pytest.raises(kind, match=message):
        HeadsViewer(CAT, GOOD, **options)
    (name, value) = next(iter(options.items()))
    if name in HeadsViewer._shown:
        viewer = HeadsViewer(CAT, GOOD)
        before = repr(viewer)
        with pytest.raises(kind, match=message):
            setattr(viewer, name, value)
        assert repr(viewer) == before


# ------------------------------------------------------------------------------- The picture


def test_picture_shows_the_starting_state():
    mask = attnlib.causal_mask(3)
    weights = HAND * mask
    weights[0, 0] = [1, 0, 0]
    weights[1] = [[1, 0, 0], [0, 0, 0], [0, 0.25, 0.75]]
    viewer = HeadsViewer(CAT, weights, mask=mask, head=1, row=2, lines="all", title="Small")
    picture = still(viewer)
    assert str(picture) == str(still(HeadsViewer(**vars_of(viewer))))
    assert picture.fieldset.has_attr("disabled")
    assert picture.fieldset["aria-label"] == "Heads viewer: Small"
    assert picture.select_one(".said").get_text() == viewer.sentence
    buttons = picture.select("[role=grid] button")
    assert [b["aria-pressed"] for b in buttons] == ["false", "true"]
    assert [b["aria-label"] for b in buttons] == ["head 1", "head 2"]
    assert [b["tabindex"] for b in buttons] == ["-1", "0"]
    # Cells of the second head: weight 1 at (0, 0); 1/4 and 3/4 in the last row; the rest blank.
    drawn = {path.get("opacity", "blocked"): path["d"] for path in buttons[1].select("path")}
    assert drawn == {"1": "M0 0v1", "0.25": "M1 2v1", "0.75": "M2 2v1", "blocked": "M1 0v1M2 0v2"}
    heat = [text.get_text() for text in picture.select("[data-part=heat] text")]
    shown = [text for text in heat if text[0] in "01"]
    assert shown == ["1.00", "0.00", "0.00", "0.00", "0.25", "0.75"]
    links = [text.get_text() for text in picture.select("[data-part=links] text")]
    assert links[2:] == ["The", "The", "0.00", "cat", "cat", "0.25", "sat", "sat", "0.75"]
    assert len(picture.select("[data-part=links] .others path")) == 1
    assert len(picture.select("[data-part=links] .picked path")) == 2
    rows = [[c.get_text() for c in tr.select("td")] for tr in picture.select("table")[1]("tr")]
    assert rows[1:] == [
        ["1.00", "masked", "masked"],
        ["0.00", "0.00", "masked"],
        ["0.00", "0.25", "0.75"],
    ]


def vars_of(viewer):
    """The arguments that make the same viewer again."""
    state = {name: getattr(viewer, name) for name in viewer._shown[1:]}
    arrays = {"tokens": viewer.tokens, "weights": viewer.all_weights, "mask": viewer.mask}
    return {**arrays, **state, "title": viewer._title}


def test_masked_is_said_and_hatched():
    viewer = HeadsViewer(CAT, [np.eye(3)], mask=np.eye(3, dtype=bool))
    picture = still(viewer)
    assert picture.select_one("[data-part=links]").get_text().count("masked") == 2
    assert picture.select_one(".hatch")["d"].count("M") == 6 * 5  # five diagonals a cell
    assert not still(HeadsViewer(CAT, [np.eye(3)])).select(".hatch, .blocked")


def test_controls_can_be_heard_and_appear_where_there_is_a_choice():
    picture = still(HeadsViewer({"a": (CAT, GOOD), "b": (CAT, GOOD)}))
    names = [select["name"] for select in picture("select")]
    assert names == ["text", "layer", "head", "row", "lines"]
    for select in picture("select"):
        assert select.find_parent("label").get_text(strip=True)
    assert [s["name"] for s in still(HeadsViewer(CAT, HAND))("select")] == ["head", "row", "lines"]


def test_hostile_names_are_text_in_the_picture():
    viewer = HeadsViewer({HOSTILE: ([HOSTILE, "b", "c"], GOOD)} | {"b": (CAT, GOOD)}, title=HOSTILE)
    picture = still(viewer)
    assert picture.find(["img", "script"]) is None
    assert HOSTILE in picture.get_text()
    state = json.loads(picture.select_one("[data-state]")["data-state"])
    assert state["texts"] == viewer.texts and list(state) == list(viewer._shown)


def test_a_whole_model_stays_small():
    """6 layers of 12 heads over 16 tokens: 18432 numbers in 48 KiB, their picture beside them."""
    tokens = [f"word{i}" for i in range(16)]
    viewer = HeadsViewer(tokens, random_weights(6, 12, 16))
    assert len(viewer.texts[0]["weights"]) == 18432 * 2 * 4 // 3 == 49152
    assert len(viewer._markup) - 49152 < 75_000
    assert len(gzip.compress(viewer._markup.encode())) < 50_000
