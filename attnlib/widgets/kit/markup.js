/**
 * Markup, made while the book is built and in the page alike, and the parts of which widgets
 * consist.
 */

/** Text that is markup already; any other text is escaped where it meets markup. */
class Markup {
  constructor(text) {
    this.text = text;
  }
  toString() {
    return this.text;
  }
}

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => ENTITIES[sign]);

/** Content as markup: lists are joined; null, undefined and booleans are nothing. */
function written(content) {
  if (content === null || content === undefined || typeof content === "boolean") return "";
  if (content instanceof Markup) return content.text;
  return Array.isArray(content) ? content.map(written).join("") : escaped(content);
}

/** Signs of plain text that are set: W_O, sqrt(2) and e^1.5. */
const SIGNS = /\b([A-Z]|d)_([A-Z]|k|ff|model)\b|\bsqrt(?=\()|\^([\d.]*\d)/;

/** What a reader is asked or told, as markup, with its mathematics as in the text around it. */
export function prose(plain) {
  const found = SIGNS.exec(plain);
  if (!found) return [plain];
  const [all, letter, low, power] = found;
  let put = "√";
  if (letter) put = html`<i>${letter}</i><sub>${low}</sub>`;
  else if (power) put = html`<sup>${power}</sup>`;
  const rest = plain.slice(found.index + all.length);
  return [plain.slice(0, found.index), put, ...prose(rest)];
}

/** Markup from a template, html`<b>${text}</b>`; what is put in is escaped unless it is markup. */
export function html(strings, ...values) {
  return new Markup(strings.reduce((all, piece, i) => all + written(values[i - 1]) + piece));
}

/**
 * Attributes of an element: numbers with two decimals at most, true as a bare name, false as none.
 */
export function attributes(all) {
  const value = (x) => (typeof x === "number" ? Number(x.toFixed(2)) : escaped(x));
  const present = Object.entries(all).filter(
    ([, x]) => x !== false && x !== null && x !== undefined,
  );
  return new Markup(
    present.map(([name, x]) => (x === true ? ` ${name}` : ` ${name}="${value(x)}"`)).join(""),
  );
}

/** One element; an <input> has no content and no end. */
export function element(tag, all = {}, ...content) {
  const start = `<${tag}${attributes(all)}>`;
  return new Markup(tag === "input" ? start : `${start}${written(content)}</${tag}>`);
}

/** A <select> of that name, from a choice's values and labels: an object or pairs. */
export function select(name, choices, chosen, more = {}) {
  const pairs = Array.isArray(choices) ? choices : Object.entries(choices);
  const option = ([value, label]) =>
    element("option", { value, selected: String(value) === String(chosen) }, label);
  return element("select", { name, ...more }, pairs.map(option));
}

/** A slider for the trait `name`, as far as its bounds go. */
export function slider(name, { bounds }, more) {
  const { least, most } = bounds[name];
  return element("input", { type: "range", name, min: least, max: most, ...more });
}

/** A line for a text of the reader's own, which is the trait `name`. */
export const textField = (name, value, maxlength, more = {}) =>
  element("input", {
    type: "text",
    name,
    value,
    maxlength,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    ...more,
  });

/** Suggestions to take, [name, data, whether it is what stands there], and what follows them. */
export function tries(label, title, all, ...more) {
  const button = ([name, data, isPressed]) =>
    element("button", { type: "button", ...data, "aria-pressed": String(isPressed) }, name);
  return html`<p class="tries" role="group" aria-label="${label}"><span>${title}</span>
${all.map(button)}${more}</p>`;
}

/**
 * A status named `part` with this message; without one it takes no room. `details`, {summary:
 * content}, are for readers without JavaScript, and for the end of a chapter on paper
 * (_ext/pages/static/book.js).
 */
export function statusLine(part, message, details = {}) {
  const closed = ([summary, content]) =>
    html`<details><summary>${summary}</summary><p>${content}</p></details>`;
  return html`<div class="status-line"><p role="status"
data-part="${part}">${message}</p>${Object.entries(details).map(closed)}</div>`;
}

/** The buttons that every widget with a state has, after those of its own. */
export const buttons = (
  ...own
) => html`<p class="buttons">${own}<button type="button" name="copy">Copy as NumPy</button>
<button type="button" name="reset">Reset</button></p>`;

/** A drawing, in units of its own; `label` is for those who do not see it. */
export function sheet(part, width, height, label, ...content) {
  const all = {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "data-part": part,
    "aria-label": label,
  };
  return element("svg", all, content);
}

/** A line of text in a drawing, in the color of a role of the palette. */
export function text(content, x, y, role = "muted", more = {}) {
  return element(
    "text",
    { x, y, "text-anchor": "start", fill: `var(--${role})`, ...more },
    content,
  );
}

/** An axis or a frame of a drawing. */
export const line = (d, more = {}) =>
  element("path", { d, fill: "none", stroke: "var(--line)", ...more });

/** A table for those who do not see the picture: a head of names, rows that begin with a name. */
export function table(caption, names, rows) {
  const head = names.map((name) =>
    name === "" ? element("td") : element("th", { scope: "col" }, name),
  );
  const body = rows.map(([name, ...cells]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      cells.map((cell) => element("td", {}, cell)),
    ),
  );
  return element("table", {}, element("caption", {}, caption), element("tr", {}, head), body);
}
