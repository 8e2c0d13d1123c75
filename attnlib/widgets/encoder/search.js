/**
 * Encoder, the view "search": sentences in two orders, by how close in meaning they are to a
 * question and by the words that they share with it.
 */
import { element, html, table } from "../kit/markup.js";
import { dot } from "../kit/numbers.js";
import { cosineText, keyOf, DIGITS } from "./reading.js";

/** The words of a text, small, each once, in order. */
export const wordsOf = (sentence) =>
  Array.from(new Set(sentence.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []));

/**
 * For each sentence the words that it shares with a question, and its score: a shared word counts
 * ln(N / n_w), where n_w of the N sentences have it. as `by_words` in views.py.
 */
export function byWords(question, library) {
  const have = library.map((sentence) => new Set(wordsOf(sentence)));
  const worth = (word) => Math.log(library.length / have.filter((words) => words.has(word)).length);
  const questionWords = wordsOf(question);
  return have.map((words) => {
    const common = questionWords.filter((word) => words.has(word));
    return { common, score: common.reduce((sum, word) => sum + worth(word), 0) };
  });
}

/** The place of each score among all, the largest at 0; ties stand as they come. */
export function placesOf(scores) {
  const rounded = scores.map((score) => Math.round(score * 1e9));
  const order = rounded.map((_, i) => i).sort((a, b) => rounded[b] - rounded[a] || a - b);
  return rounded.map((_, i) => order.indexOf(i));
}

/** Vectors of length 1 from what was recorded: `many` of them, a digit for each number. */
export function vectorsOf(digits, many) {
  const all = Array.from(digits, (digit) => DIGITS.indexOf(digit) - 32);
  const d = all.length / many;
  return Array.from({ length: many }, (_, i) => {
    const steps = all.slice(i * d, (i + 1) * d);
    const size = Math.hypot(...steps);
    return Float32Array.from(steps, (x) => x / size);
  });
}

/** A cosine for each sentence, null where the question or the sentence has not been read. */
export function cosinesFor(question, sentences, { readings, live }) {
  const recorded = readings.filter((one) => one.sentences);
  const read = (text) => live?.[keyOf({ text })]?.embedding ?? vectorIn(recorded, text);
  const questionVector = read(question);
  return sentences.map((sentence) => {
    for (const { sentences: library, questions } of recorded) {
      const i = library.indexOf(sentence);
      if (i >= 0 && questions[question]) return questions[question][i] / 10000;
    }
    const vector = questionVector && read(sentence);
    return vector ? dot(questionVector, vector) : null;
  });
}

const known = new WeakMap();

/** The vector of a sentence that was recorded, or undefined. */
function vectorIn(recorded, text) {
  for (const one of recorded) {
    const i = one.vectors ? one.sentences.indexOf(text) : -1;
    if (i < 0) continue;
    if (!known.has(one)) known.set(one, vectorsOf(one.vectors, one.sentences.length));
    return known.get(one)[i];
  }
}

/**
 * The question whose order is shown: the one that is asked, or until it has been read the one
 * before.
 */
function questionOf(s, { last }) {
  const found = (question) =>
    cosinesFor(question, s.sentences, s).some((cosine) => cosine !== null);
  const before = [
    last?.[0]?.text,
    s.asked,
    ...s.readings.flatMap(({ questions = {} }) => Object.keys(questions)),
  ];
  return (
    [s.question, ...before].find((question) => question !== undefined && found(question)) ??
    s.question
  );
}

/** Both scores of each sentence, and its places in both orders. */
export function standing(s, now) {
  const answered = questionOf(s, now);
  const cosines = cosinesFor(answered, s.sentences, s);
  const words = byWords(s.question, s.sentences);
  const scores = [cosines.map((cosine) => cosine ?? -Infinity), words.map(({ score }) => score)];
  return { answered, cosines, words, places: scores.map(placesOf) };
}

// ------------------------------------------------------------------------------- the picture

const LETTERS = { wide: 34, narrow: 18 }; // of a line of a card, about

/** A sentence with the words that it shares marked. */
function marked(sentence, common) {
  const parts = sentence.split(/([\p{L}\p{N}]+)/u);
  return parts.map((part, i) =>
    i % 2 && common.includes(part.toLowerCase()) ? element("b", {}, part) : part,
  );
}

/**
 * The two orders as columns, and lines from each sentence's place in one to its place in the other.
 */
