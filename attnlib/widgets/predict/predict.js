/**
 * Predict: numbers typed before they are shown, and the mistake that a wrong one gives away.
 */
import { element, html, prose, statusLine } from "../kit/markup.js";
import { announcePrediction, followProgress, progress, record } from "../kit/progress.js";

// What stands in the fields; whether anything was checked, and whether that were no numbers;
// whether progress can be kept.
export const pageState = { text: [], checked: false, unread: false, kept: true };
export const shared = false;
export const label = (s) => `Predict: ${s.question}`;

const NUMBER = /^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i;

/** What a person means by "0,5", " −2 ", "1/3" or "33 %"; null for anything else. */
export function parse(text) {
  const plain = text.replace(/\s/g, "").replace(/[−–]/g, "-");
  const percent = plain.endsWith("%");
  const parts = (percent ? plain.slice(0, -1) : plain).split("/");
  if (parts.length > 2 || !parts.every((part) => NUMBER.test(part))) return null;
  const [top, bottom = 1] = parts.map((part) => Number(part.replace(",", ".")));
  const number = top / bottom / (percent ? 100 : 1);
  return Number.isFinite(number) ? number : null;
}

/** A number as a person writes it: six decimals at most, or six digits where it is tiny or huge. */
function written(x) {
  const usual = x === 0 || (Math.abs(x) >= 1e-4 && Math.abs(x) < 1e15);
  return String(Number(usual ? x.toFixed(6) : x.toPrecision(6)) + 0); // + 0 turns -0 into 0
}

const reach = (target, [relative, absolute]) => Math.max(relative * Math.abs(target), absolute);

/** Whether two decimals are enough: not for a tiny number, nor for one asked for more exactly. */
const isRough = (target, [, absolute]) => absolute >= 0.0015 && Math.abs(target) >= 0.1;

/** Whether x may stand for the target after a calculation by hand, or as a rough guess. */
function near(x, target, tolerance) {
  const distance = Math.abs(x - target);
  const rounded = Math.abs(x - Number(x.toFixed(2))) < 1e-9;
  const rough = rounded && isRough(target, tolerance) && distance <= 0.005 + 1e-9;
  return rough || distance <= reach(target, tolerance);
}

