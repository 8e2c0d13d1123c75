"""Train small models on associative recall and store how much each kind of attention recalls.

A text is up to N_PAIRS pairs, each a token that holds a key and a value, and then the keys alone,
in another order: each has to be answered by its last value. In half of the texts every key is
new; in the others the second half of the pairs has the keys of the first half, with other values.
A model has learned positions and two layers of attention with residuals, and they differ in the
attention alone. `python -m tools.recall` takes about fifteen minutes and writes
attnlib/data/recall.json, which the chapter "Beyond the full table" shows.
"""

import json
import math
from pathlib import Path

import torch
from torch import nn

FILE = Path(__file__).resolve().parent.parent / "attnlib" / "data" / "recall.json"
N_KEYS, N_VALUES, N_PAIRS = 32, 16, 16
D_MODEL, D_K, WINDOW = 32, 8, 8
STEPS, BATCH, RATE = 1500, 64, 3e-3
SEEDS = 0, 1
KINDS = {
    "full": ("full", "full"),
    "window": ("window", "window"),
    "linear": ("linear", "linear"),
    "delta": ("delta", "delta"),
    "hybrid": ("delta", "full"),
}


class Attention(nn.Module):
    """One head of one kind; its values are as wide as its keys."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.norm = nn.RMSNorm(D_MODEL)
        self.q, self.k, self.v = (nn.Linear(D_MODEL, D_K, bias=False) for _ in range(3))
        self.o = nn.Linear(D_K, D_MODEL, bias=False)
        self.rate = nn.Linear(D_MODEL, 1)

    def forward(self, x):
        """Return what the head adds to tokens (batch, n, D_MODEL)."""
        y = self.norm(x)
        q, k, v = self.q(y), self.k(y), self.v(y)
        n = x.shape[1]
        distance = torch.arange(n)[:, None] - torch.arange(n)
        seen = (distance >= 0) & (distance < (WINDOW if self.kind == "window" else n))
        if self.kind in ("full", "window"):
            scores = (q @ k.mT / math.sqrt(D_K)).masked_fill(~seen, -math.inf)
            return self.o(scores.softmax(-1) @ v)
        q, k = (nn.functional.normalize(each, dim=-1) for each in (q, k))
        if self.kind == "linear":
            return self.o((q @ k.mT).masked_fill(~seen, 0) @ v)
        rates = self.rate(y).sigmoid()
        state, rows = x.new_zeros(len(x), D_K, D_K), []
        for t in range(n):
            key, query = k[:, t, :, None], q[:, t, None]
            recalled = key.mT @ state
            state = state + key @ (rates[:, t, None] * (v[:, t, None] - recalled))
            rows.append(query @ state)
        return self.o(torch.cat(rows, dim=1))


class Model(nn.Module):
    """Two layers of attention between embeddings and the logits of the values."""

    def __init__(self, kinds):
        super().__init__()
        self.keys = nn.Embedding(N_KEYS, D_MODEL)
        self.values = nn.Embedding(N_VALUES + 1, D_MODEL)  # the last one stands for "asked"
        self.positions = nn.Embedding(2 * N_PAIRS, D_MODEL)
        self.layers = nn.ModuleList(map(Attention, kinds))
        self.norm, self.out = nn.RMSNorm(D_MODEL), nn.Linear(D_MODEL, N_VALUES, bias=False)

    def forward(self, keys, values):
        """Return the logits (batch, n, N_VALUES) of the value that each token asks for."""
        x = self.keys(keys) + self.values(values) + self.positions.weight[: keys.shape[1]]
        for layer in self.layers:
            x = x + layer(x)
        return self.out(self.norm(x))


def texts(n, n_pairs, again, generator):
    """Return keys and values of n texts (n, n_pairs + n_keys), and the answers (n, n_keys)."""
    n_keys = n_pairs // 2 if again else n_pairs
    noise = torch.rand(n, N_KEYS, generator=generator)
    keys = noise.argsort(-1)[:, :n_keys]
    values = torch.randint(N_VALUES, (n, n_pairs), generator=generator)
    order = torch.rand(n, n_keys, generator=generator).argsort(-1)
    asked = torch.full((n, n_keys), N_VALUES)
    written = torch.cat([keys, keys], dim=1) if again else keys
    return (
        torch.cat([written, keys.gather(1, order)], dim=1),
        torch.cat([values, asked], dim=1),
        values[:, -n_keys:].gather(1, order),
    )


def train(kind, seed):
    """Return the accuracy of a trained model where keys are new, and where they come again."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Model(KINDS[kind])
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
    for step in range(STEPS):
        n_pairs = 2 * int(torch.randint(1, N_PAIRS // 2 + 1, (1,), generator=generator))
        keys, values, answers = texts(BATCH, n_pairs, step % 2 == 1, generator)
        logits = model(keys, values)[:, n_pairs:]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    held_out = torch.Generator().manual_seed(1000 + seed)
    return {
        "new": {n: accuracy(model, n, False, held_out) for n in (4, 8, 16)},
        "again": {n: accuracy(model, n, True, held_out) for n in (4, 8, 16)},
    }


@torch.no_grad()
def accuracy(model, n_pairs, again, generator):
    """Return the share of right answers on 500 texts."""
    keys, values, answers = texts(500, n_pairs, again, generator)
    guesses = model(keys, values)[:, n_pairs:].argmax(-1)
    return round((guesses == answers).double().mean().item(), 3)


def kept(kind, n):
    """Return how many numbers a model of this kind keeps of n tokens."""
    each = {"full": 2 * n * D_K, "window": 2 * min(n, WINDOW) * D_K}
    return sum(each.get(layer, D_K * D_K) for layer in KINDS[kind])


def main():
    """Train each kind with each seed, and store the accuracies."""
    torch.set_num_threads(1)
    found = {}
    for kind in KINDS:
        for seed in SEEDS:
            found.setdefault(kind, []).append(train(kind, seed))
            print(kind, seed, found[kind][-1], flush=True)
    numbers = {kind: kept(kind, 2 * N_PAIRS) for kind in KINDS}
    text = json.dumps({"accuracy": found, "kept": numbers}, indent=1)
    FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
