"""Writer in a browser: it is loaded after a click, writes as Python does, and breaks nothing."""

import re

import pytest

from _ext.writer.page import model_script
from attnlib.widgets import Writer
from benchmarks.writer import disagreements
from tests.site.harness import (
    assert_nothing_moves,
    assert_words_fit,
    axe_findings,
    copied,
    page_of,
    wake,
)
from tests.site.pages import FRAME

WORDS = "[...document.querySelectorAll('[data-at]')].map((word) => word.textContent)"
RESTS = "document.querySelector('[name=write]').textContent !== 'Stop'"
WRITTEN = f"{RESTS} && document.querySelectorAll('[data-at]').length > %d"
STOP_AFTER = """(n) => new Promise((done) => {
  const button = document.querySelector("[name=write]");
  const look = () => {
    if (document.querySelectorAll("[data-at]").length <= n) return requestAnimationFrame(look);
    button.click();
    requestAnimationFrame(() => requestAnimationFrame(done));
  };
  button.click();
  look();
})"""
HOSTILE = "<img src=x onerror=document.title=1> constructor __proto__ & “"


addresses = page_of(Writer(), model=True)


def wait(page, condition):
    """Wait for a condition, after what has been pressed is drawn."""
    page.evaluate(FRAME)
    page.wait_for_function(condition, timeout=60_000)


def choose(page, name):
    """Take one of the beginnings, and wait until it is drawn."""
    page.get_by_role("button", name=name, exact=True).click()
    page.evaluate(FRAME)  # it may be chosen already, with a longer story still drawn
    page.wait_for_selector(f"[data-begin][aria-pressed=true]:text-is('{name}')")


def press(page, name):
    page.locator(f"[name={name}]").click()


def status(page):
    return page.locator("[data-part=status]").inner_text()


@pytest.mark.parametrize("way", ["http", "file"])
def test_the_model_comes_after_a_click_and_writes_on(page, addresses, way):
    asked = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    wake(page, addresses[way])
    choose(page, "gold")
    before = page.evaluate(WORDS)
    assert before[11] == "gold" and not [url for url in asked if url.startswith("model")]
    press(page, "write")
    wait(page, WRITTEN % len(before))
    after = page.evaluate(WORDS)
    assert after[: len(before)] == before and len(after) > len(before)
    assert [url for url in asked if url.startswith("model")] == ["model.js"]
    assert page.locator("[name=write]").inner_text() == "Write another"
    assert page.locator("[data-take='¶'] .word").inner_text() == "(the end)"


def test_page_and_python_agree(live):
    """`benchmarks/writer.py` asks the same of 200 texts."""
    found = disagreements(live, 12)
    assert found["words"] == 0
    assert found["probabilities"] < 1e-4 and found["weights"] < 1e-4


def test_the_same_seed_writes_the_same_with_and_without_cache(live):
    def story():
        choose(live, "drinks")
        n = len(live.evaluate(WORDS)) + 12
        live.evaluate(STOP_AFTER, n)
        return live.evaluate(WORDS)[:n]

    live.locator("summary").click()
    first = story()
    assert story() == first
    live.get_by_label("Keep keys").uncheck()
    assert story() == first
    live.get_by_label("Seed").fill("5")
    live.get_by_label("Seed").press("Enter")
    assert story() != first
    said = live.locator("figcaption").inner_text()
    fast, slow = map(float, re.findall(r"([\d.]+) ms", said))
    assert slow > 3 * fast
    assert_words_fit(live)


def test_one_word_stop_back_and_another_word(live):
    choose(live, "a list")
    n = len(live.evaluate(WORDS))
    press(live, "one")
    wait(live, WRITTEN % n)
    word = live.evaluate(WORDS)[n]
    press(live, "back")
    wait(live, f"{WORDS}.length === {n}")
    press(live, "one")
    wait(live, WRITTEN % n)
    assert live.evaluate(WORDS)[n] == word
    live.locator(f"[data-at='{n + 1}']").click()
    live.wait_for_selector(f".chosen[data-at='{n + 1}']")
    taken = live.locator("[data-take]:enabled:not([data-take='¶'])").first
    other = taken.get_attribute("data-take")
    taken.click()
    wait(live, f"{WORDS}[{n}]?.toLowerCase() === {other.lower()!r}")
    live.evaluate(STOP_AFTER, n + 3)
    stopped = live.evaluate(WORDS)
    live.wait_for_timeout(200)
    assert live.evaluate(WORDS) == stopped and len(stopped) > n + 3


