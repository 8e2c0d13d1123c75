/**
 * Trainer: a small GPT that trains in the page. Maps of its heads on a sentence of the reader's,
 * the curve of its loss, and a slider over the past.
 *
 * `learner.js` computes: a worker trains with it, and the page reads with it.
 */
import { shades } from "../drawing/heatmap.js";
import { element, html, line, select, sheet, table, text, textField } from "../kit/markup.js";
import { two } from "../kit/numbers.js";
import { makeLearner, serve } from "./learner.js";

export const layout = "abh-instrument";

/**
 * The training that is under way or over; the step on show, if it is an earlier one; heads that
 * take no part when a sentence is read, "layer,head"; accuracies that were measured.
 */
export const pageState = { run: null, running: false, at: null, off: [], measured: {} };

const ALPHABET = "abcdefghijklmnop";
const LENGTH = 24;
const TESTS = 200; // sentences of which an accuracy is measured
const TEST_SEED = 1_000_003; // the reader's seeds are smaller
const RULE = 0.29; // the accuracy of "say the letter before", see the chapter
const RATES = [0.0012, 0.004, 0.012, 0.04, 0.12];
const SAMPLES = { last: "cfakdcgbfaec", next: "cfakdgcfakdg" };
const PACES = { slow: "10 steps a second", frame: "a step a frame", fast: "as fast as possible" };
const WITHOUT = {
  nothing: "nothing",
  residual: "the residual connections",
  positions: "the positions",
  mask: "the causal mask",
};
const TASKS = {
  last: "what followed it the last time",
  next: "the next of a repeating text",
};

const isText = (value) => /^[a-p]{1,24}$/.test(value);
export const shared = { text: isText, kernel: false };
export const label = () => "A small GPT that trains in this page";

const tokensOf = (value) => Array.from(value, (letter) => ALPHABET.indexOf(letter));

/** What the learner needs to know. */
const settingsOf = ({ seed, rate, layers, heads, without, task, steps }) => ({
  seed,
  rate,
  layers,
  heads,
  task,
  steps,
  residual: without !== "residual",
  positions: without !== "positions",
  causal: without !== "mask",
});

export const keyOf = (s) => JSON.stringify(settingsOf(s));

const readers = new Map(); // by the settings, what reads in the page; and its first weights

/** A learner with these settings that reads with any weights. */
function readerOf(s) {
  const key = keyOf(s);
  if (!readers.has(key)) {
    const learner = makeLearner({ ...settingsOf(s), batch: 1 });
    if (readers.size > 8) readers.clear();
    readers.set(key, { learner, first: learner.weights.slice() });
  }
  return readers.get(key);
}

/** The training, unless the settings have changed since. */
const runOf = (s) => (s.run?.key === keyOf(s) ? s.run : null);

/** The weights on show, and after how many steps the model had them. */
function shownOf(s) {
  const run = runOf(s);
  if (!run) return { step: 0, weights: readerOf(s).first };
  if (s.at === null) return run;
  const distance = ({ step }) => Math.abs(step - s.at);
  return run.past.reduce((best, each) => (distance(each) < distance(best) ? each : best));
}

/** Where the answers of a text stand, -1 where there is none. */
function answersOf({ text, task }) {
  const letters = Array.from(text);
  // A text that repeats itself: its period is the shortest one that fits.
  const period = letters.findIndex(
    (_, p) => p > 0 && letters.slice(p).every((letter, i) => letter === letters[i]),
  );
  return letters.map((letter, i) => {
    const before = i ? letters.lastIndexOf(letter, i - 1) : -1;
    const last = task === "last" ? before : period > 0 ? i - period : -1;
    return last < 0 ? -1 : last + 1;
  });
}

/** Everything that follows from the state. */
export function compute(s) {
  const { step, weights } = shownOf(s);
  const { learner } = readerOf(s);
  learner.weights.set(weights);
  const found = learner.read(tokensOf(s.text), s.off);
  const says = found.probabilities.map((row) => row.indexOf(Math.max(...row)));
  return { step, answers: answersOf(s), says, ...found };
}

/** The mean of the last four steps up to a step, 64 sentences. */
function smoothed(story, step, value) {
  const part = story.slice(Math.max(0, step - 4), step);
  return part.reduce((sum, row) => sum + value(row), 0) / part.length;
}

const best = (values) => Math.max(...values);
const cheats = ({ task, without }) => task === "next" && without === "mask";

