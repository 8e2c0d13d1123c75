"""Plant faults and see what a reader would: `python -m tools.faults`.

Works in a copy of the checkout, in a folder with a space and letters of two alphabets, so that
each build below is one from an odd path too. Writes `benchmarks/faults.md`: what was planted, the
last line that the command said, and whether the next build is whole. Needs Linux: a disk that is
full or read-only is a mount that only the one command sees.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tools.install import ROOT, say

CHAPTER = "chapters/03-chai-piyo-by-hand.ipynb"
BUILD = [sys.executable, "-m", "tools.build"]
FULL = "mount -t tmpfs -o size=1m tmpfs _build/html"
READ_ONLY = "mount --bind _build _build && mount -o remount,ro,bind _build"
RESULTS = ROOT / "benchmarks" / "faults.md"
HEAD = """\
# Faults, planted

Written by `make faults`. What else may be missing (a browser, a virtual environment, the network,
the model, a widget's module, the browser's storage) is planted by the tests.

| planted | what was said last | as it should | the next build |
|---|---|---|---|"""
READS_FILES = [  # recordings, stored weights, measured times, a table
    "chapters/06-many-heads.ipynb",
    "chapters/13-looking-back.ipynb",
    "chapters/14-what-it-costs.ipynb",
    "parity-atlas.ipynb",
]


def start(command, root):
    """Start a command in the copy, in a group of its own; its output goes to one pipe."""
    return subprocess.Popen(
        command,
        cwd=root,
        env={
            **os.environ,
            "PYTHONPATH": str(root),
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",  # read each line when it is printed, not at the end
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def outcome(process):
    """Wait for a command; return its exit code, its main line, and whether it had a traceback."""
    lines = process.communicate()[0].strip().splitlines()
    telling = [line for line in lines if line.startswith(("Stopped: ", "The code of "))]
    fell = "Traceback (most recent call last)" in "\n".join(lines)
    return process.returncode, (telling or lines)[-1], fell


def change_a_page(root, text):
    """Give the build something to write."""
    with (root / "notation.md").open("a", encoding="utf-8") as page:
        page.write(f"\nOne line more: {text}.\n")


def killed(root, at):
    """Start a build of all pages and kill it, with all it has started, when it says `at`."""
    (root / "_build" / "built").unlink()
    build = start(BUILD, root)
    for line in build.stdout:
        if at in line:
            os.killpg(build.pid, signal.SIGKILL)
    return f"killed at: {at}", build.wait() == -signal.SIGKILL


def killed_while_reading(root):
    """Some pages are read, others not."""
    return killed(root, "reading sources... [ 2")


def killed_while_writing(root):
    """Some pages are written, others not."""
    return killed(root, "writing output... [ 2")


def one_clear_line(process):
    """Return the last line, and whether a command failed with a line and without a traceback."""
    code, line, fell = outcome(process)
    return line, code != 0 and not fell


def in_a_mount(root, mount):
    """Build where one folder is mounted otherwise, for this build alone."""
    script = f'{mount}; "$0" -m tools.build'
    return one_clear_line(start(["unshare", "-m", "sh", "-c", script, BUILD[0]], root))


def full(root):
    """The folder of the site has room for 1 MB."""
    change_a_page(root, "full")
    return in_a_mount(root, FULL)


def read_only(root):
    """Nothing in _build can be written."""
    change_a_page(root, "read-only")
    return in_a_mount(root, READ_ONLY)


def damaged(root):
    """What Sphinx keeps is cut off, a page of the site and the picture of a figure are lost."""
    kept = [
        *root.glob("_build/.doctrees/**/*.pickle"),
        *root.glob("_build/.doctrees/**/0*.doctree"),
    ]
    for path in kept:
        os.truncate(path, 1000)
    lost = [root / "_build/html/notation.html", next(root.glob("_build/jupyter_execute/**/*.svg"))]
    for path in lost:
        path.unlink()
    code, line, fell = outcome(start(BUILD, root))
    return line, code == 0 and not fell and all(path.exists() for path in lost)


def pages(root):
    """Return what the site is, as {file: bytes}, without the marks for the browser's cache."""
    files = (path for path in (root / "_build/html").rglob("*") if path.is_file())
    return {path: re.sub(rb"\?v=\w+", b"", path.read_bytes()) for path in files}


