"""The encoder in the page, without a page: its pieces, its kernel, its layers, its tokenizer.

A small model of random numbers is packed and read in the embedded engine, so that little is
skipped where the published one is missing.
"""

import json
import random
import sys
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save
from tokenizers import normalizers, pre_tokenizers, processors

from _ext.encoder import page as pages  # _ext
from _ext.engine import Engine
from _ext.state import PageState
from attnlib import models, replace_heads, row_ledger
from attnlib.models import MiniLM, files, mean_pool
from tests.helpers import minilm_weights
from tools import encoder

WORDS = "[unused0] [PAD] [UNK] [CLS] [SEP] [MASK] the bank lent boats money , ##s é".split()
WIDTH, INNER, PLACES, LAYERS = 96, 160, 11, 2  # 12 heads of 8; a group has 32
SENTENCE = "The boats lent BANKs, é money"
STARTED = """globalThis.model = makeModel(dukpy.plan,
  bytes => ({buffer: new ArrayBuffer(bytes), kernel: null}))"""
READ = """(() => {
  const found = {tokens: dukpy.tokens, ids: dukpy.ids};
  const {rowsOf, begin, layer, end} = model, list = (a) => Array.from(a);
  const replaced = dukpy.replaced.map(([l, h, z]) => [l, h, Float32Array.from(z)]);
  const states = [list(begin(found, dukpy.hidden, {replaced, ledger: true}))];
  const weights = [], blocks = [];
  for (let l = 0; l < model.layers; l++) {
    const made = layer(l);
    states.push(list(made.state));
    weights.push(list(made.weights));
    blocks.push(["queries", "keys", "values"].map((name) => list(made[name])));
  }
  const {embedding, ledger} = end();
  const all = {states, weights, blocks, ledger: ledger.map(list), embedding: list(embedding)};
  return {rows: rowsOf(found), ...all};
})()"""


def engine():
    """An engine in which the text of the worker's model has run."""
    names = ["makeTokenizer", "makeModel", "checksum", "unpack"]
    given = "".join(f"globalThis.{name} = {name};" for name in names)
    return Engine(pages.SOURCES[0].read_text(encoding="utf-8") + given)


def small_weights():
    """Return random weights, with one that spoils a group, and an empty one."""
    weights = minilm_weights(7, 0.3, len(WORDS), WIDTH, INNER, PLACES, LAYERS)
    weights["encoder.layer.1.output.dense.weight"][3, 5] = 9
    weights["encoder.layer.0.intermediate.dense.weight"][2, :32] = 0
    return weights


@pytest.fixture(scope="module")
def tokenizer():
    """The published rules, with few words."""
    pieces = tokenizers.models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]")
    made = tokenizers.Tokenizer(pieces)
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(end, WORDS.index(end)) for end in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    return made


@pytest.fixture
def small(monkeypatch, tmp_path, tokenizer):
    """What `make` reads of the small model, and where it writes."""
    weights = small_weights()
    content = {"model.safetensors": save(weights), "tokenizer.json": tokenizer.to_str().encode()}
    monkeypatch.setattr(files, "read_files", lambda: content)
    monkeypatch.setattr(files, "is_here", lambda: True)
    monkeypatch.setattr(encoder, "FIRST_WORD", 6)
    monkeypatch.setattr(encoder, "ROWS", 3)
    monkeypatch.setattr(encoder, "SAMPLE", "the bank")
    monkeypatch.setattr(encoder, "READY", tmp_path / "ready")
    monkeypatch.setattr(encoder, "PLAN", tmp_path / "ready" / "plan.json")
    return SimpleNamespace(weights=weights, tokenizer=tokenizer.to_str(), folder=tmp_path)


def rounded(weights, bits, coarse):
    """Return a model's weights as a page has them, without what follows the first 8 bits if asked.

    The types have joined the positions.
    """
    found = dict(weights)
    kind = "embeddings.{}_embeddings.weight".format
    found[kind("position")] = weights[kind("position")] + weights[kind("token_type")][0]
    found[kind("token_type")] = np.zeros_like(weights[kind("token_type")])
    always = [WORDS.index(word) for word in encoder.SPECIAL]
    for name, matrix in found.items():
        if matrix.ndim < 2 or name == kind("token_type"):
            continue
        kept = bits["layers" if "layer." in name else "places" if "position" in name else "words"]
        found[name] = unpacked(matrix, kept, coarse and "layer." in name)
    found[kind("word")][always] = unpacked(weights[kind("word")][always], bits["places"], False)
    return found


def unpacked(matrix, bits, coarse):
    """Return the numbers that a matrix becomes."""
    whole, fine, halves = encoder.quantize(matrix, bits)
    rest = 0 if coarse else fine.astype(int) - 2**bits // 2
    steps = (whole.astype(int) * 2**bits + rest).reshape(-1, encoder.GROUP)
    return (steps * encoder.widened(halves)[:, None]).reshape(matrix.shape).astype(np.float32)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), bits=st.integers(1, 8), power=st.integers(-30, 30))
