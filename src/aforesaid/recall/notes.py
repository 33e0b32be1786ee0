"""Summaries and memories among the hits."""

from __future__ import annotations

from collections.abc import Mapping

from aforesaid.domain.hit import Hit
from aforesaid.domain.note import NoteMatch
from aforesaid.recall.candidates import Usual

_COVERED: tuple[str, ...] = ("coverage", "session_coverage")
_NEAR: tuple[str, ...] = ("dense", "session_dense")


def note_hits(found: list[NoteMatch], usual: Usual, weights: Mapping[str, float]) -> list[Hit]:
    """Score notes on the scale of messages.

    A note has no neighbours and no session of its own; it stands for many messages, so what it says counts like what a
    whole session says.
    """
    hits = []
    for note in found:
        standard = 0.0 if note.similarity is None else usual.standard(note.similarity)
        parts = (
            *((name, weights.get(name, 0.0) * note.coverage) for name in _COVERED),
            *((name, weights.get(name, 0.0) * standard) for name in _NEAR if note.similarity is not None),
        )
        hits.append(
            Hit(
                kind=note.key.kind,
                id=str(note.key.id),
                text=note.text,
                score=sum(value for _, value in parts),
                at=note.at,
                sources=note.sources,
                terms=note.words,
                parts=parts,
                similarity=note.similarity,
            )
        )
    return hits
