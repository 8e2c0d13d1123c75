/**
 * What Flow shows above the river where its model writes: the text, the probabilities of the next
 * word with what each part has added to its logit, and the feed-forward network as a folded line.
 */
import { element, html, line, select, sheet, text } from "../kit/markup.js";
import { multiply, plain, range } from "../kit/numbers.js";
import { plan, short, words } from "./plan.js";

const MOST = 6;
const PARTS = {
  residual: "word itself",
  attention: "attention",
  feed_forward: "feed-forward",
};

/** How many words of the text were given: those of the prompt that it begins with, or all. */
function prompted({ tokens, prompts, typed }) {
  const begins = prompts
    .map((prompt) => prompt.split(" "))
    .filter((prompt) => prompt.every((word, i) => word === tokens[i]));
  return typed ?? (Math.max(0, ...begins.map((prompt) => prompt.length)) || tokens.length);
}

/** Whether the last word has no row, so that nothing can follow it. */
const ended = (s) => words(s).length < s.tokens.length;

/** What each part adds to the logits after the last word, the logits and their probabilities. */
export function ledger({ s, made }) {
  const parts = [made.own, made.O, made.F].map((rows) => multiply(rows, s.w_vocab)[0]);
  return { parts, logits: made.L[0], probabilities: made.P[0] };
}

/** A number with at most two decimals, and none that is 0. */
const brief = (x) => plain(Number(x.toFixed(2))).replace("-", "−");

/** The most probable next word. */
function nextWord({ s, made }) {
  const [row] = made.P;
  return s.vocabulary[row.indexOf(Math.max(...row))];
}

/**
 * The only number that the feed-forward network changes, to
 * x + gain · max(0, slope · x + bias) + more, and where its line is folded; null if it changes
 * several numbers.
 */
export function fold({ s, made }) {
  const nonzero = (row) => range(row.length).filter((k) => row[k] !== 0);
  if (s.b_1.length !== 1) return null;
  const [into, out] = [nonzero(s.w_1.map(([w]) => w)), nonzero(s.w_2[0])];
  const [column] = into;
  if (into.length !== 1 || out.length > 1 || (out.length && out[0] !== column)) return null;
  if (nonzero(s.b_2).some((k) => k !== column)) return null;
  const [slope, bias, gain] = [s.w_1[column][0], s.b_1[0], s.w_2[0][column]];
  return {
    column,
    slope,
    at: -bias / slope,
    to: (x) => x + gain * Math.max(0, slope * x + bias) + s.b_2[column],
    before: made.N1[0][column],
    after: made.N2[0][column],
  };
}

const named = ({ s }, k) => s.columns[k] ?? `number ${k + 1}`;

export function writer(s, flow) {
  const given = prompted(s);
  const prompt = s.tokens.slice(0, given).join(" ");
  const prompts = s.prompts.includes(prompt) ? s.prompts : [prompt, ...s.prompts];
  const full = s.tokens.length >= MOST;
  const choices = prompts.map((each) => [each, each]);
  return html`<div class="writer" data-part="writer"><div class="text"><label>
<span>Prompt</span>${select("prompt", choices, prompt)}</label>
<p class="written" role="status">${s.tokens.map((word, i) => [
    i > 0 && " ",
    i < given ? word : html`<b>${word}</b>`,
  ])}</p>
<div class="keys">${element(
    "button",
    {
      type: "button",
      name: "write",
      class: "play",
      disabled: ended(s) || full,
      "data-gesture": true,
    },
    ended(s) ? "Complete" : full ? "No more room" : "Write the next word",
  )}<button type="button" name="again">Start again</button></div></div>
<div class="reasons">${account(s, flow)}${folded(flow)}</div></div>`;
}

/** Each next word with what the parts have added to its logit; a switch for each part. */
function account(s, flow) {
  const { parts, logits, probabilities } = ledger(flow);
  const most = probabilities.indexOf(Math.max(...probabilities));
  const [after] = flow.s.tokens;
  const switches = Object.entries(PARTS).map(
    ([name, called]) =>
      html`<th scope="col" class="switch"><label>${element("input", {
        type: "checkbox",
        name,
        checked: s[name],
      })} <span>${called}</span></label></th>`,
  );
  const rows = s.vocabulary.map((word, j) =>
    element(
      "tr",
      { class: j === most && "most" },
      html`<th scope="row">${word}</th>${parts.map((row) => {
        const largest = Math.max(...parts.map((each) => each[j]));
        const decides = j === most && row[j] === largest && row[j] > 0;
        return element("td", { class: decides && "decides" }, brief(row[j]));
      })}<td>${brief(logits[j])}</td><td class="chance">${element("span", {
        class: "share",
        style: `--share:${probabilities[j].toFixed(4)}`,
      })}${probabilities[j].toFixed(2)}</td>`,
    ),
  );
  return html`<div class="account"><table><caption>${
    ended(s) ? "The text is complete. " : ""
  }The next word after <b>${after}</b>: what each part adds to its logit</caption>
<tr><td></td>${switches}<th scope="col">logit</th><th scope="col">probability</th></tr>
${rows}</table></div>`;
}

