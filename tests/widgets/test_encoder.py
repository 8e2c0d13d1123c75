"""Encoder: what it reads, hides and draws, against attnlib; what it says where it cannot read."""

import numpy as np
import pytest

from attnlib import models
from attnlib.models import MissingModelError, Reading, mean_pool
from attnlib.widgets import Encoder
from tests.widgets.pictures import close, js, part, picture, run, shades
from tests.widgets.samples import HOSTILE, RECORDED

TOKENS = ["[CLS]", "a", HOSTILE, "##b", "[SEP]"]


class Model:
    """Reads five tokens of random weights, 0 where hidden; remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def read(self, text, hidden=()):
        """Answer as `MiniLM.read` does."""
        self.asked.append((text, tuple(hidden)))
        tokens = TOKENS if text != "long" else ["x"] * 65
        n = len(tokens)
        rng = np.random.default_rng(len(text))
        weights = rng.dirichlet(np.full(n, 0.4), (6, 12, n)).astype(np.float32)
        weights[..., list(hidden)] = 0
        weights /= weights.sum(axis=-1, keepdims=True)
        states = rng.normal(size=(7, n, 13)).astype(np.float32) + len(hidden)
        return Reading(tokens, states, weights)


class Nothing:
    """A recording of no sentence."""

    def read(self, text):
        """Say so."""
        raise MissingModelError("not recorded")

    attention = read


@pytest.fixture
def model(monkeypatch):
    """A model that is here, and no recording."""
    model, nothing = Model(), Nothing()
    monkeypatch.setattr(models, "load_minilm", lambda: model)
    monkeypatch.setattr(models, "load_recording", lambda: nothing)
    return model


@pytest.fixture
def nowhere(monkeypatch):
    def load():
        raise MissingModelError("no model. To get it: pip install it")

    monkeypatch.setattr(models, "load_minilm", load)


@pytest.mark.parametrize("text", RECORDED)
def test_the_page_gets_the_recorded_weights(text, nowhere):
    made = Encoder(text=text)
    tokens, weights = models.load_recording().attention(text)
    assert made.readings[0]["tokens"] == made.tokens == tokens
    np.testing.assert_array_equal(made.weights, weights[3, 1])
    found = js(made, "compute(state)")
    close(found["weights"], weights[3, 1], 0.00501)
    assert found["row"] == min(6, len(tokens) - 1)
    assert found["top"] == weights[3, 1, found["row"]].argmax()
    soup = picture(made)
    small = soup.select("[role=grid] tr")[6].select("button")[11]
    shown, _ = shades(small, weights[5, 11].shape)
    close(shown, weights[5, 11], 1 / 10 + 0.011)


def test_what_is_hidden_is_read_without(model):
    made = Encoder(text="abc", layer=2, head=7, row=1)
    full = model.read("abc")
    made.hidden = [40, 2]  # the text has no token 40
    assert made.hidden == [2, 40] and model.asked[-1] == ("abc", (2,))
    reading = model.read("abc", (2,))
    kept = [True, True, False, True, True]
    np.testing.assert_allclose(made.embedding, mean_pool(reading.states[-1], kept))
    np.testing.assert_array_equal(made.weights, reading.weights[2, 7])
    found = js(made, "compute(state)")
    close(found["weights"], reading.weights[2, 7], 0.00501)
    whole = mean_pool(full.states[-1], [True] * 5)
    assert found["likeness"] == pytest.approx(whole @ made.embedding, abs=1e-4)
    # What moved most, one a head, of what is not hidden.
    moved = reading.weights - full.weights
    moved[..., 2] = moved[..., 2, :] = 0
    most = np.sort(abs(moved).max(axis=(2, 3)).ravel())[:-3:-1]
    close([abs(m[5] - m[4]) for m in found["moved"]], most, 0.011)
    for layer, head, i, j, before, after in found["moved"]:
        at = layer, head, i, j
        assert before == pytest.approx(full.weights[at], abs=0.00501)
        assert after == pytest.approx(reading.weights[at], abs=0.00501)
    soup = picture(made)
    assert part(soup, "without").startswith(f"Without {HOSTILE[:5]}")
    assert len(soup.select("[data-part=without] [data-go]")) == 2
    assert soup.select_one("[data-part=heat] .hatch")["d"]
    assert soup.select_one("[data-hide='2']")["aria-pressed"] == "true"
    made.text = "abcd"
    made.hidden = [0, 1, 2, 3, 4]  # of all, nothing would be left
    assert len(made.readings) == 1 and js(made, "compute(state)")["hides"] == []


def test_picture_says_what_it_shows(model):
    made = Encoder(text="abc", layer=1, head=4, row=3)
    weights = model.read("abc").weights[1, 4]
    soup = picture(made)
    top = weights[3].argmax()
    said = part(soup, "said")
    assert said.startswith(f"Layer 2, head 5: ##b attends most to {TOKENS[top][:9]}")
    assert said.endswith(f"{weights[3].max() + 1e-9:.2f}")
    assert soup.select_one(".asking [aria-pressed=true]").get_text() == "##b"
    shares = [float(small.get_text()) for small in soup.select(".answering small")]
    close(shares, weights[3], 0.00501)
    for way in ("across", "down"):
        own = soup.select(f".{way} path:not(.faint)")
        thick = sorted(0.75 + 7 * weight for weight in weights[3] if weight >= 0.01)
        close([float(p["stroke-width"]) for p in own], thick, 0.05)


def test_compact_is_one_head_as_lines():
    soup = picture(Encoder(compact=True))
    assert part(soup, "said").endswith("cat 0.59")
    assert not soup.select("[role=grid], [data-hide], [data-part=heat], [name=copy]")


def test_a_kernel_without_the_model_says_so_and_shows_what_it_has(nowhere):
    made = Encoder()
    shown = made.readings
    assert made.trouble == "" and made.kernel and not made.state["kernel"]
    made.text = "Nobody has recorded this."
    assert made.readings == shown
    assert made.trouble == "no model. To get it: pip install it"
    status = picture(made, kernel=True).select_one("[data-part=status]")
    assert status.get_text() == made.trouble
    with pytest.raises(MissingModelError, match="no model"):
        _ = made.weights
    assert Encoder(text="Nor this.").readings == shown
    made.text = RECORDED[1]
    assert made.trouble == "" and made.readings[0]["text"] == RECORDED[1]


def test_too_many_tokens(model):
    with pytest.raises(ValueError, match="text needs at most 64 tokens; got 65"):
        Encoder(text="long")
    made = Encoder(text="abc")
    made.text = "long"
    assert made.trouble == "text needs at most 64 tokens; got 65"
    assert made.readings[0]["text"] == "abc"


def test_copied_code_reads_what_is_shown(model):
    made = Encoder(text='He said "no"', layer=5, head=9, row=1, hidden=[3])
    np.testing.assert_array_equal(run(js(made, "code(state)"))["weights"], made.weights)


def test_the_microscope_tells_what_recorded_weights_tell():
    assert "no queries and keys" in part(picture(Encoder(), lens=[6, 2]), "lens")
