"""The encoder in the page: writes `encoder.md` and `encoder.json`. Run by `make bench`.

What a first sentence fetches, how long a reader waits for its heads, how long a sentence takes
once all is there, what that takes of memory, and how far the numbers are from attnlib's float32.
The largest differences go into encoder.json: the build tells the pages. The slower machine is this
one, with the browser stopped for three quarters of the time, as in `practice.py`.
"""

import base64
import functools
import gzip
import io
import json
import math
import os
import platform
import re
import statistics
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from attnlib import models, row_ledger
from benchmarks.attention import processor, table
from benchmarks.practice import at_both_speeds, resident
from tests.conftest import STEADY, Zipped, serve
from tools.encoder import LAYER_BITS, PLAN, SAMPLE
from tools.install import ROOT, find_browser, say

SITE = ROOT / "_build" / "html"
RESULTS = Path(__file__).with_suffix(".md")
MEASURED = Path(__file__).with_suffix(".json")
PAGE = "chapters/16-a-real-encoder.html"
LENGTHS = (8, 16, 32, 64, 128)
TIMES, SENTENCES, QUESTIONS = 7, 200, 20
SETTLED_BITS = f"{8 + LAYER_BITS} bits, settled"
BLOCKED = "**/encoder/fine-*"  # with these away, the numbers stay as they are at first

WAIT = """async (asked) => {
  const [text, options] = [asked].flat(); // a text, or one with options
  const from = performance.now();
  let heads = 0, longest = 0, last = from, on = true;
  const {port1, port2} = new MessageChannel(); // how long the page does not answer
  port1.onmessage = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (on) setTimeout(() => port2.postMessage(0), 4);
  };
  port2.postMessage(0);
  const {tokens} = await encoder.read(text, {...options, tell({weights}) {
    if (weights && !heads) heads = performance.now() - from;
  }});
  const all = performance.now() - from;
  on = false;
  return {heads, all, longest, tokens: tokens.length};
}"""
SETTLED = """new Promise((done) => {
  const from = performance.now();
  encoder.listen(({exact}) => { if (exact) done(performance.now() - from); });
})"""
READ = """async (text) => {
  const coded = ({buffer, byteOffset, byteLength}) =>
    new Uint8Array(buffer, byteOffset, byteLength).toBase64();
  const {exact, embedding, ...read} = await encoder.read(text, {ledger: true});
  const {weights, states, ledger} = read;
  return [...[weights, states, [embedding], ledger].map((each) => each.map(coded)), exact];
}"""


class Ready(Zipped):
    """The site from a host that compresses a script once, not each time it is asked for."""

    compressed = functools.cache(lambda path: gzip.compress(path.read_bytes(), 6))

    def send_head(self):
        """Answer with what is compressed already, or as usual with what is no piece."""
        path = Path(self.translate_path(self.path))
        if path.parent.name != "encoder":
            return super().send_head()
        body = Ready.compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path.name))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        return io.BytesIO(body)


def sentences():
    """Return sentences of the chapters, without formulas or code, the same ones each time."""
    found = set()
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                parts = re.split(r"(?<=[.?!])\s+", "".join(cell["source"]))
                found |= {s for s in parts if re.fullmatch(r"[A-Z][\w ,.;:'’-]{18,180}[.?!]", s)}
    order = np.random.default_rng(0).permutation(len(found))
    return [sorted(found)[at] for at in order[:SENTENCES]]


def text_of(tokens):
    """Return a text of so many tokens, [CLS] and [SEP] among them."""
    words = "we walked to the old bank of the river and then they went back home with money"
    repeated = words.split() * 9
    return " ".join(repeated[: tokens - 2])


def opened(context, site, wasm=True):
    """Return the page; a policy may forbid WebAssembly."""
    page = context.new_page()
    if not wasm:
        page.route(f"**/{PAGE}", without_wasm)
    page.goto(f"{site}/{PAGE}")
    return page


def without_wasm(route):
    """Answer with a page whose policy forbids WebAssembly."""
    answer = route.fetch()
    route.fulfill(response=answer, body=answer.text().replace(" 'wasm-unsafe-eval'", ""))


