/**
 * Letters: a small GPT that reads letters, live. Its two layers as lines between the letters, the
 * probability of each letter, heads that can be switched off, and the accuracy of what is left.
 *
 * `model.js` computes.
 */
import { cellAt, shades } from "../drawing/heatmap.js";
import { buttons, element, html, table, textField } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, weightPanel } from "../drawing/microscope.js";
import { called, dotProducts, two } from "../kit/numbers.js";
import { copied, isOff, LETTERS, read, unpack } from "./model.js";

export const layout = "abh-instrument";

/**
 * Accuracies by heads that are off, as far as measured in this page; a weight under the
 * microscope, of [layer, head].
 */
export const pageState = { scores: {}, lens: null, lensed: [1, 0] };

const LONGEST = 24; // letters of a sentence in training, and of a test
const isText = (text) => /^[a-p]{1,24}$/.test(text);
const isHead = (head) =>
  Array.isArray(head) && head.length === 2 && head.every((x) => x === 0 || x === 1);
export const shared = {
  text: isText,
  tests: false,
  model: false,
  off: (off) =>
    Array.isArray(off) &&
    off.length <= 4 &&
    off.every(isHead) &&
    new Set(off.map(String)).size === off.length,
};
export const label = () => "A small GPT that reads letters";

const LAYERS = [0, 1];
const HEADS = [0, 1];
const TALL = 10; // a band of lines, in units of its own; a letter is 1 wide
const FAINT = 0.22; // of a line that leads nowhere

const tokensOf = (text) => Array.from(text, (letter) => LETTERS.indexOf(letter));

const models = new WeakMap();

/** The model, unpacked once. */
function modelOf({ model }) {
  if (!models.has(model)) models.set(model, unpack(model));
  return models.get(model);
}

/** Everything that follows from the traits; `position` is that of the query. */
export function compute(s) {
  const found = read(modelOf(s), tokensOf(s.text), s.off);
  const position = Math.min(s.place, s.text.length - 1);
  const probabilities = found.probabilities[position];
  return {
    position,
    says: probabilities.indexOf(Math.max(...probabilities)),
    copied: copied(modelOf(s), found, s.off),
    probabilities: found.probabilities,
    weights: found.weights,
  };
}

/** What the microscope needs of a weight. */
function weightOf(s, { weights }) {
  const [[i, j], [layer, one]] = [s.lens, s.lensed];
  if (Math.max(i, j) >= s.text.length) return null;
  const { n_heads } = modelOf(s);
  const step = read(modelOf(s), tokensOf(s.text), s.off).steps[layer];
  const d = step.queries[0].length / n_heads;
  const part = (rows) => rows.map((row) => Array.from(row.slice(one * d, (one + 1) * d)));
  const [queries, keys] = [part(step.queries), part(step.keys)];
  const names = called(Array.from(s.text));
  return {
    queryName: names[i],
    names,
    j,
    query: queries[i],
    key: keys[j],
    scores: dotProducts([queries[i]], keys, d)[0],
    divisor: [Math.sqrt(d), `√${d}`],
    free: names.map((_, k) => k <= i),
    weights: weights[layer][one][i],
  };
}

/**
 * What stands after the last earlier token of the same kind, for each token; -1 if there is none.
 */
function answers(tokens) {
  return tokens.map((token, i) => {
    const last = tokens.lastIndexOf(token, i - 1);
    return i && last >= 0 ? tokens[last + 1] : -1;
  });
}

/** How many of a sentence's answers are right, and how many there are. */
export function mark(s, at) {
  const tokens = tokensOf(s.tests.slice(at, at + LONGEST));
  const { probabilities } = read(modelOf(s), tokens, s.off);
  const answered = answers(tokens)
    .map((answer, i) => ({ answer, row: probabilities[i] }))
    .filter(({ answer }) => answer >= 0);
  const right = answered.filter(({ answer, row }) => row.indexOf(Math.max(...row)) === answer);
  return [right.length, answered.length];
}

/** A set of heads that are off, as a name. */
const setting = (off) =>
  off
    .map(([l, h]) => 2 * l + h)
    .sort()
    .join("");

// ------------------------------------------------------------------------------- the picture

/**
 * Lines of a layer, from letters above to letters below, of head 2 dashed: those of one look as one
 * path.
 */
function band(layer, n, lines) {
  const drawn = lines.filter(({ weight }) => weight > 0.02);
  const path = ({ from, to, head, weight, strength }) => {
    const beside = 0.5 + (head - 0.5) * 0.16;
    return element("path", {
      d:
        `M${from + beside} 0C${from + beside} ${0.55 * TALL} ${to + beside} ${0.45 * TALL} ` +
        `${to + beside} ${TALL}`,
      class: head ? "second" : false,
      "stroke-width": 0.6 + 4.4 * weight,
      opacity: strength,
    });
  };
  const all = { viewBox: `0 0 ${n} ${TALL}`, preserveAspectRatio: "none", "aria-hidden": "true" };
  return element(
    "svg",
    { ...all, class: "band", "data-part": `lines_${layer + 1}` },
    drawn.map(path),
  );
}

