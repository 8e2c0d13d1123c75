"""A server that writes for many users at once: its passes, its memory and its delays, simulated.

Also the rule of speculative decoding. The letters are those of the papers.
"""

import math
from dataclasses import dataclass, field, fields

import numpy as np

from attnlib.inputs import read_flag, read_floats, read_number, read_size

PAGE = 16  # tokens
LONGEST = 8192  # tokens that one request may have, prompt and answer together
USED = 0.9  # of the processor's memory: the rest is left to what a pass computes with
SPARE = 0.01  # of all pages, kept free when a request is admitted, for those that grow
BUDGET = 512  # tokens of one pass, with chunked prefill
DRAFTED = 4  # tokens that are drafted at a time
ACCEPTED = 0.7  # the probability that a drafted token is accepted: an assumption


@dataclass(frozen=True)
class Model:
    """The sizes of a language model that a server needs to know.

    Parameters
    ----------
    n_layers, n_heads, n_kv_heads, d_head : int
    body, head : float
        Parameters of all layers, and of the matrix that gives the logits.
    embedding : float
        Parameters of the table of the tokens, if it is not the matrix of the logits.
    """

    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    body: float
    head: float
    embedding: float = 0.0

    def cache_bytes(self, bytes_each=2):
        """The bytes of the keys and values of one token, in all layers: 2 L n_kv d_head b."""
        return 2 * self.n_layers * self.n_kv_heads * self.d_head * bytes_each


@dataclass(frozen=True)
class Processor:
    """What a processor can do: FLOPs per second, bytes per second, and the bytes of its memory."""

    flops: float
    bandwidth: float
    memory: float


# Llama 3.1 8B and Llama 3.2 1B, by the configurations and weights that Meta published in 2024.
LLAMA_8B = Model(32, 32, 8, 128, 6_979_588_096, 525_336_576, 525_336_576)
LLAMA_1B = Model(16, 32, 8, 64, 973_146_112, 262_668_288)
# NVIDIA's white paper on the H100 SXM: BF16 without sparsity.
H100 = Processor(989.4e12, 3.35e12, 80e9)


def pass_work(model, tokens, rows, pairs, read, cache_bytes, bytes_each=2):
    """Count the work of one pass through a model.

    Parameters
    ----------
    model : Model
    tokens : float
        Tokens that go through the layers.
    rows : float
        Tokens of which the logits are computed.
    pairs : float
        Pairs of a query and a key, in each head.
    read : float
        Tokens whose keys and values are fetched or written.
    cache_bytes : float
        Bytes of the keys and values of one token.
    bytes_each : float
        Bytes of a parameter.

    Returns
    -------
    tuple of float
        FLOPs and bytes of the products with the parameters, then FLOPs and bytes of attention.
    """
    return (
        2 * (model.body * tokens + model.head * rows),
        bytes_each * (model.body + model.head),
        4 * model.n_layers * model.n_heads * model.d_head * pairs,
        cache_bytes * read,
    )


def seconds(processor, work):
    r"""Return the time of a pass by the roofline, part by part.

    .. math::

        t = \max\Big(\frac{F_W}{F}, \frac{B_W}{B}\Big) + \max\Big(\frac{F_A}{F}, \frac{B_A}{B}\Big)

    A processor does F FLOPs and moves B bytes per second. The products with the parameters (W) and
    attention (A) come after each other, layer by layer.

    Source
    ------
    Williams, Waterman and Patterson 2009, *Roofline*.
    """
    flops, moved, attention, kept = work
    return max(flops / processor.flops, moved / processor.bandwidth) + max(
        attention / processor.flops, kept / processor.bandwidth
    )


# Speculative decoding


def expected_tokens(acceptance, drafted):
    r"""Return how many tokens a pass of speculative decoding writes on average.

    .. math::

        E = 1 + \alpha + \dots + \alpha^\gamma = \frac{1 - \alpha^{\gamma + 1}}{1 - \alpha}

    Parameters
    ----------
    acceptance : float
        :math:`\alpha`, the probability that a drafted token is accepted, from 0 to 1.
    drafted : int
        :math:`\gamma`, the tokens that are drafted at a time.

    Raises
    ------
    TypeError
        If `acceptance` is not a number, or `drafted` is not a whole number.
    ValueError
        If `acceptance` is not a probability, or `drafted` is below 0.

    Source
    ------
    Leviathan, Kalman and Matias 2023, *Fast Inference from Transformers via Speculative Decoding*,
    Eq. (1).
    """
    acceptance = _read_probability(acceptance, "acceptance")
    return sum(acceptance**i for i in range(read_size(drafted, "drafted", least=0) + 1))


