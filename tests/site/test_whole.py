"""All chapters on one page: everything is there, leads to its place, and stands still."""

import re
from collections import Counter

from _ext.course import chapters as course
from _ext.whole.one_page import place
from tests.conftest import SITE
from tests.site.pages import (
    FRAME,
    OPEN_ALL,
    OVERHANG,
    SCROLL,
    WATCH,
    WHOLE,
    left,
    soup,
    target,
)

CHAPTERS = course.read()
# It may weigh more than a page: a reader asks for all of it. Nothing else leads there or loads it.
KIB = 960


def words(text):
    return " ".join(text.split())


def test_all_chapters_stand_there_in_order():
    parts = soup(WHOLE).select(".whole")
    assert [part.h2.find(string=True).strip() for part in parts] == [
        soup(f"{chapter.page}.html").h1.find(string=True).strip() for chapter in CHAPTERS
    ]
    for part, chapter in zip(parts, CHAPTERS, strict=True):
        page = soup(f"{chapter.page}.html").article
        found = [paragraph.get_text() for paragraph in page.select("p, li, pre, figcaption")]
        assert found
        said = words(part.get_text())
        assert [text for text in found if words(text) not in said] == []


def test_each_anchor_stands_once_and_each_link_leads_somewhere():
    page = soup(WHOLE)
    ids = Counter(element["id"] for element in page.select("[id]"))
    assert [name for name, times in ids.items() if times > 1] == []
    offenses = []
    for element in page.select("[href], [src]"):
        link = element.get("href") or element.get("src")
        if re.match(r"https://|mailto:|data:image/", link):
            continue
        path, anchor = target(WHOLE, link)
        if path == WHOLE and anchor:
            offenses += [link] if anchor not in ids else []
        elif not (SITE / path).is_file():
            offenses.append(link)
        elif anchor and path.endswith(".html"):
            offenses += [] if soup(path).find(id=anchor) else [link]
        if element.find_parent(class_="whole"):
            assert "chapters/" not in path or "_" in path, link  # those are here
    for name in re.findall(r"url\((?:&quot;)?#([^)&]+)", str(page)):
        offenses += [] if name in ids else [name]
    assert offenses == []


def test_search_engines_leave_it_out_and_so_does_the_search():
    assert soup(WHOLE).select_one("meta[name=robots]")["content"] == "noindex"
    assert len(soup(WHOLE).select("meta[name=description]")) == len(soup(WHOLE).select("h1")) == 1
    assert '["whole",' not in (SITE / "searchindex.js").read_text(encoding="utf-8")
    assert len(soup("index.html").select(f"article a[href='{WHOLE}']")) == 1


# The boxes of code, formulas, figures and tables: how many a reader cannot reach by Tab although
# they scroll, and how many stand in the way although they do not.
REACH = """() => {
  const boxes = [...document.querySelectorAll(".whole :is(pre, [class$=-scroll], .table-wrapper)")];
  const wide = boxes.filter(box => box.scrollWidth > box.clientWidth + 1);
  return {
    wide: wide.length,
    lost: wide.filter(box => box.tabIndex < 0).length,
    unnamed: wide.filter(box => !box.ariaLabel).length,
    needless: boxes.filter(box => box.tabIndex >= 0 && !wide.includes(box)).length,
  };
}"""


# All of it in a moment, as one screen after the other was drawn before.
LAY_OUT = f"""() => {{
  const parts = document.querySelectorAll(".whole > section");
  for (const part of parts) part.style.contentVisibility = "visible";
  return {FRAME};
}}"""


def test_it_is_read_to_its_end_at_rest(browser, site):
    """On a phone, whose screen is tall, and then as wide as a desktop."""
    page = browser.new_page(viewport={"width": 360, "height": 4000})
    noise, requests, weights = [], [], []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    network = page.context.new_cdp_session(page)
    network.on("Network.loadingFinished", lambda event: weights.append(event["encodedDataLength"]))
    network.send("Network.enable")
    page.add_init_script(WATCH)
    page.goto(f"{site}/{WHOLE}")
    before = page.evaluate(REACH)
    page.evaluate(OPEN_ALL)
    page.evaluate(SCROLL)
    after = page.evaluate(REACH)
    assert before["lost"] == after["lost"] == 0  # also before it is laid out
    assert before["wide"] > 100 and before["unnamed"] > 0
    assert after["unnamed"] == after["needless"] == 0
    assert page.evaluate(OVERHANG) <= 0
    page.set_viewport_size({"width": 1280, "height": 4000})
    page.evaluate(LAY_OUT)
    assert page.evaluate(OVERHANG) <= 0
    assert page.locator(".widget-slot :is(input, button, select):enabled").count() == 0
    assert page.evaluate("seen.violations") == noise == []
    assert left(requests, f"{site}/") == []
    assert 0 < sum(weights) <= 1024 * KIB
    page.close()


LANDED = f"""async () => {{
  for (let frame = 0; frame < 8; frame++) await {FRAME};
  const place = document.querySelector(":target");
  return place.getBoundingClientRect().top - parseFloat(getComputedStyle(place).scrollMarginTop);
}}"""
LAID_OUT = """document.querySelectorAll(".whole > section").values()
  .filter(part => part.checkVisibility({contentVisibilityAuto: true})).toArray().length"""


def test_a_link_leads_exactly_to_its_place_past_chapters_that_are_not_laid_out(browser):
    """On a phone, where a chapter is the most unlike the height that is assumed of it."""
    page = browser.new_page(viewport={"width": 360, "height": 800})
    places = [place(chapter.page) for chapter in CHAPTERS]
    page.goto(f"{(SITE / WHOLE).as_uri()}#{places[8]}")
    lands = [page.evaluate(LANDED)]
    assert 0 < page.evaluate(LAID_OUT) < len(places) / 2
    for name in [*places[::-5], places[1]]:
        page.locator(f".whole-list a[href='#{name}']").evaluate("link => link.click()")
        lands.append(page.evaluate(LANDED))
    assert max(map(abs, lands)) < 2
    page.emulate_media(media="print")
    assert page.evaluate(LAID_OUT) == len(places)
    page.close()
