"""The digest of one store: what is due, one step at a time, and what people ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.digest.agenda_subjects import affected_subjects
from aforesaid.digest.executor import Clock, Executor
from aforesaid.digest.steps import Step, steps_of
from aforesaid.digest.writing import Writer
from aforesaid.domain.agenda import Backlog, Entry
from aforesaid.domain.clock import now
from aforesaid.domain.setting import wants_memory
from aforesaid.domain.summary_change import Settle, Walk
from aforesaid.errors import SourcesChanged
from aforesaid.models.embed import Embedder
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import settings_of
from aforesaid.settings import Settings
from aforesaid.telemetry import Metrics

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat
    from aforesaid.store import Store

_PAGE: Final = 1_000


class Digest:
    """Summaries of one store, by the policy of its profile."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        chat: Chat | None = None,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
        clock: Clock = now,
        metrics: Metrics | None = None,
    ) -> None:
        known = settings or Settings()
        self.policy = profile.summaries
        self.clock = clock
        self.executor = Executor(store, Writer(chat, known.route, profile.zone, embedder), embedder, profile, clock)
        self.steps = steps_of(self.executor)
        self.redo = known.redo
        self.metrics = Metrics() if metrics is None else metrics
        self._store = store

    async def walk(self) -> int:
        """Walk along the log to its end, and put what was passed on the agenda. Return how many messages that were."""
        if self.steps is None:
            return 0
        passed = 0
        while True:
            after, page = await self._store.ahead(self.policy, _PAGE)
            if not page:
                return passed
            found = affected_subjects(self.policy, page, self.clock(), self.executor.profile.zone)
            try:
                await self._store.apply([Walk(self.policy, after, page[-1].seq, found, page[-1].space)])
            except SourcesChanged:
                continue  # another worker has walked here; go on where it stopped
            passed += len(page)

    async def due(self, limit: int, *, failing: bool = False) -> list[Entry]:
        """Return what is due, longest waiting first."""
        return await self._store.agenda(self.policy, self.clock(), limit, failing=failing) if self.steps else []

    async def backlog(self) -> Backlog:
        """Return how much is due."""
        return await self._store.backlog(self.policy, self.clock())

    async def step(self, entry: Entry) -> Step:
        """Do one thing about an entry, or settle it. Raises ModelError when no model answers and one has to."""
        if self.steps is None:
            return Step()
        if not await self._wanted(entry):
            await self._store.apply([Settle(entry.subject, entry.last_seq, None)])
            return Step()
        try:
            step = await self.steps.step(entry)
        except SourcesChanged:
            # Another worker has done it, or part of it. What is left is seen when it is looked at again.
            return Step()
        if not step.made:
            await self._store.apply([Settle(entry.subject, entry.last_seq, step.look_again_at)])
        return step

    async def _wanted(self, entry: Entry) -> bool:
        """Tell whether the user wants anything to be summarised. A day of a whole space is everybody's."""
        if self.policy == "calendar":
            return True
        return wants_memory(await settings_of(self._store, entry.subject.scope))
