"""The tiers of an account: short-term and mid-term are windows on the log, the history context is an analysis of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from aforesaid.digest.plan import NOTHING, Analyse, Decision, FoldMessages


@dataclass(frozen=True, slots=True)
class TiersLedger:
    """The input for the history context. Times are in microseconds."""

    total: int
    """Number of the user's messages."""
    covered: int
    """Number of messages that the history context covers."""
    now: int
    since: int
    """When it was made; without one, the time of the first message."""
    topic_changed: bool = False
    """Whether the topic has changed since it was made."""


@dataclass(frozen=True, slots=True)
class CleaningLedger:
    """The input for archiving. Times are in microseconds."""

    outside: int
    """Number of active messages before the mid-term window."""
    now: int
    since: int
    """When messages were last archived; otherwise the time of the first message."""


@dataclass(frozen=True, slots=True)
class TiersRules:
    """The sizes of the windows, and the maximum age of a history context."""

    short_term: int = 50
    mid_term: int = 200
    age: int = 24 * 3_600_000_000


@dataclass(frozen=True, slots=True)
class Windows:
    """Number of messages per tier. Mid-term begins where short-term ends."""

    short_term: int
    mid_term: int


def windows(newest: Sequence[int], cleared: int, rules: TiersRules) -> Windows:
    """Return how many of the newest messages each tier holds, by their sequence numbers, oldest first.

    Messages that short-term has no room for, and those up to `cleared`, where the user cleared it, move to mid-term.
    """
    since_cleared = len(list(takewhile(lambda seq: seq > cleared, reversed(newest))))
    short = min(since_cleared, rules.short_term)
    return Windows(short, min(len(newest) - short, rules.mid_term))


def clean(ledger: CleaningLedger, rules: TiersRules) -> Decision:
    """Decide whether to archive old messages: when they would fill the short-term window, otherwise once a day."""
    if ledger.outside <= 0:
        return NOTHING
    due_at = ledger.since + rules.age
    if ledger.outside >= rules.short_term or ledger.now >= due_at:
        return Decision(FoldMessages(ledger.outside))
    return Decision(None, due_at)


def decide(ledger: TiersLedger, rules: TiersRules, *, asked: bool = False) -> Decision:
    """Decide whether to update the history context.

    When short-term is full of what it does not know, when it is a day old, when the topic changed, or on request; and
    never when nothing was said since.
    """
    fresh = ledger.total - ledger.covered
    if fresh <= 0:
        return NOTHING
    old_at = ledger.since + rules.age
    if asked or ledger.topic_changed or fresh >= rules.short_term or ledger.now >= old_at:
        return Decision(Analyse(fresh))
    return Decision(None, old_at)
