/**
 * Inspector: a text, read by the model that writes, in one of three scenes: its heads, which a
 * reader can take away or exchange; the ledger of a logit; or the probabilities after each layer.
 *
 * `reading.js` has the numbers. Nothing is loaded before a click.
 */
import { buttons, element, html, select, table, textField, tries } from "../kit/markup.js";
import { two } from "../kit/numbers.js";
import { loadModel } from "../writer/loading.js";
import { shown, split } from "../writer/text.js";
import { openText, readingOf } from "./reading.js";

export const layout = "abh-instrument";

const LONGEST = 400; // letters of a text
const [FAINT, N_LAYERS, N_HEADS] = [0.015, 3, 4];
const HOWS = { zero: "zeros", mean: "its mean", swap: "what it passes on in another text" };
const WHERES = { all: "at every word", last: "at the last word only" };

/** How far the model is, and the text that it has read (reading.js). */
export const pageState = { engine: { state: "idle", error: "" }, opened: null };

const isText = (text) => typeof text === "string" && text.length <= LONGEST;
export const shared = {
  text: isText,
  other: isText,
  word: isText,
  against: isText,
  recorded: false,
  means: false,
  kernel: false,
  wanted: false,
  file: false,
};

const LABELS = {
  heads: "The heads of the model that writes, and what happens without them",
  ledger: "The ledger of a logit",
  lens: "The probabilities after each layer",
};
export const label = ({ scene }) => LABELS[scene];

/** A probability with three digits: here small changes count. */
const three = (p) => (p < 0.0005 ? "0" : p.toFixed(3));
function signed(x) {
  const digits = Math.abs(x).toFixed(2);
  if (digits === "0.00") return digits;
  return `${x < 0 ? "−" : "+"}${digits}`;
}
const nameOf = (head) => `layer ${Math.floor(head / N_HEADS) + 1}, head ${(head % N_HEADS) + 1}`;
const short = (head) => `${Math.floor(head / N_HEADS) + 1}.${(head % N_HEADS) + 1}`;
const headsIn = (away) =>
  Array.from({ length: N_LAYERS * N_HEADS }, (_, head) => head).filter((h) => (away >> h) & 1);

/** Numbers that the picture draws, for the tests. */
export function compute(s) {
  const read = readingOf(s);
  const { words, word, weights, lens, ledger } = read;
  return { words, word, weights, lens, ledger, rows: read.rows(s) };
}

// ------------------------------------------------------------------------------- the text

/** How dark a weight is, as a style. */
const tint = (weight) => weight > FAINT && `--tint: ${(42 * Math.sqrt(weight)).toFixed(1)}`;

/** The text, with what a head attends to from its last token, and the word that may follow. */
function page(s, read) {
  const words = read?.words ?? split(s.text, new Set());
  const row = (s.head && read?.weights[s.head - 1]) || [];
  const groups = []; // a word and the marks that stand close to it: no line ends in between
  shown(words).forEach(([before, word], i) => {
    if (before || !groups.length) groups.push([]);
    groups.at(-1).push(element("span", { style: tint(row[i + 1] ?? 0) }, word));
  });
  const first = element("span", { class: "mark", style: tint(row[0] ?? 0) }, "¶");
  const next = read && html` <span class="next">${read.word}</span>`;
  const all = groups.map((group) => html` <span class="group">${group}</span>`);
  // The words of another text are other words, and have not moved.
  return html`<p class="text" data-part="text"><b data-key="${words.join(" ")}">${first}${all}${
    next
  }</b></p>`;
}

function entry(s) {
  const field = textField("text", s.text, LONGEST);
  const examples = s.recorded.map(({ name, text }) => [
    name,
    { "data-example": name },
    text === s.text,
  ]);
  const isIdle = s.engine.state !== "ready";
  const loads = !s.kernel && html` <small>loads 0.5 MB</small>`;
  const open =
    isIdle &&
    element(
      "button",
      { type: "button", name: "open", disabled: s.engine.state === "loading" },
      "Open the model",
      loads,
    );
  return html`<div class="entry"><label><span>The text that the model reads</span>${field}</label>
${tries("Texts to try", "Try the word", examples, open)}</div>`;
}

/** What there is to say about the model and the text, most urgent first. */
function status(s, read) {
  const { engine } = s;
  if (engine.state === "failed") return engine.error;
  if (engine.state === "loading") return "The model is on its way …";
  if (!read) return "To read a text of your own, open the model. What you type stays in this page.";
  if (read.unknown.length) {
    const [wrong] = read.unknown;
    return html`The model does not know <b>${wrong}</b>, so it leaves the word out. The nearest word
that it knows is <b>${read.near}</b>.`;
  }
  if (read.kind === "recorded")
    return "This was recorded. Open the model for a text of your own and for all other settings.";
  return "The model has read this text in your browser. What you type stays in this page.";
}

