/** What a widget needs in a page of its own, in the place of a notebook (standalone.py). */

/** The part of a Jupyter widget model that a page without a kernel needs. */
export function modelOf(traits) {
  const listeners = new Set();
  return {
    get: (trait) => traits[trait],
    set(trait, value) {
      if (traits[trait] === value) return;
      traits[trait] = value;
      for (const listener of [...listeners]) listener();
    },
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    save_changes() {},
  };
}
