"""The rows of a dump as records that people can read, with the documents' names, and back."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final, TypeAlias

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
Records: TypeAlias = dict[str, dict[str, Record]]
"""Records by table, and in it by their key as JSON: a later one takes the place of an earlier one."""

_SAFE_NUMBER: Final = 2**53
"""Larger numbers are not the same to every program that reads JSON."""
NUMBERED: Final = {"log": "log", "summaries": "summary", "memories": "memory", "audit": "audit"}
"""Tables of the database by the names under which files have the last number that they gave out."""


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


@dataclass(slots=True)
class Content:
    """Everything that a store holds at one moment, to be written down."""

    users: dict[Name, UserRow] = field(default_factory=dict)
    records: dict[Name | None, dict[str, list[Record]]] = field(default_factory=lambda: defaultdict(dict))
    """The records of each user by table; those of nobody in particular under None."""
    messages: dict[Name, list[Message]] = field(default_factory=lambda: defaultdict(list))
    histories: dict[Name, Summary] = field(default_factory=dict)
    """The newest analysis of each user's history."""
    tables: dict[str, list[tuple[Name | None, Record]]] = field(default_factory=lambda: {name: [] for name in TABLES})

    def finish(self, marks: Mapping[str, str], given: Mapping[str, int]) -> None:
        """Add what is no part of a dump, and sort everything by its owner."""
        self.tables["marks"] = [(None, {"mark": name, "value": value}) for name, value in marks.items()]
        self.tables["numbers_given"] = [
            (None, {"numbered": shown, "last_given": given[table]})
            for shown, table in NUMBERED.items()
            if table in given
        ]
        for table, found in self.tables.items():
            for owner, record in found:
                # What belongs to somebody without an account is written down with what is nobody's.
                mine = self.records[owner if owner in self.users else None]
                mine.setdefault(table, []).append(record)

    def add(self, row: Row) -> None:
        """Add a row of a dump."""
        put = self.tables
        match row:
            case Message():
                self.messages[row.space, row.user].append(row)
                put["messages"].append(((row.space, row.user), pack_message(row)))
            case SessionRow():
                named = {"session_key": len(put["sessions"]) + 1, "automatic": row.automatic, **encode(row.session)}
                put["sessions"].append(((row.session.space, row.session.user), named))
            case SummaryRow():
                self._add_summary(row.summary)
            case MemoryRow():
                owner = row.memory.space, row.memory.user
                put["memories"].append((owner, encode(row.memory)))
                if row.versions:
                    put["memory_versions"].append((owner, {"memory": row.memory.id, "versions": encode(row.versions)}))
            case ForgottenRow():
                self._add_forgotten((row.space, row.user), row)
            case SettingRow():
                put["settings"].append(((row.space, row.user), _named(row) | encode(row.setting)))
            case UserRow():
                self._add_user(row)
            case DayRow():
                put["days"].append((None, encode(row)))
            case SpendingRow():
                whose = _named(row) if row.user else {}
                record = {"day": row.day.isoformat(), **whose, "tokens": row.tokens}
                put["spending"].append(((row.space, row.user) if row.user else None, record))
            case VectorOf():
                self._add_vector(row)
            case ContextReceipt() | AuditEntry() | Facts():
                table = {ContextReceipt: "receipts", AuditEntry: "audit", Facts: "facts"}[type(row)]
                put[table].append(((row.space, row.user), encode(row)))
            case _:
                raise TypeError(f"{type(row).__name__} is no row of a dump")

    def _add_user(self, row: UserRow) -> None:
        owner = row.space, row.user
        self.users[owner] = row
        record = {"user_id": shown_id(row.user), "space": row.space, "created_at": row.created_at.isoformat()}
        self.tables["users"].append((owner, record))
        for table, name, value in (
            ("extracted", "extracted_up_to", row.extracted),
            ("chunks", "last_chunk", row.last_chunk),
        ):
            if value:
                self.tables[table].append((owner, _named(row) | {name: value}))

    def _add_summary(self, summary: Summary) -> None:
        owner = summary.space, summary.user
        rest: Record = encode(summary)
        documented: Record = {
            "id": summary.id,
            "user_id": shown_id(rest.pop("user")),
            "summary_text": rest.pop("text"),
            "created_at": rest.pop("created_at"),
            "level": rest.pop("level"),
            "source_chunk_ids": rest.pop("chunks"),
            "is_active": rest.pop("active"),
        }
        self.tables["summaries"].append((owner, documented | rest))
        if summary.active and summary.kind == "history":
            self.histories[owner] = summary

    def _add_forgotten(self, owner: Name, row: ForgottenRow) -> None:
        record = self._forgotten.get(owner)
        if record is None:
            record = self._forgotten[owner] = _named(row) | {"forgotten": []}
            self.tables["forgotten"].append((owner, record))
        record["forgotten"].append({"words": row.words, "up_to": row.up_to})

    def _add_vector(self, row: VectorOf) -> None:
        owner = self._owners.get(row.seq)
        record = {"embedder": row.embedder, "message": row.seq, "vector": encode(row.value)}
        self.tables["vectors"].append((owner, record))

    @property
    def _owners(self) -> dict[int, Name]:
        # Vectors come last: all messages are there.
        if not self._owner_of:
            self._owner_of = {each.seq: owner for owner, said in self.messages.items() for each in said}
        return self._owner_of

    _owner_of: dict[int, Name] = field(default_factory=dict)
    _forgotten: dict[Name, Record] = field(default_factory=dict)


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


