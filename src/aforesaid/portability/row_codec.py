"""Aforesaid's own export format, JSON Lines: rows as JSON, and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from datetime import date, datetime, timedelta
from functools import cache, partial
from hashlib import blake2b
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from aforesaid.domain import transfer
from aforesaid.domain.checks import Role, storable
from aforesaid.domain.context_receipt import ContextReceipt, read_receipt, receipt_details
from aforesaid.domain.details import canonical_details
from aforesaid.domain.memory import (
    CATEGORIES,
    KINDS,
    Event,
    Facts,
    MemoryRecord,
    MemoryVersion,
    about_in,
    check_kind,
    check_matter,
    check_weights,
    kind_of,
)
from aforesaid.domain.message import Message, message_id, sequence_number
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Scope, Session
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.summary import Quality, Summary, summary_text
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.formats.base import Format, ImportedRow, Item, Problem
from aforesaid.portability.json_stream import Fields, numbered_lines, parsed
from aforesaid.store.dumping import NAMES

T = TypeVar("T")

VERSION: Final = 1
"""The version of the format, in the first line of a file."""
_ROLES: Final[tuple[Role, ...]] = get_args(Role)


def somebody(user: str, space: str, thread: str) -> Scope:
    """Return the scope of an imported message. Raises InvalidInput for a reserved user id."""
    if user == EVERYBODY:
        raise InvalidInput(f"{EVERYBODY!r} cannot be a user id: it means all users of a space")
    return Scope.of(user, space, thread)


def encode(row: transfer.Row) -> dict[str, Any]:
    """Return a row as JSON values, its kind first."""
    kind = NAMES[type(row)]
    match row:
        case transfer.SessionRow(session, automatic):
            body = {**asdict(session), "automatic": automatic}
        case transfer.SummaryRow(summary, messages):
            body = {("summary_kind" if name == "kind" else name): value for name, value in asdict(summary).items()}
            body["archived"] = messages
        case transfer.MemoryRow(memory, versions):
            body = {**_plain(memory), "versions": versions}
        case transfer.SettingRow(space, user, setting):
            body = {"space": space, "user": user, **asdict(setting)}
        case Message():
            body = {each.name: getattr(row, each.name) for each in fields(row) if each.name != "details"}
            if row.details is not None:
                body["details"] = json.loads(row.details)
        case ContextReceipt():
            names = {"id": row.id, "space": row.space, "user": row.user, "at": row.at, "reply": row.reply}
            body = {**names, **receipt_details(row)}
        case Facts() | AuditEntry():
            body = {each.name: getattr(row, each.name) for each in fields(row)}
        case _:
            body = cast("Any", row)._asdict()
    return {"kind": kind, **{name: _plain(value) for name, value in body.items()}}


def decode(entry: object) -> transfer.Row:
    found = Fields(entry)
    kind = found.needed("kind")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise InvalidInput(f"unknown kind {quoted(kind)}; this version knows {', '.join(_READERS)}")
    return reader(found)


def _plain(value: Any) -> Any:  # noqa: ANN401 - takes apart whatever it is given
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, MemoryRecord | MemoryVersion):
        names = ((each.name, "memory_kind" if each.name == "kind" else each.name) for each in fields(value))
        return {shown: _plain(getattr(value, name)) for name, shown in names}
    if isinstance(value, Event):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


_IDS: Final = frozenset(
    ("id", "space", "user", "thread", "session", "author", "speaker", "about", "language", "embedder", "policy", "key")
)
"""The texts that are ids of something."""
_FROM_ONE: Final = frozenset(
    ("id", "seq", "chunk", "level", "version", "replaces", "superseded_by", "times", "revision")
)
"""The numbers that are at least 1; the others are at least 0."""
_READ: Final[dict[object, Callable[[Fields, str], Any]]] = {
    str: Fields.text,
    int: Fields.number,
    bool: Fields.flag,
    float: Fields.real,
    bytes: Fields.blob,
    datetime: Fields.moment,
    date: Fields.day,
    timedelta: Fields.seconds,
    tuple[int, ...]: Fields.numbers,
    tuple[str, ...]: Fields.texts,
}


@cache
def _fields_of(kind: type) -> list[tuple[str, bool, Callable[[Fields, str], Any]]]:
    """Return the name of each field of a value, whether it may be missing, and what reads it: its type decides."""
    found: list[tuple[str, bool, Callable[[Fields, str], Any]]] = []
    for name, hint in get_type_hints(kind).items():
        type_, is_optional = hint, isinstance(hint, UnionType) or get_origin(hint) is Union
        if is_optional:
            type_ = get_args(hint)[0]
        read = _READ.get(type_)
        if type_ is str and name in _IDS:
            read = Fields.name
        elif type_ is int and name in _FROM_ONE:
            read = partial(Fields.number, least=1)
        elif get_origin(type_) is Literal:
            read = partial(Fields.word, known=get_args(type_))
        if read is not None:
            found.append((name, is_optional, read))
    return found


def _given(kind: type[T], found: Fields, /, **known: object) -> T:
    """Return a value of the domain. Its fields are read by their types, except those that are known."""
    for name, is_optional, read in _fields_of(cast("type", kind)):
        if name not in known:
            known[name] = None if is_optional and not found.has(name) else read(found, name)
    return kind(**known)


def _message(found: Fields) -> Message:
    details = canonical_details(found.raw("details"))
    # Written out, because most rows are messages: with `_given`, reading an export takes 7 % more CPU.
    message = Message(
        seq=found.number("seq", 1),
        id=found.name("id"),
        space=found.name("space"),
        user=found.name("user"),
        thread=found.name("thread"),
        session=found.name("session"),
        role=found.word("role", _ROLES),
        author=found.name("author"),
        name=found.text("name") if found.has("name") else None,
        text=found.text("text"),
        at=found.moment("at"),
        stored_at=found.moment("stored_at"),
        active=found.flag("active"),
        chunk=found.number("chunk", 1) if found.has("chunk") else None,
        hash=found.blob("hash"),
        replaces=found.number("replaces", 1) if found.has("replaces") else None,
        replaced=found.has("replaced") and found.flag("replaced"),
        details=details,
    )
    if sequence_number(message.id) is not None and message.id != message_id(message.seq, None):
        raise InvalidInput(f"the id {quoted(message.id)} does not fit the number {message.seq}")
    if not message.text and details is None:
        raise InvalidInput("text is empty")
    somebody(message.user, message.space, message.thread)
    if transfer.draft_of(message).hash != message.hash:
        raise InvalidInput("its hash does not match: it is not what was stored")
    return message


def _summary(found: Fields) -> transfer.SummaryRow:
    details = found.raw("details")
    summary = _given(
        Summary,
        found,
        kind=found.name("summary_kind"),
        text=summary_text(found.text("text")),
        details=Fields(details, "details").values if details is not None else None,
        quality=_given(Quality, Fields(found.raw("quality"), "quality")) if found.has("quality") else None,
    )
    if summary.reach == "chunks" and summary.level == 1 and len(summary.chunks) != 1:
        raise InvalidInput("a summary of messages needs exactly one archive")
    if (summary.replaces is None) != (summary.version == 1):
        raise InvalidInput("a version after the first needs the version that it replaces")
    return transfer.SummaryRow(summary, found.numbers("archived"))


def _memory(found: Fields) -> transfer.MemoryRow:
    versions = []
    for each in found.items("versions"):
        version = Fields(each, "a version")
        before = _one_memory(Fields(version.needed("before"), "a version"))
        versions.append(_given(MemoryVersion, version, before=before))
    return transfer.MemoryRow(_one_memory(found), tuple(versions))


def _one_memory(found: Fields) -> MemoryRecord:
    check_weights(found.number("importance"), found.number("priority"))
    if not found.text("text"):
        raise InvalidInput("text is empty")
    category, tags = found.word("category", CATEGORIES), found.texts("tags")
    subject = found.text("subject") if found.has("subject") else None
    event = _given(Event, Fields(found.raw("event"), "the event")) if found.has("event") else None
    memory = _given(
        MemoryRecord,
        found,
        active=found.raw("state") == "active",
        event=event,
        kind=found.word("memory_kind", KINDS) if found.has("memory_kind") else kind_of(category, tags, event, subject),
        about=found.name("about") if found.has("about") else about_in(tags),
        said_at=found.moment("said_at" if found.has("said_at") else "valid_from"),
    )
    check_kind(memory.kind, memory.about, memory.language, memory.confidence)
    check_matter(memory.matter, memory.value)
    return memory


def _setting(found: Fields) -> transfer.SettingRow:
    value = found.needed("value")
    if not isinstance(value, str | int | float | bool):
        raise InvalidInput("value must be a text, a number, true or false")
    if isinstance(value, str):
        storable(value, "value")
    return _given(transfer.SettingRow, found, setting=_given(Setting, found, value=value))


def _receipt(found: Fields) -> ContextReceipt:
    reply = None if found.raw("reply") is None else found.number("reply", 1)
    names = (found.text("id"), found.name("space"), found.name("user"), found.moment("at"))
    return read_receipt(*names, reply, found.values)


_READERS: Final[dict[str, Callable[[Fields], transfer.Row]]] = {
    "message": _message,
    "session": lambda found: transfer.SessionRow(_given(Session, found), found.flag("automatic")),
    "summary": _summary,
    "memory": _memory,
    "facts": partial(_given, Facts),
    "forgotten": partial(_given, transfer.ForgottenRow),
    "setting": _setting,
    "user": partial(_given, transfer.UserRow),
    "day": lambda found: _given(transfer.DayRow, found, day=found.day("day").isoformat()),
    "spending": lambda found: _given(transfer.SpendingRow, found, space=found.text("space"), user=found.text("user")),
    "receipt": _receipt,
    # The entries of the store itself have no space or user.
    "audit": lambda found: _given(
        AuditEntry, found, id=found.number("id"), space=found.text("space"), user=found.text("user")
    ),
    "vector": partial(_given, transfer.VectorOf),
}


class Aforesaid(Format):
    app = "aforesaid"

    def files(self) -> list[str]:
        return self.source.names[:1]

    def items(self, name: str) -> Iterator[Item]:
        found: Counter[str] = Counter()
        total = blake2b(digest_size=16)
        ended = False
        with self.source.open(name) as stream:
            for number, line in numbered_lines(stream):
                where = f"line {number}"
                try:
                    entry = parsed(line)
                    if number == 1:
                        # The first key is the name of the program; older exports have an earlier name.
                        if not isinstance(entry, dict) or "export" not in entry.values():
                            raise InvalidInput("this is not an export of Aforesaid")
                        if (version := entry.get("version")) != VERSION:
                            raise InvalidInput(
                                f"this export has version {json.dumps(version)} of the format, but this program "
                                f"supports only version {VERSION}: install a newer Aforesaid"
                            )
                    elif isinstance(entry, dict) and entry.get("kind") == "end":
                        ended = True
                        rows = entry.get("rows")
                        if rows != found:
                            read = json.dumps(found)
                            yield Problem(where, f"{json.dumps(rows)} rows were written, but {read} were read")
                        elif entry.get("sum") != total.hexdigest():
                            yield Problem(where, "the checksum does not match: the file was changed after the export")
                    else:
                        row = decode(entry)
                        found[NAMES[type(row)]] += 1
                        yield ImportedRow(where, row)
                except InvalidInput as error:
                    if number == 1:
                        raise
                    yield Problem(where, str(error))
                total.update(line or b"")
        if not ended:
            yield Problem("the end", "the file is cut off: its last line is missing")
