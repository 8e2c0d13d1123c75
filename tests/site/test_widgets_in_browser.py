"""What all widgets keep in a real browser: the picture is the live one, and all can use it."""

import re

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from attnlib.widgets import (
    Backwards,
    ChainRule,
    CostCalculator,
    Encoder,
    Flow,
    LayerExplorer,
    LossCurve,
    MaskPainter,
    Plane,
    PositionsExplorer,
    ScalingExplorer,
    Server,
    ThenAndNow,
)
from attnlib.widgets.kit import modules
from tests.helpers import steady
from tests.site.harness import (
    FRAME,
    MISFITS,
    SHIFTS,
    SPILLS,
    assert_words_fit,
    awake,
    axe,
    import_module,
    page_of,
    served,
    wake,
    write_page,
)
from tests.site.looks import CHOICES, SMALL
from tests.widgets.pictures import drawn
from tests.widgets.samples import SAMPLES, simplest

each_widget = pytest.mark.parametrize("widget", SAMPLES, ids=lambda widget: widget.__name__)
few = settings(
    steady,
    max_examples=3,
    phases=[Phase.explicit, Phase.generate],  # to shrink takes minutes in a browser
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
# A widget that has drawn one state, then is given another, shows what the engine draws of each. The
# sines of two engines may differ in their last bit, and so may the last decimal that is drawn.
FOLLOW = """async ([start, next, pictures]) => {
  const DECIMAL = /-?\\d+\\.\\d+/g;
  const close = (x, y) => Math.abs(x - y) < 1.5 * 10 ** -x.split(".")[1].length;
  const alike = (a, b) => {
    const [these, those] = [a, b].map(text => text.match(DECIMAL) ?? []);
    const [rest, other] = [a, b].map(text => text.replace(DECIMAL, "#"));
    return rest === other && these.every((x, i) => close(x, those[i]));
  };
  const differ = (a, b, path = "") => {
    if (a.nodeType === 3) return alike(a.data, b.data) ? null : `${path}: ${a.data} / ${b.data}`;
    if (a.nodeName !== b.nodeName || a.childNodes.length !== b.childNodes.length)
      return `${path}: ${a.outerHTML} / ${b.outerHTML}`;
    const [here, there] = [a, b].map(node => node.cloneNode(false).outerHTML);
    if (!a.cloneNode(false).isEqualNode(b.cloneNode(false)) && !alike(here, there))
      return `${path}: ${here} / ${there}`;
    for (let i = 0; i < a.childNodes.length; i++) {
      const found = differ(a.childNodes[i], b.childNodes[i], `${path} ${a.nodeName}`);
      if (found) return found;
    }
    return null;
  };
  const traits = {...start}, heard = new Set();
  const model = {
    get: name => traits[name],
    set: (name, value) => { traits[name] = value; heard.forEach(tell => tell()); },
    on: (_, tell) => heard.add(tell), off: (_, tell) => heard.delete(tell), save_changes() {},
  };
  const el = document.body.appendChild(document.createElement("div"));
  const end = widget.default.render({model, el});
  const found = [];
  for (const [state, picture] of [[{}, pictures[0]], [next, pictures[1]]]) {
    for (const [name, value] of Object.entries(state)) model.set(name, value);
    const wanted = document.createElement("template");
    wanted.innerHTML = picture;
    wanted.content.querySelector("fieldset").disabled = false;
    let difference; // what is for the ear alone comes later, on a busy machine much later
    for (let wait = 0; wait < 50; wait++) {
      await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
      difference = differ(el.firstElementChild, wanted.content.firstElementChild);
      if (!difference) break;
      await new Promise(done => setTimeout(done, 80));
    }
    found.push(difference);
  }
  end();
  el.remove();
  return found;
}"""


@pytest.fixture(scope="module")
def blank(browser, tmp_path_factory):
    """A page of a site, without widgets."""
    folder = tmp_path_factory.mktemp("blank")
    write_page(folder)
    page = browser.new_page()
    with served(folder) as addresses:
        page.goto(addresses["http"])
        yield page
    page.close()


@each_widget
@few
@given(data=st.data())
def test_the_page_shows_what_the_book_draws(blank, widget, data):
    """The first picture is the live one, and the live one follows its state."""
    import_module(blank, widget)
    one, other = data.draw(SAMPLES[widget]), data.draw(SAMPLES[widget])
    fixed = {"view", "compact"} if widget is Encoder else set()  # they decide what is recorded
    assume(one.state.keys() == other.state.keys())  # a Flow that writes has more of them
    changes = {name: other.state[name] for name in set(widget._shown) & set(other.state) - fixed}
    alive = {"sheet": "lies"} if widget is Flow else {}  # before, its whole river stands there
    pictures = [drawn(one, **alive), drawn(one, **changes, **alive)]
    assert blank.evaluate(FOLLOW, [one.state, changes, pictures]) == [None, None]


# ------------------------------------------------------------------- one page with all of them


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("widgets")
    views = [Plane(scene) for scene in ("prices", "turned", "words", "learning")]
    views += [MaskPainter("paint"), PositionsExplorer(scene="order")]
    write_page(folder, *map(simplest, SAMPLES), *views)
    with served(folder) as addresses:
        yield addresses


@pytest.mark.parametrize("width", [1280, 700, 360])
def test_a_picture_has_the_size_of_the_live_widget(browser, addresses, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    heights = (
        "[...document.querySelectorAll('.abh')].map(abh => abh.getBoundingClientRect().height)"
    )
    page.goto(addresses["file"])
    before = page.evaluate(heights)  # in one go, before any module has arrived
    awake(page)
    page.evaluate(FRAME)
    assert page.evaluate(heights) == pytest.approx(before, abs=1)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert_words_fit(page)
    assert page.evaluate(CHOICES) == page.evaluate(SMALL) == []
    page.close()


def test_the_pictures_stand_with_a_note_when_the_modules_fail(browser, addresses):
    page = browser.new_page()
    planted = (f"registerWidget('{w.__name__}', 'throw new Error(\"planted\")');" for w in SAMPLES)
    page.route("**/module.js", lambda route: route.fulfill(body="".join(planted)))
    wake(page, addresses["http"])
    notes = page.get_by_role("alert").all_inner_texts()
    assert len(notes) == page.locator(".widget-slot").count()
    assert all("could not start" in note for note in notes)
    for fieldset in page.locator(".abh > fieldset").all():
        assert fieldset.is_visible() and fieldset.get_attribute("disabled") is not None
    page.close()


def test_copy_fills_the_clipboard_and_says_so(page, addresses):
    wake(page, addresses["http"]).context.grant_permissions(["clipboard-read", "clipboard-write"])
    for slot in page.locator(".widget-slot:has([name=copy])").all():
        slot.locator("[name=copy]").click()
        page.wait_for_function(
            "slot => slot.querySelector('.message').textContent", arg=slot.element_handle()
        )
        said = re.fullmatch(
            r"Copied (?:(\d+) lines of (?:NumPy|Python)|.*JSON)\.",
            slot.locator(".message").inner_text(),
        )
        text = page.evaluate("navigator.clipboard.readText()")
        assert said and text.endswith("\n") and said[1] in (None, str(text.count("\n")))


PARTS = """panel => [...new Set([...panel.querySelectorAll("*")].map(
  ({localName, className}) => `${localName} ${className.baseVal ?? className}`))].sort()"""


def test_a_weight_opens_under_the_microscope_and_leads_to_the_next(page, addresses):
    wake(page, addresses["http"])
    asked = page.locator(".widget-slot:has([name=why], [data-why])").all()
    with_one = {kind for kind in SAMPLES if "microscope" in modules.imported(kind.__name__)}
    with_one -= {Flow}  # it has no button for it: a weight is one
    assert {slot.get_attribute("data-widget") for slot in asked} == {
        kind.__name__ for kind in with_one
    }
    seen = set()  # what consists of the same parts has the same faults
    for slot in asked:
        why = slot.locator("[name=why], [data-why]").first
        why.click()
        panel = slot.get_by_role("dialog", name="A weight under the microscope")
        panel.wait_for()
        parts = tuple(panel.evaluate(PARTS))
        assert parts in seen or axe(page, [".lens:popover-open"]) == []
        seen.add(parts)
        others = panel.get_by_label("Look at another")
        if others.count():
            others.select_option(index=0)
            first = others.locator("option").first.inner_text()
            panel.locator(".lens-head .key", has_text=first).wait_for()
        page.keyboard.press("Escape")
        panel.wait_for(state="hidden")
        assert why.evaluate("button => button === document.activeElement")


def test_reset_leads_back(page, addresses):
    wake(page, addresses["http"])
    at_rest = "slot => slot.before.isEqualNode(slot.querySelector('fieldset'))"
    unmoved = []
    for slot in page.locator(".widget-slot:has([name=reset])").all():
        page.mouse.move(0, 0)  # what it points at is no state of a widget
        page.evaluate(FRAME)
        slot.evaluate("slot => { slot.before = slot.querySelector('fieldset').cloneNode(true) }")
        controls = slot.locator("select:enabled, input[type=range]:enabled").all()
        for key in ("ArrowDown", "ArrowUp"):  # a slider may rest at its end
            for control in controls if slot.evaluate(at_rest) else ():
                control.press(key)
            page.evaluate(FRAME)
        if controls and slot.evaluate(at_rest):
            unmoved.append(slot.get_attribute("data-widget"))
        slot.locator("[name=reset]").click()
        page.mouse.move(0, 0)
        # What is for the ear alone comes when things are quiet.
        page.wait_for_function(at_rest, arg=slot.element_handle())
    assert unmoved == ["Letters"]  # of one letter: its slider has nowhere to go


# ---------------------------------------------------------------- in whatever state it is set to

MANY = ["Everything", "moves", "when", "someone", "nudges", "it", "x" * 500, "<pad>"]
moving = page_of(
    *(PositionsExplorer(scene=scene, d_model=8) for scene in ("order", "clocks", "turned")),
    *(PositionsExplorer(), LayerExplorer(), ThenAndNow(), CostCalculator()),
    *(Backwards(stage="forwards"), MaskPainter(tokens=MANY)),
    *(ScalingExplorer(scene="gap"), Server(), LossCurve(), ChainRule()),
)
# Twice through all choices, so that each is seen beside others, and each time all sliders from end
# to end. Hundreds of states: they are measured without a wait for the screen to show each.
STATES = f"""async () => {{
  const misfits = {MISFITS}, spills = {SPILLS}, found = new Set();
  const later = self.requestAnimationFrame;
  self.requestAnimationFrame = tell => queueMicrotask(() => tell(performance.now()));
  const quiet = ":not([name=copy], [name=why], [data-why], [name=play], [data-way])" +
    ":not(.widget-share)";
  const tell = (control, ...kinds) =>
    kinds.forEach(kind => control.dispatchEvent(new Event(kind, {{bubbles: true}})));
  for (const [number, slot] of document.querySelectorAll(".widget-slot").entries()) {{
    const place = () => slot.querySelector(".abh").getBoundingClientRect().height;
    const name = `${{slot.dataset.widget}} ${{number}}`, height = place();
    const state = () => JSON.stringify(slot.model.traits), used = new Set();
    const look = async (what) => {{
      await null;
      // A letter with a tilde makes its line a pixel or two higher; a line more makes 15.
      if (Math.abs(place() - height) > 2) found.add(`${{name}}: ${{place() - height}} ${{what}}`);
      const over = document.documentElement.scrollWidth - innerWidth;
      if (over > 0) found.add(`${{name}}: hangs over by ${{over}} ${{what}}`);
      if (slot.dataset.widget !== "Backwards") // a slope stands right beside its entry
        for (const text of [...misfits(slot), ...spills(slot)])
          found.add(`${{name}}: ${{text}} ${{what}}`);
    }};
    const slide = async (what) => {{
      for (const {{name}} of slot.querySelectorAll("[type=range]:enabled")) {{
        const slider = () => slot.querySelector(`[type=range][name="${{name}}"]`);
        for (const end of ["min", "max"]) {{
          if (slider().disabled) continue;
          slider().value = slider()[end];
          tell(slider(), "input", "change");
          await look(`${{what}}, ${{name}} ${{end}}`);
        }}
      }}
    }};
    const controls = () => slot.querySelectorAll(`select, [type=checkbox], button${{quiet}}`);
    for (let at = 0; at < 2 * controls().length; at++) {{
      const which = at % controls().length, control = controls()[which], before = state();
      if (control.disabled) continue;
      for (const option of control.options ?? [control]) {{
        if (control.options) {{
          control.value = option.value;
          tell(control, "input", "change");
        }} else control.click();
        const what = `after ${{option.textContent || control.name}}`;
        await look(what);
        if (state() !== before) used.add(which);
        await slide(what);
      }}
    }}
    for (const [which, control] of controls().entries())
      if (!control.disabled && control.ariaPressed !== "true" && !used.has(which))
        found.add(`${{name}}: nothing follows ${{control.outerHTML}}`);
  }}
  self.requestAnimationFrame = later;
  return [...found];
}}"""


@pytest.mark.parametrize("width", [1280, 700, 360])
def test_nothing_moves_and_words_fit_in_whatever_state(browser, moving, width):
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    page.add_init_script(SHIFTS)
    wake(page, moving["http"])
    found = page.evaluate(STATES)
    assert not found, "\n".join(found)
    sizes = page.locator("[role=grid] button").evaluate_all(
        "all => all.map(b => b.getBoundingClientRect()).flatMap(b => [b.width, b.height])"
    )
    assert min(sizes) >= 24
    assert page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") == 0
    page.close()
