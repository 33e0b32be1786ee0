"""The rows of a dump as records that people can read, with the documents' names, and back."""

from __future__ import annotations

import base64
import json
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from functools import cache
from inspect import signature
from typing import Any, Final, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.details import canonical_details
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, Tombstone
from aforesaid.domain.message import Message, message_id, sequence_number
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Entry, Session
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Row,
    SessionRow,
    SettingRow,
    SpendingRow,
    SummaryRow,
    UserRow,
    VectorOf,
)

_MICROSECOND = timedelta(microseconds=1)


def encode(value: Any) -> Any:  # noqa: ANN401 - takes apart whatever it is given
    """Return a value as JSON knows it. What is missing (None) is left out of records."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, timedelta):
        return value // _MICROSECOND
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: encode(item) for name, item in pairs if item is not None}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: encode(item) for name, item in value._asdict().items() if item is not None}
    if isinstance(value, Mapping):
        return {name: encode(item) for name, item in value.items()}
    return [encode(item) for item in value]


def decode(kind: Any, plain: Any) -> Any:  # noqa: ANN401 - builds a value of any kind
    """Return the value of a type that `encode` made this of. Raises ValueError, TypeError or KeyError for all else."""
    return _decoder(kind)(plain)


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        kinds = tuple(each for each in inside if each is not type(None))
        # Of several, each is one that JSON has.
        read = _decoder(kinds[0]) if len(kinds) == 1 else lambda plain: _expect(plain, kinds)
        return lambda plain: None if plain is None else read(plain)
    if origin is tuple:  # of any length
        each = _decoder(inside[0])
        return lambda plain: tuple([each(item) for item in _expect(plain, list)])
    if origin is Literal:
        return lambda plain: _one_of(plain, inside)
    if kind is Any or origin is Mapping or kind is Mapping:
        return lambda plain: plain
    return _PLAIN[kind] if kind in _PLAIN else _record(kind)


def _record(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    hints = get_type_hints(kind)
    needed = {name: each.default is each.empty for name, each in signature(kind).parameters.items()}
    empty = {name: None for name in needed if needed[name] and type(None) in get_args(hints[name])}
    decoders = [(name, _decoder(hints[name]), needed[name] and name not in empty) for name in needed]

    def read(plain: Any) -> Any:  # noqa: ANN401
        known = _expect(plain, dict)
        found = {name: decoder(known[name]) for name, decoder, needed in decoders if needed or name in known}
        return kind(**(empty | found))

    return read


def _expect(plain: Any, kind: Any) -> Any:  # noqa: ANN401
    if not isinstance(plain, kind) or (isinstance(plain, bool) and kind is int):
        raise TypeError(f"expected {kind}, found {type(plain).__name__}")
    return plain


def _aware(plain: str) -> datetime:
    at = datetime.fromisoformat(plain)
    if at.utcoffset() is None:
        raise ValueError(f"the time {at} has no time zone")
    return at


def _one_of(plain: Any, allowed: tuple[Any, ...]) -> Any:  # noqa: ANN401
    if plain not in allowed:
        raise ValueError(f"{plain!r} is none of {allowed}")
    return plain


_PLAIN: dict[Any, Callable[[Any], Any]] = {
    str: lambda plain: _expect(plain, str),
    bool: lambda plain: _expect(plain, bool),
    int: lambda plain: _expect(plain, int),
    float: lambda plain: plain if isinstance(plain, float) else float(_expect(plain, int)),
    datetime: _aware,
    date: date.fromisoformat,
    bytes: lambda plain: plain if isinstance(plain, bytes) else base64.b64decode(plain, validate=True),
    timedelta: lambda plain: _expect(plain, int) * _MICROSECOND,
}


Name: TypeAlias = tuple[str, str]
"""A space and a user in it."""
Record: TypeAlias = dict[str, Any]

_SAFE_NUMBER: Final = 2**53
"""Larger numbers are not the same to every program that reads JSON."""
GIVEN: Final = {"log": "log", "summaries": "summary", "memories": "memory", "audit": "audit"}
"""Tables of the database by the names under which files have the last number that they gave out."""
NUMBERED: Final = ("messages", "summaries", "memories")
"""Tables whose records are numbered through all accounts."""


class UnknownRecord(ValueError):
    """A record is whole, but says nothing that can be read."""


def shown_id(user: str) -> int | str:
    """Return a user's id as the documents write it: platforms' numbers as numbers."""
    plain = user.isascii() and user.isdecimal() and (user == "0" or user[0] != "0")
    return int(user) if plain and int(user) < _SAFE_NUMBER else user


def read_id(shown: object) -> str:
    if isinstance(shown, bool) or not isinstance(shown, int | str):
        raise TypeError(f"a user's id cannot be a {type(shown).__name__}")
    return str(shown)


class Content:
    """Everything that a store holds at one moment, to be written down."""

    def __init__(self) -> None:
        self.users: dict[Name, UserRow] = {}
        self.records: dict[Name | None, dict[str, list[Record]]] = {None: {}}
        """The records of each user by table; those of nobody in particular under None."""
        self.messages: dict[Name, list[Message]] = {}
        self.histories: dict[Name, Summary] = {}
        """The newest analysis of each user's history."""
        self.given: dict[str, int] = {}
        """The last numbers that were given out."""
        self._owners: dict[int, Name] = {}
        """The owners of messages by number."""
        self._sessions = 0

    def finish(self, marks: Mapping[str, str], given: Mapping[str, int]) -> None:
        """Add what is no part of a dump."""
        for name, value in marks.items():
            self._put(None, "marks", {"mark": name, "value": value})
        self.given = {shown: given[table] for shown, table in GIVEN.items() if table in given}
        for shown, last in self.given.items():
            self._put(None, "numbers_given", {"numbered": shown, "last_given": last})
        for owner in self.records.keys() - self.users.keys() - {None}:
            # What belongs to somebody without an account is written down with what is nobody's.
            for table, found in self.records.pop(owner).items():
                self.records[None].setdefault(table, []).extend(found)

    def every(self, table: str) -> Iterator[Record]:
        """Return all records of a table, account by account."""
        for owner in (None, *self.users):
            yield from self.records.get(owner, {}).get(table, ())

    def add(self, row: Row) -> None:
        match row:
            case Message():
                owner = row.space, row.user
                self._owners[row.seq] = owner
                self.messages.setdefault(owner, []).append(row)
                self._put(owner, "messages", pack_message(row))
            case SessionRow(session):
                self._sessions += 1
                named = {"session_key": self._sessions, "automatic": row.automatic, **encode(session)}
                self._put((session.space, session.user), "sessions", named)
            case SummaryRow(summary):
                owner = summary.space, summary.user
                rest: Record = encode(summary)
                documented = {shown: rest.pop(name) for name, shown in _SUMMARY.items()}
                self._put(owner, "summaries", documented | {"user_id": shown_id(summary.user)} | rest)
                if summary.active and summary.kind == "history":
                    self.histories[owner] = summary
            case MemoryRow(memory):
                owner = memory.space, memory.user
                self._put(owner, "memories", encode(memory))
                if row.versions:
                    self._put(owner, "memory_versions", {"memory": memory.id, "versions": encode(row.versions)})
            case ForgottenRow(space, user):
                if not (found := self.records.get((space, user), {}).get("forgotten")):
                    found = [self._put((space, user), "forgotten", _named(row) | {"forgotten": []})]
                found[0]["forgotten"].append({"words": row.words, "up_to": row.up_to})
            case SettingRow():
                self._put((row.space, row.user), "settings", _named(row) | encode(row.setting))
            case UserRow():
                owner = row.space, row.user
                self.users[owner] = row
                shown = {"user_id": shown_id(row.user), "space": row.space, "created_at": row.created_at.isoformat()}
                self._put(owner, "users", shown)
                if row.extracted:
                    self._put(owner, "extracted", _named(row) | {"extracted_up_to": row.extracted})
                if row.last_chunk:
                    self._put(owner, "chunks", _named(row) | {"last_chunk": row.last_chunk})
            case DayRow():
                self._put(None, "days", encode(row))
            case SpendingRow():
                whose, spender = ((row.space, row.user), _named(row)) if row.user else (None, {})
                self._put(whose, "spending", {"day": row.day.isoformat(), **spender, "tokens": row.tokens})
            case VectorOf():
                # Vectors come last: all messages are there.
                vector = {"embedder": row.embedder, "message": row.seq, "vector": encode(row.value)}
                self._put(self._owners.get(row.seq), "vectors", vector)
            case ContextReceipt() | AuditEntry() | Facts():
                table = {ContextReceipt: "receipts", AuditEntry: "audit", Facts: "facts"}[type(row)]
                self._put((row.space, row.user), table, encode(row))
            case _:
                raise TypeError(f"{type(row).__name__} is no row of a dump")

    def _put(self, owner: Name | None, table: str, record: Record) -> Record:
        self.records.setdefault(owner, {}).setdefault(table, []).append(record)
        return record


