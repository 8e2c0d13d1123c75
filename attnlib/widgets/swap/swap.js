/**
 * Swap: one word of a sentence is exchanged, and the thickest curve from "it" leads elsewhere.
 */
import { element, html, sheet, table, text } from "../kit/markup.js";
import { two } from "../kit/numbers.js";

const ASKS = "it";
/** What there is to say about each word. */
const NOTES = {
  sour: "Milk can be sour. The new numbers of *it* come mostly from *milk*: the thickest curve.",
  tired:
    "Milk is never tired, but a cat can be. One word has changed, and the curve leads to *cat*.",
  hungry: "Only the cat can be hungry, so *it* attends to *cat* again.",
  full: "Only the cat can be full, but *milk* gets the largest weight. Here the model is wrong.",
  warm: `The largest weight does not go to a word, but to the mark *[CLS]*. In this model, *[CLS]*
often gets much of the weight, whichever word gets new numbers, perhaps because no word is a clear
match.`,
  big: "If something is too big to fit, it is the trophy, and the curve leads to *trophy*.",
  small: `Only the suitcase can be too small here. But the curve stays at *trophy*. Here the model
follows a habit. The curve is no proof that it understands the sentence.`,
};

/** The one for which room is kept, so that nothing moves. */
const LONGEST = Object.values(NOTES).reduce((a, b) => (b.length > a.length ? b : a));

export const label = () => "What “it” attends to, in two sentences";

/** The recorded reading of a word. */
const find = (s, word) => s.readings.find((one) => one.word === word);

/** The readings of the same sentence. */
const others = (s) => s.readings.filter(({ sentence }) => sentence === find(s, s.word).sentence);

/** Where the largest of some numbers is. */
const largest = (weights) => weights.indexOf(Math.max(...weights));

/** What Python gives, and the place of the largest weight. */
export function compute(s) {
  const { tokens, weights } = find(s, s.word);
  return { tokens, weights, top: largest(weights) };
}

/**
 * What glides. The thickest curve travels as one piece, by its place among the tokens; the others
 * keep their places and change their weights. So all curves together always have the weight 1.
 */
export function pose(s) {
  const { weights, top } = compute(s);
  return [top, weights[top], weights.map((weight, j) => (j === top ? 0 : weight)), weights];
}

// ------------------------------------------------------------------------------- the drawing

const SANS = "system-ui, sans-serif";
/** The sentence in a line, with the curves above it. */
const ACROSS = { name: "across", width: 944, height: 284, line: 236, size: 25, bundle: 36 };
/** The sentence in a column, with the curves at its left. */
const DOWN = { name: "down", width: 328, height: 318, line: 152, size: 18, bundle: 24 };

/** About how wide a letter of the text's face is, in parts of its size. */
function wide(letter) {
  if (/[ijltfr.,]/.test(letter)) return 0.31;
  if (/[mwMW]/.test(letter)) return 0.82;
  return /[A-Z]/.test(letter) ? 0.66 : 0.52;
}
const length = (word, size) =>
  Array.from(word).reduce((sum, letter) => sum + wide(letter) * size, 0);

const isMark = (token) => token.startsWith("[");

const USUAL = 14; // tokens; a longer sentence is drawn smaller

/** The words as they are drawn: each with its size, its middle along the line, and its width. */
function layout(s, form) {
  const { name, width, height } = form;
  const { tokens, word } = find(s, s.word);
  const size = form.size * Math.min(1, (USUAL + 0.5) / tokens.length);
  const chosen = tokens.lastIndexOf(word);
  const spoken = tokens.map((token, i) =>
    i === 1 ? token[0].toUpperCase() + token.slice(1) : token,
  );
  const sizes = tokens.map((token) => (isMark(token) ? 0.68 * size : size));
  const bold = 1.15; // the chosen word is wider by this
  const widest = bold * Math.max(...others(s).map((one) => length(one.word, size)));
  const widths = spoken.map((token, i) => (i === chosen ? widest : length(token, sizes[i])));
  const pad = 0.4 * size; // around the chosen word
  const all = spoken.map((token, i) => ({ token, size: sizes[i], width: widths[i], i }));
  if (name === "down") {
    const step = height / tokens.length;
    return { all: all.map((one) => ({ ...one, at: (one.i + 0.5) * step })), chosen, pad, size };
  }
  // At least as much room as a number takes; a full stop stands close to its word.
  const rooms = widths.map((room, i) =>
    i === chosen ? room + 2 * pad : spoken[i] === "." ? room : Math.max(room, 1.2 * size),
  );
  const free = width - rooms.reduce((sum, room) => sum + room, 0);
  const gap = free / (tokens.length - 2);
  let left = 0;
  for (const [i, one] of all.entries()) {
    one.at = left + rooms[i] / 2 + (spoken[i] === "." ? 2 : 0);
    left += rooms[i] + (i === chosen ? 0 : gap);
  }
  return { all, chosen, pad, size };
}

