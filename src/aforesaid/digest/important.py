"""Important memories of the messages that a summary covers. The summary states them, whatever else it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.digest.material import local
from aforesaid.digest.support import shared_words
from aforesaid.domain.checks import Kind
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.models.prompts import name_speakers
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.store import Store

_IMPORTANT: Final = 7
"""Importance from which a memory is stated: high and critical."""
_ALWAYS: Final[frozenset[Kind]] = frozenset({"instruction", "relationship"})
"""Kinds of memories that are stated whatever their importance is."""
_STATED: Final = 0.75
"""Share of a memory's words that a summary has to contain to state it."""
_MOST: Final = 0.5
"""Maximum share of a summary that is added for memories which it does not state."""


class ImportantMemory(NamedTuple):
    """A memory that a summary has to state."""

    speaker: str
    """The display name of who said it."""
    day: date
    """When it was said."""
    text: str
    importance: int

    @property
    def line(self) -> str:
        """The memory as a line of a summary, with its speaker and day."""
        # A memory that quotes its speaker begins with the name.
        return f"{self.speaker} ({self.day.isoformat()}): {self.text.removeprefix(f'{self.speaker}: ')}"


async def important_memories(store: Store, scope: Scope, first: int, last: int, zone: tzinfo) -> list[ImportantMemory]:
    """Return the important memories that rest on a user's messages from `first` to `last`, in the order of these."""
    known = await store.read(questions.Memories(scope, messages=(first, last)))
    sources: dict[int, list[MemoryRecord]] = {}
    for memory in known:
        if _matters(memory):
            sources.setdefault(min(seq for seq in memory.sources if first <= seq <= last), []).append(memory)
    if not sources:
        return []
    messages = await store.read(questions.MessagesByNumber(scope, sorted(sources)))
    names = name_speakers(messages)
    return [
        ImportantMemory(
            names[message.author], (local(message.at, zone) or message.at).date(), memory.text, memory.importance
        )
        for message in messages
        for memory in sources[message.seq]
    ]


def with_important(text: str, memories: Sequence[ImportantMemory], limit: int, shorten: Callable[[int], str]) -> str:
    """Return a summary that states memories: those that it lacks are added as lines.

    The result has at most `limit` characters. `shorten` takes a maximum of characters and returns a summary that
    has no more, to make room. If the lines would take more than half of the limit, the least important memories are
    left out.
    """
    added: list[ImportantMemory] = []
    shortened = text
    while missing := [each for each in memories if each not in added and not _states(shortened, each)]:
        added = _fitting([*added, *missing], int(limit * _MOST))
        lines = "\n".join(each.line for each in memories if each in added)
        room = limit - len(lines) - 1
        shortened = text if len(text) <= room else shorten(room)
        if not set(missing) <= set(added):
            break  # There is no room for all of them.
    lines = "\n".join(each.line for each in memories if each in added)
    return f"{shortened}\n{lines}" if lines else shortened


def _matters(memory: MemoryRecord) -> bool:
    return memory.importance >= _IMPORTANT or memory.kind in _ALWAYS


def _fitting(memories: Sequence[ImportantMemory], characters: int) -> list[ImportantMemory]:
    """Return the most important memories whose lines have at most this number of characters together."""
    fitting: list[ImportantMemory] = []
    for each in sorted(memories, key=lambda memory: -memory.importance):
        characters -= len(each.line) + 1
        if characters >= 0:
            fitting.append(each)
    return fitting


def _states(text: str, memory: ImportantMemory) -> bool:
    words, shared = shared_words(memory.text, [text], [])
    return shared >= _STATED * words
