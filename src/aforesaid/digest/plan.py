"""What a policy can decide to do. A plan names what, never how."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class FoldMessages(NamedTuple):
    """Archive the oldest active messages, so many of them, under a level 1 summary."""

    messages: int


class FoldSummaries(NamedTuple):
    """Archive the oldest active summaries of a level, so many of them, under one of the next level.

    With `mixed`, of this level and all below it: where no level has two.
    """

    level: int
    summaries: int
    mixed: bool = False


class Roll(NamedTuple):
    """Go on with the rolling summary: the one before, and so many messages after it."""

    messages: int


class MakeDay(NamedTuple):
    """Summarise a day of a space, for everybody who was there."""


class Analyse(NamedTuple):
    """Go on with the history context: the one before, and so many messages after it."""

    messages: int


Plan: TypeAlias = FoldMessages | FoldSummaries | Roll | MakeDay | Analyse


class Decision(NamedTuple):
    """What to do now, if anything, and when to look again if nothing new is said."""

    plan: Plan | None
    look_again_at: int | None = None


NOTHING = Decision(None)
