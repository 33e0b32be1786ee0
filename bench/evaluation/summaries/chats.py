"""The data of this evaluation: chats with reference summaries or facts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aforesaid.models.offline import Spoken, count_words
from evaluation.conversation import Count

_SHARE: Final = 4
_LEAST: Final = 20
_MOST: Final = 120


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation, its reference summaries, and the facts that a summary should contain."""

    turns: tuple[Spoken, ...]
    summaries: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    def room(self, words: int | None = None) -> int:
        """Return the maximum number of words of a summary, the same for every method.

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
    """The chats of one data set."""

    format: str
    path: Path
    chats: tuple[Chat, ...]
    left_out: tuple[Count, ...] = ()
