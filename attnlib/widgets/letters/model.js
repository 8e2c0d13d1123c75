/**
 * The small GPT of attnlib.induction: embeddings and positions, pre-norm layers of
 * causal attention and a feed-forward network, a last norm, one score for each letter.
 *
 * A row is a Float64Array, a matrix an array of rows. Nothing here knows of a page.
 */
import { bytesOf } from "../kit/base64.js";
import { softmax } from "../kit/numbers.js";

export const LETTERS = "abcdefghijklmnop";
const FINENESS = 1024; // a weight travels as a whole number of these parts of 1
const EPS = 1e-5; // of a norm

/** What stands in base64 as numbers of 16 bits: the low bytes of all, then the high ones. */
function numbersOf(base64) {
  const bytes = bytesOf(base64);
  const count = bytes.length / 2;
  return Float64Array.from(
    { length: count },
    (_, i) => (((bytes[i] | (bytes[count + i] << 8)) << 16) >> 16) / FINENESS,
  );
}

/** A model from its packed weights: {name: matrix, or row}, `layers` and their number of heads. */
export function unpack({ n_heads, shapes, data }) {
  const numbers = numbersOf(data);
  let at = 0;
  const row = (length) => numbers.subarray(at, (at += length));
  const arrays = {};
  for (const [name, ...shape] of shapes) {
    arrays[name] =
      shape.length === 1 ? row(shape[0]) : Array.from({ length: shape[0] }, () => row(shape[1]));
  }
  const layers = [];
  for (let i = 0; `${i}.w_q` in arrays; i++) {
    const own = Object.keys(arrays).filter((name) => name.startsWith(`${i}.`));
    layers.push(Object.fromEntries(own.map((name) => [name.slice(2), arrays[name]])));
  }
  return { ...arrays, layers, n_heads };
}

const add = (a, b) => a.map((row, i) => row.map((x, k) => x + b[i][k]));

/** x W + b. Loops, because this is where the time goes. */
function linear(x, w, b) {
  return x.map((row) => {
    const out = Float64Array.from(b);
    for (let k = 0; k < row.length; k++) {
      const [factor, weights] = [row[k], w[k]];
      for (let j = 0; j < out.length; j++) out[j] += factor * weights[j];
    }
    return out;
  });
}

/** Each row shifted to mean 0 and divided to variance 1, then scaled and shifted as was learned. */
function layerNorm(x, gamma, beta) {
  return x.map((row) => {
    const mean = row.reduce((sum, each) => sum + each, 0) / row.length;
    const variance = row.reduce((sum, each) => sum + (each - mean) ** 2, 0) / row.length;
    return row.map((each, k) => ((each - mean) / Math.sqrt(variance + EPS)) * gamma[k] + beta[k]);
  });
}

function feedForward(x, { w_1, b_1, w_2, b_2 }) {
  const hidden = linear(x, w_1, b_1).map((row) => row.map((each) => Math.max(each, 0)));
  return linear(hidden, w_2, b_2);
}

/** The weights and the output of one head: each query attends to the positions up to its own. */
function attend(queries, keys, values) {
  const scale = 1 / Math.sqrt(queries[0].length);
  const weights = queries.map((query, i) =>
    softmax(
      keys.map((key, j) =>
        j > i ? -Infinity : scale * query.reduce((sum, q, k) => sum + q * key[k], 0),
      ),
    ),
  );
  const output = weights.map((row, i) => {
    const blend = new Float64Array(values[0].length);
    for (let j = 0; j <= i; j++)
      for (let k = 0; k < blend.length; k++) blend[k] += row[j] * values[j][k];
    return blend;
  });
  return { weights, output };
}

/** All heads of a layer side by side, times W_O; a head that is off gives zeros. */
function multiHead(x, { w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o }, n_heads, isOff) {
  const [queries, keys, values] = [linear(x, w_q, b_q), linear(x, w_k, b_k), linear(x, w_v, b_v)];
  const d = queries[0].length / n_heads;
  const part = (matrix, head) => matrix.map((row) => row.subarray(head * d, (head + 1) * d));
  const heads = Array.from({ length: n_heads }, (_, head) =>
    attend(part(queries, head), part(keys, head), part(values, head)),
  );
  const merged = x.map((_, i) => {
    const row = new Float64Array(n_heads * d);
    heads.forEach(({ output }, head) => isOff(head) || row.set(output[i], head * d));
    return row;
  });
  return {
    weights: heads.map((head) => head.weights),
    queries,
    keys,
    values,
    output: linear(merged, w_o, b_o),
  };
}

/** Sinusoidal positions. */
function position(p, d_model) {
  return Float64Array.from({ length: d_model }, (_, k) => {
    const angle = p / 10000 ** ((k - (k % 2)) / d_model);
    return k % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/**
 * What the model makes of tokens (numbers of letters) while the heads `off`, [layer, head], add
 * nothing: probabilities (n, 16), and weights by layer and head, each (n, n). `steps` holds, of
 * each layer, the rows that it was given and the queries, keys and values of its heads side by
 * side.
 */
export function read(model, tokens, off = []) {
  const d_model = model.w_out.length;
  const [weights, steps] = [[], []];
  let x = tokens.map((token, p) => add([model.embedding[token]], [position(p, d_model)])[0]);
  model.layers.forEach((layer, l) => {
    const attended = multiHead(
      layerNorm(x, layer.gamma_1, layer.beta_1),
      layer,
      model.n_heads,
      (h) => isOff(off, l, h),
    );
    weights.push(attended.weights);
    steps.push({ x, queries: attended.queries, keys: attended.keys, values: attended.values });
    x = add(x, attended.output);
    x = add(x, feedForward(layerNorm(x, layer.gamma_2, layer.beta_2), layer));
  });
  const scores = linear(layerNorm(x, model.gamma, model.beta), model.w_out, model.b_out);
  return { probabilities: scores.map((row) => softmax(Array.from(row))), weights, steps };
}

export const isOff = (off, layer, head) => off.some(([l, h]) => l === layer && h === head);

const size = (row) => Math.sqrt(row.reduce((sum, each) => sum + each * each, 0));
const LEAST = 0.1; // of what stood there

/**
 * For each place the earlier one of which the first layer adds most to it; -1 where it adds little,
 * or most of the place itself. Through W_O the value of j, times its weight, becomes what i gets of
 * j.
 */
export function copied(model, { weights, steps }, off) {
  const [{ w_o }] = model.layers;
  const [{ x, values }] = steps;
  const d = w_o.length / model.n_heads;
  const heads = weights[0].map((_, h) => h).filter((h) => !isOff(off, 0, h));
  const brought = heads.map((h) => {
    const rows = w_o.slice(h * d, (h + 1) * d);
    return linear(
      values.map((row) => row.subarray(h * d, (h + 1) * d)),
      rows,
      new Float64Array(rows[0].length),
    );
  });
  return x.map((row, i) => {
    const sizes = x
      .slice(0, i + 1)
      .map((_, j) =>
        size(
          row.map((_, k) =>
            heads.reduce((sum, h, b) => sum + weights[0][h][i][j] * brought[b][j][k], 0),
          ),
        ),
      );
    const most = Math.max(...sizes);
    const j = sizes.indexOf(most);
    return most > LEAST * size(row) && j < i ? j : -1;
  });
}
