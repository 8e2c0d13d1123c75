/** How Plane draws a pose: a fixed ground with the axes, and above it the parts that move. */
import {
  along,
  arrow,
  at,
  band,
  curvedArrow,
  direction,
  distance,
  hullOf,
  placed,
  through,
} from "../drawing/geometry.js";
import { attributes, element, html, text } from "../kit/markup.js";
import { clamp, plain } from "../kit/numbers.js";
import {
  queryPlace,
  attend,
  axesOf,
  chainOf,
  poseOf,
  SCENES,
  shownIn,
  tokenAt,
  tokensOf,
  valuesIn,
} from "./numbers.js";

const SIDE = 320; // of the sheet
const THICK = 20; // a line that has all the weight
const GAP = 1.2; // between lines side by side
const BEND = 0.36; // of an arrow, as a part of its length
const EDGE = 9; // handles stay this far from the edge of the sheet
const TIE = 0.02; // words that are closer share a place

const two = (x) => plain(Number(x.toFixed(2)));
const n1 = (x) => Number(x.toFixed(1));

/** From the plane to the sheet, and back. */
export function sheetOf(scene) {
  const { unit, left, floor, low, high } = SCENES[scene].sheet;
  return {
    unit,
    low,
    high,
    px: ([x, y]) => [left + unit * x, floor - unit * y],
    spot: (svg, { clientX, clientY }) => {
      const box = svg.getBoundingClientRect();
      const [x, y] = [clientX - box.left, clientY - box.top].map((d) => (d * SIDE) / box.width);
      return [(x - left) / unit, (floor - y) / unit];
    },
  };
}

const BALANCE = { beam: 86, unit: 84, tall: 46, high: 122, wide: 30 }; // the prices as a beam

const BOX = `0 0 ${SIDE} ${SIDE}`;

/** What stands still: a dot at each whole pair, and the axes with their names. */
export function ground(s) {
  const { scene } = s;
  const { px, low, high } = sheetOf(scene);
  const whole = Array.from({ length: 9 }, (_, i) => i - 4).filter(
    (x) => x > low - 0.4 && x < high + 0.2,
  );
  const dots = whole.flatMap((x) => whole.map((y) => `M${at(px([x, y]))}h0`)).join("");
  const [x0, y0] = px([0, 0]);
  const [right, top] = [SIDE - 4, 6];
  // Where words may be anywhere, axes go both ways.
  const from = low < -1 ? px([low, low]) : [x0, y0];
  const tips =
    `M${x0 - 4} ${top + 8}L${x0} ${top - 1}L${x0 + 4} ${top + 8}Z` +
    `M${right - 8} ${y0 - 4}L${right} ${y0}L${right - 8} ${y0 + 4}Z`;
  return html`<div class="picture ground" aria-hidden="true"><svg viewBox="${BOX}">
<path class="grid" d="${dots}"/>
<path class="axis" d="M${x0} ${top + 6}V${from[1]}M${from[0]} ${y0}H${right - 6}"/>
<path class="tip" d="${tips}"/>
${axisNames(s)}</svg></div>`;
}

/** How far below its axis the first name is: own words have a ring that may reach there. */
const below = (s) => (s.scene === "words" ? 38 : 16);

/** The names of the axes; those of the sentences with a picture each. */
function axisNames(s) {
  const axes = axesOf(s);
  const { sheet, drawn } = SCENES[s.scene];
  const end = { "text-anchor": "end" };
  if (!drawn)
    return [
      text(axes[1], sheet.left + 9, 14),
      text(axes[0], SIDE - 2, sheet.floor + below(s), "muted", end),
    ];
  return html`<g class="icon"><ellipse cx="78" cy="7" rx="6" ry="2.4"/><path
d="M72 7v7a6 2.4 0 0 0 12 0v-7M72 10.5a6 2.4 0 0 0 12 0"/>
<path d="M220 305q3 -3.4 6 0t6 0t6 0M220 310q3 -3.4 6 0t6 0t6 0"/></g>
${text(axes[1], 90, 14)}${text(axes[0], SIDE - 4, 311, "muted", end)}`;
}

