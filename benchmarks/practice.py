"""Python in the page: writes `practice.md`. Run by `make bench`.

What is fetched on the first click on Run, how long a reader waits for it, for a check and after
Stop, and what it takes of memory. The slower machine is this one, with the browser stopped for
three quarters of the time: its own slow-down does not reach workers.
"""

import gzip
import json
import os
import platform
import signal
import statistics
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.attention import processor, table
from tests.conftest import STEADY, Zipped, serve
from tools.install import ROOT, find_browser, say

SITE = ROOT / "_build" / "html"
RESULTS = Path(__file__).with_suffix(".md")
PAGE = "chapters/02-queries-keys-values.html"
SLOT = ".practice-slot[data-exercise]"
CODE = """def my_softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)"""
RUN = """async (slot, code) => {
  slot.code = code;
  const from = performance.now();
  const {passed, message} = await slot.run();
  if (!passed) throw new Error(message);
  return performance.now() - from;
}"""
STOP = """async (slot) => {
  slot.code = "while True: pass";
  const running = slot.run();
  await new Promise((done) => setTimeout(done, 500));
  slot.querySelector("[name=stop]").click();
  await running;
}"""
CHECKS, SLICE = 20, 0.04


def processes(parent=None):
    """Return the ids of what this process has started, and of what those have."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found = parents.get(parent or os.getpid(), [])
    for each in found:
        found += parents.get(each, [])
    return found


def signaled(number, names):
    """Send a signal to those of the browser's processes that draw pages and run workers."""
    for process in names:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


def renderers():
    """Return the ids of these processes."""
    commands = {p: Path("/proc", str(p), "cmdline") for p in processes()}
    return [p for p, path in commands.items() if b"--type=renderer" in path.read_bytes()]


@contextmanager
def slowed(times):
    """Let the pages of the browser run for one part in so many."""
    over = threading.Event()

    def hold():
        while not over.wait(SLICE / times):
            found = renderers()
            signaled(signal.SIGSTOP, found)
            time.sleep(SLICE - SLICE / times)
            signaled(signal.SIGCONT, found)

    holder = threading.Thread(target=hold, daemon=True)
    if times > 1:
        holder.start()
    yield
    over.set()
    if times > 1:
        holder.join()


def resident():
    """Return the MB that the browser's pages and workers hold."""
    pages = (Path("/proc", str(p), "statm").read_text().split()[1] for p in renderers())
    return sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(browser, site):
    """Return the seconds from click to verdict, cold and warm, after Stop; of a check; and MB."""
    context, waits = browser.new_context(), []
    for _ in range(2):
        page = context.new_page()
        page.goto(f"{site}/{PAGE}")
        slot = page.locator(SLOT).first
        before = resident()
        waits.append(slot.evaluate(RUN, CODE) / 1000)
        memory = resident() - before
        checks = [slot.evaluate(RUN, CODE) / 1000 for _ in range(CHECKS)]
        slot.evaluate(STOP)
        stopped = slot.evaluate(RUN, CODE) / 1000
        page.close()
    context.close()
    return [*waits, stopped, statistics.median(checks), memory]


def sizes():
    """Return [name, MB as it is, MB with gzip] of each file that the first click fetches."""
    (manifest,) = SITE.glob("_static/practice/manifest.*.json")
    named = json.loads(manifest.read_text(encoding="utf-8"))
    folder = manifest.parent
    files = [folder / named["python"] / name for name in named["sizes"]]
    files += [folder / named["attnlib"], folder / named["worker"], manifest]
    rows = []
    for file in files:
        content = file.read_bytes()
        rows.append([file.name, len(content) / 1e6, len(gzip.compress(content, 6)) / 1e6])
    return [*rows, ["together", *(sum(column) for column in list(zip(*rows, strict=True))[1:])]]


def report(files, found):
    """Return both tables in Markdown."""
    rows = [[name, f"{plain:.2f}", f"{zipped:.2f}"] for name, plain, zipped in files]
    names = ["click to verdict, nothing in the browser's cache", "the same, all of it there",
             "click to verdict after Stop", "a check", "memory"]  # fmt: skip
    times = [
        [name, *(f"{value:.0f} MB" if name == "memory" else f"{value:.2f} s" for value in values)]
        for name, values in zip(names, zip(*found.values(), strict=True), strict=True)
    ]
    slow = [f"{times} times slower" if times > 1 else "as it is" for times in found]
    return f"""\
# Python in the page, measured

Written by `make bench` on {processor()}, {platform.system()}, {os.cpu_count()} processors.

## What the first click fetches

{table(["file", "MB", "with gzip"], rows)}

## How long it takes, from this machine itself

{table(["", *slow], times)}
"""


def at_both_speeds(name, playwright, measure, site):
    """Return {how many times slower: what `measure` finds in a browser of its own}."""
    found = {}
    for times in (1, 4):
        say(f"{name}: at 1/{times} of the speed ...")
        browser = playwright.chromium.launch(executable_path=find_browser(), args=STEADY)
        with slowed(times):
            found[times] = measure(browser, site)
        browser.close()
    return found


def main():
    """Measure, and write the report; without Python for the page there is nothing to measure."""
    if not list(SITE.glob("_static/practice/manifest.*.json")):
        say("practice: left out, the site has no Python.")
        return
    with serve(SITE, Zipped) as site, sync_playwright() as playwright:
        found = at_both_speeds("practice", playwright, measure, site)
    RESULTS.write_text(report(sizes(), found), encoding="utf-8")
    say(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