function ranking(
  { sentences, sentence: lit, question },
  { answered, cosines, words },
  [left, right],
) {
  const n = sentences.length;
  const best = cosines.reduce(
    (top, cosine, i) => (cosine !== null && cosine > (cosines[top] ?? -2) ? i : top),
    0,
  );
  const kindOf = (i) =>
    [i === best && "best", i === lit && "lit", !words[i].common.length && "none"].filter(Boolean);
  const y = (place) => `--y: ${place.toFixed(3)}`;
  const join = (i) => {
    const [from, to] = [left[i] + 0.5, right[i] + 0.5].map((at) => at.toFixed(3));
    return element("path", {
      d: `M0 ${from}C55 ${from} 45 ${to} 100 ${to}`,
      class: kindOf(i).join(" ") || false,
    });
  };
  const meaning = (i) =>
    element(
      "button",
      {
        type: "button",
        class: ["card meaning", ...kindOf(i)].join(" "),
        "data-sentence": i,
        "aria-pressed": String(i === lit),
        style: y(left[i]),
      },
      element("span", {
        class: "bar",
        style: `--share: ${Math.max(cosines[i] ?? 0, 0).toFixed(3)}`,
      }),
      element("span", { class: "text" }, sentences[i]),
      element("span", { class: "score" }, cosineText(cosines[i])),
    );
  const shared = (i) =>
    element(
      "div",
      { class: ["card shared", ...kindOf(i)].join(" "), "data-sentence": i, style: y(right[i]) },
      element("span", { class: "score" }, cosineText(words[i].score)),
      element(
        "span",
        { class: "text", "data-key": words[i].common.join() },
        marked(sentences[i], words[i].common),
      ),
      element(
        "span",
        { class: "common", "data-key": words[i].common.join() },
        words[i].common.join(", ") || "no word",
      ),
    );
  const all = sentences.map((_, i) => i);
  const front = (i) => Number(i === best) + 2 * Number(i === lit);
  const joins = {
    viewBox: `0 0 100 ${n}`,
    preserveAspectRatio: "none",
    class: "joins",
    "aria-hidden": "true",
  };
  const longest = Math.max(...sentences.map((one) => one.length));
  const lines = (letters, least) => Math.min(Math.max(Math.ceil(longest / letters), least), 5);
  return html`<div class="ranks${answered === question ? "" : " stale"}" data-part="ranks"
style="--n: ${n}; --wide: ${lines(LETTERS.wide, 2)}; --narrow: ${lines(LETTERS.narrow, 2)}">
<p class="column">By meaning</p><p class="column">By words${
    words.every(({ common }) => !common.length) && html`<span class="empty">: nothing</span>`
  }</p>
<div class="cards" data-key="${n}">${all.map(meaning)}</div>
${element("svg", joins, [...all].sort((a, b) => front(a) - front(b)).map(join))}
<div class="cards" data-key="${n}">${all.map(shared)}</div></div>`;
}

/** In words: what both orders find, or what they say of the sentence that is pointed at. */
function telling(s, { cosines, words, places, answered }) {
  const { sentences, sentence: lit } = s;
  if (!sentences.length) return "There is no sentence to search.";
  if (answered !== s.question) return html`By meaning this is still the order of “${answered}”.`;
  const first = places[0].indexOf(0);
  const i = lit >= 0 && lit < sentences.length ? lit : first;
  const { common, score } = words[i];
  const level = words.filter((one) => Math.abs(one.score - score) < 1e-9).length;
  const shares = common.length
    ? html`It shares ${common.map((word, k) => html`${k ? ", " : ""}<b>${word}</b>`)}:
${cosineText(score)}${level > 1 && html`, as ${level - 1} other${level > 2 ? "s do" : " does"}`}.`
    : "It shares no word with the question.";
  if (cosines[i] === null) return html`“${sentences[i]}” has not been read yet. ${shares}`;
  return html`“${sentences[i]}” has the cosine
<b class="number">${cosineText(cosines[i])}</b>, place
${places[0][i] + 1} of ${sentences.length} by meaning. ${shares}`;
}

const TRIES = [
  ["late for the boat", "Why were we late for the boat?"],
  ["bake a cake", "How do I start to bake a cake?"],
  ["loans", "Loans have become expensive."],
  ["paintings", "Where can I see paintings on Sundays?"],
];
const HEAD = ["sentence", "place by meaning", "cosine", "place by words", "score"];
const MOST = 24; // sentences
const LONGEST = 200; // letters

