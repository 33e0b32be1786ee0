"""Profiles: named sets of policies, loaded from TOML files."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, tzinfo
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.domain import checks
from aforesaid.domain.memory import CATEGORIES
from aforesaid.errors import InvalidInput, quoted
from aforesaid.profiles.recipe import Policy, Recipe, read_recipe

__all__ = ["BUILT_IN", "DEFAULT", "Policy", "Profile", "load_profile"]

DEFAULT: Final = "default"
BUILT_IN: Final = (DEFAULT, "archive", "community", "account", "companion", "session")

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
"""The allowed values of text keys."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The automatic behaviour of a memory. The keys of a profile file are the fields of this class."""

    session_minutes: int
    """Minutes of silence that close a session."""
    message_bytes: int
    """Maximum size of a message's text, in bytes of UTF-8."""
    summaries: Policy
    """The policy of automatic summaries."""
    summary_characters: int
    """Maximum size of a summary's text."""
    topic_changes: bool
    """Whether to summarise when the topic changes."""
    tree_turns: int
    """tree: summarise after this many user turns."""
    tree_level: int
    """tree: maximum number of active summaries per level, and how many are merged at a time."""
    tree_active: int
    """tree: maximum number of active summaries on all levels."""
    rolling_messages: int
    """rolling: number of messages before the first summary …"""
    rolling_tokens: int
    """… or number of estimated tokens."""
    rolling_keep: int
    """rolling: number of newest messages that are never summarised."""
    rolling_step: int
    """rolling: number of new messages before the next summary."""
    day_characters: int
    """calendar: approximate characters per person and day."""
    week_characters: int
    """calendar: approximate characters for the six days before today."""
    summary_days: int
    """calendar: number of days, including today, that are summarised day by day."""
    today_minutes: int
    """calendar: minimum time between two summaries of today."""
    time_zone: str
    """calendar: the time zone of days."""
    time_zones: Mapping[str, str]
    """calendar: time zones of single spaces."""
    short_term: int
    """tiers: number of newest messages, and of new messages before the history context is rebuilt."""
    mid_term: int
    """tiers: number of messages before the newest ones."""
    history_hours: int
    """tiers: maximum age of the history context."""
    extract: bool
    """Whether to extract memories from messages."""
    extract_exchanges: int
    """Maximum exchanges per call to a model, when there is a backlog."""
    portrait_characters: int
    """Approximate characters of a portrait."""
    keep_days: Mapping[str, int]
    """Days after which a memory of a category expires, counted from its event, or from when it was said."""

    persona: str
    """A bot's persona, part of the prompt; empty for none."""
    context: Recipe
    """The recipe of a context."""

    @property
    def session_silence(self) -> int:
        """The silence that closes a session, in microseconds."""
        return self.session_minutes * 60 * 1_000_000

    def zone(self, space: str) -> tzinfo:
        """Return the time zone that decides what a day is in a space."""
        return _zone_of(self.time_zones.get(space, self.time_zone))


def load_profile(profile: str | os.PathLike[str] | Mapping[str, Any]) -> Profile:
    """Return a profile: a built-in one by name, a TOML file by path, or a mapping of keys. Raises InvalidInput.

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
            f"there is no profile {quoted(str(profile))}; use one of {', '.join(BUILT_IN)}, or the path of a .toml file"
            + checks.did_you_mean(profile, BUILT_IN)
        )
    try:
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"the profile {path} cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"the profile {path} is not valid TOML: {error}") from error
    return _extend(keys, f"the profile {path}")


@cache
def _built_in(name: str) -> Profile:
    """Return a built-in profile. Its file contains only the differences from `default`."""
    folder = files("aforesaid.profiles")
    keys = tomllib.loads((folder / f"{DEFAULT}.toml").read_text(encoding="utf-8"))
    own = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    usual = read_recipe(keys["context"], None, "context")
    recipe = usual if name == DEFAULT else read_recipe(own.get("context", {}), usual, "context")
    return Profile(**keys | own | {"context": recipe})


def _extend(keys: Mapping[str, Any], where: str) -> Profile:
    base = keys.get("extends", DEFAULT)
    if base not in BUILT_IN:
        raise InvalidInput(f"{where} extends {quoted(base)}, which is not one of {', '.join(BUILT_IN)}")
    start = _built_in(base)
    names = [field.name for field in fields(Profile)]
    for key in keys:
        if key not in names and key != "extends":
            raise InvalidInput(f"{where} has the unknown key {quoted(key)}" + checks.did_you_mean(key, names))
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
            raise InvalidInput(f"{what} must be one of {', '.join(_TEXTS[name])}, not {quoted(value)}")
        return value
    if name == "time_zones":
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{what} must have a time zone for each space, not {quoted(value)}")
        return {checks.identifier(space, what): _zone(zone, what) for space, zone in value.items()}
    if name == "keep_days":
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{what} must have a number of days for each category, not {quoted(value)}")
        for category in value:
            if category not in CATEGORIES:
                raise InvalidInput(
                    f"{what} has the unknown category {quoted(category)}" + checks.did_you_mean(category, CATEGORIES)
                )
        return {
            category: checks.at_most(checks.at_least(days, 1, what), _MOST_DAYS, what)
            for category, days in value.items()
        }
    if name == "time_zone":
        return _zone(value, what)
    if name == "persona":
        return checks.storable(value, what)
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} must be true or false, not {quoted(value)}")
    return value


def _zone(value: object, what: str) -> str:
    try:
        name = checks.storable(value, what)
        _zone_of(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"{what} is not a time zone such as Europe/Berlin: {quoted(value)}") from None
    return name


def _zone_of(name: str) -> tzinfo:
    # UTC works even if the system has no time zone database.
    return UTC if name == "UTC" else ZoneInfo(name)
