/**
 * HeadsViewer: all heads small, the picked one large, and its weights as lines between tokens.
 */
import { called, cellInk, copy, entropy, fillTable, mount, numpyArray } from "./core.js";

const STEPS = 65535; // a weight travels as a whole number of these
const STATE = ["text", "layer", "head", "row", "lines"];
const SHADES = { small: 8, large: 50, lines: 20 }; // how many steps of opacity each drawing has

/** Two sheets of one height, their rows on one line; the still picture uses the same ones. */
const HEAT = { top: 64, left: 74, size: 262, width: 360 };
const LINKS = { queries: 84, from: 92, to: 212, keys: 220, numbers: 328, width: 330 };

/** The weights of a text: [layer][head][query][key]. */
export function unpack({ tokens, n_layers, n_heads, weights }) {
  const bytes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
  let at = 0;
  const next = () => (bytes[at++] + 256 * bytes[at++]) / STEPS;
  const several = (n, make) => Array.from({ length: n }, make);
  return several(n_layers, () =>
    several(n_heads, () => several(tokens.length, () => several(tokens.length, next))),
  );
}

/** Which query of a text may attend to which key. */
export function mayAttend({ tokens, mask }) {
  return tokens.map((_, i) => tokens.map((_, j) => mask[i * tokens.length + j] !== "0"));
}

const unpacked = new WeakMap();

/** The texts' arrays, unpacked once. */
function arraysOf(text) {
  if (!unpacked.has(text)) unpacked.set(text, { all: unpack(text), allowed: mayAttend(text) });
  return unpacked.get(text);
}

/** Everything that follows from the traits; the numbers that the Python class gives. */
export function compute({ texts, text, layer, head, row, lines }) {
  const { tokens, n_layers } = texts[text];
  const { all, allowed } = arraysOf(texts[text]);
  const weights = all[layer][head];
  const picked = Math.min(row, tokens.length - 1);
  const now = { tokens, all, allowed, weights, row: picked, lines, summary: summary(weights) };
  return { ...now, ...said(called(tokens), weights[picked], { picked, layer, head, n_layers }) };
}

/** Four mean weights and the mean entropy, over the rows that attend to anything; null for none. */
function summary(weights) {
  const rows = weights.map((_, i) => i).filter((i) => weights[i].some((weight) => weight > 0));
  const mean = (numbers) => (numbers.length ? numbers.reduce((sum, x) => sum + x, 0) / numbers.length : null);
  const beside = (step) => mean(rows.filter((i) => weights[i + step]).map((i) => weights[i][i + step]));
  return {
    previous: beside(-1),
    itself: beside(0),
    next: beside(1),
    first: mean(rows.map((i) => weights[i][0])),
    entropy: mean(rows.map((i) => entropy(weights[i]))),
  };
}

/** What the picked token does: the sentence, its parts and the key with the largest weight, if any. */
function said(names, weights, { picked, layer, head, n_layers }) {
  const place = `Head ${head + 1}${n_layers > 1 ? ` of layer ${layer + 1}` : ""}`;
  const lead = `${place}: '${names[picked]}' attends `;
  const top = weights.indexOf(Math.max(...weights));
  if (weights[top] === 0) return { opening: `${lead}to nothing`, largest: "", sentence: `${lead}to nothing`, top: -1 };
  const opening = `${lead}most to '${names[top]}'`;
  return { opening, largest: two(weights[top]), sentence: `${opening} (${two(weights[top])})`, top };
}

/** A number with two decimals; ties, like 1/8, go up, as in Python. */
const two = (x) => (x === null ? "–" : (x + 1e-9).toFixed(2));

