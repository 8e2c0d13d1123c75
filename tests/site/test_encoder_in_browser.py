"""Encoder in a real browser, with a stand-in for the engine: typed, loaded, read, hidden."""

import re
from pathlib import Path

import numpy as np
import pytest

from attnlib.widgets import Encoder
from tests.site.harness import assert_nothing_moves, axe_findings, copied, page_of, phone, wake

STAND_IN = (Path(__file__).parent / "encoder_stand_in.js").read_text(encoding="utf-8")
MINE = "My dog ate the cake"  # with [CLS] and [SEP], seven tokens
STATUS, SAID = "[data-part=status]", "[data-part=said]"


addresses = page_of(Encoder())


@pytest.fixture
def live(page, addresses):
    """The widget with the stand-in, nothing loaded."""
    page.add_init_script(STAND_IN)
    return wake(page, addresses["file"])


@pytest.fixture
def ready(live):
    """The widget after the model has come and read the sentence that was typed."""
    live.locator("[name=text]").fill(MINE)
    live.locator("[name=read]").click()
    shows(live, MINE)
    return live


def asked(page):
    return page.evaluate("standIn.asked")


def shows(page, text, status="Read on your machine"):
    """Wait until the last word of a text stands there, read; no text before it may have it."""
    last = re.escape(text.lower().split()[-1].strip("."))
    page.locator(".asking button", has_text=re.compile(f"^{last}$")).first.wait_for()
    page.locator(STATUS, has_text=status).wait_for()


def test_nothing_is_loaded_before_a_click(live):
    live.locator("[name=text]").fill(MINE)
    live.locator(STATUS, has_text="has to download").wait_for()
    live.wait_for_timeout(400)
    assert asked(live) == [] and live.locator(".asking button", has_text="tired").count() == 1
    live.locator("[name=text]").fill(" ")
    assert "Type at least one word" in live.locator(".message").inner_text()


def test_the_model_comes_and_reads_what_is_typed_after_a_rest(ready):
    assert asked(ready) == [[MINE, []]]
    assert "in 8 bits" in ready.locator(STATUS).inner_text()
    ready.locator("[name=text]").press("End")
    ready.locator("[name=text]").press_sequentially(" too", delay=30)
    shows(ready, MINE + " too")
    assert asked(ready) == [[MINE, []], [MINE + " too", []]]  # nothing in between
    ready.evaluate("standIn.settle()")
    shows(ready, MINE + " too", "right to 0.003")
    assert asked(ready)[2:] == [[MINE + " too", []]]
    ready.get_by_role("button", name="rain").click()
    shows(ready, "it was raining.")


def test_layers_stand_there_as_they_come(live):
    live.locator("[name=text]").fill(MINE)
    live.evaluate("""() => {
        self.most = [];
        new MutationObserver(() => most.push([document.querySelectorAll(".grid svg").length,
            document.querySelector("[data-part=status]").textContent]))
            .observe(document.querySelector(".abh"), {subtree: true, childList: true});
    }""")
    live.locator("[name=read]").click()
    shows(live, MINE)
    seen = live.evaluate("most")
    assert {count for count, _ in seen} >= {0, 12, 72} or {12, 24} & {c for c, _ in seen}
    # How much has come; a busy machine may leave out a step.
    assert len({status for _, status in seen if status.endswith(" of 12.4 MB")}) > 1


def test_a_newer_text_wins(ready):
    ready.evaluate("standIn.held = true")
    field = ready.locator("[name=text]")
    field.fill("one old text")
    ready.wait_for_function("standIn.asked.length === 2")
    ready.evaluate("self.older = standIn.go")
    field.fill("one new sentence")
    ready.wait_for_function("standIn.asked.length === 3")
    ready.evaluate("standIn.held = false, standIn.go(), older()")
    shows(ready, "sentence")
    ready.wait_for_timeout(200)
    assert ready.locator(".asking").inner_text().split()[1:-1] == ["one", "new", "sentence"]