/** The point nearest to b on the way from a that is on the sheet: a handle must be in sight. */
function within(a, b) {
  const edge = (k) => (b[k] < EDGE ? EDGE : SIDE - EDGE);
  const part = Math.min(
    1,
    ...b.map((c, k) => (c < EDGE || c > SIDE - EDGE ? (edge(k) - a[k]) / (c - a[k]) : 1)),
  );
  return a.map((c, k) => c + part * (b[k] - c));
}

/** Everything that the moving drawing needs, with places in units of the sheet. */
function drawingData(s) {
  const now = s.moving ?? poseOf(s);
  const tokens = tokensOf(s);
  const priced = "prices" in SCENES[s.scene];
  const queryIndex = priced ? -1 : tokenAt(s, queryPlace(s));
  const attention = attend(now, valuesIn(s));
  const { px, unit } = sheetOf(s.scene);
  return {
    s,
    now,
    tokens,
    queryIndex,
    attention,
    px,
    unit,
    priced,
    points: now[0],
    present: now[1],
    from: now[2],
    origin: px([0, 0]),
    tip: within(px([0, 0]), px(attention.query)),
    queryWord: tokens[queryIndex]?.word,
    picked: tokenAt(s, s.pointed),
    here: px(now[2]),
    there: priced ? px(now[2]) : px(attention.output),
    links: priced ? [] : chainOf(now[0], attention.weights, queryIndex).map((link) => link.map(px)),
    selfWeight: attention.weights.reduce(
      (sum, weight, j) => sum + weight * clamp(1 - distance(now[0][j], now[2]) / 0.25, 0, 1),
      0,
    ),
  };
}

/** What moves; `label` is its accessible name. */
export function moving(s, label) {
  const m = drawingData(s);
  return html`<div class="picture${SCENES[s.scene].next || s.compact ? " first-sight" : ""}"><svg
viewBox="${BOX}" role="group" aria-label="${label}" data-part="sheet">
<g class="blend">${m.priced || hulls(m)}${lines(m)}${
    s.trail && !m.priced && trail(m)
  }${m.priced || movements(m)}</g>
${turnedQuery(m)}${words(m)}${handle(m)}
<g class="names" aria-hidden="true">${names(m)}</g></svg></div>`;
}

const path = (kind, d, more = {}) => d && element("path", { class: kind, d, ...more });

/** The convex hull of the words; while one sentence turns into the other, the hulls of both. */
function hulls({ points, present, px }) {
  const around = (keep) => `${through(hullOf(points.filter((_, j) => keep(j))).map(px))}Z`;
  const comes = [...present.keys()].filter((j) => present[j] > 0 && present[j] < 1);
  const both = comes.length ? 4 * present[comes[0]] * (1 - present[comes[0]]) : 1;
  return [
    comes.map((j) =>
      path(
        "hull",
        around((k) => present[k] === 1 || k === j),
        { opacity: present[j] },
      ),
    ),
    path(
      "hull",
      around((j) => present[j] > 0),
      { opacity: both < 1 && both },
    ),
  ];
}

/** Where the line of each token starts and ends: side by side where words share a place. */
function places({ points, present, attention, here, px }) {
  return points.map((point, j) => {
    const there = px(point);
    const group = [...points.keys()].filter(
      (i) => distance(points[i], point) < TIE && present[i] > 0,
    );
    const room = (list) => list.reduce((sum, i) => sum + THICK * attention.weights[i] + GAP, 0);
    const aside =
      room(group.filter((i) => i < j)) + (THICK * attention.weights[j] + GAP - room(group)) / 2;
    const { unit } = direction(here, there);
    return [along(here, unit, 0, aside), along(there, unit, 0, aside)];
  });
}

/**
 * Lines as thick as the weights, a ring for the weight that the query gives its word itself, and
 * the weighted values, tip to tail.
 */
