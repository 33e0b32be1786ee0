// What pages do beyond showing: local times, charts, messages to the person, light and dark.
(() => {
  "use strict";
  const root = document.documentElement;
  const all = (within, selector) => Array.from(within.querySelectorAll(selector));
  // Texts and dates in the language of the page; a reader's own region if it speaks that language too.
  const words = JSON.parse(document.body.dataset.words || "{}");
  const language = [navigator.language, root.lang].find((tag) => tag && tag.split("-")[0] === root.lang.split("-")[0]);

  // Times are written in UTC by the server; here they become those of the reader.
  const clock = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  function localise(within) {
    for (const time of all(within, "time[datetime]:not([data-keep])")) {
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      time.title = time.textContent;
      time.textContent = clock.format(moment);
      time.dataset.keep = "";
    }
  }

  // Notices appear in a corner and are read by screen readers. They disappear by themselves; failures stay longer.
  const timers = new Map();
  function tell(id, text) {
    const place = document.getElementById(id);
    if (!place) return;
    clearTimeout(timers.get(id));
    place.textContent = text;
    place.dataset.told = "";
    timers.set(id, setTimeout(() => delete place.dataset.told, id === "failed" ? 12000 : 6000));
  }
  document.addEventListener("said", (event) => {
    const { text, undo } = event.detail;
    if (undo && undo.length) offerUndo(text, undo);
    else tell("said", text);
  });

  // The last change of memories can be undone until the page is left.
  function offerUndo(text, memories) {
    const bar = document.getElementById("undo");
    if (!bar) return;
    for (const field of all(bar, "input[name=memory]")) field.remove();
    for (const memory of memories) {
      const field = document.createElement("input");
      Object.assign(field, { type: "hidden", name: "memory", value: memory });
      bar.querySelector("form").append(field);
    }
    bar.hidden = false;
    bar.querySelector("span").textContent = text;
  }

  // One box chooses all; the bar below the list says how many are chosen.
  function count(form) {
    const boxes = all(document, `input[name=memory][form=${form.id}]`);
    const chosen = boxes.filter((box) => box.checked).length;
    const every = form.querySelector("[data-all]");
    every.checked = chosen > 0 && chosen === boxes.length;
    every.indeterminate = chosen > 0 && chosen < boxes.length;
    form.querySelector("[data-chosen]").textContent = words.chosen.replace("{count}", chosen.toLocaleString(language));
    form.classList.toggle("none", chosen === 0);
  }
  document.addEventListener("change", (event) => {
    const form = document.getElementById("bulk");
    if (!form) return;
    if (event.target.matches("[data-all]")) {
      for (const box of all(document, "input[name=memory][form=bulk]")) box.checked = event.target.checked;
    }
    if (event.target.form === form) count(form);
  });
  document.addEventListener("htmx:responseError", (event) => {
    const answer = event.detail.xhr;
    if (answer.status === 401) {
      location.reload();
      return;
    }
    let problem = {};
    try {
      problem = JSON.parse(answer.responseText);
    } catch {
      // Not one of our own answers: its number has to do.
    }
    const form = event.detail.elt.closest("form");
    const explained = form && (problem.errors || []).map((error) => explain(form, error));
    if (!explained || !explained.length || explained.includes(false)) {
      tell("failed", problem.detail || words.answered.replace("{status}", answer.status));
    }
  });

  // What is wrong is said beside the field, as the server does where there are no scripts (form_errors.py).
  function explain(form, error) {
    const name = error.where.slice(error.where.indexOf(".") + 1);
    const field = all(form, "input:not([type=hidden]), select, textarea").find((each) => each.name === name);
    if (!field) return false;
    const message = document.createElement("b");
    message.className = "wrong";
    message.id = `wrong-${name}`;
    message.setAttribute("role", "alert");
    message.textContent = error.what;
    field.after(message);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", [field.getAttribute("aria-describedby"), message.id].filter(Boolean).join(" "));
    field.focus();
    return true;
  }
  document.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.detail.elt.closest("form");
    if (!form) return;
    for (const message of all(form, ".wrong")) {
      for (const field of all(form, `[aria-describedby~="${message.id}"]`)) {
        field.removeAttribute("aria-invalid");
        field.setAttribute("aria-describedby", field.getAttribute("aria-describedby").replace(message.id, "").trim());
      }
      message.remove();
    }
  });
  document.addEventListener("htmx:sendError", () => tell("failed", words.unreachable));
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.target;
    if (event.detail.successful && form instanceof HTMLFormElement && form.hasAttribute("data-reset")) form.reset();
  });
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.sure;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  // Forms with a single choice.
  document.addEventListener("change", (event) => event.target.closest("form[data-at-once]")?.requestSubmit());

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Pages without TLS have no clipboard.
    }
    const field = document.createElement("textarea");
    field.value = text;
    const before = document.activeElement;
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    before?.focus();
    return copied;
  }
  for (const button of all(document, "[data-copy-from]")) {
    button.addEventListener("click", async () => {
      const field = document.getElementById(button.dataset.copyFrom);
      field.select();
      if (await copy(field.value)) tell("said", button.dataset.copied);
    });
  }

  // Light and dark.
  function dark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  for (const button of all(document, "[data-theme-switch]")) {
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try {
        localStorage.setItem("theme", root.dataset.theme);
      } catch {
        // It counts until the page is left.
      }
      redraw();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());

  for (const button of all(document, "[data-menu]")) {
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      document.body.classList.toggle("menu-open", open);
    });
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const field = document.querySelector("[data-find], input[type=search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
  });

  // Charts.
  const drawn = new Map();
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  function colour(name) {
    // Resolved by the browser, as a canvas does not know of variables.
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  }
  function faint(value) {
    return value.replace(/^rgb\((.*)\)$/, "rgba($1, .14)").replace(/^(color\(.*)\)$/, "$1 / .14)");
  }
  const total = (values) => values.reduce((sum, one) => sum + one, 0);
  function options(data, width) {
    const text = colour("--quiet");
    const grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: text, grid, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const whole = (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick.toLocaleString(language) : ""));
    const bars = data.kind === "stacked";
    const right = data.series.some((one) => one.scale);
    const series = data.series.map((one) => {
      const stroke = colour(one.colour);
      return {
        label: one.label,
        scale: one.scale || "y",
        stroke,
        width: bars ? 0 : 2,
        fill: bars ? stroke : one.scale ? undefined : faint(stroke),
        paths: bars ? uPlot.paths.bars({ size: [0.72, 26], radius: 0.15 }) : uPlot.paths.linear(),
        points: { show: false },
        // Away from the chart: what all bars are together, or where the line has got to.
        value: (_, __, ___, at) => (at === null ? (bars ? total(one.values) : one.values.at(-1)) : one.values[at]).toLocaleString(language),
      };
    });
    const range = (_, __, most) => [0, Math.max(most * 1.08, 1)];
    const axes = [
      { ...axis, grid: { show: false }, values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toLocaleDateString(language, { day: "numeric", month: "short" })), space: 64, size: 28 },
      { ...axis, values: whole, size: 46 },
    ];
    if (right) axes.push({ ...axis, values: whole, size: 40, side: 1, scale: "right", grid: { show: false } });
    const day = 86400;
    return {
      width,
      height: 210,
      series: [{ label: words.day, value: (_, value) => (value === null ? (bars ? words.all : words.last) : new Date(value * 1000).toLocaleDateString(language, { dateStyle: "medium" })) }, ...series],
      axes,
      scales: { x: { time: true, range: (_, least, most) => [least - day * 0.6, most + day * 0.6] }, y: { range }, ...(right && { right: { range } }) },
      cursor: { y: false, points: { show: !bars } },
      legend: { live: true },
    };
  }
  function stacked(data) {
    // The first series is drawn first and tallest: each shows its own part above those after it.
    const sums = data.series.map((_, place) =>
      data.x.map((__, at) => data.series.slice(place).reduce((sum, one) => sum + one.values[at], 0)),
    );
    return [data.x, ...sums];
  }
  function draw(place) {
    if (typeof uPlot === "undefined") return;
    const data = JSON.parse(place.dataset.chart);
    drawn.get(place)?.destroy();
    place.replaceChildren();
    if (!data.x.length) return;
    const values = data.kind === "stacked" ? stacked(data) : [data.x, ...data.series.map((one) => one.values)];
    drawn.set(place, new uPlot(options(data, place.clientWidth || 300), values, place));
  }
  function redraw() {
    for (const place of drawn.keys()) draw(place);
  }
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const chart = drawn.get(target);
      const wide = Math.floor(target.clientWidth);
      if (chart && wide && wide !== chart.width) chart.setSize({ width: wide, height: chart.height });
    }
  });
  for (const place of all(document, "[data-chart]")) {
    draw(place);
    watch.observe(place);
  }

  // What can be scrolled can be reached with the keyboard, and says what it is.
  function reachable() {
    for (const place of all(document, ".scroll, .tabs")) {
      const scrolls = place.scrollWidth > place.clientWidth || place.scrollHeight > place.clientHeight;
      if (!scrolls || place.hasAttribute("tabindex") || place.querySelector("a[href], button, input, select")) continue;
      const title = place.querySelector("caption") || place.closest("section, details, .card")?.querySelector("h2, h3, summary");
      place.tabIndex = 0;
      place.setAttribute("role", "region");
      place.setAttribute("aria-label", (title?.textContent || document.title).trim());
    }
  }
  reachable();
  window.addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
  document.addEventListener("htmx:afterSettle", reachable);

  // On a phone the tabs are wider than the screen: the one that is open is to be seen.
  const tab = document.querySelector(".tabs [aria-current]");
  if (tab) {
    const row = tab.closest(".tabs");
    row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
  }

  // A chat opens at its end, or at the message that the address names; a part of a page that it names is unfolded.
  const named = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) named.open = true;
  const marked = document.querySelector(".turn.marked");
  if (marked) marked.scrollIntoView({ block: "center", behavior: "instant" });
  else if (!location.hash && !location.search.includes("day=")) all(document, ".chat .turn").at(-1)?.scrollIntoView({ block: "end", behavior: "instant" });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (button && (await copy(button.dataset.copy))) tell("said", button.dataset.copied);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });

  localise(document);
  const recount = () => document.getElementById("bulk") && count(document.getElementById("bulk"));
  recount();
  document.addEventListener("htmx:afterSettle", recount);
  document.addEventListener("htmx:load", (event) => localise(event.detail.elt));
  if (document.getElementById("said")?.hasAttribute("data-told")) tell("said", document.getElementById("said").textContent);
  root.dataset.ready = "";
})();
