/**
 * Plane: words are points of a plane; the query of one of them blends all of them into an output.
 *
 * `numbers.js` computes and `drawing.js` draws; this file has what surrounds the drawing, and what
 * happens when a reader uses it.
 */
import { distance, distanceFromLine, hullOf } from "../drawing/geometry.js";
import { buttons, element, html, slider } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, weightPanel } from "../drawing/microscope.js";
import { clamp, plain, sum } from "../kit/numbers.js";
import { balance, ground, moving, sheetOf } from "./drawing.js";
import {
  learningCode,
  learningLive,
  learningSections,
  learned,
  learnedMatrix,
} from "./learning.js";
import {
  queryPlace,
  attend,
  axesOf,
  chainOf,
  computed,
  nextWordsIn,
  poseOf,
  SCENES,
  sentenceOf,
  shownIn,
  tokenAt,
  tokensOf,
  turning,
  valuesIn,
} from "./numbers.js";

/**
 * The place under the pointer; whether the path of the output is shown; the step at which learning
 * pauses; the weight under the microscope.
 */
export const pageState = { pointed: -1, trail: false, until: null, lens: null };

const learns = ({ scene }) => scene === "learning";
const isPriced = ({ scene }) => "prices" in SCENES[scene];
export const layout = (s) => [
  `scene-${s.scene}`,
  s.compact && "compact",
  SCENES[s.scene]?.alone && "alone",
];
export const pose = (s) => (learns(s) ? learnedMatrix(s) : poseOf(s));
export const compute = (s) => (learns(s) ? learned(s) : computed(s));
export const chain = chainOf;
export const hull = hullOf;

const STEP = 0.1; // of a word that is moved
const MOST = 8; // own words
const FREE = [
  [-1, 2],
  [1, -2],
  [2, -0.5],
  [-1, -2],
  [-0.5, 1],
  [2.5, 2.5],
  [-2.5, 2.5],
  [2.5, -2.5],
]; // for new ones
const LONGEST = 12; // letters of a name
const isName = (name) => name.trim() !== "" && name.length <= LONGEST && !/^\d+$/.test(name);

function isPoint(point, scene) {
  const { low, high } = SCENES[scene].sheet;
  return (
    Array.isArray(point) &&
    point.length === 2 &&
    point.every((x) => typeof x === "number" && x >= low && x <= high)
  );
}

/** The words of the scene or, if they are the reader's own, any; each at a place on the sheet. */
function areWords(words, s) {
  const names = Object.keys(words);
  const { slots } = SCENES[s.scene];
  const known = slots ? Object.keys(s.words) : names.filter(isName).slice(0, MOST);
  const same =
    (slots || names.length > 0) &&
    names.length === known.length &&
    known.every((name) => Object.hasOwn(words, name));
  return same && names.every((name) => isPoint(words[name], s.scene));
}

export const shared = {
  scene: false,
  compact: false,
  words: areWords,
  query: (point) => isPoint(point, "prices"),
};
const NEAR = 7; // units of the sheet from a line that is pointed at

const shown = (text) => text.replace("-", "−");
const round = (x) => shown(plain(Number(x.toFixed(2))));
const pair = (point) => `(${point.map(round).join(", ")})`;
const fixed = (x) => shown(x.toFixed(2).replace(/^-0\.00$/, "0.00"));

/** A positive number, written short. */
const short = (x) =>
  x >= 1e5 ? x.toExponential(1).replace("e+", "e") : x.toFixed(x >= 1000 ? 0 : 2);

export const label = (s) =>
  learns(s)
    ? "Three questions are learned"
    : `The plane of "${sentenceOf(s)
        .map(({ text }) => text)
        .join(" ")}"`;

/** The query and the output in words, for a screen reader. */
function inWords(s, { tokens, output }) {
  if (isPriced(s)) return `The query ${pair(s.query)} gets ${output[0].toFixed(3)}.`;
  return `${tokens[queryPlace(s)]} goes from ${pair(poseOf(s)[2])} to ${pair(output)}.`;
}

const number = (name, value, label) =>
  element("input", {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    name,
    value: round(value),
    "aria-label": label,
  });