def pack_message(message: Message) -> Record:
    """Write a message with the documents' names, and what else is known of it after them."""
    record: Record = {
        "id": message.seq,
        "user_id": shown_id(message.user),
        "role": message.role,
        "content": message.text,
        "created_at": message.at.isoformat(),
        "is_active": message.active,
        "chunk_id": message.chunk,
        "space": message.space,
        "thread": message.thread,
        "session": message.session,
        "author": message.author,
        "stored_at": message.stored_at.isoformat(),
        "hash": message.hash.hex(),
    }
    if message.name is not None:
        record["name"] = message.name
    if sequence_number(message.id) != message.seq:
        record["message_id"] = message.id
    if message.replaces is not None:
        record["replaces"] = message.replaces
    if message.replaced:
        record["replaced"] = True
    if message.details is not None:
        record["details"] = json.loads(message.details)
    return record


def _named(row: ForgottenRow | SettingRow | SpendingRow | UserRow) -> Record:
    return {"space": row.space, "user": row.user}


_MESSAGE: Final = {"seq": "id", "text": "content", "at": "created_at", "active": "is_active", "chunk": "chunk_id"}
"""The documents' names of a message's fields."""
_SUMMARY: Final = {
    "id": "id",
    "user": "user_id",
    "text": "summary_text",
    "created_at": "created_at",
    "level": "level",
    "chunks": "source_chunk_ids",
    "active": "is_active",
}
"""The documents' names of a summary's fields, which come first."""


