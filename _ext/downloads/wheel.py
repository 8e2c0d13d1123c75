"""The wheel of `attnlib` that the site carries, and zip files, the same bytes in each build."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from sphinx.errors import SphinxError


def build_wheel(root, folder):
    """Make the wheel of `attnlib` from the checkout at `root`, and return where it is in `folder`.

    Setuptools works on a copy: it leaves its own folders beside what it reads.
    """

    def copy(source, target):
        shutil.copyfile(source, target)
        os.chmod(target, 0o644)  # a wheel holds the permissions too

    with TemporaryDirectory() as place:
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            copy(root / name, Path(place, name))
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / "attnlib", Path(place, "attnlib"), ignored, copy_function=copy)
        code = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=place,
            env=os.environ | {"SOURCE_DATE_EPOCH": "315532800"},  # 1980, the first that zip knows
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SphinxError(f"setuptools made no wheel: {done.stderr.strip().splitlines()[-1]}")
        name = done.stdout.split()[-1]
        folder.mkdir(parents=True, exist_ok=True)
        return shutil.copyfile(Path(place, name), folder / name)


def write_zip(path, *files):
    """Put `files` into one at `path`, the same bytes each time."""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(ZipInfo(file.name), file.read_bytes(), ZIP_DEFLATED)
