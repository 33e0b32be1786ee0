"""The tiers of an account: short-term and mid-term are windows on the log, the history context is an analysis of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from aforesaid.digest import sources, tree
from aforesaid.digest.calendar import day_of
from aforesaid.digest.executor import Executor
from aforesaid.digest.tree import NOTHING, Analyse, Decision, FoldMessages, FoldSummaries, Step, TreeLedger, that_fit
from aforesaid.domain.checks import microseconds
from aforesaid.domain.scope import Entry, Scope, Subject
from aforesaid.domain.summary import Summary
from aforesaid.store.messages import Messages, MessagesAfter, UserLedger
from aforesaid.store.searches import MessageVectors
from aforesaid.store.summaries import Summaries


@dataclass(frozen=True, slots=True)
class TiersLedger:
    """The input for the history context. Times are in microseconds."""

    total: int
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


_MOST_READ: Final = 500
_CHARACTERS: Final = 48_000
_WINDOW: Final = 2 * (sources.RULES.before + sources.RULES.after)
"""Number of newest messages checked for a change of topic."""


class TiersSteps:
    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        profile = executor.profile
        self.rules = TiersRules(profile.short_term, profile.mid_term, profile.history_hours * 3_600_000_000)

    def subject(self, scope: Scope) -> Subject:
        return Subject("tiers", scope.space, scope.user)

    async def step(self, entry: Entry, *, asked: bool = False) -> Step:
        """Analyse new messages for the history context if it is due."""
        scope, now = entry.subject.scope, self._executor.clock()
        current = await self.current(scope)
        ledger = TiersLedger(
            total=entry.messages,
            covered=0 if current is None else current.covered,
            now=now,
            since=await self._since(scope, current),
            topic_changed=await self._topic_changed(scope, current),
        )
        decision = decide(ledger, self.rules, asked=asked)
        if not isinstance(decision.plan, Analyse):
            cleaned = await self._clean(scope, now)
            times = [at for at in (decision.look_again_at, cleaned.look_again_at) if at is not None]
            return cleaned if cleaned.made else Step(look_again_at=min(times, default=None))
        return await self._analyse(scope, current, min(decision.plan.messages, _MOST_READ))

    async def analyse_more(self, scope: Scope, total: int) -> bool:
        """Extend the history context by as many messages as fit. Return False if it covers all messages."""
        current = await self.current(scope)
        if total <= (0 if current is None else current.messages):
            return False
        return bool((await self._analyse(scope, current, _MOST_READ)).made)

    async def _analyse(self, scope: Scope, current: Summary | None, limit: int) -> Step:
        after = 0 if current is None else current.last
        messages = await self._executor.store.read(MessagesAfter(scope, after, limit))
        count = that_fit([len(message.text) for message in messages], _CHARACTERS)
        if not count:
            return Step()
        today = day_of(self._executor.clock(), self._executor.profile.zone(scope.space))
        return Step((await self._executor.analyse(scope, current, messages[:count], today),), count)

    async def current(self, scope: Scope) -> Summary | None:
        found = await self._executor.store.read(Summaries(scope, kind="history"))
        return found[0] if found else None

    async def _clean(self, scope: Scope, now: int) -> Step:
        """Archive messages before the mid-term window, under summaries that are merged like those of the tree."""
        executor = self._executor
        ledger = await executor.store.read(UserLedger(scope))
        outside = ledger.messages - ledger.archived - self.rules.short_term - self.rules.mid_term
        archives = await executor.store.read(Summaries(scope, kind="tree")) if outside > 0 else []
        newest = max(archives, key=lambda summary: summary.last, default=None)
        plan = clean(CleaningLedger(outside, now, await self._since(scope, newest)), self.rules)
        if isinstance(plan.plan, FoldMessages):
            limit = min(plan.plan.messages, _MOST_READ)
            messages = await executor.store.read(MessagesAfter(scope, 0, limit, archived=False))
            count = that_fit([len(message.text) for message in messages], _CHARACTERS)
            return Step((await executor.archive_messages(scope, messages[:count]),), count)
        folding = tree.decide(TreeLedger(ledger.active_summaries, ()), tree.tree_rules(executor.profile)).plan
        if isinstance(folding, FoldSummaries):
            oldest = tree.oldest_summaries(await executor.store.read(Summaries(scope, kind="tree")), folding)
            return Step((await executor.archive_summaries(scope, oldest),))
        return Step(look_again_at=plan.look_again_at)

    async def _since(self, scope: Scope, current: Summary | None) -> int:
        if current is not None:
            return microseconds(current.created_at, "the time")
        first = await self._executor.store.read(MessagesAfter(scope, 0, 1))
        return microseconds(first[0].at, "the time") if first else self._executor.clock()

    async def _topic_changed(self, scope: Scope, current: Summary | None) -> bool:
        embedder = self._executor.embedder
        if not self._executor.profile.topic_changes or embedder is None:
            return False
        newest = await self._executor.store.read(Messages(scope, limit=_WINDOW))
        seqs = [message.seq for message in newest]
        places = sources.changes(seqs, await self._executor.store.read(MessageVectors(scope, embedder, seqs)))
        return any(seqs[place] > (0 if current is None else current.last) for place in places)