def waiting(browser, site):
    """Return {what: value} of a first sentence, of the next ones, and of memory."""
    context, found = browser.new_context(), {}
    for name in ("nothing in the browser's cache", "all of it there"):
        page = opened(context, site)
        before = resident()
        first = page.evaluate(WAIT, SAMPLE)
        found[f"click to the first heads, {name}"] = f"{first['heads'] / 1000:.2f} s"
        found[f"click to all of the reading, {name}"] = f"{first['all'] / 1000:.2f} s"
        found[f"the page's longest silence meanwhile, {name}"] = f"{first['longest']:.0f} ms"
        page.evaluate(SETTLED)
        found["memory"] = f"{resident() - before:.0f} MB"
        page.close()
    for wasm in (True, False):
        page = opened(context, site, wasm)
        page.evaluate(WAIT, SAMPLE)
        page.evaluate(SETTLED)
        how = "" if wasm else ", without WebAssembly"
        for tokens in LENGTHS:
            runs = [page.evaluate(WAIT, text_of(tokens)) for _ in range(TIMES)]
            assert runs[0]["tokens"] == tokens
            middle = statistics.median(run["all"] for run in runs)
            found[f"a reading of {tokens} tokens{how}"] = f"{middle:.0f} ms"
            silence = max(run["longest"] for run in runs)
            if tokens > 64:
                continue  # the longest ledger
            asked = [text_of(tokens), {"ledger": True}]
            middle = statistics.median(page.evaluate(WAIT, asked)["all"] for _ in range(TIMES))
            found[f"a reading of {tokens} tokens with its ledger{how}"] = f"{middle:.0f} ms"
        found[f"the page's longest silence in the last{how}"] = f"{silence:.0f} ms"
        page.close()
    context.close()
    return found


