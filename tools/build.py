"""Build the site into _build/html if anything has changed: `python -m tools.build`.

The pages show the outputs that the notebooks hold: nothing is run here. A build that ends well
leaves one mark, of what it was made from and of what it made. By that the next one knows what it
may keep: all, when nothing has changed; the other pages, when only pages have; else nothing. Two
builds at once take turns.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib import metadata

from _ext import notebook
from tools import pyodide
from tools.install import BOOK_HASHES, ROOT, lock, say

BUILD = ROOT / "_build"
SITE = BUILD / "html"
BOOK = BUILD / "book.html"  # what `tools.pdf` prints
MARK = BUILD / "built"

# Sphinx sees by itself which pages have changed, and what they include. All else goes into every
# page: after a change of the contents a page has new neighbors.
PAGES = ["*.md", "*.ipynb", "*.bib", "chapters", "benchmarks", "LICENSE", "THIRD-PARTY.txt"]
MAKERS = ["_ext", "attnlib", "*.yml", "pyproject.toml", "requirements-book.lock"]
MAKERS += ["_build/pyodide/manifest.json", "_build/encoder/plan.json", "benchmarks/encoder.json"]
# What `prepare` makes ready, where it can be had.
OPTIONAL_PARTS = {"pyodide": "Python for the exercises", "encoder": "the encoder"}
# What Sphinx reads again the next time.
MADE = ["html", BOOK.name, ".doctrees", "jupyter_execute"]
# They come and go as the notebooks and the tests are used.
IGNORED = {"__pycache__", ".ipynb_checkpoints"}


def missing():
    """Return the packages of the book that are not installed, but for those of a platform."""
    pins = re.findall(r"^([\w.-]+)==\S+ \\$", BOOK_HASHES.read_text("utf-8"), re.M)
    installed = {re.sub(r"[-_.]+", "-", each.name).lower() for each in metadata.distributions()}
    return [name for name in pins if name not in installed]


def notebooks():
    """Return the notebooks of the book: the chapters, and the pages that run cells."""
    return sorted(path for place in ("chapters", ".") for path in (ROOT / place).glob("*.ipynb"))


def stale():
    """Return the names of the notebooks whose code is newer than their outputs, or has none."""
    old = (path for path in notebooks() if notebook.read(path).is_stale)
    return [path.relative_to(ROOT).as_posix() for path in old]


def files(root, patterns):
    """Yield (path, its name below `root`) of all files that the patterns lead to, in order."""
    for pattern in patterns:
        for top in sorted(root.glob(pattern)):
            for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
                name = path.relative_to(root)
                if path.is_file() and not IGNORED.intersection(name.parts):
                    yield path, name.as_posix()


def contents(patterns):
    """Return a digest of sources. Contents decide, not timestamps: a checkout changes those."""
    digest = hashlib.sha256()
    for path, name in files(ROOT, patterns):
        digest.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def digest_of_output():
    """Return a digest of what a build has left: a file that is lost or cut off changes it."""
    sizes = [(name, path.stat().st_size) for path, name in files(BUILD, MADE)]
    return hashlib.sha256(json.dumps(sizes).encode()).hexdigest()


def prepare():
    """Make ready what the pages load on a click."""
    pyodide.prepare()
    with suppress(ImportError):  # of a package that `missing` is about to name
        from tools import encoder

        encoder.prepare()


def build():
    """Build what has changed; return what stopped it, in a line, or nothing."""
    prepare()
    before = MARK.read_text(encoding="utf-8", errors="replace").split() if MARK.exists() else []
    now = [contents(PAGES), contents(MAKERS), digest_of_output()]
    if before == now:
        say("Nothing has changed since the last build.")
        return ""
    if lacking := missing():
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        return (
            f"The build needs {', '.join(lacking[:3])}{more}, which Python does not find. "
            f"Run: {sys.executable} -m pip install -r requirements.txt"
        )
    MARK.unlink(missing_ok=True)
    if before[1:] != now[1:] and (BUILD / ".doctrees").exists():
        shutil.rmtree(BUILD / ".doctrees")
    command = [sys.executable, "-m", "tools.jupyter_book", "build", "-W", "-n", "--keep-going", "."]
    if subprocess.run(command, cwd=ROOT, close_fds=False).returncode:
        return "The build failed: see the messages above."
    MARK.write_text("\n".join([*now[:2], digest_of_output()]), encoding="utf-8")
    return ""


def main(is_served=False):
    """Build, one build at a time, and say where to open the site; return what to exit with.

    If the site is about to be served, its server says where.
    """
    try:
        with lock(__file__):
            problem = build()
    except OSError as error:
        return f"The build stopped: {error}."
    except KeyboardInterrupt:
        return "\nThe build was stopped; run the same command again."
    if problem:
        return problem
    if lost := [what for name, what in OPTIONAL_PARTS.items() if not (BUILD / name).is_dir()]:
        said = f"The pages go without {' and '.join(lost)}: the first lines above say why."
        if os.environ.get("WHOLE"):
            return said
        say(said)
    if old := stale():
        say(f"The code of {', '.join(old)} is newer than the outputs: run `make refresh`.")
    if not is_served:
        say(f"To read: {(SITE / 'index.html').as_uri()}")
        say("To solve the exercises in the page, too: make serve")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--served", action="store_true", help="do not say how to open the site")
    sys.exit(main(parser.parse_args().served))
