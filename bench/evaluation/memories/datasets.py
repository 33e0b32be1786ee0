"""Load conversations with labelled facts: LoCoMo, MemDaily, texts with typed memories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aforesaid.domain.checks import Category
from aforesaid.errors import InvalidInput
from evaluation import locomo, memdaily
from evaluation.conversation import Conversation, Tallies, Turn
from evaluation.json_files import Node, read_first_value, read_text
from evaluation.memories.cases import Case, CaseSet, Label

_EVIDENCE: Final = re.compile(r"D:?([0-9]+):([0-9]+)")
_TYPES: Final[dict[str, Category]] = {
    "fact": "fact",
    "preference": "preference",
    "commitment": "task",
    "task": "task",
    "decision": "other",
    "opinion": "other",
    "event": "other",
    "schedule": "schedule",
}
_SAID: Final = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
"""The time of typed texts, which have no date. A Thursday."""


def load_cases(path: Path) -> list[CaseSet]:
    """Load every data set in a file or folder, sorted by path. Raises if there is none."""
    if not path.exists():
        raise InvalidInput(f"{path} does not exist; pass a file or folder with labelled conversations")
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*.json*") if file.is_file())
    found: dict[tuple[str, Path], list[Case]] = {}
    for file in files:
        for name, home, case in _typed(file) if file.suffix == ".jsonl" else _conversations(file):
            found.setdefault((name, home), []).append(case)
    if not found:
        raise InvalidInput(
            f"no conversations with labelled memories in {path}: nothing there is LoCoMo, MemDaily, typed texts or "
            "transcripts with facts"
        )
    return [CaseSet(name, home, tuple(cases)) for (name, home), cases in found.items()]


def _conversations(file: Path) -> Iterator[tuple[str, Path, Case]]:
    root, rest = read_first_value(file)
    if rest is not None:
        return
    if locomo.fits(root):
        for sample, conversation in zip(root.items(), locomo.load(root, Tallies()), strict=True):
            labels = tuple(_observations(sample, conversation))
            if labels:
                yield "LoCoMo", file, Case(conversation.id, conversation.turns, labels, conversation.questions)
    elif memdaily.fits(root):
        for conversation in memdaily.load(root, Tallies(), pooled=False):
            asked = {turn for question in conversation.questions for turn in question.turns}
            labels = tuple(Label(turn.id, turn.text) for turn in conversation.turns if turn.id in asked)
            yield "MemDaily", file.parent, Case(conversation.id, conversation.turns, labels, conversation.questions)


def _observations(sample: Node, conversation: Conversation) -> Iterator[Label]:
    """Read the observations of a LoCoMo sample. Observations about missing turns are skipped."""
    there = {turn.id for turn in conversation.turns}
    observed = sample.find("observation")
    for _, session in () if observed is None else observed.fields():
        for _, person in session.fields():
            for item in person.items():
                text, *evidence = [node.text() for node in item.leaves()]
                for one, two in _EVIDENCE.findall(" ".join(evidence))[:1]:
                    turn = f"D{int(one)}:{int(two)}"
                    if turn in there:
                        yield Label(turn, text)


def _typed(file: Path) -> Iterator[tuple[str, Path, Case]]:
    """Read texts of one language and their labelled memories: `dataset.de.jsonl` and `labels.jsonl`."""
    language = re.fullmatch(r"dataset(?:\.([\w-]+))?\.jsonl", file.name)
    if language is None:
        return
    own = file.with_name(f"labels.{language[1]}.jsonl")
    known = own if own.exists() else file.with_name("labels.jsonl")
    if not known.exists():
        return
    labels = {row.field("id").name(): row for row in _lines(known)}
    for row in _lines(file):
        name = row.field("id").name()
        turn = Turn(name, name, "user", None, row.field("text").text(), _SAID)
        typed = labels.get(name)
        found = () if typed is None else tuple(_labels(typed, name))
        yield f"typed texts, {language[1] or 'en'}", file, Case(name, (turn,), found)


def _labels(row: Node, turn: str) -> Iterator[Label]:
    for memory in row.field("memories").items():
        yield Label(turn, memory.field("content").text(), _TYPES.get(memory.field("type").text(), "other"))


def _lines(file: Path) -> Iterator[Node]:
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if line.strip():
            try:
                yield Node(json.loads(line), file, (f"line {number}",))
            except (json.JSONDecodeError, RecursionError) as error:
                raise InvalidInput(f"{file} is damaged: line {number} is not JSON: {error}") from None
