"""The built site as a reader meets it: every page, over http and from disk, in a real browser."""

import functools
import json
import re
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from bs4 import BeautifulSoup

from tests.conftest import ROOT, SITE

PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
NOTEBOOKS = [name for name in PAGES if (ROOT / name).with_suffix(".ipynb").exists()]
CHAPTER_2 = "chapters/02-queries-keys-values.html"
CHAPTER_3 = "chapters/03-chai-piyo-by-hand.html"

SCHEMES = ["http", "file"]
WIDTHS = [1280, 360]
THEMES = ["light", "dark"]
every_page = pytest.mark.parametrize("name", PAGES)

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
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
OPEN_ALL = "document.querySelectorAll('details').forEach(details => { details.open = true })"
OVERHANG = "document.documentElement.scrollWidth - innerWidth"


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
            if re.match(r"https://|mailto:", link) and element.name == "a":
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
    for path in SITE.rglob("*.css"):
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


@pytest.fixture(
    scope="module",
    params=[(name, scheme, width) for name in PAGES for scheme in SCHEMES for width in WIDTHS],
    ids=lambda visit: "-".join(map(str, visit)),
)
def visit(request, browser, site):
    """What a reader's visit leaves behind: a page loaded, scrolled to its end, its widgets used."""
    name, scheme, width = request.param
    page = browser.new_page(viewport={"width": width, "height": 800})
    seen = {"noise": [], "requests": [], "overhang": []}
    page.on("console", lambda message: seen["noise"].append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen["noise"].append(f"error: {error}"))
    page.on("request", lambda request: seen["requests"].append(request.url))
    page.add_init_script(WATCH)
    page.goto(address(scheme, name, site))
    awake(page)
    seen["overhang"].append(page.evaluate(OVERHANG))
    page.evaluate(
        f"""async () => {{
            for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {{
                scrollTo({{top: y, behavior: "instant"}});
                await {FRAMES};
            }}
        }}"""
    )
    use_widgets(page)
    seen |= page.evaluate("seen")
    # A reader who opens what is folded wants the page to move, but not sideways.
    page.evaluate(OPEN_ALL)
    seen["overhang"].append(page.evaluate(OVERHANG))
    seen["widgets"] = page.locator(".widget-slot").all_inner_texts()
    page.close()
    return seen


def use_widgets(page):
    """Move each slider, choose each option and press each button that reveals nothing."""
    for slot in page.locator(".widget-slot").all():
        for slider in slot.get_by_role("slider", disabled=False).all():
            slider.focus()
            for key in ("End", "Home", "ArrowRight", "ArrowRight", "PageUp"):
                page.keyboard.press(key)
                page.evaluate(FRAMES)
        for choice in slot.locator("select:enabled").all():
            for index in range(choice.locator("option").count()):
                choice.select_option(index=index)
                page.evaluate(FRAMES)
        for button in slot.locator("button:enabled:not([aria-expanded])").all():
            if button.is_enabled():  # a step back may be possible no more
                button.press("Enter")
                page.evaluate(FRAMES)


def test_nothing_is_asked_of_others(visit, site):
    own = (f"{site}/", f"{SITE.as_uri()}/", "data:", "blob:")
    assert [url for url in visit["requests"] if not url.startswith(own)] == []
    assert visit["violations"] == []


def test_console_is_silent(visit):
    assert visit["noise"] == []


def test_nothing_jumps(visit):
    assert sum(shift["value"] for shift in visit["shifts"]) <= 0.02, visit["shifts"]


def test_nothing_hangs_over_the_side(visit):
    assert max(visit["overhang"]) <= 0


def test_widgets_show_no_gibberish(visit):
    text = "\n".join(visit["widgets"])
    assert re.findall(r"undefined|NaN|\[object|could not start", text) == []


# ------------------------------------------------------------------------------- accessibility


AXE = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"target-size": {"enabled": True}},
}


def violations(page):
    """Return what axe finds, one line a node."""
    found = page.evaluate(f"axe.run(document, {json.dumps(AXE)})")["violations"]
    return [f"{rule['id']}: {node['target']}" for rule in found for node in rule["nodes"]]


@every_page
def test_axe_finds_nothing(browser, site, name):
    page = browser.new_page(reduced_motion="reduce")
    page.goto(f"{site}/{name}")
    awake(page)
    page.evaluate(OPEN_ALL)
    page.evaluate(AXE_SCRIPT)
    found = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        for theme in THEMES:
            page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
            page.evaluate(FRAMES)
            found[width, theme] = violations(page)
    page.get_by_role("button", name="Menu").click()
    page.evaluate(FRAMES)
    found["menu"] = violations(page)
    page.close()
    assert {where: nodes for where, nodes in found.items() if nodes} == {}


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
        page.evaluate(FRAMES)
        texts = page.evaluate(CONTRASTS)
        assert texts, "drawings without any text"
        assert [text for text in texts if text[0] < 4.5] == []
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    page.close()
