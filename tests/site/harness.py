"""A widget in a browser, on a page of its own made as the site makes its pages."""

import re
from contextlib import contextmanager

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from _ext.assets import with_constants
from _ext.widgets import page as widget_slot
from _ext.writer.page import model_script
from attnlib import palette
from tests.conftest import ROOT, serve
from tests.site.pages import FRAME
from tests.widgets.pictures import picture, run

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><style>{css}</style>
<script defer src="widget_host.js"></script><script defer src="module.js"></script>
<style>body {{ max-width: 46rem; margin: 0 auto; padding: 0 1rem; background: var(--page);
color: var(--ink); }} .widget-slot {{ position: relative; }}
.widget-share {{ position: absolute; top: 100%; right: 0; }}</style></head>
<body><main><article><h1>A page</h1>{slots}
<p id="after">What comes after.</p></article></main></body>"""
# A browser that lets a page keep nothing, or no more.
BLOCKED = """Object.defineProperty(self, "localStorage", {
  get() { throw new DOMException("denied", "SecurityError"); } })"""
FULL = """Storage.prototype.setItem = () => {
  throw new DOMException("full", "QuotaExceededError"); }"""
# How far things move. A page is hidden until it is all there: what comes makes room for itself.
SHIFTS = """self.shifts = []; new PerformanceObserver(list => list.getEntries().forEach(
  entry => shifts.push(entry.value))).observe({type: "layout-shift", buffered: true});
document.adoptedStyleSheets = [new CSSStyleSheet()];
document.adoptedStyleSheets[0].replaceSync("html { visibility: hidden }");
addEventListener("DOMContentLoaded", () => document.adoptedStyleSheets.pop());"""
AXE = {
    "resultTypes": ["violations"],
    "preload": False,  # style sheets: no rule here asks for them
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"target-size": {"enabled": True}, "label-content-name-mismatch": {"enabled": True}},
}
# Whether a link stands out from its text costs more than all rules but contrast. Links of one class
# in places of one class look alike, so the last of them is enough.
MARK_LINKS = """() => {
  const kinds = new Map();
  for (const link of document.querySelectorAll("a[href]")) {
    delete link.dataset.look;
    const {localName, className} = link.parentElement;
    kinds.set([link.className, localName, className].join(), link);
  }
  for (const link of kinds.values()) link.dataset.look = "";
  axe.configure({rules: [{id: "link-in-text-block", selector: "a[href][data-look]"}]});
}"""
# Contrast is by far the dearest rule, and what looks alike has the same: one of a kind is enough on
# a page, whatever state it was seen in. How drawings are filled axe does not know.
MARK_KINDS = """parts => {
  const kinds = new Map(), clear = ["rgba(0, 0, 0, 0)", "none", "1"];
  const covers = layer => layer.startsWith("rgb(");
  for (const last of document.querySelectorAll("[data-kind]")) last.removeAttribute("data-kind");
  for (const element of document.querySelectorAll(parts.map(part => `${part} *`))) {
    const text = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (element.ownerSVGElement || !text && !element.matches("input, select, textarea")) continue;
    const {color, fontSize, fontWeight} = getComputedStyle(element);
    const kind = [element.localName, element.className, element.disabled];
    kind.push(element.checkVisibility({visibilityProperty: true}), color, fontSize, fontWeight);
    for (let under = element; under; under = under.parentElement) {
      const {backgroundColor, backgroundImage, opacity} = getComputedStyle(under);
      const layers = [backgroundColor, backgroundImage, opacity];
      kind.push(...layers.filter(x => !clear.includes(x) && !(covers(x) && x === kind.at(-1))));
    }
    kinds.set(kind.join(), element);
  }
  self.metKinds ??= new Set();
  for (const [kind, element] of kinds) {
    if (!metKinds.has(kind)) element.dataset.kind = "";
    metKinds.add(kind);
  }
  axe.configure({rules: [{id: "color-contrast", selector: "[data-kind]"}]});
}"""


# ---------------------------------------------------------------------- a page and its widget


def host():
    """The script of the site that brings widgets to life."""
    script = ROOT / "_ext" / "widgets" / "static" / "widget_host.js"
    return with_constants(script.read_text(encoding="utf-8"))


def write_page(folder, *widgets):
    """Write a page with these widgets, and what it refers to."""
    states = [(type(widget).__name__, widget.state) for widget in widgets]
    slots = "".join(widget_slot.mount_point(*each) for each in states)
    files = widget_slot.assets({widget_slot.use(*each) for each in states}).items()
    styles, scripts = (
        "".join(text for name, text in files if name.endswith(end)) for end in (".css", ".js")
    )
    for file, text in {
        "page.html": PAGE.format(slots=slots, css=palette.css() + styles),
        "widget_host.js": host(),
        "module.js": scripts,
    }.items():
        (folder / file).write_text(text, encoding="utf-8")


@contextmanager
def served(folder):
    """Give the addresses of the page over http and from disk."""
    with serve(folder) as address:
        yield {"http": f"{address}/page.html", "file": (folder / "page.html").as_uri()}


def add_model(folder):
    """Give a page the script that loads the model that writes, and the model itself."""
    loader = ROOT / "_ext" / "writer" / "static" / "writer_loader.js"
    (folder / "writer_loader.js").write_bytes(loader.read_bytes())
    (folder / "model.js").write_text(model_script()[1], encoding="utf-8")
    page = folder / "page.html"
    script = '<script defer src="writer_loader.js" data-model="model.js"></script>'
    page.write_text(page.read_text(encoding="utf-8").replace("<script", f"{script}<script", 1))


def page_of(*widgets, model=False):
    """A fixture for a test file: the addresses of a page with these widgets.

    With `model` the page can load the model that writes.
    """

    @pytest.fixture(scope="module")
    def addresses(tmp_path_factory):
        folder = tmp_path_factory.mktemp("widgets")
        write_page(folder, *widgets)
        if model:
            add_model(folder)
        with served(folder) as addresses:
            yield addresses

    return addresses


def wake(page, address):
    """Open the page and wait until its widgets are alive."""
    page.goto(address)
    return awake(page)


def awake(page):
    """Wait until all widgets of the page are alive: those out of sight start with the first key."""
    page.keyboard.press("Shift")
    if page.locator(".widget-slot").count():
        page.wait_for_selector("html[data-widgets=ready]")
    return page


def tab_to(page, selector, key="Tab"):
    """Press Tab until what is selected has the focus."""
    for _ in range(15):
        page.keyboard.press(key)
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    pytest.fail(f"{key} does not reach {selector}")


@contextmanager
def phone(browser, address):
    """Give the page alive on a narrow screen that is touched."""
    context = browser.new_context(viewport={"width": 360, "height": 800}, has_touch=True)
    yield wake(context.new_page(), address)
    context.close()


def import_module(page, widget, name="widget"):
    """Load a widget's module as a notebook does, from a blob, under a name of the page."""
    page.evaluate(
        """async ([name, source]) => {
            const blob = new Blob([source], {type: "text/javascript"});
            self[name] = await import(URL.createObjectURL(blob));
        }""",
        [name, widget._esm],
    )
    return page


