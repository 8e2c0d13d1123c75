/**
 * The picture of Flow at a moment: lines, ribbons, cells, the gates that a line passes, and what a
 * stage does to its numbers, in motion. What no stage has reached yet is an outline without
 * numbers.
 */
import { cellInk } from "../drawing/heatmap.js";
import { element, html } from "../kit/markup.js";
import { clamp, range, sum } from "../kit/numbers.js";
import { ahead, bend, box, layout, lettering, mix, smooth, span, spot, wires } from "./layout.js";
import { fitted, naming, short, wide, writes } from "./plan.js";

const paint = (role) => `var(--${role === "past" ? "ink" : role})`;
const tint = (role, share) =>
  `color-mix(in srgb, ${paint(role)} ${Math.round(100 * share)}%, var(--page))`;
const rect = (x, y, width, height, more) => element("rect", { x, y, width, height, ...more });
/** A text that stands elsewhere is another one: nothing on the page has moved. */
const text = (content, x, y, more) =>
  element(
    "text",
    { x, y, "data-key": more.transform ?? `${Math.round(x)} ${Math.round(y)}`, ...more },
    content,
  );
const group = (all, ...content) => element("g", all, content);
const at = (x, y) => `translate(${spot(x, y)})`;
/** A line as far as it is drawn. */
const drawn = (done) => done < 1 && { pathLength: 1, "stroke-dasharray": `${done.toFixed(3)} 2` };

/** A symbol as tspans: letters lean, W_Q has its Q below, a transpose its T above. */
function symbol(letters, size) {
  return letters
    .split(/(_[A-Za-z0-9]+|[′″ᵀ√ ()/]+)/)
    .filter(Boolean)
    .map((part) => {
      if (part === "ᵀ") return element("tspan", { "font-size": size * 0.7, dy: -0.35 * size }, "T");
      const low = part[0] === "_";
      const leans = low || (part.length < 3 && !/^[′″ᵀ√ ()/]/.test(part));
      return element(
        "tspan",
        {
          "font-style": leans && "italic",
          "font-size": low && Math.max(12.4, size * 0.7),
          dy: low && size * 0.22,
        },
        low ? part.slice(1) : part,
      );
    });
}

const most = (matrix) => Math.max(...matrix.flat().map(Math.abs)) || 1;

/** Slots of u for things that happen one after the other; the first ones get more time. */
function slots(count, first = []) {
  const all = range(count).map((k) => first[k] ?? 1);
  let end = 0;
  return all.map((w) => {
    const from = end;
    end += w / sum(all);
    return [from, end];
  });
}
const late = ([from, to], a, b) => [mix(from, to, a), mix(from, to, b)];
const meetings = ({ n_q, n_k }) => slots(n_q * n_k, n_k < 4 ? [3.4, 2, 1.2] : [9, 4, 2]);
const blends = ({ n_q }) => slots(n_q, [1.6]);

/** How far a stage's deed has come: nothing before it, all after it. */
const part = ({ s, u }, stage, [from, to] = [0, 1]) =>
  s > stage ? 1 : s === stage ? span(u, from, to) : 0;

/** How far the cell (i, j) of a block has come into being. */
function shownAt(plan, id, i, j, now, head) {
  const { blocks, d_v, n_k, when } = plan;
  const { stage, columns } = blocks[id];
  if (id === "G") return part(now, stage, late(meetings(plan)[i * n_k + j], 0.86, 1));
  if (id === "Z" && Math.floor(j / d_v) !== head)
    return part(now, when.heads, [0.2 + 0.1 * i, 0.5 + 0.1 * i]);
  if (id === "Z") return part(now, stage, late(blends(plan)[i], 0.72, 0.95));
  const from = {
    X: 0.3,
    M: 0.3,
    Q: 0.4,
    K: 0.62,
    V: 0.84,
    O: 0.3,
    N1: 0.74,
    H: 0.28,
    F: 0.66,
    N2: 0.74,
    P: 0.4,
  }[id];
  const lag = (0.05 * i + (0.24 * j) / columns) * (from > 0.7 ? 0.3 : 1);
  return part(now, stage, [from + lag, from + lag + 0.1]);
}

