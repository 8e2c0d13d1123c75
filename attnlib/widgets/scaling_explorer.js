/**
 * ScalingExplorer: the still picture's own drawing, whose marks follow d_k and the divisor.
 *
 * The curves do not depend on the traits: Python has drawn them, and they stay as they are.
 */
import { copy, entropy, mount, softmax, wordVector } from "./core.js";

const MAX_D_K = 1024;
const N = { keys: 64, queries: 64 };
const ROW = 35; // the query whose row is shown
const TRAITS = ["d_k", "divisor"];

/** The drawing, in units of a 360 x 476 sheet. The still picture in Python uses the same ones. */
const SHEET = {
  left: 34, wide: 312, histogram: 112, peak: 68, reach: 128, bins: 32, bars: 278, tallest: 100,
  plots: { entropy: 34, jacobian: 210 }, plot: 128, floor: 420, rise: 96,
  highest: { entropy: Math.log(N.keys), jacobian: 0.5 },
};

const BLOCK = 16;
const sums = new Map([[0, new Float64Array(N.queries * N.keys)]]);
let vectors;

/** All dot products of the first d numbers, row by row; sums over whole blocks are kept. */
function dotsOf(d) {
  if (sums.has(d)) return sums.get(d);
  const named = (role, n) =>
    Array.from({ length: n }, (_, i) => wordVector(`${role} ${i + 1}`, role, MAX_D_K));
  vectors ??= { queries: named("query", N.queries), keys: named("key", N.keys) };
  const from = BLOCK * Math.floor((d - 1) / BLOCK);
  const dots = dotsOf(from).slice();
  let at = 0;
  for (const query of vectors.queries) {
    for (const key of vectors.keys) {
      let sum = dots[at];
      for (let k = from; k < d; k++) sum += query[k] * key[k];
      dots[at++] = sum;
    }
  }
  if (d % BLOCK === 0) sums.set(d, dots);
  return dots;
}

/** Frobenius norm of the softmax Jacobian diag(a) - a a^T. */
export function jacobianNorm(row) {
  let total = 0;
  row.forEach((a, i) => {
    let rest = 0; // 1 - a as a sum: a difference loses a weight very close to 1
    let squares = 0;
    row.forEach((b, j) => {
      if (j === i) return;
      rest += b;
      squares += b * b;
    });
    total += a * a * (rest * rest + squares);
  });
  return Math.sqrt(total);
}

/** Everything that follows from the traits; the numbers that attnlib gives in Python. */
export function compute({ d_k, divisor }) {
  const by = { sqrt: Math.sqrt(d_k), none: 1, d_k }[divisor];
  const scores = Array.from(dotsOf(d_k)).map((dot) => dot / by);
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  const variance = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length;
  const row = scores.slice(ROW * N.keys, (ROW + 1) * N.keys);
  const weights = softmax(row);
  return {
    scores, row, weights,
    theory: Math.sqrt(d_k) / by,
    spread: Math.sqrt(variance),
    entropy: entropy(weights),
    jacobian: jacobianNorm(weights),
  };
}

/** The attributes of each moving part of the drawing; "text" is what it says. */
export function marks({ d_k, divisor }, now) {
  const { scores, weights, theory } = now;
  const { left, wide, bins, bars, tallest, plots, floor, rise } = SHEET;
  const counts = new Array(bins).fill(0);
  for (const score of scores) {
    counts[Math.min(Math.max(Math.floor((score / theory + 4) * (bins / 8)), 0), bins - 1)] += 1;
  }
  const unit = wide / 2 / SHEET.reach;
  const edge = (i) => (left + wide / 2 + ((i * 8) / bins - 4) * theory * unit).toFixed(2);
  const most = Math.max(...counts);
  const steps = counts.map((n, i) => `V${(SHEET.histogram - (SHEET.peak * n) / most).toFixed(1)}H${edge(i + 1)}`);

  const side = wide / N.keys;
  const sorted = [...weights].sort((a, b) => b - a);
  const bar = (w, j) =>
    `M${(left + (j + 0.15) * side).toFixed(2)} ${bars}v${(-tallest * w).toFixed(1)}h${(0.7 * side).toFixed(2)}V${bars}`;

  const x = (name) => (plots[name] + (SHEET.plot * Math.log2(d_k)) / 10).toFixed(1);
  const dot = (name) => ({ cx: x(name), cy: (floor - (rise * now[name]) / SHEET.highest[name]).toFixed(1) });
  const line = (name) =>
    name === divisor
      ? { stroke: "var(--weight)", "stroke-width": "2.5" }
      : { stroke: "var(--muted)", "stroke-width": "1.3" };
  const formula = { sqrt: "", none: `√${d_k} = `, d_k: `1/√${d_k} = ` }[divisor];
  return {
    spread: {
      text: `standard deviation ${now.spread.toPrecision(3)}; in theory ${formula}${Number(theory.toPrecision(4))}`,
    },
    histogram: { d: `M${edge(0)} ${SHEET.histogram}${steps.join("")}V${SHEET.histogram}Z` },
    bars: { d: sorted.map(bar).join("") },
    top: { text: sorted[0].toFixed(2), y: (bars - tallest * sorted[0] - 6).toFixed(1) },
    here: { d: Object.keys(plots).map((name) => `M${x(name)} ${floor - rise}V${floor}`).join("") },
    dot_entropy: dot("entropy"),
    dot_jacobian: dot("jacobian"),
    line_sqrt: line("sqrt"),
    line_none: line("none"),
    line_d_k: line("d_k"),
  };
}

