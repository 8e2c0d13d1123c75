/**
 * The scene "walks": the scores of six keys, added up product by product, and their weights.
 */
import { buttons, element, html, line, sheet, table, text } from "../kit/markup.js";
import { softmax, wordVector } from "../kit/numbers.js";
import { followSlider, slider } from "./d_k.js";

const KEYS = [1, 2, 3, 4, 5, 6];

/** The drawing: the walks above, the weights below, both in columns of one width. */
const SHEET = {
  width: 360,
  height: 334,
  left: 34,
  right: 322,
  middle: 99,
  tall: 75, // of either half
  floor: 296,
  tallest: 60,
};
const column = (j) => SHEET.left + (j - 0.5) * ((SHEET.right + 20 - SHEET.left) / KEYS.length);

const made = new Map();

/** How far the axis reaches: less far for short sums, so that their lines are more than flat. */
const reachOf = (d_k) => Math.min(Math.max((11 * d_k) / 16, 11), 44);

/** The products of a toss: for each key 256 times 1 or -1, the product of two coins. */
function productsOf(toss) {
  if (!made.has(toss)) {
    const coins = (name, role) => Array.from(wordVector(name, role, 256), Math.sign);
    const query = coins(`toss ${toss}`, "query");
    made.set(
      toss,
      KEYS.map((j) => coins(`toss ${toss}, key ${j}`, "key").map((k, c) => k * query[c])),
    );
  }
  return made.get(toss);
}

/** The sums after 0, 1, ... d_k products, the scores as the softmax gets them, and the weights. */
function compute({ d_k, divided, toss }) {
  const factor = 1 - divided + divided / Math.sqrt(d_k); // between the two while it glides
  const sums = productsOf(toss).map((products) => {
    const all = [0];
    for (let c = 0; c < d_k; c++) all.push(all[c] + products[c]);
    return all;
  });
  const scores = sums.map((all) => all[d_k] * factor);
  return { factor, sums, scores, weights: softmax(scores) };
}

/** Heights of labels that are at least `room` apart, in the order of the heights that they name. */
function spread(heights, room) {
  const order = heights.map((_, j) => j).sort((a, b) => heights[a] - heights[b] || a - b);
  const placed = [];
  order.forEach((j, i) => {
    placed[j] = i ? Math.max(heights[j], placed[order[i - 1]] + room) : heights[j];
  });
  const shift = order.reduce((sum, j) => sum + placed[j] - heights[j], 0) / order.length;
  return placed.map((y) => y - shift);
}

/** The key with the largest weight, or how many keys have it. */
function winners(weights, largest) {
  const count = weights.filter((weight) => largest - weight < 1e-9).length;
  return count > 1 ? `${count}\u00a0keys` : `key\u00a0${weights.indexOf(largest) + 1}`;
}

const whole = (x) => String(Math.round(x)).replace("-", "−");
const scoreText = (x, s) => (s.divided ? x.toFixed(1).replace("-", "−") : whole(x));

