/**
 * PositionsExplorer: one word at 64 positions; what each kind of position does to its scores.
 */
import { copy, dotProducts, mount } from "./core.js";

const N = 64; // positions, and words in the sentence
const N_HEADS = 8;
const REACH = 8; // the largest offset in the table of the relative bias
const TRAITS = ["kind", "position", "d_model", "base", "head"];
const KINDS = ["none", "sinusoidal", "rotary", "alibi", "relative"];
const USES = { none: [], sinusoidal: ["d_model", "base"], rotary: ["d_model", "base"], alibi: ["head"], relative: ["head"] };

/** Each of the three drawings, in units of a 240 x 238 sheet. The still picture in Python uses the same ones. */
const SHEET = { left: 38, top: 10, size: 192, side: 3, pad: 6, shades: 16 };

const places = Array.from({ length: N }, (_, p) => p);
const heads = places.slice(0, N_HEADS);
const isBiased = (kind) => kind === "alibi" || kind === "relative";

/** What a head adds to a score whose key stands `offset` after the query. Eqs. (6) and (7), chapter 7. */
function added(kind, head, offset) {
  if (kind === "alibi") return -(2 ** -(head + 1)) * Math.abs(offset);
  if (kind === "relative") return 2 - Math.abs(Math.max(-REACH, Math.min(REACH, offset)) + head + 1) / 2;
  return 0;
}

/** The dot product of rows at each offset from -63 to 63, for rows that only the offset tells apart. */
function byOffset(rows, d) {
  const [first, last] = dotProducts([rows[0], rows[N - 1]], rows, d);
  return [...last, ...first.slice(1)];
}

/** Everything that follows from the traits; the numbers that attnlib gives in Python. */
export function compute({ kind, d_model, base, head }) {
  const angles = (p) => Array.from({ length: d_model / 2 }, (_, i) => p / base ** ((2 * i) / d_model));
  const pairs = {
    sinusoidal: (angle) => [Math.sin(angle), Math.cos(angle)],
    rotary: (angle) => [Math.cos(angle), Math.sin(angle)], // (1, 0) turned
  }[kind];
  const encoding = places.map((p) => angles(p).flatMap(pairs ?? (() => [0, 0])));
  const size = 1 / Math.sqrt(d_model / 2);
  const word = Array.from({ length: d_model }, (_, k) => (k % 2 ? 0 : size));
  const words = encoding.map((row) =>
    kind === "rotary" ? row.map((x) => size * x) : row.map((x, k) => word[k] + x),
  );
  const biases = heads.map((h) => Array.from({ length: 2 * N - 1 }, (_, at) => added(kind, h, at + 1 - N)));
  const scores = dotProducts(words, words, d_model).map((row, i) =>
    row.map((score, j) => score + biases[head][j - i + N - 1]),
  );
  const similarity = isBiased(kind) ? biases[head] : byOffset(kind === "sinusoidal" ? encoding : words, d_model);
  return { encoding, word, biases, scores, similarity };
}

/** Two decimals, with a true minus and no minus before 0.00. */
function two(x) {
  // Half up, also where rounding has left a half a little short.
  const size = (Math.floor(Math.abs(x) * 100 + 0.5 + 1e-9) / 100).toFixed(2);
  return (x < 0 && size !== "0.00" ? "−" : "") + size;
}

const whole = (x) => String(x).replace("-", "−");
const plain = (x, digits) => String(Number(x.toPrecision(digits)));
const short = (x) => String(Number(x.toFixed(4)));
const least = (rows) => Math.min(...rows.flat());
const most = (rows) => Math.max(...rows.flat());

/** What the picked position adds to its scores: a row for each head. */
const blockOf = ({ position }, { biases }) => biases.map((row) => row.slice(N - 1 - position, 2 * N - 1 - position));

