"""The writes of rules, in SQLite."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.memory import NoteKey
from aforesaid.store import records
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.hashed import content_hash
from aforesaid.store.operations import performers
from aforesaid.store.rules import writes
from aforesaid.store.sql import writes as in_sql
from aforesaid.store.sqlite import erasing, note_search, vectors
from aforesaid.store.sqlite.names import find_thread
from aforesaid.store.sqlite.write_transaction import WriteTransaction

_SESSION: Final = CHECKSUMS.update("session", "thread = $1 AND name = $2", automatic="$3", timeout="$4", opened_by="$5")
_TOKENS: Final = CHECKSUMS.insert(
    "spending",
    ("day", "space", "user", "tokens"),
    f"ON CONFLICT DO UPDATE SET {CHECKSUMS.setting('spending', tokens='spending.tokens + excluded.tokens')}",
)
_ENTRY: Final = CHECKSUMS.insert(
    "agenda", records.ENTRY, CHECKSUMS.replacing("agenda", *records.ENTRY[:5], derived=True)
)


def _describe_session(transaction: WriteTransaction, write: writes.DescribeSession) -> None:
    session = write.row.session
    thread = find_thread(transaction.connection, session.space, session.thread)
    if thread is not None:
        opened_by = transaction.names.author(session.space, session.user, microseconds(session.started_at, "the time"))
        timeout = round(session.timeout.total_seconds() * 1_000_000)
        transaction.connection.execute(_SESSION, (thread, session.id, write.row.automatic, timeout, opened_by))
        transaction.names.sessions.pop(thread, None)


def _put_vector(transaction: WriteTransaction, write: writes.PutVector) -> bool:
    row = write.row
    text = transaction.connection.execute("SELECT text FROM log WHERE seq = ?", (row.seq,)).get
    transaction.connection.execute(vectors.NEW_EMBEDDER, (row.embedder, len(row.value) // 2))
    transaction.connection.execute(vectors.ADD, (row.embedder, row.seq, content_hash(text or ""), row.value))
    return bool(transaction.connection.changes())


def _add_summary(transaction: WriteTransaction, write: writes.AddSummary) -> int:
    number, summary = in_sql.add_summary(transaction, write), write.summary
    note_search.index(
        transaction, transaction.owner(summary.space, summary.user), NoteKey("summary", number), summary.text
    )
    return number


def _add_memory(transaction: WriteTransaction, write: writes.AddMemoryRow) -> int:
    number, memory = in_sql.add_memory(transaction, write), write.memory
    note_search.index(transaction, transaction.owner(memory.space, memory.user), NoteKey("memory", number), memory.text)
    return number


def _put_memory(transaction: WriteTransaction, write: writes.PutMemoryRow) -> None:
    memory = write.memory
    in_sql.put_memory(transaction, memory)
    if memory.text != write.before:
        owner = transaction.owner(memory.space, memory.user)
        note_search.index_again(transaction, owner, NoteKey("memory", memory.id), write.before, memory.text)


def _put_entries(transaction: WriteTransaction, write: writes.PutEntries) -> None:
    transaction.connection.executemany(_ENTRY, [records.entry_values(entry) for entry in write.entries])


def _add_tokens(transaction: WriteTransaction, write: writes.AddTokens) -> None:
    payer = ("", "") if write.user is None else (write.space, write.user)
    transaction.connection.execute(_TOKENS, (write.day.isoformat(), *payer, write.tokens))


WRITES: Final = {**in_sql.WRITES, **performers(writes.Write, globals(), vars(erasing))}
