"""Summaries of a dump: stored where they can stand, kept as rolled back where they cannot."""

from __future__ import annotations

import json
from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import Restored, SummaryRow
from aforesaid.store import records
from aforesaid.store.postgres import archive
from aforesaid.store.postgres.unit import Unit

_ONCE: Final = """
space = $1 AND owner = $2 AND thread = $3 AND md5(thread) = md5($3) AND kind = $4 AND level = $5 AND first_seq = $6
   AND last_seq = $7 AND prompt = $8 AND md5(prompt) = md5($8) AND day = $9 AND version = $10
"""
_KNOWN: Final = f"SELECT id, active, rolled_back FROM summary WHERE {_ONCE} AND created_at = $11 AND text = $12"
_TAKEN: Final = f"SELECT 1 FROM summary WHERE {_ONCE} AND NOT rolled_back"
_NEWEST: Final = """
SELECT 1 FROM summary WHERE space = $1 AND owner = $2 AND kind = $3 AND level = 1 AND day = $4 AND active
   AND reach != 'chunks' AND ($5 != 'thread' OR thread = $6)
"""
_FREE: Final = """
SELECT count(*), count(*) FILTER (WHERE role = 'user') FROM log
 WHERE space = $1 AND owner = $2 AND active AND seq = ANY($3::bigint[])
"""
_TAKE: Final = "UPDATE log SET active = false, chunk = $2 WHERE space = $1 AND seq = ANY($3::bigint[])"
_COUNT: Final = """
UPDATE person SET archived = archived + $3, open_turns = open_turns - $4 WHERE space = $1 AND name = $2
"""
_BELOW: Final = """
SELECT count(*) FROM summary z WHERE z.space = $1 AND z.id = ANY($2::bigint[]) AND (
    z.rolled_back OR EXISTS (
        SELECT 1 FROM summary_source x JOIN summary y ON y.space = x.space AND y.id = x.summary
         WHERE x.space = z.space AND x.source = z.id AND NOT y.rolled_back AND y.reach = 'chunks'))
"""
_CHUNKS: Final = """
SELECT coalesce(array_agg(c ORDER BY c), '{}') FROM summary y, unnest(y.chunks) c WHERE y.space = $1 AND y.id = ANY($2::bigint[])
"""
_BEFORE: Final = "SELECT chunks, rolled_back FROM summary WHERE space = $1 AND id = $2"
_LAST_CHUNK: Final = "SELECT last_chunk FROM person WHERE space = $1 AND name = $2"
_SET_CHUNK: Final = "UPDATE person SET last_chunk = $3 WHERE space = $1 AND name = $2"
_REST: Final = "UPDATE summary SET active = false, replaced = $3 WHERE space = $1 AND id = $2"


async def restore(unit: Unit, row: SummaryRow) -> Restored:
    """Store a summary, unless it is here."""
    new = row.summary
    scope = Scope(new.space, new.user, new.thread)
    created = microseconds(new.created_at, "the time")
    unit.own(scope, created)
    once = (*scope[:3], new.kind, new.level, new.first, new.last, new.prompt, _day(new), new.version)
    known = await unit.first(_KNOWN, *once, created, new.text)
    if known is not None:
        number, active, rolled_back = known
        if new.rolled_back and not rolled_back:
            await archive.undo(unit, scope, number)
        elif active and not new.active:
            unit.later(_REST, new.space, number, new.replaced)
        return Restored(number, False)
    chunks, stands = await _place(unit, scope, row)
    stands = stands and not new.rolled_back and await unit.value(_TAKEN, *once) is None
    active = stands and new.active
    if active and new.reach != "chunks":
        newest = await unit.value(_NEWEST, new.space, new.user, new.kind, _day(new), new.reach, new.thread)
        active = newest is None
    if stands and row.messages and new.replaces is None:
        await _take(unit, scope, row, chunks[0])
    number = archive.insert(unit, scope, new.sources, _values(new, chunks, active, stands), least=new.id)
    return Restored(number, True)


def _values(new: Summary, chunks: list[int], active: bool, stands: bool) -> dict[str, object]:  # noqa: FBT001
    return {
        "kind": new.kind,
        "level": new.level,
        "text": new.text,
        "chunks": chunks,
        "first_seq": new.first,
        "last_seq": new.last,
        "messages": new.messages,
        "model": new.model,
        "prompt": new.prompt,
        "created_at": microseconds(new.created_at, "the time"),
        "active": active,
        "rolled_back": not stands,
        "reach": new.reach,
        "fresh_seq": new.fresh,
        "began_at": microseconds(new.began_at, "the time"),
        "ended_at": microseconds(new.ended_at, "the time"),
        "day": _day(new),
        "version": new.version,
        "replaces": new.replaces,
        "replaced": new.replaced and stands,
        "edited_by": new.edited_by,
        "details": None if new.details is None else json.dumps(new.details, ensure_ascii=False),
        "quality": records.quality_text(new.quality),
    }


async def _place(unit: Unit, scope: Scope, row: SummaryRow) -> tuple[list[int], bool]:
    """Return the chunks of a summary here, and whether what it stands for is free."""
    new = row.summary
    if new.replaces is not None:
        chunks, rolled_back = await unit.one(_BEFORE, new.space, new.replaces)
        return chunks, not rolled_back
    if new.reach != "chunks":
        return [], True
    if new.level > 1:
        sources = list(new.sources)
        chunks = await unit.value(_CHUNKS, new.space, sources)
        return chunks, await unit.value(_BELOW, new.space, sources) == 0
    last: int = await unit.value(_LAST_CHUNK, new.space, new.user)
    chunk = max((last + 1, *new.chunks))
    unit.later(_SET_CHUNK, new.space, new.user, chunk)
    free, _ = await unit.one(_FREE, new.space, scope.user, list(row.messages))
    # An archive whose messages were removed by their age stands by itself.
    return [chunk], free == len(row.messages) and len(row.messages) in (0, new.messages)


async def _take(unit: Unit, scope: Scope, row: SummaryRow, chunk: int) -> None:
    wanted = list(row.messages)
    free, turns = await unit.one(_FREE, scope.space, scope.user, wanted)
    unit.later(_TAKE, scope.space, chunk, wanted)
    unit.later(_COUNT, scope.space, scope.user, free, turns)


def _day(summary: Summary) -> str:
    return "" if summary.day is None else summary.day.isoformat()
