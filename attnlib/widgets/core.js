/**
 * What the widgets share: attention on plain arrays, then the few pieces of a page.
 *
 * A matrix is an array of rows. Everything above the line "The page" is pure: numbers in,
 * numbers out, held against attnlib by the tests. Only what stands below touches the DOM.
 */

/** S[i][j], the dot product of the first d entries of query i and key j. Eq. (3), chapter 2. */
export function dotProducts(queries, keys, d) {
  return queries.map((query) =>
    keys.map((key) => {
      let sum = 0;
      for (let k = 0; k < d; k++) sum += query[k] * key[k];
      return sum;
    }),
  );
}

/** A B for matrices: rows of A meet columns of B. */
export function multiply(a, b) {
  return a.map((row) => b[0].map((_, j) => row.reduce((sum, x, k) => sum + x * b[k][j], 0)));
}

export function transpose(a) {
  return a[0].map((_, j) => a.map((row) => row[j]));
}

/** Softmax of one row; -Infinity is a blocked key, and a row of nothing else becomes zeros. */
export function softmax(row) {
  const top = Math.max(...row);
  if (top === -Infinity) return row.map(() => 0);
  const powers = row.map((score) => Math.exp(score - top)); // unchanged by the shift, cannot overflow
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/** Which query may attend to which key: n rows of n booleans. */
export function allowed(mask, n, { length, width }) {
  const may = {
    none: () => true,
    causal: (i, j) => j <= i,
    padding: (i, j) => j < length,
    both: (i, j) => j <= i && j < length,
    window: (i, j) => Math.abs(i - j) <= width,
  }[mask];
  return Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => may(i, j)));
}

/** How spread out a row of weights is, in nats: 0 for a single weight of 1, ln n for n equal ones. */
export function entropy(row) {
  return row.reduce((sum, weight) => (weight > 0 ? sum - weight * Math.log(weight) : sum), 0);
}

/**
 * d numbers for a word, mean 0 and variance 1, always the same for the same word and role:
 * a counter started at a hash of the letters (FNV-1a), each count stirred (Murmur3's finish).
 */
export function wordVector(word, role, d) {
  let seed = 0x811c9dc5;
  for (const letter of `${role}:${word}`.split("")) {
    seed = Math.imul(seed ^ letter.charCodeAt(0), 0x01000193);
  }
  return Float64Array.from({ length: d }, (_, k) => {
    let bits = seed + Math.imul(k, 0x9e3779b9);
    bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
    bits = (bits ^ (bits >>> 16)) >>> 0;
    return Math.sqrt(12) * ((bits + 0.5) / 2 ** 32 - 0.5);
  });
}

/** The words of a sentence. */
export function words(sentence) {
  return sentence.split(/[ \t\r\n]+/).filter((word) => word !== "");
}

/** A number as a person writes it: at most six decimals, no trailing zeros. */
export function plain(x) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "-∞";
  if (Math.abs(x) >= 1e6) return x.toExponential(3);
  return String(Number(x.toFixed(6)) + 0); // + 0 turns -0 into 0
}

/** A matrix as a NumPy literal, one row a line. */
export function numpyArray(name, rows, digits = 17) {
  const number = (x) => String(Number(x.toPrecision(digits)));
  const lines = rows.map((row) => `    [${Array.from(row, number).join(", ")}],`);
  return [`${name} = np.array([`, ...lines, "], dtype=float)"];
}

// ------------------------------------------------------------------------------- The page

/** The value of a palette role where `element` stands, as "#rrggbb". */
export function colour(element, role) {
  return getComputedStyle(element).getPropertyValue(`--${role}`).trim() || "#808080";
}

/** The ink that can be read on a cell of this weight; the thresholds are those of attnlib.palette. */
export const cellInk = (weight) => (weight < 0.635 ? "cell-low" : weight < 0.845 ? "cell-mid" : "cell-high");

/** The text of a token cut to fit `width` units of the drawing. */
export function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let cut = Array.from(text);
  while (cut.length > 1 && context.measureText(cut.join("") + "…").width > width) cut.pop();
  return cut.join("") + "…";
}

