/**
 * Writer: a small language model writes a story, word by word. Beside the story stand the
 * probabilities of a word, the model's and the world's true ones; on its words, what the model
 * attended to or how surprised it was.
 *
 * `session.js` has the model at work, `story.js` what there is to see. Nothing is loaded before a
 * click.
 */
import { buttons, element, html, select, slider, table, textField, tries } from "../kit/markup.js";
import { two } from "../kit/numbers.js";
import { makeSession } from "./session.js";
import { MOST_TOKENS, perplexity, storyOf, wordsOf } from "./story.js";
import { exchange, nearestWord, shown } from "./text.js";

export const layout = "abh-instrument";

const LONGEST = 600; // letters of a beginning
const [FAINT, STRONG] = [0.015, 0.06]; // weights: what is less is not marked; what is more, in ink

/**
 * How far the model is; the story that it has read; whether it writes, and how the story has ended;
 * milliseconds of each word that it has written, [position, milliseconds], with and without cache.
 */
export const pageState = {
  engine: { state: "idle", error: "" },
  story: null,
  writing: false,
  ended: "",
  costs: { on: [], off: [] },
};

export const shared = {
  text: (text) => typeof text === "string" && text.length <= LONGEST,
  written: (text) => typeof text === "string" && text.split(/\s+/).length <= MOST_TOKENS,
  recorded: false,
  kernel: false,
  wanted: false,
  file: false,
};
export const label = () => "A model that writes stories";

/** Beginnings to try, after those that were recorded. */
const BEGINNINGS = [
  ["drinks", "One Monday, Leo woke up happy. Leo met Mei in a cozy café."],
  ["a list", "Ada was a clever teacher. Ada made a list: rice, honey, and salt."],
  ["empty", ""],
];

/** What an earlier word decides, for each kind of dependency of the world. */
const KINDS = {
  name: "which name may come here",
  person: "which person may come here",
  pronoun: "whether she or he is meant here",
  job: "which job may come here",
  thing: "which thing may come here",
  color: "which color may come here",
  drink: "which drink may come here",
  list: "which thing of the list may come here",
  place: "which place may come here",
  day: "which day may come here",
  number: "which number may come here",
  weather: "which weather may come here",
  bank: "which words for a bank may come here",
  agreement: "whether the singular or the plural may come here",
  fact: "which food may come here",
  quote: "that a quotation mark has to come here",
  different: "which one may not come here",
};

const HEADS = [0, 1, 2].flatMap((layer) =>
  [0, 1, 2, 3].map((head) => [4 * layer + head + 1, `layer ${layer + 1}, head ${head + 1}`]),
);

/** A probability in two digits. */
const probabilityText = (p) => (p === 0 ? "0" : p < 0.005 ? "< 0.01" : two(p));

const quoted = (word) => html`<b>${word === "¶" ? "the end" : word}</b>`;

/** Where the reader looks: a word of the story, or the next one. */
const lookedAt = (s, story) =>
  s.at >= 1 && s.at <= story.words.length ? s.at : story.words.length + 1;

/** Numbers that the picture draws, for the tests. */
export function compute(s) {
  const story = storyOf(s);
  const at = lookedAt(s, story);
  return { at, words: story.words, rows: story.rows(at), attention: story.attention(at) };
}

// ------------------------------------------------------------------------------- the picture

function entry(s) {
  const field = textField("text", s.text, LONGEST, { placeholder: "Once there was" });
  const recordings = s.recorded.map(({ text, cargo }) => [cargo, text]);
  const begins = ([name, text]) => [name, { "data-begin": text }, text === s.text];
  const all = recordings.concat(BEGINNINGS).map(begins);
  return html`<div class="entry"><label><span>The story begins</span>${field}</label>
${tries("Beginnings to try", "Try", all)}</div>`;
}

