/**
 * Progress: what was answered right, chapter by chapter, to be saved, copied and erased.
 */
import { copy, erase, followProgress, mount, progress } from "./core.js";

const FILE = "attention-by-hand-progress.json";

/** What is kept, as the text of a file. */
export function exported(ids) {
  return JSON.stringify({ course: "Attention by Hand", right: ids }, null, 2);
}

function render({ model, el }) {
  const kept = () => progress() ?? [];

  function draw(view) {
    const done = new Set(kept());
    for (const row of view.root.querySelectorAll("[data-ids]")) {
      const ids = row.dataset.ids.split(" ");
      const n = ids.filter((id) => done.has(id)).length;
      row.querySelector(".number").textContent = `${n} of ${ids.length}`;
      row.querySelector(".filled").style.width = `${(100 * n) / ids.length}%`;
    }
    if (progress() === null) view.say("This browser keeps no progress.");
  }

  const view = mount(model, el, draw);
  const on = (name, handle) => view.part(name).addEventListener("click", handle);

  function ask(sure) {
    view.part("sure").classList.toggle("ghost", !sure);
    view.part("tools").classList.toggle("ghost", sure);
    view.part(sure ? "no" : "erase").focus({ preventScroll: true });
  }

  on("save", () => {
    const url = URL.createObjectURL(new Blob([exported(kept()), "\n"], { type: "application/json" }));
    const link = Object.assign(document.createElement("a"), { href: url, download: FILE });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000); // the browser reads it a little later
    view.say("Saved as a JSON file.");
  });
  on("copy", () => copy(view, exported(kept()).split("\n"), "Copied your progress as JSON."));
  on("erase", () => ask(true));
  on("no", () => ask(false));
  on("yes", () => {
    ask(false);
    view.say(erase() ? "Erased." : "This browser keeps no progress.");
  });
  view.part("sure").addEventListener("keydown", (event) => {
    if (event.key === "Escape") ask(false);
  });
  return followProgress(view);
}

export default { render };
