"""Inspector in a browser: loaded after a click, and as exact as Python."""

import random

import numpy as np
import pytest

from attnlib.models import writer
from attnlib.widgets import Inspector, inspector
from attnlib.world import World, show
from tests.site.harness import assert_words_fit, axe_findings, page_of, served, wake, write_page
from tests.site.pages import FRAME

INSPECT = """([text, changes]) => document.querySelector(".abh-inspector").parentElement
  .inspect(text, changes)"""
N_TEXTS = 18  # each way to change the heads three times; many more agree in tests/widgets


addresses = page_of(Inspector(), model=True)


def cases(n):
    """Yield a text, another one that differs in a word, and a state, for each of n texts."""
    world, rng = World(), random.Random(11)
    for i in range(n):
        story = world.tell(rng)[0]
        words = story[: rng.randrange(2, min(len(story), 60))]
        other = [*words]
        other[rng.randrange(len(words))] = rng.choice(world.words[1:])
        texts = [show(each) for each in (words, other)]
        if any(len(text) > 400 for text in texts):
            texts = [show(each[:20]) for each in (words, other)]
        state = {
            "other": texts[1],
            "how": inspector.HOWS[i % 3],
            "where": inspector.WHERES[i // 3 % 2],
            "away": rng.randrange(1, 4096),
        }
        yield texts[0], state


def test_page_and_python_agree(page, addresses):
    wake(page, addresses["http"])
    # This scene draws no list of heads, for which each text would be read four times more.
    page.evaluate(INSPECT, ["", {"scene": "ledger"}])
    model = writer()
    largest = dict.fromkeys(("weights", "ledger", "sum", "lens", "after"), 0.0)
    n_changed = 0

    def compare(name, mine, theirs):
        largest[name] = max(largest[name], float(np.abs(np.array(mine) - theirs).max()))

    for text, state in cases(N_TEXTS):
        found = page.evaluate(INSPECT, [text, state])
        made = Inspector(text=text, **state)
        assert found["words"] == [model.vocabulary[token] for token in made.tokens[1:]]
        made.word = found["word"]
        compare("weights", found["weights"], made.weights.reshape(12, -1))
        compare("ledger", found["ledger"]["parts"], made.contributions)
        compare("ledger", found["ledger"]["byToken"], inspector.by_token(made.tokens, made.word))
        logit = model(made.tokens)[-1, model.vocabulary.index(made.word)]
        compare("sum", sum(found["ledger"]["parts"]), logit)
        for row, own in zip(found["lens"], made.lens, strict=True):
            tokens = [model.vocabulary.index(word) for word, _ in row]
            compare("lens", [p for _, p in row], own[tokens])
        tokens = [model.vocabulary.index(word) for word, *_ in found["rows"]]
        compare("after", [after for _, after, _ in found["rows"]], made.probabilities[tokens])
        n_changed += any(abs(after - before) > 0.01 for _, after, before in found["rows"])
    assert n_changed > N_TEXTS / 4
    assert max(largest.values()) < 1e-3, largest
    assert largest["after"] < 3e-4 and largest["weights"] < 1e-4, largest


@pytest.mark.parametrize("way", ["http", "file"])
def test_the_model_comes_after_a_click_and_reads_the_readers_text(page, addresses, way):
    asked = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    wake(page, addresses[way])
    page.locator("[name=toggle][value='6']").check()
    page.locator("[name=toggle][value='7']").check()
    page.wait_for_selector("[data-part=result] b:text-is('0.552')")
    assert not [url for url in asked if url.startswith("model")]
    page.locator("[name=open]").click()
    page.wait_for_selector("[data-part=status]:text('The model has read this text')")
    assert [url for url in asked if url.startswith("model")] == ["model.js"]
    page.get_by_label("The text that the model reads").fill("Ada was a kind doctor.")
    page.wait_for_selector("[data-part=text] :text('kind')")
    page.wait_for_selector(".abh-inspector .result tbody tr")
    page.get_by_label("Which heads are listed").select_option("3")
    page.wait_for_selector("[data-head='12']")
    page.get_by_label("What the heads that are off pass on").select_option("swap")
    page.get_by_label("The other text").fill("Ben was a")
    page.wait_for_selector("[data-part=wrong]:text('nothing is swapped')")
    page.get_by_label("The other text").fill("Ben was a kind doctor.")
    page.wait_for_selector("[data-part=wrong]:text-is('')", state="attached")
    assert_words_fit(page)


def test_an_intervention_is_drawn_within_a_few_frames(page, addresses):
    """Five readings of the text belong to it: one for each head of the list, and the set."""
    wake(page, addresses["http"])
    page.evaluate(INSPECT, [inspector.EXAMPLES[1][1], {"layer": 2}])
    page.evaluate(FRAME)
    took = page.evaluate(
        """async () => {
          const box = document.querySelector("[name=toggle][value='4']");
          const began = performance.now();
          box.click();
          await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
          return performance.now() - began;
        }"""
    )
    assert took < 300  # 20 to 60 ms on an idle machine


def test_every_scene_is_free_of_barriers(page, tmp_path):
    for scene in ("heads", "ledger", "lens"):
        folder = tmp_path / scene
        folder.mkdir()
        write_page(folder, Inspector(scene=scene, head=7))
        with served(folder) as ways:
            wake(page, ways["http"])
            assert axe_findings(page) == []
            assert_words_fit(page)