/** The sentence with its choice of a word, and beside it the output. */
function sentence(s, { tokens, output }) {
  if (isPriced(s)) {
    const field = (k) =>
      SCENES[s.scene].alone
        ? html`<b class="query">${round(s.query[k])}</b>`
        : number(`query_${k}`, s.query[k], `query, ${SCENES.prices.axes[k]}`);
    return html`<div class="sentence priced${s.compact ? " compact" : ""}${
      SCENES[s.scene].alone ? " alone" : ""
    }"><p class="words"
data-part="fields"><span>Heat</span> ${field(0)} <span>sweetness</span>
${field(1)}</p>
<p class="answer">Estimated price: <b class="value"
data-part="answer">${output[0].toFixed(3)}</b></p></div>`;
  }
  const slots = SCENES[s.scene].slots ?? tokens;
  const chosen = slots.findIndex((slot) => Array.isArray(slot));
  const choice = (text) =>
    element(
      "button",
      { type: "button", "data-sentence": text, "aria-pressed": String(text === s.sentence) },
      text,
    );
  const words = slots.map((slot, place) => {
    if (Array.isArray(slot))
      return html`<span class="slot" role="group"
aria-label="The word that changes">${slot.map(choice)}</span>`;
    return html`<span class="rest${place === queryPlace(s) ? " query-word" : ""}">${slot}</span> `;
  });
  const kind = ["sentence", chosen < 0 ? "" : "choice", s.compact ? "compact" : ""]
    .filter(Boolean)
    .join(" ");
  return html`<div class="${kind}"
data-line="${chosen < 0 ? 0 : slots[chosen].indexOf(s.sentence)}"><p class="words">${words}</p>
<p class="answer"><b class="query">${tokens[queryPlace(s)]}</b> <span
class="becomes">becomes</span><span class="brief">→</span> <b class="value"
data-part="answer">(${output.map(fixed).join(", ")})</b></p></div>`;
}

/** What follows from the output: the blended price, or the probabilities of the next words. */
function outcome(s, output) {
  if (isPriced(s)) return balance(s);
  const { next } = SCENES[s.scene];
  if (!next) return NONE;
  const probabilities = nextWordsIn(s, output);
  const bars = Object.keys(next).map(
    (word, k) =>
      html`<li>${word}<span class="chance"
style="transform: scaleX(${probabilities[k].toFixed(4)})"></span><b
class="digits">${fixed(probabilities[k])}</b></li>`,
  );
  return html`<div class="next" data-part="next"><p>Next word</p><ul>${bars}</ul></div>`;
}

const control = (
  s,
  name,
  title,
  shown,
  more,
  kind = "main",
) => html`<label class="${kind}"><span>${title} <b class="number">${shown}</b></span>
${slider(name, s, more)}</label>`;

/** The sliders beside the picture: the sharpness, or how W_Q turns and stretches. */
function controls(s) {
  if (s.scene === "prices" || (s.compact && s.scene !== "turned")) return NONE;
  if (s.scene !== "turned") {
    const all = { step: 0.05, value: s.sharpness, "aria-valuetext": `${plain(s.sharpness)} times` };
    return html`<div class="sharp">${control(
      s,
      "sharpness",
      "Sharpness",
      `× ${s.sharpness.toFixed(2)}`,
      all,
    )}</div>`;
  }
  const turn = { step: 1, value: s.turn, "aria-valuetext": `${s.turn} degrees` };
  const stretch = { step: 0.05, value: s.stretch, "aria-valuetext": `${plain(s.stretch)} times` };
  return html`<div class="sharp turned">${control(
    s,
    "turn",
    "Turn",
    shown(`${s.turn}°`),
    turn,
    false,
  )}${!s.compact && control(s, "stretch", "Stretch", `× ${s.stretch.toFixed(2)}`, stretch, false)}
${matrix(turning(s.turn, s.stretch))}</div>`;
}

/** W_Q, written as a matrix. */
const matrix = (w_q) =>
  html`<p class="matrix" role="img"
aria-label="W_Q = ${w_q.map((row) => row.map(fixed).join(" ")).join("; ")}"><i>W<sub>Q</sub></i> =
<span class="cells">${w_q.flat().map((x) => html`<span>${fixed(x)}</span>`)}</span></p>`;

