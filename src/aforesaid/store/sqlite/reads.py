"""Typed reads. Each runs inside one short read transaction and cannot leave its scope."""

from __future__ import annotations

import json
from typing import Any, Final

import apsw

from aforesaid.domain.checks import LARGEST, microseconds, moment
from aforesaid.domain.known_ids import is_regular
from aforesaid.domain.literals import Within
from aforesaid.domain.message import Message, Position, in_time_order, sequence_number
from aforesaid.domain.report import Ledger, Stats, User
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.session import Session
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.summary import Summary
from aforesaid.domain.thread import LAST_TEXT, Thread, unknown_thread
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.sqlite import rows, views
from aforesaid.store.sqlite.filters import conditions
from aforesaid.store.sqlite.names import find_person, find_thread

_PAGE: Final = 500
NOBODY: Final = -1
"""A number that no row has: what a name that was never heard of stands for."""

_NEWEST: Final = "replaced = 0"
"""The condition that leaves out older versions."""
_LAST_IN_THREAD: Final = f"SELECT max(at) FROM log WHERE thread = ? AND owner = ? AND {_NEWEST}"
_THREADS: Final = f"""
SELECT t.name, used.messages, used.first_at, used.last_at, (
    SELECT substr(log.text, 1, {LAST_TEXT}) FROM log INDEXED BY log_by_time
     WHERE log.thread = used.thread AND log.at = used.last_at AND log.owner = ?1 AND {_NEWEST}
     ORDER BY log.seq DESC LIMIT 1
) FROM (
    SELECT thread, count(*) AS messages, min(at) AS first_at, max(at) AS last_at
      FROM log WHERE owner = ?1 AND {_NEWEST} GROUP BY thread
) used JOIN thread t ON t.id = used.thread
 WHERE (used.last_at, t.name) < (?2, ?3) ORDER BY used.last_at DESC, t.name DESC LIMIT ?4
"""
_DISPLAY_NAME: Final = """
(SELECT log.name FROM log WHERE log.author = person.id AND log.name IS NOT NULL
  ORDER BY log.at DESC, log.seq DESC LIMIT 1)
"""


_VERSIONS: Final = f"""
WITH RECURSIVE version (seq, replaces) AS (
    SELECT seq, replaces FROM log WHERE owner = ?1 AND seq IN (SELECT value FROM json_each(?2))
    UNION SELECT l.seq, l.replaces FROM version v JOIN log l ON l.replaces = v.seq
    UNION SELECT l.seq, l.replaces FROM version v JOIN log l ON l.seq = v.replaces
) {rows.MESSAGE} WHERE log.seq IN (SELECT seq FROM version) ORDER BY log.seq
"""


# By the primary key: through the index of the owner it takes half as long again.
_NOT_INDEXED: Final = "FROM log NOT INDEXED"
_BY_SEQ: Final = f"{rows.MESSAGE.replace('FROM log', _NOT_INDEXED)} WHERE log.seq IN (SELECT value FROM json_each(?))"
# Without the name of the index, SQLite reads the messages of the owner one by one.
_INDEXED: Final = "FROM log INDEXED BY log_by_given_id"
_BY_GIVEN_ID: Final = f"{rows.MESSAGE.replace('FROM log', _INDEXED)} WHERE log.given_id = ?"


def inside(connection: apsw.Connection, scope: Scope, within: Within) -> tuple[str, tuple[int, ...]]:
    """Return the condition on the log that limits a read to the scope, and what to bind to it.

    Each condition is one that an index answers. Whoever reads adds nothing but further limits.
    """
    owner = _number(find_person(connection, scope.space, scope.user))
    if within == "user":
        return "log.owner = ?", (owner,)
    thread = _number(find_thread(connection, scope.space, scope.thread))
    # A direct chat is found through its owner: that index is there anyway.
    place = (
        ("log.owner = ? AND log.thread = ?", (owner, thread))
        if is_direct(scope.thread)
        else ("log.shared = 1 AND log.thread = ?", (thread,))
    )
    if within == "thread":
        return place
    row = connection.execute(
        "SELECT id, first_seq, last_seq, started_at, last_at FROM session WHERE thread = ? AND name = ?",
        (thread, scope.named_session()),
    ).fetchone()
    limits = "log.session = ? AND log.seq BETWEEN ? AND ? AND log.at BETWEEN ? AND ?"
    return f"{place[0]} AND {limits}", (*place[1], *(row or (NOBODY,) * 5))


