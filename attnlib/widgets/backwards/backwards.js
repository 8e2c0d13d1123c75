/**
 * Backwards: backpropagation from one number of the output to X, box by box. Each cell has a number
 * of "Chai piyo" and below it its slope. Any number can be changed, to see whether its slope
 * predicts what happens.
 *
 * Nothing here knows an equation of the backward pass. A number knows what it goes into, and how
 * many times a change arrives there; slopes along a path are multiplied, those of several paths are
 * added.
 */
import { buttons, element, html, line, select, sheet, slider, table, text } from "../kit/markup.js";
import { dotProducts, multiply, numpyArray, range, softmax } from "../kit/numbers.js";

export const pageState = { playing: false };
export const label = ({ row, column }) =>
  `Backwards: from number ${column + 1} of ${WORDS[row]}’s output to X`;

const WORDS = ["Chai", "piyo"];
const STAGES = ["forwards", "Z", "V", "A", "S", "Q", "K", "W", "X"];
const REACHED = {
  Z: "Z",
  V: "V",
  A: "A",
  S: "S",
  Q: "Q",
  K: "K",
  W_Q: "W",
  W_K: "W",
  W_V: "W",
  X: "X",
};
const [ROWS, COLUMNS] = [(id) => (id[0] === "W" ? 4 : 2), (id) => (id === "X" ? 4 : 2)];
/** The entries of a matrix, and those of all, from the end to the beginning. */
const names = (id) =>
  range(ROWS(id)).flatMap((i) => range(COLUMNS(id)).map((j) => `${id}.${i}.${j}`));
const NAMES = Object.keys(REACHED).flatMap(names);
const MOST = 1; // the largest nudge
const LARGEST = 100;
const ROOT = Math.SQRT2; // of d_k = 2

// -------------------------------------------------------------------------------- the numbers

const added = (matrix, [i, j], by) =>
  matrix.map((row, r) => row.map((x, c) => (r === i && c === j ? x + by : x)));
const free = (s, i, j) => !s.causal || j <= i;
const parts = (name) => {
  const [id, i, j] = name.split(".");
  return [id, Number(i), Number(j)];
};

/** All matrices by their letters, where one entry has been nudged by so much. */
function forwards(s, by = 0) {
  const [nudged, ...place] = parts(s.cell);
  const made = {};
  const put = (id, matrix) => (made[id] = id === nudged && by ? added(matrix, place, by) : matrix);
  const X = put("X", s.x);
  const [Q, K, V] = ["Q", "K", "V"].map((id) =>
    put(id, multiply(X, put(`W_${id}`, s[`w_${id.toLowerCase()}`]))),
  );
  const S = put(
    "S",
    dotProducts(Q, K, 2).map((row) => row.map((x) => x / ROOT)),
  );
  const A = put(
    "A",
    S.map((row, i) => softmax(row.map((x, j) => (free(s, i, j) ? x : -Infinity)))),
  );
  put(
    "Z",
    multiply(
      A.map((row, i) => row.map((a, j) => (free(s, i, j) ? a : 0))),
      V,
    ),
  );
  return { made, loss: made.Z[s.row][s.column] };
}

