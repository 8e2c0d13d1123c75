/**
 * AttentionExplorer: the weights of a sentence, drawn as one canvas: a heatmap, and under it,
 * column below column, the bars of the row that is looked at.
 */
import {
  allowed, colour, copy, dotProducts, entropy, fillTable, fitted, mount, numpyArray, softmax, wordVector, words,
} from "./core.js";

const MAX_TOKENS = 64;
const MAX_D_K = 512;
const TRAITS = ["sentence", "d_k", "mask", "length", "width", "divisor", "row"];

/** The drawing, in units of a 360 x 470 sheet. The still picture in Python uses the same ones. */
const SHEET = { width: 360, height: 470, left: 74, top: 64, size: 280, bars: 442, tallest: 70 };

const vectors = new Map();

/** The query and the key of a word, made once, at full length. */
function vectorsOf(word) {
  if (!vectors.has(word)) {
    vectors.set(word, { query: wordVector(word, "query", MAX_D_K), key: wordVector(word, "key", MAX_D_K) });
  }
  return vectors.get(word);
}

/** Everything that follows from the traits; the numbers that attnlib gives in Python. */
export function compute(state) {
  const tokens = words(state.sentence);
  const pairs = tokens.map(vectorsOf);
  const scores = dotProducts(pairs.map((pair) => pair.query), pairs.map((pair) => pair.key), state.d_k);
  const divisor = { sqrt: Math.sqrt(state.d_k), none: 1, d_k: state.d_k }[state.divisor];
  const may = allowed(state.mask, tokens.length, state);
  const weights = scores.map((row, i) => softmax(row.map((s, j) => (may[i][j] ? s / divisor : -Infinity))));
  return { tokens, scores, allowed: may, weights };
}

/** Runnable NumPy for what is on the screen. */
export function numpyCode(state) {
  const { tokens, scores } = compute(state);
  const position = "i, j = np.indices(scores.shape)";
  const mask = {
    none: [],
    causal: [position, "may = j <= i"],
    padding: [position, `may = j < ${state.length}`],
    both: [position, `may = (j <= i) & (j < ${state.length})`],
    window: [position, `may = abs(i - j) <= ${state.width}`],
  }[state.mask];
  const divided = { sqrt: "scores / np.sqrt(d_k)", none: "scores", d_k: "scores / d_k" }[state.divisor];
  return [
    "import numpy as np",
    "",
    `tokens = ${JSON.stringify(tokens)}`,
    `d_k = ${state.d_k}`,
    ...numpyArray("scores", scores, 9),
    `scaled = ${divided}`,
    ...mask,
    ...(mask.length ? ["scaled = np.where(may, scaled, -np.inf)"] : []),
    "powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))",
    "weights = powers / powers.sum(axis=1, keepdims=True)",
    "print(weights.round(2))",
  ];
}

/** A "#rrggbb" as three numbers. */
const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** Which ink can be read on a cell of this weight; the thresholds are those of attnlib.palette. */
const ink = (weight) => (weight < 0.635 ? "cell-low" : weight < 0.845 ? "cell-mid" : "cell-high");

/** A canvas of this size, ready to draw on; a new size costs a new surface, so only when it differs. */
function sized(canvas, width, height) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  return canvas.getContext("2d");
}

const small = document.createElement("canvas"); // a heatmap with one pixel a cell

