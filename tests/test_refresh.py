"""tools/refresh.py: what it stores, what it leaves out, and what it does when a cell fails."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from _ext.notebook import code_digest
from tools import build, refresh


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a notebook of some cells and returns its path."""

    def write(*sources):
        cells = [new_markdown_cell("# Trial"), *(new_code_cell(source) for source in sources)]
        path = tmp_path / "trial.ipynb"
        nbformat.write(new_notebook(cells=cells), path)
        return path

    return write


def test_outputs_are_stored_and_the_second_run_changes_nothing(write, tmp_path):
    path = write(
        "import os\nfrom ipywidgets import IntSlider",
        "for letter in 'ab':\n    print(letter)\nos.path.basename(os.getcwd())",
        "IntSlider(3)",
    )
    ids = [cell.id for cell in nbformat.read(path, 4).cells]
    assert refresh.refresh(path)
    stored = path.read_bytes()
    assert not refresh.refresh(path)
    assert path.read_bytes() == stored
    assert list(tmp_path.iterdir()) == [path]

    notebook = nbformat.read(path, 4)
    assert [cell.id for cell in notebook.cells] == ids
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2, 3]
    assert notebook.metadata.kernelspec == refresh.KERNEL
    assert "widgets" not in notebook.metadata
    assert notebook.metadata.code_digest == code_digest([c.source for c in notebook.cells[1:]])
    assert "version" not in notebook.metadata.language_info
    assert not any(cell.metadata for cell in notebook.cells)

    printed, folder = notebook.cells[2].outputs
    assert printed.text == "a\nb\n"
    assert folder.data["text/plain"] == repr(tmp_path.name)
    (slider,) = notebook.cells[3].outputs
    assert slider.data == {"text/plain": "IntSlider(value=3)"}


def test_a_notebook_is_stale_when_its_code_is_newer_than_its_outputs(write, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "ROOT", tmp_path)

    def stale(text, code, *outputs, digest):
        path = write(code)
        made = nbformat.read(path, 4)
        made.cells[0].source, made.cells[1].outputs = text, list(outputs)
        made.metadata.code_digest = digest
        nbformat.write(made, path)
        return build.stale() == ["trial.ipynb"]

    printed, digest = new_output("stream", text="1"), code_digest(["print(1)"])
    assert not stale("# Trial", "print(1)", printed, digest=digest)
    assert not stale("# Other words", "print(1)", printed, digest=digest)
    assert stale("# Trial", "print(2)", printed, digest=digest)
    assert stale("# Trial", "print(1)", digest=digest)


def test_a_cell_that_fails_is_named_and_the_file_is_left_alone(write, monkeypatch, capsys):
    path = write("1", "values = []\nvalues[5]", "2")
    before = path.read_bytes()
    monkeypatch.setattr("sys.argv", ["refresh", str(path)])
    message = refresh.main()
    assert message == "Stopped: trial.ipynb, cell 3 (`values = []`): IndexError: " + (
        "list index out of range"
    )
    assert path.read_bytes() == before
