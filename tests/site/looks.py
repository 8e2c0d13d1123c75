"""What can be told of a page that is open: what is cut, where Tab stops, what nobody can read."""

from tests.site.harness import AXE, LOOKS, PLACES, STILL, axe
from tests.site.pages import FRAME, OPEN_ALL

# ------------------------------------------------------------- nothing is cut, covered or small

SEEN = """
  const seen = element => element.checkVisibility({visibilityProperty: true});
  const name = element => [element.closest("[data-widget]")?.dataset.widget, element.localName,
    element.textContent.trim().slice(0, 60)].filter(Boolean).join(" ");
  const all = selector => [...document.querySelectorAll(selector)].filter(seen);
"""
# A line of code has 76 columns: on a phone it scrolls, in a box that keys reach.
CODE = f"""() => {{ {SEEN}
  return all("article :is(pre, .output)").filter(box => box.scrollWidth > box.clientWidth + 1)
    .map(name);
}}"""
CUT = f"""() => {{ {SEEN}
  const hides = element => /hidden|clip/.test(getComputedStyle(element).overflowX)
    && element.clientWidth > 2 && element.scrollWidth > element.clientWidth + 1;
  return all("body *:not(svg, svg *, mjx-container, mjx-container *, option)")
    .filter(element => hides(element) && element.textContent.trim()).map(name);
}}"""
# What is wider than the window scrolls; a sentence should not, and on a wide one no figure does.
SENTENCES = f"""() => {{ {SEEN}
  return all(".table-wrapper").filter(box => box.scrollWidth > box.clientWidth + 1
    && [...box.querySelectorAll("td")].some(cell => cell.textContent.length > 30)).map(name);
}}"""
FIGURES = f"""() => {{ {SEEN}
  return all(".figure-scroll").filter(box => box.scrollWidth > box.clientWidth + 1).map(name);
}}"""
CHOICES = f"""() => {{ {SEEN}
  const pen = document.createElement("canvas").getContext("2d"), arrow = 18;
  return all("select").filter(select => {{
    const {{font, paddingLeft, paddingRight}} = getComputedStyle(select);
    pen.font = font;
    const room = select.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - arrow;
    return [...select.options].some(each => pen.measureText(each.textContent).width > room);
  }}).map(name);
}}"""
# Raised and lowered letters aside.
SMALL = f"""() => {{ {SEEN}
  const inked = element => [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  const drawn = all("article svg text").filter(text => text.textContent.trim()
    && parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a < 10.9);
  const written = all("article *:not(svg, svg *, mjx-container *, sub, sup)")
    .filter(element => inked(element) && parseFloat(getComputedStyle(element).fontSize) < 10.9);
  return [...drawn, ...written].map(name);
}}"""
COVERED = f"""() => {{ {SEEN}
  return all(".copy-button").filter(button => {{
    const {{left, right, top, bottom}} = button.getBoundingClientRect();
    const range = document.createRange();
    const walker = document.createTreeWalker(button.previousElementSibling, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {{
      range.selectNodeContents(node);
      const boxes = [...range.getClientRects()];
      if (node.data.trim() && boxes.some(box => box.right > left + 1 && box.left < right - 1
        && box.bottom > top + 4 && box.top < bottom - 4)) return true;
      if (boxes[0]?.top > bottom) return false;
    }}
  }}).map(button => name(button.previousElementSibling));
}}"""


def cut(page, *widths):
    """What is cut, covered or too small to read at these widths, as (width, element)."""
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(FRAME)
        looks = [CUT, CHOICES, SMALL, SENTENCES, *([CODE, COVERED, FIGURES] if width > 360 else [])]
        found += [(width, offense) for look in looks for offense in page.evaluate(look)]
    return found


# ----------------------------------------------------------------------------------- by keyboard

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

START = """slot => {
  const start = document.createElement("span");
  start.tabIndex = -1;
  slot.before(start);
  start.focus();
}"""


