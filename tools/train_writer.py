"""Train the model that writes and store its weights: `python -m tools.train_writer [FOLDER]`.

It learns from stories that `attnlib.world` tells, each of them new. Checkpoints go into FOLDER, a
temporary one unless given, and a run that was interrupted goes on from the last one. Same seed,
same machine, same weights; another machine may round otherwise, so what is stored is not made again
by the tests.
"""

import argparse
import json
import math
import os
import random
import tempfile
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from attnlib.models import writing
from attnlib.world import END, World, show
from tools.measure_writer import held_out, losses, written

EPS, BASE = 1e-5, 10000.0  # of the norms and of the rotary positions
WATCHED = 100  # held-out stories on which the loss is measured during training
SHORT_STEPS, COMPARED = 1500, (1000, 5000)  # of the control: when it is compared
AMONG = 8  # steps whose stories are drawn together
KEPT = (0, 50, 200, 1000)  # checkpoints that are kept, to show what the model wrote then


@dataclass(frozen=True)
class Recipe:
    """The shape of a model, and how it is trained.

    `loudness` and `copying` were meant to help the model to look things up; neither was compared
    with a run without it. `short_steps` is there for the control alone, which shows its harm.
    """

    d_model: int = 128
    n_layers: int = 3
    n_heads: int = 4
    n_kv_heads: int = 2
    d_ff: int = 256
    seed: int = 0
    steps: int = 5500
    batch: int = 16  # stories in a step
    rate: float = 3e-3
    warm_up: int = 200  # steps in which the rate rises
    decay_from: float = 0.4  # the part of the steps after which the rate falls to 0
    weight_decay: float = 0.1
    embedding_share: float = 0.1  # of the rate, with which the embeddings learn
    short: int = 64  # how many tokens of a story are read in the first steps
    short_steps: int = 0  # how many steps that are
    n_stories: int | None = None  # how many there are to learn from; None: each is a new one
    loudness: float = 3.0  # size of the embeddings where they enter the first layer
    copying: float = 0.5  # how much of W_V, transposed, is added to W_O at the start


# A second run goes on from the weights of the first, on other stories. Its learning rate rises once
# more, and then it falls for much longer. (The stored model's second run began from weights that
# had been stored in 8 bits.)
SECOND = Recipe(seed=1, steps=14_000, rate=2e-3, decay_from=0.05)


