"""The parity atlas: what PyTorch's attention does in every mode, held against this library.

A case is one function of torch in one mode under one mask. `measure` runs it on both sides and
says in a row how far apart they are, or how they differ. `python -m attnlib.atlas` measures all
cases and stores the rows in `atlas.csv`; `read` gives them back without torch.
"""

import csv
import itertools
import re
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import numpy as np

from attnlib.attention import scaled_dot_product_attention
from attnlib.bridge import from_torch
from attnlib.masks import additive, blocked, causal_mask, padding_mask
from attnlib.norms import LayerNorm
from attnlib.positions import alibi_bias

STORED = Path(__file__).parent / "data" / "atlas.csv"

SDPA, FLEX, VARLEN = "F.scaled_dot_product_attention", "flex_attention", "varlen_attn"
ATTENTION, ENCODER = "nn.MultiheadAttention", "nn.TransformerEncoder"
DECODER, WHOLE = "nn.TransformerDecoder", "nn.Transformer"
# What each function calls a mask for all sentences, one that hides the padding of each, and the
# flag for a causal one.
FUNCTIONS = {
    SDPA: (["attn_mask"], [], ["is_causal"]),
    FLEX: ([], [], []),
    VARLEN: ([], [], []),
    ATTENTION: (["attn_mask"], ["key_padding_mask"], ["is_causal"]),
    f"{ENCODER}Layer": (["src_mask"], ["src_key_padding_mask"], ["is_causal"]),
    ENCODER: (["mask"], ["src_key_padding_mask"], ["is_causal"]),
    **dict.fromkeys(
        (f"{DECODER}Layer", DECODER),
        (
            ["tgt_mask", "memory_mask"],
            ["tgt_key_padding_mask", "memory_key_padding_mask"],
            ["tgt_is_causal"],
        ),
    ),
    WHOLE: (
        ["src_mask", "tgt_mask", "memory_mask"],
        ["src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"],
        ["src_is_causal", "tgt_is_causal"],
    ),
}
# p is the share that dropout drops: 0.1 unless torch is given another. "no_grad" is eval()
# inside of torch.no_grad(), and "no_grad off" the same with the fast path switched off.
MODES = ("train", "train p=0", "eval", "no_grad", "no_grad off")
DROPOUT = 0.1
# Who may attend to whom, how that is written down, and how long the shortest sentence is.
MASKS = {
    "none": (None, None, None),
    "causal": ("causal", "bool", None),
    "is_causal": ("causal", "flag", None),
    "causal as -inf": ("causal", "-inf", None),
    "padding": (None, None, 1),
    "causal and padding": ("causal", "bool", 1),
    "ALiBi bias": (None, "bias", None),
    "empty row": ("empty row", "bool", None),
    "empty row as -inf": ("empty row", "-inf", None),
    "empty row as -1e9": ("empty row", "-1e9", None),
    "empty sentence": (None, None, 0),
}
IS_CAUSAL = "is_causal"
# What sentences laid end to end can say: where each ends, and a window that looks back only.
LAID_OUT = ("none", "causal", "padding", "causal and padding", "empty sentence")
# What a score of a row with nothing to attend to may be set to, and what that comes to.
EMPTY = {"zero weights": -np.inf, "equal weights": -1e30, "as if unmasked": 0.0}
LOWEST = -1e9  # what many programs add in place of -inf
DTYPES = ("float32", "float64")
BOUNDS = {"float32": 5e-6, "float64": 1e-13}  # up to here a difference is a matter of rounding
OUTCOMES = ("equal", "zero weights", "equal weights", "NaN", "other numbers", "random", "refused")

# Different sizes, so that no axis can be taken for another. The heads are even in number, or
# torch would leave its fast path out.
BATCH, N_Q, N_K, N_HEADS, D_MODEL, D_FF, N_LAYERS = 3, 5, 7, 2, 22, 13, 2
EMPTY_ROW = 2