def accept_draft(target, draft, token, chance):
    r"""Decide about one drafted token.

    .. math::

        P(\text{accept } x) = \min\Big(1, \frac{p(x)}{q(x)}\Big), \qquad
        p'(x) = \frac{\max(p(x) - q(x), 0)}{\sum_y \max(p(y) - q(y), 0)}

    Parameters
    ----------
    target, draft : array of float, shape (n_tokens,)
        p and q, the probabilities of the two models.
    token : int
        x, the token that was drawn from `draft`.
    chance : float
        A random number from 0 to 1. The token is accepted if it lies below p(x) / q(x).

    Returns
    -------
    accepted : bool
    rest : array, shape (n_tokens,)
        The probabilities from which the token is drawn if `token` is rejected: p'. If p and q are
        equal, nothing can be rejected, and p is returned.

    Raises
    ------
    TypeError, ValueError
        If `target` or `draft` is not an array of probabilities that sum to 1, if they differ in
        their shapes, if `token` is not one of theirs, if `draft` gives it the probability 0, so
        that it cannot have been drawn, or if `chance` is not from 0 to 1.

    Source
    ------
    Leviathan, Kalman and Matias 2023, section 2.3; Chen et al. 2023, *Accelerating Large Language
    Model Decoding with Speculative Sampling*, Algorithm 2.
    """
    target, draft = read_floats(target, "target"), read_floats(draft, "draft")
    for name, given in (("target", target), ("draft", draft)):
        if given.ndim != 1 or not ((given >= 0).all() and abs(given.sum() - 1) <= 1e-4):
            raise ValueError(f"{name} must be one row of probabilities that sum to 1; got {given}")
    if target.shape != draft.shape:
        raise ValueError(
            f"target and draft must have one shape; got {target.shape} and {draft.shape}"
        )
    token = read_size(token, "token", below=draft.size)
    chance = _read_probability(chance, "chance")
    if not draft[token] > 0:
        raise ValueError(f"token {token} has the probability 0 in draft: it was not drawn from it")
    rest = np.maximum(target - draft, 0)
    total = rest.sum()
    return bool(chance * draft[token] < target[token]), rest / total if total else target


def _read_probability(number, name):
    """Return a number from 0 to 1."""
    number = read_number(number, name)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be a probability, from 0 to 1; got {number}")
    return number


# The simulation


@dataclass(frozen=True)
class Settings:
    """What arrives at a server, and which ideas it uses.

    Parameters
    ----------
    requests, seed : int
        How many arrive, and the seed of their times and lengths.
    rate : float
        Requests per second, on average; they arrive independently of each other.
    prompt, output : int
        Mean tokens of a prompt, from half to one and a half times as many, and of an answer, with
        an exponential distribution up to four times as many.
    shared : int
        Tokens at the beginning of each prompt that are the same in all, besides `prompt`.
    at_once : int
        Requests that are written at once, at most.
    continuous : bool
        Requests join and leave between two passes; otherwise a batch ends before the next begins.
    paged : bool
        The cache of a request grows by pages of 16 tokens; otherwise it gets 8,192 tokens at once.
    prefixes : bool
        Full pages of the shared beginning are computed and kept once. Needs `paged`.
    chunked : bool
        At most 512 tokens a pass, those that are written first; otherwise a prompt is read in one
        pass. Needs `continuous`.
    speculative : bool
        Llama 3.2 1B drafts 4 tokens, and one pass checks them.
    eight_bit : bool
        The numbers of the cache take one byte instead of two. Their scales are not counted.

    Raises
    ------
    TypeError
        If a number or an idea is of the wrong kind.
    ValueError
        If a number is too small, or a request could get longer than 8,192 tokens.
    """

    requests: int = 200
    seed: int = 0
    rate: float = 40.0
    prompt: int = 500
    output: int = 200
    shared: int = 0
    at_once: int = 256
    continuous: bool = False
    paged: bool = False
    prefixes: bool = False
    chunked: bool = False
    speculative: bool = False
    eight_bit: bool = False

    def __post_init__(self):
        for name, least in (("requests", 1), ("prompt", 2), ("output", 1), ("at_once", 1)):
            read_size(getattr(self, name), name, least=least)
        for name in ("shared", "seed"):
            read_size(getattr(self, name), name)
        for name in IDEAS:
            read_flag(getattr(self, name), name)
        if read_number(self.rate, "rate") <= 0:
            raise ValueError(f"rate must be above 0 requests per second; got {self.rate}")
        longest = self.shared + self.prompt * 3 // 2 + 1 + 4 * self.output + DRAFTED
        if longest > LONGEST:
            raise ValueError(f"a request may have {LONGEST} tokens; got up to {longest}")


