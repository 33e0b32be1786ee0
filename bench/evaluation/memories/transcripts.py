"""Facts in labelled transcripts, and which fact replaced which.

F Mara | Mara has a brother, Levin, who lives in Oslo. | family | 7 | 12      owner, fact, kind, importance, turns
X 3 -> 9                                                                      fact 9 replaced fact 3
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluation import transcript
from evaluation.conversation import Tallies, Turn
from evaluation.json_files import Node, read_text

_FACT_PARTS: Final = 5
_CHANGE: Final = re.compile(r"X (\d+) -> (\d+)\s*")


@dataclass(frozen=True, slots=True)
class TranscriptFact:
    """A fact that is worth remembering."""

    owner: str
    text: str
    kind: str
    importance: int
    turns: tuple[str, ...]
    """Ids of the turns that say it."""


@dataclass(frozen=True, slots=True)
class FactTranscript:
    """A conversation with its facts."""

    id: str
    language: str
    kind: str
    """The kind of chat."""
    turns: tuple[Turn, ...]
    facts: tuple[TranscriptFact, ...]
    changes: tuple[tuple[int, int], ...]
    """Pairs of places in `facts`: the second fact replaced the first."""

    @property
    def replaced(self) -> frozenset[int]:
        """The places of facts that another one replaced."""
        return frozenset(old for old, _ in self.changes)


def load_fact_transcripts(path: Path) -> list[FactTranscript]:
    """Load the transcripts with facts in a file or folder, sorted by name."""
    found = [path] if path.is_file() else sorted(path.rglob("*.txt"))
    loaded = [_load(file) for file in found if file.suffix == ".txt" and transcript.begins(file)]
    return [each for each in loaded if each.facts]


def _load(file: Path) -> FactTranscript:
    text = read_text(file)
    conversation = next(iter(transcript.load(Node(text, file), Tallies())))
    lines = [Node(line, file, (f"line {number}",)) for number, line in enumerate(text.splitlines(), 1)]
    known = {turn.id for turn in conversation.turns}
    facts = tuple(_facts(lines, known))
    changes = tuple(_changes(lines, len(facts)))
    return FactTranscript(conversation.id, conversation.language, conversation.kind, conversation.turns, facts, changes)


def _facts(lines: list[Node], known: set[str]) -> Iterator[TranscriptFact]:
    for line in lines:
        if not line.text().startswith("F "):
            continue
        parts = [part.strip() for part in line.text().removeprefix("F ").split("|")]
        turns = re.findall(r"\d+", parts[-1])
        if len(parts) != _FACT_PARTS or not parts[3].isdecimal() or not turns or not known.issuperset(turns):
            raise line.damaged("is not a fact in the form: F owner | fact | kind | importance | numbers of messages")
        yield TranscriptFact(parts[0], parts[1], parts[2], int(parts[3]), tuple(turns))


def _changes(lines: list[Node], facts: int) -> Iterator[tuple[int, int]]:
    for line in lines:
        if not line.text().startswith("X "):
            continue
        match = _CHANGE.fullmatch(line.text())
        if match is None or not 0 < int(match[1]) <= facts or not 0 < int(match[2]) <= facts:
            raise line.damaged("does not say which fact replaced which: write X 3 -> 9")
        yield int(match[1]) - 1, int(match[2]) - 1