class Norm(nn.Module):
    """RMSNorm."""

    def __init__(self, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        """Return tokens (..., n, d_model) with a mean square of 1, times the weight."""
        return functional.rms_norm(x, self.weight.shape, self.weight, EPS)


class Attention(nn.Module):
    """Causal attention of grouped heads with rotary positions."""

    def __init__(self, recipe):
        super().__init__()
        d_model, self.n_heads, self.n_kv_heads = recipe.d_model, recipe.n_heads, recipe.n_kv_heads
        self.d = d_model // self.n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, self.n_kv_heads * self.d, bias=False)
        self.v_proj = nn.Linear(d_model, self.n_kv_heads * self.d, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, angles):
        """Return what the heads add to tokens (batch, n, d_model)."""
        q = turn(self.q_proj(x).unflatten(-1, (self.n_heads, self.d)).transpose(1, 2), angles)
        k = turn(self.k_proj(x).unflatten(-1, (self.n_kv_heads, self.d)).transpose(1, 2), angles)
        v = self.v_proj(x).unflatten(-1, (self.n_kv_heads, self.d)).transpose(1, 2)
        group = self.n_heads // self.n_kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        z = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(z.transpose(1, 2).flatten(-2))

    def copy(self, share):
        """Add to W_O a share of W_V transposed, so that each head begins by copying."""
        v = self.v_proj.weight.data.unflatten(0, (self.n_kv_heads, self.d))
        v = v.repeat_interleave(self.n_heads // self.n_kv_heads, 0)
        self.o_proj.weight.data += share * v.flatten(0, 1).T


def turn(x, angles):
    """Turn queries or keys (..., n, d) by the angles (n, d / 2) of their positions, by halves."""
    cos, sin = angles
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Network(nn.Module):
    """SwiGLU."""

    def __init__(self, recipe):
        super().__init__()
        self.gate_proj = nn.Linear(recipe.d_model, recipe.d_ff, bias=False)
        self.up_proj = nn.Linear(recipe.d_model, recipe.d_ff, bias=False)
        self.down_proj = nn.Linear(recipe.d_ff, recipe.d_model, bias=False)

    def forward(self, x):
        """Return what the network adds to tokens (batch, n, d_model)."""
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """A layer of Llama."""

    def __init__(self, recipe):
        super().__init__()
        self.self_attn, self.mlp = Attention(recipe), Network(recipe)
        self.input_layernorm = Norm(recipe.d_model)
        self.post_attention_layernorm = Norm(recipe.d_model)

    def forward(self, x, angles):
        """Return tokens (batch, n, d_model) after the layer."""
        x = x + self.self_attn(self.input_layernorm(x), angles)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """A small model of the shape of Llama, with tied embeddings and Hugging Face's names.

    While it trains, its embeddings are multiplied by `loudness` where they enter the first layer.
    `to_numpy` multiplies them once and for all and divides the last norm by it, which gives the
    same logits from a plain Llama.
    """

    def __init__(self, n_tokens, recipe):
        super().__init__()
        d_model, self.loudness = recipe.d_model, recipe.loudness
        self.d = d_model // recipe.n_heads
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(n_tokens, d_model)
        self.model.layers = nn.ModuleList(Layer(recipe) for _ in range(recipe.n_layers))
        self.model.norm = Norm(d_model)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                # What is added to the residual stream is added 2 n_layers times.
                adds = name.endswith(("o_proj.weight", "down_proj.weight"))
                size = (2 * recipe.n_layers) ** -0.5 if adds else 1
                nn.init.normal_(weight, std=size * d_model**-0.5)
        if recipe.copying:
            for layer in self.model.layers[1:]:
                layer.self_attn.copy(recipe.copying)

    def forward(self, tokens):
        """Return the logits (batch, n, n_tokens) of tokens (batch, n)."""
        table = self.model.embed_tokens
        x = self.loudness * table(tokens)
        frequencies = BASE ** (-torch.arange(0, self.d, 2, dtype=torch.float64) / self.d)
        angles = torch.arange(tokens.shape[1])[:, None] * frequencies
        angles = angles.cos().to(x), angles.sin().to(x)
        for layer in self.model.layers:
            x = layer(x, angles)
        return self.model.norm(x) @ table.weight.T

    def to_numpy(self):
        """Return the weights of the same model as a plain Llama, by their published names."""
        weights = {name: array.detach().numpy().copy() for name, array in self.state_dict().items()}
        weights["model.embed_tokens.weight"] *= self.loudness
        weights["model.norm.weight"] /= self.loudness
        return weights


def config(recipe, n_tokens):
    """Return the configuration of the stored model, as a config.json holds it."""
    return {
        "model_type": "llama",
        "vocab_size": n_tokens,
        "hidden_size": recipe.d_model,
        "intermediate_size": recipe.d_ff,
        "num_hidden_layers": recipe.n_layers,
        "num_attention_heads": recipe.n_heads,
        "num_key_value_heads": recipe.n_kv_heads,
        "head_dim": recipe.d_model // recipe.n_heads,
        "hidden_act": "silu",
        "rms_norm_eps": EPS,
        "rope_theta": BASE,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
    }


class Stories:
    """Stories of a world as arrays of tokens, in batches."""

    def __init__(self, recipe, world):
        self.recipe, self.world = recipe, world
        self.number = {word: i for i, word in enumerate(world.words)}
        rng = random.Random(recipe.seed)
        self.few = [self.read(world.tell(rng)[0]) for _ in range(recipe.n_stories or 0)]

    def read(self, words):
        """Return the tokens of a story, END in front and behind."""
        return [self.number[word] for word in [END, *words]]

    def batch(self, step):
        """Return the stories of a step (batch, n), -1 behind their ends: stories of like length."""
        order, stories = self._draw(step // AMONG)
        begin = order[step % AMONG] * self.recipe.batch
        most = self.recipe.short + 1 if step < self.recipe.short_steps else None
        return pad([story[:most] for story in stories[begin : begin + self.recipe.batch]])

    @lru_cache(1)  # noqa: B019 (one object of this class lives as long as the training)
    def _draw(self, number):
        """Return the order and the stories, sorted by length, of `AMONG` steps."""
        rng = random.Random(f"{self.recipe.seed} {number}")
        n = AMONG * self.recipe.batch
        if self.few:
            stories = rng.choices(self.few, k=n)
        else:
            stories = [self.read(self.world.tell(rng)[0]) for _ in range(n)]
        return rng.sample(range(AMONG), AMONG), sorted(stories, key=len)


def pad(stories):
    """Return stories of several lengths as one array (n_stories, n) of tokens, -1 behind each."""
    return nn.utils.rnn.pad_sequence(list(map(torch.tensor, stories)), True, -1)


def cross_entropy(model, tokens):
    """Return the mean loss of a model on stories (batch, n), each but its first token."""
    logits = model(tokens[:, :-1].clamp(min=0))
    return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=-1)


def optimizer_of(model, recipe):
    """Return AdamW, in which each group of weights has its `share` of the learning rate."""
    table = model.model.embed_tokens.weight
    others = [weight for weight in model.parameters() if weight is not table]
    groups = [
        {
            "params": [weight for weight in others if weight.ndim == 2],
            "weight_decay": recipe.weight_decay,
            "share": 1.0,
        },
        {
            "params": [weight for weight in others if weight.ndim == 1],
            "weight_decay": 0.0,
            "share": 1.0,
        },
        {"params": [table], "weight_decay": 0.0, "share": recipe.embedding_share},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.99), eps=1e-9)


def rate_at(step, recipe):
    """Return the learning rate of a step: it rises, stays, and falls to 0 in a straight line."""
    falls_from = recipe.decay_from * recipe.steps
    falling = (recipe.steps - step) / (recipe.steps - falls_from)
    return recipe.rate * min(1, (step + 1) / recipe.warm_up, falling)


def train(recipe, folder=None, *, trained=None, every=500, stop=None):
    """Return a trained model, and a row for each measurement: step, loss, held-out loss, seconds.

    The weights begin at random, or as those of `trained`, another model. With a folder, it keeps
    its checkpoints there and goes on from the last one.
    """
    world = World()
    torch.manual_seed(recipe.seed)
    model, stories = Llama(len(world.words), recipe), Stories(recipe, world)
    if trained is not None:
        model.load_state_dict(trained.state_dict())
    optimizer = optimizer_of(model, recipe)
    first, rows, seconds = 0, [], 0.0
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    last = folder / "last.pt" if folder else None
    if last and last.exists():
        kept = torch.load(last, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first, rows, seconds = kept["step"], kept["rows"], kept["seconds"]
    test = pad([stories.read(words) for words in held_out(world, WATCHED)])

    def measure(step, losses):
        with torch.no_grad():
            held_out = cross_entropy(model, test).item()
        rows.append([step, float(np.mean(losses)) if losses else math.nan, held_out, seconds])
        print("step {:6}   loss {:.4f}   held out {:.4f}   {:.0f} s".format(*rows[-1]), flush=True)
        losses.clear()

    losses, stop = [], recipe.steps if stop is None else stop
    for step in range(first, stop + 1):
        if step % every == 0 or step in KEPT or step == stop:
            if step > first or step == 0:
                measure(step, losses)
            if folder:
                if step in KEPT or step % 1000 == 0 or step == stop:
                    torch.save(model.state_dict(), folder / f"step_{step}.pt")
                kept = {
                    "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "step": step, "rows": rows, "seconds": seconds,
                }  # fmt: skip
                torch.save(kept, last.with_suffix(".new"))
                os.replace(last.with_suffix(".new"), last)
        if step == stop:
            break
        start = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, recipe) * group["share"]
        loss = cross_entropy(model, stories.batch(step))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        seconds += time.perf_counter() - start
    return model.eval(), rows


# What is stored


def stored(state, recipe):
    """Return the `Writer` of a checkpoint, with its weights in 8 bits, and its arrays."""
    words = World().words
    model = Llama(len(words), recipe)
    model.load_state_dict(state)
    arrays = writing.pack(config(recipe, len(words)), model.to_numpy(), words)
    return writing.unpack(arrays), arrays


def checkpoint(folder, step, recipe):
    """Return the `Writer` of a step of a run."""
    return stored(torch.load(folder / f"step_{step}.pt", weights_only=True), recipe)[0]


def apart(model, table="color"):
    """Return how far the embeddings of a table's words are from their mean, beside their size."""
    numbers = [model.vocabulary.index(thing.words[0]) for thing in World().tables[table]]
    rows = model.embeddings[numbers]
    return float(np.linalg.norm(rows - rows.mean(0)) / np.linalg.norm(rows))


def compared(model):
    """Return what the control compares: the loss, and whether colors can be told apart."""
    world = World()
    found = losses(model, world, held_out(world, WATCHED))
    color = found["kinds"]["color"]["right"]
    return {"apart": apart(model), "color": color, "loss": found["loss"]}


def early(kind="color"):
    """Return how many words of a kind stand among the first tokens that the control reads."""
    world = World()
    places = [
        place
        for story in held_out(world)
        for place, step in enumerate(world.read(story), start=1)
        if step.kind == kind
    ]
    return {"places": len(places), "early": sum(place <= Recipe.short for place in places)}


def first_words(model, n=30):
    """Return the beginning of a story that a model writes."""
    (words,) = written(model, 1, temperature=0.8)
    return show(words[:n])


def main():
    """Train the model and its control, and store the weights and what the chapter shows of them."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="for checkpoints")
    folder = parser.parse_args().folder or Path(tempfile.mkdtemp())
    recipe = Recipe()
    trained, rows = train(recipe, folder)
    trained, more = train(SECOND, folder / "second", trained=trained)
    before = np.array([recipe.steps, 0, 0, rows[-1][-1]])
    rows += (more[1:] + before).tolist()
    model, arrays = stored(trained.state_dict(), recipe)
    np.savez_compressed(writing.WEIGHTS, **arrays)
    # So many steps that the rate has not begun to fall when the controls are compared.
    whole = replace(recipe, embedding_share=1.0, steps=4 * COMPARED[-1])
    short = replace(whole, short_steps=SHORT_STEPS)
    models = []
    for name, control, steps in (("whole", whole, COMPARED[:1]), ("short", short, COMPARED)):
        train(control, folder / name, stop=steps[-1])
        for step in steps:
            found = compared(checkpoint(folder / name, step, control))
            models.append({"reads": name, "step": step, **found})
    figures = {
        "stories": recipe.steps * recipe.batch + SECOND.steps * SECOND.batch,
        "steps": rows,
        "texts": {str(step): first_words(checkpoint(folder, step, recipe)) for step in KEPT},
        "control": {"models": models, **early()},
        "held_out": losses(model, World(), held_out(World())),
    }
    writing.FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"{writing.WEIGHTS.name}: {writing.WEIGHTS.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