def test_a_number_comes_back_to_half_a_step(seed, bits, power):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(5, 64)).astype(np.float32) * np.float32(2.0**power)
    matrix[1, :32] = 0
    matrix[3, 40] *= 50
    steps = np.repeat(encoder.widened(encoder.quantize(matrix, bits)[2]), 32).reshape(5, 64)
    assert (np.abs(unpacked(matrix, bits, False) - matrix) <= steps * 0.50001).all()
    coarse = np.abs(unpacked(matrix, bits, True) - matrix)
    assert (coarse <= steps * (2**bits + 1) / 2 * 1.00001).all()


@pytest.mark.parametrize("bits", [1, 3, 4, 5, 8])
def test_bits_and_checksums_are_read_as_they_are_written(bits):
    fine = np.random.default_rng(bits).integers(0, 2**bits, 64).astype(np.uint8)
    data = b"\xff" * 3 + encoder.packed(fine, bits)
    script = """(() => { const found = [], bytes = Uint8Array.from(dukpy.data);
      unpack(bytes, 3, dukpy.bits, 64, (i, x) => { found[i] = x; });
      return [found, checksum(bytes)]; })()"""
    found, check = engine()(script, data=list(data), bits=bits)
    assert found == (fine.astype(int) - 2**bits // 2).tolist() and check == zlib.crc32(data)


def test_the_same_weights_make_the_same_files(small, capsys):
    encoder.prepare()
    first = {path.name: path.read_bytes() for path in encoder.READY.iterdir()}
    plan = json.loads(first["plan.json"])
    assert {name for name, *_ in plan["pieces"].values()} == first.keys() - {
        "plan.json", "LICENSE.txt"
    }  # fmt: skip
    assert b"Apache License" in first["LICENSE.txt"]
    encoder.prepare()  # nothing to do
    assert capsys.readouterr().out.count("Making") == 1
    encoder.PLAN.write_text("{}", encoding="utf-8")
    encoder.prepare()
    assert first == {path.name: path.read_bytes() for path in encoder.READY.iterdir()}


@pytest.mark.parametrize("fault", ["missing", "another", "no package"])
def test_without_the_model_one_line_says_how_to_get_it(small, monkeypatch, capsys, fault):
    encoder.prepare()
    capsys.readouterr()
    monkeypatch.undo()
    monkeypatch.setattr(encoder, "READY", small.folder / "ready")
    monkeypatch.setattr(encoder, "PLAN", small.folder / "ready" / "plan.json")
    monkeypatch.setattr(files, "is_here", lambda: fault != "missing")
    if fault == "another":
        (small.folder / "model.safetensors").write_bytes(b"another")
        found = {"model.safetensors": small.folder / "model.safetensors"}
        monkeypatch.setattr(files, "_find", lambda name, *_, **__: found[name])
    if fault == "no package":
        monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    encoder.PLAN.write_text("{}", encoding="utf-8")
    encoder.prepare()
    (line,) = capsys.readouterr().out.splitlines()
    said = {"missing": files.ADVICE, "another": "SHA-256", "no package": "safetensors"}
    assert line.startswith("The encoder is not in the pages: ") and said[fault] in line
    assert not encoder.READY.exists()


def scripts(monkeypatch, folder, used=(("Encoder", "heads"),)):
    """What `_ext/encoder/page.py` adds to a page, with the pieces of a folder."""
    monkeypatch.setattr(pages, "PIECES", folder)
    pages.plan_script.cache_clear()
    app = SimpleNamespace(outdir=folder.parent / "site", added=[])
    app.env = SimpleNamespace(page_states={"page": PageState(widgets=set(used))})
    app.add_js_file = lambda name, **options: app.added.append((name, options))
    pages.add_files(app, "page", "", {}, None)
    pages.write_files(app, SimpleNamespace(format="html"))
    pages.plan_script.cache_clear()
    return app.added, app.outdir / "_static" / "encoder"


def test_a_page_with_the_widget_gets_the_encoder_and_no_other_page_does(small, monkeypatch):
    encoder.prepare()
    ((name, options),), place = scripts(monkeypatch, encoder.READY)
    facts = json.loads(options["data-encoder"])
    assert name == "encoder.js" and options["loading_method"] == "defer"
    assert facts.keys() == {"loader", "plan", "megabytes", "megabytesMore", "errors", "privacy"}
    assert facts["errors"].keys() == {"weights", "states", "embedding"}
    names = {path.name for path in encoder.READY.iterdir()} - {"plan.json"}
    assert {path.name for path in place.iterdir()} == names | {facts["plan"]}
    assert scripts(monkeypatch, encoder.READY, used=())[0] == []


def test_a_site_without_the_model_says_how_to_get_it(small, monkeypatch):
    encoder.prepare()
    _, place = scripts(monkeypatch, encoder.READY)
    ((name, options),), _ = scripts(monkeypatch, small.folder / "nothing")
    assert name is None and files.PACKAGE in options["body"] and not place.exists()


def test_the_kernel_multiplies():
    from wasmtime import Instance, Limits, Memory, MemoryType, Module, Store

    rng = np.random.default_rng(3)
    store = Store()
    memory = Memory(store, MemoryType(Limits(8, None)))
    module = Module(store.engine, encoder.KERNEL.read_text(encoding="utf-8"))
    product = Instance(store, module, [memory]).exports(store)["product"]
    for tokens, height, width in ((1, 2, 32), (4, 6, 96), (7, 10, 160), (13, 14, 64)):
        padded = -4 * (-tokens // 4)
        x = rng.normal(size=(padded, width)).astype(np.float32)
        whole = rng.integers(-2039, 2040, (height, width)).astype(np.int16)
        scales = rng.random((height, width // 32)).astype(np.float32)
        bias = rng.normal(size=height).astype(np.float32)
        places, at = [], 16
        for array in (x, whole, scales, bias):
            places.append(at)
            memory.write(store, array.tobytes(), at)
            at += -16 * (-array.nbytes // 16)
        out, rows = at, at + padded * height * 4 + 16
        rows -= rows % 16
        product(store, places[0], tokens, *places[1:], out, rows, width, height, 32)
        found = np.frombuffer(bytes(memory.read(store, out, out + padded * height * 4)), np.float32)
        numbers = whole * np.repeat(scales.astype(float), 32, axis=1)
        expected = x.astype(float) @ numbers.T + bias
        size = np.abs(x) @ np.abs(numbers.T)
        assert (np.abs(found.reshape(padded, height) - expected) <= 1e-6 * size).all()


@pytest.mark.parametrize("hidden", [[], [2, 4], list(range(10))])
def test_the_layers_read_as_attnlib_does(small, hidden):
    """First with 8 bits, then with what follows; both to what float32 leaves."""
    made = tokenizers.Tokenizer.from_str(small.tokenizer)
    parts = dict(encoder.pieces(small.weights, json.loads(small.tokenizer)))
    plan = encoder.write(small.folder, small.weights, json.loads(small.tokenizer))
    page = engine()
    page(STARTED, plan=plan)
    later = [name for name in parts if name.startswith("fine")]
    for names, coarse in (([n for n in parts if n not in ["words", *later]], True), (later, False)):
        for name in names:
            data = list(parts[name])
            page("model.add(dukpy.name, Uint8Array.from(dukpy.data))", name=name, data=data)
        model = MiniLM(rounded(small.weights, plan["bits"], coarse), made)
        encoded = made.encode(SENTENCE)
        n = len(encoded.tokens)
        assert n == 10
        text = {"tokens": encoded.tokens, "ids": encoded.ids}
        found = page(READ, **text, hidden=hidden, replaced=[])
        assert found["rows"] == ["base", "rows-0", "rows-1", "rows-2"]
        kept = np.array([t not in hidden for t in range(n)])
        mask = np.tile(kept, (n, 1)) if kept.any() else np.eye(n, dtype=bool)
        x = model._input([SENTENCE])[1][0]
        states, weights, blocks = [x], [], []
        for layer in model.encoder.layers:
            a = layer.attention
            blocks.append([x @ w + b for w, b in ((a.w_q, a.b_q), (a.w_k, a.b_k), (a.w_v, a.b_v))])
            x, attended = layer(x, mask)
            states.append(x)
            weights.append(attended)
        embedding = mean_pool(x, kept if kept.any() else ~kept)
        for name, expected in {"states": states, "weights": weights, "blocks": blocks}.items():
            got = np.reshape(found[name], np.shape(expected))
            np.testing.assert_allclose(got, expected, atol=3e-5)
        np.testing.assert_allclose(found["embedding"], embedding, atol=3e-6)
        written = np.reshape(found["ledger"], (-1, n, WIDTH))
        np.testing.assert_allclose(written.sum(axis=0), x, atol=3e-5)
        if hidden:
            continue
        for position in (0, 6):
            names, rows = row_ledger(model, SENTENCE, position)
            assert len(names) == 1 + LAYERS * 14
            np.testing.assert_allclose(written[:, position], rows, atol=3e-5)
        given = np.random.default_rng(5).normal(size=(n, WIDTH // 12)).astype(np.float32)
        swapped = page(READ, **text, hidden=[], replaced=[[1, 7, given.ravel().tolist()]])
        expected = replace_heads(model, {(1, 7): given}).read(SENTENCE).states
        got = np.reshape(swapped["states"], expected.shape)
        np.testing.assert_allclose(got, expected, atol=3e-5)
        assert np.abs(expected - states).max() > 0.1


@pytest.fixture(scope="module")
def published():
    """The published tokenizer, and an engine that has ours, with the same words."""
    try:
        theirs = models.load_minilm().tokenizer
    except models.MissingModelError as missing:
        pytest.skip(str(missing))
    page = engine()
    _, words = next(encoder.pieces({}, json.loads(theirs.to_str())))
    page("globalThis.tokenize = makeTokenizer(JSON.parse(dukpy.words), dukpy.special); 0",
         words=words, special=encoder.SPECIAL)  # fmt: skip
    return theirs, page


SCRIPTS = [
    (0x20, 0x7F), (0x00, 0x20), (0x7F, 0x250), (0x250, 0x370), (0x370, 0x530), (0x590, 0x700),
    (0x8D0, 0xA00), (0xE00, 0x1000), (0x1100, 0x1200), (0x1B00, 0x1C00), (0x1DC0, 0x1F00),
    (0x1F00, 0x2000), (0x2000, 0x2200), (0x2E80, 0x3100), (0x4E00, 0x4F00), (0xA900, 0xAA00),
    (0xAC00, 0xAD00), (0xE000, 0xE010), (0xF900, 0xFB50), (0xFE00, 0x10000), (0x10400, 0x10450),
    (0x11430, 0x11450), (0x16E40, 0x16E80), (0x1D150, 0x1D190), (0x1E000, 0x1E030),
    (0x1E920, 0x1E950), (0x1F300, 0x1F700), (0x20000, 0x20010), (0xE0000, 0xE0080),
]  # fmt: skip
PLANTED = [
    *("[MASK]", "[SEP]", "[mask]", "[MASK", "[UNK][PAD]", "İ", "ß", "Σς", "ﬁ", "가힣", "don't"),
    *("\u212b", "e\u0301\u0323", "\U0001d15e\U0001d16d\U0001d165", "\u302e\u1b44\u0cbf\u302e"),
    *("👩🏽\u200d🚀", "\ufeff", "\ufffd", "\x00", "\r\n", "\u2028", "\u3000", "$9.99", "##s"),
]


def strings(vocabulary):
    """Yield strings of many scripts, of words of the vocabulary, and of what is special."""
    draw = random.Random(11)
    words = sorted(vocabulary)
    for _ in range(2500):
        parts = []
        for _ in range(draw.randint(1, 9)):
            kind = draw.random()
            if kind < 0.5:
                first, last = draw.choice(SCRIPTS)
                points = (draw.randrange(first, last) for _ in range(draw.randint(1, 6)))
                parts.append("".join(map(chr, points)))
            else:
                parts.append(draw.choice(words if kind < 0.8 else PLANTED))
            if kind < 0.1:
                parts.append(parts[-1].swapcase())
        yield draw.choice(["", " "]).join(parts)
    yield from ("", " ", "river " * 600, "a" * 100, "a" * 101, "é" * 101, "\u0301", *PLANTED)


def test_any_string_becomes_the_published_tokens(published):
    theirs, page = published
    texts = list(strings(theirs.get_vocab()))
    expected = [encoding.ids for encoding in theirs.encode_batch(texts)]
    found = page("dukpy.texts.map((text) => tokenize(text).ids)", texts=texts)
    wrong = [t for t, a, b in zip(texts, found, expected, strict=True) if a != b]
    assert not wrong, [ascii(text) for text in wrong[:5]]
    half = "tokenize('ba' + String.fromCharCode(0xd83d) + 'nk' + String.fromCharCode(0xde00))"
    assert page(half)["tokens"] == ["[CLS]", "bank", "[SEP]"]  # half a letter counts as nothing


def firsts(runs):
    """The code points with which runs begin, and the first ones after them."""
    return [first + more for first, count in zip(runs[::2], runs[1::2], strict=True)
            for more in (0, count)]  # fmt: skip


def test_each_letter_becomes_what_it_does_there(published):
    """All of the first plane, of the rest every 101st, and where our tables begin and end."""
    theirs, page = published
    letters = json.loads(encoder.LETTERS.read_text(encoding="utf-8"))
    ends = {p + step for name in ("gone", "spaces", "alone") for p in firsts(letters[name])
            for step in (-1, 0)}  # fmt: skip
    points = [c for c in range(0x10000) if not 0xD800 <= c <= 0xDFFF]
    points += sorted({*range(0x10000, sys.maxunicode, 101), *(p for p in ends if p > 0xFFFF)})
    for start in range(0, len(points), 4096):
        text = " ".join(f"a{chr(c)}b" for c in points[start : start + 4096])
        found = page("tokenize(dukpy.text).ids.join()", text=text)
        assert found == ",".join(map(str, theirs.encode(text).ids)), hex(points[start])
