"""The pages of the built site, and what a reader's visit to one of them is.

The tests in this folder and `benchmarks/site.py` share it.
"""

import functools
import re
from contextlib import contextmanager
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

from tests.conftest import ROOT, SITE

PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
MOVED = {f"{old}.html": f"{new}.html" for old, new in CONFIG["moved_pages"].items()}
WHOLE = "whole.html"
# Those that only lead on are none; the whole is made of the others (test_whole.py), and so are the
# pages of single pictures (test_take_along.py).
PAGES = [
    name for name in PAGES if name not in MOVED and name != WHOLE and not name.startswith("embed/")
]
NOTEBOOKS = [name for name in PAGES if (ROOT / name).with_suffix(".ipynb").exists()]
CHAPTER_2 = "chapters/02-queries-keys-values.html"
CHAPTER_3 = "chapters/03-chai-piyo-by-hand.html"

SCHEMES = ["http", "file"]
WIDTHS = [1280, 360]
THEMES = ["light", "dark"]
every_page = pytest.mark.parametrize("name", PAGES)
both_schemes = pytest.mark.parametrize("scheme", SCHEMES)

# Goes into each page before anything of its own.
WATCH = """
self.seen = {shifts: [], violations: []};
addEventListener("securitypolicyviolation", event =>
  seen.violations.push(`${event.effectiveDirective}: ${event.blockedURI}`));
new PerformanceObserver(list => list.getEntries().forEach(entry => seen.shifts.push({
  value: entry.value,
  moved: entry.sources.map(({node}) => node?.className || node?.parentNode?.className || "?"),
}))).observe({type: "layout-shift", buffered: true});
"""
FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"  # drawn
OPEN_ALL = "document.querySelectorAll('details').forEach(details => { details.open = true })"
SCROLL = f"""async () => {{
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {{
    scrollTo({{top: y, behavior: "instant"}});
    await {FRAME};
  }}
}}"""
# Each slider, each option, each button that reveals nothing, in view: a shift out of sight does
# not count. Predict and Quiz answer below what was asked, and what follows makes room for it.
# Real keys and taps are pressed in the tests of each widget; so is what opens the microscope. Of a
# grid's buttons the one that Tab stops at stands for all. What fetches megabytes is no part of a
# visit.
ASIDE = "[aria-expanded], [name=why], [data-why], [tabindex='-1'], .abh-predict *, .abh-quiz *"
ASIDE += ", .abh-encoder [name=read], .abh-writer :is([name=write], [name=one], [data-take])"
# On a phone Inspector keeps no room for its longest answer, so what follows makes room for it, too.
ASIDE += ", .abh-inspector :is([name=open], select, [data-example])"
USE_WIDGETS = f"""async () => {{
  const each = selector => document.querySelectorAll(`.widget-slot ${{selector}}`);
  const use = async (control, ...acts) => {{
    control.scrollIntoView({{block: "center", behavior: "instant"}});
    await {FRAME};
    for (const act of acts) {{
      act(control);
      await {FRAME};
    }}
  }};
  const choose = value => control => {{
    control.value = value;
    for (const type of ["input", "change"]) {{
      control.dispatchEvent(new Event(type, {{bubbles: true}}));
    }}
  }};
  for (const slider of each("input[type=range]:enabled")) {{
    const {{min, max}} = slider;
    await use(slider, ...[max, min].map(choose));
  }}
  for (const select of each("select:enabled:not({ASIDE})")) {{
    await use(select, ...[...select.options].map(option => choose(option.value)));
  }}
  for (const button of each("button:enabled:not({ASIDE})")) {{
    await use(button, () => button.click());
  }}
}}"""
# Which answers are open.
OPEN_ANSWERS = """[...document.querySelectorAll("article details.answer[open]")].map(
  box => box.innerText)"""
# Where the column of text scrolls, the page itself never seems to be too wide.
OVERHANG = """Math.max(...["html", ".content"].map(at => document.querySelector(at))
  .filter(box => box.localName === "html" || getComputedStyle(box).overflowX !== "visible")
  .map(box => box.scrollWidth - box.clientWidth))"""


def address(scheme, name, site):
    return f"{site}/{name}" if scheme == "http" else (SITE / name).as_uri()


@functools.cache
def soup(name):
    return BeautifulSoup((SITE / name).read_text(encoding="utf-8"), "html.parser")


def firsts():
    """The numbers of the widgets on each page that are the first ones with their controls.

    Of a prediction and a quiz, which have any number of fields, there is one kind.
    """
    met, found = set(), {}
    for name in PAGES:
        _, *slots = (SITE / name).read_text(encoding="utf-8").split('class="widget-slot"')
        found[name] = []
        for at, slot in enumerate(slots):
            kind = re.search(r'data-widget="(\w+)"', slot)[1]
            controls = frozenset(re.findall(r'<(?:input|select|button)\b[^>]* name="(.*?)"', slot))
            key = kind if kind in ("Predict", "Quiz") else (kind, controls)
            found[name] += [] if key in met else [at]
            met.add(key)
    return found


