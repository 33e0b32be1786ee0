"""The async API. It validates arguments and delegates."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from aforesaid.auditing import audited_inside, not_audited
from aforesaid.background import BackgroundLoops
from aforesaid.contexts import Contexts, UserContexts
from aforesaid.domain import checks
from aforesaid.domain.arguments import checked
from aforesaid.domain.clock import now
from aforesaid.domain.known_ids import KnownIds
from aforesaid.domain.literals import Role, SettingValue
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.errors import InvalidInput, StoreError
from aforesaid.knowledge import Handle, Knowledge, UserKnowledge
from aforesaid.memories import AllMemories, UserMemories
from aforesaid.messages import UserMessages
from aforesaid.models.embed import CachingEmbedder, Embedder, choose_embedder
from aforesaid.operations import MemoryOperations, Services, UserOperations
from aforesaid.profiles import Profile, load_profile
from aforesaid.recall import Recall
from aforesaid.settings import Settings, as_settings
from aforesaid.store import Store, questions
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
    """Open a memory for async code. Use it in an `async with` block, or await it and call `close`.

        async with aforesaid.connect("memory.db") as memory: ...
        memory = await aforesaid.connect("memory.db")

    `location` is a path or `sqlite:PATH` (a SQLite file, created if it does not exist), `json:PATH` (one JSON file),
    `files:PATH` (a folder of account folders), `postgresql://…`, or `:memory:`. Default: AFORESAID_STORE, or `store` in
    `aforesaid.toml`, or `memory.db` in the platform's data folder.

    `embedder` makes search by meaning possible: `local` (the default, offline), `process` (the same in a separate
    process, for servers), `PROVIDER:MODEL` or `MODEL@BASE_URL` for any OpenAI-compatible server, or `none` for keyword
    search only. Default: AFORESAID_EMBEDDER.

    `settings` is the path of an `aforesaid.toml`, or a mapping of dotted names such as
    `{"models.default": "ollama:llama3.2"}`. Default: the usual files and variables.
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
    """An unopened memory; await it, or use it in `async with`."""

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
        """Open the memory."""
        return self._open().__await__()

    async def __aenter__(self) -> Memory:
        """Open the memory for the block."""
        self._memory = await self._open()
        return self._memory

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the memory."""
        if self._memory is not None:
            await self._memory.close()

    async def _open(self) -> Memory:
        store = await open_with_failover(self._location, self._settings.fallback)
        chat = _chat(self._settings, store, self._metrics)
        memory = Memory(store, self._profile, self._embedder, chat, self._settings, metrics=self._metrics)
        if (await store.health()).issues:
            # Damaged files were set aside: their content is made again without waiting for the next message.
            memory._upkeep.nudge()  # noqa: SLF001 - `Memory` is below
        await memory._read_known_ids()  # noqa: SLF001 - a constructor cannot wait
        return memory


def _chat(settings: Settings, store: Store, metrics: Metrics) -> Chat | None:
    """Return the configured models, or None. Without any, their libraries are not imported."""
    if not any(route.chain for operation, route in settings.routes.items() if operation != "embed"):
        return None
    from aforesaid.models.chat import open_chat  # noqa: PLC0415
    from aforesaid.models.resilience.store_ledger import StoreLedger  # noqa: PLC0415

    return open_chat(settings, ledger=StoreLedger(store), metrics=metrics)


class Memory(AllMemories, MemoryOperations, MemoryTransfer):
    """The memory of all users."""

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
        """Use `connect` or `open`. `clock` returns the current time."""
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
        self._recall = Recall(store, embedder, counted)
        self._contexts = Contexts(store, self._recall, profile, self._knowledge)

    @checked()
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

        Without a thread, messages go to the user's direct chat. With one, `within="thread"` also includes other users'
        messages in it. `session` is the session of messages added through this handle. With an `actor`, the audit log
        records who changed and who viewed the user's memory.
        """
        scope = Scope.of(user, space, thread, session)
        if scope.user == EVERYBODY:
            raise InvalidInput(f"{EVERYBODY!r} cannot be a user id: it means all users of a space", "user")
        return UserMemory(self._knowledge, self._digests, self._contexts, self._services, scope, self._recall, actor)

    async def _read_known_ids(self) -> None:
        """Read which ids the store spells irregularly: on opening, and after an import of rows as they were."""
        try:
            self._knowledge.ids = KnownIds(await self._store.read(questions.IrregularIds()))
        except StoreError as error:
            _log.warning("ids that are not spelled regularly cannot be reached until the next start: %s", error)

    def _clear_caches(self) -> None:
        self._knowledge.portraitist.forget_all()
        self._recall.forget_all()
        self._contexts.forget_all()

    @not_audited("the log itself shows what was stored")
    @checked()
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
        """Store a message. The same as `user(…).add(…)`."""
        there = self.user(user, space=space, thread=thread)
        return await there.add(role, text, at=at, id=id, name=name)

    @audited_inside
    @checked()
    async def get_memories(self, space: str | int, user: str | int, *, actor: str | None = None) -> str | None:
        """Return what is known about a user as one text, or None. The same as `user(…).portrait()`."""
        return await self.user(user, space=space, actor=actor).portrait()

    @property
    def store(self) -> Store:
        """The underlying store. Changes made there bypass all checks but its own."""
        return self._store

    @property
    def models(self) -> Chat | None:
        """The configured models, or None."""
        return self._services.chat

    @timed("settings")
    @audited_inside
    @checked()
    async def settings(self, space: str | int = DEFAULT_SPACE, *, actor: str | None = None) -> dict[str, SettingValue]:
        """Return the settings of a space. With an `actor`, the audit log names who looked."""
        where = checks.identifier(space, "the space", "space")
        found = await self._contexts.effective.of_space(where)
        await self.record_access("settings.read", "settings", actor=actor, space=where)
        return found

    @timed("set")
    @audited_inside
    @checked()
    async def set(
        self, key: str, value: SettingValue, *, space: str | int = DEFAULT_SPACE, actor: str | None = None
    ) -> None:
        """Change a setting of a space; None removes it. It takes effect immediately, in other processes in a second.

        A user's own setting (`user(…).set`) overrides it. The audit log records the `actor`.
        """
        who = "aforesaid" if actor is None else checks.identifier(actor, "the actor")
        await self._contexts.effective.set(Scope.of(EVERYBODY, space), key, value, who)

    @not_audited("reads nothing")
    async def close(self) -> None:
        """Finish pending writes and close the store. A second call does nothing."""
        await self._services.close()

    async def __aenter__(self) -> Self:
        """Return the memory."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the memory."""
        await self.close()


class UserMemory(UserMessages, UserKnowledge, UserMemories, UserSummaries, UserContexts, UserOperations):
    """The memory of one user."""

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
        """Summarise the days that are read next, if the profile summarises days."""
        if self._digests.profile.summaries == "calendar":
            from aforesaid.digest import requests  # noqa: PLC0415 - loaded when it is needed

            await requests.day(self._digests.digest, self.scope, None)
            await requests.week(self._digests.digest, self.scope)
