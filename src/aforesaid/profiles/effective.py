"""Stored settings of spaces and users, which override the profile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import tzinfo
from time import monotonic
from typing import Any, Final
from zoneinfo import ZoneInfo

from aforesaid.domain.change import PutSetting
from aforesaid.domain.checks import SettingValue
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import CLEARED, EVERYBODY
from aforesaid.profiles import Profile, load_profile
from aforesaid.profiles.runtime_settings import (
    EXCHANGES,
    MEMORIES,
    PERSONA,
    PROFILE,
    RESULTS,
    SESSION,
    SIMILARITY,
    TIME_ZONE,
    check_setting,
)
from aforesaid.store import Store, questions

_log: Final = logging.getLogger("aforesaid.profiles")

_FRESH_SECONDS: Final = 1.0
"""Seconds after which a change by another process is seen."""
_MOST_KEPT: Final = 10_000


async def settings_of(store: Store, scope: Scope) -> dict[str, SettingValue]:
    """Return the settings of a user: the space's settings, overridden by the user's own."""
    return await _stored(store, scope.space, EVERYBODY) | await _stored(store, scope.space, scope.user)


class EffectiveSettings:
    """Returns the effective settings and profile of each user, with a short cache."""

    def __init__(self, store: Store, profile: Profile) -> None:
        from cachetools import TTLCache  # noqa: PLC0415 - loaded with the first memory

        self._store = store
        self._profile = profile
        self._changes = 0
        self._kept: TTLCache[tuple[str, str], dict[str, SettingValue]] = TTLCache(
            _MOST_KEPT, _FRESH_SECONDS, timer=monotonic
        )

    async def of(self, scope: Scope) -> dict[str, SettingValue]:
        """Return the settings of a user, at most one second old."""
        everybody, one = self._kept.get((scope.space, EVERYBODY)), self._kept.get((scope.space, scope.user))
        if everybody is None or one is None:
            return _above(*await asyncio.gather(self.of_space(scope.space), self._one(scope.space, scope.user)))
        return _above(everybody, one)

    async def of_space(self, space: str) -> dict[str, SettingValue]:
        """Return the settings of a space."""
        return await self._one(space, EVERYBODY)

    async def profile(self, scope: Scope) -> Profile:
        """Return the effective profile of a user."""
        return tuned(self._profile, await self.of(scope))

    async def silence(self, space: str) -> int:
        """Return the silence that closes a session in a space, in microseconds."""
        minutes = (await self._one(space, EVERYBODY)).get(SESSION)
        return self._profile.session_silence if minutes is None else int(minutes) * 60 * 1_000_000

    async def set(self, scope: Scope, key: str, value: SettingValue, actor: str = "aforesaid") -> None:
        """Check a setting and store it; None restores the default."""
        await self._put(scope, key, check_setting(scope, key, value), actor)

    async def mark_cleared(self, scope: Scope, seq: int, actor: str) -> None:
        """Record that the user's short-term memory begins after a message."""
        await self._put(scope, CLEARED, seq, actor)

    async def _put(self, scope: Scope, key: str, value: SettingValue, actor: str) -> None:
        await self._store.apply([PutSetting(scope, key, value, actor)])
        self._changes += 1
        self._kept.pop((scope.space, scope.user), None)

    async def _one(self, space: str, user: str) -> dict[str, SettingValue]:
        try:
            return self._kept[space, user]  # `get` would look at the clock twice, for every message that is stored
        except KeyError:
            changes = self._changes
        kept = await _stored(self._store, space, user)
        # What was read while a setting was changed may be older than the change.
        if changes == self._changes:
            self._kept[space, user] = kept
        return kept


def _above(everybody: Mapping[str, SettingValue], one: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    return {**everybody, **one}


async def _stored(store: Store, space: str, user: str) -> dict[str, SettingValue]:
    return {setting.key: setting.value for setting in await store.read(questions.Settings(Scope.of(user, space)))}


def tuned(profile: Profile, settings: Mapping[str, SettingValue]) -> Profile:
    """Return a profile with stored settings applied."""
    if not settings:
        return profile
    chosen = settings.get(PROFILE)
    other = profile if chosen is None else load_profile(str(chosen))
    recipe, persona = other.context, settings.get(PERSONA)
    exchanges = settings.get(EXCHANGES)
    values: dict[str, Any] = {
        "recent": None if exchanges is None else 2 * int(exchanges),
        "snippets": settings.get(RESULTS),
        "similarity": settings.get(SIMILARITY),
        "memories": settings.get(MEMORIES),
    }
    return replace(
        profile,
        context=replace(recipe, **{name: value for name, value in values.items() if value is not None}),
        persona=other.persona if persona is None else str(persona),
    )


def zone_from(settings: Mapping[str, SettingValue], profile: Profile, space: str) -> tzinfo:
    """Return the time zone of a user with these settings, or else that of their space."""
    name = settings.get(TIME_ZONE)
    if isinstance(name, str):
        try:
            return ZoneInfo(name)
        except (LookupError, ValueError, OSError):
            _log.warning("the setting %s names no time zone: %r; the profile's is used", TIME_ZONE, name)
    return profile.zone(space)
