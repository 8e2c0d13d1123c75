/** The model at work in a page: it is loaded after a click, reads what was typed, and writes. */
import { chance } from "../kit/numbers.js";
import { loadModel } from "./loading.js";
import { choices, cutText, draw, emptyText, readToken, softmax } from "./model.js";
import { beginReading, encode, firstOf, MOST_TOKENS, readOn, wordsOf } from "./story.js";

const PACE = 30; // milliseconds from word to word: a reader can follow
const SLICE = 12; // milliseconds after which the page gets its turn

const sleep = (milliseconds) => new Promise((go) => setTimeout(go, milliseconds));

/** The settings of a state by which the next word is chosen. */
const settingsOf = (s) => ({ temperature: s.temperature, topK: s.top_k, topP: s.top_p });

/** What a program asks for, checked. */
function optionsOf({ n = 40, temperature = 1, topK = 0, topP = 1, seed = 0 } = {}) {
  const needs = {
    n: [n, Number.isInteger(n) && n >= 0],
    temperature: [temperature, temperature >= 0 && temperature < Infinity],
    topK: [topK, Number.isInteger(topK) && topK >= 0],
    topP: [topP, topP > 0 && topP <= 1],
    seed: [seed, Number.isInteger(seed)],
  };
  for (const [name, [value, isGood]] of Object.entries(needs)) {
    if (typeof value !== "number" || !isGood) throw new RangeError(`${name} cannot be ${value}`);
  }
  return { n, temperature, topK, topP, seed };
}

export function makeSession(view) {
  let known = null; // the model and its world
  let reading = null;
  let turn = 0; // a newer wish ends an older one
  let pause = 0;

  async function load() {
    known ??= await loadModel(view);
    return known;
  }

  /** Reads one more token; null if a newer wish came in between. */
  async function readNext(mine, token) {
    const { cache } = view.state();
    const text = cache ? reading.text : emptyText(known.model);
    const ahead = cache ? [token] : [...reading.tokens, token];
    let [spent, began, says] = [0, performance.now(), null];
    for (const each of ahead) {
      says = readToken(text, each);
      if (performance.now() - began < SLICE) continue;
      spent += performance.now() - began;
      await sleep(0);
      if (mine !== turn) return null;
      began = performance.now();
    }
    spent += performance.now() - began;
    reading = readOn({ ...reading, text }, known, token, says);
    return spent;
  }

  /** Reads what was typed and what was written; what it has read already, it keeps. */
  async function catchUp(mine) {
    const { text, written } = view.state();
    const { tokens, unknown } = encode(known, text);
    const more = wordsOf(written).filter((word) => known.tokenOf.has(word));
    const all = [0, ...tokens, ...more.map((word) => known.tokenOf.get(word))];
    const wanted = all.slice(0, MOST_TOKENS);
    reading ??= beginReading(known);
    let same = wanted.findIndex((token, i) => token !== reading.tokens[i]);
    if (same < 0) same = wanted.length;
    reading = firstOf(reading, same);
    cutText(reading.text, same);
    let began = performance.now();
    for (const token of wanted.slice(same)) {
      reading = readOn(reading, known, token, readToken(reading.text, token));
      if (performance.now() - began < SLICE) continue;
      await sleep(0);
      if (mine !== turn) return false;
      began = performance.now();
    }
    show({ text, written }, Math.min(tokens.length, MOST_TOKENS - 1), unknown);
    return true;
  }

  const show = (of, begun, unknown, more = {}) =>
    view.set({
      ...more,
      story: { ...of, reading, vocabulary: known.vocabulary, begun, unknown },
    });

  /** Reads what has changed, unless the model writes. */
  function refresh(rest = 120) {
    clearTimeout(pause);
    if (!known) return;
    pause = setTimeout(() => {
      const { text, written, story, writing } = view.state();
      if (!writing && !(story?.text === text && story.written === written)) catchUp(++turn);
    }, rest);
  }

  /** Adds a word to the story. */
  async function add(mine, token) {
    const spent = await readNext(mine, token);
    if (spent === null) return;
    const { text, written, story, cache, costs } = view.state();
    const now = [written, known.vocabulary[token]].filter(Boolean).join(" ");
    const name = cache ? "on" : "off";
    const measured = [...costs[name].filter(([n]) => n !== reading.tokens.length)];
    measured.push([reading.tokens.length, spent]);
    show({ text, written: now }, story.begun, story.unknown, {
      written: now,
      at: 0,
      costs: { ...costs, [name]: measured },
    });
  }

  /** Writes up to so many words; a story may end before. */
  async function write(most) {
    const mine = ++turn;
    clearTimeout(pause);
    view.set({ writing: true, ended: "" });
    try {
      await load();
      const isRead = mine === turn && (await catchUp(mine));
      for (let i = 0; isRead && i < most && mine === turn; i++) {
        if (i) await sleep(PACE);
        if (mine !== turn) return;
        const s = view.state();
        const position = reading.tokens.length;
        const probabilities = choices(reading.said.at(-1).logits, settingsOf(s));
        const token = draw(probabilities, chance(s.seed, position));
        if (token === 0 || position >= MOST_TOKENS) {
          view.set({ ended: token === 0 ? "end" : "full", at: 0 });
          break;
        }
        await add(mine, token);
      }
    } catch {
      // `load` has said it
    }
    if (mine === turn) view.set({ writing: false });
  }

  function stop() {
    turn++;
    view.set({ writing: false });
  }

  /** Goes on with this word at this position: what stood there and after it goes. */
  async function take(word, at) {
    const mine = ++turn;
    clearTimeout(pause);
    try {
      await load();
      if (mine !== turn || !(await catchUp(mine))) return;
      const { story, written } = view.state();
      const kept = at ? at - 1 - story.begun : Infinity;
      view.set({ written: wordsOf(written).slice(0, kept).join(" ") });
      if (!(await catchUp(mine))) return;
      if (word === known.vocabulary[0]) view.set({ ended: "end", writing: false });
      else await add(mine, known.tokenOf.get(word));
    } catch {
      // `load` has said it
    }
  }

  /** For programs: reads a text, and writes n words after it. */
  async function writeFor(given, options) {
    if (typeof given !== "string") throw new TypeError(`text must be a string; got ${given}`);
    const { n, seed, ...settings } = optionsOf(options);
    const { model, vocabulary, ...rest } = await load();
    const { tokens: begun, unknown } = encode(rest, given);
    if (unknown.length) throw new RangeError(`The model does not know: ${unknown.join(", ")}`);
    const [text, says] = [emptyText(model), []];
    for (const token of [0, ...begun]) says.push(readToken(text, token));
    const tokens = [];
    while (tokens.length < n && text.n < MOST_TOKENS) {
      const token = draw(choices(says.at(-1).logits, settings), chance(seed, text.n));
      tokens.push(token);
      if (token === 0) break;
      says.push(readToken(text, token));
      if (text.n % 8 === 0) await sleep(0);
    }
    const from = begun.length;
    const plain = ({ weights }) => weights.map((layer) => layer.map((row) => Array.from(row)));
    return {
      begun,
      tokens,
      words: tokens.map((token) => vocabulary[token]),
      probabilities: tokens.map((_, i) => Array.from(softmax(says[from + i].logits))),
      weights: tokens.map((_, i) => plain(says[from + i])),
    };
  }

  return { load, write, stop, take, refresh, writeFor };
}
