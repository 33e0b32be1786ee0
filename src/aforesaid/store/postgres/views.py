"""Summaries that archive nothing, and newer versions of summaries."""

from __future__ import annotations

import json
from datetime import date
from typing import Final

from aforesaid.domain.clock import now
from aforesaid.domain.message import Message
from aforesaid.domain.summary import Summary, ViewDraft
from aforesaid.domain.summary_change import AddView, Revise
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store import questions, records
from aforesaid.store.hashed import hashed
from aforesaid.store.postgres import rows
from aforesaid.store.postgres.archive import insert, read
from aforesaid.store.postgres.queries import Queries, Row
from aforesaid.store.postgres.unit import Unit
from aforesaid.text.terms import terms

_CURRENT: Final = """
SELECT id FROM summary WHERE space = $1 AND owner = $2 AND kind = $3 AND level = 1 AND day = $4 AND active
   AND ($5::text IS NULL OR thread = $5)
"""
_STRETCH: Final = """
SELECT count(*), min(seq), max(seq), min(at), max(at) FROM log
 WHERE space = $1 AND owner = $2 AND seq BETWEEN $3 AND $4 AND at >= $5 AND at < $6 AND ($7::text IS NULL OR thread = $7)
"""
_OF_SOURCES: Final = """
SELECT sum(messages)::bigint, min(first_seq), max(last_seq), min(began_at), max(ended_at) FROM summary
 WHERE space = $1 AND id = ANY($2::bigint[])
"""
_BEFORE: Final = """
SELECT first_seq, last_seq, messages, began_at, ended_at, version FROM summary WHERE space = $1 AND id = $2
"""
_SOURCES: Final = "SELECT count(*) FROM summary WHERE space = $1 AND owner = $2 AND id = ANY($3::bigint[])"
_ACTIVE: Final = "SELECT active FROM summary WHERE space = $1 AND id = $2 AND owner = $3"
_REPLACE: Final = "UPDATE summary SET active = false, replaced = $3 WHERE space = $1 AND id = $2"
_REVISED: Final = """
INSERT INTO summary (space, id, owner, thread, kind, level, text, chunks, first_seq, last_seq, fresh_seq, messages, began_at,
                     ended_at, reach, day, details, model, prompt, created_at, quality, edited_by, replaces, version, terms)
SELECT space, $3, owner, thread, kind, level, $4, chunks, first_seq, last_seq, fresh_seq, messages, began_at, ended_at,
       reach, day, details, $5, $6, $7, $8::json, $9, id, version + 1, $10
  FROM summary WHERE space = $1 AND id = $2
"""
_SAME_SOURCES: Final = """
INSERT INTO summary_source (space, summary, source)
SELECT space, $3, source FROM summary_source WHERE space = $1 AND summary = $2
"""
_COVERS: Final = """
SELECT owner, thread, first_seq, last_seq, began_at, ended_at, reach,
       ARRAY(SELECT x.source FROM summary_source x WHERE x.space = y.space AND x.summary = y.id)
  FROM summary y WHERE space = $1 AND id = $2
"""
_BELOW: Final = f"""
{rows.MESSAGE} WHERE log.space = $1 AND log.owner = $2 AND log.seq BETWEEN $3 AND $4 AND log.at BETWEEN $5 AND $6
   AND ($7::text IS NULL OR log.thread = $7) ORDER BY log.seq
"""
_PLACE: Final = "SELECT chunk, at, thread FROM log WHERE space = $1 AND seq = $2 AND owner = $3"
_ABOVE: Final = f"""
{rows.SUMMARY}
 WHERE y.space = $1 AND y.owner = $2 AND NOT y.rolled_back AND NOT y.replaced
   AND CASE y.reach
         WHEN 'chunks' THEN $4::bigint = ANY(y.chunks)
         WHEN 'sources' THEN EXISTS (
             SELECT 1 FROM summary_source x JOIN summary z ON z.space = x.space AND z.id = x.source
              WHERE x.space = y.space AND x.summary = y.id
                AND $3 BETWEEN z.first_seq AND z.last_seq AND $5 BETWEEN z.began_at AND z.ended_at)
         ELSE $3 BETWEEN y.first_seq AND y.last_seq AND $5 BETWEEN y.began_at AND y.ended_at
              AND (y.reach = 'user' OR y.thread = $6)
       END
 ORDER BY y.kind COLLATE "C", y.level, y.id
"""


