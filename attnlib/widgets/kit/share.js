/**
 * The menu of a picture: its link, the line that embeds it elsewhere, and the picture as a file.
 *
 * A page loads this file with the first click on "Share" (_ext/widgets/static/widget_host.js).
 */
import { html } from "./markup.js";
import { copyText } from "./mount.js";
import { toPng, toSvg } from "./save.js";

const STYLE = `.share-menu { position: absolute; inset: auto; box-sizing: border-box;
width: 15rem; max-width: calc(100vw - 1rem); margin: 0; padding: 0.3rem;
border: 1px solid var(--line); border-radius: 6px; background: var(--page); color: var(--ink);
font: 0.875rem / 1.35 system-ui, sans-serif; box-shadow: 0 0.25rem 1rem rgb(0 0 0 / 18%); }
.share-menu button { display: block; width: 100%; padding: 0.35rem 0.6rem; border: 0;
border-radius: 4px; background: none; color: inherit; font: inherit; text-align: left;
cursor: pointer; }
.share-menu button:is(:hover, :focus-visible) {
background: color-mix(in srgb, var(--ink) 9%, var(--page)); }
.share-menu p { margin: 0.2rem 0.6rem 0.3rem; color: var(--muted); font-size: 0.8rem; }
.share-menu p:empty { display: none; }`;
const ACTS = {
  link: "Copy link",
  embed: "Copy embed code",
  svg: "Save SVG",
  png: "Save PNG",
};
const FROM_DISK = " The address leads to a file on this computer, so it works only here.";

/** The page that shows one picture alone (_ext/widgets/embed.py). */
function embedding(root, slot) {
  const page = /([^/]*?)(?:\.html)?$/.exec(location.pathname)[1] || "index";
  return new URL(`embed/${page.replace(/^\d+-/, "")}-${slot.dataset.name}.html`, root);
}

/** The page's own address, as it is published if the build knows that. */
function place() {
  const published = document.querySelector("link[rel=canonical]")?.href;
  return new URL(published ?? location.pathname, location.href);
}

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * Gives the picture in `slot` its menu, and opens it. `settings(name)` says how the picture stands,
 * as an address calls it by that name: {settings, dropped}; `root` is the address of the site.
 */
export function open(slot, button, { settings, root }) {
  const menu = document.createElement("div");
  menu.className = "share-menu";
  menu.popover = "auto";
  menu.role = "group";
  menu.ariaLabel = "Share this picture";
  menu.innerHTML = html`<style>${STYLE}</style>${Object.entries(ACTS).map(
    ([act, words]) => html`<button type="button" data-act="${act}">${words}</button>`,
  )}<p role="status"></p>`;
  const say = (text) => {
    menu.lastElementChild.textContent = text;
    settle();
  };

  const title = () => slot.querySelector("fieldset").ariaLabel;
  /** Where this picture can be used: with its settings, or in its section. */
  function link() {
    const address = place();
    const { text } = settings(slot.dataset.name);
    address.hash = text || (slot.closest("section[id]")?.id ?? "");
    return address.href;
  }
  /** The height that a frame needs, here or in a column of 640 pixels, whichever is higher. */
  function height() {
    const high = () => slot.getBoundingClientRect().height;
    const here = high();
    slot.style.width = "40rem";
    const narrow = high();
    slot.style.width = "";
    return Math.ceil(Math.max(here, narrow)) + 64; // and a line below it
  }
  function line() {
    const address = embedding(root, slot);
    address.hash = settings(
      slot.dataset.widget.replace(/(?<=[a-z])[A-Z]/g, "-$&").toLowerCase(),
    ).text;
    return String(
      html`<iframe src="${address.href}" title="${title()}" width="100%" height="${height()}"
style="border: 0" loading="lazy" allow="clipboard-write"></iframe>`,
    ).replaceAll("\n", " ");
  }
  const picture = () => {
    const address = place().protocol === "file:" ? "" : link();
    return toSvg(slot.querySelector(".abh"), { caption: `${title()}. ${document.title}`, address });
  };
  const name = () => embedding(root, slot).pathname.split("/").at(-1).replace(".html", "");
  const acts = {
    async link() {
      await copyText(menu, link());
      const { lost } = settings(slot.dataset.name);
      const local = place().protocol === "file:" ? FROM_DISK : "";
      say(`The link is copied. ${lost || "It opens this picture as it stands now."}${local}`);
    },
    async embed() {
      await copyText(menu, line());
      const local = place().protocol === "file:" ? FROM_DISK : "";
      say(`The line is copied. Paste it into the HTML of a page or a slide.${local}`);
    },
    svg() {
      download(`${name()}.svg`, new Blob([picture()], { type: "image/svg+xml" }));
      say("The picture is saved as SVG.");
    },
    async png() {
      download(`${name()}.png`, await toPng(picture()));
      say("The picture is saved as PNG.");
    },
  };
  menu.addEventListener("click", async ({ target }) => {
    try {
      await acts[target.dataset.act]?.();
    } catch (error) {
      say(`That did not work: ${error.message}`);
    }
  });

  function settle() {
    const [{ right, top, bottom }, { offsetWidth: width, offsetHeight: height }] = [
      button.getBoundingClientRect(),
      menu,
    ];
    const above = bottom + height > innerHeight && top > height;
    menu.style.left = `${scrollX + Math.max(8, right - width)}px`;
    menu.style.top = `${scrollY + (above ? top - height : bottom)}px`;
  }
  menu.addEventListener("toggle", ({ newState }) => {
    button.ariaExpanded = String(newState === "open");
    say("");
  });
  // Arrow keys walk from line to line, as in any menu.
  menu.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...menu.querySelectorAll("button")];
    all.at((all.indexOf(document.activeElement) + step) % all.length).focus();
  });
  button.after(menu);
  button.popoverTargetElement = menu;
  menu.showPopover({ source: button });
  settle();
  menu.querySelector("button").focus();
}
