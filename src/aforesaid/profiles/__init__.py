"""Profiles: named sets of policies, kept as data."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, tzinfo
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.domain import checks
from aforesaid.domain.memory import CATEGORIES
from aforesaid.errors import InvalidInput
from aforesaid.profiles.recipe import Recipe, read_recipe

DEFAULT: Final = "default"
BUILT_IN: Final = (DEFAULT, "archive", "community", "account", "companion", "session")

Policy: TypeAlias = Literal["tree", "rolling", "calendar", "tiers", "none"]
"""How a memory summarises by itself."""

_MOST_MESSAGES: Final = 10_000
_MOST_CHARACTERS: Final = 4_000
_MOST_DAYS: Final = 365 * 1_000
_LARGEST: Final = {
    "session_minutes": 10 * 365 * 24 * 60,
    "message_bytes": 16 * 1024 * 1024,
    "tree_turns": 500,
    "tree_level": 100,
    "tree_active": 1_000,
    "rolling_messages": _MOST_MESSAGES,
    "rolling_tokens": 1_000_000,
    "rolling_keep": _MOST_MESSAGES,
    "rolling_step": _MOST_MESSAGES,
    "today_minutes": 24 * 60,
    "summary_days": 31,
    "short_term": _MOST_MESSAGES,
    "mid_term": _MOST_MESSAGES,
    "history_hours": 24 * 365,
    "summary_characters": _MOST_CHARACTERS,
    "day_characters": _MOST_CHARACTERS,
    "week_characters": _MOST_CHARACTERS,
    "extract_exchanges": 50,
    "portrait_characters": _MOST_CHARACTERS,
}
_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {"summaries": get_args(Policy)}
"""What may stand where a word is wanted."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a memory does by itself. The keys of a profile file are the fields of this class."""

    session_minutes: int
    """A session closes after so many minutes of silence."""
    message_bytes: int
    """The longest text of a message, in bytes of UTF-8."""
    summaries: Policy
    """How it summarises by itself."""
    summary_characters: int
    """The longest text of a summary."""
    topic_changes: bool
    """Whether a change of topic is a reason to summarise."""
    tree_turns: int
    """tree: so many user turns make a summary."""
    tree_level: int
    """tree: so many summaries of a level may be active before they are folded, and so many are folded at a time."""
    tree_active: int
    """tree: so many summaries may be active in all."""
    rolling_messages: int
    """rolling: the first summary at so many messages …"""
    rolling_tokens: int
    """… or so many estimated tokens."""
    rolling_keep: int
    """rolling: the newest messages, which are never covered."""
    rolling_step: int
    """rolling: a new summary after so many more messages."""
    day_characters: int
    """calendar: about so many characters for a day of a person."""
    week_characters: int
    """calendar: about so many characters for the six days before today."""
    summary_days: int
    """calendar: today and the days before it that are remembered as a whole."""
    today_minutes: int
    """calendar: today is summarised at most so often."""
    time_zone: str
    """calendar: where a day begins and ends."""
    time_zones: Mapping[str, str]
    """calendar: the same for single spaces."""
    short_term: int
    """tiers: the newest messages, and how many new ones make a new history context."""
    mid_term: int
    """tiers: the messages before them."""
    history_hours: int
    """tiers: the history context is made anew after so long."""
    extract: bool
    """Whether it learns from what is said: memories of single things."""
    extract_exchanges: int
    """Maximum exchanges per call to a model, when there is a backlog."""
    portrait_characters: int
    """About so many characters for a portrait."""
    keep_days: Mapping[str, int]
    """For each category of memories: it expires so many days after its event, or after it was said."""

    persona: str
    """The persona of a bot, part of the prompt; empty for none."""
    context: Recipe
    """What a context holds."""

    @property
    def session_silence(self) -> int:
        """The silence that closes a session, in microseconds."""
        return self.session_minutes * 60 * 1_000_000

    def zone(self, space: str) -> tzinfo:
        """Return the time zone that decides what a day is in a space."""
        return _zone_of(self.time_zones.get(space, self.time_zone))


