/**
 * ScalingExplorer: how far scores spread as d_k grows, one row of weights, and where that row
 * stands on the curves of the largest weight and of the slope.
 *
 * The curves do not depend on the reader's choices: attnlib has measured them.
 */
import { cellAt } from "../kit/heatmap.js";
import { buttons, element, html, line, select, sheet, table, text } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, weightPanel } from "../kit/microscope.js";
import { DIVISORS, growingDots, nearest, softmax, wordVector } from "../kit/numbers.js";

export const pageState = { lens: null };
export const layout = "abh-instrument abh-beside";

const DASHES = { sqrt: "none", none: "5 3", d_k: "1.5 2.5" };

const MAX_D_K = 1024;
const N = { keys: 64, queries: 64 };
const ROW = 35; // the query whose row is shown
const SETS = 16; // of keys behind the curves

/** The drawing, in units of a 360 x 476 sheet. */
const SHEET = {
  left: 34,
  wide: 312,
  histogram: 112,
  peak: 84,
  reach: 128,
  bins: 32,
  bars: 278,
  tallest: 100,
  plots: { largest: 34, slope: 210 },
  plot: 128,
  floor: 420,
  rise: 96,
  highest: { largest: 1, slope: 0.5 },
};

/** d_k in a drawing, as it is printed. */
const D_K = html`<tspan font-style="italic">d</tspan><tspan font-style="italic" font-size="0.95em"
dy="0.2em">k</tspan>`;

let vectors;

/** All queries and keys at full length, made once, and their dot products. */
function vectorsOf() {
  const named = (role, n) =>
    Array.from({ length: n }, (_, i) => wordVector(`${role} ${i + 1}`, role, MAX_D_K));
  if (!vectors) {
    const [queries, keys] = [named("query", N.queries), named("key", N.keys)];
    vectors = { queries, keys, dots: growingDots(queries, keys) };
  }
  return vectors;
}

/** Norm of the softmax Jacobian, the table of the slopes a_i (1 if i = j, else 0, minus a_j). */
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
  const scores = Array.from(vectorsOf().dots(d_k)).map((dot) => dot / by);
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  const variance = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length;
  const row = scores.slice(ROW * N.keys, (ROW + 1) * N.keys);
  const weights = softmax(row);
  return {
    scores,
    row,
    weights,
    theory: Math.sqrt(d_k) / by,
    spread: Math.sqrt(variance),
    largest: Math.max(...weights),
    slope: jacobianNorm(weights),
  };
}

/** What the microscope needs of a weight of the row. */
function weightOf({ d_k, divisor, lens }, { row, weights }) {
  const { queries, keys } = vectorsOf();
  const [number, written] = {
    sqrt: [Math.sqrt(d_k), `√${d_k}`],
    none: [1, "1"],
    d_k: [d_k, String(d_k)],
  }[divisor];
  const part = (vector) => Array.from(vector.slice(0, d_k));
  return {
    asks: `query ${ROW + 1}`,
    names: keys.map((_, j) => `key ${j + 1}`),
    j: lens[1],
    query: part(queries[ROW]),
    key: part(keys[lens[1]]),
    scores: row.map((score) => score * number),
    divisor: [number, written],
    weights,
  };
}

const x = (name, d) => SHEET.plots[name] + (SHEET.plot * Math.log2(d)) / 10;
const y = (name, value) => SHEET.floor - (SHEET.rise * value) / SHEET.highest[name];

/** The keys of the row, the largest weight first. */
const ranked = ({ weights }) => [...weights.keys()].sort((a, b) => weights[b] - weights[a]);

/** The marks that follow the reader's choices. */
function marks({ scores, weights, theory, spread }) {
  const { left, wide, bins, bars, tallest } = SHEET;
  const counts = new Array(bins).fill(0);
  for (const score of scores) {
    counts[Math.min(Math.max(Math.floor((score / theory + 4) * (bins / 8)), 0), bins - 1)] += 1;
  }
  const unit = wide / 2 / SHEET.reach;
  const edge = (i) => (left + wide / 2 + ((i * 8) / bins - 4) * theory * unit).toFixed(2);
  const most = Math.max(...counts);
  const steps = counts.map(
    (n, i) => `V${(SHEET.histogram - (SHEET.peak * n) / most).toFixed(1)}H${edge(i + 1)}`,
  );

  const side = wide / N.keys;
  const sorted = ranked({ weights }).map((j) => weights[j]);
  const bar = (w, j) =>
    `M${(left + (j + 0.15) * side).toFixed(2)} ` +
    `${bars}v${(-tallest * w).toFixed(1)}h${(0.7 * side).toFixed(2)}V${bars}`;
  return {
    histogram: `M${edge(0)} ${SHEET.histogram}${steps.join("")}V${SHEET.histogram}Z`,
    spread:
      `M${(left + wide / 2 - spread * unit).toFixed(1)} ` +
      `${SHEET.histogram}h${(2 * spread * unit).toFixed(1)}`,
    bars: sorted.map(bar).join(""),
    top: { said: sorted[0].toFixed(2), y: bars - tallest * sorted[0] - 6 },
  };
}

