/**
 * ParityAtlas: a grid of functions and masks, colored and marked by outcome. A cell opens its row:
 * what torch returns in the mode, what attnlib does, and a call that shows it.
 */
import { element, html, table } from "../kit/markup.js";
import { copy } from "../kit/mount.js";

/** The sign of each outcome, so that it is not known by its color alone, and its meaning. */
const OUTCOMES = {
  equal: ["=", "equal to rounding"],
  "zero weights": ["0", "an empty row gets zero weights, as in attnlib"],
  "equal weights": ["1/n", "an empty row gets equal weights"],
  NaN: ["NaN", "NaN, not a number"],
  "other numbers": ["≠", "different numbers, and no error"],
  random: ["~", "random: dropout"],
  refused: ["×", "refused, with an error"],
};
const NONE = ["", "no such argument"];
const MODES = {
  train: "train",
  "train p=0": "train, no dropout",
  eval: "eval",
  no_grad: "eval, no_grad",
  "no_grad off": "no_grad, fast path off",
};
const AS_IS = { none: "no mask", is_causal: "is_causal alone", "ALiBi bias": "a bias (ALiBi)" };
const FIELDS = [
  "outcome",
  "path",
  "ordinary",
  "padding",
  "empty",
  "float32",
  "float64",
  "error",
  "source",
];

/** What a row says of a case, or null where the function has no such argument. */
export function found(s, name = s.function, mask = s.mask, mode = s.mode) {
  const row = s.rows.find(([f, m, modes]) => f === name && m === mask && modes.includes(mode));
  return row ? Object.fromEntries(FIELDS.map((field, i) => [field, row[i + 3]])) : null;
}

const sign = (row) => (row ? OUTCOMES[row.outcome] : NONE);
const kind = (row) => (row ? row.outcome.replace(" ", "-") : "none");
const titled = (mask) => AS_IS[mask] ?? mask;

// ------------------------------------------------------------------------- The call, as torch has
// it

const N = 5;
const ARGUMENTS = {
  "F.scaled_dot_product_attention": [["attn_mask"], [], ["is_causal"]],
  "nn.MultiheadAttention": [["attn_mask"], ["key_padding_mask"], ["is_causal"]],
  "nn.TransformerEncoderLayer": [["src_mask"], ["src_key_padding_mask"], ["is_causal"]],
  "nn.TransformerEncoder": [["mask"], ["src_key_padding_mask"], ["is_causal"]],
  "nn.TransformerDecoder": [
    ["tgt_mask", "memory_mask"],
    ["tgt_key_padding_mask", "memory_key_padding_mask"],
    ["tgt_is_causal"],
  ],
  "nn.Transformer": [
    ["src_mask", "tgt_mask", "memory_mask"],
    ["src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"],
    ["src_is_causal", "tgt_is_causal"],
  ],
};

/** The arrays of a mask: `may` for all sentences, what is `added`, and which tokens are `real`. */
function masks(mask) {
  const causal = mask.startsWith("causal");
  const emptyRow = mask.startsWith("empty row");
  const short = { padding: 1, "causal and padding": 1, "empty sentence": 0 }[mask];
  const fill = mask.endsWith("-inf") ? "-torch.inf" : mask.endsWith("-1e9") ? "-1e9" : null;
  const lines = [];
  if (causal) lines.push(`may = torch.ones(${N}, ${N}, dtype=torch.bool).tril()`);
  if (emptyRow)
    lines.push(
      `may = torch.ones(${N}, ${N}, dtype=torch.bool)`,
      "may[2] = False  # nothing to attend to",
    );
  if (fill) lines.push(`added = torch.zeros(${N}, ${N}).masked_fill(~may, ${fill})`);
  if (mask === "ALiBi bias")
    lines.push(`at = torch.arange(${N})`, "added = -(at[:, None] - at).abs() / 2");
  if (short !== undefined)
    lines.push(`real = torch.arange(${N}) < torch.tensor([[${N}], [3], [${short}]])`);
  return {
    lines,
    may: (causal || emptyRow) && !fill,
    added: fill !== null || mask === "ALiBi bias",
    short,
  };
}

/** A call on one line if it fits, or with an argument a line. */
function written(name, given, after = "") {
  const short = `    return ${name}(${given.join(", ")})${after}`;
  if (short.length <= 64) return [short];
  return [`    return ${name}(`, ...given.map((one) => `        ${one},`), `    )${after}`];
}