WORDS = ("rows", "padded rows", "empty rows")
COLUMNS = (
    "function", "mode", "need_weights", "mask", "path", "rows", *DTYPES, *WORDS[1:], "error"
)  # fmt: skip


def cases():
    """Yield what `measure` takes, for every case that there is."""
    for function, mask, mode in itertools.product(FUNCTIONS, MASKS, MODES):
        if (function == FLEX and mask == "is_causal") or (
            function == VARLEN and mask not in LAID_OUT
        ):
            continue  # it has no such argument
        for need_weights in (True, False) if function == ATTENTION else (None,):
            yield {"function": function, "mode": mode, "mask": mask, "need_weights": need_weights}


def measure(function, mode, mask, need_weights=None):
    """Run one case on both sides and return its row.

    Parameters
    ----------
    function : one of FUNCTIONS
    mode : one of MODES
    mask : one of MASKS
    need_weights : bool, optional
        For nn.MultiheadAttention alone.

    Returns
    -------
    dict
        With the keys COLUMNS. "rows" is about real tokens that may attend to something: "equal",
        "NaN", "random", "as if unmasked", "bias as mask", "differ" or "refused"; then "error" is
        torch's message. "float32" and "float64" are the largest differences there. "padded rows"
        and "empty rows" say what torch returns for padding, and for tokens that may not attend to
        anything.
    """
    found = {}
    with _alone(mode), _watched() as fast:
        for dtype in DTYPES:
            found[dtype] = _compare(function, mode, mask, need_weights, dtype)
    row = {
        "function": function,
        "mode": mode,
        "need_weights": "" if need_weights is None else str(need_weights),
        "mask": mask,
        "path": "fast" if any(call.called for call in fast) else "usual",
    }
    for column in (*WORDS, "error"):
        narrow, wide = (found[dtype][column] for dtype in DTYPES)
        row[column] = narrow if narrow == wide else f"{narrow}; in float64 {wide}"
    row |= {dtype: found[dtype]["difference"] for dtype in DTYPES}
    return {column: row[column] for column in COLUMNS}


def merge(rows):
    """Join rows that say the same of several modes, then those of several need_weights.

    The differences become the largest of each.
    """
    for several in ("mode", "need_weights"):
        merged = {}
        for row in rows:
            key = tuple(row[name] for name in COLUMNS if name not in (several, *DTYPES))
            merged.setdefault(key, []).append(row)
        rows = [
            same[0]
            | {several: ", ".join(dict.fromkeys(row[several] for row in same))}
            | {dtype: max((row[dtype] for row in same), key=_size) for dtype in DTYPES}
            for same in merged.values()
        ]
    return rows


def outcome(row):
    """Return what a row comes to, one of OUTCOMES: the worst that its words say."""
    words = {row[column].partition(";")[0] for column in WORDS}
    for word in ("refused", "NaN", "random"):
        if word in words:
            return word
    if words - {"", "equal", "zero weights", "equal weights"}:
        return "other numbers"
    return next((word for word in ("equal weights", "zero weights") if word in words), "equal")


def source(row):
    """Return the thread of PyTorch's where someone met what a row says; "" if none is known."""
    fast, empty = row["path"] == "fast", row["empty rows"]
    if row["rows"] == "refused":
        return {FLEX: "issues/148752", VARLEN: ""}.get(row["function"], "issues/118972")
    if row["rows"] == "as if unmasked":
        return "issues/99282" if row["function"] == ATTENTION else "issues/96941"
    if fast and (row["mask"] == "ALiBi bias" or row["mask"].endswith("-1e9")):
        return "issues/118628"
    if row["padded rows"] == "zero output":
        return "issues/86120"
    if empty == "NaN":
        return "pull/190486" if fast else "issues/160064"
    return "pull/133882" if row["function"] == SDPA and empty == "zero weights" else ""