/** How much a block stands out: 1 what the stage is about, less what is done. */
function strength({ stages }, id, { s, u }) {
  const on = ({ lit }) => (!lit || lit.includes(id) ? 1 : 0.66);
  return mix(on(stages[Math.max(s - 1, 0)]), on(stages[s]), smooth(u / 0.12));
}

/**
 * The drawing as { width, height, content }; `found` explains the cell `look` that is looked at,
 * and `focus` is the one that Tab finds. What is `still` has no cells to look at.
 */
export function scene(plan, { falls, now, head, look, found, focus, still }) {
  const geo = layout(plan, falls, now);
  const { blocks, when } = plan;
  const c = { plan, geo, now, head, look, found, focus, still, M: plan.matrices[head] };
  // What stands still between two frames is not drawn anew.
  const rests = (stage, ...more) => now.u === 1 || ![stage, ...more].includes(now.s);
  const kept = (name, rest, draw) => {
    if (!rest) return draw();
    const key = [name, now.s, head, look, found?.step, focus, still].join();
    if (!geo.kept.has(key)) geo.kept.set(key, html`${draw()}`);
    return geo.kept.get(key);
  };
  if (geo.kept.size > 400) geo.kept.clear();
  const changes = { G: [when.scale, when.mask, when.softmax], Z: [when.heads], P: [when.shares] };
  const all = wires(plan, geo);
  return {
    width: geo.width,
    height: geo.height,
    content: [
      group(
        { class: "ahead" },
        kept("ahead", true, () =>
          ahead(plan, geo, still ? 0 : now.s).map((d, k) =>
            element("path", { d, style: k && "fill:var(--page)" }),
          ),
        ),
      ),
      group(
        { "data-key": "lines", class: "made" },
        kept("lines", true, () =>
          lines(
            c,
            all.filter(({ stage }) => stage < now.s),
          ),
        ),
        lines(
          c,
          all.filter(({ stage }) => stage === now.s),
        ),
      ),
      group(
        { "data-key": "ribbons", class: "made" },
        now.s >= when.blend && kept("ribbons", rests(when.blend), () => ribbons(c)),
      ),
      group({ "data-key": "names" }, names(c)),
      Object.keys(blocks).map((id) =>
        group(
          {
            "data-key": id,
            "data-block": id,
            "data-holds": id === "G" && holds(plan, now),
            class: "made",
            opacity: strength(plan, id, now),
          },
          blocks[id].stage <= now.s &&
            kept(id, rests(blocks[id].stage, ...(changes[id] ?? [])), () =>
              id === "G" ? crossing(c) : tiles(c, id),
            ),
        ),
      ),
      group({ "data-key": "gates", class: "gates" }, gates(c)),
      group({ "data-key": "titles" }, titles(c)),
      group({ "data-key": "film", class: "film" }, film(c)),
    ],
  };
}

/**
 * What the crossing holds: scores, scaled scores, then weights. Elsewhere on the page that symbol
 * lights up.
 */
const holds = ({ when }, { s }) => (s >= when.softmax ? "A" : s >= when.scale ? "~S" : "S");

function lines({ plan, now, found }, all) {
  const { lit } = plan.stages[now.s];
  return all.map(({ id, role, stage, from, to, d, thin }) => {
    const done = smooth(part(now, stage, [from, to]));
    const on = found?.wires.has(id);
    return (
      done > 0 &&
      element("path", {
        d,
        stroke: paint(role),
        "stroke-width": thin ? 1.4 : role === "line" ? 1.8 : 2.4,
        class: `wire${on ? " lit" : ""}${role === "past" ? " past" : ""}`,
        ...drawn(done),
        opacity: on ? 1 : (lit && now.s !== stage ? 0.5 : 1) * (thin ? 0.55 : 1),
      })
    );
  });
}

