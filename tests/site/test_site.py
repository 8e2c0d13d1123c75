"""The built site as a reader meets it: every page, over http and from disk, in a real browser."""

import functools
import re
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup

from tests.conftest import ROOT, SITE, Slow, serve
from tests.site.harness import axe

PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
PAGES = [name for name in PAGES if not name.startswith("lite/")]  # JupyterLite's own, if there
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
# not count. Real keys and taps are pressed in the tests of each widget.
USE_WIDGETS = f"""async () => {{
  const each = selector => document.querySelectorAll(`.widget-slot ${{selector}}`);
  const use = async (control, act) => {{
    control.scrollIntoView({{block: "center", behavior: "instant"}});
    await {FRAME};
    act(control);
    await {FRAME};
  }};
  const choose = value => control => {{
    control.value = value;
    for (const type of ["input", "change"]) {{
      control.dispatchEvent(new Event(type, {{bubbles: true}}));
    }}
  }};
  for (const slider of each("input[type=range]:enabled")) {{
    const {{min, max}} = slider;
    for (const value of [max, min, (+min + +max) / 2]) await use(slider, choose(value));
  }}
  for (const select of each("select:enabled")) {{
    for (const {{value}} of [...select.options]) await use(select, choose(value));
  }}
  for (const button of each("button:enabled:not([aria-expanded])")) {{
    await use(button, () => button.click());
  }}
}}"""
# Furo lets the column of text scroll, so that the page itself never seems to be too wide.
OVERHANG = """Math.max(...["html", ".content"].map(at => document.querySelector(at))
  .map(box => box.scrollWidth - box.clientWidth))"""


def address(scheme, name, site):
    return f"{site}/{name}" if scheme == "http" else (SITE / name).as_uri()


def awake(page):
    """Wait until the widgets of the page, if it has any, are alive."""
    if page.locator(".widget-slot").count():
        page.wait_for_selector("html[data-widgets=ready]")


@functools.cache
def soup(name):
    return BeautifulSoup((SITE / name).read_text(encoding="utf-8"), "html.parser")


def target(name, link):
    """Return the file inside the site that a link on a page leads to, and its anchor."""
    parts = urlsplit(urljoin(f"http://site/{name}", link))
    return unquote(parts.path).lstrip("/"), unquote(parts.fragment)


def test_there_are_pages_and_chapters():
    assert {"index.html", "search.html", CHAPTER_2, CHAPTER_3} <= set(PAGES)
    assert {CHAPTER_2, CHAPTER_3} <= set(NOTEBOOKS)


# ---------------------------------------------------------------------------- as it is written


@every_page
def test_policy_comes_first_and_allows_the_site_alone(name):
    head = soup(name).head
    metas = head.select("meta[http-equiv=Content-Security-Policy]")
    assert len(metas) == 1 and head.find(True) is metas[0]
    directives = dict(part.strip().split(" ", 1) for part in metas[0]["content"].split(";"))
    extra = {
        "script-src": {"blob:"},  # a widget's module
        "style-src": {"'unsafe-inline'"},
        "img-src": {"data:"},
        "font-src": {"data:"},
    }
    for directive, sources in directives.items():
        sources = {source for source in sources.split() if not source.startswith("'sha256-")}
        assert sources <= {"'self'", "'none'"} | extra.get(directive, set()), directive
    assert directives["default-src"] == directives["base-uri"] == "'self'"
    assert directives["form-action"] == "'self'" and directives["object-src"] == "'none'"


@every_page
def test_every_link_leads_somewhere(name):
    offences = []
    for element in soup(name).select("[href], [src], [srcset], [action], [data], [poster]"):
        for key in {"href", "src", "srcset", "action", "data", "poster"} & set(element.attrs):
            link = element[key]
            outside = element.name == "a" or element.get("rel") == ["canonical"]
            if re.match(r"https://|mailto:", link) and outside:
                continue
            if link.startswith("data:image/"):
                continue
            path, anchor = target(name, link)
            if urlsplit(link).scheme or link.startswith("//") or not (SITE / path).is_file():
                offences.append(link)
            elif anchor and path.endswith(".html") and not soup(path).find(id=anchor):
                offences.append(link)
    assert offences == []


