"""Memories: single remembered things about a user; and facts, the text of what people stated about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, get_args

from recollect.domain import checks
from recollect.domain.scope import Scope
from recollect.domain.words import Category
from recollect.errors import InvalidInput

CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
LEAST_IMPORTANCE: Final = 1
USUAL_IMPORTANCE: Final = 5
MOST_IMPORTANCE: Final = 10


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory to be stored, with the messages that it was learned from."""

    scope: Scope
    category: Category
    text: str
    importance: int = USUAL_IMPORTANCE
    tags: tuple[str, ...] = ()
    sources: tuple[int, ...] = ()
    """Sequence numbers of messages."""

    def __post_init__(self) -> None:
        """Refuse an unknown category, an empty text, an importance outside 1 to 10."""
        if self.category not in CATEGORIES:
            raise InvalidInput(f"unknown category {self.category!r}; use one of {', '.join(CATEGORIES)}")
        checks.message_text(self.text)
        if checks.at_least(self.importance, LEAST_IMPORTANCE, "the importance") > MOST_IMPORTANCE:
            raise InvalidInput(f"the importance must be at most {MOST_IMPORTANCE}, not {self.importance}")
        for tag in self.tags:
            checks.identifier(tag, "a tag")


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory."""

    id: int
    space: str
    user: str
    category: Category
    text: str
    importance: int
    tags: tuple[str, ...]
    sources: tuple[int, ...]
    created_at: datetime
    active: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """The newest version of the third-person text of what people stated about a user."""

    space: str
    user: str
    text: str
    version: int
    updated_at: datetime
