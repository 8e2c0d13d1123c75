/**
 * Guess: one tap on a choice brings its reply, and plays a picture of the page.
 */
import { element, html, prose } from "../kit/markup.js";
import { followProgress, PLAY, progress, record } from "../kit/progress.js";

export const pageState = { kept: true };
export const shared = false;
export const label = (s) => `Guess: ${s.question}`;

const verdict = (s, choice) => html`<b>${choice === s.right ? "✓ Right." : "Not this one."}</b>`;

function button(s, [choice]) {
  const chosen = choice === s.chosen;
  const kind = chosen && (choice === s.right ? "right" : "wrong");
  const all = { type: "button", name: "choice", value: choice, "aria-pressed": String(chosen) };
  return element("button", { ...all, class: kind || null }, choice);
}

export function picture(s) {
  const done = progress()?.includes(`${s.key}/1`) || s.chosen === s.right;
  const note = !s.kept && " Progress cannot be kept in this browser.";
  const reply = ([choice, text]) => html`${verdict(s, choice)} ${prose(text)}${note}`;
  const chosen = s.choices.find(([choice]) => choice === s.chosen);
  const all = s.choices.map(([choice, text], k) => [
    k > 0 && html`<br>`,
    html`<b>${choice}:</b> ${prose(text)}`,
  ]);
  const plays = s.plays && ", then watch the picture";
  const hint = html`<span class="hint">Tap an answer${plays}.</span>`;
  // The room of the longest reply is kept from the start: what stands below does not move.
  const room = s.choices.map(
    (each) => html`<p class="ghost" aria-hidden="true">${reply(each)}</p>`,
  );
  return [
    html`<p class="question">${prose(s.question)}<span class="done${done && " shown"}"
data-part="done">✓ done</span></p>`,
    html`<div class="choices" role="group"
aria-label="Choices">${s.choices.map((each) => button(s, each))}</div>`,
    html`<div class="reserved reply">${room}<p role="status"
data-part="reply">${chosen ? reply(chosen) : hint}</p></div>`,
    html`<div class="status-line"><details><summary>Replies</summary><p>${all}</p></details></div>`,
  ];
}

export function live(view) {
  view.on("choice", "click", (_event, { value }) => {
    const { right, key, plays, kept } = view.state();
    view.set({ chosen: value, kept: value === right ? record(`${key}/1`) : kept });
    // The host of a page without a kernel hears this and sets the picture.
    const play = new CustomEvent(PLAY, { bubbles: true, detail: plays });
    if (plays) view.root.dispatchEvent(play);
  });
  followProgress(view);
}
