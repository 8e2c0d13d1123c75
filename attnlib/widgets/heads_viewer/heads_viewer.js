/**
 * HeadsViewer: all heads small, the picked one large, and its weights as lines between tokens.
 */
import { grid, pooled, small } from "../drawing/heads_grid.js";
import { cellAt, cut, heatmap, weightTable } from "../drawing/heatmap.js";
import { buttons, element, html, select, sheet, text } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, sharePanel } from "../drawing/microscope.js";
import { called, entropy, numpyArray, two } from "../kit/numbers.js";

export const pageState = { pointed: null, lens: null };
const below = (count) => (i, s) => Number.isInteger(i) && i >= 0 && i < count(s);
export const shared = {
  text: below((s) => s.texts.length),
  layer: below((s) => Math.max(...s.texts.map(({ weights }) => weights.length))),
  head: below((s) => Math.max(...s.texts.map(({ weights }) => weights[0].length))),
  row: below((s) => Math.max(...s.texts.map(({ tokens }) => tokens.length))),
};
export const label = ({ title }) => (title ? `Heads viewer: ${title}` : "Heads viewer");

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SHORT = 40; // a step of a weight is a single digit if it is below this, else two
const SHADES = 20; // steps of opacity of a line
const LINE = 10; // the height that a name needs, in units of a drawing
const MOST_NAMED = 8; // keys where not all have room for a name
const LINES = { row: "of this token", all: "of all tokens" };
const MEANS = {
  previous: "weight on the token before",
  itself: "weight on itself",
  next: "weight on the token after",
  first: "weight on the first token",
  entropy: "entropy (0: all on one token)",
};

/** Two sheets of one height, their rows on one line. */
const HEAT = { width: 360, height: 334, left: 74, top: 64, size: 262 };
const LINKS = { ...HEAT, width: 330, queries: 84, from: 92, to: 212, keys: 220, numbers: 328 };

const VALUES = new Map(Array.from(DIGITS, (digit, value) => [digit.charCodeAt(0), value]));
const CROWDED = 64; // tokens: with more, only the row that is looked at is read out

/** The weights of a head, [query][key]: half hundredths from 0.1 on, and finer steps below. */
function unpack(packed, n_queries, n_keys) {
  let at = 0;
  const digit = () => VALUES.get(packed.charCodeAt(at++));
  const next = () => {
    const first = digit();
    if (first < SHORT) return 0.1 * (first / SHORT) ** 2;
    return (20 + (first - SHORT) * DIGITS.length + digit()) / 200;
  };
  return Array.from({ length: n_queries }, () => Array.from({ length: n_keys }, next));
}

const known = new WeakMap();

/**
 * What a text holds, each head drawn small once: it does not depend on what is picked. A head is
 * unpacked again when it is picked, because all of them at once would fill the memory.
 */
function arraysOf(text) {
  if (!known.has(text)) {
    const { tokens, keys, mask, weights } = text;
    const n_keys = (keys ?? tokens).length;
    const allowed = tokens.map((_, i) =>
      Array.from({ length: n_keys }, (_, j) => mask[i * n_keys + j] !== "0"),
    );
    const read = (layer, head) => unpack(weights[layer][head], tokens.length, n_keys);
    const free = pooled(allowed, (cells) => cells.some(Boolean));
    const draw = (_, layer) =>
      weights[layer].map((_, head) =>
        small(
          pooled(read(layer, head), (cells) => Math.max(...cells)),
          free,
        ),
      );
    known.set(text, { allowed, read, heads: weights.map(draw), last: {} });
  }
  return known.get(text);
}

/** The weights of one head; those of the last one are kept. */
function weightsOf(text, layer, head) {
  const { read, last } = arraysOf(text);
  if (last.layer !== layer || last.head !== head) {
    Object.assign(last, { layer, head, weights: read(layer, head) });
  }
  return last.weights;
}

/**
 * Everything that follows from the traits; `top` is the key with the row's largest weight, -1 if
 * there is none.
 */
