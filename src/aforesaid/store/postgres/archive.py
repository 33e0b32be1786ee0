"""Archiving: a summary takes the place of what it stands for, and can give it back."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from aforesaid.domain.change import Archive, RollBack
from aforesaid.domain.clock import now
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import CONTINUED, Summary
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store import records
from aforesaid.store.hashed import hashed
from aforesaid.store.postgres import rows
from aforesaid.store.postgres.unit import Unit
from aforesaid.text.terms import terms

_MESSAGES: Final = """
SELECT count(*), count(*) FILTER (WHERE active AND chunk IS NULL), count(*) FILTER (WHERE role = 'user'),
       min(seq), max(seq), min(at), max(at)
  FROM log WHERE space = $1 AND owner = $2 AND seq = ANY($3::bigint[])
"""
_TAKE_MESSAGES: Final = "UPDATE log SET active = false, chunk = $2 WHERE space = $1 AND seq = ANY($3::bigint[])"
_COUNT_TAKEN: Final = """
UPDATE person SET last_chunk = $3, archived = archived + $4, open_turns = open_turns - $5 WHERE space = $1 AND name = $2
"""
_SUMMARIES: Final = """
SELECT count(*), count(*) FILTER (WHERE active AND reach = 'chunks'), max(level), min(first_seq), max(last_seq),
       sum(messages)::bigint, min(began_at), max(ended_at)
  FROM summary WHERE space = $1 AND owner = $2 AND id = ANY($3::bigint[])
"""
_CHUNKS: Final = """
SELECT array_agg(c ORDER BY c) FROM summary y, unnest(y.chunks) c WHERE y.space = $1 AND y.id = ANY($2::bigint[])
"""
_TAKE_SUMMARIES: Final = "UPDATE summary SET active = false WHERE space = $1 AND id = ANY($2::bigint[])"
_THREAD: Final = "INSERT INTO thread (space, name, revision) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_SOURCES: Final = "INSERT INTO summary_source (space, summary, source) SELECT $1, $2, unnest($3::bigint[])"
_STANDS_ON_IT: Final = """
SELECT y.id FROM summary_source x JOIN summary y ON y.space = x.space AND y.id = x.summary
 WHERE x.space = $1 AND x.source = $2 AND NOT y.rolled_back
"""
_IN_CHUNK: Final = """
SELECT count(*), count(*) FILTER (WHERE role = 'user') FROM log WHERE space = $1 AND owner = $2 AND chunk = $3
"""
_GIVE_MESSAGES_BACK: Final = """
UPDATE log SET active = true, chunk = NULL WHERE space = $1 AND owner = $2 AND chunk = $3
"""
_COUNT_GIVEN_BACK: Final = """
UPDATE person SET archived = archived - $3, open_turns = open_turns + $4 WHERE space = $1 AND name = $2
"""
_GIVE_SUMMARIES_BACK: Final = """
UPDATE summary SET active = true
 WHERE space = $1 AND id IN (SELECT source FROM summary_source WHERE space = $1 AND summary = $2)
