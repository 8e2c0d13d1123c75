/**
 * Flow, "Follow the sentence": the way from tokens to output, or to the next word, in one picture.
 *
 * A moment is a stage and the part `u` of it that has happened: playing, stepping and dragging only
 * change these two, so every moment can be drawn, at build as in the page. There are two sheets,
 * one that lies and one that falls; style shows the one for which there is room.
 */
import { buttons, element, html, prose, select } from "../kit/markup.js";
import { liveMicroscope, openMicroscope, weightPanel } from "../drawing/microscope.js";
import { numpyArray, plain, range, words, wordVector } from "../kit/numbers.js";
import { crossed, size } from "./layout.js";
import { moment, plan, short, writes } from "./plan.js";
import { explain, order } from "./reading.js";
import { scene } from "./scene.js";
import { fold, ledger, liveWriter, writer } from "./writer.js";

/** All numbers by their letters, and what is said about a cell: for those who check them. */
export const compute = (s) => plan(s).made;
export const inWords = (s, name) =>
  explain(plan(s), name, moment(plan(s), { stage: s.stage, u: 1 }), s.head);
export const account = (s) => ledger(plan(s));
export const folds = (s) => fold(plan(s));
export const cells = (s) => order(plan(s), moment(plan(s), { stage: s.stage, u: 1 }));

/**
 * What happened of the stage, the cell that is looked at, the one that stays and its product, and
 * so on.
 */
export const pageState = {
  u: 1,
  look: null,
  pin: null,
  step: null,
  at: "X.0.0",
  lens: null,
  playing: false,
  wrong: null,
  sheet: null,
  typed: null, // how many words of the prompt were typed
};

const LARGEST = 100;
const MOST = 6;
const MATRICES = {
  x: ["X", "ink"],
  memory: ["M", "ink"],
  w_q: ["W_Q", "query"],
  w_k: ["W_K", "key"],
  w_v: ["W_V", "value"],
  w_o: ["W_O", "ink"],
  w_1: ["W_1", "ink"],
  b_1: ["b_1", "ink"],
  w_2: ["W_2", "ink"],
  b_2: ["b_2", "ink"],
  w_vocab: ["W_vocab", "ink"],
  embeddings: ["E", "ink"],
};
/** The matrices that this state has, in the order of the calculation. */
const matricesOf = (s) =>
  writes(s)
    ? ["embeddings", ...Object.keys(MATRICES).filter((name) => /^[wb]_/.test(name))]
    : Object.keys(MATRICES).filter((name) => name !== "embeddings" && s[name].length);
const rowsOf = (given) => (Array.isArray(given[0]) ? given : [given]);

/** Text in which {Q:roles} have their colors. */
const ROLES = { Q: "query", K: "key", V: "value", A: "weight" };
const spoken = (says, tag = "b", inner = prose) =>
  says.split(/(\{\w:[^}]*\})/).map((piece) => {
    const [, role, words] = piece.match(/^\{(\w):([^}]*)\}$/) ?? [];
    return role ? element(tag, { class: ROLES[role] }, inner(words)) : inner(piece);
  });

/** A transpose: the text face has no sign for it. */
const raised = (text) => text.split("ᵀ").map((piece, i) => [i > 0 && html`<sup>T</sup>`, piece]);

/** An equation: letters lean, what stands after _ is low. */
function formula(written) {
  const letters = (piece) =>
    piece.split(/([A-Za-z]+_(?:vocab|\w)|\b[A-Z]\b)/).map((part, k) => {
      const [letter, low] = part.split("_");
      return k % 2
        ? html`<i>${letter}</i>${low && html`<sub>${low}</sub>`}`
        : part
            .split("   ")
            .map((gap, i) => [i > 0 && html`<span class="gap"></span>`, raised(gap)]);
    });
  return written.split("\n").map((line, i) => [i > 0 && html`<br>`, spoken(line, "span", letters)]);
}