export function compute({ texts, text, ...picked }) {
  const { tokens, keys, weights: all } = texts[text];
  const layer = Math.min(picked.layer, all.length - 1);
  const head = Math.min(picked.head, all[0].length - 1);
  const row = Math.min(picked.row, tokens.length - 1);
  const weights = weightsOf(texts[text], layer, head);
  const largest = Math.max(...weights[row]);
  const top = largest > 0 ? weights[row].indexOf(largest) : -1;
  const { allowed } = arraysOf(texts[text]);
  const crossed = keys !== null;
  const found = means(weights, crossed);
  return {
    tokens,
    keys: keys ?? tokens,
    crossed,
    allowed,
    weights,
    layer,
    head,
    row,
    top,
    means: found,
  };
}

/**
 * Four mean weights and the mean entropy, over the rows that attend to anything; null for none. A
 * token has no neighbors in another text, where rows are `crossed` with other tokens.
 */
function means(weights, crossed) {
  const rows = weights.map((_, i) => i).filter((i) => weights[i].some((weight) => weight > 0));
  const mean = (numbers) =>
    numbers.length ? numbers.reduce((sum, x) => sum + x, 0) / numbers.length : null;
  const beside = (step) =>
    mean(rows.filter((i) => weights[i + step]).map((i) => weights[i][i + step]));
  return {
    previous: crossed ? null : beside(-1),
    itself: crossed ? null : beside(0),
    next: crossed ? null : beside(1),
    first: mean(rows.map((i) => weights[i][0])),
    entropy: mean(rows.map((i) => entropy(weights[i]))),
  };
}

/** What the microscope needs of a weight: the page has no queries and keys. */
function weightOf([i, j], { tokens, keys, weights, allowed }) {
  if (i >= tokens.length || j >= keys.length) return null;
  return {
    queryName: called(tokens)[i],
    names: called(keys),
    j,
    free: allowed[i],
    weights: weights[i],
    unit: 0.1 / SHORT ** 2,
  };
}

/** Runnable NumPy for what is on the screen. */
export function code(state) {
  const { tokens, keys, crossed, weights, allowed, layer, head, row } = compute(state);
  const masked = !allowed.flat().every(Boolean);
  const line = (may) => `    [${may.map((x) => (x ? "True" : "False")).join(", ")}],`;
  const beside = [
    "previous = np.diagonal(weights, -1)[attends[1:]]",
    "itself = np.diagonal(weights)[attends]",
    "following = np.diagonal(weights, 1)[attends[:-1]]",
  ];
  return [
    "import numpy as np",
    "",
    `tokens = ${JSON.stringify(tokens)}`,
    crossed ? `key_tokens = ${JSON.stringify(keys)}` : "key_tokens = tokens",
    `layer, head, row = ${layer}, ${head}, ${row}  # counted from 0`,
    "# queries in rows, keys in columns; the first two decimals are right",
    ...numpyArray("weights", weights),
    ...(masked ? ["mask = np.array([  # True = may attend", ...allowed.map(line), "])"] : []),
    "",
    "attends = weights.any(axis=1)  # rows of zeros have nothing to attend to",
    ...(crossed ? [] : beside),
    "first = weights[attends, 0]",
    "logarithms = np.log(np.where(weights > 0, weights, 1))",
    "entropy = -(weights * logarithms).sum(axis=1)[attends]",
    `for mean in (${crossed ? "" : "previous, itself, following, "}first, entropy):`,
    '    print(round(float(mean.mean()), 2) if mean.size else "none")',
    'print(tokens[row], "attends most to", key_tokens[weights[row].argmax()])',
  ];
}

/** The keys that have room for a name: all of them, or those of the largest weights. */
function named(weights, places) {
  const order = Array.from(weights.keys());
  if (places.length < 2 || places[1] - places[0] >= LINE) return order;
  const found = [];
  for (const j of order.filter((j) => weights[j] > 0).sort((a, b) => weights[b] - weights[a])) {
    const free = (k) => Math.abs(places[j] - places[k]) >= LINE;
    if (found.length < MOST_NAMED && found.every(free)) found.push(j);
  }
  return found;
}

