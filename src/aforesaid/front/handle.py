"""What all parts of the API share: the services of an open memory, and how a method is timed, audited and checked."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, wraps
from inspect import iscoroutinefunction, signature
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from cachetools import LRUCache

from aforesaid.background import BackgroundLoops, close_all
from aforesaid.domain import checks
from aforesaid.domain.arguments import Check, argument_check
from aforesaid.domain.caches import clear_text_caches
from aforesaid.domain.checks import moment, now
from aforesaid.domain.context_receipt import ContextReceipt, new_receipt_id
from aforesaid.domain.details import KnownIds
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.report import Component
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.summary import Summary
from aforesaid.errors import AforesaidError, StoreError
from aforesaid.models.client import models_health
from aforesaid.models.embed import Forgetting
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import EffectiveSettings
from aforesaid.profiles.recipe import Recipe
from aforesaid.recall import Recall, RecallQueue
from aforesaid.settings import Keep, Receipts, Settings
from aforesaid.store import Store
from aforesaid.store.attachments import Attachments, attaching
from aforesaid.store.contract import Announcements, announcing
from aforesaid.store.people import AuditAccess, IrregularIds, KeepReceipt, Users
from aforesaid.telemetry import Metrics, SessionLog, done, failed
from aforesaid.upkeep import Cleaning, Digesting, Embedding, Extracting, Upkeep, Watch, loops_health

if TYPE_CHECKING:
    from aforesaid.context import Builder, Context
    from aforesaid.digest import Digest
    from aforesaid.facts import Curator, Extractor, FactEditor, HabitCounter, Portraitist
    from aforesaid.facts.describing import Line
    from aforesaid.models.chat import Chat
    from aforesaid.models.embed import Embedder
    from aforesaid.models.reader import Intents
    from aforesaid.models.rerank import Reranker


_receipts_log: Final = logging.getLogger("aforesaid.receipts")

_TOGETHER: Final = 100
"""Receipts stored in one transaction."""
_MOST_WAITING: Final = 10_000
"""Receipts that wait to be stored, about a kilobyte each. More are dropped, because the store cannot keep up."""


class ReceiptKeeper:
    """Stores the receipts of one open memory."""

    def __init__(self, store: Store, settings: Receipts, profile: str) -> None:
        self._store = store
        self.on: Final = settings.days > 0
        """Whether receipts are stored at all."""
        self.every_context: Final = self.on and settings.contexts
        """Whether each call of `context` stores one."""
        self.profile: Final = profile
        """The name of the memory's profile."""
        self._waiting: deque[ContextReceipt] = deque()
        self._task: asyncio.Task[None] | None = None

    def receipt_of(self, scope: Scope, caller: str, context: Context) -> ContextReceipt:
        """Return the receipt of a context."""
        from aforesaid.context.context import sections_of  # noqa: PLC0415 - loaded when it is needed

        origin, created = context.origin, now()
        return ContextReceipt(
            id=new_receipt_id(created) if origin is None else origin.receipt,
            space=scope.space,
            user=scope.user,
            thread=scope.thread if origin is None else origin.thread,
            at=moment(created) if origin is None else origin.at,
            caller=caller,
            profile="" if origin is None else origin.profile,
            budget=context.budget,
            tokens=context.tokens,
            sections=sections_of(context),
            model=None if origin is None else origin.model,
            milliseconds={} if origin is None else {"context": origin.milliseconds},
            limited=context.limited,
        )

    def keep_later(self, receipt: ContextReceipt) -> None:
        """Store a receipt soon, together with others that wait. A failure is logged."""
        if not self.on:
            return
        if len(self._waiting) >= _MOST_WAITING:
            _receipts_log.warning("a receipt is not stored: %d others wait for the store", len(self._waiting))
            return
        self._waiting.append(receipt)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._store_waiting(), name="receipts")

    async def keep(self, receipt: ContextReceipt) -> None:
        """Store a receipt now."""
        if self.on:
            await self._store.apply([KeepReceipt(receipt)])

    async def settled(self) -> None:
        """Return when all receipts that waited until now are stored, or could not be."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def _store_waiting(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            try:
                await self._store.apply([KeepReceipt(receipt) for receipt in batch])
            except AforesaidError as error:
                _receipts_log.warning("%d receipts of contexts could not be stored: %s", len(batch), error)


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
        self.serving: Final = self._settings.server
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
        self.learning = Extracting(
            self.store,
            self.extractor,
            enabled=profile.extract,
            observe=self.observe,
            metrics=self.metrics,
            loops=self.loops,
            give_way=give_way,
        )
        self.upkeep = Upkeep(
            [
                Embedding(self.store, embedder, self.metrics, self.loops, give_way, read=self.profile.extract),
                self.learning,
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

    async def intents(self, texts: Sequence[str]) -> list[Intents]:
        """Return what each text wants."""
        from aforesaid.models.embed import read_messages  # noqa: PLC0415

        return [each.intents for each in await read_messages(self._encoder, texts)]

    async def portrait(
        self, scope: Scope, memories: Awaitable[list[MemoryRecord]], summaries: Awaitable[list[Summary]]
    ) -> Sequence[Line]:
        """Return the portrait of a user for a context, without calling a model."""
        return await self.portraitist.without_waiting(scope, memories, summaries)

    async def habits(self, scope: Scope) -> str:
        """Return the counted habits of a user."""
        return (await self.habit_counter.stored_preferences(scope)).habits()

    async def observe(self, scope: Scope, after: int, messages: Sequence[Message]) -> None:
        """Update the counted habits of a user."""
        await self.habit_counter.count_new(scope, after, messages)

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
            self.ids = KnownIds(await self.store.read(IrregularIds()))
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
        closers = [self.loops.close, self.upkeep.close, self.receipts.settled, *models, self.store.close]
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


_DECLARATION: Final = "__public__"
"""The attribute of a public method that holds its `Declaration`."""
IN_METHOD: Final = ("", "")
"""The method adds its audit rows itself."""
NOBODY: Final = "aforesaid"
"""The actor of changes where none was named."""
MOST_AT_ONCE: Final = 10_000
"""Maximum number of messages, hits or audit rows that one call returns."""

_TRACED: Final[Mapping[str, Mapping[str, str]]] = {
    "context": {},
    "search": {"gen_ai__operation__name": "retrieval"},
    "summarize": {},
}
"""Operations that have a span, with its attributes."""

Method = TypeVar("Method", bound=Callable[..., Any])


class Declaration(NamedTuple):
    """How a public method is timed and audited."""

    operation: str | None
    """Its name in metrics and logs. None: it is not timed."""
    audit: tuple[str, str] | None
    """Action and subject of its audit row, or IN_METHOD. None: no row."""


def public(
    *,
    audit: tuple[str, str] | None = None,
    unaudited: str = "",
    operation: str = "",
    untimed: str = "",
    unbounded: bool = False,
    loose: tuple[str, ...] = (),
) -> Callable[[Method], Method]:
    """Declare a public method, and add its timing, auditing and checks.

    `audit` is the action and the subject of its audit row; the subject may name parameters in braces, as in
    `memory {memory}`. `unaudited` is the reason why there is no row. `operation` is the name in the metrics (default:
    the method's name), and `untimed` the reason why it is not timed. The duration of an `unbounded` method depends on
    the amount of data, so it is never logged as slow. Of the `loose` parameters only the type is checked.
    """
    if (audit is None) is not bool(unaudited):
        raise TypeError("declare either `audit` or the reason why a method is `unaudited`")

    def decorate(method: Method) -> Method:
        declared = Declaration(None if untimed else operation or method.__name__, audit)
        call = _wrapped(method, declared, argument_check(method, *loose), unbounded=unbounded)
        setattr(call, _DECLARATION, declared)
        return cast("Method", call)

    return decorate


def declaration_of(method: object) -> Declaration | None:
    """Return the declaration of a public method, or None if it has none."""
    return getattr(method, _DECLARATION, None)


def _wrapped(
    method: Callable[..., Any],
    declared: Declaration,
    check: Check,
    *,
    unbounded: bool,
) -> Callable[..., Any]:
    operation, audit = declared
    action, subject = audit or IN_METHOD
    parameters = signature(method) if "{" in subject else None
    attributes = _TRACED.get(operation or "")

    @wraps(method)
    def plain(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return method(self, *check(self._services.ids, args, kwargs), **kwargs)

    if not iscoroutinefunction(method):
        return plain

    @wraps(method)
    async def timed(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        # One coroutine for everything: each further one would cost every call a microsecond.
        began = perf_counter()
        try:
            args = check(self._services.ids, args, kwargs)
            if operation is None or attributes is None or (tracing := self._services.metrics.tracing) is None:
                result = await method(self, *args, **kwargs)
            else:
                with tracing.span(operation, **attributes) as span:
                    result = await method(self, *args, **kwargs)
                    span.note(**_counts(result))
            if action and self._actor is not None:
                named = {} if parameters is None else parameters.bind(self, *args, **kwargs).arguments
                await self._record_view(action, subject.format(**named))
        except BaseException as error:
            if operation is not None:
                failed(self._services.metrics, operation, perf_counter() - began, error)
            raise
        if operation is not None:
            done(self._services.metrics, operation, perf_counter() - began, unbounded=unbounded)
        return result

    return timed


def _counts(result: object) -> dict[str, int]:
    """Return what a span says of a context or of search hits: counts, no text."""
    if isinstance(result, list):
        return {"aforesaid__hits": len(result)}
    names = {"tokens": "aforesaid__tokens", "budget": "aforesaid__budget"}
    return {name: getattr(result, field) for field, name in names.items() if hasattr(result, field)}


class Handle:
    """The base of all parts of the API: the services of one open memory, and the actor, if one is named."""

    _actor: str | None = None

    def __init__(self, services: Services) -> None:
        """Use `connect` or `open`."""
        self._services = services

    @property
    def known_ids(self) -> KnownIds:
        """The spelling of ids."""
        return self._services.ids


class MemoryHandle(Handle):
    """A handle on the memory of all users. Its methods take the actor as an argument."""

    @public(audit=IN_METHOD)
    async def record_access(
        self, action: str, subject: str, *, actor: str | None, space: str | int | None = None
    ) -> None:
        """Add a row to the audit log of a space, or of every space: who did what. Nothing without an `actor`."""
        if space is not None:
            await self._record(actor, action, subject, {checks.identifier(space, "the space", "space")})
        elif actor is not None:
            known = {user.space for user in await self._services.store.read(Users())}
            await self._record(actor, action, subject, known | {DEFAULT_SPACE})

    async def _record(self, actor: str | None, action: str, subject: str, spaces: Iterable[str]) -> None:
        if actor is not None:
            who = checks.identifier(actor, "the actor")
            await self._services.store.apply(
                [AuditAccess(Scope.of(EVERYBODY, space), who, action, subject) for space in sorted(spaces)]
            )


class UserHandle(Handle):
    """A handle on the memory of one user, with the actor of its changes."""

    def __init__(self, services: Services, scope: Scope, actor: str | None = None) -> None:
        """Use `Memory.user`."""
        super().__init__(services)
        self.scope = scope
        self._actor = None if actor is None else checks.identifier(actor, "the actor")

    @property
    def _who(self) -> str:
        return self._actor or NOBODY

    @property
    def actor(self) -> str:
        """Who acts through this handle; `aforesaid` if nobody was named."""
        return self._who

    @public(audit=IN_METHOD)
    async def record_access(self, action: str, subject: str) -> None:
        """Add a row to the audit log: who viewed what. Does nothing if the handle has no actor."""
        await self._record_view(action, subject)

    async def _record_view(self, action: str, subject: str) -> None:
        if self._actor is not None:
            await self._services.store.apply([AuditAccess(self.scope, self._actor, action, subject)])


def at_once(limit: object) -> int:
    """Return a valid limit on the number of results."""
    return min(checks.at_least(limit, 1, "the limit", "limit"), MOST_AT_ONCE)
