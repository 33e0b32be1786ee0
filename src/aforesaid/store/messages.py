"""Messages, sessions and threads: what can be asked about them. No question can leave its scope."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import repeat
from typing import Final, overload

from aforesaid.domain.caches import fast_constructor
from aforesaid.domain.checks import EARLIEST, LARGEST, Within, microseconds, moment
from aforesaid.domain.details import read_details
from aforesaid.domain.hit import EVERY_MESSAGE, MessageFilter, Scalar
from aforesaid.domain.message import Draft, Message, Position, message_id, sequence_number
from aforesaid.domain.report import Activity, Ledger
from aforesaid.domain.scope import SESSION_SILENCE, Scope, Session, is_direct
from aforesaid.domain.thread import LAST_TEXT, Thread, unknown_thread
from aforesaid.domain.transfer import Restored, SessionRow
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store.checksums import both
from aforesaid.store.operations import Change, OfScope, OfScopeShort, OfSpace, Question, Transaction
from aforesaid.store.sql import (
    A_THREAD,
    A_USER,
    ACTIVE,
    DAY_OF,
    FIRST_DAY,
    NEWEST,
    OWNED,
    USER,
    Answer,
    Conditions,
    Row,
    Statement,
    done,
    first,
    listed,
    number,
    rows,
)

MESSAGE: Final = """
SELECT log.seq, log.given_id, [[log.space, log.owner, log.thread ~ o.space, o.name, t.name]], s.name, log.role,
       [[log.author ~ a.name]], log.name, log.text, log.at, log.stored_at, log.active, log.chunk, log.hash,
       log.replaces, log.replaced, log.details
  FROM log[[ ~  JOIN person o ON o.id = log.owner JOIN person a ON a.id = log.author
  JOIN thread t ON t.id = log.thread]]
  JOIN session s ON [[s.space = log.space AND ]]s.id = log.session
"""
"""What `read_message` reads."""
SESSION: Final = """
SELECT s.name, [[s.space, s.thread, s.opened_by ~ t.space, t.name, p.name]], s.started_at, s.last_at, s.messages,
       s.timeout, s.automatic, s.id
  FROM session s[[ ~  JOIN thread t ON t.id = s.thread JOIN person p ON p.id = s.opened_by]]
"""
"""What `read_session` reads."""


_made: Final = fast_constructor(Message)


def read_message(row: Row) -> Message:
    (
        seq, given, space, user, thread, session, role, author, name, text, said, stored, active, chunk, digest,
        replaces, replaced, details,
    ) = row  # fmt: skip
    at = moment(said)
    return _made(
        seq, given if given is not None else message_id(seq, None), space, user, thread, session, role, author, name,
        text, at, at if stored == said else moment(stored), bool(active), chunk, digest, replaces, bool(replaced),
        details,
    )  # fmt: skip


def read_messages(found: Iterable[Row]) -> list[Message]:
    return [read_message(row) for row in found]


def read_session(row: Row) -> Session:
    key, space, thread, user, started_at, last_at, messages, timeout = row[:8]
    silence = timedelta(microseconds=timeout)
    return Session(key, space, thread, user, moment(started_at), moment(last_at), messages, silence)


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
        found = yield from first(ITS_SESSION, scope.space, scope.thread, scope.named_session())
        if found is None:
            limits.add("1 = 0")
            return limits
        limits.add("log.session = {0} AND log.seq BETWEEN {1} AND {2}", *found[:3])
        if found[3:]:
            limits.add("log.at BETWEEN {0} AND {1}", *found[3:])
    return limits


def add_filter(limits: Conditions, where: MessageFilter) -> None:
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


_PAGE: Final = 500
ITS_SESSION: Final = f"""
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


_SHORT_READ: Final = 500
"""Maximum messages of a read that counts as short."""


