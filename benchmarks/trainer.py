"""Training in the page: writes `trainer.md` and `attnlib/data/trainer.json`. Run by `make bench`.

How many steps a second the widget `Trainer` does, how long it takes until it has learned the task
from ten seeds, how many frames the page draws meanwhile, and what it takes of memory; then what
becomes of each variation, which the chapter tells. The slower machine is this one, with the browser
stopped for three quarters of the time, as in `practice.py`.
"""

import json
import os
import platform
import re
import statistics
from pathlib import Path

from playwright.sync_api import sync_playwright

from attnlib.models.induction import MEASURED
from attnlib.widgets.kit import modules
from benchmarks.attention import processor, table
from benchmarks.encoder import without_wasm
from benchmarks.practice import at_both_speeds, resident
from tests.conftest import STEADY, Zipped, serve
from tools.install import ROOT, find_browser, say

SITE = ROOT / "_build" / "html"
RESULTS = Path(__file__).with_suffix(".md")
PAGE = "chapters/13-looking-back.html"
SLOT = "[data-widget=Trainer]"
SEEDS = range(1, 11)
FEW = range(1, 4)
LEARNED = 0.95
VARIATIONS = {
    "two layers of two heads": ({}, SEEDS),
    "two layers of one head": ({"heads": 1}, SEEDS),
    "one layer": ({"layers": 1}, FEW),
    "no residual connections": ({"without": "residual"}, FEW),
    "no positions": ({"without": "positions"}, FEW),
    "no mask": ({"without": "mask"}, FEW),
    "ten times the rate": ({"rate": 0.12}, FEW),
    "a tenth of the rate": ({"rate": 0.0012}, FEW),
    "next letter": ({"task": "next"}, FEW),
    "next letter, one layer": ({"task": "next", "layers": 1}, FEW),
    "next letter, one layer, no mask": ({"task": "next", "layers": 1, "without": "mask"}, FEW),
}
# Trains to the end as fast as possible, and returns what each step found and the accuracy.
TRAIN = """async (slot, [settings, seed]) => {
  for (const [name, value] of Object.entries(settings)) slot.model.set(name, value);
  const {accuracy} = await slot.train({seed});
  return [accuracy, slot.story];
}"""
# Unticks these heads of what was trained, and returns the accuracy without them.
WITHOUT = """async (slot, heads) => {
  const before = slot.querySelector("[data-part=measured]").textContent;
  for (const box of slot.querySelectorAll("[name=head]"))
    if (box.checked === heads.includes(box.value)) box.click();
  let text = "–";
  for (let i = 0; i < 100 && (text === "–" || text === before); i++) {
    await new Promise((done) => setTimeout(done, 50));
    text = slot.querySelector("[data-part=measured]").textContent;
  }
  return Number(text);
}"""
SETS = [["0,0"], ["0,1"], ["0,0", "0,1"], ["1,0"], ["1,1"], ["1,0", "1,1"]]
# Presses Train at a pace, and watches until the mean accuracy of four steps has passed 0.95.
WATCH = """(slot, [pace, seed, enough]) => new Promise((done) => {
  slot.querySelector("[name=reset]").click();
  slot.model.set("pace", pace);
  slot.model.set("seed", seed);
  let frames = 0, learned = null;
  const gaps = [], from = performance.now();
  slot.querySelector("[name=train]").click();
  const look = (time, last = time) => {
    frames++;
    gaps.push(time - last);
    const story = slot.story, now = performance.now();
    const mean = story.slice(-4).reduce((sum, row) => sum + row.accuracy / 4, 0);
    if (mean > enough) learned = [story.length, now - from];
    if (!learned && story.length < 500) {
      requestAnimationFrame((next) => look(next, time));
      return;
    }
    slot.querySelector("[name=train]").click(); // pause
    gaps.sort((a, b) => a - b);
    done({learned, steps: story.length, seconds: (now - from) / 1000, frames,
      gap: gaps[Math.floor(gaps.length / 2)], late: gaps[Math.floor(0.95 * gaps.length)]});
  };
  requestAnimationFrame(look);
})"""
IDLE = """() => new Promise((done) => {
  let frames = 0;
  const from = performance.now();
  const look = () => {
    frames++;
    if (performance.now() - from < 2000) requestAnimationFrame(look);
    else done(frames / 2);
  };
  requestAnimationFrame(look);
})"""


