"""Train the small models of letters and store them: `python -m tools.train`.

The task: answer each token with what followed it the last time. Same seed, same machine, same
weights; another machine may round otherwise, so what is stored is not made again by the tests.
"""

import time

import numpy as np
import torch
from torch import nn

from attnlib import bridge, sinusoidal_positions
from attnlib.models import induction

D_MODEL, D_FF = 32, 32
N_HEADS = {1: 4, 2: 2}  # four heads in all, one layer or two
STEPS, BATCH, RATE, DECAY = 1200, 64, 5e-3, 0.1
LONG = 5 * STEPS  # one layer gets more time, so that its score is not a matter of patience
# A penalty on the size of each head's W_O, which rises once the task is learned: heads that do
# not lower the loss shrink, so that few of them are left.
PENALTY, PENALTY_START = 0.25, 0.3
WATCHED = 25  # steps from one measurement of the heads to the next
# How far a model gets on sentences that are longer than those it trained on, by the base of its
# sinusoidal positions: mean accuracy of the last letters of sentences of LONGER letters.
BASES, SEEDS, LONGER, LAST = (100, 10_000, 1_000_000), (1, 2, 3), 40, 12


class Model(nn.Module):
    """`induction.TokenModel` in torch."""

    def __init__(self, n_layers, base=10_000):
        super().__init__()
        self.base = base
        n, n_tokens = induction.LENGTH, induction.N_TOKENS
        layer = nn.TransformerEncoderLayer(
            D_MODEL, N_HEADS[n_layers], D_FF, dropout=0.0, batch_first=True, norm_first=True
        )
        self.embedding = nn.Embedding(n_tokens, D_MODEL)
        self.place(n)
        self.encoder = nn.TransformerEncoder(
            layer, n_layers, norm=nn.LayerNorm(D_MODEL), enable_nested_tensor=False
        )
        self.out = nn.Linear(D_MODEL, n_tokens)

    def place(self, n):
        """Make positions and a causal mask for sentences of n tokens."""
        positions = sinusoidal_positions(n, D_MODEL, base=self.base)
        self.register_buffer("positions", torch.tensor(positions).float())
        self.register_buffer("later", torch.triu(torch.ones(n, n, dtype=torch.bool), 1))

    def forward(self, tokens):
        """Return the scores (batch, n, n_tokens) of tokens (batch, n)."""
        x = self.embedding(tokens) + self.positions
        return self.out(self.encoder(x, mask=self.later))

    def penalty(self):
        """Return the sum of the sizes of all heads' rows of W_O."""
        total = 0.0
        for layer in self.encoder.layers:
            attention = layer.self_attn
            heads = attention.out_proj.weight.unflatten(1, (attention.num_heads, -1))
            total += heads.norm(dim=(0, 2)).sum()  # one length for each head
        return total

    def to_numpy(self):
        """Return the same model as an `induction.TokenModel`."""
        return induction.TokenModel(
            self.embedding.weight.detach().numpy().copy(),
            bridge.from_torch(self.encoder),
            self.out.weight.detach().numpy().T.copy(),
            self.out.bias.detach().numpy().copy(),
        )


def train(
    n_layers, steps=STEPS, *, penalty=0.0, seed=1, base=10_000, watch=lambda step, model: None
):
    """Return a trained model and its loss, without the penalty, at each step.

    `watch` is called with the number of steps done and the model, before each step.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = Model(n_layers, base)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    losses = []
    for step in range(steps):
        watch(step, model)
        tokens, answers = map(torch.tensor, induction.sentences(BATCH, rng))
        loss = nn.functional.cross_entropy(
            model(tokens).flatten(0, 1), answers.flatten(), ignore_index=induction.NO_ANSWER
        )
        losses.append(loss.item())
        optimizer.zero_grad()
        (loss + penalty * max(0, step / steps - PENALTY_START) * model.penalty()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval(), losses


def longer():
    """Return rows of base, seed, and the accuracy at the last letters of longer sentences."""
    tokens, answers = induction.sentences(400, np.random.default_rng(2), n=LONGER)
    asked = (answers >= 0)[:, -LAST:]
    rows = []
    for base in BASES:
        for seed in SEEDS:
            model, _ = train(2, penalty=PENALTY, seed=seed, base=base)
            model.place(LONGER)
            with torch.no_grad():
                said = model(torch.tensor(tokens)).argmax(-1).numpy()
            right = (said == answers)[:, -LAST:][asked].mean()
            rows.append([base, seed, right])
            print(
                f"base {base:9,}   seed {seed}   right at the last letters {right:.2f}", flush=True
            )
    return rows


def story(tests):
    """Return a list that fills while a model trains, and the `watch` that fills it.

    A row holds the steps done, the accuracy, and what the heads look at: for each layer and head,
    the mean weight on the token before and on the answer.
    """
    rows = []

    def watch(step, model):
        if step % WATCHED == 0:
            now = model.to_numpy()
            seen = induction.looks(now(tests[0])[1], tests[0])
            rows.append([step, now.accuracy(*tests), *np.ravel(seen)])

    return rows, watch


def pack(model):
    """Return `induction.to_arrays`, its weights rounded to whole numbers of 1/1024, as int16."""
    arrays = induction.to_arrays(model)
    return {
        name: np.round(array * induction.FINENESS).astype(np.int16) if array.ndim else array
        for name, array in arrays.items()
    }


def main():
    """Train three models, print their losses and accuracies, and store what their chapter shows."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tests = induction.sentences(2000, np.random.default_rng(1))
    runs = {
        "1": {"n_layers": 1, "steps": LONG},
        "2": {"n_layers": 2, "penalty": PENALTY},
        "2 unpenalized": {"n_layers": 2},
    }
    stored = {}
    for name, settings in runs.items():
        start = time.process_time()
        model, losses = train(**settings)
        seconds = time.process_time() - start
        packed = pack(model.to_numpy())
        accuracy = induction.unpack(packed).accuracy(*tests)
        print(
            f"{name:10}   loss {losses[0]:.2f} to {losses[-1]:.2f}   accuracy {accuracy:.4f}   "
            f"{seconds:.0f} s of one core",
            flush=True,
        )
        stored |= {f"{name}/{what}": array for what, array in packed.items()}
        stored[f"{name}/seconds"] = np.array(seconds)
    brief, _ = train(1)  # as long as the others
    stored["1/accuracy after 1200"] = np.array(brief.to_numpy().accuracy(*tests))
    rows, watch = story([each[:200] for each in tests])
    train(2, penalty=PENALTY, watch=watch)  # the same again: measuring changes nothing
    stored["2/story"] = np.array(rows, np.float32)
    stored["longer/rows"] = np.array(longer(), np.float32)
    induction.WEIGHTS.parent.mkdir(exist_ok=True)
    np.savez_compressed(induction.WEIGHTS, **stored)
    print(f"{induction.WEIGHTS.name}: {induction.WEIGHTS.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
