/**
 * Encoder, the view "heads": the words of a sentence and the lines between them of one head; all
 * heads small, one large; a word can be hidden, and the sentence is read again without it.
 */
import { grid, small } from "../drawing/heads_grid.js";
import { cellAt, cut, heatmap, weightTable } from "../drawing/heatmap.js";
import { element, html, sheet, table, tries } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, sharePanel, weightPanel } from "../drawing/microscope.js";
import { called, dot, two } from "../kit/numbers.js";
import {
  cosine,
  D_HEAD,
  find,
  isRecorded,
  N_HEADS,
  N_LAYERS,
  partsOf,
  rowsOf,
  UNIT,
} from "./reading.js";
import { packed, unpacked } from "./seen.js";

const TRIES = [
  ["a tired cat", "The cat sat down because it was tired."],
  ["rain", "The cat sat down because it was raining."],
  ["sour milk", "The cat drank the milk because it was sour."],
  ["a bank", "We walked to the bank to borrow money."],
];
/** Heads whose habits "Many heads" and "A real encoder" measure: layer and head from 0. */
const KNOWN = [
  ["what ‘it’ stands for", 3, 1],
  ["previous token", 0, 2],
  ["next token", 1, 8],
  ["rest on [CLS]", 4, 5],
];
const MOST = 64; // tokens
const EDGE = 20; // pixels of a ladder that are seen beyond the word that is looked at
const FAINT = 0.15; // below it, the line of a row that is not looked at is left out
const SHADES = 5; // of a small head: its picture is a page’s weight
const CROWDED = 18; // with more tokens, the heatmap names only those that are looked at
const HEAT = { width: 368, height: 340, left: 80, top: 70, size: 262 };

/** The readings that are drawn: of what is asked for, else of what was drawn last. */
function compute(s, { readings, current, last, growing }) {
  const recorded = s.readings.filter(({ tokens }) => tokens);
  const drawn =
    growing?.text === s.text && !readings[0]
      ? [growing]
      : current
        ? readings
        : readings[0]
          ? [readings[0]]
          : last || recorded;
  const [before, after = before] = drawn;
  const reading = after;
  const { tokens } = reading;
  const hides = reading.hidden.filter((i) => i < tokens.length);
  const allowed = tokens.map(() => tokens.map((_, j) => !hides.includes(j)));
  const none = tokens.map(() => tokens.map(() => 0));
  const there = rowsOf(reading, s.layer, s.head);
  const weights = there ?? none;
  const row = Math.min(s.row, tokens.length - 1);
  const largest = Math.max(...weights[row]);
  const hidden = hides.length > 0 && before !== reading;
  return {
    stale: reading.text !== s.text,
    tokens,
    allowed,
    weights,
    row,
    top: largest > 0 ? weights[row].indexOf(largest) : -1,
    there: Boolean(there),
    reading,
    hides: hidden ? hides : [],
    likeness: hidden ? (reading.cosine ?? cosine(reading.embedding, before.embedding)) : 1,
    moved: hidden ? changes(reading, before, hides) : [],
  };
}

const sheets = new WeakMap();

/** All heads of a reading, drawn small once; a layer that has not come yet is blank. */
function drawnHeads({ reading, allowed }) {
  const { weights } = reading;
  const come = isRecorded(reading) ? N_LAYERS : weights.filter(Boolean).length;
  if (sheets.get(reading)?.come !== come) {
    const one = (l, h) => rowsOf(reading, l, h);
    const drawn = Array.from({ length: N_LAYERS }, (_, l) =>
      Array.from({ length: N_HEADS }, (_, h) => one(l, h) && small(one(l, h), allowed, SHADES)),
    );
    sheets.set(reading, { come, drawn });
  }
  return sheets.get(reading).drawn;
}

/**
 * What changed most between two readings: [layer, head, row, column, before, after], one a head.
 */
