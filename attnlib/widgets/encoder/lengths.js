/**
 * Encoder, the view "lengths": the share of all weight that goes to [CLS] and to [SEP], by the
 * length of the sentence: of a text's first words, and of what the reader has typed.
 */
import { element, html, line, sheet, table, text } from "../kit/markup.js";
import { two } from "../kit/numbers.js";
import { keyOf } from "./reading.js";

/**
 * The share of each layer's weight that goes to [CLS] and to [SEP], [2][layers], as `shares` in
 * views.py.
 */
export function sharesOf({ tokens, weights }) {
  const n = tokens.length;
  const share = (layer, key) => {
    let sum = 0;
    for (let i = key; i < layer.length; i += n) sum += layer[i];
    return (sum * n) / layer.length;
  };
  return [0, n - 1].map((key) => weights.map((layer) => share(layer, key)));
}

const known = new WeakMap();

/**
 * What is known of a reading: how many tokens, and the shares by layer; read here, or recorded in
 * thousandths.
 */
function measured(reading) {
  if (!known.has(reading)) {
    const { row } = reading;
    const half = row && (row.length - 1) / 2;
    const part = (from) => row.slice(from, from + half).map((x) => x / 1000);
    known.set(
      reading,
      row
        ? { n: row[0], shares: [part(1), part(1 + half)] }
        : { n: reading.tokens.length, shares: sharesOf(reading) },
    );
  }
  return known.get(reading);
}

const mean = (list) => list.reduce((sum, x) => sum + x, 0) / list.length;

/**
 * All points in the order of their lengths, `now` with both shares in the layer that counts, or in
 * all.
 */
export function pointsOf({ readings, live = {}, only }) {
  const [{ prefixes }, ...recorded] = readings;
  const words = prefixes.text.split(" ");
  const first = prefixes.ends.map((end, i) => ({
    row: prefixes.rows[i],
    words: words.slice(0, end).join(" "),
  }));
  const typed = [
    ...recorded.filter((one) => !live[keyOf(one)]),
    ...Object.values(live).filter((one) => !one.hidden?.length),
  ];
  const point = (isTyped) => (reading) => {
    const { n, shares } = measured(reading);
    return {
      isTyped,
      text: isTyped ? reading.text : reading.words,
      n,
      shares,
      now: shares.map((list) => (only ? list[only - 1] : mean(list))),
    };
  };
  const start = prefixesOf(readings[0], first);
  return [...start.map(point(false)), ...typed.map(point(true))].sort((a, b) => a.n - b.n);
}

const starts = new WeakMap();

/** The same objects each time, so that each is measured once. */
function prefixesOf(key, made) {
  if (!starts.has(key)) starts.set(key, made);
  return starts.get(key);
}

// ------------------------------------------------------------------------------- the picture

const SHEET = { width: 400, height: 264, left: 30, right: 8, top: 8, bottom: 36 };
const TICKS = [3, 5, 10, 20, 50, 100, 200, 500];
const FEWEST = TICKS[0]; // tokens of a sentence of one word

/** Where n tokens and a share stand on the sheet. */
function scaleOf(points) {
  const { width, height, left, right, top, bottom } = SHEET;
  const longest = Math.max(128, ...points.map(({ n }) => n));
  const x = (n) =>
    left +
    ((width - left - right) * Math.log(Math.max(n, 2) / FEWEST)) / Math.log(longest / FEWEST);
  const y = (share) => height - bottom - share * (height - top - bottom);
  return { longest, x, y };
}

/** The point that is looked at: pointed at, or chosen, else that of the sentence that is typed. */
function lookedAt({ near, spot, text: typed }, points) {
  const chosen = near ?? spot;
  if (chosen !== null && chosen < points.length) return chosen;
  const found = points.findIndex((point) => point.isTyped && point.text === typed);
  return found >= 0 ? found : Math.floor(points.length / 2);
}

/**
 * The sheet: what [CLS] gets and what [SEP] gets by length, beside what each would get of equal
 * parts.
 */
