"""ParityAtlas: the rows of the parity atlas, to be filtered and sorted."""

import traitlets

from attnlib import atlas
from attnlib.widgets.core import CourseWidget

# What is chosen, and from what.
FILTERS = {
    "function": tuple(atlas.FUNCTIONS),
    "mode": atlas.MODES,
    "need_weights": ("True", "False"),
    "mask": tuple(atlas.MASKS),
    "verdict": ("agree", "NaN", "other numbers", "random"),
}
# The columns that are shown. The two dtypes tell in a word where there is no number to tell.
COLUMNS = tuple(name for name in atlas.COLUMNS if name != "rows")


def _choice(name):
    return traitlets.Enum(["all", *FILTERS[name]], "all").tag(sync=True)


class ParityAtlas(CourseWidget):
    """The parity atlas: what torch does in every mode, held against attnlib.

    Parameters
    ----------
    function, mode, need_weights, mask, verdict : str
        Show the rows of this choice alone; "all" for every row.
    sort : str
        The column to sort by, "" for the order in which the rows are stored.
    descending : bool

    Raises
    ------
    traitlets.TraitError
        For a choice or a column that does not exist.
    """

    function = _choice("function")
    mode = _choice("mode")
    need_weights = _choice("need_weights")
    mask = _choice("mask")
    verdict = _choice("verdict")
    sort = traitlets.Enum(["", *COLUMNS], "").tag(sync=True)
    descending = traitlets.Bool(False).tag(sync=True)
    choices = traitlets.Dict(read_only=True).tag(sync=True)
    rows = traitlets.List(read_only=True).tag(sync=True)

    @traitlets.default("choices")
    def _name_choices(self):
        return {name: list(values) for name, values in FILTERS.items()}

    @traitlets.default("rows")
    def _read_rows(self):
        """All rows: the texts of their cells, what they come to, and the cells that part."""
        return [
            {"cells": _cells(row), "verdict": atlas.verdict(row), "parts": _parts(row)}
            for row in atlas.read()
        ]


def _words(row):
    """What a row says of each dtype, of padded and of empty rows, by column."""
    narrow, *wide = row["rows"].split("; in float64 ")
    said = dict(zip(atlas.DTYPES, (narrow, *wide, narrow), strict=False))
    return said | {name: row[name] for name in ("padded rows", "empty rows")}


def _cells(row):
    """The texts of one row, column by column."""
    said = _words(row)
    return [row[name] or said.get(name, "") for name in COLUMNS]


def _parts(row):
    """The places of the cells in which torch and attnlib part."""
    said = _words(row)
    return [i for i, name in enumerate(COLUMNS) if said.get(name, "") not in atlas.AGREE]