/**
 * Puts a widget's markup into `el`, alive.
 *
 * `draw(view)` shows the model's state; it runs before the next repaint after any change of the
 * state, the theme or the width. Returns the view:
 *   part(name)      the element marked data-part="name", or the control named so
 *   put(name, ...)  sets what differs of a part's properties: an equal text would be laid out anew
 *   set(changes)    new values for traits
 *   say(text)       a plain message under the widget; "" clears it
 *   later(task)     runs a task once things have been quiet for a moment
 *   end()           lets go of everything outside `el`
 */
export function mount(model, el, draw) {
  el.innerHTML = model.get("_markup");
  const root = el.firstElementChild;
  const fieldset = root.querySelector("fieldset");
  fieldset.disabled = false;
  const parts = new Map();
  let frame = 0;
  let pause = 0;

  const view = {
    root,
    part(name) {
      if (!parts.has(name)) {
        parts.set(name, root.querySelector(`[data-part="${name}"]`) ?? fieldset.elements[name]);
      }
      return parts.get(name);
    },
    put(name, properties) {
      const element = view.part(name);
      for (const [key, value] of Object.entries(properties)) {
        if (String(element[key]) !== String(value)) element[key] = value;
      }
    },
    set(changes) {
      for (const [trait, value] of Object.entries(changes)) model.set(trait, value);
      model.save_changes();
    },
    say(text) {
      root.querySelector(".message").textContent = text;
    },
    later(task) {
      clearTimeout(pause);
      pause = setTimeout(task, 300);
    },
    redraw() {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        draw(view);
      });
    },
    end() {
      cancelAnimationFrame(frame);
      clearTimeout(pause);
      model.off("change", view.redraw);
      theme.disconnect();
      size.disconnect();
      system.removeEventListener("change", view.redraw);
      removeEventListener("keydown", keepKeys, true);
    },
  };

  // JupyterLab takes the arrow keys before a slider sees them; it listens lower than the window.
  const keepKeys = (event) => {
    if (root.contains(event.target) && /^(Arrow|Home|End|Page)/.test(event.key)) event.stopPropagation();
  };
  addEventListener("keydown", keepKeys, true);
  const theme = new MutationObserver(view.redraw);
  theme.observe(document.body, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", view.redraw);
  const size = new ResizeObserver(view.redraw);
  size.observe(root);
  model.on("change", view.redraw);
  draw(view);
  return view;
}

/** Copies `lines` of code, also where the page may not reach the clipboard by itself. */
export async function copy(view, lines, said = `Copied ${lines.length} lines of NumPy.`) {
  const code = lines.join("\n") + "\n";
  try {
    await navigator.clipboard.writeText(code);
  } catch {
    const area = document.createElement("textarea");
    area.value = code;
    view.root.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  view.say(said);
}

/** Shows in `status` the line of that name that waits beside it, see reserved() in still.py; "" clears it. */
export function tell(status, name) {
  const line = Array.from(status.parentElement.children).find((child) => child.dataset.line === name);
  if (status.textContent === (line?.textContent ?? "")) return; // it would be read out anew
  status.replaceChildren(...(line ? line.cloneNode(true).childNodes : []));
}

// ------------------------------------------------------------------ The reader's progress

const STORE = "attention-by-hand";
const CHANGED = "attention-by-hand:progress";

/** The ids of what was answered right in this browser; null where it lets nothing be kept. */
export function progress() {
  try {
    const text = localStorage.getItem(STORE);
    try {
      const { right } = JSON.parse(text);
      return right.filter((id) => typeof id === "string");
    } catch {
      return []; // nothing yet, or not ours
    }
  } catch {
    return null;
  }
}

/** Keeps one more id; false where the browser forbids it or has no room. */
export function record(id) {
  const known = progress();
  if (known?.includes(id)) return true;
  try {
    localStorage.setItem(STORE, JSON.stringify({ right: [...known, id] }));
  } catch {
    return false;
  }
  dispatchEvent(new Event(CHANGED));
  return true;
}

/** Forgets everything; false where nothing could be kept. */
export function erase() {
  try {
    localStorage.removeItem(STORE);
  } catch {
    return false;
  }
  dispatchEvent(new Event(CHANGED));
  return true;
}

/** Redraws when the progress changes, here or in another tab; returns how to let go of the view. */
export function followProgress(view) {
  for (const event of ["storage", CHANGED]) addEventListener(event, view.redraw);
  return () => {
    for (const event of ["storage", CHANGED]) removeEventListener(event, view.redraw);
    view.end();
  };
}
