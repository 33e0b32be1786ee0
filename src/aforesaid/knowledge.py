"""The API for facts, portraits and preferences of a user."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import cached_property
from typing import TYPE_CHECKING

from aforesaid.auditing import NOBODY, Audited, audited, audited_inside
from aforesaid.domain import checks
from aforesaid.domain.arguments import checked
from aforesaid.domain.known_ids import KnownIds
from aforesaid.domain.memory import Facts, MemoryRecord
from aforesaid.domain.memory_change import AuditAccess
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.profiles import Profile
from aforesaid.store import Store, questions
from aforesaid.telemetry import Metrics, timed

if TYPE_CHECKING:
    from aforesaid.background import BackgroundLoops
    from aforesaid.facts import (
        Curator,
        Extractor,
        FactEditor,
        ForgetResult,
        HabitCounter,
        Portraitist,
        Preferences,
        RememberResult,
    )
    from aforesaid.models.chat import Chat
    from aforesaid.models.embed import Embedder


class Knowledge:
    """The services for facts and memories, for all users of a store. Each is loaded when it is first needed."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        chat: Chat | None,
        embedder: Embedder | None,
        metrics: Metrics,
        loops: BackgroundLoops | None = None,
    ) -> None:
        """Work on a store. Without `loops`, nothing is done in the background."""
        self._loops = loops
        self.store = store
        self.profile = profile
        self._chat = chat
        self._embedder = embedder
        self.metrics = metrics
        self.ids = KnownIds()
        """The spelling of ids in this store."""

    @cached_property
    def fact_editor(self) -> FactEditor:
        """The editor of facts."""
        from aforesaid.facts import FactEditor  # noqa: PLC0415

        return FactEditor(self.store, self.profile, self._chat)

    @cached_property
    def curator(self) -> Curator:
        """The editor of memories."""
        from aforesaid.facts import Curator  # noqa: PLC0415

        return Curator(self.store, self.profile)

    @cached_property
    def portraitist(self) -> Portraitist:
        """The portraits."""
        from aforesaid.facts import Portraitist  # noqa: PLC0415

        return Portraitist(self.store, self.profile, self._chat, self.metrics, self._loops)

    @cached_property
    def habit_counter(self) -> HabitCounter:
        """The counter of habits."""
        from aforesaid.facts import HabitCounter  # noqa: PLC0415

        return HabitCounter(self.store, self.profile)

    async def portrait(
        self, scope: Scope, memories: Awaitable[list[MemoryRecord]], summaries: Awaitable[list[Summary]]
    ) -> str | None:
        """Return the portrait without calling a model. Values that are passed are not read again."""
        return await self.portraitist.without_waiting(scope, memories, summaries)

    async def habits(self, scope: Scope) -> str:
        """Return the counted habits of a user."""
        return await self.habit_counter.stored_habits(scope)

    async def observe(self, scope: Scope) -> None:
        """Update the counted habits of a user."""
        await self.habit_counter.preferences(scope)

    def extractor(self) -> Extractor:
        """Return an extractor of memories."""
        from aforesaid.facts import Extractor  # noqa: PLC0415

        return Extractor(self.store, self.profile, self._chat, self._embedder)


class Handle(Audited):
    """A handle on the memory of one user, with the actor of its changes."""

    _metrics: Metrics

    def __init__(self, knowledge: Knowledge, scope: Scope, actor: str | None) -> None:
        """Use `Memory.user`."""
        self._knowledge = knowledge
        self._metrics = knowledge.metrics
        self._actor = None if actor is None else checks.identifier(actor, "the actor")
        self.scope = scope

    @property
    def known_ids(self) -> KnownIds:
        """The spelling of ids."""
        return self._knowledge.ids

    @property
    def _who(self) -> str:
        return self._actor or NOBODY

    @property
    def _audited(self) -> bool:
        return self._actor is not None

    @timed("record_access")
    @audited_inside
    @checked()
    async def record_access(self, action: str, subject: str) -> None:
        """Add a row to the audit log: who viewed what. Does nothing if the handle has no actor."""
        await self._noted(action, subject)

    async def _noted(self, action: str, subject: str) -> None:
        """Record an access in the audit log, if the handle has an actor."""
        if self._actor is not None:
            await self._knowledge.store.apply([AuditAccess(self.scope, self._actor, action, subject)])


class UserKnowledge(Handle):
    """Facts, portrait and preferences of one user."""

    @timed("remember")
    @audited_inside
    @checked()
    async def remember(
        self, fact: str, *, by: str | int | None = None, name: str | None = None, about: str | None = None
    ) -> RememberResult:
        """Store a fact: "prefers tea", "I moved to Berlin". A newer fact replaces one that it contradicts.

        `by` is who says so, if not the user; what others say that is sensitive waits for approval, and so does what
        reads like an instruction to a model. `name` is what the user is called. `outcome` says what became of it.
        With `about`, the fact is about somebody else whom the memory does not know, by their name ("Tom"): it becomes a
        memory with the tag `about tom`, and no part of the user's facts and portrait.
        """
        speaker = None if by is None else checks.identifier(by, "by", "by")
        words = checks.filled_text(fact, "the fact", "fact")
        whom = None if about is None else checks.display_name(about)
        return await self._knowledge.fact_editor.remember(
            self.scope, words, by=speaker, name=_name(name), actor=self._who, about=whom
        )

    @timed("forget")
    @audited_inside
    @checked()
    async def forget(self, fact: str, *, name: str | None = None) -> ForgetResult:
        """Forget a fact, in the facts text and in the memories. The result is true if it was known.

        It is not learned again from what had been said until now; saying it again later counts.
        """
        words = checks.filled_text(fact, "what to forget", "fact")
        return await self._knowledge.fact_editor.forget(self.scope, words, name=_name(name), actor=self._who)

    @timed("portrait")
    @audited("portrait.read", "portrait")
    @checked()
    async def portrait(self, *, name: str | None = None) -> str | None:
        """Return what is known about the user as one text: facts, today, the days before. None if nothing is known.

        A model that is configured merges them, once for each state of the three. Without one, or when it fails, there
        are the facts, else today, else the days before.
        """
        await self._observe()
        return await self._knowledge.portraitist.portrait(self.scope, name=_name(name))

    @timed("facts")
    @audited("facts.read", "facts")
    async def facts(self) -> list[Facts]:
        """Return all versions of the facts text, oldest first, each with the request that caused it."""
        return await self._knowledge.store.read(questions.FactsVersions(self.scope))

    @timed("preferences")
    @audited("preferences.read", "preferences")
    async def preferences(self) -> Preferences:
        """Return the user's preferences, counted in their messages: topics, hours, languages, lengths, tone."""
        return await self._knowledge.habit_counter.preferences(self.scope)

    async def _observe(self) -> None:
        """Update the counted habits of the user, if that is done on demand."""


def _name(value: object) -> str | None:
    return None if value is None else checks.display_name(value)
