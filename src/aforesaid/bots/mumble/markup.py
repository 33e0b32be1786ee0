"""Converts between plain text and the small subset of HTML that Mumble uses."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import Final

_BREAKS: Final = frozenset({"br", "p", "div", "li", "tr", "h1", "h2", "h3", "pre", "ul", "ol", "table", "blockquote"})
_UNSEEN: Final = frozenset({"head", "style", "script", "title"})
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n`]*\n(.*?)\n?^ {0,3}\1[ \t]*$", re.MULTILINE | re.DOTALL)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.pictures = 0
        self._unseen = 0
        self._link: tuple[str, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._unseen += 1
        elif tag in _BREAKS:
            self._line()
        elif tag == "img":
            self.pictures += 1
        elif tag == "a":
            self._link = dict(attrs).get("href") or "", len(self.parts)

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        elif tag in _BREAKS and tag != "br":
            self._line()
        elif tag == "a" and self._link is not None:
            address, start = self._link
            self._link = None
            shown = "".join(self.parts[start:])
            if address and address.rstrip("/") != shown.rstrip("/"):
                self.parts.append(f" ({address})" if shown.strip() else address)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)

    def _line(self) -> None:
        if self.parts:
            self.parts.append("\n")


def plain(markup: str) -> tuple[str, int]:
    """Return a message as plain text, and its number of pictures. Text that is no HTML stays as it is."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    lines = [" ".join(line.split()) for line in "".join(reader.parts).splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), reader.pictures


def marked_up(text: str) -> str:
    """Return a text as HTML, with line breaks and code blocks."""
    parts, at = [], 0
    for block in _FENCE.finditer(text):
        parts += [_lines(text[at : block.start()].strip("\n")), f"<pre>{html.escape(block[2], quote=False)}</pre>"]
        at = block.end()
    parts.append(_lines(text[at:].strip("\n")))
    return "".join(parts)


def _lines(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br/>")
