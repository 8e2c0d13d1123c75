/**
 * The scenes of PositionsExplorer that move: words that change places, positions as hands of
 * clocks, and a query and a key that turn with their positions.
 */
import { arrow, through } from "../drawing/geometry.js";
import { buttons, element, html, line, sheet, table, text } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, weightPanel } from "../drawing/microscope.js";
import { dotProducts, multiply, softmax, two } from "../kit/numbers.js";

/** The words of "order" with their numbers, which are query, key and value alike. */
const WORDS = ["dog", "bites", "man"];
const ROWS = [
  [2, 0, 1, 0],
  [0, 1, 2, 0],
  [0, 2, 0, 1],
];
/** What turns in "turned": the first two pairs of a query and of a key, all further numbers 0. */
const QUERY = [2, 0, 1, 1];
const KEY = [1, 1, 2, 0];
const MOST = 4; // clocks that are drawn

/** How far the hand of clock i turns from one position to the next, in radians. */
const turnOf = (i, { d_model, base }) => base ** ((-2 * i) / d_model);

/**
 * The numbers of a picture on its way: 0 to 1 for the two switches, then a position and a distance.
 */
export const poseOf = (s) => [[Number(s.swapped), Number(s.placed), s.position, s.distance]];
const posed = (s) => (s.moving ?? poseOf(s))[0];

/**
 * Where each word stands, what goes in, the weights and what comes out: rows in the order of WORDS.
 */
export function order(s) {
  const [swap, placed] = posed(s);
  const places = [2 * swap, 1, 2 - 2 * swap];
  const inputs = ROWS.map((row, w) =>
    row.map((x, c) => {
      const angle = places[w] * turnOf(c >> 1, { d_model: 4, base: s.base });
      return x + placed * (c % 2 ? Math.cos(angle) : Math.sin(angle));
    }),
  );
  const weights = dotProducts(inputs, inputs, 4).map((row) =>
    softmax(row.map((score) => score / 2)),
  );
  return { places, inputs, weights, outputs: multiply(weights, inputs) };
}

/** What the microscope needs of a weight of "order". */
function weightOf(s) {
  const { inputs, weights } = order({ ...s, moving: null });
  const [i, j] = s.lens;
  return {
    queryName: WORDS[i],
    names: WORDS,
    j,
    query: inputs[i],
    key: inputs[j],
    scores: dotProducts([inputs[i]], inputs, 4)[0],
    divisor: [2, "√4"],
    weights: weights[i],
    values: inputs,
  };
}

/** For each clock the angles of its two hands, and the cosine of what lies between. */
export function hands(s) {
  const [, , p, k] = posed(s);
  const all = Array.from({ length: s.d_model / 2 }, (_, i) => turnOf(i, s));
  const pairs = all.map((turn) => ({
    turn,
    from: p * turn,
    to: (p + k) * turn,
    cosine: Math.cos(k * turn),
  }));
  return { pairs, match: pairs.reduce((sum, { cosine }) => sum + cosine, 0) };
}

/**
 * The pairs of the query at p + k and of the key at p as they are turned, and what each adds to the
 * score.
 */
export function turned(s) {
  const [, , p, k] = posed(s);
  const turn = ([a, b], angle) => [
    a * Math.cos(angle) - b * Math.sin(angle),
    a * Math.sin(angle) + b * Math.cos(angle),
  ];
  const pairs = Array.from({ length: Math.min(2, s.d_model / 2) }, (_, i) => {
    const [turns, pair] = [turnOf(i, s), (row) => row.slice(2 * i, 2 * i + 2)];
    const [query, key] = [turn(pair(QUERY), (p + k) * turns), turn(pair(KEY), p * turns)];
    return {
      turn: turns,
      before: [pair(QUERY), pair(KEY)],
      query,
      key,
      score: query[0] * key[0] + query[1] * key[1],
    };
  });
  return { pairs, score: pairs.reduce((sum, { score }) => sum + score, 0) };
}

/** Two decimals, with a true minus and no minus before 0.00. */
export function signed(x) {
  const size = two(Math.abs(x));
  return (x < 0 && size !== "0.00" ? "−" : "") + size;
}

const brief = (x) => String(Number(x.toPrecision(3)));
const short = (x) =>
  x > 0 && x < 0.0005 ? "≈ 0" : String(Number(Number(x.toPrecision(3)).toFixed(3)));
const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const middle = { "text-anchor": "middle" };
const bold = { "font-weight": "bold" };

