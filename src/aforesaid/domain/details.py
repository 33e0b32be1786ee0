"""What a message has beside its text: parts, tool calls and results, metadata, and what it replies to.

All of it is stored as one JSON text, the details of a message. A message without any has no details (None), and costs
what it would cost if there were none at all. The text is canonical (sorted keys, no spaces), because it is part of the
message's hash, which must be the same in every store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args
from unicodedata import normalize

from aforesaid.domain import checks
from aforesaid.domain.scope import chat_name
from aforesaid.errors import InvalidInput, TooLarge, quoted
from aforesaid.extras import re

JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"
PartType: TypeAlias = Literal["text", "image", "audio", "file"]

MOST_PARTS: Final = 1_000
"""Maximum number of parts of a message, and of its tool calls. Platforms allow fewer than 100."""
_DEEPEST: Final = 32
"""Maximum nesting of metadata. Something that contains itself is nested without end."""
_PART_TYPES: Final[tuple[PartType, ...]] = get_args(PartType)
SHA256: Final = re.compile(r"[0-9a-f]{64}")
"""A hash as messages name it."""
DETAILS_BYTES: Final = 1024 * 1024
"""Maximum size of details as JSON, unless the text of a message may have more: then it is that."""
MOST_ATTACHED_BYTES: Final = 100 * 1024 * 1024
"""Maximum size of the bytes of a part: they are in memory while they are stored."""
TAKEN_BACK: Final = '{"taken_back":true}'
"""The details of the version that a message has after it was taken back."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message: text, or something that is not text, named by where it is or by its hash."""

    type: PartType
    text: str | None = None
    """The text; the caption or the transcript of an image, a sound or a file."""
    url: str | None = None
    media_type: str | None = None
    """Such as `image/png`."""
    name: str | None = None
    """The file's name."""
    hash: str | None = None
    """The SHA-256 of its bytes in hexadecimal digits."""
    size: int | None = None
    """Number of bytes."""
    data: bytes | None = field(default=None, repr=False, compare=False)
    """Its bytes, on the way into a store. A stored part has none: `memory.attachment(part.hash)` returns them."""

    @classmethod
    def of(
        cls,
        data: bytes,
        media_type: str | None = None,
        *,
        name: str | None = None,
        text: str | None = None,
        type: PartType | None = None,  # noqa: A002 - the field's name
    ) -> Part:
        """Return a part whose bytes are stored with the message. Its type follows from the media type."""
        kind = (media_type or "").partition("/")[0]
        found: PartType = "image" if kind == "image" else "audio" if kind == "audio" else "file"
        return cls(type or found, text, media_type=media_type, name=name, data=data)

    def __post_init__(self) -> None:
        """Raise InvalidInput for what cannot be stored. The hash and the size follow from the bytes."""
        if self.data is not None:
            self._check_data(self.data)
        if self.type not in _PART_TYPES:
            raise InvalidInput(
                f"unknown type of part {quoted(self.type)}; use one of {', '.join(_PART_TYPES)}", "parts"
            )
        for name in ("text", "url", "media_type", "name", "hash"):
            value = getattr(self, name)
            if value is not None:
                checks.storable(value, f"the {name} of a part", "parts")
        if self.type == "text" and not self.text:
            raise InvalidInput("a part of type text has no text", "parts")
        if self.hash is not None and not SHA256.fullmatch(self.hash):
            raise InvalidInput(f"the hash of a part is {quoted(self.hash)}, not 64 hexadecimal digits", "parts")
        if self.size is not None:
            checks.at_least(self.size, 0, "the size of a part", "parts")

    def _check_data(self, data: object) -> None:
        if not isinstance(data, bytes):
            raise InvalidInput(f"the data of a part must be bytes, not {type(data).__name__}", "parts")
        if len(data) > MOST_ATTACHED_BYTES:
            raise TooLarge(f"a part has {len(data):,} bytes; at most {MOST_ATTACHED_BYTES:,} are allowed", "parts")
        found = sha256(data).hexdigest()
        if self.hash not in (None, found) or self.size not in (None, len(data)):
            raise InvalidInput("the hash or the size of a part is not that of its data", "parts")
        object.__setattr__(self, "hash", found)
        object.__setattr__(self, "size", len(data))

    @property
    def as_text(self) -> str:
        """The part in a few words: its text, or such as `[image: a cat on a roof]`."""
        if self.type == "text":
            return self.text or ""
        words = self.text or self.name
        return f"[{self.type}: {words}]" if words else f"[{self.type}]"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that a model asked for."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: usually JSON."""

    def __post_init__(self) -> None:
        """Raise InvalidInput for what cannot be stored."""
        for value, what in ((self.id, "the id of a tool call"), (self.name, "the name of a tool")):
            checks.identifier(checks.storable(value, what, "tool_calls"), what, "tool_calls")
        checks.storable(self.arguments, "the arguments of a tool call", "tool_calls")


