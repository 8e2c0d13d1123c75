"""tools/lite.py: what JupyterLite is made of, and that the site stays whole without it."""

import hashlib
import json

import nbformat
import pytest

from tools import build, lite

WHEEL = b"a wheel"


@pytest.fixture
def release(tmp_path):
    """Return a folder like a release of Pyodide, in which each package is a few bytes."""
    folder = tmp_path / "release"
    folder.mkdir()
    entries = {
        name: {
            "file_name": f"{name}.whl",
            "sha256": hashlib.sha256(WHEEL).hexdigest(),
            "depends": {"matplotlib": ["Pillow_extra"]}.get(name, []),
        }
        for name in [*lite.COMPILED, "Pillow-extra", "unused"]
    }
    for entry in entries.values():
        (folder / entry["file_name"]).write_bytes(WHEEL)
    for name in lite.CORE:
        (folder / name).write_text(json.dumps({"packages": entries}), encoding="utf-8")
    return folder


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a built site with an older JupyterLite in it."""
    site = tmp_path / "_build" / "html"
    (site / "lite").mkdir(parents=True)
    (site / "lite" / "index.html").write_text("older", encoding="utf-8")
    monkeypatch.setattr(build, "SITE", site)
    monkeypatch.setattr(lite, "LITE", site / "lite")
    return site


def test_what_is_needed_is_fetched_with_what_that_needs(release, tmp_path):
    lite.fetch_pyodide(str(release), tmp_path)
    wheels = {path.name for path in tmp_path.glob("*.whl")}
    assert wheels == {f"{name}.whl" for name in [*lite.COMPILED, "Pillow-extra"]}
    assert all((tmp_path / name).is_file() for name in lite.CORE)


def test_a_wheel_that_is_missing_is_named_and_the_site_stays(release, site, monkeypatch):
    (release / "numpy.whl").unlink()
    monkeypatch.setenv("PYODIDE", f"{release}/")
    message = lite.main()
    assert message.startswith(
        f"JupyterLite was not added: numpy.whl could not be fetched from {release} "
        "(No such file or directory). The site is as it was."
    )
    assert "\n" not in message
    assert (site / "lite" / "index.html").read_text(encoding="utf-8") == "older"
    assert [path.name for path in site.parent.iterdir()] == ["html"]


def test_an_address_that_does_not_answer_is_named(site, monkeypatch):
    monkeypatch.setenv("PYODIDE", "http://127.0.0.1:9/full")
    message = lite.main()
    assert "pyodide-lock.json could not be fetched from http://127.0.0.1:9/full (" in message
    assert "refused" in message


def test_a_wheel_that_is_not_the_listed_one_is_refused(release, tmp_path):
    (release / "scipy.whl").write_bytes(b"another")
    with pytest.raises(lite.LiteError, match=r"scipy\.whl from .* is not the file that"):
        lite.fetch_pyodide(str(release), tmp_path)


def test_a_program_that_fails_leaves_the_site(release, site, monkeypatch):
    def fail(folder, *command):
        raise lite.LiteError("`pip wheel` failed")

    monkeypatch.setattr(lite, "run", fail)
    monkeypatch.setenv("PYODIDE", str(release))
    assert lite.main().startswith("JupyterLite was not added: `pip wheel` failed.")
    assert (site / "lite" / "index.html").exists()
    assert [path.name for path in site.parent.iterdir()] == ["html"]


def test_what_was_made_takes_the_place_of_the_older(release, site, monkeypatch):
    def run(folder, *command):
        if command[0] == "uv":
            (folder / "made").mkdir()
            (folder / "made" / "new.html").touch()

    monkeypatch.setattr(lite, "run", run)
    lite.make(str(release))
    assert [path.name for path in lite.LITE.iterdir()] == ["new.html"]
    assert [path.name for path in site.parent.iterdir()] == ["html"]


def test_chapters_without_torch_are_there_and_install_first(tmp_path):
    lite.write_notebooks(tmp_path)
    assert list(tmp_path.iterdir())
    for path in tmp_path.iterdir():
        assert nbformat.read(path, as_version=4).cells[0].source == lite.FIRST_CELL
    assert "torch" not in "".join(
        cell.source.partition("#")[0]
        for path in tmp_path.iterdir()
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code" and "import" in cell.source
    )


def test_every_plain_package_is_pinned():
    for names in (lite.PLAIN, lite.PAGES):
        assert sorted(pin.partition("==")[0] for pin in lite.pins(names)) == sorted(names)
