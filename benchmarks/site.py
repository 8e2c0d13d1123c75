"""The built site against its goals, page by page: writes `site.md`. Run by `make bench`.

What a visit is and what axe looks at are those of the tests in `tests/site`. Lighthouse comes
from the npm registry for this command alone, into `_build`; without Node its columns stay empty.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from playwright.sync_api import sync_playwright

from _ext.course import chapters as course
from benchmarks.attention import processor, table
from tests.conftest import CHROMIUM_FLAGS, STEADY, Zipped, serve
from tests.site.harness import awake
from tests.site.looks import ALL, axe_findings
from tests.site.pages import PAGES, SCHEMES, WIDTHS, address, left, use_widgets, visit
from tools.install import ROOT, SetupError, find_browser, last_line, say

SITE = ROOT / "_build" / "html"
RESULTS = Path(__file__).with_suffix(".md")

# --- what a visit leaves behind ------------------------------------------------------------------

TOP = """() => {
  const picture = document.querySelector("article :is(figure, .widget-slot)");
  return picture && picture.getBoundingClientRect().top + scrollY;
}"""


def measure(browser, name, site):
    """Return what the page asked of others, said, shifted and weighed, the worst of each.

    And where its first picture starts, at 1280 pixels.
    """
    every = []
    for scheme, width in product(SCHEMES, WIDTHS):
        theme = "light" if scheme == "http" else "dark"
        with visit(browser, address(scheme, name, site), width, theme) as (page, seen):
            top = page.evaluate(TOP)
            use_widgets(page, seen)
        every.append(seen | {"top": top})
    with visit(browser, f"{site}/{name}", WIDTHS[0]) as (page, _):
        faults = axe_findings(page, ALL)
    return {
        "requests": sum(len(left(v["requests"], site, SITE.as_uri())) for v in every),
        "console": sum(len(v["noise"]) for v in every),
        "axe": sum(map(len, faults.values())),
        "overhang": max(max(v["overhang"]) for v in every),
        "shift": max(sum(shift["value"] for shift in v["shifts"]) for v in every),
        "weight": max(v["bytes"] for v in every[: len(WIDTHS)]) / 1024,  # those over http
        "picture": every[0]["top"],
    }


# --- Lighthouse ----------------------------------------------------------------------------------

LIGHTHOUSE = "12.8.2"  # 13 needs Node 22, which Debian does not have yet
CATEGORIES = ["performance", "accessibility", "best-practices", "seo"]


def install_lighthouse():
    """Return the path of Lighthouse, installed if need be."""
    folder = ROOT / "_build" / f"lighthouse-{LIGHTHOUSE}"
    program = folder / "node_modules" / "lighthouse" / "cli" / "index.js"
    if not (shutil.which("npm") and shutil.which("node")):
        raise SetupError("Node 18 or newer with npm is needed and not on the PATH")
    if not program.exists():
        say(f"Installing Lighthouse {LIGHTHOUSE} from the npm registry ...")
        command = [shutil.which("npm"), "install", "--prefix", str(folder), "--ignore-scripts"]
        command += ["--no-audit", "--no-fund", f"lighthouse@{LIGHTHOUSE}"]
        run(command, "npm")
    return program


def lighthouse(program, url, runs):
    """Return the median scores of the page on a simulated phone, and the speed of this machine."""
    command = [shutil.which("node"), str(program), url, "--quiet", "--output=json"]
    command += ["--no-enable-error-reporting"]  # nothing is told to anybody
    command += [f"--only-categories={','.join(CATEGORIES)}", "--disable-full-page-screenshot"]
    command += ["--chrome-flags=" + " ".join(["--headless=new", *CHROMIUM_FLAGS])]
    reports = [json.loads(run(command, "Lighthouse")) for _ in range(runs)]
    scores = [[report["categories"][c]["score"] for report in reports] for c in CATEGORIES]
    index = statistics.median(report["environment"]["benchmarkIndex"] for report in reports)
    return [round(100 * statistics.median(each)) for each in scores], index


def run(command, name, folder=ROOT):
    """Return what a program prints; one line says what went wrong with it."""
    env = os.environ | {"CHROME_PATH": find_browser(), "PYTHONPATH": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder)
    if done.returncode:
        raise SetupError(f"{name} failed: {last_line(done.stderr + done.stdout)}")
    return done.stdout


# --- from a slider's input to the repaint --------------------------------------------------------

ROUNDS = 150
# An empty change is the same event on a slider that nothing listens to: what the browser itself
# takes from an input to the end of the next frame. The two are timed in turn.
REPAINT = """async (rounds) => {
    const real = document.querySelector(".abh-scaling-explorer input[name=d_k]");
    const idle = real.cloneNode();
    idle.style.cssText = "position: fixed; inset: 0 auto auto 0; width: 200px";
    document.body.append(idle);
    const painted = () => new Promise((done) => requestAnimationFrame(() => {
        const channel = new MessageChannel();  // its message comes after the frame is drawn
        channel.port1.onmessage = done;
        channel.port2.postMessage(0);
    }));
    const change = async (slider, value) => {
        const from = performance.now();
        slider.value = value;
        slider.dispatchEvent(new Event("input", {bubbles: true}));
        await painted();
        return performance.now() - from;
    };
    const times = {empty: [], slider: []};
    const top = Number(real.max);
    for (let round = 0; round < rounds; round++) {
        for (const [name, slider] of [["empty", idle], ["slider", real]]) {
            await new Promise((rest) => setTimeout(rest, 5 + 11 * Math.random()));
            times[name].push(await change(slider, top - (round % 2)));
        }
    }
    idle.remove();
    return times;
}"""


def repaint(browser, site):
    """Return {slow-down of the CPU: words} for the first slider of ScalingExplorer."""
    page = browser.new_page()
    page.goto(f"{site}/chapters/04-scaling.html")
    awake(page)
    page.wait_for_timeout(1000)
    session = page.context.new_cdp_session(page)
    found = {}
    for slow in (1, 4):
        session.send("Emulation.setCPUThrottlingRate", {"rate": slow})
        page.evaluate(REPAINT, 10)
        times = page.evaluate(REPAINT, ROUNDS)
        slider, empty = (percentiles(times[name]) for name in ("slider", "empty"))
        found[slow] = "{:.0f} / {:.0f} ms; of an empty change {:.0f} / {:.0f}".format(
            *slider, *empty
        )
    page.close()
    return found


def percentiles(times):
    """Return the median and the 95th percentile."""
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


# --- build times ---------------------------------------------------------------------------------


def build_times():
    """Return the seconds of three builds of a copy: from nothing, no change, one chapter."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "book")
        made = shutil.ignore_patterns("_build", ".venv", ".git", "__pycache__", ".hypothesis")
        shutil.copytree(ROOT, copy, ignore=made)
        seconds = [build(copy), build(copy)]
        chapter = copy / "chapters" / "05-masks.ipynb"
        notebook = json.loads(chapter.read_text(encoding="utf-8"))
        cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
        cell["source"] = ["# Changed.\n", *cell["source"]]
        chapter.write_text(json.dumps(notebook), encoding="utf-8")
        return [*seconds, build(copy)]