function lines(m) {
  const { points, present, from, attention, here, origin, picked, priced, selfWeight, links, px } =
    m;
  const ends = places(m);
  const bands = ends.map(([a, b], j) =>
    present[j] > 0 ? band(a, b, THICK * attention.weights[j]) : "",
  );
  const r = 8 + (THICK * selfWeight) / 2;
  const ring = (kind) =>
    element("circle", {
      class: kind,
      cx: n1(here[0]),
      cy: n1(here[1]),
      r,
      "stroke-width": THICK * selfWeight,
    });
  return [
    html`<g class="lines">${path("band", bands.join(""))}${selfWeight > 0.001 && ring("ring")}</g>`,
    picked >= 0 &&
      (distance(points[picked], from) < 0.1
        ? ring("ring picked")
        : path("band picked", bands[picked])),
    picked >= 0 && !priced && path("whole", arrow(origin, px(points[picked]))),
    path("chain", links.map((link) => arrow(...link)).join("")),
  ];
}

/** The path of the output as the sharpness grows from 0: from the mean to a corner. */
function trail({ now, px }) {
  const end = (sharpness) => px(attend([...now.slice(0, 4), sharpness / Math.sqrt(2)]).output);
  const [cx, cy] = end(0).map(n1);
  const way = Array.from({ length: 25 }, (_, i) => end(4 * (i / 24) ** 2));
  return html`<g class="trail">${path("way", through(way))}${element("circle", {
    cx,
    cy,
    r: 3.5,
  })}</g>`;
}

/** To which side an arrow from a to b bends: away from the origin, less if it points at it. */
function swing(origin, a, b) {
  const { length, unit } = direction(a, b);
  const out = direction(origin, along(a, unit, length / 2)).unit;
  return { length, unit, side: unit[0] * out[1] - unit[1] * out[0] };
}

/** Arrows from the word to its output in this sentence, and to that in the other sentence. */
function movements({ s, here, there, origin, px }) {
  const movement = (kind, end, gap, size, r) => {
    const { length, side } = swing(origin, here, end);
    const { d, head } = curvedArrow(here, end, BEND * side, [12, gap], size);
    const [cx, cy] = end.map(n1);
    return html`<g class="${kind}">${
      length > 20 && [
        path("arc", d, { opacity: clamp((length - 20) / 20, 0, 1) }),
        path("head", head),
      ]
    }${element("circle", { cx, cy, r })}</g>`;
  };
  const slot = SCENES[s.scene].slots?.findIndex((slot) => Array.isArray(slot));
  const other =
    slot >= 0 &&
    slot !== queryPlace(s) &&
    SCENES[s.scene].slots[slot].find((text) => text !== s.sentence);
  return [
    other &&
      !s.moving &&
      movement("rival", px(attend(poseOf({ ...s, sentence: other })).output), 8, 6, 5.5),
    movement("moved", there, 11, 10, 8),
  ];
}

/** The vector of the word, its query, and the angle by which W_Q turns one to the other. */
function turnedQuery({ s, from, attention, origin, tip, px, unit: one }) {
  if (s.scene !== "turned" || Math.hypot(...attention.query) < 1e-3) return null;
  const { unit } = direction(origin, tip);
  const [start, end] = [from, attention.query].map(([x, y]) => Math.atan2(y, x));
  const by = ((end - start + 3 * Math.PI) % (2 * Math.PI)) - Math.PI;
  const r = 0.62;
  const bow = (part) => px([r * Math.cos(start + by * part), r * Math.sin(start + by * part)]);
  const arc = `M${at(bow(0))}A${n1(r * one)} ${n1(r * one)} 0 0 ${by > 0 ? 0 : 1} ${at(bow(1))}`;
  const head = Math.abs(by) > 0.2 ? arrow(bow(1 - 0.16 / Math.abs(by)), bow(1), 6) : "";
  return [
    Math.abs(by) > 0.02 && [path("own", arrow(origin, px(from), 7)), path("turn", arc + head)],
    path("query-arrow", arrow(origin, along(tip, unit, -6), 9)),
  ];
}

/** The end of a query that can be taken hold of. */
function handle({ s, tip }) {
  if (!SCENES[s.scene].draggable) return null;
  const [x, y] = tip.map(n1);
  const value =
    s.scene === "turned"
      ? `turned by ${s.turn} degrees, ${two(s.stretch)} times as long`
      : axesOf(s)
          .map((axis, k) => `${two(s.query[k])} ${axis}`)
          .join(", ");
  return html`<g${attributes({
    class: "word knob",
    "data-query": true,
    role: "slider",
    tabindex: 0,
    transform: `translate(${x} ${y})`,
    "aria-label": "query",
    "aria-valuenow": s.scene === "turned" ? s.turn : s.query[0],
    "aria-valuetext": value,
    "data-gesture": s.scene === "prices",
  })}><circle class="hold" r="14"/><circle class="end" r="6.5"/></g>`;
}