def differences(browser, site, texts, exact):
    """Return the largest and mean difference of weights, states, embedding, ledger; and embeddings.

    With all that follows the first 8 bits, or with none of it.
    """
    model = models.load_minilm()
    page = browser.new_page()
    if not exact:
        page.route(BLOCKED, lambda route: route.abort())
    page.goto(f"{site}/{PAGE}")
    page.evaluate(WAIT, SAMPLE)
    if exact:
        page.evaluate(SETTLED)
    worst, means, vectors = [], [], []
    for text in texts:
        *found, settled = page.evaluate(READ, text)
        assert settled == exact
        expected = model.read(text)
        n = len(expected.tokens)
        rows = row_ledger(model, text, n // 2)[1]
        wanted = [expected.weights, expected.states, model.embed([text]), rows]
        arrays = [np.stack([np.frombuffer(base64.b64decode(a), np.float32) for a in part])
                  for part in found]  # fmt: skip
        arrays[3] = arrays[3].reshape(len(rows), n, -1)[:, n // 2]
        away = [abs(a.reshape(w.shape) - w) for a, w in zip(arrays, wanted, strict=True)]
        worst.append([a.max() for a in away])
        means.append([a.mean() for a in away])
        vectors.append([arrays[2][0], wanted[2][0]])
    page.close()
    ours, theirs = np.swapaxes(vectors, 0, 1)
    return np.max(worst, axis=0), np.mean(means, axis=0), ours, theirs


def orders(ours, theirs):
    """Return of how many questions the first, and the first ten answers are those of float32."""

    def ranked(vectors):
        likeness = vectors[:QUESTIONS] @ vectors[QUESTIONS:].T
        return np.argsort(-likeness, axis=1)

    found, wanted = ranked(ours), ranked(theirs)
    return [int((found[:, :k] == wanted[:, :k]).all(axis=1).sum()) for k in (1, 10)]


def sizes():
    """Return rows [what, files, MB as they are, MB with gzip] of what is fetched when."""
    plan = json.loads(PLAN.read_text(encoding="utf-8"))
    rows = []
    for name, kind in (
        ("words and letters", "words"), ("places and special tokens", "base"),
        ("layers, 8 bits", "layer"), (f"the {LAYER_BITS} bits that follow", "fine"),
        ("rows of words", "rows"),
    ):  # fmt: skip
        files = [(PLAN.parent / file, size) for key, (file, size, _) in plan["pieces"].items()
                 if key.partition("-")[0] == kind]  # fmt: skip
        plain = sum(file.stat().st_size for file, _ in files)
        rows.append([name, len(files), plain / 1e6, sum(size for _, size in files) / 1e6])
    return rows, plan["megabytes"], plan["megabytesMore"]


def needed(texts):
    """Return how many files of rows the sentences need: the median, and 9 of 10 at most."""
    plan = json.loads(PLAN.read_text(encoding="utf-8"))
    tokenizer = models.load_minilm().tokenizer
    counts = [
        len({(i - plan["firstWord"]) // plan["rows"] for i in tokenizer.encode(text).ids
             if i >= plan["firstWord"]})
        for text in texts
    ]  # fmt: skip
    return int(np.median(counts)), int(np.percentile(counts, 90))


def report(found, accuracy, texts):
    """Return all tables in Markdown."""
    rows, first, more = sizes()
    files = [[what, str(count), f"{plain:.2f}", f"{zip_:.2f}"] for what, count, plain, zip_ in rows]
    times = [[name, *(found[slow][name] for slow in found)] for name in found[1]]
    slow = [f"{times} times slower" if times > 1 else "as it is" for times in found]
    close = []
    for name, (worst, means, ours, theirs) in accuracy.items():
        pairs = [f"{w:.5f} / {m:.1e}" for w, m in zip(worst, means, strict=True)]
        close.append([name, *pairs, *(f"{n} of {QUESTIONS}" for n in orders(ours, theirs))])
    median, most = needed(texts)
    labels = ["", "weights", "states", "sentence vectors", "ledgers"]
    labels += ["the first found is the same", "the first ten are"]
    return f"""\
# The encoder in the page, measured

Written by `make bench` on {processor()}, {platform.system()}, {os.cpu_count()} processors.

## What is fetched

{table(["what", "files", "MB", "with gzip"], files)}

A first sentence, "{SAMPLE}", fetches {first} MB with gzip,
and {more} MB afterwards. A sentence needs {median} files of rows (the median of {SENTENCES}), nine
of ten at most {most}.

## How long it takes, from this machine itself

The slowed browser stands still for 30 of each 40 ms, so short waits come out uneven.

{table(["", *slow], times)}

## How close it comes

The largest and the mean difference to `attnlib` with float32, over {SENTENCES} sentences of the
chapters; states are numbers up to about 10, sentence vectors have the length 1. Searched are
{SENTENCES - QUESTIONS} of them, by the {QUESTIONS} others.

{table(labels, close)}
"""


def stored(worst):
    """Return the largest differences, rounded up to two digits, by the names that pages have."""
    names, rounded = ("weights", "states", "embedding"), []
    for value in map(float, worst):
        step = 10.0 ** (math.floor(math.log10(value)) - 1)
        rounded.append(float(f"{math.ceil(value / step) * step:.2g}"))
    return {"errors": dict(zip(names, rounded, strict=True))}


def main():
    """Measure, and write the report; without the model there is nothing to measure."""
    if not list(SITE.glob("_static/encoder/plan.*.js")):
        say("encoder: left out, the site has no model.")
        return
    accuracy, texts = {}, sentences()
    for piece in SITE.glob("_static/encoder/*"):
        Ready.compressed(piece)
    with serve(SITE, Ready) as site, sync_playwright() as playwright:
        found = at_both_speeds("encoder", playwright, waiting, site)
        browser = playwright.chromium.launch(executable_path=find_browser(), args=STEADY)
        for name, exact in (("8 bits, at first", False), (SETTLED_BITS, True)):
            say(f"encoder: {name} ...")
            accuracy[name] = differences(browser, site, texts, exact)
        browser.close()
    worst, *_ = accuracy[SETTLED_BITS]
    MEASURED.write_text(json.dumps(stored(worst[:3])) + "\n", encoding="utf-8")
    RESULTS.write_text(report(found, accuracy, texts), encoding="utf-8")
    say(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