def test_what_fails_says_so_and_can_be_tried_again(live):
    live.evaluate("standIn.fail = 'a piece did not arrive'")
    live.locator("[name=text]").fill(MINE)
    live.locator("[name=read]").click()
    live.locator(STATUS, has_text="a piece did not arrive").wait_for()
    assert live.locator(".asking button", has_text="tired").count() == 1
    live.get_by_role("button", name="Try again").click()
    shows(live, MINE)
    live.locator("[name=text]").fill("one " * 63)
    live.locator(STATUS, has_text="65 tokens are too many").wait_for()
    assert live.locator(".asking button", has_text="cake").count() == 1


def test_loading_can_be_stopped(live):
    live.evaluate("standIn.held = true")
    live.locator("[name=read]").click()
    live.get_by_role("button", name="Stop").click()
    live.get_by_role("button", name="Read my sentence").wait_for()
    assert "recording" in live.locator(STATUS).inner_text()
    live.evaluate("standIn.held = false")
    live.get_by_role("button", name="Read my sentence").click()
    shows(live, "tired.")


def test_a_connection_that_hangs_and_a_slow_browser_are_named(page, addresses):
    sooner = "self.setTimeout = (run, ms) => wait(run, ms === 15000 ? 300 : ms)"
    page.add_init_script(f"const wait = setTimeout; {sooner}")
    page.add_init_script(STAND_IN)
    wake(page, addresses["file"]).evaluate("standIn.slow(), standIn.held = true")
    page.locator("[name=read]").click()
    page.locator(STATUS, has_text="Nothing has come for 15 seconds").wait_for()
    page.evaluate("standIn.held = false, standIn.go()")
    page.locator(STATUS, has_text="Read on your machine").wait_for()
    assert "Without WebAssembly’s SIMD" in page.locator(STATUS).inner_text()


def test_reset_keeps_the_model(ready):
    ready.get_by_role("button", name="Reset").click()
    shows(ready, "tired.")
    assert asked(ready)[-1] == ["The cat sat down because it was tired.", []]
    assert ready.locator("[name=read]").count() == 0


def test_else_the_word_with_the_thickest_line_to_another_asks(ready):
    tokens, weights = ready.evaluate(
        """async text => {
            const {tokens, weights} = await document.querySelector(".widget-slot").read(text);
            return [tokens, weights[3][1]];
        }""",
        MINE,
    )
    words = np.array(weights)[1:-1, 1:-1]  # without [CLS] and [SEP]
    np.fill_diagonal(words, 0)
    asks = tokens[1 + words.max(axis=1).argmax()]
    assert ready.locator(".asking [aria-pressed=true]").inner_text() == asks
    ready.locator("[name=text]").fill("Rain.")
    ready.locator(SAID, has_text="head 2: rain attends").wait_for()


def test_a_link_says_which_word_asks(page, addresses):
    page.add_init_script(STAND_IN)
    wake(page, addresses["http"] + "#encoder.text=It+sat.+It+is&encoder.row=3")
    page.locator("[name=read]").click()
    page.locator(SAID, has_text="head 2: . attends").wait_for()


def test_the_word_that_asks_goes_on_asking_and_a_long_sentence_scrolls_to_it(live):
    live.locator("[name=text]").fill("word " * 30 + "and it was tired")
    live.locator("[name=read]").click()
    shows(live, "tired")
    live.locator(SAID, has_text="head 2: it attends").wait_for()
    live.wait_for_function("""() => {
        const [asks, ladder] = [".asking [aria-pressed=true]", ".ladder"]
            .map(each => document.querySelector(each).getBoundingClientRect());
        return asks.left >= ladder.left && asks.right <= ladder.right;
    }""")
    assert live.evaluate("document.querySelector('.ladder').scrollLeft") > 0


