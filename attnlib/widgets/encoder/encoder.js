/**
 * Encoder: all-MiniLM-L6-v2 at work, in the page. This file has what all views share: the text that
 * is typed, the way of the model to the page, the order of readings. It reads nothing before a
 * click.
 *
 * A view is a file that exports one object under the view's name, with
 *   label            its name for those who do not see it
 *   pageState        states of the page alone; with `lens: null` a microscope
 *   reads            what its button says, if what is read is no sentence
 *   fields(s)        the texts that are typed:
 *                    [{ name (a trait), label, tries: [[short name, text], ...] }]
 *   wants(s)         the readings it needs for this state: [{ text, hidden, ledger }, ...], where
 *                    ledger may be missing; asked again after each
 *   fits(reading)    "", or why the view cannot show this one
 *   grows(view, growing, now)   if it has to do something as the tokens and layers of a new
 *                    sentence come
 *   brings(s)        what a copied link takes along: {trait: text}
 *   pose(s)          if things glide in it, the numbers that do (kit/mount.js)
 *   picture(s, now)  its sections, one element each, always as many; a function is for the ear
 *                    alone
 *   compute(s, now)  the numbers that it draws, if a test is to have them
 *   code(s, now)     the lines of "Copy as NumPy"
 *   live(view, tools)  listens to its controls
 * `now` is { readings: for each of wants(s) a Reading or null, current: whether all are there,
 * last: the readings that were complete last, or null, growing: one of which the first layers have
 * come, or null }. `find(s, want)` of reading.js gives a Reading by text; what a Reading holds
 * stands there. What was recorded for the first state is s.readings, as the view's part of
 * encoder.py packs it. `tools` has
 *   ask(rest)        reads what the view wants, after so many milliseconds of rest; whatever
 *                    changes a trait asks by itself
 *   now()            what picture(s, now) gets
 *   read(text, { hidden, owner, tell, replaced })   one reading, not kept: a promise
 * A trait of a field is set as it is typed; a new text empties `hidden`.
 */
import { buttons, element, html, textField, tries } from "../kit/markup.js";
import { heads } from "./heads.js";
import { lengths } from "./lengths.js";
import { parts } from "./parts.js";
import { path } from "./path.js";
import { find, keyOf, N_HEADS, N_LAYERS, rowsOf, stateOf } from "./reading.js";
import { search } from "./search.js";
import { unpacked } from "./seen.js";

export const layout = ({ view, compact }) => [
  "abh-instrument",
  `view-${view}`,
  compact && "compact",
];

const VIEWS = { heads, path, search, lengths, parts }; // a page has only those that it shows
const IDLE = {
  state: "idle",
  got: 0,
  asked: 0,
  exact: false,
  slow: false,
  error: "",
  megabytes: 13,
  missing: "",
  errors: null,
};
const REST = 300; // milliseconds without a key
const QUIET = 15; // seconds without a piece before the page says so
const KEPT = 1500; // tokens of readings that are kept
const LONGEST = 1000; // letters

/**
 * The engine; whether the reader has asked for it, and has typed; its readings by key, and what
 * came last.
 */
export const pageState = {
  engine: IDLE,
  on: false,
  typed: false,
  live: {},
  last: null,
  growing: null,
  busy: false,
  stuck: false,
  failure: "",
  ...heads?.pageState,
  ...path?.pageState,
  ...search?.pageState,
  ...lengths?.pageState,
  ...parts?.pageState,
};

const isText = (text) => typeof text === "string" && text.length <= LONGEST;
const isPlace = (i) => Number.isInteger(i) && i >= 0 && i < 64;
export const shared = {
  view: false,
  compact: false,
  other: isText,
  word: isText,
  question: isText,
  text: (text) => isText(text) && text.trim() !== "",
  seen: (seen, { text }) => seen === "" || unpacked(seen, text) !== null,
  hidden: (places) => Array.isArray(places) && places.length < 64 && places.every(isPlace),
  sentences: (texts) =>
    Array.isArray(texts) &&
    texts.length <= 24 &&
    texts.every((text) => isText(text) && text.trim()),
};
export const pose = (s) => VIEWS[s.view].pose?.(s) ?? [];
export const label = (s) => VIEWS[s.view].label;

