"""The values of this evaluation: chats, and what a good summary of them says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aforesaid.evaluation.conversation import Count
from aforesaid.models.offline import Spoken, count_words

_SHARE: Final = 4
_LEAST: Final = 20
_MOST: Final = 120


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation, summaries of it that people wrote, and facts that a summary of it should hold."""

    turns: tuple[Spoken, ...]
    summaries: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    def room(self, words: int | None = None) -> int:
        """Return how many words a summary may have, whoever makes it.

        It never depends on the summaries that people wrote: a quarter of the chat, at least 20 words and at most 120;
        always 120 where facts are counted.
        """
        if words is not None:
            return words
        if self.facts:
            return _MOST
        length = sum(count_words(turn.text) for turn in self.turns)
        return max(_LEAST, min(length // _SHARE, _MOST))


@dataclass(frozen=True, slots=True)
class ChatSet:
    """Chats of one data set that lie together."""

    format: str
    path: Path
    chats: tuple[Chat, ...]
    left_out: tuple[Count, ...] = ()
