"""What somebody asks for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args

from aforesaid.domain.words import HitKind, Within

Arms: TypeAlias = Literal["all", "keyword", "dense"]
"""Which arms find candidates: both, with everything that scores them, or one alone, to compare."""

ARMS: Final[tuple[Arms, ...]] = get_args(Arms)
KINDS: Final[tuple[HitKind, ...]] = get_args(HitKind)
USUAL_KINDS: Final[tuple[HitKind, ...]] = ("message", "summary", "memory")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search, as it was asked for and checked."""

    query: str
    limit: int = 10
    within: Within = "user"
    at: datetime | None = None
    """When it is asked; None: now."""
    arms: Arms = "all"
    kinds: tuple[HitKind, ...] = USUAL_KINDS
    explained: bool = True
    """Whether hits say which words were found in them, and what each feature added."""
    around: int = 0
    """Number of messages around each hit."""
    similarity: float | None = None
    """Only what is at least as near in meaning."""
    without: frozenset[str] = frozenset()
    """The ids of messages that are not wanted: they are there already."""
    beside: frozenset[int] = frozenset()
    """The same by sequence number, which means one message alone, whatever its thread."""

    @property
    def unwanted(self) -> int:
        """How many hits may have to be left out."""
        return len(self.without) + len(self.beside)
