"""How rules are carried out, by any kind of store.

A rule is a generator. It yields operations, questions and writes, and is sent their results; what it returns is the
result of the change. So the same rule runs on the writing thread of a file, in a transaction of a database server and
over dictionaries. When an operation raises, the change has failed: the store takes its writes back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar

from aforesaid.store.questions import Question
from aforesaid.store.rules.writes import Write

S = TypeVar("S")
T = TypeVar("T")

Operation: TypeAlias = Question[Any] | Write[Any]
Rule: TypeAlias = Generator[Operation, Any, T]


def ask(operation: Question[T] | Write[T]) -> Rule[T]:
    """Have an operation performed, and return its result."""
    result: T = yield operation
    return result


def run(rule: Generator[S, Any, T], perform: Callable[[S], Any]) -> T:
    """Carry out a rule where operations are performed at once."""
    try:
        operation = next(rule)
        while True:
            operation = rule.send(perform(operation))
    except StopIteration as end:
        result: T = end.value
        return result


async def run_waiting(rule: Generator[S, Any, T], perform: Callable[[S], Awaitable[Any]]) -> T:
    """Carry out a rule where operations are waited for."""
    try:
        operation = next(rule)
        while True:
            operation = rule.send(await perform(operation))
    except StopIteration as end:
        result: T = end.value
        return result
