"""Measure how the loss depends on the size and the training: `python -m tools.scale_writer`.

Three small models of the shape of the writer are trained on the same stories, and their losses are
noted after several lengths of training. A fourth one reads a few stories again and again, until it
knows them by heart. What is measured goes into `attnlib/data/writer_scaling.json`. All of it takes
some minutes of one core.
"""

import json
import math
from dataclasses import replace

import torch

from attnlib.models import writing
from attnlib.world import World
from tools.measure_writer import held_out
from tools.train_writer import WATCHED, Llama, Recipe, train

WIDTHS, LENGTHS, EVERY = (16, 32, 64), (100, 300, 1000), 50
BY_HEART, FEW = 32, 40  # the width of the model that reads a few stories again and again


def recipe(width, **more):
    """Return how a model of this width is trained; its rate stays the same after the warm-up."""
    last = LENGTHS[-1]
    return replace(Recipe(), d_model=width, d_ff=2 * width, warm_up=50, steps=4 * last, **more)


def rows_of(one):
    """Return rows of steps, the loss in training since the row before, and the held-out loss."""
    _, measured = train(one, every=EVERY, stop=LENGTHS[-1])
    return [[step, round(a, 4), round(b, 4)] for step, a, b, _ in measured if step]


def floor():
    """Return the loss of the true probabilities on the stories on which the models are measured."""
    world = World()
    steps = [step for story in held_out(world, WATCHED) for step in world.read(story)]
    return -math.fsum(math.log(step.probabilities[step.word]) for step in steps) / len(steps)


def n_parameters(width):
    """Return the number of parameters of a model."""
    model = Llama(len(World().words), recipe(width))
    return sum(weight.numel() for weight in model.parameters())


def main():
    """Train the models, and store what was measured."""
    torch.set_num_threads(1)
    rows = {width: rows_of(recipe(width)) for width in WIDTHS}
    figures = {
        "floor": floor(),
        "sizes": [
            {
                "parameters": n_parameters(width),
                "losses": {step: loss for step, _, loss in rows[width] if step in LENGTHS},
            }
            for width in WIDTHS
        ],
        "stories": FEW,
        "few": rows_of(recipe(BY_HEART, n_stories=FEW)),
        "new": rows[BY_HEART],
    }
    writing.SCALING.write_text(json.dumps(figures) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
