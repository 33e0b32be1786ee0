"""Questions about people, summaries and memories."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from aforesaid.domain.checks import Timely, microseconds, moment
from aforesaid.domain.context_receipt import ContextReceipt, read_receipt
from aforesaid.domain.details import is_regular
from aforesaid.domain.memory import MemoryRecord, MemoryVersion, Unextracted
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.report import ListedUser, MemoryCount, SpaceTotals, User
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.summary import Summary
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.records import Row
from aforesaid.store.sql.appending import (
    A_THREAD,
    ACTIVE,
    DAY_OF,
    FIRST_DAY,
    MEMORY,
    MEMORY_OF_ANY_SPACE,
    MESSAGE,
    NEWEST,
    OWNED,
    SUMMARY,
    SUMMARY_OF_ANY_SPACE,
    USER,
    listed,
)
from aforesaid.store.sql.statements import Answer, Conditions, first, rows

_DISPLAY_NAME: Final = """
(SELECT log.name FROM log WHERE [[log.space = {space} AND ]]log.author = person.[[name ~ id]] AND log.name IS NOT NULL
  ORDER BY log.at DESC, log.seq DESC LIMIT 1)
"""
_NEWEST_FIRST: Final = "ORDER BY coalesce(last_at, created_at) DESC, name DESC"
_USERS: Final = """
SELECT space, name, messages, archived, created_at, last_at, {name} AS shown FROM person WHERE {limits}
 ORDER BY space, name
"""
_ITS_OWNER: Final = "[[{0}.space = $1 AND ]]{0}.owner = person.[[name ~ id]]"
# The page is picked first: names and first times are looked up for its users alone.
_PAGE: Final = f"""
SELECT space, name, messages, archived, created_at, last_at, {_DISPLAY_NAME.format(space="$1")} AS shown,
       (SELECT min(log.at) FROM log WHERE {_ITS_OWNER.format("log")} AND {NEWEST}) AS first_at,
       (SELECT count(*) FROM memory m WHERE {_ITS_OWNER.format("m")} AND {ACTIVE.format("m")}) AS memories
  FROM (SELECT * FROM person WHERE {{limits}} {_NEWEST_FIRST} LIMIT {{limit}} OFFSET {{skip}}) person {_NEWEST_FIRST}
"""
_SPACES: Final = """
SELECT space, count(*), sum(messages)[[::bigint]], sum(archived)[[::bigint]], max(coalesce(last_at, created_at))
  FROM person WHERE [[owner ~ owner = 1]] AND name <> $1 GROUP BY space ORDER BY 5 DESC, 1
"""
_SPENT: Final = """
SELECT coalesce(sum(tokens), 0)[[::bigint]] FROM spending WHERE {limits}
"""
_IRREGULAR: Final = """
SELECT name FROM person WHERE octet_length(name) <> length(name) OR trim(name) <> name
UNION SELECT space FROM [[space ~ person]] WHERE octet_length(space) <> length(space) OR trim(space) <> space
UNION SELECT name FROM thread WHERE octet_length(name) <> length(name) OR trim(name) <> name
UNION SELECT name FROM session WHERE NOT automatic AND (octet_length(name) <> length(name) OR trim(name) <> name)
"""
_COUNTED: Final = ("thread", "session", "summary", "memory")
_COUNTS: Final = {table: f"[[{table}.count ~ (SELECT count(*) FROM {table})]]" for table in _COUNTED}
"""Citus counts other tables in subqueries of FROM alone; SQLite counts them faster in the list of results."""
TOTALS: Final = f"""
SELECT spaces, users, {_COUNTS["thread"]}, {_COUNTS["session"]}, messages, archived,
       {_COUNTS["summary"]}, {_COUNTS["memory"]}, [[pg_database_size(current_database())
       ~ (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)]]
  FROM (SELECT count(DISTINCT space) AS spaces, count(*) FILTER (WHERE name <> $1) AS users,
               coalesce(sum(messages), 0)[[::bigint]] AS messages, coalesce(sum(archived), 0)[[::bigint]] AS archived
          FROM person WHERE [[owner ~ owner = 1]]) owners
       [[{"".join(f", (SELECT count(*) FROM {table}) {table}" for table in _COUNTED)}]]
