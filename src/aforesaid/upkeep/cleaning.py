"""Applies the retention rules once a day.

Each run selects rows by age, in small steps. So an interrupted run is simply repeated, and two processes do nothing
twice. Only a complete run is recorded.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

from aforesaid.background import BackgroundLoop, BackgroundLoops
from aforesaid.domain.checks import EARLIEST, counted, moment, now
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Discarded
from aforesaid.domain.report import Cleaned, Cleanup, Component
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import wants_memory
from aforesaid.errors import AforesaidError, NotFound, SourcesChanged
from aforesaid.profiles.effective import settings_of
from aforesaid.settings import Keep, Retention
from aforesaid.store.memories import ChangeMemory, DueMemories
from aforesaid.store.messages import MessagesAfter
from aforesaid.store.people import Marks, PutMark, Users
from aforesaid.store.retention import DISCARDABLE, Discard, DiscardableCount
from aforesaid.telemetry import Metrics
from aforesaid.upkeep.upkeep import Done, UpkeepTask, metered, repeated

if TYPE_CHECKING:
    from aforesaid.digest import Digest
    from aforesaid.store import Progress, Store

_log: Final = logging.getLogger("aforesaid.upkeep")

MARK: Final = "cleanup"
"""The mark with the time of the last complete run."""
REASON: Final = "retention"
_DAY: Final = 24 * 3_600_000_000
_PAGE: Final = 200
_AT_ONCE: Final = 100
"""Rows deleted in one step. Other writers wait for a step, and deleting is slow."""
_CHARACTERS: Final = 48_000
"""Maximum characters of messages covered by one summary."""
_LONGEST_WAIT_SECONDS: Final = 3_600.0
_MOST_COUNTED: Final = 1_000_000
_FIRST_LOOK_SECONDS: Final = 60.0


class Cleaning(UpkeepTask):
    name = "cleaned"

    def __init__(
        self,
        store: Store,
        retention: Retention,
        digest: Callable[[], Digest],
        metrics: Metrics,
        clock: Callable[[], int] = now,
        loops: BackgroundLoops | None = None,
    ) -> None:
        """Apply `retention`. `digest` returns the digest that archives messages; it is loaded when it is needed."""
        longest = _LONGEST_WAIT_SECONDS
        loop = BackgroundLoop("cleanup", self._work, retry_seconds=longest, longest_retry_seconds=longest, log=_log)
        super().__init__(store, loop, metrics, loops)
        self._retention = retention
        self._has_rules = retention.anything
        self._load = digest
        self._clock = clock

    def nudge(self, within_seconds: float = 0.0) -> None:  # noqa: ARG002 - as every task
        """Start checking at intervals, if there are rules."""
        if self._has_rules:
            # With a delay: a process that has just started has more urgent work.
            self._loop.start(_FIRST_LOOK_SECONDS)

    async def run(self, progress: Progress | None = None) -> Done:
        """Clean up if the last run was a day ago."""
        last, at = await self._last() if self._has_rules else None, self._clock()
        # A time in the future comes from a wrong clock.
        if not self._has_rules or (last is not None and at - last < _DAY and last <= at):
            return Done(0)

        async def clean() -> Done:
            cleanup = await self.clean(progress)
            return Done(sum(each.count for each in cleanup.rules), cleanup.error)

        return await metered(self._metrics, "cleaning", clean())

    async def health(self) -> Component:
        """Return the rules and the time of the last complete run."""
        rules = [f"{kind}: {_shown(keep)}" for kind, keep in _rules(self._retention)]
        facts = (("rules", "; ".join(rules) or "none: everything is kept"),)
        issues = () if self._error is None else (self._error,)
        try:
            last = await self._last()
        except AforesaidError as error:
            return Component("cleanup", "failing", None, (*issues, str(error)), facts)
        updated = None if last is None else moment(last)
        return Component("cleanup", "failing" if issues else "active", updated, issues, facts)

    async def clean(self, progress: Progress | None = None, *, dry_run: bool = False) -> Cleanup:
        """Apply all rules now. With `dry_run`, only count the affected rows."""
        done: list[Cleaned] = []
        async with self._one_at_a_time:
            at = self._clock()
            try:
                for kind, keep in _rules(self._retention):
                    async for each in self._follow(kind, keep, at, progress, dry_run=dry_run):
                        # Nobody has to set the rule for receipts, so it is only mentioned if it applies to any.
                        if each.count or kind != "receipts":
                            done.append(each)  # noqa: PERF401 - it counts also when the next rule fails
                if not dry_run:
                    await self._store.apply([PutMark(MARK, json.dumps({"done_at": at}))])
            except AforesaidError as error:
                self._error = str(error)
                return Cleanup(dry_run, tuple(done), str(error))
            self._error = None
            return Cleanup(dry_run, tuple(done))

    async def _follow(
        self, kind: str, keep: Keep, at: int, progress: Progress | None, *, dry_run: bool
    ) -> AsyncIterator[Cleaned]:
        if keep.archive_days is not None:
            before = _before(at, keep.archive_days)
            put_away = self._archive_messages if kind == "messages" else self._archive_memories
            count = await put_away(before, progress, dry_run=dry_run)
            yield Cleaned(kind, "archive", keep.archive_days, moment(before), count)
        if keep.purge_days is not None:
            before = _before(at, keep.purge_days)
            count = await self._discard(kind, before, progress, dry_run=dry_run)
            if dry_run and kind == "messages" and keep.archive_days is not None:
                count += await self._archived_first(_before(at, keep.archive_days), before)
            yield Cleaned(kind, "purge", keep.purge_days, moment(before), count)

    async def _discard(self, kind: str, before: int, progress: Progress | None, *, dry_run: bool) -> int:
        what = next(each for each in DISCARDABLE if each == kind)
        total = await self._store.read(DiscardableCount(what, before))
        if dry_run:
            return total
        gone = 0
        while True:
            (result,) = (await self._store.apply([Discard(what, before, _AT_ONCE)])).results
            count = result.count if isinstance(result, Discarded) else 0
            if not count:
                return gone
            gone += count
            if progress is not None:
                progress(f"removing {kind}", gone, max(total, gone))

    async def _archive_memories(self, before: int, progress: Progress | None, *, dry_run: bool) -> int:
        """Deactivate memories that were not mentioned for a long time. They can be reactivated."""
        count = 0
        until = moment(before)
        if dry_run:
            return len(await self._store.read(DueMemories("unseen", until, _MOST_COUNTED)))
        while due := await self._store.read(DueMemories("unseen", until, _PAGE)):
            for memory in due:
                over = replace(memory, state="deactivated", active=False, valid_to=moment(now()), reason=REASON)
                with suppress(NotFound, SourcesChanged):
                    await self._store.apply([ChangeMemory(over, "archive")])
                    count += 1
            if progress is not None:
                progress("putting memories away", count, count)
        return count

    async def _archive_messages(self, before: int, progress: Progress | None, *, dry_run: bool) -> int:
        """Archive old messages under summaries, for users who did not switch summaries off."""
        count = 0
        async for scope, messages in self._archivable(before):
            count += len(messages) if dry_run else await self._archive(scope, messages)
            if progress is not None:
                progress("archiving messages", count, count)
        return count

    async def _archived_first(self, archive_before: int, purge_before: int) -> int:
        """Return how many messages a run would archive and then delete. An archive goes with its last message."""
        count = 0
        until = moment(purge_before)
        async for _, messages in self._archivable(archive_before):
            if max(message.at for message in messages) < until:
                count += len(messages)
        return count

    async def _archivable(self, before: int) -> AsyncIterator[tuple[Scope, Sequence[Message]]]:
        """Yield old active messages, as many at a time as one summary can cover."""
        from aforesaid.digest.tree import that_fit  # noqa: PLC0415 - loaded with the digest

        until = moment(before)
        for user in await self._store.read(Users()):
            scope = Scope.of(user.id, user.space)
            if user.messages == user.archived or not wants_memory(await settings_of(self._store, scope)):
                continue
            after = 0
            while page := await self._store.read(MessagesAfter(scope, after, _PAGE, archived=False)):
                after = page[-1].seq
                # On every page: late messages may be older than ones before them.
                rest = [message for message in page if message.at < until]
                while rest:
                    fitting = that_fit([len(message.text) for message in rest], _CHARACTERS)
                    yield scope, rest[:fitting]
                    rest = rest[fitting:]

    async def _archive(self, scope: Scope, messages: Sequence[Message]) -> int:
        """Archive messages under one summary. Return how many."""
        digest = await asyncio.to_thread(self._load)
        try:
            await digest.executor.archive_messages(scope, messages)
        except (NotFound, SourcesChanged) as error:
            # Another worker has archived some of them, or they were erased; the next run finds the rest.
            _log.info("archiving old messages of %s was overtaken: %s", scope.user, error)
            return 0
        return len(messages)

    async def _work(self) -> float:
        """Clean up if it is due; return the seconds until it is due again."""
        await repeated(self.run)()
        last = await self._last()
        wait = 0 if last is None else (last + _DAY - self._clock()) / 1_000_000
        return min(max(wait, 1.0), _LONGEST_WAIT_SECONDS)

    async def _last(self) -> int | None:
        value = (await self._store.read(Marks())).get(MARK)
        return None if value is None else int(json.loads(value)["done_at"])


def _rules(retention: Retention) -> list[tuple[str, Keep]]:
    every = [(field.name, getattr(retention, field.name)) for field in fields(retention)]
    return [(kind, keep) for kind, keep in every if keep not in (None, Keep())]


def _before(at: int, days: int) -> int:
    return max(at - days * _DAY, EARLIEST)


def _shown(keep: Keep) -> str:
    said = []
    if keep.archive_days is not None:
        said.append(f"archived after {counted(keep.archive_days, 'day')}")
    if keep.purge_days is not None:
        said.append(f"deleted after {counted(keep.purge_days, 'day')}")
    return ", ".join(said)