/** The equation of the stage, or the arithmetic of the cell that is looked at. */
function reading(s, flow, now, found) {
  if (!found) {
    return html`<p class="formula">${formula(flow.stages[now.s].equation)}</p>
<p class="hint">Point at a number, or tap it, to see what it is made of. Click a weight to see how
it was calculated.</p>`;
  }
  const { terms, step } = found;
  const piece = ({ text, role, k }) => {
    const waits = step !== null && k !== undefined && k > step;
    return role
      ? element(
          "span",
          {
            class: `n ${role}${waits ? " waits" : ""}${k === step && step !== null ? " now" : ""}`,
          },
          text,
        )
      : text;
  };
  const lines = step === null ? found.lines : found.lines.slice(0, 1);
  const far =
    step === null ? 0 : terms.slice(0, step + 1).reduce((total, { product }) => total + product, 0);
  const said = lines.map(({ label, pieces }) => {
    // What comes out is not there yet.
    const ends = pieces.map(({ k }) => k !== undefined).lastIndexOf(true);
    const shown = step === null || step === terms.length - 1 ? pieces : pieces.slice(0, ends + 1);
    return html`<p>${label && html`<i>${label}</i>`}<span>${shown.map(piece)}</span></p>`;
  });
  return html`<div class="who"><span>${found.title}${
    found.to.length > 0 && html` <span class="to">→ ${found.to.join(", ")}</span>`
  }</span>${
    s.pin === found.name &&
    html`<span class="stepper">
<button type="button" name="less" aria-label="Product before">−</button>
<button type="button" name="more" aria-label="Next product">+</button>
<span>${
      terms.length
        ? step === null
          ? `${terms.length} products`
          : `product ${step + 1} of ${terms.length}, so far ${short(far, 4)}`
        : "next number"
    }</span></span>`
  }</div>
<div class="sums">${said}</div>`;
}

/** The weights of a head, small. */
const glimpse = (A, made) =>
  element(
    "svg",
    { viewBox: `0 0 ${A[0].length} ${A.length}`, width: 22, height: 22, "aria-hidden": "true" },
    A.map((row, i) =>
      row.map((a, j) =>
        element("rect", {
          x: j,
          y: i,
          width: 0.9,
          height: 0.9,
          fill: "var(--weight)",
          "fill-opacity": made ? 0.08 + 0.92 * a : 0.08,
        }),
      ),
    ),
  );

/** A matrix whose entries can be typed. */
function typed(s, name, lit) {
  const [letters, role] = MATRICES[name];
  const flow = plan(s);
  const names = { x: flow.names, memory: flow.answers, embeddings: s.known }[name];
  const columns = {
    w_vocab: s.vocabulary,
    embeddings: s.columns,
    ...(writes(s) && { w_o: s.columns, w_2: s.columns }),
  }[name];
  const rows = rowsOf(s[name]).map(
    (row, i) =>
      html`<tr>${names && html`<th scope="row">${names[i]}</th>`}${row.map(
        (value, j) =>
          html`<td>${element("input", {
            type: "text",
            inputmode: "decimal",
            autocomplete: "off",
            name: `${name}.${i}.${j}`,
            value: plain(value),
            class: lit.has(`${name}.${i}.${j}`) && "lit",
            "aria-label": `${letters.replace("_", " ")}, row ${i + 1}, column ${j + 1}`,
            "aria-invalid": s.wrong === `${name}.${i}.${j}` && "true",
          })}</td>`,
      )}</tr>`,
  );
  return html`<div class="typed"><table><caption class="${role}">${formula(letters)}</caption>${
    columns?.length > 0 &&
    html`<tr>${names && html`<td></td>`}${columns.map(
      (word) => html`<th scope="col">${word}</th>`,
    )}</tr>`
  }${rows}</table>${
    s.wrong?.startsWith(`${name}.`) &&
    html`<p class="wrong" role="alert">An entry needs a number from −${LARGEST} to ${LARGEST}; the
last one stays.</p>`
  }</div>`;
}

