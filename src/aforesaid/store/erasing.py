"""What is erased, taken back or set aside, and what rested on the messages that are gone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from aforesaid.domain.checks import counted, microseconds, moment, now
from aforesaid.domain.details import TAKEN_BACK
from aforesaid.domain.memory import EDITED
from aforesaid.domain.memory import TAKEN_BACK as WITHDRAWN
from aforesaid.domain.message import Draft, Message
from aforesaid.domain.scope import Entry, Scope, Subject, is_direct
from aforesaid.domain.summary import HEARD_BEFORE, Summary
from aforesaid.domain.transfer import Purged
from aforesaid.store.agenda import entries_of, planned, progress_of, put_entries
from aforesaid.store.checksums import both, setting
from aforesaid.store.memories import ChangeMemory, Memories
from aforesaid.store.messages import MessagesByNumber, VersionsOf
from aforesaid.store.operations import Change, Transaction
from aforesaid.store.people import expect_user, was_purged
from aforesaid.store.sql import BY_NAME, OWNED, USER, USER_ID, Answer, Row, exists, listed, rows
from aforesaid.store.summaries import SUMMARY, read_summaries, release_sources


class MessageToPurge(NamedTuple):
    """A message that is deleted: whose it is, when it was said (microseconds), its archive and its length."""

    seq: int
    user: str
    thread: str
    at: int
    chunk: int | None
    characters: int


# --- What is found ----------------------------------------------------------------------------------------------------

_SEQS: Final = f"[[space = $1 AND ]]{listed('seq', '$2')}"
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
_HEARING: Final = f"""
{SUMMARY} WHERE [[y.space = $1 ~ o.space = $1]] AND [[jsonb_exists_any(y.details::jsonb -> 'heard', $2::text[])
 ~ EXISTS (SELECT 1 FROM json_each(y.details, '$.heard') WHERE key IN (SELECT value FROM json_each($2)))]]
"""
"""The summaries for which messages of the users $2 were read beside those of their owner."""
_RELATED: Final = f"""
{SUMMARY} WHERE [[y.space = $1 AND ]]y.id IN (
    SELECT summary FROM summary_source WHERE [[space = $1 AND ]]{listed("source", "$2")}
    UNION SELECT id FROM summary WHERE [[space = $1 AND ]]{listed("replaces", "$2")}
    UNION SELECT replaces FROM summary WHERE [[space = $1 AND ]]{listed("id", "$2")})
"""
_MEMORIES_TO_PURGE: Final = f"""
SELECT m.id, {_ITS_USER} WHERE [[m.space = $1 AND ]]m.id IN (
    SELECT id FROM memory WHERE {OWNED}
    UNION SELECT id FROM memory WHERE [[space = $1 AND ]]speaker = {USER}
    UNION SELECT memory FROM memory_version
     WHERE [[space = $1 AND was ->> 'speaker' ~ json_extract(was, '$.speaker')]] = {USER}
    UNION SELECT memory FROM memory_source WHERE [[space = $1 AND ]]{listed("seq", "$3")})
"""
_MEMORIES_FROM: Final = f"""
SELECT m.id, {_ITS_USER}
 WHERE [[m.space = $1 AND ]]m.id IN (SELECT memory FROM memory_source WHERE {_SEQS})
"""
_SOURCES_OF: Final = f"""
{_MESSAGE} FROM log l[[ ~  {_NAMES}]] WHERE [[l.space = $1 AND ]]l.seq IN (
    SELECT seq FROM memory_source WHERE [[space = $1 AND ]]{listed("memory", "$2")})
"""
_TAKEN_BACK_BEFORE: Final = f"""
WITH RECURSIVE earlier (seq) AS (
    SELECT replaces FROM log WHERE {_SEQS} AND details = '{TAKEN_BACK}' AND replaces IS NOT NULL
    UNION SELECT l.replaces FROM earlier e JOIN log l ON [[l.space = $1 AND ]]l.seq = e.seq
     WHERE l.replaces IS NOT NULL
) {_MESSAGE} FROM log l[[ ~  {_NAMES}]] WHERE [[l.space = $1 AND ]]l.seq IN (SELECT seq FROM earlier)
     AND [[l.seq != ALL($2::bigint[]) ~ l.seq NOT IN (SELECT value FROM json_each($2))]]
