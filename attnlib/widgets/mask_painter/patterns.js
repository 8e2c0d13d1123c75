/**
 * The scenes "causal", "padding", "window" and "packed": masks with a rule, and a slider each.
 */
import { cut } from "../drawing/heatmap.js";
import { buttons, element, html, line, sheet, text } from "../kit/markup.js";

const WIDE = 360;
const LEFT = 76;
const LARGEST_CELL = 44;
const END = "<end>"; // what is to be guessed after the last word
const FILLER = "<pad>";

/** Whether query i may attend to key j. */
const RULES = {
  causal: () => (i, j) => j <= i,
  padding:
    ({ length }) =>
    (i, j) =>
      j <= i && j < length,
  window:
    ({ width }) =>
    (i, j) =>
      Math.abs(i - j) <= width,
  packed:
    ({ start }) =>
    (i, j) =>
      j <= i && i < start === j < start,
};

/** The mask of the scene, n rows of n. */
function allows(s) {
  const may = RULES[s.scene](s);
  return s.tokens.map((_, i) => s.tokens.map((__, j) => may(i, j)));
}

const count = (mask) => mask.flat().filter(Boolean).length;

/**
 * A mask as a grid: open cells are filled, the others hatched. `strip` is a row above it, `answers`
 * a column at its right, with the cell framed in which each answer could be read; `at` the row that
 * is looked at.
 */
function grid({ names, mask, strip, answers, at, label }) {
  const n = names.length;
  const right = answers ? 84 : 18; // the last name leans over the edge
  const side = Math.min(LARGEST_CELL, (WIDE - LEFT - right) / n);
  const head = 58;
  const top = head + (strip ? side + 14 : 0);
  const height = top + n * side + 2;
  const open = { fill: "var(--weight)", "fill-opacity": 0.3 };
  const cell = (may, x, y) => [
    element("rect", {
      x,
      y,
      width: side,
      height: side,
      stroke: "var(--line)",
      "stroke-width": 0.7,
      ...(may ? open : { fill: "none" }),
    }),
    !may && line(hatch(x, y, side), { "stroke-width": 0.7 }),
  ];
  const x = (j) => LEFT + j * side;
  const name = (token, y, look) =>
    text(token, LEFT - 8, y + side / 2 + 4, "query", { "text-anchor": "end", ...look });
  const drawn = sheet(
    "sheet",
    WIDE,
    height,
    label,
    names.map((token, j) =>
      element(
        "text",
        {
          transform: `translate(${(x(j) + side / 2 + 2).toFixed(1)} ${head - 8}) rotate(-50)`,
          fill: "var(--key)",
        },
        cut(token),
      ),
    ),
    strip && [
      text("padding", LEFT - 8, head + side / 2 - 3, "ink", { "text-anchor": "end" }),
      text("mask", LEFT - 8, head + side / 2 + 11, "ink", { "text-anchor": "end" }),
      strip.map((may, j) => cell(may, x(j), head)),
    ],
    mask.map((row, i) => [
      name(cut(names[i]), top + i * side, { "font-weight": i === at ? 700 : 400 }),
      row.map((may, j) => cell(may, x(j), top + i * side)),
    ]),
    answers && [
      text("must guess", x(n) + 10, head - 8, "muted"),
      answers.map((answer, i) =>
        text(cut(answer), x(n) + 10, top + (i + 0.5) * side + 4, "ink", {
          "font-weight": i === at ? 700 : 400,
        }),
      ),
    ],
    at !== undefined && framed(LEFT, top + at * side, n * side, side, "query"),
    answers?.slice(1).map((_, i) => framed(x(i + 1), top + i * side, side, side, "ink")),
  );
  return html`<div class="picture pattern"
style="aspect-ratio: ${WIDE} / ${Math.round(height)}">${drawn}</div>`;
}

const framed = (x, y, width, height, role) =>
  element("rect", {
    x,
    y,
    width,
    height,
    fill: "none",
    stroke: `var(--${role})`,
    "stroke-width": 2,
  });

/** Diagonals across a cell. */
function hatch(x, y, side) {
  const at = (number) => number.toFixed(1);
  const corner = [1 / 3, 2 / 3, 1].map(
    (part) => `M${at(x)} ${at(y + part * side)}L${at(x + part * side)} ${at(y)}`,
  );
  const rest = [1 / 3, 2 / 3].map(
    (part) => `M${at(x + part * side)} ${at(y + side)}L${at(x + side)} ${at(y + part * side)}`,
  );
  return [...corner, ...rest].join("");
}

