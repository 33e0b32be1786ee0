"""Compares candidates with older statements by the vectors of their messages: which repeat one, which outdate one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.memory import INSTRUCTION, MemoryRecord
from aforesaid.facts.candidate import Candidate
from aforesaid.models.superseding import (
    StatementWords,
    SupersedingModel,
    compare,
    load_superseding,
    statement_words,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

MOST_COMPARED: Final = 1_000
"""Maximum memories that a statement is compared with, the newest ones."""
_DAY_SECONDS: Final = 86_400


class _Statement(NamedTuple):
    """A statement of a person that may be outdated."""

    seq: int
    """The message that says it."""
    said: datetime
    words: StatementWords


def comparable(known: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the newest memories that may be outdated: active ones that were extracted, and are no requests."""
    found = [
        memory
        for memory in known
        if memory.state == "active" and memory.sources and memory.trust != "stated" and memory.kind != INSTRUCTION
    ]
    return sorted(found, key=lambda memory: (memory.valid_from, memory.id))[-MOST_COMPARED:]


def repeated(
    candidates: Sequence[Candidate],
    known: Sequence[MemoryRecord],
    vectors: Mapping[int, NDArray[np.float32]],
    thresholds: Mapping[int, float],
) -> dict[str, frozenset[int]]:
    """Return the ids of memories whose message means nearly the same as that of a candidate, by the candidate's text.

    Only candidates that consist of a message's own words are compared. `thresholds` are the cosines from which two
    messages mean the same, by the candidate's message. An answer that is quoted with its question repeats nothing:
    "yes, I do" means something else after another question.
    """
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    compared = [memory for memory in known if min(memory.sources) in vectors]
    quoted = [candidate for candidate in candidates if candidate.has_original_words]
    found: dict[str, frozenset[int]] = {candidate.text: frozenset() for candidate in quoted}
    alone = [candidate for candidate in quoted if len(candidate.sources) == 1]
    if not compared or not alone:
        return found
    old = np.stack([vectors[min(memory.sources)] for memory in compared])
    cosines = np.stack([vectors[candidate.last] for candidate in alone]) @ old.T
    for candidate, row in zip(alone, cosines, strict=True):
        near = (compared[place] for place in np.flatnonzero(row >= thresholds[candidate.last]))
        found[candidate.text] |= {memory.id for memory in near if min(memory.sources) != candidate.last}
    return found


def with_outdated(
    candidates: Sequence[Candidate], known: Sequence[MemoryRecord], vectors: Mapping[int, NDArray[np.float32]]
) -> list[Candidate]:
    """Return candidates, each with the message whose memory it makes outdated, if there is one.

    `known` are memories to compare with, oldest first; `vectors` those of messages, by sequence number. Earlier
    candidates are compared with too. Messages without a vector are left out.
    """
    model = load_superseding()
    older: dict[str, list[_Statement]] = {}
    for memory in known:
        seq = max(memory.sources)
        if seq in vectors:
            older.setdefault(memory.speaker, []).append(
                _Statement(seq, memory.valid_from, statement_words(memory.text))
            )
    found: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda each: each.last):
        if candidate.request or candidate.category == "reminder" or candidate.last not in vectors:
            found.append(candidate)
            continue
        new = _Statement(candidate.last, candidate.said, statement_words(candidate.quote or candidate.text))
        own = older.setdefault(candidate.speaker.id, [])
        outdates = _outdated(model, new, [each for each in own if each.seq < new.seq], vectors)
        found.append(candidate._replace(outdates=outdates))
        own[:] = [*(each for each in own if each.seq != outdates), new]
    return found


def _outdated(
    model: SupersedingModel,
    new: _Statement,
    older: Sequence[_Statement],
    vectors: Mapping[int, NDArray[np.float32]],
) -> int | None:
    """Return the message of the older statement that a new one makes outdated, or None."""
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    if not older:
        return None
    days = [max((new.said - each.said).total_seconds(), 0) / _DAY_SECONDS for each in older]
    rows = np.array([vectors[each.seq] for each in older])
    vector = vectors[new.seq]
    compared = compare(rows @ vector, np.array(days, dtype=np.float32), new.words, [each.words for each in older])
    row = model.outdated(vector, rows, compared)
    return None if row is None else older[row].seq
