"""The benchmark on labelled transcripts: recall, contexts, facts, and what was never said, in one report."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, get_args

from aforesaid.errors import InvalidInput
from aforesaid.store import Progress
from evaluation.contexts import ContextReport, measure_contexts
from evaluation.conversation import Dataset
from evaluation.datasets import load_datasets
from evaluation.measure import Ranking, measure
from evaluation.memories import FactReport, FactTranscript, load_fact_transcripts, measure_facts
from evaluation.question_sample import sample
from evaluation.report import DatasetReport

Part = Literal["recall", "contexts", "facts"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
RANKINGS: Final[tuple[Ranking, ...]] = ("keyword", "all")
"""Keywords alone for comparison, and the ranking that `search` uses."""
PROFILE: Final = "default"
_FORMAT: Final = "transcripts"
_CONVERSATIONS: Final = Path(__file__).parents[1] / "conversations"
_TEST_PART: Final = _CONVERSATIONS / "test-part.txt"


@dataclass(frozen=True, slots=True)
class OwnReport:
    """The figures of a folder of transcripts. A part that was not asked for is None."""

    path: str
    conversations: int
    turns: int
    recall: DatasetReport | None
    contexts: ContextReport | None
    facts: FactReport | None
    trained_on: int = 0
    """Number of the conversations that weights were trained on, so that their figures are too high."""


@dataclass(frozen=True, slots=True)
class Transcripts:
    """The transcripts of a folder: their questions, and their facts."""

    questions: Dataset
    facts: tuple[FactTranscript, ...]


def load_transcripts(path: Path, ids: Collection[str] | None = None, limit: int | None = None) -> Transcripts:
    """Load the transcripts in a file or folder: all, or those with these ids.

    With a limit, a fixed sample of so many questions is asked; the facts are always complete. Raises InvalidInput if
    there are no transcripts.
    """
    found = [dataset for dataset in load_datasets(path) if dataset.format == _FORMAT]
    conversations = tuple(
        conversation
        for dataset in found
        for conversation in dataset.conversations
        if ids is None or conversation.id in ids
    )
    if not conversations:
        which = "" if ids is None else " with one of the given ids"
        raise InvalidInput(f"{path} has no labelled transcripts{which}; they are text files that begin with '# id:'")
    if len({conversation.id for conversation in conversations}) < len(conversations):
        raise InvalidInput(f"{path} has two transcripts with the same id, in different folders; measure one folder")
    facts = [each for each in load_fact_transcripts(path) if ids is None or each.id in ids]
    first = found[0] if len(found) == 1 else replace(found[0], path=path)
    # What a loader left out is counted for all transcripts, which says nothing about a part of them.
    left_out, mended = ((), ()) if ids is not None or len(found) > 1 else (first.left_out, first.mended)
    whole = replace(first, conversations=conversations, left_out=left_out, mended=mended)
    return Transcripts(whole if limit is None else sample(whole, limit), tuple(facts))


async def measure_own(transcripts: Transcripts, parts: Sequence[Part], progress: Progress) -> OwnReport:
    """Measure the parts, each in a temporary memory of its own. No model is asked."""
    dataset = transcripts.questions
    recall = contexts = facts = None
    if "recall" in parts:
        recall = await measure(dataset, RANKINGS, progress)
    if "contexts" in parts:
        contexts = await measure_contexts(dataset, (PROFILE,), progress)
    if "facts" in parts and transcripts.facts:
        facts = await measure_facts(dataset.path, transcripts.facts, progress)
    turns = sum(len(conversation.turns) for conversation in dataset.conversations)
    trained_on = len(_trained_on().intersection(conversation.id for conversation in dataset.conversations))
    return OwnReport(str(dataset.path), len(dataset.conversations), turns, recall, contexts, facts, trained_on)


def _trained_on() -> set[str]:
    """Return the ids of the repository's conversations, without those of the test part."""
    return {path.stem for path in _CONVERSATIONS.glob("*-*.txt")}.difference(_TEST_PART.read_text("utf-8").split())