function paint(canvas, { tokens, weights, allowed: may }, row) {
  const n = tokens.length;
  const shown = canvas.clientWidth || SHEET.width;
  const ratio = (shown / SHEET.width) * (devicePixelRatio || 1);
  const context = sized(canvas, Math.round(SHEET.width * ratio), Math.round(SHEET.height * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, SHEET.width, SHEET.height);
  const roles = ["page", "weight", "query", "key", "line", "cell-low", "cell-mid", "cell-high"];
  const inks = Object.fromEntries(roles.map((role) => [role, colour(canvas, role)]));
  const font = getComputedStyle(canvas).fontFamily;
  const side = SHEET.size / n;
  const [page, full] = [rgb(inks.page), rgb(inks.weight)];

  // One pixel a cell, enlarged in one go: 64 x 64 rectangles would cost a frame.
  const cells = new ImageData(n, n);
  for (let i = 0, at = 0; i < n; i++) {
    for (let j = 0; j < n; j++, at += 4) {
      for (let c = 0; c < 3; c++) cells.data[at + c] = page[c] + (full[c] - page[c]) * weights[i][j];
      cells.data[at + 3] = may[i][j] ? 255 : 0;
    }
  }
  sized(small, n, n).putImageData(cells, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, SHEET.left, SHEET.top, SHEET.size, SHEET.size);

  const numbers = side >= 27;
  const hatch = new Path2D();
  context.font = `12px ${font}`;
  context.textAlign = "center";
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const x = SHEET.left + j * side;
      const y = SHEET.top + i * side;
      if (!may[i][j]) {
        for (const part of [1 / 3, 2 / 3, 1]) {
          hatch.moveTo(x, y + part * side);
          hatch.lineTo(x + part * side, y);
          hatch.moveTo(x + part * side, y + side);
          hatch.lineTo(x + side, y + part * side);
        }
      } else if (numbers) {
        context.fillStyle = inks[ink(weights[i][j])];
        context.fillText(weights[i][j].toFixed(2), x + side / 2, y + side / 2 + 4);
      }
    }
  }
  context.strokeStyle = inks.line;
  context.lineWidth = 0.7;
  context.stroke(hatch);

  context.fillStyle = inks.weight;
  for (let j = 0; j < n; j++) {
    const height = SHEET.tallest * weights[row][j];
    context.fillRect(SHEET.left + (j + 0.15) * side, SHEET.bars - height, 0.7 * side, height);
    if (numbers && may[row][j]) {
      const middle = SHEET.left + (j + 0.5) * side;
      context.fillText(weights[row][j].toFixed(2), middle, SHEET.bars - height - 5);
    }
  }
  context.lineWidth = 1;
  context.strokeRect(SHEET.left, SHEET.bars, SHEET.size, 0);
  context.font = `bold 12px ${font}`;
  context.textAlign = "right";
  context.fillStyle = inks.query;
  context.fillText(fitted(context, tokens[row], 66), SHEET.left - 8, SHEET.bars);

  // Labels while they fit; in a crowd only the row that is looked at keeps its name.
  tokens.forEach((word, i) => {
    if (side < 10 && i !== row) return;
    const middle = (i + 0.5) * side;
    context.font = `${i === row ? "bold " : ""}12px ${font}`;
    context.textAlign = "right";
    context.fillStyle = inks.query;
    context.fillText(fitted(context, word, 66), SHEET.left - 8, SHEET.top + middle + 4);
    if (side < 10) return;
    context.save();
    context.translate(SHEET.left + middle + 3, SHEET.top - 7);
    context.rotate((-50 * Math.PI) / 180);
    context.font = `12px ${font}`;
    context.textAlign = "left";
    context.fillStyle = inks.key;
    context.fillText(fitted(context, word, 66), 0, 0);
    context.restore();
  });

  context.strokeStyle = inks.query;
  context.lineWidth = 2;
  context.strokeRect(SHEET.left, SHEET.top + row * side, SHEET.size, side);
}

