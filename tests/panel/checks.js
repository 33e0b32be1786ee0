// Looks at a page as somebody would who sees little, or hears it. Returns what is wrong, by kind.
() => {
  // What cannot be seen has a name.
  const nameless = (() => {
  const shown = (each) => each.getClientRects().length > 0;
  const named = (each) => (each.getAttribute("aria-label") || each.textContent || each.title || "").trim()
    || (each.labels && Array.from(each.labels).some((label) => label.textContent.trim()));
  const fields = Array.from(document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    .filter((each) => !(each.labels && each.labels.length) && !each.getAttribute("aria-label"));
  const rest = Array.from(document.querySelectorAll("a[href], button, summary")).filter((each) => shown(each) && !named(each));
  return [...fields, ...rest].map((each) => each.outerHTML.slice(0, 120));
})();

  const twice = (() => {
  const ids = Array.from(document.querySelectorAll("[id]")).map((each) => each.id);
  return ids.filter((id, place) => ids.indexOf(id) !== place);
})();

  // Contrast as WCAG 2 defines it, of every text that can be seen, against what is behind it.
  const faint = (() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map(); // a page has few colours, and many elements with each of them
  const read = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, below) => top.slice(0, 3).map((value, at) => value * top[3] + below[at] * (1 - top[3]));
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (each) => {
    const layers = [];
    for (let node = each; node; node = node.parentElement) layers.push(read(getComputedStyle(node).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const found = [];
  for (const each of document.querySelectorAll("body *:not(svg *)")) {
    const own = Array.from(each.childNodes).some((node) => node.nodeType === 3 && node.textContent.trim());
    const style = getComputedStyle(each);
    if (!own || !each.getClientRects().length || style.visibility === "hidden" || each.closest(".said, .hidden")) continue;
    let seen = 1;
    for (let node = each; node; node = node.parentElement) seen *= Number(getComputedStyle(node).opacity);
    const back = behind(each);
    const text = read(style.color);
    const front = over([...text.slice(0, 3), text[3] * seen], back);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} ${each.tagName}.${each.className}: ${each.textContent.trim().slice(0, 40)}`);
  }
  return found;
})();

  return { nameless, twice, faint };
}
