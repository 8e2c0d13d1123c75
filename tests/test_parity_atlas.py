"""ParityAtlas: its choices, the order of its rows, its picture."""

import gzip

import pytest
import traitlets
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import atlas
from attnlib.widgets import ParityAtlas
from attnlib.widgets import parity_atlas as python

property_test = settings(deadline=None, derandomize=True, max_examples=40)
choices = st.fixed_dictionaries(
    {
        **{name: st.sampled_from(["all", *names]) for name, (_, names) in python.FILTERS.items()},
        "sort": st.sampled_from(["", *python.COLUMNS]),
        "descending": st.booleans(),
    }
)


def picture(**traits):
    return BeautifulSoup(ParityAtlas(**traits)._picture(), "html.parser")


def texts(rows):
    return [[cell.get_text() for cell in row.select("td")] for row in rows]


def test_every_row_is_in_the_page_before_any_javascript():
    page = picture()
    assert texts(page.select("tbody tr")) == [
        list(python.cells(row).values()) for row in atlas.read()
    ]
    assert page.select("tr[hidden]") == []
    assert (
        page.select_one(".count").get_text() == f"{len(atlas.read())} of {len(atlas.read())} rows"
    )
    assert len(page.select("thead th")) == len(python.COLUMNS)


def test_what_a_reader_looks_for_is_found():
    atlas_ = ParityAtlas(function="nn.MultiheadAttention", mask="empty row", mode="no_grad")
    (row,) = atlas_.rows
    assert row["need_weights"] == "True, False" and row["empty rows"] == "NaN"
    assert {row["path"] for row in ParityAtlas(verdict="NaN", need_weights="False").rows} == {
        "fast"
    }
    (row,) = ParityAtlas(function="nn.TransformerEncoder", mode="no_grad", mask="padding").rows
    assert row["padded rows"] == "zero output"
    assert {row["mode"] for row in ParityAtlas(verdict="random").rows} == {"train"}


@property_test
@given(traits=choices)
def test_rows_are_those_chosen_and_in_order(traits):
    widget = ParityAtlas(**traits)
    kept = [
        row
        for row in atlas.read()
        if all(
            traits[name] in ("all", *row.get(name, atlas.verdict(row)).split(", "))
            for name in python.FILTERS
        )
    ]
    assert sorted(map(str, widget.rows)) == sorted(map(str, kept))
    if traits["sort"]:
        keys = [python.order(python.cells(row)[traits["sort"]]) for row in widget.rows]
        assert keys == sorted(keys, reverse=traits["descending"])
    else:
        assert widget.rows == kept
    page = picture(**traits)
    shown = page.select("tbody tr:not([hidden])")
    assert texts(shown) == [list(python.cells(row).values()) for row in widget.rows]
    assert page.select_one(".count").get_text() == f"{len(kept)} of {len(atlas.read())} rows"


def test_numbers_come_before_words_and_nothing_last():
    texts = ["", "random", "1.0e-06", "NaN", "9.0e-07"]
    assert sorted(texts, key=python.order) == ["9.0e-07", "1.0e-06", "NaN", "random", ""]


def test_a_word_stands_where_there_is_no_number():
    row = dict.fromkeys(atlas.COLUMNS, "")
    both = {"float32": "7.2e-07", "float64": "3.2e-09"}
    told = {
        "equal": ("equal", "equal"),
        "differ": ("differ", "differ"),
        "equal; in float64 differ": ("equal", "differ"),
    }
    for word, expected in told.items():
        words, cells = (make(row | both | {"rows": word}) for make in (python.words, python.cells))
        assert (words["float32"], words["float64"]) == expected
        assert (cells["float32"], cells["float64"]) == tuple(both.values())
    cells = python.cells(row | {"rows": "NaN"})
    assert (cells["float32"], cells["float64"]) == ("NaN", "NaN")


def test_every_outcome_has_rows_and_a_name():
    found = [atlas.verdict(row) for row in atlas.read()]
    assert set(found) == set(python.FILTERS["verdict"][1])


def test_cells_that_part_are_marked():
    marked = {cell.get_text() for cell in picture().select("td.parts")}
    words = {text for text in marked if not text[0].isdigit()}
    assert words == {
        "random",
        "NaN",
        "zero output",
        "equal shares; in float64 as if unmasked",
    }
    assert min(map(float, marked - words)) > 1e-10  # only where the sides differ
    (cell,) = picture(mask="padding", mode="no_grad").select("tr:not([hidden]) td.parts")
    assert cell.get_text() == "zero output"


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
    assert widget._picture() == ParityAtlas(mask="padding", sort="path", descending=True)._picture()
    with pytest.raises(TypeError, match="takes function, mode"):
        ParityAtlas(rows=[])


def test_the_rows_are_a_light_load():
    assert len(gzip.compress(ParityAtlas()._picture().encode())) < 10_000
