/**
 * The slider of the scenes "walks" and "sizes": d_k from 1 to 256, in steps that double.
 */
import { element, html } from "../kit/markup.js";
import { nearest, octaves } from "../kit/numbers.js";

const STOPS = octaves(256);

/** The slider and its number, after a text that says what to do with it. */
export const slider = (text, d_k) =>
  html`<label class="main"><span>${text} <i>d<sub>k</sub></i>
<b class="number" data-part="d_k_value">${d_k}</b></span>
${element("input", {
  type: "range",
  name: "d_k",
  min: 0,
  max: STOPS.length - 1,
  value: nearest(STOPS, d_k),
  "aria-valuetext": `d_k = ${d_k}`,
})}</label>`;

export const followSlider = (view) =>
  view.on("d_k", "input", (event) => view.set({ d_k: STOPS[event.target.value] }));
