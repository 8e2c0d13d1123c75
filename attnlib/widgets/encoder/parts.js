/**
 * Encoder, the view "parts": what each part of the model writes into the difference between a word
 * of two sentences, and how far the word goes if heads of the one are swapped for those of the
 * other.
 */
import { element, html } from "../kit/markup.js";
import { dot, multiply, sum } from "../kit/numbers.js";
import { pairOf, placesOf } from "./pair.js";
import { N_HEADS, N_LAYERS, partsOf, rowsOf, stateOf } from "./reading.js";

const MOST = 64; // tokens
const OF_LAYER = N_HEADS + 2; // its heads, its biases, its feed-forward network
const minus = (a, b) => a.map((x, k) => x - b[k]);

/** The difference between the two last rows, and the square of its length. */
function differenceOf(rows) {
  const difference = minus(rows[1], rows[0]);
  return { difference, squared: dot(difference, difference) || 1 };
}

const lastRows = (pair, places) =>
  pair.map(({ states, tokens }, which) =>
    Float64Array.from(stateOf({ states, tokens }, states.length - 1, places[which])),
  );

/** How much of the way from the one row to the other each part has written: in all 1. */
export function sharesOf(pair, places) {
  const { difference, squared } = differenceOf(lastRows(pair, places));
  const d = difference.length;
  const row = (part, which) =>
    pair[which].ledger[part].subarray(places[which] * d, (places[which] + 1) * d);
  return pair[0].ledger.map(
    (_, part) => dot(minus(row(part, 1), row(part, 0)), difference) / squared,
  );
}

/** How much of the way the first row goes, if another one takes its place. */
export function progressOf(pair, places, row) {
  const rows = lastRows(pair, places);
  const { difference, squared } = differenceOf(rows);
  return dot(minus(Float64Array.from(row), rows[0]), difference) / squared;
}

const all = (count) => Array.from({ length: count }, (_, i) => i);

/** The heads that a swap takes: [layer, head]. */
function headsOf({ swapped, layer, head }) {
  if (swapped === "head") return [[layer, head]];
  const layers = swapped === "layer" ? [layer] : all(N_LAYERS);
  return layers.flatMap((l) => all(N_HEADS).map((h) => [l, h]));
}

/** Where the swap of a state stands among those that are recorded (views.py). */
const placeOf = ({ swapped, layer, head }) =>
  ({ head: N_HEADS * layer + head, layer: N_HEADS * N_LAYERS + layer })[swapped] ??
  N_HEADS * N_LAYERS + N_LAYERS;

/** What a head passes on, (n, 32), as one row of numbers. */
const outputOf = (reading, layer, head) =>
  Float32Array.from(
    multiply(rowsOf(reading, layer, head), partsOf(reading, "values", layer, head)).flat(),
  );

const textsOf = ({ text, other }) => [text, other];
const recordedIn = (s) =>
  s.readings.find(
    ({ texts, word, shares }) =>
      shares && word === s.word && texts.every((text, i) => text === textsOf(s)[i]),
  );
const isWhole = (reading) => Boolean(reading?.ledger);

const known = new WeakMap();

/** What is shown of two readings, found once for each word. */
function found(pair, word) {
  const [first, second] = pair;
  if (!known.has(first)) known.set(first, new Map());
  const kept = known.get(first);
  if (kept.get(word)?.second !== second) {
    const tokens = pair.map((one) => one.tokens);
    const at = placesOf(tokens, word);
    kept.set(word, { second, pair, tokens, at, shares: sharesOf(pair, at) });
  }
  return kept.get(word);
}

/** By what the result of a swap is known. */
const keyOf = (s, { pair }) =>
  JSON.stringify([textsOf(s), s.word, headsOf(s), pair.map(({ exact }) => exact)]);

/** What was recorded, in thousandths. */
const unpacked = (one) => ({ ...one, shares: one.shares.map((share) => share / 1000) });

