/**
 * A causal language model of today's usual shape, token by token: RMSNorm, rotary positions,
 * grouped heads, SwiGLU, and a cache of keys and values. A configuration and the arrays have the
 * names that the models' authors publish; attnlib's causal_lm computes the same
 * (attnlib/models/published.py).
 *
 * Nothing here knows of a page. A matrix (out, in) is one Float32Array, row after row.
 */

const FAMILIES = ["llama", "mistral", "qwen3"]; // their differences are arrays that may be missing

/** A model from its configuration and its arrays, {name: Float32Array}; throws a RangeError. */
export function makeModel(config, arrays) {
  const refuse = (what) => {
    throw new RangeError(`This engine needs ${what}.`);
  };
  const { model_type, rope_parameters, rope_scaling, sliding_window } = config;
  const rope = rope_parameters ?? rope_scaling ?? {};
  if (!FAMILIES.includes(model_type)) refuse(`a model_type among ${FAMILIES}; got ${model_type}`);
  if ((config.hidden_act ?? "silu") !== "silu") refuse(`hidden_act silu; got ${config.hidden_act}`);
  if ((rope.rope_type ?? rope.type ?? "default") !== "default") refuse("plain rotary positions");
  if (sliding_window && config.use_sliding_window !== false) refuse("layers without a window");
  const take = (name) => arrays[name] ?? refuse(`the array ${name}`);
  const linear = (name) => ({ matrix: take(`${name}.weight`), bias: arrays[`${name}.bias`] });
  const layer = (_, l) => {
    const of = (part) => `model.layers.${l}.${part}`;
    return {
      ...Object.fromEntries("qkvo".split("").map((x) => [x, linear(of(`self_attn.${x}_proj`))])),
      ...Object.fromEntries(["gate", "up", "down"].map((x) => [x, linear(of(`mlp.${x}_proj`))])),
      norm_1: take(of("input_layernorm.weight")),
      norm_2: take(of("post_attention_layernorm.weight")),
      norm_q: arrays[of("self_attn.q_norm.weight")],
      norm_k: arrays[of("self_attn.k_norm.weight")],
    };
  };
  const nHeads = config.num_attention_heads;
  const d = config.head_dim ?? config.hidden_size / nHeads;
  const base = rope.rope_theta ?? config.rope_theta ?? 10000;
  const embeddings = take("model.embed_tokens.weight");
  return {
    dModel: config.hidden_size,
    eps: config.rms_norm_eps,
    nHeads,
    queriesForKey: nHeads / (config.num_key_value_heads ?? nHeads),
    d,
    frequencies: Float64Array.from({ length: d / 2 }, (_, i) => base ** ((-2 * i) / d)),
    layers: Array.from({ length: config.num_hidden_layers }, layer),
    embeddings,
    norm: take("model.norm.weight"),
    unembedding: { matrix: config.tie_word_embeddings ? embeddings : take("lm_head.weight") },
  };
}

/**
 * W x + b. Here a model spends its time: four sums side by side take half of what one after the
 * other takes, and each of them adds in the same order.
 */
function times({ matrix, bias }, x) {
  const n = x.length;
  const out = new Float32Array(matrix.length / n);
  const fours = out.length - (out.length % 4);
  let o = 0;
  for (let at = 0; o < fours; o += 4, at += 4 * n) {
    let [a, b, c, d] = bias ? bias.subarray(o, o + 4) : [0, 0, 0, 0];
    for (let i = 0, from = at; i < n; i++, from++) {
      const each = x[i];
      a += matrix[from] * each;
      b += matrix[from + n] * each;
      c += matrix[from + 2 * n] * each;
      d += matrix[from + 3 * n] * each;
    }
    out[o] = a;
    out[o + 1] = b;
    out[o + 2] = c;
    out[o + 3] = d;
  }
  for (; o < out.length; o++) {
    let sum = bias ? bias[o] : 0;
    for (let i = 0, at = o * n; i < n; i++) sum += matrix[at + i] * x[i];
    out[o] = sum;
  }
  return out;
}

const plus = (a, b) => a.map((each, i) => each + b[i]);

function rmsNorm(x, gamma, eps) {
  let squares = 0;
  for (const each of x) squares += each * each;
  const factor = 1 / Math.sqrt(squares / x.length + eps);
  return x.map((each, i) => each * factor * gamma[i]);
}

/** Norms each head of x, in place, if the model has a norm for them. */
function normHeads(x, gamma, eps) {
  if (!gamma) return;
  const d = gamma.length;
  for (let h = 0; h < x.length; h += d) x.set(rmsNorm(x.subarray(h, h + d), gamma, eps), h);
}

/** Turns each head of x for a position, in place: the pairs are one number from each half. */
function turn(x, d, frequencies, position) {
  frequencies.forEach((frequency, i) => {
    const [cos, sin] = [Math.cos(position * frequency), Math.sin(position * frequency)];
    for (let h = i; h < x.length; h += d) {
      const [a, b] = [x[h], x[h + d / 2]];
      x[h] = a * cos - b * sin;
      x[h + d / 2] = a * sin + b * cos;
    }
  });
}

