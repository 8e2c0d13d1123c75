/**
 * How `self.encoder` (encoder.js) reads: it comes with the first sentence.
 *
 * The pieces (tools/encoder.py) are read in a worker (_ext/encoder/worker.js).
 */
(() => {
  "use strict";
  const { encoder } = self;
  const status = { state: "idle", got: 0, asked: 0, exact: false, slow: false, error: "" };
  const readings = new Map(); // those that nobody has answered yet
  const queue = []; // names of pieces that wait for their turn
  const loading = new Set();
  let plan = null;
  let worker = null;
  let starting = null;
  let count = 0;

  function change(news) {
    Object.assign(status, news);
    encoder.state = status.state;
    for (const hear of [...encoder.listeners]) hear({ ...status });
  }

  // ------------------------------------------------------------------------------- pieces

  /** What a reading waits for goes first: the words, their rows, then layer by layer. */
  const rank = (name) => ["words", "base", "rows", "layer", "fine"].indexOf(name.split("-")[0]);
  const isSmall = (name) => rank(name) < 3;
  const isFine = (name) => rank(name) === 4;

  function ask(names) {
    for (const name of names) {
      if (queue.includes(name) || loading.has(name)) continue;
      const at = queue.findIndex((other) => rank(other) > rank(name));
      queue.splice(at < 0 ? queue.length : at, 0, name);
      status.asked += plan.pieces[name][1];
    }
    change(names.every(isFine) ? {} : { state: "loading" });
    next();
  }

  /** Small ones six at a time; layers in pairs, but the first alone: its picture comes early. */
  function next() {
    const [name] = queue;
    if (!name) return;
    const most = isSmall(name) ? 6 : name === "layer-2" ? 1 : 2;
    if (loading.size >= most) return;
    queue.shift();
    loading.add(name);
    const [file] = plan.pieces[name];
    const mine = worker;
    encoder.load(name, `encoder/${file}`).then(
      (text) => {
        if (mine === worker) worker.postMessage({ kind: "piece", name, text });
      },
      (error) => {
        if (mine === worker) lose(name, error.message);
      },
    );
    next();
  }

  function lose(name, why) {
    loading.delete(name);
    worker.postMessage({ kind: "lost", name, why });
    const asked = status.asked - plan.pieces[name][1];
    change({ asked, error: why, ...(isFine(name) ? {} : { state: "failed" }) });
    next();
  }

  // ------------------------------------------------------------------------------- the worker

  async function start() {
    plan ??= await encoder.load("plan", `encoder/${encoder.plan}`);
    const url = URL.createObjectURL(new Blob([plan.worker], { type: "text/javascript" }));
    worker = new Worker(url, { name: "encoder" });
    URL.revokeObjectURL(url);
    const mine = worker;
    worker.onmessage = ({ data }) => {
      if (mine === worker) handlers[data.kind](data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (mine === worker)
        collapse(`The encoder stopped: ${event.message || "its thread did not start"}.`);
    };
    const { worker: _, ...rest } = plan;
    worker.postMessage({ kind: "start", plan: rest });
  }

  /** The next reading starts another worker; the browser has kept the pieces. */
  function collapse(why) {
    worker?.terminate();
    worker = starting = null;
    queue.length = 0;
    loading.clear();
    change({ state: "failed", got: 0, asked: 0, exact: false, error: why });
    for (const reading of [...readings.values()]) fail(reading, new Error(why));
  }

  const handlers = {
    started: ({ slow }) => change({ slow }),
    ask: ({ names }) => ask(names),
    here({ name }) {
      loading.delete(name);
      const waits = [...loading, ...queue].some((other) => !isFine(other));
      const state = status.state === "loading" && !waits ? "ready" : status.state;
      change({ got: status.got + plan.pieces[name][1], state });
      next();
    },
    spoilt({ name }) {
      lose(name, encoder.damaged(name).message);
    },
    exact: () => change({ exact: true }),
    news({ id, kind, ...news }) {
      const reading = readings.get(id);
      if (!reading) return;
      const { parts, tell } = reading;
      if (news.tokens) parts.tokens = news.tokens;
      if (news.state) parts.states.push(news.state);
      if (news.weights) {
        for (const name of ["weights", "queries", "keys", "values"]) parts[name].push(news[name]);
        tell?.({ layer: news.layer, weights: news.weights });
      } else if (news.tokens) tell?.({ tokens: news.tokens });
      if (news.embedding) {
        readings.delete(id);
        if (status.state !== "ready") change({ state: "ready" });
        const { embedding, exact, ledger: rows } = news;
        reading.resolve({ ...parts, embedding, exact, ...(rows && { ledger: rows }) });
      }
    },
    failed({ id, name, text }) {
      const Kind = name === "RangeError" ? RangeError : Error;
      if (readings.has(id)) fail(readings.get(id), new Kind(text));
    },
  };

  // ------------------------------------------------------------------------------- readings

  function fail(reading, error) {
    readings.delete(reading.id);
    reading.reject(error);
  }

  function end(owner, why) {
    for (const reading of [...readings.values()]) {
      if (reading.owner !== owner) continue;
      worker?.postMessage({ kind: "end", id: reading.id });
      fail(reading, new DOMException(why, "AbortError"));
    }
  }

  /**
   * Ends the readings of an owner; when nobody else reads, what is not yet on its way stays away.
   */
  function stop(owner) {
    end(owner, "Stopped.");
    if (readings.size || status.state !== "loading") return;
    for (const name of queue.splice(0)) {
      status.asked -= plan.pieces[name][1];
      worker.postMessage({ kind: "lost", name, why: "Stopped." });
    }
    change({ state: "idle" });
  }

  /** Options: hidden, tell, owner; and replaced and ledger, which model.js explains. */
  function read(text, { hidden = [], tell, owner, replaced, ledger } = {}) {
    return new Promise((resolve, reject) => {
      if (typeof text !== "string")
        throw new TypeError(`text must be a string; got ${typeof text}`);
      if (owner !== undefined) end(owner, "A newer sentence took its place.");
      const parts = { tokens: [], weights: [], states: [], queries: [], keys: [], values: [] };
      const reading = { id: ++count, owner, tell, parts, resolve, reject };
      readings.set(reading.id, reading);
      if (status.state !== "ready" || status.error) {
        change({ state: status.state === "ready" ? "ready" : "loading", error: "" });
      }
      starting ??= start();
      starting.then(
        () => {
          if (readings.has(reading.id)) {
            const { id } = reading;
            worker.postMessage({ kind: "read", id, text, hidden: [...hidden], replaced, ledger });
          }
        },
        (error) => {
          if (starting) collapse(error.message);
        },
      );
    });
  }

  encoder.take("loader", { read, stop });
})();
