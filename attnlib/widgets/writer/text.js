/** Stories as people write them: words and marks, spaces and capitals, and words that are alike. */
import { END } from "./world.js";

const GLUED = new Set([".", ",", "?", "!", ":", "”", "’s"]); // stand close behind the word before
const PART = /Mrs?\.|’s(?![\p{L}\p{N}_])|[\p{L}\p{N}_-]+|[^\p{L}\p{N}_\s]/gu;

/** Each word as a reader sees it: [what stands before it, a space or nothing, the word]. */
export function shown(words) {
  let [start, last] = [true, ""];
  return words.map((word, i) => {
    start ||= last === END || (word === "“" && last !== ",");
    const before = i === 0 || last === END || last === "“" || GLUED.has(word) ? "" : " ";
    const capital = word !== END && (start || word === "i");
    const text = capital ? word[0].toUpperCase() + word.slice(1) : word;
    if (word !== END) {
      start =
        [".", "?", "!"].includes(word) || (word === "“" && start) || (word === "”" && last === ".");
    }
    last = word;
    return [before, text];
  });
}

/**
 * The words of a text that people wrote. A word with a capital loses it where `known`, a set, does
 * not have it as it is written.
 */
export function split(text, known) {
  const found = [];
  for (let part of text.replaceAll("'", "’").match(PART) ?? []) {
    if (part === '"') {
      const open = (mark) => found.filter((word) => word === mark).length;
      part = open("“") > open("”") ? "”" : "“";
    }
    const lower = part[0].toLowerCase() + part.slice(1);
    found.push(known.has(part) || !known.has(lower) ? part : lower);
  }
  return found;
}

/** A text in which a word, wherever it stands by itself, is another one. */
export function exchange(text, wrong, near) {
  return text.replaceAll("'", "’").replace(PART, (word) => (word === wrong ? near : word));
}

/** How many letters of `a` have to be changed, added or left out to make it `b`. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const above = row;
    row = [i];
    for (let j = 1; j <= b.length; j++) {
      const swapped = above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(above[j] + 1, row[j - 1] + 1, swapped));
    }
  }
  return row[b.length];
}

/** The known word that is spelled most like this one. */
export function nearestWord(word, known) {
  const letters = word.toLowerCase().slice(0, 24);
  let [best, least] = ["", Infinity];
  for (const each of known) {
    const far = distance(letters, each.toLowerCase());
    if (far < least) [best, least] = [each, far];
  }
  return best;
}
