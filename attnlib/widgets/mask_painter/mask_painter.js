/**
 * MaskPainter: a mask painted cell by cell, and the weights it leaves. Then what another word in
 * one place moves; or, in the scene "guess", what each position reads while it must guess the next.
 */
import { cellInk } from "../kit/heatmap.js";
import { buttons, element, html, select } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, weightPanel } from "../kit/microscope.js";
import {
  allowed,
  called,
  dotProducts,
  multiply,
  numpyArray,
  softmax,
  two,
  wordVector,
} from "../kit/numbers.js";

/**
 * Two presets can give one mask: the reader's choice then keeps its name. Tab finds one cell, `at`.
 */
export const pageState = { chosen: "", at: [0, 0], lens: null };
const place =
  (least) =>
  (i, { tokens }) =>
    Number.isInteger(i) && i >= least && i < tokens.length + least;
const isRow = (row, n) =>
  Array.isArray(row) && row.length === n && row.every((may) => typeof may === "boolean");
export const shared = {
  scene: false,
  length: place(1),
  replaced: place(0),
  position: place(0),
  mask: (rows, { tokens: { length: n } }) =>
    Array.isArray(rows) && rows.length === n && rows.every((row) => isRow(row, n)),
};

const D = 4; // size of queries, keys and values
const MOVED = 1e-9; // an output that differs by more has moved: rounding stays far below
const END = "<end>"; // what is to be guessed after the last real token
const PRESETS = {
  none: "none",
  causal: "causal",
  padding: "padding",
  both: "causal + padding",
  window: "window",
  painted: "painted by hand",
};
const TWO = { none: "No mask", causal: "Causal mask" };

/** Queries, keys and values; the token `replaced` has those of another word. */
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

/** Everything that follows from the traits; moves[j][i]: whether output i moves with token j. */
export function compute({ tokens, mask, length }) {
  const { scores, weights, output } = attend(tokens, mask);
  const moves = tokens.map((_, j) => {
    const after = attend(tokens, mask, j).output;
    return output.map((row, i) => row.some((x, k) => Math.abs(after[i][k] - x) > MOVED));
  });
  const places = tokens.map((_, i) => i);
  return {
    scores,
    weights,
    output,
    moves,
    empty: places.filter((i) => !mask[i].some(Boolean)),
    lets_in: places.filter((i) => i < length && mask[i].slice(length).some(Boolean)),
  };
}