"""
_ROLLING_BACK: Final = """
SELECT kind, level, chunks, reach, replaces, replaced, rolled_back FROM summary WHERE space = $1 AND id = $2 AND owner = $3
"""
_GIVE_VERSION_BACK: Final = "UPDATE summary SET active = true, replaced = false WHERE space = $1 AND id = $2"
_ROLLED_BACK: Final = "UPDATE summary SET active = false, rolled_back = true WHERE space = $1 AND id = $2"
_LAST_CHUNK: Final = "SELECT last_chunk FROM person WHERE space = $1 AND name = $2"


class _Covers(NamedTuple):
    level: int
    chunks: list[int]
    first_seq: int
    last_seq: int
    messages: int
    began_at: int
    ended_at: int


async def store_summary(unit: Unit, step: Archive) -> Summary:
    """Store the summary and archive its sources."""
    draft, scope = step.draft, step.draft.scope
    await unit.expect_owner(scope)
    covers = await (
        _take_messages(unit, scope, draft.messages) if draft.messages else _take_summaries(unit, scope, draft.summaries)
    )
    number = insert(
        unit,
        scope,
        draft.summaries,
        {
            "kind": draft.kind,
            "text": draft.text,
            **covers._asdict(),
            "fresh_seq": covers.first_seq,
            "model": draft.model,
            "prompt": draft.prompt,
            "created_at": draft.created_at or now(),
            "quality": records.quality_text(draft.quality),
        },
    )
    unit.audit(scope, step.actor, "archive", f"summary {number}, level {covers.level}, chunks {covers.chunks}")
    return await read(unit, scope.space, number)


async def roll_back(unit: Unit, step: RollBack) -> Summary:
    """Take back what a summary did: the version before it, or else its sources, are active again."""
    scope, number = step.scope, step.summary
    await unit.expect_owner(scope)
    found = await unit.first(_ROLLING_BACK, scope.space, number, scope.user)
    if found is None:
        raise NotFound(f"{quoted(scope.user)} has no summary {number}")
    _, level, chunks, reach, replaces, replaced, rolled_back = found
    if rolled_back:
        raise SourcesChanged(f"summary {number} has been rolled back already")
    if replaced:
        raise SourcesChanged(f"summary {number} has a newer version; roll that one back first")
    above = await unit.value(_STANDS_ON_IT, scope.space, number)
    if above is not None:
        raise SourcesChanged(f"summary {above} stands on summary {number}; roll that one back first")
    if reach == "chunks" and level == 1 and replaces is None:
        (chunk,) = chunks
        if not (await unit.one(_IN_CHUNK, scope.space, scope.user, chunk))[0]:
            raise SourcesChanged(f"the messages below summary {number} have been removed, as old as they were")
    await undo(unit, scope, number)
    unit.audit(scope, step.actor, "roll_back", f"summary {number}, level {level}, chunks {chunks}")
    return await read(unit, scope.space, number)


async def undo(unit: Unit, scope: Scope, number: int) -> None:
    """Mark a summary as rolled back; the version before it, or else its sources, are active again."""
    later = unit.later
    kind, level, chunks, reach, replaces, _, _ = await unit.one(_ROLLING_BACK, scope.space, number, scope.user)
    if replaces is not None:
        later(_GIVE_VERSION_BACK, scope.space, replaces)
    elif reach == "chunks" and level == 1:
        (chunk,) = chunks
        messages, turns = await unit.one(_IN_CHUNK, scope.space, scope.user, chunk)
        later(_GIVE_MESSAGES_BACK, scope.space, scope.user, chunk)
        later(_COUNT_GIVEN_BACK, scope.space, scope.user, messages, turns)
    elif reach == "chunks" or kind in CONTINUED:
        later(_GIVE_SUMMARIES_BACK, scope.space, number)
    later(_ROLLED_BACK, scope.space, number)


def insert(unit: Unit, scope: Scope, sources: tuple[int, ...], values: dict[str, Any], *, least: int = 0) -> int:
    """Store a new summary of a user, with what it was made of, and return its number, which is at least `least`."""
    numbers = unit.numbers[scope.space]
    numbers.summary = max(numbers.summary + 1, least)
    row = {
        "space": scope.space,
        "id": numbers.summary,
        "owner": scope.user,
        "thread": scope.thread,
        "terms": hashed(terms(values["text"])),
        **values,
    }
    unit.later(_THREAD, scope.space, scope.thread, numbers.first_revision)
    places = ", ".join(f"${place}" for place in range(1, len(row) + 1))
    unit.later(f"INSERT INTO summary ({', '.join(row)}) VALUES ({places})", *row.values())
    if sources:
        unit.later(_SOURCES, scope.space, numbers.summary, list(sources))
    return numbers.summary


async def read(unit: Unit, space: str, number: int) -> Summary:
    """Return a summary as it is now."""
    return rows.summary(await unit.one(f"{rows.SUMMARY} WHERE y.space = $1 AND y.id = $2", space, number))


async def _take_messages(unit: Unit, scope: Scope, sources: tuple[int, ...]) -> _Covers:
    wanted = list(sources)
    [counted], [(last_chunk,)] = await unit.together(
        (_MESSAGES, (scope.space, scope.user, wanted)), (_LAST_CHUNK, (scope.space, scope.user))
    )
    known, free, turns, first, last, began, ended = counted
    if known != len(sources):
        raise NotFound("a message to be archived is not one of this user's")
    if free != len(sources):
        raise SourcesChanged("a message to be archived is archived already")
    chunk = last_chunk + 1
    unit.later(_TAKE_MESSAGES, scope.space, chunk, wanted)
    unit.later(_COUNT_TAKEN, scope.space, scope.user, chunk, len(sources), turns)
    return _Covers(1, [chunk], first, last, len(sources), began, ended)


async def _take_summaries(unit: Unit, scope: Scope, sources: tuple[int, ...]) -> _Covers:
    wanted = list(sources)
    [counted], [(chunks,)] = await unit.together(
        (_SUMMARIES, (scope.space, scope.user, wanted)), (_CHUNKS, (scope.space, wanted))
    )
    known, active, level, first, last, below, began, ended = counted
    if known != len(sources):
        raise NotFound("a summary to be archived is not one of this user's")
    if active != len(sources):
        raise SourcesChanged("a summary to be archived is archived or rolled back already")
    unit.later(_TAKE_SUMMARIES, scope.space, wanted)
    return _Covers(level + 1, chunks, first, last, below, began, ended)
