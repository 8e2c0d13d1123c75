"""The published cases of ONNX: what is stored is what attnlib gives, and every output agrees."""

import numpy as np
import pytest

from attnlib import onnx_cases


@pytest.fixture(scope="module")
def cases():
    return {name: case for name, *case in onnx_cases.cases()}


def test_what_is_stored_is_measured_again(cases):
    stored = {row["case"]: row["outcome"] for row in onnx_cases.read()}
    assert stored == {name: onnx_cases.measure(*case)[0] for name, case in cases.items()}
    allowed = {onnx_cases.PASSED, onnx_cases.NO_BFLOAT16, onnx_cases.NO_SCORES}
    assert set(stored.values()) == allowed


def test_the_cases_reach_every_setting(cases):
    """A setting that no case used would be a branch of the operator that nothing checks."""
    used = {name for _, attributes, _ in cases.values() for name in attributes}
    assert used == set(onnx_cases.attention.__kwdefaults__)
    assert {len(inputs) for inputs, *_ in cases.values()} == {3, 4, 6, 7}


def test_another_number_is_noticed(cases):
    inputs, attributes, (expected,) = cases["test_attention_4d_softcap"]
    assert onnx_cases.measure(inputs, attributes, [expected])[0] == onnx_cases.PASSED
    wrong = expected + np.float32(0.01)
    assert onnx_cases.measure(inputs, attributes, [wrong]) == ("other numbers", "1e-02")
