/**
 * The scene of Plane in which questions are learnt: three queries turn and grow onto their keys, one
 * step of gradient descent at a time. Asking for tea should give tea's entry: the loss is the mean
 * of -ln of the right weights.
 */
import { attributes, buttons, cellInk, element, html, multiply, plain, select, softmax, table, transpose, wordVector } from "./core.js";
import { along, arrow, at, clamp, direction, through } from "./geometry.js";

export const STEPS = 100;
const DRINKS = ["tea", "coffee", "juice"];
const RATES = [0.1, 0.3, 1, 3, 10];
const PER_SECOND = 14; // steps
const GUESSING = Math.log(3); // the loss of equal weights

/** The drawing, in units of a 320 x 300 sheet; and the curve of the loss on one of 240 x 70. */
const MIDDLE = [160, 168];
const REACH = 128; // as far as the longest query gets
const RINGS = [1, 2, 3, 4, 5, 6];
const CURVE = { left: 4, top: 6, wide: 232, tall: 58 };

/** Unit vectors at 90, 210 and 330 degrees: at once what each asker is, and the keys. */
const KEYS = [90, 210, 330].map((degrees) => {
  const angle = (degrees * Math.PI) / 180;
  return [Math.cos(angle), Math.sin(angle)];
});

/** Queries, weights and the loss of a W_Q. */
function forward(w_q) {
  const queries = multiply(KEYS, w_q);
  const scores = multiply(queries, transpose(KEYS));
  const weights = scores.map((row) => softmax(row.map((score) => score / Math.sqrt(2))));
  const loss = weights.reduce((sum, row, i) => sum - Math.log(row[i]), 0) / 3;
  return { queries, scores, weights, loss };
}

/** How the loss changes with each query, and with W_Q. */
function backward(weights) {
  const errors = weights.map((row, i) => row.map((a, j) => (a - Number(i === j)) / (3 * Math.sqrt(2))));
  const queries = multiply(errors, KEYS);
  return { queries, w_q: multiply(transpose(KEYS), queries) };
}

const known = new Map(); // the way that is on the screen

/** W_Q before the first step and after each; it begins small and random, always the same for a start. */
function matrices({ start, rate }) {
  const name = `${start} ${rate}`;
  if (known.has(name)) return known.get(name);
  const [a, b, c, d] = wordVector(`start ${start}`, "W_Q", 4).map((x) => 0.35 * x);
  const all = [[[a, b], [c, d]]];
  while (all.length <= STEPS) {
    const now = all.at(-1);
    const { w_q } = backward(forward(now).weights);
    all.push(now.map((row, i) => row.map((w, j) => w - rate * w_q[i][j])));
  }
  known.clear();
  known.set(name, { all, losses: all.map((w_q) => forward(w_q).loss) });
  return known.get(name);
}

/** W_Q at a step, which may lie between two. */
export function learntMatrix(s) {
  const { all } = matrices(s);
  const whole = Math.min(Math.floor(s.step), STEPS - 1);
  const part = s.step - whole;
  return all[whole].map((row, i) => row.map((w, j) => w + (all[whole + 1][i][j] - w) * part));
}

/** All numbers at the step, as attnlib gives them in Python. */
export function learnt(s) {
  const w_q = learntMatrix(s);
  const now = forward(w_q);
  return { tokens: DRINKS, points: KEYS, w_q, ...now, output: multiply(now.weights, KEYS) };
}

const two = (x) => x.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", "−");
const n1 = (x) => Number(x.toFixed(1));
const line = (kind, d, more = {}) => d && element("path", { class: kind, d, ...more });

