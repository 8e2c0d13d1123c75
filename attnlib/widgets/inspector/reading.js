/**
 * A text, read by the model that writes with a look at its parts: what they add to a logit, what
 * each layer would say, and what the model says when heads pass on something else.
 *
 * A reading is what a page needs of a text: it comes from the model, or it was recorded.
 */
import { emptyText, logitsOf, readToken, softmax } from "../writer/model.js";
import { encode } from "../writer/story.js";
import { nearestWord } from "../writer/text.js";

const N_WORDS = 6; // of those that are most probable
const LEAST = 0.0005; // what is less is not listed
export const MOST_TOKENS = 80;

/** The tokens of a text, the one before its first word among them, and the words left out. */
export function tokensOf(known, text) {
  const { tokens, unknown } = encode(known, text);
  return { tokens: [0, ...tokens].slice(0, MOST_TOKENS), unknown };
}

/**
 * Reads tokens; `change(layer, position, outputs)` may change what the heads pass on. What is
 * returned holds, of the last token, the rows between the layers, what each network adds, what each
 * head attends to and the logits; and of all tokens [layer][position] what the heads pass on, and
 * the values. What an `earlier` reading has of the same beginning is not read again.
 */
export function readAll(model, tokens, change = null, earlier = null) {
  let same = 0; // the last token is always read
  while (same < tokens.length - 1 && tokens[same] === earlier?.tokens[same]) same++;
  const kept = (l, name) => (same ? earlier.text.layers[l][name].slice(0, same) : []);
  const text = emptyText(model);
  text.n = same;
  text.layers = model.layers.map((_, l) => ({ keys: kept(l, "keys"), values: kept(l, "values") }));
  const outputs = model.layers.map((_, l) => (same ? earlier.outputs[l].slice(0, same) : []));
  let found = null;
  for (let position = same; position < tokens.length; position++) {
    const [rows, networks] = [[], []];
    const says = readToken(text, tokens[position], {
      row: (_, x) => rows.push(x),
      heads(layer, heads) {
        change?.(layer, position, heads);
        outputs[layer].push(heads);
      },
      network: (_, x) => networks.push(x),
    });
    found = { ...says, rows, networks };
  }
  return { ...found, tokens, outputs, text };
}

const dot = (a, b, from = 0, at = 0, n = a.length) => {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += a[from + i] * b[at + i];
  return sum;
};

/** The unembedding's column of a token less that of another, if there is one, after the norm. */
function columnOf(model, row, token, minus) {
  const { dModel, eps, norm, unembedding } = model;
  const scale = 1 / Math.sqrt(dot(row, row) / dModel + eps);
  const of = (which, i) => (which < 0 ? 0 : unembedding.matrix[which * dModel + i]);
  return Float64Array.from(row, (_, i) => (of(token, i) - of(minus, i)) * norm[i] * scale);
}

/**
 * The ledger of a logit, or of the difference of two: `parts`, in the order of attnlib.ledger, and
 * for each head, layer by layer, how much came from each token.
 */
export function ledgerOf(model, read, token, minus = -1) {
  const { d, nHeads, queriesForKey, layers } = model;
  const column = columnOf(model, read.rows.at(-1), token, minus);
  const parts = [dot(read.rows[0], column)];
  const byToken = [];
  layers.forEach(({ o }, l) => {
    const wide = nHeads * d;
    const back = new Float64Array(wide); // what a number of the heads' outputs adds
    for (let out = 0; out < column.length; out++) {
      for (let i = 0; i < wide; i++) back[i] += column[out] * o.matrix[out * wide + i];
    }
    for (let h = 0; h < nHeads; h++) {
      const kv = Math.floor(h / queriesForKey) * d;
      parts.push(dot(back, read.outputs[l].at(-1), h * d, h * d, d));
      byToken.push(
        Array.from(
          read.weights[l][h],
          (weight, j) => weight * dot(back, read.text.layers[l].values[j], h * d, kv, d),
        ),
      );
    }
    parts.push(dot(read.networks[l], column));
  });
  return { parts, byToken };
}

/**
 * A change for `readAll`: the chosen heads, as bits, pass on zeros, their means, or what they
 * passed on in another reading; at all tokens or at the last one only.
 */
export function changeOf(model, { away, how, where, n, means, other }) {
  const { d, nHeads } = model;
  return (layer, position, heads) => {
    if (where === "last" && position < n - 1) return;
    for (let h = 0; h < nHeads; h++) {
      const head = layer * nHeads + h;
      if (!((away >> head) & 1)) continue;
      for (let i = 0; i < d; i++) {
        const at = h * d + i;
        heads[at] =
          how === "zero" ? 0 : how === "mean" ? means[head][i] : other.outputs[layer][position][at];
      }
    }
  };
}

