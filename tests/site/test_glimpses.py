"""What a link leads to is shown at the link: by pointer, key and touch, on any page, from disk."""

import pytest

from tests.site.harness import axe
from tests.site.pages import address

CHAPTER = "chapters/08-the-encoder-layer.html"
BOX = ".glimpse:popover-open"
TERM = 'article a[href$="#term-dropout"]'


@pytest.mark.parametrize(
    ("name", "link", "said"),
    [
        (CHAPTER, TERM, "Setting randomly chosen numbers of a network to 0"),
        (CHAPTER, 'a[href$="references.html#id2"]', "Attention is all you need"),
        (CHAPTER, 'section a.reference[href="#equation-eq-layer-norm"]', "γ"),
        ("history.html", 'section a.reference[href="#fig-reach"]', "influence a word has"),
        ("faq.html", 'a[href$="#equation-eq-alibi"]', "m"),
    ],
)
def test_what_a_link_leads_to_is_shown_under_the_pointer(page, site, name, link, said):
    page.goto(address("http", name, site))
    link = page.locator(link).first
    link.scroll_into_view_if_needed()
    words = link.bounding_box()
    link.hover()
    page.locator(BOX).wait_for()
    box = page.locator(BOX)
    assert said in box.evaluate("box => box.textContent")
    assert link.get_attribute("aria-describedby") == box.get_attribute("id")
    place = box.bounding_box()
    assert 0 <= place["x"] and place["x"] + place["width"] <= page.viewport_size["width"]
    assert place["y"] > words["y"] + words["height"] or place["y"] + place["height"] < words["y"]
    box.hover()  # it stays while the pointer is on it
    page.wait_for_timeout(400)
    assert box.count() == 1
    assert name == CHAPTER or axe(page, [BOX]) == []  # which reads the whole page: the small ones
    page.mouse.move(2, 2)
    box.wait_for(state="detached")


def test_by_key_it_opens_and_escape_closes_it(page):
    page.goto(address("file", CHAPTER, ""))
    page.locator(TERM).first.focus()
    page.keyboard.press("Tab")
    assert page.locator(BOX).count() == 0
    page.keyboard.press("Shift+Tab")
    asked = page.evaluate("document.activeElement.getAttribute('aria-describedby')")
    assert asked == page.locator(BOX).get_attribute("id")
    page.keyboard.press("Escape")
    assert page.locator(BOX).count() == 0
    page.keyboard.press("Enter")
    page.wait_for_url("**/*#*")


def test_a_first_touch_shows_and_a_second_follows(browser):
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    page = context.new_page()
    page.goto(address("file", CHAPTER, ""))
    term = page.locator(TERM).first
    term.tap()
    page.locator(BOX).wait_for()
    place = page.locator(BOX).bounding_box()
    assert 0 <= place["x"] and place["x"] + place["width"] <= 360
    assert CHAPTER in page.url and "#" not in page.url
    page.locator("h1").tap()
    assert page.locator(BOX).count() == 0
    term.tap()
    term.tap()
    page.wait_for_url("**/glossary.html#term-dropout")
    context.close()
