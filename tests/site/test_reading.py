"""What a reader does with the site: turn pages, change the theme, copy, read without JS."""

import json
import re

import pytest

from tests.conftest import ROOT, SITE
from tests.site.harness import BLOCKED, FULL, awake
from tests.site.pages import FRAME, OVERHANG, PAGES, SCROLL

CHAPTER_2 = "chapters/02-queries-keys-values.html"
CHAPTER_3 = "chapters/03-chai-piyo-by-hand.html"
CHAPTER_4 = "chapters/04-scaling.html"
PHONE = {"width": 360, "height": 740}


@pytest.fixture(params=["http", "file"])
def address(request, site):
    """Give the address of a page, over http and from disk."""
    return lambda name: f"{site}/{name}" if request.param == "http" else (SITE / name).as_uri()


def test_theme_follows_the_system_and_the_switch(browser, address):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    noise = []
    page.on("console", lambda message: noise.append(message.text))
    page.goto(address(CHAPTER_3))
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(19, 20, 22)"
    for _ in range(3):
        page.get_by_role("button", name="Toggle Light / Dark").locator("visible=true").click()
        if page.evaluate("document.body.dataset.theme") == "light":
            break
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"  # the choice is kept
    assert noise == []
    context.close()


@pytest.mark.parametrize("trouble", [BLOCKED, FULL], ids=["blocked", "full"])
def test_without_storage_theme_search_and_widgets_go_on(browser, site, trouble):
    page = browser.new_page(color_scheme="light")
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(trouble)
    page.goto(f"{site}/search.html?q=piyo")
    page.locator(".found a", has_text="Chai piyo").first.click()
    page.wait_for_url(f"**/{CHAPTER_3}*")
    seen = []
    for _ in range(3):
        page.get_by_role("button", name="Toggle Light / Dark").locator("visible=true").click()
        seen.append(page.evaluate("document.body.dataset.theme"))
    assert seen == ["dark", "light", "auto"]
    awake(page)
    assert errors == []
    page.close()