/** A beam with a block for each price, as high as its weight; it balances at the blended price. */
export function balance(s) {
  const { beam, unit, tall, high, wide } = BALANCE;
  const { prices, slots } = SCENES[s.scene];
  const { weights, output } = attend(s.moving ?? poseOf(s), valuesIn(s));
  const x = (price) => SIDE / 2 + (price - 3.5) * unit;
  const [left, right] = [Math.min(...prices), Math.max(...prices)].map(x);
  const here = n1(x(output[0]));
  const block = (price, j) => {
    const y = n1(beam - tall * weights[j]);
    const shape = { x: x(price) - wide / 2, y, width: wide, height: n1(tall * weights[j]) };
    return html`<rect class="block${tokenAt(s, s.pointed) === j ? " lit" : ""}"${attributes(
      shape,
    )}/>${element(
      "text",
      { x: x(price), y: y - 19 },
      `${slots[j]} `,
      element("tspan", { class: "price" }, price),
      element("tspan", { class: "share", x: x(price), dy: 14 }, weights[j].toFixed(2)),
    )}`;
  };
  return html`<div class="balance" data-part="balance"><svg viewBox="0 0 ${SIDE} ${high}" role="img"
aria-label="${prices
    .map((price, j) => `${slots[j]} ${price}, weight ${weights[j].toFixed(2)}`)
    .join("; ")}. The beam balances at ${output[0].toFixed(3)}.">${prices.map(block)}
<path class="beam" d="M${left - 20} ${beam}H${right + 20}"/>
<path class="rest" d="M${here} ${beam + 1}l-8 13h16Z"/>
${element("text", { class: "answer", x: here, y: beam + 30 }, output[0].toFixed(3))}</svg></div>`;
}

/** The words as dots that can be dragged: one dot for a word that the sentence has twice. */
function words({ s, points, tokens, queryWord, picked, px }) {
  return [...new Set(tokens.map(({ word }) => word))].map((word) => {
    const ids = [...tokens.keys()].filter((j) => tokens[j].word === word);
    const seen = ids.some((j) => shownIn(s, tokens[j]));
    const [x, y] = s.words[word];
    const kind = [
      "word",
      word === queryWord ? "query-word" : seen ? "" : "absent",
      ids.includes(picked) ? "lit" : "",
    ];
    const [x0, y0] = px(points[ids[0]]);
    const value = axesOf(s)
      .map((axis, k) => `${two([x, y][k])} ${axis}`)
      .join(", ");
    const handle = {
      class: kind.join(" ").trim(),
      "data-word": word,
      transform: `translate(${n1(x0)} ${n1(y0)})`,
      ...(seen
        ? {
            role: "slider",
            tabindex: 0,
            "aria-label": word,
            "aria-valuenow": x,
            "aria-valuetext": value,
          }
        : { "aria-hidden": "true" }),
    };
    return html`<g${attributes(handle)}><circle class="hold" r="14"/><circle class="dot"
r="${word === queryWord ? 7 : 5}"/></g>`;
  });
}

/** Points that names should not cover (dots, lines, arrows), each with the cost of covering it. */
function obstacles({ s, points, attention, links, priced, here, there, origin, tip, px }) {
  const taken = [];
  const { sheet, drawn } = SCENES[s.scene];
  if (drawn)
    for (const aside of [0, 20, 40, 60, 80]) taken.push([78 + aside, 13, 4], [226 + aside, 305, 4]);
  else
    for (const aside of [10, 35, 60])
      taken.push([sheet.left + aside, 10, 4], [SIDE - aside, sheet.floor + below(s) - 4, 4]);
  const addPoints = (a, b, price, parts = 10) => {
    for (let i = 1; i < parts; i++)
      taken.push([a[0] + ((b[0] - a[0]) * i) / parts, a[1] + ((b[1] - a[1]) * i) / parts, price]);
  };
  points.forEach((point, j) => {
    taken.push([...px(point), 6]);
    addPoints(here, px(point), 2.5 * attention.weights[j]);
    if (!priced) addPoints(...links[j], 0.8);
  });
  const { length, unit, side } = swing(origin, here, there);
  const bend = along(here, unit, length / 2, (BEND * side * length) / 2);
  if (SCENES[s.scene].draggable) taken.push([...tip, 8]);
  if (!priced) {
    taken.push([...there, 8]);
    addPoints(here, bend, 1);
    addPoints(bend, there, 1);
  }
  if (s.scene === "turned") addPoints(origin, tip, 0.7, 30);
  return taken;
}

