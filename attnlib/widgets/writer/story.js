/**
 * What there is to see of a story, whether the model has read it in this page or it was recorded.
 *
 * Words are counted from 1, as the world counts them; 0 is the mark that stands before the first.
 */
import { choices, emptyText, makeModel, readToken, softmax } from "./model.js";
import { split } from "./text.js";
import { parseWorld, readWord, storyBegins } from "./world.js";
import { bytesOf } from "../kit/base64.js";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const MOST_ROWS = 6; // words whose probabilities are drawn
const LEAST = 0.005; // what is less is not drawn
export const MOST_TOKENS = 240; // of a story; the model was trained on positions up to 255

// ------------------------------------------------------------------------------- the model

/** The arrays of a file, {name: Float32Array}: of a matrix in 8 bits, each row has its scale. */
function unpack({ arrays, data }) {
  const bytes = Uint8Array.from(bytesOf(data));
  const view = new DataView(bytes.buffer);
  let at = 0;
  const floats = (n) =>
    Float32Array.from({ length: n }, () => {
      at += 4;
      return view.getFloat32(at - 4, true);
    });
  const found = {};
  for (const [name, shape, isInBytes] of arrays) {
    const size = shape.reduce((product, each) => product * each);
    if (!isInBytes) {
      found[name] = floats(size);
      continue;
    }
    const scales = floats(shape[0]);
    const from = at;
    found[name] = Float32Array.from(
      { length: size },
      (_, i) => view.getInt8(from + i) * scales[Math.floor(i / shape[1])],
    );
    at += size;
  }
  return found;
}

/** What a file holds, as attnlib packs it: a model, its vocabulary, the world of its stories. */
export function openFile(file) {
  const { vocabulary } = file;
  return {
    model: makeModel(JSON.parse(file.config), unpack(file)),
    vocabulary,
    tokenOf: new Map(vocabulary.map((word, token) => [word, token])),
    world: parseWorld(file.world),
  };
}

/** The words of a beginning that the model knows, as tokens, and those that it does not know. */
export function encode({ tokenOf }, text) {
  const words = split(text, tokenOf);
  const tokens = words.filter((word) => tokenOf.has(word)).map((word) => tokenOf.get(word));
  return { tokens, unknown: [...new Set(words.filter((word) => !tokenOf.has(word)))] };
}

// ------------------------------------------------------------------------------- a reading

/**
 * A reading of no word yet. `said` holds what the model says after each token, and `places` the
 * world's places before each word, as long as the story is one of that world; `steps` is what the
 * world says of each word.
 */
export function beginReading({ model, world }) {
  const text = emptyText(model);
  return {
    text,
    tokens: [0],
    said: [readToken(text, 0)],
    places: [storyBegins(world)],
    steps: [],
  };
}

/** The reading with one more token, of which the model has said this. */
export function readOn(reading, { vocabulary }, token, says) {
  const { tokens, said, places, steps } = reading;
  const isInWorld = places.length === tokens.length; // up to here
  const found = isInWorld ? readWord(places.at(-1), vocabulary[token]) : null;
  return {
    ...reading,
    tokens: [...tokens, token],
    said: [...said, says],
    places: found ? [...places, found.next] : places,
    steps: found ? [...steps, found.step] : steps,
  };
}

/** The reading of the first n tokens only. */
export const firstOf = (reading, n) => ({
  ...reading,
  tokens: reading.tokens.slice(0, n),
  said: reading.said.slice(0, n),
  places: reading.places.slice(0, n),
  steps: reading.steps.slice(0, n - 1),
});

// ------------------------------------------------------------------------------- what is shown

const bits = (probability) => -Math.log2(probability);

/** Words by their probabilities, [word, the model's, the true one or null], the chosen one too. */
function rowsOf(drawn, own, truth, vocabulary, chosen) {
  const height = (token) => Math.max(drawn[token], own[token], truth?.get(vocabulary[token]) ?? 0);
  const order = Array.from(own.keys()).sort((a, b) => height(b) - height(a) || a - b);
  const most = order.slice(0, MOST_ROWS).filter((token) => height(token) >= LEAST);
  if (chosen !== undefined && !most.includes(chosen)) most.splice(MOST_ROWS - 1, 1, chosen);
  most.sort((a, b) => drawn[b] - drawn[a] || own[b] - own[a] || a - b);
  const row = (token) => [
    vocabulary[token],
    drawn[token],
    truth ? (truth.get(vocabulary[token]) ?? 0) : null,
  ];
  return most.map(row);
}