async def add(unit: Unit, step: AddView) -> Summary:
    """Store a view, in the place of the one before it."""
    draft, scope = step.draft, step.draft.scope
    await unit.expect_owner(scope)
    await _expect_previous(unit, draft)
    first, last, messages, began, ended = await _stretch(unit, draft)
    fresh, version = first, 1
    if draft.previous is not None:
        before = await unit.one(_BEFORE, scope.space, draft.previous)
        if draft.continues:
            if before[1] >= first:
                raise SourcesChanged(f"summary {draft.previous} covers some of these messages already")
            first, messages = before[0], messages + before[2]
            began, ended = min(began, before[3]), max(ended, before[4])
        else:
            version = before[5] + 1
        unit.later(_REPLACE, scope.space, draft.previous, not draft.continues)
    continued = (draft.previous,) if draft.continues and draft.previous is not None else ()
    number = insert(
        unit,
        scope,
        (*draft.summaries, *continued),
        {
            "kind": draft.kind,
            "level": 1,
            "text": draft.text,
            "first_seq": first,
            "last_seq": last,
            "fresh_seq": fresh,
            "messages": messages,
            "began_at": began,
            "ended_at": ended,
            "model": draft.model,
            "prompt": draft.prompt,
            "created_at": draft.created_at or now(),
            "reach": draft.reach,
            "day": _day(draft.day),
            "version": version,
            "replaces": None if draft.continues else draft.previous,
            "details": None if draft.details is None else json.dumps(draft.details, ensure_ascii=False),
            "quality": records.quality_text(draft.quality),
        },
    )
    unit.audit(scope, step.actor, "summary.add", f"summary {number}, {draft.kind}")
    return await read(unit, scope.space, number)


async def revise(unit: Unit, step: Revise) -> Summary:
    """Store a newer version of a summary."""
    scope = step.scope
    await unit.expect_owner(scope)
    active = await unit.value(_ACTIVE, scope.space, step.summary, scope.user)
    if active is None:
        raise NotFound(f"{quoted(scope.user)} has no summary {step.summary}")
    if not active:
        raise SourcesChanged(f"summary {step.summary} is not active any more; revise the one that stands for it")
    numbers = unit.numbers[scope.space]
    numbers.summary += 1
    number = numbers.summary
    unit.later(_REPLACE, scope.space, step.summary, True)
    written = (step.text, step.model, step.prompt, step.created_at or now(), records.quality_text(step.quality))
    unit.later(_REVISED, scope.space, step.summary, number, *written, step.edited_by, hashed(terms(step.text)))
    unit.later(_SAME_SOURCES, scope.space, step.summary, number)
    unit.audit(scope, step.actor, "summary.revise", f"summary {number} in the place of {step.summary}")
    return await read(unit, scope.space, number)


async def below(queries: Queries, space: str, summary: int) -> list[Message]:
    """Return the messages that a view covers. Whoever asks has found it in their scope."""
    owner, thread, first, last, began, ended, reach, sources = await queries.one(_COVERS, space, summary)
    if reach == "sources":
        found = {message.seq: message for source in sources for message in await below(queries, space, source)}
        return [found[seq] for seq in sorted(found)]
    here = thread if reach == "thread" else None
    return records.messages(await queries.rows(_BELOW, space, owner, first, last, began, ended, here))


async def above(queries: Queries, question: questions.SummariesAbove) -> list[Summary]:
    """Return the summaries that a message lies below."""
    found = await queries.first(_PLACE, question.scope.space, question.seq, question.scope.user)
    if found is None:
        raise NotFound(f"{quoted(question.scope.user)} has no message with the number {question.seq}")
    chunk, at, thread = found
    return [
        rows.summary(row)
        for row in await queries.rows(
            _ABOVE, question.scope.space, question.scope.user, question.seq, chunk, at, thread
        )
    ]


async def _expect_previous(unit: Unit, draft: ViewDraft) -> None:
    """Raise if somebody else has stored another of this kind since."""
    scope = draft.scope
    here = scope.thread if draft.reach == "thread" else None
    current = await unit.value(_CURRENT, scope.space, scope.user, draft.kind, _day(draft.day), here)
    if current != draft.previous:
        raise SourcesChanged(f"another {draft.kind} summary was stored first by another process")
    if await unit.value(_SOURCES, scope.space, scope.user, list(draft.summaries)) != len(draft.summaries):
        raise NotFound("a summary that it was made of is not one of this user's")


async def _stretch(unit: Unit, draft: ViewDraft) -> tuple[int, int, int, int, int]:
    scope = draft.scope
    if draft.reach == "sources":
        return _as_drafted(draft, await unit.one(_OF_SOURCES, scope.space, list(draft.summaries)))
    here = scope.thread if draft.reach == "thread" else None
    bounds = (draft.first, draft.last, draft.since, draft.until)
    return _as_drafted(draft, await unit.one(_STRETCH, scope.space, scope.user, *bounds, here))


def _as_drafted(draft: ViewDraft, found: Row) -> tuple[int, int, int, int, int]:
    messages, first, last, began, ended = found
    if (messages, first, last) != (draft.messages, draft.first, draft.last):
        raise SourcesChanged("the summary does not cover the messages that it says it does; read them again")
    return first, last, messages, began, ended


def _day(day: date | None) -> str:
    return "" if day is None else day.isoformat()
