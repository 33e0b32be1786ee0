"""The writes of rules that are the same in SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from aforesaid.domain.checks import now
from aforesaid.domain.context_receipt import receipt_details
from aforesaid.domain.details import TAKEN_BACK
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.store import questions, records
from aforesaid.store.checksums import POSTGRES, SQLITE, Checksums
from aforesaid.store.operations import performers
from aforesaid.store.questions import OfScope
from aforesaid.store.records import Row
from aforesaid.store.rules import writes
from aforesaid.store.sql import people, upkeep
from aforesaid.store.sql.appending import A_THREAD, BY_NAME, ENTRY, OWNED, SUMMARY, USER, USER_ID, listed
from aforesaid.store.sql.people import of_rows
from aforesaid.store.sql.statements import Answer, Answers, Select, Statement, first

_USER_ROW: Final = "space = $1 AND name = $2"
_NUMBERED: Final = "[[space = $1 AND ]]id = $2"
_ARCHIVE: Final = f"UPDATE log SET active = false, chunk = $2 WHERE [[space = $1 AND ]]{listed('seq', '$3')}"
_RELEASE: Final = f"UPDATE log SET active = true, chunk = NULL WHERE {OWNED} AND chunk = $3"
_HIDE: Final = f"UPDATE log SET replaced = true WHERE [[space = $1 AND ]]{listed('seq', '$2')}"
_ARCHIVED: Final = f"UPDATE person SET archived = archived + $3, open_turns = open_turns - $4 WHERE {_USER_ROW}"
_REMOVE_SETTING: Final = f"DELETE FROM setting WHERE {OWNED} AND key = $3"
_REMOVE_MARK: Final = "DELETE FROM mark WHERE [[space = '' AND ]]name = $1"


def _both(made: Callable[[Checksums], str]) -> str:
    """Return a statement that is made for each of the databases."""
    return f"[[{made(POSTGRES)} ~ {made(SQLITE)}]]"


def _inserting(table: str, values: Mapping[str, str], in_postgres: str, in_sqlite: str) -> str:
    """Return an INSERT of what `SELECT values …` finds, for both databases. In PostgreSQL, a row has its space too."""
    postgres = POSTGRES.insert_selected(table, {"space": "space", **values}, in_postgres)
    return f"[[{postgres} ~ {SQLITE.insert_selected(table, values, in_sqlite)}]]"


_MERGE_USER: Final = _both(
    lambda checksums: checksums.update(
        "person",
        _USER_ROW,
        created_at="[[least ~ min]](created_at, [[$3::bigint ~ $3]])",
        last_chunk="[[greatest ~ max]](last_chunk, [[$4::bigint ~ $4]])",
        extracted="[[greatest ~ max]](extracted, [[$5::bigint ~ $5]])",
    )
)
_SUCCESSOR_THEN: Final = _both(
    lambda checksums: checksums.update(
        "memory_version",
        "[[space = $1 AND ]]memory = $2 AND revision = $3",
        was="""[[jsonb_set(was::jsonb, '{superseded_by}', to_jsonb($4::bigint))::json
        ~ json_set(was, '$.superseded_by', $4)]]""",
    )
)
_RENUMBER: Final = _both(
    lambda checksums: checksums.update("facts", f"{OWNED} AND version = $3", version="version + 1")
)
# In PostgreSQL, read from a table of the space, so that Citus sends the whole statement to the shard of the space.
_LISTED: Final = "FROM space CROSS JOIN unnest($3::bigint[]) AS value WHERE space = $1", "FROM json_each($3)"
_SUMMARY_SOURCES: Final = _inserting("summary_source", {"summary": "$2", "source": "value"}, *_LISTED)
_MEMORY_SOURCES: Final = _inserting("memory_source", {"memory": "$2", "seq": "value"}, *_LISTED)
_MORE_SOURCES: Final = _inserting(
    "memory_source",
    {"memory": "$2", "seq": "seq"},
    *[
        f"""
        FROM log WHERE [[space = $1 AND ]]owner = {USER.replace("$2", "$3")} AND {listed("seq", "$4")} ORDER BY seq
        LIMIT [[greatest ~ max]](0, $5 - (
            SELECT count(*) FROM memory_source WHERE [[space = $1 AND ]]memory = $2)) ON CONFLICT DO NOTHING
        """
    ]
    * 2,
)
_TOMBSTONE: Final = _inserting(
    "forgotten",
    {
        "id": "$3",
        "owner": "[[name ~ person.id]]",
        "words": "$4",
        "up_to": "coalesce([[$5::bigint ~ $5]], last_seq)",
        "at": "$6",
    },
    *[f"FROM person WHERE {_USER_ROW}"] * 2,
)


class WriteTransaction(Protocol):
    """What the transaction of a database does for these writes."""

    def later(self, text: str, *values: Any) -> None:  # noqa: ANN401 - whatever the text binds
        """Run a statement for both databases, at the latest before the next question is answered."""

    def insert(self, table: str, row: Mapping[str, Any], *, replacing: tuple[str, ...] = ()) -> None:
        """Insert a row with its checksum. `replacing` is the key of a row that it may take the place of."""

    def update(self, table: str, where: str, key: tuple[Any, ...], **values: Any) -> None:  # noqa: ANN401
        """Set columns of the rows that a condition finds, and their checksums. `key` is what the condition binds."""

    def number(self, table: str, space: str, least: int = 0) -> int:
        """Return the number of a new row, which is at least `least`."""

    def space(self, space: str) -> dict[str, str]:
        """Return the column that names the space of a row; SQLite has none."""

    def whose(self, space: str, user: str) -> dict[str, Any]:
        """Return the columns that name the owner of a row."""

    def person(self, space: str, name: str) -> Any:  # noqa: ANN401 - a number or a name
        """Return what a column holds of a person, who is stored if they are new."""

    def thread(self, space: str, name: str) -> Any:  # noqa: ANN401
        """Return what a column holds of a thread, which is stored if it is new."""

    def array(self, values: Sequence[str]) -> Any:  # noqa: ANN401 - an array or JSON
        """Return what a column holds of several texts."""

    def terms(self, text: str) -> dict[str, Any]:
        """Return the column by which the words of a note are found; SQLite has an index instead."""

    def own(self, scope: Scope, at: int) -> None:
        """Write down that something belongs to a user."""

    def audit(self, scope: Scope, actor: str, action: str, subject: str, at: int | None = None) -> None:
        """Add a row to the audit log."""


def _merge_user(transaction: WriteTransaction, write: writes.MergeUser) -> None:
    values = write.created_at, write.last_chunk, write.extracted
    transaction.later(_MERGE_USER, *write.scope[:2], *values)


def _archive_messages(transaction: WriteTransaction, write: writes.ArchiveMessages) -> None:
    transaction.later(_ARCHIVE, write.scope.space, write.chunk, list(write.seqs))
    transaction.later(_ARCHIVED, *write.scope[:2], len(write.seqs), write.turns)


def _release_messages(transaction: WriteTransaction, write: writes.ReleaseMessages) -> None:
    transaction.later(_RELEASE, *write.scope[:2], write.chunk)
    transaction.later(_ARCHIVED, *write.scope[:2], -write.messages, -write.turns)


def _hide_messages(transaction: WriteTransaction, write: writes.HideMessages) -> None:
    transaction.later(_HIDE, write.scope.space, list(write.seqs))


def add_summary(transaction: WriteTransaction, write: writes.AddSummary) -> int:
    """Store a summary and its sources, and return its number."""
    summary = write.summary
    number = transaction.number("summary", summary.space, write.least)
    row = {
        "id": number,
        **transaction.whose(summary.space, summary.user),
        "thread": transaction.thread(summary.space, summary.thread),
        **transaction.terms(summary.text),
        **records.summary_values(summary),
    }
    transaction.insert("summary", row)
    if summary.sources:
        transaction.later(_SUMMARY_SOURCES, summary.space, number, list(summary.sources))
    return number


def _set_summary_state(transaction: WriteTransaction, write: writes.SetSummaryState) -> None:
    it = write.summary
    state = {"active": it.active, "replaced": it.replaced, "rolled_back": it.rolled_back}
    transaction.update("summary", _NUMBERED, (it.space, it.id), **state)


def add_memory(transaction: WriteTransaction, write: writes.AddMemoryRow) -> int:
    """Store a memory and its sources, and return its number."""
    memory = write.memory
    number = transaction.number("memory", memory.space, write.least)
    row = {
        "id": number,
        **transaction.whose(memory.space, memory.user),
        "created_at": records.number_of(memory.created_at),
        "revision": memory.revision,
        **transaction.terms(memory.text),
        **_memory_columns(transaction, memory),
    }
    transaction.insert("memory", row)
    if memory.sources:
        transaction.later(_MEMORY_SOURCES, memory.space, number, list(memory.sources))
    return number


def put_memory(transaction: WriteTransaction, memory: MemoryRecord) -> None:
    """Store the columns of a memory that a change may set."""
    values = {"revision": memory.revision, **transaction.terms(memory.text), **_memory_columns(transaction, memory)}
    transaction.update("memory", _NUMBERED, (memory.space, memory.id), **values)


def _add_memory_version(transaction: WriteTransaction, write: writes.AddMemoryVersion) -> None:
    version, was = write.version, write.version.before
    row = {
        **transaction.space(was.space),
        "memory": was.id,
        "revision": was.revision,
        "at": records.number_of(version.at),
        "actor": version.actor,
        "action": version.action,
        "was": json.dumps(_memory_columns(transaction, was), ensure_ascii=False),
    }
    transaction.insert("memory_version", row)


def _add_memory_sources(transaction: WriteTransaction, write: writes.AddMemorySources) -> None:
    scope = write.scope
    transaction.later(_MORE_SOURCES, scope.space, write.memory, scope.user, list(write.seqs), write.most)


def _set_successor(transaction: WriteTransaction, write: writes.SetSuccessor) -> None:
    if write.revision is None:
        transaction.update("memory", _NUMBERED, (write.space, write.memory), superseded_by=write.by)
    else:
        transaction.later(_SUCCESSOR_THEN, write.space, write.memory, write.revision, write.by)


def _add_facts(transaction: WriteTransaction, write: writes.AddFacts) -> None:
    facts = write.facts
    row = {
        **transaction.whose(facts.space, facts.user),
        "version": facts.version,
        "text": facts.text,
        "cause": facts.cause,
        "created_at": records.number_of(facts.updated_at),
    }
    transaction.insert("facts", row)


def _renumber_facts(transaction: WriteTransaction, write: writes.RenumberFacts) -> None:
    transaction.later(_RENUMBER, write.facts.space, write.facts.user, write.facts.version)


def _add_tombstone(transaction: WriteTransaction, write: writes.AddTombstone) -> None:
    number = transaction.number("forgotten", write.scope.space)
    transaction.later(_TOMBSTONE, *write.scope[:2], number, write.words, write.up_to, now())


def _put_derived(transaction: WriteTransaction, write: writes.PutDerivedText) -> None:
    whose, derived = transaction.whose(*write.scope[:2]), write.derived
    row = {"kind": write.kind, "key": derived.key, "value": derived.value, "at": records.number_of(derived.at)}
    transaction.insert("derived", {**whose, **row}, replacing=(*whose, "kind"))


def _put_receipt(transaction: WriteTransaction, write: writes.PutReceipt) -> None:
    receipt = write.receipt
    whose = transaction.whose(receipt.space, receipt.user)
    row = {
        "id": receipt.id,
        "at": records.number_of(receipt.at),
        "reply": receipt.reply,
        "details": json.dumps(receipt_details(receipt), ensure_ascii=False, separators=(",", ":")),
    }
    transaction.insert("receipt", {**whose, **row}, replacing=(*whose, "id"))


def _store_setting(transaction: WriteTransaction, write: writes.StoreSetting) -> None:
    whose, setting = transaction.whose(*write.scope[:2]), write.setting
    row = {
        "key": setting.key,
        "value": json.dumps(setting.value, ensure_ascii=False),
        "updated_at": records.number_of(setting.updated_at),
    }
    transaction.insert("setting", {**whose, **row}, replacing=(*whose, "key"))


def _set_progress(transaction: WriteTransaction, write: writes.SetProgress) -> None:
    space = transaction.space(write.space)
    transaction.insert("walk", {**space, "policy": write.policy, "up_to": write.up_to}, replacing=(*space, "policy"))


def _set_mark(transaction: WriteTransaction, write: writes.SetMark) -> None:
    if write.value is None:
        transaction.later(_REMOVE_MARK, write.name)
    else:
        space = transaction.space("")
        transaction.insert("mark", {**space, "name": write.name, "value": write.value}, replacing=(*space, "name"))


def _memory_columns(transaction: WriteTransaction, memory: MemoryRecord) -> dict[str, Any]:
    speaker = None if memory.speaker == memory.user else transaction.person(memory.space, memory.speaker)
    return dict(
        zip(records.MEMORY, records.memory_values(memory, transaction.array(memory.tags), speaker), strict=True)
    )


WRITES: Final[Mapping[type, Callable[[Any, Any], Any | Awaitable[Any]]]] = {
    **performers(writes.Write, globals()),
    writes.KeepUser: lambda within, write: within.own(write.scope, write.at),
    writes.RecordAudit: lambda within, write: within.audit(
        write.scope, write.actor, write.action, write.subject, write.at
    ),
    writes.SetExtracted: lambda within, write: within.update(
        "person", _USER_ROW, write.scope[:2], extracted=write.up_to
    ),
    writes.SetLastChunk: lambda within, write: within.update(
        "person", _USER_ROW, write.scope[:2], last_chunk=write.chunk
    ),
    writes.RemoveSetting: lambda within, write: within.later(_REMOVE_SETTING, *write.scope[:2], write.key),
}
"""All but those for which each store has its own way."""


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


def _messages(_: object, found: list[Row]) -> list[writes.MessageToPurge]:
    return [writes.MessageToPurge(*row) for row in found]


def _memories(_: object, found: list[Row]) -> list[writes.MemoryToPurge]:
    return [writes.MemoryToPurge(*row) for row in found]


def _similar(lookup: writes.SimilarSummaries) -> Answer[list[Summary]]:
    it = lookup.summary
    same = it.kind, it.level, it.first, it.last, it.prompt, records.day_text(it.day), it.version
    values = it.space, it.user, it.thread, *same
    # In two parts, because two of SQLite's indexes find them.
    here, rolled_back = yield (
        Statement(f"{_SIMILAR} [[NOT y.rolled_back ~ y.rolled_back = 0]]", values),
        Statement(f"{_SIMILAR} [[y.rolled_back ~ y.rolled_back = 1]]", values),
    )
    return sorted(of_rows(lookup, here + rolled_back), key=lambda summary: summary.id)


def _first_stated(lookup: writes.MemoryFirstStated) -> Answer[MemoryRecord | None]:
    found = yield from first(_FIRST_STATED, *_whose(lookup), lookup.created_at, lookup.text)
    return None if found is None else (yield from people.memory(questions.MemoryById(lookup.scope, *found)))


LOOKUPS: Final[Answers] = {
    writes.IsUser: Select("SELECT 1 FROM person WHERE space = $1 AND name = $2 AND owner", _whose, _is_there),
    writes.LastChunk: Select("SELECT last_chunk FROM person WHERE space = $1 AND name = $2", _whose, _number),
    writes.Extracted: Select("SELECT extracted FROM person WHERE space = $1 AND name = $2", _whose, _number),
    writes.NewestMemory: Select(
        f"SELECT coalesce(max(id), 0) FROM memory WHERE [[space = $1 AND ]]owner = {USER}", _whose, _number
    ),
    writes.MessagesUpTo: Select(
        f"SELECT count(*) FROM log WHERE {OWNED} AND seq <= $3", lambda lookup: (*_whose(lookup), lookup.seq), _number
    ),
    writes.MessagesCovered: Select(
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
        lambda _, found: writes.Coverage(*found[0]) if found[0][0] else None,
    ),
    writes.IsChangedSince: Select(
        f"""
        SELECT 1 FROM log WHERE {OWNED} AND seq BETWEEN $3 AND $4 AND [[replaced ~ replaced = 1]] AND EXISTS (
            SELECT 1 FROM log n WHERE [[n.space = $1 AND ]]n.replaces = log.seq AND n.stored_at > $5) LIMIT 1
        """,
        lambda lookup: (*_whose(lookup), lookup.first, lookup.last, lookup.since),
        _is_there,
    ),
    writes.ChunkMessages: Select(
        f"SELECT seq, role FROM log WHERE {OWNED} AND chunk = $3",
        lambda lookup: (*_whose(lookup), lookup.chunk),
        lambda _, found: found,
    ),
    writes.SummariesByNumber: Select(
        f"{SUMMARY} WHERE [[y.space = $1 AND ]]y.owner = {USER} AND {listed('y.id', '$3')} ORDER BY y.id",
        lambda lookup: (*_whose(lookup), list(lookup.numbers)),
        of_rows,
    ),
    writes.SummariesMadeFrom: Select(
        f"""
        {SUMMARY} WHERE [[y.space = $1 AND NOT y.rolled_back ~ y.rolled_back = 0]] AND y.id IN (
            SELECT summary FROM summary_source WHERE [[space = $1 AND ]]{listed("source", "$2")}) ORDER BY y.id
        """,
        lambda lookup: (lookup.space, list(lookup.numbers)),
        of_rows,
    ),
    writes.SimilarSummaries: _similar,
    writes.MemoryFirstStated: _first_stated,
    writes.AuditIsKnown: Select(
        f"SELECT 1 FROM audit WHERE {BY_NAME} AND at = $3 AND actor = $4 AND action = $5 AND subject = $6",
        lambda lookup: (
            *(lookup.entry.space, lookup.entry.user, records.number_of(lookup.entry.at)),
            *(lookup.entry.actor, lookup.entry.action, lookup.entry.subject),
        ),
        _is_there,
    ),
    writes.Progress: Select(
        "SELECT up_to FROM walk WHERE [[space = $1 AND ]]policy = $2",
        lambda lookup: (lookup.space, lookup.policy),
        _number,
    ),
    writes.MessagesPassed: Select(
        "SELECT count(*) FROM log WHERE [[space = $1 AND ]]seq > $2 AND seq <= $3",
        lambda lookup: (lookup.space, lookup.after, lookup.up_to),
        _number,
    ),
    writes.WasPurged: Select(f"SELECT 1 FROM audit WHERE {BY_NAME} AND action = 'purge' LIMIT 1", _whose, _is_there),
    writes.MessagesToPurge: Select(_MESSAGES_TO_PURGE, _whose, _messages),
    writes.MemoriesToPurge: Select(
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
    writes.MemoriesFrom: Select(
        f"""
        SELECT m.id, {_ITS_USER}
         WHERE [[m.space = $1 AND ]]m.id IN (SELECT memory FROM memory_source WHERE {_SEQS})
        """,
        lambda lookup: (lookup.space, list(lookup.seqs)),
        _memories,
    ),
    writes.SourcesOf: Select(
        f"""
        {_MESSAGE} FROM log l[[ ~  {_NAMES}]] WHERE [[l.space = $1 AND ]]l.seq IN (
            SELECT seq FROM memory_source WHERE [[space = $1 AND ]]{listed("memory", "$2")})
        """,
        lambda lookup: (lookup.space, list(lookup.memories)),
        _messages,
    ),
    writes.TakenBackBefore: Select(
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
    writes.SummariesOfUsers: Select(
        _SUMMARIES_OF_USERS,
        lambda lookup: (lookup.space, list(lookup.users), [day.isoformat() for day in lookup.days]),
        of_rows,
    ),
    writes.RelatedSummaries: Select(_RELATED, lambda lookup: (lookup.space, list(lookup.numbers)), of_rows),
    writes.EntriesOfUsers: Select(
        f"{ENTRY} WHERE space = $1 AND [[owner = ANY($2::text[]) ~ user IN (SELECT value FROM json_each($2))]]",
        lambda lookup: (lookup.space, list(lookup.users)),
        lambda _, found: [records.entry(row) for row in found],
    ),
    writes.OldRows: lambda lookup: Select(
        f"{upkeep.OLD_ROWS[lookup.table]} LIMIT $3",
        lambda lookup: (lookup.before, lookup.space, lookup.limit),
        lambda _, found: [writes.OldRow(*row) for row in found],
    )(lookup),
}
"""All but `PlannedEntries`, whose rows may be of several spaces."""
