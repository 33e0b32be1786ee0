"""Questions about messages, sessions and threads. None can leave its scope."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Final

from aforesaid.domain.checks import LARGEST, Within, microseconds, moment
from aforesaid.domain.hit import EVERY_MESSAGE, MessageFilter, Scalar
from aforesaid.domain.message import Message, Position, sequence_number
from aforesaid.domain.report import Activity, Ledger
from aforesaid.domain.scope import Scope, Session, is_direct
from aforesaid.domain.thread import LAST_TEXT, Thread, unknown_thread
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions, records
from aforesaid.store.sql.appending import (
    A_THREAD,
    A_USER,
    ACTIVE,
    DAY_OF,
    FIRST_DAY,
    MESSAGE,
    NEWEST,
    OWNED,
    SESSION,
    USER,
    listed,
)
from aforesaid.store.sql.statements import Answer, Conditions, Statement, first, rows

_PAGE: Final = 500
_ITS_SESSION: Final = f"""
SELECT id, first_seq, last_seq[[ ~ , started_at, last_at]] FROM session
 WHERE [[space = $1 AND md5(thread) = md5($2) AND ]]thread = {A_THREAD.format("$2")} AND name = $3
"""
_LAST_IN_THREAD: Final = f"SELECT max(at) FROM log WHERE {OWNED} AND thread = {A_THREAD.format('$3')} AND {NEWEST}"
_THREADS: Final = f"""
SELECT {{name}}, used.messages, used.first_at, used.last_at, (
    SELECT substr(log.text, 1, {LAST_TEXT}) FROM log[[ ~  INDEXED BY log_by_time]]
     WHERE [[log.space = $1 AND ]]log.thread = used.thread AND log.at = used.last_at AND log.owner = {USER} AND {NEWEST}
     ORDER BY log.seq DESC LIMIT 1
) FROM (
    SELECT thread, count(*) AS messages, min(at) AS first_at, max(at) AS last_at
      FROM log WHERE {OWNED} AND {NEWEST} GROUP BY thread
) used[[ ~  JOIN thread t ON t.id = used.thread]]
 WHERE (used.last_at, {{name}}) < ($3, $4) ORDER BY used.last_at DESC, {{name}} DESC LIMIT $5
""".format(name="[[used.thread ~ t.name]]")
# By SQLite's primary key: through the index of the owner it takes half as long again.
_BY_SEQ: Final = MESSAGE.replace("FROM log[[ ~ ", "FROM log[[ ~  NOT INDEXED")
# Without the name of the index, SQLite reads the messages of the owner one by one.
_BY_GIVEN_ID: Final = MESSAGE.replace("FROM log[[ ~ ", "FROM log[[ ~  INDEXED BY log_by_given_id")
_VERSIONS: Final = f"""
WITH RECURSIVE version (seq, replaces) AS (
    SELECT seq, replaces FROM log WHERE {OWNED} AND {listed("seq", "$3")}
    UNION SELECT l.seq, l.replaces FROM version v JOIN log l
       ON [[l.space = $1 AND (l.replaces = v.seq OR l.seq = v.replaces) ~ l.replaces = v.seq
    UNION SELECT l.seq, l.replaces FROM version v JOIN log l ON l.seq = v.replaces]]
) {MESSAGE} WHERE [[log.space = $1 AND ]]log.seq IN (SELECT seq FROM version) ORDER BY log.seq
"""
_HASHES: Final = """
SELECT details FROM log
 WHERE details IS NOT NULL AND [[strpos(details, '"hash"') > 0 ~ instr(details, '"hash"')]]
"""
# The conditions are those of the index log_by_response, word for word.
_RESPONSE_OWNER: Final = """
SELECT [[log.space, log.owner FROM log ~ p.space, p.name
  FROM log INDEXED BY log_by_response JOIN person p ON p.id = log.owner]]
 WHERE log.details IS NOT NULL AND substr(log.given_id, 1, 6) = 'reply:'
   AND [[md5(log.details::jsonb -> 'metadata' ->> 'response') = md5($1)
   AND log.details::jsonb -> 'metadata' ->> 'response' = $1 ~ json_extract(log.details, '$.metadata.response') = $1]]
 ORDER BY log.stored_at, log.seq LIMIT 1
