/**
 * ChainRule: a calculation in boxes, from the top to the bottom. Slopes come back from the bottom
 * to the top: along an arrow a slope is multiplied, and where arrows meet the results are added.
 *
 * A scene knows how much a change of each box arrives in the boxes below it, and nothing else of
 * slopes.
 */
import { arrow, direction } from "../drawing/geometry.js";
import { buttons, element, html, sheet, slider, text } from "../kit/markup.js";
import { plain } from "../kit/numbers.js";

const BOX = 62; // how high one is
const WIDE = 340;
const INPUT = 2;

export const shared = { scene: false }; // a picture stays the picture it is
export const layout = "abh-instrument abh-beside";
export const label = ({ scene }) => SCENES[scene].label;

/** What can glide. */
export const pose = ({ price, parameter }) => [price, parameter];

/** A number as it is written: at most so many decimals, and a real minus sign. */
const short = (x, digits = 3) =>
  plain(Number(x.toFixed(digits)))
    .replace(/^-0$/, "0")
    .replace("-", "−");
const factor = (x) => (x < 0 ? `(${short(x)})` : short(x));

/**
 * A scene has rows of boxes, from the top to the bottom. A box is {id, title, formula, at, wide,
 * value}; an arrow is [from, to, how many times a change arrives].
 */
const SCENES = {
  stall: {
    label: "A stall that sells chai: earnings, and the slope of each number",
    tall: 308,
    least: 0.1, // what the input is changed by, to see what its slope is worth
    ask: "Price of a cup",
    trait: "price",
    step: 0.5,
    input: "the price",
    result: "earnings change",
    build({ price }) {
      const [y, u] = [price - 4, 100 - 5 * price];
      return {
        rows: [
          [{ id: "x", title: "price of a cup", formula: "x", value: price, at: 170 }],
          [
            { id: "y", title: "profit on a cup", formula: "y = x − 4", value: y, at: 83 },
            { id: "u", title: "cups sold", formula: "u = 100 − 5x", value: u, at: 257 },
          ],
          [{ id: "L", title: "earnings of a day", formula: "L = y · u", value: y * u, at: 170 }],
        ],
        wide: 150,
        arrows: [
          ["x", "y", 1],
          ["x", "u", -5],
          ["y", "L", u],
          ["u", "L", y],
        ],
      };
    },
    said: [
      "Forward: the price decides the profit on a cup and the number of cups, and both decide " +
        "the earnings.",
      "Start at the end. The earnings are the result, so the slope there is 1.",
      "If the profit on a cup grows by 1, every cup sold earns 1 more. If one more cup is sold, " +
        "the stall earns the profit on one cup.",
      "The price has two arrows. Multiply the slope of each by the slope at its end, and add both.",
    ],
  },
  model: {
    label: "A model with one parameter: its loss, and the slope of each number",
    tall: 412,
    least: 0.01,
    ask: "Parameter w",
    trait: "parameter",
    step: 0.05,
    input: "w",
    result: "loss changes",
    build({ parameter }) {
      const z = INPUT * parameter;
      const p = 1 / (1 + Math.exp(-z));
      return {
        rows: [
          [{ id: "w", title: "parameter", formula: "w", value: parameter, at: 170 }],
          [{ id: "z", title: "logit of the right word", formula: "z = 2w", value: z, at: 170 }],
          [
            {
              id: "p",
              title: "its probability",
              formula: html`p = e<tspan class="power" dy="-5">z</tspan><tspan
dy="5"> / (e</tspan><tspan class="power" dy="-5">z</tspan><tspan dy="5"> + 1)</tspan>`,
              value: p,
              at: 170,
            },
          ],
          [
            {
              id: "L",
              title: "loss",
              formula: "L = −ln p",
              value: Math.log1p(Math.exp(-z)),
              at: 170,
            },
          ],
        ],
        wide: 210,
        arrows: [
          ["w", "z", INPUT],
          ["z", "p", p * (1 - p)],
          ["p", "L", -1 / p],
        ],
      };
    },
    said: [
      "Forward: the parameter makes a logit, the softmax makes a probability, and the logarithm " +
        "makes the loss.",
      "Start at the end. The loss is the result, so the slope there is 1.",
      "The arrow from p has the slope −1 / p.",
      "The arrow from z has the slope p (1 − p), the product of the two probabilities. " +
        "Multiplied by the slope at p, it leaves p − 1, because p cancels.",
      "The logit is 2w, so the arrow from w has the slope 2.",
    ],
  },
};