const statusOf = (s, read) =>
  html`<p class="status" role="status" data-part="status">${status(s, read)}</p>`;

// ------------------------------------------------------------------------------- the heads

/** A token; a mark of punctuation alone would be read as one of the sentence's own. */
const marked = (token) => (/^[.,:;?!]$/.test(token) ? `“${token}”` : token);

/** A head of the list: where it looks most, what it adds, what happens without it. */
function headRow(s, read, head) {
  const isAway = Boolean((s.away >> head) & 1);
  const weights = read?.weights[head];
  const most = weights?.indexOf(Math.max(...weights));
  const names = read && ["¶", ...read.words];
  const part = 1 + head + Math.floor(head / N_HEADS); // in the ledger, after the networks
  const adds = read?.ledger?.parts[part];
  const alone = read?.rows({ away: 1 << head, how: s.how, where: s.where });
  const left = alone?.find(([word]) => word === read.word)?.[1];
  const unknown = html`<span class="unknown">–</span>`;
  const toggle = element("input", {
    type: "checkbox",
    name: "toggle",
    value: head,
    checked: isAway,
    "aria-label": `change what ${nameOf(head)} passes on`,
    "data-gesture": head === 5,
  });
  const look = element(
    "button",
    {
      type: "button",
      "data-head": head + 1,
      "aria-pressed": String(s.head === head + 1),
      "aria-label": `${short(head)}: mark where ${nameOf(head)} looks`,
    },
    short(head),
  );
  const bar = html`<i style="--w: ${(weights?.[most] ?? 0).toFixed(3)}"></i>`;
  return html`<tr class="${isAway ? "away" : "kept"}"><td><label
class="switch">${toggle}</label></td>
<th scope="row">${look}</th><td class="looks">${
    weights ? html`<span><b>${marked(names[most])}</b> ${two(weights[most])}</span>${bar}` : unknown
  }</td><td class="number">${adds === undefined ? unknown : signed(adds)}</td><td class="number">${
    left === undefined ? unknown : three(left)
  }</td></tr>`;
}

/** What the list of heads says at the top of its last column, and of its first. */
const VERBS = { zero: "without it", mean: "with its mean", swap: "swapped" };
const MARKS = { zero: "off", mean: "mean", swap: "swap" };

function heads(s, read) {
  const list = Array.from({ length: N_LAYERS * N_HEADS }, (_, head) => head).filter(
    (head) => Math.floor(head / N_HEADS) === s.layer - 1,
  );
  const word = read?.word ?? "the word";
  const which = select(
    "layer",
    [
      [1, "layer 1"],
      [2, "layer 2"],
      [3, "layer 3"],
    ],
    s.layer,
    { "aria-label": "Which heads are listed" },
  );
  return html`<div class="heads" data-part="heads"><p class="tries which"><span>The heads of</span>
${which}</p><table><thead><tr><th scope="col">${MARKS[s.how]}</th><th scope="col">head</th>
<th scope="col">looks most at</th><th scope="col">adds to <em>${word}</em></th><th scope="col">p
${VERBS[s.how]}</th></tr></thead><tbody>${list.map((head) =>
    headRow(s, read, head),
  )}</tbody></table></div>`;
}

/** What the chosen heads pass on instead. */
function instead(s, read) {
  const how = select("how", HOWS, s.how, { "aria-label": "What the heads that are off pass on" });
  const where = select("where", WHERES, s.where, { "aria-label": "Where they do so" });
  // Room is kept for it, so that nothing moves.
  const kind = `other${s.how === "swap" ? "" : " ghost"}`;
  const field = html`<label class="${kind}"><span>The other text (the same number of
words)</span>${element("input", {
    type: "text",
    name: "other",
    value: s.other,
    maxlength: LONGEST,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    disabled: s.how !== "swap",
  })}</label>`;
  return html`<div class="instead"><p class="tries which"><span>A chosen head passes
on</span> ${how}
${where}</p>${field}<p class="wrong" role="status"
data-part="wrong">${mismatch(s, read)}</p></div>`;
}

