/**
 * Plane: words are points; one of them asks, and moves to a blend of all.
 *
 * `plane_numbers.js` computes, `plane_drawing.js` draws; what stands around the picture and what
 * hands do to it are here.
 */
import { buttons, element, html, plain } from "./core.js";
import { apart, clamp, hullOf } from "./geometry.js";
import { ground, moving, sheetOf } from "./plane_drawing.js";
import { SCENES, askingPlace, chainOf, computed, poseOf, sentenceOf, shownIn, tokenAt, tokensOf } from "./plane_numbers.js";

export const defaults = {
  scene: "bank",
  words: { the: [0, 0], boat: [4, 0], money: [0, 4], reached: [0, 0], bank: [1, 1] },
  sentence: "boat", asks: 4, sharpness: 1, ruler: false, query: [2, 1], turn: 0, stretch: 1,
  start: 31, step: 0, rate: 1, compact: false,
};

/** The place in the sentence that is pointed at, and whether the way of the output is shown. */
export const own = { pointed: -1, trail: false };

export const pose = poseOf;
export const compute = computed;
export const chain = chainOf;
export const hull = hullOf;

const STEP = 0.1; // of a word that is moved
const NEAR = 7; // units of the sheet from a line that is pointed at

const sum = (list) => list.reduce((total, x) => total + x, 0);
const round = (x) => plain(Number(x.toFixed(2)));
const pair = (point) => `(${point.map(round).join(", ")})`;
const fixed = (x) => x.toFixed(2).replace(/^-0\.00$/, "0.00");

/** A number that is not negative in few signs. */
const short = (x) => (x >= 1e6 ? x.toExponential(1).replace("e+", "e") : x.toFixed(x >= 1000 ? 0 : 2));

export const label = (s) => `The plane of "${sentenceOf(s).map(({ text }) => text).join(" ")}"`;

/** What has become of the asking word, for those who do not see the picture. */
function told(s, { tokens, output }) {
  return `${tokens[askingPlace(s)]} goes from ${pair(poseOf(s)[2])} to ${pair(output)}.`;
}

/** The sentence, its choice the largest control of all, and beside it the number that answers. */
function sentence(s, { tokens, output }) {
  const slots = SCENES[s.scene].slots;
  const chosen = slots.findIndex((slot) => Array.isArray(slot));
  const choice = (text) =>
    element("button", { type: "button", "data-sentence": text, "aria-pressed": String(text === s.sentence) }, text);
  const words = slots.map((slot, place) => {
    if (Array.isArray(slot)) return html`<span class="slot" role="group" aria-label="The word that changes">${slot.map(choice)}</span>`;
    return html`<span class="rest${place === askingPlace(s) ? " asks" : ""}">${slot}</span>`;
  });
  const line = chosen < 0 ? 0 : slots[chosen].indexOf(s.sentence);
  return html`<div class="sentence" data-line="${line}"><p class="words">${words}</p>
<p class="answer"><b class="query">${tokens[askingPlace(s)]}</b> <span class="becomes">becomes</span><span class="brief">→</span> <b class="value" data-part="answer">(${output.map(fixed).join(", ")})</b></p></div>`;
}

function sharpness({ sharpness }) {
  const slider = { min: 0, max: 4, step: 0.05, value: sharpness, "aria-valuetext": `${plain(sharpness)} times` };
  return html`<div class="sharp"><label class="main"><span>Sharpness <b class="number">× ${sharpness.toFixed(2)}</b></span>
${element("input", { type: "range", name: "sharpness", ...slider })}</label></div>`;
}

