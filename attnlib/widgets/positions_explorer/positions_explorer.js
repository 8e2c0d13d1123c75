/**
 * PositionsExplorer: one word at 64 positions; what each kind of position does to its scores. Its
 * other scenes, in which things move, are in scenes.js.
 */
import { cellAt, shades } from "../drawing/heatmap.js";
import { buttons, element, html, line, sheet, slider, table, text } from "../kit/markup.js";
import { dotProducts, nearest } from "../kit/numbers.js";
import {
  clocking,
  hands,
  liveScene,
  order,
  ordering,
  poseOf,
  sceneCode,
  signed,
  turned,
  turning,
} from "./scenes.js";

export const pageState = { lens: null };
export const shared = {
  scene: false,
  d_model: (d) => d % 2 === 0,
};

const N = 64; // positions, and words in the sentence
const N_HEADS = 8;
const REACH = 8; // the largest offset in the table of the relative bias
const KINDS = {
  none: "None",
  sinusoidal: "Sinusoidal",
  rotary: "Rotary",
  alibi: "ALiBi",
  relative: "Relative",
};
/** Which numbers each kind depends on, besides the position that is looked at. */
const USES = {
  none: [],
  sinusoidal: ["d_model", "base"],
  rotary: ["d_model", "base"],
  alibi: ["head"],
  relative: ["head"],
};
/** Where the slider of the base stops: 1, 2 and 5 of each decade. */
const STOPS = [
  2,
  5,
  ...[1, 2, 3, 4, 5].flatMap((decade) => [1, 2, 5].map((digit) => digit * 10 ** decade)),
  10 ** 6,
];

/** Each of the three drawings, in units of a 240 x 238 sheet. */
const SHEET = { left: 38, top: 10, size: 192, pad: 6 };
const SHADES = 16; // steps of opacity in a heatmap

const places = Array.from({ length: N }, (_, p) => p);
const heads = places.slice(0, N_HEADS);
const isBiased = (kind) => kind === "alibi" || kind === "relative";

/** What a head adds to a score whose key is `offset` places after the query. */
function added(kind, head, offset) {
  if (kind === "alibi") return -(2 ** -(head + 1)) * Math.abs(offset);
  if (kind === "relative")
    return 2 - Math.abs(Math.max(-REACH, Math.min(REACH, offset)) + head + 1) / 2;
  return 0;
}

/**
 * The dot product of rows at each offset from -63 to 63, for rows that only the offset tells apart.
 */
function byOffset(rows, d) {
  const [first, last] = dotProducts([rows[0], rows[N - 1]], rows, d);
  return [...last, ...first.slice(1)];
}

/** Everything that follows from the traits; the numbers that attnlib gives in Python. */
export function compute({ kind, d_model, base, head }) {
  const angles = (p) =>
    Array.from({ length: d_model / 2 }, (_, i) => p / base ** ((2 * i) / d_model));
  const pairs = {
    sinusoidal: (angle) => [Math.sin(angle), Math.cos(angle)],
    rotary: (angle) => [Math.cos(angle), Math.sin(angle)], // (1, 0) turned
  }[kind];
  const encoding = places.map((p) => angles(p).flatMap(pairs ?? (() => [0, 0])));
  const size = 1 / Math.sqrt(d_model / 2);
  const words = encoding.map((row) =>
    row.map((x, k) => (kind === "rotary" ? size * x : x + (k % 2 ? 0 : size))),
  );
  const biases = heads.map((h) =>
    Array.from({ length: 2 * N - 1 }, (_, at) => added(kind, h, at + 1 - N)),
  );
  const scores = dotProducts(words, words, d_model).map((row, i) =>
    row.map((score, j) => score + biases[head][j - i + N - 1]),
  );
  const similarity = isBiased(kind)
    ? biases[head]
    : byOffset(kind === "sinusoidal" ? encoding : words, d_model);
  return { encoding, biases, scores, similarity };
}

