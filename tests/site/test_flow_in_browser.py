"""Flow in a real browser: its stages, its cells by keyboard, the microscope, what can be typed."""

import re

import pytest

from attnlib.widgets import Flow
from attnlib.widgets.flow import stages
from tests.site.harness import FRAME, assert_nothing_moves, lens, wake, write_page

RIVER = ".river:visible [data-cell='{}']"


@pytest.fixture
def awake(page, tmp_path):
    page.set_viewport_size({"width": 1000, "height": 900})
    write_page(tmp_path, Flow())
    return wake(page, (tmp_path / "page.html").as_uri())


def told(page):
    page.evaluate(FRAME)
    return page.locator(".ledger:visible").inner_text()


def stepped(page):
    """The numbers beside the stepper: which product it is, of how many, and their sum so far."""
    page.evaluate(FRAME)
    return re.findall(r"[−-]?[\d.]+", page.locator(".stepper:visible > span").inner_text())


def to_stage(page, stage):
    """Drag the way to the end of that stage, counted from 1."""
    page.get_by_role("slider", name="Stage").fill(str(stage))
    page.evaluate(FRAME)


def test_stages_turn_by_key_and_nothing_is_there_before_its_time(awake):
    slider = awake.get_by_role("slider", name="Stage")
    slider.press("Home")
    to_stage(awake, 1)
    assert awake.locator(RIVER.format("Q.0.0")).count() == 0
    assert awake.get_by_role("button", name="Next stage").is_enabled()
    awake.emulate_media(reduced_motion="reduce")
    for stage in ("Q, K, V", "Scores", "Scale", "Softmax", "Average", "All steps"):
        slider.press("ArrowRight")
        awake.evaluate(FRAME)
        assert slider.get_attribute("aria-valuetext").endswith(stage)
    assert awake.get_by_role("button", name="Next stage").is_disabled()


def test_it_plays_by_itself_and_stops(awake):
    to_stage(awake, 4.9)
    awake.get_by_role("button", name="Play").click()
    awake.wait_for_function(
        "document.querySelector('[name=moment]').ariaValueText.includes('Softmax')"
        " && document.querySelector('[name=moment]').value > 4.1"
    )
    awake.get_by_role("button", name="Pause").click()
    awake.evaluate(FRAME)
    moment = awake.locator("[name=moment]").input_value()
    awake.wait_for_timeout(200)
    assert awake.locator("[name=moment]").input_value() == moment


def test_every_product_can_be_stepped_from_the_first_to_the_last(awake):
    awake.locator(RIVER.format("Q.0.0")).focus()
    awake.keyboard.press("+")
    assert stepped(awake) == ["1", "4", "1"]
    awake.keyboard.press("+")
    awake.keyboard.press("+")
    assert stepped(awake) == ["3", "4", "2"]
    steps = 3
    while awake.locator("[name=more]:visible").count():
        before = told(awake)
        awake.locator("[name=more]:visible").click()
        steps += 1
        if told(awake) == before:
            break
    # Q, K, V: 4 numbers of 4 products; S and Z: 4 numbers of 2; then there is no next one.
    assert steps == 3 * 16 + 2 * 8 + 1
    assert "1.888386·0 + 0.111614" not in before and "= 0.111614" in before


def test_arrow_keys_walk_and_enter_opens_the_microscope(awake):
    awake.locator(RIVER.format("G.0.0")).focus()
    awake.keyboard.press("ArrowRight")
    awake.wait_for_timeout(200)  # what was said of the first cell is taken back no later
    assert "16.918829 ÷ (1 + 16.918829) = 0.944193" in told(awake).replace("\n", "")
    awake.keyboard.press("Enter")
    assert lens(awake) == ["Chai", "piyo", "0.944193"]
    awake.keyboard.press("Escape")
    assert awake.get_by_role("dialog").count() == 0
    assert awake.evaluate("document.activeElement.dataset.cell") == "G.0.1"


def test_a_walk_past_the_memory_stays_in_its_lane(page, tmp_path):
    write_page(tmp_path, Flow.writing())
    wake(page, (tmp_path / "page.html").as_uri())
    page.add_style_tag(content="body { max-width: 60rem }")
    for row in range(3):  # past the values, which have two rows
        page.locator(RIVER.format(f"Q.{row}.0")).focus()
        walked = []
        while walked[-1:] != [cell := page.evaluate("document.activeElement.dataset.cell")]:
            walked.append(cell)
            page.keyboard.press("ArrowRight")
        blocks = ["Q", "Q", "A", "A", "V", "V", "Z", "Z", "P", "P", "P"]
        assert [cell[0].replace("G", "A") for cell in walked] == blocks
        assert {cell[2] for cell in walked if cell[0] != "V"} == {str(row)}


