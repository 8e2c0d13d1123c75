/**
 * DotProduct: a query and a key as arrows. The key is a step to the right and a step up, and each
 * of them throws a shadow on the line of the query.
 */
import { along, arrow, direction, placed, through } from "../drawing/geometry.js";
import { attributes, buttons, element, html } from "../kit/markup.js";
import { clamp, plain } from "../kit/numbers.js";

const SIDE = 320; // of the sheet
const SHEET = { unit: 66, left: 96, floor: 222 };
const [LEAST, MOST] = [-1.3, 3];
const STEP = 0.1; // of a tip that is moved
const RIBBON = 9; // how thick a shadow is drawn
const RING = 6.5;

const isPoint = (point) =>
  Array.isArray(point) &&
  point.length === 2 &&
  point.every((x) => typeof x === "number" && x >= LEAST && x <= MOST);
export const shared = { query: isPoint, key: isPoint };
export const layout = "abh-instrument abh-beside";
export const label = () => "The dot product of a query and a key, computed in two ways";

/** What can glide: both tips. */
export const pose = (s) => [s.query, s.key];

/** The two products and their sum; the shadows of both steps and of the key; the query's length. */
export function compute(s) {
  const [query, key] = s.moving ?? pose(s);
  const products = query.map((x, c) => x * key[c]);
  const length = Math.hypot(...query);
  const shadows = products.map((product) => (length ? product / length : 0));
  const sum = ([a, b]) => a + b;
  return { query, key, products, length, shadows, score: sum(products), shadow: sum(shadows) };
}

const px = ([x, y]) => [SHEET.left + SHEET.unit * x, SHEET.floor - SHEET.unit * y];
const short = (x) => plain(Number(x.toFixed(2))).replace("-", "−");
const decimals = (x) =>
  x
    .toFixed(2)
    .replace(/^-0\.00$/, "0.00")
    .replace("-", "−");
const factor = (x) => (x < 0 ? `(${short(x)})` : short(x));
const path = (kind, d) => d && element("path", { class: kind, d });

/** Where an arrow ends, before the ring at its tip. */
const before = (point) => {
  const [origin, tip] = [px([0, 0]), px(point)];
  return along(tip, direction(origin, tip).unit, -RING);
};

/** The names of both arrows, each beyond its tip and on the side where the other arrow is not. */
function names(query, key) {
  const labels = [
    ["query", query, key],
    ["key", key, query],
  ].map(([name, point, other]) => {
    const { length, unit } = direction(px([0, 0]), px(point));
    const side = point[0] * other[1] - point[1] * other[0] > 0 ? 1 : -1;
    const way = length < 1 ? [-0.6, 0.8] : along([0, 0], unit, 0.8, 0.6 * side);
    return { name, point: px(point), size: [10 * name.length, 20], gap: 9, way };
  });
  const rings = [query, key].map((point) => [...px(point), 4]);
  return placed(labels, rings, [SIDE, SIDE]).map(([x, y], i) => {
    const { name } = labels[i];
    return element("text", { class: name, x, y: y + 4, "text-anchor": "middle" }, name);
  });
}

/** The tip of an arrow, which can be taken hold of. */
function handle(name, point) {
  const [x, y] = px(point);
  return html`<g${attributes({
    class: `tip ${name}`,
    "data-tip": name,
    role: "slider",
    tabindex: 0,
    transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
    "aria-label": name,
    "aria-valuenow": point[0],
    "aria-valuetext": point.map((number) => short(number)).join(", "),
    "data-gesture": name === "key",
  })}><circle class="hold" r="16"/><circle class="end" r="${RING}"/></g>`;
}

function drawing({ query, key, length, shadows, shadow }) {
  const origin = px([0, 0]);
  const { unit } = direction(origin, px(query));
  const upon = (far, aside = 0) => along(origin, unit, far * SHEET.unit, aside);
  const [corner, tip] = [px([key[0], 0]), px(key)];
  const dots = [-1, 0, 1, 2, 3].flatMap((x) => [-1, 0, 1, 2, 3].map((y) => px([x, y])));
  const ends = [-1, 1].map((way) => along(origin, unit, way * 2 * SIDE));
  // Shadows lie beside the query's arrow, away from the key; one that runs back, beside the other.
  const lean = query[0] * key[1] < query[1] * key[0] ? -1 : 1;
  const aside = lean * (RIBBON / 2 + 3);
  const beside = shadows[0] * shadows[1] < 0 ? aside + lean * RIBBON : aside;
  const foot = upon(shadow);
  const away = direction(foot, tip);
  const back = along(foot, unit, shadow > 0 ? -7 : 7);
  return html`<svg${attributes({
    viewBox: `0 0 ${SIDE} ${SIDE}`,
    role: "group",
    "data-part": "sheet",
    "aria-label":
      `The query ${query.map(short)} and the key ${key.map(short)} as arrows. ` +
      `The shadow of the key on the line of the query is ${decimals(shadow)} long.`,
  })}>
${path("grid", dots.map(([x, y]) => `M${x} ${y}h0`).join(""))}
${path("axis", `M${origin[0]} 6V${SIDE - 6}M6 ${origin[1]}H${SIDE - 6}`)}
${length > 0 && path("rule", through(ends))}
<g class="steps">${path("first", through([origin, corner]))}${path(
    "second",
    through([corner, tip]),
  )}</g>
<g class="shadows">${path("first", through([upon(0, aside), upon(shadows[0], aside)]))}${path(
    "second",
    through([upon(shadows[0], beside), upon(shadow, beside)]),
  )}</g>
${length > 0 && path("fall", through([corner, upon(shadows[0])]) + through([tip, foot]))}
${
  away.length > 14 &&
  path("square", through([back, along(back, away.unit, 7), along(foot, away.unit, 7)]))
}
${path("query", arrow(origin, before(query), 10))}${path("key", arrow(origin, before(key), 10))}
${handle("query", query)}${handle("key", key)}
<g class="names" aria-hidden="true">${names(query, key)}</g>
</svg>`;
}