@every_page
def test_every_anchor_stands_once(name):
    ids = [element["id"] for element in soup(name).select("[id]")]
    assert {anchor for anchor in ids if ids.count(anchor) > 1} == set()


def test_what_styles_refer_to_is_there():
    offences = []
    for path in (SITE / "_static").rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
        for link in re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s*['\"]([^'\"]+)", text):
            link = "".join(link)
            here = path.parent / urlsplit(link).path
            if not link.startswith(("data:", "#")) and not here.is_file():
                offences.append(f"{path.name}: {link[:80]}")
    assert offences == []


def test_titles_and_descriptions_tell_the_pages_apart():
    titles = [soup(name).title.get_text(strip=True) for name in PAGES]
    descriptions = [soup(name).select("meta[name=description]") for name in PAGES]
    assert all(len(found) == 1 for found in descriptions)
    texts = [found[0]["content"].strip() for found in descriptions]
    for words in (titles, texts):
        assert all(words) and len(set(words)) == len(words), words


@every_page
def test_head_says_language_and_width_once(name):
    assert soup(name).html["lang"] == "en"
    assert len(soup(name).select("meta[name=viewport]")) == 1
    assert len(soup(name).select("h1")) == 1


def test_next_and_previous_follow_the_contents():
    contents = soup("index.html").select(".sidebar-tree a.internal")
    order = ["index.html", *(target("index.html", link["href"])[0] for link in contents)]
    assert sorted(order) == [name for name in PAGES if name != "search.html"]
    neighbours = {
        name: [
            target(name, link["href"])[0] if link else None
            for link in (soup(name).select_one(f"a.{side}-page") for side in ("prev", "next"))
        ]
        for name in order
    }
    around = [None, *order, None]
    assert neighbours == {
        name: [before, after]
        for before, name, after in zip(around, order, around[2:], strict=False)
    }


RAW = re.compile(
    r"\{[a-z:-]+\}`|\{(?:term|eq|numref|ref|doc|cite|math)\b|:::|```|\$\$|\$\S[^$]*\$|\*\*|\]\("
    r"|\\(?:frac|sqrt|text|begin|end|cdot|operatorname|top|left|right|tilde|sum)\b|=====|\^\^\^"
)
TROUBLE = re.compile(r"Traceback \(most recent call last\)|\bWARNING\b|\w+Warning:|\[missing ")


@every_page
def test_nothing_raw_is_left(name):
    page = BeautifulSoup(str(soup(name)), "html.parser")
    heard = [
        element.get(key, "")
        for element in page.select("[alt], [aria-label], [title], meta[name=description]")
        for key in ("alt", "aria-label", "title", "content")
    ]
    for element in page.select("script, style, .cell.tag_raises-exception"):
        element.decompose()
    text = page.get_text()
    assert TROUBLE.findall(text) == []
    for element in page.select("pre, code"):
        element.decompose()
    assert RAW.findall(page.get_text()) == []
    assert [words for words in heard if RAW.search(words) or re.search(r"\\\w|\$", words)] == []


@every_page
def test_every_figure_has_words(name):
    for image in soup(name).select("img"):
        assert len(image.get("alt", "")) > 1, image
    for drawing in soup(name).select("article svg, footer svg"):
        label = drawing.get("aria-label", "").strip()
        hidden = drawing.get("aria-hidden") == "true"
        assert hidden != (drawing.get("role") == "img" and len(label) > 20), drawing.attrs