const whole = (x) => String(x).replace("-", "−");
const plain = (x, digits) => String(Number(x.toPrecision(digits)));
const short = (x) => Number(x.toFixed(4));
const least = (rows) => Math.min(...rows.flat());
const most = (rows) => Math.max(...rows.flat());

/** The part of a row over all offsets that position p can reach. */
const reached = (row, p) => row.slice(N - 1 - p, 2 * N - 1 - p);

/** What the picked position adds to its scores: a row for each head. */
const blockOf = ({ position }, { biases }) => biases.map((row) => reached(row, position));

/** What is said of the scores, and over and under the three drawings. */
function sentences(s, now) {
  const { kind, position: p, d_model, base, head } = s;
  const row = now.encoding[p];
  const some = row.slice(0, 4).map(signed).join(", ") + (row.length > 4 ? ", …" : "");
  const slowest = p / base ** ((d_model - 2) / d_model);
  const colors = (low, high) => `The faintest color is ${low}, the strongest ${high}.`;
  const range = (rows) => colors(signed(least(rows)), signed(most(rows)));
  const words = {
    none: {
      verdict: "All scores are equal: attention cannot tell the positions apart.",
      encoding: ["Nothing added", "The word is the same at every position."],
    },
    sinusoidal: {
      verdict: "The scores depend mostly on the distance, but also on the position itself.",
      encoding: ["Added to the word", `PE(${p}) = (${some}). ${colors("−1", "1")}`],
      similarity: "PE(p) · PE(p + offset)",
    },
    rotary: {
      verdict: "Each diagonal holds one score: only the offset counts.",
      encoding: [
        "Each pair, turned",
        `First pair: ${p} radians. Last: ${plain(slowest, 3)}. Each starts at the right.`,
      ],
    },
    alibi: {
      verdict:
        `Each diagonal holds one score: each step away takes off 1/${2 ** (head + 1)}, on ` +
        `either side.`,
      encoding: [
        "Added to a row of scores",
        `Each head has its own slope. ${range(blockOf(s, now))}`,
      ],
      similarity: "Added at each offset",
    },
    relative: {
      verdict:
        `Each diagonal holds one score, and the two sides differ. Beyond ${REACH} steps ` +
        `nothing changes.`,
      encoding: ["Added to a row of scores", `This table is made up. ${range(blockOf(s, now))}`],
      similarity: "Added at each offset",
    },
  }[kind];
  return {
    verdict: words.verdict,
    encoding: words.encoding,
    similarity: [
      words.similarity ?? "Score against the offset",
      `Offset: key minus query. Bold: the offsets at which position ${p} has a key.`,
    ],
    scores: [
      "Scores of one word",
      kind === "none" ? "Every score is 1.00." : `Without positions: 1.00. ${range(now.scores)}`,
    ],
  };
}

/** One of the three sheets; `seen` is for those who do not see it. */
const drawing = (part, seen, ...content) =>
  sheet(part, 240, 238, `${seen}; text and table below hold the numbers`, content);

function edge() {
  const { left, top, size } = SHEET;
  return line(`M${left} ${top}h${size}v${size}h-${size}z`);
}

/** Numbers as shares of the way from the least to the largest. */
function scaled(rows) {
  const [low, high] = [least(rows), most(rows)];
  return rows.map((row) => row.map((x) => (high - low < 1e-9 ? 0.5 : (x - low) / (high - low))));
}

/**
 * A heatmap of numbers from 0 to 1, with a frame around the row that is looked at. `rows` and
 * `columns` are what stands along a side, [name, first number, last number, role]; the row's own
 * number, `label`, stands in place of one at an end.
 */