def lost_by_tab(page, numbers):
    """The widgets in which Tab leaves out a control, shows none, or does not lead out again."""
    lost = []
    for at in numbers:
        slot = page.locator(".widget-slot").nth(at)
        slot.scroll_into_view_if_needed()
        stops = slot.evaluate(STOPS)
        slot.evaluate(START)
        met = []
        for _ in range(stops):
            page.keyboard.press("Tab")
            met.append(page.evaluate(FOCUS))
        page.keyboard.press("Tab")
        out = page.evaluate(FOCUS)[0] != at
        inside = {where for where, *_ in met} <= {at} and len({stop for *_, stop in met}) == stops
        if not (out and inside and all(ring for _, ring, _ in met)):
            lost.append((slot.get_attribute("data-widget"), stops, met, out))
    return lost


# -------------------------------------------------------------------------------------- on paper

TEXT_WIDTH = 627  # CSS pixels between the margins of A4
PRINTED = """() => [document.documentElement.scrollWidth,
  getComputedStyle(document.body).getPropertyValue("--page").trim(),
  getComputedStyle(document.body).backgroundColor,
  [...document.querySelectorAll(".sidebar-drawer, .toc-drawer, .copy-button, .abh .buttons, " +
    ".mobile-header, .related-pages")].filter(part => part.checkVisibility())
    .map(part => part.className)]"""
PAPER = [TEXT_WIDTH, "#ffffff", "rgb(255, 255, 255)", []]  # light, whatever theme was chosen


def printed(page):
    """How wide a page is that its reader prints at night, its ground, and what else is there."""
    page.evaluate("document.body.dataset.theme = 'dark'")
    page.set_viewport_size({"width": TEXT_WIDTH, "height": 900})
    page.emulate_media(media="print")
    return page.evaluate(PRINTED)


# -------------------------------------------------------------------------------- what axe finds

# The menu, and what is around the text, are the same on every page: one is looked at in all ways.
ALL = [
    (360, "light", LOOKS),
    (1280, "dark", LOOKS),
    *((w, t, AXE["runOnly"]) for w, t, _ in PLACES),
]
# Where no kind of widget is new, on a phone only the text is.
AGAIN = [PLACES[0], (360, "dark", ["scrollable-region-focusable"])]
# Thousands of code tokens share a few colors, and axe knows no rule for what a formula or a
# drawing is made of, as long as that has no name and no role, and is not what a button says.
ONE_TOKEN_OF_A_KIND = """() => {
  for (const math of document.querySelectorAll("mjx-math, mjx-assistive-mml math")) {
    math.replaceChildren(math.textContent);
  }
  const named = "title, desc, [role], [tabindex], [href], [aria-label], [aria-labelledby]";
  for (const shape of document.querySelectorAll(`svg :not(${named})`)) {
    const said = shape.matches("[role=button] :is(text, tspan)");
    if (!said && !shape.querySelector(`${named}, [role=button] text`)) shape.remove();
  }
  const seen = new Set();
  for (const token of document.querySelectorAll("pre span")) {
    if (seen.has(token.className)) token.replaceWith(...token.childNodes);
    seen.add(token.className);
  }
}"""


def axe_findings(page, places):
    """What axe finds by the rules of each of these places on a page, which it changes.

    Of contrast it is asked on one page: on each one `faint` measures it in less time.
    """
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(OPEN_ALL)
    page.evaluate(ONE_TOKEN_OF_A_KIND)
    found = {}
    for width, theme, rules in places:
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        # Elsewhere the header may cover half a field, which then is too small to be touched.
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        page.evaluate(FRAME)
        rules = [rule for rule in rules if rule != "color-contrast" or places == ALL]
        found[width, theme] = axe(page, rules=rules, contrast=places == ALL)
    if places == ALL:
        page.set_viewport_size({"width": 360, "height": 800})
        page.get_by_role("button", name="Menu").click()
        page.evaluate(FRAME)
        found["menu"] = axe(page, ["header", "aside"])
    return {where: nodes for where, nodes in found.items() if nodes}


# ---------------------------------------------------------------------------------- contrast

