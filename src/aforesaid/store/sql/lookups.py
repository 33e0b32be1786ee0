"""What rules look up."""

from __future__ import annotations

from typing import Any, Final

from aforesaid.domain.details import TAKEN_BACK
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.summary import Summary
from aforesaid.store import questions, records
from aforesaid.store.questions import OfScope
from aforesaid.store.records import Row
from aforesaid.store.rules import lookups
from aforesaid.store.sql import memories, upkeep
from aforesaid.store.sql.statements import Answer, Answers, Select, Statement, first
from aforesaid.store.sql.summaries import of_rows
from aforesaid.store.sql.tables import A_THREAD, BY_NAME, ENTRY, OWNED, SUMMARY, USER, USER_ID, listed

_SEQS: Final = f"[[space = $1 AND ]]{listed('seq', '$2')}"
_SIMILAR: Final = f"""
{SUMMARY} WHERE [[y.space = $1 AND md5(y.thread) = md5($3) AND md5(y.prompt) = md5($8) AND ]]y.owner = {USER}
   AND y.thread = {A_THREAD.format("$3")} AND y.kind = $4 AND y.level = $5 AND y.first_seq = $6 AND y.last_seq = $7
   AND y.prompt = $8 AND y.day = $9 AND y.version = $10 AND
"""
_FIRST_STATED: Final = f"""
SELECT m.id FROM memory m
 WHERE [[m.space = $1 AND ]]m.owner = {USER} AND m.created_at = $3 AND coalesce((
     SELECT [[v.was ->> 'text' ~ json_extract(v.was, '$.text')]] FROM memory_version v
      WHERE [[v.space = $1 AND ]]v.memory = m.id AND v.revision = 1
 ), m.text) = $4
"""
_ITS_USER: Final = "[[m.owner FROM memory m ~ o.name FROM memory m JOIN person o ON o.id = m.owner]]"
_MESSAGE: Final = "SELECT l.seq, [[l.owner, l.thread ~ o.name, t.name]], l.at, l.chunk, length(l.text)"
_NAMES: Final = "JOIN person o ON o.id = l.owner JOIN thread t ON t.id = l.thread"
_WHO: Final = USER_ID.format("$2")
_MESSAGES_TO_PURGE: Final = f"""
{_MESSAGE} FROM [[log l WHERE l.space = $1 AND (l.owner = $2 OR (l.author = $2 AND l.role != $2))
 ~ (SELECT seq FROM log WHERE owner = {_WHO}
    UNION SELECT seq FROM log WHERE author = {_WHO} AND author != owner AND role != $2) g
  JOIN log l ON l.seq = g.seq {_NAMES}]]
"""
_SUMMARIES_OF_USERS: Final = f"""
{SUMMARY} WHERE [[y.space = $1 AND (y.owner = ANY($2::text[]) OR (y.kind = 'day' AND y.day = ANY($3::text[])))
 ~ y.id IN (
    SELECT s.id FROM person p JOIN summary s ON s.owner = p.id
     WHERE p.space = $1 AND p.name IN (SELECT value FROM json_each($2))
    UNION SELECT s.id FROM person p JOIN summary s ON s.owner = p.id
     WHERE p.space = $1 AND s.kind = 'day' AND s.day IN (SELECT value FROM json_each($3)))]]
"""
_RELATED: Final = f"""
{SUMMARY} WHERE [[y.space = $1 AND ]]y.id IN (
    SELECT summary FROM summary_source WHERE [[space = $1 AND ]]{listed("source", "$2")}
    UNION SELECT id FROM summary WHERE [[space = $1 AND ]]{listed("replaces", "$2")}
    UNION SELECT replaces FROM summary WHERE [[space = $1 AND ]]{listed("id", "$2")})
"""


def _whose(question: OfScope[Any]) -> tuple[str, str]:
    return question.scope[:2]


def _is_there(_: object, found: list[Row]) -> bool:
    return bool(found)


def _number(_: object, found: list[Row]) -> int:
    return found[0][0] if found else 0


def _messages(_: object, found: list[Row]) -> list[lookups.MessageToPurge]:
    return [lookups.MessageToPurge(*row) for row in found]


def _memories(_: object, found: list[Row]) -> list[lookups.MemoryToPurge]:
    return [lookups.MemoryToPurge(*row) for row in found]