/** A table with a row for each word: its score, exponential, weight and value; then the sums. */
function rows(s, now) {
  const { tokens, points, weights } = now;
  const axes = axesOf(s);
  const priced = isPriced(s);
  const free = s.scene === "words";
  const queryAt = priced ? -1 : queryPlace(s);
  const columns = {
    score: (i) => shown(plain(Number(now.scores[i].toFixed(Math.abs(now.scores[i]) < 10 ? 2 : 1)))),
    exp: (i) => short(now.exponentials[i]),
  };
  const kept = free ? ["score"] : ["score", "exp"];
  const why = (text, i) =>
    element(
      "button",
      {
        type: "button",
        class: "digits",
        "data-why": i,
        "aria-label": `${weights[i].toFixed(3)}: why ${text} gets it`,
      },
      weights[i].toFixed(3),
    );
  const row = (text, i) => {
    const kind =
      [i === queryAt && "query-row", i === s.pointed && "lit"].filter(Boolean).join(" ") || false;
    const ask = {
      type: "button",
      "data-asks": i,
      "aria-pressed": String(i === queryAt),
      "aria-label": `${text} asks`,
    };
    const name = {
      type: "text",
      autocomplete: "off",
      name: `name_${i}`,
      value: text,
      "aria-label": `name of word ${i + 1}`,
    };
    return element(
      "tr",
      { class: kind, "data-place": i },
      html`<th scope="row">${
        priced ? html`<span class="name">${text}</span>` : element("button", ask, free ? "" : text)
      }${free && element("input", name)}<span
class="bar" style="transform: scaleX(${weights[i].toFixed(4)})"></span></th>
${kept.map((column) => digits(columns[column](i)))}<td class="weight">${why(text, i)}</td>`,
      points[i].map(
        (x, k) =>
          html`<td class="field">${number(`value_${i}_${k}`, x, `${text}, ${axes[k]}`)}</td>`,
      ),
      free &&
        html`<td>${element(
          "button",
          {
            type: "button",
            class: "remove",
            "data-remove": i,
            "aria-label": `remove ${text}`,
            disabled: tokens.length === 1,
          },
          "×",
        )}</td>`,
    );
  };
  const foot = html`<tr><th scope="row">sum</th><td></td>${
    free || digits(short(sum(now.exponentials)))
  }<td class="weight">1</td>${
    priced ? html`<td colspan="2"></td>` : now.output.map((x) => digits(fixed(x), "value"))
  }${free && html`<td></td>`}</tr>`;
  const [first, last] = SCENES[s.scene].heads ?? ["asks", "value"];
  const called = {
    exp: priced ? "exp" : html`exp <span class="by">(score</span> <span class="by">÷ √2)</span>`,
  };
  const head = [first, ...kept, "weight"].map(
    (name) => html`<th scope="col">${called[name] ?? name}</th>`,
  );
  return html`<div class="numbers of-${s.scene}" data-part="rows"><table>
<caption class="visually-hidden">What ${priced ? "the query" : tokens[queryAt]} gets from
each</caption>
<thead><tr>${head}<th scope="colgroup"
colspan="2">${last}</th>${free && html`<td></td>`}</tr></thead>
<tbody>${tokens.map(row)}</tbody><tfoot>${foot}</tfoot></table>${
    free &&
    element(
      "button",
      { type: "button", name: "add", disabled: tokens.length === MOST },
      "Add a word",
    )
  }</div>`;
}

/**
 * A cell whose number changes while a word is dragged: in a box of its own, so that no table is
 * laid out again.
 */
const digits = (text, role = false) =>
  element("td", { class: role }, html`<span class="digits">${text}</span>`);

