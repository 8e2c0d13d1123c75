/**
 * all-MiniLM-L6-v2, a sentence encoder: its tokenizer, and its layers with all their weights.
 *
 * Nothing here waits or loads: worker.js brings the pieces that tools/encoder.py has made.
 * What a number is: whole * 2**bits + fine, times the scale of its group. The fine part comes
 * later; until then it counts as 0, and everything runs as it will.
 */
// biome-ignore-all lint/correctness/noUnusedVariables: worker.js calls these functions
"use strict";

// ------------------------------------------------------------------------------- text to tokens

/** The published tokenizer. `letters` are its own tables: a browser's Unicode may be newer. */
function makeTokenizer({ words, letters }, special) {
  const LONGEST_WORD = 100; // letters; a longer word is unknown
  const [SPELLED, GONE, SPACE, ALONE] = [1, 2, 3, 4]; // all other letters stay as they are
  const [SYLLABLE, SYLLABLES] = [0xac00, 19 * 21 * 28]; // Hangul
  const ids = new Map(words.map((word, id) => [word, id]));
  const longestPiece = words.reduce((most, word) => Math.max(most, word.length), 0);
  const kinds = new Uint8Array(0x110000);
  const spelled = new Map();

  function mark(runs, kind) {
    for (let i = 0; i < runs.length; i += 2) kinds.fill(kind, runs[i], runs[i] + runs[i + 1]);
  }
  mark(letters.gone, GONE);
  mark([0xd800, 0x800], GONE); // half a letter
  mark(letters.spaces, SPACE);
  mark(letters.alone, ALONE);
  for (const line of letters.spelled.split("\n")) {
    const [letter] = line;
    kinds[letter.codePointAt(0)] = SPELLED;
    spelled.set(letter, line.slice(letter.length));
  }

  /** A letter in small, without accents, with spaces around what is a word of its own. */
  function spell(letter) {
    const point = letter.codePointAt(0);
    const kind = kinds[point];
    if (kind) return [spelled.get(letter), "", " ", ` ${letter} `][kind - 1];
    const at = point - SYLLABLE;
    if (at < 0 || at >= SYLLABLES) return letter;
    const [start, middle, end] = [Math.floor(at / 588), Math.floor(at / 28) % 21, at % 28];
    return String.fromCharCode(0x1100 + start, 0x1161 + middle, ...(end ? [0x11a7 + end] : []));
  }

  /** The longest beginning of a word that is a piece, then that of the rest, and so on. */
  function pieces(word) {
    const all = [...word];
    if (all.length > LONGEST_WORD) return ["[UNK]"];
    const found = [];
    for (let from = 0; from < all.length; ) {
      let to = Math.min(all.length, from + longestPiece);
      let piece;
      for (; to > from; to--) {
        piece = (from ? "##" : "") + all.slice(from, to).join("");
        if (ids.has(piece)) break;
      }
      if (to === from) return ["[UNK]"];
      found.push(piece);
      from = to;
    }
    return found;
  }

  const names = special.map((name) => name.slice(1, -1)).join("|");
  const typed = new RegExp(`(\\[(?:${names})\\])`); // a special token, written as such

  return function tokenize(text) {
    const parts = text.split(typed).flatMap((part, i) => {
      if (i % 2) return [part];
      return Array.from(part, spell).join("").split(" ").filter(Boolean).flatMap(pieces);
    });
    const tokens = ["[CLS]", ...parts, "[SEP]"];
    return { tokens, ids: tokens.map((token) => ids.get(token)) };
  };
}

// ------------------------------------------------------------------------------- numbers

/** CRC-32, as zlib has it. */
const checksum = (() => {
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    for (let bit = 0; bit < 8; bit++) byte = (byte >>> 1) ^ (byte & 1 ? 0xedb88320 : 0);
    return byte;
  });
  return (bytes) => {
    let sum = -1;
    for (let i = 0; i < bytes.length; i++) sum = table[(sum ^ bytes[i]) & 255] ^ (sum >>> 8);
    return ~sum >>> 0;
  };
})();

/** Calls act(i, number) for `count` numbers of so many bits, from a byte on, offset removed. */
function unpack(bytes, from, bits, count, act) {
  const half = 2 ** bits / 2;
  let buffer = 0;
  let have = 0;
  for (let i = 0; i < count; i++) {
    for (; have < bits; have += 8) buffer |= bytes[from++] << have;
    act(i, (buffer & (2 * half - 1)) - half);
    buffer >>>= bits;
    have -= bits;
  }
}

