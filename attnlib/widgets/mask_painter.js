/**
 * MaskPainter: a mask painted cell by cell, the weights it leaves, and what a nudge then moves.
 */
import {
  allowed, called, cellInk, copy, dotProducts, mount, multiply, numpyArray, softmax, wordVector,
} from "./core.js";

const D = 4; // size of queries, keys and values
const NUDGE = 0.5; // what is added to each of their numbers
const MOVED = 1e-9; // an output that differs by more has moved
const TRAITS = ["tokens", "mask", "length", "nudge"];
const PRESETS = ["none", "causal", "padding", "both", "window"];

/** Output, weights and divided scores, the vectors of token `nudged` changed. */
function attend(tokens, mask, nudged) {
  const [Q, K, V] = ["query", "key", "value"].map((role) =>
    tokens.map((token, i) => Array.from(wordVector(token, role, D), (x) => (i === nudged ? x + NUDGE : x))),
  );
  const scores = dotProducts(Q, K, D).map((row) => row.map((s) => s / Math.sqrt(D)));
  const weights = scores.map((row, i) => softmax(row.map((s, j) => (mask[i][j] ? s : -Infinity))));
  return { scores, weights, output: multiply(weights, V) };
}

/** Everything that follows from the traits; moves[j][i]: whether a nudge of j moves output i. */
export function compute({ tokens, mask, length, nudge }) {
  const { scores, weights, output } = attend(tokens, mask);
  const moves = tokens.map((_, j) => {
    const after = attend(tokens, mask, j).output;
    return output.map((row, i) => row.some((x, k) => Math.abs(after[i][k] - x) > MOVED));
  });
  const places = tokens.map((_, i) => i);
  const empty_rows = places.filter((i) => !mask[i].some(Boolean));
  const lets_in = places.filter((i) => i < length && mask[i].slice(length).some(Boolean));
  const leaking = places.filter((j) => moves[j].slice(0, j).some(Boolean));
  const names = called(tokens);
  return {
    names,
    scores,
    weights,
    output,
    moved: moves[nudge],
    leaks: leaking.length > 0,
    empty_rows,
    lets_in,
    additive: mask.map((row) => row.map((may) => (may ? 0 : -Infinity))),
    blocked: mask.map((row) => row.map((may) => !may)),
    verdicts: [
      nudgeSaid(names, nudge, moves[nudge], empty_rows.includes(nudge)),
      futureSaid(names, nudge, moves, leaking),
      emptySaid(names, empty_rows),
      paddingSaid(names, length, lets_in),
    ],
  };
}

/** The names as a person lists them: a, b and c. */
const listed = (names) => [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" and ");

/** What one nudge moves. */
function nudgeSaid(names, nudge, moved, isEmpty) {
  const others = names.filter((_, i) => moved[i] && i !== nudge);
  const own = moved[nudge]
    ? "moves its own output, which is no leak: its query, key and value change."
    : isEmpty
      ? "leaves its own output at zeros: it can attend to nothing."
      : "leaves its own output as it was: its weights, all on other tokens, stay the same.";
  const moves = `It ${moved[nudge] ? "also " : ""}moves the ${others.length > 1 ? "outputs" : "output"} of`;
  return `Nudging ${names[nudge]} ${own} ${others.length ? `${moves} ${listed(others)}.` : "No other moves."}`;
}

/** Whether any nudge moves an output before it; the present one is the example if it does. */
function futureSaid(names, nudge, moves, leaking) {
  if (!leaking.length) return "Does not leak the future: no token's nudge moves an output before it.";
  const j = leaking.includes(nudge) ? nudge : leaking[0];
  const before = names.filter((_, i) => i < j && moves[j][i]);
  const [outputs, come] = before.length > 1 ? ["outputs", "come"] : ["output", "comes"];
  const others = leaking.length - 1;
  const more = ["", " 1 other token leaks too."][others] ?? ` ${others} other tokens leak too.`;
  return (
    `Leaks the future: nudging ${names[j]} moves the ${outputs} of ${listed(before)}, ` +
    `which ${come} before it.${more}`
  );
}

function emptySaid(names, rows) {
  const those = listed(rows.map((i) => names[i]));
  if (!rows.length) return "No row is empty: every token can attend to something.";
  if (rows.length === 1) return `Row ${those} is empty: it can attend to nothing, so its output is zeros.`;
  return `Rows ${those} are empty: they can attend to nothing, so their outputs are zeros.`;
}

