"""What pages load as it is comes from the rooms into `_static`, without what no reader needs.

Each room keeps such files in its folder `static`. Of ours the comments and indents go: a third of
their bytes. Of Furo's and Sphinx's styles the rules for what no page has: a sixth.
"""

import re
from pathlib import Path

from _ext import ROOT
from attnlib.widgets.kit import modules

STATIC = sorted(Path(__file__).parent.glob("*/static"))
OURS = ["math.css", "pygments.css"]
OURS += [file.name for folder in STATIC for file in folder.glob("*.[cj]s*")]
THEIRS = ["basic.css", "pygments.css", "styles/furo.css"]
# The encoder's pieces and Python's own scripts, 50 MB of data, name nothing.
NAMING = ["**/*.html", "_static/*.js", "_static/scripts/*.js", "_static/widgets/*.js"]
NAME = re.compile(r"[\w-]+")
# A rule with its braces, those of a rule for some screens included, or a line without any.
RULE = re.compile(r"([^{};]+)\{((?:[^{}]|\{[^{}]*\})*)\}|[^{};]+;")
COMMA = re.compile(r",(?![^(\[]*[)\]])")  # between selectors


def collect(app, config):
    """Before Sphinx looks for them: where such files are."""
    config.html_static_path += [folder.relative_to(ROOT).as_posix() for folder in STATIC]


def lay_bare(app, exception):
    """After Sphinx has copied them: the same files without it."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    for file in (static / name for name in OURS):
        file.write_text(modules.minify(file.read_text(encoding="utf-8")), encoding="utf-8")
    names = names_in(app.outdir)
    for file in (static / name for name in THEIRS):
        style = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        file.write_text(needed(style, names), encoding="utf-8")


def names_in(folder):
    """Every word of the pages and of the scripts: one of them may be a class or an id."""
    files = (file for pattern in NAMING for file in Path(folder).glob(pattern))
    return set().union(*(NAME.findall(f.read_text(encoding="utf-8")) for f in files))


def needed(style, names):
    """The rules of a style that can apply to something with these names."""
    return "".join(rule for match in RULE.finditer(style) if (rule := of_use(match, names)))


def of_use(match, names):
    """A rule without the selectors that name what is not there; without any, nothing."""
    head, body = match[1], match[2]
    if head is None:
        return match[0]
    if head.lstrip().startswith(("@media", "@supports")):
        body = needed(body, names)
        return body and f"{head}{{{body}}}"
    if head.lstrip().startswith("@"):
        return match[0]
    kept = [selector for selector in COMMA.split(head) if set(classes(selector)) <= names]
    return kept and f"{','.join(kept)}{{{body}}}"


def classes(selector):
    """The classes and ids that a selector asks for."""
    return re.findall(r"[.#]([\w-]+)", re.sub(r":not\([^)]*\)", "", selector))


def setup(app):
    """Register with Sphinx."""
    app.connect("config-inited", collect)
    app.connect("build-finished", lay_bare)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