/** The most probable words, as tokens. */
function mostProbable(heights, n = N_WORDS) {
  const order = Array.from(heights.keys()).sort((a, b) => heights[b] - heights[a] || a - b);
  return order.slice(0, n);
}

/** The words that are most probable before or after, [word, after, before], and one more. */
function rowsOf(after, before, vocabulary, token) {
  const height = before.map((p, i) => Math.max(p, after[i]));
  const most = mostProbable(height);
  if (!most.includes(token)) most[N_WORDS - 1] = token;
  return most
    .filter((one) => height[one] >= LEAST || one === token)
    .sort((a, b) => before[b] - before[a])
    .map((one) => [vocabulary[one], after[one], before[one]]);
}

// ------------------------------------------------------------------------------- two readings

/** What was recorded of a text (attnlib/widgets/inspector). */
function recordedOf(s, one) {
  const word = s.word || one.word;
  return {
    kind: "recorded",
    words: one.words,
    unknown: [],
    word,
    choices: one.lens.at(-1).map(([name]) => name),
    weights: one.weights,
    lens: one.lens,
    ledger: one.ledgers[`${word} ${s.against}`.trim()] ?? null,
    rows: s.how === "swap" && s.other !== one.other ? () => null : rows,
  };
  function rows({ away, how, where }) {
    return one.rows[`${away} ${away ? how : "zero"} ${away ? where : "all"}`] ?? null;
  }
}

/**
 * A text that the model has read in this page. Interventions are computed when they are asked for,
 * and kept as long as the texts are the same. What was read of an `earlier` text is used again.
 */
export function openText(known, text, means, earlier = null) {
  const { model, vocabulary, tokenOf } = known;
  const { tokens, unknown } = tokensOf(known, text);
  const read = readAll(model, tokens, null, earlier?.read);
  const before = softmax(read.logits);
  const layers = read.rows.map((row) => softmax(logitsOf(model, row)));
  const [best] = mostProbable(before);
  const kept = new Map(); // readings: of other texts, by their words; after interventions
  const past = earlier?.kept ?? kept;
  const once = (key, make) => {
    if (!kept.has(key)) kept.set(key, make());
    return kept.get(key);
  };

  /** The probabilities after an intervention. */
  function after(away, how, where, other) {
    const swapped = how === "swap" && readOther(other);
    if (!away || (swapped && swapped.tokens.length !== tokens.length)) return before;
    const key = `${away} ${how} ${where} ${how === "swap" ? other : ""}`;
    return once(key, () => {
      const options = { away, how, where, n: tokens.length, means, other: swapped };
      const from = where === "last" ? read : past.get(key);
      const found = readAll(model, tokens, changeOf(model, options), from);
      return { ...found, probabilities: softmax(found.logits) };
    }).probabilities;
  }
  function readOther(other) {
    const key = `text ${other}`;
    return once(key, () => {
      if (past.has(key)) return past.get(key);
      const found = tokensOf(known, other);
      return { ...readAll(model, found.tokens, null, read), unknown: found.unknown };
    });
  }

  return {
    text,
    read,
    kept,
    unknown,
    near: unknown.length ? nearestWord(unknown[0], vocabulary) : "",
    words: tokens.slice(1).map((token) => vocabulary[token]),
    choices: mostProbable(before).map((token) => vocabulary[token]),
    best: vocabulary[best],
    weights: read.weights.flat().map((row) => Array.from(row)),
    lens: layers.map((p) => mostProbable(p).map((token) => [vocabulary[token], p[token]])),
    knows: (name) => tokenOf.has(name),
    ledger: (word, against) =>
      once(`ledger ${word} ${against}`, () =>
        ledgerOf(model, read, tokenOf.get(word), tokenOf.get(against) ?? -1),
      ),
    rows: ({ away, how, where, other }, word) =>
      rowsOf(after(away, how, where, other), before, vocabulary, tokenOf.get(word)),
    /** How many words the other text has, and those that the model does not know. */
    other(name) {
      const { tokens: all, unknown: left } = readOther(name);
      return { n: all.length - 1, unknown: left };
    },
  };
}

/** A text that the model has read, as the picture needs it. */
function liveOf(s, opened) {
  const word = opened.knows(s.word) ? s.word : opened.best;
  return {
    kind: "live",
    words: opened.words,
    unknown: opened.unknown,
    near: opened.near,
    word,
    choices: opened.choices,
    weights: opened.weights,
    lens: opened.lens,
    ledger: opened.ledger(word, opened.knows(s.against) ? s.against : ""),
    rows: (what) => opened.rows({ ...s, ...what }, word),
    other: s.how === "swap" ? opened.other(s.other) : null,
  };
}

/** The reading of a state: of its text by the model, or what was recorded; or null. */
export function readingOf(s) {
  if (s.opened?.text === s.text) return liveOf(s, s.opened);
  const one = s.recorded.find(({ text }) => text === s.text);
  return one ? recordedOf(s, one) : null;
}
