"""LangGraph's long-term stores with a vector index."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

from peers.contract import About, Said, SearchOnly
from peers.vectors import DIMENSIONS, Vectors

PLACE = ("messages", "ann")


class Store(SearchOnly):
    """The shared part of both adapters."""

    about: About
    _store: Any

    async def add(self, said: Said) -> None:
        """Store one message."""
        self._store.put(PLACE, said.id, {"role": said.role, "text": said.text})

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one batch."""
        from langgraph.store.base import PutOp  # noqa: PLC0415 - not installed everywhere

        self._store.batch([PutOp(PLACE, each.id, {"role": each.role, "text": each.text}) for each in said])

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:  # noqa: ARG002 - it has no time
        """Search by meaning."""
        return [item.key for item in self._store.search(PLACE, query=question, limit=limit)]


class Sqlite(Store):
    """The store in a file."""

    about = About(
        "langgraph-sqlite",
        "LangGraph SqliteStore",
        "langgraph-checkpoint-sqlite",
        "from langgraph.store.sqlite import SqliteStore",
        "SQLite with sqlite-vec; search by meaning alone; no context, your code puts hits into a prompt",
        no_context="none",
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the file."""
        from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415

        # Without this option the whole value is embedded as JSON.
        index = {"dims": DIMENSIONS, "embed": vectors.lists, "text_fields": ["text"]}
        self._held = ExitStack()
        opened = SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
        self._store = self._held.enter_context(opened)
        self._store.setup()

    async def close(self) -> None:
        """Close the file."""
        self._held.close()


class InMemory(Store):
    """The store in memory."""

    about = About(
        "langgraph-memory",
        "LangGraph InMemoryStore",
        "langgraph",
        "from langgraph.store.memory import InMemoryStore",
        "in the process, gone with it; search by meaning alone; no context",
        no_disk="not durable",
        no_context="none",
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:  # noqa: ARG002 - nothing is kept there
        """Create an empty store."""
        from langgraph.store.memory import InMemoryStore  # noqa: PLC0415

        self._store = InMemoryStore(index={"dims": DIMENSIONS, "embed": vectors.lists, "fields": ["text"]})

    async def close(self) -> None:
        """Do nothing."""