function drawing(s, now) {
  const { left, wide, histogram, reach, bars, tallest, plots, plot, floor, rise } = SHEET;
  const { histogram: outline, spread, bars: row, top } = marks(now);
  const middle = { "text-anchor": "middle" };
  const end = { "text-anchor": "end" };
  return sheet(
    "sheet",
    360,
    476,
    `Scores with a standard deviation of ${spreadOf(now.spread)}; a row of ${N.keys} weights, ` +
      `the largest ${top.said}; curves of the largest weight and of the slope. The tables below ` +
      `hold the numbers.`,
    text(
      `${N.queries} × ${N.keys} scores, ${s.divisor === "none" ? "not divided" : "divided"}; ` +
        `bar: their spread`,
      0,
      14,
      "ink",
    ),
    element("path", { d: outline, fill: "var(--muted)", stroke: "var(--muted)" }),
    line(`M${left} ${histogram}H${left + wide}`),
    line(spread, { stroke: "var(--ink)", "stroke-width": 4 }),
    [-100, -50, 0, 50, 100].map((at) =>
      text(
        String(at).replace("-", "−"),
        left + wide / 2 + (at * wide) / 2 / reach,
        127,
        "muted",
        middle,
      ),
    ),
    text(`One row of weights, ${N.keys} keys, the largest first`, 0, 158, "ink"),
    text("1", left - 6, bars - tallest + 4, "muted", end),
    text("0", left - 6, bars + 4, "muted", end),
    line(`M${left} ${bars - tallest}V${bars}H${left + wide}`),
    element("path", { d: row, fill: "var(--weight)" }),
    text(top.said, left + 8, top.y, "weight", { "data-part": "top" }),
    axes("largest", ["Largest weight by ", D_K], [".5", "1"]),
    axes("slope", ["Slope by ", D_K], [".25", ".5"]),
    curve(s, "sqrt", 34, ["÷ √", D_K]),
    curve(s, "none", 120, "not scaled"),
    curve(s, "d_k", 226, ["÷ ", D_K]),
    Object.keys(plots).map((name) => [
      element("path", {
        d: `M${x(name, s.d_k).toFixed(1)} ${floor - rise}V${floor}`,
        stroke: "var(--ink)",
      }),
      element("circle", {
        cx: x(name, s.d_k),
        cy: y(name, now[name]),
        r: 4,
        fill: `var(--${name === "largest" ? "weight" : "ink"})`,
      }),
    ]),
  );

  function axes(name, title, levels) {
    const at = plots[name];
    return [
      text(title, at - left, 308, "ink"),
      ["0", ...levels].map((level) =>
        text(level, at - 6, y(name, Number(level)) + 4, "muted", end),
      ),
      line(`M${at} ${floor - rise}V${floor}h${plot}`),
      [1, 32, 1024].map((d) => text(d, x(name, d), 436, "muted", middle)),
    ];
  }
}

/** The two curves of a divisor and its line in the legend. */
function curve({ divisor, curves_drawn }, name, at, label) {
  const path = (plot) =>
    "M" +
    curves_drawn[`${plot}_${name}`]
      .map((value, i) => `${x(plot, curves_drawn.d_k[i]).toFixed(1)} ${y(plot, value).toFixed(1)}`)
      .join("L");
  const picked = name === divisor;
  return [
    element("path", {
      d: `${path("largest")}${path("slope")}M${at} 464h22`,
      fill: "none",
      "stroke-dasharray": DASHES[name],
      stroke: picked ? "var(--ink)" : "var(--muted)",
      "stroke-width": picked ? 2.5 : 1.3,
    }),
    text(label, at + 28, 468, "ink"),
  ];
}

