/**
 * LayerExplorer: seven tokens through a stack of layers, with parts of the layer switched off.
 */
import { buttons, element, html, line, select, sheet, slider, table, text } from "../kit/markup.js";
import { dotProducts, multiply, softmax, wordVector } from "../kit/numbers.js";

export const layout = "abh-instrument abh-beside";

/** How many layers are shown while they are played, one after the other; null when they are not. */
export const pageState = { played: null };

const TOKENS = ["A", "cat", "sat", "on", "the", "warm", "mat"];
const [D_MODEL, N_HEADS, D_FF, MAX_DEPTH] = [16, 4, 64, 24];
const NORMS = { post: "post", pre: "pre", none: "none" };
const EPS = 1e-5; // of the layer norm
const SAME = 1e-3; // below this distance the tokens count as one vector
const NOISE = 1e-12; // what is left below this distance is rounding
const FULL = [true, "post", true]; // the block that the others are compared with

/** The drawing, in units of a 360 x 352 sheet. */
const LEFT = 52;
const GRID = { top: 24, width: 18.5, height: 18 };
const PLOT = { wide: 296, floor: 304, height: 92, low: -8 };
const TICKS = ["≤10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "1"];
const BOLD = { stroke: "var(--ink)", "stroke-width": 2.5 };
const DASHED = { stroke: "var(--muted)", "stroke-width": 1.5, "stroke-dasharray": "5 3" };

const VARIANCES = {
  w_q: [D_MODEL, D_MODEL, 1 / (2 * D_MODEL)],
  w_k: [D_MODEL, D_MODEL, 1 / (2 * D_MODEL)],
  w_v: [D_MODEL, D_MODEL, 1 / (2 * D_MODEL)],
  w_o: [D_MODEL, D_MODEL, 1 / (3 * D_MODEL)],
  w_1: [D_MODEL, D_FF, 1 / (3 * D_MODEL)],
  w_2: [D_FF, D_MODEL, 1 / (3 * D_FF)],
};

/** Keeps the last result of `make` for each of a few keys. */
function kept(make, most) {
  const known = new Map();
  return (...key) => {
    const name = key.join();
    if (!known.has(name)) {
      if (known.size >= most) known.delete(known.keys().next().value);
      known.set(name, make(...key));
    }
    return known.get(name);
  };
}

/** The weights of each of the 24 layers, by name. */
const layersOf = kept(
  (seed) =>
    Array.from({ length: MAX_DEPTH }, (_, layer) =>
      Object.fromEntries(
        Object.entries(VARIANCES).map(([name, [rows, columns, variance]]) => {
          const numbers = wordVector(`${seed} ${layer + 1}`, name, rows * columns);
          const row = (i) =>
            Array.from(
              numbers.subarray(i * columns, (i + 1) * columns),
              (x) => Math.sqrt(variance) * x,
            );
          return [name, Array.from({ length: rows }, (_, i) => row(i))];
        }),
      ),
    ),
  4,
);

/** Each row with mean 0 and variance 1. Eq. (1) of "The encoder layer". */
function layerNorm(x) {
  return x.map((row) => {
    const mean = row.reduce((sum, entry) => sum + entry, 0) / row.length;
    const variance = row.reduce((sum, entry) => sum + (entry - mean) ** 2, 0) / row.length;
    return row.map((entry) => (entry - mean) / Math.sqrt(variance + EPS));
  });
}

/** Multi-head self-attention. Eqs. (1) and (2) of "Many heads". */
function attend(x, { w_q, w_k, w_v, w_o }) {
  const [queries, keys, values] = [w_q, w_k, w_v].map((w) => multiply(x, w));
  const d = D_MODEL / N_HEADS;
  const heads = Array.from({ length: N_HEADS }, (_, h) => {
    const columnsOf = (matrix) => matrix.map((row) => row.slice(h * d, (h + 1) * d));
    const scores = dotProducts(columnsOf(queries), columnsOf(keys), d);
    return multiply(
      scores.map((row) => softmax(row.map((s) => s / Math.sqrt(d)))),
      columnsOf(values),
    );
  });
  return multiply(
    x.map((_, i) => heads.flatMap((head) => head[i])),
    w_o,
  );
}

/** max(0, x W_1) W_2. Eq. (2) of "The encoder layer". */
const feedForward = (x, { w_1, w_2 }) =>
  multiply(
    multiply(x, w_1).map((row) => row.map((entry) => Math.max(0, entry))),
    w_2,
  );

const length = (row) => Math.sqrt(row.reduce((sum, entry) => sum + entry * entry, 0));

/** How far the rows of x are from being the same vector, between 0 and 1. */
function relativeDistance(x) {
  const mean = x[0].map((_, k) => x.reduce((sum, row) => sum + row[k], 0) / x.length);
  return length(x.flatMap((row) => row.map((entry, k) => entry - mean[k]))) / length(x.flat());
}

const meanLength = (x) => x.reduce((sum, row) => sum + length(row), 0) / x.length;

/** The token vectors before and after each of 24 layers, and both curves. */
const stackOf = kept((residual, norm, withFeedForward, seed) => {
  const before = (x) => (norm === "pre" ? layerNorm(x) : x);
  const joined = (x, output) => {
    const y = residual ? x.map((row, i) => row.map((entry, k) => entry + output[i][k])) : output;
    return norm === "post" ? layerNorm(y) : y;
  };
  let x = TOKENS.map((token) => Array.from(wordVector(token, "token", D_MODEL)));
  const states = [x];
  for (const layer of layersOf(seed)) {
    x = joined(x, attend(before(x), layer));
    if (withFeedForward) x = joined(x, feedForward(before(x), layer));
    states.push(x);
  }
  return { states, distance: states.map(relativeDistance), norm: states.map(meanLength) };
}, 32);

/** Everything that follows from the traits; the numbers that attnlib gives in Python. */
export function compute({ residual, norm, feed_forward, depth, seed }) {
  const stack = stackOf(residual, norm, feed_forward, seed);
  const full = stackOf(...FULL, seed);
  const states = stack.states.slice(0, depth + 1);
  return {
    states,
    curves: {
      distance: stack.distance,
      norm: stack.norm,
      distance_full: full.distance,
      norm_full: full.norm,
    },
  };
}

/** Two decimals, and never a negative zero. */
const fixed = (x) => x.toFixed(2).replace("-0.00", "0.00");
const power = (x) => x.toExponential(0).replace("+", "");

/** A distance in few signs: 0.180, or 7e-5, or that only rounding is left. */
function brief(distance) {
  if (distance < NOISE) return "≈ 0";
  return distance >= 0.001 ? distance.toFixed(3) : power(distance);
}

/** A number of any size in few signs: 4.00, or 3e-9. */
const size = (x) => (x === 0 || (Math.abs(x) >= 0.01 && Math.abs(x) < 1000) ? fixed(x) : power(x));

const layers = (depth) => `${depth} layer${depth > 1 ? "s" : ""}`;

/**
 * Whether the tokens have become one vector: of this depth alone, since from which on it is so is
 * for the reader to find.
 */
const verdict = ({ distance }, depth) =>
  distance[depth] < SAME
    ? `After ${layers(depth)} all words are alike: own share below 0.001.`
    : `${depth ? `After ${layers(depth)}` : "Before the first layer"} the words differ.`;

/**
 * A matrix as squares whose area is the size of each entry: filled above 0, hollow below; its rows
 * are tokens.
 */
function squares(matrix) {
  const { top, width, height } = GRID;
  const most = 0.9 * Math.min(width, height);
  let [above, below] = ["", ""];
  matrix.forEach((row, i) =>
    row.forEach((x, j) => {
      const side = most * Math.sqrt(Math.abs(x)) - (x < 0); // the outline adds to a hollow one
      if (side <= 0) return;
      const [left, upper] = [
        LEFT + (j + 0.5) * width - side / 2,
        top + (i + 0.5) * height - side / 2,
      ];
      const s = side.toFixed(1);
      const square = `M${left.toFixed(1)} ${upper.toFixed(1)}h${s}v${s}h-${s}Z`;
      if (x < 0) below += square;
      else above += square;
    }),
  );
  return [
    TOKENS.map((token, i) =>
      text(token, LEFT - 7, top + (i + 0.5) * height + 4, "muted", { "text-anchor": "end" }),
    ),
    element("path", { d: above, fill: "var(--ink)", "data-part": "vectors_above" }),
    line(below, { stroke: "var(--ink)", "data-part": "vectors_below" }),
  ];
}

/**
 * The own share of this stack and of the full block against depth, on a scale of powers of ten
 * that stops at its lower end.
 */
function plot(depth, { distance, distance_full }, reached) {
  const { wide, floor, height, low } = PLOT;
  const x = (i) => LEFT + (wide * i) / MAX_DEPTH;
  const y = (value) => floor - height * (1 - Math.max(Math.log10(value), low) / low);
  const path = (values) =>
    `M${values.map((value, i) => `${x(i).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
  const level = (i) => floor - (height * i) / (TICKS.length - 1);
  return [
    text("Own share, layer by layer", 2, 198, "ink"),
    line(`M${LEFT} ${floor - height}V${floor}h${wide}`),
    TICKS.map((tick, i) => text(tick, LEFT - 5, level(i) + 4, "muted", { "text-anchor": "end" })),
    [0, 6, 12, 18, 24].map((i) => text(i, x(i), floor + 16, "muted", { "text-anchor": "middle" })),
    line(path(distance_full), { ...DASHED, "data-part": "distance_full" }),
    line(path(distance.slice(0, reached + 1)), { ...BOLD, "data-part": "distance_line" }),
    line(`M${x(depth).toFixed(1)} ${floor - height}V${floor}`, {
      stroke: "var(--muted)",
      "stroke-width": 1,
    }),
    element("circle", { cx: x(depth), cy: y(distance[depth]), r: 4, fill: "var(--ink)" }),
  ];
}

function drawing({ depth, played }, { states, curves }) {
  const last = states[depth];
  const largest = Math.max(...last.flat().map(Math.abs));
  return sheet(
    "sheet",
    360,
    352,
    `Token vectors, and their own share against depth. ${verdict(curves, depth)} ` +
      `The tables below hold the numbers.`,
    text(`${TOKENS.length} words × ${D_MODEL} numbers, after ${layers(depth)}`, 2, 14, "ink"),
    text(`filled > 0, hollow < 0; largest ${size(largest)}`, LEFT, 167, "muted", {
      "data-part": "scale",
    }),
    squares(last.map((row) => row.map((x) => x / largest))),
    plot(depth, curves, played ?? MAX_DEPTH),
    line("M0 339h22", BOLD),
    text("as set", 28, 343, "ink"),
    line("M84 339h22", DASHED),
    text("residual, post-norm, feed-forward", 112, 343, "ink"),
  );
}

export function picture(state) {
  const s = { ...state, depth: state.played ?? state.depth };
  const now = compute(s);
  const { curves } = now;
  const check = (name) => element("input", { type: "checkbox", name, checked: s[name] });
  const renew = html`<button type="button" name="renew">New weights</button>\n`;
  return [
    html`<div class="controls">
<label class="main switch">${check("residual")}
<span>Residual: each sublayer adds to what came in</span></label>
<button type="button" name="play" class="wide">${
      s.played === null ? "▶ Play the layers" : "❚❚ Stop"
    }</button>
<label class="wide"><span>Layers <b class="number">${s.depth}</b></span>
${slider("depth", s, { min: Math.min(s.depth, 1), value: s.depth })}</label>
<details class="wide"><summary>More switches</summary><div class="more">
<label><span>Layer norm</span>
${select("norm", NORMS, s.norm)}</label>
<label class="switch">${check("feed_forward")}
<span>Feed-forward</span></label>
${renew}</div></details>
</div>`,
    html`<div class="readout">
<p><span class="big" data-part="distance">${brief(curves.distance[s.depth])}</span>
<span>own share: how different the words are, from 0 (all the same) to 1</span></p>
<p><span class="big" data-part="norm_value">${size(curves.norm[s.depth])}</span>
<span>mean length of a word’s vector</span></p>
<p class="verdict">${verdict(curves, s.depth)}</p>
${buttons()}</div>`,
    html`<div class="picture">${drawing(s, now)}</div>`,
    html`<p class="cell">Random weights, draw ${s.seed + 1}, as small as those
PyTorch starts with. ${N_HEADS} heads, d<sub>model</sub> = ${D_MODEL},
d<sub>ff</sub> = ${D_FF}.</p>`,
    () => tables(s, now),
  ];
}

/** The picture in numbers. */
function tables({ depth }, { states, curves }) {
  const named = (rows, cell) => rows.map((row, i) => [TOKENS[i], ...row.map(cell)]);
  const { distance, norm, distance_full, norm_full } = curves;
  return html`<div class="visually-hidden">
${table(
  "Token vectors after the last layer",
  ["", ...states[0][0].map((_, i) => `number ${i + 1}`)],
  named(states[depth], size),
)}
${table(
  "Layer by layer",
  ["", "own share", "mean length", "own share, all parts", "mean length, all parts"],
  distance.map((_, i) => [
    i ? `after layer ${i}` : "at the start",
    brief(distance[i]),
    size(norm[i]),
    brief(distance_full[i]),
    size(norm_full[i]),
  ]),
)}</div>`;
}

/** Runnable NumPy for what is on the screen: other switches may be put in. */
export function code({ residual, norm, feed_forward, depth, seed }) {
  const bool = (x) => (x ? "True" : "False");
  return [
    "import numpy as np",
    "",
    `residual = ${bool(residual)}`,
    `norm = "${norm}"  # "post", "pre" or "none"`,
    `feed_forward = ${bool(feed_forward)}`,
    `depth = ${depth}`,
    `seed = ${seed}`,
    `n_heads, d_model, d_ff = ${N_HEADS}, ${D_MODEL}, ${D_FF}`,
    "",
    "def numbers(name, *shape):",
    "    # mean 0 and variance 1, always the same for the same name",
    "    start = 0x811C9DC5",
    "    for letter in name.encode():",
    "        start = (start ^ letter) * 0x01000193 % 2**32",
    "    count = np.arange(np.prod(shape), dtype=np.uint32)",
    "    bits = count * np.uint32(0x9E3779B9) + np.uint32(start)",
    "    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):",
    "        bits = (bits ^ (bits >> shift)) * np.uint32(factor)",
    "    return np.sqrt(12) * (((bits ^ (bits >> 16)) + 0.5) / 2**32 - 0.5).reshape(shape)",
    "",
    "def layer_norm(x):",
    "    centered = x - x.mean(-1, keepdims=True)",
    "    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)",
    "",
    "def attend(x, layer):",
    "    def weight(name):",
    '        return numbers(f"{name}:{seed} {layer}", d_model, d_model)',
    "    def heads(name):  # (n_heads, n, d_model / n_heads)",
    "        projected = x @ weight(name) / np.sqrt(2 * d_model)",
    "        return projected.reshape(len(x), n_heads, -1).swapaxes(0, 1)",
    '    queries, keys, values = heads("w_q"), heads("w_k"), heads("w_v")',
    "    scores = queries @ keys.mT / np.sqrt(queries.shape[-1])",
    "    exponentials = np.exp(scores - scores.max(-1, keepdims=True))",
    "    output = exponentials / exponentials.sum(-1, keepdims=True) @ values",
    '    return output.swapaxes(0, 1).reshape(x.shape) @ weight("w_o") / np.sqrt(3 * d_model)',
    "",
    "def think(x, layer):  # the feed-forward network",
    '    hidden = x @ numbers(f"w_1:{seed} {layer}", d_model, d_ff) / np.sqrt(3 * d_model)',
    '    w_2 = numbers(f"w_2:{seed} {layer}", d_ff, d_model) / np.sqrt(3 * d_ff)',
    "    return np.maximum(hidden, 0) @ w_2",
    "",
    `tokens = ${JSON.stringify(TOKENS)}`,
    'x = np.stack([numbers(f"token:{token}", d_model) for token in tokens])',
    "states = [x]",
    "for layer in range(1, depth + 1):",
    "    for sublayer in [attend, think] if feed_forward else [attend]:",
    '        output = sublayer(layer_norm(x) if norm == "pre" else x, layer)',
    "        x = x + output if residual else output",
    '        x = layer_norm(x) if norm == "post" else x',
    "    states.append(x)",
    "states = np.array(states)  # (depth + 1, n, d_model)",
    "rest = states - states.mean(axis=1, keepdims=True)",
    "distance = np.linalg.norm(rest, axis=(1, 2)) / np.linalg.norm(states, axis=(1, 2))",
    "norms = np.linalg.norm(states, axis=2).mean(axis=1)",
    'print("distance from the mean, layer by layer:", distance)',
    'print("mean length, layer by layer:", norms)',
  ];
}

const PACE = 260; // milliseconds a layer

export function live(view) {
  let timer = 0;
  function stop() {
    clearInterval(timer);
    timer = 0;
    if (view.state().played !== null) view.set({ played: null });
  }
  function play() {
    view.set({ played: 0 });
    timer = setInterval(() => {
      const { played } = view.state();
      if (played === null || played >= MAX_DEPTH) {
        stop();
        if (played !== null) view.set({ depth: MAX_DEPTH });
      } else view.set({ played: played + 1 });
    }, PACE);
  }
  view.on("play", "click", () => (timer ? stop() : play()));
  view.follow(() => timer && stop());
  // Without the residual the layers are played once, when the picture comes into view.
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  if (!view.state().residual && view.state().depth === MAX_DEPTH && !calm.matches) {
    const sight = new IntersectionObserver(
      ([entry]) => {
        if (!entry.isIntersecting) return;
        sight.disconnect();
        if (!view.state().residual && !timer) play();
      },
      { threshold: 0.4 },
    );
    sight.observe(view.root);
  }
  for (const name of ["residual", "feed_forward"]) {
    view.on(name, "change", (event) => view.set({ [name]: event.target.checked }));
  }
  view.on("norm", "change", (event) => view.set({ norm: event.target.value }));
  view.on("depth", "input", (event) => view.set({ depth: Number(event.target.value) }));
  view.on("renew", "click", () => {
    const { seed, bounds } = view.state();
    view.set({ seed: seed < bounds.seed.most ? seed + 1 : 0 });
  });
}