def _similar(lookup: lookups.SimilarSummaries) -> Answer[list[Summary]]:
    it = lookup.summary
    same = it.kind, it.level, it.first, it.last, it.prompt, records.day_text(it.day), it.version
    values = it.space, it.user, it.thread, *same
    # In two parts, because two of SQLite's indexes find them.
    here, rolled_back = yield (
        Statement(f"{_SIMILAR} [[NOT y.rolled_back ~ y.rolled_back = 0]]", values),
        Statement(f"{_SIMILAR} [[y.rolled_back ~ y.rolled_back = 1]]", values),
    )
    return sorted(of_rows(lookup, here + rolled_back), key=lambda summary: summary.id)


def _first_stated(lookup: lookups.MemoryFirstStated) -> Answer[MemoryRecord | None]:
    found = yield from first(_FIRST_STATED, *_whose(lookup), lookup.created_at, lookup.text)
    return None if found is None else (yield from memories.memory(questions.MemoryById(lookup.scope, *found)))


LOOKUPS: Final[Answers] = {
    lookups.IsUser: Select("SELECT 1 FROM person WHERE space = $1 AND name = $2 AND owner", _whose, _is_there),
    lookups.LastChunk: Select("SELECT last_chunk FROM person WHERE space = $1 AND name = $2", _whose, _number),
    lookups.Extracted: Select("SELECT extracted FROM person WHERE space = $1 AND name = $2", _whose, _number),
    lookups.NewestMemory: Select(
        f"SELECT coalesce(max(id), 0) FROM memory WHERE [[space = $1 AND ]]owner = {USER}", _whose, _number
    ),
    lookups.MessagesUpTo: Select(
        f"SELECT count(*) FROM log WHERE {OWNED} AND seq <= $3", lambda lookup: (*_whose(lookup), lookup.seq), _number
    ),
    lookups.MessagesCovered: Select(
        f"""
        SELECT count(*), min(seq), max(seq), min(at), max(at), count(*) FILTER (WHERE NOT replaced) FROM log
         WHERE {OWNED} AND seq BETWEEN $3 AND $4 AND at >= $5 AND at < $6 AND ([[$7::text ~ $7]] IS NULL
            OR thread = {A_THREAD.format("$7")})
        """,
        lambda lookup: (
            *_whose(lookup),
            *(lookup.first, lookup.last, lookup.since, lookup.until),
            lookup.scope.thread if lookup.here else None,
        ),
        lambda _, found: lookups.Coverage(*found[0]) if found[0][0] else None,
    ),
    lookups.IsChangedSince: Select(
        f"""
        SELECT 1 FROM log WHERE {OWNED} AND seq BETWEEN $3 AND $4 AND [[replaced ~ replaced = 1]] AND EXISTS (
            SELECT 1 FROM log n WHERE [[n.space = $1 AND ]]n.replaces = log.seq AND n.stored_at > $5) LIMIT 1
        """,
        lambda lookup: (*_whose(lookup), lookup.first, lookup.last, lookup.since),
        _is_there,
    ),
    lookups.ChunkMessages: Select(
        f"SELECT seq, role FROM log WHERE {OWNED} AND chunk = $3",
        lambda lookup: (*_whose(lookup), lookup.chunk),
        lambda _, found: found,
    ),
    lookups.SummariesByNumber: Select(
        f"{SUMMARY} WHERE [[y.space = $1 AND ]]y.owner = {USER} AND {listed('y.id', '$3')} ORDER BY y.id",
        lambda lookup: (*_whose(lookup), list(lookup.numbers)),
        of_rows,
    ),
    lookups.SummariesMadeFrom: Select(
        f"""
        {SUMMARY} WHERE [[y.space = $1 AND NOT y.rolled_back ~ y.rolled_back = 0]] AND y.id IN (
            SELECT summary FROM summary_source WHERE [[space = $1 AND ]]{listed("source", "$2")}) ORDER BY y.id
        """,
        lambda lookup: (lookup.space, list(lookup.numbers)),
        of_rows,
    ),
    lookups.SimilarSummaries: _similar,
    lookups.MemoryFirstStated: _first_stated,
    lookups.AuditIsKnown: Select(
        f"SELECT 1 FROM audit WHERE {BY_NAME} AND at = $3 AND actor = $4 AND action = $5 AND subject = $6",
        lambda lookup: (
            *(lookup.entry.space, lookup.entry.user, records.number_of(lookup.entry.at)),
            *(lookup.entry.actor, lookup.entry.action, lookup.entry.subject),
        ),
        _is_there,
    ),
    lookups.Progress: Select(
        "SELECT up_to FROM walk WHERE [[space = $1 AND ]]policy = $2",
        lambda lookup: (lookup.space, lookup.policy),
        _number,
    ),
    lookups.MessagesPassed: Select(
        "SELECT count(*) FROM log WHERE [[space = $1 AND ]]seq > $2 AND seq <= $3",
        lambda lookup: (lookup.space, lookup.after, lookup.up_to),
        _number,
    ),
    lookups.WasPurged: Select(f"SELECT 1 FROM audit WHERE {BY_NAME} AND action = 'purge' LIMIT 1", _whose, _is_there),
    lookups.MessagesToPurge: Select(_MESSAGES_TO_PURGE, _whose, _messages),
    lookups.MemoriesToPurge: Select(
        f"""
        SELECT m.id, {_ITS_USER} WHERE [[m.space = $1 AND ]]m.id IN (
            SELECT id FROM memory WHERE {OWNED}
            UNION SELECT id FROM memory WHERE [[space = $1 AND ]]speaker = {USER}
            UNION SELECT memory FROM memory_version
             WHERE [[space = $1 AND was ->> 'speaker' ~ json_extract(was, '$.speaker')]] = {USER}
            UNION SELECT memory FROM memory_source WHERE [[space = $1 AND ]]{listed("seq", "$3")})
        """,
        lambda lookup: (*_whose(lookup), list(lookup.seqs)),
        _memories,
    ),
    lookups.MemoriesFrom: Select(
        f"""
        SELECT m.id, {_ITS_USER}
         WHERE [[m.space = $1 AND ]]m.id IN (SELECT memory FROM memory_source WHERE {_SEQS})
        """,
        lambda lookup: (lookup.space, list(lookup.seqs)),
        _memories,
    ),
    lookups.SourcesOf: Select(
        f"""
        {_MESSAGE} FROM log l[[ ~  {_NAMES}]] WHERE [[l.space = $1 AND ]]l.seq IN (
            SELECT seq FROM memory_source WHERE [[space = $1 AND ]]{listed("memory", "$2")})
        """,
        lambda lookup: (lookup.space, list(lookup.memories)),
        _messages,
    ),
    lookups.TakenBackBefore: Select(
        f"""
        WITH RECURSIVE earlier (seq) AS (
            SELECT replaces FROM log WHERE {_SEQS} AND details = '{TAKEN_BACK}' AND replaces IS NOT NULL
            UNION SELECT l.replaces FROM earlier e JOIN log l ON [[l.space = $1 AND ]]l.seq = e.seq
             WHERE l.replaces IS NOT NULL
        ) {_MESSAGE} FROM log l[[ ~  {_NAMES}]] WHERE [[l.space = $1 AND ]]l.seq IN (SELECT seq FROM earlier)
             AND [[l.seq != ALL($2::bigint[]) ~ l.seq NOT IN (SELECT value FROM json_each($2))]]
        """,
        lambda lookup: (lookup.space, list(lookup.seqs)),
        _messages,
    ),
    lookups.SummariesOfUsers: Select(
        _SUMMARIES_OF_USERS,
        lambda lookup: (lookup.space, list(lookup.users), [day.isoformat() for day in lookup.days]),
        of_rows,
    ),
    lookups.RelatedSummaries: Select(_RELATED, lambda lookup: (lookup.space, list(lookup.numbers)), of_rows),
    lookups.EntriesOfUsers: Select(
        f"{ENTRY} WHERE space = $1 AND [[owner = ANY($2::text[]) ~ user IN (SELECT value FROM json_each($2))]]",
        lambda lookup: (lookup.space, list(lookup.users)),
        lambda _, found: [records.entry(row) for row in found],
    ),
    lookups.OldRows: lambda lookup: Select(
        f"{upkeep.OLD_ROWS[lookup.table]} LIMIT $3",
        lambda lookup: (lookup.before, lookup.space, lookup.limit),
        lambda _, found: [lookups.OldRow(*row) for row in found],
    )(lookup),
}
"""All but `PlannedEntries`, whose rows may be of several spaces."""
