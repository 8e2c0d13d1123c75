/* The little that a page does by itself: copy buttons, scrolling by keyboard, drawers. */
"use strict";

/* A code block gets a button that copies it. */
function addCopyButton(pre) {
  const button = document.createElement("button");
  button.className = "copy-button";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    button.textContent = (await copy(pre)) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
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

/* What is wider than its box can be reached by Tab, and then scrolled by the arrow keys. */
const LABELS = {
  "math-scroll": "Equation", "figure-scroll": "Figure", "table-wrapper": "Table", output: "Output",
};
function reachIfWide(box) {
  if (box.scrollWidth > box.clientWidth + 1) {
    const label = Object.keys(LABELS).find(name => box.classList.contains(name));
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `${LABELS[label] ?? "Code"}, scrolls sideways`);
  } else {
    for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
  }
}

document.querySelectorAll("article .highlight pre").forEach(addCopyButton);

const widths = new ResizeObserver(entries => entries.forEach(entry => reachIfWide(entry.target)));
document
  .querySelectorAll("article pre, .math-scroll, .figure-scroll, .table-wrapper, .cell_output .output")
  .forEach(box => widths.observe(box));

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
    if (toggle.checked) links.find(link => link.getClientRects().length)?.focus();
  });
  const close = () => { if (toggle.checked) toggle.click(); };
  drawer.addEventListener("click", event => { if (event.target.closest("a")) close(); });
  document.addEventListener("keydown", event => {
    if (event.key !== "Escape" || !toggle.checked) return;
    close();
    button.focus();
  });
}

const DRAWERS = { __navigation: ["Menu", ".sidebar-drawer"], __toc: ["Contents", ".toc-drawer"] };
for (const [id, [name, drawer]] of Object.entries(DRAWERS)) {
  document
    .querySelectorAll(`.page label[for="${id}"]`)
    .forEach(label => makeButton(label, name, document.querySelector(drawer)));
}
