"""Uploaded files between the preview of an import and its end."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final

from aforesaid.errors import AforesaidError, NotFound
from aforesaid.portability import Loaded

_MOST: Final = 8
"""Maximum uploads that wait for a decision. The oldest ones are dropped."""
_SECONDS: Final = 3600.0
"""An upload that nobody decided about is dropped after this time."""


@dataclass(slots=True)
class PendingImport:
    """An uploaded file, and how far its import has got."""

    token: str
    folder: Path
    file: Path
    actor: str
    """Who uploaded it. Nobody else may import it."""
    format: str
    user: str | None
    space: str
    preview: Loaded | None = None
    running: bool = False
    phase: str = ""
    done: int = 0
    total: int = 0
    report: Loaded | None = None
    failure: AforesaidError | None = None
    began: float = field(default_factory=monotonic)

    def progress(self, phase: str, done: int, total: int) -> None:
        """Note how far the import has got."""
        self.phase, self.done, self.total = phase, done, total

    @property
    def finished(self) -> bool:
        """Whether the import ended, well or not."""
        return self.report is not None or self.failure is not None

    def remove(self) -> None:
        """Delete the uploaded file."""
        shutil.rmtree(self.folder, ignore_errors=True)


class PendingImports:
    """The uploads of a server, by token. They are gone when the server stops."""

    def __init__(self) -> None:
        """Start with none."""
        self._known: dict[str, PendingImport] = {}

    def begin(self, name: str, *, actor: str, format_name: str, user: str | None, space: str) -> PendingImport:
        """Return a place for an upload, in a folder of its own."""
        self._drop_old()
        folder = Path(tempfile.mkdtemp(prefix="aforesaid-import-"))
        made = PendingImport(secrets.token_urlsafe(16), folder, folder / name, actor, format_name, user, space)
        self._known[made.token] = made
        return made

    def of(self, token: str, actor: str) -> PendingImport:
        """Return an upload of somebody. Raises NotFound."""
        found = self._known.get(token)
        if found is None or found.actor != actor:
            raise NotFound("this upload is not here any more; upload the file again")
        return found

    def drop(self, pending: PendingImport) -> None:
        """Forget an upload and delete its file."""
        self._known.pop(pending.token, None)
        pending.remove()

    def close(self) -> None:
        """Delete the files of all uploads."""
        for each in list(self._known.values()):
            self.drop(each)

    def _drop_old(self) -> None:
        waiting = [each for each in self._known.values() if not each.running or each.finished]
        for each in waiting[: max(len(waiting) - _MOST + 1, 0)]:
            self.drop(each)
        for each in waiting:
            if each.began + _SECONDS < monotonic():
                self.drop(each)
