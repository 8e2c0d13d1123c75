/**
 * CostCalculator: the still picture's own drawing, whose marks follow the sizes.
 */
import { copy, mount } from "./core.js";

const TRAITS = ["n", "d_model", "n_heads", "n_layers", "bytes", "kind", "width", "group", "memory"];
const BLOCK = 128;
const STOPS = Array.from({ length: 27 }, (_, half) => Math.round(2 ** (7 + half / 2)));

/** The drawing, in units of a 360 x 330 sheet. The still picture in Python uses the same ones. */
const SHEET = { width: 360, left: 52, top: 30, wide: 296, tall: 200, fewest: 7, most: 20, least: 5, largest: 14 };

/** [smallest, largest, what it is called] of each size that is typed. */
const RANGES = {
  d_model: [1, 65536, "d_model"], n_heads: [1, 1024, "Heads"], n_layers: [1, 1024, "Layers"],
  width: [0, 2 ** 20, "The width of the window"], group: [1, 1024, "Heads that share"],
};

/** How many pairs of a query and a key meet, in each head. */
export function pairs(kind, n, width) {
  return kind === "window" && width < n ? n * (2 * width + 1) - width * (width + 1) : n * n;
}

/** FLOPs of one layer by part, and bytes: the weights of one layer, the cache of all. */
export function costs({ kind, n, d_model, n_heads, n_layers, bytes, width, group }) {
  const d_k = Math.floor(d_model / n_heads);
  const shared = kind === "grouped" ? group : 1;
  const kept = kind === "window" ? Math.min(n, width + 1) : n;
  const state = n_heads * d_k * d_k;
  const held = { blockwise: Math.min(BLOCK, n) * n, linear: state }[kind] ?? n_heads * pairs(kind, n, width);
  return {
    projections: 4 * n * d_model ** 2 + (4 * n * d_model ** 2) / shared,
    attention: 4 * (kind === "linear" ? n * d_k : pairs(kind, n, width)) * d_model,
    feed_forward: 16 * n * d_model ** 2,
    weights: bytes * held,
    cache: n_layers * bytes * (kind === "linear" ? state : (2 * kept * d_model) / shared),
  };
}

/** Bytes held at once. */
export const held = (found) => found.weights + found.cache;

const totalOf = (found) => found.projections + found.attention + found.feed_forward;

