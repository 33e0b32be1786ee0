"""Memories for bot tests, their contents, and a model that waits."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from pathlib import Path

import aforesaid
from aforesaid.memory import Connecting
from aforesaid.testing import ScriptedModel, faults
from aforesaid.testing.faults import HttpConnection, HttpResponse

QUIET = {"summaries": "none", "extract": False}


def with_model(model: ScriptedModel, path: Path, **profile: object) -> Connecting:
    settings = {
        "providers.scripted.base_url": model.base_url,
        "models.chat.chain": "scripted:scripted",
        "resilience.attempts": 1,
    }
    return aforesaid.connect(path, profile={**QUIET, **profile}, embedder="none", settings=settings)


async def texts(memory: aforesaid.Memory, user: str = "ann", space: str = "room") -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in await memory.user(user, space=space).history(200)]


@dataclass(frozen=True, slots=True)
class Waits(faults.Fault):
    """A model that answers when the test allows it."""

    gate: threading.Event

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        await asyncio.to_thread(self.gate.wait, 60)
        await wire.send(answer)
