"""Summaries that archive nothing, and newer versions of summaries."""

from __future__ import annotations

import json
from datetime import date
from typing import Final

import apsw

from aforesaid.domain.clock import now
from aforesaid.domain.message import Message
from aforesaid.domain.note import NoteKey
from aforesaid.domain.report import Activity
from aforesaid.domain.summary import Summary, ViewDraft
from aforesaid.domain.summary_change import AddView, Revise
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store import questions, records
from aforesaid.store.sqlite import note_search, rows
from aforesaid.store.sqlite.archive import read
from aforesaid.store.sqlite.names import find_person, find_thread
from aforesaid.store.sqlite.unit import Unit

_NOBODY: Final = -1
_CURRENT: Final = "SELECT id FROM summary WHERE owner = ? AND kind = ? AND level = 1 AND day = ? AND active = 1"
_STRETCH: Final = """
SELECT count(*), min(seq), max(seq), min(at), max(at) FROM log
 WHERE owner = ? AND seq BETWEEN ? AND ? AND at >= ? AND at < ? {thread}
"""
_OF_SOURCES: Final = """
SELECT sum(messages), min(first_seq), max(last_seq), min(began_at), max(ended_at) FROM summary
 WHERE id IN (SELECT value FROM json_each(?))
"""
_BEFORE: Final = "SELECT first_seq, last_seq, messages, began_at, ended_at, version FROM summary WHERE id = ?"
_SOURCES: Final = "SELECT count(*) FROM summary WHERE owner = ? AND id IN (SELECT value FROM json_each(?))"
_NEW: Final = """
INSERT INTO summary (owner, thread, kind, level, text, chunks, first_seq, last_seq, fresh_seq, messages, began_at,
                     ended_at, model, prompt, created_at, reach, day, version, replaces, details, quality)
VALUES (?, ?, ?, 1, ?, '[]', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_REVISED: Final = """
INSERT INTO summary (owner, thread, kind, level, text, chunks, first_seq, last_seq, fresh_seq, messages, began_at,
                     ended_at, reach, day, details, model, prompt, created_at, quality, edited_by, replaces, version)
SELECT owner, thread, kind, level, ?2, chunks, first_seq, last_seq, fresh_seq, messages, began_at, ended_at,
       reach, day, details, ?3, ?4, ?5, ?6, ?7, id, version + 1
  FROM summary WHERE id = ?1
"""
_BELOW: Final = (
    "log.owner = ?1 AND log.seq BETWEEN ?2 AND ?3 AND log.at BETWEEN ?4 AND ?5 AND (?6 IS NULL OR log.thread = ?6)"
)
_ABOVE: Final = f"""
{rows.SUMMARY}
 WHERE y.owner = ?1 AND y.rolled_back = 0 AND y.replaced = 0
   AND CASE y.reach
         WHEN 'chunks' THEN ?3 IN (SELECT value FROM json_each(y.chunks))
         WHEN 'sources' THEN EXISTS (
             SELECT 1 FROM summary_source x JOIN summary z ON z.id = x.source WHERE x.summary = y.id
                AND ?2 BETWEEN z.first_seq AND z.last_seq AND ?4 BETWEEN z.began_at AND z.ended_at)
         ELSE ?2 BETWEEN y.first_seq AND y.last_seq AND ?4 BETWEEN y.began_at AND y.ended_at
              AND (y.reach = 'user' OR y.thread = ?5)
       END
 ORDER BY y.kind, y.level, y.id