/** The names of the words with their weights, and the name of the output. */
function names(m) {
  const {
    s,
    points,
    present,
    tokens,
    attention,
    queryWord,
    here,
    there,
    origin,
    tip,
    priced,
    selfWeight,
    px,
  } = m;
  const { length, unit, side } = swing(origin, here, there);
  const known = [...new Set(tokens.map(({ word }) => word))].map((word) => {
    const ids = [...tokens.keys()].filter((j) => tokens[j].word === word);
    return {
      word,
      ids,
      point: points[ids[0]],
      seen: Math.max(...ids.map((j) => present[j])) > 0.5,
    };
  });
  const labels = [];
  for (const { word, point, seen } of known) {
    // Words that share a place share a label; the first of them carries it.
    const alike = (one) => one.seen === seen && (one.word === queryWord) === (word === queryWord);
    const group = known.filter((one) => alike(one) && distance(one.point, point) < 0.3);
    if (group[0].word !== word) continue;
    const ids = group.flatMap((one) => one.ids.filter((j) => present[j] > 0.5));
    const shares = [...new Set(ids.map((j) => attention.weights[j].toFixed(2)))];
    const share = seen
      ? shares.join(" · ") + (ids.length > 1 && shares.length === 1 ? " each" : "")
      : "";
    const name = group.map((one) => one.word).join(" · ");
    const place = px(point);
    const { length: far, unit: away } = direction(here, place);
    // Above or below rather than beside: lines and axes run sideways.
    const steep = direction([0, 0], [away[0], away[1] + 0.9 * Math.tanh(6 * away[1])]).unit;
    // The name of the query goes ahead where both share a place.
    const shared = SCENES[s.scene].draggable && distance(tip, place) < 12;
    const back = shared ? [-1, 0] : length < 12 ? [-0.6, -0.8] : unit.map((x) => -x);
    labels.push({
      kind: word === queryWord ? "query-word" : seen ? "" : "absent",
      name,
      share,
      point: place,
      size: [Math.max(6.9 * name.length, 6 * share.length), share ? 25 : 13],
      gap: far < 6 ? 11 + THICK * selfWeight : 8,
      way:
        word === queryWord
          ? back
          : far < 6
            ? [-0.6, 0.8]
            : priced
              ? direction(origin, place).unit
              : steep,
    });
  }
  labels.sort((a, b) => (b.kind === "query-word") - (a.kind === "query-word"));
  if (SCENES[s.scene].draggable) {
    const { length: far, unit: on } = direction(origin, tip);
    const ahead = far < 1 ? [-1, -0.7] : on; // a query of zeros points nowhere
    labels.push({
      kind: "query-word",
      name: "query",
      share: "",
      point: tip,
      size: [35, 13],
      gap: 10,
      way: ahead,
    });
  }
  const out = direction([0, 0], [unit[1] * side, -unit[0] * side]);
  const way = length < 12 ? [0.6, -0.8] : out.length < 0.2 ? unit : out.unit;
  if (length >= 16 && queryWord)
    labels.push({
      kind: "now",
      name: queryWord,
      share: "",
      point: there,
      size: [9.6 * queryWord.length, 15],
      gap: 12,
      way,
    });
  return placed(labels, obstacles(m), [SIDE, SIDE]).map(([x, y], i) => {
    const { kind, name, share } = labels[i];
    const below = share && element("tspan", { class: "share", x: n1(x), dy: 13 }, share);
    return element(
      "text",
      { class: kind || false, x: n1(x), y: n1(y + (share ? -2 : 4)) },
      name,
      below,
    );
  });
}
