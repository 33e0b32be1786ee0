"""What a caller asks search for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args

from aforesaid.domain.literals import HitKind, Within

Arms: TypeAlias = Literal["all", "keyword", "dense"]
"""How candidates are found: by words and meaning with all features, or by words or meaning alone, to compare."""

ARMS: Final[tuple[Arms, ...]] = get_args(Arms)
KINDS: Final[tuple[HitKind, ...]] = get_args(HitKind)
DEFAULT_KINDS: Final[tuple[HitKind, ...]] = ("message", "summary", "memory")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A validated search."""

    query: str
    limit: int = 10
    within: Within = "user"
    at: datetime | None = None
    """When it is asked; None: now."""
    arms: Arms = "all"
    kinds: tuple[HitKind, ...] = DEFAULT_KINDS
    explained: bool = True
    """Whether hits say which words were found in them, and what each feature added."""
    around: int = 0
    """How many messages around each hit come with it."""
    around_best: int | None = None
    """Only this many of the best hits come with messages around them. None: all."""
    similarity: float | None = None
    """The least similarity of a hit, 0 to 1, calibrated for the encoder."""
    min_score: float = 0.0
    """The least score of a hit. Contexts look at everything that was ranked."""
    without: frozenset[str] = frozenset()
    """The ids of messages to leave out."""
    beside: frozenset[int] = frozenset()
    """The sequence numbers of messages to leave out."""

    @property
    def unwanted(self) -> int:
        """How many hits may have to be left out."""
        return len(self.without) + len(self.beside)
