/* The little that a page does by itself: copy buttons, scrolling by keyboard, drawers, answers. */
"use strict";

// The build puts the values in the place of this line (_ext/assets.py); practice.js shares STORE.
import { CHANGED, PLACE, PREDICTED, STORE } from "../../../attnlib/widgets/kit/progress.js";

const HERE = document.currentScript.src || location.href; // where the other scripts are

/* A code block gets a button that copies it. */
function addCopyButton(pre) {
  const button = document.createElement("button");
  button.className = "copy-button";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    button.textContent = (await copy(pre)) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
  pre.parentElement.append(button);
}

/* Selects the text first: where the clipboard is closed to pages, the reader's own keys work. */
async function copy(pre) {
  const selection = getSelection();
  selection.selectAllChildren(pre);
  try {
    await navigator.clipboard.writeText(pre.textContent.replace(/\n$/, ""));
  } catch {
    return document.execCommand("copy");
  }
  selection.removeAllRanges();
  return true;
}

/* What is wider than its box can be reached by Tab, and then scrolled by the arrow keys. All
   boxes are measured before the first is changed: a change makes the next measure a layout. */
const LABELS = {
  "math-scroll": "Equation",
  "figure-scroll": "Figure",
  "table-wrapper": "Table",
  output: "Output",
};
function reachWide(boxes) {
  const isWide = boxes.map((box) => box.scrollWidth > box.clientWidth + 1);
  boxes.forEach((box, i) => {
    if (isWide[i] ? box.hasAttribute("role") : !box.hasAttribute("tabindex")) return;
    const kind = Object.keys(LABELS).find((name) => box.classList.contains(name));
    const label = `${LABELS[kind] ?? "Code"}, scrolls sideways`;
    const attributes = { tabindex: 0, role: "group", "aria-label": label };
    for (const [name, value] of Object.entries(attributes)) {
      if (isWide[i]) box.setAttribute(name, value);
      else box.removeAttribute(name);
    }
  });
}

document.querySelectorAll("article :not(.cell_output *) > .highlight > pre").forEach(addCopyButton);

const widths = new ResizeObserver((entries) => reachWide(entries.map((entry) => entry.target)));
document
  .querySelectorAll(
    "article pre, .math-scroll, .figure-scroll, .table-wrapper, .cell_output .output",
  )
  .forEach((box) => widths.observe(box));

/* Furo opens the menu and the contents by labels of hidden checkboxes, which no key reaches.
   They become buttons, and Tab goes on inside of what they open. */
function makeButton(label, name, drawer) {
  const toggle = document.getElementById(label.htmlFor);
  const button = document.createElement("button");
  button.type = "button";
  button.className = label.className;
  button.append(...label.childNodes);
  button.setAttribute("aria-label", name);
  button.setAttribute("aria-expanded", "false");
  label.replaceWith(button);
  button.addEventListener("click", () => toggle.click());
  toggle.addEventListener("change", () => {
    button.setAttribute("aria-expanded", toggle.checked);
    const links = [...drawer.querySelectorAll("a")];
    if (toggle.checked) links.find((link) => link.getClientRects().length)?.focus();
  });
  const close = () => {
    if (toggle.checked) toggle.click();
  };
  drawer.addEventListener("click", (event) => {
    if (event.target.closest("a")) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !toggle.checked) return;
    close();
    button.focus();
  });
}

const DRAWERS = { __navigation: ["Menu", ".sidebar-drawer"], __toc: ["Contents", ".toc-drawer"] };
for (const [id, [name, drawer]] of Object.entries(DRAWERS)) {
  document
    .querySelectorAll(`.page label[for="${id}"]`)
    .forEach((label) => makeButton(label, name, document.querySelector(drawer)));
}

/* The search comes when it is asked for, by its link or by "/"; without it the link leads on. */
const SEARCH = new URL("search.js", HERE);
function search() {
  if (self.openSearch) return self.openSearch();
  const script = document.createElement("script");
  script.src = SEARCH;
  script.onload = () => self.openSearch();
  script.onerror = () => {
    location.href = new URL("../search.html", SEARCH);
  };
  return document.head.append(script);
}

const TYPED =
  "textarea, select, [contenteditable], " +
  "input:not([type=range], [type=checkbox], [type=radio], [type=button])";