function changes(reading, before, hides, many = 2) {
  const found = [];
  for (let l = 0; l < N_LAYERS; l++) {
    for (let h = 0; h < N_HEADS; h++) {
      let best = [l, h, 0, 0, 0, 0];
      const [old, now] = [rowsOf(before, l, h), rowsOf(reading, l, h)];
      now.forEach(
        (row, i) =>
          hides.includes(i) ||
          row.forEach((weight, j) => {
            if (!hides.includes(j) && Math.abs(weight - old[i][j]) > Math.abs(best[5] - best[4]))
              best = [l, h, i, j, old[i][j], weight];
          }),
      );
      found.push(best);
    }
  }
  return found.sort((a, b) => Math.abs(b[5] - b[4]) - Math.abs(a[5] - a[4])).slice(0, many);
}

/** What the microscope needs of a weight. */
function panel(s, now) {
  if (!s.lens) return sharePanel(null);
  const { tokens, weights, allowed, reading, there } = now;
  const [i, j] = s.lens;
  if (!there || Math.max(i, j) >= tokens.length) return sharePanel(null);
  const names = called(tokens);
  const all = { queryName: names[i], names, j, free: allowed[i], weights: weights[i] };
  if (!reading.queries) return sharePanel({ ...all, unit: UNIT });
  const [queries, keys] = ["queries", "keys"].map((name) =>
    partsOf(reading, name, s.layer, s.head),
  );
  return weightPanel({
    ...all,
    query: queries[i],
    key: keys[j],
    scores: keys.map((key) => dot(queries[i], key)),
    divisor: [Math.sqrt(D_HEAD), `√${D_HEAD}`],
  });
}

// ------------------------------------------------------------------------------- the picture

/** The room that a word takes, in letters. */
const room = (token) =>
  Array.from(cut(token)).reduce((sum, letter) => sum + (letter > "\u2e80" ? 2 : 1), 2.2);

/** Lines from those who ask to those who answer, in a square of 100 by 100: across, or down. */
function lines({ tokens, weights, row }, down) {
  const widths = tokens.map((token) => (down ? 1 : room(token)));
  const total = widths.reduce((sum, width) => sum + width, 0);
  let at = 0;
  const middles = widths.map((width) => (((at += width) - width / 2) * 100) / total);
  const point = (along, across) => (down ? `${along} ${across}` : `${across} ${along}`);
  const d = (i, j) => {
    const [from, to] = [middles[i].toFixed(1), middles[j].toFixed(1)];
    return `M${point(0, from)}C${point(50, from)} ${point(50, to)} ${point(100, to)}`;
  };
  const faint = new Map();
  weights.forEach(
    (others, i) =>
      i !== row &&
      others.forEach((weight, j) => {
        const step = Math.round(weight * 5);
        if (weight >= FAINT) faint.set(step, (faint.get(step) ?? "") + d(i, j));
      }),
  );
  const strongLines = weights[row]
    .map((weight, j) => [weight, j])
    .filter(([weight]) => weight >= 0.01)
    .sort(([a], [b]) => a - b);
  const all = {
    viewBox: "0 0 100 100",
    preserveAspectRatio: "none",
    "aria-hidden": "true",
    class: down ? "lines down" : "lines across",
  };
  return element(
    "svg",
    all,
    Array.from(faint, ([step, d]) => element("path", { d, class: "faint", opacity: step * 0.06 })),
    strongLines.map(([weight, j]) =>
      element("path", {
        d: d(row, j),
        "stroke-width": 0.75 + 7 * weight,
        opacity: 0.3 + 0.7 * weight,
      }),
    ),
  );
}

/**
 * The words above, which ask; the lines; the words below, which answer, each with its share and a
 * way to hide it.
 */