def test_hidden_words_are_read_without(ready):
    ready.locator("[data-hide='2']").click()
    ready.locator("[data-part=without]", has_text="Without dog").wait_for()
    assert asked(ready)[1:] == [[MINE, [2]]]
    full, without = ready.evaluate(
        """text => Promise.all([[], [2]].map(async hidden => {
            const {embedding} = await encoder.read(text, {hidden, owner: hidden});
            return {embedding: Array.from(embedding)};
        }))""",
        MINE,
    )
    cosine = np.dot(full["embedding"], without["embedding"])
    assert f"cosine of {cosine + 1e-9:.2f}" in ready.locator("[data-part=without]").inner_text()
    go = ready.locator("[data-part=without] [data-go]").first
    name = go.inner_text()  # layer.head asks → answers: before, now after
    go.click()
    layer, head = name.split()[0].split(".")
    said = ready.locator(SAID, has_text=f"Layer {layer}, head {head}: ")
    said.wait_for()
    ready.locator("[data-hide='2']").press("Enter")
    ready.locator("[data-part=without]", has_text="puts [CLS]").wait_for()
    assert len(asked(ready)) == 4  # what was read once is kept


def test_a_weight_read_here_comes_from_query_and_key(ready):
    ready.get_by_role("button", name="Why?").click()
    lens = ready.get_by_role("dialog")
    lens.get_by_text("÷ √32").wait_for()
    shown = float(lens.locator(".lens-head .weight").inner_text())
    weights = ready.evaluate("text => document.querySelector('.widget-slot').read(text)", MINE)
    assert shown == pytest.approx(max(weights["weights"][3][1][5]), abs=1e-6)
    told = lens.locator(".lens-lines p").last.inner_text()
    assert told.endswith(f"= {shown}")


def test_words_are_picked_by_keys_and_by_taps(browser, addresses, ready):
    ready.locator(".asking [aria-pressed=true]").press("ArrowLeft")
    ready.locator(".asking [aria-pressed=true]", has_text="the").wait_for()
    assert ready.evaluate("document.activeElement.textContent") == "the"
    ready.get_by_role("button", name="previous token").click()
    ready.locator(SAID, has_text="Layer 1, head 3: the attends").wait_for()
    ready.locator(".grid [aria-pressed=true]").press("ArrowRight")
    ready.locator(SAID, has_text="Layer 1, head 4: the attends").wait_for()
    with phone(browser, addresses["http"]) as page:
        page.locator(".asking button").nth(2).tap()
        page.locator(SAID, has_text="cat attends").wait_for()


def test_the_slot_reads_as_plain_arrays(live):
    found = live.evaluate("text => document.querySelector('.widget-slot').read(text)", MINE)
    assert found["tokens"] == ["[CLS]", *MINE.lower().split(), "[SEP]"]
    weights, states = np.array(found["weights"]), np.array(found["states"])
    assert weights.shape == (6, 12, 7, 7) and states.shape == (7, 7, 384)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
    mean = states[-1].mean(axis=0)
    np.testing.assert_allclose(found["embedding"], mean / np.linalg.norm(mean), atol=1e-6)


def test_a_page_without_an_engine_says_so(page, addresses):
    wake(page, addresses["file"]).locator("[name=read]").click()
    page.locator(STATUS, has_text="not part of this page").wait_for()


def test_nothing_moves(browser, addresses):
    def states(page):
        yield
        page.locator("[name=read]").click()
        shows(page, "tired")
        yield
        for text in ("a", MINE, "the quick brown fox jumps over the lazy bear " * 4):
            page.locator("[name=text]").fill(text)
            shows(page, text)
            yield
        page.locator("[data-hide='2']").click()
        page.locator("[data-part=without] [data-go]").first.wait_for()
        yield

    class Context:
        def new_page(self, **how):
            page = browser.new_page(**how)
            page.add_init_script(STAND_IN)
            return page

    for width in (1280, 360):
        assert_nothing_moves(Context(), addresses["http"], width, states)


def test_axe_finds_nothing_while_a_word_is_hidden(page, addresses):
    page.add_init_script(STAND_IN)
    wake(page, addresses["http"]).locator("[name=read]").click()
    shows(page, "tired")
    page.locator("[data-hide='2']").click()
    page.locator("[data-part=without] [data-go]").first.wait_for()
    assert axe_findings(page) == []


def test_copied_code_names_the_model(ready):
    try:
        names = copied(ready)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    assert names["text"] == MINE and len(names["printed"]) == 7