/** Every text that follows the traits, by the name of its part. */
export function said(s, now) {
  const { kind, position: p, d_model, base, head } = s;
  const slope = `1/${2 ** (head + 1)}`;
  const row = now.encoding[p];
  const some = row.slice(0, 4).map(two).join(", ") + (row.length > 4 ? ", …" : "");
  const range = (rows) => `Pale is ${two(least(rows))}, strong is ${two(most(rows))}.`;
  const score = (q) => (now.scores[p][q] === undefined ? "–" : two(now.scores[p][q]));
  return {
    position_value: String(p),
    d_model_value: String(d_model),
    base_value: plain(base, 6),
    head_value: `${head + 1} of ${N_HEADS}`,
    asks: `Scores of position ${p} with position`,
    before: score(p - 1),
    itself: score(p),
    after: score(p + 1),
    itself_at: `${p}, itself`,
    before_at: p ? String(p - 1) : "none before",
    after_at: p < N - 1 ? String(p + 1) : "none after",
    verdict: {
      none: "All scores are equal: attention cannot tell the places apart.",
      sinusoidal: "The scores follow the distance, but drift along each diagonal: places meet the word, too.",
      rotary: "Each diagonal holds one score: only the distance counts.",
      alibi: `Each diagonal holds one score: each step away takes off ${slope}, on either side.`,
      relative: `Each diagonal holds one score, and before is not after. Beyond ${REACH} steps nothing changes.`,
    }[kind],
    encoding_title: {
      none: "Nothing added",
      sinusoidal: "Added to the word",
      rotary: "Each pair, turned",
      alibi: "Added to a row of scores",
      relative: "Added to a row of scores",
    }[kind],
    similarity_title: {
      none: "Score against the offset",
      sinusoidal: "PE(p) · PE(p + k)",
      rotary: "Score against the offset",
      alibi: "Added at each offset",
      relative: "Added at each offset",
    }[kind],
    scores_title: `Scores of one word, ${N} times`,
    encoding_note: {
      none: "The word is the same at every position.",
      sinusoidal: `PE(${p}) = (${some}). Pale is −1, strong is 1.`,
      rotary: `First pair: ${p} radians. Last: ${plain(p / base ** ((d_model - 2) / d_model), 3)}. Each starts at the right.`,
      alibi: `Each head has its own slope. ${range(blockOf(s, now))}`,
      relative: `A made-up table, not a learned one. ${range(blockOf(s, now))}`,
    }[kind],
    similarity_note: `Offset k: key minus query. Bold is what position ${p} can reach.`,
    scores_note: kind === "none" ? "Every score is 1.00." : `Without positions: 1.00. ${range(now.scores)}`,
    spoken: `Encoding of position ${p}: ${row.map(two).join(", ")}.`,
  };
}

/** The cells of a heatmap: a stroke along each run of equal steps, one path for each step. */
function heat(name, rows) {
  const { left, top, size, shades } = SHEET;
  const paths = new Array(shades + 1).fill("");
  rows.forEach((row, i) => {
    const steps = row.map((shade) => Math.floor(shade * shades + 0.5));
    let start = 0;
    for (let j = 1; j <= steps.length; j++) {
      if (steps[j] === steps[start]) continue;
      paths[steps[start]] += `M${start} ${i}h${j - start}`;
      start = j;
    }
  });
  const [across, down] = [size / rows[0].length, size / rows.length];
  // A stroke runs along the middle of its row and is as wide as the row is high.
  const transform = `translate(${left} ${short(top + down / 2)}) scale(${across.toFixed(4)} ${short(down)})`;
  const marks = { [`${name}_cells`]: { transform } };
  for (let step = 1; step <= shades; step++) marks[`${name}_${step}`] = { d: paths[step] }; // nothing is drawn for 0
  return marks;
}

/** What stands beside a heatmap, the frame of its picked row, and the row's number in place of one at an end. */
function names(name, [rows, first, last, columns, lastColumn], row, side, label) {
  const { left, top, size } = SHEET;
  const y = top + row * side;
  const middle = y + side / 2;
  const texts = {
    rows, columns, first: "0", last: lastColumn,
    top: middle < top + 18 ? "" : first,
    bottom: middle > top + size - 18 ? "" : last,
  };
  const at = Math.min(Math.max(middle + 4, top + 9), top + size);
  return {
    ...Object.fromEntries(Object.entries(texts).map(([part, text]) => [`${name}_${part}`, { text }])),
    [`${name}_row`]: { d: `M${left} ${short(y - 0.75)}h${size}v${short(side + 1.5)}h-${size}z` },
    [`${name}_here`]: { text: label, y: at.toFixed(1) },
  };
}

