"""The built site as it is written: every page, and what is left of it without JavaScript."""

import functools
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest
from bs4 import NavigableString, Tag
from fontTools.ttLib import TTFont

from _ext.pages import typeface
from _ext.search import index as search
from _ext.symbols.page import SYMBOLS
from _ext.widgets.page import scripts, use
from attnlib import widgets
from tests.conftest import ROOT, SITE
from tests.site.pages import (
    CHAPTER_2,
    CHAPTER_3,
    NOTEBOOKS,
    OPEN_ALL,
    OVERHANG,
    PAGES,
    every_page,
    soup,
    target,
)

TEXT = (SITE / "searchindex.js").read_text(encoding="utf-8")
INDEX = json.loads(TEXT.removeprefix(search.CALL).removesuffix(");\n"))


def test_there_are_pages_and_chapters():
    assert {"index.html", "search.html", CHAPTER_2, CHAPTER_3} <= set(PAGES)
    assert {CHAPTER_2, CHAPTER_3} <= set(NOTEBOOKS)


def test_every_widget_is_on_a_page():
    shown = {slot["data-widget"] for name in PAGES for slot in soup(name).select(".widget-slot")}
    assert shown == set(widgets.__all__)


@every_page
def test_no_line_ends_between_a_formula_and_what_touches_it(name):
    for box in soup(name).select("article span.math"):
        for beside, at in ((box.previous_sibling, -1), (box.next_sibling, 0)):
            assert not isinstance(beside, NavigableString) or beside[at].isspace(), beside


WITH_WORKERS = {"practice", "encoder", "trainer"}


@every_page
def test_policy_comes_first_and_allows_the_site_alone(name):
    head = soup(name).head
    metas = head.select("meta[http-equiv=Content-Security-Policy]")
    assert len(metas) == 1 and head.find(True) is metas[0]
    directives = dict(part.strip().split(" ", 1) for part in metas[0]["content"].split(";"))
    scripts = {
        link["src"].rpartition("/")[2].partition("?")[0]
        for link in soup(name).select("script[src]")
    }
    # Python, the encoder's kernel and the training run in a worker.
    works = bool({script.partition(".")[0] for script in scripts} & WITH_WORKERS)
    extra = {
        "script-src": {"blob:"} if "widget_host.js" in scripts else set(),
        "style-src": {"'unsafe-inline'"},
        "img-src": {"data:"},
        "font-src": {"data:"},
        "worker-src": {"blob:"},
    }
    extra["script-src"] |= {"'wasm-unsafe-eval'"} if works else set()
    for directive, sources in directives.items():
        sources = {source for source in sources.split() if not source.startswith("'sha256-")}
        assert sources <= {"'self'", "'none'"} | extra.get(directive, set()), directive
    assert directives["default-src"] == directives["form-action"] == "'self'"
    assert directives["worker-src"] == ("blob:" if works else "'none'")
    for directive in ("object-src", "base-uri", "frame-src"):
        assert directives[directive] == "'none'", directive


@functools.cache
def anchors(name):
    return Counter(element["id"] for element in soup(name).select("[id]"))


@every_page
def test_every_link_leads_somewhere(name):
    offenses = []
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
                offenses.append(link)
            elif anchor and path.endswith(".html") and anchor not in anchors(path):
                offenses.append(link)
    assert offenses == []


@every_page
def test_every_anchor_stands_once(name):
    assert {anchor for anchor, times in anchors(name).items() if times > 1} == set()


def test_every_style_is_loaded_by_a_page():
    pages = [page.read_text(encoding="utf-8") for page in SITE.rglob("*.html")]
    loaded = set(re.findall(r"_static/([\w./]+\.css)", "".join(pages)))
    found = {path.relative_to(SITE / "_static") for path in (SITE / "_static").rglob("*.css")}
    assert {path.as_posix() for path in found} == loaded


def test_what_styles_refer_to_is_there():
    offenses = []
    for path in (SITE / "_static").rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
        for link in re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s*['\"]([^'\"]+)", text):
            link = "".join(link)
            here = path.parent / urlsplit(link).path
            if not link.startswith(("data:", "#")) and not here.is_file():
                offenses.append(f"{path.name}: {link[:80]}")
    assert offenses == []


