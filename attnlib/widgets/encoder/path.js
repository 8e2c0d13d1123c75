/**
 * Encoder, the view "path": one word of two sentences on its way through the layers, as two paths
 * in the plane in which they part.
 */
import { at, distance, placed, through } from "../drawing/geometry.js";
import { element, html, sheet, text } from "../kit/markup.js";
import { dot } from "../kit/numbers.js";
import { KINDS, pairOf, placesOf } from "./pair.js";
import { cosineText } from "./reading.js";

const scaled = (a, factor) => a.map((x) => x * factor);
const minus = (a, b) => a.map((x, k) => x - b[k]);
const size = (a) => Math.sqrt(dot(a, a));

/**
 * The direction in which most of these vectors lies, of length 1: of their dot products, powers of
 * two at a time.
 */
function mainDirection(vectors) {
  let grams = vectors.map((a) => vectors.map((b) => dot(a, b)));
  for (let round = 0; round < 20; round++) {
    const trace = grams.reduce((sum, row, i) => sum + row[i], 0);
    if (!(trace > 0)) return scaled(vectors[0], 0);
    const small = grams.map((row) => scaled(row, 1 / trace));
    grams = small.map((row) =>
      small[0].map((_, j) => row.reduce((sum, x, k) => sum + x * small[k][j], 0)),
    );
  }
  // What is left is an outer product; its largest row says how much of each vector to take.
  const [parts] = grams
    .map((row) => [row, size(row)])
    .reduce((best, one) => (one[1] > best[1] ? one : best));
  const sum = vectors.reduce(
    (all, vector, i) => all.map((x, k) => x + parts[i] * vector[k]),
    scaled(vectors[0], 0),
  );
  return scaled(sum, 1 / size(sum));
}

/** One vector of a reading: of a token, after so many layers. */
function stateOf({ tokens, states }, layer, token) {
  const d = states[layer].length / tokens.length;
  return Array.from(states[layer].subarray(token * d, (token + 1) * d));
}

/**
 * The ways of two tokens, as `path` in views.py: `points` of all tokens by sentence and
 * layer, the `share` of the movement of the two that the plane shows, and their `cosines`.
 */
export function pathOf(readings, places) {
  const layers = readings[0].states.map((_, layer) => layer);
  const words = readings.map((reading, which) =>
    layers.map((layer) => stateOf(reading, layer, places[which])),
  );
  const last = layers.length - 1;
  const origin = words[0][0].map((x, k) => (x + words[1][0][k]) / 2);
  const moved = words.map((way) => way.map((vector) => minus(vector, origin)));
  const difference = minus(words[1][last], words[0][last]);
  const across = scaled(difference, size(difference) > 1e-6 ? 1 / size(difference) : 0);
  const rest = moved.map((way) =>
    way.map((vector) => minus(vector, scaled(across, dot(vector, across)))),
  );
  const found = mainDirection(rest.flat());
  const forth = rest.reduce((sum, way) => sum + dot(minus(way[last], way[0]), found), 0);
  const along = forth < 0 ? scaled(found, -1) : found;
  const project = (vector) => [dot(vector, along), dot(vector, across)];
  const all = (list) => list.flat().reduce((sum, vector) => sum + dot(vector, vector), 0);
  return {
    tokens: readings.map(({ tokens }) => tokens),
    at: places,
    points: readings.map((reading) =>
      layers.map((layer) =>
        reading.tokens.map((_, token) => project(minus(stateOf(reading, layer, token), origin))),
      ),
    ),
    share: all(moved.map((way) => way.map(project))) / (all(moved) || 1),
    cosines: layers.map((layer) => {
      const [a, b] = words.map((way) => way[layer]);
      return dot(a, b) / size(a) / size(b);
    }),
  };
}