/** What can be changed: the words, the mask, and every entry. */
function given(s, found) {
  const lit = found ? found.reads : new Set();
  const sentence = (name, label, tokens) =>
    html`<label><span>${label}, 1 to
${MOST}</span>${element("input", {
      type: "text",
      name,
      value: tokens.join(" "),
      autocomplete: "off",
    })}${
      s.wrong === name &&
      html`<span class="wrong" role="alert">${
        writes(s)
          ? `The model knows ${s.known.join(", ")}; 1 to ${MOST - 1} of them are needed.`
          : `1 to ${MOST} words are needed.`
      }</span>`
    }</label>`;
  const cross = s.memory.length > 0;
  return html`<details class="given" data-part="given"><summary>Change the words and the
numbers</summary>${
    s.sheet !== null &&
    html`<div class="fields">
${sentence("words", "Words", s.tokens)}${
  cross && sentence("remembered", "Words of the memory", s.memory_tokens)
}
${
  !cross &&
  !writes(s) &&
  html`<label><span>Mask</span>${select(
    "mask",
    { none: "none", causal: "no later words" },
    s.mask,
  )}</label>`
}</div>
<div class="matrices">${matricesOf(s).map((name) => typed(s, name, lit))}</div>`
  }</details>`;
}

/** What the microscope needs of a weight. */
function weightOf(flow, [i, j], head) {
  const { Q, K, V, S, A, masked } = flow.matrices[head];
  return {
    queryName: flow.names[i],
    names: flow.answers,
    j,
    query: Q[i],
    key: K[j],
    scores: S[i],
    divisor: [Math.sqrt(flow.d_k), `√${flow.d_k}`],
    free: masked[i].map((x) => x > -Infinity),
    weights: A[i],
    values: V,
  };
}

const fits = (matrix, like) =>
  Array.isArray(matrix) &&
  matrix.length === like.length &&
  matrix.every((x, i) =>
    Array.isArray(like[i]) ? fits(x, like[i]) : typeof x === "number" && Math.abs(x) <= LARGEST,
  );
const named = (tokens) =>
  Array.isArray(tokens) &&
  tokens.length > 0 &&
  tokens.length <= MOST &&
  tokens.every((token) => typeof token === "string" && words(token).length === 1);
const rows = (tokens, like) => (matrix, s) =>
  fits(
    matrix,
    s[tokens].map(() => s[like][0]),
  );
/** Texts that a model can read: words with a row, and at most an end mark behind them. */
const readable = (tokens, s) =>
  named(tokens) &&
  tokens.every(
    (token, i) =>
      s.known.includes(token) || (i > 0 && i === tokens.length - 1 && s.vocabulary.includes(token)),
  );
/** A setting that only a model that writes has. */
const ofWriter = (value, s) => writes(s) === (value !== undefined);
/** Words and entries stand in the address, the parts of a layer do not. */
export const shared = {
  tokens: (tokens, s) => (writes(s) ? readable(tokens, s) : named(tokens)),
  x: (x, s) => writes(s) || rows("tokens", "x")(x, s),
  memory_tokens: (tokens, s) => (s.memory.length > 0 ? named(tokens) : fits(tokens, [])),
  memory: rows("memory_tokens", "memory"),
  ...Object.fromEntries(
    Object.keys(MATRICES)
      .slice(2)
      .map((name) => [name, (matrix, s) => matrix === s[name] || fits(matrix, s[name] ?? [])]),
  ),
  known: false,
  columns: false,
  prompts: false,
  attention: ofWriter,
  residual: ofWriter,
  feed_forward: ofWriter,
  heads: false,
  layer: false,
  vocabulary: false,
  head: (head, s) => head < s.heads,
  mask: (mask, s) => mask === "none" || !(s.memory.length || writes(s)),
  stage: (stage, s) => plan(s).stages.some(({ id }) => id === stage),
};

export const layout = (s) => [`size-${size(plan(s))}`, writes(s) && "writing"];

export const label = ({ tokens, layer, memory, vocabulary, embeddings }) =>
  `Flow: the way of ${tokens.join(" ")} through ${
    memory.length
      ? "cross-attention"
      : layer
        ? `${embeddings?.length ? "a" : "an encoder"} layer`
        : "attention"
  }${vocabulary.length ? " to the next word" : ""}`;

