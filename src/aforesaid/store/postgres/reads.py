"""Typed reads. Each runs inside one short read transaction and cannot leave its scope."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

from aforesaid.domain.checks import LARGEST, microseconds, moment
from aforesaid.domain.known_ids import is_regular
from aforesaid.domain.literals import Within
from aforesaid.domain.message import Message, Position, in_time_order, sequence_number
from aforesaid.domain.report import Activity, Ledger, Stats, User
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.session import Session
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.summary import Summary
from aforesaid.domain.thread import LAST_TEXT, Thread, unknown_thread
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.postgres import rows, views
from aforesaid.store.postgres.filters import conditions
from aforesaid.store.postgres.queries import Queries

_IRREGULAR: Final = """
SELECT name FROM person WHERE octet_length(name) <> char_length(name) OR btrim(name) <> name
UNION SELECT space FROM space WHERE octet_length(space) <> char_length(space) OR btrim(space) <> space
UNION SELECT name FROM thread WHERE octet_length(name) <> char_length(name) OR btrim(name) <> name
UNION SELECT name FROM session WHERE NOT automatic AND (octet_length(name) <> char_length(name) OR btrim(name) <> name)
"""
_PAGE: Final = 500
NOBODY: Final = -1
"""A number that no row has: what a name that was never heard of stands for."""

_SESSION: Final = """
SELECT id, first_seq, last_seq FROM session WHERE space = $1 AND name = $3 AND md5(thread) = md5($2) AND thread = $2
"""
_REACH: Final = "SELECT reach, chunks FROM summary WHERE space = $1 AND id = $2 AND owner = $3"
_IN_CHUNKS: Final = f"""
{rows.MESSAGE} WHERE log.space = $1 AND log.owner = $2 AND log.chunk = ANY($3::bigint[])
"""
_COUNTS: Final = """
SELECT messages, archived, turns, open_turns, last_seq, last_chunk FROM person WHERE space = $1 AND name = $2
"""
_LEVELS: Final = """
SELECT level, count(*) FROM summary WHERE space = $1 AND owner = $2 AND kind = 'tree' AND active GROUP BY level ORDER BY level
"""
_COUNTS_OF_THREAD: Final = """
SELECT count(*), count(*) FILTER (WHERE NOT active), count(*) FILTER (WHERE role = 'user'),
       count(*) FILTER (WHERE role = 'user' AND chunk IS NULL AND seq > $4), coalesce(max(seq), 0), coalesce(max(chunk), 0)
  FROM log WHERE space = $1 AND owner = $2 AND thread = $3
"""
_LEVELS_OF_THREAD: Final = """
SELECT level, count(*), max(CASE WHEN reach = 'thread' THEN last_seq ELSE 0 END) FROM summary
 WHERE space = $1 AND owner = $2 AND thread = $3 AND active AND reach IN ('thread', 'chunks') GROUP BY level ORDER BY level
"""
_SPENT_BY: Final = "SELECT tokens FROM spending WHERE day = $1 AND space = $2 AND owner = $3"
_SPENT: Final = "SELECT coalesce(sum(tokens), 0)::bigint FROM spending WHERE day = $1 AND owner = ''"
_NEWEST: Final = "NOT log.replaced"
"""The condition that leaves out older versions."""
_LAST_IN_THREAD: Final = f"SELECT max(at) FROM log WHERE space = $1 AND owner = $2 AND thread = $3 AND {_NEWEST}"
_THREADS: Final = f"""
WITH used AS (
    SELECT thread, count(*) AS messages, min(at) AS first_at, max(at) AS last_at
      FROM log WHERE space = $1 AND owner = $2 AND {_NEWEST} GROUP BY thread
)
SELECT used.thread, used.messages, used.first_at, used.last_at, (
    SELECT left(log.text, {LAST_TEXT}) FROM log
     WHERE log.space = $1 AND log.owner = $2 AND log.thread = used.thread AND log.at = used.last_at AND {_NEWEST}
     ORDER BY log.seq DESC LIMIT 1
) FROM used WHERE (used.last_at, used.thread) < ($3, $4)
 ORDER BY used.last_at DESC, used.thread DESC LIMIT $5