function chart(points, picked, heights, title) {
  const { width, height, left, right, bottom } = SHEET;
  const { longest, x, y } = scaleOf(points);
  const spot = (n, share) => `${x(n).toFixed(1)} ${y(share).toFixed(1)}`;
  const curve = (list) => `M${list.map(([n, share]) => spot(n, share)).join("L")}`;
  const places = points.map((_, i) => i);
  const [first, typed] = [false, true].map((isTyped) =>
    places.filter((i) => points[i].isTyped === isTyped),
  );
  const even = Array.from({ length: 40 }, (_, i) => FEWEST * (longest / FEWEST) ** (i / 39)).map(
    (n) => [n, 1 / n],
  );
  const dots = (list, which, r) =>
    list.map((i) => element("circle", { cx: x(points[i].n), cy: y(heights[which][i]), r }));
  const end = { "text-anchor": "end" };
  const [one, last] = [points[picked], first.at(-1)];
  return sheet(
    "chart",
    width,
    height,
    title,
    [0, 0.2, 0.4, 0.6, 0.8, 1].map((share) => [
      line(`M${left} ${y(share)}H${width - right}`, { class: share ? "rule" : false }),
      text(share.toFixed(1), left - 5, y(share) + 4, "muted", end),
    ]),
    TICKS.filter((n) => n <= longest).map((n) =>
      text(n, x(n), height - bottom + 16, "muted", { "text-anchor": "middle" }),
    ),
    text("tokens, [CLS] and [SEP] among them", width - right, height - 5, "muted", end),
    element("path", { d: curve(even), class: "even" }),
    [1, 0].map((which) =>
      element(
        "g",
        { class: which ? "sep" : "cls" },
        element("path", { d: curve(first.map((i) => [points[i].n, heights[which][i]])) }),
        dots(first, which, 2.4),
        element("g", { class: "own" }, dots(typed, which, which ? 3 : 5)),
      ),
    ),
    line(`M${x(one.n).toFixed(1)} ${y(0)}V${y(heights[0][picked]).toFixed(1)}`, { class: "drop" }),
    element("circle", { cx: x(one.n), cy: y(heights[0][picked]), r: 8.5, class: "ring" }),
    element(
      "g",
      { class: "names" },
      text("[CLS]", x(points[last].n), y(heights[0][last]) - 12, "weight", end),
      text("[SEP]", x(3) + 2, y(0) - 6),
      text("equal parts", x(5) + 4, y(0.2) - 4),
    ),
  );
}

/** The layers as buttons, each with what [CLS] gets there of the sentence that is looked at. */
function layers({ shares }, only) {
  const all = [mean(shares[0]), ...shares[0]];
  const button = (share, i) => {
    const attributes = {
      type: "button",
      "aria-pressed": String(i === only),
      tabindex: i === only ? 0 : -1,
      "aria-label": `${i || "all"} ${two(share)}: to [CLS] in ${i ? `layer ${i}` : "all layers"}`,
    };
    return html`<td>${element(
      "button",
      attributes,
      html`<i style="--share: ${share.toFixed(3)}"></i><b>${i || "all"}</b> <span>${two(
        share,
      )}</span>`,
    )}</td>`;
  };
  return html`<div class="layers bars"><p class="note">What [CLS] gets in each layer; choose one for
the curve</p>
<table role="grid" aria-label="Layers" data-part="only"><tr>${all.map(button)}</tr></table></div>`;
}

const LONG = 44; // letters of a sentence that are shown

/** The last letters of a long text: they are what makes it as long as it is. */
function shortened(sentence) {
  const letters = Array.from(sentence);
  return letters.length > LONG
    ? `… ${letters
        .slice(-LONG)
        .join("")
        .replace(/^\S*\s/, "")}`
    : sentence;
}

/** In words: what the sentence gives to [CLS], and what that would be in equal parts. */
function telling({ n, now, text: sentence, isTyped }, only) {
  const where = only ? `In layer ${only}` : "In all layers";
  return html`<b class="sentence">${shortened(sentence)}</b>${
    isTyped ? "" : html` <span class="note">(first words of a text)</span>`
  }<br>
${n} tokens. ${where}, [CLS] gets <b class="number weight">${two(now[0])}</b> of the weight, [SEP]
${two(now[1])}. In equal parts each would get ${two(1 / n)}.`;
}

