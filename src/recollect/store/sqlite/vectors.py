"""Vectors in the file, and the matrices that are kept of them in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import apsw

from recollect.domain.change import AddVectors
from recollect.domain.scope import Scope
from recollect.domain.vector import Similar, Unembedded
from recollect.domain.words import Within
from recollect.store.matrix import Matrix
from recollect.store.sqlite import rows
from recollect.store.sqlite.reads import inside
from recollect.store.sqlite.unit import Unit

if TYPE_CHECKING:
    from recollect.store.contract import Vector

CACHE_BYTES: Final = 256 * 1024 * 1024
"""Matrices take at most so much memory; those used longest ago go first. They are made again from the file."""

_NEW_EMBEDDER: Final = "INSERT INTO embedder (name, dimensions) VALUES (?, ?) ON CONFLICT DO NOTHING"
_SEEN: Final = "UPDATE embedder SET up_to = max(up_to, ?) WHERE name = ?"
_ADD: Final = """
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
_OF_OWNER: Final = "SELECT n, seq, value FROM vector WHERE embedder = ? AND n > ? AND owner = ?"
_OF_SCOPE: Final = """
SELECT v.n, v.seq, v.value FROM log JOIN vector v ON v.seq = log.seq AND v.embedder = ? AND v.n > ? WHERE true
"""


def add(unit: Unit, step: AddVectors) -> None:
    """Store vectors, and how far the embedder has come."""
    dimensions = len(step.rows[0].value) // 2 if step.rows else 0
    unit.connection.execute(_NEW_EMBEDDER, (step.embedder, dimensions))
    unit.connection.executemany(
        _ADD, [(step.embedder, row.seq, content_hash(row.text), row.value) for row in step.rows]
    )
    unit.connection.execute(_SEEN, (step.up_to, step.embedder))


def unembedded(connection: apsw.Connection, embedder: str, limit: int) -> list[Unembedded]:
    """Return the oldest messages that an embedder has not seen, with the vectors of equal texts."""
    return [
        Unembedded(seq, text, connection.execute(_KNOWN, (embedder, content_hash(text), text)).get)
        for seq, text in rows.every(connection.execute(_DUE, (embedder, limit)))
    ]


def content_hash(text: str) -> int:
    """Return a number by which equal texts are found."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


class Matrices:
    """The matrices of the scopes that were searched last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, tuple[int, ...]], tuple[Matrix, int]] = OrderedDict()

    def similar(
        self,
        connection: apsw.Connection,
        scope: Scope,
        embedder: str,
        vector: Vector,
        within: Within,
        limit: int,
        also: Sequence[int],
    ) -> Similar | None:
        """Return the messages of the scope most similar to a vector."""
        condition, values = inside(connection, scope, within)
        number = connection.execute("SELECT id FROM embedder WHERE name = ?", (embedder,)).get
        if number is None:
            return None
        key = embedder, condition, values
        with self._lock:
            matrix, seen = self._kept.pop(key, (Matrix(), 0))
            # What is new since, in the order in which it was embedded: late vectors of old messages come too.
            query = _OF_OWNER if within == "user" else f"{_OF_SCOPE} AND {condition}"
            fresh = rows.every(connection.execute(f"{query} ORDER BY 1", (number, seen, *values)))
            matrix.extend((seq, value) for _, seq, value in fresh)
            self._kept[key] = matrix, fresh[-1][0] if fresh else seen
            self._make_room()
            return matrix.similar(vector, limit, also)

    def _make_room(self) -> None:
        total = sum(matrix.size for matrix, _ in self._kept.values())
        while total > CACHE_BYTES and len(self._kept) > 1:
            _, (matrix, _) = self._kept.popitem(last=False)
            total -= matrix.size
