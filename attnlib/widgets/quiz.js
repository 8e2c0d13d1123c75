/**
 * Quiz: choose, check, and read why this option is right or wrong.
 */
import { followProgress, mount, progress, record, tell } from "./core.js";

/** How many of the chosen options are right; -1 stands for none. */
export function score(questions, chosen) {
  return questions.filter(({ options }, i) => options[chosen[i]]?.right).length;
}

function render({ model, el }) {
  const questions = model.get("questions");
  const none = questions.map(() => -1);
  const chosen = () => model.get("chosen") ?? none;
  const id = (i) => `${model.get("key")}/${i + 1}`;
  const right = (i) => questions[i].options[chosen()[i]]?.right === true;
  let kept = true;

  function draw(view) {
    const done = progress() ?? [];
    for (const details of view.root.querySelectorAll("details")) details.remove();
    view.root.querySelectorAll("form").forEach((form, i) => {
      const k = chosen()[i];
      if (k >= 0) form.elements.choice[k].checked = true;
      tell(view.part(`why_${i}`), k >= 0 ? String(k) : "");
      view.part(`done_${i}`).classList.toggle("shown", right(i) || done.includes(id(i)));
    });
    const note = kept ? "" : " Progress cannot be kept in this browser.";
    const text = `${score(questions, chosen())} of ${questions.length} right.${note}`;
    view.put("score", { textContent: text });
  }

  const view = mount(model, el, draw);
  const choose = (i, k) => view.set({ chosen: chosen().map((old, at) => (at === i ? k : old)) });
  view.root.querySelectorAll("form").forEach((form, i) => {
    form.addEventListener("change", () => {
      choose(i, -1); // the reason on the screen was another option's
      tell(view.part(`why_${i}`), "");
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const k = form.elements.choice.value;
      if (k === "") return tell(view.part(`why_${i}`), "none");
      choose(i, Number(k));
      if (right(i)) kept = record(id(i));
      view.redraw();
    });
  });
  view.part("reset").addEventListener("click", () => {
    for (const form of view.root.querySelectorAll("form")) form.reset();
    view.set({ chosen: none });
    view.redraw(); // also where only "Choose an answer first" stands
  });
  return followProgress(view);
}

export default { render };
