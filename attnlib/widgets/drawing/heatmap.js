/** Attention weights as a heatmap, and as a table. */

import { element, table, text } from "../kit/markup.js";
import { two } from "../kit/numbers.js";

/** The weights as a table for those who do not see the picture. */
export function weightTable({ tokens, keys = tokens, weights, allowed: may }) {
  const rows = tokens.map((word, i) => [
    word,
    ...weights[i].map((w, j) => (may[i][j] ? w.toFixed(2) : "masked")),
  ]);
  return table("Attention weights: queries in rows, keys in columns", ["", ...keys], rows);
}

/**
 * The ink that can be read on a cell of this weight; the thresholds are those of attnlib.palette.
 */
export const cellInk = (weight) =>
  weight < 0.635 ? "cell-low" : weight < 0.845 ? "cell-mid" : "cell-high";

/** The width of a cell, in a drawing's units, from which two decimals keep apart from the next. */
const ROOM_FOR_DIGITS = 34;
const ROOM_FOR_A_LINE = 14; // and the height that a line of digits needs

/** For each value in a matrix, in order: the value, and a path down all cells that hold it. */
export function runs(matrix) {
  const n = matrix.length;
  const paths = new Map();
  for (let j = 0; j < matrix[0].length; j++) {
    for (let i = 0, start = 0; i < n; i++) {
      const value = matrix[i][j];
      if (i + 1 < n && matrix[i + 1][j] === value) continue;
      paths.set(value, `${paths.get(value) ?? ""}M${j} ${start}v${i + 1 - start}`);
      start = i + 1;
    }
  }
  return Array.from(paths).sort(([a], [b]) => a - b);
}

/**
 * A heatmap in units of a cell: a path for each step of opacity but 0, cells of a column joined.
 * A path runs down the middles of the columns, so its stroke is as wide as a cell. That is far
 * less to draw than an element for each of 64 x 64 cells.
 */
export function shades(weights, steps) {
  const paths = runs(weights.map((row) => row.map((weight) => Math.floor(weight * steps + 0.5))));
  return paths
    .filter(([step]) => step)
    .map(([step, d]) => element("path", { d, opacity: step / steps }));
}

/** A token that fits beside a drawing. */
export function cut(token) {
  const letters = Array.from(token);
  return letters.length < 9 ? token : `${letters.slice(0, 7).join("")}…`;
}

/**
 * Attention weights as they are drawn everywhere: queries in rows, keys in columns. Masked cells
 * are hatched, a frame marks the selected row, and labels and numbers appear where they fit. The
 * columns have the tokens of the rows unless `keys` are given.
 */
export function heatmap(
  { tokens, keys = tokens, weights, allowed: may, row, top: most },
  { left, top, size },
) {
  const [wide, high] = [size / keys.length, size / tokens.length];
  const short = (x) => Number(x.toFixed(2));
  const scale = wide === high ? short(wide) : `${short(wide)} ${short(high)}`;
  const place = `translate(${short(left + wide / 2)} ${top}) scale(${scale})`;
  const frame = { x: left, y: top + row * high, width: size, height: high, class: "frame" };
  const middle = (j) => left + (j + 0.5) * wide;
  const base = (i) => top + (i + 0.5) * high + 4;
  const number = (weight, i, j) =>
    may[i][j] &&
    text(two(weight), middle(j), base(i), cellInk(weight), { "text-anchor": "middle" });
  const numbered = wide >= ROOM_FOR_DIGITS && high >= ROOM_FOR_A_LINE;
  return [
    element("g", { transform: place, class: "cells" }, shades(weights, 50)),
    element("path", { d: hatches(may, { left, top, size }), class: "hatch" }),
    tokens.map((token, i) => {
      const rightAligned = { "text-anchor": "end", "font-weight": i === row ? "bold" : "normal" };
      return [
        (high >= 10 || i === row) && text(cut(token), left - 8, base(i), "query", rightAligned),
        numbered && weights[i].map((weight, j) => number(weight, i, j)),
      ];
    }),
    keys.map((token, j) => {
      const turned = `translate(${short(middle(j) + 3)} ${top - 7}) rotate(-60)`;
      return (
        (wide >= 10 || j === most) &&
        element("text", { transform: turned, fill: "var(--key)" }, cut(token))
      );
    }),
    element("rect", { x: left, y: top, width: size, height: size, class: "edge" }),
    element("rect", frame),
  ];
}

/**
 * Diagonals across the cells that are blocked, so that forbidden looks different from zero. On one
 * diagonal x + y is the same everywhere, and a line runs on through neighboring blocked cells: a
 * causal mask of 64 x 64 cells needs 125 lines instead of 2016.
 */
function hatches(may, { left, top, size }) {
  const [rows, columns] = [may.length, may[0].length];
  // Three diagonals meet each side of a cell, one if it is small.
  const [across, down] = [size / (3 * columns), size / (3 * rows)];
  const step = 3 * Math.min(across, down) >= 10 ? 1 : 3;
  const short = (x) => Number(x.toFixed(2));
  const blocked = (x, y) =>
    y > 0 && x < 3 * columns && !may[Math.floor((y - 1) / 3)][Math.floor(x / 3)];
  let path = "";
  for (let sum = step; sum < 3 * (rows + columns); sum += step) {
    let start = Math.max(sum - 3 * rows, 0);
    for (let x = start; x <= Math.min(sum, 3 * columns); x += step) {
      if (blocked(x, sum - x)) continue;
      if (x > start) {
        const from = `M${short(left + start * across)} ${short(top + (sum - start) * down)}`;
        path += `${from}l${short((x - start) * across)} -${short((x - start) * down)}`;
      }
      start = x + step;
    }
  }
  return path;
}

/**
 * The cell of a heatmap on a sheet `width` units wide under the pointer, or null; `n` is how many
 * rows and columns there are, or [rows, columns].
 */
export function cellAt(event, svg, width, n, { left, top, size }) {
  const box = svg.getBoundingClientRect();
  const [rows, columns] = [n].flat().length > 1 ? n : [n, n];
  const [x, y] = [event.clientX - box.left, event.clientY - box.top].map(
    (at) => (at * width) / box.width,
  );
  const [i, j] = [((y - top) / size) * rows, ((x - left) / size) * columns].map(Math.floor);
  return i >= 0 && i < rows ? { i, j, inside: j >= 0 && j < columns } : null;
}
