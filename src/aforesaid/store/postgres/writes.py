"""The writes of rules, in PostgreSQL. They are sent with the next question, or at the end of the transaction."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.scope import Scope
from aforesaid.store import records
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.hashed import content_hash
from aforesaid.store.operations import performers
from aforesaid.store.postgres import erasing
from aforesaid.store.postgres.note_search import embed_again
from aforesaid.store.postgres.packages import HalfVector
from aforesaid.store.postgres.queries import insert_rows
from aforesaid.store.postgres.write_transaction import WriteTransaction
from aforesaid.store.rules import writes
from aforesaid.store.sql import writes as in_sql

_SESSION: Final = CHECKSUMS.update(
    "session",
    "space = $1 AND name = $3 AND md5(thread) = md5($2) AND thread = $2",
    automatic="$4",
    timeout="$5",
    opened_by="$6",
)
_TEXT: Final = "SELECT text FROM log WHERE space = $1 AND seq = $2"
_VECTOR: Final = """
INSERT INTO meaning (space, seq, embedder, owner, content, value)
SELECT space, seq, $3, owner, $4, $5 FROM log WHERE space = $1 AND seq = $2
ON CONFLICT DO NOTHING RETURNING 1
"""
_ENTRIES: Final = insert_rows(
    "agenda",
    ", ".join(f"{name} {column.type}" for name, column in CHECKSUMS.columns["agenda"].items() if name != "space"),
    CHECKSUMS.replacing("agenda", "space", "policy", "owner", "thread", "day", derived=True),
)
_TOKENS: Final = CHECKSUMS.insert(
    "spending",
    ("space", "day", "owner", "tokens"),
    f"""
    ON CONFLICT (space, day, owner)
    DO UPDATE SET {CHECKSUMS.setting("spending", tokens="spending.tokens + excluded.tokens")}
    """,
)


def _describe_session(transaction: WriteTransaction, write: writes.DescribeSession) -> None:
    session = write.row.session
    opener = transaction.person(session.space, session.user, microseconds(session.started_at, "the time"))
    timeout = round(session.timeout.total_seconds() * 1_000_000)
    transaction.later(_SESSION, session.space, session.thread, session.id, write.row.automatic, timeout, opener)


async def _put_vector(transaction: WriteTransaction, write: writes.PutVector) -> bool:
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    row = write.row
    text = await transaction.queries.value(_TEXT, row.space, row.seq)
    value = HalfVector(np.frombuffer(row.value, dtype=np.float16))
    return bool(
        await transaction.queries.rows(_VECTOR, row.space, row.seq, row.embedder, content_hash(text or ""), value)
    )


def _put_memory(transaction: WriteTransaction, write: writes.PutMemoryRow) -> None:
    memory = write.memory
    in_sql.put_memory(transaction, memory)
    if memory.text != write.before:
        embed_again(transaction, Scope.of(memory.user, memory.space), memory.id)


def _put_entries(transaction: WriteTransaction, write: writes.PutEntries) -> None:
    values = [records.entry_values(entry) for entry in write.entries]
    transaction.later_rows(_ENTRIES, [(space, policy, *others) for policy, space, *others in values])


def _add_tokens(transaction: WriteTransaction, write: writes.AddTokens) -> None:
    transaction.later(_TOKENS, write.space, write.day.isoformat(), write.user or "", write.tokens)


WRITES: Final = {**in_sql.WRITES, **performers(writes.Write, globals(), vars(erasing))}
