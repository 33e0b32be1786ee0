"""The writes of rules, in PostgreSQL. They are sent with the next question, or at the end of the transaction."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aforesaid.domain.checks import microseconds
from aforesaid.domain.clock import now
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.store import records
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.hashed import hashed
from aforesaid.store.postgres import erasing
from aforesaid.store.postgres.note_search import embed_again
from aforesaid.store.postgres.packages import HalfVector
from aforesaid.store.postgres.queries import insert_rows
from aforesaid.store.postgres.unit import Unit
from aforesaid.store.postgres.vectors import content_hash
from aforesaid.store.rules import writes
from aforesaid.text.terms import terms

_USER: Final = "space = $1 AND name = $2"
_NUMBERED: Final = "space = $1 AND id = $2"
_MERGE_USER: Final = CHECKSUMS.update(
    "person",
    _USER,
    created_at="least(created_at, $3::bigint)",
    last_chunk="greatest(last_chunk, $4::bigint)",
    extracted="greatest(extracted, $5::bigint)",
)
_SET_EXTRACTED: Final = CHECKSUMS.update("person", _USER, extracted="$3")
_SET_LAST_CHUNK: Final = CHECKSUMS.update("person", _USER, last_chunk="$3")
_ARCHIVE: Final = "UPDATE log SET active = false, chunk = $2 WHERE space = $1 AND seq = ANY($3::bigint[])"
_RELEASE: Final = "UPDATE log SET active = true, chunk = NULL WHERE space = $1 AND owner = $2 AND chunk = $3"
_ARCHIVED: Final = """
UPDATE person SET archived = archived + $3, open_turns = open_turns - $4 WHERE space = $1 AND name = $2
"""
_AUTHOR: Final = CHECKSUMS.insert("person", ("space", "name", "created_at", "revision"), "ON CONFLICT DO NOTHING")
_SESSION: Final = CHECKSUMS.update(
    "session",
    "space = $1 AND name = $3 AND md5(thread) = md5($2) AND thread = $2",
    automatic="$4",
    timeout="$5",
    opened_by="$6",
)
_TEXT: Final = "SELECT text FROM log WHERE space = $1 AND seq = $2"
_VECTOR: Final = """
INSERT INTO meaning (space, seq, embedder, owner, content, value)
SELECT space, seq, $3, owner, $4, $5 FROM log WHERE space = $1 AND seq = $2
ON CONFLICT DO NOTHING RETURNING 1
"""
_THREAD: Final = CHECKSUMS.insert("thread", ("space", "name", "revision"), "ON CONFLICT DO NOTHING")
# Read from a table of the space, so that Citus sends the whole statement to the shard of the space.
_SUMMARY_SOURCES: Final = CHECKSUMS.insert_selected(
    "summary_source",
    {"space": "space.space", "summary": "$2", "source": "source"},
    "FROM space CROSS JOIN unnest($3::bigint[]) AS source WHERE space = $1",
)
_SUMMARY_STATE: Final = CHECKSUMS.update("summary", _NUMBERED, active="$3", replaced="$4", rolled_back="$5")
_SET_MEMORY: Final = CHECKSUMS.update(
    "memory", _NUMBERED, **{name: f"${place}" for place, name in enumerate(("terms", "revision", *records.MEMORY), 3)}
)
_MEMORY_SOURCES: Final = CHECKSUMS.insert_selected(
    "memory_source",
    {"space": "space.space", "memory": "$2", "seq": "seq"},
    "FROM space CROSS JOIN unnest($3::bigint[]) AS seq WHERE space = $1",
)
_MORE_SOURCES: Final = CHECKSUMS.insert_selected(
    "memory_source",
    {"space": "l.space", "memory": "$2", "seq": "l.seq"},
    """
    FROM log l WHERE l.space = $1 AND l.owner = $3 AND l.seq = ANY($4::bigint[]) ORDER BY l.seq
    LIMIT greatest(0, $5 - (SELECT count(*) FROM memory_source WHERE space = $1 AND memory = $2))
    ON CONFLICT DO NOTHING
    """,
)
_SUCCESSOR: Final = CHECKSUMS.update("memory", _NUMBERED, superseded_by="$3")
_SUCCESSOR_THEN: Final = CHECKSUMS.update(
    "memory_version",
    "space = $1 AND memory = $2 AND revision = $3",
    was="jsonb_set(was::jsonb, '{superseded_by}', to_jsonb($4::bigint))::json",
)
_RENUMBER: Final = CHECKSUMS.update("facts", "space = $1 AND owner = $2 AND version = $3", version="version + 1")
_TOMBSTONE: Final = CHECKSUMS.insert_selected(
    "forgotten",
    {
        "space": "space",
        "id": "$3",
        "owner": "name",
        "words": "$4",
        "up_to": "coalesce($5::bigint, last_seq)",
        "at": "$6",
    },
    "FROM person WHERE space = $1 AND name = $2",
)
_REMOVE_SETTING: Final = "DELETE FROM setting WHERE space = $1 AND owner = $2 AND key = $3"
_ENTRIES: Final = insert_rows(
    "agenda",
    CHECKSUMS.replacing("agenda", "space", "policy", "owner", "thread", "day", derived=True),
    **{name: column.type for name, column in CHECKSUMS.columns["agenda"].items() if name != "space"},
)
_TOKENS: Final = CHECKSUMS.insert(
    "spending",
    ("space", "day", "owner", "tokens"),
    f"""
    ON CONFLICT (space, day, owner)
    DO UPDATE SET {CHECKSUMS.setting("spending", tokens="spending.tokens + excluded.tokens")}
    """,
)


def _keep_user(unit: Unit, write: writes.KeepUser) -> None:
    unit.own(write.scope, write.at)


def _merge_user(unit: Unit, write: writes.MergeUser) -> None:
    unit.later(_MERGE_USER, *_name(write.scope), write.created_at, write.last_chunk, write.extracted)


def _record_audit(unit: Unit, write: writes.RecordAudit) -> None:
    unit.audit(write.scope, write.actor, write.action, write.subject, write.at)


def _set_extracted(unit: Unit, write: writes.SetExtracted) -> None:
    unit.later(_SET_EXTRACTED, *_name(write.scope), write.up_to)


def _set_last_chunk(unit: Unit, write: writes.SetLastChunk) -> None:
    unit.later(_SET_LAST_CHUNK, *_name(write.scope), write.chunk)


def _archive_messages(unit: Unit, write: writes.ArchiveMessages) -> None:
    unit.later(_ARCHIVE, write.scope.space, write.chunk, list(write.seqs))
    unit.later(_ARCHIVED, *_name(write.scope), len(write.seqs), write.turns)


def _release_messages(unit: Unit, write: writes.ReleaseMessages) -> None:
    unit.later(_RELEASE, *_name(write.scope), write.chunk)
    unit.later(_ARCHIVED, *_name(write.scope), -write.messages, -write.turns)


def _describe_session(unit: Unit, write: writes.DescribeSession) -> None:
    session = write.row.session
    started = microseconds(session.started_at, "the time")
    unit.later(_AUTHOR, session.space, session.user, started, unit.numbers[session.space].first_revision)
    timeout = round(session.timeout.total_seconds() * 1_000_000)
    unit.later(_SESSION, session.space, session.thread, session.id, write.row.automatic, timeout, session.user)


async def _put_vector(unit: Unit, write: writes.PutVector) -> bool:
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    row = write.row
    text = await unit.value(_TEXT, row.space, row.seq)
    value = HalfVector(np.frombuffer(row.value, dtype=np.float16))
    return bool(await unit.rows(_VECTOR, row.space, row.seq, row.embedder, content_hash(text or ""), value))


def _add_summary(unit: Unit, write: writes.AddSummary) -> int:
    summary, numbers = write.summary, unit.numbers[write.summary.space]
    numbers.summary = max(numbers.summary + 1, write.least)
    unit.later(_THREAD, summary.space, summary.thread, numbers.first_revision)
    row = {
        "space": summary.space,
        "id": numbers.summary,
        "owner": summary.user,
        "thread": summary.thread,
        "terms": hashed(terms(summary.text)),
        **records.summary_values(summary),
    }
    unit.insert("summary", row)
    if summary.sources:
        unit.later(_SUMMARY_SOURCES, summary.space, numbers.summary, list(summary.sources))
    return numbers.summary


def _set_summary_state(unit: Unit, write: writes.SetSummaryState) -> None:
    summary = write.summary
    state = (summary.active, summary.replaced, summary.rolled_back)
    unit.later(_SUMMARY_STATE, summary.space, summary.id, *state)


def _add_memory(unit: Unit, write: writes.AddMemoryRow) -> int:
    memory, numbers = write.memory, unit.numbers[write.memory.space]
    numbers.memory = max(numbers.memory + 1, write.least)
    row = {
        "space": memory.space,
        "id": numbers.memory,
        "owner": memory.user,
        "created_at": records.number_of(memory.created_at),
        "revision": memory.revision,
        "terms": hashed(terms(memory.text)),
        **_memory_columns(memory),
    }
    unit.insert("memory", row)
    if memory.sources:
        unit.later(_MEMORY_SOURCES, memory.space, numbers.memory, list(memory.sources))
    return numbers.memory


def _put_memory(unit: Unit, write: writes.PutMemoryRow) -> None:
    memory = write.memory
    values = (hashed(terms(memory.text)), memory.revision, *_memory_columns(memory).values())
    unit.later(_SET_MEMORY, memory.space, memory.id, *values)
    if memory.text != write.before:
        embed_again(unit, Scope.of(memory.user, memory.space), memory.id)


def _add_memory_version(unit: Unit, write: writes.AddMemoryVersion) -> None:
    version, was = write.version, write.version.before
    row = {
        "space": was.space,
        "memory": was.id,
        "revision": was.revision,
        "at": records.number_of(version.at),
        "actor": version.actor,
        "action": version.action,
        "was": json.dumps(_memory_columns(was), ensure_ascii=False),
    }
    unit.insert("memory_version", row)


def _add_memory_sources(unit: Unit, write: writes.AddMemorySources) -> None:
    scope = write.scope
    unit.later(_MORE_SOURCES, scope.space, write.memory, scope.user, list(write.seqs), write.most)


def _set_successor(unit: Unit, write: writes.SetSuccessor) -> None:
    if write.revision is None:
        unit.later(_SUCCESSOR, write.space, write.memory, write.by)
    else:
        unit.later(_SUCCESSOR_THEN, write.space, write.memory, write.revision, write.by)


def _add_facts(unit: Unit, write: writes.AddFacts) -> None:
    facts = write.facts
    row = {
        "space": facts.space,
        "owner": facts.user,
        "version": facts.version,
        "text": facts.text,
        "cause": facts.cause,
        "created_at": records.number_of(facts.updated_at),
    }
    unit.insert("facts", row)


def _renumber_facts(unit: Unit, write: writes.RenumberFacts) -> None:
    unit.later(_RENUMBER, write.facts.space, write.facts.user, write.facts.version)


def _add_tombstone(unit: Unit, write: writes.AddTombstone) -> None:
    numbers = unit.numbers[write.scope.space]
    numbers.forgotten += 1
    unit.later(_TOMBSTONE, *_name(write.scope), numbers.forgotten, write.words, write.up_to, now())


def _put_derived(unit: Unit, write: writes.PutDerivedText) -> None:
    derived = write.derived
    row = {
        "space": write.scope.space,
        "owner": write.scope.user,
        "kind": write.kind,
        "key": derived.key,
        "value": derived.value,
        "at": records.number_of(derived.at),
    }
    unit.insert("derived", row, replacing=("space", "owner", "kind"))


def _store_setting(unit: Unit, write: writes.StoreSetting) -> None:
    setting = write.setting
    row = {
        "space": write.scope.space,
        "owner": write.scope.user,
        "key": setting.key,
        "value": json.dumps(setting.value, ensure_ascii=False),
        "updated_at": records.number_of(setting.updated_at),
    }
    unit.insert("setting", row, replacing=("space", "owner", "key"))


def _remove_setting(unit: Unit, write: writes.RemoveSetting) -> None:
    unit.later(_REMOVE_SETTING, *_name(write.scope), write.key)


def _set_progress(unit: Unit, write: writes.SetProgress) -> None:
    row = {"space": write.space, "policy": write.policy, "up_to": write.up_to}
    unit.insert("walk", row, replacing=("space", "policy"))


def _put_entries(unit: Unit, write: writes.PutEntries) -> None:
    values = [records.entry_values(entry) for entry in write.entries]
    unit.later_rows(_ENTRIES, [(space, policy, *others) for policy, space, *others in values])


def _add_tokens(unit: Unit, write: writes.AddTokens) -> None:
    unit.later(_TOKENS, write.space, write.day.isoformat(), write.user or "", write.tokens)


def _set_mark(unit: Unit, write: writes.SetMark) -> None:
    if write.value is None:
        unit.later("DELETE FROM mark WHERE space = '' AND name = $1", write.name)
    else:
        unit.insert("mark", {"space": "", "name": write.name, "value": write.value}, replacing=("space", "name"))


def _name(scope: Scope) -> tuple[str, str]:
    return scope.space, scope.user


def _memory_columns(memory: MemoryRecord) -> dict[str, Any]:
    speaker = None if memory.speaker == memory.user else memory.speaker
    return dict(zip(records.MEMORY, records.memory_values(memory, list(memory.tags), speaker), strict=True))


WRITES: Final[Mapping[type[writes.Write[Any]], Callable[[Unit, Any], Any | Awaitable[Any]]]] = {
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
