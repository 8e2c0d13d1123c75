"""PositionsExplorer: its numbers in Python and in JavaScript, what its picture says and draws."""

import math
import re

import numpy as np
import pytest
from hypothesis import example

import attnlib
from attnlib.widgets import PositionsExplorer
from attnlib.widgets.positions_explorer import KINDS, ROWS, TABLE
from tests.widgets.pictures import close, js, numbers, part, picture, run, texts
from tests.widgets.samples import SAMPLES, every

pytestmark = pytest.mark.filterwarnings("error")
every_scene = SAMPLES[PositionsExplorer]
explorers = every_scene.map(lambda made: PositionsExplorer(**made.state | {"scene": "scores"}))


def encoding_of(explorer):
    """Position by position, (64, d_model); for rotary (cos, sin) of each pair's angle."""
    n, d_model, base = 64, explorer.d_model, explorer.base
    if explorer.kind == "sinusoidal":
        return attnlib.sinusoidal_positions(n, d_model, base=base)
    if explorer.kind == "rotary":
        return attnlib.rotary(np.tile([1.0, 0.0], (n, d_model // 2)), base=base)
    return np.zeros((n, d_model))


def bias_of(explorer):
    """What is added to the scaled scores of each head, (8, 64, 64)."""
    if explorer.kind == "alibi":
        return attnlib.alibi_bias(8, 64)
    if explorer.kind == "relative":
        return attnlib.relative_position_bias(TABLE, 64)
    return np.zeros((8, 64, 64))


def similarity(explorer):
    """What the offset alone does, (127,): the number on each diagonal, from -63 to 63."""
    encoding, bias = encoding_of(explorer), bias_of(explorer)[explorer.head]
    matrix = {"sinusoidal": encoding @ encoding.T, "alibi": bias, "relative": bias}.get(
        explorer.kind, explorer.scores
    )
    return np.concatenate([matrix[-1], matrix[0, 1:]])


def clock_match(explorer):
    """Scene "clocks": the dot product of the encodings of p and p + k, which only k decides."""
    angles = explorer.distance * explorer.base ** (
        -np.arange(0, explorer.d_model, 2) / explorer.d_model
    )
    return np.cos(angles).sum()


def turned(explorer):
    """Scene "turned": the query at p + k and the key at p, turned, (2, d_model)."""
    width = min(4, explorer.d_model)
    pairs = np.zeros((2, explorer.d_model))
    pairs[:, :width] = np.array([[2, 0, 1, 1], [1, 1, 2, 0]])[:, :width]
    places = [explorer.position + explorer.distance, explorer.position]
    return attnlib.rotary(pairs, places, base=explorer.base)


def test_numbers_of_the_chapter():
    """Two hands: position 2 is (0.909, -0.416, 0.020, 1.000), neighbors match by 1.540."""
    explorer = PositionsExplorer(d_model=4)
    encoding = js(explorer, "compute(state)")["encoding"]
    close(encoding[2], [0.909, -0.416, 0.02, 1], 5e-4)
    assert similarity(explorer)[64] == pytest.approx(math.cos(1) + math.cos(0.01))
    # Word (1, 0, 1, 0) / √2; positions 0 and 1: 1 + 1.540 + (0 + 0.841 + 0.010) / √2
    assert explorer.scores[0, 1] == pytest.approx(1 + 1.540252 + 0.851471 / math.sqrt(2), abs=1e-6)


def test_the_relative_table_peaks_before_and_ends_at_eight():
    row = PositionsExplorer(kind="relative", head=1).scores[20]
    assert TABLE.shape == (8, 17) and row.argmax() == 18
    close(row[[3, 12, 18, 19, 20, 22, 28, 63]], [0, 0, 3, 2.5, 2, 1, -2, -2])


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_multi_head_attention(kind):
    """The plain products, and scaled, with the maps that the docstring names."""
    explorer = PositionsExplorer(kind=kind, d_model=6, head=3)
    X = np.tile([1, 0, 1, 0, 1, 0] / np.sqrt(3), (64, 1))
    if kind == "sinusoidal":
        X = X + attnlib.sinusoidal_positions(64, 6)
    if kind == "rotary":
        X = attnlib.rotary(X)
    inputs = X * 6**0.25
    _, weights = attnlib.scaled_dot_product_attention(inputs, inputs, X, bias_of(explorer)[3])
    close(attnlib.softmax(explorer.scores), weights, 1e-12)
    close(explorer.scores, X @ X.T + bias_of(explorer)[3], 1e-12)


@pytest.mark.parametrize("kind", KINDS)
@every(explorers, examples=3)
def test_javascript_and_copied_code_compute_what_attnlib_computes(kind, explorer):
    explorer.kind = kind
    found, encoding, bias = js(explorer, "compute(state)"), encoding_of(explorer), bias_of(explorer)
    expected = {"encoding": encoding, "scores": explorer.scores}
    for name, wanted in (expected | {"similarity": similarity(explorer)}).items():
        close(found[name], wanted)
    by_offset = [[*each[-1], *each[0, 1:]] for each in bias]
    close(found["biases"], by_offset, 1e-12)
    names = run(js(explorer, "code(state)"))
    close(names["scores"], explorer.scores)
    assert names["position"] == explorer.position
    if explorer.kind == "sinusoidal":
        close(names["encoding"], encoding)
    if explorer.kind in ("alibi", "relative"):
        close(names["bias"], bias, 1e-12)


@pytest.mark.parametrize("kind", KINDS)
@every(explorers, examples=3)
@example(explorer=PositionsExplorer(position=0))
@example(explorer=PositionsExplorer(position=63))
def test_the_picture_says_and_draws_the_numbers(kind, explorer):
    explorer.kind = kind
    p, scores, encoding = explorer.position, explorer.scores, encoding_of(explorer)
    soup = picture(explorer)
    assert_drawn(soup, explorer)
    for text, at in zip(soup.select(".trio p"), (p - 1, p, p + 1), strict=True):
        told = [scores[p, at], at] if 0 <= at < 64 else []
        assert numbers(text.get_text(" ")) == pytest.approx(told, abs=0.0051)
    spoken = soup.select_one(".visually-hidden p").get_text()
    assert numbers(spoken) == pytest.approx([p, *encoding[p]], abs=0.0051)
    cells = [td.get_text() for td in soup.table.find_all("td")]
    similar = similarity(explorer)[63 - p : 127 - p]
    for column, wanted in enumerate((np.arange(64) - p, similar, scores[p])):
        close(numbers(" ".join(cells[column::3])), wanted, 0.0051)
    assert "−0.00" not in soup.get_text()


def raster(sheet, shape):
    """The shades of a heatmap, painted from its paths."""
    shades = np.zeros(shape)
    for path in sheet.select(".cells path"):
        for x, y, length in re.findall(r"M(\d+) (\d+)v(\d+)", path["d"]):
            cells = shades[int(y) : int(y) + int(length), int(x)]
            assert not cells.any()
            cells[:] = float(path["opacity"])
    return shades


def points(path):
    """The corners of a curve in its plot, left at 38 and 192 wide, 6 from top and floor."""
    x, y = np.array([numbers(corner) for corner in path["d"][1:].split("L")]).T
    return (x - 38) * 126 / 192 - 63, (y - 16) / 180


def assert_drawn(soup, explorer):
    """The heatmaps have the shades of the numbers, the curve has their heights."""
    kind, p = explorer.kind, explorer.position
    encoding, curve, scores = soup.find_all("svg")
    step = 0.5 / 16 + 0.006  # 16 shades, written with two decimals

    def scaled(x):
        return (x - x.min()) / np.ptp(x) if np.ptp(x) > 1e-9 else np.full(x.shape, 0.5)

    heats = [(scores, scaled(explorer.scores))]
    if kind == "sinusoidal":
        heats.append((encoding, (encoding_of(explorer) + 1) / 2))
    elif kind in ("alibi", "relative"):
        heats.append((encoding, scaled(bias_of(explorer)[:, p])))
    for sheet, wanted in heats:
        close(raster(sheet, wanted.shape), wanted, step)
    high, low = {
        "sinusoidal": (explorer.d_model / 2, -explorer.d_model / 2),
        "alibi": (0, -32),
        "relative": (2, -6),
    }.get(kind, (1, -1))
    x, y = points(curve.select_one("[data-part=curve]"))
    close(x, np.arange(-63, 64), 0.04)
    close(high - y * (high - low), similarity(explorer), 4e-4 * (high - low))
    reach, _ = points(curve.select_one("[data-part=reach]"))
    close(reach, np.arange(64) - p, 0.04)
    assert bool(curve.select("[data-part=others]")) == (kind in ("alibi", "relative"))

    hands = re.findall(
        r"l(\S+) ([^M]+)", "".join(h["d"] for h in encoding.select("[data-part=hands]"))
    )
    pairs = encoding_of(explorer)[p].reshape(-1, 2) if kind == "rotary" else np.empty((0, 2))
    radius = 0.42 * 192 / math.ceil(math.sqrt(explorer.d_model / 2))
    hands = np.array(hands, float).reshape(-1, 2) * [1, -1] / radius
    close(hands, pairs, 0.006 / radius)


def test_what_the_kind_does_not_need_is_disabled():
    soup = picture(PositionsExplorer(kind="alibi", position=20, head=2))
    assert [control["name"] for control in soup.select("input[disabled]")] == ["d_model", "base"]


def test_the_base_stands_at_the_nearest_stop_and_is_said_exactly():
    slider = picture(PositionsExplorer(base=321.5)).select_one("[name=base]")
    assert (slider["value"], slider["aria-valuetext"]) == ("7", "321.5")  # 500, by its logarithm
    ends = [picture(PositionsExplorer(base=base)).select_one("[name=base]") for base in (2, 1e6)]
    assert [end["value"] for end in ends] == ["0", ends[1]["max"]]
    assert ends[1]["aria-valuetext"] == "1000000"


@every(PositionsExplorer, examples=15)
def test_what_moves_and_its_copied_code_are_what_attnlib_computes(explorer):
    found = js(explorer, "scenes(state)")
    outputs, weights = explorer.outputs
    places = [2, 1, 0] if explorer.swapped else [0, 1, 2]
    positions = attnlib.sinusoidal_positions(3, 4, base=explorer.base)[places]
    inputs = np.array(ROWS) + explorer.placed * positions
    for name, wanted in (("inputs", inputs), ("weights", weights), ("outputs", outputs)):
        close(found["order"][name], wanted)
    assert found["clocks"]["match"] == pytest.approx(clock_match(explorer), abs=1e-9)
    first = [[math.sin(hand["from"]), math.cos(hand["from"])] for hand in found["clocks"]["pairs"]]
    encoding = attnlib.sinusoidal_positions(64, explorer.d_model, base=explorer.base)
    close(np.ravel(first), encoding[explorer.position])
    pairs = found["turned"]["pairs"]
    for name, wanted in zip(("query", "key"), turned(explorer), strict=True):
        entries = np.ravel([pair[name] for pair in pairs])
        close(entries, wanted[: len(entries)])
    query, key = turned(explorer)
    assert found["turned"]["score"] == pytest.approx(query @ key, abs=1e-9)
    names = run(js(explorer, "code(state)"))
    for scene, name, wanted in (
        ("order", "outputs", outputs),
        ("clocks", "match", clock_match(explorer)),
        ("turned", "score", query @ key),
    ):
        if explorer.scene == scene:
            close(names[name], wanted)


def test_no_output_changes_when_dog_and_man_are_swapped_without_positions():
    dog_first, man_first = (PositionsExplorer(scene="order", swapped=it) for it in (False, True))
    close(dog_first.outputs[0], man_first.outputs[0], 1e-12)
    assert "The order is lost" in picture(man_first).select_one(".verdict").get_text()
    dog_first.placed = man_first.placed = True
    assert np.abs(dog_first.outputs[0] - man_first.outputs[0]).max() > 0.3
    soup = picture(man_first)
    assert "The order is noticed" in soup.select_one(".verdict").get_text()
    close([numbers(cell) for cell in texts(soup, ".outs td")], man_first.outputs[0], 0.0051)


def tips(sheet, part):
    """Where the arrows of that part end, (arrows, 2): the first corner of each head."""
    ends = [re.search(r"M[^M]+M(\S+) ([^L]+)L", path["d"]) for path in sheet.select(part)]
    return np.array([end.groups() for end in ends], float)


@every(PositionsExplorer, examples=15)
def test_hands_point_where_the_encoding_says(explorer):
    explorer.scene = "clocks"
    soup = picture(explorer)
    shown = min(4, explorer.d_model // 2)
    encoding = attnlib.sinusoidal_positions(80, explorer.d_model, base=explorer.base)
    middles = np.array([[42 + 172 * (i % 2), 72 + 96 * (i // 2)] for i in range(shown)])
    for hand, at in (("from", explorer.position), ("to", explorer.position + explorer.distance)):
        way = (tips(soup, f"[data-part={hand}]") - middles) * [1, -1] / (0.94 * 40)
        up_and_right = encoding[at].reshape(-1, 2)[:shown]  # sine and cosine
        close(way, up_and_right[:, ::-1], 0.005)
    match = part(soup, "match")
    assert numbers(match) == pytest.approx([clock_match(explorer)], abs=0.0051)


def test_half_way_is_true_too():
    """A quarter of the way on, the words stand where they stand, with what is added there."""
    halfway = js(PositionsExplorer(scene="order"), "scenes(state)", moving=[[0.25, 1, 3, 2]])
    assert halfway["order"]["places"] == [0.5, 1, 1.5]
    dog = np.array([2, 0, 1, 0]) + np.array([math.sin(0.5), math.cos(0.5), 0.005, 1])
    close(halfway["order"]["inputs"][0], dog, 1e-4)
    walked = js(PositionsExplorer(scene="clocks"), "scenes(state)", moving=[[0, 0, 3.5, 2]])
    assert walked["clocks"]["pairs"][0]["from"] == 3.5
