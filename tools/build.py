"""Build the site into _build/html if anything has changed: `python -m tools.build`.

What an earlier build left and cannot vouch for is the business of `_ext/page.py`. Here two
builds at once take turns, and a build that has nothing to do ends at once.
"""

import hashlib
import subprocess
import sys

from tools.install import ROOT, alone, say

SITE = ROOT / "_build" / "html"
STAMP = ROOT / "_build" / "built-from"

# All that a page is made from. Contents decide, not timestamps: a checkout changes those.
SOURCES = ["*.md", "*.bib", "*.yml", "requirements.txt", "pyproject.toml", "LICENSE"]
SOURCES += ["chapters", "attnlib", "_ext", "benchmarks"]
# They come and go as the notebooks and the tests are used.
IGNORED = {"__pycache__", ".ipynb_checkpoints"}

# Called by its own command, jupyter-book writes colour codes even into a file.
JUPYTER_BOOK = """
from jupyter_book.cli.main import main
from sphinx.util.console import color_terminal, nocolor
color_terminal() or nocolor()
try:
    main()
except KeyboardInterrupt:
    raise SystemExit(1) from None
"""


def fingerprint():
    """Return a digest of the names and contents of the sources."""
    digest = hashlib.sha256()
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
    try:
        with alone(__file__):
            code = build()
    except KeyboardInterrupt:
        return "\nThe build was stopped; run the same command again."
    if code:
        return "The build failed: see the messages above."
    say(f"Open {(SITE / 'index.html').as_uri()} or run `make serve`.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
