"""What stands first in every page: what it may load, and what it is about.

- A Content-Security-Policy: nothing runs or loads from elsewhere.
- A description: the page's own first sentences, unless its author wrote one.
"""

import base64
import hashlib
import html
import re
import textwrap

from docutils import nodes

from _ext.search.index import SENTENCE, line

LONGEST = 260  # of a description, in characters; a lead of 40 words is shorter

# Frames and documents within a page are for nobody, nor is another base of its links.
POLICY = (
    "default-src 'self'; script-src 'self'{blob}{wasm}{hashes}; worker-src {workers}; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "connect-src 'self'; frame-src 'none'; object-src 'none'; base-uri 'none'; form-action 'self'"
)

# A widget's module is imported from a blob.
WITH_MODULES = "/widget_host.js"
# The exercises, the encoder and the training run WebAssembly in a worker made from a blob.
WITH_WORKERS = ("/practice.js", "/encoder.js", "/widgets/trainer.")


def with_policy(page):
    """The page with its Content-Security-Policy, which allows the scripts it has, by digest."""
    inline = r"""<script(?![^>]*\b(?:src=|type=["']?application/))[^>]*>(.*?)</script>"""
    scripts = re.findall(inline, page, flags=re.S)
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    hashes = "".join(f" 'sha256-{base64.b64encode(d).decode()}'" for d in dict.fromkeys(digests))
    works = any(name in page for name in WITH_WORKERS)
    blob = " blob:" if WITH_MODULES in page else ""
    wasm = " 'wasm-unsafe-eval'" if works else ""
    workers = "blob:" if works else "'none'"
    policy = POLICY.format(blob=blob, wasm=wasm, hashes=hashes, workers=workers)
    policy = html.escape(policy, quote=False)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace("<head>", f"<head>\n    {meta}", 1)


def describe(app, pagename, templatename, context, doctree):
    """Give the page a description, unless its author did (`html_meta` in the front matter)."""
    # Docutils says the width of the page once more than Furo does.
    tags = re.sub(r'<meta [^>]*name="viewport"[^>]*>\s*', "", context.get("metatags", ""))
    if 'name="description"' not in tags:
        text = summary(doctree) if doctree else ""
        text = html.escape(text or f"{context.get('title', 'Search')} in {app.config.html_title}.")
        tags += f'\n<meta name="description" content="{text}">'
    context["metatags"] = tags


def summary(doctree):
    """The first paragraph of running text, or of a chapter's lead: as many sentences as fit."""
    for paragraph in doctree.findall(nodes.paragraph):
        box = paragraph.parent
        if isinstance(box, nodes.section) or "lead" in box["classes"]:
            return shortened(line(paragraph))
    return ""


def shortened(text):
    """The sentences of a text that fit into a description; a longer first one is cut."""
    first, *more = SENTENCE.split(text)
    said = textwrap.shorten(first, LONGEST, placeholder=" ...")
    for sentence in more:
        if len(said) + 1 + len(sentence) > LONGEST:
            break
        said += f" {sentence}"
    return said


def setup(app):
    app.connect("html-page-context", describe)