def build(folder):
    """Return the seconds of a build."""
    start = time.perf_counter()
    run([sys.executable, "-m", "tools.build"], "the build", folder)
    return time.perf_counter() - start


# --- what is right or wrong, and no number -------------------------------------------------------

TESTED = {
    "figures: words for each, ink at least 4.5 : 1 in both themes": "figure or visit_leaves",
    "text, mathematics, outputs and a picture of each widget without JavaScript, and when a "
    "module fails": "without_javascript or outputs_of_the_notebook or modules_fail",
}


def tested(expression):
    """Return how many of the site's tests of this name passed and failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", expression]
    done = subprocess.run([*command, "tests/site"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip().rpartition("\n")[2].partition(" in ")[0].partition(",")[0] + " tests"


# --- the report ----------------------------------------------------------------------------------


def report(pages, scores, repaints, builds, tests, busy):
    """Return the tables of goals, of pages and of chapters, in Markdown.

    `busy` is how many programs ran before the measurement began, on average.
    """

    def worst(key, word):
        return word.format(max(page[key] for page in pages.values()))

    lighthouse = "not measured"
    if scores:
        lowest = map(min, zip(*(score for score, _ in scores.values()), strict=True))
        lighthouse = " / ".join(map(str, lowest))
    goals = [
        ["requests that leave the site", "0", "6-12", worst("requests", "{}")],
        ["console messages", "0", "2", worst("console", "{}")],
        ["axe-core violations, nodes", "0", "4 and more", worst("axe", "{}")],
        ["Lighthouse: performance / accessibility / best practices / SEO",
         "98 / 100 / 100 / 100", "38 / 100 / 96 / 90", lighthouse],
        ["layout shift, loading and in use", "0.02", "0.38", worst("shift", "{:.3f}")],
        ["pixels that hang over the side", "0", "", worst("overhang", "{}")],
        ["first visit, scrolled to the end, gzip", "200 KiB", "830-910 KiB",
         worst("weight", "{:.0f} KiB")],
    ]  # fmt: skip
    if repaints:
        goals += [
            ["slider to repaint, median / p95", "one frame", "", repaints[1]],
            ["the same, CPU slowed down four times", "", "", repaints[4]],
            ["build from nothing", "45 s", "", f"{builds[0]:.0f} s"],
            ["build, nothing changed", "2 s", "", f"{builds[1]:.1f} s"],
            ["build, one chapter changed", "6 s", "", f"{builds[2]:.1f} s"],
            *([words, "all", "none", outcome] for words, outcome in tests.items()),
        ]
    rows = [
        [
            name.removesuffix(".html"),
            *(str(page[key]) for key in ("requests", "console", "axe")),
            f"{page['shift']:.3f}",
            f"{page['weight']:.0f}",
            *(map(str, scores[name][0]) if scores else [""] * 4),
        ]
        for name, page in pages.items()
    ]
    chapters = [
        [c.heading, f"{page['picture']:.0f}", str(c.reading), str(c.practice)]
        for c in course.read(ROOT)
        if (page := pages.get(f"{c.page}.html"))
    ]
    head = ["page", "requests off the site", "console messages", "axe violations", "layout shift"]
    head += ["KiB", "performance", "accessibility", "best practices", "SEO"]
    speed = ""
    if scores:
        index = statistics.median(index for _, index in scores.values())
        speed = f" Lighthouse {LIGHTHOUSE} gives this machine a benchmark index of {index:.0f}."
        speed += " It expects 1,000 or more, and a lower one lowers the score of performance."
    if busy > 1:
        speed += f" Other programs ran as well, with a load average of {busy:.1f}, so the times"
        speed += " are longer than on an idle machine."
    return f"""\
