/**
 * Brings the widgets of a static page to life: no kernel, no network, also from file://.
 *
 * Each slot holds a picture and the state in which it was drawn; the widget's module goes on from
 * there. It arrives as text, because a page opened from disk may not import a file but may import
 * a blob. If it fails, the picture stays as it is, with a note.
 */
(() => {
  const sources = new Map();
  const modules = new Map();

  self.registerWidget = (name, source) => sources.set(name, source);

  function load(name) {
    if (!modules.has(name)) {
      const url = URL.createObjectURL(new Blob([sources.get(name)], { type: "text/javascript" }));
      modules.set(name, import(url).finally(() => URL.revokeObjectURL(url)));
    }
    return modules.get(name);
  }

  /** The part of a Jupyter widget model that a front end without a kernel needs. */
  class Model {
    constructor(traits) {
      this.traits = traits;
      this.listeners = new Map();
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
    save_changes() {} // nobody to save them for
    #tell(event) {
      for (const listener of [...(this.listeners.get(event) ?? [])]) listener();
    }
  }

  async function start(slot) {
    const model = new Model(JSON.parse(slot.dataset.state));
    try {
      const { default: widget } = await load(slot.dataset.widget);
      widget.render({ model, el: slot });
      slot.model = model; // for the curious, in the browser's console
    } catch (error) {
      const note = document.createElement("p");
      note.className = "widget-note";
      note.setAttribute("role", "alert");
      note.textContent = `This widget could not start, so the picture shows how it begins. (${error.message})`;
      slot.append(note);
    }
  }

  // A widget starts when it is a screen away from being seen. The first key starts all of them:
  // Tab finds the controls of a widget, and none in a picture. One at a time, so that the page
  // answers to the reader in between.
  addEventListener("DOMContentLoaded", () => {
    const waiting = new Set(document.querySelectorAll(".widget-slot"));
    let last = Promise.resolve();
    const begin = (slots) => {
      for (const slot of slots) {
        if (!waiting.delete(slot)) continue;
        near.unobserve(slot);
        last = last.then(() => new Promise((go) => setTimeout(go))).then(() => start(slot));
      }
      if (waiting.size) return;
      last.then(() => document.documentElement.setAttribute("data-widgets", "ready"));
    };
    const near = new IntersectionObserver(
      (entries) => begin(entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target)),
      { rootMargin: "100% 0px" },
    );
    for (const slot of waiting) near.observe(slot);
    addEventListener("keydown", () => begin([...waiting]), { once: true });
  });
})();