/** Runnable NumPy for what is on the screen. */
export function numpyCode(state) {
  const { tokens, weights, allowed, row } = compute(state);
  const masked = !allowed.flat().every(Boolean);
  const line = (may) => `    [${may.map((x) => (x ? "True" : "False")).join(", ")}],`;
  return [
    "import numpy as np",
    "",
    `tokens = ${JSON.stringify(tokens)}`,
    `layer, head, row = ${state.layer}, ${state.head}, ${row}  # counted from 0`,
    "# queries in rows, keys in columns; exact to 1/131070",
    ...numpyArray("weights", weights, 9),
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

// Drawings as nested marks [tag, attributes, text or marks]: the same ones in heads_viewer.py.

/** For each value in a matrix: a path down all cells that hold it, neighbours in a column joined. */
function runs(matrix) {
  const n = matrix.length;
  const paths = new Map();
  for (let j = 0; j < n; j++) {
    for (let i = 0, start = 0; i < n; i++) {
      const value = matrix[i][j];
      if (i + 1 < n && matrix[i + 1][j] === value) continue;
      paths.set(value, `${paths.get(value) ?? ""}M${j} ${start}v${i + 1 - start}`);
      start = i + 1;
    }
  }
  return Array.from(paths).sort(([a], [b]) => a - b);
}

/** A heatmap in units of a cell: a path for each step of opacity but 0. */
function shades(weights, steps) {
  const paths = runs(weights.map((row) => row.map((weight) => Math.floor(weight * steps + 0.5))));
  return paths.filter(([step]) => step).map(([step, d]) => ["path", { d, opacity: step / steps }, ""]);
}

/** A head in the grid: its heatmap, and stripes on the cells that are blocked. */
export function smallMarks(weights, allowed) {
  const stripes = runs(allowed).filter(([may]) => !may).map(([, d]) => ["path", { d, class: "blocked" }, ""]);
  return [...shades(weights, SHADES.small), ...stripes];
}

/** The large heatmap: cells, hatches, numbers where they fit, tokens, the picked row. */
export function heatMarks({ tokens, weights, allowed, row }) {
  const { left, top, size } = HEAT;
  const side = size / tokens.length;
  const middle = (i) => (i + 0.5) * side;
  const place = `translate(${short(left + side / 2)} ${top}) scale(${short(side)})`;
  const marks = [["g", { transform: place, class: "cells" }, shades(weights, SHADES.large)]];
  const hatches = hatchesOf(allowed, side);
  if (hatches) marks.push(["path", { d: hatches, class: "hatch" }, ""]);
  tokens.forEach((token, i) => {
    const y = top + middle(i) + 4;
    if (side >= 10 || i === row) marks.push(label(token, left - 8, y, "query", "end", i === row));
    if (side >= 10) {
      const transform = `translate(${short(left + middle(i) + 3)} ${top - 7}) rotate(-60)`;
      marks.push(["text", { transform, fill: "var(--key)" }, cut(token)]);
    }
    if (side < 27) return;
    weights[i].forEach((weight, j) => {
      const ink = { "text-anchor": "middle", fill: `var(--${cellInk(weight)})` };
      if (allowed[i][j]) marks.push(["text", { x: left + middle(j), y, ...ink }, two(weight)]);
    });
  });
  const frame = { x: left, y: top + row * side, width: size, height: side, class: "frame" };
  const edge = { x: left, y: top, width: size, height: size, class: "edge" };
  return [...marks, ["rect", edge, ""], ["rect", frame, ""]];
}

/** Queries on the left, keys on the right, a line as strong as the weight between them. */
export function lineMarks({ tokens, weights, allowed, row, lines, top }) {
  const side = HEAT.size / tokens.length;
  const middles = tokens.map((_, i) => HEAT.top + (i + 0.5) * side);
  const head = { y: HEAT.top - 12, class: "head" };
  const marks = [
    ["text", { x: LINKS.queries, ...head, "text-anchor": "end" }, "queries"],
    ["text", { x: LINKS.keys, ...head }, "keys"],
  ];
  const others = lines === "all" ? tokens.map((_, i) => i).filter((i) => i !== row) : [];
  for (const [kind, rows] of [["others", others], ["picked", [row]]]) {
    const paths = new Map();
    for (const i of rows) {
      weights[i].forEach((weight, j) => {
        const step = Math.floor(weight * SHADES.lines + 0.5);
        const line = `M${LINKS.from} ${short(middles[i])}L${LINKS.to} ${short(middles[j])}`;
        if (step) paths.set(step, (paths.get(step) ?? "") + line);
      });
    }
    const drawn = Array.from(paths).sort(([a], [b]) => a - b);
    const strength = (weight) => ({ opacity: weight, "stroke-width": 0.5 + 4.5 * weight });
    marks.push(["g", { class: kind }, drawn.map(([step, d]) => ["path", { d, ...strength(step / SHADES.lines) }, ""])]);
  }
  tokens.forEach((token, i) => {
    const y = middles[i] + 4;
    if (side >= 10 || i === row) marks.push(label(token, LINKS.queries, y, "query", "end", i === row));
    if (side < 10 && i !== top) return;
    const [role, number] = allowed[row][i] ? ["weight", two(weights[row][i])] : ["muted", "masked"];
    const style = { fill: `var(--${role})`, "font-weight": i === top ? "bold" : "normal", "text-anchor": "end" };
    marks.push(label(token, LINKS.keys, y, "key", "start", i === top));
    marks.push(["text", { x: LINKS.numbers, y, ...style }, number]);
  });
  return marks;
}

/** Diagonals across the cells that are blocked: forbidden looks different from zero. */
function hatchesOf(allowed, side) {
  const parts = side >= 10 ? [1 / 3, 2 / 3, 1] : [1];
  const cell = (i, j) => {
    const [x, y] = [HEAT.left + j * side, HEAT.top + i * side];
    return parts.map((part) => {
      const [reach, rest] = [short(part * side), short(side - part * side)];
      const upper = `M${short(x)} ${short(y + part * side)}l${reach} -${reach}`;
      return part < 1 ? `${upper}M${short(x + part * side)} ${short(y + side)}l${rest} -${rest}` : upper;
    });
  };
  return allowed.flatMap((row, i) => row.flatMap((may, j) => (may ? [] : cell(i, j)))).join("");
}

function label(token, x, y, role, anchor, bold) {
  const style = { "font-weight": bold ? "bold" : "normal", fill: `var(--${role})` };
  return ["text", { x, y, "text-anchor": anchor, ...style }, cut(token)];
}

/** A token that fits beside a drawing. */
function cut(token) {
  const letters = Array.from(token);
  return letters.length < 10 ? token : letters.slice(0, 8).join("") + "…";
}

/** A length with two decimals at most. */
const short = (x) => Number(x.toFixed(2));

/** Marks as elements. */
function drawn([tag, attributes, content]) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, typeof value === "number" ? short(value) : value);
  }
  if (typeof content === "string") element.textContent = content;
  else element.append(...content.map(drawn));
  return element;
}

