/**
 * A widget, made from what its module exports: drawn while the book is built, brought to life in a
 * page.
 *
 * Only what is below the line "The page" touches the DOM.
 */

import { stepInGrid } from "./keyboard_grid.js";
import { html } from "./markup.js";
import { alike, between, ease } from "./numbers.js";
import { POSE } from "./progress.js";

const GLIDE = 1000; // milliseconds

/**
 * A widget of that name. `bounds` has the traits of its Python class, {name: what it may be, or
 * null}: a list of values, or numbers from `least` to `most`, only `whole` ones if it says so. They
 * are part of every state. The rest is what the widget's module exports:
 *   pageState       a state of the page alone, which no trait holds; nothing unless given
 *   label(state)    its name for those who do not see it
 *   layout          classes that say how its parts stand to each other; may depend on the state
 *   picture(state)  its sections, one element each; a function is a section for the ear alone,
 *                   drawn when things have been quiet for a moment
 *   code(state)     the lines of NumPy behind "Copy as NumPy"
 *   pose(state)     numbers, in arrays, from which the picture is drawn and which can glide; on
 *                   their way `moving`, a state of the page alone, holds them, and else null
 *   shared          what of the state a page's address may hold, beside the traits that say what
 *                   they may be: for each such trait a function that tells of (value, state)
 *                   whether it fits, which narrows what the trait says; false for a trait that
 *                   stays out; false for a widget whose state is an answer
 *   live(view)      listens to the controls
 */
export function widget(name, module, bounds) {
  const words = name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const { label = () => words, layout = "", picture, pose } = module;
  const pageState = { ...module.pageState, ...(pose && { moving: null }), bounds };

  const own = `abh abh-${words.toLowerCase().replaceAll(" ", "-")}`;
  const kind = (state) =>
    [own, typeof layout === "function" ? layout(state) : layout].flat().filter(Boolean).join(" ");

  /** The widget as it stands: what a page shows until it is alive, and what it goes on from. */
  function still(traits) {
    const state = { ...pageState, ...traits };
    const sections = picture(state).map((section) =>
      typeof section === "function" ? section() : section,
    );
    return String(html`<div class="${kind(state)}"><fieldset disabled
aria-label="${label(state)}">${sections}
<p class="message" role="status"></p></fieldset></div>`);
  }

  return {
    ...module,
    bounds,
    still,
    render: ({ model, el }) =>
      mount({ ...module, bounds, pageState, label, kind, still }, model, el),
  };
}

// --------------------------------------------------------------------------------- The page

const keyOf = (node) => node.nodeType === Node.ELEMENT_NODE && node.getAttribute("data-key");

/**
 * Makes `old` what `next` is; what is equal stays, and so do the focus and what a reader types.
 * An element with another data-key is another one: what moved within it has not moved on the page.
 * A text that changes is another text for the same reason.
 */
