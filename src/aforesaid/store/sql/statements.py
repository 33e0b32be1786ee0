"""SQL for SQLite and PostgreSQL, whose tables differ by their keys: it reads, deletes and migrates."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from aforesaid.store.questions import Question
from aforesaid.store.records import Row

T = TypeVar("T")


class Statement(NamedTuple):
    """A text for both databases, and the values of $1, $2 and so on. In PostgreSQL, $1 is the space."""

    text: str
    values: Sequence[Any] = ()


Answer: TypeAlias = Generator[tuple[Statement, ...], Any, T]
Answers: TypeAlias = Mapping[type[Question[Any]], Callable[[Any], Answer[Any]]]
"""The function that answers each kind of question."""


def rows(text: str, *values: Any) -> Answer[list[Row]]:  # noqa: ANN401 - whatever the text binds
    """Return the rows of a statement."""
    found: list[list[Row]] = yield (Statement(text, values),)
    return found[0]


def first(text: str, *values: Any) -> Answer[Row | None]:  # noqa: ANN401
    """Return the first row of a statement, if there is one."""
    found = yield from rows(text, *values)
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Select:
    """Answers a kind of question by one statement."""

    text: str
    values: Callable[[Any], Sequence[Any]]
    """Returns what is bound."""
    read: Callable[[Any, list[Row]], Any]
    """Makes the answer of the question and the rows."""

    def __call__(self, question: Any) -> Answer[Any]:  # noqa: ANN401 - the question says it
        """Return the answer."""
        return self.read(question, (yield from rows(self.text, *self.values(question))))


class Conditions:
    """Conditions of a WHERE, and the values that they bind after those that are bound already."""

    def __init__(self, condition: str, *values: Any) -> None:  # noqa: ANN401
        """Start with a condition that binds `values` as $1, $2 and so on."""
        self.texts = [condition]
        self.values = list(values)

    def add(self, condition: str, *values: Any) -> None:  # noqa: ANN401
        """Add a condition, in which {0}, {1} and so on are where the values are bound."""
        self.texts.append(condition.format(*map(self.bind, values)))

    def add_if(self, condition: str, value: Any) -> None:  # noqa: ANN401
        """Add a condition unless the value is None."""
        if value is not None:
            self.add(condition, value)

    def bind(self, value: Any) -> str:  # noqa: ANN401
        """Bind one more value, and return its place."""
        self.values.append(value)
        return f"${len(self.values)}"

    def __str__(self) -> str:
        return " AND ".join(self.texts)


_PART: Final = re.compile(r"\[\[(.*?)(?:\s~\s(.*?))?\]\]", re.DOTALL)
_VALUE: Final = re.compile(r"\$(\d+)")


@lru_cache(maxsize=4_000)
def for_postgres(text: str) -> str:
    """Return the text for PostgreSQL."""
    return _PART.sub(lambda part: part[1], text)


@lru_cache(maxsize=4_000)
def for_sqlite(text: str) -> str:
    """Return the text for SQLite."""
    return _VALUE.sub(r"?\1", _PART.sub(lambda part: part[2] or "", text))


_NEEDS: Final = re.compile(r"-- needs (\d+)")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step. A step that has been released is never edited; a new one follows it."""

    number: int
    name: str
    sql: str

    @property
    def needs(self) -> int:
        """The oldest schema whose processes still work after this step."""
        found = _NEEDS.match(self.sql)
        return 0 if found is None else int(found[1])


@cache
def steps_of(package: str) -> tuple[Migration, ...]:
    """Return all steps that lie in the folder `migrations` of a package, in order."""
    found = []
    for entry in (files(package) / "migrations").iterdir():
        number, _, name = entry.name.removesuffix(".sql").partition("_")
        if number.isdigit():
            found.append(Migration(int(number), name, entry.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda step: step.number))
