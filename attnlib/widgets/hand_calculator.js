/**
 * HandCalculator: from X to Z in single multiplications, the operands lit.
 */
import { copy, mount, multiply, numpyArray, plain, softmax, transpose } from "./core.js";

const GIVEN = ["X", "W_Q", "W_K", "W_V"];
const LARGEST = 100;
const TRAITS = [...GIVEN, "step"];

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
export function numpyCode(state) {
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

function render({ model, el }) {
  const state = () => Object.fromEntries(TRAITS.map((trait) => [trait, model.get(trait)]));
  const start = state();
  const plan = steps(start); // the shapes never change
  let cells;

  function draw(view) {
    const s = state();
    const matrices = compute(s);
    cells ??= new Map(Array.from(view.root.querySelectorAll("[data-cell]"), (cell) => [cell.dataset.cell, cell]));
    for (const [name, matrix] of Object.entries({ ...s, ...matrices })) {
      if (name === "step") continue;
      matrix.forEach((row, i) =>
        row.forEach((x, j) => {
          const cell = cells.get(`${name}_${i}_${j}`);
          const field = cell.querySelector("input");
          if (!field) cell.textContent = plain(x);
          else if (document.activeElement !== field) field.value = plain(x);
        }),
      );
    }
    const now = plan[s.step];
    const { reads, line = [], text } = explain(s, matrices, now);
    for (const [name, cell] of cells) {
      cell.classList.toggle("read", reads.includes(name));
      cell.classList.toggle("line", line.includes(name));
      cell.classList.toggle("made", name === `${now.stage}_${now.i}_${now.j}`);
    }
    for (const button of view.root.querySelectorAll("[data-stage]")) {
      button.setAttribute("aria-pressed", button.dataset.stage === now.stage);
    }
    const lit = document.createElement("b");
    lit.textContent = text[1];
    view.part("sum").replaceChildren(text[0], lit, text[2]);
    view.put("step", { value: s.step, ariaValueText: `Step ${s.step + 1}: ${text.join("")}` });
    view.put("step_value", { textContent: s.step + 1 });
    view.put("back", { disabled: s.step === 0 });
    view.put("forward", { disabled: s.step === plan.length - 1 });
  }

  const view = mount(model, el, draw);
  const on = (name, event, handle) => view.part(name).addEventListener(event, handle);
  on("step", "input", (event) => view.set({ step: Number(event.target.value) }));
  on("back", "click", () => view.set({ step: Math.max(model.get("step") - 1, 0) }));
  on("forward", "click", () => view.set({ step: Math.min(model.get("step") + 1, plan.length - 1) }));
  on("copy", "click", () => copy(view, numpyCode(state())));
  on("reset", "click", () => {
    view.set(start);
    view.say("");
  });
  view.root.addEventListener("click", ({ target }) => {
    const stage = target.closest("[data-stage]")?.dataset.stage;
    if (stage) view.set({ step: plan.findIndex((step) => step.stage === stage) });
  });
  view.root.addEventListener("input", ({ target }) => {
    const [, name, i, j] = target.name.match(/^(X|W_[QKV])_(\d)_(\d)$/) ?? [];
    if (!name) return;
    const text = target.value.trim().replace(",", ".").replace("−", "-");
    const x = Number(text);
    if (text === "" || !(Math.abs(x) <= LARGEST)) {
      view.say(`An entry needs a number from -${LARGEST} to ${LARGEST}; the matrices still show the last one.`);
      return;
    }
    view.say("");
    view.set({ [name]: model.get(name).map((row, r) => row.map((old, c) => (r === +i && c === +j ? x : old))) });
  });
  view.root.addEventListener("focusout", ({ target }) => {
    if (!target.closest("[data-cell]")) return;
    view.say("");
    view.redraw();
  });
  return view.end;
}

export default { render };