"""
_DISPLAY_NAME: Final = """
SELECT log.name FROM log WHERE log.space = {space} AND log.author = person.name AND log.name IS NOT NULL
 ORDER BY log.at DESC, log.seq DESC LIMIT 1
"""
_USERS: Final = """
SELECT space, name, messages, archived, created_at, last_at, ({display_name}) AS display_name FROM person
 WHERE owner {limit} ORDER BY space, name
"""
_USERS_OF_ALL: Final = _USERS.format(display_name=_DISPLAY_NAME.format(space="person.space"), limit="")
_USERS_OF_SPACE: Final = _USERS.format(display_name=_DISPLAY_NAME.format(space="$1"), limit="AND space = $1")
_NAMES: Final = f"""
SELECT person.name, latest.name FROM person CROSS JOIN LATERAL ({_DISPLAY_NAME.format(space="$1")}) latest
 WHERE person.space = $1 AND ($2::text[] IS NULL OR person.name = ANY($2))
"""
_TOTALS: Final = """
SELECT count(DISTINCT space), count(*) FILTER (WHERE name <> $1), coalesce(sum(messages), 0)::bigint,
       coalesce(sum(archived), 0)::bigint FROM person WHERE owner
"""
_SIZE: Final = "SELECT pg_database_size(current_database())"
_SIZES_OF_WORKERS: Final = f"SELECT sum(result::bigint)::bigint FROM run_command_on_workers('{_SIZE}') WHERE success"
_NEXT_TRANSACTION: Final = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
_NEXT_OF_WORKERS: Final = f"""
SELECT string_agg(result, ' ' ORDER BY nodename, nodeport) FROM run_command_on_workers('{_NEXT_TRANSACTION}')
"""
_SAID_BETWEEN: Final = f"""
{rows.MESSAGE} JOIN thread t ON t.space = log.space AND t.name = log.thread
 WHERE log.space = $1 AND log.at >= $2 AND log.at < $3 ORDER BY log.at, log.seq
"""
_SAID_PER_DAY: Final = """
SELECT log.at / 86400000000, count(*), count(*) FILTER (WHERE log.role = 'user') FROM log
 WHERE log.space = $1 AND log.at >= $2 AND log.at < $3 AND ($4::text IS NULL OR log.owner = $4) GROUP BY 1 ORDER BY 1
"""
_END: Final = Position(LARGEST, LARGEST)
"""A position after every message."""
_FIRST_DAY: Final = date(1970, 1, 1)
_WITHOUT_MODEL: Final = f"""
{rows.SUMMARY_OF_ANY_SPACE} WHERE y.kind = $1 AND y.id > $3 AND y.prompt = $2 AND y.active AND y.model IS NULL AND y.edited_by IS NULL
 ORDER BY y.id FETCH FIRST $4 ROWS WITH TIES
