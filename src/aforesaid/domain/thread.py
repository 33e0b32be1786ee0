"""Threads: the conversations of a user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from aforesaid.domain.message import Message
from aforesaid.domain.scope import chat_name, is_chat
from aforesaid.errors import NotFound, quoted

LAST_TEXT: Final = 200
"""Maximum characters of a thread's last text, which lists show as a preview."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread, as far as one user's messages in it go."""

    id: str
    messages: int
    """Number of the user's messages in it, of each only the newest version."""
    first_at: datetime
    last_at: datetime
    last_text: str
    """The beginning of the user's newest message, at most 200 characters."""

    @property
    def chat(self) -> str | None:
        """The id of the private chat that this is, as `user(…).chat(…)` takes it; None for any other thread."""
        return chat_name(self.id) if is_chat(self.id) else None


def newest_first(threads: Iterable[Thread]) -> list[Thread]:
    """Sort threads by their last message, newest first; ties by id, backwards."""
    return sorted(threads, key=_place, reverse=True)


def _place(thread: Thread) -> tuple[datetime, str]:
    return thread.last_at, thread.id


def threads_after(threads: Sequence[Thread], before: Thread | str | None, user: str) -> Sequence[Thread]:
    """Return the threads that come after the place of a thread, or after the one with the id `before`.

    Raises NotFound if there is none with this id.
    """
    if before is None:
        return threads
    if isinstance(before, Thread):
        return [thread for thread in threads if _place(thread) < _place(before)]
    for place, thread in enumerate(threads, 1):
        if thread.id == before:
            return threads[place:]
    raise unknown_thread(user, before)


def unknown_thread(user: str, thread: str) -> NotFound:
    """Return the error for a thread that the user has no messages in."""
    return NotFound(f"{quoted(user)} has no messages in the thread {quoted(thread)}")


def threads_of(messages: Iterable[Message]) -> dict[str, Thread]:
    """Return the threads of messages that are in order of time, by id."""
    found: dict[str, Thread] = {}
    for message in messages:
        new = Thread(message.thread, 1, message.at, message.at, message.text[:LAST_TEXT])
        before = found.get(message.thread)
        found[message.thread] = new if before is None else joined(before, new)
    return found


def joined(thread: Thread, later: Thread) -> Thread:
    """Return one thread for two parts of it. Of equal times, that of `later` counts as the last."""
    last = later if later.last_at >= thread.last_at else thread
    return replace(last, messages=thread.messages + later.messages, first_at=min(thread.first_at, later.first_at))