/** What there is to draw. */
function standing(s) {
  const readings = VIEWS[s.view].wants(s).map((want) => find(s, want));
  return { readings, current: readings.every(Boolean), last: s.last, growing: s.growing };
}

/** What a view says, as numbers, for the tests. */
export const compute = (s) => VIEWS[s.view].compute?.(s, standing(s));

export const code = (s) => VIEWS[s.view].code(s, standing(s));

export function picture(s) {
  const now = standing(s);
  const one = VIEWS[s.view];
  return [
    html`<div class="entry${one.fields(s).length > 1 && " two-fields"}">${one
      .fields(s)
      .map((field) => entry(s, field))}</div>`,
    loading(s, now),
    ...one.picture(s, now),
    s.view === "path" || s.view === "parts" ? html`<p class="about">${AGAIN}</p>` : about(s),
    ...(s.compact ? [] : [buttons()]),
  ];
}

/** A text to type, and some to take. */
function entry(s, { name, label, tries: suggested = [] }) {
  const own = s[name];
  const all = suggested.map(([short, text]) => [
    short,
    { "data-try": name, "data-text": text },
    text === own,
  ]);
  const field = textField(name, own, LONGEST);
  return [
    element("label", { class: "main" }, html`<span>${label}</span>`, field),
    all.length > 0 && tries("Sentences to try", "Try", all),
  ];
}

const mega = (bytes) => (bytes / 1e6).toFixed(1);

/** The way of the model to the page: a button, how far it is, what it says. */
function loading(s, now) {
  const { engine } = s;
  // Later, words come by the way.
  const under = s.on && !s.last && s.busy && engine.state !== "failed";
  const offered =
    !s.kernel && !engine.missing && !under && (!s.on || engine.state === "failed" || s.failure);
  const cost =
    engine.state !== "ready" && html` <small>loads ${Math.round(engine.megabytes)} MB</small>`;
  const name = s.on ? "Try again" : html`${VIEWS[s.view].reads ?? "Read my sentence"}${cost}`;
  const message = status(s, now, under);
  return html`<div class="load">${[
    offered && html`<button type="button" name="read">${name}</button>`,
    under &&
      html`<progress max="${Math.max(engine.asked, 1)}" value="${engine.got}"
aria-label="The model on its way"></progress><button type="button" name="stop">Stop</button>`,
  ]}<p role="status" data-part="status"
data-key="${[offered, under].map(Boolean).join()}">${element(
    "span",
    { "data-key": html`${message}` },
    message,
  )}</p></div>`;
}

function status(s, now, under) {
  const { engine } = s;
  if (s.kernel) return s.trouble || "The model reads in the kernel of this notebook.";
  if (engine.missing) return engine.missing;
  if (s.on && (s.failure || engine.state === "failed")) return s.failure || engine.error;
  if (s.stuck)
    return (
      `Nothing has come for ${QUIET} seconds. To ask again, reload the page: what has come ` +
      `is kept.`
    );
  if (under && engine.state !== "ready")
    return engine.asked
      ? `${mega(engine.got)} of ${mega(engine.asked)} MB`
      : "The model is on its way.";
  if (!s.on && engine.state === "ready")
    return "This is a recording. The model has been downloaded by now.";
  if (!s.on && now.readings[0]?.seen)
    return (
      "These weights came with the link. To check them, or to see another head, the page " +
      "downloads the model."
    );
  if (!s.on)
    return now.current
      ? "This is a recording. To read your own sentence, the page downloads the model."
      : "To read this sentence, the page has to download the model.";
  const shares = ["heads", "lengths"].includes(s.view);
  const slow = engine.slow && " Without WebAssembly’s SIMD this browser takes longer to read.";
  if (s.busy || !now.current) return ["Reading …", slow];
  const read = now.readings.filter((one) => one?.states);
  if (!read.length) return "This is a recording.";
  if (read.every(({ exact }) => exact))
    return [
      "Read on your machine",
      shares && `; a share is right to ${engine.errors.weights}`,
      ".",
      slow,
    ];
  return [
    `Read on your machine, with a model in 8 ` +
      `bits${shares ? ": a share may still move by some hundredths" : ""}. `,
    engine.error || slow || "The rest of its digits is on its way.",
  ];
}

