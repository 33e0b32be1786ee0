"""Resolves a mention, a name or a nickname to a user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from aforesaid.assistant.turn import Turn
from aforesaid.models.prompts.fence import SOMEBODY
from aforesaid.text.words import fold

_MENTION: Final = re.compile(r"<@!?([^<>\s]{1,255})>")
_ESCAPED: Final = re.compile(r"(?:<|&lt;)@!?([^<>&\s]{1,255})(?:>|&gt;)")
_NUMBERED: Final = re.compile(r" \(\d+\)$")
_ME: Final = frozenset({"", "me", "myself", "i"})
_ASSISTANT: Final = "assistant"


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the people of a space: those present on the platform, and everybody who ever wrote there."""

    shown: Mapping[str, str]
    """The name to show, by id."""
    others: Mapping[str, tuple[str, ...]]
    """All names of a user, by id."""

    @classmethod
    def around(cls, turn: Turn, known: Mapping[str, str]) -> Self:
        """Merge the names of a turn with those in the memory. The turn's are newer."""
        stored = {user: name for user, name in known.items() if user != _ASSISTANT}
        others = {user: (name,) for user, name in stored.items()}
        for user, names in turn.people.items():
            others[user] = tuple(dict.fromkeys((*names, *others.get(user, ()))))
        speaker = turn.user.scope.user
        if turn.name is not None:
            others[speaker] = tuple(dict.fromkeys((turn.name, *others.get(speaker, ()))))
        return cls({**stored, **turn.names()}, others)

    def of(self, user: str) -> str | None:
        """Return the display name of a user."""
        return self.shown.get(user)

    def all(self) -> list[str]:
        """Return every name of a user."""
        return [name for names in self.others.values() for name in names]


def meant(word: str, turn: Turn, names: Names) -> list[str]:
    """Return the ids of the users that a word may mean: none if unknown, several if ambiguous."""
    speaker = turn.user.scope.user
    mention = _MENTION.fullmatch(word.strip())
    if mention is not None:
        return [mention[1]]
    # Prompts call the second Ann "Ann (2)".
    wanted = _NUMBERED.sub("", _plain(word))
    if wanted in _ME:
        return [speaker]
    called = {user: {_plain(user), *map(_plain, theirs)} for user, theirs in names.others.items()}
    called.setdefault(speaker, {_plain(speaker)})
    exact = [user for user, theirs in called.items() if wanted in theirs]
    # A first name is enough if only one person has it.
    return exact or [
        user for user, theirs in called.items() if any(wanted == name.partition(" ")[0] for name in theirs)
    ]


def with_names(text: str, names: Names) -> str:
    """Replace mentions by names, in a text as people wrote it or as it is escaped in a prompt."""
    if "@" not in text:
        return text
    return _ESCAPED.sub(lambda found: f"@{names.of(found[1]) or SOMEBODY}", text)


def _plain(name: str) -> str:
    return " ".join(fold(name).split()).removeprefix("@").removesuffix("'s")
