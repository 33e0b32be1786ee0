"""The settings of a user that Recollect itself looks at. All other names are the caller's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from recollect.domain.report import Setting

ENABLED: Final = "memory_enabled"
"""Whether anything is summarised or learned by itself. Messages are kept either way."""
EVERY: Final = "summary_every_n"
"""After how many of the user's turns."""


def wants_memory(settings: Iterable[Setting]) -> bool:
    """Tell whether a user has not switched summaries and learning off."""
    return all(setting.value is not False for setting in settings if setting.key == ENABLED)