def test_a_touch_looks_and_a_second_one_opens(browser, tmp_path):
    write_page(tmp_path, Flow())
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    page = wake(context.new_page(), (tmp_path / "page.html").as_uri())
    weight = page.locator(".falls [data-cell='G.0.1']")
    weight.tap()
    assert "= 0.944193" in told(page) and page.get_by_role("dialog").count() == 0
    weight.tap()
    page.get_by_role("dialog").wait_for()
    context.close()


def test_it_follows_an_entry(awake):
    awake.locator(".lies [data-gate=w_k]").click()
    box = awake.get_by_label("W K, row 1, column 1")
    assert box.evaluate("box => box === document.activeElement")
    w_k = [list(row) for row in Flow().w_k]
    box.fill("1,5")
    w_k[0][0] = 1.5
    awake.evaluate(FRAME)
    expected = Flow(w_k=w_k).output
    shown = awake.locator(RIVER.format("Z.0.1")).get_attribute("aria-label")
    assert shown.endswith(f"{expected[0, 1]:.3f}")
    assert box.input_value() == "1,5"  # not while it is typed in
    box.blur()
    assert box.input_value() == "1.5"


def test_reset_leaves_it_alive(awake):
    to_stage(awake, 3)
    awake.get_by_role("button", name="Reset").click()
    awake.evaluate(FRAME)
    assert awake.get_by_role("slider", name="Stage").input_value() == "7"
    assert awake.locator(RIVER.format("Z.1.1")).get_attribute("role") == "button"


def test_without_a_script_the_whole_river_stands_there(browser, tmp_path):
    write_page(tmp_path, Flow(stage="rows"))
    context = browser.new_context(viewport={"width": 360, "height": 740}, java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator(".falls .cell:visible", has_text="1.888").count() == 2
    last = len(stages(Flow().state))
    assert page.locator(".caption b:visible").first.inner_text().startswith(f"{last} ")
    context.close()


def test_absurd_entry_is_told_beside_its_field_and_the_state_stays(awake):
    awake.get_by_text("Change the words and the numbers").click()
    box = awake.get_by_label("X, row 1, column 1")
    table = awake.locator(".typed", has=box)
    for text in ("NaN", "", "1e999", "chai", "-101"):
        box.fill(text)
        awake.evaluate(FRAME)
        said = table.get_by_role("alert").inner_text()
        assert "An entry needs a number from −100 to 100" in said
        assert awake.locator(RIVER.format("X.0.0")).get_attribute("aria-label").endswith(": 1")
        box.blur()
        awake.evaluate(FRAME)
        assert box.input_value() == "1" and table.get_by_role("alert").count() == 0


def test_words_can_be_changed(awake):
    awake.get_by_text("Change the words and the numbers").click()
    words = awake.get_by_label("Words, 1 to 6")
    words.fill("piyo <b> chai piyo")
    awake.evaluate(FRAME)
    assert awake.locator(".lies [data-block=G] [data-cell]").count() == 16
    assert awake.locator(".river:visible .token", has_text="<b>").count()
    words.fill("one two three four five six seven")
    awake.evaluate(FRAME)
    assert "1 to 6 words are needed" in awake.get_by_role("alert").inner_text()
    assert awake.locator(".lies [data-block=G] [data-cell]").count() == 16


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("made", [Flow.encoder_layer, Flow.writing])
def test_nothing_moves_from_stage_to_stage(browser, tmp_path, width, made):
    write_page(tmp_path, made())

    def states(page):
        for stage in range(1, len(stages(made().state)) + 1):
            to_stage(page, stage)
            yield
        page.locator(RIVER.format("Z.0.0")).first.hover()
        yield

    assert_nothing_moves(browser, (tmp_path / "page.html").as_uri(), width, states)


def test_a_model_writes_to_the_end_and_starts_again(page, tmp_path):
    write_page(tmp_path, Flow.gpt())
    wake(page, (tmp_path / "page.html").as_uri())
    text, write = page.locator(".written"), page.locator("[name=write]")
    for word in ("drink", "tea", "<end>"):
        write.click()
        page.locator(".written b", has_text=word).wait_for()
    assert text.inner_text() == "tea not bad drink tea <end>" and write.is_disabled()
    page.locator("[name=again]").click()
    page.locator("[name=feed_forward]").click()
    write.click()
    page.locator(".written b", has_text="leave").wait_for()
    assert text.inner_text() == "tea not bad leave"
    page.locator("[name=prompt]").select_option("coffee good")
    page.locator(".account caption", has_text="after good").wait_for()
    assert page.evaluate("document.querySelector('.widget-slot').model.get('tokens')") == [
        "coffee", "good"
    ]  # fmt: skip
