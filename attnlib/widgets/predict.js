/**
 * Predict: numbers typed before they are shown, and the mistake that a wrong one gives away.
 */
import { followProgress, mount, plain, progress, record, tell } from "./core.js";

const NUMBER = /^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i;

/** What a person means by "0,5", " −2 " or "1/3"; null for anything else. */
export function parse(text) {
  const parts = text.replace(/\s/g, "").replace(/[−–]/g, "-").split("/");
  if (parts.length > 2 || !parts.every((part) => NUMBER.test(part))) return null;
  const [top, bottom = 1] = parts.map((part) => Number(part.replace(",", ".")));
  return Number.isFinite(top / bottom) ? top / bottom : null;
}

/** Whether x may stand for the target after a calculation by hand. */
export function near(x, target, [relative, absolute]) {
  return Math.abs(x - target) <= Math.max(relative * Math.abs(target), absolute);
}

/** Which of the typed numbers are wrong, and the one mistake that gives them, or null. */
export function diagnose(typed, { answer, mistakes, tolerance }) {
  const gives = (numbers, places) => places.every((i) => near(typed[i], numbers[i], tolerance));
  const everywhere = answer.map((_, i) => i);
  const wrong = everywhere.filter((i) => !gives(answer, [i]));
  if (!wrong.length) return { wrong, mistake: null };
  const partly = Object.keys(mistakes).filter((clause) => gives(mistakes[clause], wrong));
  const wholly = partly.filter((clause) => gives(mistakes[clause], everywhere));
  const found = wholly.length ? wholly : partly;
  return { wrong, mistake: found.length === 1 ? found[0] : null };
}

function render({ model, el }) {
  const [answer, labels, mistakes, tolerance] = ["answer", "labels", "mistakes", "tolerance"].map((trait) =>
    model.get(trait),
  );
  const id = `${model.get("key")}/1`;
  const typed = () => model.get("typed") ?? [];
  let kept = true;

  function verdict(view, numbers) {
    const { wrong, mistake } = diagnose(numbers, { answer, mistakes, tolerance });
    fields(view).forEach((field, i) => (field.ariaInvalid = String(wrong.includes(i))));
    if (!wrong.length) return tell(view.part("verdict"), kept ? "right" : "unkept");
    if (mistake !== null) return tell(view.part("verdict"), `mistake: ${mistake}`);
    const hints = wrong.map((i) => {
      const hint = numbers[i] > answer[i] ? "too large" : "too small";
      return labels.length > 1 ? `${labels[i]} is ${hint}` : hint;
    });
    view.put("verdict", { textContent: `Not yet: ${hints.join("; ")}.` });
  }

  const fields = (view) => labels.map((_, i) => view.part(`value_${i}`));
  const right = () => typed().length > 0 && !diagnose(typed(), { answer, mistakes, tolerance }).wrong.length;

  function draw(view) {
    view.root.querySelector("details")?.remove();
    if (typed().length) {
      fields(view).forEach((field, i) => {
        if (parse(field.value) !== typed()[i] && document.activeElement !== field) field.value = plain(typed()[i]);
      });
      verdict(view, typed());
    }
    tell(view.part("answer"), model.get("revealed") ? "answer" : "");
    view.part("done").classList.toggle("shown", right() || !!progress()?.includes(id));
  }

  const view = mount(model, el, draw);

  /** What was checked no longer stands. */
  function forget() {
    view.set({ typed: [] });
    tell(view.part("verdict"), "");
    for (const field of fields(view)) field.ariaInvalid = "false";
  }

  const form = view.root.querySelector("form");
  form.addEventListener("input", forget);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const numbers = fields(view).map((field) => parse(field.value));
    if (numbers.includes(null)) {
      forget();
      numbers.forEach((x, i) => (fields(view)[i].ariaInvalid = String(x === null)));
      return tell(view.part("verdict"), "needs");
    }
    view.set({ typed: numbers });
    if (right()) {
      // An answer that was looked up is no progress.
      if (!model.get("revealed")) kept = record(id);
      view.set({ revealed: true });
    }
    verdict(view, numbers); // also when the same numbers are checked again
  });
  view.part("reveal").addEventListener("click", () => view.set({ revealed: true }));
  view.part("reset").addEventListener("click", () => {
    for (const field of fields(view)) field.value = ""; // form.reset is the button of that name
    forget();
    view.set({ revealed: false });
  });
  return followProgress(view);
}

export default { render };
