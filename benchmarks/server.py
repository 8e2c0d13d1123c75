"""The simulated server in the page: writes `server.md`. Run by `make bench`.

How long a frame takes while a run of 200 requests is played, and how long after a new setting. The
times of script, of styles and layout and of painting come from a trace of the browser, so that they
depend less on what else the machine does.
"""

import os
import platform
import statistics
from collections import defaultdict
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.attention import processor, table
from tests.conftest import STEADY, Zipped, serve
from tools.install import ROOT, find_browser, say

SITE = ROOT / "_build" / "html"
RESULTS = Path(__file__).with_suffix(".md")
PAGE = "chapters/19-serving-many-readers.html"
SERVER = ".abh-server:has([name=play])"
TIMES = 5
PAGED = {"rate": 40, "continuous": True, "paged": True}
SETTINGS = {
    "as it starts": {"rate": 40},
    "continuous batching, paged cache": PAGED,
    "the same, answers of 500 tokens, 100 requests a second": {
        **PAGED,
        "output": 500,
        "rate": 100,
    },
}
# Shows the end of a run with these settings, and says how many requests were in memory at most.
SET = """async (root, settings) => {
  const {model} = root.closest(".widget-slot");
  for (const [name, value] of Object.entries({...settings, at: 1000})) model.set(name, value);
  model.save_changes();
  await new Promise((done) => setTimeout(done, 1500));
  return root.querySelector(".readout p:last-child .big").textContent;
}"""
# Plays the run from its beginning to its end; the milliseconds from frame to frame.
PLAY = """async (root) => {
  const button = () => root.querySelector("[name=play]");
  const frame = () => new Promise(requestAnimationFrame);
  button().click();
  await frame();
  const gaps = [];
  for (let last = await frame(); button().textContent.includes("Pause"); ) {
    const time = await frame();
    gaps.push(time - last);
    last = time;
  }
  return gaps;
}"""
# Moves the slider of requests a second; no two settings are the same.
CHANGE = """async (root, from) => {
  const frame = () => new Promise(requestAnimationFrame);
  const slider = root.querySelector("[name=rate]");
  for (slider.value = from; slider.value < 96; slider.value = Number(slider.value) + 5) {
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    await frame();
    await frame();
  }
}"""
PARTS = {
    "FireAnimationFrame": "script",
    "UpdateLayoutTree": "styles and layout",
    "Layout": "styles and layout",
    "PrePaint": "painting",
    "Paint": "painting",
    "Layerize": "painting",
    "Commit": "painting",
}


def traced(page, act):
    """Return what `act` returns, and what the browser did meanwhile."""
    events, ended = [], []
    session = page.context.browser.new_browser_cdp_session()
    session.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    session.on("Tracing.tracingComplete", lambda data: ended.append(True))
    trace = {"includedCategories": ["devtools.timeline"]}
    session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": trace})
    found = act()
    session.send("Tracing.end")
    while not ended:
        page.wait_for_timeout(50)
    session.detach()
    return found, events


def frames(events):
    """Return {part: milliseconds} of each frame: what it runs comes before what it paints."""
    found, before = [], None
    for event in sorted(events, key=lambda event: event["ts"]):
        part = PARTS.get(event["name"])
        if part == "script" != before:
            found.append(defaultdict(float))
        if part and found:
            found[-1][part] += event.get("dur", 0) / 1000
        before = part or before
    return found


def percentiles(times):
    """Return the median and the 95th percentile, as text."""
    return f"{statistics.median(times):.1f} / {statistics.quantiles(times, n=20)[-1]:.1f} ms"


def measure(root, settings):
    """Return {what: value} for a run with these settings."""
    found = {"requests in memory, at most": root.evaluate(SET, settings)}
    gaps, played = [], []
    for _ in range(TIMES):
        each, events = traced(root.page, lambda: root.evaluate(PLAY))
        gaps.append(each)
        played += frames(events)
    found["frames a second, median of each play"] = ", ".join(
        f"{1000 / statistics.median(each):.0f}" for each in gaps
    )
    late = sum(gap > 25 for each in gaps for gap in each) / sum(map(len, gaps))
    found["frames that came late"] = f"{late:.1%}"
    for part in dict.fromkeys(PARTS.values()):
        found[f"{part} for a frame"] = percentiles([frame[part] for frame in played])
    changed = []
    for first in range(1, TIMES + 1):
        _, events = traced(root.page, lambda first=first: root.evaluate(CHANGE, first))
        changed += [frame["script"] for frame in frames(events) if frame["painting"]]
    simulated = sorted(changed)[len(changed) // 2 :]  # every other frame has nothing to compute
    found["script after a new setting"] = percentiles(simulated)
    return found


def report(found):
    """Return the table in Markdown."""
    rows = [[name, *(run[name] for run in found.values())] for name in next(iter(found.values()))]
    return f"""\
# The simulated server in the page, measured

Written by `make bench` on {processor()}, {platform.system()}, {os.cpu_count()} processors, with a
load of {os.getloadavg()[0]:.1f} in the last minute.

A run of 200 requests is played {TIMES} times; the memory and the curves are drawn anew in each
frame. A frame came late if the one before it was more than 25 ms ago. Two times are the median and
the 95th percentile. After a new setting the 200 requests are simulated once before the next frame.

{table(["", *found], rows)}
"""


def main():
    """Measure, and write the report."""
    with serve(SITE, Zipped) as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=STEADY)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{site}/{PAGE}")
        root = page.locator(SERVER)
        root.scroll_into_view_if_needed()
        root.locator("fieldset:enabled").wait_for()
        found = {name: measure(root, settings) for name, settings in SETTINGS.items()}
        browser.close()
    RESULTS.write_text(report(found), encoding="utf-8")
    say(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
