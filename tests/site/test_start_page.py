"""The start page: what its first screen holds, where it leads, what it knows of its reader."""

import json

import pytest

from _ext.course import chapters as course
from tests.site.harness import BLOCKED, awake
from tests.site.pages import CHAPTER_3, FRAME, WATCH, address, both_schemes, soup

PLACE = "attention-by-hand-place"
BEGIN = ("Begin", "1. Why attention", "chapters/01-why-attention.html")


def way_in(page):
    """Return what the button says, and where it leads."""
    link = page.locator(".begin a")
    word, title = (link.locator(part).inner_text() for part in ("strong", "em"))
    return word, title, "/".join(link.get_attribute("href").split("/")[-2:])


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1024, 768), (360, 740)])
def test_the_first_screen_holds_the_title_the_way_in_and_the_picture(browser, site, width, height):
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(f"{site}/index.html")
    awake(page)
    page.evaluate("scrollTo(0, 0)")
    for part in ("h1", "h1 + p", ".begin a", ".sentence", "[data-part=sheet]"):
        box = page.locator(f"article {part}").first.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, part
        assert box["y"] >= 0 and box["y"] + box["height"] <= height, part
    page.close()


@both_schemes
def test_one_word_is_changed_and_bank_moves(page, site, scheme):
    page.goto(address(scheme, "index.html", site))
    awake(page)
    answer = page.locator(".start-plane [data-part=answer]")
    assert answer.inner_text() == "(2.99, 0.17)"
    page.locator(".start-plane").get_by_role("button", name="money").click()
    page.wait_for_function(
        "text => document.querySelector('.start-plane [data-part=answer]').textContent === text",
        arg="(0.17, 2.99)",
    )


def test_the_first_screen_has_none_of_the_terms_of_later():
    section = soup("index.html").select_one("article section")
    first = " ".join(part.get_text() for part in section.select(":scope > :not(section)"))
    assert "language model" in first
    for term in ("d_k", "entropy", "causal", "real tokens", "softmax", "query", "tensor"):
        assert term not in first.lower(), term


def test_every_chapter_is_listed_once_with_its_minutes():
    rows = soup("index.html").select(".part li")
    chapters = course.read()
    assert [row.get_text(" ", strip=True).replace("“", '"').replace("”", '"') for row in rows] == [
        f"{c.heading} {c.minutes} + {c.practice} min" for c in chapters
    ]
    links = [link["href"] for link in soup("index.html").select("article a[href*=chapters]")]
    assert sorted(links) == sorted([BEGIN[2], *(f"{c.page}.html" for c in chapters)])


@both_schemes
def test_a_reader_goes_on_where_the_last_visit_ended(page, site, scheme):
    page.add_init_script(WATCH)
    page.goto(address(scheme, "index.html", site))
    assert way_in(page) == BEGIN
    before = page.locator(".begin a").bounding_box()
    page.goto(address(scheme, CHAPTER_3, site))
    page.goto(address(scheme, "index.html", site))
    page.evaluate(FRAME)
    assert way_in(page) == ("Continue", "3. “Chai piyo” by hand", CHAPTER_3)
    assert page.locator(".begin a").bounding_box() == before
    assert sum(shift["value"] for shift in page.evaluate("seen.shifts")) <= 0.005
    page.locator(".begin a").click()
    assert page.url.endswith(CHAPTER_3)
    page.go_back()
    assert way_in(page)[0] == "Continue"


def test_a_reader_goes_on_in_the_section_where_the_last_visit_ended(page, site):
    page.goto(f"{site}/{CHAPTER_3}#scores")
    page.locator(".toc-tree .scroll-current > a[href='#scores']").wait_for()
    page.goto(f"{site}/index.html")
    assert way_in(page) == ("Continue", "3. “Chai piyo” by hand", f"{CHAPTER_3}#scores")


@pytest.mark.parametrize("junk", ["", "chapters/none.html", "index.html", "javascript:alert(1)"])
def test_a_place_that_the_page_does_not_know_is_none(page, site, junk):
    page.goto(f"{site}/index.html")
    page.evaluate("([name, junk]) => localStorage.setItem(name, junk)", [PLACE, junk])
    page.reload()
    assert way_in(page) == BEGIN


def test_progress_is_on_the_cards_and_is_erased_with_the_place(page, site):
    (chapter, *_) = course.read()
    key = next(iter(chapter.questions))
    page.goto(f"{site}/{chapter.page}.html")
    page.evaluate(
        "([name, text]) => localStorage.setItem(name, text)",
        ["attention-by-hand", json.dumps({"right": [f"{key}/1"]})],
    )
    page.goto(f"{site}/index.html")
    awake(page)
    page.wait_for_function("/^1 of/.test(document.querySelector('.part .number').textContent)")
    assert way_in(page)[0] == "Continue"
    keep = page.locator(".widget-slot").last
    assert keep.locator(".number").inner_text().startswith("1 of ")
    keep.get_by_role("button", name="Erase", exact=True).click()
    keep.get_by_role("button", name="Erase it").click()
    page.evaluate(FRAME)
    assert page.locator(".part .number").first.inner_text().startswith("0 of ")
    assert way_in(page) == BEGIN


def test_a_browser_that_keeps_nothing_begins(page, site):
    page.add_init_script(BLOCKED)
    page.goto(f"{site}/{CHAPTER_3}")
    page.goto(f"{site}/index.html")
    assert way_in(page) == BEGIN


def test_without_javascript_it_begins_and_shows_where_bank_goes(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/index.html")
    assert page.locator(".start-plane [data-part=sheet]").is_visible()
    page.locator(".begin a").click()
    assert page.url.endswith(BEGIN[2])
    context.close()