/** Queries on the left, keys on the right, a line as strong as the weight between them. */
function links({ tokens, keys, weights, allowed, row, top }, lines) {
  const { width, height, size, queries, from, to, keys: right, numbers } = LINKS;
  const places = (all) => all.map((_, i) => LINKS.top + ((i + 0.5) * size) / all.length);
  const [starts, ends] = [places(tokens), places(keys)];
  const end = { "text-anchor": "end" };
  const bold = (yes) => ({ "font-weight": yes ? "bold" : "normal" });
  const others = lines === "all" ? tokens.map((_, i) => i).filter((i) => i !== row) : [];
  return sheet(
    "links",
    width,
    height,
    "The same weights as lines between the tokens; the table below holds the numbers",
    text("queries", queries, LINKS.top - 12, "muted", end),
    text("keys", right, LINKS.top - 12),
    element("g", { class: "others" }, strokes(others)),
    element("g", { class: "picked" }, strokes([row])),
    tokens.map(
      (token, i) =>
        (size / tokens.length >= LINE || i === row) &&
        text(cut(token), queries, starts[i] + 4, "query", { ...end, ...bold(i === row) }),
    ),
    named(weights[row], ends).map((j) => {
      const token = keys[j];
      const [role, number] = allowed[row][j]
        ? ["weight", two(weights[row][j])]
        : ["muted", "masked"];
      return [
        text(cut(token), right, ends[j] + 4, "key", bold(j === top)),
        text(number, numbers, ends[j] + 4, role, { ...end, ...bold(j === top) }),
      ];
    }),
  );

  /** The lines that leave these rows, those of one strength as one path. */
  function strokes(rows) {
    const paths = new Map();
    for (const i of rows) {
      weights[i].forEach((weight, j) => {
        const step = Math.floor(weight * SHADES + 0.5);
        const line = `M${from} ${starts[i].toFixed(2)}L${to} ${ends[j].toFixed(2)}`;
        if (step) paths.set(step, (paths.get(step) ?? "") + line);
      });
    }
    const strength = (weight) => ({ opacity: weight, "stroke-width": 0.5 + 4.5 * weight });
    const drawn = Array.from(paths).sort(([a], [b]) => a - b);
    return drawn.map(([step, d]) => element("path", { d, ...strength(step / SHADES) }));
  }
}

