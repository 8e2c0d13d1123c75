"""_ext/freshness.py: what a build keeps of an earlier one."""

import sqlite3
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.append(str(Path(__file__).parents[1] / "_ext"))
import freshness


@pytest.fixture
def app(tmp_path):
    """As much of a Sphinx application as `start_clean` looks at, after one good build."""
    app = SimpleNamespace(outdir=tmp_path / "html", doctreedir=tmp_path / ".doctrees", _warncount=0)
    app.config, app.srcdir = SimpleNamespace(html_context={}), tmp_path
    (tmp_path / "_toc.yml").write_text("root: index")
    app.doctreedir.mkdir()
    app.environment = app.doctreedir / "environment.pickle"
    app.outputs = tmp_path / ".jupyter_cache" / "executed" / "k" / "base.ipynb"
    freshness.start_clean(app, None)
    app.outputs.parent.mkdir(parents=True)
    app.outputs.write_text("{}")
    with sqlite3.connect(tmp_path / ".jupyter_cache" / "global.db") as db:
        db.execute("CREATE TABLE nbcache (hashkey TEXT)")
        db.execute("INSERT INTO nbcache VALUES ('k')")
    app.environment.touch()
    freshness.end_well(app, None)
    return app


def test_after_a_good_build_everything_stays(app):
    freshness.start_clean(app, None)
    assert app.outputs.exists() and app.environment.exists()


def test_after_a_change_of_the_contents_pages_are_written_again_and_outputs_stay(app):
    Path(app.srcdir, "_toc.yml").write_text("root: index # and another page")
    freshness.start_clean(app, None)
    assert app.outputs.exists() and not app.environment.exists()


def test_after_a_change_of_attnlib_everything_goes(app, monkeypatch):
    monkeypatch.setattr(freshness, "digest_of", lambda folder: "another")
    freshness.start_clean(app, None)
    assert not app.outputs.exists() and not app.environment.exists()


def test_after_the_model_has_come_everything_goes(app, monkeypatch):
    here = freshness.pretrained.is_here()
    monkeypatch.setattr(freshness.pretrained, "is_here", lambda: not here)
    freshness.start_clean(app, None)
    assert not app.outputs.exists() and not app.environment.exists()


def test_after_a_killed_build_pages_are_written_again_and_outputs_stay(app):
    freshness.start_clean(app, None)  # and no end
    freshness.start_clean(app, None)
    assert app.outputs.exists() and not app.environment.exists()


@pytest.mark.parametrize(("exception", "warnings"), [(RuntimeError(), 0), (None, 1)])
def test_after_an_error_or_a_warning_pages_are_written_again(app, exception, warnings):
    freshness.start_clean(app, None)
    app._warncount = warnings
    freshness.end_well(app, exception)
    freshness.start_clean(app, None)
    assert app.outputs.exists() and not app.environment.exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [("global.db", "no database" * 99), ("global.db", ""), ("executed/k/base.ipynb", '{"cells":')],
)
def test_a_damaged_cache_of_outputs_is_discarded(app, name, content):
    (app.outdir.parent / ".jupyter_cache" / name).write_text(content)
    freshness.start_clean(app, None)
    assert not app.outputs.exists()


def test_the_digest_sees_names_and_contents(tmp_path):
    digests = set()
    for name, content in [("a.py", "1"), ("a.py", "2"), ("b.js", "2"), ("note.txt", "2")]:
        (tmp_path / name).write_text(content)
        digests.add(freshness.digest_of(tmp_path))
    assert len(digests) == 3
