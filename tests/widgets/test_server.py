"""Server: its simulation in JavaScript, held against attnlib, and its pictures."""

import numpy as np
import pytest
from hypothesis import strategies as st

from attnlib import serving
from attnlib.widgets import Server
from attnlib.widgets.kit.base import bounds
from tests.widgets.pictures import js, picture, run, texts
from tests.widgets.samples import bounded, every

RUNS = st.builds(
    Server,
    **bounded(
        Server,
        scene=st.just("run"),
        requests=st.integers(1, 40),
        output=st.integers(10, 60),
        at_once=st.sampled_from([4, 16, 64, 256]),
    ),
)


@every(RUNS, examples=20)
def test_javascript_serves_as_attnlib_does(widget):
    found = js(widget, "compute(state)")
    done = serving.Server(widget.settings).run()
    assert found["pages"] == done.pages and found["passes"] == len(done.passes)
    assert [step["pages"] for step in found["steps"]] == [p["pages"] for p in done.passes]
    assert [step["written"] for step in found["steps"]] == [p["written"] for p in done.passes]
    assert np.allclose([step["end"] for step in found["steps"]], [p["end"] for p in done.passes])
    for name in ("prompt", "output", "arrival", "first", "last"):
        expected = [getattr(request, name) for request in done.requests]
        assert np.allclose([request[name] for request in found["requests"]], expected)
    noticed = widget.noticed
    assert all(np.allclose(found[name], noticed[name]) for name in noticed)
    caches = {p["end"]: p["caches"] for p in done.passes}
    for moment in found["moments"]:
        end = min(caches, key=lambda end: abs(end - moment["time"]))
        assert [tuple(cache) for cache in moment["caches"]] == caches[end]


def test_crowded_memory_preempts_in_both():
    heavy = {"requests": 200, "rate": 100, "prompt": 2000, "output": 500}
    widget = Server("run", **heavy, continuous=True, paged=True, speculative=True)
    assert js(widget, "compute(state)")["preempted"] == widget.noticed["preempted"] > 0


@pytest.mark.parametrize("users", [1, 7, 64, 256])
def test_a_pass_takes_as_long_in_both(users):
    widget = Server(users=users)
    found = js(widget, "compute(state)")
    for work, time in widget.times.items():
        assert found[work]["seconds"] == pytest.approx(time, rel=1e-12)
    assert run(js(widget, "code(state)"))["time"] == widget.times["writing"]


def test_the_picture_and_copied_code_say_what_the_simulation_says():
    widget = Server("run", requests=9, rate=50, prompt=300, at=400, continuous=True, paged=True)
    soup, noticed = picture(widget), widget.noticed
    printed = run(js(widget, "code(state)"))["printed"]
    assert printed[0] == f"throughput {noticed['throughput']}"
    big = texts(soup, ".readout .big")
    assert big[0] == f"{noticed['throughput']:,.0f}" and big[3] == str(noticed["most"])


def test_the_table_compares_with_each_idea_alone():
    traits = {"requests": 9, "rate": 50, "prompt": 300, "continuous": True}
    rows = picture(Server("run", **traits)).select(".effects tr")[1:]
    changed = ({}, {"continuous": False}, {"paged": True})
    for row, changes in zip(rows[:3], changed, strict=True):
        noticed = Server("run", **traits | changes).noticed
        tokens, first, between = texts(row, "td")
        assert tokens == f"{noticed['throughput']:,.0f}"
        for said, time in ((first, noticed["first"][0]), (between, noticed["between"][1])):
            assert said == f"{1000 * time:.{int(time < 0.01)}f}\N{NO-BREAK SPACE}ms"


def test_settings_of_the_page_are_accepted_by_the_simulation():
    """The largest lengths together still fit into the room that a request may have."""
    most = {
        name: bound["most"] for name, bound in bounds(Server).items() if isinstance(bound, dict)
    }
    assert Server("run", **most).settings.output == 500