/** Scales travel as the upper halves of their 32 bits. */
function widened(halves) {
  return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
}

/** v/2 (1 + erf(v / sqrt 2)), with formula 7.1.26 of Abramowitz and Stegun, right to 2e-7. */
function gelu(v) {
  const z = Math.abs(v) * Math.SQRT1_2;
  const t = 1 / (1 + 0.3275911 * z);
  const tail =
    t *
    Math.exp(-z * z) *
    // 1 - erf(z)
    (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return 0.5 * v * (v < 0 ? tail : 2 - tail);
}

// ------------------------------------------------------------------------------- the model

/**
 * The layers. All that the kernel touches lies in one buffer, which `allocate(bytes)` returns;
 * `kernel` is the product in WebAssembly, or null. Sentences are read one at a time:
 * begin(found, hidden, options), layer(0), layer(1) and so on, end(). The options:
 *   replaced   [[layer, head, (n, width of a head)], ...]: what heads pass on instead of their own
 *   ledger     whether end() is to say what each part of the model has written into each row
 */
function makeModel(plan, allocate) {
  const { layers: LAYERS, heads: HEADS, width: D, inner: F, places: MOST, eps: EPS } = plan.sizes;
  const { group: GROUP, bits: BITS } = plan;
  const WIDTH = D / HEADS;
  const ROOM = 4 * Math.ceil(MOST / 4); // the product takes tokens in fours

  function lay(take) {
    const matrix = (height, width) => ({
      height,
      width,
      bias: take(Float32Array, height),
      scales: take(Float32Array, (height * width) / GROUP),
      whole: take(Int16Array, height * width),
    });
    return {
      layers: Array.from({ length: LAYERS }, () => ({
        dense: [matrix(3 * D, D), matrix(D, D), matrix(F, D), matrix(D, F)], // q k v, out, up, down
        norms: take(Float32Array, 4 * D),
      })),
      x: take(Float32Array, ROOM * D),
      y: take(Float32Array, ROOM * D),
      wide: take(Float32Array, ROOM * Math.max(3 * D, F)),
      rows: take(Float32Array, 2 * Math.max(D, F)), // two rows of a matrix, as floats
    };
  }
  let used = 0;
  const next = (Kind, size) => {
    const at = used;
    used += 16 * Math.ceil((size * Kind.BYTES_PER_ELEMENT) / 16);
    return at;
  };
  lay(next);
  const { buffer, kernel } = allocate(used);
  used = 0;
  const { layers, x, y, wide, rows } = lay(
    (Kind, size) => new Kind(buffer, next(Kind, size), size),
  );

  // --- pieces

  const tables = new Map();
  let norm; // of what goes into the first layer

  /** A table of rows: where its scales, first bits and further bits lie. */
  function table(bytes, from, bits) {
    const perRow = (2 * D) / GROUP + D + (D * bits) / 8;
    const count = (bytes.length - from) / perRow;
    const halves = new Uint16Array(bytes.buffer, from, (count * D) / GROUP);
    const whole = new Int8Array(bytes.buffer, from + halves.byteLength, count * D);
    return {
      bits,
      scales: widened(halves),
      whole,
      bytes,
      fine: from + halves.byteLength + whole.length,
    };
  }

  function fill({ dense, norms }, bytes) {
    let at = 0;
    const part = (Kind, { length }) => {
      const view = new Kind(bytes.buffer, at, length);
      at += view.byteLength;
      return view;
    };
    for (const { bias } of dense) bias.set(part(Float32Array, bias));
    norms.set(part(Float32Array, norms));
    for (const { scales } of dense) scales.set(widened(part(Uint16Array, scales)));
    for (const { whole } of dense) {
      const first = part(Int8Array, whole);
      for (let i = 0; i < whole.length; i++) whole[i] = first[i] << BITS.layers;
    }
  }

  function refine({ dense }, bytes) {
    let from = 0;
    for (const { whole } of dense) {
      unpack(bytes, from, BITS.layers, whole.length, (i, fine) => {
        whole[i] += fine;
      });
      from += (whole.length * BITS.layers) / 8;
    }
  }

  /** Takes in a piece, whole and right, once. */
  function add(name, bytes) {
    const [kind, number] = name.split("-");
    if (kind === "layer") fill(layers[number - 1], bytes);
    if (kind === "fine") refine(layers[number - 1], bytes);
    if (kind === "rows") tables.set(name, table(bytes, 0, BITS.words));
    if (kind === "base") {
      norm = new Float32Array(bytes.buffer, 0, 2 * D);
      tables.set(name, table(bytes, norm.byteLength, BITS.places));
    }
  }

  /** The piece that holds the row of a token, and which row of it: [name, row]. */
  function find(token, id) {
    const at = plan.special.indexOf(token);
    if (at >= 0) return ["base", MOST + at];
    const row = id - plan.firstWord;
    return [`rows-${Math.floor(row / plan.rows)}`, row % plan.rows];
  }

  /** Adds a row of a table to the vector of token t. */
  function addRow([name, row], t) {
    const { bits, scales, whole, bytes, fine } = tables.get(name);
    const from = row * D;
    unpack(bytes, fine + (from * bits) / 8, bits, D, (d, rest) => {
      const steps = whole[from + d] * 2 ** bits + rest;
      x[t * D + d] += steps * scales[Math.floor((from + d) / GROUP)];
    });
  }

  // --- one sentence

  let n = 0;
  let open; // the tokens that may be attended to
  let swaps; // what heads pass on instead of their own
  let written; // what each part has written, (n, D) each, as later norms rescale it; or null

  /** out = input W^T + b, for n tokens; rows beyond, up to a multiple of 4, hold nothing. */
  function multiply({ height, width, bias, scales, whole }, input, out) {
    if (kernel) {
      const [at, ...places] = [input, whole, scales, bias, out, rows].map(
        (view) => view.byteOffset,
      );
      return kernel(at, n, ...places, width, height, GROUP);
    }
    for (let o = 0; o < height; o += 2) {
      for (let i = 0, at = o * width; i < 2 * width; i++) {
        rows[i] = whole[at + i] * scales[Math.floor((at + i) / GROUP)];
      }
      for (let t = 0; t < n; t += 4) {
        let [a, b, c, d] = [bias[o], bias[o], bias[o], bias[o]];
        let [e, f, g, h] = [bias[o + 1], bias[o + 1], bias[o + 1], bias[o + 1]];
        for (let i = 0, at = t * width; i < width; i++, at++) {
          const u = rows[i];
          const v = rows[width + i];
          const p = input[at];
          const q = input[at + width];
          const r = input[at + 2 * width];
          const s = input[at + 3 * width];
          a += u * p;
          b += u * q;
          c += u * r;
          d += u * s;
          e += v * p;
          f += v * q;
          g += v * r;
          h += v * s;
        }
        const to = t * height + o;
        out[to] = a;
        out[to + height] = b;
        out[to + 2 * height] = c;
        out[to + 3 * height] = d;
        out[to + 1] = e;
        out[to + height + 1] = f;
        out[to + 2 * height + 1] = g;
        out[to + 3 * height + 1] = h;
      }
    }
  }

  /** x = norm(x + added), token by token; the shift counts among the `biases` of a ledger. */
  function addAndNorm(added, gamma, beta, biases) {
    for (let at = 0; at < n * D; at += D) {
      let mean = 0;
      let variance = 0;
      for (let d = 0; d < D; d++) mean += (x[at + d] += added[at + d]) / D;
      for (let d = 0; d < D; d++) variance += (x[at + d] - mean) ** 2 / D;
      const deviation = Math.sqrt(variance + EPS);
      for (let d = 0; d < D; d++) x[at + d] = ((x[at + d] - mean) / deviation) * gamma[d] + beta[d];
      if (!biases) continue;
      for (const part of written) {
        const row = part.subarray(at, at + D);
        const own = row.reduce((sum, entry) => sum + entry, 0) / D;
        for (let d = 0; d < D; d++) row[d] = ((row[d] - own) / deviation) * gamma[d];
      }
      for (let d = 0; d < D; d++) biases[at + d] += beta[d];
    }
  }

  /** What each head writes through its columns of W_O, then the bias: (n, D) each. */
  function writeHeads({ bias, scales, whole }) {
    const heads = Array.from({ length: HEADS }, () => new Float64Array(n * D));
    const biases = new Float64Array(n * D);
    for (let o = 0; o < D; o++) {
      for (let i = 0; i < D; i++) {
        const weight = whole[o * D + i] * scales[Math.floor((o * D + i) / GROUP)];
        const head = heads[Math.floor(i / WIDTH)];
        for (let t = 0; t < n; t++) head[t * D + o] += weight * y[t * D + i];
      }
      for (let t = 0; t < n; t++) biases[t * D + o] = bias[o];
    }
    written.push(...heads, biases);
    return biases;
  }

  /** Column block `part` of what the first product made: 0 queries, 1 keys, 2 values; (n, D). */
  function block(part) {
    const copy = new Float32Array(n * D);
    for (let t = 0; t < n; t++)
      copy.set(wide.subarray((3 * t + part) * D, (3 * t + part + 1) * D), t * D);
    return copy;
  }

  /** The weights of all heads, (heads, n, n); what they mix goes into y. */
  function attend(queries, keys, values) {
    const weights = new Float32Array(HEADS * n * n);
    y.fill(0, 0, n * D);
    for (let h = 0; h < HEADS; h++) {
      for (let i = 0; i < n; i++) {
        const query = i * D + h * WIDTH;
        const row = weights.subarray((h * n + i) * n, (h * n + i + 1) * n);
        const seen = open.length ? open : [i];
        let top = -Infinity;
        let sum = 0;
        for (const j of seen) {
          const key = j * D + h * WIDTH;
          let dot = 0;
          for (let d = 0; d < WIDTH; d++) dot += queries[query + d] * keys[key + d];
          row[j] = dot / Math.sqrt(WIDTH);
          top = Math.max(top, row[j]);
        }
        for (const j of seen) sum += row[j] = Math.exp(row[j] - top);
        for (const j of seen) {
          const weight = (row[j] /= sum);
          const value = j * D + h * WIDTH;
          for (let d = 0; d < WIDTH; d++) y[query + d] += weight * values[value + d];
        }
      }
    }
    return weights;
  }

  return {
    add,
    most: MOST,
    layers: LAYERS,
    headWidth: WIDTH,

    /** The pieces that hold the rows of these tokens. */
    rowsOf({ tokens, ids }) {
      return [...new Set(tokens.map((token, t) => find(token, ids[t])[0]))];
    },

    /** Puts a sentence before the first layer; nobody attends to the tokens at `hidden`. */
    begin({ tokens, ids }, hidden, { replaced = [], ledger = false } = {}) {
      n = tokens.length;
      swaps = replaced;
      open = tokens.map((_, t) => t).filter((t) => !hidden.includes(t));
      x.fill(0);
      y.fill(0);
      tokens.forEach((token, t) => {
        addRow(find(token, ids[t]), t);
        addRow(["base", t], t);
      });
      addAndNorm(y, norm.subarray(0, D), norm.subarray(D));
      written = ledger ? [Float64Array.from(x.subarray(0, n * D))] : null;
      return x.slice(0, n * D);
    },

    /** One layer: its weights, what they were made of, and the states after it. */
    layer(l) {
      const { dense, norms } = layers[l];
      const part = (i) => norms.subarray(i * D, (i + 1) * D);
      multiply(dense[0], x, wide);
      const [queries, keys, values] = [0, 1, 2].map(block);
      const weights = attend(queries, keys, values);
      for (const [layer, head, given] of swaps) {
        if (layer !== l) continue;
        for (let t = 0; t < n; t++)
          y.set(given.subarray(t * WIDTH, (t + 1) * WIDTH), t * D + head * WIDTH);
      }
      multiply(dense[1], y, wide);
      const biases = written && writeHeads(dense[1]);
      addAndNorm(wide, part(0), part(1), biases);
      multiply(dense[2], x, wide);
      for (let i = 0; i < n * F; i++) wide[i] = gelu(wide[i]);
      multiply(dense[3], wide, y);
      written?.push(Float64Array.from(y.subarray(0, n * D)));
      addAndNorm(y, part(2), part(3), biases);
      return { weights, queries, keys, values, state: x.slice(0, n * D) };
    },

    /**
     * The sentence as one vector of length 1, the mean over the tokens that are not hidden; and
     * the ledger, (n, D) for each part: the input, then of each layer its heads, its biases and its
     * feed-forward network.
     */
    end() {
      const counted = open.length ? open : Array.from({ length: n }, (_, t) => t);
      const mean = new Float64Array(D);
      for (const t of counted) for (let d = 0; d < D; d++) mean[d] += x[t * D + d];
      const length = Math.hypot(...mean);
      const embedding = Float32Array.from(mean, (entry) => entry / length);
      const ledger = written?.map((part) => Float32Array.from(part));
      return { embedding, ...(ledger && { ledger }) };
    },
  };
}
