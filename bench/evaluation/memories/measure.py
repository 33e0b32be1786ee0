"""Extract memories from labelled conversations and compare them with the labels."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from aforesaid.domain.memory import MemoryRecord
from aforesaid.errors import ModelError
from aforesaid.facts.statement import support
from aforesaid.memory import Memory, UserMemory, connect
from aforesaid.store import Progress
from evaluation.conversation import Count, counts
from evaluation.filling import REPEATABLE
from evaluation.memories.cases import Case, CaseSet

_SPACE: Final = "eval"
EXTRACTING: Final = {"message_bytes": 16 * 1024 * 1024, "summaries": "none", "extract": True, "keep_days": {}}
"""No summaries, and memories do not expire: old conversations count as well."""
_COVERED: Final = 0.5
"""A memory matches a label if it contains at least this share of the label's words."""
_HITS: Final = 10
_AT_ONCE: Final = 64
_SEED: Final = 7


@dataclass(frozen=True, slots=True)
class Sample:
    """A memory and its source message, printed for a person to judge."""

    memory: str
    category: str
    said: str


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """How many of the labelled facts were extracted."""

    format: str
    path: str
    turns: int
    labels: int
    memories: int
    quarantined: int
    found: float | None
    """Share of the labels whose turn is the source of a memory."""
    covered: float | None
    """Share of the labels matched by a memory from their turn. None if the labels paraphrase the texts."""
    typed: float | None
    """Share of the labels whose turn is the source of a memory of their category. None without categories."""
    precise: float | None
    """Share of the memories whose turn has a label (of their category, where labels have one). A lower bound of the
    precision: labels do not name everything."""
    recalled: float | None
    """Share of the evidence turns that are sources of the first ten memories found by a search."""
    questions: int
    categories: tuple[Count, ...]
    samples: tuple[Sample, ...] = field(repr=False)


async def measure_memories(
    cases: CaseSet, progress: Progress, *, samples: int = 0, recall: bool = True
) -> MemoryReport:
    """Extract memories without a model from a data set in a temporary memory, and compare them with the labels."""
    asking = recall and any(case.questions for case in cases.cases)
    with tempfile.TemporaryDirectory(prefix="aforesaid-eval-") as folder:
        # Default settings: without a model.
        async with connect(Path(folder) / "memory.db", profile=EXTRACTING, settings=REPEATABLE) as memory:
            places = await _fill(memory, cases.cases, progress)
            learned = {case.id: await _user(memory, case).memories(active=None) for case in cases.cases}
            recalled = await _recall(memory, cases.cases, progress) if asking else None
    return _sum_up(cases, learned, places, recalled, samples)


def _user(memory: Memory, case: Case) -> UserMemory:
    return memory.user(case.id, space=_SPACE)


async def _fill(memory: Memory, cases: Sequence[Case], progress: Progress) -> dict[int, str]:
    """Store everything and extract memories. Return the turn id of each message."""
    total = sum(len(case.turns) for case in cases)
    stored: dict[int, str] = {}
    places = anyio.CapacityLimiter(_AT_ONCE)

    async def store(case: Case) -> None:
        async with places:
            for turn in case.turns:
                user = memory.user(case.id, space=_SPACE, session=turn.session)
                who = turn.speaker
                receipt = await user.add(turn.role, turn.text, at=turn.at, id=turn.id, author=who, name=who)
                stored[receipt.message.seq] = turn.id
                progress("storing", len(stored), total)

    async with anyio.create_task_group() as tasks:
        for case in cases:
            tasks.start_soon(store, case)
    report = await memory.upkeep(progress)
    if report.error is not None:
        raise ModelError(f"memories cannot be measured, because background work failed: {report.error}")
    return stored


async def _recall(memory: Memory, cases: Sequence[Case], progress: Progress) -> list[float]:
    shares = []
    pairs = [(case, question) for case in cases for question in case.questions if question.turns and not question.apart]
    for number, (case, question) in enumerate(pairs, 1):
        user = _user(memory, case)
        hits = await user.search(question.text, _HITS, at=question.asked_at, kinds=("memory",))
        sources = {source for hit in hits for source in hit.sources}
        shares.append(len(sources.intersection(question.turns)) / len(question.turns))
        progress("asking", number, len(pairs))
    return shares


def _sum_up(
    cases: CaseSet,
    learned: dict[str, list[MemoryRecord]],
    places: dict[int, str],
    recalled: list[float] | None,
    samples: int,
) -> MemoryReport:
    tally: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    pool: list[Sample] = []
    for case in cases.cases:
        by_turn = _by_turn(learned[case.id], places)
        texts = {turn.id: turn.text for turn in case.turns}
        _compare(case, by_turn, tally)
        for turn, memories in by_turn.items():
            for memory in memories:
                categories[memory.category] += 1
                pool.append(Sample(memory.text, memory.category, texts[turn]))
    labels = sum(len(case.labels) for case in cases.cases)
    everything = [memory for memories in learned.values() for memory in memories]
    typed = any(label.category for case in cases.cases for label in case.labels)
    worded = not typed and any(label.text for case in cases.cases for label in case.labels)
    return MemoryReport(
        format=cases.format,
        path=str(cases.path),
        turns=sum(len(case.turns) for case in cases.cases),
        labels=labels,
        memories=len(everything),
        quarantined=sum(memory.state == "quarantined" for memory in everything),
        found=_share(tally["found"], labels),
        covered=_share(tally["covered"], labels) if worded else None,
        typed=_share(tally["typed"], labels) if typed else None,
        precise=_share(tally["labelled"], tally["memories"]),
        recalled=None if recalled is None else sum(recalled) / max(len(recalled), 1),
        questions=0 if recalled is None else len(recalled),
        categories=counts(categories),
        samples=tuple(random.Random(_SEED).sample(pool, min(samples, len(pool)))),
    )


def _by_turn(memories: Sequence[MemoryRecord], places: dict[int, str]) -> dict[str, list[MemoryRecord]]:
    """Return the memories by their source turn."""
    found: dict[str, list[MemoryRecord]] = {}
    for memory in memories:
        for source in memory.sources:
            found.setdefault(places[source], []).append(memory)
    return found


def _compare(case: Case, by_turn: dict[str, list[MemoryRecord]], tally: Counter[str]) -> None:
    for label in case.labels:
        memories = by_turn.get(label.turn, [])
        tally["found"] += bool(memories)
        tally["covered"] += any(support(label.text, [memory.text]) >= _COVERED for memory in memories)
        tally["typed"] += any(memory.category == label.category for memory in memories)
    wanted: dict[str, set[str | None]] = {}
    for label in case.labels:
        wanted.setdefault(label.turn, set()).add(label.category)
    for turn, memories in by_turn.items():
        for memory in memories:
            tally["memories"] += 1
            kinds = wanted.get(turn, set())
            tally["labelled"] += None in kinds or memory.category in kinds


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
