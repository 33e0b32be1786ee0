"""Messages around a batch. A model reads them to understand the batch; no memories are extracted from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.message import Message, Position, in_time_order
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.setting import wants_memory
from aforesaid.profiles.effective import settings_of
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.store import Store

MOST_BEFORE: Final = 6
"""Messages read before a batch, per thread, so that the question to which a first "yes" replies is included."""
_MOST_BETWEEN: Final = 40
"""Maximum messages of other people between those of a batch, per thread."""
_CHARACTERS: Final = 500
"""Maximum characters of each message. It only has to show the topic."""


async def surroundings(store: Store, scope: Scope, batch: Sequence[Message]) -> list[Message]:
    """Return messages from just before a batch and, in channels, of other people from between its messages.

    Messages of users who switched memory off are left out.
    """
    known = {message.seq for message in batch}
    found: dict[int, Message] = {}
    for thread in dict.fromkeys(message.thread for message in batch):
        here = Scope(scope.space, scope.user, thread)
        mine = in_time_order(message for message in batch if message.thread == thread)
        near = await store.read(questions.Messages(here, within="thread", limit=MOST_BEFORE, before=mine[0].seq))
        if not is_direct(thread):
            later = await store.read(
                questions.Messages(here, within="thread", limit=_MOST_BETWEEN, before=mine[-1].seq)
            )
            near += [message for message in later if _place(message) > _place(mine[0])]
        found |= {message.seq: message for message in near if message.seq not in known}
    owners = {message.user for message in found.values()}
    wanted = {user for user in owners if wants_memory(await settings_of(store, Scope.of(user, scope.space)))}
    return [replace(message, text=message.text[:_CHARACTERS]) for message in found.values() if message.user in wanted]


async def between_others(store: Store, scope: Scope, batch: Sequence[Message]) -> list[Message]:
    """Return the messages of other users in the channels of a batch: just before it, and between its messages.

    They show what a message of the batch follows. Nothing of them may be stored with the user.
    """
    found: list[Message] = []
    for thread in dict.fromkeys(message.thread for message in batch if not is_direct(message.thread)):
        here = Scope(scope.space, scope.user, thread)
        mine = in_time_order(message for message in batch if message.thread == thread)
        before: int | Position = mine[-1].seq
        # As many others as own messages on average; more is read where there are more of them.
        limit = MOST_BEFORE + 2 * len(mine)
        while True:
            page = await store.read(questions.Messages(here, within="thread", limit=limit, before=before))
            found += [message for message in page if message.user != scope.user]
            if len(page) < limit or _place(page[0]) < _place(mine[0]):
                break
            before = Position(microseconds(page[0].at, "the time"), page[0].seq)
    return found


def just_before(around: Sequence[Message], batch: Sequence[Message]) -> list[Message]:
    """Return the messages that a model reads with a batch or a part of it: just before and between, by time."""
    inside = {message.seq for message in batch}
    first, last = min(map(_place, batch)), max(map(_place, batch))
    others = in_time_order(message for message in around if message.seq not in inside and _place(message) < last)
    before = [message for message in others if _place(message) < first]
    return [*before[-MOST_BEFORE:], *(message for message in others if _place(message) > first)]


def _place(message: Message) -> tuple[datetime, int]:
    return message.at, message.seq