"""


def _messages(text: str, *values: Any) -> Answer[list[MessageToPurge]]:  # noqa: ANN401 - whatever the text binds
    return [MessageToPurge(*row) for row in (yield from rows(text, *values))]


def taken_back_before(space: str, seqs: Sequence[int]) -> Answer[list[MessageToPurge]]:
    """Return the earlier versions of those of the messages that are tombstones, without those that are named.

    They are deleted with the tombstone: without it they would be shown again.
    """
    return _messages(_TAKEN_BACK_BEFORE, space, list(seqs))


# --- What is deleted --------------------------------------------------------------------------------------------------
# The statements run in this order. $1 is the space, and $2 what is deleted: a list of numbers or names, or a user.

_LISTED: Final = "[[= ANY($2::bigint[]) ~ IN (SELECT value FROM json_each($2))]]"
_NAMED: Final = "[[space = $1 AND name = ANY($2::text[]) ~ id IN (SELECT value FROM json_each($2))]]"
_IN_LOG: Final = f"FROM log WHERE [[space = $1 AND ]]seq {_LISTED}"
_ERASE_MESSAGES: Final = (
    # In PostgreSQL, the words of a message lie in its row.
    """[[ ~ INSERT INTO log_index (log_index, rowid, terms)
    SELECT 'delete', seq, terms FROM log_index_content WHERE seq IN (SELECT value FROM json_each($2))]]""",
    f"""
    UPDATE thread SET messages = thread.messages - l.messages, words = thread.words - l.words, revision = revision + 1
      FROM (SELECT thread, count(*) FILTER (WHERE shared) AS messages,
                   coalesce(sum(words) FILTER (WHERE shared), 0) AS words {_IN_LOG} GROUP BY thread) l
     WHERE [[thread.space = $1 AND thread.name ~ thread.id]] = l.thread
    """,
    f"""
    UPDATE person SET messages = person.messages - l.messages, archived = person.archived - l.archived,
           turns = person.turns - l.turns, open_turns = person.open_turns - l.open_turns,
           words = person.words - l.words, revision = revision + 1
      FROM (SELECT owner, count(*) AS messages, count(*) FILTER (WHERE NOT active) AS archived,
                   count(*) FILTER (WHERE role = 'user') AS turns,
                   count(*) FILTER (WHERE role = 'user' AND chunk IS NULL) AS open_turns, sum(words) AS words
                   {_IN_LOG} GROUP BY owner) l
     WHERE [[person.space = $1 AND person.name ~ person.id]] = l.owner
    """,
    f"DELETE FROM [[embedding ~ vector]] WHERE [[space = $1 AND ]]seq {_LISTED}",
    f"DELETE FROM memory_source WHERE [[space = $1 AND ]]seq {_LISTED}",
    f"""
    UPDATE log SET replaced = false
     WHERE [[space = $1 AND ]]seq IN (SELECT replaces {_IN_LOG} AND replaces IS NOT NULL)
       AND details IS DISTINCT FROM '{TAKEN_BACK}'
    """,
    f"UPDATE log SET replaces = NULL WHERE [[space = $1 AND ]]replaces {_LISTED}",
    f"DELETE {_IN_LOG}",
)
# The thread and the times let an index find a session's messages.
_OF_SESSION: Final = """
FROM log l WHERE [[l.space = $1 AND ]]l.thread = session.thread AND l.session = session.id
             AND l.at BETWEEN session.started_at AND session.last_at
