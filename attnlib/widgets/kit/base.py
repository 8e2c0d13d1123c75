"""The base class of the widgets, and the traits that know their bounds."""

import functools
import html
import itertools
import json
import re
from typing import ClassVar

import anywidget
import traitlets

from attnlib import palette
from attnlib.widgets.kit import modules, saving


def bounds(cls):
    """Return what each trait may be, as its module gets it: {name: bound, or None if unknown}.

    A bound is a list of values, or a dict of numbers `least` and `most`, and whether only a `whole`
    one will do. The widget's module says what else it shares, as `shared` (kit/mount.js).
    """
    return {name: _bound(trait) for name, trait in cls._state.items()}


def _bound(trait):
    if trait.read_only:
        return None
    if isinstance(trait, traitlets.Bool):
        return [False, True]
    if isinstance(trait, traitlets.Enum):
        return list(trait.values)
    if hasattr(trait, "least"):
        whole = isinstance(trait, traitlets.Int)
        return {"least": trait.least, "most": trait.most, "whole": whole}
    return None


@functools.cache
def constant_traits(cls):
    """The traits that are the same in every widget of the class, as plain values."""
    return {name: getattr(cls(), name) for name in cls._constant}


def styles(cls, view=None):
    """Return the names of a widget's styles: its own, and those of one view or of each."""
    views = (name for each, name in cls.view_modules.items() if view in (None, each))
    return [modules.stem(cls.__name__), *filter(modules.has_style, views)]


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
    chooses one of several pictures for good, `view_modules` names the file that draws each of them.
    """

    view_modules: ClassVar[dict] = {}

    def __init_subclass__(cls, **kwargs):
        # anywidget makes a class of the same name anew for each widget, with traits for the two.
        if "_esm" not in vars(cls):
            cls._css = palette.css() + "".join(map(modules.style, ["kit", *styles(cls)]))
            own = itertools.takewhile(lambda base: base is not CourseWidget, cls.__mro__)
            traits = [each for base in own for each in vars(base).items()]
            traits = [(n, t) for n, t in traits if isinstance(t, traitlets.TraitType)]
            cls._state = {name: trait for name, trait in traits if trait.metadata.get("sync")}
            cls._constant = [n for n, t in cls._state.items() if t.metadata.get("constant")]
            cls._shown = [name for name, trait in cls._state.items() if not trait.read_only]
            cls._esm = modules.module(cls.__name__, bounds(cls))
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

    def save(self, path, *, width=720, theme="light"):
        """Save what the widget shows as an SVG or a PNG, with its caption.

        A browser lays the picture out, as on the pages of the course, so that the file is the one
        that "Share" saves there: Chromium, Chrome or Edge has to be installed. In the SVG all texts
        stay texts.

        Parameters
        ----------
        path : str or pathlib.Path
            The file, whose name ends in .svg or .png. A PNG has two pixels for each one of `width`.
        width : int
            The room that the widget gets, in pixels, from 280 to 2000.
        theme : {"light", "dark"}
            The colors.

        Returns
        -------
        Path
            Where the file is.

        Raises
        ------
        ValueError
            For another ending, width or theme.
        RuntimeError
            If no browser is found, or it does not draw the picture.
        """
        return saving.save(self, path, width, theme)

    def __repr__(self):
        """Return the call that makes this widget: the same text in every run."""
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
        return f"{type(self).__name__}({shown})"

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        varying = {name: value for name, value in self.state.items() if name not in self._constant}
        return {**data, "text/html": stored(type(self).__name__, varying)}, metadata


def stored(name, state):
    """What a notebook keeps of a widget: the state from which the book draws it, and a hint."""
    text = html.escape(json.dumps(state, ensure_ascii=False))
    return (
        f'<p data-widget="{name}" data-state="{text}">'
        f"Here stands {name}. Run this cell to bring it to life.</p>"
    )
