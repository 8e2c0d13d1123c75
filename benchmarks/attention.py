"""Time and memory of attention against the number of tokens, beside PyTorch, one thread each.

The candidates take turns within one run, and the fastest turn of each counts: whatever else a
machine does can only make a turn longer. Only ratios are worth quoting, and they differ between
kinds of processors, so the last run on each kind is kept, in `attnlib/data/speed.json`: the
chapter on costs draws it, wherever its notebook runs. Writes `attention.md` and `attention.svg`,
which the page on speed shows. Run by `make bench`: it keeps NumPy to one thread.
"""

import json
import os
import platform
import re
import time
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from attnlib import blockwise_attention, palette, plots, scaled_dot_product_attention, speed
from attnlib.bridge import from_torch

HERE = Path(__file__).resolve().parent
SIZES = [128, 256, 512, 1024, 2048, 4096, 8192, 16384]
HEADS, WIDTH = 8, 64
TORCH, BLOCKWISE = "PyTorch", "blockwise_attention"
PRODUCTS, BARE = "products alone", "products and exp alone"
SHOWN = (512, 2048)  # the sizes at which the kinds of processors are compared


def tutorial_loop(queries, keys, values):
    """Attend head by head as tutorials do; np.sqrt makes float64 of float32."""
    heads = []
    for q, k, v in zip(queries, keys, values, strict=True):
        scores = q @ k.T / np.sqrt(q.shape[-1])
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        heads.append(powers / powers.sum(axis=-1, keepdims=True) @ v)
    return np.stack(heads)


def products(queries, keys, values, between=None, block=128):
    """Do the two products in one buffer; `between` works on what the first one left there."""
    output = np.empty_like(queries)
    buffer = np.empty((block, keys.shape[-2]), queries.dtype)
    for head, (q, k, v) in enumerate(zip(queries, keys, values, strict=True)):
        for first in range(0, len(q), block):
            rows = slice(first, first + block)
            np.matmul(q[rows], k.T, out=buffer)
            if between:
                between(buffer, out=buffer)
            np.matmul(buffer, v, out=output[head, rows])


def products_and_exp(queries, keys, values):
    """Do what no attention in NumPy can do without: both products, and exp between them."""
    products(queries, keys, values, between=np.exp)


def torch_attention(queries, keys, values):
    """Attend by torch's fused kernel, which does not hold the (n, n) matrix either."""
    tensors = (torch.from_numpy(array)[None] for array in (queries, keys, values))
    return torch.nn.functional.scaled_dot_product_attention(*tensors)


# name: (function, the most tokens that it is run with, role of its color, style of its line)
CANDIDATES = {
    TORCH: (torch_attention, 16384, "muted", "-"),
    PRODUCTS: (products, 4096, "muted", ":"),
    BARE: (products_and_exp, 4096, "muted", "--"),
    BLOCKWISE: (blockwise_attention, 16384, "ink", "-"),
    "scaled_dot_product_attention": (scaled_dot_product_attention, 4096, "ink", "--"),
    "tutorials' loop": (tutorial_loop, 4096, "ink", "-."),
}


def take_turns(functions, rounds):
    """Return the seconds of each function's fastest turn, after one call of each to warm up."""
    seconds = {name: [] for name in functions}
    for turn in range(rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: min(times) for name, times in seconds.items()}


def peak(function):
    """Return the most bytes that NumPy held during a call, beyond inputs and output."""
    tracemalloc.start()
    output = function()
    outputs = output if isinstance(output, tuple) else (output,)
    largest = tracemalloc.get_traced_memory()[1] - outputs[0].nbytes
    tracemalloc.stop()
    return largest


