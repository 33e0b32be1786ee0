"""Messages of a batch, before they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import islice, repeat
from operator import attrgetter
from types import NoneType
from typing import Any, Final, get_args

from aforesaid.domain import checks
from aforesaid.domain.chat_message import said_in
from aforesaid.domain.details import MOST_PARTS, Part, ToolCall
from aforesaid.domain.fast_constructor import named_tuples
from aforesaid.domain.known_ids import KnownIds
from aforesaid.domain.literals import Role
from aforesaid.domain.message import Draft, Message, draft, plain_draft
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, quoted

MOST_IN_BATCH: Final = 100_000
"""Maximum number of messages of a batch. Until it is stored, a message takes about 2 kB of memory."""
BATCH_BYTES: Final = 1 << 28
"""Maximum characters of all texts of a batch (256 MB of ASCII)."""


@dataclass(slots=True)
class NewMessage:
    """A message to add. The fields are the arguments of `add`."""

    # Not frozen: setting 14 frozen fields takes four times as long, a fifth of what it takes to store a message.

    role: Role
    text: str = ""
    at: datetime | None = None
    id: str | int | None = None
    author: str | int | None = None
    name: str | None = None
    replaces: Message | str | int | None = None
    parts: Sequence[Part | Mapping[str, Any]] = ()
    tool_calls: Sequence[ToolCall | Mapping[str, Any]] = ()
    tool_call_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    reply_to: Message | str | int | None = None
    kind: str | None = None
    language: str | None = None
    content: str | Sequence[Mapping[str, Any]] | None = None
    """The text, or its parts, as OpenAI-style APIs name them: instead of `text`."""


_FIELDS: Final = tuple(each.name for each in fields(NewMessage))
_KNOWN: Final = frozenset(_FIELDS)
_PLAIN: Final = frozenset({"role", "text", "at", "id"})
"""The fields of a message that most messages have no others of."""
_PLAIN_CONTENT: Final = frozenset({"role", "content", "at", "id"})
"""The same of a message as OpenAI-style programs have it."""
_VALUES: Final = attrgetter(*_FIELDS)
_NONE: Final = ()
"""The parts or tool calls of a message that has none."""


def plain_drafts(scope: Scope, messages: Sequence[object], limit: int, stored_at: int) -> list[Draft] | None:
    """Validate messages that have no other field than role, text, time and id, column by column.

    That takes a third of the time that `draft_of_new` takes for each. Returns None if any is of another kind or not
    surely valid. They are stored one microsecond after another, because equal texts of the same moment are taken for
    one message when an export is loaded.
    """
    plain = [fields for fields in map(_plain_fields, messages) if fields is not None]
    if len(plain) < len(messages):
        return None
    roles, texts, times, ids = zip(*plain, strict=True)
    has_times, has_ids = ({*map(type, column)} != {NoneType} for column in (times, ids))
    if not checks.are_roles(roles) or not checks.are_message_texts(texts, limit):
        return None
    if has_ids and not (checks.are_identifiers(ids) and "#" not in "".join(ids)):
        return None
    stored = range(stored_at, stored_at + len(plain))
    try:
        at = [checks.microseconds(time, "at", "at") for time in times] if has_times else stored
    except InvalidInput:
        return None
    authors = {role: scope.user if role == "user" else role for role in get_args(Role)}
    none = repeat(None)
    return [
        *named_tuples(
            Draft,
            zip(
                repeat(scope), roles, texts, map(authors.__getitem__, roles), none, at, repeat(has_times), stored, ids,
                none, none, strict=False,
            ),
        )
    ]  # fmt: skip


def _plain_fields(new: object) -> tuple[Any, Any, Any, Any] | None:
    """Return role, text, time and id of a message that sets no other field; None for any other."""
    if (
        type(new) is NewMessage
        and new.author is None
        and new.name is None
        and new.replaces is None
        and new.parts is _NONE
        and new.tool_calls is _NONE
        and new.tool_call_id is None
        and new.metadata is None
        and new.reply_to is None
        and new.kind is None
        and new.language is None
        and new.content is None
    ):
        return new.role, new.text, new.at, new.id
    if type(new) is dict and "role" in new:
        if new.keys() <= _PLAIN:
            return new["role"], new.get("text", ""), new.get("at"), new.get("id")
        if new.keys() <= _PLAIN_CONTENT and type(new["content"]) is str:
            return new["role"], new["content"], new.get("at"), new.get("id")
    return None


def draft_of_new(scope: Scope, new: object, ids: KnownIds, limit: int) -> Draft:
    """Validate a message of a batch, given as a `NewMessage` or a mapping of its fields. Raises InvalidInput."""
    if (plain := _plain_fields(new)) is not None:
        return plain_draft(scope, *plain, limit)
    given = _given(new)
    if "content" in given:
        text, parts = given.get("text", ""), given.get("parts", ())
        given["text"], given["parts"] = said_in(given.pop("content"), text, parts)
    if isinstance(given.get("parts"), Iterable):
        given["parts"] = parts = tuple(islice(given["parts"], MOST_PARTS + 1))
        if any(map(_has_data, parts)):
            raise InvalidInput("the parts of a batch cannot bring data; add this message with `add`", "parts")
    if given.get("author") is not None:
        given["author"] = ids.spelled(given["author"])
    return draft(scope, given.pop("role"), given.pop("text", ""), limit=limit, **given)


def _has_data(part: object) -> bool:
    """Return whether a part brings the bytes of a file, which are stored apart from the messages."""
    return (part.get("data") if isinstance(part, Mapping) else getattr(part, "data", None)) is not None


def _given(new: object) -> dict[str, Any]:
    """Return the fields that a message sets."""
    if isinstance(new, NewMessage):
        values = zip(_FIELDS, _VALUES(new), strict=True)
        return {name: value for name, value in values if value is not None and value is not _NONE}
    if not isinstance(new, Mapping):
        raise InvalidInput(f"it must be a NewMessage or a mapping, not {type(new).__name__}")
    if "content" in new:
        # SDKs write down the fields that a message of theirs does not have, too.
        new = {name: value for name, value in new.items() if name in _KNOWN or value not in (None, [])}
    if unknown := [name for name in new if name not in _KNOWN]:
        raise InvalidInput(f"it has the unknown key {quoted(unknown[0])}; use {', '.join(_FIELDS)}")
    if "role" not in new:
        raise InvalidInput("it has no role", "role")
    return dict(new)
