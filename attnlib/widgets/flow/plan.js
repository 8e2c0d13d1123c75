/**
 * What Flow has to show: the numbers of a layer, its blocks in the order of the river, its stages.
 */
import { called, multiply, range, softmax, sum, transpose } from "../kit/numbers.js";

const plus = (a, b) =>
  a.map((row, i) => row.map((x, j) => x + (Array.isArray(b[0]) ? b[i][j] : b[j])));

const EPSILON = 1e-5;

/** Whether this is a whole model that writes: then the rows of its words come from a table. */
export const writes = (s) => Boolean(s.embeddings?.length);

/** The words of a text that have a row, which are all but an end mark. */
export const words = (s) => s.tokens.filter((token) => s.known.includes(token));

/** A model that writes as a state with one lane: its last word asks, and the whole text answers. */
function asking(s) {
  const text = words(s);
  const memory = text.map((word) => s.embeddings[s.known.indexOf(word)]);
  return { ...s, memory_tokens: text, memory, tokens: text.slice(-1), x: memory.slice(-1) };
}

/** Mean and root of the variance, as layer norm takes them. Eq. (3) of "The encoder layer". */
export function spread(row) {
  const mean = sum(row) / row.length;
  return { mean, root: Math.sqrt(sum(row.map((x) => (x - mean) ** 2)) / row.length + EPSILON) };
}

function norm(row) {
  const { mean, root } = spread(row);
  return row.map((x) => (x - mean) / root);
}

/**
 * Every matrix by its letter. Of each head: S scores, D divided, M after the mask, A weights. Z is
 * the heads side by side, R1 and R2 the sums before the norms, L the scores of the vocabulary, P
 * its shares.
 */
export function compute(s) {
  const X = s.x;
  const bent = writes(s) ? (row) => row : norm;
  const kept = (matrix, stays) =>
    stays === false ? matrix.map((row) => row.map(() => 0)) : matrix;
  const from = s.memory.length ? s.memory : X;
  const side = (w, head) =>
    w.map((row) => row.slice((head * row.length) / s.heads, ((head + 1) * row.length) / s.heads));
  const heads = range(s.heads).map((head) => {
    const [W_Q, W_K, W_V] = [s.w_q, s.w_k, s.w_v].map((w) => side(w, head));
    const [Q, K, V] = [multiply(X, W_Q), multiply(from, W_K), multiply(from, W_V)];
    const S = multiply(Q, transpose(K));
    const D = S.map((row) => row.map((score) => score / Math.sqrt(K[0].length)));
    const M = D.map((row, i) =>
      row.map((score, j) => (s.mask === "causal" && j > i ? -Infinity : score)),
    );
    const A = M.map(softmax);
    return { W_Q, W_K, W_V, Q, K, V, S, D, M, A, Z: multiply(A, V) };
  });
  const made = { X, heads, Z: X.map((_, i) => heads.flatMap(({ Z }) => Z[i])) };
  let last = made.Z;
  if (s.w_o.length) last = made.O = kept(multiply(made.Z, s.w_o), s.attention);
  if (s.layer) {
    made.own = kept(X, s.residual);
    made.R1 = plus(made.own, made.O);
    made.N1 = made.R1.map(bent);
    made.H = plus(multiply(made.N1, s.w_1), s.b_1).map((row) => row.map((x) => Math.max(0, x)));
    made.F = kept(plus(multiply(made.H, s.w_2), s.b_2), s.feed_forward);
    made.R2 = plus(made.N1, made.F);
    last = made.N2 = made.R2.map(bent);
  }
  if (s.vocabulary.length) {
    made.L = multiply(last, s.w_vocab);
    made.P = made.L.map(softmax);
  }
  return made;
}

/** What a block is called, what it holds, its role, the stage that makes it. */
const BLOCKS = {
  M: ["M", "memory", "ink", "rows"],
  X: ["X", "one row for each word", "ink", "rows"],
  Q: ["Q", "queries", "query", "qkv"],
  K: ["Kᵀ", "keys", "key", "qkv"],
  G: ["S", "scores", "weight", "scores"],
  V: ["V", "values", "value", "qkv"],
  Z: ["Z", "outputs", "ink", "blend"],
  O: ["Z W_O", "attended", "ink", "join"],
  N1: ["X′", "added, normed", "ink", "add1"],
  H: ["H", "hidden", "ink", "think"],
  F: ["FFN", "to be added", "ink", "think"],
  N2: ["X″", "added, normed", "ink", "add2"],
  P: ["L", "logits", "ink", "words"],
};

