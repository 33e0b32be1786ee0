"""Store a data set in a memory, as far as its conversations had got when a question was asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import anyio

from aforesaid.errors import ModelError
from aforesaid.memory import Memory
from aforesaid.store import Progress
from evaluation.conversation import Conversation, Dataset, Question

SPACE: Final = "eval"
REPEATABLE: Final = {"background": False}
"""Settings of a memory that is measured: work in the background, while it is being filled, would depend on timing."""
_AT_ONCE: Final = 64
"""Number of conversations stored concurrently, so that they share commits."""

Asking = tuple[Conversation, Question]
"""A question and the conversation that it is about."""


class Round(NamedTuple):
    """Questions that can be asked at the same time."""

    known: dict[str, int]
    """By id of the conversation: how many of its turns have been said by then."""
    asked: list[Asking]


def rounds_of(asked: Iterable[Asking]) -> list[Round]:
    """Divide questions into rounds, so that each is asked after all that was said before it, and before the rest.

    Most data sets ask at the end of a conversation, which is one round. Others ask after each session.
    """
    waiting: defaultdict[str, dict[int, list[Asking]]] = defaultdict(lambda: defaultdict(list))
    for conversation, question in asked:
        waiting[conversation.id][_turns_before(conversation, question)].append((conversation, question))
    steps = {name: sorted(questions.items()) for name, questions in waiting.items()}
    rounds = []
    for number in range(max(map(len, steps.values()), default=0)):
        now = {name: each[number] for name, each in steps.items() if number < len(each)}
        known = {name: count for name, (count, _) in now.items()}
        rounds.append(Round(known, [each for _, questions in now.values() for each in questions]))
    return rounds


def _turns_before(conversation: Conversation, question: Question) -> int:
    """Return how many turns were said before a question, up to its evidence at least: dates can be wrong."""
    evidence, sessions = set(question.turns), set(question.sessions)
    return max(
        (
            number
            for number, turn in enumerate(conversation.turns, 1)
            if turn.at <= question.asked_at or turn.id in evidence or turn.session in sessions
        ),
        default=0,
    )


class Filling:
    """Stores the turns of a data set in a memory. Each conversation is a user of it."""

    def __init__(self, memory: Memory, dataset: Dataset, progress: Progress) -> None:
        self._memory = memory
        self._conversations = {each.id: each for each in dataset.conversations}
        self._progress = progress
        self._stored: dict[str, int] = dict.fromkeys(self._conversations, 0)

    async def up_to(self, known: Mapping[str, int]) -> None:
        """Store the first turns of conversations, as many as `known` says, and do all background work."""
        places = anyio.CapacityLimiter(_AT_ONCE)
        total = sum({**self._stored, **known}.values())

        async def store(name: str, count: int) -> None:
            async with places:
                for turn in self._conversations[name].turns[self._stored[name] : count]:
                    user = self._memory.user(name, space=SPACE, session=turn.session)
                    await user.add(turn.role, turn.text, at=turn.at, id=turn.id, author=turn.speaker, name=turn.speaker)
                    self._stored[name] += 1
                    self._progress("storing", sum(self._stored.values()), total)

        try:
            async with anyio.create_task_group() as tasks:
                for name, count in known.items():
                    tasks.start_soon(store, name, count)
        except ExceptionGroup as group:
            raise group.exceptions[0] from None  # the error that stopped the others
        report = await self._memory.upkeep(self._progress)
        if report.error is not None:
            raise ModelError(f"recall cannot be measured, because embedding failed: {report.error}")


async def fill(memory: Memory, dataset: Dataset, progress: Progress) -> None:
    """Store a whole data set in a memory, and do all background work."""
    whole = {each.id: len(each.turns) for each in dataset.conversations}
    await Filling(memory, dataset, progress).up_to(whole)
