/**
 * RecallExplorer: pairs are written into a memory, and each of them is asked for again.
 */
import { buttons, element, html, sheet, slider, table, text } from "../kit/markup.js";
import { dot } from "../kit/numbers.js";

export const layout = "abh-instrument";
export const label = () => "What four kinds of attention recall";

const N_VALUES = 8;
const WINDOW = 4;
const SHARPNESS = 60;
const RECENCY = 0.1;
const LETTERS = "ABCDEFGH";
/** A kind of attention: its name, and what it keeps. */
const KINDS = {
  full: [
    "Full attention",
    "It keeps every key and every value, so the memory grows with the text.",
  ],
  window: ["Window of 4", "It keeps the last four keys and values, and forgets everything else."],
  linear: ["Linear attention", "It adds up all pairs in one matrix, each as key times value."],
  delta: [
    "Delta rule",
    "It looks up what the matrix gives for a key, and adds only the difference.",
  ],
};

const one = (value) => Array.from({ length: N_VALUES }, (_, i) => Number(i === value));

/** How many different keys are written. */
const different = ({ pairs, again }) => (again ? Math.ceil(pairs / 2) : pairs);

/** The pairs: the number of a key, the key itself, of length 1, and the value. */
function written(s) {
  const n = different(s);
  return s.letters.slice(0, s.pairs).map((value, i) => {
    const key = s.directions[i % n].slice(0, s.d_k);
    const length = Math.hypot(...key);
    return { number: i % n, key: key.map((x) => x / length), value, time: i };
  });
}

/** What the query reads from a matrix whose rows belong to the numbers of a key. */
const read = (state, key) =>
  Array.from({ length: N_VALUES }, (_, c) => key.reduce((sum, x, r) => sum + x * state[r][c], 0));

/** The matrix after all pairs. */
export function stateOf(s) {
  const state = Array.from({ length: s.d_k }, () => Array(N_VALUES).fill(0));
  for (const { key, value } of written(s)) {
    const recalled = s.kind === "delta" ? read(state, key) : Array(N_VALUES).fill(0);
    const added = one(value).map((x, c) => x - recalled[c]);
    key.forEach((x, r) => {
      added.forEach((y, c) => {
        state[r][c] += x * y;
      });
    });
  }
  return state;
}

/** What Python gives: the answers to all keys, which of them are right, and what is kept. */
export function compute(s) {
  const all = written(s);
  const asked = all.slice(0, different(s));
  const hasState = s.kind === "linear" || s.kind === "delta";
  const state = hasState && stateOf(s);
  const held = s.kind === "window" ? all.slice(-WINDOW) : all;
  const output = asked.map(({ key }) => {
    if (hasState) return read(state, key);
    const scores = held.map((other) => SHARPNESS * dot(key, other.key) + RECENCY * other.time);
    const top = Math.max(...scores);
    const exponentials = scores.map((x) => Math.exp(x - top));
    const sum = exponentials.reduce((a, b) => a + b);
    const answer = Array(N_VALUES).fill(0);
    held.forEach(({ value }, j) => {
      answer[value] += exponentials[j] / sum;
    });
    return answer;
  });
  const last = asked.map((_, i) => all[i + asked.length]?.value ?? all[i].value);
  return {
    output,
    recalled: output.map((row, i) => row.indexOf(Math.max(...row)) === last[i]),
    kept: hasState ? s.d_k * N_VALUES : held.length * (s.d_k + N_VALUES),
  };
}

// --------------------------------------------------------------------------------- The drawing

/** Squares for the numbers of rows: the larger a number, the larger; hollow below 0. */
function squares(rows, side, faded = () => false) {
  const most = Math.max(...rows.flat().map(Math.abs), 1e-9);
  return rows.map((row, r) =>
    row.map((x, c) => {
      const size = Math.max(Math.sqrt(Math.abs(x) / most) * (side - 2), 0.8);
      return element("rect", {
        x: c * side + (side - size) / 2,
        y: r * side + (side - size) / 2,
        width: size,
        height: size,
        fill: x > 0 ? "var(--ink)" : "var(--page)",
        stroke: "var(--ink)",
        "stroke-width": 0.8,
        opacity: faded(r) ? 0.15 : false,
      });
    }),
  );
}