IDEAS = tuple(each.name for each in fields(Settings) if each.type is bool)


def chance(seed, position):
    """Return a number from 0 to 1 for a seed and a position, the same in every language.

    Source
    ------
    The last steps of MurmurHash3, twice, as `chance` of the writer in the page does.
    """
    whole = 0xFFFFFFFF
    bits = ((seed + 1) * 0x9E3779B9 + (position + 1) * 0x85EBCA6B) & whole
    for _ in range(2):
        bits = (bits ^ bits >> 16) * 0x85EBCA6B & whole
        bits = (bits ^ bits >> 13) * 0xC2B2AE35 & whole
        bits ^= bits >> 16
    return bits / 2**32


@dataclass(eq=False)
class Request:
    """A request: when it arrives, its tokens, and what has become of it so far."""

    number: int
    arrival: float
    prompt: int
    output: int
    written: int = 0
    kept: int = 0  # tokens whose keys and values are in the cache
    pages: int = 0  # of its own
    first: float = math.nan  # when its first token was written
    last: float = math.nan  # when its last one was, so far
    # For the laws that no work is lost or counted twice: tokens that went through the model; that
    # were taken from the shared beginning; that a preemption lost; that were drafted in vain.
    computed: int = 0
    skipped: int = 0
    lost: int = 0
    rejected: int = 0

    @property
    def known(self):
        """The tokens of the text so far."""
        return self.prompt + self.written


def arrivals(settings):
    """Return the requests that the settings describe, in the order of their arrival."""
    time, found = 0.0, []
    for i in range(settings.requests):
        a, b, c = (chance(settings.seed, 3 * i + k) for k in range(3))
        time -= math.log(1 - a) / settings.rate
        own = settings.prompt // 2 + math.floor(b * (settings.prompt + 1))
        output = min(1 + math.floor(-math.log(1 - c) * settings.output), 4 * settings.output)
        # Tenths of a millisecond: two languages may round a logarithm differently.
        moment = math.floor(time * 1e4 + 0.5) / 1e4
        found.append(Request(i, moment, settings.shared + own, output))
    return found


