"""The settings in effect for a user: the profile's, the space's and the user's own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import tzinfo
from difflib import get_close_matches
from time import monotonic
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.domain import checks
from aforesaid.domain.checks import SettingValue
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import CLEARED, ENABLED, EVERY, EVERYBODY
from aforesaid.errors import InvalidInput, quoted
from aforesaid.profiles import BUILT_IN, Profile, load_profile
from aforesaid.profiles.recipe import LEAST_BUDGET, MOST_TOKENS, share
from aforesaid.store import Store
from aforesaid.store.people import PutSetting, Settings

TIME_ZONE: Final = "time_zone"
BUDGET: Final = "context_budget"
SESSION: Final = "session_timeout_minutes"
PERSONA: Final = "bot_persona"
PROFILE: Final = "context_profile"
EXCHANGES: Final = "short_term_memory_limit"
RESULTS: Final = "long_term_memory_limit"
SIMILARITY: Final = "semantic_similarity_threshold"
MEMORIES: Final = "persistent_memory_limit"

Group = Literal["Limits", "Context", "Learning"]


class RuntimeSetting(NamedTuple):
    """A setting that Aforesaid reads."""

    key: str
    label: str
    help: str
    kind: Literal["whole", "share", "text", "words", "switch", "choice", "zone"]
    """The type of its value. `words` is a longer text."""
    group: Group | None = None
    """The group in the panel. None: it is not shown there."""
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    default: Callable[[Profile], SettingValue] = lambda _: None
    """Returns the value that a profile has for it."""
    space_only: bool = False
    """Whether it can be set for a whole space only."""

    @property
    def allowed(self) -> str:
        """The allowed values, for documentation."""
        return {
            "whole": f"{self.least} to {self.most}",
            "share": "0 to 1",
            "switch": "true or false",
            "choice": ", ".join(f"`{each}`" for each in self.choices),
            "zone": "a name such as `Europe/Berlin`",
        }.get(self.kind, "text")


_DECLARED: Final = (
    RuntimeSetting(
        ENABLED,
        "Learn and summarise",
        "Make summaries and memories automatically. Messages are stored either way.",
        "switch",
        "Learning",
        default=lambda _: True,
    ),
    RuntimeSetting(
        EVERY,
        "Summarise after",
        'Summarise after this many user turns, with the policy "tree".',
        "whole",
        "Learning",
        1,
        500,
        default=lambda profile: profile.tree_turns,
    ),
    RuntimeSetting("storage_type", "Storage", "The storage chosen with `/summary`.", "text"),
    RuntimeSetting(
        TIME_ZONE,
        "Time zone",
        "The time zone for dates and days, such as Europe/Berlin.",
        "zone",
        "Learning",
        default=lambda profile: profile.time_zone,
    ),
    RuntimeSetting(
        PROFILE,
        "Profile",
        "Build contexts with this built-in profile. The summary policy does not change.",
        "choice",
        "Context",
        choices=BUILT_IN,
    ),
    RuntimeSetting(
        BUDGET,
        "Token budget",
        "Maximum tokens of a context, unless a call passes a budget.",
        "whole",
        "Context",
        LEAST_BUDGET,
        MOST_TOKENS,
        default=lambda profile: profile.context.budget,
    ),
    RuntimeSetting(
        EXCHANGES,
        "Recent exchanges",
        "Maximum recent exchanges in a context.",
        "whole",
        "Limits",
        1,
        500,
        default=lambda profile: profile.context.recent // 2,
    ),
    RuntimeSetting(
        RESULTS,
        "Search results",
        "Maximum search results in a context.",
        "whole",
        "Limits",
        0,
        1_000,
        default=lambda profile: profile.context.snippets,
    ),
    RuntimeSetting(
        SIMILARITY,
        "Similarity",
        "Minimum similarity in meaning of search results in a context. With 0, matching words are enough.",
        "share",
        "Limits",
        default=lambda profile: profile.context.similarity,
    ),
    RuntimeSetting(
        MEMORIES,
        "Memories",
        "Maximum memories in a context, most important first.",
        "whole",
        "Limits",
        0,
        1_000,
        default=lambda profile: profile.context.memories,
    ),
    RuntimeSetting(
        SESSION,
        "Session ends after",
        "Minutes of silence that close a session. Per space only.",
        "whole",
        "Learning",
        1,
        10 * 365 * 24 * 60,
        default=lambda profile: profile.session_minutes,
        space_only=True,
    ),
    RuntimeSetting(
        PERSONA, "Persona", "The bot's persona.", "words", "Context", default=lambda profile: profile.persona
    ),
)
RUNTIME_SETTINGS: Final[Mapping[str, RuntimeSetting]] = {each.key: each for each in _DECLARED}
"""The settings that Aforesaid reads. All other names are the caller's."""
_INTERNAL: Final = (CLEARED,)
"""Settings that Aforesaid alone writes."""