"""
_VERSIONS: Final = f"""
WITH RECURSIVE version (seq, replaces) AS (
    SELECT seq, replaces FROM log WHERE space = $1 AND owner = $2 AND seq = ANY($3::bigint[])
    UNION SELECT l.seq, l.replaces FROM version v JOIN log l ON l.space = $1 AND (l.replaces = v.seq OR l.seq = v.replaces)
) {rows.MESSAGE} WHERE log.space = $1 AND log.seq IN (SELECT seq FROM version) ORDER BY log.seq
"""


class Place(NamedTuple):
    """The condition that limits a read to a scope, with the name of a table to be filled in, and what it binds."""

    condition: str
    values: tuple[Any, ...]

    @property
    def of_log(self) -> str:
        """The condition on the log."""
        return self.condition.format(table="log")


async def inside(queries: Queries, scope: Scope, within: Within) -> Place:
    """Return what limits a read to the scope. Whoever reads adds nothing but further limits."""
    if within == "user":
        return Place("{table}.space = $1 AND {table}.owner = $2", (scope.space, scope.user))
    # A direct chat is found through its owner: that index is there anyway.
    direct = is_direct(scope.thread)
    place = "{table}.space = $1 AND {table}.thread = $2 AND " + ("{table}.owner = $3" if direct else "{table}.shared")
    values: tuple[Any, ...] = (scope.space, scope.thread, *([scope.user] if direct else []))
    if within == "thread":
        return Place(place, values)
    found = await queries.first(_SESSION, scope.space, scope.thread, scope.named_session()) or (NOBODY,) * 3
    key, first, last = (f"${len(values) + place}" for place in (1, 2, 3))
    limits = f"{{table}}.session = {key} AND {{table}}.seq BETWEEN {first} AND {last}"
    return Place(f"{place} AND {limits}", (*values, *found))


async def messages(queries: Queries, question: questions.Messages) -> list[Message]:
    """Return the newest messages by when they were said, oldest first."""
    place = await inside(queries, question.scope, question.within)
    values = *place.values, *(await _position(queries, place, question.before)), question.limit
    at, seq, limit = (f"${len(place.values) + place_of_value}" for place_of_value in (1, 2, 3))
    limits, bound = conditions(question.where, len(values))
    limits += [*([] if question.archived else ["log.active"]), *([] if question.versions else [_NEWEST])]
    where = " AND ".join([place.of_log, f"(log.at, log.seq) < ({at}, {seq})", *limits])
    query = f"{rows.MESSAGE} WHERE {where} ORDER BY log.at DESC, log.seq DESC LIMIT {limit}"
    return records.messages(reversed(await queries.rows(query, *values, *bound)))


async def count(queries: Queries, question: questions.MessageCount) -> int:
    """Return the number of messages."""
    place = await inside(queries, question.scope, question.within)
    limits, bound = conditions(question.where, len(place.values))
    where = " AND ".join([place.of_log, _NEWEST, *limits, *([] if question.archived else ["log.active"])])
    found: int = await queries.value(f"SELECT count(*) FROM log WHERE {where}", *place.values, *bound)
    return found


async def threads(queries: Queries, question: questions.Threads) -> list[Thread]:
    """Return the user's threads, newest first."""
    whose = question.scope.space, question.scope.user
    last = LARGEST, ""
    if isinstance(question.before, Thread):
        last = microseconds(question.before.last_at, "the last time of the thread"), question.before.id
    elif question.before is not None:
        last = await queries.value(_LAST_IN_THREAD, *whose, question.before), question.before
        if last[0] is None:
            raise unknown_thread(question.scope.user, question.before)
    found = await queries.rows(_THREADS, *whose, *last, question.limit)
    return [Thread(name, count, moment(first), moment(last), text) for name, count, first, last, text in found]


async def _position(queries: Queries, place: Place, before: int | Position | None) -> Position:
    """Return the position that a read ends before."""
    if before is None:
        return _END
    if isinstance(before, Position):
        return before
    up_to = f"log.seq <= ${len(place.values) + 1}"
    query = f"SELECT at, seq FROM log WHERE {place.of_log} AND {up_to} ORDER BY seq DESC LIMIT 1"
    return records.position(await queries.first(query, *place.values, before), before)


async def message(queries: Queries, question: questions.MessageById) -> Message:
    """Return one message by its id."""
    place = await inside(queries, question.scope, question.within)
    count = len(place.values)
    limited = f"{rows.MESSAGE} WHERE {place.of_log}"
    seq = sequence_number(question.message_id)
    if seq is not None:
        row = await queries.first(f"{limited} AND log.seq = ${count + 1} AND log.given_id IS NULL", *place.values, seq)
    else:
        named = f"{limited} AND log.given_id = ${count + 1} ORDER BY log.thread != ${count + 2}, log.seq DESC LIMIT 1"
        row = await queries.first(named, *place.values, question.message_id, question.scope.thread)
    if row is None:
        raise NotFound(f"{quoted(question.scope.user)} has no message {quoted(question.message_id)}")
    return records.message(row)


async def pick(queries: Queries, question: questions.MessagesByNumber) -> list[Message]:
    """Return those of the messages that the scope holds, in order."""
    place = await inside(queries, question.scope, question.within)
    wanted = f"log.seq = ANY(${len(place.values) + 1}::bigint[])"
    query = f"{rows.MESSAGE} WHERE {place.of_log} AND {wanted} ORDER BY log.seq"
    return records.messages(await queries.rows(query, *place.values, list(question.seqs)))


