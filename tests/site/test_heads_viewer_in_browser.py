"""HeadsViewer in a real browser, on a page of its own: keyboard, mouse, finger, room."""

import re

import numpy as np
import pytest

import attnlib
from attnlib.widgets import HeadsViewer
from tests.site.harness import (
    FRAME,
    SHIFTS,
    axe,
    lens,
    page_of,
    phone,
    tab_to,
    themes,
    wake,
    write_page,
)
from tests.widgets.pictures import picture

HOSTILE = '<img src=x onerror="document.title=1"></script><!--'
STATE = ("text", "layer", "head", "row", "lines")


def random_weights(n_layers, n_heads, n, mask, seed):
    scores = np.random.default_rng(seed).normal(0, 3, (n_layers, n_heads, n, n))
    return attnlib.softmax(np.where(mask, scores, -np.inf))


def model_of(n_layers=3, n_heads=4):
    """Two texts for a small model, the second one shorter and under a causal mask."""
    causal = attnlib.causal_mask(3)
    long = random_weights(n_layers, n_heads, 5, True, 1)
    short = random_weights(n_layers, n_heads, 3, causal, 2)
    texts = {
        "long": (long, "The cat sat on it".split()),
        "short": (short, ["A", "dog", "ran"], None, causal),
    }
    return HeadsViewer(texts, layer=1, head=2, row=4)


addresses = page_of(model_of())


def agrees(page, viewer):
    """The state, where the screen says and presses what the book draws in that state."""
    page.evaluate(FRAME)
    state = page.evaluate(
        "names => names.map(n => document.querySelector('.widget-slot').model.traits[n])",
        list(STATE),
    )
    for name, value in zip(STATE, state, strict=True):
        setattr(viewer, name, value)
    soup = picture(viewer)
    for part in ("said", "heat", "links", *("previous", "itself", "next", "first", "entropy")):
        shown = page.locator(f"[data-part={part}]").text_content()
        assert shown.replace("\n", " ") == soup.select_one(f"[data-part={part}]").get_text()
    pressed = page.locator("[role=grid] [aria-pressed=true]")
    assert (
        pressed.get_attribute("aria-label") == f"layer {viewer.layer + 1}, head {viewer.head + 1}"
    )
    for select in soup("select"):
        chosen = select.select_one("[selected]")["value"]
        assert page.locator(f"select[name={select['name']}]").input_value() == chosen
    return state


def test_by_keyboard_alone(live):
    page, viewer = live, model_of()
    assert agrees(page, viewer) == [0, 1, 2, 4, "row"]
    tab_to(page, "[role=grid] button")
    places = [
        ("ArrowRight", (1, 3)),
        ("ArrowRight", (1, 3)),  # nothing lies beyond
        ("ArrowDown", (2, 3)),
        ("ArrowLeft", (2, 2)),
        ("Home", (2, 0)),
        ("Control+Home", (0, 0)),
        ("ArrowUp", (0, 0)),
        ("End", (0, 3)),
        ("Control+End", (2, 3)),
        ("ArrowUp", (1, 3)),
    ]
    for key, place in places:
        page.keyboard.press(key)
        assert tuple(agrees(page, viewer)[1:3]) == place
        label = f"layer {place[0] + 1}, head {place[1] + 1}"
        assert page.evaluate("document.activeElement.ariaLabel") == label
    assert page.locator("[role=grid] [tabindex='0']").count() == 1

    for name, keys, expected in [
        ("text", "s", [1, 1, 3, 4, "row"]),
        ("layer", "3", [1, 2, 3, 4, "row"]),
        ("head", "1", [1, 2, 0, 4, "row"]),
        ("row", "2", [1, 2, 0, 1, "row"]),
    ]:
        tab_to(page, f"[name={name}]")
        page.keyboard.type(keys)
        assert agrees(page, viewer) == expected
    tab_to(page, "[name=lines]")
    page.keyboard.press("ArrowDown")
    assert agrees(page, viewer) == [1, 2, 0, 1, "all"]


