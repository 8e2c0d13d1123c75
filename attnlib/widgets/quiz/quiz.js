/**
 * Quiz: choose, check, and read why this option is right or wrong.
 */
import { element, html, prose, statusLine } from "../kit/markup.js";
import { followProgress, progress, record } from "../kit/progress.js";

// Options that are picked but not checked; questions that were checked without one; whether
// progress can be kept.
export const pageState = { picked: [], unasked: [], kept: true };
export const shared = false;

/** How many of the chosen options are right; -1 stands for none. */
function score(questions, chosen) {
  return questions.filter(({ options }, i) => options[chosen[i]]?.right).length;
}

function form(s, { text, options }, i) {
  const chosen = s.chosen[i] ?? -1;
  const picked = chosen >= 0 ? chosen : s.picked[i];
  const done = options[chosen]?.right || progress()?.includes(`${s.key}/${i + 1}`);
  const radio = (k) =>
    element("input", { type: "radio", name: "choice", value: k, checked: k === picked });
  const reasons = options.map(
    ({ right, why }) => html`<b>${right ? "✓ Right." : "Not this one."}</b> ${prose(why)}`,
  );
  const none = "Choose an answer first.";
  const all = options.map(({ text, right, why }, k) => [
    k > 0 && html`<br>`,
    html`<b>${prose(text)}:</b> ${right ? "right" : "wrong"}. ${prose(why)}`,
  ]);
  return html`<form data-question="${i}" data-lm-suppress-shortcuts="true"
autocomplete="off"><fieldset>
<legend>${i + 1}. ${prose(text)}</legend>
${options.map(
  (each, k) => html`<label class="option">${radio(k)}<span>${prose(each.text)}</span></label>`,
)}
<p class="buttons"><button type="submit">Check</button>
<span class="done${done && " shown"}" data-part="done_${i}">✓ done</span></p></fieldset>
${statusLine(`why_${i}`, reasons[chosen] ?? (s.unasked[i] > 0 ? none : ""), {
  Answers: all,
})}</form>`;
}

export function picture(s) {
  const note = " Progress cannot be kept in this browser.";
  const result = `${score(s.questions, s.chosen)} of ${s.questions.length} right.`;
  return [
    ...s.questions.map((question, i) => form(s, question, i)),
    html`<p class="buttons"><button type="button" name="reset">Reset</button></p>`,
    html`<p role="status" data-part="score">${result}${!s.kept && note}</p>`,
  ];
}

export function live(view) {
  /** A list as long as the questions, with one place changed. */
  const changed = (list, i, value) =>
    view.state().questions.map((_, at) => (at === i ? value : (list[at] ?? -1)));
  view.on("choice", "change", (_, radio) => {
    const { picked, chosen, unasked } = view.state();
    const i = Number(radio.form.dataset.question);
    // The reason on the screen was another option's.
    view.set({
      picked: changed(picked, i, Number(radio.value)),
      chosen: changed(chosen, i, -1),
      unasked: changed(unasked, i, 0),
    });
  });
  view.listen(view.root, "submit", (event) => {
    event.preventDefault();
    const { questions, key, picked, chosen, unasked, kept } = view.state();
    const i = Number(event.target.dataset.question);
    const k = chosen[i] >= 0 ? chosen[i] : (picked[i] ?? -1);
    if (k < 0) return view.set({ unasked: changed(unasked, i, 1) });
    const right = questions[i].options[k].right;
    view.set({ chosen: changed(chosen, i, k), kept: right ? record(`${key}/${i + 1}`) : kept });
  });
  followProgress(view);
}
