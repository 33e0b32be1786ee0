"""Chroma and Qdrant, the vector databases, each in a folder of this process."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from peers.contract import About, Said, SearchOnly
from peers.vectors import DIMENSIONS, Vectors


class Chroma(SearchOnly):
    """A collection of the persistent client."""

    about = About(
        "chroma",
        "Chroma",
        "chromadb",
        "import chromadb",
        "a vector database, no memory: its persistent client, cosine, its approximate index (HNSW) with its defaults; "
        "search by meaning alone",
        no_context="none",
        memory=False,
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the collection."""
        import chromadb  # noqa: PLC0415 - not installed everywhere

        self._vectors = vectors
        self._client = chromadb.PersistentClient(folder, chromadb.Settings(anonymized_telemetry=False))
        self._collection = self._client.get_or_create_collection(
            "messages", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    async def add(self, said: Said) -> None:
        """Store one message."""
        await self.add_many([said])

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one call."""
        texts = [each.text for each in said]
        self._collection.add(
            ids=[each.id for each in said],
            documents=texts,
            embeddings=self._vectors.array(texts),
            metadatas=[{"role": each.role} for each in said],
        )

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:  # noqa: ARG002 - it has no time
        """Search by meaning."""
        found = self._collection.query(query_embeddings=self._vectors.array([question]), n_results=limit)
        return list(found["ids"][0])

    async def close(self) -> None:
        """Close the files."""
        self._client.close()


class Qdrant(SearchOnly):
    """A collection of the local mode."""

    about = About(
        "qdrant",
        "Qdrant local mode",
        "qdrant-client",
        "import qdrant_client",
        "a vector database, no memory: the local mode of its client, without the server, which its makers do not "
        "recommend for more than 20,000 points; exact cosine; search by meaning alone",
        no_context="none",
        memory=False,
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the collection."""
        from qdrant_client import QdrantClient, models  # noqa: PLC0415 - not installed everywhere

        self._vectors, self._models = vectors, models
        self._client = QdrantClient(path=str(folder))
        if not self._client.collection_exists("messages"):
            size = models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
            self._client.create_collection("messages", vectors_config=size)

    async def add(self, said: Said) -> None:
        """Store one message."""
        await self.add_many([said])

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one call."""
        points = self._models.Batch(
            ids=[uuid4().hex for _ in said],
            vectors=self._vectors.lists([each.text for each in said]),
            payloads=[{"id": each.id, "role": each.role, "text": each.text} for each in said],
        )
        self._client.upsert("messages", points)

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:  # noqa: ARG002 - it has no time
        """Search by meaning."""
        found = self._client.query_points("messages", self._vectors.lists([question])[0], limit=limit)
        return [point.payload["id"] for point in found.points]

    async def close(self) -> None:
        """Close the files."""
        self._client.close()
