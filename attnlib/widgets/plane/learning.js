/**
 * The scene of Plane in which queries are learned: W_Q turns and stretches three words until their
 * queries point at the right keys, one step of gradient descent at a time.
 *
 * There are two losses, named by what the teacher knows: "entry" is the right drink, and the loss
 * is the mean of -ln of its weight; "cost" is only what the right drink costs, and the loss is the
 * mean square of how far the average cost is off.
 */
import { arrow, direction, placed, through } from "../drawing/geometry.js";
import { cellInk } from "../drawing/heatmap.js";
import { attributes, buttons, element, html, select, table } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, weightPanel } from "../drawing/microscope.js";
import {
  clamp,
  multiply,
  nearest,
  plain,
  softmax,
  sum,
  transpose,
  wordVector,
} from "../kit/numbers.js";

export const STEPS = 100;
const DRINKS = ["tea", "coffee", "juice"];
const COSTS = [2, 3, 5];
const WORDS = ["chai", "latte", "lemonade"]; // each should find the drink of its place
const LOSSES = { entry: "cross-entropy", cost: "squared error" };
const RATES = [0.03, 0.1, 0.3, 1, 3, 10, 30];
const PER_SECOND = 14; // steps while it plays
const SLOWLY = 3; // steps a second for a single one

/** The drawing, in units of a 320 x 300 sheet; and the curve of the loss on one of 240 x 72. */
const MIDDLE = [160, 168];
const SHEET = [320, 300];
const REACH = 128; // from the middle to the rim
const UNIT = 32; // the scale never changes; an arrow that is longer than the rim is cut there
const RINGS = [1, 2, 3];
const CURVE = { left: 4, top: 6, wide: 232, tall: 58 };

/** A row for each angle, in degrees against the clock, of this length. */
const rowsAt = (length, degrees) =>
  degrees.map((degree) => {
    const angle = (degree * Math.PI) / 180;
    return [length * Math.cos(angle), length * Math.sin(angle)];
  });

const X = rowsAt(2, [20, 60, 155]); // the words
const KEYS = rowsAt(1, [90, 210, 330]); // of the drinks

const costOf = (row) => sum(row.map((weight, j) => weight * COSTS[j]));

/** The loss of the weights, by the teacher. */
const lossOf = (teacher, weights) =>
  sum(
    weights.map((row, i) =>
      teacher === "entry" ? -Math.log(row[i]) : (costOf(row) - COSTS[i]) ** 2,
    ),
  ) / 3;

/** Queries, weights and the loss of a W_Q. */
function forward(teacher, w_q) {
  const queries = multiply(X, w_q);
  const scores = multiply(queries, transpose(KEYS));
  const weights = scores.map((row) => softmax(row.map((score) => score / Math.sqrt(2))));
  return { queries, scores, weights, loss: lossOf(teacher, weights) };
}

/** How the loss changes with one scaled score: that of word i with key j. */
function slopeOf(teacher, row, i, j) {
  if (teacher === "entry") return (row[j] - Number(i === j)) / 3;
  const cost = costOf(row);
  return (2 / 3) * (cost - COSTS[i]) * row[j] * (COSTS[j] - cost);
}

/** How the loss changes with W_Q. */
function backward(teacher, weights) {
  const scores = weights.map((row, i) =>
    row.map((_, j) => slopeOf(teacher, row, i, j) / Math.sqrt(2)),
  );
  return multiply(transpose(X), multiply(scores, KEYS));
}

const known = new Map(); // the way that is on the screen

/** W_Q before the first step and after each, one more than is shown: where the last would lead. */
function matrices({ start, rate, teacher }) {
  const name = `${start} ${rate} ${teacher}`;
  if (known.has(name)) return known.get(name);
  const [a, b, c, d] = wordVector(`start ${start}`, "W_Q", 4).map((x) => 0.35 * x);
  const all = [
    [
      [a, b],
      [c, d],
    ],
  ];
  while (all.length <= STEPS + 1) {
    const now = all.at(-1);
    const slopes = backward(teacher, forward(teacher, now).weights);
    all.push(now.map((row, i) => row.map((w, j) => w - rate * slopes[i][j])));
  }
  known.clear();
  known.set(name, { all, losses: all.slice(0, -1).map((w_q) => forward(teacher, w_q).loss) });
  return known.get(name);
}

