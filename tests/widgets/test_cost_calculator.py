"""CostCalculator: its counts, held against what NumPy does, its words, its errors."""

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import example
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import CostCalculator
from attnlib.widgets.cost_calculator import KINDS
from tests.widgets.pictures import close, js, part, picture, run
from tests.widgets.samples import every

SIZES = {"n": 13, "d_model": 30, "n_heads": 6, "n_layers": 7, "bytes": 4, "width": 2, "group": 3}


def longest(calculator):
    """The most tokens whose weights and cache fit into the memory, up to 2^40."""

    def needed(n):
        found = calculator.at(n)
        return found["weights"] + found["cache"]

    return bisect_right(range(1, 2**40 + 1), calculator.memory * 1e9, key=needed)


def costs(**sizes):
    return js(CostCalculator(**sizes), "compute(state)")


@every(CostCalculator)
@example(CostCalculator(kind="linear"))  # 2^40
@example(CostCalculator(memory=1e-6))  # none
def test_javascript_and_copied_code_count_what_python_counts(calculator):
    expected = calculator.at(calculator.n)
    assert js(calculator, "compute(state)") == pytest.approx(expected, rel=1e-12)
    assert js(calculator, "longest(state)") == longest(calculator)
    names = run(js(calculator, "code(state)"))
    for name, value in expected.items():
        assert names[name] == pytest.approx(value, rel=1e-12), name
    fits = part(picture(calculator), "fits") == "this text does"
    assert names["printed"][-1] == f"fits: {fits}"


def test_chai_piyo_times_the_output_projection():
    """The chapter counts 48 + 16 multiplications; here W_O is counted too, and additions."""
    found = costs(n=2, d_model=4, n_heads=1, n_layers=1, group=1)
    assert found["attention"] == 2 * (2 * 2 * 4 + 2 * 2 * 4)
    assert found["projections"] == 2 * 4 * (2 * 4 * 4)


