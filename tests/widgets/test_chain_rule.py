"""ChainRule: numbers and slopes, in Python, in JavaScript and in the picture."""

import pytest
import torch

from attnlib.widgets import ChainRule
from tests.widgets.pictures import js, numbers, part, picture, run
from tests.widgets.samples import every


def shown(rule):
    """The slopes that the picture shows, by the letters of their boxes."""
    marks = picture(rule).select("[data-slope]")
    return {mark["data-slope"]: numbers(mark.get_text())[0] for mark in marks}


def test_the_stall_by_hand():
    """At 10, a cup brings 6 and 50 are sold; 1 · 50 - 5 · 6 = 20."""
    rule = ChainRule()
    assert rule.values == {"x": 10, "y": 6, "u": 50, "L": 300}
    assert rule.slopes == {"x": 20, "y": 50, "u": 6, "L": 1}
    assert ChainRule(price=12).slopes["x"] == 0
    assert part(picture(ChainRule(back=3)), "really") == "1.95"
    assert part(picture(ChainRule(back=3)), "predicted") == "2"


@every(ChainRule)
def test_values_and_slopes_are_those_of_torch(rule):
    start = rule.price if rule.scene == "stall" else rule.parameter
    start = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    if rule.scene == "stall":
        boxes = {"x": start, "y": start - 4, "u": 100 - 5 * start}
        boxes["L"] = boxes["y"] * boxes["u"]
    else:
        boxes = {"w": start, "z": 2 * start}
        boxes["p"] = torch.stack([boxes["z"], torch.zeros(()).double()]).softmax(0)[0]
        boxes["L"] = -boxes["p"].log()
    slopes = torch.autograd.grad(boxes["L"], list(boxes.values()))
    found = js(rule, "compute(state)")
    for (name, box), slope in zip(boxes.items(), slopes, strict=True):
        assert rule.values[name] == pytest.approx(box.item(), abs=1e-9)
        assert rule.slopes[name] == pytest.approx(slope.item(), abs=1e-9)
        assert found["values"][name] == pytest.approx(box.item(), abs=1e-9)
        assert found["slopes"][name] == pytest.approx(slope.item(), abs=1e-9)
    names = run(js(rule, "code(state)"))
    assert names["L"] == pytest.approx(rule.values["L"])
    first = next(iter(boxes))
    assert names[f"d{first}"] == pytest.approx(rule.slopes[first], abs=1e-9)


@every(ChainRule)
def test_the_picture_shows_its_slopes_from_the_end_to_the_beginning(rule):
    found = shown(rule)
    rows = {"stall": ["L", "yu", "x"], "model": ["L", "p", "z", "w"]}[rule.scene]
    assert set(found) == set("".join(rows[: rule.back]))
    for name, number in found.items():
        assert number == pytest.approx(rule.slopes[name], abs=6e-4)