/** A small number in few signs: 0.180, or 7e-5. */
const brief = (value) => (value >= 0.001 ? value.toFixed(3) : value.toExponential(0));

/** A spread in at most five signs, which the column of the numbers holds. */
const spreadOf = (value) => value.toPrecision(value < 0.1 ? 2 : 3);

export function picture(s) {
  const now = compute(s);
  const stops = s.curves_drawn.d_k;
  const formula = { sqrt: "", none: `√${s.d_k} = `, d_k: `1/√${s.d_k} = ` }[s.divisor];
  const at = {
    min: 0,
    max: stops.length - 1,
    value: nearest(stops, s.d_k),
    "aria-valuetext": `d_k = ${s.d_k}`,
  };
  return [
    html`<div class="controls">
<label class="main"><span>Query and key size, <i>d<sub>k</sub></i>
<b class="number" data-part="d_k_value">${s.d_k}</b></span>
${element("input", { type: "range", name: "d_k", ...at })}</label>
<label class="wide"><span>Divide scores by</span>
${select("divisor", DIVISORS, s.divisor)}</label>
</div>`,
    html`<div class="readout">
<p><span class="big" data-part="spread">${spreadOf(now.spread)}</span>
<span data-part="theory">spread of the scores; in theory
${formula}${Number(now.theory.toPrecision(now.theory < 0.1 ? 2 : 4))}</span></p>
<p><span class="big" data-part="largest">${now.largest.toFixed(2)}</span>
<span>largest weight of the row, on <b class="key">key ${now.weights.indexOf(now.largest) + 1}</b>
<button type="button" name="why">Why?</button></span></p>
<p><span class="big" data-part="slope">${brief(now.slope)}</span>
<span>slope: how far the weights move when the scores do</span></p>
${buttons()}</div>`,
    html`<div class="picture">${drawing(s, now)}</div>`,
    html`<p class="cell">Dots: this row, of query ${ROW + 1}.
Lines: the middle one of ${SETS * N.queries} rows, from ${SETS} sets of keys.</p>`,
    weightPanel(s.lens && weightOf(s, now)),
    () => tables(s, now),
  ];
}

function tables({ curves_drawn }, { row, weights }) {
  const plots = [
    ["largest", "largest weight"],
    ["slope", "slope"],
  ];
  const columns = plots.flatMap(([plot, title]) =>
    Object.entries(DIVISORS).map(([divisor, label]) => [
      `${plot}_${divisor}`,
      `${title}, scores divided by ${label}`,
    ]),
  );
  const curves = [1, 4, 16, 64, 256, 1024].map((d) => {
    const at = curves_drawn.d_k.indexOf(d);
    return [d, ...columns.map(([column]) => brief(curves_drawn[column][at]))];
  });
  return html`<div class="visually-hidden">
${table(
  `Query ${ROW + 1}: scores as the softmax meets them, and weights`,
  ["key", "score", "weight"],
  row.map((score, j) => [`key ${j + 1}`, score.toFixed(2), weights[j].toFixed(4)]),
)}
${table(
  `The curves: medians of ${SETS * N.queries} rows`,
  ["d_k", ...columns.map(([, title]) => title)],
  curves,
)}</div>`;
}

/** Runnable NumPy for what is on the screen: another d_k may be put in. */
export function code({ d_k, divisor }) {
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
    "# row i, column j: how far weight i moves when score j moves a little",
    "slopes = np.diag(weights) - np.outer(weights, weights)",
    'print("standard deviation of the scores:", scores.std())',
    'print("largest weight:", weights.max())',
    'print("slope:", np.linalg.norm(slopes))',
  ];
}

export function live(view) {
  view.on("d_k", "input", (event) =>
    view.set({ d_k: view.state().curves_drawn.d_k[event.target.value] }),
  );
  view.on("divisor", "change", (event) => view.set({ divisor: event.target.value }));
  view.on("why", "click", () => openMicroscope(view, [ROW, ranked(compute(view.state()))[0]]));
  view.on("sheet", "click", (event, svg) => {
    const { left, wide, bars, tallest } = SHEET;
    const top = bars - tallest;
    // Rows as high as columns are wide.
    const cell = cellAt(event, svg, 360, N.keys, { left, top, size: wide });
    const high = cell && (cell.i * wide) / N.keys;
    if (cell?.inside && high < tallest)
      openMicroscope(view, [ROW, ranked(compute(view.state()))[cell.j]]);
  });
  liveMicroscope(view);
}
