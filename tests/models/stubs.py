"""A service for the tests of wrappers: it does what it is told, and remembers how it was asked."""

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
"""A piece that never comes."""

Told: TypeAlias = "Sequence[str | Exception] | Exception"
"""Pieces, among which an error or HANG may be; or an error at once."""


@dataclass
class Stub:
    """Answers one after the other as told; the last one again and again."""

    told: Sequence[Told] = (("yes",),)
    tokens: int = 0
    """What the last piece says it cost."""
    calls: list[float] = field(default_factory=list)
    """When it was asked."""
    running: int = 0
    most: int = 0
    """At the same time."""
    gate: asyncio.Event | None = None
    """Waited for before each answer."""

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
    """Ask for a first piece within so many seconds, and for the rest within as many or more."""
    now = asyncio.get_running_loop().time()
    return Ask("chat", "stub", answer_by=now + seconds, over_by=now + (total or seconds), scope=scope)


async def heard(service: Service[str, Reply], ask: Ask[str] | None = None, *, pause: float = 0.0) -> list[str]:
    """Listen to the end, with a pause after each piece."""
    texts = []
    async with aclosing(service.call(ask or asking())) as pieces:
        async for piece in pieces:
            texts.append(piece.text)
            await asyncio.sleep(pause)
    return texts
