/**
 * Server: one pass for many users, and a server that is simulated pass by pass.
 */
import { batch } from "./batch.js";
import { run } from "./run.js";
import { simulate } from "./simulation.js";

const SCENES = { pass: batch, run };

export const shared = { scene: false }; // a picture stays the picture it is
export const layout = "abh-instrument";
export const pageState = { playing: false };
export const label = (s) => SCENES[s.scene].label;

/** What can glide: the number of users, as doublings. */
export const pose = (s) => [Math.log2(s.users)];

/** The numbers of the scene, as attnlib computes them in Python. */
export function compute(s) {
  if (s.scene === "pass") return batch.compute(s);
  const { server, ...noticed } = simulate(s);
  const { requests, passes, moments, pages } = server;
  return { ...noticed, requests, steps: passes, moments, pages };
}

export const picture = (s) => SCENES[s.scene].picture(s);

export const code = (s) => SCENES[s.scene].code(s);

export function live(view) {
  SCENES[view.state().scene].live(view);
}