def test_with_the_mouse(live):
    page, viewer = live, model_of()
    page.get_by_role("button", name="layer 3, head 1").click()
    assert agrees(page, viewer)[1:3] == [2, 0]
    for part in ("heat", "links"):
        drawing = page.locator(f"[data-part={part}]")
        box = drawing.bounding_box()
        x = box["width"] / 8  # where the names are: a weight would open under the microscope
        for row in (0, 3):
            # The tokens stand at 64 + (row + 1/2) 262 / 5 of 334 units.
            y = box["height"] * (64 + (row + 0.5) * 262 / 5) / 334
            drawing.click(position={"x": x, "y": y})
            assert agrees(page, viewer)[3] == row
        drawing.click(position={"x": x, "y": 5})  # above the rows
        assert agrees(page, viewer)[3] == 3
    page.locator("[data-part=heat]").click(position={"x": 200, "y": y})
    assert lens(page)[:2] == ["on", "sat"]


def test_what_is_pointed_at_follows_and_is_forgotten(live):
    page, weights = live, random_weights(3, 4, 5, True, 1)  # of the first text of `model_of`
    cell = page.locator("[data-part=cell]")
    resting = cell.inner_text()
    box = page.locator("[data-part=heat]").bounding_box()
    unit = box["width"] / 360

    def told():
        """From which word to which, and the weight."""
        pair, said = cell.inner_text().split(": ")
        return [pair, *re.findall(r"\d\.\d+", said)]

    page.mouse.move(box["x"] + unit * (74 + 2.5 * 262 / 5), box["y"] + unit * (64 + 262 / 10))
    page.evaluate(FRAME)
    assert told() == ["The → sat", f"{weights[1, 2, 0, 2]:.2f}"]
    choose = "([name, value]) => document.querySelector('.widget-slot').model.set(name, value)"
    page.evaluate(choose, ["head", 0])
    page.evaluate(FRAME)
    assert told() == ["The → sat", f"{weights[1, 0, 0, 2]:.2f}"]
    page.evaluate(choose, ["text", 1])
    page.evaluate(FRAME)
    assert told() == ["A → ran"]  # the mask forbids it
    page.mouse.move(1, 1)
    page.evaluate(FRAME)
    assert cell.inner_text() == resting


def test_the_small_heads_are_drawn_anew_with_the_text_alone(live):
    page = live
    page.evaluate(
        """() => {
            self.seen = [];
            const options = {subtree: true, childList: true, attributes: true};
            new MutationObserver(all => seen.push(...all.map(one => one.target.localName)))
                .observe(document.querySelector("[role=grid]"), options);
        }"""
    )
    page.locator("[name=row]").select_option("0")
    page.locator("[name=lines]").select_option("all")
    page.evaluate(FRAME)
    assert page.evaluate("seen") == []
    page.locator("[name=head]").select_option("0")
    page.evaluate(FRAME)
    assert set(page.evaluate("seen")) == {"button"}  # pressed, and not any more
    page.locator("[name=text]").select_option("1")
    page.evaluate(FRAME)
    assert "svg" in page.evaluate("seen")


