"""HandCalculator in a real browser, on a page of its own."""

import pytest

from attnlib.widgets import HandCalculator
from tests.site.harness import FRAMES, wake, write_page


@pytest.fixture
def awake(page, tmp_path):
    write_page(tmp_path, HandCalculator())
    return wake(page, (tmp_path / "page.html").as_uri())


def said(page):
    page.evaluate(FRAMES)
    return page.locator(".sum").inner_text()


def test_it_steps_and_lights_its_operands(awake):
    page = awake
    page.get_by_role("button", name="Step forward").click()
    page.get_by_role("button", name="Step forward").press("Enter")
    assert said(page) == "Q [1, 1] = 1 × 1 + 0 × 0 + 1 × 1 + 0 × 0; so far 2"
    lit = page.locator("td.read").evaluate_all("cells => cells.map(cell => cell.dataset.cell)")
    assert lit == ["X_0_2", "W_Q_2_0"]
    page.get_by_role("button", name="A", exact=True).click()
    assert said(page) == "A [1, 1] = 1 / (1 + 16.918829) = 0.055807"
    page.get_by_role("slider", name="Step").press("End")
    assert said(page).endswith("= 0.111614")
    assert page.get_by_role("button", name="Step forward").is_disabled()


def test_it_follows_an_entry(awake):
    for k in range(4):
        for j in range(2):
            box = awake.get_by_label(f"W K, row {k + 1}, column {j + 1}")
            box.fill("1,0" if k % 2 == j else "0")
    awake.evaluate(FRAMES)
    expected = HandCalculator(W_K=HandCalculator().W_Q).weights
    assert awake.locator("[data-cell=A_0_0]").inner_text() == f"{expected[0, 0]:.6f}"
    assert box.input_value() == "1,0"  # not while it is typed in
    box.blur()
    assert box.input_value() == "1"


@pytest.mark.parametrize("text", ["NaN", "", "1e999", "chai", "-101"])
def test_absurd_entry_gets_a_plain_message_and_keeps_the_state(awake, text):
    box = awake.get_by_label("X, row 1, column 1")
    box.fill(text)
    message = awake.get_by_role("status")
    assert "An entry needs a number from -100 to 100" in message.inner_text()
    assert awake.locator("[data-cell=A_0_1]").inner_text() == "0.944193"
    box.blur()
    assert box.input_value() == "1" and message.inner_text() == ""