def messages(connection: apsw.Connection, question: questions.Messages) -> list[Message]:
    """Return the newest messages by when they were said, oldest first."""
    limit_to_scope, values = inside(connection, question.scope, question.within)
    limits, bound = conditions(connection, question.scope.space, question.where)
    where = [limit_to_scope, *limits]
    bindings: list[Any] = [*values, *bound]
    if question.before is not None:
        where.append("(at, seq) < (?, ?)")
        bindings += _position(connection, limit_to_scope, values, question.before)
    if not question.archived:
        where.append("active = 1")
    if not question.versions:
        where.append(_NEWEST)
    picked = (
        f"SELECT seq FROM {_by_time(question.within)} WHERE {' AND '.join(where)} ORDER BY at DESC, seq DESC LIMIT ?"
    )
    query = f"{rows.MESSAGE} WHERE log.seq IN ({picked}) ORDER BY log.at, log.seq"
    return records.messages(rows.every(connection.execute(query, (*bindings, question.limit))))


def count(connection: apsw.Connection, question: questions.MessageCount) -> int:
    """Return the number of messages."""
    limit_to_scope, values = inside(connection, question.scope, question.within)
    limits, bound = conditions(connection, question.scope.space, question.where)
    where = " AND ".join([limit_to_scope, _NEWEST, *limits, *([] if question.archived else ["active = 1"])])
    query = f"SELECT count(*) FROM {_by_time(question.within)} WHERE {where}"
    found: int = connection.execute(query, (*values, *bound)).get
    return found


def threads(connection: apsw.Connection, question: questions.Threads) -> list[Thread]:
    """Return the user's threads, newest first."""
    owner = _number(find_person(connection, question.scope.space, question.scope.user))
    before = question.before
    last = (LARGEST, "")
    if isinstance(before, Thread):
        last = microseconds(before.last_at, "the last time of the thread"), before.id
    elif before is not None:
        thread = _number(find_thread(connection, question.scope.space, before))
        last = connection.execute(_LAST_IN_THREAD, (thread, owner)).get, before
        if last[0] is None:
            raise unknown_thread(question.scope.user, before)
    found = connection.execute(_THREADS, (owner, *last, question.limit))
    return [Thread(name, count, moment(first), moment(last), text) for name, count, first, last, text in found]


def _by_time(within: Within) -> str:
    """Return the log with the index that has a scope's messages in order of time.

    It is named because the planner does not know how large a user's log is.
    """
    return f"log INDEXED BY {'log_by_owner_time' if within == 'user' else 'log_by_time'}"


def versions(connection: apsw.Connection, question: questions.VersionsOf) -> list[Message]:
    """Return all versions of the user's messages, in the order of the log."""
    owner = _number(find_person(connection, question.scope.space, question.scope.user))
    return records.messages(rows.every(connection.execute(_VERSIONS, (owner, json.dumps(list(question.seqs))))))


def attachment_hashes(connection: apsw.Connection, _: questions.AttachmentHashes) -> frozenset[str]:
    """Return the hashes that the parts of messages name."""
    query = "SELECT details FROM log WHERE details IS NOT NULL AND instr(details, '\"hash\"')"
    return records.hashes_in(text for (text,) in connection.execute(query))


def _position(
    connection: apsw.Connection, limit_to_scope: str, values: tuple[int, ...], before: int | Position
) -> Position:
    """Return the position that a read ends before."""
    if isinstance(before, Position):
        return before
    query = f"SELECT at, seq FROM log WHERE {limit_to_scope} AND seq <= ? ORDER BY seq DESC LIMIT 1"
    found = connection.execute(query, (*values, before)).fetchone()
    return records.position(found, before)


def message(connection: apsw.Connection, question: questions.MessageById) -> Message:
    """Return one message by its id."""
    limit_to_scope, values = inside(connection, question.scope, question.within)
    seq = sequence_number(question.message_id)
    if seq is not None:
        named = f"{rows.MESSAGE} WHERE {limit_to_scope} AND log.seq = ? AND log.given_id IS NULL"
        row = connection.execute(named, (*values, seq)).fetchone()
    else:
        here = _number(find_thread(connection, question.scope.space, question.scope.thread))
        named = f"{_BY_GIVEN_ID} AND {limit_to_scope} ORDER BY log.thread != ?, log.seq DESC LIMIT 1"
        row = connection.execute(named, (question.message_id, *values, here)).fetchone()
    if row is None:
        raise NotFound(f"{quoted(question.scope.user)} has no message {quoted(question.message_id)}")
    return records.message(row)


