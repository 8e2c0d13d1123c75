/** How the model that writes comes to a page, for each widget that uses it. */
import { openFile } from "./story.js";

const opened = new WeakMap(); // what a file holds, once for all widgets of a page

/** The data that the kernel of a notebook sends. */
const fromKernel = (view) =>
  new Promise((resolve) => {
    const look = () => view.state().file.data && resolve(view.state().file);
    view.follow(look);
    view.set({ wanted: true });
    look();
  });

async function fileOf(view) {
  if (view.state().kernel) return fromKernel(view);
  if (!self.writer) throw new Error("The model is in the pages of the book, and in Jupyter.");
  return self.writer.load();
}

/** Returns the model and its world; meanwhile, `engine` says how far it is, and what went wrong. */
export async function loadModel(view) {
  view.set({ engine: { state: "loading", error: "" } });
  try {
    const file = await fileOf(view);
    if (!opened.has(file)) opened.set(file, openFile(file));
    view.set({ engine: { state: "ready", error: "" } });
    return opened.get(file);
  } catch (error) {
    view.set({ engine: { state: "failed", error: error.message } });
    throw error;
  }
}
