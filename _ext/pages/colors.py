"""Pages take their colors from `attnlib.palette`, by the names of its roles."""

import re
from pathlib import Path

from _ext.files import write
from attnlib import palette

HEX_TO_VAR = {pair[0]: f"var(--{role.replace('_', '-')})" for role, pair in palette.ROLES.items()}


def themed(markup):
    """The same markup with the palette's light colors replaced by the variables of their roles."""
    return re.sub(
        r"#[0-9a-fA-F]{6}\b", lambda match: HEX_TO_VAR.get(match[0].lower(), match[0]), markup
    )


def write_palette(app, exception):
    """After all pages: the colors, from their one place, for the style that all pages share."""
    write(Path(app.outdir, "_static", "palette.css"), palette.css())


def setup(app):
    app.add_css_file("palette.css", priority=100)
    app.connect("build-finished", write_palette)
