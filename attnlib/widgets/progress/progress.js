/**
 * Progress: what was answered right, chapter by chapter, to be saved, copied, opened and erased.
 */
import { element, html } from "../kit/markup.js";
import { copy } from "../kit/mount.js";
import { erase, followProgress, progress } from "../kit/progress.js";
import { add, differing, exported, read } from "./file.js";

// What the reader is asked: nothing, "erase", or "file", whose content is then `found`.
export const pageState = { asked: "", found: null, others: 0 };
export const shared = false;
export const layout = ({ form }) => `form-${form}`;
export const label = () => "Your progress";

const FILE = "attention-by-hand-progress.json";
const NOTHING_KEPT = "This browser keeps no progress.";

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
    "Your answers, your code and your place in the course are stored only in this browser. " +
    "No answer is sent. A browser may lose what it stores. To keep a copy, or to go on in " +
    "another browser, save your progress as a file and open that file there.";
  return [
    s.form === "keep"
      ? html`<p class="note sum"><span class="number">${right} of ${all}</span> questions answered
right. ${kept}</p>`
      : html`<p class="note">${kept}</p>`,
    s.form === "list" && html`<ul>${counts.map(row)}</ul>`,
    html`<div class="reserved">${asks(s.asked === "", "", [
      ["save", "Save as file"],
      ["open", "Open a file"],
      ["copy", "Copy as text"],
      ["erase", "Erase"],
    ])}
${asks(s.asked === "erase", "Erase it for good?", [
  ["yes", "Erase it"],
  ["no", "Keep it"],
])}
${asks(s.asked === "file", `The code of ${many(s.others, "exercise")} differs.`, [
  ["here", "Keep mine"],
  ["theirs", "Take the file’s"],
  ["cancel", "Open nothing"],
])}</div>`,
  ].filter(Boolean);
}

/** A row of buttons, with a question before them; one row is in sight at a time. */
const asks = (inSight, question, choices) =>
  html`<p class="buttons${!inSight && " ghost"}"${question && html` data-part="question"`}>${
    question && html`<span>${question}</span>`
  }${choices.map(([name, label]) => element("button", { type: "button", name }, label))}</p>`;

const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

export function live(view) {
  /** Asks, or does not ask any more; `next` then has the focus. */
  function ask(asked, next, more = {}) {
    view.set({ asked, ...more });
    // Once it is drawn: what is out of sight takes no focus.
    requestAnimationFrame(() => view.part(next).focus({ preventScroll: true }));
  }

  function take(found, replace) {
    const added = add(found, replace);
    if (!added) return view.say("This browser keeps no progress, or has no room for it.");
    const { answers, exercises } = added;
    if (!(answers + exercises)) return view.say("All that is in the file was here already.");
    const said = `Added ${many(answers, "answer")} and the code of ${many(exercises, "exercise")}.`;
    // The code of an exercise also runs with the exercises that come after it.
    view.say(
      exercises ? `${said} If the file is not yours, read its code before you run it.` : said,
    );
  }

  async function open(file) {
    try {
      const found = await read(file);
      const others = differing(found);
      if (others) ask("file", "here", { found, others });
      else take(found, false);
    } catch ({ message }) {
      view.say(message);
    }
  }

  view.on("save", "click", () => {
    const url = URL.createObjectURL(new Blob([exported(), "\n"], { type: "application/json" }));
    Object.assign(document.createElement("a"), { href: url, download: FILE }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000); // the browser reads it a little later
    view.say("Saved as a JSON file.");
  });
  view.on("open", "click", () => {
    const field = document.createElement("input");
    Object.assign(field, { type: "file", accept: ".json,application/json" });
    field.addEventListener("change", () => field.files[0] && open(field.files[0]));
    field.click();
  });
  for (const [name, replace] of [
    ["here", false],
    ["theirs", true],
  ]) {
    view.on(name, "click", () => {
      const { found } = view.state();
      if (found) take(found, replace);
      ask("", "open", { found: null });
    });
  }
  view.on("cancel", "click", () => ask("", "open", { found: null }));
  view.on("copy", "click", () =>
    copy(view, exported().split("\n"), "Copied your progress as JSON."),
  );
  view.on("erase", "click", () => ask("erase", "no"));
  view.on("no", "click", () => ask("", "erase"));
  view.on("yes", "click", () => {
    ask("", "erase");
    view.say(erase() ? "Erased." : NOTHING_KEPT);
  });
  view.on("question", "keydown", (event) => {
    if (event.key !== "Escape") return;
    ask("", view.state().asked === "file" ? "open" : "erase", { found: null });
  });
  if (progress() === null) view.say(NOTHING_KEPT);
  followProgress(view);
}
