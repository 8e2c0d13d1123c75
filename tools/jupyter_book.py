"""Run jupyter-book for a build: `python -m tools.jupyter_book build ...`.

Called by its own command, it writes color codes even into a file, and where Sphinx has said what
stopped it, such as a full disk, it adds two pages of its own calls to that. At the end it says in
a box how to open the site, which is left out because `tools.build` says more. Left out, too, are
Sphinx's warnings that it overwrites a script: the build makes each one smaller once it is copied.
"""

import gc
import logging
import sys

# Where they are installed, jsonschema loads a parser of web addresses for a second and more, and
# attnlib loads SciPy for a quarter of one. Nothing here checks such an address or computes a GELU:
# both do without a module that is None.
sys.modules |= dict.fromkeys(["rfc3987_syntax", "scipy"])

from jupyter_book.cli import main as cli  # noqa: E402
from sphinx.util.console import color_terminal, nocolor  # noqa: E402


def main():
    """Run it and exit with its code, or with one line that says what stopped it."""
    if not color_terminal():
        nocolor()
    # A build makes millions of nodes that live until its end. To look for garbage among them would
    # take a fifth of its time.
    gc.disable()
    logging.getLogger("sphinx.sphinx.util.osutil").setLevel(logging.WARNING)
    box = vars(cli).get("_message_box")
    # Only the boxes of errors name their color.
    cli._message_box = lambda text, color="", **how: color and box(text, color, **how)
    try:
        cli.main()
    except KeyboardInterrupt:
        raise SystemExit(1) from None
    except RuntimeError as error:
        cause = error.__cause__ or error
        raise SystemExit(f"Stopped: {getattr(cause, 'orig_exc', None) or cause}") from None


if __name__ == "__main__":
    main()