function ladder(s, now) {
  const { tokens, weights, allowed, row, top } = now;
  const columns = tokens.map((token) => `minmax(0,${room(token).toFixed(1)}fr)`).join(" ");
  const total = tokens.reduce((sum, token) => sum + room(token), 0);
  const asks = (token, i) =>
    element(
      "button",
      {
        type: "button",
        "data-row": i,
        "aria-pressed": String(i === row),
        tabindex: i === row ? 0 : -1,
      },
      cut(token),
    );
  const hide = (token, j) => {
    const isHidden = s.hidden.includes(j);
    const all = {
      type: "button",
      "data-hide": j,
      "aria-pressed": String(isHidden),
      "aria-label": `hide ${token}`,
    };
    return !s.compact && element("button", all, isHidden ? "+" : "×");
  };
  const answer = (token, j) => {
    const kind = [j === top && "top", !allowed[row][j] && "gone"].filter(Boolean).join(" ");
    return html`<span${kind && html` class="${kind}"`}><b>${cut(token)}</b><small>${
      allowed[row][j] ? two(weights[row][j]) : "–"
    }</small>${hide(token, j)}</span>`;
  };
  return html`<div class="ladder${(now.stale || !now.there) && " waits"}" tabindex="-1"><div
class="rungs" data-part="ladder" data-key="${tokens.join(" ")}"
style="--columns: ${columns}; --n: ${tokens.length}; --letters: ${Math.ceil(total)}">
<p class="side asks">asks</p><div class="words asking" role="group"
aria-label="Who asks">${tokens.map(asks)}</div>
${lines(now, false)}${lines(now, true)}
<p class="side answers">answers</p><div
class="words answering">${tokens.map(answer)}</div></div></div>`;
}

/** In words: where the picked word looks, and what hiding did. */
function summary(s, now) {
  const { tokens, weights, row, top, there, reading } = now;
  const names = called(tokens);
  const where = s.compact ? "" : `Layer ${s.layer + 1}, head ${s.head + 1}: `;
  if (!there) return `${where}${reading.seen ? "it did not come with the link." : "on its way."}`;
  return html`${where}<b class="query">${names[row]}</b> attends
${
  top < 0
    ? "to nothing"
    : html`most to <b class="key">${names[top]}</b> <b
class="number weight">${two(weights[row][top])}</b>`
}`;
}

/**
 * Below the words: what the tokens are that nobody typed; or what it did to the sentence that words
 * are hidden.
 */
function note({ hides, likeness, moved, tokens }) {
  if (!hides.length) {
    const pieces =
      tokens.some((token) => token.startsWith("##")) &&
      " A piece with ## goes on the word before it.";
    return html`<p>The model puts <b>[CLS]</b> before each sentence and <b>[SEP]</b> after it.
Many heads put much of their weight there.${pieces}
Press × at a word to hide it: the model reads the sentence again, and no token can attend to
that word.</p>`;
  }
  const names = called(tokens);
  const hiddenNames = hides.map((i, k) => html`${k > 0 && ", "}<b class="key">${names[i]}</b>`);
  const change = ([l, h, i, j, from, to]) =>
    html`<button type="button" data-key="${[l, h, i, j].join()}"
data-go="${[l, h, i].join()}">${l + 1}.${h + 1} ${names[i]} → ${names[j]}: ${two(from)}, now
${two(to)}</button>`;
  return html`<p>Without ${hiddenNames}, the vector of the sentence keeps a cosine of <b
class="number">${two(likeness)}</b>. What moved most:</p>
<p class="tries">${moved.map(change)}</p>`;
}