/** The mean weights of all heads, or those of one, counted from 1 layer by layer. */
function attentionOf({ weights }, head) {
  const heads = weights.flat();
  if (head) return Array.from(heads[Math.min(head, heads.length) - 1]);
  return Array.from(heads[0], (_, j) => heads.reduce((sum, row) => sum + row[j], 0) / heads.length);
}

/** A story that was read in this page. */
function live(s, { reading, vocabulary, begun, unknown }) {
  const { tokens, said, places, steps } = reading;
  const settings = { temperature: s.temperature, topK: s.top_k, topP: s.top_p };
  return {
    kind: "live",
    words: tokens.slice(1).map((token) => vocabulary[token]),
    begun,
    unknown,
    left: places.length < tokens.length ? places.length : 0,
    possible: places.length < tokens.length ? Array.from(places.at(-1).probabilities.keys()) : [],
    rows(at) {
      const { logits } = said[at - 1];
      const drawn = choices(logits, settings);
      return rowsOf(drawn, softmax(logits), places[at - 1]?.probabilities, vocabulary, tokens[at]);
    },
    step: (at) => steps[at - 1],
    attention: (at) => attentionOf(said[at - 1], s.head),
    surprise(at) {
      const step = steps[at - 1];
      const own = bits(softmax(said[at - 1].logits)[tokens[at]]);
      return [own, step ? bits(step.probabilities.get(vocabulary[tokens[at]])) : null];
    },
  };
}

/** The beginning of a story that was recorded, as attnlib packs it. */
function recorded(s, story) {
  const { begun, rows, kinds, deciders, attention } = story;
  const words = story.words.slice(0, begun + wordsOf(s.written).length);
  return {
    kind: "recorded",
    words,
    begun,
    unknown: [],
    left: 0,
    possible: [],
    rows: (at) => rows[at - 1],
    step: (at) => at <= words.length && { kind: kinds[at - 1], deciders: deciders[at - 1] },
    attention: (at) =>
      s.head ? [] : Array.from(attention[at - 1], (digit) => DIGITS.indexOf(digit) / 63),
    surprise(at) {
      const [, own, truth] = rows[at - 1].find(([word]) => word === words[at - 1]);
      return [bits(own), bits(truth)];
    },
  };
}

/** A story of which only the words are known, until the model is there. */
function unread(s) {
  const words = split(s.text, new Set());
  return {
    kind: "unread",
    words: [...words, ...wordsOf(s.written)],
    begun: words.length,
    unknown: [],
    left: 0,
    possible: [],
    rows: () => [],
    step: () => null,
    attention: () => [],
    surprise: () => [null, null],
  };
}

/** Words and marks with spaces between them, as a list. */
export const wordsOf = (written) => written.split(/\s+/).filter(Boolean);

/** Whether a recording has the story of a state, or goes on from it. */
const begins = (s, { text, written }) =>
  text === s.text && `${written} `.startsWith(s.written && `${s.written} `);

/**
 * The story of a state:
 *   kind           "live", "recorded" or "unread"
 *   words, begun   its words, and how many of them the reader began with
 *   unknown        words of the reader's that the model does not know, and that it leaves out
 *   left           the word at which the story has left the world, 0 for none; `possible` are the
 *                  words that could have stood there
 *   rows(at)       of a word, or of the next one: [word, its probability, the true one]
 *   step(at)       what the world says of a word: its kind of dependency, and the words that decide
 *   attention(at)  what the token before the word attended to: a weight for each token so far
 *   surprise(at)   of a word, in bits: the model's, and the true one
 */
export function storyOf(s) {
  const { story, text, written } = s;
  if (story?.text === text && story.written === written) return live(s, story);
  const known = s.recorded.find((one) => begins(s, one));
  return known ? recorded(s, known) : unread(s);
}

/** The perplexity of some words of a story, [the model's, the true one or null]; null for none. */
export function perplexity(story, from, to) {
  if (to < from || story.kind === "unread") return null;
  const all = Array.from({ length: to - from + 1 }, (_, i) => story.surprise(from + i));
  const mean = (of) => 2 ** (all.reduce((sum, each) => sum + each[of], 0) / all.length);
  return [mean(0), all.some(([, truth]) => truth === null) ? null : mean(1)];
}
