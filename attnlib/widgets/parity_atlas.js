/**
 * ParityAtlas: the rows stand in the markup; choosing hides some, sorting puts them in order.
 */
import { copy, mount } from "./core.js";

const FILTERS = ["function", "mode", "need_weights", "mask", "verdict"];

/** What a text is sorted by: numbers first, then words, then nothing. */
function order(text) {
  if (text === "") return [2, 0, ""];
  return /^\d/.test(text) ? [0, Number(text), ""] : [1, 0, text];
}

/** Whether a row, a value for each filter, is one of the choice. */
export function fits(state, row) {
  return FILTERS.every((name) => state[name] === "all" || row[name].split(", ").includes(state[name]));
}

/** The rows in order; those that are equal keep theirs. */
export function sorted(state, rows) {
  if (!state.sort) return rows;
  const turn = state.descending ? -1 : 1;
  return rows.toSorted((one, two) => {
    const [a, b] = [order(one[state.sort]), order(two[state.sort])];
    const at = a.findIndex((part, i) => part !== b[i]);
    return at < 0 ? 0 : turn * (a[at] < b[at] ? -1 : 1);
  });
}

/** The next way to sort when the head of a column is pressed: up, down, not at all. */
export function turned({ sort, descending }, column) {
  if (sort !== column) return { sort: column, descending: false };
  return descending ? { sort: "", descending: false } : { sort, descending: true };
}

/** Runnable Python that measures what is on the screen again. */
export function pythonCode(state) {
  const chosen = FILTERS.filter((name) => name !== "verdict" && state[name] !== "all");
  const tests = chosen.map((name) => `str(case["${name}"]) == "${state[name]}"`);
  const lines = ["from attnlib import atlas", "", "rows = [", "    atlas.measure(**case)", "    for case in atlas.cases()"];
  if (tests.length) lines.push(`    if ${tests.join(" and ")}`);
  lines.push("]");
  if (state.verdict !== "all") lines.push(`rows = [row for row in rows if atlas.verdict(row) == "${state.verdict}"]`);
  return [...lines, "for row in atlas.merge(rows):", "    print(row)"];
}

function render({ model, el }) {
  const traits = [...FILTERS, "sort", "descending"];
  const state = () => Object.fromEntries(traits.map((trait) => [trait, model.get(trait)]));
  const start = state();
  let rows; // as they are stored: the texts of each by column, and its element

  function draw(view) {
    const s = state();
    const heads = Array.from(view.root.querySelectorAll("th"));
    const body = view.root.querySelector("tbody");
    rows ??= Array.from(body.rows)
      .toSorted((one, two) => one.dataset.place - two.dataset.place)
      .map((element) => ({
        element,
        verdict: element.dataset.verdict,
        ...Object.fromEntries(heads.map((head, i) => [head.firstChild.dataset.sort, element.cells[i].textContent])),
      }));
    const chosen = sorted(s, rows);
    const count = rows.filter((row) => fits(s, row)).length;
    const same = chosen.every((row, i) => row.element === body.rows[i] && row.element.hidden === !fits(s, row));
    if (!same) {
      // Rows of a new list are new: nothing of the old one has jumped to another place.
      for (const row of rows) {
        row.element = row.element.cloneNode(true);
        row.element.hidden = !fits(s, row);
      }
      body.replaceChildren(...chosen.map((row) => row.element));
    }
    for (const head of heads) {
      if (head.firstChild.dataset.sort === s.sort) head.ariaSort = s.descending ? "descending" : "ascending";
      else head.removeAttribute("aria-sort");
    }
    for (const name of FILTERS) view.put(name, { value: s[name] });
    view.put("count", { textContent: `${count} of ${rows.length} rows` });
    view.say(count ? "" : "No case is like this. Set one of the choices back to all.");
  }

  const view = mount(model, el, draw);
  for (const name of FILTERS) {
    view.part(name).addEventListener("change", (event) => view.set({ [name]: event.target.value }));
  }
  for (const button of view.root.querySelectorAll("th button")) {
    button.addEventListener("click", () => view.set(turned(state(), button.dataset.sort)));
  }
  view.part("copy").addEventListener("click", () => {
    const lines = pythonCode(state());
    copy(view, lines, `Copied ${lines.length} lines of Python.`);
  });
  view.part("reset").addEventListener("click", () => view.set(start));
  return view.end;
}

export default { render };