/** W_Q at a step, which may lie between two. */
export function learnedMatrix(s) {
  const { all } = matrices(s);
  const whole = Math.floor(s.step);
  const part = s.step - whole;
  return all[whole].map((row, i) => row.map((w, j) => w + (all[whole + 1][i][j] - w) * part));
}

/** All numbers at the step, as attnlib gives them in Python. */
export function learned(s) {
  const w_q = learnedMatrix(s);
  const now = forward(s.teacher, w_q);
  return { tokens: DRINKS, points: KEYS, w_q, ...now, output: multiply(now.weights, KEYS) };
}

/** The right weights, as they are read. */
const rightOf = (weights) => weights.map((row, i) => row[i].toFixed(2));

const two = (x) =>
  x
    .toFixed(2)
    .replace(/^-0\.00$/, "0.00")
    .replace("-", "−");
const n1 = (x) => Number(x.toFixed(1));
const line = (kind, d, more = {}) => d && element("path", { class: kind, d, ...more });

/** A point of the plane on the sheet; what lies beyond the rim is moved to the rim. */
const px = ([x, y]) => {
  const far = UNIT * Math.hypot(x, y);
  const scale = far > REACH ? (UNIT * REACH) / far : UNIT;
  return [MIDDLE[0] + scale * x, MIDDLE[1] - scale * y];
};

/** Where the name of a drink is written, beyond its key. */
const NAMED = [
  [0, -11],
  [-14, 18],
  [14, 18],
].map(([dx, dy], j) => [MIDDLE[0] + REACH * KEYS[j][0] + dx, MIDDLE[1] - REACH * KEYS[j][1] + dy]);

/** Points along a line that a name had better not cover. */
const marks = (from, to, price) =>
  [0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1].map((part) => [
    ...from.map((x, c) => x + part * (to[c] - x)),
    price,
  ]);

/** The names of the words and of their queries, none on top of another or of an arrow. */
function names(words, tips, next) {
  const box = (text) => [7.2 * text.length, 16];
  const labels = [
    ...words.map((point, i) => ({ text: WORDS[i], kind: "own-name", point, gap: 4, way: [0, -1] })),
    ...tips.map((point, i) => {
      const { unit } = direction(MIDDLE, point);
      return { text: `${WORDS[i]}?`, kind: "query-word", point, gap: 5, way: unit };
    }),
  ].map((label) => ({ ...label, size: box(label.text) }));
  const taken = [
    ...NAMED.flatMap(([x, y]) => [-16, 0, 16].map((dx) => [x + dx, y - 4, 20])),
    ...KEYS.flatMap((key) => marks(MIDDLE, px(key), 3)),
    ...tips.flatMap((tip, i) => [...marks(MIDDLE, tip, 8), ...marks(tip, next[i], 8)]),
    ...words.flatMap(([x, y]) => [-4, 0, 4].map((dx) => [x + dx, y, 8])),
  ];
  return placed(labels, taken, SHEET).map(([x, y], i) =>
    element(
      "text",
      { class: labels[i].kind, x: n1(x), y: n1(y + 4), "text-anchor": "middle" },
      labels[i].text,
    ),
  );
}

