"""The writes of rules, in SQLite."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.note import NoteKey
from aforesaid.store import records
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.hashed import content_hash
from aforesaid.store.operations import performers
from aforesaid.store.rules import writes
from aforesaid.store.sql import writes as in_sql
from aforesaid.store.sqlite import erasing, note_search, vectors
from aforesaid.store.sqlite.names import find_thread
from aforesaid.store.sqlite.unit import Unit

_SESSION: Final = CHECKSUMS.update("session", "thread = $1 AND name = $2", automatic="$3", timeout="$4", opened_by="$5")
_TOKENS: Final = CHECKSUMS.insert(
    "spending",
    ("day", "space", "user", "tokens"),
    f"ON CONFLICT DO UPDATE SET {CHECKSUMS.setting('spending', tokens='spending.tokens + excluded.tokens')}",
)
_ENTRY: Final = CHECKSUMS.insert(
    "agenda", records.ENTRY, CHECKSUMS.replacing("agenda", *records.ENTRY[:5], derived=True)
)


def _describe_session(unit: Unit, write: writes.DescribeSession) -> None:
    session = write.row.session
    thread = find_thread(unit.connection, session.space, session.thread)
    if thread is not None:
        opened_by = unit.names.author(session.space, session.user, microseconds(session.started_at, "the time"))
        timeout = round(session.timeout.total_seconds() * 1_000_000)
        unit.connection.execute(_SESSION, (thread, session.id, write.row.automatic, timeout, opened_by))
        unit.names.sessions.pop(thread, None)


def _put_vector(unit: Unit, write: writes.PutVector) -> bool:
    row = write.row
    text = unit.connection.execute("SELECT text FROM log WHERE seq = ?", (row.seq,)).get
    unit.connection.execute(vectors.NEW_EMBEDDER, (row.embedder, len(row.value) // 2))
    unit.connection.execute(vectors.ADD, (row.embedder, row.seq, content_hash(text or ""), row.value))
    return bool(unit.connection.changes())


def _add_summary(unit: Unit, write: writes.AddSummary) -> int:
    number, summary = in_sql.add_summary(unit, write), write.summary
    note_search.index(unit, unit.owner(summary.space, summary.user), NoteKey("summary", number), summary.text)
    return number


def _add_memory(unit: Unit, write: writes.AddMemoryRow) -> int:
    number, memory = in_sql.add_memory(unit, write), write.memory
    note_search.index(unit, unit.owner(memory.space, memory.user), NoteKey("memory", number), memory.text)
    return number


def _put_memory(unit: Unit, write: writes.PutMemoryRow) -> None:
    memory = write.memory
    in_sql.put_memory(unit, memory)
    if memory.text != write.before:
        owner = unit.owner(memory.space, memory.user)
        note_search.index_again(unit, owner, NoteKey("memory", memory.id), write.before, memory.text)


def _put_entries(unit: Unit, write: writes.PutEntries) -> None:
    unit.connection.executemany(_ENTRY, [records.entry_values(entry) for entry in write.entries])


def _add_tokens(unit: Unit, write: writes.AddTokens) -> None:
    payer = ("", "") if write.user is None else (write.space, write.user)
    unit.connection.execute(_TOKENS, (write.day.isoformat(), *payer, write.tokens))


WRITES: Final = {**in_sql.WRITES, **performers(writes.Write, globals(), vars(erasing))}
