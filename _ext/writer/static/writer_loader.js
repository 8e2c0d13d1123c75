/**
 * `self.writer`: the model that writes stories, for the widgets of a page.
 *
 * `load()` promises the model's file, which is a script that hands its content to `take`. Nothing
 * is loaded before the first call. A script that runs without handing anything over was damaged on
 * its way, or a network that wants a login first has answered with a page of its own.
 */
(() => {
  "use strict";
  const { src, dataset } = document.currentScript;
  let given = null;
  let coming = null;
  let tries = 0;

  function fetchFile() {
    const url = new URL(dataset.model, src);
    if (tries) url.searchParams.set("again", tries); // not what the cache has
    const script = document.createElement("script");
    script.src = url.href;
    // The browser's own error about a damaged script: the promise says it in words.
    const quiet = (event) => event.filename === script.src && event.preventDefault();
    self.addEventListener("error", quiet);
    return new Promise((resolve, reject) => {
      const end = (why) => {
        self.removeEventListener("error", quiet);
        script.remove();
        if (given) return resolve(given);
        tries++;
        coming = null;
        reject(new Error(`The model ${why} Press the button to try again.`));
      };
      script.onload = () => end("arrived damaged.");
      script.onerror = () => end("did not arrive: is the connection lost?");
      document.head.append(script);
    });
  }

  self.writer = {
    /** Called by the script. */
    take(file) {
      given = file;
    },
    load() {
      coming ??= fetchFile();
      return coming;
    },
  };
})();
