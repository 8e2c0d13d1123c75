/**
 * What pictures of points and arrows share: pure, numbers in, numbers and path data out.
 *
 * A point is [x, y]. A `unit` is a direction of length 1; what lies `aside` is to its right on a
 * sheet, where y grows downwards.
 */
import { clamp } from "../kit/numbers.js";

export const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);

/** The corners of the convex hull, counter-clockwise (Andrew's monotone chain). */
export function hullOf(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 2 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

const tenth = (x) => x.toFixed(1);

/** A point as path data. */
export const at = ([x, y]) => `${tenth(x)} ${tenth(y)}`;

/** A line through points as path data. */
export const through = (points) => (points.length ? `M${points.map(at).join("L")}` : "");

/** The vector from a to b: its length, and the same with length 1, or 0 if there is none. */
export function direction(a, b) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = Math.hypot(dx, dy);
  return { length, unit: length < 1e-9 ? [0, 0] : [dx / length, dy / length] };
}

/** A point `far` from `a` along `unit`, and `aside` to its side. */
export const along = (a, [ux, uy], far, aside = 0) => [
  a[0] + ux * far - uy * aside,
  a[1] + uy * far + ux * aside,
];

/** How far p is from the line between a and b. */
export function distanceFromLine(p, a, b) {
  const { length, unit } = direction(a, b);
  const far = clamp((p[0] - a[0]) * unit[0] + (p[1] - a[1]) * unit[1], 0, length);
  return distance(p, along(a, unit, far));
}

/** A line from a to b, `thick` wide, as an outline: many of them make one path. */
export function band(a, b, thick) {
  const { length, unit } = direction(a, b);
  if (length < 0.05) return "";
  const half = thick / 2;
  const corners = [
    along(a, unit, 0, half),
    along(b, unit, 0, half),
    along(b, unit, 0, -half),
    along(a, unit, 0, -half),
  ];
  // A thin line is thinner than a tenth.
  const fine = (point) => point.map((x) => x.toFixed(2)).join(" ");
  return `M${corners.map(fine).join("L")}Z`;
}

/** The three corners of an arrowhead with its tip at `tip`. */
const head = (tip, unit, size) =>
  `${through([tip, along(tip, unit, -size, size * 0.5), along(tip, unit, -size, -size * 0.5)])}Z`;

/** A straight arrow; the head shrinks with an arrow that is shorter than it. */
export function arrow(from, to, size = 8) {
  const { length, unit } = direction(from, to);
  if (length < 0.6) return "";
  const fits = Math.min(size, 1.5 + length * 0.25);
  return `${through([from, along(to, unit, -fits * 0.7)])}${head(to, unit, fits)}`;
}

/**
 * A curved arrow between two marks, which starts and ends `gap` away from their centers. `bend` is
 * how far it bends to the side, as a part of its length.
 */
export function curvedArrow(from, to, bend, gap, size = 9) {
  const { length, unit } = direction(from, to);
  const middle = along(from, unit, length / 2, length * bend);
  const start = along(from, direction(from, middle).unit, gap[0]);
  const last = direction(middle, to).unit;
  const end = along(to, last, -gap[1]);
  return {
    d: `M${at(start)}Q${at(middle)} ${at(along(end, last, -size * 0.7))}`,
    head: head(end, last, size),
  };
}

/** The middle of a box of this size beside a point: it clears a circle of radius `gap`. */
export function beside(point, [ux, uy], [w, h], gap) {
  const far = Math.min(
    (w / 2 + gap) / Math.max(Math.abs(ux), 1e-6),
    (h / 2 + gap) / Math.max(Math.abs(uy), 1e-6),
  );
  return [point[0] + ux * far, point[1] + uy * far];
}

const AROUND = [0, -1, 1, -2, 2, -3, 3, 4].map((eighth) => (eighth * Math.PI) / 4);

/**
 * Where names go: each beside its point, in the direction it would like, or turned from it where
 * other names or marks are in the way. A label is { point, size, gap, way }; `taken` are points
 * [x, y, price] that had better not be covered; the sheet is [width, height]. Gives middles.
 */
export function placed(labels, taken, [width, height]) {
  const boxes = [];
  for (const {
    point,
    size: [w, h],
    gap,
    way,
  } of labels) {
    let best = { price: Infinity };
    for (const turn of AROUND) {
      const [c, s] = [Math.cos(turn), Math.sin(turn)];
      const wish = beside(point, [way[0] * c - way[1] * s, way[0] * s + way[1] * c], [w, h], gap);
      const [x, y] = [
        clamp(wish[0], w / 2 + 1, width - w / 2 - 1),
        clamp(wish[1], h / 2 + 1, height - h / 2 - 1),
      ];
      let price = Math.abs(turn) * 0.8 + distance([x, y], wish) * 0.5;
      for (const box of boxes) {
        const [dx, dy] = [
          (w + box.w) / 2 - Math.abs(x - box.x),
          (h + box.h) / 2 - Math.abs(y - box.y),
        ];
        if (dx > 0 && dy > 0) price += 8 + Math.min(dx, dy);
      }
      for (const [a, b, cost] of taken) {
        if (Math.abs(a - x) < w / 2 + 1 && Math.abs(b - y) < h / 2) price += cost;
      }
      if (price < best.price) best = { price, x, y, w, h };
    }
    boxes.push(best);
  }
  return boxes.map(({ x, y }) => [x, y]);
}
