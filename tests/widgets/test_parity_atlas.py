"""ParityAtlas: its choices, the order of its rows, its picture, its code."""

import gzip
import json

import pytest
import traitlets
from hypothesis import given, settings

from attnlib import atlas
from attnlib.widgets import ParityAtlas
from attnlib.widgets import parity_atlas as module
from tests.helpers import steady
from tests.widgets.pictures import drawn, js, picture
from tests.widgets.samples import SAMPLES

some = settings(steady, max_examples=20)


def texts(widget):
    """The rows in view in the picture, as lists of text."""
    rows = picture(widget).select("tbody tr:not([hidden])")
    return [[cell.get_text() for cell in row.select("td")] for row in rows]


def order(text):
    """Numbers first, then words, then nothing."""
    return (not text, not text[:1].isdigit(), float(text) if text[:1].isdigit() else text)


def expected(**traits):
    """The texts of the rows in view, in order."""
    found = [
        module._cells(row)
        for row in atlas.read()
        if all(
            traits.get(name, "all") in ("all", *row.get(name, atlas.verdict(row)).split(", "))
            for name in module.FILTERS
        )
    ]
    if traits.get("sort"):
        column = module.COLUMNS.index(traits["sort"])
        found.sort(key=lambda row: order(row[column]), reverse=traits.get("descending", False))
    return found


def test_every_row_is_in_the_page_before_any_javascript():
    soup, n = picture(ParityAtlas()), len(atlas.read())
    assert texts(ParityAtlas()) == [module._cells(row) for row in atlas.read()]
    assert soup.select("tr[hidden]") == [] and soup.select_one(".none").get_text() == ""
    assert soup.select_one(".count").get_text() == f"{n} of {n} rows"
    heads = [button["data-sort"] for button in soup.select("thead th button")]
    assert heads == list(module.COLUMNS)


def test_what_a_reader_looks_for_is_found():
    mode, weights, path, empty = (
        module.COLUMNS.index(name) for name in ("mode", "need_weights", "path", "empty rows")
    )
    atlas_ = ParityAtlas(function="nn.MultiheadAttention", mask="empty row", mode="no_grad")
    (row,) = texts(atlas_)
    assert row[weights] == "True, False" and row[empty] == "NaN"
    fast = texts(ParityAtlas(verdict="NaN", need_weights="False"))
    assert {row[path] for row in fast} == {"fast"}
    (row,) = texts(ParityAtlas(function="nn.TransformerEncoder", mode="no_grad", mask="padding"))
    assert row[module.COLUMNS.index("padded rows")] == "zero output"
    assert {row[mode] for row in texts(ParityAtlas(verdict="random"))} == {"train"}


@some
@given(widget=SAMPLES[ParityAtlas])
def test_rows_are_those_chosen_and_in_order(widget):
    wanted = expected(**{name: getattr(widget, name) for name in widget._shown})
    assert texts(widget) == wanted
    soup = picture(widget)
    assert soup.select_one(".count").get_text() == f"{len(wanted)} of {len(atlas.read())} rows"
    assert bool(soup.select_one(".none").get_text()) == (not wanted)
    sorted_ = {th.button["data-sort"]: th["aria-sort"] for th in soup.select("th[aria-sort]")}
    direction = "descending" if widget.descending else "ascending"
    assert sorted_ == ({widget.sort: direction} if widget.sort else {})
    for name, values in module.FILTERS.items():
        options = soup.select(f"[name={name}] option")
        assert [option["value"] for option in options] == ["all", *values]
        assert soup.select_one(f"[name={name}] [selected]")["value"] == getattr(widget, name)


def test_numbers_come_before_words_and_nothing_last():
    told = ["", "random", "1.0e-06", "NaN", "9.0e-07"]
    rows = [{"cells": [text], "verdict": "agree", "parts": []} for text in told]
    state = json.dumps({"sort": "function", "rows": rows})
    call = f"compute({{...state, ...{state}}})"
    found = [row["cells"][0] for row in js(ParityAtlas(), call)]
    assert found == ["9.0e-07", "1.0e-06", "NaN", "random", ""]


def test_a_word_stands_where_there_is_no_number():
    row = dict.fromkeys(atlas.COLUMNS, "")
    both = {"float32": "7.2e-07", "float64": "3.2e-09"}
    for word, parts in {
        "equal": [],
        "differ": [5, 6],
        "equal; in float64 differ": [6],
    }.items():
        told = row | both | {"rows": word}
        assert module._cells(told)[5:7] == list(both.values())
        assert module._parts(told) == parts
    assert module._cells(row | {"rows": "NaN"})[5:7] == ["NaN", "NaN"]


def test_every_outcome_has_rows_and_a_name():
    found = [atlas.verdict(row) for row in atlas.read()]
    assert set(found) == set(module.FILTERS["verdict"])


def test_cells_that_part_are_marked():
    marked = {cell.get_text() for cell in picture(ParityAtlas()).select("td.parts")}
    words = {text for text in marked if not text[0].isdigit()}
    assert words == {
        "random",
        "NaN",
        "zero output",
        "equal shares; in float64 as if unmasked",
    }
    assert min(map(float, marked - words)) > 1e-10  # only where the sides differ
    soup = picture(ParityAtlas(mask="padding", mode="no_grad"))
    (cell,) = soup.select("tr:not([hidden]) td.parts")
    assert cell.get_text() == "zero output"


def test_long_names_may_break_and_short_ones_stay_whole():
    soup = picture(ParityAtlas())
    cells = {cell.get_text(): cell.decode_contents() for cell in soup.select("td, th button")}
    assert cells["need_weights"] == "need_<wbr/>weights"
    assert cells["nn.TransformerEncoder"] == "nn.Transformer<wbr/>Encoder"
    assert cells["causal as -inf"] == 'causal as <span class="whole">-inf</span>'
    assert cells["train p=0, eval, no_grad"] == "train p=0, eval, no_grad"


def test_copied_code_measures_what_is_on_the_screen(capsys):
    widget = ParityAtlas(
        function="nn.MultiheadAttention",
        mode="eval",
        need_weights="True",
        mask="empty row",
        verdict="NaN",
    )
    names = {}
    exec("\n".join(js(widget, "pythonCode(state)")), names)
    (found,), (row,) = names["rows"], texts(widget)
    alike = ("function", "mask", "path", "padded rows", "empty rows")
    assert [found[name] for name in alike] == [row[module.COLUMNS.index(name)] for name in alike]
    assert str(found) in capsys.readouterr().out


def test_code_for_every_row_asks_for_all():
    code = "\n".join(js(ParityAtlas(), "pythonCode(state)"))
    compile(code, "copied", "exec")
    assert " if " not in code


@pytest.mark.parametrize(
    "bad", [{"mode": "test"}, {"mask": 1}, {"sort": "rows"}, {"verdict": ""}, {"descending": "no"}]
)
def test_bad_choices_are_refused_and_the_earlier_ones_stay(bad):
    widget = ParityAtlas(mode="eval")
    (name, value), before = *bad.items(), repr(widget)
    with pytest.raises(traitlets.TraitError):
        setattr(widget, name, value)
    assert repr(widget) == before


def test_representation_is_a_call_that_makes_it_again():
    widget = ParityAtlas(mask="padding", sort="path", descending=True)
    assert repr(eval(repr(widget))) == repr(widget)
    with pytest.raises(TypeError, match="takes function, mode"):
        ParityAtlas(rows=[])


def test_the_rows_are_a_light_load():
    widget = ParityAtlas()
    assert len(gzip.compress((drawn(widget) + json.dumps(widget.state)).encode())) < 10_000