const BOTH = range(2);
/** What an entry goes into next: [name, how many times a nudge arrives, how that is written]. */
function into(s, m, name) {
  const [id, i, j] = parts(name);
  const keys = (q) => BOTH.filter((k) => free(s, q, k));
  if (id === "Z") return i === s.row && j === s.column ? [["L", 1, "1"]] : [];
  if (id === "A")
    return free(s, i, j) ? BOTH.map((c) => [`Z.${i}.${c}`, m.V[j][c], `V.${j}.${c}`]) : [];
  if (id === "V")
    return BOTH.filter((q) => free(s, q, i)).map((q) => [`Z.${q}.${j}`, m.A[q][i], `A.${q}.${i}`]);
  if (id === "S") {
    const slope = (k) =>
      k === j
        ? m.A[i][j] * keys(i).reduce((rest, l) => (l === j ? rest : rest + m.A[i][l]), 0)
        : -m.A[i][k] * m.A[i][j];
    return free(s, i, j) ? keys(i).map((k) => [`A.${i}.${k}`, slope(k), "softmax"]) : [];
  }
  if (id === "Q") return keys(i).map((k) => [`S.${i}.${k}`, m.K[k][j] / ROOT, `K.${k}.${j}`]);
  if (id === "K")
    return BOTH.filter((q) => free(s, q, i)).map((q) => [
      `S.${q}.${i}`,
      m.Q[q][j] / ROOT,
      `Q.${q}.${j}`,
    ]);
  if (id === "X")
    return ["Q", "K", "V"].flatMap((to) =>
      BOTH.map((c) => [`${to}.${i}.${c}`, m[`W_${to}`][j][c], `W_${to}.${j}.${c}`]),
    );
  return BOTH.map((r) => [`${id[2]}.${r}.${j}`, m.X[r][i], `X.${r}.${i}`]);
}

/** How the one number moves with every entry, {name: slope}, from the end to the beginning. */
function backwards(s, m) {
  const slopes = { L: 1 };
  for (const name of NAMES) {
    slopes[name] = into(s, m, name).reduce((sum, [to, times]) => sum + times * slopes[to], 0) + 0;
  }
  return slopes;
}

/** Numbers, slopes, and what the one number does under the nudge: held against attnlib. */
export function compute(s) {
  const { made, loss } = forwards(s);
  const slopes = backwards(s, made);
  const gradients = Object.fromEntries(
    Object.keys(made).map((id) => [
      id,
      made[id].map((row, i) => row.map((_, j) => slopes[`${id}.${i}.${j}`])),
    ]),
  );
  return { made, loss, slopes, gradients, nudged: forwards(s, s.nudge) };
}

// ------------------------------------------------------------------------------- the drawing

const WIDE = 54;
const TALL = 36;
const MID = TALL / 2 + 5; // the line of a number that has no slope below it yet
/** Where each box stands, in units of a 360 x 626 sheet, and the color of its letter. */
const BOXES = {
  Z: [250, 24, "ink"],
  S: [2, 134, "ink"],
  A: [126, 134, "weight"],
  Q: [2, 246, "query"],
  K: [126, 246, "key"],
  V: [250, 246, "value"],
  W_Q: [2, 358, "query"],
  W_K: [126, 358, "key"],
  W_V: [250, 358, "value"],
  X: [72, 542, "ink"],
};
const LOSS = { x: 72, y: 42 };
const MIDDLE = { "text-anchor": "middle" };
/** The wires between the boxes, from where numbers go to what they are made of. */
const WIRES = {
  L: [["M250 60H180", "Z"]],
  Z: [
    ["M304 246V96", "V"],
    ["M180 134C180 110 270 124 280 96", "A"],
  ],
  A: [["M126 170H110", "S"]],
  S: [
    ["M56 246V206", "Q"],
    ["M180 246C180 222 90 232 80 206", "K"],
  ],
  Q: [["M56 358V318", "W"]],
  K: [["M180 358V318", "W"]],
  V: [["M304 358V318", "W"]],
  W: [
    ["M110 542C110 518 56 530 56 502", "X"],
    ["M180 542V502", "X"],
    ["M250 542C250 518 304 530 304 502", "X"],
  ],
};

const center = (name) => {
  if (name === "L") return [LOSS.x + WIDE, LOSS.y + TALL / 2];
  const [id, i, j] = parts(name);
  return [BOXES[id][0] + (j + 0.5) * WIDE, BOXES[id][1] + (i + 0.5) * TALL];
};
const sign = (x) => x.replace("-", "−");