/** What is wrong with the other text of a swap. */
function mismatch(s, read) {
  if (s.how !== "swap" || !read?.other) return "";
  const { n, unknown } = read.other;
  if (unknown.length) return html`The model does not know <b>${unknown[0]}</b>.`;
  if (n === read.words.length) return "";
  return `A swap needs two texts of the same length. This text has ${read.words.length} words and \
marks, the other one has ${n}, so nothing is swapped.`;
}

/** What has happened to the chosen heads. */
const DONE = { zero: "off", mean: "replaced by the mean", swap: "swapped" };

/** The probabilities before and after, as bars. */
function result(s, read) {
  const rows = read?.rows(s);
  const off = headsIn(s.away);
  const list = off.map(short);
  const title = !off.length
    ? "All heads as they are"
    : html`Head${off.length > 1 && "s"} ${list.join(", ")} ${DONE[s.how]}`;
  const most = Math.max(...(rows ?? []).flatMap(([, after, before]) => [after, before]));
  const bar = (p, kind) => element("i", { class: kind, style: `--p: ${(p / most).toFixed(4)}` });
  const row = ([word, after, before]) =>
    html`<tr><th scope="row">${word === "¶" ? "(the end)" : word}</th><td class="pair"
aria-hidden="true">${bar(before, "before")}${bar(after, "after")}</td><td class="number"><span
class="before">${three(before)}</span> <b>${three(after)}</b></td></tr>`;
  const missing =
    read && !rows
      ? "This set of heads was not recorded. Open the model below, and it is computed here."
      : "The probabilities appear here once the model has read the text.";
  return html`<div class="result" role="group" aria-label="Probabilities of the next word"><p
class="title">${title}</p><p class="legend"><span><i class="before"></i> before</span>
<span><i></i> after</span></p><div data-part="result">${
    rows
      ? html`<table><tbody>${rows.map(row)}</tbody></table>`
      : html`<p class="empty">${missing}</p>`
  }</div></div>`;
}

// ------------------------------------------------------------------------------- the ledger

/** The parts of a ledger: [name, what it adds, the head from 0 or -1]. */
function partsOf({ parts }) {
  const names = [["embedding", -1]];
  for (let l = 0; l < N_LAYERS; l++) {
    for (let h = 0; h < N_HEADS; h++) names.push([nameOf(l * N_HEADS + h), l * N_HEADS + h]);
    names.push([`layer ${l + 1}, feed-forward`, -1]);
  }
  return names.map(([name, head], i) => [name, parts[i], head]);
}

/** What the longest bar shows: one far longer than all others has a gap, so that those are seen. */
function longest(values) {
  const [most, second = most] = values.map(Math.abs).sort((a, b) => b - a);
  return most > 4 * second ? 2 * second : most;
}

/** A bar to the right of the middle for what adds, and to the left for what takes away. */
function balance(x, most) {
  const length = Math.abs(x) / most;
  const kind = `balance ${x < 0 ? "less" : "more"}${length > 1 ? " cut" : ""}`;
  return html`<span class="${kind}" aria-hidden="true"><i
style="--x: ${Math.min(length, 1).toFixed(3)}"></i></span>`;
}

function chooser(s, read) {
  const choices = (own, first) => {
    const names = [...new Set([...(read?.choices ?? []), own].filter(Boolean))];
    return [...first, ...names.map((name) => [name, name])];
  };
  const known = s.recorded.find(({ text }) => text === s.text);
  const minus = choices(s.against, [["", "nothing"]]);
  if (known && !minus.some(([name]) => name === known.against))
    minus.push([known.against, known.against]);
  const word = select("word", choices(read?.word, []), read?.word, {
    "aria-label": "Whose logit",
    "data-gesture": true,
  });
  const against = select("against", minus, s.against, { "aria-label": "Less the logit of" });
  return html`<p class="tries which chooser"><span>The logit of</span> ${word} <span>less that
of</span>
${against}</p>`;
}

function ledger(s, read) {
  const found = read?.ledger;
  if (!found)
    return html`<div class="ledger" data-part="ledger"><p class="empty">${
      read
        ? "The ledger of this word was not recorded. Open the model below, and it is computed here."
        : "The ledger appears here once the model has read the text."
    }</p></div>`;
  const parts = partsOf(found);
  const most = longest(parts.map(([, x]) => x));
  const isCut = parts.some(([, x]) => Math.abs(x) > most);
  const sum = parts.reduce((total, [, x]) => total + x, 0);
  const row = ([name, x, head]) => {
    const isOpen = head >= 0 && s.head === head + 1;
    const first =
      head < 0
        ? html`<span class="name">${name}</span>`
        : element(
            "button",
            {
              type: "button",
              "data-head": head + 1,
              "aria-expanded": String(isOpen),
            },
            name,
          );
    return html`<tr class="${isOpen ? "open" : "shut"}"><th scope="row">${first}</th><td>${balance(
      x,
      most,
    )}</td><td class="number">${signed(x)}</td></tr>`;
  };
  return html`<div class="ledger" data-part="ledger"><table><tbody>${parts.map(
    row,
  )}</tbody><tfoot><tr><th scope="row">sum${s.against ? "" : ": the logit"}</th><td></td><td
class="number"><b>${signed(sum)}</b></td></tr></tfoot></table>${
    isCut && html`<p class="note">The bar with a gap is longer than it is drawn.</p>`
  }</div>`;
}

