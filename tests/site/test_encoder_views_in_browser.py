"""Encoder's views of a path, parts, a search and lengths in a real browser: touched and typed."""

import contextlib
from pathlib import Path

import pytest

from attnlib.widgets import Encoder
from attnlib.widgets.encoder import views
from tests.site.harness import assert_nothing_moves, axe_findings, served, wake, write_page

STAND_IN = (Path(__file__).parent / "encoder_stand_in.js").read_text(encoding="utf-8")
VIEWS = ("path", "search", "lengths", "parts")
SAID, STALE = "[data-part=said]", ".stale"
CALM = {"reduced_motion": "reduce"}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """The address of each view."""
    pages = {}
    with contextlib.ExitStack() as stack:
        for name in VIEWS:
            folder = tmp_path_factory.mktemp(name)
            write_page(folder, Encoder(name))
            pages[name] = stack.enter_context(served(folder))
        yield pages


@pytest.fixture
def open_view(page, addresses):
    """A function that opens a view with the stand-in for the engine, nothing loaded."""
    page.add_init_script(STAND_IN)
    return lambda name, more="": wake(page, addresses[name]["file"] + more)


def says(page, text):
    page.locator(SAID, has_text=text).wait_for()


def order(page, column):
    """The sentences of a column from top to bottom, as they lie on the screen."""
    cards = page.locator(f".card.{column}")
    tops = cards.evaluate_all("all => all.map(card => card.getBoundingClientRect().top)")
    names = cards.locator(".text").all_inner_texts()
    return [name for _, name in sorted(zip(tops, names, strict=True))]


def asked(page):
    return [text for text, _ in page.evaluate("standIn.asked")]


# ------------------------------------------------------------------------------------- the path


def test_layers_by_click_by_key_and_on_the_path(open_view):
    page = open_view("path")
    says(page, "0.90")
    page.locator("[data-part=layers] [aria-pressed=true]").press("ArrowLeft")
    says(page, "After layer 5")
    page.keyboard.press("Home")
    says(page, "Both start at one point")
    page.locator("[data-part=plane] [data-layer='4']").first.click()
    says(page, "0.94")
    page.wait_for_url("**encoder.after=4")
    page.reload()
    wake(page, page.url)
    says(page, "After layer 4")


def test_the_words_walk_between_two_layers(open_view):
    """A glide passes through places between the two, and ends where the layer is."""
    page = open_view("path")
    ring = "document.querySelector('.now circle').getAttribute('cx')"
    start = float(page.evaluate(ring))
    page.locator("[data-part=layers] button").first.click()
    page.wait_for_function(f"Math.abs({ring} - {start}) > 20")
    between = float(page.evaluate(ring))
    says(page, "Before the first layer")
    stop = "document.querySelector('[data-layer=\"0\"] circle').getAttribute('cx')"
    page.wait_for_function(f"{ring} === {stop}")
    assert float(page.evaluate(ring)) < min(between, start) - 20


def test_the_button_goes_through_the_layers(open_view):
    page = open_view("path")
    page.emulate_media(**CALM)
    page.locator("[name=play]").click()
    says(page, "Before the first layer")
    for layer in range(1, 7):
        says(page, f"After layer {layer},")
    page.locator("[name=play]", has_text="Through the layers").wait_for()


def test_a_word_is_chosen_and_a_point_says_its_name(open_view):
    page = open_view("path")
    page.locator(".follow button", has_text="the").first.click()
    says(page, "0.74")
    page.locator(".follow button", has_text="bank").nth(1).click()
    page.locator("[data-dot='0,2']").hover(force=True)
    page.locator(".names .lit", has_text="walked").wait_for()
    page.mouse.move(0, 0)
    page.locator(".names .lit").wait_for(state="detached")