def test_full_attention_is_counted_as_the_products_are():
    n, d, h, layers = 13, 30, 6, 7
    layer = attnlib.EncoderLayer.init(d, h, 4 * d, np.random.default_rng(0))
    found = costs(**SIZES)
    w, network = layer.attention, layer.feed_forward
    weights = (w.w_q, w.w_k, w.w_v, w.w_o)
    assert found["projections"] == 2 * n * sum(weight.size for weight in weights)
    assert found["feed_forward"] == 2 * n * (network.w_1.size + network.w_2.size)
    _, a = layer(np.zeros((n, d), np.float32))
    assert found["weights"] == a.nbytes
    assert found["attention"] == 2 * (2 * a.size * d // h)
    keys = attnlib.split_heads(np.zeros((n, d), np.float32), h)
    assert found["cache"] == layers * 2 * keys.nbytes


def test_scores_and_blend_overtake_as_the_chapter_says():
    found = costs(n=2 * 512)
    assert found["attention"] == found["projections"]
    found = costs(n=6 * 512)
    assert found["attention"] == found["projections"] + found["feed_forward"]


@every(st.integers(1, 60), st.integers(0, 70))
def test_a_window_meets_as_many_keys_as_its_mask_allows(n, width):
    found = costs(n=n, kind="window", width=width, n_heads=2, group=1, bytes=1)
    assert found["weights"] == 2 * attnlib.window_mask(n, width).sum()


def test_the_other_kinds_by_hand():
    full = costs(**SIZES)
    grouped = costs(**SIZES, kind="grouped")
    assert grouped["cache"] == full["cache"] / 3 and grouped["weights"] == 13 * 13 * 4  # one block
    assert grouped["projections"] == 2 * 13 * 30 * (30 + 10 + 10 + 30)
    blockwise = costs(**SIZES | {"n": 1000}, kind="blockwise")
    assert blockwise["weights"] == 128 * 1000 * 4
    assert blockwise["attention"] == costs(**SIZES | {"n": 1000})["attention"]
    linear = costs(**SIZES, kind="linear")
    assert linear["weights"] == 6 * 5 * 5 * 4 and linear["cache"] == 7 * 6 * 5 * 5 * 4
    assert linear["attention"] == 6 * (2 * 13 * 5 * 5 + 2 * 13 * 5 * 5)
    window = costs(**SIZES, kind="window")
    assert window["weights"] == 6 * 4 * (13 * 5 - 6) and window["cache"] == 7 * 2 * 3 * 30 * 4


def test_flops_for_each_byte_by_hand():
    """13 queries and keys, 6 heads of 5 numbers of 4 bytes; in the limit `eq-cost-intensity`."""
    flops, rows = 4 * 13 * 13 * 30, 13 * 30
    full = costs(**SIZES)
    assert full["reading"] == flops / (4 * (4 * rows + 4 * 6 * 13 * 13))
    assert full["writing"] == 4 * 13 * 30 / (4 * (2 * 30 + 2 * rows))
    grouped = costs(**SIZES, kind="grouped")
    assert grouped["reading"] == flops / (4 * (2 * rows + 2 * rows / 3))
    assert grouped["writing"] == 4 * 13 * 30 / (4 * (2 * 30 + 2 * rows / 3))
    three_blocks = costs(**SIZES | {"n": 300}, kind="blockwise")
    assert three_blocks["reading"] == 4 * 300 * 300 * 30 / (4 * 300 * 30 * (2 + 2 * 3))
    long = costs(n=2**20, bytes=2, kind="grouped", group=4)
    assert long["reading"] == pytest.approx(2 * 128 * 4 / 2, rel=0.01)
    assert long["writing"] == pytest.approx(2 * 4 / 2, rel=0.01)
    linear = costs(**SIZES, kind="linear")
    assert linear["writing"] == 6 * 4 * 5 * 5 / (4 * (2 * 30 + 2 * 6 * 5 * 5))


def test_amounts_in_words():
    amounts = {0: "0 B", 999: "999 B", 1000: "1.00 kB", 2147483648: "2.15 GB"}
    amounts |= {999_600: "1000 kB", 1e22: "10000 EB"}
    for number, words in amounts.items():
        assert js(CostCalculator(), f"amount({number}, 'B')") == words


@every(CostCalculator)
def test_the_drawing_shows_where_this_text_and_this_work_stand(calculator):
    soup = picture(calculator)
    roof, sheet = soup.select_one("[data-part=roof]"), soup.select_one("[data-part=memories]")
    assert "e+" not in str(sheet) + str(roof)
    found = calculator.at(calculator.n)
    [memory], dots = sheet.find_all("circle"), roof.find_all("circle")
    n, held = np.log2(calculator.n), np.log10(found["weights"] + found["cache"])
    wanted = [(52 + 236 * np.clip((n - 7) / 13, 0, 1), 210 - 180 * np.clip((held - 5) / 9, 0, 1))]
    for work in ("reading", "writing"):
        share = min(1, found[work] / (989.4e12 / 3.35e12))  # an H100
        right = np.clip((np.log2(found[work]) + 2) / 14, 0, 1)
        wanted.append((52 + 300 * right, 36 - 40 * max(np.log10(share), -3)))
    at = [[float(dot[axis]) for axis in ("cx", "cy")] for dot in (memory, *dots)]
    close(at, wanted, 0.006)
    assert [dot["data-dot"] for dot in dots] == ["reading", "writing"]
    curve = sheet.select_one("[stroke-width='2.5']")["d"].strip("M").split("L")
    x, y = np.array([point.split() for point in curve], dtype=float).T
    stops = [calculator.at(round(2 ** (7 + half / 2))) for half in range(27)]
    held = np.log10([max(stop["weights"] + stop["cache"], 1) for stop in stops])
    close(x, np.linspace(52, 288, 27), 0.06)
    close(y, 210 - 180 * np.clip((held - 5) / 9, 0, 1), 0.06)
    # Every kind has its curve, and at its end a name of its own.
    names = ["full", "blocks", "window", "grouped", "linear"]
    ends = {each.get_text(): float(each["y"]) for each in sheet.select("text[x='294']")}
    assert sorted(ends) == sorted(names) and np.diff(sorted(ends.values())).min() > 16.9
    assert sheet.select_one("[font-weight=bold]").get_text() == names[KINDS.index(calculator.kind)]


def test_the_picture_offers_what_the_kind_has():
    soup = picture(CostCalculator())
    assert soup.select_one("option[selected][value='512 8 6']")
    assert all(field.has_attr("hidden") for field in soup.select(".extra label"))
    grouped = picture(CostCalculator(kind="grouped", n_layers=90, memory=1e-3))
    assert len(grouped.select(".extra label:not([hidden])")) == 1
    assert grouped.select_one("[name=model] [selected]").get_text() == "your own"


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("n_heads", "16", ""),
        ("n_heads", "7", "Heads must divide d_model: 512 / 7 is not whole."),
        ("n_heads", "2", "Heads that share must divide the heads: 2 / 4 is not whole."),
        ("d_model", "", "d_model must be a whole number from 1 to 65,536."),
        ("d_model", "1e99", "d_model must be a whole number from 1 to 65,536."),
        ("n_layers", "NaN", "Layers must be a whole number from 1 to 1,024."),
        ("n_layers", "<b>6</b>", "Layers must be a whole number from 1 to 1,024."),
        ("memory", "0.5", ""),
        ("memory", "-1", "Memory must be a number of gigabytes above 0, up to 1,000,000."),
    ],
)
def test_absurd_sizes_get_a_plain_message(name, typed, said):
    assert js(CostCalculator(), f"complaint(state, {name!r}, {typed!r})") == said
