"""Vectors in the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import apsw

from aforesaid.domain.change import AddVectors
from aforesaid.domain.hit import Unembedded
from aforesaid.domain.scope import Scope
from aforesaid.store import questions
from aforesaid.store.dialects import for_sqlite
from aforesaid.store.hashed import content_hash
from aforesaid.store.sql.messages import inside
from aforesaid.store.sql.statements import Conditions
from aforesaid.store.sql.tables import USER
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.write_transaction import WriteTransaction

NEW_EMBEDDER: Final = "INSERT INTO embedder (name, dimensions) VALUES (?, ?) ON CONFLICT DO NOTHING"
_SEEN: Final = "UPDATE embedder SET up_to = max(up_to, ?) WHERE name = ?"
ADD: Final = """
INSERT INTO vector (embedder, owner, seq, content, value)
SELECT (SELECT id FROM embedder WHERE name = ?1), owner, seq, ?3, ?4 FROM log WHERE seq = ?2
ON CONFLICT DO NOTHING
"""
_DUE: Final = """
SELECT seq, text FROM log WHERE seq > coalesce((SELECT up_to FROM embedder WHERE name = ?), 0) ORDER BY seq LIMIT ?
"""
_KNOWN: Final = """
SELECT v.value FROM vector v JOIN log ON log.seq = v.seq
 WHERE v.embedder = (SELECT id FROM embedder WHERE name = ?) AND v.content = ? AND log.text = ? LIMIT 1
"""
_OF_EMBEDDER: Final = """
v.embedder = (SELECT id FROM embedder WHERE name = {0}) AND v.seq IN (SELECT value FROM json_each({1}))
"""


def add(transaction: WriteTransaction, step: AddVectors) -> None:
    """Store vectors, and how far the embedder has come."""
    dimensions = max((len(row.value) for row in step.rows), default=0) // 2
    transaction.connection.execute(NEW_EMBEDDER, (step.embedder, dimensions))
    transaction.connection.executemany(
        ADD, [(step.embedder, row.seq, content_hash(row.text), row.value) for row in step.rows if row.value]
    )
    transaction.connection.execute(_SEEN, (step.up_to, step.embedder))


def unembedded(connection: apsw.Connection, question: questions.UnembeddedMessages) -> list[Unembedded]:
    """Return the oldest messages that an embedder has not seen, with the vectors of equal texts."""
    return [
        Unembedded(seq, text, connection.execute(_KNOWN, (question.embedder, content_hash(text), text)).get)
        for seq, text in rows.every(connection.execute(_DUE, (question.embedder, question.limit)))
    ]


def of_tokens(connection: apsw.Connection, question: questions.TokenVectors) -> dict[int, bytes]:
    """Return the token vectors of those of the messages that the scope holds and that have some."""
    if question.within == "user":
        return _of_user(connection, question.scope, question.encoder, question.seqs)
    limits = rows.answered(connection, inside(question.scope, question.within))
    limits.add(_OF_EMBEDDER, question.encoder, json.dumps(list(question.seqs)))
    query = for_sqlite(f"SELECT v.seq, v.value FROM vector v CROSS JOIN log ON log.seq = v.seq WHERE {limits}")
    return dict(rows.every(connection.execute(query, limits.values)))


def of_messages(connection: apsw.Connection, question: questions.MessageVectors) -> dict[int, bytes]:
    """Return the vectors of those of the messages that are the user's and have one."""
    return _of_user(connection, question.scope, question.embedder, question.seqs)


def _of_user(connection: apsw.Connection, scope: Scope, embedder: str, seqs: Sequence[int]) -> dict[int, bytes]:
    limits = Conditions(f"+v.owner = {USER}", *scope[:2])
    limits.add(_OF_EMBEDDER, embedder, json.dumps(list(seqs)))
    query = for_sqlite(f"SELECT v.seq, v.value FROM vector v WHERE {limits}")
    return dict(rows.every(connection.execute(query, limits.values)))