function functionCall(name, mask, mode) {
  const { lines, may, added, short } = masks(mask);
  const train = mode.startsWith("train");
  if (name === "varlen_attn") {
    const ends = { undefined: [0, 5, 10, 15], 1: [0, 5, 8, 9], 0: [0, 5, 8, 8] }[short];
    const given = ["x", "x", "x", "ends", "ends", N, N, may && "window_size=(-1, 0)"].filter(
      Boolean,
    );
    return {
      head: ["import torch", "from torch.nn.attention.varlen import varlen_attn"],
      body: [
        `x = torch.randn(${ends[3]}, 1, 22)  # sentences end to end`,
        `ends = torch.tensor([${ends.join(", ")}], dtype=torch.int32)`,
      ],
      call: written(name, given),
    };
  }
  const body = [`x = torch.randn(3, ${name === "flex_attention" ? "1, " : ""}${N}, 22)`, ...lines];
  if (train) body.push("x.requires_grad_()");
  if (name === "flex_attention") {
    const open = [may && "may[i, j]", short !== undefined && "real[b, j]"]
      .filter(Boolean)
      .join(" & ");
    const score = added ? "score + added[i, j]" : `torch.where(${open}, score, -torch.inf)`;
    const mod =
      open || added ? ["", "def score_mod(score, b, h, i, j):", `    return ${score}`] : [];
    return {
      head: ["import torch", "from torch.nn.attention import flex_attention as flex"],
      body: [...body, ...mod],
      call: written(
        "flex.flex_attention",
        ["x", "x", "x", mod.length && "score_mod=score_mod"].filter(Boolean),
      ),
    };
  }
  const open = [may && "may", short !== undefined && "real[:, None]"].filter(Boolean).join(" & ");
  const attn = added ? "attn_mask=added" : open && `attn_mask=${open}`;
  const given = [
    "x",
    "x",
    "x",
    mask === "is_causal" ? "is_causal=True" : attn,
    mode === "train" && "dropout_p=0.1",
  ];
  return {
    head: ["import torch", "from torch.nn import functional as F"],
    body,
    call: written(name, given.filter(Boolean)),
  };
}

function moduleCall(name, mask, mode) {
  const [kindOf, weights] = name.split(/ (?=with)/);
  const { lines, may, added, short } = masks(mask);
  const names = ARGUMENTS[kindOf.replace("DecoderLayer", "Decoder")];
  const given = [];
  if (mask === "is_causal") given.push(...names[2].map((flag) => `${flag}=True`));
  if (may || added) given.push(...names[0].map((one) => `${one}=${added ? "added" : "~may"}`));
  if (short !== undefined) given.push(...names[1].map((one) => `${one}=~real`));
  const drops = weights ? "train" : "train p=0"; // it drops nothing unless told to; the others do
  const more = `${mode === drops ? `dropout=${weights ? 0.1 : "0.0"}, ` : ""}batch_first=True`;
  const sizes =
    { "nn.MultiheadAttention": "22, 2", "nn.Transformer": "22, 2, 2, 2, 13" }[kindOf] ??
    "22, 2, 13";
  const one = kindOf.match(/coder$/) ? `${kindOf}Layer` : kindOf;
  const make = [`layer = ${one}(${sizes}, ${more})`];
  if (one !== kindOf) make.push(`layer = ${kindOf}(layer, 2)`);
  make.push("layer.train()  # where it starts");
  if (!mode.startsWith("train")) make[make.length - 1] = "layer.eval()";
  const inputs = weights
    ? ["x", "x", "x", `need_weights=${weights === "with weights" ? "True" : "False"}`]
    : /Decoder|Transformer$/.test(kindOf)
      ? ["x", "x"]
      : ["x"];
  const off = mode === "no_grad off" ? ["torch.backends.mha.set_fastpath_enabled(False)"] : [];
  return {
    head: ["import torch", "from torch import nn"],
    body: [...make, ...off, `x = torch.randn(3, ${N}, 22)`, ...lines],
    call: written("layer", [...inputs, ...given], weights ? "[0]" : ""),
  };
}