/** Said of the views that stand below another one in their page. */
const AGAIN = "Model, license and downloads: as below the first picture.";

/** What comes from where, and who learns what. */
const about = (s) => html`<p class="about">The model is <a
href="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2"
rel="noopener">all-MiniLM-L6-v2</a>,
Apache License 2.0. ${
  !s.kernel &&
  `Your sentence is not sent. But the page downloads only the parts of the word list that it needs,
256 words each, so the site’s host can see roughly which words you use.`
}</p>`;

// --------------------------------------------------------------------------------- the page

/** Sets what a picture may glide to. */
const put = (view, changes) =>
  pose(view.state()).length ? view.glide(changes) : view.set(changes);

/** Reads what a view wants, one text after the other; a newer wish ends an older one. */
function reader(view) {
  const owner = view.root;
  let [turn, pause, under] = [0, 0, ""]; // which run, when it begins, and the key of what it reads
  const read = async (text, options = {}) => {
    if (!self.encoder)
      throw new Error(
        "The model is not part of this page: it is in the book's own pages, and in Jupyter.",
      );
    if (self.encoder.missing) throw new Error(self.encoder.missing);
    return self.encoder.read(text, { owner, ...options });
  };
  const next = (s) =>
    VIEWS[s.view].wants(s).find((want) => {
      const known = s.live[keyOf(want)];
      return !known || (s.engine.exact && !known.exact);
    });

  /** The readings that are kept, with one more: the newest, and those that are wanted now. */
  function kept(s, want, reading) {
    const all = { ...s.live };
    delete all[keyOf(want)];
    all[keyOf(want)] = reading;
    const wanted = new Set(VIEWS[s.view].wants(s).map(keyOf));
    let tokens = Object.values(all).reduce((sum, one) => sum + one.tokens.length, 0);
    for (const key of Object.keys(all)) {
      if (tokens <= KEPT || wanted.has(key)) continue;
      tokens -= all[key].tokens.length;
      delete all[key];
    }
    return all;
  }

  async function run() {
    const first = next(view.state());
    if (first && keyOf(first) === under) return; // it comes already
    const mine = ++turn;
    try {
      for (let want = first; want; want = next(view.state())) {
        const { text, hidden = [], ledger } = want;
        let growing = null;
        under = keyOf(want);
        view.set({ busy: true, failure: "" });
        const tell = ({ tokens, layer, weights }) => {
          if (mine !== turn) return;
          if (tokens) growing = { text, hidden, tokens, weights: [] };
          if (weights)
            growing = {
              ...growing,
              weights: Object.assign([...growing.weights], { [layer]: weights }),
            };
          VIEWS[view.state().view].grows?.(view, growing, standing(view.state()));
          if (!view.state().live[keyOf(want)]) view.set({ growing });
        };
        const reading = { ...(await read(text, { hidden, tell, ledger })), text, hidden };
        if (mine !== turn) return;
        const wrong = VIEWS[view.state().view].fits(reading);
        if (wrong) throw new Error(wrong);
        put(view, { live: kept(view.state(), want, reading) });
      }
      const s = view.state();
      under = "";
      view.set({
        busy: false,
        growing: null,
        last: VIEWS[s.view].wants(s).map((want) => find(s, want)),
      });
    } catch (error) {
      if (mine === turn) under = "";
      if (mine === turn && error.name !== "AbortError")
        view.set({ busy: false, growing: null, failure: error.message });
    }
  }

  return {
    read,
    now: () => standing(view.state()),
    ask(rest = REST) {
      clearTimeout(pause);
      if (view.state().on) pause = setTimeout(run, rest);
    },
    /** Nothing more is waited for. */
    stop() {
      clearTimeout(pause);
      turn++;
      under = "";
      self.encoder?.stop?.(owner);
      view.set({ on: false, busy: false, stuck: false, growing: null, failure: "" });
    },
  };
}

