/**
 * Arithmetic on plain arrays, held against attnlib while the book is built; words; numbers as text.
 *
 * A matrix is an array of rows.
 */

/** The numbers from 0 to n - 1. */
export const range = (n) => Array.from({ length: n }, (_, i) => i);

export const sum = (list) => list.reduce((total, x) => total + x, 0);

export const dot = (a, b) => a.reduce((total, x, k) => total + x * b[k], 0);

export const clamp = (x, low = 0, high = 1) => Math.min(Math.max(x, low), high);

/** S[i][j], the dot product of the first d entries of query i and key j. */
export function dotProducts(queries, keys, d) {
  return queries.map((query) =>
    keys.map((key) => {
      let sum = 0;
      for (let k = 0; k < d; k++) sum += query[k] * key[k];
      return sum;
    }),
  );
}

/** A B for matrices: rows of A meet columns of B. */
export function multiply(a, b) {
  return a.map((row) => b[0].map((_, j) => row.reduce((sum, x, k) => sum + x * b[k][j], 0)));
}

export function transpose(a) {
  return a[0].map((_, j) => a.map((row) => row[j]));
}

/** Softmax of one row; -Infinity is a blocked key, and a row of nothing else becomes zeros. */
export function softmax(row) {
  const top = Math.max(...row);
  if (top === -Infinity) return row.map(() => 0);
  // Unchanged by the shift, cannot overflow.
  const exponentials = row.map((score) => Math.exp(score - top));
  const total = exponentials.reduce((sum, each) => sum + each, 0);
  return exponentials.map((each) => each / total);
}

/**
 * How spread out a row of weights is, in nats: 0 for a single weight of 1, ln n for n equal ones.
 */
export function entropy(row) {
  return row.reduce((sum, weight) => (weight > 0 ? sum - weight * Math.log(weight) : sum), 0);
}

/**
 * d numbers for a word, mean 0 and variance 1, always the same for the same word and role:
 * a counter started at a hash of the letters (FNV-1a), each count stirred (Murmur3's finish).
 */
export function wordVector(word, role, d) {
  let seed = 0x811c9dc5;
  for (const letter of `${role}:${word}`.split("")) {
    seed = Math.imul(seed ^ letter.charCodeAt(0), 0x01000193);
  }
  return Float64Array.from({ length: d }, (_, k) => {
    let bits = seed + Math.imul(k, 0x9e3779b9);
    bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
    bits = (bits ^ (bits >>> 16)) >>> 0;
    return Math.sqrt(12) * ((bits + 0.5) / 2 ** 32 - 0.5);
  });
}

/** The index of the slider's stop that is nearest to d. */
export const nearest = (stops, d) =>
  stops.reduce((best, stop, i) => (Math.abs(stop - d) < Math.abs(stops[best] - d) ? i : best), 0);

/** Sizes 1 to `most`, eight stops an octave, so that small ones get as much room as large ones. */
export function octaves(most) {
  const stops = Array.from({ length: 8 * Math.log2(most) + 1 }, (_, eighth) =>
    Math.round(2 ** (eighth / 8)),
  );
  return Array.from(new Set(stops));
}

const LONGEST_NAME = 12;

/** The words of a sentence. */
export function words(sentence) {
  return sentence.split(/[ \t\r\n]+/).filter((word) => word !== "");
}

/** What a sentence calls each token: cut if long, numbered if there are several of it. */
export function called(tokens) {
  return tokens.map((token, i) => {
    const letters = Array.from(token);
    const short =
      letters.length <= LONGEST_NAME ? token : `${letters.slice(0, LONGEST_NAME - 1).join("")}…`;
    return tokens.filter((other) => other === token).length > 1 ? `${short} (${i + 1})` : short;
  });
}

/** A number as a person writes it: at most six decimals, no trailing zeros. */
export function plain(x) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "-∞";
  if (Math.abs(x) >= 1e6) return x.toExponential(3);
  return String(Number(x.toFixed(6)) + 0); // + 0 turns -0 into 0
}

/** A number with two decimals; ties, like 1/8, go up, as in Python. */
export const two = (x) => (x === null ? "–" : (x + 1e-9).toFixed(2));

/** A matrix as a NumPy literal, one row a line. */
export function numpyArray(name, rows, digits = 17) {
  const number = (x) => String(Number(x.toPrecision(digits)));
  const lines = rows.map((row) => `    [${Array.from(row, number).join(", ")}],`);
  return [`${name} = np.array([`, ...lines, "], dtype=float)"];
}

/** Everything in `a` on its way to the same in `b`: a number, or arrays of them. */
export function between(a, b, part) {
  return Array.isArray(a) ? a.map((x, i) => between(x, b[i], part)) : a + (b - a) * part;
}

/** Whether there is a way between the two: lists of one length. */
export function alike(a, b) {
  if (!Array.isArray(a) || !Array.isArray(b)) return Array.isArray(a) === Array.isArray(b);
  return a.length === b.length && a.every((x, i) => alike(x, b[i]));
}

/** Slow, fast, slow. */
export const ease = (t) => (t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);

/**
 * A number from 0 to 1 for a seed and a position. The same place gets the same number, so a
 * model that goes back and writes again writes the same word. Murmur3's finish stirs the bits.
 */
export function chance(seed, position) {
  let bits = Math.imul(seed + 1, 0x9e3779b9) + Math.imul(position + 1, 0x85ebca6b);
  for (let round = 0; round < 2; round++) {
    bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
    bits ^= bits >>> 16;
  }
  return (bits >>> 0) / 2 ** 32;
}