def test_phone_menu_by_keyboard(page, site):
    page.set_viewport_size(PHONE)
    page.goto(f"{site}/{CHAPTER_3}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Skip to content"
    menu = page.get_by_role("button", name="Menu")
    menu.press("Enter")
    link = page.locator(".sidebar-tree a", has_text="Queries")
    link.wait_for(state="visible")
    assert menu.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Escape")
    link.wait_for(state="hidden")
    assert menu.get_attribute("aria-expanded") == "false"
    menu.click()
    link.click()
    page.wait_for_selector("h1")
    assert CHAPTER_2 in page.url


NARROW, WIDE = [320, 1008], [1100, 1247, 1280, 1312, 1313, 1552, 1920, 2560]
IN_SIGHT = """selector => {
  const [link] = [...document.querySelectorAll(selector)].filter(one => one.checkVisibility());
  const { left, right, top, bottom } = link.getBoundingClientRect();
  const under = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return left >= 0 && right <= innerWidth && link.contains(under);
}"""
COLUMNS = """() => [".sidebar-drawer", "article", ".toc-drawer"].map(part =>
  document.querySelector(part).getBoundingClientRect()).flatMap(box => [box.left, box.right])"""


def test_every_width_has_its_way_to_the_chapters_and_sections(page, site):
    page.goto(f"{site}/{CHAPTER_3}")
    for width in [*NARROW, 1009, 1072, 1073]:
        page.set_viewport_size({"width": width, "height": 768})
        page.evaluate("history.replaceState(null, '', location.pathname)")
        assert page.evaluate(OVERHANG) <= 0, width
        page.locator("button[aria-label=Contents]:visible").click()
        page.locator(".toc-tree a[href='#the-code']").click()
        page.wait_for_url("**#the-code")
        chapter = page.locator(".sidebar-tree a", has_text="Queries")
        if width in NARROW:
            page.locator("button[aria-label=Menu]").click()
        chapter.click(trial=True)  # in sight, at rest, and nothing lies over it
        if width in NARROW:
            page.keyboard.press("Escape")
            chapter.wait_for(state="hidden")
    chapter.click()
    page.wait_for_url(f"**/{CHAPTER_2}")


def test_wide_screens_have_three_columns_side_by_side(page, site):
    page.goto(f"{site}/{CHAPTER_4}")  # where no Flow lies over the contents
    for width in WIDE:
        page.set_viewport_size({"width": width, "height": 768})
        page.evaluate(FRAME)
        assert page.evaluate(OVERHANG) <= 0, width
        assert page.evaluate(IN_SIGHT, ".toc-tree a[href='#your-turn-a-hundred-numbers']"), width
        assert page.evaluate(IN_SIGHT, f".sidebar-tree a[href$='{CHAPTER_2.split('/')[1]}']"), width
        columns = page.evaluate(COLUMNS)
        assert columns == sorted(columns) and 640 <= columns[3] - columns[2] <= 740, width
    page.locator(".sidebar-tree a", has_text="Queries").click()
    page.wait_for_url(f"**/{CHAPTER_2}")


def test_the_contents_show_a_page_far_down_and_mark_the_chapter_that_was_read_last(page, site):
    marked = ".sidebar-tree a.reached"
    page.set_viewport_size({"width": 1280, "height": 500})
    page.goto(f"{site}/glossary.html")
    page.evaluate(FRAME)
    assert page.evaluate(IN_SIGHT, ".sidebar-tree .current-page > a")
    assert page.locator(marked).count() == 0
    page.goto(f"{site}/{CHAPTER_3}")
    assert page.locator(marked).count() == 0  # there it is the page itself
    page.goto(f"{site}/glossary.html")
    assert page.locator(marked).get_attribute("href") == CHAPTER_3


@pytest.mark.parametrize(
    ("width", "way"), [(360, ".here"), (1024, ".back-to-top"), (1280, ".toc-tree a[href='#']")]
)
def test_the_way_back_to_the_top_covers_no_line(page, site, width, way):
    page.set_viewport_size({"width": width, "height": 768})
    page.goto(f"{site}/{CHAPTER_3}#the-code")
    awake(page)
    page.wait_for_function("() => scrollY > 1000")
    page.evaluate(SCROLL)
    page.mouse.wheel(0, -300)  # then Furo shows it
    page.locator(way).wait_for()
    box, text = page.locator(way).bounding_box(), page.locator("article").bounding_box()
    apart = box["x"] >= text["x"] + text["width"] or box["y"] + box["height"] <= 64
    assert apart and box["x"] + box["width"] <= width
    page.locator(way).click()
    page.wait_for_function("() => scrollY === 0")


# The titles that are cut in the bar at the top of a phone.
CUT = """titles => {
  const bar = document.querySelector(".mobile-header"), here = bar.querySelector(".here");
  return titles.filter((title) => {
    here.innerHTML = title;
    const {width, height} = here.getBoundingClientRect();
    return width > 210 || height > bar.clientHeight;
  });
}"""


def test_a_phone_says_which_chapter_this_is_and_a_line_how_much_is_read(page, site):
    page.set_viewport_size(PHONE)
    page.goto(f"{site}/{CHAPTER_3}")
    assert page.locator(".mobile-header .here").inner_text() == page.locator("h1").inner_text()
    pages = [(SITE / name).read_text(encoding="utf-8") for name in PAGES]
    titles = [title for page in pages for title in re.findall(r'class="here"[^>]*>([^<]+)', page)]
    assert len(titles) > 20 and page.evaluate(CUT, titles) == []
    line = "getComputedStyle(document.body, '::before').scale"
    assert page.evaluate(line) == "0 1"
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_function(f"{line} === 'none' || parseFloat({line}) > 0.99")


def test_a_chapter_is_ticked_when_all_of_it_is_answered(page, site):
    asked = "document.querySelector('.sidebar-tree a[data-asks*=chai-piyo]')"
    page.goto(f"{site}/glossary.html")
    counts = json.loads(page.evaluate(f"{asked}.dataset.asks"))
    ids = [f"{key}/{i + 1}" for key, n in counts.items() for i in range(n)]
    for right in (ids[1:], 5, ids):
        keep = "right => localStorage.setItem('attention-by-hand', JSON.stringify({right}))"
        page.evaluate(keep, right)
        page.reload()
        assert page.evaluate(f"{asked}.className.includes('done')") == (right is ids)
    page.goto(f"{site}/{CHAPTER_3}")  # its own page
    assert page.evaluate(f"{asked}.className.includes('done')")


def test_on_a_phone_the_copy_button_comes_with_a_tap_and_covers_nothing(browser, site):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{site}/{CHAPTER_3}")
    assert page.locator(".copy-button:visible").count() == 0
    block = page.locator(".cell_input:visible .highlight").first
    block.tap()
    button = block.get_by_role("button", name="Copy")
    code, box = block.locator("pre").bounding_box(), button.bounding_box()
    assert box["y"] >= code["y"] + code["height"] and box["height"] >= 24
    assert page.locator(".cell_output .copy-button").count() == 0
    context.close()


def test_copy_button_copies_the_cell(page, site):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{site}/{CHAPTER_3}")
    awake(page)
    cells = json.loads((ROOT / CHAPTER_3.replace("html", "ipynb")).read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    block = page.locator(".cell_input .highlight:visible").first
    block.hover()
    block.get_by_role("button", name="Copy").click()
    block.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied in sources and copied == block.locator("pre").text_content().rstrip("\n")
