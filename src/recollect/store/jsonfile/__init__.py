"""One readable file, `memory.json`: users, messages and summaries as documented, and after them all else."""

from __future__ import annotations

from recollect.store.jsonfile.layout import JsonFile

__all__ = ["JsonFile"]