/** The boxes, the arrows, and the slope of each box, from the last row to the first. */
export function compute(s) {
  const [price, parameter] = s.moving ?? pose(s);
  const scene = SCENES[s.scene];
  const built = scene.build({ price, parameter });
  const slopes = { L: 1 };
  for (const row of [...built.rows].reverse().slice(1))
    for (const { id } of row)
      slopes[id] = built.arrows
        .filter(([from]) => from === id)
        .reduce((total, [, to, times]) => total + times * slopes[to], 0);
  const values = Object.fromEntries(built.rows.flat().map(({ id, value }) => [id, value]));
  const depth = built.rows.length;
  return { ...built, slopes, values, depth, back: Math.min(s.back, depth) };
}

const top = (row) => 4 + row * (BOX + 52);

/** A box: what it holds, its number, and its slope as soon as it is known. */
function box({ id, title, formula, value, at }, row, now) {
  const known = row >= now.depth - now.back;
  const [left, y] = [at - now.wide / 2, top(row)];
  const middle = { "text-anchor": "middle" };
  return html`<g class="box" data-key="${id}">${element("rect", {
    class: "frame-of",
    x: left,
    y,
    width: now.wide,
    height: BOX,
    rx: 5,
  })}${text(title, at, y + 15, "muted", middle)}${text(
    [formula, html`<tspan class="value-of"> = ${short(value)}</tspan>`],
    at,
    y + 34,
    "ink",
    middle,
  )}${element("path", {
    class: known ? "known" : "unknown",
    d: `M${left} ${y + 42}h${now.wide}v15a5 5 0 0 1 -5 5h${10 - now.wide}a5 5 0 0 1 -5 -5z`,
  })}${text(
    `slope ${known ? short(now.slopes[id]) : "?"}`,
    at,
    y + 56.5,
    known ? "page" : "muted",
    {
      ...middle,
      ...(known && { class: "slope-of", "data-slope": id }),
    },
  )}</g>`;
}

/** An arrow down; once the box above it has its slope, an arrow up with its factor. */
function way([from, to, times], now) {
  const find = (id) => {
    const row = now.rows.findIndex((boxes) => boxes.some((one) => one.id === id));
    return [now.rows[row].find((one) => one.id === id), row];
  };
  const [[above, upper], [below, lower]] = [find(from), find(to)];
  const lean = Math.sign(below.at - above.at);
  const start = [above.at + lean * 38, top(upper) + BOX];
  const end = [below.at - lean * 38, top(lower)];
  const known = upper >= now.depth - now.back;
  const { unit } = direction(start, end);
  const [x, y] = [(start[0] + end[0]) / 2, (start[1] + end[1]) / 2];
  // Its factor stands on the side away from the middle.
  const aside = Math.sign((lean && above.at === WIDE / 2 ? below.at : above.at) - WIDE / 2) || 1;
  return known
    ? [
        element("path", { class: "backward", d: arrow(end, start, 10) }),
        text(`× ${factor(times)}`, x + aside * (12 + 6 * Math.abs(unit[0])), y + 5, "ink", {
          class: "times",
          "text-anchor": aside > 0 ? "start" : "end",
        }),
      ]
    : element("path", { class: "forward", d: arrow(start, end, 8) });
}

/** The sum behind the slope of the last box that was reached. */
function worked(now) {
  if (!now.back) return "";
  return now.rows[now.depth - now.back].map(({ id }) => {
    const paths = now.arrows.filter(([from]) => from === id);
    const sum = paths.map(([, to, times]) => `${factor(times)} · ${factor(now.slopes[to])}`);
    return html`<span>slope at ${id}: ${sum.length ? `${sum.join(" + ")} = ` : ""}<b>${short(
      now.slopes[id],
    )}</b></span>`;
  });
}