function picture(s, at) {
  const now = compute(s, at);
  const { tokens } = now;
  const waits = now.stale && " waits"; // it is still the sentence before
  const largest = two(now.weights[now.row][Math.max(now.top, 0)]);
  const key = [s.layer, s.head, now.row, now.top, largest, now.reading.text].join();
  const why = !s.compact && html`<button type="button" name="why">Why?</button>`;
  const statement = html`<div class="telling${waits}"><p class="said" role="status"
data-part="said">${element("span", { "data-key": key }, summary(s, now))}</p>${why}</div>`;
  const ear = () =>
    html`<div class="visually-hidden" data-part="table">${
      s.compact
        ? table(
            `Where ${tokens[now.row]} looks`,
            ["word or mark", "weight"],
            tokens.map((token, j) => [token, two(now.weights[now.row][j])]),
          )
        : weightTable(now)
    }</div>`;
  if (s.compact) return [ladder(s, now), statement, panel(s, now), ear];
  const named =
    tokens.length > CROWDED
      ? tokens.map((token, i) => (i === now.row || i === now.top ? token : ""))
      : tokens;
  const known = KNOWN.map(([name, l, h]) => [
    name,
    { "data-go": `${l},${h}` },
    l === s.layer && h === s.head,
  ]);
  return [
    ladder(s, now),
    statement,
    html`<div class="without${waits}" role="status" data-part="without">${note(now)}</div>`,
    html`<div class="atlas${waits}"><p
class="note">All 72 heads: layers in rows, heads in columns</p><div
class="scroll">${grid(drawnHeads(now), s.layer, s.head)}</div>
${tries("Heads worth a look", "Worth a look", known)}</div>`,
    html`<div class="large${waits}">${sheet(
      "heat",
      HEAT.width,
      HEAT.height,
      "Heatmap of the picked head's weights; the table below holds the numbers",
      heatmap({ ...now, tokens: named }, HEAT),
    )}
<p class="cell" data-part="cell">${pointed(s.pointed, now)}</p></div>`,
    panel(s, now),
    ear,
  ];
}

/** What stands under the heatmap: the cell that is pointed at. */
function pointed(cell, { tokens, weights, allowed }) {
  if (!cell || Math.max(cell.i, cell.j) >= tokens.length)
    return "Tap a weight to see what it is made of.";
  const { i, j } = cell;
  return `${tokens[i]} → ${tokens[j]}: ${allowed[i][j] ? two(weights[i][j]) : "hidden"}`;
}

/** Runnable Python for what is on the screen; the model is the library's. */
function code(s, at) {
  const { reading, row, hides } = compute(s, at);
  return [
    "from attnlib import models",
    "",
    "minilm = models.load_minilm()  # its error says how to get the model",
    `text = ${JSON.stringify(reading.text)}`,
    `reading = minilm.read(text${hides.length ? `, hidden=[${hides.join(", ")}]` : ""})`,
    `layer, head, row = ${s.layer}, ${s.head}, ${row}  # counted from 0`,
    "weights = reading.weights[layer, head]  # (n, n): queries in rows, keys in columns",
    "for token, weight in zip(reading.tokens, weights[row]):",
    '    print(f"{reading.tokens[row]} looks at {token}: {weight:.2f}")',
  ];
}