"""
"""Totals of the store. Messages are counted per user as they arrive, so this does not read the log."""


def users(question: questions.Users) -> Answer[list[User]]:
    """Return the users who own something."""
    limits = Conditions("[[owner ~ owner = 1]]")
    limits.add_if("space = {0}", question.space)
    name = _DISPLAY_NAME.format(space="person.space" if question.space is None else "$1")
    return [records.user(row) for row in (yield from rows(_USERS.format(name=name, limits=limits), *limits.values))]


def users_page(question: questions.UsersPage) -> Answer[list[ListedUser]]:
    """Return a page of the users of a space, last active first."""
    limits = Conditions("space = $1 AND [[owner ~ owner = 1]]", question.space)
    limits.add("name <> {0}", EVERYBODY)
    chosen = listed("name", "{0}", "text")
    if question.id_part is not None:
        within = f"({chosen} OR [[strpos ~ instr]](lower(name), {{1}}) > 0)"
        limits.add(within, list(question.users or ()), question.id_part.lower())
    elif question.users is not None:
        limits.add(chosen, list(question.users))
    text = _PAGE.format(limits=limits, limit=limits.bind(question.limit), skip=limits.bind(question.skip))
    return [
        ListedUser(records.user(row[:7]), None if row[7] is None else moment(row[7]), row[8])
        for row in (yield from rows(text, *limits.values))
    ]


def spaces(_: questions.TotalsOfSpaces) -> Answer[list[SpaceTotals]]:
    """Return the counts of each space that has users."""
    return [
        SpaceTotals(space, users, messages, archived, moment(last))
        for space, users, messages, archived, last in (yield from rows(_SPACES, EVERYBODY))
    ]


def names(question: questions.DisplayNames) -> Answer[dict[str, str]]:
    """Return the display names of a space by user id."""
    limits = Conditions("space = $1", question.space)
    if question.users is not None:
        limits.add(listed("name", "{0}", "text"), list(question.users))
    text = f"SELECT name, {_DISPLAY_NAME.format(space='$1')} FROM person WHERE {limits}"
    return {name: shown for name, shown in (yield from rows(text, *limits.values)) if shown is not None}


def spent(question: questions.TokensSpent) -> Answer[int]:
    """Return the tokens that were spent on a day. What all spent has no user, and a row for each space that spent."""
    limits = Conditions("day = $1", question.day.isoformat())
    limits.add("[[owner ~ user]] = {0}", "" if question.scope is None else question.scope.user)
    limits.add_if("space = {0}", None if question.scope is None else question.scope.space)
    ((tokens,),) = yield from rows(_SPENT.format(limits=limits), *limits.values)
    return int(tokens)


def receipts(question: questions.Receipts) -> Answer[list[ContextReceipt]]:
    """Return receipts of contexts, newest first."""
    whose = question.scope[:2]
    limits = Conditions(OWNED, *whose)
    limits.add_if("at >= {0}", question.since)
    limits.add_if("id < {0}", question.before)
    if question.ids is not None:
        limits.add(listed("id", "{0}", "text"), list(question.ids))
    if question.replies is not None:
        limits.add(f"reply IS NOT NULL AND {listed('reply', '{0}')}", list(question.replies))
    most = limits.bind(question.limit)
    text = f"SELECT id, at, reply, details FROM receipt WHERE {limits} ORDER BY id DESC LIMIT {most}"
    found = yield from rows(text, *limits.values)
    return [read_receipt(name, *whose, moment(at), reply, records.loaded(it)) for name, at, reply, it in found]


def irregular_ids(_: questions.IrregularIds) -> Answer[frozenset[str]]:
    """Return the ids that are not spelled regularly: SQL finds those that may be, by their bytes and spaces."""
    return frozenset(name for (name,) in (yield from rows(_IRREGULAR)) if not is_regular(name))


_ONE_OF_USER: Final = f"{MEMORY} WHERE [[m.space = $1 AND ]]m.owner = {USER} AND m.id = $3"
_ACTIVE: Final = ACTIVE.format("m")
_RESTING_ON: Final = """
m.id IN (SELECT s.memory FROM memory_source s WHERE [[s.space = $1 AND ]]s.seq BETWEEN {0} AND {1})
"""
_TIMELY: Final[Mapping[Timely, str]] = {
    "expiry": f"{_ACTIVE} AND m.expires_at IS NOT NULL AND m.expires_at <= $1 ORDER BY m.expires_at, m.id[[, m.space]]",
    "reminder": f"""
        {_ACTIVE} AND m.remind_at IS NOT NULL AND m.delivered_at IS NULL AND m.remind_at <= $1
        ORDER BY m.remind_at, m.id[[, m.space]]
    """,
    "unseen": f"""
        {_ACTIVE} AND m.seen_at <= $1 AND NOT EXISTS (
            SELECT 1 FROM memory_version v WHERE [[v.space = m.space AND ]]v.memory = m.id AND v.at > $1)
        ORDER BY m.seen_at, m.id[[, m.space]]
    """,
}
_MEMORY_COUNTS: Final = f"""
SELECT {DAY_OF.format("coalesce(m.said_at, m.valid_from)")}, m.category, m.importance, m.state, count(*)
  FROM memory m[[ ~  JOIN person o ON o.id = m.owner]] WHERE {{limits}} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""