/** Keys, words, and queries with their ways and their next steps. */
function drawing(s, { queries, weights }) {
  const { all } = matrices(s);
  const whole = Math.floor(s.step);
  const gone = all.slice(0, whole + 1).map((w_q) => multiply(X, w_q));
  const next = multiply(X, all[whole + 1]).map(px);
  const tips = queries.map(px);
  const words = s.compact ? [] : X.map(px);
  const rim = ([x, y]) => [MIDDLE[0] + REACH * x, MIDDLE[1] - REACH * y];
  const right = rightOf(weights).join(", ");
  const label = `Three keys and three queries; the weights of the right keys are ${right}`;
  return html`<div class="picture"><svg viewBox="0 0 ${SHEET[0]} ${SHEET[1]}" role="img"
aria-label="${label}">
${RINGS.map((r) =>
  element("circle", {
    class: r === 1 ? "circle one" : "circle",
    cx: MIDDLE[0],
    cy: MIDDLE[1],
    r: r * UNIT,
  }),
)}${element("circle", { class: "circle rim", cx: MIDDLE[0], cy: MIDDLE[1], r: REACH })}
${line("border", KEYS.map(([x, y]) => through([MIDDLE, rim([-x, -y])])).join(""))}
${KEYS.map((key, j) => [
  line("ray", through([px(key), rim(key)])),
  line("key-arrow", arrow(MIDDLE, px(key), 9)),
  element("text", { class: "drink", x: n1(NAMED[j][0]), y: n1(NAMED[j][1]) }, DRINKS[j]),
])}
${tips.map((tip, i) => [
  line("gone", through([...gone.map((rows) => px(rows[i])), tip])),
  line("query-arrow", arrow(MIDDLE, tip, 9)),
  line("pull", arrow(tip, next[i], 6)),
])}
${words.map(([x, y]) => element("circle", { class: "own-place", cx: n1(x), cy: n1(y), r: 3.5 }))}
<g class="names" aria-hidden="true">${names(words, tips, next)}</g></svg></div>`;
}

/** Which loss, from which random W_Q on, and how far a step goes. */
function taught(s) {
  const rate = {
    min: 0,
    max: RATES.length - 1,
    value: nearest(RATES, s.rate),
    "aria-valuetext": plain(s.rate),
  };
  return html`<div class="taught"><label><span>Loss</span>${select(
    "teacher",
    LOSSES,
    s.teacher,
  )}</label>
<label><span>Seed</span>${element("input", {
    type: "text",
    inputmode: "numeric",
    autocomplete: "off",
    name: "start",
    value: s.start,
  })}</label>
<label><span>Learning rate <b
class="number">${plain(s.rate)}</b></span>${element("input", {
    type: "range",
    name: "rate",
    ...rate,
  })}</label></div>`;
}

/** The step, and the loss against it. */
function progress(s, { loss }) {
  const { losses } = matrices(s);
  const { left, top, wide, tall } = CURVE;
  const guessing = lossOf(
    s.teacher,
    [
      [1, 1, 1],
      [1, 1, 1],
      [1, 1, 1],
    ].map((row) => row.map((x) => x / 3)),
  );
  const most = Math.max(1.2 * guessing, ...losses);
  const spot = (value, step) => [left + (wide * step) / STEPS, top + tall * (1 - value / most)];
  const here = spot(loss, s.step);
  const level = spot(guessing, 0)[1];
  const step = Math.floor(s.step);
  return html`<div class="sharp of-learning"><label class="main"><span>Step <b
class="number">${step}</b></span>
${element("input", {
  type: "range",
  name: "step",
  min: 0,
  max: STEPS,
  value: step,
  "aria-valuetext": `step ${step}, loss ${loss.toFixed(2)}`,
})}</label>
<svg class="loss" viewBox="0 0 240 72" role="img"
aria-label="The loss against the step; at most ${most.toFixed(2)}"><path
class="floor" d="M${left} ${top + tall}h${wide}"/>
${line("guessing", through([spot(guessing, 0), spot(guessing, STEPS)]))}${line(
  "all",
  through(losses.map(spot)),
)}${line("so-far", through([...losses.slice(0, step + 1).map(spot), here]))}
<circle${attributes({ cx: n1(here[0]), cy: n1(here[1]), r: 3.5 })}/>${element(
    "text",
    { x: 236, y: n1(level < 20 ? level + 12 : level - 4) },
    `equal weights: ${guessing.toFixed(2)}`,
  )}</svg></div>`;
}

