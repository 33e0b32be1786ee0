"""A scripted service for tests of wrappers, which records its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeAlias

from aforesaid.domain.scope import Scope
from aforesaid.models.chat import Reply
from aforesaid.models.resilience import Ask, Service

HANG = "…hang…"
"""A piece that never arrives."""

Told: TypeAlias = "Sequence[str | Exception] | Exception"
"""Pieces of a reply, which may include an error or HANG; or an immediate error."""


@dataclass
class Stub:
    """Returns scripted replies in order; repeats the last one."""

    told: Sequence[Told] = (("yes",),)
    tokens: int = 0
    """The token count in the last piece."""
    calls: list[float] = field(default_factory=list)
    """Times of the calls."""
    running: int = 0
    most: int = 0
    """Maximum concurrent calls."""
    gate: asyncio.Event | None = None
    """An event that each reply waits for."""

    async def call(self, ask: Ask[str]) -> AsyncGenerator[Reply, None]:
        told = self.told[min(len(self.calls), len(self.told) - 1)]
        self.calls.append(asyncio.get_running_loop().time())
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await (self.gate.wait() if self.gate else asyncio.sleep(0))
            pieces = (told,) if isinstance(told, Exception) else tuple(told)
            for number, piece in enumerate(pieces, 1):
                if isinstance(piece, Exception):
                    raise piece
                if piece == HANG:
                    await asyncio.Event().wait()
                yield Reply(piece, ask.what, self.tokens if number == len(pieces) else 0, 0)
        finally:
            self.running -= 1


def asking(seconds: float = 30.0, *, total: float | None = None, scope: Scope | None = None) -> Ask[str]:
    """Return a request with timeouts in seconds for the first piece and for the whole reply."""
    now = asyncio.get_running_loop().time()
    return Ask("chat", "stub", answer_by=now + seconds, over_by=now + (total or seconds), scope=scope)


async def heard(service: Service[str, Reply], ask: Ask[str] | None = None, *, pause: float = 0.0) -> list[str]:
    """Read the whole reply, with a pause after each piece."""
    texts = []
    async with aclosing(service.call(ask or asking())) as pieces:
        async for piece in pieces:
            texts.append(piece.text)
            await asyncio.sleep(pause)
    return texts
