/* A link leads exactly to its place, although a chapter has its real height only once it is near
   (whole.css): what comes near with the jump moves the place, so it is looked up again. */
"use strict";

async function land(hash) {
  const place = document.getElementById(decodeURIComponent(hash.slice(1)));
  for (let frame = 0; place && frame < 5; frame++) {
    await new Promise(requestAnimationFrame);
    if (location.hash === hash) place.scrollIntoView();
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link) land(link.hash);
});
// A reader who comes back or loads the page again stays where they were.
const [{ type }] = performance.getEntriesByType("navigation");
if (type === "navigate") addEventListener("load", () => land(location.hash));
