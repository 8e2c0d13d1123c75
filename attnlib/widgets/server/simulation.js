/**
 * A server of Llama 3.1 8B on one H100, pass by pass: the same as attnlib/serving.py, which says
 * what each part is for.
 */
import { chance } from "../kit/numbers.js";

export const PAGE = 16;
export const LONGEST = 8192;
const USED = 0.9;
const SPARE = 0.01;
const BUDGET = 512;
export const DRAFTED = 4;
const ACCEPTED = 0.7;
const MOMENTS = 0.02; // seconds between two pictures of the cache, at least

const LLAMA_8B = {
  layers: 32,
  heads: 32,
  groups: 8,
  width: 128,
  body: 6979588096,
  head: 525336576,
  embedding: 525336576,
};
const LLAMA_1B = {
  layers: 16,
  heads: 32,
  groups: 8,
  width: 64,
  body: 973146112,
  head: 262668288,
  embedding: 0,
};
const H100 = { flops: 989.4e12, bandwidth: 3.35e12, memory: 80e9 };

const cacheBytes = (model, each) => 2 * model.layers * model.groups * model.width * each;

/** FLOPs and bytes of the products with the parameters, then of attention. */
function passWork(model, tokens, rows, pairs, read, bytes) {
  return [
    2 * (model.body * tokens + model.head * rows),
    2 * (model.body + model.head),
    4 * model.layers * model.heads * model.width * pairs,
    bytes * read,
  ];
}

const seconds = ([flops, moved, attention, kept]) =>
  Math.max(flops / H100.flops, moved / H100.bandwidth) +
  Math.max(attention / H100.flops, kept / H100.bandwidth);

/** One pass that writes a token for each of so many users, and one that reads a prompt. */
export function onePass(users, held, prompt) {
  const bytes = cacheBytes(LLAMA_8B, 2);
  const pairs = (prompt * (prompt + 1)) / 2;
  const parts = (work) => ({
    work,
    seconds: seconds(work),
    fetching: (work[1] + work[3]) / H100.bandwidth,
    computing: (work[0] + work[2]) / H100.flops,
    caches: work[3] / H100.bandwidth,
  });
  return {
    writing: parts(passWork(LLAMA_8B, users, users, users * held, users * held, bytes)),
    reading: parts(passWork(LLAMA_8B, prompt, 1, pairs, prompt, bytes)),
  };
}

function arrivals(s) {
  let time = 0;
  return Array.from({ length: s.requests }, (_, i) => {
    const [a, b, c] = [0, 1, 2].map((k) => chance(s.seed, 3 * i + k));
    time -= Math.log(1 - a) / s.rate;
    const own = Math.floor(s.prompt / 2) + Math.floor(b * (s.prompt + 1));
    return {
      number: i,
      arrival: Math.floor(time * 1e4 + 0.5) / 1e4,
      prompt: s.shared + own,
      output: Math.min(1 + Math.floor(-Math.log(1 - c) * s.output), 4 * s.output),
      written: 0,
      kept: 0,
      pages: 0,
      first: 0,
      last: 0,
    };
  });
}

const known = (request) => request.prompt + request.written;

/** The server, with methods as in Python. */
class Server {
  constructor(s) {
    this.s = s;
    this.requests = arrivals(s);
    const each = s.eight_bit ? 1 : 2;
    this.bytes = cacheBytes(LLAMA_8B, each);
    this.draftBytes = s.speculative ? cacheBytes(LLAMA_1B, each) : 0;
    let room = USED * H100.memory;
    for (const model of s.speculative ? [LLAMA_8B, LLAMA_1B] : [LLAMA_8B]) {
      room -= 2 * (model.body + model.head + model.embedding);
    }
    this.pages = Math.floor(room / (PAGE * (this.bytes + this.draftBytes)));
    this.free = this.pages;
    this.prefix = s.prefixes && s.paged ? Math.floor(s.shared / PAGE) * PAGE : 0;
    this.drafted = s.speculative ? DRAFTED : 0;
    Object.assign(this, { clock: 0, come: 0, preempted: 0, prefixPages: 0, prefixKept: 0 });
    Object.assign(this, { waiting: [], running: [], resting: [], passes: [], gaps: [] });
    Object.assign(this, { moments: [], most: 0, busy: 0, filled: 0, finished: 0 });
    this.counts = Array(DRAFTED + 2).fill(0);
  }