function drawing(s, { d_k }, { factor, sums, scores, weights }) {
  const { width, height, left, right, middle, tall, floor, tallest } = SHEET;
  const reach = reachOf(d_k);
  const unit = tall / reach;
  const tick = [20, 10].find((step) => 2 * step <= reach) ?? 5;
  const first = weights.indexOf(Math.max(...weights));
  const x = (c) => left + ((right - left) * c) / d_k;
  const y = (sum) => middle - sum * factor * unit;
  const walk = (all) =>
    `M${all.map((sum, c) => `${x(c).toFixed(1)} ${y(sum).toFixed(1)}`).join("L")}`;
  const typical = Array.from({ length: 33 }, (_, i) => (d_k * i * i) / 1024);
  const edge = (sign) =>
    typical.map((c) => `${x(c).toFixed(1)} ${y(sign * Math.sqrt(c)).toFixed(1)}`);
  const ends = sums.map((all) => y(all[d_k]));
  const labels = spread(ends, 15);
  const end = { "text-anchor": "end" };
  const centered = { "text-anchor": "middle" };
  return sheet(
    "sheet",
    width,
    height,
    `Six lines from 0 to the scores ${scores.map((score) => scoreText(score, s)).join(", ")}. ` +
      `Six bars; the largest weight is ${weights[first].toFixed(2)}, on key ${first + 1}.`,
    text("Six scores, added up product by product", 0, 12, "ink"),
    element("path", {
      d: `M${edge(1).join("L")}L${edge(-1).reverse().join("L")}Z`,
      fill: "var(--line)",
      "fill-opacity": 0.45,
    }),
    line(`M${left} ${middle - tall}V${middle + tall}M${left} ${middle}H${right}`),
    [-2, -1, 0, 1, 2].map((step) =>
      text(whole(step * tick), left - 6, middle - step * tick * unit + 4, "muted", end),
    ),
    sums.map((all, j) =>
      line(walk(all), {
        stroke: "var(--key)",
        "stroke-width": j === first ? 2.6 : 1.2,
        "stroke-opacity": j === first ? 1 : 0.55,
        "stroke-linejoin": "round",
      }),
    ),
    ends.map((at, j) => [
      line(`M${right} ${at.toFixed(1)}L${right + 14} ${labels[j].toFixed(1)}`, {
        stroke: "var(--key)",
        "stroke-width": 0.8,
      }),
      element("circle", { cx: right, cy: at, r: j === first ? 4 : 2.5, fill: "var(--key)" }),
      text(j + 1, right + 18, labels[j] + 4, "key", { "font-weight": j === first ? 700 : 400 }),
    ]),
    text("key", width, 12, "key", end),
    text("0", left, 191, "muted", centered),
    text(d_k === 1 ? "1 product" : `${d_k} products`, right, 191, "muted", end),
    text("Their weights after the softmax", 1, 213, "ink"),
    line(`M${left} ${floor}H${right + 20}`),
    weights.map((weight, j) => [
      element("rect", {
        x: column(j + 1) - 14,
        y: floor - tallest * weight,
        width: 28,
        height: tallest * weight,
        fill: "var(--weight)",
      }),
      text(weight.toFixed(2), column(j + 1), floor - tallest * weight - 4, "weight", centered),
      text(`key ${j + 1}`, column(j + 1), floor + 15, "key", {
        ...centered,
        "font-weight": j === first ? 700 : 400,
      }),
      text(scoreText(scores[j], s), column(j + 1), floor + 31, "ink", centered),
    ]),
    text("score", 0, floor + 31, "muted"),
  );
}

function picture(s, now) {
  const found = compute(now);
  const { weights, scores } = found;
  const largest = Math.max(...weights);
  const root = Math.sqrt(s.d_k);
  const size = s.divided ? `√${s.d_k} / √${s.d_k}` : `√${s.d_k}`;
  const box = element("input", { type: "checkbox", name: "divided", checked: s.divided });
  return [
    html`<div class="controls">
${slider("Slide the vector size,", s.d_k)}
<label class="wide switch">${box}<span>Divide the scores by √<i>d<sub>k</sub></i></span></label>
</div>`,
    html`<div class="picture walks">${drawing(s, now, found)}</div>`,
    html`<div class="readout">
<p><span class="big" data-part="largest">${largest.toFixed(2)}</span>
<span>top weight, on
<b class="key" data-part="first">${winners(weights, largest)}</b></span></p>
<p><span class="big size" data-part="typical">±${(root * found.factor).toPrecision(2)}</span>
<span>typical size (shaded): ${size}</span></p>
${buttons(html`<button type="button" name="again">Toss all the coins again</button>`)}</div>`,
    () =>
      html`<div class="visually-hidden">${table(
        "The six keys",
        ["key", "score", "weight"],
        weights.map((weight, j) => [`key ${j + 1}`, scoreText(scores[j], s), weight.toFixed(4)]),
      )}</div>`,
  ];
}

function code({ d_k, divided, toss }) {
  return [
    "import numpy as np",
    "",
    `d_k, divisor = ${d_k}, ${divided ? `np.sqrt(${d_k})` : "1"}`,
    `rng = np.random.default_rng(${toss})  # other coins than in the picture, by the same rule`,
    "query = rng.choice([1, -1], size=d_k)",
    "keys = rng.choice([1, -1], size=(6, d_k))",
    "products = query * keys",
    "scores = products.sum(axis=1) / divisor",
    "exponentials = np.exp(scores - scores.max())",
    "weights = exponentials / exponentials.sum()",
    'print("scores: ", scores.round(2))',
    'print("weights:", weights.round(3))',
  ];
}

function live(view) {
  followSlider(view);
  view.on("divided", "change", (event) => view.glide({ divided: event.target.checked }));
  view.on("again", "click", () => {
    const { toss, bounds } = view.state();
    view.set({ toss: (toss % bounds.toss.most) + 1 });
  });
}

export const walks = { label: "six scores", compute, picture, code, live };