/** What the charts and the words need at a step: loss, accuracy, and the best heads' weights. */
function measuresAt(s, story, step) {
  const of = (value) => smoothed(story, step, value);
  return {
    loss: of((row) => row.loss),
    accuracy: of((row) => row.accuracy),
    oneBack: of((row) => best(row.oneBack.slice(0, s.heads))),
    onAnswer: of((row) => best(row.onAnswer.slice(-s.heads))),
    oneAhead: of((row) => best(row.oneAhead)),
  };
}

// --------------------------------------------------------------------------------- in words

const inThousands = (count) => String(count).replace(/(?=\d{3}$)/, ",");

const isPlain = ({ layers, without, task, rate }) =>
  layers === 2 && without === "nothing" && task === "last" && rate < 0.03;

/** What is happening in a model of two layers that lacks nothing. */
function stageOf({ loss, accuracy, oneBack, onAnswer }) {
  if (accuracy > 0.95)
    return html`<b>Learned.</b> Layer 1 has a previous-token head, which labels each letter with
the one before. Layer 2 has an induction head, which looks for its own letter among the labels.`;
  if (onAnswer > 0.2 && accuracy > RULE)
    return html`<b>The drop.</b> An induction head is forming in layer 2: it finds more and more
answers by the labels that layer 1 writes, and so both heads become sharper together.`;
  if (oneBack > 0.2)
    return html`<b>Plateau.</b> A previous-token head begins to form in layer 1. But layer 2 does
not use its labels yet, so the loss hardly falls.`;
  return loss > 2.6
    ? html`<b>Plateau.</b> The model still guesses. With 16 equally likely letters the loss is
ln 16 = 2.77.`
    : html`<b>Plateau.</b> The model has noticed that letters close by are a little more likely.
No head looks at the right place yet.`;
}

/** Why a model with these settings ends where it does. */
function reasonOf(s, { accuracy }) {
  if (s.task === "next") {
    if (s.without === "mask")
      return html`Without the mask the model cheats: the next letter is the answer, and a head looks
straight at it. It has not learned to predict anything.`;
    if (s.layers === 1)
      return html`With the mask, a single layer does not find where these letters occurred before,
because no position says which letter came before its own.`;
    return html`The mask hides the next letter, so the model needs the same two heads: one writes
labels, the other finds them.`;
  }
  if (s.without === "residual")
    return html`Without residual connections a layer passes on only what its own heads and network
write, so a letter does not stay beside its label.`;
  if (s.without === "positions")
    return html`Without positions no head can look at exactly the letter before. But
the causal mask tells early letters from late ones, and about half of the answers are right.`;
  if (s.without === "mask")
    return html`Here a model without the mask cannot cheat, because the answer is always an earlier
letter. It only needs more steps.`;
  if (s.layers === 1)
    return html`With a single layer, no head can read what another one has written. The accuracy
stays below that of the rule “say the letter before”, ${two(RULE)}.`;
  if (accuracy > 0.35)
    return html`It has left the plateau, but this learning rate is not a good one.`;
  return s.rate > 0.012
    ? html`The steps are too large, and the loss stays on the plateau.`
    : html`The steps are too small: ${s.steps} of them do not lead off the plateau.`;
}

/** One sentence or two on where the training is. */
function inWords(s) {
  const run = runOf(s);
  const { step } = shownOf(s);
  if (!run || step === 0)
    return html`All ${inThousands(readerOf(s).learner.count)} parameters are random
numbers, so each head looks a little at everything. Press <b>Train</b> and watch the maps.`;
  const now = measuresAt(s, run.story, step);
  if (isPlain(s) && (now.accuracy > 0.95 || step < s.steps)) return stageOf(now);
  if (step >= s.steps)
    return html`<b>The end: accuracy ${two(now.accuracy)}.</b> ${reasonOf(s, now)}`;
  if (cheats(s))
    return html`Nothing stops the heads from looking at the letter after. Watch whether they do.`;
  return now.accuracy > 0.35
    ? html`<b>Off the plateau.</b> The model finds some of the answers.`
    : html`<b>Plateau.</b> Watch whether a head of layer 1 turns to the letter before, and one of
the last layer to the answer.`;
}

// ------------------------------------------------------------------------------- the picture

const MAP = 168; // units of a map's width

