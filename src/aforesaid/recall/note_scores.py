"""Scores notes (summaries and memories) for a question, and turns them into hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import NoteMatch
from aforesaid.recall.background import Background, similarity
from aforesaid.recall.score import NoteEvidence, ScoreScale
from aforesaid.text.words import words_of

_COVERED: Final = ("coverage", "session_coverage")
_NEAR: Final = ("dense", "session_dense")
ALMOST_ALL: Final = 1 - 1e-9
"""A coverage above this is complete: it is a sum of shares."""


class ScoredNote(NamedTuple):
    """A note with the value that each feature adds to its score."""

    note: NoteMatch
    parts: tuple[tuple[str, float], ...]
    similarity: float | None

    @property
    def holds_all_words(self) -> bool:
        """Whether it has every word of the question, stop words aside."""
        return self.note.coverage > ALMOST_ALL

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


def without_quotes(hits: Sequence[Hit]) -> list[Hit]:
    """Leave out memories that merely quote a message which is a hit too. `hits` are sorted, best first.

    The message takes the place and the score of such a memory, if they are better.
    """
    messages = {source: hit for hit in hits if hit.kind == "message" for source in hit.sources}
    kept: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        message = messages.get(hit.sources[0]) if hit.kind == "memory" and len(hit.sources) == 1 else None
        shown = hit if message is None or not _quotes(hit.text, message.text) else replace(message, score=hit.score)
        kept.setdefault((shown.kind, shown.id), shown)
    return list(kept.values())


def _quotes(memory: str, message: str) -> bool:
    """Return whether a memory has the form `Ann: "some words of the message"`, and nothing after the quote."""
    _, mark, rest = memory.rstrip(".").partition(': "')
    return bool(mark) and rest.endswith('"') and set(words_of(rest)) <= set(words_of(message))
