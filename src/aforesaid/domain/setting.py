"""The settings of a user that Aforesaid itself looks at. All other names are the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aforesaid.domain.words import SettingValue

ENABLED: Final = "memory_enabled"
"""Whether anything is summarised or learned by itself. Messages are kept either way."""
EVERY: Final = "summary_every_n"
"""After how many of the user's turns."""
CLEARED: Final = "cleared_up_to"
"""The last message before the user's recent window was cleared. Only `clear` writes it."""
EVERYBODY: Final = "*"
"""Whose settings those of a whole space are. Nobody can be called that."""


def wants_memory(settings: Mapping[str, SettingValue]) -> bool:
    """Tell whether a user has not switched summaries and learning off."""
    return settings.get(ENABLED) is not False


def cleared_up_to(settings: Mapping[str, SettingValue]) -> int:
    """Return the sequence number of the last message before the user cleared short-term memory; 0 if never."""
    found = settings.get(CLEARED)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0
