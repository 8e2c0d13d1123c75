/**
 * ThenAndNow: one layer, of which each part is that of 2017 or that of today.
 */
import { buttons, element, html, line, sheet, text } from "../kit/markup.js";

export const layout = "abh-instrument";
export const label = () => "The layer of 2017 and the layer of today";

/** A part: its name, the change in words, what hurt, what was done about it, and who did it. */
const PARTS = {
  norm_first: [
    "Norm first",
    "The norm came after the sum, so it rescaled the residual stream itself. Deep models were " +
      "hard to train without a warm-up.",
    "The norm moves to the beginning of each branch. The stream itself is then never normalized.",
    "GPT-2, 2019",
  ],
  rms: [
    "RMSNorm",
    "Layer norm subtracts a mean and adds a shift, and both turned out to be unnecessary.",
    "RMSNorm only divides by the root mean square.",
    "Zhang and Sennrich, 2019",
  ],
  rotary: [
    "Rotary",
    "A position that is added to a token gets mixed with its meaning in every score.",
    "Queries and keys are rotated by their positions, so a score depends on their distance.",
    "Su et al., 2021",
  ],
  grouped: [
    "Grouped keys",
    "For every token that is written, the keys and values of all heads have to be fetched.",
    "Four heads of queries share one head of keys and values.",
    "Ainslie et al., 2023",
  ],
  swiglu: [
    "SwiGLU",
    "Each hidden unit is switched on or off by its own sign.",
    "One product becomes a gate that decides how much of another product passes.",
    "Shazeer, 2020",
  ],
  qk_norm: [
    "QK-norm",
    "In large models the scores grew until one key got all the weight.",
    "Queries and keys are normed before they are compared.",
    "Dehghani et al., 2023",
  ],
  window: [
    "Window",
    "The cache grows with every token.",
    "A token attends to itself and the 4,095 tokens before it. The rest arrives through the " +
      "layers below.",
    "Mistral 7B, 2023",
  ],
};
const NAMES = Object.keys(PARTS);
const LLAMA = NAMES.slice(0, 5);
const TOKENS = 32768;
const SIZES = {
  layers: 32,
  d_model: 4096,
  heads: 32,
  kv_heads: 8,
  d_ff: 16384,
  d_gated: 14336,
  window: 4096,
  bytes: 2,
};
// To be copied.
const SMALL = { n: 7, d_model: 64, heads: 8, kv_heads: 2, d_ff: 256, d_gated: 224, window: 4 };

/** How much of each change has come: from 0 to 1, as it glides. */
export const pose = (s) => NAMES.map((name) => Number(s[name]));

/** The numbers that Python gives. */
export function compute(s) {
  const { d_model: d, heads, d_ff } = SIZES;
  const d_k = d / heads;
  const kv = s.grouped ? SIZES.kv_heads : heads;
  const network = s.swiglu ? 3 * d * SIZES.d_gated : 2 * d * d_ff + d_ff + d;
  const kept = s.window ? Math.min(TOKENS, SIZES.window) : TOKENS;
  return {
    parameters:
      2 * d * d + 2 * d * kv * d_k + network + (s.rms ? 2 : 4) * d + (s.qk_norm ? 2 * d_k : 0),
    cache: 2 * SIZES.layers * kept * kv * d_k * SIZES.bytes,
  };
}

/** The layer as one expression: lines of [text, the part that it belongs to]. */
export function expression(s, sizes = SIZES) {
  const { heads, kv_heads, d_model, window } = sizes;
  const norm = (i) =>
    s.rms ? `RMSNorm(gamma_${i}, eps=1e-5)` : `LayerNorm(gamma_${i}, beta_${i})`;
  const inner = [
    [[`w_q, w_k, w_v, w_o, n_heads=${heads}`]],
    s.grouped && [[`n_kv_heads=${kv_heads}`, "grouped"]],
    s.qk_norm && [["norm_q=RMSNorm(gamma_q, eps=1e-5)", "qk_norm"]],
    s.qk_norm && [["norm_k=RMSNorm(gamma_k, eps=1e-5)", "qk_norm"]],
    s.rotary && [
      ["turn=partial(rotary, base=5e5,", "rotary"],
      ['             layout="halves")', "rotary"],
    ],
  ].filter(Boolean);
  const written = inner.flatMap((lines, i) =>
    lines.map(([said, part], k) => {
      const end = k < lines.length - 1 ? "" : i < inner.length - 1 ? "," : "),";
      return [`    ${said}${end}`, part];
    }),
  );
  const words = s.rotary ? "x" : `x + sinusoidal_positions(n, ${d_model})`;
  const seen = s.window ? `window_mask(n, ${window - 1}, causal=True)` : "causal_mask(n)";
  return [
    ["EncoderLayer("],
    ["  MultiHeadAttention("],
    ...written,
    [
      s.swiglu ? "  SwiGLU(w_gate, w_up, w_down)," : "  FeedForward(w_1, b_1, w_2, b_2),",
      s.swiglu && "swiglu",
    ],
    [`  ${norm(1)},`, s.rms && "rms"],
    [`  ${norm(2)},`, s.rms && "rms"],
    ...(s.norm_first ? [["  norm_first=True,", "norm_first"]] : []),
    [`)(${words},`, s.rotary && "rotary"],
    [`  ${seen})`, s.window && "window"],
  ];
}

