/**
 * CostCalculator: the roofline of a processor, with what reading a prompt and writing a token get
 * out of it; folded, the model, and bytes against tokens for every kind of attention.
 */
import { buttons, element, html, line, prose, select, sheet, table, text } from "../kit/markup.js";

export const layout = "abh-instrument";

const KINDS = {
  full: "full attention",
  blockwise: "in blocks of 128 queries",
  window: "sliding window",
  grouped: "grouped-query attention",
  linear: "linear attention",
};
const SHORT = {
  full: "full",
  blockwise: "blocks",
  window: "window",
  grouped: "grouped",
  linear: "linear",
};
/** What is said of a kind that has no size of its own. */
const SAYS = {
  full: "Every query meets every key, and A is written to memory.",
  blockwise: "Every query meets every key, and A is never written.",
  linear: "A matrix for each head takes the place of all keys and values.",
};
const BYTES = [
  [8, "8, float64"],
  [4, "4, float32"],
  [2, "2, float16"],
  [1, "1, int8"],
];
/** d_model, heads and layers. */
const MODELS = {
  "512 8 6": "Transformer, base",
  "768 12 12": "BERT base, GPT-2 small",
  "12288 96 96": "GPT-3",
  "4096 32 32": "Llama 3.1 8B",
  "8192 64 80": "Llama 3.1 70B",
  "16384 128 126": "Llama 3.1 405B",
  "4096 32 36": "Qwen3 8B",
  "": "your own",
};
/**
 * Heads that share keys and values in the models that do so: each of the four has 8 heads of keys.
 */
const SHARED = { "4096 32 32": 4, "4096 32 36": 4, "8192 64 80": 8, "16384 128 126": 16 };
const BLOCK = 128;
/**
 * FLOPs per byte from which an H100 does not wait: those a second, in 16-bit floats, by its bytes a
 * second (NVIDIA's white paper).
 */
const RIDGE = 989.4 / 3.35;
const STOPS = Array.from({ length: 27 }, (_, half) => Math.round(2 ** (7 + half / 2)));

/** The curves of the memory, on a 360 x 240 sheet; powers of 2 of tokens, of 10 of bytes. */
const SHEET = {
  width: 360,
  height: 240,
  left: 52,
  top: 30,
  wide: 236,
  tall: 180,
  fewest: 7,
  most: 20,
  least: 5,
  largest: 14,
  spacing: 17,
};

/** The roofline: powers of 2 of FLOPs a byte, of 10 of the share of the processor's FLOPs. */
const ROOF = { top: 36, tall: 120, wide: 300, least: -2, most: 12, lowest: -3, height: 196 };
const PAGE = 500; // tokens of a page of text

/** The sizes that are typed, as messages call them. */
const SIZES = {
  d_model: "d_model",
  n_heads: "Heads",
  n_layers: "Layers",
  width: "The width of the window",
  group: "Heads that share",
};

export const shared = {
  n_heads: (x, s) => s.d_model % x === 0,
  group: (x, s) => s.n_heads % x === 0,
  memory: (x) => typeof x === "number" && x > 0 && x <= 1e6,
};

/**
 * FLOPs of one layer by part; bytes: the weights of one layer, the cache of all; FLOPs for each
 * byte moved.
 */
export function compute({ kind, n, d_model, n_heads, n_layers, bytes, width, group }) {
  const d_k = d_model / n_heads;
  const linear = kind === "linear";
  const inBlocks = kind === "blockwise" || kind === "grouped";
  const shared = kind === "grouped" ? group : 1;
  const windowed = kind === "window" && width < n;
  const pairs = windowed ? n * (2 * width + 1) - width * (width + 1) : n * n;
  const kept = windowed ? width + 1 : n;
  const state = n_heads * d_k * d_k;
  const written = inBlocks || linear ? 0 : n_heads * pairs;
  const cached = linear ? state : (2 * kept * d_model) / shared;
  const attention = 4 * (linear ? n * d_k : pairs) * d_model;
  const times = inBlocks ? Math.ceil(n / BLOCK) : 1; // that keys and values are fetched
  const moved = 2 * n * d_model * (1 + times / shared) + 4 * written;
  const fetched = 2 * d_model + (linear ? 2 * state : cached);
  return {
    projections: 4 * n * d_model ** 2 + (4 * n * d_model ** 2) / shared,
    attention,
    feed_forward: 16 * n * d_model ** 2,
    weights: bytes * (linear ? state : inBlocks ? Math.min(BLOCK, n) * n : written),
    cache: n_layers * bytes * cached,
    reading: attention / (moved * bytes),
    writing: (4 * (linear ? d_k : kept) * d_model) / (fetched * bytes),
  };
}

