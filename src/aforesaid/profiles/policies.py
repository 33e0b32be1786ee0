"""The policies of automatic summaries: what the rest of the library has to know about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from aforesaid.domain.summary import SummaryKind

Policy: TypeAlias = Literal["tree", "rolling", "calendar", "tiers", "none"]
"""The policy of automatic summaries."""


@dataclass(frozen=True, slots=True)
class SummaryPolicy:
    """What a policy makes, of what, and when."""

    kinds: tuple[SummaryKind, ...]
    """The kinds of summaries that it makes."""
    subject: Literal["user", "thread", "day"]
    """What an entry of the agenda is about: a user, a user in one thread, or a day of a whole space."""
    rhythm: str
    """When it makes a summary, in words for `/summary_status`. `{threshold}` is replaced by that of `MemoryStatus`."""


POLICIES: Final[Mapping[str, SummaryPolicy]] = {
    "tree": SummaryPolicy(("tree",), "user", "one after every {threshold} of your messages"),
    "rolling": SummaryPolicy(("rolling",), "thread", "one after {threshold} messages of this chat"),
    "calendar": SummaryPolicy(("day", "week"), "day", "one for each day, and one for the week"),
    "tiers": SummaryPolicy(
        ("history",), "user", "the whole history is analysed after every {threshold} messages, or once a day"
    ),
    "none": SummaryPolicy((), "user", "none in this profile; every message is stored and can be found"),
}
"""Every policy. How it works is in `digest/steps`."""
