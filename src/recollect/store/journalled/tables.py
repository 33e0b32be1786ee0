"""How each table of the state is written down: as records that people can read, with the documents' names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from recollect.domain.agenda import Entry as Planned
from recollect.domain.agenda import Subject
from recollect.domain.memory import Derived, Facts, Memory, MemoryVersion, Tombstone
from recollect.domain.message import Message, message_id
from recollect.domain.note import NoteKey
from recollect.domain.report import AuditEntry, Setting
from recollect.domain.session import Session
from recollect.domain.summary import Summary
from recollect.store.ephemeral.numbers import Name
from recollect.store.ephemeral.state import Entry, KeptSession, State
from recollect.store.journalled.codec import decode, encode
from recollect.store.journalled.lines import Record

_SAFE_NUMBER: Final = 2**53
"""Larger numbers are not the same to every program that reads JSON."""


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
    owner: Callable[[State, Any, Any], Name | None] = lambda _, key, __: key[0]
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


def _named(name: Name) -> Record:
    return {"space": name[0], "user": name[1]}


def _name(record: Record) -> Name:
    return decode(str, record["space"]), decode(str, record["user"])


def _its_owner(_: State, __: object, value: Any) -> Name:  # noqa: ANN401 - everything that has a space and a user
    return value.space, value.user


def _nobody(*_: object) -> None:
    return None


def _owner_of_message(state: State, key: tuple[str, int], _: bytes) -> Name | None:
    entry = state.log.get(key[1])
    return None if entry is None else entry.owner


def _owner_of_note(state: State, key: tuple[str, NoteKey], _: bytes) -> Name | None:
    kind, number = key[1]
    note = state.memories.get(number) if kind == "memory" else state.summaries.get(number)
    return None if note is None else (note.space, note.user)


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
        owner=lambda _, name, __: name,
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
    Table(
        "memories",
        "memories",
        lambda _, memory: encode(memory),
        lambda record: ((memory := decode(Memory, record)).id, memory),
        key=int,
        owner=_its_owner,
    ),
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
    Table(
        "forgotten",
        "tombstones",
        lambda name, stones: {**_named(name), "forgotten": encode(stones)},
        lambda record: (_name(record), decode(tuple[Tombstone, ...], record["forgotten"])),
        key=Name,
        owner=lambda _, name, __: name,
    ),
    Table(
        "derived",
        "derived",
        lambda key, derived: {**_named(key[0]), "kind": key[1], **encode(derived)},
        lambda record: ((_name(record), decode(str, record["kind"])), decode(Derived, record)),
        key=tuple[Name, str],
    ),
    Table(
        "extracted",
        "extracted",
        lambda name, up_to: {**_named(name), "extracted_up_to": up_to},
        lambda record: (_name(record), decode(int, record["extracted_up_to"])),
        key=Name,
        owner=lambda _, name, __: name,
    ),
    Table(
        "chunks",
        "chunks",
        lambda name, last: {**_named(name), "last_chunk": last},
        lambda record: (_name(record), decode(int, record["last_chunk"])),
        key=Name,
        owner=lambda _, name, __: name,
    ),
    Table(
        "audit",
        "audit",
        lambda _, entry: encode(entry),
        lambda record: ((entry := decode(AuditEntry, record)).id, entry),
        key=int,
        owner=_its_owner,
    ),
    Table(
        "walks",
        "walks",
        lambda policy, up_to: {"policy": policy, "walked_up_to": up_to},
        lambda record: (decode(str, record["policy"]), decode(int, record["walked_up_to"])),
        key=str,
        owner=_nobody,
    ),
    Table(
        "agenda",
        "agenda",
        lambda _, entry: encode(entry),
        lambda record: ((entry := decode(Planned, record)).subject, entry),
        key=Subject,
        owner=_nobody,
    ),
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
    Table(
        "embedders",
        "seen",
        lambda embedder, up_to: {"embedder": embedder, "seen_up_to": up_to},
        lambda record: (decode(str, record["embedder"]), decode(int, record["seen_up_to"])),
        key=str,
        owner=_nobody,
    ),
    Table(
        "vectors",
        "vectors",
        lambda key, value: {"embedder": key[0], "message": key[1], "vector": encode(value)},
        lambda record: (
            (decode(str, record["embedder"]), decode(int, record["message"])),
            decode(bytes, record["vector"]),
        ),
        key=tuple[str, int],
        owner=_owner_of_message,
    ),
    Table(
        "note_vectors",
        "note_vectors",
        lambda key, value: {"embedder": key[0], "note": encode(key[1]), "vector": encode(value)},
        lambda record: (
            (decode(str, record["embedder"]), decode(NoteKey, record["note"])),
            decode(bytes, record["vector"]),
        ),
        key=tuple[str, NoteKey],
        owner=_owner_of_note,
    ),
    Table(
        "marks",
        "marks",
        lambda name, value: {"mark": name, "value": value},
        lambda record: (decode(str, record["mark"]), decode(str, record["value"])),
        key=str,
        owner=_nobody,
    ),
    Table(
        "numbers_given",
        "given",
        lambda table, last: {"numbered": table, "last_given": last},
        lambda record: (decode(str, record["numbered"]), decode(int, record["last_given"])),
        key=str,
        owner=_nobody,
    ),
)

DERIVED: Final = ("by_given_id", "by_time", "threads", "session_names", "embedded")
"""Tables of the state that are made of the others when files are read."""

BY_NAME: Final = {table.name: table for table in TABLES}