/** Ribbons are as wide as the weight all along; at their end they stack up to the whole row. */
function ribbons({ plan, geo, now, M, found }) {
  const {
    boxes: { V },
    port,
  } = geo;
  const from = V.x + V.w + 3;
  const all = M.A.flatMap((row, i) => {
    let end = port.row(i) - port.height / 2;
    return row.map((a, j) => {
      end += a * port.height;
      return { i, j, a, y: end - (a * port.height) / 2 };
    });
  })
    .filter(({ a }) => a > 0)
    .sort((p, q) => q.a - p.a);
  return all.map(({ i, j, a, y }) => {
    const slot = blends(plan)[i];
    const done = smooth(part(now, plan.when.blend, late(slot, 0.34, 0.8)));
    const mark = found?.ribbons.size
      ? found.ribbons.has(`${i}.${j}`)
        ? " lit"
        : " off"
      : found
        ? " off"
        : "";
    const [start, thick] = [V.row(j), Math.max(a * port.height, 0.8)];
    const seen = part(now, plan.when.blend, late(slot, 0.28, 0.36));
    return [
      done > 0 &&
        element("path", {
          d: bend(from, start, port.x, y),
          class: `ribbon${mark}`,
          "stroke-width": thick,
          ...drawn(done),
        }),
      seen > 0 &&
        rect(port.x, y - thick / 2 + 0.4, 5, Math.max(thick - 0.8, 0.6), {
          class: `port${mark}`,
          opacity: seen,
        }),
      seen > 0 &&
        plan.n < 4 &&
        text(short(a, 2), port.x + 9, y + 3.8, { class: `share${mark}`, opacity: seen }),
    ];
  });
}

/** Names at both ends of a lane, above the keys, and before the values of a memory. */
function names({ plan, geo, now, focus, look, still }) {
  const { names: asking, answers, cross, when } = plan;
  const {
    boxes,
    boxes: { P },
    falls,
    column,
    key,
  } = geo;
  const all = [];
  const name = (kind, word, x, y, more) =>
    all.push(
      text(falls ? fitted(word, x ? geo.width - x : geo.left - 4, 13) : word, x, y + 5, {
        class: `token ${kind}`,
        ...more,
      }),
    );
  asking.forEach((word, i) => {
    const cell = `T.${i}.0`;
    name(
      look === cell ? "self" : "",
      word,
      geo.start,
      boxes.X.row(i),
      !still && {
        "data-cell": cell,
        role: "button",
        tabindex: focus === cell ? 0 : -1,
        "aria-label": `${word}: its lane`,
      },
    );
  });
  for (const id of falls
    ? Object.keys(boxes).filter((id) => !"XGZ".includes(id))
    : cross
      ? ["M"]
      : []) {
    ("MV".includes(id) ? answers : asking).forEach((word, i) =>
      name("quiet", word, geo.start, boxes[id].row(i)),
    );
  }
  // At the end of its lane each word comes out, or the word that follows it.
  const out = part(now, when.shares ?? Object.values(when).at(-2), [0.94, 1]);
  const writer = writes(plan.s);
  if (writer && falls)
    plan.s.columns.forEach((column, k) => {
      const { x, cell } = boxes.M;
      const above = boxes.M.row(0) - boxes.M.tile / 2 - 5;
      all.push(
        text(column, 0, 0, {
          class: "columnname",
          transform: `${at(x + (k + 0.6) * cell, above)} rotate(-40)`,
        }),
      );
    });
  if (!falls || (P && !writer))
    plan.ends.forEach((word, i) =>
      name(
        !out ? "quiet" : P ? "next" : "",
        out || !P ? word : "?",
        geo.end,
        boxes[plan.river.at(-1)].row(i),
      ),
    );
  const { cell } = boxes.G;
  const shift = cell > 60;
  const reached = (id) => now.s < plan.blocks[id].stage && { fill: "var(--muted)" };
  answers.forEach((word, j) => {
    const [x, y] = [column(j), key.top - 7];
    const seen = { class: "keyname", ...reached("K") };
    if (cell < 28)
      all.push(
        text(fitted(word, 42, 12.4), 0, 0, {
          ...seen,
          transform: `${at(x + 3.5, y + 3)} rotate(-90)`,
        }),
      );
    else
      all.push(
        text(fitted(word, cell, 12), shift ? x + 7 : x, y, {
          ...seen,
          "text-anchor": shift ? "start" : "middle",
        }),
      );
    if (cross && !falls)
      all.push(
        text(word, boxes.V.x + 2, boxes.V.row(j) - boxes.V.tile / 2 - 4, {
          class: "valuename",
          ...reached("V"),
        }),
      );
  });
  if (P)
    plan.s.vocabulary.forEach((word, j) =>
      all.push(
        text(fitted(word, P.cell + 6, 12.5), P.x + (j + 0.5) * P.cell, P.row(0) - P.tile / 2 - 7, {
          class: "wordname",
          ...reached("P"),
        }),
      ),
    );
  return all;
}