const plainReading = (reading) => ({
  tokens: reading.tokens,
  weights: Array.from({ length: N_LAYERS }, (_, l) =>
    Array.from({ length: N_HEADS }, (_, h) => rowsOf(reading, l, h)),
  ),
  states: reading.states.map((_, l) =>
    reading.tokens.map((_, i) => Array.from(stateOf(reading, l, i))),
  ),
  embedding: Array.from(reading.embedding),
});

export function live(view) {
  const tools = reader(view);
  const { encoder } = self;
  let [engine, on] = [IDLE, false]; // "Reset" does not send the model away
  let quiet = 0;
  /** A connection may hang without a word: then the page says it. */
  const watch = () => {
    clearTimeout(quiet);
    if (view.state().stuck) view.set({ stuck: false });
    quiet = setTimeout(
      () => view.set({ stuck: view.state().busy && engine.state !== "ready" }),
      1000 * QUIET,
    );
  };
  if (encoder) {
    const { missing, megabytes = IDLE.megabytes, errors, state = "idle" } = encoder;
    engine = { ...IDLE, missing, megabytes, errors };
    const hear = (news) => {
      const was = engine;
      engine = { ...engine, ...news };
      view.set({ engine });
      watch();
      if (engine.exact && !was.exact) tools.ask(0);
    };
    // The picture in the page is that of a model at rest, which most often is what it is.
    if (missing || state !== "idle" || Math.round(megabytes) !== IDLE.megabytes) hear({ state });
    const unlisten = encoder.listen?.((news) => (view.root.isConnected ? hear(news) : unlisten()));
  }
  view.follow(() => tools.ask());
  view.on("reset", "click", () => {
    view.set({ engine, on });
    tools.ask(0);
  });
  const write = (name, text) => {
    view.say(text.trim() || name === "other" ? "" : "Type at least one word.");
    if (engine.state === "ready") view.set({ on: (on = true) });
    if (view.state().seen) view.set({ seen: "" });
    if (text.trim())
      put(view, name === "text" ? { text, hidden: [], typed: true } : { [name]: text });
  };
  for (const { name } of VIEWS[view.state().view].fields(view.state())) {
    view.on(name, "input", (event) => write(name, event.target.value));
    view.on(name, "keydown", (event) => event.key === "Enter" && start());
  }
  view.listen(view.root, "click", (event) => {
    const chip = event.target.closest("[data-try]");
    if (chip) write(chip.dataset.try, chip.dataset.text);
  });
  const start = () => {
    view.set({ on: (on = true), busy: true, failure: "" });
    watch();
    tools.ask(0);
  };
  view.on("read", "click", start);
  view.on("stop", "click", () => {
    on = false;
    tools.stop();
  });
  VIEWS[view.state().view].live(view, tools);
  const slot = view.root.parentElement;
  slot.brings = () => VIEWS[view.state().view].brings?.(view.state());
  slot.dataset.lost =
    "The weights of a sentence this long do not fit into a link, so the page that it opens reads " +
    "the sentence again.";
  /** For tests and the curious: what the model makes of any text. */
  slot.read = async (text) => plainReading(await tools.read(text, { owner: {} }));
}
