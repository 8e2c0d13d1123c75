/**
 * The microscope: why one weight is what it is, in a panel that any heatmap opens. Query and key as
 * bars, their products stacked to the score, divided, its exponential, the weight; then the values,
 * each times its weight, stacked to the output. Where no more than the weights is known, it says
 * what they tell of the scores.
 *
 * A widget that uses it has a state `lens` of the page alone: null, or the [row, column] of a
 * weight.
 */
import { cut } from "./heatmap.js";
import { element, html, select } from "../kit/markup.js";
import { plain, two } from "../kit/numbers.js";

const WIDE = 400;
const FEW = 12; // so many numbers of a query are written out
const MOST = 6; // so many keys of a row are drawn
const LETTER = 9; // a wide one, in units of a drawing

const bar = (x, y, width, height, role, more) =>
  element("rect", { x, y, width, height, fill: `var(--${role})`, ...more });
const word = (content, x, y, role = "muted", more = {}) =>
  element("text", { x, y, fill: `var(--${role})`, ...more }, content);
const signed = (x) => plain(Number(x.toPrecision(6))).replace("-", "−");
const bracketed = (x) => (x < 0 ? `(${signed(x)})` : signed(x));

/** 0, the first number, the sum of the first two, and so on. */
function partialSums(numbers) {
  const sums = [0];
  for (const x of numbers) sums.push(sums.at(-1) + x);
  return sums;
}

/**
 * Bars of the query, of the key, and of their products, each of which begins where the last one
 * ended.
 */
function meeting(query, key, called) {
  const n = query.length;
  const step = Math.min((WIDE - 74) / n, 64);
  const w = Math.max(step - (n > 40 ? 0 : 4), 0.5);
  const few = n <= FEW / 2;
  const largest = Math.max(...query.map(Math.abs), ...key.map(Math.abs)) || 1;
  const ends = partialSums(query.map((q, k) => q * key[k]));
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const level = (x) => 164 - ((x - low) * 50) / (high - low || 1);
  const number = (x, k, y) =>
    few &&
    word(signed(Number(x.toPrecision(3))), 74 + k * step + w / 2, y, "ink", {
      "text-anchor": "middle",
    });
  const row = (vector, role, zero) => [
    element("path", {
      d: `M74 ${zero}H${74 + n * step}`,
      stroke: "var(--line)",
      "stroke-width": 0.7,
    }),
    vector.map((x, k) => {
      const h = Math.max((16 * Math.abs(x)) / largest, 0.75);
      return [
        bar(74 + k * step, x < 0 ? zero : zero - h, w, h, role),
        number(x, k, x < 0 ? zero - 3 : zero + 13),
      ];
    }),
  ];
  const sums = query.map((_, k) => {
    const [from, to] = [level(ends[k]), level(ends[k + 1])];
    return [
      bar(74 + k * step, Math.min(from, to), w, Math.max(Math.abs(to - from), 1), "weight", {
        opacity: to > from ? 0.45 : 1,
      }),
      k > 0 &&
        element("path", {
          d: `M${74 + (k - 1) * step} ${from.toFixed(1)}H${74 + k * step + w}`,
          stroke: "var(--line)",
          "stroke-width": 0.7,
        }),
    ];
  });
  const label =
    `Bars of the ${n} numbers of ${called.query} and of ${called.key}, and their products, which ` +
    `add up to ` +
    `${signed(ends.at(-1))}`;
  return element(
    "svg",
    { viewBox: `0 0 ${WIDE} 172`, role: "img", "aria-label": label },
    word(cut(called.query), 0, 24, "query"),
    word(cut(called.key), 0, 76, "key"),
    word("products,", 0, 132),
    word("stacked", 0, 148),
    row(query, "query", 24),
    row(key, "key", 76),
    element("path", {
      d: `M74 ${level(0).toFixed(1)}H${74 + n * step}`,
      stroke: "var(--line)",
      "stroke-width": 0.7,
    }),
    sums,
  );
}

/**
 * A row of weights in one bar, the one that is looked at in full color; names where they fit below.
 */
function sharing(weights, names, j) {
  const room = (k) => LETTER * names[k].length;
  const starts = weights.map((_, k) =>
    weights.slice(0, k).reduce((total, a) => total + a * WIDE, 0),
  );
  // Where the picked one's name stands, whatever its weight.
  const start = Math.max(Math.min(starts[j], WIDE - room(j)), 0);
  const fits = (k) =>
    room(k) < weights[k] * WIDE && (starts[k] + room(k) < start || starts[k] > start + room(j));
  const parts = weights.map((a, k) => [
    bar(starts[k], 0, Math.max(a * WIDE - 0.6, 0), 18, "weight", { opacity: k === j ? 1 : 0.3 }),
    k === j ? word(names[k], start, 33, "key") : fits(k) && word(names[k], starts[k], 33),
  ]);
  const label = weights.map((a, k) => `${names[k]} ${a.toFixed(3)}`).join(", ");
  return element(
    "svg",
    { viewBox: `0 0 ${WIDE} 38`, role: "img", "aria-label": `All weights: ${label}` },
    parts,
  );
}