async def versions(queries: Queries, question: questions.VersionsOf) -> list[Message]:
    """Return all versions of the user's messages, in the order of the log."""
    scope = question.scope
    return records.messages(await queries.rows(_VERSIONS, scope.space, scope.user, list(question.seqs)))


async def attachment_hashes(queries: Queries, _: questions.AttachmentHashes) -> frozenset[str]:
    """Return the hashes that the parts of messages name."""
    query = "SELECT details FROM log WHERE details IS NOT NULL AND strpos(details, '\"hash\"') > 0"
    return records.hashes_in(text for (text,) in await queries.rows(query))


async def following(queries: Queries, question: questions.MessagesAfter) -> list[Message]:
    """Return the user's oldest messages after one, in the scope's thread or in all."""
    where = "log.space = $1 AND log.owner = $2 AND log.seq > $3 AND ($4::text IS NULL OR log.thread = $4)"
    active = "" if question.archived else "AND log.active"
    query = f"{rows.MESSAGE} WHERE {where} {active} ORDER BY log.seq LIMIT $5"
    thread = question.scope.thread if question.here else None
    return records.messages(
        await queries.rows(query, question.scope.space, question.scope.user, question.after, thread, question.limit)
    )


async def covered(queries: Queries, question: questions.CoveredMessages) -> list[Message]:
    """Return the messages below a summary."""
    found = await queries.first(_REACH, question.scope.space, question.summary, question.scope.user)
    if found is None:
        raise NotFound(f"{quoted(question.scope.user)} has no summary {question.summary}")
    reach, chunks = found
    if reach != "chunks":
        return in_time_order(await views.below(queries, question.scope.space, question.summary))
    return in_time_order(
        records.messages(await queries.rows(_IN_CHUNKS, question.scope.space, question.scope.user, chunks))
    )


async def said_between(queries: Queries, question: questions.MessagesBetween) -> list[Message]:
    """Return what was said in a space, from one moment to before another, by when it was said."""
    return records.messages(await queries.rows(_SAID_BETWEEN, question.space, question.since, question.until))


async def said_per_day(queries: Queries, question: questions.ActivityPerDay) -> list[Activity]:
    """Return how much was said in a space on each day of UTC, oldest first."""
    found = await queries.rows(_SAID_PER_DAY, question.space, question.since, question.until, question.user)
    return [Activity(_FIRST_DAY + timedelta(days=day), messages, turns) for day, messages, turns in found]


async def summaries(queries: Queries, question: questions.Summaries) -> list[Summary]:
    """Return the user's summaries, highest level first."""
    where, values = ["y.space = $1", "y.owner = $2"], [question.scope.space, question.scope.user]
    limits = (
        ("kind", question.kind),
        ("day", None if question.day is None else question.day.isoformat()),
        ("thread", question.scope.thread if question.here else None),
    )
    for column, value in limits:
        if value is not None:
            values.append(value)
            where.append(f"y.{column} = ${len(values)}")
    if question.active is not None:
        where.append("y.active" if question.active else "NOT y.active")
    query = f"{rows.SUMMARY} WHERE {' AND '.join(where)} ORDER BY y.level DESC, y.id"
    return [rows.summary(row) for row in await queries.rows(query, *values)]


async def summary(queries: Queries, question: questions.SummaryById) -> Summary:
    """Return one of the user's summaries."""
    query = f"{rows.SUMMARY} WHERE y.space = $1 AND y.id = $2 AND y.owner = $3"
    row = await queries.first(query, question.scope.space, question.summary, question.scope.user)
    if row is None:
        raise NotFound(f"{quoted(question.scope.user)} has no summary {question.summary}")
    return rows.summary(row)


async def without_model(queries: Queries, question: questions.SummariesWithoutModel) -> list[Summary]:
    """Return active summaries that neither a model nor a person wrote. Those with the same number come together."""
    return [
        rows.summary(row)
        for row in await queries.rows(_WITHOUT_MODEL, question.kind, question.prompt, question.after, question.limit)
    ]


