/**
 * The numbers behind Plane: the tokens and their points, the query, the weights and the output.
 *
 * A scene's tokens are all words that may stand in its sentence, those of the other choice, too. A
 * pose holds what can glide: whatever lies between two poses is attention as well.
 */
import { multiply, softmax, sum } from "../kit/numbers.js";

const RIVERS = {
  drawn: true,
  axes: ["about rivers", "about money"],
  sheet: { unit: 53, left: 58, floor: 262, low: -0.8, high: 4.7 },
};

const PRICES = {
  slots: ["tea", "coffee", "juice"],
  prices: [2, 3, 5],
  heads: ["drink", "key"],
  axes: ["how hot", "how sweet"],
  sheet: { unit: 53, left: 134, floor: 186, low: -2.2, high: 3.2 },
};

/**
 * Each scene: its sentence, where a list stands for a choice; what the axes mean; its sheet, with
 * the place of 0, how many units are 1 and how far a word may go; and what can be done. Own words
 * have no sentence but themselves. A query that is `draggable` has an end to drag. Prices are
 * values of the list's own; elsewhere a word's value is the word. `alone`: the prices are shown
 * without the plane. `next` are the words whose
 * probabilities are computed from the output, each with its column of the unembedding; `heads` are
 * the first and the last heading of the table.
 */
export const SCENES = {
  bank: {
    ...RIVERS,
    slots: ["The", ["boat", "money"], "reached", "the", "bank"],
    next: { water: [1, 0], loan: [0, 1], and: [0.5, 0.5] },
    heads: ["word", "numbers"],
    hint: "Choose the other word. Drag a word, or tap it to see where it goes.",
  },
  prices: { ...PRICES, draggable: true, hint: "Drag the ring: the query." },
  sharpness: { ...PRICES, alone: true, hint: "Each block is as high as the weight of its drink." },
  turned: {
    ...RIVERS,
    draggable: true,
    slots: ["Money", "reached", "the", "bank", "by", "boat"],
    hint: "Drag the ring: the query of bank.",
  },
  words: {
    sheet: { unit: 46, left: 160, floor: 160, low: -3, high: 3 },
    hint: "Drag a word, or tap it to let it ask.",
  },
  learning: { slots: [] }, // learning.js has the rest
};

/** What the two numbers mean: with own words, what Python says. */
export const axesOf = (s) => SCENES[s.scene].axes ?? s.axes;

/** Every token that may be in the sentence, its word, and its place there. */
export function tokensOf({ scene, words }) {
  const slots = SCENES[scene].slots ?? Object.keys(words);
  return slots.flatMap((slot, place) =>
    [slot].flat().map((text) => ({ text, word: text in words ? text : text.toLowerCase(), place })),
  );
}

/** Which of them are in the sentence: there is a choice at one place at most. */
export const shownIn = ({ scene, sentence }, { text, place }) => {
  const slot = SCENES[scene].slots?.[place];
  return !Array.isArray(slot) || text === sentence;
};

/** The tokens of the sentence as it stands. */
export const sentenceOf = (s) => tokensOf(s).filter((token) => shownIn(s, token));

/** The place of the word whose query is used; one beyond the end is the last. */
export const queryPlace = (s) =>
  Math.min(s.asks, (SCENES[s.scene].slots ?? Object.keys(s.words)).length - 1);

/** The token that stands at a place of the sentence. */
export const tokenAt = (s, place) =>
  tokensOf(s).findIndex((token) => token.place === place && shownIn(s, token));

/** A W_Q that turns by so many degrees and stretches. Row vectors: q = x W_Q. */
export function turning(degrees, stretch) {
  const angle = (degrees * Math.PI) / 180;
  const [c, s] = [stretch * Math.cos(angle), stretch * Math.sin(angle)];
  return [
    [c, s],
    [-s, c],
  ];
}

/**
 * A pose: points, presence (1 or 0), the point of the query, W_Q, and the factor of the scores.
 */
export function poseOf(s) {
  const tokens = tokensOf(s);
  const priced = "prices" in SCENES[s.scene];
  return [
    tokens.map(({ word }) => s.words[word]),
    tokens.map((token) => Number(shownIn(s, token))),
    priced ? s.query : s.words[tokens[tokenAt(s, queryPlace(s))].word],
    s.scene === "turned" ? turning(s.turn, s.stretch) : turning(0, 1),
    priced ? s.sharpness : s.sharpness / Math.sqrt(2),
  ];
}

/** The values, if they are not the words themselves. */
export const valuesIn = ({ scene }) => SCENES[scene].prices?.map((price) => [price]);

/** What the query gets. A token that is only partly there has that part of its exponential. */
export function attend([points, present, from, w_q, factor], values = points) {
  const [query] = multiply([from], w_q);
  const scores = points.map(([x, y]) => x * query[0] + y * query[1]);
  const exponentials = scores.map((score, j) => present[j] * Math.exp(factor * score));
  const weights = softmax(scores.map((score, j) => factor * score + Math.log(present[j])));
  const output = values[0].map((_, k) => sum(weights.map((weight, j) => weight * values[j][k])));
  return { query, scores, exponentials, weights, output };
}

/** Softmax of the logits of the next words, where the scene has any. */
export function nextWordsIn({ scene }, [x, y]) {
  const goesWith = Object.values(SCENES[scene].next ?? {});
  return softmax(goesWith.map(([river, money]) => river * x + money * y));
}

/** What the query gets from the tokens of the sentence alone, as attnlib gives it in Python. */
export function computed(s) {
  const now = poseOf(s);
  const all = attend(now, valuesIn(s));
  const here = (_, j) => now[1][j] === 1;
  const [points, scores, exponentials, weights] = [
    now[0],
    all.scores,
    all.exponentials,
    all.weights,
  ].map((list) => list.filter(here));
  return {
    ...all,
    tokens: sentenceOf(s).map(({ text }) => text),
    points,
    scores,
    exponentials,
    weights,
    probabilities: nextWordsIn(s, all.output),
  };
}

/** Start and end of each weighted value, tip to tail, that of the query's own token first. */
export function chainOf(points, weights, own) {
  const links = [];
  let tip = [0, 0];
  const order = [...weights.keys()].sort((a, b) => (b === own) - (a === own) || a - b);
  for (const j of order) {
    const end = [0, 1].map((k) => tip[k] + weights[j] * points[j][k]);
    links[j] = [tip, end];
    tip = end;
  }
  return links;
}
