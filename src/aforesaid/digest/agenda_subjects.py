"""Maps new messages to the agenda entries of a summary policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo

from aforesaid.digest.calendar import day_of
from aforesaid.domain.agenda import Passed, Subject, Touch


def affected_subjects(
    policy: str, passed: Sequence[Passed], now: int, zone: Callable[[str], tzinfo]
) -> tuple[Touch, ...]:
    """Return the subjects that these messages affect: a user, a user in a thread, or a day of a space."""
    found: dict[Subject, Touch] = {}
    for message in passed:
        subject = _subject(policy, message, zone)
        before = found.get(subject)
        found[subject] = Touch(
            subject,
            1 + (before.messages if before else 0),
            message.characters + (before.characters if before else 0),
            message.seq,
            now,
        )
    return tuple(found.values())


def _subject(policy: str, message: Passed, zone: Callable[[str], tzinfo]) -> Subject:
    if policy == "calendar":
        return Subject(policy, message.space, day=day_of(message.at, zone(message.space)).isoformat())
    thread = message.thread if policy == "rolling" else ""
    return Subject(policy, message.space, message.user, thread)
