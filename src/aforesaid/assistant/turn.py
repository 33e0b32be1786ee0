"""A message to the assistant and its circumstances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aforesaid.domain.message import Message

if TYPE_CHECKING:
    from aforesaid.memory import UserMemory

CALLED = ("bot", "aforesaid")
"""Default names of the assistant."""
_QUOTED: Final = 500
"""Maximum characters of a quoted text that a model is shown."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message to the assistant."""

    user: UserMemory
    """The author's memory, in their thread."""
    text: str
    message: Message | None = None
    """The stored message, if it is stored already."""
    name: str | None = None
    """The author's display name."""
    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of other people who are present, by id; the display name comes first."""
    called: tuple[str, ...] = CALLED
    """Names of the assistant."""
    quoted: str | None = None
    """The text that it replies to."""

    @property
    def asked(self) -> str:
        """What a model is asked: the text, after the beginning of the one that it replies to."""
        quoted = " ".join((self.quoted or "").split())
        if not quoted:
            return self.text
        return f"(In reply to: “{quoted[:_QUOTED]}{'…' if len(quoted) > _QUOTED else ''}”)\n{self.text}"

    def names(self) -> dict[str, str]:
        """Return the display names of everybody present, by id."""
        shown = {user: names[0] for user, names in self.people.items() if names}
        return shown if self.name is None else {**shown, self.user.scope.user: self.name}