const marked = ({ look, found }, id) =>
  !found
    ? ""
    : id === look
      ? " self"
      : found.reads.has(id)
        ? " lit"
        : found.feeds.has(id)
          ? " fed"
          : "";

/** What makes a cell one that can be looked at; its label contains the text that it shows. */
function cell(c, name, role, label, ...content) {
  const all = { class: `cell ${role}${marked(c, name)}` };
  if (!c.still)
    Object.assign(all, {
      "data-cell": name,
      role: "button",
      tabindex: c.focus === name ? 0 : -1,
      "aria-label": label,
    });
  return group(all, content);
}

/** The numbers of a block as tinted tiles; where digits do not fit, hollow means below zero. */
function tiles(c, id) {
  const { plan, geo, now, head, M } = c;
  const { role, columns } = plan.blocks[id];
  // Scores, then shares.
  const turned = id === "P" ? smooth(part(now, plan.when.shares, [0.1, 0.6])) : 1;
  const matrix = turned < 0.5 ? M.L : M[id];
  const largest = most(matrix);
  const tall = id === "K";
  const box = tall ? geo.key : geo.boxes[id];
  const [size, digits] = lettering(plan, geo, id, head);
  const [w, h] = [box.cell - 2, tall ? box.tile - 2 : box.tile];
  const bare = digits < 0;
  const who = id === "K" || id === "V" || id === "M" ? plan.answers : plan.names;
  return matrix.map((row, i) =>
    row.map((value, k) => {
      const shown = smooth(shownAt(plan, id, i, k, now, head));
      if (!shown) return null;
      const x = tall ? geo.column(i) - w / 2 : box.x + k * box.cell + 1;
      const y = tall ? box.top + k * box.tile + 1 : box.row(i) - h / 2;
      // Not darker than a word in it can be read on.
      const ofP = id === "P" && Math.min(2.4 * turned * M.P[i][k], 1.7);
      const share = (id === "P" ? ofP : Math.abs(value) / largest) * shown;
      const hollow = bare && value < 0 && w > 6;
      const inset = hollow ? 1.5 : 0;
      const fill = bare
        ? 0.06 + (role === "ink" ? 0.5 : 0.84) * share
        : 0.03 + (role === "ink" ? 0.17 : 0.33) * share;
      const other = id === "Z" && Math.floor(k / plan.d_v) !== head;
      const said = short(value, bare ? 3 : digits);
      const pressed = c.found?.terms[c.found.step]?.reads.includes(`${id}.${i}.${k}`);
      return cell(
        c,
        `${id}.${i}.${k}`,
        `${role}${other ? " other" : ""}${pressed ? " now" : ""}`,
        `${naming(plan, id, now)[1]}, ${who[i]}, ${k + 1} of ${columns}: ${said}`,
        rect(x + inset, y + inset, Math.max(w - 2 * inset, 1), h - 2 * inset, {
          rx: Math.min(3, w / 3),
          fill: hollow ? "var(--page)" : tint(role, fill),
          stroke: tint(role, hollow ? fill : role === "ink" ? 0.26 : 0.45),
          "stroke-width": hollow ? 3 : 1,
        }),
        !bare &&
          text(said, x + w / 2, y + h / 2 + size * 0.36, {
            "font-size": size,
            class:
              Math.abs(value) < 1e-9
                ? "digits zero"
                : id === "P" && turned === 1 && value === Math.max(...row)
                  ? "digits most"
                  : "digits",
            opacity: shown * Math.abs(2 * turned - 1),
          }),
      );
    }),
  );
}

