"""The async API. It validates arguments and delegates."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from aforesaid.domain import checks
from aforesaid.domain.checks import Role, SettingValue
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.errors import InvalidInput
from aforesaid.front.contexts import UserContexts, UserReceipts
from aforesaid.front.handle import IN_METHOD, NOBODY, ReceiptKeeper, Services, public
from aforesaid.front.memories import AllMemories, UserKnowledge, UserMemories, UserTimeline
from aforesaid.front.messages import UserConversations, UserMessages
from aforesaid.front.operations import MemoryOperations, MemoryTransfer, UserOperations
from aforesaid.front.summaries import UserSummaries
from aforesaid.models.embed import CachingEmbedder, Embedder, choose_embedder
from aforesaid.profiles import Profile, load_profile
from aforesaid.recall import RecallQueue
from aforesaid.settings import Settings, as_settings
from aforesaid.store import Store
from aforesaid.store.contract import Announcements
from aforesaid.store.failover import open_with_failover
from aforesaid.store.locations import attachments_of, default_location
from aforesaid.telemetry import Metrics
from aforesaid.telemetry.tracing import open_tracing

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat
    from aforesaid.models.reader import Intents

_log: Final = logging.getLogger("aforesaid")


def connect(
    location: str | os.PathLike[str] | Store | None = None,
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
    `aforesaid.toml`, or `memory.db` in the platform's data folder. It may also be an open `Store` of your own, which
    has no fallback, and is closed with the memory.

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
    if known.tracing.enabled:
        metrics.tracing = open_tracing(known.tracing.endpoint, content=known.tracing.content)
    chosen_profile = known.profile if profile is None else profile
    chosen = choose_embedder(embedder, known, metrics=metrics)
    where, made = known.store if location is None else location, load_profile(chosen_profile)
    named = "custom" if isinstance(chosen_profile, Mapping) else Path(chosen_profile).stem
    cached = None if chosen is None else CachingEmbedder(chosen, metrics)
    return Connecting(partial(_open, where, made, cached, known, metrics, named))


class Connecting:
    """An unopened memory; await it, or use it in `async with`."""

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, Memory]]) -> None:
        """Use `connect`."""
        self._opening = opening
        self._memory: Memory | None = None

    def __await__(self) -> Generator[Any, None, Memory]:
        """Open the memory."""
        return self._opening().__await__()

    async def __aenter__(self) -> Memory:
        """Open the memory for the block."""
        self._memory = await self._opening()
        return self._memory

    async def __aexit__(self, *error: object) -> None:
        """Close the memory."""
        if self._memory is not None:
            await self._memory.close()

    if not TYPE_CHECKING:  # type checkers find the mistake by themselves

        def __getattr__(self, name: str) -> object:
            """Say how to open it, whatever is asked for."""
            raise AttributeError(
                f"the memory is not open, so it has no {name!r}: write `async with aforesaid.connect(…) as memory`, "
                "or `memory = await aforesaid.connect(…)`",
                name=name,
                obj=self,
            )


async def _open(
    location: str | os.PathLike[str] | Store | None,
    profile: Profile,
    embedder: Embedder | None,
    settings: Settings,
    metrics: Metrics,
    profile_name: str,
) -> Memory:
    store = location if isinstance(location, Store) else await open_with_failover(location, settings.fallback)
    services = Services(
        store,
        profile,
        embedder,
        _chat(settings, store, metrics),
        settings,
        metrics=metrics,
        attachments=attachments_of(location, settings.attachments),
        profile_name=profile_name,
    )
    await services.start()
    named = default_location() if location is None else location
    return Memory(services, None if isinstance(named, Store) else str(named))


def _chat(settings: Settings, store: Store, metrics: Metrics) -> Chat | None:
    """Return the configured models, or None. Without any, their libraries are not imported."""
    if not any(route.chain for operation, route in settings.routes.items() if operation != "embed"):
        return None
    from aforesaid.models.chat import open_chat  # noqa: PLC0415
    from aforesaid.models.resilience import StoreLedger  # noqa: PLC0415

    return open_chat(settings, ledger=StoreLedger(store), metrics=metrics)


class Memory(AllMemories, MemoryOperations, MemoryTransfer):
    """The memory of all users."""

    def __init__(self, services: Services, location: str | None = None) -> None:
        """Use `connect` or `open`."""
        super().__init__(services)
        self._location = location

    @property
    def location(self) -> str | None:
        """The location of the store; None for a store that was given as an object."""
        return self._location

    @public(unaudited="reads nothing", untimed="reads nothing")
    def user(
        self,
        user: str | int,
        *,
        space: str | int = DEFAULT_SPACE,
        thread: str | int | None = None,
        chat: str | int | None = None,
        session: str | int | None = None,
        actor: str | None = None,
    ) -> UserMemory:
        """Return the memory of one user.

        Without a thread or a chat, messages go to the user's direct chat. A `thread` is a channel that users share:
        `within="thread"` also includes other users' messages in it. A `chat` is one of the user's private chats, as in
        `user(…).chat(…)`. `session` is the session of messages added through this handle. With an `actor`, the audit
        log records who changed and who viewed the user's memory.
        """
        scope = Scope.of(user, space, thread, session, chat)
        if scope.user == EVERYBODY:
            raise InvalidInput(f"{EVERYBODY!r} cannot be a user id: it means all users of a space", "user")
        return UserMemory(self._services, scope, actor)

    @public(unaudited="the log itself shows what was stored", untimed="`add` is timed")
    async def ingest_message(
        self,
        space: str | int,
        user: str | int,
        text: str,
        *,
        thread: str | int | None = None,
        chat: str | int | None = None,
        role: Role = "user",
        at: datetime | None = None,
        id: str | int | None = None,  # noqa: A002 - the platform's id of the message
        name: str | None = None,
    ) -> Receipt:
        """Store a message. The same as `user(…).add(…)`."""
        there = self.user(user, space=space, thread=thread, chat=chat)
        return await there.add(role, text, at=at, id=id, name=name)

    @public(audit=IN_METHOD, untimed="`portrait` is timed")
    async def get_memories(self, space: str | int, user: str | int, *, actor: str | None = None) -> str | None:
        """Return what is known about a user as one text, or None. The same as `user(…).portrait()`."""
        return await self.user(user, space=space, actor=actor).portrait()

    @property
    def store(self) -> Store:
        """The underlying store. Changes made there bypass all checks but its own."""
        return self._services.store

    @property
    def changes(self) -> Announcements:
        """Announces every change of the store to listeners of this process."""
        return self._services.changes

    @property
    def models(self) -> Chat | None:
        """The configured models, or None."""
        return self._services.chat

    @property
    def intents(self) -> Callable[[Sequence[str]], Awaitable[list[Intents]]]:
        """Read what texts want, such as to tell, to ask or to be reminded."""
        return self._services.intents

    @property
    def learn(self) -> Callable[[Scope], Awaitable[bool]]:
        """Extract memories from the pending messages of a user now, as a bot does that says what it noted."""
        return self._services.learning.learn_from

    @property
    def recall_queue(self) -> RecallQueue:
        """Limits how many searches and contexts run at a time."""
        return self._services.recall_queue

    @property
    def receipt_keeper(self) -> ReceiptKeeper:
        """Stores receipts of contexts in the background."""
        return self._services.receipts

    @public(audit=IN_METHOD)
    async def settings(self, space: str | int = DEFAULT_SPACE, *, actor: str | None = None) -> dict[str, SettingValue]:
        """Return the settings of a space. With an `actor`, the audit log names who looked."""
        where = checks.identifier(space, "the space", "space")
        found = await self._services.effective.of_space(where)
        await self.record_access("settings.read", "settings", actor=actor, space=where)
        return found

    @public(audit=IN_METHOD)
    async def set(
        self, key: str, value: SettingValue, *, space: str | int = DEFAULT_SPACE, actor: str | None = None
    ) -> None:
        """Change a setting of a space; None removes it. It takes effect immediately, in other processes in a second.

        A user's own setting (`user(…).set`) overrides it. The audit log records the `actor`.
        """
        who = NOBODY if actor is None else checks.identifier(actor, "the actor")
        await self._services.effective.set(Scope.of(EVERYBODY, space), key, value, who)

    @public(unaudited="reads nothing", untimed="the metrics end with the memory")
    async def close(self) -> None:
        """Finish pending writes and close the store. A second call does nothing."""
        await self._services.close()

    async def __aenter__(self) -> Self:
        """Return the memory."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the memory."""
        await self.close()


class UserMemory(
    UserMessages,
    UserConversations,
    UserKnowledge,
    UserMemories,
    UserTimeline,
    UserSummaries,
    UserContexts,
    UserReceipts,
    UserOperations,
):
    """The memory of one user."""

    @public(unaudited="reads nothing", untimed="reads nothing")
    def chat(self, chat: str | int) -> UserMemory:
        """Return the memory of the same user in one of several private chats, such as a session of an app.

        Like the direct chat, a chat belongs to the user alone: its contexts go on with its own messages, and recall
        what was said in the user's other chats. A thread that `Memory.user` names is a channel: its contexts include
        nothing that was said in private.
        """
        space, user, _, session = self.scope
        return UserMemory(self._services, Scope.of(user, space, session=session, chat=chat), self._actor)
