"""Add JupyterLite to the built site: `python -m tools.lite`.

With it the chapters without torch run in the reader's browser, with nothing installed and
nothing asked of other sites: Python for the browser (Pyodide), the packages that the chapters
import and JupyterLite's own pages all stand in _build/html/lite. If any of it cannot be had, one
line says what, and the site is as it was.

PYODIDE names the folder or the address that has the files of that release of Pyodide.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from tools import build
from tools.install import REQUIREMENTS, ROOT, alone, say

LITE = build.SITE / "lite"
VERSION = "314.0.6"  # what this kernel is made for
# In an environment of their own: the book needs none of them.
TOOLS = ["jupyterlite-core==0.8.6", "jupyterlite-pyodide-kernel==0.8.6"]
ADDRESS = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full"
LIST = "pyodide-lock.json"
CORE = [LIST, "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"]
# Compiled, hence in Pyodide's list only, with all that they and the kernel need.
COMPILED = ["numpy", "scipy", "matplotlib", "ipython", "jedi", "micropip"]
# In plain Python, hence from the package index, in the versions of requirements.txt.
PLAIN = ["anywidget", "comm", "ipywidgets", "jupyterlab-widgets", "psygnal", "typing-extensions"]
# What JupyterLite's pages need besides: to list the notebooks, and to show their admonitions.
PAGES = ["jupyter-server", "jupyterlab-myst"]
FIRST_CELL = "%pip install -q attention-by-hand anywidget"


class LiteError(Exception):
    """What could not be had, in one line."""


def fetch(name, source, folder, digest=None):
    """Copy one file of Pyodide into a folder, and refuse one whose SHA-256 is not the listed."""
    try:
        if source.startswith(("https://", "http://")):
            with urllib.request.urlopen(f"{source}/{name}", timeout=60) as answer:
                content = answer.read()
        else:
            content = Path(source, name).read_bytes()
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise LiteError(f"{name} could not be fetched from {source} ({reason})") from error
    if digest and hashlib.sha256(content).hexdigest() != digest:
        raise LiteError(f"{name} from {source} is not the file that {LIST} lists")
    (folder / name).write_bytes(content)


def needed(packages, names):
    """Return the entries of Pyodide's list for these packages and for what they depend on."""
    found, ahead = {}, list(names)
    while ahead:
        name = ahead.pop(0).replace("_", "-")
        if name not in found:
            if name not in packages:
                raise LiteError(f"{LIST} does not list {name}")
            found[name] = packages[name]
            ahead += packages[name]["depends"]
    return list(found.values())


def fetch_pyodide(source, folder):
    """Fill a folder with Pyodide and its builds of the packages that the chapters need."""
    for name in CORE:
        fetch(name, source, folder)
    packages = json.loads((folder / LIST).read_text(encoding="utf-8"))["packages"]
    for entry in needed(packages, COMPILED):
        fetch(entry["file_name"], source, folder, entry["sha256"])


def without_torch():
    """Yield the chapters that do not import torch, as (path, notebook)."""
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        if not re.search(r"^\s*(?:import|from) torch", code, re.MULTILINE):
            yield path, notebook


def write_notebooks(folder):
    """Write those chapters with a first cell that installs what no import does by itself."""
    for path, notebook in without_torch():
        notebook.cells.insert(0, new_code_cell(FIRST_CELL, id="install"))
        notebook.metadata["kernelspec"] = {"display_name": "Python (Pyodide)", "name": "python"}
        nbformat.write(notebook, folder / path.name)


def run(folder, *command):
    """Run a program in a folder, where it may leave things; show what it printed if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        say(done.stdout)
        raise LiteError(f"`{' '.join(command[:3])}` failed: see the messages above")


def pins(names):
    """Return the lines of requirements.txt that pin these packages."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.partition("==")[0] in names]


def make(pyodide_source):
    """Make all of it in a folder beside the site, then give that folder its name."""
    folder = build.SITE.parent / "lite-unfinished"
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    try:
        pyodide, wheels, notebooks = (folder / name for name in ("static/pyodide", "pypi", "files"))
        for each in (pyodide, wheels, notebooks):
            each.mkdir(parents=True)
        say(f"Fetching Pyodide {VERSION} ...")
        fetch_pyodide(pyodide_source, pyodide)
        say("Making JupyterLite ...")
        write_notebooks(notebooks)
        # In a copy, because setuptools leaves a folder of its own beside what it packs.
        source = shutil.copytree(ROOT / "attnlib", folder / "source" / "attnlib").parent
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, source)
        here = ["--no-build-isolation", "-w", str(wheels), str(source)]
        run(folder, "pip", "wheel", "-q", "--no-deps", *here)
        pure = ["--only-binary", ":all:", "--platform", "any", "--no-deps", "-d", str(wheels)]
        run(folder, "pip", "download", "-q", *pure, *pins(PLAIN))
        tools = [part for name in [*TOOLS, *pins([*PLAIN, *PAGES])] for part in ("--with", name)]
        made = folder / "made"
        command = ["jupyter-lite", "build", "--lite-dir", str(folder), "--output-dir", str(made)]
        command += ["--contents", str(notebooks), "--no-sourcemaps", "--no-unused-shared-packages"]
        run(folder, "uv", "tool", "run", "--from", TOOLS[0], *tools, *command)
        shutil.rmtree(LITE, ignore_errors=True)
        made.rename(LITE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    """Add JupyterLite to the site, say where it is, and return what to exit with."""
    source = os.environ.get("PYODIDE") or ADDRESS
    try:
        with alone(build.__file__):
            make(source.rstrip("/"))
            if problem := build.build():
                return problem
    except (LiteError, OSError) as error:
        return (
            f"JupyterLite was not added: {error}. The site is as it was. The WebAssembly builds "
            "of NumPy, SciPy and Matplotlib come with Pyodide's own release: name a folder or an "
            "address that has it, PYODIDE=... make lite."
        )
    except KeyboardInterrupt:
        return "\nStopped; the site is as it was."
    say(f"JupyterLite is in {LITE.relative_to(ROOT)}: `make serve` shows it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
