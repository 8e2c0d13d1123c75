"""The part of `attnlib` that runs in a page, where only NumPy and the standard library are."""

import ast
import functools
import io
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from _ext import ROOT

RUNNER = Path(__file__).parent / "runner.py"
ENTRIES = ["attnlib", "attnlib.check", "attnlib.models.induction"]
# Python imports it before `induction`, but what it loads itself needs files that a page does not
# have: an empty file takes its place.
PACKAGE = "attnlib.models"
# What a cell reads, by a call that it contains. It is not in the archive: a page whose exercises do
# without it does not fetch it.
DATA = {
    "check.runs_the_writer(": "attnlib/data/writer.npz",
    "judge(": "attnlib/data/heads.npz",
}


def module_file(name):
    """The file of a module of the checkout, if there is one."""
    path = ROOT.joinpath(*name.split("."))
    return next((f for f in (path / "__init__.py", path.with_suffix(".py")) if f.is_file()), None)


def modules_named(node):
    """The modules of `attnlib` that an import names, each by its own name."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        inner = [f"{node.module}.{name}" for name in names]
        names = [name if module_file(name) else node.module or "" for name in inner]
    return [name for name in names if name.partition(".")[0] == "attnlib" and module_file(name)]


def data_for(source):
    """The files of the checkout that a cell reads."""
    return [path for call, path in DATA.items() if call in source]


@functools.cache
def modules():
    """The modules of `attnlib` in the page: the entries, and whatever they import."""
    found, ahead = {}, list(ENTRIES)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found[name] = module_file(name)
            for node in ast.parse(found[name].read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    ahead += modules_named(node)
    return found


def archive():
    """These modules and the runner as a zip, the same bytes each time."""
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in modules().values()}
    files[RUNNER.name] = RUNNER.read_bytes()
    files[module_file(PACKAGE).relative_to(ROOT).as_posix()] = b""
    sink = io.BytesIO()
    with ZipFile(sink, "w") as zipped:
        for name, content in sorted(files.items()):
            zipped.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return sink.getvalue()
