"""The simulated server: its laws, passes worked out by hand, and the rule that accepts drafts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attnlib import serving
from attnlib.serving import Model, Processor, Server, Settings
from tests.helpers import steady

some = settings(steady, max_examples=60)

# A model and a processor whose passes can be worked out in the head: 100 bytes of parameters, 8
# bytes of cache a token, 10 FLOPs and 10 bytes a second.
TOY = Model(n_layers=1, n_heads=2, n_kv_heads=1, d_head=2, body=43, head=7)
SLOW = Processor(flops=10, bandwidth=10, memory=1e6)

SETTINGS = st.builds(
    Settings,
    requests=st.integers(1, 23),
    seed=st.integers(0, 999),
    rate=st.floats(0.5, 5000),
    prompt=st.integers(2, 1500),
    output=st.integers(1, 300),
    shared=st.integers(0, 1300),
    at_once=st.integers(1, 31),
    **dict.fromkeys(serving.IDEAS, st.booleans()),
)
LONG = Settings(requests=23, prompt=700, output=300, rate=1000.0, paged=True, continuous=True)
# Memory for as few pages as one longest request needs, with what stays spare, and a few more.
CROWDED = st.integers(0, 700)


def server(given, more=10_000):
    made = Server(given)
    if given.paged:
        made.pages = made.free = serving.LONGEST // serving.PAGE + 12 + more
    return made


@some
@example(given=LONG, more=0)  # which preempts
@given(given=SETTINGS, more=CROWDED)
def test_no_request_no_page_and_no_work_is_lost_or_counted_twice(given, more):
    """What went through the model is what the caches held, with what was lost or drafted in vain.

    The last token of an answer is never read.
    """
    done = server(given, more)
    while done.coming or done.waiting or done.running:
        done.step()
        taken = sum(r.pages for r in done.requests) + done.prefix_pages
        assert 0 <= done.free == done.pages - taken
        for request in done.running:
            assert request.kept - done.prefix <= request.pages * serving.PAGE
        assert done.prefix_kept <= done.prefix_pages * serving.PAGE
    assert not done.resting and done.free + done.prefix_pages == done.pages
    for r in done.requests:
        assert r.written == r.output and not r.pages
        assert r.arrival < r.first <= r.last <= done.clock
        assert r.computed + r.skipped == r.prompt + r.output - 1 + r.lost + r.rejected
        assert done.preempted or not r.lost
        assert given.speculative or not r.rejected
        assert done.prefix or not r.skipped
    assert sum(p["written"] for p in done.passes) == sum(r.output for r in done.requests)
    assert sum(p["tokens"] for p in done.passes) == sum(r.computed for r in done.requests)
    # Each token after the first of its request is one time between tokens.
    assert sum(n for _, n in done.gaps) == sum(r.output - 1 for r in done.requests)
    ends = [p["end"] for p in done.passes]
    assert all(p["start"] < p["end"] for p in done.passes) and ends == sorted(ends)


def test_one_request_by_hand():
    """A prompt of 3 tokens and an answer of 2: one pass reads the prompt, one writes a token."""
    given = Settings(requests=1)
    done = Server(given, TOY, SLOW)
    request = done.requests[0]
    request.prompt, request.output = 3, 2
    done.run()
    # Three tokens: 2 (43 * 3 + 7) FLOPs, 100 bytes, and 4 * 1 * 2 * 2 * 6 = 96 FLOPs for the six
    # pairs, 8 * 3 bytes. Then one token: 100 FLOPs, 100 bytes, 64 FLOPs for four pairs, 32 bytes.
    first, second = (272 + 96) / 10, (100 + 64) / 10
    spent = [p["end"] - p["start"] for p in done.passes]
    assert np.allclose(spent, [first, second]) and done.gaps == [(pytest.approx(second), 1)]
    assert request.first - request.arrival == pytest.approx(first)
    pairs = [(5.0, 1), (1.0, 3), (2.0, 6)]
    assert [serving.quantile(pairs, q) for q in (0.3, 0.5, 0.9, 0.91)] == [1, 2, 2, 5]


def test_a_pass_takes_as_long_as_the_slower_of_its_two_clocks():
    # 1 of 2 queries fetches more than it computes, and 7 the other way around.
    for tokens, expected in ((1, 10 + 3.2), (7, 2 * 50 * 7 / 10 + 22.4)):
        work = serving.pass_work(TOY, tokens, tokens, 2 * tokens, 4 * tokens, 8)
        assert work == (100 * tokens, 100, 32 * tokens, 32 * tokens)
        assert serving.seconds(SLOW, work) == pytest.approx(expected)


def test_the_sizes_are_those_of_llama():
    """128 KiB a token, 8.03 billion parameters; 16 GB of them leave 426,000 tokens of an H100."""
    model = serving.LLAMA_8B
    assert model.cache_bytes() == 131_072
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096
    assert model.body == 32 * layer + 4096 and model.head == model.embedding == 128_256 * 4096
    small = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192 + 2 * 2048
    assert serving.LLAMA_1B.body == 16 * small + 2048
    assert serving.LLAMA_1B.head == 128_256 * 2048
    assert Server(Settings()).pages * serving.PAGE == 426_784
    assert 1.99 < Server(Settings(eight_bit=True)).pages / Server(Settings()).pages < 2.01


def test_each_idea_does_what_it_is_for():
    """Each in a case in which it must help, with what it must change."""
    full = Settings(requests=60, rate=200.0, continuous=True, paged=True)

    def noticed(**changes):
        return serving.simulate(replace(full, **changes))

    one, many = noticed(at_once=1), noticed()
    assert many["throughput"] > 10 * one["throughput"]
    some = {"rate": 20.0}
    assert noticed(**some, continuous=False)["first"][0] > 99 * noticed(**some)["first"][0]
    long = {"prompt": 2000, "output": 500, "rate": 1000.0}
    assert noticed(**long, paged=False)["most"] == 52 < noticed(**long)["most"] == 60
    assert noticed(**long, paged=False)["filled"] < 0.3 and noticed(**long)["filled"] > 0.99
    begun = {"shared": 2000, "prompt": 100}
    assert noticed(**begun, prefixes=True)["first"][0] < 0.02 * noticed(**begun)["first"][0]
    calm = {"rate": 20.0, "prompt": 2000}
    assert noticed(**calm, chunked=True)["between"][1] < 0.2 * noticed(**calm)["between"][1]
    assert noticed(**calm, chunked=True)["first"][0] > noticed(**calm)["first"][0]  # the price
    assert noticed(speculative=True, rate=2.0)["between"][0] < 0.5 * noticed(rate=2.0)["between"][0]


def test_chunks_stay_in_their_budget_unless_writing_alone_exceeds_it():
    given = Settings(requests=40, rate=1000.0, prompt=900, continuous=True, paged=True)
    for speculative in (False, True):
        done = Server(replace(given, chunked=True, speculative=speculative)).run()
        assert max(p["tokens"] for p in done.passes) == serving.BUDGET
    assert max(p["tokens"] for p in Server(given).run().passes) > 2 * serving.BUDGET


def test_a_shared_beginning_is_computed_once():
    given = Settings(requests=9, rate=1e6, prompt=16, shared=100, output=1, paged=True)
    done = Server(replace(given, prefixes=True, continuous=True)).run()
    assert done.prefix_pages == 6  # full pages alone: 96 of 100 tokens
    assert sum(r.skipped for r in done.requests) == 8 * 96
    assert Server(replace(given, prefixes=True, paged=False)).run().prefix_pages == 0


@some
@given(seed=st.integers(0, 10**6), n=st.sampled_from([2, 3, 7]))
def test_what_is_written_has_the_probabilities_of_the_target(seed, n):
    """Accepted drafts and tokens drawn from the rest together: exactly p, for any two models."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(n), 2)
    written = np.zeros(n)
    for token in range(n):
        accepted = min(1, p[token] / q[token])
        edge = accepted * (1 - 1e-9) if accepted < 1 else 1 - 1e-9
        assert serving.accept_draft(p, q, token, edge)[0]
        assert accepted == 1 or not serving.accept_draft(p, q, token, accepted * (1 + 1e-9))[0]
        rest = serving.accept_draft(p, q, token, 0.0)[1]
        written[token] += q[token] * accepted
        written += q[token] * (1 - accepted) * rest
    assert np.allclose(written, p, atol=1e-12)


def test_a_draft_by_hand():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.7, 0.1])
    assert [serving.accept_draft(p, q, 1, u)[0] for u in (0.42, 0.43)] == [True, False]
    assert np.allclose(serving.accept_draft(p, q, 1, 0.9)[1], [0.75, 0, 0.25])
    assert serving.accept_draft(p, p, 2, 0.99)[0]
    assert serving.expected_tokens(0.8, 3) == pytest.approx(1 + 0.8 + 0.64 + 0.512)
    assert serving.expected_tokens(0.0, 5) == 1 and serving.expected_tokens(1, 5) == 6