/** A clock for each pair, its hand turned as the picked position turns the pair. */
function clocksOf({ kind, position, d_model }, { encoding }) {
  if (kind !== "rotary") return { clocks: { d: "" }, hands: { d: "" } };
  const { left, top, size } = SHEET;
  const pairs = d_model / 2;
  const columns = Math.ceil(Math.sqrt(pairs));
  const side = size / columns;
  const above = top + (size - side * Math.ceil(pairs / columns)) / 2;
  const radius = 0.42 * side;
  const [r, f] = [radius.toFixed(2), (x) => x.toFixed(2)];
  let [clocks, hands] = ["", ""];
  for (let i = 0; i < pairs; i++) {
    const x = left + ((i % columns) + 0.5) * side;
    const y = above + (Math.floor(i / columns) + 0.5) * side;
    const [cos, sin] = encoding[position].slice(2 * i, 2 * i + 2);
    clocks += `M${f(x + radius)} ${f(y)}a${r} ${r} 0 1 0 ${f(-2 * radius)} 0`;
    clocks += `a${r} ${r} 0 1 0 ${f(2 * radius)} 0h-${f(0.3 * radius)}`;
    hands += `M${f(x)} ${f(y)}l${f(radius * cos)} ${f(-radius * sin)}`;
  }
  return { clocks: { d: clocks }, hands: { d: hands } };
}

