"""HeadsViewer in a real browser, on a page of its own: numbers, drawings, keyboard, finger."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import attnlib
from attnlib.widgets import HeadsViewer
from attnlib.widgets.heads_viewer import heat_marks, line_marks, small_marks
from tests.site.harness import (
    FRAMES,
    SHIFTS,
    axe,
    import_module,
    module_size,
    phone,
    run,
    slots,
    themes,
    traits,
    wake,
    write_page,
)

HOSTILE = '<img src=x onerror="document.title=1"></script><!--'
STATE = ("text", "layer", "head", "row", "lines")


def random_weights(n_layers, n_heads, n, mask, seed):
    """Weights under a mask, sharp enough that some are close to 1; some rows are empty."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 3, (n_layers, n_heads, n, n))
    scores[rng.random((n_layers, n_heads, n)) < 0.1] = -np.inf
    return attnlib.softmax(np.where(mask, scores, -np.inf))


@st.composite
def viewers(draw):
    n_layers, n_heads = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    letters = st.characters(exclude_categories=["C"])
    texts = {}
    for name in draw(st.lists(st.sampled_from("abc"), min_size=1, unique=True)):
        n = draw(st.sampled_from([1, 2, 3, 5, 7, 11, 17, 29, 64]))
        mask = {
            "none": np.ones((n, n), bool),
            "causal": attnlib.causal_mask(n),
            "window": attnlib.window_mask(n, 2),
        }[draw(st.sampled_from(["none", "causal", "window"]))]
        weights = random_weights(n_layers, n_heads, n, mask, draw(st.integers(0, 2**32 - 1)))
        tokens = draw(st.lists(st.text(letters, max_size=20), min_size=n, max_size=n))
        texts[name] = (tokens, weights, mask)
    longest = max(len(tokens) for tokens, _, _ in texts.values())
    return HeadsViewer(
        texts,
        text=draw(st.integers(0, len(texts) - 1)),
        layer=draw(st.integers(0, n_layers - 1)),
        head=draw(st.integers(0, n_heads - 1)),
        row=draw(st.integers(0, longest - 1)),
        lines=draw(st.sampled_from(["row", "all"])),
    )


browser_test = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def module(browser):
    page = import_module(browser.new_page(), HeadsViewer, "heads")
    yield page
    page.close()