@dataclass(frozen=True, slots=True)
class Details:
    """The details of a message."""

    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    reply_to: str | None = None
    kind: str | None = None
    language: str | None = None
    taken_back: bool = False

    def shown_text(self, text: str) -> str:
        """Return a message's text with short words for what is not text: `[image: a cat on a roof]`."""
        lines = [part.as_text for part in self.parts]
        if text and not any(part.type == "text" for part in self.parts) and text != text_of_parts(self.parts):
            lines.insert(0, text)
        lines += [f"[called {call.name}: {call.arguments}]" for call in self.tool_calls]
        return "\n".join(lines) or text


_PLAIN: Final = Details()


def details_text(
    *,
    parts: object = (),
    tool_calls: object = (),
    tool_call_id: object = None,
    metadata: object = None,
    reply_to: object = None,
    kind: object = None,
    language: object = None,
    limit: int = DETAILS_BYTES,
) -> str | None:
    """Validate details and return their text, or None if there are none. Raises InvalidInput."""
    found: dict[str, Any] = {
        "parts": [_as_dict(each) for each in checked_parts(parts)],
        "tool_calls": [_as_dict(_made(each, ToolCall, "tool_calls")) for each in _listed(tool_calls, "tool_calls")],
        "tool_call_id": _named(tool_call_id, "the id of the tool call", "tool_call_id"),
        "metadata": {} if metadata is None else _copied(metadata, limit),
        "reply_to": _named(reply_to, "the id of the message that it replies to", "reply_to"),
        "kind": _named(kind, "the kind", "kind"),
        "language": _named(language, "the language", "language"),
    }
    return _canonical({name: value for name, value in found.items() if value}, limit)


def canonical_details(value: object, limit: int | None = None) -> str | None:
    """Return the text of details that come as a JSON object, from a file. Raises InvalidInput."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value:
        raise InvalidInput("the details of a message must be an object that is not empty", "details")
    known = {each.name for each in fields(Details)}
    if unknown := [name for name in value if name not in known]:
        raise InvalidInput(f"unknown details {quoted(unknown[0])}; this version knows {', '.join(sorted(known))}")
    given = dict(value)
    taken_back = given.pop("taken_back", False)
    if taken_back is True and not given:
        return TAKEN_BACK
    if taken_back is not False:
        raise InvalidInput("taken_back must be true, and stand alone", "details")
    return details_text(**given, limit=checks.LARGEST if limit is None else limit)


def read_details(text: str | None) -> Details:
    """Return the details in a text that `details_text` made."""
    if text is None:
        return _PLAIN
    found = json.loads(text)
    for name, kind in (("parts", Part), ("tool_calls", ToolCall)):
        if name in found:
            found[name] = tuple(kind(**each) for each in found[name])
    return Details(**found)


def with_reply_to(text: str, reply_to: str | None) -> str | None:
    """Return the text of details with another message that is replied to, or none."""
    found = json.loads(text)
    found.pop("reply_to", None)
    if reply_to is not None:
        found["reply_to"] = reply_to
    return _canonical(found, checks.LARGEST)


def text_of_parts(parts: Sequence[Part]) -> str:
    """Return what people can read in parts: texts, captions and transcripts, one below the other."""
    return "\n".join(part.text for part in parts if part.text)


def _canonical(found: Mapping[str, Any], limit: int) -> str | None:
    if not found:
        return None
    text = json.dumps(found, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    if len(text) * 4 > limit and (size := len(text.encode())) > limit:
        raise TooLarge(
            f"the parts, tool calls and metadata have {size:,} bytes as JSON; at most {limit:,} are allowed "
            "(profile key message_bytes)",
            "metadata" if set(found) == {"metadata"} else "parts",
        )
    return text


def checked_parts(parts: object) -> list[Part]:
    """Return parts that are passed as values or mappings. Raises InvalidInput."""
    return [_made(each, Part, "parts") for each in _listed(parts, "parts")]


def _as_dict(value: Part | ToolCall) -> dict[str, Any]:
    if isinstance(value, Part) and value.data is not None:
        raise InvalidInput("a part with data can only be stored by add and edit", "parts")
    pairs = ((each.name, getattr(value, each.name)) for each in fields(value))
    return {
        name: (str.__str__(item) if isinstance(item, str) else int(item)) for name, item in pairs if item is not None
    }


def _listed(value: object, what: str) -> list[object]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
        raise InvalidInput(f"{what} must be a list, not {type(value).__name__}", what)
    found: list[object] = []
    for each in value:
        if len(found) == MOST_PARTS:
            raise TooLarge(f"{what} has more than {MOST_PARTS:,} items", what)
        found.append(each)
    return found


Made = TypeVar("Made", Part, ToolCall)


def _made(value: object, kind: type[Made], what: str) -> Made:
    """Return a part or a tool call, which may be passed as a mapping of its fields."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f"an item of {what} must be a {kind.__name__} or a mapping, not {type(value).__name__}", what
        )
    if what == "tool_calls" and isinstance(value.get("function"), Mapping):  # as OpenAI writes it
        rest = {name: item for name, item in value.items() if name not in ("function", "type", "index")}
        value = {**rest, **value["function"]}
    names = [each.name for each in fields(kind)]
    if unknown := [name for name in value if name not in names]:
        raise InvalidInput(f"an item of {what} has the unknown key {quoted(unknown[0])}; use {', '.join(names)}", what)
    needed = ["type"] if what == "parts" else names
    if missing := [name for name in needed if name not in value]:
        raise InvalidInput(f"an item of {what} has no {missing[0]}", what)
    return kind(**value)