/** A number in few signs; what is no zero does not look like one. */
function short(x, digits = 3) {
  const places = Math.abs(x) >= 99.95 ? 0 : Math.abs(x) >= 9.995 ? 1 : digits;
  const rounded = x.toFixed(places);
  if (x === 0) return "0";
  if (Number(rounded) === 0) return (0).toFixed(places);
  return sign(rounded.includes(".") ? rounded.replace(/\.?0+$/, "") : rounded);
}
/** A slope or a move, with its sign. */
const signed = (x, digits) =>
  x > 0 && Number(x.toFixed(digits ?? 3)) ? `+${short(x, digits)}` : short(x, digits);

const LETTER = { S: "S̃" };
/** A matrix, or an entry with its place, as a reader writes it. */
function written(name) {
  if (name === "L") return html`<i>L</i>`;
  const [id, i, j] = name.split(".");
  const [letter, low] = id.split("_");
  const place = i === undefined ? "" : ` ${Number(i) + 1}${Number(j) + 1}`;
  return html`<i>${LETTER[id] ?? letter}</i><sub>${low}${low ? place : place.trim()}</sub>`;
}
/** The same without markup. */
const plainName = (name) => {
  if (name === "L") return "L";
  const [id, i, j] = parts(name);
  return `${(LETTER[id] ?? id).replace("_", " ")} row ${i + 1} column ${j + 1}`;
};

const reached = (s, id) =>
  id === "L" ? s.stage !== "forwards" : STAGES.indexOf(REACHED[id]) <= STAGES.indexOf(s.stage);

function cell(s, now, name, links) {
  const [id, i, j] = parts(name);
  const [x, y] = center(name).map((at, k) => at - [WIDE, TALL][k] / 2);
  const value = now.nudged.made[id][i][j];
  const slope = now.slopes[name];
  const known = reached(s, id);
  const blocked = (id === "S" || id === "A") && !free(s, i, j);
  const top = Math.max(...now.gradients[id].flat().map(Math.abs)) || 1;
  const moved = Math.abs(value - now.made[id][i][j]) > 5e-4;
  const all = {
    class: ["cell", s.cell === name && "self", links.has(name) && "fed", moved && "moved"]
      .filter(Boolean)
      .join(" "),
    "data-cell": name,
    role: "button",
    tabindex: s.cell === name ? 0 : -1,
    "aria-pressed": String(s.cell === name),
    "aria-label":
      `${plainName(name)}${known ? ", number and slope" : ""}: ` +
      `${blocked ? "blocked" : short(value)}${known ? `, ${signed(slope)}` : ""}`,
  };
  return element(
    "g",
    all,
    element("rect", { x, y, width: WIDE, height: TALL, class: "back" }),
    known &&
      slope !== 0 &&
      element("rect", {
        x: x + 1,
        y: y + TALL / 2,
        width: WIDE - 2,
        height: TALL / 2 - 1,
        class: "tint",
        opacity: (0.07 + (0.2 * Math.abs(slope)) / top).toFixed(3),
      }),
    blocked &&
      element("path", {
        class: "hatch",
        d:
          `M${x} ${y + 18}l18 -18M${x} ${y + 36}l36 -36M${x + 14} ${y + 36}l36 -36M${x + 32} ` +
          `${y + 36}l18 -18`,
      }),
    !blocked &&
      text(
        short(value),
        x + WIDE / 2,
        y + (known ? 15 : MID),
        id === "A" ? "weight" : "muted",
        MIDDLE,
      ),
    known && " ", // two words for a reader who says what stands there
    known && text(signed(slope), x + WIDE / 2, y + 31, "ink", { ...MIDDLE, class: "slope" }),
  );
}