@every_page
def test_figures_have_no_colour_of_their_own(name):
    """A hex digit in a drawing would stay as it is when the reader's theme changes."""
    offences = [
        f"{key}={element[key]}"
        for element in soup(name).select("article svg, article svg *")
        for key in {"style", "fill", "stroke", "stop-color", "color"} & set(element.attrs)
        if re.search(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl|\b(black|white)\b", element[key])
    ]
    assert offences == []


@every_page
def test_code_of_widgets_is_small(name):
    widgets = {slot["data-module"] for slot in soup(name).select(".widget-slot")}
    scripts = [
        SITE / target(name, script["src"])[0] for script in soup(name).select("script[src*=widget]")
    ]
    assert sum(path.stat().st_size for path in scripts) <= 60_000 * len(widgets)
    assert bool(scripts) == bool(widgets)


# --------------------------------------------------------------------- loaded, scrolled and used


def visit_page(browser, site, name, scheme, width):
    """Load a page, over http or at night from disk, scroll to its end, and use its widgets.

    Returns what that leaves behind.
    """
    by_day = scheme == "http"
    theme = "light" if by_day else "dark"
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=theme)
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
    page.goto(address(scheme, name, site))
    awake(page)
    seen["overhang"].append(page.evaluate(OVERHANG))
    page.evaluate(SCROLL)
    if by_day:  # it is enough to see once whether a widget jumps
        page.evaluate(USE_WIDGETS)
    page.evaluate(FRAME)
    seen |= page.evaluate("seen")
    # A reader who opens what is folded wants the page to move, but not sideways.
    page.evaluate(OPEN_ALL)
    seen["overhang"].append(page.evaluate(OVERHANG))
    seen["widgets"] = page.locator(".widget-slot").all_text_contents()
    page.close()
    return seen


def left(requests, *own):
    """The requests that left the site, which has these addresses."""
    return [url for url in requests if not url.startswith((*own, "data:", "blob:"))]


@pytest.fixture(
    scope="module",
    params=[(name, scheme, width) for name in PAGES for scheme in SCHEMES for width in WIDTHS],
    ids=lambda visit: "-".join(map(str, visit)),
)
def visit(request, browser, site):
    """What a reader's visit leaves behind."""
    return visit_page(browser, site, *request.param)


def test_nothing_is_asked_of_others(visit, site):
    assert left(visit["requests"], f"{site}/", f"{SITE.as_uri()}/") == []
    assert visit["violations"] == []


def test_console_is_silent(visit):
    assert visit["noise"] == []


def test_first_visit_is_light(visit):
    """At most 200 KiB over http, where text comes compressed; from disk nothing is sent."""
    if visit["requests"][0].startswith("http"):
        assert 0 < visit["bytes"] <= 200 * 1024


def test_nothing_jumps(visit):
    assert sum(shift["value"] for shift in visit["shifts"]) <= 0.02, visit["shifts"]


@pytest.mark.parametrize("name", ["bug-museum.html", "notation.html", "speed.html"])
def test_nothing_jumps_while_a_table_arrives(browser, name):
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.add_init_script(WATCH)
    with serve(SITE, Slow) as slow:
        page.goto(f"{slow}/{name}")
        page.evaluate(FRAME)
    shifts = page.evaluate("seen.shifts")
    page.close()
    assert sum(shift["value"] for shift in shifts) <= 0.005, shifts


def test_nothing_hangs_over_the_side(visit):
    assert max(visit["overhang"]) <= 0


def test_widgets_show_no_gibberish(visit):
    text = "\n".join(visit["widgets"])
    assert re.findall(r"undefined|\[object|could not start", text) == []


@both_schemes
def test_policy_holds(browser, site, scheme):
    """What somebody might smuggle onto a page neither runs nor asks for anything."""
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


@both_schemes
def test_icon_is_a_picture(page, site, scheme):
    page.goto(address(scheme, CHAPTER_2, site))
    width = page.evaluate(
        """async () => {
            const picture = new Image();
            picture.src = document.querySelector("link[rel~=icon]").href;
            await picture.decode();
            return picture.naturalWidth;
        }"""
    )
    assert width > 0


@both_schemes
@pytest.mark.parametrize("width", WIDTHS)
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


@every_page
def test_only_chapters_are_offered(name):
    links = [link["aria-label"] for link in soup(name).select(".chapter-link")]
    assert links[:1] == ["Download this chapter as a notebook"] * (name in NOTEBOOKS)


@pytest.mark.parametrize(
    ("name", "drawer"), [("Menu", ".sidebar-drawer"), ("Contents", ".toc-drawer")]
)
@both_schemes
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


# ------------------------------------------------------------------------------ widgets

WITH_WIDGETS = [name for name in PAGES if soup(name).select(".widget-slot")]