/** Where a place between two tokens is: 2.5 lies midway between the third and the fourth. */
function between(all, place) {
  const [i, j] = [Math.floor(place), Math.ceil(place)];
  return all[i].at + (all[j].at - all[i].at) * (place - i);
}

/**
 * The curves from "it" as [path, thickness, whether it is the thickest]. They leave side by side,
 * the longest in the middle, so that none crosses another: all together are as wide as a weight
 * of 1.
 */
function curves({ all, from, posed: [lead, most, rest] }, { name, line, bundle }) {
  const gap = name === "across" ? 30 : 10; // from the words
  const start = all[from].at;
  const every = rest.map((weight, place) => ({ place, weight }));
  every.push({ place: lead, weight: most, leads: true });
  /** How far to the right it leaves: what goes left near, left far, right far, right near. */
  const order = ({ place }) => (place <= from ? from - place : 1000 - place);
  const point = (along, across) => {
    const [x, y] = name === "across" ? [along, line - gap - across] : [line - gap - across, along];
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  };
  return every.map((curve) => {
    const { place, weight, leads } = curve;
    // What lies before it; a curve that travels past another one takes its side by and by.
    const before = every.reduce((sum, other) => {
      const part = Math.min(Math.max(order(curve) - order(other) + 0.5, 0), 1);
      return other === curve ? sum : sum + part * other.weight;
    }, 0);
    const leaves = start + bundle * (before + weight / 2 - 0.5);
    const isLoop = place === from; // a small loop
    const lands = isLoop ? start - 0.5 * bundle - 9 : between(all, place);
    const far = Math.abs(lands - leaves);
    const bend = name === "across" ? 14 + 0.385 * far : 10 + 0.64 * far;
    const [out, back] = [leaves, lands].map((x) => [point(x, 0), point(x, bend)]);
    const d = `M${out[0]}C${out[1]} ${back[1]} ${back[0]}`;
    return { d, thick: Math.max(bundle * weight, 0.6), leads };
  });
}

/** The whole drawing of a state in one of the two forms. */
function drawing(s, form) {
  const { name, width, line } = form;
  const across = name === "across";
  const posed = s.moving ?? pose(s);
  const { all, chosen, pad, size } = layout(s, form);
  const from = all.findIndex(({ token }) => token === ASKS);
  const weights = posed[3];
  const top = largest(weights);
  const [curve, others] = [true, false].map((leads) =>
    curves({ all, from, posed }, form)
      .filter((one) => Boolean(one.leads) === leads)
      .map(({ d, thick }) =>
        element("path", {
          d,
          fill: "none",
          stroke: "var(--weight)",
          "stroke-width": thick,
          opacity: !leads && 0.5,
        }),
      ),
  );
  const word = ({ token, at, size: fontSize, i }) => {
    const role =
      i === chosen
        ? "page"
        : i === from
          ? "query"
          : i === top
            ? "key"
            : isMark(token)
              ? "muted"
              : "ink";
    const more = {
      "font-size": fontSize,
      "font-weight": i === from || i === top || i === chosen ? 600 : 400,
      "text-anchor": across ? "middle" : "start",
      "font-family": isMark(token) && SANS,
      "pointer-events": i === chosen && "none", // what is clicked is the box behind it
    };
    return across
      ? text(token, at, line, role, more)
      : text(token, line, at + 0.33 * fontSize, role, more);
  };
  const number = ({ at, i }) => {
    const more = {
      "font-family": SANS,
      "font-size": across ? (i === top ? 19 : 15) : i === top ? 15 : 13,
      "font-weight": i === top ? 700 : 400,
      "text-anchor": across ? "middle" : "end",
    };
    const role = i === top ? "weight" : "muted";
    return across
      ? text(two(weights[i]), at, line + 32, role, more)
      : text(two(weights[i]), width - 24, at + 5, role, more);
  };
  const slot = all[chosen];
  const tall = (across ? 1.5 : 1.25) * size;
  const [x, y] = across
    ? [slot.at - slot.width / 2 - pad, line - 1.07 * size]
    : [line - pad, slot.at - tall / 2];
  const blank = element("rect", {
    x,
    y,
    width: slot.width + 2 * pad,
    height: tall,
    rx: 0.2 * size,
    fill: "var(--ink)",
    class: "blank",
  });
  return [others, curve, blank, all.map(word), all.map(number)];
}

