"""Import a file of any format in batches, so that a million messages need no more memory than ten."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from aforesaid.domain.change import AddMessage
from aforesaid.domain.checks import MESSAGE_BYTES
from aforesaid.domain.known_ids import KnownIds
from aforesaid.domain.message import draft
from aforesaid.domain.receipt import Stored
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.session import SESSION_SILENCE
from aforesaid.domain.transfer import Row
from aforesaid.errors import AforesaidError
from aforesaid.portability.detect_format import choose
from aforesaid.portability.import_items import ImportedMessage, ImportedRow, Item, Problem, ReadOptions, Skipped
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_fields import somebody
from aforesaid.portability.row_importer import NAMES, RowImporter
from aforesaid.store import Progress, Store

BATCH: Final = 1_000
"""Entries read and stored at a time."""
SHOWN: Final = 100
"""Maximum number of problems listed one by one; the rest are only counted."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import."""

    format: str = "auto"
    space: str = DEFAULT_SPACE
    user: str | None = None
    """Store everything as this user's memory. None: each author's in chats among people, otherwise `me`."""
    reading: ReadOptions = field(default_factory=ReadOptions)
    dry_run: bool = False
    """Read the file without storing anything."""
    silence: int = SESSION_SILENCE
    message_bytes: int = MESSAGE_BYTES
    ids: KnownIds = field(default_factory=KnownIds)
    """The spelling of ids in the store."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of an import."""

    format: str
    found: dict[str, int]
    """Number of entries in the file, by kind."""
    new: dict[str, int]
    """Number of entries that were not stored before, by kind."""
    skipped: dict[str, int]
    """Number of entries skipped on purpose, such as "joined the group" notices, by kind."""
    problems: int
    """Number of entries that could not be imported."""
    examples: tuple[Problem, ...]
    """The first of these problems, each with its position and reason."""
    dry_run: bool

    @property
    def ok(self) -> bool:
        """Whether every entry could be read and stored."""
        return self.problems == 0


class Loader:
    """Imports one file."""

    def __init__(self, store: Store, taking: ImportOptions) -> None:
        self._store = store
        self._taking = taking
        self._intake = RowImporter(store, self._refused)
        self._found: Counter[str] = Counter()
        self._last_at: dict[str, datetime] = {}
        """The time of the last message of each thread that has one."""
        self._new: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._problems = 0
        self._examples: list[Problem] = []

    async def load(self, path: Path, progress: Progress | None = None) -> Loaded:
        """Import the whole file. `progress` counts messages; their total is estimated from the bytes read so far."""
        source = await asyncio.to_thread(Source, path)
        try:
            name, reader = await asyncio.to_thread(choose, source, self._taking.format)
            reading = replace(self._taking.reading, user=self._taking.user or "me", space=self._taking.space)
            await self._take_all(reader(source, reading), source, progress)
            await self._intake.finish()
        finally:
            source.close()
        return Loaded(
            name,
            dict(self._found),
            dict(self._new + self._intake.fresh),
            dict(self._skipped),
            self._problems,
            tuple(self._examples),
            self._taking.dry_run,
        )

    async def _take_all(self, items: Iterator[Item], source: Source, progress: Progress | None) -> None:
        """Store batches, reading the next one while the store writes."""
        ahead = asyncio.ensure_future(asyncio.to_thread(_next_page, items))
        try:
            while page := await ahead:
                ahead = asyncio.ensure_future(asyncio.to_thread(_next_page, items))
                await self._take(page)
                if progress is not None:
                    progress("messages", self._found["message"], self._estimated_total(source))
        finally:
            # The file must stay open until the reading thread ends; its errors no longer matter.
            await asyncio.wait([ahead])
            if not ahead.cancelled():
                ahead.exception()

    def _estimated_total(self, source: Source) -> int:
        """Return the number of messages in the file, extrapolated from the share of its bytes that was read."""
        found = self._found["message"]
        return found if not 0 < source.done < source.size else max(found, round(found * source.size / source.done))

    async def _take(self, page: Sequence[Item]) -> None:
        changes: list[AddMessage] = []
        for item in self._timed(page):
            match item:
                case ImportedMessage():
                    change = self._prepared(item)
                    if change is not None:
                        changes.append(change)
                case ImportedRow(where, row):
                    self._found[NAMES[type(row)]] += 1
                    if not self._taking.dry_run:
                        await self._intake.take([row], where)
                case Problem():
                    self._tell(item)
                case Skipped(what):
                    self._skipped[what] += 1
        if changes and not self._taking.dry_run:
            receipt = await self._store.apply(changes)
            self._new["message"] += sum(isinstance(result, Stored) for result in receipt.results)

    def _timed(self, page: Sequence[Item]) -> list[Item]:
        """Give messages without a time the time of the next one in their thread, or of the one before.

        Otherwise they would come last, as if they were said now.
        """
        following: dict[str, datetime] = {}
        items = list(page)
        for place in range(len(items) - 1, -1, -1):
            item = items[place]
            if isinstance(item, ImportedMessage) and item.at is not None:
                following[item.thread] = item.at
            elif isinstance(item, ImportedMessage):
                items[place] = item._replace(at=following.get(item.thread))
        for place, item in enumerate(items):
            if isinstance(item, ImportedMessage) and item.at is not None:
                self._last_at[item.thread] = item.at
            elif isinstance(item, ImportedMessage):
                items[place] = item._replace(at=self._last_at.get(item.thread))
        return items

    def _prepared(self, item: ImportedMessage) -> AddMessage | None:
        taking = self._taking
        spelled = taking.ids.spelled
        owner = spelled(taking.user or item.answers or item.author or "me")
        said_by = spelled(item.author)
        try:
            scope = somebody(owner, taking.space, spelled(item.thread))
            author = None if said_by == owner else said_by
            new = draft(
                scope,
                item.role,
                item.text,
                at=item.at,
                id=item.id,
                author=author,
                name=item.name,
                limit=taking.message_bytes,
            )
        except AforesaidError as error:
            self._tell(Problem(item.where, str(error)))
            return None
        self._found["message"] += 1
        return AddMessage(new, taking.silence)

    def _refused(self, _: Row, where: str, error: AforesaidError) -> None:
        self._tell(Problem(where, str(error)))

    def _tell(self, problem: Problem) -> None:
        self._problems += 1
        if len(self._examples) < SHOWN:
            self._examples.append(problem)


def _next_page(items: Iterator[Item]) -> list[Item]:
    return list(islice(items, BATCH))
