/** The scene "run": requests arrive, caches fill the memory, and users wait. */
import { buttons, element, html, line, select, sheet, slider, table, text } from "../kit/markup.js";
import { LONGEST, PAGE, simulate } from "./simulation.js";

/** The ideas, by their traits. */
export const IDEAS = {
  continuous: "Continuous batching",
  paged: "Paged cache",
  prefixes: "Prefix caching",
  chunked: "Chunked prefill",
  speculative: "Speculative decoding",
  eight_bit: "Cache in 8 bits",
};
/** What an idea needs, without which it changes nothing. */
const NEEDS = { prefixes: "paged", chunked: "continuous" };
const LENGTHS = {
  prompt: "Tokens in a prompt",
  output: "Tokens in an answer",
  shared: "Beginning that all prompts share",
};
const AT_ONCE = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const PLAYED = 8000; // milliseconds of a whole run

const WIDTH = 360;
const LEFT = 44;
const WIDE = 308;
const ROWS = 8; // of the memory
const ROW = 12;
const BINS = 60;
/** The charts, one under the other: the top, the height, powers of ten of the axis. */
const CHARTS = {
  throughput: { top: 152, tall: 64 },
  first: { top: 252, tall: 64, least: -2.5, most: 2.5 },
  between: { top: 352, tall: 64, least: -3, most: 0.5 },
};

// --------------------------------------------------------------------------------- The numbers

const runs = new Map();

/** What a run comes to; the last ones are kept, for a reader who moves along one. */
function ran(s) {
  const names = ["requests", "seed", "rate", "at_once", ...Object.keys(LENGTHS)];
  const key = [...names, ...Object.keys(IDEAS)].map((name) => Number(s[name])).join();
  const known = runs.get(key);
  runs.delete(key);
  runs.set(key, known ?? simulate(s));
  if (runs.size > 16) runs.delete(runs.keys().next().value);
  return runs.get(key);
}

const commas = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");

/** A time in words: 8.1 ms, 250 ms, 1.5 s, 87 s. */
export function duration(time) {
  if (time < 0.01) return `${(1000 * time).toFixed(1)} ms`;
  if (time < 0.9995) return `${(1000 * time).toFixed(0)} ms`;
  return time < 9.95 ? `${time.toFixed(1)} s` : `${commas(time)} s`;
}

// --------------------------------------------------------------------------------- The drawing

const momentOf = ({ server }, at) => {
  const time = (at / 1000) * server.clock;
  let found = server.moments[0];
  for (const moment of server.moments) {
    if (moment.time > time) break;
    found = moment;
  }
  return found;
};

/** A part of the memory as lines over its rows: pages `from` to `to` of all. */
function stripes(pages, from, to) {
  const scale = (ROWS * WIDTH) / pages;
  let d = "";
  let at = from * scale;
  const end = to * scale;
  while (end - at > 0.05) {
    const row = Math.min(Math.floor(at / WIDTH + 1e-9), ROWS - 1);
    const until = row === ROWS - 1 ? end : Math.min(end, (row + 1) * WIDTH);
    d += `M${(at - row * WIDTH).toFixed(1)} ${22 + row * ROW + 5}h${(until - at).toFixed(1)}`;
    at = until;
  }
  return d;
}

/** The memory for caches: one request after the other, with what holds tokens and what does not. */
function memory(s, result) {
  const { pages, prefix: beginning } = result.server;
  const moment = momentOf(result, s.at);
  const [prefixPages, prefixKept] = moment.prefix;
  let at = prefixPages;
  let [filled, empty, marks] = ["", "", ""];
  for (const [, own, kept] of moment.caches) {
    const has = Math.min(Math.max(kept - beginning, 0) / PAGE, own);
    filled += stripes(pages, at, at + has);
    empty += stripes(pages, at + has, at + own);
    const mark = (at + own) * ((ROWS * WIDTH) / pages);
    const row = Math.min(Math.floor(mark / WIDTH - 1e-9), ROWS - 1);
    marks += `M${(mark - row * WIDTH).toFixed(1)} ${22 + row * ROW}v10`;
    at += own;
  }
  const thick = { "stroke-width": 9 };
  return [
    text(`Memory for caches: ${moment.caches.length} requests in it`, 0, 12, "ink", {
      "font-weight": "bold",
    }),
    line(stripes(pages, 0, pages), { ...thick, "stroke-opacity": 0.22 }),
    line(stripes(pages, 0, prefixKept / PAGE), { ...thick, stroke: "var(--key)" }),
    line(filled, { ...thick, stroke: "var(--ink)", "data-part": "filled" }),
    line(empty, { ...thick, stroke: "var(--line)", "stroke-dasharray": "1.5 1.5" }),
    line(marks, { stroke: "var(--page)", "stroke-width": 1 }),
  ];
}

