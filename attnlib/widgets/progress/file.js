/**
 * A reader's progress as one file: what was answered right, the place in the course, and the code
 * of the exercises. A file that is read may come from anybody, so only what has the form of our own
 * is taken from it.
 */
import { announceProgress, PLACE, PRACTICE, progress, STORE } from "../kit/progress.js";

const COURSE = "Attention by Hand";
const LARGEST = 1_000_000; // bytes of a file
const MOST = 2000; // answers, and exercises with code
const LONGEST = 20_000; // letters of the code of an exercise
const NAME = String.raw`[\p{L}\p{N}_.-]{1,100}`;
const ID = new RegExp(`^${NAME}/${NAME}$`, "u");
const PLACES = /^chapters\/[\w-]{1,100}\.html(#[\w-]{1,100})?$/;

/** What this browser keeps, as {right, place, code}, with code by the key of its exercise. */
function kept() {
  const code = [];
  let place;
  try {
    for (const name of Object.keys(localStorage)) {
      if (name.startsWith(PRACTICE))
        code.push([name.slice(PRACTICE.length), localStorage.getItem(name)]);
    }
    place = localStorage.getItem(PLACE) ?? undefined;
  } catch {} // it keeps nothing
  return { right: progress() ?? [], place, code: Object.fromEntries(code.sort()) };
}

/** The text of a file with everything that this browser keeps. */
export const exported = () => JSON.stringify({ course: COURSE, ...kept() }, null, 2);

/**
 * What a file holds, as {right, place, code}, code as pairs of a key and a text; an error that says
 * what is wrong with it.
 */
export async function read(file) {
  if (file.size > LARGEST) throw new Error("The file is too large to be saved progress.");
  let said;
  try {
    said = JSON.parse(await file.text());
  } catch {}
  if (said?.course !== COURSE || !Array.isArray(said.right))
    throw new Error("This file holds no progress of this course.");
  const isId = (id) => typeof id === "string" && ID.test(id);
  const isCode = ([key, text]) => isId(key) && typeof text === "string" && text.length <= LONGEST;
  const isPlace = typeof said.place === "string" && PLACES.test(said.place);
  return {
    right: said.right.filter(isId).slice(0, MOST),
    place: isPlace ? said.place : undefined,
    code: Object.entries(said.code ?? {})
      .filter(isCode)
      .slice(0, MOST),
  };
}

/** How many exercises have other code here than in the file. */
export function differing({ code }) {
  const here = new Map(Object.entries(kept().code));
  return code.filter(([key, text]) => here.has(key) && here.get(key) !== text).length;
}

/**
 * Adds what a file holds to what is kept. Nothing that is kept is lost, unless `replace` says that
 * the file's code takes the place of other code. Returns how many answers and exercises are new or
 * other than before; null where the browser keeps nothing or has no room.
 */
export function add({ right, place, code }, replace) {
  const here = kept();
  const known = new Map(Object.entries(here.code));
  const all = [...new Set([...here.right, ...right])];
  const written = code.filter(([key, text]) =>
    known.has(key) ? replace && known.get(key) !== text : true,
  );
  try {
    localStorage.setItem(STORE, JSON.stringify({ right: all }));
    if (place && !here.place) localStorage.setItem(PLACE, place);
    for (const [key, text] of written) localStorage.setItem(PRACTICE + key, text);
  } catch {
    return null;
  } finally {
    announceProgress();
  }
  return { answers: all.length - here.right.length, exercises: written.length };
}