FIRSTS = firsts()  # they stand for all of their kind


def target(name, link):
    """Return the file inside the site that a link on a page leads to, and its anchor."""
    parts = urlsplit(urljoin(f"http://site/{name}", link))
    return unquote(parts.path).lstrip("/"), unquote(parts.fragment)


def scripts(name):
    """The scripts that a page loads, those of widgets aside, which all come in the same way."""
    found = re.findall(r'<script\b[^>]* src="([^"]+)"', (SITE / name).read_text(encoding="utf-8"))
    return {target(name, each)[0] for each in found if "/widgets/" not in each}


def from_disk():
    """A few pages that have all these scripts."""
    missing, found = set().union(*map(scripts, PAGES)), []
    while missing:
        found.append(max(PAGES, key=lambda name: len(scripts(name) & missing)))
        missing -= scripts(found[-1])
    return found


FROM_DISK = from_disk()


@contextmanager
def visit(browser, url, width, theme="light"):
    """Give a page as it comes, and what that leaves behind: `seen`, which grows while it is open.

    From over http it is scrolled to its end; then its widgets are woken and what is folded opens.
    """
    page = browser.new_page(
        viewport={"width": width, "height": 800}, color_scheme=theme, has_touch=width < 500
    )
    seen = {"noise": [], "requests": [], "overhang": [], "bytes": 0}

    def count(transfer):
        seen["bytes"] += transfer["encodedDataLength"]

    page.on("console", lambda message: seen["noise"].append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen["noise"].append(f"error: {error}"))
    page.on("request", lambda request: seen["requests"].append(request.url))
    network = page.context.new_cdp_session(page)
    network.on("Network.loadingFinished", count)
    network.send("Network.enable")
    page.add_init_script(WATCH)
    page.goto(url)
    seen["overhang"].append(page.evaluate(OVERHANG))
    folded = page.locator("details:not([open]) .widget-slot").count()
    scrolls = url.startswith("http")
    if scrolls:
        page.evaluate(SCROLL)
    if page.locator(".widget-slot").count():  # they start as they come near, or with a key
        if folded or not scrolls:
            page.keyboard.press("Shift")
        page.wait_for_selector("html[data-widgets=ready]")
    page.evaluate(FRAME)
    seen |= page.evaluate("seen")
    seen["widgets"] = page.locator(".widget-slot").all_text_contents()
    seen["open"] = page.evaluate(OPEN_ANSWERS)
    # A reader who opens what is folded wants the page to move, but not sideways.
    page.evaluate(OPEN_ALL)
    seen["overhang"].append(page.evaluate(OVERHANG))
    yield page, seen
    page.close()


# The first control of a widget, used as a finger does: a slider at its far end, a list by its
# last option, a box by a tap, a button by a tap.
FIRST_CONTROL = ":is(input, select, button):visible:enabled"


def touch(page, slot):
    """Use the first control of a widget with a finger: nothing may lie over it."""
    if not slot.locator(FIRST_CONTROL).count():
        return  # Progress, before anything was answered
    control = slot.locator(FIRST_CONTROL).first
    kind = control.evaluate("control => control.type ?? control.localName")
    control.scroll_into_view_if_needed()
    if kind == "range":
        box = control.bounding_box()
        page.touchscreen.tap(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    elif kind == "select-one":
        last = control.locator("option").last.get_attribute("value")
        control.select_option(last)
    elif kind == "text":
        control.tap()
        control.press("End")
        control.type("1")
        control.press("Tab")
    else:
        control.tap()
    page.evaluate(FRAME)


def as_desktop(page):
    """Make a phone's page one of a desktop: wide, with a pointer that hovers."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    page.set_viewport_size({"width": 1280, "height": 800})
    page.evaluate(FRAME)


def use_widgets(page, seen):
    """Use every control of every widget, and add what that leaves behind."""
    page.evaluate(f"{FRAME}.then(() => {FRAME}).then(() => {{ self.seen.shifts = [] }})")
    page.evaluate(USE_WIDGETS)
    page.evaluate(FRAME)
    used = page.evaluate("seen")
    seen |= used | {"shifts": seen["shifts"] + used["shifts"]}
    seen["overhang"].append(page.evaluate(OVERHANG))
    seen["widgets"] = page.locator(".widget-slot").all_text_contents()


def left(requests, *own):
    """The requests that left the site, which has these addresses."""
    return [url for url in requests if not url.startswith((*own, "data:", "blob:"))]
