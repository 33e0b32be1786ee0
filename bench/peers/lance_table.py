"""LanceDB, the search engine in files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from peers.contract import About, Said
from peers.vectors import DIMENSIONS, Vectors


class LanceDB:
    """A table with a full-text index and vectors."""

    about = About(
        "lancedb",
        "LanceDB",
        "lancedb",
        "import lancedb",
        "a search engine, no memory: its hybrid search, a full-text index and exact cosine joined by its own rank "
        "fusion; no index of vectors, which its documentation finds unnecessary up to 100,000; `optimize` "
        "after filling",
        no_context="none",
        memory=False,
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the table."""
        import lancedb  # noqa: PLC0415 - not installed everywhere
        import pyarrow as pa  # noqa: PLC0415
        from lancedb.index import FTS  # noqa: PLC0415
        from lancedb.rerankers import RRFReranker  # noqa: PLC0415

        self._vectors, self._reranker = vectors, RRFReranker()
        database = await lancedb.connect_async(folder)
        vector = pa.list_(pa.float32(), DIMENSIONS)
        fields = [("id", pa.string()), ("role", pa.string()), ("text", pa.string()), ("vector", vector)]
        new = "messages" not in (await database.table_names())
        self._table = await database.create_table("messages", schema=pa.schema(fields), exist_ok=True)
        if new:
            await self._table.create_index("text", config=FTS())

    async def add(self, said: Said) -> None:
        """Store one message."""
        await self.add_many([said])

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one call."""
        rows = self._vectors.array([each.text for each in said])
        await self._table.add(
            [
                {"id": each.id, "role": each.role, "text": each.text, "vector": row}
                for each, row in zip(said, rows, strict=True)
            ]
        )

    async def settle(self) -> None:
        """Merge the files and bring the index up to date. Messages can be found before, more slowly."""
        await self._table.optimize()

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:  # noqa: ARG002 - it has no time
        """Search by words and meaning."""
        asked = self._table.query().nearest_to(self._vectors.array([question])[0]).distance_type("cosine")
        found = asked.nearest_to_text(question).rerank(self._reranker).select(["id"]).limit(limit)
        return [row["id"] for row in await found.to_list()]

    async def context(self, question: str) -> int:
        """Not supported."""
        raise NotImplementedError(question)

    async def close(self) -> None:
        """Close the table."""
        self._table.close()
