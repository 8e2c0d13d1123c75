/**
 * AttentionExplorer: the weights of a sentence as a heatmap. Under its columns stand the weights
 * of the selected row as bars, and below them the output: the values times the weights, summed.
 */
import { cellAt, cut, heatmap, ROOM_FOR_DIGITS, weightTable } from "../kit/heatmap.js";
import { buttons, element, html, line, select, sheet, text } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, weightPanel } from "../kit/microscope.js";
import {
  allowed,
  called,
  DIVISORS,
  entropy,
  growingDots,
  multiply,
  nearest,
  numpyArray,
  octaves,
  softmax,
  two,
  words,
  wordVector,
} from "../kit/numbers.js";

export const pageState = { pointed: null, lens: null };
export const shared = {
  sentence: (text) => words(text).length >= 1 && words(text).length <= MAX_TOKENS,
};
export const layout = "abh-instrument abh-beside";

const MAX_TOKENS = 64;
const MAX_D_K = 512;
const D_V = 4; // size of a value
const STOPS = octaves(MAX_D_K);
const MASKS = {
  none: "none",
  causal: "causal",
  padding: "padding",
  both: "causal + padding",
  window: "window",
};

/** The drawing, in units of a 360 x 484 sheet. */
const SHEET = {
  width: 360,
  height: 484,
  left: 84,
  top: 64,
  size: 270,
  bars: 422,
  tallest: 50,
  output: 458,
  unit: 14,
};

const vectors = new Map();

/** The query, the key and the value of a word, made once; `d_k` shortens query and key later. */
function vectorsOf(word) {
  if (!vectors.has(word)) {
    const [query, key] = ["query", "key"].map((role) => wordVector(word, role, MAX_D_K));
    vectors.set(word, { query, key, value: Array.from(wordVector(word, "value", D_V)) });
  }
  return vectors.get(word);
}

let sentence = { text: null, dots: null };

/** The dot products of a sentence, kept until the sentence changes. */
function dotsOf(tokens) {
  const text = tokens.join(" ");
  if (text !== sentence.text) {
    const pairs = tokens.map(vectorsOf);
    const [queries, keys] = ["query", "key"].map((role) => pairs.map((pair) => pair[role]));
    sentence = { text, dots: growingDots(queries, keys) };
  }
  return sentence.dots;
}

/** Everything that follows from the traits; the numbers that attnlib gives in Python. */
export function compute(state) {
  const tokens = words(state.sentence);
  const n = tokens.length;
  const dots = Array.from(dotsOf(tokens)(state.d_k));
  const scores = tokens.map((_, i) => dots.slice(i * n, (i + 1) * n));
  const divisor = { sqrt: Math.sqrt(state.d_k), none: 1, d_k: state.d_k }[state.divisor];
  const may = allowed(state.mask, n, state);
  const weights = scores.map((row, i) =>
    softmax(row.map((s, j) => (may[i][j] ? s / divisor : -Infinity))),
  );
  const values = tokens.map((word) => vectorsOf(word).value);
  return { tokens, scores, allowed: may, weights, values, output: multiply(weights, values) };
}

/** What the microscope needs of a weight. */
function weightOf(state, { tokens, scores, allowed: may, weights, values }) {
  const [i, j] = state.lens;
  if (Math.max(i, j) >= tokens.length) return null;
  const names = called(tokens);
  const part = (k, role) => Array.from(vectorsOf(tokens[k])[role].slice(0, state.d_k));
  const divisor = {
    sqrt: [Math.sqrt(state.d_k), `√${state.d_k}`],
    none: [1, "1"],
    d_k: [state.d_k, String(state.d_k)],
  };
  return {
    queryName: names[i],
    names,
    j,
    query: part(i, "query"),
    key: part(j, "key"),
    scores: scores[i],
    divisor: divisor[state.divisor],
    free: may[i],
    weights: weights[i],
    values,
  };
}