def test_an_address_brings_the_story_and_what_was_chosen(browser, live, addresses):
    choose(live, "a list")
    live.get_by_role("slider").first.press("ArrowLeft")
    press(live, "write")
    wait(live, WRITTEN % 30)
    live.locator("[data-at='9']").click()
    live.wait_for_timeout(400)
    other = browser.new_page()
    wake(other, live.url)
    other.wait_for_selector(".chosen[data-at='9']")
    assert other.evaluate(WORDS) == live.evaluate(WORDS)
    assert other.get_by_role("slider").first.input_value() == "0.9"
    press(other, "back")
    wait(other, f"{WORDS}.length === {len(live.evaluate(WORDS)) - 1}")
    press(other, "one")
    wait(other, f"{WORDS}.length === {len(live.evaluate(WORDS))}")
    assert other.evaluate(WORDS) == live.evaluate(WORDS)
    other.close()


def test_arrow_keys_walk_from_word_to_word(live):
    live.locator(".chosen").focus()
    live.keyboard.press("ArrowLeft")
    wait(live, "document.activeElement.dataset.at === '28'")
    wait(live, "document.querySelector('.bars .title').textContent === 'What comes after bank?'")


def test_whatever_is_typed_stays_text_and_the_model_says_what_it_knows(live):
    field = live.get_by_label("The story begins")
    field.fill(HOSTILE)
    field.press("Enter")
    wait(live, RESTS)
    assert "is not among them" in status(live)
    assert live.title() == "A page" and live.locator(".abh img").count() == 0
    field.fill("The docter was happy.")
    wait(live, "document.querySelector('[name=near]')?.dataset.near === 'doctor'")
    press(live, "near")
    wait(live, "document.querySelector('[name=text]').value === 'The doctor was happy.'")
    field.fill("z " * 300)
    press(live, "one")
    wait(live, RESTS)
    field.fill("")
    press(live, "write")
    wait(live, WRITTEN % 20)


def test_a_program_that_asks_for_nonsense_gets_an_error(live):
    ask = """([text, options]) => document.querySelector(".widget-slot").write(text, options)
      .then(() => "nothing", (error) => `${error.name}: ${error.message}`)"""
    assert live.evaluate(ask, ["A dragon", {}]) == "RangeError: The model does not know: dragon"
    assert live.evaluate(ask, [5, {}]) == "TypeError: text must be a string; got 5"
    assert live.evaluate(ask, ["", {"n": -1}]) == "RangeError: n cannot be -1"
    assert live.evaluate(ask, ["", {"topP": 0}]) == "RangeError: topP cannot be 0"


def test_a_model_that_does_not_arrive_is_asked_for_again(browser, addresses):
    page = browser.new_page()  # its console says what was refused
    page.route("**/model.js", lambda route: route.abort())
    wake(page, addresses["http"])
    press(page, "one")
    wait(page, "document.querySelector('[data-part=status]').textContent.includes('connection')")
    page.unroute("**/model.js")
    page.route("**/model.js*", lambda route: route.fulfill(body="writer.take({", status=200))
    press(page, "one")
    wait(page, "document.querySelector('[data-part=status]').textContent.includes('damaged')")
    page.unroute("**/model.js*")
    n = len(page.evaluate(WORDS))
    page.route("**/model.js?again=2", lambda route: route.fulfill(body=model_script()[1]))
    press(page, "one")
    wait(page, WRITTEN % n)
    page.close()


def states(page):
    """The widget as it is, with another word, another beginning, and its surprise."""
    yield
    page.locator("[data-at='3']").click()
    yield
    choose(page, "gold")
    yield
    page.get_by_label("What is marked").select_option("surprise")
    yield


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_moves(browser, addresses, width):
    assert_nothing_moves(browser, addresses["http"], width, states)


def test_axe_finds_nothing(live):
    def all_states(page):
        yield from states(page)
        page.get_by_label("What is marked").select_option("attention")
        page.get_by_label("The story begins").fill("Rosa was a brave dragon. He had")
        press(page, "one")
        wait(page, RESTS)
        yield

    live.locator("summary").click()
    assert axe_findings(live, all_states) == []


def test_copied_code_prints_the_next_word_of_the_screen(live):
    choose(live, "a list")
    press(live, "one")
    wait(live, WRITTEN % 10)
    first = copied(live)["printed"][0].split()
    row = live.locator("[data-take]").first.text_content().split()
    assert row[:3] == [first[0], "model", f"{float(first[1]):.2f}"]