/** The cells where the heads of a layer are expected to look, as [query, key]. */
function expected(s, layer, answers) {
  const n = answers.length;
  if (cheats(s)) return answers.map((_, i) => [i, i + 1]).filter(([, j]) => j < n);
  if (layer === 0 && s.layers > 1) return answers.map((_, i) => [i, i - 1]).slice(1);
  return answers.map((j, i) => [i, j]).filter(([, j]) => j >= 0 && j < n);
}

/** What the heads of a layer are measured by: in words, and where it stands in the story. */
function measureOf(s, layer) {
  if (cheats(s)) return ["the letter after", "oneAhead"];
  if (layer === 0 && s.layers > 1) return ["the letter before", "oneBack"];
  return ["the answer", "onAnswer"];
}

/** The map of one head: queries in rows, keys in columns, frames where it is expected to look. */
function map(s, now, layer, head) {
  const n = s.text.length;
  const side = MAP / (n + 1);
  const weights = now.weights[layer][head];
  const faint = (i) => (layer === s.layers - 1 && now.answers[i] < 0 && !cheats(s) ? 0.35 : 1);
  const frames = expected(s, layer, now.answers)
    .map(([i, j]) => `M${j - 0.5} ${i}h1v1h-1z`)
    .join("");
  const letters = Array.from(s.text, (letter, i) => {
    const middle = (i + 1.5) * side;
    return [
      text(letter, side / 2, middle + 4, "query", { "text-anchor": "middle" }),
      text(letter, middle, side / 2 + 4, "key", { "text-anchor": "middle" }),
    ];
  });
  const [left, top, unit] = [1.5 * side, side, side].map((x) => x.toFixed(3));
  const place = `translate(${left} ${top}) scale(${unit})`;
  const off = s.off.includes(`${layer},${head}`);
  const box = { type: "checkbox", name: "head", value: `${layer},${head}`, checked: !off };
  const measure = runOf(s)?.story[now.step - 1]?.[measureOf(s, layer)[1]][layer * s.heads + head];
  return html`<div class="head"><label>${element("input", box)} head ${head + 1}: <b>${
    measure === undefined ? "–" : two(measure)
  }</b></label>${element(
    "svg",
    {
      viewBox: `0 0 ${MAP} ${MAP}`,
      "data-part": "map",
      "aria-hidden": "true",
      class: off && "off",
    },
    element("rect", { x: side, y: side, width: n * side, height: n * side, class: "edge" }),
    element(
      "g",
      { transform: place },
      element(
        "g",
        { class: "cells" },
        shades(
          weights.map((row, i) => row.map((weight) => weight * faint(i))),
          20,
        ),
      ),
      element("path", { d: frames, class: "expected" }),
    ),
    n <= 16 && letters,
  )}</div>`;
}

const CHART = { width: 340, left: 30, right: 8 };
const LOSS = { top: 8, bottom: 118, most: 3 };
const RATES_CHART = { top: 156, bottom: 276, most: 1 };

/** The steps at the right end of the axis: it grows with the training. */
const reach = (s, step) => Math.min(s.steps, Math.max(100, 50 * Math.ceil((step + 1) / 50)));

/** The first step at which a smoothed value has come to be true. */
function since(story, test) {
  for (let step = 4; step <= story.length; step++) if (test(step)) return step;
  return null;
}