"""
# In SQLite, the log of a space is read thread by thread.
_SAID_BETWEEN: Final = f"""
{MESSAGE}[[ JOIN thread t ON t.space = log.space AND t.name = log.thread
 WHERE log.space = $1 AND log.at >= $2 AND log.at < $3 ~  WHERE log.seq IN (
    SELECT l.seq FROM thread h CROSS JOIN log l ON l.thread = h.id WHERE h.space = $1 AND l.at >= $2 AND l.at < $3)]]
 ORDER BY log.at, log.seq
"""
_SAID_PER_DAY: Final = f"""
SELECT {DAY_OF.format("log.at")}, count(*), count(*) FILTER (WHERE log.role = 'user')
  FROM [[log WHERE log.space = $1 ~ thread h CROSS JOIN log ON log.thread = h.id WHERE h.space = $1]]
   AND log.at >= $2 AND log.at < $3{{user}} GROUP BY 1 ORDER BY 1
"""
_COUNTS: Final = """
SELECT messages, archived, turns, open_turns, last_seq, last_chunk FROM person WHERE space = $1 AND name = $2
"""
_LEVELS: Final = f"""
SELECT level, count(*) FROM summary WHERE {OWNED} AND kind = 'tree' AND {ACTIVE.format("summary")}
 GROUP BY level ORDER BY level
"""
_HERE: Final = f"{OWNED} AND thread = {A_THREAD.format('$3')}"
_COUNTS_OF_THREAD: Final = f"""
SELECT count(*), count(*) FILTER (WHERE NOT active), count(*) FILTER (WHERE role = 'user'),
       count(*) FILTER (WHERE role = 'user' AND chunk IS NULL AND seq > $4), coalesce(max(seq), 0),
       coalesce(max(chunk), 0)
  FROM log[[ ~  INDEXED BY log_by_time]] WHERE {_HERE}
"""
_LEVELS_OF_THREAD: Final = f"""
SELECT level, count(*), max(CASE WHEN reach = 'thread' THEN last_seq ELSE 0 END) FROM summary
 WHERE {_HERE} AND {ACTIVE.format("summary")} AND reach IN ('thread', 'chunks') GROUP BY level ORDER BY level
