"""The writes of rules, in SQLite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.note import NoteKey
from aforesaid.store import records
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.hashed import content_hash
from aforesaid.store.rules import writes
from aforesaid.store.sql import writes as in_sql
from aforesaid.store.sqlite import erasing, note_search
from aforesaid.store.sqlite.names import find_thread
from aforesaid.store.sqlite.unit import Unit

_SESSION: Final = CHECKSUMS.update("session", "thread = $1 AND name = $2", automatic="$3", timeout="$4", opened_by="$5")
_NEW_EMBEDDER: Final = "INSERT INTO embedder (name, dimensions) VALUES (?, ?) ON CONFLICT DO NOTHING"
_VECTOR: Final = """
INSERT INTO vector (embedder, owner, seq, content, value)
SELECT (SELECT id FROM embedder WHERE name = ?1), owner, seq, ?3, ?4 FROM log WHERE seq = ?2
ON CONFLICT DO NOTHING
"""
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
    unit.connection.execute(_NEW_EMBEDDER, (row.embedder, len(row.value) // 2))
    unit.connection.execute(_VECTOR, (row.embedder, row.seq, content_hash(text or ""), row.value))
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


WRITES: Final[Mapping[type[writes.Write[Any]], Callable[[Unit, Any], Any]]] = {
    **in_sql.WRITES,
    writes.DescribeSession: _describe_session,
    writes.PutVector: _put_vector,
    writes.AddSummary: _add_summary,
    writes.AddMemoryRow: _add_memory,
    writes.PutMemoryRow: _put_memory,
    writes.PutEntries: _put_entries,
    writes.AddTokens: _add_tokens,
    **erasing.WRITES,
}
