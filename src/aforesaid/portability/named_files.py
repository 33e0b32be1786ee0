"""Write attachments to a folder under the names that people gave them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from contextlib import ExitStack
from mimetypes import guess_extension
from pathlib import Path, PurePosixPath
from typing import Final
from unicodedata import category, normalize

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged
from aforesaid.portability.file_streams import telling
from aforesaid.store.attachments import Attachments
from aforesaid.store.unfinished import unfinished

_LONGEST: Final = 120
"""Maximum bytes of a file name in UTF-8, without a number that keeps it apart. File systems allow 255."""
_LONGEST_ENDING: Final = 16
_UNSAFE: Final = re.compile(r'[<>:"|?*\\/]')
"""Characters that no file name may have on some system."""
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that mean devices on Windows."""


class NamedFiles:
    """Writes the bytes of attachments to a new folder, the same bytes once.

    The folder gets its name when everything is in it; it is not made for nothing.
    """

    def __init__(self, source: Attachments | None, folder: Path | None) -> None:
        """Copy from a source; without one, nothing is copied. Without a folder, everything counts as missing."""
        self._source = source
        self._folder = folder
        self._open = ExitStack()
        self._unfinished: Path | None = None
        self._finished = False
        self._names: dict[str, str | None] = {}
        """File names by hash; None for bytes that are not there."""
        self._numbers: dict[str, int] = {}
        """How often each name was used, in small letters."""
        self._unnamed = 0
        if source is not None and folder is not None and folder.exists():
            raise InvalidInput(f"{folder} exists already; nothing was overwritten. Choose another name")

    @property
    def written(self) -> int:
        """Number of files."""
        return sum(name is not None for name in self._names.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """Hashes of the attachments that could not be copied."""
        return tuple(sorted(hash_ for hash_, name in self._names.items() if name is None))

    async def add(self, part: Part) -> str | None:
        """Write the bytes of a part; return the name of the file, or None if its bytes are not there."""
        if part.hash is None or self._source is None:
            return None
        if part.hash not in self._names:
            self._names[part.hash] = await self._write(part, part.hash, self._source)
        return self._names[part.hash]

    async def _write(self, part: Part, name: str, source: Attachments) -> str | None:
        if self._folder is None:
            return None
        try:
            data = await source.read(name)
        except (NotFound, StoreDamaged):
            return None
        chosen = self._choose(part)
        if self._unfinished is None:
            with telling(self._folder):
                self._folder.parent.mkdir(parents=True, exist_ok=True)
                self._unfinished = self._open.enter_context(unfinished(self._folder, folder=True))
        await asyncio.to_thread(_put, self._unfinished / chosen, data)
        return chosen

    def finish(self) -> None:
        """Give the folder its name."""
        if self._unfinished is not None and self._folder is not None:
            with telling(self._folder):
                self._unfinished.rename(self._folder)
            self._finished = True
            self._open.close()

    def discard(self) -> None:
        """Remove all that was written, after a failure."""
        self._open.close()
        if self._finished and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _choose(self, part: Part) -> str:
        wanted = safe_file_name(part.name or "")
        if not wanted:
            self._unnamed += 1
            wanted = f"attachment-{self._unnamed}{guess_extension(part.media_type or '') or ''}"
        path = PurePosixPath(wanted)
        chosen = wanted
        while (seen := chosen.casefold()) in self._numbers:
            # Some file systems do not tell capital letters from small ones.
            self._numbers[wanted.casefold()] += 1
            chosen = f"{path.stem}-{self._numbers[wanted.casefold()]}{path.suffix}"
        self._numbers[seen] = 1
        return chosen


def safe_file_name(name: str) -> str:
    """Return a name that every file system takes and that stays in its folder; an empty text if nothing is left."""
    last = re.split(r"[\\/]", normalize("NFC", name))[-1]
    shown = "".join(each for each in last if category(each) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
    safe = _UNSAFE.sub("_", shown).strip(". \u00a0")
    if _DEVICES.fullmatch(safe):
        safe = f"_{safe}"
    path = PurePosixPath(safe or "_")
    ending = path.suffix if len(path.suffix.encode()) <= _LONGEST_ENDING else ""
    stem = safe.removesuffix(ending).encode()[: _LONGEST - len(ending.encode())].decode(errors="ignore")
    return f"{stem.rstrip('. ')}{ending}" if stem.strip(". ") else ""


def _put(path: Path, data: bytes) -> None:
    with telling(path):
        # Readable by its owner only, because it belongs to messages.
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