/** Runnable Python, PyTorch alone, that shows what the cell says. */
export function pythonCode(s) {
  const row = found(s);
  if (!row) return [];
  const { head, body, call } = (s.function.startsWith("nn.") ? moduleCall : functionCall)(
    s.function,
    s.mask,
    s.mode,
  );
  const inner = s.mode.startsWith("no_grad")
    ? ["with torch.no_grad():", "    output = run()"]
    : ["output = run()"];
  const last = {
    random: ["print((output - run()).abs().max())  # not 0: random"],
    "other numbers": ["print((output - run()).abs().amax(-1))  # with gradients"],
  };
  if (row.ordinary === "as if unmasked") {
    inner.push(
      `    plain = ${call
        .join("")
        .trim()
        .replace("return ", "")
        .replace(/, (\w+_)?is_causal=True/g, "")}`,
    );
    last["other numbers"] = ["print((output - plain).abs().max())  # 0: no mask at all"];
  }
  const end = last[row.outcome] ?? ["print(output[..., 0])  # the first number of each token"];
  return [
    ...head,
    "",
    "torch.manual_seed(0)",
    ...body,
    "",
    "def run():",
    ...call,
    "",
    ...inner,
    ...end,
  ];
}

// ------------------------------------------------------------------------------------ The picture

function grid(s) {
  const cell = (name, mask) => {
    const row = found(s, name, mask);
    const [short, long] = sign(row);
    const here = name === s.function && mask === s.mask;
    const modes = new Set(
      s.choices.modes
        .filter((mode) => mode !== "train")
        .map((mode) => kind(found(s, name, mask, mode))),
    );
    const faded = s.outcome !== "all" && row?.outcome !== s.outcome;
    const all = {
      type: "button",
      tabindex: here ? 0 : -1,
      "aria-pressed": String(here),
      class: [kind(row), faded && "faded", modes.size > 1 && "varies"].filter(Boolean).join(" "),
      "aria-label":
        `${short}: ${name}, ${titled(mask)}: ${long}` +
        (modes.size > 1 ? "; other modes differ" : ""),
    };
    return element("td", {}, element("button", all, short));
  };
  const mode = MODES[s.mode];
  const label = `What torch gives in the mode ${mode}: functions in rows, masks in columns`;
  return element(
    "table",
    { class: "grid", role: "grid", "data-part": "grid", "aria-label": label },
    html`<tr><td></td>${s.choices.masks.map(
      (mask) => html`<th scope="col"><span>${titled(mask)}</span></th>`,
    )}</tr>`,
    s.choices.functions.map(
      (name) =>
        html`<tr><th scope="row">${broken(name)}</th>${s.choices.masks.map((mask) =>
          cell(name, mask),
        )}</tr>`,
    ),
  );
}

/** A long name may break before a capital or after an underscore. */
const broken = (name) =>
  name.split(/(?<=_)|(?<=[a-z.])(?=[A-Z])/).map((piece, i) => [i > 0 && html`<wbr>`, piece]);

const SAID = {
  equal: "equal",
  random: "different in each call",
  NaN: "NaN",
  refused: "none",
  differ: "different numbers",
  "as if unmasked": "as if there were no mask",
  "bias as mask": 'every number other than 0 counts as "must not"',
  "zero weights": "zero weights",
  "equal weights": "equal weights",
  "zero output": "zeros in the output",
};
const inWords = (word) =>
  word
    .split("; in float64 ")
    .map((part) => SAID[part] ?? part)
    .join("; in float64 ");

const decimal = (number) => (Number(number) < 0.01 ? number : String(Number(number)));

/**
 * What torch returns in the selected cell: for tokens, padding and empty rows, and which
 * program it runs.
 */
export function facts(s) {
  const row = found(s);
  const given = (word) => (word ? inWords(word) : "–");
  if (!row) return { tokens: "no such argument", padding: "–", "empty rows": "–", program: "–" };
  const off = row.float32 && (row.ordinary === "equal" ? "to" : "off by");
  const far =
    off && `, ${off} ${decimal(row.float32)} in float32, ${decimal(row.float64)} in float64`;
  return {
    tokens: row.error ? `refused: ${row.error}` : inWords(row.ordinary) + far,
    padding: given(row.padding),
    "empty rows": given(row.empty),
    program: row.error ? "–" : row.path === "fast" ? "the fast path" : "the usual one",
  };
}