def test_heads_and_swaps_of_a_recording_are_chosen(open_view):
    page = open_view("parts")
    says(page, "Head 12 of layer 6 writes 19% of the way")
    page.locator("[data-part=written] [aria-pressed=true]").press("ArrowLeft")
    says(page, "Head 11 of layer 6")
    page.get_by_label("layer 1, head 3").click()
    page.locator("[data-swap=layer]").click()
    says(page, "goes 29% of the way")
    page.wait_for_url("**encoder.swapped=layer")
    page.locator("[data-swap=all]").click()
    says(page, "goes 100% of the way")


def test_parts_of_sentences_of_ones_own_are_read_and_swapped(open_view):
    page = open_view("parts")
    page.locator("[name=text]").fill("A spring in a watch")
    page.locator(STALE).first.wait_for()
    page.locator("[name=other]").fill("A spring in a wood")
    page.locator(".follow button", has_text="spring").or_(page.locator("[name=read]")).last.click()
    page.locator(STALE).first.wait_for(state="detached")
    page.locator(".follow button", has_text="spring").first.click()
    said = page.locator(SAID, has_text="spring goes").inner_text()
    page.locator("[data-swap=layer]").click()
    page.locator(SAID, has_text="spring goes").wait_for()
    assert page.locator(SAID).inner_text() != said
    page.locator("[name=other]").fill("A spring in the deep wood")
    says(page, "as many tokens: these have 7 and 8.")


def test_two_sentences_of_ones_own_are_read(open_view):
    page = open_view("path")
    page.locator("[name=text]").fill("A spring in the watch")
    page.locator(STALE).first.wait_for()
    assert page.evaluate("standIn.asked") == []
    page.locator("[name=other]").fill("A spring of cold water")
    page.locator("[name=read]").click()
    says(page, "spring and spring")
    assert page.locator(STALE).count() == 0
    assert asked(page) == ["A spring in the watch", "A spring of cold water"]
    page.locator(".follow button", has_text="a").first.click()
    page.locator(".follow button", has_text="[SEP]").first.click()
    says(page, "[SEP] and [SEP]")
    assert len(asked(page)) == 2  # other words of the same readings


# ----------------------------------------------------------------------------------- the search


def test_sentences_glide_to_their_new_places(open_view):
    page = open_view("search")
    assert order(page, "meaning")[0] == views.LIBRARY[9]
    place = "document.querySelectorAll('.card.meaning')[3].style.getPropertyValue('--y')"
    before = float(page.evaluate(place))
    page.get_by_role("button", name="loans").click()
    page.wait_for_function(f"{place} % 1 > 0")  # on its way
    page.wait_for_function(f"{place} == 0")
    assert before > 0 and order(page, "meaning")[0] == "The bank raised its interest rates."
    assert order(page, "shared") == views.LIBRARY  # level: as they are typed
    page.locator(".column", has_text="nothing").wait_for()
    assert page.evaluate("standIn.asked") == []


def test_nothing_glides_where_motion_is_not_wanted(open_view):
    page = open_view("search")
    page.emulate_media(**CALM)
    page.evaluate("""() => {
        self.places = new Set();
        new MutationObserver(() => document.querySelectorAll(".card").forEach(
            card => places.add(Number(card.style.getPropertyValue("--y")))))
            .observe(document.querySelector(".abh"), {subtree: true, attributes: true});
    }""")
    page.get_by_role("button", name="bake a cake").click()
    says(page, "Add two eggs")
    assert page.evaluate("[...places].every(Number.isInteger)")


