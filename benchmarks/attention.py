"""Time and memory of attention against the number of tokens, beside PyTorch, one thread each.

The candidates take turns within one run, so that a busy moment hits all of them; only ratios of
medians are worth quoting. Writes `attention.md` and `attention.svg`, which the page on speed
shows. Run by `make bench`, which keeps NumPy to one thread.
"""

import os
import platform
import statistics
import time
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from attnlib import blockwise_attention, palette, plots, scaled_dot_product_attention
from attnlib.bridge import from_torch

HERE = Path(__file__).resolve().parent
SIZES = [128, 256, 512, 1024, 2048, 4096, 8192, 16384]
HEADS, WIDTH = 8, 64
TORCH = "PyTorch"


def tutorial_loop(queries, keys, values):
    """Attend head by head as tutorials do; np.sqrt makes float64 of float32."""
    heads = []
    for q, k, v in zip(queries, keys, values, strict=True):
        scores = q @ k.T / np.sqrt(q.shape[-1])
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        heads.append(powers / powers.sum(axis=-1, keepdims=True) @ v)
    return np.stack(heads)


def products_and_exp(queries, keys, values, block=128):
    """Do what no attention in NumPy can do without: both products and exp, in one buffer."""
    output = np.empty_like(queries)
    buffer = np.empty((block, keys.shape[-2]), queries.dtype)
    for head, (q, k, v) in enumerate(zip(queries, keys, values, strict=True)):
        for first in range(0, len(q), block):
            rows = slice(first, first + block)
            np.matmul(q[rows], k.T, out=buffer)
            np.matmul(np.exp(buffer, out=buffer), v, out=output[head, rows])


def torch_attention(queries, keys, values):
    """Attend by torch's fused kernel, which does not hold the (n, n) matrix either."""
    tensors = (torch.from_numpy(array)[None] for array in (queries, keys, values))
    return torch.nn.functional.scaled_dot_product_attention(*tensors)


# name: (function, the most tokens that it is run with, role of its colour, style of its line)
CANDIDATES = {
    TORCH: (torch_attention, 16384, "muted", "-"),
    "products and exp alone": (products_and_exp, 4096, "muted", ":"),
    "blockwise_attention": (blockwise_attention, 16384, "weight", "-"),
    "scaled_dot_product_attention": (scaled_dot_product_attention, 4096, "weight", "--"),
    "tutorials' loop": (tutorial_loop, 4096, "ink", "-."),
}


def take_turns(functions, rounds):
    """Return the median seconds of each function, called in turn after one call to warm up."""
    seconds = {name: [] for name in functions}
    for turn in range(rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


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
    seconds = take_turns(calls, rounds=31 if n <= 512 else 9 if n <= 4096 else 3)
    uncounted = {TORCH, "products and exp alone"}  # torch's memory is not NumPy's to count
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
            medians = take_turns(pair, rounds=31)
        ratios[n] = medians["ours"] / medians["theirs"]
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


def report(seconds, memory, layers):
    """Return what was found, in Markdown."""
    times, held = by_candidate(seconds), by_candidate(memory)
    ratios = [
        [
            f"`{name}`" if "_" in name else name,
            *(f"{times[name][n] / times[TORCH][n]:.2f}" if n in times[name] else "" for n in SIZES),
            f"{exponent(times[name]):.2f}",
        ]
        for name in times
    ]
    megabytes = [
        [
            f"`{name}`" if "_" in name else name,
            *(f"{amounts[n] / 1e6:.1f}" if n in amounts else "" for n in SIZES),
            f"{exponent(amounts):.2f}",
        ]
        for name, amounts in held.items()
    ]
    head = [f"{n:,}" for n in SIZES]
    layer = [["our `EncoderLayer`", *(f"{ratio:.2f}" for ratio in layers.values())]]
    return f"""\
Measured on {processor()}, {platform.system()}, Python {platform.python_version()}, \
NumPy {np.__version__}, PyTorch {torch.__version__.partition("+")[0]}, one thread, float32, \
{HEADS} heads of {WIDTH} dimensions. PyTorch took {times[TORCH][2048] * 1000:.0f} ms for 2,048 \
tokens.

**Time**, as a multiple of PyTorch's `F.scaled_dot_product_attention`, by number of tokens. The \
last column is the exponent p of the fitted power n<sup>p</sup> of the time itself.

{table(["", *head, "p"], ratios)}

**Memory** beyond inputs and output, in megabytes.

{table(["", *head, "p"], megabytes)}

**A whole encoder layer** (512, 8 heads, 2,048), as a multiple of the time of \
`nn.TransformerEncoderLayer` in `eval()` under `no_grad()`.

{table(["", *(f"{n}" for n in layers)], layer)}
"""


def processor():
    """Return the name of the processor, and whether it has vectors of 512 bits."""
    try:
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "an unnamed processor"
    names = [line.partition(":")[2].strip() for line in facts.splitlines() if "model name" in line]
    wide = "with" if "avx512f" in facts else "without"
    return f"{names[0] if names else platform.machine()} ({wide} AVX-512)"


def draw(seconds, memory):
    """Draw both against the number of tokens on log-log axes."""
    plots.use_style()
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for ax, measured, unit in zip(axes, (seconds, memory), ("seconds", "bytes"), strict=True):
        for name, amounts in by_candidate(measured).items():
            *_, role, style = CANDIDATES[name]
            line = {"color": palette.light(role), "linestyle": style, "marker": "o"}
            ax.loglog(*zip(*amounts.items(), strict=True), label=name, markersize=3.5, **line)
        ax.set(xlabel="tokens", ylabel=unit, xticks=SIZES, xticklabels=SIZES)
        ax.tick_params(axis="x", labelrotation=45)
        ax.minorticks_off()
    axes[0].legend(loc="upper left", fontsize=9)
    figure.savefig(HERE / "attention.svg", metadata={"Date": None})


def main():
    """Measure, print, and write what the page on speed shows."""
    torch.set_num_threads(1)
    if os.environ.get("OMP_NUM_THREADS") != "1":
        raise SystemExit("NumPy may use several threads: run `make bench`.")
    seconds, memory = {}, {}
    for n in SIZES:
        print(f"attention: {n} tokens ...", flush=True)
        seconds[n], memory[n] = measure(n)
    text = report(seconds, memory, encoder_layers())
    draw(seconds, memory)
    (HERE / "attention.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
