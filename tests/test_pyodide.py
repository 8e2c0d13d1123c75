"""tools/pyodide.py: where Python for the page comes from, which files are refused, what is said."""

import hashlib
import io
import json
import tarfile
from types import SimpleNamespace

import pytest

from tools import pyodide

WHEEL, OTHER = b"a wheel", b"another wheel"
NAME = "numpy-2.whl"


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A registry and a distribution, as a few bytes each; what is asked of them is noted."""
    entry = {"file_name": NAME, "sha256": hashlib.sha256(WHEEL).hexdigest()}
    listed = {"info": {"abi_version": "1"}, "packages": {"numpy": entry, "unused": {}}}
    files = {name: name.encode() for name in pyodide.CORE}
    files["pyodide.js"] = b"code\n//# sourceMappingURL=pyodide.js.map\n"
    files[pyodide.LIST] = json.dumps(listed).encode()
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    package = sink.getvalue()
    there = {
        pyodide.PACKAGE_ADDRESS: package,
        f"{pyodide.DISTRIBUTION}/{NAME}": WHEEL,
    }
    asked = []

    def download(address):
        asked.append(address.rsplit("/", 1)[-1])
        if address not in there:
            raise pyodide.MissingError(f"{address} could not be fetched (planted)")
        return there[address]

    digest = pyodide.base64.b64encode(hashlib.sha512(package).digest()).decode()
    monkeypatch.setattr(pyodide, "PACKAGE_SHA512", digest)
    monkeypatch.setattr(pyodide, "READY", tmp_path / "ready")
    monkeypatch.setattr(pyodide, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(pyodide, "download", download)
    monkeypatch.delenv("PYODIDE", raising=False)
    return SimpleNamespace(there=there, asked=asked, files=files)


def ready():
    """The content of each file that is ready."""
    return {path.name: path.read_bytes() for path in pyodide.READY.glob("*")}


def test_python_is_fetched_once_and_goes_on_from_the_cache(world):
    pyodide.prepare()
    made = ready()
    assert made.keys() == {*pyodide.CORE, NAME, pyodide.MANIFEST}
    assert made[NAME] == WHEEL and made["pyodide.js"] == b"code\n"
    manifest = json.loads(made[pyodide.MANIFEST])
    assert manifest["lock"]["packages"].keys() == {"numpy"}
    assert manifest["lock"]["packages"]["numpy"]["sha256"] == hashlib.sha256(WHEEL).hexdigest()
    assert manifest["sizes"][NAME] == len(WHEEL)
    world.there.clear()
    pyodide.prepare()
    assert ready() == made and len(world.asked) == 2


@pytest.mark.parametrize("which", [0, 1])
def test_a_file_with_another_hash_is_refused(world, capsys, which):
    address, name = [(a, a.rsplit("/", 1)[-1]) for a in world.there][which]
    world.there[address] += b"!"
    pyodide.prepare()
    assert ready() == {} and not (pyodide.CACHE / name).exists()
    said = f"{name} arrived as another file than the one that is pinned."
    assert capsys.readouterr().out.splitlines()[-1].endswith(said)


def test_a_spoilt_cache_is_fetched_again(world):
    pyodide.prepare()
    for path in pyodide.CACHE.iterdir():
        path.write_bytes(b"cut off")
    pyodide.prepare()
    assert ready()[NAME] == WHEEL and len(world.asked) == 4


def test_a_folder_named_by_hand_counts_as_it_is(world, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PYODIDE", str(tmp_path))
    (tmp_path / NAME).write_bytes(OTHER)
    pyodide.prepare()
    made = ready()
    entry = json.loads(made[pyodide.MANIFEST])["lock"]["packages"]["numpy"]
    assert made[NAME] == OTHER and entry["sha256"] == hashlib.sha256(OTHER).hexdigest()
    assert "it is not Pyodide's own build" in capsys.readouterr().out
    assert world.asked == [pyodide.PACKAGE]
    for name, content in world.files.items():  # a whole release asks for nothing
        (tmp_path / name).write_bytes(content)
    pyodide.prepare()
    assert world.asked == [pyodide.PACKAGE]


def test_without_it_one_line_says_so_and_nothing_old_is_left(world, monkeypatch, capsys):
    pyodide.prepare()
    capsys.readouterr()
    for path in pyodide.CACHE.iterdir():
        path.unlink()
    world.there.clear()
    pyodide.prepare()
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("The exercises cannot be solved in the page: ")
    assert last.endswith("(planted).") and ready() == {}
    monkeypatch.setenv("PYODIDE", "/no/such/folder")
    pyodide.prepare()
    assert "PYODIDE is set to /no/such/folder, where there is no folder." in capsys.readouterr().out


def test_without_npm_it_says_what_is_missing(world, monkeypatch, capsys):
    monkeypatch.undo()  # the real way to the package
    monkeypatch.setattr(pyodide, "CACHE", pyodide.ROOT / "no such folder")
    monkeypatch.setattr(pyodide, "READY", pyodide.ROOT / "no such folder")
    monkeypatch.delenv("PYODIDE", raising=False)
    monkeypatch.setattr(pyodide.shutil, "which", lambda name: None)
    pyodide.prepare()
    said = f"npm is not there to fetch {pyodide.PACKAGE}."
    assert capsys.readouterr().out.splitlines()[-1].endswith(said)
