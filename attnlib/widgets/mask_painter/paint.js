/**
 * The scene "paint": a mask painted cell by cell, the weights that it leaves, and the outputs that
 * change when another word is put in one place.
 */
import { cellInk } from "../drawing/heatmap.js";
import { buttons, element, html, select } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, weightPanel } from "../drawing/microscope.js";
import {
  called,
  dotProducts,
  multiply,
  numpyArray,
  softmax,
  two,
  wordVector,
} from "../kit/numbers.js";

const D = 4; // size of queries, keys and values
const CHANGED = 1e-9; // an output that differs by more has changed: rounding stays far below
const STARTS = { none: "No mask", causal: "Causal mask" };

/** Queries, keys and values, where those of the token `replaced` are of another word. */
const vectorsOf = (tokens, replaced) =>
  ["query", "key", "value"].map((role) =>
    tokens.map((token, i) =>
      Array.from(wordVector(token, i === replaced ? `another ${role}` : role, D)),
    ),
  );

/** Output, weights and divided scores, with another word in place of the token `replaced`. */
function attend(tokens, mask, replaced) {
  const [Q, K, V] = vectorsOf(tokens, replaced);
  const scores = dotProducts(Q, K, D).map((row) => row.map((s) => s / Math.sqrt(D)));
  const weights = scores.map((row, i) => softmax(row.map((s, j) => (mask[i][j] ? s : -Infinity))));
  return { scores, weights, output: multiply(weights, V) };
}

/** Everything that follows from the traits; moves[j][i]: whether token j changes output i. */
function compute({ tokens, mask }) {
  const { scores, weights, output } = attend(tokens, mask);
  const moves = tokens.map((_, j) => {
    const after = attend(tokens, mask, j).output;
    return output.map((row, i) => row.some((x, k) => Math.abs(after[i][k] - x) > CHANGED));
  });
  return { scores, weights, output, moves };
}

/** What the microscope needs of the weight under it. */
export function weightOf({ tokens, mask, lens: [i, j] }) {
  const [Q, K, V] = vectorsOf(tokens);
  const names = called(tokens);
  return {
    queryName: names[i],
    names,
    j,
    query: Q[i],
    key: K[j],
    scores: dotProducts([Q[i]], K, D)[0],
    divisor: [Math.sqrt(D), `√${D}`],
    free: mask[i],
    weights: attend(tokens, mask).weights[i],
    values: V,
  };
}

/** The names as a person lists them: a, b and c. */
const listed = (names) =>
  [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" and ");

/** The outputs before token j that change with it. */
const before = (names, moves, j) => names.filter((_, i) => i < j && moves[j][i]);

/** Which outputs change when a token is replaced, and whether one of them comes before it. */
function replacementVerdict(names, replaced, moves) {
  const moved = names.filter((_, i) => moves[replaced][i]);
  const early = before(names, moves, replaced);
  const start = `Another word in place of ${names[replaced]}`;
  if (!moved.length) return ["good", `${start} changes no output.`];
  const outputs = moved.length > 1 ? "outputs" : "output";
  const all = `${start} changes the ${outputs} of ${listed(moved)}.`;
  if (!early.length) return ["good", `${all} None of them comes before ${names[replaced]}.`];
  const come = early.length > 1 ? "come" : "comes";
  return ["bad", `${all} That is a leak, because ${listed(early)} ${come} before it.`];
}

/** Whether replacing any one of the tokens changes an output before it. */
function causalVerdict(names, moves) {
  const leaking = names.filter((_, j) => before(names, moves, j).length);
  if (!leaking.length) return ["good", "No word changes an earlier output: this mask is causal."];
  return ["bad", `These words change an earlier output: ${listed(leaking)}.`];
}

/** The longest text of each verdict with these tokens, for which the page keeps room. */
function rooms(names) {
  const all = names.map(() => names.map(() => true));
  const none = names.map(() => names.map(() => false));
  const longest = (texts) => texts.reduce((a, b) => (b.length > a.length ? b : a));
  return [
    longest(
      names.flatMap((_, j) => [all, none].map((moves) => replacementVerdict(names, j, moves)[1])),
    ),
    longest([all, none].map((moves) => causalVerdict(names, moves)[1])),
  ];
}