def measure(n):
    """Return {name: seconds} and {name: bytes} at n tokens."""
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(HEADS, n, WIDTH)).astype(np.float32) for _ in range(3)]
    calls = {
        name: lambda function=function: function(*inputs)
        for name, (function, most, *_) in CANDIDATES.items()
        if n <= most
    }
    seconds = take_turns(calls, rounds=max(3, min(101, 62_000 // n)))
    uncounted = {TORCH, PRODUCTS, BARE}  # torch's memory is not NumPy's to count
    memory = {name: peak(call) for name, call in calls.items() if name not in uncounted}
    return seconds, memory


def encoder_layers():
    """Return {n: seconds of our encoder layer / seconds of torch's}, widths as in the paper."""
    theirs = torch.nn.TransformerEncoderLayer(512, HEADS, 2048, batch_first=True).eval()
    ours, ratios = from_torch(theirs), {}
    for n in (32, 128, 512):
        x = torch.randn(1, n, 512, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            pair = {"ours": lambda x=x: ours(x.numpy()), "theirs": lambda x=x: theirs(x)}
            seconds = take_turns(pair, rounds=31)
        ratios[n] = seconds["ours"] / seconds["theirs"]
    return ratios


def exponent(by_size):
    """Return p of the power n^p that fits {n: amount} on log-log axes."""
    sizes, amounts = zip(*by_size.items(), strict=True)
    return np.polyfit(np.log(sizes), np.log(amounts), 1)[0]


def by_candidate(measured):
    """Turn {n: {name: amount}} into {name: {n: amount}}."""
    names = dict.fromkeys(name for amounts in measured.values() for name in amounts)
    return {
        name: {n: amounts[name] for n, amounts in measured.items() if name in amounts}
        for name in names
    }


def table(head, rows):
    """Return rows of words as a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def run_here():
    """Measure everything; return it as `speed.json` keeps it, numbers with four digits."""
    seconds, memory = {}, {}
    for n in SIZES:
        print(f"attention: {n} tokens ...", flush=True)
        seconds[n], memory[n] = measure(n)
    found = {
        "processor": processor(),
        "versions": f"Python {platform.python_version()}, NumPy {np.__version__}, "
        f"PyTorch {torch.__version__.partition('+')[0]}",
        "seconds": by_candidate(seconds),
        "bytes": by_candidate(memory),
        "layers": encoder_layers(),
    }
    return json.loads(json.dumps(found), parse_float=lambda text: float(f"{float(text):.4g}"))


def sized(amounts):
    """Return {n: amount} with numbers for n, which JSON keeps as text."""
    return {int(n): amount for n, amount in amounts.items()}


def code(name):
    """Return a candidate's name as the page writes it."""
    return f"`{name}`" if "_" in name else name


def ratios(kind):
    """Return {name: {n: seconds / seconds of PyTorch}} of one kind of processor."""
    torch_seconds = kind["seconds"][TORCH]
    return {
        name: {int(n): amount / torch_seconds[n] for n, amount in amounts.items()}
        for name, amounts in kind["seconds"].items()
    }


def rows_of(found, form):
    """Return the lines of a table: a candidate, its amounts by size, the power of n."""
    return [
        [code(name), *(form.format(amounts[n]) if n in amounts else "" for n in SIZES)]
        for name, amounts in found.items()
    ]


def bound(kind):
    """Say what the time of `blockwise_attention` goes into, as far as this kind was asked."""
    parts = {name: amounts.get(2048) for name, amounts in ratios(kind).items()}
    whole, bare, least = (parts.get(name) for name in (BLOCKWISE, BARE, PRODUCTS))
    if least is None:
        share = bare / whole
        return f"products and exp take {share:.0%} of the time, all the rest {1 - share:.0%}"
    products_too, exp = round(100 * least / whole), round(100 * (bare - least) / whole)
    rest = max(0, 100 - products_too - exp)  # fastest turns of two functions: it can be below 0
    return f"the two products take {products_too}%, exp {exp}%, all the rest {rest}%"


def in_short(compared):
    """Say how much longer than PyTorch the attentions in NumPy take, at the shown sizes."""
    least_and_most = [
        (min(times), max(times))
        for times in (
            [found[name][n] for found in compared for n in SHOWN]
            for name in (BLOCKWISE, "scaled_dot_product_attention", "tutorials' loop")
        )
    ]
    few, all_stored, loop = (f"{least:.1f} to {most:.1f}" for least, most in least_and_most)
    sizes = " and ".join(f"{n:,}" for n in SHOWN)
    return (
        f"**In short**, at {sizes} tokens: without storing the weights, `blockwise_attention` in "
        f"NumPy takes {few} times as long as PyTorch. If the weights are stored, it is "
        f"{all_stored} times, and with the tutorials' loop {loop} times."
    )


def report(kinds):
    """Return what was found on each kind of processor, in Markdown."""
    compared = [ratios(kind) for kind in kinds.values()]
    lines = [
        [
            code(name),
            *(
                ", ".join(f"{r[name][n]:.2f}" if name in r else "–" for r in compared)
                for n in SHOWN
            ),
        ]
        for name in CANDIDATES
    ]
    missing = ""
    if any(name not in found for name in CANDIDATES for found in compared):
        missing = "\nA dash means that this was not measured there.\n"
    layer = [
        [kind, *(f"{ratio:.2f}" for ratio in found["layers"].values())]
        for kind, found in kinds.items()
    ]
    sizes = next(iter(kinds.values()))["layers"]
    where = " ".join(f"{found['processor']}: {found['versions']}." for found in kinds.values())
    order = ", then ".join(kinds)
    goes = "; ".join(f"on the processor {kind}, {bound(found)}" for kind, found in kinds.items())
    return f"""\
{in_short(compared)}

Measured on {len(kinds)} kind{"s" * (len(kinds) > 1)} of processor, one thread, float32, {HEADS} \
heads of {WIDTH} numbers. {where}

**Time**, as a multiple of PyTorch's `F.scaled_dot_product_attention`, {order}:

{table(["", *(f"{n:,} tokens" for n in SHOWN)], lines)}
{missing}
Where the time of `blockwise_attention` goes at 2,048 tokens: {goes}.

{"".join(map(whole, kinds, kinds.values()))}\
**A whole encoder layer** (rows of 512 numbers, 8 heads, 2,048 hidden units), as a multiple of the \
time of `nn.TransformerEncoderLayer` in `eval()` under `no_grad()`, by number of tokens. For \
example, 1.10 means that our layer takes 10% longer than PyTorch's:

{table(["", *sizes], layer)}
"""


def whole(name, kind):
    """Return all that was found on one kind of processor, folded."""
    head = [f"{n:,}" for n in SIZES]
    times = {one: sized(amounts) for one, amounts in kind["seconds"].items()}
    held = {
        one: {int(n): amount / 1e6 for n, amount in amounts.items()}
        for one, amounts in kind["bytes"].items()
    }
    powers = [f"{exponent(amounts):.2f}" for amounts in times.values()]
    lines = [[*row, p] for row, p in zip(rows_of(ratios(kind), "{:.2f}"), powers, strict=True)]
    took = times[TORCH][2048] * 1000
    return f"""\
:::{{dropdown}} All sizes, {name}
PyTorch took {took:.0f} ms for 2,048 tokens. Time as a multiple of PyTorch's. The last column, \
p, says that the time itself grows about like n<sup>p</sup>, where n is the number of tokens.

{table(["", *head, "p"], lines)}

Memory beyond inputs and output, in megabytes:

{table(["", *head], rows_of(held, "{:.1f}"))}
:::

"""


def processor():
    """Return the name of the processor, and whether it has vectors of 512 bits."""
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "an unnamed processor"
    names = [line.partition(":")[2].strip() for line in facts.splitlines() if "model name" in line]
    wide = "with" if "avx512f" in facts else "without"
    name = " ".join(re.sub(r"\(\w+\)|Processor", "", (names or [platform.machine()])[0]).split())
    return f"{name} ({wide} AVX-512)"


def kind_of(processor):
    """Return under which name its numbers are kept: what decides is how wide its vectors are."""
    return processor.rpartition("(")[2].rstrip(")") or processor


def draw(kinds):
    """Draw time beside PyTorch's, and memory, against the number of tokens: as wide as a phone."""
    plots.use_style()
    figure, (above, below) = plt.subplots(2, 1, figsize=(3.5, 7), layout="constrained")
    kind = list(kinds.values())[-1]
    panels = (
        (above, ratios(kind), f"times PyTorch's time, {list(kinds)[-1]}"),
        (below, {name: sized(amounts) for name, amounts in kind["bytes"].items()}, "bytes"),
    )
    for ax, found, unit in panels:
        for name, amounts in found.items():
            *_, role, style = CANDIDATES[name]
            line = {"color": palette.light(role), "linestyle": style, "marker": "o"}
            ax.loglog(*zip(*amounts.items(), strict=True), markersize=3.5, label=name, **line)
        ax.set(title=unit, xticks=SIZES, xticklabels=[f"{n:,}" for n in SIZES])
        ax.tick_params(axis="x", labelrotation=45)
        ax.minorticks_off()
    above.set(ylim=(0.4, None), yticks=[0.5, 1, 2, 4, 8], yticklabels=["½", 1, 2, 4, 8])
    below.set_xlabel("tokens")
    lines, names = above.get_legend_handles_labels()
    highest = sorted(zip(lines, names, strict=True), key=lambda pair: -pair[0].get_ydata()[-1])
    figure.legend(*zip(*highest, strict=True), loc="outside lower left", handlelength=3)
    figure.savefig(HERE / "attention.svg", metadata={"Date": None})


def main():
    """Measure, keep it beside what other kinds gave, and write what the page on speed shows."""
    torch.set_num_threads(1)
    if os.environ.get("OMP_NUM_THREADS") != "1":
        raise SystemExit("NumPy may use several threads: run `make bench`.")
    kinds = speed.read()
    here = run_here()
    kinds.pop(kind_of(here["processor"]), None)
    kinds[kind_of(here["processor"])] = here  # the last one, which is drawn
    speed.STORED.write_text(json.dumps(kinds, indent=1) + "\n", encoding="utf-8")
    write(kinds)


def write(kinds):
    """Write the tables and the figure."""
    text = report(kinds)
    draw(kinds)
    (HERE / "attention.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