@pytest.mark.parametrize("name", WITH_WIDGETS)
def test_pictures_stay_when_modules_fail(browser, site, name):
    page = browser.new_page()
    page.route("**/_static/widgets/*.js*", lambda route: route.abort())
    page.goto(f"{site}/{name}")
    awake(page)
    page.evaluate(OPEN_ALL)
    for slot in page.locator(".widget-slot").all():
        assert slot.locator(".widget-picture > .abh").is_visible()
        assert "could not start" in slot.get_by_role("alert").text_content()
    page.close()


# Of radio buttons Tab stops at one, and the arrow keys lead to the others.
STOPS = """slot => new Set([...slot.querySelectorAll("a[href], button, input, select, [tabindex]")]
  .filter(stop => stop.tabIndex >= 0 && !stop.disabled)
  .filter(stop => stop.checkVisibility({visibilityProperty: true}))
  .map(stop => stop.type === "radio" ? stop.form.elements[stop.name][0] : stop)).size"""
FOCUS = """() => {
  const at = document.activeElement, slot = at.closest(".widget-slot");
  const style = getComputedStyle(at), label = getComputedStyle(at.parentElement);
  const rings = [style, label].some(one => one.outlineStyle !== "none" || one.boxShadow !== "none");
  at.stop ??= self.stops = (self.stops ?? 0) + 1;
  return [[...document.querySelectorAll(".widget-slot")].indexOf(slot), rings, at.stop];
}"""


@pytest.mark.parametrize("name", WITH_WIDGETS)
def test_tab_stops_at_every_control_and_shows_where(page, site, name):
    page.goto(f"{site}/{name}")
    awake(page)
    page.evaluate(OPEN_ALL)
    for at, slot in enumerate(page.locator(".widget-slot").all()):
        slot.scroll_into_view_if_needed()
        stops = slot.evaluate(STOPS)
        slot.evaluate(
            """slot => {
                const start = document.createElement("span");
                start.tabIndex = -1;
                slot.before(start);
                start.focus();
            }"""
        )
        met = []
        for _ in range(stops):
            page.keyboard.press("Tab")
            met.append(page.evaluate(FOCUS))
        assert {where for where, *_ in met} <= {at}, met
        assert len({stop for *_, stop in met}) == stops and all(ring for _, ring, _ in met)
        page.keyboard.press("Tab")
        assert page.evaluate(FOCUS)[0] != at, "Tab does not lead out again"


# ------------------------------------------------------------------------------- accessibility


# What depends on the theme and the width at once. Running text has its colours at any width.
AROUND = ["header", "aside", "footer", ".content-icon-container", ".cell_output", ".widget-slot"]
# Each theme and each width once; `make bench` measures the other two pairs as well.
ONCE = [(1280, "light", ["html"]), (360, "dark", ["html"])]
ALL = [*ONCE, (1280, "dark", AROUND), (360, "light", AROUND)]
# Thousands of code tokens share a few colours. One of each is enough, and axe is four times faster.
# Glyphs of formulas are hidden from whoever does not see them, and what is read out stays.
ONE_TOKEN_OF_A_KIND = """() => {
  document.querySelectorAll("mjx-math[aria-hidden=true]").forEach(math => math.replaceChildren());
  const seen = new Set();
  for (const token of document.querySelectorAll("pre span")) {
    if (seen.has(token.className)) token.replaceWith(...token.childNodes);
    seen.add(token.className);
  }
}"""


def axe_findings(browser, url, places):
    """What axe finds on a page in each of these places, and with the menu open."""
    page = browser.new_page(reduced_motion="reduce")
    page.goto(url)
    awake(page)
    page.evaluate(OPEN_ALL)
    page.evaluate(ONE_TOKEN_OF_A_KIND)
    found = {}
    for width, theme, parts in places:
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        page.evaluate(FRAME)
        found[width, theme] = axe(page, parts)
    page.set_viewport_size({"width": 360, "height": 800})
    page.get_by_role("button", name="Menu").click()
    page.evaluate(FRAME)
    found["menu"] = axe(page, ["header", "aside"])
    page.close()
    return {where: nodes for where, nodes in found.items() if nodes}


@every_page
def test_axe_finds_nothing(browser, site, name):
    assert axe_findings(browser, f"{site}/{name}", ONCE) == {}


