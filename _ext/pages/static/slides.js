/**
 * A page as slides: one section after another, over the whole window, each revealed block by block.
 * They are the page itself, so its pictures stay alive and nothing else has to be built or fetched.
 * book.js loads this file for an address that ends in #slides, or in #slides-7 for the seventh.
 */
(() => {
  "use strict";
  const STYLE = `
    .slides :is(.sidebar-drawer, .toc-drawer, .mobile-header, .content-icon-container, footer,
      .back-to-top, .skip-to-content, .map-here, .headerlink),
    .slides article section > :not(section, .slide-on) { display: none; }
    .slides .page, .slides .main { display: block; }
    .slides body::before { content: none; }
    .slides { font-size: clamp(100%, 0.4375em + 0.9375vw, 200%); }
    .slides .content { width: auto; max-width: min(94vw, 58rem); margin: 0 auto;
      padding: 1rem 0 5rem; }
    .slides article { line-height: 1.5; }
    .slides article section > :is(p, ul, ol, .lead, .finding) { max-width: 46rem; }
    .slides article .slide-on { scroll-margin-block: 1rem 5rem; }
    .slides article section { margin: 0; }
    .slides .widget-slot.widget-slot.widget-slot { margin-inline: 0; }
    .slides-bar { position: fixed; inset: auto 0 0; z-index: 20; display: flex; flex-wrap: wrap;
      gap: 0.5rem; align-items: center; padding: 0.5rem 1rem; border-top: 1px solid var(--rule);
      background: var(--page); font: 0.9375rem/1.4 var(--font-stack); }
    .slides-bar p { flex: 1; min-width: 8rem; margin: 0; overflow: hidden; color: var(--muted);
      text-overflow: ellipsis; white-space: nowrap; }
    .slides-bar button { min-height: 2rem; padding: 0.2rem 0.75rem; border: 1px solid var(--line);
      border-radius: 0.3rem; background: var(--page); color: var(--ink); font: inherit; }
    .slides-bar button:disabled { color: var(--muted); border-color: var(--rule); }
    @media (max-width: 40em) { .slides-bar { padding: 0.4rem 0.5rem; gap: 0.3rem;
      font-size: 0.8125rem; } .slides-bar p { flex-basis: 100%; } }
    @media print { .slides-bar { display: none; } }`;
  // Proofs that are folded away, and code of which only the result matters.
  const LEFT_OUT = ".facts, .tag_hide-cell, .cell.tag_hide-input:not(:has(.cell_output))";
  const ADDRESS = /^#slides(?:-(\d+))?(?=&|$)/;
  const TYPED = "textarea, select, input, [contenteditable], .widget-slot, .lens";

  const sections = [...document.querySelectorAll("article section")];
  const root = document.documentElement;
  let withText = true;
  let slides = [];
  let [at, step] = [0, 0];

  /** The blocks of each section, its heading first; a section of nothing else is no slide. */
  function cutInto() {
    const isShown = (block) =>
      !block.matches(`section, ${LEFT_OUT}`) && (withText || !block.matches("section > p"));
    slides = sections
      .map((section) => [...section.children].filter(isShown))
      .filter((blocks) => blocks.length > 1);
  }

  const make = (tag, properties, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const button = (name, title, act) => {
    const made = make("button", { type: "button", textContent: name, title });
    made.addEventListener("click", act);
    return made;
  };
  const back = button("Back", "Arrow left, or Page Up", () => go(-1));
  const next = button("Next", "Arrow right, or Page Down", () => go(1));
  const text = button("Without text", "T", switchText);
  const leave = button("Leave", "Escape", () => {
    const { id } = slides[at][0].parentElement;
    location.replace(`#${id}`);
  });
  const place = make("p", {});
  place.setAttribute("role", "status");
  const bar = make("div", { className: "slides-bar" }, place, back, next, text, leave);
  bar.setAttribute("role", "region");
  bar.setAttribute("aria-label", "Slides");
  const style = make("style", { textContent: STYLE });

  function clear() {
    for (const block of document.querySelectorAll(".slide-on")) {
      block.classList.remove("slide-on");
      block.ariaLevel = null;
    }
  }

  /** Puts the heading and as many blocks as were asked for in sight, the last one into view. */
  function show() {
    const blocks = slides[at];
    clear();
    for (const block of blocks.slice(0, step + 2)) block.classList.add("slide-on");
    blocks[0].ariaLevel = "1"; // the title of what is in sight
    const title = blocks[0].cloneNode(true);
    title.querySelector(".headerlink")?.remove();
    const said = `${at + 1} of ${slides.length}: ${title.textContent.trim()}`;
    if (place.textContent !== said) place.textContent = said;
    back.disabled = at === 0 && step === 0;
    next.disabled = at === slides.length - 1 && step === blocks.length - 2;
    const room = innerHeight - bar.offsetHeight;
    const isTall = blocks[step + 1].offsetHeight > room;
    const view = { block: isTall ? "start" : "nearest", behavior: "instant" };
    if (step) blocks[step + 1].scrollIntoView(view);
    else scrollTo({ top: 0, behavior: "instant" });
    const address = `#slides-${at + 1}`;
    // As a link would set it, so that the settings of the pictures stay (widget_host.js).
    if (ADDRESS.exec(location.hash)?.[0] !== address) location.replace(address);
  }

  function go(by) {
    const last = (slide) => slides[slide].length - 2;
    if (step + by >= 0 && step + by <= last(at)) step += by;
    else if (slides[at + by]) {
      at += by;
      step = by > 0 ? 0 : last(at);
    } else return;
    show();
  }

  /** Leaves out the paragraphs, or brings them back; pictures, equations and code stay. */
  function switchText() {
    const { parentElement: section } = slides[at][0];
    withText = !withText;
    cutInto();
    if (slides.length === 0) return switchText(); // a page of paragraphs alone
    text.textContent = withText ? "Without text" : "With text";
    const order = slides.map(([heading]) => sections.indexOf(heading.parentElement));
    const here = order.findIndex((number) => number >= sections.indexOf(section));
    at = here < 0 ? slides.length - 1 : here;
    step = 0;
    show();
  }

  function press(event) {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector(":popover-open, dialog[open]")) return;
    const acts = {
      PageDown: () => go(1),
      PageUp: () => go(-1),
      ArrowRight: () => go(1),
      ArrowLeft: () => go(-1),
      t: switchText,
      Escape: () => leave.click(),
    };
    // In a control these keys are the control's; a pointer for talks sends the first two.
    const taken = target.closest?.(TYPED) && !key.startsWith("Page");
    if (!Object.hasOwn(acts, key) || taken || target.closest?.("textarea")) return;
    event.preventDefault();
    acts[key]();
  }

  /** Begins, goes to another slide or ends, as the address says. */
  self.showSlides = () => {
    const found = ADDRESS.exec(location.hash);
    if (!found) {
      if (!bar.isConnected) return;
      root.classList.remove("slides");
      clear();
      for (const node of [bar, style]) node.remove();
      removeEventListener("keydown", press);
      document.getElementById(location.hash.slice(1).split("&")[0])?.scrollIntoView();
      return;
    }
    const wanted = Number(found[1] ?? 1) - 1;
    const begins = !bar.isConnected;
    if (begins) {
      cutInto();
      if (slides.length === 0) return;
      document.head.append(style);
      document.body.append(bar);
      root.classList.add("slides");
      addEventListener("keydown", press);
    } else if (wanted === at) return;
    at = Math.min(Math.max(wanted, 0), slides.length - 1);
    step = 0;
    show();
    if (begins) next.focus({ preventScroll: true });
  };
})();