/** An opened head: from which tokens its number came. */
function opened(s, read) {
  const from = read?.ledger?.byToken;
  if (!from) return html`<div class="opened" data-part="opened"></div>`;
  const head = s.head - 1;
  if (head < 0)
    return html`<div class="opened" data-part="opened"><p class="empty">Tap a head to open its
number: it is a sum over the tokens that the head looked at.</p></div>`;
  const [names, weights, adds] = [["¶", ...read.words], read.weights[head], from[head]];
  const order = names.map((_, j) => j).sort((a, b) => Math.abs(adds[b]) - Math.abs(adds[a]));
  const top = new Set(order.slice(0, 5));
  const byWeight = names.map((_, j) => j).sort((a, b) => weights[b] - weights[a]);
  for (const j of byWeight.slice(0, 2)) top.add(j);
  const list = [...top].sort((a, b) => Math.abs(adds[b]) - Math.abs(adds[a]));
  const rest = names.reduce((sum, _, j) => (top.has(j) ? sum : sum + adds[j]), 0);
  const sum = adds.reduce((total, each) => total + each, 0);
  const value = (j) => (weights[j] < 0.0005 ? "–" : signed(adds[j] / weights[j]));
  const row = (j) => html`<tr><th scope="row">${names[j]} <small>${j}</small></th><td
class="number weight">${two(weights[j])}</td><td class="number value">${value(j)}</td><td
class="number">${signed(adds[j])}</td></tr>`;
  return html`<div class="opened" data-part="opened"><p class="title">${nameOf(head)}</p><table>
<thead><tr><th scope="col">token</th><th scope="col">weight</th><th scope="col">× what its value
adds</th><th scope="col">= part</th></tr></thead><tbody>${list.map(row)}<tr><th
scope="row">all others</th><td></td><td></td><td class="number">${signed(rest)}</td></tr></tbody>
<tfoot><tr><th scope="row">sum</th><td></td><td></td><td class="number"><b>${signed(
    sum,
  )}</b></td></tr></tfoot></table></div>`;
}

// ------------------------------------------------------------------------------- the lens

const STAGES = ["the embedding", "layer 1", "layer 2", "layer 3"];

function lens(read) {
  if (!read)
    return html`<div class="stages" data-part="lens"><p class="empty">The probabilities appear here
once the model has read the text.</p></div>`;
  const row = ([word, p]) =>
    html`<tr class="${word === read.word ? "now" : "other"}"><th scope="row">${
      word === "¶" ? "(the end)" : word
    }</th><td aria-hidden="true"><i style="--p: ${p.toFixed(4)}"></i></td><td
class="number">${three(p)}</td></tr>`;
  const stage = (rows, l) =>
    html`<section><p class="title">after ${STAGES[l]}</p><table><tbody>${rows
      .slice(0, 4)
      .map(row)}</tbody></table></section>`;
  return html`<div class="stages" data-part="lens">${read.lens.map(stage)}</div>`;
}

// ------------------------------------------------------------------------------- the picture

const SCENES = {
  heads: (s, read) => [page(s, read), heads(s, read), result(s, read), instead(s, read)],
  ledger: (s, read) => [chooser(s, read), page(s, read), ledger(s, read), opened(s, read)],
  lens: (s, read) => [entry(s), page(s, read), lens(read)],
};

/** The numbers for those who do not see the bars. */
function spoken(s, read) {
  const rows = read?.rows(s) ?? [];
  const cells = rows.map(([word, after, before]) => [word, three(before), three(after)]);
  return html`<div class="visually-hidden">${table(
    "Probabilities of the next word",
    ["word", "before", "after"],
    cells,
  )}</div>`;
}

export function picture(s) {
  const read = readingOf(s);
  const parts = SCENES[s.scene](s, read);
  return [
    ...parts,
    s.scene !== "lens" && entry(s),
    statusOf(s, read),
    buttons(),
    () => spoken(s, read),
  ].filter(Boolean);
}

