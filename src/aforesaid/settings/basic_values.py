"""Values that configuration keys can have besides texts and numbers: secrets, and models."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WITHOUT: Final = "none"
"""At the end of a chain: continue without a model."""


class Secret(str):
    """A string that is not printed by accident, in logs, tracebacks or `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'…'"


@dataclass(frozen=True, slots=True)
class Choice:
    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


_SHOWN: Final = 4
_LONG_ENOUGH: Final = 16
"""Minimum length of a secret whose last four characters are shown."""

_PASSWORD: Final = re.compile(r"(://[^/@\s:]*:)[^@\s]+@")


def mask(secret: str) -> str:
    """Return a masked secret that shows its last four characters."""
    return "…" + (secret[-_SHOWN:] if len(secret) >= _LONG_ENOUGH else "")


def mask_url(address: str) -> str:
    return _PASSWORD.sub(r"\1…@", address)


def as_key(text: str) -> Secret | None:
    """Return a key, or None if it is not valid in an HTTP header."""
    return Secret(text) if text and text.isascii() and text.isprintable() and " " not in text else None


def read_key(path: Path) -> tuple[Secret | None, str]:
    """Read a key from a file that contains nothing else. Return it, or None and the reason."""
    try:
        key = as_key(path.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError) as error:
        return None, f"it cannot be read ({error})"
    return key, "" if key else "it must contain a key and nothing else"


def read_password(path: Path) -> tuple[Secret | None, str]:
    """Read a password from a file that contains nothing else. Return it, or None and the reason."""
    try:
        password = Secret(path.read_text(encoding="utf-8").rstrip("\r\n"))
    except (OSError, UnicodeDecodeError) as error:
        return None, f"it cannot be read ({error})"
    return password or None, "" if password else "it is empty"


def open_to_others(path: Path) -> bool:
    """Return whether other users of this machine can read a file."""
    if os.name != "posix":
        return False
    try:
        return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False
