/**
 * Where everything of Flow stands: a river that lies, or, on a phone, one that falls; and its
 * lines.
 */
import { clamp, range, sum } from "../kit/numbers.js";
import { decimals, wide, writes } from "./plan.js";

export const mix = (a, b, w) => a + (b - a) * w;
export const smooth = (x) => {
  const c = clamp(x);
  return c * c * (3 - 2 * c);
};
export const span = (u, from, to) => clamp((u - from) / (to - from));

/**
 * The widths of a lying sheet, in its own units; style shows one while its letters are large
 * enough.
 */
const SIZES = [800, 980, 1400];
const NARROW = 340;

/** How high the lane of a word is, by the number of lanes. */
const LANE = [0, 92, 92, 76, 64, 56, 50];

/** What is opened first where there is no room for all digits. */
const VIEWS = {
  start: "X G",
  attend: "G Q V X Z",
  blend: "G Z V Q",
  join: "O Z",
  add: "N1 O X",
  think: "H F N1",
  end: "N2 F N1",
  say: "P",
  whole: "P G X Q V Z N2 N1 H F O",
};

/** Places in a path; a box; a line that leaves and arrives level. */
export const spot = (...all) => all.map((x) => Number(x.toFixed(1))).join(" ");
export const box = (x, y, w, h) => `M${spot(x, y)}h${spot(w)}v${spot(h)}h${spot(-w)}z`;
export const bend = (x, y, a, b) => `M${spot(x, y)}C${spot((x + a) / 2, y, (x + a) / 2, b, a, b)}`;

/** A line along points, its corners rounded. */
function metro(points, r = 12) {
  const length = ([x, y], [a, b]) => Math.hypot(a - x, b - y) || 1;
  const toward = (from, to, by) =>
    [0, 1].map((k) => from[k] + ((to[k] - from[k]) / length(from, to)) * by);
  let d = `M${spot(...points[0])}`;
  for (let k = 1; k < points.length - 1; k++) {
    const [before, here, after] = points.slice(k - 1, k + 2);
    const room = Math.min(r, length(here, before) / 2, length(after, here) / 2);
    d += `L${spot(...toward(here, before, room))}Q${spot(...here, ...toward(here, after, room))}`;
  }
  return `${d}L${spot(...points.at(-1))}`;
}

/** How wide a cell is: a stripe, a color, brief with one decimal, open with three. */
function cellWidths({ matrices }, id) {
  if (id === "P") return [40, 46, 54, 58]; // its columns are words
  const all = matrices.flatMap((made) => made[id]).flat();
  if (all.every((x) => Math.abs(x - Math.round(x)) < 1e-9)) {
    const most = Math.max(...all.map((x) => wide(String(x), 14)));
    return [5, 10, Math.max(22, most + 6), Math.max(30, most + 10)];
  }
  return all.some((x) => x < 0) ? [5, 10, 33, 50] : [5, 10, 28, 44];
}

/**
 * The river from left to right. All blocks are folded first; those of the view are opened as long
 * as there is room, then the others; what room is left goes to the gaps. Null if not even stripes
 * fit.
 */
