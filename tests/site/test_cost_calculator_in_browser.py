"""CostCalculator in a real browser, on a page of its own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.widgets import CostCalculator
from attnlib.widgets import cost_calculator as python
from tests.site.harness import (
    assert_nothing_moves,
    assert_picture_stands,
    assert_same_marks,
    assert_theme_shows,
    assert_words_fit,
    axe_findings,
    browser_test,
    copied,
    import_module,
    module_size,
    run,
    served,
    still,
    still_texts,
    texts,
    traits,
    wake,
    write_page,
)

WORDS = ("n_value", "weights", "cache", "flops", "share", "longest", "fits", "instead")


@st.composite
def calculators(draw):
    heads, group = draw(st.integers(1, 24)), draw(st.integers(1, 8))
    return CostCalculator(
        n=draw(st.integers(1, 2**20)),
        n_heads=heads * group,
        group=group,
        d_model=heads * group * draw(st.integers(1, 128)),
        n_layers=draw(st.integers(1, 100)),
        bytes=draw(st.sampled_from(list(python.BYTES))),
        kind=draw(st.sampled_from(list(python.KINDS))),
        width=draw(st.integers(0, 2**20)),
        memory=draw(st.floats(1e-3, 1e6)),
    )


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cost")
    write_page(folder, CostCalculator())
    with served(folder) as addresses:
        yield addresses


@pytest.fixture(params=["http", "file"])
def awake(request, page, addresses):
    return wake(page, addresses[request.param])


@pytest.fixture(scope="module")
def module(browser):
    page = import_module(browser.new_page(), CostCalculator)
    yield page
    page.close()


def shown(page):
    return texts(page, WORDS)


def expected(**changes):
    return still_texts(CostCalculator(**changes), WORDS)


@settings(browser_test, max_examples=60)
@given(calculator=calculators())
def test_it_counts_what_python_counts(module, calculator):
    state = traits(calculator)
    assert module.evaluate("state => widget.costs(state)", state) == pytest.approx(
        calculator.costs, rel=1e-12
    )
    assert module.evaluate("state => widget.longest(state)", state) == calculator.longest


@settings(browser_test, max_examples=60)
@given(calculator=calculators())
def test_it_draws_what_the_still_picture_draws(module, calculator):
    state = traits(calculator)
    found = module.evaluate("state => widget.marks(state, widget.costs(state))", state)
    assert_same_marks(found, calculator._marks(calculator.costs))


@settings(browser_test, max_examples=60)
@given(number=st.floats(0, 1e24), whole=st.booleans())
def test_amounts_read_the_same(module, number, whole):
    number = round(number) if whole else number
    said = module.evaluate("([x, whole]) => widget.amount(x, 'B', whole)", [number, whole])
    assert said.split()[1:] == python.amount(number, "B", whole).split()[1:]
    first, second = (
        float(words.split()[0].replace(",", "").rstrip("B"))
        for words in (said, python.amount(number, "B", whole))
    )
    assert first == pytest.approx(second, rel=0.011)  # a half may be rounded up or down


@settings(browser_test, max_examples=30)
@given(calculator=calculators())
def test_copied_code_gives_the_numbers_on_the_screen(module, calculator):
    lines = module.evaluate("state => widget.numpyCode(state)", traits(calculator))
    names = run("\n".join(lines))
    for name, value in calculator.costs.items():
        assert names[name] == pytest.approx(value, rel=1e-12), name


def test_keyboard_alone_moves_everything(awake):
    page = awake
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert shown(page) == expected(n=2**20)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert shown(page) == expected(n=181)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert shown(page) == expected(n=181, kind="blockwise")
    page.keyboard.press("ArrowDown")
    assert shown(page) == expected(n=181, kind="window")
    page.get_by_label("Width of the window").fill("7")
    page.keyboard.press("Tab")
    assert shown(page) == expected(n=181, kind="window", width=7)
    page.get_by_role("button", name="Reset").press("Enter")
    assert shown(page) == expected()


def test_models_and_sizes_follow_each_other(awake):
    page = awake
    page.get_by_role("combobox", name="Model").select_option("GPT-3")
    assert shown(page) == expected(d_model=12288, n_heads=96, n_layers=96)
    assert page.get_by_label("Heads", exact=True).input_value() == "96"
    page.get_by_label("Layers").fill("90")
    page.keyboard.press("Enter")
    assert shown(page) == expected(d_model=12288, n_heads=96, n_layers=90)
    assert page.get_by_role("combobox", name="Model").input_value() == ""
    page.get_by_label("Bytes a number").select_option("2")
    page.get_by_label("Memory").fill("80")
    page.keyboard.press("Enter")
    assert shown(page) == expected(d_model=12288, n_heads=96, n_layers=90, bytes=2, memory=80.0)


@pytest.mark.parametrize(
    ("label", "typed", "said"),
    [
        ("Heads", "7", "Heads must divide d_model: 512 / 7 is not whole."),
        ("Heads", "12", "Heads must divide d_model: 512 / 12 is not whole."),
        ("Heads", "2", "Heads that share must divide the heads: 2 / 4 is not whole."),
        ("d_model", "", "d_model must be a whole number from 1 to 65,536."),
        ("d_model", "1e99", "d_model must be a whole number from 1 to 65,536."),
        ("Layers", "NaN", "Layers must be a whole number from 1 to 1,024."),
        ("Layers", "<b>6</b>", "Layers must be a whole number from 1 to 1,024."),
        ("Memory", "-1", "Memory must be a number of gigabytes above 0, up to 1,000,000."),
        ("Memory", "", "Memory must be a number of gigabytes above 0, up to 1,000,000."),
    ],
)
def test_absurd_sizes_get_a_plain_message_and_change_nothing(awake, label, typed, said):
    box = awake.get_by_label(label, exact=label == "Heads")
    before = box.input_value()
    box.fill(typed)
    box.press("Enter")
    assert awake.get_by_role("status").inner_text() == said
    assert box.input_value() == before and shown(awake) == expected()


def test_copy_button_says_so(page, addresses):
    names = copied(wake(page, addresses["http"]))
    assert names["weights"] == 8 * 4096**2 * 4


def test_table_for_the_ear_follows(awake):
    awake.get_by_label("Kind of attention").select_option("blockwise")
    awake.wait_for_timeout(600)
    table = still(CostCalculator(kind="blockwise")).select_one("[data-part=table]")
    assert awake.locator("[data-part=table] td").all_text_contents() == [
        cell.get_text() for cell in table.select("td")
    ]
    assert awake.locator("caption").text_content() == table.caption.get_text()


def move_all(page):
    for kind in python.KINDS:
        page.get_by_label("Kind of attention").select_option(kind)
        for model in ("Transformer, base", "GPT-3"):
            page.get_by_role("combobox", name="Model").select_option(model)
            for key in ("Home", "End"):
                yield page.get_by_role("slider").press(key)


@pytest.mark.parametrize("width", [1280, 700, 360])
def test_nothing_jumps_and_nothing_hangs_over(browser, addresses, width):
    assert_nothing_moves(browser, addresses["http"], width, move_all)


def test_axe_finds_nothing_in_either_theme(browser, addresses):
    page = wake(browser.new_page(), addresses["http"])
    assert axe_findings(page) == []
    page.close()


def test_words_in_the_drawing_fit_it_and_each_other(browser, addresses):
    page = wake(browser.new_page(), addresses["http"])
    assert_words_fit(page)
    page.close()


def test_picture_stands_without_javascript_and_when_the_module_fails(browser, addresses):
    assert_picture_stands(browser, addresses)


def test_theme_changes_the_drawing(awake):
    assert_theme_shows(awake, awake.locator("svg"))


def test_size_of_the_module():
    assert module_size(CostCalculator) < 60_000