/** The letters as they are typed, what layer 1 copied to each, and the query. */
function ladder({ text, off }, { position, copied: sources, weights }) {
  const letters = Array.from(text);
  const heads = LAYERS.flatMap((layer) =>
    HEADS.filter((head) => !isOff(off, layer, head)).map((head) => [layer, head]),
  );
  const of = (layer) => heads.filter(([l]) => l === layer).map(([, head]) => head);
  const looked = letters.map((_, j) =>
    Math.max(0, ...of(1).map((head) => weights[1][head][position][j])),
  );
  const row = (name, cell) => html`<p class="row" data-row="${name}">${letters.map(cell)}</p>`;
  const cell = (kind, content) =>
    element("span", { class: kind.filter(Boolean).join(" ") || false }, content);
  const first = letters.flatMap((_, i) =>
    of(0).flatMap((head) =>
      weights[0][head][i].slice(0, i + 1).map((weight, j) => ({
        from: j,
        to: i,
        head,
        weight,
        strength: i > position ? 0.06 : Math.max(FAINT, looked[i]) * Math.min(1, 0.3 + weight),
      })),
    ),
  );
  const second = of(1).flatMap((head) =>
    weights[1][head][position].slice(0, position + 1).map((weight, j) => ({
      from: j,
      to: position,
      head,
      weight,
      strength: Math.min(1, 0.3 + weight),
    })),
  );
  const later = (i) => i > position && "later";
  return html`<div class="ladder" data-part="ladder"><div style="--n: ${letters.length}"
data-key="${letters.length}">
${row("typed", (letter, i) => cell([later(i), i === position && "query-letter"], letter))}
<p class="note">Layer 1 looks; in small type: the letter that was copied</p>
${band(0, letters.length, first)}
${row("copied", (letter, i) =>
  cell(
    [later(i)],
    [element("small", { class: "key" }, sources[i] < 0 ? " " : letters[sources[i]]), letter],
  ),
)}
<p class="note">Layer 2: the marked letter looks</p>
${band(1, letters.length, second)}
${row("query", (letter, i) => {
  const isQuery = i === position;
  return cell([isQuery && "query-letter"], isQuery ? letter : "");
})}</div></div>`;
}

/** A head, small: its weights, and whether it takes part. */
function head({ off }, { weights, position }, layer, one) {
  const { length: n } = weights[layer][one];
  const all = {
    viewBox: `-.5 0 ${n} ${n}`,
    "aria-hidden": "true",
    class: isOff(off, layer, one) ? "off" : false,
  };
  const frame = element("rect", { x: -0.5, y: position, width: n, height: 1, class: "frame" });
  const box = {
    type: "checkbox",
    name: "head",
    value: `${layer}${one}`,
    checked: !isOff(off, layer, one),
  };
  return html`<div class="head"><label>${element("input", box)} head ${one + 1}</label>
${element(
  "svg",
  { ...all, "data-part": "map", "data-head": `${layer}${one}` },
  shades(weights[layer][one], 8),
  frame,
)}</div>`;
}

/** The probabilities of all letters at the position of the query. */
function bars({ probabilities, position, says }) {
  const next = probabilities[position];
  return html`<div class="bars" data-part="bars" role="img"
aria-label="${Array.from(LETTERS, (letter, k) => `${letter} ${two(next[k])}`).join(", ")}">
${Array.from(LETTERS, (letter, k) =>
  element(
    "span",
    { style: `--probability: ${next[k].toFixed(4)}`, class: k === says && "most" },
    element("i"),
    letter,
  ),
)}</div>`;
}

// Heads of a layer that are off: none, the second, the first, both.
const SETS = [[], [1], [0], [0, 1]];
const LEFT = ["both", "head 1", "head 2", "none"];