"""
_COUNT_SESSIONS: Final = (
    f"DELETE FROM session WHERE [[space = $1 AND ]]id {_LISTED} AND NOT EXISTS (SELECT 1 {_OF_SESSION})",
    f"""
    UPDATE session SET (messages, started_at, last_at, first_seq, last_seq) = (
           SELECT count(*), min(l.at), max(l.at), min(l.seq), max(l.seq) {_OF_SESSION})
     WHERE [[space = $1 AND ]]id {_LISTED}
    """,
)
"""Brings sessions to what is left in them, and deletes those that are empty."""
_DROP_EMPTY: Final = (
    f"DELETE FROM thread WHERE {_NAMED}"
    + "".join(
        f""" AND NOT EXISTS (SELECT 1 FROM {table} x
                              WHERE [[x.space = $1 AND x.thread = thread.name ~ x.thread = thread.id]])"""
        for table in ("log", "session", "summary")
    ),
)
"""Deletes threads that nothing is in."""


def _unindex_notes(table: str, odd: int) -> tuple[str, str]:
    """Return what takes summaries or memories out of the keyword index, with their vectors."""
    return (
        f"""[[ ~ INSERT INTO note_index (note_index, rowid, terms)
        SELECT 'delete', 2 * id + {odd}, index_terms(owner, 0, 0, text) FROM {table}
         WHERE id IN (SELECT value FROM json_each($2))]]""",
        f"""
        [[DELETE FROM note_embedding WHERE space = $1 AND note IN (SELECT 2 * n + {odd} FROM unnest($2::bigint[]) n)
        ~ DELETE FROM note_vector WHERE (embedder, owner, note) IN (
              SELECT e.id, x.owner, 2 * x.id + {odd} FROM embedder e, {table} x
               WHERE x.id IN (SELECT value FROM json_each($2)))]]
        """,
    )


_ERASE_SUMMARIES: Final = (
    *_unindex_notes("summary", 0),
    f"DELETE FROM summary_source WHERE [[space = $1 AND ]](summary {_LISTED} OR source {_LISTED})",
    f"UPDATE summary SET {setting('summary', replaces='NULL')} WHERE [[space = $1 AND ]]replaces {_LISTED}",
    f"DELETE FROM summary WHERE [[space = $1 AND ]]id {_LISTED}",
)
_PART_VERSIONS: Final = both(
    lambda checksums: checksums.update(
        "memory_version",
        """
        [[space = $1 AND (was ->> 'superseded_by')::bigint = ANY($2::bigint[])
        ~ memory IN (SELECT id FROM memory WHERE owner IN (
              SELECT owner FROM memory WHERE id IN (SELECT value FROM json_each($2))))
          AND json_extract(was, '$.superseded_by') IN (SELECT value FROM json_each($2))]]
        """,
        was="[[jsonb_set(was::jsonb, '{superseded_by}', 'null')::json ~ json_set(was, '$.superseded_by', NULL)]]",
    )
)
_ERASE_MEMORIES: Final = (
    *_unindex_notes("memory", 1),
    _PART_VERSIONS,
    f"DELETE FROM memory_source WHERE [[space = $1 AND ]]memory {_LISTED}",
    f"DELETE FROM memory_version WHERE [[space = $1 AND ]]memory {_LISTED}",
    f"UPDATE memory SET {setting('memory', superseded_by='NULL')} WHERE [[space = $1 AND ]]superseded_by {_LISTED}",
    f"DELETE FROM memory WHERE [[space = $1 AND ]]id {_LISTED}",
)
_FIRST_OWNER: Final = "(SELECT owner FROM log l WHERE [[l.space = $1 AND ]]l.seq = first_seq)"
_ERASE_USER: Final = (
    *(f"DELETE FROM {table} WHERE {BY_NAME}" for table in ("agenda", "spending", "audit")),
    *(f"DELETE FROM {table} WHERE {OWNED}" for table in ("fact", "facts", "setting", "tombstone", "receipt")),
    f"""
    UPDATE session SET {setting("session", opened_by=_FIRST_OWNER)}
     WHERE [[space = $1 AND ]]opened_by = {USER}
    """,
    f"""
    UPDATE person SET messages = 0, archived = 0, turns = 0, open_turns = 0, words = 0, last_seq = 0, last_at = NULL,
           revision = revision + 1, {setting("person", owner="false", last_chunk="0", extracted="0")}
     WHERE space = $1 AND name = $2
    """,
    """
    DELETE FROM person WHERE space = $1 AND name = $2
       AND NOT EXISTS (SELECT 1 FROM log l WHERE [[l.space = $1 AND l.author = $2 ~ l.author = person.id]])
    """,
)
_NEWEST: Final = """
UPDATE person SET last_seq = coalesce((
           SELECT max(seq) FROM log WHERE [[log.space = $1 AND log.owner = person.name ~ log.owner = person.id]]), 0),
       last_at = (SELECT max(at) FROM log WHERE [[log.space = $1 AND log.owner = person.name ~ log.owner = person.id]])
 WHERE [[space = $1 AND name = ANY($2::text[]) ~ id IN (SELECT value FROM json_each($2))]]
