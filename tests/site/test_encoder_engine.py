"""`self.encoder` in a real browser: what it reads, what it fetches, and how it fails.

On a page of its own, with the published model: CONTRIBUTING says where that comes from.
"""

import base64
import html
import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from _ext.encoder import page as pages  # _ext
from _ext.pages import head
from attnlib import models, row_ledger, softmax
from attnlib.models import mean_pool
from tests.conftest import ROOT, serve
from tests.site.harness import BLOCKED
from tools import encoder

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<link rel="icon" href="data:,"><script defer data-encoder="{facts}" src="_static/encoder.js">
</script></head><body><p>A page.</p></body></html>"""
SENTENCES = [
    "The cat sat on the mat because it was tired.",
    "I went to the bank to deposit money",
    "Crème brûlée, 北京 and 🙂: [MASK]!",
    "",
]
COARSE = {"weights": 0.06, "states": 0.1, "embedding": 0.01}
FINE = {"weights": 0.003, "states": 0.006, "embedding": 0.0006}
LISTEN = "() => { self.heard = []; encoder.listen((news) => heard.push(news)); }"
READ = """async ([text, options]) => {
  const told = [];
  const tell = (news) => told.push(news.tokens ? "tokens" : news.layer);
  const coded = ({buffer, byteOffset, byteLength}) =>
    new Uint8Array(buffer, byteOffset, byteLength).toBase64();
  try {
    const {tokens, exact, embedding, ...parts} = await encoder.read(text, {tell, ...options});
    const found = {tokens, exact, told, embedding: [coded(embedding)]};
    for (const [name, arrays] of Object.entries(parts)) found[name] = arrays.map(coded);
    return found;
  } catch (error) {
    return {name: error.name, error: error.message};
  }
}"""
SWAP = """async ([text, other]) => {
  const {weights, values, tokens: {length: n}} = await encoder.read(other);
  const replaced = weights.flatMap((all, layer) => Array.from({length: 12}, (_, h) => {
    const output = new Float32Array(n * 32);
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) for (let d = 0; d < 32; d++)
      output[i * 32 + d] += all[(h * n + i) * n + j] * values[layer][j * 384 + h * 32 + d];
    return [layer, h, output];
  }));
  const {states} = await encoder.read(text, {replaced});
  return Array.from(states[6].subarray(5 * 384, 6 * 384));
}"""
EXACT = """() => new Promise((done) => {
  if (self.heard.at(-1)?.exact) done();
  encoder.listen(({exact}) => { if (exact) done(); });
})"""


def page_text(wasm=True):
    """The page, as the site would make it; a policy may forbid WebAssembly."""
    text = head.with_policy(PAGE.format(facts=html.escape(json.dumps(pages.facts()))))
    return text if wasm else text.replace(" 'wasm-unsafe-eval'", "")


@pytest.fixture(scope="module")
def minilm():
    try:
        return models.load_minilm()
    except models.MissingModelError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def folder(minilm, tmp_path_factory):
    """The page with all that it may load."""
    encoder.prepare()
    pages.plan_script.cache_clear()
    folder = tmp_path_factory.mktemp("encoder")
    app = SimpleNamespace(outdir=folder)
    pages.write_files(app, SimpleNamespace(format="html"))
    for name in ("encoder.js", "encoder_loader.js"):
        shutil.copy(ROOT / "_ext" / "encoder" / "static" / name, folder / "_static")
    (folder / "page.html").write_text(page_text(), encoding="utf-8")
    (folder / "slow.html").write_text(page_text(wasm=False), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def host(folder):
    with serve(folder) as address:
        yield address


def opened(page, address):
    """Open the page, and note what it asks for and what it says."""
    page.asked = []
    page.on("request", lambda request: page.asked.append(request.url.rpartition("/")[2]))
    page.goto(address)
    page.evaluate(LISTEN)
    return page


def read(page, text, **options):
    """Read a text in the page; arrays come as they are there."""
    found = page.evaluate(READ, [text, options])
    arrays = {"weights", "states", "queries", "keys", "values", "embedding", "ledger"}
    for name in arrays & found.keys():
        parts = [np.frombuffer(base64.b64decode(part), np.float32) for part in found[name]]
        found[name] = np.stack(parts)
    return found


def heard(page):
    """What listeners were told last."""
    return page.evaluate("heard.at(-1)")


def fetched(page, kind):
    """How often the page has asked for pieces of a kind."""
    return sum(name.startswith(kind) for name in page.asked)


def assert_equal(found, sentence, minilm, errors):
    """Hold a reading against attnlib's."""
    expected = minilm.read(sentence)
    n = len(expected.tokens)
    assert found["tokens"] == expected.tokens and found["told"] == ["tokens", *range(6)]
    shapes = {"weights": (6, 12, n, n), "states": (7, n, 384), "queries": (6, n, 384)}
    for name, shape in shapes.items():
        assert found[name].size == np.prod(shape)
    weights = found["weights"].reshape(shapes["weights"])
    assert np.abs(weights - expected.weights).max() <= errors["weights"]
    states = found["states"].reshape(shapes["states"])
    assert np.abs(states - expected.states).max() <= errors["states"]
    embedding = minilm.embed([sentence])
    assert np.abs(found["embedding"] - embedding).max() <= errors["embedding"]
    # Queries and keys make the weights: of layer 4, head 7.
    q, k = (found[name][4].reshape(n, 12, 32)[:, 7] for name in ("queries", "keys"))
    np.testing.assert_allclose(weights[4, 7], softmax(q @ k.T / np.sqrt(32)), atol=1e-5)


