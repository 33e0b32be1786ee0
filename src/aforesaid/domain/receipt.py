"""The results of a change set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from aforesaid.domain.memory import Facts, MemoryRecord
from aforesaid.domain.message import Draft, Message, stored_message
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import Restored
from aforesaid.errors import NotFound


class Stored(NamedTuple):
    """A message that was just stored. The `Message` is built on first access."""

    draft: Draft
    seq: int
    session: str
    hash: bytes

    @property
    def message(self) -> Message:
        """The stored message."""
        return stored_message(self.draft, self.seq, self.session, self.hash)


class Repeated(NamedTuple):
    """A message that was stored before."""

    message: Message


@dataclass(frozen=True, slots=True)
class Discarded:
    """The number of deleted items."""

    count: int


Result: TypeAlias = Stored | Repeated | Restored | Summary | MemoryRecord | Facts | Discarded | None


@dataclass(frozen=True, slots=True)
class BatchReceipt:
    """The acknowledgement of a batch of messages."""

    durable: bool
    """Whether the messages survive a power cut."""
    results: tuple[Stored | Repeated, ...]
    """One result for each message, in order."""
    notices: tuple[str, ...] = ()
    """Notices for the user, such as that a summary failed."""

    @property
    def messages(self) -> list[Message]:
        """The messages of the batch, in order; for one that was stored before, that one. Built on each access."""
        return [result.message for result in self.results]

    @property
    def stored(self) -> int:
        """Number of messages that are new."""
        return sum(isinstance(result, Stored) for result in self.results)

    @property
    def duplicates(self) -> int:
        """Number of messages that were stored before, or are twice in the batch."""
        return len(self.results) - self.stored


@dataclass(frozen=True, slots=True)
class Receipt:
    """The acknowledgement of a change set, with one result for each change, in order.

    `durable` means that the changes survive a power cut. A store that could only keep them in memory says False.
    """

    durable: bool
    results: tuple[Result, ...]
    notices: tuple[str, ...] = ()
    """Notices for the user, such as that a summary failed."""

    @property
    def message(self) -> Message:
        """The (first) message of the change set."""
        found: Stored | Repeated = self._first("message", Stored, Repeated)
        return found.message

    @property
    def duplicate(self) -> bool:
        """Whether that message was stored before."""
        return isinstance(self._first("message", Stored, Repeated), Repeated)

    @property
    def summary(self) -> Summary:
        """The (first) summary of the change set."""
        found: Summary = self._first("summary", Summary)
        return found

    @property
    def memory(self) -> MemoryRecord:
        """The (first) memory of the change set."""
        found: MemoryRecord = self._first("memory", MemoryRecord)
        return found

    def _first(self, what: str, *kinds: type[Any]) -> Any:  # noqa: ANN401 - one of these kinds
        for result in self.results:
            if isinstance(result, kinds):
                return result
        raise NotFound(f"this change set had no {what}")
