"""The timeline of a user: what happened and what is to come, by date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from aforesaid.domain.memory import Event, MemoryRecord


def timeline(
    memories: Sequence[MemoryRecord], since: datetime | None = None, until: datetime | None = None
) -> list[MemoryRecord]:
    """Return the dated memories that lie in a period, in the order in which things happened.

    These are events and all others with a date, except reminders, which have the date on which they ring. What was
    replaced, deactivated or forgotten is left out; what has merely expired is not. An event that was over when a newer
    one superseded it did happen; one that was still to come was moved.
    """
    dated = [(memory.happened, memory) for memory in memories if _counts(memory)]
    found = [(event, memory) for event, memory in dated if event is not None and overlaps(event, since, until)]
    return [memory for _, memory in sorted(found, key=lambda each: (each[0].start, each[1].id))]


def overlaps(event: Event, since: datetime | None, until: datetime | None) -> bool:
    """Return whether an event lies in a period, at least in part. None: the period is open on that side."""
    ends_before = since is not None and (event.end <= since if event.end > event.start else event.start < since)
    return not ends_before and (until is None or event.start < until)


def _counts(memory: MemoryRecord) -> bool:
    if memory.kind == "reminder":
        return False
    return memory.state in {"active", "expired"} or (memory.state == "superseded" and _was_over(memory))


def _was_over(memory: MemoryRecord) -> bool:
    """Return whether a superseded memory is an event that had happened by then."""
    event, superseded = memory.happened, memory.valid_to
    return memory.kind == "event" and event is not None and superseded is not None and event.end <= superseded
