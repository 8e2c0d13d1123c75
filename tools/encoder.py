"""The encoder of the pages, in _build/encoder: all-MiniLM-L6-v2 in pieces that a page can load.

A piece is a script, for a page that is opened from disk may load nothing else. Its weights are
whole numbers in groups of 32 with one scale each: first 8 bits of every number, with which a page
can begin; then, in pieces of their own, the bits that follow. Rows of the word table bring theirs
along, since a sentence needs few of them. `plan.json`, written last, says what is there.

`python -m tools.encoder` also writes _ext/encoder/letters.json again: what the published tokenizer
makes of each letter, as the package tokenizers gives it; builds of the site do not need that.
"""

import base64
import gzip
import hashlib
import json
import shutil
import sys
import zlib
from pathlib import Path

import numpy as np

from attnlib.models import files, minilm
from tools.install import ROOT, say

READY = ROOT / "_build" / "encoder"
PLAN = READY / "plan.json"
KERNEL = ROOT / "_ext" / "encoder" / "kernel.wat"
LETTERS = ROOT / "_ext" / "encoder" / "letters.json"

GROUP = 32  # numbers that share a scale
LEVELS = 127  # the largest whole number of the first 8 bits
LAYER_BITS, WORD_BITS, PLACE_BITS = 6, 4, 8  # that follow the first 8
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FIRST_WORD = 999  # the rows before it are those of SPECIAL, and [unused0] and so on
ROWS = 256  # of the word table, in a piece
SAMPLE = "I went to the bank to deposit money"  # its first reading is what `megabytes` counts

LICENSE = f"""\
The files in this folder are the weights and the vocabulary of all-MiniLM-L6-v2, in another form:
rounded, and cut into pieces that a page can load.

Source: https://huggingface.co/{files.REPOSITORY}
        revision {files.REVISION}
Makers: the authors of sentence-transformers
License: Apache License, Version 2.0, https://www.apache.org/licenses/LICENSE-2.0
         (its text stands in THIRD-PARTY.txt of this site)
"""


# --- numbers -------------------------------------------------------------------------------------


def quantize(matrix, bits):
    """Return a matrix as whole numbers and scales, one scale for each `GROUP` of a row.

    Parameters
    ----------
    matrix : array of float32, the length of its rows a multiple of `GROUP`
    bits : int
        How many follow the first 8.

    Returns
    -------
    whole : array of int8
        The first 8 bits.
    fine : array of uint8
        The `bits` that follow, with an offset that makes them positive.
    scales : array of uint16
        The upper halves of float32 numbers. A number is whole * 2**bits + fine - 2**(bits - 1)
        times its scale; without `fine`, the first term alone.
    """
    groups = matrix.astype(np.float32).reshape(-1, GROUP)
    needed = np.abs(groups).max(axis=1) / np.float32(LEVELS * 2**bits)
    # Rounded up first, so that what the 16 bits lose is not an error of the numbers.
    halves = ((needed.view(np.uint32) + 0xFFFF) >> 16).astype(np.uint16)
    scales = widened(halves)
    steps = np.rint(groups / np.where(scales == 0, 1, scales)[:, None]).astype(np.int32)
    half = 2**bits // 2
    whole = (steps + half) >> bits
    fine = steps - (whole << bits) + half
    return whole.astype(np.int8).ravel(), fine.astype(np.uint8).ravel(), halves


def widened(halves):
    """Return the float32 numbers whose upper halves are given."""
    return (halves.astype(np.uint32) << 16).view(np.float32)


def packed(fine, bits):
    """Return numbers of so many bits each, one behind the other, the first in the lowest bits."""
    bit = (fine[:, None] >> np.arange(bits, dtype=np.uint8)) & 1
    return np.packbits(bit.astype(bool).ravel(), bitorder="little").tobytes()


def table(rows, bits):
    """Return rows of a table: scales, first bits, bits that follow."""
    whole, fine, halves = quantize(rows, bits)
    return halves.tobytes() + whole.tobytes() + packed(fine, bits)