/** Loss above, and below it the accuracy and where the best heads of both layers look. */
function curves(s, shown) {
  const story = runOf(s)?.story ?? [];
  const end = reach(s, story.length);
  const x = (step) =>
    CHART.left + ((CHART.width - CHART.left - CHART.right) * Math.min(step, end)) / end;
  const y = (value, { top, bottom, most }) =>
    bottom - ((bottom - top) * Math.min(value, most)) / most;
  const every = Math.max(1, Math.floor(story.length / 160));
  const path = (value, chart) =>
    story
      .map((_, k) => k + 1)
      .filter((step) => step % every === 0 || step === story.length)
      .map((step, k) => {
        const at = y(smoothed(story, step, value), chart);
        return `${k ? "L" : "M"}${x(step).toFixed(1)} ${at.toFixed(1)}`;
      })
      .join("");
  const curve = (kind, value, chart) =>
    story.length > 1 && element("path", { d: path(value, chart), class: `curve ${kind}` });
  const grid = (value, chart, name = String(value)) => [
    line(`M${CHART.left} ${y(value, chart)}H${CHART.width - CHART.right}`, { class: "grid" }),
    text(name, CHART.left - 6, y(value, chart) + 4, "muted", { "text-anchor": "end" }),
  ];
  const level = (value, chart, name = "") => [
    line(`M${CHART.left} ${y(value, chart)}H${CHART.width - CHART.right}`, { class: "level" }),
    text(name, CHART.width - CHART.right, y(value, chart) - 4, "muted", { "text-anchor": "end" }),
  ];
  const loss = (step) => smoothed(story, step, (row) => row.loss);
  const accuracy = smoothed(story, shown, (row) => row.accuracy);
  const from = since(story, (step) => loss(step) < 2.3);
  const to = since(story, (step) => loss(step) < 0.8);
  const drop = to && [
    element("rect", {
      x: x(from),
      y: LOSS.top,
      width: x(to) - x(from),
      height: LOSS.bottom - LOSS.top,
      class: "drop",
    }),
    x(from) > 90 && text("plateau", x(from) - 5, y(1.9, LOSS), "ink", { "text-anchor": "end" }),
    text("drop", x(to) + 5, LOSS.top + 24, "ink"),
  ];
  const ticks = [0, end / 2, end].map((step) =>
    text(step === end ? `step ${end}` : String(step), x(step), RATES_CHART.bottom + 16, "muted", {
      "text-anchor": step === end ? "end" : "middle",
    }),
  );
  const cursor =
    shown < story.length &&
    line(`M${x(shown)} ${LOSS.top}V${RATES_CHART.bottom}`, { class: "cursor" });
  return sheet(
    "curves",
    CHART.width,
    298,
    story.length
      ? `Loss ${two(loss(shown))} and accuracy ${two(accuracy)} at step ${shown}`
      : "Loss and accuracy by step: nothing yet",
    drop,
    [0, 1, 2].map((value) => grid(value, LOSS)),
    level(Math.log(16), LOSS, "loss of a guess, ln 16"),
    curve("loss", (row) => row.loss, LOSS),
    [0, 0.5, 1].map((value) => grid(value, RATES_CHART)),
    text("loss", CHART.left + 4, LOSS.top + 3, "ink"),
    text("accuracy and weights", CHART.left + 4, RATES_CHART.top - 5, "ink"),
    story.length === 0 &&
      text("Train draws the curves.", CHART.width / 2, y(1.5, LOSS) + 4, "muted", {
        "text-anchor": "middle",
      }),
    s.task === "last" && level(RULE, RATES_CHART),
    cheats(s)
      ? curve("ahead", (row) => best(row.oneAhead), RATES_CHART)
      : [
          curve("back", (row) => best(row.oneBack.slice(0, s.heads)), RATES_CHART),
          curve("answer", (row) => best(row.onAnswer.slice(-s.heads)), RATES_CHART),
        ],
    curve("accuracy", (row) => row.accuracy, RATES_CHART),
    ticks,
    cursor,
  );
}

/** What the curves are, with a piece of each. */
function legend(s) {
  const sample = (kind) =>
    element(
      "svg",
      { viewBox: "0 0 24 8", "aria-hidden": "true", class: "sample" },
      element("path", { d: "M0 4H24", class: `curve ${kind}` }),
    );
  const names = {
    loss: "loss",
    accuracy: "accuracy",
    ...(cheats(s)
      ? { ahead: "best head, one ahead" }
      : { back: "layer 1, the letter before", answer: `layer ${s.layers}, the answer` }),
    ...(s.task === "last" && { level: "rule “say the letter before”" }),
  };
  const key = Object.values(names).join();
  return html`<p class="legend" data-key="${key}">${Object.entries(names).map(
    ([kind, name]) => html`<span>${sample(kind)} ${name}</span> `,
  )}</p>`;
}

/** The letters, and under each what the model says. */
function reading(s, now) {
  const letters = Array.from(s.text);
  const cell = (i) => {
    const answer = now.answers[i];
    const said = ALPHABET[now.says[i]];
    // Past the end of a text that repeats itself the answer is a letter of the first period.
    if (answer < 0) return element("span", { class: "none" }, "·");
    const right = answer < letters.length && letters[answer] === said;
    return element("span", { class: right ? "right" : "wrong" }, said);
  };
  return html`<div class="reading" data-part="reading" style="--n: ${letters.length}"
data-key="${letters.length}"><p><i>reads</i>${letters.map((letter) =>
    element("span", {}, letter),
  )}</p><p><i>says</i>${letters.map((_, i) => cell(i))}</p></div>`;
}

