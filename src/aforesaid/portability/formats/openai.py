"""Messages in OpenAI's format: JSON Lines or a list, of single messages or whole conversations."""

from __future__ import annotations

import json
import mimetypes
from collections import Counter
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from typing import IO, Final

from aforesaid.domain.checks import Role
from aforesaid.domain.details import Part, ToolCall
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.formats.base import Entry, Format, attachment, each, file_objects, filled, parts_text, placed
from aforesaid.portability.import_items import NO_WORDS, ImportedMessage, Item, ReadOptions
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import Fields

_TIMES: Final = ("at", "timestamp", "created_at", "created", "create_time", "time", "date")
_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_ITEMS: Final[dict[str, Role]] = {"function_call": "assistant", "function_call_output": "tool"}
"""The roles of the items of the Responses API that have none."""

_NAMING_MESSAGES: Final = 4
"""Messages that name a conversation: with fewer, different ones with the same greeting would be one thread."""
_NAME_BYTES: Final = 12


class OpenAI(Format):
    """Messages without a conversation belong to the user's direct chat."""

    app = "openai"
    endings = (".json", ".jsonl")

    def __init__(self, source: Source, reading: ReadOptions) -> None:
        super().__init__(source, reading)
        self._names: Counter[str] = Counter()

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        return file_objects(stream, self.source.head(name))

    def record(self, found: Fields, where: str) -> Item | Iterator[Item]:
        """Return a message, or the messages of a conversation."""
        talk = found.words("thread", "thread_id", "conversation_id", "conversation", "session_id")
        if not found.has("messages"):
            return self._message(talk, found, where)
        messages = found.items("messages")
        if talk is None:
            # The same name when the conversation is imported again, or has grown. Conversations of one import that
            # begin in the same way are numbered in their order.
            start = json.dumps(messages[:_NAMING_MESSAGES], sort_keys=True).encode()
            talk = f"openai:{blake2b(start, digest_size=_NAME_BYTES).hexdigest()}"
            self._names[talk] += 1
            talk = talk if self._names[talk] == 1 else f"{talk}-{self._names[talk]}"
        return each(placed(messages, where), partial(self._message, talk), "the message")

    def _message(self, talk: str | None, found: Fields, where: str) -> Item:
        given = found.raw("role") or _ITEMS.get(str(found.raw("type")))
        if str(given) not in _ROLES:
            raise InvalidInput(f"role is {quoted(given)}; it must be one of {', '.join(_ROLES)}")
        role = _ROLES[str(given)]
        content = found.raw("content") if found.has("content") else found.raw("output")
        text = parts_text(content) or parts_text(found.raw("text")) or found.words("refusal") or ""
        parts = media_parts(content)
        calls = tool_calls(found)
        if not text.strip() and not parts and not calls:
            return NO_WORDS
        at = next((self.moment(found.raw(name), name) for name in _TIMES if found.has(name)), None)
        user = found.words("user", "user_id")
        metadata = found.raw("metadata")
        return ImportedMessage(
            where,
            talk or f"direct:{self.reading.user}",
            role,
            text,
            at,
            found.words("id") or self.ids.of(at, talk, role, user, text, *(call.id for call in calls)),
            user if role == "user" else None,
            found.words("name"),
            owner=user,
            parts=parts,
            tool_calls=calls,
            tool_call_id=found.words("tool_call_id", "call_id") if role == "tool" else None,
            metadata=metadata if isinstance(metadata, dict) else filled(),
        )


def media_parts(content: object) -> tuple[Part, ...]:
    """Return the pictures, recordings and files among the parts of a content. Data in the address is left out."""
    parts: list[Part] = []
    for piece in content if isinstance(content, list) else []:
        if not isinstance(piece, dict):
            continue
        match piece.get("type"):
            case "image_url" | "input_image" | "image":
                given = piece.get("image_url") or piece.get("url") or piece.get("source")
                address, media_type = _address(given.get("url") if isinstance(given, dict) else given)
                guessed = mimetypes.guess_type(address)[0] if address is not None else None
                parts.append(Part("image", url=address, media_type=media_type or guessed))
            case "input_audio" | "audio":
                sound = piece.get("input_audio")
                kind = sound.get("format", "wav") if isinstance(sound, dict) else "wav"
                parts.append(attachment(None, f"audio/{kind}", text=piece.get("transcript")))
            case "file" | "input_file":
                inner = piece.get("file")
                file = inner if isinstance(inner, dict) else piece
                name = file.get("filename") or file.get("file_id")
                parts.append(attachment(name, url=_address(file.get("file_url"))[0]))
            case _:
                pass
    return tuple(parts)


def _address(value: object) -> tuple[str | None, str | None]:
    """Return an address, or the media type of data that stands in place of one."""
    if not isinstance(value, str):
        return None, None
    if value.startswith("data:"):
        return None, value[5:].partition(";")[0] or None
    return value, None


def tool_calls(found: Fields) -> tuple[ToolCall, ...]:
    """Return the tool calls of a message."""
    if found.raw("type") == "function_call":
        return (_call(found, found, "call"),)
    calls = [
        _call(call, call.inner("function"), f"call-{number}")
        for number, call in enumerate(found.objects("tool_calls"), 1)
    ]
    if isinstance(found.raw("function_call"), dict):
        calls.append(_call(found, found.inner("function_call"), "call"))
    return tuple(calls)


def _call(call: Fields, function: Fields, usual: str) -> ToolCall:
    number = call.words("call_id", "id") or usual
    return ToolCall(number, function.words("name") or "function", function.words("arguments") or "{}")