/** Keys, queries with their ways and pulls; the sheet shows more as the queries grow. */
function drawing(s, { queries, weights }) {
  const scale = REACH / Math.max(1.25, 0.2 + Math.max(...queries.map((query) => Math.hypot(...query))));
  const px = ([x, y]) => [MIDDLE[0] + scale * x, MIDDLE[1] - scale * y];
  const rim = ([x, y]) => [MIDDLE[0] + REACH * x, MIDDLE[1] - REACH * y];
  const pulls = backward(weights).queries.map((row) => row.map((x) => -2 * x)); // to scale among themselves
  const gone = matrices(s).all.slice(0, Math.floor(s.step) + 1);
  const names = [[0, -11], [-14, 18], [14, 18]]; // from where each key points
  const label = `Three keys and three queries; the right weights are ${weights.map((row, i) => row[i].toFixed(2)).join(", ")}`;
  return html`<div class="picture"><svg viewBox="0 0 320 300" role="img" aria-label="${label}">
${RINGS.map((r) => element("circle", {
    class: r === 1 ? "circle one" : "circle", cx: MIDDLE[0], cy: MIDDLE[1], r: n1(r * scale), opacity: clamp((REACH + 14 - r * scale) / 10, 0, 1),
  }))}
${KEYS.map((key, i) => [
    line("ray", through([px(key), rim(key)])),
    line("key-arrow", arrow(MIDDLE, px(key), 9)),
    element("text", { class: "drink", x: n1(rim(key)[0] + names[i][0]), y: n1(rim(key)[1] + names[i][1]) }, DRINKS[i]),
  ])}
${queries.map((query, i) => {
    const way = gone.map((w_q) => px(multiply([KEYS[i]], w_q)[0]));
    return [
      line("gone", through([...way, px(query)])),
      line("query-arrow", arrow(MIDDLE, px(query), 9)),
      line("pull", arrow(px(query), px([query[0] + pulls[i][0], query[1] + pulls[i][1]]), 6)),
    ];
  })}
<g class="names" aria-hidden="true">${queries.map((query, i) => {
    const { unit, length } = direction(MIDDLE, px(query));
    const aside = unit[0] * KEYS[i][1] + unit[1] * KEYS[i][0] > 0 ? -1 : 1; // away from its key
    const [x, y] = along(MIDDLE, unit, Math.max(0.6 * length, 26), -aside * (9 + 14 * Math.abs(unit[1])));
    return element("text", { class: "asks", x: n1(x), y: n1(y + 4) }, `${DRINKS[i]}?`);
  })}</g></svg></div>`;
}

/** The step, and the loss against it. */
function progress(s, { loss }) {
  const { losses } = matrices(s);
  const { left, top, wide, tall } = CURVE;
  const most = Math.max(1.3, losses[0]);
  const spot = (value, step) => [left + (wide * step) / STEPS, top + tall * (1 - clamp(value / most, 0, 1))];
  const points = losses.map(spot);
  const here = spot(loss, s.step);
  const step = Math.floor(s.step);
  return html`<div class="sharp"><label class="main"><span>Step <b class="number">${step}</b></span>
${element("input", { type: "range", name: "step", min: 0, max: STEPS, value: step, "aria-valuetext": `step ${step}, loss ${loss.toFixed(2)}` })}</label>
<svg class="loss" viewBox="0 0 240 72" role="img" aria-label="The loss against the step"><path class="floor" d="M${left} ${top + tall}h${wide}"/>
${line("guessing", through([spot(GUESSING, 0), spot(GUESSING, STEPS)]))}${line("all", through(points))}${line("so-far", through([...points.slice(0, step + 1), here]))}
<circle${attributes({ cx: n1(here[0]), cy: n1(here[1]), r: 3.5 })}/>${element("text", { x: 236, y: n1(spot(GUESSING, 0)[1] - 4) }, "guessing: ln 3 = 1.10")}</svg></div>`;
}

/** The weights, the right ones down the diagonal; W_Q and the rate stand below. */
function numbers(s, { weights, w_q }, matrix) {
  const cell = (weight) => html`<td style="--w: ${(100 * weight).toFixed(1)}%; color: var(--${cellInk(weight)})">${weight.toFixed(2)}</td>`;
  const rates = Array.from(new Set([...RATES, s.rate])).sort((a, b) => a - b).map((rate) => [rate, plain(rate)]);
  return html`<div class="numbers of-learning"><table><caption class="visually-hidden">Weights: queries in rows, keys in columns</caption>
<thead><tr><td></td>${DRINKS.map((drink) => html`<th scope="col" class="key">${drink}</th>`)}</tr></thead>
<tbody>${DRINKS.map((drink, i) => html`<tr><th scope="row" class="query">${drink}?</th>${weights[i].map(cell)}</tr>`)}</tbody></table>
<div class="pair">${matrix(w_q)}<label><span>Learning rate</span>${select("rate", rates, s.rate)}</label></div></div>`;
}

