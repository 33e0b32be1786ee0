// The playground: asks with the memory on, off or both, and shows each answer while it comes.
(() => {
  "use strict";
  const form = document.querySelector("[data-playground]");
  if (!form) return;
  const sides = Array.from(document.querySelectorAll("[data-side]"));
  let asked = 0;

  // The server wrote the parts of the page and escaped what people said; what a model says is only ever text.
  function show(side, event) {
    if (event.piece !== undefined) side.querySelector("[data-reply]").append(event.piece);
    if (event.sent !== undefined) side.querySelector("[data-sent]").innerHTML = event.sent;
    if (event.done !== undefined) side.querySelector("[data-done]").innerHTML = event.done;
    if (event.failed !== undefined) fail(side, event.failed);
  }

  function fail(side, text) {
    const told = document.createElement("p");
    told.className = "wrong";
    told.setAttribute("role", "alert");
    told.textContent = text;
    side.querySelector("[data-done]").replaceChildren(told);
  }

  async function ask(side, number) {
    const body = new FormData(form);
    body.set("memory", side.dataset.side);
    body.delete("mode");
    const headers = { "X-CSRF-Token": form.dataset.csrf };
    const answer = await fetch(form.dataset.playground, { method: "POST", body: new URLSearchParams(body), headers });
    if (!answer.ok) {
      const problem = await answer.json().catch(() => ({}));
      fail(side, problem.detail || form.dataset.failed);
      return;
    }
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (number !== asked) return;
      const lines = (rest + (value || "")).split("\n");
      rest = lines.pop();
      for (const line of lines) show(side, JSON.parse(line));
      if (done) return;
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    asked += 1;
    const mode = form.elements.mode.value;
    for (const side of sides) {
      side.hidden = mode !== "both" && mode !== side.dataset.side;
      for (const part of side.querySelectorAll("[data-reply], [data-sent], [data-done]")) part.replaceChildren();
      if (side.hidden) continue;
      side.setAttribute("aria-busy", "true");
      ask(side, asked)
        .catch(() => fail(side, form.dataset.failed))
        .finally(() => side.removeAttribute("aria-busy"));
    }
  });
})();
