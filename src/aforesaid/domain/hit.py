"""Searches: filters, hits and vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from aforesaid.domain import checks
from aforesaid.domain.checks import HitKind, Role
from aforesaid.domain.details import JSON
from aforesaid.domain.message import Message
from aforesaid.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_WORDS: Final = "its words match"
_MEANING: Final = "its meaning is close"
_REASONS: Final = {
    "keyword": _WORDS,
    "coverage": _WORDS,
    "dense": _MEANING,
    "before_keyword": "the messages around it match",
    "before_dense": "the messages around it match",
    "after_keyword": "the messages around it match",
    "after_dense": "the messages around it match",
    "together": "the messages around it match",
    "session_keyword": "its conversation is about this",
    "session_coverage": "its conversation is about this",
    "session_dense": "its conversation is about this",
    "speaker": "the question names the speaker",
    "period": "it was said at the time that the question names",
    "when": "the question asks when, and it mentions a time",
    "question": "it asks a question itself",
    "length": "its length",
    "recency": "its age",
    "ranker": "it answers the question word by word",
    "role": "the question asks for what the assistant said, or for what people said",
    "rerank": "the reranker's order",
    "own": "a person said it, not the assistant",
    "same_words": "it is exactly what was searched for",
}
"""Descriptions of the score's features for users."""
_NOTABLE: Final = 0.25
"""Minimum contribution of a feature that is mentioned in an explanation."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A search hit.

    `score` is between 0 and 1 and orders the hits of one search. On average over labelled questions, 0.5 is as common
    among right hits as among wrong ones. It does not tell whether the answer was ever said: the best hit often scores
    as high where it was not. A search by words alone has scores of another scale.
    """

    kind: HitKind
    id: str
    """The id of the message, the name of the session, or the number of the summary or the memory."""
    text: str
    score: float
    at: datetime
    sources: tuple[str, ...]
    """The ids of the messages that it rests on; of a summary, the first 200. Messages with the same words come last."""
    terms: tuple[str, ...]
    """The query's words that occur in it, in any inflection."""
    message: Message | None = field(default=None, repr=False)
    """The message; for a session, its best match. None for a summary or a memory."""
    parts: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    """The contribution of each feature to the weighted sum behind the score."""
    similarity: float | None = field(default=None, repr=False)
    """How near its meaning is, 0 to 1, calibrated for the encoder. None if it was not compared."""
    around: tuple[Message, ...] = field(default=(), repr=False)
    """The messages around it in the same session, if they were asked for, oldest first."""

    def reasons(self) -> list[tuple[str, float]]:
        """Return why it was found, in plain words, with what each reason added to the weighted sum, most first."""
        added: dict[str, float] = {}
        for name, value in self.parts:
            reason = _REASONS.get(name, name)
            added[reason] = added.get(reason, 0.0) + value
        return sorted(((reason, value) for reason, value in added.items() if value), key=lambda each: -abs(each[1]))

    def explain(self, say: Callable[[str], str] = str) -> str:
        """Return one line that says why it was found. `say` translates its words."""
        said = [self._in_detail(reason, say) for reason, value in self.reasons() if value >= _NOTABLE]
        if self.terms and all(reason != _WORDS or value < _NOTABLE for reason, value in self.reasons()):
            said.append(self._in_detail(_WORDS, say))
        against = [say(reason) for reason, value in self.reasons() if value <= -_NOTABLE]
        line = f"{say('score')} {self.score:.2f}: {', '.join(said) or say('nothing in it stands out')}"
        return f"{line}; {say('against it')}: {', '.join(against)}" if against else line

    def _in_detail(self, reason: str, say: Callable[[str], str]) -> str:
        if reason == _WORDS and self.terms:
            return f"{say(reason)} ({', '.join(self.terms)})"
        if reason == _MEANING and self.similarity is not None:
            return f"{say(reason)} ({say('similarity')} {self.similarity:.2f})"
        return say(reason)


Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Conditions that a message must all fulfil. None sets no condition."""

    role: Role | None = None
    author: str | None = None
    """The id of whoever wrote it."""
    since: int | None = None
    """Said at this time or later, in microseconds since 1970."""
    until: int | None = None
    """Said before this time, in microseconds since 1970."""
    metadata: tuple[tuple[str, Scalar], ...] = ()
    """Keys of its metadata, and the values that they must have."""
    given_id: str | None = None
    """The id that a platform gave it. Threads number their messages apart, so several may have it."""

    def holds(self, message: Message) -> bool:
        """Return whether a message fulfils all conditions."""
        if self.role not in (None, message.role) or self.author not in (None, message.author):
            return False
        if self.given_id not in (None, message.id):
            return False
        if self.since is not None or self.until is not None:
            at = checks.microseconds(message.at, "at")
            if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
                return False
        if not self.metadata:
            return True
        found = message.metadata
        return all(key in found and _same(found[key], value) for key, value in self.metadata)


EVERY_MESSAGE: Final = MessageFilter()
"""No condition at all."""


def message_filter(
    *, role: object = None, author: object = None, since: object = None, until: object = None, metadata: object = None
) -> MessageFilter:
    """Validate conditions and return the filter. Raises InvalidInput."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata must be a mapping, not {type(metadata).__name__}", "metadata")
    wanted = []
    for key, value in (metadata or {}).items():
        wanted.append((checks.storable(key, "a key in metadata", "metadata"), _scalar(value)))
    return MessageFilter(
        None if role is None else checks.role(role),
        None if author is None else checks.identifier(author, "the author", "author"),
        None if since is None else checks.microseconds(since, "since", "since"),
        None if until is None else checks.microseconds(until, "until", "until"),
        tuple(wanted),
    )


def _same(stored: JSON, wanted: Scalar) -> bool:
    """Compare as JSON does: true is not 1, and 1 is 1.0."""
    if isinstance(stored, bool) or isinstance(wanted, bool):
        return stored is wanted
    return stored == wanted


def _scalar(value: object) -> Scalar:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return checks.storable(value, "a text in metadata", "metadata")
    if isinstance(value, int):
        return checks.at_least(value, -checks.LARGEST, "a number in metadata", "metadata")
    if isinstance(value, float):
        return checks.number(value, "a number in metadata")
    raise InvalidInput(
        f"metadata can be compared with strings, numbers, true, false and None, not with a {type(value).__name__}",
        "metadata",
    )


class Unembedded(NamedTuple):
    """A message that is not embedded yet, and the vector of an equal text if there is one."""

    seq: int
    text: str
    known: bytes | None
    space: str = ""
    """Its space, in stores that number each space separately."""
    role: str = "user"


BYTES: Final = b"\xff\xff"
"""Begins a stored vector of one byte per number. One of half-precision numbers never does: they would be no numbers."""
TOKENS: Final = b"\xfe\xff"
"""Begins the stored token vectors of a message, which earlier versions stored as bytes of at most 120."""


class VectorRow(NamedTuple):
    """The vector of a message: what `store.vector_matrix.packed` returns, half-precision floats, or token vectors."""

    seq: int
    text: str
    value: bytes
    """Empty for a message without a text: it gets no vector, but the embedder has processed it."""
    space: str = ""
    """The space of the message, as it came with it."""


@dataclass(frozen=True, slots=True)
class Similar:
    """The messages of a scope that are most similar to a vector."""

    seqs: NDArray[np.int64]
    """At least the requested number of messages, most similar first, then those requested by id."""
    scores: NDArray[np.float32]
    """Their cosine similarities."""
    mean: float
    deviation: float
    """The average similarity of the scope's messages to the query."""
