"""Scores notes (summaries and memories) for a question, and turns them into hits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from aforesaid.domain.hit import Hit
from aforesaid.domain.note import NoteMatch
from aforesaid.recall.background import Background, similarity
from aforesaid.recall.score import NoteEvidence, ScoreScale

_COVERED: Final = ("coverage", "session_coverage")
_NEAR: Final = ("dense", "session_dense")


class ScoredNote(NamedTuple):
    """A note with the value that each feature adds to its score."""

    note: NoteMatch
    parts: tuple[tuple[str, float], ...]
    similarity: float | None

    @property
    def total(self) -> float:
        """The weighted sum of the features."""
        return sum(value for _, value in self.parts)


def score_notes(
    found: list[NoteMatch], background: Background, weights: Mapping[str, float], sessions: int
) -> list[ScoredNote]:
    """Score notes on the scale of messages.

    A note has no neighbours and no session. It covers several messages, so its text also counts as that of a session.
    As for messages, similarity with a session weighs less if there are few `sessions`.
    """
    scale = {"session_dense": 1 - 1 / max(sessions, 1)}
    scored = []
    for note in found:
        standard = None if note.similarity is None else background.standard(note.similarity)
        parts = [(name, weights.get(name, 0.0) * note.coverage) for name in _COVERED]
        if standard is not None:
            parts += [(name, weights.get(name, 0.0) * standard * scale.get(name, 1.0)) for name in _NEAR]
        scored.append(ScoredNote(note, tuple(parts), None if standard is None else similarity(standard)))
    return scored


def evidence(scored: list[ScoredNote], background: Background) -> NoteEvidence:
    """Return the highest values among the notes, which the score scale of the question depends on."""
    if not scored:
        return NoteEvidence()
    near = [background.standard(each.note.similarity) for each in scored if each.note.similarity is not None]
    return NoteEvidence(
        max(each.total for each in scored), max(each.note.coverage for each in scored), max(near, default=0.0)
    )


def note_hits(scored: list[ScoredNote], scale: ScoreScale) -> list[Hit]:
    """Return scored notes as hits."""
    return [
        Hit(
            kind=each.note.key.kind,
            id=str(each.note.key.id),
            text=each.note.text,
            score=scale.score(each.total),
            at=each.note.at,
            sources=each.note.sources,
            terms=each.note.words,
            parts=each.parts,
            similarity=each.similarity,
        )
        for each in scored
    ]
