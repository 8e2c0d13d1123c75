"""ParityAtlas: a grid of functions and masks, colored by what each case comes to."""

import traitlets

from attnlib import atlas
from attnlib.widgets.kit.base import CourseWidget

WEIGHTS = {"True": " with weights", "False": " without weights"}
# The rows of the grid; nn.MultiheadAttention has two.
FUNCTIONS = tuple(
    function + word
    for function in atlas.FUNCTIONS
    for word in (WEIGHTS.values() if function == atlas.ATTENTION else ("",))
)


class ParityAtlas(CourseWidget):
    """The parity atlas: what torch does in every mode, held against attnlib.

    Parameters
    ----------
    function, mask : str
        The cell that is looked at, one of FUNCTIONS and one of `attnlib.atlas.MASKS`.
    mode : str
        The mode of all cells, one of `attnlib.atlas.MODES`.
    outcome : str
        Shows the cells of this outcome alone; "all" for every cell.

    Raises
    ------
    traitlets.TraitError
        For a choice that does not exist.
    """

    function = traitlets.Enum([*FUNCTIONS], atlas.ENCODER).tag(sync=True)
    mask = traitlets.Enum([*atlas.MASKS], "ALiBi bias").tag(sync=True)
    mode = traitlets.Enum([*atlas.MODES], "no_grad").tag(sync=True)
    outcome = traitlets.Enum(["all", *atlas.OUTCOMES], "all").tag(sync=True)
    choices = traitlets.Dict(read_only=True).tag(sync=True)
    rows = traitlets.List(read_only=True).tag(sync=True)

    @traitlets.default("choices")
    def _name_choices(self):
        names = {"functions": FUNCTIONS, "masks": atlas.MASKS, "modes": atlas.MODES}
        return {name: list(values) for name, values in names.items()}

    @traitlets.default("rows")
    def _read_rows(self):
        """Every stored row: its function, mask and modes, what it comes to, its words, a source."""
        return [
            [
                row["function"] + WEIGHTS.get(weights, ""),
                row["mask"],
                row["mode"].split(", "),
                atlas.outcome(row),
                *(row[name] for name in ("path", *atlas.WORDS, *atlas.DTYPES, "error")),
                atlas.source(row),
            ]
            for row in atlas.read()
            for weights in row["need_weights"].split(", ")
        ]
