"""Every page for every reader: by keyboard, with a screen reader, in both themes."""

import pytest

from tests.site.harness import AXE, PLACES, awake, axe
from tests.site.pages import (
    CHAPTER_3,
    FRAME,
    OPEN_ALL,
    THEMES,
    WIDTHS,
    WITH_WIDGETS,
    every_page,
    soup,
)

# Of radio buttons Tab stops at one, and the arrow keys lead to the others.
CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]"
STOPS = f"""slot => new Set([...slot.querySelectorAll("{CONTROLS}")]
  .filter(stop => stop.tabIndex >= 0 && !stop.disabled)
  .filter(stop => stop.checkVisibility({{visibilityProperty: true}}))
  .map(stop => stop.type === "radio"
    ? (stop.form ?? slot).querySelector(`[name="${{stop.name}}"]`) : stop)).size"""
FOCUS = """() => {
  const at = document.activeElement, slot = at.closest(".widget-slot");
  const style = getComputedStyle(at), label = getComputedStyle(at.parentElement);
  const handle = getComputedStyle(at.querySelector(".hold") ?? at); // in a drawing
  const rings = handle.stroke !== "none"
    || [style, label].some(one => one.outlineStyle !== "none" || one.boxShadow !== "none");
  at.stop ??= self.stops = (self.stops ?? 0) + 1;
  return [[...document.querySelectorAll(".widget-slot")].indexOf(slot), rings, at.stop];
}"""


# They have the same controls on every page: those of the first one stand for all.
ALIKE = {"Predict", "Quiz"}


@pytest.mark.parametrize("name", WITH_WIDGETS)
def test_tab_stops_at_every_control_and_shows_where(page, site, name):
    page.goto(f"{site}/{name}")
    awake(page)
    page.evaluate(OPEN_ALL)
    for at, slot in enumerate(page.locator(".widget-slot").all()):
        if name != WITH_WIDGETS[0] and slot.get_attribute("data-widget") in ALIKE:
            continue
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


ALL = [(width, theme, AXE["runOnly"]) for width in WIDTHS for theme in THEMES]
# Thousands of code tokens share a few colours, and axe knows no rule for what a formula is made of.
ONE_TOKEN_OF_A_KIND = """() => {
  for (const math of document.querySelectorAll("mjx-math, mjx-assistive-mml math")) {
    math.replaceChildren(math.textContent);
  }
  const seen = new Set();
  for (const token of document.querySelectorAll("pre span")) {
    if (seen.has(token.className)) token.replaceWith(...token.childNodes);
    seen.add(token.className);
  }
}"""


def axe_findings(browser, url, places):
    """What axe finds on a page by the rules of each of these places, and in its open menu."""
    page = browser.new_page(reduced_motion="reduce")
    page.goto(url)
    awake(page)
    page.evaluate(OPEN_ALL)
    page.evaluate(ONE_TOKEN_OF_A_KIND)
    found = {}
    for width, theme, rules in places:
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        page.evaluate(FRAME)
        found[width, theme] = axe(page, rules=rules)
    if places == ALL:
        page.set_viewport_size({"width": 360, "height": 800})
        page.get_by_role("button", name="Menu").click()
        page.evaluate(FRAME)
        found["menu"] = axe(page, ["header", "aside"])
    page.close()
    return {where: nodes for where, nodes in found.items() if nodes}


@every_page
def test_axe_finds_nothing(browser, site, name):
    """The menu, and what is around the text, are the same on every page."""
    places = ALL if name == CHAPTER_3 else PLACES
    assert axe_findings(browser, f"{site}/{name}", places) == {}


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
    .filter(text => text.checkVisibility({visibilityProperty: true})
      && [...text.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
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
    const style = getComputedStyle(text);
    if (style.paintOrder.startsWith("stroke") && style.stroke !== "none") {
      ground = paint(style.stroke, style.strokeOpacity); // a halo is its ground
    }
    const ink = paint(style.fill, style.fillOpacity);
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
