"""Extends the summary tree of a user."""

from __future__ import annotations

from typing import Final

from aforesaid.digest import tree
from aforesaid.digest.executor import Executor
from aforesaid.digest.tree import FoldMessages, FoldSummaries, Open, Step, TreeLedger
from aforesaid.domain.scope import Entry, Scope, Subject
from aforesaid.domain.setting import EVERY
from aforesaid.profiles.effective import settings_of
from aforesaid.store import questions

_PER_TURN: Final = 8
_LEAST_READ: Final = 200
_MOST_READ: Final = 2_000


class TreeSteps:
    """The steps of the tree policy."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def subject(self, scope: Scope) -> Subject:
        """Return the user's entry."""
        return Subject("tree", scope.space, scope.user)

    async def step(self, entry: Entry, *, asked: bool = False) -> Step:
        """Archive messages or merge summaries, whichever is due."""
        scope, store = entry.subject.scope, self._executor.store
        every = (await settings_of(self._executor.store, scope)).get(EVERY)
        turns = every if isinstance(every, int) and not isinstance(every, bool) and every > 0 else None
        rules = self._executor.tree_rules(turns)
        ledger = await store.read(questions.UserLedger(scope))
        messages = []
        if asked or ledger.open_turns >= rules.turns:
            limit = min(max(_PER_TURN * rules.turns, _LEAST_READ), _MOST_READ)
            messages = await store.read(questions.MessagesAfter(scope, 0, limit, archived=False))
        opened = tuple(Open(message.role, len(message.text)) for message in messages)
        match tree.decide(TreeLedger(ledger.active_summaries, opened), rules, asked=asked).plan:
            case FoldMessages(count):
                return Step((await self._executor.archive_messages(scope, messages[:count]),), count)
            case FoldSummaries() as plan:
                oldest = tree.oldest_summaries(await store.read(questions.Summaries(scope, kind="tree")), plan)
                return Step((await self._executor.archive_summaries(scope, oldest),))
            case _:
                return Step()