function measure(plan, width, view) {
  const { n, river, blocks, layer } = plan;
  const lane = layer && n === 2 ? 80 : LANE[n];
  const pitch = n < 3 ? 6 : n < 5 ? 5 : 4;
  const longest = (...names) => Math.max(...names.map((name) => wide(name, 15))) + 8;
  const labels = longest(...plan.names, ...(plan.cross ? plan.answers : []));
  const ends = longest(...plan.ends);
  const bundle = n * pitch;
  const tight = plan.n_k * (n < 4 ? 30 : 26);
  const widths = Object.fromEntries(
    river.map((id) => {
      if (id === "G")
        return [
          id,
          [
            tight,
            tight,
            plan.n_k * Math.min(46, lane),
            plan.n_k * (width > SIZES[0] ? lane : Math.min(76, lane)),
          ],
        ];
      const cells = cellWidths(plan, id).map((w) => w * blocks[id].columns);
      return [id, [Math.max(cells[0], 14), ...cells.slice(1)]];
    }),
  );
  const fan = (layer ? 3 : 2) * (bundle + 4);
  // What stands before a block: least width, its share of what is left, at most.
  const gaps = {
    X: [12, 1, 50],
    Q: [fan + 38, 2, fan + 80],
    G: [10, 0.4, 20],
    V: [bundle + 24, 1, bundle + 60],
    Z: [n < 4 ? 96 : 84, 6, 320],
    O: [36, 1, 80],
    N1: [bundle + 48, 1, bundle + 96],
    H: [bundle + 42, 1, bundle + 80],
    F: [34, 1, 70],
    N2: [bundle + 48, 1, bundle + 96],
    P: [72, 1, 100],
  };
  const used = Object.fromEntries([...river, "end"].map((id) => [id, gaps[id] ?? [10, 1, 60]]));
  let left =
    width -
    labels -
    ends -
    sum(Object.values(used).map(([least]) => least)) -
    sum(river.map((id) => widths[id][0]));
  if (left < 0) return null;
  const level = Object.fromEntries(river.map((id) => [id, 0]));
  const raise = (id, to) => {
    const cost = widths[id][to] - widths[id][level[id]];
    if (level[id] < to && cost <= left) {
      level[id] = to;
      left -= cost;
    }
  };
  const first = VIEWS[view].split(" ").filter((id) => river.includes(id));
  raise("G", first[0] === "G" ? 3 : 1);
  if (view !== "whole") for (const to of [2, 3]) first.forEach((id) => raise(id, to));
  for (const to of [1, 2, 3])
    for (const id of VIEWS.whole.split(" ")) if (river.includes(id)) raise(id, to);
  const stretch = Object.fromEntries(Object.entries(used).map(([id, [least]]) => [id, least]));
  for (let pass = 0; pass < 4 && left > 1; pass++) {
    const loose = Object.keys(used).filter((id) => stretch[id] < used[id][2]);
    const share = left / (sum(loose.map((id) => used[id][1])) || Infinity);
    for (const id of loose) {
      const more = Math.min(share * used[id][1], used[id][2] - stretch[id]);
      stretch[id] += more;
      left -= more;
    }
  }
  let x = left / 2 + labels;
  const boxes = {};
  for (const id of river) {
    x += stretch[id];
    boxes[id] = { x, w: widths[id][level[id]] };
    x += boxes[id].w;
  }
  return { boxes, start: left / 2, end: x + stretch.end, lane, pitch };
}

/** Where each view puts the blocks on a sheet of that width; null if one does not fit. */
function views(plan, width) {
  const all = Object.fromEntries(plan.stages.map(({ view }) => [view, measure(plan, width, view)]));
  const open = ({ G, Q, X }) =>
    G.w >= plan.n_k * 40 && (plan.n > 3 || Q.w >= 40) && (plan.layer || X.w >= 40);
  return Object.values(all).every(Boolean) && open(all.attend.boxes) ? all : null;
}

/** The least sheet on which every stage has its numbers. */
export function size(plan) {
  plan.width ??= SIZES.find((width) => views(plan, width)) ?? SIZES.at(-1);
  plan.views ??=
    views(plan, plan.width) ??
    Object.fromEntries(plan.stages.map(({ view }) => [view, measure(plan, 3 * plan.width, view)]));
  return plan.width;
}

/**
 * How far to the right the crossing reaches in any stage; what stands above, right of it, is free.
 */
export const crossed = (plan) =>
  size(plan) &&
  Math.max(...Object.values(plan.views).map(({ boxes: { G } }) => G.x + G.w)) / plan.width;

const between = (a, b, w) =>
  typeof a === "number"
    ? mix(a, b, w)
    : Object.fromEntries(Object.keys(a).map((key) => [key, between(a[key], b[key], w)]));

/** Where everything stands at a moment: the same object while nothing moves. */
export function layout(plan, falls, { s, u }) {
  if (falls) return (plan.falling ??= falling(plan));
  size(plan);
  const [before, now] = [s - 1, s].map((k) => plan.stages[Math.max(k, 0)].view);
  const { views, resting } = plan;
  if (before === now || u >= 0.16) return (resting[now] ??= lying(plan, views[now]));
  return lying(plan, between(views[before], views[now], smooth(u / 0.16)));
}