/** The same from what was recorded, in whole hundredths, of all tokens or of the two alone. */
function unpacked({ tokens, at: places, points, share, cosines }) {
  const layer = (row, which) => {
    const pairs = row.flatMap((x, i) => (i % 2 ? [] : [[x / 100, row[i + 1] / 100]]));
    if (pairs.length > 1) return pairs;
    return Array.from(tokens[which], (_, i) => (i === places[which] ? pairs[0] : null));
  };
  return {
    tokens,
    at: places,
    points: points.map((layers, which) => layers.map((row) => layer(row, which))),
    share,
    cosines,
  };
}

const known = new WeakMap();

/** A path by what it follows from, found once. */
function kept(key, more, find) {
  if (!known.has(key)) known.set(key, []);
  const all = known.get(key);
  let one = all.find(({ like }) => like.every((x, i) => x === more[i]));
  if (!one) all.push((one = { like: more, found: find() }));
  return one.found;
}

const textsOf = ({ text, other }) => [text, other];
const recordedIn = ({ readings, word, ...s }) =>
  readings.find(
    (one) => one.texts && one.word === word && one.texts.every((text, i) => text === textsOf(s)[i]),
  );

/**
 * What there is to show: of the texts and the word that are chosen, else what was shown last; and
 * whether it is of these.
 */
export function standing(s, { readings, last }) {
  const current = readings.length === 2 && readings.every(isWhole);
  const recorded = recordedIn(s);
  if (recorded && !current)
    return {
      ...kept(recorded, [], () => unpacked(recorded)),
      texts: recorded.texts,
      current: true,
    };
  const pair = current ? readings : last?.length === 2 && last.every(isWhole) && last;
  if (!pair)
    return {
      ...kept(s.readings[0], [], () => unpacked(s.readings[0])),
      texts: s.readings[0].texts,
      current: false,
    };
  const find = () =>
    pathOf(
      pair,
      placesOf(
        pair.map(({ tokens }) => tokens),
        s.word,
      ),
    );
  return {
    ...kept(pair[0], [pair[1], s.word], find),
    texts: pair.map(({ text: own }) => own),
    current,
  };
}

const isWhole = (reading) => Boolean(reading?.states);

/** Where a token of a sentence is after `layer` layers, which may be on the way between two. */
export function placeAt(points, token, layer) {
  const [low, high] = [Math.floor(layer), Math.ceil(layer)];
  if (!points[low][token]) return null;
  return points[low][token].map((x, k) => x + (points[high][token][k] - x) * (layer - low));
}

// ------------------------------------------------------------------------------- the picture

const SHEET = { width: 400, height: 290, edge: 16, head: 26, foot: 26 };
const LEAST = 6; // units that are always on the sheet

/**
 * From points to places on the sheet: one scale for both directions, all tokens of all layers on
 * it.
 */
function scaleOf({ points }) {
  const all = points.flat(2).filter(Boolean);
  const range = (k) => {
    const [low, high] = [Math.min(...all.map((p) => p[k])), Math.max(...all.map((p) => p[k]))];
    const missing = Math.max(LEAST - (high - low), 0) / 2;
    return [low - missing, high + missing];
  };
  const [[left, right], [down, up]] = [range(0), range(1)];
  const { width, height, edge, head, foot } = SHEET;
  const unit = Math.min((width - 2 * edge) / (right - left), (height - head - foot) / (up - down));
  const [x, y] = [
    width / 2 - ((left + right) / 2) * unit,
    (height + head - foot) / 2 + ((up + down) / 2) * unit,
  ];
  return ([a, b]) => [x + a * unit, y - b * unit];
}

/**
 * A path: what is behind the picked layer strong, what is ahead of it faint, a number at each stop;
 * at the first if it `shows`.
 */
function way(points, token, layer, spot, kind, shows) {
  const stops = points.map((tokens) => spot(tokens[token]));
  const now = spot(placeAt(points, token, layer));
  const behind = stops.slice(0, Math.floor(layer) + 1);
  return element(
    "g",
    { class: `way ${kind}` },
    element("path", { d: through(stops), class: "ahead" }),
    element("path", { d: through([...behind, now]), class: "behind" }),
    stops.map(
      ([x, y], i) =>
        (i > 0 || shows) &&
        element(
          "g",
          { class: i > layer ? "stop later" : "stop", "data-layer": i },
          element("circle", { cx: x, cy: y, r: 8 }),
          element("text", { x, y: y + 4.5 }, i),
        ),
    ),
  );
}