"""
_ERASE_DERIVED: Final = """
DELETE FROM derived WHERE [[space = $1 AND owner = ANY($2::text[])
 ~ owner IN (SELECT id FROM person WHERE space = $1 AND name IN (SELECT value FROM json_each($2)))]]
"""


def erase_messages(within: Transaction, space: str, seqs: list[int]) -> Answer[None]:
    """Delete messages with their vectors. Bring users, sessions, threads, versions and memories to what is left."""
    text = f"SELECT DISTINCT session, thread, owner FROM log WHERE [[space = $1 AND ]]{listed('seq', '$2')}"
    found = yield from rows(text, space, seqs)
    sessions, threads, owners = (sorted({row[place] for row in found}) for place in range(3))
    with within.overwriting():
        _run(within, _ERASE_MESSAGES, space, seqs)
        within.later(_NEWEST, space, owners)
        _run(within, _COUNT_SESSIONS, space, sessions)
        _run(within, _DROP_EMPTY, space, threads)
        within.dropped(space)


def erase_summaries(within: Transaction, space: str, numbers: list[int]) -> Answer[None]:
    """Delete summaries with their vectors, and threads that nothing else is in."""
    text = f"SELECT DISTINCT thread FROM summary WHERE [[space = $1 AND ]]{listed('id', '$2')}"
    threads = [thread for (thread,) in (yield from rows(text, space, numbers))]
    with within.overwriting():
        _run(within, _ERASE_SUMMARIES, space, numbers)
        _run(within, _DROP_EMPTY, space, threads)
        within.dropped(space)


def erase_memories(within: Transaction, space: str, numbers: list[int]) -> None:
    """Delete memories with their vectors and earlier versions."""
    with within.overwriting():
        _run(within, _ERASE_MEMORIES, space, numbers)


def _run(within: Transaction, statements: Iterable[str], space: str, gone: object) -> None:
    for statement in statements:
        within.later(statement, space, gone)


# --- Purging ----------------------------------------------------------------------------------------------------------


def purge(within: Transaction, scope: Scope, actor: str) -> Answer[Purged]:
    """Delete a user, and everything that was made from the user's words."""
    space, user = scope.space, scope.user
    messages = yield from _messages(_MESSAGES_TO_PURGE, *scope[:2])
    if not messages and not (yield from was_purged(scope)):
        yield from expect_user(scope)
    messages += yield from taken_back_before(space, [message.seq for message in messages])
    summaries, memories = yield from _resting(space, messages, scope)
    of_others = [owner for owner in [*(y.user for y in summaries), *(whose for _, whose in memories)] if owner != user]
    others = sorted({*of_others, *(message.user for message in messages)} - {user})
    yield from _plan_again(within, space, others, messages, summaries)
    yield from _release(within, (summary for summary in summaries if summary.user != user))
    erase_memories(within, space, [memory for memory, _ in memories])
    yield from erase_summaries(within, space, [summary.id for summary in summaries])
    yield from erase_messages(within, space, [message.seq for message in messages])
    with within.overwriting():
        within.later(_ERASE_DERIVED, space, [user, *others])
        for text in _ERASE_USER:
            within.later(text, space, user)
        within.dropped(space)
    purged = Purged(len(messages), len(summaries), len(memories), len(of_others))
    within.audit(scope, actor, "purge", purged.counts)
    return purged


