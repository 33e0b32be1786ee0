"""What a client sent, as turns of a conversation, and which of them are new.

Clients send the whole conversation again with every request, or its end, or only the newest message. Nothing marks what
was sent before, so it is recognised by what it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from aforesaid.domain.message import Message
from aforesaid.domain.words import Role

_SPOKEN: Final = ("user", "assistant")
_NOT_TEXT: Final = {
    "image_url": "[image]",
    "input_image": "[image]",
    "input_audio": "[audio]",
    "file": "[file]",
    "input_file": "[file]",
}


class Turn(NamedTuple):
    """Something that was said."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Recognised:
    """What became of the turns that were sent."""

    new: tuple[Turn, ...]
    known: tuple[Message, ...]
    """Those that are stored already."""


def turns_of(messages: Sequence[object], limit: int) -> list[Turn]:
    """Return what people and the assistant said. Instructions, calls of tools and their results are no part of it.

    A text of more bytes than `limit` is cut: it goes to the model as a whole, and its beginning is remembered.
    """
    turns = []
    for message in messages:
        if isinstance(message, Mapping) and message.get("role") in _SPOKEN:
            text = _storable(text_of(message.get("content")), limit)
            if text.strip():
                turns.append(Turn(message["role"], text))
    return turns


def text_of(content: object) -> str:
    """Return the text of a message. What is no text leaves a word in its place."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts: list[str] = []
    for part in content:
        if isinstance(part, Mapping):
            text = part.get("text")
            kind = str(part.get("type"))
            parts.append(text if isinstance(text, str) else _NOT_TEXT.get(kind, ""))
    return "\n".join(part for part in parts if part)


def recognise(sent: Sequence[Turn], stored: Sequence[Message], *, whole: bool) -> Recognised:
    """Tell what is new from what was sent before. `stored` are the newest messages of the thread, oldest first.

    The longest beginning of what was sent counts as known that ends in the log and leads back, turn by turn, to the
    beginning of what was sent; or to the beginning of `stored`, unless that is the `whole` log. All that was sent
    can be known only where nothing was said after it: a request that is tried again. Otherwise somebody just says the
    same once more.
    """
    said = [_key(turn.role, turn.text) for turn in sent]
    kept = [_key(message.role, message.text) for message in stored]
    for count in range(len(sent), 0, -1):
        lowest = len(kept) if count == len(sent) else 1
        for end in range(len(kept), lowest - 1, -1):
            if (whole and count > end) or not _leads_back(said[:count], kept[:end]):
                continue
            return Recognised(tuple(sent[count:]), tuple(stored[max(0, end - count) : end]))
    return Recognised(tuple(sent), ())


def _key(role: str, text: str) -> tuple[str, str]:
    return role, " ".join(text.split())


def _leads_back(said: Sequence[tuple[str, str]], kept: Sequence[tuple[str, str]]) -> bool:
    if not kept:
        return False
    return all(_same(*pair) for pair in zip(reversed(said), reversed(kept), strict=False))


def _same(said: tuple[str, str], kept: tuple[str, str]) -> bool:
    if said == kept or said[0] != kept[0]:
        return said == kept
    # Of a reply that broke off, the client and the log may have kept more or less.
    return said[0] == "assistant" and (kept[1].startswith(said[1]) or said[1].startswith(kept[1]))


def _storable(text: str, limit: int) -> str:
    return text.encode(errors="replace")[:limit].decode(errors="ignore").replace("\0", "")


def replaced(messages: Sequence[object], added: str) -> list[object]:
    """Return the messages with a text added to their system message; with one of their own where there is none."""
    for place, message in enumerate(messages):
        if isinstance(message, Mapping) and message.get("role") in {"system", "developer"}:
            return [*messages[:place], _with(message, added), *messages[place + 1 :]]
    return [{"role": "system", "content": added}, *messages]


def _with(message: Mapping[str, Any], added: str) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, str) or content is None:
        return {**message, "content": f"{content}\n\n{added}" if content else added}
    return {**message, "content": [*content, {"type": "text", "text": added}]}