_VERSIONS: Final = """
SELECT revision, at, actor, action, was,
       [[was ->> 'speaker' ~ (SELECT name FROM person WHERE id = json_extract(was, '$.speaker'))]]
  FROM memory_version WHERE [[space = $1 AND ]]memory = $2 ORDER BY revision
"""
# SQLite's index holds nobody but those whom it is about.
_UNEXTRACTED: Final = """
SELECT space, name, extracted, last_seq FROM person[[ ~  INDEXED BY person_to_extract]] WHERE last_seq > extracted
   AND [[(space, name) > ($1, $2) ORDER BY space, name
     ~ id > coalesce((SELECT id FROM person WHERE space = $1 AND name = $2), 0) ORDER BY id]] LIMIT $3
"""


def _memories(text: str, *values: Any) -> Answer[list[MemoryRecord]]:  # noqa: ANN401 - whatever the text binds
    return [records.memory(row) for row in (yield from rows(text, *values))]


def memories(question: questions.Memories) -> Answer[list[MemoryRecord]]:
    """Return the user's memories, most important first."""
    limits = Conditions(f"[[m.space = $1 AND ]]m.owner = {USER}", *question.scope[:2])
    if question.active is not None:
        limits.add(_ACTIVE if question.active else "NOT m.active")
    if question.messages is not None:
        limits.add(_RESTING_ON, *question.messages)
    return _memories(f"{MEMORY} WHERE {limits} ORDER BY m.importance DESC, m.id DESC", *limits.values)


def memory(question: questions.MemoryById) -> Answer[MemoryRecord]:
    """Return one memory of the user."""
    found = yield from _memories(_ONE_OF_USER, *question.scope[:2], question.memory)
    if not found:
        raise NotFound(f"{quoted(question.scope.user)} has no memory {question.memory}")
    return found[0]


def memories_of_space(question: questions.MemoriesOfSpace) -> Answer[list[MemoryRecord]]:
    """Return the newest memories by space, user, state, category, kind and the id that they are below."""
    limits = Conditions("[[m.space ~ o.space]] = $1", question.space)
    limits.add_if("[[m.owner ~ o.name]] = {0}", question.user)
    limits.add_if("m.category = {0}", question.category)
    limits.add_if("m.kind = {0}", question.kind)
    limits.add_if("m.state = {0}", question.state)
    limits.add_if("m.id < {0}", question.before)
    if question.active is not None:
        limits.add(_ACTIVE if question.active else "NOT m.active")
    newest = f"ORDER BY m.id DESC LIMIT {limits.bind(question.limit)}"
    return _memories(f"{MEMORY} WHERE {limits} {newest}", *limits.values)


