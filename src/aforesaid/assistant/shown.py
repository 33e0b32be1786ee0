"""Values as texts for a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.report import MemoryStatus

if TYPE_CHECKING:
    from aforesaid.digest import HistoryContext
    from aforesaid.facts import Forgotten, Remembered

_SHOWN: Final = 20


def status(found: MemoryStatus) -> str:
    """Return the facts of `/summary_status`."""
    return "\n".join(
        [
            f"MemoryRecord: {'enabled' if found.enabled else 'disabled'}",
            f"Storage: {found.storage}",
            f"Threshold: {found.threshold} messages",
            f"Messages since the last summary: {found.since_last}",
            f"Messages: {found.messages} in all, {found.archived} archived",
            f"Active summaries: {found.active_summaries}",
            f"Highest level: {found.highest_level}",
        ]
    )


def history(found: HistoryContext) -> str:
    """Return the analysis of a history."""
    return found.text


def remembered(found: Remembered) -> str:
    """Return what came of remembering."""
    if found.outcome == "quarantined":
        return f"That is kept apart until somebody approves it: {found.reason}"
    return "I will remember that." if found.outcome == "stored" else "I knew that already."


def forgotten(found: Forgotten, what: str) -> str:
    """Return whether it was found."""
    return f"I have forgotten that: {what}" if found.found else f"I knew nothing about that: {what}"


def memories(found: Sequence[MemoryRecord]) -> str:
    """Return memories, one in each line."""
    if not found:
        return "Nothing is remembered yet."
    lines = [f"[{memory.category.upper()}] {memory.text} ({memory.importance}/10)" for memory in found[:_SHOWN]]
    more = len(found) - _SHOWN
    return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])


def hits(found: Sequence[Hit], *, explained: bool = False) -> str:
    """Return what a search found, one in each line."""
    if not found:
        return "Nothing found."
    lines = []
    for hit in found:
        speaker = "" if hit.message is None else f"{hit.message.name or hit.message.author}: "
        kind = "" if hit.kind == "message" else f"{hit.kind} {hit.id}: "
        lines.append(f"{hit.at:%Y-%m-%d}  {kind}{speaker}{hit.text}")
        if explained:
            lines.append(f"    {hit.explain()}")
    return "\n".join(lines)
