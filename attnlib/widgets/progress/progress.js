/**
 * Progress: what was answered right, chapter by chapter, to be saved, copied and erased.
 */
import { element, html } from "../kit/markup.js";
import { copy } from "../kit/mount.js";
import { erase, followProgress, progress } from "../kit/progress.js";

export const pageState = { sure: false };
export const shared = false;
export const label = () => "Your progress";

const FILE = "attention-by-hand-progress.json";
const NOTHING_KEPT = "This browser keeps no progress.";

/** What is kept, as the text of a file. */
function exported() {
  return JSON.stringify({ course: "Attention by Hand", right: progress() ?? [] }, null, 2);
}

/** Of each chapter how many questions there are, and how many were answered right. */
function counted(chapters) {
  const done = new Set(progress());
  return Object.entries(chapters).map(([title, questions]) => {
    const ids = Object.entries(questions).flatMap(([key, n]) =>
      Array.from({ length: n }, (_, i) => `${key}/${i + 1}`),
    );
    return { title, all: ids.length, right: ids.filter((id) => done.has(id)).length };
  });
}

const sum = (counts, kind) => counts.reduce((total, count) => total + count[kind], 0);

function bar({ all, right }) {
  const filled = element("span", { class: "filled", style: `width: ${(100 * right) / all}%` });
  return html`<span class="bar" aria-hidden="true">${filled}</span>`;
}

const row = (count) => html`<li><span>${count.title}</span>${bar(count)}
<span class="number">${count.right} of ${count.all}</span></li>`;

export function picture(s) {
  const counts = counted(s.chapters);
  const [right, all] = [sum(counts, "right"), sum(counts, "all")];
  if (s.form === "bar")
    return [
      html`<p class="whole">${counts.map(bar)}<span class="number">${right} of ${all}
questions right</span></p>`,
    ];
  const kept =
    "Your answers and your place in the course are stored only in this browser. No answer is sent.";
  return [
    s.form === "keep"
      ? html`<p class="note sum"><span class="number">${right} of ${all}</span> questions answered
right. ${kept}</p>`
      : html`<p class="note">${kept}</p>`,
    s.form === "list" && html`<ul>${counts.map(row)}</ul>`,
    html`<div class="reserved">
<p class="buttons${s.sure && " ghost"}"><button type="button" name="save">Save as file</button>
<button type="button" name="copy">Copy as text</button>
<button type="button" name="erase">Erase</button></p>
<p class="buttons${!s.sure && " ghost"}" data-part="sure"><span>Erase it for good?</span>
<button type="button" name="yes">Erase it</button>
<button type="button" name="no">Keep it</button></p></div>`,
  ].filter(Boolean);
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
  view.on("copy", "click", () =>
    copy(view, exported().split("\n"), "Copied your progress as JSON."),
  );
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