/**
 * What happens, in order: a title, a caption with {Q:roles}, what it is about (`lit`; all if none),
 * the view (what opens first where digits have little room), how long it takes, and its equation.
 */
const STAGES = {
  rows: [
    "Rows",
    "Each word becomes a row of numbers. The lines show where these numbers go.",
    "X M",
    "start",
    2,
    "X, one row for each word",
  ],
  qkv: [
    "Q, K, V",
    "Three matrices turn each row into a {Q:query} (what the word is looking for), a {K:key} " +
      "(what others can find it by) and a {V:value} (what others get from it).",
    "X M Q K V",
    "attend",
    4,
    "{Q:Q} = X {Q:W_Q}   {K:K} = X {K:W_K}   {V:V} = X {V:W_V}",
  ],
  scores: [
    "Scores",
    "Where the lines of a {Q:query} and a {K:key} cross, multiply them number by number, and " +
      "add up.",
    "Q K G",
    "attend",
    8,
    "S = {Q:Q} {K:Kᵀ}",
  ],
  scale: [
    "Scale",
    "Each score is divided by √{d_k}, because a {K:key} has {d_k} numbers. With more numbers, " +
      "scores tend to be larger.",
    "G",
    "attend",
    2.4,
    "S / √d_k",
  ],
  mask: [
    "Mask",
    "No word may attend to a later one: there the score becomes −∞, and that crossing is closed.",
    "G",
    "attend",
    2.4,
    "S / √d_k, −∞ where masked",
  ],
  softmax: [
    "Softmax",
    "The exponential of each score is divided by the sum of its row. This gives the {A:attention " +
      "weights}, which sum to 1.",
    "G",
    "attend",
    5,
    "{A:A} = softmax( S / √d_k )",
  ],
  blend: [
    "Average",
    "Each output is an average of all {V:values}, and each counts as much as its {A:weight} " +
      "says. The wider the ribbon, the larger the weight.",
    "G V Z",
    "blend",
    5,
    "Z = {A:A} {V:V}",
  ],
  heads: [
    "Heads",
    "The other heads do the same with matrices of their own. What all of them found stands side " +
      "by side.",
    "Z",
    "blend",
    2.4,
    "Z = Concat( Z_1, Z_2, … )",
  ],
  join: [
    "Output matrix",
    "W_O turns what attention has found into a row as long as the first one.",
    "Z O",
    "join",
    2.4,
    "Z W_O",
  ],
  add1: [
    "Add, norm",
    "The row of the word itself, which bypassed the attention, is added. This is the residual " +
      "connection. The sum is brought to mean 0 and variance 1.",
    "X O N1",
    "add",
    4.5,
    "X′ = LayerNorm( X + Z W_O )",
  ],
  think: [
    "Feed forward",
    "The feed-forward network works on each row by itself: no line goes from one word to another.",
    "N1 H F",
    "think",
    3,
    "FFN( X′ ) = ReLU( X′ W_1 + b_1 ) W_2 + b_2",
  ],
  add2: [
    "Add, norm",
    "The row from before the network is added, and the sum is normalized again. The result is as " +
      "long as the first row, so another layer can follow.",
    "N1 F N2",
    "end",
    3.5,
    "X″ = LayerNorm( X′ + FFN( X′ ) )",
  ],
  words: [
    "Logits",
    "A table has a column for every word that can be written. The dot product of the output " +
      "with a column is the logit of that word.",
    "P",
    "say",
    3,
    "logits = Z W_vocab",
  ],
  shares: [
    "Probabilities",
    "Softmax turns the logits into probabilities, which sum to 1. The most probable word is " +
      "written next.",
    "P",
    "say",
    3,
    "P = softmax( logits )",
  ],
  whole: [
    "All steps",
    "The words affect each other in only three places: where a {A:query is multiplied by a key}, " +
      "where the exponentials of a row are divided by their sum, and where {V:values are " +
      "averaged} (the ribbons).",
    "",
    "whole",
    1,
    "Z = {A:softmax}( {Q:Q} {K:Kᵀ} / √d_k ) {V:V}",
  ],
};
/** What differs where the model is a whole one: it has no norms, and its last word asks. */
const WRITING = {
  rows: {
    says:
      "Each word of the text becomes its row in the table of embeddings. Only the last word " +
      "needs a query here, so only its row is followed through the picture.",
  },
  qkv: {
    says:
      "The last word gets a {Q:query}: what it is looking for. Every word has a {K:key}, what it " +
      "can be found by, and a {V:value}, what others get from it. Those of earlier words never " +
      "change, so a program keeps them.",
  },
  scores: {
    says:
      "Each {Q:query} is multiplied by each {K:key}. Two minus signs give just as large a " +
      "score as two plus signs.",
  },
  softmax: { equation: "{A:A} = softmax( S )" },
  join: {
    title: "Place",
    says: "W_O puts what attention has found into two columns of a row as long as the first.",
  },
  add1: {
    title: "Add",
    says:
      "The row of the word itself, which bypassed the attention, is added to what attention has " +
      "found. This is the residual connection.",
    equation: "X′ = X + Z W_O",
  },
  add2: {
    title: "Add",
    says: "What the network returns is added, too. This is the row from which the next word comes.",
    equation: "X″ = X′ + FFN( X′ )",
  },
  words: {
    title: "Logits",
    says:
      "A column for each word that can be written. The dot product of the row with a column is " +
      "the logit of that word.",
  },
  shares: {
    title: "Probabilities",
    says:
      "Softmax turns logits into probabilities. Those after the last word count: the most " +
      "probable word is written.",
  },
};
const WORDS = {
  M: "the rows of the text",
  X: "the last word",
  N1: "added",
  N2: "added",
};
const ASKED = {
  rows:
    "The queries come from the words written so far, the keys and values from the memory M: the " +
    "rows that the encoder computed.",
  qkv:
    "The {Q:queries} come from the words that ask. The {K:keys} and the {V:values} come from " +
    "the memory.",
  whole:
    "The two texts meet in only two places: where a {A:query is multiplied by a key}, and where " +
    "{V:values are averaged} (the ribbons).",
};

