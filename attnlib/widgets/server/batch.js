/** The scene "pass": what one pass fetches and computes, and how many tokens come out of it. */
import { buttons, element, html, line, sheet, table, text } from "../kit/markup.js";
import { onePass } from "./simulation.js";

const HELD = 1000;
const PROMPT = 1000;
const STOPS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

const LEFT = 80;
const WIDE = 256;
const LONGEST = 20; // milliseconds
const CHART = { top: 214, tall: 126, least: 1.5, most: 4.5 }; // powers of ten of tokens a second

const commas = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
const ms = (time) => `${(1000 * time).toFixed(1)} ms`;
const usersOf = (n) => (n === 1 ? "1 user" : `${n} users`);

/** How much more than for one user; nothing for one. */
const times = (factor, what) =>
  factor < 1.005 ? "" : `: ${factor.toFixed(1)} times as ${what} as for one`;

const of = (s) => 2 ** (s.moving?.[0] ?? Math.log2(s.users));

const across = (time) => (WIDE * Math.min(1000 * time, LONGEST)) / LONGEST;

function bar(y, name, time, role, from = 0, more = {}) {
  return element("rect", {
    x: LEFT + across(from),
    y,
    width: Math.max(across(time), 0.7),
    height: 15,
    fill: `var(--${role})`,
    "data-bar": name,
    ...more,
  });
}

/** A pass: the bars of what it fetches and of what it computes. */
function bars(y, title, found) {
  const parameters = found.fetching - found.caches;
  return [
    text(title, 0, y, "ink", { "font-weight": "bold" }),
    text("fetching", 0, y + 21, "muted"),
    bar(y + 9, "parameters", parameters, "ink"),
    bar(y + 9, "caches", found.caches, "key", parameters),
    text("computing", 0, y + 41, "muted"),
    bar(y + 29, "computing", found.computing, "weight"),
    line(`M${(LEFT + across(found.seconds)).toFixed(1)} ${y + 6}v41`, {
      stroke: "var(--ink)",
      "stroke-dasharray": "3 2",
    }),
  ];
}

const x = (users) => LEFT + (WIDE * Math.log2(users)) / 8;

const y = (rate) => {
  const part = (Math.log10(rate) - CHART.least) / (CHART.most - CHART.least);
  return CHART.top + CHART.tall * (1 - part);
};

/** Tokens a second against users: of all together, and of each. */
function rates(users) {
  const { top, tall } = CHART;
  const rate = (n) => n / onePass(n, HELD, PROMPT).writing.seconds;
  const curve = (of, more) =>
    line(`M${STOPS.map((n) => `${x(n).toFixed(1)} ${y(of(n)).toFixed(1)}`).join("L")}`, {
      stroke: "var(--ink)",
      "stroke-width": 2,
      ...more,
    });
  const each = (n) => rate(n) / n;
  const dot = (of) =>
    element("circle", { cx: x(users), cy: y(of(users)), r: 4.5, fill: "var(--ink)" });
  return [
    text("Tokens a second, against users at once", 0, top - 14, "ink", { "font-weight": "bold" }),
    [100, 1000, 10000].map((at) => [
      text(commas(at), LEFT - 6, y(at) + 4, "muted", { "text-anchor": "end" }),
      line(`M${LEFT} ${y(at).toFixed(1)}h${WIDE}`, { "stroke-opacity": 0.4 }),
    ]),
    [1, 4, 16, 64, 256].map((n) =>
      text(String(n), x(n), top + tall + 16, "muted", { "text-anchor": "middle" }),
    ),
    line(`M${LEFT} ${top}v${tall}h${WIDE}`),
    curve(rate),
    curve(each, { "stroke-dasharray": "5 3" }),
    text("all users together", LEFT + 8, y(5200), "ink"),
    text("each user", x(5), y(each(5)) - 8, "ink"),
    dot(rate),
    dot(each),
  ];
}

function picture(s) {
  const users = of(s);
  const whole = Math.round(users);
  const { writing, reading } = onePass(users, HELD, PROMPT);
  const alone = onePass(1, HELD, PROMPT).writing.seconds;
  const away = STOPS.map((n) => Math.abs(n - s.users));
  const rate = users / writing.seconds;
  return [
    html`<div class="controls"><label class="main"><span>Users at once
<b class="number">${whole}</b></span>${element("input", {
      type: "range",
      name: "users",
      min: 0,
      max: STOPS.length - 1,
      value: away.indexOf(Math.min(...away)),
      "aria-valuetext": usersOf(s.users),
    })}</label></div>`,
    html`<div class="picture pass">${sheet(
      "sheet",
      360,
      362,
      "What a pass fetches and computes, in milliseconds, and tokens a second against users; " +
        "the numbers beside it say the same",
      bars(12, `Reading a prompt of ${commas(PROMPT)} tokens`, reading),
      bars(86, `Writing one token for ${usersOf(whole)}`, writing),
      [0, 5, 10, 15, 20].map((at) =>
        text(at === LONGEST ? "20 ms" : String(at), LEFT + across(at / 1000), 152, "muted", {
          "text-anchor": "middle",
        }),
      ),
      line(`M${LEFT} 138h${WIDE}`),
      text("fetching: ", 0, 174, "muted"),
      element("rect", { x: LEFT, y: 165, width: 10, height: 10, fill: "var(--ink)" }),
      text("parameters", LEFT + 15, 174, "muted"),
      element("rect", { x: LEFT + 104, y: 165, width: 10, height: 10, fill: "var(--key)" }),
      text("keys and values", LEFT + 119, 174, "muted"),
      rates(users),
    )}</div>`,
    html`<div class="readout">
<p><span class="big">${ms(writing.seconds)}</span><span>for a token of ${usersOf(whole)}${times(
      writing.seconds / alone,
      "long",
    )}</span></p>
<p><span class="big">${commas(rate)}</span><span>tokens a second for all together${times(
      rate * alone,
      "many",
    )}</span></p>
<p><span class="big">${commas(rate / users)}</span><span>tokens a second for each</span></p>
${buttons()}</div>`,
    html`<p class="cell">Llama 3.1 8B on one H100, with 1,000 tokens in each cache. Fetching and
computing go on at the same time, so a pass ends when its longer bar ends (dashed). The times follow
from the published numbers of the processor.</p>`,
    () =>
      html`<div class="visually-hidden">${table(
        "One pass",
        ["users", "milliseconds", "tokens a second"],
        STOPS.map((n) => {
          const { seconds } = onePass(n, HELD, PROMPT).writing;
          return [String(n), (1000 * seconds).toFixed(1), commas(n / seconds)];
        }),
      )}</div>`,
  ];
}

function code(s) {
  return [
    "from attnlib.serving import H100, LLAMA_8B, pass_work, seconds",
    "",
    `users, held = ${s.users}, ${HELD}`,
    "kept = users * held  # tokens whose keys and values are fetched",
    "work = pass_work(LLAMA_8B, users, users, kept, kept, LLAMA_8B.cache_bytes())",
    "time = seconds(H100, work)",
    'print("milliseconds:", 1000 * time)',
    'print("tokens a second:", users / time)',
  ];
}

export const batch = {
  label: "One pass for many users",
  compute: (s) => onePass(s.users, HELD, PROMPT),
  picture,
  code,
  live(view) {
    view.on("users", "input", (event) => view.set({ users: STOPS[event.target.value] }));
  },
};