/** The least of 1, 2, 5, 10, ... that is as large. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}

function frame({ top, tall }, title, labels) {
  return [
    text(title, 0, top - 10, "ink", { "font-weight": "bold" }),
    line(`M${LEFT} ${top}v${tall}h${WIDE}`),
    labels.map(([label, y]) => [
      text(label, LEFT - 5, y + 4, "muted", { "text-anchor": "end" }),
      line(`M${LEFT} ${y.toFixed(1)}h${WIDE}`, { "stroke-opacity": 0.35 }),
    ]),
  ];
}

const logarithmic =
  ({ top, tall, least, most }) =>
  (value) => {
    const part = (Math.log10(Math.max(value, 1e-9)) - least) / (most - least);
    return top + tall * (1 - Math.min(Math.max(part, 0), 1));
  };

/** What happens in equal parts of the time: tokens a second, and the longest pass. */
function inBins({ server }) {
  const width = server.clock / BINS;
  const written = Array(BINS).fill(0);
  const longest = Array(BINS).fill(0);
  for (const { start, end, written: tokens } of server.passes) {
    const bin = Math.min(Math.floor(end / width), BINS - 1);
    written[bin] += tokens / width;
    longest[bin] = Math.max(longest[bin], end - start);
  }
  return { written, longest };
}

/** The three curves against the time, and the moment that is shown. */
function charts(s, result) {
  const { server } = result;
  const { written, longest } = inBins(result);
  const x = (time) => LEFT + (WIDE * time) / server.clock;
  const bins = (values, y) =>
    values
      .map((value, i) => [LEFT + (WIDE * (i + 0.5)) / BINS, value, i])
      .filter(([, value]) => value > 0)
      .map(([at, value]) => `${at.toFixed(1)} ${y(value).toFixed(1)}`)
      .join("L");
  const most = roundUp(Math.max(...written));
  const { throughput, first, between } = CHARTS;
  const up = (value) => throughput.top + throughput.tall * (1 - value / most);
  const [yFirst, yBetween] = [first, between].map(logarithmic);
  const dots = server.requests.map(
    (r) => `M${x(r.arrival).toFixed(1)} ${yFirst(r.first - r.arrival).toFixed(1)}h0`,
  );
  const bold = { stroke: "var(--ink)", "stroke-width": 1.6 };
  const moment = LEFT + (WIDE * s.at) / 1000;
  return [
    frame(throughput, "Tokens written a second", [
      ["0", up(0)],
      [commas(most), up(most)],
    ]),
    line(`M${bins(written, up)}`, bold),
    frame(
      first,
      "Time to first token, by arrival",
      [
        ["10 ms", 0.01],
        ["1 s", 1],
        ["100 s", 100],
      ].map(([label, value]) => [label, yFirst(value)]),
    ),
    line(dots.join(""), { ...bold, "stroke-width": 3, "stroke-linecap": "round" }),
    frame(
      between,
      "Time between tokens: the longest pass",
      [
        ["1 ms", 0.001],
        ["30 ms", 0.03],
        ["1 s", 1],
      ].map(([label, value]) => [label, yBetween(value)]),
    ),
    line(`M${bins(longest, yBetween)}`, bold),
    text("0", LEFT, between.top + between.tall + 17, "muted", { "text-anchor": "middle" }),
    text(duration(server.clock), LEFT + WIDE, between.top + between.tall + 17, "muted", {
      "text-anchor": "end",
    }),
    line(
      Object.values(CHARTS)
        .map(({ top, tall }) => `M${moment.toFixed(1)} ${top}v${tall}`)
        .join(""),
      {
        stroke: "var(--query)",
        "stroke-width": 1.5,
      },
    ),
  ];
}

/** What each value would be if one idea alone were switched, which takes as many runs as ideas. */
function effects(s) {
  const cells = ({ throughput, first, between }) =>
    [commas(throughput), duration(first[0]), duration(between[1])].map(
      (value) => html`<td>${value}</td>`,
    );
  const row = ([idea, name]) => {
    const needs = NEEDS[idea];
    if (!s[idea] && needs && !s[needs]) {
      return html`<tr><th scope="row">${name}</th><td colspan="3">needs ${
        needs === "paged" ? "a paged cache" : "continuous batching"
      }</td></tr>`;
    }
    const changed = s[idea] ? `Without ${name.toLowerCase()}` : name;
    return html`<tr><th scope="row">${changed}</th>${cells(ran({ ...s, [idea]: !s[idea] }))}</tr>`;
  };
  return html`<div class="effects"><table><caption>If one thing alone were different</caption>
<tr><td></td><th scope="col">tokens a second</th><th scope="col">first token, median</th>
<th scope="col">between tokens, 99% within</th></tr><tr><th scope="row">As it is</th>${cells(
    ran(s),
  )}</tr>${Object.entries(IDEAS).map(row)}</table></div>`;
}

