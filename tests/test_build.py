"""tools/build.py: when jupyter-book is called, and when the site counts as built."""

import subprocess

import pytest

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
