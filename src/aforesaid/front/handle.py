"""The handle that all parts of the API share, and how a public method declares its timing, auditing and checks.

Every public method carries `@public(…)`, and a test fails for one without:

    @public(audit=("messages.read", "history"))    after each success, add this row to the audit log
    @public(audit=IN_METHOD)                       the method adds the row itself, mostly in its own change set
    @public(unaudited="counts alone")              there is no row, for this reason

Each call is counted in the metrics under the name of the method, and its arguments are checked against their
annotations (`argument_check`). An audit row names its actor: without one, views leave no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import iscoroutinefunction, signature
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeVar, cast

from aforesaid.domain import checks
from aforesaid.domain.arguments import Check, argument_check
from aforesaid.domain.details import KnownIds
from aforesaid.domain.memory import AuditAccess
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.front.services import Services
from aforesaid.store import questions
from aforesaid.telemetry.metrics import done, failed

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
            known = {user.space for user in await self._services.store.read(questions.Users())}
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