/** The grid, where each line of a query crosses each line of a key: scores that become shares. */
function crossing(c) {
  const { plan, geo, now, M } = c;
  const { when, n_q } = plan;
  const { size, height, row } = geo.boxes.G;
  const scaled = smooth(part(now, when.scale, [0.2, 0.75]));
  const closing = when.mask === undefined ? 0 : smooth(part(now, when.mask, [0.2, 0.6]));
  const largest = most(M.S);
  return M.A.map((weights, i) =>
    weights.map((a, j) => {
      const shown = shownAt(plan, "G", i, j, now);
      if (!shown) return null;
      const turn = slots(n_q, [1.4])[i];
      const powered = smooth(part(now, when.softmax, late(turn, 0.05, 0.4)));
      const shared = smooth(part(now, when.softmax, late(turn, 0.52, 0.92)));
      const closed = M.masked[i][j] === -Infinity ? closing : 0;
      const [cx, cy] = [geo.column(j), row(i)];
      const [x, y] = [cx - size / 2, cy - height / 2];
      const [score, divided] = [M.S[i][j], M.D[i][j]];
      // Only numbers that are in the calculation: one fades out, the next fades in.
      const [from, to, way, doing] =
        shared > 0
          ? [Math.exp(divided), a, shared, `÷ ${short(sum(M.masked[i].map(Math.exp)), 2)}`]
          : powered > 0
            ? [divided, Math.exp(divided), powered, `e^${short(divided, 2)}`]
            : scaled > 0
              ? [score, divided, scaled, `÷ √${plan.d_k}`]
              : [score, score, 1, ""];
      const value = way < 0.5 ? from : to;
      const large = size >= 66 ? 19 : size >= 56 ? 17 : size >= 40 ? 14 : geo.falls ? 11.6 : 12.4;
      const two = short(value, 2);
      const said = [
        size >= 56 && shared >= 0.5 && short(value, 3),
        two,
        two.replace(/^0\./, "."),
        short(value, 1),
      ].find((each) => each && wide(each, large) <= size - (size < 40 ? 4 : 8));
      const fits = said !== undefined;
      const fill =
        fits || shared > 0.5
          ? a * shared
          : (0.05 + (0.5 * Math.abs(score)) / largest) * (1 - shared);
      const ink = `var(--${cellInk(fill)})`;
      const was =
        way < 1 ? doing : shared ? `${short(score, 1)}→${short(divided, 2)}` : short(score, 1);
      const above = size >= 56 && scaled > 0 && wide(was, 12.4) < size - 8;
      const drawn = fits ? said + (above ? ` ${was}` : "") : short(value);
      const written = closed ? short(-Infinity) : drawn;
      return cell(
        c,
        `G.${i}.${j}`,
        "weight",
        `${plan.names[i]} asks, ${plan.answers[j]} answers: ${written}`,
        rect(x, y, size, height, {
          rx: 4,
          fill: tint(fits || shared ? "weight" : "ink", fill),
          stroke: tint("weight", 0.55 * shown),
        }),
        closed < 1 &&
          fits &&
          text(said, cx, cy + large * 0.36 + (size >= 56 && scaled > 0 ? 5 : 0), {
            "font-size": large,
            class: "digits",
            fill: ink,
            opacity: shown * (1 - closed) * Math.abs(1 - 2 * way),
          }),
        closed < 1 && above && html` ${text(was, x + 6, y + 15, { class: "was", fill: ink })}`,
        closed > 0 &&
          element("path", { d: hatch(x, y, size, height), class: "hatch", opacity: closed }),
      );
    }),
  );
}

