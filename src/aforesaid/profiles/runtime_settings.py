"""The settings that are stored for a space or a user and override the profile: one declaration for each.

Checks, the forms of the panel, the command line and the reference page are made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.domain import checks
from aforesaid.domain.checks import SettingValue
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import CLEARED, ENABLED, EVERY, EVERYBODY
from aforesaid.errors import InvalidInput, quoted
from aforesaid.profiles import BUILT_IN, Profile
from aforesaid.profiles.recipe import LEAST_BUDGET, MOST_TOKENS

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
            return _own(key, value)
        return None if value is None else _checked(setting, value)
    except InvalidInput as error:
        error.field = key
        raise


def _own(key: str, value: SettingValue) -> SettingValue:
    """Check a setting of the caller's. A name that is nearly one of ours is refused."""
    if close := get_close_matches(checks.identifier(key, "the setting's name"), RUNTIME_SETTINGS, n=1, cutoff=0.85):
        raise InvalidInput(f"there is no setting {quoted(key)}; did you mean {close[0]!r}?")
    if key in _INTERNAL:
        raise InvalidInput(f"{quoted(key)} is written by Aforesaid itself and cannot be set")
    return None if value is None else checks.setting_value(value, key)


def _checked(setting: RuntimeSetting, value: object) -> SettingValue:
    key, kind = setting.key, setting.kind
    if kind == "whole":
        return checks.at_most(checks.at_least(value, setting.least, key), setting.most, key)
    if kind == "share":
        return _share(value, key)
    if kind == "zone":
        return _zone(value, key)
    if kind == "switch":
        if not isinstance(value, bool):
            raise InvalidInput(f"{key} is True or False, not {quoted(value)}")
        return value
    if kind == "choice":
        if not isinstance(value, str) or value not in setting.choices:
            raise InvalidInput(f"{key} must be one of {', '.join(setting.choices)}, not {quoted(value)}")
        return str(value)
    return checks.storable(value, key)


def _share(value: object, key: str) -> float:
    number = checks.number(value, key)
    if not 0 <= number <= 1:
        raise InvalidInput(f"{key} must be between 0 and 1, not {quoted(value)}")
    return number


def _zone(value: object, key: str) -> str:
    try:
        ZoneInfo(checks.storable(value, key))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"unknown time zone {quoted(value)}; use a name such as Europe/Berlin") from None
    return str(value)