# The site, measured

Written by `make bench` on {processor()}, {platform.system()}, {os.cpu_count()} processors.{speed}

## The goals, and the worst {"page" if repaints else f"of {len(pages)} pages"}

{table(["", "goal", "a default Jupyter Book page", "measured"], goals)}

## Page by page

Each page was visited over http and from disk, at 1280 and 360 pixels, in the light and in the \
dark theme, scrolled to its end, and its widgets were used.

{table(head, rows)}

## Chapter by chapter

The first picture of a chapter begins within 200 pixels of the top, at 1280 by 800. The minutes \
are those that newcomers took.

{table(["chapter", "first picture, px", "minutes to read", "to practice"], chapters)}
"""


def main():
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--runs", type=int, default=3, help="Lighthouse runs a page, 3 if not given; 0 for none"
    )
    parser.add_argument(
        "pages", nargs="*", metavar="page", help="measure these alone, without builds and tests"
    )
    arguments = parser.parse_args()
    busy = os.getloadavg()[1]
    runs, names = arguments.runs, [f"{name}.html" for name in arguments.pages]
    if not PAGES:
        raise SetupError("there is no built site: run `make book` first")
    if not find_browser():
        raise SetupError("there is no browser: run `make browser` first")
    if unknown := set(names) - set(PAGES):
        raise SetupError(f"no such page: {', '.join(sorted(unknown))}")
    builds = repaints = None
    if not names:
        say("site: build times ...")
        builds = build_times()
    pages, scores = {}, {}
    with serve(SITE, Zipped) as site:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=STEADY)
            if not names:
                say("site: slider to repaint ...")
                repaints = repaint(browser, site)
            for name in names or PAGES:
                say(f"site: {name} ...")
                pages[name] = measure(browser, name, site)
            browser.close()
        try:
            program = install_lighthouse() if runs else None
        except SetupError as error:
            say(f"Lighthouse is left out: {error}.")
            program = None
        for name in (names or PAGES) if program else []:
            say(f"site: Lighthouse, {name} ...")
            scores[name] = lighthouse(program, f"{site}/{name}", runs)
    tests = {} if names else {words: tested(each) for words, each in TESTED.items()}
    RESULTS.write_text(report(pages, scores, repaints, builds, tests, busy), encoding="utf-8")
    say(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    try:
        main()
    except SetupError as error:
        sys.exit(f"site: {error}.")
