"""Makes due summaries, in the background or on request.

Pending work is on the agenda in the store, which is updated in the same transaction as the cursor on the log. So
nothing is lost when the process dies, and two processes do nothing twice: the second one gets SourcesChanged.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from aforesaid.background import BackgroundLoop, BackgroundLoops
from aforesaid.domain.checks import LATEST, ComponentStatus, counted, moment, now
from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope, Subject
from aforesaid.errors import ModelError, ModelUnavailable, NotFound, SpendingLimit, StoreError
from aforesaid.store.agenda import DueEntries, FinishEntry, PlannedEntry, PolicyBacklog
from aforesaid.telemetry import Metrics
from aforesaid.upkeep.upkeep import Done, GiveWay, UpkeepTask, at_once, metered

if TYPE_CHECKING:
    from aforesaid.digest import Digest
    from aforesaid.profiles import Policy
    from aforesaid.store import Progress, Store

_log: Final = logging.getLogger("aforesaid.upkeep")
_health: Final = logging.getLogger("aforesaid.health")

DEBOUNCE_SECONDS: Final = 2.0
CONCURRENCY: Final = 4
"""Maximum number of summaries made at the same time."""

_PAGE: Final = 500
_TRIES: Final = 5
_HOPELESS: Final = 3
"""Number of consecutive failures after which the run stops calling the model."""
_FIRST_PAUSE: Final = 30_000_000
_LONGEST_PAUSE: Final = 6 * 3_600_000_000
_LONGEST_WAIT_SECONDS: Final = 3_600.0
_DEBOUNCE_ROUNDS: Final = 5


class Digesting(UpkeepTask):
    name = "summarised"

    def __init__(
        self,
        store: Store,
        policy: Policy,
        digest: Callable[[], Digest],
        *,
        debounce: float = DEBOUNCE_SECONDS,
        concurrency: int = CONCURRENCY,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        metrics: Metrics | None = None,
        loops: BackgroundLoops | None = None,
        give_way: GiveWay = at_once,
    ) -> None:
        """Work by `policy`. `digest` returns the digest, which is loaded when it is needed."""
        loop = BackgroundLoop(
            "summarising",
            self._work,
            debounce_seconds=debounce,
            debounce_rounds=_DEBOUNCE_ROUNDS,
            sleep=pause,
            log=_log,
        )
        super().__init__(store, loop, metrics, loops, give_way)
        self._policy = policy
        self._load = digest
        self._digest: Digest | None = None
        self._debounce = debounce
        self._concurrency = concurrency
        self._failing: dict[tuple[str, str], str] = {}
        """Errors by space and user; the user is empty for the whole space."""

    def nudge(self, within_seconds: float = 0.0) -> None:
        if self._policy != "none":
            self._loop.wake(within_seconds)

    async def run(self, progress: Progress | None = None) -> Done:
        """Do all pending work, including retries."""
        return await self._drain(progress, failing=True)

    async def due(self, limit: int) -> list[Subject]:
        """Update the agenda from the log, and return due subjects for the workers."""
        if self._policy == "none":
            return []
        digest = await self._loaded()
        await digest.walk()
        return [entry.subject for entry in await digest.due(limit)]

    async def work_off_one(self, subject: Subject) -> Done:
        drain = _Drain(self._store, await self._loaded(), None, self._give_way)
        await drain.work_off(deque([subject]))
        if drain.made:
            self._last_update = moment(self._clock())
        return Done(drain.made, drain.error)

    def notice(self, scope: Scope) -> str | None:
        error = self._failing.get((scope.space, scope.user)) or self._failing.get((scope.space, ""))
        if error is None:
            return None
        return f"a summary could not be made and is tried again later; nothing is lost: {error}"

    async def health(self) -> Component:
        if self._policy == "none":
            return Component("summaries", "active", None, (), (("policy", "none"),))
        try:
            backlog = await self._store.read(PolicyBacklog(self._policy, self._clock()))
        except StoreError as error:
            return Component("summaries", "failing", self._last_update, (str(error),), (("policy", self._policy),))
        issues = tuple(
            issue for issue in (self._loop.status.error, backlog.error if backlog.failing else None) if issue
        )
        facts = (
            ("policy", self._policy),
            ("waiting", f"{counted(backlog.messages, 'message')} in {counted(backlog.entries, 'conversation')}"),
            ("failing", counted(backlog.failing, "conversation")),
        )
        status: ComponentStatus = "failing" if issues else "active"
        return Component("summaries", status, self._last_update, issues, facts, waiting=backlog.messages)

    async def _work(self) -> float:
        """Make due summaries; return the seconds until the next entry is due."""
        await self._drain(None, failing=False)
        following = await self._store.read(DueEntries(self._policy, LATEST, 1))
        if not following or following[0].due_at is None:
            return _LONGEST_WAIT_SECONDS
        wait = (following[0].due_at - self._clock()) / 1_000_000
        return min(max(wait, self._debounce), _LONGEST_WAIT_SECONDS)

    async def _drain(self, progress: Progress | None, *, failing: bool) -> Done:
        if self._policy == "none":
            return Done(0)
        return await metered(self._metrics, "summarising", self._drain_all(progress, failing=failing))

    async def _drain_all(self, progress: Progress | None, *, failing: bool) -> Done:
        async with self._one_at_a_time:
            digest = await self._loaded()
            await digest.walk()
            drain = _Drain(self._store, digest, progress, self._give_way)
            try:
                await drain.run(self._concurrency, failing=failing)
            finally:
                entries = await self._store.read(DueEntries(self._policy, 0, _PAGE, failing=True))
                found = {(entry.subject.space, entry.subject.user): entry.error or "" for entry in entries}
                for whose in [each for each in found if each not in self._failing]:
                    said = "the summaries of %s were active and are failing now: %s"
                    _health.warning(said, " ".join(whose), found[whose])
                for whose in [each for each in self._failing if each not in found]:
                    _health.warning("the summaries of %s were failing and are active now", " ".join(whose))
                self._failing = found
            if drain.made:
                self._last_update = moment(self._clock())
            return Done(drain.made, drain.error)

    async def _loaded(self) -> Digest:
        if self._digest is None:
            self._digest = await asyncio.to_thread(self._load)
        return self._digest

    def _clock(self) -> int:
        return now() if self._digest is None else self._digest.clock()


class _Drain:
    """One run over all due entries."""

    def __init__(self, store: Store, digest: Digest, progress: Progress | None, give_way: GiveWay) -> None:
        self._store = store
        self._give_way = give_way
        self._digest = digest
        self._progress = progress
        self._left_alone: set[Subject] = set()
        self._tries: dict[Subject, int] = {}
        self._in_a_row = 0
        self._messages = 0
        self._total = 0
        self.made = 0
        self.error: str | None = None

    async def run(self, concurrency: int, *, failing: bool) -> None:
        """Work until no due entry is left that can be done."""
        self._total = (await self._digest.backlog()).messages
        while self._in_a_row < _HOPELESS:
            due = await self._digest.due(_PAGE + len(self._left_alone), failing=failing)
            queue = deque(entry.subject for entry in due if entry.subject not in self._left_alone)
            if not queue:
                break
            try:
                async with asyncio.TaskGroup() as tasks:
                    for _ in range(min(concurrency, len(queue))):
                        tasks.create_task(self.work_off(queue))
            except ExceptionGroup as group:
                # The first error is enough: the other tasks were cancelled, or failed for the same reason.
                raise group.exceptions[0] from group
        if self.error is None:
            await self._redo()

    async def work_off(self, queue: deque[Subject]) -> None:
        """Do one step for each entry in turn, the longest waiting first, so that a long history delays nobody."""
        while queue and self._in_a_row < _HOPELESS:
            await self._give_way()
            if not queue:
                return
            subject = queue.popleft()
            entry = await self._store.read(PlannedEntry(subject))
            if entry is None or entry.due_at is None:
                continue
            try:
                step = await self._digest.step(entry)
            except ModelError as error:
                # Record a failure and schedule a retry with exponential backoff.
                _log.warning("a summary of %s could not be made and is retried later: %s", _shown(subject), error)
                # Before the first await, because other tasks are about to call the same model.
                # A spending limit of a user is not a failure of the model.
                self._in_a_row += not isinstance(error, SpendingLimit)
                pause = min(_FIRST_PAUSE << min(entry.failures, 16), _LONGEST_PAUSE)
                if isinstance(error, ModelUnavailable) and error.retry_after is not None:
                    pause = max(pause, round(error.retry_after * 1_000_000))
                due_at = self._digest.clock() + pause
                await self._store.apply([FinishEntry(subject, entry.last_seq, due_at, error=str(error))])
                self._left_alone.add(subject)
                self.error = str(error)
                continue
            self._in_a_row = 0
            self.made += len(step.made)
            self._messages += step.messages
            if self._progress is not None and step.made:
                self._total = max(self._total, self._messages)
                self._progress("summarising", self._messages, self._total)
            if step.made or await self._still_due(subject):
                queue.append(subject)

    async def _still_due(self, subject: Subject) -> bool:
        """Return whether to retry an entry that another worker changed, or that got new messages."""
        entry = await self._store.read(PlannedEntry(subject))
        if entry is None or entry.due_at is None or entry.due_at > self._digest.clock():
            return False
        self._tries[subject] = self._tries.get(subject, 0) + 1
        if self._tries[subject] > _TRIES:
            self._left_alone.add(subject)
            return False
        return True

    async def _redo(self) -> None:
        after = 0
        while summaries := await self._digest.summaries_to_rewrite(_PAGE, after):
            for summary in summaries:
                after = summary.id
                if not summary.valid:
                    continue  # its messages have no words that a model could summarise
                try:
                    made = await self._digest.rewrite_with_model(summary)
                except NotFound:
                    continue
                except ModelError as error:
                    _log.warning("a summary made without a model could not be rewritten by one yet: %s", error)
                    return
                if made is None:
                    return
                self.made += 1


def _shown(subject: Subject) -> str:
    return " ".join(repr(name) for name in subject[1:] if name)