def pick(connection: apsw.Connection, question: questions.MessagesByNumber) -> list[Message]:
    """Return those of the messages that the scope holds, in order."""
    limit_to_scope, values = inside(connection, question.scope, question.within)
    query = f"{_BY_SEQ} AND {limit_to_scope} ORDER BY log.seq"
    return records.messages(rows.every(connection.execute(query, (json.dumps(list(question.seqs)), *values))))


def covered(connection: apsw.Connection, question: questions.CoveredMessages) -> list[Message]:
    """Return the messages below a summary."""
    owner = _number(find_person(connection, question.scope.space, question.scope.user))
    found = connection.execute(
        "SELECT reach, chunks FROM summary WHERE id = ? AND owner = ?", (question.summary, owner)
    ).fetchone()
    if found is None:
        raise NotFound(f"{quoted(question.scope.user)} has no summary {question.summary}")
    reach, chunks = found
    if reach != "chunks":
        return in_time_order(views.below(connection, question.summary))
    # The plus keeps SQLite from reading all of the owner's messages: the chunks are the shorter way.
    query = f"{rows.MESSAGE} WHERE log.chunk IN (SELECT value FROM json_each(?)) AND +log.owner = ?"
    return in_time_order(records.messages(rows.every(connection.execute(query, (chunks, owner)))))


def summaries(connection: apsw.Connection, question: questions.Summaries) -> list[Summary]:
    """Return the user's summaries, highest level first."""
    where, values = ["y.owner = ?"], [find_person(connection, question.scope.space, question.scope.user)]
    limits: list[tuple[str, Any]] = [
        ("y.kind = ?", question.kind),
        ("y.day = ?", None if question.day is None else question.day.isoformat()),
        (
            "y.thread = ?",
            _number(find_thread(connection, question.scope.space, question.scope.thread)) if question.here else None,
        ),
    ]
    for limit, value in limits:
        if value is not None:
            where.append(limit)
            values.append(value)
    if question.active is not None:
        where.append(f"y.active = {question.active:d}")
    query = f"{rows.SUMMARY} WHERE {' AND '.join(where)} ORDER BY y.level DESC, y.id"
    return [rows.summary(row) for row in connection.execute(query, values)]


def summary(connection: apsw.Connection, question: questions.SummaryById) -> Summary:
    """Return one of the user's summaries."""
    owner = _number(find_person(connection, question.scope.space, question.scope.user))
    row = connection.execute(f"{rows.SUMMARY} WHERE y.id = ? AND y.owner = ?", (question.summary, owner)).fetchone()
    if row is None:
        raise NotFound(f"{quoted(question.scope.user)} has no summary {question.summary}")
    return rows.summary(row)


def sessions(connection: apsw.Connection, question: questions.Sessions) -> list[Session]:
    """Return the sessions that the scope's newest messages are in, oldest first by start."""
    limit_to_scope, values = inside(connection, question.scope, question.within)
    before_position = f"{limit_to_scope} AND (at, seq) < (?, ?)"
    query = f"""
    SELECT at, seq, session FROM {_by_time(question.within)} WHERE {before_position}
     ORDER BY at DESC, seq DESC LIMIT {_PAGE}
    """
    found: dict[int, None] = {}
    before = (LARGEST, LARGEST)
    # Page by page from the newest message, so that the cost is that of the sessions asked for, not of all there are.
    while len(found) < question.limit:
        page = rows.every(connection.execute(query, (*values, *before)))
        found.update((session, None) for _, _, session in page)
        if len(page) < _PAGE:
            break
        before = page[-1][:2]
    newest = json.dumps(list(found)[: question.limit])
    query = f"{rows.SESSION} WHERE s.id IN (SELECT value FROM json_each(?)) ORDER BY s.started_at, s.id"
    return [records.session(row) for row in connection.execute(query, (newest,))]


def ledger(connection: apsw.Connection, question: questions.UserLedger) -> Ledger:
    """Return the user's counts."""
    owner = _number(find_person(connection, question.scope.space, question.scope.user))
    counts = connection.execute(
        "SELECT messages, archived, turns, open_turns, last_seq, last_chunk FROM person WHERE id = ?", (owner,)
    ).fetchone()
    active = """
    SELECT level, count(*) FROM summary WHERE owner = ? AND kind = 'tree' AND active = 1 GROUP BY level ORDER BY level
    """
    return records.ledger(counts, rows.every(connection.execute(active, (owner,))))