function framed(values, row, label, { rows, columns }) {
  const { left, top, size } = SHEET;
  const [bottom, end] = [top + size, left + size];
  const [across, down] = [size / values[0].length, size / values.length];
  const place =
    `translate(${short(left + across / 2)} ${top}) ` + `scale(${short(across)} ${short(down)})`;
  const y = top + row * down;
  const middle = y + down / 2;
  const picked = { "text-anchor": "end", "font-weight": "bold" };
  const at = (anchor) => ({ "text-anchor": anchor });
  const along = {
    transform: `translate(13 ${top + size / 2}) rotate(-90)`,
    fill: `var(--${rows[3]})`,
  };
  return [
    element("g", { transform: place, class: "cells" }, shades(values, SHADES)),
    edge(),
    line(`M${left} ${short(y - 0.75)}h${size}v${short(down + 1.5)}h-${size}z`, {
      stroke: "var(--query)",
      "stroke-width": 1.5,
    }),
    text(label, left - 5, Math.min(Math.max(middle + 4, top + 9), bottom), "query", picked),
    middle >= top + 18 && text(rows[1], left - 5, top + 9, "muted", at("end")),
    middle <= bottom - 18 && text(rows[2], left - 5, bottom, "muted", at("end")),
    element("text", { ...along, ...at("middle") }, rows[0]),
    text(columns[1], left, bottom + 14),
    text(columns[2], end, bottom + 14, "muted", at("end")),
    text(columns[0], left + size / 2, bottom + 14, columns[3], at("middle")),
  ];
}

/** A clock for each pair, its hand turned as the picked position turns the pair. */
function clocks({ position, d_model }, { encoding }) {
  const { left, top, size } = SHEET;
  const pairs = d_model / 2;
  const columns = Math.ceil(Math.sqrt(pairs));
  const side = size / columns;
  const above = top + (size - side * Math.ceil(pairs / columns)) / 2;
  const radius = 0.42 * side;
  const [r, f] = [radius.toFixed(2), (x) => x.toFixed(2)];
  let [faces, needles] = ["", ""];
  for (let i = 0; i < pairs; i++) {
    const x = left + ((i % columns) + 0.5) * side;
    const y = above + (Math.floor(i / columns) + 0.5) * side;
    const [cos, sin] = encoding[position].slice(2 * i, 2 * i + 2);
    faces += `M${f(x + radius)} ${f(y)}a${r} ${r} 0 1 0 ${f(-2 * radius)} 0`;
    faces += `a${r} ${r} 0 1 0 ${f(2 * radius)} 0h-${f(0.3 * radius)}`;
    needles += `M${f(x)} ${f(y)}l${f(radius * cos)} ${f(-radius * sin)}`;
  }
  return [
    line(faces),
    line(needles, { stroke: "var(--ink)", "stroke-width": 2.5, "data-part": "hands" }),
  ];
}

/** What the positions add or turn. */
function encodingOf(s, now) {
  const last = String(N - 1);
  if (s.kind === "sinusoidal") {
    const values = now.encoding.map((row) => row.map((x) => (x + 1) / 2));
    const columns = ["dimension", "0", s.d_model - 1, "muted"];
    return framed(values, s.position, s.position, {
      rows: ["position", "0", last, "muted"],
      columns,
    });
  }
  if (isBiased(s.kind)) {
    const columns = ["key at position", "0", last, "muted"];
    return framed(scaled(blockOf(s, now)), s.head, s.head + 1, {
      rows: ["head", "1", N_HEADS, "muted"],
      columns,
    });
  }
  return [edge(), s.kind === "rotary" && clocks(s, now)];
}

