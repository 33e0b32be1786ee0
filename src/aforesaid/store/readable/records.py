"""The rows of a dump as records that people can read, with the documents' names, and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

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
from aforesaid.store.readable.codec import decode, encode

Name: TypeAlias = tuple[str, str]
"""A space and a user in it."""
Record: TypeAlias = dict[str, Any]
Records: TypeAlias = dict[str, dict[str, Any]]
"""Values that were read, by table, and in it by their key as JSON: a later one takes the place of an earlier one."""

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
    """Read a user's id."""
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
        """Add a row of a dump."""
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
                documented = {shown: rest.pop(name) for shown, name in _SUMMARY.items()}
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
                self._add_user(row)
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

    def _add_user(self, row: UserRow) -> None:
        owner = row.space, row.user
        self.users[owner] = row
        record = {"user_id": shown_id(row.user), "space": row.space, "created_at": row.created_at.isoformat()}
        self._put(owner, "users", record)
        if row.extracted:
            self._put(owner, "extracted", _named(row) | {"extracted_up_to": row.extracted})
        if row.last_chunk:
            self._put(owner, "chunks", _named(row) | {"last_chunk": row.last_chunk})


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


def _unpack_message(record: Record) -> Message:
    seq, given = decode(int, record["id"]), record.get("message_id")
    texts = [record[name] for name in ("role", "content", "space", "thread", "session", "author", "hash")]
    optional = [text for text in (given, record.get("name")) if text is not None]
    if not all(isinstance(text, str) for text in (*texts, *optional)):
        raise TypeError("a text of the message is none")
    return Message(
        seq=seq,
        id=message_id(seq, given),
        space=record["space"],
        user=read_id(record["user_id"]),
        thread=record["thread"],
        session=record["session"],
        role=record["role"],
        author=record["author"],
        name=record.get("name"),
        text=record["content"],
        at=decode(datetime, record["created_at"]),
        stored_at=decode(datetime, record["stored_at"]),
        active=decode(bool, record["is_active"]),
        chunk=decode(int | None, record["chunk_id"]),
        hash=bytes.fromhex(record["hash"]),
        replaces=decode(int | None, record.get("replaces")),
        replaced=decode(bool, record.get("replaced", False)),
        details=canonical_details(record.get("details")),
    )


_SUMMARY: Final = {
    "id": "id",
    "user_id": "user",
    "summary_text": "text",
    "created_at": "created_at",
    "level": "level",
    "source_chunk_ids": "chunks",
    "is_active": "active",
}
"""The documents' names of a summary's fields."""


def _unpack_summary(record: Record) -> Summary:
    named = {name: record[shown] for shown, name in _SUMMARY.items()}
    found: Summary = decode(Summary, record | named | {"user": read_id(named["user"])})
    return found


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


TABLES: Final[dict[str, Table]] = {
    "users": Table(_account, lambda record: (_account(record), decode(datetime, record["created_at"]))),
    "messages": Table(lambda record: record["id"], _unpack_message),
    "summaries": Table(lambda record: record["id"], _unpack_summary),
    "sessions": Table(
        lambda record: record["session_key"],
        lambda record: SessionRow(decode(Session, record), decode(bool, record["automatic"])),
    ),
    "memories": Table(lambda record: record["id"], lambda record: decode(MemoryRecord, record)),
    "memory_versions": Table(
        lambda record: record["memory"],
        lambda record: (decode(int, record["memory"]), decode(tuple[MemoryVersion, ...], record["versions"])),
    ),
    "facts": Table(lambda record: [_whose(record), record["version"]], lambda record: decode(Facts, record)),
    "settings": Table(
        lambda record: [_whose(record), record["key"]],
        lambda record: SettingRow(*_whose(record), decode(Setting, record)),
    ),
    "forgotten": Table(
        _whose,
        lambda record: [
            ForgottenRow(*_whose(record), *each) for each in decode(tuple[Tombstone, ...], record["forgotten"])
        ],
    ),
    "extracted": Table(_whose, lambda record: (_whose(record), decode(int, record["extracted_up_to"]))),
    "chunks": Table(_whose, lambda record: (_whose(record), decode(int, record["last_chunk"]))),
    "receipts": Table(lambda record: [_whose(record), record["id"]], lambda record: decode(ContextReceipt, record)),
    "audit": Table(lambda record: record["id"], lambda record: decode(AuditEntry, record)),
    "spending": Table(
        lambda record: [record["day"], _spender(record)],
        lambda record: SpendingRow(
            decode(date, record["day"]), *(_spender(record) or ("", "")), decode(int, record["tokens"])
        ),
    ),
    "days": Table(
        lambda record: [record["policy"], record["space"], record["day"]], lambda record: decode(DayRow, record)
    ),
    "vectors": Table(
        lambda record: [record["embedder"], record["message"]],
        lambda record: (
            decode(str, record["embedder"]),
            decode(int, record["message"]),
            decode(bytes, record["vector"]),
        ),
    ),
    "marks": Table(
        lambda record: record["mark"], lambda record: (decode(str, record["mark"]), decode(str, record["value"]))
    ),
    "numbers_given": Table(
        lambda record: record["numbered"],
        lambda record: (decode(str, record["numbered"]), decode(int, record["last_given"])),
    ),
    # Earlier versions had these tables too. Days come from the agenda; the rest is worked out again.
    "agenda": Table(lambda record: record["subject"], lambda record: decode(Entry, record), legacy=True),
    "derived": Table(
        lambda record: [_whose(record), record["kind"]], lambda record: decode(Derived, record), legacy=True
    ),
    "walks": Table(lambda record: record["policy"], lambda record: record["walked_up_to"], legacy=True),
    "embedders": Table(lambda record: record["embedder"], lambda record: record["seen_up_to"], legacy=True),
    "note_vectors": Table(
        lambda record: [record["embedder"], record["note"]], lambda record: record["vector"], legacy=True
    ),
}


