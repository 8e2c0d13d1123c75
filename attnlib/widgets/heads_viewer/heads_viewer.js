/**
 * HeadsViewer: all heads small, the picked one large, and its weights as lines between tokens.
 */
import { grid, small } from "../kit/heads_grid.js";
import { cellAt, cut, heatmap, weightTable } from "../kit/heatmap.js";
import { buttons, element, html, select, sheet, text } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, sharePanel } from "../kit/microscope.js";
import { called, entropy, numpyArray, two } from "../kit/numbers.js";

export const pageState = { pointed: null, lens: null };
const below = (count) => (i, s) => Number.isInteger(i) && i >= 0 && i < count(s);
export const shared = {
  text: below((s) => s.texts.length),
  layer: below((s) => s.texts[0].n_layers),
  head: below((s) => s.texts[0].n_heads),
  row: below((s) => Math.max(...s.texts.map(({ tokens }) => tokens.length))),
};
export const label = ({ title }) => (title ? `Heads viewer: ${title}` : "Heads viewer");

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SHORT = 40; // a step of a weight is a single digit if it is below this, else two
const SHADES = 20; // steps of opacity of a line
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

/**
 * The weights of a text, [layer][head][query][key]: half hundredths from 0.1 on, and finer steps
 * below.
 */
function unpack({ tokens, n_layers, n_heads, weights }) {
  let at = 0;
  const digit = () => DIGITS.indexOf(weights[at++]);
  const next = () => {
    const first = digit();
    if (first < SHORT) return 0.1 * (first / SHORT) ** 2;
    return (20 + (first - SHORT) * DIGITS.length + digit()) / 200;
  };
  const { length: n } = tokens;
  return [n_layers, n_heads, n, n].reduceRight(
    (make, many) => () => Array.from({ length: many }, make),
    next,
  )();
}

const known = new WeakMap();

/** What a text holds, unpacked and drawn small once: it does not depend on what is picked. */
function arraysOf(text) {
  if (!known.has(text)) {
    const { tokens, mask } = text;
    const all = unpack(text);
    const allowed = tokens.map((_, i) => tokens.map((_, j) => mask[i * tokens.length + j] !== "0"));
    known.set(text, {
      all,
      allowed,
      heads: all.map((layer) => layer.map((weights) => small(weights, allowed))),
    });
  }
  return known.get(text);
}

/**
 * Everything that follows from the traits; `top` is the key with the row's largest weight, -1 if
 * there is none.
 */
export function compute({ texts, text, layer, head, row }) {
  const { tokens } = texts[text];
  const { all, allowed } = arraysOf(texts[text]);
  const weights = all[layer][head];
  const picked = Math.min(row, tokens.length - 1);
  const largest = Math.max(...weights[picked]);
  const top = largest > 0 ? weights[picked].indexOf(largest) : -1;
  return { tokens, allowed, weights, row: picked, top, means: means(weights) };
}

/** Four mean weights and the mean entropy, over the rows that attend to anything; null for none. */
function means(weights) {
  const rows = weights.map((_, i) => i).filter((i) => weights[i].some((weight) => weight > 0));
  const mean = (numbers) =>
    numbers.length ? numbers.reduce((sum, x) => sum + x, 0) / numbers.length : null;
  const beside = (step) =>
    mean(rows.filter((i) => weights[i + step]).map((i) => weights[i][i + step]));
  return {
    previous: beside(-1),
    itself: beside(0),
    next: beside(1),
    first: mean(rows.map((i) => weights[i][0])),
    entropy: mean(rows.map((i) => entropy(weights[i]))),
  };
}

/** What the microscope needs of a weight: the page has no queries and keys. */
function weightOf([i, j], { tokens, weights, allowed }) {
  if (Math.max(i, j) >= tokens.length) return null;
  const names = called(tokens);
  return {
    queryName: names[i],
    names,
    j,
    free: allowed[i],
    weights: weights[i],
    unit: 0.1 / SHORT ** 2,
  };
}

/** Runnable NumPy for what is on the screen. */
export function code(state) {
  const { tokens, weights, allowed, row } = compute(state);
  const masked = !allowed.flat().every(Boolean);
  const line = (may) => `    [${may.map((x) => (x ? "True" : "False")).join(", ")}],`;
  return [
    "import numpy as np",
    "",
    `tokens = ${JSON.stringify(tokens)}`,
    `layer, head, row = ${state.layer}, ${state.head}, ${row}  # counted from 0`,
    "# queries in rows, keys in columns; the first two decimals are right",
    ...numpyArray("weights", weights),
    ...(masked ? ["mask = np.array([  # True = may attend", ...allowed.map(line), "])"] : []),
    "",
    "attends = weights.any(axis=1)  # rows of zeros have nothing to attend to",
    "previous = np.diagonal(weights, -1)[attends[1:]]",
    "itself = np.diagonal(weights)[attends]",
    "following = np.diagonal(weights, 1)[attends[:-1]]",
    "first = weights[attends, 0]",
    "logarithms = np.log(np.where(weights > 0, weights, 1))",
    "entropy = -(weights * logarithms).sum(axis=1)[attends]",
    "for mean in (previous, itself, following, first, entropy):",
    '    print(round(float(mean.mean()), 2) if mean.size else "none")',
    'print(tokens[row], "attends most to", tokens[weights[row].argmax()])',
  ];
}

