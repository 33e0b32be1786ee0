"""The form in which chat APIs take messages."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NotRequired, TypedDict
from unicodedata import combining, normalize

from aforesaid.domain.details import MOST_PARTS, Part, ToolCall, text_of_parts
from aforesaid.errors import InvalidInput, TooLarge
from aforesaid.extras import re

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


def said_in(content: object, text: object, parts: Sequence[object]) -> tuple[Any, Sequence[Any]]:
    """Return the text and the parts of a message whose text is given as the API has it, in `content`.

    That is a text, None, or a list of parts of the types `text` and `image_url`. Raises InvalidInput for a message that
    has a text or parts of its own beside it.
    """
    if content is None:
        return text, parts
    if text:
        raise InvalidInput("both text and content are given; they are two names of one thing", "content")
    if isinstance(content, str):
        return content, parts
    found = [_part(piece) for piece in _pieces(content)]
    if all(part.type == "text" for part in found):
        return text_of_parts(found), parts
    if parts:
        raise InvalidInput("both parts and a content with parts are given; give one of them", "content")
    return "", tuple(found)


def _pieces(content: object) -> list[object]:
    if not isinstance(content, Iterable) or isinstance(content, bytes | bytearray | Mapping):
        raise InvalidInput(f"content must be a text or a list of parts, not {type(content).__name__}", "content")
    found = [*islice(content, MOST_PARTS + 1)]
    if len(found) > MOST_PARTS:
        raise TooLarge(f"content has more than {MOST_PARTS:,} parts", "content")
    return found


def _part(piece: object) -> Part:
    found = piece if isinstance(piece, Mapping) else {}
    text, image = found.get("text"), found.get("image_url")
    address = image.get("url") if isinstance(image, Mapping) else image
    if found.get("type") == "text" and isinstance(text, str):
        return Part("text", text)
    if found.get("type") == "image_url" and isinstance(address, str):
        head, comma, data = address.partition(";base64,")
        if not comma or not head.startswith("data:"):
            return Part("image", url=address)
        try:
            return Part.of(b64decode(data, validate=True), head[5:].partition(";")[0] or None, type="image")
        except ValueError:
            raise InvalidInput("the data of an image_url must be base64", "content") from None
    raise InvalidInput(
        'a part of content is {"type": "text", "text": …} or {"type": "image_url", "image_url": {"url": …}}; '
        "give others as `parts`",
        "content",
    )


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
