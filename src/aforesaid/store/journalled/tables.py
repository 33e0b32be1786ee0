"""How each table of the state is written down: as records that people can read, with the documents' names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from operator import attrgetter
from typing import Any, Final, TypeAlias

from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.details import canonical_details
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, NoteKey, Tombstone
from aforesaid.domain.message import Message, message_id
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Entry as Planned
from aforesaid.domain.scope import Session, Subject
from aforesaid.domain.summary import Summary
from aforesaid.store.ephemeral.state import Entry, KeptSession, Name, State
from aforesaid.store.journalled.codec import decode, encode
from aforesaid.store.journalled.layout import Record

_SAFE_NUMBER: Final = 2**53
"""Larger numbers are not the same to every program that reads JSON."""
Owner: TypeAlias = Callable[[State, Any, Any], Name | None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the state, and its records."""

    name: str
    """In files."""
    state: str
    """In the state."""
    pack: Callable[[Any, Any], Record]
    unpack: Callable[[Record], tuple[Any, Any]]
    key: Any
    """The type of its keys."""
    owner: Owner = lambda _, key, __: key[0]
    """Whose record it is; None for those of nobody in particular."""

    @property
    def numbered(self) -> bool:
        """Whether its keys are numbers, in whose order it is kept."""
        return self.key is int


def shown_id(user: str) -> int | str:
    """Return a user's id as the documents write it: platforms' numbers as numbers."""
    plain = user.isascii() and user.isdecimal() and (user == "0" or user[0] != "0")
    return int(user) if plain and int(user) < _SAFE_NUMBER else user


def read_id(shown: object) -> str:
    """Read a user's id."""
    if isinstance(shown, bool) or not isinstance(shown, int | str):
        raise TypeError(f"a user's id cannot be a {type(shown).__name__}")
    return str(shown)