/** The most tokens that fit into the memory, up to 2^40; 0 for none. */
export function longest(state) {
  let [low, high] = [0, 2 ** 40];
  while (low < high) {
    const middle = Math.floor((low + high + 1) / 2);
    if (held(costs({ ...state, n: middle })) <= state.memory * 1e9) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** A number in three digits and a prefix: 2.15 GB, or 34.4 T. */
export function amount(number, unit, whole = false) {
  if (whole && number < 1e5) return number.toLocaleString("en-US");
  const power = number ? Math.min(Math.max(Math.floor(Math.log10(number) / 3), 0), 6) : 0;
  const scaled = number / 1000 ** power;
  let digits = scaled.toPrecision(3);
  if (power === 0) digits = String(Number(scaled.toPrecision(4)));
  else if (scaled >= 999.5) digits = scaled.toFixed(0); // three digits would be written as a power of ten
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

/** The attributes of each moving part of the drawing. */
export function marks(state, found) {
  const line = (kind) =>
    "M" + STOPS.map((n) => `${x(n).toFixed(1)} ${y(held(costs({ ...state, kind, n }))).toFixed(1)}`).join("L");
  const here = x(state.n).toFixed(1);
  const bars = {};
  let left = 0;
  for (const [part, name] of [["projections", "projections"], ["attention", "attention"], ["feed", "feed_forward"]]) {
    const wide = (SHEET.width * found[name]) / totalOf(found);
    bars[part] = { x: left.toFixed(1), width: wide.toFixed(1) };
    left += wide;
  }
  return {
    full: { d: line("full") },
    limit: { d: `M${SHEET.left} ${y(state.memory * 1e9).toFixed(1)}h${SHEET.wide}` },
    held: { d: line(state.kind) },
    here: { d: `M${here} ${SHEET.top}V${SHEET.top + SHEET.tall}` },
    dot: { cx: here, cy: y(held(found)).toFixed(1) },
    ...bars,
  };
}

/** What is wrong with a typed size, in words; "" if it can be taken. */
export function complaint(state, name, text) {
  const value = Number(text);
  if (name === "memory") {
    return value > 0 && value <= 1e6 ? "" : "Memory must be a number of gigabytes above 0, up to 1,000,000.";
  }
  const [least, most, called] = RANGES[name];
  if (text.trim() === "" || !Number.isInteger(value) || value < least || value > most) {
    return `${called} must be a whole number from ${least} to ${most.toLocaleString("en-US")}.`;
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
export function numpyCode(state) {
  const { kind, n, d_model, n_heads, n_layers, bytes, width, group } = state;
  const pairsOf =
    kind === "window"
      ? ["distance = np.abs(np.arange(n)[:, None] - np.arange(n)) if n <= 4096 else None",
         `pairs = n * ${2 * width + 1} - ${width * (width + 1)} if n > ${width} else n**2  # |i - j| <= ${width}`,
         `assert distance is None or pairs == (distance <= ${width}).sum()`]
      : ["pairs = n**2"];
  const shared = kind === "grouped" ? group : 1;
  return [
    "import numpy as np",
    "",
    `n, d_model, n_heads, n_layers, size = ${n}, ${d_model}, ${n_heads}, ${n_layers}, ${bytes}`,
    "d_k = d_model // n_heads",
    ...pairsOf,
    `projections = 4 * n * d_model**2 * (1 + 1 / ${shared})`,
    kind === "linear" ? "attention = 4 * n * d_k * d_model" : "attention = 4 * pairs * d_model",
    "feed_forward = 16 * n * d_model**2",
    { blockwise: `weights = size * min(${BLOCK}, n) * n  # one block of one head`,
      linear: "weights = size * n_heads * d_k**2  # a sum in place of A" }[kind] ?? "weights = size * n_heads * pairs",
    { linear: "cache = n_layers * size * n_heads * d_k**2",
      window: `cache = 2 * n_layers * size * min(n, ${width + 1}) * d_model` }[kind] ??
      `cache = 2 * n_layers * size * n * d_model / ${shared}`,
    'print("FLOPs of one layer:", projections + attention + feed_forward)',
    'print("bytes of the weights of one layer:", weights)',
    'print("bytes of the cache:", cache)',
    `print("fits:", weights + cache <= ${state.memory} * 1e9)`,
  ];
}

function render({ model, el }) {
  const state = () => Object.fromEntries(TRAITS.map((trait) => [trait, model.get(trait)]));
  const start = state();
  const typed = [...Object.keys(RANGES), "memory"];

  function draw(view) {
    const s = state();
    const found = costs(s);
    for (const [name, attributes] of Object.entries(marks(s, found))) {
      for (const [key, value] of Object.entries(attributes)) {
        if (view.part(name).getAttribute(key) !== value) view.part(name).setAttribute(key, value);
      }
    }
    const away = STOPS.map((stop) => Math.abs(Math.log(stop / s.n)));
    view.put("n", { value: away.indexOf(Math.min(...away)), ariaValueText: `${s.n} tokens` });
    view.put("n_value", { textContent: s.n.toLocaleString("en-US") });
    view.put("kind", { value: s.kind });
    view.put("bytes", { value: s.bytes });
    const sizes = `${s.d_model} ${s.n_heads} ${s.n_layers}`;
    const known = Array.from(view.part("model").options, (option) => option.value);
    view.put("model", { value: known.includes(sizes) ? sizes : "" });
    for (const name of typed) {
      if (document.activeElement !== view.part(name)) view.put(name, { value: s[name] });
    }
    view.put("width_field", { hidden: s.kind !== "window" });
    view.put("group_field", { hidden: s.kind !== "grouped" });
    view.put("weights", { textContent: amount(found.weights, "B") });
    view.put("cache", { textContent: amount(found.cache, "B") });
    view.put("flops", { textContent: amount(totalOf(found), "") });
    view.put("longest", { textContent: amount(longest(s), "", true) });
    const instead = { blockwise: ", of which one block is held", linear: ": a sum in place of A" }[s.kind];
    view.put("instead", { textContent: instead ?? "" });
    view.put("share", { textContent: `${((100 * found.attention) / totalOf(found)).toFixed(0)} %` });
    const fits = held(found) <= s.memory * 1e9;
    view.put("fits", { textContent: fits ? "this text does" : "this text does not" });

    // Only for the ear: wait until the slider rests.
    view.later(() => {
      const table = view.part("table");
      const [, ...rows] = table.rows;
      rows.forEach(({ cells }, i) => {
        const there = costs({ ...s, n: STOPS[4 * i] });
        cells[1].textContent = amount(there.weights, "B");
        cells[2].textContent = amount(there.cache, "B");
        cells[3].textContent = amount(totalOf(there), "");
        cells[4].textContent = held(there) <= s.memory * 1e9 ? "yes" : "no";
      });
      const chosen = view.part("kind").selectedOptions[0].textContent;
      table.caption.textContent = `${chosen}: memory and work`;
    });
  }

  const view = mount(model, el, draw);
  const on = (name, event, handle) => view.part(name).addEventListener(event, handle);
  const take = (changes) => {
    view.set(changes);
    view.say("");
  };
  on("n", "input", (event) => take({ n: STOPS[event.target.value] }));
  on("kind", "change", (event) => take({ kind: event.target.value }));
  on("bytes", "change", (event) => take({ bytes: Number(event.target.value) }));
  on("model", "change", (event) => {
    if (!event.target.value) return view.redraw(); // "your own" is what the sizes say, not a choice
    const [d_model, n_heads, n_layers] = event.target.value.split(" ").map(Number);
    const { group } = state();
    take({ d_model, n_heads, n_layers, group: n_heads % group ? 1 : group });
  });
  for (const name of typed) {
    on(name, "change", (event) => {
      const wrong = complaint(state(), name, event.target.value);
      if (!wrong) return take({ [name]: Number(event.target.value) });
      view.say(wrong);
      event.target.value = model.get(name);
    });
  }
  on("copy", "click", () => copy(view, numpyCode(state())));
  on("reset", "click", () => {
    for (const name of typed) view.part(name).value = start[name];
    take(start);
  });
  return view.end;
}

export default { render };
