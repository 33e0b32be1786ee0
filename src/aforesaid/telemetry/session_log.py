"""Log when sessions open and close."""

from __future__ import annotations

import logging
from typing import Final

from aforesaid.domain.receipt import Receipt, Stored
from aforesaid.domain.scope import automatic_name

_log: Final = logging.getLogger("aforesaid.sessions")

_MOST_THREADS: Final = 10_000


class SessionLog:
    """Tells when a session opens, and that the one before it in the thread is closed by then.

    Sessions close by silence, so nothing happens at that moment that could be written down.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], str] = {}
        """The last known session of each thread."""

    def record(self, receipt: Receipt) -> None:
        """Log a change of session, given a message that was just stored. Does nothing if the log is disabled."""
        if not _log.isEnabledFor(logging.INFO):
            return
        stored = receipt.results[0]
        if not isinstance(stored, Stored):
            return
        scope = stored.draft.scope
        place = scope.space, scope.thread
        before = self._last.get(place)
        if before == stored.session:
            return
        if len(self._last) >= _MOST_THREADS:
            self._last.clear()
        self._last[place] = stored.session
        if stored.session != automatic_name(stored.seq):
            _log.info("session %s of %s continues in thread %s", stored.session, scope.user, scope.thread)
            return
        if before is not None:
            _log.info("session %s in thread %s is closed", before, scope.thread)
        _log.info("session %s of %s is open in thread %s", stored.session, scope.user, scope.thread)