def counts(question: questions.MemoryCounts) -> Answer[list[MemoryCount]]:
    """Return the number of memories by the day on which they were said, category, importance and state."""
    limits = Conditions("[[m.space ~ o.space]] = $1", question.space)
    limits.add_if("[[m.owner ~ o.name]] = {0}", question.user)
    found = yield from rows(_MEMORY_COUNTS.format(limits=limits), *limits.values)
    return [MemoryCount(FIRST_DAY + timedelta(days=day), *rest) for day, *rest in found]


def timely(question: questions.DueMemories) -> Answer[list[MemoryRecord]]:
    """Return active memories, of all spaces, whose time has come."""
    text = f"{MEMORY_OF_ANY_SPACE} WHERE {_TIMELY[question.what]} LIMIT $2"
    return _memories(text, microseconds(question.before, "the moment"), question.limit)


def versions(question: questions.MemoryVersions) -> Answer[list[MemoryVersion]]:
    """Return what a memory was before each of its changes, oldest first."""
    newest = yield from memory(questions.MemoryById(question.scope, question.memory))
    head = newest.id, newest.space, newest.user, newest.sources, records.number_of(newest.created_at)
    found = []
    for revision, at, actor, action, stored, speaker in (
        yield from rows(_VERSIONS, question.scope.space, question.memory)
    ):
        was = {**records.loaded(stored), "speaker": speaker}
        before = records.memory((*head, revision, *(was.get(name) for name in records.MEMORY)))
        found.append(MemoryVersion(before, action, actor, moment(at)))
    return found


def unextracted(question: questions.UnextractedUsers) -> Answer[list[Unextracted]]:
    """Return users of whom something was stored that nobody has looked through."""
    last = ("", "") if question.after is None else question.after[:2]
    return [
        Unextracted(Scope.of(name, space), extracted, last_seq)
        for space, name, extracted, last_seq in (yield from rows(_UNEXTRACTED, *last, question.limit))
    ]


_REACH: Final = f"SELECT reach, chunks FROM summary WHERE {OWNED} AND id = $3"
# The plus keeps SQLite from reading all of the owner's messages: the chunks are the shorter way.
_IN_CHUNKS: Final = f"""
{MESSAGE} WHERE [[log.space = $1 AND log.owner = $2 AND log.chunk = ANY($3::bigint[])
 ~ log.chunk IN (SELECT value FROM json_each($3)) AND +log.owner = (
    SELECT id FROM person WHERE space = $1 AND name = $2)]]
"""
_COVERS: Final = """
SELECT owner, thread, first_seq, last_seq, began_at, ended_at, reach FROM summary
 WHERE [[space = $1 AND ]]id = $2
"""
_SOURCES: Final = "SELECT source FROM summary_source WHERE [[space = $1 AND ]]summary = $2"
_BELOW: Final = f"""
{MESSAGE} WHERE [[log.space = $1 AND ]]log.owner = $2 AND log.seq BETWEEN $3 AND $4 AND log.at BETWEEN $5 AND $6
   AND ([[$7::text ~ $7]] IS NULL OR log.thread = $7) ORDER BY log.seq
"""
_PLACE: Final = f"SELECT chunk, at, thread FROM log WHERE {OWNED} AND seq = $3"
_ABOVE: Final = f"""
{SUMMARY}
 WHERE [[y.space = $1 AND ]]y.owner = {USER} AND [[NOT y.rolled_back ~ y.rolled_back = 0]] AND NOT y.replaced
   AND CASE y.reach
         WHEN 'chunks' THEN [[$4::bigint = ANY(y.chunks) ~ $4 IN (SELECT value FROM json_each(y.chunks))]]
         WHEN 'sources' THEN EXISTS (
             SELECT 1 FROM summary_source x JOIN summary z ON [[z.space = x.space AND ]]z.id = x.source
              WHERE [[x.space = $1 AND ]]x.summary = y.id
                AND $3 BETWEEN z.first_seq AND z.last_seq AND $5 BETWEEN z.began_at AND z.ended_at)
         ELSE $3 BETWEEN y.first_seq AND y.last_seq AND $5 BETWEEN y.began_at AND y.ended_at
              AND (y.reach = 'user' OR y.thread = $6)
       END
 ORDER BY y.kind[[ COLLATE "C"]], y.level, y.id
"""
_WITHOUT_MODEL: Final = f"""
{SUMMARY_OF_ANY_SPACE} WHERE y.kind = $1 AND y.id > $3 AND y.prompt = $2 AND {ACTIVE.format("y")} AND y.model IS NULL
   AND y.edited_by IS NULL ORDER BY y.id [[FETCH FIRST $4 ROWS WITH TIES ~ LIMIT $4]]
"""


