"""Python for the exercises in the page, in _build/pyodide: Pyodide's core, and NumPy for it.

The core is a package of the npm registry, pinned below by its hash. NumPy for it is in no registry:
it belongs to Pyodide's own distribution, and the core's list names its hash. Both are taken from
the folder that PYODIDE names, else from the cache, else from their address. A file with another
hash is refused, but not in a folder that is named by hand: there a file counts as it is.
"""

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.install import ROOT, VENV, say

READY = ROOT / "_build" / "pyodide"
CACHE = VENV / "pyodide"  # `make clean` leaves it
VERSION = "0.29.3"
PACKAGE = f"pyodide-{VERSION}.tgz"
PACKAGE_ADDRESS = f"npm:/{PACKAGE}"  # npm knows the reader's registry, a mirror perhaps
PACKAGE_SHA512 = (
    "22UBuhOJawj7vKUnS7/F3xK+515LJdjiMAHoCfuS6/PbHiOrSQVnYwDe+2sbVwiOZ3sMMexdXICew6NqOMQGgA=="
)
DISTRIBUTION = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full"
LIST = "pyodide-lock.json"
CORE = ["pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip"]
MANIFEST = "manifest.json"  # what the page needs to know, and the mark of a whole folder


class MissingError(Exception):
    """What cannot be had, in one line."""


def sha256(content):
    """Return the digest of bytes, as Pyodide's list has it."""
    return hashlib.sha256(content).hexdigest()


def is_the_package(content):
    """Tell whether bytes are the pinned package, by the hash that the registry states."""
    return base64.b64encode(hashlib.sha512(content).digest()).decode() == PACKAGE_SHA512


def download(address):
    """Return what stands at an address."""
    if address == PACKAGE_ADDRESS:
        return pack()
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            return answer.read()
    except OSError as error:
        reason = getattr(error, "reason", None) or error
        raise MissingError(f"{address} could not be fetched ({reason})") from error


def pack():
    """Return the package of the core, as npm fetches it."""
    npm = shutil.which("npm")
    if npm is None:
        raise MissingError(f"npm is not there to fetch {PACKAGE}")
    with TemporaryDirectory() as folder:
        command = [npm, "pack", f"pyodide@{VERSION}", "--silent", "--pack-destination", folder]
        command += ["--fetch-retries=0", "--fetch-timeout=30000"]  # or it tries for minutes
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if subprocess.call(command, cwd=folder, **quiet):
            raise MissingError(f"npm could not fetch {PACKAGE}")
        return Path(folder, PACKAGE).read_bytes()


def cached(name, is_right, fetch):
    """Return a file from the cache, or fetch it there; what is not right is refused."""
    path = CACHE / name
    if path.is_file() and is_right(content := path.read_bytes()):
        return content
    say(f"Fetching {name} for the exercises in the page ...")
    content = fetch()
    if not is_right(content):
        raise MissingError(f"{name} arrived as another file than the one that is pinned")
    CACHE.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return content


def core(folder):
    """Return {name: content} of the core and its list."""
    names = [*CORE, LIST]
    if folder and all((folder / name).is_file() for name in names):
        return {name: (folder / name).read_bytes() for name in names}
    package = cached(PACKAGE, is_the_package, lambda: download(PACKAGE_ADDRESS))
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        return {name: archive.extractfile(f"package/{name}").read() for name in names}


def numpy(folder, entry):
    """Return NumPy for Pyodide, the file that an entry of the list names."""
    name, expected = entry["file_name"], entry["sha256"]
    if folder and (folder / name).is_file():
        content = (folder / name).read_bytes()
        if sha256(content) != expected:
            say(f"{name} is taken from PYODIDE as it is: it is not Pyodide's own build.")
        return content
    address = f"{DISTRIBUTION}/{name}"
    return cached(name, lambda content: sha256(content) == expected, lambda: download(address))


def gathered(folder):
    """Return {name: content} of all that the page fetches, and the manifest of it."""
    files = core(folder)
    listed = json.loads(files.pop(LIST))
    entry = listed["packages"]["numpy"]
    wheel = numpy(folder, entry)
    # A page asks for maps of the sources that are not there as soon as its console is open.
    for name in ("pyodide.js", "pyodide.asm.js"):
        files[name] = files[name].partition(b"//# sourceMappingURL=")[0]
    files[entry["file_name"]] = wheel
    lock = {"info": listed["info"], "packages": {"numpy": entry | {"sha256": sha256(wheel)}}}
    sizes = {name: len(content) for name, content in files.items()}
    manifest = {"version": VERSION, "lock": lock, "sizes": sizes}
    return files | {MANIFEST: json.dumps(manifest).encode()}


def prepare():
    """Make _build/pyodide whole, or remove it and say in one line why it cannot be."""
    named = os.environ.get("PYODIDE")
    try:
        if named and not Path(named).is_dir():
            raise MissingError(f"PYODIDE is set to {named}, where there is no folder")
        files = gathered(Path(named) if named else None)
    except MissingError as missing:
        shutil.rmtree(READY, ignore_errors=True)
        say(f"The exercises cannot be solved in the page: {missing}.")
        return
    manifest = READY / MANIFEST
    if manifest.is_file() and manifest.read_bytes() == files[MANIFEST]:
        return
    shutil.rmtree(READY, ignore_errors=True)
    READY.mkdir(parents=True)
    for name, content in files.items():  # the manifest comes last
        (READY / name).write_bytes(content)
