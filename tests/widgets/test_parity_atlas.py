"""ParityAtlas: its grid, the row of each cell, the calls that show it again."""

import warnings
from collections import Counter

import pytest
import torch

from attnlib import atlas
from attnlib.widgets import ParityAtlas
from attnlib.widgets import parity_atlas as module
from tests.widgets.pictures import js, picture, texts
from tests.widgets.samples import every

SIGNS = {
    "equal": "=", "zero weights": "0", "equal weights": "1/n", "NaN": "NaN", "other numbers": "≠",
    "random": "~", "refused": "×", None: "",
}  # fmt: skip
CASES = {
    (case["function"] + module.WEIGHTS.get(str(case["need_weights"]), ""), case["mask"])
    for case in atlas.cases()
}
STORED = {
    (row["function"] + module.WEIGHTS.get(weights, ""), row["mask"], mode): row
    for row in atlas.read()
    for weights in row["need_weights"].split(", ")
    for mode in row["mode"].split(", ")
}


def outcome(*place):
    """Of a cell, None where the function has no such argument."""
    row = STORED.get(place)
    return row and atlas.outcome(row)


def buttons(soup):
    """The grid of the picture: {(function, mask): button}."""
    rows = soup.select(".grid tr")[1:]
    return {
        (function, mask): button
        for function, row in zip(module.FUNCTIONS, rows, strict=True)
        for mask, button in zip(atlas.MASKS, row.select("button"), strict=True)
    }


@pytest.mark.parametrize("mode", atlas.MODES)
def test_each_cell_has_the_sign_of_what_was_measured(mode):
    soup = picture(ParityAtlas(mode=mode))
    for (function, mask), button in buttons(soup).items():
        assert button.get_text() == SIGNS[outcome(function, mask, mode)], (function, mask)
        assert (outcome(function, mask, mode) is None) == ((function, mask) not in CASES)
        # A dot says that the mode matters.
        several = {outcome(function, mask, mode) for mode in atlas.MODES if mode != "train"}
        assert ("varies" in button["class"]) == (len(several) > 1)
    counts = Counter(outcome(*place, mode) for place in buttons(soup))
    for button in soup.select("[name=outcome]"):
        assert int(button.select_one(".number").get_text()) == counts[button["value"]]


@every(ParityAtlas, examples=10)
def test_the_picture_says_what_the_stored_row_says(widget):
    row = STORED.get((widget.function, widget.mask, widget.mode))
    soup = picture(widget)
    told = dict(texts(line, ":scope > span") for line in soup.select(".facts p"))
    if row is None:
        assert told.pop("tokens") == "no such argument" and set(told.values()) == {"–"}
        assert soup.select_one("pre").get_text() == ""
    elif row["error"]:
        assert told["tokens"] == f"refused: {row['error']}" and told["program"] == "–"
    else:
        assert ("fast" in told["program"]) == (row["path"] == "fast")
        assert (told["padding"] != "–") == bool(row["padded rows"])
        assert (told["empty rows"] != "–") == bool(row["empty rows"])
    links = [a["href"] for a in soup.select("a")]
    thread = row and atlas.source(row)
    assert links == ([f"https://github.com/pytorch/pytorch/{thread}"] if thread else [])
    grid = buttons(soup)
    faded = {place for place, button in grid.items() if "faded" in button["class"]}
    chosen = widget.outcome
    assert faded == {
        place for place in grid if chosen != "all" and outcome(*place, widget.mode) != chosen
    }


@pytest.mark.parametrize("mode", atlas.MODES)
@pytest.mark.parametrize("function", module.FUNCTIONS)
def test_the_call_shows_what_the_cell_says(function, mode, capsys):
    """PyTorch runs it: an error, NaN or chance where the atlas says so, and nowhere else."""
    switched = torch.backends.mha.get_fastpath_enabled()
    widget = ParityAtlas(function=function, mode=mode)
    # To compile flex_attention takes a second: each mode gets a third of its masks.
    third = list(atlas.MASKS)[atlas.MODES.index(mode) % 3 :: 3]
    for mask in third if function == "flex_attention" else atlas.MASKS:
        lines = js(widget, "pythonCode(state)", mask=mask)
        row = STORED.get((function, mask, mode))
        assert bool(lines) == (row is not None)
        assert max(map(len, lines), default=0) <= 76
        if row is None:
            continue
        names, code = {}, "\n".join(lines)
        torch.compiler.reset()  # it keeps what it learned of the names of the call before
        try:
            with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
                warnings.simplefilter("ignore")
                exec(code, names)
        except (RuntimeError, NotImplementedError) as error:
            assert atlas.outcome(row) == "refused" and str(error).startswith(row["error"])
            continue
        finally:
            torch.backends.mha.set_fastpath_enabled(switched)
        said = atlas.outcome(row)
        output = names["output"]
        assert output.isnan().any() == (said == "NaN"), (mask, code)
        if said == "random":
            assert not torch.equal(output, names["run"]())
        if row["rows"] == "as if unmasked":
            assert torch.equal(output, names["plain"])
        elif said == "other numbers":
            assert (output - names["run"]()).abs().max() > 0.01  # with gradients, on the other path
    assert "0: no mask" not in capsys.readouterr().out