def test_titles_and_descriptions_tell_the_pages_apart():
    titles = [soup(name).title.get_text(strip=True) for name in PAGES]
    descriptions = [soup(name).select("meta[name=description]") for name in PAGES]
    assert all(len(found) == 1 for found in descriptions)
    texts = [found[0]["content"].strip() for found in descriptions]
    for words in (titles, texts):
        assert all(words) and len(set(words)) == len(words), words
    assert [text for text in texts if not re.search(r"(?<!\.\.)[.?!]”?$", text)] == []  # no cut one


@every_page
def test_a_link_to_a_page_has_a_preview(name):
    found = soup(name).select("meta[property^='og:']")
    tags = {tag["property"]: tag["content"] for tag in found}
    assert len(found) == len(tags)
    assert tags["og:description"] == soup(name).select_one("meta[name=description]")["content"]
    assert tags["og:title"] and "<" not in tags["og:title"] and "og:url" not in tags
    picture = SITE / target(name, tags["og:image"])[0]  # the build has no address
    start = picture.read_bytes()[:24]
    assert start[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size < 100_000
    size = [int.from_bytes(start[at : at + 4]) for at in (16, 20)]
    assert size == [int(tags[f"og:image:{side}"]) for side in ("width", "height")] == [1200, 630]
    card = soup(name).select_one("meta[name='twitter:card']")
    assert card["content"] == "summary_large_image"


@every_page
def test_head_says_language_and_width_once_and_only_chapters_are_offered(name):
    links = [link["aria-label"] for link in soup(name).select(".chapter-link")]
    assert links[:1] == ["Download this chapter as a notebook"] * name.startswith("chapters/")
    assert soup(name).html["lang"] == "en"
    assert len(soup(name).select("meta[name=viewport]")) == 1
    assert len(soup(name).select("h1")) == 1


def test_next_and_previous_follow_the_contents():
    contents = soup("index.html").select(".sidebar-tree a.internal")
    order = ["index.html", *(target("index.html", link["href"])[0] for link in contents)]
    assert sorted(order) == [name for name in PAGES if name != "search.html"]
    neighbors = {
        name: [
            target(name, link["href"])[0] if link else None
            for link in (soup(name).select_one(f"a.{side}-page") for side in ("prev", "next"))
        ]
        for name in order
    }
    around = [None, *order, None]
    assert neighbors == {
        name: [before, after]
        for before, name, after in zip(around, order, around[2:], strict=False)
    }


RAW = re.compile(
    r"\{[a-z:-]+\}`|\{(?:term|eq|numref|ref|doc|cite|math)\b|:::|```|\$\$|\$\S[^$]*\$|\*\*|\]\("
    r"|\\(?:frac|sqrt|text|begin|end|cdot|operatorname|top|left|right|tilde|sum)\b|=====|\^\^\^"
)
TROUBLE = re.compile(r"Traceback \(most recent call last\)|\bWARNING\b|\w+Warning:|\[missing ")


def text_without(element, selector):
    """What an element says, but for some of its parts."""
    left_out = {id(part) for part in element.select(selector)}

    def words(element):
        for child in element.children:
            if isinstance(child, Tag):
                if id(child) not in left_out:
                    yield from words(child)
            elif type(child) is NavigableString:  # no comment, no doctype
                yield child

    return "".join(words(element))


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name.startswith("chapters/")])
def test_the_contents_at_the_side_have_the_sections_alone(name):
    contents = soup(name).select_one(".toc-tree > ul > li > ul")
    assert len(contents.find_all("li", recursive=False)) > 4 and not contents.select("ul")


def test_widgets_have_the_parts_that_light_up_with_symbols():
    """Those that Flow draws once it is alive are tried in tests/site/test_linked_reading.py."""
    parts = {part for each in SYMBOLS for part in each.parts}
    still = {part for part in parts if "data-gate" not in part and "data-holds" not in part}
    drawn = [soup(name) for name in NOTEBOOKS if name.startswith("chapters/")]
    assert {part for part in still if not any(page.select_one(part) for page in drawn)} == set()


@every_page
def test_nothing_raw_is_left(name):
    heard = [
        element.get(key, "")
        for element in soup(name).select("[alt], [aria-label], [title], meta[name=description]")
        for key in ("alt", "aria-label", "title", "content")
    ]
    unread = "script, style, .cell.tag_raises-exception"
    assert TROUBLE.findall(text_without(soup(name), unread)) == []
    assert RAW.findall(text_without(soup(name), f"{unread}, pre, code, .sig, [role=grid]")) == []
    assert [words for words in heard if RAW.search(words) or re.search(r"\\\w|\$", words)] == []