const [WIDTH, HEIGHT, UPPER, LOWER] = [380, 128, 54, 100];

/** The number line on which the network folds one number of the row. */
function folded(flow) {
  const found = fold(flow);
  const [word] = flow.s.tokens;
  if (!found)
    return html`<div class="fold"><p>The feed-forward network no longer changes one number alone, so
there is no line that it folds.</p></div>`;
  const { column, slope, at, to, before, after } = found;
  const name = named(flow, column);
  const works = flow.s.feed_forward;
  const reach = Math.max(4, Math.ceil(Math.max(...[before, after, at].map(Math.abs))));
  const x = (value) => WIDTH / 2 + (value / reach) * (WIDTH / 2 - 22);
  const step = Math.ceil(reach / 6);
  const ticks = range(2 * reach + 1)
    .map((k) => k - reach)
    .filter((k) => k % step === 0);
  const within = (value) => Math.min(Math.max(value, -reach), reach);
  // The side of the fold that the network moves.
  const side = slope < 0 ? -1 : 1;
  const turned = ticks.filter((k) => side * (k - at) > 0 && Math.abs(to(k)) <= reach);
  const folds = works && Math.abs(at) < reach;
  const moved = Math.abs(after - before) > 1e-9;
  const [was, is] = [brief(before), brief(after)];
  const [network, number] = ["The feed-forward network", `the ${name} of ${word}`];
  const says = !works
    ? `${network} is switched off, so ${number} stays at ${was}.`
    : moved
      ? `${network} brings ${number} from ${was} to ${is}.`
      : `${network} leaves ${number} at ${was}.`;
  const mark = (value, y, kind) =>
    element("circle", { cx: x(value), cy: y, r: 6, class: `mark ${kind}` });
  const [bow, drop] = [26 * side, LOWER - UPPER];
  return html`<div class="fold"><p>${says}</p>${sheet(
    "fold",
    WIDTH,
    HEIGHT,
    `The number line of the ${name}${folds ? `, folded at ${brief(at)}` : ""}: ${was} before ` +
      `the feed-forward network, ${is} after it.`,
    line(`M${x(-reach)} ${UPPER}H${x(reach)}`),
    ticks.map((k) => [
      line(`M${x(k)} ${UPPER - 3}v6`),
      text(short(k), x(k), UPPER - 12, "muted", { "text-anchor": "middle" }),
    ]),
    folds && [
      line(`M${x(at)} ${UPPER}c${bow} 0 ${bow} ${drop} 0 ${drop}H${x(within(to(side * reach)))}`, {
        class: "strip",
      }),
      turned.map((k) => [
        line(`M${x(to(k))} ${LOWER - 3}v6`),
        text(short(k), x(to(k)), LOWER + 19, "muted", { "text-anchor": "middle" }),
      ]),
      text(`folded at ${brief(at)}`, x(at) + bow * 0.9, (UPPER + LOWER) / 2 + 4, "ink", {
        "text-anchor": side < 0 ? "end" : "start",
      }),
    ],
    works && moved && Math.abs(after) <= reach
      ? [
          line(`M${x(after)} ${LOWER}V${UPPER}`, { class: "lands" }),
          mark(before, UPPER, "before"),
          mark(after, LOWER, "before"),
          mark(after, UPPER, "after"),
        ]
      : mark(within(after), UPPER, "after"),
    text(`${name} of ${word}`, x(-reach), 14, "ink"),
  )}</div>`;
}

export function liveWriter(view, changed) {
  const put = (tokens, more) => view.set({ ...changed, tokens, ...more });
  view.on("write", "click", () => {
    const s = view.state();
    if (!ended(s) && s.tokens.length < MOST) put([...s.tokens, nextWord(plan(s))]);
  });
  view.on("again", "click", () => {
    const s = view.state();
    put(s.tokens.slice(0, prompted(s)));
  });
  view.on("prompt", "change", ({ target }) => put(target.value.split(" "), { typed: null }));
  for (const name of Object.keys(PARTS)) {
    view.on(name, "change", ({ target }) => view.set({ [name]: target.checked }));
  }
}
