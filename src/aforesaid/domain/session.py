"""Sessions: stretches of a thread without a long silence.

They are a view of the log by event time. Whatever order messages arrive in, the same messages give the same
sessions: a late message can lengthen a session, or join two that only looked apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from aforesaid.domain.literals import SessionState

SESSION_SILENCE: Final = 30 * 60 * 1_000_000
"""A silence of 30 minutes, in microseconds, closes a session."""
_IDLE_AFTER: Final = 3
"""A session is idle once it has been quiet for this part (one third) of its timeout."""
_AUTOMATIC: Final = re.compile(r"s-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Session:
    """A part of a thread without a long silence. It closes after `timeout` of silence."""

    id: str
    space: str
    thread: str
    user: str
    """The user who opened it."""
    started_at: datetime
    last_activity: datetime
    messages: int
    timeout: timedelta

    def state(self, now: datetime | None = None) -> SessionState:
        """Return the state at `now`: active, idle after a third of the timeout, closed after the timeout."""
        quiet = (now or datetime.now(UTC)) - self.last_activity
        if quiet >= self.timeout:
            return "closed"
        return "idle" if quiet * _IDLE_AFTER >= self.timeout else "active"


@dataclass(frozen=True, slots=True)
class SessionBounds:
    """The first and last message times of a session, in microseconds."""

    key: int
    started: int
    last: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The session of a message: `keep` (None: a new session), after `absorb` was merged into it."""

    keep: SessionBounds | None
    absorb: SessionBounds | None = None


def place(at: int, timeout: int, candidates: Sequence[SessionBounds]) -> Placement:
    """Decide which session a message said at `at` belongs to.

    `candidates` are the last two automatic sessions of the thread, by time, that began before `at + timeout`.
    Two of them can be near only when the message closes the silence between them; then they become one.
    """
    near = [stretch for stretch in candidates if stretch.started - timeout < at < stretch.last + timeout]
    if not near:
        return Placement(keep=None)
    near.sort(key=lambda stretch: (stretch.started, stretch.key))
    return Placement(keep=near[0], absorb=near[1] if len(near) > 1 else None)


def automatic_name(seq: int) -> str:
    """Return the name of the session that a message opened."""
    return f"s-{seq}"


def opening_message(name: str) -> int | None:
    """Return the sequence number in an automatic session name; None for a name that a caller chose."""
    match = _AUTOMATIC.fullmatch(name)
    return None if match is None else int(match[1])