/** Runnable NumPy for what is on the screen. */
export function code(state) {
  const { tokens, scores, values } = compute(state);
  const position = "i, j = np.indices(scores.shape)";
  const mask = {
    none: [],
    causal: [position, "may = j <= i"],
    padding: [position, `may = j < ${state.length}`],
    both: [position, `may = (j <= i) & (j < ${state.length})`],
    window: [position, `may = abs(i - j) <= ${state.width}`],
  }[state.mask];
  const divided = { sqrt: "scores / np.sqrt(d_k)", none: "scores", d_k: "scores / d_k" }[
    state.divisor
  ];
  return [
    "import numpy as np",
    "",
    `tokens = ${JSON.stringify(tokens)}`,
    `d_k = ${state.d_k}`,
    ...numpyArray("scores", scores, 9),
    `scaled = ${divided}`,
    ...mask,
    ...(mask.length ? ["scaled = np.where(may, scaled, -np.inf)"] : []),
    "exponentials = np.exp(scaled - scaled.max(axis=1, keepdims=True))",
    "weights = exponentials / exponentials.sum(axis=1, keepdims=True)",
    "print(weights.round(2))",
    ...numpyArray("values", values, 9),
    "output = weights @ values",
    "print(output.round(2))",
  ];
}

function drawing({ tokens, weights, allowed: may, output }, row) {
  const { width, height, left, size, bars, tallest } = SHEET;
  const side = size / tokens.length;
  const top = Math.max(...weights[row]);
  const label =
    `Heatmap of the attention weights, ${tokens.length} by ${tokens.length}. Row ${tokens[row]}: ` +
    `largest weight ${two(top)} on ${tokens[weights[row].indexOf(top)]}. The table below holds ` +
    `the numbers.`;
  return sheet(
    "sheet",
    width,
    height,
    label,
    heatmap({ tokens, weights, allowed: may, row }, SHEET),
    weights[row].map((weight, j) => {
      const [x, tall] = [left + (j + 0.15) * side, tallest * weight];
      const number = { "text-anchor": "middle" };
      return [
        element("rect", {
          x,
          y: bars - tall,
          width: 0.7 * side,
          height: tall,
          fill: "var(--weight)",
        }),
        side >= ROOM_FOR_DIGITS &&
          may[row][j] &&
          text(two(weight), x + 0.35 * side, bars - tall - 5, "weight", number),
      ];
    }),
    text(cut(tokens[row]), left - 8, bars, "query", {
      "text-anchor": "end",
      "font-weight": "bold",
    }),
    line(`M${left} ${bars}h${size}`),
    outputBars(output[row]),
  );
}

/** The numbers of one output as bars, which go down where a number is negative. */
function outputBars(numbers) {
  const { left, size, output: y, unit } = SHEET;
  const step = size / numbers.length;
  const bars = numbers.map((x, c) => {
    const [at, tall] = [left + (c + 0.03) * step, unit * Math.abs(x)];
    return [
      element("rect", {
        x: at,
        y: x < 0 ? y : y - tall,
        width: 0.28 * step,
        height: tall,
        fill: "var(--value)",
      }),
      line(`M${at} ${y}h${0.28 * step}`),
      text(x.toFixed(2).replace("-", "−"), at + 0.33 * step, y + 4, "value"),
    ];
  });
  const end = { "text-anchor": "end", "font-weight": "bold" };
  return element(
    "g",
    { "data-part": "output" },
    text("output", left - 8, y + 4, "value", end),
    bars,
  );
}

