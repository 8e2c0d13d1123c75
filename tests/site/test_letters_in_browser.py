"""Letters in a real browser: typed, asked, heads switched off, measured without blocking."""

import numpy as np
import pytest

from attnlib.widgets import Letters
from attnlib.widgets.letters import LETTERS
from tests.site.harness import assert_nothing_moves, axe_findings, page_of, phone, showing, wake

PARTS = ("explanation", "place_value")
# How long each slice of measuring keeps the page busy, and how many there are.
SLICES = """async () => {
  const took = [], later = self.setTimeout;
  self.setTimeout = (run, ...more) => later(() => {
    const start = performance.now();
    run();
    took.push(performance.now() - start);
  }, ...more);
  document.querySelector("[name=head]").click();
  while (document.querySelector("[data-part=score]").textContent === "?") {
    await new Promise(requestAnimationFrame);
  }
  self.setTimeout = later;
  return took.sort((a, b) => a - b);
}"""
READINGS = """async () => {
  const slot = document.querySelector(".widget-slot"), took = [];
  for (let i = 0; i < 25; i++) {
    const start = performance.now();
    await slot.read("abcdefghijklmnopabcdefgh");
    took.push(performance.now() - start);
  }
  return took.sort((a, b) => a - b);
}"""
FRAME = 1000 / 60  # milliseconds


addresses = page_of(Letters())
shows = showing(Letters, PARTS)


def wait_for_score(page):
    page.wait_for_function("document.querySelector('[data-part=score]').textContent !== '?'")
    return float(page.locator("[data-part=score]").inner_text())


def test_typing_asks_at_the_last_letter(live):
    field = live.get_by_label("Letters from a to p")
    field.fill("cfac")
    assert shows(live, text="cfac")
    live.get_by_role("slider").press("Home")
    assert shows(live, text="cfac", place=0)
    field.fill("cfacX")
    assert "letters a to p" in live.locator(".message").inner_text()
    assert shows(live, text="cfac", place=0)
    field.fill("CFACF")  # capitals are letters too
    assert shows(live, text="cfacf")
    live.get_by_role("button", name="Add its answer").click()
    said = Letters(text="cfacf").says
    assert shows(live, text="cfacf" + said) and live.locator(".message").inner_text() == ""


def test_a_click_on_a_letter_asks_there(live):
    live.locator("[data-row=typed] span").nth(5).click()
    assert shows(live, place=5)


def test_heads_that_are_off_change_the_answer_and_the_score(live):
    live.get_by_label("head 1").first.uncheck()
    assert shows(live, off=[[0, 0]])
    assert wait_for_score(live) == pytest.approx(Letters(off=[[0, 0]]).score, abs=6e-4)
    live.locator(".board [aria-pressed=true]").press("ArrowRight")
    assert shows(live, off=[[0, 0], [1, 1]])
    assert live.get_by_label("head 2").nth(1).is_checked() is False
    measured = Letters(off=[[0, 0], [1, 1]]).score
    assert wait_for_score(live) == pytest.approx(measured, abs=6e-4)
    live.get_by_role("button", name="Reset").click()
    assert shows(live)


def test_the_slot_reads_texts_as_attnlib_does(live):
    rng = np.random.default_rng(0)
    written = ["".join(rng.choice(list(LETTERS), n)) for n in [1, 2, 7, 13, 24]]
    read = """texts => Promise.all(
      texts.map(text => document.querySelector(".widget-slot").read(text)))"""
    for found, text in zip(live.evaluate(read, written), written, strict=True):
        made = Letters(text=text)
        assert found["tokens"] == list(text)
        assert abs(made.probabilities - found["probabilities"]).max() < 1e-9
        assert abs(made.weights - found["weights"]).max() < 1e-9
    refused = "document.querySelector('.widget-slot').read('xyz').catch(error => error.message)"
    assert "1 to 24 letters from a to p; got xyz" in live.evaluate(refused)


def test_a_reading_fits_a_frame_and_measuring_blocks_none(live):
    # Medians: a busy machine may stretch any single one.
    assert np.median(live.evaluate(READINGS)) < FRAME
    slices = live.evaluate(SLICES)
    assert len(slices) > 5 and np.median(slices) < FRAME


def test_nothing_moves(browser, addresses):
    def states(page):
        for text in ("a", "mmmmmmmmmmmmmmmmmmmmmmmm", "abcdefghijklmnopabcdefgh", "cfakdcgbfaec"):
            page.get_by_label("Letters from a to p").fill(text)
            yield
        for box in page.locator("[name=head]").all():
            box.uncheck()
            yield
        wait_for_score(page)
        yield

    for width in (1280, 360):
        assert_nothing_moves(browser, addresses["http"], width, states)


def test_axe_finds_nothing_while_a_head_is_off(page, addresses):
    wake(page, addresses["http"])

    def states(page):
        page.locator("[name=head]").first.uncheck()
        wait_for_score(page)
        yield

    assert axe_findings(page, states) == []


def test_a_tap_on_the_board_picks_a_set(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        page.locator(".board button").nth(7).tap()
        assert shows(page, off=[[0, 1], [1, 0], [1, 1]])