def layer(weights, i):
    """Return a layer as two pieces: what a page begins with, and the bits that follow."""

    def get(part, kind="weight"):
        return weights[f"encoder.layer.{i}.{part}.{kind}"]

    heads = [f"attention.self.{name}" for name in ("query", "key", "value")]
    others = ["attention.output.dense", "intermediate.dense", "output.dense"]
    floats = [get(part, "bias") for part in heads + others]
    for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
        floats += [get(norm), get(norm, "bias")]
    matrices = [np.concatenate([get(part) for part in heads]), *map(get, others)]
    whole, fine, halves = zip(*(quantize(matrix, LAYER_BITS) for matrix in matrices), strict=True)
    first = b"".join(array.tobytes() for array in [*floats, *halves, *whole])
    return first, packed(np.concatenate(fine), LAYER_BITS)


# --- pieces --------------------------------------------------------------------------------------


def pieces(weights, tokenizer):
    """Yield (name, content) of all pieces; a content is text, or bytes that travel as base64."""
    vocabulary = tokenizer["model"]["vocab"]
    words = sorted(vocabulary, key=vocabulary.get)
    letters = json.loads(LETTERS.read_text(encoding="utf-8"))
    yield "words", json.dumps({"words": words, "letters": letters}, ensure_ascii=False)
    rows = weights["embeddings.word_embeddings.weight"]
    # One sentence at a time, so all tokens are of the first type, which joins the positions.
    places = weights["embeddings.position_embeddings.weight"]
    places = places + weights["embeddings.token_type_embeddings.weight"][0]
    norm = [weights[f"embeddings.LayerNorm.{kind}"].tobytes() for kind in ("weight", "bias")]
    always = np.concatenate([places, rows[[vocabulary[word] for word in SPECIAL]]])
    yield "base", b"".join([*norm, table(always, PLACE_BITS)])
    n_layers = sum(name.endswith("query.weight") for name in weights)
    for i in range(n_layers):
        first, fine = layer(weights, i)
        yield f"layer-{i + 1}", first
        yield f"fine-{i + 1}", fine
    for at in range(FIRST_WORD, len(rows), ROWS):
        yield f"rows-{(at - FIRST_WORD) // ROWS}", table(rows[at : at + ROWS], WORD_BITS)


def script(name, content):
    """Return a piece as a script, and the checksum of its text."""
    text = content if isinstance(content, str) else base64.b64encode(content).decode()
    call = f"encoder.take({json.dumps(name)},{json.dumps(text, ensure_ascii=False)});\n"
    return call.encode(), zlib.crc32(text.encode())


def kernel():
    """Return the kernel as WebAssembly, in base64."""
    from wasmtime import wat2wasm

    return base64.b64encode(wat2wasm(KERNEL.read_text(encoding="utf-8"))).decode()


def write(folder, weights, tokenizer):
    """Write all pieces into a folder, and return the plan that says what is there."""
    listed = {}
    for name, content in pieces(weights, tokenizer):
        code, check = script(name, content)
        file = f"{name}.{hashlib.sha256(code).hexdigest()[:8]}.js"
        (folder / file).write_bytes(code)
        listed[name] = [file, len(gzip.compress(code, 6, mtime=0)), check]
    (folder / "LICENSE.txt").write_text(LICENSE, encoding="utf-8")
    vocabulary = tokenizer["model"]["vocab"]
    rows = {f"rows-{(vocabulary[w] - FIRST_WORD) // ROWS}" for w in SAMPLE.lower().split()}
    layers = [name for name in listed if name.startswith("layer")]
    first = ["words", "base", *rows, *layers]
    more = [name for name in listed if name.startswith("fine")]
    return {
        "group": GROUP,
        "bits": {"layers": LAYER_BITS, "words": WORD_BITS, "places": PLACE_BITS},
        "sizes": sizes(weights),
        "special": SPECIAL,
        "firstWord": FIRST_WORD,
        "rows": ROWS,
        "kernel": kernel(),
        "pieces": listed,
        "megabytes": megabytes(listed, first),
        "megabytesMore": megabytes(listed, more),
    }


def sizes(weights):
    """Return the sizes of the model, by the names that the page's code has for them."""
    width = weights["embeddings.LayerNorm.weight"].size
    return {
        "layers": sum(name.endswith("query.weight") for name in weights),
        "heads": minilm.N_HEADS,
        "width": width,
        "inner": weights["encoder.layer.0.intermediate.dense.bias"].size,
        "places": len(weights["embeddings.position_embeddings.weight"]),
        "eps": minilm.EPS,
    }


