"""The numbered steps that bring a database to a schema, as files of SQL beside its code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

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
