"""Inspector: its numbers beside attnlib's, what was recorded, and what it says.

The browser compares 200 texts (tests/site/test_inspector_in_browser.py); here are a few.
"""

import json
import random

import numpy as np
import pytest

from attnlib import lens
from attnlib.models import writer
from attnlib.widgets import Inspector, inspector
from attnlib.world import World
from tests.widgets.pictures import close, js, numbers, opened, part, picture, run, texts
from tests.widgets.samples import HOSTILE

BOAT, MUDDY, WHO = (text for _, text, *_ in inspector.EXAMPLES)
GOLD = inspector.EXAMPLES[0][2]


def read(call, **traits):
    """What a function of the widget makes of a state whose text the model has read."""
    return opened("Inspector")(
        """(() => {
          const s = {...widget.pageState, ...dukpy.state, bounds: widget.bounds};
          s.engine = {state: "ready", error: ""};
          if (globalThis.last?.text !== s.text)
            globalThis.last = inspector_reading.openText(known, s.text, s.means);
          s.opened = globalThis.last;
          return (CALL)(s);
        })()""".replace("CALL", call),
        state=Inspector(**traits).state,
    )


def beginnings(n):
    """Yield beginnings of stories, each with a second one that differs in one word."""
    world, rng = World(), random.Random(7)
    for seed in range(n):
        words = world.tell(random.Random(5_000_000 + seed))[0][: rng.randint(2, 5)]
        other = [*words]
        other[rng.randrange(len(words))] = rng.choice(world.words[1:])
        yield words, other


