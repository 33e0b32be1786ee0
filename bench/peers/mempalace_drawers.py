"""MemPalace, with the given vectors in place of those of an embedder that it downloads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from peers.contract import About, Said, SearchOnly
from peers.vectors import Vectors


class Given:
    """An embedder that looks up precomputed vectors, with the interface of Chroma's."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def name(self) -> str:
        """Return a name."""
        return "given"

    def __call__(self, input: list[str]) -> list[list[float]]:  # noqa: A002 - its interface
        """Return one vector for each text."""
        return self._vectors.lists(input)

    def embed_query(self, input: list[str]) -> list[list[float]]:  # noqa: A002 - its interface
        """Return one vector for each question."""
        return self(input)


class MemPalace(SearchOnly):
    """A palace whose drawers are messages."""

    about = About(
        "mempalace",
        "MemPalace",
        "mempalace",
        "from mempalace import palace, searcher",
        "one drawer per message in its collection in Chroma; its search with its defaults, which ranks the nearest 40 "
        "by meaning and words; no files are mined, so there are no closets; no context for a question",
        no_context="none",
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the palace."""
        os.environ["HOME"] = str(folder)  # of its settings and locks
        from mempalace import embedding, palace, searcher  # noqa: PLC0415 - not installed everywhere

        given = Given(vectors)
        embedding.get_embedding_function = lambda *_, **_options: given
        self._place, self._search = str(folder / "palace"), searcher.search_memories
        self._drawers = palace.get_collection(self._place)

    async def add(self, said: Said) -> None:
        """Store one message."""
        await self.add_many([said])

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one call."""
        now = datetime.now().astimezone().isoformat()
        self._drawers.upsert(
            ids=[each.id for each in said],
            documents=[each.text for each in said],
            metadatas=[
                {
                    "wing": "ann",
                    "room": each.session or "chat",
                    "source_file": each.id,
                    "filed_at": each.at.isoformat() if each.at else now,
                }
                for each in said
            ],
        )

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:  # noqa: ARG002 - it has no time
        """Search by meaning, and reorder by words."""
        found = self._search(question, self._place, n_results=limit)
        if "error" in found:
            raise RuntimeError(found["error"])
        return [hit["drawer_id"] for hit in found["results"]]

    async def close(self) -> None:
        """Close the files."""
        self._drawers.close()