def test_a_finger_picks(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        page.get_by_role("button", name="layer 1, head 4").tap()
        assert agrees(page, model_of())[1:3] == [0, 3]
        page.locator("[data-part=heat]").tap(position={"x": 150, "y": 75})
        assert agrees(page, model_of())[3] == 0


def whole_model():
    """As large as the last chapter has it, with one hostile text and one as long as can be."""

    def text(n, seed):
        return random_weights(6, 12, n, True, seed)

    sixteen = "[CLS] the bank by the river was steep and no boat could land there [SEP]".split()
    return HeadsViewer(
        {
            "river": (text(len(sixteen), 3), sixteen),
            HOSTILE * 9: (text(4, 4), [HOSTILE, "x" * 500, HOSTILE, "y"]),
            "many": (text(128, 5), [f"word{i}" for i in range(128)]),
        },
        row=3,
    )


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_jumps_or_hangs_over_and_axe_finds_nothing(page, tmp_path, width):
    write_page(tmp_path, whole_model())
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(SHIFTS)
    wake(page, (tmp_path / "page.html").as_uri())
    place = "document.querySelector('#after').getBoundingClientRect().top + scrollY"
    places = [page.evaluate(place)]
    buttons = page.locator("[role=grid] button")
    for text in range(3):
        page.locator("[name=text]").select_option(str(text))
        for lines in ("row", "all"):
            page.locator("[name=lines]").select_option(lines)
            buttons.last.click()
            page.evaluate(FRAME)
            places.append(page.evaluate(place))
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if text == 1:
            for theme in themes(page):
                if (width, theme) in ((1280, "light"), (360, "dark")):
                    assert axe(page) == []
    assert max(places) - min(places) <= 1
    assert page.evaluate("shifts.reduce((sum, value) => sum + value, 0)") <= 0.02
    assert page.locator(".widget-slot img").count() == 0 and page.title() == "A page"
    sizes = buttons.evaluate_all(
        "all => all.map(b => b.getBoundingClientRect()).flatMap(b => [b.width, b.height])"
    )
    assert min(sizes) >= 24


# ------------------------------------------------------------------------------- one HTML file


def crossed():
    """Three words of one language that attend to seven of another."""
    weights = np.random.default_rng(5).dirichlet(np.full(7, 0.4), (2, 3, 3))
    keys = ["Die", HOSTILE, "schläft", "auf", "der", "Matte", "."]
    return HeadsViewer(weights, ["The", HOSTILE, "sleeps"], keys, title=f"</title>{HOSTILE}", row=2)


def test_a_saved_file_stands_alone_and_is_alive(page, tmp_path):
    viewer = crossed()
    path = viewer.save(tmp_path / "heads and more.html")
    assert [*tmp_path.iterdir()] == [path]
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("fieldset:enabled")
    assert page.title() == viewer.title and page.locator("h1").inner_text() == viewer.title
    assert page.locator("img, iframe").count() == 0
    soup = picture(viewer)
    for part in ("said", "heat", "links", "first", "entropy"):
        shown = page.locator(f"[data-part={part}]").text_content()
        assert " ".join(shown.split()) == " ".join(
            soup.select_one(f"[data-part={part}]").text.split()
        )
    # A click in the middle of a cell that is wider than high: the row of "The", the key "Matte".
    box = page.locator("[data-part=heat]").bounding_box()
    unit = box["width"] / 360
    x, y = 74 + 5.5 * 262 / 7, 64 + 0.5 * 262 / 3
    page.mouse.click(box["x"] + unit * x, box["y"] + unit * y)
    weight = page.locator(".lens:popover-open .lens-head")
    assert weight.locator(".query").inner_text() == "The"
    assert weight.locator(".key").inner_text() == "Matte"
    page.keyboard.press("Escape")
    page.locator("[name=layer]").select_option("1")
    page.get_by_role("button", name="layer 2, head 3").click()
    viewer.layer, viewer.head, viewer.row = 1, 2, 0
    page.evaluate(FRAME)
    said = " ".join(page.locator("[data-part=said]").text_content().split())
    assert said == picture(viewer).select_one("[data-part=said]").get_text()
    for _ in themes(page):
        assert axe(page) == []
    for width in (1024, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # Its policy refuses whatever it did not bring along.
    refused = page.evaluate(
        """async () => {
            const refused = [];
            addEventListener("securitypolicyviolation", ({effectiveDirective}) =>
              refused.push(effectiveDirective));
            await fetch("data:text/plain,a").catch(() => {});
            document.body.append(Object.assign(document.createElement("script"), {text: "1"}));
            await new Promise((done) => setTimeout(done, 50));
            return refused;
        }"""
    )
    assert sorted(refused) == ["connect-src", "script-src-elem"]
    page.noise.clear()  # the console says what was refused
    assert asked[0] == path.as_uri() and all(url.startswith("data:") for url in asked[1:])
