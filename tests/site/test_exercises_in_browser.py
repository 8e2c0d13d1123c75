"""Exercises solved in the page: all of them, in a real browser, with Python in its worker.

Python starts once for the whole file, in a page that has the slots of all chapters, as they were
built. Without NumPy for the page there is nothing to test: CONTRIBUTING says where it comes from.
"""

import copy
import io
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote_plus

import pytest

from tests import exercises
from tests.conftest import SITE, Zipped, serve
from tests.site.harness import BLOCKED, axe_findings
from tests.site.pages import CHAPTER_2, NOTEBOOKS, address, soup

PYTHON = next(SITE.glob("_static/practice/manifest.*.json"), None)
pytestmark = pytest.mark.skipif(
    PYTHON is None, reason="the site has no Python: PYODIDE names a folder with NumPy for it"
)
JUDGED = exercises.judged()
ALL = "chapters/all-exercises.html"
RUN = """async (slot, code) => {
  if (code !== null) slot.code = code;
  const {passed, message, output} = await slot.run();
  return [passed, message, output];
}"""
SOFTMAX = """def my_softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)"""


def page_of_all():
    """A chapter's page with the slots of all chapters in the place of its text."""
    page = copy.copy(soup(CHAPTER_2))
    article = page.article
    article.clear()
    heading = page.new_tag("h1")
    heading.string = "All exercises"
    article.append(heading)
    for name in NOTEBOOKS:
        for slot in soup(name).select(".practice-slot[data-exercise]"):
            article.append(copy.copy(slot))
    return str(page)


class WithAll(Zipped):
    """The site, with that page. A page that no server sent may not ask this machine for more."""

    def send_head(self):
        """Answer with that page, or as usual."""
        if self.path != f"/{ALL}":
            return super().send_head()
        body = page_of_all().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)


@pytest.fixture(scope="module")
def host():
    """The address of that site."""
    with serve(SITE, WithAll) as address:
        yield address


@pytest.fixture(scope="module")
def desk(browser, host):
    """That page, with Python started; it has noted all that it asked for, before and after."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.clock.install()
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    page.goto(f"{host}/{ALL}")
    page.wait_for_load_state("networkidle")
    page.before, page.asked = list(asked), asked
    slot_of(page, "my_softmax").evaluate(RUN, None)
    yield page
    context.close()


def slot_of(page, key):
    """The slot of an exercise, by its key; the first one whose key ends so, without a chapter."""
    end = f'"{key}"' if "/" in key else f'/{key}"'
    return page.locator(f".practice-slot[data-exercise*='{end}']").first


def run(desk, code, key="my_softmax"):
    return slot_of(desk, key).evaluate(RUN, code)


def verdict(slot):
    return slot.get_by_role("status").text_content()


# ------------------------------------------------------------------------------------ all of them


def test_nothing_of_python_is_fetched_before_the_first_click(desk, host):
    python = f"{host}/_static/practice/"
    assert not any(url.startswith(python) for url in desk.before)
    fetched = [url.split("/")[-1] for url in desk.asked if url.startswith(python)]
    assert len(fetched) == len(set(fetched)) == 10  # the writer and the heads are two
    others = (url for url in desk.asked if not url.startswith((f"{host}/", f"blob:{host}/")))
    assert not list(others)


@pytest.mark.parametrize(("chapter", "exercise"), JUDGED, ids=[f"{c}-{e.key}" for c, e in JUDGED])
def test_each_exercise_is_solved_wrongly_and_rightly(desk, chapter, exercise):
    """The other wrong ways are refused by the same code in `tests/test_exercises.py`."""
    words, cell = exercises.wrong(exercise)[-1]
    key = f"{re.sub(r'^[0-9]+-', '', chapter)}/{exercise.key}"
    passed, message, _ = run(desk, cell, key)
    assert not passed and words in message
    passed, message, _ = run(desk, exercises.right(exercise), key)
    assert passed and message.startswith("Right")


def test_two_texts_are_compared_below_the_verdict(desk):
    key = "a-model-that-writes/my_softmax"
    slot = slot_of(desk, key)
    passed, message, _ = run(desk, SOFTMAX.replace("axis=-1", "axis=0"), key)
    assert not passed and message.endswith("The text first changes at word 1 of 40.")
    assert slot.locator("figcaption").all_text_contents() == [
        "With our function",
        "With your function",
    ]
    ours, yours = slot.locator("figure p").all_text_contents()
    marks = slot.locator("mark").all_text_contents()
    assert ours.startswith(marks[0]) and yours.startswith(marks[1]) and len(marks) == 2
    assert axe_findings(desk) == []
    assert run(desk, SOFTMAX, key)[0] and slot.locator("mark").count() == 0
    assert slot.locator("figure p").all_text_contents() == [ours]
    slot.get_by_role("button", name="Reset").click()
    assert not slot.locator("figure").is_visible()


# ----------------------------------------------------------------------------- how each run ends


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f(x): return f(x + 1)\nf(0)", "RecursionError"),
        ("f = lambda: max(map(lambda _: f(), [1]))\nf()", "RecursionError"),
        ("import sys\nsys.exit()", "Your code ends the program"),
        ("import os\nos._exit(1)", "Your code broke Python itself: it ends the program."),
        ("input()", "EOFError: input() has nobody to ask here"),
        ("x = [0]\nwhile True: x += x", "MemoryError"),
        ("import torch", "torch is not here"),
        ("import threading\nthreading.Thread(target=print).start()", "RuntimeError"),
    ],
)
def test_a_run_ends_in_one_clear_line_and_the_next_one_works(desk, code, said):
    passed, message, _ = run(desk, code)
    assert not passed and message.startswith(said) and "\n" not in message
    assert run(desk, SOFTMAX) == [True, "Right: all 6 checks passed.", ""]


# What a learner's code can send to the page: no message at all, kinds that do not exist, an end of
# the run and output as the page could never show them, and more output than a run may show.
FORGED = """import js
from pyodide.ffi import to_js
def post(message): js.postMessage(to_js(message, dict_converter=js.Object.fromEntries))
for message in (None, "done", {"kind": "odd"}, {"kind": "constructor"}, {"kind": "output"}):
    post(message)
