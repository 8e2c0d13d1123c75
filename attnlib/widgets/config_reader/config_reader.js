/**
 * ConfigReader: a published configuration as a layer, its parameters, its cache and its code.
 */
import { buttons, element, html, sheet, slider, text } from "../kit/markup.js";
import { count, describe, parse } from "./model.js";

export const layout = "abh-instrument";
export const label = () => "The layer that a configuration describes";

const MOST_LETTERS = 20_000;

export const shared = {
  config: (x) => typeof x === "string" && !complaint(x),
};

/** What is wrong with a pasted text, in words; "" if it can be drawn. */
export function complaint(content) {
  if (content.length > MOST_LETTERS)
    return `The text must be at most ${commas(MOST_LETTERS)} letters long.`;
  try {
    describe(parse(content));
    return "";
  } catch (error) {
    return error.message;
  }
}

const commas = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** A number of parameters, in three digits. */
export function short(n) {
  const unit = [1e12, 1e9, 1e6, 1e3].find((each) => n >= 0.9995 * each) ?? 1;
  const name = { 1e12: " T", 1e9: " B", 1e6: " M", 1e3: " K", 1: "" }[unit];
  return (unit === 1 ? String(n) : (n / unit).toPrecision(3)) + name;
}

/** Bytes, in three digits. */
export function bytes(n) {
  const unit = [1e15, 1e12, 1e9, 1e6, 1e3].find((each) => n >= each) ?? 1;
  const name = { 1e15: "PB", 1e12: "TB", 1e9: "GB", 1e6: "MB", 1e3: "kB", 1: "bytes" }[unit];
  const scaled = n / unit;
  return `${unit === 1 || scaled >= 999.5 ? scaled.toFixed(0) : scaled.toPrecision(3)} ${name}`;
}

/** The numbers that Python gives. */
export function compute({ config, tokens }) {
  return count(describe(parse(config)), tokens);
}

// ------------------------------------------------------------------------------- What is said

const plural = (n, word) => `${commas(n)} ${word}${n === 1 ? "" : "s"}`;
const RULES = {
  llama3: "by the rule of Llama 3.1",
  yarn: "by YaRN",
  linear: "by interpolation",
  dynamic: "by dynamic NTK",
};

/** How heads, positions and the softmax differ from those of 2017. */
function ofAttention(facts) {
  const { family, heads, kvHeads, d, base, stretch, index } = facts;
  const rule = stretch && (stretch.rope_type ?? stretch.type);
  const longer = RULES[rule] ? `, stretched ${stretch.factor} times ${RULES[rule]}` : "";
  const kept = facts.latent
    ? `The cache keeps one list of ${commas(facts.latent)} numbers for all heads, ` +
      `and ${facts.turned} that carry the position.`
    : kvHeads === heads
      ? `Each head has keys and values of its own, of ${plural(d, "number")}.`
      : `${commas(heads)} heads of queries share ${plural(kvHeads, "head")} of keys and values, ` +
        `of ${plural(d, "number")}.`;
  return [
    kept,
    index?.d &&
      `An indexer with ${plural(index.heads, "head")} chooses ${commas(index.chosen)} tokens for ` +
        `each query. Its cache has ${plural(index.d, "number")} more for each token.`,
    heads > 32 && `The picture has 32 of the ${commas(heads)} heads.`,
    `Rotary positions, base ${commas(base)}${longer}.`,
    family.normsOfHeads === "each" && "Each query and each key is normed (QK-norm).",
    family.normsOfHeads === "all" &&
      "The queries of all heads are normed together, and so are the keys (QK-norm).",
    family.sinks && "Each head has a learned sink, one more logit in its softmax.",
  ].filter(Boolean);
}

function ofNetwork({ hidden, width, activation, experts, used, commons, first }) {
  const gate = activation.startsWith("gelu") ? "GeGLU" : "SwiGLU";
  if (!experts) return [`${gate}: ${commas(width)} → ${commas(hidden)} → ${commas(width)}.`];
  return [
    `${commas(experts)} experts, of which each token uses ${commas(used)}` +
      `${commons ? `, and ${commons === 1 ? "one" : commas(commons)} that all tokens use` : ""}.`,
    `Each is a ${gate}: ${commas(width)} → ${commas(hidden)} → ${commas(width)}.`,
    first > 0 && `The first ${commas(first)} layers have an ordinary network instead.`,
  ].filter(Boolean);
}

function ofLayers({ layers, windows, index }) {
  const short = windows.filter((window) => window !== null);
  if (index?.d)
    return (
      `${plural(layers, "layer")}. Each token attends to at most ` +
      `${plural(index.chosen, "token")}, but the cache keeps all of them.`
    );
  if (!short.length) return `${plural(layers, "layer")}. Each token attends to all before it.`;
  const window = commas(Math.max(...short));
  if (short.length === layers)
    return `${plural(layers, "layer")}, all with a window of ${window} tokens.`;
  return (
    `${plural(layers, "layer")}. ${commas(short.length)} of them look back at ${window} tokens ` +
    `at most (the weaker color), and ${commas(layers - short.length)} at all of them.`
  );
}