def ledger_of_thread(connection: apsw.Connection, question: questions.UserLedger) -> Ledger:
    """Return the user's counts in one thread."""
    owner = _number(find_person(connection, question.scope.space, question.scope.user))
    thread = _number(find_thread(connection, question.scope.space, question.scope.thread))
    active = """
    SELECT level, count(*), max(iif(reach = 'thread', last_seq, 0)) FROM summary
     WHERE owner = ? AND thread = ? AND active = 1 AND reach IN ('thread', 'chunks') GROUP BY level ORDER BY level
    """
    levels = rows.every(connection.execute(active, (owner, thread)))
    counts = """
    SELECT count(*), coalesce(sum(active = 0), 0), coalesce(sum(role = 'user'), 0),
           coalesce(sum(role = 'user' AND chunk IS NULL AND seq > ?3), 0), coalesce(max(seq), 0),
           coalesce(max(chunk), 0)
      FROM log INDEXED BY log_by_time WHERE thread = ?2 AND owner = ?1
    """
    covered = max((last for _, _, last in levels), default=0)
    return records.ledger(rows.one(connection.execute(counts, (owner, thread, covered))), levels)


def spent(connection: apsw.Connection, question: questions.TokensSpent) -> int:
    """Return the tokens that were spent on a day."""
    query = "SELECT tokens FROM spending WHERE day = ? AND space = ? AND user = ?"
    names = ("", "") if question.scope is None else (question.scope.space, question.scope.user)
    tokens: int | None = connection.execute(query, (question.day.isoformat(), *names)).get
    return tokens or 0


def users(connection: apsw.Connection, question: questions.Users) -> list[User]:
    """Return the users who own something."""
    query = f"""
    SELECT space, name, messages, archived, created_at, last_at, {_DISPLAY_NAME} FROM person
     WHERE owner = 1 AND (?1 IS NULL OR space = ?1) ORDER BY space, name
    """
    return [records.user(row) for row in connection.execute(query, (question.space,))]


def names(connection: apsw.Connection, question: questions.DisplayNames) -> dict[str, str]:
    """Return the display names of a space by user id."""
    query = f"SELECT name, {_DISPLAY_NAME} AS display_name FROM person WHERE space = ? AND display_name IS NOT NULL"
    if question.users is None:
        return dict(connection.execute(query, (question.space,)))
    limited = f"{query} AND name IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(limited, (question.space, json.dumps(list(question.users)))))


def irregular_ids(connection: apsw.Connection, _: questions.IrregularIds) -> frozenset[str]:
    """Return the ids that are not spelled regularly: SQL finds those that may be, by their bytes and spaces."""
    query = """
    SELECT name FROM person WHERE octet_length(name) <> length(name) OR trim(name) <> name
    UNION SELECT space FROM person WHERE octet_length(space) <> length(space) OR trim(space) <> space
    UNION SELECT name FROM thread WHERE octet_length(name) <> length(name) OR trim(name) <> name
    UNION SELECT name FROM session WHERE automatic = 0 AND (octet_length(name) <> length(name) OR trim(name) <> name)
    """
    return frozenset(name for (name,) in connection.execute(query) if not is_regular(name))


def stats(connection: apsw.Connection, _: questions.Totals) -> Stats:
    """Return totals. Messages are counted per user as they arrive, so this does not read the log."""
    spaces, people, messages, archived = rows.one(
        connection.execute(
            "SELECT count(DISTINCT space), count(*) FILTER (WHERE name <> ?), coalesce(sum(messages), 0), "
            "coalesce(sum(archived), 0) FROM person WHERE owner = 1",
            (EVERYBODY,),
        )
    )
    threads, sessions, summaries, memories = rows.one(
        connection.execute(
            "SELECT (SELECT count(*) FROM thread), (SELECT count(*) FROM session), "
            "(SELECT count(*) FROM summary), (SELECT count(*) FROM memory)"
        )
    )
    size = connection.pragma("page_count") * connection.pragma("page_size")
    return Stats(spaces, people, threads, sessions, messages, archived, summaries, memories, size)


def _number(found: int | None) -> int:
    return NOBODY if found is None else found