const GIVEN = [
  "tokens",
  "x",
  "w_q",
  "w_k",
  "w_v",
  "w_o",
  "heads",
  "mask",
  "memory_tokens",
  "memory",
  "layer",
  "w_1",
  "b_1",
  "w_2",
  "b_2",
  "vocabulary",
  "w_vocab",
  "known",
  "embeddings",
  "attention",
  "residual",
  "feed_forward",
];
let kept = {};

/** What there is to draw for a state; the same object until a number changes. */
export function plan(s) {
  const key = JSON.stringify(GIVEN.map((name) => s[name]));
  if (kept.key !== key) kept = { key, plan: planned(writes(s) ? asking(s) : s) };
  return kept.plan;
}

function planned(s) {
  const made = compute(s);
  const cross = s.memory.length > 0;
  const [n_q, n_k] = [s.x.length, made.heads[0].K.length];
  const d_k = made.heads[0].K[0].length;
  const ids = [
    "rows",
    "qkv",
    "scores",
    // √1 is no step of its own where a hand would do it.
    ...(writes(s) && d_k === 1 ? [] : ["scale"]),
    ...(s.mask === "causal" ? ["mask"] : []),
    "softmax",
    "blend",
    ...(s.heads > 1 ? ["heads"] : []),
    ...(s.w_o.length ? ["join"] : []),
    ...(s.layer ? ["add1", "think", "add2"] : []),
    ...(s.vocabulary.length ? ["words", "shares"] : []),
    "whole",
  ];
  const end = s.layer ? "X″" : s.w_o.length ? "Z W_O" : "Z";
  const stages = ids.map((id) => {
    const [name, words, lit, view, seconds, formula] = STAGES[id];
    const own = writes(s) ? WRITING[id] : null;
    const { title, says, equation } = { title: name, says: words, equation: formula, ...own };
    const caption = (cross && !own && ASKED[id]) || says.replaceAll("{d_k}", d_k);
    const from = cross ? equation.replace(/X (\{[KV]:W)/g, "M $1") : equation;
    return {
      id,
      title,
      says: caption,
      lit: lit ? lit.split(" ") : null,
      view,
      seconds,
      equation: id === "words" ? `logits = ${end} W_vocab` : from,
    };
  });
  if (s.layer) {
    stages.at(-1).equation =
      "X′ = LayerNorm( X + {A:softmax}( {Q:Q} {K:Kᵀ} / √d_k ) {V:V} W_O )\n" +
      "X″ = LayerNorm( X′ + FFN( X′ ) )";
  }
  if (writes(s)) {
    stages.at(-1).equation = "X′ = X + {A:softmax}( {Q:Q} {K:Kᵀ} ) {V:V} W_O\nX″ = X′ + FFN( X′ )";
  }
  if (s.vocabulary.length) stages.at(-1).equation += `\nP = softmax( ${end} W_vocab )`;
  const when = Object.fromEntries(ids.map((id, k) => [id, k]));
  const river = ["X", "Q", "G", "V", "Z", "O", "N1", "H", "F", "N2", "P"].filter(
    (id) => BLOCKS[id][3] in when,
  );
  const matrices = range(s.heads).map((head) => {
    const one = made.heads[head];
    return { ...made, ...one, M: s.memory, masked: one.M, G: one.A, Z: made.Z };
  });
  const blocks = {};
  for (const id of [...(cross ? ["M"] : []), ...river, "K"]) {
    const [letter, plain, role, stage] = BLOCKS[id];
    const symbol = id === "M" && writes(s) ? "E" : letter;
    const words = (writes(s) && WORDS[id]) || plain;
    const matrix = matrices[0][id];
    blocks[id] = {
      id,
      symbol,
      words,
      role,
      stage: when[stage],
      rows: matrix.length,
      columns: matrix[0].length,
    };
  }
  const names = called(s.tokens);
  return {
    s,
    made,
    matrices,
    river,
    blocks,
    stages,
    when,
    cross,
    n_q,
    n_k,
    d_k,
    names,
    d_v: made.heads[0].V[0].length,
    answers: cross ? called(s.memory_tokens) : names,
    layer: s.layer,
    n: Math.max(n_q, n_k),
    // Of the lanes.
    ends: made.P ? made.P.map((row) => called(s.vocabulary)[row.indexOf(Math.max(...row))]) : names,
    last: s.layer ? "N2" : s.w_o.length ? "O" : "Z",
    resting: {},
    paper: [],
  };
}

/** The place of a state's stage among those of its plan, and how much of it has happened. */
export function moment({ stages }, { stage, u }) {
  const s = stages.findIndex(({ id }) => id === stage);
  return { s: s < 0 ? stages.length - 1 : s, u };
}

/**
 * The name and the words of a block just now: the grid and the last block hold scores, then shares.
 */
export function naming({ when, blocks }, id, { s }) {
  const { symbol, words } = blocks[id];
  if (id === "P" && s >= when.shares) return ["P", "probabilities"];
  if (id !== "G" || s < (when.scale ?? when.mask ?? when.softmax)) return [symbol, words];
  if (s >= when.softmax) return ["A", "attention weights"];
  if (when.scale === undefined) return ["S", "scores, masked"];
  return ["S/√d_k", s >= (when.mask ?? Infinity) ? "scaled, masked" : "scaled scores"];
}

// ------------------------------------------------------------------------- Numbers as text

/** x with at most `digits` decimals and a true minus; what is whole stays whole. */
export function short(x, digits = 3) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (Math.abs(x) >= 1e7) return x.toExponential(2).replace("-", "−");
  const text = Math.abs(x - Math.round(x)) < 1e-9 ? String(Math.round(x) + 0) : x.toFixed(digits);
  return (/^-0(\.0+)?$/.test(text) ? text.slice(1) : text).replace("-", "−");
}

/** About how wide a text is; the widest common system font decides. */
export const wide = (text, size) =>
  sum(Array.from(text, (c) => (".·il".includes(c) ? 0.33 : 0.62))) * size;

/** As much of a name as there is room for. */
export function fitted(name, room, size) {
  const letters = Array.from(name);
  while (letters.length > 1 && wide(letters, size) > room) letters.splice(-2, 2, "…");
  return letters.join("");
}

/** How many decimals fit into every cell of a matrix, at most `most`; -1 if not even none does. */
export function decimals(matrix, room, size, most = 3) {
  const all = matrix.flat().filter(Number.isFinite);
  for (let digits = most; digits >= 0; digits--) {
    // 0.4 is not 0
    if (digits === 0 && all.some((x) => Math.abs(x - Math.round(x)) > 1e-9)) return -1;
    if (all.every((x) => wide(short(x, digits), size) <= room)) return digits;
  }
  return -1;
}