function hatch(x, y, w, h) {
  return range(Math.ceil((w + h) / 8) - 1)
    .map((k) => {
      const d = 8 * (k + 1);
      const [x0, y0, x1, y1] = [
        x + Math.max(d - h, 0),
        y + Math.min(d, h),
        x + Math.min(d, w),
        y + Math.max(d - w, 0),
      ];
      return `M${spot(x0, y0)}L${spot(x1, y1)}`;
    })
    .join("");
}

/**
 * The matrices that a line passes, with their larger numbers in miniature; the sums and the norms.
 */
function gates({ plan, geo, now, M, found, still }) {
  const { n, when, stages, s: given } = plan;
  const tall = (n - 1) * geo.lane + 34;
  const kinds = {
    Q: ["w_q", "query", when.qkv, M.W_Q],
    K: ["w_k", "key", when.qkv, M.W_K],
    V: ["w_v", "value", when.qkv, M.W_V],
    O: ["w_o", "ink", when.join],
    H: ["w_1", "ink", when.think],
    F: ["w_2", "ink", when.think],
    P: ["w_vocab", "ink", when.words],
    N1: ["norm", "line", when.add1],
    N2: ["norm", "line", when.add2],
  };
  return Object.entries(geo.gates)
    .filter(([id]) => !(writes(given) && id[0] === "N"))
    .map(([id, [x, y, upright]]) => {
      const [name, role, stage, matrix = given[name]] = kinds[id];
      const waits = !part(now, stage, matrix ? [0, 0.01] : [0.6, 0.7]);
      const frame = (w, h, ...content) =>
        group(
          {
            class: `gate${waits ? " waits" : found?.id === id ? " lit" : ""}${
              waits || !stages[now.s].lit || now.s === stage ? "" : " dim"
            }`,
            "data-gate": matrix && !still && name,
          },
          rect(x - w / 2, y - h / 2, w, h, { rx: 5, stroke: paint(role) }),
          content,
        );
      if (!matrix) {
        const [w, h] = upright ? [17, tall] : [40, 18];
        return frame(
          w,
          h,
          text("norm", 0, 0, {
            class: "norm",
            transform: upright ? `${at(x + 4, y)} rotate(-90)` : at(x, y + 4),
          }),
        );
      }
      const [rows, columns] = [matrix.length, matrix[0].length];
      const dot = Math.min(5, 22 / Math.max(rows, columns));
      const label = id === "P" ? 52 : 28;
      const w = upright ? label + 2 : label + columns * dot + 16;
      const h = upright
        ? tall
        : Math.max(28, geo.falls || role === "ink" ? 0 : (n - 1) * geo.pitch + 16);
      const [gx, gy] = upright
        ? [x - (columns * dot) / 2, y + 2]
        : [x + w / 2 - columns * dot - 6, y - (rows * dot) / 2];
      const largest = most(matrix);
      const dots = matrix.flatMap((row, r) =>
        row.map(
          (value, k) =>
            Math.abs(value) > 0.3 * largest &&
            box(gx + k * dot, gy + r * dot, dot - 0.8, dot - 0.8),
        ),
      );
      return [
        rect(x - w / 2, y - h / 2, w, h, { rx: 5, fill: "var(--page)" }),
        frame(
          w,
          h,
          text(
            symbol(
              name.replace("w", "W").replace(/_[qkvo]$/, (low) => low.toUpperCase()),
              15,
            ),
            upright ? x : x - w / 2 + 6,
            upright ? y - 6 : y + 4.5,
            { "text-anchor": upright ? "middle" : "start", fill: paint(role) },
          ),
          !waits && element("path", { fill: paint(role), d: dots.filter(Boolean).join("") }),
        ),
      ];
    })
    .concat(
      Object.entries(geo.signs).map(([id, all]) =>
        all.map(([x, y]) =>
          group(
            { class: part(now, kinds[id][2], [0.5, 0.64]) ? "sign" : "sign waits" },
            element("circle", { cx: x, cy: y, r: 9 }),
            element("path", { d: `M${x - 5} ${y}h10M${x} ${y - 5}v10` }),
          ),
        ),
      ),
    );
}

