"""Extract memories from transcripts with facts, without a model, and compare them with the facts.

Each speaker is a user, and all of them talk in one thread. A fact is noticed if a memory rests on one of its turns.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Final

from aforesaid.domain.memory import INSTRUCTION, LAPSED, PASSED, MemoryRecord
from aforesaid.errors import ModelError
from aforesaid.memory import Memory, connect
from aforesaid.store import Progress
from aforesaid.text.languages import CODES, stems, stop_words
from aforesaid.text.words import words_of
from evaluation.filling import REPEATABLE
from evaluation.memories.measure import EXTRACTING, Sample
from evaluation.memories.transcripts import FactTranscript, TranscriptFact

_THREAD: Final = "talk"
_SEED: Final = 7
_PAST: Final = frozenset({LAPSED, PASSED})
"""Why a memory is inactive that is true, but of the past."""
_LANGUAGES: Final = {code: language for language, code in CODES.items()}


@dataclass(frozen=True, slots=True)
class FactFigures:
    """How well memories match the facts of conversations."""

    turns: int
    facts: int
    memories: int
    """Active memories."""
    coverage: float | None
    """Share of the facts that no other replaced and that a memory rests on which is active, or ended with its time."""
    current: float | None
    """The same with active memories alone."""
    precision: float | None
    """Share of the active memories that rest on a turn with a fact."""
    changes: float | None
    """Of the changes of which both facts were noticed, the share after which nothing active tells what only the old
    fact says, while something active rests on the new one. What else the old turn says may live on."""
    emptied: float | None
    """The same, if nothing at all that rests on the old turn may be active."""
    noticed_changes: int
    superseded: int
    """Memories that another one replaced, without those of which it says the same in more words."""
    superseded_rightly: float | None
    """Share of them that rest on a turn with a replaced fact."""
    importance: float | None
    """Spearman's correlation of the importance of active memories and of the most important fact under them."""
    instructions: float | None
    """Share of the standing instructions that no other replaced and on which an active instruction rests."""
    labelled_instructions: int


