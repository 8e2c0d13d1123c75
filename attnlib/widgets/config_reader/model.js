/**
 * What a configuration says: the parts of its layers, their parameters and the cache. The same
 * counts as in attnlib/models/sizes.py, which names the source.
 */

/** What the models of one `model_type` have in common. */
const FAMILIES = {
  llama: { before: true, biased: true },
  mistral: { before: true, windows: "all" },
  qwen3: { before: true, normsOfHeads: "each", biased: true, windows: "upper" },
  olmo2: { after: true, normsOfHeads: "all", biased: true },
  gemma3_text: {
    before: true,
    after: true,
    normsOfHeads: "each",
    biased: true,
    windows: 6,
    tied: true,
    scaled: true,
    activation: "hidden_activation",
    base: 1e6,
  },
  gpt_oss: { before: true, biased: true, sinks: true, windows: 2, experts: true, base: 150000 },
  deepseek_v3: { before: true, latent: true, experts: true },
  glm_moe_dsa: { before: true, latent: true, experts: true, indexed: true },
};
const MOST_LAYERS = 1000;
const TYPES = ["full_attention", "sliding_attention"]; // of layers

export const NAMES = Object.keys(FAMILIES);

/** The configuration in a text, or an error that says what is missing. */
export function parse(text) {
  let config;
  try {
    config = JSON.parse(text);
  } catch {
    throw new Error("This is not JSON. Paste a whole config.json, from { to }.");
  }
  if (typeof config !== "object" || config === null || Array.isArray(config))
    throw new Error("A configuration is an object, from { to }.");
  return config;
}

/** What a configuration says, or an error that names the field. */
export function describe(config) {
  const has = (name) => Object.hasOwn(config, name);
  const value = (name, otherwise) =>
    has(name) && config[name] !== null ? config[name] : otherwise;
  const size = (name, otherwise, least = 1) => {
    const found = value(name, otherwise);
    if (!Number.isSafeInteger(found) || found < least)
      throw new Error(`The field ${name} must be a whole number, ${least} or more.`);
    return found;
  };
  const flag = (name, otherwise = false) => {
    const found = value(name, otherwise);
    if (typeof found !== "boolean") throw new Error(`The field ${name} must be true or false.`);
    return found;
  };
  const type = value("model_type");
  if (!NAMES.includes(type))
    throw new Error(`The field model_type must be one of ${NAMES.join(", ")}.`);
  const family = FAMILIES[type];
  const layers = size("num_hidden_layers");
  if (layers > MOST_LAYERS)
    throw new Error(`The field num_hidden_layers must be at most ${MOST_LAYERS}.`);
  const width = size("hidden_size");
  const heads = size("num_attention_heads");
  const found = {
    type,
    family,
    layers,
    width,
    heads,
    vocabulary: size("vocab_size"),
    tied: flag("tie_word_embeddings", Boolean(family.tied)),
    activation: String(value(family.activation ?? "hidden_act", "silu")),
    base: value("rope_theta", family.base ?? 10000),
    stretch: value("rope_scaling"),
    scalar: family.scaled && size("query_pre_attn_scalar"),
  };
  const parts = family.latent ? latent(found, value, size) : grouped(found, size, flag);
  const network = family.latent
    ? sharedExperts(width, size)
    : family.experts
      ? experts(width, size)
      : dense(width, size, flag);
  return {
    ...found,
    ...parts,
    ...network,
    windows: windows(found, has, value, size, flag),
    norms: parts.norms + (Boolean(family.before) + Boolean(family.after)) * 2 * width,
  };
}

/** Attention with heads of keys that several heads of queries may share. */
function grouped({ family, width, heads }, size, flag) {
  const kvHeads = size("num_key_value_heads", heads);
  const d = size("head_dim", Math.max(Math.floor(width / heads), 1));
  const [q, k] = [heads * d, kvHeads * d];
  const biased = Boolean(family.biased) && flag("attention_bias");
  return {
    kvHeads,
    d,
    attention: 2 * width * (q + k) + (biased ? q + 2 * k + width : 0) + (family.sinks ? heads : 0),
    norms: { each: 2 * d, all: q + k }[family.normsOfHeads] ?? 0,
    cached: 2 * k,
  };
}

/** Latent attention: one short list for all heads, and some numbers that turn. */
function latent({ family, layers, width, heads }, value, size) {
  const [ofQuery, ofLatent] = [size("q_lora_rank"), size("kv_lora_rank")];
  const [plain, turned, dV] = [
    size("qk_nope_head_dim"),
    size("qk_rope_head_dim"),
    size("v_head_dim"),
  ];
  const index = family.indexed
    ? indexer(layers, width, ofQuery, value, size)
    : { parameters: 0, d: 0 };
  return {
    index,
    latent: ofLatent,
    turned,
    d: plain + turned,
    kvHeads: heads,
    attention:
      width * (ofQuery + ofLatent + turned) +
      ofQuery * heads * (plain + turned) +
      ofLatent * heads * (plain + dV) +
      heads * dV * width +
      index.parameters,
    norms: ofQuery + ofLatent,
    cached: ofLatent + turned + index.d,
  };
}

