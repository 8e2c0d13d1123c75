"""One widget as one HTML file: its module, its style and its state, and nothing from elsewhere.

The policy of the file allows its own script, by digest, and nothing that has an address. So the
file opens from disk, and may hold what must not leave the reader's computer.
"""

import base64
import hashlib
import html
import json

from attnlib.widgets.kit import modules

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,"><title>{title}</title>
<style>{style}{own}</style></head>
<body><main><h1>{title}</h1><div id="widget"></div>
<noscript><p>This page draws its picture with JavaScript, which is switched off here.</p></noscript>
</main>
<script type="application/json" id="state">{state}</script>
<script type="module">{script}</script>
</body></html>
"""
POLICY = (
    "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
OWN = """body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 0 0 1rem; font-size: 1.25rem; overflow-wrap: anywhere; }
"""
# A widget's module is one text whose last statement exports the widget. Here it is not exported,
# because a page from disk cannot import anything.
GIVES = "export default "
STARTS = """
const traits = JSON.parse(document.getElementById("state").textContent);
widget.render({ model: modelOf(traits), el: document.getElementById("widget") });
"""


def page(widget, title):
    """Return the HTML of a page with this title that shows the widget in its present state."""
    module = widget._esm.replace(GIVES, "const widget = ")
    script = f"{module}\n{modules.source('standalone').replace('export ', '')}{STARTS}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # A text of the reader's own must not end the element that it stands in.
    state = json.dumps(widget.state, ensure_ascii=False).replace("<", "\\u003c")
    return PAGE.format(
        policy=POLICY.format(digest),
        title=html.escape(title),
        style=widget._css,
        own=OWN,
        state=state,
        script=script,
    )