"""


def add(unit: Unit, step: AddView) -> Summary:
    """Store a view, in the place of the one before it."""
    draft, execute = step.draft, unit.connection.execute
    owner = unit.known_owner(draft.scope)
    thread = unit.names.thread(draft.scope.space, draft.scope.thread)
    _expect_previous(unit, draft, owner, thread)
    first, last, messages, began, ended = _stretch(unit, draft, owner, thread)
    fresh, version = first, 1
    if draft.previous is not None:
        before = rows.one(execute(_BEFORE, (draft.previous,)))
        if draft.continues:
            if before[1] >= first:
                raise SourcesChanged(f"summary {draft.previous} covers some of these messages already")
            first, messages, began, ended = (
                before[0],
                messages + before[2],
                min(began, before[3]),
                max(ended, before[4]),
            )
        else:
            version = before[5] + 1
        execute("UPDATE summary SET active = 0, replaced = ? WHERE id = ?", (not draft.continues, draft.previous))
    execute(
        _NEW,
        (owner, thread, draft.kind, draft.text, first, last, fresh, messages, began, ended, draft.model, draft.prompt)
        + (draft.created_at or now(), draft.reach, _day(draft.day), version)
        + (None if draft.continues else draft.previous,)
        + (None if draft.details is None else json.dumps(draft.details, ensure_ascii=False),)
        + (records.quality_text(draft.quality),),
    )
    number = unit.connection.last_insert_rowid()
    for source in (*draft.summaries, *([draft.previous] if draft.continues else ())):
        execute("INSERT INTO summary_source (summary, source) VALUES (?, ?)", (number, source))
    note_search.index(unit, owner, NoteKey("summary", number), draft.text)
    unit.audit(draft.scope, step.actor, "summary.add", f"summary {number}, {draft.kind}")
    return read(unit, number)


def revise(unit: Unit, step: Revise) -> Summary:
    """Store a newer version of a summary."""
    execute = unit.connection.execute
    owner = unit.known_owner(step.scope)
    active = execute("SELECT active FROM summary WHERE id = ? AND owner = ?", (step.summary, owner)).get
    if active is None:
        raise NotFound(f"{quoted(step.scope.user)} has no summary {step.summary}")
    if not active:
        raise SourcesChanged(f"summary {step.summary} is not active any more; revise the one that stands for it")
    created = step.created_at or now()
    quality = records.quality_text(step.quality)
    execute("UPDATE summary SET active = 0, replaced = 1 WHERE id = ?", (step.summary,))
    execute(_REVISED, (step.summary, step.text, step.model, step.prompt, created, quality, step.edited_by))
    number = unit.connection.last_insert_rowid()
    execute(
        "INSERT INTO summary_source (summary, source) SELECT ?, source FROM summary_source WHERE summary = ?",
        (number, step.summary),
    )
    note_search.index(unit, owner, NoteKey("summary", number), step.text)
    unit.audit(step.scope, step.actor, "summary.revise", f"summary {number} in the place of {step.summary}")
    return read(unit, number)


def below(connection: apsw.Connection, summary: int) -> list[Message]:
    """Return the messages that a view covers. Whoever asks has found it in their scope."""
    owner, thread, first, last, began, ended, reach = rows.one(
        connection.execute(
            "SELECT owner, thread, first_seq, last_seq, began_at, ended_at, reach FROM summary WHERE id = ?", (summary,)
        )
    )
    if reach == "sources":
        query = "SELECT source FROM summary_source WHERE summary = ?"
        sources = [source for (source,) in connection.execute(query, (summary,))]
        found = {message.seq: message for source in sources for message in below(connection, source)}
        return [found[seq] for seq in sorted(found)]
    here = thread if reach == "thread" else None
    query = f"{rows.MESSAGE} WHERE {_BELOW} ORDER BY log.seq"
    return records.messages(connection.execute(query, (owner, first, last, began, ended, here)))


def above(connection: apsw.Connection, question: questions.SummariesAbove) -> list[Summary]:
    """Return the summaries that a message lies below."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    found = connection.execute(
        "SELECT chunk, at, thread FROM log WHERE seq = ? AND owner = ?", (question.seq, owner)
    ).fetchone()
    if found is None:
        raise NotFound(f"{quoted(question.scope.user)} has no message with the number {question.seq}")
    chunk, at, thread = found
    return [rows.summary(row) for row in connection.execute(_ABOVE, (owner, question.seq, chunk, at, thread))]


def following(connection: apsw.Connection, question: questions.MessagesAfter) -> list[Message]:
    """Return the user's oldest messages after one, in the scope's thread or in all."""
    where = ["owner = ?", "seq > ?"]
    values: list[int | None] = [
        _number(find_person(connection, question.scope.space, question.scope.user)),
        question.after,
    ]
    if question.here:
        where.append("thread = ?")
        values.append(_number(find_thread(connection, question.scope.space, question.scope.thread)))
    if not question.archived:
        where.append("active = 1")
    # Named, because the size of an owner's log is not known to the planner.
    index = "log_by_owner" if question.archived else "log_active_by_owner"
    picked = f"SELECT seq FROM log INDEXED BY {index} WHERE {' AND '.join(where)} ORDER BY seq LIMIT ?"
    query = f"{rows.MESSAGE} WHERE log.seq IN ({picked}) ORDER BY log.seq"
    return records.messages(connection.execute(query, (*values, question.limit)))


