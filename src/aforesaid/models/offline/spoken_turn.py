"""What was said, as the functions of this room take it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from aforesaid.domain.checks import Role


class Spoken(NamedTuple):
    """Something that somebody said."""

    speaker: str
    """The name to show."""
    text: str
    at: datetime | None = None
    """When it was said, in the time zone whose days count. Without it nothing is dated."""
    role: Role = "user"


class Summarised(NamedTuple):
    """A summary that is to become part of another one, and the time that it covers."""

    text: str
    first: datetime | None = None
    last: datetime | None = None
