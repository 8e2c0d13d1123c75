"""Every page as a reader meets it, over http and from disk: loaded, scrolled, read and used."""

import re
from pathlib import Path

import pytest

from tests.conftest import SITE, Slow, serve
from tests.site.harness import PLACES, awake, wake
from tests.site.looks import (
    AGAIN,
    ALL,
    PAPER,
    axe_findings,
    cut,
    faint,
    lost_by_tab,
    printed,
)
from tests.site.pages import (
    CHAPTER_2,
    CHAPTER_3,
    FIRSTS,
    FRAME,
    FROM_DISK,
    OPEN_ALL,
    OVERHANG,
    SCHEMES,
    THEMES,
    WATCH,
    WIDTHS,
    address,
    as_desktop,
    both_schemes,
    every_page,
    left,
    target,
    touch,
    use_widgets,
    visit,
)

KIB = 200  # at most, over http, where text is compressed


def assert_clean(seen):
    """What a visit leaves behind, whatever the reader did."""
    assert (seen["violations"], seen["noise"]) == ([], [])
    assert sum(shift["value"] for shift in seen["shifts"]) <= 0.02, seen["shifts"]
    assert max(seen["overhang"]) <= 0
    assert re.findall(r"undefined|\[object|could not start", "\n".join(seen["widgets"])) == []
    assert seen["open"] == []


@every_page
def test_a_visit_leaves_nothing_behind(browser, site, name):
    """One load answers all that is asked of a page: it arrives on a phone and is used there.

    Then the same page is as wide as a desktop's, by day and by night, is printed, and axe looks.
    """
    with visit(browser, address("http", name, site), 360) as (page, seen):
        assert 0 < seen["bytes"] <= 1024 * KIB
        found = cut(page, 360)
        use_widgets(page, seen)
        slots = page.locator(".widget-slot")
        for at in FIRSTS[name] or range(slots.count())[:1]:  # what lies over one lies over others
            touch(page, slots.nth(at))
        for link in page.locator("a.next-page").all():
            link.tap(trial=True)
        as_desktop(page)
        seen["overhang"].append(page.evaluate(OVERHANG))
        assert found + cut(page, 1024, 1280) == []
        assert lost_by_tab(page, FIRSTS[name]) == []
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            assert (theme, faint(page)) == (theme, [])
        assert printed(page) == PAPER
        page.emulate_media(media="screen")
        places = ALL if name == CHAPTER_3 else PLACES if FIRSTS[name] else AGAIN
        assert axe_findings(page, places) == {}
    assert left(seen["requests"], f"{site}/") == []
    assert_clean(seen)


@pytest.mark.parametrize("name", FROM_DISK)
def test_a_visit_from_disk_leaves_nothing_behind(browser, name):
    """Each script of the site works from disk on one page, used as on a desktop and at night."""
    with visit(browser, address("file", name, ""), 1280, "dark") as (page, seen):
        use_widgets(page, seen)
    assert left(seen["requests"], f"{SITE.as_uri()}/") == []
    assert_clean(seen)


# The chapter of heads begins with the widget whose parts are drawn in the most places.
@pytest.mark.parametrize(
    ("name", "width"),
    [("notation.html", 360), ("speed.html", 360), ("chapters/06-many-heads.html", 1280)],
)
def test_nothing_jumps_while_a_page_arrives(browser, name, width):
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.add_init_script(WATCH)
    with serve(SITE, Slow) as slow:
        page.goto(f"{slow}/{name}")
        page.evaluate(FRAME)
    shifts = page.evaluate("seen.shifts")
    page.close()
    assert sum(shift["value"] for shift in shifts) <= 0.005, shifts


@both_schemes
def test_policy_holds(browser, site, scheme):
    """What someone might smuggle onto a page neither runs nor asks for anything."""
    page = browser.new_page()
    page.add_init_script(WATCH)
    page.goto(address(scheme, "search.html", site))
    page.evaluate(
        """() => {
            const smuggle = (tag, traits) =>
                document.body.appendChild(Object.assign(document.createElement(tag), traits));
            smuggle("script", {textContent: "self.ran = true"});
            smuggle("script", {src: "https://example.org/script.js"});
            smuggle("img", {src: "https://example.org/picture.png"});
            smuggle("iframe", {src: "https://example.org/"});
            smuggle("p", {innerHTML: "<button onclick='self.ran = true'>Press</button>"});
            fetch("https://example.org/").catch(() => {});
        }"""
    )
    page.get_by_role("button", name="Press").click()
    page.wait_for_function("seen.violations.length > 5")
    assert page.evaluate("self.ran") is None
    assert {line.split(":")[0] for line in page.evaluate("seen.violations")} == {
        "script-src-elem", "script-src-attr", "img-src", "frame-src", "connect-src"
    }  # fmt: skip
    page.close()