"""


def inside(scope: Scope, within: Within) -> Answer[Conditions]:
    """Return what limits a read of the log to the scope. Whoever reads adds nothing but further limits.

    Each condition is one that an index answers.
    """
    if within == "user":
        return Conditions(f"[[log.space = $1 AND ]]log.owner = {USER}", scope.space, scope.user)
    limits = Conditions(f"[[log.space = $1 AND ]]log.thread = {A_THREAD.format('$2')}", scope.space, scope.thread)
    if is_direct(scope.thread):
        # A direct chat is found through its owner: that index is there anyway.
        limits.add(f"log.owner = {A_USER}", scope.user)
    else:
        limits.add("[[log.shared ~ log.shared = 1]]")
    if within == "session":
        found = yield from first(_ITS_SESSION, scope.space, scope.thread, scope.named_session())
        if found is None:
            limits.add("1 = 0")
            return limits
        limits.add("log.session = {0} AND log.seq BETWEEN {1} AND {2}", *found[:3])
        if found[3:]:
            limits.add("log.at BETWEEN {0} AND {1}", *found[3:])
    return limits


def add_filter(limits: Conditions, where: MessageFilter) -> None:
    """Add the conditions of a message filter."""
    if where is EVERY_MESSAGE:
        return
    limits.add_if("log.role = {0}", where.role)
    limits.add_if(f"log.author = {A_USER}", where.author)
    limits.add_if("log.at >= {0}", where.since)
    limits.add_if("log.at < {0}", where.until)
    limits.add_if("log.given_id = {0}", where.given_id)
    for key, wanted in where.metadata:
        limits.add(
            f"""
            [[log.details::jsonb -> 'metadata' -> {{0}}::text = {{1}}::text::jsonb
            ~ EXISTS (SELECT 1 FROM json_each(log.details, '$.metadata') WHERE key = {{0}} AND {_type(wanted)}
            AND atom IS json_extract({{1}}, '$'))]]
            """,
            key,
            json.dumps(wanted),
        )


def _type(wanted: Scalar) -> str:
    """Return the condition on the type of a value in SQLite. True, false and null are types of their own."""
    if wanted is None or isinstance(wanted, bool):
        return "type = " + {None: "'null'", True: "'true'", False: "'false'"}[wanted]
    return "type = 'text'" if isinstance(wanted, str) else "type IN ('integer', 'real')"


def _index(within: Within, where: MessageFilter) -> str:
    """Return the index that has a scope's messages in order of time, or the few with an id.

    SQLite needs its name, because its planner does not know how large a user's log is.
    """
    if where.given_id is not None:
        return "log_by_given_id"
    return "log_by_owner_time" if within == "user" else "log_by_time"


def _by_time(within: Within, where: MessageFilter) -> str:
    return f"log[[ ~  INDEXED BY {_index(within, where)}]]"


def messages(question: questions.Messages) -> Answer[list[Message]]:
    """Return the newest messages by when they were said, oldest first."""
    limits = yield from inside(question.scope, question.within)
    if question.before is not None:
        position = yield from _position(limits, question.before)
        limits.add("(log.at, log.seq) < ({0}, {1})", *position)
    add_filter(limits, question.where)
    if not question.archived:
        limits.add(ACTIVE.format("log"))
    if not question.versions:
        limits.add(NEWEST)
    order = "ORDER BY log.at DESC, log.seq DESC"
    if question.after is not None:
        limits.add("(log.at, log.seq) > ({0}, {1})", *question.after)
        order = "ORDER BY log.at, log.seq"
    page = f"{order} LIMIT {limits.bind(question.limit)}"
    index = _index(question.within, question.where)
    picked = f"[[ ~ log.seq IN (SELECT seq FROM log INDEXED BY {index} WHERE ]]{limits} {page}"
    found = yield from rows(f"{MESSAGE} WHERE {picked}[[ ~ ) {order}]]", *limits.values)
    return records.messages(found if question.after is not None else reversed(found))


def _position(limits: Conditions, before: int | Position) -> Answer[Position]:
    """Return the position that a read ends before."""
    if isinstance(before, Position):
        return before
    text = f"SELECT at, seq FROM log WHERE {limits} AND log.seq <= ${len(limits.values) + 1} ORDER BY seq DESC LIMIT 1"
    return records.position((yield from first(text, *limits.values, before)), before)


def count(question: questions.MessageCount) -> Answer[int]:
    """Return the number of messages."""
    limits = yield from inside(question.scope, question.within)
    limits.add(NEWEST)
    add_filter(limits, question.where)
    if not question.archived:
        limits.add(ACTIVE.format("log"))
    log = _by_time(question.within, question.where)
    ((found,),) = yield from rows(f"SELECT count(*) FROM {log} WHERE {limits}", *limits.values)
    return int(found)


def threads(question: questions.Threads) -> Answer[list[Thread]]:
    """Return the user's threads, newest first."""
    whose, before = question.scope[:2], question.before
    last = LARGEST, ""
    if isinstance(before, Thread):
        last = microseconds(before.last_at, "the last time of the thread"), before.id
    elif before is not None:
        (at,) = (yield from first(_LAST_IN_THREAD, *whose, before)) or (None,)
        if at is None:
            raise unknown_thread(question.scope.user, before)
        last = at, before
    found = yield from rows(_THREADS, *whose, *last, question.limit)
    return [Thread(name, count, moment(first), moment(last), text) for name, count, first, last, text in found]


def message(question: questions.MessageById) -> Answer[Message]:
    """Return one message by its id."""
    limits = yield from inside(question.scope, question.within)
    seq = sequence_number(question.message_id)
    if seq is not None:
        limits.add("log.seq = {0} AND log.given_id IS NULL", seq)
        row = yield from first(f"{MESSAGE} WHERE {limits}", *limits.values)
    else:
        limits.add("log.given_id = {0}", question.message_id)
        order = f"log.thread != {A_THREAD.format(limits.bind(question.scope.thread))}, log.seq DESC"
        row = yield from first(f"{_BY_GIVEN_ID} WHERE {limits} ORDER BY {order} LIMIT 1", *limits.values)
    if row is None:
        raise NotFound(f"{quoted(question.scope.user)} has no message {quoted(question.message_id)}")
    return records.message(row)


def pick(question: questions.MessagesByNumber) -> Answer[list[Message]]:
    """Return those of the messages that the scope holds, in order."""
    limits = yield from inside(question.scope, question.within)
    limits.add(listed("log.seq", "{0}"), list(question.seqs))
    return records.messages((yield from rows(f"{_BY_SEQ} WHERE {limits} ORDER BY log.seq", *limits.values)))


