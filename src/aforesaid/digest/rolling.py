"""The rolling policy: one summary that is extended with the conversation, and the newest messages verbatim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from aforesaid.digest.plan import NOTHING, Decision, Roll

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class RollingLedger:
    """The input of the rolling policy for one user in one thread."""

    total: int
    """Number of all messages."""
    covered: int
    """Number of messages that the summary covers; 0 without one."""
    characters: int
    """Tokens of all messages."""
    topic_ends: int | None = None
    """Number of uncovered messages before a change of topic; None without one."""


@dataclass(frozen=True, slots=True)
class RollingRules:
    """When to extend the rolling summary."""

    messages: int = 20
    tokens: int = 8000
    """The first summary is made at `messages` messages or `tokens` tokens of about four characters."""
    keep: int = 10
    """Number of newest messages that are never summarised."""
    step: int = 10
    """Number of new messages before the next summary."""
    characters: int = 48_000
    """Maximum characters summarised at a time."""
    topic_least: int = 6
    """Minimum messages of a finished topic, outside of `keep`, that are summarised after a change of topic."""


def needs_regeneration(total: int, covered: int, rules: RollingRules) -> bool:
    """Return whether there are enough new messages for the next summary."""
    return total - (covered + rules.keep) >= rules.step


def decide(ledger: RollingLedger, rules: RollingRules, *, asked: bool = False) -> Decision:
    """Decide how many more messages to summarise."""
    beyond = ledger.total - ledger.covered - rules.keep
    if beyond <= 0:
        return NOTHING
    if ledger.covered:
        due = needs_regeneration(ledger.total, ledger.covered, rules)
    else:
        due = ledger.total >= rules.messages or ledger.characters >= rules.tokens * _CHARACTERS_PER_TOKEN
    if due or asked:
        return Decision(Roll(beyond))
    if ledger.topic_ends is not None and beyond >= min(ledger.topic_ends, rules.topic_least):
        return Decision(Roll(min(ledger.topic_ends, beyond)))
    return NOTHING


def that_fit(sizes: Sequence[int], most: int) -> int:
    """Return how many texts from the first fit into the limit: at least one, if there is one."""
    return max(sum(size <= most for size in accumulate(sizes)), min(len(sizes), 1))
