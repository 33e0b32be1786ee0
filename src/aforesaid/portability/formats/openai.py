"""Messages in OpenAI's format: JSON Lines or a list, of single messages or whole conversations."""

from __future__ import annotations

import json
import mimetypes
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final

from aforesaid.domain.checks import Role
from aforesaid.domain.details import Part, ToolCall
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.import_items import NO_WORDS, ImportedMessage, Item, ReadOptions
from aforesaid.portability.input_files import Source
from aforesaid.portability.reader_helpers import (
    Ids,
    any_moment,
    attachment,
    each,
    file_objects,
    filled,
    mapping_of,
    name_of,
    objects_of,
    parts_text,
    placed,
    until_damaged,
)
from aforesaid.portability.row_codec import Fields

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


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield messages. Those without a conversation belong to the user's direct chat."""
    reader = _Reader(reading)
    for name in source.named(".json", ".jsonl") or source.names[:1]:
        head = source.head(name)
        with source.open(name) as stream:
            yield from until_damaged(each(file_objects(stream, head), reader.entry))


class _Reader:
    def __init__(self, reading: ReadOptions) -> None:
        self._reading = reading
        self._ids = Ids("openai")
        self._names: Counter[str] = Counter()

    def entry(self, found: Fields, where: str) -> Iterator[Item]:
        """Yield a message, or the messages of a conversation."""
        if not found.has("messages"):
            yield message(found, where, _talk(found), self._ids, self._reading)
            return
        talk = _talk(found) or self._thread(found.items("messages"))
        yield from each(
            placed(found.items("messages"), where),
            lambda inner, place: message(inner, place, talk, self._ids, self._reading),
        )

    def _thread(self, messages: Sequence[object]) -> str:
        """Return the thread of a conversation without a name: the same when it is imported again, or has grown.

        Conversations of one import that begin in the same way are numbered in their order.
        """
        start = json.dumps(messages[:_NAMING_MESSAGES], sort_keys=True).encode()
        name = f"openai:{blake2b(start, digest_size=_NAME_BYTES).hexdigest()}"
        self._names[name] += 1
        return name if self._names[name] == 1 else f"{name}-{self._names[name]}"


def _talk(found: Fields) -> str | None:
    return name_of(found, "thread", "thread_id", "conversation_id", "conversation", "session_id")


def message(found: Fields, where: str, talk: str | None, ids: Ids, reading: ReadOptions) -> Item:
    """Return a message in OpenAI's form."""
    given = found.raw("role") or _ITEMS.get(str(found.raw("type")))
    if str(given) not in _ROLES:
        raise InvalidInput(f"role is {quoted(given)}; it must be one of {', '.join(_ROLES)}")
    role = _ROLES[str(given)]
    content = found.raw("content") if found.has("content") else found.raw("output")
    text = parts_text(content) or parts_text(found.raw("text")) or name_of(found, "refusal") or ""
    parts = media_parts(content)
    calls = tool_calls(found)
    if not text.strip() and not parts and not calls:
        return NO_WORDS
    at = next((any_moment(found.raw(name), name, reading.zone) for name in _TIMES if found.has(name)), None)
    user = name_of(found, "user", "user_id")
    metadata = found.raw("metadata")
    return ImportedMessage(
        where,
        talk or f"direct:{reading.user}",
        role,
        text,
        at,
        name_of(found, "id") or ids.of(at, talk, role, user, text, *(call.id for call in calls)),
        user if role == "user" else None,
        name_of(found, "name"),
        owner=user,
        parts=parts,
        tool_calls=calls,
        tool_call_id=name_of(found, "tool_call_id", "call_id") if role == "tool" else None,
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
                parts.append(_image(piece))
            case "input_audio" | "audio":
                sound = piece.get("input_audio")
                kind = sound.get("format", "wav") if isinstance(sound, dict) else "wav"
                parts.append(attachment(None, f"audio/{kind}", text=piece.get("transcript")))
            case "file" | "input_file":
                inner = piece.get("file")
                file = inner if isinstance(inner, dict) else piece
                parts.append(
                    attachment(file.get("filename") or file.get("file_id"), url=_address(file.get("file_url"))[0])
                )
            case _:
                pass
    return tuple(parts)


def _image(piece: dict[str, Any]) -> Part:
    given = piece.get("image_url") or piece.get("url") or piece.get("source")
    address, media_type = _address(given.get("url") if isinstance(given, dict) else given)
    guessed = mimetypes.guess_type(address)[0] if address is not None else None
    return Part("image", url=address, media_type=media_type or guessed)


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
        return (_call(found, Fields(found.raw_all()), "call"),)
    calls = [
        _call(call, Fields(mapping_of(call, "function")), f"call-{number}")
        for number, call in enumerate(objects_of(found, "tool_calls"), 1)
    ]
    if found.has("function_call") and isinstance(found.raw("function_call"), dict):
        calls.append(_call(found, Fields(found.raw("function_call")), "call"))
    return tuple(calls)


def _call(call: Fields, function: Fields, usual: str) -> ToolCall:
    number = name_of(call, "call_id", "id") or usual
    return ToolCall(number, name_of(function, "name") or "function", name_of(function, "arguments") or "{}")