/** Score, power, share and value of each word, and what they come to. */
function rows(s, { tokens, points, scores, powers, weights, output }) {
  const { axes } = SCENES[s.scene];
  const asks = askingPlace(s);
  const row = (text, i) => {
    const field = (x, k) =>
      html`<td class="field">${element("input", {
        type: "text", inputmode: "decimal", autocomplete: "off", name: `value_${i}_${k}`, "aria-label": `${text}, ${axes[k]}`, value: round(x),
      })}</td>`;
    const kind = [i === asks && "asks", i === s.pointed && "lit"].filter(Boolean).join(" ") || false;
    return element(
      "tr", { class: kind, "data-place": i },
      html`<th scope="row">${element("button", { type: "button", "data-asks": i, "aria-pressed": String(i === asks), "aria-label": `${text} asks` }, text)}<span
class="bar" style="transform: scaleX(${weights[i].toFixed(4)})"></span></th>
<td>${round(scores[i])}</td><td>${short(powers[i])}</td><td class="weight">${weights[i].toFixed(3)}</td>`,
      points[i].map(field),
    );
  };
  return html`<div class="numbers" data-part="rows"><table>
<caption class="visually-hidden">What ${tokens[asks]} gets from each word</caption>
<thead><tr><th scope="col">asks</th><th scope="col">score</th><th scope="col">power</th><th scope="col">share</th><th scope="col" colspan="2">value</th></tr></thead>
<tbody>${tokens.map(row)}</tbody>
<tfoot><tr><th scope="row">sum</th><td></td><td>${short(sum(powers))}</td><td class="weight">1</td>${output.map((x) => html`<td class="value">${fixed(x)}</td>`)}</tr></tfoot>
</table></div>`;
}

/** The arithmetic of the word that is pointed at, or what can be done. */
function said(s, { tokens, points, query, scores, powers, weights }) {
  const i = s.pointed;
  if (!(i in tokens)) return html`<p class="said hint">${SCENES[s.scene].hint}</p>`;
  const name = html`<b class="key">${tokens[i]}</b>`;
  if (s.ruler) {
    const long = Math.hypot(...query);
    return html`<p class="said">${name}: ${round(long > 0 ? scores[i] / long : 0)} along the query × its length ${round(long)}
= <b class="key">score ${round(scores[i])}</b></p>`;
  }
  const part = points[i].map((x) => x * weights[i]);
  return html`<p class="said">${name}: power ${short(powers[i])} of ${short(sum(powers))} = <b class="weight">${weights[i].toFixed(3)}</b>;
of ${pair(points[i])} that is <b class="value">${pair(part)}</b></p>`;
}

const NONE = html`<div hidden></div>`;

export function picture(s) {
  const now = computed(s);
  return [
    sentence(s, now),
    ground(s),
    moving(s, label(s)),
    s.compact ? NONE : sharpness(s),
    s.compact ? NONE : rows(s, now),
    s.compact ? NONE : controls(s),
    () => html`<p class="visually-hidden" role="status">${told(s, now)}</p>`,
    said(s, now),
  ];
}

const controls = ({ ruler }) => html`<div class="more">
<label class="check">${element("input", { type: "checkbox", name: "ruler", checked: ruler })}<span>Show the dot product</span></label>
${buttons()}</div>`;

/** Runnable NumPy for what is on the screen. */
export function code(s) {
  const { tokens, points } = computed(s);
  const asks = askingPlace(s);
  return [
    "import numpy as np",
    "",
    `words = ${JSON.stringify(tokens)}`,
    `x = np.array(${JSON.stringify(points)}, dtype=float)  # each word is query, key and value`,
    `scores = x @ x[${asks}]  # word ${asks} asks`,
    `powers = np.exp(${s.sharpness} * scores / np.sqrt(2))`,
    "weights = powers / powers.sum()",
    "output = weights @ x",
    "print(weights.round(3))",
    "print(output.round(3))",
  ];
}

/** A number as a reader may type it. */
const typed = (text) => (text.trim() === "" ? NaN : Number(text.trim().replace(",", ".").replace("−", "-")));

