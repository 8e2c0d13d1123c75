/* Linked reading: a symbol that someone points at lights up wherever it stands on the page, in the
   formulas, in the code and in the widgets, and a small box says what it means. Each displayed
   equation has a button: it copies the equation, as TeX and as NumPy, and lists its symbols, so
   that the arrow keys reach them with one stop for Tab. What is known of the symbols comes with
   this file (_ext/symbols). */
(() => {
  "use strict";
  const known = KNOWN;
  const article = document.querySelector("article");
  if (!article || !("popover" in article)) return;

  const [, chapter, page] = /(chapters[/](?:\d+-)?)?([^/]*)$/.exec(
    location.pathname.replace(/[.]html$/, ""),
  );
  const here = ({ only }) => !only.length || only.includes(page);
  const hereInCode = ({ onlyCode }) => !onlyCode.length || onlyCode.includes(page);
  const symbols = new Map(known.symbols.filter(here).map((symbol) => [symbol.name, symbol]));
  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };

  // ----------------------------------------------------------------- where the symbols stand

  const forms = new Map(); // letters in a formula: {name, row}
  const names = new Map(); // a word of code: the name of a symbol
  const lost = known.noRows[chapter ? page : "elsewhere"]?.split(" ") ?? [];
  const rowsInCode = known.rowsInCode[page]?.split(" ") ?? [];
  for (const [name, symbol] of symbols) {
    const { form, row, code } = symbol;
    forms.set(form, { name });
    if (row && !lost.includes(row)) forms.set(row, { name, row: true });
    if (hereInCode(symbol)) code.forEach((word) => names.set(word, name));
    if (rowsInCode.includes(row)) names.set(row, name);
  }

  /* A glyph is an empty element whose class says which letter it draws: mjx-c1D444 is an italic
     Q. */
  const ACCENTS = { "˜": "~", ˆ: "^" };
  function letter(glyph) {
    const code = /mjx-c([0-9A-F]+)/.exec(glyph.className)?.[1];
    const sign = code ? String.fromCodePoint(parseInt(code, 16)) : "";
    return ACCENTS[sign] ?? sign.normalize("NFKC");
  }

  /* The letters of a part of a formula in one line, as TeX would have them: W_Q, ~S, X^′. */
  const lettered = new Map();
  function letters(node) {
    if (!lettered.has(node)) lettered.set(node, spelled(node));
    return lettered.get(node);
  }
  function spelled(node) {
    const parts = [...node.children].map(letters);
    switch (node.localName) {
      case "mjx-c":
        return letter(node);
      case "mjx-msub":
        return parts.join("_");
      case "mjx-msup":
        return parts.join("^");
      case "mjx-msubsup": {
        const [up, , low] = node.lastElementChild.children; // a spacer between them
        return `${parts[0]}_${letters(low)}^${letters(up)}`;
      }
      default:
        return parts.join("");
    }
  }

  const MAY = /^mjx-(mi|msub|msup|msubsup|mover)$/;
  function markFormula(node) {
    const found = MAY.test(node.localName) && (forms.get(letters(node)) ?? halves(node));
    if (found) return mark(node, found);
    for (const child of node.children) markFormula(child);
    for (const child of node.children) {
      const next = child.nextElementSibling;
      if (child.localName !== "mjx-mi" || !next) continue;
      const pair = letters(next) && forms.get(letters(child) + letters(next)); // PE
      if (letters(child) === "d") gradient(child, next);
      else if (pair) [child, next].forEach((part) => mark(part, pair));
    }
  }

  /* Of A_ij^′ the name is A^′, of W_Q^T it is W_Q. */
  function halves(node) {
    if (node.localName !== "mjx-msubsup") return null;
    const [up, , low] = [...node.lastElementChild.children].map(letters);
    const base = letters(node.firstElementChild);
    return forms.get(`${base}_${low}`) ?? forms.get(`${base}^${up}`);
  }

  /* A d before a symbol makes its gradient, which is another symbol. */
  function gradient(sign, next) {
    const of = next.matches("[data-symbol]") ? next : next.querySelector("[data-symbol]");
    const found = of && letters(next).startsWith(letters(of)) && forms.get(`d${letters(of)}`);
    if (found) [sign, of].forEach((part) => mark(part, found));
  }

  function mark(node, { name, row }) {
    node.dataset.symbol = name;
    if (row) node.dataset.row = letters(node);
  }

  /* Names in code: whole words that are no attribute of something else. In a comment a word of the
     language is one. */
  function markCode(code) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const kind = text.parentElement.closest("[class]").className;
      if (/^s/.test(kind)) continue; // a string
      const comment = /^c/.test(kind) && text.parentElement !== code;
      const pieces = text.data.split(/(?<![.\w])([A-Za-z_]\w*)/);
      const marked = pieces.map((piece, i) => {
        const name = i % 2 && !(comment && /^[a-z]{2,}$/.test(piece)) && names.get(piece);
        if (!name) return piece;
        const span = make("span", { textContent: piece });
        span.dataset.symbol = name;
        return span;
      });
      if (marked.some((piece) => piece.localName)) text.replaceWith(...marked);
    }
  }

  article.querySelectorAll("mjx-math").forEach(markFormula);
  article
    .querySelectorAll(
      ".cell_input .highlight pre, .highlight-python pre, .highlight-ipython3 pre, code.literal",
    )
    .forEach(markCode);

  // ---------------------------------------------------------------------------- the light

  const light = new CSSStyleSheet();
  const style = new CSSStyleSheet();
  style.replaceSync(known.style);
  document.adoptedStyleSheets.push(style, light);
  const quoted = (text) => `"${CSS.escape(text)}"`;

  /* All places of a symbol but the widget that someone points at: that one has its own light. */
  function shine({ name, role, parts }, source) {
    const aside = source?.closest(".widget-slot");
    aside?.setAttribute("data-points", "");
    const places =
      parts &&
      `.widget-slot:not([data-points]) :is(${parts}) {
      &:not(path, .cells) { outline: 2px solid var(--lit); }
      &:is(path) { filter: drop-shadow(0 0 2px var(--lit)) drop-shadow(0 0 2px var(--lit)); } }`;
    light.replaceSync(`@media screen {
      article { --lit: var(--${role}); }
      article [data-symbol=${quoted(name)}] {
        background: var(--lit-ground);
        box-shadow: 0 0.12em var(--lit);
      }
      ${places} }`);
  }

  const box = make("div", { className: "glimpse symbol", popover: "manual" });
  article.append(box);
  let lit = null; // the place that is pointed at
  let pinned = false; // by a click; else the light goes as the pointer does
  let waiting = 0;

  function later(action, pause) {
    clearTimeout(waiting);
    waiting = setTimeout(action, pause);
  }

  /* A pointer that rests puts out no light but its own: the menu of an equation has others. */
  function leave() {
    if (lit) later(hide, 250);
    else clearTimeout(waiting);
  }

  /* The letters as the page draws them, if it does, or else in the face of the text. */
  function drawn({ name, html }) {
    const same = `[data-symbol=${quoted(name)}]`;
    const first = article.querySelector(`mjx-math ${same}:not([data-row], :has(+ ${same}))`);
    const letters = make("span", { className: "letters" });
    letters.innerHTML = html;
    if (!first || name.startsWith("d") || first.previousElementSibling?.dataset.symbol === name)
      return letters;
    const copy = first.cloneNode(true);
    copy.removeAttribute("space");
    for (const part of [copy, ...copy.querySelectorAll("[data-symbol]")])
      part.removeAttribute("data-symbol");
    const sheet = make("mjx-math", { className: "MJX-TEX" }, copy);
    const container = make("mjx-container", { className: "MathJax" }, sheet);
    container.setAttribute("jax", "CHTML");
    container.setAttribute("aria-hidden", "true");
    return make("span", { className: "letters" }, container);
  }

  function said(symbol, place) {
    const { role, means, shape, code } = symbol;
    const line = make("p", {}, drawn(symbol), " ");
    line.firstElementChild.style.color = `var(--${role})`;
    const row = place?.dataset.row;
    const meaning = make("span");
    meaning.innerHTML =
      (row ? `<i>${row}</i> is a row of it: ` : "") +
      means +
      (shape && `, <span class="shape">${shape}</span>`);
    line.append(meaning);
    const words = hereInCode(symbol) ? code : [];
    if (!words.length) return [line];
    const inCode = make("p", { className: "in-code" }, "in code: ");
    words.forEach((word, i) => inCode.append(i ? ", " : "", make("code", { textContent: word })));
    return [line, inCode];
  }

  /* A widget says itself what a number is: there no box opens. */
  function show(place, name) {
    hide();
    const symbol = symbols.get(name);
    shine(symbol, place);
    lit = place;
    if (!place.dataset.symbol) return;
    box.replaceChildren(...said(symbol, place));
    box.showPopover();
    stand(box, place);
  }

  /* Below its place, or above it where there is no room; always within the page, and never on the
     equation that it stands in. A menu ends where its button does. */
  function stand(box, place) {
    const { width, height } = box.getBoundingClientRect();
    const { left: start, right } = place.getBoundingClientRect();
    const left = box === menu ? right - width : start;
    const { top, bottom } = (place.closest("div.math") ?? place).getBoundingClientRect();
    const most = document.documentElement.clientWidth - width - 8;
    const below = bottom + 8 + height < innerHeight || top < height + 8;
    box.style.left = `${Math.max(8, Math.min(left, most)) + scrollX}px`;
    box.style.top = `${(below ? bottom + 6 : top - 6 - height) + scrollY}px`;
  }

  function hide() {
    clearTimeout(waiting);
    lit = null;
    pinned = false;
    light.replaceSync("");
    article.querySelector("[data-points]")?.removeAttribute("data-points");
    if (box.matches(":popover-open")) box.hidePopover();
  }

  /* What is pointed at: a place and the name of its symbol. A link says itself where it leads. */
  const inWidgets = [...symbols.values()].filter(({ parts }) => parts);
  function pointed(target) {
    if (!target.closest || target.closest("a")) return [];
    const place = target.closest("[data-symbol]");
    if (place) return [place, place.dataset.symbol];
    if (!target.closest(".widget-slot")) return [];
    for (const { name, parts } of inWidgets) {
      const part = target.closest(parts);
      if (part) return [part, name];
    }
    return [];
  }

  article.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch" || pinned || event.buttons || menu.contains(event.target))
      return;
    const [place, name] = pointed(event.target);
    if (place && place === lit) clearTimeout(waiting);
    else if (place) later(() => show(place, name), lit ? 120 : 250);
    else if (box.contains(event.target)) clearTimeout(waiting);
    else leave();
  });
  article.addEventListener("pointerleave", () => {
    if (!pinned) leave();
  });
  article.addEventListener("click", (event) => {
    if (box.contains(event.target) || menu.contains(event.target)) return;
    const [place, name] = pointed(event.target);
    const again = pinned && place === lit;
    if (pinned) hide();
    if (
      !place?.dataset.symbol ||
      again ||
      place.closest("summary, button, label") ||
      !getSelection().isCollapsed
    )
      return;
    show(place, name);
    pinned = true;
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });

  /* What was pointed at, or touched, when this file was asked for has its answer, too. After a tap
     nothing needs to be under the pointer any more: book.js kept what was touched. */
  const hovered = [...article.querySelectorAll(":hover")].at(-1);
  const [first, its] = pointed(hovered ?? document.currentScript?.sign ?? article);
  if (first?.dataset.symbol)
    later(() => {
      show(first, its);
      pinned = matchMedia("(hover: none)").matches;
    }, 250);

  // ------------------------------------------------------------------------ the equations

  const menu = make("div", { className: "glimpse equation", id: "equation", popover: "auto" });
  menu.setAttribute("role", "group");
  article.append(menu);

  /* A button that copies what stands in `code`; where the clipboard is closed, it is selected. */
  function copier(label, code) {
    const button = make("button", { type: "button", textContent: label });
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
      }
      setTimeout(() => {
        button.textContent = label;
      }, 2000);
    });
    return button;
  }

  function entry(name) {
    const symbol = symbols.get(name);
    const button = make(
      "button",
      { type: "button" },
      ...said(symbol).map((line) =>
        make("span", { className: line.className }, ...line.childNodes),
      ),
    );
    const on = () => shine(symbol);
    const off = () => light.replaceSync("");
    for (const type of ["focus", "pointerenter"]) button.addEventListener(type, on);
    for (const type of ["blur", "pointerleave"]) button.addEventListener(type, off);
    button.addEventListener("click", () => {
      // its light stays until the next click, or Escape
      menu.hidePopover();
      on();
      pinned = true;
    });
    return make("li", {}, button);
  }

  /* As page.py does it: the name under which the TeX of a formula is known. */
  function digest(mathml) {
    const elements = Array.from(mathml.querySelectorAll("*"), (element) => element.localName);
    let number = 0x811c9dc5;
    for (const sign of [...elements, mathml.textContent.replace(/\s+/g, "")].join(" ")) {
      number = Math.imul(number ^ sign.codePointAt(0), 0x01000193) >>> 0;
    }
    return number.toString(16);
  }

  let opener = null; // the button that the menu belongs to

  function fill(math) {
    const number = math.querySelector(".eqno")?.firstChild.textContent ?? "";
    const label = math.closest("[id^=equation-]")?.id.slice("equation-".length);
    menu.setAttribute("aria-label", `Equation ${number}`.trim());
    const tex = make("pre", {
      className: "visually-hidden",
      textContent: known.tex[digest(math.querySelector("mjx-assistive-mml"))] ?? "",
    });
    const numpy = make("pre", { textContent: known.numpy[label] ?? "" });
    const copies = make("p", { className: "copies" });
    if (tex.textContent) copies.append(copier("Copy TeX", tex));
    if (numpy.textContent) copies.append(copier("Copy NumPy", numpy));
    const found = new Set(
      Array.from(math.querySelectorAll("mjx-math [data-symbol]"), (place) => place.dataset.symbol),
    );
    const list = make("ul", {}, ...Array.from(found, entry));
    menu.replaceChildren(
      copies,
      tex,
      ...(numpy.textContent ? [numpy] : []),
      ...(found.size ? [list] : []),
    );
  }

  for (const scroll of article.querySelectorAll(".math-scroll")) {
    const math = scroll.parentElement;
    const number = math.querySelector(".eqno")?.firstChild.textContent ?? "";
    const button = make("button", {
      type: "button",
      className: "equation-button",
      textContent: "⋯",
    });
    button.setAttribute("aria-label", `Equation ${number}: symbols, copy`.replace(" :", ":"));
    button.setAttribute("aria-expanded", "false");
    button.popoverTargetElement = menu;
    button.addEventListener("click", () => {
      hide();
      opener = button;
      fill(math);
    });
    math.append(button);
    math.classList.add("has-button");
  }
  menu.addEventListener("toggle", (event) => {
    opener.setAttribute("aria-expanded", event.newState === "open");
    if (event.newState !== "open") return;
    stand(menu, opener);
    menu.querySelector("button")?.focus({ preventScroll: true });
  });
  menu.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...menu.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement) + step;
    all[(at + all.length) % all.length].focus();
    event.preventDefault();
  });
})();
