"""What readers take along: a picture as a file, its link, and its place in someone else's page."""

import io
import random
import re
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest
import resvg_py
from matplotlib.image import imread

from _ext.widgets import page as widget_slot
from attnlib.widgets import Encoder, MaskPainter, Plane
from attnlib.widgets.kit import base, modules
from tests.conftest import SITE, serve
from tests.site.harness import BLOCKED, FRAME, awake, axe, page_of, served, wake, write_page
from tests.site.pages import CHAPTER_2, CHAPTER_3, left
from tests.site.test_encoder_in_browser import STAND_IN
from tests.widgets.samples import HOSTILE, SAMPLES, simplest

ANSWERS = {"Guess", "Predict", "Progress", "Quiz"}  # whose state is an answer: nothing to take
PICTURES = [simplest(kind) for kind in SAMPLES if kind.__name__ not in ANSWERS]
PICTURES += [MaskPainter("paint"), Plane("prices"), Encoder("path"), Encoder("search")]
DRAWING = set("svg title g a rect circle ellipse line path polygon polyline text tspan".split())
DRAWING |= {"clipPath", "linearGradient", "stop"}
BELOW = 60  # pixels for the caption and the address
SVG = "{http://www.w3.org/2000/svg}"
EMBEDDED = sorted(path.name for path in SITE.glob("embed/*.html"))
# What the file leaves out; of sliders and boxes it has drawings of its own.
PLAIN = """.buttons, .message, input:is([type=range], [type=checkbox], [type=radio]), progress
{ visibility: hidden !important } fieldset { border-color: transparent !important }"""
SAVE = """async slot => {
  const { toSvg, toPng } = await importShared("save");
  const svg = toSvg(slot.querySelector(".abh"), { caption: "A caption", address: "https://a.b/c" });
  const { left, top } = slot.querySelector("fieldset").getBoundingClientRect();
  const png = await createImageBitmap(await toPng(svg));
  return { svg, left, top, png: [png.height, png.width] };
}"""


@pytest.fixture(scope="module")
def gallery(browser, tmp_path_factory):
    """A page with a picture of each kind, alive, and with what saves them."""
    folder = tmp_path_factory.mktemp("gallery")
    write_page(folder, *PICTURES)
    page = browser.new_page(viewport={"width": 900, "height": 2000}, reduced_motion="reduce")
    with served(folder) as addresses:
        wake(page, addresses["http"])
        page.add_style_tag(content=f".widget-hand, .widget-share {{ display: none }} {PLAIN}")
        page.add_script_tag(content=widget_slot.menu())
        yield page
    page.close()