function lying(plan, m) {
  const { n, n_q, n_k, blocks, d_k, layer, cross, river } = plan;
  const { lane, pitch } = m;
  const tile = Math.min(38, lane - 14);
  const key = Math.min(28, Math.max(9, 92 / d_k));
  const memory = (j) => 36 + j * 34;
  const keyTop = 12 + (n_k - 1) * pitch + (n_k < 4 ? 30 : 44);
  const top = Math.max(
    keyTop + d_k * key + 16,
    cross ? memory(n_k - 1) + 34 : 0,
    size(plan) > SIZES[0] ? 156 : 0,
  );
  const bottom = top + n * lane;
  const middle = (top + bottom) / 2;
  const row = (i) => middle + (i - (n_q - 1) / 2) * lane;
  const answer = (j) => middle + (j - (n_k - 1) / 2) * lane;
  const valueLevel = bottom + 62;
  const pastLevel = valueLevel + (n - 1) * pitch + 20;
  const boxes = {};
  for (const [id, box] of Object.entries(m.boxes)) {
    boxes[id] = {
      ...box,
      cell: box.w / blocks[id].columns,
      tile,
      row: id === "V" ? answer : row,
      title: bottom + 20,
    };
  }
  if (cross) boxes.M = { ...boxes.X, tile: 28, row: memory, title: 16 };
  const { G } = boxes;
  const air = n < 4 ? 18 : 8;
  G.size = G.cell - Math.min(air, G.cell * 0.24);
  G.height = lane - air;
  const column = (j) => G.x + (j + 0.5) * G.cell;
  const [before, between] = [boxes.Q.x - 21, (line) => (line(0) + line(n_k - 1)) / 2];
  const level = {
    key: (i) => 12 + (n_k - 1 - i) * pitch,
    value: (i) => valueLevel + i * pitch,
    past: (i) => pastLevel + i * pitch,
  };
  const gates = {
    Q: [before, middle, true],
    K: [before, between(level.key)],
    V: [before, between(level.value)],
  };
  const signs = {};
  river.forEach((id, k) => {
    const near = boxes[id].x - (id === "H" ? 20 : 16.5);
    if ("ONHFP".includes(id[0]))
      gates[id] = [
        "HN".includes(id[0]) ? near : (right(boxes[river[k - 1]]) + boxes[id].x) / 2,
        middle,
        true,
      ];
    if (id[0] === "N")
      signs[id] = range(n_q).map((i) => [boxes[id].x - 40 - (n_q - 1 - i) * pitch, row(i)]);
  });
  const drop = top - keyTop - d_k * key - 16; // what the keys come down, if the memory stands high
  return {
    falls: false,
    kept: new Map(),
    posts: new Set(),
    width: size(plan),
    lane,
    pitch,
    boxes,
    column,
    gates,
    signs,
    start: m.start,
    end: m.end,
    row,
    top,
    bottom,
    key: {
      top: keyTop + drop,
      bottom: keyTop + drop + d_k * key,
      tile: key,
      cell: Math.min(38, G.cell - 6),
    },
    port: { x: boxes.Z.x - (n < 4 ? 42 : 20), height: Math.min(48, lane * 0.62), row },
    height: Math.ceil((layer ? pastLevel : valueLevel) + (n - 1) * pitch + 18),
    level,
  };
}