def test_page_and_python_agree():
    model, kinds = writer(), [(h, w) for h in inspector.HOWS for w in inspector.WHERES]
    for i, (words, other) in enumerate(beginnings(len(kinds))):
        tokens = [0, *map(model.vocabulary.index, words)]
        swapped = [0, *map(model.vocabulary.index, other)]
        how, where = kinds[i]
        away = random.Random(i).randrange(1, 4096)
        word, against = (37 * i + 1) % 539, (11 * i + 5) % 539
        found = opened("Inspector")(
            """(() => {
              const {readAll, ledgerOf, intervene} = inspector_reading;
              const {model} = known, {tokens, swapped, away, how, where, means} = dukpy;
              const once = readAll(model, tokens);
              const other = readAll(model, swapped);
              const options = {away, how, where, means, other: how === "swap" ? other : null};
              const after = intervene(model, once, options);
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
        close(found["parts"], parts, 1e-3)
        assert sum(found["parts"]) == pytest.approx(
            found["logits"][word] - found["logits"][against], abs=1e-3
        )
        from_tokens = inspector.by_token(tokens, *names)
        close(found["byToken"], from_tokens, 1e-3)
        close(found["rows"], lens(model, tokens)[:, -1], 1e-4)
        heads = [head for head in range(12) if away >> head & 1]
        after = inspector.intervened(tokens, swapped, heads, how, where)
        close(found["after"], after, 2e-4)


def test_what_was_read_of_the_same_beginning_is_the_same_as_read_anew():
    """A word is changed, and read on: all that is shown, and an intervention of each kind."""
    read_on, anew = opened("Inspector")(
        """(() => {
          const {openText} = inspector_reading;
          const [before, text, other] = dukpy.texts;
          const all = (opened) => {
            const kinds = [["zero", "all"], ["mean", "last"], ["swap", "all"]];
            const rows = kinds.map(([how, where]) =>
              opened.rows({away: 0x241, how, where, other}, "boat"));
            return [opened.lens, opened.ledger("boat", "gold"), ...rows];
          };
          const earlier = openText(known, before, dukpy.means);
          return [openText(known, text, dukpy.means, earlier), openText(known, text, dukpy.means)]
            .map(all);
        })()""",
        texts=["Rosa was a busy baker.", "Rosa was a busy teacher.", "Rosa was the busy teacher."],
        means=inspector.recording()["means"],
    )  # fmt: skip
    assert read_on == anew
    rows = [json.dumps(each) for each in read_on[2:]]
    assert len({*rows}) == len(rows)  # each intervention has its own effect


def test_what_is_recorded_is_what_python_computes():
    """Of each recording, the weights, the lens, the ledgers and a few of the interventions."""
    for name, text, other, word, against, layer in inspector.EXAMPLES:
        one = next(one for one in Inspector().recorded if one["name"] == name)
        made = Inspector(text=text, other=other, word=word, against=against)
        assert (one["text"], one["other"], one["layer"]) == (text, other, layer)
        close(one["weights"], made.weights.reshape(12, -1), 6e-4)
        key = f"{word} {against}"
        close(one["ledgers"][key]["parts"], made.contributions, 6e-4)
        from_tokens = np.sum(one["ledgers"][key]["byToken"], axis=1)
        of_heads = np.delete(made.contributions, [0, 5, 10, 15])
        close(from_tokens, of_heads, 0.01)
        for layer_at, row in enumerate(one["lens"]):
            token = writer().vocabulary.index(row[0][0])
            assert made.lens[layer_at].argmax() == token
            assert row[0][1] == pytest.approx(made.lens[layer_at][token], abs=6e-4)
        bits = 15 << 4 * (layer - 1)
        for away, how, where in ((bits, "zero", "all"), (2, "mean", "all"), (bits, "swap", "last")):
            made.away, made.how, made.where = away, how, where
            for other_word, after, _ in one["rows"][f"{away} {how} {where}"]:
                token = writer().vocabulary.index(other_word)
                assert after == pytest.approx(made.probabilities[token], abs=6e-4)


def test_the_means_are_those_of_the_stories():
    found = inspector.mean_outputs()
    assert found.shape == (12, 32)
    close(Inspector().means, found, 1e-3)


def test_a_recorded_picture_and_that_of_the_model_are_the_same():
    traits = {"text": BOAT, "other": GOLD, "how": "swap", "away": 240, "head": 7}
    drawn, seen = js(Inspector(**traits), "compute(state)"), read("widget.compute", **traits)
    assert drawn["words"] == seen["words"] and drawn["word"] == seen["word"] == "boat"
    assert [row[0] for row in drawn["rows"][:2]] == [row[0] for row in seen["rows"][:2]]
    close(drawn["weights"], seen["weights"], 1e-3)
    close(drawn["ledger"]["parts"], seen["ledger"]["parts"], 2e-3)
    found = {word: after for word, after, _ in seen["rows"]}
    assert found["gold"] == pytest.approx(0.999, abs=1e-3) and found["boat"] < 1e-3


def test_a_list_of_heads_says_where_they_look_what_they_add_and_what_is_left():
    rows = picture(Inspector(head=7)).select(".heads tbody tr")
    cells = [[cell.strip() for cell in texts(row, "td, th")][1:] for row in rows]
    assert cells[0] == ["2.1", "boat 0.94", "+0.55", "0.999"] and len(cells) == 4
    assert cells[2] == ["2.3", "boat 0.99", "+1.28", "0.996"]
    heads = texts(picture(Inspector(layer=3)), ".heads tbody [data-head]")
    assert heads == ["3.1", "3.2", "3.3", "3.4"]


def test_every_number_of_a_ledger_opens_to_a_sum():
    page = picture(Inspector(scene="ledger", text=MUDDY, word="muddy", against="busy", head=10))
    for table in (".ledger", ".opened"):
        added = [numbers(cell)[0] for cell in texts(page, f"{table} tbody .number:last-child")]
        total = numbers(page.select_one(f"{table} tfoot b").get_text())
        assert [sum(added)] == pytest.approx(total, abs=0.006 * len(added))
    for row in page.select(".opened tbody tr:not(:last-child)"):
        weight, value, product = (numbers(cell)[0] for cell in texts(row, "td"))
        assert weight * value == pytest.approx(product, abs=0.02)


def test_what_was_not_recorded_is_said():
    for traits in ({"away": 3}, {"away": 16, "how": "swap", "other": "Rosa"}):
        assert "was not recorded" in picture(Inspector(**traits)).select_one(".result").get_text()
    page = picture(Inspector(scene="ledger", word="bank"))
    assert "was not recorded" in page.select_one(".ledger").get_text()
    for scene in ("heads", "ledger", "lens"):
        page = picture(Inspector(scene=scene, text="Ada was a dragon."))
        assert "open the model" in part(page, "status")


def test_unknown_words_and_a_swap_of_another_length_are_named():
    drawn = read("widget.still", text=f"Ada was a kind docter. {HOSTILE}")
    assert "docter" in drawn and "<b>doctor</b>" in drawn and "<img" not in drawn
    drawn = read("widget.still", text="Ada was", other="Ada was kind.", how="swap", away=1)
    assert "This text has 2 words and marks, the other one has 4" in " ".join(drawn.split())
    same = read("widget.compute", text="Ada was", other="Ada was kind.", how="swap", away=1)
    assert all(after == before for _, after, before in same["rows"])


@pytest.mark.parametrize(
    "traits",
    [
        {"scene": "heads", "text": BOAT, "other": GOLD, "how": "swap", "away": 240},
        {"scene": "heads", "text": BOAT, "other": GOLD, "how": "swap", "away": 16, "where": "last"},
        {"scene": "heads", "text": WHO, "how": "zero", "away": 1 << 11},
    ],
)
def test_copied_code_gives_the_number_of_the_picture(traits):
    made = Inspector(**traits)
    printed = run(js(made, "code(state)"))["printed"]
    rows = js(made, "compute(state)")
    after = next(after for word, after, _ in rows["rows"] if word == rows["word"])
    assert float(printed[0]) == pytest.approx(after, abs=1.1e-3)


def test_copied_code_of_the_ledger_and_the_lens():
    made = Inspector(scene="ledger", text=MUDDY, word="muddy", against="busy")
    printed = run(js(made, "code(state)"))["printed"]
    assert printed[0].split() == ["embedding", "-0.07"] and len(printed) == 16
    printed = run(js(Inspector(scene="lens", text=BOAT), "code(state)"))["printed"]
    assert len(printed) == 4 and printed[3].startswith("[('boat', ")
