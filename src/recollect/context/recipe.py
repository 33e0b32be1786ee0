"""Recipes: which sections a context has, in what order, with how much, and what goes first when it is too much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from recollect.context.items import SECTIONS, SectionName
from recollect.errors import InvalidInput

Layout: TypeAlias = Literal["messages", "companion", "portrait"]
"""How `context.text` is laid out: plain, like the documented voice assistant, or as XML around the portrait."""

LEAST_BUDGET: Final = 256
"""A context of fewer tokens would be no context."""

_ALWAYS: Final[tuple[SectionName, ...]] = ("current", "system")
"""These come first when the budget is given out, and are cut before they are dropped."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a context is made."""

    budget: int
    order: tuple[SectionName, ...]
    """Where the sections stand, first to last."""
    tokens: Mapping[SectionName, int]
    """What each may use. What one does not need, others may have."""
    trim: tuple[SectionName, ...]
    """What is trimmed first when it is too much."""
    recent: int
    """So many of the newest messages at most."""
    snippets: int = 0
    """So many hits of the search at most."""
    similarity: float | None = None
    """Only hits that are at least as near in meaning."""
    window: int | None = None
    """Only hits among so many of the newest messages."""
    whole_sessions: bool = False
    """Whether hits are past conversations instead of single messages."""
    around: int = 0
    """So many messages around each hit."""
    memories: int = 0
    """So many memories at most, the most important ones first."""
    kinds: tuple[str, ...] = ()
    """The kinds of summaries that are shown; empty: those of any kind."""
    uncovered: bool = False
    """Whether the recent messages are those that no summary covers."""
    layout: Layout = "messages"

    def __post_init__(self) -> None:
        """Refuse a recipe that cannot be cooked."""
        for name in (*self.order, *self.trim, *self.tokens):
            if name not in SECTIONS:
                raise InvalidInput(f"there is no section {name!r}; use some of {', '.join(SECTIONS)}")
        if len(set(self.order)) != len(self.order) or "current" not in self.order:
            raise InvalidInput("the order of a context names each section once, and `current` among them")

    def share(self, name: SectionName, budget: int) -> int:
        """Return what a section may use of a budget."""
        return self.tokens.get(name, self.budget) * budget // self.budget

    def filling(self) -> tuple[SectionName, ...]:
        """Return the order in which the budget is given out: first what must be there, last what is trimmed first."""
        rest = [name for name in self.order if name not in _ALWAYS and name not in self.trim]
        last = [name for name in reversed(self.trim) if name in self.order and name not in _ALWAYS]
        return (*(name for name in _ALWAYS if name in self.order), *rest, *last)


BUILT_IN: Final[Mapping[str, Recipe]] = {
    "default": Recipe(
        budget=8000,
        order=("system", "rules", "persona", "portrait", "memories", "summaries", "recent", "snippets", "current"),
        tokens={
            "system": 1500,
            "rules": 500,
            "persona": 500,
            "portrait": 500,
            "memories": 500,
            "summaries": 1000,
            "recent": 2000,
            "snippets": 3500,
            "current": 4000,
        },
        trim=("persona", "memories", "summaries", "recent", "portrait", "snippets"),
        recent=20,
        snippets=150,
        memories=20,
    ),
    "archive": Recipe(
        budget=8000,
        order=("system", "summaries", "snippets", "recent", "current"),
        tokens={"system": 1500, "summaries": 2000, "snippets": 1500, "recent": 3000, "current": 4000},
        trim=("snippets", "recent", "summaries"),
        recent=8,
        snippets=30,
        kinds=("tree",),
    ),
    "community": Recipe(
        budget=8000,
        order=("system", "portrait", "recent", "current"),
        tokens={"system": 1500, "portrait": 1500, "recent": 5000, "current": 4000},
        trim=("recent", "portrait"),
        recent=30,
        layout="portrait",
    ),
    "account": Recipe(
        budget=8000,
        order=("system", "summaries", "snippets", "recent", "current"),
        tokens={"system": 1500, "summaries": 2000, "snippets": 1500, "recent": 3000, "current": 4000},
        trim=("snippets", "summaries", "recent"),
        recent=10,
        snippets=20,
        similarity=0.7,
        window=200,
        kinds=("history",),
    ),
    "companion": Recipe(
        budget=8000,
        order=("system", "rules", "persona", "memories", "snippets", "recent", "current"),
        tokens={"system": 1500, "rules": 500, "persona": 500, "memories": 1000, "snippets": 1500, "recent": 3000},
        trim=("snippets", "recent", "memories", "persona"),
        recent=6,
        snippets=3,
        similarity=0.7,
        whole_sessions=True,
        memories=10,
        layout="companion",
    ),
    "session": Recipe(
        budget=8000,
        order=("system", "summaries", "recent", "current"),
        tokens={"system": 1500, "summaries": 1000, "recent": 6000, "current": 4000},
        trim=("recent", "summaries"),
        recent=200,
        kinds=("rolling",),
        uncovered=True,
    ),
}
