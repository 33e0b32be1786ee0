"""Where somebody's days begin and end."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from recollect.domain.scope import Scope
from recollect.profiles import Profile
from recollect.store import Store

TIME_ZONE: Final = "time_zone"
"""The setting of a user that names their time zone."""


async def zone_of(store: Store, profile: Profile, scope: Scope) -> tzinfo:
    """Return the time zone of a user: their setting, or else the one of their space."""
    for setting in await store.settings(scope):
        if setting.key == TIME_ZONE and isinstance(setting.value, str):
            try:
                return ZoneInfo(setting.value)
            except (LookupError, ValueError, OSError):
                break  # a setting that names no time zone does not keep anything from working
    return profile.zone(scope.space)