/** What there is to show: of the texts and the word that are chosen, else what was shown last. */
export function standing(s, { readings, last }) {
  const current = readings.length === 2 && readings.every(isWhole);
  const recorded = recordedIn(s);
  if (!current && recorded) {
    const progress = recorded.swaps[placeOf(s)] / 1000; // NaN if none was recorded
    return { ...unpacked(recorded), current: true, progress };
  }
  const pair = current ? readings : last?.length === 2 && last.every(isWhole) && last;
  if (!pair) return { ...unpacked(s.readings[0]), current: false, progress: undefined };
  const one = found(pair, s.word);
  return { ...one, current, progress: current ? s.effects[keyOf(s, one)] : undefined };
}

// ------------------------------------------------------------------------------- the picture

const percent = (x) => `${Math.round(100 * x)}`.replace("-0", "0").replace("-", "−");
const partAt = (layer, part) => 1 + layer * OF_LAYER + part;

/** How dark a share is, unless it is rounded to 0, and whether it leads the other way. */
const tint = (x) =>
  Math.abs(x) >= 0.005 && {
    class: x < 0 && "less",
    style: `--tint: ${Math.min(60, 110 * Math.sqrt(Math.abs(x))).toFixed(0)}%`,
  };

/** What the heads and the networks write: layers in rows, heads in columns. */
function written(s, { shares }) {
  const head = (l, h) => {
    const share = shares[partAt(l, h)];
    const isPicked = l === s.layer && h === s.head;
    const name = `${percent(share)}: layer ${l + 1}, head ${h + 1}`;
    const more = { tabindex: isPicked ? 0 : -1, "aria-pressed": String(isPicked) };
    return html`<td>${element(
      "button",
      { type: "button", "aria-label": name, ...more, ...tint(share) },
      percent(share),
    )}</td>`;
  };
  const row = (l) => {
    const network = shares[partAt(l, N_HEADS + 1)];
    return html`<tr><th scope="row">${l + 1}</th>${all(N_HEADS).map((h) => head(l, h))}
<td>${element("span", tint(network), percent(network))}</td></tr>`;
  };
  return html`<div class="written"><p class="note">How much of the way each part writes by itself,
in percent: layers in rows, heads in columns<span class="beside">, and the feed-forward network
(FFN)</span></p>
<table role="grid" aria-label="What each part writes, in percent"
data-part="written"><tr><td></td>${all(N_HEADS).map(
    (h) => html`<th scope="col">${h + 1}</th>`,
  )}<th scope="col">FFN</th></tr>${all(N_LAYERS).map(row)}</table>
<p class="note">${rest(shares)}</p></div>`;
}

/** The other parts, and the sum. */
function rest(shares) {
  const each = (part) => all(N_LAYERS).map((l) => shares[partAt(l, part)]);
  const inAll = (part) => percent(sum(each(part)));
  const numbers = [percent(shares[0]), inAll(N_HEADS + 1), inAll(N_HEADS), percent(sum(shares))];
  const [input, networks, biases, whole] = numbers.map((number) => html`<b>${number}%</b>`);
  // Other numbers are another text, and have not moved.
  return html`<span data-key="${numbers}">The input writes ${input}, the biases ${biases}, and the
feed-forward networks of the six layers
${each(N_HEADS + 1)
  .map(percent)
  .join(", ")} (each rounded), together ${networks}.
The sum of all parts is ${whole}.</span>`;
}

const SWAPS = { head: "this head", layer: "its whole layer", all: "all heads" };

/** In words: what the chosen heads write, and what happens if they are swapped. */
function telling(s, one) {
  const { shares, tokens, at, progress } = one;
  const direct = sum(headsOf(s).map(([l, h]) => shares[partAt(l, h)]));
  const who = {
    head: `Head ${s.head + 1} of layer ${s.layer + 1} writes`,
    layer: `The heads of layer ${s.layer + 1} write`,
    all: "All heads write",
  }[s.swapped];
  const pass = s.swapped === "head" ? "it passes" : "they pass";
  const word = html`<b class="mark first">${tokens[0][at[0]]}</b>`;
  const even = tokens[0].length === tokens[1].length;
  const result = !even
    ? html`A swap needs two sentences with as many tokens: these have ${tokens[0].length} and
${tokens[1].length}.`
    : progress === undefined
      ? one.current && "The swap is being computed …"
      : html`If in the first sentence ${pass} on what ${pass} on in the second, ${word} goes
<b class="number">${percent(progress)}%</b> of the way.`;
  return html`<p class="said both" role="status" data-part="said">${element(
    "span",
    { "data-key": `${s.swapped},${s.layer},${s.head},${at},${tokens},${progress}` },
    html`${who} <b class="number">${percent(direct)}%</b> of the way by
${s.swapped === "head" ? "itself" : "themselves"}. ${result}`,
  )}</p>`;
}

