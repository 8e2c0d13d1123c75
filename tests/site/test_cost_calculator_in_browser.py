"""CostCalculator in a real browser, on a page of its own."""

from attnlib.widgets import CostCalculator
from tests.site.harness import page_of, showing

WORDS = ("n_value", "weights", "cache", "flops", "share", "longest", "fits", "instead")
WORDS += ("reading", "writing", "story")
addresses = page_of(CostCalculator())
shows = showing(CostCalculator, WORDS)


def test_keyboard_alone_moves_everything(live):
    page = live
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert shows(page, n=2**20)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert shows(page, n=181)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert shows(page, n=181, kind="blockwise")
    page.keyboard.press("ArrowDown")
    assert shows(page, n=181, kind="window")
    page.get_by_label("Width of the window").fill("7")
    page.keyboard.press("Tab")
    assert shows(page, n=181, kind="window", width=7)
    page.get_by_role("button", name="Reset").press("Enter")
    assert shows(page)
    assert page.locator("[name=width]").input_value() == "256"


def test_models_and_sizes_follow_each_other(live):
    page = live
    page.locator("summary").click()
    model = page.get_by_role("combobox", name="Model")
    model.select_option("GPT-3")
    assert shows(page, d_model=12288, n_heads=96, n_layers=96)
    assert page.get_by_label("Heads", exact=True).input_value() == "96"
    model.select_option("Llama 3.1 70B")
    assert shows(page, d_model=8192, n_heads=64, n_layers=80, group=8)
    model.select_option("GPT-3")
    model.select_option("your own")
    assert model.input_value() == "12288 96 96"
    page.get_by_label("Layers").fill("9e1")
    page.keyboard.press("Enter")
    assert shows(page, d_model=12288, n_heads=96, n_layers=90)
    assert page.get_by_label("Layers").input_value() == "90" and model.input_value() == ""
    page.get_by_label("Bytes a number").select_option("2")
    page.get_by_label("Memory").fill("80")
    page.keyboard.press("Enter")
    assert shows(page, d_model=12288, n_heads=96, n_layers=90, bytes=2, memory=80.0)


def test_an_absurd_size_gets_a_plain_message_and_changes_nothing(live):
    live.locator("summary").click()
    box = live.get_by_label("Heads", exact=True)
    box.fill("7")
    box.press("Enter")
    said = "Heads must divide d_model: 512 / 7 is not whole."
    assert live.get_by_role("status").inner_text() == said
    assert box.input_value() == "8" and shows(live)
    box.fill("16")
    box.press("Enter")
    assert live.get_by_role("status").inner_text() == "" and shows(live, n_heads=16)
