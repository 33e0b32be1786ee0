"""Summaries of a dump: stored where they can stand, kept as rolled back where they cannot."""

from __future__ import annotations

import json
from typing import Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.note import NoteKey
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import Restored, SummaryRow
from aforesaid.store import records
from aforesaid.store.sqlite import archive, note_search, rows
from aforesaid.store.sqlite.unit import Unit

_ONCE: Final = """
owner = ?1 AND thread = ?2 AND kind = ?3 AND level = ?4 AND first_seq = ?5 AND last_seq = ?6 AND prompt = ?7
   AND day = ?8 AND version = ?9
"""
# In two parts, because two indexes find them.
_KNOWN: Final = f"""
SELECT id, active, rolled_back FROM summary WHERE {_ONCE} AND created_at = ?10 AND text = ?11 AND rolled_back = 0
UNION ALL
SELECT id, active, rolled_back FROM summary WHERE {_ONCE} AND created_at = ?10 AND text = ?11 AND rolled_back = 1
"""
_TAKEN: Final = f"SELECT 1 FROM summary WHERE {_ONCE} AND rolled_back = 0"
_NEWEST: Final = """
SELECT 1 FROM summary WHERE owner = ? AND kind = ? AND level = 1 AND day = ? AND active = 1 AND reach != 'chunks'
   AND (? != 'thread' OR thread = ?)
"""
_FREE: Final = """
SELECT count(*), coalesce(sum(role = 'user'), 0) FROM log
 WHERE owner = ? AND active = 1 AND seq IN (SELECT value FROM json_each(?))
"""
_TAKE: Final = "UPDATE log SET active = 0, chunk = ? WHERE seq IN (SELECT value FROM json_each(?))"
_COUNT: Final = "UPDATE person SET archived = archived + ?2, open_turns = open_turns - ?3 WHERE id = ?1"
_BELOW: Final = """
SELECT count(*) FROM summary z WHERE z.id IN (SELECT value FROM json_each(?)) AND (
    z.rolled_back = 1 OR EXISTS (SELECT 1 FROM summary_source x JOIN summary y ON y.id = x.summary
                                  WHERE x.source = z.id AND y.rolled_back = 0 AND y.reach = 'chunks'))
"""
_CHUNKS: Final = """
SELECT json_group_array(c.value ORDER BY c.value) FROM summary y, json_each(y.chunks) c
 WHERE y.id IN (SELECT value FROM json_each(?))
"""
_NEW: Final = """
INSERT INTO summary (id, owner, thread, kind, level, text, chunks, first_seq, last_seq, messages, model, prompt,
                     created_at, active, rolled_back, reach, fresh_seq, began_at, ended_at, day, version, replaces,
                     replaced, edited_by, details, quality)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def restore(unit: Unit, row: SummaryRow) -> Restored:
    """Store a summary, unless it is here."""
    new, execute = row.summary, unit.connection.execute
    created = microseconds(new.created_at, "the time")
    owner = unit.names.owner(new.space, new.user, created)
    thread = unit.names.thread(new.space, new.thread)
    once = (owner, thread, new.kind, new.level, new.first, new.last, new.prompt, _day(new), new.version)
    known = execute(_KNOWN, (*once, created, new.text)).fetchone()
    if known is not None:
        number, active, rolled_back = known
        if new.rolled_back and not rolled_back:
            archive.undo(unit, owner, number)
        elif active and not new.active:
            execute("UPDATE summary SET active = 0, replaced = ? WHERE id = ?", (new.replaced, number))
        return Restored(number, False)
    chunks, stands = _place(unit, owner, row)
    stands = stands and not new.rolled_back and execute(_TAKEN, once).get is None
    active = stands and new.active
    if active and new.reach != "chunks":
        active = execute(_NEWEST, (owner, new.kind, _day(new), new.reach, thread)).get is None
    if stands and row.messages and new.replaces is None:
        _take(unit, owner, row, json.loads(chunks)[0])
    number = max(new.id, 1 + (execute("SELECT seq FROM sqlite_sequence WHERE name = 'summary'").get or 0))
    execute(
        _NEW,
        (number, owner, thread, new.kind, new.level, new.text, chunks, new.first, new.last, new.messages, new.model)
        + (new.prompt, created, active, not stands, new.reach, new.fresh)
        + (microseconds(new.began_at, "the time"), microseconds(new.ended_at, "the time"), _day(new), new.version)
        + (new.replaces, new.replaced and stands, new.edited_by)
        + (None if new.details is None else json.dumps(new.details, ensure_ascii=False),)
        + (records.quality_text(new.quality),),
    )
    for source in new.sources:
        execute("INSERT INTO summary_source (summary, source) VALUES (?, ?)", (number, source))
    note_search.index(unit, owner, NoteKey("summary", number), new.text)
    return Restored(number, True)


def _place(unit: Unit, owner: int, row: SummaryRow) -> tuple[str, bool]:
    """Return the chunks of a summary here, and whether what it stands for is free."""
    new, execute = row.summary, unit.connection.execute
    if new.replaces is not None:
        chunks, rolled_back = rows.one(execute("SELECT chunks, rolled_back FROM summary WHERE id = ?", (new.replaces,)))
        return chunks, not rolled_back
    if new.reach != "chunks":
        return "[]", True
    if new.level > 1:
        sources = json.dumps(new.sources)
        return execute(_CHUNKS, (sources,)).get, execute(_BELOW, (sources,)).get == 0
    last: int = execute("SELECT last_chunk FROM person WHERE id = ?", (owner,)).get
    chunk = max((last + 1, *new.chunks))
    execute("UPDATE person SET last_chunk = ? WHERE id = ?", (chunk, owner))
    free, _ = rows.one(execute(_FREE, (owner, json.dumps(row.messages))))
    # An archive whose messages were removed by their age stands by itself.
    return json.dumps([chunk]), free == len(row.messages) and len(row.messages) in (0, new.messages)


def _take(unit: Unit, owner: int, row: SummaryRow, chunk: int) -> None:
    execute, wanted = unit.connection.execute, json.dumps(row.messages)
    free, turns = rows.one(execute(_FREE, (owner, wanted)))
    execute(_TAKE, (chunk, wanted))
    execute(_COUNT, (owner, free, turns))


def _day(summary: Summary) -> str:
    return "" if summary.day is None else summary.day.isoformat()
