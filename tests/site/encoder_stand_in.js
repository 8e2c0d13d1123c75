/**
 * Stands in for the engine of Encoder: the same contract, no model. Words are tokens; queries,
 * keys, values and states are numbers that follow from the words and their places, the weights
 * follow from these by the formula. A ledger has only its input; each head that is replaced adds
 * .01 to the last states. `standIn.fail` makes the next reading fail; `standIn.asked`
 * lists what was read; `standIn.settle()` brings the exact numbers, `standIn.slow()` a browser
 * without SIMD; with `standIn.held` a reading waits for `standIn.go()`.
 */
(() => {
  const [LAYERS, HEADS, D] = [6, 12, 384];
  const heard = new Set();
  const owners = new Map();
  const news = { state: "idle", got: 0, asked: 0, exact: false, slow: false, error: "" };
  const tell = (changes) => {
    Object.assign(news, changes);
    encoder.state = news.state;
    heard.forEach((hear) => hear({ ...news }));
  };
  const number = (word, ...at) => {
    let seed = 17;
    for (const letter of `${word}${at}`) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) | 0;
    seed = Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d);
    return ((seed ^ (seed >>> 12)) >>> 0) / 2 ** 31 - 1;
  };
  const pause = () => new Promise((go) => setTimeout(go, 25));

  function made(tokens, { hidden, replaced, ledger }) {
    const n = tokens.length;
    const rows = (name, layer) =>
      Float32Array.from(
        { length: n * D },
        (_, k) => 2 * number(tokens[Math.floor(k / D)], name, layer, k % D, Math.floor(k / D)),
      );
    const layers = (name, many) => Array.from({ length: many }, (_, layer) => rows(name, layer));
    const [queries, keys, values, states] = [
      ["q", LAYERS],
      ["k", LAYERS],
      ["v", LAYERS],
      ["x", LAYERS + 1],
    ].map(([name, many]) => layers(name, many));
    for (const state of states.slice(1))
      state.forEach((x, k) => (state[k] = x + hidden.length / 9));
    const weights = queries.map((query, layer) => {
      const all = new Float32Array(HEADS * n * n);
      for (let h = 0; h < HEADS; h++) {
        for (let i = 0; i < n; i++) {
          const exponentials = Array.from({ length: n }, (_, j) => {
            let sum = 0;
            for (let k = 32 * h; k < 32 * h + 32; k++)
              sum += query[i * D + k] * keys[layer][j * D + k];
            return hidden.includes(j) ? 0 : Math.exp(sum / Math.sqrt(32));
          });
          const total = exponentials.reduce((a, b) => a + b);
          exponentials.forEach((power, j) => (all[(h * n + i) * n + j] = power / total));
        }
      }
      return all;
    });
    const last = states[LAYERS];
    last.forEach((x, k) => (last[k] = x + replaced.length / 100));
    const written = () => Array.from({ length: 85 }, (_, part) => last.map((x) => (part ? 0 : x)));
    const mean = Float32Array.from({ length: D }, (_, k) =>
      tokens.reduce((sum, _, i) => sum + (hidden.includes(i) ? 0 : states[LAYERS][i * D + k]), 0),
    );
    const length = Math.hypot(...mean);
    return {
      tokens,
      weights,
      states,
      queries,
      keys,
      values,
      embedding: mean.map((x) => x / length),
      exact: news.exact,
      ...(ledger && { ledger: written() }),
    };
  }

  const encoder = (self.encoder = {
    missing: "",
    megabytes: 12.4,
    megabytesMore: 5.9,
    state: "idle",
    errors: { weights: 0.003, states: 0.005, embedding: 0.0003 },
    listen(hear) {
      heard.add(hear);
      return () => heard.delete(hear);
    },
    stop() {
      for (const mine of owners.values()) mine.abort();
      standIn.go?.();
      tell({ state: "failed", got: 0, asked: 0, error: "Stopped." });
    },
    async read(text, { hidden = [], replaced = [], ledger, owner, tell: say } = {}) {
      owners.get(owner)?.abort();
      const mine = new AbortController();
      owners.set(owner, mine);
      const ended = () => {
        if (mine.signal.aborted) throw new DOMException("a newer text is read", "AbortError");
      };
      standIn.asked.push([text, hidden]);
      const fail = standIn.fail;
      standIn.fail = "";
      if (news.state !== "ready") {
        for (const got of [0, 3.1e6, 7.9e6, 12.4e6]) {
          ended();
          tell({ state: "loading", got, asked: 12.4e6 });
          await (standIn.held ? new Promise((go) => (standIn.go = go)) : pause());
          if (fail && got) {
            tell({ state: "failed", error: fail });
            throw new Error(fail);
          }
        }
        ended();
        tell({ state: "ready" });
      }
      if (fail) throw new Error(fail);
      if (standIn.held) await new Promise((go) => (standIn.go = go));
      ended();
      const reading = made(
        ["[CLS]", ...text.toLowerCase().match(/[\p{L}\p{N}]+|[^\s]/gu), "[SEP]"],
        { hidden, replaced, ledger },
      );
      say?.({ tokens: reading.tokens });
      for (const [layer, weights] of reading.weights.entries()) {
        await pause();
        ended();
        say?.({ layer, weights });
      }
      return reading;
    },
  });
  self.standIn = {
    asked: [],
    fail: "",
    held: false,
    settle: () => tell({ exact: true }),
    slow: () => tell({ slow: true }),
  };
})();