OTHER_FACES = "script, style, pre, code, mjx-container, .admonition-title, .abh, .copy-button"


@functools.cache
def letters():
    """The letters of the whole text face."""
    return set(TTFont(typeface.source("SourceSerif4[opsz,wght].ttf")).getBestCmap())


@every_page
def test_the_text_face_has_every_letter(name):
    article = soup(name).select_one("article")
    used = {c for c in text_without(article, OTHER_FACES) if ord(c) in letters()}
    assert used <= set(typeface.UPRIGHT), "add them to UPRIGHT in _ext/pages/typeface.py"
    slanted = [em for em in article.select("em, i, cite") if not em.find_parent(class_="abh")]
    italic = {c for em in slanted for c in text_without(em, OTHER_FACES)} & used
    assert italic <= set(typeface.ITALIC), "add them to ITALIC in _ext/pages/typeface.py"


@every_page
def test_every_place_of_the_search_is_there(name):
    found = [entry for entry in INDEX if f"{entry[0]}.html" == name]
    assert len(found) == (name != "search.html")
    for _, title, entries in found:
        assert {entry[0] for entry in entries} <= anchors(name).keys()
        assert "<" not in title


@every_page
def test_every_figure_has_words(name):
    for image in soup(name).select("img"):
        assert len(image.get("alt", "")) > 1, image
    for drawing in soup(name).select("article svg, footer svg"):
        label = drawing.get("aria-label", "").strip()
        hidden = drawing.find_parent(attrs={"aria-hidden": "true"}) is not None
        hidden |= drawing.get("aria-hidden") == "true"
        handles = drawing.select(
            "[role=slider], [role=button], a[aria-label]"
        )  # named by themselves
        role = "group" if handles else "img"
        assert hidden != (drawing.get("role") == role and len(label) > 20), drawing.attrs


@every_page
def test_figures_have_no_color_of_their_own(name):
    """A hex digit in a drawing would stay as it is when the reader's theme changes."""
    offenses = [
        f"{key}={element[key]}"
        for element in soup(name).select("article svg, article svg *")
        for key in {"style", "fill", "stroke", "stop-color", "color"} & set(element.attrs)
        if re.search(r"#[0-9a-fA-F]{3,8}\b|\brgb|hsl|\b(black|white)\b", element[key])
    ]
    assert offenses == []


@every_page
def test_a_page_waits_for_few_files(name):
    """Each style, and each script that is not deferred, holds up the first paint."""
    links = [link["href"] for link in soup(name).select("head > link[rel=stylesheet]")]
    stems = [Path(urlsplit(link).path).name.split(".") for link in links]
    assert [stem for stem, *_ in stems] in [
        ["shared"], ["page", "shared"], ["page", "shared", "start"], ["shared", "search"]
    ]  # fmt: skip
    for link, (_, digest, *suffix) in zip(links, stems, strict=True):
        style = (SITE / target(name, link)[0]).read_bytes()
        assert not suffix or hashlib.sha256(style).hexdigest()[:8] == digest
    assert soup(name).select("script[src]:not([defer])") == []


@every_page
def test_a_page_fetches_what_its_widgets_need_and_no_more(name):
    links = [script["src"] for script in soup(name).select("script[src*='/widgets/']")]
    slots = soup(name).select(".widget-slot")
    needed = scripts({use(s["data-widget"], json.loads(s["data-state"])) for s in slots})
    found = {(SITE / target(name, link)[0]).read_text(encoding="utf-8") for link in links}
    assert found == set(needed.values()) and len(links) == len(needed)


HIDDEN = {"remove-cell", "remove-input", "remove-output"}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_code_and_outputs_of_the_notebook_are_on_the_page(name):
    shown = " ".join(soup(name).article.get_text().split())
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
    text = bare.locator("article :is(p, li, pre, td, summary):not(.abh *, .answer-of)")  # for paper
    hidden = "all => all.filter(one => !one.checkVisibility()).map(one => one.outerHTML)"
    assert text.evaluate_all(hidden) == []
    formulas = bare.locator("mjx-container")
    assert formulas.count() == bare.locator("mjx-container mjx-assistive-mml math").count()
    for found in (formulas, bare.locator("figure svg"), bare.locator(".widget-slot > .abh")):
        boxes = found.evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(box => [box.width, box.height])"
        )
        assert all(min(box) > 1 for box in boxes), boxes
    assert bare.locator(".widget-slot > .abh").count() == len(soup(name).select(".widget-slot"))