def _named(value: object, what: str, field: str) -> str | None:
    return None if value is None else checks.identifier(value, what, field)


def _copied(metadata: object, limit: int) -> JSON:
    """Return a copy of metadata as JSON knows it. Each item takes at least a byte, which bounds how many are read."""
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata must be a mapping, not {type(metadata).__name__}", "metadata")
    items = 0

    def copy(value: object, depth: int) -> JSON:
        nonlocal items
        items += 1
        if items > limit:
            raise TooLarge(f"metadata has more than {limit:,} values (profile key message_bytes)", "metadata")
        if depth > _DEEPEST:
            raise InvalidInput(f"metadata is nested deeper than {_DEEPEST} levels, or contains itself", "metadata")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return checks.storable(value, "a text in metadata", "metadata")
        if isinstance(value, int):
            return checks.at_least(value, -checks.LARGEST, "a number in metadata", "metadata")
        if isinstance(value, float):
            return checks.number(value, "a number in metadata", "metadata")
        if isinstance(value, Mapping):
            return {_key(key): copy(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [copy(item, depth + 1) for item in value]
        raise InvalidInput(
            f"metadata cannot hold a {type(value).__name__}; use texts, numbers, true, false, None, lists and mappings",
            "metadata",
        )

    return copy(metadata, 0)


def _key(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"a key in metadata must be a string, not {type(value).__name__}", "metadata")
    return checks.storable(value, "a key in metadata", "metadata")


def regular(text: str) -> str:
    """Return an id without surrounding white space and in Unicode's composed form (NFC).

    Phones and file systems write "Zo\u00eb" with one character or with two; both are one person.
    """
    return text.strip() if text.isascii() else normalize("NFC", text).strip()


def is_regular(text: str) -> bool:
    """Tell whether an id is spelled as `regular` spells it."""
    return regular(text) == text


class KnownIds:
    """Gives ids their regular spelling, except those that a store already has in another one.

    Stores of older versions have ids in any spelling. They stay reachable exactly as they are.
    """

    def __init__(self, irregular: Iterable[str] = ()) -> None:
        found = frozenset(irregular)
        self._irregular = found.union(map(chat_name, found))

    def spelled(self, value: Any) -> Any:  # noqa: ANN401 - what is not a text is returned as it is
        """Return an id as the store spells it."""
        if not isinstance(value, str) or value in self._irregular:
            return value
        return regular(value)
