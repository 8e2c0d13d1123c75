/**
 * The encoder in a thread of its own, behind model.js. It asks the page for pieces, reads
 * one sentence after the other, and says what it has as it comes.
 */
const LEDGER = 64; // tokens: each has 85 rows
const jobs = []; // the first one is being read
const here = new Set();
const coming = new Map(); // of each piece that was asked for: {promise, resolve, reject}
let plan;
let model;
let tokenize;
let complete = false; // a whole sentence has been read
let exact = false;

/** Other messages get their turn; a timer would wait for 4 ms. */
const pause = (() => {
  const { port1, port2 } = new MessageChannel();
  const waiting = [];
  port1.onmessage = () => waiting.shift()();
  return () =>
    new Promise((go) => {
      waiting.push(go);
      port2.postMessage(0);
    });
})();

function start(given) {
  plan = given;
  let slow = true;
  let module = null;
  try {
    module = new WebAssembly.Module(decode(plan.kernel));
  } catch {
    /* no WebAssembly, none with SIMD, or a policy against it: plain JavaScript */
  }
  model = makeModel(plan, (bytes) => {
    if (!module) return { buffer: new ArrayBuffer(bytes), kernel: null };
    const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / 65536) });
    const { product } = new WebAssembly.Instance(module, { page: { memory } }).exports;
    slow = false;
    return { buffer: memory.buffer, kernel: product };
  });
  postMessage({ kind: "started", slow });
}

/** Promises that these pieces are here. */
function need(names) {
  const missing = [];
  for (const name of names) {
    if (here.has(name) || coming.has(name)) continue;
    const piece = {};
    piece.promise = new Promise((resolve, reject) => Object.assign(piece, { resolve, reject }));
    piece.promise.catch(() => {}); // a rejection that nobody awaits is no error
    coming.set(name, piece);
    missing.push(name);
  }
  if (missing.length) postMessage({ kind: "ask", names: missing });
  return Promise.all(names.map((name) => coming.get(name)?.promise));
}

function lose(name, why) {
  coming.get(name)?.reject(Object.assign(new Error(why), { name: "PieceError" }));
  coming.delete(name);
}

function decode(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

function take(name, text) {
  const [, , check] = plan.pieces[name];
  const letters = new TextEncoder().encode(text);
  if (checksum(letters) !== check) {
    postMessage({ kind: "spoilt", name });
    return;
  }
  if (name === "words") tokenize = makeTokenizer(JSON.parse(text), plan.special);
  else model.add(name, decode(text));
  here.add(name);
  coming.get(name)?.resolve();
  coming.delete(name);
  postMessage({ kind: "here", name });
  if (!exact && fine().every((other) => here.has(other))) {
    exact = true;
    postMessage({ kind: "exact" });
  }
}

const numbered = (kind) => Array.from({ length: model.layers }, (_, l) => `${kind}-${l + 1}`);
const fine = () => numbered("fine");

async function read(job) {
  const { id, text, hidden, ...options } = job;
  let failure = null;
  /** Waits for pieces, but no longer than the reading lasts. */
  const have = (names) => {
    if (failure) throw failure; // a piece that is lost is not asked for again
    return Promise.race([need(names), all, job.ended]);
  };
  const report = (news) =>
    postMessage(
      { kind: "news", id, ...news },
      Object.values(news).flatMap((value) => value.buffer ?? []),
    );
  const layers = numbered("layer");
  const all = need(["words", "base", ...layers]).then(() => new Promise(() => {}));
  all.catch((error) => {
    failure = error;
  });
  await have(["words"]);
  if (job.over) return;
  const found = tokenize(text);
  const { length } = found.tokens;
  if (length > model.most) {
    throw new RangeError(
      `A sentence may have at most ${model.most} tokens, [CLS] and [SEP] among ` +
        `them; this one has ${length}.`,
    );
  }
  const wrong = hidden.find((t) => !(Number.isInteger(t) && t >= 0 && t < length));
  if (wrong !== undefined) {
    throw new RangeError(`hidden must hold positions of tokens, 0 to ${length - 1}; got ${wrong}`);
  }
  if (options.ledger && length > LEDGER) {
    throw new RangeError(
      `A ledger may have at most ${LEDGER} tokens; this sentence has ${length}.`,
    );
  }
  const size = length * model.headWidth;
  if (options.replaced?.some(([, , output]) => output.length !== size))
    throw new RangeError(`replaced must hold outputs of ${size} numbers, for ${length} tokens`);
  report({ tokens: found.tokens });
  await have(["base", ...model.rowsOf(found)]);
  if (job.over) return;
  const whole = exact;
  report({ state: model.begin(found, hidden, options) });
  for (let l = 0; l < model.layers; l++) {
    await have([layers[l]]);
    await pause();
    if (job.over) return;
    report({ layer: l, ...model.layer(l) });
  }
  report({ ...model.end(), exact: whole });
  complete = true;
}

async function work() {
  while (jobs.length) {
    const [job] = jobs;
    try {
      if (!job.over) await read(job);
    } catch (error) {
      postMessage({ kind: "failed", id: job.id, name: error.name, text: error.message });
    }
    jobs.shift();
    if (complete && !jobs.length && !exact) need(fine()).catch(() => {});
  }
}

const handlers = {
  start: ({ plan: given }) => start(given),
  piece: ({ name, text }) => take(name, text),
  lost: ({ name, why }) => lose(name, why),
  read(job) {
    job.ended = new Promise((end) => Object.assign(job, { end }));
    if (jobs.push(job) === 1) work();
  },
  end({ id }) {
    const job = jobs.find((other) => other.id === id);
    if (!job) return;
    job.over = true;
    job.end();
  },
};
self.onmessage = ({ data }) => handlers[data.kind](data);
