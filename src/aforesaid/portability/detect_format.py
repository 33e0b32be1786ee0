"""Detect the format of a file."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any, Final

from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.formats import signal, whatsapp
from aforesaid.portability.formats.aforesaid import Aforesaid
from aforesaid.portability.formats.assistants import ChatGPT, Claude, Gemini, is_gemini_activity
from aforesaid.portability.formats.base import Format
from aforesaid.portability.formats.frameworks import SQLITE, LangChain, Letta, Mem0, OpenAI
from aforesaid.portability.formats.messengers import FACEBOOK_FILE, SLACK_DAY, Discord, Facebook, Slack, Telegram
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import JsonStream

READERS: Final[dict[str, type[Format]]] = {
    "aforesaid": Aforesaid,
    "chatgpt": ChatGPT,
    "claude": Claude,
    "gemini": Gemini,
    "telegram": Telegram,
    "discord": Discord,
    "whatsapp": whatsapp.WhatsApp,
    "slack": Slack,
    "signal": signal.Signal,
    "facebook": Facebook,
    "instagram": Facebook,
    "openai": OpenAI,
    "langchain": LangChain,
    "mem0": Mem0,
    "letta": Letta,
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
    ({"conversations_memory"}, "claude"),
    ({"backupTimeMs"}, "signal"),
    ({"chatItem"}, "signal"),
    ({"date", "sender", "body"}, "signal"),
    ({"participants", "threadName"}, "facebook"),
    ({"header", "title", "time"}, "gemini"),
    ({"agent_type"}, "letta"),
    ({"agents", "blocks"}, "letta"),
    ({"namespace", "key", "value"}, "langchain"),
    ({"lc", "kwargs"}, "langchain"),
    ({"type", "data"}, "langchain"),
    ({"results"}, "mem0"),
    ({"memories"}, "mem0"),
    ({"memory"}, "mem0"),
    ({"name", "type", "messages"}, "telegram"),
    ({"participants", "messages"}, "facebook"),
    ({"role", "content"}, "openai"),
    ({"type", "content"}, "langchain"),
    ({"values"}, "langchain"),
    ({"type", "call_id"}, "openai"),
)
# Keys of the first message in a file that begins with its messages, or has other keys than usual.
_OF_MESSAGES: Final = (
    ({"sender_name", "timestamp_ms"}, "facebook"),
    ({"senderName", "timestamp"}, "facebook"),
    ({"from_id", "date"}, "telegram"),
    ({"date_unixtime"}, "telegram"),
    ({"role"}, "openai"),
    ({"type", "content"}, "langchain"),
)
_LONG_LISTS: Final = ("chats", "results", "memories", "agents", "mapping", "chat_messages", "values")
"""Keys whose values are not read: they can be longer than the beginning of the file."""
_IN_ARCHIVES: Final = (
    ("result.json", "telegram"),
    ("_chat.txt", "whatsapp"),
    ("main.jsonl", "signal"),
    ("data.json", "signal"),
    ("chat.md", "signal"),
)
_ENDINGS: Final = (".json", ".jsonl", ".txt", ".md", ".af", ".html", ".db", ".sqlite", ".sqlite3")


def choose(source: Source, wanted: str = "auto") -> tuple[str, type[Format]]:
    """Return the name and reader of the requested format, or of the detected one. Raises InvalidInput."""
    if not source.names or (len(source.names) == 1 and not source.head(source.names[0]).strip()):
        raise InvalidInput(f"{source.path} is empty: there is nothing to import")
    if wanted != "auto":
        if wanted not in READERS:
            raise InvalidInput(f"unknown format {quoted(wanted)}; use auto or one of {', '.join(READERS)}", "format")
        return wanted, READERS[wanted]
    name = _of_names(source) or _of_contents(source)
    if name is None:
        raise InvalidInput(f"{source.path} has an unrecognised format; name it (one of {', '.join(READERS)})", "format")
    return name, READERS[name]


def _of_names(source: Source) -> str | None:
    if source.named(".af"):
        return "letta"
    if len(source.names) == 1 and "/" not in source.names[0]:
        return None
    if any(SLACK_DAY.search(name) for name in source.names) and source.called("users.json", "channels.json"):
        return "slack"
    if any(is_gemini_activity(name) and "/" in name for name in source.names):
        return "gemini"
    messages = [name for name in source.names if FACEBOOK_FILE.search(name)]
    if messages:
        return "instagram" if any("instagram" in name.casefold() for name in messages) else "facebook"
    return next((format_ for name, format_ in _IN_ARCHIVES if source.called(name)), None)


def _of_contents(source: Source) -> str | None:
    texts = source.named(*_ENDINGS)
    for name in (source.named(*_ENDINGS, start="conversations") or texts or source.names)[:5]:
        head = source.head(name)
        if head.startswith(SQLITE):
            return "langchain"
        text = head.decode("utf-8", errors="ignore")
        # The lines of signal-export look like those of WhatsApp in some countries.
        is_signal = name.endswith(".md") and signal.looks_like(text)
        found = "signal" if is_signal else _of_text(text.lstrip())
        if found is not None:
            return found
    return None


def _of_text(text: str) -> str | None:
    if text.startswith("<") and "outer-cell" in text:
        return "gemini"
    first = _first_object(text)
    if first.get("type") == "message" and "role" in first:
        return "openai"  # an item of the Responses API
    for wanted, format_ in _OF_OBJECTS:
        if wanted <= first.keys():
            return format_
    message = first.get("messages")
    for wanted, format_ in _OF_MESSAGES:
        if isinstance(message, dict) and wanted <= message.keys():
            return format_
    if "messages" in first:
        return "openai"
    return "whatsapp" if whatsapp.looks_like(text) else None


def _first_object(text: str) -> dict[str, Any]:
    """Return the fields of the first object of a file, or of the first object in its list.

    Of its messages, only the first is there. Other values that are no texts are None.
    """
    text = text.removeprefix("[").lstrip()
    found: dict[str, Any] = {}
    stream = JsonStream(io.BytesIO(text.encode(errors="ignore")))
    with suppress(InvalidInput):  # the data is only the beginning of the file, or no object
        for key in stream.members():
            found[key] = None
            if key == "messages":
                # Nothing that follows them tells more.
                found[key] = next((stream.value() for _ in stream.elements()), None)
                break
            if key in _LONG_LISTS:
                stream.skip()
            elif stream.peek() == '"':
                found[key] = stream.value()
    return found
