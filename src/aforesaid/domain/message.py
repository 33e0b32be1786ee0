"""Messages, before they are stored (drafts) and after."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Final, NamedTuple

from aforesaid.domain import checks, clock
from aforesaid.domain.literals import Role
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, NotFound, quoted

_GIVEN_BY_THE_LOG: Final = re.compile(r"#[0-9]{1,18}")


class Draft(NamedTuple):
    """A validated message that is not stored yet. Made by `draft`."""

    scope: Scope
    role: Role
    text: str
    author: str
    name: str | None
    at: int
    """When it was said, in microseconds since 1970."""
    at_given: bool
    """Whether the caller passed the time. Only then are equal messages treated as one that was sent twice."""
    stored_at: int
    id: str | None
    replaces: int | str | None = None
    """The message that this one replaces: its sequence number, or its id in the same thread."""

    @property
    def hash(self) -> bytes:
        """The hash of the immutable fields."""
        (space, user, thread, _), role, text, author, name, at, _, stored_at, given_id, _ = self
        return message_hash(space, user, thread, given_id, role, author, name, text, at, stored_at)


class Position(NamedTuple):
    """A position in a conversation. Messages are sorted by time, then by sequence number."""

    at: int
    """Microseconds since 1970."""
    seq: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the log. `seq` grows in the order of storing; conversations are shown by `at`, then by `seq`."""

    seq: int
    id: str
    """The platform's id where one was given, otherwise `#` and the sequence number."""
    space: str
    user: str
    """The owner: the user whose memory this message belongs to."""
    thread: str
    session: str
    role: Role
    author: str
    name: str | None
    text: str
    at: datetime
    """When it was said."""
    stored_at: datetime
    """When it was stored."""
    active: bool
    """False once a summary covers it; it stays readable and searchable."""
    chunk: int | None
    """The id of its archive."""
    hash: bytes
    replaces: int | None = None
    """The sequence number of the version before this one."""
    replaced: bool = False
    """Whether there is a newer version. Older versions stay in the log; only the newest is shown and found."""

    @property
    def position(self) -> Position:
        """The position in its conversation."""
        return Position(checks.microseconds(self.at, "at"), self.seq)


def time_order(message: Message) -> tuple[datetime, int]:
    """Return the sort key of messages: the time at which they were said, then the sequence number."""
    return message.at, message.seq


def in_time_order(messages: Iterable[Message]) -> list[Message]:
    """Sort messages by time, then by sequence number."""
    return sorted(messages, key=time_order)


def draft(
    scope: Scope,
    role: object,
    text: object,
    *,
    at: object = None,
    id: object = None,  # noqa: A002 - the public name of the platform's id
    author: object = None,
    name: object = None,
    replaces: object = None,
    limit: int = checks.MESSAGE_BYTES,
) -> Draft:
    """Validate the arguments and return a draft. Raises InvalidInput."""
    checked_role = checks.role(role)
    stored_at = clock.now()
    own_words = scope.user if checked_role == "user" else checked_role
    return Draft(
        scope,
        checked_role,
        checks.message_text(text, limit),
        own_words if author is None else checks.identifier(author, "the author", "author"),
        None if name is None else checks.display_name(name),
        stored_at if at is None else checks.microseconds(at, "at", "at"),
        at is not None,
        stored_at,
        None if id is None else platform_id(id),
        None if replaces is None else _earlier_version(replaces),
    )


def _earlier_version(value: object) -> int | str:
    if isinstance(value, Message):
        return value.seq
    name = checks.identifier(value, "the id of the replaced message", "replaces")
    seq = sequence_number(name)
    return name if seq is None else seq


def platform_id(value: object) -> str:
    """Return a platform's message id. Raises InvalidInput if it looks like one of Aforesaid's."""
    text = checks.identifier(value, "the message id", "id")
    if text[0] == "#" and text[1:].isdecimal():
        raise InvalidInput(
            f"the message id {quoted(text)} looks like one that Aforesaid gives out itself; use another form", "id"
        )
    return text


def message_id(seq: int, given: str | None) -> str:
    """Return the id of a message: the platform's, or `#` and its sequence number."""
    return given if given is not None else f"#{seq}"


def sequence_number(message_id: str) -> int | None:
    """Return the sequence number in an id such as `#12`; None for other ids."""
    return int(message_id[1:]) if _GIVEN_BY_THE_LOG.fullmatch(message_id) else None


def repeats(new: Draft, stored: Message, stored_id: str | None) -> bool:
    """Return whether `new` is another delivery of `stored`.

    Two ids that differ mean two messages, however alike: people do say "ok" twice in one second.
    """
    return (
        new.at_given
        and (new.id is None or stored_id is None)
        and new.text == stored.text
        and new.author == stored.author
        and new.role == stored.role
        # The assistant may say the same to two people in a channel at one moment.
        and (new.role == "user" or new.scope.user == stored.user)
        and new.scope.thread == stored.thread
        and new.scope.space == stored.space
        and new.at == checks.microseconds(stored.at, "at")
        and _same_version(new.replaces, stored)
    )


def _same_version(replaces: int | str | None, stored: Message) -> bool:
    """Return whether `stored` can be the version that replaces a message, which must be named by its number here."""
    if isinstance(replaces, int):
        return stored.replaces is not None and stored.seq > replaces
    return stored.replaces is None


def stored_message(draft: Draft, seq: int, session: str, hash: bytes) -> Message:  # noqa: A002 - the field's name
    """Return the message of a draft that was just stored."""
    scope = draft.scope
    at = checks.moment(draft.at)
    return Message(
        seq=seq,
        id=message_id(seq, draft.id),
        space=scope.space,
        user=scope.user,
        thread=scope.thread,
        session=session,
        role=draft.role,
        author=draft.author,
        name=draft.name,
        text=draft.text,
        at=at,
        stored_at=at if draft.stored_at == draft.at else checks.moment(draft.stored_at),
        active=True,
        chunk=None,
        hash=hash,
        replaces=draft.replaces if isinstance(draft.replaces, int) else None,
    )


def new_version(new: Draft, named: Position, role: str, newest: Position) -> Draft:
    """Return the draft of a new version: it replaces the newest one, and keeps its place unless a time was given.

    `named` and `role` are of the message that the caller named. Raises InvalidInput when the roles differ.
    """
    if role != new.role:
        raise InvalidInput(
            f"message {named.seq} has the role {quoted(role)}; a new version cannot have {new.role!r}", "role"
        )
    return new._replace(replaces=newest.seq, at=new.at if new.at_given else newest.at)


def no_such_version(new: Draft) -> NotFound:
    """Return the error for a draft that replaces a message which is not there."""
    shown = f"#{new.replaces}" if isinstance(new.replaces, int) else repr(new.replaces)
    return NotFound(
        f"{quoted(new.scope.user)} has no message {shown} in the thread {quoted(new.scope.thread)} to replace"
    )


def message_hash(
    space: str,
    user: str,
    thread: str,
    given_id: str | None,
    role: str,
    author: str,
    name: str | None,
    text: str,
    at: int,
    stored_at: int,
) -> bytes:
    """Return the hash of a message's immutable fields."""
    # No field contains a NUL or is empty, so the joined text is unambiguous and distinguishes None.
    whole = f"{space}\0{user}\0{thread}\0{given_id or ''}\0{role}\0{author}\0{name or ''}\0{at}\0{stored_at}\0{text}"
    return blake2b(whole.encode(), digest_size=16).digest()