/** In words, for those who do not see it. */
const described = ({ tokens, weights, top }) =>
  `Curves from “it” to every word. The thickest one leads to “${tokens[top]}”, ` +
  `with a weight of ${two(weights[top])}.`;

/** A reading in both forms, of which one is seen. */
function reading(s) {
  const said = described(compute(s));
  return [ACROSS, DOWN].map((form) =>
    element(
      "div",
      // The words of another sentence are other words, and have not moved.
      { class: form.name, "data-key": find(s, s.word).sentence },
      sheet(form.name, form.width, form.height, said, drawing(s, form)),
    ),
  );
}

/** The drawing alone, for what a link to the page shows. */
export const poster = (s) =>
  String(
    html`<svg viewBox="0 0 ${ACROSS.width} ${ACROSS.height}">${drawing(s, ACROSS)}</svg>`,
  ).replaceAll(` font-family="${SANS}"`, "");

/** A note, with its words in italics. */
const noted = (note) => note.split("*").map((part, i) => (i % 2 ? html`<em>${part}</em>` : part));

export function picture(s) {
  const now = compute(s);
  const choices = others(s);
  // The other sentence opens on its last word, because that one is the failure.
  const cat = s.readings[0];
  const next = choices.includes(cat) ? s.readings.at(-1) : cat;
  const choice = ({ word }) =>
    element(
      "button",
      {
        type: "button",
        "data-word": word,
        "aria-pressed": String(word === s.word),
        "data-gesture": word === choices[1].word,
      },
      word,
    );
  const ear = () =>
    html`<div class="visually-hidden" data-part="table">${table(
      "Attention weights of “it”",
      ["word or mark", "weight"],
      now.tokens.map((token, j) => [token, two(now.weights[j])]),
    )}</div>`;
  return [
    html`<div class="picture">${reading(s)}</div>`,
    html`<div class="choice"><div role="group" aria-label="Swap the last word"
data-key="${choices[0].word}" class="words one-of">${choices.map(choice)}</div><button type="button"
class="quiet" data-key="${next.word}" data-word="${next.word}">${
      next === cat ? "Back to the cat" : "See where the model fails"
    }</button></div>`,
    html`<div class="said reserved"><div class="ghost" aria-hidden="true"><p
class="found"><b class="weight">0.00</b></p><p>${noted(LONGEST)}</p></div><div
role="status" data-part="said"><p
class="found"><b class="query">it</b> attends most to <b
class="key">${now.tokens[now.top]}</b> <b
class="number weight">${two(now.weights[now.top])}</b></p>
<p>${noted(NOTES[s.word])}</p></div></div>`,
    html`<div class="picture both">${reading({
      ...s,
      word: choices[1].word,
      moving: null,
    })}</div>`,
    ear,
  ];
}

export function live(view) {
  const choose = (word) => view.glide({ word });
  view.listen(view.root, "click", ({ target }) => {
    const { word } = target.closest("[data-word]")?.dataset ?? {};
    if (word) return choose(word);
    if (!target.closest(".blank")) return;
    const s = view.state();
    const words = others(s).map((one) => one.word);
    choose(words[(words.indexOf(s.word) + 1) % words.length]);
  });
}