def megabytes(listed, names):
    """Return how much some pieces weigh, as a host sends them."""
    return round(sum(listed[name][1] for name in names) / 1e6, 1)


# --- letters -------------------------------------------------------------------------------------


def letters():
    """Return what the published tokenizer makes of each code point.

    Only what can distinguish tokens is noted. A word with a letter that is in no piece of the
    vocabulary is unknown, so what else happens to that letter, its accents or its case is left
    out, and so is the order into which accents are sorted, none of which is in a piece.

    Returns
    -------
    dict
        Code points in runs, [first, how many, first, how many, ...]: those that are `gone`, those
        that are `spaces`, those that are words of their own (`alone`). And `spelled`, lines of a
        letter and what it becomes, but for the syllables of Hangul, for which there is a formula.
    """
    tokenizer = minilm.load_minilm().tokenizer
    tidy, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    written = set("".join(tokenizer.get_vocab()))
    points = [c for c in map(chr, range(sys.maxunicode + 1)) if not "\ud800" <= c <= "\udfff"]
    becomes = {c: tidy(c) for c in points}

    def spaced(letter):
        found = [word for word, _ in split(f"a{letter}a")]
        whole = found == [f"a{letter}a"]
        return letter if whole else " " if found == ["a", "a"] else f" {letter} "

    separate = {c: spaced(c) for c in set("".join(becomes.values()))}
    spelled, alone = {}, []
    for c, text in becomes.items():
        spelling = "".join(map(separate.get, text))
        if spelling != c and written.issuperset(text.replace(" ", "")):
            spelled[c] = spelling
        elif spelling.strip() != spelling:
            alone.append(c)
    gone = [c for c, spelling in spelled.items() if not spelling]
    spaces = [c for c, spelling in spelled.items() if spelling.isspace()]
    alone += [c for c, spelling in spelled.items() if spelling == f" {c} "]
    listed = {*gone, *spaces, *alone, *map(chr, range(0xAC00, 0xD7A4))}
    lines = (c + spelling for c, spelling in spelled.items() if c not in listed)
    return {
        "gone": runs(gone),
        "spaces": runs(spaces),
        "alone": runs(alone),
        "spelled": "\n".join(lines),
    }


def runs(letters):
    """Return code points as [first, how many, first, how many, ...]."""
    found = []
    for point in sorted(map(ord, letters)):
        if found and found[-2] + found[-1] == point:
            found[-1] += 1
        else:
            found += [point, 1]
    return found


# --- the folder ----------------------------------------------------------------------------------


def key():
    """Return a digest of all that the pieces are made from."""
    sources = [Path(__file__), KERNEL, LETTERS]
    digest = hashlib.sha256(json.dumps(files.SHA256, sort_keys=True).encode())
    for path in sources:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def is_made():
    """Tell whether the folder has been made from the same."""
    try:
        return json.loads(PLAN.read_text(encoding="utf-8"))["key"] == key()
    except (OSError, ValueError, KeyError):
        return False


def make():
    """Make the folder anew."""
    from safetensors.numpy import load

    content = files.read_files()
    shutil.rmtree(READY, ignore_errors=True)
    READY.mkdir(parents=True)
    say("Making the pieces of the encoder for the pages ...")
    weights = load(content["model.safetensors"])
    plan = write(READY, weights, json.loads(content["tokenizer.json"]))
    PLAN.write_text(json.dumps({"key": key(), **plan}), encoding="utf-8")


def prepare():
    """Make _build/encoder whole, or remove it and say in one line why it cannot be."""
    try:
        if not files.is_here():
            raise files.MissingModelError(
                f"all-MiniLM-L6-v2 is not on this machine. {files.ADVICE}"
            )
        if not is_made():
            make()
    except ImportError as error:
        refuse(f"the package {error.name.partition('.')[0]} is missing")
    except (files.MissingModelError, ValueError) as error:
        refuse(error)


def refuse(why):
    """Remove the folder, and say why."""
    shutil.rmtree(READY, ignore_errors=True)
    say(f"The encoder is not in the pages: {why}.")


def main():
    """Write down the letters again, then make the folder."""
    text = json.dumps(letters(), ensure_ascii=False, separators=(",", ":"))
    LETTERS.write_text(text + "\n", encoding="utf-8")
    prepare()


if __name__ == "__main__":
    main()