def _unpack_summary(record: Record) -> Summary:
    given = dict(record)
    renamed = {
        "user": read_id(given.pop("user_id")),
        "text": given.pop("summary_text"),
        "chunks": given.pop("source_chunk_ids"),
        "active": given.pop("is_active"),
    }
    found: Summary = decode(Summary, given | renamed)
    return found


def _whose(record: Record) -> Name:
    return decode(str, record["space"]), decode(str, record["user"])


def _account(record: Record) -> Name:
    return decode(str, record["space"]), read_id(record["user_id"])


def _spender(record: Record) -> Name | None:
    return _whose(record) if "user" in record else None


@dataclass(frozen=True, slots=True)
class Table:
    """How the records of a table are told apart and read."""

    key: Callable[[Record], Any]
    read: Callable[[Record], Any]


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
    "agenda": Table(lambda record: record["subject"], lambda record: decode(Entry, record)),
    "derived": Table(lambda record: [_whose(record), record["kind"]], lambda record: decode(Derived, record)),
    "walks": Table(lambda record: record["policy"], lambda record: record["walked_up_to"]),
    "embedders": Table(lambda record: record["embedder"], lambda record: record["seen_up_to"]),
    "note_vectors": Table(lambda record: [record["embedder"], record["note"]], lambda record: record["vector"]),
}


def key_of(key: object) -> str:
    """Return a key as it stands in a journal, as one text."""
    return json.dumps(key, ensure_ascii=False, sort_keys=True)


def put(records: Records, name: str, record: Record) -> None:
    """Put a record into its table. Raises UnknownRecord if it is none of that table."""
    table = TABLES.get(name)
    if table is None:
        raise UnknownRecord(f"there is no table {name!r}")
    try:
        key = key_of(table.key(record))
        table.read(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnknownRecord(f"a record of {name} cannot be read: {error!r}") from error
    records.setdefault(name, {})[key] = record


class Found:
    """What files hold, as rows of a dump."""

    def __init__(self, records: Records) -> None:
        def every(name: str) -> list[Any]:
            return [TABLES[name].read(record) for record in records.get(name, {}).values()]

        messages: list[Message] = every("messages")
        self.messages = {each.seq: each for each in sorted(messages, key=lambda each: each.seq)}
        self.sessions: list[SessionRow] = every("sessions")
        self.summaries: dict[int, Summary] = {each.id: each for each in sorted(every("summaries"), key=_number)}
        self.memories: dict[int, MemoryRecord] = {each.id: each for each in sorted(every("memories"), key=_number)}
        self.versions: dict[int, tuple[MemoryVersion, ...]] = dict(every("memory_versions"))
        self.users: dict[Name, datetime] = dict(every("users"))
        self.extracted: dict[Name, int] = dict(every("extracted"))
        self.chunks: dict[Name, int] = dict(every("chunks"))
        self.audit: list[AuditEntry] = sorted(every("audit"), key=_number)
        self.vectors: list[tuple[str, int, bytes]] = every("vectors")
        self.marks: dict[str, str] = dict(every("marks"))
        self.given: dict[str, int] = dict(every("numbers_given"))
        self._plain: list[Row] = [
            *sorted(every("facts"), key=lambda each: (each.space, each.user, each.version)),
            *(row for rows in every("forgotten") for row in rows),
            *every("settings"),
        ]
        self._days: list[DayRow] = every("days")
        entries: list[Entry] = every("agenda")
        self._days += [
            DayRow(it.subject.policy, it.subject.space, it.subject.day, it.done_at, it.done_seq)
            for it in entries
            if it.subject.day and it.done_at is not None
        ]
        self._after_days: list[Row] = [*every("spending"), *sorted(every("receipts"), key=lambda each: each.id)]

    def rows(self) -> Iterator[Row]:
        """Return all rows in the order of a dump. What refers to a record that is not there goes on without it."""
        messages, memories = self.messages, self.memories
        for message in messages.values():
            yield message if message.replaces in messages else replace(message, replaces=None)
        yield from self.sessions
        archives: dict[tuple[str, str, int], list[int]] = {}
        for each in messages.values():
            if each.chunk is not None:
                archives.setdefault((each.space, each.user, each.chunk), []).append(each.seq)
        for summary in self.summaries.values():
            own = summary.reach == "chunks" and summary.level == 1 and not summary.rolled_back
            archive = archives.get((summary.space, summary.user, summary.chunks[0]), ()) if own else ()
            yield SummaryRow(summary, tuple(archive))
        for memory in memories.values():
            sources = tuple(seq for seq in memory.sources if seq in messages)
            versions = tuple(
                replace(each, before=replace(self._parted(each.before), sources=sources))
                for each in self.versions.get(memory.id, ())
            )
            yield MemoryRow(replace(self._parted(memory), sources=sources), versions)
        yield from self._plain
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

    def _parted(self, memory: MemoryRecord) -> MemoryRecord:
        lost = memory.superseded_by is not None and memory.superseded_by not in self.memories
        return replace(memory, superseded_by=None) if lost else memory


def _number(row: Summary | MemoryRecord | AuditEntry) -> int:
    return row.id
