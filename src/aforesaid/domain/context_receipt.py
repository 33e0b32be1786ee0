"""Receipts of contexts: what was sent to a model, by the ids of messages, memories and summaries. They hold no text."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from aforesaid.domain import checks
from aforesaid.domain.checks import counted
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re

SentKind: TypeAlias = Literal["message", "memory", "summary", "text"]
"""What an item shows. A `text` is none of the others: a system prompt, the date, a line of the portrait."""
SENT_KINDS: Final[tuple[SentKind, ...]] = get_args(SentKind)
SentSource: TypeAlias = Message | MemoryRecord | Summary
"""What an item with a number was made from."""
REQUEST: Final = "request"
"""The section of what an app sent itself, through the proxy."""
_TIME_DIGITS: Final = 12
_RANDOM_BYTES: Final = 10
_ID: Final = re.compile(rf"[0-9a-f]{{{_TIME_DIGITS + 2 * _RANDOM_BYTES}}}")
_MOST_SECTIONS: Final = 100
_MOST_ITEMS: Final = 1_000_000
_MOST_NUMBER: Final = 2**53


class SentItem(NamedTuple):
    """One item of a context."""

    kind: SentKind
    id: int | None
    """The number of the message, memory or summary. None for a text, or if it was missing when the receipt moved."""
    tokens: int


class SentSection(NamedTuple):
    """One section of a context. Its tokens include its heading and what frames its items; those of items do not."""

    name: str
    tokens: int
    items: tuple[SentItem, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextReceipt:
    """What was sent to a model to get one reply."""

    id: str
    """Begins with the time, so that ids sort by it; the rest is random, so that nobody can guess one."""
    space: str
    user: str
    """Whose memory it was."""
    thread: str
    at: datetime
    caller: str
    """Who asked: the actor of a key, or `aforesaid`."""
    profile: str
    budget: int
    tokens: int
    """Tokens of what was sent, as it was sent: the sum of its sections."""
    sections: tuple[SentSection, ...] = ()
    model: str | None = None
    reply: int | None = None
    """The sequence number of the reply that it led to, if it was stored."""
    input_tokens: int | None = None
    """The tokens that the provider counted in the request."""
    output_tokens: int | None = None
    """The tokens that the provider counted in its reply."""
    milliseconds: Mapping[str, int] = field(default_factory=dict)
    """Durations: `context` (building it), `first_byte` and `reply` (of the model, from the request on)."""
    limited: str | None = None
    """Why the context may miss something, such as that a search took too long. None: all sources were searched."""

    @property
    def scope(self) -> Scope:
        """Whose receipt it is."""
        return Scope.of(self.user, self.space)

    def ids(self, kind: SentKind) -> list[int]:
        """Return the numbers of all messages, memories or summaries that were sent, in order, each once."""
        found = (item.id for section in self.sections for item in section.items if item.kind == kind)
        return sorted({number for number in found if number is not None})

    @property
    def knew(self) -> str:
        """What the model was told, in words: `14 messages and 3 memories`."""
        kinds: tuple[SentKind, ...] = ("message", "memory", "summary")
        parts = [counted(len(ids), kind) for kind in kinds if (ids := self.ids(kind))]
        return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts) or "nothing"


def new_receipt_id(at: int) -> str:
    """Return the id of a new receipt of a moment (microseconds)."""
    return f"{at // 1_000:0{_TIME_DIGITS}x}{secrets.token_hex(_RANDOM_BYTES)}"


def is_receipt_id(value: str) -> bool:
    """Return whether a text has the form of a receipt's id."""
    return _ID.fullmatch(value) is not None


def receipt_details(receipt: ContextReceipt) -> dict[str, Any]:
    """Return what tables and exports hold of a receipt beside its id, owner, time and reply, as JSON values."""
    return {
        "thread": receipt.thread,
        "caller": receipt.caller,
        "profile": receipt.profile,
        "model": receipt.model,
        "budget": receipt.budget,
        "tokens": receipt.tokens,
        "input_tokens": receipt.input_tokens,
        "output_tokens": receipt.output_tokens,
        "milliseconds": dict(receipt.milliseconds),
        "limited": receipt.limited,
        "sections": [[name, tokens, [list(item) for item in items]] for name, tokens, items in receipt.sections],
    }


def read_receipt(
    identity: str, space: str, user: str, at: datetime, reply: int | None, details: object
) -> ContextReceipt:
    """Return the receipt that `receipt_details` took apart. Raises InvalidInput for anything else."""
    if not is_receipt_id(identity):
        raise InvalidInput(f"{quoted(identity)} is no id of a receipt")
    if not isinstance(details, Mapping):
        raise InvalidInput("the details of a receipt must be an object")
    durations = details.get("milliseconds") or {}
    sections = details.get("sections")
    if not isinstance(durations, Mapping) or not isinstance(sections, list) or len(sections) > _MOST_SECTIONS:
        raise InvalidInput("a receipt has durations that are no object, or sections that are no list")
    return ContextReceipt(
        id=identity,
        space=space,
        user=user,
        thread=_text(details, "thread"),
        at=at,
        caller=_text(details, "caller"),
        profile=_text(details, "profile"),
        budget=_number(details.get("budget")),
        tokens=_number(details.get("tokens")),
        sections=tuple(map(_section, sections)),
        model=None if details.get("model") is None else _text(details, "model"),
        reply=None if reply is None else _number(reply),
        input_tokens=None if (tokens := details.get("input_tokens")) is None else _number(tokens),
        output_tokens=None if (tokens := details.get("output_tokens")) is None else _number(tokens),
        milliseconds={checks.storable(str(name), "the name"): _number(spent) for name, spent in durations.items()},
        limited=None if details.get("limited") is None else _text(details, "limited"),
    )


def renumbered(sections: Iterable[SentSection], numbers: Mapping[SentKind, Any]) -> tuple[SentSection, ...]:
    """Return sections with other ids. `numbers` has a function for each kind, from the old number to the new one."""

    def item(old: SentItem) -> SentItem:
        return old if old.id is None or old.kind not in numbers else old._replace(id=numbers[old.kind](old.id))

    return tuple(section._replace(items=tuple(map(item, section.items))) for section in sections)


def _section(value: object) -> SentSection:
    match value:
        case [str(name), tokens, list(items)] if len(items) <= _MOST_ITEMS:
            return SentSection(checks.storable(name, "the section"), _number(tokens), tuple(map(_item, items)))
    raise InvalidInput("a section of a receipt must be its name, its tokens and a list of items")


def _item(value: object) -> SentItem:
    match value:
        case [kind, number, tokens] if kind in SENT_KINDS:
            return SentItem(kind, None if number is None else _number(number), _number(tokens))
    raise InvalidInput(f"an item of a receipt must be one of {', '.join(SENT_KINDS)}, its number and its tokens")


def _text(details: Mapping[str, Any], name: str) -> str:
    value = details.get(name)
    if not isinstance(value, str):
        raise InvalidInput(f"the {name} of a receipt must be a text")
    return checks.storable(value, f"the {name}")


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_NUMBER:
        raise InvalidInput(f"{quoted(str(value))} in a receipt must be a whole number that is not negative")
    return value