/** A bar for each number of a row, up or down from a line at y. */
function bars(row, x, y, role) {
  const [wide, unit] = [15, 11];
  const left = x - 2 * wide;
  const d = row.map(
    (value, c) =>
      `M${(left + c * wide + 2).toFixed(1)} ` +
      `${y}h${wide - 4}v${(-unit * value).toFixed(1)}h${4 - wide}Z`,
  );
  return [
    element("path", { d: d.join(""), fill: `var(--${role})` }),
    line(`M${left} ${y}h${4 * wide}`),
  ];
}

function orderSheet({ places, inputs, weights, outputs }) {
  const x = (w) => 78 + 98 * places[w];
  const ways = weights.flatMap((row, to) =>
    row.map((weight, from) => {
      const [a, b] = [x(from), x(to)];
      const d = `M${a.toFixed(1)} 102C${a.toFixed(1)} 132 ${b.toFixed(1)} 122 ${b.toFixed(1)} 152`;
      return [
        line(d, {
          stroke: "var(--weight)",
          "stroke-width": Math.max(14 * weight, 0.3),
          opacity: 0.55,
        }),
        line(d, {
          stroke: "transparent",
          "stroke-width": Math.max(14 * weight, 9),
          "data-way": `${to}.${from}`,
        }),
      ];
    }),
  );
  return sheet(
    "order",
    340,
    212,
    "Three words, what goes in, the weights as lines and what comes out; the table below holds " +
      "the numbers",
    [0, 1, 2].map((place) => text(`position ${place}`, 78 + 98 * place, 12, "muted", middle)),
    text("in", 8, 87, "muted"),
    text("out", 8, 194, "muted"),
    ways,
    WORDS.map((word, w) => [
      text(word, x(w), 40, "ink", { ...middle, ...bold, "data-part": word }),
      bars(inputs[w], x(w), 87, "ink"),
      bars(outputs[w], x(w), 194, "value"),
    ]),
  );
}

const button = (name, label, more = {}) =>
  element("button", { type: "button", name, ...more }, label);

function range(name, title, value, more) {
  const all = { type: "range", name, min: 0, value, ...more };
  return html`<label><span>${title} <b
class="number">${value}</b></span>${element("input", all)}</label>`;
}

export function ordering(s) {
  const now = order(s);
  const still = (swapped) => order({ ...s, moving: null, swapped });
  const [before, after] = [still(false), still(s.swapped)];
  const same = (w) => after.outputs[w].every((x, c) => Math.abs(x - before.outputs[w][c]) < 1e-9);
  const verdict = !s.swapped
    ? "dog bites man. Now swap dog and man."
    : WORDS.every((_, w) => same(w))
      ? "man bites dog, and every word has the same output. The order is lost."
      : "man bites dog, and the outputs are different. The order is noticed.";
  const row = (values) => `(${values.map(signed).join(", ")})`;
  const pressed = (on) => ({ "aria-pressed": String(on) });
  return [
    html`<div class="controls"><p
class="switches one-of main">${button("swapped", "Swap dog and man", pressed(s.swapped))}
${button("placed", "Add positions", pressed(s.placed))}</p></div>`,
    html`<div class="stage">${orderSheet(now)}</div>`,
    html`<div class="readout"><p class="verdict" aria-live="polite">${verdict}</p>
<table class="outs"><caption>The outputs. Tap a word or a line to see why.</caption>${WORDS.map(
      (word, w) => html`<tr><th scope="row">
<button type="button" data-why="${w}"
aria-label="${word}: why">${word}</button></th><td>${row(now.outputs[w])}</td></tr>`,
    )}</table>${buttons()}</div>`,
    weightPanel(s.lens && weightOf(s)),
    () =>
      html`<div class="visually-hidden">${table(
        "What goes in, and the weights on dog, bites and man",
        ["", "goes in", "weights"],
        WORDS.map((word, w) => [word, row(after.inputs[w]), row(after.weights[w])]),
      )}</div>`,
  ];
}

/** The two hands of a clock, for two places: no roles, so without their colors. */
const STROKES = {
  from: { stroke: "var(--ink)", "stroke-width": 2.5 },
  to: { stroke: "var(--muted)", "stroke-width": 2.5, "stroke-dasharray": "6 3" },
};