@dataclass(frozen=True, slots=True)
class FactReport:
    """The figures of a folder of transcripts, whole, by language and by kind of chat."""

    path: str
    conversations: int
    overall: FactFigures
    languages: dict[str, FactFigures]
    kinds: dict[str, FactFigures]
    samples: tuple[Sample, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A conversation, and its memories with the turns that each rests on."""

    transcript: FactTranscript
    memories: Sequence[tuple[MemoryRecord, frozenset[str]]]


async def measure_facts(
    path: Path,
    transcripts: Sequence[FactTranscript],
    progress: Progress,
    *,
    samples: int = 0,
    embedder: str | None = None,
) -> FactReport:
    """Extract memories from transcripts in a temporary memory, and compare them with the facts."""
    with tempfile.TemporaryDirectory(prefix="aforesaid-eval-") as folder:
        place = Path(folder) / "memory.db"
        async with connect(place, profile=EXTRACTING, embedder=embedder, settings=REPEATABLE) as memory:
            places = await _fill(memory, transcripts, progress)
            compared = [await _compared(memory, each, places) for each in transcripts]
    pool = [
        Sample(known.text, known.category, " / ".join(turn.text for turn in each.transcript.turns if turn.id in turns))
        for each in compared
        for known, turns in each.memories
        if known.active
    ]
    return FactReport(
        path=str(path),
        conversations=len(transcripts),
        overall=_figures(compared),
        languages=_by(compared, lambda transcript: transcript.language),
        kinds=_by(compared, lambda transcript: transcript.kind),
        samples=tuple(random.Random(_SEED).sample(pool, min(samples, len(pool)))),
    )


async def _fill(
    memory: Memory, transcripts: Sequence[FactTranscript], progress: Progress
) -> dict[tuple[str, int], str]:
    """Store everything and extract memories. Return the turn of each message, by space and sequence number."""
    total = sum(len(each.turns) for each in transcripts)
    stored: dict[tuple[str, int], str] = {}
    for each in transcripts:
        owner = next(turn.speaker for turn in each.turns if turn.speaker is not None)
        for turn in each.turns:
            # What the assistant says belongs to the person who spoke last.
            owner = turn.speaker or owner
            user = memory.user(owner, space=each.id, thread=_THREAD, session=turn.session)
            receipt = await user.add(turn.role, turn.text, at=turn.at, id=turn.id, name=turn.speaker)
            stored[each.id, receipt.message.seq] = turn.id
            progress("storing", len(stored), total)
    report = await memory.upkeep(progress)
    if report.error is not None:
        raise ModelError(f"memories cannot be measured, because background work failed: {report.error}")
    return stored


async def _compared(memory: Memory, each: FactTranscript, places: dict[tuple[str, int], str]) -> _Compared:
    speakers = dict.fromkeys(turn.speaker for turn in each.turns if turn.speaker is not None)
    found = [
        (known, frozenset(places[each.id, seq] for seq in known.sources))
        for speaker in speakers
        for known in await memory.user(speaker, space=each.id).memories(active=None)
        if known.state != "quarantined"
    ]
    return _Compared(each, found)


def _by(compared: Sequence[_Compared], group: Callable[[FactTranscript], str]) -> dict[str, FactFigures]:
    names = sorted({group(each.transcript) for each in compared})
    return {name: _figures([each for each in compared if group(each.transcript) == name]) for name in names}


def _figures(compared: Sequence[_Compared]) -> FactFigures:
    covered = shown = lasting = precise = active = superseded = rightly = settled = emptied = noticed = 0
    important: list[tuple[int, int]] = []
    for each in compared:
        facts, replaced = each.transcript.facts, each.transcript.replaced
        seen = _union(turns for _, turns in each.memories)
        kept = _union(turns for memory, turns in each.memories if memory.active)
        old = _union(frozenset(facts[place].turns) for place in replaced)
        weights = {turn: fact.importance for fact in sorted(facts, key=attrgetter("importance")) for turn in fact.turns}
        lasting += len(facts) - len(replaced)
        known = kept | _union(turns for memory, turns in each.memories if memory.reason in _PAST)
        covered += sum(not known.isdisjoint(fact.turns) for place, fact in enumerate(facts) if place not in replaced)
        shown += sum(not kept.isdisjoint(fact.turns) for place, fact in enumerate(facts) if place not in replaced)
        for memory, turns in each.memories:
            active += memory.active
            replaced_one = memory.state == "superseded" and not _is_completed(memory, each.memories)
            superseded += replaced_one
            rightly += replaced_one and not turns.isdisjoint(old)
            if memory.active and (labels := [weights[turn] for turn in turns if turn in weights]):
                precise += 1
                important.append((memory.importance, max(labels)))
        for before, after in each.transcript.changes:
            was, now = facts[before].turns, facts[after].turns
            if not seen.isdisjoint(was) and not seen.isdisjoint(now):
                told = _telling(each, facts[before], facts[after])
                noticed += 1
                emptied += kept.isdisjoint(was) and not kept.isdisjoint(now)
                # Where nothing tells it in the same words, it counts as ended only if all of its turn is.
                still = any(memory.active for memory in told) if told else not kept.isdisjoint(was)
                settled += not still and not kept.isdisjoint(now)
    followed, instructions = _instructions(compared)
    return FactFigures(
        turns=sum(len(each.transcript.turns) for each in compared),
        facts=sum(len(each.transcript.facts) for each in compared),
        memories=active,
        coverage=_share(covered, lasting),
        current=_share(shown, lasting),
        precision=_share(precise, active),
        changes=_share(settled, noticed),
        emptied=_share(emptied, noticed),
        noticed_changes=noticed,
        superseded=superseded,
        superseded_rightly=_share(rightly, superseded),
        importance=rank_correlation(important),
        instructions=_share(followed, instructions),
        labelled_instructions=instructions,
    )


def _telling(each: _Compared, old: TranscriptFact, new: TranscriptFact) -> list[MemoryRecord]:
    """Return the memories of an old fact's turns, and not of the new one's, with a word that only the old fact has."""
    language = _LANGUAGES.get(each.transcript.language, "english")
    words = _stems(old.text, language) - _stems(new.text, language)
    later = set(new.turns) - set(old.turns)
    return [
        memory
        for memory, turns in each.memories
        if not turns.isdisjoint(old.turns) and turns.isdisjoint(later) and _stems(memory.text, language) & words
    ]


def _is_completed(memory: MemoryRecord, memories: Sequence[tuple[MemoryRecord, frozenset[str]]]) -> bool:
    """Return whether the value in a memory's place has all its words: "bulging disc L5" for "L5"."""
    new = next((each for each, _ in memories if each.id == memory.superseded_by and each.user == memory.user), None)
    if new is None or memory.value is None or new.value is None or memory.matter != new.matter:
        return False
    return set(words_of(memory.value)) < set(words_of(new.value))


def _stems(text: str, language: str) -> set[str]:
    return set(stems([word for word in words_of(text) if word not in stop_words(language)], language))


def _instructions(compared: Sequence[_Compared]) -> tuple[int, int]:
    """Return how many standing instructions an active instruction rests on, and how many there are."""
    followed = total = 0
    for each in compared:
        kept = _union(turns for memory, turns in each.memories if memory.active and memory.kind == INSTRUCTION)
        replaced = each.transcript.replaced
        labels = [fact for place, fact in enumerate(each.transcript.facts) if place not in replaced]
        wanted = [fact for fact in labels if fact.kind == INSTRUCTION]
        total += len(wanted)
        followed += sum(not kept.isdisjoint(fact.turns) for fact in wanted)
    return followed, total


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Spearman's correlation of pairs of numbers; None if one side does not vary."""
    import numpy as np  # noqa: PLC0415 - not needed to import the package

    if not pairs:
        return None
    ranks = []
    for side in zip(*pairs, strict=True):
        _, place, count = np.unique(np.array(side), return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(count) - (count - 1) / 2)[place])
    if any(side.std() == 0 for side in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
