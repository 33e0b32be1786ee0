"""Plans: the actions that a summary policy can choose."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class FoldMessages(NamedTuple):
    """Archive the oldest `messages` active messages under a level 1 summary."""

    messages: int


class FoldSummaries(NamedTuple):
    """Archive the oldest `summaries` active summaries of a level under one of the next level.

    With `mixed`, summaries of this level and all lower ones, used where no level has two.
    """

    level: int
    summaries: int
    mixed: bool = False


class Roll(NamedTuple):
    """Extend the rolling summary by the next `messages` messages."""

    messages: int


class MakeDay(NamedTuple):
    """Summarise a day of a space for each of its participants."""


class Analyse(NamedTuple):
    """Extend the history context by the next `messages` messages."""

    messages: int


Plan: TypeAlias = FoldMessages | FoldSummaries | Roll | MakeDay | Analyse


class Decision(NamedTuple):
    """What to do now, if anything, and when to check again if no message comes."""

    plan: Plan | None
    look_again_at: int | None = None


NOTHING = Decision(None)