# ------------------------------------------------------------------------------------ it reads


def test_it_reads_as_attnlib_does_and_settles(page, host, minilm):
    opened(page, f"{host}/page.html")
    assert page.asked == ["page.html", "encoder.js"]
    facts = page.evaluate("({...encoder, listeners: 0, listen: 0, read: 0, stop: 0})")
    assert facts["missing"] == "" and facts["state"] == "idle"
    assert facts["megabytes"] < 13 and facts["megabytesMore"] < 9
    assert all(0 < facts["errors"][name] <= most for name, most in FINE.items())
    first = read(page, SENTENCES[0])
    assert_equal(first, SENTENCES[0], minilm, COARSE)
    page.evaluate(EXACT)
    last = heard(page)
    assert last["state"] == "ready" and last["got"] == last["asked"] and not last["slow"]
    assert last["got"] / 1e6 == pytest.approx(facts["megabytes"] + facts["megabytesMore"], abs=0.5)
    for sentence in SENTENCES:
        found = read(page, sentence)
        assert found["exact"] and not first["exact"]
        assert_equal(found, sentence, minilm, FINE)
    assert fetched(page, "layer") == fetched(page, "fine") == 6
    assert len(set(page.asked)) == len(page.asked)


def test_a_hidden_word_is_attended_to_by_nobody(page, host, minilm):
    opened(page, f"{host}/page.html")
    read(page, SENTENCES[0])
    page.evaluate(EXACT)
    found = read(page, SENTENCES[0], hidden=[2, 5])
    _, x, _ = minilm._input(SENTENCES[:1])
    n = x.shape[1]
    kept = np.isin(np.arange(n), [2, 5], invert=True)
    states, weights = minilm.encoder(x, np.tile(kept, (n, 1)))
    weights = np.concatenate(weights)
    assert np.abs(found["weights"].reshape(weights.shape) - weights).max() < 0.003
    assert np.abs(found["embedding"] - mean_pool(states[0], kept)).max() < 0.001
    alone = read(page, "river", hidden=[0, 1, 2])
    assert (alone["weights"].reshape(6, 12, 3, 3) == np.eye(3)).all()
    said = "hidden must hold positions of tokens, 0 to 2; got 3"
    assert read(page, "river", hidden=[3])["error"] == said


def test_a_ledger_and_a_swap_are_those_of_attnlib(page, host, minilm):
    """Of a word that both sentences have: what each part writes, and all heads of the other."""
    opened(page, f"{host}/page.html")
    texts = "The boat reached the bank.", "The money reached the bank."
    read(page, texts[0])
    page.evaluate(EXACT)
    for text in texts:
        found = read(page, text, ledger=True)
        names, rows = row_ledger(minilm, text, 5)
        written = found["ledger"].reshape(len(names), -1, 384)
        assert np.abs(written[:, 5] - rows).max() < FINE["states"]
        states = found["states"].reshape(7, -1, 384)
        assert np.abs(written.sum(axis=0) - states[-1]).max() < 2e-5
    swapped = page.evaluate(SWAP, texts)
    assert np.abs(np.array(swapped) - states[-1][5]).max() < 2e-5
    wrong = "replaced must hold outputs of 256 numbers, for 8 tokens"
    assert read(page, texts[0], replaced=[[0, 0, [1, 2]]])["error"] == wrong
    long = "A ledger may have at most 64 tokens; this sentence has 65."
    assert read(page, "tea " * 63, ledger=True)["error"] == long