def test_icon_is_a_picture(page):
    page.goto(address("file", CHAPTER_2, ""))
    width = page.evaluate(
        """async () => {
            const picture = new Image();
            picture.src = document.querySelector("link[rel~=icon]").href;
            await picture.decode();
            return picture.naturalWidth;
        }"""
    )
    assert width > 0


@pytest.mark.parametrize(("scheme", "width"), zip(SCHEMES, WIDTHS, strict=True))
def test_a_chapter_can_be_downloaded(browser, site, scheme, width):
    page = browser.new_page(viewport={"width": width, "height": 740})
    page.goto(address(scheme, CHAPTER_3, site))
    link = page.get_by_role("link", name="Download this chapter")
    box = link.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= 120  # seen without a scroll
    assert min(box["width"], box["height"]) >= 24
    file = SITE / target(CHAPTER_3, link.get_attribute("href"))[0]
    if scheme == "http" or file.suffix == ".zip":  # from disk a notebook would be shown as text
        with page.expect_download() as download:
            link.click()
        assert download.value.suggested_filename == file.name
        assert Path(download.value.path()).read_bytes() == file.read_bytes()
    page.close()


@pytest.mark.parametrize(
    ("scheme", "name", "drawer"),
    [("http", "Menu", ".sidebar-drawer"), ("file", "Contents", ".toc-drawer")],
)
def test_drawers_open_and_close_by_tap(browser, site, scheme, name, drawer):
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    page = context.new_page()
    page.goto(address(scheme, CHAPTER_3, site))
    link = page.locator(f"{drawer} a.internal").last
    assert not link.is_visible()
    page.get_by_role("button", name=name).locator("visible=true").tap()
    link.wait_for(state="visible")
    page.wait_for_function(  # it has slid in
        "at => { const box = document.querySelector(at).getBoundingClientRect();"
        " return box.left >= 0 && box.right <= innerWidth }",
        arg=drawer,
    )
    link.tap()
    page.locator(f"{drawer} a.internal").last.wait_for(state="hidden")
    assert not page.url.endswith(CHAPTER_3)
    context.close()


# ------------------------------------------------------------------------ a long page arrives

LONG = "chapters/08-the-encoder-layer.html"
ALIVE = "[...document.querySelectorAll('.widget-slot')].map(slot => slot.model !== undefined)"


def test_what_changes_on_a_page_styles_little_anew(browser, site):
    """Furo gives <html> a class as the reader scrolls, wide boxes get a role, a widget redraws.

    With one rule like `article:has(...)` each step of a slider would style the whole page.
    """
    page = wake(browser.new_page(), f"{site}/{LONG}")
    page.wait_for_load_state("networkidle")
    page.evaluate(f"document.fonts.ready.then(() => {FRAME})")  # a face that comes styles all
    events, ended = [], []
    session = browser.new_browser_cdp_session()
    session.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    session.on("Tracing.tracingComplete", lambda data: ended.append(True))
    trace = {"includedCategories": ["devtools.timeline"]}
    session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": trace})
    page.evaluate(
        f"""async () => {{
            document.documentElement.classList.toggle("show-back-to-top");
            await {FRAME};
            document.querySelectorAll("pre").forEach(box => box.setAttribute("role", "none"));
            await {FRAME};
            const slider = document.querySelector(".abh-flow [name=moment]");
            slider.value = 3.5;
            slider.dispatchEvent(new Event("input", {{bubbles: true}}));
            await {FRAME};
        }}"""
    )
    session.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(50)
    session.detach()
    args = [e["args"] for e in events if e["name"] == "UpdateLayoutTree"]
    styled = [each["elementCount"] for each in args if "elementCount" in each]  # at their ends
    elements = page.evaluate("document.querySelectorAll('*').length")
    page.close()
    assert styled and max(styled) < elements / 20, (styled, elements)


def test_widgets_start_as_they_come_near(page, site):
    page.goto(f"{site}/{LONG}")
    page.wait_for_load_state("networkidle")
    assert not page.evaluate(ALIVE)[-1]
    page.locator(".widget-slot").last.scroll_into_view_if_needed()
    page.wait_for_function(f"() => {ALIVE}.at(-1)")


def test_the_first_key_starts_all_widgets(page, site):
    """Tab goes past a widget that is still a picture."""
    page.goto(f"{site}/{LONG}")
    page.keyboard.press("Tab")
    page.wait_for_selector("html[data-widgets=ready]")
    assert page.evaluate("scrollY") == 0 and all(page.evaluate(ALIVE))


# ------------------------------------------------------------------------------ widgets


def test_pictures_stay_when_modules_fail(browser, site):
    page = browser.new_page()
    page.route("**/_static/widgets/*.js*", lambda route: route.abort())
    page.goto(f"{site}/{CHAPTER_3}")
    awake(page)
    page.evaluate(OPEN_ALL)
    for slot in page.locator(".widget-slot").all():
        assert slot.locator(".abh").is_visible()
        assert "could not start" in slot.get_by_role("alert").text_content()
    page.close()