def retitled(root):
    """A chapter gets another title, and a page a formula and a widget."""
    notebook = nbformat.read(root / CHAPTER, as_version=4)
    notebook.cells[0].source = re.sub(
        r"(?m)^(# .*)$", r"\1, anew", notebook.cells[0].source, count=1
    )
    nbformat.write(notebook, root / CHAPTER)
    change_a_page(root, "$\\aleph$\n\n:::{widget} ScalingExplorer\n:::\n")
    code, _, fell = outcome(start(BUILD, root))
    went_on = pages(root)
    (root / "_build" / "built").unlink()
    outcome(start(BUILD, root))
    anew = pages(root)
    differ = [path for path in went_on | anew if went_on.get(path) != anew.get(path)]
    line = f"{len(differ)} of {len(anew)} files differ from those of a build from nothing"
    return line, code == 0 and not (fell or differ)


def stale(root):
    """The code of a chapter is newer than its outputs."""
    notebook = nbformat.read(root / CHAPTER, as_version=4)
    next(cell for cell in notebook.cells if cell.cell_type == "code").source += "\n# newer"
    nbformat.write(notebook, root / CHAPTER)
    code, line, fell = outcome(start(BUILD, root))
    return line, code == 0 and not fell and CHAPTER in line


def two_at_once(root):
    """Two builds start together."""
    change_a_page(root, "two")
    answers = [outcome(build) for build in [start(BUILD, root), start(BUILD, root)]]
    return answers[1][1], all(code == 0 and not fell for code, _, fell in answers)


def without_packages(root):
    """A Python without the packages."""
    change_a_page(root, "bare")
    command = [sys.executable, "-S", "-m", "tools.build"]
    return one_clear_line(start(command, root))


def elsewhere(root):
    """The notebooks that read files run from another working directory."""
    with tempfile.TemporaryDirectory() as other:
        for name in READS_FILES:
            notebook = nbformat.read(root / name, as_version=4)
            NotebookClient(notebook, resources={"metadata": {"path": other}}).execute()
        left = os.listdir(other)
    return f"ran, and left {left or 'nothing'} there", not left


FAULTS = [
    killed_while_reading,
    killed_while_writing,
    two_at_once,
    full,
    read_only,
    without_packages,
    elsewhere,
    damaged,
    retitled,
    stale,
]


def again(root):
    """Tell whether the next build ends well, and the one after it has nothing to do."""
    code, _, fell = outcome(start(BUILD, root))
    build = start(BUILD, root)
    nothing = "Nothing has changed" in build.communicate()[0]
    return code == 0 and not fell and nothing


def copy_of_checkout(folder):
    """Copy what git knows, and what was built, into an odd folder."""
    root = Path(folder, "ein Ort für 注意")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, names.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    shutil.copytree(ROOT / "_build", root / "_build")
    return root


def main():
    """Plant each fault, print and store what happened, and tell if something was left broken."""
    rows, broken = [HEAD], False
    with tempfile.TemporaryDirectory() as folder:
        root = copy_of_checkout(folder)
        if not again(root):
            return "The copy does not build without a fault: run `make book` first."
        for fault in FAULTS:
            line, good = fault(root)
            whole = again(root)
            broken |= not (good and whole)
            for place in (root.as_uri(), str(root), str(ROOT)):
                line = line.replace(place, "checkout")
            line = re.sub(rf"{tempfile.gettempdir()}/tmp\w+", "temporary", line)
            verdicts = [("yes" if good else "NO"), ("whole" if whole else "BROKEN")]
            rows.append(f"| {fault.__doc__} | {line} | {' | '.join(verdicts)} |")
            say(rows[-1])
    RESULTS.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