# --------------------------------------------------------------- the browser beside the engine


def texts(page, parts):
    """What these parts say on the screen, once drawn; a line break in a text is a space."""
    page.evaluate(FRAME)
    found = {part: page.locator(f"[data-part={part}]").text_content() for part in parts}
    return {part: " ".join(text.split()) for part, text in found.items()}


def drawn_texts(widget, parts):
    """What these parts say in the picture that the engine draws."""
    soup = picture(widget)
    found = {part: soup.select_one(f"[data-part={part}]").get_text() for part in parts}
    return {part: " ".join(text.split()) for part, text in found.items()}


def showing(kind, parts):
    """A function that tells whether the page's widget says what one with these traits would."""

    def shows(page, **traits):
        return texts(page, parts) == drawn_texts(kind(**traits), parts)

    return shows


def lens(page):
    """Who asks and who answers in the microscope that is open, and the weight that it shows."""
    head = page.locator(".lens:popover-open .lens-head")
    return [head.locator(f".{part}").inner_text() for part in ("query", "key", "weight")]


def copied(page):
    """Press "Copy as NumPy", see the widget say so, and run what the clipboard holds."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as NumPy").click()
    said = page.locator(".message", has_text="Copied").inner_text()  # waits for it
    assert re.fullmatch(r"Copied \d+ lines of NumPy\.", said)
    return run(page.evaluate("navigator.clipboard.readText()").splitlines())


# ------------------------------------------------------------------------- how it sits there


# A color may glide to the one of the other theme, and means nothing on its way.
STILL = """for (const glide of document.getAnimations())
  if (glide instanceof CSSTransition) glide.finish();"""


def themes(page):
    """Show the page in each theme, once drawn."""
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        page.evaluate(FRAME)
        page.evaluate(STILL)
        yield theme


def axe(page, parts=("html",), rules=AXE["runOnly"], contrast=True):
    """What axe finds wrong with these parts of the page as it is, as (rule, element)."""
    if not page.evaluate("'axe' in self"):
        page.evaluate(AXE_SCRIPT)
    page.evaluate(MARK_LINKS)
    if contrast:
        page.evaluate(MARK_KINDS, list(parts))
    options = {**AXE, "runOnly": list(rules)}
    options["rules"] = {**AXE["rules"], "color-contrast": {"enabled": contrast}}
    run = "([include, options]) => axe.run({include}, options)"
    rules = page.evaluate(run, [list(parts), options])["violations"]
    return [(rule["id"], node["html"]) for rule in rules for node in rule["nodes"]]


# What is wrong with the structure is wrong in each theme and at each width.
LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]
PLACES = [(1280, "light", AXE["runOnly"]), (360, "dark", LOOKS)]


def axe_findings(page, states=lambda page: [None], parts=("html",)):
    """What axe finds wrong with these parts, in both themes, in each state that `states` makes."""
    found = []
    for width, theme, rules in PLACES:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        for _ in states(page):
            page.evaluate(FRAME)
            found += axe(page, parts, rules)
    return found


# Where what comes after stands, and how far something hangs over.
PLACE = f"""{FRAME}.then(() => [
  document.querySelector("#after").getBoundingClientRect().y + scrollY,
  document.documentElement.scrollWidth - innerWidth])"""


def assert_nothing_moves(browser, address, width, states):
    """What comes after stands still and nothing hangs over, in each state that `states` makes."""
    page = browser.new_page(viewport={"width": width, "height": 2400})  # all of it is in sight
    page.add_init_script(SHIFTS)
    page.goto(address)
    # In one go: the widget may take the picture's place at any moment.
    height = page.evaluate("document.querySelector('.abh').getBoundingClientRect().height")
    awake(page)
    places = set()
    for _ in states(page):
        place, over = page.evaluate(PLACE)
        places.add(place)
        assert over <= 0
    assert max(places) - min(places) < 0.1
    assert page.locator(".abh").bounding_box()["height"] == pytest.approx(height, abs=1)
    assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") == 0
    page.close()


# Lines of text that leave their drawing, or meet another one of it: two boxes, turned or not, are
# apart if a side parts them.
MISFITS = """root => [...(root ?? document).querySelectorAll("svg")].flatMap(svg => {
  if (!svg.checkVisibility({visibilityProperty: true})) return [];
  const {width: wide, height: tall} = svg.viewBox.baseVal, back = svg.getScreenCTM().inverse();
  const texts = [...svg.querySelectorAll("text")].filter(text => text.textContent);
  const boxes = texts.map(text => {
    const {x, y, width, height} = text.getBBox(), turn = back.multiply(text.getScreenCTM());
    const [right, low] = [x + width, y + height - 2];
    // A line is a little taller than its letters, by how much depends on the face.
    return [[x, y + 2], [right, y + 2], [right, low], [x, low]].map(
      ([x, y]) => new DOMPoint(x, y).matrixTransform(turn));
  });
  const parts = (box, other, from, to) => {
    const along = ({x, y}) => x * (to.x - from.x) + y * (to.y - from.y);
    const [here, there] = [box.map(along), other.map(along)];
    return Math.max(...here) <= Math.min(...there) || Math.max(...there) <= Math.min(...here);
  };
  const apart = (box, other) =>
    [[box, 0, 1], [box, 1, 2], [other, 0, 1], [other, 1, 2]].some(
      ([side, from, to]) => parts(box, other, side[from], side[to]));
  const inside = ({x, y}) => x > -0.5 && y > -0.5 && x < wide + 0.5 && y < tall + 0.5;
  return texts.filter((_, i) => !boxes[i].every(inside) ||
    boxes.slice(0, i).some(other => !apart(boxes[i], other))).map(text => text.textContent);
})"""


# Lines of text beside drawings that are wider than the box they stand in, or lie on another one.
SPILLS = """root => {
  const lines = [], walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const scrolls = box => !["visible", "clip"].includes(getComputedStyle(box).overflowX);
  for (let node; (node = walker.nextNode());) {
    let box = node.parentElement;
    if (!node.data.trim() || box.closest("svg, select, .visually-hidden")) continue;
    if (!box.checkVisibility({visibilityProperty: true})) continue;
    while (getComputedStyle(box).display === "inline") box = box.parentElement;
    if (scrolls(box)) continue;
    const {left, right} = box.getBoundingClientRect(), range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects())
      lines.push([node.data.trim(), line, line.left < left - 1 || line.right > right + 1]);
  }
  const over = ([, a], [, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 6;
  return lines.filter((one, i) => one[2] || lines.slice(0, i).some(other => over(one, other)))
    .map(([text]) => text);
}"""


def assert_words_fit(page):
    """Each line of text in each drawing lies within the drawing and apart from the others."""
    assert page.evaluate(MISFITS) == []
