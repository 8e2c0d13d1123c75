"""Run notebooks from top to bottom and store what they give: `python -m tools.refresh`.

The stored outputs are what the pages show and what tests compare with. Beside them stands a digest
of the code that gave them. Twice in a row changes nothing: whatever differs from one run to the
next is left out.
"""

import argparse
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from _ext.notebook import code_digest
from tools.build import notebooks
from tools.install import say

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SECONDS_PER_CELL = 300


class CellFailedError(Exception):
    """A cell did not run; the message names the notebook and the cell."""


def refresh(path):
    """Run one notebook in its own folder; write it if that changed it, and tell whether it did."""
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    notebook.metadata["kernelspec"] = dict(KERNEL)
    run = []
    client = NotebookClient(
        notebook,
        kernel_name=KERNEL["name"],
        resources={"metadata": {"path": str(path.parent)}},
        timeout=SECONDS_PER_CELL,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        on_cell_execute=lambda cell, cell_index: run.append(cell_index),
    )
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        first_line = notebook.cells[run[-1]].source.splitlines()[0]
        where = f"{path.name}, cell {run[-1] + 1} (`{first_line}`)"
        raise CellFailedError(f"{where}: {reason(error)}") from error
    normalize(notebook)
    notebook.metadata["code_digest"] = code_digest(
        [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    )
    after = nbformat.writes(notebook) + "\n"
    if after == before:
        return False
    # A rename is whole or not at all: a kill cannot leave half a notebook.
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(after, encoding="utf-8")
    unfinished.replace(path)
    return True


def reason(error):
    """Return an error in one line, without the cell's traceback."""
    if isinstance(error, CellExecutionError):
        return f"{error.ename}: {error.evalue}".splitlines()[0]
    return str(error).splitlines()[0]


def normalize(notebook):
    """Take out of a notebook that has just run what would differ the next time."""
    # The states of widgets and their model ids are new in every run; the page gets its own.
    notebook.metadata.pop("widgets", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)


def main():
    """Refresh the notebooks named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all")
    paths = parser.parse_args().notebooks or notebooks()
    try:
        for path in paths:
            name = os.path.relpath(path)
            say(f"{name}: {'new outputs stored' if refresh(path.resolve()) else 'unchanged'}")
    except (CellFailedError, OSError) as error:
        return f"Stopped: {error}"
    except KeyboardInterrupt:
        return "\nStopped; the notebook that was running is as it was."
    return 0


if __name__ == "__main__":
    sys.exit(main())