/** How many digits a blank wants: as few as are sure to be accepted. */
export function digits(target, tolerance) {
  if (Number.isInteger(target)) return "whole number";
  const needed = Math.ceil(-Math.log10(2 * reach(target, tolerance)));
  const n = isRough(target, tolerance) ? Math.min(needed, 2) : needed;
  return n < 1 ? "whole number" : `${n} ${n === 1 ? "decimal" : "decimals"}`;
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

const side = (s, i) => (s.typed[i] > s.answer[i] ? "too large" : "too small");

function verdict(s, { wrong, mistake }) {
  const one = s.labels.length === 1;
  if (s.unread)
    return `${one ? "Type a number" : "Each field needs a number"}, such as 0.5, -2 or 1/3.`;
  if (!s.typed.length) return "";
  if (!wrong.length) return `✓ Right.${s.kept ? "" : " Progress cannot be kept in this browser."}`;
  if (mistake !== null) return `Not yet: ${mistake.replace(/\.$/, "")}.`;
  if (one) return `Not yet: ${side(s, 0)}.`;
  return `Not yet: ${wrong.length} of ${s.labels.length} ${wrong.length > 1 ? "are" : "is"} wrong.`;
}

/**
 * The input for one number. No inputmode: the decimal keys of a phone may lack a minus and a slash.
 */
function input(s, i, wrong, more) {
  const text = s.text[i] ?? "";
  const value = s.typed.length && parse(text) !== s.typed[i] ? written(s.typed[i]) : text;
  const invalid = s.unread ? parse(text) === null : wrong.includes(i);
  const all = {
    type: "text",
    name: `value_${i}`,
    spellcheck: "false",
    value,
    "aria-invalid": String(invalid),
  };
  return element("input", { ...all, ...more });
}

/**
 * What stands beside a field: on which side a wrong number lies, or how many digits are wanted.
 * Among weights, a 0 or a 1 asks for as many digits as the others: nothing gives it away.
 */
function hint(s, i, wrong) {
  if (s.typed.length && wrong.includes(i)) return side(s, i);
  const { answer, tolerance } = s;
  const isPart = (x) => x > 0 && x < 1;
  const alike = [0, 1].includes(answer[i]) ? answer.find(isPart) : undefined;
  return digits(alike ?? answer[i], tolerance);
}

/** A field with its label. */
const field = (s, i, wrong) =>
  html`<label><span>${s.labels[i].replace(/ (?=\d)/g, "\u00a0")} <i
class="digits">${hint(s, i, wrong)}</i></span><span
class="with-value">${input(s, i, wrong)}${s.unit && element("span", {}, s.unit)}</span></label>`;

/** A blank within the worked line. */
function blank(s, i, wrong) {
  const said = hint(s, i, wrong);
  const named = { "aria-label": `${s.labels[i]}, ${said}` };
  return html`<span class="blank">${input(s, i, wrong, named)}<i
class="digits" aria-hidden="true">${said}</i></span>`;
}

// Numbers and blanks that form a row, as in "({first}, 0.391)" and in "{a} {b} {c}", four at most.
const ITEM = String.raw`(?:\{[^{}]+\}|[^\s{}(),]+)`;
const MANY = String.raw`(?:\((?:${ITEM}, ){1,3}${ITEM}\)|\{[^{}]+\}(?:,? \{[^{}]+\}){1,3})`;
const ONE = String.raw`(?:[^\s{}]+ (?!${MANY}))?[^\s{}]*\{[^{}]+\}`;
// What stands before a sign of equality; and what no line may end in: a row or a blank, with the
// sign or the word before it.
const OPERAND = String.raw`(?:\([^(){}]*\)|[^\s{}]+)`;
const TERM = `(?:${OPERAND}(?: [-+−·/] ${OPERAND})+ (?== )|${OPERAND} (?== (?!${MANY})))`;
const AROUND = new RegExp(String.raw`(${TERM}?)((?:(?:= )?${MANY}|${ONE})[^\s{}]*)`);

/** A text as it is set: with real minus signs, and without line breaks in a product. */
const set = (text) =>
  prose(text.replace(/(^|[ (])-(?=[ \d])/g, "$1−").replace(/ · /g, "\u00a0·\u00a0"));

/** The worked lines, of one equation or of several, with something in the place of each blank. */
function worked(s, put) {
  const fill = (part) =>
    part.split(/\{([^{}]+)\}/).map((text, k) => (k % 2 ? put(s.labels.indexOf(text)) : set(text)));
  const row = (part) => {
    const bare = part.replace(/\{[^{}]+\}/g, "#");
    const n = Math.max(bare.split("#").length - 1, bare.split(", ").length);
    return html`<span class="around${n > 3 && " four"}" style="--n: ${n}">${fill(part)}</span>`;
  };
  const equation = (line) => {
    const parts = line.split(AROUND); // a text, a term, a row, a text, ...
    return html`<span class="equation">${parts.map((part, k) => {
      if (k % 3 === 0) return fill(part);
      return k % 3 === 2 && html`<span class="term">${set(parts[k - 1])}${row(part)}</span>`;
    })}</span>`;
  };
  return s.worked
    .split("\n")
    .map((row, at) => [at > 0 && html`<br>`, row.split(/ {2,}/).map(equation)]);
}

export function picture(s) {
  const judged = s.typed.length ? diagnose(s.typed, s) : { wrong: [], mistake: null };
  const right = s.typed.length > 0 && !judged.wrong.length;
  const done = right || (!judged.wrong.length && progress()?.includes(`${s.key}/1`));
  const unit = s.unit && ` ${s.unit}`;
  const numbers = s.answer.map(
    (x, i) => `${s.labels.length > 1 ? `${s.labels[i]} = ` : ""}${written(x)}${unit}`,
  );
  const sum = s.worked ? worked(s, (i) => written(s.answer[i])) : `${numbers.join(", ")}.`;
  const answer = html`<b>${sum}</b> ${prose(s.explanation)}`;
  const fields = s.worked
    ? html`<p class="worked">${worked(s, (i) => blank(s, i, judged.wrong))}</p>`
    : html`<div class="fields" data-fields="${s.labels.length}">${s.labels.map((_, i) =>
        field(s, i, judged.wrong),
      )}</div>`;
  return [
    html`<p class="question">${prose(s.question)}</p>`,
    html`<form class="ask${s.checked && " checked"}" data-lm-suppress-shortcuts="true"
autocomplete="off">${fields}
<p class="buttons"><button type="submit" name="check">Check</button>
<button type="button" name="reveal">Reveal</button>
<button type="button" name="reset">Reset</button>
<span class="done${done && " shown"}" data-part="done">✓ done</span></p>
<p role="status" data-part="verdict">${verdict(s, judged)}</p></form>`,
    statusLine("answer", s.revealed && answer, { Answer: answer }),
  ];
}

export function live(view) {
  const texts = () => view.state().labels.map((_, i) => view.part(`value_${i}`).value);
  // What was checked no longer stands.
  view.listen(view.root, "input", () => {
    const { key, revealed } = view.state();
    // Neither does the answer that a right one brought.
    const earned = progress()?.includes(`${key}/1`);
    view.set({ text: texts(), typed: [], unread: false, revealed: revealed && !earned });
  });
  view.listen(view.root, "submit", (event) => {
    event.preventDefault();
    const text = texts();
    const numbers = text.map(parse);
    if (numbers.includes(null)) return view.set({ text, typed: [], checked: true, unread: true });
    const s = view.state();
    const right = !diagnose(numbers, s).wrong.length;
    // An answer that was looked up is no progress.
    const kept = right && !s.revealed ? record(`${s.key}/1`) : s.kept;
    view.set({
      text,
      typed: numbers,
      checked: true,
      unread: false,
      kept,
      revealed: s.revealed || right,
    });
    if (right) announcePrediction(view);
  });
  view.on("reveal", "click", () => {
    view.set({ revealed: true, unread: false, checked: view.state().typed.length > 0 });
    announcePrediction(view);
  });
  followProgress(view);
}