@browser_test
@given(viewer=viewers())
def test_it_computes_what_python_computes(module, viewer):
    found = module.evaluate("state => heads.compute(state)", traits(viewer))
    np.testing.assert_allclose(found["all"], viewer.all_weights, rtol=0, atol=1 / 131070 + 1e-12)
    np.testing.assert_allclose(found["weights"], viewer._drawn, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(found["allowed"], viewer.mask)
    assert found["sentence"] == viewer.sentence
    assert found["tokens"] == viewer.tokens
    for name, mean in viewer.summary.items():
        assert found["summary"][name] == (mean if mean is None else pytest.approx(mean, abs=1e-9))


def alike(found, expected):
    """The same marks; lengths may differ in how their last of two decimals is rounded."""
    for (tag, attributes, content), mark in zip(found, expected, strict=True):
        assert (tag, attributes.keys()) == (mark[0], mark[1].keys())
        for name, value in mark[1].items():
            if isinstance(value, str):
                numbers = [np.array(split(text), float) for text in (attributes[name], value)]
                np.testing.assert_allclose(*numbers, rtol=0, atol=0.0101)
            else:
                assert attributes[name] == pytest.approx(value, abs=1e-9)
        if isinstance(content, str):
            assert content == mark[2]
        else:
            alike(content, mark[2])


def split(text):
    """The numbers of an attribute, letters counted as numbers too."""
    words = "".join(f" {c} " if c.isalpha() or c in "()" else c for c in text).split()
    return [ord(word[0]) if not word.lstrip("-")[:1].isdigit() else word for word in words]


@browser_test
@given(viewer=viewers())
def test_it_draws_what_python_draws(module, viewer):
    found = module.evaluate(
        """state => {
            const now = heads.compute(state);
            const small = now.all.map(layer => layer.map(w => heads.smallMarks(w, now.allowed)));
            return [heads.heatMarks(now), heads.lineMarks(now), small.at(-1).at(-1)];
        }""",
        traits(viewer),
    )
    given_ = viewer.tokens, viewer._drawn, viewer.mask
    last = np.round(viewer.all_weights[-1, -1] * 65535) / 65535
    alike(found[0], heat_marks(*given_, viewer._row))
    alike(found[1], line_marks(*given_, viewer._row, viewer.lines))
    alike(found[2], small_marks(last, viewer.mask))


@browser_test
@given(viewer=viewers())
def test_copied_code_gives_the_weights_and_their_means(module, viewer):
    code = module.evaluate("state => heads.numpyCode(state).join('\\n')", traits(viewer))
    names = run(code)
    assert names["tokens"] == viewer.tokens
    assert (names["layer"], names["head"], names["row"]) == (viewer.layer, viewer.head, viewer._row)
    np.testing.assert_allclose(names["weights"], viewer.weights, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(names.get("mask", np.ones_like(viewer.mask)), viewer.mask)
    for line, mean in zip(names["printed"], viewer.summary.values(), strict=False):
        assert line == "none" if mean is None else float(line) == pytest.approx(mean, abs=0.0051)


# ------------------------------------------------------------------------ on a page of its own


def model_of(n_layers=3, n_heads=4, n=5):
    """Two texts for a small model, the second one shorter and under a causal mask."""
    long, causal = np.ones((n, n), bool), attnlib.causal_mask(3)
    return HeadsViewer(
        {
            "long": (
                "The cat sat on it".split()[:n],
                random_weights(n_layers, n_heads, n, long, 1),
            ),
            "short": (["A", "dog", "ran"], random_weights(n_layers, n_heads, 3, causal, 2), causal),
        },
        layer=1,
        head=2,
        row=n - 1,
    )


@pytest.fixture
def open_viewer(page, tmp_path):
    """Open a page with a viewer, from disk, and wait until it lives."""

    def go(viewer=None, **size):
        write_page(tmp_path, viewer or model_of())
        if size:
            page.set_viewport_size(size)
        page.add_init_script(SHIFTS)
        return wake(page, (tmp_path / "page.html").as_uri())

    return go


def state(page):
    page.evaluate(FRAMES)
    return page.evaluate(
        "names => names.map(n => document.querySelector('.widget-slot').model.traits[n])",
        list(STATE),
    )


def agrees(page, viewer):
    """Everything on the screen is what Python says of the present state."""
    found = state(page)
    for name, value in zip(STATE, found, strict=True):
        setattr(viewer, name, value)
    assert page.locator(".said").inner_text() == viewer.sentence
    n_heads = viewer.all_weights.shape[1]
    pressed = page.locator("[role=grid] button").evaluate_all(
        "all => all.flatMap((b, i) => b.ariaPressed === 'true' ? [i] : [])"
    )
    assert pressed == [viewer.layer * n_heads + viewer.head]
    row = viewer._drawn[viewer._row]
    crowded = len(row) > 26  # then only the largest weight has room for its number
    shown = [f"{x:.2f}" for x in ([row.max()] if crowded else row[viewer.mask[viewer._row]])]
    texts = page.locator("[data-part=links] text").all_text_contents()
    assert [t for t in texts if t[:2] in ("0.", "1.")] == shown
    for name in STATE:
        select = page.locator(f"select[name={name}]")
        if select.count():
            value = viewer._row if name == "row" else getattr(viewer, name)
            assert select.input_value() == str(value)
    means = [page.locator(f"[data-part={name}]").inner_text() for name in viewer.summary]
    for said, mean in zip(means, viewer.summary.values(), strict=True):
        assert said == ("–" if mean is None else f"{mean + 1e-9:.2f}")
    return found


def tab_to(page, selector):
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    pytest.fail(f"Tab does not reach {selector}")


def test_by_keyboard_alone(open_viewer):
    page, viewer = open_viewer(), model_of()
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
    tab_to(page, "[name=reset]")
    page.keyboard.press("Enter")
    assert agrees(page, viewer) == [0, 1, 2, 4, "row"]


def test_with_the_mouse(open_viewer):
    page, viewer = open_viewer(), model_of()
    page.get_by_role("button", name="layer 3, head 1").click()
    assert agrees(page, viewer)[1:3] == [2, 0]
    for part in ("heat", "links"):
        picture = page.locator(f"[data-part={part}]")
        box = picture.bounding_box()
        for row in (0, 3):
            # The tokens stand at 64 + (row + 1/2) 262 / 5 of 334 units.
            y = box["height"] * (64 + (row + 0.5) * 262 / 5) / 334
            picture.click(position={"x": box["width"] / 2, "y": y})
            assert agrees(page, viewer)[3] == row
        picture.click(position={"x": box["width"] / 2, "y": 5})  # above the rows
        assert agrees(page, viewer)[3] == 3
    box = page.locator("[data-part=heat]").bounding_box()
    unit = box["width"] / 360
    page.mouse.move(box["x"] + unit * (74 + 2.5 * 262 / 5), box["y"] + unit * (64 + 262 / 10))
    weight = viewer._drawn[0, 2]
    assert page.locator("[data-part=cell]").inner_text() == f"The → sat: weight {weight:.4f}"
    page.get_by_label("Text").select_option("short")
    agrees(page, viewer)
    page.mouse.move(box["x"] + unit * (74 + 2.5 * 262 / 3), box["y"] + unit * (64 + 262 / 6))
    assert page.locator("[data-part=cell]").inner_text() == "A → ran: forbidden by the mask"
    page.locator("[name=lines]").select_option("all")
    agrees(page, viewer)
    assert page.locator("[data-part=links] .others path").count() > 0
    page.wait_for_timeout(400)
    rows = page.locator("[data-part=table] tr").all_text_contents()
    assert len(rows) == 4 and rows[1].count("masked") == 2


def test_a_tie_goes_up(open_viewer):
    viewer = HeadsViewer(list("abcdefgh"), [np.eye(8)])
    page = open_viewer(viewer)
    assert agrees(page, viewer) and page.locator("[data-part=first]").inner_text() == "0.13"


def test_the_grid_follows_the_text(open_viewer):
    page, viewer = open_viewer(), model_of()
    page.get_by_label("Text").select_option("short")
    agrees(page, viewer)
    viewer.text = 1
    last = np.round(viewer.all_weights[2, 3] * 65535) / 65535
    paths = page.get_by_role("button", name="layer 3, head 4").locator("path")
    found = paths.evaluate_all("all => all.map(p => p.getAttribute('d'))")
    assert found == [attributes["d"] for _, attributes, _ in small_marks(last, viewer.mask)]
    svg = page.get_by_role("button", name="layer 3, head 4").locator("svg")
    assert svg.get_attribute("viewBox") == "-.5 0 3 3"


def test_a_finger_picks(browser, tmp_path):
    write_page(tmp_path, model_of())
    with phone(browser, (tmp_path / "page.html").as_uri()) as page:
        page.get_by_role("button", name="layer 1, head 4").tap()
        assert agrees(page, model_of())[1:3] == [0, 3]
        page.locator("[data-part=heat]").tap(position={"x": 150, "y": 75})
        assert agrees(page, model_of())[3] == 0


def test_copy_says_what_it_did(open_viewer):
    page = open_viewer()
    page.get_by_role("button", name="Copy as NumPy").click()
    page.wait_for_timeout(100)
    assert "Copied" in page.locator(".message").inner_text()
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".message").inner_text() == ""


def whole_model():
    """As large as chapter 13 has it, one of its texts hostile and one as long as can be."""

    def text(n, seed):
        return random_weights(6, 12, n, np.ones((n, n), bool), seed)

    sixteen = "[CLS] the bank by the river was steep and no boat could land there [SEP]".split()
    return HeadsViewer(
        {
            "river": (sixteen, text(len(sixteen), 3)),
            HOSTILE * 9: ([HOSTILE, "x" * 500, HOSTILE, "y"], text(4, 4)),
            "many": ([f"word{i}" for i in range(64)], text(64, 5)),
        },
        row=3,
    )


SIZES = {
    "whole": whole_model,
    "one layer": lambda: HeadsViewer(list("ab"), np.full((4, 2, 2), 0.5)),
}


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_jumps_or_hangs_over_and_axe_finds_nothing(open_viewer, size, width):
    viewer = SIZES[size]()
    page = open_viewer(viewer, width=width, height=900)
    place = "document.querySelector('#after').getBoundingClientRect().top + scrollY"
    places = [page.evaluate(place)]
    buttons = page.locator("[role=grid] button")
    for text in range(len(viewer.texts)):
        if len(viewer.texts) > 1:
            page.locator("[name=text]").select_option(str(text))
        for lines in ("row", "all"):
            page.locator("[name=lines]").select_option(lines)
            buttons.last.click()
            agrees(page, viewer)
            places.append(page.evaluate(place))
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for _ in themes(page):
            assert axe(page) == []
    assert max(places) - min(places) <= 1
    assert page.evaluate("shifts.reduce((sum, value) => sum + value, 0)") <= 0.02
    assert page.locator(".widget-slot img").count() == 0 and page.title() == "A page"
    sizes = buttons.evaluate_all(
        "all => all.map(b => b.getBoundingClientRect()).flatMap(b => [b.width, b.height])"
    )
    assert min(sizes) >= 24


@pytest.mark.parametrize("width", [1280, 360])
def test_picture_has_the_size_and_the_words_of_the_live_widget(browser, tmp_path, width):
    write_page(tmp_path, model_of())
    address = (tmp_path / "page.html").as_uri()
    assert slots(browser, address, width, False) == slots(browser, address, width, True)


def test_size_of_the_module():
    assert module_size(HeadsViewer) < 60_000