function controls(s, story) {
  const isOver = s.ended !== "";
  const loads = s.engine.state === "idle" && !s.kernel && html` <small>loads 0.5 MB</small>`;
  const main = s.writing ? "Stop" : isOver ? "Write another" : html`Write${loads}`;
  const none = story.words.length === story.begun;
  const button = (name, disabled, text) =>
    element("button", { type: "button", name, disabled }, text);
  return html`<div class="acts"><p class="buttons">${[
    element("button", { type: "button", name: "write", "data-gesture": true }, main),
    button("one", s.writing, "One word"),
    button("back", none, "Back"),
  ]}</p><label class="temperature"><span>Temperature <b
class="number">${s.temperature.toFixed(1)}</b></span>${slider("temperature", s, {
    step: 0.1,
    value: s.temperature,
    "aria-valuetext": `temperature ${s.temperature.toFixed(1)}`,
  })}</label></div>`;
}

/** What there is to say about the model and the text, most urgent first. */
function status(s, story) {
  const { engine } = s;
  if (engine.state === "failed") return engine.error;
  if (engine.state === "loading") return "The model is on its way …";
  if (story.unknown.length) {
    const { vocabulary } = s.story;
    const word = story.unknown[0].slice(0, 24);
    const near = nearestWord(story.unknown[0], vocabulary.slice(1));
    const more = story.unknown.length > 1 && ` (and ${story.unknown.length - 1} more)`;
    return html`The model knows ${vocabulary.length - 1} words and marks, and
<b>${word}</b>${more} is not among them, so it is left out. <button type="button" name="near"
data-wrong="${story.unknown[0]}" data-near="${near}">Use “${near}”</button>`;
  }
  if (story.left) {
    const [word, possible] = [story.words[story.left - 1], story.possible.slice(0, 3)];
    return html`No story of this world goes on with <b>${word}</b> there: it would have to be
${possible.map((each, i) => [i > 0 && " or ", quoted(each)])}${story.possible.length > 3 && " …"}.
From there on the world has no probabilities, so only those of the model are shown.`;
  }
  if (s.ended === "end")
    return "The story has come to its end. Choose a word to see what else was possible.";
  if (s.ended === "full") return "The story is as long as the model can make it.";
  if (s.writing) return "The model writes. Every word is drawn from the bars.";
  if (story.kind === "live") return "Choose a word to see what the model looked at, and why.";
  if (story.kind === "recorded")
    return (
      "These numbers were recorded. Press Write to go on with the story: the page then loads " +
      "the model. Nothing that you type leaves this page."
    );
  return "To go on with this story, press Write: the page then loads the model.";
}

/** How dark a weight is, as a style: its root, so that a small one is seen; none is no style. */
const tint = (weight) => weight > FAINT && `--tint: ${(55 * Math.sqrt(weight)).toFixed(1)}`;

/** One word of the story, as a button; what is marked on it. */
function wordButton(s, story, at, word, marks) {
  const { chosen, attention, deciders } = marks;
  const isChosen = at === chosen;
  const weight = attention[at] ?? 0;
  const [bits] = s.shows === "surprise" ? story.surprise(at) : [null];
  const kinds = [
    at <= story.begun && "begun",
    isChosen && "chosen",
    deciders.includes(at) && "decides",
    at === story.left && "left",
    weight > STRONG && "looked",
  ];
  const style =
    s.shows === "surprise"
      ? bits !== null && `--bits: ${Math.min(bits, 12).toFixed(2)}`
      : tint(weight);
  return element(
    "button",
    {
      type: "button",
      "data-at": at,
      class: kinds.filter(Boolean).join(" ") || false,
      style: style || false,
      tabindex: isChosen || (chosen > story.words.length && at === 1) ? 0 : -1,
      "aria-pressed": String(isChosen),
    },
    word,
  );
}

/** What is marked in the story: where the reader looks, and what was looked at from there. */
function marksOf(s, story) {
  const chosen = lookedAt(s, story);
  const isNext = chosen > story.words.length;
  const step = !isNext && story.step(chosen);
  return {
    chosen,
    attention: s.shows === "attention" ? story.attention(chosen) : [],
    deciders: step?.deciders ?? [],
  };
}

function page(s, story) {
  const marks = marksOf(s, story);
  const groups = []; // a word and the marks that stand close to it: no line ends in between
  shown(story.words).forEach(([before, word], i) => {
    if (before || !groups.length) groups.push([]);
    groups.at(-1).push(wordButton(s, story, i + 1, word, marks));
  });
  const words = groups.map((group) => html` <span class="group">${group}</span>`);
  const start = marks.attention[0] ?? 0;
  const first = element("span", { class: "mark", style: tint(start), "aria-hidden": "true" }, "¶");
  const isNext = marks.chosen > story.words.length;
  const last = element("span", { class: `caret${isNext ? " here" : ""}` });
  return html`<div class="story ${s.shows}" role="group"
aria-label="The story; choose a word" data-part="story"><span
data-key="${story.words.slice(0, story.begun).join(" ")}">${[first, words, last]}</span></div>`;
}