def of_rows(_: object, found: list[Row]) -> list[Summary]:
    """Read rows of SUMMARY."""
    return [records.summary(row) for row in found]


def summaries(question: questions.Summaries) -> Answer[list[Summary]]:
    """Return the user's summaries, highest level first."""
    limits = Conditions(f"[[y.space = $1 AND ]]y.owner = {USER}", *question.scope[:2])
    limits.add_if("y.kind = {0}", question.kind)
    limits.add_if("y.day = {0}", None if question.day is None else question.day.isoformat())
    limits.add_if(f"y.thread = {A_THREAD}", question.scope.thread if question.here else None)
    if question.active is not None:
        limits.add(ACTIVE.format("y") if question.active else "NOT y.active")
    text = f"{SUMMARY} WHERE {limits} ORDER BY y.level DESC, y.id"
    return of_rows(question, (yield from rows(text, *limits.values)))


def summary(question: questions.SummaryById) -> Answer[Summary]:
    """Return one of the user's summaries."""
    text = f"{SUMMARY} WHERE [[y.space = $1 AND ]]y.owner = {USER} AND y.id = $3"
    row = yield from first(text, *question.scope[:2], question.summary)
    if row is None:
        raise _unknown(question)
    return records.summary(row)


def covered(question: questions.CoveredMessages) -> Answer[list[Message]]:
    """Return the messages below a summary."""
    whose = question.scope[:2]
    found = yield from first(_REACH, *whose, question.summary)
    if found is None:
        raise _unknown(question)
    reach, chunks = found
    if reach == "chunks":
        return in_time_order(records.messages((yield from rows(_IN_CHUNKS, *whose, chunks))))
    return in_time_order((yield from _below(question.scope.space, question.summary)))


def _below(space: str, summary: int) -> Answer[list[Message]]:
    """Return the messages that a view covers. Whoever asks has found it in their scope."""
    ((owner, thread, *between, reach),) = yield from rows(_COVERS, space, summary)
    if reach != "sources":
        here = thread if reach == "thread" else None
        return records.messages((yield from rows(_BELOW, space, owner, *between, here)))
    found: dict[int, Message] = {}
    for (source,) in (yield from rows(_SOURCES, space, summary)):
        found |= {message.seq: message for message in (yield from _below(space, source))}
    return [found[seq] for seq in sorted(found)]


def above(question: questions.SummariesAbove) -> Answer[list[Summary]]:
    """Return the summaries that a message lies below."""
    whose = question.scope[:2]
    found = yield from first(_PLACE, *whose, question.seq)
    if found is None:
        raise NotFound(f"{quoted(question.scope.user)} has no message with the number {question.seq}")
    return of_rows(question, (yield from rows(_ABOVE, *whose, question.seq, *found)))


def without_model(question: questions.SummariesWithoutModel) -> Answer[list[Summary]]:
    """Return active summaries that neither a model nor a person wrote.

    In PostgreSQL, those of several spaces with the same number come together.
    """
    found = yield from rows(_WITHOUT_MODEL, question.kind, question.prompt, question.after, question.limit)
    return of_rows(question, found)


def _unknown(question: questions.SummaryById | questions.CoveredMessages) -> NotFound:
    return NotFound(f"{quoted(question.scope.user)} has no summary {question.summary}")
