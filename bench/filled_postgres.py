"""Fills a database with the messages of many users in many spaces."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import cast

import numpy as np
from evaluation.synthetic_chat import SyntheticChat

from aforesaid.domain.hit import VectorRow
from aforesaid.domain.message import draft
from aforesaid.domain.receipt import Stored
from aforesaid.domain.scope import Scope
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.embed import LocalEmbedder
from aforesaid.store.messages import AddMessage
from aforesaid.store.people import Totals
from aforesaid.store.postgres import PostgresStore
from aforesaid.store.searches import AddVectors

BATCH = 1_000
"""Messages per change set, as in an import."""
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = 3
CENTRES = 1_000
"""Number of texts embedded by a real model. The other vectors are spread around theirs, as those of real texts are."""
NOISE = 0.03
"""Standard deviation of what is added to each number of a vector."""
A_SESSION = 10
"""Number of messages one minute apart; after them comes a pause of a day."""


class Population:
    """Users, each in one space, all with the same number of messages."""

    def __init__(self, users: int, spaces: int) -> None:
        self.users = users
        self.spaces = spaces
        self.talk = SyntheticChat(seed=7)
        self._chance = random.Random(8)

    def scope(self, number: int) -> Scope:
        """Return the scope of a user."""
        return Scope.of(f"user{number}", space=f"space{number % self.spaces}")

    def user(self, memory: Memory, number: int) -> UserMemory:
        """Return a user of an open memory."""
        return memory.user(f"user{number}", space=f"space{number % self.spaces}")

    def question(self) -> str:
        """Return a realistic query: one or two frequent words, and one or two rare ones."""
        words = [*self.talk.text().split()[:2], *self.talk.question().split()]
        form = self._chance.choice(("When did I tell you about {} and {}?", "What was {} with the {}?"))
        return form.format(*self._chance.sample(words, 2))


def changes(people: Population, first: int, last: int) -> Iterator[AddMessage]:
    """Yield messages of a range of numbers, space by space, one of each user in turn."""
    texts = SyntheticChat(seed=first)
    in_a_space = people.users // people.spaces
    for space in range(people.spaces):
        mine = [people.scope(space + each * people.spaces) for each in range(in_a_space)]
        for number in range(first // people.spaces, last // people.spaces):
            turn, who = divmod(number, in_a_space)
            said = BEGAN + timedelta(days=turn // A_SESSION, minutes=turn % A_SESSION, milliseconds=who)
            yield AddMessage(draft(mine[who], "user" if turn % 2 == 0 else "assistant", texts.text(), at=said))


async def fill(
    store: PostgresStore,
    people: Population,
    messages: int,
    embedder: LocalEmbedder,
    real_texts: Sequence[str] = (),
) -> float | None:
    """Fill the store up to a number of messages; return messages per second, or None if none was missing.

    The vectors are spread around those of some texts of their own kind, or around those of real texts.
    """
    stored = (await store.read(Totals())).messages
    # Earlier measurements left messages of their own; a smaller difference is not worth a round.
    if messages - stored < messages // 2:
        return None
    chance = np.random.default_rng(9)
    centres = await embedder.embed(real_texts or [people.talk.text() for _ in range(CENTRES)])
    missing = changes(people, stored - stored % people.users, messages)

    async def work() -> None:
        while batch := list(islice(missing, BATCH)):
            added = [cast("Stored", result).message for result in (await store.apply(batch)).results]
            noise = chance.standard_normal((len(added), centres.shape[1])).astype(np.float32) * NOISE
            vectors = centres[chance.integers(0, len(centres), len(added))] + noise
            halves = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
            rows = tuple(
                VectorRow(message.seq, message.text, vector.tobytes(), message.space)
                for message, vector in zip(added, halves, strict=True)
            )
            await store.apply([AddVectors(embedder.name, rows, rows[-1].seq)])

    started = time.perf_counter()
    await asyncio.gather(*[work() for _ in range(AT_ONCE)])
    return (messages - stored) / (time.perf_counter() - started)