function morph(old, next) {
  for (const name of next.getAttributeNames()) {
    const value = next.getAttribute(name);
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const name of old.getAttributeNames()) {
    // A reader opens a <details>.
    if (!next.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  let there = old.firstChild;
  for (let child = next.firstChild; child; ) {
    const [after, below] = [child.nextSibling, there?.nextSibling ?? null];
    if (!there) old.append(child);
    else if (there.nodeName !== child.nodeName || keyOf(there) !== keyOf(child))
      there.replaceWith(child);
    else if (child.nodeType === Node.ELEMENT_NODE) morph(there, child);
    else if (there.data !== child.data) there.replaceWith(child);
    [child, there] = [after, below];
  }
  while (there) {
    const after = there.nextSibling;
    there.remove();
    there = after;
  }
  if (!/^(INPUT|SELECT)$/.test(old.nodeName)) return;
  // A control's state is no attribute. A field without a value attribute is the reader's alone.
  if (old.matches("select, input[value]:not([type=radio], [type=checkbox])")) {
    const typing = old.type === "text" && old === document.activeElement;
    if (old.value !== next.value && !typing) old.value = next.value;
  } else if (old.checked !== next.checked) old.checked = next.checked;
}

/**
 * Brings the widget in `el` to life, drawing it there first unless its picture is there already:
 * what the first state looks like does not depend on the browser, or `live` has to redraw.
 *
 * The picture is drawn anew before the next repaint after any change of the state. `live` gets the
 * view:
 *   root                    the widget's element
 *   state()                 all traits, and the state of the page alone
 *   set(changes)            new values for some of them
 *   glide(changes)          the same, and the pose takes a second to get there
 *   part(name)              the element marked data-part="name", or the control named so
 *   on(name, type, handle)  handle(event, element) when it happens in that part
 *   grid(name, pick)        arrow keys walk over the buttons of a table and pick(row, column) each
 *   listen(target, type, handle)  for what happens elsewhere, as long as the widget is there
 *   follow(run)             run() after each change of a trait, from any side
 *   redraw()                draws, although no state has changed
 *   say(text)               a plain message under the widget; "" clears it
 */
function mount({ bounds, pageState, label, kind, picture, still, code, pose, live }, model, el) {
  const traits = () =>
    Object.fromEntries(Object.keys(bounds).map((name) => [name, model.get(name)]));
  const start = { ...pageState, ...traits() };
  const template = document.createElement("template");
  const leaving = new AbortController();
  const shown = []; // the markup of each section on the screen
  const grids = [];
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let mine = pageState;
  let frame = 0;
  let pause = 0;
  let glides = 0;

  if (!el.querySelector(".abh")) el.innerHTML = still(start);
  const root = el.querySelector(".abh");
  const fieldset = root.querySelector("fieldset");

  function show(section, i) {
    const markup = String(section);
    if (shown[i] === markup) return;
    shown[i] = markup;
    template.innerHTML = markup;
    const [old, next] = [fieldset.children[i], template.content.firstElementChild];
    if (old.nodeName === next.nodeName) morph(old, next);
    else old.replaceWith(next);
  }

  function draw() {
    frame = 0;
    const state = view.state();
    const sections = picture(state);
    fieldset.ariaLabel = label(state);
    if (root.className !== kind(state)) root.className = kind(state);
    if (sections.length + 1 !== fieldset.children.length) {
      template.innerHTML = still(state); // another scene has other parts
      fieldset.replaceChildren(...template.content.querySelector("fieldset").childNodes);
      shown.length = 0;
    }
    const quiet = (section) => typeof section === "function";
    sections.forEach((section, i) => quiet(section) || show(section, i));
    clearTimeout(pause);
    pause = setTimeout(
      () => sections.forEach((section, i) => quiet(section) && show(section(), i)),
      300,
    );
  }

  const within = (name) => `[data-part="${name}"], [name="${name}"]`;
  const view = {
    root,
    state: () => ({ ...mine, ...traits() }),
    set(changes) {
      const [ours, theirs] = [{}, Object.entries(changes)];
      for (const [name, value] of theirs) {
        if (name in pageState) ours[name] = value;
        else model.set(name, value);
      }
      // No longer on its way.
      if (pose && theirs.some(([name]) => !(name in pageState))) ours.moving ??= null;
      if (Object.keys(ours).length) {
        mine = { ...mine, ...ours };
        view.redraw();
      }
      if (theirs.some(([name]) => !(name in pageState))) model.save_changes();
    },
    glide(changes) {
      const from = mine.moving ?? pose(view.state());
      const jumps =
        calm.matches || !alike(from, pose({ ...view.state(), ...changes, moving: null }));
      const glide = ++glides;
      const began = performance.now();
      const step = (time) => {
        if (glide !== glides || !mine.moving || leaving.signal.aborted) return;
        const part = (time - began) / GLIDE;
        const moving = part < 1 ? between(from, pose(view.state()), ease(Math.max(part, 0))) : null;
        view.set({ moving });
        if (moving) requestAnimationFrame(step);
      };
      view.set({ ...changes, moving: jumps ? null : from });
      if (!jumps) requestAnimationFrame(step);
    },
    part: (name) => root.querySelector(within(name)),
    on(name, type, handle) {
      root.addEventListener(type, (event) => {
        const element = event.target.closest(within(name));
        if (element) handle(event, element);
      });
    },
    grid: (name, pick) => grids.push({ name, pick }),
    listen: (target, type, handle, options) =>
      target.addEventListener(type, handle, { ...options, signal: leaving.signal }),
    follow(run) {
      model.on("change", run);
      leaving.signal.addEventListener("abort", () => model.off("change", run));
    },
    redraw() {
      frame ||= requestAnimationFrame(draw);
    },
    say(text) {
      fieldset.lastElementChild.textContent = text;
    },
  };

  // JupyterLab takes the arrow keys before a slider sees them; it listens lower than the window.
  view.listen(
    self,
    "keydown",
    (event) => {
      if (!root.contains(event.target) || !/^(Arrow|Home|End|Page)/.test(event.key)) return;
      event.stopPropagation();
      const grid = grids.find(({ name }) => view.part(name)?.contains(event.target));
      if (grid) stepInGrid(event, view.part(grid.name), grid.pick);
    },
    { capture: true },
  );
  view.on("copy", "click", () => code && copy(view, code(view.state())));
  view.on("reset", "click", () => {
    if (pose) view.glide(start);
    else view.set(start);
    view.say("");
  });
  // What the page sets, it plays: see _ext/widgets/static/widget_host.js.
  view.listen(root, POSE, ({ detail }) => (pose ? view.glide(detail) : view.set(detail)));
  model.on("change", view.redraw);
  live(view); // the picture of the start stands there: only what this changes is drawn
  fieldset.disabled = false;
  return () => {
    leaving.abort();
    cancelAnimationFrame(frame);
    clearTimeout(pause);
    model.off("change", view.redraw);
  };
}

/** Copies a text, also where the page may not reach the clipboard by itself. */
export async function copyText(root, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    root.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Copies `lines` of code, and says so. */
export async function copy(view, lines, message = `Copied ${lines.length} lines of NumPy.`) {
  await copyText(view.root, `${lines.join("\n")}\n`);
  view.say(message);
}