# The ground of a text in a drawing is whatever is painted under its middle, layer upon layer. Of
# other texts, whose ground is what they stand in, one of a kind is measured.
# What waits to be read anew is dim.
DIM = ".abh-encoder .waits"
CONTRASTS = """() => {
  const context = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const clear = "rgba(0, 0, 0, 0)";
  const paint = (color, opacity = 1) => {
    if (color === clear) return;
    context.globalAlpha = opacity;
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
  };
  const painted = () => [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  const luminance = rgb => rgb.map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const decorated = element => ["::before", "::after"].some(part => {
    const {content, backgroundColor} = getComputedStyle(element, part);
    return content !== "none" && backgroundColor !== clear;
  });
  const grounds = new Map([[null, ""]]); // of an element, with those of all around it
  const ground = element => {
    if (!grounds.has(element)) {
      const {backgroundColor: color, opacity} = getComputedStyle(element);
      const own = color === clear && opacity === "1" ? "" : `${color}${opacity}/`;
      grounds.set(element, ground(element.parentElement) + own);
    }
    return grounds.get(element);
  };
  const seen = {visibilityProperty: true, opacityProperty: true};
  const inked = element => [...element.childNodes].find(n => n.nodeType === 3 && n.data.trim());
  const off = ":is(:disabled, label:has(:disabled), {DIM})";
  const idle = new Set(document.querySelectorAll(`${off}, ${off} *`)), texts = new Map();
  for (const element of document.querySelectorAll(
    "body :is(:not(svg, svg *, mjx-container *, option, script, style), svg text, svg tspan)")) {
    const field = element.matches("textarea, select, [type=text], [type=number]");
    if (!field && !inked(element) || idle.has(element)) continue;
    if (!element.checkVisibility(seen)) continue;
    const {color, fontSize, fontWeight} = getComputedStyle(element);
    const kind = [element.localName, element.className, color, fontSize, fontWeight];
    texts.set(element.ownerSVGElement ? element : `${kind}/${ground(element)}`, element);
  }
  return [...texts.values()].flatMap(text => {
    const under = [];
    if (text.ownerSVGElement) {
      const {top, bottom} = text.getBoundingClientRect();
      if (top < 100 || bottom > innerHeight - 100)
        text.scrollIntoView({block: "center", behavior: "instant"});
      const {x, y, width, height} = text.getBoundingClientRect();
      under.push(...document.elementsFromPoint(x + width / 2, y + height / 2).reverse());
    } else {
      for (let at = text; at; at = at.parentElement) under.unshift(at);
      // What a pseudo-element paints cannot be asked for; that of the page is the line at its top.
      if (under.some(at => at !== document.body && decorated(at))) return [];
    }
    paint(getComputedStyle(document.body).backgroundColor);
    for (const element of under) {
      const style = getComputedStyle(element);
      if (element.closest("text")) continue;
      if (!(element instanceof SVGElement)) paint(style.backgroundColor, style.opacity);
      else if (element instanceof SVGGeometryElement && style.fill !== "none") {
        paint(style.fill, style.fillOpacity * style.opacity);
      } else if (parseFloat(style.strokeWidth) * element.getScreenCTM?.().a > 8) {
        // A stroke as wide as a cell is its ground, as in HeadsViewer.
        paint(style.stroke, style.strokeOpacity * style.opacity);
      }
    }
    const style = getComputedStyle(text);
    if (style.paintOrder.startsWith("stroke") && style.stroke !== "none") {
      paint(style.stroke, style.strokeOpacity); // a halo is its ground
    }
    const ground = painted();
    if (text.ownerSVGElement) paint(style.fill, style.fillOpacity);
    else {
      let opacity = 1;
      for (let at = text; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
      paint(style.color, opacity);
    }
    const ink = painted();
    const [low, high] = [luminance(ground), luminance(ink)].sort((a, b) => a - b);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size > 18.6 && style.fontWeight > 600);
    const least = large && !text.ownerSVGElement ? 3 : 4.5;
    return [[(high + 0.05) / (low + 0.05), least, text.outerHTML, ground.join()]];
  });
}""".replace("{DIM}", DIM)


def faint(page):
    """The words with too little contrast, measured where each of them lies."""
    page.evaluate(STILL)
    texts = page.evaluate(CONTRASTS)
    assert texts, "a page without a text"
    return [text for text in texts if text[0] < text[1]]
