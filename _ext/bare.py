"""Comments and indents of our own scripts and styles stay at home: of their bytes, a third."""

from pathlib import Path

from attnlib.widgets import core

HERE = Path(__file__).parent / "static"
OURS = ["math.css", "pygments.css", *(file.name for file in HERE.glob("*.[cj]s*"))]


def lay_bare(app, exception):
    """After Sphinx has copied them: the same files without what is only for whoever reads them."""
    if exception is None and app.builder.format == "html":
        for file in (Path(app.outdir, "_static", name) for name in OURS):
            file.write_text(core.bare(file.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("build-finished", lay_bare)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
