"""Find the configuration file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aforesaid.domain import checks
from aforesaid.errors import InvalidInput

FILE: Final = "aforesaid.toml"
VARIABLE: Final = "AFORESAID_CONFIG"


def find_file(path: str | os.PathLike[str] | None, env: Mapping[str, str]) -> Path | None:
    """Return the configuration file: the named one, or one in the current folder or the platform's folder."""
    if path is not None:
        return _named(checks.file_path(path, "the configuration file"), "")
    if chosen := env.get(VARIABLE):
        return _named(checks.file_path(chosen, VARIABLE), f" ({VARIABLE})")
    here = Path.cwd() / FILE
    if here.is_file():
        return _trusted(here)
    usual = usual_place(env)
    return usual if usual.is_file() else None


def usual_place(env: Mapping[str, str]) -> Path:
    """Return the platform's path of a user's configuration file."""
    if sys.platform == "win32":
        base = Path(env.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(env.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "aforesaid" / FILE


def _named(path: Path, by: str) -> Path:
    path = path.expanduser().absolute()
    if not path.is_file():
        raise InvalidInput(f"there is no configuration file at {path}{by}")
    return path


def _trusted(here: Path) -> Path:
    """Reject a file of another user in the current folder: it could send messages to that user's server."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return here
    if here.stat().st_uid not in (0, os.geteuid()):
        raise InvalidInput(f"{here} belongs to another user; if you trust it, set {VARIABLE}={here}")
    return here