/** What the microscope needs of a weight. Sharpness goes with the division. */
function weightOf(s, j) {
  const { tokens, points, query, scores, weights } = computed(s);
  if (j >= tokens.length) return null;
  const priced = isPriced(s);
  const root = priced ? 1 : Math.SQRT2;
  const by = [priced ? "" : "÷ √2", s.sharpness === 1 ? "" : `× ${plain(s.sharpness)}`]
    .filter(Boolean)
    .join(" ");
  return {
    queryName: priced ? "the query" : tokens[queryPlace(s)],
    names: tokens,
    j,
    query,
    key: points[j],
    scores,
    divisor: [root / s.sharpness, "1", by || "÷ 1"],
    weights,
    values: valuesIn(s) ?? points,
    // The first chapter has these pictures before it has queries, keys and values.
    called:
      s.scene === "bank"
        ? {
            query: tokens[queryPlace(s)],
            key: tokens[j],
            values: "points",
            output: "new point",
          }
        : undefined,
  };
}

/** The arithmetic of the word under the pointer, or a hint what a reader can do. */
function explanation(s, { tokens, points, scores, exponentials, weights }) {
  const i = s.pointed;
  const { hint, alone } = SCENES[s.scene];
  if (!(i in tokens)) {
    const why = alone
      ? ""
      : s.compact
        ? "Tap a line to see its arithmetic."
        : "Tap a line or a weight to see why.";
    return html`<p class="said hint">${hint} ${why}</p>`;
  }
  const weight = html`weight of <b class="key">${tokens[i]}</b>: ${short(exponentials[i])} ÷
${short(sum(exponentials))} = <b class="weight">${weights[i].toFixed(3)}</b>`;
  if (isPriced(s)) return html`<p class="said">score ${round(scores[i])}; ${weight}</p>`;
  const part = points[i].map((x) => x * weights[i]);
  return html`<p class="said">${weight}; part: ${weights[i].toFixed(3)} · ${pair(points[i])} = <b
class="value">${pair(part)}</b></p>`;
}

const NONE = html`<div hidden></div>`;

export function picture(s) {
  if (learns(s)) return learningSections(s, matrix, NONE);
  const now = computed(s);
  const { alone } = SCENES[s.scene];
  const full = (section) => (s.compact ? NONE : section());
  const { output } = s.moving ? attend(s.moving, valuesIn(s)) : now;
  return [
    sentence(s, { ...now, output }),
    alone ? NONE : ground(s),
    alone ? NONE : moving(s, label(s)),
    outcome(s, output),
    controls(s),
    alone ? NONE : full(() => rows(s, now)),
    html`<div class="more">${buttons()}</div>`,
    () => html`<p class="visually-hidden" role="status">${inWords(s, now)}</p>`,
    explanation(s, now),
    weightPanel(s.lens && weightOf(s, s.lens[1])),
  ];
}

/** Runnable NumPy for what is on the screen. */
export function code(s) {
  if (learns(s)) return learningCode(s);
  const { tokens, points } = computed(s);
  const at = queryPlace(s);
  const array = (rows) => `np.array(${JSON.stringify(rows)}, dtype=float)`;
  const turned = s.scene === "turned";
  const { next } = SCENES[s.scene];
  const given = isPriced(s)
    ? [
        `drinks = ${JSON.stringify(tokens)}`,
        `keys = ${array(points)}`,
        `values = ${array(valuesIn(s))}`,
        `query = ${array(s.query)}`,
        "scores = keys @ query",
        `exponentials = np.exp(${s.sharpness} * scores)`,
      ]
    : [
        `words = ${JSON.stringify(tokens)}`,
        `values = ${array(points)}  # each word is its key and its value`,
        ...(turned ? [`w_q = ${array(turning(s.turn, s.stretch))}`] : []),
        `scores = values @ ${turned ? `(values[${at}] @ w_q)` : `values[${at}]`}  # word ` +
          `${at} has the query`,
        `exponentials = np.exp(${s.sharpness} * scores / np.sqrt(2))`,
      ];
  return [
    "import numpy as np",
    "",
    ...given,
    "weights = exponentials / exponentials.sum()",
    "output = weights @ values",
    "print(weights.round(3))",
    "print(output.round(3))",
    ...(next
      ? [
          `goes_with = ${array(Object.values(next))}  # ${Object.keys(next).join(", ")}`,
          "logits = goes_with @ output",
          "print((np.exp(logits) / np.exp(logits).sum()).round(3))",
        ]
      : []),
  ];
}