@dataclass(frozen=True, slots=True)
class Messages(OfScope[list[Message]]):
    """The newest `limit` messages, by when they were said, oldest first.

    Of a message with several versions, only the newest; with `versions`, all of them.

    With `before`, only those that come before a position, or before the message with that sequence number. A number
    that is none of the scope's messages means: up to the message that was stored last before it, inclusive.

    With `after`, the oldest `limit` messages that come after a position.
    """

    within: Within = "user"
    limit: int = 50
    before: int | Position | None = None
    archived: bool = True
    versions: bool = False
    where: MessageFilter = EVERY_MESSAGE
    after: Position | None = None

    @property
    def short(self) -> bool:
        """Whether few messages are read: with a filter, many may be passed over."""
        return self.limit <= _SHORT_READ and self.where == EVERY_MESSAGE

    def answer(self) -> Answer[list[Message]]:
        limits = yield from inside(self.scope, self.within)
        if self.before is not None:
            position = yield from _position(limits, self.before)
            limits.add("(log.at, log.seq) < ({0}, {1})", *position)
        add_filter(limits, self.where)
        if not self.archived:
            limits.add(ACTIVE.format("log"))
        if not self.versions:
            limits.add(NEWEST)
        order = "ORDER BY log.at DESC, log.seq DESC"
        if self.after is not None:
            limits.add("(log.at, log.seq) > ({0}, {1})", *self.after)
            order = "ORDER BY log.at, log.seq"
        page = f"{order} LIMIT {limits.bind(self.limit)}"
        index = _index(self.within, self.where)
        picked = f"[[ ~ log.seq IN (SELECT seq FROM log INDEXED BY {index} WHERE ]]{limits} {page}"
        found = yield from rows(f"{MESSAGE} WHERE {picked}[[ ~ ) {order}]]", *limits.values)
        return read_messages(found if self.after is not None else reversed(found))


@dataclass(frozen=True, slots=True)
class MessageCount(OfScope[int]):
    """The number of messages that `Messages` would return without a limit."""

    within: Within = "user"
    archived: bool = True
    where: MessageFilter = EVERY_MESSAGE

    def answer(self) -> Answer[int]:
        limits = yield from inside(self.scope, self.within)
        limits.add(NEWEST)
        add_filter(limits, self.where)
        if not self.archived:
            limits.add(ACTIVE.format("log"))
        log = _by_time(self.within, self.where)
        ((found,),) = yield from rows(f"SELECT count(*) FROM {log} WHERE {limits}", *limits.values)
        return int(found)


@dataclass(frozen=True, slots=True)
class Threads(OfScope[list[Thread]]):
    """The threads that the user has messages in, by their last message, newest first.

    With `before`, only those that come after a thread in that order: after the place that a `Thread` had when it was
    read, or after the thread with an id. Raises NotFound if the user has no messages in the thread with this id.
    """

    limit: int = 50
    before: Thread | str | None = None

    def answer(self) -> Answer[list[Thread]]:
        whose, before = self.scope[:2], self.before
        last = LARGEST, ""
        if isinstance(before, Thread):
            last = microseconds(before.last_at, "the last time of the thread"), before.id
        elif before is not None:
            (at,) = (yield from first(_LAST_IN_THREAD, *whose, before)) or (None,)
            if at is None:
                raise unknown_thread(self.scope.user, before)
            last = at, before
        found = yield from rows(_THREADS, *whose, *last, self.limit)
        return [Thread(name, count, moment(first), moment(last), text) for name, count, first, last, text in found]


