"""SQL for SQLite and PostgreSQL, whose tables differ by their keys: texts for both, and what runs and migrates them."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from aforesaid.domain.details import TAKEN_BACK
from aforesaid.extras import re

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]


class Statement(NamedTuple):
    """A text for both databases, and the values of $1, $2 and so on. In PostgreSQL, $1 is the space."""

    text: str
    values: Sequence[Any] = ()


Answer: TypeAlias = Generator[tuple[Statement, ...], list[list[Row]], T]
"""Yields statements that are run together, is sent the rows of each, and returns what they say."""


def rows(text: str, *values: Any) -> Answer[list[Row]]:  # noqa: ANN401 - whatever the text binds
    (found,) = yield (Statement(text, values),)
    return found


def first(text: str, *values: Any) -> Answer[Row | None]:  # noqa: ANN401
    found = yield from rows(text, *values)
    return found[0] if found else None


def done(value: T) -> Answer[T]:
    yield from ()
    return value


def number(text: str, *values: Any) -> Answer[int]:  # noqa: ANN401
    """Return the number in the first row; 0 if there is none."""
    found = yield from first(text, *values)
    return 0 if found is None else int(found[0] or 0)


def exists(text: str, *values: Any) -> Answer[bool]:  # noqa: ANN401
    return bool((yield from rows(text, *values)))


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
    return _PART.sub(lambda part: part[1], text)


@lru_cache(maxsize=4_000)
def for_sqlite(text: str) -> str:
    return _VALUE.sub(r"?\1", _PART.sub(lambda part: part[2] or "", text))


USER_ID: Final = "(SELECT id FROM person WHERE space = $1 AND name = {0})"
THREAD_ID: Final = "(SELECT id FROM thread WHERE space = $1 AND name = {0})"
"""The number of a user or a thread of the space $1 in SQLite."""
A_USER: Final = f"[[{{0}} ~ {USER_ID}]]"
A_THREAD: Final = f"[[{{0}} ~ {THREAD_ID}]]"
"""What columns hold of a user or a thread whose name is bound as {0}."""
USER: Final = A_USER.format("$2")
OWNED: Final = f"[[space = $1 AND ]]owner = {USER}"
"""The condition for rows of the user $2 in the space $1."""
BY_NAME: Final = "space = $1 AND [[owner ~ user]] = $2"
"""The same, for tables that hold names in both databases."""
NEWEST: Final = "[[NOT log.replaced ~ log.replaced = 0]]"
"""The condition that leaves out messages that do not count any more."""
_LATEST: Final = f"""
log.details IS DISTINCT FROM '{TAKEN_BACK}'
AND NOT EXISTS (SELECT 1 FROM log n WHERE [[n.space = $1 AND ]]n.replaces = log.seq)
"""
SEARCHED: Final = f"({NEWEST} OR ({_LATEST}))"
"""The condition for messages that a search finds: those that count, and those that were set aside with their branch."""
NOT_SEARCHED: Final = f"[[log.replaced ~ log.replaced = 1]] AND NOT ({_LATEST})"
"""The condition for all others, in a form that the index of replaced messages answers."""
ACTIVE: Final = "[[{0}.active ~ {0}.active = 1]]"
"""The condition for active rows. SQLite's partial indexes need it in this form."""
_DAY: Final = 86_400_000_000
FIRST_DAY: Final = date(1970, 1, 1)
DAY_OF: Final = f"({{0}} - (({{0}} % {_DAY}) + {_DAY}) % {_DAY}) / {_DAY}"
"""The number of the day (UTC) since the first one, of a time in microseconds."""


def listed(column: str, place: str, kind: str = "bigint") -> str:
    """Return the condition that a column is in the list bound at a place."""
    return f"[[{column} = ANY({place}::{kind}[]) ~ {column} IN (SELECT value FROM json_each({place}))]]"


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


def loaded(value: Any) -> Any:  # noqa: ANN401 - whatever the JSON says
    """Return a list or a record that SQLite holds as JSON. PostgreSQL gives it as it is."""
    return json.loads(value) if isinstance(value, str) else value
