"""Finds for each candidate the older statement that it makes outdated, with the superseding model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.memory import INSTRUCTION, MemoryRecord
from aforesaid.facts.candidate import Candidate
from aforesaid.models.superseding import SupersedingModel, load_superseding, shared_weights
from aforesaid.text.terms import terms

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
    speaker: str
    said: datetime
    terms: frozenset[str]


def comparable(known: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the newest memories that may be outdated: active ones that were extracted, and are no requests."""
    found = [
        memory
        for memory in known
        if memory.state == "active" and memory.sources and memory.trust != "stated" and memory.kind != INSTRUCTION
    ]
    return sorted(found, key=lambda memory: (memory.valid_from, memory.id))[-MOST_COMPARED:]


def with_outdated(
    candidates: Sequence[Candidate], known: Sequence[MemoryRecord], vectors: Mapping[int, NDArray[np.float32]]
) -> list[Candidate]:
    """Return candidates, each with the message whose memory it makes outdated, if there is one.

    `known` are memories to compare with, oldest first; `vectors` those of messages, by sequence number. Earlier
    candidates are compared with too. Messages without a vector are left out.
    """
    model = load_superseding()
    older = [
        _Statement(max(memory.sources), memory.speaker, memory.valid_from, frozenset(terms(memory.text)))
        for memory in known
        if max(memory.sources) in vectors
    ]
    found: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda each: each.last):
        seq = candidate.last
        if candidate.request or candidate.category == "reminder" or seq not in vectors:
            found.append(candidate)
            continue
        said = frozenset(terms(candidate.quote or candidate.text))
        compared = [each for each in older if each.speaker == candidate.speaker.id and each.seq < seq]
        outdates = _outdated(model, candidate, said, compared, vectors)
        found.append(candidate._replace(outdates=outdates))
        older = [each for each in older if each.seq != outdates]
        older.append(_Statement(seq, candidate.speaker.id, candidate.said, said))
    return found


def _outdated(
    model: SupersedingModel,
    candidate: Candidate,
    said: frozenset[str],
    older: Sequence[_Statement],
    vectors: Mapping[int, NDArray[np.float32]],
) -> int | None:
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    if not older:
        return None
    days = [max((candidate.said - each.said).total_seconds(), 0) / _DAY_SECONDS for each in older]
    shared = shared_weights(said, [each.terms for each in older])
    row = model.outdated(
        vectors[candidate.last],
        np.stack([vectors[each.seq] for each in older]),
        np.array(days, dtype=np.float32),
        np.array(shared, dtype=np.float32),
    )
    return None if row is None else older[row].seq
