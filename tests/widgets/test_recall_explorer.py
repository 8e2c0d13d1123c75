"""RecallExplorer: its memories, held against attnlib, and what they must recall."""

import numpy as np
import pytest

from attnlib.widgets import RecallExplorer
from tests.widgets.pictures import js, run
from tests.widgets.samples import every


@every(RecallExplorer)
def test_javascript_recalls_what_attnlib_recalls(widget):
    found = js(widget, "compute(state)")
    assert np.allclose(found["output"], widget.output, atol=1e-9)
    assert found["recalled"] == widget.recalled.tolist() and found["kept"] == widget.kept
    copied = run(js(widget, "code(state)"))
    assert np.allclose(copied["output"], widget.output, atol=1e-9)


@pytest.mark.parametrize("kind", ["full", "window", "linear", "delta"])
def test_only_full_attention_recalls_everything(kind):
    for again in (False, True):
        found = RecallExplorer(kind=kind, pairs=32, d_k=8, again=again).recalled
        assert found.all() == (kind == "full")


def test_what_is_written_again_is_replaced_by_the_delta_rule_alone():
    """Keys at right angles, each written twice: the sum holds both values, the delta rule one."""
    axes = np.eye(16)[:3].tolist() + [[0.0] * 16] * 29
    for kind, held in (("linear", 2), ("delta", 1)):
        widget = RecallExplorer(kind=kind, pairs=6, d_k=16, again=True)
        widget.set_trait("directions", axes)
        widget.set_trait("letters", [0, 1, 2, 3, 4, 5] + [0] * 26)
        assert (widget.output != 0).sum(axis=1).tolist() == [held] * 3
        assert np.allclose(widget.output[[0, 1, 2], [3, 4, 5]], 1)
