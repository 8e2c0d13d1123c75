/**
 * A cell of Flow in words: what it is, of which products, and where it goes.
 */
import { range, sum } from "../kit/numbers.js";
import { naming, short, spread, writes } from "./plan.js";

const column = (matrix, j) => matrix.map((row) => row[j]);
const bracketed = (x, digits, first) =>
  x < 0 && !first ? `(${short(x, digits)})` : short(x, digits);

/**
 * What there is to say of the cell named "Q.0.1" (or of a token, "T.0"): a title; lines of pieces
 * of text, each with the role of its number; `terms`, the cells that each product reads; which
 * cells it reads and feeds; the lines and ribbons in between.
 */
export function explain(plan, name, now, head) {
  const { n_q, n_k, names, answers, blocks, when, d_k, d_v, s: given, layer, cross, river } = plan;
  const [id, row, col] = name.split(".");
  const [i, j] = [Number(row), Number(col)];
  const M = plan.matrices[head];
  const digits = Math.max(n_q, n_k) <= 3 ? 6 : 3;
  const found = {
    id,
    title: "",
    lines: [],
    terms: [],
    reads: new Set(),
    feeds: new Set(),
    wires: new Set(),
    ribbons: new Set(),
    value: M[id]?.[i]?.[j],
  };
  const { reads, feeds, ribbons } = found;
  const add = (set, ...cells) => cells.flat().forEach((cell) => set.add(cell));
  const cells = (block, r) =>
    blocks[block] ? range(blocks[block].columns).map((k) => `${block}.${r}.${k}`) : [];
  const along = (...lines) =>
    add(
      found.wires,
      lines.flatMap((line) => [line, `${line}.${i}`]),
    );
  const num = (x) => short(x, digits);
  /** An exponential may be tiny; divided by another tiny one, its first digits count. */
  const exact = (x) =>
    x === 0 || x >= 0.1 || (digits === 6 && x >= 1e-3)
      ? num(x)
      : x < 1e-4
        ? x.toExponential(2).replace("-", "−")
        : x.toPrecision(3);
  let pieces;
  const begin = (label) => found.lines.push({ label, pieces: (pieces = []) });
  const say = (text, role) => pieces.push({ text, role });
  const products = (a, b, roleA, roleB, read) => {
    a.forEach((x, k) => {
      if (k) say(" + ");
      pieces.push(
        { text: bracketed(x, digits, !k), role: roleA, k },
        { text: "·", k },
        { text: bracketed(b[k], digits), role: roleB, k },
      );
      found.terms.push({ reads: read(k), product: x * b[k] });
    });
    found.terms.forEach((term) => add(reads, term.reads));
  };
  const result = (x, role) => {
    say(" = ");
    say(num(x), `${role} result`);
  };
  const who = id === "K" || id === "V" ? answers[i] : names[i];
  /** The name of a number in a row as long as X. */
  const nth = (k) => (given.columns?.length ? given.columns[k] : `number ${k + 1}`);

  const make = {
    T() {
      found.title = who;
      begin();
      if (now.s < when.softmax) return say("keeps to its lane. Its query crosses every key.");
      const share = range(n_k)
        .filter((c) => M.A[i][c] > 0.005)
        .sort((a, b) => M.A[i][b] - M.A[i][a])
        .slice(0, 3);
      say(given.heads > 1 ? `in head ${head + 1} takes ` : "takes ");
      share.forEach((c, k) => {
        if (k) say(k === share.length - 1 ? " and " : ", ");
        say(`${Math.round(100 * M.A[i][c])}%`, "weight");
        say(` from ${!cross && c === i ? "itself" : answers[c]}`);
      });
      say(".");
      for (const block of river) add(reads, cells(block, i));
      if (!cross) add(reads, cells("K", i), cells("V", i));
      add(
        ribbons,
        range(n_k).map((c) => `${i}.${c}`),
      );
      along(
        "in",
        "Q",
        "Qin",
        "A",
        "O",
        "R1",
        "R1add",
        "R1norm",
        "H",
        "F",
        "R2",
        "R2add",
        "R2norm",
        "P",
        "out",
      );
    },
    X() {
      found.title = `${who}, ${nth(j)}${given.columns?.length ? "" : " of its row"}`;
      begin();
      say("given, and learned in a real model: ");
      say(num(found.value), "ink result");
      add(
        feeds,
        cells("Q", i),
        cross ? [] : [cells("K", i), cells("V", i)].flat(),
        layer ? [`N1.${i}.${j}`] : [],
      );
      along("Q", ...(cross ? [] : ["K", "V"]), "R1");
    },
    M() {
      found.title = writes(given)
        ? `${answers[i]}, ${nth(j)}`
        : `${answers[i]} in the memory, number ${j + 1}`;
      begin();
      say(writes(given) ? "given, and learned in a real model: " : "the output of the encoder: ");
      say(num(found.value), "ink result");
      add(feeds, cells("K", i), cells("V", i));
      along("M", "K", "V");
    },
    Q: () => project("Q", "query"),
    K: () => project("K", "key"),
    V: () => project("V", "value"),
    G() {
      found.title = `${names[i]} asks, ${answers[j]} answers`;
      begin("score");
      products(M.Q[i], M.K[j], "query", "key", (k) => [`Q.${i}.${k}`, `K.${j}.${k}`]);
      result(M.S[i][j], "ink");
      add(found.wires, ["Q", `Q.${i}`, `Qin.${i}`, `K.${j}`, `Kin.${j}`]);
      if (now.s >= when.scale) {
        begin("scaled");
        say(`${num(M.S[i][j])} ÷ √${d_k}`);
        result(M.D[i][j], "ink");
      }
      const masked = M.masked[i][j] === -Infinity && now.s >= (when.mask ?? Infinity);
      if (masked) {
        begin("masked");
        say("a later word: ");
        say("−∞", "ink result");
      }
      if (now.s < when.softmax) return;
      share(M.masked[i], n_k > 1 && n_k < 4, "weight", M.A[i][j]);
      add(
        reads,
        range(n_k)
          .map((c) => `G.${i}.${c}`)
          .filter((cell) => cell !== name),
      );
      add(
        feeds,
        range(d_v).map((k) => `Z.${i}.${head * d_v + k}`),
      );
      add(ribbons, `${i}.${j}`);
      along("A");
    },
    Z() {
      const at = Math.floor(j / d_v);
      const { A, V } = plan.matrices[at];
      const head = given.heads > 1 ? `, head ${at + 1}` : "";
      found.title = `${who}’s output${head}, number ${(j % d_v) + 1}`;
      begin();
      products(A[i], column(V, j % d_v), "weight", "value", (k) =>
        at === head ? [`G.${i}.${k}`, `V.${k}.${j % d_v}`] : [],
      );
      result(found.value, "ink");
      if (at === head)
        add(
          ribbons,
          range(n_k).map((c) => `${i}.${c}`),
        );
      add(feeds, cells("O", i), blocks.O ? [] : cells("P", i));
      along("O", "A", "P");
    },
    O: () =>
      rowTimes(
        "Z",
        "w_o",
        "what attention found",
        ["O", "R1add"],
        layer ? `N1.${i}.${j}` : cells("P", i),
      ),
    N1: () => added("X", "O", "R1", "the first", [cells("H", i), `N2.${i}.${j}`]),
    H() {
      begin();
      say("max(0, ");
      rowTimes("N1", "w_1", "hidden number", ["H"], cells("F", i), true);
      say(" + ");
      say(bracketed(given.b_1[j], digits));
      say(")");
      result(found.value, "ink");
    },
    F() {
      begin();
      rowTimes("H", "w_2", "what the network says", ["F", "R2add"], `N2.${i}.${j}`, true);
      if (off("F")) return;
      say(" + ");
      say(bracketed(given.b_2[j], digits));
      result(found.value, "ink");
    },
    N2: () => added("N1", "F", "R2", "the second", cells("P", i)),
    P() {
      begin("logit");
      rowTimes(plan.last, "w_vocab", "", ["P", "out"], [], true);
      result(M.L[i][j], "ink");
      found.title = `After ${who}: ${given.vocabulary[j]}`;
      if (now.s < when.shares) return;
      share(M.L[i], true, "ink", found.value);
      add(
        reads,
        cells("P", i).filter((cell) => cell !== name),
      );
    },
  };
  /** Whether a part of a model that writes is switched off. */
  function off(block) {
    return { O: given.attention, F: given.feed_forward }[block] === false;
  }
  function share(scores, listed, role, value) {
    const exponentials = scores.map(Math.exp);
    const becomes = role === "weight" ? "weight" : "probability";
    begin("exponential");
    if (!exponentials.every(Number.isFinite)) {
      say("e^x is too large here, so the row’s largest is subtracted first");
      begin(becomes);
      return say(num(value), `${role} result`);
    }
    say(`e^${num(scores[j])} = `);
    say(exact(exponentials[j]), "ink result");
    begin(becomes);
    say(
      `${exact(exponentials[j])} ÷ ${
        listed ? `(${exponentials.map(exact).join(" + ")})` : exact(sum(exponentials))
      }`,
    );
    return result(value, role);
  }
  function project(block, role) {
    found.title = `${who}’s ${role}, number ${j + 1}`;
    begin();
    const source = block === "Q" || !cross ? "X" : "M";
    products(M[source][i], column(M[`W_${block}`], j), "ink", role, (k) => [
      `${source}.${i}.${k}`,
      `w_${block.toLowerCase()}.${k}.${head * (block === "V" ? d_v : d_k) + j}`,
    ]);
    result(found.value, role);
    along(block, ...(block === "V" ? [] : [`${block}in`]));
    if (block === "Q")
      add(
        feeds,
        range(n_k).map((c) => `G.${i}.${c}`),
      );
    if (block === "K")
      add(
        feeds,
        range(n_q).map((r) => `G.${r}.${i}`),
      );
    if (block === "V") {
      add(
        feeds,
        range(n_q).map((r) => `Z.${r}.${head * d_v + j}`),
      );
      add(
        ribbons,
        range(n_q).map((r) => `${r}.${i}`),
      );
    }
  }
  function rowTimes(block, w, what, lines, next, open) {
    const part = what.endsWith("number") ? ` ${j + 1}` : `, ${nth(j)}`;
    found.title = `${who}, ${what}${part}`;
    if (!open) begin();
    if (writes(given) && found.value === 0 && off(id)) return say("switched off: 0");
    products(M[block][i], column(given[w], j), "ink", "ink", (k) => [
      `${block}.${i}.${k}`,
      `${w}.${k}.${j}`,
    ]);
    if (!open) result(found.value, "ink");
    add(feeds, next);
    along(...lines);
  }
  function added(old, more, total, which, next) {
    const { mean, root } = spread(M[total][i]);
    const normed = !writes(given);
    found.title = `${who} after ${which} sum${normed ? " and norm" : ""}, ${nth(j)}`;
    begin("sum");
    const was = old === "X" ? M.own : M[old];
    say(`${num(was[i][j])} + ${bracketed(M[more][i][j], digits)}`);
    result(M[total][i][j], "ink");
    if (normed) {
      begin("norm");
      // A small root counts.
      say(`(${short(M[total][i][j], 6)} − mean ${bracketed(mean, 6)}) ÷ ${short(root, 6)}`);
      result(found.value, "ink");
    }
    add(reads, cells(more, i), cells(old, i));
    add(feeds, next.flat());
    along(total, `${total}add`, `${total}norm`);
  }
  make[id]();
  found.to = Array.from(new Set(Array.from(feeds, (cell) => cell.split(".")[0])), (block) =>
    blocks[block] && blocks[block].stage <= now.s ? naming(plan, block, now)[1] : null,
  ).filter(Boolean);
  return found;
}

/** The cells in the order in which a hand would make them, as far as the stage has come. */
export function order({ river, blocks, cross, n_q }, now) {
  const ids = [
    "X",
    ...(cross ? ["M"] : []),
    "Q",
    "K",
    "V",
    ...river.slice(2).filter((id) => id !== "V"),
  ];
  return ids
    .filter((id) => blocks[id].stage <= now.s)
    .flatMap((id) =>
      range(id === "G" ? n_q : blocks[id].rows).flatMap((i) =>
        range(blocks[id].columns).map((j) => `${id}.${i}.${j}`),
      ),
    );
}