for i in range(2_000):
    post({"kind": "done", "id": i, "result": {"passed": True, "message": "", "lines": None}})
    post({"kind": "output", "id": i, "text": "x" * 100_000 if i % 100 == 0 else 8})
    for _ in range(3):
        post({"kind": "output", "id": i, "text": "y" * 9_000})
"""


def test_messages_that_a_learner_forges_end_no_run_and_show_no_more(desk):
    errors = []
    desk.on("pageerror", lambda error: errors.append(str(error)))
    passed, message, output = run(desk, FORGED + SOFTMAX)
    assert passed and message.startswith("Right") and errors == []
    assert output == "y" * 20_000
    assert run(desk, SOFTMAX)[0]


def test_a_loop_without_end_is_stopped_by_the_limit_and_by_stop(desk):
    slot = slot_of(desk, "my_softmax")
    for end, said in (
        (lambda: desk.clock.fast_forward(10_000), "Stopped after 10 seconds."),
        (lambda: slot.get_by_role("button", name="Stop").click(), "Stopped."),
    ):
        slot.evaluate("slot => { slot.code = 'print(7)\\nwhile True: print(8)' }")
        slot.get_by_role("button", name="Run").click()
        slot.get_by_text("the rest is left out").wait_for()
        end()
        assert verdict(slot).startswith(said)
        assert slot.get_by_label("Output").text_content().startswith("7\n8\n")
        assert run(desk, SOFTMAX)[0]


def test_one_exercise_runs_at_a_time_and_builds_on_those_above(desk):
    helper = (
        "def shifted(scores): return np.exp(scores - scores.max(axis=-1, keepdims=True))\n"
        "def my_attention_for_one(q, K, V):\n"
        "    exponentials = shifted(K @ q / len(q) ** .5)\n"
        "    return exponentials / exponentials.sum() @ V"
    )
    code = "def my_softmax(scores): return shifted(scores) / shifted(scores).sum(-1, keepdims=True)"
    assert run(desk, helper, "my_attention_for_one")[0] and run(desk, code)[0]
    slow = slot_of(desk, "my_softmax").evaluate_handle(
        "slot => { slot.code = 'import time; time.sleep(1)'; return [slot.run()] }"
    )
    busy = run(desk, None, "my_attention_for_one")
    assert busy[:2] == [False, "Another exercise is running: stop it first."]
    slow.evaluate("([running]) => running")
    run(desk, SOFTMAX)


# ----------------------------------------------------------------- rules for heads, by address

HEADS = "chapters/16-what-is-a-head-doing.html"
JUDGED_FIRST = "a-rule-that-is-right"
RULE = (
    'def f(tokens, i):\n    return i - 1  # “ü” & = + %\n\n\njudge(f, "encoder", layer=0, head=2)'
)


def test_a_rule_is_judged_in_the_page_and_one_without_end_is_stopped(desk):
    passed, message, output = run(desk, RULE, JUDGED_FIRST)
    assert (passed, message) == (None, "") and output.startswith("Layer 1, head 3 of the encoder")
    slot = slot_of(desk, JUDGED_FIRST)
    endless = RULE.replace("return i - 1", "while True: print(8)")
    slot.evaluate("(slot, code) => { slot.code = code }", endless)
    slot.get_by_role("button", name="Run").click()
    slot.get_by_text("the rest is left out").wait_for()
    desk.clock.fast_forward(10_000)
    assert verdict(slot).startswith("Stopped after 10 seconds.")
    assert run(desk, RULE, JUDGED_FIRST)[2] == output


def test_a_shared_rule_is_shown_and_runs_on_run_alone(browser, host):
    page = browser.new_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{host}/{HEADS}")
    slot, later = slot_of(page, JUDGED_FIRST), slot_of(page, "a-rule-that-looks-right")
    area, note = slot.get_by_role("textbox"), slot.get_by_text("It has not run")
    name = slot.get_attribute("data-name")
    area.fill("mine = 1")
    for code in ("x" * 2001, "%E0%A4%A"):  # too long, and half a letter
        page.evaluate("hash => { location.hash = hash }", f"{name}.code={code}")
        assert area.input_value() == "mine = 1" and not note.is_visible()
    page.evaluate("hash => { location.hash = hash }", f"{name}.code={quote_plus(RULE)}")
    for _ in range(2):
        note.wait_for()
        assert area.input_value() == RULE
        page.reload()
    assert slot.evaluate("slot => slot.code") == "mine = 1"
    assert later.evaluate(RUN, "f(0, 5)")[1].startswith("NameError")  # nor is it run for others
    assert slot.evaluate(RUN, None)[2] == ""
    slot.get_by_role("button", name="Run").click()
    slot.locator(".practice .output", has_text="Positions judged: 1,343").wait_for()
    assert not note.is_visible() and later.evaluate(RUN, "f(0, 5)")[2] == "4\n"
    slot.get_by_role("button", name="Back to my code").click()
    assert area.input_value() == "mine = 1"
    area.fill(f"{RULE}  # mine")
    slot.get_by_role("button", name="Copy link").click()
    slot.get_by_text("The link is copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    area.fill("#" * 700)
    slot.get_by_role("button", name="Copy link").click()
    assert verdict(slot).startswith("Too long for a link: 2100 letters")
    page.context.close()
    page = browser.new_page()
    page.goto(link)
    assert slot_of(page, JUDGED_FIRST).get_by_role("textbox").input_value() == f"{RULE}  # mine"
    assert page.evaluate("Object.keys(localStorage).filter(k => k.includes('practice'))") == []
    page.context.close()


# ------------------------------------------------------------------------- nothing reaches others


@contextmanager
def other_host():
    """The address of another site, and what it was asked."""
    asked = []

    class Notes(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Type", "text/javascript")
            self.end_headers()

        do_POST = do_OPTIONS = do_GET  # noqa: N815

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Notes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


WAYS = """
import js
from pyodide.code import run_js
from pyodide.http import open_url
request = js.XMLHttpRequest.new()
tried = 0
for way in (
    lambda: js.fetch("{host}/fetch"),
    lambda: open_url("{host}/open"),
    lambda: (request.open("GET", "{host}/request", False), request.send()),
    lambda: js.importScripts("{host}/scripts"),
    lambda: run_js("import('{host}/import')"),
    lambda: js.EventSource.new("{host}/events"),
    lambda: js.WebSocket.new("{host}/socket".replace("http", "ws")),
    lambda: js.Worker.new("{host}/worker"),
    lambda: js.FontFace.new("x", "url({host}/font)").load(),
    lambda: __import__("urllib.request").request.urlopen("{host}/urllib"),
):
    try:
        way()
    except BaseException as error:
        pass
    tried += 1
