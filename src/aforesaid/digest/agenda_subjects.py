"""The entries of the agenda that a summary policy makes for messages and for users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo

from aforesaid.digest.calendar import day_of
from aforesaid.domain.scope import Passed, Subject, Touch
from aforesaid.profiles.recipe import POLICIES


def affected_subjects(
    policy: str, passed: Sequence[Passed], now: int, zone: Callable[[str], tzinfo]
) -> tuple[Touch, ...]:
    """Return the subjects that these messages affect: a user, a user in a thread, or a day of a space."""
    found: dict[Subject, Touch] = {}
    for message in passed:
        subject = _of_message(policy, message, zone)
        before = found.get(subject)
        found[subject] = Touch(
            subject,
            1 + (before.messages if before else 0),
            message.characters + (before.characters if before else 0),
            message.seq,
            now,
        )
    return tuple(found.values())


def subject_of_user(policy: str, space: str, user: str, thread: str) -> Subject | None:
    """Return the subject that a user's summaries depend on; None if they depend on the days of the space."""
    about = POLICIES[policy].subject
    if about == "day":
        return None
    return Subject(policy, space, user, thread if about == "thread" else "")


def _of_message(policy: str, message: Passed, zone: Callable[[str], tzinfo]) -> Subject:
    found = subject_of_user(policy, message.space, message.user, message.thread)
    if found is None:
        return Subject(policy, message.space, day=day_of(message.at, zone(message.space)).isoformat())
    return found