/** The softmax of logits, or of scores. */
export function softmax(logits) {
  let most = -Infinity;
  for (const each of logits) most = Math.max(most, each);
  const exponentials = Float64Array.from(logits, (each) => Math.exp(each - most));
  let sum = 0;
  for (const each of exponentials) sum += each;
  return exponentials.map((each) => each / sum);
}

/** The weights of one head on the tokens so far; `to` gets the mean of their values. */
function attend({ d, queriesForKey }, h, query, { keys, values }, to) {
  const [q, kv] = [h * d, Math.floor(h / queriesForKey) * d];
  const scores = keys.map((key) => {
    let sum = 0;
    for (let i = 0; i < d; i++) sum += query[q + i] * key[kv + i];
    return sum / Math.sqrt(d);
  });
  const weights = softmax(scores);
  for (let j = 0; j < weights.length; j++) {
    for (let i = 0; i < d; i++) to[q + i] += weights[j] * values[j][kv + i];
  }
  return weights;
}

/** An empty text of a model: the keys and values of its tokens, layer by layer. */
export const emptyText = (model) => ({
  model,
  n: 0,
  layers: model.layers.map(() => ({ keys: [], values: [] })),
});

/** The logits of the next token for a row after some layer: the last norm, then the unembedding. */
export const logitsOf = ({ unembedding, norm, eps }, x) =>
  times(unembedding, rmsNorm(x, norm, eps));

/** The row of a token before the first layer. */
export const rowOf = ({ embeddings, dModel }, token) =>
  embeddings.slice(token * dModel, (token + 1) * dModel);

/** Adds the key and the value of a row to what a layer has kept; returns the row after its norm. */
export function keep({ layers, d, eps, frequencies }, l, { keys, values }, x, position) {
  const layer = layers[l];
  const normed = rmsNorm(x, layer.norm_1, eps);
  const key = times(layer.k, normed);
  normHeads(key, layer.norm_k, eps);
  turn(key, d, frequencies, position);
  keys.push(key);
  values.push(times(layer.v, normed));
  return normed;
}

/** What the heads of a layer pass on for a normed row, side by side, and their weights. */
export function attention(model, l, kept, normed, position) {
  const { layers, nHeads, d, eps, frequencies } = model;
  const query = times(layers[l].q, normed);
  normHeads(query, layers[l].norm_q, eps);
  turn(query, d, frequencies, position);
  const heads = new Float32Array(nHeads * d);
  const weights = Array.from({ length: nHeads }, (_, h) => attend(model, h, query, kept, heads));
  return { heads, weights };
}

/** The row after a layer, from the row before it and what its heads pass on; the network's part. */
export function finish({ layers, eps }, l, before, heads) {
  const layer = layers[l];
  const x = plus(before, times(layer.o, heads));
  const normed = rmsNorm(x, layer.norm_2, eps);
  const [gate, up] = [times(layer.gate, normed), times(layer.up, normed)];
  const hidden = gate.map((g, i) => (g / (1 + Math.exp(-g))) * up[i]);
  const network = times(layer.down, hidden);
  return { row: plus(x, network), network };
}

/**
 * Reads the next token of a text, which then keeps it: { logits, weights }, the logits of the token
 * after it, and [layer][head] its weights on the tokens so far.
 */
export function readToken(text, token) {
  const { model, n } = text;
  let x = rowOf(model, token);
  const weights = text.layers.map((kept, l) => {
    const normed = keep(model, l, kept, x, n);
    const found = attention(model, l, kept, normed, n);
    x = finish(model, l, x, found.heads).row;
    return found.weights;
  });
  text.n++;
  return { logits: logitsOf(model, x), weights };
}

/** Forgets all but the first n tokens of a text. */
export function cutText(text, n) {
  text.n = Math.min(n, text.n);
  for (const { keys, values } of text.layers) keys.length = values.length = text.n;
}

// ---------------------------------------------------------------------------------- choosing

/**
 * The probabilities from which a token is drawn: those of the logits at a temperature, of the topK
 * most probable tokens only (0 for all), and of them only as many as together have topP. At
 * temperature 0 the most probable token has all.
 */
export function choices(logits, { temperature, topK, topP }) {
  const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || a - b);
  const heated = logits.map((each) => (each - logits[order[0]]) / (temperature || 1));
  const all = softmax(heated);
  const kept = new Float64Array(logits.length);
  const most = temperature === 0 ? 1 : topK || order.length;
  let sum = 0;
  for (const token of order.slice(0, most)) {
    if (sum >= topP) break;
    sum += kept[token] = all[token];
  }
  return kept.map((each) => each / sum);
}

/** The token at which probabilities add up to more than `passed`, from 0 to 1. */
export function draw(probabilities, passed) {
  let [sum, last] = [0, 0];
  for (let token = 0; token < probabilities.length; token++) {
    if (!probabilities[token]) continue;
    sum += probabilities[token];
    last = token;
    if (sum > passed) break;
  }
  return last;
}