document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (!event.target.closest("[data-search]")) return;
  event.preventDefault();
  search();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.defaultPrevented || event.target.closest?.(TYPED)) return;
  event.preventDefault();
  search();
});

/* The page as slides comes when its address asks for it: #slides (slides.js). */
function slides() {
  if (self.showSlides) return self.showSlides();
  if (!/^#slides(-\d+)?(&|$)/.test(location.hash)) return;
  const script = document.createElement("script");
  script.src = new URL("slides.js", HERE);
  script.onload = () => self.showSlides();
  document.head.append(script);
}
addEventListener("hashchange", slides);
slides();

/* The contents of the book show the page that is read, also where it stands far down: with the next
   frame, whose layout is made anyway. */
const shelf = document.querySelector(".sidebar-scroll");
const page = shelf?.querySelector(".current-page > a");
function showPage() {
  const below = page.getBoundingClientRect().bottom - shelf.getBoundingClientRect().bottom;
  if (below > 0) shelf.scrollTo({ top: below + shelf.clientHeight / 2, behavior: "instant" });
}
if (page && matchMedia("(min-width: 63.01em)").matches) requestAnimationFrame(showPage);

/* A prediction that was made, or given up, opens the answer below it. */
const answers = Array.from(document.querySelectorAll("article details.answer"));
addEventListener(PREDICTED, (event) => {
  for (const answer of answers) if (answer.dataset.after === event.detail) answer.open = true;
});

/* On paper nothing opens: there the answers stand at the end of their chapter, and each says to
   what (folding.py). A widget keeps its own for readers without JavaScript; it gives a copy. */
let moved = [];
let endings = [];

function move(answer) {
  const place = document.createElement("p");
  place.className = "answer-place";
  place.textContent = "The answer stands at the end of the chapter.";
  answer.replaceWith(place);
  moved.push({ answer, place, open: answer.open });
  return answer;
}

function copied(answer) {
  const question = answer.closest("form, .abh").querySelector("legend, .question").cloneNode(true);
  const [copy, of] = [answer.cloneNode(true), document.createElement("p")];
  of.className = "answer-of";
  of.textContent = question.textContent;
  copy.className = "answer of-widget";
  copy.firstElementChild.after(of);
  return copy;
}

function gather() {
  if (endings.length) return;
  for (const chapter of document.querySelectorAll("article:not(:has(.whole)), .whole")) {
    const found = chapter.querySelectorAll("details.answer, .abh .status-line details");
    if (!found.length) continue;
    const ending = document.createElement("section");
    ending.className = "answers";
    ending.innerHTML = chapter.matches(".whole") ? "<h3>Answers</h3>" : "<h2>Answers</h2>";
    for (const answer of found) {
      ending.append(answer.matches(".answer") ? move(answer) : copied(answer));
      ending.lastElementChild.open = true;
    }
    chapter.append(ending);
    endings.push(ending);
  }
}

function putBack() {
  for (const { answer, place, open } of moved) {
    place.replaceWith(answer);
    answer.open = open;
  }
  for (const ending of endings) ending.remove();
  [moved, endings] = [[], []];
}

addEventListener("beforeprint", gather);
addEventListener("afterprint", putBack);

/* Linked reading (_ext/symbols/symbols.js) comes when someone points at what it knows, goes on by
   Tab, or touches anything: on a phone the buttons of the equations are there before one scrolls to
   them. */
const linked = document.createElement("script");
linked.src = new URL("symbols.js", HERE);
const KNOWN = "mjx-container, .math, pre, code, .widget-slot";
for (const sign of ["pointerover", "pointerdown", "keydown"]) {
  addEventListener(sign, (event) => {
    const asked =
      event.key === "Tab" || event.pointerType === "touch" || event.target.closest?.(KNOWN);
    if (!asked || linked.isConnected) return;
    linked.sign = event.target;
    document.head.append(linked);
  });
}

/* In the contents a chapter of which everything is answered gets a tick. */
function tick() {
  const right = new Set();
  try {
    JSON.parse(localStorage.getItem(STORE)).right.forEach((id) => right.add(id));
  } catch {} // nothing is kept, or nothing yet
  for (const link of document.querySelectorAll(".sidebar-tree a[data-asks]")) {
    const questions = Object.entries(JSON.parse(link.dataset.asks));
    const all = questions.flatMap(([key, n]) =>
      Array.from({ length: n }, (_, i) => `${key}/${i + 1}`),
    );
    link.classList.toggle(
      "done",
      all.every((id) => right.has(id)),
    );
  }
}
// Progress was made or erased, here or elsewhere.
const ANNOUNCED = ["storage", CHANGED, "pageshow"];
for (const event of ANNOUNCED) addEventListener(event, tick);

/* A chapter is where the reader is, and the section. The start page leads on to it, and the
   contents of pages that are no chapters mark it; only this browser knows. What was kept counts
   only if there is a link to it. */
const begin = document.querySelector(".begin a");
const chapter = location.pathname.match(/[/](chapters[/][^/]+[.]html)$/)?.[1];

function kept() {
  try {
    return localStorage.getItem(PLACE)?.match(/^([^#]+)(#[\w-]+)?$/) ?? [];
  } catch {
    return []; // a browser that keeps nothing begins anew
  }
}

function leadOn({ href, title }) {
  const [, place, section = ""] = kept();
  const last = [...document.querySelectorAll("article section a")].find(
    (link) => link !== begin && place && link.href.endsWith(`/${place}`),
  );
  begin.href = last ? last.href + section : href;
  begin.querySelector("strong").textContent = last ? "Continue" : "Begin";
  begin.querySelector("em").textContent = last?.textContent ?? title;
}

function keepPlace() {
  const section = document.querySelector(".toc-tree .scroll-current > a")?.hash ?? "";
  try {
    localStorage.setItem(PLACE, chapter + section);
  } catch {}
}

function markPlace() {
  const [, place] = kept();
  for (const link of document.querySelectorAll(".sidebar-tree a[data-asks]")) {
    link.classList.toggle("reached", link.href.endsWith(`/${place}`));
  }
}

if (chapter) {
  keepPlace();
  addEventListener("pagehide", keepPlace);
} else {
  for (const event of ANNOUNCED) addEventListener(event, markPlace);
}
if (begin) {
  const first = { href: begin.href, title: begin.querySelector("em").textContent };
  for (const event of ANNOUNCED) addEventListener(event, () => leadOn(first));
  leadOn(first);
}

/* The goals at the end of a chapter are ticked off, and stay so in this browser. Without a script,
   and where the page has no widgets, they are a plain list. */

/** Gives an item of the list its box: the whole text is its label. */
function boxed(item) {
  const label = document.createElement("label");
  const box = Object.assign(document.createElement("input"), { type: "checkbox" });
  label.append(box, ...item.childNodes);
  item.append(label);
  return box;
}

async function bringToLife(list) {
  const { progress, record, takeBack } = await self.importShared("kit");
  const boxes = [...list.querySelectorAll("li")].map(boxed);
  const id = (at) => `${list.id}/${at + 1}`;
  list.classList.add("alive");
  const show = () => {
    const known = progress() ?? [];
    boxes.forEach((box, at) => {
      box.checked = known.includes(id(at));
    });
  };
  boxes.forEach((box, at) => {
    box.addEventListener("change", () => (box.checked ? record : takeBack)(id(at)));
  });
  for (const event of ["storage", CHANGED, "pageshow"]) addEventListener(event, show);
  show();
}

// Once all scripts of the page have run: the widgets' own store is one of their files.
addEventListener("DOMContentLoaded", () => {
  if (self.importShared) document.querySelectorAll(".goals").forEach(bringToLife);
});

/** The finding of a page waits while a guess is alive and none has an answer. */
function letWait(finding, guesses) {
  const any = (selector) => guesses.some((guess) => guess.querySelector(selector));
  const look = () =>
    finding.classList.toggle(
      "waits",
      any("button:enabled") && !any('[aria-pressed="true"], .shown'),
    );
  const observer = new MutationObserver(look);
  const changes = { attributes: true, childList: true, subtree: true };
  for (const guess of guesses) observer.observe(guess, changes);
}

for (const finding of document.querySelectorAll(".finding"))
  letWait(finding, [...document.querySelectorAll('[data-widget="Guess"]')]);