/** The layer as one expression of this course's parts, and what none of them can say. */
export function expression({ config }) {
  const facts = describe(parse(config));
  const { family, heads, kvHeads } = facts;
  if (facts.latent)
    return [
      "# attnlib has no latent attention, because its",
      "# MultiHeadAttention keeps keys and values, and its",
      "# MixtureOfExperts has another kind of router.",
      facts.index.d && "# Nor does it have an indexer that learns to choose.",
      "# So this layer cannot be written with its parts.",
    ].filter(Boolean);
  const norms = { each: "RMSNorm(gamma_%)", all: "norm_%" }[family.normsOfHeads];
  const inner = [
    ["w_q, w_k, w_v, w_o,"],
    [`n_heads=${heads}, n_kv_heads=${kvHeads},`],
    norms && ["q", "k"].map((x) => `norm_${x}=${norms.replace("%", x)},`),
    facts.stretch
      ? ["turn=partial(rotary, gain=gain,", "  frequencies=frequencies,", '  layout="halves"),']
      : [`turn=partial(rotary, base=${facts.base},`, '  layout="halves"),'],
    facts.scalar && [`scale=${facts.scalar}**-0.5,`],
    family.sinks && ["sink=sinks,"],
  ]
    .filter(Boolean)
    .flat();
  const network = facts.experts
    ? ["MixtureOfExperts(", `  w_router, experts, k=${facts.used}),`]
    : ["SwiGLU(w_gate, w_up, w_down),"];
  const around = (has, first, second, from) =>
    [first, second].map((name, i) => `${name}=${has ? `RMSNorm(gamma_${from + i})` : "None"},`);
  return [
    family.normsOfHeads === "all" && "# norm_q and norm_k: over all heads of a token",
    facts.stretch && "# frequencies, gain: from rotary_frequencies",
    "EncoderLayer(",
    "  MultiHeadAttention(",
    ...inner.map((each) => `    ${each}`),
    "  ),",
    ...network.map((each) => `  ${each}`),
    ...around(family.before, "norm_1", "norm_2", 1).map((each) => `  ${each}`),
    ...(family.after ? around(true, "after_1", "after_2", 3).map((each) => `  ${each}`) : []),
    "  norm_first=True,",
    ")",
  ].filter(Boolean);
}

// --------------------------------------------------------------------------------- The drawing

/** Heads of queries as dots over the squares of keys and values that they share. */
function heads({ heads, kvHeads, latent }) {
  const [most, width] = [32, 320];
  const shown = Math.min(heads, most);
  const share = heads / kvHeads;
  const groups = Math.max(Math.round(shown / share), 1);
  const step = width / shown;
  const center = (i) => step * (i + 0.5);
  const side = Math.min(10, step * 0.8);
  const dots = Array.from({ length: shown }, (_, i) =>
    element("circle", { cx: center(i), cy: 8, r: side / 2, fill: "var(--query)" }),
  );
  const middle = (g) => (width / groups) * (g + 0.5);
  const square = (x, y, role) =>
    element("rect", { x: x - side / 2, y, width: side, height: side, fill: `var(--${role})` });
  const lines = Array.from({ length: shown }, (_, i) => {
    const to = latent ? width / 2 : middle(Math.floor((i * groups) / shown));
    return `M${center(i).toFixed(1)} ${8 + side / 2}L${to.toFixed(1)} 34`;
  }).join("");
  const shared = latent
    ? element("rect", { x: width / 2 - 60, y: 34, width: 120, height: 12, fill: "var(--key)" })
    : Array.from({ length: groups }, (_, g) => [
        square(middle(g), 34, "key"),
        square(middle(g), 36 + side, "value"),
      ]);
  return sheet(
    "heads",
    width,
    60,
    "Heads of queries as dots, joined to the keys and values that they share",
    element("path", { d: lines, fill: "none", stroke: "var(--line)" }),
    dots,
    shared,
  );
}

/** The experts as squares, with those that one token uses filled. */
function network({ experts, used, commons }) {
  if (!experts) return "";
  const columns = experts > 64 ? 32 : 16;
  const [shown, width] = [Math.min(experts, 512), 320];
  const step = width / columns;
  const chosen = new Set(
    // As a router may choose: one in each stretch, but not at the same place of it.
    Array.from({ length: Math.min(used, shown) }, (_, i) =>
      Math.floor(((i + ((0.62 * (i + 1)) % 1)) * shown) / Math.min(used, shown)),
    ),
  );
  const rows = Math.ceil(shown / columns);
  const side = step * 0.72;
  return sheet(
    "experts",
    width,
    rows * step + (commons ? 22 : 4),
    "The experts as squares, with those that one token uses filled",
    Array.from({ length: shown }, (_, i) =>
      element("rect", {
        x: (i % columns) * step + (step - side) / 2,
        y: Math.floor(i / columns) * step + (step - side) / 2,
        width: side,
        height: side,
        rx: 2,
        fill: chosen.has(i) ? "var(--ink)" : "var(--page)",
        stroke: "var(--line)",
      }),
    ),
    commons &&
      text("used by every token", 22, rows * step + 15, "muted", {
        "data-part": "commons",
      }),
    commons &&
      element("rect", {
        x: (step - side) / 2,
        y: rows * step + 5,
        width: side,
        height: side,
        rx: 2,
        fill: "var(--ink)",
      }),
  );
}

