// Pages show what changes without a reload. Elements with an id and `data-live` are kept up to date: when the server says
// that something has changed, the page is fetched again, and their children that differ are exchanged.
(() => {
  "use strict";
  const address = document.body.dataset.liveFrom;
  if (!address || typeof EventSource === "undefined" || !document.querySelector("[data-live][id]")) return;
  const words = JSON.parse(document.body.dataset.words || "{}");
  const key = (child, place) => child.id || `${child.tagName} ${place}`;
  const wait = 250; // milliseconds, in which several changes count as one

  // Somebody types, has opened or has chosen something there, or waits for what their click does: it is not replaced.
  function inUse(element) {
    if (element.contains(document.activeElement) || element.querySelector(".htmx-request")) return true;
    return Boolean(element.querySelector("details[open], form textarea, input[type=checkbox]:checked"));
  }

  function plain(element) {
    const copy = element.cloneNode(true);
    for (const time of copy.querySelectorAll("time")) {
      time.removeAttribute("title");
      time.removeAttribute("data-keep");
      time.textContent = "";
    }
    copy.removeAttribute("class");
    return copy.outerHTML.replace(/ (class|data-[a-z-]+)="[^"]*"/g, "").replace(/\s+/g, " ");
  }

  function merge(old, fresh) {
    let skipped = false;
    const kept = new Map(Array.from(old.children).map((child, place) => [key(child, place), child]));
    let last = null;
    Array.from(fresh.children).forEach((child, place) => {
      const same = kept.get(key(child, place));
      kept.delete(key(child, place));
      let now = same;
      if (!same) {
        now = document.importNode(child, true);
        now.classList.add("new");
      } else if (plain(same) !== plain(child) && !same.querySelector("[data-live][id]")) { // that updates itself
        if (inUse(same)) skipped = true;
        else now = document.importNode(child, true);
      }
      if (same && now !== same) same.replaceWith(now);
      else if (!same) {
        if (last) last.after(now);
        else old.prepend(now);
      }
      if (now !== same && window.htmx) window.htmx.process(now);
      if (now !== same) document.dispatchEvent(new CustomEvent("htmx:load", { detail: { elt: now } }));
      last = now;
    });
    for (const child of kept.values()) {
      if (child.matches(".undone") || child.querySelector(".undone")) continue; // it has a button to undo what was done just now
      if (inUse(child)) skipped = true;
      else child.remove();
    }
    return skipped;
  }

  // A chat grows at its end: what follows the last message that is shown is added, and messages that were edited are
  // exchanged. What was loaded above stays.
  function extend(old, fresh) {
    for (const turn of fresh.querySelectorAll(".turn[id]")) {
      const same = document.getElementById(turn.id);
      if (same && plain(same) !== plain(turn)) same.replaceWith(adopt(turn));
    }
    const last = Array.from(old.querySelectorAll(".turn[id]")).at(-1);
    let there = last && fresh.querySelector(`#${CSS.escape(last.id)}`);
    if (!there) return !last && fresh.querySelector(".turn") ? (old.replaceChildren(...Array.from(fresh.children, adopt)), false) : false;
    for (let here = last; here !== old; here = here.parentElement, there = there.parentElement) {
      let end = here;
      for (let next = there.nextElementSibling; next; next = next.nextElementSibling) {
        if (next.matches(".more") || (next.id && document.getElementById(next.id))) continue;
        const added = adopt(next);
        added.classList.add("new");
        end.after(added);
        end = added;
      }
    }
    return false;
  }

  function adopt(node) {
    const added = document.importNode(node, true);
    queueMicrotask(() => {
      window.htmx?.process(added);
      document.dispatchEvent(new CustomEvent("htmx:load", { detail: { elt: added } }));
    });
    return added;
  }

  // A page that was fetched before a click has done its work shows what was there before it.
  let clicks = 0;
  document.addEventListener("htmx:afterRequest", () => {
    clicks += 1;
  });

  let showing = false;
  let again = false;
  async function refresh() {
    if (showing) {
      again = true;
      return;
    }
    showing = true;
    try {
      const page = location.href;
      const before = clicks;
      const answer = await fetch(page, { headers: { "X-Aforesaid-Live": "yes" } });
      if (!answer.ok || answer.redirected) return;
      const text = await answer.text();
      if (location.href !== page || clicks !== before) {
        again = true; // somebody chose another filter or changed something since: this is the list of before
        return;
      }
      const fresh = new DOMParser().parseFromString(text, "text/html");
      const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 40;
      let skipped = false;
      for (const element of document.querySelectorAll("[data-live][id]")) {
        const newer = fresh.getElementById(element.id);
        const update = element.dataset.live === "chat" ? extend : merge;
        if (newer) skipped = update(element, newer) || skipped;
      }
      offer(skipped);
      if (atEnd && document.querySelector("[data-live=chat]")) window.scrollTo(0, document.body.scrollHeight);
    } catch {
      // The stream reconnects, and then the page is fetched again.
    } finally {
      showing = false;
      if (again) {
        again = false;
        soon();
      }
    }
  }

  function offer(wanted) {
    let button = document.getElementById("news");
    if (!wanted) {
      button?.remove();
      return;
    }
    if (button) return;
    button = document.createElement("button");
    Object.assign(button, { id: "news", type: "button", className: "news", textContent: words.news });
    button.addEventListener("click", () => location.reload());
    document.getElementById("main").prepend(button);
  }

  let timer = 0;
  function soon() {
    clearTimeout(timer);
    timer = setTimeout(refresh, wait);
  }

  // A hidden page follows nothing: browsers open only a few connections to one server.
  let source = null;
  let opened = false;
  function follow() {
    if (source || document.hidden) return;
    source = new EventSource(address);
    source.addEventListener("ready", () => {
      if (opened) soon(); // what happened while it was away
      opened = true;
      document.body.dataset.following = "";
    });
    source.addEventListener("change", soon);
    source.addEventListener("error", () => {
      delete document.body.dataset.following;
      // A refused stream is not tried again by the browser: the server may have restarted and know no sessions.
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(follow, 5000);
      }
    });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      source = null;
      delete document.body.dataset.following;
    } else follow();
  });
  window.addEventListener("pagehide", () => source?.close());
  follow();
})();