def _read_message(record: Record) -> Message:
    found: Message = decode(
        Message,
        record
        | {name: record[shown] for name, shown in _MESSAGE.items()}
        | {
            "id": message_id(record["id"], decode(str | None, record.get("message_id"))),
            "user": read_id(record["user_id"]),
            "hash": bytes.fromhex(record["hash"]),
            "details": canonical_details(record.get("details")),
        },
    )
    return found


def _read_summary(record: Record) -> Summary:
    named = {name: record[shown] for name, shown in _SUMMARY.items()}
    found: Summary = decode(Summary, record | named | {"user": read_id(named["user"])})
    return found


def _read_forgotten(record: Record) -> list[ForgottenRow]:
    return [ForgottenRow(*_whose(record), *each) for each in decode(tuple[Tombstone, ...], record["forgotten"])]


def _whose(record: Record) -> Name:
    return decode(str, record["space"]), decode(str, record["user"])


def _account(record: Record) -> Name:
    return decode(str, record["space"]), read_id(record["user_id"])


def _spender(record: Record) -> Name | None:
    return _whose(record) if "user" in record else None


class Table(NamedTuple):
    """How the records of a table are told apart and read."""

    key: Callable[[Record], Any]
    read: Callable[[Record], Any]
    legacy: bool = False
    """Whether only earlier versions wrote it."""


def _by(name: str) -> Callable[[Record], Any]:
    return lambda record: record[name]


def _of_user(name: str) -> Callable[[Record], Any]:
    return lambda record: (_whose(record), record[name])


def _as(kind: Any, name: str = "") -> Callable[[Record], Any]:  # noqa: ANN401
    """Return what reads a record, or one field of it, as a type."""
    return lambda record: decode(kind, record[name] if name else record)


TABLES: Final[dict[str, Table]] = {
    "users": Table(_account, _as(datetime, "created_at")),
    "messages": Table(_by("id"), _read_message),
    "summaries": Table(_by("id"), _read_summary),
    "sessions": Table(
        _by("session_key"), lambda record: SessionRow(decode(Session, record), decode(bool, record["automatic"]))
    ),
    "memories": Table(_by("id"), _as(MemoryRecord)),
    "memory_versions": Table(_as(int, "memory"), _as(tuple[MemoryVersion, ...], "versions")),
    "facts": Table(_of_user("version"), _as(Facts)),
    "settings": Table(_of_user("key"), lambda record: SettingRow(*_whose(record), decode(Setting, record))),
    "forgotten": Table(_whose, _read_forgotten),
    "extracted": Table(_whose, _as(int, "extracted_up_to")),
    "chunks": Table(_whose, _as(int, "last_chunk")),
    "receipts": Table(_of_user("id"), _as(ContextReceipt)),
    "audit": Table(_by("id"), _as(AuditEntry)),
    "spending": Table(
        lambda record: (record["day"], _spender(record)),
        lambda record: SpendingRow(
            decode(date, record["day"]), *(_spender(record) or ("", "")), decode(int, record["tokens"])
        ),
    ),
    "days": Table(lambda record: (record["policy"], record["space"], record["day"]), _as(DayRow)),
    "vectors": Table(
        lambda record: (decode(str, record["embedder"]), decode(int, record["message"])), _as(bytes, "vector")
    ),
    "marks": Table(_as(str, "mark"), _as(str, "value")),
    "numbers_given": Table(_as(str, "numbered"), _as(int, "last_given")),
    # Earlier versions had these tables too. Days come from the agenda; the rest is worked out again.
    "agenda": Table(_by("subject"), _as(Entry), legacy=True),
    "derived": Table(_of_user("kind"), _as(Derived), legacy=True),
    "walks": Table(_by("policy"), _by("walked_up_to"), legacy=True),
    "embedders": Table(_by("embedder"), _by("seen_up_to"), legacy=True),
    "note_vectors": Table(lambda record: (record["embedder"], record["note"]), _by("vector"), legacy=True),
}


