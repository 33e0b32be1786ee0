"""Which messages of a scope a read or a search returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from aforesaid.domain import checks
from aforesaid.domain.details import JSON
from aforesaid.domain.literals import Role
from aforesaid.domain.message import Message
from aforesaid.errors import InvalidInput

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Conditions that a message must all fulfil. None sets no condition."""

    role: Role | None = None
    author: str | None = None
    """The id of whoever wrote it."""
    since: int | None = None
    """Said at this time or later, in microseconds since 1970."""
    until: int | None = None
    """Said before this time, in microseconds since 1970."""
    metadata: tuple[tuple[str, Scalar], ...] = ()
    """Keys of its metadata, and the values that they must have."""
    given_id: str | None = None
    """The id that a platform gave it. Threads number their messages apart, so several may have it."""

    def holds(self, message: Message) -> bool:
        """Return whether a message fulfils all conditions."""
        if self.role not in (None, message.role) or self.author not in (None, message.author):
            return False
        if self.given_id not in (None, message.id):
            return False
        if self.since is not None or self.until is not None:
            at = checks.microseconds(message.at, "at")
            if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
                return False
        if not self.metadata:
            return True
        found = message.metadata
        return all(key in found and _same(found[key], value) for key, value in self.metadata)


EVERY_MESSAGE: Final = MessageFilter()
"""No condition at all."""


def message_filter(
    *, role: object = None, author: object = None, since: object = None, until: object = None, metadata: object = None
) -> MessageFilter:
    """Validate conditions and return the filter. Raises InvalidInput."""
    return MessageFilter(
        None if role is None else checks.role(role),
        None if author is None else checks.identifier(author, "the author", "author"),
        None if since is None else checks.microseconds(since, "since", "since"),
        None if until is None else checks.microseconds(until, "until", "until"),
        () if metadata is None else _wanted(metadata),
    )


def _same(stored: JSON, wanted: Scalar) -> bool:
    """Compare as JSON does: true is not 1, and 1 is 1.0."""
    if isinstance(stored, bool) or isinstance(wanted, bool):
        return stored is wanted
    return stored == wanted


def _wanted(metadata: object) -> tuple[tuple[str, Scalar], ...]:
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata must be a mapping, not {type(metadata).__name__}", "metadata")
    wanted = []
    for key, value in metadata.items():
        checks.storable(key, "a key in metadata", "metadata")
        wanted.append((str(key), _scalar(value)))
    return tuple(wanted)


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return checks.storable(value, "a text in metadata", "metadata")
    if isinstance(value, int):
        return checks.at_least(value, -checks.LARGEST, "a number in metadata", "metadata")
    if isinstance(value, float):
        return checks.number(value, "a number in metadata")
    raise InvalidInput(
        f"metadata can be compared with strings, numbers, true, false and None, not with a {type(value).__name__}",
        "metadata",
    )
