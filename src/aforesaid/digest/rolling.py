"""The rolling policy: one summary that is extended with the conversation, and the newest messages verbatim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aforesaid.digest import sources
from aforesaid.digest.executor import Executor
from aforesaid.digest.tree import NOTHING, Decision, Roll, Step, that_fit
from aforesaid.domain.scope import Entry, Scope, Subject
from aforesaid.domain.summary import Summary
from aforesaid.store.messages import MessagesAfter
from aforesaid.store.searches import MessageVectors
from aforesaid.store.summaries import Summaries

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class RollingLedger:
    """The input of the rolling policy for one user in one thread."""

    total: int
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
    """Number of newest messages that are not summarised, unless they belong to a finished topic."""
    step: int = 10
    """Number of new messages before the next summary."""
    characters: int = 48_000
    """Maximum characters summarised at a time."""


def needs_regeneration(total: int, covered: int, rules: RollingRules) -> bool:
    """Return whether there are enough new messages for the next summary."""
    return total - (covered + rules.keep) >= rules.step


def decide(ledger: RollingLedger, rules: RollingRules, *, asked: bool = False) -> Decision:
    """Decide how many more messages to summarise."""
    if ledger.topic_ends is not None:
        return Decision(Roll(ledger.topic_ends))
    beyond = ledger.total - ledger.covered - rules.keep
    if beyond <= 0:
        return NOTHING
    if ledger.covered:
        due = needs_regeneration(ledger.total, ledger.covered, rules)
    else:
        due = ledger.total >= rules.messages or ledger.characters >= rules.tokens * _CHARACTERS_PER_TOKEN
    return Decision(Roll(beyond)) if due or asked else NOTHING


_MOST_READ: Final = 500


class RollingSteps:
    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        profile = executor.profile
        self.rules = RollingRules(
            profile.rolling_messages, profile.rolling_tokens, profile.rolling_keep, profile.rolling_step
        )

    def subject(self, scope: Scope) -> Subject:
        return Subject("rolling", scope.space, scope.user, scope.thread)

    async def step(self, entry: Entry, *, asked: bool = False) -> Step:
        scope, store = entry.subject.scope, self._executor.store
        current = await self.current(scope)
        covered = 0 if current is None else current.covered
        ledger = RollingLedger(entry.messages, covered, entry.characters, await self._topic_ends(scope, current))
        plan = decide(ledger, self.rules, asked=asked).plan
        if not isinstance(plan, Roll):
            return Step()
        after = 0 if current is None else current.last
        messages = await store.read(MessagesAfter(scope, after, min(plan.messages, _MOST_READ), here=True))
        count = that_fit([len(message.text) for message in messages], self.rules.characters)
        return Step((await self._executor.roll(scope, current, messages[:count]),), count)

    async def current(self, scope: Scope) -> Summary | None:
        found = await self._executor.store.read(Summaries(scope, kind="rolling", here=True))
        return found[0] if found else None

    async def _topic_ends(self, scope: Scope, current: Summary | None) -> int | None:
        embedder = self._executor.embedder
        if not self._executor.profile.topic_changes or embedder is None:
            return None
        after = 0 if current is None else current.last
        messages = await self._executor.store.read(MessagesAfter(scope, after, _MOST_READ, here=True))
        seqs = [message.seq for message in messages]
        places = sources.changes(seqs, await self._executor.store.read(MessageVectors(scope, embedder, seqs)))
        return places[-1] if places else None