/** How wide a word is about, in units of the sheet. */
const wide = (word) => 7 * Array.from(word).length + 4;

/**
 * Names without those in a crowd, but with what `kind` makes important: a point says its own when
 * it is touched.
 */
const readable = (names) =>
  names.filter(
    ({ x, y, size: [w], kind }, i) =>
      kind ||
      !names
        .slice(0, i)
        .some((one) => Math.abs(one.x - x) < (one.size[0] + w) / 2 && Math.abs(one.y - y) < 10),
  );

/**
 * The sheet: two paths, the other words of both sentences as small points, and what the directions
 * are.
 */
function plane(found, layer, lit, label) {
  const { tokens, at: places, points } = found;
  const spot = scaleOf(found);
  const spots = points.map((layers, which) =>
    tokens[which]
      .map((_, token) => placeAt(layers, token, layer))
      .map((point) => point && spot(point)),
  );
  const ways = points.map((layers, which) => layers.map((all) => spot(all[places[which]])));
  const now = places.map((place, which) => spots[which][place]);
  const others = spots.map((list, which) =>
    list.flatMap((point, i) => (point && i !== places[which] ? [{ point, i, which }] : [])),
  );
  const named = ({ i, which }) =>
    !tokens[1 - which].includes(tokens[which][i]) || lit === `${which},${i}`;
  const labels = [
    ...now.map((point, which) => ({
      name: tokens[which][places[which]],
      point,
      kind: `word ${KINDS[which]}`,
      gap: 13,
      way: [0, which ? -1 : 1],
    })),
    ...others
      .flat()
      .filter(named)
      .map(({ point, i, which }) => ({
        name: tokens[which][i],
        point,
        kind: lit === `${which},${i}` ? "lit" : false,
        gap: 5,
        way: [-0.7, which ? -0.7 : 0.7],
      })),
  ].map((one) => ({ ...one, size: [wide(one.name), 14] }));
  const taken = [
    ...ways.flat().map(([x, y]) => [x, y, 7]),
    ...others.flat().map(({ point: [x, y] }) => [x, y, 3]),
  ];
  const names = placed(labels, taken, [SHEET.width, SHEET.height - SHEET.foot]).map(
    ([x, y], i) => ({ x, y, ...labels[i] }),
  );
  const { width, height } = SHEET;
  return sheet(
    "plane",
    width,
    height,
    label,
    element("path", { d: `M4 20V${height - 22}H${width - 4}`, class: "axes" }),
    text("↑ difference at the end", 2, 13),
    text("shared movement →", width - 2, height - 6, "muted", { "text-anchor": "end" }),
    element("path", {
      d: ways[0].map((from, i) => through([from, ways[1][i]])).join(""),
      class: "ties",
    }),
    element("path", { d: through(now), class: "tie" }),
    element(
      "g",
      { class: "others" },
      others
        .flat()
        .map(({ point: [cx, cy], i, which }) =>
          element("circle", { cx, cy, r: 3.2, class: KINDS[which], "data-dot": `${which},${i}` }),
        ),
    ),
    [0, 1].map((which) =>
      way(
        points[which],
        places[which],
        layer,
        spot,
        KINDS[which],
        !which || distance(ways[0][0], ways[1][0]) > 1,
      ),
    ),
    element(
      "g",
      { class: "now" },
      now.map(([cx, cy]) => element("circle", { cx, cy, r: 11 })),
    ),
    element(
      "g",
      { class: "names" },
      readable(names).map(({ x, y, name, kind }) =>
        element("text", { x, y: y + 4.5, class: kind }, name),
      ),
    ),
  );
}