/** All ways from the picked entry to the end, as lines as thick as what comes back along them. */
function ways(s, now) {
  if (!reached(s, parts(s.cell)[0])) return { lines: [], next: new Set() };
  const next = new Set();
  const arriving = new Map([[s.cell, 1]]); // how much of a nudge gets there
  const all = [];
  for (const name of [...NAMES].reverse()) {
    const share = arriving.get(name);
    if (!share) continue;
    for (const [to, times] of into(s, now.made, name)) {
      if (name === s.cell) next.add(to);
      const flow = Math.abs(share * times * now.slopes[to]);
      if (flow) all.push({ name, to, flow });
      arriving.set(to, (arriving.get(to) ?? 0) + share * times);
    }
  }
  const most = Math.max(...all.map(({ flow }) => flow));
  const lines = all.map(({ name, to, flow }) => {
    const [[x, y], [u, v]] = [center(name), center(to)];
    return element("path", {
      d: `M${x} ${y}L${u} ${v}`,
      "stroke-width": 1.2 + (3.3 * flow) / most,
    });
  });
  return { lines, next };
}

function drawing(s, now) {
  const { lines, next } = ways(s, now);
  const at = STAGES.indexOf(s.stage);
  const fresh = (to, from) => from === s.stage || (to === "L" && s.stage === "Z");
  const wires = Object.entries(WIRES).flatMap(([to, all]) =>
    all.map(([d, from]) =>
      element("path", {
        d,
        class: fresh(to, from) ? "wire fresh" : "wire",
        "data-key": `${from}${fresh(to, from)}`,
      }),
    ),
  );
  const rowNames = (x, y) =>
    WORDS.map((word, i) => text(word, x, y + (i + 0.5) * TALL + 4, "muted"));
  const heads = Object.entries(BOXES).map(([id, [x, y, role]]) => {
    const [letter, low] = id.split("_");
    const lean = html`<tspan
font-style="italic">${LETTER[id] ?? letter}</tspan>${
      low && html`<tspan dy="3" class="low">${low}</tspan>`
    }`;
    return text(lean, x, y - 6, role, { class: "letter" });
  });
  const all = {
    viewBox: "0 0 360 626",
    role: "group",
    "data-part": "graph",
    "aria-label":
      "From X to the one number at the top. Arrow keys go from number to number; page keys walk " +
      "back and forth.",
  };
  return element(
    "svg",
    all,
    wires,
    element("g", { class: "ways" }, lines),
    heads,
    rowNames(240, 134),
    rowNames(294, 542),
    element(
      "g",
      { class: next.has("L") ? "fed loss" : "loss" },
      element("rect", { x: LOSS.x, y: LOSS.y, width: 2 * WIDE, height: TALL, class: "back" }),
      text(
        html`<tspan font-style="italic">L</tspan> = <tspan font-style="italic">Z</tspan><tspan
dy="3" class="low">${s.row + 1}${s.column + 1}</tspan>`,
        LOSS.x,
        LOSS.y - 6,
        "ink",
        { class: "letter" },
      ),
      text(short(now.nudged.loss), LOSS.x + WIDE, LOSS.y + (at > 0 ? 15 : MID), "muted", MIDDLE),
      at > 0 && text("+1", LOSS.x + WIDE, LOSS.y + 31, "ink", { ...MIDDLE, class: "slope" }),
    ),
    NAMES.map((name) => cell(s, now, name, next)),
  );
}

// -------------------------------------------------------------------------- what is said of it

const CAPTIONS = {
  forwards: [
    "Forward",
    html`each number is used in the boxes that its lines lead to, and in the end in <i>L</i>, one
number of <i>Z</i>. Should it become larger or smaller, to make <i>L</i> larger?`,
  ],
  Z: [
    "L and Z",
    html`<i>L</i> is an entry of <i>Z</i>. If it changes, <i>L</i> changes by the same amount, so
its slope is 1. The others do not matter, so their slope is 0.`,
  ],
  V: [
    "Values",
    html`in each row of <i>Z</i>, a value is multiplied by its weight. So its slope is this weight
times the slope there, added over all rows.`,
  ],
  A: [
    "Weights",
    html`in its row of <i>Z</i>, a weight is multiplied by each number of a value. So its
slope is the sum of these numbers, each times the slope there.`,
  ],
  S: [
    "Scaled scores",
    "a score raises its own weight and lowers the others of its row. These are two paths, " +
      "added. The slopes of a row add up to 0.",
  ],
  Q: [
    "Queries",
    "each scaled score of its row is computed from the query and one key. The slope at the query " +
      "is the sum of these keys, each times the slope at its score, divided by √2.",
  ],
  K: [
    "Keys",
    "each scaled score of its column is computed from the key and one query. The slope at the " +
      "key is the sum of these queries, each times the slope at its score, divided by √2.",
  ],
  W: [
    "Parameters",
    html`an entry is used for every word, each time multiplied by the word’s entry in <i>X</i>. The
paths of all words are added.`,
  ],
  X: [
    "X, the layer below",
    "a word is used in its query, its key and its value. These are six paths, added. " +
      "The result tells the layer below how its output should change.",
  ],
};