/** For each number of the output, what the values give it: weight times value, end to end. */
function stacking(weights, values, names, j) {
  const columns = values[0].map((_, c) => weights.map((a, k) => a * values[k][c]));
  const ends = columns.map(partialSums);
  const [low, high] = [Math.min(...ends.flat()), Math.max(...ends.flat())];
  const place = (x) => 74 + ((x - low) / (high - low || 1)) * (WIDE - 140);
  const rows = columns.map((parts, c) => {
    const y = 22 * c;
    const bars = parts.map((_, k) => {
      const [from, to] = [place(ends[c][k]), place(ends[c][k + 1])];
      return bar(Math.min(from, to), y + 2, Math.max(Math.abs(to - from), 0.5), 16, "value", {
        opacity: k === j ? 1 : 0.3,
        stroke: "var(--page)",
        "stroke-width": 0.5,
      });
    });
    return [
      word(`number ${c + 1}`, 0, y + 15),
      bars,
      word(signed(Number(ends[c].at(-1).toFixed(4))), WIDE, y + 15, "ink", {
        "text-anchor": "end",
      }),
    ];
  });
  const zero = element("path", {
    d: `M${place(0).toFixed(1)} 0V${22 * columns.length}`,
    stroke: "var(--line)",
  });
  const label =
    `The output: ` +
    `${ends.map((all) => signed(Number(all.at(-1).toFixed(4)))).join(", ")}; in full color the ` +
    `part of ${names[j]}`;
  return element(
    "svg",
    { viewBox: `0 0 ${WIDE} ${22 * columns.length}`, role: "img", "aria-label": label },
    rows,
    zero,
  );
}

/** The panel as a section of a widget, empty while it is closed. */
function panel(weight, contents) {
  const all = {
    popover: "auto",
    class: "lens",
    "data-part": "lens",
    role: "dialog",
    "aria-label": "A weight under the microscope",
  };
  return element("div", all, weight && [head(weight), contents(weight)]);
}

/** Which weight it is, and a way to the others of its row. */
const head = ({
  queryName,
  names,
  j,
  weights,
}) => html`<p class="lens-head"><span>The weight that <b class="query">${queryName}</b> gives to
<b class="key">${names[j]}</b>: <b class="weight">${plain(weights[j])}</b></span><button
type="button" name="lens-close" aria-label="Close" autofocus>✕</button></p>
${
  names.length > 1 &&
  html`<label class="lens-key"><span>Look at another</span>${select(
    "lens-key",
    names.map((name, k) => [k, name]),
    j,
  )}</label>`
}`;

/**
 * The panel on a weight whose vectors are known:
 *   queryName         what the query is called
 *   names, j          the names of the keys, and which of them the weight belongs to
 *   query, key        two vectors
 *   scores, divisor   the row before it is divided, and [what by, how that is written, or both
 *                     with a sign]
 *   free, weights     which keys may be looked at, all unless given, and the row that results
 *   values            the value of each key, or nothing where there is none
 *   called            what vectors, values and output are called, where readers do not know these
 *                     terms yet
 */
export const weightPanel = (weight) => panel(weight, fromVectors);

const TERMS = { query: "query", key: "key", values: "values", output: "output" };

/** From the vectors to the weight, and on to the output. */
function fromVectors({
  queryName,
  names,
  j,
  query,
  key,
  scores,
  divisor,
  free,
  weights,
  values,
  called = TERMS,
}) {
  const by = divisor[2] ?? `÷ ${divisor[1]}`;
  const scaled = scores.map((x) => x / divisor[0]);
  const open = (k) => !free || free[k];
  const top = Math.max(0, Math.max(...scaled.filter((_, k) => open(k))) - 80); // e^x stays a number
  const exponentials = scaled.map((x, k) => (open(k) ? Math.exp(x - top) : 0));
  const sum = exponentials.reduce((total, x) => total + x, 0);
  const three = (vector) => vector.map((x) => Number(x.toPrecision(3)));
  const [q, k] = [three(query), three(key)];
  const exact = query.every((x, at) => x === q[at] && key[at] === k[at]);
  const written =
    query.length <= FEW &&
    q.map((x, at) => `${at ? bracketed(x) : signed(x)}·${bracketed(k[at])}`).join(" + ");
  const line = (name, ...content) => html`<p><span>${name}</span><span>${content}</span></p>`;
  const less = top ? ` − ${signed(top)}` : "";
  return html`${meeting(query, key, called)}<div class="lens-lines">
${line("score", written && `${written} ${exact ? "=" : "≈"} `, html`<b>${signed(scores[j])}</b>`)}
${line(
  "divided",
  by === "÷ 1" ? "not" : html`${signed(scores[j])} ${by} = <b>${signed(scaled[j])}</b>`,
)}
${!open(j) && line("masked", html`<b>−∞</b>: ${queryName} may not attend to ${names[j]}`)}
${line(
  "exponential",
  open(j)
    ? html`e^${less ? `(${signed(scaled[j])}${less})` : signed(scaled[j])} =
<b>${signed(exponentials[j])}</b>`
    : html`e^−∞ = <b>0</b>`,
)}
${
  sum > 0 &&
  line(
    "weight",
    html`${signed(exponentials[j])} ÷ ${signed(sum)} (sum of all) = <b
class="weight">${plain(weights[j])}</b>`,
  )
}
${
  sum === 0 &&
  line(
    "weight",
    html`${queryName} may attend to nothing, so its weights stay <b class="weight">0</b>`,
  )
}</div>
${sharing(weights, names, j)}
${
  values &&
  html`<p>The ${called.output} is the sum of all ${called.values}, each multiplied by its weight.
The part of ${names[j]} stands out:</p>${stacking(weights, values, names, j)}`
}`;
}

