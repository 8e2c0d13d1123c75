"""HeadsViewer: what it takes, its numbers against NumPy, its picture, its errors."""

import re

import numpy as np
import pytest
import torch
import traitlets
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import HeadsViewer
from attnlib.widgets.heads_viewer import LINES
from tests.widgets.pictures import close, js, picture, run, shades, texts
from tests.widgets.samples import every
from tests.widgets.test_refusals import assert_refused

pytestmark = pytest.mark.filterwarnings("error")

CAT = ["The", "cat", "sat"]
# By hand: two heads of three tokens; the second head's last row has nothing to attend to.
HAND = np.array(
    [
        [[0.5, 0.25, 0.25], [1, 0, 0], [0.2, 0.2, 0.6]],
        [[0, 1, 0], [0.5, 0, 0.5], [0, 0, 0]],
    ]
)


def random_weights(n_layers, n_heads, n_q, n_k=None, mask=True, seed=0):
    """Weights sharp enough that some are close to 1; some rows are empty."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 3, (n_layers, n_heads, n_q, n_k or n_q))
    scores[rng.random(scores.shape[:-1]) < 0.1] = -np.inf
    return attnlib.softmax(np.where(mask, scores, -np.inf))


@st.composite
def viewers(draw):
    """Viewers of models and texts of all sizes, and the arguments for the text that is shown."""
    words = st.text(st.characters(exclude_categories=["C"]), max_size=20)
    texts = {}
    for name in draw(st.sampled_from(["a", "ab"])):
        n, n_k = (draw(st.sampled_from([1, 2, 3, 5, 11, 29])) for _ in range(2))
        crossed = draw(st.booleans())
        n_k = n_k if crossed else n
        apart = np.subtract.outer(np.arange(n), np.arange(n_k))
        mask = draw(st.sampled_from([abs(apart) >= 0, apart >= 0, abs(apart) <= 2]))
        n_layers, n_heads, seed = (draw(st.integers(1, most)) for most in (3, 5, 2**31))
        weights = random_weights(n_layers, n_heads, n, n_k, mask, seed)
        tokens, keys = (draw(st.lists(words, min_size=m, max_size=m)) for m in (n, n_k))
        texts[name] = (weights, tokens, keys if crossed else None, mask)
    given = list(texts.values())
    most = {
        "text": len(given),
        "layer": max(len(weights) for weights, *_ in given),
        "head": max(weights.shape[1] for weights, *_ in given),
        "row": max(len(tokens) for _, tokens, *_ in given),
    }
    options = {name: draw(st.integers(0, many - 1)) for name, many in most.items()}
    viewer = HeadsViewer(texts, **options, lines=draw(st.sampled_from(LINES)))
    return viewer, given[viewer.text]


def shown(viewer, weights):
    """The layer and the head that are shown: the last ones of a text that has fewer."""
    n_layers, n_heads = weights.shape[:2]
    return min(viewer.layer, n_layers - 1), min(viewer.head, n_heads - 1)


def means(weights, crossed=False):
    """Four mean weights and the mean entropy of the rows that are not empty."""
    n = len(weights)
    full = [i for i in range(n) if weights[i].sum() > 0.5]
    numbers = {
        "previous": [] if crossed else [weights[i, i - 1] for i in full if i > 0],
        "itself": [] if crossed else [weights[i, i] for i in full],
        "next": [] if crossed else [weights[i, i + 1] for i in full if i < n - 1],
        "first": [weights[i, 0] for i in full],
        "entropy": [-sum(w * np.log(w) for w in weights[i] if w > 0) for i in full],
    }
    return {name: np.mean(each) if each else None for name, each in numbers.items()}


def assert_carried(carried, weights):
    """What a viewer carries is what is written with two decimals, and nearly so beyond."""
    if isinstance(carried, HeadsViewer):
        carried = js(carried, "compute(state)")["weights"]
    carried = np.array(carried)
    assert abs(carried - weights).max() <= 5e-3
    written = [np.floor(100 * each + 0.5 + 1e-9) for each in (carried, weights)]
    np.testing.assert_array_equal(*written)


def said(viewer):
    """The sentence below the picture."""
    return picture(viewer).select_one(".said").get_text()


def test_numbers_done_by_hand():
    entropy = (1.5 * np.log(2) + 0 - 0.4 * np.log(0.2) - 0.6 * np.log(0.6)) / 3
    viewer = HeadsViewer(HAND, CAT, row=1)
    expected = {"previous": 0.6, "itself": 1.1 / 3, "next": 0.125, "first": 1.7 / 3}
    found = js(viewer, "compute(state)")
    assert found["means"] == pytest.approx(expected | {"entropy": entropy}, abs=1e-3)
    assert said(viewer) == "Head 1: 'cat' attends most to 'The' (1.00)"
    viewer.head, viewer.row = 1, 2  # the empty row counts in no mean
    expected = {"previous": 0.5, "itself": 0, "next": 0.75, "first": 0.25}
    found = js(viewer, "compute(state)")
    assert found["means"] == pytest.approx(expected | {"entropy": np.log(2) / 2}, abs=2e-5)
    assert said(viewer) == "Head 2: 'sat' attends to nothing"
    equal = HeadsViewer(np.full((3, 1, 8, 8), 1 / 8), ["the"] * 8, layer=2, row=4)
    assert said(equal) == "Head 1 of layer 3: 'the (5)' attends most to 'the (1)' (0.13)"


@every(viewers(), examples=15)
def test_page_picture_and_copied_code_have_the_weights_and_their_means(made):
    viewer, (weights, tokens, keys, mask) = made
    found = js(viewer, "compute(state)")
    carried = np.array(found["weights"])
    layer, head = shown(viewer, weights)
    assert (found["layer"], found["head"]) == (layer, head)
    assert_carried(carried, weights[layer, head])
    assert (found["tokens"], found["keys"]) == (tokens, tokens if keys is None else keys)
    np.testing.assert_array_equal(found["allowed"], mask)
    picked = min(viewer.row, len(tokens) - 1)
    row = carried[picked]
    assert (found["row"], found["top"]) == (picked, row.argmax() if row.any() else -1)
    wanted = means(carried, keys is not None)
    assert found["means"].keys() == wanted.keys()
    for name, mean in wanted.items():
        assert found["means"][name] == (None if mean is None else pytest.approx(mean, abs=1e-9))

    names = run(js(viewer, "code(state)"))
    assert (names["tokens"], names["key_tokens"]) == (found["tokens"], found["keys"])
    assert [names[n] for n in ("layer", "head", "row")] == [layer, head, picked]
    assert_carried(names["weights"], weights[layer, head])
    np.testing.assert_array_equal(names.get("mask", np.ones_like(mask)), mask)
    asked = list(wanted.values())[3 if keys else 0 :]  # of other tokens the last two alone
    *lines, printed = names["printed"]
    top = names["key_tokens"][names["weights"][picked].argmax()]
    assert printed == f"{tokens[picked]} attends most to {top}"
    for line, mean in zip(lines, asked, strict=True):
        assert line == "none" if mean is None else float(line) == pytest.approx(mean, abs=0.015)

    soup = picture(viewer)
    two = [f"{mean + 1e-9:.2f}" if mean is not None else "–" for mean in wanted.values()]
    assert texts(soup, ".summary b") == two
    sentence = soup.select_one(".said")
    where = f"Head {head + 1}" + f" of layer {layer + 1}" * (len(weights) > 1)
    assert sentence.get_text().startswith(f"{where}: '")
    assert (sentence.b is None) == (not row.any())
    assert not row.any() or sentence.b.get_text() == f"{row.max() + 1e-9:.2f}"
    told = [f"{w + 1e-9:.2f}" if m else "masked" for w, m in zip(row, mask[picked], strict=True)]
    if len(row) > 26:  # then the largest weights are named whose names keep apart
        named = []
        for j in np.argsort(-row, kind="stable"):
            if row[j] and all(abs(j - k) * 262 / len(row) >= 10 for k in named):
                named.append(j)
        told = [told[j] for j in named[:8]]
    assert texts(soup, "[data-part=links] text[x='328']") == told
    columns = {
        int(cells.split(" ")[0])
        for path in soup.select("[data-part=heat] .cells path")
        for cells in path["d"][1:].split("M")
    }
    assert columns == set(np.flatnonzero((carried >= 0.01).any(axis=0)))


def test_weights_of_all_sizes_travel():
    """Also those next to half a hundredth, where the nearest step would not round alike."""
    for start in np.arange(0, 0.5, 0.0256):
        small = start + 0.0004 * np.arange(64)
        weights = np.zeros((1, 64, 64))
        weights[0, :, :2] = np.stack([small, 1 - small], axis=1)
        viewer = HeadsViewer(weights, list("ab" * 32))
        assert_carried(viewer, weights[0])


def sizes(viewer):
    """The numbers of layers and of heads that the page gets for the first text."""
    packed = viewer.texts[0]["weights"]
    return len(packed), len(packed[0])


def test_what_the_layers_return_is_taken_as_it_is():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 12)).astype(np.float32)
    encoder = attnlib.Encoder.init(2, 12, 3, 17, rng)
    for tokens in (x, x[None]):  # without and with a batch axis of 1
        _, weights = encoder(tokens)
        viewer = HeadsViewer(weights, list("abcde"), layer=1, head=2)
        assert_carried(viewer, weights[1].reshape(3, 5, 5)[2])
        assert sizes(viewer) == (2, 3)
    assert sizes(HeadsViewer(weights[0], list("abcde"))) == (1, 3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_an_encoder_decoder_of_pytorch_reads_a_batch_in_any_precision(dtype):
    """As its models return them: a tuple of layers, with gradients; the second text is padded."""

    def layers(*shape, mask=True):
        made = random_weights(*shape, mask=mask)[:, None].repeat(2, axis=1)
        return tuple(torch.tensor(layer, dtype=dtype, requires_grad=True) for layer in made)

    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])[:, None, None]
    read, both = layers(2, 3, 7, mask=real[1].numpy()), layers(1, 2, 5, 7)
    sources = [[f"{text}{i}" for i in range(7)] for text in "st"]
    targets = [[f"{text}{i}" for i in range(5)] for text in "uv"]
    given = {
        "encoder": (read, sources, None, real),
        "decoder": (layers(1, 2, 5), targets),
        "cross": (both, targets, sources),
    }
    viewer = HeadsViewer(given, text=5, layer=1, head=2, row=6)
    names = [f"{name} {i}" for name in given for i in (1, 2)]
    assert [text["name"] for text in viewer.texts] == names
    found = js(viewer, "compute(state)")  # the decoder has one layer, two heads and five rows
    assert [found[name] for name in ("layer", "head", "row")] == [0, 1, 4]
    assert (found["tokens"], found["keys"]) == (targets[1], sources[1])
    assert_carried(found["weights"], both[0][1, 1].detach().double().numpy())
    viewer.text = 1
    found = js(viewer, "compute(state)")
    assert found["allowed"] == [[True] * 4 + [False] * 3] * 7
    assert_carried(found["weights"], read[1][1, 2].detach().double().numpy())


def test_later_changes_of_the_given_arrays_do_not_reach_the_page():
    weights, mask = random_weights(2, 3, 3), np.ones((3, 3), bool)
    before = weights[0, 0].copy()
    viewer = HeadsViewer(weights, CAT, mask=mask)
    weights[:], mask[:] = 0, False
    found = js(viewer, "compute(state)")
    assert_carried(found["weights"], before)
    assert np.all(found["allowed"])
    with pytest.raises(traitlets.TraitError, match="read-only"):
        viewer.texts = []


def test_several_texts():
    given = {"money": (random_weights(2, 3, 5), list("abcde")), "river": (HAND[None], CAT)}
    viewer = HeadsViewer(given, head=2, row=4)
    assert said(viewer).startswith("Head 3 of layer 1: 'e' attends ")
    viewer.text = 1
    assert said(viewer) == "Head 2: 'sat' attends to nothing"  # the last one of each
    assert picture(viewer).select_one("[name=row] [selected]")["value"] == "2"
    assert repr(viewer).startswith("HeadsViewer(2 x 3 heads, texts=['money', 'river'], text=1, ")


def test_controls_appear_where_there_is_a_choice():
    for made, names in (
        (HeadsViewer({"a": (GOOD, CAT), "b": (GOOD, CAT)}), "text layer head row lines"),
        (HeadsViewer(HAND, CAT), "head row lines"),
    ):
        assert [select["name"] for select in picture(made)("select")] == names.split()


GOOD = random_weights(2, 3, 3)
BATCH, FEW = GOOD[:, None].repeat(2, 1), [CAT, CAT]  # weights and tokens of a batch of two
LARGE = np.broadcast_to(np.eye(128), (18, 17, 128, 128))


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((GOOD,), TypeError, "tokens are needed beside the weights"),
        ((GOOD, "abc"), TypeError, "tokens must be a list of str; got 'abc'"),
        ((GOOD, ["a", "b", 3]), TypeError, r"tokens must be a list of str; got \['a', 'b', 3\]"),
        ((GOOD, CAT, "abc"), TypeError, "key_tokens must be a list of str; got 'abc'"),
        ((GOOD, []), ValueError, "tokens must be 1 to 128; got 0"),
        ((GOOD, ["a"] * 129), ValueError, "tokens must be 1 to 128; got 129"),
        ((GOOD, CAT[:2]), ValueError, "must have 2 rows and 2 columns .* got 3 rows and 3 columns"),
        ((GOOD, CAT, CAT[:2]), ValueError, "2 columns for 3 tokens and 2 key_tokens; got 3 rows"),
        ((GOOD[0, 0], CAT), ValueError, r"a layer; got shape \(3, 3\) in all"),
        ((GOOD[:, :0], CAT), ValueError, r"a layer; got shape \(2, 0, 3, 3\) in all"),
        (([GOOD[0], GOOD[1, :2]], CAT), ValueError, "weights must have one shape in all layers"),
        ((None, CAT), ValueError, r"hold no array; got None: .*output_attentions=True"),
        (((), CAT), ValueError, r"hold no array; got \(\): .*set_attn_implementation"),
        (((None, None), CAT), ValueError, r"hold no array; got \(None, None\): .*eager"),
        ((GOOD > 0.2, CAT), TypeError, "weights must be numbers; got dtype bool"),
        ((GOOD * 1j, CAT), TypeError, "weights must be numbers; got dtype complex128"),
        (("abc", CAT), TypeError, "weights must be numbers; got dtype <U3"),
        (([GOOD[0], None], CAT), ValueError, "weights hold no array; got"),
        ((np.full((1, 3, 3), object()), CAT), TypeError, "weights must be numbers; got dtype obj"),
        ((GOOD * np.nan, CAT), ValueError, "finite .* got nan in layer 0, head 0, row 0, column 0"),
        ((HAND - 0.25, CAT), ValueError, "below 0; got -0.25 in layer 0, head 0, row 1, column 1"),
        ((HAND * [[[1], [2], [1]]], CAT), ValueError, "sum to 1, .* got 2 .* head 0, row 1 .*sof"),
        ((BATCH, CAT), ValueError, "batch of 2, so tokens must be a list"),
        ((GOOD, FEW), ValueError, "batch of 1, so tokens must be a list of 1 lists of str; got"),
        ((BATCH, FEW, CAT), ValueError, "batch of 2, so key_tokens must be a list of 2"),
        ((LARGE, ["a"] * 128), ValueError, "5,000,000 weights in all; got 5,013,504: choose some"),
        (({},), ValueError, "the dict needs at least one text"),
        (({"a": (GOOD, CAT)}, CAT), TypeError, "tokens and masks stand in the dict"),
        (({" ": (GOOD, CAT)},), TypeError, "name of a text must be a str that is not blank"),
        (({"a": GOOD},), TypeError, r"'a' must be a tuple \(weights, tokens\).* got a ndarray"),
        (({"a": (-GOOD, CAT)},), ValueError, "weights of 'a' must be finite"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        HeadsViewer(*arguments)


def test_a_file_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"in .html, .svg or .png; got 'heads.pdf'"):
        HeadsViewer(GOOD, CAT).save("heads.pdf")


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"mask": np.ones((3, 3))}, TypeError, "mask must be bool, .* got dtype float64"),
        ({"mask": [[True], [True, False]]}, ValueError, "mask must have rows of one length"),
        ({"mask": np.ones((2, 3), bool)}, ValueError, r"broadcast to \(3, 3\), .*; got \(2, 3\)"),
        ({"mask": attnlib.causal_mask(3)}, ValueError, "0 where the mask is False; .* row 0, co"),
        ({"title": 3}, TypeError, "title must be a str; got 3"),
        ({"layer": 2}, ValueError, "layer needs a whole number from 0 to 1; got 2"),
        ({"head": -1}, ValueError, "head needs a whole number from 0 to 2; got -1"),
        ({"row": 3}, ValueError, "row needs a whole number from 0 to 2; got 3"),
        ({"text": 1}, ValueError, "text needs a whole number from 0 to 0; got 1"),
        ({"head": True}, (ValueError, traitlets.TraitError), "head"),
        ({"head": 1.5}, traitlets.TraitError, "head"),
    ],
)
def test_options_that_do_not_fit_are_refused_and_the_state_stays(options, kind, message):
    with pytest.raises(kind, match=message):
        HeadsViewer(GOOD, CAT, **options)
    [(name, value)] = options.items()
    if name in HeadsViewer._shown:
        assert_refused(HeadsViewer(GOOD, CAT), name, value, message)


def test_the_picture_by_hand():
    mask = attnlib.causal_mask(3)
    weights = np.array([np.eye(3), [[1, 0, 0], [0, 0, 0], [0, 0.25, 0.75]]])
    viewer = HeadsViewer(weights, CAT, mask=mask, head=1, row=2, lines="all", title="Small")
    soup = picture(viewer)
    assert soup.fieldset["aria-label"] == "Heads viewer: Small"
    pressed = soup.select("[role=grid] [aria-pressed=true]")
    assert [(b["aria-label"], b["tabindex"]) for b in pressed] == [("head 2", "0")]
    heat = [text for text in texts(soup, "[data-part=heat] text") if text[0] in "01"]
    assert heat == ["1.00", "0.00", "0.00", "0.00", "0.25", "0.75"]
    links = texts(soup, "[data-part=links] text")
    assert links[2:] == [*CAT, "The", "0.00", "cat", "0.25", "sat", "0.75"]
    # Rows lie 262/3 apart, the first 262/6 below 64; lines go from a query to a key, .05 a step.
    one, two, three = (f"{64 + (i + 0.5) * 262 / 3:.2f}" for i in range(3))
    strokes = [
        [(p["d"], p["opacity"], p["stroke-width"]) for p in soup.select(f".{kind} path")]
        for kind in ("others", "picked")
    ]
    to = [f"M92 {three}L212 {end}" for end in (two, three)]
    assert strokes == [
        [(f"M92 {one}L212 {one}", "1", "5")],
        [(to[0], "0.25", "1.63"), (to[1], "0.75", "3.88")],
    ]
    rows = [" ".join(texts(tr, "td")) for tr in soup.select("table")[1]("tr")]
    assert rows[1:] == ["1.00 masked masked", "0.00 0.00 masked", "0.00 0.25 0.75"]


@pytest.mark.parametrize("mask", [True, attnlib.causal_mask(5)], ids=["free", "causal"])
def test_each_small_head_stands_in_its_place(mask):
    weights = random_weights(3, 2, 5, mask=mask)
    soup = picture(HeadsViewer(weights, list("abcde"), mask=mask))
    grid = [tr.select("button") for tr in soup.select("[role=grid] tr")[1:]]
    assert [len(row) for row in grid] == [2, 2, 2]
    for layer, head in np.ndindex(3, 2):
        shown, blocked = shades(grid[layer][head], (5, 5))
        eighths = np.floor(weights[layer, head] * 8 + 0.5) / 8
        close(shown, eighths, 0.0051)  # .125 is written .13
        np.testing.assert_array_equal(blocked, ~np.broadcast_to(mask, (5, 5)))


def test_masked_is_hatched():
    """In each of six blocked cells diagonals as long as three sides, from left to right."""
    soup = picture(HeadsViewer([[np.eye(3)]], CAT, mask=np.eye(3, dtype=bool)))
    width = float(soup.select_one(".edge")["width"])
    lengths = re.findall(r"l([\d.]+)", soup.select_one(".hatch")["d"])
    assert sum(map(float, lengths)) == pytest.approx(6 * width, abs=0.1)
    free = picture(HeadsViewer([[np.eye(3)]], CAT))
    assert free.select_one(".hatch")["d"] == "" and not free.select(".blocked")


def test_a_large_model_is_packed_and_drawn_small():
    """2 layers of 3 heads over 128 tokens: 98,304 weights, of which the page draws blocks."""
    mask = np.tri(128, dtype=bool)
    viewer = HeadsViewer(random_weights(2, 3, 128, mask=mask), ["token"] * 128, mask=mask)
    head = viewer.texts[0]["weights"][1][2]
    assert len(head) < 1.2 * 128**2
    soup = picture(viewer)
    assert len(str(soup)) < 150_000
    small = soup.select("[role=grid] button")[-1].svg
    assert small["viewbox" if small.has_attr("viewbox") else "viewBox"] == "-.5 0 22 22"
    # Each cell is the largest of 6 x 6 weights, in eighths; of the last row and column, 2 are left.
    weights = np.array(js(viewer, "compute(state)", layer=1, head=2)["weights"])
    padded = np.pad(weights, (0, 4)).reshape(22, 6, 22, 6).max(axis=(1, 3))
    expected = np.floor(padded * 8 + 0.5) / 8
    shown, _ = shades(small, (22, 22))
    close(shown, expected, 0.0051)
    # Read out is the row that is looked at.
    assert [len(row("td")) for row in soup.select("[data-part=table] tr")[1:]] == [128]