/** What the marks mean, in a sentence. */
function caption(s, story) {
  const choice = select("shows", { attention: "attention", surprise: "surprise" }, s.shows, {
    "aria-label": "What is marked at the words",
  });
  const heads = select("head", [[0, "all heads (mean)"], ...HEADS], s.head, {
    "aria-label": "Whose attention",
    disabled: story.kind !== "live",
  });
  const isAttention = s.shows === "attention";
  return html`<div class="caption"><p class="which"><span>Mark</span> ${choice}
${element("span", { class: isAttention ? false : "ghost" }, "of ", heads)}</p>
<p data-part="meaning">${isAttention ? attended(s, story) : surprised(s, story)}</p></div>`;
}

function attended(s, story) {
  const { chosen, attention, deciders } = marksOf(s, story);
  const words = ["¶", ...story.words];
  const order = attention.map((_, j) => j).sort((a, b) => attention[b] - attention[a]);
  const most = order.slice(0, 3).filter((j) => attention[j] > FAINT);
  const name = (j) => html`<b class="weight">${words[j]}</b> ${two(attention[j])}`;
  const list = most.map((j, i) => [i > 0 && ", ", name(j)]);
  const step = chosen <= story.words.length && story.step(chosen);
  const why =
    deciders.length > 0 &&
    html` In this world, <span class="decides">the underlined
${deciders.length > 1 ? "words decide" : "word decides"}</span>
${KINDS[step.kind] ?? "what may come here"}.`;
  if (!most.length) return "What each word attended to appears here once the model has read it.";
  return html`The model read up to <b>${words[chosen - 1]}</b> and attended most to ${list}.${why}`;
}

function surprised(s, story) {
  const total = (name, pair) =>
    pair &&
    html`${name}: perplexity <b>${two(pair[0])}</b>${
      pair[1] !== null && html` (the world’s own: ${two(pair[1])})`
    }. `;
  const { begun, words } = story;
  const parts = [
    total("The beginning", perplexity(story, 1, begun)),
    total("What follows", perplexity(story, begun + 1, words.length)),
  ];
  if (!parts.some(Boolean)) return "How surprising each word was appears here.";
  const at = lookedAt(s, story);
  const [own, truth] = at <= words.length ? story.surprise(at) : [null, null];
  const one =
    own !== null &&
    html` <b>${words[at - 1]}</b> has ${two(own)}${
      truth !== null && ` (the world’s: ${two(truth)})`
    }.`;
  return html`The bar under a word is its surprise in bits.${one} ${parts}`;
}

/** The probabilities of a word as bars, the model's above the world's. */
function bars(s, story) {
  const at = lookedAt(s, story);
  const rows = story.rows(at);
  const before = at > 1 ? story.words[at - 2] : "";
  const now = story.words[at - 1];
  const mayTake = at > story.begun && story.kind !== "unread";
  const row = ([word, p, truth]) => {
    const isNow = word === now;
    const of = (name) => html`<span class="visually-hidden"> ${name} </span>`;
    const number = html`<span class="numbers"><span>${of("model")}${probabilityText(p)}</span><span
class="true">${truth !== null && [of("world"), probabilityText(truth)]}</span></span>`;
    const content = html`<span class="word">${word === "¶" ? "(the end)" : word}</span><span
class="pair" aria-hidden="true"><i style="--p: ${p.toFixed(4)}"></i>${
      truth !== null && html`<i class="true" style="--p: ${truth.toFixed(4)}"></i>`
    }</span>${number}`;
    return element(
      "button",
      {
        type: "button",
        "data-take": word,
        "data-key": word,
        class: isNow ? "now" : false,
        disabled: !mayTake || isNow || s.writing,
      },
      content,
    );
  };
  const isOld = story.kind === "recorded" && (s.temperature !== 1 || s.top_k || s.top_p < 1);
  const title = before
    ? html`What comes after <q>${before}</q>?`
    : html`What does a story begin with?`;
  const empty = html`<p class="empty">The probabilities appear here once the model has read the
story.</p>`;
  return html`<section class="bars" aria-label="Probabilities of a word">
<p class="title">${title}</p>
<p class="legend"><span><i></i> the model</span>
<span><i class="true"></i> the world, exactly</span></p>
<div data-part="bars">${rows.length ? rows.map(row) : empty}</div>
<p class="hint">${
    isOld
      ? "These were recorded at temperature 1. They follow it once the model is here."
      : rows.length > 1 && mayTake && "Tap another word to go on with it."
  }</p>
</section>`;
}