export function picture(s) {
  const now = compute(s);
  const { tokens } = now;
  const row = Math.min(s.row, tokens.length - 1);
  const weights = now.weights[row];
  const top = weights.indexOf(Math.max(...weights));
  const n_allowed = now.allowed[row].filter(Boolean).length;
  const windowed = s.mask === "window";
  const extent = windowed
    ? { min: 0, max: tokens.length - 1, value: s.width }
    : { min: 1, max: tokens.length, value: Math.min(s.length, tokens.length) };
  const covers = ["window", "padding", "both"].includes(s.mask);
  const size = {
    min: 0,
    max: STOPS.length - 1,
    value: nearest(STOPS, s.d_k),
    "aria-valuetext": `d_k = ${s.d_k}`,
  };
  const typed = { value: s.sentence, spellcheck: "false", autocomplete: "off" };
  return [
    html`<div class="controls">
<label class="main"><span>Query and key size, <i>d<sub>k</sub></i>
<b class="number" data-part="d_k_value">${s.d_k}</b></span>
${element("input", { type: "range", name: "d_k", ...size })}</label>
<label class="wide"><span>Sentence</span>
${element("input", { type: "text", name: "sentence", ...typed })}</label>
<label class="wide"><span>Divide scores by</span>
${select("divisor", DIVISORS, s.divisor)}</label>
<label class="wide"><span>Mask</span>
${select("mask", MASKS, s.mask)}</label>
<label><span>${windowed ? "Window width" : "Real tokens"}</span>
<span class="with-value">${element("input", {
      type: "range",
      name: "extent",
      ...extent,
      disabled: !covers,
    })}
<b class="number">${extent.value}</b></span></label>
<label><span>Query row</span>
${select(
  "row",
  tokens.map((token, i) => [i, `${i + 1}: ${token}`]),
  row,
)}</label>
</div>`,
    html`<div class="readout">
<p><span class="big weight" data-part="largest">${two(weights[top])}</span>
<span>largest weight of <b class="query" data-part="row_word">${tokens[row]}</b>,
on <b class="key" data-part="top_word">${tokens[top]}</b>
<button type="button" name="why">Why?</button></span></p>
<p><span class="big" data-part="entropy">${entropy(weights).toFixed(2)}</span>
<span>entropy in nats, of at most ln ${n_allowed} = ${Math.log(n_allowed).toFixed(2)}</span></p>
${buttons()}</div>`,
    html`<div class="picture">${drawing(now, row)}</div>`,
    html`<p class="cell" data-part="cell">${describeCell(s.pointed, now)}</p>`,
    weightPanel(s.lens && weightOf(s, now)),
    () => html`<div class="visually-hidden" data-part="table">${weightTable(now)}</div>`,
  ];
}

/** The text under the drawing: the score and the weight of the cell under the pointer. */
function describeCell(pointed, { tokens, scores, weights, allowed: may }) {
  if (!pointed || pointed.i >= tokens.length || pointed.j >= tokens.length) {
    return "Tap a weight to see why it is what it is. Hatched cells are forbidden by the mask.";
  }
  const { i, j } = pointed;
  const pair = `${tokens[i]} → ${tokens[j]}`;
  if (!may[i][j]) return `${pair}: forbidden by the mask`;
  return `${pair}: score ${scores[i][j].toFixed(2)}, weight ${weights[i][j].toFixed(4)}`;
}

export function live(view) {
  view.on("d_k", "input", (event) => view.set({ d_k: STOPS[event.target.value] }));
  view.on("divisor", "change", (event) => view.set({ divisor: event.target.value }));
  view.on("mask", "change", (event) => view.set({ mask: event.target.value }));
  view.on("row", "change", (event) => view.set({ row: Number(event.target.value) }));
  view.on("extent", "input", (event) =>
    view.set({ [view.state().mask === "window" ? "width" : "length"]: Number(event.target.value) }),
  );
  view.on("sentence", "input", (event) => {
    const n = words(event.target.value).length;
    if (n < 1)
      return view.say(
        "The sentence needs at least one word. The picture still shows the last one.",
      );
    if (n > MAX_TOKENS) {
      return view.say(
        `That is ${n} words; ${MAX_TOKENS} is the most. The picture still shows the last sentence.`,
      );
    }
    view.say("");
    // Another cell is under the pointer now.
    view.set({ sentence: event.target.value, pointed: null });
  });
  view.on("sentence", "focusout", (event) => {
    event.target.value = view.state().sentence;
    view.say("");
  });
  const at = (event, svg) =>
    cellAt(event, svg, SHEET.width, words(view.state().sentence).length, SHEET);
  view.on("sheet", "click", (event, svg) => {
    const cell = at(event, svg);
    if (cell) view.set({ row: cell.i });
    if (cell?.inside) openMicroscope(view, [cell.i, cell.j]);
  });
  view.on("why", "click", () => {
    const state = view.state();
    const { tokens, weights } = compute(state);
    const row = Math.min(state.row, tokens.length - 1);
    openMicroscope(view, [row, weights[row].indexOf(Math.max(...weights[row]))]);
  });
  liveMicroscope(view);
  view.on("sheet", "pointermove", (event, svg) => {
    const cell = at(event, svg);
    view.set({ pointed: cell?.inside ? cell : null });
  });
  view.on("sheet", "pointerout", (event, svg) => {
    // Not from a cell to its number.
    if (!svg.contains(event.relatedTarget)) view.set({ pointed: null });
  });
}