/** Whose number it is, in words. */
function title(name) {
  const [id, i, j] = parts(name);
  const kinds = { X: "row", Q: "query", K: "key", V: "value", Z: "output" };
  if (kinds[id]) return html`${WORDS[i]}’s ${kinds[id]}, number ${j + 1}`;
  if (id === "A") return html`Weight of ${WORDS[j]} for ${WORDS[i]}`;
  if (id === "S") return html`Scaled score of ${WORDS[j]} for ${WORDS[i]}`;
  return html`An entry of <i>W</i><sub>${id[2]}</sub>`;
}

/** The paths of the picked number, as a sum that can be followed. */
function ledger(s, now) {
  const [id, i, j] = parts(s.cell);
  const blocked = (id === "S" || id === "A") && !free(s, i, j);
  const head = html`<p class="who"><span>${title(s.cell)}</span> <span>${written(s.cell)} =
${blocked ? "blocked" : short(now.nudged.made[id][i][j])}</span></p>`;
  const box = (...content) =>
    element("div", { class: "ledger", "data-key": `${s.cell} ${s.stage}` }, head, content);
  if (!reached(s, id))
    return box(
      html`<p class="hint">Its slope is not known yet. Change the number and look at <i>L</i>, or go
back with ▶ until its slope appears.</p>`,
    );
  const all = into(s, now.made, s.cell);
  // Of many those that arrive.
  const paths = all.length > 3 ? all.filter(([, times]) => times) : all;
  if (!all.length)
    return box(
      html`<p class="hint">${
        blocked
          ? "The mask blocks this cell, so it is used nowhere"
          : html`It is not used in <i>L</i>`
      }: its slope is <b>0</b>.</p>`,
    );
  const how = (by) =>
    by === "softmax"
      ? "softmax"
      : by === "1"
        ? "itself"
        : html`${written(by)}${(id === "Q" || id === "K") && "/√2"}`;
  const rows = paths.map(([to, times, by]) => {
    const arrives = html`${short(times)} <span class="by">${how(by)}</span>`;
    const cells = [signed(now.slopes[to]), arrives, signed(times * now.slopes[to])].map(
      (content) => html`<td>${content}</td>`,
    );
    return html`<tr><th scope="row">${written(to)}</th>${cells}</tr>`;
  });
  return box(html`<table><tr><th scope="col">into</th><th scope="col">slope there</th><th
scope="col">× factor</th><th scope="col">=</th></tr>${rows}
<tr class="sum"><th scope="row"
colspan="3">${
    paths.length < all.length
      ? `${paths.length} of ${all.length} paths count; added`
      : all.length > 1
        ? `${all.length} paths, added`
        : "one path"
  }: its slope</th><td data-part="slope">${signed(now.slopes[s.cell])}</td></tr></table>`);
}

