"""Trainer in a real browser: trains in a worker, pauses, keeps its past, refuses, stands still."""

import re

import numpy as np
import pytest

from attnlib.widgets import Trainer
from tests.site.harness import assert_nothing_moves, axe_findings, page_of, wake

addresses = page_of(Trainer())
TRAIN = """settings => document.querySelector(".widget-slot").train(settings)
  .catch((error) => `${error.name}: ${error.message}`)"""
STEP = """() => Number(document.querySelector("[data-part=step]").textContent)"""


def steps(page, least):
    """Wait until so many steps are shown."""
    page.wait_for_function(
        "least => document.querySelector('[data-part=step]').textContent >= least", arg=least
    )


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_it_trains_pauses_and_slides_over_its_past(page, addresses, scheme):
    live = wake(page, addresses[scheme])
    live.get_by_role("button", name="Train", exact=True).click()
    steps(live, 9)
    live.get_by_role("button", name="Pause").click()
    live.wait_for_timeout(300)  # the step that was asked for arrives
    at = live.evaluate(STEP)
    live.wait_for_timeout(300)
    assert live.evaluate(STEP) == at
    live.get_by_role("button", name="One step").click()
    live.wait_for_function("at => document.querySelector('.widget-slot').story.length > at", arg=at)
    slider = live.get_by_role("slider")
    slider.press("Home")
    live.wait_for_function("document.querySelector('[data-part=step]').textContent === '0'")
    slider.press("End")
    steps(live, at + 1)
    live.get_by_label("Seed").fill("7")
    live.get_by_label("Seed").press("Tab")
    live.get_by_role("button", name="Train", exact=True).wait_for()
    assert live.evaluate(STEP) == 0


def test_the_promise_gives_losses_and_accuracy_and_a_seed_gives_them_again(live):
    settings = {"seed": 3, "layers": 1, "steps": 30, "rate": 0.02}
    first, again = (live.evaluate(TRAIN, settings) for _ in range(2))
    assert first == again and first["steps"] == len(first["losses"]) == 30
    assert 2.5 < first["losses"][-1] < first["losses"][0] < 3.3 and 0.05 < first["accuracy"] < 0.3
    other = live.evaluate(TRAIN, {**settings, "seed": 4})
    assert other["losses"] != first["losses"]


def test_webassembly_and_plain_javascript_train_alike(live):
    page = live
    fast = page.evaluate(TRAIN, {"steps": 40})
    page.evaluate("document.querySelector('.widget-slot').model.set('kernel', '')")
    plain = page.evaluate(TRAIN, {"steps": 40})
    assert fast["losses"] != plain["losses"]  # they round otherwise: it was the other one
    np.testing.assert_allclose(fast["losses"], plain["losses"], rtol=1e-5)


def test_hostile_settings_are_refused_in_words(live):
    for settings, says in (
        ({"seed": -1}, "TypeError: seed must be a whole number from 0 to 999; got -1"),
        ({"seed": "4"}, "seed must be a whole number from 0 to 999; got 4"),
        ({"layers": 3}, "layers must be one of 1, 2; got 3"),
        ({"rate": float("inf")}, "rate must be a number from 0.0001 to 1; got Infinity"),
        ({"steps": 1e9}, "steps must be a whole number from 20 to 2000"),
        ({"batch": 5}, "train takes seed, layers, rate, steps; got batch"),
    ):
        assert says in live.evaluate(TRAIN, settings)


def test_heads_are_switched_off_and_measured(live):
    page = live
    page.evaluate(TRAIN, {"steps": 20})
    measured = page.locator("[data-part=measured]")
    assert re.fullmatch(r"0\.\d{3}", measured.inner_text())
    page.get_by_label("head 1:").first.uncheck()
    page.wait_for_function("/^0/.test(document.querySelector('[data-part=measured]').textContent)")
    assert page.locator(".head svg.off").count() == 1
    page.get_by_label("Your letters").fill("abc!")
    assert "letters a to p" in page.locator(".message").inner_text()


def test_nothing_moves(browser, addresses):
    def states(page):
        page.evaluate(TRAIN, {"steps": 30})
        yield
        for settings in ({"layers": 1}, {"heads": 1}, {"without": "mask"}, {"task": "next"}):
            for name, value in settings.items():
                page.evaluate(
                    "([n, v]) => document.querySelector('.widget-slot').model.set(n, v)",
                    [name, value],
                )
            yield
            page.evaluate(TRAIN, {"steps": 20})
            yield
        for text in ("a", "abcdefghijklmnopabcdefgh"):
            page.get_by_label("Your letters").fill(text)
            yield

    for width in (1280, 360):
        assert_nothing_moves(browser, addresses["http"], width, states)


def test_axe_finds_nothing_after_a_training(live):
    def states(page):
        page.evaluate(TRAIN, {"steps": 20})
        yield
        page.locator("[name=head]").nth(1).click()
        yield

    assert axe_findings(live, states) == []