/** The similarity against the offset, and that of the other heads. */
function curves({ kind, position: p, d_model }, { similarity, biases }) {
  const { left, top, size, pad } = SHEET;
  const [middle, bottom, end] = [left + size / 2, top + size, left + size];
  const [low, high] = {
    sinusoidal: [-d_model / 2, d_model / 2],
    alibi: [-32, 0],
    relative: [-6, 2],
  }[kind] ?? [-1, 1];
  const y = (value) => top + pad + ((size - 2 * pad) * (high - value)) / (high - low);
  const x = (offset) => left + (size * (offset + N - 1)) / (2 * N - 2);
  const path = (values, first = 1 - N) =>
    `M${values.map((value, k) => `${x(first + k).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
  const at = (anchor) => ({ "text-anchor": anchor });
  const tick = (value) => text(whole(value), left - 5, y(value) + 4, "muted", at("end"));
  const reach = { stroke: "var(--ink)", "stroke-width": 3, "data-part": "reach" };
  return [
    edge(),
    line(`M${middle} ${top}v${size}`),
    line(`M${left} ${y(0).toFixed(1)}h${size}`),
    isBiased(kind) && line(biases.map((row) => path(row)).join(""), { "data-part": "others" }),
    line(path(similarity), { stroke: "var(--muted)", "stroke-width": 1.5, "data-part": "curve" }),
    line(path(reached(similarity, p), -p), reach),
    tick(high),
    low < 0 && 0 < high && tick(0),
    tick(low),
    text("−63", left, bottom + 14),
    text("0", middle, bottom + 14, "muted", at("middle")),
    text("63", end, bottom + 14, "muted", at("end")),
    text("← key before", left, bottom + 28, "key"),
    text("key after →", end, bottom + 28, "key", at("end")),
  ];
}

/** The slider of the base, by stops. */
function baseSlider(s, more = {}) {
  const base = plain(s.base, 6);
  const stop = nearest(STOPS.map(Math.log), Math.log(s.base));
  const all = {
    type: "range",
    name: "base",
    min: 0,
    max: STOPS.length - 1,
    value: stop,
    "aria-valuetext": base,
  };
  return html`<label${more.disabled && html` class="idle"`}><span>Base <b
class="number">${base}</b></span>${element("input", { ...all, ...more })}</label>`;
}

/** What the scenes that move compute, and what their pictures glide over. */
export const layout = ({ scene }) => `scene-${scene}`;
export const pose = poseOf;
export const scenes = (s) => ({ order: order(s), clocks: hands(s), turned: turned(s) });

export const picture = (s) =>
  ({ order: ordering, clocks: (t) => clocking(t, baseSlider(t)), turned: turning })[s.scene]?.(s) ??
  scoring(s);

function scoring(s) {
  const now = compute(s);
  const { position: p } = s;
  const words = sentences(s, now);
  const head = `${s.head + 1} of ${N_HEADS}`;
  const control = (name, title, value, more) => {
    const idle = name !== "position" && !USES[s.kind].includes(name);
    return element(
      "label",
      { class: name === "position" ? "main" : idle && "idle" },
      html`<span>${title} <b class="number">${value}</b></span>`,
      slider(name, s, { ...more, disabled: idle }),
    );
  };
  const score = (name, q, at) =>
    html`<p><b class="big" data-part="${name}">${
      q in places ? signed(now.scores[p][q]) : "–"
    }</b><span>${at}</span></p>`;
  const panel = (name, content, note = words[name]) =>
    html`<div class="panel"><p>${note[0]}</p>${content}<p class="cell">${note[1]}</p></div>`;
  const ends = ["0", String(N - 1)];
  const sides = {
    rows: ["query at position", ...ends, "query"],
    columns: ["key at position", ...ends, "key"],
  };
  return [
    html`<div class="kinds one-of" role="group" aria-label="Kind of positions">${Object.entries(
      KINDS,
    ).map(([kind, label]) =>
      element(
        "button",
        { type: "button", name: kind, "aria-pressed": String(kind === s.kind) },
        label,
      ),
    )}</div>`,
    html`<div class="controls">
${control("position", "Position", p, { value: p })}
${control("d_model", html`<i>d</i><sub>model</sub>`, s.d_model, { step: 2, value: s.d_model })}
${baseSlider(s, { disabled: !USES[s.kind].includes("base") })}
${control("head", "Head", head, { value: s.head, "aria-valuetext": head })}
${buttons()}</div>`,
    html`<div class="readout">
<p>Scores of position ${p} with position</p>
<div class="trio">${score("before", p - 1, p ? p - 1 : "none before")}
${score("itself", p, `${p}, itself`)}
${score("after", p + 1, p < N - 1 ? p + 1 : "none after")}</div>
<p class="verdict" aria-live="polite">${words.verdict}</p>
</div>`,
    html`<div class="panels">
${panel("encoding", drawing("encoding", "What the positions add or turn", encodingOf(s, now)))}
${panel("similarity", drawing("similarity", "A curve against the offset", curves(s, now)))}
${panel(
  "scores",
  drawing("scores", "Heatmap of the scores", framed(scaled(now.scores), p, p, sides)),
)}</div>`,
    () => html`<div class="visually-hidden"><p>Encoding of position ${p}:
${now.encoding[p].map(signed).join(", ")}.</p>
${table(
  "The curve and the scores at the picked position",
  ["key", "offset", "curve", "score"],
  reached(now.similarity, p).map((alike, j) => [
    `position ${j}`,
    whole(j - p),
    signed(alike),
    signed(now.scores[p][j]),
  ]),
)}</div>`,
  ];
}

/** Runnable NumPy for what is on the screen. */
export function code(s) {
  const { kind, position, d_model, base, head } = s;
  if (s.scene !== "scores") return sceneCode(s);
  const angles = "angles = np.arange(n)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)";
  const offset = "offset = np.arange(n) - np.arange(n)[:, None]  # key minus query";
  const before = {
    sinusoidal: [
      angles,
      "encoding = np.empty((n, d_model))",
      "encoding[:, 0::2], encoding[:, 1::2] = np.sin(angles), np.cos(angles)",
      "words = words + encoding",
    ],
    rotary: [
      angles,
      "cos, sin, even, odd = np.cos(angles), np.sin(angles), words[:, 0::2], words[:, 1::2]",
      "words = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(n, " +
        "d_model)",
    ],
  }[kind];
  const after = {
    alibi: [
      offset,
      "slopes = 2.0 ** -np.arange(1, 9)  # one a head",
      "bias = -slopes[:, None, None] * abs(offset)",
    ],
    relative: [
      offset,
      "table = 2 - abs(np.arange(-8, 9) + np.arange(8)[:, None] + 1) / 2  # made up, not learned",
      "bias = table[:, np.clip(offset, -8, 8) + 8]",
    ],
  }[kind];
  return [
    "import numpy as np",
    "",
    `n, d_model, position = ${N}, ${d_model}, ${position}`,
    ...(before ? [`base = ${base}`] : []),
    "word = np.tile([1.0, 0.0], d_model // 2) / np.sqrt(d_model / 2)  # of length 1",
    "words = np.tile(word, (n, 1))  # the same at every position",
    ...(before ?? []),
    "# Queries and keys are words * d_model ** 0.25, which the division by sqrt(d_model) takes " +
      "back.",
    "scores = words @ words.T",
    ...(after ? [...after, `scores = scores + bias[${head}]`] : []),
    'print("scores of the word at position", position)',
    "print(scores[position].round(2))",
  ];
}

export function live(view) {
  for (const kind of Object.keys(KINDS)) view.on(kind, "click", () => view.set({ kind }));
  for (const name of ["position", "d_model", "head", "distance"]) {
    view.on(name, "input", (event) => view.set({ [name]: Number(event.target.value) }));
  }
  view.on("base", "input", (event) => view.set({ base: STOPS[event.target.value] }));
  const pick = (event, svg, name, many) => {
    const cell =
      event.type === "click" || event.buttons ? cellAt(event, svg, 240, many, SHEET) : null;
    if (cell?.inside) view.set({ [name]: cell.i });
  };
  for (const type of ["click", "pointermove"]) {
    view.on("scores", type, (event, svg) => pick(event, svg, "position", N));
    view.on("encoding", type, (event, svg) => {
      const { kind } = view.state();
      if (kind === "sinusoidal") pick(event, svg, "position", N);
      if (isBiased(kind)) pick(event, svg, "head", N_HEADS);
    });
  }
  liveScene(view);
}
