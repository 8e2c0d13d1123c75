"""Predict, Quiz and Progress in a real browser, on a page made as the site makes its own."""

import json
import re

import pytest

from attnlib.widgets import Predict, Progress, Quiz
from tests.site.harness import (
    BLOCKED,
    FRAME,
    FULL,
    SHIFTS,
    awake,
    axe_findings,
    page_of,
    wake,
    write_page,
)
from tests.widgets.samples import HOSTILE
from tests.widgets.test_practice import QUESTIONS

QUESTION = "What share of Chai's attention goes to each word?"
MISTAKES = {
    "you did not divide by √d_k": [0.0179862, 0.9820138],
    "you divided by d_k, not by its square root": [0.1192029, 0.8807971],
    "Q and K are swapped": [0.9441925, 0.0558075],
}
STORE = "attention-by-hand"


def predict(**more):
    given = {"mistakes": MISTAKES, "key": "chai", "explanation": "e^(2√2) is 16.918829."}
    return Predict(QUESTION, {"Chai": 0.055807446, "piyo": 0.944192554}, **{**given, **more})


def widgets():
    single = Predict(
        "What is e^(2√2)?", 16.918829, mistakes={"you forgot √2": 7.389056}, key="power"
    )
    return [
        predict(),
        single,
        Quiz(QUESTIONS, key="quiz"),
        Progress({"2. Queries": {"other": 2}, "3. Chai piyo": {"chai": 1, "power": 1, "quiz": 2}}),
    ]


addresses = page_of(*widgets())


def slot(page, at):
    return page.locator(".widget-slot").nth(at)


def check(page, numbers, at=0):
    """Type the numbers into a Predict, check them, and return the verdict."""
    place = slot(page, at)
    for field, text in zip(place.locator("input").all(), numbers, strict=True):
        field.fill(text)
    place.get_by_role("button", name="Check").click()
    page.evaluate(FRAME)
    return place.locator("[data-part=verdict]").inner_text()


def kept(page):
    return json.loads(page.evaluate(f"localStorage.getItem('{STORE}')") or '{"right": []}')["right"]


# ---------------------------------------------------------------------------------- Predict


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_three_digits_by_hand_are_right_and_bring_the_explanation(page, addresses, scheme):
    wake(page, addresses[scheme])
    assert check(page, ["0,0559", "16.9/17.9"]) == "✓ Right."
    assert "e^(2√2) is 16.918829." in slot(page, 0).inner_text()
    assert kept(page) == ["chai/1"]
    page.reload()
    awake(page)
    assert slot(page, 0).locator(".done").is_visible()
    assert not slot(page, 1).locator(".done").is_visible()
    assert check(page, ["0.5", "0.944"]).startswith("Not yet")  # neither mark nor answer beside it
    assert not slot(page, 0).locator(".done").is_visible()
    assert "0.055807" not in slot(page, 0).inner_text()


def test_another_wrong_number_gets_a_direction_and_nothing_more(live):
    assert check(live, ["0.5", "0.5"]) == "Not yet: 2 of 2 are wrong."
    assert slot(live, 0).locator(".digits").all_inner_texts() == ["too large", "too small"]
    assert check(live, ["0.056", "0.5"]) == "Not yet: 1 of 2 is wrong."
    invalid = slot(live, 0).locator("label:has([aria-invalid=true])")
    assert invalid.locator(".digits").all_inner_texts() == ["too small"]
    slot(live, 0).locator("input").first.fill("0.4")  # a change takes the verdict back
    live.evaluate(FRAME)
    assert slot(live, 0).locator("[data-part=verdict]").inner_text() == ""
    assert check(live, ["17.5"], at=1) == "Not yet: too large."
    assert "0.944" not in slot(live, 0).inner_text() and "16.9" not in slot(live, 1).inner_text()


def test_what_is_no_number_gets_a_plain_message(live):
    for text in ("", " ", "NaN", "chai", "1e999", HOSTILE):
        assert check(live, ["0.5", text]).startswith("Each field needs a number, such as 0.5")
        assert check(live, [text], at=1).startswith("Type a number, such as 0.5")
    assert live.locator("img").count() == 0 and live.title() == "A page"


