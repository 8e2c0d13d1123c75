/**
 * The reader's progress, which this browser keeps, and the events that announce it. The keys of the
 * storage and the names of the events are defined here alone; the build gives them to the page's
 * own scripts, book.js and widget_host.js (_ext/assets.py).
 */

export const STORE = "attention-by-hand";
export const PLACE = "attention-by-hand-place"; // the last chapter read, which book.js keeps
// What a reader wrote, before the key of its exercise (practice.js).
export const PRACTICE = "attention-by-hand-practice/";
export const CHANGED = "attention-by-hand:progress";
// The page then opens what it kept closed (_ext/pages/static/book.js).
export const PREDICTED = "predicted";
// The page then sets a picture as the event says (_ext/widgets/static/widget_host.js).
export const PLAY = "attention-by-hand:play";
export const POSE = "play"; // to one picture, with the values that it takes (kit/mount.js)

/** Tells the page that the reader has an answer to a prediction, right or given up. */
export function announcePrediction(view) {
  const detail = view.state().key;
  view.root.dispatchEvent(new CustomEvent(PREDICTED, { bubbles: true, detail }));
}

/** Tells the page that what is kept has changed. */
export const announceProgress = () => dispatchEvent(new Event(CHANGED));

/** The ids of what was answered right in this browser; null where it lets nothing be kept. */
export function progress() {
  try {
    const text = localStorage.getItem(STORE);
    try {
      const { right } = JSON.parse(text);
      return right.filter((id) => typeof id === "string");
    } catch {
      return []; // nothing yet, or not ours
    }
  } catch {
    return null;
  }
}

/** Keeps one more id; false where the browser forbids it or has no room. */
export function record(id) {
  const known = progress();
  if (known?.includes(id)) return true;
  try {
    localStorage.setItem(STORE, JSON.stringify({ right: [...known, id] }));
  } catch {
    return false;
  }
  announceProgress();
  return true;
}

/** Takes one id back; false where the browser forbids it. */
export function takeBack(id) {
  const known = progress();
  if (known === null) return false;
  try {
    localStorage.setItem(STORE, JSON.stringify({ right: known.filter((each) => each !== id) }));
  } catch {
    return false;
  }
  announceProgress();
  return true;
}

/** Forgets everything: answers, place and code; false where nothing could be kept. */
export function erase() {
  try {
    for (const name of Object.keys(localStorage)) {
      if ([STORE, PLACE].includes(name) || name.startsWith(PRACTICE)) localStorage.removeItem(name);
    }
  } catch {
    return false;
  }
  announceProgress();
  return true;
}

/**
 * Draws a widget with the progress of this browser, and again when it changes, here or in another
 * tab.
 */
export function followProgress(view) {
  view.redraw();
  for (const event of ["storage", CHANGED]) view.listen(self, event, view.redraw);
}
