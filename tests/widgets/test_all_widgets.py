"""What all widgets keep, on the Python side and in the engine that draws them."""

import gzip
import json
import re
from html import unescape

import pytest
from hypothesis import strategies as st

import attnlib.widgets
from _ext.widgets.page import mount_point, scripts, shared_modules
from attnlib.widgets import Encoder, HeadsViewer
from attnlib.widgets.kit import base, modules
from attnlib.widgets.kit.base import CourseWidget
from tests.widgets.pictures import drawn, js, parsed, run
from tests.widgets.samples import GIBBERISH, SAMPLES, every, simplest

each_widget = pytest.mark.parametrize("widget", SAMPLES, ids=lambda widget: widget.__name__)


@each_widget
@every(st.data(), examples=5)
def test_a_state_is_said_drawn_linked_and_copied(widget, data):
    made = data.draw(SAMPLES[widget])
    # The same text every time, and no address of an object.
    assert repr(made).startswith(f"{widget.__name__}(") and "0x" not in repr(made)
    assert made._repr_mimebundle_()[0]["text/plain"] == repr(made)
    if widget is not HeadsViewer:  # whose weights are too many to be written
        assert repr(eval(repr(made), vars(attnlib.widgets).copy())) == repr(made)
    markup = drawn(made)
    soup = parsed(markup)
    assert soup.find(["img", "script"]) is None  # a hostile text is text
    told = GIBBERISH.findall(json.dumps(made.state))  # the atlas says where torch gives NaN
    assert set(GIBBERISH.findall(markup)) <= set(told)
    assert soup.fieldset.has_attr("disabled")
    # What waits out of sight is out of hearing too.
    assert not soup.select(".ghost:not([data-part], [aria-hidden=true], :has(input, select))")
    for control in soup.find_all(["input", "select", "button"]):
        assert control.find_parent("fieldset")
        if control.name != "button" and not control.get("aria-label"):
            label = control.find_parent("label")
            assert label.get_text(strip=True)
            # A label names the first of these that it holds; a second one stays nameless.
            assert len(label.find_all(["input", "select", "button", "output"])) == 1
    # A page checks all settings of a link together, those that the link leaves alone included.
    refused = """shared && Object.keys(widget.shared).filter((trait) =>
      widget.shared[trait] && !widget.shared[trait](state[trait], state))"""
    assert not js(made, refused)
    # That of Encoder loads its model each time: test_encoder_views.py.
    if js(made, "code !== undefined") and widget is not Encoder:
        run(js(made, "code(state)"))


@each_widget
def test_it_is_drawn_the_same_again_and_an_unknown_argument_is_named(widget):
    made = simplest(widget)
    assert drawn(made) == drawn(made)
    with pytest.raises(TypeError, match="color"):
        CourseWidget.__init__(made, color="red")


@each_widget
def test_module_of_a_notebook_stands_alone_and_names_no_hue(widget):
    assert not re.search(r"^(?:import|export function softmax)", widget._esm, re.MULTILINE)
    assert widget._esm.rstrip().splitlines()[-1].startswith("export default kit.widget(")
    for file in modules.imported(widget.__name__):
        assert widget._esm.count(f"const {file} = (() => {{") == 1
    # A reader who sees no colors can follow.
    assert not re.search(r"(?i)\b(?:blue|green|orange|purple|red|violet)\b", widget._esm)


@each_widget
def test_a_page_gets_what_several_widgets_import_once_and_all_is_small(widget):
    name = widget.__name__
    for view in widget.view_modules or [""]:
        other = [file for each, file in widget.view_modules.items() if each != view]
        kept = shared_modules() & set(modules.imported(name, other))
        texts = scripts([(name, view)])
        assert texts.keys() == kept | {modules.stem(name)} and "kit" in kept
        own = texts[modules.stem(name)]
        for file in modules.imported(name):
            stays = file in shared_modules()
            assert own.count(f'import * as {file} from "./{file}.js";') == stays
            assert own.count(f"const {file}=(()=>{{") == (not stays)
    # What a whole page may weigh, with what is the same in all, tests/site/test_visits.py says.
    texts[modules.stem(name)] = own.replace(json.dumps(base.constant_traits(widget)), "")
    assert all(len(gzip.compress(text.encode(), 6)) < 31_000 for text in texts.values())


@each_widget
def test_what_is_the_same_in_all_is_said_once(widget):
    made = simplest(widget)
    same, state = base.constant_traits(widget), made.state
    for text in mount_point(widget.__name__, state), made._repr_mimebundle_()[0]["text/html"]:
        own = json.loads(unescape(re.search(r'data-state="([^"]*)"', text)[1]))
        assert own | same == state and not own.keys() & same.keys()
