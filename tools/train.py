"""Train the small models of chapter 13 and store them: `python -m tools.train`.

The task: answer each token with what followed it the last time. Same seed, same machine, same
weights; another machine may round otherwise, so what is stored is not made again by the tests.
"""

import time

import numpy as np
import torch
from torch import nn

from attnlib import bridge, induction, sinusoidal_positions

D_MODEL, D_FF = 32, 32
N_HEADS = {1: 4, 2: 2}  # four heads in all, one layer or two
STEPS, BATCH, RATE, DECAY = 1200, 64, 5e-3, 0.1
# With two layers, a price on the size of each head's W_O, which rises once the task is learned:
# what does not pay for itself shrinks, so that few heads are left at work.
PRICE, FREE = {1: 0.0, 2: 0.25}, 0.3


class Model(nn.Module):
    """`induction.TokenModel` in torch."""

    def __init__(self, n_layers):
        super().__init__()
        n, n_tokens = induction.LENGTH, induction.N_TOKENS
        layer = nn.TransformerEncoderLayer(
            D_MODEL, N_HEADS[n_layers], D_FF, dropout=0.0, batch_first=True, norm_first=True
        )
        self.embedding = nn.Embedding(n_tokens, D_MODEL)
        self.register_buffer("positions", torch.tensor(sinusoidal_positions(n, D_MODEL)).float())
        self.register_buffer("later", torch.triu(torch.ones(n, n, dtype=torch.bool), 1))
        self.encoder = nn.TransformerEncoder(
            layer, n_layers, norm=nn.LayerNorm(D_MODEL), enable_nested_tensor=False
        )
        self.out = nn.Linear(D_MODEL, n_tokens)

    def forward(self, tokens):
        """Return the scores (batch, n, n_tokens) of tokens (batch, n)."""
        x = self.embedding(tokens) + self.positions
        return self.out(self.encoder(x, mask=self.later))

    def price(self):
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


def train(n_layers, steps=STEPS, seed=1):
    """Return a trained model and its loss, without the price, at each step."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = Model(n_layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    losses = []
    for step in range(steps):
        price = PRICE[n_layers] * max(0, step / steps - FREE)
        tokens, answers = map(torch.tensor, induction.sentences(BATCH, rng))
        loss = nn.functional.cross_entropy(
            model(tokens).flatten(0, 1), answers.flatten(), ignore_index=induction.NO_ANSWER
        )
        losses.append(loss.item())
        optimizer.zero_grad()
        (loss + price * model.price()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval(), losses


def main():
    """Train with one layer and with two, say what came of it, and store the weights."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tests = induction.sentences(2000, np.random.default_rng(1))
    stored = {}
    for n_layers in (1, 2):
        start = time.process_time()
        model, losses = train(n_layers)
        seconds = time.process_time() - start
        model = model.to_numpy()
        print(
            f"layers {n_layers}   loss {losses[0]:.2f} to {losses[-1]:.2f}   "
            f"accuracy {model.accuracy(*tests):.4f}   {seconds:.0f} s of one core",
            flush=True,
        )
        stored |= {f"{n_layers}.{k}": v for k, v in induction.to_arrays(model).items()}
        stored[f"{n_layers}.seconds"] = np.array(seconds)  # chapter 13 says how long it took
    induction.WEIGHTS.parent.mkdir(exist_ok=True)
    np.savez_compressed(induction.WEIGHTS, **stored)
    print(f"{induction.WEIGHTS.name}: {induction.WEIGHTS.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
