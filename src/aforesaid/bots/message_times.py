"""The times under which a bot stores messages.

History is read by time, and two clocks write it: the platform's, which may count whole seconds only, and this
machine's, for replies. Without a correction, a question that was sent right after a reply would be read before it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cachetools import LRUCache

from aforesaid.bots.contract import ThreadKey
from aforesaid.domain import checks

LIVE: Final = timedelta(seconds=30)
"""Messages that arrive within this time of being sent are live. It covers whole-second times, slow polling and clocks
that differ by some seconds. Older ones were sent while the bot was away, and keep their own time."""
_REST_OF_A_SECOND: Final = timedelta(microseconds=999_999)
_THREADS: Final = 10_000
"""Maximum number of threads whose newest time is cached."""


class MessageTimes:
    """Chooses the time of each message so that a live thread is read in the order in which it was stored."""

    def __init__(self) -> None:
        self._newest: LRUCache[ThreadKey, datetime] = LRUCache(_THREADS)
        self._received: LRUCache[ThreadKey, tuple[datetime, datetime]] = LRUCache(_THREADS)
        """When the last received message of a thread was sent, and the time it was stored under."""

    def received(self, thread: ThreadKey, sent_at: datetime) -> datetime:
        """Return the time to store a received message under.

        It is never before a received message that was sent earlier, and while live never before the thread's newest.
        """
        now, platform_time = _now(), sent_at
        live = abs(now - sent_at) <= LIVE
        if live and not sent_at.microsecond:
            # A whole second names all of it. The time of arrival orders messages also across a restart of the bot.
            sent_at = max(sent_at, min(now, sent_at + _REST_OF_A_SECOND))
        at = max(sent_at, self._newest.get(thread, sent_at)) if live else sent_at
        last_sent, last_stored = self._received.get(thread, (platform_time, at))
        if platform_time >= last_sent:
            at = max(at, last_stored)
            self._received[thread] = platform_time, at
        self._advance(thread, at)
        return at

    def sent(self, thread: ThreadKey, question: datetime | None = None) -> datetime:
        """Return the time to store a sent message under: now, but never before its question or its thread's newest."""
        now = _now()
        at = max(now, question or now, self._newest.get(thread, now))
        self._advance(thread, at)
        return at

    def _advance(self, thread: ThreadKey, at: datetime) -> None:
        self._newest[thread] = max(at, self._newest.get(thread, at))


def _now() -> datetime:
    return checks.moment(checks.now())
