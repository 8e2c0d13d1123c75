/**
 * The scene "letters": what a trained model guesses at each position, and where it looks for it,
 * with its mask off and on.
 */
import { buttons, element, html, sheet, table, text } from "../kit/markup.js";

const SHEET = { width: 360, height: 214, left: 4, tile: 32, high: 34, reads: 26, guesses: 142 };

const run = ({ trial, masked }) => trial[masked ? "on" : "off"];

/** Which guesses are the next letter. */
const isRight = (s) => Array.from(run(s).guesses, (guess, i) => guess === s.trial.letters[i + 1]);

function drawing(s) {
  const { width, height, left, tile, high, reads, guesses } = SHEET;
  const { letters } = s.trial;
  const traced = s.traced;
  const faint = (i) => traced >= 0 && i !== traced && { opacity: 0.25 };
  const { weights, guesses: guessed } = run(s);
  const n = guessed.length;
  const step = (width - 2 * left) / (n + 1);
  const x = (i) => left + (i + 0.5) * step;
  const centered = { "text-anchor": "middle" };
  const square = (i, y, look) =>
    element("rect", { x: x(i) - tile / 2, y, width: tile, height: high, rx: 4, ...look });
  const letter = (character, i, y, role) =>
    text(character, x(i), y + 22, role, { ...centered, "font-size": 16, "font-weight": 600 });
  const plain = { fill: "none", stroke: "var(--line)" };
  const right = isRight(s);
  const correct = right.filter(Boolean).length;
  const mark = (i) =>
    text(right[i] ? "✓" : "✗", x(i), guesses + high + 16, right[i] ? "ink" : "muted", centered);
  return sheet(
    "sheet",
    width,
    height,
    `The letters ${Array.from(letters.slice(0, n)).join(" ")} go in. The guesses of the next ` +
      `letters are ${Array.from(guessed).join(" ")}; ${correct} of ${n} are right.`,
    text("It reads: the letters that go in", left, 16, "ink"),
    weights.map((row, i) =>
      row.map(
        (weight, j) =>
          weight >= 0.02 &&
          element("path", {
            d: `M${x(j).toFixed(1)} ${reads + high}L${x(i).toFixed(1)} ${guesses}`,
            fill: "none",
            stroke: "var(--weight)",
            "stroke-width": 5 * weight,
            "stroke-linecap": "round",
            ...faint(i),
          }),
      ),
    ),
    Array.from(letters.slice(0, n), (character, i) => [
      square(i, reads, plain),
      letter(character, i, reads, "ink"),
    ]),
    square(n, reads, { ...plain, "stroke-dasharray": "3 3" }),
    letter(letters[n], n, reads, "muted"),
    traced >= 0 &&
      run(s).weights[traced]?.map(
        (weight, j) =>
          weight >= 0.5 && square(j, reads, { fill: "none", stroke: "var(--weight)", class: "at" }),
      ),
    Array.from(guessed, (character, i) => [
      square(i, guesses, right[i] ? { fill: "var(--ink)" } : plain),
      letter(character, i, guesses, right[i] ? "page" : "muted"),
      mark(i),
    ]),
    text("It guesses: the letter that comes next", left, height - 4, "ink"),
  );
}

function picture(s) {
  const { learns, writes } = run(s);
  const button = (masked, title) =>
    element(
      "button",
      {
        type: "button",
        name: "masked",
        value: String(masked),
        "aria-pressed": String(masked === s.masked),
        "data-gesture": masked,
      },
      title,
    );
  return [
    html`<div class="controls"><div class="wide"><p class="task">${
      s.masked ? "Now no position can read a later letter." : "Switch the mask on."
    }</p>
<p class="masks" role="group" aria-label="Mask">${button(false, "Mask off")}${button(
      true,
      "Mask on",
    )}</p></div></div>`,
    html`<div class="picture letters">${drawing(s)}</div>`,
    html`<div class="readout" role="status">
<p><span class="big" data-part="learns">${learns}%</span>
<span>of its guesses are right when the whole text goes in, as in training
(positions 1 to ${s.trial.letters.length - 2})</span></p>
<p><span class="big" data-part="writes">${writes}%</span>
<span>of its guesses are right when it writes: there is nothing to copy
(chance alone gives 10%)</span></p>
${buttons()}</div>`,
    () => {
      const { guesses, weights } = run(s);
      const heads = Array.from(guesses, (_, j) => `position ${j + 1}`);
      return html`<div class="visually-hidden">${table(
        "Attention weights: the position that guesses in rows, the letter that is read in columns",
        ["position", ...heads],
        weights.map((row, i) => [i + 1, ...row.map((weight) => weight.toFixed(2))]),
      )}</div>`;
    },
  ];
}

function code(s) {
  const n = run(s).guesses.length;
  return [
    "import numpy as np",
    "",
    `letters = np.array(list("${s.trial.letters}"))`,
    `guesses = np.array(list("${run(s).guesses}"))  # the mask is ${s.masked ? "on" : "off"}`,
    "right = guesses == letters[1:]  # each guess is of the letter that comes next",
    `print(right.sum(), "of ${n} guesses are right")`,
  ];
}

function live(view) {
  view.on("masked", "click", (_, { value }) => view.set({ masked: value === "true" }));
}

export const letters = {
  label: "a model that guesses letters",
  compute: isRight,
  picture,
  code,
  live,
};
