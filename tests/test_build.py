"""tools/build.py: when jupyter-book is called, what it may keep, when the site counts as built."""

import os
import subprocess
import sys

import pytest

from tools import build

PYTHON = "_build/pyodide/manifest.json"


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Return a small checkout with a jupyter-book that writes one page."""
    for name in [
        "attnlib/masks.py",
        "chapters/01.md",
        "_ext/look.py",
        "_toc.yml",
        "index.md",
        PYTHON,
    ]:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("one", encoding="utf-8")
    for name in ["BUILD", "SITE", "MARK", "ROOT"]:
        moved = tmp_path / getattr(build, name).relative_to(build.ROOT)
        monkeypatch.setattr(build, name, moved)
    book = Book(tmp_path)
    monkeypatch.setattr(build.subprocess, "run", book.jupyter_book)
    monkeypatch.setattr(build.pyodide, "prepare", lambda: None)
    return book


class Book:
    """The checkout; `code` is what its jupyter-book returns."""

    def __init__(self, root):
        self.root, self.code, self.calls = root, 0, []

    def jupyter_book(self, command, **options):
        """Do as jupyter-book does, and note whether there was something to go on from."""
        environment = build.BUILD / ".doctrees" / "environment.pickle"
        self.calls.append("the rest" if environment.exists() else "all")
        for path in (environment, build.SITE / "index.html"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return subprocess.CompletedProcess(command, self.code)

    def builds(self):
        """Return what a build reads: nothing, all, or the rest."""
        before = len(self.calls)
        assert bool(build.build()) == bool(self.code)
        return self.calls[before] if self.calls[before:] else "nothing"

    def write(self, name, text):
        """Change a file of the checkout."""
        (self.root / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("attnlib/masks.py", "all"),
        ("_ext/look.py", "all"),
        ("_toc.yml", "all"),
        (PYTHON, "all"),
        ("chapters/02 neu.ipynb", "the rest"),
        ("index.md", "the rest"),
    ],
)
def test_only_a_change_is_built(book, name, read):
    assert book.builds() == "all"
    assert book.builds() == "nothing"
    (book.root / "chapters/01.md").touch()
    (book.root / "attnlib/__pycache__").mkdir()
    (book.root / "attnlib/__pycache__/masks.pyc").touch()
    assert book.builds() == "nothing"
    book.write(name, "two")
    assert book.builds() == read
    assert book.builds() == "nothing"
    (book.root / "chapters/01.md").unlink()
    assert book.builds() == "the rest"


@pytest.mark.parametrize("name", ["html/index.html", ".doctrees/environment.pickle", "built"])
def test_what_is_lost_or_cut_off_is_built_again(book, name):
    book.builds()
    (build.BUILD / name).write_text("cut", encoding="utf-8")
    assert book.builds() == "all"
    (build.BUILD / name).unlink()
    assert book.builds() == "all"
    assert book.builds() == "nothing"


def test_a_build_that_does_not_end_well_does_not_count(book):
    book.builds()
    book.write("chapters/01.md", "two")
    book.code = 1
    assert book.builds() == "the rest"
    # Back to what the last good build was made from: its pages are gone all the same.
    book.write("chapters/01.md", "one")
    book.code = 0
    assert book.builds() == "all"


def test_packages_that_are_missing_are_named(book, monkeypatch, tmp_path):
    assert build.missing() == []
    pins = "numpy==2.4.6 \\\nno-numpy==2 \\\nonly-there==1 ; sys_platform == 'none' \\\n"
    monkeypatch.setattr(build, "BOOK_HASHES", tmp_path / "requirements-book.lock")
    build.BOOK_HASHES.write_text(pins, encoding="utf-8")
    assert build.missing() == ["no-numpy"]
    message = build.build()
    assert message.startswith("The build needs no-numpy, which Python does not find. Run: ")
    assert message.endswith(" -m pip install -r requirements.txt")
    assert book.calls == []


def test_a_stale_notebook_is_named_in_one_line_and_stops_nothing(book, monkeypatch, capsys):
    monkeypatch.setattr(build, "stale", lambda: ["chapters/01.ipynb", "errata.ipynb"])
    for _ in range(2):
        assert build.main() == 0
        assert capsys.readouterr().out.splitlines()[-3] == (
            "The code of chapters/01.ipynb, errata.ipynb is newer than the outputs: "
            "run `make refresh`."
        )


def test_at_the_end_stands_what_is_missing_and_how_to_open_the_site(book, monkeypatch, capsys):
    assert build.main() == 0
    assert "The pages go without the encoder: " in capsys.readouterr().out.splitlines()[-3]
    with monkeypatch.context() as patched:
        patched.setenv("WHOLE", "1")
        assert build.main().startswith("The pages go without the encoder: ")
    (build.BUILD / "encoder").mkdir()
    assert build.main() == 0
    *_, first, last = capsys.readouterr().out.splitlines()
    assert first.endswith("/html/index.html") and last.endswith("make serve")
    assert build.main(is_served=True) == 0
    assert capsys.readouterr().out == "Nothing has changed since the last build.\n"


def test_what_stopped_the_build_is_one_line(book, tmp_path, monkeypatch):
    def refuse():
        raise OSError("[Errno 30] Read-only")

    monkeypatch.setattr(build, "build", refuse)
    assert build.main() == "The build stopped: [Errno 30] Read-only."
    monkeypatch.undo()
    cli = tmp_path / "jupyter_book" / "cli"
    cli.mkdir(parents=True)
    for folder in (cli.parent, cli):
        (folder / "__init__.py").touch()
    (cli / "main.py").write_text(
        "def main():\n    raise RuntimeError('box\\nof lines') from OSError(28, 'No space left')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tools.jupyter_book"],
        cwd=build.ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "Stopped: [Errno 28] No space left\n")


@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--fast", 2)])
def test_an_option_builds_nothing(option, code):
    command = [sys.executable, "-m", "tools.build", option]
    done = subprocess.run(command, cwd=build.ROOT, capture_output=True, text=True)
    assert done.returncode == code and "usage: " in done.stdout + done.stderr
