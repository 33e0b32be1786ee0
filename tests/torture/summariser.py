"""A process that talks and summarises without end, slowly enough to be killed while its model writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from pydantic import BaseModel

from aforesaid.digest import Digest, executor
from aforesaid.domain.checks import now
from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelGarbled
from aforesaid.models.chat import Answer, Reply, Said
from aforesaid.models.resilience import BreakerState
from aforesaid.profiles import Profile, load_profile
from aforesaid.settings import Operation, Route, Settings
from aforesaid.store.messages import AddMessage
from aforesaid.upkeep import Digesting
from torture.support import opened
from torture.zygote import Tell

Shape = TypeVar("Shape", bound=BaseModel)

# A worker that was killed leaves its lease behind; nobody here waits minutes for it to end.
LEASE_SECONDS = 0.1
setattr(executor, "LEASE_SECONDS", LEASE_SECONDS)  # noqa: B010 - it is final for everybody else

USERS = ("ann", "bob", "cleo")
LONGEST_PAUSE = 0.004
"""Seconds that the model takes to write."""


def profile(policy: str) -> Profile:
    """Return a profile by which summaries are due all the time."""
    keys = {"summaries": policy, "tree_turns": 2, "rolling_messages": 4, "rolling_keep": 2, "rolling_step": 2}
    return load_profile({**keys, "short_term": 3, "today_minutes": 1})


class Dictated:
    """A model that says when it begins and when it ends to write."""

    def __init__(self, tell: Tell, chance: Random) -> None:
        self._tell = tell
        self._chance = chance

    async def text(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        characters: int | None = None,
    ) -> Reply:
        del operation, messages, scope, characters
        self._tell(["asked"])
        await asyncio.sleep(self._chance.uniform(0, LONGEST_PAUSE))
        self._tell(["answered"])
        return Reply(f"Somebody bought apples in Berlin ({self._chance.random()}).", "test:dictated", 1, 1)

    async def stream(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        ended: Callable[[Reply], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        del ended
        yield (await self.text(operation, messages, scope=scope)).text

    async def structure(
        self, operation: Operation, messages: Sequence[Said], shape: type[Shape], *, scope: Scope | None = None
    ) -> Answer[Shape]:
        await self.text(operation, messages, scope=scope)
        raise ModelGarbled(f"this model cannot write a {shape.__name__}")

    def has(self, operation: Operation) -> bool:
        return operation in {"summarize", "day"}

    def is_small(self, operation: Operation) -> bool:
        del operation
        return False

    def states(self) -> dict[str, BreakerState]:
        return {}

    async def close(self) -> None:
        pass


def tomorrow() -> int:
    """Return a time at which today is over: each message comes in late, and its day is made anew at once."""
    return now() + 2 * 24 * 3_600_000_000


def settings() -> Settings:
    """Return settings by which rules do what the model cannot."""
    return Settings(routes={"summarize": Route(without=True), "day": Route(without=True)}, redo=False)


def talk_and_summarise(tell: Tell, options: dict[str, Any]) -> None:
    """Talk and summarise in the file at `options["path"]`, until killed."""

    async def run() -> None:
        chance = Random(options["tag"])
        rules = profile(options["policy"])
        async with opened(Path(options["path"])) as store:
            digest = Digest(store, rules, Dictated(tell, chance), None, settings(), tomorrow)
            digesting = Digesting(store, rules.summaries, lambda: digest)
            for number in range(1_000_000):
                scope = Scope.of(chance.choice(USERS))
                said = f"{options['tag']}.{number}"
                await store.apply([AddMessage(draft(scope, "user", f"{said} I bought apples in Berlin."))])
                await store.apply([AddMessage(draft(scope, "assistant", f"{said} Good."))])
                tell(["said", 2])
                await digesting.run()

    asyncio.run(run())
