/**
 * ParityAtlas: all rows stand in a table; choosing hides some, sorting puts them in order.
 */
import { copy, element, html, select } from "./core.js";

export const defaults = {
  function: "all", mode: "all", need_weights: "all", mask: "all", verdict: "all", sort: "", descending: false,
  choices: {}, rows: [],
};

const FILTERS = {
  function: "Function", mode: "Mode", need_weights: "need_weights", mask: "Mask", verdict: "Outcome",
};
const COLUMNS = {
  function: "Function", mode: "Mode", need_weights: "need_weights", mask: "Mask", path: "Path",
  float32: "Δ float32", float64: "Δ float64", "padded rows": "Padded rows", "empty rows": "Empty rows",
};
const NAMES = Object.keys(COLUMNS);

/** What a text is sorted by: numbers first, then words, then nothing. */
function order(text) {
  if (text === "") return [2, 0, ""];
  return /^\d/.test(text) ? [0, Number(text), ""] : [1, 0, text];
}

/** Whether a row is one of the choice. */
function fits(state, { cells, verdict }) {
  const found = (name) => (name === "verdict" ? verdict : cells[NAMES.indexOf(name)]);
  return Object.keys(FILTERS).every((name) => state[name] === "all" || found(name).split(", ").includes(state[name]));
}

/** All rows in order, each with whether it is in view; those that are equal keep their order. */
export function compute(state) {
  const turn = state.descending ? -1 : 1;
  const column = NAMES.indexOf(state.sort);
  const rows = state.rows.map((row) => ({ ...row, fits: fits(state, row) }));
  if (column < 0) return rows;
  return rows.sort((one, two) => {
    const [a, b] = [order(one.cells[column]), order(two.cells[column])];
    const at = a.findIndex((part, i) => part !== b[i]);
    return at < 0 ? 0 : turn * (a[at] < b[at] ? -1 : 1);
  });
}

/** The next way to sort when the head of a column is pressed: up, down, not at all. */
function turned({ sort, descending }, column) {
  if (sort !== column) return { sort: column, descending: false };
  return descending ? { sort: "", descending: false } : { sort, descending: true };
}

/** Runnable Python that measures what is on the screen again. */
export function pythonCode(state) {
  const chosen = Object.keys(FILTERS).filter((name) => name !== "verdict" && state[name] !== "all");
  const tests = chosen.map((name) => `str(case["${name}"]) == "${state[name]}"`);
  const lines = ["from attnlib import atlas", "", "rows = [", "    atlas.measure(**case)", "    for case in atlas.cases()"];
  if (tests.length) lines.push(`    if ${tests.join(" and ")}`);
  lines.push("]");
  if (state.verdict !== "all") lines.push(`rows = [row for row in rows if atlas.verdict(row) == "${state.verdict}"]`);
  return [...lines, "for row in atlas.merge(rows):", "    print(row)"];
}

/** A long name may break after an underscore or before a capital, no_grad and -inf may not. */
function broken(name) {
  const between = (pieces, sign) => pieces.map((piece, i) => [i > 0 && sign, piece]);
  const whole = html`<span class="whole">-inf</span>`;
  const pieces = name.split(/(?<=_)(?!grad)|(?<=[a-z])(?=[A-Z])/);
  return between(pieces.map((piece) => between(piece.split("-inf"), whole)), html`<wbr>`);
}

function head({ sort, descending }) {
  return NAMES.map((name) => {
    const sorted = name === sort && (descending ? "descending" : "ascending");
    const button = element("button", { type: "button", "data-sort": name }, broken(COLUMNS[name]));
    return element("th", { scope: "col", role: "columnheader", "aria-sort": sorted }, button);
  });
}

function line({ cells, parts, fits: shown }) {
  const cell = (text, i) => element("td", { role: "cell", class: parts.includes(i) && "parts" }, broken(text));
  return element("tr", { role: "row", hidden: !shown }, cells.map(cell));
}

export function picture(s) {
  const rows = compute(s);
  const count = rows.filter((row) => row.fits).length;
  const choice = ([name, title]) => {
    const values = ["all", ...s.choices[name]].map((value) => [value, value]);
    return html`<label><span>${title}</span>${select(name, values, s[name])}</label>`;
  };
  const view = [s.sort, s.descending, ...Object.keys(FILTERS).map((name) => s[name])].join(" ");
  const none = count ? "" : "No case is like this. Set one of the choices back to all.";
  return [
    html`<div class="filters">${Object.entries(FILTERS).map(choice)}</div>`,
    html`<div class="answer"><p class="count" role="status" data-part="count">${count} of ${rows.length} rows</p>
<div class="buttons"><button type="button" name="copy">Copy as Python</button>
<button type="button" name="reset">Reset</button></div></div>`,
    // The roles, because a phone shows each row as a card and no longer as a table.
    html`<div class="scroll" role="region" aria-label="Rows of the atlas" tabindex="0"><table role="table">
<caption class="visually-hidden">attnlib against torch: the largest difference, or what torch gives instead</caption>
<thead role="rowgroup" data-part="head"><tr role="row">${head(s)}</tr></thead>
<tbody role="rowgroup" data-key="${view}">${rows.map(line)}</tbody></table>
<p class="none" role="status" data-part="none">${none}</p></div>`,
  ];
}

export function live(view) {
  for (const name of Object.keys(FILTERS)) {
    view.on(name, "change", (event) => view.set({ [name]: event.target.value }));
  }
  view.on("head", "click", (event) => {
    const button = event.target.closest("button");
    if (button) view.set(turned(view.state(), button.dataset.sort));
  });
  view.on("copy", "click", () => {
    const lines = pythonCode(view.state());
    copy(view, lines, `Copied ${lines.length} lines of Python.`);
  });
}