@dataclass(frozen=True, slots=True)
class MessageById(OfScopeShort[Message]):
    """One message by its id. Raises NotFound.

    Where several threads use the id, the one in the scope's own thread is returned, otherwise the newest.
    """

    message_id: str
    within: Within = "user"

    def answer(self) -> Answer[Message]:
        limits = yield from inside(self.scope, self.within)
        seq = sequence_number(self.message_id)
        if seq is not None:
            limits.add("log.seq = {0} AND log.given_id IS NULL", seq)
            row = yield from first(f"{MESSAGE} WHERE {limits}", *limits.values)
        else:
            limits.add("log.given_id = {0}", self.message_id)
            order = f"log.thread != {A_THREAD.format(limits.bind(self.scope.thread))}, log.seq DESC"
            row = yield from first(f"{_BY_GIVEN_ID} WHERE {limits} ORDER BY {order} LIMIT 1", *limits.values)
        if row is None:
            raise NotFound(f"{quoted(self.scope.user)} has no message {quoted(self.message_id)}")
        return read_message(row)


@dataclass(frozen=True, slots=True)
class MessagesByNumber(OfScopeShort[list[Message]]):
    """Those of the messages that the scope holds, by sequence number."""

    seqs: Sequence[int]
    within: Within = "user"

    def answer(self) -> Answer[list[Message]]:
        limits = yield from inside(self.scope, self.within)
        limits.add(listed("log.seq", "{0}"), list(self.seqs))
        return read_messages((yield from rows(f"{_BY_SEQ} WHERE {limits} ORDER BY log.seq", *limits.values)))


@dataclass(frozen=True, slots=True)
class VersionsOf(OfScope[list[Message]]):
    """All versions of those of the messages that are the user's, by sequence number. Any version names all of them."""

    seqs: Sequence[int]

    def answer(self) -> Answer[list[Message]]:
        return read_messages((yield from rows(_VERSIONS, *self.scope[:2], list(self.seqs))))


@dataclass(frozen=True, slots=True)
class AttachmentHashes(Question[frozenset[str]]):
    """The hashes that the parts of messages name, of all spaces. Reads all messages that have details."""

    needs_store = True

    def answer(self) -> Answer[frozenset[str]]:
        return frozenset(
            part.hash
            for (text,) in (yield from rows(_HASHES))
            for part in read_details(text).parts
            if part.hash is not None
        )


@dataclass(frozen=True, slots=True)
class ResponseOwner(Question[tuple[str, str] | None]):
    """The space and the user of the answer that the proxy stored first under a provider's response id, in any space.

    None if there is none. The first one counts: whoever stores the id later, in metadata of their own, gets nothing.
    """

    needs_store = True
    response: str

    def answer(self) -> Answer[tuple[str, str] | None]:
        row = yield from first(_RESPONSE_OWNER, self.response)
        return None if row is None else (str(row[0]), str(row[1]))


@dataclass(frozen=True, slots=True)
class MessagesAfter(OfScope[list[Message]]):
    """The user's first messages with a sequence number above `after`, by sequence number.

    With `here`, only those in the scope's thread.
    """

    after: int
    limit: int
    here: bool = False
    archived: bool = True

    def answer(self) -> Answer[list[Message]]:
        limits = yield from inside(self.scope, "user")
        limits.add("log.seq > {0}", self.after)
        if self.here:
            limits.add(f"log.thread = {A_THREAD}", self.scope.thread)
        if not self.archived:
            limits.add(ACTIVE.format("log"))
        # Named, because the size of an owner's log is not known to SQLite's planner.
        index = "log_by_owner" if self.archived else "log_active_by_owner"
        oldest = f"ORDER BY log.seq LIMIT {limits.bind(self.limit)}"
        picked = f"[[ ~ log.seq IN (SELECT seq FROM log INDEXED BY {index} WHERE ]]{limits} {oldest}"
        return read_messages((yield from rows(f"{MESSAGE} WHERE {picked}[[ ~ ) ORDER BY log.seq]]", *limits.values)))


@dataclass(frozen=True, slots=True)
class MessagesBetween(OfSpace[list[Message]]):
    """What was said in a space from one moment to before another (microseconds), by when it was said."""

    needs_store = True
    since: int
    until: int

    def answer(self) -> Answer[list[Message]]:
        return read_messages((yield from rows(_SAID_BETWEEN, self.space, self.since, self.until)))