/** The lines of a text, without empty ones; or a string that says why they cannot be had. */
export function linesOf(text) {
  const lines = text
    .split("\n")
    .map((one) => one.trim())
    .filter(Boolean);
  if (lines.length < 2) return "Write at least two sentences, one a line.";
  if (lines.length > MOST) return `${MOST} sentences are as many as fit; here are ${lines.length}.`;
  if (lines.some((one) => one.length > LONGEST))
    return `A sentence may have ${LONGEST} letters at most.`;
  return lines;
}

export const search = {
  label: "A search by meaning, beside a search by words",
  reads: "Read my question",
  pageState: { sentence: -1, wrote: 0, asked: "" },

  fields: () => [{ name: "question", label: "A question", tries: TRIES }],

  wants(s) {
    const recorded = s.readings.filter((one) => one.sentences);
    const known = ({ sentences, questions }) =>
      questions[s.question] && s.sentences.every((text) => sentences.includes(text));
    if (recorded.some(known)) return [];
    const missing = s.sentences.filter((text) => !vectorIn(recorded, text));
    return [s.question, ...missing].map((text) => ({ text, hidden: [] }));
  },

  fits: () => "",

  pose: (s) => standing(s, { last: s.last }).places,

  picture(s, now) {
    const found = standing(s, now);
    return [
      ranking(s, found, s.moving ?? found.places),
      html`<p class="said both" role="status"
data-part="said">${element(
        "span",
        { "data-key": `${s.sentence},${found.answered},${s.question}` },
        telling(s, found),
      )}</p>`,
      html`<details class="library"><summary>Sentences of your own</summary><label><span>One a
line</span>
<textarea name="sentences" rows="${Math.max(s.sentences.length, 4)}" spellcheck="false"
autocomplete="off" data-key="${s.wrote}">${s.sentences.join("\n")}</textarea></label></details>`,
      html`<p class="note">By meaning: the cosine of the sentence’s vector and the question’s
vector. By words: each word that both have counts ln(N ÷ n), where n of the N sentences have it, so
that “the” counts little. Ties keep the order in which you typed them.</p>`,
      () =>
        html`<div class="visually-hidden" data-part="table">${table(
          "Each sentence in both orders",
          HEAD,
          s.sentences.map((text, i) => [
            text,
            found.places[0][i] + 1,
            cosineText(found.cosines[i]),
            found.places[1][i] + 1,
            cosineText(found.words[i].score),
          ]),
        )}</div>`,
    ];
  },

  code: ({ question, sentences }) => [
    "import re",
    "",
    "import numpy as np",
    "from attnlib import models",
    "",
    `question = ${JSON.stringify(question)}`,
    "sentences = [",
    ...sentences.map((sentence) => `    ${JSON.stringify(sentence)},`),
    "]",
    "minilm = models.load_minilm()",
    "cosines = minilm.embed(sentences) @ minilm.embed([question])[0]",
    "",
    "def words(text):",
    '    return set(re.findall(r"[^\\W_]+", text.lower()))',
    "",
    "have = [words(sentence) for sentence in sentences]",
    "worth = {w: np.log(len(have) / sum(w in h for h in have)) for h in have for w in h}",
    "scores = np.array([sum(worth[w] for w in words(question) & h) for h in have])",
    "for i in np.argsort(-cosines):",
    '    print(f"{cosines[i]:5.2f} {scores[i]:5.2f}  {sentences[i]}")',
  ],

  live(view) {
    const light = (event) => {
      const card = event.target.closest?.("[data-sentence]");
      const sentence = card ? Number(card.dataset.sentence) : -1;
      if (sentence !== view.state().sentence) view.set({ sentence });
    };
    for (const touch of ["pointerover", "focusin", "click"]) view.on("ranks", touch, light);
    view.listen(view.root, "pointerleave", light);
    view.on("sentences", "input", (event) => {
      const lines = linesOf(event.target.value);
      view.say(typeof lines === "string" ? lines : "");
      if (typeof lines !== "string") view.set({ sentences: lines, sentence: -1 });
    });
    view.follow(() => {
      const s = view.state();
      if (cosinesFor(s.question, s.sentences, s).some((cosine) => cosine !== null))
        view.set({ asked: s.question });
    });
    view.on("reset", "click", () => view.set({ wrote: view.state().wrote + 1 }));
  },
};