/**
 * The weights, the right ones down the diagonal; what the blend costs, if that is what is taught;
 * W_Q.
 */
function numbers(s, { weights, w_q }, matrix) {
  const costs = s.teacher === "cost";
  const cell = (weight, i, j) => html`<td class="${i === j ? "right" : ""}"
style="--w: ${(100 * weight).toFixed(1)}%; color: var(--${cellInk(weight)})"><button
type="button" class="digits" data-why="${i}${j}"
aria-label="${weight.toFixed(2)}: why ${WORDS[i]} gives it to ${DRINKS[j]}">${weight.toFixed(
    2,
  )}</button></td>`;
  return html`<div class="numbers of-learning${costs ? " costs" : ""}"><table><caption
class="visually-hidden">Weights: queries in rows, keys in columns</caption>
<thead><tr><td></td>${DRINKS.map(
    (drink, j) =>
      html`<th scope="col" class="key">${drink}${
        costs && html` <b class="value">${COSTS[j]}</b>`
      }</th>`,
  )}${costs && html`<th scope="col">costs</th>`}</tr></thead>
<tbody>${weights.map(
    (row, i) =>
      html`<tr><th scope="row"
class="query">${WORDS[i]}?</th>${row.map((weight, j) => cell(weight, i, j))}${
        costs && html`<td class="value">${costOf(row).toFixed(2)}</td>`
      }</tr>`,
  )}</tbody></table>
${matrix(w_q)}</div>`;
}

/**
 * What the microscope needs of a weight: values are the costs, where they are taught, or the
 * keys.
 */
const weightOf = ({ teacher, lens: [i, j] }, { queries, scores, weights }) => ({
  queryName: WORDS[i],
  names: DRINKS,
  j,
  query: queries[i],
  key: KEYS[j],
  scores: scores[i],
  divisor: [Math.SQRT2, "√2"],
  weights: weights[i],
  values: teacher === "cost" ? COSTS.map((cost) => [cost]) : KEYS,
});

/** For the ear: where the queries are. */
const spoken = (s, { queries, weights, loss }) => html`<div class="visually-hidden">
<p role="status">After ${Math.floor(s.step)} steps the loss is ${loss.toFixed(2)}
and the right drinks get ${rightOf(weights).join(", ")}.</p>
${table(
  "The queries",
  ["word", "across", "up", "weight of the right key"],
  queries.map((query, i) => [WORDS[i], two(query[0]), two(query[1]), weights[i][i].toFixed(2)]),
)}</div>`;

/** The sections of the scene; `moving` is a W_Q on its way. */
export function learningSections(s, matrix, none) {
  const w_q = s.moving ?? learnedMatrix(s);
  const now = { w_q, ...forward(s.teacher, w_q) };
  const done = s.step >= STEPS;
  const playing = s.until === STEPS;
  const button = (name, title, more = {}) =>
    element("button", { type: "button", name, ...more }, title);
  const full = (section) => (s.compact ? none : section);
  return [
    html`<div class="sentence${s.compact ? " trained compact" : ""}"><p
class="play">${button("play", playing ? "Pause" : done ? "Again" : "Train", { class: "big" })}
${button("one", "One step", { disabled: done })}${button("another", "New start")}</p>
<p class="answer">loss <b
data-part="answer">${now.loss.toFixed(2)}</b></p>${s.compact || taught(s)}</div>`,
    none,
    drawing(s, now),
    progress(s, now),
    full(numbers(s, now, matrix)),
    html`<div class="more">${buttons()}</div>`,
    () => spoken(s, now),
    html`<p class="said hint"><b class="key">Dotted line</b>: the keys. <b class="query">With
“?”</b>: the queries. The arrow at the tip of each: where the next step takes it.${
      s.compact
        ? ""
        : " Small rings: the words. An arrow that reaches the rim is longer than it is drawn. " +
          "Tap a weight to see why."
    }</p>`,
    weightPanel(s.lens && weightOf(s, now)),
  ];
}