export function picture(s) {
  const flow = plan(s);
  const now = moment(flow, s);
  const head = Math.min(s.head, s.heads - 1);
  const stage = flow.stages[now.s];
  const last = flow.stages.length;
  const t = now.s + now.u;
  const shown = [s.look, s.pin].find((name) => name && there(flow, now, name));
  const found = shown
    ? { ...explain(flow, shown, now, head), name: shown, step: shown === s.pin ? s.step : null }
    : null;
  const focus = there(flow, now, s.at) ? s.at : "X.0.0";
  const river = (falls, all, how) => {
    const { width, height, content } = scene(flow, { falls, now, head, focus, ...how });
    const drawn = html([
      String(html`${content}`).replace(how.still ? / data-key="[^"]*"/g : "", ""),
    ]);
    return element(
      "div",
      { class: falls ? "river falls" : "river lies" },
      element("svg", { viewBox: `0 0 ${width} ${height}`, ...all }, drawn),
    );
  };
  const whole = (falls, name) =>
    river(
      falls,
      { role: "img", "data-part": name, class: name && "still", "aria-label": label(s) },
      { now: { s: last - 1, u: 1 }, still: true },
    );
  // Until a script runs the whole way stands there; style shows its outline alone if one will run.
  const sheet = (falls) =>
    s.sheet === null
      ? whole(falls, "river")
      : river(
          falls,
          {
            role: "group",
            "data-part": "river",
            class: found && "looking",
            "aria-label":
              `${label(s)}. Arrow keys go from number to number, Enter keeps one, ` +
              `plus and minus step through its products, page keys turn the stages.`,
          },
          { look: shown, found },
        );
  const key = (name, label, sign, disabled) =>
    element(
      "button",
      {
        type: "button",
        name,
        "aria-label": label,
        disabled,
        "data-gesture": name === "next" && !writes(s),
      },
      sign,
    );
  const caption = ({ title, says }, k) => html`<b>${k + 1} ${title}.</b> ${spoken(says)}`;
  const draw = (falls) =>
    s.sheet === null || s.sheet === (falls ? "falls" : "lies") ? sheet(falls) : () => sheet(falls);
  const paper = () =>
    s.sheet === null
      ? html`<div class="paper"></div>`
      : (flow.paper[head] ??=
          html`<div class="paper"><p>${caption(flow.stages.at(-1), last - 1)}</p>
<p class="formula">${formula(flow.stages.at(-1).equation)}</p>${whole(false)}</div>`);
  flow.ghosts ??= html`${flow.stages.map((other, k) =>
    element("p", { class: "ghost", "aria-hidden": "true" }, caption(other, k)),
  )}`;
  return [
    html`<div class="heads" role="group" aria-label="Head" data-part="heads">${
      s.heads > 1 &&
      range(s.heads).map((h) =>
        element(
          "button",
          {
            type: "button",
            "data-head": h,
            "aria-pressed": String(h === head),
          },
          glimpse(flow.matrices[h].A, now.s >= flow.when.softmax),
          `Head ${h + 1}`,
        ),
      )
    }</div>`,
    ...(writes(s) ? [writer(s, flow)] : [draw(true)]),
    html`<div class="top"><div class="bar"><div
class="keys">${key("back", "Back one stage", "‹ Back", t <= 0)}${element(
      "button",
      { type: "button", name: "play", class: "play" },
      s.playing ? "❚❚ Pause" : "▶ Play",
    )}${key("next", "Next stage", "Next ›", t >= last)}</div>
<div class="track"><div class="stages" role="group" aria-label="Stages"
data-part="stages"${last > 8 && html` data-many="${last < 11 ? "some" : "all"}"`}>${flow.stages.map(
      ({ title }, k) =>
        element(
          "button",
          {
            type: "button",
            "data-go": k,
            "aria-label": `Stage ${k + 1}, ${title}`,
            "aria-current": k === now.s && "step",
          },
          html`<span>${k + 1}</span> <span>${title}</span>`,
        ),
    )}</div>
${element("input", {
  type: "range",
  name: "moment",
  min: 0,
  max: last,
  step: 0.01,
  value: Number(t.toFixed(2)),
  "aria-label": "Stage",
  style: `--done:${((100 * t) / last).toFixed(1)}%`,
  "aria-valuetext": `Stage ${now.s + 1} of ${last}, ${stage.title}`,
})}</div></div>
<div class="caption">${flow.ghosts}<p role="status"><span
data-key="${stage.id}">${caption(stage, now.s)}</span></p></div>
${element(
  "div",
  {
    class: found ? "ledger looks" : "ledger",
    "aria-live": "polite",
    style: `--from:${(100 * crossed(flow) + 4).toFixed(1)}%`,
  },
  html`<div data-key="${stage.id} ${shown} ${found?.step}">${reading(s, flow, now, found)}</div>`,
)}</div>`,
    ...(writes(s) ? [draw(true)] : []),
    draw(false),
    found || s.wrong || s.sheet === null ? given(s, found) : (flow.given ??= given(s)),
    paper,
    weightPanel(s.lens && now.s >= flow.when.softmax && weightOf(flow, s.lens, head)),
    buttons(),
  ];
}

