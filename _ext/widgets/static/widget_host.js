/**
 * Brings the widgets of a static page to life: no kernel, no network, also from file://.
 *
 * Each slot holds a picture and the state in which it was drawn; the widget's module goes on from
 * there. It arrives as text, because a page opened from disk may not import a file but may import
 * a blob. So does what several widgets import: it becomes one module for all of them, whose address
 * takes the place of "./kit.js". If a module fails, the picture stays as it is, with a note.
 *
 * What a reader has set stands behind # in the page's address, where it survives a reload and the
 * way back, and can be sent to others: #plane.sentence=money&plane.asks=1, behind a heading's
 * anchor if there is one. The second Plane of a page is plane-2. What is not as Python would accept
 * it, or what the widget cannot draw, is as if it were not there.
 *
 * "Share" below a picture brings its menu (attnlib/widgets/kit/share.js): it is loaded only then.
 */

// The build puts the value in the place of this line (_ext/assets.py).
import { PLAY, POSE } from "../../../attnlib/widgets/kit/progress.js";

(() => {
  const ROOT = new URL("..", document.currentScript.src); // of the site
  const files = new Map(); // what several widgets import: name of a file, its text
  const places = new Map(); // and its address
  const sources = new Map();
  const modules = new Map();
  const constants = new Map();

  self.registerFile = (file, source) => files.set(file, source);

  /** `same` has the traits that no slot says, because they are the same in all. */
  self.registerWidget = (name, source, same = {}) => {
    sources.set(name, source);
    constants.set(name, same);
  };

  /** The address of a text as a module, after those of what it imports. */
  function addressOf(source) {
    const linked = source.replace(/(?<=\bfrom )"\.\/(\w+)\.js"/g, (_, file) =>
      JSON.stringify(placeOf(file)),
    );
    return URL.createObjectURL(new Blob([linked], { type: "text/javascript" }));
  }

  /** The address of a file that several widgets import. */
  function placeOf(file) {
    // None: a view that the page does not show.
    if (!places.has(file)) places.set(file, addressOf(files.get(file) ?? ""));
    return places.get(file);
  }

  /** Such a file for a script of the page: the widgets' own module, not a second one. */
  self.importShared = (file) => import(placeOf(file));

  function load(name) {
    if (!modules.has(name)) {
      const url = addressOf(sources.get(name));
      modules.set(
        name,
        import(url).finally(() => URL.revokeObjectURL(url)),
      );
    }
    return modules.get(name);
  }

  /** The part of a Jupyter widget model that a front end without a kernel needs. */
  class Model {
    constructor(traits, save) {
      this.traits = traits;
      this.listeners = new Map();
      this.save_changes = save;
    }
    get(trait) {
      return this.traits[trait];
    }
    set(trait, value) {
      if (this.traits[trait] === value) return;
      this.traits[trait] = value;
      this.#tell(`change:${trait}`);
      this.#tell("change");
    }
    on(event, listener) {
      this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(listener));
    }
    off(event, listener) {
      this.listeners.get(event)?.delete(listener);
    }
    #tell(event) {
      for (const listener of [...(this.listeners.get(event) ?? [])]) listener();
    }
  }

  // ------------------------------------------------------------------------- the address

  const PAUSE = 200; // milliseconds between two changes of the address: browsers limit them
  const LONGEST = 2000; // letters of one setting
  const MOST = 100; // settings of one address: no page has more
  // A number that is none, in an attribute that places or shapes a part of a picture.
  const PLACING = "d|points|style|transform|viewBox|width|height|opacity|[cr]?[xy][12]?|r";
  const BROKEN = new RegExp(String.raw`\s(?:${PLACING})="[^"]*\b(?:NaN|undefined)\b`);
  const alive = new Map(); // name of a slot: its model, how it began, and what may be set
  let settings = new Map(); // name of a slot: {trait: its value as text}
  let anchor = "";
  let waiting = 0;

  /** What the address says: an anchor, and settings by slot and trait. */
  function parsed(hash) {
    const [first, ...rest] = hash.slice(1).split("&", MOST);
    const found = new Map();
    for (const part of [first, ...rest]) {
      const [, slot, trait, text] = /^([a-z0-9-]+)\.(\w+)=(.*)$/s.exec(part) ?? [];
      if (!slot || text.length > LONGEST) continue;
      try {
        const said = decodeURIComponent(text.replaceAll("+", " "));
        found.set(slot, { ...found.get(slot), [trait]: said });
      } catch {} // half a letter
    }
    return { anchor: first.includes("=") ? "" : first, settings: found };
  }

  /** A value in few readable signs, and back; the start says of which kind it is. */
  const brief = (x) => (typeof x === "number" ? Number(x.toPrecision(6)) : x);
  const texted = (value) =>
    typeof value === "string" ? value : JSON.stringify(value, (_, x) => brief(x));
  const valued = (text, start) => (typeof start === "string" ? text : JSON.parse(text));
  const encoded = (text) =>
    encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd")) // half a letter has no code
      .replaceAll("%20", "+")
      .replace(/%(?:2C|3A|5B|5D|7B|7D)/g, decodeURIComponent);

  /** Whether Python, too, would take the value, as far as the trait says what it may be. */
  function within(value, bound) {
    if (!bound) return true;
    if (Array.isArray(bound)) return bound.includes(value);
    return (
      typeof value === "number" &&
      value >= bound.least &&
      value <= bound.most &&
      !(bound.whole && value % 1)
    );
  }

  /** Whether a trait may have this value in this state: a number stays one, not "4" or [4]. */
  function fits(trait, value, state, { checks, bounds, start }) {
    if (typeof start[trait] === "number" && typeof value !== "number") return false;
    return within(value, bounds[trait]) && (checks[trait]?.(value, state) ?? true);
  }

  /** The settings that fit, as values: each by itself, then all of them together in a picture. */
  function fitting(texts, widget) {
    const { shared, start, draw } = widget;
    const found = {};
    for (const trait of shared.filter((name) => Object.hasOwn(texts, name))) {
      try {
        const value = valued(texts[trait], start[trait]);
        if (fits(trait, value, { ...start, ...found }, widget)) found[trait] = value;
      } catch {} // no value at all, or of another kind
    }
    const state = { ...start, ...found };
    try {
      const present = shared.filter((trait) => Object.hasOwn(state, trait));
      const together = present.every((trait) => fits(trait, state[trait], state, widget));
      if (together && !BROKEN.test(draw(state))) return found;
    } catch {} // the widget cannot draw it
    return {};
  }

  /** Settings as the address has them. */
  const spelled = (slot, texts) =>
    Object.entries(texts).map(([trait, text]) => `${slot}.${trait}=${encoded(text)}`);

  function write() {
    waiting = 0;
    const parts = Array.from(settings).flatMap(([slot, texts]) => spelled(slot, texts));
    const hash = [anchor, ...parts].filter(Boolean).join("&");
    if (hash === location.hash.slice(1)) return;
    try {
      history.replaceState(
        history.state,
        "",
        hash ? `#${hash}` : location.pathname + location.search,
      );
    } catch {} // too many at once: the next one says it all
  }

  /** What differs from the start: {trait: its value as text}. */
  function differing(slot) {
    const { model, start, shared } = alive.get(slot);
    const texts = shared.map((trait) => [trait, texted(model.get(trait))]);
    return Object.fromEntries(texts.filter(([trait, text]) => text !== texted(start[trait])));
  }

  /** Puts what differs from the start into the address. */
  function save(slot) {
    const texts = differing(slot);
    if (Object.keys(texts).length) settings.set(slot, texts);
    else settings.delete(slot);
    if (!waiting) waiting = setTimeout(write, PAUSE);
  }

  function restore(slot) {
    const widget = alive.get(slot);
    const values = fitting(settings.get(slot) ?? {}, widget);
    for (const [trait, value] of Object.entries(values)) widget.model.set(trait, value);
  }

  /** Sets a picture as an address would, but before the reader's eyes: a guess plays it. */
  addEventListener(PLAY, ({ detail }) => {
    for (const [slot, texts] of parsed(`#${detail}`).settings) {
      if (!alive.has(slot)) settings.set(slot, texts); // it begins with them
      const values = alive.has(slot) && fitting(texts, alive.get(slot));
      const root = document.querySelector(`[data-name="${slot}"] > .abh`);
      if (values) root.dispatchEvent(new CustomEvent(POSE, { detail: values }));
    }
  });

  /** The names by which the address calls the slots of the page. */
  function named(slots) {
    const counts = new Map();
    for (const slot of slots) {
      const kind = slot.dataset.widget.replace(/(?<=[a-z])[A-Z]/g, "-$&").toLowerCase();
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      slot.dataset.name = counts.get(kind) > 1 ? `${kind}-${counts.get(kind)}` : kind;
    }
  }

  // A link to a heading keeps the settings; a link with settings sets them.
  addEventListener("hashchange", () => {
    const said = parsed(location.hash);
    anchor = said.anchor;
    for (const [slot, texts] of said.settings) {
      settings.set(slot, texts);
      if (alive.has(slot)) restore(slot);
    }
    write();
  });

  /** Scrolls to what a link is about; a browser finds no anchor with settings behind it. */
  function show() {
    const slot = document.querySelector(`[data-name="${Array.from(settings.keys())[0]}"]`);
    const isLink = performance.getEntriesByType("navigation")[0]?.type === "navigate";
    if (settings.size && isLink) (document.getElementById(anchor) ?? slot)?.scrollIntoView();
  }

  // ------------------------------------------------------------------------- the gesture

  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const shown = new Set(); // the kinds of widgets whose gesture was shown
  let touched = false; // the reader needs no demonstration any more
  for (const sign of ["pointerdown", "keydown"])
    addEventListener(
      sign,
      () => {
        touched = true;
        document.querySelector(".widget-hand")?.remove();
      },
      { once: true, capture: true },
    );

  /** What a hand would take first, unless the widget names it: the first control that counts. */
  const MAIN =
    ":is(input, select, button)" +
    ":not(:disabled, [type=radio]:checked, [aria-pressed=true], [name=copy], [name=reset])";

  /** Frames the main control of a picture for a moment, once, when it comes into view. */
  function demonstrate(slot) {
    const control = slot.querySelector("[data-gesture]") ?? slot.querySelector(MAIN);
    if (!control || shown.has(slot.dataset.widget)) return;
    shown.add(slot.dataset.widget);
    const watch = new IntersectionObserver(
      ([{ isIntersecting }]) => {
        if (!isIntersecting) return;
        watch.disconnect();
        if (touched || calm.matches || document.querySelector(".widget-hand")) return;
        const [box, at] = [slot, control].map((each) => each.getBoundingClientRect());
        const hand = document.createElement("span");
        hand.className = "widget-hand";
        hand.style.left = `${at.left - box.left}px`;
        hand.style.top = `${at.top - box.top}px`;
        hand.style.width = `${at.width}px`;
        hand.style.height = `${at.height}px`;
        hand.addEventListener("animationend", () => hand.remove());
        slot.append(hand);
      },
      { threshold: 1 },
    );
    watch.observe(control);
  }

  // ------------------------------------------------------------------------- the menu

  /** What a copied link says of a picture under this name, and what is too long for it. */
  function linked(slot, name) {
    const brought = slot.brings?.() ?? {}; // what a recipient could not compute at once
    const fits = Object.entries(brought).every(([, text]) => encoded(text).length <= LONGEST);
    const texts = { ...differing(slot.dataset.name), ...(fits && brought) };
    return { text: spelled(name, texts).join("&"), lost: fits ? "" : slot.dataset.lost };
  }

  /** Puts "Share" below a picture. An embedded one has a link to its page instead. */
  function offerMenu(slot) {
    if (document.querySelector(".embedded")) return;
    const button = document.createElement("button");
    button.className = "widget-share";
    button.type = "button";
    button.textContent = "Share";
    button.ariaExpanded = "false";
    const begin = () => {
      button.removeEventListener("click", begin);
      const script = document.createElement("script");
      script.src = new URL("_static/share.js", ROOT);
      script.onload = async () => {
        const { open } = await self.importShared("share");
        open(slot, button, { settings: (name) => linked(slot, name), root: ROOT });
      };
      script.onerror = () => {
        button.textContent = "Share: did not load, try again";
        button.addEventListener("click", begin);
      };
      document.head.append(script);
    };
    button.addEventListener("click", begin);
    slot.append(button);
  }

  /** The page may answer its reader, and then goes on. */
  const pause = () => new Promise((go) => setTimeout(go));

  async function start(slot) {
    const { name, widget: kind, state } = slot.dataset;
    const first = { ...constants.get(kind), ...JSON.parse(state) };
    const model = new Model({ ...first }, () => alive.has(name) && save(name));
    try {
      const { default: widget } = await load(kind);
      await pause();
      widget.render({ model, el: slot });
      slot.model = model; // for the curious, in the browser's console
      const { shared: checks = {}, bounds, still: draw } = widget;
      // Nothing is shared of a widget whose state is an answer, and no trait whose check is false,
      // or of which nothing says what it may be.
      const isShared = (trait) =>
        checks !== false && (Object.hasOwn(checks, trait) ? checks[trait] : bounds[trait]);
      const shared = Object.keys({ ...bounds, ...checks }).filter(isShared);
      alive.set(name, { model, shared, checks, bounds, start: first, draw });
      if (settings.has(name)) restore(name);
      else if (shared.length) demonstrate(slot);
      if (checks !== false) offerMenu(slot);
    } catch (error) {
      const note = document.createElement("p");
      note.className = "widget-note";
      note.setAttribute("role", "alert");
      note.textContent =
        "This widget could not start, so the picture shows how it begins. " + `(${error.message})`;
      slot.append(note);
    }
  }

  // A widget starts when it is a screen away from being seen. The first key starts all of them:
  // Tab finds the controls of a widget, and none in a picture. One at a time, so that the page
  // answers to the reader in between.
  addEventListener("DOMContentLoaded", () => {
    const sleeping = new Set(document.querySelectorAll(".widget-slot"));
    ({ anchor, settings } = parsed(location.hash));
    named(sleeping);
    show();
    let last = Promise.resolve();
    const begin = (slots) => {
      for (const slot of slots) {
        if (!sleeping.delete(slot)) continue;
        near.unobserve(slot);
        last = last.then(pause).then(() => start(slot));
      }
      if (sleeping.size) return;
      last.then(() => document.documentElement.setAttribute("data-widgets", "ready"));
    };
    const near = new IntersectionObserver(
      (entries) =>
        begin(entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target)),
      { rootMargin: "100% 0px" },
    );
    for (const slot of sleeping) near.observe(slot);
    addEventListener("keydown", () => begin([...sleeping]), { once: true });
  });
})();