/** A number as a reader may type it. */
const typed = (text) =>
  text.trim() === "" ? NaN : Number(text.trim().replace(",", ".").replace("−", "-"));

export function live(view) {
  const { state } = view;
  if (learns(state())) return learningLive(view);
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
  const snapped = (to) =>
    to.map((x) => clamp(Number((Math.round(x / STEP) * STEP).toFixed(6)), low, high));
  /**
   * Moves a word, or without one the end of the query: W_Q then turns and stretches, or the query
   * is another one.
   */
  const move = (word, to) => {
    const s = state();
    if (word !== undefined) return view.set({ words: { ...s.words, [word]: snapped(to) } });
    if (isPriced(s)) return view.set({ query: snapped(to) });
    const [, , from] = poseOf(s);
    const long = Math.hypot(...from);
    if (long === 0) return; // nothing turns it
    const by = ((Math.atan2(to[1], to[0]) - Math.atan2(from[1], from[0])) * 180) / Math.PI;
    turn(by, Math.hypot(...to) / long);
  };
  const turn = (degrees, stretch) =>
    view.set({
      turn: Math.round(((degrees + 540) % 360) - 180),
      stretch: Number(clamp(stretch, 0, 3).toFixed(2)),
    });
  const ask = (place) => place !== queryPlace(state()) && view.glide({ asks: place });

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
    const far = points.map((p, j) =>
      present[j] === 1 ? distanceFromLine(here, px(p), px(from)) : Infinity,
    );
    const closest = far.indexOf(Math.min(...far));
    return far[closest] < NEAR ? tokensOf(s)[closest].place : -1;
  };
  const follow = (event) => {
    const { target } = event;
    const found = pointedAt(target);
    const onLine = found < 0 && sheet()?.contains(target) && !target.closest(".word");
    point(
      onLine ? nearest(event) : found, // at the ring of the query all lines meet
      Boolean(target.closest('[name="sharpness"]')),
    );
  };
  view.listen(view.root, "pointerover", (event) => drag || follow(event));
  view.listen(view.root, "pointerleave", () => drag || point(-1));
  view.listen(view.root, "focusin", ({ target }) => {
    if (target.matches(":focus-visible")) point(pointedAt(target), target.name === "sharpness");
  });
  view.listen(view.root, "focusout", () => point(-1));

  // A word is dragged, or tapped to ask; one that is not in the sentence is tapped to come in.
  // No scrolling from a word: touch-action does not reach the parts of a drawing everywhere.
  const hold = (event) => event.target.closest(".word") && event.preventDefault();
  view.listen(view.root, "touchstart", hold, { passive: false });
  let onWord = false; // whether the click to come is of a word, which is not its line's
  view.on("sheet", "pointerdown", (event) => {
    const handle = event.target.closest(".word");
    onWord = Boolean(handle);
    if (!handle || event.button) return point(nearest(event));
    const { word } = handle.dataset;
    const [x, y] = spot(sheet(), event);
    const before = word === undefined ? computed(state()).query : state().words[word];
    drag = {
      word,
      off: [before[0] - x, before[1] - y],
      x: event.clientX,
      y: event.clientY,
      moved: false,
    };
    sheet().setPointerCapture(event.pointerId);
    event.preventDefault();
    handle.focus({ focusVisible: false, preventScroll: true });
    point(word === undefined ? -1 : placeOf(word));
  });
  view.on("sheet", "pointermove", (event) => {
    if (!drag) return follow(event);
    drag.moved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) >= 4;
    if (drag.moved)
      move(
        drag.word,
        spot(sheet(), event).map((x, k) => x + drag.off[k]),
      );
  });
  for (const end of ["pointerup", "pointercancel"]) {
    view.on("sheet", end, () => {
      if (!drag) return;
      const { word, moved } = drag;
      drag = null;
      if (moved || word === undefined || end === "pointercancel") return;
      if (placeOf(word) >= 0) ask(placeOf(word));
      else view.glide({ sentence: word });
    });
  }
  view.on("sheet", "click", (event) => {
    const place = nearest(event);
    if (!onWord && !state().compact && place >= 0)
      openMicroscope(view, [queryPlace(state()), place]);
  });
  liveMicroscope(view);
  view.listen(
    self,
    "keydown",
    (event) => {
      const handle = view.root.contains(event.target) && event.target.closest(".word");
      if (!handle || event.altKey || event.metaKey || event.ctrlKey) return;
      const { word } = handle.dataset;
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
        event.key
      ];
      if (!way && !["Enter", " "].includes(event.key)) return;
      event.preventDefault();
      const s = state();
      const far = event.shiftKey ? 5 : 1;
      if (!way) word !== undefined && ask(placeOf(word));
      else if (word === undefined && s.scene === "turned")
        turn(s.turn - way[0] * far, s.stretch + way[1] * STEP * far);
      else
        move(
          word,
          (word === undefined ? s.query : s.words[word]).map((x, k) => x + STEP * far * way[k]),
        );
    },
    { capture: true },
  );

  view.listen(view.root, "click", ({ target }) => {
    const { sentence, asks, remove, why } = target.closest("button")?.dataset ?? {};
    if (sentence && sentence !== state().sentence) view.glide({ sentence });
    if (asks) ask(Number(asks));
    if (why) openMicroscope(view, [queryPlace(state()), Number(why)]);
    if (remove) edit((names) => names.splice(Number(remove), 1), Number(remove));
  });
  for (const name of ["sharpness", "turn", "stretch"]) {
    view.on(name, "input", ({ target }) => view.set({ [name]: Number(target.value) }));
  }

  // What is typed: numbers, and names of own words.
  const refuse = () =>
    view.say(`That needs a number from ${low} to ${high}; the plane still shows the last one.`);
  const put = (point, k, x) => point.map((old, i) => (i === Number(k) ? x : old));
  const change = ({ target }) => {
    const [what, place, k] = target.name.split("_");
    const s = state();
    view.say("");
    if (what === "name") return rename(Number(place), target.value.trim());
    const x = typed(target.value);
    if (!(x >= low && x <= high)) return refuse();
    if (what === "query") return view.set({ query: put(s.query, place, x) });
    const { word } = tokensOf(s)[tokenAt(s, Number(place))];
    view.set({ words: { ...s.words, [word]: put(s.words[word], k, x) } });
  };
  const restore = ({ target }) => {
    const [what, place, k] = (target.name ?? "").split("_");
    const s = state();
    if (what === "query") target.value = round(s.query[place]);
    if (what === "value") target.value = round(computed(s).points[place][k]);
    if (what === "name") target.value = Object.keys(s.words)[place];
    view.say("");
  };
  for (const part of ["rows", "fields"]) {
    view.on(part, "input", change);
    view.on(part, "focusout", restore);
  }

  /** Changes the list of own words, of names and places. The query stays that of the same word. */
  const edit = (how, gone) => {
    const s = state();
    const names = Object.entries(s.words);
    how(names);
    const asks = clamp(queryPlace(s) - Number(gone < queryPlace(s)), 0, names.length - 1);
    view.set({ words: Object.fromEntries(names), asks, pointed: -1 });
  };
  const rename = (place, name) => {
    const others = Object.keys(state().words).filter((_, i) => i !== place);
    if (others.includes(name)) return view.say(`There is a word "${name}" already.`);
    // Names that are numbers would come first in the list.
    if (!isName(name))
      return view.say(
        `A name needs 1 to ${LONGEST} signs, not numbers alone; the plane still shows the last ` +
          `one.`,
      );
    edit((names) => names.splice(place, 1, [name, names[place][1]]));
  };
  view.on("add", "click", () => {
    const known = Object.keys(state().words);
    const name = Array.from({ length: MOST }, (_, i) => `word ${i + 1}`).find(
      (free) => !known.includes(free),
    );
    const spot = FREE.find((free) =>
      Object.values(state().words).every((point) => distance(point, free) > 0.7),
    ) ?? [0, 0];
    edit((names) => names.push([name, spot]));
  });
}