def read():
    """Return the stored rows: what was measured, every cell as text."""
    with STORED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main():
    """Measure every case and store the rows."""
    rows = merge([measure(**case) for case in cases()])
    with STORED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} rows from {len(list(cases()))} cases")


def _size(difference):
    return -1.0 if difference == "" else float(difference)


# One case


def _compare(function, mode, mask, need_weights, dtype):
    """Return how the two sides part: the words of a row, and the largest difference."""
    ours, theirs = _sides(function, mode, mask, need_weights, dtype)
    may, bias, arguments = _masks(mask, N_K if function == SDPA else N_Q, dtype)
    padding = np.zeros((BATCH, N_Q), bool)
    if "key_padding_mask" in arguments:
        padding = arguments["key_padding_mask"][:, :N_Q]
    empty = ~may.any(axis=-1)
    ordinary, padded = ~padding & ~empty, padding & ~empty

    try:
        got, again = (theirs(arguments, seed) for seed in (1, 2))
    except (RuntimeError, NotImplementedError) as error:
        message = re.split(r"(?<=[.])\s", str(error))[0]
        return dict.fromkeys(WORDS, "") | {"rows": "refused", "difference": "", "error": message}
    random = not np.array_equal(got, again, equal_nan=True)
    options = {word: ours(np.where(may, bias, score)) for word, score in EMPTY.items()}
    # What torch gives to an empty row reaches the others in the next layer of a stack, so they
    # are held against what attnlib gives then; of a number that is added, all the digits count.
    references = [*options.values(), ours(np.where(may, bias, LOWEST))]
    nearest = min(references, key=lambda reference: _distance(got, reference, empty))
    plain = {"equal": nearest, "as if unmasked": ours(np.ones_like(may))}
    if np.ndim(bias):
        plain["bias as mask"] = ours(np.broadcast_to(bias == 0, may.shape))
    bound, difference = BOUNDS[dtype], _distance(got, nearest, ordinary)
    return {
        "rows": _word(got, ordinary, plain, bound, random),
        "difference": "" if random or np.isinf(difference) else f"{difference:.1e}",
        "padded rows": _word(got, padded, {"equal": nearest}, bound, random),
        # -1e9 leaves a float64 few digits, so what it comes to is told apart more coarsely.
        "empty rows": _word(got, empty, options, 1e-5, random),
        "error": "",
    }


def _distance(one, two, rows):
    """Return the largest difference in some rows, infinity where there is NaN."""
    difference = np.abs(one[rows] - two[rows]).max(initial=0.0)
    return np.inf if np.isnan(difference) else float(difference)


def _word(got, rows, options, bound, random):
    """Return the word for what torch gives in some rows: one of the options if one fits."""
    if not rows.any():
        return ""
    if np.isnan(got[rows]).any():
        return "NaN"
    for word, expected in options.items():
        if _distance(got, expected, rows) <= bound:
            return word
    if random:
        return "random"
    return "differ" if got[rows].any() else "zero output"