const setOf = (s, step) => `${keyOf(s)}:${step}:${[...s.off].sort().join(" ")}`;

export function picture(s) {
  const now = compute(s);
  const run = runOf(s);
  const { step } = now;
  const measures = step ? measuresAt(s, run.story, step) : null;
  const ended = Boolean(run) && run.step >= s.steps;
  const main = s.running ? "Pause" : ended ? "Train again" : run ? "Continue" : "Train";
  // A second layer and a second head keep their room when they are gone.
  const layer = (l) =>
    l < s.layers
      ? html`<div class="layer"><p><b>Layer ${l + 1}</b>: weight on ${measureOf(s, l)[0]}</p><div
class="row">${Array.from({ length: s.heads }, (_, h) => map(s, now, l, h))}</div></div>`
      : html`<div class="layer"><p>There is no second layer.</p><div
class="row"><div class="head"><span class="no-label"></span><svg viewBox="0 0 ${MAP} ${MAP}"
aria-hidden="true"></svg></div></div></div>`;
  const oneStep = element("button", { type: "button", name: "step", disabled: ended }, "One step");
  const field = (name, title, choices, chosen) =>
    html`<label><span>${title}</span>${select(name, choices, chosen)}</label>`;
  const rates = Array.from(new Set([...RATES, s.rate])).sort((a, b) => a - b);
  const accuracy = s.measured[setOf(s, step)];
  return [
    html`<p class="start"><button type="button" name="train"
class="train">${main}</button>${oneStep}<label class="pace"><span
class="visually-hidden">Pace</span>${select("pace", PACES, s.pace)}</label><button type="button"
name="reset">Reset</button></p>`,
    html`<p class="phase" role="status" data-part="phase">${inWords(s)}</p>`,
    html`<p class="numbers"><span>step <b data-part="step">${step}</b></span> <span>loss <b
data-part="loss">${measures ? two(measures.loss) : "–"}</b></span> <span>accuracy <b
data-part="accuracy">${measures ? two(measures.accuracy) : "–"}</b></span></p>`,
    html`<div class="maps" data-part="maps" data-key="${s.layers},${s.heads}" role="group"
aria-label="Heads that take part">${[0, 1].map(layer)}</div>`,
    html`<div class="charts">${curves(s, step)}${legend(s)}</div>`,
    html`<label class="past"><span>Go back to an earlier step: <b
class="number">${step}</b></span>${element("input", {
      type: "range",
      name: "past",
      min: 0,
      max: Math.max(1, run?.step ?? 1),
      value: run ? step : 1,
      disabled: !run,
      "aria-valuetext": `step ${step}`,
    })}</label>`,
    html`<div class="sentence"><label><span>Your letters, a to p, at most 24</span>${textField(
      "text",
      s.text,
    )}</label>${reading(s, now)}</div>`,
    html`<p class="measured">Accuracy on ${TESTS} new sentences with the heads that are
ticked: <b data-part="measured">${accuracy ?? "–"}</b> <button type="button"
name="measure">Measure</button></p>`,
    html`<div class="settings">${[
      html`<label><span>Seed</span>${element("input", {
        type: "number",
        name: "seed",
        min: 0,
        max: 999,
        step: 1,
        value: s.seed,
      })}</label>`,
      field(
        "rate",
        "Learning rate",
        Object.fromEntries(rates.map((r) => [`${r} `, r])),
        `${s.rate} `,
      ),
      field(
        "layers",
        "Layers",
        [1, 2].map((n) => [n, n]),
        s.layers,
      ),
      field(
        "heads",
        "Heads in each layer",
        [1, 2].map((n) => [n, n]),
        s.heads,
      ),
      field("without", "Leave out", WITHOUT, s.without),
      field("task", "Task: say", TASKS, s.task),
    ]}</div>`,
    () => html`<div class="visually-hidden">${tables(s, now)}</div>`,
  ];
}