/** The control of a scene: a slider from `min` to `max`. */
const sliding = (name, title, { min, max, value, shown = value }) =>
  html`<div class="controls"><label class="main"><span>${title}
<b class="number" data-part="${name}_value">${shown}</b></span>
${element("input", { type: "range", name, min, max, value, "aria-valuetext": String(shown) })}
</label></div>`;

const readout = (...lines) => html`<div class="readout" role="status">${lines}${buttons()}</div>`;

const openCells = (mask) => html`<p><span class="big weight" data-part="open">${count(mask)}</span>
<span>of ${mask.length ** 2} cells are open</span></p>`;

/** A scene: a slider for one trait, whose value is `shift` less than what is shown. */
const scene = (name, label, shift, picture, lines) => ({
  label,
  compute: allows,
  picture: (s) => picture(s, allows(s)),
  code: (s) => [
    "import numpy as np",
    "",
    `tokens = ${JSON.stringify(s.tokens)}`,
    "positions = np.arange(len(tokens))",
    "i, j = positions[:, None], positions  # queries in rows, keys in columns",
    ...lines(s),
    "print(mask.astype(int))",
  ],
  live: (view) =>
    view.on(name, "input", (event) => view.set({ [name]: Number(event.target.value) - shift })),
});

export const causal = scene(
  "position",
  "the causal mask",
  1,
  (s, mask) => {
    const answers = [...s.tokens.slice(1), END];
    const chip = (token, kind) => html`<span class="chip ${kind}">${token}</span>`;
    const learns = s.tokens.map((token, j) => chip(token, mask[s.position][j] ? "" : "blocked"));
    const writes = s.tokens.slice(0, s.position + 1).map((token) => chip(token, ""));
    const reads = (name, chips) => html`<p><span class="what">${name}</span>${chips}</p>`;
    return [
      sliding("position", "Slide the position", {
        min: 1,
        max: s.tokens.length,
        value: s.position + 1,
      }),
      grid({
        names: s.tokens,
        mask,
        answers,
        at: s.position,
        label:
          `The causal mask for ${s.tokens.join(" ")}. Row ${s.position + 1} may read ` +
          `${s.tokens.slice(0, s.position + 1).join(" ")} and must guess ${answers[s.position]}.`,
      }),
      html`<div class="readout"><div class="readings" role="status"
style="--n: ${s.tokens.length}">${reads("In training, it reads", learns)}${reads(
        "When it writes, it reads",
        [writes, chip("?", "blank")],
      )}</div>${buttons()}</div>`,
    ];
  },
  () => ["mask = j <= i"],
);

export const padding = scene(
  "length",
  "the padding mask",
  0,
  (s, mask) => {
    const names = s.tokens.map((token, j) => (j < s.length ? token : FILLER));
    const n = names.length;
    return [
      sliding("length", "Slide the number of words", { min: 1, max: n, value: s.length }),
      grid({
        names,
        mask,
        strip: names.map((_, j) => j < s.length),
        label: `A sentence of ${s.length} words in a row of ${n}. The padding mask has one row.`,
      }),
      readout(
        html`<p><span class="big" data-part="filler">${n - s.length}</span>
<span>of ${n} keys are padding, which no query may attend to</span></p>`,
      ),
    ];
  },
  ({ length }) => [
    `padding = j < ${length}  # one row, for all queries`,
    "mask = (j <= i) & padding",
  ],
);

export const windowed = scene(
  "width",
  "a window",
  0,
  (s, mask) => [
    sliding("width", "Slide the width", {
      min: 0,
      max: s.tokens.length - 1,
      value: s.width,
    }),
    grid({
      names: s.tokens,
      mask,
      label: `A window: each of ${s.tokens.length} words may read ${s.width} words to each side.`,
    }),
    readout(openCells(mask)),
  ],
  ({ width }) => [`mask = abs(i - j) <= ${width}`],
);

export const packed = scene(
  "start",
  "two texts in one row",
  0,
  (s, mask) => [
    sliding("start", "Slide the first word of the second text", {
      min: 1,
      max: s.tokens.length - 1,
      value: s.start,
      shown: s.tokens[s.start],
    }),
    grid({
      names: s.tokens,
      mask,
      label:
        `Two texts in one row, ${s.tokens.slice(0, s.start).join(" ")} and ` +
        `${s.tokens.slice(s.start).join(" ")}: each word reads itself and what is before it in ` +
        `its own text.`,
    }),
    readout(openCells(mask)),
  ],
  ({ start }) => [
    `second = positions >= ${start}  # True in the second text`,
    "mask = (j <= i) & (second[:, None] == second)",
  ],
);