/** The letters of the blocks, and their words where neither lines nor others are in the way. */
function titles({ plan, geo, now }) {
  const { boxes, key, falls, posts } = geo;
  const { lit } = plan.stages[now.s];
  const taken = [[], []]; // in the row of the letters, in that of the words
  const place = (row, x, room) => {
    const all = [...taken[row], ...Array.from(posts, (post) => [post - 4, post + 4])];
    if (all.some(([from, to]) => from < x && x < to)) return null;
    const low = Math.max(...all.map(([, to]) => to).filter((to) => to <= x), 0) + room / 2;
    const high =
      Math.min(...all.map(([from]) => from).filter((from) => from >= x), geo.width) - room / 2;
    if (low > high) return null;
    const found = clamp(x, low, high);
    taken[row].push([found - room / 2, found + room / 2]);
    return found;
  };
  const title = (id) => {
    const { role, stage } = plan.blocks[id];
    const [letters, words] = naming(plan, id, now);
    const waits = now.s < stage;
    const fill = waits
      ? "var(--muted)"
      : id === "G" && now.s < plan.when.softmax
        ? "var(--ink)"
        : paint(role);
    const letter = (x, y, anchor) =>
      text(symbol(letters, 17), x, y, { "text-anchor": anchor, class: "letters", fill });
    const small = (x, y, anchor) => text(words, x, y, { "text-anchor": anchor, class: "words" });
    if (id === "K") {
      const [x, y] = [boxes.G.x - 8, (key.top + key.bottom) / 2];
      return [letter(x, y - 1, "end"), (!falls || plan.n < 4) && small(x, y + 15, "end")];
    }
    const box = boxes[id];
    if (falls || id === "M") {
      const pass = falls ? ({ V: 20, O: 60, H: 60, F: 60, N1: 52, N2: 52, P: 122 }[id] ?? 0) : 0;
      const x =
        id === "G"
          ? Math.max(box.x + box.w - 140, boxes.Q.x + 84)
          : id === "M" && !falls
            ? geo.start + 2
            : Math.min(box.x, geo.width - 76) + pass;
      const leaning = id === "M" && falls && plan.s.columns?.length > 0;
      const y = box.title - (falls && id === "P" ? 16 : leaning ? 42 : 0);
      const named = element("tspan", { class: "words", dx: 7 }, words);
      return text([symbol(letters, 16), named], x, y, { class: "letters", fill });
    }
    const x = box.x + box.w / 2;
    const [above, below] = [
      place(0, x, wide(letters.replace("_", ""), 14) + 4),
      place(1, x, wide(words, 11.5) + 8),
    ];
    return [
      letter(above ?? x, box.title, "middle"),
      below !== null && small(below, box.title + 16, "middle"),
    ];
  };
  const first = (id) => (lit ? !lit.includes(id) : !"XGZVPH".includes(id) && id !== "N2");
  return Object.keys(plan.blocks)
    .sort((p, q) => first(p) - first(q))
    .map(title);
}

/**
 * What a stage does to its numbers: queries lie down on keys and are multiplied, weights fly to
 * their ribbons.
 */
function film(c) {
  const { plan, geo, now } = c;
  if (now.u >= 1) return null;
  const { scores, blend, shares } = plan.when;
  if (now.s === shares && geo.falls && writes(plan.s)) return null; // the panel says it
  return { [scores]: meeting, [blend]: flying, [shares]: leaving }[now.s]?.(c);
}

