"""What somebody says to the assistant, and all that is known about the moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aforesaid.domain.message import Message

if TYPE_CHECKING:
    from aforesaid.memory import UserMemory

CALLED = ("bot", "aforesaid")
"""What the assistant is called where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that a person says to the assistant."""

    user: UserMemory
    """The person, in the thread that they talk in."""
    text: str
    message: Message | None = None
    """The same, where it is stored already."""
    name: str | None = None
    """What the person is called here."""
    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Others who are around, by id: what each is called, the name that is shown first."""
    called: tuple[str, ...] = CALLED
    """What the assistant is called here."""
    quoted: str | None = None
    """What it is a reply to."""

    def names(self) -> dict[str, str]:
        """Return the name that is shown of everybody who is around, by id."""
        shown = {user: names[0] for user, names in self.people.items() if names}
        return shown if self.name is None else {**shown, self.user.scope.user: self.name}