const swaps = (s) =>
  html`<p class="tries" role="group" aria-label="What is swapped"><span>Swap</span>${Object.entries(
    SWAPS,
  ).map(([name, label]) =>
    element(
      "button",
      { type: "button", "data-swap": name, "aria-pressed": String(s.swapped === name) },
      label,
    ),
  )}</p>`;

const TRIES = [
  ["fish", "We walked to the bank to catch fish."],
  ["rent: money too", "We walked to the bank to pay rent."],
];

export const parts = {
  label: "What the parts of an encoder write into a word",
  pageState: { effects: {} },

  fields: () => [
    { name: "text", label: "One sentence" },
    { name: "other", label: "Another one", tries: TRIES },
  ],

  wants: (s) =>
    recordedIn(s) && !s.on
      ? []
      : textsOf(s)
          .filter((text) => text.trim())
          .map((text) => ({ text, hidden: [], ledger: true })),

  fits: ({ tokens }) =>
    tokens.length > MOST
      ? `${tokens.length} tokens are too many: take sentences of ${MOST} at most.`
      : "",

  compute(s, now) {
    const { shares, progress, at } = standing(s, now);
    return { shares: Array.from(shares), progress, at };
  },

  picture(s, now) {
    const one = standing(s, now);
    const stale = one.current ? "" : " stale";
    return [
      pairOf(one),
      html`<div class="parts${stale}">${written(s, one)}</div>`,
      html`<div class="swaps${stale}">${swaps(s)}${telling(s, one)}</div>`,
      html`<p class="note">100% is the length of the arrow from the word’s final vector in the first
sentence to its final vector in the second. Each part is multiplied by the factors by which the
later norms of its own sentence have scaled it.</p>`,
    ];
  },

  code(s, now) {
    const { at, tokens } = standing(s, now);
    return [
      "from attnlib import models, row_ledger",
      "",
      "minilm = models.load_minilm()",
      `names, first = row_ledger(minilm, ${JSON.stringify(s.text)}, ${at[0]})`,
      `_, second = row_ledger(minilm, ${JSON.stringify(s.other)}, ${at[1]})`,
      `difference = second.sum(0) - first.sum(0)  # of ${JSON.stringify(tokens[0][at[0]])}`,
      "shares = (second - first) @ difference / (difference @ difference)",
      "for name, share in zip(names, shares):",
      '    print(f"{share:6.1%}  {name}")',
    ];
  },

  live(view, tools) {
    const owner = {}; // of the readings with swapped heads
    let coming = "";
    async function measure() {
      const s = view.state();
      const one = standing(s, tools.now());
      if (!one.pair || !one.current || one.tokens[0].length !== one.tokens[1].length) return;
      const key = keyOf(s, one);
      if (key in s.effects || key === coming) return;
      coming = key;
      const replaced = headsOf(s).map(([l, h]) => [l, h, outputOf(one.pair[1], l, h)]);
      try {
        const reading = await tools.read(s.text, { replaced, owner });
        const row = stateOf(reading, N_LAYERS, one.at[0]);
        const progress = progressOf(one.pair, one.at, row);
        view.set({ effects: { ...view.state().effects, [key]: progress } });
      } catch (error) {
        if (error.name !== "AbortError") view.say(error.message);
      }
      if (coming === key) coming = "";
    }
    view.follow(measure);
    const pick = (layer, head) => view.set({ layer, head });
    view.grid("written", pick);
    view.on("written", "click", (event) => {
      // The first of a row and of a column is a name.
      const cell = event.target.closest("button")?.parentElement;
      if (cell) pick(cell.parentElement.rowIndex - 1, cell.cellIndex - 1);
    });
    view.listen(view.root, "click", ({ target }) => {
      const { word, swap } = target.closest("[data-word], [data-swap]")?.dataset ?? {};
      if (word) view.set({ word });
      if (swap) view.set({ swapped: swap });
    });
  },
};
