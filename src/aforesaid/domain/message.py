"""Messages, before they are stored (drafts) and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from hashlib import blake2b
from itertools import islice, repeat
from operator import attrgetter
from types import NoneType
from typing import Any, Final, NamedTuple, get_args

from aforesaid.domain import checks
from aforesaid.domain.caches import named_tuples
from aforesaid.domain.chat_message import ChatMessage, chat_api_name, chat_tool_calls, content_parts, said_in
from aforesaid.domain.checks import Role
from aforesaid.domain.details import (
    DETAILS_BYTES,
    JSON,
    MOST_PARTS,
    TAKEN_BACK,
    Details,
    KnownIds,
    Part,
    ToolCall,
    details_text,
    read_details,
    text_of_parts,
)
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.extras import re

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
    details: str | None = None
    """What it has beside its text, as JSON (`domain.details`). None for most messages."""

    @property
    def is_tombstone(self) -> bool:
        """Whether it is what is left of a message that was taken back. It is marked as replaced from the start."""
        return self.details == TAKEN_BACK

    @property
    def hash(self) -> bytes:
        """The hash of the immutable fields."""
        (space, user, thread, _), role, text, author, name, at, _, stored_at, given_id, _, details = self
        return message_hash(space, user, thread, given_id, role, author, name, text, at, stored_at, details)


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
    """Whether it does not count any more: there is a newer version, it was taken back, or its chat goes on from another
    turn. It stays in the log and is not shown; a search finds it only if it was set aside with its branch."""
    details: str | None = None
    """What it has beside its text, as JSON; the properties below read it. None for most messages."""

    @property
    def all_details(self) -> Details:
        """What it has beside its text. Reads `details` once, where the properties below read it each time."""
        return read_details(self.details)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Text, images, sounds and files that it consists of; empty for a message that is only a text."""
        return self.all_details.parts

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that the model asked for."""
        return self.all_details.tool_calls

    @property
    def tool_call_id(self) -> str | None:
        """The id of the call that this message is the result of."""
        return self.all_details.tool_call_id

    @property
    def metadata(self) -> Mapping[str, JSON]:
        """Whatever the application stored with it."""
        return self.all_details.metadata

    @property
    def reply_to(self) -> str | None:
        """The id of the message of the same thread that it replies to. That message need not exist."""
        return self.all_details.reply_to

    @property
    def kind(self) -> str | None:
        """The kind that the platform gives it, such as `voice`, `sticker` or `system`."""
        return self.all_details.kind

    @property
    def language(self) -> str | None:
        """The language that it is in, as the application named it."""
        return self.all_details.language

    @property
    def shown_text(self) -> str:
        """The text, with short words for images, sounds, files and tool calls: `[image: a cat on a roof]`."""
        return self.text if self.details is None else self.all_details.shown_text(self.text)

    @property
    def taken_back(self) -> bool:
        """Whether it is the tombstone of a message that was taken back."""
        return self.details == TAKEN_BACK

    def as_openai(self) -> ChatMessage:
        """Return the message as OpenAI's chat API takes it. Of the name, it has what the API allows in names."""
        details = self.all_details
        content = content_parts(self.text, details.parts) if details.parts else self.text
        message: ChatMessage = {"role": self.role, "content": content}
        if self.name is not None and (name := chat_api_name(self.name)):
            message["name"] = name
        if details.tool_calls:
            message["content"] = content or None
            message["tool_calls"] = chat_tool_calls(details.tool_calls)
        if details.tool_call_id is not None:
            message["tool_call_id"] = details.tool_call_id
        return message

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
    **details: object,
) -> Draft:
    """Validate the arguments and return a draft. Raises InvalidInput.

    `details` are the arguments of `details_text`. With parts or tool calls, or as the result of one, the text may be
    empty; then it is the text of the parts, so that they are found.
    """
    checked_role = checks.role(role)
    stored_at = checks.now()
    own_words = scope.user if checked_role == "user" else checked_role
    extra = None
    if details:
        if isinstance(answered := details.get("reply_to"), Message):
            details["reply_to"] = answered.id
        extra = details_text(**details, limit=max(limit, DETAILS_BYTES))
    if extra is None or text != "":
        checked_text = checks.message_text(text, limit)
    else:
        found = read_details(extra)
        if not found.parts and not found.tool_calls and found.tool_call_id is None:
            raise InvalidInput("the text is empty", "text")
        checked_text = text_of_parts(found.parts)
        checked_text = checks.message_text(checked_text, limit, field="parts") if checked_text else ""
    earlier: int | str | None = replaces.seq if isinstance(replaces, Message) else None
    if replaces is not None and earlier is None:
        name_or_number = checks.identifier(replaces, "the id of the replaced message", "replaces")
        seq = sequence_number(name_or_number)
        earlier = name_or_number if seq is None else seq
    return Draft(
        scope,
        checked_role,
        checked_text,
        own_words if author is None else checks.identifier(author, "the author", "author"),
        None if name is None else checks.display_name(name),
        stored_at if at is None else checks.microseconds(at, "at", "at"),
        at is not None,
        stored_at,
        None if id is None else platform_id(id),
        earlier,
        extra,
    )