def _sides(function, mode, mask, need_weights, dtype):
    """Return this library's function of a mask, and torch's of its arguments and a seed."""
    import torch

    rng = np.random.default_rng(1)
    x = rng.normal(size=(BATCH, N_Q, D_MODEL)).astype(dtype)
    memory = rng.normal(size=(BATCH, N_K if function == SDPA else N_Q, D_MODEL)).astype(dtype)
    if function in (SDPA, FLEX, VARLEN):
        inputs = [x, memory, memory]
        call = {
            SDPA: torch.nn.functional.scaled_dot_product_attention,
            FLEX: _flex,
            VARLEN: _varlen,
        }
        call, ours = call[function], lambda mask: scaled_dot_product_attention(*inputs, mask)[0]
        options = {"dropout_p": DROPOUT if mode == "train" else 0.0} if function == SDPA else {}
    else:
        call = _module(function, mode, dtype)
        ours, inputs = _ours(call, x, memory, crosses=mask != IS_CAUSAL)
        options = {} if need_weights is None else {"need_weights": need_weights}

    def with_weights(mask):
        # Of several heads torch returns the mean.
        output, weights = ours(mask)
        return np.concatenate([output, weights.mean(1)], -1) if need_weights else output

    def theirs(arguments, seed):
        torch.manual_seed(seed)
        training = mode.startswith("train")
        tensors = [torch.tensor(x, requires_grad=training) for x in inputs]
        if function == ATTENTION:
            tensors = tensors[:1] * 3  # the same tensor, or PyTorch leaves out its fast path
        with torch.set_grad_enabled(not mode.startswith("no_grad")):
            result = call(*tensors, **options, **_translated(function, arguments))
        parts = result if isinstance(result, tuple) else [result]
        return np.concatenate([part.detach().numpy() for part in parts if part is not None], -1)

    return with_weights if function == ATTENTION else ours, theirs


def _ours(module, x, memory, crosses):
    """Return what this library computes in place of a module, given a mask, and the inputs.

    A mask holds for cross-attention too if it `crosses`.
    """
    from torch import nn

    if isinstance(module, nn.MultiheadAttention):
        layer = from_torch(module)
        return lambda mask: layer(x, mask=mask), [x, x, x]
    if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerEncoder):
        layer = from_torch(module)
        return lambda mask: layer(x, mask=mask)[0], [x]
    encoder = from_torch(module.encoder) if isinstance(module, nn.Transformer) else None
    decoder = getattr(module, "decoder", module)
    layers = [from_torch(layer) for layer in getattr(decoder, "layers", [decoder])]
    norm = getattr(decoder, "norm", None)
    if norm is not None:
        norm = LayerNorm(norm.weight.detach().numpy(), norm.bias.detach().numpy(), norm.eps)

    def ours(mask):
        read = encoder(memory, mask=mask)[0] if encoder else memory
        output = x
        for layer in layers:
            output = layer(output, read, mask, mask if crosses else None)[0]
        return norm(output) if norm else output

    return ours, [memory, x] if encoder else [x, memory]


def _flex(queries, keys, values, mask):
    """Call flex_attention, whose mask is a function of the places."""
    from torch.nn.attention.flex_attention import flex_attention

    def score_mod(score, sentence, head, i, j):
        return score + mask[sentence, i, j]

    heads = (part[:, None] for part in (queries, keys, values))
    return flex_attention(*heads, score_mod=score_mod)[:, 0]


def _varlen(queries, keys, values, real, window):
    """Call varlen_attn, for sentences laid end to end without their padding."""
    import torch
    from torch.nn.attention.varlen import varlen_attn

    ends = torch.cumsum(torch.nn.functional.pad(real.sum(1), (1, 0)), 0).int()
    laid = (part[real][:, None] for part in (queries, keys, values))
    varlen_attn(*laid, ends, ends, N_Q, N_Q, window_size=window)
    raise AssertionError("varlen_attn ran: measure what it gives")


