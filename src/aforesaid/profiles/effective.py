"""Stored settings of spaces and users, which override the profile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import tzinfo
from difflib import get_close_matches
from time import monotonic
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.domain import checks
from aforesaid.domain.change import PutSetting
from aforesaid.domain.literals import SettingValue
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import CLEARED, ENABLED, EVERY, EVERYBODY
from aforesaid.errors import InvalidInput, quoted
from aforesaid.profiles import BUILT_IN, Profile, load_profile
from aforesaid.profiles.recipe import LEAST_BUDGET, MOST_TOKENS
from aforesaid.store import Store, questions

_log: Final = logging.getLogger("aforesaid.profiles")

STORAGE: Final = "storage_type"
TIME_ZONE: Final = "time_zone"
BUDGET: Final = "context_budget"
SESSION: Final = "session_timeout_minutes"
PERSONA: Final = "bot_persona"
_PROFILE: Final = "context_profile"
_EXCHANGES: Final = "short_term_memory_limit"
_FOUND: Final = "long_term_memory_limit"
_SIMILARITY: Final = "semantic_similarity_threshold"
_MEMORIES: Final = "persistent_memory_limit"

_FRESH_SECONDS: Final = 1.0
"""Seconds after which a change by another process is seen."""
_MOST_KEPT: Final = 10_000


def _whole(least: int, most: int) -> Callable[[object, str], SettingValue]:
    return lambda value, what: checks.at_most(checks.at_least(value, least, what), most, what)


def _share(value: object, what: str) -> SettingValue:
    number = checks.number(value, what)
    if not 0 <= number <= 1:
        raise InvalidInput(f"{what} must be between 0 and 1, not {quoted(value)}")
    return number


def _zone(value: object, what: str) -> SettingValue:
    try:
        ZoneInfo(checks.storable(value, what))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"unknown time zone {quoted(value)}; use a name such as Europe/Berlin") from None
    return str(value)


def _switch(value: object, what: str) -> SettingValue:
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} is True or False, not {quoted(value)}")
    return value


def _built_in(value: object, what: str) -> SettingValue:
    if not isinstance(value, str) or value not in BUILT_IN:
        raise InvalidInput(f"{what} must be one of {', '.join(BUILT_IN)}, not {quoted(value)}")
    return str(value)


KNOWN: Final[Mapping[str, tuple[Callable[[object, str], SettingValue], str]]] = {
    ENABLED: (_switch, "whether summaries and memories are made automatically"),
    EVERY: (_whole(1, 500), "summarise after this many user turns"),
    STORAGE: (checks.storable, "the storage chosen with /summary"),
    TIME_ZONE: (_zone, "time zone for dates and days"),
    _PROFILE: (_built_in, "build contexts with this built-in profile"),
    BUDGET: (_whole(LEAST_BUDGET, MOST_TOKENS), "default token budget of a context"),
    _EXCHANGES: (_whole(1, 500), "maximum recent exchanges in a context"),
    _FOUND: (_whole(0, 1_000), "maximum search results in a context"),
    _SIMILARITY: (_share, "minimum similarity of search results, 0 to 1"),
    _MEMORIES: (_whole(0, 1_000), "maximum memories in a context"),
    SESSION: (_whole(1, 10 * 365 * 24 * 60), "minutes of silence that close a session; per space only"),
    PERSONA: (checks.storable, "the bot's persona"),
}
"""The settings that Aforesaid reads: how each is checked, and what it does. Other names are the caller's."""
_INTERNAL: Final = (CLEARED,)
"""Settings that Aforesaid alone writes."""


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
        minutes = (await self.of_space(space)).get(SESSION)
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
        kept = self._kept.get((space, user))
        if kept is None:
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
    chosen = settings.get(_PROFILE)
    other = profile if chosen is None else load_profile(str(chosen))
    recipe, persona = other.context, settings.get(PERSONA)
    exchanges = settings.get(_EXCHANGES)
    values: dict[str, Any] = {
        "recent": None if exchanges is None else 2 * int(exchanges),
        "snippets": settings.get(_FOUND),
        "similarity": settings.get(_SIMILARITY),
        "memories": settings.get(_MEMORIES),
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


def check_setting(scope: Scope, key: str, value: SettingValue) -> SettingValue:
    """Return the value of a setting as it is stored. Raises InvalidInput, whose `field` is the name of the setting."""
    if key == SESSION and scope.user != EVERYBODY:
        raise InvalidInput(f"{SESSION} is set for a whole space: memory.set({SESSION!r}, …, space=…)", key)
    try:
        return _checked(key, value)
    except InvalidInput as error:
        error.field = key
        raise


def _checked(key: str, value: SettingValue) -> SettingValue:
    close = get_close_matches(checks.identifier(key, "the setting's name"), KNOWN, n=1, cutoff=0.85)
    if close and key not in KNOWN:
        raise InvalidInput(f"there is no setting {quoted(key)}; did you mean {close[0]!r}?")
    if key in _INTERNAL:
        raise InvalidInput(f"{quoted(key)} is written by Aforesaid itself and cannot be set")
    if value is None:
        return None
    return KNOWN[key][0](value, key) if key in KNOWN else checks.setting_value(value, key)