def test_nothing_is_revealed_before(live):
    place = slot(live, 0)
    for seen in (place.inner_text(), place.aria_snapshot()):
        assert "0.94419" not in seen and "16.918829" not in seen and "√d_k" not in seen
    assert not any(details.is_visible() for details in live.locator("details").all())
    place.get_by_role("button", name="Reveal").click()
    live.evaluate(FRAME)
    assert "Chai = 0.055807, piyo = 0.944193. e^(2√2)" in place.inner_text()
    assert check(live, ["0.0558", "0.944"]) == "✓ Right."
    assert kept(live) == []  # looked up
    place.get_by_role("button", name="Reset").click()
    live.evaluate(FRAME)
    assert "0.944" not in place.inner_text()
    assert [field.input_value() for field in place.locator("input").all()] == ["", ""]


# ------------------------------------------------------------------------------------- Quiz


def test_a_choice_says_nothing_of_the_other_questions_and_none_is_asked_for(live):
    first, second = (slot(live, 2).locator("form").nth(i) for i in (0, 1))
    first.get_by_role("button", name="Check").click()
    live.evaluate(FRAME)
    assert first.get_by_role("status").inner_text() == "Choose an answer first."
    first.get_by_label(QUESTIONS[0]["options"][0]["text"], exact=True).check()
    first.get_by_role("button", name="Check").click()
    live.evaluate(FRAME)
    assert first.get_by_role("status").inner_text().startswith("Not this one.")
    assert second.get_by_role("status").inner_text() == ""


def set_in_type(text):
    """What a browser reads where the k of d_k stands lower."""
    return text.replace("d_k", "dk")


def test_every_option_has_its_reason_and_can_be_tried_again(live):
    for i, question in enumerate(QUESTIONS):
        form = slot(live, 2).locator("form").nth(i)
        for option in reversed(question["options"]):
            form.get_by_label(set_in_type(option["text"]), exact=True).check()
            live.evaluate(FRAME)
            assert form.get_by_role("status").inner_text() == ""
            form.get_by_role("button", name="Check").click()
            live.evaluate(FRAME)
            said = form.get_by_role("status").inner_text()
            assert said.startswith("✓ Right." if option.get("right") else "Not this one.")
            assert said.endswith(set_in_type(option["why"]))
    # The last one checked is the first option: wrong in question 1, right in question 2.
    assert slot(live, 2).locator("[data-part=score]").inner_text() == "1 of 2 right."
    assert sorted(kept(live)) == ["quiz/1", "quiz/2"]
    slot(live, 2).get_by_role("button", name="Reset").click()
    live.evaluate(FRAME)
    assert slot(live, 2).locator("[data-part=score]").inner_text() == "0 of 2 right."
    assert slot(live, 2).locator("input:checked").count() == 0


# --------------------------------------------------------------------------------- keyboard


def test_the_keyboard_alone_is_enough(live):
    keys = live.keyboard
    keys.press("Tab")
    keys.type("1/17.9")
    keys.press("Tab")
    keys.type("0.944")
    keys.press("Enter")
    live.evaluate(FRAME)
    assert slot(live, 0).locator("[data-part=verdict]").inner_text() == "✓ Right."
    slot(live, 2).locator("input").first.focus()
    keys.press("ArrowDown")
    keys.press("Enter")
    live.evaluate(FRAME)
    assert "A row belongs to a query." in slot(live, 2).inner_text()
    assert kept(live) == ["chai/1", "quiz/1"]
    slot(live, 3).get_by_role("button", name="Erase").focus()
    keys.press("Enter")
    live.evaluate(FRAME)
    assert live.evaluate("document.activeElement.name") == "no"
    keys.press("Escape")
    live.evaluate(FRAME)
    assert live.evaluate("document.activeElement.name") == "erase"
    assert kept(live) == ["chai/1", "quiz/1"]
    keys.press("Enter")
    live.evaluate(FRAME)
    keys.press("Shift+Tab")
    keys.press("Enter")
    assert kept(live) == []


# --------------------------------------------------------------------------------- progress


def test_progress_is_listed_saved_copied_and_erased(live):
    page, place = live, slot(live, 3)
    check(page, ["16.9"], at=1)
    assert place.locator(".number").all_inner_texts() == ["0 of 2", "1 of 4"]
    with page.expect_download() as download:
        place.get_by_role("button", name="Save as file").click()
    assert download.value.suggested_filename == "attention-by-hand-progress.json"
    text = download.value.path().read_text(encoding="utf-8")
    assert json.loads(text) == {"course": "Attention by Hand", "right": ["power/1"], "code": {}}
    place.get_by_role("button", name="Copy as text").click()
    place.locator(".message", has_text="Copied your progress as JSON.").wait_for()
    assert not place.get_by_role("button", name="Erase it").is_visible()
    erase = place.get_by_role("button", name="Erase", exact=True)
    erase.click()
    assert kept(page) == ["power/1"]
    place.get_by_role("button", name="Keep it").click()
    assert kept(page) == ["power/1"]
    erase.click()
    place.get_by_role("button", name="Erase it").click()
    page.evaluate(FRAME)
    assert kept(page) == [] and place.locator(".message").inner_text() == "Erased."
    assert place.locator(".number").all_inner_texts() == ["0 of 2", "0 of 4"]