def _module(function, mode, dtype):
    """Return a module of torch with its usual settings, every parameter away from 0."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    options = {
        "dropout": 0.0 if mode == "train p=0" else DROPOUT,
        "batch_first": True,
        "dtype": getattr(torch, dtype),
    }
    if function == ATTENTION:
        module = nn.MultiheadAttention(D_MODEL, N_HEADS, **options)
    elif function == WHOLE:
        module = nn.Transformer(D_MODEL, N_HEADS, N_LAYERS, N_LAYERS, D_FF, **options)
    else:
        kind = nn.TransformerDecoder if function.startswith(DECODER) else nn.TransformerEncoder
        layer = {nn.TransformerDecoder: nn.TransformerDecoderLayer}.get(
            kind, nn.TransformerEncoderLayer
        )
        module = layer(D_MODEL, N_HEADS, D_FF, **options)
        if function in (ENCODER, DECODER):
            module = kind(module, N_LAYERS)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return module.train(mode.startswith("train"))


def _translated(function, arguments):
    """Return the arguments as this function calls them, with tensors in them."""
    import torch

    attn_mask, key_padding_mask = map(arguments.get, ("attn_mask", "key_padding_mask"))
    if function == VARLEN:
        real = np.ones((BATCH, N_Q), bool) if key_padding_mask is None else ~key_padding_mask
        return {"real": torch.from_numpy(real), "window": (-1, -1 if attn_mask is None else 0)}
    if function == FLEX:
        return {"mask": torch.from_numpy(_added(attn_mask, key_padding_mask))}
    names, padding_names, flags = FUNCTIONS[function]
    if attn_mask is IS_CAUSAL:
        return dict.fromkeys(flags, True)
    if function == SDPA:
        if key_padding_mask is not None:
            padding = key_padding_mask[:, None]
            attn_mask = padding if attn_mask is None else attn_mask | padding
        if attn_mask is not None and attn_mask.dtype == bool:
            attn_mask = ~attn_mask  # here True = may attend
        key_padding_mask = None
    found = dict.fromkeys(names, attn_mask) | dict.fromkeys(padding_names, key_padding_mask)
    return {
        name: torch.from_numpy(np.ascontiguousarray(mask))
        for name, mask in found.items()
        if mask is not None
    }


def _added(attn_mask, key_padding_mask):
    """Return one mask to add for every sentence: True as -inf."""
    mask = np.zeros((BATCH, N_Q, N_Q), np.float32)  # no wider than the scores
    for part in (attn_mask, None if key_padding_mask is None else key_padding_mask[:, None]):
        if part is not None:
            mask = mask + (
                np.where(part, np.float32(-np.inf), np.float32(0)) if part.dtype == bool else part
            )
    return mask


@contextmanager
def _alone(mode):
    """One thread, no warnings; torch's random numbers and its switch as they were afterwards."""
    import torch

    threads, enabled = torch.get_num_threads(), torch.backends.mha.get_fastpath_enabled()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch: that a path is a prototype
        torch.set_num_threads(1)
        torch.backends.mha.set_fastpath_enabled(mode != "no_grad off")
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            torch.backends.mha.set_fastpath_enabled(enabled)


@contextmanager
def _watched():
    """Yield the two functions of torch that are its fast path, each knowing whether it ran."""
    import torch

    names = "_native_multi_head_attention", "_transformer_encoder_layer_fwd"
    with ExitStack() as stack:
        yield [
            stack.enter_context(mock.patch.object(torch, name, wraps=getattr(torch, name)))
            for name in names
        ]


def _masks(mask, n_k, dtype):
    """Return who may attend, (BATCH, N_Q, n_k), what is added, and torch's arguments."""
    name, written, shortest = MASKS[mask]
    pattern = np.ones((N_Q, n_k), bool)
    if name == "causal":
        pattern = causal_mask(N_Q, n_k)
    elif name == "empty row":
        pattern[EMPTY_ROW] = False
    bias = alibi_bias(1, N_Q, n_k)[0] if written == "bias" else 0.0
    attn_mask = {
        "bool": blocked(pattern),
        "flag": IS_CAUSAL,
        "-inf": additive(pattern, dtype),
        "-1e9": np.where(pattern, 0, LOWEST).astype(dtype),
        "bias": np.asarray(bias, dtype),
    }.get(written)
    arguments = {} if attn_mask is None else {"attn_mask": attn_mask}
    if shortest is None:
        return np.broadcast_to(pattern, (BATCH, N_Q, n_k)), bias, arguments
    real = padding_mask([n_k, 3, shortest], n_k)
    return pattern & real, bias, arguments | {"key_padding_mask": blocked(real[:, 0])}


if __name__ == "__main__":
    main()
