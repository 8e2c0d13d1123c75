"""The parity atlas: what is stored is what this machine's torch does, and says what it should."""

import pytest
import torch

from attnlib import atlas

WORDS = ("path", *atlas.WORDS, "error")
AXES = ("function", "mode", "need_weights", "mask")


@pytest.fixture(scope="module")
def measured():
    """Return cases measured anew, by what each is a case of.

    In the modes that differ from another by one switch alone, four masks are enough.
    """
    few = {"none", "causal and padding", "ALiBi bias", "empty row"}
    chosen = [
        case
        for case in atlas.cases()
        if case["mask"] in few or case["mode"] not in {"train p=0", "no_grad off"}
    ]
    rows = [atlas.measure(**case) for case in chosen]
    return {tuple(row[name] for name in AXES): row for row in rows}


@pytest.fixture(scope="module")
def stored():
    """Return the stored rows, taken apart into their cases."""
    return {
        (row["function"], mode, weights, row["mask"]): row
        for row in atlas.read()
        for mode in row["mode"].split(", ")
        for weights in row["need_weights"].split(", ")
    }


def differences(row):
    return {dtype: float(row[dtype]) for dtype in atlas.DTYPES if row[dtype]}


def test_torch_still_does_what_is_stored(measured, stored):
    every = {(c["function"], c["mode"], c.get("need_weights"), c["mask"]) for c in atlas.cases()}
    assert stored.keys() == {(f, m, "" if w is None else str(w), k) for f, m, w, k in every}
    parted = {
        case: (row, stored[case])
        for case, row in measured.items()
        if [row[word] for word in WORDS] != [stored[case][word] for word in WORDS]
        or differences(row).keys() != differences(stored[case]).keys()
    }
    assert parted == {}
    assert atlas.merge(atlas.read()) == atlas.read()  # nothing is stored twice


def test_what_is_called_equal_is_equal_up_to_rounding(measured, stored):
    for rows in (measured, stored):
        for row in rows.values():
            for dtype, difference in differences(row).items():
                # One word holds for both dtypes unless there are two.
                word = row["rows"].split("; in float64 ")[-1 if dtype == "float64" else 0]
                assert (difference <= atlas.BOUNDS[dtype]) == (word == "equal"), row


def test_nothing_differs_on_the_usual_path_without_dropout(measured):
    for (_, mode, _, _), row in measured.items():
        if mode != "train" and row["path"] == "usual" and row["rows"] != "refused":
            assert row["rows"] == "equal" and row["padded rows"] in ("", "equal"), row


@pytest.mark.parametrize("dtype", atlas.DTYPES)
def test_a_row_with_nothing_to_attend_to(measured, dtype):
    """Worked out here once more, without the atlas."""
    kind = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(1, 3, 4, generator=generator, dtype=kind)
    may = torch.tensor([[True] * 3, [False] * 3, [True] * 3])
    sdpa = torch.nn.functional.scaled_dot_product_attention
    assert sdpa(x, x, x, attn_mask=may)[0, 1].tolist() == [0] * 4
    lowest = torch.where(may, 0, -1e9).to(kind)
    expected = x[0].mean(0) if dtype == "float32" else sdpa(x, x, x)[0, 1]
    assert torch.allclose(sdpa(x, x, x, attn_mask=lowest)[0, 1], expected, atol=1e-6)
    said = measured[atlas.SDPA, "eval", "", "empty row as -1e9"]["empty rows"]
    assert said == "equal weights; in float64 as if unmasked"

    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True, dtype=kind).eval()
    for mode in ("eval", "no_grad"):
        for need_weights in (True, False):
            with torch.set_grad_enabled(mode == "eval"):
                options = {"attn_mask": ~may, "need_weights": need_weights}
                output, _ = layer(x, x, x, **options)
            row = measured[atlas.ATTENTION, mode, str(need_weights), "empty row"]
            assert output[0, 1].isnan().all() == (row["empty rows"] == "NaN")
            assert not output[0, [0, 2]].isnan().any()
    assert row["empty rows"] == "NaN"  # no_grad, need_weights=False


def test_the_switch_makes_the_modes_without_and_with_gradients_one(measured):
    for (function, mode, weights, mask), row in measured.items():
        if mode == "no_grad off":
            with_gradients = measured[function, "eval", weights, mask]
            assert [row[name] for name in WORDS] == [with_gradients[name] for name in WORDS]


def test_a_flag_alone_is_refused_or_passed_over_in_silence(measured):
    """Once more without the atlas: is_causal=True and no mask, in a layer."""
    layer = torch.nn.TransformerEncoderLayer(22, 2, 13, batch_first=True).eval()
    x = torch.randn(3, 5, 22, generator=torch.Generator().manual_seed(1))
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        layer(x, is_causal=True)
    with torch.no_grad():
        assert torch.equal(layer(x, is_causal=True), layer(x))
    name = "nn.TransformerEncoderLayer"
    assert measured[name, "eval", "", "is_causal"]["rows"] == "refused"
    assert measured[name, "no_grad", "", "is_causal"]["rows"] == "as if unmasked"


def test_rows_that_say_the_same_become_one_with_the_largest_difference():
    same = dict.fromkeys(atlas.COLUMNS, "") | {"rows": "equal"}
    one, two = ({"mode": "eval", "need_weights": weights} for weights in ("True", "False"))
    random = same | {"mode": "train", "rows": "random"}
    rows = [random, same | one | {"float32": "3.0e-07"}, same | two | {"float32": "2.0e-06"}]
    merged = same | {"mode": "eval", "need_weights": "True, False", "float32": "2.0e-06"}
    assert atlas.merge(rows) == [random, merged]


def test_every_outcome_is_met_and_what_differs_has_a_source(measured):
    assert {atlas.outcome(row) for row in measured.values()} == set(atlas.OUTCOMES)
    for row in measured.values():
        assert atlas.source(row) or atlas.outcome(row) != "other numbers", row


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (("equal", "", ""), "equal"),
        (("equal", "equal", "zero weights"), "zero weights"),
        (("equal", "", "equal weights; in float64 as if unmasked"), "equal weights"),
        (("equal", "zero output", "zero weights"), "other numbers"),
        (("bias as mask", "", ""), "other numbers"),
        (("random", "", "zero weights"), "random"),
        (("random", "random", "NaN"), "NaN"),
        (("refused", "", ""), "refused"),
    ],
)
def test_the_worst_word_is_what_a_row_comes_to(words, outcome):
    assert atlas.outcome(dict(zip(atlas.WORDS, words, strict=True))) == outcome


def test_measuring_leaves_torch_as_it_was():
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    fast = torch._transformer_encoder_layer_fwd
    case = {"function": "nn.TransformerEncoder", "mode": "no_grad off", "mask": "padding"}
    assert atlas.measure(**case) == atlas.measure(**case)
    assert torch.get_num_threads() == threads
    assert torch.backends.mha.get_fastpath_enabled()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch._transformer_encoder_layer_fwd is fast
