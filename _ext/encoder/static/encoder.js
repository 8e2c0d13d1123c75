/**
 * `self.encoder`: a real sentence encoder for the widgets of a page.
 *
 * Nothing of it is loaded before a sentence is read, not even what loads it: encoder_loader.js then
 * takes the place of `read` and `stop`.
 */
(() => {
  "use strict";
  const { src, dataset } = document.currentScript;
  const facts = JSON.parse(dataset.encoder);
  const listeners = new Set();
  let coming = null;

  const loader = () =>
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(facts.loader, src).href;
      script.onload = resolve;
      script.onerror = () =>
        reject(new Error("What loads the model did not arrive: is the connection lost?"));
      document.head.append(script);
    });

  self.encoder = {
    ...facts,
    missing: "",
    state: "idle",
    listeners,
    place: new URL("encoder/", src).href,

    /** hear({state, got, asked, exact, slow, error}) at each change; returns what ends that. */
    listen(hear) {
      listeners.add(hear);
      return () => listeners.delete(hear);
    },

    async read(text, options) {
      coming ??= loader();
      await coming.catch((error) => {
        coming = null;
        throw error;
      });
      return self.encoder.read(text, options);
    },

    stop() {},
  };
})();
