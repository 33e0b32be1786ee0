"""The writes of rules, in SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.clock import now
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.note import NoteKey
from aforesaid.domain.scope import Scope
from aforesaid.store import records
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.rules import writes
from aforesaid.store.sqlite import erasing, note_search
from aforesaid.store.sqlite.names import find_thread
from aforesaid.store.sqlite.unit import NEXT_NUMBER, Unit
from aforesaid.store.sqlite.vectors import content_hash

_LISTED: Final = "IN (SELECT value FROM json_each(?))"
_MERGE_USER: Final = CHECKSUMS.update(
    "person",
    "id = $1",
    created_at="min(created_at, $2)",
    last_chunk="max(last_chunk, $3)",
    extracted="max(extracted, $4)",
)
_SET_EXTRACTED: Final = CHECKSUMS.update("person", "id = $1", extracted="$2")
_SET_LAST_CHUNK: Final = CHECKSUMS.update("person", "id = $1", last_chunk="$2")
_ARCHIVED: Final = "UPDATE person SET archived = archived + ?2, open_turns = open_turns - ?3 WHERE id = ?1"
_SESSION: Final = CHECKSUMS.update("session", "thread = $1 AND name = $2", automatic="$3", timeout="$4", opened_by="$5")
_NEW_EMBEDDER: Final = "INSERT INTO embedder (name, dimensions) VALUES (?, ?) ON CONFLICT DO NOTHING"
_VECTOR: Final = """
INSERT INTO vector (embedder, owner, seq, content, value)
SELECT (SELECT id FROM embedder WHERE name = ?1), owner, seq, ?3, ?4 FROM log WHERE seq = ?2
ON CONFLICT DO NOTHING
"""
_SUMMARY_SOURCE: Final = CHECKSUMS.insert("summary_source", ("summary", "source"))
_SUMMARY_STATE: Final = CHECKSUMS.update("summary", "id = $1", active="$2", replaced="$3", rolled_back="$4")
_SET_MEMORY: Final = CHECKSUMS.update(
    "memory", "id = $1", **{name: f"${place}" for place, name in enumerate(("revision", *records.MEMORY), 2)}
)
_MEMORY_SOURCE: Final = CHECKSUMS.insert("memory_source", ("memory", "seq"))
_MORE_SOURCES: Final = CHECKSUMS.insert_selected(
    "memory_source",
    {"memory": "$1", "seq": "l.seq"},
    """
    FROM log l WHERE l.owner = $2 AND l.seq IN (SELECT value FROM json_each($3)) ORDER BY l.seq
    LIMIT max(0, $4 - (SELECT count(*) FROM memory_source WHERE memory = $1)) ON CONFLICT DO NOTHING
    """,
)
_SUCCESSOR: Final = CHECKSUMS.update("memory", "id = $1", superseded_by="$2")
_SUCCESSOR_THEN: Final = CHECKSUMS.update(
    "memory_version", "memory = $1 AND revision = $2", was="json_set(was, '$.superseded_by', $3)"
)
_RENUMBER: Final = CHECKSUMS.update("facts", "owner = $1 AND version = $2", version="version + 1")
_TOMBSTONE: Final = CHECKSUMS.insert_selected(
    "forgotten",
    {
        "id": "new.id",
        "owner": "person.id",
        "words": "$2",
        "up_to": "coalesce($3, last_seq)",
        "at": "$4",
    },
    f"FROM person, {NEXT_NUMBER.format('forgotten')} AS new WHERE person.id = $1",
)
_TOKENS: Final = CHECKSUMS.insert(
    "spending",
    ("day", "space", "user", "tokens"),
    f"ON CONFLICT DO UPDATE SET {CHECKSUMS.setting('spending', tokens='spending.tokens + excluded.tokens')}",
)
_ENTRY: Final = CHECKSUMS.insert(
    "agenda", records.ENTRY, CHECKSUMS.replacing("agenda", *records.ENTRY[:5], derived=True)
)


def _owner(unit: Unit, scope: Scope) -> int:
    return unit.names.owner(scope.space, scope.user, now())


def _keep_user(unit: Unit, write: writes.KeepUser) -> None:
    unit.names.owner(write.scope.space, write.scope.user, write.at)


def _merge_user(unit: Unit, write: writes.MergeUser) -> None:
    values = (write.created_at, write.last_chunk, write.extracted)
    unit.connection.execute(_MERGE_USER, (_owner(unit, write.scope), *values))


def _record_audit(unit: Unit, write: writes.RecordAudit) -> None:
    unit.audit(write.scope, write.actor, write.action, write.subject, write.at)


def _set_extracted(unit: Unit, write: writes.SetExtracted) -> None:
    unit.connection.execute(_SET_EXTRACTED, (_owner(unit, write.scope), write.up_to))


def _set_last_chunk(unit: Unit, write: writes.SetLastChunk) -> None:
    unit.connection.execute(_SET_LAST_CHUNK, (_owner(unit, write.scope), write.chunk))


def _archive_messages(unit: Unit, write: writes.ArchiveMessages) -> None:
    query = f"UPDATE log SET active = 0, chunk = ? WHERE seq {_LISTED}"
    unit.connection.execute(query, (write.chunk, json.dumps(list(write.seqs))))
    unit.connection.execute(_ARCHIVED, (_owner(unit, write.scope), len(write.seqs), write.turns))


def _release_messages(unit: Unit, write: writes.ReleaseMessages) -> None:
    owner = _owner(unit, write.scope)
    query = "UPDATE log SET active = 1, chunk = NULL WHERE chunk = ? AND owner = ?"
    unit.connection.execute(query, (write.chunk, owner))
    unit.connection.execute(_ARCHIVED, (owner, -write.messages, -write.turns))


def _describe_session(unit: Unit, write: writes.DescribeSession) -> None:
    session = write.row.session
    thread = find_thread(unit.connection, session.space, session.thread)
    if thread is not None:
        opened_by = unit.names.author(session.space, session.user, microseconds(session.started_at, "the time"))
        timeout = round(session.timeout.total_seconds() * 1_000_000)
        unit.connection.execute(_SESSION, (thread, session.id, write.row.automatic, timeout, opened_by))
        unit.names.sessions.pop(thread, None)


def _put_vector(unit: Unit, write: writes.PutVector) -> bool:
    row = write.row
    text = unit.connection.execute("SELECT text FROM log WHERE seq = ?", (row.seq,)).get
    unit.connection.execute(_NEW_EMBEDDER, (row.embedder, len(row.value) // 2))
    unit.connection.execute(_VECTOR, (row.embedder, row.seq, content_hash(text or ""), row.value))
    return bool(unit.connection.changes())


def _add_summary(unit: Unit, write: writes.AddSummary) -> int:
    summary = write.summary
    owner = unit.names.owner(summary.space, summary.user, now())
    values = records.summary_values(summary)
    row = {
        "id": unit.number("summary", write.least),
        "owner": owner,
        "thread": unit.names.thread(summary.space, summary.thread),
        **values,
        "chunks": json.dumps(values["chunks"], separators=(",", ":")),
    }
    number = unit.insert("summary", row)
    sources = [(number, source) for source in summary.sources]
    unit.connection.executemany(_SUMMARY_SOURCE, sources)
    note_search.index(unit, owner, NoteKey("summary", number), summary.text)
    return number


def _set_summary_state(unit: Unit, write: writes.SetSummaryState) -> None:
    summary = write.summary
    state = (summary.active, summary.replaced, summary.rolled_back)
    unit.connection.execute(_SUMMARY_STATE, (summary.id, *state))


def _add_memory(unit: Unit, write: writes.AddMemoryRow) -> int:
    memory = write.memory
    owner = unit.names.owner(memory.space, memory.user, now())
    row = {
        "id": unit.number("memory", write.least),
        "owner": owner,
        "created_at": records.number_of(memory.created_at),
        "revision": memory.revision,
        **_memory_columns(unit, memory),
    }
    number = unit.insert("memory", row)
    sources = [(number, seq) for seq in memory.sources]
    unit.connection.executemany(_MEMORY_SOURCE, sources)
    note_search.index(unit, owner, NoteKey("memory", number), memory.text)
    return number


def _put_memory(unit: Unit, write: writes.PutMemoryRow) -> None:
    memory = write.memory
    unit.connection.execute(_SET_MEMORY, (memory.id, memory.revision, *_memory_columns(unit, memory).values()))
    if memory.text != write.before:
        owner = unit.names.owner(memory.space, memory.user, now())
        note_search.index_again(unit, owner, NoteKey("memory", memory.id), write.before, memory.text)


def _add_memory_version(unit: Unit, write: writes.AddMemoryVersion) -> None:
    version, was = write.version, write.version.before
    row = {
        "memory": was.id,
        "revision": was.revision,
        "at": records.number_of(version.at),
        "actor": version.actor,
        "action": version.action,
        "was": json.dumps(_memory_columns(unit, was), ensure_ascii=False),
    }
    unit.insert("memory_version", row)


def _add_memory_sources(unit: Unit, write: writes.AddMemorySources) -> None:
    wanted = json.dumps(list(write.seqs))
    unit.connection.execute(_MORE_SOURCES, (write.memory, _owner(unit, write.scope), wanted, write.most))


def _set_successor(unit: Unit, write: writes.SetSuccessor) -> None:
    if write.revision is None:
        unit.connection.execute(_SUCCESSOR, (write.memory, write.by))
    else:
        unit.connection.execute(_SUCCESSOR_THEN, (write.memory, write.revision, write.by))


def _add_facts(unit: Unit, write: writes.AddFacts) -> None:
    facts = write.facts
    created = records.number_of(facts.updated_at)
    owner = unit.names.owner(facts.space, facts.user, created)
    row = {"owner": owner, "version": facts.version, "text": facts.text, "cause": facts.cause, "created_at": created}
    unit.insert("facts", row)


def _renumber_facts(unit: Unit, write: writes.RenumberFacts) -> None:
    owner = unit.names.owner(write.facts.space, write.facts.user, now())
    unit.connection.execute(_RENUMBER, (owner, write.facts.version))


def _add_tombstone(unit: Unit, write: writes.AddTombstone) -> None:
    unit.connection.execute(_TOMBSTONE, (_owner(unit, write.scope), write.words, write.up_to, now()))


def _put_derived(unit: Unit, write: writes.PutDerivedText) -> None:
    derived = write.derived
    row = {
        "owner": _owner(unit, write.scope),
        "kind": write.kind,
        "key": derived.key,
        "value": derived.value,
        "at": records.number_of(derived.at),
    }
    unit.insert("derived", row, replacing=("owner", "kind"))


def _store_setting(unit: Unit, write: writes.StoreSetting) -> None:
    setting = write.setting
    row = {
        "owner": _owner(unit, write.scope),
        "key": setting.key,
        "value": json.dumps(setting.value, ensure_ascii=False),
        "updated_at": records.number_of(setting.updated_at),
    }
    unit.insert("setting", row, replacing=("owner", "key"))


def _remove_setting(unit: Unit, write: writes.RemoveSetting) -> None:
    query = "DELETE FROM setting WHERE owner = ? AND key = ?"
    unit.connection.execute(query, (_owner(unit, write.scope), write.key))


def _set_progress(unit: Unit, write: writes.SetProgress) -> None:
    unit.insert("walk", {"policy": write.policy, "up_to": write.up_to}, replacing=("policy",))


def _put_entries(unit: Unit, write: writes.PutEntries) -> None:
    unit.connection.executemany(_ENTRY, [records.entry_values(entry) for entry in write.entries])


def _add_tokens(unit: Unit, write: writes.AddTokens) -> None:
    payer = ("", "") if write.user is None else (write.space, write.user)
    unit.connection.execute(_TOKENS, (write.day.isoformat(), *payer, write.tokens))


def _set_mark(unit: Unit, write: writes.SetMark) -> None:
    if write.value is None:
        unit.connection.execute("DELETE FROM mark WHERE name = ?", (write.name,))
    else:
        unit.insert("mark", {"name": write.name, "value": write.value}, replacing=("name",))


def _memory_columns(unit: Unit, memory: MemoryRecord) -> dict[str, Any]:
    speaker = None if memory.speaker == memory.user else unit.names.author(memory.space, memory.speaker, now())
    tags = json.dumps(memory.tags, ensure_ascii=False)
    return dict(zip(records.MEMORY, records.memory_values(memory, tags, speaker), strict=True))


WRITES: Final[Mapping[type[writes.Write[Any]], Callable[[Unit, Any], Any]]] = {
    writes.KeepUser: _keep_user,
    writes.MergeUser: _merge_user,
    writes.RecordAudit: _record_audit,
    writes.SetExtracted: _set_extracted,
    writes.SetLastChunk: _set_last_chunk,
    writes.ArchiveMessages: _archive_messages,
    writes.ReleaseMessages: _release_messages,
    writes.DescribeSession: _describe_session,
    writes.PutVector: _put_vector,
    writes.AddSummary: _add_summary,
    writes.SetSummaryState: _set_summary_state,
    writes.AddMemoryRow: _add_memory,
    writes.PutMemoryRow: _put_memory,
    writes.AddMemoryVersion: _add_memory_version,
    writes.AddMemorySources: _add_memory_sources,
    writes.SetSuccessor: _set_successor,
    writes.AddFacts: _add_facts,
    writes.RenumberFacts: _renumber_facts,
    writes.AddTombstone: _add_tombstone,
    writes.PutDerivedText: _put_derived,
    writes.StoreSetting: _store_setting,
    writes.RemoveSetting: _remove_setting,
    writes.SetProgress: _set_progress,
    writes.PutEntries: _put_entries,
    writes.AddTokens: _add_tokens,
    writes.SetMark: _set_mark,
    **erasing.WRITES,
}