/** What a layer with these changes is. */
export function verdict(s) {
  const changed = NAMES.filter((name) => s[name]);
  if (!changed.length) return "The layer of 2017.";
  if (LLAMA.every((name) => s[name])) {
    if (changed.length === 5) return "A layer of Llama 3.";
    if (changed.length === 6) return s.window ? "Built like Mistral 7B." : "Built like Qwen3.";
    return "All seven are changed.";
  }
  return `Changed: ${changed.length} of 7.`;
}

// ------------------------------------------------------------------------------------ The drawing

const [PATH, LEFT, MIDDLE, RIGHT] = [46, 96, 224, 352]; // the residual stream; the branches
const ATTENTION = { y: 86, height: 156, from: 62, to: 256 };
const NETWORK = { y: 334, height: 66, from: 310, to: 414 };
const between = (a, b, part) => a + (b - a) * part;
const signs = (all) =>
  all.map((d) => d.map((x) => (typeof x === "number" ? x.toFixed(1) : x)).join(" ")).join("");

/** How a thing is outlined: quietly while it is of 2017, and in ink once it has changed. */
const outline = (part, more = {}) => ({
  fill: "var(--page)",
  stroke: part > 0.5 ? "var(--ink)" : "var(--line)",
  "stroke-width": part > 0.5 ? 2 : 1,
  ...more,
});

function box(x, y, width, height, part, more = {}) {
  return element("rect", { x, y, width, height, rx: 5, ...outline(part), ...more });
}

/** A box with a word in it. */
function named(word, x, y, width, part, more = {}) {
  return element(
    "g",
    more,
    box(x - width / 2, y - 12, width, 24, part),
    text(word, x, y + 4.5, "ink", { "text-anchor": "middle" }),
  );
}

/** A norm: on the residual stream after the sum, or at the head of its branch. */
function norm(after, before, { norm_first, rms }, key) {
  const word = rms > 0.5 ? "RMSNorm" : "LayerNorm";
  const changed = Math.max(norm_first, rms);
  const [x, y] = [between(PATH, MIDDLE, norm_first), between(after, before, norm_first)];
  return named(word, x, y, 86, changed, { "data-part": key });
}

/** From the residual stream into a sublayer and back to the sum. */
function branch({ y, height, from, to }) {
  return [
    line(`M${PATH} ${from}H${MIDDLE}V${y}`),
    line(`M${MIDDLE} ${y + height}V${to}H${PATH + 9}`),
    element("circle", { cx: PATH, cy: to, r: 9, fill: "var(--page)", stroke: "var(--line)" }),
    line(`M${PATH - 5} ${to}h10M${PATH} ${to - 5}v10`, { stroke: "var(--ink)" }),
  ];
}

/** Who may look at whom: a triangle, or a band of it. */
function seen(window) {
  const [n, side, left, top] = [9, 6.5, 286, 98];
  const cells = (wanted, d) =>
    Array.from({ length: n * n }, (_, k) => [Math.floor(k / n), k % n])
      .filter(([i, j]) => wanted(i, j))
      .map(([i, j]) => d(left + j * side, top + i * side))
      .join("");
  const square = (x, y) => `M${x.toFixed(1)} ${y.toFixed(1)}h${side}v${side}h-${side}Z`;
  const stroke = (x, y) => `M${x.toFixed(1)} ${(y + side).toFixed(1)}l${side} -${side}`;
  const far = (i, j) => j <= i && i - j > 3;
  return [
    element("path", {
      d: cells((i, j) => j <= i && !far(i, j), square),
      fill: "var(--weight)",
      opacity: 0.5,
    }),
    element("path", { d: cells(far, square), fill: "var(--weight)", opacity: 0.5 * (1 - window) }),
    line(
      cells((i, j) => j > i, stroke),
      { "stroke-width": 0.7 },
    ),
    line(cells(far, stroke), { "stroke-width": 0.7, opacity: window }),
    element("rect", {
      x: left,
      y: top,
      width: n * side,
      height: n * side,
      ...outline(window),
      fill: "none",
    }),
  ];
}

