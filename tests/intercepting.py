"""Standing between a store and whoever reads from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from aforesaid.store.contract import Store
from aforesaid.store.operations import Question

Read: TypeAlias = Callable[[Any], Awaitable[Any]]
T = TypeVar("T")


def innermost(store: object, kind: type[T]) -> T:
    """Return the store of a kind that is inside the wrappers of a memory's store, however many there are."""
    while not isinstance(store, kind):
        store = store._inner if hasattr(store, "_inner") else store._store  # type: ignore[attr-defined]
    return store


def intercept(
    store: Store, kind: type[Question[Any]], answer: Callable[[Read, Any], Awaitable[Any]]
) -> Callable[[], None]:
    """Let `answer` answer a kind of question; it is given the store's own `read` first. Return what ends that."""
    original = store.read

    async def read(question: Question[Any]) -> Any:  # noqa: ANN401 - whatever the store answers
        return await (answer(original, question) if isinstance(question, kind) else original(question))

    store.read = read  # type: ignore[method-assign]

    def end() -> None:
        store.read = original  # type: ignore[method-assign]

    return end
