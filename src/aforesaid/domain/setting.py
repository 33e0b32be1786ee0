"""Names of user settings that Aforesaid reads. All other names are free for callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aforesaid.domain.checks import SettingValue

ENABLED: Final = "memory_enabled"
"""Whether summaries and memories are made automatically. Messages are stored either way."""
EVERY: Final = "summary_every_n"
"""Summarise after this many user turns."""
CLEARED: Final = "cleared_up_to"
"""The last message before the user's recent window was cleared. Only `clear` writes it."""
EVERYBODY: Final = "*"
"""The user id of a space's settings. No user can have it."""


def wants_memory(settings: Mapping[str, SettingValue]) -> bool:
    """Return whether automatic summaries and memories are on for a user."""
    return settings.get(ENABLED) is not False


def cleared_up_to(settings: Mapping[str, SettingValue]) -> int:
    """Return the sequence number of the last message before the user cleared short-term memory; 0 if never."""
    found = settings.get(CLEARED)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0
