// Before anything is drawn: the colours that were chosen, if the browser's own were not wanted; and that scripts run.
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
})();
