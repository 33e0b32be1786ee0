"""Display names of speakers in prompts. Ids are never sent to a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Final

from aforesaid.domain.message import Message
from aforesaid.models.prompts.fence import Line, one_line

NAMELESS: Final = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
"""The names of speakers without a display name."""
SOMEBODY: Final = "somebody"

_MENTION: Final = re.compile(r"<@!?([^<>\s]{1,255})>")


def name_speakers(messages: Iterable[Message], names: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what each author is called: the name in `names`, the last one they showed, or what they are.

    Two authors are never called the same: the second Ann is "Ann (2)".
    """
    called: dict[str, str] = {}
    for message in messages:
        name = one_line((names or {}).get(message.author) or message.name or "")
        if name or message.author not in called:
            called[message.author] = name or NAMELESS[message.role]
    taken: set[str] = set()
    for author, name in called.items():
        different = (name if number == 1 else f"{name} ({number})" for number in count(1))
        called[author] = next(label for label in different if label not in taken)
        taken.add(called[author])
    return called


def lines_of(messages: Sequence[Message], names: Mapping[str, str] | None = None) -> list[Line]:
    """Return messages as a model is shown them: names for ids, in the text too.

    `names` has the display names by author, where the caller knows them better than the messages do.
    """
    called = {**(names or {}), **name_speakers(messages, names)}
    return [
        Line(called[message.author], name_mentions(message.shown_text, called), message.at, message.role)
        for message in messages
    ]


def name_mentions(text: str, names: Mapping[str, str]) -> str:
    """Replace mentions as Discord writes them (`<@123>`) by names."""
    return _MENTION.sub(lambda found: f"@{one_line(names.get(found[1], SOMEBODY))}", text)
