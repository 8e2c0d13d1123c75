"""Pages take their colours from `attnlib.palette`, by the names of its roles."""

import re
from pathlib import Path

from attnlib import palette

HEX_TO_VAR = {pair[0]: f"var(--{role.replace('_', '-')})" for role, pair in palette.ROLES.items()}


def themed(markup):
    """The same markup with the palette's light colours replaced by the variables of their roles."""
    return re.sub(
        r"#[0-9a-fA-F]{6}\b", lambda match: HEX_TO_VAR.get(match[0].lower(), match[0]), markup
    )


def write_palette(app, builder):
    """Before the first page is written: the colours, from their one place."""
    if builder.format == "html":
        target = Path(app.outdir, "_static", "palette.css")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(palette.css(), encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.add_css_file("palette.css", priority=100)
    app.connect("write-started", write_palette)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