const equal = (a, b) => a.every((row, i) => row.every((x, j) => x === b[i][j]));
const startOf = (name, { tokens }) =>
  tokens.map((_, i) => tokens.map((_, j) => name === "none" || j <= i));

/** The cells, as [i, j], that a stroke from one cell to another crosses. */
export function stroke([i0, j0], [i1, j1]) {
  const count = Math.max(Math.abs(i1 - i0), Math.abs(j1 - j0), 1);
  return Array.from({ length: count + 1 }, (_, t) => [
    Math.round(i0 + ((i1 - i0) * t) / count),
    Math.round(j0 + ((j1 - j0) * t) / count),
  ]);
}

function code(state) {
  const rows = state.mask.map(
    (row) => `    [${row.map((may) => (may ? "True" : "False")).join(", ")}],`,
  );
  return [
    "import numpy as np",
    "",
    `tokens = ${JSON.stringify(state.tokens)}`,
    "allowed = np.array([  # True = may attend",
    ...rows,
    "])",
    ...numpyArray("scaled", compute(state).scores, 9),
    "masked = np.where(allowed, scaled, -np.inf)",
    "largest = masked.max(axis=1, keepdims=True)",
    "exponentials = np.exp(masked - np.where(largest == -np.inf, 0, largest))",
    "total = exponentials.sum(axis=1, keepdims=True)",
    "weights = exponentials / np.where(total == 0, 1, total)  # an empty row stays zeros",
    "print(weights.round(2))",
  ];
}

/** What happens to each output when the token is replaced; "leaks" if it comes before the token. */
function outcomes({ mask, replaced }, moves) {
  return mask.map((row, i) => {
    if (!row.some(Boolean)) return "zeros";
    if (!moves[replaced][i]) return "stays";
    return i < replaced ? "leaks" : "changes";
  });
}

/** The mask as a grid of buttons that show the weights. */
function grid({ tokens, mask, replaced, at }, names, weights, outcome) {
  const cell = (may, i, j) => {
    const shown = may ? two(weights[i][j]) : "blocked";
    const all = {
      type: "button",
      tabindex: i === at[0] && j === at[1] ? 0 : -1,
      "aria-pressed": String(may),
      "aria-label": `${names[i]} to ${names[j]}: ${shown}`,
      style:
        `--w: ${Number((100 * weights[i][j]).toPrecision(4))}%; color: ` +
        `var(--${cellInk(weights[i][j])})`,
    };
    const digits = shown[0] === "0" ? html`<span>0</span>${shown.slice(1)}` : shown;
    return element("td", {}, element("button", all, may && digits));
  };
  const all = {
    class: tokens.length > 6 ? "grid many" : "grid",
    role: "grid",
    "data-part": "grid",
    "aria-label": "The mask: queries in rows, keys in columns, pressed where a query may attend",
    style: `--n: ${tokens.length}`,
  };
  const role = (name, i) => (i === replaced ? `${name} replaced` : name);
  return element(
    "table",
    all,
    html`<tr><td></td>${tokens.map(
      (key, j) => html`<th scope="col" class="${role("key", j)}"><span>${key}</span></th>`,
    )}
<th scope="col" class="fate"><span>output</span></th></tr>`,
    tokens.map(
      (query, i) =>
        html`<tr><th scope="row" class="${role("query", i)}">${query}</th>${mask[i].map((may, j) =>
          cell(may, i, j),
        )}<td class="fate ${outcome[i]}"><span>${outcome[i]}</span></td></tr>`,
    ),
  );
}

/** The weight of the focused cell, with its button: a tap on the cell itself paints. */
function picked({ mask, at: [i, j] }, names, weights) {
  const shown = mask[i][j] ? two(weights[i][j]) : "blocked";
  return html`<p class="picked"><span>weight that <b class="query">${names[i]}</b> gives to <b
class="key">${names[j]}</b>:
<b>${shown}</b></span> <button type="button" name="why">Why?</button></p>`;
}

