"""Many writers at once, and somebody who archives behind them: what the scenarios do to a store."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from aforesaid.domain.message import draft
from aforesaid.domain.receipt import Stored
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import SourcesChanged
from aforesaid.store import Store
from aforesaid.store.messages import AddMessage, Messages
from aforesaid.store.summaries import Archive, RollBack, Summaries
from torture.witness import Archived, Event, RollBackAsked, RolledBack, Said

Heard = Callable[[Event], None]

USERS: Final = ("ann", "bob", "cleo", "dan", "eve")
SHARED_THREADS: Final = ("general", "random")
_WORDS: Final = ("tea", "rain", "Berlin", "café", "dentist", "Ünal", "猫が好き", "train", "monday", "garden", "книга")
_LONG_AGO: Final = datetime(2024, 2, 29, 12, tzinfo=UTC)


def text(chance: Random, key: str) -> str:
    """Make a text that nobody else says: a key, then a few words or many."""
    words = chance.randrange(40, 90) if chance.random() < 0.1 else chance.randrange(1, 12)
    return " ".join((key, *chance.choices(_WORDS, k=words)))


def message(chance: Random, scope: Scope, key: str) -> AddMessage:
    """Make a message as they come: with or without an id, said now or long ago."""
    id_ = f"id-{key}" if chance.random() < 0.5 else None
    # Old times make sessions that overlap, so that some are merged in the middle of everything.
    at = _LONG_AGO + timedelta(minutes=chance.randrange(10_000)) if chance.random() < 0.1 else None
    return AddMessage(draft(scope, chance.choice(("user", "assistant")), text(chance, key), at=at, id=id_))


async def say(store: Store, heard: Heard, writer: str, messages: Sequence[AddMessage]) -> None:
    """Hand in messages as one change set, and pass the acknowledgement on."""
    receipt = await store.apply(messages)
    assert receipt.durable
    stored = [result.message for result in receipt.results if isinstance(result, Stored)]
    assert [found.text for found in stored] == [wanted.draft.text for wanted in messages], "something was repeated"
    heard(Said(writer, tuple((found.text, found.seq, found.user, found.thread, found.id) for found in stored)))


async def write(store: Store, heard: Heard, writer: str, seed: object, count: int | None) -> None:
    """Say `count` things one after the other (None: without end), in a direct chat and in shared threads."""
    chance = Random(f"{seed} {writer}")
    user = chance.choice(USERS)
    for turn in itertools.count() if count is None else range(count):
        scope = Scope.of(user, thread=chance.choice((None, *SHARED_THREADS)))
        key = f"{writer}.{turn}"
        if chance.random() < 0.1:
            together = [message(chance, scope, f"{key}/{part}of3") for part in (1, 2, 3)]
            await say(store, heard, writer, together)
        else:
            await say(store, heard, writer, [message(chance, scope, key)])


async def archive(store: Store, heard: Heard, seed: object, count: int | None, *, rivals: bool = False) -> None:
    """Archive what was said, fold summaries into higher ones, take some of it back.

    Somebody who archives alone is never refused. With rivals, what one has read another may have archived meanwhile.
    """
    chance = Random(f"{seed} archivist")
    standing: list[tuple[Scope, int]] = []
    for _ in itertools.count() if count is None else range(count):
        try:
            await _archive_something(store, heard, chance, standing)
        except SourcesChanged:
            if not rivals:
                raise


async def _archive_something(
    store: Store, heard: Heard, chance: Random, standing: list[tuple[Scope, int]], least: int = 4
) -> None:
    scope = Scope.of(chance.choice(USERS))
    what = chance.random()
    if what < 0.2 and standing:
        scope, summary = standing.pop(chance.randrange(len(standing)))
        heard(RollBackAsked(summary))
        await store.apply([RollBack(scope, summary)])
        heard(RolledBack(summary))
    elif what < 0.35:
        lowest = [summary for summary in await store.read(Summaries(scope)) if summary.level == 1][:3]
        if len(lowest) > 1:
            ids = tuple(summary.id for summary in lowest)
            # What others stand on cannot be taken back by itself.
            standing[:] = [entry for entry in standing if entry[1] not in ids]
            await _archive(store, heard, standing, SummaryDraft(scope, "Folded.", summaries=ids))
    else:
        free = await store.read(Messages(scope, limit=chance.randrange(least, 30), archived=False))
        if len(free) >= least:
            sources = tuple(found.seq for found in free[: chance.randrange(least, len(free) + 1)])
            await _archive(store, heard, standing, SummaryDraft(scope, "In short.", messages=sources))


async def _archive(store: Store, heard: Heard, standing: list[tuple[Scope, int]], wanted: SummaryDraft) -> None:
    summary = (await store.apply([Archive(wanted)])).summary
    standing.append((wanted.scope, summary.id))
    heard(Archived(summary.id, summary.user, wanted.messages, wanted.summaries))


async def bustle(
    store: Store,
    heard: Heard,
    *,
    seed: object,
    tag: str,
    writers: int,
    messages: int | None,
    archives: int | None,
    rivals: bool = False,
) -> None:
    """Let many write and one archive, all at the same time."""
    async with asyncio.TaskGroup() as tasks:
        for number in range(writers):
            tasks.create_task(write(store, heard, f"{tag}.w{number}", seed, messages))
        tasks.create_task(archive(store, heard, f"{seed} {tag}", archives, rivals=rivals))