function render({ model, el }) {
  const texts = model.get("texts");
  const { n_layers, n_heads } = texts[0];
  const state = () => ({ texts, ...Object.fromEntries(STATE.map((trait) => [trait, model.get(trait)])) });
  const { texts: _, ...start } = state();
  let buttons; // of the grid, row by row
  let now; // what is on the screen, as compute() gave it
  let shown = ""; // the state that the sheets show

  function draw(view) {
    const s = state();
    now = compute(s);
    const grid = view.part("grid");
    buttons ??= Array.from(grid.querySelectorAll("button"));
    if (grid.dataset.text !== String(s.text)) {
      grid.dataset.text = s.text;
      const n = now.tokens.length;
      buttons.forEach((button, at) => {
        const weights = now.all[Math.floor(at / n_heads)][at % n_heads];
        button.firstElementChild.setAttribute("viewBox", `-.5 0 ${n} ${n}`);
        button.firstElementChild.replaceChildren(...smallMarks(weights, now.allowed).map(drawn));
      });
    }
    buttons.forEach((button, at) => {
      const picked = at === s.layer * n_heads + s.head;
      if (button.ariaPressed !== String(picked)) button.ariaPressed = picked;
      if (button.tabIndex !== (picked ? 0 : -1)) button.tabIndex = picked ? 0 : -1;
    });

    const name = JSON.stringify({ ...s, texts: 0 });
    if (shown !== name) {
      shown = name;
      view.part("heat").replaceChildren(...heatMarks(now).map(drawn));
      view.part("links").replaceChildren(...lineMarks(now).map(drawn));
    }

    const names = now.tokens.map((token, i) => `${i + 1}: ${token}`);
    const select = view.part("row");
    if (names.join("\n") !== Array.from(select.options, (option) => option.textContent).join("\n")) {
      select.replaceChildren(...names.map((text, i) => new Option(text, i)));
    }
    view.put("row", { value: now.row });
    for (const trait of ["text", "layer", "head", "lines"]) {
      if (view.part(trait)) view.put(trait, { value: s[trait] }); // no choice where there is one thing
    }

    const said = view.part("said");
    if (said.textContent !== now.sentence) {
      const largest = document.createElement("b");
      largest.className = "number";
      largest.textContent = now.largest;
      said.replaceChildren(now.opening, ...(now.largest ? [" (", largest, ")"] : []));
    }
    for (const [mean, number] of Object.entries(now.summary)) view.put(mean, { textContent: two(number) });
    view.later(() => fillTable(view.part("table"), now)); // slow to build and only for the ear
  }

  const view = mount(model, el, draw);
  const on = (name, event, handle) => view.part(name)?.addEventListener(event, handle);

  for (const trait of ["text", "layer", "head", "row"]) {
    on(trait, "change", (event) => view.set({ [trait]: Number(event.target.value) }));
  }
  on("lines", "change", (event) => view.set({ lines: event.target.value }));
  on("copy", "click", () => copy(view, numpyCode(state())));
  on("reset", "click", () => {
    view.set(start);
    view.say("");
  });

  /** Picks a head of the grid by its place in the row of buttons. */
  const pick = (at) => view.set({ layer: Math.floor(at / n_heads), head: at % n_heads });
  on("grid", "click", (event) => {
    const at = buttons.indexOf(event.target.closest("button"));
    if (at >= 0) pick(at);
  });
  // Arrows walk from head to head and pick each, so that the large one changes as one goes.
  const walk = (event) => {
    const at = buttons.indexOf(event.target);
    if (at < 0 || event.altKey || event.metaKey) return;
    const [i, j] = [Math.floor(at / n_heads), at % n_heads];
    const next = {
      ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
      Home: [event.ctrlKey ? 0 : i, 0], End: [event.ctrlKey ? n_layers - 1 : i, n_heads - 1],
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const [layer, head] = [[next[0], n_layers], [next[1], n_heads]].map(([x, n]) => Math.min(Math.max(x, 0), n - 1));
    pick(layer * n_heads + head);
    buttons[layer * n_heads + head].focus();
  };
  addEventListener("keydown", walk, true); // on the window: the core lets no arrow key get lower

  for (const [part, width] of [["heat", HEAT.width], ["links", LINKS.width]]) {
    const at = (event) => {
      const box = view.part(part).getBoundingClientRect();
      const unit = width / box.width;
      const side = HEAT.size / now.tokens.length;
      const i = Math.floor(((event.clientY - box.top) * unit - HEAT.top) / side);
      const j = Math.floor(((event.clientX - box.left) * unit - HEAT.left) / side);
      const inside = (x) => x >= 0 && x < now.tokens.length;
      return { i, j, row: inside(i), cell: inside(i) && inside(j) && part === "heat" };
    };
    on(part, "click", (event) => {
      const { i, row } = at(event);
      if (row) view.set({ row: i });
    });
    on(part, "pointermove", (event) => {
      const { i, j, cell } = at(event);
      if (!cell) return;
      const weight = now.allowed[i][j] ? `weight ${now.weights[i][j].toFixed(4)}` : "forbidden by the mask";
      view.put("cell", { textContent: `${now.tokens[i]} → ${now.tokens[j]}: ${weight}` });
    });
  }

  return () => {
    removeEventListener("keydown", walk, true);
    view.end();
  };
}

export default { render };
