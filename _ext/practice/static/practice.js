/**
 * Exercises that are solved in the page: an editor, Run, and what the course's checkers say.
 *
 * The first click on Run starts Python in a worker (_ext/practice/worker.js); nothing of it is
 * fetched before. A slot answers programs too: `slot.code` is what the reader has written, and
 * `slot.run()` promises {passed, message, output}.
 */
import { PRACTICE } from "../../../attnlib/widgets/kit/progress.js";

(() => {
  "use strict";
  const LONGEST = 10_000; // milliseconds of a run
  const MOST_MEMORY = 256 * 2 ** 20; // bytes; a worker never gives any back
  const MOST_TEXT = 20_000; // letters that a run may show; Python itself stops at half of that
  const KEYS = "Ctrl+Enter runs. Esc, then Tab leaves the editor.";
  const SIZE = "The first run loads Python, some 10 MB.";
  const OLD = "What is said below is of the code before your last change: press Run again.";
  const FROM_DISK = [
    "Python does not start in a page that is opened from disk. To solve this here, show " +
      "the site with ",
    "make serve",
    ", or run ",
    "python -m http.server",
    " in its folder and open " + "localhost:8000.",
  ]; // every other one is code
  const ARRIVED = "This code came with the address. It has not run: read it before you press Run.";
  const LONGEST_LINK = 2000; // letters of one setting in an address, as for a widget
  const NOTHING_KEPT = "This browser keeps nothing: copy your code before you leave.";
  const manifestAddress = new URL(
    document.currentScript.dataset.manifest,
    document.currentScript.src,
  ).href;
  const slots = [...document.querySelectorAll(".practice-slot[data-exercise]")];
  const readData = (slot) => JSON.parse(slot.dataset.exercise).data;

  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };

  // ------------------------------------------------------------------------------- Python

  let worker = null;
  let ready = false;
  let job = null; // what runs, or waits for Python
  let jobs = 0;
  let clock = 0;
  let source = null; // {manifest, script}, once fetched
  let loading = ""; // how far Python is
  let began = 0;
  let seconds = 0; // the timer that counts them
  const listeners = []; // each is called when one of these changes

  /** Says how far Python is, and how long that has taken: nothing comes while it starts. */
  function tell(text) {
    const say = () => {
      const passed = Math.floor((performance.now() - began) / 1000);
      loading = text && passed ? `${text} (${passed} s)` : text;
      for (const listener of listeners) listener();
    };
    clearInterval(seconds);
    if (text) seconds = setInterval(say, 1000);
    say();
  }

  async function fetchSource() {
    const get = async (name) => {
      const response = await fetch(new URL(name, manifestAddress));
      if (!response.ok) throw new Error(`${name}: ${response.status}`);
      return response;
    };
    const manifest = await (await get(manifestAddress)).json();
    const text = await (await get(manifest.worker)).text();
    const script = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    return { manifest, script };
  }

  async function start() {
    if (worker) return;
    began = performance.now();
    tell("Loading Python ...");
    const mine = (worker = { terminate() {} }); // until the real one is there
    try {
      source ??= await fetchSource();
      if (worker !== mine) return;
      worker = new Worker(source.script, { name: "python" });
      const made = worker;
      made.onmessage = ({ data }) => {
        if (made === worker && isMessage(data)) handlers[data.kind](data);
      };
      made.onerror = (event) => {
        event.preventDefault();
        if (made === worker) lost(event.message || "its worker did not start");
      };
      const base = new URL(".", manifestAddress).href;
      const data = [...new Set(slots.flatMap(readData))];
      made.postMessage({ kind: "start", base, manifest: source.manifest, data });
    } catch (error) {
      if (!ready) lost(error.message);
    }
  }

  function end() {
    worker?.terminate();
    worker = null;
    ready = false;
    tell("");
  }

  function finish(result) {
    clearTimeout(clock);
    const { done } = job ?? {};
    job = null;
    done?.({ passed: false, lines: [], texts: [], ...result });
  }

  function lost(why) {
    end();
    source = null; // perhaps it came damaged
    finish({ message: `Python could not be loaded (${why}). Your code is kept; Run tries again.` });
  }

  /** Ends a run together with its worker, and has another one ready for the next. */
  function restart(message) {
    end();
    finish({ message });
    start();
  }

  function stop() {
    if (job?.sent) restart("Stopped.");
    else finish({ message: "Stopped." }); // Python goes on loading, for the next run
  }

  function show(text) {
    const piece = text.slice(0, job.room);
    job.room -= piece.length;
    if (piece) job.show(piece);
  }

  const isText = (value) => typeof value === "string" && value.length <= MOST_TEXT;
  const isCompared = (text) => Array.isArray(text) && text.length === 4 && text.every(isText);

  /** What a message of each kind holds. */
  const forms = {
    progress: ({ part }) => Number.isFinite(part),
    ready: () => true,
    output: ({ text }) => isText(text),
    done: ({ result, memory }) =>
      isText(result?.message) &&
      Array.isArray(result.lines) &&
      result.lines.every(isText) &&
      (result.texts ?? []).every(isCompared) &&
      Number.isFinite(memory),
    broken: ({ text }) => isText(text),
  };

  /** Whether it is a message of the worker's own: what a learner runs there can send others. */
  const isMessage = (data) => Object.hasOwn(forms, data?.kind) && forms[data.kind](data);

  const handlers = {
    progress({ part }) {
      tell(part < 1 ? `Loading Python: ${Math.floor(100 * part)}%` : "Starting Python ...");
    },
    ready() {
      ready = true;
      tell("");
      send();
    },
    output({ id, text }) {
      if (job?.id === id) show(text);
    },
    done({ id, result, memory }) {
      if (job?.id !== id) return;
      finish(result);
      if (memory > MOST_MEMORY) restart();
    },
    broken({ started, text }) {
      if (!started) return lost(text);
      const deep = /call stack|recursion/i.test(text) && "it calls itself, or nests, too deeply";
      const why = deep || (/exit/.test(text) ? "it ends the program" : text);
      restart(`Your code broke Python itself: ${why}. Python starts anew.`);
    },
  };

  function send() {
    if (!ready || !job || job.sent) return;
    job.sent = true;
    job.began();
    const late = `Stopped after ${LONGEST / 1000} seconds. Is there a loop that never ends?`;
    clock = setTimeout(() => restart(late), LONGEST);
    const { id, code, exercise, earlier } = job;
    worker.postMessage({ kind: "run", id, code, exercise, earlier });
  }

  function run(wanted) {
    job = { ...wanted, id: ++jobs, room: MOST_TEXT };
    start();
    send();
  }

  // ------------------------------------------------------------------------------- an editor

  /**
   * A textarea for Python: Tab, Enter and Backspace know about indentation; Esc, then Tab leaves.
   */
  function editor(area, go) {
    // Keeps the browser's own undo, which a new value would lose.
    const put = (text) =>
      document.execCommand("insertText", false, text) ||
      area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    let leaving = false;
    const line = () => {
      const { selectionStart: from, selectionEnd: to, value } = area;
      return { from, to, value, head: value.lastIndexOf("\n", from - 1) + 1 };
    };
    function indent(back) {
      const { from, to, value, head } = line();
      if (from === to && !back) return put(" ".repeat(4 - ((from - head) % 4)));
      const last = value.indexOf("\n", to > from && value[to - 1] === "\n" ? to - 1 : to);
      const block = value.slice(head, last < 0 ? value.length : last);
      const moved = block.replace(/^.+/gm, (row) =>
        back ? row.replace(/^ {1,4}/, "") : `    ${row}`,
      );
      if (moved === block) return;
      area.setSelectionRange(head, head + block.length);
      put(moved);
      const caret = Math.max(head, from + moved.length - block.length);
      area.setSelectionRange(...(from === to ? [caret, caret] : [head, head + moved.length]));
    }
    function newLine() {
      const { from, value, head } = line();
      const row = value.slice(head, from);
      const deep = /^ */.exec(row)[0].length + (/:\s*(#.*)?$/.test(row) ? 4 : 0);
      const ends = /^\s*(return|pass|break|continue|raise)\b/.test(row);
      put(`\n${" ".repeat(Math.max(deep - (ends ? 4 : 0), 0))}`);
    }
    function outdent(event) {
      const { from, to, value, head } = line();
      if (from !== to || from === head || value.slice(head, from).trim()) return;
      event.preventDefault();
      area.setSelectionRange(from - (((from - head - 1) % 4) + 1), from);
      document.execCommand("delete");
    }
    area.addEventListener("keydown", (event) => {
      const { key, ctrlKey, metaKey, shiftKey, isComposing } = event;
      const left = leaving;
      leaving = key === "Escape" || (leaving && key === "Shift");
      const acts = {
        Enter: ctrlKey || metaKey ? go : newLine,
        Tab: left ? null : () => indent(shiftKey),
      };
      if (key === "Backspace" && !isComposing) outdent(event);
      if (!acts[key] || isComposing) return;
      event.preventDefault();
      acts[key]();
    });
  }

  // ------------------------------------------------------------------------------- the address

  /** The code that the page's address has for a slot of this name; null if it has none. */
  function arrivedFor(name) {
    const start = `${name}.code=`;
    const part = location.hash
      .slice(1)
      .split("&")
      .find((each) => each.startsWith(start));
    if (!name || !part || part.length - start.length > LONGEST_LINK) return null;
    try {
      return decodeURIComponent(part.slice(start.length).replaceAll("+", " "));
    } catch {
      return null; // half a letter
    }
  }

  /** Code as a setting of the address: a page with the same exercise shows it, and runs nothing. */
  const encoded = (code) =>
    encodeURIComponent(code.trimEnd().replace(/\p{Surrogate}/gu, "\ufffd")).replaceAll("%20", "+");

  // ------------------------------------------------------------------------------- an exercise

  const kept = {
    get(key) {
      try {
        return localStorage.getItem(PRACTICE + key);
      } catch {
        return null;
      }
    },
    set(key, code) {
      try {
        if (code === null) localStorage.removeItem(PRACTICE + key);
        else localStorage.setItem(PRACTICE + key, code);
        return true;
      } catch {
        return false;
      }
    },
  };

  // Under STORE, a name of book.js (as CHANGED is), stands all that was answered right.
  const solved = {
    all() {
      try {
        return [...JSON.parse(localStorage.getItem(STORE)).right];
      } catch {
        return [];
      }
    },
    has: (key) => solved.all().includes(key),
    add(key) {
      if (solved.has(key)) return;
      try {
        localStorage.setItem(STORE, JSON.stringify({ right: [...solved.all(), key] }));
        dispatchEvent(new Event(CHANGED));
      } catch {
        /* said by NOTHING_KEPT */
      }
    },
  };

  /** The fold below an exercise that holds its solution, if there is one. */
  function solutionOf(slot) {
    const next = slot.nextElementSibling;
    return next?.matches("details.answer") ? next : next?.querySelector(":scope > details.hide");
  }

  /** What a reader sees of an exercise. */
  function draw(slot, { key, title, judge }) {
    const named = (tag, name, properties) => [name, make(tag, { className: name, ...properties })];
    const pre = slot.querySelector("pre");
    const view = Object.fromEntries([
      named("textarea", "code", {
        spellcheck: false,
        wrap: "off",
        defaultValue: pre.textContent.trimEnd(),
      }),
      named("p", "hint", {
        id: `practice-hint-${slots.indexOf(slot)}`,
        textContent: `${KEYS} ${SIZE}`,
      }),
      named("p", "arrived", { hidden: true, textContent: ARRIVED }),
      named("p", "verdict", {}),
      named("pre", "lines", { hidden: true }),
      named("div", "texts", { hidden: true }),
      named("pre", "output", { hidden: true, tabIndex: 0 }),
    ]);
    const link = slot.dataset.name ? ["Copy link"] : [];
    const labels = ["Run", "Stop", "Reset", "Copy", ...link, "Download", "Show solution"];
    const buttons = labels.map((label) => {
      const name = label.toLowerCase().split(" ").pop();
      return (view[name] = make("button", { type: "button", name, textContent: label }));
    });
    const attributes = [
      ["code", "aria-label", `Your code: ${title}`],
      ["code", "aria-describedby", view.hint.id],
      ...["autocapitalize", "autocomplete", "autocorrect"].map((name) => ["code", name, "off"]),
      ["verdict", "role", "status"],
      ["output", "role", "region"],
      ["output", "aria-label", `Output: ${title}`],
    ];
    for (const [part, name, value] of attributes) view[part].setAttribute(name, value);
    view.run.title = "Ctrl+Enter";
    view.stop.disabled = true;
    const { arrived, code, hint, verdict, lines, texts, output } = view;
    const bar = make("div", { className: "buttons" }, ...buttons);
    const [cell, checker] = slot.children;
    const before = solved.has(key)
      ? [make("p", { className: "before", textContent: "✓ Solved before" })]
      : [];
    cell.after(
      make(
        "div",
        { className: "practice" },
        ...before,
        ...[arrived, code, bar, hint, verdict, lines, texts, output],
      ),
    );
    if (judge.includes("\n")) {
      const fold = make(
        "details",
        { className: "hide" },
        make("summary", { textContent: "What checks it" }),
      );
      checker.replaceWith(fold);
      fold.append(checker);
    }
    const stored = link.length && !judge && slot.querySelector(".cell_output pre");
    if (stored) [output.hidden, output.textContent] = [false, stored.textContent];
    slot.classList.add("alive");
    return view;
  }

  /** A text of two that a judge compares: its second part is the word at which they part. */
  function drawText([title, before, word, after]) {
    const mark = word ? [make("mark", { textContent: word })] : [];
    const words = make("p", {}, before, ...mark, after);
    return make("figure", {}, make("figcaption", { textContent: title }), words);
  }

  function prepare(slot) {
    const exercise = JSON.parse(slot.dataset.exercise);
    const view = draw(slot, exercise);
    const { arrived, code, hint, verdict, lines, texts, output, stop: stopper, reset, copy } = view;
    const starting = code.defaultValue;
    let erased = null; // what Reset took away
    let own = null; // the reader's code, while the editor shows what came with the address
    let isForeign = false; // it did, and was neither changed nor run by the reader
    let unkept = ""; // said in a browser that keeps nothing
    let judged = null; // the code that the verdict is of

    const fit = () => {
      code.rows = Math.max(6, code.value.split("\n").length + 1);
    };
    const remind = () => {
      const isOld = judged !== null && judged !== trusted();
      verdict.classList.toggle("old", isOld);
      hint.textContent = loading || unkept || (isOld && OLD) || (ready ? KEYS : `${KEYS} ${SIZE}`);
    };
    function say(text, of = null) {
      verdict.textContent = text;
      judged = of;
      remind();
    }
    /** The reader takes over what came with the address, by changing or running it. */
    function accept() {
      isForeign = false;
      arrived.hidden = true;
    }
    function changed() {
      accept();
      erased = null;
      reset.textContent = own === null ? "Reset" : "Back to my code";
      fit();
      const wasKept = kept.set(exercise.key, code.value === starting ? null : code.value);
      unkept = wasKept ? "" : NOTHING_KEPT;
      remind();
    }
    function write(text) {
      code.value = text;
      changed();
    }
    /** Shows what the address has for this exercise; nothing runs, the reader's code is kept. */
    function receive() {
      const text = arrivedFor(slot.dataset.name);
      if (text === null || text === code.value.trimEnd()) return;
      own ??= code.value;
      code.value = text;
      isForeign = true;
      arrived.hidden = false;
      output.hidden = lines.hidden = true;
      reset.textContent = "Back to my code";
      fit();
    }
    const trusted = () => (isForeign ? own : code.value);

    const go = () =>
      new Promise((done) => {
        if (job)
          return done({
            passed: false,
            message: "Another exercise is running: stop it first.",
            output: "",
          });
        output.textContent = lines.textContent = texts.textContent = "";
        output.hidden = lines.hidden = texts.hidden = true;
        stopper.disabled = false;
        view.run.setAttribute("aria-disabled", true); // disabled, it would lose the focus
        const tried = trusted();
        say("Waiting for Python ...", tried);
        run({
          code: tried,
          exercise,
          earlier: slots.slice(0, slots.indexOf(slot)).map((other) => other.code),
          began() {
            say("Running ...", tried);
          },
          show(text) {
            output.hidden = false;
            output.textContent += text;
          },
          done(result) {
            const { passed, message, lines: own } = result;
            if (document.activeElement === stopper) view.run.focus();
            stopper.disabled = true;
            view.run.removeAttribute("aria-disabled");
            if (passed) solved.add(exercise.key);
            say(
              passed
                ? `✓ ${message}`
                : message || (output.hidden ? "Done. It prints nothing." : "Done."),
              tried,
            );
            lines.hidden = !own.length;
            lines.textContent = own.join("\n");
            texts.hidden = !result.texts.length;
            texts.replaceChildren(...result.texts.map(drawText));
            done({ passed, message, output: output.textContent });
          },
        });
      });
    async function press() {
      if (job)
        return job.exercise !== exercise && say("Another exercise is running: stop it first.");
      accept();
      await go();
    }

    const acts = {
      run: press,
      stop,
      reset() {
        if (own !== null) {
          const text = own;
          own = null;
          return write(text);
        }
        const [text, back] = [erased ?? starting, erased === null && code.value !== starting];
        const before = code.value;
        write(text);
        say("");
        output.hidden = lines.hidden = texts.hidden = true;
        if (back) [erased, reset.textContent] = [before, "Undo reset"];
      },
      async copy() {
        try {
          await navigator.clipboard.writeText(code.value);
        } catch {
          code.select();
          document.execCommand("copy");
        }
        copy.textContent = "Copied";
        setTimeout(() => {
          copy.textContent = "Copy";
        }, 2000);
      },
      link() {
        const text = encoded(code.value);
        if (text.length > LONGEST_LINK)
          return say(`Too long for a link: ${text.length} letters, of at most ${LONGEST_LINK}.`);
        location.hash = `${slot.dataset.name}.code=${text}`;
        const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject();
        copied.then(
          () => say("The link is copied. Anyone who opens it sees this code, and can run it."),
          () => say("The link is in the address bar: copy it from there."),
        );
      },
      download() {
        const href = URL.createObjectURL(
          new Blob([`${code.value.trimEnd()}\n`], { type: "text/x-python" }),
        );
        make("a", { href, download: `${exercise.key.split("/").pop()}.py` }).click();
        setTimeout(() => URL.revokeObjectURL(href), 1000);
      },
    };
    for (const [name, act] of Object.entries(acts)) view[name]?.addEventListener("click", act);

    const fold = solutionOf(slot);
    const isSolution = /^(Show a solution|Solution|Answer)$/.test(
      fold?.querySelector("summary").textContent,
    );
    if (fold && (isSolution || exercise.name)) {
      fold.classList.toggle("has-button", isSolution);
      view.solution.addEventListener("click", () => {
        fold.open = !fold.open;
      });
      fold.addEventListener("toggle", () => {
        view.solution.textContent = fold.open ? "Hide solution" : "Show solution";
        view.solution.setAttribute("aria-expanded", fold.open);
      });
      view.solution.setAttribute("aria-expanded", fold.open);
    } else {
      view.solution.remove();
    }

    editor(code, press);
    code.addEventListener("input", changed);
    listeners.push(remind);
    code.value = kept.get(exercise.key) ?? starting;
    fit();
    receive();
    addEventListener("hashchange", receive);
    Object.defineProperty(slot, "code", { get: trusted, set: write });
    slot.run = go;
  }

  if (location.protocol === "file:") {
    for (const slot of slots) {
      const parts = FROM_DISK.map((text, i) =>
        i % 2 ? make("code", { className: "literal", textContent: text }) : text,
      );
      slot.append(make("p", { className: "practice-note" }, ...parts));
    }
  } else {
    slots.forEach(prepare);
  }
})();