/**
 * The layers as buttons in a row, each with the cosine of the two words, which a curve above draws.
 */
function steps({ cosines }, layer) {
  const low = Math.min(0.8, ...cosines);
  const spots = cosines.map((cosine, i) => [10 * i + 5, 4 + (24 * (1 - cosine)) / (1 - low)]);
  const all = {
    viewBox: `0 0 ${10 * cosines.length} 32`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
    class: "curve",
  };
  const stops = spots.map((one) => `M${at(one)}h0`).join("");
  const button = (cosine, i) => {
    const picked = i === layer;
    const place = i ? `after layer ${i}` : "before the first layer";
    const attributes = {
      type: "button",
      "aria-label": `${i} ${cosineText(cosine)}: cosine ${place}`,
      "aria-pressed": String(picked),
      tabindex: picked ? 0 : -1,
    };
    const content = html`<b>${i}</b> <span>${cosineText(cosine)}</span>`;
    return html`<td>${element("button", attributes, content)}</td>`;
  };
  return html`<div class="layers"><p class="note">Their cosine after 0, 1, … ${cosines.length - 1}
layers</p>
${element(
  "svg",
  all,
  element("path", { d: through(spots) }),
  element("path", { d: stops, class: "stops" }),
)}
<table role="grid" aria-label="Layers"
data-part="layers"><tr>${cosines.map(button)}</tr></table></div>`;
}

const after = (layer) => (layer ? html`After layer <b>${layer}</b>` : "Before the first layer");

/** In words: how alike the two are, and how far this plane is to be trusted. */
function telling(s, found) {
  const [a, b] = found.at.map((place, which) => found.tokens[which][place]);
  const cosine = found.cosines[s.after];
  const same = s.after === 0 && cosine > 0.99999;
  return html`<p class="said" role="status" data-part="said">${element(
    "span",
    { "data-key": `${s.after},${found.at},${found.texts}` },
    html`${after(s.after)}, <b class="mark first">${a}</b> and <b class="mark second">${b}</b> have
the cosine <b class="number">${cosineText(cosine)}</b>.
${same ? "Both start at one point: the same word at the same place." : ""}`,
  )}</p>`;
}

/** The picture for those who do not see it. */
function description({ tokens, at: places, cosines }) {
  const [a, b] = places.map((place, which) => tokens[which][place]);
  return (
    `The ways of ${a} and ${b} through the layers; their cosine after 0 to ` +
    `${cosines.length - 1} layers: ${cosines.map(cosineText).join(", ")}`
  );
}

const TRIES = [
  ["fish", "We walked to the bank to catch fish."],
  ["boats", "We walked to the bank to watch the boats."],
  ["an account: money too", "We walked to the bank to open an account."],
];

