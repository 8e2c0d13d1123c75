/**
 * The weights of one head as a link carries them, so that its recipient sees at once what the
 * sender saw: "310~[CLS] the cat [SEP]~...". That is the layer; the head, in base 12; "~"; the
 * tokens; "~"; and the weights in hundredths, one row after the other. A weight below .63 is one
 * character, a larger one is two, and "." with a character stands for so many zeros and one more. A
 * sentence of 12 tokens takes about 150 characters.
 */
const SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const LAST = SIGNS.length - 1;
const MOST = 64; // tokens

/** The weights of a head, as rows, as a link carries them. */
export function packed(tokens, rows, layer, head) {
  const hundredths = rows.flat().map((weight) => Math.floor(100 * weight + 0.5 + 1e-9));
  let signs = "";
  for (let at = 0; at < hundredths.length; at++) {
    let zeros = 0;
    while (zeros <= LAST && hundredths[at + zeros] === 0) zeros++;
    if (zeros > 1) {
      signs += `.${SIGNS[zeros - 1]}`;
      at += zeros - 1;
    } else {
      const x = hundredths[at];
      signs += x < LAST ? SIGNS[x] : SIGNS[LAST] + SIGNS[x - LAST];
    }
  }
  return `${layer}${head.toString(12)}~${tokens.join(" ")}~${signs}`;
}

/** Letters without their case and their accents, as the model's tokenizer takes them. */
const plain = (text) =>
  text
    .toLowerCase()
    .normalize("NFD")
    .replace(/[\s\p{M}\p{C}]/gu, "");

/** Whether these can be the tokens of the text. */
function areOf(tokens, text) {
  if (tokens[0] !== "[CLS]" || tokens.at(-1) !== "[SEP]" || tokens.length > MOST) return false;
  const inner = tokens.slice(1, -1);
  return inner.includes("[UNK]") || inner.map((t) => t.replace(/^##/, "")).join("") === plain(text);
}

const known = new Map();

/**
 * A reading of that text, with the one head that a link has brought; null if this is none. Each of
 * its rows has to sum to 1, as far as hundredths do.
 */
export function unpacked(seen, text) {
  const key = JSON.stringify([seen, text]);
  if (!known.has(key)) known.set(key, reading(seen, text));
  return known.get(key);
}

function reading(seen, text) {
  const [, layer, head, list, signs] = /^([0-5])([\dab])~([^~]+)~([\w.-]+)$/.exec(seen) ?? [];
  if (!signs) return null;
  const tokens = list.split(" ");
  if (!areOf(tokens, text)) return null;
  const n = tokens.length;
  const weights = [];
  for (let at = 0; at < signs.length && weights.length <= n * n; at++) {
    const zeros = signs[at] === ".";
    const x = SIGNS.indexOf(signs[zeros ? ++at : at]);
    if (x < 0) return null;
    if (zeros) weights.push(...Array(x + 1).fill(0));
    else weights.push(x < LAST ? x : x + SIGNS.indexOf(signs[++at]));
  }
  const rows = tokens.map((_, i) => weights.slice(i * n, (i + 1) * n));
  const sums = (row) => Math.abs(row.reduce((sum, x) => sum + x, 0) - 100) <= 1 + n / 2;
  if (weights.length !== n * n || !rows.every(sums) || Math.max(...weights) > 100) return null;
  return { text, hidden: [], tokens, rows, only: [Number(layer), parseInt(head, 12)], seen: true };
}
