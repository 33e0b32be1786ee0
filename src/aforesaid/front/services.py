"""The services of one open memory, which all parts of the API share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from aforesaid.background import BackgroundLoops, close_all
from aforesaid.domain.caches import clear_text_caches
from aforesaid.domain.checks import now
from aforesaid.domain.details import KnownIds
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.errors import StoreError
from aforesaid.front.receipt_keeper import ReceiptKeeper
from aforesaid.models.client import models_health
from aforesaid.models.embed import Forgetting
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import EffectiveSettings
from aforesaid.profiles.recipe import Recipe
from aforesaid.recall import Recall, RecallQueue
from aforesaid.settings import Keep, Settings
from aforesaid.store import Store, questions
from aforesaid.store.announcing import Announcements, announcing
from aforesaid.store.attachments import Attachments, attaching
from aforesaid.telemetry import Metrics
from aforesaid.telemetry.metrics import SessionLog
from aforesaid.upkeep import Cleaning, Digesting, Embedding, Extracting, Upkeep, Watch, loops_health

if TYPE_CHECKING:
    from aforesaid.context import Builder
    from aforesaid.digest import Digest
    from aforesaid.facts import Curator, Extractor, FactEditor, HabitCounter, Portraitist
    from aforesaid.models.chat import Chat
    from aforesaid.models.embed import Embedder
    from aforesaid.models.rerank import Reranker

_log: Final = logging.getLogger("aforesaid")
_MOST_RECIPES: Final = 10_000
"""Maximum number of users whose last recipe is cached."""
_RESUME_SECONDS: Final = 3.0
"""Seconds after which a process that has opened a store does the work that earlier ones left."""


class Services:
    """The services of one open memory, for all users. Those that take long to import are loaded on first use."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        embedder: Embedder | None,
        chat: Chat | None,
        settings: Settings | None = None,
        clock: Callable[[], int] = now,
        metrics: Metrics | None = None,
        attachments: Attachments | None = None,
        profile_name: str = "",
    ) -> None:
        """Work on a store. `clock` returns the current time in microseconds. Attachments are in memory by default."""
        self.changes = Announcements()
        self.attachments = attachments or Attachments(None)
        self.store = announcing(attaching(store, self.attachments), self.changes)
        self.profile = profile
        self.profile_name = profile_name
        self.chat = chat
        self.metrics = Metrics() if metrics is None else metrics
        self.loops = BackgroundLoops()
        self.components: dict[str, Callable[[], Component]] = {}
        """Return further components of health, by name."""
        self.ids = KnownIds()
        """The spelling of ids in this store."""
        self.sessions = SessionLog()
        self.effective = EffectiveSettings(self.store, profile)
        self._settings = settings or Settings()
        self._reranker = _reranker(self._settings, self.metrics)
        self.recall = Recall(self.store, embedder, self.metrics, self._reranker)
        self.recall_queue = RecallQueue(self.metrics)
        self.recipes: LRUCache[tuple[str, ...], Recipe] = LRUCache(_MOST_RECIPES)
        """The recipe of each user's last context, by space, user and sections left out: the next is likely the same."""
        self._embedder = embedder
        self._clock = clock
        self.receipts = ReceiptKeeper(self.store, self._settings.receipts, profile_name)
        retention = replace(self._settings.retention, receipts=Keep(purge_days=self._settings.receipts.days))
        self.cleaning = Cleaning(self.store, retention, lambda: self.digest, self.metrics, clock, self.loops)
        give_way = self.recall_queue.give_way
        self.upkeep = Upkeep(
            [
                Embedding(self.store, embedder, self.metrics, self.loops, give_way),
                Extracting(
                    self.store,
                    self.extractor,
                    enabled=profile.extract,
                    observe=self.observe,
                    metrics=self.metrics,
                    loops=self.loops,
                    give_way=give_way,
                ),
                Digesting(
                    self.store,
                    profile.summaries,
                    lambda: self.digest,
                    metrics=self.metrics,
                    loops=self.loops,
                    give_way=give_way,
                ),
                self.cleaning,
            ],
            background=self._settings.background,
        )
        self.watch = Watch(self.store, self._components, self.metrics, self._settings.alerts, loops=self.loops)

    @cached_property
    def builder(self) -> Builder:
        """The builder of contexts."""
        from aforesaid.context import Builder  # noqa: PLC0415

        return Builder(self.store, self.recall, self)

    @cached_property
    def digest(self) -> Digest:
        """The digest, which plans, writes and stores summaries."""
        from aforesaid.digest import Digest  # noqa: PLC0415

        return Digest(self.store, self.profile, self.chat, self._embedder, self._settings, self._clock, self.metrics)

    @cached_property
    def fact_editor(self) -> FactEditor:
        """The editor of facts."""
        from aforesaid.facts import FactEditor  # noqa: PLC0415

        return FactEditor(self.store, self.profile, self.chat)

    @cached_property
    def curator(self) -> Curator:
        """The editor of memories."""
        from aforesaid.facts import Curator  # noqa: PLC0415

        return Curator(self.store, self.profile)

    @cached_property
    def portraitist(self) -> Portraitist:
        """The writer of portraits. It works in the background if this process does background work."""
        from aforesaid.facts import Portraitist  # noqa: PLC0415

        loops = self.loops if self._settings.background else None
        return Portraitist(self.store, self.profile, self.chat, self.metrics, loops)

    @cached_property
    def habit_counter(self) -> HabitCounter:
        """The counter of habits."""
        from aforesaid.facts import HabitCounter  # noqa: PLC0415

        return HabitCounter(self.store, self.profile)

    def extractor(self) -> Extractor:
        """Return an extractor of memories."""
        from aforesaid.facts import Extractor  # noqa: PLC0415

        return Extractor(self.store, self.profile, self.chat, self._embedder, self._encoder)

    @cached_property
    def _encoder(self) -> Embedder | None:
        """The built-in encoder, also beside another embedder: it reads what is worth remembering."""
        from aforesaid.models.embed import built_in_encoder  # noqa: PLC0415

        return built_in_encoder(self._embedder)

    async def portrait(
        self, scope: Scope, memories: Awaitable[list[MemoryRecord]], summaries: Awaitable[list[Summary]]
    ) -> str | None:
        """Return the portrait of a user for a context, without calling a model."""
        return await self.portraitist.without_waiting(scope, memories, summaries)

    async def habits(self, scope: Scope) -> str:
        """Return the counted habits of a user."""
        return await self.habit_counter.stored_habits(scope)

    async def observe(self, scope: Scope) -> None:
        """Update the counted habits of a user."""
        await self.habit_counter.preferences(scope)

    async def start(self) -> None:
        """Read what has to be known before the first call, and go on with the background work that was left.

        Damaged derived data is made again soon. What earlier processes left waits some seconds, so that a short
        program ends without starting it.
        """
        self.upkeep.nudge(0.0 if (await self.store.health()).issues else _RESUME_SECONDS)
        await self.read_known_ids()

    async def read_known_ids(self) -> None:
        """Read which ids the store spells irregularly: on opening, and after an import of rows as they were."""
        try:
            self.ids = KnownIds(await self.store.read(questions.IrregularIds()))
        except StoreError as error:
            _log.warning("ids that are not spelled regularly cannot be reached until the next start: %s", error)

    def clear_caches(self) -> None:
        """Clear all caches that may contain data of a deleted user."""
        self.portraitist.forget_all()
        self.recall.forget_all()
        # Not made here, if nothing was extracted.
        for embedder in (self._embedder, self.__dict__.get("_encoder")):
            if isinstance(embedder, Forgetting):
                embedder.forget_all()
        clear_text_caches()
        self.recipes.clear()
        self.builder.forget_all()

    async def close(self) -> None:
        """End all background loops, then close everything, the store last; also when parts of it fail."""
        models = [model.close for model in (self.chat, self._reranker) if model is not None]
        # Not made here, if nothing was extracted.
        encoder: Embedder | None = self.__dict__.get("_encoder")
        if encoder is not None and encoder is not self._embedder:
            models.append(encoder.close)
        closers = [self.loops.close, self.upkeep.close, self.receipts.close, *models, self.store.close]
        if self.metrics.tracing is not None:
            closers.append(partial(asyncio.to_thread, self.metrics.tracing.close))
        await close_all(*closers)

    async def _components(self) -> list[Component]:
        return [
            await self.store.health(),
            *(await self.upkeep.health()),
            models_health(self.chat),
            *(() if self._reranker is None else (self._reranker.health(),)),
            *(health() for health in self.components.values()),
            loops_health(self.loops.statuses()),
        ]


def _reranker(settings: Settings, metrics: Metrics) -> Reranker | None:
    """Return the configured reranker, or None. Without one, its libraries are not imported."""
    if settings.rerank.model is None:
        return None
    from aforesaid.models.rerank import open_reranker  # noqa: PLC0415

    return open_reranker(settings, metrics)
