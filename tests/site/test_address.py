"""A widget's settings in the page's address: kept, shared, taken back, and never trusted."""

from urllib.parse import quote

import pytest

from attnlib.widgets import (
    Flow,
    MaskPainter,
    ParityAtlas,
    Plane,
    PositionsExplorer,
    Predict,
    ScalingExplorer,
    Writer,
)
from tests.site.harness import FRAME, awake, served, wake, write_page

HOSTILE = "<img src=x onerror=document.title=1> & ümlaut, a+b=c"


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("address")
    widgets = [Plane(), ScalingExplorer(), Plane("words"), Writer(), MaskPainter()]
    widgets.append(Predict("1 + 2?", 3, key="sum"))
    write_page(folder, *widgets)
    text = (folder / "page.html").read_text(encoding="utf-8")
    heading = '<h2 id="a-heading" style="margin-top: 200vh">A heading</h2><p id="after">'
    (folder / "page.html").write_text(text.replace('<p id="after">', heading), encoding="utf-8")
    with served(folder) as addresses:
        yield addresses


@pytest.fixture(scope="module")
def all_kinds(tmp_path_factory):
    """A page with widgets of every kind of check."""
    folder = tmp_path_factory.mktemp("checks")
    widgets = [Plane(), ScalingExplorer(), Plane("words"), Writer(), MaskPainter()]
    widgets += [Predict("1 + 2?", 3, key="sum"), Flow(), PositionsExplorer(), ParityAtlas()]
    write_page(folder, *widgets)
    with served(folder) as addresses:
        yield addresses["http"]


# Which traits of each widget are other than the page begins with.
CHANGED = """Array.from(document.querySelectorAll(".widget-slot")).map(({dataset, model}) => {
  const differs = ([name, value]) => JSON.stringify(model.get(name)) !== JSON.stringify(value);
  return Object.entries(JSON.parse(dataset.state)).filter(differs).map(([name]) => name); })"""


def arrive(page, address):
    """Open an address as a link from elsewhere does."""
    page.goto("about:blank")
    return wake(page, address)


def setting(page, at, trait):
    return page.evaluate(
        "([at, trait]) => document.querySelectorAll('.widget-slot')[at].model.get(trait)",
        [at, trait],
    )


def fragment(page):
    """What stands behind # once the address was written: it has stayed as it is for a while."""
    return page.evaluate(
        """async () => {
            let kept;
            while (kept !== location.hash) {
              kept = location.hash;
              for (let wait = 0; wait < 6; wait++) await new Promise(done => setTimeout(done, 50));
            }
            return kept;
        }"""
    )


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_what_is_set_survives_a_reload_and_the_way_back(page, addresses, scheme):
    wake(page, addresses[scheme])
    assert fragment(page) == ""
    entries = page.evaluate("history.length")
    page.locator("[data-sentence=money]").first.click()
    slider = page.locator(".abh-scaling-explorer input[type=range]").first
    slider.press("Home")
    for _ in range(20):
        slider.press("ArrowRight")
    d_k = setting(page, 1, "d_k")
    wanted = f"#plane.sentence=money&scaling-explorer.d_k={d_k}"
    assert fragment(page) == wanted and d_k != 64
    assert page.evaluate("history.length") == entries
    page.reload()
    awake(page)
    assert (setting(page, 0, "sentence"), setting(page, 1, "d_k")) == ("money", d_k)
    pressed = page.locator("[data-sentence][aria-pressed=true]").first
    assert pressed.get_attribute("data-sentence") == "money"
    page.goto("about:blank")
    page.go_back()
    awake(page)
    assert fragment(page) == wanted and setting(page, 0, "sentence") == "money"


def test_two_of_a_kind_have_their_own_settings_and_reset_takes_them_out(page, addresses):
    link = "#plane.asks=1&plane-2.words=" + quote('{"tea":[1,2],"chai":[-1,0.5]}')
    arrive(page, addresses["http"] + link)
    assert setting(page, 0, "asks") == 1
    assert setting(page, 2, "words") == {"tea": [1, 2], "chai": [-1, 0.5]}
    assert setting(page, 2, "scene") == "words" and setting(page, 0, "words")["boat"] == [4, 0]
    slots = page.locator(".widget-slot")
    slots.nth(2).get_by_role("button", name="Reset").click()
    assert fragment(page) == "#plane.asks=1"
    slots.nth(0).get_by_role("button", name="Reset").click()
    assert fragment(page) == "" and "#" not in page.url
    assert setting(page, 0, "asks") == Plane().asks


def test_a_widget_that_still_sleeps_keeps_its_settings(page, addresses):
    page.set_viewport_size({"width": 1280, "height": 300})
    page.goto(addresses["http"])
    page.locator(".abh-plane fieldset:enabled").first.wait_for()
    page.evaluate("location.hash = 'mask-painter.length=2'")
    assert page.locator(".abh-mask-painter > fieldset:disabled").count() == 1
    page.locator("[data-sentence=money]").first.click()
    assert fragment(page) == "#mask-painter.length=2&plane.sentence=money"
    assert setting(awake(page), 4, "length") == 2