/** What the result does if the input is changed a little, and what the slope says. */
function trial(s, now) {
  const scene = SCENES[s.scene];
  const [price, parameter] = s.moving ?? pose(s);
  const moved = scene.build({ price: price + scene.least, parameter: parameter + scene.least });
  const change = moved.rows.at(-1)[0].value - now.values.L;
  const [first] = now.rows[0];
  const all = now.back === now.depth;
  return html`<p class="trial"><span>Add ${scene.least} to ${scene.input}: the ${scene.result}
by <b data-part="really">${short(change, 4)}</b>${
    all &&
    html`; the slope says ${scene.least} · ${factor(now.slopes[first.id])} = <b
data-part="predicted">${short(scene.least * now.slopes[first.id], 4)}</b>`
  }.</span></p>`;
}

export function picture(s) {
  const now = compute(s);
  const scene = SCENES[s.scene];
  const value = scene.trait === "price" ? now.values.x : now.values.w;
  const key = (name, disabled, sign, more) =>
    element("button", { type: "button", name, disabled, ...more }, sign);
  const spoken = now.rows
    .flat()
    .map(
      ({ id, title, value: number }, i) =>
        `${title} ${short(number)}` +
        (now.rows.findIndex((row) => row.some((one) => one.id === id)) >= now.depth - now.back
          ? `, slope ${short(now.slopes[id])}`
          : "") +
        (i < 3 ? "; " : ""),
    );
  return [
    html`<div class="controls"><p class="keys">${key("next", now.back === now.depth, "Backward", {
      class: "big-key",
      "data-gesture": true,
    })}${key("undo", !now.back, "Forward again")}${
      s.scene === "model" && key("descend", false, "Gradient step")
    }</p>
<label class="main"><span>${scene.ask} <b class="number">${short(value)}</b></span>${slider(
      scene.trait,
      s,
      { step: scene.step, value },
    )}</label></div>`,
    html`<div class="picture">${sheet(
      "sheet",
      WIDE,
      scene.tall,
      spoken.join(""),
      now.arrows.map((one) => way(one, now)),
      now.rows.map((boxes, row) => boxes.map((one) => box(one, row, now))),
    )}</div>`,
    html`<div class="readout"><div class="reserved">${scene.said.map(
      (words) => html`<p class="ghost" aria-hidden="true"><span>${words}</span></p>`,
    )}<p role="status"><span data-key="${now.back}">${scene.said[now.back]}</span></p></div>
<p class="worked">${worked(now)}</p>${trial(s, now)}${buttons()}</div>`,
  ];
}

export function code(s) {
  return s.scene === "stall"
    ? [
        `x = ${s.price}  # the price of a cup`,
        "y, u = x - 4, 100 - 5 * x",
        "L = y * u",
        "",
        "dL = 1",
        "dy, du = u * dL, y * dL",
        "dx = 1 * dy + -5 * du  # two paths, added",
        'print("earnings", L, "slope at the price", dx)',
      ]
    : [
        "import numpy as np",
        "",
        `w = ${s.parameter}`,
        "z = 2 * w",
        "p = np.exp(z) / (np.exp(z) + 1)",
        "L = -np.log(p)",
        "",
        "dL = 1",
        "dp = -1 / p * dL",
        "dz = p * (1 - p) * dp  # which is p - 1",
        "dw = 2 * dz",
        'print("loss", L, "slope at the parameter", dw)',
      ];
}

export function live(view) {
  const { state } = view;
  const depth = () => compute(state()).depth;
  const go = (back) => view.set({ back: Math.min(Math.max(back, 0), depth()) });
  view.on("next", "click", () => go(Math.min(state().back, depth()) + 1));
  view.on("undo", "click", () => go(Math.min(state().back, depth()) - 1));
  const { trait } = SCENES[state().scene];
  view.on(trait, "input", ({ target }) => view.set({ [trait]: Number(target.value) }));
  if (trait === "parameter")
    view.on("descend", "click", () => {
      const { parameter, bounds } = state();
      const { slopes } = compute({ ...state(), moving: null });
      const next = Math.min(parameter - slopes.w, bounds.parameter.most);
      view.glide({ parameter: Number(next.toFixed(6)) });
    });
}
