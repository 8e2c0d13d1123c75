/** A word that two sentences have, and the sentences as buttons that choose it. */
import { element, html } from "../kit/markup.js";

export const KINDS = ["first", "second"];

/**
 * What a sentence calls its tokens: those that it has several times are numbered, as `names_of` in
 * views.py.
 */
export function namesOf(tokens) {
  const count = (list, token) => list.filter((other) => other === token).length;
  return tokens.map((token, i) =>
    count(tokens, token) > 1 ? `${token} (${count(tokens.slice(0, i + 1), token)})` : token,
  );
}

/**
 * The places of a word in both; else of the longest that both have, or of the first, as `places_of`
 * in views.py.
 */
export function placesOf(pair, word) {
  const names = pair.map(namesOf);
  const both = names[0].filter(
    (name) => names[1].includes(name) && !["[CLS]", "[SEP]"].includes(name),
  );
  const longest = both.reduce(
    (best, name) => (best && best.length >= name.length ? best : name),
    "",
  );
  const chosen = names.every((list) => list.includes(word)) ? word : longest;
  return names.map((list) => Math.max(list.indexOf(chosen), 0));
}

/** A sentence as its tokens; those that both have are buttons that choose the word. */
function tokensOf({ tokens, at: places }, which) {
  const names = tokens.map(namesOf);
  const token = (text, i) => {
    const attributes = {
      type: "button",
      "data-word": names[which][i],
      "aria-pressed": String(i === places[which]),
    };
    return names[1 - which].includes(names[which][i])
      ? element("button", attributes, text)
      : element("span", {}, text);
  };
  return html`<p class="follow ${KINDS[which]}" data-key="${tokens.join(" ")}" role="group"
aria-label="The words of sentence ${which + 1}">${element("i", {
    "aria-hidden": "true",
  })}${tokens[which].map(token)}</p>`;
}

/** Both sentences, paler while others are being read. */
export const pairOf = (found) =>
  html`<div class="pair${found.current ? "" : " stale"}">${[0, 1].map((which) =>
    tokensOf(found, which),
  )}</div>`;
