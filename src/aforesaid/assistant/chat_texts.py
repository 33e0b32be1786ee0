"""Formats values as texts for a chat."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from aforesaid.domain.checks import to_zone
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.report import MemoryStatus
from aforesaid.errors import (
    AforesaidError,
    InvalidInput,
    ModelError,
    NoModel,
    NotFound,
    SourcesChanged,
    SpendingLimit,
)
from aforesaid.profiles.recipe import POLICIES

if TYPE_CHECKING:
    from aforesaid.facts import ForgetResult, RememberResult
    from aforesaid.facts.people import KnownPerson

_SHOWN: Final = 20
_FORGOTTEN: Final = 5
"""Maximum forgotten statements that are listed."""
_STORAGES: Final = {"sqlite": "SQLite", "json": "JSON file", "files": "account folders", "postgresql": "PostgreSQL"}
_OPERATOR: Final = "Whoever runs this bot finds the reason in its log."
_log: Final = logging.getLogger("aforesaid.assistant")


def welcome(*, speaks: bool) -> str:
    """Return the welcome message: what the bot does, and three things to try."""
    how = "" if speaks else " No language model is connected, so I answer with what you told me, in your own words."
    return (
        f"Hello! I remember what you tell me and find it again, also after months.{how} Three things to try:\n"
        "1. Tell me something: My sister gets married on 12 June.\n"
        "2. Ask me about it later: When is the wedding?\n"
        "3. Have me remind you: Remind me tomorrow at 9 to call mum."
    )


def failure(error: AforesaidError) -> str:
    """Return the message about an error for a person, safe in public channels; the details go to the log.

    What is wrong with their own words is said as it is. What a provider or a disk reports is the operator's business.
    """
    if isinstance(error, InvalidInput | NotFound | SourcesChanged | SpendingLimit | NoModel):
        return f"{error}."
    _log.warning("a failure was reported in a chat: %s", error)
    if isinstance(error, ModelError):
        return f"The language model could not answer. {_OPERATOR}"
    return f"My memory cannot be reached right now. {_OPERATOR}"


def storage(backend: str) -> str:
    return _STORAGES.get(backend.partition(" ")[0], backend)


def rhythm(found: MemoryStatus) -> str:
    return POLICIES[found.policy].rhythm.format(threshold=found.threshold)


def status(found: MemoryStatus) -> str:
    return "\n".join(
        [
            f"Memory: {'enabled' if found.enabled else 'disabled'}",
            f"Storage: {storage(found.storage)}",
            f"Threshold: {found.threshold} messages" if found.threshold else f"Threshold: {rhythm(found)}",
            f"Messages since the last summary: {found.since_last}",
            f"Messages: {found.messages} in all, {found.archived} archived",
            f"Active summaries: {found.active_summaries}",
            f"Highest level: {found.highest_level}",
        ]
    )


def remembered(found: RememberResult) -> str:
    if found.outcome == "quarantined":
        return f"That is quarantined until somebody approves it: {found.reason}"
    return "I will remember that." if found.outcome == "stored" else "I knew that already."


def forgotten(found: ForgetResult, what: str) -> str:
    """Return the outcome of forgetting: what is gone, not what was asked for."""
    if not found.found:
        return f"I knew nothing about that: {what}"
    gone = list(dict.fromkeys([*found.sentences, *(memory.text for memory in found.memories)]))
    more = f"; and {len(gone) - _FORGOTTEN} more" if len(gone) > _FORGOTTEN else ""
    return f"I have forgotten: {'; '.join(gone[:_FORGOTTEN])}{more}"


def forget_everything(who: str = "you") -> str:
    """Say how everything is erased. A request in a few words does not do it: it may be a slip, or misunderstood."""
    if who == "you":
        return "To have everything erased that I know about you, use /forget_me."
    how = f"Only {who} can have everything erased, with /forget_me."
    return f"I forget single things: tell me what to forget about {who}. {how}"


def memories(found: Sequence[MemoryRecord]) -> str:
    if not found:
        return "Nothing is remembered yet."
    lines = [f"[{memory.category.upper()}] {memory.text} ({memory.importance}/10)" for memory in found[:_SHOWN]]
    more = len(found) - _SHOWN
    return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])


def timeline(found: Sequence[MemoryRecord], zone: tzinfo) -> str:
    """Return what happened, one event per line; of many, the last ones."""
    if not found:
        return "I know of no dated events. Tell me when something happens: We moved to Berlin on 3 May."
    lines = [f"… {len(found) - _SHOWN} earlier"] if len(found) > _SHOWN else []
    for memory in found[-_SHOWN:]:
        happened = memory.happened
        day = "" if happened is None else f"{to_zone(happened.start, zone):%Y-%m-%d}  "
        lines.append(f"{day}{memory.text}")
    return "\n".join(lines)


def people(found: Sequence[KnownPerson], asked: str) -> str:
    """Return people, one per line; what is known about one person, if one was asked for."""
    if not found:
        return f"I know nobody called {asked}." if asked else "You have not told me about anybody yet."
    if not asked:
        return "\n".join(_named(person) for person in found[:_SHOWN])
    blocks = []
    for person in found[:_SHOWN]:
        first, last = person.first_mentioned, person.last_mentioned
        seen = f"First mentioned on {first:%Y-%m-%d}, last on {last:%Y-%m-%d}."
        blocks.append("\n".join([_named(person), *(memory.text for memory in person.memories[:_SHOWN]), seen]))
    return "\n\n".join(blocks)


def _named(person: KnownPerson) -> str:
    return person.name if person.relation in (None, person.name) else f"{person.name}, your {person.relation}"


def hits(found: Sequence[Hit], *, explained: bool = False) -> str:
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
