"""Which memories a list shows, and how it groups them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple, cast

from fastapi import Depends

from aforesaid.domain.checks import Category, Kind, MemoryState
from aforesaid.domain.memory import CATEGORIES, KINDS, STATES, MemoryRecord
from aforesaid.errors import InvalidInput
from aforesaid.server.languages import N_, translate
from aforesaid.server.panel import forms

BANDS: Final = {name: (least, most) for name, least, most in (
    ("low", 1, 3), ("medium", 4, 6), ("high", 7, 8), ("critical", 9, 10),
)}  # fmt: skip
GROUPINGS: Final[Mapping[str, Sequence[str]]] = {"kind": KINDS, "category": CATEGORIES}
"""What a list can be grouped by, and its groups in the order of the page."""
CALLED: Final = tuple(dict.fromkeys((*KINDS, *CATEGORIES)))
"""What a memory that is written by hand can be: kinds first, then the categories that are no kind."""
_TITLES: Final[Mapping[str, str]] = {
    "fact": N_("Facts"),
    "preference": N_("Preferences"),
    "event": N_("Events"),
    "schedule": N_("Appointments"),
    "task": N_("Tasks"),
    "reminder": N_("Reminders"),
    "relationship": N_("Relationships"),
    "instruction": N_("Standing requests"),
    "other": N_("Other things"),
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What is looked for. An empty one is no filter."""

    kind: str
    category: str
    state: str
    importance: str
    text: str
    by: str
    """What the list is grouped by: `kind` or `category`."""

    @property
    def chosen(self) -> dict[str, str | None]:
        """Those that differ from the default, for addresses."""
        return {
            "kind": self.kind,
            "category": self.category,
            "state": None if self.state == "active" else self.state,
            "importance": self.importance,
            "text": self.text,
        }

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return any(self.chosen.values())

    @property
    def known_kind(self) -> Kind | None:
        """The kind, None for all."""
        return cast("Kind", self.kind) if self.kind else None

    @property
    def known_category(self) -> Category | None:
        """The category, None for all."""
        return cast("Category", self.category) if self.category else None

    @property
    def known_state(self) -> MemoryState | None:
        """The state, None for all."""
        return None if self.state == "all" else cast("MemoryState", self.state)

    def fits(self, memory: MemoryRecord) -> bool:
        """Return whether a memory has the importance and the words."""
        least, most = BANDS.get(self.importance, (1, 10))
        return least <= memory.importance <= most and self.text.casefold() in memory.text.casefold()


class Group(NamedTuple):
    """The memories of one kind or category."""

    name: str
    title: str
    memories: list[MemoryRecord]


def grouped(memories: Iterable[MemoryRecord], by: str) -> list[Group]:
    """Return memories by kind or category, in the order of the page; groups without any are left out."""
    groups = {name: Group(name, translate(_TITLES[name]), []) for name in GROUPINGS[by]}
    for memory in memories:
        groups[memory.kind if by == "kind" else memory.category].memories.append(memory)
    return [group for group in groups.values() if group.memories]


def _filters(
    kind: str = "", category: str = "", state: str = "active", importance: str = "", text: str = "", by: str = "kind"
) -> Filters:
    for value, known, what in (
        (kind, ("", *KINDS), "kind"),
        (category, ("", *CATEGORIES), "category"),
        (state, ("all", *STATES), "state"),
        (importance, ("", *BANDS), "importance"),
        (by, tuple(GROUPINGS), "by"),
    ):
        if value not in known:
            raise InvalidInput(forms.unknown(value, known), what)
    return Filters(kind, category, state, importance, text.strip(), by)


Filtered = Annotated[Filters, Depends(_filters)]
