"""A page at each old address, which leads on to the new one: `moved_pages` in `_config.yml`.

sphinx-reredirects would do it, but writes its pages past the templates: they would have no policy,
and their script could not be in one, since it differs from page to page.
"""

import posixpath
from pathlib import Path

from sphinx.errors import ExtensionError

from _ext.pages.head import with_policy

PAGE = """<!doctype html>
<html lang="en">
<head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>{title}</title>
    <link rel="canonical" href="{link}">
    <noscript><meta http-equiv="refresh" content="0; url={link}"></noscript>
</head>
<body>
    <p>This page has moved: <a href="{link}">{title}</a>.</p>
    <script>location.replace(document.querySelector("a").href + location.hash);</script>
</body>
</html>
"""


def check(app, env):
    """After reading: an old address is no page, and the new one is."""
    for old, new in app.config.moved_pages.items():
        if old in env.found_docs or new not in env.found_docs:
            raise ExtensionError(f"moved_pages: {old} must be no page, and {new} one")


def write(app, exception):
    """After the pages: those that lead on."""
    if exception is None:
        for old, new in app.config.moved_pages.items():
            link = posixpath.relpath(app.builder.get_target_uri(new), posixpath.dirname(old))
            page = PAGE.format(link=link, title=app.env.titles[new].astext())
            Path(app.outdir, f"{old}.html").write_text(with_policy(page), encoding="utf-8")


def setup(app):
    app.add_config_value("moved_pages", {}, "html", dict)
    app.connect("env-check-consistency", check)
    app.connect("build-finished", write)