async def sessions(queries: Queries, question: questions.Sessions) -> list[Session]:
    """Return the sessions that the scope's newest messages are in, oldest first by start."""
    place = await inside(queries, question.scope, question.within)
    count = len(place.values)
    before = f"(log.at, log.seq) < (${count + 1}, ${count + 2})"
    query = f"""
    SELECT at, seq, session FROM log WHERE {place.of_log} AND {before} ORDER BY at DESC, seq DESC LIMIT {_PAGE}
    """
    found: dict[int, None] = {}
    last: Sequence[int] = _END
    # Page by page from the newest message, so that the cost is that of the sessions asked for, not of all there are.
    while len(found) < question.limit:
        page = await queries.rows(query, *place.values, *last)
        found.update((session, None) for _, _, session in page)
        if len(page) < _PAGE:
            break
        last = page[-1][:2]
    query = f"{rows.SESSION} WHERE s.space = $1 AND s.id = ANY($2::bigint[]) ORDER BY s.started_at, s.id"
    return [
        records.session(row) for row in await queries.rows(query, question.scope.space, list(found)[: question.limit])
    ]


async def ledger(queries: Queries, question: questions.UserLedger) -> Ledger:
    """Return the user's counts."""
    here = question.scope.space, question.scope.user
    counts, found = await queries.together((_COUNTS, here), (_LEVELS, here))
    return records.ledger(counts[0] if counts else None, found)


async def ledger_of_thread(queries: Queries, question: questions.UserLedger) -> Ledger:
    """Return the user's counts in one thread."""
    here = question.scope.space, question.scope.user, question.scope.thread
    levels = await queries.rows(_LEVELS_OF_THREAD, *here)
    covered = max((last for _, _, last in levels), default=0)
    return records.ledger(await queries.one(_COUNTS_OF_THREAD, *here, covered), levels)


async def spent(queries: Queries, question: questions.TokensSpent) -> int:
    """Return the tokens that were spent on a day."""
    if question.scope is None:
        return int(await queries.value(_SPENT, question.day.isoformat()))
    return await queries.value(_SPENT_BY, question.day.isoformat(), question.scope.space, question.scope.user) or 0


async def users(queries: Queries, question: questions.Users) -> list[User]:
    """Return the users who own something."""
    space = question.space
    found = queries.rows(_USERS_OF_ALL) if space is None else queries.rows(_USERS_OF_SPACE, space)
    return [records.user(row) for row in await found]


async def names(queries: Queries, question: questions.DisplayNames) -> dict[str, str]:
    """Return the display names of a space by user id."""
    return dict(await queries.rows(_NAMES, question.space, None if question.users is None else list(question.users)))


async def irregular_ids(queries: Queries, _: questions.IrregularIds) -> frozenset[str]:
    """Return the ids that are not spelled regularly: SQL finds those that may be, by their bytes and spaces."""
    found = await queries.rows(_IRREGULAR)
    return frozenset(name for (name,) in found if not is_regular(name))


async def stats(queries: Queries, _: questions.Totals) -> Stats:
    """Return totals. Messages are counted per user as they arrive, so this does not read the log."""
    tables = ("thread", "session", "summary", "memory")
    [people], *counts, [(size,)] = await queries.together(
        (_TOTALS, (EVERYBODY,)), *((f"SELECT count(*) FROM {table}", ()) for table in tables), (_SIZE, ())
    )
    if queries.distributed:
        size += await queries.value(_SIZES_OF_WORKERS) or 0
    (threads, sessions, summaries, memories), (spaces, users, messages, archived) = (
        [row[0][0] for row in counts],
        people,
    )
    return Stats(spaces, users, threads, sessions, messages, archived, summaries, memories, size)


async def change_token(queries: Queries, _: questions.ChangeToken) -> str:
    """Return a text that is another one once a transaction has written something."""
    token = str(await queries.value(_NEXT_TRANSACTION))
    # What is written to a worker alone leaves no trace on the coordinator.
    return f"{token} {await queries.value(_NEXT_OF_WORKERS)}" if queries.distributed else token