/** The accuracy of every set of heads: a button each, in a table. */
function board({ off, scores }) {
  const now = setting(off);
  const cell = (first, second, a, b) => {
    const name = setting([...first.map((h) => [0, h]), ...second.map((h) => [1, h])]);
    const score = name in scores ? scores[name] : "?";
    const all = {
      type: "button",
      "aria-pressed": String(name === now),
      tabindex: name === now ? 0 : -1,
      "data-set": name,
    };
    return html`<td>${element(
      "button",
      {
        ...all,
        "aria-label":
          `layer 1: ${LEFT[a]}, layer 2: ${LEFT[b]}: ` +
          (score === "?" ? "not measured yet" : score),
      },
      score,
    )}</td>`;
  };
  return html`<table class="board" role="grid"
aria-label="Accuracy for each set of heads" data-part="board">
<tr><td></td><th scope="colgroup" colspan="4">layer 2 keeps</th></tr>
<tr><th scope="col">layer 1 keeps</th>${LEFT.map((name) => html`<th scope="col">${name}</th>`)}</tr>
${SETS.map(
  (first, a) =>
    html`<tr><th scope="row">${LEFT[a]}</th>${SETS.map((second, b) =>
      cell(first, second, a, b),
    )}</tr>`,
)}</table>`;
}

/** Whether the model is right, and why. */
function verdict({ text }, { position, says }) {
  const answer = answers(tokensOf(text))[position];
  if (answer < 0) return `No ${text[position]} came before, so nothing is right here.`;
  return answer === says
    ? "Right."
    : html`Wrong: after the last ${text[position]} came <b class="value">${LETTERS[answer]}</b>.`;
}

/** The head of layer 2 of which the words tell: the first that is on. */
const speaker = ({ off }) =>
  Math.max(
    0,
    HEADS.findIndex((one) => !isOff(off, 1, one)),
  );

/** In words what a head of layer 2 looks at, and what comes of it. */
function inWords(s, now) {
  const { text, off } = s;
  const { position, weights, probabilities, says, copied: sources } = now;
  const one = speaker(s);
  const answer = html`The model says <b class="value">${LETTERS[says]}</b>
(${two(probabilities[position][says])}). ${verdict(s, now)}`;
  if (isOff(off, 1, one)) return html`No head of layer 2 is on. ${answer}`;
  const row = weights[1][one][position];
  const j = row.indexOf(Math.max(...row));
  const before =
    sources[j] < 0 ? "" : html`, which stands after <b class="key">${text[sources[j]]}</b>`;
  return html`At <b class="query">${text[position]}</b>, head ${one + 1} of layer 2 looks at <b
class="key">${text[j]}</b> (${two(row[j])})${before}. ${answer}`;
}

export function picture(s) {
  const now = compute(s);
  const { length: n } = s.text;
  const layer = (l) =>
    html`<div class="layer"><p>Layer
${l + 1}</p><div>${HEADS.map((one) => head(s, now, l, one))}</div></div>`;
  return [
    html`<div class="typing"><label class="main"><span>Letters from a to p, up to 24</span>
${textField("text", s.text)}</label>
<p class="buttons"><button type="button" name="write">Add its answer</button><button type="button"
name="random">Random letters</button></p></div>`,
    html`<label class="place"><span>It reads up to letter <b class="number"
data-part="place_value">${now.position + 1}</b></span>
${element("input", {
  type: "range",
  name: "place",
  min: 1,
  max: n,
  value: now.position + 1,
  "aria-valuetext": `letter ${now.position + 1}, ${s.text[now.position]}`,
})}</label>`,
    ladder(s, now),
    html`<div class="heads" role="group"
aria-label="Heads that take part">${LAYERS.map(layer)}</div>`,
    html`<div class="explanation"><p role="status"
data-part="explanation">${element(
      "span",
      { "data-key": [s.text, now.position, s.off].join() },
      inWords(s, now),
    )}</p><button type="button" name="why">Why?</button></div>`,
    bars(now),
    html`<div class="score"><p>Accuracy on ${s.tests.length / LONGEST} test sentences with these
heads, measured on this page: <b class="big"
data-part="score">${s.scores[setting(s.off)] ?? "?"}</b></p></div>`,
    board(s),
    buttons(),
    weightPanel(s.lens && weightOf(s, now)),
    () => html`<div class="visually-hidden">${tables(s, now)}</div>`,
  ];
}

function tables({ text }, { position, weights, probabilities }) {
  const names = LAYERS.flatMap((l) => HEADS.map((h) => `layer ${l + 1}, head ${h + 1}`));
  const rows = Array.from(text.slice(0, position + 1), (letter, j) => [
    `${j + 1}: ${letter}`,
    ...weights.flatMap((layer) => layer.map((one) => two(one[position][j]))),
  ]);
  return [
    table(`Weights of letter ${position + 1}, ${text[position]}`, ["letter", ...names], rows),
    table(
      "Probabilities of the next letter",
      ["letter", "probability"],
      Array.from(LETTERS, (letter, k) => [letter, two(probabilities[position][k])]),
    ),
  ];
}