/** Eight heads: each its own key and value, or four that share. */
function heads({ grouped }) {
  const at = Array.from({ length: 8 }, (_, i) => 128 + 19 * i);
  const shared = at.map((x, i) => between(x, 128 + 19 * (4 * Math.floor(i / 4) + 1.5), grouped));
  const square = (role, y) => (x) =>
    element("rect", { x: x - 6, y, width: 12, height: 12, fill: `var(--${role})` });
  return [
    line(
      signs(at.map((x, i) => ["M", x, 144, "L", shared[i], 184])),
      outline(grouped, { fill: "none" }),
    ),
    at.map((x) => element("circle", { cx: x, cy: 138, r: 6.5, fill: "var(--query)" })),
    shared.map(square("key", 184)),
    shared.map(square("value", 202)),
    text("Q", 104, 142.5, "query"),
    text("K", 104, 195, "key"),
    text("V", 104, 213, "value"),
  ];
}

/** The network: in, a bend, out; or in twice, one of them a gate. */
function network({ swiglu }) {
  const bend = Array.from({ length: 13 }, (_, i) => (i - 6) / 1.5).map((x) => [
    x,
    between(Math.max(0, x), x / (1 + Math.exp(-x)), swiglu),
  ]);
  const y = between(367, 352, swiglu);
  const curve = bend.map(([x, h], i) => [i ? "L" : "M", 204 + 4 * x, y + 5 - 4 * h]);
  const word = (old, now) => (swiglu > 0.5 ? now : old);
  return [
    line(`M174 ${y}H${between(272, 244, swiglu)}V367H272`),
    line("M174 383H244V367", { opacity: swiglu }),
    named(word("W₁", "gate"), 142, y, 66, swiglu),
    named("up", 142, 383, 66, swiglu, { opacity: swiglu }),
    element("rect", {
      x: 185,
      y: y - 13,
      width: 38,
      height: 26,
      rx: 5,
      fill: "var(--page)",
      stroke: "var(--line)",
    }),
    line(signs(curve), { stroke: "var(--ink)", "stroke-width": 1.5 }),
    element(
      "g",
      { opacity: swiglu },
      element("circle", { cx: 244, cy: 367, r: 8, ...outline(1) }),
      line("M241 364l6 6m0 -6l-6 6", { stroke: "var(--ink)" }),
    ),
    named(word("W₂", "down"), 304, 367, 66, swiglu),
  ];
}

/** The places of the parts, for the frame around the one that is explained. */
function places(part, { norm_first }) {
  const [x, one, two] = norm_first > 0.5 ? [MIDDLE, 62, 310] : [PATH, 284, 440];
  const norms = [one, two].map((y) => [x - 47, y - 16, 94, 32]);
  return {
    norm_first: norms,
    rms: norms,
    rotary: [
      [PATH - 14, 22, 150, 28],
      [272, 170, 78, 24],
    ],
    grouped: [[116, 170, 154, 52]],
    swiglu: [[LEFT, NETWORK.y, RIGHT - LEFT, NETWORK.height]],
    qk_norm: [[272, 198, 78, 24]],
    window: [[280, 92, 70, 70]],
  }[part];
}

function drawing(s) {
  const shares = s.moving ?? pose(s);
  const now = Object.fromEntries(NAMES.map((name, i) => [name, shares[i]]));
  const pill = (word, y, part) => named(word, 311, y, 70, part, { opacity: Math.max(part, 0.001) });
  const frame = ([x, y, width, height]) =>
    element("rect", { x, y, width, height, rx: 8, fill: "var(--ink)", opacity: 0.1 });
  return sheet(
    "sheet",
    360,
    474,
    `A layer, from above: the residual stream, with attention and the feed-forward network ` +
      `on two branches that add to it. ${verdict(s)} The expression holds its parts.`,
    line(`M${PATH} 14V468`, { stroke: "var(--ink)", "stroke-width": 1.5 }),
    line(`M${PATH - 5} 461L${PATH} 469L${PATH + 5} 461`, {
      stroke: "var(--ink)",
      "stroke-width": 1.5,
    }),
    text("x, one token", PATH + 12, 17, "ink"),
    element(
      "g",
      { opacity: 1 - now.rotary },
      element("circle", { cx: PATH, cy: 36, r: 9, fill: "var(--page)", stroke: "var(--line)" }),
      line(`M${PATH - 5} 36h10M${PATH} 31v10`, { stroke: "var(--ink)" }),
      text("its position, as sines", PATH + 16, 40.5, "ink"),
    ),
    branch(ATTENTION),
    branch(NETWORK),
    box(LEFT, ATTENTION.y, RIGHT - LEFT, ATTENTION.height, 0),
    box(LEFT, NETWORK.y, RIGHT - LEFT, NETWORK.height, 0),
    places(s.part, now).map(frame),
    text("Attention", 104, 106, "ink"),
    text("8 of 32 heads", 104, 235),
    heads(now),
    seen(now.window),
    pill("rotated", 182, now.rotary),
    pill("normed", 210, now.qk_norm),
    network(now),
    norm(284, 62, now, "norm_1"),
    norm(440, 310, now, "norm_2"),
  );
}

