"""SQLite alone: its full-text index, and that index with the vectors of sqlite-vec."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from peers.contract import About, Said, SearchOnly
from peers.vectors import DIMENSIONS, Vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

RRF = 60
"""The constant of reciprocal rank fusion, as in the example of sqlite-vec's author."""
CANDIDATES = 100
"""Number of hits of each search that are fused."""
WORD = re.compile(r"\w+")


class Fts5(SearchOnly):
    """The full-text index that comes with Python."""

    about = About(
        "fts5",
        "SQLite FTS5",
        "",
        "import sqlite3",
        "an index, no memory: a table of texts, `porter unicode61`, bm25, the words of the question joined by OR; no "
        "meaning, and no words in languages without spaces",
        no_context="none",
        memory=False,
        version=sqlite3.sqlite_version,
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the file."""
        self._vectors = vectors
        self._connection = sqlite3.connect(folder / "messages.db", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS messages USING fts5(id UNINDEXED, role UNINDEXED, text, "
            "tokenize = 'porter unicode61')"
        )

    async def add(self, said: Said) -> None:
        """Store one message, and commit."""
        await self.add_many([said])

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one transaction."""
        with self._transaction():
            self._insert(said)

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:  # noqa: ARG002 - it has no time
        """Search by words."""
        return [message for message, _ in self._by_words(question, limit)]

    async def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            yield

    def _insert(self, said: Sequence[Said]) -> None:
        self._connection.executemany(
            "INSERT INTO messages (id, role, text) VALUES (?, ?, ?)", [(each.id, each.role, each.text) for each in said]
        )

    def _by_words(self, question: str, limit: int) -> list[tuple[str, int]]:
        words = " OR ".join(f'"{word}"' for word in WORD.findall(question))
        if not words:
            return []
        asked = "SELECT id, rowid FROM messages WHERE messages MATCH ? ORDER BY rank LIMIT ?"
        return self._connection.execute(asked, (words, limit)).fetchall()


class Hybrid(Fts5):
    """The full-text index and the vectors in one file, fused by rank."""

    about = About(
        "sqlite-vec",
        "SQLite FTS5 + sqlite-vec",
        "sqlite-vec",
        "import sqlite3, sqlite_vec",
        f"an index, no memory: the same table and the vectors beside it; the best {CANDIDATES} by bm25 and by exact "
        f"cosine, joined by reciprocal rank fusion ({RRF})",
        no_context="none",
        memory=False,
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the file."""
        import sqlite_vec  # noqa: PLC0415 - not installed everywhere

        await super().open(folder, vectors)
        self._connection.enable_load_extension(True)
        sqlite_vec.load(self._connection)
        self._connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS vectors USING vec0(vector float[{DIMENSIONS}] distance_metric=cosine)"
        )

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:  # noqa: ARG002 - it has no time
        """Search by words and meaning."""
        asked = "SELECT rowid FROM vectors WHERE vector MATCH ? AND k = ?"
        nearest = self._connection.execute(asked, (self._vectors.array([question])[0].tobytes(), CANDIDATES))
        scores: dict[int, float] = {}
        for rows in ([row for _, row in self._by_words(question, CANDIDATES)], [row for (row,) in nearest]):
            for place, row in enumerate(rows, 1):
                scores[row] = scores.get(row, 0.0) + 1 / (RRF + place)
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:limit]
        named = "SELECT id FROM messages WHERE rowid = ?"
        return [self._connection.execute(named, (row,)).fetchone()[0] for row in best]

    def _insert(self, said: Sequence[Said]) -> None:
        super()._insert(said)
        # In one transaction rows are numbered without gaps.
        (last,) = self._connection.execute("SELECT rowid FROM messages ORDER BY rowid DESC LIMIT 1").fetchone()
        rows = self._vectors.array([each.text for each in said])
        self._connection.executemany(
            "INSERT INTO vectors (rowid, vector) VALUES (?, ?)",
            [(number, row.tobytes()) for number, row in enumerate(rows, last + 1 - len(said))],
        )