const CHART = { left: 54, top: 12, wide: 288, tall: 90 };
/** What the one number really does as the picked one is nudged, and what its slope predicts. */
function chart(s, now) {
  const { left, top, wide, tall } = CHART;
  const known = reached(s, parts(s.cell)[0]);
  const nudges = Array.from({ length: 41 }, (_, k) => MOST * (k / 20 - 1));
  const real = nudges.map((by) => forwards(s, by).loss);
  const predicted = (by) => now.loss + by * now.slopes[s.cell];
  const all = [...real, ...(known ? [predicted(-MOST), predicted(MOST)] : [])];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const room = Math.max(high - low, 0.02);
  const x = (by) => left + ((by / MOST + 1) * wide) / 2;
  const y = (value) => top + tall / 2 - ((value - (low + high) / 2) * tall) / room;
  const point = (by, value) => `${x(by).toFixed(1)} ${y(value).toFixed(1)}`;
  const end = { "text-anchor": "end" };
  return sheet(
    "chart",
    360,
    146,
    `L against the change of ${plainName(s.cell)}: now ${short(now.nudged.loss)}` +
      (known ? `; its slope predicts ${short(predicted(s.nudge))}` : ""),
    text(html`<tspan font-style="italic">L</tspan>`, left - 8, top + tall / 2 + 4, "ink", end),
    high - low > 0.02 && [
      text(short(high, 2), left - 6, y(high) + 6, "muted", end),
      text(short(low, 2), left - 6, y(low) + 3, "muted", end),
    ],
    line(`M${left} ${top}V${top + tall}H${left + wide}M${x(0)} ${top}V${top + tall}`),
    // Those at the ends stand inside, clear of the numbers on the left.
    [
      [-1, "start"],
      [0, "middle"],
      [1, "end"],
    ].map(([part, anchor]) =>
      text(part ? signed(part * MOST) : "0", x(part * MOST), top + tall + 15, "muted", {
        "text-anchor": anchor,
      }),
    ),
    known &&
      element("path", {
        d: `M${point(-MOST, predicted(-MOST))}L${point(MOST, predicted(MOST))}`,
        class: "predicted-line",
      }),
    element("path", {
      d: `M${nudges.map((by, k) => point(by, real[k])).join("L")}`,
      class: "real-line",
    }),
    known &&
      element("circle", {
        cx: x(s.nudge),
        cy: y(predicted(s.nudge)),
        r: 5,
        class: "predicted-dot",
      }),
    element("circle", { cx: x(s.nudge), cy: y(now.nudged.loss), r: 4, fill: "var(--ink)" }),
    element("path", { d: "M4 137h22", class: "real-line" }),
    text(html`what <tspan font-style="italic">L</tspan> does`, 32, 141, "ink"),
    known && [
      element("path", { d: "M154 137h22", class: "predicted-line" }),
      text("what its slope says", 182, 141, "ink"),
    ],
  );
}

