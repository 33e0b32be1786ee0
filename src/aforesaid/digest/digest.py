"""The digest of one store: makes due summaries, one step at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.digest.agenda_subjects import affected_subjects
from aforesaid.digest.executor import Clock, Executor
from aforesaid.digest.steps import Step, steps_of
from aforesaid.digest.writing import Writer
from aforesaid.domain.checks import now
from aforesaid.domain.scope import Backlog, Entry
from aforesaid.domain.setting import wants_memory
from aforesaid.domain.summary import Advance, FinishEntry
from aforesaid.errors import NotFound, SourcesChanged
from aforesaid.models.embed import Embedder
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import settings_of
from aforesaid.profiles.recipe import POLICIES
from aforesaid.settings import Settings
from aforesaid.store import questions
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
        """Add new messages of the log to the agenda. Return their number."""
        if self.steps is None:
            return 0
        passed = 0
        while True:
            after, page = await self._store.read(questions.Unprocessed(self.policy, _PAGE))
            if not page:
                return passed
            found = affected_subjects(self.policy, page, self.clock(), self.executor.profile.zone)
            try:
                advance = Advance(self.policy, after, page[-1].seq, found, page[-1].space, len(page))
                await self._store.apply([advance])
            except SourcesChanged:
                continue  # another worker has walked here, or messages were erased; go on from what there is now
            passed += len(page)

    async def due(self, limit: int, *, failing: bool = False) -> list[Entry]:
        """Return due entries, the longest waiting first."""
        return (
            await self._store.read(questions.DueEntries(self.policy, self.clock(), limit, failing=failing))
            if self.steps
            else []
        )

    async def backlog(self) -> Backlog:
        """Return the backlog."""
        return await self._store.read(questions.PolicyBacklog(self.policy, self.clock()))

    async def step(self, entry: Entry) -> Step:
        """Do one step for an entry, or mark it as done. Raises ModelError if a required model does not answer."""
        if self.steps is None:
            return Step()
        if not await self._wanted(entry):
            await self._store.apply([FinishEntry(entry.subject, entry.last_seq, None)])
            return Step()
        try:
            step = await self.steps.step(entry)
        except (NotFound, SourcesChanged):
            # Another worker did it or a part of it, or a source was edited, taken back or erased. The next check finds
            # the rest.
            return Step()
        if not step.made:
            await self._store.apply([FinishEntry(entry.subject, entry.last_seq, step.look_again_at)])
        return step

    async def _wanted(self, entry: Entry) -> bool:
        """Return whether summaries are on for the user. A day of a whole space is always summarised."""
        if POLICIES[self.policy].subject == "day":
            return True
        return wants_memory(await settings_of(self._store, entry.subject.scope))
