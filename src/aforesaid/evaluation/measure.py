"""Store a data set in a temporary memory and search for its questions."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import anyio

from aforesaid.errors import ModelError
from aforesaid.evaluation.conversation import Conversation, Dataset, Question
from aforesaid.evaluation.like_baseline import like
from aforesaid.evaluation.report import DatasetReport, QuestionResult, mark, sum_up_dataset, sum_up_ranking
from aforesaid.memory import Memory, connect
from aforesaid.recall import Arms
from aforesaid.store import Progress

Ranking = Literal["like", "keyword", "dense", "all"]

ARMS: Final[tuple[Arms, ...]] = ("keyword", "dense", "all")

SPACE: Final = "eval"
_DEPTH: Final = 50
"""Number of hits requested per question: enough for the first 20 turns and 20 sessions."""
_AT_ONCE: Final = 64
"""Number of conversations stored concurrently, so that they share commits."""
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
    questions = sum(len(conversation.questions) for conversation in dataset.conversations)
    # Embed only if a ranking needs it: embedding takes far longer than everything else.
    embedder = None if {"dense", "all"}.intersection(rankings) else "none"
    with tempfile.TemporaryDirectory(prefix="aforesaid-eval-") as folder:
        async with connect(Path(folder) / "memory.db", profile=_PROFILE, embedder=embedder) as memory:
            await fill(memory, dataset, progress)
            reports = []
            for number, ranking in enumerate(rankings):
                done = number * questions

                def advance(asked: int, done: int = done) -> None:
                    progress("asking", done + asked, questions * len(rankings))

                ask = _ask_baseline if ranking == "like" else _asking(memory, ranking)
                results = await _answer(dataset, ask, advance)
                # Only the complete ranking has a minimum score, below which a search finds nothing.
                never_said = await _best_of_unanswerable(dataset, ask) if ranking == "all" else []
                reports.append(sum_up_ranking(ranking, results, never_said))
            return sum_up_dataset(dataset, await _embedder(memory), reports)


async def fill(memory: Memory, dataset: Dataset, progress: Progress) -> None:
    """Store a data set in a memory, each conversation as one user, and do all background work."""
    total = sum(len(conversation.turns) for conversation in dataset.conversations)
    stored = 0
    places = anyio.CapacityLimiter(_AT_ONCE)

    async def store(conversation: Conversation) -> None:
        nonlocal stored
        async with places:
            for turn in conversation.turns:
                user = memory.user(conversation.id, space=SPACE, session=turn.session)
                await user.add(turn.role, turn.text, at=turn.at, id=turn.id, author=turn.speaker, name=turn.speaker)
                stored += 1
                progress("storing", stored, total)

    try:
        async with anyio.create_task_group() as tasks:
            for conversation in dataset.conversations:
                tasks.start_soon(store, conversation)
    except ExceptionGroup as group:
        raise group.exceptions[0] from None  # the error that stopped the others
    report = await memory.upkeep(progress)
    if report.error is not None:
        raise ModelError(f"recall cannot be measured, because embedding failed: {report.error}")


async def _embedder(memory: Memory) -> str:
    health = await memory.health()
    return next(dict(part.facts)["model"] for part in health.components if part.name == "embedder")


def _asking(memory: Memory, arms: Arms) -> _Ask:
    async def ask(conversation: Conversation, question: Question) -> _Found:
        user = memory.user(conversation.id, space=SPACE)
        hits = await user.search(
            question.text, _DEPTH, at=question.asked_at, arms=arms, kinds=("message",), min_score=0
        )
        return _Found([hit.sources for hit in hits], hits[0].score if hits else 0.0)

    return ask


async def _ask_baseline(conversation: Conversation, question: Question) -> _Found:
    return _Found([(turn,) for turn in like(question.text, conversation.turns, _DEPTH)])


async def _best_of_unanswerable(dataset: Dataset, ask: _Ask) -> list[float]:
    """Return the score of the best hit for each question about what was never said."""
    return [
        (await ask(conversation, question)).best
        for conversation in dataset.conversations
        for question in conversation.unanswerable
    ]


async def _answer(dataset: Dataset, ask: _Ask, advance: Callable[[int], None]) -> list[QuestionResult]:
    pairs = [(conversation, question) for conversation in dataset.conversations for question in conversation.questions]
    if pairs:
        # The first search loads the embedder, which is not part of the latency of a search.
        await ask(*pairs[0])
    answers = []
    for number, (conversation, question) in enumerate(pairs, 1):
        start = time.perf_counter()
        found = await ask(conversation, question)
        milliseconds = (time.perf_counter() - start) * 1_000
        answers.append(mark(question, found.hits, conversation, milliseconds, found.best))
        advance(number)
    return answers