// ------------------------------------------------------------------------------- the settings

const TOP_K = [
  [0, "all words"],
  [1, "1 word"],
  [2, "2 words"],
  [5, "5 words"],
  [20, "20 words"],
];

function settings(s) {
  const known = TOP_K.some(([k]) => k === s.top_k);
  const choices = known ? TOP_K : [...TOP_K, [s.top_k, `${s.top_k} words`]];
  return html`<details class="settings"><summary>More settings, and what the cache saves</summary>
<div class="more"><label><span>Top-k: words to draw from</span>
${select("top_k", choices, s.top_k)}</label>
<label><span>Top-p: the most probable words, up to a total of
<b class="number">${two(s.top_p)}</b></span>
${slider("top_p", s, { step: 0.05, value: s.top_p })}</label>
<label><span>Seed of the random numbers</span>${element("input", {
    type: "number",
    name: "seed",
    min: 0,
    max: 9999,
    step: 1,
    value: s.seed,
  })}</label>
<label class="check"><span>${element("input", {
    type: "checkbox",
    name: "cache",
    checked: s.cache,
  })} Keep keys and values (cache)</span></label>
${costs(s)}</div></details>`;
}

const [WIDE, TALL] = [320, 120];

/** Milliseconds of each word that was written, against its position, with and without a cache. */
function costs({ costs: { on, off } }) {
  const all = [...on, ...off];
  const most = Math.max(10, ...all.map(([, spent]) => spent));
  const last = Math.max(40, ...all.map(([n]) => n));
  const [x, y] = [(n) => 30 + (n / last) * (WIDE - 40), (t) => 100 - (t / most) * 80];
  const dots = (points, kind) =>
    points.map(([n, spent]) =>
      element("circle", { cx: x(n), cy: y(spent), r: 2, class: `dot ${kind}` }),
    );
  const median = (points) => {
    const sorted = points.map(([, spent]) => spent).sort((a, b) => a - b);
    return sorted.length ? `${sorted[sorted.length >> 1].toFixed(1)} ms` : "not measured yet";
  };
  const text = (content, at, more) => element("text", { ...at, ...more }, content);
  return html`<figure class="costs"><svg viewBox="0 0 ${WIDE} ${TALL}" role="img"
aria-label="Milliseconds a word against its position">${[
    element("path", { d: `M30 18V100H${WIDE - 8}`, class: "axis" }),
    text(`${most.toFixed(0)} ms`, { x: 0, y: 12 }),
    text("0", { x: 18, y: 104 }),
    text(`word ${last}`, { x: WIDE - 8, y: 117 }, { "text-anchor": "end" }),
    dots(off, "off"),
    dots(on, "on"),
  ]}</svg><figcaption>Time for a word, median: <span class="on">with the cache
${median(on)}</span>, <span class="off">without it ${median(off)}</span>. Without a cache, the model
reads the whole story again for each new word.</figcaption></figure>`;
}

/** The story and its numbers for those who do not see them. */
function spoken(s, story) {
  const at = lookedAt(s, story);
  const text = shown(story.words).flat().join("");
  const rows = story
    .rows(at)
    .map(([word, p, truth]) => [word, two(p), truth === null ? "unknown" : two(truth)]);
  const names = ["word", "model", "world"];
  return html`<div class="visually-hidden"><p>${text}</p>${table(
    `Probabilities of word ${at}`,
    names,
    rows,
  )}</div>`;
}