def plain_draft(scope: Scope, role: object, text: object, at: object, given_id: object, limit: int) -> Draft:
    """Return the draft of a message that has no other field, as `draft` does in twice the time. Raises InvalidInput."""
    checked_role = checks.role(role)
    stored_at = checks.now()
    return Draft(
        scope,
        checked_role,
        checks.message_text(text, limit),
        scope.user if checked_role == "user" else checked_role,
        None,
        stored_at if at is None else checks.microseconds(at, "at", "at"),
        at is not None,
        stored_at,
        None if given_id is None else platform_id(given_id),
    )


def edited(before: Message, text: str | None, changes: dict[str, Any]) -> str:
    """Return the text of a new version, and add to `changes` the details that stay as they were."""
    old = before.all_details
    if text is None:
        made_of_parts = "parts" in changes and before.text == text_of_parts(old.parts)
        text = "" if made_of_parts else before.text
    elif "parts" not in changes:
        changes["parts"] = [part for part in old.parts if part.type != "text"]
    for name in ("parts", "tool_calls", "tool_call_id", "metadata", "reply_to", "kind", "language"):
        changes.setdefault(name, getattr(old, name))
    return text


def tombstone(message: Message) -> Draft:
    """Return the draft of the version that takes a message back."""
    return _same_moment(message, "", TAKEN_BACK, message.seq)


def brought_back(gone: Message, before: Message) -> Draft:
    """Return the draft of the version that follows a tombstone, with what the message was `before`."""
    return _same_moment(gone, before.text, before.details, gone.seq)


def _same_moment(message: Message, text: str, details: str | None, replaces: int) -> Draft:
    scope = Scope(message.space, message.user, message.thread)
    at, now = checks.microseconds(message.at, "at"), checks.now()
    return Draft(
        scope, message.role, text, message.author, message.name, at, False, now, None, replaces, details=details
    )


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

    Two ids that differ mean two messages, however alike: people do say "ok" twice in one second. So do details that
    differ: two pictures are sent in one second. A delivery that came without details may repeat one that has some.
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
        and (new.details == stored.details or (bool(new.text) and None in (new.details, stored.details)))
        # Where `new` replaces a message, named by its number here, `stored` must be a version that replaces one too.
        and (
            (stored.replaces is not None and stored.seq > new.replaces)
            if isinstance(new.replaces, int)
            else stored.replaces is None
        )
    )


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
        replaced=draft.is_tombstone,
        details=draft.details,
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
    details: str | None = None,
) -> bytes:
    """Return the hash of a message's immutable fields."""
    # No field contains a NUL, so the joined text is unambiguous. No field that can be None can be empty.
    whole = f"{space}\0{user}\0{thread}\0{given_id or ''}\0{role}\0{author}\0{name or ''}\0{at}\0{stored_at}\0{text}"
    if details is not None:
        whole = f"{whole}\0{details}"
    return blake2b(whole.encode(), digest_size=16).digest()


def message_hashes(drafts: Sequence[Draft], scope: Scope) -> list[bytes]:
    """Return the hashes of messages of one scope, in 70 % of the time that `message_hash` needs for each."""
    if not drafts:
        return []
    _, roles, texts, authors, names, times, _, stored_at, ids, _, details = zip(*drafts, strict=True)
    if any(details):
        return [draft.hash for draft in drafts]
    stored = [*map(str, stored_at)]
    columns = (
        [given or "" for given in ids] if any(ids) else repeat(""),
        roles,
        authors,
        [name or "" for name in names] if any(names) else repeat(""),
        stored if times == stored_at else map(str, times),
        stored,
        texts,
    )
    of_scope = blake2b(f"{scope.space}\0{scope.user}\0{scope.thread}\0".encode(), digest_size=16)
    hashes = []
    new = of_scope.copy
    for rest in map(str.encode, map("\0".join, zip(*columns, strict=False))):
        digest = new()
        digest.update(rest)
        hashes.append(digest.digest())
    return hashes


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
        for part in parts:  # the bytes of a file are stored apart from the messages
            if (part.get("data") if isinstance(part, Mapping) else getattr(part, "data", None)) is not None:
                raise InvalidInput("the parts of a batch cannot bring data; add this message with `add`", "parts")
    if given.get("author") is not None:
        given["author"] = ids.spelled(given["author"])
    return draft(scope, given.pop("role"), given.pop("text", ""), limit=limit, **given)


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
