"""Importing a file that somebody sent."""

from __future__ import annotations

from pathlib import Path

from aforesaid.errors import InvalidInput
from aforesaid.memory import Memory
from aforesaid.portability import Loaded
from aforesaid.store import Progress


async def load_upload(
    memory: Memory,
    file: Path,
    format_name: str,
    *,
    user: str | None,
    space: str,
    dry_run: bool,
    actor: str,
    progress: Progress | None = None,
) -> Loaded:
    """Import an uploaded file. Raises InvalidInput, whose text does not tell where this machine keeps the file."""
    try:
        return await memory.load(
            file, format_name, user=user, space=space, dry_run=dry_run, progress=progress, actor=actor
        )
    except InvalidInput as error:
        raise InvalidInput(str(error).replace(str(file), "the file"), error.field or "body") from error