function render({ model, el }) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Heatmap of the attention weights");
  let stops;
  let now; // what is on the screen, as compute() gave it
  const start = Object.fromEntries(TRAITS.map((trait) => [trait, model.get(trait)]));
  const state = () => Object.fromEntries(TRAITS.map((trait) => [trait, model.get(trait)]));

  function draw(view) {
    const s = state();
    now = compute(s);
    const n = now.tokens.length;
    const row = Math.min(s.row, n - 1);
    stops ??= view.part("d_k").dataset.stops.split(" ").map(Number);
    if (!canvas.isConnected) view.part("picture").replaceChildren(canvas);
    paint(canvas, now, row); // first: it reads sizes and colours, which is dear after a change

    const away = stops.map((stop) => Math.abs(stop - s.d_k));
    const range =
      s.mask === "window"
        ? { min: 0, max: n - 1, value: s.width }
        : { min: 1, max: n, value: Math.min(s.length, n) };
    view.put("d_k", { value: away.indexOf(Math.min(...away)), ariaValueText: `d_k = ${s.d_k}` });
    view.put("d_k_value", { textContent: s.d_k });
    view.put("divisor", { value: s.divisor });
    view.put("mask", { value: s.mask });
    view.put("extent", { ...range, disabled: !["window", "padding", "both"].includes(s.mask) });
    view.put("extent_value", { textContent: range.value });
    view.put("extent_label", { textContent: s.mask === "window" ? "Window width" : "Real tokens" });
    if (document.activeElement !== view.part("sentence")) view.put("sentence", { value: s.sentence });

    const names = now.tokens.map((word, i) => `${i + 1}: ${word}`);
    const select = view.part("row");
    if (names.join("\n") !== Array.from(select.options, (option) => option.text).join("\n")) {
      select.replaceChildren(...names.map((name, i) => new Option(name, i)));
    }
    view.put("row", { value: row });

    const weights = now.weights[row];
    const n_allowed = now.allowed[row].filter(Boolean).length;
    const top = weights.indexOf(Math.max(...weights));
    view.put("largest", { textContent: weights[top].toFixed(2) });
    view.put("row_word", { textContent: now.tokens[row] });
    view.put("top_word", { textContent: now.tokens[top] });
    view.put("entropy", { textContent: entropy(weights).toFixed(2) });
    view.put("n", { textContent: n_allowed });
    view.put("most", { textContent: Math.log(n_allowed).toFixed(2) });

    // Slow to build and only for the ear: wait until the slider rests.
    view.later(() => {
      fillTable(view.part("table"), now);
      canvas.setAttribute(
        "aria-label",
        `Heatmap of the attention weights, ${n} by ${n}. Row ${now.tokens[row]}: largest weight ` +
          `${weights[top].toFixed(2)} on ${now.tokens[top]}. The table below holds the numbers.`,
      );
    });
  }

  const view = mount(model, el, draw);
  const on = (name, event, handle) => view.part(name).addEventListener(event, handle);

  on("d_k", "input", (event) => view.set({ d_k: stops[event.target.value] }));
  on("divisor", "change", (event) => view.set({ divisor: event.target.value }));
  on("mask", "change", (event) => view.set({ mask: event.target.value }));
  on("row", "change", (event) => view.set({ row: Number(event.target.value) }));
  on("extent", "input", (event) =>
    view.set({ [model.get("mask") === "window" ? "width" : "length"]: Number(event.target.value) }),
  );
  on("sentence", "input", (event) => {
    const n = words(event.target.value).length;
    if (n < 1) return view.say("The sentence needs at least one word. The picture still shows the last one.");
    if (n > MAX_TOKENS) {
      return view.say(`That is ${n} words; ${MAX_TOKENS} is the most. The picture still shows the last sentence.`);
    }
    view.say("");
    view.set({ sentence: event.target.value });
  });
  on("sentence", "blur", (event) => {
    event.target.value = model.get("sentence");
    view.say("");
  });
  on("copy", "click", () => copy(view, numpyCode(state())));
  on("reset", "click", () => {
    view.set(start);
    view.part("sentence").value = start.sentence;
    view.say("");
  });

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const unit = SHEET.width / box.width;
    const side = SHEET.size / now.tokens.length;
    const i = Math.floor(((event.clientY - box.top) * unit - SHEET.top) / side);
    const j = Math.floor(((event.clientX - box.left) * unit - SHEET.left) / side);
    return { i, j, row: i >= 0 && i < now.tokens.length, cell: j >= 0 && j < now.tokens.length };
  };
  canvas.addEventListener("click", (event) => {
    const { i, row } = at(event);
    if (row) view.set({ row: i });
  });
  canvas.addEventListener("pointermove", (event) => {
    const { i, j, row, cell } = at(event);
    if (!row || !cell) return;
    const pair = `${now.tokens[i]} → ${now.tokens[j]}`;
    view.part("cell").textContent = now.allowed[i][j]
      ? `${pair}: score ${now.scores[i][j].toFixed(2)}, weight ${now.weights[i][j].toFixed(4)}`
      : `${pair}: forbidden by the mask`;
  });
  return view.end;
}

export default { render };
