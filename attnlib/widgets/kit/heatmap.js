/** Attention weights as a heatmap, and as a table. */

import { element, table, text } from "./markup.js";
import { two } from "./numbers.js";

/** The weights as a table for those who do not see the picture. */
export function weightTable({ tokens, weights, allowed: may }) {
  const rows = tokens.map((word, i) => [
    word,
    ...weights[i].map((w, j) => (may[i][j] ? w.toFixed(2) : "masked")),
  ]);
  return table("Attention weights: queries in rows, keys in columns", ["", ...tokens], rows);
}

/**
 * The ink that can be read on a cell of this weight; the thresholds are those of attnlib.palette.
 */
export const cellInk = (weight) =>
  weight < 0.635 ? "cell-low" : weight < 0.845 ? "cell-mid" : "cell-high";

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
 * Attention as it is drawn everywhere: rows ask, columns answer, masked cells are hatched, and
 * a frame stands around the row that is looked at. Labels and numbers while they fit.
 */
export function heatmap({ tokens, weights, allowed: may, row, top: most }, { left, top, size }) {
  const side = size / tokens.length;
  const middle = (i) => (i + 0.5) * side;
  const short = (x) => Number(x.toFixed(2));
  const place = `translate(${short(left + side / 2)} ${top}) scale(${short(side)})`;
  const frame = { x: left, y: top + row * side, width: size, height: side, class: "frame" };
  return [
    element("g", { transform: place, class: "cells" }, shades(weights, 50)),
    element("path", { d: hatches(), class: "hatch" }),
    tokens.map((token, i) => {
      const y = top + middle(i) + 4;
      const asks = { "text-anchor": "end", "font-weight": i === row ? "bold" : "normal" };
      const turned = `translate(${short(left + middle(i) + 3)} ${top - 7}) rotate(-60)`;
      const number = (weight, j) =>
        may[i][j] &&
        text(two(weight), left + middle(j), y, cellInk(weight), { "text-anchor": "middle" });
      return [
        (side >= 10 || i === row) && text(cut(token), left - 8, y, "query", asks),
        (side >= 10 || i === most) &&
          element("text", { transform: turned, fill: "var(--key)" }, cut(token)),
        side >= 27 && weights[i].map(number),
      ];
    }),
    element("rect", { x: left, y: top, width: size, height: size, class: "edge" }),
    element("rect", frame),
  ];

  /** Diagonals across the cells that are blocked: forbidden looks different from zero. */
  function hatches() {
    const parts = side >= 10 ? [1 / 3, 2 / 3, 1] : [1];
    const cell = (i, j) => {
      const [x, y] = [left + j * side, top + i * side];
      return parts.map((part) => {
        const [reach, rest] = [short(part * side), short(side - part * side)];
        const upper = `M${short(x)} ${short(y + part * side)}l${reach} -${reach}`;
        return part < 1
          ? `${upper}M${short(x + part * side)} ${short(y + side)}l${rest} -${rest}`
          : upper;
      });
    };
    return may.flatMap((cells, i) => cells.flatMap((free, j) => (free ? [] : cell(i, j)))).join("");
  }
}

/** The cell of a heatmap on a sheet `width` units wide under the pointer, or null. */
export function cellAt(event, svg, width, n, { left, top, size }) {
  const box = svg.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top].map(
    (at) => (at * width) / box.width,
  );
  const [i, j] = [(y - top) / size, (x - left) / size].map((part) => Math.floor(part * n));
  return i >= 0 && i < n ? { i, j, inside: j >= 0 && j < n } : null;
}
