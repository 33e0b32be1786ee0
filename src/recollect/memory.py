"""The front door, for async code. It checks what callers pass and hands on; it decides nothing itself."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from recollect.care import MOST_AT_ONCE, AllCare, Care, UserCare
from recollect.contexts import Contexts, UserContexts
from recollect.domain import checks
from recollect.domain.change import AddMessage
from recollect.domain.clock import now
from recollect.domain.hit import Hit
from recollect.domain.memory import Memory as Known
from recollect.domain.message import Message, draft
from recollect.domain.receipt import Receipt
from recollect.domain.scope import DEFAULT_SPACE, Scope
from recollect.domain.session import Session
from recollect.domain.setting import EVERYBODY
from recollect.domain.words import HitKind, Role, SettingValue, Within
from recollect.errors import InvalidInput
from recollect.knowledge import AllKnowledge, Knowledge, UserKnowledge
from recollect.models.embed import Embedder, choose_embedder
from recollect.models.tokens import count_tokens
from recollect.portable import AllPortable
from recollect.profiles import Profile, load_profile
from recollect.recall import ARMS, KINDS, USUAL_KINDS, Arms, Asking, Recall
from recollect.settings import Settings, as_settings
from recollect.store import Store
from recollect.store.failover import open_with_failover
from recollect.summaries import Digests, UserSummaries
from recollect.telemetry import Metrics, timed
from recollect.upkeep import Cleaning, Digesting, Embedding, Extracting, Upkeep

if TYPE_CHECKING:
    from recollect.models.chat import Chat

_log: Final = logging.getLogger("recollect")

MOST_AROUND = 100
"""A hit comes with at most so many messages around it."""


def connect(
    location: str | os.PathLike[str] | None = None,
    *,
    profile: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    embedder: str | Embedder | None = None,
    settings: Settings | Mapping[str, object] | str | os.PathLike[str] | None = None,
) -> Connecting:
    """Open a memory for async code, until the end of a block or until it is closed.

        async with recollect.connect("memory.db") as memory: ...
        memory = await recollect.connect("memory.db")

    `location` is a path or `sqlite:PATH` (a SQLite file, made if it is not there), or `:memory:`. Without it, memory is
    kept in the file that RECOLLECT_STORE or `recollect.toml` names, or in the platform's folder for application data.

    `embedder` finds messages by their meaning: `local` (the default, offline), `PROVIDER:MODEL` or `MODEL@BASE_URL` for
    any server that speaks OpenAI's API, `none` for words alone; or RECOLLECT_EMBEDDER.

    `settings` is the path of a `recollect.toml`, or single settings by their dotted names, as
    `{"models.default": "ollama:llama3.2"}`. Without it, the usual files and variables are read.
    """
    known = as_settings(settings)
    for warning in known.warnings:
        _log.warning("%s", warning)
    metrics = Metrics()
    return Connecting(
        known.store if location is None else location,
        load_profile(known.profile if profile is None else profile),
        choose_embedder(embedder, known, metrics=metrics),
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
    from recollect.models.chat import open_chat  # noqa: PLC0415
    from recollect.models.resilience.ledger import StoreLedger  # noqa: PLC0415

    return open_chat(settings, ledger=StoreLedger(store), metrics=metrics)


class Memory(AllKnowledge, AllCare, AllPortable):
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
        AllKnowledge.__init__(self, Knowledge(store, profile, chat, embedder, counted))
        self._digests = Digests(store, profile, chat, embedder, settings, clock, counted)
        known = settings or Settings()
        cleaning = Cleaning(store, known.retention, self._digests.load, counted, clock)
        upkeep = Upkeep(
            [
                Embedding(store, embedder, counted),
                Extracting(
                    store,
                    self._knowledge.extractor,
                    enabled=profile.extract,
                    observe=self._knowledge.observe,
                    metrics=counted,
                ),
                Digesting(store, profile.summaries, self._digests.load, metrics=counted),
                cleaning,
            ],
            background=known.background,
        )
        AllCare.__init__(self, Care(store, profile, upkeep, cleaning, chat, counted, known))
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
        return UserMemory(self._knowledge, self._digests, self._contexts, self._care, scope, self._recall, actor)

    def _forget_what_is_at_hand(self) -> None:
        self._knowledge.portraitist.forget_all()
        self._recall.forget_all()

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
        return self._care.chat

    @timed("settings")
    async def settings(self, space: str | int = DEFAULT_SPACE) -> dict[str, SettingValue]:
        """Return what was set for everybody in a space."""
        return await self._contexts.standing.of_space(checks.identifier(space, "the space"))

    @timed("set")
    async def set(
        self, key: str, value: SettingValue, *, space: str | int = DEFAULT_SPACE, actor: str | None = None
    ) -> None:
        """Change a setting for everybody in a space; None takes it back. It acts at once, in other processes soon.

        What is set for a single user (`user(…).set`) goes before it. The audit log names the `actor`.
        """
        who = "recollect" if actor is None else checks.identifier(actor, "the actor")
        await self._contexts.standing.set(Scope.of(EVERYBODY, space), key, value, who)

    async def close(self) -> None:
        """Finish what was handed in and let go of the file. Closing twice is fine."""
        await self._care.close()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()


class UserMemory(UserKnowledge, UserSummaries, UserContexts, UserCare):
    """What is remembered of one user."""

    def __init__(
        self,
        knowledge: Knowledge,
        digests: Digests,
        contexts: Contexts,
        care: Care,
        scope: Scope,
        recall: Recall,
        actor: str | None = None,
    ) -> None:
        """Use `Memory.user`."""
        UserKnowledge.__init__(self, knowledge, scope, actor)
        UserSummaries.__init__(self, digests, scope)
        UserContexts.__init__(self, contexts, scope)
        UserCare.__init__(self, care, scope)
        self._store = care.store
        self._recall = recall
        self._upkeep = care.upkeep
        profile = knowledge.profile
        self._message_bytes = profile.message_bytes

    @timed("add")
    async def add(
        self,
        role: Role,
        text: str,
        *,
        at: datetime | None = None,
        id: str | int | None = None,  # noqa: A002 - the platform's id of the message
        author: str | int | None = None,
        name: str | None = None,
    ) -> Receipt:
        """Store a message for good. When this returns, it is on the disk (`receipt.durable`).

        `at` is when it was said (default: now). `id` is the platform's id. A message with an id that the thread has, or
        with the same author, role, text and given `at`, is recognised and not stored twice (`receipt.duplicate`).
        `author` and `name` say who spoke, where that is not the user (or the assistant) itself.
        """
        new = draft(self.scope, role, text, at=at, id=id, author=author, name=name, limit=self._message_bytes)
        silence = await self._contexts.standing.silence(self.scope.space)
        receipt = await self._store.apply([AddMessage(new, silence)])
        self._upkeep.nudge()
        self._care.watch.start()
        self._care.sessions.note(receipt)
        notices = self._upkeep.notices(self.scope)
        return replace(receipt, notices=(*receipt.notices, *notices)) if notices else receipt

    @timed("history")
    async def history(
        self,
        limit: int = 50,
        *,
        before: Message | str | int | None = None,
        archived: bool = True,
        within: Within = "user",
    ) -> list[Message]:
        """Return the newest `limit` messages, oldest first. To read on, pass the first one as `before`.

        `before` is a message, its id or its sequence number. `archived=False` leaves out what a summary stands for.
        """
        await self._noted("messages.read", "history")
        return await self._store.messages(
            self.scope,
            within=_within(within),
            limit=_limit(limit),
            before=await self._sequence_number(before, within),
            archived=archived,
        )

    @timed("search")
    async def search(
        self,
        query: str,
        limit: int = 10,
        *,
        within: Within = "user",
        at: datetime | None = None,
        arms: Arms = "all",
        kinds: Sequence[HitKind] = USUAL_KINDS,
        around: int = 0,
        similarity: float | None = None,
        without: Collection[str] = (),
        tokens: int | None = None,
    ) -> list[Hit]:
        """Return what fits best, by its words and by its meaning, best first.

        The query may hold anything. `at` is when it is asked (default: now), for what "last May" means. `kinds` says
        what is looked for: messages, summaries, memories, whole sessions. `around` adds so many messages around each
        hit, a third before it and two thirds after. `similarity` keeps what is at least as near in meaning (up to 1).
        `without` leaves out messages by their ids, and `tokens` stops before the texts are longer than that. `arms`
        limits the search to `keyword` or `dense` alone. `hit.explain()` says why something was found.
        """
        if arms not in ARMS:
            raise InvalidInput(f"unknown arms={arms!r}; use one of {', '.join(ARMS)}")
        if at is not None:
            checks.microseconds(at, "at")
        asking = Asking(
            query=checks.query_text(query),
            limit=_limit(limit),
            within=_within(within),
            at=at,
            arms=arms,
            kinds=_kinds(kinds),
            around=min(checks.at_least(around, 0, "around"), MOST_AROUND),
            similarity=None if similarity is None else checks.number(similarity, "the similarity"),
            without=frozenset(checks.identifier(each, "an id in `without`") for each in without or ()),
        )
        await self._noted("memory.search", "search")
        hits = await self._recall.search(self.scope, asking)
        return hits if tokens is None else _within_tokens(hits, checks.at_least(tokens, 1, "tokens"))

    @timed("message")
    async def message(self, id: str | int, *, within: Within = "user") -> Message:  # noqa: A002
        """Return one message by its id, or raise NotFound."""
        return await self._store.message(self.scope, checks.identifier(id, "the message"), within=_within(within))

    @timed("read_memory")
    async def read_memory(self, memory: int) -> Known:
        """Return one memory of the user, in whatever state it is."""
        await self._noted("memory.read", f"memory {memory}")
        return await self._store.memory(self.scope, checks.at_least(memory, 1, "the memory"))

    @timed("sessions")
    async def sessions(self, limit: int = 50, *, within: Within = "user") -> list[Session]:
        """Return the newest sessions, oldest first."""
        return await self._store.sessions(self.scope, within=_within(within), limit=_limit(limit))

    async def _observe(self) -> None:
        """Have the days summarised that are read next, where they are summarised at all."""
        if self._digests.profile.summaries == "calendar":
            await self.day()
            await self.week()

    async def _sequence_number(self, before: Message | str | int | None, within: Within) -> int | None:
        if before is None or isinstance(before, Message):
            return None if before is None else before.seq
        if isinstance(before, str):
            return (await self.message(before, within=within)).seq
        return checks.at_least(before, 1, "before")


def _limit(value: object) -> int:
    return min(checks.at_least(value, 1, "the limit"), MOST_AT_ONCE)


def _kinds(kinds: Sequence[HitKind]) -> tuple[HitKind, ...]:
    if isinstance(kinds, str):
        raise InvalidInput(f"kinds must be a list such as [{kinds!r}], not a text")
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidInput(f"unknown kind {kind!r}; use some of {', '.join(KINDS)}")
    return tuple(kinds)


def _within_tokens(hits: Sequence[Hit], tokens: int) -> list[Hit]:
    """Take hits as long as their texts fit; one that is too long does not keep shorter ones out."""
    kept = []
    for hit in hits:
        size = count_tokens(hit.text)
        if size <= tokens:
            tokens -= size
            kept.append(hit)
    return kept


def _within(value: Within) -> Within:
    if value not in ("user", "thread", "session"):
        raise InvalidInput(f"unknown within={value!r}; use 'user', 'thread' or 'session'")
    return value
