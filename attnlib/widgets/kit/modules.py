"""Reads the JavaScript and CSS of the widgets, and joins modules where no file can be imported.

A file is known by one name everywhere outside its folder: `plane/plane.js` is "plane",
`plane/drawing.js` is "plane_drawing", and `kit/geometry.js` is "geometry". The files that every
widget needs are one module, "kit".
"""

import functools
import json
import os
import re
from pathlib import Path

_WIDGETS = Path(__file__).parent.parent
# All pages with widgets load these files, so they are joined: one request instead of six.
_KIT = {"heatmap", "keyboard_grid", "markup", "mount", "numbers", "progress"}
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[\w./]*/\w+)\.js";\n', re.MULTILINE)
_LINK = re.compile(r'^import \{(.*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) (\w+))", re.MULTILINE)
# Comments and indents are for whoever reads the files; of a page's bytes they would be a quarter.
_COMMENT = re.compile(r"^[ \t]*(?:/\*.*?\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_ASIDE = re.compile(r"^[ \t]+|[ \t]+(?:// [^\n\"'`]*|/\*[^\n]*\*/)$", re.MULTILINE)


def stem(widget):
    """Return the name of a widget's folder and main files: "mask_painter" for "MaskPainter"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", widget).lower()


def imported(widget, without=()):
    """Return the modules that a widget imports, each after those that it imports itself.

    Those in `without` are left out, and so are modules that only they import.
    """
    return list(dict.fromkeys(_imported(stem(widget), without)))


def module(widget, bounds, shared=()):
    """Return the JavaScript of a widget as one module, after the modules that it imports.

    A notebook imports a widget's module through a blob URL, from which no relative path leads to
    another file. Each imported module therefore comes first, once, as a function that hides its
    names. A page without a kernel loads the modules in `shared` once for all its widgets: those
    stay imports. `kit.widget` makes a widget from what the main file exports, and from the
    `bounds` of its traits (base.bounds).
    """
    text = source(stem(widget))
    before = (
        f'import * as {name} from "./{name}.js";\n' if name in shared else _enclosed(name)
        for name in imported(widget)
    )
    exports = ", ".join(_exports(text))
    traits = json.dumps(bounds, separators=(",", ":"))
    return (
        f"{''.join(before)}{_linked(text)}\n"
        f"export default kit.widget({json.dumps(widget)}, {{ {exports} }}, {traits});\n"
    )


@functools.cache
def source(name):
    """Return a module, minified, with one import at its top for each module that it needs."""
    imports, body = {}, ""
    for path in _paths("js")[name]:
        text = path.read_text(encoding="utf-8")
        for names, address in _IMPORT.findall(text):
            other = _name(Path(os.path.normpath(path.parent / address)))
            imports.setdefault(other, []).extend(re.findall(r"\w+", names))
        body += _IMPORT.sub("", text)
    imports.pop(name, None)  # the files of the kit import each other
    lines = (f'import {{{",".join(names)}}} from "./{n}.js";\n' for n, names in imports.items())
    return "".join(lines) + minify(body)


@functools.cache
def style(name):
    """Return a style, minified: that of a widget, of one of its views, or "kit"."""
    return minify("".join(p.read_text(encoding="utf-8") for p in _paths("css")[name]))


def has_style(name):
    """Tell whether there is a style of this name."""
    return name in _paths("css")


def minify(text):
    """Return a script or a style without comments and indentation."""
    return _ASIDE.sub("", _COMMENT.sub("", text))


@functools.cache
def _paths(suffix):
    """Return the files of each module or style, by its name."""
    found = {}
    for path in sorted(_WIDGETS.glob(f"*/*.{suffix}")):
        found.setdefault(_name(path), []).append(path)
    return found


def _name(path):
    folder, file = path.parent.name, path.stem
    if folder == "kit":
        return "kit" if file in _KIT else file
    return file if file == folder else f"{folder}_{file}"


def _imported(name, without):
    for _, other in _LINK.findall(source(name)):
        if other not in without:
            yield from _imported(other, without)
            yield other


def _enclosed(name):
    """Return a module as a function that gives what the module exports."""
    text = source(name)
    exports = ", ".join(_exports(text))
    inner = _EXPORT.sub("", _linked(text))
    return f"const {name} = (() => {{\n{inner}\nreturn {{ {exports} }};\n}})();\n"


def _linked(text):
    """Return a module that takes its imports from the modules that come before it."""
    return _LINK.sub(lambda match: f"const {{{match[1]}}} = {match[2]};\n", text)


def _exports(text):
    return [match[1] for match in _EXPORT.finditer(text)]
