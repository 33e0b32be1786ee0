"""Archiving: a summary takes the place of what it stands for, and can give it back."""

from __future__ import annotations

import json
from typing import Final

from aforesaid.domain.change import Archive, RollBack
from aforesaid.domain.clock import now
from aforesaid.domain.note import NoteKey
from aforesaid.domain.summary import CONTINUED, Summary
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store import records
from aforesaid.store.sqlite import note_search, rows
from aforesaid.store.sqlite.unit import Unit

_MESSAGES: Final = """
SELECT count(*), coalesce(sum(active = 1 AND chunk IS NULL), 0), coalesce(sum(role = 'user'), 0), min(seq), max(seq),
       min(at), max(at)
  FROM log WHERE owner = ? AND seq IN (SELECT value FROM json_each(?))
"""
_TAKE_MESSAGES: Final = "UPDATE log SET active = 0, chunk = ? WHERE seq IN (SELECT value FROM json_each(?))"
_COUNT_TAKEN: Final = """
UPDATE person SET last_chunk = ?2, archived = archived + ?3, open_turns = open_turns - ?4 WHERE id = ?1
"""
_SUMMARIES: Final = """
SELECT count(*), coalesce(sum(active AND reach = 'chunks'), 0), max(level), min(first_seq), max(last_seq),
       sum(messages), min(began_at), max(ended_at)
  FROM summary WHERE owner = ? AND id IN (SELECT value FROM json_each(?))
"""
_CHUNKS: Final = """
SELECT json_group_array(c.value ORDER BY c.value) FROM summary y, json_each(y.chunks) c
 WHERE y.id IN (SELECT value FROM json_each(?))
"""
_TAKE_SUMMARIES: Final = "UPDATE summary SET active = 0 WHERE id IN (SELECT value FROM json_each(?))"
_NEW_SUMMARY: Final = """
INSERT INTO summary (owner, thread, kind, level, text, chunks, first_seq, last_seq, messages, began_at, ended_at, model,
                     prompt, created_at, quality, fresh_seq)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?7)
"""
_STANDS_ON_IT: Final = """
SELECT y.id FROM summary_source x JOIN summary y ON y.id = x.summary WHERE x.source = ? AND y.rolled_back = 0
"""
_IN_CHUNK: Final = "SELECT count(*), coalesce(sum(role = 'user'), 0) FROM log WHERE chunk = ? AND owner = ?"
_GIVE_MESSAGES_BACK: Final = "UPDATE log SET active = 1, chunk = NULL WHERE chunk = ? AND owner = ?"
_COUNT_GIVEN_BACK: Final = """
UPDATE person SET archived = archived - ?2, open_turns = open_turns + ?3 WHERE id = ?1
"""
_GIVE_SUMMARIES_BACK: Final = """
UPDATE summary SET active = 1 WHERE id IN (SELECT source FROM summary_source WHERE summary = ?)
"""
_ROLLING_BACK: Final = """
SELECT kind, level, chunks, reach, replaces, replaced, rolled_back FROM summary WHERE id = ? AND owner = ?
"""
_GIVE_VERSION_BACK: Final = "UPDATE summary SET active = 1, replaced = 0 WHERE id = ?"


def store_summary(unit: Unit, step: Archive) -> Summary:
    """Store the summary and archive its sources."""
    draft, execute = step.draft, unit.connection.execute
    owner = unit.known_owner(draft.scope)
    if draft.messages:
        level, chunks, *covers = 1, *_take_messages(unit, owner, draft.messages)
    else:
        level, chunks, *covers = _take_summaries(unit, owner, draft.summaries)
    thread = unit.names.thread(draft.scope.space, draft.scope.thread)
    execute(
        _NEW_SUMMARY,
        (owner, thread, draft.kind, level, draft.text, chunks, *covers, draft.model, draft.prompt)
        + (draft.created_at or now(), records.quality_text(draft.quality)),
    )
    number = unit.connection.last_insert_rowid()
    for source in draft.summaries:
        execute("INSERT INTO summary_source (summary, source) VALUES (?, ?)", (number, source))
    note_search.index(unit, owner, NoteKey("summary", number), draft.text)
    unit.audit(draft.scope, step.actor, "archive", f"summary {number}, level {level}, chunks {chunks}")
    return read(unit, number)