/** Queries on the left, keys on the right, a line as strong as the weight between them. */
function links({ tokens, weights, allowed, row, top }, lines) {
  const { width, height, size, queries, from, to, keys, numbers } = LINKS;
  const side = size / tokens.length;
  const middles = tokens.map((_, i) => LINKS.top + (i + 0.5) * side);
  const end = { "text-anchor": "end" };
  const bold = (yes) => ({ "font-weight": yes ? "bold" : "normal" });
  const others = lines === "all" ? tokens.map((_, i) => i).filter((i) => i !== row) : [];
  return sheet(
    "links",
    width,
    height,
    "The same weights as lines between the tokens; the table below holds the numbers",
    text("queries", queries, LINKS.top - 12, "muted", end),
    text("keys", keys, LINKS.top - 12),
    element("g", { class: "others" }, strokes(others)),
    element("g", { class: "picked" }, strokes([row])),
    tokens.map((token, i) => {
      const y = middles[i] + 4;
      const [role, number] = allowed[row][i]
        ? ["weight", two(weights[row][i])]
        : ["muted", "masked"];
      return [
        (side >= 10 || i === row) &&
          text(cut(token), queries, y, "query", { ...end, ...bold(i === row) }),
        (side >= 10 || i === top) && text(cut(token), keys, y, "key", bold(i === top)),
        (side >= 10 || i === top) && text(number, numbers, y, role, { ...end, ...bold(i === top) }),
      ];
    }),
  );

  /** The lines that leave these rows, those of one strength as one path. */
  function strokes(rows) {
    const paths = new Map();
    for (const i of rows) {
      weights[i].forEach((weight, j) => {
        const step = Math.floor(weight * SHADES + 0.5);
        const line = `M${from} ${middles[i].toFixed(2)}L${to} ${middles[j].toFixed(2)}`;
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
  const { tokens, weights, row, top } = now;
  const { n_layers, n_heads } = s.texts[0];
  const several = n_layers > 1;
  const choice = (name, title, choices, chosen = s[name]) =>
    element(
      "label",
      { class: name === "text" && "wide" },
      html`<span>${title}</span>`,
      select(name, choices, chosen),
    );
  const counted = (n) => Array.from({ length: n }, (_, i) => [i, i + 1]);
  const names = called(tokens);
  const deed = top < 0 ? "to nothing" : `most to '${names[top]}'`;
  const largest = top >= 0 && html` (<b class="number">${two(weights[row][top])}</b>)`;
  const mean = ([name, number]) =>
    html`<li><b class="number"
data-part="${name}">${two(number)}</b><span>${MEANS[name]}</span></li>`;
  return [
    ...(s.title ? [html`<p class="title">${s.title}</p>`] : []),
    html`<div class="all" style="--heads: ${n_heads}">
<p class="note">All heads${several && ": layers in rows, heads in columns"}</p>
<div class="scroll">${grid(arraysOf(s.texts[s.text]).heads, s.layer, s.head)}</div></div>`,
    html`<div class="controls">
${
  s.texts.length > 1 &&
  choice(
    "text",
    "Text",
    s.texts.map(({ name }, i) => [i, name]),
  )
}
${several && choice("layer", "Layer", counted(n_layers))}
${choice("head", "Head", counted(n_heads))}
${choice(
  "row",
  "Token",
  tokens.map((token, i) => [i, `${i + 1}: ${token}`]),
  row,
)}
${choice("lines", "Lines", LINES)}</div>`,
    html`<div class="telling"><p class="said" role="status" data-part="said">${element(
      "span",
      { "data-key": [s.layer, s.head, row, s.text].join() }, // another sentence, not one that moved
      html`Head ${s.head + 1}${several && ` of layer ${s.layer + 1}`}: '${names[row]}' attends
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
    () => html`<div class="visually-hidden" data-part="table">${weightTable(now)}</div>`,
  ];
}

/** What stands under the drawings: the cell that is pointed at. */
function cellText(pointed, { tokens, weights, allowed }) {
  if (!pointed || pointed.i >= tokens.length || pointed.j >= tokens.length)
    return "Tap a weight to see what it says.";
  const { i, j } = pointed;
  const weight = allowed[i][j] ? `weight ${two(weights[i][j])}` : "forbidden by the mask";
  return `${tokens[i]} → ${tokens[j]}: ${weight}`;
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
    const { texts, text } = view.state();
    return cellAt(event, svg, sizes.width, texts[text].tokens.length, sizes);
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