/** What attnlib does under the same mask, in every mode. */
function ours(mask) {
  if (mask.endsWith("-1e9")) return "the same with these numbers; zero weights with a boolean mask";
  if (mask.startsWith("empty")) return "zero weights, whatever the mode";
  return mask === "ALiBi bias" ? "adds the bias to the scores" : "a softmax over the allowed keys";
}

const THREAD = { issues: "issue", pull: "pull request" };

function detail(s) {
  const row = found(s);
  const [short, long] = sign(row);
  const modes = s.choices.modes.map((mode) => {
    const there = found(s, s.function, s.mask, mode);
    return html`<li class="${mode === s.mode ? "now" : ""}"><span
class="chip ${kind(there)}">${sign(there)[0]}</span> ${MODES[mode]}</li>`;
  });
  const [where, number] = (row?.source ?? "").split("/");
  const link = number
    ? html`<a href="https://github.com/pytorch/pytorch/${where}/${number}">pytorch, ${THREAD[where]}
${number}</a>`
    : "–";
  const { tokens, program, ...rest } = facts(s);
  const lines = { tokens, ...rest, attnlib: row ? ours(s.mask) : "–", program, "met in": link };
  const line = ([name, content]) =>
    html`<p class="${name.replace(" ", "-")}"><span class="what">${name}</span>
<span>${content}</span></p>`;
  return html`<div class="detail" data-part="detail"><p class="name"><b>${broken(s.function)}</b>,
${titled(s.mask)}</p>
<p role="status" data-part="said"><span class="chip ${kind(row)}">${short}</span> ${long}</p>
<ul class="modes" aria-label="This cell in each mode">${modes}</ul>
<div class="facts">${Object.entries(lines).map(line)}</div></div>`;
}

export function picture(s) {
  const mode = (name) =>
    element(
      "button",
      { type: "button", name: "mode", value: name, "aria-pressed": String(name === s.mode) },
      MODES[name],
    );
  const cells = s.choices.functions.flatMap((name) =>
    s.choices.masks.map((mask) => found(s, name, mask)?.outcome),
  );
  const legend = Object.entries(OUTCOMES).map(([name, [short]]) => {
    const count = cells.filter((outcome) => outcome === name).length;
    const all = {
      type: "button",
      name: "outcome",
      value: name,
      "aria-pressed": String(name === s.outcome),
    };
    return element(
      "button",
      all,
      html`<span class="chip ${name.replace(" ", "-")}">${short}</span> ${name} <span
class="number">${count}</span>`,
    );
  });
  const lines = pythonCode(s);
  return [
    html`<div class="switch" role="group" aria-label="Mode">${s.choices.modes.map(mode)}</div>`,
    grid(s),
    html`<div class="legend"><span role="group" aria-label="Show one outcome alone">${legend}</span>
<span class="hint"><i class="dot"></i> another outcome in another mode, dropout aside</span></div>`,
    detail(s),
    html`<div class="call"><pre tabindex="0" aria-label="The call in PyTorch"
data-part="call"><code>${lines.join("\n")}</code></pre>
<p class="buttons"><button type="button" name="copy">Copy</button> <button type="button"
name="reset">Reset</button></p></div>`,
    () =>
      html`<div class="visually-hidden">${table(
        `${s.function}: what it gives, by mask and mode`,
        ["", ...s.choices.modes.map((name) => MODES[name])],
        s.choices.masks.map((mask) => [
          titled(mask),
          ...s.choices.modes.map((name) => sign(found(s, s.function, mask, name))[1]),
        ]),
      )}</div>`,
  ];
}

export function live(view) {
  const pick = (i, j) => {
    const { functions, masks: columns } = view.state().choices;
    view.set({ function: functions[i], mask: columns[j] });
  };
  view.grid("grid", pick);
  view.on("grid", "click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const cell = button.parentNode;
    pick(cell.parentNode.rowIndex - 1, cell.cellIndex - 1);
  });
  view.on("mode", "click", (_, { value }) => view.set({ mode: value }));
  view.on("outcome", "click", (_, { value }) =>
    view.set({ outcome: value === view.state().outcome ? "all" : value }),
  );
  view.on("copy", "click", () => {
    const lines = pythonCode(view.state());
    if (!lines.length) return view.say("There is no such call.");
    copy(view, lines, `Copied ${lines.length} lines of Python.`);
  });
}
