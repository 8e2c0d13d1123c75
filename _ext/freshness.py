"""A build starts over whatever an earlier one cannot vouch for."""

import contextlib
import hashlib
import json
import shutil
import sqlite3
from pathlib import Path

from sphinx.util import logging

from attnlib import palette, pretrained

logger = logging.getLogger(__name__)


def start_clean(app, config):
    """Before anything is loaded: discard what an earlier build left and cannot vouch for.

    Outputs in the notebooks' cache were computed by the `attnlib` of their day, with the model of
    chapter 13 or without: when that has changed, they go. The cache carries a mark of both.

    Pages are complete only if the build that wrote them ended well. Such a build leaves a mark,
    and the next one takes it away. Without the mark all pages are read and written again; so
    they are after a warning, which would otherwise be given once and then never again.
    """
    build = Path(app.outdir).parent
    cache, library = build / ".jupyter_cache", digest_of(Path(palette.__file__).parent)
    library += " with the model" if pretrained.is_here() else " without the model"
    stamp = cache / "attnlib.digest"
    if not (stamp.is_file() and stamp.read_text() == library and is_sound(cache)):
        if cache.exists():
            logger.info(
                "the stored outputs are discarded: attnlib or the model has changed, "
                "or they are damaged"
            )
            shutil.rmtree(cache)
        cache.mkdir(parents=True)
        stamp.write_text(library)
    app.config.html_context["lite"] = Path(app.outdir, "lite").exists()
    mark, makers = build / "ended-well", library + digest_of(Path(__file__).parent)
    # A page that stays as it is has new neighbours after a change of the contents.
    makers += hashlib.sha256(Path(app.srcdir, "_toc.yml").read_bytes()).hexdigest()
    makers += " with JupyterLite" if app.config.html_context["lite"] else ""
    if not (mark.is_file() and mark.read_text() == makers):
        Path(app.doctreedir, "environment.pickle").unlink(missing_ok=True)
    mark.unlink(missing_ok=True)
    app.ended_well = lambda: mark.write_text(makers)


def digest_of(folder):
    """A digest of the names and contents of the sources under `folder`."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".py", ".js", ".css", ".html", ".toml"} and path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def is_sound(cache):
    """Whether the notebooks' cache can be read: its index, and each notebook that it lists."""
    index = cache / "global.db"
    if not index.exists():
        return True  # nothing was run yet
    try:
        with contextlib.closing(sqlite3.connect(index)) as db:
            if db.execute("PRAGMA quick_check").fetchone() != ("ok",):
                return False
            keys = [row[0] for row in db.execute("SELECT hashkey FROM nbcache")]
        for key in keys:
            json.loads((cache / "executed" / key / "base.ipynb").read_text(encoding="utf-8"))
    except (sqlite3.Error, OSError, ValueError):
        return False
    return True


def end_well(app, exception):
    """After a build without an error or a warning: leave the mark."""
    if exception is None and not app._warncount:
        app.ended_well()


def setup(app):
    """Register with Sphinx."""
    app.connect("config-inited", start_clean)
    app.connect("build-finished", end_well, priority=999)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