function paddingSaid(names, length, letsIn) {
  if (length === names.length) return `There is no padding: all ${length} tokens are real.`;
  const filler = listed(names.slice(length));
  if (!letsIn.length) return `Keeps padding out: no real token attends to the filler ${filler}.`;
  const [tokens, attends] = letsIn.length > 1 ? ["tokens", "attend"] : ["token", "attends"];
  const real = listed(letsIn.map((i) => names[i]));
  return `Lets padding in: the real ${tokens} ${real} ${attends} to the filler ${filler}.`;
}

/** The mask of a preset; a window sees one token to each side. */
export const preset = (name, { tokens, length }) => allowed(name, tokens.length, { length, width: 1 });

/** The cells, as [i, j], that a stroke from one cell to another crosses. */
export function stroke([i0, j0], [i1, j1]) {
  const count = Math.max(Math.abs(i1 - i0), Math.abs(j1 - j0), 1);
  return Array.from({ length: count + 1 }, (_, t) => [
    Math.round(i0 + ((i1 - i0) * t) / count),
    Math.round(j0 + ((j1 - j0) * t) / count),
  ]);
}

/** Runnable NumPy for what is on the screen. */
export function numpyCode(state) {
  const rows = state.mask.map((row) => `    [${row.map((may) => (may ? "True" : "False")).join(", ")}],`);
  return [
    "import numpy as np",
    "",
    `tokens = ${JSON.stringify(state.tokens)}`,
    "allowed = np.array([  # True = may attend: F.scaled_dot_product_attention",
    ...rows,
    "])",
    "additive = np.where(allowed, 0.0, -np.inf)  # added to the scores",
    "blocked = ~allowed  # True = may not attend: nn.MultiheadAttention",
    "",
    ...numpyArray("scaled", compute(state).scores, 9),
    "masked = scaled + additive",
    "top = masked.max(axis=1, keepdims=True)",
    "powers = np.exp(masked - np.where(top == -np.inf, 0, top))",
    "total = powers.sum(axis=1, keepdims=True)",
    "weights = powers / np.where(total == 0, 1, total)  # an empty row stays zeros",
    "print(weights.round(2))",
  ];
}

const equal = (a, b) => a.every((row, i) => row.every((x, j) => x === b[i][j]));