function picture(s) {
  const result = ran(s);
  const { server, throughput, first, between, most, filled, preempted } = result;
  const idea = ([name, title]) =>
    html`<label class="switch">${element("input", {
      type: "checkbox",
      name,
      checked: s[name],
    })}<span>${title}</span></label>`;
  const length = ([name, title]) =>
    html`<label><span>${title} <b class="number">${s[name]}</b></span>
${slider(name, s, { value: s[name], step: 10 })}</label>`;
  const again = preempted ? html`, ${preempted} ${preempted === 1 ? "was" : "were"} preempted` : "";
  return [
    html`<div class="controls">
<label class="main"><span>Requests a second <b class="number">${s.rate}</b></span>
${slider("rate", s, { value: s.rate })}</label>
<div class="ideas">${Object.entries(IDEAS).map(idea)}</div>
<label class="wide"><span>Requests at once, at most</span>${select(
      "at_once",
      AT_ONCE.map((n) => [n, n === 1 ? "1 request" : `${n} requests`]),
      s.at_once,
    )}</label>
<details class="wide"><summary>Lengths</summary><div class="lengths">
${Object.entries(LENGTHS).map(length)}</div></details></div>`,
    html`<div class="shown"><div class="picture run">${sheet(
      "sheet",
      WIDTH,
      440,
      "The memory for caches at one moment, and below it, against the time, tokens a second, " +
        "the time to first token of each request and the longest pass; the numbers say the same",
      memory(s, result),
      charts(s, result),
    )}</div>
<p class="player">${element(
      "button",
      { type: "button", name: "play" },
      s.playing ? "❚❚ Pause" : "▶ Play",
    )}<label><span class="visually-hidden">Moment that is shown</span>${slider("at", s, {
      value: s.at,
      "aria-valuetext": duration((s.at / 1000) * server.clock),
    })}</label></p></div>`,
    html`<div class="readout">
<p><span class="big">${commas(throughput)}</span><span>tokens a second, until all
${s.requests} requests are answered</span></p>
<p><span class="big">${duration(first[0])}</span><span>to the first token, median; 99% within
<b class="number">${duration(first[1])}</b></span></p>
<p><span class="big">${duration(between[0])}</span><span>between tokens, median; 99% within
<b class="number">${duration(between[1])}</b></span></p>
<p><span class="big">${most}</span><span>requests in the memory at most; of the room they took,
<b class="number">${(100 * filled).toFixed(0)}%</b> held tokens${again}</span></p></div>`,
    () => effects(s),
    html`<div class="foot">${buttons()}<p class="cell">Llama 3.1 8B on one H100, simulated by the
roofline. The memory has room for <b class="number" data-part="room">${commas(
      server.pages * PAGE,
    )}</b> tokens. Solid: it holds tokens. Dotted: it is
taken, but empty. Plain: it is free. The picture fills from the top left, and a shared beginning is
drawn first, in the color of keys. The pages of a request may lie
anywhere; they are drawn together here. Without pages a request takes room for
${commas(LONGEST)} tokens.</p></div>`,
    () =>
      html`<div class="visually-hidden">${table(
        "Requests",
        ["request", "arrives", "first token", "last token"],
        server.requests
          .slice(0, 12)
          .map((r) => [
            String(r.number + 1),
            duration(r.arrival),
            duration(r.first),
            duration(r.last),
          ]),
      )}</div>`,
  ];
}

function code(s) {
  const python = (value) => (typeof value === "boolean" ? (value ? "True" : "False") : value);
  const names = ["requests", "seed", "rate", "at_once", ...Object.keys(LENGTHS)];
  return [
    "from attnlib.serving import Settings, simulate",
    "",
    "settings = Settings(",
    ...[...names, ...Object.keys(IDEAS)].map((name) => `    ${name}=${python(s[name])},`),
    ")",
    "for name, value in simulate(settings).items():",
    "    print(name, value)",
  ];
}

export const run = {
  label: "A simulated server",
  picture,
  code,
  live(view) {
    for (const name of ["rate", ...Object.keys(LENGTHS)]) {
      view.on(name, "input", (event) => view.set({ [name]: Number(event.target.value) }));
    }
    for (const name of Object.keys(IDEAS)) {
      view.on(name, "change", (event) => view.set({ [name]: event.target.checked }));
    }
    view.on("at_once", "change", (event) => view.set({ at_once: Number(event.target.value) }));
    view.on("at", "input", (event) => view.set({ at: Number(event.target.value), playing: false }));
    view.on("play", "click", () => {
      if (view.state().playing) return view.set({ playing: false });
      const { at } = view.state();
      const from = at >= 1000 ? 0 : at;
      const began = performance.now();
      const step = (time) => {
        if (!view.state().playing || !view.root.isConnected) return;
        const now = Math.min(from + (1000 * Math.max(time - began, 0)) / PLAYED, 1000);
        view.set({ at: Math.round(now), playing: now < 1000 });
        requestAnimationFrame(step);
      };
      view.set({ at: from, playing: true });
      requestAnimationFrame(step);
    });
  },
};