export function live(view) {
  const state = view.state;
  const sheet = () => view.part("sheet");
  const { px, spot, low, high } = sheetOf(state().scene);
  let drag = null;

  /** The place of a word in the sentence; -1 of one that is not there. */
  const placeOf = (word) => {
    const s = state();
    return tokensOf(s).find((token) => token.word === word && shownIn(s, token))?.place ?? -1;
  };
  const point = (pointed, trail = false) => {
    const s = state();
    if (pointed !== s.pointed || trail !== s.trail) view.set({ pointed, trail });
  };
  const move = (word, to) => {
    const kept = to.map((x) => clamp(Number((Math.round(x / STEP) * STEP).toFixed(6)), low, high));
    view.set({ words: { ...state().words, [word]: kept } });
  };
  const ask = (place) => place !== askingPlace(state()) && view.glide({ asks: place });

  // What the pointer or the focus is on: a row, a dot, a line, the slider.
  const pointedAt = (target) => {
    const { place, word } = target.closest("[data-place], [data-word]")?.dataset ?? {};
    if (place !== undefined) return Number(place);
    return word === undefined ? -1 : placeOf(word);
  };
  const nearest = (event) => {
    const s = state();
    const [points, present, from] = s.moving ?? poseOf(s);
    const here = px(spot(sheet(), event));
    const far = points.map((p, j) => (present[j] === 1 ? apart(here, px(p), px(from)) : Infinity));
    const closest = far.indexOf(Math.min(...far));
    return far[closest] < NEAR ? tokensOf(s)[closest].place : -1;
  };
  const look = (event) => {
    const { target } = event;
    const found = pointedAt(target);
    point(found < 0 && sheet().contains(target) ? nearest(event) : found, Boolean(target.closest('[name="sharpness"]')));
  };
  view.listen(view.root, "pointerover", (event) => drag || look(event));
  view.listen(view.root, "pointerleave", () => drag || point(-1));
  view.listen(view.root, "focusin", ({ target }) => {
    if (target.matches(":focus-visible")) point(pointedAt(target), target.name === "sharpness");
  });
  view.listen(view.root, "focusout", () => point(-1));

  // A word is dragged, or tapped to ask; one that is not in the sentence is tapped to come in.
  // No scrolling from a word: touch-action does not reach the parts of a drawing everywhere.
  const hold = (event) => event.target.closest("[data-word]") && event.preventDefault();
  view.listen(view.root, "touchstart", hold, { passive: false });
  view.on("sheet", "pointerdown", (event) => {
    const handle = event.target.closest("[data-word]");
    if (!handle || event.button) return;
    const { word } = handle.dataset;
    const [x, y] = spot(sheet(), event);
    const held = state().words[word];
    drag = { word, off: [held[0] - x, held[1] - y], x: event.clientX, y: event.clientY, moved: false };
    sheet().setPointerCapture(event.pointerId);
    event.preventDefault();
    handle.focus({ focusVisible: false, preventScroll: true });
    point(placeOf(word));
  });
  view.on("sheet", "pointermove", (event) => {
    if (!drag) return look(event);
    drag.moved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) >= 4;
    if (drag.moved) move(drag.word, spot(sheet(), event).map((x, k) => x + drag.off[k]));
  });
  for (const end of ["pointerup", "pointercancel"]) {
    view.on("sheet", end, () => {
      if (!drag) return;
      const { word, moved } = drag;
      drag = null;
      if (moved || end === "pointercancel") return;
      if (placeOf(word) >= 0) ask(placeOf(word));
      else view.glide({ sentence: word });
    });
  }
  view.listen(
    self,
    "keydown",
    (event) => {
      const word = view.root.contains(event.target) ? event.target.dataset.word : undefined;
      if (word === undefined || event.altKey || event.metaKey || event.ctrlKey) return;
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!way && !["Enter", " "].includes(event.key)) return;
      event.preventDefault();
      const far = STEP * (event.shiftKey ? 5 : 1);
      if (way) move(word, state().words[word].map((x, k) => x + far * way[k]));
      else ask(placeOf(word));
    },
    { capture: true },
  );

  view.listen(view.root, "click", ({ target }) => {
    const { sentence, asks } = target.closest("button")?.dataset ?? {};
    if (sentence && sentence !== state().sentence) view.glide({ sentence });
    if (asks) ask(Number(asks));
  });
  view.on("sharpness", "input", ({ target }) => view.set({ sharpness: Number(target.value) }));
  view.on("ruler", "change", ({ target }) => view.set({ ruler: target.checked }));
  view.on("rows", "input", ({ target }) => {
    const [, place, k] = target.name.split("_");
    const x = typed(target.value);
    if (!(x >= low && x <= high)) {
      view.say(`A word needs numbers from ${low} to ${high}; the plane still shows the last one.`);
      return;
    }
    view.say("");
    const s = state();
    const { word } = tokensOf(s)[tokenAt(s, Number(place))];
    view.set({ words: { ...s.words, [word]: s.words[word].map((old, i) => (i === Number(k) ? x : old)) } });
  });
  view.on("rows", "focusout", ({ target }) => {
    if (!target.name) return;
    const [, place, k] = target.name.split("_");
    target.value = round(computed(state()).points[place][k]);
    view.say("");
  });
}