  run() {
    while (this.come < this.requests.length || this.waiting.length || this.running.length) {
      this.step();
    }
    return this;
  }

  step() {
    const { requests, waiting } = this;
    while (this.come < requests.length && requests[this.come].arrival <= this.clock) {
      waiting.push(requests[this.come++]);
    }
    if (!waiting.length && !this.running.length) {
      this.clock = requests[this.come].arrival;
      return;
    }
    this.admit();
    this.grow();
    if (!this.running.length) {
      this.release(this.resting);
      this.resting = [];
      return;
    }
    const parts = this.schedule();
    const start = this.clock;
    this.clock += this.duration(parts);
    const written = this.write(parts, start);
    this.leave();
    this.record(start, written);
  }

  admit() {
    const { s } = this;
    if (this.running.length && !s.continuous) return;
    const spare = s.paged ? Math.floor(SPARE * this.pages) : 0;
    while (this.waiting.length && this.running.length < s.at_once) {
      const request = this.waiting[0];
      const own = s.paged ? this.needs(request, 0) : LONGEST / PAGE;
      const shared = this.prefix / PAGE - this.prefixPages;
      if (own + shared + spare > this.free) return;
      this.prefixPages += shared;
      request.pages = own;
      this.free -= own + shared;
      this.running.push(this.waiting.shift());
    }
  }

  needs(request, drafted) {
    return Math.ceil((known(request) + drafted - this.prefix) / PAGE);
  }

  grow() {
    if (!this.s.paged) return;
    for (const request of [...this.running]) {
      const needed = this.needs(request, this.drafted);
      // A request that was preempted has no pages, and is not among those that run.
      while (request.pages && request.pages < needed) {
        if (this.free) {
          this.free--;
          request.pages++;
        } else {
          const last = this.running.pop();
          this.release([last]);
          last.kept = 0;
          this.preempted++;
          this.waiting.unshift(last);
        }
      }
    }
  }

  release(requests) {
    for (const request of requests) {
      this.free += request.pages;
      request.pages = 0;
    }
  }

  /** [request, tokens, whether it writes, kept before, whether it is a prompt]. */
  schedule() {
    const { s } = this;
    const parts = [];
    for (const request of this.running) {
      if (known(request) - request.kept === 1) {
        parts.push([request, 1 + this.drafted, true, request.kept, false]);
      }
    }
    let limit = Infinity;
    if (s.chunked && s.continuous) {
      limit = Math.max(BUDGET - parts.length * (1 + this.drafted), 0);
    }
    for (const request of this.running) {
      if (known(request) - request.kept === 1) continue;
      request.kept = Math.max(request.kept, this.prefixKept);
      const tokens = Math.min(known(request) - request.kept, limit);
      limit -= tokens;
      if (!tokens) continue;
      const before = request.kept;
      request.kept += tokens;
      if (before < this.prefix) {
        this.prefixKept = Math.max(this.prefixKept, Math.min(request.kept, this.prefix));
      }
      parts.push([request, tokens, request.kept === known(request), before, true]);
    }
    return parts;
  }

  duration(parts) {
    let [tokens, rows, pairs, read] = [0, 0, 0, 0];
    let [prompts, promptPairs, promptRead, decodes, context] = [0, 0, 0, 0, 0];
    for (const [, fresh, writes, before, isPrompt] of parts) {
      const met = fresh * before + (fresh * (fresh + 1)) / 2;
      tokens += fresh;
      pairs += met;
      read += before + fresh;
      if (isPrompt) {
        rows += Number(writes);
        prompts += fresh;
        promptPairs += met;
        promptRead += before + fresh;
      } else {
        rows += fresh;
        decodes++;
        context += before + 1;
      }
    }
    let time = seconds(passWork(LLAMA_8B, tokens, rows, pairs, read, this.bytes));
    if (!this.s.speculative) return time;
    for (let k = 0; k < (decodes ? DRAFTED : 1); k++) {
      const first = Number(k === 0);
      const met = context + k * decodes;
      const [drafts, pairsOf] = [decodes + first * prompts, met + first * promptPairs];
      const readOf = met + first * promptRead;
      time += seconds(passWork(LLAMA_1B, drafts, decodes, pairsOf, readOf, this.draftBytes));
    }
    return time;
  }