def mean(story, value, to):
    """Return the mean of the last four steps up to one: of 64 sentences."""
    part = story[max(0, to - 4) : to]
    return sum(map(value, part)) / len(part)


def first(story, test):
    """Return the first step, from the fourth on, at which `test` holds, or None."""
    return next((step for step in range(4, len(story) + 1) if test(step)), None)


def told(settings, accuracy, story):
    """Return what the chapter needs of a training."""
    heads = settings.get("heads", 2)
    end = len(story)
    losses = [mean(story, lambda row: row["loss"], step) for step in range(1, end + 1)]
    drop = [
        next((k + 1 for k, loss in enumerate(losses) if k > 2 and loss < bound), None)
        for bound in (2.3, 0.8)
    ]
    return {
        "accuracy": round(accuracy, 4),
        "learned": first(
            story, lambda step: mean(story, lambda row: row["accuracy"], step) > LEARNED
        ),
        "drop": drop if all(drop) else None,
        "one_back": round(mean(story, lambda row: max(row["oneBack"][:heads]), end), 3),
        "on_answer": round(mean(story, lambda row: max(row["onAnswer"][-heads:]), end), 3),
        "one_ahead": round(mean(story, lambda row: max(row["oneAhead"]), end), 3),
    }


# What the model gives to the letters that have occurred so far, before the training and on the
# plateau: the mean over the positions of 200 new sentences that have an answer.
OF_SEEN = """(() => {
  const settings = {layers: 2, heads: 2, rate: 0.012, steps: 500, task: "last",
    residual: true, positions: true, causal: true};
  const learner = makeLearner({...settings, seed: SEED}, null);
  const {tokens, answers} = learner.draw(999, 200);
  const found = [];
  for (let step = 0; step <= 90; step++) {
    if (step === 0 || step === 90) {
      let sum = 0, even = 0, asked = 0;
      for (let from = 0; from < tokens.length; from += 24) {
        const sentence = Array.from(tokens.slice(from, from + 24));
        learner.read(sentence).probabilities.forEach((row, i) => {
          if (answers[from + i] < 0) return;
          const seen = new Set(sentence.slice(0, i + 1));
          for (const letter of seen) sum += row[letter];
          even += seen.size / 16;
          asked++;
        });
      }
      found.push(sum / asked);
      if (step) found.push(even / asked);
    }
    learner.step();
  }
  return found.map((part) => Math.round(1e4 * part) / 1e4);
})()"""


def plateau(page, seed):
    """Return the probability of letters seen at step 0 and step 90, and that of an even guess."""
    source = re.sub(r"^export ", "", modules.source("trainer_learner"), flags=re.MULTILINE)
    return page.evaluate(f"() => {{ {source}\n return {OF_SEEN.replace('SEED', str(seed))}; }}")


def opened(context, site, wasm=True):
    """Return the page and the widget's slot; a policy may forbid WebAssembly."""
    page = context.new_page()
    if not wasm:
        page.route(f"**/{PAGE}", without_wasm)
    page.goto(f"{site}/{PAGE}")
    slot = page.locator(SLOT)
    slot.scroll_into_view_if_needed()
    slot.locator("fieldset:enabled").wait_for()
    return page, slot


