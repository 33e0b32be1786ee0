"""The form in which chat APIs take messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NotRequired, TypedDict
from unicodedata import combining, normalize

from aforesaid.domain.details import Part, ToolCall

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")
"""What a name must not have: OpenAI refuses white space and `<|\\/>`, compatible servers all but these characters."""
_NAME_CHARACTERS: Final = 64


class ChatMessage(TypedDict):
    """A message for an OpenAI-style chat API. The SDKs of OpenAI and Anthropic accept it as it is.

    Two values are `Any`, because the types of a dict's values must be exactly those that an SDK declares, and SDKs
    declare different ones for each role.
    """

    role: Any
    """`system`, `user`, `assistant` or `tool`."""
    content: Any
    """The text, or a list of content parts; None in a message that has only tool calls."""
    name: NotRequired[str]
    tool_calls: NotRequired[list[dict[str, Any]]]
    tool_call_id: NotRequired[str]
    """The tool call that this message is the result of."""


def chat_api_name(name: str) -> str:
    """Return a display name in the characters that chat APIs allow; empty if none is left. `Zoë B.` becomes `Zoe_B`."""
    plain = "".join(each for each in normalize("NFKD", name) if not combining(each))
    return _NOT_IN_NAMES.sub("_", plain).strip("_")[:_NAME_CHARACTERS]


def chat_tool_calls(calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """Return tool calls in the form of the API."""
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]


def answered_calls(calls: Sequence[Sequence[str]], answers: Sequence[str | None]) -> dict[int, list[int]]:
    """Return the places of messages whose tool calls all have their results right behind them, with these results.

    `calls` has the ids of the calls of each message, `answers` the id of the call that it is the result of, or None.
    Results are in the order of the calls. Providers refuse calls without their results, and results without calls.
    """
    found: dict[int, list[int]] = {}
    for place, wanted in enumerate(calls):
        if not wanted:
            continue
        first = place + 1
        behind = {name: each for each, name in enumerate(answers[first : first + len(wanted)], first)}
        if behind.keys() == set(wanted) and len(behind) == len(wanted):
            found[place] = [behind[name] for name in wanted]
    return found


def content_parts(text: str, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the content of a message with parts. A text that is none of the parts comes first.

    What the API cannot be given (a file that only its hash is known of) becomes a short text such as `[file: a.pdf]`.
    """
    content = [_content_part(part) for part in parts]
    if text and not any(part.type == "text" for part in parts):
        content.insert(0, {"type": "text", "text": text})
    return content


def _content_part(part: Part) -> dict[str, Any]:
    if part.type == "image" and part.url:
        return {"type": "image_url", "image_url": {"url": part.url}}
    head, _, data = (part.url or "").partition(";base64,")
    if data and head.startswith("data:"):
        if part.type == "audio":
            sound = head.removeprefix("data:").split(";")[0].rpartition("/")[2]
            return {"type": "input_audio", "input_audio": {"data": data, "format": _FORMATS.get(sound, sound)}}
        return {"type": "file", "file": {"filename": part.name or "file", "file_data": part.url}}
    return {"type": "text", "text": part.as_text}


_FORMATS: Final = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}
"""The API's names of sound formats, by the subtype of the media type where they differ."""