export function picture(s) {
  const now = compute(s);
  const at = STAGES.indexOf(s.stage);
  const key = (name, label, sign, disabled) =>
    element("button", { type: "button", name, "aria-label": label, disabled }, sign);
  const caption = (stage) => html`<b>${CAPTIONS[stage][0]}:</b> ${CAPTIONS[stage][1]}`;
  const chips = STAGES.map((stage, k) => {
    const sign = k ? (LETTER[stage] ?? stage) : "→";
    const attributes = {
      type: "button",
      "data-stage": stage,
      "aria-label": `${sign}: ${CAPTIONS[stage][0]}`,
      "aria-current": k === at && "step",
      class: k <= at && "past",
    };
    return element("button", attributes, sign);
  });
  const known = reached(s, parts(s.cell)[0]);
  const moves = now.nudged.loss - now.loss;
  const wanted = WORDS.flatMap((word, i) =>
    [0, 1].map((c) => [`${i}.${c}`, `${word}’s output, number ${c + 1}`]),
  );
  return [
    html`<div class="top"><div
class="keys">${key("back", "One box forward again", "◀", at === 0)}${element(
      "button",
      { type: "button", name: "play", class: "play" },
      s.playing ? "❚❚ Pause" : "Backpropagate",
    )}${key("next", "One box further back", "▶", at === STAGES.length - 1)}</div>
<div class="chips" role="group" aria-label="How far back" data-part="chips">${chips}</div>
<div class="reserved caption">${STAGES.map(
      (stage) => html`<p class="ghost" aria-hidden="true">${caption(stage)}</p>`,
    )}<p role="status"><span data-key="${s.stage}">${caption(s.stage)}</span></p></div></div>`,
    html`<div class="said">${ledger(s, now)}
<label class="nudge"><span data-key="${s.cell}">Change ${written(s.cell)} by <b class="number"
data-part="by">${signed(s.nudge, 2)}</b></span>
${slider("nudge", s, {
  step: 0.05,
  value: s.nudge,
  "aria-label": `Change ${plainName(s.cell)}`,
  "aria-valuetext": signed(s.nudge, 2),
})}</label>
<p class="verdict" role="status"><span><i>L</i> changes by</span> <b
data-part="really">${signed(moves, 4)}</b>${
      known &&
      html`<span>predicted:</span> <b
data-part="predicted">${signed(s.nudge * now.slopes[s.cell], 4)}</b>`
    }</p></div>`,
    html`<div class="picture">${drawing(s, now)}</div>`,
    html`<div class="plot">${chart(s, now)}</div>`,
    html`<div class="controls"><label class="wide"><span>The number
<i>L</i></span>${select("wanted", wanted, `${s.row}.${s.column}`)}</label>
<label class="switch wide">${element("input", {
      type: "checkbox",
      name: "causal",
      checked: s.causal,
    })}<span>Causal mask: no later words</span></label>${buttons()}</div>`,
    () => tables(now, s),
  ];
}

/** For those who do not see the picture: each matrix with its slopes, as far as they are known. */
function tables(now, s) {
  const of = (id) =>
    table(
      `${LETTER[id] ?? id.replace("_", " ")}: number${reached(s, id) ? " and slope" : ""}`,
      ["", ...now.made[id][0].map((_, j) => `column ${j + 1}`)],
      now.made[id].map((row, i) => [
        `row ${i + 1}`,
        ...row.map(
          (x, j) => `${short(x)}${reached(s, id) ? `, ${signed(now.gradients[id][i][j])}` : ""}`,
        ),
      ]),
    );
  return html`<div class="visually-hidden">${Object.keys(REACHED).map(of)}</div>`;
}

// ------------------------------------------------------------------------------ code and hands

/** Runnable NumPy for what is on the screen: the equations of the chapter, in their order. */
export function code(s) {
  const blocked = s.causal
    ? ["free = np.tri(2, dtype=bool)", "S = np.where(free, S, -np.inf)"]
    : [];
  return [
    "import numpy as np",
    "",
    ...Object.entries({ X: s.x, W_Q: s.w_q, W_K: s.w_k, W_V: s.w_v }).flatMap(([name, rows]) =>
      numpyArray(name, rows),
    ),
    "",
    "Q, K, V = X @ W_Q, X @ W_K, X @ W_V",
    "S = Q @ K.T / np.sqrt(2)  # scaled scores",
    ...blocked,
    "exponentials = np.exp(S - S.max(axis=1, keepdims=True))",
    "A = exponentials / exponentials.sum(axis=1, keepdims=True)",
    "Z = A @ V",
    `L = Z[${s.row}, ${s.column}]`,
    "",
    "dZ = np.zeros((2, 2))",
    `dZ[${s.row}, ${s.column}] = 1`,
    "dV = A.T @ dZ",
    "dA = dZ @ V.T",
    ...(s.causal ? ["dA[~free] = 0"] : []),
    "dS = A * (dA - (A * dA).sum(axis=1, keepdims=True))",
    "dQ, dK = dS @ K / np.sqrt(2), dS.T @ Q / np.sqrt(2)",
    "dW_Q, dW_K, dW_V = X.T @ dQ, X.T @ dK, X.T @ dV",
    "dX = dQ @ W_Q.T + dK @ W_K.T + dV @ W_V.T",
    'for name in ("dV", "dA", "dS", "dQ", "dK", "dW_Q", "dW_K", "dW_V", "dX"):',
    "    print(name, *globals()[name].round(6))",
  ];
}

