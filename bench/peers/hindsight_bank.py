"""Hindsight without a model: messages are stored as they are, with the given vectors, in its bundled PostgreSQL."""

from __future__ import annotations

import atexit
import logging
import os
import pwd
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from peers.contract import About, Said, SearchOnly
from peers.vectors import DIMENSIONS, Vectors

BANK = "ann"
DATE = re.compile(r" \(happened in [^()]*\)$")
"""What it appends to a text before it is embedded."""


def leave_root(*folders: Path) -> None:
    """Go on as the user nobody, who gets the folders: PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return
    nobody = pwd.getpwnam("nobody")
    for folder in folders:
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def embeddings(vectors: Vectors) -> Any:  # noqa: ANN401 - not installed everywhere
    """Return an embedder that looks up precomputed vectors."""
    from hindsight_api.engine.embeddings import Embeddings  # noqa: PLC0415

    class Given(Embeddings):  # type: ignore[misc]
        provider_name, dimension = "given", DIMENSIONS

        async def initialize(self) -> None:
            """Do nothing."""

        async def encode(self, texts: list[str]) -> list[list[float]]:
            return vectors.lists([DATE.sub("", text) for text in texts])

    return Given()


class Hindsight(SearchOnly):
    """The engine of its server, in this process."""

    about = About(
        "hindsight",
        "Hindsight",
        "hindsight-api-slim",
        "from hindsight_api import MemoryEngine",
        "its engine without its HTTP server, in its bundled PostgreSQL, whose memory is not counted and whose `fsync` "
        "is off; no model, so messages are stored as they are and no facts are made; search by words, meaning, time "
        "and links with rank fusion, for its reranker is a download; no context",
        no_context="none",
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Start the database, and open the bank."""
        # The programs of PostgreSQL are unpacked there once, beside what is measured.
        home = folder.parent / "postgres"
        home.mkdir(exist_ok=True)
        leave_root(folder.parent, folder, home)
        os.environ.update(HOME=str(home), HINDSIGHT_API_LLM_PROVIDER="none", HINDSIGHT_API_RERANKER_PROVIDER="rrf")
        from hindsight_api import MemoryEngine, RequestContext  # noqa: PLC0415 - not installed everywhere
        from hindsight_api.engine.cross_encoder import RRFPassthroughCrossEncoder  # noqa: PLC0415
        from pg0 import Pg0  # noqa: PLC0415

        logging.getLogger("hindsight_api").setLevel(logging.ERROR)
        self._database = Pg0(name=folder.name, data_dir=str(folder / "data"))
        self._database.start()
        atexit.register(self._database.stop)  # it would outlive a failure
        self._engine = MemoryEngine(
            db_url=self._database.uri,
            memory_llm_provider="none",
            embeddings=embeddings(vectors),
            cross_encoder=RRFPassthroughCrossEncoder(),
        )
        self._who = RequestContext()
        await self._engine.initialize()

    async def add(self, said: Said) -> None:
        """Store one message."""
        await self.add_many([said])

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many in one call, each as a document."""
        contents = [
            {"content": each.text, "document_id": each.id} | ({"event_date": each.at} if each.at else {})
            for each in said
        ]
        await self._engine.retain_batch_async(BANK, contents, request_context=self._who)

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:
        """Search with its defaults."""
        found = await self._engine.recall_async(BANK, question, question_date=at, request_context=self._who)
        return [fact.document_id for fact in found.results[:limit]]

    async def close(self) -> None:
        """Stop the database."""
        await self._engine.close()
        self._database.stop()