print(tried)
"""


def test_nothing_that_a_learner_writes_reaches_another_host(desk):
    with other_host() as (other, asked):
        assert run(desk, WAYS.format(host=other))[2] == "10\n"
        desk.evaluate("new Promise(done => setTimeout(done, 500))")
        assert asked == []
        # The host does answer, where no policy holds.
        desk.context.request.get(f"{other}/test")
        assert asked == ["/test"]


# ---------------------------------------------------------------------------------- by hand


def test_by_keyboard(desk):
    slot = slot_of(desk, "my_softmax")
    area = slot.get_by_role("textbox", name="Your code: my_softmax")
    slot.evaluate("slot => { slot.code = '' }")
    area.focus()
    desk.keyboard.type("def f(x):\nif x:\nreturn 1\nreturn 2\nprint(f(0))")
    assert area.input_value() == (
        "def f(x):\n    if x:\n        return 1\n    return 2\nprint(f(0))"
    )
    desk.keyboard.press("Control+a")
    desk.keyboard.press("Tab")
    assert area.input_value().splitlines()[1] == "        if x:"
    desk.keyboard.press("Shift+Tab")
    desk.keyboard.press("Control+z")
    desk.keyboard.press("Control+z")
    assert area.input_value().splitlines()[1] == "    if x:"
    desk.keyboard.press("Control+Enter")
    slot.get_by_text("2", exact=True).wait_for()
    desk.wait_for_function(
        "slot => slot.querySelector('[role=status]').textContent.startsWith('The')",
        arg=slot.element_handle(),
    )
    desk.keyboard.press("Escape")
    desk.keyboard.press("Tab")
    assert desk.evaluate("document.activeElement.name") == "run"
    area.focus()
    desk.keyboard.press("Escape")
    desk.keyboard.press("Shift+Tab")
    assert desk.evaluate("document.activeElement.name") != "run"


def test_shift_tab_keeps_the_caret_and_selects_nothing(desk):
    slot = slot_of(desk, "my_softmax")
    area = slot.get_by_role("textbox", name="Your code: my_softmax")
    for typed, left, then in (
        ("if x:\nreturn 1", 0, "if x:\nreturn 1|"),
        ("if x:\nreturn 1", 3, "if x:\nretur|n 1"),
        ("if x:\nreturn 1", 10, "if x:\n|return 1"),  # within the spaces that go
        ("if x:\n", 0, "if x:\n|"),
        ("if x:\n  x", 1, "if x:\n  |x"),
    ):
        slot.evaluate("slot => { slot.code = '' }")
        area.focus()
        desk.keyboard.type(typed)
        for _ in range(left):
            desk.keyboard.press("ArrowLeft")
        desk.keyboard.press("Shift+Tab")
        desk.keyboard.type("|")
        assert area.input_value() == then


def test_a_verdict_says_that_it_is_of_older_code(desk):
    slot = slot_of(desk, "my_softmax")
    area = slot.get_by_role("textbox", name="Your code: my_softmax")
    run(desk, SOFTMAX)
    old = slot.get_by_text("before your last change")
    assert old.count() == 0
    area.fill(f"{SOFTMAX} + 1")
    assert old.count() == 1 and verdict(slot).startswith("✓ Right")
    area.fill(SOFTMAX)
    assert old.count() == 0
    area.fill("1 +")
    slot.get_by_role("button", name="Reset").click()
    assert old.count() == 0 and slot.locator(".verdict").text_content() == ""


def test_while_python_starts_the_seconds_are_counted_and_run_waits(browser, site):
    page = browser.new_page()
    held = []
    page.route("**/_static/practice/manifest*.json", lambda route: held.append(route))
    page.goto(f"{site}/{CHAPTER_2}")
    slot = slot_of(page, "my_softmax")
    button = slot.get_by_role("button", name="Run")
    button.press("Enter")
    slot.get_by_text("Loading Python ... (1 s)").wait_for()
    assert button.is_disabled() and page.evaluate("document.activeElement.name") == "run"
    page.get_by_label("Your code: my_softmax").fill(SOFTMAX)
    slot.get_by_text("Loading Python ... (").wait_for()
    held.pop().continue_()
    slot.get_by_text("before your last change").wait_for(timeout=60_000)
    page.wait_for_function(
        "slot => slot.querySelector('[role=status]').textContent.startsWith('Not solved yet')",
        arg=slot.element_handle(),
    )
    assert button.is_enabled()
    page.context.close()


def test_code_is_kept_reset_copied_and_downloaded(browser, site):
    page = browser.new_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{site}/{CHAPTER_2}")
    slot, area = slot_of(page, "my_softmax"), page.get_by_label("Your code: my_softmax")
    start = area.input_value()
    assert start.endswith("return ...")
    area.fill("mine = 1")
    page.reload()
    assert area.input_value() == slot.evaluate("slot => slot.code") == "mine = 1"
    slot.get_by_role("button", name="Reset").click()
    assert area.input_value() == start
    slot.get_by_role("button", name="Undo reset").click()
    assert area.input_value() == "mine = 1"
    slot.get_by_role("button", name="Copy").click()
    slot.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "mine = 1"
    with page.expect_download() as download:
        slot.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "my_softmax.py"
    assert download.value.path().read_text() == "mine = 1\n"
    slot.get_by_role("button", name="Reset").click()
    page.reload()
    assert area.input_value() == start
    assert page.evaluate("Object.keys(localStorage).filter(k => k.includes('practice'))") == []
    page.context.close()


def test_what_was_solved_says_so_on_the_next_visit_until_it_is_erased(desk, host):
    def signs(page):
        page.goto(f"{host}/{ALL}")
        return slot_of(page, "my_softmax").locator(".before").all_text_contents()

    assert run(desk, SOFTMAX)[0] and slot_of(desk, "my_softmax").locator(".before").count() == 0
    page = desk.context.new_page()
    assert signs(page) == ["✓ Solved before"]
    page.evaluate("localStorage.removeItem('attention-by-hand')")
    assert signs(page) == []
    page.close()


def test_a_browser_that_keeps_nothing_says_so_and_opens_the_solution(browser, site):
    page = browser.new_page()
    page.add_init_script(BLOCKED)
    page.goto(f"{site}/{CHAPTER_2}")
    page.get_by_label("Your code: my_softmax").fill("mine = 1")
    slot = slot_of(page, "my_softmax")
    assert slot.get_by_text("This browser keeps nothing").is_visible()
    solution = page.locator("details.has-button").get_by_text("softmax_solution").first
    assert not solution.is_visible()
    slot.get_by_role("button", name="Show solution", expanded=False).click()
    assert solution.is_visible()
    slot.get_by_role("button", name="Hide solution", expanded=True).click()
    assert not solution.is_visible()
    page.context.close()


# -------------------------------------------------------------------------- what a page may lack


def test_a_python_that_does_not_come_is_one_line_and_run_tries_again(browser, site):
    """It is not found, or a network that wants a login first answers with a page of its own."""
    page = browser.new_page()
    page.goto(f"{site}/{CHAPTER_2}")
    for part in ("manifest*.json", "worker*.js", "*/pyodide.asm.wasm", "attnlib*.zip"):
        pattern = f"**/_static/practice/{part}"
        for status in (200, 404):
            answer = {"status": status, "content_type": "text/html", "body": "<!doctype html>"}
            page.context.route(pattern, lambda route, _, answer=answer: route.fulfill(**answer))
            passed, message, _ = slot_of(page, "my_softmax").evaluate(RUN, None)
            assert not passed and message.startswith("Python could not be loaded ("), part
            assert status == 200 or "404" in message, part
            page.context.unroute(pattern)
    page.context.close()


def test_from_disk_and_without_javascript_the_exercise_can_be_read(browser):
    for javascript in (True, False):
        context = browser.new_context(java_script_enabled=javascript)
        page = context.new_page()
        page.goto(address("file", CHAPTER_2, None))
        slot = slot_of(page, "my_softmax")
        assert slot.locator("pre").first.is_visible() and not slot.locator("textarea").count()
        assert slot.get_by_text("make serve").count() == javascript
        context.close()


# ------------------------------------------------------------------------------------ for everyone


def test_axe_finds_nothing_in_an_exercise_that_ran(desk):
    run(desk, "print('x' * 300)\ndef my_softmax(scores): return 1 / 0")
    run(desk, SOFTMAX.replace("softmax", "attention_for_one"), "my_attention_for_one")
    assert axe_findings(desk) == []
    assert desk.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    desk.set_viewport_size({"width": 1280, "height": 900})
