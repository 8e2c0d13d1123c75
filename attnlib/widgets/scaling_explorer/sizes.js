/**
 * The scene "sizes": the weights of 16 random keys, with three divisors side by side.
 */
import { buttons, element, html, line, sheet, table, text } from "../kit/markup.js";
import { dotProducts, entropy, softmax, wordVector } from "../kit/numbers.js";
import { followSlider, slider } from "./d_k.js";

const N_KEYS = 16;
const SHEET = { width: 360, height: 318, left: 8, wide: 344, panel: 106, floor: 84, tallest: 48 };
const DIVISORS = {
  none: ["not divided", () => 1],
  sqrt: ["divided by √", Math.sqrt],
  d_k: ["divided by ", (d_k) => d_k],
};
/** d_k in a drawing, as it is printed. */
const D_K = [
  element("tspan", { "font-style": "italic" }, "d"),
  element("tspan", { "font-style": "italic", "font-size": "0.95em", dy: "0.2em" }, "k"),
];

let vectors;

/** One query and its keys at full length, made once. */
function vectorsOf() {
  vectors ??= {
    query: wordVector("query 5", "query", 256),
    keys: Array.from({ length: N_KEYS }, (_, j) => wordVector(`key ${j + 1}`, "key", 256)),
  };
  return vectors;
}

/** For each divisor the weights, the largest, and how many equal keys would be as even. */
function compute({ d_k }) {
  const { query, keys } = vectorsOf();
  const [dots] = dotProducts([query], keys, d_k);
  return Object.entries(DIVISORS).map(([name, [title, by]]) => {
    const weights = softmax(dots.map((dot) => dot / by(d_k)));
    return {
      name,
      title,
      weights,
      largest: Math.max(...weights),
      keys: Math.exp(entropy(weights)),
    };
  });
}

function drawing(found) {
  const { width, height, left, wide, panel, floor, tallest } = SHEET;
  const side = wide / N_KEYS;
  return sheet(
    "sheet",
    width,
    height,
    `Three rows of ${N_KEYS} weights, the largest first. ` +
      found
        .map((f) => `${f.title.replace(/√$|by $/, "$&d_k")}: largest ${f.largest.toFixed(2)}`)
        .join("; "),
    found.map(({ name, title, weights, largest, keys }, i) => {
      const sorted = Array.from(weights).sort((a, b) => b - a);
      const y = panel * i + floor;
      const bars = sorted.map((weight, j) => {
        const high = tallest * weight;
        const start = `M${(left + (j + 0.12) * side).toFixed(2)} ${y}`;
        return `${start}v${(-high).toFixed(1)}h${(0.76 * side).toFixed(2)}v${high.toFixed(1)}`;
      });
      return [
        text(name === "none" ? title : [title, D_K], 0, panel * i + 14, "ink", {
          "font-weight": 600,
        }),
        text(
          `largest ${largest.toFixed(2)}, as even as ${keys.toFixed(1)} equal keys`,
          0,
          panel * i + 30,
          "muted",
          { "data-part": name },
        ),
        line(`M${left} ${y}H${left + wide}`),
        element("path", { d: bars.join(""), fill: "var(--weight)" }),
      ];
    }),
  );
}

function picture(s, now) {
  const found = compute(now);
  return [
    html`<div class="controls">${slider("Slide", s.d_k)}</div>`,
    html`<div class="picture sizes">${drawing(found)}</div>`,
    html`<div class="readout">${buttons()}</div>`,
    () =>
      html`<div class="visually-hidden">${table(
        "Weights of the 16 keys",
        ["key", ...found.map(({ title }) => title.replace(/√$|by $/, "$&d_k"))],
        found[0].weights.map((_, j) => [
          `key ${j + 1}`,
          ...found.map(({ weights }) => weights[j].toFixed(4)),
        ]),
      )}</div>`,
  ];
}

function code({ d_k }) {
  return [
    "import numpy as np",
    "",
    `d_k = ${d_k}`,
    "rng = np.random.default_rng(0)  # other numbers than in the picture, by the same rule",
    "query = rng.uniform(-np.sqrt(3), np.sqrt(3), d_k)  # mean 0 and variance 1",
    "keys = rng.uniform(-np.sqrt(3), np.sqrt(3), (16, d_k))",
    "for divisor in (1, np.sqrt(d_k), d_k):",
    "    scores = keys @ query / divisor",
    "    exponentials = np.exp(scores - scores.max())",
    "    weights = exponentials / exponentials.sum()",
    "    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum()",
    '    print("divisor", divisor, "largest", weights.max(), "keys", np.exp(entropy))',
  ];
}

export const sizes = { label: "three divisors", compute, picture, code, live: followSlider };