def erase(within: Transaction, scope: Scope, actor: str, seqs: Sequence[int]) -> Answer[Purged]:
    """Delete messages of a user in all their versions, and everything that was made from them."""
    space = scope.space
    messages = [_to_purge(message) for message in (yield from VersionsOf(scope, seqs).answer())]
    if not messages:
        return Purged(0, 0, 0)  # erased before
    summaries, memories = yield from _without_summaries(within, space, messages, messages)
    erase_memories(within, space, [memory for memory, _ in memories])
    yield from erase_messages(within, space, [message.seq for message in messages])
    of_others = [
        owner for owner in [*(y.user for y in summaries), *(whose for _, whose in memories)] if owner != scope.user
    ]
    purged = Purged(len(messages), len(summaries), len(memories), len(of_others))
    within.audit(scope, actor, "messages.erase", purged.counts)
    return purged


# --- Taking back and setting aside ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Withdraw(Change):
    """Undo what was made from messages of the user that are taken back by tombstones in the same change set.

    Memories that rest on these messages alone are deactivated, and what such a memory had superseded is active again.
    Summaries that cover one of them are deleted; what they archived is active again, and is summarised anew.
    """

    scope: Scope
    messages: tuple[int, ...]
    """Any version of each message."""
    actor: str = "aforesaid"

    def carry_out(self, within: Transaction) -> Answer[None]:
        scope = self.scope
        versions = yield from VersionsOf(scope, self.messages).answer()
        yield from _without_summaries(within, scope.space, [_to_purge(message) for message in versions], ())
        gone = {message.seq for message in versions}
        yield from _deactivate(within, scope, gone, WITHDRAWN, "take_back", self.actor)
        within.audit(scope, self.actor, "messages.take_back", counted(len(self.messages), "message"))


@dataclass(frozen=True, slots=True)
class SetAside(Change):
    """Let messages of the user not count any more, because their chat goes on from another version of an earlier turn.

    Histories, recent windows and what is made from messages leave them out, as they leave out older versions; searches
    still find them. Memories that rest on them alone are deactivated. One counts again when a new version of it is
    stored. Messages of others, and those that do not exist, are left alone.
    """

    scope: Scope
    messages: tuple[int, ...]

    def carry_out(self, within: Transaction) -> Answer[None]:
        scope = self.scope
        found = yield from MessagesByNumber(scope, self.messages).answer()
        hidden = [message.seq for message in found if not message.replaced]
        if not hidden:
            return
        hide = f"UPDATE log SET replaced = true WHERE [[space = $1 AND ]]{listed('seq', '$2')}"
        within.later(hide, scope.space, hidden)
        if (yield from exists(_MEMORIES_FROM, scope.space, hidden)):
            yield from _deactivate(within, scope, set(hidden), EDITED, "edit_message", "aforesaid")


def replace_version(within: Transaction, draft: Draft) -> Answer[None]:
    """Deactivate memories of a message's owner that rest on replaced versions of it alone.

    `draft` is the newest version, which has just been stored. Versions with the same text still say the same.
    """
    if not isinstance(draft.replaces, int) or draft.is_tombstone:
        return
    scope = draft.scope
    versions = yield from VersionsOf(scope, [draft.replaces]).answer()
    gone = {message.seq for message in versions if message.replaced and message.text != draft.text}
    # Most messages led to no memory; then the user's memories need not be read.
    if gone and (yield from exists(_MEMORIES_FROM, scope.space, sorted(gone))):
        yield from _deactivate(within, scope, gone, EDITED, "edit_message", "aforesaid")