def versions(question: questions.VersionsOf) -> Answer[list[Message]]:
    """Return all versions of the user's messages, in the order of the log."""
    return records.messages((yield from rows(_VERSIONS, *question.scope[:2], list(question.seqs))))


def attachment_hashes(_: questions.AttachmentHashes) -> Answer[frozenset[str]]:
    """Return the hashes that the parts of messages name."""
    return records.hashes_in(text for (text,) in (yield from rows(_HASHES)))


def response_owner(question: questions.ResponseOwner) -> Answer[tuple[str, str] | None]:
    """Return whose the first answer with a response id is."""
    row = yield from first(_RESPONSE_OWNER, question.response)
    return None if row is None else (str(row[0]), str(row[1]))


def following(question: questions.MessagesAfter) -> Answer[list[Message]]:
    """Return the user's oldest messages after one, in the scope's thread or in all."""
    limits = yield from inside(question.scope, "user")
    limits.add("log.seq > {0}", question.after)
    if question.here:
        limits.add(f"log.thread = {A_THREAD}", question.scope.thread)
    if not question.archived:
        limits.add(ACTIVE.format("log"))
    # Named, because the size of an owner's log is not known to SQLite's planner.
    index = "log_by_owner" if question.archived else "log_active_by_owner"
    oldest = f"ORDER BY log.seq LIMIT {limits.bind(question.limit)}"
    picked = f"[[ ~ log.seq IN (SELECT seq FROM log INDEXED BY {index} WHERE ]]{limits} {oldest}"
    return records.messages((yield from rows(f"{MESSAGE} WHERE {picked}[[ ~ ) ORDER BY log.seq]]", *limits.values)))


def said_between(question: questions.MessagesBetween) -> Answer[list[Message]]:
    """Return what was said in a space, from one moment to before another, by when it was said."""
    return records.messages((yield from rows(_SAID_BETWEEN, question.space, question.since, question.until)))


def said_per_day(question: questions.ActivityPerDay) -> Answer[list[Activity]]:
    """Return how much was said in a space on each day of UTC, oldest first."""
    limits = Conditions("", question.space, question.since, question.until)
    limits.add_if(f"log.owner = {A_USER}", question.user)
    found = yield from rows(_SAID_PER_DAY.format(user=limits), *limits.values)
    return [Activity(FIRST_DAY + timedelta(days=day), messages, turns) for day, messages, turns in found]


def sessions(question: questions.Sessions) -> Answer[list[Session]]:
    """Return the sessions that the scope's newest messages are in, oldest first by start."""
    limits = yield from inside(question.scope, question.within)
    values = tuple(limits.values)
    limits.add("(log.at, log.seq) < ({0}, {1})", LARGEST, LARGEST)
    text = f"""
    SELECT log.at, log.seq, log.session FROM {_by_time(question.within, EVERY_MESSAGE)} WHERE {limits}
     ORDER BY log.at DESC, log.seq DESC LIMIT {_PAGE}
    """
    found: dict[int, None] = {}
    last: tuple[int, ...] = LARGEST, LARGEST
    # Page by page from the newest message, so that the cost is that of the sessions asked for, not of all there are.
    while len(found) < question.limit:
        page = yield from rows(text, *values, *last)
        found.update((session, None) for _, _, session in page)
        if len(page) < _PAGE:
            break
        last = page[-1][:2]
    text = f"{SESSION} WHERE [[s.space = $1 AND ]]{listed('s.id', '$2')} ORDER BY s.started_at, s.id"
    numbers = list(found)[: question.limit]
    return [records.session(row) for row in (yield from rows(text, question.scope.space, numbers))]


def ledger(question: questions.UserLedger) -> Answer[Ledger]:
    """Return the user's counts, in one thread or in all."""
    scope = question.scope
    if question.here:
        levels = yield from rows(_LEVELS_OF_THREAD, *scope[:3])
        covered = max((last for _, _, last in levels), default=0)
        return records.ledger((yield from first(_COUNTS_OF_THREAD, *scope[:3], covered)), levels)
    counts, levels = yield (Statement(_COUNTS, scope[:2]), Statement(_LEVELS, scope[:2]))
    return records.ledger(counts[0] if counts else None, levels)