export function picture(s) {
  const story = storyOf(s);
  return [
    entry(s),
    controls(s, story),
    html`<p class="status" role="status" data-part="status">${status(s, story)}</p>`,
    page(s, story),
    caption(s, story),
    bars(s, story),
    settings(s),
    buttons(),
    () => spoken(s, story),
  ];
}

/** Runnable Python for what is on the screen. NumPy draws other numbers than the page does. */
export function code(s) {
  const { text, written, temperature, top_k: topK, top_p: topP, seed } = s;
  return [
    "import numpy as np",
    "from attnlib import models, softmax",
    "from attnlib.world import split",
    "",
    "model = models.writer()",
    `begun = split(${JSON.stringify(text)}, model.vocabulary)`,
    `written = ${JSON.stringify(written)}.split()`,
    "words = [word for word in [*begun, *written] if word in model.vocabulary]",
    "tokens = [0, *(model.vocabulary.index(word) for word in words)]",
    "probabilities = softmax(model(tokens))[-1]  # of the next word",
    "for token in probabilities.argsort()[::-1][:5]:",
    "    print(model.vocabulary[token], probabilities[token].round(3))",
    "more = model.write(",
    `    tokens, 20, temperature=${temperature}, top_k=${topK || "None"}, top_p=${topP},`,
    `    rng=np.random.default_rng(${seed}),`,
    ")",
    "print(model.decode(more))",
  ];
}

// --------------------------------------------------------------------------------- the page

export function live(view) {
  const session = makeSession(view);
  const begin = (text, more = {}) => {
    session.stop();
    view.set({ text, written: "", at: 0, ended: "", ...more });
  };
  view.follow(() => session.refresh());
  view.on("text", "input", (event) => begin(event.target.value));
  view.on("text", "keydown", (event) => event.key === "Enter" && session.write(Infinity));
  view.listen(view.root, "click", ({ target }) => {
    const chip = target.closest("[data-begin]");
    const word = target.closest("[data-at]");
    const row = target.closest("[data-take]");
    if (chip) {
      const { begin: text } = chip.dataset;
      const known = view.state().recorded.find((one) => one.text === text);
      begin(text, known && { written: known.written, at: known.at });
    }
    if (word) {
      session.stop();
      const at = Number(word.dataset.at);
      view.set({ at: at === view.state().at ? 0 : at });
    }
    if (row) session.take(row.dataset.take, view.state().at);
  });
  view.on("write", "click", () => {
    const { writing, ended, seed } = view.state();
    if (writing) return session.stop();
    if (ended) view.set({ written: "", seed: (seed + 1) % 10000, at: 0 });
    session.write(Infinity);
  });
  view.on("one", "click", () => {
    view.set({ at: 0 });
    session.write(1);
  });
  view.on("back", "click", () => {
    session.stop();
    const words = wordsOf(view.state().written);
    view.set({ written: words.slice(0, -1).join(" "), at: 0, ended: "" });
  });
  view.on("near", "click", (_, { dataset: { wrong, near } }) => {
    begin(exchange(view.state().text, wrong, near));
  });
  for (const name of ["temperature", "top_p"])
    view.on(name, "input", (event) => view.set({ [name]: Number(event.target.value) }));
  view.on("seed", "change", (event) => {
    const seed = Math.round(Number(event.target.value));
    if (seed >= 0 && seed <= 9999) view.set({ seed });
  });
  for (const name of ["top_k", "head"])
    view.on(name, "change", (event) => view.set({ [name]: Number(event.target.value) }));
  view.on("shows", "change", (event) => view.set({ shows: event.target.value }));
  view.on("cache", "change", (event) => view.set({ cache: event.target.checked }));
  view.on("reset", "click", () => {
    session.stop();
    session.refresh(0);
  });
  // The arrow keys walk from word to word.
  view.listen(
    self,
    "keydown",
    (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const word = event.target.closest?.("[data-at]");
      if (!step || !word || !view.root.contains(word)) return;
      const next = view.root.querySelector(`[data-at="${Number(word.dataset.at) + step}"]`);
      if (!next) return;
      event.preventDefault();
      view.set({ at: Number(next.dataset.at) });
      next.focus();
    },
    { capture: true },
  );
  /** For tests and the curious: the model writes after a text. */
  view.root.parentElement.write = session.writeFor;
}