/** For the ear: where the queries are. */
const spoken = ({ queries, weights, loss }, step) => html`<div class="visually-hidden">
<p role="status">After ${Math.floor(step)} steps the loss is ${loss.toFixed(2)} and the right drinks get ${weights.map((row, i) => row[i].toFixed(2)).join(", ")}.</p>
${table("The queries", ["asks for", "across", "up", "weight of the right key"], queries.map((query, i) => [DRINKS[i], two(query[0]), two(query[1]), weights[i][i].toFixed(2)]))}</div>`;

/** The sections of the scene; `moving` is a W_Q on its way. */
export function learningSections(s, matrix, none) {
  const w_q = s.moving ?? learntMatrix(s);
  const now = { w_q, ...forward(w_q) };
  const done = s.step >= STEPS;
  const button = (name, title, more = {}) => element("button", { type: "button", name, ...more }, title);
  const full = (section) => (s.compact ? none : section);
  return [
    html`<div class="sentence${s.compact ? " compact" : ""}"><p class="play">${button("play", s.playing ? "Pause" : done ? "Again" : "Learn", { class: "big" })}
${button("one", "One step", { disabled: done })}${button("another", "New start")}</p>
<p class="answer">loss <b data-part="answer">${now.loss.toFixed(2)}</b></p></div>`,
    none,
    drawing(s, now),
    full(progress(s, now)),
    full(numbers(s, now, matrix)),
    full(html`<div class="more">${buttons()}</div>`),
    () => spoken(now, s.step),
    html`<p class="said hint">Blue asks, orange answers. Black: the way the loss pulls.</p>`,
  ];
}

/** Runnable NumPy for the whole way to the step on the screen. */
export function learningCode(s) {
  const steps = Math.floor(s.step);
  return [
    "import numpy as np",
    "",
    "angles = np.radians([90, 210, 330])",
    "keys = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # tea, coffee, juice",
    `w_q = np.array(${JSON.stringify(matrices(s).all[0])})  # small and random`,
    "def forward(w_q):",
    "    powers = np.exp(keys @ w_q @ keys.T / np.sqrt(2))",
    "    return powers / powers.sum(axis=1, keepdims=True)",
    `for step in range(${steps}):`,
    "    errors = (forward(w_q) - np.eye(3)) / (3 * np.sqrt(2))  # of the mean of -ln of the right weights",
    `    w_q = w_q - ${s.rate} * keys.T @ errors @ keys`,
    "weights = forward(w_q)",
    "loss = -np.log(np.diag(weights)).mean()",
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
    const s = state();
    if (!s.playing || !view.root.isConnected) return;
    const step = Math.min(s.step + (clamp(time - last, 0, 50) / 1000) * PER_SECOND, STEPS);
    last = time;
    view.set({ step, playing: step < STEPS });
    if (step < STEPS) requestAnimationFrame(advance);
  };
  view.on("play", "click", () => {
    const { playing, step } = state();
    if (playing) return view.set({ playing: false, step: Math.floor(step) });
    if (calm.matches) return view.set({ step: step < STEPS ? STEPS : 0 });
    if (step >= STEPS) view.set({ step: 0 });
    last = performance.now();
    view.set({ playing: true });
    requestAnimationFrame(advance);
  });
  const go = (changes) => view.glide({ playing: false, ...changes });
  view.on("one", "click", () => go({ step: Math.min(Math.floor(state().step) + 1, STEPS) }));
  view.on("another", "click", () => go({ start: (state().start + 1) % 1000, step: 0 }));
  view.on("rate", "change", ({ target }) => go({ rate: Number(target.value), step: 0 }));
  view.on("step", "input", ({ target }) => view.set({ playing: false, step: Number(target.value) }));
}
