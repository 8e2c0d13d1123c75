/**
 * Python for the exercises of a page, in a thread of its own.
 *
 * The page starts this text from a blob, so that the page's policy holds here too: whatever a
 * learner writes, the browser lets none of it reach another host.
 */
"use strict";
const MOST_MEMORY = 512 * 2 ** 20; // bytes, Python itself included
const EMPTY_MODULE = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);

// More is refused, and Python raises MemoryError. An arrow function could not be called with `new`.
const { Memory } = WebAssembly;
// biome-ignore lint/complexity/useArrowFunction: see above
WebAssembly.Memory = function (wanted) {
  const maximum = Math.min(wanted.maximum ?? 65536, MOST_MEMORY / 65536);
  return new Memory({ ...wanted, maximum });
};
WebAssembly.Memory.prototype = Memory.prototype;

let python, runner;
let giveUp;
const failed = new Promise((_, reject) => {
  giveUp = reject;
});
failed.catch(() => {});

/**
 * fetch, which says how much of the files has come; Pyodide would wait for ever for one that fails.
 */
function counting(all) {
  const plain = self.fetch.bind(self);
  let come = 0;
  return async (input, init) => {
    const name = String(input.url ?? input)
      .split("/")
      .pop();
    try {
      const response = await plain(input, init);
      if (!response.ok) throw new Error(response.status);
      // A network that wants a login first answers so, and Pyodide would wait for ever.
      const isPage = response.headers.get("Content-Type")?.startsWith("text/html");
      if (isPage) throw new Error("a page came instead");
      const count = new TransformStream({
        transform(piece, stream) {
          come += piece.length;
          postMessage({ kind: "progress", part: Math.min(come / all, 1) });
          stream.enqueue(piece);
        },
      });
      const { headers, status } = response;
      return new Response(response.body.pipeThrough(count), { headers, status });
    } catch (error) {
      giveUp(new Error(`${name}: ${error.message}`));
      throw error;
    }
  };
}

async function start({ base, manifest, data }) {
  const { python: folder, attnlib, lock, sizes } = manifest;
  const from = `${base}${folder}/`;
  // Says at once what Pyodide would wait for: a policy that forbids WebAssembly.
  await WebAssembly.compile(EMPTY_MODULE);
  const fetched = Object.entries(sizes).filter(([name]) => !name.endsWith(".js"));
  self.fetch = counting(fetched.reduce((sum, [, size]) => sum + size, 0));
  const get = async (name) => (await fetch(base + name)).arrayBuffer();
  const ours = get(attnlib);
  const read = Promise.all(data.map((path) => get(manifest.data[path])));
  read.catch(() => {}); // `counting` says that it failed
  importScripts(`${from}pyodide.js`);
  // A list of one entry: Pyodide compares the hash of NumPy with it.
  const options = {
    indexURL: from,
    packageBaseUrl: from,
    lockFileContents: lock,
    packages: ["numpy"],
  };
  const silent = { stdin: () => null, stdout: () => {}, stderr: () => {} };
  python = await Promise.race([failed, loadPyodide({ ...options, ...silent })]);
  if (!python.loadedPackages.numpy) throw new Error("NumPy did not come as it was listed");
  postMessage({ kind: "progress", part: 1 });
  const site = python.runPython("import site; site.getsitepackages()[0]");
  python.unpackArchive(await ours, "zip", { extractDir: site });
  for (const [i, content] of (await read).entries()) {
    const path = `${site}/${data[i]}`;
    python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    python.FS.writeFile(path, new Uint8Array(content));
  }
  runner = python.pyimport("runner").run;
  postMessage({ kind: "ready" });
}

function run({ id, code, exercise, earlier }) {
  const { judge, name, before } = exercise;
  const above = python.toPy(earlier);
  const post = (text) => postMessage({ kind: "output", id, text });
  const answer = runner(code, judge, name, before, above, post);
  const result = answer.toJs({ dict_converter: Object.fromEntries });
  for (const proxy of [answer, above]) proxy.destroy();
  postMessage({ kind: "done", id, result, memory: python._module.HEAP8.length });
}

self.onmessage = async ({ data }) => {
  try {
    if (data.kind === "start") await start(data);
    else run(data);
  } catch (error) {
    // Python never came, or is broken beyond its own errors.
    const [text] = String(error?.message ?? error)
      .trim()
      .split("\n");
    postMessage({ kind: "broken", started: data.kind !== "start", text: text.slice(0, 300) });
  }
};