class Records(dict[str, dict[Any, Any]]):
    """What files hold: values by table, and in it by key. A later value takes the place of an earlier one."""

    def __init__(self) -> None:
        super().__init__({name: {} for name in TABLES})
        self.newer: list[Row] = []
        """Rows of a database that are compared with those of the files when they are restored."""

    def put(self, name: str, record: Record) -> tuple[Any, bool]:
        """Read a record of a table; return its value, and whether there was none with its key.

        Raises UnknownRecord if it is none of that table.
        """
        table = TABLES.get(name)
        if table is None:
            raise UnknownRecord(f"there is no table {name!r}")
        try:
            key, value = as_key(table.key(record)), table.read(record)
            is_new = key not in self[name]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnknownRecord(f"a record of {name} cannot be read: {error!r}") from error
        self[name][key] = value
        return value, is_new

    def of_user(self, name: str, owner: Name) -> dict[int, Any]:
        """Return the values of a numbered table that belong to a user."""
        return {number: each for number, each in self[name].items() if (each.space, each.user) == owner}

    def add_newer(self, rows: Iterable[Row], given: Mapping[str, int], *, others: bool) -> None:
        """Add the rows of a database whose numbers came after those that were given out up to some moment.

        With `others`, also facts, settings and requests to forget: of two, the newer one counts.
        """
        for row in rows:
            match row:
                case Message() if row.seq > given.get("log", 0):
                    self["messages"].setdefault(row.seq, row)
                case SummaryRow(summary) if summary.id > given.get("summaries", 0):
                    self["summaries"].setdefault(summary.id, summary)
                case MemoryRow(memory) if memory.id > given.get("memories", 0):
                    self["memories"].setdefault(memory.id, memory)
                    self["memory_versions"].setdefault(memory.id, row.versions)
                case Facts() | SettingRow() | ForgottenRow() if others:
                    self.newer.append(row)

    def rows(self) -> Iterator[Row]:
        """Return all rows in the order of a dump."""
        messages: dict[int, Message] = dict(sorted(self["messages"].items()))
        yield from messages.values()
        yield from self["sessions"].values()
        archives: dict[tuple[str, str, int], list[int]] = {}
        for each in messages.values():
            if each.chunk is not None:
                archives.setdefault((each.space, each.user, each.chunk), []).append(each.seq)
        for _, summary in sorted(self["summaries"].items()):
            own = summary.reach == "chunks" and summary.level == 1 and not summary.rolled_back
            archive = archives.get((summary.space, summary.user, summary.chunks[0]), ()) if own else ()
            yield SummaryRow(summary, tuple(archive))
        for number, memory in sorted(self["memories"].items()):
            yield MemoryRow(memory, self["memory_versions"].get(number, ()))
        facts = sorted(self["facts"].values(), key=lambda each: (each.space, each.user, each.version))
        forgotten = [row for rows in self["forgotten"].values() for row in rows]
        for kind, rows in ((Facts, facts), (ForgottenRow, forgotten), (SettingRow, self["settings"].values())):
            yield from rows
            yield from (row for row in self.newer if isinstance(row, kind))
        extracted = self["extracted"]
        looked = Counter(
            (each.space, each.user)
            for each in messages.values()
            if each.seq <= extracted.get((each.space, each.user), 0)
        )
        for (space, user), created in self["users"].items():
            who = space, user
            yield UserRow(space, user, created, self["chunks"].get(who, 0), extracted.get(who, 0), looked[who])
        yield from self["days"].values()
        for it in self["agenda"].values():
            if it.subject.day and it.done_at is not None:
                yield DayRow(it.subject.policy, it.subject.space, it.subject.day, it.done_at, it.done_seq)
        yield from self["spending"].values()
        yield from sorted(self["receipts"].values(), key=lambda each: each.id)
        yield from (entry for _, entry in sorted(self["audit"].items()))
        for (embedder, seq), value in self["vectors"].items():
            if seq in messages:
                yield VectorOf(embedder, messages[seq].space, seq, value)


def as_key(key: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a key, as a record or a journal has it, such that it can be looked up."""
    if isinstance(key, dict):
        return tuple(sorted(key.items()))
    return tuple(map(as_key, key)) if isinstance(key, list | tuple) else key