PRACTICE = "attention-by-hand-practice/"
KEPT = "Object.fromEntries(Object.entries(localStorage).filter(([name]) => name !== 'theme'))"


def keep(page, **values):
    """Let the browser keep this and nothing else."""
    page.evaluate(
        """values => {
            localStorage.clear();
            for (const [name, text] of Object.entries(values)) localStorage.setItem(name, text);
        }""",
        {name.replace("__", "/").replace("_", "-"): text for name, text in values.items()},
    )


def open_file(page, content):
    """Open a file with this text or these bytes; return what is said then."""
    content = content if isinstance(content, (str, bytes)) else json.dumps(content)
    place = slot(page, 3)
    page.evaluate(
        "document.querySelectorAll('.message').forEach(each => { each.textContent = '' })"
    )
    with page.expect_file_chooser() as chooser:
        place.get_by_role("button", name="Open a file").click()
    data = content.encode() if isinstance(content, str) else content
    chooser.value.set_files({"name": "a.json", "mimeType": "application/json", "buffer": data})
    said = place.locator(".message:not(:empty), [data-part=question]:not(.ghost)")
    said.first.wait_for()
    return " ".join(said.first.inner_text().split())


def test_progress_goes_from_one_browser_to_another_as_a_file(browser, addresses):
    """With the code of the exercises; what both have stays, and other code is asked about."""
    mine = {"attention_by_hand": '{"right":["chai/1","02-a/f"]}'}
    mine |= {f"attention_by_hand_practice__02_a__{key}": f"def {key}(): 1" for key in "fg"}
    mine |= {"attention_by_hand_place": "chapters/02-a.html#s"}
    one = wake(browser.new_page(), addresses["http"])
    keep(one, **mine)
    with one.expect_download() as download:
        slot(one, 3).get_by_role("button", name="Save as file").click()
    saved = download.value.path().read_text(encoding="utf-8")
    before = one.evaluate(KEPT)
    one.close()
    two = wake(browser.new_page(), addresses["http"])
    assert open_file(two, saved) == (
        "Added 2 answers and the code of 2 exercises. "
        "If the file is not yours, read its code before you run it."
    )
    assert two.evaluate(KEPT) == before
    two.evaluate(FRAME)
    assert slot(two, 3).locator(".number").all_inner_texts() == ["0 of 2", "1 of 4"]
    assert open_file(two, saved) == "All that is in the file was here already."
    theirs = {"attention_by_hand": '{"right": ["power/1"]}'}
    theirs |= {
        "attention_by_hand_practice__02_a__g": "mine",
        "attention_by_hand_place": "chapters/9.html",
    }
    for name, code in (
        ("Open nothing", None),
        ("Keep mine", "mine"),
        ("Take the file’s", "def g(): 1"),
    ):
        keep(two, **theirs)
        said = open_file(two, saved)
        assert said.startswith("The code of 1 exercise differs.")
        slot(two, 3).get_by_role("button", name=name).click()
        two.evaluate(FRAME)
        assert two.evaluate("document.activeElement.name") == "open"
        found = two.evaluate(KEPT)
        assert found["attention-by-hand-place"] == "chapters/9.html"
        assert found[f"{PRACTICE}02-a/g"] == (code or "mine")
        assert found.get(f"{PRACTICE}02-a/f") == (code and "def f(): 1")
        assert json.loads(found["attention-by-hand"])["right"] == (
            ["power/1", "chai/1", "02-a/f"] if code else ["power/1"]
        )
    slot(two, 3).get_by_role("button", name="Erase", exact=True).click()
    slot(two, 3).get_by_role("button", name="Erase it").click()
    assert two.evaluate(KEPT) == {}
    two.close()


GOOD_FILE = {"course": "Attention by Hand", "right": ["a/1"], "place": "chapters/1.html"}
GOOD_FILE |= {"code": {"a/f": "x = 1"}}
ABSURD = [
    None, True, 0, 1e308, "", HOSTILE, "a/1", "javascript:alert(1)", [], [[]], [None], {},
    {"length": 3}, {"__proto__": {"polluted": 1}}, {"constructor": {"prototype": {"polluted": 1}}},
    ["../../x"], ["a/" + "1" * 10_000], [{"toString": 1}], {"__proto__/x": "x", "a/__proto__": 3},
    ["constructor", "toString/", "/1", "a//1", "a/1\n", " a/1", "a/1/2"], {"a/f": ["x"], "": "x"},
    {"a/f": "x" * 30_000}, {"theme": "x", "attention-by-hand": "x", "x" * 300 + "/f": "x"},
]  # fmt: skip


