/**
 * A text, read by the model that writes with a look at its parts: what they add to a logit, what
 * each layer would say, and what the model says when heads pass on something else.
 *
 * A reading is what a page needs of a text: it comes from the model, or it was recorded.
 */
import { attention, finish, keep, logitsOf, rowOf, softmax } from "../writer/model.js";
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

/** With how many of the same tokens two texts begin; the last one of the first is not counted. */
function sameStart(tokens, others = []) {
  let same = 0;
  while (same < tokens.length - 1 && tokens[same] === others[same]) same++;
  return same;
}

const PARTS = ["rows", "keys", "values", "outputs"];
const cut = (kept, n) =>
  Object.fromEntries(PARTS.map((part) => [part, kept?.[part].slice(0, n) ?? []]));

/**
 * Reads tokens. What is returned holds, of the last token, the rows between the layers, what each
 * network adds, the weights of the heads and the logits; and for each of the `layers`, of all
 * tokens, the rows before it, keys, values, and what its heads pass on. (The last layer's heads
 * are computed for the last token only: nothing else depends on them.)
 *
 * The first `same` tokens are those of an `earlier` reading, and are not read again. With `change`,
 * which may change what the heads pass on in place, change(layer, position, outputs), the tokens
 * are those of a reading `base`, and the change begins in the layer `first`: what comes before it
 * is taken from there.
 */
export function readAll(model, tokens, { same = 0, earlier, base, first = 0, change } = {}) {
  const { length: n } = tokens;
  const top = model.layers.length - 1;
  const isGiven = (l) => base && l <= first;
  const layers = model.layers.map((_, l) =>
    isGiven(l) ? cut(base.layers[l], n) : cut(earlier?.layers[l], same),
  );
  let found = null;
  for (let position = same; position < n; position++) {
    let x = base ? layers[first].rows[position] : rowOf(model, tokens[position]);
    const [weights, networks] = [[], []];
    for (let l = first; l <= top; l++) {
      const kept = layers[l];
      kept.rows[position] = x;
      const normed = isGiven(l) ? null : keep(model, l, kept, x, position);
      if (l === top && position < n - 1) break;
      const own = isGiven(l)
        ? { heads: kept.outputs[position].slice() }
        : attention(model, l, kept, normed, position);
      change?.(l, position, own.heads);
      kept.outputs[position] = own.heads;
      const { row, network } = finish(model, l, x, own.heads);
      weights.push(own.weights);
      networks.push(network);
      x = row;
    }
    found = { weights, networks, last: x };
  }
  const rows = [...layers.map((kept) => kept.rows[n - 1]), found.last];
  return { ...found, rows, tokens, layers, logits: logitsOf(model, found.last) };
}

/** Reads tokens, and begins where they differ from those of an earlier reading. */
export const readOn = (model, tokens, earlier) =>
  readAll(model, tokens, { earlier, same: sameStart(tokens, earlier?.tokens) });

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
      parts.push(dot(back, read.layers[l].outputs.at(-1), h * d, h * d, d));
      byToken.push(
        Array.from(
          read.weights[l][h],
          (weight, j) => weight * dot(back, read.layers[l].values[j], h * d, kv, d),
        ),
      );
    }
    parts.push(dot(read.networks[l], column));
  });
  return { parts, byToken };
}

/**
 * The text of a reading `base` again, where the chosen heads, as bits, pass on zeros, their means,
 * or what they passed on in another reading; at all tokens or at the last one only. The `earlier`
 * reading is of another text, with the same choices.
 */
export function intervene(model, base, { away, how, where, means, other }, earlier) {
  const { d, nHeads } = model;
  const { tokens } = base;
  const change = (layer, position, heads) => {
    for (let h = 0; h < nHeads; h++) {
      const head = layer * nHeads + h;
      if (!((away >> head) & 1)) continue;
      for (let i = 0; i < d; i++) {
        const at = h * d + i;
        if (how === "zero") heads[at] = 0;
        else if (how === "mean") heads[at] = means[head][i];
        else heads[at] = other.layers[layer].outputs[position][at];
      }
    }
  };
  const first = Math.floor(Math.log2(away & -away) / nHeads); // the lowest layer that changes
  // How many tokens are as in `base`, since nothing changes there, and as in the earlier reading.
  const alike = other ? sameStart(tokens, other.tokens) : 0;
  const unchanged = where === "last" ? tokens.length - 1 : alike;
  const again = Math.min(
    sameStart(tokens, earlier?.tokens),
    other ? sameStart(other.tokens, earlier?.others) : tokens.length,
  );
  const start = again > unchanged ? { earlier, same: again } : { earlier: base, same: unchanged };
  const found = readAll(model, tokens, { ...start, base, first, change });
  return { ...found, others: other?.tokens };
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
 * A text that the model has read in this page. Interventions are computed when they are asked for.
 * The last reading of each kind is kept, also for the next text, which begins with what is the same
 * in an `earlier` one.
 */
export function openText(known, text, means, earlier = null) {
  const { model, vocabulary, tokenOf } = known;
  const { tokens, unknown } = tokensOf(known, text);
  const read = readOn(model, tokens, earlier?.read);
  const before = softmax(read.logits);
  const layers = read.rows.map((row) => softmax(logitsOf(model, row)));
  const [best] = mostProbable(before);
  const ledgers = new Map();
  const kept = new Map(); // by kind: of the other text; after an intervention
  const past = earlier?.kept ?? kept;
  const latest = (kind) => kept.get(kind) ?? past.get(kind);
  const keepAs = (kind, found) => kept.set(kind, found).get(kind);

  /** The probabilities after an intervention. */
  function after(away, how, where, name) {
    const other = how === "swap" ? readOther(name) : null;
    if (!away || (other && other.tokens.length !== tokens.length)) return before;
    const kind = `${away} ${how} ${where}`;
    const was = kept.get(kind);
    if (was && was.name === (other && name)) return was.probabilities;
    const options = { away, how, where, means, other };
    const found = intervene(model, read, options, latest(kind));
    const probabilities = softmax(found.logits);
    return keepAs(kind, { ...found, name: other && name, probabilities }).probabilities;
  }
  function readOther(name) {
    const was = latest("other");
    if (was?.name === name) return keepAs("other", was);
    const found = tokensOf(known, name);
    const nearest = [read, was].map((one) => [sameStart(found.tokens, one?.tokens), one]);
    const [, from] = nearest.sort(([a], [b]) => b - a)[0];
    return keepAs("other", { ...readOn(model, found.tokens, from), name, unknown: found.unknown });
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
    ledger(word, against) {
      const name = `${word} ${against}`;
      if (!ledgers.has(name))
        ledgers.set(name, ledgerOf(model, read, tokenOf.get(word), tokenOf.get(against) ?? -1));
      return ledgers.get(name);
    },
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
