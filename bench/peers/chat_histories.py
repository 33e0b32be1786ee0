"""Libraries that store a conversation and return its newest part."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from peers.contract import BUDGET, RECENT, About, Said
from peers.vectors import Vectors


class LlamaIndex:
    """Memory of llama-index-core, in a SQLite file."""

    about = About(
        "llama-index",
        "LlamaIndex Memory",
        "llama-index-core",
        "from llama_index.core.memory import Memory",
        "its chat store in SQLite; a queue of the newest messages; no search of its own: a vector block needs the "
        "vector store of another package, and gives back batches of messages",
        no_search="no search",
        context="newest messages within a budget of tokens",
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:  # noqa: ARG002 - nothing is embedded
        """Open the file."""
        from llama_index.core.memory import Memory  # noqa: PLC0415 - not installed everywhere

        place = f"sqlite+aiosqlite:///{folder / 'chat.db'}"
        self._memory = Memory.from_defaults(session_id="ann", token_limit=BUDGET, async_database_uri=place)

    async def add(self, said: Said) -> None:
        """Store one message."""
        from llama_index.core.llms import ChatMessage  # noqa: PLC0415

        await self._memory.aput(ChatMessage(role=said.role, content=said.text))

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one call."""
        from llama_index.core.llms import ChatMessage  # noqa: PLC0415

        await self._memory.aput_messages([ChatMessage(role=each.role, content=each.text) for each in said])

    async def settle(self) -> None:
        """Do nothing."""

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:
        """Not supported."""
        raise NotImplementedError(question, limit, at)

    async def context(self, question: str) -> int:
        """Read the queue."""
        return len(await self._memory.aget(input=question))

    async def close(self) -> None:
        """Close the file."""
        engine = self._memory.sql_store._async_engine
        if engine is not None:
            await engine.dispose()


class OpenAISession:
    """SQLiteSession of openai-agents."""

    about = About(
        "openai-agents",
        "OpenAI Agents SQLiteSession",
        "openai-agents",
        "from agents import SQLiteSession",
        "SQLite; a list of items; no search",
        no_search="no search",
        context=f"the newest {RECENT} messages, without counting tokens",
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:  # noqa: ARG002 - nothing is embedded
        """Open the file."""
        from agents import SQLiteSession  # noqa: PLC0415 - not installed everywhere

        self._session = SQLiteSession("ann", folder / "session.db")

    async def add(self, said: Said) -> None:
        """Store one message."""
        await self.add_many([said])

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one call."""
        await self._session.add_items([{"role": each.role, "content": each.text} for each in said])

    async def settle(self) -> None:
        """Do nothing."""

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:
        """Not supported."""
        raise NotImplementedError(question, limit, at)

    async def context(self, question: str) -> int:  # noqa: ARG002 - the question changes nothing
        """Read the newest."""
        return len(await self._session.get_items(limit=RECENT))

    async def close(self) -> None:
        """Close the file."""
        self._session.close()
