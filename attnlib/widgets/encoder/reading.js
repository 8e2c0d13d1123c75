/**
 * What the model made of a sentence, whether it was read here or recorded: weights, vectors,
 * likeness.
 *
 * Read here, a reading is what the engine gives: { text, hidden, tokens, weights, states, queries,
 * keys, values, embedding, exact }, with an array of numbers a layer, one row after the other.
 * Recorded, it is { text, hidden, tokens, weights }, as attnlib packs them, and `only` the [layer,
 * head] that it has. What came with a link has `rows` of hundredths instead, and `seen` is true.
 */
import { dot, transpose, two } from "../kit/numbers.js";
import { unpacked } from "./seen.js";

export const N_LAYERS = 6;
export const N_HEADS = 12;
export const D_HEAD = 32;
const D_MODEL = N_HEADS * D_HEAD;

/** One character for each number from 0 to 63. */
export const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** A cosine or another score with two decimals and a true minus. */
export const cosineText = (x) => two(x).replace("-0.00", "0.00").replace("-", "−");

/** The step in which weights are recorded. */
export const UNIT = 0.01;

/** Recorded weights, [layer][head] of rows. */
function unpack({ weights, only, tokens, rows }) {
  if (rows) return { [only[0]]: { [only[1]]: rows.map((row) => row.map((x) => x / 100)) } };
  let at = 0;
  const next = () => {
    const first = DIGITS.indexOf(weights[at++]);
    return (first < DIGITS.length - 1 ? first : first + DIGITS.indexOf(weights[at++])) / 100;
  };
  const head = () => transpose(tokens.map(() => tokens.map(next)));
  if (only) return { [only[0]]: { [only[1]]: head() } };
  return Array.from({ length: N_LAYERS }, () => Array.from({ length: N_HEADS }, head));
}

/** Whether it was not read here: then all that there is of it is there from the start. */
export const isRecorded = ({ weights, seen }) => seen || typeof weights === "string";

const known = new WeakMap();

/**
 * The weights of a head as rows of plain numbers, or null where its layer has not been read yet.
 */
export function rowsOf(reading, layer, head) {
  const { tokens, weights } = reading;
  const { length: n } = tokens;
  const recorded = isRecorded(reading);
  if (!known.has(reading)) known.set(reading, recorded ? unpack(reading) : []);
  const all = known.get(reading);
  if (!all[layer]?.[head]) {
    if (recorded || !weights[layer]) return null;
    const row = (i) =>
      Array.from(weights[layer].subarray((head * n + i) * n, (head * n + i + 1) * n));
    (all[layer] ??= [])[head] = tokens.map((_, i) => row(i));
  }
  return all[layer][head];
}

/** The part of each token's query, key or value that belongs to a head: rows of 32 numbers. */
export function partsOf(reading, name, layer, head) {
  const from = (i) => i * D_MODEL + head * D_HEAD;
  return reading.tokens.map((_, i) =>
    Array.from(reading[name][layer].subarray(from(i), from(i) + D_HEAD)),
  );
}

/** The vector of a token after so many layers; after 0, what goes into the first. */
export const stateOf = ({ states }, layers, i) =>
  states[layers].subarray(i * D_MODEL, (i + 1) * D_MODEL);

export const cosine = (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

/** By what a reading is known. */
export const keyOf = ({ text, hidden = [] }) => JSON.stringify([text, hidden]);

/**
 * The reading of a text without its hidden places: read here, else recorded, else what a link has
 * brought of it, else null.
 */
export function find({ live = {}, readings, seen }, want) {
  const key = keyOf(want);
  const recorded = readings.find((one) => one.text !== undefined && keyOf(one) === key);
  const brought = seen && !want.hidden?.length ? unpacked(seen, want.text) : null;
  return live[key] ?? recorded ?? brought;
}
