"""tools/build.py: when jupyter-book is called, and when the site counts as built."""

import subprocess
import sys

import pytest

from attnlib import pretrained
from tools import build


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Return a small checkout with a jupyter-book that writes one page."""
    for name in ["attnlib/masks.py", "chapters/01.ipynb", "_ext/look.py", "_toc.yml"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one", encoding="utf-8")
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "SITE", tmp_path / "_build" / "html")
    monkeypatch.setattr(build, "STAMP", tmp_path / "_build" / "built-from")
    book = Book(tmp_path)
    monkeypatch.setattr(build.subprocess, "run", book.jupyter_book)
    return book


class Book:
    """The checkout; `code` is what its jupyter-book returns."""

    def __init__(self, root):
        self.root, self.code, self.calls = root, 0, 0

    def jupyter_book(self, command, **options):
        """Do as jupyter-book does."""
        self.calls += 1
        build.SITE.mkdir(parents=True, exist_ok=True)
        (build.SITE / "index.html").touch()
        return subprocess.CompletedProcess(command, self.code)

    def builds(self):
        """Tell whether a build calls jupyter-book."""
        before = self.calls
        assert build.build() == self.code
        return self.calls > before


@pytest.mark.parametrize(
    "name", ["attnlib/masks.py", "chapters/02 neu.ipynb", "_ext/look.py", "index.md", "_toc.yml"]
)
def test_only_a_change_is_built(book, name):
    assert book.builds()
    assert not book.builds()
    (book.root / name).write_text("two", encoding="utf-8")
    assert book.builds()
    assert not book.builds()


def test_a_removed_source_is_a_change(book):
    book.builds()
    (book.root / "chapters/01.ipynb").unlink()
    assert book.builds()


def test_a_new_timestamp_is_no_change(book):
    book.builds()
    (book.root / "chapters/01.ipynb").touch()
    assert not book.builds()


def test_caches_of_python_are_no_change(book):
    book.builds()
    (book.root / "attnlib/__pycache__").mkdir()
    (book.root / "attnlib/__pycache__/masks.pyc").touch()
    assert not book.builds()


def test_a_removed_site_is_built_again(book):
    book.builds()
    (build.SITE / "index.html").unlink()
    assert book.builds()


def test_a_failed_build_does_not_count(book):
    book.builds()
    source = book.root / "chapters/01.ipynb"
    source.write_text("two", encoding="utf-8")
    book.code = 1
    assert book.builds()
    # Back to what the last good build was made from: its pages are gone all the same.
    source.write_text("one", encoding="utf-8")
    book.code = 0
    assert book.builds()


def test_a_model_that_arrives_is_a_change(book, monkeypatch):
    monkeypatch.setattr(pretrained, "is_here", lambda: False)
    assert book.builds()
    assert not book.builds()
    monkeypatch.setattr(pretrained, "is_here", lambda: True)
    assert book.builds()


def test_packages_that_are_missing_are_named(monkeypatch, tmp_path):
    assert build.missing() == []
    pins = "NumPy==2.4.6  # via here\nno-torch==2\nonly-there==1 ; sys_platform == 'none'\n"
    (tmp_path / "requirements.txt").write_text(pins, encoding="utf-8")
    monkeypatch.setattr(build, "REQUIREMENTS", tmp_path / "requirements.txt")
    assert build.missing() == ["no-torch"]
    message = build.main()
    assert message.startswith("The build needs no-torch, which Python does not find. Run: ")
    assert message.endswith(" -m pip install -r requirements.txt")


@pytest.mark.parametrize("error", ["[Errno 28] No space left on device", "[Errno 30] Read-only"])
def test_a_disk_that_takes_nothing_is_one_line(book, monkeypatch, error):
    def refuse():
        raise OSError(error)

    monkeypatch.setattr(build, "build", refuse)
    assert build.main() == f"The build stopped: {error}."


def test_what_stopped_jupyter_book_is_one_line(tmp_path):
    cli = tmp_path / "jupyter_book" / "cli"
    cli.mkdir(parents=True)
    for folder in (cli.parent, cli):
        (folder / "__init__.py").touch()
    (cli / "main.py").write_text(
        "def main():\n    raise RuntimeError('box\\nof lines') from OSError(28, 'No space left')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", build.JUPYTER_BOOK], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "Stopped: [Errno 28] No space left\n")
