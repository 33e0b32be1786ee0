"""Time zones of users."""

from __future__ import annotations

from datetime import tzinfo

from aforesaid.domain.scope import Scope
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import settings_of, zone_from
from aforesaid.store import Store


async def zone_of(store: Store, profile: Profile, scope: Scope) -> tzinfo:
    """Return the time zone of a user: their setting, or else the one of their space."""
    return zone_from(await settings_of(store, scope), profile, scope.space)
