/**
 * LossCurve: the loss -ln p against the probability p. A point slides along the curve; beside it
 * stands what the loss means, or the slope at the point.
 */
import { through } from "../drawing/geometry.js";
import { buttons, element, html, line, sheet, slider, text } from "../kit/markup.js";
import { clamp } from "../kit/numbers.js";

const [WIDE, TALL] = [340, 270];
const AREA = { left: 34, right: 326, top: 22, floor: 232 };
const HIGHEST = 4.8; // what the vertical axis has room for
const REACH = 62; // half of the line that touches the curve

export const shared = { scene: false }; // a picture stays the picture it is
export const layout = "abh-instrument abh-beside";
export const label = ({ scene }) =>
  scene === "loss" ? "The loss of a probability" : "The slope of the loss";

/** What can glide. */
export const pose = ({ probability }) => [probability];

/** All numbers of the point, as Python computes them. */
export function compute(s) {
  const [probability] = s.moving ?? pose(s);
  const loss = -Math.log(probability);
  return {
    probability,
    loss,
    bits: loss / Math.LN2,
    perplexity: Math.exp(loss),
    slope: -1 / probability,
  };
}

const px = (p, loss) => [
  AREA.left + (AREA.right - AREA.left) * p,
  AREA.floor - ((AREA.floor - AREA.top) * loss) / HIGHEST,
];

const signed = (x, digits) => x.toFixed(digits).replace("-", "−");

const CURVE = Array.from({ length: 100 }, (_, i) => (i + 1) / 100).map((p) => px(p, -Math.log(p)));

/** The line that touches the curve, as far as it stays on the sheet, and the slope beside it. */
function tangent({ probability, loss, slope }) {
  const [x, y] = px(probability, loss);
  const [u, v] = [px(1, 0)[0] - px(0, 0)[0], px(0, slope)[1] - px(0, 0)[1]];
  const far = REACH / Math.hypot(u, v);
  const ends = [-1, 1].map((way) => [x + way * far * u, y + way * far * v]);
  return [
    element("path", { class: "touching", d: through(ends) }),
    text(`slope ${signed(slope, 2)}`, Math.min(x + 14, 240), Math.max(y - 10, 16), "ink", {
      class: "named",
    }),
  ];
}

function drawing(s, now) {
  const [x, y] = px(now.probability, now.loss);
  const mark = (more, content, at) => text(content, ...at, "muted", { "text-anchor": more });
  return sheet(
    "sheet",
    WIDE,
    TALL,
    `The loss of a probability of ${now.probability.toFixed(2)} is ${now.loss.toFixed(2)}`,
    line(`M${AREA.left} ${AREA.top - 8}V${AREA.floor}H${AREA.right + 8}`),
    [0, 1, 2, 3, 4].map((loss) => mark("end", String(loss), [AREA.left - 7, px(0, loss)[1] + 4.5])),
    [0, 0.25, 0.5, 0.75, 1].map((p) => mark("middle", String(p), [px(p, 0)[0], AREA.floor + 17])),
    mark("start", "loss", [4, 12]),
    mark("end", "probability of the right word", [AREA.right + 8, TALL - 3]),
    element("path", {
      class: "drop",
      d: through([
        [AREA.left, y],
        [x, y],
        [x, AREA.floor],
      ]),
    }),
    element("path", { class: "curve", d: through(CURVE) }),
    s.scene === "slope" && tangent(now),
    element("circle", { class: "point", cx: x, cy: y, r: 7 }),
  );
}

const TASKS = {
  loss: "Drag the point along the curve, or move the slider.",
  slope: "Drag the point, and watch how steep the curve is.",
};

/** What stands beside the curve: pairs of a name and a number. */
const ROWS = {
  loss: ({ loss, bits, perplexity }) => [
    ["loss, −ln p", `${signed(loss, 2).replace(/^−0\.00$/, "0.00")} nats`],
    ["the same in bits", `${signed(bits, 2).replace(/^−0\.00$/, "0.00")} bits`],
    ["equally likely words with the same loss", String(Number(perplexity.toFixed(1)))],
  ],
  slope: ({ probability, loss, slope }) => [
    ["loss, −ln p", signed(loss, 3).replace(/^−0\.000$/, "0.000")],
    ["slope, −1 / p", signed(slope, 2)],
    ["p · slope", signed(probability * slope, 0)],
  ],
};

export function picture(s) {
  const now = compute(s);
  return [
    html`<div class="controls"><label class="main"><span>Probability p <b
class="number" data-part="p">${now.probability.toFixed(2)}</b></span>
${slider("probability", s, { step: 0.01, value: now.probability })}</label>
<p class="task">${TASKS[s.scene]}</p></div>`,
    html`<div class="picture">${drawing(s, now)}</div>`,
    html`<div class="readout"><table>${ROWS[s.scene](now).map(
      ([name, number], i) =>
        html`<tr><th scope="row">${name}</th><td data-part="row-${i}">${number}</td></tr>`,
    )}</table>${buttons()}</div>`,
    () =>
      html`<p class="visually-hidden" role="status">${ROWS[s.scene](now)
        .map((row) => row.join(" "))
        .join(", ")}</p>`,
  ];
}

export function code({ scene, probability }) {
  return [
    "import numpy as np",
    "",
    `p = ${probability}`,
    "loss = -np.log(p)",
    ...(scene === "loss"
      ? [
          "bits = -np.log2(p)",
          "perplexity = np.exp(loss)",
          'print(loss, "nats,", bits, "bits, perplexity", perplexity)',
        ]
      : ["slope = -1 / p", 'print("loss", loss, "slope", slope)']),
  ];
}

export function live(view) {
  const move = (p) => view.set({ probability: clamp(Math.round(100 * p), 1, 100) / 100 });
  const drag = ({ clientX }) => {
    const box = view.part("sheet").getBoundingClientRect();
    const x = ((clientX - box.left) * WIDE) / box.width;
    move((x - AREA.left) / (AREA.right - AREA.left));
  };
  let held = false;
  view.on("sheet", "pointerdown", (event) => {
    if (event.button) return;
    held = true;
    view.part("sheet").setPointerCapture(event.pointerId);
    event.preventDefault();
    drag(event);
  });
  view.on("sheet", "pointermove", (event) => held && drag(event));
  for (const end of ["pointerup", "pointercancel"])
    view.on("sheet", end, () => {
      held = false;
    });
  view.on("probability", "input", ({ target }) => move(Number(target.value)));
}