/** One clock: its face, the way from one hand to the other, and the two hands, as arrows turn. */
function clock({ from, to }, x, y, r) {
  const at = (angle, far = r) => [x + far * Math.cos(angle), y - far * Math.sin(angle)];
  const way = Math.min(to - from, 2 * Math.PI);
  const arc = Array.from({ length: 41 }, (_, t) => at(from + (way * t) / 40, 0.55 * r));
  const hand = (angle, part) =>
    element("path", {
      d: arrow([x, y], at(angle, 0.94 * r), 9),
      fill: STROKES[part].stroke,
      ...STROKES[part],
      "data-part": part,
    });
  return [
    element("circle", { cx: x, cy: y, r, fill: "none", stroke: "var(--line)" }),
    line(through([at(0, r), at(0, 0.86 * r)])),
    way > 0.001 && line(through(arc), { "stroke-width": 3, opacity: 0.5 }),
    hand(to, "to"),
    hand(from, "from"),
  ];
}

function clocksSheet({ pairs }, { position: p, distance: k }) {
  const one = (pair, i) => {
    const [x, y] = [42 + 172 * (i % 2), 72 + 96 * (i >> 1)];
    const round = (2 * Math.PI) / pair.turn;
    const lines = [
      "full turn in",
      `${brief(round)}${round < 1e4 ? " words" : ""}`,
      `turns ${short(k * pair.turn)}`,
      `cos ${signed(pair.cosine)}`,
    ];
    const all = lines.map((words, at) =>
      text(words, x + 46, y - 24 + 19 * at, at ? "ink" : "muted"),
    );
    return [clock(pair, x, y, 40), all];
  };
  return sheet(
    "clocks",
    340,
    214,
    "Clocks with a hand for each of two positions; the table below holds the numbers",
    text(`position ${p}`, 4, 16, "ink", bold),
    text(`position ${p + k}`, 92, 16, "muted", bold),
    line("M4 23h52", STROKES.from),
    line("M92 23h52", STROKES.to),
    pairs.slice(0, MOST).map(one),
  );
}

const walk = ({ position }) => [
  button("on1", "1 word further", { disabled: position > 62 }),
  button("on10", "10 words further", { disabled: position > 53 }),
];

const places = (s, first = html`Position <i>p</i>`) => [
  range("position", first, s.position, { max: 63 }),
  range("distance", html`Distance <i>k</i>`, s.distance, { max: 16 }),
];

export function clocking(s, base) {
  const now = hands(s);
  const n = now.pairs.length;
  const all = n > MOST ? `; ${MOST} are shown` : "";
  return [
    html`<div class="controls two">${places(s)}${base}
<p class="buttons">${walk(s)}</p></div>`,
    html`<div class="stage">${clocksSheet(now, s)}</div>`,
    html`<div class="readout"><p>Sum of the cosines</p>
<p><b class="big" data-part="match">${signed(now.match)}</b></p>
<p class="said">${many(s.distance, "word")} apart, ${many(n, "clock")}${all}.</p>
${buttons()}</div>`,
    () =>
      html`<div class="visually-hidden">${table(
        "The clocks",
        ["clock", "radians a word", "sin and cos at p", "sin and cos at p + k"],
        hands({ ...s, moving: null }).pairs.map(({ turn, from, to }, i) => [
          i,
          brief(turn),
          ...[from, to].map((angle) => `${signed(Math.sin(angle))}, ${signed(Math.cos(angle))}`),
        ]),
      )}</div>`,
  ];
}

function turnedSheet({ pairs }, { position: p, distance: k }) {
  const [y, unit] = [96, 33];
  const ends =
    (x) =>
    ([a, b], far = unit) => [x + far * a, y - far * b];
  const one = ({ turn, before, query, key, score }, i) => {
    const x = pairs.length === 1 ? 170 : 85 + 170 * i;
    const at = ends(x);
    const hand = (to, role, part) =>
      element("path", {
        d: arrow([x, y], at(to), 10),
        stroke: `var(--${role})`,
        fill: `var(--${role})`,
        "stroke-width": 3,
        "data-part": part,
      });
    const ghost = (to, role) =>
      line(through([[x, y], at(to)]), { stroke: `var(--${role})`, "stroke-dasharray": "3 4" });
    const name = (to, role, word) => {
      const [tx, ty] = ends(x)(to.map((c) => (c * (Math.hypot(...to) + 0.3)) / Math.hypot(...to)));
      return text(word, tx, ty + 5, role, { ...middle, ...bold });
    };
    return [
      element("circle", {
        cx: x,
        cy: y,
        r: unit * Math.hypot(...before[0]),
        fill: "none",
        stroke: "var(--line)",
      }),
      element("circle", {
        cx: x,
        cy: y,
        r: unit * Math.hypot(...before[1]),
        fill: "none",
        stroke: "var(--line)",
      }),
      ghost(before[1], "key"),
      ghost(before[0], "query"),
      hand(key, "key", "key"),
      hand(query, "query", "query"),
      name(key, "key", "K"),
      name(query, "query", "Q"),
      text(`${brief(turn)} ${turn === 1 ? "radian" : "radians"} a word`, x, 196, "muted", middle),
      text(`adds ${signed(score)}`, x, 214, "ink", middle),
    ];
  };
  const description =
    `The query at ${p + k} and the key at ${p}, turned; ` + "the table below holds the numbers";
  return sheet("turned", 340, 220, description, pairs.map(one));
}

