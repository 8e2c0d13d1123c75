"""What every widget of the course shares on the Python side."""

import functools
import html
import json
import math
import re
from pathlib import Path
from typing import ClassVar

import anywidget
import numpy as np
import traitlets

from attnlib import palette

_HERE = Path(__file__).parent
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) (\w+))", re.MULTILINE)
# Comments and indents are for whoever reads the files; of a page's bytes they would be a quarter.
_COMMENT = re.compile(r"^[ \t]*(?:/\*.*?\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_ASIDE = re.compile(r"^[ \t]+|[ \t]+(?:// [^\n\"'`]*|/\*[^\n]*\*/)$", re.MULTILINE)

# The two tokens of chapter 3, and what makes their queries and values (straight) and keys (across).
CHAI_PIYO = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
STRAIGHT = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
ACROSS = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]

# What scores may be divided by, as a function of d_k.
DIVISORS = {"sqrt": math.sqrt, "none": lambda d_k: 1.0, "d_k": float}


def stem(name):
    """The name of the files of a widget: "mask_painter" for "MaskPainter"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def imported(name, without=()):
    """The files that the widget `name` imports, each after those that it imports itself.

    Those `without` are left out, and so is what only they import.
    """
    return list(dict.fromkeys(_imported(stem(name), without)))


def module(name, apart=()):
    """The JavaScript of the widget `name` as one module, what it imports put before it.

    A notebook imports a widget's module through a blob URL, from where no relative path leads
    to the core or to another file here. So each of them stands in front, once, in a function of
    its own that hides its names. A page without a kernel has some of them `apart`, as modules for
    all its widgets: those stay imports. What the widget's file exports, `core.widget` makes a
    widget of.
    """
    text = source(stem(name))
    before = (
        f'import * as {file} from "./{file}.js";\n' if file in apart else _enclosed(file)
        for file in imported(name)
    )
    exports = ", ".join(_exports(text))
    return (
        f"{''.join(before)}{_linked(text)}\n"
        f"export default core.widget({json.dumps(name)}, {{ {exports} }});\n"
    )


@functools.cache
def source(file):
    """The script of a widget, or one that it imports, bare."""
    return bare((_HERE / f"{file}.js").read_text(encoding="utf-8"))


def _imported(file, without):
    for _, other in _IMPORT.findall(source(file)):
        if other not in without:
            yield from _imported(other, without)
            yield other


def _enclosed(file):
    """A file as a function that gives what the file exports."""
    text = source(file)
    exports = ", ".join(_exports(text))
    inner = _EXPORT.sub("", _linked(text))
    return f"const {file} = (() => {{\n{inner}\nreturn {{ {exports} }};\n}})();\n"


def _linked(text):
    """A text with what it imports taken from the files that stand before it."""
    return _IMPORT.sub(lambda match: f"const {{{match[1]}}} = {match[2]};\n", text)


def _exports(text):
    return [match[1] for match in _EXPORT.finditer(text)]


def bounds(cls):
    """What a page may set a widget's traits to, where the trait itself says it: {name: bound}.

    A bound is a list of values, or a dict of numbers `least` and `most`, and whether only a `whole`
    one will do. The widget's module says what else it shares, as `shared` (core.js).
    """
    found = {}
    for name, trait in cls._state.items():
        if trait.read_only:
            continue
        if isinstance(trait, traitlets.Bool):
            found[name] = [False, True]
        elif isinstance(trait, traitlets.Enum):
            found[name] = list(trait.values)
        elif hasattr(trait, "least"):
            whole = isinstance(trait, traitlets.Int)
            found[name] = {"least": trait.least, "most": trait.most, "whole": whole}
    return found


@functools.cache
def constants(cls):
    """The traits that are the same in every widget of the class, as plain values."""
    return {name: getattr(cls(), name) for name in cls._constant}


@functools.cache
def style(file):
    """The style of a widget, or "core", the one that all share, bare."""
    return bare((_HERE / f"{file}.css").read_text(encoding="utf-8"))


def styled(cls, view=None):
    """The files of a widget's style: that of the widget, and those of one view or of each."""
    views = (file for each, file in cls.view_files.items() if view in (None, each))
    return [stem(cls.__name__), *(file for file in views if (_HERE / f"{file}.css").exists())]


def bare(text):
    """A script or a style without what is only for whoever reads it."""
    return _ASIDE.sub("", _COMMENT.sub("", text))


def word_vector(word, role, d):
    """`d` numbers for a word, mean 0 and variance 1, always the same for the same word and role.

    Made by the same integer arithmetic as in the browser, so the two agree to the last bit.
    """
    seed = 0x811C9DC5
    for unit in np.frombuffer(f"{role}:{word}".encode("utf-16-le", "surrogatepass"), "<u2"):
        seed = ((seed ^ int(unit)) * 0x01000193) % 2**32
    bits = np.arange(d, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(seed)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ (bits >> np.uint32(shift))) * np.uint32(factor)
    bits ^= bits >> np.uint32(16)
    return math.sqrt(12) * ((bits + 0.5) / 2**32 - 0.5)


def check_key(key):
    """Return `key`, the lasting name of something a reader answers, if it has the right form."""
    if not isinstance(key, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key):
        raise ValueError(f"key needs small letters, digits and single dashes; got {key!r}")
    return key


class Whole(traitlets.Int):
    """A trait that holds a whole number from `least` to `most`; others are a ValueError."""

    def __init__(self, least, most, default, **metadata):
        super().__init__(default, **metadata)
        self.least, self.most = least, most

    def validate(self, obj, value):
        """Return `value` if it lies within the bounds."""
        super().validate(obj, value)
        if isinstance(value, bool) or not self.least <= value <= self.most:
            bounds = f"from {self.least} to {self.most}"
            raise ValueError(f"{self.name} needs a whole number {bounds}; got {value}")
        return value


class Number(traitlets.Float):
    """A trait that holds a number from `least` to `most`; others are a ValueError."""

    def __init__(self, least, most, default, **metadata):
        super().__init__(default, **metadata)
        self.least, self.most = least, most

    def validate(self, obj, value):
        """Return `value` if it lies within the bounds."""
        value = super().validate(obj, value)
        if isinstance(value, bool) or not self.least <= value <= self.most:
            bounds = f"from {self.least} to {self.most}"
            raise ValueError(f"{self.name} needs a number {bounds}; got {value!r}")
        return value


class CourseWidget(anywidget.AnyWidget):
    """An anywidget that is drawn in JavaScript alone: while the book is built, and alive.

    A class `MaskPainter` finds its module in `mask_painter.js` and its style in
    `mask_painter.css`. Its state is its synced traits, in the order in which they are defined;
    those that are read-only are data that the module needs and nobody sets. Where its trait `view`
    chooses one of several pictures for good, `view_files` names the file that draws each of them.
    """

    view_files: ClassVar[dict] = {}

    def __init_subclass__(cls, **kwargs):
        # anywidget makes a class of the same name anew for each widget, with traits for the two.
        if "_esm" not in vars(cls):
            cls._esm = module(cls.__name__)
            cls._css = palette.css() + "".join(map(style, ["core", *styled(cls)]))
            traits = ((n, t) for n, t in vars(cls).items() if isinstance(t, traitlets.TraitType))
            cls._state = {name: trait for name, trait in traits if trait.metadata.get("sync")}
            cls._constant = [n for n, t in cls._state.items() if t.metadata.get("constant")]
            cls._shown = [name for name, trait in cls._state.items() if not trait.read_only]
        super().__init_subclass__(**kwargs)

    def __init__(self, **traits):
        unknown = ", ".join(sorted(set(traits) - set(self._shown)))
        if unknown:
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._shown)}; got {unknown}")
        super().__init__(**traits)

    @property
    def state(self):
        """The state, as plain values that go into a page."""
        return {name: getattr(self, name) for name in self._state}

    def __repr__(self):
        """Return the call that makes this widget: the same text in every run."""
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
        return f"{type(self).__name__}({shown})"

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        own = {name: value for name, value in self.state.items() if name not in self._constant}
        return {**data, "text/html": stored(type(self).__name__, own)}, metadata


def stored(name, state):
    """What a notebook keeps of a widget: the state from which the book draws it, and a hint."""
    text = html.escape(json.dumps(state, ensure_ascii=False))
    return (
        f'<p data-widget="{name}" data-state="{text}">'
        f"Here stands {name}. Run this cell to bring it to life.</p>"
    )
