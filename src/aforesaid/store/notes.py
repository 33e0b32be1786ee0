"""Ranking notes, the same for every store: all that match are looked at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.checks import moment
from aforesaid.domain.memory import NoteKey, NoteMatch
from aforesaid.domain.message import message_id

if TYPE_CHECKING:
    from aforesaid.store.questions.searches import Vector


MOST_SOURCES: Final = 200
"""Maximum messages that a hit names as sources of a note, oldest first."""


class RankedNote(NamedTuple):
    """A note by its number, and how well it fits."""

    note: int
    words: tuple[str, ...]
    coverage: float
    similarity: float | None

    @property
    def key(self) -> NoteKey:
        """What the number means: a summary has an even one, a memory an odd one."""
        return NoteKey("memory" if self.note % 2 else "summary", self.note // 2)

    def match(self, text: str, at: int, sources: Iterable[tuple[int, str | None]]) -> NoteMatch:
        """Return it with its text, its time (microseconds), and the messages that it stands for: number and id."""
        ids = tuple(message_id(seq, given) for seq, given in sources)
        return NoteMatch(self.key, text, moment(at), ids, self.words, self.coverage, self.similarity)


def number_of(key: NoteKey) -> int:
    """Return the number of a note among summaries and memories."""
    return 2 * key.id + (key.kind == "memory")


def rank_notes(having: Mapping[str, Sequence[int]], similar: Mapping[int, float], notes: int) -> Iterator[RankedNote]:
    """Yield the notes that have a word of the query or a vector, best first by both together.

    `having` tells which notes have each word of the query, `similar` how near those are that have a vector, and `notes`
    how many there are.
    """
    rarity = {
        word: math.log1p((notes - len(found) + 0.5) / (len(found) + 0.5)) if len(found) <= notes else 0.0
        for word, found in having.items()
    }
    total = sum(rarity.values()) or 1.0
    words: dict[int, list[str]] = {}
    for word, found in having.items():
        for note in dict.fromkeys(found):
            words.setdefault(note, []).append(word)
    coverage = {note: sum(rarity[word] for word in found) / total for note, found in words.items()}
    best = sorted(
        words.keys() | similar.keys(), key=lambda note: (-coverage.get(note, 0.0) - similar.get(note, 0.0), -note)
    )
    # There can be thousands, and few of them are wanted.
    for note in best:
        yield RankedNote(note, tuple(words.get(note, ())), coverage.get(note, 0.0), similar.get(note))


def similarities(vectors: Mapping[int, bytes], vector: Vector | None) -> dict[int, float]:
    """Return the cosine of each vector with the one that was asked for."""
    if vector is None or not vectors:
        return {}
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    rows = np.frombuffer(b"".join(vectors.values()), dtype=np.float16).reshape(len(vectors), -1)
    return dict(zip(vectors, (rows.astype(np.float32) @ vector).tolist(), strict=True))