/** What is kept: a matrix, or the keys and values row by row. */
function memory(s) {
  const hasState = s.kind === "linear" || s.kind === "delta";
  const all = written(s);
  const rows = hasState ? stateOf(s) : all.map(({ key, value }) => [...key, ...one(value)]);
  const side = hasState ? Math.min(264 / N_VALUES, 350 / s.d_k) : 11;
  const gone = s.kind === "window" ? Math.max(all.length - WINDOW, 0) : 0;
  const columns = rows[0].length;
  return sheet(
    "memory",
    264, // as much as 32 pairs of 16 and 8 numbers need
    372,
    hasState
      ? `The matrix that is kept: ${s.d_k} rows of ${N_VALUES} numbers`
      : `The keys and values that are kept: ${rows.length - gone} rows of ${columns} numbers`,
    text(
      hasState ? `a matrix of ${s.d_k} × ${N_VALUES}` : "a key and a value in each row",
      0,
      11,
      "ink",
    ),
    element(
      "g",
      { transform: "translate(0 20)" },
      squares(rows, side, (r) => r < gone),
    ),
  );
}

export function picture(s) {
  const { output, recalled, kept } = compute(s);
  const n = recalled.length;
  const right = recalled.filter(Boolean).length;
  const choice = ([kind, [name]]) =>
    element(
      "button",
      { type: "button", name: "kind", value: kind, "aria-pressed": String(s.kind === kind) },
      name,
    );
  const answer = (row) => LETTERS[row.indexOf(Math.max(...row))];
  const replaced = (i) => i + n < s.pairs;
  const pair = ({ number, value }, i) =>
    replaced(i)
      ? html`<li class="old"><span>${number + 1} ${LETTERS[value]}</span><b>&nbsp;</b></li>`
      : html`<li class="${recalled[number] ? "right" : "wrong"}"><span>${number + 1} ${
          LETTERS[value]
        }</span><b>${answer(output[number])}</b></li>`;
  return [
    html`<div class="controls">
<label class="main"><span>Pairs written <b class="number">${s.pairs}</b></span>
${slider("pairs", s, { value: s.pairs })}</label>
<p class="one-of">${Object.entries(KINDS).map(choice)}</p>
<p class="says">${KINDS[s.kind][1]}</p>
<label><span>Numbers in a key <b class="number">${s.d_k}</b></span>
${slider("d_k", s, { value: s.d_k })}</label>
<label class="switch">${element("input", {
      type: "checkbox",
      name: "again",
      checked: s.again,
    })}<span>The second half writes the same keys again, with new values</span></label></div>`,
    html`<div class="readout">
<p><span class="big" data-part="right">${right} of ${n}</span><span>answers are right</span></p>
<p><span class="big" data-part="kept">${kept}</span><span>numbers are kept</span></p></div>`,
    html`<div class="picture">${memory(s)}</div>`,
    html`<div class="asked"><p class="head">Key and value of each pair, and below them the answer
when the key is asked for</p>
<ol class="pairs" data-part="pairs">${written(s).map(pair)}</ol>${buttons()}</div>`,
    () =>
      html`<div class="visually-hidden">${table(
        "Each key and its answer",
        ["key", "answer", "right"],
        output.map((row, i) => [String(i + 1), answer(row), recalled[i] ? "yes" : "no"]),
      )}</div>`,
  ];
}

/** The same memory in NumPy. */
export function code(s) {
  const n = different(s);
  const keys = s.directions.slice(0, n).map((row) => `[${row.slice(0, s.d_k).join(", ")}]`);
  const answers = {
    linear: ["output = linear_attention(asked, keys, values, causal=False)"],
    delta: [
      "both = np.concatenate([keys, asked])",
      `blank = np.zeros((len(asked), ${N_VALUES}))`,
      "beta = np.repeat([1.0, 0.0], [len(keys), len(asked)])",
      "output = delta_rule(both, both, np.concatenate([values, blank]), beta)[len(keys):]",
    ],
  }[s.kind] ?? [
    s.kind === "window" ? `held = slice(-${WINDOW}, None)` : "held = slice(None)",
    `queries = ${SHARPNESS} * np.sqrt(keys.shape[1]) * asked`,
    `later = np.tile(${RECENCY} * np.arange(len(keys)), (len(asked), 1))[:, held]`,
    "output, _ = scaled_dot_product_attention(queries, keys[held], values[held], later)",
  ];
  return [
    "import numpy as np",
    "from attnlib import delta_rule, linear_attention, scaled_dot_product_attention",
    "",
    "asked = np.array([",
    ...keys.map((row) => `    ${row},`),
    "])",
    "asked /= np.linalg.norm(asked, axis=1, keepdims=True)",
    `keys = asked[np.arange(${s.pairs}) % len(asked)]`,
    `letters = np.array([${s.letters.slice(0, s.pairs).join(", ")}])`,
    `values = np.eye(${N_VALUES})[letters]`,
    ...answers,
    "print(output.argmax(axis=1))",
  ];
}

export function live(view) {
  for (const name of ["pairs", "d_k"]) {
    view.on(name, "input", (event) => view.set({ [name]: Number(event.target.value) }));
  }
  view.on("again", "change", (event) => view.set({ again: event.target.checked }));
  view.on("kind", "click", (_, button) => view.set({ kind: button.value }));
}