/** On a phone the streams fall: the rows above, each stream straight down to where it is needed. */
function falling(plan) {
  const { n, n_q, n_k, blocks, d_k, layer, river, cross } = plan;
  const writer = writes(plan.s);
  const label = Math.min(
    70,
    Math.max(...[...plan.names, ...plan.answers].map((name) => wide(name, 13.5))) + 10,
  );
  const lane = n < 3 ? 46 : n < 5 ? 40 : 34;
  const tile = lane - 8;
  const room = NARROW - label - (layer ? 24 : 2);
  const boxes = {};
  // The names of the columns lean over the first rows.
  let y = writer && plan.s.columns.length ? 72 : 24;
  const fit = (id, most) => Math.min(cellWidths(plan, id)[3] * blocks[id].columns, most);
  const place = (id, x, w, high = lane) => {
    const top = y;
    const row = (i) => top + (i + 0.5) * high;
    boxes[id] = {
      x,
      w,
      cell: w / blocks[id].columns,
      tile,
      row,
      last: blocks[id].rows - 1,
      title: row(0) - tile / 2 - 8,
    };
    return top + blocks[id].rows * high;
  };
  // The values of a memory fall to the left of X, its keys to the right.
  const aside = cross ? 24 : 0;
  if (cross) y = place("M", label, fit("M", room - 70)) + 34;
  y = place("X", label + aside, fit("X", room - 3 * aside));
  // The crossing: keys above the grid, queries to its left; the values pass further left.
  const gate = y + 20;
  const q = fit("Q", n < 4 ? 64 : 56);
  const start = label + (n < 4 ? 38 : 28) + q;
  const grid = Math.min((label + room - start - 10) / n_k, 92);
  const high = Math.min(grid, 76);
  const key = Math.min(26, Math.max(9, 84 / d_k));
  const keyTop = y + 78;
  y = keyTop + d_k * key + 10;
  place("Q", label + 22, q, high);
  const air = n < 4 ? 16 : 4;
  const foot = y + n_q * high;
  boxes.G = {
    x: start,
    w: grid * n_k,
    cell: grid,
    tile,
    row: boxes.Q.row,
    size: grid - air,
    height: high - air,
    title: foot + 14,
  };
  boxes.Q.title = foot + 14;
  y = foot + 58;
  place("V", label, fit("V", 64));
  const z = fit("Z", room * 0.44);
  y = place("Z", label + room - z, z) + Math.max(n_k - n_q, 0) * lane;
  for (const id of river.slice(river.indexOf("Z") + 1)) {
    y += id === "N1" || id === "N2" ? 70 : id === "P" ? 70 : 46;
    y = place(
      id,
      label,
      fit(
        id,
        id === "P" && !writer
          ? room - Math.min(80, Math.max(...plan.ends.map((word) => wide(word, 15)))) - 22
          : room - 4,
      ),
    );
  }
  const column = (j) => start + (j + 0.5) * grid;
  const trunk = cross
    ? Math.max(right(boxes.X), right(boxes.M)) + 14
    : Math.max(boxes.Q.x + q / 2 + 40, Math.min(column((n_k - 1) / 2), right(boxes.X) - 10));
  const gates = {
    Q: [boxes.Q.x + q / 2, gate],
    K: [trunk + (cross ? 0 : 12), gate],
    V: [label + 8, keyTop - 16],
  };
  const signs = {};
  for (const id of river.slice(river.indexOf("Z") + 1)) {
    const head = boxes[id].row(0) - boxes[id].tile / 2;
    gates[id] = [label + (id === "P" ? 40 : 20), head - (id === "P" ? 42 : 20)];
    if (id[0] === "N") signs[id] = [[label + 20, head - 52]];
  }
  return {
    falls: true,
    kept: new Map(),
    width: NARROW,
    lane,
    pitch: 5,
    boxes,
    column,
    gates,
    signs,
    left: label,
    edge: NARROW - 8,
    gate,
    start: 0,
    end: boxes.P && right(boxes.P) + 20,
    row: boxes.X.row,
    key: { top: keyTop, bottom: keyTop + d_k * key, tile: key, cell: Math.min(38, grid - 6) },
    port: { x: boxes.Z.x - (n < 4 ? 44 : 12), height: Math.min(lane * 0.74, 34), row: boxes.Z.row },
    trunk,
    height: Math.ceil(y + 10),
  };
}

/** How many digits, and how large, fit into the cells of a block. */
export function lettering(plan, geo, id, head) {
  const tall = id === "K";
  const { cell, tile } = tall ? geo.key : geo.boxes[id];
  const { [id]: own, L } = plan.matrices[head];
  const matrix = id === "P" ? [...L, ...own] : own;
  const room = Math.round(cell - 4);
  const most = writes(plan.s) ? 2 : 3;
  const kept = (plan.lettering ??= {});
  return (kept[`${id} ${head} ${room} ${tile}`] ??= (() => {
    if (tall && tile < 15) return [8, -1];
    const large = tall ? clamp(tile - 12, 11, 14) : Math.min(14, tile * 0.5);
    const found = decimals(matrix, room, large, most);
    if (found < 0) return [12.4, decimals(matrix, room, 12.4, most)];
    // Numbers of two cells keep clear of each other.
    const tight = decimals(matrix, room - 4, large, most) < found;
    return [tight ? Math.min(large, 12.4) : large, found];
  })());
}

// ---------------------------------------------------------------------------------- The lines

const right = ({ x, w }) => x + w;

/** Every line of the river: its name, its token, its role, its path, and when it is drawn. */
export const wires = (plan, geo) =>
  (geo.wires ??= geo.falls ? fallingWires(plan, geo) : lyingWires(plan, geo));

