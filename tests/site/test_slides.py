"""A page as slides: section after section, block by block, the pictures alive, and back again."""

import pytest

from tests.site.harness import awake, axe, themes
from tests.site.pages import FRAME, address, both_schemes

CHAPTER = "chapters/05-masks.html"


def standing(page):
    """What the bar says, and how many blocks of the page are in sight."""
    page.evaluate(FRAME)
    said = page.locator(".slides-bar [role=status]").inner_text()
    blocks = "all => all.filter(one => one.checkVisibility()).length"
    shown = page.locator("article section > :not(section)").evaluate_all(blocks)
    return said.partition(" of ")[0], said.partition(": ")[2], shown


def begun(page, link):
    page.goto(link)
    page.locator(".slides-bar").wait_for()
    return page


@both_schemes
def test_sections_come_one_after_another_and_block_by_block(page, site, scheme):
    link = address(scheme, CHAPTER, site)
    page.goto(link)
    assert page.locator("script[src*=slides]").count() == 0  # it costs a reader nothing
    page.get_by_role("link", name="Show this chapter as slides").click()
    page.locator(".slides-bar").wait_for()
    assert standing(page) == ("1", "5. Masks", 2)  # the heading and the question
    assert not page.locator(".sidebar-drawer, .toc-drawer, footer").first.is_visible()
    keys = ["PageDown", "ArrowRight", "ArrowRight", "ArrowRight", "PageUp", "ArrowLeft"]
    second = ("2", "Without a mask, a model copies", 2)
    wanted = [("1", "5. Masks", n) for n in (3, 4, 5)] + [second]
    wanted += [("1", "5. Masks", n) for n in (5, 4)]
    for key, place in zip(keys, wanted, strict=True):
        page.keyboard.press(key)
        assert standing(page) == place
        assert page.url == f"{link}#slides-{place[0]}"
    page.get_by_role("button", name="Leave").click()
    page.evaluate(FRAME)
    assert page.url == f"{link}#masks" and page.locator(".slides-bar").count() == 0
    assert page.locator("#takeaways").is_visible() and page.locator("footer").is_visible()
    page.keyboard.press("PageDown")  # is the page's own again
    assert page.url == f"{link}#masks"


def test_pictures_are_alive_and_keep_their_keys_and_their_settings(page, site):
    begun(page, f"{site}/{CHAPTER}#slides-3")
    while page.locator(".slide-on [type=range]").count() == 0:
        page.keyboard.press("PageDown")
    before = standing(page)
    awake(page)
    slider = page.locator(".slide-on [type=range]").first
    value = slider.input_value()
    slider.press("ArrowRight")
    assert slider.input_value() != value and standing(page) == before
    page.wait_for_function("() => location.hash.includes('.')")  # the setting is in the address
    settings = page.url.partition("&")[2]
    page.keyboard.press("PageDown")
    page.keyboard.press("PageDown")
    page.wait_for_function("settings => location.hash.endsWith(settings)", arg=settings)
    number, title, _ = standing(page)
    page.reload()
    page.locator(".slides-bar").wait_for()
    assert standing(page) == (number, title, 2)


def test_without_text_headings_stay_and_nothing_else_is_lost(page, site):
    begun(page, f"{site}/{CHAPTER}#slides-3")
    assert page.locator("section > p.slide-on").count() == 1
    page.keyboard.press("t")
    _, title, shown = standing(page)
    assert (title, shown) == ("Why a mask", 2) and page.locator("section > p.slide-on").count() == 0
    page.keyboard.press("t")
    assert standing(page) == ("3", "Why a mask", 2)
    # Every block but folded proofs comes up in the course of all slides.
    page.evaluate("location.hash = '#slides-1'")
    seen = set()
    blocks = "[...document.querySelectorAll('article section > *')]"
    ids = f"all => all.map(one => {blocks}.indexOf(one))"
    while page.get_by_role("button", name="Next").is_enabled():
        seen |= set(page.locator(".slide-on").evaluate_all(ids))
        page.keyboard.press("PageDown")
    seen |= set(page.locator(".slide-on").evaluate_all(ids))
    wanted = page.locator(
        "article section:not(#exercises) > :not(section, .facts, .tag_hide-cell, "
        ".cell.tag_hide-input:not(:has(.cell_output)))"
    )
    assert seen == set(wanted.evaluate_all(ids))


def test_an_absurd_number_is_the_nearest_slide(page, site):
    begun(page, f"{site}/{CHAPTER}#slides-0")
    last = page.locator(".slides-bar [role=status]").inner_text().split()[2].rstrip(":")
    for number, slide in (("0", "1"), ("999", last), ("7&plane.asks=1", "7")):
        page.evaluate("to => { location.hash = to }", f"slides-{number}")
        found, _, shown = standing(page)
        assert (found, shown) == (slide, 2)


@pytest.mark.parametrize("width", [1280, 360])
def test_it_fits_and_axe_finds_nothing(browser, site, width):
    page = browser.new_page(viewport={"width": width, "height": 740})
    begun(page, f"{site}/{CHAPTER}#slides-3")
    for _ in range(9):
        page.keyboard.press("PageDown")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert [axe(page) for _ in themes(page)] == [[], []]
    page.close()


def test_a_projector_shows_text_and_code_alike_and_the_finding_without_a_guess(page, site):
    begun(page, f"{site}/{CHAPTER}#slides-1")
    while page.locator(".slide-on.finding").count() == 0:
        page.keyboard.press("PageDown")
    finding = page.locator(".finding p").first
    assert finding.evaluate("one => getComputedStyle(one).filter") == "none"
    size = "one => parseFloat(getComputedStyle(one).fontSize)"
    for width, least in ((1280, 18), (1920, 24)):
        page.set_viewport_size({"width": width, "height": width * 9 // 16})
        code, heading, text = (
            page.locator(part).first.evaluate(size)
            for part in ("div.highlight pre", "article h2", "article section > p:not(.facts)")
        )
        assert 0.8 * least <= code < text < heading


def test_a_page_of_paragraphs_or_of_nothing_is_left_as_it_is(page, site):
    begun(page, f"{site}/solutions.html#slides")
    for _ in range(3):
        page.keyboard.press("t")
        assert standing(page)[0] == "1"
    page.goto(f"{site}/search.html#slides")
    page.wait_for_function("() => self.showSlides")
    assert page.locator(".slides-bar").count() == 0