def measure(browser, site):
    """Return {what: value} at one speed."""
    context, found = browser.new_context(viewport={"width": 1280, "height": 900}), {}
    page, slot = opened(context, site)
    found["frames a second, nothing to do"] = f"{page.evaluate(IDLE):.0f}"
    before = resident()
    for pace, name in (("fast", "as fast as possible"), ("frame", "a step a frame")):
        runs = [slot.evaluate(WATCH, [pace, seed, LEARNED]) for seed in SEEDS]
        times = [run["learned"][1] / 1000 for run in runs if run["learned"]]
        found[f"seeds that learn, {name}"] = f"{len(times)} of {len(runs)}"
        found[f"seconds until then, {name}"] = f"{min(times):.1f} to {max(times):.1f}"
        rates = [run["steps"] / run["seconds"] for run in runs]
        found[f"steps a second, {name}"] = f"{statistics.median(rates):.0f}"
        frames = [run["frames"] / run["seconds"] for run in runs]
        found[f"frames a second, {name}"] = f"{min(frames):.0f} to {max(frames):.0f}"
        gaps = [statistics.median(run[kind] for run in runs) for kind in ("gap", "late")]
        found[f"ms between frames, median and 95 %, {name}"] = f"{gaps[0]:.0f}, {gaps[1]:.0f}"
    found["memory"] = f"{resident() - before:.0f} MB"
    page.close()
    page, slot = opened(context, site, wasm=False)
    runs = [slot.evaluate(WATCH, ["fast", seed, LEARNED]) for seed in FEW]
    name = "in plain JavaScript"
    times = [run["learned"][1] / 1000 for run in runs]
    found[f"seconds until it has learned (seeds 1 to 3), {name}"] = (
        f"{min(times):.1f} to {max(times):.1f}"
    )
    rates = [run["steps"] / run["seconds"] for run in runs]
    found[f"steps a second, {name}"] = f"{statistics.median(rates):.0f}"
    context.close()
    return found


def vary(browser, site):
    """Return what becomes of each variation, by seed."""
    found = {}
    for name, (settings, seeds) in VARIATIONS.items():
        page, slot = opened(browser, site)
        say(f"trainer: {name} ...")
        found[name] = {
            str(seed): told(settings, *slot.evaluate(TRAIN, [settings, seed])) for seed in seeds
        }
        if not settings:
            slot.evaluate(TRAIN, [settings, 1])
            found[name]["1"]["without"] = {
                " ".join(heads): slot.evaluate(WITHOUT, heads) for heads in SETS
            }
            blank = browser.new_page()  # no policy forbids it a script
            for seed, run in found[name].items():
                run["of_seen"] = plateau(blank, seed)
            blank.close()
        page.close()
    return found


def spread(values, digits=2):
    """Return the least and the largest of some numbers, as text."""
    texts = sorted({f"{value:.{digits}f}" for value in values}, key=float)
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def report(found, varied):
    """Return the tables in Markdown."""
    rows = [[name, *(times[name] for times in found.values())] for name in found[1]]
    slow = [f"{times} times slower" if times > 1 else "as it is" for times in found]
    variations = []
    for name, runs in varied.items():
        runs = list(runs.values())
        learned = [run["learned"] for run in runs if run["learned"]]
        variations.append([
            name, str(len(runs)), spread((run["accuracy"] for run in runs), 3),
            spread(learned, 0) if learned else "never",
            *(spread(run[kind] for run in runs) for kind in ("one_back", "on_answer", "one_ahead")),
        ])  # fmt: skip
    names = ["", "seeds", "accuracy", "above 0.95 at step"]
    names += ["one back", "on the answer", "one ahead"]
    return f"""\
# Training in the page, measured

Written by `make bench` on {processor()}, {platform.system()}, {os.cpu_count()} processors,
of which other programs took {os.getloadavg()[0]:.1f} at the end (the load of the last minute).

## How long it takes

The model has learned when the mean accuracy of four steps, 64 sentences, has passed 0.95.
The slowed browser stands still for 30 of each 40 ms.

{table(["", *slow], rows)}

## What becomes of each variation

After 500 steps of 16 sentences: the accuracy on 200 new sentences, and where the best heads look,
one back in the first layer and on the answer in the last one.

{table(names, variations)}
"""


def main():
    """Measure, and write the report and what the chapter reads."""
    with serve(SITE, Zipped) as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=STEADY)
        varied = vary(browser, site)
        browser.close()
        MEASURED.write_text(json.dumps(varied, indent=1) + "\n", encoding="utf-8")
        found = at_both_speeds("trainer", playwright, measure, site)
    RESULTS.write_text(report(found, varied), encoding="utf-8")
    say(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
