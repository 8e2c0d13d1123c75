"""Inspector: its numbers beside attnlib's, what was recorded, and what it says."""

import functools
import random

import numpy as np
import pytest

from _ext.widgets.page import engine
from attnlib import lens
from attnlib.models import writer
from attnlib.widgets import Inspector, inspector
from attnlib.widgets.writer import model_file
from attnlib.world import World

BOAT, MUDDY, SHE = (text for _, text, *_ in inspector.EXAMPLES)


@functools.cache
def opened_file():
    """Open what a page loads, as `known`; it takes the engine a while."""
    engine("Inspector")(
        "globalThis.known = writer_story.openFile(dukpy.file), 0", file=model_file()
    )


def read(call, **traits):
    """What a function of the widget makes of a state whose text the model has read."""
    opened_file()
    made = Inspector(**traits)
    return engine("Inspector")(
        """(() => {
          const s = {...widget.pageState, ...dukpy.state, bounds: widget.bounds};
          s.engine = {state: "ready", error: ""};
          if (globalThis.last?.text !== s.text)
            globalThis.last = inspector_reading.openText(known, s.text, s.means);
          s.opened = globalThis.last;
          return (CALL)(s);
        })()""".replace("CALL", call),
        state=made.state,
    )


def texts(n):
    """Yield beginnings of stories, each with a word exchanged for another in a second one."""
    world, rng = World(), random.Random(7)
    for seed in range(n):
        words = world.tell(random.Random(5_000_000 + seed))[0][: rng.randint(2, 11)]
        other = [*words]
        other[rng.randrange(len(words))] = rng.choice(world.words[1:])
        yield words, other


def test_page_and_python_agree_on_200_texts():
    opened_file()
    model, kinds = writer(), [(h, w) for h in inspector.HOWS for w in inspector.WHERES]
    for i, (words, other) in enumerate(texts(200)):
        tokens = [0, *map(model.vocabulary.index, words)]
        swapped = [0, *map(model.vocabulary.index, other)]
        how, where = kinds[i % 6]
        away = random.Random(i).randrange(1, 4096)
        word, against = (37 * i + 1) % 539, (11 * i + 5) % 539
        found = engine("Inspector")(
            """(() => {
              const {readAll, ledgerOf, changeOf} = inspector_reading;
              const {model} = known, {tokens, swapped, away, how, where, means} = dukpy;
              const once = readAll(model, tokens);
              const other = readAll(model, swapped);
              const options = {away, how, where, n: tokens.length, means, other};
              const after = readAll(model, tokens, changeOf(model, options));
              const rows = once.rows.map((row) =>
                Array.from(writer_model.softmax(writer_model.logitsOf(model, row))));
              return {...ledgerOf(model, once, dukpy.word, dukpy.against), rows,
                logits: Array.from(once.logits),
                after: Array.from(writer_model.softmax(after.logits))};
            })()""",
            tokens=tokens, swapped=swapped, away=away, how=how, where=where,
            means=inspector.recording()["means"], word=word, against=against,
        )  # fmt: skip
        names = model.vocabulary[word], model.vocabulary[against]
        parts = inspector.contributions(tokens, *names)
        np.testing.assert_allclose(found["parts"], parts, rtol=0, atol=1e-3)
        assert sum(found["parts"]) == pytest.approx(
            found["logits"][word] - found["logits"][against], abs=1e-3
        )
        np.testing.assert_allclose(
            found["byToken"], inspector.by_token(tokens, *names), rtol=0, atol=1e-3
        )
        np.testing.assert_allclose(found["rows"], lens(model, tokens)[:, -1], rtol=0, atol=1e-4)
        heads = [head for head in range(12) if away >> head & 1]
        after = inspector.intervened(tokens, swapped, heads, how, where)
        np.testing.assert_allclose(found["after"], after, rtol=0, atol=2e-4)