def hostile_files():
    """Texts and bytes that no browser of a reader has saved."""
    texts = ["", " ", "null", "3", '"x"', "[]", "{}", "{", "<html>", HOSTILE, "[" * 100_000]
    texts += [
        b"\xff\xfe",
        b"\x00" * 1000,
        b"PK\x03\x04",
        "x" * 1_000_001,
        '{"right": ["a/1"]}',
        "NaN",
        "1e999",
    ]
    for name in GOOD_FILE:
        texts.append(json.dumps({key: value for key, value in GOOD_FILE.items() if key != name}))
    # Answers that are no list end the reading; the place and the code are looked at each by itself.
    texts += [json.dumps(GOOD_FILE | {"right": value}) for value in ABSURD]
    texts += [json.dumps(GOOD_FILE | {"place": value, "code": value}) for value in ABSURD]
    good = json.dumps(GOOD_FILE)
    texts += [good[:at] for at in range(0, len(good) - 1, 19)]
    proto = '"__proto__": {"polluted": 1, "right": ["a/1"], "course": "Attention by Hand"}'
    texts += [
        f"{{{proto}}}",
        good.replace("{", f"{{{proto}, ", 1),
        good.replace('{"a/f', f'{{{proto}, "a/f'),
    ]
    texts.append(json.dumps(GOOD_FILE | {"right": [f"a/{i}" for i in range(100_000)]}))
    texts.append(json.dumps(GOOD_FILE | {"code": {f"a/{i}": "x" for i in range(20_000)}}))
    return texts


def test_no_hostile_file_does_harm(live):
    for content in hostile_files():
        keep(
            live,
            attention_by_hand='{"right": ["mine/1"]}',
            attention_by_hand_practice__a__f="x = 1",
        )
        said = open_file(live, content)
        assert re.match(r"Added \d+ answer|This file holds no|The file is too|All that is", said), (
            said
        )
        state = live.evaluate(f"[{KEPT}, 'polluted' in {{}}, typeof [].polluted]")
        found, *polluted = state
        assert polluted == [False, "undefined"]
        right = json.loads(found.pop("attention-by-hand"))["right"]
        assert right[0] == "mine/1" and len(right) <= 2001
        assert all(re.fullmatch(r"[\w.-]{1,100}/[\w.-]{1,100}", each) for each in right)
        assert found.pop(f"{PRACTICE}a/f") == "x = 1"
        assert found.pop("attention-by-hand-place", "chapters/1.html") == "chapters/1.html"
        assert len(found) <= 2000
        for name, text in found.items():
            assert re.fullmatch(rf"{PRACTICE}[\w.-]{{1,100}}/[\w.-]{{1,100}}", name), name
            assert text in ("x", "x = 1"), name
    assert live.locator("img").count() == 0


def test_junk_in_the_store_is_no_progress(live):
    for junk in ("", "null", "{", "[]", '{"right": 3}', '{"right": [1, null]}'):
        live.evaluate("([name, junk]) => localStorage.setItem(name, junk)", [STORE, junk])
        live.reload()
        awake(live)
        assert check(live, ["16.9"], at=1) == "✓ Right."
        assert kept(live) == ["power/1"]


@pytest.mark.parametrize("trouble", [BLOCKED, FULL], ids=["blocked", "full"])
def test_without_storage_all_works_and_a_note_says_so(page, addresses, trouble):
    page.add_init_script(trouble)
    wake(page, addresses["http"])
    note = "Progress cannot be kept in this browser."
    assert check(page, ["0.018", "0.982"]) == "Not yet: you did not divide by √d_k."
    assert check(page, ["0.0558", "0.944"]) == f"✓ Right. {note}"
    assert slot(page, 0).locator(".done").is_visible()
    form = slot(page, 2).locator("form").first
    form.get_by_label("They ask").check()
    form.get_by_role("button", name="Check").click()
    page.evaluate(FRAME)
    assert slot(page, 2).locator("[data-part=score]").inner_text() == f"1 of 2 right. {note}"
    assert slot(page, 3).locator(".number").all_inner_texts() == ["0 of 2", "0 of 4"]
    slot(page, 3).get_by_role("button", name="Erase").click()
    slot(page, 3).get_by_role("button", name="Erase it").click()
    said = slot(page, 3).locator(".message").inner_text()
    assert said == ("This browser keeps no progress." if trouble == BLOCKED else "Erased.")


