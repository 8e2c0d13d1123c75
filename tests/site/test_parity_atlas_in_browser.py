"""ParityAtlas in a real browser, on a page of its own."""

from attnlib import atlas
from attnlib.widgets import ParityAtlas
from attnlib.widgets import parity_atlas as python
from tests.site.harness import FRAME, SHIFTS, page_of, phone, wake
from tests.widgets.pictures import js

addresses = page_of(ParityAtlas())
MODE = {"train": "train", "eval": "eval", "no_grad": "eval, no_grad"}


def at(page):
    """The cell that is looked at: its name, its sign, what is said of it, its call."""
    page.evaluate(FRAME)
    pressed = page.locator(".grid [aria-pressed=true]")
    name = page.locator(".name").inner_text().replace("\n", " ")
    assert page.locator("[data-part=said] .chip").inner_text() == pressed.inner_text()
    return (
        pressed.get_attribute("aria-label").split(": ")[1],
        name,
        page.locator("pre").inner_text().split("\n"),
    )


def expected(page, **traits):
    label, name, call = at(page)
    widget = ParityAtlas(**traits)
    assert label.startswith(f"{widget.function}, ") and widget.function in name
    assert call == (js(widget, "pythonCode(state)") or [""])


def cell(page, function, mask):
    row, column = python.FUNCTIONS.index(function), list(atlas.MASKS).index(mask)
    return page.locator(".grid tr").nth(row + 1).locator("button").nth(column)


def test_mouse_picks_a_cell_a_mode_and_an_outcome(live):
    page = live
    expected(page)
    chosen = {"function": "nn.MultiheadAttention with weights", "mask": "empty row"}
    cell(page, **chosen).click()
    expected(page, **chosen)
    page.get_by_role("button", name="eval", exact=True).click()
    expected(page, **chosen, mode="eval")
    legend = page.locator("[name=outcome][value=NaN]")
    legend.click()
    page.evaluate(FRAME)
    bright = page.locator(".grid button:not(.faded)").all_inner_texts()
    assert set(bright) == {"NaN"} and len(bright) == int(legend.locator(".number").inner_text())
    legend.click()
    page.evaluate(FRAME)
    assert page.locator(".faded").count() == 0
    page.get_by_role("button", name="Reset").click()
    expected(page)


def test_arrow_keys_walk_over_the_grid(live):
    page = live
    cell(page, "nn.TransformerEncoder", "ALiBi bias").focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
    where = {"function": "nn.MultiheadAttention without weights", "mask": "ALiBi bias"}
    expected(page, **where)
    page.keyboard.press("Control+Home")
    expected(page, function=python.FUNCTIONS[0], mask="none")
    page.keyboard.press("ArrowUp")  # nothing is there
    expected(page, function=python.FUNCTIONS[0], mask="none")
    page.keyboard.press("Control+End")
    expected(page, function="nn.Transformer", mask="empty sentence")
    assert page.evaluate("document.activeElement.innerText") == "NaN"


def test_a_function_without_the_argument_says_so(live):
    cell(live, "varlen_attn", "ALiBi bias").click()
    expected(live, function="varlen_attn", mask="ALiBi bias")
    facts = live.locator(".facts p:not(.tokens) > span:last-child").all_inner_texts()
    assert set(facts) == {"–"}  # there is nothing to say but that
    live.get_by_role("button", name="Copy").click()
    assert live.locator(".message").inner_text() == "There is no such call."


def test_copy_says_so(live):
    lines = js(ParityAtlas(), "pythonCode(state)")
    live.get_by_role("button", name="Copy").click()
    live.wait_for_function("document.querySelector('.message').textContent !== ''")
    assert live.locator(".message").inner_text() == f"Copied {len(lines)} lines of Python."


def test_a_table_for_the_ear_follows(live):
    cell(live, "flex_attention", "padding").click()
    live.wait_for_function("document.querySelector('caption').textContent.startsWith('flex')")
    rows = live.locator(".visually-hidden tr").all_inner_texts()
    assert len(rows) == 1 + len(atlas.MASKS)


def test_nothing_jumps_and_nothing_hangs_over(browser, addresses):
    """Whichever cell is looked at, in one mode after the other, what comes after stays in place.

    Each is measured at three widths, without a wait for the screen to show it.
    """
    page = browser.new_page(viewport={"width": 1280, "height": 1300})
    page.add_init_script(SHIFTS)
    wake(page, addresses["http"])
    assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") == 0
    found = page.evaluate(
        """async () => {
          self.requestAnimationFrame = queueMicrotask;
          // What a column has room for on a wide screen, on a narrow one and on a phone.
          const widths = ["736px", "668px", "328px"];
          const places = new Set(), over = new Set(), main = document.querySelector("main");
          const {model} = document.querySelector(".widget-slot");
          const {functions, masks, modes} = model.get("choices");
          for (const [row, name] of functions.entries()) for (const [at, mask] of masks.entries()) {
            model.set("mode", modes[(row + at) % modes.length]);
            model.set("function", name);
            model.set("mask", mask);
            model.save_changes();
            await null;
            for (const width of widths) {
              main.style.width = width;
              const y = document.querySelector("#after").getBoundingClientRect().y;
              places.add(`${width}: ${Math.round(y + scrollY)}`);
              over.add(main.scrollWidth - main.clientWidth);
            }
          }
          return [places.size, Math.max(...over)];
        }"""
    )
    assert found == [3, 0]
    page.close()


def test_cells_are_large_enough_for_a_finger(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        for button in page.locator(".grid tr").nth(1).locator("button").all():
            box = button.bounding_box()
            assert min(box["width"], box["height"]) >= 24
            assert button.evaluate("b => b.scrollWidth <= b.clientWidth")
