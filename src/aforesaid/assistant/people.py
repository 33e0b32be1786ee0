"""Who is meant by a mention, a name or a nickname."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from aforesaid.assistant.turn import Turn
from aforesaid.domain.message import Message
from aforesaid.models.prompts.speakers import SOMEBODY, name_speakers
from aforesaid.store.terms import fold

_MENTION: Final = re.compile(r"<@!?([^<>\s]{1,255})>")
_ESCAPED: Final = re.compile(r"(?:<|&lt;)@!?([^<>&\s]{1,255})(?:>|&gt;)")
_ME: Final = frozenset({"", "me", "myself", "i"})


def meant(word: str, turn: Turn, heard: Sequence[Message]) -> list[str]:
    """Return the ids of those whom a word may mean: none where nobody is called so, several where it is not clear.

    `heard` are messages of the place: whoever spoke there is known by the name that they showed.
    """
    speaker = turn.user.scope.user
    mention = _MENTION.fullmatch(word.strip())
    if mention is not None:
        return [mention[1]]
    wanted = _plain(word)
    if wanted in _ME:
        return [speaker]
    labels = name_speakers([message for message in heard if message.role == "user"], turn.names())
    called: dict[str, set[str]] = {user: {_plain(user), *map(_plain, names)} for user, names in turn.people.items()}
    for message in heard:
        if message.role == "user":
            called.setdefault(message.author, {_plain(message.author)}).add(_plain(message.name or message.author))
    for user, label in labels.items():
        called.setdefault(user, set()).add(_plain(label))
    called.setdefault(speaker, {_plain(speaker)}).add(_plain(turn.name or speaker))
    exact = [user for user, names in called.items() if wanted in names]
    # A first name will do where only one person has it.
    return exact or [user for user, names in called.items() if any(wanted == name.partition(" ")[0] for name in names)]


def with_names(text: str, turn: Turn, heard: Sequence[Message] = ()) -> str:
    """Replace mentions by names, in a text as people wrote it or as it is escaped in a prompt."""
    if "@" not in text:
        return text
    names = {**name_speakers([message for message in heard if message.role == "user"]), **turn.names()}
    return _ESCAPED.sub(lambda found: f"@{names.get(found[1], SOMEBODY)}", text)


def _plain(name: str) -> str:
    return " ".join(fold(name).split()).removeprefix("@").removesuffix("'s")
