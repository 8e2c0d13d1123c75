"""Train small models on associative recall and store how much each kind of attention recalls.

A text is up to N_PAIRS pairs of a key and a value, and then the keys alone, in another order: each
has to be answered by its last value. In half of the texts every key is new; in the others the
second half of the pairs has the keys of the first half, with other values. A pair is one token
("together") or two tokens, the key and then the value ("apart"). A model has learned positions
and one or two layers of attention with residuals, and the models differ in these layers alone.
Three controls change one thing: "wide" gives the keys of "together" twice as many numbers,
"longer" trains on "apart" for three times as many steps, and "clocks" gives its models sinusoidal
positions, which are not learned. `python -m tools.recall` takes about an hour and writes
attnlib/data/recall.json, which the chapter "Beyond the full table" shows.
"""

import json
import math
from pathlib import Path

import torch
from torch import nn

from attnlib.positions import sinusoidal_positions

FILE = Path(__file__).resolve().parent.parent / "attnlib" / "data" / "recall.json"
N_KEYS, N_VALUES, N_PAIRS = 32, 16, 16
D_MODEL = 32
BATCH, RATE = 64, 3e-3
SEEDS = 0, 1, 2
D_K = {"together": 8, "wide": 16, "apart": 8, "longer": 8, "clocks": 8}
STEPS = {"together": 1500, "wide": 1500, "apart": 2500, "longer": 7500, "clocks": 2500}
KINDS = {
    "together": {
        "two full layers": ("full", "full"),
        "one full layer": ("full",),
        "window": ("window 8", "window 8"),
        "sum": ("sum", "sum"),
        "sum, learned beta": ("sum beta", "sum beta"),
        "delta, beta = 1": ("delta 1", "delta 1"),
        "delta": ("delta", "delta"),
        "delta, then full": ("delta", "full"),
    },
    "wide": {
        "sum": ("sum", "sum"),
        "sum, learned beta": ("sum beta", "sum beta"),
        "delta, beta = 1": ("delta 1", "delta 1"),
        "delta": ("delta", "delta"),
    },
    "apart": {
        "two full layers": ("full", "full"),
        "one full layer": ("full",),
        "delta, then full": ("delta", "full"),
        "window 8, then full": ("window 8", "full"),
        "window 2, then full": ("window 2", "full"),
    },
    "longer": {
        "two full layers": ("full", "full"),
    },
    "clocks": {
        "two full layers": ("full", "full"),
    },
}


def window(kind):
    """Return how many tokens a layer of this kind attends to, or None if it has no window."""
    return int(kind.removeprefix("window ")) if kind.startswith("window ") else None


class Attention(nn.Module):
    """One head of one kind; its values are as wide as its keys."""

    def __init__(self, kind, d_k):
        super().__init__()
        self.kind = kind
        self.norm = nn.RMSNorm(D_MODEL)
        self.q, self.k, self.v = (nn.Linear(D_MODEL, d_k, bias=False) for _ in range(3))
        self.o = nn.Linear(d_k, D_MODEL, bias=False)
        self.rate = nn.Linear(D_MODEL, 1)

    def forward(self, x):
        """Return what the head adds to tokens (batch, n, D_MODEL)."""
        y = self.norm(x)
        q, k, v = self.q(y), self.k(y), self.v(y)
        n = x.shape[1]
        distance = torch.arange(n)[:, None] - torch.arange(n)
        seen = (distance >= 0) & (distance < (window(self.kind) or n))
        if self.kind == "full" or window(self.kind):
            scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
            return self.o(scores.softmax(-1) @ v)
        q, k = (nn.functional.normalize(each, dim=-1) for each in (q, k))
        if self.kind in ("sum beta", "delta"):
            rates = self.rate(y).sigmoid()
        else:
            rates = torch.ones_like(x[..., :1])
        written = rates * v
        if self.kind.startswith("delta"):  # what earlier tokens wrote for this key is subtracted
            overlaps = rates * (k @ k.mT).masked_fill(distance <= 0, 0)
            written = torch.linalg.solve_triangular(
                overlaps + torch.eye(n), written, upper=False, unitriangular=True
            )
        return self.o((q @ k.mT).masked_fill(~seen, 0) @ written)


