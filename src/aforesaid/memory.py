"""The front door, for async code. It checks what callers pass and hands on; it decides nothing itself."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from aforesaid.background import BackgroundLoops
from aforesaid.contexts import Contexts, UserContexts
from aforesaid.domain import checks
from aforesaid.domain.clock import now
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.words import Role, SettingValue
from aforesaid.errors import InvalidInput
from aforesaid.knowledge import Handle, Knowledge, UserKnowledge
from aforesaid.memories import AllMemories, UserMemories
from aforesaid.messages import UserMessages
from aforesaid.models.embed import CachingEmbedder, Embedder, choose_embedder
from aforesaid.operations import MemoryOperations, Services, UserOperations
from aforesaid.profiles import Profile, load_profile
from aforesaid.recall import Recall
from aforesaid.settings import Settings, as_settings
from aforesaid.store import Store
from aforesaid.store.announcing import Announcements, announcing
from aforesaid.store.failover import open_with_failover
from aforesaid.summaries import Digests, UserSummaries
from aforesaid.telemetry import Metrics, timed
from aforesaid.transfer import MemoryTransfer
from aforesaid.upkeep import Cleaning, Digesting, Embedding, Extracting, Upkeep

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat

_log: Final = logging.getLogger("aforesaid")


def connect(
    location: str | os.PathLike[str] | None = None,
    *,
    profile: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    embedder: str | Embedder | None = None,
    settings: Settings | Mapping[str, object] | str | os.PathLike[str] | None = None,
) -> Connecting:
    """Open a memory for async code, until the end of a block or until it is closed.

        async with aforesaid.connect("memory.db") as memory: ...
        memory = await aforesaid.connect("memory.db")

    `location` is a path or `sqlite:PATH` (a SQLite file, made if it is not there), `json:PATH` (one JSON file),
    `files:PATH` (a folder of account folders), `postgresql://…`, or `:memory:`. Without it, memory is kept where
    AFORESAID_STORE or `aforesaid.toml` says, or in the platform's folder for application data.

    `embedder` finds messages by their meaning: `local` (the default, offline), `process` (the same in a process of its
    own, for servers), `PROVIDER:MODEL` or `MODEL@BASE_URL` for any server that speaks OpenAI's API, `none` for words
    alone; or AFORESAID_EMBEDDER.

    `settings` is the path of a `aforesaid.toml`, or single settings by their dotted names, as
    `{"models.default": "ollama:llama3.2"}`. Without it, the usual files and variables are read.
    """
    known = as_settings(settings)
    for warning in known.warnings:
        _log.warning("%s", warning)
    metrics = Metrics()
    chosen = choose_embedder(embedder, known, metrics=metrics)
    return Connecting(
        known.store if location is None else location,
        load_profile(known.profile if profile is None else profile),
        None if chosen is None else CachingEmbedder(chosen),
        known,
        metrics,
    )


class Connecting:
    """A memory that is about to be opened."""

    def __init__(
        self,
        location: str | os.PathLike[str] | None,
        profile: Profile,
        embedder: Embedder | None,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        """Use `connect`."""
        self._location = location
        self._profile = profile
        self._embedder = embedder
        self._settings = settings
        self._metrics = metrics
        self._memory: Memory | None = None

    def __await__(self) -> Generator[Any, None, Memory]:
        """Open it."""
        return self._open().__await__()

    async def __aenter__(self) -> Memory:
        """Open it until the end of the block."""
        self._memory = await self._open()
        return self._memory

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        if self._memory is not None:
            await self._memory.close()

    async def _open(self) -> Memory:
        store = await open_with_failover(self._location, self._settings.fallback)
        chat = _chat(self._settings, store, self._metrics)
        return Memory(store, self._profile, self._embedder, chat, self._settings, metrics=self._metrics)


def _chat(settings: Settings, store: Store, metrics: Metrics) -> Chat | None:
    """Return the models that are configured, if any are: their libraries are not loaded for nothing."""
    if not any(route.chain for operation, route in settings.routes.items() if operation != "embed"):
        return None
    from aforesaid.models.chat import open_chat  # noqa: PLC0415
    from aforesaid.models.resilience.ledger import StoreLedger  # noqa: PLC0415

    return open_chat(settings, ledger=StoreLedger(store), metrics=metrics)


class Memory(AllMemories, MemoryOperations, MemoryTransfer):
    """All that is remembered, of all users."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        embedder: Embedder | None,
        chat: Chat | None,
        settings: Settings | None = None,
        clock: Callable[[], int] = now,
        metrics: Metrics | None = None,
    ) -> None:
        """Use `connect` or `open`. `clock` is what decides which day it is."""
        counted = Metrics() if metrics is None else metrics
        self.changes = Announcements()
        store = announcing(store, self.changes)
        known, loops = settings or Settings(), BackgroundLoops()
        knowledge = Knowledge(store, profile, chat, embedder, counted, loops if known.background else None)
        AllMemories.__init__(self, knowledge)
        self._digests = Digests(store, profile, chat, embedder, settings, clock, counted)
        cleaning = Cleaning(store, known.retention, self._digests.load, counted, clock, loops)
        upkeep = Upkeep(
            [
                Embedding(store, embedder, counted, loops),
                Extracting(
                    store,
                    self._knowledge.extractor,
                    enabled=profile.extract,
                    observe=self._knowledge.observe,
                    metrics=counted,
                    loops=loops,
                ),
                Digesting(store, profile.summaries, self._digests.load, metrics=counted, loops=loops),
                cleaning,
            ],
            background=known.background,
        )
        MemoryOperations.__init__(self, Services(store, profile, upkeep, cleaning, chat, counted, known, loops))
        self._profile = profile
        self._recall = Recall(store, embedder)
        self._contexts = Contexts(store, self._recall, profile, self._knowledge)

    def user(
        self,
        user: str | int,
        *,
        space: str | int = DEFAULT_SPACE,
        thread: str | int | None = None,
        session: str | int | None = None,
        actor: str | None = None,
    ) -> UserMemory:
        """Return the memory of one user.

        Without a thread, messages go to the user's own direct chat. With one, `within="thread"` also reaches what
        others said there. A session, if named, holds the messages that are added through this handle. With an `actor`,
        the audit log names who changed what is known about the user, and who looked at it.
        """
        scope = Scope.of(user, space, thread, session)
        if scope.user == EVERYBODY:
            raise InvalidInput(f"nobody can be called {EVERYBODY!r}: it stands for everybody in a space")
        return UserMemory(self._knowledge, self._digests, self._contexts, self._services, scope, self._recall, actor)

    def _forget_what_is_at_hand(self) -> None:
        self._knowledge.portraitist.forget_all()
        self._recall.forget_all()
        self._contexts.forget_all()

    async def ingest_message(
        self,
        space: str | int,
        user: str | int,
        text: str,
        *,
        thread: str | int | None = None,
        role: Role = "user",
        at: datetime | None = None,
        id: str | int | None = None,  # noqa: A002 - the platform's id of the message
        name: str | None = None,
    ) -> Receipt:
        """Store a message of a space, such as one of a community's channels. The same as `user(…).add(…)`."""
        there = self.user(user, space=space, thread=thread)
        return await there.add(role, text, at=at, id=id, name=name)

    async def get_memories(self, space: str | int, user: str | int) -> str | None:
        """Return what is known about a user as one text, or None. The same as `user(…).portrait()`."""
        return await self.user(user, space=space).portrait()

    @property
    def store(self) -> Store:
        """The store below, for whoever builds on it. What is changed there passes by all rules but its own."""
        return self._store

    @property
    def models(self) -> Chat | None:
        """The models that are configured; None where there are none."""
        return self._services.chat

    @timed("settings")
    async def settings(self, space: str | int = DEFAULT_SPACE) -> dict[str, SettingValue]:
        """Return what was set for everybody in a space."""
        return await self._contexts.effective.of_space(checks.identifier(space, "the space"))

    @timed("set")
    async def set(
        self, key: str, value: SettingValue, *, space: str | int = DEFAULT_SPACE, actor: str | None = None
    ) -> None:
        """Change a setting for everybody in a space; None takes it back. It acts at once, in other processes soon.

        What is set for a single user (`user(…).set`) goes before it. The audit log names the `actor`.
        """
        who = "aforesaid" if actor is None else checks.identifier(actor, "the actor")
        await self._contexts.effective.set(Scope.of(EVERYBODY, space), key, value, who)

    async def close(self) -> None:
        """Finish what was handed in and let go of the file. Closing twice is fine."""
        await self._services.close()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()


class UserMemory(UserMessages, UserKnowledge, UserMemories, UserSummaries, UserContexts, UserOperations):
    """What is remembered of one user."""

    def __init__(
        self,
        knowledge: Knowledge,
        digests: Digests,
        contexts: Contexts,
        services: Services,
        scope: Scope,
        recall: Recall,
        actor: str | None = None,
    ) -> None:
        """Use `Memory.user`."""
        Handle.__init__(self, knowledge, scope, actor)
        UserSummaries.__init__(self, digests, scope)
        UserContexts.__init__(self, contexts, scope)
        UserOperations.__init__(self, services, scope)
        self._recall = recall

    async def _observe(self) -> None:
        """Have the days summarised that are read next, where they are summarised at all."""
        if self._digests.profile.summaries == "calendar":
            await self.day()
            await self.week()
