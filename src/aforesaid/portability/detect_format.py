"""Detect the format of a file."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Final

from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.formats import aforesaid, chatgpt, claude, discord, mem0, openai, slack, telegram, whatsapp
from aforesaid.portability.import_items import Reader
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import JsonStream

READERS: Final[dict[str, Reader]] = {
    "aforesaid": aforesaid.read,
    "chatgpt": chatgpt.read,
    "claude": claude.read,
    "telegram": telegram.read,
    "discord": discord.read,
    "whatsapp": whatsapp.read,
    "slack": slack.read,
    "openai": openai.read,
    "mem0": mem0.read,
}
"""The readers of all import formats, by name."""

# Keys that identify a format, in the order in which they are checked.
_OF_OBJECTS: Final = (
    ({"aforesaid", "version"}, "aforesaid"),
    ({"version", "made_at", "vectors"}, "aforesaid"),  # written under an earlier name of the project
    ({"guild", "channel"}, "discord"),
    ({"chats"}, "telegram"),
    ({"left_chats"}, "telegram"),
    ({"personal_information", "contacts"}, "telegram"),
    ({"mapping"}, "chatgpt"),
    ({"chat_messages"}, "claude"),
    ({"results"}, "mem0"),
    ({"memories"}, "mem0"),
    ({"memory"}, "mem0"),
    ({"name", "type", "messages"}, "telegram"),
    ({"role", "content"}, "openai"),
    ({"messages"}, "openai"),
)
_IN_ARCHIVES: Final = (
    ("result.json", "telegram"),
    ("_chat.txt", "whatsapp"),
)


def choose(source: Source, wanted: str = "auto") -> tuple[str, Reader]:
    """Return the name and reader of the requested format, or of the detected one. Raises InvalidInput."""
    if wanted != "auto":
        if wanted not in READERS:
            raise InvalidInput(f"unknown format {quoted(wanted)}; use auto or one of {', '.join(READERS)}", "format")
        return wanted, READERS[wanted]
    name = _sniffed(source)
    if name is None:
        raise InvalidInput(f"{source.path} has an unrecognised format; name it (one of {', '.join(READERS)})", "format")
    return name, READERS[name]


def _sniffed(source: Source) -> str | None:
    if not source.names:
        return None
    if len(source.names) > 1:
        if any(slack.DAY.search(name) for name in source.names) and source.named("users.json", "channels.json"):
            return "slack"
        for ending, format_ in _IN_ARCHIVES:
            if source.named(ending):
                return format_
    texts = [name for name in source.names if name.lower().endswith((".json", ".jsonl", ".txt"))]
    talks = [name for name in texts if name.rpartition("/")[2].startswith("conversations")]
    for name in (talks or texts or source.names)[:5]:
        found = _of_head(source.head(name))
        if found is not None:
            return found
    return None


def _of_head(head: bytes) -> str | None:
    """Detect a format from the beginning of a file."""
    text = head.decode("utf-8-sig", errors="ignore").lstrip()
    keys = _first_keys(text)
    for wanted, format_ in _OF_OBJECTS:
        if wanted <= keys:
            return format_
    return "whatsapp" if whatsapp.looks_like(text) else None


def _first_keys(text: str) -> set[str]:
    """Return the keys of the first object of a file, or of the first object in its list."""
    if text.startswith("["):
        text = text[1:].lstrip()
    keys: set[str] = set()
    if not text.startswith("{"):
        return keys
    stream = JsonStream(io.BytesIO(text.encode(errors="ignore")))
    with suppress(InvalidInput):  # the data is only the beginning of the file
        for key in stream.members():
            keys.add(key)
            if key in ("messages", "chats", "results", "memories"):
                break
    return keys