function lyingWires(
  { n, n_q, n_k, layer, when, river, cross },
  { boxes, level, start, end, pitch, key, column, port, lane, row, posts },
) {
  const all = [];
  const wire = (id, i, role, stage, from, to, points, thin) => {
    all.push({ id: `${id}.${i}`, role, stage, from, to, d: metro(points), thin });
    points
      .slice(1)
      .forEach(
        ([x, y], k) =>
          Math.max(y, points[k][1]) > boxes.X.title + 20 && x === points[k][0] && posts.add(x),
      );
  };
  const source = cross ? boxes.M : boxes.X;
  const offset = layer ? { K: -4.8, Q: -1.6, V: 1.6, R: 4.8 } : { K: -3.2, Q: 0, V: 3.2 };
  const x0 = right(boxes.X);
  const base = { R: x0 + 12, V: x0 + 12 + (layer ? n * pitch + 4 : 0) };
  base.K = base.V + n * pitch + 4;
  const above = boxes.G.cell > 60 ? 3 : boxes.G.cell < 28 ? 34 : 20;
  for (const j of range(n_k)) {
    const back = (n_k - 1 - j) * pitch;
    const y = source.row(j);
    if (cross)
      wire("M", j, "line", when.rows, 0, 0.35, [
        [start + 8, y],
        [boxes.M.x - 2, y],
      ]);
    wire("K", j, "key", when.qkv, 0.08, 0.62, [
      [x0, y + offset.K],
      [base.K + back, y + offset.K],
      [base.K + back, level.key(j)],
      [column(j), level.key(j)],
      [column(j), key.top - above],
    ]);
    const up = boxes.V.x - 12 - back;
    wire("V", j, "value", when.qkv, 0.08, 0.86, [
      [x0, y + offset.V],
      [base.V + back, y + offset.V],
      [base.V + back, level.value(j)],
      [up, level.value(j)],
      [up, boxes.V.row(j)],
      [boxes.V.x - 2, boxes.V.row(j)],
    ]);
    wire(
      "Kin",
      j,
      "key",
      when.scores,
      0,
      0.08,
      [
        [column(j), key.bottom + 1],
        [column(j), row(n_q - 1)],
      ],
      true,
    );
  }
  for (const i of range(n_q)) {
    const y = row(i);
    const back = (n_q - 1 - i) * pitch;
    wire("in", i, "line", when.rows, 0, 0.35, [
      [start + 8, y],
      [boxes.X.x - 2, y],
    ]);
    wire("Q", i, "query", when.qkv, 0.08, 0.4, [
      [x0, y + offset.Q],
      [boxes.Q.x - 2, y + offset.Q],
    ]);
    wire(
      "Qin",
      i,
      "query",
      when.scores,
      0,
      0.08,
      [
        [right(boxes.Q), y],
        [column(n_k - 1), y],
      ],
      true,
    );
    const over = y - Math.min(lane * 0.36, 30);
    const edge = column(n_k - 1) + boxes.G.size / 2;
    wire("A", i, "weight", when.blend, 0, 0.2, [
      [edge, y],
      [edge + 14, y],
      [edge + 14, over],
      [port.x + 2.5, over],
      [port.x + 2.5, y - port.height / 2],
    ]);
    const past = (id, from, before, after, stage, leave) => {
      const meet = boxes[after].x - 40 - back;
      wire(id, i, "past", stage, 0.2, 0.62, [
        [right(boxes[from]), y + offset.R],
        [leave, y + offset.R],
        [leave, level.past(i)],
        [meet, level.past(i)],
        [meet, y + 9],
      ]);
      wire(`${id}add`, i, "line", stage, 0.3, 0.5, [
        [right(boxes[before]), y],
        [meet - 9, y],
      ]);
      wire(`${id}norm`, i, "line", stage, 0.62, 0.76, [
        [meet + 9, y],
        [boxes[after].x - 2, y],
      ]);
    };
    const on = (id, before, stage, from, to) =>
      wire(id, i, "line", stage, from, to, [
        [right(boxes[before]), y],
        [boxes[id].x - 2, y],
      ]);
    if (boxes.O) on("O", "Z", when.join, 0.05, 0.4);
    if (layer) {
      past("R1", "X", "O", "N1", when.add1, base.R + back);
      on("H", "N1", when.think, 0.05, 0.3);
      on("F", "H", when.think, 0.5, 0.7);
      past("R2", "N1", "F", "N2", when.add2, right(boxes.N1) + 14 + back);
    }
    const last = river.at(-1);
    if (boxes.P) on("P", river.at(-2), when.words, 0.05, 0.4);
    wire("out", i, "line", Object.values(when).at(-2), 0.9, 1, [
      [right(boxes[last]), y],
      [end - 6, y],
    ]);
  }
  return all;
}

