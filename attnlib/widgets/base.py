"""What every widget of the course shares on the Python side."""

import json
import re
from html import escape
from pathlib import Path

import anywidget
import traitlets

from attnlib import palette

_HERE = Path(__file__).parent
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./core\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) (\w+))", re.MULTILINE)


def esm(name):
    """The JavaScript of widget `name` as one module, the shared core put in place of its import.

    A notebook imports a widget's module through a blob URL, from where no relative path leads
    to the core. So the core stands in front, in a function of its own that hides its names.
    """
    core = (_HERE / "core.js").read_text(encoding="utf-8")
    shared = ", ".join(match[1] for match in _EXPORT.finditer(core))
    inlined = f"const core = (() => {{\n{_EXPORT.sub('', core)}\nreturn {{ {shared} }};\n}})();\n"
    widget = (_HERE / f"{name}.js").read_text(encoding="utf-8")
    return inlined + _IMPORT.sub(lambda match: f"const {{{match[1]}}} = core;\n", widget, count=1)


def css():
    """The style of all widgets, the palette first."""
    return palette.css() + (_HERE / "widgets.css").read_text(encoding="utf-8")


def check_key(key):
    """Return `key`, the lasting name of something a reader answers, if it has the right form."""
    if not isinstance(key, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key):
        raise ValueError(f"key needs small letters, digits and single dashes; got {key!r}")
    return key


class CourseWidget(anywidget.AnyWidget):
    """An anywidget whose first picture is plain HTML, so that a page shows it without JavaScript.

    A subclass writes that picture once, in `_html()`: every control with its present value and
    a drawing of the present state. The page keeps it until the front end is ready; the front
    end takes the same markup, enables the controls and goes on from there.

    `_shown` names the traits of the representation, in order.
    """

    _markup = traitlets.Unicode().tag(sync=True)
    _css = css()
    _shown = ()

    def __init__(self, **traits):
        unknown = ", ".join(sorted(set(traits) - set(self._shown)))
        if unknown:
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._shown)}; got {unknown}")
        super().__init__(**traits)
        self._markup = self._picture()

    def _html(self):
        raise NotImplementedError

    def _picture(self):
        """The present state as HTML that stands still; its traits go with it, as JSON."""
        state = escape(json.dumps({name: getattr(self, name) for name in self._shown}))
        return (
            f'<div class="abh abh-{self._name}" data-state="{state}">'
            f'<fieldset disabled aria-label="{escape(self._label)}">{self._html()}'
            '<p class="message" role="status"></p></fieldset></div>'
        )

    def __repr__(self):
        """Return the call that makes this widget: the same text in every run."""
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
        return f"{type(self).__name__}({shown})"

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/html": self._picture()}, metadata
