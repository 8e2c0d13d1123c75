"""The picture of a widget as a file: a browser without a window lays it out and writes it down.

The browser gets a page with the widget alone and runs what the menu of a page runs (save.js). So
there is one way to draw a widget, and no second one that could differ from it.
"""

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from attnlib.widgets.kit import modules

# The usual names and places of Chromium, Chrome and Edge; $CHROMIUM comes first.
BROWSERS = [
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable", "microsoft-edge"),
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
]
SECONDS = 60  # for the browser
SIZE = re.compile(r'<svg[^>]* width="(\d+)" height="(\d+)"')
# All of it happens before the page has loaded: then the browser says what stands there. What the
# widget would draw in the next frames, it draws at once.
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><style>{css}</style></head>
<body data-theme="{theme}" style="margin: 0"><div id="slot" style="width: {width}px"></div>
<script type="application/json" id="state">{state}</script>
<script>
const frames = [];
self.requestAnimationFrame = (draw) => frames.push(draw);
self.ResizeObserver = class {{
  constructor(tell) {{ this.tell = tell; }}
  observe(target) {{ frames.push(() => this.tell([{{ target }}])); }}
  unobserve() {{}}
  disconnect() {{}}
}};
</script>
<script type="module">{widget}</script>
<script type="module">
{save}
const state = JSON.parse(document.querySelector("#state").textContent);
const slot = document.querySelector("#slot");
const saved = document.createElement("pre");
const model = {{
  get: (name) => state[name],
  set: (name, value) => {{ state[name] = value; }},
  on() {{}}, off() {{}}, save_changes() {{}},
}};
try {{
  widget.render({{ model, el: slot }});
  for (let i = 0; i < 9; i++) for (const draw of frames.splice(0)) draw(performance.now());
  const caption = slot.querySelector("fieldset").ariaLabel;
  saved.textContent = save.toSvg(slot.querySelector(".abh"), {{ caption }});
  saved.id = "saved";
}} catch (error) {{
  saved.textContent = error.message;
  saved.id = "failed";
}}
document.body.replaceChildren(saved);
</script></body></html>
"""


def save(widget, path, width, theme):
    """Write the picture of a widget to a file, and return where: `CourseWidget.save`."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in {".svg", ".png"}:
        raise ValueError(f"save needs a name that ends in .svg or .png; got {path.name!r}")
    if isinstance(width, bool) or not isinstance(width, int) or not 280 <= width <= 2000:
        raise ValueError(f"width needs a whole number of pixels from 280 to 2000; got {width!r}")
    if theme not in ("light", "dark"):
        raise ValueError(f"theme needs 'light' or 'dark'; got {theme!r}")
    with tempfile.TemporaryDirectory() as folder:
        svg = drawn(widget, width, theme, folder)
        if ending == ".svg":
            path.write_text(svg, encoding="utf-8")
        else:
            path.write_bytes(photographed(svg, folder))
    return path


def drawn(widget, width, theme, folder):
    """The picture as SVG."""
    page = PAGE.format(
        css=widget._css,
        theme=theme,
        width=width,
        state=json.dumps(widget.state).replace("<", "\\u003c"),
        widget=re.sub(r"^export default ", "self.widget = ", widget._esm, flags=re.MULTILINE),
        save=modules.joined("save"),
    )
    Path(folder, "page.html").write_text(page, encoding="utf-8")
    said = browse(folder, "page.html", f"--window-size={width},1200", "--dump-dom")
    found = re.search(r'<pre id="(\w+)">(.*?)</pre>', said, re.DOTALL)
    if not found or found[1] != "saved":
        why = html.unescape(found[2]) if found else "no picture"
        raise RuntimeError(f"save needs a picture of {type(widget).__name__}; got {why}")
    return html.unescape(found[2])


def photographed(svg, folder):
    """The SVG as a PNG, with two pixels for each one."""
    Path(folder, "picture.svg").write_text(svg, encoding="utf-8")
    width, height = SIZE.search(svg).groups()
    size = f"--window-size={width},{height}"
    more = ["--force-device-scale-factor=2", "--hide-scrollbars"]
    browse(folder, "picture.svg", size, *more, f"--screenshot={folder}/picture.png")
    return Path(folder, "picture.png").read_bytes()


def browse(folder, name, *options):
    """Open a file of the folder in a browser without a window, and return what that prints."""
    command = [find_browser(), "--headless", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-sync", *options]
    command += ["--force-prefers-reduced-motion"]  # no widget glides to where it stands
    # As root, which is usual in a container, the browser's own walls cannot be put up.
    command += ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    file = Path(folder, name).as_uri()
    try:
        ran = subprocess.run([*command, file], capture_output=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RuntimeError(f"save needs a browser that runs; got {error}") from error
    return ran.stdout.decode("utf-8")


def find_browser():
    """The path of the first usual browser that is there."""
    names = [os.environ["CHROMIUM"]] if os.environ.get("CHROMIUM") else BROWSERS
    for path in filter(None, map(shutil.which, names)):
        return path
    raise RuntimeError(
        f"save needs Chromium, Chrome or Edge to lay the picture out; got none of "
        f"{', '.join(names)}. Install one, set CHROMIUM to its path, or save the picture with "
        '"Share" on a page of the course.'
    )