@dataclass(frozen=True, slots=True)
class ActivityPerDay(OfSpace[list[Activity]]):
    """How much was said on each day (of UTC) between two moments on which something was, by all or for one user.

    Counted where it is stored: it takes no more memory for a million messages than for ten.
    """

    needs_store = True
    since: int
    until: int
    user: str | None = None

    def answer(self) -> Answer[list[Activity]]:
        limits = Conditions("", self.space, self.since, self.until)
        limits.add_if(f"log.owner = {A_USER}", self.user)
        found = yield from rows(_SAID_PER_DAY.format(user=limits), *limits.values)
        return [Activity(FIRST_DAY + timedelta(days=day), messages, turns) for day, messages, turns in found]


@dataclass(frozen=True, slots=True)
class Sessions(OfScope[list[Session]]):
    """The sessions that the scope's newest messages are in, oldest first by start."""

    within: Within = "user"
    limit: int = 50

    def answer(self) -> Answer[list[Session]]:
        limits = yield from inside(self.scope, self.within)
        values = tuple(limits.values)
        limits.add("(log.at, log.seq) < ({0}, {1})", LARGEST, LARGEST)
        text = f"""
        SELECT log.at, log.seq, log.session FROM {_by_time(self.within, EVERY_MESSAGE)} WHERE {limits}
         ORDER BY log.at DESC, log.seq DESC LIMIT {_PAGE}
        """
        found: dict[int, None] = {}
        last: tuple[int, ...] = LARGEST, LARGEST
        # Page by page from the newest, so that the cost is that of the sessions asked for, not of all there are.
        while len(found) < self.limit:
            page = yield from rows(text, *values, *last)
            found.update((session, None) for _, _, session in page)
            if len(page) < _PAGE:
                break
            last = page[-1][:2]
        text = f"{SESSION} WHERE [[s.space = $1 AND ]]{listed('s.id', '$2')} ORDER BY s.started_at, s.id"
        numbers = list(found)[: self.limit]
        return [read_session(row) for row in (yield from rows(text, self.scope.space, numbers))]


@dataclass(frozen=True, slots=True)
class UserLedger(OfScope[Ledger]):
    """The user's counts. A user nobody has heard of has zeros.

    With `here`, only the user's messages in the scope's thread and the active summaries of that thread are counted;
    open turns are those that no archive and no summary of the thread covers.
    """

    here: bool = False

    @property
    def short(self) -> bool:
        """Whether the counts are stored; those of a thread are counted."""
        return not self.here

    def answer(self) -> Answer[Ledger]:
        scope = self.scope
        if self.here:
            levels = yield from rows(_LEVELS_OF_THREAD, *scope[:3])
            covered = max((last for _, _, last in levels), default=0)
            return _read_ledger((yield from first(_COUNTS_OF_THREAD, *scope[:3], covered)), levels)
        counts, levels = yield (Statement(_COUNTS, scope[:2]), Statement(_LEVELS, scope[:2]))
        return _read_ledger(counts[0] if counts else None, levels)


def _position(limits: Conditions, before: int | Position) -> Answer[Position]:
    if isinstance(before, Position):
        return before
    text = f"SELECT at, seq FROM log WHERE {limits} AND log.seq <= ${len(limits.values) + 1} ORDER BY seq DESC LIMIT 1"
    found = yield from first(text, *limits.values, before)
    if found is None:
        return Position(EARLIEST, 0)
    at, seq = found
    return Position(at, seq if seq == before else seq + 1)


def _read_ledger(counts: Row | None, levels: Sequence[Row]) -> Ledger:
    active = tuple((level, count) for level, count, *_ in levels)
    # A summary of summaries has a higher level than these, so the highest are all active.
    highest = levels[-1][0] if levels else 0
    messages, archived, turns, open_turns, last_seq, last_chunk = counts or (0,) * 6
    return Ledger(messages, archived, turns, open_turns, last_seq, last_chunk, active, highest)