def test_a_newer_sentence_of_an_owner_ends_its_older_one_and_no_other(page, host):
    opened(page, f"{host}/page.html")
    begun = page.evaluate("""async () => {
      const first = encoder.read("first", {owner: 1}).catch(({name}) => name);
      while (!heard.at(-1)?.asked) await new Promise((go) => setTimeout(go, 1));
      await encoder.read("second", {owner: 1});
      const {asked} = heard.filter(({state}) => state === "loading").at(-1);
      return [await first, asked / 1e6 < 14];
    }""")
    assert begun == ["AbortError", True]  # what makes the numbers settle waits for a whole reading
    script = """async (long) => {
      const said = (promise) => promise.then(({tokens}) => tokens.length, ({name}) => name);
      const first = said(encoder.read(long, {owner: 1}));
      const other = said(encoder.read("the other one", {owner: 2}));
      const nobody = said(encoder.read("nobody's", {}));
      const second = said(encoder.read("short", {owner: 1}));
      const ended = said(encoder.read("ended", {owner: 3}));
      encoder.stop(3);
      return Promise.all([first, other, nobody, second, ended]);
    }"""
    found = page.evaluate(script, "river " * 400)
    assert found == ["AbortError", 5, 5, 3, "AbortError"]
    stopped = page.evaluate("""async () => {
      const slow = encoder.read("river ".repeat(500), {owner: 4}).catch(({name}) => name);
      setTimeout(() => encoder.stop(4), 100);
      const {tokens} = await encoder.read("after it", {owner: 5});
      return [await slow, tokens.length];
    }""")
    assert stopped == ["AbortError", 4]


# ------------------------------------------------------------------------------------ it fails well


def test_too_long_a_text_gets_one_line_and_the_next_is_read(page, host):
    opened(page, f"{host}/page.html")
    found = read(page, "river " * 511)
    assert found == {
        "name": "RangeError",
        "error": "A sentence may have at most 512 tokens, [CLS] and [SEP] among them; "
        "this one has 513.",
    }
    assert read(page, "river")["tokens"] == ["[CLS]", "river", "[SEP]"]
    assert heard(page)["state"] == "ready" and heard(page)["error"] == ""
    longest = """new Promise((done) => {
      const tell = ({tokens}) => { if (tokens) done(tokens.length); };
      encoder.read("river ".repeat(510), {tell, owner: 1}).catch(() => {});
    })"""
    assert page.evaluate(longest) == 512


def test_from_disk_and_without_storage_it_reads_the_same(browser, folder, minilm):
    page = browser.new_page()
    page.add_init_script(BLOCKED)
    opened(page, (folder / "page.html").as_uri())
    found = read(page, SENTENCES[1])
    assert_equal(found, SENTENCES[1], minilm, COARSE)
    page.close()


def test_without_webassembly_it_reads_the_same_more_slowly(browser, host, minilm):
    page = browser.new_page()
    opened(page, f"{host}/slow.html")
    found = read(page, SENTENCES[1])
    assert_equal(found, SENTENCES[1], minilm, COARSE)
    assert heard(page)["slow"]
    page.close()


def test_a_script_that_is_lost_or_damaged_is_said_and_asked_for_again(browser, host, minilm):
    """One way after the other; what has come is kept, and the last reading is right.

    A damaged loader once froze the tab: a captive portal answers with a page of its own.
    """
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    damages = ["missing", "offline", "cut off", "a login page"]
    faults = [(part, damage) for part in ("loader", "plan", "layer-3") for damage in damages]
    faults += [("layer-3", "changed")]
    waiting = list(faults)

    def answer(route):
        part, damage = waiting[0] if waiting else ("nothing", "")
        if f"{part}." not in route.request.url:
            return route.continue_()
        body = route.fetch().text()
        status, body = {
            "missing": (404, ""),
            "offline": (0, ""),
            "cut off": (200, body[: len(body) // 2]),
            "a login page": (200, "<!doctype html><title>Log in</title>"),
            "changed": (200, body[:5000] + "A" + body[5001:]),
        }[damage]
        if status:
            return route.fulfill(status=status, body=body, content_type="text/html")
        return route.abort("internetdisconnected")

    page.route(re.compile(r"/(encoder_loader|plan|layer-3)\."), answer)
    opened(page, f"{host}/page.html")
    for part, damage in faults:
        found = read(page, SENTENCES[1])
        how = "did not arrive" if damage in ("missing", "offline") else "arrived damaged"
        assert found.get("error", "").startswith(f"A part of the model ({part}) {how}"), damage
        assert "\n" not in found["error"]
        if part != "loader":
            assert heard(page)["state"] == "failed" and heard(page)["error"] == found["error"]
        waiting.pop(0)
    assert_equal(read(page, SENTENCES[1]), SENTENCES[1], minilm, COARSE)
    last = heard(page)
    assert last["state"] == "ready" and last["error"] == ""
    counts = {part: sum(part == fault for fault, _ in faults) for part, _ in faults}
    assert {part: fetched(page, part) for part in ("plan", "layer-3")} == {
        "plan": counts["plan"] + 1, "layer-3": counts["layer-3"] + 1
    }  # fmt: skip
    assert fetched(page, "encoder_loader") == counts["loader"] + 1
    assert fetched(page, "layer-2") == 1 and errors == []
    page.close()