# The ground of a text is whatever is painted under its middle, layer upon layer.
CONTRASTS = """() => {
  const context = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const paint = (colour, opacity = 1) => {
    context.globalAlpha = opacity;
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = rgb => rgb.map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const texts = [...document.querySelectorAll("article svg text, article svg tspan")]
    .filter(text => [...text.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
  return texts.map(text => {
    text.scrollIntoView({block: "center", behavior: "instant"});
    const {x, y, width, height} = text.getBoundingClientRect();
    const under = document.elementsFromPoint(x + width / 2, y + height / 2).reverse();
    let ground = paint(getComputedStyle(document.body).backgroundColor);
    for (const element of under) {
      const style = getComputedStyle(element);
      if (element.closest("text")) continue;
      if (!(element instanceof SVGElement)) ground = paint(style.backgroundColor);
      else if (element instanceof SVGGeometryElement && style.fill !== "none") {
        ground = paint(style.fill, style.fillOpacity * style.opacity);
      } else if (parseFloat(style.strokeWidth) * element.getScreenCTM?.().a > 8) {
        // A stroke as wide as a cell is its ground, as in HeadsViewer.
        ground = paint(style.stroke, style.strokeOpacity * style.opacity);
      }
    }
    const ink = paint(getComputedStyle(text).fill, getComputedStyle(text).fillOpacity);
    const [low, high] = [luminance(ground), luminance(ink)].sort((a, b) => a - b);
    return [(high + 0.05) / (low + 0.05), text.textContent.trim(), ground.join()];
  });
}"""


@every_page
def test_drawings_are_readable_in_both_themes(browser, site, name):
    """Figures, and the pictures that stand in for widgets, measured where each text lies."""
    if not soup(name).select("article svg"):
        return
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.route("**/widget_host.js*", lambda route: route.abort())
    page.goto(f"{site}/{name}")
    grounds = set()
    for theme in THEMES:
        page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        page.evaluate(FRAME)
        texts = page.evaluate(CONTRASTS)
        assert texts, "drawings without any text"
        assert [text for text in texts if text[0] < 4.5] == []
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    page.close()


# ----------------------------------------------------------------------------- without JavaScript


@pytest.fixture(scope="module")
def bare(browser):
    """A phone at night without JavaScript."""
    context = browser.new_context(
        java_script_enabled=False, viewport={"width": 360, "height": 740}, color_scheme="dark"
    )
    yield context.new_page()
    context.close()


@every_page
def test_page_is_whole_without_javascript(bare, name):
    bare.goto((SITE / name).as_uri())
    bare.evaluate(OPEN_ALL)  # as a reader does; nothing on the page runs
    assert bare.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 22)"
    assert bare.evaluate(OVERHANG) <= 0
    formulas = bare.locator("mjx-container")
    assert formulas.count() == bare.locator("mjx-container mjx-assistive-mml math").count()
    for found in (formulas, bare.locator("figure svg"), bare.locator(".widget-picture > .abh")):
        boxes = found.evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(box => [box.width, box.height])"
        )
        assert all(min(box) > 1 for box in boxes), boxes
    assert bare.locator(".widget-picture").count() == len(soup(name).select(".widget-slot"))


HIDDEN = {"remove-cell", "remove-input", "remove-output"}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_code_and_outputs_of_the_notebook_are_on_the_page(bare, name):
    bare.goto((SITE / name).as_uri())
    bare.evaluate(OPEN_ALL)
    shown = " ".join(bare.locator("article").inner_text().split())
    # Of a widget that needs a kernel the notebook has the text and the page a note.
    asleep = tuple(code.get_text() + "(" for code in soup(name).select(".kernel-only code"))
    missing = []
    for cell in nbformat.read((ROOT / name).with_suffix(".ipynb"), as_version=4).cells:
        tags = set(cell.metadata.get("tags", []))
        if cell.cell_type != "code" or HIDDEN & tags:
            continue
        texts = [cell.source]
        # An output that nbval ignores differs from machine to machine.
        for output in cell.outputs if "nbval-ignore-output" not in tags else []:
            if output.output_type == "stream":
                texts.append(output.text)
            elif set(output.get("data", {})) == {"text/plain"}:
                texts.append(output.data["text/plain"])
        texts = [text for text in texts if not text.startswith(asleep)]
        missing += [text for text in texts if " ".join(text.split()) not in shown]
    assert missing == []
