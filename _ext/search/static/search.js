/* The search: book.js brings it when it is asked for, and it brings its index, the text of the book
   (search.py), with the first letter that is typed. Both are scripts: from a disk nothing else can
   be read. What is found is a section, a term, a function or a source, shown with the line that has
   most of the words. */
"use strict";

(() => {
  const STATIC = new URL(".", document.currentScript.src);
  const ROOT = new URL("..", STATIC);
  const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}_]*/gu;
  const IRREGULAR = new Map(Object.entries({ matrices: "matrix", axes: "axis", indices: "index" }));
  const LONG = 210; // letters of a line that are shown
  const MOST_WORDS = 16; // of a query: each is looked for in the whole book
  const FEW = 12; // results in the window; the search page has all

  // --- words ----------------------------------------------------------------------------------

  const fold = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

  /* A name of code is found whole and by its parts: masked_fill, LayerNorm, d_k. */
  const tokens = new Map();
  function wordsOf(token) {
    if (!tokens.has(token)) {
      const parts = token
        .split(/_|(?<=\p{Ll})(?=\p{Lu})/u)
        .map(fold)
        .filter(Boolean);
      tokens.set(token, parts.length > 1 ? [parts.join(""), ...parts] : parts);
    }
    return tokens.get(token);
  }

  const stems = new Map();
  let stemmer = null; // Sphinx's, from language_data.js

  /* Singular and plural, and the two ways to spell colour and normalise, are one. */
  function stem(word) {
    if (!stems.has(word)) {
      const spelled = (IRREGULAR.get(word) ?? word)
        .replace(/is(e[ds]?|ing|ations?)$/, "iz$1")
        .replace(/(?<=..)our/, "or");
      stems.set(word, stemmer.stemWord(spelled));
    }
    return stems.get(word);
  }

  /* What is asked for, each word once; small words count only if there are no others. */
  function wordsOfQuery(query) {
    const found = (query.match(WORD) ?? []).flatMap((token) => {
      const [whole, ...parts] = wordsOf(token);
      const isWhole = !parts.length || (token.includes("_") && where.has(whole));
      return isWhole ? { word: whole, token } : parts.map((word) => ({ word, token: word }));
    });
    const words = [...new Map(found.map((each) => [each.word, each])).values()];
    const telling = words.filter(({ word }) => !stopwords.includes(word));
    return (telling.length ? telling : words).slice(0, MOST_WORDS);
  }

  // --- the index ------------------------------------------------------------------------------

  const places = [];
  const where = new Map(); // word: {place: how often}
  const named = new Set(); // the words of which terms are made

  const allWords = (text) => (text.match(WORD) ?? []).flatMap(wordsOf);
  const wordsIn = (text) => allWords(text).filter((word) => !stopwords.includes(word));
  const head = (text) => wordsIn(text.replace(/^\d+\. /, ""));

  const KINDS = { glossary: "term", references: "source" };

  self.setBookIndex = (pages) => {
    stemmer = new Stemmer();
    const met = new Set();
    for (const [name, title, entries] of pages) {
      for (const [i, [anchor, heading, lines, terms]] of entries.entries()) {
        const kind = i ? (KINDS[name] ?? "section") : "page";
        const link = new URL(`${name}.html${kind === "page" ? "" : `#${anchor}`}`, ROOT).href;
        const place = { title, anchor, heading, lines, kind, link, head: head(heading) };
        place.taught = terms.filter((term) => !met.has(term) && met.add(term));
        place.chapter = name.startsWith("chapters/") ? head(title) : null;
        if (kind === "source") place.authors = wordsIn(lines[0].replace(heading, ""));
        places.push(place);
      }
    }
    const names = new Map(places.filter((p) => p.kind === "term").map((p) => [p.anchor, p.head]));
    for (const place of places) {
      place.taught = place.taught.map((term) => names.get(term) ?? []);
      for (const word of allWords([place.heading, ...place.lines].join("\n"))) {
        if (!where.has(word)) where.set(word, new Map());
        where.get(word).set(place, (where.get(word).get(place) ?? 0) + 1);
      }
    }
    for (const word of [...names.values()].flat()) named.add(word);
    for (const word of where.keys()) stem(word);
  };

  let coming = null;
  function bring(file) {
    return new Promise((done, failed) => {
      const script = document.createElement("script");
      Object.assign(script, { src: new URL(file, ROOT).href, onload: done, onerror: failed });
      document.head.append(script);
    });
  }
  function index() {
    coming ??= bring("_static/language_data.js").then(() => bring("searchindex.js"));
    coming.catch(() => {
      coming = null;
    });
    return coming;
  }

  // --- finding --------------------------------------------------------------------------------

  /* The words of the book that a word means, each with how well: itself, another form of it, a
     longer word that begins with it, a short name such as norm. */
  function meant(word, isLast) {
    const found = new Map();
    const same = stem(word);
    const long = isLast ? 2 : 4;
    const isShort = (known) =>
      known.length > 3 && same.length < known.length + 3 && same.startsWith(known);
    for (const known of where.keys()) {
      if (known === word) found.set(known, 1);
      else if (stem(known) === same) found.set(known, 0.9);
      else if (word.length >= long && known.startsWith(word)) found.set(known, 0.5);
    }
    if (found.size)
      for (const known of named) if (!found.has(known) && isShort(known)) found.set(known, 0.3);
    return found;
  }

  /* How well a heading answers: do all words stand in it, and how much else does? */
  function fit(heading, terms) {
    const best = terms.map((term) => Math.max(0, ...heading.map((word) => term.get(word) ?? 0)));
    return Math.min(...best) * Math.min(1, terms.length / heading.length || 0);
  }

  const TAUGHT = { term: 70, page: 40, section: 28, source: 4 };

  /* What teaches the words stands before what uses them. */
  function score(place, terms) {
    let sum = 0;
    for (const { rare, counts } of terms) {
      const count = counts.get(place) ?? 0;
      sum += (rare * count) / (count + 1.5);
    }
    const match = fit(place.head, terms);
    if (match) sum += TAUGHT[place.kind] * (0.4 + match);
    sum += 30 * Math.max(0, ...place.taught.map((term) => fit(term, terms)));
    if (terms.every((term) => place.authors?.some((word) => term.get(word) > 0.8))) {
      // The last name of the first one counts most.
      sum += terms.some((term) => term.has(place.authors[1])) ? 60 : 40;
    }
    if (place.chapter) sum += 2 + 12 * fit(place.chapter, terms);
    else if (place.kind === "section") sum *= 0.7; // what is looked up
    return sum + 2 * Math.max(...place.lines.map((line) => together(line, terms)), 0);
  }

  /* How many of the words a line has, and as many again if they follow one another. */
  function together(line, terms) {
    const found = (line.match(WORD) ?? []).map(wordsOf);
    const has = (words, term) => words?.some((word) => term.has(word));
    const many = terms.filter((term) => found.some((words) => has(words, term))).length;
    const row =
      terms.length > 1 && found.some((_, at) => terms.every((term, i) => has(found[at + i], term)));
    return many + row * terms.length;
  }

  function find(query) {
    const words = wordsOfQuery(query);
    const terms = words.map(({ word }, i) => meant(word, i === words.length - 1));
    const unknown = words.filter((_, i) => !terms[i].size);
    const known = terms.filter((term) => term.size);
    for (const term of known) {
      term.counts = new Map();
      for (const [word, weight] of term) {
        for (const [place, n] of where.get(word)) {
          term.counts.set(place, (term.counts.get(place) ?? 0) + weight * n);
        }
      }
      term.rare = Math.log(1 + places.length / term.counts.size);
    }
    const hits = (place) => known.filter(({ counts }) => counts.has(place)).length;
    const most = Math.max(...places.map(hits));
    const scores = new Map();
    for (const place of places) {
      if (most && hits(place) === most) scores.set(place, score(place, known));
    }
    const found = [...scores.keys()].sort((a, b) => scores.get(b) - scores.get(a));
    return { words, unknown, terms: known, most, found };
  }

  /* How many letters differ, up to `limit`. */
  function distance(a, b, limit) {
    let row = Array.from({ length: b.length + 1 }, (_, j) => j);
    for (let i = 1; i <= a.length; i++) {
      const next = [i];
      for (let j = 1; j <= b.length; j++) {
        const swap = a[i - 1] === b[j - 1] ? 0 : 1;
        next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + swap));
      }
      row = next;
      if (Math.min(...row) > limit) return limit + 1;
    }
    return row.at(-1);
  }

  /* The word of the book that is spelled most like this one, the frequent one first. */
  function like(word) {
    const limit = word.length > 5 ? 2 : 1;
    const near = [...where].filter(
      ([known]) =>
        known.length > 3 &&
        /^\p{L}+$/u.test(known) &&
        Math.abs(known.length - word.length) <= limit,
    );
    return near
      .map(([known, counts]) => ({ known, off: distance(word, known, limit), often: counts.size }))
      .filter((each) => each.off <= limit)
      .sort((a, b) => a.off - b.off || b.often - a.often)[0]?.known;
  }

  // --- showing --------------------------------------------------------------------------------

  function make(name, className, ...children) {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  /* The line that has most of the words, cut around the first of them. */
  function shownLine(place, terms) {
    const scores = place.lines.map((line) => together(line, terms) - 0.5 * line.startsWith("\t"));
    const best = Math.max(...scores);
    const at = best > 0 ? scores.indexOf(best) : place.lines.findIndex((text) => text.length > 40);
    const line = place.lines[Math.max(0, at)] ?? "";
    const isCode = line.startsWith("\t");
    const element = make("span", isCode ? "line code" : "line");
    const hits = [...line.matchAll(WORD)].filter(([token]) =>
      wordsOf(token).some((word) => terms.some((term) => term.has(word))),
    );
    let from = line.length > LONG && hits.length ? Math.max(0, hits[0].index - LONG / 2) : 0;
    from = from && line.indexOf(" ", from) + 1;
    let to = from + LONG < line.length ? line.lastIndexOf(" ", from + LONG) : line.length;
    if (to <= from) to = line.length;
    let done = from;
    if (from) element.append("… ");
    for (const hit of hits) {
      const end = hit.index + hit[0].length;
      if (hit.index < done || end > to) continue;
      element.append(line.slice(done, hit.index), make("mark", "", hit[0]));
      done = end;
    }
    element.append(line.slice(done, to), to < line.length ? " …" : "");
    return element;
  }

  function item(place, terms) {
    const link = make("a", "", make("span", "heading", place.heading));
    link.href = place.link;
    if (place.kind !== "page") link.append(" ", make("span", "where", place.title));
    link.append(" ", shownLine(place, terms));
    return make("li", "", link);
  }

  function link(text, file) {
    const element = make("a", "", text);
    element.href = new URL(file, ROOT).href;
    return element;
  }

  const quoted = (words) => words.map(({ token }) => `“${token}”`).join(" or ");
  const EMPTY = "Type a word, a symbol such as d_k, or a name from the code.";

  /* What to say above the list. */
  function saying(input, { words, unknown, most, found }) {
    if (!words.length) return [EMPTY];
    const count = `${found.length} ${found.length === 1 ? "place" : "places"}`;
    if (!unknown.length && most === words.length) return [`${count}.`];
    if (!unknown.length) return [`No place has all of these words. ${count} with most of them:`];
    const said = [`Nothing has ${quoted(unknown)}. `];
    const other = like(unknown[0].word);
    if (other) {
      const button = make("button", "other", other);
      button.type = "button";
      button.addEventListener("click", () => {
        input.value = input.value.replace(unknown[0].token, other);
        input.focus();
        input.dispatchEvent(new Event("input"));
      });
      said.push("Try ", button, ". ");
    }
    if (found.length) return [...said, `${count} with the rest:`];
    return [
      ...said,
      other ? "Or look" : "Try another word, or look",
      " in the ",
      link("glossary", "glossary.html"),
      ", the ",
      link("notation", "notation.html"),
      " or the ",
      link("reference", "reference.html"),
      ".",
    ];
  }

  /* Shows what is found as one types. Arrow keys go from the field into the list and back. */
  function searchIn(form, limit) {
    const input = form.querySelector("input");
    const [said, list] = [form.nextElementSibling, form.nextElementSibling.nextElementSibling];

    async function show() {
      if (input.value.trim()) {
        try {
          await index();
        } catch {
          said.textContent = "The search could not be loaded: is there a connection?";
          return;
        }
      }
      const result = input.value.trim() ? find(input.value) : { words: [], found: [] };
      said.replaceChildren(...saying(input, result));
      const shown = result.found.slice(0, limit);
      list.replaceChildren(...shown.map((place) => item(place, result.terms)));
      if (result.found.length > shown.length) {
        const all = link(`All ${result.found.length} places`, "search.html");
        all.search = new URLSearchParams({ q: input.value });
        list.append(make("li", "all", all));
      }
    }

    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      await show();
      const first = list.querySelector("a");
      if (limit === FEW) first?.click();
      else first?.focus();
    });
    form.parentElement.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const stops = [input, ...list.querySelectorAll("a")];
      const at = stops.indexOf(document.activeElement);
      if (!step || at < 0 || (at === 0 && step < 0)) return;
      event.preventDefault();
      stops[Math.min(at + step, stops.length - 1)].focus();
    });
    input.addEventListener("input", show);
    return { input, show };
  }

  function field() {
    const input = make("input");
    Object.assign(input, { type: "search", name: "q", autocomplete: "off", enterKeyHint: "go" });
    input.setAttribute("aria-label", "Words to look for");
    return input;
  }

  /* Drawn first without its style, the window would jump. */
  function styled() {
    return new Promise((done) => {
      const style = document.createElement("link");
      Object.assign(style, { rel: "stylesheet", href: new URL("search.css", STATIC).href });
      Object.assign(style, { onload: done, onerror: done });
      document.head.append(style);
    });
  }

  async function makeWindow() {
    await styled();
    const close = make("button", "close", "Close");
    close.type = "button";
    const form = make("form", "search-form", field(), close);
    form.setAttribute("role", "search");
    const said = make("p", "said", EMPTY);
    said.setAttribute("role", "status");
    const box = make("dialog", "search", make("div", "sheet", form, said, make("ol", "found")));
    box.setAttribute("aria-label", "Search this book");
    box.addEventListener("click", (event) => {
      const leaves = event.target === box || event.target === close;
      if (leaves || event.target.closest(".found a, .said a")) box.close();
    });
    document.body.append(box);
    return { box, ...searchIn(form, FEW) };
  }

  /* The window over any page. */
  let made = null;
  async function openWindow() {
    made ??= makeWindow();
    const { box, input } = await made;
    if (!box.open) box.showModal();
    input.select();
  }

  /* The search page: as many as there are, and the words stay in its address. */
  function onPage(form) {
    const { input, show } = searchIn(form, Infinity);
    input.value = new URLSearchParams(location.search).get("q") ?? "";
    input.addEventListener("input", () => {
      try {
        history.replaceState(
          null,
          "",
          input.value ? `?${new URLSearchParams({ q: input.value })}` : "?",
        );
      } catch {} // from a disk
    });
    show();
    input.focus();
    return () => input.focus();
  }

  const form = document.querySelector("article .search-form");
  self.openSearch = form ? onPage(form) : openWindow;
})();
