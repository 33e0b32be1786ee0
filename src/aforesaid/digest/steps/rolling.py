"""Extends the rolling summary of a thread."""

from __future__ import annotations

from typing import Final

from aforesaid.digest import rolling, topics
from aforesaid.digest.executor import Executor
from aforesaid.digest.plan import Roll
from aforesaid.digest.rolling import RollingLedger, RollingRules
from aforesaid.digest.steps.step import Step
from aforesaid.domain.scope import Entry, Scope, Subject
from aforesaid.domain.summary import Summary
from aforesaid.store import questions

_MOST_READ: Final = 500


class RollingSteps:
    """The steps of the rolling policy."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        profile = executor.profile
        self.rules = RollingRules(
            profile.rolling_messages, profile.rolling_tokens, profile.rolling_keep, profile.rolling_step
        )

    def subject(self, scope: Scope) -> Subject:
        """Return the entry of the user in the thread."""
        return Subject("rolling", scope.space, scope.user, scope.thread)

    async def step(self, entry: Entry, *, asked: bool = False) -> Step:
        """Summarise more messages if it is due."""
        scope, store = entry.subject.scope, self._executor.store
        current = await self.current(scope)
        covered = 0 if current is None else current.covered
        ledger = RollingLedger(entry.messages, covered, entry.characters, await self._topic_ends(scope, current))
        plan = rolling.decide(ledger, self.rules, asked=asked).plan
        if not isinstance(plan, Roll):
            return Step()
        after = 0 if current is None else current.last
        messages = await store.read(questions.MessagesAfter(scope, after, min(plan.messages, _MOST_READ), here=True))
        count = rolling.that_fit([len(message.text) for message in messages], self.rules.characters)
        return Step((await self._executor.roll(scope, current, messages[:count]),), count)

    async def current(self, scope: Scope) -> Summary | None:
        """Return the rolling summary of the thread."""
        found = await self._executor.store.read(questions.Summaries(scope, kind="rolling", here=True))
        return found[0] if found else None

    async def _topic_ends(self, scope: Scope, current: Summary | None) -> int | None:
        embedder = self._executor.embedder
        if not self._executor.profile.topic_changes or embedder is None:
            return None
        after = 0 if current is None else current.last
        messages = await self._executor.store.read(questions.MessagesAfter(scope, after, _MOST_READ, here=True))
        seqs = [message.seq for message in messages]
        places = topics.changes(seqs, await self._executor.store.read(questions.MessageVectors(scope, embedder, seqs)))
        return places[-1] if places else None
