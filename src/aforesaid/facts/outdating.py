"""Compares candidates with older statements by the vectors of their messages: which repeat one, which outdate one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.memory import INSTRUCTION, MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.facts.candidate import Candidate
from aforesaid.models.salience import Judgement
from aforesaid.models.superseding import (
    RELATED,
    OlderWords,
    StatementWords,
    SupersedingModel,
    load_plain_superseding,
    load_superseding,
    may_change_plainly,
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
    text: str
    vector: NDArray[np.float32]

    @property
    def words(self) -> StatementWords:
        """The words by which it is compared with others."""
        return statement_words(self.text)


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
    older = _statements(known, vectors, len(candidates))
    found: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda each: each.last):
        seq = candidate.last
        if candidate.request or candidate.category == "reminder" or seq not in vectors:
            found.append(candidate)
            continue
        new = _Statement(seq, candidate.said, candidate.quote or candidate.text, vectors[seq])
        own = older[candidate.speaker.id]
        outdates = own.outdated_by(new)
        found.append(candidate._replace(outdates=outdates))
        if outdates is not None:
            own.remove(outdates)
        own.add(new)
    return found


def telling_changes(
    messages: Sequence[Message],
    judgements: Mapping[int, Judgement],
    known: Sequence[MemoryRecord],
    vectors: Mapping[int, NDArray[np.float32]],
) -> frozenset[int]:
    """Return the messages that make a plain statement outdated, but seem not worth remembering by themselves.

    "Tom and I broke up" is worth remembering where "My boyfriend is called Tom" is known. `messages` are in the order
    of their sequence numbers, and `known` are memories to compare with, oldest first.
    """
    read = [message for message in messages if message.seq in judgements and message.seq in vectors]
    if all(judgements[message.seq].worth_remembering or not may_change_plainly(message.text) for message in read):
        return frozenset()
    # A person has few plain statements, so all others are left out before words are compared.
    compared = [memory for memory in known if max(memory.sources) in vectors]
    plain = load_plain_superseding().are_plain(_rows(vectors, [max(memory.sources) for memory in compared]))
    older = _statements(
        [memory for memory, is_plain in zip(compared, plain, strict=True) if is_plain], vectors, len(read)
    )
    found = set()
    for message in read:
        new = _Statement(message.seq, message.at, message.text, vectors[message.seq])
        own = older[message.author]
        if not judgements[message.seq].worth_remembering:
            if (outdated := own.plainly_outdated_by(new)) is None:
                continue
            own.remove(outdated)
            found.add(message.seq)
        own.add(new)
    return frozenset(found)


def _rows(vectors: Mapping[int, NDArray[np.float32]], seqs: Sequence[int]) -> NDArray[np.float32]:
    import numpy as np  # noqa: PLC0415

    return np.stack([vectors[seq] for seq in seqs]) if seqs else np.zeros((0, _dimensions()), dtype=np.float32)


def _dimensions() -> int:
    return len(load_superseding().new) - 1


def _statements(
    known: Sequence[MemoryRecord], vectors: Mapping[int, NDArray[np.float32]], room: int
) -> defaultdict[str, _Statements]:
    """Return the statements of memories by their speakers, with room for more."""
    most = len(known) + room
    found: defaultdict[str, _Statements] = defaultdict(lambda: _Statements(most))
    for memory in known:
        seq = max(memory.sources)
        if seq in vectors:
            found[memory.speaker].add(_Statement(seq, memory.valid_from, memory.text, vectors[seq]))
    return found


class _Statements:
    """Statements of one person in columns, in the order in which they were added."""

    def __init__(self, most: int) -> None:
        """Make room for `most` statements."""
        import numpy as np  # noqa: PLC0415 - loaded with the first vector

        self._model = load_superseding()
        self._plain_model = load_plain_superseding()
        self._words = OlderWords()
        self._count = 0
        self._seqs = np.zeros(most, dtype=np.int64)
        self._seconds = np.zeros(most)
        self._vectors = np.zeros((most, _dimensions()), dtype=np.float32)
        self._current = np.zeros(most, dtype=bool)
        """Which statements no later one made outdated."""
        self._plain = np.zeros(most, dtype=bool)
        """Which statements are plain ones."""

    def add(self, new: _Statement) -> None:
        """Add a statement."""
        place, self._count = self._count, self._count + 1
        self._words.add(new.words)
        self._seqs[place] = new.seq
        self._seconds[place] = new.said.timestamp()
        self._vectors[place] = new.vector
        self._current[place] = True
        self._plain[place] = self._plain_model.are_plain(new.vector[None])[0]

    def remove(self, seq: int) -> None:
        """Remove what a message says."""
        self._current[self._seqs == seq] = False

    def outdated_by(self, new: _Statement) -> int | None:
        """Return the message of the older statement that a new one makes outdated, or None."""
        chosen = self._older_than(new)
        margins = self._margins(self._model, self._model.says_change(new.vector), new, chosen)
        if may_change_plainly(new.text):
            plain = self._plain[chosen]
            margins[plain] = self._plain_margins(new, chosen[plain])
        return self._likeliest(chosen, margins)

    def plainly_outdated_by(self, new: _Statement) -> int | None:
        """Return the message of the plain statement that a new one makes outdated, or None."""
        chosen = self._older_than(new)
        chosen = chosen[self._plain[chosen]]
        if not len(chosen) or not may_change_plainly(new.text):
            return None
        return self._likeliest(chosen, self._plain_margins(new, chosen))

    def _older_than(self, new: _Statement) -> NDArray[np.int64]:
        """Return the places of the older statements that are still current."""
        import numpy as np  # noqa: PLC0415

        return np.flatnonzero(self._current[: self._count] & (self._seqs[: self._count] < new.seq))

    def _plain_margins(self, new: _Statement, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how clearly a new statement makes each of some plain ones outdated."""
        import numpy as np  # noqa: PLC0415

        model = self._plain_model
        margins = self._margins(model.model, model.says_change(new.text, new.vector), new, chosen)
        return np.where(self._vectors[chosen] @ new.vector >= RELATED, margins, np.float32(-np.inf))

    def _margins(
        self, model: SupersedingModel, says_change: float, new: _Statement, chosen: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return how clearly a new statement makes each of some older ones outdated."""
        import numpy as np  # noqa: PLC0415

        if not len(chosen):
            return np.zeros(0, dtype=np.float32)
        vectors = self._vectors[chosen]
        days = np.maximum(new.said.timestamp() - self._seconds[chosen], 0) / _DAY_SECONDS
        compared = self._words.compare(vectors @ new.vector, days.astype(np.float32), new.words, chosen)
        return model.margins(says_change, model.changes_later(vectors), compared)

    def _likeliest(self, chosen: NDArray[np.int64], margins: NDArray[np.float32]) -> int | None:
        """Return the message of the statement with the largest margin, if it is large enough."""
        if not len(chosen):
            return None
        best = int(margins.argmax())
        return int(self._seqs[chosen[best]]) if margins[best] >= 0 else None
