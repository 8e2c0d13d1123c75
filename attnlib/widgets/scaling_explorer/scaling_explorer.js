/**
 * ScalingExplorer: four scenes, each with one idea and one control.
 */
import { coins } from "./coins.js";
import { gap } from "./gap.js";
import { sizes } from "./sizes.js";
import { walks } from "./walks.js";

const SCENES = { walks, coins, gap, sizes };

export const shared = { scene: false }; // a picture stays the picture it is
export const layout = ({ scene }) => ["abh-instrument", "abh-beside", `scene-${scene}`];
export const label = (s) => `Scaling explorer: ${SCENES[s.scene].label}`;

/** What can glide: d_k as a number of doublings, how far the scores are divided, and the gap. */
export const pose = (s) => [Math.log2(s.d_k), Number(s.divided), s.gap];

/** The state as it is drawn, which may be on its way. */
function posed(s) {
  const [doublings, divided, gap] = s.moving ?? pose(s);
  return { ...s, d_k: Math.round(2 ** doublings), divided, gap };
}

/** The numbers of the scene, as attnlib computes them in Python. */
export const compute = (s) => SCENES[s.scene].compute(posed(s));

export const picture = (s) => SCENES[s.scene].picture(s, posed(s));

export const code = (s) => SCENES[s.scene].code(s);

export function live(view) {
  SCENES[view.state().scene].live(view);
}
