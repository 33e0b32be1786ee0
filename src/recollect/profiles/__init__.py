"""Profiles: named sets of policies, kept as data."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from recollect.domain import checks
from recollect.errors import InvalidInput

DEFAULT: Final = "default"
BUILT_IN: Final = (DEFAULT, "archive", "community", "account", "companion", "session")


_LARGEST: Final = {"session_minutes": 10 * 365 * 24 * 60, "message_bytes": 16 * 1024 * 1024}


@dataclass(frozen=True, slots=True)
class Profile:
    """What a memory does by itself. The keys of a profile file are the fields of this class."""

    session_minutes: int
    """A session closes after so many minutes of silence."""
    message_bytes: int
    """The longest text of a message, in bytes of UTF-8."""

    @property
    def session_silence(self) -> int:
        """The silence that closes a session, in microseconds."""
        return self.session_minutes * 60 * 1_000_000


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
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"the profile {path} cannot be read: {error}") from error
    return _extend(keys, f"the profile {path}")


def _built_in(name: str) -> Profile:
    text = (files("recollect.profiles") / f"{name}.toml").read_text(encoding="utf-8")
    return Profile(**tomllib.loads(text))


def _extend(keys: Mapping[str, Any], where: str) -> Profile:
    base = keys.get("extends", DEFAULT)
    if base not in BUILT_IN:
        raise InvalidInput(f"{where} extends {base!r}, which is not one of {', '.join(BUILT_IN)}")
    start = _built_in(base)
    names = [field.name for field in fields(Profile)]
    for key in keys:
        if key not in names and key != "extends":
            raise InvalidInput(f"{where} has the unknown key {key!r}" + _nearest(str(key), names))
    values = {}
    for name in names:
        what = f"{where}: {name}"
        value = checks.at_least(keys.get(name, getattr(start, name)), 1, what)
        values[name] = checks.at_most(value, _LARGEST[name], what)
    return Profile(**values)


def _nearest(wrong: str, known: list[str] | tuple[str, ...]) -> str:
    close = get_close_matches(wrong, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
