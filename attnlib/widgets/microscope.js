/**
 * The microscope: why one weight is what it is, in a panel that any heatmap opens. Query and key as
 * bars, their products adding up, divided, powered, shared; then the scaled values stacking into the
 * output.
 *
 * A widget that uses it has a state `lens` of the page alone: null, or the [row, column] of a weight.
 */
import { element, html, plain } from "./core.js";

const WIDE = 400;
const FEW = 12; // so many numbers of a query are written out

const bar = (x, y, width, height, role, more) => element("rect", { x, y, width, height, fill: `var(--${role})`, ...more });
const word = (content, x, y, role = "muted", more = {}) => element("text", { x, y, fill: `var(--${role})`, ...more }, content);
const signed = (x) => plain(Number(x.toPrecision(6))).replace("-", "−");
const bracketed = (x) => (x < 0 ? `(${signed(x)})` : signed(x));

/** Bars of the query, of the key, and of their products, each of which begins where the last one ended. */
function meeting(query, key) {
  const n = query.length;
  const step = Math.min((WIDE - 74) / n, 64);
  const w = Math.max(step - (n > 40 ? 0 : 4), 0.5);
  const few = n <= FEW / 2;
  const largest = Math.max(...query.map(Math.abs), ...key.map(Math.abs)) || 1;
  const ends = query.reduce((all, q, k) => [...all, all.at(-1) + q * key[k]], [0]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const level = (x) => 164 - ((x - low) * 50) / (high - low || 1);
  const number = (x, k, y) => few && word(signed(Number(x.toPrecision(3))), 74 + k * step + w / 2, y, "ink", { "text-anchor": "middle" });
  const row = (vector, role, zero) => [
    element("path", { d: `M74 ${zero}H${74 + n * step}`, stroke: "var(--line)", "stroke-width": 0.7 }),
    vector.map((x, k) => {
      const h = Math.max((16 * Math.abs(x)) / largest, 0.75);
      return [bar(74 + k * step, x < 0 ? zero : zero - h, w, h, role), number(x, k, x < 0 ? zero - 3 : zero + 13)];
    }),
  ];
  const sums = query.map((q, k) => {
    const [from, to] = [level(ends[k]), level(ends[k + 1])];
    return [
      bar(74 + k * step, Math.min(from, to), w, Math.max(Math.abs(to - from), 1), "weight", { opacity: to > from ? 0.45 : 1 }),
      k > 0 && element("path", { d: `M${74 + (k - 1) * step} ${from.toFixed(1)}H${74 + k * step + w}`, stroke: "var(--line)", "stroke-width": 0.7 }),
    ];
  });
  const label = `Bars of the ${n} numbers of query and key, and their products adding up to ${signed(ends.at(-1))}`;
  return element("svg", { viewBox: `0 0 ${WIDE} 172`, role: "img", "aria-label": label },
    word("query", 0, 24, "query"), word("key", 0, 76, "key"), word("products,", 0, 132), word("adding up", 0, 148), row(query, "query", 24), row(key, "key", 76),
    element("path", { d: `M74 ${level(0).toFixed(1)}H${74 + n * step}`, stroke: "var(--line)", "stroke-width": 0.7 }), sums);
}

/** A row of shares in one bar, the one that is looked at in full colour. */
function sharing(weights, names, j) {
  let x = 0;
  const parts = weights.map((a, k) => {
    const from = x;
    x += a * WIDE;
    return bar(from, 0, Math.max(a * WIDE - 0.6, 0), 18, "weight", { opacity: k === j ? 1 : 0.3 });
  });
  const label = weights.map((a, k) => `${names[k]} ${a.toFixed(3)}`).join(", ");
  return element("svg", { viewBox: `0 0 ${WIDE} 18`, role: "img", "aria-label": `The row shared: ${label}` }, parts);
}

/** For each number of the output, what the values give it: weight times value, end to end. */
function stacking(weights, values, names, j) {
  const columns = values[0].map((_, c) => weights.map((a, k) => a * values[k][c]));
  const ends = columns.map((parts) => parts.reduce((all, x) => [...all, all.at(-1) + x], [0]));
  const [low, high] = [Math.min(...ends.flat()), Math.max(...ends.flat())];
  const place = (x) => 74 + ((x - low) / (high - low || 1)) * (WIDE - 140);
  const rows = columns.map((parts, c) => {
    const y = 22 * c;
    const bars = parts.map((x, k) => {
      const [from, to] = [place(ends[c][k]), place(ends[c][k + 1])];
      return bar(Math.min(from, to), y + 2, Math.max(Math.abs(to - from), 0.5), 16, "value", { opacity: k === j ? 1 : 0.3, stroke: "var(--page)", "stroke-width": 0.5 });
    });
    return [word(`number ${c + 1}`, 0, y + 15), bars, word(signed(Number(ends[c].at(-1).toFixed(4))), WIDE, y + 15, "ink", { "text-anchor": "end" })];
  });
  const zero = element("path", { d: `M${place(0).toFixed(1)} 0V${22 * columns.length}`, stroke: "var(--line)" });
  const label = `The output: ${ends.map((all) => signed(Number(all.at(-1).toFixed(4)))).join(", ")}; in full colour what ${names[j]} gives`;
  return element("svg", { viewBox: `0 0 ${WIDE} ${22 * columns.length}`, role: "img", "aria-label": label }, rows, zero);
}

/**
 * The panel as a section of a widget; null while it is closed. What it needs of a weight:
 *   asks, names, j    who asks, who answers, and which of them is looked at
 *   query, key        two vectors, or nothing where they are not known
 *   scores, divisor   the row before it is divided, and [what it is divided by, how that is written]
 *   free, weights     which keys may be looked at, and the row that results
 *   values            what each key hands over, or nothing where it is not known
 */
export function weightPanel(weight) {
  const all = { popover: "auto", class: "lens", "data-part": "lens", role: "dialog", "aria-label": "A weight under the microscope" };
  return element("div", all, weight && inside(weight));
}

function inside({ asks, names, j, query, key, scores, divisor, free, weights, values }) {
  const scaled = scores?.map((x) => x / divisor[0]);
  const allowed = !free || free[j];
  const top = scaled && Math.max(0, Math.max(...scaled.filter((_, k) => !free || free[k])) - 80); // e^x stays a number
  const powers = scaled?.map((x, k) => (!free || free[k] ? Math.exp(x - top) : 0));
  const sum = powers?.reduce((total, x) => total + x, 0);
  const written = query && query.length <= FEW && query.map((q, k) => `${k ? bracketed(q) : signed(q)}·${bracketed(key[k])}`).join(" + ");
  const line = (name, ...content) => html`<p><span>${name}</span><span>${content}</span></p>`;
  const less = top ? ` − ${signed(top)}` : "";
  return html`<p class="lens-head"><span><b class="query">${asks}</b> asks, <b class="key">${names[j]}</b> answers:
<b class="weight">${plain(weights[j])}</b></span><button type="button" name="lens-close" aria-label="Close" autofocus>✕</button></p>
${query && meeting(query, key)}<div class="lens-lines">
${scores && line("score", written && `${written} = `, html`<b>${signed(scores[j])}</b>`)}
${scaled && line("divided", divisor[0] === 1 ? "not" : html`${signed(scores[j])} ÷ ${divisor[1]} = <b>${signed(scaled[j])}</b>`)}
${!allowed && line("masked", html`<b>−∞</b>: ${asks} may not look at ${names[j]}`)}
${scaled && line("powered", allowed ? html`e^${less ? `(${signed(scaled[j])}${less})` : signed(scaled[j])} = <b>${signed(powers[j])}</b>` : html`e^−∞ = <b>0</b>`)}
${scaled && sum > 0 && line("shared", html`${signed(powers[j])} ÷ ${signed(sum)}, the sum of its row = <b class="weight">${plain(weights[j])}</b>`)}
${sum === 0 && line("shared", html`nothing: ${asks} may look at no key, so its weights stay <b class="weight">0</b>`)}</div>
${sharing(weights, names, j)}
${values && html`<p>${plain(Number(weights[j].toFixed(4)))} of ${names[j]}’s value goes into the output, which is what all values add up to, each as much as its weight says:</p>${stacking(weights, values, names, j)}`}`;
}

/** Opens the panel on a weight: `lens` is its [row, column]. Escape or a click beside it closes it. */
export function look(view, lens) {
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

/** Listens to the panel's own button. */
export function liveMicroscope(view) {
  view.on("lens-close", "click", () => view.part("lens").hidePopover());
}
