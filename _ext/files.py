"""Files that the extensions write into the site."""

import hashlib
import shutil


def encoded(content):
    """The bytes of a text, or these bytes."""
    return content.encode() if isinstance(content, str) else content


def digest(content):
    """What the name of a file has of its content: no browser keeps an old one under a new name."""
    return hashlib.sha256(encoded(content)).hexdigest()[:8]


def write(path, content):
    """Write a text or bytes to a file, and make its folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(content))


def clear(found, wanted):
    """Remove what earlier builds left: those of the files `found` whose name is not wanted."""
    for old in found:
        if old.name not in wanted:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