def _deactivate(
    within: Transaction, scope: Scope, gone: set[int], reason: str, action: str, actor: str
) -> Answer[None]:
    """Deactivate memories that rest on these messages alone. What such a memory had superseded is active again."""
    memories = yield from Memories(scope, active=None).answer()
    withdrawn = {memory.id for memory in memories if memory.sources and gone.issuperset(memory.sources)}
    for memory in memories:
        if memory.id in withdrawn and memory.state != "deactivated":
            after = replace(memory, state="deactivated", active=False, valid_to=moment(now()), reason=reason)
        elif memory.id not in withdrawn and memory.state == "superseded" and memory.superseded_by in withdrawn:
            after = replace(memory, state="active", active=True, valid_to=None, superseded_by=None, reason="")
        else:
            continue
        yield from ChangeMemory(after, action, actor).carry_out(within)


def _to_purge(message: Message) -> MessageToPurge:
    at = microseconds(message.at, "the time")
    return MessageToPurge(message.seq, message.user, message.thread, at, message.chunk, len(message.text))


def _without_summaries(
    within: Transaction, space: str, messages: Sequence[MessageToPurge], deleted: Sequence[MessageToPurge]
) -> Answer[_Resting]:
    """Delete the summaries that rest on messages, and what was derived, and have them made again."""
    summaries, memories = yield from _resting(space, messages)
    owners = sorted({*(summary.user for summary in summaries), *(message.user for message in messages)})
    yield from _plan_again(within, space, owners, deleted, summaries)
    yield from _release(within, summaries)
    yield from erase_summaries(within, space, [summary.id for summary in summaries])
    with within.overwriting():
        within.later(_ERASE_DERIVED, space, owners)
    return summaries, memories


def _release(within: Transaction, summaries: Iterable[Summary]) -> Answer[None]:
    for summary in summaries:
        if not summary.rolled_back and not summary.replaced:
            yield from release_sources(within, summary)


_Resting: TypeAlias = tuple[list[Summary], list[Row]]


def _resting(space: str, messages: Sequence[MessageToPurge], purged: Scope | None = None) -> Answer[_Resting]:
    """Return everything with words of messages in it, in whatever state it is; with `purged`, also all of that user.

    - memories that have one of them as a source, with all their versions;
    - summaries that cover one of them, or did when they were made; those of a day on which it was said to several;
    - summaries of others for which one of them was read, because it was said in a shared thread; with `purged`, any of
      that user's;
    - archives of other sources of these memories, because summaries state important memories;
    - summaries that were made from one of these, or are the version before or after it.

    Texts that are derived for the owners of all this rest on it too (`_ERASE_DERIVED`). Facts rest on no message.
    """
    user, seqs = None if purged is None else purged.user, [message.seq for message in messages]
    if purged is None:
        memories = yield from rows(_MEMORIES_FROM, space, seqs)
    else:
        memories = yield from rows(_MEMORIES_TO_PURGE, *purged[:2], seqs)
    sources = yield from _messages(_SOURCES_OF, space, [memory for memory, _ in memories])
    by_user, stating, days = _by_user(messages), _by_user(sources), set(_days_near(messages))
    users = {*by_user, *stating, *(() if user is None else (user,))}
    texts = [day.isoformat() for day in sorted(days)]
    found = read_summaries((yield from rows(_SUMMARIES_OF_USERS, space, sorted(users), texts)))
    new = {
        summary.id: summary
        for summary in found
        if summary.user == user
        or (summary.kind == "day" and summary.day in days)
        or _covers(summary, by_user[summary.user])
        or (summary.reach == "chunks" and _covers(summary, stating[summary.user]))
    }
    said = {message.user for message in messages if not is_direct(message.thread)} | ({user} - {None})
    hearing = read_summaries((yield from rows(_HEARING, space, sorted(said)))) if said else []
    new |= {each.id: each for each in hearing if user in each.heard or _heard(each, by_user)}
    gone: dict[int, Summary] = {}
    while new:
        gone |= new
        related = read_summaries((yield from rows(_RELATED, space, sorted(new))))
        new = {summary.id: summary for summary in related if summary.id not in gone}
    return [gone[number] for number in sorted(gone)], memories