# --- What changes of summaries and memories ask -----------------------------------------------------------------------


def count_up_to(scope: Scope, seq: int) -> Answer[int]:
    return number(f"SELECT count(*) FROM log WHERE {OWNED} AND seq <= $3", *scope[:2], seq)


def count_between(space: str, after: int, up_to: int) -> Answer[int]:
    """Return how many messages there are after one number, up to another; of the space, where each has its own."""
    return number("SELECT count(*) FROM log WHERE [[space = $1 AND ]]seq > $2 AND seq <= $3", space, after, up_to)


def of_archive(scope: Scope, chunk: int) -> Answer[list[tuple[int, str]]]:
    """Return the number and the role of each message that an archive of the user still has."""
    return rows(f"SELECT seq, role FROM log WHERE {OWNED} AND chunk = $3", *scope[:2], chunk)


def expect_newest(messages: Iterable[Message]) -> None:
    """Raise SourcesChanged if one of the messages has a newer version or was taken back."""
    for message in messages:
        if message.replaced:
            raise SourcesChanged(f"message {message.seq} was edited or taken back since; read it again")


# --- Changes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddMessage(Change):
    """Append a message. A repeated delivery is recognised and answered with what is stored.

    With `draft.replaces`, it is a new version of an earlier message of the same owner, thread and role (or of the
    newest version of that one). It keeps that message's time unless the draft names one. Memories of the user that rest
    on versions with another text alone are deactivated, and what such a memory had superseded is active again. Raises
    NotFound when there is no such message, InvalidInput when the role is another.
    """

    draft: Draft
    silence: int = SESSION_SILENCE
    """The silence that closes a session, in microseconds."""

    @property
    def scope(self) -> Scope:
        return self.draft.scope


@dataclass(frozen=True, slots=True)
class AddMessages(Sequence[AddMessage]):
    """The change set of a batch: many messages of one scope. Each `AddMessage` is made when it is read."""

    drafts: Sequence[Draft]
    silence: int = SESSION_SILENCE

    def __len__(self) -> int:
        return len(self.drafts)

    def __iter__(self) -> Iterator[AddMessage]:
        return map(AddMessage, self.drafts, repeat(self.silence))

    @overload
    def __getitem__(self, index: int) -> AddMessage: ...

    @overload
    def __getitem__(self, index: slice) -> AddMessages: ...

    def __getitem__(self, index: int | slice) -> AddMessage | AddMessages:
        if isinstance(index, slice):
            return AddMessages(self.drafts[index], self.silence)
        return AddMessage(self.drafts[index], self.silence)


_DESCRIBED: Final = both(
    lambda checksums: checksums.update(
        "session",
        f"[[space = $1 AND md5(thread) = md5($2) AND ]]thread = {A_THREAD.format('$2')} AND name = $3",
        automatic="$4",
        timeout="$5",
        opened_by="$6",
    )
)


def restore_session(within: Transaction, row: SessionRow) -> Answer[Restored]:
    """Store what a session's messages do not say of it. One that is unknown stays so."""
    session = row.session
    opener = within.person(session.space, session.user, microseconds(session.started_at, "the time"))
    timeout = round(session.timeout.total_seconds() * 1_000_000)
    within.later(_DESCRIBED, session.space, session.thread, session.id, row.automatic, timeout, opener)
    within.dropped(session.space)
    return done(Restored(0, False))


@dataclass(frozen=True, slots=True)
class IsAuthor(OfScope[bool]):
    """Whether a user is the author of a message, in whoever's memory."""

    def answer(self) -> Answer[bool]:
        said = f"SELECT 1 FROM log WHERE [[space = $1 AND ]]author = {USER} LIMIT 1"
        return bool((yield from number(f"SELECT count(*) FROM ({said}) said", *self.scope[:2])))