def load_profile(profile: str | os.PathLike[str] | Mapping[str, Any]) -> Profile:
    """Return a profile by the name of a built-in one, the path of a TOML file, or its keys.

    A file or a mapping starts from the built-in profile that its key `extends` names (`default` without it).
    """
    if isinstance(profile, Mapping):
        return _extend(profile, "the profile")
    if not isinstance(profile, str | os.PathLike):
        raise InvalidInput(f"the profile must be a name, a path or a mapping, not {type(profile).__name__}")
    if profile in BUILT_IN:
        return _built_in(str(profile))
    path = Path(checks.storable(str(profile), "the profile"))
    if path.suffix != ".toml" and not path.exists():
        raise InvalidInput(
            f"there is no profile {str(profile)!r}; use one of {', '.join(BUILT_IN)}, or the path of a .toml file"
            + _nearest(str(profile), BUILT_IN)
        )
    try:
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"the profile {path} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"the profile {path} is not valid TOML: {error}") from error
    return _extend(keys, f"the profile {path}")


def _built_in(name: str) -> Profile:
    """Return a built-in profile. Its file names only what differs from the default."""
    folder = files("aforesaid.profiles")
    keys = tomllib.loads((folder / f"{DEFAULT}.toml").read_text(encoding="utf-8"))
    own = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    usual = read_recipe(keys["context"], None, "context")
    recipe = usual if name == DEFAULT else read_recipe(own.get("context", {}), usual, "context")
    return Profile(**keys | own | {"context": recipe})


def _extend(keys: Mapping[str, Any], where: str) -> Profile:
    base = keys.get("extends", DEFAULT)
    if base not in BUILT_IN:
        raise InvalidInput(f"{where} extends {base!r}, which is not one of {', '.join(BUILT_IN)}")
    start = _built_in(base)
    names = [field.name for field in fields(Profile)]
    for key in keys:
        if key not in names and key != "extends":
            raise InvalidInput(f"{where} has the unknown key {key!r}" + _nearest(str(key), names))
    values: dict[str, Any] = {}
    for name in names:
        what, value = f"{where}: {name}", keys.get(name, getattr(start, name))
        values[name] = read_recipe(value, start.context, what) if name == "context" else _checked(name, value, what)
    return Profile(**values)


def _checked(name: str, value: object, what: str) -> Any:  # noqa: ANN401 - as many types as there are keys
    if name in _LARGEST:
        return checks.at_most(checks.at_least(value, 1, what), _LARGEST[name], what)
    if name in _TEXTS:
        if value not in _TEXTS[name]:
            raise InvalidInput(f"{what} must be one of {', '.join(_TEXTS[name])}, not {value!r}")
        return value
    if name == "time_zones":
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{what} must have a time zone for each space, not {value!r}")
        return {checks.identifier(space, what): _zone(zone, what) for space, zone in value.items()}
    if name == "keep_days":
        return _keep_days(value, what)
    if name == "time_zone":
        return _zone(value, what)
    if name == "persona":
        return checks.storable(value, what)
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} must be true or false, not {value!r}")
    return value


def _keep_days(value: object, what: str) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} must have a number of days for each category, not {value!r}")
    for category in value:
        if category not in CATEGORIES:
            raise InvalidInput(f"{what} has the unknown category {category!r}" + _nearest(str(category), CATEGORIES))
    return {
        category: checks.at_most(checks.at_least(days, 1, what), _MOST_DAYS, what) for category, days in value.items()
    }


def _zone(value: object, what: str) -> str:
    try:
        name = checks.storable(value, what)
        _zone_of(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"{what} is not a time zone such as Europe/Berlin: {value!r}") from None
    return name


def _zone_of(name: str) -> tzinfo:
    # Known also where the system has no list of time zones.
    return UTC if name == "UTC" else ZoneInfo(name)


def _nearest(wrong: str, known: list[str] | tuple[str, ...]) -> str:
    close = get_close_matches(wrong, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
