"""Store a data set in a temporary memory and search for its questions."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from aforesaid.memory import Memory, connect
from aforesaid.recall import Arms
from aforesaid.store import Progress
from evaluation.conversation import Conversation, Dataset, Question
from evaluation.filling import REPEATABLE, SPACE, Filling, rounds_of
from evaluation.like_baseline import like
from evaluation.report import DatasetReport, QuestionResult, mark, sum_up_dataset, sum_up_ranking

Ranking = Literal["like", "keyword", "dense", "all"]

ARMS: Final[tuple[Arms, ...]] = ("keyword", "dense", "all")

_DEPTH: Final = 50
"""Number of hits requested per question: enough for the first 20 turns and 20 sessions."""
_PROFILE: Final = {"message_bytes": 16 * 1024 * 1024, "summaries": "none", "extract": False}
"""Data sets contain a few very long turns. Only messages are searched, so nothing is summarised."""


class _Found(NamedTuple):
    """What a search found for a question."""

    hits: list[tuple[str, ...]]
    """Best first: the ids of the turns in each hit, more than one where turns have the same words."""
    best: float = 0.0
    """The score of the best hit; 0 if there is none, or if the ranking has no scores."""


_Ask = Callable[[Conversation, Question], Awaitable[_Found]]


async def measure(dataset: Dataset, rankings: Sequence[Ranking], progress: Progress) -> DatasetReport:
    """Ask every question of a data set, once for each ranking.

    The memory is a temporary file that is gone afterwards. Each conversation is a user of it.
    """
    counted = [(conversation, each) for conversation in dataset.conversations for each in conversation.questions]
    never_said = [(conversation, each) for conversation in dataset.conversations for each in conversation.unanswerable]
    # Embed only if a ranking needs it: embedding takes far longer than everything else.
    embedder = None if {"dense", "all"}.intersection(rankings) else "none"
    with tempfile.TemporaryDirectory(prefix="aforesaid-eval-") as folder:
        place = Path(folder) / "memory.db"
        async with connect(place, profile=_PROFILE, embedder=embedder, settings=REPEATABLE) as memory:
            asked = {each: _Asked(memory, each) for each in rankings}
            filling, done = Filling(memory, dataset, progress), 0
            for known, together in rounds_of([*counted, *never_said]):
                await filling.up_to(known)
                for ranking in asked.values():
                    for conversation, question in together:
                        await ranking.ask(conversation, question)
                        done += question.has_evidence
                        progress("asking", done, len(counted) * len(rankings))
            reports = [sum_up_ranking(name, each.results, each.never_said) for name, each in asked.items()]
            return sum_up_dataset(dataset, await _embedder(memory), reports)


async def _embedder(memory: Memory) -> str:
    health = await memory.health()
    return next(dict(part.facts)["model"] for part in health.components if part.name == "embedder")


class _Asked:
    """Asks questions with one ranking, and keeps what was found."""

    def __init__(self, memory: Memory, ranking: Ranking) -> None:
        self.results: list[QuestionResult] = []
        self.never_said: list[float] = []
        """The score of the best hit for each question about what was never said."""
        self._ranking = ranking
        self._ask = _ask_baseline if ranking == "like" else _asking(memory, ranking)
        self._warm = False

    async def ask(self, conversation: Conversation, question: Question) -> None:
        """Ask a question."""
        if not question.has_evidence:
            # Only the complete ranking has a minimum score, below which a search finds nothing.
            if self._ranking == "all":
                self.never_said.append((await self._ask(conversation, question)).best)
            return
        if not self._warm:
            # The first search loads the embedder, which is not part of the latency of a search.
            await self._ask(conversation, question)
            self._warm = True
        start = time.perf_counter()
        found = await self._ask(conversation, question)
        milliseconds = (time.perf_counter() - start) * 1_000
        self.results.append(mark(question, found.hits, conversation, milliseconds, found.best))


def _asking(memory: Memory, arms: Arms) -> _Ask:
    async def ask(conversation: Conversation, question: Question) -> _Found:
        user = memory.user(conversation.id, space=SPACE)
        hits = await user.search(question.text, _DEPTH, at=question.asked_at, arms=arms, kinds=("message",))
        return _Found([hit.sources for hit in hits], hits[0].score if hits else 0.0)

    return ask


async def _ask_baseline(conversation: Conversation, question: Question) -> _Found:
    return _Found([(turn,) for turn in like(question.text, conversation.turns, _DEPTH)])