def pixels(png):
    """A picture in squares of 4 by 4 pixels, which see no edge that is a bit softer or harder."""
    rows = imread(io.BytesIO(bytes(png)), format="png")[..., :3]
    height, width = (size // 4 * 4 for size in rows.shape[:2])
    return rows[:height, :width].reshape(height // 4, 4, width // 4, 4, 3).mean((1, 3))


def unlike(one, other):
    """The part of two pictures that can be seen to differ."""
    height, width = (min(sizes) for sizes in zip(one.shape[:2], other.shape[:2], strict=True))
    return (np.abs(one - other[:height, :width])[:height, :width].max(-1) > 0.25).mean()


def shown(svg):
    """The texts of a file, without white space."""
    texts = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return "".join("".join("".join(text.itertext()).split()) for text in texts)


def test_saved_pictures_are_those_on_the_page(browser, gallery):
    """Opened in a browser they have the same pixels, and in a program that knows no CSS as well."""
    page = browser.new_page()
    found = {}
    for at, widget in enumerate(PICTURES):
        slot = gallery.locator(".widget-slot").nth(at)
        slot.evaluate("slot => slot.scrollIntoView({ block: 'start' })")
        gallery.evaluate(FRAME)
        saved = slot.evaluate(SAVE)
        kept = saved["svg"].split("?>", 1)[1]
        root = ElementTree.fromstring(kept)
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= DRAWING
        assert not re.search(r"var\(|color-mix|class=|\son\w+=|=\"(NaN|undefined)", kept)
        assert shown(kept).endswith("Acaptionhttps://a.b/c")
        x, y, width, height = map(int, root.get("viewBox").split())
        page.set_viewport_size({"width": width, "height": height})
        page.set_content(f"<body style='margin: 0'>{kept}")
        opened = pixels(page.screenshot())
        clip = {"x": x, "y": y, "width": width, "height": height - BELOW}
        live = pixels(gallery.screenshot(clip=clip))
        drawn = pixels(resvg_py.svg_to_bytes(svg_string=kept))
        assert saved["png"] == [2 * height, 2 * width]
        found[f"{at} {type(widget).__name__}"] = unlike(live, opened), unlike(drawn, opened)
    page.close()
    assert {name: both for name, both in found.items() if max(both) > 0.01} == {}


# ------------------------------------------------------------------------------------ the menu


def test_the_menu_comes_with_a_click_and_gives_links_and_files(browser, site):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page, asked, noise = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: noise.append(message.text))
    page.goto(f"{site}/{CHAPTER_2}#plane-2.query=[0,2]&plane.query=[2,2]")
    awake(page)
    assert not any("share.js" in url for url in asked)
    share = page.locator("[data-name=plane-2] > .widget-share")
    share.click()
    menu = page.locator(".share-menu")
    menu.wait_for()
    link, _, svg, png = menu.get_by_role("button").all()
    link.wait_for()
    assert link.evaluate("one => one === document.activeElement")
    page.keyboard.press("Enter")
    menu.get_by_role("status").filter(has_text="The link is copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{site}/{CHAPTER_2}#plane-2.query=[0,2]"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    menu.get_by_role("status").filter(has_text="The line is copied").wait_for()
    frame = ElementTree.fromstring(page.evaluate("navigator.clipboard.readText()"))
    name = "queries-keys-values-plane-2"
    assert frame.get("src") == f"{site}/embed/{name}.html#plane.query=[0,2]"
    with page.expect_download() as download:
        svg.click()
    assert download.value.suggested_filename == f"{name}.svg"
    drawing = ElementTree.fromstring(Path(download.value.path()).read_text(encoding="utf-8"))
    assert [a.get("href") for a in drawing.iter(f"{SVG}a")] == [copied]
    with page.expect_download() as download:
        png.click()
    picture = imread(download.value.path())
    assert picture.shape[:2] == tuple(2 * int(drawing.get(side)) for side in ("height", "width"))
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        assert axe(page, [".share-menu"]) == []
    page.keyboard.press("Escape")
    assert not menu.is_visible() and share.evaluate("one => one === document.activeElement")
    assert (left(asked, f"{site}/"), noise) == ([], [])
    context.close()


def test_the_copied_line_is_high_enough_for_a_column_of_a_blog(browser, site):
    """Where the picture, as high as here, would be cut: Flow stands upright in a narrow column."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    wake(page, f"{site}/{CHAPTER_3}")
    page.locator("[data-name=flow] > .widget-share").click()
    page.get_by_role("button", name="Copy embed code").click()
    page.get_by_role("status").filter(has_text="The line is copied").wait_for()
    frame = ElementTree.fromstring(page.evaluate("navigator.clipboard.readText()"))
    high = int(frame.get("height"))
    for width in (640, 704):
        page.set_viewport_size({"width": width, "height": high})
        page.goto(frame.get("src"))
        awake(page)
        assert page.evaluate("document.documentElement.scrollHeight") <= high
    context.close()


# --------------------------------------------------------------------- in someone else's page

BLOG = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A blog</title>
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; img-src data:; frame-src {site}; style-src 'unsafe-inline'">
<link rel="icon" href="data:,"></head><body>
<div style="width: 320px">{line}</div><div style="width: 900px">{sandboxed}</div></body></html>"""
LINE = '<iframe src="{site}/embed/masks-mask-painter-4.html#mask-painter.replaced=1" width="100%"\
 height="600" title="A mask"{more}></iframe>'


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_embedded_picture_lives_in_a_page_of_another_origin(browser, site, tmp_path, theme):
    """Under a strict policy, with nothing that it could keep, and shut into a sandbox as well."""
    page = browser.new_page(viewport={"width": 1000, "height": 1400}, color_scheme=theme)
    asked, noise = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.add_init_script(BLOCKED)
    lines = (LINE.format(site=site, more=more) for more in ("", ' sandbox="allow-scripts"'))
    line, sandboxed = lines
    blog = BLOG.format(site=site, line=line, sandboxed=sandboxed)
    (tmp_path / "index.html").write_text(blog, encoding="utf-8")
    with serve(tmp_path) as other:
        other = other.replace("127.0.0.1", "localhost")  # another site, too
        page.goto(f"{other}/index.html")
        grounds = []
        for frame in page.frames[1:]:
            frame.wait_for_selector(".abh > fieldset:enabled")
            frame.wait_for_function(
                "document.querySelector('.widget-slot').model.get('replaced') === 1"
            )
            frame.get_by_role("button", name="No mask").click()
            frame.locator("[role=status], .verdicts").filter(has_text="leak").first.wait_for()
            assert frame.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            assert frame.evaluate(
                "document.querySelector('.abh').getBoundingClientRect().width > innerWidth - 40"
            )
            grounds.append(frame.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == [{"light": "rgb(255, 255, 255)", "dark": "rgb(19, 20, 22)"}[theme]] * 2
    assert (left(asked, f"{site}/", f"{other}/"), noise) == ([], [])
    page.close()


def kinds_of_embedded():
    """The first page of each kind of picture."""
    text = {name: (SITE / "embed" / name).read_text(encoding="utf-8") for name in EMBEDDED}
    kinds = {re.search(r'data-widget="(\w+)"', html)[1]: name for name, html in text.items()}
    return sorted(kinds.values())


@pytest.mark.parametrize("name", kinds_of_embedded())
def test_each_kind_of_picture_stands_alone(page, site, name):
    """From disk, on a phone, in the theme that its address wants."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto(f"{(SITE / 'embed' / name).as_uri()}?theme=dark")
    awake(page)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 22)"
    assert page.locator("[role=alert]:visible, .widget-share").count() == 0
    assert left(asked, f"{SITE.as_uri()}/") == []
    # Their colors are those of the chapters, where contrast is measured.
    assert axe(page, rules=["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"], contrast=False) == []


# ------------------------------------------------------------------ a sentence and its weights

encoder_page = page_of(Encoder())
MINE = "My dog ate the cake"
WEIGHTS = "[...document.querySelectorAll('.answering small')].map(one => one.textContent)"


def test_a_shared_sentence_brings_the_weights_that_the_sender_saw(browser, encoder_page):
    sender = browser.new_page()
    sender.add_init_script(STAND_IN)
    wake(sender, encoder_page["http"])
    sender.locator("[name=text]").fill(MINE)
    sender.locator("[name=read]").click()
    sender.locator("[data-part=status]", has_text="Read on your machine").wait_for()
    slot = sender.locator(".widget-slot")
    slot.evaluate("slot => { slot.model.set('layer', 2); slot.model.set('row', 4); }")
    sender.evaluate(FRAME)
    seen = slot.evaluate("slot => slot.brings().seen")
    assert re.fullmatch(r"21~\[CLS\] my dog ate the cake \[SEP\]~[\w.-]+", seen) and len(seen) < 150
    wanted = sender.evaluate(WEIGHTS)
    sender.close()

    def arrive(seen):
        page = browser.new_page()
        settings = {"text": MINE, "layer": 2, "row": 4, "seen": seen}
        link = "&".join(f"encoder.{name}={quote(str(value))}" for name, value in settings.items())
        wake(page, f"{encoder_page['http']}#{link}")
        page.evaluate(FRAME)
        found = page.evaluate(WEIGHTS), page.locator("[data-part=status]").inner_text()
        page.close()
        return found

    weights, status = arrive(seen)
    assert weights == wanted and len(weights) == 7 and status.startswith("These weights came with")
    # A row that does not sum to 1, other words than the text's, and a weight too few.
    for lie in (f"{seen[:-1]}A", seen.replace("cake", "soap"), seen[:-1]):
        weights, status = arrive(lie)
        assert weights != wanted and status.startswith("To read this sentence")


# -------------------------------------------------------------------------- hostile addresses

VALUES = [
    HOSTILE, "javascript:alert(1)", "<svg onload=document.title=1>", "${self.ran=1}", "null", "[]",
    '{"__proto__":{"polluted":1}}', '{"constructor":{"prototype":{"polluted":1}}}', "NaN", "1e999",
    "-1", "0.5", "true", '""', "[" * 1900, "9" * 1900, "\0\x1b\u202e\ud7ff", "\U0001f600" * 400,
    '[{"text":"x","hidden":[],"tokens":["<b>"],"weights":"A"}]', "00~[CLS] x [SEP]~.I", "{}",
    '{"weights":[[1]],"tokens":["<img src=x>"]}', '["a","a","a"]', "[[1,2],[3]]", "%E0%A4%A",
]  # fmt: skip


def attacks(many, seed=34):
    """As many settings of all traits of all pictures, also of what nobody may set, and others."""
    rng, targets = random.Random(seed), []
    for widget in PICTURES[: len(SAMPLES) - len(ANSWERS)]:
        kind = modules.stem(type(widget).__name__).replace("_", "-")
        targets += [f"{kind}.{trait}" for trait in base.bounds(type(widget))]
    targets += ["__proto__.polluted", "constructor.prototype", "plane.__proto__", "plane-99.asks"]
    targets += ["plane.constructor", "encoder.toString", "<img src=x>", "..", "flow.", ".asks"]
    drawn = rng.sample(targets, len(targets)) + rng.choices(targets, k=many)
    raw = lambda text: text if rng.random() < 0.2 else quote(text)  # noqa: E731
    return [f"{target}={raw(rng.choice(VALUES))}" for target in drawn[:many]]


HARM = """() => ({
  polluted: ({}).polluted !== undefined || [].polluted !== undefined,
  ran: self.ran !== undefined || document.title !== "A page",
  planted: document.querySelectorAll(".widget-slot :is(img, script, iframe, [onload])").length,
  dead: document.querySelectorAll(".widget-slot .widget-note, fieldset:disabled").length,
})"""
NONE = {"polluted": False, "ran": False, "planted": 0, "dead": 0}
SAVE_ALL = """async () => {
  const { toSvg } = await importShared("save");
  return [...document.querySelectorAll(".abh")].map((root) =>
    toSvg(root, { caption: "</title><script>self.ran = 1</script>", address: "javascript:1" }));
}"""


def test_no_address_does_harm(page, tmp_path):
    """200 of them: each by itself, as a link within the page, and 50 at a time as one comes."""
    write_page(tmp_path, *PICTURES)
    all_of_them = attacks(200)
    assert len(all_of_them) == 200
    with served(tmp_path) as addresses:
        for start in range(0, 200, 50):
            page.goto("about:blank")
            wake(page, f"{addresses['http']}#{'&'.join(all_of_them[start : start + 50])}")
            page.evaluate(FRAME)
            assert page.evaluate(HARM) == NONE
        for attack in all_of_them:
            page.evaluate("to => { location.hash = to }", attack)
            page.evaluate(FRAME)
            assert page.evaluate(HARM) == NONE, attack
        page.add_script_tag(content=widget_slot.menu())
        for svg in page.evaluate(SAVE_ALL):
            used = ElementTree.fromstring(svg.split("?>", 1)[1]).iter()
            assert {element.tag.removeprefix(SVG) for element in used} <= DRAWING - {"a"}
        assert page.evaluate(HARM) == NONE
