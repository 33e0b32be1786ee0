"""Parameters of a search."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args

from aforesaid.domain.checks import HitKind, Within
from aforesaid.domain.hit import EVERY_MESSAGE, MessageFilter

Arms: TypeAlias = Literal["all", "keyword", "dense"]
"""Which ranking to use: words and vectors with all features, or words or vectors alone, for comparison."""

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
    """Whether hits contain the matched words and the value of each feature."""
    around: int = 0
    """Number of messages around each hit to return with it."""
    around_best: int | None = None
    """Maximum hits that get messages around them; None: all."""
    similarity: float | None = None
    """Minimum similarity of a hit, 0 to 1, calibrated for the encoder."""
    min_score: float | None = 0.0
    """Minimum score of a hit. None: what fits the query (`recall.score.least_score`), and whatever holds all of its
    words is a hit with any score."""
    without: frozenset[str] = frozenset()
    """The ids of messages to leave out."""
    where: MessageFilter = EVERY_MESSAGE
    """Which messages are candidates. With a condition, summaries and memories are not searched: they fulfil none."""
    beside: frozenset[int] = frozenset()
    """The sequence numbers of messages to leave out."""

    @property
    def searches_notes(self) -> bool:
        """Whether summaries or memories are searched too."""
        wanted = "summary" in self.kinds or "memory" in self.kinds
        return wanted and self.arms == "all" and self.where == EVERY_MESSAGE

    @property
    def unwanted(self) -> int:
        """Maximum number of hits that are left out."""
        return len(self.without) + len(self.beside)
