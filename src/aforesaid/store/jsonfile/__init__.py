"""One readable file, `memory.json`: users, messages and summaries as documented, and after them all else."""

from __future__ import annotations

from aforesaid.store.jsonfile.layout import JsonFile

__all__ = ["JsonFile"]