/** The similarity against the offset, and that of the other heads. */
function curvesOf({ kind, position: p, d_model }, { similarity, biases }) {
  const { left, top, size, pad } = SHEET;
  const [low, high] = { sinusoidal: [-d_model / 2, d_model / 2], alibi: [-32, 0], relative: [-6, 2] }[kind] ?? [-1, 1];
  const y = (value) => top + pad + ((size - 2 * pad) * (high - value)) / (high - low);
  const x = (offset) => left + (size * (offset + N - 1)) / (2 * N - 2);
  const path = (values, first = 1 - N) =>
    "M" + values.map((value, at) => `${x(first + at).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
  const tick = (value, text) => ({ text, y: (y(value) + 4).toFixed(1) });
  return {
    zero: { d: `M${left} ${y(0).toFixed(1)}h${size}` },
    others: { d: isBiased(kind) ? biases.map((row) => path(row)).join("") : "" },
    curve: { d: path(similarity) },
    reach: { d: path(similarity.slice(N - 1 - p, 2 * N - 1 - p), -p) },
    high: tick(high, whole(high)),
    level: tick(0, low < 0 && 0 < high ? "0" : ""),
    low: tick(low, whole(low)),
  };
}

/** The attributes of each moving part of the drawings; "text" is what it says. */
export function marks(s, now) {
  const { kind, position, d_model, head } = s;
  const scale = (rows) => {
    const [low, high] = [least(rows), most(rows)];
    return rows.map((row) => row.map((x) => (high - low < 1e-9 ? 0.5 : (x - low) / (high - low))));
  };
  const ends = ["0", String(N - 1)];
  const drawn = {
    ...heat("scores", scale(now.scores)),
    ...names("scores", ["query at position", ...ends, "key at position", ends[1]], position, SHEET.side, String(position)),
    ...clocksOf(s, now),
    ...curvesOf(s, now),
  };
  if (kind === "sinusoidal") {
    const labels = ["position", ...ends, "dimension", String(d_model - 1)];
    Object.assign(drawn, heat("encoding", now.encoding.map((row) => row.map((x) => (x + 1) / 2))));
    Object.assign(drawn, names("encoding", labels, position, SHEET.side, String(position)));
  } else if (isBiased(kind)) {
    const labels = ["head", "1", String(N_HEADS), "key at position", ends[1]];
    Object.assign(drawn, heat("encoding", scale(blockOf(s, now))));
    Object.assign(drawn, names("encoding", labels, head, SHEET.size / N_HEADS, String(head + 1)));
  } else {
    Object.assign(drawn, heat("encoding", places.map(() => [0])));
    for (const part of ["rows", "top", "bottom", "columns", "first", "last"]) drawn[`encoding_${part}`] = { text: "" };
    Object.assign(drawn, { encoding_row: { d: "" }, encoding_here: { text: "", y: "0" } });
  }
  return drawn;
}

/** Runnable NumPy for what is on the screen. */
export function numpyCode({ kind, position, d_model, base, head }) {
  const angles = "angles = np.arange(n)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)";
  const offset = "offset = np.arange(n) - np.arange(n)[:, None]  # key minus query";
  const before = {
    sinusoidal: [
      angles,
      "encoding = np.empty((n, d_model))",
      "encoding[:, 0::2], encoding[:, 1::2] = np.sin(angles), np.cos(angles)",
      "words = words + encoding",
    ],
    rotary: [
      angles,
      "cos, sin, even, odd = np.cos(angles), np.sin(angles), words[:, 0::2], words[:, 1::2]",
      "words = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(n, d_model)",
    ],
  }[kind];
  const after = {
    alibi: [offset, "slopes = 2.0 ** -np.arange(1, 9)  # one a head", "bias = -slopes[:, None, None] * abs(offset)"],
    relative: [
      offset,
      "table = 2 - abs(np.arange(-8, 9) + np.arange(8)[:, None] + 1) / 2  # made up, not learned",
      "bias = table[:, np.clip(offset, -8, 8) + 8]",
    ],
  }[kind];
  return [
    "import numpy as np",
    "",
    `n, d_model, position = ${N}, ${d_model}, ${position}`,
    ...(before ? [`base = ${base}`] : []),
    "word = np.tile([1.0, 0.0], d_model // 2) / np.sqrt(d_model / 2)  # of length 1",
    "words = np.tile(word, (n, 1))  # the same at every position",
    ...(before ?? []),
    "# Queries and keys are words * d_model ** 0.25, which the division by sqrt(d_model) takes back.",
    "scores = words @ words.T",
    ...(after ? [...after, `scores = scores + bias[${head}]`] : []),
    'print("scores of the word at position", position)',
    "print(scores[position].round(2))",
  ];
}

function render({ model, el }) {
  const state = () => Object.fromEntries(TRAITS.map((trait) => [trait, model.get(trait)]));
  const start = state();
  let stops;

  /** Sets attributes that differ. */
  const give = (element, attributes) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
    }
  };

  function draw(view) {
    const s = state();
    const now = compute(s);
    const { spoken, ...texts } = said(s, now);
    for (const [name, { text, ...attributes }] of Object.entries(marks(s, now))) {
      give(view.part(name), attributes);
      if (text !== undefined) view.put(name, { textContent: text });
    }
    for (const [name, text] of Object.entries(texts)) view.put(name, { textContent: text });

    for (const kind of KINDS) give(view.part(kind), { "aria-pressed": kind === s.kind });
    stops ??= view.part("base").dataset.stops.split(" ").map(Number);
    const away = stops.map((stop) => Math.abs(Math.log(stop / s.base)));
    view.put("position", { value: s.position });
    view.put("d_model", { value: s.d_model });
    view.put("base", { value: away.indexOf(Math.min(...away)) });
    view.put("head", { value: s.head });
    for (const name of ["base", "head"]) give(view.part(name), { "aria-valuetext": texts[`${name}_value`] });
    for (const name of ["d_model", "base", "head"]) view.put(name, { disabled: !USES[s.kind].includes(name) });

    // Only for the ear: wait until the slider rests.
    view.later(() => {
      view.put("spoken", { textContent: spoken });
      const [, ...rows] = view.part("table").rows;
      rows.forEach(({ cells }, j) => {
        cells[1].textContent = whole(j - s.position);
        cells[2].textContent = two(now.similarity[j - s.position + N - 1]);
        cells[3].textContent = two(now.scores[s.position][j]);
      });
    });
  }

  const view = mount(model, el, draw);
  const on = (name, event, handle) => view.part(name).addEventListener(event, handle);
  for (const kind of KINDS) on(kind, "click", () => view.set({ kind }));
  for (const name of ["position", "d_model", "head"]) {
    on(name, "input", (event) => view.set({ [name]: Number(event.target.value) }));
  }
  on("base", "input", (event) => view.set({ base: stops[event.target.value] }));
  on("copy", "click", () => copy(view, numpyCode(state())));
  on("reset", "click", () => {
    view.set(start);
    view.say("");
  });
  return view.end;
}

export default { render };
