"""Backwards in a real browser: walked, picked and nudged by keyboard, by click and by tap."""

from playwright.sync_api import expect

from attnlib.widgets import Backwards
from tests.site.harness import FRAME, page_of, phone, showing, wake

PARTS = ("by", "predicted", "really", "slope", "graph")


addresses = page_of(Backwards(stage="forwards"))
shows = showing(Backwards, PARTS)


def entry(page, name):
    return page.locator(f"[data-cell='{name}']")


def test_walk_back_box_by_box_and_each_time_its_steepest_entry_is_told(live):
    for stage, cell in [("Z", "Z.0.0"), ("V", "V.1.0"), ("A", "A.0.0"), ("S", "S.0.0")]:
        live.get_by_role("button", name="One box further back").click()
        assert shows(live, stage=stage, cell=cell)
    live.get_by_role("button", name="One box forward again").click()
    assert shows(live, stage="A", cell="A.0.0")


def test_keyboard_alone_picks_nudges_and_walks(live):
    press = live.keyboard.press
    entry(live, "Q.0.1").focus()
    for _ in range(5):
        press("PageDown")
        live.evaluate(FRAME)
    press("ArrowLeft")  # from the steepest query, Chai's first number, there is no way on
    press("ArrowRight")
    expect(entry(live, "Q.0.1")).to_be_focused()
    slider = live.get_by_role("slider")
    slider.focus()
    press("End")
    assert shows(live, stage="Q", cell="Q.0.1", nudge=1)
    press("ArrowLeft")
    assert shows(live, stage="Q", cell="Q.0.1", nudge=0.95)
    live.get_by_role("button", name="Reset").press("Enter")
    expect(live.locator(".slope")).to_have_count(0)


def test_mask_and_target_change_what_comes_back(live):
    live.get_by_role("button", name="Queries").click()
    live.get_by_label("The number L").select_option("1.0")
    assert shows(live, stage="Q", cell="Q.0.0", row=1)
    live.get_by_label("Causal mask").check()
    live.get_by_label("The number L").select_option("0.0")
    assert shows(live, stage="Q", cell="Q.0.0", causal=True)


def test_no_stage_moves_the_page_and_the_sum_keeps_to_its_column(browser, addresses):
    page = browser.new_page(viewport={"width": 700, "height": 900})
    page.goto(addresses["http"])
    heights = set()
    for stage in page.locator("[data-stage]").all():
        stage.click()
        page.evaluate(FRAME)
        heights.add(page.locator(".abh").bounding_box()["height"])
        sides = page.locator(".ledger, .ledger table").evaluate_all(
            "all => all.map((e) => e.getBoundingClientRect().right)"
        )
        assert max(sides) == sides[0]
    page.close()
    assert len(heights) == 1


def test_a_tap_picks_an_entry(browser, addresses):
    with phone(browser, addresses["http"]) as page:
        page.get_by_role("button", name="X, the layer below").tap()
        entry(page, "K.1.0").tap()
        assert shows(page, stage="X", cell="K.1.0")


def test_it_walks_by_itself_and_stops_when_it_is_told(page, addresses):
    page.clock.install()
    wake(page, addresses["http"])
    page.get_by_role("button", name="Backpropagate").click()
    page.clock.run_for(1000)
    expect(entry(page, "Z.0.0").locator(".slope")).to_have_text("+1")
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(3000)
    assert entry(page, "V.1.0").locator(".slope").count() == 0