def roll_back(unit: Unit, step: RollBack) -> Summary:
    """Take back what a summary did: the version before it, or else its sources, are active again."""
    execute = unit.connection.execute
    owner = unit.known_owner(step.scope)
    found = execute(_ROLLING_BACK, (step.summary, owner)).fetchone()
    if found is None:
        raise NotFound(f"{quoted(step.scope.user)} has no summary {step.summary}")
    _, level, chunks, reach, replaces, replaced, rolled_back = found
    if rolled_back:
        raise SourcesChanged(f"summary {step.summary} has been rolled back already")
    if replaced:
        raise SourcesChanged(f"summary {step.summary} has a newer version; roll that one back first")
    above = execute(_STANDS_ON_IT, (step.summary,)).get
    if above is not None:
        raise SourcesChanged(f"summary {above} stands on summary {step.summary}; roll that one back first")
    if reach == "chunks" and level == 1 and replaces is None:
        (chunk,) = json.loads(chunks)
        if not rows.one(execute(_IN_CHUNK, (chunk, owner)))[0]:
            raise SourcesChanged(f"the messages below summary {step.summary} have been removed, as old as they were")
    undo(unit, owner, step.summary)
    unit.audit(step.scope, step.actor, "roll_back", f"summary {step.summary}, level {level}, chunks {chunks}")
    return read(unit, step.summary)


def undo(unit: Unit, owner: int, summary: int) -> None:
    """Mark a summary as rolled back; the version before it, or else its sources, are active again."""
    execute = unit.connection.execute
    kind, level, chunks, reach, replaces, _, _ = rows.one(execute(_ROLLING_BACK, (summary, owner)))
    if replaces is not None:
        execute(_GIVE_VERSION_BACK, (replaces,))
    elif reach == "chunks" and level == 1:
        (chunk,) = json.loads(chunks)
        messages, turns = rows.one(execute(_IN_CHUNK, (chunk, owner)))
        execute(_GIVE_MESSAGES_BACK, (chunk, owner))
        execute(_COUNT_GIVEN_BACK, (owner, messages, turns))
    elif reach == "chunks" or kind in CONTINUED:
        execute(_GIVE_SUMMARIES_BACK, (summary,))
    execute("UPDATE summary SET active = 0, rolled_back = 1 WHERE id = ?", (summary,))


def _take_messages(unit: Unit, owner: int, sources: tuple[int, ...]) -> tuple[str, int, int, int, int, int]:
    execute, wanted = unit.connection.execute, json.dumps(sources)
    known, free, turns, first, last, began, ended = rows.one(execute(_MESSAGES, (owner, wanted)))
    if known != len(sources):
        raise NotFound("a message to be archived is not one of this user's")
    if free != len(sources):
        raise SourcesChanged("a message to be archived is archived already")
    chunk = execute("SELECT last_chunk + 1 FROM person WHERE id = ?", (owner,)).get
    execute(_TAKE_MESSAGES, (chunk, wanted))
    execute(_COUNT_TAKEN, (owner, chunk, len(sources), turns))
    return json.dumps([chunk]), first, last, len(sources), began, ended


def _take_summaries(unit: Unit, owner: int, sources: tuple[int, ...]) -> tuple[int, str, int, int, int, int, int]:
    execute, wanted = unit.connection.execute, json.dumps(sources)
    known, active, level, first, last, below, began, ended = rows.one(execute(_SUMMARIES, (owner, wanted)))
    if known != len(sources):
        raise NotFound("a summary to be archived is not one of this user's")
    if active != len(sources):
        raise SourcesChanged("a summary to be archived is archived or rolled back already")
    chunks = execute(_CHUNKS, (wanted,)).get
    execute(_TAKE_SUMMARIES, (wanted,))
    return level + 1, chunks, first, last, below, began, ended


def read(unit: Unit, number: int) -> Summary:
    """Return a summary as it is now."""
    return rows.summary(rows.one(unit.connection.execute(f"{rows.SUMMARY} WHERE y.id = ?", (number,))))
