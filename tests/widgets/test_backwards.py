"""Backwards: its slopes against attnlib, torch and nudges, its picture, its errors."""

import numpy as np
import pytest
import torch

from attnlib.widgets import Backwards
from attnlib.widgets import backwards as module
from tests.widgets.pictures import close, js, numbers, picture, run
from tests.widgets.samples import every


def test_chai_piyo_by_hand():
    walk = Backwards()
    a, b = 0.055807, 0.944193
    found = walk.gradients
    assert walk.loss == pytest.approx(2 * a, abs=1e-6)
    close(found["S"], [[2 * a * b, -2 * a * b], [0, 0]], 2e-6)
    turn = 2 * a * b * np.sqrt(2)  # half of it from Chai's key, (0, 2), half of it from piyo's
    close(found["Q"], [[-turn, turn], [0, 0]], 2e-6)
    close(found["W_Q"], [[-turn, turn], [0, 0]] * 2, 2e-6)
    # Chai's numbers, by way of its query, its key (of which number 1 is its 2nd) and its value.
    close(found["X"][0], [-turn + a, 2 * turn] * 2, 2e-6)


@every(Backwards, examples=20)
def test_gradients_are_those_of_torch_and_of_nudges(walk):
    leaves = {
        name: torch.tensor(getattr(walk, name.lower()), dtype=torch.float64, requires_grad=True)
        for name in ("X", "W_Q", "W_K", "W_V")
    }
    x, w_q, w_k, w_v = leaves.values()
    made = {"Q": x @ w_q, "K": x @ w_k, "V": x @ w_v}
    made["S"] = made["Q"] @ made["K"].T / 2**0.5
    blocked = torch.triu(torch.ones(2, 2, dtype=torch.bool), 1) & walk.causal
    made["A"] = made["S"].masked_fill(blocked, -torch.inf).softmax(dim=1)
    made["Z"] = made["A"] @ made["V"]
    for matrix in made.values():
        matrix.retain_grad()
    made["Z"][walk.row, walk.column].backward()
    for name, found in walk.gradients.items():
        wanted = (leaves | made)[name].grad.numpy()
        if name == "A":  # what may not be looked at is no way to the loss
            wanted = np.where(blocked.numpy(), 0, wanted)
        close(found, wanted, 1e-12)
    # And a small nudge of the chosen entry does what its slope predicts.
    name, i, j = walk.cell.split(".")
    step = 1e-5
    up, down = (Backwards(**walk.state | {"nudge": by}).nudged_loss for by in (step, -step))
    slope = walk.gradients[name][int(i), int(j)]
    assert (up - down) / (2 * step) == pytest.approx(slope, abs=1e-6)


@every(Backwards, examples=20)
def test_javascript_and_copied_code_compute_what_attnlib_computes(walk):
    found, names = js(walk, "compute(state)"), run(js(walk, "code(state)"))
    for name, matrix in walk.matrices.items():
        close(found["made"][name], matrix)
        gradient = walk.gradients[name]
        close(found["gradients"][name], gradient)
        close(names[f"d{name}"], gradient)
    assert names["L"] == pytest.approx(walk.loss, abs=1e-9)
    assert found["loss"] == pytest.approx(walk.loss, abs=1e-9)
    assert found["nudged"]["loss"] == pytest.approx(walk.nudged_loss, abs=1e-9)


@every(Backwards, examples=20)
def test_the_picture_shows_slopes_as_far_as_the_walk_has_come(walk):
    soup = picture(walk)
    steps = {"W_Q": "W", "W_K": "W", "W_V": "W"}
    for cell in soup.select("[data-cell]"):
        name, i, j = cell["data-cell"].split(".")
        stage = module.STAGES.index(steps.get(name, name))
        slope = cell.select_one(".slope")
        assert (slope is not None) == (stage <= module.STAGES.index(walk.stage))
        if slope:
            [said] = numbers(slope.get_text())
            exact = walk.gradients[name][int(i), int(j)]
            assert said == pytest.approx(exact, abs=0.051 if abs(exact) > 9.9 else 5.1e-4)
            assert (slope.get_text() == "0") == (exact == 0)


def test_blocked_slopes_are_exactly_0():
    walk = Backwards(causal=True)
    found = js(walk, "compute(state)")["gradients"]
    for name in ("S", "Q", "K", "W_Q", "W_K"):
        assert not np.any(found[name]) and not walk.gradients[name].any()
    assert found["V"] == [[1, 0], [0, 0]] and found["X"] == [[1, 0, 1, 0], [0, 0, 0, 0]]


def test_paths_are_added():
    rows = picture(Backwards(cell="X.0.0")).select(".ledger tr")
    products = [numbers(row("td")[-1].get_text())[0] for row in rows[1:-1]]
    assert [sum(products)] == pytest.approx(numbers(rows[-1].td.get_text()), abs=0.003)


@pytest.mark.parametrize(
    ("cell", "way", "to"),
    [
        ("Q.0.0", [1, 0], "Q.0.1"), ("Q.0.1", [1, 0], "K.0.0"), ("Q.0.0", [0, -1], "S.1.0"),
        ("S.0.1", [1, 0], "A.0.0"), ("W_V.3.1", [0, 1], "X.0.3"), ("Z.0.1", [0, -1], None),
    ],
)  # fmt: skip
def test_arrow_keys_lead_to_the_neighbor(cell, way, to):
    assert js(Backwards(cell=cell), f"beside(state.cell, {way}) ?? null") == to