function render({ model, el }) {
  const state = () => Object.fromEntries(TRAITS.map((trait) => [trait, model.get(trait)]));
  const start = state();
  const n = start.tokens.length;
  let grid;
  let cells; // the buttons, row by row
  let chosen = ""; // two presets can give one mask; the reader's choice then keeps its name

  const presetOf = (s) =>
    [chosen, ...PRESETS].find((name) => PRESETS.includes(name) && equal(preset(name, s), s.mask)) ?? "painted";

  /** Sets attributes that differ. */
  const give = (element, attributes) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
    }
  };
  const write = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };

  function draw(view) {
    const s = state();
    const now = compute(s);
    grid ??= view.root.querySelector("[role=grid]");
    cells ??= Array.from(grid.querySelectorAll("button"));

    cells.forEach((button, at) => {
      const [i, j] = [Math.floor(at / n), at % n];
      const weight = now.weights[i][j];
      const shown = s.mask[i][j] ? weight.toFixed(2) : "blocked";
      write(button, s.mask[i][j] ? shown : "");
      give(button, {
        "aria-pressed": s.mask[i][j],
        "aria-label": `${now.names[i]} to ${now.names[j]}: ${shown}`,
        style: `--w: ${Number((100 * weight).toPrecision(4))}%; color: var(--${cellInk(weight)})`,
      });
    });
    const kind = (role, i) =>
      role + (i === s.nudge ? " nudged" : "") + (i >= s.length ? " filler" : "");
    grid.querySelectorAll("th.key").forEach((head, j) => {
      give(head, { class: kind("key", j) });
      write(head.firstElementChild, s.tokens[j]);
    });
    grid.querySelectorAll("th.query").forEach((head, i) => {
      give(head, { class: kind("query", i) });
      write(head, s.tokens[i]);
    });
    grid.querySelectorAll("td.fate").forEach((cell, i) => {
      const still = now.empty_rows.includes(i) ? "zeros" : "same";
      const fate = now.moved[i] ? (i < s.nudge ? "leaks" : "moved") : still;
      give(cell, { class: `fate ${fate}` });
      write(cell.firstElementChild, fate);
    });

    for (const [name, matrix] of [["bool", s.mask], ["additive", now.additive], ["blocked", now.blocked]]) {
      const entries = view.root.querySelectorAll(`[data-convention="${name}"] tr + tr td`);
      matrix.flat().forEach((x, at) => {
        write(entries[at], { true: "T", false: "F", 0: "0" }[x] ?? "-∞");
        entries[at].classList.toggle("on", x === true);
      });
    }

    const kinds = ["said", now.leaks, now.empty_rows.length, now.lets_in.length];
    view.root.querySelectorAll(".verdicts li").forEach((line, at) => {
      const sentence = now.verdicts[at];
      if (line.textContent !== sentence) {
        const lead = document.createElement("b");
        const colon = at ? sentence.indexOf(":") : 0; // what stands before it is the answer
        lead.textContent = sentence.slice(0, colon);
        line.firstElementChild.replaceChildren(...(at ? [lead] : []), sentence.slice(colon));
      }
      give(line, { class: at ? (kinds[at] ? "bad" : "good") : "said" });
    });

    view.put("preset", { value: presetOf(s) });
    view.put("nudge", { value: s.nudge });
    s.tokens.forEach((token, i) => write(view.part("nudge").options[i], `${i + 1}: ${token}`));
    view.put("real", { value: s.length });
    view.put("length_value", { textContent: s.length });
  }

  const view = mount(model, el, draw);
  const on = (name, event, handle) => view.part(name).addEventListener(event, handle);

  on("preset", "change", (event) => {
    chosen = event.target.value;
    if (PRESETS.includes(chosen)) view.set({ mask: preset(chosen, state()) });
    else view.redraw(); // the mask is painted in the grid, not here
  });
  on("nudge", "change", (event) => view.set({ nudge: Number(event.target.value) }));
  on("real", "input", (event) => {
    const before = state();
    const name = presetOf(before);
    const length = Number(event.target.value);
    const follows = name === "padding" || name === "both"; // a padding preset goes with its length
    if (follows) chosen = name;
    view.set({ length, ...(follows && { mask: preset(name, { ...before, length }) }) });
  });
  on("copy", "click", () => copy(view, numpyCode(state())));
  on("reset", "click", () => {
    chosen = "";
    view.set(start);
    view.say("");
  });

  /** Gives cells one value. */
  const paint = (places, value) => {
    const mask = model.get("mask").map((row) => row.slice());
    for (const [i, j] of places) mask[i][j] = value;
    if (!equal(mask, model.get("mask"))) view.set({ mask });
  };
  /** The cell under the pointer, or the nearest one. */
  const under = (event) => {
    const [first, last] = [cells[0].getBoundingClientRect(), cells.at(-1).getBoundingClientRect()];
    const index = (at, from, to) => Math.min(Math.max(Math.floor(((at - from) / (to - from)) * n), 0), n - 1);
    return [index(event.clientY, first.top, last.bottom), index(event.clientX, first.left, last.right)];
  };

  let brush = null; // while a pointer is down: the value it paints, and the cell it was last on
  let handled = false; // whether the click to come was painted when the pointer went down
  grid.addEventListener("pointerdown", (event) => {
    const at = cells.indexOf(event.target.closest("button"));
    if (at < 0 || event.button !== 0 || !event.isPrimary) return;
    const last = [Math.floor(at / n), at % n];
    brush = { value: !model.get("mask")[last[0]][last[1]], last };
    handled = true;
    paint([last], brush.value);
  });
  grid.addEventListener("pointermove", (event) => {
    if (!brush || !event.isPrimary) return;
    if (!event.buttons) {
      brush = null;
      return;
    }
    const next = under(event);
    paint(stroke(brush.last, next), brush.value);
    brush.last = next;
  });
  for (const end of ["pointerup", "pointercancel"]) grid.addEventListener(end, () => (brush = null));
  grid.addEventListener("click", (event) => {
    const painted = handled && event.detail > 0; // a click without a pointer has detail 0
    handled = false;
    const at = cells.indexOf(event.target.closest("button"));
    if (at < 0 || painted) return;
    const [i, j] = [Math.floor(at / n), at % n];
    paint([[i, j]], !model.get("mask")[i][j]);
  });

  // One cell is in the order of Tab; arrows move from it.
  grid.addEventListener("focusin", ({ target }) => {
    for (const button of cells) button.tabIndex = button === target ? 0 : -1;
  });
  const walk = (event) => {
    const at = cells.indexOf(event.target);
    if (at < 0 || event.altKey || event.metaKey) return;
    const [i, j] = [Math.floor(at / n), at % n];
    const next = {
      ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
      Home: [event.ctrlKey ? 0 : i, 0], End: [event.ctrlKey ? n - 1 : i, n - 1],
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const [row, column] = next.map((x) => Math.min(Math.max(x, 0), n - 1));
    cells[row * n + column].focus();
  };
  addEventListener("keydown", walk, true); // on the window: the core lets no arrow key get lower

  return () => {
    removeEventListener("keydown", walk, true);
    view.end();
  };
}

export default { render };
