/**
 * MaskPainter: six scenes, each with one idea and one control.
 */
import { letters } from "./letters.js";
import { paint } from "./paint.js";
import { causal, packed, padding, windowed } from "./patterns.js";

const SCENES = { letters, causal, padding, window: windowed, packed, paint };

/** In "paint": the cell that Tab finds, and the weight under the microscope. */
export const pageState = { at: [0, 0], lens: null };

const within =
  (least, more = 0) =>
  (i, { tokens }) =>
    Number.isInteger(i) && i >= least && i < tokens.length + more;
const isRow = (row, n) =>
  Array.isArray(row) && row.length === n && row.every((may) => typeof may === "boolean");
export const shared = {
  scene: false, // a picture stays the picture it is
  position: within(0),
  length: within(1, 1),
  width: within(0),
  start: within(1),
  replaced: within(0),
  mask: (rows, { tokens: { length: n } }) =>
    Array.isArray(rows) && rows.length === n && rows.every((row) => isRow(row, n)),
};
export const layout = "abh-instrument abh-beside";
export const label = (s) => `Mask painter: ${SCENES[s.scene].label}`;

/** What the scene computes: right guesses, a mask, or weights and what moves with each token. */
export const compute = (s) => SCENES[s.scene].compute(s);

export const picture = (s) => SCENES[s.scene].picture(s);

export const code = (s) => SCENES[s.scene].code(s);

export function live(view) {
  SCENES[view.state().scene].live(view);
}