@dataclass(eq=False)
class Server:
    """A server of Llama 3.1 8B on one H100, pass by pass.

    `step` does one pass of the model over all requests that are being read or written, and takes
    the time that `seconds` says. `run` goes on until all requests have their answers.

    What the simulation leaves out: everything that takes time and is not a product with the
    parameters or attention (softmax, norms, sampling, starting kernels, the scheduler, the
    network), and that no real processor reaches both of its published numbers.

    Source
    ------
    Yu et al. 2022, *Orca*; Kwon et al. 2023, *Efficient Memory Management for Large Language Model
    Serving with PagedAttention*, section 4; Agrawal et al. 2024, *Sarathi-Serve*, Algorithm 3.
    """

    settings: Settings
    model: Model = LLAMA_8B
    processor: Processor = H100
    draft: Model = LLAMA_1B
    clock: float = 0.0
    waiting: list = field(default_factory=list)
    running: list = field(default_factory=list)
    resting: list = field(default_factory=list)  # finished, in a batch that is not
    passes: list = field(default_factory=list)
    preempted: int = 0
    prefix_pages: int = 0  # that are taken
    prefix_kept: int = 0  # tokens of the shared beginning that are computed

    def __post_init__(self):
        s = self.settings
        self.requests = arrivals(s)
        self.coming = list(self.requests)
        each = 1 if s.eight_bit else 2
        self.cache_bytes = self.model.cache_bytes(each)
        self.draft_bytes = self.draft.cache_bytes(each) if s.speculative else 0
        models = [self.model] + [self.draft] * s.speculative
        room = USED * self.processor.memory
        room -= sum(2 * (m.body + m.head + m.embedding) for m in models)
        self.pages = math.floor(room / (PAGE * (self.cache_bytes + self.draft_bytes)))
        self.free = self.pages
        self.prefix = s.shared // PAGE * PAGE if s.prefixes and s.paged else 0
        self.gaps = []  # (seconds between two tokens, how many)

    def run(self):
        """Go on until every request has its answer; return the server."""
        while self.coming or self.waiting or self.running:
            self.step()
        return self

    def step(self):
        """Do one pass, or wait for the next request."""
        self._arrive()
        if not (self.waiting or self.running):
            self.clock = self.coming[0].arrival
            return
        self._admit()
        self._grow()
        if not self.running:  # a batch whose last request was preempted
            self._release(self.resting)
            return
        parts = self._schedule()
        start, writes = self.clock, [part for part in parts if part[2]]
        self.clock += self._seconds(parts)
        emitted = self._write(writes, start)
        self._leave()
        self._record(start, parts, emitted)

    # The parts of a step

    def _arrive(self):
        while self.coming and self.coming[0].arrival <= self.clock:
            self.waiting.append(self.coming.pop(0))

    def _admit(self):
        """Let requests in while there is room, in the order of their arrival."""
        s = self.settings
        if self.running and not s.continuous:
            return
        spare = math.floor(SPARE * self.pages) if s.paged else 0
        while self.waiting and len(self.running) < s.at_once:
            request = self.waiting[0]
            own = self._needs(request, 0) if s.paged else LONGEST // PAGE
            shared = self.prefix // PAGE - self.prefix_pages
            if own + shared + spare > self.free:
                return
            self.prefix_pages += shared
            request.pages = own
            self.free -= own + shared
            self.running.append(self.waiting.pop(0))

    def _needs(self, request, drafted):
        """The pages of its own that a request needs for its text and for drafted tokens."""
        return -(-(request.known + drafted - self.prefix) // PAGE)

    def _grow(self):
        """Give a page to each request that needs one; the last to come makes room if none is."""
        if not self.settings.paged:
            return
        drafted = DRAFTED if self.settings.speculative else 0
        for request in list(self.running):
            while request in self.running and request.pages < self._needs(request, drafted):
                if self.free:
                    self.free -= 1
                    request.pages += 1
                else:
                    self._preempt(self.running.pop())

    def _preempt(self, request):
        """Take the pages of a request away; it waits, first in the queue, and is read again."""
        self._release([request])
        request.lost += request.kept
        request.kept = 0
        self.preempted += 1
        self.waiting.insert(0, request)

    def _release(self, requests):
        for request in requests:
            self.free += request.pages
            request.pages = 0
        if requests is self.resting:
            requests.clear()

    def _schedule(self):
        """Choose the tokens of the pass: [request, tokens, whether it writes, kept before]."""
        s = self.settings
        drafted = DRAFTED if s.speculative else 0
        parts = [
            [request, 1 + drafted, True, request.kept]
            for request in self.running
            if request.known - request.kept == 1
        ]
        limit = math.inf
        if s.chunked and s.continuous:
            limit = max(BUDGET - sum(part[1] for part in parts), 0)
        for request in self.running:
            if request.known - request.kept == 1:
                continue
            if request.kept < self.prefix_kept:
                request.skipped += self.prefix_kept - request.kept
                request.kept = self.prefix_kept
            tokens = min(request.known - request.kept, limit)
            limit -= tokens
            if tokens:
                ends = request.kept + tokens
                if request.kept < self.prefix:
                    self.prefix_kept = max(self.prefix_kept, min(ends, self.prefix))
                parts.append([request, tokens, ends == request.known, request.kept])
                request.computed += tokens
                request.kept = ends
        return parts

    def _seconds(self, parts):
        tokens = rows = pairs = read = 0
        prompts = prompt_pairs = prompt_read = decodes = context = 0
        for request, new, writes, before in parts:
            tokens += new
            met = new * before + new * (new + 1) // 2
            pairs += met
            read += before + new
            if request.kept > before:  # a prompt, or a part of one
                rows += writes
                prompts, prompt_pairs = prompts + new, prompt_pairs + met
                prompt_read += before + new
            else:
                rows += new
                decodes, context = decodes + 1, context + before + 1
        time = seconds(
            self.processor, pass_work(self.model, tokens, rows, pairs, read, self.cache_bytes)
        )
        if self.settings.speculative:
            for k in range(DRAFTED if decodes else 1):
                met = context + k * decodes
                first = k == 0
                work = pass_work(
                    self.draft,
                    decodes + first * prompts,
                    decodes,
                    met + first * prompt_pairs,
                    met + first * prompt_read,
                    self.draft_bytes,
                )
                time += seconds(self.processor, work)
        return time

    def _write(self, parts, start):
        """Write a token, or as many as are accepted, for each request whose turn it is."""
        s, regular, emitted = self.settings, {}, 0
        for request, new, _, before in parts:
            n = 1
            if request.kept == before:  # the last token of the text, and what was drafted after it
                if new > 1:
                    u = chance(s.seed + 7919, request.number * LONGEST + request.known)
                    accepted = sum(u < ACCEPTED**j for j in range(1, new))
                    n = min(1 + accepted, request.output - request.written)
                request.computed += new
                request.rejected += new - n
                request.kept += n
            if request.written == 0:
                request.first = self.clock
                m = n - 1
            else:
                m = n
            gap = (self.clock - (start if request.written == 0 else request.last)) / n
            if request.written and request.last == start:
                regular[n] = regular.get(n, 0) + m
            elif m:
                self.gaps.append((gap, m))
            request.written += n
            request.last = self.clock
            emitted += n
        for n in sorted(regular):
            self.gaps.append(((self.clock - start) / n, regular[n]))
        return emitted

    def _leave(self):
        done = [request for request in self.running if request.written == request.output]
        self.running = [request for request in self.running if request.written < request.output]
        if self.settings.continuous:
            self._release(done)
        else:
            self.resting.extend(done)
            if not self.running:
                self._release(self.resting)

    def _record(self, start, parts, emitted):
        holding = self.running + self.resting
        kept = self.prefix_kept + sum(max(r.kept - self.prefix, 0) for r in holding)
        self.passes.append(
            {
                "start": start,
                "end": self.clock,
                "tokens": sum(part[1] for part in parts),
                "written": emitted,
                "running": len(self.running),
                "waiting": len(self.waiting),
                "pages": self.pages - self.free,
                "kept": kept,
                "caches": [(r.number, r.pages, r.kept) for r in holding],
            }
        )


def quantile(pairs, q):
    """Return the smallest value that at least a part `q` of all values does not exceed.

    Parameters
    ----------
    pairs : list of (float, int)
        Values, and how often each of them occurs.
    """
    pairs = sorted(pairs)
    needed, passed = q * sum(count for _, count in pairs), 0
    for value, count in pairs:
        passed += count
        if passed >= needed:
            return value
    return 0.0


def simulate(settings):
    """Run a server and return what its users notice, as a dict.

    "throughput" is in tokens per second, from the first arrival to the last token; "first" and
    "between" have the median and the 99th percentile of the time to first token and of the time
    between tokens, in seconds; tokens of one pass count as evenly spaced. "most" is the largest
    number of requests at once, "filled" the part of the taken memory that holds tokens, over time.

    All of this depends on how many requests there are: the last answers finish on a nearly empty
    server, and where requests arrive faster than they are answered, more of them wait for longer.
    """
    server = Server(settings).run()
    requests, passes = server.requests, server.passes
    first = [(r.first - r.arrival, 1) for r in requests]
    busy = sum((p["end"] - p["start"]) * p["pages"] for p in passes) * PAGE
    kept = sum((p["end"] - p["start"]) * p["kept"] for p in passes)
    return {
        "throughput": sum(r.output for r in requests) / (server.clock - requests[0].arrival),
        "first": [quantile(first, 0.5), quantile(first, 0.99)],
        "between": [quantile(server.gaps, 0.5), quantile(server.gaps, 0.99)],
        "most": max(len(p["caches"]) for p in passes),
        "filled": kept / busy if busy else 0.0,
        "preempted": server.preempted,
        "passes": len(passes),
        "seconds": server.clock,
    }