const fits = (matrix, rows, columns) =>
  Array.isArray(matrix) &&
  matrix.length === rows &&
  matrix.every(
    (row) =>
      Array.isArray(row) &&
      row.length === columns &&
      row.every((x) => typeof x === "number" && Math.abs(x) <= LARGEST),
  );
export const shared = {
  x: (x) => fits(x, 2, 4),
  w_q: (w) => fits(w, 4, 2),
  w_k: (w) => fits(w, 4, 2),
  w_v: (w) => fits(w, 4, 2),
  cell: (cell) => NAMES.includes(cell),
};

/** The entry that lies next in a direction, or nothing. */
export function beside(name, [dx, dy]) {
  const [x, y] = center(name);
  const far = (other) => {
    const [a, b] = center(other);
    const along = (a - x) * dx + (b - y) * dy;
    return along < 3 ? Infinity : along + 3 * Math.abs((a - x) * dy + (b - y) * dx);
  };
  const [best] = NAMES.filter((other) => far(other) < Infinity).sort((a, b) => far(a) - far(b));
  return best;
}

/** The entry of a stage whose slope is largest: what is looked at when the walk comes to it. */
function strongest(s, stage) {
  const now = compute(s);
  const id = stage === "W" ? "W_Q" : stage;
  const size = (name) => Math.abs(now.slopes[name]);
  return names(id).reduce((best, name) => (size(name) > size(best) + 1e-12 ? name : best));
}

export function live(view) {
  let timer = 0;
  const pick = (cell, more = {}) => view.set({ cell, nudge: 0, ...more });
  function go(k, more = { playing: false }) {
    const stage = STAGES[Math.min(Math.max(k, 0), STAGES.length - 1)];
    clearTimeout(timer);
    if (stage === "forwards") view.set({ stage, nudge: 0, ...more });
    else pick(strongest(view.state(), stage), { stage, ...more });
  }
  const at = () => STAGES.indexOf(view.state().stage);
  function walk() {
    if (!view.state().playing || !view.root.isConnected) return;
    const k = at() + 1;
    go(k, { playing: k < STAGES.length - 1 });
    timer = setTimeout(walk, 2600);
  }
  view.on("play", "click", () => {
    clearTimeout(timer);
    if (view.state().playing) return view.set({ playing: false });
    if (at() === STAGES.length - 1) go(0);
    view.set({ playing: true });
    timer = setTimeout(walk, at() ? 300 : 900);
  });
  view.on("next", "click", () => go(at() + 1));
  view.on("back", "click", () => go(at() - 1));
  view.on(
    "chips",
    "click",
    ({ target }) => target.dataset.stage && go(STAGES.indexOf(target.dataset.stage)),
  );
  view.on("graph", "click", ({ target }) => {
    const name = target.closest("[data-cell]")?.dataset.cell;
    if (name) pick(name);
  });
  view.listen(
    self,
    "keydown",
    (event) => {
      const { target, key } = event;
      if (!view.part("graph").contains(target) || event.altKey || event.ctrlKey || event.metaKey)
        return;
      const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[
        key
      ];
      const turn = { PageDown: 1, PageUp: -1 }[key];
      if (!way && !turn) return;
      event.preventDefault();
      if (turn) go(at() + turn);
      else {
        const name = beside(view.state().cell, way);
        if (name) pick(name);
      }
      requestAnimationFrame(() =>
        requestAnimationFrame(() =>
          view.root.querySelector(".cell.self").focus({ preventScroll: true }),
        ),
      );
    },
    { capture: true },
  );
  view.on("nudge", "input", ({ target }) => view.set({ nudge: Number(target.value) }));
  view.on("wanted", "change", ({ target }) => {
    const [row, column] = target.value.split(".").map(Number);
    view.set({ row, column });
  });
  view.on("causal", "change", ({ target }) => view.set({ causal: target.checked }));
}