# ------------------------------------------------------------------------- how it sits on a page


@pytest.mark.parametrize("width", [1280, 360])
def test_what_is_used_stays_in_its_place_and_nothing_hangs_over(browser, addresses, width):
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.add_init_script(SHIFTS.replace("shifts.push", "entry.hadRecentInput || shifts.push"))
    wake(page, addresses["http"])

    def height_of(control, within):
        return control.bounding_box()["y"] - within.bounding_box()["y"]

    def place_of(at):
        controls = slot(page, at).locator("input, button").all()
        return [height_of(control, slot(page, at)) for control in controls]

    places = [place_of(at) for at in (0, 1)]
    for at in (0, 1):  # before it speaks a widget is as high as what it shows
        box = slot(page, at).locator("fieldset").bounding_box()
        last = slot(page, at).locator("button").last.bounding_box()
        assert box["y"] + box["height"] - last["y"] - last["height"] < 24
    for numbers in (["", "x"], ["0.5", "0.5"], ["0.018", "0.982"], ["0.0558", "0.944"]):
        check(page, numbers)
        assert place_of(0) == places[0]
    for at in (0, 1):
        slot(page, at).get_by_role("button", name="Reveal").click()
        page.evaluate(FRAME)
        assert place_of(at) == places[at]
    for form in slot(page, 2).locator("form").all():
        for option in form.locator("input").all():
            before = height_of(option, slot(page, 2))
            option.check()
            form.get_by_role("button", name="Check").click()
            page.evaluate(FRAME)
            assert height_of(option, slot(page, 2)) == before
    for name in ("Copy as text", "Erase", "Erase it"):
        slot(page, 3).get_by_role("button", name=name, exact=True).click()
        page.evaluate(FRAME)
    assert sum(page.evaluate("shifts")) <= 0.02
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.close()


def test_twelve_numbers_stand_in_a_grid(page, tmp_path):
    names = [f"{part} of {word}" for part in ("score", "power", "share") for word in "abcd"]
    write_page(tmp_path, Predict("Fill in.", dict.fromkeys(names, 2.0), key="many"))
    wake(page, (tmp_path / "page.html").as_uri())
    for width, columns in ((1280, 4), (360, 2)):
        page.set_viewport_size({"width": width, "height": 800})
        boxes = [field.bounding_box() for field in page.locator("input").all()]
        sides = [len({box[side] for box in boxes}) for side in ("x", "y", "width")]
        assert sides == [columns, 12 / columns, 1]
    said = check(page, ["2"] * 9 + ["1", "3", "3"])
    assert said == "Not yet: 3 of 12 are wrong."
    sides = page.locator(".digits").all_inner_texts()
    assert sides == ["whole number"] * 9 + ["too small", "too large", "too large"]
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_axe_finds_nothing(live):
    def states(page):
        for numbers in (["0.5", "0.5"], ["0.0558", "0.944"]):
            check(page, numbers)
            yield

    assert axe_findings(live, states) == []


def test_picture_unfolds_without_javascript(browser, addresses):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(addresses["http"])
    page.get_by_text("Answer", exact=True).first.click()
    assert page.get_by_text("piyo = 0.944193").last.is_visible()
    context.close()


def test_hostile_text_is_text(page, tmp_path):
    options = [{"text": HOSTILE, "why": HOSTILE, "right": True}, {"text": "b", "why": HOSTILE}]
    write_page(
        tmp_path,
        predict(unit=HOSTILE, explanation=HOSTILE, mistakes={HOSTILE: [3, 4]}),
        Quiz([{"text": HOSTILE, "options": options}], key="q"),
        Quiz([{"text": HOSTILE, "options": options}], key="another"),
        Progress({HOSTILE: {"q": 1}}),
    )
    wake(page, (tmp_path / "page.html").as_uri())
    assert HOSTILE in check(page, ["3", "4"])
    slot(page, 0).get_by_role("button", name="Reveal").click()
    for at in (2, 1):  # the radios of two quizzes do not disturb each other
        slot(page, at).locator("input").first.check()
    assert page.locator("input:checked").count() == 2
    slot(page, 1).get_by_role("button", name="Check").click()
    page.evaluate(FRAME)
    assert HOSTILE in slot(page, 1).get_by_role("status").first.inner_text()
    assert page.locator(".widget-slot :is(img, script)").count() == 0
    assert page.title() == "A page"