/** What the microscope needs of the weight under it. */
export function weightOf({ tokens, mask, lens: [i, j] }) {
  const [Q, K, V] = vectorsOf(tokens);
  const names = called(tokens);
  return {
    asks: names[i],
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

/** The tokens that move an output before them. */
const leaking = (moves) =>
  moves.flatMap((moved, j) => (moved.slice(0, j).some(Boolean) ? [j] : []));

/** The names as a person lists them: a, b and c. */
const listed = (names) =>
  [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" and ");

// What the page says of the mask: each an answer and what stands behind it.

/** What moves with one token. */
function replacedSaid(names, replaced, moved, isEmpty) {
  const others = names.filter((_, i) => moved[i] && i !== replaced);
  const own = moved[replaced]
    ? "moves its own output, which is no leak: its query, key and value are others now."
    : isEmpty
      ? "leaves its own output at zeros: it can attend to nothing."
      : "leaves its own output as it was: its weights, all on other tokens, stay the same.";
  const moves =
    `It ${moved[replaced] ? "also " : ""}moves the ` +
    `${others.length > 1 ? "outputs" : "output"} of`;
  const rest = others.length ? `${moves} ${listed(others)}.` : "No other moves.";
  return ["", `Another word in place of ${names[replaced]} ${own} ${rest}`];
}

/** Whether any token moves an output before it; the present one is the example if it does. */
function futureSaid(names, replaced, moves) {
  const all = leaking(moves);
  if (!all.length)
    return ["Does not leak the future", ": no token, replaced, moves an output before it."];
  const now = all.includes(replaced);
  const j = now ? replaced : all[0];
  const before = names.filter((_, i) => i < j && moves[j][i]);
  const [outputs, come] = before.length > 1 ? ["outputs", "come"] : ["output", "comes"];
  const others = all.length - 1;
  const more = ["", " 1 other token leaks too."][others] ?? ` ${others} other tokens leak too.`;
  return [
    "Leaks the future",
    `${now ? "" : `, though not from ${names[replaced]}`}: another word for ${names[j]} moves ` +
      `the ${outputs} of ${listed(before)}, which ${come} before it.${more}`,
  ];
}

function emptySaid(names, rows) {
  const those = listed(rows.map((i) => names[i]));
  if (!rows.length) return ["No row is empty", ": every token can attend to something."];
  if (rows.length === 1)
    return [`Row ${those} is empty`, ": it can attend to nothing, so its output is zeros."];
  return [`Rows ${those} are empty`, ": they can attend to nothing, so their outputs are zeros."];
}

function paddingSaid(names, length, letsIn) {
  if (length === names.length) return ["There is no padding", `: all ${length} tokens are real.`];
  const filler = listed(names.slice(length));
  if (!letsIn.length)
    return ["Keeps padding out", `: no real token attends to the filler ${filler}.`];
  const [tokens, attends] = letsIn.length > 1 ? ["tokens", "attend"] : ["token", "attends"];
  const real = listed(letsIn.map((i) => names[i]));
  return ["Lets padding in", `: the real ${tokens} ${real} ${attends} to the filler ${filler}.`];
}

/** The longest that each of the four can become with these tokens: room is kept for it. */
function rooms(names) {
  const places = names.map((_, i) => i);
  // The last ones move everything.
  const from = (first) => places.map((j) => places.map(() => j >= first));
  const each = [
    places.flatMap((j) =>
      [[], [j]].map((stays) =>
        replacedSaid(
          names,
          j,
          places.map((i) => !stays.includes(i)),
          false,
        ),
      ),
    ),
    places.flatMap((j) => places.slice(1).map((first) => futureSaid(names, j, from(first)))),
    [emptySaid(names, places)],
    places.slice(1).map((length) => paddingSaid(names, length, places.slice(0, length))),
  ];
  return each.map(longest);
}

const longest = (all) =>
  all.map((said) => said.join("")).reduce((a, b) => (b.length > a.length ? b : a));

// The scene "guess": each position must guess the token after it.

/** What each position must guess: the next real token, then the end; filler guesses nothing. */
export const guesses = ({ tokens, length }) =>
  tokens.map((_, i) => (i < length - 1 ? tokens[i + 1] : i === length - 1 ? END : null));

/** What a position reads: "answer", "ahead" of what is written, "less" than that, or "right" it. */
export function reads({ mask, length }, i) {
  if (i >= length) return "filler";
  if (i + 1 < length && mask[i][i + 1]) return "answer";
  if (mask[i].slice(i + 1).some(Boolean)) return "ahead";
  return mask[i].slice(0, i + 1).every(Boolean) ? "right" : "less";
}

const GOOD = { answer: "bad", ahead: "bad", less: "said", right: "good", filler: "said" };
const BADGES = {
  answer: "in view",
  ahead: "reads ahead",
  less: "reads less",
  right: "hidden",
  filler: "",
};

function positionSaid(s, names, i) {
  const who = `Position ${i + 1}`;
  const read = (from, to, may) =>
    listed(names.filter((_, j) => j >= from && j < to && s.mask[i][j] === may));
  const n = names.length;
  return {
    answer: () => [
      `${who} can read its answer`,
      `: ${names[i + 1]} stands in its input. When the model writes, that word is not there yet.`,
    ],
    ahead: () => [
      `${who} reads ahead`,
      `: ${read(i + 1, n, true)} will not be there when the model writes.`,
    ],
    less: () => [
      `${who} reads less than it could`,
      `: ${read(0, i + 1, false)} will be there when the model writes.`,
    ],
    right: () => [
      `${who} reads what it will read when the model writes`,
      `: ${read(0, i + 1, true)}. It has to guess.`,
    ],
    filler: () => [`${who} is filler`, ": it has nothing to guess."],
  }[reads(s, i)]();
}

function passSaid(s) {
  const all = s.tokens.slice(0, s.length).map((_, i) => reads(s, i));
  const many = (kind) => all.filter((read) => read === kind).length;
  if (many("answer")) {
    return [
      `In view: ${many("answer")} of ${s.length} answers`,
      ": copying is right every time while it learns, and of no use when it writes.",
    ];
  }
  if (many("ahead"))
    return [`${many("ahead")} of ${s.length} read ahead`, ", though no answer is in view."];
  return [
    "No position reads ahead",
    `: one pass over the sentence gives ${s.length} guesses to learn from.`,
  ];
}

/** Masks in which a position says all that it can say, to keep room for the longest. */
function guessRooms(s, names) {
  const masks = [() => true, (i, j) => j <= i, (i, j) => j > i + 1, () => false].map((may) => ({
    ...s,
    mask: s.tokens.map((_, i) => s.tokens.map((_, j) => may(i, j))),
  }));
  return [
    masks.flatMap((t) => names.map((_, i) => positionSaid(t, names, i))),
    masks.map(passSaid),
  ].map(longest);
}

/** The mask of a preset; a window sees one token to each side. */
export const preset = (name, { tokens, length }) =>
  allowed(name, tokens.length, { length, width: 1 });

const equal = (a, b) => a.every((row, i) => row.every((x, j) => x === b[i][j]));

/** The preset that gives the present mask. */
function presetOf(s) {
  const names = Object.keys(PRESETS).filter(
    (name) => name !== "painted" && equal(preset(name, s), s.mask),
  );
  return names.includes(s.chosen) ? s.chosen : (names[0] ?? "painted");
}

/** The cells, as [i, j], that a stroke from one cell to another crosses. */
export function stroke([i0, j0], [i1, j1]) {
  const count = Math.max(Math.abs(i1 - i0), Math.abs(j1 - j0), 1);
  return Array.from({ length: count + 1 }, (_, t) => [
    Math.round(i0 + ((i1 - i0) * t) / count),
    Math.round(j0 + ((j1 - j0) * t) / count),
  ]);
}

/** Runnable NumPy for what is on the screen. */
export function code(state) {
  const rows = state.mask.map(
    (row) => `    [${row.map((may) => (may ? "True" : "False")).join(", ")}],`,
  );
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

/** The mask as a grid of buttons that show the weights; `beside` ends a row, under its head. */
function grid({ tokens, mask, length, at }, names, weights, head, { kind, row, answer, beside }) {
  const role = (name, i) => [name, i >= length && "filler", kind(i)].filter(Boolean).join(" ");
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
    return element(
      "td",
      { class: answer?.(i, j) && "next" },
      element(
        "button",
        all,
        may && (shown[0] === "0" ? html`<span>0</span>${shown.slice(1)}` : shown),
      ),
    );
  };
  const label = "The mask: queries in rows, keys in columns, pressed where a query may attend";
  const all = {
    class: tokens.length > 6 ? "grid many" : "grid",
    role: "grid",
    "data-part": "grid",
    "aria-label": label,
    style: `--n: ${tokens.length}`,
  };
  return element(
    "table",
    all,
    html`<tr><td></td>${tokens.map(
      (key, j) => html`<th scope="col" class="${role("key", j)}"><span>${key}</span></th>`,
    )}
<th scope="col" class="fate"><span>${head}</span></th></tr>`,
    tokens.map((query, i) =>
      element(
        "tr",
        { class: row?.(i) },
        html`<th scope="row" class="${role("query", i)}">${query}</th>`,
        mask[i].map((may, j) => cell(may, i, j)),
        beside(i),
      ),
    ),
  );
}

/** The mask as one of PyTorch's functions wants it; `entry` writes one of its cells. */
function convention(name, meaning, user, { tokens, mask }, entry) {
  const hidden = (token) => html`<span class="visually-hidden">${token}</span>`;
  const cell = (may) => element("td", { class: entry(may) === "T" && "on" }, entry(may));
  const label = `${meaning}: ${String(user).replaceAll("<wbr>", "")}`;
  return html`<div><p>${meaning}<br><code>${user}</code></p>${element(
    "table",
    { "data-convention": name, "aria-label": label },
    html`<tr><td></td>${tokens.map((token) => html`<th scope="col">${hidden(token)}</th>`)}</tr>`,
    tokens.map(
      (token, i) => html`<tr><th scope="row">${hidden(token)}</th>${mask[i].map(cell)}</tr>`,
    ),
  )}</div>`;
}

/**
 * The verdicts, and behind them room for the longest that each can become: what is left is below
 * them all.
 */
const verdicts = (all, rooms) =>
  html`<div class="reserved"><ul class="verdicts" aria-label="Verdicts"
aria-live="polite">${all.map(([kind, [answer, rest]]) =>
    element("li", { class: kind, "data-key": answer }, answer && html`<b>${answer}</b>`, rest),
  )}</ul><div class="verdicts ghost"
aria-hidden="true">${rooms.map((room) => element("p", { "data-room": room }))}</div></div>`;

export const picture = (s) => [
  ...(s.scene === "guess" ? guessing : painting)(s, called(s.tokens)),
  weightPanel(s.lens && weightOf(s)),
];

/** The cell that Tab finds: a tap on it paints, so its weight is asked for beside it. */
function picked({ mask, at: [i, j] }, names, weights) {
  const shown = mask[i][j] ? two(weights[i][j]) : "blocked";
  return html`<p class="picked"><span><b class="query">${names[i]}</b> to <b
class="key">${names[j]}</b>:
<b>${shown}</b></span> <button type="button" name="why">Why?</button></p>`;
}

function painting(s, names) {
  const { weights, moves, empty, lets_in } = compute(s);
  const kind = (isBad) => (isBad ? "bad" : "good");
  const length = { min: 1, max: s.tokens.length, value: s.length };
  const fate = (i) => {
    // Whichever token is replaced now.
    if (moves.some((moved, j) => j > i && moved[i])) return "leaks";
    if (moves[s.replaced][i]) return "moved";
    return empty.includes(i) ? "zeros" : "same";
  };
  return [
    html`<div class="controls">
<label class="wide"><span>Start from</span>
${select("preset", PRESETS, presetOf(s))}</label>
<label><span>Replace</span>
${select(
  "replaced",
  s.tokens.map((token, i) => [i, `${i + 1}: ${token}`]),
  s.replaced,
)}</label>
<label><span>Real tokens</span><span class="with-value">
${element("input", { type: "range", name: "real", ...length })}
<span class="number">${s.length}</span></span></label>
${buttons()}
<p class="cell wide">Tap or drag to paint; with the keyboard, arrows move and Space paints.
Hatched cells are blocked. "Replace" puts another word in one place, with a query, key and value of
its own.</p>
</div>`,
    html`<div class="picture">${grid(s, names, weights, "output", {
      kind: (i) => i === s.replaced && "replaced",
      beside: (i) => html`<td class="fate ${fate(i)}"><span>${fate(i)}</span></td>`,
    })}${picked(s, names, weights)}</div>`,
    verdicts(
      [
        ["said", replacedSaid(names, s.replaced, moves[s.replaced], empty.includes(s.replaced))],
        [kind(leaking(moves).length), futureSaid(names, s.replaced, moves)],
        [kind(empty.length), emptySaid(names, empty)],
        [kind(lets_in.length), paddingSaid(names, s.length, lets_in)],
      ],
      rooms(names),
    ),
    html`<div class="conventions" style="--n: ${s.tokens.length}">
${convention("bool", "T = may attend", html`F.scaled_<wbr>dot_product_<wbr>attention`, s, (may) =>
  may ? "T" : "F",
)}
${convention("additive", "added to the scores", "float mask: 0 or -inf", s, (may) =>
  may ? "0" : "-∞",
)}
${convention("blocked", "T = blocked", html`nn.Multihead<wbr>Attention`, s, (may) =>
  may ? "F" : "T",
)}
</div>`,
  ];
}

function guessing(s, names) {
  const n = names.length;
  const { weights } = compute(s);
  const next = guesses(s);
  const chosen = presetOf(s);
  const mask = ([name, label]) =>
    element(
      "button",
      {
        type: "button",
        "data-part": "start",
        value: name,
        "aria-pressed": String(name === chosen),
      },
      label,
    );
  const beside = (i) => html`<td class="fate ${GOOD[reads(s, i)]}"><b>${next[i] ?? "–"}</b>
<span>${BADGES[reads(s, i)]}</span></td>`;
  return [
    html`<div class="controls">
<p class="masks wide" role="group" aria-label="Mask">${Object.entries(TWO).map(mask)}</p>
<label class="main"><span>Position <span class="number">${s.position + 1}</span></span>
${element("input", {
  type: "range",
  name: "position",
  min: 1,
  max: n,
  value: s.position + 1,
})}</label>
${buttons()}
<p class="cell wide">Each row reads its open cells and must guess the word at its right. The frame
is that word in its own input. Tap a cell to open or to block it.</p>
</div>`,
    html`<div class="picture guess">${grid(s, names, weights, "must guess", {
      kind: () => false,
      row: (i) => i === s.position && "at",
      answer: (i, j) => j === i + 1 && j < s.length,
      beside,
    })}${picked(s, names, weights)}</div>`,
    readings(s, next[s.position]),
    verdicts(
      [
        [GOOD[reads(s, s.position)], positionSaid(s, names, s.position)],
        [s.tokens.some((_, i) => GOOD[reads(s, i)] === "bad") ? "bad" : "good", passSaid(s)],
      ],
      guessRooms(s, names),
    ),
  ];
}

/** What the position reads while it learns, and while it writes: word under word. */
function readings({ tokens, mask, length, position }, guess) {
  const chip = (token, kind) => html`<span class="chip ${kind}">${token}</span>`;
  const learns = tokens.map((token, j) => {
    const answer = j === position + 1 && j < length ? " answer" : "";
    return chip(token, (mask[position][j] ? "open" : "blocked") + answer);
  });
  const writes = [
    ...tokens.slice(0, position + 1).map((token) => chip(token, "open")),
    chip("?", "blank"),
  ];
  const line = (name, chips) => html`<p><span class="what">${name}</span>${chips}</p>`;
  return html`<div class="readings"
style="--n: ${tokens.length}">${line("It learns from", learns)}${line(
    "It writes from",
    guess === null ? [] : writes,
  )}</div>`;
}

export function live(view) {
  const n = view.state().tokens.length;
  const cells = () => Array.from(view.part("grid").querySelectorAll("button"));
  /** The place of the cell that an event is about, or null. */
  const place = (event) => {
    const at = cells().indexOf(event.target.closest("button"));
    return at < 0 ? null : [Math.floor(at / n), at % n];
  };
  /** Gives cells one value. */
  const paint = (places, value) => {
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

  view.on("preset", "change", ({ target }) => {
    const chosen = target.value;
    if (chosen !== "painted") return view.set({ chosen, mask: preset(chosen, view.state()) });
    target.value = presetOf(view.state()); // the mask is painted in the grid, not here
  });
  view.on("start", "click", (_, { value }) =>
    view.set({ chosen: value, mask: preset(value, view.state()) }),
  );
  view.on("replaced", "change", (event) => view.set({ replaced: Number(event.target.value) }));
  view.on("position", "input", (event) => view.set({ position: Number(event.target.value) - 1 }));
  view.on("real", "input", (event) => {
    const before = view.state();
    const chosen = presetOf(before);
    const length = Number(event.target.value);
    if (chosen !== "padding" && chosen !== "both") return view.set({ length });
    // It goes with its length.
    view.set({ length, chosen, mask: preset(chosen, { ...before, length }) });
  });

  let brush = null; // while a pointer is down: the value it paints, and the cell it was last on
  let handled = false; // whether the click to come was painted when the pointer went down
  view.on("grid", "pointerdown", (event) => {
    const at = place(event);
    if (!at || event.button !== 0 || !event.isPrimary) return;
    handled = true;
    if (view.state().lens) return; // a tap beside the panel closes it, and that is all
    brush = { value: !view.state().mask[at[0]][at[1]], last: at };
    paint([at], brush.value);
  });
  view.on("grid", "pointermove", (event) => {
    if (!brush || !event.isPrimary) return;
    if (!event.buttons) {
      brush = null;
      return;
    }
    const next = under(event);
    paint(stroke(brush.last, next), brush.value);
    brush.last = next;
  });
  for (const end of ["pointerup", "pointercancel"]) view.on("grid", end, () => (brush = null));
  view.on("grid", "click", (event) => {
    const painted = handled && event.detail > 0; // a click without a pointer has detail 0
    handled = false;
    const at = place(event);
    if (at && !painted) paint([at], !view.state().mask[at[0]][at[1]]);
  });
  view.on("grid", "focusin", (event) => view.set({ at: place(event), position: place(event)[0] }));
  view.on("why", "click", () => openMicroscope(view, view.state().at));
  liveMicroscope(view);
  view.grid("grid", () => {}); // an arrow moves the focus, and that is all
}