/** Whether the cell of that name exists and has been reached. */
function there(flow, now, name) {
  const [id, i, j] = name.split(".");
  if (id === "T") return i < flow.n_q;
  const block = flow.blocks[id];
  return (
    Boolean(block) &&
    block.stage <= now.s &&
    i < (id === "G" ? flow.n_q : block.rows) &&
    j < block.columns
  );
}

/** Runnable NumPy for what is on the screen. */
export function code(s) {
  const have = matricesOf(s);
  const letters = (name) => MATRICES[name][0];
  const array = (name) => {
    const lines = numpyArray(letters(name), rowsOf(s[name]));
    return name[0] === "b" ? [...lines.slice(0, -1), "], dtype=float)[0]"] : lines;
  };
  const flow = plan(s);
  const from = flow.cross ? "M" : "X";
  const wide = s.w_q[0].length / s.heads;
  return [
    "import numpy as np",
    "",
    ...have.flatMap(array),
    ...(writes(s)
      ? [
          `known = ${JSON.stringify(s.known)}`,
          `text = ${JSON.stringify(flow.s.memory_tokens)}`,
          "M = E[[known.index(word) for word in text]]",
          "X = M[-1:]",
        ]
      : []),
    "",
    "def softmax(scores):",
    "    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))",
    "    return exponentials / exponentials.sum(axis=-1, keepdims=True)",
    "",
    ...(s.layer && !writes(s)
      ? [
          "def layer_norm(x):",
          "    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)",
          "    return (x - mean) / np.sqrt(variance + 1e-5)",
          "",
        ]
      : []),
    "A, Z = [], []  # of each head",
    `for W_Q_h, W_K_h, W_V_h in zip(*(np.split(W, ${s.heads}, axis=1) for W in (W_Q, W_K, W_V))):`,
    `    Q, K, V = X @ W_Q_h, ${from} @ W_K_h, ${from} @ W_V_h`,
    `    scaled = Q @ K.T / np.sqrt(${wide})`,
    ...(s.mask === "causal"
      ? ["    scaled = np.where(np.tri(len(X), dtype=bool), scaled, -np.inf)"]
      : []),
    "    A.append(softmax(scaled))",
    "    Z.append(A[-1] @ V)",
    "A, Z = np.array(A), np.hstack(Z)",
    "print(A.round(6))",
    "print(Z.round(6))",
    ...(s.w_o.length ? ["Z = Z @ W_O", "print(Z.round(6))"] : []),
    ...(writes(s)
      ? [
          `Z = ${s.residual ? "X" : "0 * X"} + ${s.attention ? "Z" : "0 * Z"}`,
          ...(s.feed_forward ? ["Z = Z + np.maximum(0, Z @ W_1 + b_1) @ W_2 + b_2"] : []),
          "print(Z.round(6))",
        ]
      : []),
    ...(s.layer && !writes(s)
      ? [
          "Z = layer_norm(X + Z)",
          "Z = layer_norm(Z + np.maximum(0, Z @ W_1 + b_1) @ W_2 + b_2)",
          "print(Z.round(6))",
        ]
      : []),
    ...(s.vocabulary.length ? ["P = softmax(Z @ W_vocab)", "print(P.round(6))"] : []),
  ];
}

