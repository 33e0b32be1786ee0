"""mem0, without a model: `infer=False`, vectors in Qdrant's local mode on the disk, history in SQLite."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from peers.contract import About, Said, SearchOnly
from peers.vectors import DIMENSIONS, Vectors

# Disables telemetry, as documented. The client requires a key, which is never used.
os.environ.update(MEM0_TELEMETRY="False", OPENAI_API_KEY="none")


class Given:
    """An embedder that looks up precomputed vectors."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002 - its interface
        """Return one vector."""
        return self._vectors.lists([text])[0]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:  # noqa: ARG002
        """Return one vector for each text."""
        return self._vectors.lists(texts)


class Mem0(SearchOnly):
    """The synchronous API."""

    about = About(
        "mem0",
        "mem0",
        "mem0ai",
        "from mem0 import Memory",
        "`infer=False`; Qdrant's local mode on the disk, history in SQLite; search by meaning alone, for its search by "
        "words needs a download; no context",
        one_by_one=True,
        no_context="none",
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the folder."""
        os.environ["MEM0_DIR"] = str(folder / "mem0")
        from mem0 import Memory  # noqa: PLC0415 - it reads its folder from the environment when it is imported

        logging.getLogger("mem0").setLevel(logging.ERROR)
        qdrant = {
            "path": str(folder / "qdrant"),
            "on_disk": True,
            "collection_name": "bench",
            "embedding_model_dims": DIMENSIONS,
        }
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": qdrant},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = Given(vectors)

    async def add(self, said: Said) -> None:
        """Store one message."""
        await self.add_many([said])

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one call. The metadata applies to all of them, so only single adds keep their ids."""
        messages = [{"role": each.role, "content": each.text} for each in said]
        self._memory.add(messages, user_id="ann", infer=False, metadata={"turn": said[0].id})

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:  # noqa: ARG002 - it has no time
        """Search by meaning."""
        found = self._memory.search(question, top_k=limit, filters={"user_id": "ann"})
        return [hit["metadata"]["turn"] for hit in found["results"]]

    async def close(self) -> None:
        """Close the files."""
        self._memory.close()
        self._memory.vector_store.client.close()
