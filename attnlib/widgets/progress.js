/**
 * Progress: what was answered right, chapter by chapter, to be saved, copied and erased.
 */
import { copy, element, erase, followProgress, html, progress } from "./core.js";

export const defaults = { chapters: {} };
export const own = { sure: false };
export const label = () => "Your progress";

const FILE = "attention-by-hand-progress.json";
const NOTHING_KEPT = "This browser keeps no progress.";

/** What is kept, as the text of a file. */
function exported() {
  return JSON.stringify({ course: "Attention by Hand", right: progress() ?? [] }, null, 2);
}

function row([title, questions], done) {
  const ids = Object.entries(questions).flatMap(([key, n]) => Array.from({ length: n }, (_, i) => `${key}/${i + 1}`));
  const n = ids.filter((id) => done.has(id)).length;
  const filled = element("span", { class: "filled", style: `width: ${(100 * n) / ids.length}%` });
  return html`<li><span>${title}</span><span class="bar" aria-hidden="true">${filled}</span>
<span class="number">${n} of ${ids.length}</span></li>`;
}

export function picture(s) {
  const done = new Set(progress());
  return [
    html`<p class="note">What you answered right is kept in this browser alone. Nothing is sent.</p>`,
    html`<ul>${Object.entries(s.chapters).map((chapter) => row(chapter, done))}</ul>`,
    html`<div class="reserved">
<p class="buttons${s.sure && " ghost"}"><button type="button" name="save">Save as file</button>
<button type="button" name="copy">Copy as text</button>
<button type="button" name="erase">Erase</button></p>
<p class="buttons${!s.sure && " ghost"}" data-part="sure"><span>Erase it for good?</span>
<button type="button" name="yes">Erase it</button>
<button type="button" name="no">Keep it</button></p></div>`,
  ];
}

export function live(view) {
  function ask(sure) {
    view.set({ sure });
    // Once it is drawn: what is out of sight takes no focus.
    requestAnimationFrame(() => view.part(sure ? "no" : "erase").focus({ preventScroll: true }));
  }

  view.on("save", "click", () => {
    const url = URL.createObjectURL(new Blob([exported(), "\n"], { type: "application/json" }));
    Object.assign(document.createElement("a"), { href: url, download: FILE }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000); // the browser reads it a little later
    view.say("Saved as a JSON file.");
  });
  view.on("copy", "click", () => copy(view, exported().split("\n"), "Copied your progress as JSON."));
  view.on("erase", "click", () => ask(true));
  view.on("no", "click", () => ask(false));
  view.on("yes", "click", () => {
    ask(false);
    view.say(erase() ? "Erased." : NOTHING_KEPT);
  });
  view.on("sure", "keydown", (event) => {
    if (event.key === "Escape") ask(false);
  });
  if (progress() === null) view.say(NOTHING_KEPT);
  followProgress(view);
}