def test_a_question_and_sentences_of_ones_own(open_view):
    page = open_view("search")
    page.locator("[name=question]").fill("Is it late?")
    says(page, "still the order of")
    page.locator("[name=read]").click()
    page.locator(f"{SAID} .number").wait_for()
    assert asked(page) == ["Is it late?"]  # the ten are recorded
    status = page.locator("[data-part=status]")
    status.get_by_text("Read on your machine").wait_for()
    page.get_by_role("button", name="loans").click()
    status.get_by_text("This is a recording").wait_for()
    page.locator("[name=question]").fill("Is it late?")
    status.get_by_text("Read on your machine").wait_for()
    page.locator("summary", has_text="of your own").click()
    field = page.get_by_label("One a line")
    field.fill("only one")
    assert "at least two" in page.locator(".message").inner_text()
    field.fill("It is late.\n\n<b>Tea</b> is hot.\nThe moon is up.")
    page.wait_for_function("document.querySelectorAll('.card.meaning').length === 3")
    page.locator(".card.meaning").nth(2).locator(".score", has_text=".").wait_for()
    assert sorted(order(page, "meaning"))[0] == "<b>Tea</b> is hot."
    assert asked(page)[1:] == ["It is late.", "<b>Tea</b> is hot.", "The moon is up."]
    field.fill("It is late.\nThe moon is up.")
    page.wait_for_function("document.querySelectorAll('.card.meaning').length === 2")
    page.wait_for_timeout(500)
    assert len(asked(page)) == 4  # each is read once
    page.get_by_role("button", name="Reset").click()
    page.mouse.move(0, 0)  # where the button was there may be a card now
    says(page, views.LIBRARY[9])
    assert field.input_value().splitlines() == views.LIBRARY


def test_a_card_tells_of_its_sentence(open_view):
    page = open_view("search")
    page.locator(".card.shared").first.hover()
    says(page, "0.34")
    says(page, "2.41")
    page.mouse.move(0, 0)
    says(page, "A flat tire")
    page.locator(".card.meaning").nth(2).focus()
    says(page, "The goalkeeper")


# ------------------------------------------------------------------------------------- lengths


def test_each_sentence_that_is_read_is_a_point(open_view):
    page = open_view("lengths")
    own = page.locator(".cls .own circle")
    assert own.count() == len(views.MEASURED)
    page.locator("[name=text]").fill("It rains")
    page.locator("[name=read]").click()
    says(page, "It rains")
    page.locator("[name=text]").fill("It rains and rains and rains")
    says(page, "It rains and rains and rains")
    says(page, "8 tokens")
    assert own.count() == len(views.MEASURED) + 2


def test_points_by_slider_by_pointer_and_by_layer(open_view):
    page = open_view("lengths")
    page.emulate_media(**CALM)  # or the points glide to another layer for a second
    page.locator("[name=spot]").press("Home")
    says(page, "0.79")
    page.locator("[data-part=only] [aria-pressed=true]").press("ArrowRight")
    says(page, "3 tokens. In layer 1, [CLS] gets 0.51")
    page.locator(".cls .own circle").first.hover(force=True)
    says(page, "Chai piyo")
    page.mouse.move(0, 0)
    says(page, "3 tokens. In layer 1")


# ----------------------------------------------------------------------------------------- all


def test_nothing_moves(browser, addresses):
    def steps(name):
        def states(page):
            if name == "path":
                for layer in (0, 3):
                    page.locator("[data-part=layers] button").nth(layer).click()
                    yield
                for chip in reversed(page.locator(".chip").all()):
                    chip.click()
                    yield
                page.locator(".follow button").first.click()
            if name == "parts":
                page.get_by_label("layer 1, head 3").click()
                for swap in reversed(page.locator("[data-swap]").all()):
                    swap.click()
                    yield
                for chip in reversed(page.locator(".chip").all()):
                    chip.click()
                    yield
                page.locator(".follow button").first.click()
            if name == "search":
                for chip in page.locator(".chip").all():
                    chip.click()
                    yield
                page.locator(".card.meaning").first.hover()
            if name == "lengths":
                page.locator("[name=spot]").press("End")
                yield
                page.locator("[data-part=only] button").nth(2).click()
            yield

        return states

    for width in (1280, 360):
        for name in VIEWS:
            assert_nothing_moves(browser, addresses[name]["http"], width, steps(name))


@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing_before_it_is_read(open_view, name):
    page = open_view(name)

    def states(page):
        page.locator(".entry input").first.fill("A road in the woods")
        page.wait_for_timeout(100)
        yield

    assert axe_findings(page, states) == []
