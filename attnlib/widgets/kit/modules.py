"""Reads the JavaScript and CSS of the widgets, and joins modules where no file can be imported.

A file is known by one name everywhere outside its folder: `plane/plane.js` is "plane",
`plane/drawing.js` is "plane_drawing", and `drawing/microscope.js` is "microscope". The files that
every widget needs are one module, "kit".

Imports and exports have one form each, so that no parser of JavaScript is needed to find them:
`import { a, b } from "./file.js";`, and `export` before a function or a constant. Any other form is
an error, and so is the import of a name that its module does not export.
"""

import functools
import json
import os
import re
from pathlib import Path

_WIDGETS = Path(__file__).parent.parent
# Most pages with widgets load these files, so they are joined: one request instead of many.
_KIT = {
    *("base64", "geometry", "heads_grid", "heatmap", "keyboard_grid"),
    *("markup", "mount", "numbers", "progress"),
}
_IMPORT = re.compile(
    r'^import \{(\s*\w+(?:,\s*\w+)*,?\s*)\} from "(\.[\w./]*/\w+)\.js";\n', re.MULTILINE
)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) (\w+))", re.MULTILINE)
_UNREAD = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


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
    main = stem(widget)
    before = (
        f'import * as {name} from "./{name}.js";\n' if name in shared else _enclosed(name)
        for name in imported(widget)
    )
    exports = ", ".join(_exports(main))
    traits = json.dumps(bounds, separators=(",", ":"))
    return (
        f"{''.join(before)}{_linked(main)}\n"
        f"export default kit.widget({json.dumps(widget)}, {{ {exports} }}, {traits});\n"
    )


def joined(name):
    """Return the JavaScript that makes a module and those that it imports constants of a script."""
    return "".join(_enclosed(each) for each in dict.fromkeys([*_imported(name, ()), name]))


def source(name):
    """Return a module with one import at its top for each module that it needs."""
    return _with_imports(name, 'import {{ {} }} from "./{}.js";\n')


@functools.cache
def style(name):
    """Return a style: that of a widget, of one of its views, or "kit"."""
    return "".join(path.read_text(encoding="utf-8") for path in _files(name, "css"))


def has_style(name):
    """Tell whether there is a style of this name."""
    return name in _paths("css")


@functools.cache
def _read(name):
    """Return what a module imports, {module: names}, and its text without the imports.

    Raises
    ------
    ValueError
        If there is no such file, an import or an export has another form than above, or a name is
        not exported.
    """
    imports, text = {}, ""
    for path in _files(name, "js"):
        content = path.read_text(encoding="utf-8")
        for names, address in _IMPORT.findall(content):
            other = _name(Path(os.path.normpath(path.parent / address)))
            if other not in _paths("js"):
                raise ValueError(f"the module {name} imports {address}.js, which is not there")
            imports.setdefault(other, []).extend(re.findall(r"\w+", names))
        text += _IMPORT.sub("", content)
    if unread := _UNREAD.search(_EXPORT.sub("", text)):
        needed = 'import { a, b } from "./file.js"; or export before a function or a constant'
        raise ValueError(f"the module {name} needs {needed}; got {unread[0]}")
    for other, names in imports.items():
        exports = _EXPORT.findall(text) if other == name else _exports(other)
        if missing := ", ".join(sorted(set(names) - set(exports))):
            raise ValueError(f"the module {name} imports {missing}, which {other} does not export")
    imports.pop(name, None)  # the files of the kit import each other
    return imports, text


def _files(name, suffix):
    """Return the files of a module or a style."""
    if name not in _paths(suffix):
        raise ValueError(f"the widget needs attnlib/widgets/{name}/{name}.{suffix}: write it")
    return _paths(suffix)[name]


@functools.cache
def _paths(suffix):
    """Return the files of each module or style, by its name."""
    found = {}
    for path in sorted(_WIDGETS.glob(f"*/*.{suffix}")):
        found.setdefault(_name(path), []).append(path)
    return found


def _name(path):
    folder, file = path.parent.name, path.stem
    if folder in ("kit", "drawing"):
        return "kit" if file in _KIT else file
    return file if file == folder else f"{folder}_{file}"


def _imported(name, without):
    for other in _read(name)[0]:
        if other not in without:
            yield from _imported(other, without)
            yield other


def _enclosed(name):
    """Return a module as a function that gives what the module exports."""
    inner, exports = _EXPORT.sub("", _linked(name)), ", ".join(_exports(name))
    return f"const {name} = (() => {{\n{inner}\nreturn {{ {exports} }};\n}})();\n"


def _linked(name):
    """Return a module that takes its imports from the modules that come before it."""
    return _with_imports(name, "const {{ {} }} = {};\n")


def _with_imports(name, line):
    imports, text = _read(name)
    return "".join(line.format(", ".join(names), m) for m, names in imports.items()) + text


def _exports(name):
    return _EXPORT.findall(_read(name)[1])
