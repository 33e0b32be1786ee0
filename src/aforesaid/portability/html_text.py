"""Convert HTML to plain text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

_BLOCKS: Final = frozenset(
    {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "ul", "ol", "table", "hr"}
)
_UNSEEN: Final = frozenset({"script", "style", "head", "title"})
_SPACES: Final = re.compile(r"[ \t\r\f\xa0]+")
_BLANK_LINES: Final = re.compile(r"\n\s*\n\s*\n+")


class TextParser(HTMLParser):
    """Collects the text of HTML: a line for each block, and the addresses of links."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._pieces: list[str] = []
        self._link: tuple[str, int] | None = None
        self._unseen = 0
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, a link, or text that is not shown."""
        self._unseen += tag in _UNSEEN
        self._preformatted += tag == "pre"
        if tag in _BLOCKS:
            self._pieces.append("\n")
        if tag == "li":
            self._pieces.append("- ")
        if tag in ("td", "th"):
            self._pieces.append(" ")
        address = dict(attrs).get("href")
        if tag == "a" and address and address.startswith(("http:", "https:")):
            self._link = address, len(self._pieces)

    def handle_endtag(self, tag: str) -> None:
        """End a block, a link, or text that is not shown."""
        self._unseen -= tag in _UNSEEN and self._unseen > 0
        self._preformatted -= tag == "pre" and self._preformatted > 0
        if tag in _BLOCKS and tag != "li":
            self._pieces.append("\n")
        if tag == "a" and self._link is not None:
            address, start = self._link
            self._link = None
            label = "".join(self._pieces[start:]).strip()
            if address not in (label, f"{label}/"):
                self._pieces.append(f" ({address})")

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if not self._unseen:
            self._pieces.append(data if self._preformatted else re.sub(r"\s+", " ", data))

    def take(self) -> str:
        """Return the text collected so far, and begin anew."""
        lines = (_SPACES.sub(" ", line).strip() for line in "".join(self._pieces).split("\n"))
        self._pieces.clear()
        self._link = None
        return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def html_text(html: str) -> str:
    """Return the text of a piece of HTML."""
    parser = TextParser()
    parser.feed(html)
    parser.close()
    return parser.take()
