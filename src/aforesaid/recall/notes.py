"""Summaries and memories among the hits."""

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
    """A summary or a memory with what each feature adds."""

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
    """Score summaries and memories on the scale of messages.

    They have no neighbours and no session; each covers several messages, so its text counts like that of a session. As
    for messages, the meaning of a session counts less where there are few `sessions`.
    """
    telling = {"session_dense": 1 - 1 / max(sessions, 1)}
    scored = []
    for note in found:
        standard = None if note.similarity is None else background.standard(note.similarity)
        parts = [(name, weights.get(name, 0.0) * note.coverage) for name in _COVERED]
        if standard is not None:
            parts += [(name, weights.get(name, 0.0) * standard * telling.get(name, 1.0)) for name in _NEAR]
        scored.append(ScoredNote(note, tuple(parts), None if standard is None else similarity(standard)))
    return scored


def evidence(scored: list[ScoredNote], background: Background) -> NoteEvidence:
    """Return what the notes say about the question as a whole."""
    if not scored:
        return NoteEvidence()
    near = [background.standard(each.note.similarity) for each in scored if each.note.similarity is not None]
    return NoteEvidence(
        max(each.total for each in scored), max(each.note.coverage for each in scored), max(near, default=0.0)
    )


def note_hits(scored: list[ScoredNote], scale: ScoreScale) -> list[Hit]:
    """Make hits of scored notes."""
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
