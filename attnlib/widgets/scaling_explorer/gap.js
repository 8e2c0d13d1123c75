/**
 * The scene "gap": two keys; the weight of the first one and its slope, against the difference of
 * the two scores.
 */
import { buttons, element, html, line, sheet, slider, text } from "../kit/markup.js";
import { softmax } from "../kit/numbers.js";

const SHEET = { width: 360, height: 262, left: 30, right: 350, top: 14, floor: 174, strip: 222 };

/** Both weights, and how much the first one changes for each unit of the gap. */
function compute({ gap }) {
  const weights = softmax([gap, 0]);
  return { weights, slope: weights[0] * weights[1] };
}

/** Few digits, and enough for the smallest. */
const brief = (x) => (x >= 0.001 ? x.toFixed(3) : x.toFixed(5));
const signed = (x) => x.toFixed(1).replace("-", "−").replace(/\.0$/, "");

function drawing({ gap }, { weights, slope }) {
  const { width, height, left, right, top, floor, strip } = SHEET;
  const x = (at) => left + ((at + 10) / 20) * (right - left);
  const y = (weight) => floor - weight * (floor - top);
  const curve = Array.from({ length: 81 }, (_, i) => -10 + i / 4);
  const path = curve.map((at) => `${x(at).toFixed(1)} ${y(softmax([at, 0])[0]).toFixed(1)}`);
  // The tangent, 56 units long on paper whatever its steepness.
  const [across, up] = [(right - left) / 20, slope * (floor - top)];
  const part = 28 / Math.hypot(across, up);
  const here = [x(gap), y(weights[0])];
  const end = (way) =>
    `${(here[0] + way * part * across).toFixed(1)} ${(here[1] - way * part * up).toFixed(1)}`;
  const tangent = `M${end(-1)}L${end(1)}`;
  const wide = right - left;
  const centered = { "text-anchor": "middle" };
  const names = weights.map((weight, j) => [j, weight]).filter(([, weight]) => weight > 0.2);
  return sheet(
    "sheet",
    width,
    height,
    `The weight of key 1 against the gap: a curve like a stretched S from 0 to 1. At a gap of ` +
      `${signed(gap)} the weight is ${brief(weights[0])} and its slope is ${brief(slope)}.`,
    line(`M${left} ${top}V${floor}H${right}M${x(0)} ${floor}V${top}`),
    [0, 0.5, 1].map((at) => text(at, left - 6, y(at) + 1, "muted", { "text-anchor": "end" })),
    [-10, -5, 0, 5, 10].map((at) =>
      text(String(at).replace("-", "−"), x(at), floor + 17, "muted", centered),
    ),
    line(`M${path.join("L")}`, { stroke: "var(--weight)", "stroke-width": 2 }),
    line(tangent, { stroke: "var(--ink)", "stroke-width": 3, "stroke-linecap": "round" }),
    element("circle", { cx: here[0], cy: here[1], r: 5, fill: "var(--weight)" }),
    text("weight of key 1", left + 6, top + 10, "weight"),
    text("gap between the scores", right, floor + 32, "muted", { "text-anchor": "end" }),
    element("rect", {
      x: left,
      y: strip,
      width: wide * weights[0],
      height: 28,
      fill: "var(--weight)",
    }),
    element("rect", {
      x: left,
      y: strip,
      width: wide,
      height: 28,
      fill: "none",
      stroke: "var(--line)",
    }),
    names.map(([j]) =>
      text(
        `key ${j + 1}`,
        left + wide * (j ? 1 - weights[1] / 2 : weights[0] / 2),
        strip + 18,
        j ? "ink" : "page",
        centered,
      ),
    ),
  );
}

function picture(s, now) {
  const found = compute(now);
  return [
    html`<div class="controls"><label class="main"><span>Gap between the scores
<b class="number" data-part="gap_value">${signed(s.gap)}</b></span>
${slider("gap", s, { step: 0.5, value: s.gap })}</label></div>`,
    html`<div class="picture gap">${drawing(now, found)}</div>`,
    html`<div class="readout">
<p><span class="big" data-part="weight">${brief(found.weights[0])}</span>
<span>weight of key 1</span></p>
<p><span class="big slope" data-part="slope">${brief(found.slope)}</span>
<span>slope: how fast this weight grows with the score
(the short straight line)</span></p>
${buttons()}</div>`,
  ];
}

function code({ gap }) {
  return [
    "import numpy as np",
    "",
    `scores = np.array([${gap}, 0.0])`,
    "exponentials = np.exp(scores - scores.max())",
    "weights = exponentials / exponentials.sum()",
    "slope = weights[0] * weights[1]",
    'print("weights:", weights, "slope:", slope)',
  ];
}

function live(view) {
  view.on("gap", "input", (event) => view.set({ gap: Number(event.target.value) }));
}

export const gap = { label: "two scores and their gap", compute, picture, code, live };