class Model(nn.Module):
    """Layers of attention between embeddings and the logits of the values."""

    def __init__(self, kinds, d_k, clocks=False):
        super().__init__()
        self.keys = nn.Embedding(N_KEYS + 1, D_MODEL)  # the last one stands for "no key"
        self.values = nn.Embedding(N_VALUES + 1, D_MODEL)  # and here for "no value"
        self.positions = nn.Embedding(3 * N_PAIRS, D_MODEL)
        if clocks:
            fixed = torch.from_numpy(sinusoidal_positions(3 * N_PAIRS, D_MODEL)).float()
            self.positions.weight = nn.Parameter(fixed, requires_grad=False)
        self.layers = nn.ModuleList(Attention(kind, d_k) for kind in kinds)
        self.norm, self.out = nn.RMSNorm(D_MODEL), nn.Linear(D_MODEL, N_VALUES, bias=False)

    def forward(self, keys, values):
        """Return the logits (batch, n, N_VALUES) of the value that each token asks for."""
        x = self.keys(keys) + self.values(values) + self.positions.weight[: keys.shape[1]]
        for layer in self.layers:
            x = x + layer(x)
        return self.out(self.norm(x))


def texts(n, n_pairs, again, apart, generator):
    """Return keys and values of n texts, each (n, length), and the answers (n, n_keys)."""
    n_keys = n_pairs // 2 if again else n_pairs
    noise = torch.rand(n, N_KEYS, generator=generator)
    keys = noise.argsort(-1)[:, :n_keys]
    values = torch.randint(N_VALUES, (n, n_pairs), generator=generator)
    order = torch.rand(n, n_keys, generator=generator).argsort(-1)
    asked, answers = keys.gather(1, order), values[:, -n_keys:].gather(1, order)
    written = torch.cat([keys, keys], dim=1) if again else keys
    if apart:
        none = torch.full_like(written, -1)
        written = torch.stack([written, none], dim=2).flatten(1)
        values = torch.stack([none, values], dim=2).flatten(1)
    keys = torch.cat([written, asked], dim=1)
    values = torch.cat([values, torch.full_like(asked, -1)], dim=1)
    return keys % (N_KEYS + 1), values % (N_VALUES + 1), answers


def train(kinds, apart, n_steps, seed, d_k=8, clocks=False):
    """Return the accuracy of a trained model where keys are new, and where they come again."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Model(kinds, d_k, clocks)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=n_steps)
    for step in range(n_steps):
        n_pairs = 2 * int(torch.randint(1, N_PAIRS // 2 + 1, (1,), generator=generator))
        keys, values, answers = texts(BATCH, n_pairs, step % 2 == 1, apart, generator)
        logits = model(keys, values)[:, -answers.shape[1] :]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    held_out = torch.Generator().manual_seed(1000 + seed)
    return {
        "new": accuracy(model, False, apart, held_out),
        "again": accuracy(model, True, apart, held_out),
    }


@torch.no_grad()
def accuracy(model, again, apart, generator):
    """Return the share of right answers on 500 texts of N_PAIRS pairs."""
    keys, values, answers = texts(500, N_PAIRS, again, apart, generator)
    guesses = model(keys, values)[:, -answers.shape[1] :].argmax(-1)
    return round((guesses == answers).double().mean().item(), 3)


def kept(kinds, n, d_k):
    """Return how many numbers a model with these layers keeps of n tokens."""
    rows = [n if kind == "full" else window(kind) for kind in kinds]
    return sum(2 * min(each, n) * d_k if each else d_k * d_k for each in rows)


def main():
    """Train each kind with each seed on both tasks, and store the accuracies."""
    torch.set_num_threads(1)
    found = {}
    for task, kinds in KINDS.items():
        apart, d_k = task in ("apart", "longer", "clocks"), D_K[task]
        length = (3 if apart else 2) * N_PAIRS
        found[task] = {}
        for name, layers in kinds.items():
            runs = [
                train(layers, apart, STEPS[task], seed, d_k, task == "clocks") for seed in SEEDS
            ]
            found[task][name] = {"kept": kept(layers, length, d_k), "runs": runs}
            print(task, name, found[task][name], flush=True)
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