export function turning(s) {
  const now = turned(s);
  const row = (values) => `(${values.map(signed).join(", ")})`;
  return [
    html`<div class="controls two">${places(s, html`Key at <i>p′</i>`)}
<p class="buttons">${walk(s)}</p></div>`,
    html`<div class="stage">${turnedSheet(now, s)}</div>`,
    html`<div class="readout"><p class="both"><span class="query">Query at
${s.position + s.distance}</span>
<span class="key">key at ${s.position}</span></p>
<p>score <b class="big" data-part="match">${signed(now.score)}</b></p>
<p class="said">The key is ${many(s.distance, "word")} back. Dashed: before turning.</p>
${buttons()}</div>`,
    () =>
      html`<div class="visually-hidden">${table(
        "The pairs after turning",
        ["pair", "query", "key", "adds to the score"],
        turned({ ...s, moving: null }).pairs.map(({ query, key, score }, i) => [
          i,
          row(query),
          row(key),
          signed(score),
        ]),
      )}</div>`,
  ];
}

/** Runnable NumPy for what these scenes show. */
export function sceneCode({ scene, swapped, placed, position, distance, d_model, base }) {
  const row = (numbers) => `[${numbers.join(", ")}]`;
  if (scene === "order") {
    return [
      "import numpy as np",
      "",
      `X = np.array([${ROWS.map(row).join(", ")}], dtype=float)  # ${WORDS.join(", ")}`,
      `places = np.array(${swapped ? "[2, 1, 0]" : "[0, 1, 2]"})`,
      `angles = places[:, None] / ${base} ** np.array([0, 0.5])  # two clocks`,
      "encoding = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(3, 4)",
      `X = X + ${Number(placed)} * encoding`,
      "exponentials = np.exp(X @ X.T / np.sqrt(4))",
      "weights = exponentials / exponentials.sum(axis=1, keepdims=True)",
      "outputs = weights @ X",
      "print(outputs.round(2))",
    ];
  }
  const start = [
    "import numpy as np",
    "",
    `p, k, d_model, base = ${position}, ${distance}, ${d_model}, ${base}`,
    "turn = base ** (-np.arange(0, d_model, 2) / d_model)  # radians a word",
  ];
  if (scene === "clocks") {
    return [
      ...start,
      "here, there = [np.stack([np.sin(at * turn), np.cos(at * turn)]) for at in (p, p + k)]",
      "match = (here * there).sum()",
      "print(match.round(2))",
    ];
  }
  const n = Math.min(4, d_model);
  return [
    ...start,
    `query, key = np.zeros((2, d_model))`,
    `query[:4], key[:4] = ${row(QUERY.slice(0, n))}, ${row(KEY.slice(0, n))}`,
    "def turned(x, at):",
    "    a, b, cos, sin = x[0::2], x[1::2], np.cos(at * turn), np.sin(at * turn)",
    "    return np.stack([a * cos - b * sin, a * sin + b * cos])",
    "score = (turned(query, p + k) * turned(key, p)).sum()",
    "print(score.round(2))",
  ];
}

export function liveScene(view) {
  if (view.state().scene === "order") {
    const heaviest = (i) => {
      const row = order(view.state()).weights[i];
      return row.indexOf(Math.max(...row));
    };
    view.listen(view.root, "click", ({ target }) => {
      const { why, way } = target.closest("[data-why], [data-way]")?.dataset ?? {};
      if (way) openMicroscope(view, way.split(".").map(Number));
      if (why) openMicroscope(view, [Number(why), heaviest(Number(why))]);
    });
    liveMicroscope(view);
  }
  for (const name of ["swapped", "placed"])
    view.on(name, "click", () => view.glide({ [name]: !view.state()[name] }));
  for (const far of [1, 10]) {
    view.on(`on${far}`, "click", () =>
      view.glide({ position: Math.min(view.state().position + far, 63) }),
    );
  }
}
