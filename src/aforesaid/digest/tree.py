"""The tree policy, and what every summary policy has in common: plans, steps, and subjects of the agenda."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple, Protocol, TypeAlias

from aforesaid.digest.executor import Executor
from aforesaid.domain.checks import Role
from aforesaid.domain.scope import Entry, Scope, Subject
from aforesaid.domain.setting import EVERY
from aforesaid.domain.summary import Summary
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import settings_of
from aforesaid.store.messages import MessagesAfter, UserLedger
from aforesaid.store.summaries import Summaries


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


class Open(NamedTuple):
    """The data of an active message that the tree needs."""

    role: Role
    characters: int


@dataclass(frozen=True, slots=True)
class TreeLedger:
    """The input of the tree policy."""

    levels: tuple[tuple[int, int], ...]
    """(level, how many are active), lowest level first."""
    open: tuple[Open, ...]
    """The oldest active messages, in order. Empty if there cannot be enough of them."""


@dataclass(frozen=True, slots=True)
class TreeRules:
    turns: int = 10
    """Summarise after this many user turns. Other roles do not count."""
    level: int = 5
    """Maximum active summaries per level; this many are folded at a time."""
    active: int = 10
    """Maximum active summaries of all levels."""
    characters: int = 48_000
    """Maximum characters summarised at a time."""


def tree_rules(profile: Profile, turns: int | None = None) -> TreeRules:
    return TreeRules(turns or profile.tree_turns, profile.tree_level, profile.tree_active)


def decide(ledger: TreeLedger, rules: TreeRules, *, asked: bool = False) -> Decision:
    """Decide what to do. `asked` means that a person wants a summary now, however little there is."""
    for level, count in ledger.levels:
        if count > rules.level:
            return Decision(FoldSummaries(level, rules.level))
    total = sum(count for _, count in ledger.levels)
    messages = chunk(ledger.open, rules, asked=asked)
    # Summaries are merged before the limit is reached, so that it is never exceeded.
    if total > rules.active or (messages and total == rules.active):
        return Decision(_make_room(ledger.levels, rules))
    return Decision(FoldMessages(messages)) if messages else NOTHING


def oldest_summaries(active: Sequence[Summary], plan: FoldSummaries) -> list[Summary]:
    wanted = [each for each in active if each.level == plan.level or (plan.mixed and each.level < plan.level)]
    return sorted(wanted, key=lambda each: (-each.level if plan.mixed else 0, each.first))[: plan.summaries]


def chunk(messages: Sequence[Open], rules: TreeRules, *, asked: bool = False) -> int:
    """Return how many of the oldest active messages to archive together; 0 when it is too early.

    Messages are archived once `rules.turns` turns were answered: all answered ones, or `rules.turns` of them if there
    are at least twice as many (after an import or a long failure), so that summaries cover similar amounts. Where
    nobody answers, as among people, or one turn more was said, so many turns are archived without answers.
    """
    if asked:
        return that_fit([each.characters for each in messages], rules.characters)
    answers = [place for place, message in enumerate(messages) if message.role == "assistant"]
    answered = messages[: answers[-1] + 1] if answers else ()
    turns = _turns(answered)
    if turns >= rules.turns:
        end = len(answered) if turns < 2 * rules.turns else _end_of_turn(answered, rules.turns)
        return that_fit([each.characters for each in messages[:end]], rules.characters)
    if _turns(messages) >= rules.turns + bool(answers):
        return that_fit([each.characters for each in messages[: _end_of_turn(messages, rules.turns)]], rules.characters)
    return 0


def _turns(messages: Sequence[Open]) -> int:
    return sum(message.role == "user" for message in messages)


def _end_of_turn(messages: Sequence[Open], turn: int) -> int:
    """Return the position after the given number of turns."""
    counts = accumulate(message.role == "user" for message in messages)
    return next((place for place, count in enumerate(counts) if count > turn), len(messages))


def that_fit(sizes: Sequence[int], most: int) -> int:
    """Return how many texts from the first fit into the limit: at least one, if there is one."""
    return max(sum(size <= most for size in accumulate(sizes)), min(len(sizes), 1))


def _make_room(levels: Sequence[tuple[int, int]], rules: TreeRules) -> FoldSummaries:
    """Merge the oldest summaries of the highest level that has several."""
    several = [(level, count) for level, count in levels if count > 1]
    if several:
        level, count = several[-1]
        return FoldSummaries(level, min(count, rules.level))
    return FoldSummaries(levels[-1][0], 2, mixed=True)


class Step(NamedTuple):
    """The result of one step for an entry."""

    made: tuple[Summary, ...] = ()
    """The new summaries; empty if there was nothing to do."""
    messages: int = 0
    """Number of processed messages."""
    look_again_at: int | None = None
    """When to check again without a new message, if nothing was made."""


class Steps(Protocol):
    """Processes agenda entries of one policy."""

    def subject(self, scope: Scope) -> Subject:
        """Return the entry that a user's summaries depend on."""

    async def step(self, entry: Entry, *, asked: bool = False) -> Step:
        """Do one step for an entry. The caller repeats it until nothing is made."""


_PER_TURN: Final = 8
_LEAST_READ: Final = 200
_MOST_READ: Final = 2_000


class TreeSteps:
    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def subject(self, scope: Scope) -> Subject:
        return Subject("tree", scope.space, scope.user)

    async def step(self, entry: Entry, *, asked: bool = False) -> Step:
        scope, store = entry.subject.scope, self._executor.store
        every = (await settings_of(self._executor.store, scope)).get(EVERY)
        turns = every if isinstance(every, int) and not isinstance(every, bool) and every > 0 else None
        rules = tree_rules(self._executor.profile, turns)
        ledger = await store.read(UserLedger(scope))
        messages = []
        if asked or ledger.open_turns >= rules.turns:
            limit = min(max(_PER_TURN * rules.turns, _LEAST_READ), _MOST_READ)
            messages = await store.read(MessagesAfter(scope, 0, limit, archived=False))
        opened = tuple(Open(message.role, len(message.text)) for message in messages)
        match decide(TreeLedger(ledger.active_summaries, opened), rules, asked=asked).plan:
            case FoldMessages(count):
                return Step((await self._executor.archive_messages(scope, messages[:count]),), count)
            case FoldSummaries() as plan:
                oldest = oldest_summaries(await store.read(Summaries(scope, kind="tree")), plan)
                return Step((await self._executor.archive_summaries(scope, oldest),))
            case _:
                return Step()
