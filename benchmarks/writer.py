"""The writer in the page: writes `writer.md`. Run by `make bench`.

What the first click loads, how long a reader waits for the first word, how long a word takes with
the cache and without it, and how far the page is from attnlib on 200 texts. The slower machine is
this one, with the browser stopped for three quarters of the time, as in `practice.py`.
"""

import gzip
import os
import platform
import random
import statistics
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from attnlib.attention import softmax
from attnlib.models import writer
from attnlib.world import World, show
from benchmarks.attention import processor, table
from benchmarks.practice import at_both_speeds, resident
from tests.conftest import STEADY, Zipped, serve
from tools.install import ROOT, find_browser, say

SITE = ROOT / "_build" / "html"
RESULTS = Path(__file__).with_suffix(".md")
PAGE = "chapters/15-a-model-that-writes.html"
TEXTS, LENGTH = 200, 120
FIRST_WORD = """async () => {
  const words = () => document.querySelectorAll(".abh-writer [data-at]").length;
  const before = words(), from = performance.now();
  document.querySelector(".abh-writer [name=one]").click();
  while (words() === before) await new Promise(requestAnimationFrame);
  return performance.now() - from;
}"""
WRITE = """async ([text, options]) => {
  const slot = document.querySelector("[data-widget=Writer]"), from = performance.now();
  const found = await slot.write(text, options);
  return {...found, took: performance.now() - from};
}"""
N_LAST, TIMES, VISITS = 20, 15, 7
LOOKED_INTO = "chapters/16-what-is-a-head-doing.html"
INSPECT = """async ([text, changes]) => {
  const slot = document.querySelector(".abh-inspector").parentElement, from = performance.now();
  await slot.inspect(text, changes);
  const computed = performance.now() - from;
  await new Promise(requestAnimationFrame);
  return [computed, performance.now() - from];
}"""
WORDS = 40  # of a text that is looked into
SWAP = {"how": "swap", "where": "all", "away": 16}
SCENES = {
    "ledger": {"scene": "ledger"},
    "lens": {"scene": "lens"},
    "swap": {"scene": "heads"} | SWAP,
}


def disagreements(page, n_texts, seed=7):
    """Return how far a page with a Writer is from attnlib, on beginnings of random stories.

    Of each, both write three words at temperature 0. `words` counts the texts of which one differs,
    `probabilities` and `weights` are the largest differences.
    """
    world, model, rng = World(), writer(), random.Random(seed)
    found = {"words": 0, "probabilities": 0.0, "weights": 0.0}
    for _ in range(n_texts):
        story = world.tell(rng)[0]
        text = show(story[: rng.randrange(1, len(story))])
        page_has = page.evaluate(WRITE, [text, {"n": 3, "temperature": 0}])
        n, begun = len(page_has["tokens"]), model.encode(text)
        expected = model.write(begun, n, temperature=0)
        found["words"] += [0, *page_has["begun"], *page_has["tokens"]] != expected.tolist()
        trace = model.read(expected[:-1])
        last = np.stack(trace.weights)[:, :, -1]  # (n_layers, n_heads, n)
        for name, mine, theirs in (
            ("probabilities", softmax(trace.logits)[-n:], page_has["probabilities"]),
            ("weights", last, page_has["weights"][-1]),
        ):
            found[name] = max(found[name], float(np.abs(mine - np.array(theirs)).max()))
    return found


def visited(browser, site):
    """Return a page with a Writer, in a browser that has nothing of the site in its cache."""
    page = browser.new_context().new_page()
    page.goto(f"{site}/{PAGE}")
    page.wait_for_selector(".abh-writer fieldset:enabled")
    return page


def waiting(browser, site):
    """Return the milliseconds to the first word, of a word at 120 with and without cache; MB."""
    page = visited(browser, site)
    before = resident()
    firsts = [page.evaluate(FIRST_WORD)]
    memory = resident() - before
    for _ in range(VISITS - 1):
        other = visited(browser, site)
        firsts.append(other.evaluate(FIRST_WORD))
        other.context.close()
    story = [word for seed in (1, 2) for word in World().tell(random.Random(seed))[0][:-1]]
    # One token less: the mark before the story is the first.
    texts = {n: show(story[: n - 1]) for n in (LENGTH - N_LAST, LENGTH)}
    took = {n: [] for n in texts}
    for _ in range(TIMES):
        for n, text in texts.items():
            took[n].append(page.evaluate(WRITE, [text, {"n": 0}])["took"])
    shorter, whole = map(min, took.values())  # what other programs did not interrupt
    page.context.close()
    return [min(firsts), (whole - shorter) / N_LAST, whole, memory]


