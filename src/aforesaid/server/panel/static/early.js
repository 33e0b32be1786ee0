// Before anything is drawn: the colours that were chosen, if the browser's own were not wanted; that scripts run; and
// clicks that come before the other scripts.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("scripts");
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing uses its own colours.
  }

  // A form that htmx sends waits until htmx is there: sent by the browser, it would load the page again. If htmx does
  // not come, the browser sends it.
  const patience = 2000; // milliseconds
  const early = [];
  let ready = false;
  function release() {
    ready = true;
    for (const [form, button] of early.splice(0)) form.requestSubmit(button);
  }
  document.addEventListener("submit", (event) => {
    if (ready || !event.target.hasAttribute("hx-post")) return;
    event.preventDefault();
    if (early.push([event.target, event.submitter]) === 1) setTimeout(release, patience);
  }, true);
  // After the listeners of this event, where htmx takes the forms over.
  document.addEventListener("DOMContentLoaded", () => setTimeout(release));
})();