/** A line that makes tokens of the words of a text that the model knows. */
const encoded = (name, text) => [
  `${name} = [w for w in split(${JSON.stringify(text)}, words) if w in words]`,
  `${name} = [0, *map(words.index, ${name})]`,
];

/** Runnable Python for what is on the screen. */
export function code(s) {
  const word = JSON.stringify(readingOf(s)?.word ?? s.word);
  const start = [
    "import attnlib",
    "from attnlib import models",
    "from attnlib.world import split",
    "",
    "model = models.writer()",
    "words = model.vocabulary",
    ...encoded("tokens", s.text),
  ];
  if (s.scene === "lens")
    return [
      ...start,
      "for p in attnlib.lens(model, tokens)[:, -1]:",
      "    print([(words[t], p[t].round(3)) for t in p.argsort()[::-1][:4]])",
    ];
  const token = [
    `word = ${word}`,
    "token = words.index(word) if word in words else int(model(tokens)[-1].argmax())",
  ];
  if (s.scene === "ledger")
    return [
      ...start,
      ...token,
      "names, parts = attnlib.ledger(model, tokens, -1, token)",
      `against = ${JSON.stringify(s.against)}`,
      "if against in words:",
      "    parts = parts - attnlib.ledger(model, tokens, -1, words.index(against))[1]",
      "for name, part in zip(names, parts):",
      '    print(f"{name:24}{part:8.2f}")',
    ];
  const pairs = headsIn(s.away).map((h) => `(${Math.floor(h / N_HEADS)}, ${h % N_HEADS})`);
  const given = {
    zero: ["given = [0 * z for z in own]"],
    mean: [
      "means = attnlib.mean_outputs(model, [tokens])  # better: of many texts",
      "given = [m[:, None] + 0 * z for m, z in zip(means, own)]",
    ],
    swap: [
      ...encoded("other", s.other),
      "given = attnlib.head_outputs(model, other) if len(other) == len(tokens) else own",
    ],
  }[s.how];
  const last = s.where === "last" ? ["    new[:-1] = own[layer][head][:-1]"] : [];
  return [
    ...start,
    ...token,
    "own = attnlib.head_outputs(model, tokens)",
    ...given,
    "outputs = {}",
    `for layer, head in [${pairs.join(", ")}]:`,
    "    new = given[layer][head].copy()",
    ...last,
    "    outputs[layer, head] = new",
    "changed = attnlib.replace_heads(model, outputs)",
    "print(attnlib.softmax(changed(tokens)[-1])[token].round(3))",
  ];
}

// --------------------------------------------------------------------------------- the page

export function live(view) {
  let known = null;
  let pause = 0;

  function read() {
    const { text, opened: now, means } = view.state();
    if (known && now?.text !== text) view.set({ opened: openText(known, text, means, now) });
  }

  async function open() {
    known = await loadModel(view);
    read();
  }

  view.follow(() => {
    clearTimeout(pause);
    pause = setTimeout(read, 60);
  });
  view.on("open", "click", () => open().catch(() => {})); // the status has said it
  view.on("text", "input", (event) => view.set({ text: event.target.value }));
  view.on("text", "keydown", (event) => event.key === "Enter" && open().catch(() => {}));
  view.on("other", "input", (event) => view.set({ other: event.target.value }));
  for (const name of ["how", "where"])
    view.on(name, "change", (event) => view.set({ [name]: event.target.value }));
  for (const name of ["word", "against"])
    view.on(name, "change", (event) => view.set({ [name]: event.target.value }));
  view.on("layer", "change", (event) => view.set({ layer: Number(event.target.value) }));
  view.on("toggle", "change", (event) => {
    const { away } = view.state();
    view.set({ away: away ^ (1 << Number(event.target.value)) });
  });
  view.listen(view.root, "click", ({ target }) => {
    const head = target.closest("[data-head]");
    const chip = target.closest("[data-example]");
    if (head) {
      const chosen = Number(head.dataset.head);
      view.set({ head: chosen === view.state().head ? 0 : chosen });
    }
    if (chip) {
      const one = view.state().recorded.find(({ name }) => name === chip.dataset.example);
      const { text, other, layer } = one;
      view.set({ text, other, layer, word: "", against: "", away: 0 });
    }
  });
  /** For tests and the curious: the model's reading of a text, in a state with these changes. */
  view.root.parentElement.inspect = async (text, changes = {}) => {
    if (!known) await open();
    view.set({ word: "", against: "", ...changes, text });
    read();
    return compute(view.state());
  };
}