def looking(browser, site):
    """Return {what: (ms until it is computed, ms until it is drawn)}, medians, of a reader's text.

    A word is typed at the end of a text that grows to `WORDS`; then whole new texts are read. The
    other text of the swap has another first word.
    """
    page = browser.new_context().new_page()
    page.goto(f"{site}/{LOOKED_INTO}")
    page.wait_for_selector(".abh-inspector button[name=open]:enabled")
    rng, found = random.Random(3), {}
    page.evaluate(INSPECT, ["Ada", {}])  # loads the model
    for name, changes in SCENES.items():
        stories = []
        while len(stories) <= TIMES:
            story = World().tell(rng)[0]
            if len(show(story[:WORDS])) <= 380 and len(story) > WORDS:
                stories.append(story)
        typed = [stories[0][:n] for n in range(WORDS - TIMES, WORDS + 1)]
        news = [story[:WORDS] for story in stories[1:]]
        for kind, texts in (("a word more", typed), ("a new text", news)):
            took = []
            for words in texts:
                other = show(["money", *words[1:]])
                took.append(page.evaluate(INSPECT, [show(words), {**changes, "other": other}]))
            took = took[1:] if kind == "a word more" else took
            found[f"{name}, {kind}"] = tuple(map(statistics.median, zip(*took, strict=True)))
    page.context.close()
    return found


def report(found, close, looked):
    """Return the report in Markdown."""
    (file,) = SITE.glob("_static/writer/model.*.js")
    content = file.read_bytes()
    sizes = [["the model, as a script", len(content), len(gzip.compress(content, 6))]]
    names = ["click to first word", f"a word at {LENGTH}, with the cache", "the same without it"]
    times = [
        [name, *(f"{values[i]:.1f} ms" for values in found.values())]
        for i, name in enumerate(names)
    ]
    ratio = ["without it, as a multiple", *(f"{v[2] / v[1]:.0f}" for v in found.values())]
    memory = ["memory", *(f"{v[3]:.0f} MB" for v in found.values())]
    slow = [f"{times} times slower" if times > 1 else "as it is" for times in found]
    looks = [
        [name, *("{:.0f} / {:.0f} ms".format(*each[name]) for each in looked.values())]
        for name in looked[1]
    ]
    return f"""\
# The writer in the page, measured

Written by `make bench` on {processor()}, {platform.system()}.

## What the first click loads

{table(["file", "bytes", "with gzip"], [[n, f"{a:,}", f"{b:,}"] for n, a, b in sizes])}

## How long it takes, from this machine itself

The first word comes after the model has been loaded and has read the beginning; the browser has
nothing in its cache. A word with the cache is one of the last {N_LAST} of {LENGTH}; without a
cache, all {LENGTH} are read again for it. Other programs ran on the machine, so the least time is
given: of {VISITS} visits for the first word, of {TIMES} times for the others.

{table(["", *slow], [*times, ratio, memory])}

## How long a look into a reader's text takes

Median of {TIMES} texts of up to {WORDS} words: until the numbers are computed / until the next
frame is drawn, which comes every 16 ms. The swap's picture has a list of four heads. Both texts are
read, and then for each head the layers above it; where a word is typed, only that word is read. The
load of the machine was {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.

{table(["", *slow], looks)}

## How close it is to attnlib

On {TEXTS} beginnings of stories, with three words written after each at temperature 0: the texts
with another word, {close["words"]}; the largest difference of a probability,
{close["probabilities"]:.1e}; of an attention weight, {close["weights"]:.1e}.
"""


def main():
    """Measure, and write the report."""
    with serve(SITE, Zipped) as site, sync_playwright() as playwright:
        found = at_both_speeds("writer", playwright, waiting, site)
        looked = at_both_speeds("a look into the writer", playwright, looking, site)
        say(f"writer: {TEXTS} texts ...")
        browser = playwright.chromium.launch(executable_path=find_browser(), args=STEADY)
        page = browser.new_page()
        page.goto(f"{site}/{PAGE}")
        page.wait_for_selector(".abh-writer fieldset:enabled")
        close = disagreements(page, TEXTS)
        browser.close()
    RESULTS.write_text(report(found, close, looked), encoding="utf-8")
    say(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
