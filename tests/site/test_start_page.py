"""The start page: what its first screen holds, where it leads, what it knows of its reader."""

import json

from _ext.course import chapters as course
from tests.site.harness import BLOCKED, awake
from tests.site.pages import CHAPTER_3, FRAME, WATCH, address, both_schemes, soup

PLACE = "attention-by-hand-place"
BEGIN = ("Begin", "1. Why attention", "chapters/01-why-attention.html")


def way_in(page):
    """Return what the button says, and where it leads."""
    link = page.locator(".begin a")
    word, title = (link.locator(part).inner_text() for part in ("strong", "em"))
    title = title.replace("\N{NO-BREAK SPACE}", " ")
    return word, title, "/".join(link.get_attribute("href").split("/")[-2:])


HERO = ".start-hero"
SAID = f"{HERO} [data-part=said]"


def test_the_first_screen_holds_the_title_the_way_in_and_the_picture(page, site):
    page.goto(f"{site}/index.html")
    awake(page)
    picture = f"{HERO} .picture svg:visible"
    for width, height in ((1280, 800), (1024, 768), (768, 1024), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scrollTo(0, 0)")
        page.evaluate(FRAME)
        assert page.locator(picture).count() == 1
        for part in ("h1", "h1 + p", ".begin a", picture, f"{HERO} .words", f"{SAID} .found"):
            box = page.locator(f"article {part}").first.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width, (width, part)
            assert box["y"] >= 0 and box["y"] + box["height"] <= height, (width, part)


def found(page):
    """Return the word that the hero names, and its weight."""
    return [page.locator(f"{SAID} {part}").inner_text() for part in (".key", ".number")]


@both_schemes
def test_one_word_is_swapped_and_the_address_keeps_it(page, site, scheme):
    page.goto(address(scheme, "index.html", site))
    awake(page)
    assert found(page) == ["milk", "0.55"]
    page.locator(HERO).get_by_role("button", name="tired", exact=True).click()
    page.wait_for_function("() => location.hash === '#swap.word=tired'")
    assert found(page) == ["cat", "0.50"]
    page.reload()
    awake(page)
    assert found(page) == ["cat", "0.50"]
    page.locator(f"{HERO} .quiet").click()
    page.wait_for_function("() => location.hash === '#swap.word=small'")  # where it fails
    assert found(page) == ["trophy", "0.61"]
    page.locator(f"{HERO} .quiet").click()
    page.wait_for_function("() => location.hash === ''")
    page.locator(f"{HERO} .blank:visible").click(force=True)  # the word in the sentence itself
    page.wait_for_function("() => location.hash === '#swap.word=tired'")


def test_the_thick_curve_glides_from_word_to_word_or_jumps(page, site):
    """Its end lies between the two on the way; where motion is not wanted it is there at once."""
    ends = """motion => new Promise(done => {
      const end = () => Number([...document.querySelectorAll(".start-hero .across path")]
        .sort((a, b) => b.getAttribute("stroke-width") - a.getAttribute("stroke-width"))[0]
        .getAttribute("d").match(/[\\d.]+(?= [\\d.]+$)/)[0]);
      const seen = [end()], until = performance.now() + 2000;
      document.querySelector("[data-word=tired]").click();
      const look = () => {
        seen.push(end());
        if (performance.now() < until) requestAnimationFrame(look); else done(seen);
      };
      requestAnimationFrame(() => requestAnimationFrame(look));
    })"""
    for motion in ("no-preference", "reduce"):
        page.emulate_media(reduced_motion=motion)
        page.goto(f"{site}/index.html")
        awake(page)
        milk, *way, cat = page.evaluate(ends)
        assert cat < milk - 100
        between = [x for x in way if cat + 1 < x < milk - 1]
        assert bool(between) == (motion == "no-preference")
        page.goto("about:blank")


def test_what_the_page_says_needs_no_other_page():
    """Terms of later occur in the names of chapters alone, or where they are explained."""
    article = soup("index.html").select_one("article")
    said = " ".join(
        text
        for text in article.find_all(string=True)
        if not text.find_parent(["a", "template", "script"])
        and not text.find_parent(class_=["begin", "visually-hidden"])
    ).lower()
    assert "language model" in said
    terms = ("d_k", "entropy", "causal", "softmax", "query", "tensor", "transformer", "gradient")
    for term in (*terms, "gpt", "encoder", "embedding"):
        assert term not in said, term
    explained = {name.text for name in article.select("em")}
    assert {"attention weight", "layers", "heads"} <= explained


def test_every_chapter_is_listed_once_with_its_minutes():
    rows = soup("index.html").select(".part li")
    chapters = course.read()
    typed = str.maketrans({"“": '"', "”": '"', "\N{NO-BREAK SPACE}": " "})
    assert [row.get_text(" ", strip=True).translate(typed) for row in rows] == [
        f"{c.heading} {c.reading} + {c.practice} min" for c in chapters
    ]
    chosen = soup("index.html").select(":is(.part, .begin) a[href*=chapters]")
    links = [link["href"] for link in chosen]
    assert sorted(links) == sorted([BEGIN[2], *(f"{c.page}.html" for c in chapters)])


def test_a_reader_goes_on_where_the_last_visit_ended(page, site):
    page.add_init_script(WATCH)
    page.goto(f"{site}/index.html")
    assert way_in(page) == BEGIN
    before = page.locator(".begin a").bounding_box()
    page.goto(f"{site}/{CHAPTER_3}")
    page.goto(f"{site}/index.html")
    page.evaluate(FRAME)
    assert way_in(page) == ("Continue", "3. “Chai piyo” by hand", CHAPTER_3)
    assert page.locator(".begin a").bounding_box() == before
    assert sum(shift["value"] for shift in page.evaluate("seen.shifts")) <= 0.005
    page.locator(".begin a").click()
    assert page.url.endswith(CHAPTER_3)
    page.go_back()
    assert way_in(page)[0] == "Continue"


def test_a_reader_goes_on_in_the_section_where_the_last_visit_ended(page, site):
    page.goto(f"{site}/{CHAPTER_3}#the-code")
    page.locator(".toc-tree .scroll-current > a[href='#the-code']").wait_for()
    page.goto(f"{site}/index.html")
    assert way_in(page) == ("Continue", "3. “Chai piyo” by hand", f"{CHAPTER_3}#the-code")


def test_a_place_that_the_page_does_not_know_is_none(page, site):
    page.goto(f"{site}/index.html")
    for junk in ("", "chapters/none.html", "index.html", "javascript:alert(1)"):
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


def test_without_javascript_it_begins_and_shows_both_readings(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/index.html")
    pictures = page.locator(f"{HERO} .picture svg:visible")
    assert ["sour" in pictures.nth(i).text_content() for i in range(2)] == [True, False]
    assert ["tired" in pictures.nth(i).text_content() for i in range(2)] == [False, True]
    page.locator(".begin a").click()
    assert page.url.endswith(BEGIN[2])
    context.close()