export function picture(s) {
  const now = compute(s);
  const { tokens, keys, weights, layer, head, row, top } = now;
  const all = s.texts[s.text].weights;
  const [n_layers, n_heads] = [all.length, all[0].length];
  const several = n_layers > 1;
  const choice = (name, title, choices, chosen = s[name]) =>
    element(
      "label",
      { class: name === "text" && "wide" },
      html`<span>${title}</span>`,
      select(name, choices, chosen),
    );
  const counted = (n) => Array.from({ length: n }, (_, i) => [i, i + 1]);
  const deed = top < 0 ? "to nothing" : `most to '${called(keys)[top]}'`;
  const largest = top >= 0 && html` (<b class="number">${two(weights[row][top])}</b>)`;
  const mean = ([name, number]) =>
    html`<li><b class="number"
data-part="${name}">${two(number)}</b><span>${MEANS[name]}</span></li>`;
  return [
    ...(s.title ? [html`<p class="title">${s.title}</p>`] : []),
    html`<div class="all" style="--heads: ${n_heads}">
<p class="note">All heads${several && ": layers in rows, heads in columns"}</p>
<div class="scroll">${grid(arraysOf(s.texts[s.text]).heads, layer, head)}</div></div>`,
    html`<div class="controls">
${
  s.texts.length > 1 &&
  choice(
    "text",
    "Text",
    s.texts.map(({ name }, i) => [i, name]),
  )
}
${several && choice("layer", "Layer", counted(n_layers), layer)}
${choice("head", "Head", counted(n_heads), head)}
${choice(
  "row",
  "Token",
  tokens.map((token, i) => [i, `${i + 1}: ${token}`]),
  row,
)}
${choice("lines", "Lines", LINES)}</div>`,
    html`<div class="telling"><p class="said" role="status" data-part="said">${element(
      "span",
      { "data-key": [layer, head, row, s.text].join() }, // another sentence, not one that moved
      html`Head ${head + 1}${several && ` of layer ${layer + 1}`}: '${called(tokens)[row]}' attends
${deed}${largest}`,
    )}</p><button type="button" name="why">Why?</button></div>`,
    html`<div><p class="note">The means of this head over all tokens</p>
<ul class="summary">${Object.entries(now.means).map(mean)}</ul></div>`,
    html`<div class="sheets">${sheet(
      "heat",
      HEAT.width,
      HEAT.height,
      "Heatmap of the picked head's weights; the table below holds the numbers",
      heatmap(now, HEAT),
    )}${links(now, s.lines)}</div>`,
    html`<p class="cell" data-part="cell">${cellText(s.pointed, now)}</p>`,
    buttons(),
    sharePanel(s.lens && weightOf(s.lens, now)),
    () =>
      html`<div class="visually-hidden" data-part="table">${weightTable(
        Math.max(tokens.length, keys.length) > CROWDED ? rowOf(now) : now,
      )}</div>`,
  ];
}

/** The row that is looked at by itself: a table of thousands of cells would be slow. */
const rowOf = ({ tokens, keys, weights, allowed, row }) => ({
  tokens: [tokens[row]],
  keys,
  weights: [weights[row]],
  allowed: [allowed[row]],
});

/** What stands under the drawings: the cell that is pointed at. */
function cellText(pointed, { tokens, keys, weights, allowed }) {
  if (!pointed || pointed.i >= tokens.length || pointed.j >= keys.length)
    return "Tap a weight to see what it says.";
  const { i, j } = pointed;
  const weight = allowed[i][j] ? `weight ${two(weights[i][j])}` : "forbidden by the mask";
  return `${tokens[i]} → ${keys[j]}: ${weight}`;
}

export function live(view) {
  for (const trait of ["text", "layer", "head", "row"]) {
    view.on(trait, "change", (event) => view.set({ [trait]: Number(event.target.value) }));
  }
  view.on("lines", "change", (event) => view.set({ lines: event.target.value }));
  view.on("grid", "click", (event) => {
    // The first of a row and of a column is a name.
    const cell = event.target.closest("button")?.parentElement;
    if (cell) view.set({ layer: cell.parentElement.rowIndex - 1, head: cell.cellIndex - 1 });
  });
  // Arrows pick each head on their way, so that the large one changes as one goes.
  view.grid("grid", (layer, head) => view.set({ layer, head }));
  const at = (event, svg, sizes) => {
    const { tokens, keys } = compute(view.state());
    return cellAt(event, svg, sizes.width, [tokens.length, keys.length], sizes);
  };
  for (const [part, sizes] of [
    ["heat", HEAT],
    ["links", LINKS],
  ]) {
    view.on(part, "click", (event, svg) => {
      const cell = at(event, svg, sizes);
      if (cell) view.set({ row: cell.i });
      if (part === "heat" && cell?.inside) openMicroscope(view, [cell.i, cell.j]);
    });
  }
  view.on("why", "click", () => {
    const { row, top } = compute(view.state());
    openMicroscope(view, [row, Math.max(top, 0)]);
  });
  liveMicroscope(view);
  view.on("heat", "pointermove", (event, svg) => {
    const cell = at(event, svg, HEAT);
    view.set({ pointed: cell?.inside ? cell : null });
  });
  view.on("heat", "pointerout", (event, svg) => {
    // Not from a cell to its number.
    if (!svg.contains(event.relatedTarget)) view.set({ pointed: null });
  });
}