/** The cheap attention that chooses keys: its parameters, and what it keeps of a token. */
function indexer(layers, width, ofQuery, value, size) {
  const each = {
    index_topk_freq: 1,
    index_topk_pattern: "F".repeat(layers),
    indexer_types: Array(layers).fill("full"),
  };
  for (const [name, own] of Object.entries(each))
    if (JSON.stringify(value(name, own)) !== JSON.stringify(own))
      throw new Error(`The field ${name} must give each layer an indexer of its own.`);
  const [heads, d, chosen] = [size("index_n_heads"), size("index_head_dim"), size("index_topk")];
  const parameters = ofQuery * heads * d + width * (heads + d) + 2 * d;
  return { heads, d, chosen, parameters };
}

function dense(width, size, flag) {
  const hidden = size("intermediate_size");
  const biases = flag("mlp_bias") ? 2 * hidden + width : 0;
  return { hidden, feedForward: 3 * width * hidden + biases, unused: 0, first: 0 };
}

/** How many experts a layer has, by the field `name`, and how many of them a token uses. */
function chosen(name, size) {
  const [n, k] = [size(name), size("num_experts_per_tok")];
  if (k > n) throw new Error(`The field num_experts_per_tok must be at most ${name}, ${n}.`);
  return [n, k];
}

function experts(width, size) {
  const hidden = size("intermediate_size");
  const [n, k] = chosen("num_local_experts", size);
  const expert = 3 * width * hidden + 2 * hidden + width;
  return {
    hidden,
    experts: n,
    used: k,
    commons: 0,
    first: 0,
    feedForward: n * expert + width * n + n,
    unused: (n - k) * expert,
  };
}

function sharedExperts(width, size) {
  const hidden = size("moe_intermediate_size");
  const [n, k] = chosen("n_routed_experts", size);
  const commons = size("n_shared_experts");
  const expert = 3 * width * hidden;
  return {
    hidden,
    experts: n,
    used: k,
    commons,
    first: size("first_k_dense_replace", undefined, 0),
    ofFirst: 3 * width * size("intermediate_size"),
    feedForward: (n + commons) * expert + n * width,
    unused: (n - k) * expert,
  };
}

/** How many tokens each layer may look back at, or null for all. */
function windows({ family, layers }, has, value, size, flag) {
  const kind = family.windows;
  const each = Array.from({ length: layers }, (_, i) => i);
  if (!kind) return each.map(() => null);
  if (kind === "all") {
    if (!has("sliding_window"))
      throw new Error("The field sliding_window must be there, null for no window.");
    const window = value("sliding_window") === undefined ? null : size("sliding_window");
    return each.map(() => window);
  }
  let isFull; // by its number, from 0, unless layer_types says it
  if (kind === "upper") {
    const first = flag("use_sliding_window") ? size("max_window_layers", undefined, 0) : layers;
    isFull = (i) => i < first;
  } else {
    const nth = kind === 6 ? size("sliding_window_pattern", kind) : kind;
    isFull = (i) => (i + 1) % nth === 0;
  }
  const own = each.map((i) => (isFull(i) ? "full_attention" : "sliding_attention"));
  const types = value("layer_types", own);
  if (
    !Array.isArray(types) ||
    types.length !== layers ||
    types.some((type) => !TYPES.includes(type))
  )
    throw new Error(
      `The field layer_types must be ${TYPES.join(" or ")} for each of the ${layers} layers.`,
    );
  if (!types.includes("sliding_attention")) return each.map(() => null);
  if (kind === "upper" && !flag("use_sliding_window"))
    throw new Error("The field layer_types must have no sliding_attention: no window is used.");
  const window = size("sliding_window");
  return types.map((type) => (type === "sliding_attention" ? window : null));
}

/** The parameters by part, all of them, those that a token uses, and the bytes of the cache. */
export function count(facts, tokens) {
  const { layers, width, vocabulary, tied, first, windows } = facts;
  const table = vocabulary * width;
  const tables = tied ? table : 2 * table;
  const attention = layers * facts.attention;
  const ofFirst = Math.min(first, layers);
  const feedForward =
    (layers - ofFirst) * facts.feedForward + (ofFirst ? ofFirst * facts.ofFirst : 0);
  const total = tables + attention + feedForward + layers * facts.norms + width;
  const kept = windows.reduce((sum, window) => sum + Math.min(tokens, window ?? tokens), 0);
  return {
    tables,
    attention,
    feedForward,
    total,
    active: total - (tied ? 0 : table) - (layers - ofFirst) * facts.unused,
    cache: 2 * kept * facts.cached,
  };
}