const isWord = (token) => /^(?!\[).*[\p{L}\p{N}]/u.test(token); // no mark, no full stop

/**
 * Where the word that asked stands in a new sentence, in its old place if it can; -1 if nowhere.
 */
function again(tokens, { tokens: before, row }) {
  return tokens[row] === before[row] ? row : tokens.indexOf(before[row]);
}

/** Where the word stands that looks most at another word; -1 as long as there are no weights. */
function keenest(tokens, weights) {
  const others = (row, i) => row.filter((_, j) => j !== i && isWord(tokens[j]));
  const most = weights?.map((row, i) => (isWord(tokens[i]) ? Math.max(0, ...others(row, i)) : -1));
  return most ? most.indexOf(Math.max(...most)) : -1;
}

/** A long sentence scrolls in its ladder: to who answers most, and then to who asks. */
function reveal(view) {
  const look = () => {
    const box = view.root.querySelector(".ladder");
    const frame = box.getBoundingClientRect();
    for (const one of Array.from(
      box.querySelectorAll("[data-row][aria-pressed=true], .top"),
    ).reverse()) {
      const { left, right, top, bottom } = one.getBoundingClientRect();
      const by = (start, end) => Math.min(start - EDGE, 0) + Math.max(end + EDGE, 0);
      box.scrollBy(
        by(left - frame.left, right - frame.right),
        by(top - frame.top, bottom - frame.bottom),
      );
    }
  };
  requestAnimationFrame(() => requestAnimationFrame(look)); // once it is drawn
}

function live(view, tools) {
  view.follow(() => reveal(view));
  const now = () => compute(view.state(), tools.now());
  view.on("ladder", "click", ({ target }) => {
    const [row, hide] = ["row", "hide"].map(
      (name) => target.closest(`[data-${name}]`)?.dataset[name],
    );
    if (row !== undefined) view.set({ row: Number(row) });
    if (hide === undefined) return;
    const { hidden } = view.state();
    const j = Number(hide);
    view.set({
      hidden: hidden.includes(j)
        ? hidden.filter((i) => i !== j)
        : [...hidden, j].sort((a, b) => a - b),
    });
    tools.ask(0);
  });
  // Arrows walk along the words that ask, whichever way they stand.
  view.listen(
    self,
    "keydown",
    (event) => {
      const row = view.root.contains(event.target) ? event.target.dataset.row : undefined;
      const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      const next = view.root.querySelector(`[data-row="${Number(row) + step}"]`);
      if (row === undefined || !step) return;
      event.preventDefault();
      if (!next) return;
      view.set({ row: Number(row) + step });
      next.focus();
    },
    { capture: true },
  );
  view.listen(view.root, "click", ({ target }) => {
    const go = target.closest("[data-go]")?.dataset.go.split(",").map(Number);
    if (go) view.set({ layer: go[0], head: go[1], ...(go.length > 2 && { row: go[2] }) });
  });
  view.on("grid", "click", (event) => {
    // The first of a row and of a column is a name.
    const cell = event.target.closest("button")?.parentElement;
    if (cell) view.set({ layer: cell.parentElement.rowIndex - 1, head: cell.cellIndex - 1 });
  });
  view.grid("grid", (layer, head) => view.set({ layer, head }));
  const at = (event, svg) => cellAt(event, svg, HEAT.width, now().tokens.length, HEAT);
  view.on("heat", "click", (event, svg) => {
    const cell = at(event, svg);
    if (cell) view.set({ row: cell.i });
    if (cell?.inside) openMicroscope(view, [cell.i, cell.j]);
  });
  view.on("heat", "pointermove", (event, svg) => {
    const cell = at(event, svg);
    view.set({ pointed: cell?.inside ? cell : null });
  });
  view.on("heat", "pointerout", (event, svg) => {
    // Not from a cell to its number.
    if (!svg.contains(event.relatedTarget)) view.set({ pointed: null });
  });
  view.on("why", "click", () => {
    const { row, top } = now();
    openMicroscope(view, [row, Math.max(top, 0)]);
  });
  liveMicroscope(view);
}

export const heads = {
  label: "A sentence encoder: its heads",
  pageState: { lens: null, pointed: null },
  fields: ({ compact }) => [
    { name: "text", label: "A sentence of yours", tries: compact ? TRIES.slice(0, 3) : TRIES },
  ],
  wants(s) {
    const base = { text: s.text, hidden: [] };
    const n = find(s, base)?.tokens.length;
    const hides = s.hidden.filter((i) => i < n);
    return hides.length && hides.length < n ? [base, { text: s.text, hidden: hides }] : [base];
  },
  /** What a link takes along of a sentence that was read here: the weights of the head shown. */
  brings(s) {
    const reading = find(s, { text: s.text });
    const rows = reading && !s.readings.includes(reading) && rowsOf(reading, s.layer, s.head);
    if (!rows || s.hidden.length) return {};
    const seen = packed(reading.tokens, rows, s.layer, s.head);
    return unpacked(seen, s.text) ? { seen } : {};
  },
  fits: ({ tokens }) =>
    tokens.length > MOST
      ? `${tokens.length} tokens are too many to draw: take a sentence of ${MOST} at most.`
      : "",
  /** A sentence that was typed has its own word that asks; that of a link says which one. */
  grows(view, growing, at) {
    const s = view.state();
    const { tokens, weights } = growing;
    const begins = weights.length === 0;
    const row = begins
      ? again(tokens, compute(s, at))
      : keenest(tokens, rowsOf(growing, s.layer, s.head));
    if (s.typed && row >= 0) view.set({ row, typed: false });
    if (begins) reveal(view);
  },
  compute,
  picture,
  code,
  live,
};