function tables(s, { step, weights, says, answers }) {
  const names = weights.flatMap((heads, l) => heads.map((_, h) => `layer ${l + 1}, head ${h + 1}`));
  const looks = (row) => {
    const j = row.indexOf(best(row));
    return `${j + 1}: ${s.text[j]} ${two(row[j])}`;
  };
  const rows = Array.from(s.text, (letter, i) => [
    `${i + 1}: ${letter}`,
    answers[i] < 0 ? "" : ALPHABET[says[i]],
    ...weights.flatMap((heads) => heads.map((matrix) => looks(matrix[i]))),
  ]);
  return table(
    `After step ${step}: what the model says at each letter, and where each head looks most`,
    ["letter", "says", ...names],
    rows,
  );
}

// --------------------------------------------------------------------------------- the page

const BUDGET = 12; // milliseconds of a message in which as many steps are done as possible
const FRAME = 1000 / 60; // milliseconds
const SLICE = 6; // milliseconds of a frame for measuring

/**
 * Trains in a worker. `tell` is called with each answer of the worker, `fail` with an error. `ask`
 * asks for at most so many steps within so many milliseconds.
 */
function train(s, tell, fail) {
  const source = `(${serve})(${makeLearner},${JSON.stringify(s.kernel)});`;
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(address);
  URL.revokeObjectURL(address);
  let settings = settingsOf(s);
  worker.onmessage = ({ data }) => tell(data);
  worker.onerror = (event) => fail(event.message || "the worker did not start");
  return {
    ask(most, ms) {
      worker.postMessage({ settings, most, ms });
      settings = null;
    },
    stop: () => worker.terminate(),
  };
}

/** Adds what the worker has found to a run. */
function record(run, { found, weights }) {
  run.story.push(...found);
  run.step = run.story.length;
  run.weights = weights;
  if (run.step - run.past.at(-1).step >= run.every || run.step >= run.steps)
    run.past.push({ step: run.step, weights });
}