/** The layers from the first to the last, those with a window in a weaker color. */
function strip({ windows }) {
  const [width, height] = [360, 22];
  const step = width / windows.length;
  return sheet(
    "layers",
    width,
    height,
    "The layers, from the first to the last; those with a window have a weaker color",
    windows.map((window, i) =>
      element("rect", {
        x: i * step + step * 0.1,
        y: 1,
        width: step * 0.8,
        height: height - 2,
        fill: "var(--weight)",
        "fill-opacity": window === null ? 0.85 : 0.25,
      }),
    ),
  );
}

/** The parameters as a bar: tables, attention, feed-forward networks. */
function bar(counted) {
  const parts = [
    ["tables", "embedding and output tables"],
    ["attention", "attention"],
    ["feedForward", "feed-forward networks"],
  ];
  const share = (name) => counted[name] / counted.total;
  return html`<div class="bar" role="img" aria-label="${parts
    .map(([name, said]) => `${said} ${(100 * share(name)).toFixed(0)} percent`)
    .join(", ")}">${parts.map(([name]) =>
    element("span", { class: name, style: `flex-grow: ${share(name).toFixed(4)}` }),
  )}</div><ul class="legend">${parts.map(
    ([name, said]) =>
      html`<li><span class="swatch ${name}"></span>${said} <b>${short(counted[name])}</b></li>`,
  )}</ul>`;
}

// ---------------------------------------------------------------------------------- The sections

export function picture(s) {
  const facts = describe(parse(s.config));
  const counted = count(facts, s.tokens);
  const { family } = facts;
  const isShown = (config) => JSON.stringify(parse(s.config)) === JSON.stringify(config);
  const choice = ([name, config]) =>
    element(
      "button",
      { type: "button", name: "choice", value: name, "aria-pressed": String(isShown(config)) },
      name,
    );
  const norm = html`<p class="norm">RMSNorm</p>`;
  const said = (lines) => lines.map((each) => html`<p>${each}</p>`);
  const power = Math.round(Math.log2(s.tokens));
  return [
    html`<div class="controls"><p class="one-of">${Object.entries(s.published).map(choice)}</p>
<details><summary>Paste a config.json</summary><label><span>Configuration</span>
<textarea name="pasted" rows="8" spellcheck="false" autocomplete="off"
data-key="${s.config}">${JSON.stringify(parse(s.config), null, 1)}</textarea></label></details>
</div>`,
    html`<div class="built"><div class="layer" data-part="layer">
${family.before && norm}
<div class="part"><p class="name">Attention</p>${heads(facts)}${said(ofAttention(facts))}</div>
${family.after && norm}<p class="plus">+ residual</p>
${family.before && norm}
<div class="part"><p class="name">${
      facts.experts ? "Mixture of experts" : "Feed-forward network"
    }</p>${network(facts)}${said(ofNetwork(facts))}</div>
${family.after && norm}<p class="plus">+ residual</p></div>
<pre class="expression" data-part="expression" tabindex="0" role="img"
aria-label="The layer as an expression">${expression(s)
      .map((each) => `${each}\n`)
      .join("")}</pre></div>`,
    html`<div class="right">
<div class="stack">${strip(facts)}<p data-part="windows">${ofLayers(facts)}</p></div>
<div class="readout">
<p><span class="big" data-part="total">${short(counted.total)}</span>
<span>parameters in all</span></p>
<p><span class="big" data-part="active">${short(counted.active)}</span>
<span>of them used for each token</span></p></div>
${bar(counted)}
<label class="main"><span>Tokens so far <b class="number">${commas(s.tokens)}</b></span>
${slider(
  "power",
  { bounds: { power: { least: 0, most: 20 } } },
  {
    value: power,
    "aria-valuetext": `${commas(s.tokens)} tokens`,
  },
)}</label>
<div class="readout"><p><span class="big" data-part="cache">${bytes(counted.cache)}</span>
<span>in the cache, at 2 bytes a number</span></p>${buttons()}</div></div>`,
  ];
}

/** The same counts in Python. */
export function code(s) {
  const python = JSON.stringify(parse(s.config), null, 4)
    .replace(/: null/g, ": None")
    .replace(/: true/g, ": True")
    .replace(/: false/g, ": False");
  return [
    "from attnlib.models import sizes",
    "",
    ...`config = ${python}`.split("\n"),
    "found = sizes(config)",
    `print(found.total, found.active, found.cache(${s.tokens}))`,
  ];
}

export function live(view) {
  view.on("choice", "click", (_, button) => {
    view.set({ config: JSON.stringify(view.state().published[button.value]) });
    view.say("");
  });
  view.on("pasted", "input", (_, area) => {
    const problem = complaint(area.value);
    view.say(problem);
    if (!problem) view.set({ config: JSON.stringify(parse(area.value)) });
  });
  view.on("power", "input", (event) => view.set({ tokens: 2 ** Number(event.target.value) }));
}
