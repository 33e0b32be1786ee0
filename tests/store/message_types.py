"""Messages of every type that bots store, and what the documented table calls them."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.checks import Role
from aforesaid.domain.scope import Scope
from aforesaid.store.messages import AddMessage
from making import adding, minutes

TYPES: Final[tuple[tuple[Role, str, str | None, str], ...]] = (
    ("user", "Good morning!", "1", "text"),
    ("assistant", "Good morning! How are you?", "re:1", "text"),
    ("user", "What do I have on Monday?", "voice:8a1f", "voice"),
    ("assistant", "The dentist at nine.", "re:voice:8a1f", "voice"),
    ("user", "[attached: voice message, 4 s]", "2", "voice"),
    ("user", "Look at this\n[attached: photo]", "3", "image"),
    ("user", "[attached: Cat.PNG (82 kB)]", "4", "image"),
    ("user", "[attached: picture]", "5", "image"),
    ("user", "[attached: video message, 9 s]", "6", "video"),
    ("user", "[attached: song.mp3 (3,000 kB)]", "7", "audio"),
    ("user", "[attached: sticker \U0001f600]", "8", "sticker"),
    ("user", "[attached: location 52.52000, 13.40500]", "9", "location"),
    ("user", "[attached: contact Tom]", "10", "contact"),
    ("user", "[attached: poll: Where to?]", "11", "poll"),
    ("user", "The plan\n[attached: plan.pdf (82 kB)]", "12", "file"),
    ("user", "/search Berlin flat", "13", "command"),
    ("user", "/help", "14", "command"),
    ("user", "/etc/hosts is empty", "15", "text"),
    ("assistant", "/help lists everything.", "16", "text"),
    ("tool", "(deleted the message of 2026-03-01 12:00 UTC)", "1:deleted", "system"),
    ("system", "Be brief.", None, "system"),
)
"""Role, text, id and type."""


def messages_of_all_types(scope: Scope) -> list[AddMessage]:
    """Return changes that store one message of each."""
    return [adding(scope, text, role, at=minutes(number), id=id_) for number, (role, text, id_, _) in enumerate(TYPES)]
