/**
 * `self.encoder`: a real sentence encoder for the widgets of a page.
 *
 * Nothing of it is loaded before a sentence is read. What then arrives comes as scripts, which a
 * page may load over http and from disk, and each script hands its content to `take`. A script that
 * runs without doing so was damaged on its way: half of it is missing, or a network that wants a
 * login first has answered with a page of its own. encoder_loader.js comes first, and its `read`
 * and `stop` replace those below.
 */
(() => {
  "use strict";
  const { src, dataset } = document.currentScript;
  const facts = JSON.parse(dataset.encoder);
  const listeners = new Set();
  const taken = new Map(); // what a script has just handed over
  const tries = new Map(); // how often each script has failed
  let coming = null;

  function failure(name, why) {
    tries.set(name, (tries.get(name) ?? 0) + 1);
    const kept = "What has come is kept; the next sentence asks for the rest.";
    return new Error(`A part of the model (${name}) ${why} ${kept}`);
  }

  const damaged = (name) => failure(name, "arrived damaged.");
  const missing = (name) => failure(name, "did not arrive: is the connection lost?");

  /** Runs a script, and promises the object that it registers under its name. */
  function load(name, address) {
    const script = document.createElement("script");
    const url = new URL(address, src);
    if (tries.has(name)) url.searchParams.set("again", tries.get(name)); // not what the cache has
    script.src = url.href;
    // The browser's own error about a damaged script: the promise says it in words.
    const quiet = (event) => {
      if (event.filename === script.src) event.preventDefault();
    };
    self.addEventListener("error", quiet);
    return new Promise((resolve, reject) => {
      const end = (why) => {
        self.removeEventListener("error", quiet);
        script.remove();
        if (taken.has(name)) resolve(taken.get(name));
        else reject(why(name));
        taken.delete(name);
      };
      script.onload = () => end(damaged);
      script.onerror = () => end(missing);
      document.head.append(script);
    });
  }

  self.encoder = {
    ...facts,
    missing: "",
    state: "idle",
    listeners,
    load,
    damaged,

    /** Called by each script. */
    take(name, content) {
      taken.set(name, content);
    },

    /** hear({state, got, asked, exact, slow, error}) at each change; returns what ends that. */
    listen(hear) {
      listeners.add(hear);
      return () => listeners.delete(hear);
    },

    async read(text, options) {
      coming ??= load("loader", facts.loader);
      try {
        Object.assign(self.encoder, await coming);
      } catch (error) {
        coming = null;
        throw error;
      }
      return self.encoder.read(text, options);
    },

    stop() {},
  };
})();