export function live(view) {
  let worker = null;
  let waiting = false; // for an answer of the worker
  let timer = 0;
  let last = 0; // frame in which steps were asked for
  let settled = null; // resolves and rejects what slot.train has promised

  const halt = (state = {}) => {
    clearTimeout(timer);
    view.set({ running: false, ...state });
  };
  const dismiss = (why = "The training was stopped.") => {
    clearTimeout(timer);
    worker?.stop();
    worker = null;
    waiting = false;
    settled?.reject(new Error(why));
    settled = null;
  };

  /** From nothing, with the settings of now. */
  function begin() {
    dismiss();
    const s = view.state();
    const key = keyOf(s);
    const run = { key, step: 0, steps: s.steps, story: [], every: s.steps / 125 };
    run.weights = readerOf(s).first;
    run.past = [{ step: 0, weights: run.weights }];
    worker = train(
      s,
      (news) => {
        waiting = false;
        if (view.state().run !== run) return;
        record(run, news);
        view.redraw();
        if (run.step >= run.steps) finish(run);
        else if (view.state().running) next();
      },
      (message) => {
        halt();
        dismiss(message);
        view.say(`The training has stopped: ${message}.`);
      },
    );
    view.set({ run, at: null });
  }

  function finish(run) {
    const promised = settled;
    settled = null;
    halt();
    dismiss();
    const losses = run.story.map(({ loss }) => loss);
    measure((accuracy) => promised?.resolve({ steps: run.step, losses, accuracy }));
  }

  function ask(most, ms) {
    if (waiting || !worker) return;
    waiting = true;
    const { run } = view.state();
    worker.ask(Math.min(most, run.steps - run.step), ms);
  }

  /** Asks for a step a frame, and for more where the screen draws fewer than 60 frames a second. */
  function askForFrame(time) {
    if (!view.state().running) return;
    const frames = Math.round((time - last) / FRAME);
    last = time;
    ask(Math.min(Math.max(frames, 1), 4), BUDGET);
  }

  /** The next steps, at the pace that is chosen. */
  function next() {
    const { running, pace } = view.state();
    if (!running) return;
    if (!view.root.isConnected) dismiss();
    else if (pace === "fast" || settled) ask(1000, BUDGET);
    else if (pace === "slow") timer = setTimeout(() => ask(1, 0), 100);
    else requestAnimationFrame(askForFrame);
  }

  function go() {
    const run = runOf(view.state());
    if (!run || !worker) begin();
    view.say("");
    view.set({ running: true, at: null });
    next();
  }

  /** Measures the model on show on new sentences, a slice at a time. */
  function measure(then = () => {}) {
    const s = view.state();
    const { step, weights } = shownOf(s);
    const name = setOf(s, step);
    const { learner } = readerOf(s);
    const tests = learner.draw(TEST_SEED, TESTS);
    let [from, right, asked] = [0, 0, 0];
    const slice = () => {
      learner.weights.set(weights);
      for (const stop = performance.now() + SLICE; from < tests.tokens.length; from += LENGTH) {
        if (performance.now() > stop) break;
        const [good, all] = learner.mark(tests, from, s.off);
        [right, asked] = [right + good, asked + all];
      }
      if (from < tests.tokens.length) {
        setTimeout(slice);
        return;
      }
      const accuracy = right / asked;
      view.set({ measured: { ...view.state().measured, [name]: accuracy.toFixed(3) } });
      then(accuracy);
    };
    slice();
  }

  const refused = (value) => {
    if (value === "") return "Type at least one letter.";
    return value.length > LENGTH
      ? `${LENGTH} letters are as many as it reads in training.`
      : "It knows the letters a to p and no others.";
  };

  view.on("train", "click", () => (view.state().running ? halt() : go()));
  view.on("step", "click", () => {
    const run = runOf(view.state());
    if (!run || !worker) begin();
    halt({ at: null });
    ask(1, 0);
  });
  view.on("reset", "click", () => dismiss());
  view.on("past", "input", (event) => {
    const { run } = view.state();
    const at = Number(event.target.value);
    halt({ at: at < run.step ? at : null });
  });
  view.on("text", "input", (event) => {
    const value = event.target.value.toLowerCase().replace(/\s/g, "");
    view.say(isText(value) ? "" : refused(value));
    if (isText(value)) view.set({ text: value });
  });
  view.on("head", "change", (event) => {
    const { off } = view.state();
    const { value, checked } = event.target;
    view.set({ off: checked ? off.filter((head) => head !== value) : [...off, value] });
    if (!view.state().running) measure();
  });
  view.on("measure", "click", () => measure());
  view.on("pace", "change", (event) => view.set({ pace: event.target.value }));
  view.on("seed", "change", (event) => {
    const { bounds } = view.state();
    const seed = Number(event.target.value);
    const fits = Number.isInteger(seed) && seed >= bounds.seed.least && seed <= bounds.seed.most;
    view.say(fits ? "" : "A seed is a whole number from 0 to 999.");
    if (fits) view.set({ seed });
  });
  for (const name of ["rate", "layers", "heads"])
    view.on(name, "change", (event) => view.set({ [name]: Number(event.target.value) }));
  view.on("without", "change", (event) => view.set({ without: event.target.value }));
  view.on("task", "change", (event) => {
    const task = event.target.value;
    view.set({ task, text: SAMPLES[task] });
  });
  // Other settings make another model, from any side.
  view.follow(() => {
    const s = view.state();
    if (!s.run || runOf(s)) return;
    dismiss("The settings were changed.");
    halt({ run: null, at: null, off: [] });
  });
  // A guess plays the picture: it trains.
  view.listen(view.root, "play", () => go());

  const slot = view.root.parentElement;
  /** For tests and the curious: what each step of the training on show has found. */
  Object.defineProperty(slot, "story", {
    configurable: true,
    get: () => runOf(view.state())?.story ?? [],
  });
  /** Trains from nothing as fast as possible. */
  slot.train = async (given = {}) => {
    const { bounds } = view.state();
    const known = ["seed", "layers", "rate", "steps"];
    const unknown = Object.keys(given).filter((name) => !known.includes(name));
    if (unknown.length) throw new TypeError(`train takes ${known.join(", ")}; got ${unknown[0]}`);
    for (const [name, value] of Object.entries(given)) {
      const bound = bounds[name];
      const fits = Array.isArray(bound)
        ? bound.includes(value)
        : typeof value === "number" &&
          value >= bound.least &&
          value <= bound.most &&
          !(bound.whole && value % 1);
      const needed = Array.isArray(bound)
        ? `one of ${bound.join(", ")}`
        : `a ${bound.whole ? "whole number" : "number"} from ${bound.least} to ${bound.most}`;
      if (!fits) throw new TypeError(`${name} must be ${needed}; got ${value}`);
    }
    dismiss();
    view.set({ run: null, at: null, off: [], running: false, ...given });
    begin();
    return new Promise((resolve, reject) => {
      settled = { resolve, reject };
      view.set({ running: true });
      next();
    });
  };
}