const TRIES = [
  ["two words", "Chai piyo"],
  ["a cat", "The cat sat down because it was tired."],
  ["ten times tea", Array(10).fill("tea").join(" ")],
];

export const lengths = {
  label: "What [CLS] gets, by the length of a sentence",
  pageState: { near: null, spot: null },

  fields: () => [{ name: "text", label: "A sentence of yours, short or long", tries: TRIES }],

  wants: (s) => [{ text: s.text, hidden: [] }],

  fits: () => "",

  pose: (s) => [0, 1].map((which) => pointsOf(s).map(({ now }) => now[which])),

  picture(s) {
    const points = pointsOf(s);
    const picked = lookedAt(s, points);
    const one = points[picked];
    const heights = s.moving ?? [0, 1].map((which) => points.map(({ now }) => now[which]));
    const slide = {
      type: "range",
      name: "spot",
      min: 0,
      max: points.length - 1,
      value: picked,
      "aria-valuetext": `${one.n} tokens: ${two(one.now[0])}`,
    };
    return [
      html`<div class="chart">${chart(
        points,
        picked,
        heights,
        "Shares of [CLS] and [SEP] by length; the table below holds the numbers",
      )}
<label class="slide"><span>By length, in tokens: <b
class="number">${one.n}</b></span>${element("input", slide)}</label></div>`,
      html`<div class="measured">${layers(one, s.only)}
<p class="said" role="status"
data-part="said">${element(
        "span",
        { "data-key": `${one.text},${s.only}` },
        telling(one, s.only),
      )}</p></div>`,
      html`<p class="note">Small dots: the first words of one text. Rings: sentences that were read,
yours among them. A share is the mean over all heads and all tokens that ask. Dashed: equal parts, 1
÷ n. Many heads put much weight on [CLS].</p>`,
      () =>
        html`<div class="visually-hidden" data-part="table">${table(
          "Shares by length",
          ["sentence", "tokens", "[CLS]", "[SEP]"],
          points.map(({ text: sentence, n, now }) => [
            shortened(sentence),
            n,
            two(now[0]),
            two(now[1]),
          ]),
        )}</div>`,
    ];
  },

  code(s) {
    const points = pointsOf(s);
    const { text: sentence } = points[lookedAt(s, points)];
    return [
      "from attnlib import models",
      "",
      "minilm = models.load_minilm()",
      `reading = minilm.read(${JSON.stringify(sentence)})`,
      "# of [CLS] and [SEP], by layer: the mean over heads and tokens that ask",
      "shares = reading.weights[..., [0, -1]].mean(axis=(1, 2))  # (n_layers, 2)",
      `share = ${s.only ? `shares[${s.only - 1}]` : "shares.mean(axis=0)"}`,
      "print(len(reading.tokens), share.round(2))",
    ];
  },

  live(view) {
    view.on("spot", "input", (event) => view.set({ near: null, spot: Number(event.target.value) }));
    const choose = (only) => view.glide({ only });
    view.grid("only", (_, only) => choose(only));
    view.on("only", "click", (event) => {
      const cell = event.target.closest("td");
      if (cell) choose(cell.cellIndex);
    });
    /** The point that is nearest to the pointer, if one is near. */
    const nearest = (event) => {
      const svg = view.part("chart");
      const box = svg.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top].map(
        (at) => (at * SHEET.width) / box.width,
      );
      const points = pointsOf(view.state());
      const { x, y } = scaleOf(points);
      const far = points.map(({ n, now }) => Math.hypot(x(n) - px, y(now[0]) - py));
      const best = far.indexOf(Math.min(...far));
      return far[best] < NEAR ? best : null;
    };
    view.on("chart", "pointermove", (event) => {
      const near = nearest(event);
      if (near !== view.state().near) view.set({ near });
    });
    view.on("chart", "click", (event) => view.set({ spot: nearest(event) }));
    view.listen(
      view.root,
      "pointerout",
      (event) => event.target.closest("svg") && view.set({ near: null }),
    );
    view.on("text", "input", () => view.set({ spot: null }));
    view.listen(
      view.root,
      "click",
      (event) => event.target.closest("[data-try]") && view.set({ spot: null }),
    );
  },
};

const NEAR = 24; // units of the sheet