def said_between(connection: apsw.Connection, question: questions.MessagesBetween) -> list[Message]:
    """Return what was said in a space, from one moment to before another, by when it was said."""
    query = f"""
    {rows.MESSAGE} WHERE log.seq IN (
        SELECT l.seq FROM thread h CROSS JOIN log l ON l.thread = h.id WHERE h.space = ? AND l.at >= ? AND l.at < ?
    ) ORDER BY log.at, log.seq
    """
    return records.messages(connection.execute(query, (question.space, question.since, question.until)))


def said_per_day(connection: apsw.Connection, question: questions.ActivityPerDay) -> list[Activity]:
    """Return how much was said in a space on each day of UTC, oldest first."""
    query = """
    SELECT date(l.at / 1000000, 'unixepoch'), count(*), count(*) FILTER (WHERE l.role = 'user')
      FROM thread h CROSS JOIN log l ON l.thread = h.id
     WHERE h.space = ?1 AND l.at >= ?2 AND l.at < ?3 AND (?4 IS NULL OR l.owner = ?4)
     GROUP BY 1 ORDER BY 1
    """
    owner = None if question.user is None else _number(find_person(connection, question.space, question.user))
    found = connection.execute(query, (question.space, question.since, question.until, owner))
    return [Activity(date.fromisoformat(day), messages, turns) for day, messages, turns in rows.every(found)]


def vectors(connection: apsw.Connection, question: questions.MessageVectors) -> dict[int, bytes]:
    """Return the vectors of those of the messages that are the user's and have one."""
    query = """
    SELECT seq, value FROM vector WHERE embedder = (SELECT id FROM embedder WHERE name = ?)
       AND seq IN (SELECT value FROM json_each(?)) AND +owner = ?
    """
    owner = _number(find_person(connection, question.scope.space, question.scope.user))
    return dict(rows.every(connection.execute(query, (question.embedder, json.dumps(list(question.seqs)), owner))))


def without_model(connection: apsw.Connection, question: questions.SummariesWithoutModel) -> list[Summary]:
    """Return active summaries that neither a model nor a person wrote."""
    query = f"""
    {rows.SUMMARY} WHERE y.kind = ? AND y.id > ? AND y.prompt = ? AND y.active = 1 AND y.model IS NULL
       AND y.edited_by IS NULL ORDER BY y.id LIMIT ?
    """
    return [
        rows.summary(row)
        for row in connection.execute(query, (question.kind, question.after, question.prompt, question.limit))
    ]


def _expect_previous(unit: Unit, draft: ViewDraft, owner: int, thread: int) -> None:
    """Raise if somebody else has stored another of this kind since."""
    bindings: tuple[object, ...] = (owner, draft.kind, _day(draft.day))
    query = _CURRENT
    if draft.reach == "thread":
        query, bindings = f"{_CURRENT} AND thread = ?", (*bindings, thread)
    current = unit.connection.execute(query, bindings).get
    if current != draft.previous:
        raise SourcesChanged(f"another {draft.kind} summary was stored first by another process")
    wanted = json.dumps(draft.summaries)
    if unit.connection.execute(_SOURCES, (owner, wanted)).get != len(draft.summaries):
        raise NotFound("a summary that it was made of is not one of this user's")


def _stretch(unit: Unit, draft: ViewDraft, owner: int, thread: int) -> tuple[int, int, int, int, int]:
    if draft.reach == "sources":
        found = rows.one(unit.connection.execute(_OF_SOURCES, (json.dumps(draft.summaries),)))
        return _as_drafted(draft, found)
    query = _STRETCH.format(thread="AND thread = ?" if draft.reach == "thread" else "")
    bindings = (owner, draft.first, draft.last, draft.since, draft.until)
    found = rows.one(unit.connection.execute(query, (*bindings, thread) if draft.reach == "thread" else bindings))
    return _as_drafted(draft, found)


def _as_drafted(draft: ViewDraft, found: records.Row) -> tuple[int, int, int, int, int]:
    messages, first, last, began, ended = found
    if (messages, first, last) != (draft.messages, draft.first, draft.last):
        raise SourcesChanged("the summary does not cover the messages that it says it does; read them again")
    return first, last, messages, began, ended


def _day(day: date | None) -> str:
    return "" if day is None else day.isoformat()


def _number(found: int | None) -> int:
    return _NOBODY if found is None else found