def key_of(key: object) -> str:
    """Return a key as it stands in a journal, as one text."""
    return json.dumps(key, ensure_ascii=False, sort_keys=True)


def put(records: Records, name: str, record: Record) -> tuple[Any, bool]:
    """Put the value of a record into its table, and return it, and whether there was none with its key.

    Raises UnknownRecord if it is none of that table.
    """
    table = TABLES.get(name)
    if table is None:
        raise UnknownRecord(f"there is no table {name!r}")
    try:
        key, value = key_of(table.key(record)), table.read(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnknownRecord(f"a record of {name} cannot be read: {error!r}") from error
    there = records.setdefault(name, {})
    is_new = key not in there
    there[key] = value
    return value, is_new


class Found:
    """What files hold, as rows of a dump."""

    def __init__(self, records: Records) -> None:
        def every(name: str) -> list[Any]:
            return list(records.get(name, {}).values())

        def by_number(name: str) -> dict[int, Any]:
            return {each.id: each for each in sorted(every(name), key=attrgetter("id"))}

        self.messages: dict[int, Message] = {
            each.seq: each for each in sorted(every("messages"), key=attrgetter("seq"))
        }
        self.summaries: dict[int, Summary] = by_number("summaries")
        self.memories: dict[int, MemoryRecord] = by_number("memories")
        self.versions: dict[int, tuple[MemoryVersion, ...]] = dict(every("memory_versions"))
        self.users: dict[Name, datetime] = dict(every("users"))
        self.extracted: dict[Name, int] = dict(every("extracted"))
        self.chunks: dict[Name, int] = dict(every("chunks"))
        self.audit: list[AuditEntry] = list(by_number("audit").values())
        self.vectors: list[tuple[str, int, bytes]] = every("vectors")
        self.marks: dict[str, str] = dict(every("marks"))
        self.given: dict[str, int] = dict(every("numbers_given"))
        self.sessions: list[SessionRow] = every("sessions")
        self.plain: list[Row] = [
            *sorted(every("facts"), key=lambda each: (each.space, each.user, each.version)),
            *(row for rows in every("forgotten") for row in rows),
            *every("settings"),
        ]
        self._days: list[Row] = every("days")
        self._days += [
            DayRow(it.subject.policy, it.subject.space, it.subject.day, it.done_at, it.done_seq)
            for it in every("agenda")
            if it.subject.day and it.done_at is not None
        ]
        self._after_days: list[Row] = [*every("spending"), *by_number("receipts").values()]

    def add_newer(self, rows: Iterable[Row], given: Mapping[str, int], *, others: bool) -> None:
        """Add the rows of a database whose numbers came after those that were given out up to some moment.

        With `others`, also facts, settings and requests to forget: of two, the newer one counts.
        """
        for row in rows:
            match row:
                case Message() if row.seq > given.get("log", 0):
                    self.messages.setdefault(row.seq, row)
                case SummaryRow(summary) if summary.id > given.get("summaries", 0):
                    self.summaries.setdefault(summary.id, summary)
                case MemoryRow(memory) if memory.id > given.get("memories", 0):
                    self.memories.setdefault(memory.id, memory)
                    self.versions.setdefault(memory.id, row.versions)
                case Facts() | SettingRow() | ForgottenRow() if others:
                    self.plain.append(row)

    def rows(self) -> Iterator[Row]:
        """Return all rows in the order of a dump."""
        messages = self.messages
        yield from messages.values()
        yield from self.sessions
        archives: dict[tuple[str, str, int], list[int]] = {}
        for each in messages.values():
            if each.chunk is not None:
                archives.setdefault((each.space, each.user, each.chunk), []).append(each.seq)
        for summary in self.summaries.values():
            own = summary.reach == "chunks" and summary.level == 1 and not summary.rolled_back
            archive = archives.get((summary.space, summary.user, summary.chunks[0]), ()) if own else ()
            yield SummaryRow(summary, tuple(archive))
        for memory in self.memories.values():
            yield MemoryRow(memory, self.versions.get(memory.id, ()))
        yield from sorted(self.plain, key=lambda row: (Facts, ForgottenRow, SettingRow).index(type(row)))
        looked = Counter(
            (each.space, each.user)
            for each in messages.values()
            if each.seq <= self.extracted.get((each.space, each.user), 0)
        )
        for who, created in self.users.items():
            yield UserRow(*who, created, self.chunks.get(who, 0), self.extracted.get(who, 0), looked[who])
        yield from self._days
        yield from self._after_days
        yield from self.audit
        for embedder, seq, value in self.vectors:
            if seq in messages:
                yield VectorOf(embedder, messages[seq].space, seq, value)
