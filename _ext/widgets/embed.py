"""A page for each picture that can be shared: it shows the picture alone, in a frame elsewhere.

`embed/<page>-<name>.html` has a slot of the built page `<page>`, as it stands there, with the
scripts that it needs; `<name>` is what the page's address calls the slot (widget_host.js), and the
number of a chapter is left out. The reader's system decides whether it is light or dark, unless the
address says `?theme=light` or `?theme=dark`. Below the picture a link leads to its place in the
course and takes along what was set.
"""

import functools
import html
import json
import re
from pathlib import Path

from sphinx.errors import ExtensionError

from _ext.files import clear, write
from _ext.pages.head import with_policy
from _ext.widgets.page import assets, engine, use
from attnlib import palette
from attnlib.widgets.kit import modules

SLOT = re.compile(
    r'<div class="widget-slot" data-widget="(\w+)" data-state="([^"]*)">.*?'
    r'<p class="message" role="status"></p></fieldset></div></div>',
    re.DOTALL,
)
SCRIPT = re.compile(r"<script\b[^>]*>.*?</script>", re.DOTALL)
SOURCE = re.compile(r' src="(?:\.\./)?(_static/[^"?]+)')
# What a page loads for its text, and the modules of its other widgets.
OF_THE_TEXT = ("scripts/", "book.js", "glimpses.js", "practice.js", "widgets/")
PAGE = """<!doctype html>
<html lang="en" class="embedded">
<head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="robots" content="noindex">
    <title>{label} - {source}</title>
    <link rel="icon" href="data:,">
    <style>{palette}</style>
    <link rel="stylesheet" href="../_static/embed.css">
    {styles}
    {scripts}
</head>
<body data-theme="auto">
<main aria-label="{label}">{slot}</main>
<p class="source"><a href="../{page}.html" target="_blank" rel="noopener">{source}</a></p>
<script>
  const theme = new URLSearchParams(location.search).get("theme");
  if (["light", "dark"].includes(theme)) document.body.dataset.theme = theme;
  document.querySelector(".source a").addEventListener("click", ({{ currentTarget }}) => {{
    currentTarget.hash = location.hash.replace(/(#|&){kind}(?=\\.)/g, "$1{name}");
  }});
</script>
</body>
</html>
"""


@functools.cache
def can_be_shared(widget):
    """Tell whether a widget shows a picture: the state of the others is a reader's answer."""
    return engine(widget)("widget.shared !== false")


def embedded(page, text, title, book):
    """Yield the name and the text of the page of each picture on the built `page`."""
    counts, own = {}, [tag for tag in SCRIPT.findall(text) if not is_of_the_text(tag)]
    for match in SLOT.finditer(text):
        widget, state = match[1], json.loads(html.unescape(match[2]))
        kind = modules.stem(widget).replace("_", "-")
        counts[kind] = counts.get(kind, 0) + 1
        if not can_be_shared(widget):
            continue
        name = kind if counts[kind] == 1 else f"{kind}-{counts[kind]}"
        files = assets({use(widget, state)})
        modules_ = (file for file in files if file.endswith(".js"))
        yield (
            f"{short(page)}-{name}",
            PAGE.format(
                label=re.search(r'<fieldset disabled\s+aria-label="([^"]*)"', match[0])[1],
                source=html.escape(title if title == book else f"{title}, {book}"),
                palette=palette.css(),
                styles="\n    ".join(
                    f'<link rel="stylesheet" href="../_static/{file}">'
                    for file in files
                    if file.endswith(".css")
                ),
                scripts="\n    ".join(
                    [SOURCE.sub(r' src="../\1', tag) for tag in own]
                    + [f'<script defer src="../_static/{file}"></script>' for file in modules_]
                ),
                slot=match[0],
                page=page,
                kind=kind,
                name=name,
            ),
        )


def is_of_the_text(tag):
    """Tell whether a script is there for a page's text, and not for its widgets."""
    source = SOURCE.search(tag)
    if not source:
        return not re.match(r"<script>self\.\w+ = ", tag)
    return source[1].removeprefix("_static/").startswith(OF_THE_TEXT)


def short(page):
    """The name of a page without its folder and its number."""
    return re.sub(r"^(?:.*/)?(?:\d+-)?", "", page)


def write_pages(app, exception):
    """After the pages of the book, from what was written there: one for each of their pictures."""
    if exception:
        return
    out, found = Path(app.outdir), {}
    for page in sorted(app.env.found_docs):
        text = (out / f"{page}.html").read_text(encoding="utf-8")
        title = app.env.titles[page].astext()
        for name, content in embedded(page, text, title, app.config.html_title):
            if name in found:
                raise ExtensionError(f"two pictures would be embedded as {name}.html")
            found[name] = content
    for name, content in found.items():
        write(out / "embed" / f"{name}.html", with_policy(content))
    clear((out / "embed").glob("*"), {f"{name}.html" for name in found})


def setup(app):
    app.connect("build-finished", write_pages, priority=400)  # before assets.py