def pack_message(seq: int, entry: Entry) -> Record:
    """Write a message with the documents' names, and what else is known of it after them."""
    message = entry.message
    record: Record = {
        "id": seq,
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
    if entry.given_id is not None:
        record["message_id"] = entry.given_id
    if message.replaces is not None:
        record["replaces"] = message.replaces
    if message.replaced:
        record["replaced"] = True
    if message.details is not None:
        record["details"] = json.loads(message.details)
    return record


def unpack_message(record: Record) -> tuple[int, Entry]:
    """Read a message."""
    seq, given = decode(int, record["id"]), record.get("message_id")
    texts = [record[name] for name in ("role", "content", "space", "thread", "session", "author", "hash")]
    optional = [text for text in (given, record.get("name")) if text is not None]
    if not all(isinstance(text, str) for text in (*texts, *optional)):
        raise TypeError("a text of the message is none")
    message = Message(
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
    return seq, Entry(message, given)


def _pack_summary(number: int, summary: Summary) -> Record:
    rest: Record = encode(summary)
    documented: Record = {
        "id": number,
        "user_id": shown_id(rest.pop("user")),
        "summary_text": rest.pop("text"),
        "created_at": rest.pop("created_at"),
        "level": rest.pop("level"),
        "source_chunk_ids": rest.pop("chunks"),
        "is_active": rest.pop("active"),
    }
    return documented | rest


def _unpack_summary(record: Record) -> tuple[int, Summary]:
    given = dict(record)
    renamed = {
        "user": read_id(given.pop("user_id")),
        "text": given.pop("summary_text"),
        "chunks": given.pop("source_chunk_ids"),
        "active": given.pop("is_active"),
    }
    summary = decode(Summary, given | renamed)
    return summary.id, summary


def _pack_session(_: int, kept: KeptSession) -> Record:
    return {"session_key": kept.key, "automatic": kept.automatic, **encode(kept.session)}


def _unpack_session(record: Record) -> tuple[int, KeptSession]:
    key = decode(int, record["session_key"])
    return key, KeptSession(key, decode(Session, record), decode(bool, record["automatic"]))


def _unpack_facts(record: Record) -> tuple[tuple[Name, int], Facts]:
    facts = decode(Facts, record)
    return ((facts.space, facts.user), facts.version), facts


def _unpack_receipt(record: Record) -> tuple[tuple[Name, str], ContextReceipt]:
    receipt = decode(ContextReceipt, record)
    return ((receipt.space, receipt.user), receipt.id), receipt


def _named(name: Name) -> Record:
    return {"space": name[0], "user": name[1]}


def _name(record: Record) -> Name:
    return decode(str, record["space"]), decode(str, record["user"])


def _its_owner(_: State, __: object, value: Any) -> Name:  # noqa: ANN401 - everything that has a space and a user
    return value.space, value.user


def _the_key(_: State, key: Name, __: object) -> Name:
    return key


def _nobody(*_: object) -> None:
    return None


def _owner_of_message(state: State, key: tuple[str, int], _: bytes) -> Name | None:
    entry = state.log.get(key[1])
    return None if entry is None else entry.owner


def _owner_of_note(state: State, key: tuple[str, NoteKey], _: bytes) -> Name | None:
    kind, number = key[1]
    note = state.memories.get(number) if kind == "memory" else state.summaries.get(number)
    return None if note is None else (note.space, note.user)


def _of_values(name: str, state: str, kind: Any, identity: str, key: Any, owner: Owner) -> Table:  # noqa: ANN401
    """Return a table of values that name their own key."""
    named = attrgetter(identity)
    return Table(
        name,
        state,
        lambda _, value: encode(value),
        lambda record: (named(value := decode(kind, record)), value),
        key=key,
        owner=owner,
    )


def _of_pairs(name: str, state: str, key: tuple[str, Any], value: tuple[str, Any]) -> Table:
    """Return a table of plain values under plain names, of nobody in particular; both by what files call them."""
    return Table(
        name,
        state,
        lambda one, other: {key[0]: one, value[0]: other},
        lambda record: (decode(key[1], record[key[0]]), decode(value[1], record[value[0]])),
        key=key[1],
        owner=_nobody,
    )


def _of_users(name: str, state: str, field: str, kind: Any) -> Table:  # noqa: ANN401 - as many types as tables
    """Return a table with one value for each user."""
    return Table(
        name,
        state,
        lambda user, value: {**_named(user), field: encode(value)},
        lambda record: (_name(record), decode(kind, record[field])),
        key=Name,
        owner=_the_key,
    )


def _of_vectors(name: str, subject: str, key: Any, owner: Owner) -> Table:  # noqa: ANN401
    """Return a table of vectors, each under its embedder and what it was made of."""
    return Table(
        name,
        name,
        lambda key, value: {"embedder": key[0], subject: encode(key[1]), "vector": encode(value)},
        lambda record: (decode(key, [record["embedder"], record[subject]]), decode(bytes, record["vector"])),
        key=key,
        owner=owner,
    )


TABLES: Final[tuple[Table, ...]] = (
    Table(
        "users",
        "owners",
        lambda name, at: {"user_id": shown_id(name[1]), "space": name[0], "created_at": at.isoformat()},
        lambda record: (
            (decode(str, record["space"]), read_id(record["user_id"])),
            decode(datetime, record["created_at"]),
        ),
        key=Name,
        owner=_the_key,
    ),
    Table("messages", "log", pack_message, unpack_message, key=int, owner=lambda _, __, entry: entry.owner),
    Table("summaries", "summaries", _pack_summary, _unpack_summary, key=int, owner=_its_owner),
    Table(
        "sessions",
        "sessions",
        _pack_session,
        _unpack_session,
        key=int,
        owner=lambda state, key, kept: _its_owner(state, key, kept.session),
    ),
    _of_values("memories", "memories", MemoryRecord, "id", int, _its_owner),
    Table(
        "memory_versions",
        "versions",
        lambda memory, versions: {"memory": memory, "versions": encode(versions)},
        lambda record: (decode(int, record["memory"]), decode(tuple[MemoryVersion, ...], record["versions"])),
        key=int,
        owner=lambda state, key, versions: _its_owner(state, key, versions[0].before),
    ),
    Table("facts", "facts", lambda _, facts: encode(facts), _unpack_facts, key=tuple[Name, int]),
    Table(
        "settings",
        "settings",
        lambda key, setting: {**_named(key[0]), **encode(setting)},
        lambda record: ((_name(record), (setting := decode(Setting, record)).key), setting),
        key=tuple[Name, str],
    ),
    _of_users("forgotten", "tombstones", "forgotten", tuple[Tombstone, ...]),
    Table(
        "derived",
        "derived",
        lambda key, derived: {**_named(key[0]), "kind": key[1], **encode(derived)},
        lambda record: ((_name(record), decode(str, record["kind"])), decode(Derived, record)),
        key=tuple[Name, str],
    ),
    _of_users("extracted", "extracted", "extracted_up_to", int),
    _of_users("chunks", "chunks", "last_chunk", int),
    Table("receipts", "receipts", lambda _, receipt: encode(receipt), _unpack_receipt, key=tuple[Name, str]),
    _of_values("audit", "audit", AuditEntry, "id", int, _its_owner),
    _of_pairs("walks", "walks", ("policy", str), ("walked_up_to", int)),
    _of_values("agenda", "agenda", Planned, "subject", Subject, _nobody),
    Table(
        "spending",
        "spending",
        lambda key, tokens: {"day": key[0].isoformat(), **({} if key[1] is None else _named(key[1])), "tokens": tokens},
        lambda record: (
            (decode(date, record["day"]), _name(record) if "user" in record else None),
            decode(int, record["tokens"]),
        ),
        key=tuple[date, Name | None],
        owner=lambda _, key, __: key[1],
    ),
    _of_pairs("embedders", "seen", ("embedder", str), ("seen_up_to", int)),
    _of_vectors("vectors", "message", tuple[str, int], _owner_of_message),
    _of_vectors("note_vectors", "note", tuple[str, NoteKey], _owner_of_note),
    _of_pairs("marks", "marks", ("mark", str), ("value", str)),
    _of_pairs("numbers_given", "given", ("numbered", str), ("last_given", int)),
)

DERIVED: Final = ("by_given_id", "by_time", "threads", "session_names", "embedded")
"""Tables of the state that are made of the others when files are read."""

BY_NAME: Final = {table.name: table for table in TABLES}
