"""Nothing on any page is cut, covered or too small to read, at three widths."""

import pytest

from tests.site.harness import awake
from tests.site.pages import FRAME, OPEN_ALL, every_page

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


@every_page
def test_nothing_is_cut_covered_or_too_small(page, site, name):
    page.goto(f"{site}/{name}")
    awake(page)
    page.evaluate(OPEN_ALL)
    for width in (1280, 1024, 360):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(FRAME)
        found = {what: page.evaluate(what) for what in (CUT, CHOICES, SMALL, SENTENCES)}
        if width > 360:
            found |= {what: page.evaluate(what) for what in (CODE, COVERED, FIGURES)}
        assert [offences for offences in found.values() if offences] == [], width


@pytest.mark.parametrize(
    ("what", "broken"),
    [
        (CODE, "<pre style='overflow-x: auto; width: 90px'>longer than its box is</pre>"),
        (CUT, "<p style='overflow: hidden; width: 9px; text-wrap: nowrap'>longer than that</p>"),
        (SENTENCES, "<div class='table-wrapper' style='overflow-x: auto; width: 90px'><table><td "
         "style='text-wrap: nowrap'>a sentence of more than thirty letters</table></div>"),
        (FIGURES, "<div class='figure-scroll' style='width: 90px'><p style='width: 99px'>-</div>"),
        (CHOICES, "<select style='width: 60px'><option>longer than its box</option></select>"),
        (SMALL, "<svg viewBox='0 0 10 10'><text y='5' style='font-size: .1px'>small</text></svg>"),
        (SMALL, "<p style='font-size: 10px'>small</p>"),
        (COVERED, "<div style='position: relative'><pre>a line of code, " + "long " * 99 + "</pre>"
         "<button class='copy-button' style='top: 5px; opacity: 1'>Copy</button></div>"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_seen(page, site, what, broken):
    page.goto(f"{site}/glossary.html")
    assert page.evaluate(what) == []
    page.evaluate("text => document.querySelector('article').innerHTML = text", broken)
    assert len(page.evaluate(what)) == 1
