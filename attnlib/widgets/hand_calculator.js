/**
 * HandCalculator: from X to Z in single multiplications, the operands lit.
 */
import { buttons, element, html, multiply, numpyArray, plain, softmax, transpose } from "./core.js";

const ACROSS = [[0, 1], [1, 0], [0, 1], [1, 0]];
const STRAIGHT = [[1, 0], [0, 1], [1, 0], [0, 1]];

export const defaults = {
  X: [[1, 0, 1, 0], [0, 1, 0, 1]], W_Q: STRAIGHT, W_K: ACROSS, W_V: STRAIGHT, tokens: ["Chai", "piyo"], step: 0,
};

const GIVEN = ["X", "W_Q", "W_K", "W_V"];
const LARGEST = 100;
const CAPTIONS = {
  X: "X", W_Q: html`W<sub>Q</sub>`, W_K: html`W<sub>K</sub>`, W_V: html`W<sub>V</sub>`,
  Q: html`Q = X W<sub>Q</sub>`, K: html`K = X W<sub>K</sub>`, V: html`V = X W<sub>V</sub>`,
  S: html`S = Q K<sup>T</sup>`, D: html`S / √d<sub>k</sub>`, E: html`e<sup>S / √d<sub>k</sub></sup>`,
  A: html`A = e<sup>…</sup> / row sum`, Z: "Z = A V",
};
const ROLES = { W_Q: "query", W_K: "key", W_V: "value", Q: "query", K: "key", V: "value", A: "weight" };
const STAGES = { Q: "Q", K: "K", V: "V", S: "S", D: html`÷√d<sub>k</sub>`, E: html`e<sup>x</sup>`, A: "A", Z: "Z" };

/** Every matrix from Q to Z: D is S divided, E its powers. */
export function compute({ X, W_Q, W_K, W_V }) {
  const [Q, K, V] = [W_Q, W_K, W_V].map((W) => multiply(X, W));
  const S = multiply(Q, transpose(K));
  const D = S.map((row) => row.map((s) => s / Math.sqrt(W_Q[0].length)));
  const E = D.map((row) => row.map(Math.exp));
  const A = D.map(softmax);
  return { Q, K, V, S, D, E, A, Z: multiply(A, V) };
}

/**
 * The steps in order, each an entry (i, j) of a matrix and, for a sum of products, the number k
 * of the product that is being added.
 */
export function steps({ X, W_Q, W_V }) {
  const [n, d_model, d_k, d_v] = [X.length, X[0].length, W_Q[0].length, W_V[0].length];
  const sizes = {
    Q: [d_k, d_model], K: [d_k, d_model], V: [d_v, d_model], S: [n, d_k],
    D: [n, 1], E: [n, 1], A: [n, 1], Z: [d_v, n],
  };
  const all = [];
  for (const [stage, [columns, terms]] of Object.entries(sizes)) {
    for (let i = 0; i < n; i++)
      for (let j = 0; j < columns; j++) for (let k = 0; k < terms; k++) all.push({ stage, i, j, k });
  }
  return all;
}

/** The left and right factor of a sum of products, each with the names of its cells. */
const FACTORS = {
  Q: ["X", (j, k) => ["W_Q", k, j]],
  K: ["X", (j, k) => ["W_K", k, j]],
  V: ["X", (j, k) => ["W_V", k, j]],
  S: ["Q", (j, k) => ["K", j, k]], // Q K^T: the row of a query meets the row of a key
  Z: ["A", (j, k) => ["V", k, j]],
};

/** What a step does: the cells it reads, and the arithmetic in words. */
export function explain(state, matrices, { stage, i, j, k }) {
  const all = { ...state, ...matrices };
  const { D, E } = matrices;
  const name = { D: "S / √d_k", E: "e^x" }[stage] ?? stage;
  const target = `${name} [${i + 1}, ${j + 1}]`;
  const result = plain(all[stage][i][j]);
  if (stage === "D") {
    const d_k = state.W_Q[0].length;
    return { reads: [`S_${i}_${j}`], text: [`${target} = ${plain(all.S[i][j])} / √${d_k} = `, result, ""] };
  }
  if (stage === "E") {
    return { reads: [`D_${i}_${j}`], text: [`${target} = e^${plain(D[i][j])} = `, result, ""] };
  }
  if (stage === "A") {
    const sum = E[i].map(plain).join(" + ");
    const finite = E[i].every(Number.isFinite);
    return {
      reads: E[i].map((_, column) => `E_${i}_${column}`),
      text: finite
        ? [`${target} = ${plain(E[i][j])} / (${sum}) = `, result, ""]
        : [`${target} = `, result, ": e^x is too large here, so the row's maximum is subtracted first"],
    };
  }
  const [left, rightOf] = FACTORS[stage];
  const terms = { S: state.W_Q[0].length, Z: state.X.length }[stage] ?? state.X[0].length;
  const products = Array.from({ length: terms }, (_, t) => {
    const [right, r, c] = rightOf(j, t);
    return { reads: [`${left}_${i}_${t}`, `${right}_${r}_${c}`], a: all[left][i][t], b: all[right][r][c] };
  });
  const written = products.map(({ a, b }) => `${plain(a)} × ${b < 0 ? `(${plain(b)})` : plain(b)}`);
  const sum = products.slice(0, k + 1).reduce((total, { a, b }) => total + a * b, 0);
  const before = written.slice(0, k).map((product) => `${product} + `).join("");
  const after = written.slice(k + 1).map((product) => ` + ${product}`).join("");
  const end = k === terms - 1 ? `${after} = ${result}` : `${after}; so far ${plain(sum)}`;
  return {
    reads: products[k].reads,
    line: products.flatMap((product) => product.reads),
    text: [`${target} = ${before}`, written[k], end],
  };
}