def _by_user(messages: Iterable[MessageToPurge]) -> dict[str, list[MessageToPurge]]:
    """Return messages by their owner, in the order of the log; nothing for others."""
    found: dict[str, list[MessageToPurge]] = defaultdict(list)
    for message in sorted(messages):
        found[message.user].append(message)
    return found


def _days_near(messages: Sequence[MessageToPurge]) -> Iterator[date]:
    """Return the days whose summaries may have read a message. A day begins at a different time in each time zone."""
    for day in {moment(message.at).date().toordinal() for message in messages if not is_direct(message.thread)}:
        yield from (date.fromordinal(near) for near in (day - 1, day, day + 1) if 1 <= near <= date.max.toordinal())


def _covers(summary: Summary, messages: Sequence[MessageToPurge]) -> bool:
    """Return whether a summary covers one of its owner's messages, which are in the order of the log.

    Messages below one that was rolled back are in no archive, or in a later one, and an import may have numbered them
    anew. So it counts as made with whatever lies in its range or in its time.
    """
    began, ended = microseconds(summary.began_at, "the time"), microseconds(summary.ended_at, "the time")
    if summary.rolled_back:
        return any(
            (summary.first <= message.seq <= summary.last or began <= message.at <= ended)
            and (summary.reach != "thread" or summary.thread == message.thread)
            for message in messages
        )
    if summary.reach == "chunks":
        return any(message.chunk in summary.chunks for message in messages)
    if summary.reach == "sources":
        return False
    by_seq = attrgetter("seq")
    first = bisect_left(messages, summary.first, key=by_seq)
    return any(
        began <= message.at <= ended and (summary.reach == "user" or summary.thread == message.thread)
        for message in messages[first : bisect_right(messages, summary.last, key=by_seq)]
    )


def _heard(summary: Summary, messages: Mapping[str, Sequence[MessageToPurge]]) -> bool:
    """Return whether one of these messages, by their owners, may have been read for a summary of somebody else."""
    began, ended = microseconds(summary.began_at, "the time"), microseconds(summary.ended_at, "the time")
    return any(
        message.thread in threads and began - HEARD_BEFORE <= message.at <= ended
        for user, threads in summary.heard.items()
        for message in messages.get(user, ())
    )


def _plan_again(
    within: Transaction,
    space: str,
    others: Sequence[str],
    messages: Sequence[MessageToPurge],
    summaries: Sequence[Summary],
) -> Answer[None]:
    """Make the other users and the days that lose summaries due at once, without counting the deleted messages."""
    at = now()
    entries = yield from entries_of(space, others)
    progress: dict[str, int] = {}
    for policy in {entry.subject.policy for entry in entries}:
        progress[policy] = yield from progress_of(space, policy)
    due = [replace(_without(entry, messages, progress), due_at=at, failures=0, error=None) for entry in entries]
    days = {summary.day for summary in summaries if summary.kind == "day" and summary.day is not None}
    subjects = [Subject("calendar", space, day=day.isoformat()) for day in sorted({*days, *_days_near(messages)})]
    for entry in (yield from planned(subjects)) if subjects else []:
        if entry.subject.date in days:
            due.append(replace(entry, due_at=at, failures=0, error=None, done_at=None, done_seq=0))
        elif entry.error is not None:
            due.append(replace(entry, due_at=at, failures=0, error=None))  # a model's error may quote what it read
    if due:
        put_entries(within, due)


def _without(entry: Entry, messages: Sequence[MessageToPurge], progress: Mapping[str, int]) -> Entry:
    """Return an entry that does not count messages that are deleted."""
    subject = entry.subject
    counted = [
        message.characters
        for message in messages
        if message.user == subject.user
        and subject.thread in ("", message.thread)
        and message.seq <= progress[subject.policy]
    ]
    left = max(entry.messages - len(counted), 0)
    return replace(
        entry,
        messages=left,
        characters=max(entry.characters - sum(counted), 0),
        waiting=min(entry.waiting, left) if counted else entry.waiting,
    )
