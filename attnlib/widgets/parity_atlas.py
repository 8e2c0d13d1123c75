"""ParityAtlas: the rows of the parity atlas, to be filtered and sorted."""

import re
from html import escape

import traitlets

from attnlib import atlas
from attnlib.widgets.base import CourseWidget, esm
from attnlib.widgets.still import element, options

# What is chosen, and what the choice is called.
FILTERS = {
    "function": ("Function", tuple(atlas.FUNCTIONS)),
    "mode": ("Mode", atlas.MODES),
    "need_weights": ("need_weights", ("True", "False")),
    "mask": ("Mask", tuple(atlas.MASKS)),
    "verdict": ("Outcome", ("agree", "NaN", "other numbers", "random")),
}
# The columns that are shown. The two dtypes tell in a word where there is no number to tell.
COLUMNS = {
    "function": "Function",
    "mode": "Mode",
    "need_weights": "need_weights",
    "mask": "Mask",
    "path": "Path",
    "float32": "Δ float32",
    "float64": "Δ float64",
    "padded rows": "Padded rows",
    "empty rows": "Empty rows",
}
NUMBERS = ("float32", "float64")


def words(row):
    """What a row says of each dtype, of padded and of empty rows, by column."""
    narrow, *wide = row["rows"].split("; in float64 ")
    said = dict(zip(NUMBERS, (narrow, *wide, narrow), strict=False))
    return said | {name: row[name] for name in ("padded rows", "empty rows")}


def cells(row):
    """The texts of one row, by column."""
    said = words(row)
    return {name: row[name] or said.get(name, "") for name in COLUMNS}


def order(text):
    """What a text is sorted by: numbers first, then words, then nothing."""
    if not text:
        return 2, 0.0, ""
    return (0, float(text), "") if text[0].isdigit() else (1, 0.0, text)


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

    _esm = esm("parity_atlas")
    _name = "atlas"
    _label = "Parity atlas"
    _shown = (*FILTERS, "sort", "descending")

    function = traitlets.Enum(["all", *FILTERS["function"][1]], "all").tag(sync=True)
    mode = traitlets.Enum(["all", *FILTERS["mode"][1]], "all").tag(sync=True)
    need_weights = traitlets.Enum(["all", *FILTERS["need_weights"][1]], "all").tag(sync=True)
    mask = traitlets.Enum(["all", *FILTERS["mask"][1]], "all").tag(sync=True)
    verdict = traitlets.Enum(["all", *FILTERS["verdict"][1]], "all").tag(sync=True)
    sort = traitlets.Enum(["", *COLUMNS], "").tag(sync=True)
    descending = traitlets.Bool(False).tag(sync=True)

    @property
    def rows(self):
        """The rows in view, in order: dicts of text, as `atlas.read` gives them."""
        return [row for row in self._sorted() if self._fits(row)]

    def _sorted(self):
        rows = atlas.read()
        if self.sort:
            rows.sort(key=lambda row: order(cells(row)[self.sort]), reverse=self.descending)
        return rows

    def _fits(self, row):
        found = row | {"verdict": atlas.verdict(row)}
        chosen = {name: getattr(self, name) for name in FILTERS}
        return all(
            choice == "all" or choice in found[name].split(", ") for name, choice in chosen.items()
        )

    def _html(self):
        selects = "".join(
            element(
                "label",
                element("span", title)
                + element(
                    "select",
                    options([(name, name) for name in ("all", *names)], getattr(self, trait)),
                    name=trait,
                ),
            )
            for trait, (title, names) in FILTERS.items()
        )
        count = element(
            "p",
            f"{len(self.rows)} of {len(atlas.read())} rows",
            class_="count",
            role="status",
            data_part="count",
        )
        buttons = element("button", "Copy as Python", type="button", name="copy")
        buttons += element("button", "Reset", type="button", name="reset")
        scrolled = element(
            "div",
            # The roles, because a phone shows each row as a card and no longer as a table.
            element("table", self._head() + self._body(), role="table"),
            class_="scroll",
            role="region",
            aria_label="Rows of the atlas",
            tabindex=0,
        )
        return (
            element("div", selects, class_="filters")
            + element("div", count + element("div", buttons, class_="buttons"), class_="answer")
            + scrolled
        )

    def _head(self):
        caption = element(
            "caption",
            "attnlib against torch: the largest difference, or what torch gives instead",
            class_="visually-hidden",
        )
        heads = "".join(
            element(
                "th",
                element("button", title.replace("_", "_<wbr>"), type="button", data_sort=name),
                scope="col",
                role="columnheader",
                aria_sort=name == self.sort and ("descending" if self.descending else "ascending"),
            )
            for name, title in COLUMNS.items()
        )
        return caption + element("thead", element("tr", heads, role="row"), role="rowgroup")

    def _body(self):
        lines = (
            element(
                "tr",
                _line(row),
                role="row",
                hidden=not self._fits(row),
                data_verdict=atlas.verdict(row),
                data_place=place,
            )
            for place, row in self._placed()
        )
        return element("tbody", "".join(lines), role="rowgroup")

    def _placed(self):
        """The sorted rows, each with its place among the stored ones."""
        stored = atlas.read()
        return ((stored.index(row), row) for row in self._sorted())


def _cell(text, parts):
    """A cell; a long name may break after an underscore or before a capital, no_grad may not."""
    broken = re.sub("(_(?!grad)|(?<=[a-z])(?=[A-Z]))", r"\1<wbr>", escape(text))
    broken = broken.replace("-inf", '<span class="whole">-inf</span>')
    return element("td", broken, role="cell", class_="parts" if parts else False)


def _line(row):
    """The cells of a row; those in which torch and attnlib part are marked."""
    said = words(row)
    return "".join(
        _cell(text, said.get(name, "") not in atlas.AGREE) for name, text in cells(row).items()
    )
