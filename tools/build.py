"""Build the site into _build/html if anything has changed: `python -m tools.build`.

What an earlier build left and cannot vouch for is the business of `_ext/freshness.py`. Here two
builds at once take turns, and a build that has nothing to do ends at once.
"""

import hashlib
import json
import re
import subprocess
import sys
from importlib import metadata

from tools.install import REQUIREMENTS, ROOT, alone, say

SITE = ROOT / "_build" / "html"
LITE = SITE / "lite"  # made by tools/lite.py, which the pages then link to
STAMP = ROOT / "_build" / "built-from"

# All that a page is made from. Contents decide, not timestamps: a checkout changes those.
SOURCES = ["*.md", "*.bib", "*.yml", "requirements.txt", "pyproject.toml"]
SOURCES += ["LICENSE", "THIRD-PARTY.txt"]
SOURCES += ["chapters", "attnlib", "_ext", "benchmarks"]
# They come and go as the notebooks and the tests are used.
IGNORED = {"__pycache__", ".ipynb_checkpoints"}

# Called by its own command, jupyter-book writes colour codes even into a file. Where Sphinx has
# said what stopped it, such as a full disk, jupyter-book adds two pages of its own calls to it.
JUPYTER_BOOK = """
from jupyter_book.cli.main import main
from sphinx.util.console import color_terminal, nocolor
color_terminal() or nocolor()
try:
    main()
except KeyboardInterrupt:
    raise SystemExit(1) from None
except RuntimeError as error:
    cause = error.__cause__ or error
    raise SystemExit(f"Stopped: {getattr(cause, 'orig_exc', None) or cause}") from None
"""


def missing():
    """Return the packages of requirements.txt that are not installed, but for those of a platform.

    Without this check the first cell that imports one would fail, and only when it next runs.
    """
    pins = re.findall(r"^([\w.-]+)==[^;#\n]*(?:#|$)", REQUIREMENTS.read_text("utf-8").lower(), re.M)
    installed = {re.sub(r"[-_.]+", "-", each.name).lower() for each in metadata.distributions()}
    return [name for name in pins if name not in installed]


def notebooks():
    """Return the notebooks of the book: the chapters, and the pages that run cells."""
    return sorted(path for place in ("chapters", ".") for path in (ROOT / place).glob("*.ipynb"))


def code_digest(notebook):
    """Return a digest of a notebook's code, which `make refresh` stores beside the outputs."""
    cells = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    # The file has lines where nbformat has one string.
    code = ["".join(source) for source in cells]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()[:16]


def stale():
    """Return the names of the notebooks whose code is newer than their outputs, or has none."""
    names = []
    for path in notebooks():
        notebook = json.loads(path.read_text(encoding="utf-8"))
        shown = any(cell.get("outputs") for cell in notebook["cells"])
        if not shown or notebook["metadata"].get("code_digest") != code_digest(notebook):
            names.append(path.relative_to(ROOT).as_posix())
    return names


def fingerprint():
    """Return a digest of the sources, of whether the model is there, and JupyterLite."""
    from attnlib import pretrained  # needs packages that `missing` looks for first

    digest = hashlib.sha256(f"{pretrained.is_here()} {LITE.exists()}".encode())
    found = sorted(path for pattern in SOURCES for path in ROOT.glob(pattern))
    for top in found:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            name = path.relative_to(ROOT)
            if path.is_file() and not IGNORED.intersection(name.parts):
                digest.update(f"{name}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def build():
    """Build what has changed and return the exit code of jupyter-book."""
    now = fingerprint()
    if STAMP.exists() and STAMP.read_bytes() == now.encode() and (SITE / "index.html").exists():
        say("Nothing has changed since the last build.")
        return 0
    STAMP.unlink(missing_ok=True)
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", "-W", "-n", "--keep-going", "."]
    done = subprocess.run(command, cwd=ROOT, close_fds=False)
    if done.returncode == 0:
        STAMP.write_bytes(now.encode())
    return done.returncode


def main():
    """Build, one build at a time, and say where to open the site; return what to exit with."""
    if lacking := missing():
        more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
        return (
            f"The build needs {', '.join(lacking[:3])}{more}, which Python does not find. "
            f"Run: {sys.executable} -m pip install -r requirements.txt"
        )
    try:
        with alone(__file__):
            code = build()
    except OSError as error:
        return f"The build stopped: {error}."
    except KeyboardInterrupt:
        return "\nThe build was stopped; run the same command again."
    if code:
        return "The build failed: see the messages above."
    say(f"Open {(SITE / 'index.html').as_uri()} or run `make serve`.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