/** Runnable NumPy for what is on the screen: another d_k may be put in. */
export function numpyCode({ d_k, divisor }) {
  const divided = { sqrt: " / np.sqrt(d_k)", none: "", d_k: " / d_k" }[divisor];
  return [
    "import numpy as np",
    "",
    `d_k = ${d_k}`,
    "",
    "def vector(name):",
    "    # d_k numbers, mean 0 and variance 1, always the same for the same name",
    "    seed = 0x811C9DC5",
    "    for letter in name.encode():",
    "        seed = (seed ^ letter) * 0x01000193 % 2**32",
    "    bits = np.arange(d_k, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(seed)",
    "    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):",
    "        bits = (bits ^ (bits >> shift)) * np.uint32(factor)",
    "    return np.sqrt(12) * (((bits ^ (bits >> 16)) + 0.5) / 2**32 - 0.5)",
    "",
    `queries = np.stack([vector(f"query:query {i + 1}") for i in range(${N.queries})])`,
    `keys = np.stack([vector(f"key:key {j + 1}") for j in range(${N.keys})])`,
    `scores = queries @ keys.T${divided}`,
    `row = scores[${ROW}]`,
    "powers = np.exp(row - row.max())",
    "weights = powers / powers.sum()",
    "entropy = -(weights * np.log(weights)).sum()",
    "jacobian = np.diag(weights) - np.outer(weights, weights)",
    'print("standard deviation of the scores:", scores.std())',
    'print("largest weight:", weights.max())',
    'print("entropy:", entropy)',
    'print("norm of the Jacobian:", np.linalg.norm(jacobian))',
  ];
}

/** A small number in few signs: 0.180, or 7e-5. */
const brief = (x) => (x >= 0.001 ? x.toFixed(3) : x.toExponential(0));

function render({ model, el }) {
  const state = () => Object.fromEntries(TRAITS.map((trait) => [trait, model.get(trait)]));
  const start = state();
  let stops;

  function draw(view) {
    const s = state();
    const now = compute(s);
    for (const [name, { text, ...attributes }] of Object.entries(marks(s, now))) {
      const part = view.part(name);
      for (const [key, value] of Object.entries(attributes)) {
        if (part.getAttribute(key) !== value) part.setAttribute(key, value);
      }
      if (text) view.put(name, { textContent: text });
    }

    stops ??= view.part("d_k").dataset.stops.split(" ").map(Number);
    const away = stops.map((stop) => Math.abs(stop - s.d_k));
    const largest = Math.max(...now.weights);
    view.put("d_k", { value: away.indexOf(Math.min(...away)), ariaValueText: `d_k = ${s.d_k}` });
    view.put("d_k_value", { textContent: s.d_k });
    view.put("divisor", { value: s.divisor });
    view.put("largest", { textContent: largest.toFixed(2) });
    view.put("top_key", { textContent: `key ${now.weights.indexOf(largest) + 1}` });
    view.put("entropy", { textContent: now.entropy.toFixed(2) });
    view.put("jacobian", { textContent: brief(now.jacobian) });

    // Only for the ear: wait until the slider rests.
    view.later(() => {
      dotsOf(MAX_D_K); // kept, so that a leap to the far end costs as little as any move
      const [, ...rows] = view.part("table").rows;
      rows.forEach(({ cells }, j) => {
        cells[1].textContent = now.row[j].toFixed(2);
        cells[2].textContent = now.weights[j].toFixed(4);
      });
      view.part("sheet").setAttribute(
        "aria-label",
        `Scores with a standard deviation of ${now.spread.toPrecision(3)}; a row of ${N.keys} weights, the ` +
          `largest ${largest.toFixed(2)}; curves of entropy and Jacobian norm. The tables below hold the numbers.`,
      );
    });
  }

  const view = mount(model, el, draw);
  const on = (name, event, handle) => view.part(name).addEventListener(event, handle);
  on("d_k", "input", (event) => view.set({ d_k: stops[event.target.value] }));
  on("divisor", "change", (event) => view.set({ divisor: event.target.value }));
  on("copy", "click", () => copy(view, numpyCode(state())));
  on("reset", "click", () => {
    view.set(start);
    view.say("");
  });
  return view.end;
}

export default { render };
