"""Counters of a bot, for its health report."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from aforesaid.domain.checks import ComponentStatus
from aforesaid.domain.report import Component

_MAX_PROBLEMS: Final = 3


@dataclass(slots=True)
class BotStats:
    """What a bot has done since its start."""

    received: int = 0
    stored: int = 0
    commands: int = 0
    answered: int = 0
    unanswered: int = 0
    """Messages that the model failed to answer."""
    skipped: int = 0
    """Messages that were not answered because too many were waiting."""
    edits: int = 0
    deletions: int = 0
    sent: int = 0
    reminders: int = 0
    reconnections: int = 0
    connected: bool = False
    last: datetime | None = None
    """The time of the last received or sent message."""
    problems: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_PROBLEMS))
    """The most recent distinct problems; cleared by `mark_ok`."""

    def failed(self, problem: str) -> None:
        """Record a problem."""
        if problem not in self.problems:
            self.problems.append(problem)

    def mark_ok(self) -> None:
        """Record that the bot works: it is connected and has no problems."""
        self.connected = True
        self.last = datetime.now(UTC)
        self.problems.clear()

    def component(self, name: str, waiting: int, parts: Sequence[Component] = ()) -> Component:
        """Return the health of the bot, including the services that it uses."""
        facts = [("connected", "yes" if self.connected else "no"), ("waiting for an answer", str(waiting))]
        counted = ("received", "stored", "commands", "answered", "unanswered", "skipped", "edits", "deletions", "sent")
        facts += [(what, str(getattr(self, what))) for what in (*counted, "reminders", "reconnections")]
        facts += [(part.name, "; ".join(f"{what}: {how}" for what, how in part.facts)) for part in parts]
        issues = (*self.problems, *(f"{part.name}: {issue}" for part in parts for issue in part.issues))
        status: ComponentStatus = "failing" if issues or not self.connected else "active"
        return Component(f"{name} bot", status, self.last, issues, tuple(facts))