/** Runnable NumPy for what is on the screen. */
export function code(state) {
  return [
    "import numpy as np",
    "",
    ...GIVEN.flatMap((name) => numpyArray(name, state[name])),
    "Q, K, V = X @ W_Q, X @ W_K, X @ W_V",
    "scaled = Q @ K.T / np.sqrt(W_Q.shape[1])",
    "powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))",
    "A = powers / powers.sum(axis=1, keepdims=True)",
    "Z = A @ V",
    "print(A.round(6))",
    "print(Z.round(6))",
  ];
}

/** A matrix as a table, with the names of its tokens; `cell` writes what an entry holds. */
function matrixTable(name, matrix, tokens, lit, cell) {
  const asked = ["S", "D", "E", "A"].includes(name);
  return element(
    "table", { "data-matrix": name },
    html`<caption>${element("b", { class: ROLES[name] }, CAPTIONS[name])}
<span>${matrix.length} × ${matrix[0].length}</span></caption>`,
    asked && html`<tr><td></td>${tokens.map((token) => html`<th scope="col" class="key">${token}</th>`)}</tr>`,
    matrix.map((row, i) => {
      const first = !name.startsWith("W_") && html`<th scope="row">${tokens[i]}</th>`;
      const cells = row.map((x, j) => {
        const at = `${name}_${i}_${j}`;
        return element("td", { class: lit(at), "data-cell": at }, cell(x, at));
      });
      return html`<tr>${first}${cells}</tr>`;
    }),
  );
}

/** The matrix, row and column of an entry of that name. */
const place = (at) => at.match(/^(.+)_(\d)_(\d)$/).slice(1);

/** A cell to type in. */
function entry(x, at) {
  const [name, i, j] = place(at);
  return element("input", {
    type: "text", inputmode: "decimal", autocomplete: "off", name: at, value: plain(x),
    "aria-label": `${name.replace("_", " ")}, row ${+i + 1}, column ${+j + 1}`,
  });
}

export function picture(s) {
  const plan = steps(s);
  const matrices = compute(s);
  const now = plan[s.step];
  const { reads, line = [], text } = explain(s, matrices, now);
  const lit = (at) => {
    const marks = { read: reads.includes(at), line: line.includes(at), made: at === `${now.stage}_${now.i}_${now.j}` };
    return Object.keys(marks).filter((mark) => marks[mark]).join(" ") || false;
  };
  const stage = ([name, label]) =>
    element("button", { type: "button", "data-stage": name, "aria-pressed": String(name === now.stage) }, label);
  const arrow = (name, label, sign, disabled) =>
    element("button", { type: "button", name, "aria-label": label, disabled }, sign);
  const slider = {
    min: 0, max: plan.length - 1, value: s.step, "aria-label": "Step",
    "aria-valuetext": `Step ${s.step + 1}: ${text.join("")}`,
  };
  return [
    html`<div class="stepper">
<div class="stages" role="group" aria-label="Go to a product" data-part="stages">${Object.entries(STAGES).map(stage)}</div>
<div class="main"><span>Step <b class="number">${s.step + 1}</b> of ${plan.length}</span>
<span class="with-value">${arrow("back", "Step back", "◀", s.step === 0)}
${element("input", { type: "range", name: "step", ...slider })}
${arrow("forward", "Step forward", "▶", s.step === plan.length - 1)}</span></div>
<p class="sum" data-part="sum">${text[0]}<b>${text[1]}</b>${text[2]}</p>
</div>`,
    html`<div class="matrices" data-part="given">${GIVEN.map((name) => matrixTable(name, s[name], s.tokens, lit, entry))}</div>`,
    html`<div class="matrices">${Object.keys(STAGES).map((name) =>
      matrixTable(name, matrices[name], s.tokens, lit, plain),
    )}</div>`,
    buttons(),
  ];
}

export function live(view) {
  const go = (step) => view.set({ step: Math.min(Math.max(step, 0), steps(view.state()).length - 1) });
  view.on("step", "input", (event) => go(Number(event.target.value)));
  view.on("back", "click", () => go(view.state().step - 1));
  view.on("forward", "click", () => go(view.state().step + 1));
  view.on("stages", "click", ({ target }) => {
    const stage = target.closest("[data-stage]")?.dataset.stage;
    if (stage) go(steps(view.state()).findIndex((step) => step.stage === stage));
  });
  view.on("given", "input", ({ target }) => {
    const [name, i, j] = place(target.name);
    const text = target.value.trim().replace(",", ".").replace("−", "-");
    const x = Number(text);
    if (text === "" || !(Math.abs(x) <= LARGEST)) {
      view.say(`An entry needs a number from -${LARGEST} to ${LARGEST}; the matrices still show the last one.`);
      return;
    }
    view.say("");
    view.set({ [name]: view.state()[name].map((row, r) => row.map((old, c) => (r === +i && c === +j ? x : old))) });
  });
  view.on("given", "focusout", ({ target }) => {
    const [name, i, j] = place(target.name);
    target.value = plain(view.state()[name][i][j]);
    view.say("");
  });
}