/** Runnable NumPy for the whole way to the step on the screen. */
export function learningCode(s) {
  const entry = s.teacher === "entry";
  return [
    "import numpy as np",
    "",
    "def rows_at(length, degrees):",
    "    angles = np.radians(degrees)",
    "    return length * np.stack([np.cos(angles), np.sin(angles)], axis=1)",
    "x = rows_at(2, [20, 60, 155])  # chai, latte, lemonade",
    "keys = rows_at(1, [90, 210, 330])  # tea, coffee, juice",
    "costs = np.array([2.0, 3.0, 5.0])",
    `w_q = np.array(${JSON.stringify(matrices(s).all[0])})  # small and random`,
    "def forward(w_q):",
    "    exponentials = np.exp(x @ w_q @ keys.T / np.sqrt(2))",
    "    return exponentials / exponentials.sum(axis=1, keepdims=True)",
    `for step in range(${Math.floor(s.step)}):`,
    "    weights = forward(w_q)",
    ...(entry
      ? ["    d_scores = (weights - np.eye(3)) / 3  # of the mean of -ln of the right weights"]
      : [
          "    off = weights @ costs - costs",
          "    d_scores = 2 / 3 * off[:, None] * weights * (costs - (weights @ costs)[:, None])",
        ]),
    `    w_q = w_q - ${s.rate} * x.T @ d_scores @ keys / np.sqrt(2)`,
    "weights = forward(w_q)",
    entry
      ? "loss = -np.log(np.diag(weights)).mean()"
      : "loss = ((weights @ costs - costs) ** 2).mean()",
    "print(weights.round(2))",
    'print("loss", loss.round(3))',
  ];
}

/** Listens to the controls of the scene. */
export function learningLive(view) {
  const { state } = view;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let last = 0;
  const advance = (time) => {
    const { step, until } = state();
    if (until === null || !view.root.isConnected) return;
    const speed = until === STEPS ? PER_SECOND : SLOWLY;
    const next = Math.min(step + (clamp(time - last, 0, 50) / 1000) * speed, until);
    last = time;
    view.set({ step: next, until: next < until ? until : null });
    if (next < until) requestAnimationFrame(advance);
  };
  /** Trains until that step; all at once where motion is not wanted. */
  const learn = (until) => {
    if (calm.matches) return view.set({ step: until });
    const stood = state().until === null;
    view.set({ until });
    if (!stood) return;
    last = performance.now();
    requestAnimationFrame(advance);
  };
  view.listen(view.root, "click", ({ target }) => {
    const { why } = target.closest("[data-why]")?.dataset ?? {};
    if (why) openMicroscope(view, Array.from(why, Number));
  });
  liveMicroscope(view);
  view.on("play", "click", () => {
    const { step, until } = state();
    if (until === STEPS) return view.set({ until: null, step: Math.floor(step) });
    if (step >= STEPS) view.set({ step: 0 });
    if (step < STEPS || !calm.matches) learn(STEPS);
  });
  view.on("one", "click", () => learn(Math.min(Math.floor(state().step) + 1, STEPS)));
  const begin = (changes) => view.glide({ until: null, step: 0, ...changes });
  view.on("another", "click", () => begin({ start: (state().start + 1) % 1000 }));
  view.on("start", "input", ({ target }) => {
    const fits = /^\d{1,3}$/.test(target.value.trim());
    view.say(
      fits ? "" : `A seed is a whole number from 0 to 999. The picture still has ${state().start}.`,
    );
    if (fits) begin({ start: Number(target.value) });
  });
  view.on("start", "focusout", ({ target }) => {
    target.value = state().start;
    view.say("");
  });
  view.on("teacher", "change", ({ target }) => begin({ teacher: target.value }));
  view.on("rate", "input", ({ target }) => begin({ rate: RATES[target.value] }));
  view.on("step", "input", ({ target }) => view.set({ until: null, step: Number(target.value) }));
}