def test_an_anchor_and_settings_go_together(page, addresses):
    arrive(page, addresses["http"] + "#a-heading&plane.asks=1")
    assert page.locator("#a-heading").bounding_box()["y"] < 900
    assert setting(page, 0, "asks") == 1 and fragment(page) == "#a-heading&plane.asks=1"
    page.evaluate("location.hash = 'after'")  # as a link in the page does
    assert fragment(page) == "#after&plane.asks=1"
    page.evaluate("location.hash = 'plane.asks=0'")  # as a link to a view does
    page.evaluate(FRAME)
    assert setting(page, 0, "asks") == 0 and fragment(page) == "#plane.asks=0"


def test_a_link_to_a_view_leads_to_it(page, addresses):
    arrive(page, addresses["http"] + "#mask-painter.length=2")
    top = page.locator(".abh-mask-painter").bounding_box()["y"]
    assert -5 < top < 900 and setting(page, 4, "length") == 2


def test_typed_text_is_text(page, addresses):
    wake(page, addresses["http"])
    page.locator(".abh-writer input[type=text]").first.fill(HOSTILE)
    page.keyboard.press("Tab")
    link = fragment(page)
    assert link.startswith("#writer.text=") and "<" not in link and " " not in link
    arrive(page, addresses["http"] + link)
    assert setting(page, 3, "text") == HOSTILE
    assert page.locator(".widget-slot :is(img, script)").count() == 0 and page.title() == "A page"


ABSURD = [
    "plane.asks=8", "plane.asks=-1", "plane.asks=1.5", "plane.asks=NaN", "plane.asks=1e999",
    'plane.asks="1"', "plane.asks=", "plane.asks", "plane.asks=[1]", "plane.asks=null",
    "plane.sentence=dog", "plane.sentence=%E0%A4", "plane.scene=words", "plane.compact=true",
    "plane.words={}", "plane.words=null", "plane.words=[]", 'plane.words={"boat":[4,0]}',
    'plane.words={"the":[0,0],"boat":[9,0],"money":[0,4],"reached":[0,0],"bank":[1,1]}',
    'plane.words={"the":[0,0],"boat":["x",0],"money":[0,4],"reached":[0,0],"bank":[1,1]}',
    "plane.query=[1,2,3]", "plane.scene=prices", "plane.__proto__={}", "plane.constructor=1",
    "plane.sharpness=5", "plane.toString=1", "plane.sentence=" + "x" * 3000,
    "__proto__.asks=1", "predict.typed=[3]", "predict.revealed=true", "predict.answer=[4]",
    "mask-painter.mask=[[true]]", "mask-painter.length=0", "mask-painter.replaced=5",
    "writer.temperature=3", "writer.text=" + "a+" * 301,
    'flow.tokens=["a"]', 'flow.tokens=["a","b","c"]', "flow.x=[[1,0,1,0]]", "flow.stage=think",
    'positions-explorer.d_model="4"', "positions-explorer.d_model=[8]",
    'positions-explorer.d_model="0x10"', "positions-explorer.d_model=3",
    'plane-2.words={"":[0,0]}', 'plane-2.words={"7":[0,0]}', 'plane-2.words={"x":[0,4]}',
    'mask-painter.tokens=["a","b"]', 'plane.axes=["x","y"]', "parity-atlas.rows=[]",
    "&&&", "%", "=", "a=b=c", "plane-3.asks=1", "<img src=x onerror=alert(1)>",
]  # fmt: skip


def test_what_python_would_refuse_is_as_if_it_were_not_there(page, all_kinds):
    """By itself in a link within the page, and all of it where the page begins."""
    arrive(page, f"{all_kinds}#{'&'.join(ABSURD)}&scaling-explorer.d_k=5")
    for d_k, text in enumerate(["", *ABSURD], start=5):
        if text:
            page.evaluate("to => { location.hash = to }", f"{text}&scaling-explorer.d_k={d_k}")
            page.evaluate(FRAME)
        changed = page.evaluate(CHANGED)
        assert changed.pop(1) == ["d_k"] and not any(changed), text
        assert page.locator(".widget-slot :is(img, script, [role=alert])").count() == 0, text
        assert setting(page, 1, "d_k") == d_k, text


def test_whatever_python_accepts_is_kept(page, all_kinds):
    """Also words that look like faults of a program, and half a letter."""
    link = "parity-atlas.outcome=NaN&writer.text=an+undefined+NaN"
    link += '&flow.tokens=["tea"]&flow.x=[[1,0,1,0]]&positions-explorer.d_model=8'
    arrive(page, f"{all_kinds}#{link}")
    assert (setting(page, 8, "outcome"), setting(page, 3, "text")) == ("NaN", "an undefined NaN")
    assert (setting(page, 6, "tokens"), setting(page, 7, "d_model")) == (["tea"], 8)
    page.evaluate("""() => {
      const {model} = document.querySelectorAll(".widget-slot")[3];
      model.set("text", "half \\ud800 letter");
      model.save_changes();
    }""")
    assert "writer.text=half+%EF%BF%BD+letter" in fragment(page)


def test_an_address_with_thousands_of_settings_is_read_at_once(page, all_kinds):
    wake(page, all_kinds)
    page.evaluate("to => { location.hash = to }", "&".join(f"plane.x{i}=1" for i in range(5_000)))
    start = page.evaluate("performance.now()")
    page.evaluate(FRAME)
    assert page.evaluate("performance.now()") - start < 1000
    assert len(fragment(page)) < 2000