// ----------------------------------------------------------------------------------- The sections

const whole = (x) => String(x).replace(/\B(?=(\d{3})+$)/g, ",");

export function picture(s) {
  const { parameters, cache } = compute(s);
  const [name, hurt, change, who] = PARTS[s.part];
  const toggle = (key) => html`<label class="switch${s.part === key ? " shown" : ""}">${element(
    "input",
    {
      type: "checkbox",
      name: key,
      checked: s[key],
    },
  )}
<span>${PARTS[key][0]}</span></label>`;
  const lines = expression(s);
  const gap = Array.from({ length: 14 - lines.length }, () => "\n");
  const next = NAMES.find((key) => !s[key]);
  return [
    html`<div class="controls">
<p class="main"><button type="button"
name="next">${next ? `Change next: ${PARTS[next][0]}` : "Back to 2017"}</button></p>
${NAMES.map(toggle)}</div>`,
    html`<div class="why" data-part="why"><p data-key="${name} hurt"><b>${name}.</b> ${hurt}</p>
<p data-key="${name} change">${change} <span class="who">${who}</span></p></div>`,
    html`<div class="right"><div class="picture">${drawing(s)}</div>
<div class="readout">
<p><span class="big" data-part="parameters">${(parameters / 1e6).toFixed(1)} M</span>
<span>parameters in this layer</span></p>
<p><span class="big" data-part="cache">${(cache / 1e9).toFixed(1)} GB</span>
<span>cache of 32 such layers after ${whole(TOKENS)} tokens</span></p>
<p class="verdict" data-part="verdict" role="status">${verdict(s)}</p>
${buttons()}</div></div>`,
    html`<pre class="expression" data-part="expression" role="img"
aria-label="${lines.map(([said]) => said.trim()).join(" ")}">${lines.map(([said, part]) =>
      element(
        "span",
        { class: part ? (part === s.part ? "new shown" : "new") : false, "data-key": said },
        `${said}\n`,
      ),
    )}${gap}</pre>`,
    html`<p class="cell">All sizes are those of Llama 3 8B, except that the feed-forward network of
2017 has four times as many hidden units as a token has numbers, and the window is that of Mistral
7B. The sines are added once, before the first layer.</p>`,
  ];
}

/** The same layer, small and with random weights. */
export function code(s) {
  const { n, d_model: d, heads: h, kv_heads, d_ff, d_gated } = SMALL;
  const d_kv = ((s.grouped ? kv_heads : h) * d) / h;
  const random = (shapes) =>
    Object.entries(shapes).map(([name, shape]) => `${name} = rng.normal(size=${shape}) / 8`);
  const names = "EncoderLayer FeedForward LayerNorm MultiHeadAttention RMSNorm SwiGLU".split(" ");
  names.push("causal_mask", "rotary", "sinusoidal_positions", "window_mask");
  return [
    "from functools import partial",
    "",
    "import numpy as np",
    ...names.map((name) => `from attnlib import ${name}`),
    "",
    "rng = np.random.default_rng(0)",
    `n = ${n}`,
    ...random({
      x: `(n, ${d})`,
      w_q: `(${d}, ${d})`,
      w_k: `(${d}, ${d_kv})`,
      w_v: `(${d}, ${d_kv})`,
      w_o: `(${d}, ${d})`,
      ...(s.swiglu
        ? { w_gate: `(${d}, ${d_gated})`, w_up: `(${d}, ${d_gated})`, w_down: `(${d_gated}, ${d})` }
        : { w_1: `(${d}, ${d_ff})`, b_1: `${d_ff}`, w_2: `(${d_ff}, ${d})`, b_2: `${d}` }),
    }),
    `gamma_1, beta_1, gamma_2, beta_2 = np.ones(${d}), np.zeros(${d}), np.ones(${d}), ` +
      `np.zeros(${d})`,
    `gamma_q, gamma_k = np.ones(${d / h}), np.ones(${d / h})`,
    ...expression(s, SMALL).map(([said], i) => (i ? said : `output, weights = ${said}`)),
    "print(output.shape, weights.shape)",
  ];
}

export function live(view) {
  for (const name of NAMES) {
    view.on(name, "change", (event) => view.glide({ [name]: event.target.checked, part: name }));
  }
  view.on("next", "click", () => {
    const next = NAMES.find((name) => !view.state()[name]);
    if (next) view.glide({ [next]: true, part: next });
    else view.glide({ ...Object.fromEntries(NAMES.map((name) => [name, false])), part: NAMES[0] });
  });
}
