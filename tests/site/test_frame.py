"""The frame of a chapter: its first screen, the code of pictures, its guess, goals and map."""

import pytest

from tests.conftest import ROOT
from tests.site.harness import awake

CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))
# The first picture and its main control. What copies or resets changes nothing that one came for.
SEEN = """() => {
  const article = document.querySelector("article");
  const picture = article.querySelector("figure, .widget-slot:not([data-widget=Predict])");
  const controls = [...picture.querySelectorAll("input, select, button")];
  const control = controls.find(one => !["copy", "reset"].includes(one.name)
    && one.checkVisibility({visibilityProperty: true}));
  const reset = picture.querySelector("[name=reset]");
  return {
    top: picture.getBoundingClientRect().top + scrollY,
    control: control.getBoundingClientRect().bottom + scrollY,
    reset: reset?.checkVisibility({visibilityProperty: true}) ?? false,
  };
}"""
# Where the main control of a picture may end; on a phone all of its screen, the picture's top too.
SCREENS = [((360, 740), 740, 740), ((1280, 800), 200, 700)]


@pytest.fixture(scope="module")
def reader(browser):
    """A page that keeps what chapters have in common."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_first_screen_has_the_picture_and_its_main_control(reader, site, name):
    page = reader
    page.goto(f"{site}/chapters/{name}.html")
    for (width, height), most_top, most_control in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        seen = page.evaluate(SEEN)
        assert 0 < seen["top"] <= most_top, width
        assert seen["top"] < seen["control"] <= most_control, width
        assert seen["reset"], width


FIRST = "chapters/06-many-heads.html"


def test_code_of_a_picture_takes_no_room_until_it_is_opened(page, site):
    page.goto(f"{site}/{FIRST}")
    code = page.locator("details.code").first
    assert code.bounding_box()["height"] == 0
    code.locator("summary").press("Enter")
    sources = code.locator("pre").all_inner_texts()
    assert len(sources) == 3 and sources[0].startswith("import") and "Encoder(" in sources[-1]
    gap = """() => document.querySelector("details.code").getBoundingClientRect().top
      - document.querySelector(".widget-slot").getBoundingClientRect().bottom"""
    assert page.evaluate(gap) >= 0  # below the picture, which stays where it is


def test_a_guess_plays_the_picture_and_keeps_it_in_the_address(page, site):
    """The finding below is blurred until then."""
    page.set_viewport_size({"width": 1280, "height": 1600})
    page.goto(f"{site}/{FIRST}")
    awake(page)
    finding, filtered = page.locator(".finding p"), "p => getComputedStyle(p).filter"
    assert finding.evaluate(filtered) != "none"
    page.emulate_media(media="print")
    assert finding.evaluate(filtered) == "none"
    page.emulate_media(media="screen")
    page.get_by_role("button", name="It cannot").click()
    page.wait_for_url("**#encoder.head=9")
    page.locator(".abh-encoder", has_text="Layer 6, head 10").wait_for()
    guess = page.locator(".abh-guess")
    assert guess.get_by_role("status").first.inner_text().startswith("Not this one.")
    assert finding.evaluate(filtered) == "none"


def test_goals_are_ticked_kept_and_taken_back(page, site):
    page.goto(f"{site}/{FIRST}")
    assert page.locator(".map-here .lit").count() == 1
    boxes = page.locator(".goals").get_by_role("checkbox")
    for wanted in (True, False):
        boxes.nth(1).set_checked(wanted)
        page.reload()
        boxes.nth(3).wait_for()
        assert [box.is_checked() for box in boxes.all()] == [False, wanted, False, False]
    page.locator(".map-here a").click()  # each part of the map leads to a chapter
    page.wait_for_url("**/map.html")
    page.locator(f"article a[href='{FIRST}']").first.click()
    page.wait_for_url(f"**/{FIRST}")


def test_without_a_script_goals_are_a_list_and_code_opens(browser, site):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{site}/{FIRST}")
    assert page.locator(".goals li").count() == 4 and not page.locator(".goals input").count()
    code = page.locator("details.code").first
    code.locator("summary").click()
    assert code.locator("pre").first.is_visible()
    page.context.close()


def test_a_picture_shows_its_gesture_once_unless_motion_is_unwanted(browser, site):
    page = browser.new_page()
    page.goto(f"{site}/{FIRST}")
    hand = page.locator(".widget-hand")
    hand.wait_for(state="attached")
    hand.wait_for(state="detached")
    assert "#" not in page.url  # nothing was changed
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    page.locator(".widget-slot").first.locator("fieldset:enabled").wait_for()
    page.wait_for_timeout(500)
    assert hand.count() == 0
    page.close()