function picture(s) {
  const names = called(s.tokens);
  const { weights, moves } = compute(s);
  const verdicts = [replacementVerdict(names, s.replaced, moves), causalVerdict(names, moves)];
  const start = ([name, title]) =>
    element(
      "button",
      {
        type: "button",
        name: "start_from",
        value: name,
        "aria-pressed": String(equal(startOf(name, s), s.mask)),
      },
      title,
    );
  return [
    html`<div class="controls">
<p class="task wide">Tap a cell to open or block it.</p>
<p class="masks wide" role="group" aria-label="Start from">${Object.entries(STARTS).map(start)}</p>
<label class="wide"><span>Put another word in place of</span>
${select(
  "replaced",
  s.tokens.map((token, i) => [i, `${i + 1}: ${token}`]),
  s.replaced,
)}</label>
</div>`,
    html`<div class="picture paint">${grid(s, names, weights, outcomes(s, moves))}${picked(
      s,
      names,
      weights,
    )}</div>`,
    html`<div class="readout"><div class="reserved"><ul class="verdicts" aria-label="Verdicts"
aria-live="polite">${verdicts.map(([kind, verdict]) =>
      element("li", { class: kind }, verdict),
    )}</ul><div class="verdicts ghost"
aria-hidden="true">${rooms(names).map((room) => element("p", { "data-room": room }))}</div></div>
${buttons()}</div>`,
    weightPanel(s.lens && weightOf(s)),
  ];
}

function live(view) {
  const n = view.state().tokens.length;
  const cells = () => Array.from(view.part("grid").querySelectorAll("button"));
  /** The place of the cell that an event is about, or null. */
  const place = (event) => {
    const at = cells().indexOf(event.target.closest("button"));
    return at < 0 ? null : [Math.floor(at / n), at % n];
  };
  /** Gives cells one value. */
  const paintCells = (places, value) => {
    const mask = view.state().mask.map((row) => row.slice());
    for (const [i, j] of places) mask[i][j] = value;
    if (!equal(mask, view.state().mask)) view.set({ mask });
  };
  /** The cell under the pointer, or the nearest one. */
  const under = (event) => {
    const [first, last] = [cells()[0], cells().at(-1)].map((cell) => cell.getBoundingClientRect());
    const index = (at, from, to) =>
      Math.min(Math.max(Math.floor(((at - from) / (to - from)) * n), 0), n - 1);
    return [
      index(event.clientY, first.top, last.bottom),
      index(event.clientX, first.left, last.right),
    ];
  };

  view.on("start_from", "click", (_, { value }) =>
    view.set({ mask: startOf(value, view.state()) }),
  );
  view.on("replaced", "change", (event) => view.set({ replaced: Number(event.target.value) }));

  let brush = null; // while a pointer is down: the value it paints, and the cell it was last on
  let handled = false; // whether the click to come was painted when the pointer went down
  view.on("grid", "pointerdown", (event) => {
    const at = place(event);
    if (!at || event.button !== 0 || !event.isPrimary) return;
    handled = true;
    if (view.state().lens) return; // a tap beside the panel closes it, and that is all
    brush = { value: !view.state().mask[at[0]][at[1]], last: at };
    paintCells([at], brush.value);
  });
  view.on("grid", "pointermove", (event) => {
    if (!brush || !event.isPrimary) return;
    if (!event.buttons) {
      brush = null;
      return;
    }
    const next = under(event);
    paintCells(stroke(brush.last, next), brush.value);
    brush.last = next;
  });
  for (const end of ["pointerup", "pointercancel"]) view.on("grid", end, () => (brush = null));
  view.on("grid", "click", (event) => {
    const painted = handled && event.detail > 0; // a click without a pointer has detail 0
    handled = false;
    const at = place(event);
    if (at && !painted) paintCells([at], !view.state().mask[at[0]][at[1]]);
  });
  view.on("grid", "focusin", (event) => view.set({ at: place(event) }));
  view.on("why", "click", () => openMicroscope(view, view.state().at));
  liveMicroscope(view);
  view.grid("grid", () => {}); // an arrow moves the focus, and that is all
}

export const paint = { label: "a mask to paint", compute, picture, code, live };