export const path = {
  label: "The way of a word through the layers of an encoder",
  pageState: { dot: null, stepping: false },

  fields: () => [
    { name: "text", label: "One sentence" },
    { name: "other", label: "Another one", tries: TRIES },
  ],

  wants: (s) =>
    recordedIn(s) && !s.on
      ? []
      : textsOf(s)
          .filter((text) => text.trim())
          .map((text) => ({ text, hidden: [] })),

  fits: ({ tokens }) =>
    tokens.length > MOST
      ? `${tokens.length} tokens are too many to draw: take sentences of ${MOST} at most.`
      : "",

  pose: (s) => [s.after],

  picture(s, now) {
    const found = standing(s, now);
    const layer = s.moving ? s.moving[0] : s.after;
    const share = Math.round(100 * found.share);
    return [
      pairOf(found),
      html`<div class="ways${found.current ? "" : " stale"}">${plane(
        found,
        layer,
        s.dot,
        description(found),
      )}</div>`,
      html`<div class="measured">${steps(found, s.after)}<p class="play"><button type="button"
name="play">${s.stepping ? "Stop" : "Through the layers"}</button></p>
${telling(s, found)}</div>`,
      html`<p class="note">The vectors have 384 numbers, the picture shows two directions. Up: the
direction from the one final vector to the other. Across: the direction of most of the remaining
movement. Together the two directions contain <b>${share}%</b> of the squared movement. Small
points: the other tokens.</p>`,
    ];
  },

  code(s, now) {
    const {
      at: [i, j],
      texts,
      cosines,
      tokens,
    } = standing(s, now);
    const name = tokens[0][i];
    const difference = cosines.at(-1) < 1 - 1e-9;
    return [
      "import numpy as np",
      "from attnlib import models",
      "",
      "minilm = models.load_minilm()",
      `first = minilm.read(${JSON.stringify(texts[0])})`,
      `second = minilm.read(${JSON.stringify(texts[1])})`,
      `a, b = first.states[:, ${i}], second.states[:, ${j}]  # ${JSON.stringify(name)}, before ` +
        `and after each layer`,
      "moved = np.stack([a, b]) - (a[0] + b[0]) / 2",
      difference
        ? "across = (b[-1] - a[-1]) / np.linalg.norm(b[-1] - a[-1])  # the difference at the end"
        : "across = np.zeros_like(a[0])  # nothing parts them",
      "rest = moved - (moved @ across)[..., None] * across",
      "along = np.linalg.svd(rest.reshape(-1, rest.shape[-1]))[2][0]  # shared movement",
      "along *= np.sign((rest[:, -1] - rest[:, 0]).sum(axis=0) @ along)",
      "points = moved @ np.stack([along, across], axis=1)  # two ways, a point for each layer",
      "share = (points**2).sum() / (moved**2).sum()",
      "cosines = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)",
      "print(cosines.round(2))",
      "print(points.round(1))",
      'print(f"{share:.0%} of the movement lies in this plane")',
    ];
  },

  live(view) {
    let timer = 0;
    const stop = () => {
      clearTimeout(timer);
      if (view.state().stepping) view.set({ stepping: false });
    };
    const to = (layer) => view.glide({ after: layer });
    const pick = (layer) => {
      stop();
      to(layer);
    };
    view.grid("layers", (_, layer) => pick(layer));
    view.on("layers", "click", (event) => {
      const cell = event.target.closest("td");
      if (cell) pick(cell.cellIndex);
    });
    const step = () => {
      const { after: layer, stepping } = view.state();
      if (!stepping || !view.root.isConnected) return;
      if (layer === LAST) return view.set({ stepping: false });
      to(layer + 1);
      timer = setTimeout(step, PACE);
    };
    view.on("play", "click", () => {
      if (view.state().stepping) return stop();
      view.set({ stepping: true, after: 0 });
      timer = setTimeout(step, PACE);
    });
    view.listen(view.root, "click", (event) => {
      const word = event.target.closest("[data-word]")?.dataset.word;
      if (word) view.set({ word });
    });
    /** The small point that is nearest to the pointer, if one is near. */
    const point = (event) => {
      const svg = view.part("plane");
      const box = svg.getBoundingClientRect();
      const pointer = [event.clientX - box.left, event.clientY - box.top].map(
        (far) => (far * SHEET.width) / box.width,
      );
      const far = (one) => distance(pointer, [one.getAttribute("cx"), one.getAttribute("cy")]);
      const [best] = Array.from(svg.querySelectorAll("[data-dot]")).sort(
        (one, other) => far(one) - far(other),
      );
      const dot = best && far(best) < NEAR ? best.dataset.dot : null;
      if (dot !== view.state().dot) view.set({ dot });
    };
    view.on("plane", "pointermove", point);
    view.on("plane", "click", (event) => {
      const layer = event.target.closest("[data-layer]")?.dataset.layer;
      if (layer) pick(Number(layer));
      else point(event);
    });
    view.listen(
      view.root,
      "pointerout",
      (event) => event.target.closest("svg") && view.state().dot && view.set({ dot: null }),
    );
  },
};

const MOST = 64; // tokens
const LAST = 6;
const PACE = 900; // milliseconds from layer to layer
const NEAR = 12; // units of the sheet
