"""Clocks that jump by years, forwards and backwards: the order of the log does not care."""

from __future__ import annotations

import asyncio
import itertools
import time
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from aforesaid.domain.message import Message, draft
from aforesaid.domain.scope import Scope
from aforesaid.store.messages import AddMessage, Messages
from torture.support import Figures, Size, opened
from torture.witness import Event, Said, Witness
from torture.workload import USERS, Heard, say, text

ADDS_PER_LIFE = 40
SCOPES = [Scope.of(user, thread=thread) for user in USERS for thread in (None, "general")]
FARTHEST = timedelta(days=400)
SILENCE = timedelta(minutes=30)
"""What closes a session, unless a profile says otherwise."""


class JumpingClock:
    """Goes on by microseconds, and now and then jumps: years away, or near the end of a session."""

    def __init__(self, chance: Random) -> None:
        """Start at some moment."""
        self._chance = chance
        self._now = 1_750_000_000_000_000_000

    def jump(self) -> None:
        """Move somewhere else in time, or stay."""
        fate = self._chance.random()
        if fate < 0.4:
            self._move(self._chance.uniform(-1, 1) * FARTHEST)
        elif fate < 0.8:
            self._move(self._chance.uniform(-3, 3) * SILENCE)

    def __call__(self) -> int:
        """Stand in for time.time_ns."""
        self._now += 1_000
        return self._now

    def _move(self, by: timedelta) -> None:
        self._now += by // timedelta(microseconds=1) * 1_000


def test_the_order_of_the_log_is_the_order_of_acknowledgement(
    arena: Path, size: Size, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures, witness, chance = (
        Figures("clock", "restarts", "acknowledged messages", "sessions", "losses"),
        Witness(),
        Random(7),
    )
    clock = JumpingClock(chance)
    monkeypatch.setattr(time, "time_ns", clock)
    lives = size.of(small=2, full=100)
    order: list[int] = []

    def heard(event: Event) -> None:
        assert isinstance(event, Said)
        witness.hear(event)
        order.extend(seq for _, seq, *_ in event.messages)

    for life in range(lives):
        asyncio.run(live(arena / "clock.db", clock, heard, chance, f"l{life}"))
        figures.add("restarts")
    # One after the other, so the order of acknowledgement is one order over all users and threads.
    assert order == list(range(1, len(order) + 1))
    asyncio.run(check(arena / "clock.db", witness, figures))
    figures.add("acknowledged messages", len(order))
    figures.show()


async def live(path: Path, clock: JumpingClock, heard: Heard, chance: Random, tag: str) -> None:
    """Open the store, add messages while time jumps about, close it."""
    async with opened(path) as store:
        for turn in range(ADDS_PER_LIFE):
            clock.jump()
            message = AddMessage(draft(chance.choice(SCOPES), "user", text(chance, f"{tag}.{turn}")))
            await say(store, heard, "narrator", [message])


async def check(path: Path, witness: Witness, figures: Figures) -> None:
    """Compare histories and sessions with what was acknowledged."""
    async with opened(path) as store:
        assert await store._engine.read(witness.findings) == []
        for user in USERS:
            history = await store.read(Messages(Scope.of(user), limit=1_000_000))
            # A history is shown by when something was said, whatever the clock was; the log goes by its numbers.
            assert [message.text for message in sorted(history, key=lambda message: message.seq)] == [
                text for text, said in witness.said.items() if said[1] == user
            ]
        for scope in {scope.thread: scope for scope in SCOPES}.values():
            history = await store.read(Messages(scope, within="thread", limit=1_000_000))
            assert stored_sessions(history) == sessions_by_time(history)
            figures.add("sessions", len(stored_sessions(history)))
        verification = await store.verify()
        assert verification.ok, verification


def stored_sessions(history: list[Message]) -> set[frozenset[int]]:
    """Return which messages the store put together."""
    by_name = sorted(history, key=lambda message: message.session)
    return {
        frozenset(message.seq for message in group)
        for _, group in itertools.groupby(by_name, key=lambda message: message.session)
    }


def sessions_by_time(history: list[Message]) -> set[frozenset[int]]:
    """Work out from the times alone which messages belong together: no silence of half an hour between them."""
    groups: list[list[Message]] = []
    for message in sorted(history, key=lambda message: message.at):
        if groups and message.at - groups[-1][-1].at < SILENCE:
            groups[-1].append(message)
        else:
            groups.append([message])
    return {frozenset(message.seq for message in group) for group in groups}