  write(parts, start) {
    const { s, clock } = this;
    const regular = this.counts.fill(0); // by how many tokens came at once
    let emitted = 0;
    this.finished = 0;
    for (const [request, fresh, writes, , isPrompt] of parts) {
      if (!writes) continue;
      let n = 1;
      if (!isPrompt) {
        if (fresh > 1) {
          const u = chance(s.seed + 7919, request.number * LONGEST + known(request));
          for (let j = 1; j < fresh; j++) n += Number(u < ACCEPTED ** j);
        }
        n = Math.min(n, request.output - request.written);
        request.kept += n;
      }
      if (request.written && request.last === start) regular[n] += n;
      else if (request.written) this.gaps.push([(clock - request.last) / n, n]);
      else {
        request.first = clock;
        if (n > 1) this.gaps.push([(clock - start) / n, n - 1]);
      }
      request.written += n;
      request.last = clock;
      emitted += n;
      if (request.written === request.output) this.finished++;
    }
    for (let n = 1; n < regular.length; n++) {
      if (regular[n]) this.gaps.push([(clock - start) / n, regular[n]]);
    }
    return emitted;
  }

  leave() {
    if (!this.finished) return;
    const done = this.running.filter((request) => request.written === request.output);
    this.running = this.running.filter((request) => request.written < request.output);
    if (this.s.continuous) this.release(done);
    else {
      this.resting.push(...done);
      if (this.running.length) return;
      this.release(this.resting);
      this.resting = [];
    }
  }

  record(start, written) {
    const { clock, running, resting } = this;
    let kept = this.prefixKept;
    for (const request of running) kept += Math.max(request.kept - this.prefix, 0);
    for (const request of resting) kept += Math.max(request.kept - this.prefix, 0);
    const pages = this.pages - this.free;
    this.busy += (clock - start) * pages;
    this.filled += (clock - start) * kept;
    this.most = Math.max(this.most, running.length + resting.length);
    const [live, waiting] = [running.length, this.waiting.length];
    this.passes.push({ start, end: clock, written, running: live, waiting, pages, kept });
    const before = this.moments.length ? this.moments[this.moments.length - 1].time : -1;
    if (clock - before < MOMENTS) return;
    const caches = running
      .concat(resting)
      .map(({ number, pages: own, kept: has }) => [number, own, has]);
    this.moments.push({ time: clock, caches, prefix: [this.prefixPages, this.prefixKept] });
  }
}

/** The smallest value that at least a part q of all does not exceed; pairs of a value, a count. */
function quantile(sorted, q) {
  const needed = q * sorted.reduce((sum, [, count]) => sum + count, 0);
  let passed = 0;
  for (const [value, count] of sorted) {
    passed += count;
    if (passed >= needed) return value;
  }
  return 0;
}

const quantiles = (pairs) => {
  pairs.sort((one, other) => one[0] - other[0]);
  return [quantile(pairs, 0.5), quantile(pairs, 0.99)];
};

/** What the users of a server notice; and the server, with its passes and moments. */
export function simulate(settings) {
  const server = new Server(settings).run();
  const { requests, busy } = server;
  const tokens = requests.reduce((sum, request) => sum + request.output, 0);
  return {
    server,
    throughput: tokens / (server.clock - requests[0].arrival),
    first: quantiles(requests.map(({ first, arrival }) => [first - arrival, 1])),
    between: quantiles(server.gaps),
    most: server.most,
    filled: busy ? server.filled / (busy * PAGE) : 0,
    preempted: server.preempted,
    passes: server.passes.length,
    seconds: server.clock,
  };
}
