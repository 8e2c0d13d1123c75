/**
 * All heads of an encoder, small, as a grid of buttons.
 */
import { runs, shades } from "./heatmap.js";
import { element, html } from "../kit/markup.js";

const FINEST = 24; // cells along a side of a small head: a finer one is no clearer

/**
 * A matrix with at most `FINEST` cells along a side: each is what `together` makes of a block of
 * entries.
 */
export function pooled(matrix, together) {
  const [rows, columns] = [matrix.length, matrix[0].length];
  const [high, wide] = [rows, columns].map((n) => (n > 2 * FINEST ? Math.ceil(n / FINEST) : 1));
  if (high * wide === 1) return matrix;
  return Array.from({ length: Math.ceil(rows / high) }, (_, i) =>
    Array.from({ length: Math.ceil(columns / wide) }, (_, j) =>
      together(
        matrix
          .slice(i * high, (i + 1) * high)
          .flatMap((row) => row.slice(j * wide, (j + 1) * wide)),
      ),
    ),
  );
}

/**
 * A head in the grid: its heatmap in so many steps of opacity, and stripes on the cells that are
 * blocked.
 */
export function small(weights, allowed, steps = 8) {
  const stripes = runs(allowed)
    .filter(([may]) => !may)
    .map(([, d]) => element("path", { d, class: "blocked" }));
  const all = {
    viewBox: `-.5 0 ${weights[0].length} ${weights.length}`,
    preserveAspectRatio: weights[0].length !== weights.length && "none",
    "aria-hidden": "true",
  };
  return element("svg", all, shades(weights, steps), stripes);
}

/** All heads, [layer][head] of drawings, as a grid of buttons, one of them in the order of Tab. */
export function grid(heads, layer, head) {
  const several = heads.length > 1;
  const button = (drawing, i, j) => {
    const picked = i === layer && j === head;
    const name = `${several ? `layer ${i + 1}, ` : ""}head ${j + 1}`;
    const all = { tabindex: picked ? 0 : -1, "aria-pressed": String(picked), "aria-label": name };
    return html`<td>${element("button", { type: "button", ...all }, drawing)}</td>`;
  };
  return html`<table class="grid" role="grid" aria-label="All heads" data-part="grid">
<tr><td></td>${heads[0].map((_, j) => html`<th scope="col">${j + 1}</th>`)}</tr>${heads.map(
    (layer, i) => html`
<tr>${several ? html`<th scope="row">${i + 1}</th>` : html`<td></td>`}${layer.map((one, j) =>
      button(one, i, j),
    )}</tr>`,
  )}</table>`;
}
