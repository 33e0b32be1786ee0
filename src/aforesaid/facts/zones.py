"""Where somebody's days begin and end."""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo

from aforesaid.domain.scope import Scope
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import TIME_ZONE, settings_of
from aforesaid.store import Store


async def zone_of(store: Store, profile: Profile, scope: Scope) -> tzinfo:
    """Return the time zone of a user: their setting, or else the one of their space."""
    name = (await settings_of(store, scope)).get(TIME_ZONE)
    if isinstance(name, str):
        try:
            return ZoneInfo(name)
        except (LookupError, ValueError, OSError):
            pass  # a setting that names no time zone does not keep anything from working
    return profile.zone(scope.space)
