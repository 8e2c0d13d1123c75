/* What a link leads to, shown at the link: what a term means, which paper is cited, an equation,
   the caption of a figure. It opens under the pointer, by Tab or at a touch, and closes at Escape.
   The link leads on as ever: by a click, by Enter, by a second touch. */
"use strict";

const article = document.querySelector("article");
if ("popover" in article) {
  const box = document.createElement("div");
  box.className = "glimpse";
  box.id = "glimpse";
  box.popover = "manual";
  article.append(box);

  /* The browser's own tooltip would come as well. */
  for (const link of article.querySelectorAll("a.reference[title]")) {
    link.dataset.says = link.title;
    link.removeAttribute("title");
  }

  const templates = new Map();
  for (const template of article.querySelectorAll("template[data-of]")) {
    templates.set(template.dataset.of, template);
  }

  /* Of this page: an equation without its number, or the words below a figure. */
  function here(link) {
    if (link.pathname !== location.pathname || !link.hash) return null;
    const target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    return target?.querySelector(".math-scroll > *, .caption-text")?.cloneNode(true) ?? null;
  }

  function said(link) {
    const template = templates.get(link.getAttribute("href"));
    return template?.content.cloneNode(true) ?? link.dataset.says ?? here(link);
  }

  let open = null; // the link that it speaks of
  let touched = false;
  let waiting = 0;

  function later(action, pause) {
    clearTimeout(waiting);
    waiting = setTimeout(action, pause);
  }

  function show(link) {
    clearTimeout(waiting);
    const content = link !== open && said(link);
    if (!content) return;
    hide();
    box.replaceChildren(content);
    box.showPopover();
    link.setAttribute("aria-describedby", box.id);
    open = link;
    place(link.getClientRects()[0]);
  }

  /* Below the word, or above it where there is no room; always within the page. */
  function place(word) {
    const { width, height } = box.getBoundingClientRect();
    const most = document.documentElement.clientWidth - width - 8;
    const below = word.bottom + 6 + height < innerHeight || word.top < height + 6;
    box.style.left = `${Math.max(8, Math.min(word.left, most)) + scrollX}px`;
    box.style.top = `${(below ? word.bottom + 6 : word.top - 6 - height) + scrollY}px`;
  }

  function hide() {
    clearTimeout(waiting);
    if (!open) return;
    open.removeAttribute("aria-describedby");
    open = null;
    box.hidePopover();
  }

  const linkAt = (event) => event.target.closest?.("a.reference");

  article.addEventListener("pointerover", (event) => {
    const link = linkAt(event);
    if (event.pointerType === "touch") return;
    if (link) later(() => show(link), 250);
    else if (box.contains(event.target)) clearTimeout(waiting);
    else if (open) later(hide, 250);
  });
  article.addEventListener("pointerleave", () => later(hide, 250));
  article.addEventListener("focusin", (event) => {
    const link = linkAt(event);
    if (link?.matches(":focus-visible")) show(link);
  });
  article.addEventListener("focusout", hide);
  addEventListener("pointerdown", (event) => {
    touched = event.pointerType === "touch";
    if (!box.contains(event.target) && linkAt(event) !== open) hide();
  });
  article.addEventListener("click", (event) => {
    const link = linkAt(event);
    if (!link || !touched || link === open || !said(link)) return hide();
    event.preventDefault();
    show(link);
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
}