/** The rows of new words: a word that is there keeps its row, another gets one of its own. */
function rowsFor(tokens, old, rows) {
  return tokens.map((token, i) => {
    const k = old[i] === token ? i : old.indexOf(token);
    return k >= 0
      ? rows[k]
      : Array.from(wordVector(token, "embedding", rows[0].length), (x) => Number(x.toFixed(1)));
  });
}

export function live(view) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const flow = () => plan(view.state());
  const time = () => {
    const { s, u } = moment(flow(), view.state());
    return s + u;
  };
  const falls = () => view.root.querySelector(".lies").offsetWidth === 0;
  const sheet = () => view.root.querySelector(falls() ? ".falls svg" : ".lies svg");

  function put(t, more = {}) {
    const { stages } = flow();
    const s = Math.min(Math.max(Math.ceil(t - 1e-6) - 1, 0), stages.length - 1);
    const u = Math.min(Math.max(t - s, 0), 1);
    const { id } = stages[s];
    view.set({ u, ...more, ...(id === view.state().stage ? {} : { stage: id }) });
    return u;
  }

  // Moving: towards a goal, a stage in its own time, at once without motion; playing rests after
  // each.
  let run = 0;
  let aim = null;
  function move(goal, playing) {
    const mine = ++run;
    aim = playing ? null : goal;
    let [last, rest, expected] = [performance.now(), 0, null];
    if (playing) view.set({ playing: true });
    const frame = (stamp) => {
      const state = view.state();
      if (mine !== run) return;
      if ((expected !== null && state.u !== expected) || (playing && !state.playing))
        return void (aim = null);
      const passed = Math.min(Math.max(stamp - last, 0) / 1000, 0.1);
      last = stamp;
      const t = time();
      const { stages } = flow();
      if (rest > 0) rest -= passed;
      else if (goal < t) {
        expected = put(Math.max(t - 3 * passed, goal));
      } else {
        const s = Math.min(Math.floor(t + 1e-6), stages.length - 1);
        const next = Math.min(calm.matches ? s + 1 : t + passed / stages[s].seconds, s + 1, goal);
        expected = put(next);
        if (next === s + 1) {
          rest = calm.matches ? 3.2 : 1.4;
          if (playing) follow();
        }
      }
      if (Math.abs(time() - goal) > 1e-6) requestAnimationFrame(frame);
      else {
        aim = null;
        if (playing) view.set({ playing: false });
      }
    };
    requestAnimationFrame(frame);
  }
  function go(t) {
    const goal = Math.min(Math.max(t, 0), flow().stages.length);
    run++;
    aim = null;
    if (calm.matches || Math.abs(goal - time()) > 1.01) put(goal, { playing: false });
    else {
      view.set({ playing: false });
      move(goal);
    }
    requestAnimationFrame(follow);
  }
  const next = () => go(Math.floor((aim ?? time()) + 1e-6) + 1);
  const back = () => go(Math.ceil((aim ?? time()) - 1e-6) - 1);
  function play() {
    if (view.state().playing) return view.set({ playing: false });
    const end = flow().stages.length;
    if (time() >= end) put(0);
    move(end, true);
  }
  /** Where the river is longer than the window, brings what the stage is about into sight. */
  function follow() {
    const { s } = moment(flow(), view.state());
    const { lit } = flow().stages[s];
    if (!falls() || !lit) return;
    const fresh = lit.filter((id) => flow().blocks[id]?.stage === s);
    const boxes = (fresh.length ? fresh : lit)
      .map((id) => sheet().querySelector(`[data-block="${id}"]`)?.getBoundingClientRect())
      .filter((box) => box?.height);
    if (!boxes.length) return;
    const bar = view.root.querySelector(".top").getBoundingClientRect();
    // The bar stands at the lower edge; of a model that writes above the picture, or beside it.
    const above = writes(view.state());
    const beside = bar.right <= sheet().getBoundingClientRect().left;
    const ceiling = above && !beside ? bar.height + 48 : 0;
    const floor = above ? innerHeight : bar.top;
    const [top, foot] = [
      Math.min(...boxes.map((box) => box.top)) - 60 - ceiling,
      Math.max(...boxes.map((box) => box.bottom)) + 30,
    ];
    const by = foot > floor ? Math.min(foot - floor, top) : Math.min(top, 0);
    if (by) scrollBy({ top: by, behavior: calm.matches ? "auto" : "smooth" });
  }
  view.on("next", "click", next);
  view.on("back", "click", back);
  view.on("play", "click", play);
  view.on("moment", "input", ({ target }) => {
    run++;
    aim = null;
    put(Number(target.value), { playing: false });
  });
  view.on("stages", "click", ({ target }) => {
    const k = Number(target.closest("[data-go]")?.dataset.go ?? NaN);
    if (Number.isNaN(k)) return;
    if (!calm.matches) put(k);
    go(k + 1);
  });
  view.on("heads", "click", ({ target }) => {
    const button = target.closest("[data-head]");
    if (button) view.set({ head: Number(button.dataset.head), lens: null });
  });

  // Looking at a cell: by pointer, by focus, by arrow keys.
  const cellOf = (target) => target.closest?.("[data-cell]")?.dataset.cell ?? null;
  let leaving = 0;
  const glance = (name) => {
    // between two cells nothing flickers
    clearTimeout(leaving);
    if (name !== view.state().look)
      leaving = setTimeout(() => view.set({ look: name }), name ? 0 : 120);
  };
  view.on(
    "river",
    "pointerover",
    (event) => event.pointerType !== "touch" && glance(cellOf(event.target)),
  );
  view.listen(view.root, "pointerout", (event) => {
    if (event.pointerType !== "touch" && !event.relatedTarget?.closest?.("svg[data-part=river]"))
      glance(null);
  });
  view.on("river", "focusin", ({ target }) => {
    const name = cellOf(target);
    clearTimeout(leaving); // of the cell that had the focus before
    if (name && target.matches(":focus-visible")) view.set({ look: name, at: name });
  });
  view.on("river", "focusout", () => glance(null));
  function keep(name) {
    const [id, i, j] = name.split(".");
    const { s } = moment(flow(), view.state());
    const again = view.state().pin === name && view.state().look !== name;
    view.set({ pin: again ? null : name, step: null, at: name });
    if (id === "G" && s >= flow().when.softmax) openMicroscope(view, [Number(i), Number(j)]);
  }
  let touched = null;
  view.on("river", "click", (event) => {
    const gate = event.target.closest("[data-gate]");
    if (gate) return edit(gate.dataset.gate);
    const name = cellOf(event.target);
    if (!name) return view.set({ pin: null, step: null });
    // The first touch looks, the second opens.
    const first = event.pointerType === "touch" && touched !== name;
    touched = name;
    if (first) view.set({ pin: name, step: null, look: null });
    else keep(name);
  });
  /** One product on, or back; after the last one comes the next number. */
  function product(by) {
    const state = view.state();
    const now = moment(flow(), state);
    if (!state.pin || !there(flow(), now, state.pin)) return;
    const { terms } = explain(flow(), state.pin, now, state.head);
    const step = (state.step ?? (by > 0 ? -1 : 0)) + by;
    if (step >= 0 && step < terms.length) return view.set({ step });
    const all = order(flow(), now);
    const pin = all[all.indexOf(state.pin) + by];
    if (!pin) return;
    const after = explain(flow(), pin, now, state.head).terms.length;
    view.set({ pin, look: null, at: pin, step: after ? (by > 0 ? 0 : after - 1) : null });
  }
  view.on("more", "click", () => product(1));
  view.on("less", "click", () => product(-1));

  let walk = {};
  view.listen(
    self,
    "keydown",
    (event) => {
      const { target, key } = event;
      if (!view.root.contains(target) || event.altKey || event.ctrlKey || event.metaKey) return;
      const inside = target.closest("svg[data-part=river]");
      const slider = target.name === "moment";
      const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[
        key
      ];
      const turn =
        { PageDown: next, PageUp: back }[key] ??
        (slider && way && (way[0] > 0 || way[1] < 0 ? next : back)) ??
        (slider && { Home: () => go(0), End: () => go(Infinity) }[key]);
      if ((inside || slider) && turn) {
        event.preventDefault();
        turn();
      } else if (inside && way) {
        event.preventDefault();
        // In a memory's rows, which lie between the lanes, the walk does not lose its own.
        if (walk.at !== target || walk.x !== !way[0]) walk = { from: target, x: !way[0] };
        walk.at = nearest(inside, target, way, walk.from) ?? target;
        walk.at.focus({ preventScroll: true });
      } else if (inside && (key === "Enter" || key === " ")) {
        event.preventDefault();
        keep(cellOf(target));
      } else if (inside && "+-".includes(key)) {
        if (view.state().pin !== cellOf(target)) view.set({ pin: cellOf(target), step: null });
        product(key === "+" ? 1 : -1);
        view.set({ look: null });
      } else if (inside && key === "Escape") view.set({ pin: null, step: null, look: null });
    },
    { capture: true },
  );

  // Typing.
  function edit(name) {
    view.part("given").open = true;
    view.part(`${name}.0.0`)?.focus();
  }
  const number = (text) =>
    text.trim() === "" ? NaN : Number(text.trim().replace(",", ".").replace("−", "-"));
  view.on("given", "input", ({ target }) => {
    const [name, i, j] = target.name.split(".");
    if (j === undefined) return;
    const x = number(target.value);
    if (!(Math.abs(x) <= LARGEST)) return view.set({ wrong: target.name });
    const old = view.state()[name];
    const put = (row) => row.map((was, c) => (c === Number(j) ? x : was));
    view.set({
      wrong: null,
      [name]: Array.isArray(old[0])
        ? old.map((row, r) => (r === Number(i) ? put(row) : row))
        : put(old),
    });
  });
  view.on("given", "focusout", ({ target }) => {
    const [name, i, j] = target.name?.split(".") ?? [];
    if (j !== undefined) target.value = plain(rowsOf(view.state()[name])[i][j]);
    if (view.state().wrong) view.set({ wrong: null });
  });
  for (const [field, tokens, rows] of [
    ["words", "tokens", "x"],
    ["remembered", "memory_tokens", "memory"],
  ]) {
    view.on(field, "input", ({ target }) => {
      const state = view.state();
      const said = words(target.value);
      if (said.length < 1 || said.length > MOST) return view.set({ wrong: field });
      if (writes(state)) {
        const known = said.length < MOST && said.every((word) => state.known.includes(word));
        return view.set(
          known
            ? { ...sheetChanged, wrong: null, tokens: said, typed: said.length }
            : { wrong: field },
        );
      }
      view.set({
        wrong: null,
        pin: null,
        look: null,
        lens: null,
        [tokens]: said,
        [rows]: rowsFor(said, state[tokens], state[rows]),
      });
    });
  }
  view.on("mask", "change", ({ target }) => view.set({ mask: target.value }));
  liveWriter(view, sheetChanged);
  liveMicroscope(view);

  // Only the sheet that is seen is drawn at once.
  const seen = () =>
    view.state().sheet !== (falls() ? "falls" : "lies") &&
    view.set({ sheet: falls() ? "falls" : "lies" });
  const room = new ResizeObserver(seen);
  room.observe(view.root);
  view.on("reset", "click", seen);
}

/** A text that has become longer or shorter has other cells. */
const sheetChanged = { pin: null, look: null, lens: null, step: null, at: "X.0.0" };

/** The cell that lies next in a direction, beside this one or beside where the walk began. */
function nearest(svg, from, [dx, dy], began) {
  const center = (cell) => {
    const box = cell.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const [x, y] = center(from);
  const [u, v] = center(began);
  const far = (cell) => {
    const [a, b] = center(cell);
    const along = (a - x) * dx + (b - y) * dy;
    return along < 3
      ? Infinity
      : along +
          3 *
            (dx
              ? Math.min(Math.abs(b - y), Math.abs(b - v))
              : Math.min(Math.abs(a - x), Math.abs(a - u)));
  };
  const all = Array.from(svg.querySelectorAll("[data-cell]"), (cell) => ({
    cell,
    far: far(cell),
  })).sort((p, q) => p.far - q.far);
  return all[0].far < Infinity ? all[0].cell : null;
}