/** Both computations, step by step of the key: the product, and the shadow times the length. */
function table({ query, key, products, shadows, score, shadow, length }) {
  const row = (kind, name, c) =>
    html`<tr><th scope="row"><span class="${kind}"></span><i class="step">step </i>${name}</th>
<td>${short(query[c])} · ${factor(key[c])} = <b>${short(products[c])}</b></td>
<td>${decimals(shadows[c])} · ${decimals(length)} = <b>${short(products[c])}</b></td></tr>`;
  return html`<table data-part="table"><thead><tr><td></td><th scope="col">product</th><th
scope="col">shadow · length of the query</th></tr></thead>
<tbody>${row("first", "right", 0)}${row("second", "up", 1)}</tbody>
<tfoot><tr><th scope="row">whole key</th><td><b data-part="score">${short(score)}</b></td>
<td>${decimals(shadow)} · ${decimals(length)} = <b data-part="along">${short(score)}</b></td></tr>
</tfoot></table>`;
}

export function picture(s) {
  const found = compute(s);
  return [
    html`<div class="controls"><p class="task">Drag the tip of the <b class="key">key</b>, and watch
its shadow on the line of the <b class="query">query</b>.</p></div>`,
    html`<div class="picture plane">${drawing(found)}</div>`,
    html`<div class="readout">${table(found)}${buttons()}</div>`,
    () =>
      html`<p class="visually-hidden" role="status">The score is ${short(found.score)}: the shadow
${decimals(found.shadow)} times the length ${decimals(found.length)}.</p>`,
  ];
}

export function code({ query, key }) {
  return [
    "import numpy as np",
    "",
    `query = np.array([${query.join(", ")}], dtype=float)`,
    `key = np.array([${key.join(", ")}], dtype=float)`,
    "products = query * key",
    "score = products.sum()",
    "length = np.sqrt((query**2).sum())",
    "shadow = score / length if length else 0.0",
    'print("score:", score, "shadow times length:", shadow * length)',
  ];
}

export function live(view) {
  const spot = ({ clientX, clientY }) => {
    const box = view.part("sheet").getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top].map((d) => (d * SIDE) / box.width);
    return [(x - SHEET.left) / SHEET.unit, (SHEET.floor - y) / SHEET.unit];
  };
  const move = (name, to) =>
    view.set({
      [name]: to.map((x) => clamp(Number((Math.round(x / STEP) * STEP).toFixed(6)), LEAST, MOST)),
    });
  let drag = null;

  // A finger on a tip does not scroll the page.
  const hold = (event) => event.target.closest(".tip") && event.preventDefault();
  view.listen(view.root, "touchstart", hold, { passive: false });
  view.on("sheet", "pointerdown", (event) => {
    const tip = event.target.closest(".tip");
    if (!tip || event.button) return;
    const name = tip.dataset.tip;
    const here = spot(event);
    drag = { name, off: view.state()[name].map((x, c) => x - here[c]) };
    view.part("sheet").setPointerCapture(event.pointerId);
    event.preventDefault();
    tip.focus({ focusVisible: false, preventScroll: true });
  });
  view.on("sheet", "pointermove", (event) => {
    if (drag)
      move(
        drag.name,
        spot(event).map((x, c) => x + drag.off[c]),
      );
  });
  for (const end of ["pointerup", "pointercancel"])
    view.on("sheet", end, () => {
      drag = null;
    });
  view.listen(
    self,
    "keydown",
    (event) => {
      const tip = view.root.contains(event.target) && event.target.closest(".tip");
      if (!tip || event.altKey || event.metaKey || event.ctrlKey) return;
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
        event.key
      ];
      if (!way) return;
      event.preventDefault();
      const far = STEP * (event.shiftKey ? 5 : 1);
      const { tip: name } = tip.dataset;
      move(
        name,
        view.state()[name].map((x, c) => x + far * way[c]),
      );
    },
    { capture: true },
  );
}