function fallingWires(
  { n_k, layer, when, river, cross },
  { boxes, key, column, left, edge, gate, trunk },
) {
  const all = [];
  const wire = (id, role, stage, from, to, points, thin) =>
    all.push({ id, role, stage, from, to, d: metro(points, 10), thin });
  const foot = (id) => boxes[id].row(boxes[id].last) + boxes[id].tile / 2;
  const head = (id) => boxes[id].row(0) - boxes[id].tile / 2 - 2;
  const middle = (id) => boxes[id].x + boxes[id].w / 2;
  const source = cross ? "M" : "X";
  wire("V", "value", when.qkv, 0.08, 0.86, [
    [left + 8, foot(source)],
    [left + 8, head("V")],
  ]);
  wire("Q", "query", when.qkv, 0.08, 0.4, [
    [middle("Q"), foot("X")],
    [middle("Q"), head("Q")],
  ]);
  for (const j of range(n_k)) {
    wire(`K.${j}`, "key", when.qkv, 0.08, 0.62, [
      ...(cross
        ? [
            [right(boxes.M), boxes.M.row(j)],
            [trunk, boxes.M.row(j)],
          ]
        : [[trunk, foot("X")]]),
      [trunk, gate + 26],
      [column(j), gate + 26],
      [column(j), key.top - (boxes.G.cell > 60 ? 3 : 19)],
    ]);
    wire(
      `Kin.${j}`,
      "key",
      when.scores,
      0,
      0.08,
      [
        [column(j), key.bottom + 1],
        [column(j), boxes.G.row(boxes.Q.last)],
      ],
      true,
    );
  }
  for (const i of range(boxes.Q.last + 1)) {
    wire(
      `Qin.${i}`,
      "query",
      when.scores,
      0,
      0.08,
      [
        [right(boxes.Q), boxes.G.row(i)],
        [column(n_k - 1), boxes.G.row(i)],
      ],
      true,
    );
  }
  const x = left + 20;
  const on = (id, before, stage, from, to) => {
    const low = Math.max(foot("Z"), foot("V")) + 12; // around the values of a memory
    const bend =
      Math.abs(middle(before) - x) > 60 && before === "Z"
        ? [
            [middle("Z"), foot("Z")],
            [middle("Z"), low],
            [x, low],
          ]
        : [[x, foot(before)]];
    wire(id, "line", stage, from, to, [...bend, [x, head(id) - (id === "P" ? 16 : 0)]]);
  };
  const past = (id, from, before, after, stage) => {
    const meet = head(after) - 50;
    const exit = boxes[from].row(boxes[from].last);
    wire(id, "past", stage, 0.2, 0.62, [
      [right(boxes[from]), exit],
      [edge, exit],
      [edge, meet],
      [x + 9, meet],
    ]);
    wire(`${id}add`, "line", stage, 0.3, 0.5, [
      [x, foot(before)],
      [x, meet - 9],
    ]);
    wire(`${id}norm`, "line", stage, 0.62, 0.76, [
      [x, meet + 9],
      [x, head(after)],
    ]);
  };
  if (boxes.O) on("O", "Z", when.join, 0.05, 0.4);
  if (layer) {
    past("R1", "X", "O", "N1", when.add1);
    on("H", "N1", when.think, 0.05, 0.3);
    on("F", "H", when.think, 0.5, 0.7);
    past("R2", "N1", "F", "N2", when.add2);
  }
  if (boxes.P) on("P", river.at(-2), when.words, 0.05, 0.4);
  return all;
}

/**
 * The outline of all that no stage has finished yet, the stage `s` included: a path of lines and
 * ribbons, one of blocks.
 */
export function ahead(plan, geo, s) {
  const { boxes, key, column, port } = geo;
  const { blocks, when, n_q, n_k } = plan;
  const lines = wires(plan, geo)
    .filter(({ stage }) => stage >= s)
    .map(({ d }) => d);
  const all = [];
  for (const [id, { stage, rows }] of Object.entries(blocks)) {
    if (stage < s) continue;
    for (const i of range(id === "G" ? n_q : rows)) {
      const { x, w, row, tile, size, height } = boxes[id] ?? {};
      if (id === "K")
        all.push(box(column(i) - key.cell / 2, key.top, key.cell, key.bottom - key.top));
      else if (id === "G")
        range(n_k).forEach((j) =>
          all.push(box(column(j) - size / 2, row(i) - height / 2, size, height)),
        );
      else all.push(box(x + 1, row(i) - tile / 2, w - 2, tile));
    }
  }
  if (when.blend >= s)
    range(n_q).forEach((i) =>
      range(n_k).forEach((j) =>
        lines.push(bend(right(boxes.V) + 3, boxes.V.row(j), port.x, port.row(i))),
      ),
    );
  return [lines.join(""), all.join("")];
}