def check_setting(scope: Scope, key: str, value: SettingValue) -> SettingValue:
    """Return the value of a setting as it is stored. Raises InvalidInput, whose `field` is the name of the setting."""
    setting = RUNTIME_SETTINGS.get(key)
    if setting and setting.space_only and scope.user != EVERYBODY:
        raise InvalidInput(f"{key} is set for a whole space: memory.set({key!r}, …, space=…)", key)
    try:
        if setting is None:
            # Check a setting of the caller's. A name that is nearly one of ours is refused.
            if close := get_close_matches(
                checks.identifier(key, "the setting's name"), RUNTIME_SETTINGS, n=1, cutoff=0.85
            ):
                raise InvalidInput(f"there is no setting {quoted(key)}; did you mean {close[0]!r}?")
            if key in _INTERNAL:
                raise InvalidInput(f"{quoted(key)} is written by Aforesaid itself and cannot be set")
            return None if value is None else checks.setting_value(value, key)
        return None if value is None else _checked(setting, value)
    except InvalidInput as error:
        error.field = key
        raise


def _checked(setting: RuntimeSetting, value: object) -> SettingValue:
    key, kind = setting.key, setting.kind
    if kind == "whole":
        return checks.at_most(checks.at_least(value, setting.least, key), setting.most, key)
    if kind == "share":
        return share(value, key)
    if kind == "zone":
        try:
            ZoneInfo(checks.storable(value, key))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidInput(f"unknown time zone {quoted(value)}; use a name such as Europe/Berlin") from None
        return str(value)
    if kind == "switch":
        if not isinstance(value, bool):
            raise InvalidInput(f"{key} is True or False, not {quoted(value)}")
        return value
    if kind == "choice":
        if not isinstance(value, str) or value not in setting.choices:
            raise InvalidInput(f"{key} must be one of {', '.join(setting.choices)}, not {quoted(value)}")
        return str(value)
    return checks.storable(value, key)


_log: Final = logging.getLogger("aforesaid.profiles")

_FRESH_SECONDS: Final = 1.0
"""Seconds after which a change by another process is seen."""
_MOST_KEPT: Final = 10_000


async def settings_of(store: Store, scope: Scope) -> dict[str, SettingValue]:
    """Return the settings of a user: the space's settings, overridden by the user's own."""
    both = await asyncio.gather(_stored(store, scope.space, EVERYBODY), _stored(store, scope.space, scope.user))
    return both[0] | both[1]


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
            both = await asyncio.gather(self.of_space(scope.space), self._one(scope.space, scope.user))
            return both[0] | both[1]
        return everybody | one

    async def of_space(self, space: str) -> dict[str, SettingValue]:
        return await self._one(space, EVERYBODY)

    async def profile(self, scope: Scope) -> Profile:
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


async def _stored(store: Store, space: str, user: str) -> dict[str, SettingValue]:
    return {setting.key: setting.value for setting in await store.read(Settings(Scope.of(user, space)))}


def tuned(profile: Profile, settings: Mapping[str, SettingValue]) -> Profile:
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
