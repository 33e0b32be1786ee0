"""Build a context for every question and check whether it contains the evidence."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aforesaid.context import Context
from aforesaid.memory import Memory, connect
from aforesaid.models.embed import LocalEmbedder
from aforesaid.models.tokens import counter_for
from aforesaid.store import Progress
from evaluation.contexts.chunk_baseline import Chunks
from evaluation.conversation import Conversation, Dataset, Question
from evaluation.filling import REPEATABLE, SPACE, fill

BUDGETS: Final = (1_000, 2_000, 4_000, 8_000)
RECENT: Final = "recent messages alone"
CHUNKS: Final = "most similar chunks"
_PLAIN: Final = {"summaries": "none", "extract": False, "message_bytes": 16 * 1024 * 1024}

Ask = Callable[[Conversation, Question, int], Awaitable[set[str]]]


def newest_only(order: Sequence[str], tokens: int) -> dict[str, object]:
    """Return a profile whose contexts contain the newest messages, and nothing else that is remembered."""
    recipe = {"order": list(order), "trim": ["recent"], "recent": 1_000, "tokens": {"recent": tokens}}
    return {**_PLAIN, "context": recipe}


@dataclass(frozen=True, slots=True)
class Contained:
    """The result of one method of building contexts at one budget."""

    way: str
    budget: int
    all: float
    """Percentage of questions whose evidence is completely in the context."""
    share: float
    """Percentage of a question's evidence that is in the context, averaged over questions."""
    milliseconds: float
    languages: dict[str, float]
    """`share` by language, where the data set names it."""
    kinds: dict[str, float]
    """`share` by kind of chat, where the data set names it."""
    categories: dict[str, float]
    """`share` by category of question."""


@dataclass(frozen=True, slots=True)
class ContextReport:
    """The results of all methods on one data set."""

    format: str
    path: str
    questions: int
    tokens: str
    """The name of the token counter."""
    ways: tuple[Contained, ...]


async def measure_contexts(dataset: Dataset, profiles: Sequence[str], progress: Progress) -> ContextReport:
    """Measure every profile at every budget, and two baselines: the newest messages, and the most similar chunks."""
    embedder, found = LocalEmbedder(), []
    asked = [
        (conversation, question)
        for conversation in dataset.conversations
        for question in conversation.questions
        if question.turns and not question.apart
    ]
    chunks = {each.id: await Chunks.of(each, embedder, counter_for()) for each in dataset.conversations}

    async def by_chunks(conversation: Conversation, question: Question, budget: int) -> set[str]:
        return await chunks[conversation.id].best(question.text, embedder, budget)

    found += [await _ask(CHUNKS, by_chunks, asked, budget, progress) for budget in BUDGETS]
    for way in (RECENT, *profiles):
        profile = {"extends": way, "message_bytes": _PLAIN["message_bytes"]}
        if way == RECENT:
            profile = newest_only(("recent", "current"), max(BUDGETS))
        found += await _with_profile(dataset, way, profile, asked, progress)
    await embedder.close()
    return ContextReport(dataset.format, str(dataset.path), len(asked), counter_for().name, tuple(found))


async def _with_profile(
    dataset: Dataset,
    way: str,
    profile: dict[str, object],
    asked: Sequence[tuple[Conversation, Question]],
    progress: Progress,
) -> list[Contained]:
    with tempfile.TemporaryDirectory(prefix="aforesaid-eval-") as folder:
        async with connect(Path(folder) / "memory.db", profile=profile, settings=REPEATABLE) as memory:
            await fill(memory, dataset, progress)

            async def ask(conversation: Conversation, question: Question, budget: int) -> set[str]:
                return await _shown(memory, conversation, question, budget)

            return [await _ask(way, ask, asked, budget, progress) for budget in BUDGETS]


async def _shown(memory: Memory, conversation: Conversation, question: Question, budget: int) -> set[str]:
    user = memory.user(conversation.id, space=SPACE)
    context = await user.context(question.text, budget, at=question.asked_at)
    return turns_in(context)


def turns_in(context: Context) -> set[str]:
    """Return the ids of the turns that a context shows. Messages have the ids of the data set."""
    # A truncated message may lack the answer, so it does not count.
    return {item.key.removeprefix("message ") for item in context.items if item.shows and not item.cut}


async def _ask(
    way: str, ask: Ask, asked: Sequence[tuple[Conversation, Question]], budget: int, progress: Progress
) -> Contained:
    whole, shares, taken = 0, [], []
    for number, (conversation, question) in enumerate(asked, 1):
        start = time.perf_counter()
        inside = await ask(conversation, question, budget)
        taken.append((time.perf_counter() - start) * 1_000)
        share = sum(turn in inside for turn in question.turns) / len(question.turns)
        shares.append(share)
        whole += share == 1
        progress(f"{way}, {budget:,} tokens", number, len(asked))
    every = max(len(asked), 1)
    return Contained(
        way,
        budget,
        100 * whole / every,
        100 * sum(shares) / every,
        statistics.median(taken or [0.0]),
        _by([conversation.language for conversation, _ in asked], shares),
        _by([conversation.kind for conversation, _ in asked], shares),
        _by([question.category for _, question in asked], shares),
    )


def _by(groups: Sequence[str], shares: Sequence[float]) -> dict[str, float]:
    """Return the average share of each group in percent, sorted by name. Questions without a group are left out."""
    of: dict[str, list[float]] = {}
    for group, share in zip(groups, shares, strict=True):
        of.setdefault(group, []).append(share)
    return {group: 100 * statistics.fmean(of[group]) for group in sorted(of) if group}
