"""When each key was last used."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aforesaid.server.auth.keys import replace_file

_log: Final = logging.getLogger("aforesaid.server")
_WRITE_SECONDS: Final = 60.0
"""Seconds between writes: a key that is in use all the time costs one small file per minute."""


class KeyUse:
    """The time of the last request of each key, in a file next to that of the keys; without a path, in memory.

    A server that is killed loses at most the last minute. Several servers with the same keys keep the newest times.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = None if path is None else path.with_name(f"{path.name}.used")
        self._times: dict[str, datetime] = {}
        self._written = datetime.min.replace(tzinfo=UTC)
        self._changed = False

    def mark(self, key_id: str) -> None:
        """Record that a key is used now."""
        self._times[key_id] = datetime.now(UTC)
        self._changed = True

    @property
    def is_due(self) -> bool:
        """Whether there is something to write and the last write is long enough ago."""
        return self._changed and (datetime.now(UTC) - self._written).total_seconds() >= _WRITE_SECONDS

    def all(self) -> dict[str, datetime]:
        """Return the last use of every key that was used, by its id."""
        self._merge()
        return dict(self._times)

    def write(self) -> None:
        """Write the times to the file. A failure is logged: requests do not depend on it."""
        if not self._changed:
            return
        self._written, self._changed = datetime.now(UTC), False
        if self._path is None:
            return
        self._merge()
        times = {key: at.isoformat(timespec="seconds") for key, at in self._times.items()}
        try:
            replace_file(self._path, json.dumps(times, indent=2))
        except OSError as error:
            _log.warning("the last use of keys could not be written to %s: %s", self._path, error)

    def _merge(self) -> None:
        """Take over newer times of other processes."""
        if self._path is None:
            return
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            times = {str(key): datetime.fromisoformat(at) for key, at in found.items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, AttributeError) as error:
            # It says nothing about access, so it may be written anew.
            _log.warning("the last use of keys in %s cannot be read: %s", self._path, error)
            return
        for key, at in times.items():
            if key not in self._times or self._times[key] < at:
                self._times[key] = at
