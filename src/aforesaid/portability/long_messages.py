"""Fit imported messages into the largest size of a message. Exports have longer ones: pasted documents, web pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from aforesaid.portability.import_items import ImportedMessage

_MOST_BYTES: Final = 6
"""Maximum bytes of a character in details: JSON writes a control character as `\\u0000`."""
_RESERVED: Final = 4_096
"""Bytes of details left for names, addresses, kinds and metadata."""
_CUT: Final = " […]"


def storable_pieces(item: ImportedMessage, limit: int) -> Iterator[ImportedMessage]:
    """Yield a message, in several pieces if its text has more than `limit` bytes.

    The text of attachments and the arguments of tool calls are cut where all of them together are too long.
    """
    texts = split_text(item.text, limit)
    if item.parts or item.tool_calls:
        item = _with_short_details(item, limit)
    yield item if len(texts) == 1 else item._replace(text=texts[0])
    for number, text in enumerate(texts[1:], 2):
        plain = ImportedMessage(item.where, item.thread, item.role, text, item.at, f"{item.id[:240]}~{number}")
        yield plain._replace(author=item.author, name=item.name, owner=item.owner)


def split_text(text: str, limit: int) -> list[str]:
    """Return a text in pieces of at most `limit` bytes, which end at the end of a line or a word where they can."""
    if len(text) * 4 <= limit:
        return [text]
    pieces: list[str] = []
    while len(text.encode(errors="surrogatepass")) > limit:
        end = len(_beginning(text, limit))
        place = next((found for mark in "\n ." if (found := text.rfind(mark, end // 2, end)) > 0), end - 1) + 1
        pieces.append(text[:place])
        text = text[place:]
    return [*pieces, text] if text.strip() or not pieces else pieces


def _with_short_details(item: ImportedMessage, limit: int) -> ImportedMessage:
    texts = [part.text for part in item.parts if part.text] + [call.arguments for call in item.tool_calls]
    room = max(limit - _RESERVED, limit // 2)
    if sum(map(len, texts)) * _MOST_BYTES <= room:
        return item
    share = room // len(texts) // 2
    parts = tuple(replace(part, text=_cut(part.text, share)) if part.text else part for part in item.parts)
    calls = tuple(replace(call, arguments=_cut(call.arguments, share)) for call in item.tool_calls)
    return item._replace(parts=parts, tool_calls=calls)


def _cut(text: str, limit: int) -> str:
    return text if len(text.encode(errors="surrogatepass")) <= limit else _beginning(text, limit) + _CUT


def _beginning(text: str, limit: int) -> str:
    """Return as many characters from the beginning of a text as have at most `limit` bytes."""
    return text.encode(errors="surrogatepass")[:limit].decode(errors="ignore")
