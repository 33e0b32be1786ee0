"""How methods of the front door declare what they leave in the audit log.

Every public method carries one of three decorators, and a test calls each to see that it keeps its word:

    @audited("messages.read", "history")     the decorator adds a row once the method has succeeded
    @audited_inside                           the method leaves the row itself, mostly in its own change set
    @not_audited("counts alone")              there is no row, for this reason

A row names its actor; where a caller named none (`memory.user(…, actor=…)`), looking leaves no row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

DECLARATION: Final = "__audit__"
"""The attribute of a method that holds its declaration."""
INSIDE: Final = "inside"


NOBODY: Final = "aforesaid"
"""The actor of changes where none was named."""


class Audited:
    """A class whose methods write to the audit log. By default it has no actor."""

    @property
    def _who(self) -> str:
        """The actor of changes."""
        return NOBODY

    @property
    def _audited(self) -> bool:
        """Whether an actor was named: then looking leaves a row too."""
        return False

    async def _noted(self, action: str, subject: str) -> None:
        """Add a row about looking, where an actor was named."""


Self = TypeVar("Self", bound=Audited)
Given = ParamSpec("Given")
Got = TypeVar("Got")
Method = TypeVar("Method", bound=Callable[..., Any])


def audited(
    action: str, subject: str
) -> Callable[
    [Callable[Concatenate[Self, Given], Awaitable[Got]]],
    Callable[Concatenate[Self, Given], Coroutine[Any, Any, Got]],
]:
    """Add a row to the audit log after each success, before the result is returned.

    `subject` may name parameters of the method in braces: `memory {memory}`.
    """

    def decorate(
        method: Callable[Concatenate[Self, Given], Awaitable[Got]],
    ) -> Callable[Concatenate[Self, Given], Coroutine[Any, Any, Got]]:
        parameters = signature(method) if "{" in subject else None

        @wraps(method)
        async def call(self: Self, /, *args: Given.args, **kwargs: Given.kwargs) -> Got:
            result = await method(self, *args, **kwargs)
            named = {} if parameters is None else parameters.bind(self, *args, **kwargs).arguments
            await self._noted(action, subject.format(**named))
            return result

        setattr(call, DECLARATION, action)
        return call

    return decorate


def audited_inside(method: Method) -> Method:
    """Declare that a method leaves the row itself."""
    setattr(method, DECLARATION, INSIDE)
    return method


def not_audited(reason: str) -> Callable[[Method], Method]:
    """Declare that a method leaves no row, and why."""

    def decorate(method: Method) -> Method:
        setattr(method, DECLARATION, f"not: {reason}")
        return method

    return decorate
