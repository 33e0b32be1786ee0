"""The turns of a request, and how they are found again in the log when their beginning is missing.

Clients send the whole conversation with every request, or its end, or only the newest message. A conversation that is
sent from its beginning is recognised by its hash chain (`conversations`), a part of one here, by its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from aforesaid.domain.checks import Role
from aforesaid.domain.message import Message
from aforesaid.server.proxy.app_prompts import own_words

_SPOKEN: Final = ("user", "assistant")
_NOT_TEXT: Final = {
    "image": "[image]",
    "image_url": "[image]",
    "input_image": "[image]",
    "input_audio": "[audio]",
    "document": "[file]",
    "file": "[file]",
    "input_file": "[file]",
}
_LEAST_RUN: Final = 2
"""Minimum number of consecutive turns that match, where something unknown stands before them. One turn, such as "ok",
matches by chance."""


class Turn(NamedTuple):
    """Something that a person or the assistant said."""

    role: Role
    text: str

    @property
    def words(self) -> str:
        """The text without differences in white space: what turns are compared by."""
        return " ".join(self.text.split())


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which turns of a request are in the log."""

    known: tuple[Message, ...]
    """The stored messages of the known turns, oldest first."""
    first: int
    """The place of the first known turn in the request."""
    end: int
    """The place after the last known turn in the request."""


NOTHING_KNOWN: Final = Alignment((), 0, 0)


def turns_of(messages: Sequence[object], limit: int) -> list[Turn]:
    """Return what people and the assistant said. System prompts are no turns, nor is the use of tools (`tool_steps`).

    A text of more bytes than `limit` is cut: the model gets all of it, and its beginning is stored.
    """
    turns = []
    for message in messages:
        if isinstance(message, Mapping) and message.get("role") in _SPOKEN:
            text = text_of(message.get("content"))
            if message["role"] == "user":
                text = own_words(text)
            text = storable(text, limit)
            if text.strip():
                turns.append(Turn(message["role"], text))
    return turns


def text_of(content: object) -> str:
    """Return the text of a message. Images, audio and files leave a word such as `[image]`."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts: list[str] = []
    for part in content:
        if isinstance(part, Mapping):
            text = part.get("text")
            kind = str(part.get("type"))
            parts.append(text if isinstance(text, str) else _NOT_TEXT.get(kind, ""))
    return "\n".join(part for part in parts if part)


def storable(text: str, limit: int) -> str:
    """Return the beginning of a text that a store can hold, of at most `limit` bytes."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore").replace("\0", "")


def align(sent: Sequence[Turn], stored: Sequence[Message], *, whole: bool) -> Alignment:
    """Find the turns of a request that are in the log. `stored` are the newest messages of a thread, oldest first.

    The known turns end as late in the request, and then as late in the log, as possible, and lead back turn by turn to
    the beginning of the request; or to the beginning of `stored`, unless that is the `whole` thread. If there are none,
    two or more turns count that have something unknown before them. All of a request can be known only if the log ends
    there, or with the answer to it: then the request is sent again. Otherwise somebody says the same once more.
    """
    kept = [Turn(message.role, message.text) for message in stored]
    runs = _runs(sent, kept)
    unknown_before: Alignment | None = None
    for end in range(len(sent), 0, -1):
        for place in range(len(kept), 0, -1):
            if end == len(sent) and not _sent_again(kept[place:], end):
                break
            run = runs[end][place]
            if run and (run == end or (run == place and not whole)):
                return Alignment(tuple(stored[place - run : place]), 0, end)
            if run >= _LEAST_RUN and unknown_before is None:
                unknown_before = Alignment(tuple(stored[place - run : place]), end - run, end)
    return unknown_before or NOTHING_KNOWN


def _sent_again(after: Sequence[Turn], end: int) -> bool:
    """Return whether a request of `end` turns may be a repetition, if these messages follow it in the log."""
    return not after or (end >= _LEAST_RUN and all(turn.role == "assistant" for turn in after))


def _runs(sent: Sequence[Turn], kept: Sequence[Turn]) -> list[list[int]]:
    """Return how many turns are the same, counted back from each place in the request and each place in the log.

    Each pair of turns is compared once, so that a request of a thousand turns does not stop the server.
    """
    theirs = [(turn.role, turn.words) for turn in kept]
    runs = [[0] * (len(kept) + 1)]
    for turn in sent:
        role, said = turn.role, turn.words
        before, row = runs[-1], [0]
        for place, (other_role, words) in enumerate(theirs):
            same = role == other_role and (said == words or (role == "assistant" and _broken_off(said, words)))
            row.append(before[place] + 1 if same else 0)
        runs.append(row)
    return runs


def _broken_off(one: str, other: str) -> bool:
    """Return whether one answer is the beginning of the other: either side may have more of one that was broken off."""
    return one.startswith(other) or other.startswith(one)