/** Runnable Python for what is on the screen; the weights are the library's. */
export function code({ text, place, off }) {
  const heads = off.map(([l, h]) => `, (${l}, ${h})`).join("");
  return [
    "import numpy as np",
    "from attnlib import softmax",
    "from attnlib.models import induction",
    "",
    `letters = "${LETTERS}"`,
    `text = "${text}"`,
    "model = induction.load(2, dtype=np.float64)",
    `model = induction.without(model${heads})  # (layer, head), counted from 0, that add nothing`,
    "scores, weights = model([letters.index(letter) for letter in text])",
    "probabilities = softmax(scores)",
    `position = ${Math.min(place, text.length - 1)}`,
    "answer = probabilities[position]",
    "print(text[: position + 1], letters[answer.argmax()], answer.max().round(2))",
  ];
}

// --------------------------------------------------------------------------------- the page

const SLICE = 6; // milliseconds of a frame for measuring

/**
 * A function that measures the chosen set of heads on the test sentences, a slice at a time, if it
 * is a new one.
 */
function measuring(view) {
  let running = null;
  return () => {
    const { off, scores, tests } = view.state();
    const name = setting(off);
    if (name in scores || name === running) return;
    running = name;
    let [at, right, count] = [0, 0, 0];
    const slice = () => {
      if (running !== name || !view.root.isConnected) return;
      for (
        const end = performance.now() + SLICE;
        at < tests.length && performance.now() < end;
        at += LONGEST
      ) {
        const [good, all] = mark({ ...view.state(), off }, at);
        [right, count] = [right + good, count + all];
      }
      if (at < tests.length) setTimeout(slice);
      else view.set({ scores: { ...view.state().scores, [name]: (right / count).toFixed(3) } });
    };
    setTimeout(slice);
  };
}

export function live(view) {
  const measure = measuring(view);
  const choose = (changes) => {
    view.set(changes);
    measure();
  };
  for (const touch of ["pointerover", "focusin"]) view.listen(view.root, touch, measure);
  const refused = (text) => {
    if (text === "") return "Type at least one letter.";
    return text.length > LONGEST
      ? `${LONGEST} letters are as many as it read in training.`
      : "It knows the letters a to p and no others.";
  };
  const write = (text) => {
    const small = text.toLowerCase().replace(/\s/g, "");
    view.say(isText(small) ? "" : refused(small));
    if (isText(small)) view.set({ text: small, place: LONGEST - 1 });
  };
  view.on("text", "input", (event) => write(event.target.value));
  view.on("place", "input", (event) => view.set({ place: Number(event.target.value) - 1 }));
  view.on("write", "click", () => {
    const s = view.state();
    const { says } = compute({ ...s, place: LONGEST - 1 });
    write(s.text + LETTERS[says]);
  });
  view.on("random", "click", () => {
    const letter = () => LETTERS[Math.floor(LETTERS.length * Math.random())];
    write(Array.from({ length: 14 }, letter).join(""));
  });
  view.on("ladder", "click", (event) => {
    const cell = event.target.closest(".row > span");
    if (cell) view.set({ place: Array.from(cell.parentElement.children).indexOf(cell) });
  });
  view.on("head", "change", (event) => {
    const one = Array.from(event.target.value, Number);
    const { off } = view.state();
    const rest = off.filter((other) => String(other) !== String(one));
    choose({ off: event.target.checked ? rest : [...rest, one] });
  });
  view.on("why", "click", () => {
    const s = view.state();
    const { weights, position } = compute(s);
    const row = weights[1][speaker(s)][position];
    view.set({ lensed: [1, speaker(s)] });
    openMicroscope(view, [position, row.indexOf(Math.max(...row))]);
  });
  view.on("map", "click", (event, map) => {
    const { length } = view.state().text;
    const cell = cellAt(event, map, length, length, { left: 0, top: 0, size: length });
    if (!cell?.inside) return;
    view.set({ lensed: Array.from(map.dataset.head, Number) });
    openMicroscope(view, [cell.i, cell.j]);
  });
  liveMicroscope(view);
  const pick = (button) =>
    choose({ off: Array.from(button.dataset.set, (digit) => [digit >> 1, digit & 1]) });
  view.on(
    "board",
    "click",
    (event) => event.target.closest("button") && pick(event.target.closest("button")),
  );
  view.grid("board", (i, j) => pick(view.part("board").rows[i + 2].querySelectorAll("button")[j]));
  /**
   * For tests and the curious: what the model makes of other letters, with the heads that are on.
   */
  view.root.parentElement.read = async (text) => {
    if (!isText(text))
      throw new TypeError(`text must be 1 to ${LONGEST} letters from a to p; got ${text}`);
    const { probabilities, weights } = read(
      modelOf(view.state()),
      tokensOf(text),
      view.state().off,
    );
    return { tokens: Array.from(text), probabilities, weights };
  };
}