const bytesAtOnce = (found) => found.weights + found.cache;

const fits = (found, { memory }) => bytesAtOnce(found) <= memory * 1e9;

const totalOf = (found) => found.projections + found.attention + found.feed_forward;

/** How many times the FLOPs of a page a text takes. */
function story(s, found) {
  const times = totalOf(found) / totalOf(compute({ ...s, n: PAGE }));
  return times < 9.95 ? `${times.toFixed(1)} ×` : `${commas(Math.round(times))} ×`;
}

/** The most tokens that fit into the memory, up to 2^40; 0 for none. */
export function longest(state) {
  let [low, high] = [0, 2 ** 40];
  while (low < high) {
    const middle = Math.floor((low + high + 1) / 2);
    if (fits(compute({ ...state, n: middle }), state)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** A whole number with its thousands parted. */
const commas = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** A number in three digits and a prefix: 2.15 GB, or 34.4 T. */
export function amount(number, unit, whole = false) {
  if (whole && number < 1e5) return commas(number);
  const power = number ? Math.min(Math.max(Math.floor(Math.log10(number) / 3), 0), 6) : 0;
  const scaled = number / 1000 ** power;
  let digits = scaled.toPrecision(3);
  if (power === 0) digits = String(Number(scaled.toPrecision(4)));
  // Three digits would be written as a power of ten.
  else if (scaled >= 999.5) digits = scaled.toFixed(0);
  return `${digits} ${["", "k", "M", "G", "T", "P", "E"][power]}${unit}`.trim();
}

const x = (n) => {
  const share = (Math.log2(n) - SHEET.fewest) / (SHEET.most - SHEET.fewest);
  return SHEET.left + SHEET.wide * Math.min(Math.max(share, 0), 1);
};

const y = (bytes) => {
  const share = (Math.log10(Math.max(bytes, 1)) - SHEET.least) / (SHEET.largest - SHEET.least);
  return SHEET.top + SHEET.tall * (1 - Math.min(Math.max(share, 0), 1));
};

const curve = (s, kind) =>
  "M" +
  STOPS.map(
    (n) => `${x(n).toFixed(1)} ${y(bytesAtOnce(compute({ ...s, kind, n }))).toFixed(1)}`,
  ).join("L");

/** The ends of the curves by name, from the top, far enough apart to be read. */
function ends(s) {
  const { top, tall, most, spacing } = SHEET;
  const kinds = Object.keys(KINDS);
  const found = kinds.map((kind) => ({
    kind,
    at: y(bytesAtOnce(compute({ ...s, kind, n: 2 ** most }))),
  }));
  found.sort((one, other) => one.at - other.at);
  found.forEach((end, i) => {
    if (i) end.at = Math.max(end.at, found[i - 1].at + spacing);
  });
  found.reverse().forEach((end, i) => {
    end.at = Math.min(end.at, i ? found[i - 1].at - spacing : top + tall);
  });
  return found;
}

/** Bytes against tokens, one curve for each kind of attention. */
function memories(s, found) {
  const { left, top, wide, tall } = SHEET;
  const thin = { stroke: "var(--muted)", "stroke-width": 1.3 };
  return [
    text("Bytes held at once, against tokens", 0, 14, "ink"),
    [
      [1e6, "1 MB"],
      [1e9, "1 GB"],
      [1e12, "1 TB"],
    ].map(([bytes, name]) => [
      text(name, left - 6, y(bytes) + 4, "muted", { "text-anchor": "end" }),
      line(`M${left} ${y(bytes).toFixed(1)}h${wide}`, { "stroke-opacity": 0.4 }),
    ]),
    [7, 10, 14, 20].map((power) => {
      const anchor = { "text-anchor": power === SHEET.most ? "end" : "middle" };
      return text(commas(2 ** power), x(2 ** power), top + tall + 16, "muted", anchor);
    }),
    line(`M${left} ${top}V${top + tall}h${wide}`),
    Object.keys(KINDS)
      .filter((kind) => kind !== s.kind)
      .map((kind) => line(curve(s, kind), thin)),
    line(`M${left} ${y(s.memory * 1e9).toFixed(1)}h${wide}`, {
      stroke: "var(--ink)",
      "stroke-dasharray": "5 3",
    }),
    line(curve(s, s.kind), { stroke: "var(--ink)", "stroke-width": 2.5 }),
    ends(s).map(({ kind, at }) => {
      const chosen = kind === s.kind;
      return text(SHORT[kind], left + wide + 6, at + 4, chosen ? "ink" : "muted", {
        "font-weight": chosen && "bold",
      });
    }),
    line(`M${x(s.n).toFixed(1)} ${top}V${top + tall}`, { stroke: "var(--ink)" }),
    element("circle", { cx: x(s.n), cy: y(bytesAtOnce(found)), r: 4.5, fill: "var(--ink)" }),
  ];
}

const across = (intensity) => {
  const share = (Math.log2(intensity) - ROOF.least) / (ROOF.most - ROOF.least);
  return SHEET.left + ROOF.wide * Math.min(Math.max(share, 0), 1);
};

const up = (share) => ROOF.top + ROOF.tall * Math.min(Math.log10(share) / ROOF.lowest, 1);

/** The share of its FLOPs that the processor gets to do, with so many of them for each byte. */
const done = (intensity) => Math.min(1, intensity / RIDGE);

const waits = (intensity) => `${(100 * (1 - done(intensity))).toFixed(1)}%`;

/** What the processor can do against FLOPs a byte, and where the two kinds of work stand. */
function roofline({ reading, writing }) {
  const { left } = SHEET;
  const { wide } = ROOF;
  const [first, last] = [2 ** ROOF.least, 2 ** ROOF.most];
  const corners = [first, RIDGE, last].map(
    (at) => `${across(at).toFixed(1)} ${up(done(at)).toFixed(1)}`,
  );
  const bottom = ROOF.top + ROOF.tall;
  const dot = (name, intensity, [dx, dy], anchor) => [
    element("circle", {
      cx: across(intensity),
      cy: up(done(intensity)),
      r: 4.5,
      fill: "var(--ink)",
      "data-dot": name,
    }),
    text(name, across(intensity) + dx, Math.min(up(done(intensity)) + dy, bottom - 3), "ink", {
      "text-anchor": anchor,
    }),
  ];
  return [
    text("Share of its speed that the processor reaches", 0, ROOF.top - 20, "ink"),
    text("FLOPs for each byte that is moved", left + wide, bottom + 34, "muted", {
      "text-anchor": "end",
    }),
    [1, 0.1, 0.01].map((share) =>
      text(`${100 * share}%`, left - 6, up(share) + 4, "muted", { "text-anchor": "end" }),
    ),
    [1, 16, 256, 4096].map((at) =>
      text(commas(at), across(at), bottom + 16, "muted", {
        "text-anchor": at === last ? "end" : "middle",
      }),
    ),
    line(`M${left} ${ROOF.top}V${bottom}h${wide}`),
    line(`M${corners.join("L")}`, { stroke: "var(--ink)", "stroke-width": 1.3 }),
    across(reading) < left + 60
      ? dot("reading", reading, [-4, -22], "start")
      : dot("reading", reading, [-8, -5], "end"),
    dot("writing", writing, [9, 8], "start"),
  ];
}

const roofSheet = (found) =>
  sheet(
    "roof",
    SHEET.width,
    ROOF.height,
    "The share of its FLOPs that the processor can do against FLOPs a byte, for reading a prompt " +
      "and for writing a token; the numbers beside it say the same",
    roofline(found),
  );

const memorySheet = (s, found) =>
  sheet(
    "memories",
    SHEET.width,
    SHEET.height,
    "Bytes held at once against tokens, with the limit, five curves; the table below holds the " +
      "numbers",
    memories(s, found),
  );

export function picture(s) {
  const found = compute(s);
  const away = STOPS.map((stop) => Math.abs(Math.log(stop / s.n)));
  const slider = {
    min: 0,
    max: STOPS.length - 1,
    value: away.indexOf(Math.min(...away)),
    "aria-valuetext": `${commas(s.n)} tokens`,
  };
  const sizes = `${s.d_model} ${s.n_heads} ${s.n_layers}`;
  const field = (name, label, hidden = false) =>
    element(
      "label",
      { hidden },
      html`<span>${label}</span>`,
      element("input", { type: "text", inputmode: "decimal", name, value: String(s[name]) }),
    );
  const number = (part, content) => element("b", { class: "number", "data-part": part }, content);
  const block = ", one block held";
  const share = `${((100 * found.attention) / totalOf(found)).toFixed(0)}%`;
  const instead = { blockwise: block, grouped: block, linear: ": a sum in place of A" }[s.kind];
  return [
    html`<div class="controls">
<label class="main"><span>Tokens <b class="number" data-part="n_value">${commas(s.n)}</b></span>
${element("input", { type: "range", name: "n", ...slider })}</label>
<label class="wide"><span>Kind of attention</span>
${select("kind", KINDS, s.kind)}</label><div class="wide extra">
${field("width", "Width of the window", s.kind !== "window")}
${field("group", "Heads that share", s.kind !== "grouped")}
${element("p", { class: "says" }, SAYS[s.kind] ?? " ")}</div></div>`,
    html`<div class="picture roof">${roofSheet(found)}</div>`,
    html`<div class="readout">
<p><span class="big" data-part="story">${story(s, found)}</span>
<span>as many FLOPs (additions and multiplications) as for a page of ${PAGE} tokens</span></p>
<p><span class="big" data-part="reading">${waits(found.reading)}</span>
<span>of the time, the processor waits for memory when it reads a prompt (scores and average
only)</span></p>
<p><span class="big" data-part="writing">${waits(found.writing)}</span>
<span>of the time, it waits for memory when it writes one new token (scores and average
only)</span></p>
${buttons()}</div>`,
    html`<details class="more"><summary>The model, and the memory that it needs</summary>
<div class="form"><div class="controls"><label class="wide"><span>Model</span>
${select("model", MODELS, sizes in MODELS ? sizes : "")}</label>
${field("d_model", prose("d_model"))}${field("n_heads", "Heads")}${field("n_layers", "Layers")}
<label><span>Bytes a number</span>
${select("bytes", BYTES, s.bytes)}</label>
${field("memory", "Memory, GB")}</div>
<div class="picture memories">${memorySheet(s, found)}</div>
<div class="readout">
<p><span class="big" data-part="weights">${amount(found.weights, "B")}</span>
<span>for the weights of one layer${number("instead", instead)}</span></p>
<p><span class="big" data-part="cache">${amount(found.cache, "B")}</span>
<span>for the key-value cache of all layers</span></p>
<p><span class="big" data-part="flops">${amount(totalOf(found), "")}</span>
<span>FLOPs a layer; scores and average
${number("share", share)}</span></p>
<p><span class="big" data-part="longest">${amount(longest(s), "", true)}</span>
<span>tokens at most fit into the memory;
${number("fits", fits(found, s) ? "this text does" : "this text does not")}</span></p></div>
<p class="cell">The curves show the weights of one layer and the cache of all layers, and the dashed
line shows the memory that there is. The parameters are not counted, and ${prose(
      "d_ff is 4 d_model",
    )}.</p></div></details>`,
    html`<p class="cell">The times are those on an H100, with 989 trillion FLOPs a second and 3.35
trillion bytes a second. When this prompt is read, the scores and the average are ${share} of the
FLOPs of a layer. No causal mask is counted: a program that skips what such a mask forbids does half
the FLOPs of full attention.</p>`,
    () => html`<div class="visually-hidden" data-part="table">${numbers(s)}</div>`,
  ];
}

/** The numbers behind the curve, for those who do not see it. */
function numbers(s) {
  const rows = STOPS.filter((_, i) => i % 4 === 0).map((n) => {
    const found = compute({ ...s, n });
    const sizes = [
      amount(found.weights, "B"),
      amount(found.cache, "B"),
      amount(totalOf(found), ""),
    ];
    const intensities = [found.reading, found.writing].map((each) => each.toPrecision(3));
    return [commas(n), ...sizes, ...intensities, fits(found, s) ? "yes" : "no"];
  });
  const heads = [
    "tokens",
    "weights of one layer",
    "cache",
    "FLOPs a layer",
    "FLOPs a byte, reading",
    "FLOPs a byte, writing",
    "fits",
  ];
  return table(`${KINDS[s.kind]}: memory and work`, heads, rows);
}

/** What is wrong with a typed size, in words; "" if it can be taken. */
export function complaint(state, name, text) {
  const value = Number(text);
  if (name === "memory") {
    return value > 0 && value <= 1e6
      ? ""
      : "Memory must be a number of gigabytes above 0, up to 1,000,000.";
  }
  const { least, most } = state.bounds[name];
  if (text.trim() === "" || !Number.isInteger(value) || value < least || value > most) {
    return `${SIZES[name]} must be a whole number from ${least} to ${commas(most)}.`;
  }
  const next = { ...state, [name]: value };
  if (next.d_model % next.n_heads) {
    return `Heads must divide d_model: ${next.d_model} / ${next.n_heads} is not whole.`;
  }
  if (next.n_heads % next.group) {
    return `Heads that share must divide the heads: ${next.n_heads} / ${next.group} is not whole.`;
  }
  return "";
}

/** Runnable NumPy for what is on the screen: other sizes may be put in. */
export function code(state) {
  const { kind, n, d_model, n_heads, n_layers, bytes, width, group } = state;
  const pairsOf =
    kind === "window"
      ? [
          "distance = np.abs(np.arange(n)[:, None] - np.arange(n)) if n <= 4096 else None",
          `pairs = n * ${2 * width + 1} - ${width * (width + 1)} if n > ${width} else n**2  # |i ` +
            `- j| <= ${width}`,
          `assert distance is None or pairs == (distance <= ${width}).sum()`,
        ]
      : ["pairs = n**2"];
  const shared = kind === "grouped" ? group : 1;
  const linear = kind === "linear";
  const inBlocks = kind === "blockwise" || kind === "grouped";
  const kept = kind === "window" ? `min(n, ${width + 1})` : "n";
  return [
    "import numpy as np",
    "",
    `n, d_model, n_heads, n_layers, size = ${n}, ${d_model}, ${n_heads}, ${n_layers}, ${bytes}`,
    "d_k = d_model // n_heads",
    ...pairsOf,
    `projections = 4 * n * d_model**2 * (1 + 1 / ${shared})`,
    linear ? "attention = 4 * n * d_k * d_model" : "attention = 4 * pairs * d_model",
    "feed_forward = 16 * n * d_model**2",
    linear
      ? "weights = size * n_heads * d_k**2  # a sum in place of A"
      : inBlocks
        ? `weights = size * min(${BLOCK}, n) * n  # one block of one head`
        : "weights = size * n_heads * pairs",
    `kept = ${linear ? "d_k / 2" : kept}  # keys and values that are fetched for one token`,
    `cache = 2 * n_layers * size * kept * d_model / ${shared}`,
    `fetches = ${inBlocks ? `-(-n // ${BLOCK})` : 1}  # of keys and values, for a prompt`,
    `moved = size * 2 * n * d_model * (1 + fetches / ` +
      `${shared})${inBlocks || linear ? "" : " + 4 * weights"}`,
    "reading = attention / moved  # FLOPs a byte",
    linear
      ? "writing = 4 * d_k / (2 + 2 * d_k) / size"
      : `writing = 4 * kept / (2 + 2 * kept / ${shared}) / size`,
    'print("FLOPs of one layer:", projections + attention + feed_forward)',
    'print("bytes of the weights of one layer:", weights)',
    'print("bytes of the cache:", cache)',
    'print("FLOPs a byte, reading and writing:", reading, writing)',
    `print("fits:", weights + cache <= ${state.memory} * 1e9)`,
  ];
}

export function live(view) {
  const take = (changes) => {
    view.set(changes);
    view.say("");
  };
  view.on("n", "input", (event) => take({ n: STOPS[event.target.value] }));
  view.on("kind", "change", (event) => take({ kind: event.target.value }));
  view.on("bytes", "change", (event) => take({ bytes: Number(event.target.value) }));
  view.on("model", "change", ({ target }) => {
    const { d_model, n_heads, n_layers, group } = view.state();
    if (target.value) {
      const [width, heads, layers] = target.value.split(" ").map(Number);
      const sharing = SHARED[target.value] ?? (heads % group ? 1 : group);
      return take({ d_model: width, n_heads: heads, n_layers: layers, group: sharing });
    }
    const sizes = `${d_model} ${n_heads} ${n_layers}`;
    target.value = sizes in MODELS ? sizes : ""; // "your own" is what the sizes say, not a choice
  });
  for (const name of [...Object.keys(SIZES), "memory"]) {
    view.on(name, "change", ({ target }) => {
      const wrong = complaint(view.state(), name, target.value);
      if (!wrong) view.set({ [name]: Number(target.value) });
      view.say(wrong);
      target.value = view.state()[name];
    });
  }
}