/**
 * The panel on a weight of which no more than its row is known:
 *   queryName, names, j, free, weights  as above
 *   unit                                the step in which weights were recorded
 */
export const sharePanel = (weight) => panel(weight, fromShares);

/**
 * From the weights back to the scores, as far as they lead: to how far apart two scores are, and
 * that no more exactly than the weights were recorded.
 */
function fromShares({ queryName, names, j, free, weights, unit }) {
  const order = [...weights.keys()]
    .filter((k) => weights[k] > 0)
    .sort((a, b) => weights[b] - weights[a]);
  const rival = order.find((k) => k !== j);
  const times = weights[j] / weights[rival];
  const line = (name, ...content) => html`<p><span>${name}</span><span>${content}</span></p>`;
  const share = (k) => signed(Number(weights[k].toPrecision(2)));
  const [far, higher] = [Math.abs(Math.log(times)).toFixed(1), times < 1 ? "lower" : "higher"];
  const compared = rival !== undefined && weights[j] > 0;
  const nothing = !free[j]
    ? html`<b>−∞</b>: ${queryName} may not attend to ${names[j]}`
    : order.length === 0
      ? html`${queryName} may attend to nothing, so its weights stay <b class="weight">0</b>`
      : weights[j] === 0 && html`less than ${plain(unit / 2)}: too little to be recorded`;
  const largest = order.filter((k, at) => at < MOST - 1 || k === j).slice(0, MOST);
  return html`${ladder(largest, weights, names, j)}<div class="lens-lines">
${
  nothing
    ? line(free[j] ? "weight" : "masked", nothing)
    : line("weight", html`${names[j]} gets <b class="weight">${share(j)}</b>`)
}
${
  compared &&
  line(
    "exponential",
    html`${share(j)} ÷ ${share(rival)} ≈ <b>${signed(Number(times.toPrecision(2)))}</b> times that
of ${names[rival]}`,
  )
}
${
  compared &&
  line(
    "divided",
    html`ln ${signed(Number(times.toPrecision(2)))}: a score about <b>${far}</b> ${higher} than that
of ${names[rival]}`,
  )
}
${line("score", "not known: this picture has the weights, but no queries and keys")}</div>`;
}

/**
 * The largest weights of a row as bars, and how far each score is from that of the key that is
 * looked at.
 */
function ladder(order, weights, names, j) {
  const gap = (k) =>
    k === j
      ? "0"
      : weights[j] > 0
        ? signed(Number(Math.log(weights[k] / weights[j]).toFixed(1)))
        : "";
  const rows = order.map((k, at) => {
    const y = 22 * at + 24;
    const end = { "text-anchor": "end" };
    return [
      word(cut(names[k]), 0, y + 13, "key", { "font-weight": k === j ? "bold" : "normal" }),
      bar(84, y, Math.max(110 * weights[k], 0.5), 16, "weight", { opacity: k === j ? 1 : 0.3 }),
      word(two(weights[k]), 240, y + 13, "weight", end),
      word(gap(k), WIDE, y + 13, "ink", end),
    ];
  });
  const label = order.map((k) => `${names[k]} ${two(weights[k])}`).join(", ");
  return element(
    "svg",
    {
      viewBox: `0 0 ${WIDE} ${22 * order.length + 26}`,
      role: "img",
      "aria-label": `The largest of the row: ${label}`,
    },
    word("key", 0, 13, "key"),
    word("weight", 240, 13, "muted", { "text-anchor": "end" }),
    word(`score above ${cut(names[j])}’s`, WIDE, 13, "muted", { "text-anchor": "end" }),
    rows,
  );
}

/**
 * Opens the panel on a weight: `lens` is its [row, column]. Escape or a click beside it closes it.
 */
export function openMicroscope(view, lens) {
  const from = document.activeElement;
  view.set({ lens });
  requestAnimationFrame(() => {
    const panel = view.part("lens");
    panel.showPopover?.();
    panel.ontoggle = ({ newState }) => {
      if (newState !== "closed") return;
      view.set({ lens: null });
      if (document.activeElement === document.body) from?.focus?.({ preventScroll: true });
    };
  });
}

/** Listens to what is in the panel. */
export function liveMicroscope(view) {
  view.on("lens-close", "click", () => view.part("lens").hidePopover());
  view.on("lens-key", "change", ({ target }) =>
    view.set({ lens: [view.state().lens[0], Number(target.value)] }),
  );
}