function chip(x, y, w, h, kind, opacity, content) {
  return group(
    { transform: at(x, y), opacity, "data-key": at(x, y) },
    rect(-w / 2, -h / 2, w, h, { rx: h / 2, class: `chip ${kind}` }),
    content && text(content, 0, 4.5, { class: "chip" }),
  );
}

function meeting({ plan, geo, now, M }) {
  const { n_k, d_k } = plan;
  const { boxes, key, column } = geo;
  const all = meetings(plan);
  const k = all.findIndex(([from, to]) => now.u >= from && now.u < to);
  if (k < 0) return null;
  const [i, j, v] = [Math.floor(k / n_k), k % n_k, span(now.u, ...all[k])];
  const [slide, drop] = [smooth(span(v, 0.03, 0.38)), smooth(span(v, 0.64, 0.9))];
  const seen = span(v, 0, 0.05) * (1 - span(v, 0.9, 0.97));
  return range(d_k).map((e) => {
    const [q, answer] = [M.Q[i][e], M.K[j][e]];
    const home = [column(j), key.top + (e + 0.5) * key.tile];
    const from = [boxes.Q.x + (e + 0.5) * boxes.Q.cell, boxes.Q.row(i)];
    const to = [
      column(j),
      boxes.G.row(i) +
        (e - (d_k - 1) / 2) * Math.min(16, boxes.G.height / (d_k + 1)) * (1 - span(drop, 0.8, 1)),
    ];
    const [paired, multiplied] = [slide >= 1, drop > 0.12];
    const [x, y] = paired
      ? [mix(home[0], to[0], drop), mix(home[1], to[1], drop)]
      : [mix(from[0], home[0] - key.cell * 0.36, slide), mix(from[1], home[1], slide)];
    const said = multiplied
      ? short(q * answer, 2)
      : paired
        ? `${short(q, 1)}·${short(answer, 1)}`
        : short(q, 1);
    const room = key.tile >= 15 && wide(said, 12) < boxes.G.cell + 8;
    const words =
      paired && !multiplied
        ? [
            element("tspan", { class: "query" }, short(q, 1)),
            "·",
            element("tspan", { class: "key" }, short(answer, 1)),
          ]
        : element("tspan", { class: !paired && "query" }, said);
    return chip(
      x,
      y,
      room ? Math.max(24, wide(said, 12) + 12) : 12,
      room ? Math.min(22, key.tile - 3) : 8,
      paired ? "pair" : "asks",
      seen,
      room && words,
    );
  });
}

function flying({ plan, geo, now, M }) {
  const { port, column, boxes } = geo;
  return M.A.map((row, i) =>
    row.map((a, j) => {
      const slot = blends(plan)[i];
      const seen =
        span(now.u, ...late(slot, 0, 0.04)) * (1 - span(now.u, ...late(slot, 0.32, 0.4)));
      if (!seen || !a) return null;
      const way = smooth(span(now.u, ...late(slot, 0.02, 0.32)));
      const end = port.row(i) + (sum(row.slice(0, j)) + a / 2 - 0.5) * port.height;
      return chip(
        mix(column(j), port.x + 2, way),
        mix(boxes.G.row(i), end, way) - Math.sin(Math.PI * way) * 26,
        38,
        22,
        "share",
        seen,
        short(a, 2),
      );
    }),
  );
}

/** The word with the largest share goes to the end of the lane. */
function leaving({ plan, geo, now }) {
  const { P } = geo.boxes;
  return plan.ends.map((word, i) => {
    const shares = plan.made.P[i];
    const way = smooth(span(now.u, 0.66 + 0.04 * i, 0.9));
    if (!way || now.u > 0.96) return null;
    const w = wide(word, 12.5) + 14;
    const from = P.x + (shares.indexOf(Math.max(...shares)) + 0.5) * P.cell;
    return chip(mix(from, geo.end + w / 2 - 7, way), P.row(i), w, 24, "pair", 1, word);
  });
}
